//! Groups of ranks that are slow with all others, or with one other group.

use super::case::Case;
use super::facts::{gpu, inside, latency, step};
use crate::diagnose::{Cause, Measured, Ways};
use crate::fit::median;
use crate::topology::{Level, PathLabel, Unit};

/// Ranks of a unit that are looked at.
const MANY: usize = 64;
/// Below this share a side is slow.
const SLOW: f64 = 0.92;

/// What a group's transfers do, within its host and over the network.
struct Sides {
    /// share of what is usual and the slowest pair; `None` where there are no pairs
    inside: Option<(f64, (usize, usize))>,
    across: Option<(f64, (usize, usize))>,
}

impl Sides {
    fn of(measured: &Measured, unit: Unit, ways: Ways) -> Self {
        let members = measured.units.members(unit);
        let mut shares: [Vec<(f64, (usize, usize))>; 2] = Default::default();
        for &rank in members.iter().take(MANY) {
            for other in (0..measured.world()).filter(|other| members.binary_search(other).is_err()) {
                let pairs = match ways {
                    Ways::Sends => vec![(rank, other)],
                    Ways::Receives => vec![(other, rank)],
                    Ways::Both => vec![(rank, other), (other, rank)],
                };
                for (from, to) in pairs {
                    let Some(share) = measured.peer.get(from, to).map(|pair| measured.share(pair)).filter(|share| share.is_finite()) else {
                        continue;
                    };
                    shares[usize::from(!inside(measured, from, to))].push((share, (from, to)));
                }
            }
        }
        let side = |shares: &[(f64, (usize, usize))]| {
            let slowest = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
            Some((median(&mut shares.iter().map(|(share, _)| *share).collect::<Vec<_>>()), slowest.1))
        };
        Self { inside: side(&shares[0]), across: side(&shares[1]) }
    }

    fn slow(side: Option<(f64, (usize, usize))>) -> Option<(usize, usize)> {
        side.filter(|(share, _)| *share < SLOW).map(|(_, pair)| pair)
    }
}

pub fn slow_unit(case: &mut Case<'_>, unit: Unit, ways: Ways, share: f64, own_slow: bool) {
    let measured = case.measured();
    let members: Vec<usize> = measured.units.members(unit).iter().take(MANY).copied().collect();
    let sides = Sides::of(measured, unit, ways);
    let (near, far) = (Sides::slow(sides.inside), Sides::slow(sides.across));
    let only_far = far.is_some() && near.is_none();
    let pairs: Vec<(usize, usize)> = [near, far].into_iter().flatten().collect();
    if ways == Ways::Both {
        case.links(&pairs, &members, share);
    } else if let Some(&pair) = pairs.first() {
        // A narrow link slows both directions.
        let (_, back) = (pair, (pair.1, pair.0));
        let fine = measured.peer.get(back.0, back.1).is_some_and(|pair| measured.share(pair) >= SLOW);
        let against = if fine { "the other direction goes well, and a narrow link slows both" } else { "" };
        case.add(Cause::TrainedDown, 0.6, "a narrow link slows all that goes over it", against);
    }
    match unit.level {
        Level::Rank => rank(case, members.first().copied().unwrap_or(0), ways, own_slow, only_far),
        Level::Switch => {
            case.add(Cause::SharedUplink, 2.0, "all ranks below one switch are slow with all others: what they share is its uplink", "");
            case.redirect(&members, 0.8, "transfers through that switch are slow");
        }
        Level::Socket => {
            case.add(
                Cause::CrossSocket,
                2.0,
                "all ranks of one NUMA node are slow with all others: what they share is the link between nodes",
                "",
            );
            case.seats(&members, 0.9);
            case.add(Cause::HostMemory, 0.9, "one node's memory may be slow: a channel without a module, NPS settings", "");
        }
        Level::Host => host(case, &members, ways, share, far),
    }
    if only_far {
        case.ports(&members, share);
    }
}

fn rank(case: &mut Case<'_>, rank: usize, ways: Ways, own_slow: bool, only_far: bool) {
    let measured = case.measured();
    // Another device than the others'.
    let name = |rank: usize| gpu(measured, rank).map(|gpu| gpu.name.as_str()).filter(|name| !name.is_empty());
    let others = (0..measured.world()).filter(|&other| other != rank).filter_map(name);
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    others.for_each(|name| *counts.entry(name).or_default() += 1);
    let usual = counts.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
    let other = name(rank).zip(usual).filter(|(own, usual)| own != usual);
    match (own_slow, other) {
        (true, Some((own, usual))) => {
            case.add(Cause::SmallerDevice, 4.2, format!("it is {own}, others are {usual}, and its own copies are slow, too"), "");
        }
        (true, None) => case.add(Cause::SmallerDevice, 2.4, "its own copies are slow, too: another device, or one that is held down", ""),
        (false, Some((own, usual))) => {
            case.add(
                Cause::SmallerDevice,
                2.0,
                format!("it is {own}, others are {usual}"),
                "its own copies are as fast as those of others",
            );
        }
        (false, None) => {}
    }
    case.clocks(&[rank], if own_slow { 2.2 } else { 0.4 });
    case.seats(&[rank], 0.9);
    let linked = (0..measured.world()).any(|other| matches!(measured.router.label(rank, other), Some(PathLabel::Nvl(_))));
    if linked && !only_far {
        case.add(Cause::MissingNvlinks, 1.8, "all that goes over its links is slow: some may be down", "");
    }
    match ways {
        Ways::Both if only_far => case.add(Cause::BadCable, 1.2, "only what goes over its port is slow", ""),
        Ways::Both => case.add(Cause::BadCable, 0.7, "a riser or a bad contact slows what goes over it", ""),
        Ways::Sends => {
            case.add(Cause::Sender, 1.2, "all that it sends is slow, what it receives is not", "");
            case.add(
                Cause::ReadRole,
                1.0,
                "reading from a device's memory is slower than writing to it",
                "then it would be so of other ranks, too",
            );
            case.redirect(&[rank], 0.7, "what leaves this device is slow");
        }
        Ways::Receives => {
            case.add(Cause::Receiver, 1.2, "all that it receives is slow, what it sends is not", "");
            case.add(Cause::ReceiveLimit, 0.9, "its receive side takes no more", "");
            case.redirect(&[rank], 0.6, "what enters this device is slow");
        }
    }
}

