//! Both measurements of one thing -> by how much it changed, and how well that is known.

use std::collections::HashMap;

use crate::diagnose::{AtSize, Measured, PairSeen, Selected};
use crate::fit::identify::Together;
use crate::fit::median;
use crate::sample::{EngineKind, Pattern, Status};

/// Half of the middle half of a normal distribution over its standard deviation.
const HALF_MIDDLE: f64 = 0.6745;
/// Standard deviation of a median over that of a mean, of many normal values: √(π/2).
const OF_MEDIAN: f64 = 1.2533;
/// Half of a 95 % interval in standard deviations.
const HALF_95: f64 = 1.96;
/// Repeats that the usual scatter of a class counts for beside a pair's own.
const PRIOR: f64 = 5.0;
/// What a scatter from quartiles knows of one from squares.
const EFFICIENCY: f64 = 0.37;
/// Of repeats that do not scatter at all, as a table prints them.
const LEAST_VARIANCE: f64 = 1e-12;
/// Standard deviation, relative, that is taken for that of numbers of other tools, which print one of each pair: what their runs differ by.
pub(super) const ASSUMED: f64 = 0.03;
/// Degrees of freedom that the assumption counts for.
const ASSUMED_DOF: f64 = 30.0;
/// Pairs of a class below which their own scatter between the two measurements tells nothing.
const FEWEST_OF_CLASS: usize = 6;

/// By how much one thing changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    /// of a pair; of a fan the root
    pub from: usize,
    /// of a pair; of a fan its index in the later measurement
    pub to: usize,
    pub class: u16,
    /// ln of the later rate over the earlier one
    pub d: f64,
    /// of that
    pub var: f64,
}

/// Things of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    pub items: Vec<Item>,
    /// degrees of freedom of their variances
    pub dof: f64,
}

impl Kind {
    /// Those that are not explained.
    pub fn without(&self, explained: impl Fn(&Item) -> bool) -> Self {
        Self { items: self.items.iter().filter(|item| !explained(item)).copied().collect(), dof: self.dof }
    }

    /// Widen all where things of a class scatter by more than their repeats say: memory, placement and clocks that change from
    /// run to run change them, too.
    fn calibrate(&mut self) {
        let mut classes: HashMap<u16, Vec<f64>> = HashMap::new();
        for item in &self.items {
            classes.entry(item.class).or_default().push(item.d);
        }
        let centers: HashMap<u16, f64> =
            classes.into_iter().filter(|(_, all)| all.len() >= FEWEST_OF_CLASS).map(|(class, mut all)| (class, median(&mut all))).collect();
        let off = |item: &Item| Some((item.d - centers.get(&item.class)?).abs() / item.var.sqrt());
        let mut all: Vec<f64> = self.items.iter().filter_map(off).filter(|z| z.is_finite()).collect();
        let wider = (median(&mut all) / HALF_MIDDLE).max(1.0);
        if wider.is_finite() {
            self.items.iter_mut().for_each(|item| item.var *= wider * wider);
        }
    }
}

/// All that was compared of a pattern.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub rates: Kind,
    pub latencies: Kind,
    /// measured in both, but without a measure of noise
    pub untold: usize,
}

/// A class's usual standard deviation of a repeat, relative, by size.
#[derive(Debug, Default)]
struct Noise {
    usual: HashMap<(u16, u64), f64>,
    dof: f64,
    /// where nothing else tells
    assumed: Option<f64>,
}

