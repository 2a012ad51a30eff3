//! What passes each known resource at most.
//!
//! Every measurement says of each resource that it carried at least so much. Where flows were slowed, one of the resources that
//! several of them passed was full: one that never carried more. Of several such the one that most flows passed is taken, then
//! the finest, then the sending end. Roots of fans that serve in turns are told by their concurrency.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Evidence, Ran};
use super::fan::Fan;
use super::fitted::Point;
use super::resources::{Carried, Passed, Resource};
use super::stands::Alike;
use super::types::{Capacity, Explanation, Hidden, Owner, Side};
use super::undecided::{Family, rivals};
use super::words;
use crate::fit::{Interval, median, median_interval};
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit};

/// Together slower than the slowest alone by more than this: something bound.
const SLOWED: f64 = 1.08;
/// A resource that carries at least this share of the most is full.
const FULL: f64 = 0.95;
/// Units within this of their median have the same capacity.
const SAME: f64 = 0.05;
/// A root whose fan comes out within this of serving in turns does serve in turns.
const EXPLAINED: f64 = 0.1;
/// A capacity may come out this much below the fastest single flow by noise alone.
const NOISE: f64 = 0.03;

/// What is known of a resource before it is told.
#[derive(Debug, Default)]
struct Found {
    /// rates at which it bound, with what was known of each
    bound: Vec<(f64, Option<Interval>)>,
    /// concurrency of its fans, by width
    turns: Vec<(usize, f64)>,
    /// a fixed capacity explains them clearly better
    fixed: bool,
}

/// How the roots of fans share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Roots {
    Turns,
    Fixed,
    /// either would do
    Open,
    Free,
}

fn roots(alike: &Alike) -> Roots {
    let kind = |by: Explanation| match Family::of(by) {
        Family::Nothing => Roots::Free,
        Family::InTurns | Family::Between => Roots::Turns,
        // What depends on the number of peers is no fixed capacity.
        _ if by == Explanation::BusiestByWidth => Roots::Open,
        _ => Roots::Fixed,
    };
    let Some(best) = alike.standings.first().map(|standing| kind(standing.stand.explanation)) else { return Roots::Free };
    let other = |kind: Roots| kind != best && kind != Roots::Free;
    if best != Roots::Free
        && rivals(alike).iter().any(|rival| other(kind(rival.stand.explanation)) && clearly_open(alike, rival.stand.score))
    {
        Roots::Open
    } else {
        best
    }
}

/// Not told apart by everything there is; by the fans of known peers alone does not do here.
fn clearly_open(alike: &Alike, score: f64) -> bool {
    alike.standings.first().is_some_and(|best| score <= Alike::margin(alike.points.len()) * best.stand.score)
}

/// The resource that the root of a fan is, if all its messages go one kind of way.
fn root_of(fan: &Fan) -> Option<Resource> {
    let unit = Unit { level: Level::Rank, number: fan.root };
    let side = if fan.pattern == Pattern::FanOut { Side::Out } else { Side::In };
    fan.path.map(|path| Resource { unit, side, path: Some(path) })
}

