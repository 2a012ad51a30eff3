//! Single pairs, classes of pairs, and how two classes lie to each other.

use super::case::Case;
use super::facts::{gpu, inside, latency, port, step, variable};
use crate::diagnose::{Cause, Measured, PairSeen};
use crate::fit::median;
use crate::topology::{Lanes, PathClass, PathLabel};
use crate::units::format_gbps;

/// Pairs of a class that are looked at for facts of their machines.
const SAMPLE: usize = 16;
/// A line that fits so badly is jagged.
const JAGGED: f64 = 0.25;

fn of_class(measured: &Measured, class: u16) -> impl Iterator<Item = &PairSeen> {
    measured.peer.iter().filter(move |pair| pair.class == class)
}

/// Some pairs of a class, spread over all of them, and their ranks.
fn sample(measured: &Measured, class: u16) -> (Vec<(usize, usize)>, Vec<usize>) {
    let count = of_class(measured, class).count();
    let pairs: Vec<(usize, usize)> =
        of_class(measured, class).step_by((count / SAMPLE).max(1)).map(|pair| (pair.from as usize, pair.to as usize)).collect();
    let mut ranks: Vec<usize> = pairs.iter().flat_map(|&(from, to)| [from, to]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    (pairs, ranks)
}

fn median_of(values: impl Iterator<Item = f64>) -> f64 {
    median(&mut values.filter(|value| value.is_finite()).collect::<Vec<_>>())
}

/// Median share of the usual rate of what one end sends within its class, and of what the other receives.
fn ends(measured: &Measured, from: usize, to: usize) -> (f64, f64) {
    let Some(pair) = measured.peer.get(from, to) else { return (f64::NAN, f64::NAN) };
    let like = |other: &&PairSeen| other.class == pair.class && (other.from, other.to) != (pair.from, pair.to);
    let sends = median_of(measured.peer.row(from).iter().filter(like).map(|other| measured.share(other)));
    let receives = (0..measured.world()).filter_map(|other| measured.peer.get(other, to)).filter(like).map(|other| measured.share(other));
    (sends, median_of(receives))
}

/// `share` of what the other direction gives.
pub fn asymmetry(case: &mut Case<'_>, from: usize, to: usize, share: f64) {
    let measured = case.measured();
    let (sends, receives) = ends(measured, from, to);
    let rate = |from, to| measured.rate(from, to).unwrap_or(f64::NAN);
    // Whose fault: what it sends to others against what others send it.
    let row = median_of(
        measured
            .peer
            .row(from)
            .iter()
            .filter(|pair| inside(measured, from, pair.to as usize) == inside(measured, from, to))
            .map(|pair| pair.rate),
    );
    let usual = |from: usize, to: usize| measured.peer.get(from, to).map_or(f64::NAN, |pair| measured.class(pair).usual);
    if sends < 0.8 && (receives.is_nan() || receives >= sends) {
        case.add(
            Cause::Sender,
            2.4,
            format!(
                "rank {from} sends slowly to others like {to}, too: {:.0} % of the usual {} GB/s",
                100.0 * sends,
                format_gbps(usual(from, to))
            ),
            "",
        );
    } else if receives < 0.8 {
        case.add(
            Cause::Receiver,
            2.4,
            format!(
                "rank {to} receives slowly from others like {from}, too: {:.0} % of the usual {} GB/s",
                100.0 * receives,
                format_gbps(usual(from, to))
            ),
            "",
        );
    } else {
        case.add(Cause::Sender, 1.0, format!("rank {from} gives {} GB/s in the middle to others", format_gbps(row)), "");
        case.add(Cause::Receiver, 0.8, "what it receives may be slow", "");
        if sends >= 0.9 && receives >= 0.9 {
            case.add(Cause::Way, 1.2, "both ends do well with others", "");
        }
    }
    // The same in all pairs of two ends: a matter of roles.
    let class = measured.peer.get(from, to).map(|pair| pair.class);
    let (a, b) =
        (measured.topology.ranks.get(from).map(|rank| rank.host.as_str()), measured.topology.ranks.get(to).map(|rank| rank.host.as_str()));
    let roles = measured
        .peer
        .row(from)
        .iter()
        .filter(|pair| Some(pair.class) == class && measured.topology.ranks.get(pair.to as usize).map(|rank| rank.host.as_str()) == b);
    let ratio = roles.map(|pair| pair.rate / rate(pair.to as usize, from));
    let ratio = median_of(ratio);
    let same = (ratio / share - 1.0).abs() < 0.15 && a != b;
    let device = |rank: usize| gpu(measured, rank).is_some();
    let because = "reading from a device's memory is slower than writing to it";
    if same {
        case.add(Cause::ReadRole, 2.2, format!("{because}; it is the same in all pairs of these two hosts"), "");
    } else if device(from) || device(to) || !measured.router.knows() {
        case.add(Cause::ReadRole, 0.9, because, "");
    }
    if inside(measured, from, to) {
        case.redirect(&[from, to], 1.0, "writes of one device to the other may be sent up to the processor");
        case.peers(&[from, to], 0.5);
    } else {
        case.direct(&[to], 1.3, "one end may go by way of host memory");
        case.add(Cause::RouteCollision, 0.8, "the two directions may take different ways", "");
        case.add(Cause::Congestion, 0.5, "others may use that direction", "");
    }
    let link = route_words(measured, from, to);
    let against = link.map_or_else(
        || "the other direction goes over the same link".to_owned(),
        |link| format!("no: {link}, and the other direction goes over it, too"),
    );
    case.add(Cause::TrainedDown, 0.5, "the sender's link trained down", against);
}

/// The first hop of the sender, as it is trained.
fn route_words(measured: &Measured, from: usize, to: usize) -> Option<String> {
    let route = measured.router.route(&measured.topology, from, to);
    route.hops.iter().find(|hop| !hop.state.is_empty()).map(|hop| hop.state.clone())
}

pub fn slow_pair(case: &mut Case<'_>, from: usize, to: usize, share: f64) {
    let measured = case.measured();
    if !inside(measured, from, to) {
        case.add(Cause::RouteCollision, 2.2, "both ends do well with others: the way between them is slow, as where routes collide", "");
        case.add(Cause::BadCable, 1.3, "a bad cable on the only path between them", "");
        let longer = latency(measured, &[(from, to)]);
        if longer >= 3.0 {
            case.add(Cause::TcpFallback, 2.4, format!("small messages take {longer:.1} × as long, too"), "");
        }
        case.add(Cause::Congestion, 0.6, "others may use that path", "");
        return;
    }
    match measured.router.label(from, to) {
        Some(PathLabel::Nvl(_)) => {
            case.add(Cause::MissingNvlinks, 2.0, "only the links between these two are slow: some may be down", "");
            case.add(Cause::BadCable, 1.6, "a bridge that is not fully seated", "");
        }
        Some(PathLabel::Pix | PathLabel::Pxb) => {
            case.peers(&[from, to], 1.2);
            case.redirect(&[from, to], 1.4, "only this pair meets below a switch");
            case.add(Cause::SharedUplink, 1.0, "lanes behind one root may be shared", "");
        }
        _ => {
            case.add(Cause::SharedUplink, 1.6, "other lanes behind the same label: a chipset's, or a shared uplink", "");
            case.redirect(&[from, to], 0.8, "only this pair is slow");
        }
    }
    case.add(Cause::Way, 1.0, "both ends do well with others", "");
    case.links(&[(from, to)], &[], share);
}

pub fn slow_untold(case: &mut Case<'_>, from: usize, to: usize, share: f64) {
    case.add(Cause::Sender, 1.0, "too few others tell whose fault it is", "");
    case.add(Cause::Receiver, 1.0, "too few others tell whose fault it is", "");
    case.add(Cause::Way, 0.9, "too few others tell whose fault it is", "");
    case.links(&[(from, to)], &[], share);
    let measured = case.measured();
    let longer = latency(measured, &[(from, to)]);
    if inside(measured, from, to) {
        case.peers(&[from, to], 0.8);
        case.redirect(&[from, to], 0.8, "it is below what the hardware should give");
        case.seats(&[from, to], 0.6);
    } else {
        case.ports(&[from, to], share);
        case.direct(&[from, to], 0.8, "it is below what the ports should give");
        if longer >= 3.0 {
            case.add(Cause::TcpFallback, 2.0, format!("small messages take {longer:.1} × as long"), "");
        }
    }
}

/// How badly one line fits the pairs of a class: the median of the largest errors.
fn jagged(measured: &Measured, class: u16) -> f64 {
    median_of(of_class(measured, class).map(|pair| f64::from(pair.fit_error)))
}

pub fn slow_class(case: &mut Case<'_>, class: u16, share: f64) {
    let measured = case.measured();
    let Some(what) = measured.classes.get(usize::from(class)) else { return };
    let (pairs, ranks) = sample(measured, class);
    let gpus = ranks.iter().any(|&rank| gpu(measured, rank).is_some());
    match (what.path, what.label) {
        (PathClass::InterNode, _) => {
            network(case, class, &ranks, share);
            case.redirect(
                &ranks,
                if gpus { 1.6 } else { 0.5 },
                "all pairs are far below their ports: the way between device and port is slow",
            );
            case.direct(&ranks, 1.3, "all pairs are far below their ports: bytes may go by way of host memory");
            case.ports(&ranks, share);
            case.seats(&ranks, 0.7);
            case.add(Cause::Protocol, 1.0, "few messages outstanding on one connection do not fill a link", "");
        }
        (_, Some(PathLabel::Nvl(_))) => {
            case.add(Cause::FabricManager, 1.4, "links are up but may not be used", "");
            case.add(Cause::MissingNvlinks, 1.6, "all GPUs may have fewer links than their model", "");
            case.add(
                Cause::OtherGroup,
                1.3,
                "libraries take other ways in other groups: the same pair gave 275 GB/s among 8 and 54 among 16",
                "",
            );
            case.peers(&ranks, 0.8);
        }
        (_, Some(PathLabel::Pix | PathLabel::Pxb)) => {
            case.peers(&ranks, 1.6);
            case.redirect(&ranks, 1.7, "pairs below one switch are far below their links");
            case.links(&pairs, &[], share);
        }
        (_, Some(PathLabel::Sys)) => {
            case.add(Cause::CrossSocket, 1.8, "the link between sockets gives no more", "");
            case.peers(&ranks, 1.3);
            case.seats(&ranks, 0.8);
            case.redirect(&ranks, 0.7, "pairs of different sockets are slow");
        }
        _ if gpus => {
            case.peers(&ranks, 1.5);
            case.links(&pairs, &[], share);
            case.redirect(&ranks, 1.0, "pairs are far below their links");
            case.add(Cause::HostMemory, 0.9, "bytes are staged in host memory", "");
        }
        _ => {
            case.add(
                Cause::HostMemory,
                1.6,
                "copies in host memory go at the rate of the memory: channels without modules, NPS settings",
                "",
            );
            case.seats(&ranks, 1.0);
            case.add(Cause::Protocol, 0.9, "the mover copies twice", "");
        }
    }
}

/// The look of TCP: high latency and a jagged curve.
fn network(case: &mut Case<'_>, class: u16, ranks: &[usize], share: f64) {
    let measured = case.measured();
    let small = measured.classes[usize::from(class)].usual_small;
    let error = jagged(measured, class);
    // A port with RDMA answers in a few µs; from device memory in some more.
    let slow = small > 25e-6;
    let rdma = ranks.iter().filter_map(|&rank| port(measured, rank)).any(|nic| nic.name.starts_with("mlx5") || nic.interface.is_some());
    let what = |text: String| if rdma { format!("{text}, and there are ports with RDMA") } else { text };
    if error > JAGGED && slow {
        case.add(
            Cause::TcpFallback,
            3.2,
            what(format!(
                "the curve over sizes is jagged (a line misses by {:.0} %), small messages take {:.0} µs",
                100.0 * error,
                small * 1e6
            )),
            "",
        );
    } else if slow {
        // A connection of TCP moves a few GB/s, whatever the port.
        let (usual, share) = (measured.classes[usize::from(class)].usual, share);
        let few = if usual < 5e9 && share < 0.25 { 1.3 } else { 0.0 };
        case.add(Cause::TcpFallback, 1.5 + few, what(format!("small messages take {:.0} µs", small * 1e6)), "");
    } else if small.is_finite() {
        case.add(Cause::TcpFallback, 1.0, "rates far below the ports", format!("small messages take {:.1} µs", small * 1e6));
    } else {
        case.add(Cause::TcpFallback, 1.2, "rates far below the ports", "");
    }
}

pub fn inverted(case: &mut Case<'_>, near: u16, far: u16) {
    let measured = case.measured();
    let (_, ranks) = sample(measured, near);
    case.peers(&ranks, 2.0);
    case.redirect(&ranks, 2.1, "near pairs go up to the processor and back over one uplink");
    case.add(Cause::HostMemory, 1.5, "staged by way of host memory, pairs of one socket share its memory; those of two have twice", "");
    case.add(Cause::SharedUplink, 1.2, "near pairs share an uplink that far ones do not", "");
    if measured.classes.get(usize::from(far)).is_some_and(|class| class.path == PathClass::InterNode) {
        case.add(Cause::Protocol, 1.6, "within a host another mover is used, slower than the network", "");
    }
}

/// True if a good part of a class takes a third of its usual time or less: not all of it is late.
fn split(measured: &Measured, class: u16) -> bool {
    let usual = measured.classes.get(usize::from(class)).map_or(f64::NAN, |class| class.usual_small);
    let (mut quick, mut all) = (0usize, 0usize);
    for pair in of_class(measured, class).filter(|pair| pair.small.is_finite()) {
        all += 1;
        quick += usize::from(pair.small * 3.0 < usual);
    }
    quick * 10 >= all && quick > 0
}

/// True if the ranks that are late with some answer others of the same class at the usual time: then it is the way.
fn way(measured: &Measured, class: u16, ranks: &[usize], ratio: f64) -> bool {
    let Some(what) = measured.classes.get(usize::from(class)) else { return false };
    let of = |rank: u32| ranks.binary_search(&(rank as usize)).is_ok();
    let ends = of_class(measured, class).filter(|pair| pair.small.is_finite() && (of(pair.from) || of(pair.to)));
    let (mut late, mut all) = (0usize, 0usize);
    for pair in ends {
        all += 1;
        late += usize::from(pair.small > what.usual_small * ratio.sqrt());
    }
    all > 0 && (late as f64) < 0.75 * all as f64
}

pub fn high_latency(case: &mut Case<'_>, ranks: &[usize], class: u16, ratio: f64, whole: bool) {
    let measured = case.measured();
    let across = measured.classes.get(usize::from(class)).is_some_and(|class| class.path == PathClass::InterNode);
    let error = jagged(measured, class);
    let some: Vec<usize> = if ranks.is_empty() { sample(measured, class).1 } else { ranks.iter().take(64).copied().collect() };
    if across {
        let split = whole && split(measured, class);
        let way = split || way(measured, class, ranks, ratio);
        let tenfold = if ratio >= 5.0 && whole { 0.6 } else { 0.0 };
        let jag = if error > JAGGED { 0.6 } else { 0.0 };
        let against = match (split, way) {
            (true, _) => "some hosts answer each other at once",
            (false, true) if !whole => "the same ranks answer others at once",
            _ => "",
        };
        case.add(Cause::TcpFallback, 1.8 + tenfold + jag, format!("small messages take {ratio:.1} × as long"), against);
        let because = if against.is_empty() {
            "distance costs latency, not rate"
        } else {
            "distance costs latency, not rate; some partners answer at once"
        };
        let weight = match (way, whole) {
            (true, _) => 2.8,
            (false, true) => 1.7,
            (false, false) => 0.9,
        };
        case.add(Cause::LongDistance, weight, because, "");
        case.redirect(&some, 1.5, "a detour by the processor and the IOMMU's translation cost latency");
    } else {
        case.redirect(&some, 1.4, "a detour by the processor and the IOMMU's translation cost latency");
        case.peers(&some, 0.7);
    }
    case.seats(&some, if whole { 0.9 } else { 1.8 });
    case.add(Cause::PowerSaving, if whole { 0.6 } else { 1.0 }, "a processor or link that wakes up costs latency", "");
    case.add(Cause::Interference, if whole { 0.3 } else { 1.1 }, "something else may run on the cores of these ranks", "");
    if let Some(value) = variable(measured, "UCX_TLS").filter(|value| value.contains("tcp") && !value.contains("rc")) {
        case.add(Cause::TcpFallback, 3.5, format!("UCX_TLS={value}"), "");
    }
}

pub fn above_nominal(case: &mut Case<'_>, from: usize, to: usize, ratio: f64) {
    let measured = case.measured();
    let rails = |rank: usize| {
        measured
            .router
            .end(rank)
            .map_or(0, |(host, _)| measured.topology.hardware[host].nics.iter().filter(|nic| nic.pci.is_some() && nic.up()).count())
    };
    if inside(measured, from, to) {
        case.add(Cause::EmulatedBridge, 1.6, "the hardware says less than it is: links at rest, bridges made up by a hypervisor", "");
        case.add(Cause::Cache, 1.4, "small messages may stay in a cache", "");
        case.add(Cause::SeveralRails, 0.9, "bytes may go over several links at once", "");
    } else {
        let (a, b) = (rails(from), rails(to));
        let against = if a.min(b) == 1 { "each host has one port" } else { "" };
        let because = format!("{ratio:.1} × one port: a transfer may be striped over {} ports of these hosts", a.min(b).max(2));
        case.add(Cause::SeveralRails, 2.6, because, against);
        case.add(Cause::WrongPort, 0.6, "another, faster port may be used", "");
    }
    if let Some(value) = variable(measured, "UCX_MAX_RNDV_RAILS").filter(|value| *value != "1") {
        case.add(Cause::SeveralRails, 3.2, format!("UCX_MAX_RNDV_RAILS={value}"), "");
    }
    case.add(Cause::Clock, 1.2, "the clock may be wrong, or the time of completion", "");
    let widest =
        measured.router.route(&measured.topology, from, to).hops.iter().filter_map(|hop| hop.trained).map(Lanes::rate).fold(0.0, f64::max);
    if step(1.0 / ratio).is_some() && widest > 0.0 {
        case.add(Cause::EmulatedBridge, 1.8, format!("{ratio:.0} × what the links say: they may have been at rest"), "");
    }
}