impl Noise {
    fn of<'a>(curves: impl Iterator<Item = (u16, &'a [AtSize])>, assumed: bool) -> Self {
        let mut all: HashMap<(u16, u64), Vec<f64>> = HashMap::new();
        let mut dof = 0.0;
        for (class, sizes) in curves {
            for size in sizes.iter().filter(|size| size.scatter.is_finite()) {
                all.entry((class, size.bytes)).or_default().push(f64::from(size.scatter) / HALF_MIDDLE);
                dof += f64::from(size.n.saturating_sub(1)) * EFFICIENCY;
            }
        }
        let dof = if assumed { dof.max(ASSUMED_DOF) } else { dof };
        let usual = all.into_iter().map(|(key, mut own)| (key, median(&mut own))).collect();
        Self { usual, dof, assumed: assumed.then_some(ASSUMED) }
    }

    /// Variance of ln of the median.
    fn variance(&self, class: u16, size: &AtSize) -> Option<f64> {
        let usual = self.usual.get(&(class, size.bytes)).copied().or(self.assumed);
        let own = Some(f64::from(size.scatter) / HALF_MIDDLE).filter(|own| own.is_finite());
        let (usual, own) = (usual.or(own)?, own.or(usual)?);
        let free = f64::from(size.n.saturating_sub(1));
        let squared = (PRIOR * usual * usual + free * own * own) / (PRIOR + free);
        Some(OF_MEDIAN * OF_MEDIAN * squared / f64::from(size.n.max(1)))
    }
}

/// One thing at both times.
struct Both<'a> {
    class: u16,
    old: &'a [AtSize],
    new: &'a [AtSize],
}

/// The noise of both measurements.
struct Noises {
    old: Noise,
    new: Noise,
}

impl Noises {
    fn of(all: &[Both<'_>], [old, new]: [&Measured; 2]) -> Self {
        let imported = |measured: &Measured| measured.provenance.engine == EngineKind::Imported;
        Self {
            old: Noise::of(all.iter().map(|both| (both.class, both.old)), imported(old)),
            new: Noise::of(all.iter().map(|both| (both.class, both.new)), imported(new)),
        }
    }

    fn dof(&self) -> f64 {
        (self.old.dof + self.new.dof).max(2.0)
    }

    /// ln of the time before over that after, with its variance, of each size that both have, with both.
    fn sizes<'a>(&'a self, both: &'a Both<'a>) -> impl Iterator<Item = (&'a AtSize, &'a AtSize, Option<(f64, f64)>)> {
        both.new.iter().filter_map(move |new| {
            let old = both.old.iter().find(|old| old.bytes == new.bytes)?;
            let known = self.old.variance(both.class, old).zip(self.new.variance(both.class, new));
            Some((old, new, known))
        })
    }
}

/// What sizes say together.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// ln of the rates' ratio, free of latency
    d: f64,
    /// of that; NaN where no size tells its noise
    var: f64,
    /// how far the sizes are from agreeing: Σ (d of a size − d)² / its variance, and how many there are beyond the first
    apart: f64,
    more: f64,
}

/// What the sizes say together. `None` where no size is in both.
fn rate(noises: &Noises, both: &Both<'_>) -> Option<Rate> {
    let all: Vec<_> = noises.sizes(both).collect();
    let ((old_base, new_base, base), largest) = (all.first()?, all.last()?);
    let mut sums = [0.0; 4];
    for (old, new, known) in &all[1..] {
        let (old_rest, new_rest) = (old.seconds - old_base.seconds, new.seconds - new_base.seconds);
        let bytes_decide = old_rest >= old_base.seconds && new_rest >= new_base.seconds;
        let (Some((old_var, new_var)), Some((old_base_var, new_base_var)), true) = (known, base, bytes_decide) else { continue };
        let of_rest = |var: f64, seconds: f64, base_var: f64, base: f64, rest: f64| {
            (var * seconds * seconds + base_var * base * base) / (rest * rest)
        };
        let var = of_rest(*old_var, old.seconds, *old_base_var, old_base.seconds, old_rest)
            + of_rest(*new_var, new.seconds, *new_base_var, new_base.seconds, new_rest);
        let (weight, d) = (1.0 / var.max(LEAST_VARIANCE), (old_rest / new_rest).ln());
        for (sum, more) in sums.iter_mut().zip([1.0, weight, weight * d, weight * d * d]) {
            *sum += more;
        }
    }
    let [n, weight, of_d, of_square] = sums;
    let rate = if n > 0.0 {
        let d = of_d / weight;
        Rate { d, var: 1.0 / weight, apart: (of_square - of_d * d).max(0.0), more: n - 1.0 }
    } else {
        let (old, new, known) = largest;
        let var = known.map_or(f64::NAN, |(old, new)| (old + new).max(LEAST_VARIANCE));
        Rate { d: (old.seconds / new.seconds).ln(), var, apart: 0.0, more: 0.0 }
    };
    rate.d.is_finite().then_some(rate)
}

