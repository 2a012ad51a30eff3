//! Flows that slow each other although nothing known that they share explains it: a hypothetical shared link.
//!
//! A known resource explains the slowing of a flow if another flow of the measurement passes it, too, and
//! - it is a side of a rank, which serves in turns or has a limit of its own, or
//! - it is coarser, and did not carry clearly more in some other measurement: then it was not full here, or
//! - the two go opposite ways at one end, and the slowing is no more than halving.

use std::collections::{BTreeSet, HashSet};

use super::evidence::{Evidence, Ran};
use super::resources::{Carried, Passed};
use super::types::{Hidden, Together};
use super::words;
use crate::fit::{Interval, median, median_interval};
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit};

/// Slower than alone by more than this is slowed; less is noise of few repeats.
const SLOWED: f64 = 1.1;
/// Not slowed at all.
const FREE: f64 = 1.05;
/// Repeats below which one late message looks like sharing.
const REPEATS: usize = 3;
/// A resource that carries less than this share of what it carried elsewhere is not full.
const FULL: f64 = 0.85;
/// Two that go opposite ways at one end slow each other by half at most, give or take noise.
const HALVED: f64 = 2.1;
/// What passed a link when it was full comes out within this share of the most.
const NEAR: f64 = 0.9;

/// Hosts, or ranks of one host.
type Ends = BTreeSet<usize>;

/// What a measurement says that a link carries.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// until the last of its flows was through, bytes per second
    rate: f64,
    interval: Option<Interval>,
    /// each flow alone could have filled it, so that it was full to the end
    filled: bool,
    /// all had one start; probes of the planner begin and end each by itself, and their rates scatter both ways
    one_start: bool,
}

/// Flows that were seen to share something, one way.
#[derive(Debug, Clone)]
struct Seen {
    /// the host that all are within
    within: Option<Unit>,
    from: Ends,
    to: Ends,
    flows: BTreeSet<(usize, usize)>,
    /// ran beside these and were not slowed, as ends
    free: BTreeSet<(usize, usize)>,
    rates: Vec<Load>,
    /// measurements, by number
    ran: BTreeSet<usize>,
}

/// Slowed flows of one measurement that nothing known explains, by number.
struct Open {
    ran: usize,
    flows: Vec<usize>,
}

