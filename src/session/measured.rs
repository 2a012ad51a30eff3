//! A model's samples as the rules of `diagnose` look at them.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;

use super::{Conflict, GroupSize, Model, SizeCell, curves, executed};
use crate::diagnose::{AtSize, Measured, PairClass, PairSeen, Pairs, Provenance};
use crate::fit::identify::Together;
use crate::fit::{Fit, Interval, Key, Kind, Line, Point, median, median_interval};
use crate::sample::{Pattern, Status};
use crate::sweep::{Cell, Group};
use crate::topology::{Efficiency, Level, PathClass, PathLabel, Router, Units, path_of};

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// All that rules need, in about a second for a million pairs.
pub fn measured(model: &Model, efficiency: &Efficiency) -> Measured {
    let topology = model.header.topology.clone();
    let units = Units::of(&topology);
    let router = Router::new(&topology, efficiency);
    let node_of = topology.node_of();
    let bytes = common_size(model);
    let small_bytes = model.cells.sizes().first().copied().unwrap_or(bytes);
    let mut classes = Classes::default();
    let mut of = |pattern: Pattern| {
        let mut known: Vec<Known<'_>> = Vec::new();
        for (cell, sizes) in model.cells.iter().filter(|(cell, _)| cell.pattern == pattern) {
            let class = classes.number(ClassKey::of(&units, &router, &node_of, cell));
            known.push(Known { from: cell.from as u32, to: cell.to as u32, class, sizes });
        }
        pairs(topology.world(), pattern, known, &router, (bytes, small_bytes))
    };
    let (peer, duplex, local) = (of(Pattern::Peer), of(Pattern::Duplex), of(Pattern::Local));
    let groups = model.groups.iter().flat_map(|(group, sizes)| sizes.iter().filter_map(|size| together(group, size)));
    let classes = classes.told(peer.iter().chain(local.iter()));
    Measured {
        units,
        efficiency: *efficiency,
        router,
        provenance: provenance(model),
        bytes,
        small_bytes,
        sizes: model.cells.sizes().to_vec(),
        classes,
        peer,
        duplex,
        local,
        together: groups.chain(model.conflicts.iter().map(slowed)).collect(),
        lost: model.lost.iter().map(|(&rank, why)| (rank, why.clone())).collect(),
        tests: model.tests.clone(),
        executed: executed::executed(model),
        gpus: model.gpus.values().cloned().collect(),
        topology,
    }
}

/// A pair to be looked at.
struct Known<'a> {
    from: u32,
    to: u32,
    class: u16,
    sizes: &'a [SizeCell],
}

/// Pairs of a pattern, on all cores; every one is written to its place, since a thousand ranks have a million.
fn pairs(world: usize, pattern: Pattern, mut known: Vec<Known<'_>>, router: &Router, sizes: (u64, u64)) -> Pairs {
    known.sort_unstable_by_key(|pair| (pair.from, pair.to));
    let mut seen = vec![PairSeen::NONE; known.len()];
    let mut at_sizes: Vec<AtSize> = Vec::new();
    let mut starts = vec![0];
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let part = known.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts = known.chunks(part).zip(seen.chunks_mut(part)).map(|(known, seen)| {
            scope.spawn(move || {
                let mut all: Vec<AtSize> = Vec::with_capacity(known.len());
                let mut ends = Vec::with_capacity(known.len());
                for (one, seen) in known.iter().zip(seen) {
                    all.extend(one.sizes.iter().filter(|size| size.count > 0).map(at_size));
                    ends.push(all.len());
                    *seen = pair(pattern, one, router, sizes);
                }
                (all, ends)
            })
        });
        let handles: Vec<_> = parts.collect();
        for handle in handles {
            let (mut all, ends) = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let before = at_sizes.len();
            starts.extend(ends.into_iter().map(|end| before + end));
            at_sizes.append(&mut all);
        }
    });
    Pairs::in_order(world, seen, at_sizes, starts)
}

/// The size that most pairs have; of those the largest.
fn common_size(model: &Model) -> u64 {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for (cell, sizes) in model.cells.iter() {
        for size in sizes.iter().filter(|size| size.count > 0 && !cell.pattern.is_own()) {
            *counts.entry(size.bytes).or_default() += 1;
        }
    }
    let most = counts.values().copied().max().unwrap_or(0);
    // A few that did not come through do not make a size a lesser one.
    let common = counts.iter().rev().find(|&(_, &count)| count * 10 >= most * 9).map(|(&bytes, _)| bytes);
    common.or_else(|| model.cells.sizes().last().copied()).unwrap_or(0)
}

fn provenance(model: &Model) -> Provenance {
    let settings = model.sweep.as_ref().map_or(&model.header.settings, |sweep| &sweep.settings);
    let named = |map: &BTreeMap<String, String>| map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Provenance {
        engine: model.header.engine,
        mover: settings.mover,
        memory: settings.memory,
        window: settings.window,
        group: model.header.group.clone(),
        software: named(&model.header.software),
        environment: named(&model.header.environment),
    }
}

/// What makes pairs alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey {
    path: PathClass,
    label: Option<PathLabel>,
    same_socket: Option<bool>,
}

impl ClassKey {
    fn of(units: &Units, router: &Router, node_of: &[usize], Cell { from, to, .. }: Cell) -> Self {
        let path = path_of(node_of, from, to);
        let inside = path == PathClass::IntraNode;
        let known = inside && units.unit(Level::Socket, from).is_some() && units.unit(Level::Socket, to).is_some();
        let same_socket = known.then(|| units.together(Level::Socket, from, to));
        Self { path, label: router.label(from, to), same_socket }
    }
}