/// Widen what sizes do not agree on (Birge 1932: by the root of chi² over its degrees of freedom), each thing's own disagreement
/// moderated by that of all: from run to run caches and protocols change some sizes and not others.
fn widen(all: &mut [Rate]) {
    let (apart, more) = all.iter().fold((0.0, 0.0), |(apart, more), own| (apart + own.apart, more + own.more));
    let usual = if more > 0.0 { apart / more } else { 1.0 };
    for own in all {
        own.var *= ((PRIOR * usual + own.apart) / (PRIOR + own.more)).max(1.0);
    }
}

/// The same of the smallest size's time, where bytes take less than half of it.
fn latency(noises: &Noises, both: &Both<'_>) -> Option<(f64, f64)> {
    let all: Vec<_> = noises.sizes(both).collect();
    let ((old, new, known), (old_large, new_large, _)) = (all.first()?, all.last()?);
    let waits = |small: &AtSize, large: &AtSize| 2.0 * small.bytes as f64 * large.seconds < large.bytes as f64 * small.seconds;
    let (old_var, new_var) = (*known)?;
    let both = all.len() > 1 && waits(old, old_large) && waits(new, new_large);
    both.then(|| ((old.seconds / new.seconds).ln(), (old_var + new_var).max(LEAST_VARIANCE)))
}

/// What pairs of a pattern are, numbered as in the later measurement.
pub(super) fn pairs(old: &Measured, new: &Measured, ranks: &[Option<usize>], selected: Selected) -> Compared {
    let (before, after) = (old.pairs(selected), new.pairs(selected));
    let ends = |pair: &PairSeen| ranks[pair.from as usize].zip(ranks[pair.to as usize]);
    let single = |measured: &Measured, pair: &PairSeen| AtSize {
        bytes: measured.bytes,
        seconds: measured.bytes as f64 / pair.rate,
        n: pair.n,
        scatter: pair.scatter,
    };
    // Where only summaries are known, they are at one size.
    let mut summaries: Vec<AtSize> = Vec::new();
    let mut told: Vec<(usize, usize, u16)> = Vec::new();
    for pair in after.iter() {
        let Some((from, to)) = ends(pair) else { continue };
        let Some(earlier) = before.get(from, to) else { continue };
        told.push((pair.from as usize, pair.to as usize, pair.class));
        summaries.extend([single(old, earlier), single(new, pair)]);
    }
    let all: Vec<Both<'_>> = told
        .iter()
        .zip(summaries.chunks(2))
        .map(|(&(from, to, class), summary)| {
            let earlier = ranks[from].zip(ranks[to]).map_or(&[][..], |(from, to)| before.sizes(from, to));
            let later = after.sizes(from, to);
            if earlier.is_empty() && later.is_empty() && summary.iter().all(|size| size.seconds.is_finite()) {
                Both { class, old: &summary[..1], new: &summary[1..] }
            } else {
                Both { class, old: earlier, new: later }
            }
        })
        .collect();
    let places = told.iter().map(|&(from, to, _)| (from, to));
    compared(&all, [old, new], places)
}