/// Hidden links, and which measurements each was seen in.
pub(super) fn hidden(
    evidence: &Evidence<'_>,
    ran: &[Ran<'_>],
    passed: &[Vec<Passed>],
    carried: &Carried,
) -> (Vec<Hidden>, BTreeSet<usize>) {
    let open = ran.iter().zip(passed).enumerate().filter_map(|(number, (ran, passed))| {
        let flows = unexplained(evidence, ran, passed, carried);
        (!flows.is_empty()).then_some(Open { ran: number, flows })
    });
    let mut open: Vec<Open> = open.collect();
    // What was tried two at a time and small sets are clear; they tell what larger sets are made of.
    open.sort_by_key(|open| (ran[open.ran].told.pattern != Pattern::Peer, open.flows.len(), open.ran));
    let mut links: Vec<Seen> = Vec::new();
    for Open { ran: number, flows } in open {
        let ran = &ran[number];
        // What was tried two at a time shares one thing, whatever was known before.
        let known = if ran.told.pattern == Pattern::Peer { &[][..] } else { &links[..] };
        for (mut link, own) in split(evidence, ran, &flows, known) {
            link.take(evidence, number, ran, &own);
            links = merged(links, link);
        }
    }
    links.sort_by(|a, b| (a.within, &a.from, &a.to).cmp(&(b.within, &b.from, &b.to)));
    let explained = links.iter().flat_map(|seen| &seen.ran).copied().collect();
    (links.iter().map(|seen| told(evidence, seen)).collect(), explained)
}

impl Seen {
    fn new(within: Option<Unit>) -> Self {
        Self {
            within,
            from: Ends::new(),
            to: Ends::new(),
            flows: BTreeSet::new(),
            free: BTreeSet::new(),
            rates: Vec::new(),
            ran: BTreeSet::new(),
        }
    }

    /// True if a flow goes from one of its ends to the other.
    fn holds(&self, evidence: &Evidence<'_>, flow: (usize, usize)) -> bool {
        ends_of(evidence, self.within, flow).is_some_and(|(from, to)| self.from.contains(&from) && self.to.contains(&to))
    }

    /// Take in what these flows of a measurement, by number, had of the link.
    fn take(&mut self, evidence: &Evidence<'_>, number: usize, ran: &Ran<'_>, own: &[usize]) {
        if own.is_empty() {
            return;
        }
        self.ran.insert(number);
        let flows = &ran.told.flows;
        self.flows.extend(own.iter().map(|&at| flows[at]));
        if own.len() > 1 {
            let bytes = ran.told.bytes as f64;
            let rate = bytes * own.len() as f64 / ran.seconds(own.iter().copied());
            let moved = rate * ran.told.seconds;
            let interval = ran.told.interval.map(|seconds| Interval { low: moved / seconds.high, high: moved / seconds.low });
            let filled = alone_least(ran, own) >= NEAR * rate;
            self.rates.push(Load { rate, interval, filled, one_start: ran.told.pattern != Pattern::Peer });
        }
        for (&flow, slowing) in flows.iter().zip(slowing(ran)) {
            if slowing.is_some_and(|slowing| slowing <= FREE) {
                self.free.extend(ends_of(evidence, self.within, flow));
            }
        }
    }
}

/// Seconds beyond latency over those alone, of each flow; `None` where either is not known.
fn slowing(ran: &Ran<'_>) -> Vec<Option<f64>> {
    let own = |at: usize| ran.told.own.get(at).copied().filter(|seconds| *seconds > 0.0);
    let one = |at: usize| own(at).zip(ran.alone[at]).map(|(own, alone)| (own - alone.latency) / alone.bytes);
    (0..ran.told.flows.len()).map(one).collect()
}

/// Flows of a measurement that were slowed by more than what is known to be shared, by number; empty if all is explained.
fn unexplained(evidence: &Evidence<'_>, ran: &Ran<'_>, passed: &[Passed], carried: &Carried) -> Vec<usize> {
    let Together { pattern, flows, n, .. } = ran.told;
    // The flows of a fan share their root, whatever else they share.
    if !matches!(pattern, Pattern::Peer | Pattern::Custom | Pattern::Relay) || *n < REPEATS || flows.len() < 2 {
        return Vec::new();
    }
    let slowing = slowing(ran);
    let slowed = |at: usize| slowing[at].is_some_and(|slowing| slowing > SLOWED);
    if (0..flows.len()).filter(|&at| slowed(at)).count() < 2 {
        return Vec::new();
    }
    let mut why = vec![Why::Unknown; flows.len()];
    for one in passed {
        let rank = one.resource.unit.level == Level::Rank;
        // Slower than a single one of them is a collapse of what they share, not a lack of it.
        let fastest = one.flows.iter().filter_map(|&at| ran.alone[at]).map(|alone| ran.told.bytes as f64 / alone.bytes).fold(0.0, f64::max);
        if rank || one.rate < FULL * fastest || one.rate >= FULL * carried.most(&one.resource) {
            let known = if rank { Why::Rank } else { Why::Unit };
            one.flows.iter().for_each(|&at| why[at] = why[at].max(known));
        }
    }
    let (sends, receives) = ends(evidence, flows);
    for (at, &(from, to)) in flows.iter().enumerate() {
        let host = |rank| evidence.units.unit(Level::Host, rank);
        let across = evidence.path(from, to) == PathClass::InterNode;
        let rank = receives.contains(&End::Rank(from)) || sends.contains(&End::Rank(to));
        let hosts = across
            && [(from, &receives), (to, &sends)].iter().any(|(rank, ends)| host(*rank).is_some_and(|unit| ends.contains(&End::Host(unit))));
        if (rank || hosts) && slowing[at].is_some_and(|slowing| slowing <= HALVED) {
            why[at] = why[at].max(Why::Rank);
        }
    }
    if !(0..flows.len()).any(|at| slowed(at) && why[at] == Why::Unknown) {
        return Vec::new();
    }
    (0..flows.len()).filter(|&at| slowed(at) && why[at] < Why::Rank).collect()
}

/// The rate alone of the slowest of these, bytes per second.
fn alone_least(ran: &Ran<'_>, flows: &[usize]) -> f64 {
    let rates = flows.iter().filter_map(|&at| ran.alone[at]).map(|alone| ran.told.bytes as f64 / alone.bytes);
    rates.fold(f64::INFINITY, f64::min)
}

/// Why a flow is slow, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Unknown,
    /// a unit that it shares may be full
    Unit,
    /// an end of it serves others, too
    Rank,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum End {
    Rank(usize),
    Host(Unit),
}

/// Who sends and who receives.
fn ends(evidence: &Evidence<'_>, flows: &[(usize, usize)]) -> (HashSet<End>, HashSet<End>) {
    let mut both = (HashSet::new(), HashSet::new());
    for &(from, to) in flows.iter().filter(|(from, to)| from != to) {
        both.0.insert(End::Rank(from));
        both.1.insert(End::Rank(to));
        if evidence.path(from, to) == PathClass::InterNode {
            both.0.extend(evidence.units.unit(Level::Host, from).map(End::Host));
            both.1.extend(evidence.units.unit(Level::Host, to).map(End::Host));
        }
    }
    both
}

/// The ends of a flow: hosts, or ranks where all is within one.
fn ends_of(evidence: &Evidence<'_>, within: Option<Unit>, (from, to): (usize, usize)) -> Option<(usize, usize)> {
    let host = |rank| evidence.units.unit(Level::Host, rank);
    match within {
        None if evidence.path(from, to) == PathClass::InterNode => Some((host(from)?.number, host(to)?.number)),
        Some(unit) if evidence.path(from, to) == PathClass::IntraNode && host(from) == Some(unit) => Some((from, to)),
        _ => None,
    }
}

/// These flows by where they go: over a link that is known already, between hosts or within one, and so that nobody is at both
/// ends. Each with its flows' numbers.
fn split(evidence: &Evidence<'_>, ran: &Ran<'_>, chosen: &[usize], links: &[Seen]) -> Vec<(Seen, Vec<usize>)> {
    // Ends that are taken, those of the link included.
    let mut groups: Vec<(Option<usize>, Seen, Vec<usize>)> = Vec::new();
    let known = |at: usize| links.iter().position(|link| link.holds(evidence, ran.told.flows[at]));
    let (held, others): (Vec<usize>, Vec<usize>) = chosen.iter().partition(|&&at| known(at).is_some());
    for at in held.into_iter().chain(others) {
        let flow = ran.told.flows[at];
        let within = match evidence.path(flow.0, flow.1) {
            PathClass::IntraNode => evidence.units.unit(Level::Host, flow.0),
            PathClass::InterNode => None,
            _ => continue,
        };
        let Some((from, to)) = ends_of(evidence, within, flow) else { continue };
        let link = known(at);
        let fits = |(own, seen, _): &(Option<usize>, Seen, Vec<usize>)| match link {
            Some(_) => *own == link,
            None => seen.within == within && !seen.to.contains(&from) && !seen.from.contains(&to),
        };
        let place = groups.iter().position(fits).unwrap_or_else(|| {
            let mut seen = Seen::new(within);
            if let Some(link) = link.map(|link| &links[link]) {
                (seen.from, seen.to) = (link.from.clone(), link.to.clone());
            }
            groups.push((link, seen, Vec::new()));
            groups.len() - 1
        });
        let (_, seen, own) = &mut groups[place];
        seen.from.insert(from);
        seen.to.insert(to);
        own.push(at);
    }
    let (single, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, _, own)| own.len() == 1);
    let single: Vec<usize> = single.into_iter().flat_map(|(_, _, own)| own).collect();
    let mut all: Vec<_> = groups.into_iter().map(|(_, seen, own)| (seen, own)).collect();
    // Alone on a link of its own, and slowed all the same: by others of the measurement that are left over.
    if single.len() > 1 && !links.is_empty() {
        all.extend(split(evidence, ran, &single, &[]));
    }
    all
}