#[derive(Debug, Default)]
struct Classes(Vec<ClassKey>);

impl Classes {
    fn number(&mut self, key: ClassKey) -> u16 {
        let at = self.0.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn told<'a>(self, pairs: impl Iterator<Item = &'a PairSeen>) -> Vec<PairClass> {
        let mut rates: Vec<(Vec<f64>, Vec<f64>)> = vec![(Vec::new(), Vec::new()); self.0.len()];
        for pair in pairs {
            let (large, small) = &mut rates[usize::from(pair.class)];
            large.extend(Some(pair.rate).filter(|rate| rate.is_finite()));
            small.extend(Some(pair.small).filter(|time| time.is_finite()));
        }
        let told = |(ClassKey { path, label, same_socket }, (mut large, mut small)): (ClassKey, (Vec<f64>, Vec<f64>))| PairClass {
            path,
            label,
            same_socket,
            usual: median(&mut large),
            usual_small: median(&mut small),
            count: large.len(),
        };
        self.0.into_iter().zip(rates).map(told).collect()
    }
}

fn pair(pattern: Pattern, &Known { from, to, class, sizes }: &Known<'_>, router: &Router, (bytes, small_bytes): (u64, u64)) -> PairSeen {
    let cell = Cell { pattern, from: from as usize, to: to as usize };
    let at = |wanted: u64| sizes.iter().find(|size| size.bytes == wanted);
    let size = at(bytes);
    let times = size.map(SizeCell::times).unwrap_or_default();
    let interval = median_interval(&times, CONFIDENCE);
    let scale = bytes as f64;
    PairSeen {
        from,
        to,
        class,
        status: status(sizes, size),
        n: times.len() as u32,
        rate: size.filter(|size| size.count > 0).map_or(f64::NAN, SizeCell::bandwidth),
        interval: interval.map(|seconds| Interval { low: scale / seconds.high, high: scale / seconds.low }),
        expected: router.expected(cell.from, cell.to).unwrap_or(f64::NAN),
        small: at(small_bytes).filter(|size| size.count > 0).map_or(f64::NAN, |size| size.median),
        fit_error: fit_error(cell, sizes) as f32,
        scatter: scatter(&times) as f32,
        drift: drift(&times) as f32,
    }
}

/// Of the common size. What was waived there because smaller messages did not come through has failed as they did.
fn status(sizes: &[SizeCell], size: Option<&SizeCell>) -> Status {
    let own = size.map_or(Status::Waived, |size| size.status);
    let failed = |size: &&SizeCell| size.count == 0 && matches!(size.status, Status::Timeout | Status::Corrupt);
    if own == Status::Waived { sizes.iter().find(failed).map_or(own, |size| size.status) } else { own }
}

/// Largest relative error of the line through the sizes' medians. Where it is small nobody asks for segments, of which there are
/// a million to find.
fn fit_error(cell: Cell, sizes: &[SizeCell]) -> f64 {
    const GOOD: f64 = 0.1;
    let points: Vec<Point> = sizes
        .iter()
        .filter(|size| size.count > 0)
        .map(|size| Point { bytes: size.bytes, seconds: size.median, n: size.count, variance: None })
        .collect();
    let Some(line) = Some(points).filter(|points| points.len() > 2).and_then(|points| Line::fit(&points).ok()) else { return f64::NAN };
    if line.max_rel_error < GOOD {
        return line.max_rel_error;
    }
    let key = Key::Pair { from: cell.from, to: cell.to };
    let fit = Fit::of(Kind::Peer, key, None, &mut curves::points(&mut curves::of_cell(sizes)), None);
    fit.ok().filter(|fit| fit.segments.is_empty()).map_or(f64::NAN, |fit| fit.line.max_rel_error)
}

fn at_size(size: &SizeCell) -> AtSize {
    let times = size.times();
    AtSize { bytes: size.bytes, seconds: size.median, n: times.len() as u32, scatter: scatter(&times) as f32 }
}

/// Half of the middle half over the median.
fn scatter(times: &[f64]) -> f64 {
    if times.len() < 4 {
        return f64::NAN;
    }
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    (sorted[n * 3 / 4] - sorted[n / 4]) / 2.0 / median(&mut sorted)
}

/// The later half's median over the earlier half's; repeats are in the order in which they came.
fn drift(times: &[f64]) -> f64 {
    if times.len() < 6 {
        return f64::NAN;
    }
    let (early, late) = times.split_at(times.len() / 2);
    median(&mut late.to_vec()) / median(&mut early.to_vec())
}

fn together(group: &Group, size: &GroupSize) -> Option<Together> {
    let flows = size.flows();
    let mut all = size.completions();
    if all.is_empty() {
        return None;
    }
    let own = flows.iter().map(|&(from, to)| median(&mut size.times(from, to))).collect();
    let interval = median_interval(&all, CONFIDENCE);
    let n = all.len();
    let (pattern, root, bytes, alone) = (group.pattern, group.root, size.bytes, Vec::new());
    Some(Together { pattern, root, flows, bytes, seconds: median(&mut all), interval, own, alone, n })
}

/// Probes of a round that slowed each other. Each had as many messages, one after another: when the slowest is through all are.
fn slowed(conflict: &Conflict) -> Together {
    let Conflict { pattern, bytes, repeats, ref flows, ref together, ref alone } = *conflict;
    let seconds = together.iter().copied().fold(0.0, f64::max);
    Together {
        pattern,
        root: None,
        flows: flows.clone(),
        bytes,
        seconds,
        interval: None,
        own: together.clone(),
        alone: alone.clone(),
        n: repeats as usize,
    }
}