fn host(case: &mut Case<'_>, members: &[usize], ways: Ways, share: f64, slowest: Option<(usize, usize)>) {
    let measured = case.measured();
    match ways {
        Ways::Receives => {
            case.direct(members, 2.4, "all that comes into this host is slow, what leaves it is not");
            case.add(Cause::ReadRole, 1.6, "writing to its devices is slower than reading from them", "");
            case.add(Cause::ReceiveLimit, 0.7, "its receive side takes no more", "");
        }
        Ways::Sends => {
            case.add(
                Cause::ReadRole,
                2.2,
                "what leaves this host is slow, what comes in is not: reading from a device is limited by outstanding requests",
                "",
            );
            case.direct(members, 1.7, "what leaves this host is slow, what comes in is not");
        }
        Ways::Both => {
            case.ports(members, share);
            case.add(Cause::BadCable, 1.0, "all ports of a host seldom fail at once", "");
            case.direct(members, 0.9, "transfers of its devices go by way of host memory");
        }
    }
    let longer = slowest.map_or(f64::NAN, |pair| latency(measured, &[pair]));
    if longer >= 3.0 {
        case.add(Cause::TcpFallback, 2.6, format!("small messages take {longer:.1} × as long as between other hosts"), "");
    }
    case.redirect(members, 1.1, "transfers between its devices and ports are slow");
    case.add(Cause::Congestion, 0.5, "others may use the same network", "");
}

/// One host to the only other one, slow this way alone: what its ranks do, or what the others do with it.
fn roles(case: &mut Case<'_>, from: &[usize], to: &[usize], pairs: &[(usize, usize)]) {
    let measured = case.measured();
    let mut ratios: Vec<f64> = pairs.iter().filter_map(|&(a, b)| Some((measured.rate(a, b)? / measured.rate(b, a)?).ln())).collect();
    ratios.sort_by(f64::total_cmp);
    let same = ratios.first().zip(ratios.last()).is_some_and(|(low, high)| high - low < 0.2);
    let all = if same { "; it is the same in all pairs" } else { "" };
    let because = format!("reading from a device's memory is slower than writing to it{all}");
    case.add(Cause::ReadRole, if same { 2.6 } else { 1.6 }, because, "");
    case.direct(to, 1.9, "all that comes into one host is slow, what leaves it is not");
    case.add(Cause::RouteCollision, 1.2, "the two directions may take different ways", "");
    case.redirect(from, 1.2, "the way between devices and ports is slow at one end");
}

pub fn slow_between(case: &mut Case<'_>, from: Unit, to: Unit, share: f64) {
    let measured = case.measured();
    let (a, b) = (measured.units.members(from), measured.units.members(to));
    let pairs: Vec<(usize, usize)> =
        a.iter().take(8).flat_map(|&a| b.iter().take(8).map(move |&b| (a, b))).filter(|(a, b)| a != b).collect();
    let back: Vec<(usize, usize)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
    let of = |pairs: &[(usize, usize)]| {
        let shares = pairs.iter().filter_map(|&(from, to)| measured.peer.get(from, to)).map(|pair| measured.share(pair));
        median(&mut shares.filter(|share| share.is_finite()).collect::<Vec<_>>())
    };
    let one_way = of(&back) >= SLOW;
    match from.level {
        Level::Rank | Level::Host => {
            let longer = latency(measured, &pairs);
            if longer >= 2.0 {
                case.add(Cause::LongDistance, 2.4, format!("small messages take {longer:.1} × as long as usual there, too"), "");
            }
            // With no other hosts, nothing says that it is the way.
            let alone = measured.topology.hosts().len() <= 2 && from.level == Level::Host;
            if alone && one_way {
                roles(case, a, b, &pairs);
                return;
            }
            case.add(Cause::RouteCollision, 2.2, "both do well with others: what lies between them is slow, as where routes collide", "");
            case.add(Cause::SharedTrunk, 1.8, "what they share on their way, and others do not, may be full", "");
            case.add(Cause::BadCable, 0.9, "a bad cable on the only path between them", "");
            if one_way {
                case.add(Cause::ReadRole, 0.8, "the other way is as usual", "both do well with others");
            }
        }
        Level::Switch => {
            case.add(Cause::SharedUplink, 2.0, "both do well with others: what lies between these two switches is slow", "");
            let ranks: Vec<usize> = a.iter().chain(b).copied().collect();
            case.redirect(&ranks, 0.9, "transfers between these switches are slow");
        }
        Level::Socket => {
            case.add(Cause::CrossSocket, 2.2, "both do well within: the link between the sockets is slow", "");
            let ranks: Vec<usize> = a.iter().chain(b).copied().collect();
            case.seats(&ranks, 0.7);
            case.add(Cause::HostMemory, 0.7, "memory of one of them may be slow", "");
        }
    }
    if let Some((of, exactly)) = step(share) {
        case.add(Cause::SharedTrunk, 1.9, format!("{exactly} of the usual rate: one link where there should be {of}"), "");
    }
}