/// What overlaps at both ends is taken to be one link, unless a flow that would then pass it ran beside its flows unslowed.
fn merged(mut links: Vec<Seen>, mut new: Seen) -> Vec<Seen> {
    while let Some(at) = links.iter().position(|old| one_link(old, &new)) {
        let old = links.swap_remove(at);
        new.from.extend(old.from);
        new.to.extend(old.to);
        new.flows.extend(old.flows);
        new.free.extend(old.free);
        new.rates.extend(old.rates);
        new.ran.extend(old.ran);
    }
    links.push(new);
    links
}

fn one_link(a: &Seen, b: &Seen) -> bool {
    let overlap = a.within == b.within && !a.from.is_disjoint(&b.from) && !a.to.is_disjoint(&b.to);
    let both_ends = |seen: &Seen, other: &Seen| seen.from.is_disjoint(&other.to);
    let passes = |(from, to): &(usize, usize)| (a.from.contains(from) || b.from.contains(from)) && (a.to.contains(to) || b.to.contains(to));
    overlap && both_ends(a, b) && both_ends(b, a) && !a.free.iter().chain(&b.free).any(passes)
}

fn told(evidence: &Evidence<'_>, seen: &Seen) -> Hidden {
    // The best evidence that there is.
    let choose = |one_start: bool, filled: bool| {
        let chosen = seen.rates.iter().filter(move |rate| (!one_start || rate.one_start) && (!filled || rate.filled));
        Some(chosen.copied().collect::<Vec<Load>>()).filter(|chosen| !chosen.is_empty())
    };
    let order = [(true, true), (false, true), (true, false), (false, false)];
    let mut near = order.into_iter().find_map(|(one_start, filled)| choose(one_start, filled)).unwrap_or_default();
    let most = near.iter().map(|rate| rate.rate).fold(0.0, f64::max);
    near.retain(|rate| !rate.one_start || rate.rate >= NEAR * most);
    let mut rates: Vec<f64> = near.iter().map(|rate| rate.rate).collect();
    let interval = median_interval(&rates, 0.95).or_else(|| {
        let own: Vec<Interval> = near.iter().filter_map(|rate| rate.interval).collect();
        let hull = |low: f64, high: f64| Interval { low, high };
        let ends = own.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), own| (low.min(own.low), high.max(own.high)));
        match (own.is_empty(), rates.len()) {
            (false, _) => Some(hull(ends.0, ends.1)),
            (true, 0 | 1) => None,
            (true, _) => Some(hull(rates.iter().copied().fold(f64::INFINITY, f64::min), most)),
        }
    });
    let list = |ends: &Ends| ends.iter().copied().collect::<Vec<_>>();
    let (from, to) = (list(&seen.from), list(&seen.to));
    let hosts = |ends: &Vec<usize>| if seen.within.is_some() { Vec::new() } else { ends.clone() };
    Hidden {
        name: words::between(evidence.units, &from, &to, seen.within),
        from_hosts: hosts(&from),
        to_hosts: hosts(&to),
        flows: seen.flows.iter().copied().collect(),
        capacity: median(&mut rates),
        interval,
        n: seen.ran.len(),
    }
}