pub(super) fn capacities(
    evidence: &Evidence<'_>,
    ran: &[Ran<'_>],
    passed: &[Vec<Passed>],
    carried: &Carried,
    alike: &[Alike],
    hidden: (&[Hidden], &BTreeSet<usize>),
) -> Vec<Capacity> {
    let mut found: BTreeMap<Resource, Found> = BTreeMap::new();
    // Fans that their root explains by serving in turns, by root and peers.
    let mut explained: BTreeSet<(Pattern, usize, Vec<usize>)> = BTreeSet::new();
    for alike in alike {
        let roots = roots(alike);
        for (fan, point) in alike.known().filter(|(fan, _)| fan.width() > 1) {
            let Some(resource) = root_of(fan).filter(|_| roots != Roots::Free) else { continue };
            let found = found.entry(resource).or_default();
            found.turns.push((fan.width(), fan.concurrency(point.aggregate)));
            found.fixed = roots == Roots::Fixed;
            if roots == Roots::Turns && in_turns(alike, point) {
                explained.insert((fan.pattern, fan.root, fan.peers.clone()));
            }
        }
    }
    for (number, (ran, passed)) in ran.iter().zip(passed).enumerate() {
        let told = ran.told;
        if told.pattern == Pattern::Duplex || hidden.1.contains(&number) {
            continue;
        }
        if let Some(root) = told.root {
            let mut peers: Vec<usize> = told.flows.iter().map(|&(from, to)| if from == root { to } else { from }).collect();
            peers.sort_unstable();
            if explained.contains(&(told.pattern, root, peers)) {
                continue;
            }
        }
        let alone = ran.alone.iter().flatten().map(|alone| alone.bytes).fold(0.0, f64::max);
        if alone == 0.0 || ran.seconds(0..told.flows.len()) <= SLOWED * alone {
            continue;
        }
        let full = |one: &&Passed| one.demand > SLOWED * one.rate && one.rate >= FULL * carried.most(&one.resource);
        // Of those with equally many flows the first, which is the finest.
        let bound = passed.iter().filter(full).reduce(|best, one| if one.flows.len() > best.flows.len() { one } else { best });
        if let Some(one) = bound {
            let moved = one.rate * told.seconds;
            let interval = told.interval.map(|seconds| Interval { low: moved / seconds.high, high: moved / seconds.low });
            found.entry(one.resource).or_default().bound.push((one.rate, interval));
        }
    }
    let mut all: Vec<(Resource, Capacity)> = Vec::new();
    for resource in carried.resources() {
        let found = found.remove(&resource).unwrap_or_default();
        all.push((resource, told(evidence, resource, &found, carried)));
    }
    let mut capacities: Vec<Capacity> = hidden.0.iter().map(link).collect();
    capacities.extend(alike_together(all));
    capacities
}

/// True if serving in turns explains a fan.
fn in_turns(alike: &Alike, point: &Point) -> bool {
    let turns = [Explanation::TimeSharedBy, Explanation::TimeShared, Explanation::Mixture];
    let errors =
        turns.iter().filter_map(|&by| alike.standing(by)).map(|standing| point.error(standing.stand.explanation, &standing.parameters));
    errors.fold(f64::INFINITY, |least, error| least.min(error.abs())) <= EXPLAINED.max(point.half)
}

fn told(evidence: &Evidence<'_>, resource: Resource, found: &Found, carried: &Carried) -> Capacity {
    let Resource { unit, side, path } = resource;
    let single = carried.single(&resource);
    let mut rates: Vec<f64> = found.bound.iter().map(|bound| bound.0).collect();
    let interval = median_interval(&rates, 0.95).or_else(|| {
        let own = found.bound.iter().filter_map(|bound| bound.1);
        own.reduce(|hull, own| Interval { low: hull.low.min(own.low), high: hull.high.max(own.high) })
    });
    // A fixed capacity below the fastest single flow through it is none.
    let rate = Some(median(&mut rates)).filter(|rate| *rate >= single * (1.0 - NOISE)).map(|rate| rate.max(single));
    let mut by_width: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for &(width, concurrency) in &found.turns {
        by_width.entry(width).or_default().push(concurrency);
    }
    let concurrency = (!found.turns.is_empty() && (!found.fixed || rate.is_none()))
        .then(|| median(&mut found.turns.iter().map(|turn| turn.1).collect::<Vec<_>>()));
    Capacity {
        owner: Owner::Unit { unit, side },
        name: words::resource(evidence.units, unit, side, path),
        path,
        rate,
        interval: interval.filter(|_| rate.is_some()),
        concurrency,
        by_width: by_width.into_iter().map(|(width, mut all)| (width, median(&mut all))).collect(),
        at_least: Some(carried.most(&resource)).filter(|_| rate.is_none()),
        n: if rate.is_some() { found.bound.len() } else { found.turns.len() },
    }
}

fn link(hidden: &Hidden) -> Capacity {
    let ranks = |end: fn(&(usize, usize)) -> usize| {
        let mut ranks: Vec<usize> = hidden.flows.iter().map(end).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    let owner = if hidden.from_hosts.is_empty() {
        Owner::Between { from: ranks(|flow| flow.0), to: ranks(|flow| flow.1) }
    } else {
        Owner::Between { from: hidden.from_hosts.clone(), to: hidden.to_hosts.clone() }
    };
    Capacity {
        owner,
        name: hidden.name.clone(),
        path: Some(if hidden.from_hosts.is_empty() { PathClass::IntraNode } else { PathClass::InterNode }),
        rate: Some(hidden.capacity),
        interval: hidden.interval,
        concurrency: None,
        by_width: Vec::new(),
        at_least: None,
        n: hidden.n,
    }
}

/// Units of one level that are alike are one entry; those that are not stand by themselves.
fn alike_together(all: Vec<(Resource, Capacity)>) -> Vec<Capacity> {
    let mut kinds: BTreeMap<(Level, Side, Option<PathClass>), Vec<Capacity>> = BTreeMap::new();
    for (resource, capacity) in all {
        kinds.entry((resource.unit.level, resource.side, resource.path)).or_default().push(capacity);
    }
    let mut told = Vec::new();
    for ((level, side, path), units) in kinds {
        let value = |pick: fn(&Capacity) -> Option<f64>| {
            let mut values: Vec<f64> = units.iter().filter_map(pick).collect();
            (values.len() * 2 > units.len()).then(|| median(&mut values))
        };
        let (rate, concurrency) = (value(|one| one.rate), value(|one| one.concurrency));
        let near = |own: Option<f64>, usual: Option<f64>| match (own, usual) {
            (Some(own), Some(usual)) => (own / usual - 1.0).abs() <= SAME,
            (None, None) => true,
            _ => false,
        };
        let same = |one: &Capacity| near(one.rate, rate) && near(one.concurrency, concurrency);
        let usual = units.iter().filter(|one| same(one)).count();
        if units.len() < 2 || usual * 10 < units.len() * 9 {
            told.extend(units);
            continue;
        }
        let (alike, others): (Vec<Capacity>, Vec<Capacity>) = units.into_iter().partition(same);
        told.push(every(level, side, path, &alike));
        told.extend(others);
    }
    told
}

fn every(level: Level, side: Side, path: Option<PathClass>, units: &[Capacity]) -> Capacity {
    let middle = |pick: fn(&Capacity) -> Option<f64>| {
        let mut values: Vec<f64> = units.iter().filter_map(pick).collect();
        (!values.is_empty()).then(|| median(&mut values))
    };
    let rates: Vec<f64> = units.iter().filter_map(|one| one.rate).collect();
    let hull = || {
        let own = units.iter().filter_map(|one| one.interval);
        own.reduce(|hull, own| Interval { low: hull.low.min(own.low), high: hull.high.max(own.high) })
    };
    let mut by_width: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for &(width, concurrency) in units.iter().flat_map(|one| &one.by_width) {
        by_width.entry(width).or_default().push(concurrency);
    }
    Capacity {
        owner: Owner::Every { level, side },
        name: words::every(level, side, path),
        path,
        rate: middle(|one| one.rate),
        interval: median_interval(&rates, 0.95).or_else(hull),
        concurrency: middle(|one| one.concurrency),
        by_width: by_width.into_iter().map(|(width, mut all)| (width, median(&mut all))).collect(),
        at_least: units.iter().filter_map(|one| one.at_least).reduce(f64::min),
        n: units.iter().map(|one| one.n).sum(),
    }
}