fn compared(all: &[Both<'_>], of: [&Measured; 2], places: impl Iterator<Item = (usize, usize)>) -> Compared {
    let noises = Noises::of(all, of);
    let mut compared = Compared::default();
    let mut rates: Vec<Rate> = Vec::new();
    for (both, (from, to)) in all.iter().zip(places) {
        let item = |d, var| Item { from, to, class: both.class, d, var };
        match rate(&noises, both) {
            Some(Rate { var, .. }) if var.is_nan() => compared.untold += 1,
            Some(rate) => {
                rates.push(rate);
                compared.rates.items.push(item(rate.d, rate.var));
            }
            None => continue,
        }
        compared.latencies.items.extend(latency(&noises, both).map(|(d, var)| item(d, var)));
    }
    widen(&mut rates);
    compared.rates.items.iter_mut().zip(rates).for_each(|(item, rate)| item.var = rate.var);
    (compared.rates.dof, compared.latencies.dof) = (noises.dof(), noises.dof());
    compared.rates.calibrate();
    compared.latencies.calibrate();
    compared
}

/// What makes fans, relays and sets the same.
type Group = (Pattern, Option<usize>, Vec<(usize, usize)>);

/// Fans, relays and sets; `to` of an item is the index of the largest size in the later measurement.
pub(super) fn together(old: &Measured, new: &Measured, ranks: &[Option<usize>]) -> Compared {
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for (rank, before) in ranks.iter().enumerate() {
        numbers.extend(before.map(|before| (before, rank)));
    }
    let before = groups(old, &|rank| numbers.get(&rank).copied());
    let mut after: Vec<(Group, (usize, Vec<AtSize>))> = groups(new, &Some).into_iter().collect();
    after.sort_unstable_by_key(|(_, (index, _))| *index);
    let told: Vec<(&Group, usize, &[AtSize], &[AtSize])> = after
        .iter()
        .filter_map(|(group, (index, later))| before.get(group).map(|(_, earlier)| (group, *index, earlier.as_slice(), later.as_slice())))
        .collect();
    let all: Vec<Both<'_>> = told.iter().map(|&(group, _, old, new)| Both { class: group.0 as u16, old, new }).collect();
    let places = told.iter().map(|(group, index, ..)| (group.1.or(group.2.first().map(|flow| flow.0)).unwrap_or(0), *index));
    Compared { latencies: Kind::default(), ..compared(&all, [old, new], places) }
}

/// By what they are: the index of the largest size, and all sizes ascending. `rank` renumbers; who is not there is left out.
fn groups(measured: &Measured, rank: &dyn Fn(usize) -> Option<usize>) -> HashMap<Group, (usize, Vec<AtSize>)> {
    let mut all: HashMap<Group, (usize, Vec<AtSize>)> = HashMap::new();
    for (index, own) in measured.together.iter().enumerate() {
        let flows: Option<Vec<_>> = own.flows.iter().map(|&(from, to)| rank(from).zip(rank(to))).collect();
        let root = own.root.map(rank);
        let (Some(mut flows), false) = (flows, root == Some(None)) else { continue };
        flows.sort_unstable();
        let entry = all.entry((own.pattern, root.flatten(), flows)).or_insert((index, Vec::new()));
        if entry.1.iter().all(|size| size.bytes < own.bytes) {
            entry.0 = index;
        }
        entry.1.push(at_size(own));
    }
    for (_, sizes) in all.values_mut() {
        sizes.sort_unstable_by_key(|size| size.bytes);
    }
    all
}

/// The scatter that the interval of the median is of.
fn at_size(own: &Together) -> AtSize {
    let scatter = own.interval.map_or(f64::NAN, |interval| {
        let half = (interval.high - interval.low) / 2.0 / own.seconds;
        half * (own.n as f64).sqrt() / (HALF_95 * OF_MEDIAN) * HALF_MIDDLE
    });
    AtSize { bytes: own.bytes, seconds: own.seconds, n: own.n as u32, scatter: scatter as f32 }
}

/// A pair that has another state than before: sender, receiver, its states before and after.
pub(super) type State = (usize, usize, Status, Status);

/// Pairs of which one time gave a rate and the other no answer or wrong bytes.
pub(super) fn states(old: &Measured, new: &Measured, ranks: &[Option<usize>]) -> Vec<State> {
    let failed = |status: Status| matches!(status, Status::Timeout | Status::Corrupt);
    let own = new.peer.iter().filter_map(|pair| {
        let before = old.peer.get(ranks[pair.from as usize]?, ranks[pair.to as usize]?)?;
        let other = failed(before.status) && pair.status == Status::Ok || before.status == Status::Ok && failed(pair.status);
        other.then_some((pair.from as usize, pair.to as usize, before.status, pair.status))
    });
    own.collect()
}
