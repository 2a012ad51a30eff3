//! What stands out in the matrix, kept up to date cell by cell: slow ranks, slow pairs, one-sided pairs, failed pairs.

mod finding;
mod known;
mod lines;
#[cfg(test)]
mod tests;

pub use finding::{Findings, SlowLine};
pub use lines::Way;

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::PathClass;

use known::Known;
use lines::Lines;

/// A pair and how it compares with the pairs of its path class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    pub from: usize,
    pub to: usize,
    pub class: PathClass,
    /// bandwidth, bytes per second
    pub rate: f64,
    /// what is typical of its path class, bytes per second
    pub typical: f64,
}

impl Slow {
    /// Share of what is typical of its path class.
    pub fn share(&self) -> f64 {
        self.rate / self.typical
    }
}

/// A pair whose directions differ; `from` → `to` is the slow one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Skew {
    pub from: usize,
    pub to: usize,
    /// bandwidth of the slow direction, bytes per second
    pub rate: f64,
    /// bandwidth of the other direction, bytes per second
    pub back: f64,
}

impl Skew {
    /// How many times faster the other direction is.
    pub fn ratio(&self) -> f64 {
        self.back / self.rate
    }
}

/// Pairs of one path class, by bandwidth.
#[derive(Debug, Clone, Default)]
struct Class {
    /// bits of a positive number order as the number does
    order: BTreeSet<(u64, u32, u32)>,
    /// how many pairs in each step of 2 %, for the median of many
    steps: BTreeMap<i32, usize>,
}

/// Pairs of a class up to which the median is exact.
const EXACT: usize = 64;

impl Class {
    fn step(rate: f64) -> i32 {
        (rate.ln() * 50.0).round() as i32
    }

    fn add(&mut self, rate: f64, from: usize, to: usize) {
        self.order.insert((rate.to_bits(), from as u32, to as u32));
        *self.steps.entry(Self::step(rate)).or_default() += 1;
    }

    fn remove(&mut self, rate: f64, from: usize, to: usize) {
        self.order.remove(&(rate.to_bits(), from as u32, to as u32));
        let step = Self::step(rate);
        if let Some(count) = self.steps.get_mut(&step) {
            *count -= 1;
            if *count == 0 {
                self.steps.remove(&step);
            }
        }
    }

    /// Median, to 1 % when the pairs are many. Of an even number the upper one of the middle: a value that was measured,
    /// and where half of the pairs are slow, not half way to them.
    fn typical(&self) -> Option<f64> {
        let n = self.order.len();
        if n <= EXACT {
            return self.order.iter().nth(n / 2).map(|&(bits, ..)| f64::from_bits(bits));
        }
        let mut before = 0;
        self.steps.iter().find_map(|(&step, &count)| {
            before += count;
            (before > n / 2).then(|| (f64::from(step) / 50.0).exp())
        })
    }
}

/// Everything that stands out, for one size.
#[derive(Debug, Clone, Default)]
pub struct Insight {
    known: Known,
    classes: BTreeMap<PathClass, Class>,
    lines: Lines,
    skews: BTreeSet<(u64, u32, u32)>,
    failed: BTreeSet<(usize, usize)>,
    /// host of every rank; ranks of a host that are slow together are told together
    node_of: Vec<usize>,
    findings: Findings,
    /// cells have changed since the findings were made
    stale: bool,
}

impl Insight {
    /// Nothing known yet of ranks on these hosts: `node_of[rank]`.
    pub fn new(node_of: Vec<usize>) -> Self {
        Self { node_of, ..Self::default() }
    }

    /// All cells at once: class, sender, receiver, bandwidth and whether the last measurement failed, as [`Self::set`] takes
    /// them. Sorted once instead of cell by cell: a thousand ranks have a million.
    pub fn build(node_of: Vec<usize>, cells: impl Iterator<Item = (PathClass, usize, usize, Option<f64>, bool)>) -> Self {
        let mut insight = Self { stale: true, ..Self::new(node_of) };
        let mut orders: BTreeMap<PathClass, Vec<(u64, u32, u32)>> = BTreeMap::new();
        for (class, from, to, rate, failed) in cells {
            if failed {
                insight.failed.insert((from, to));
            }
            let Some(rate) = rate.filter(|rate| rate.is_finite() && *rate > 0.0) else { continue };
            insight.known.set(from, to, Some((rate, class)));
            orders.entry(class).or_default().push((rate.to_bits(), from as u32, to as u32));
            *insight.classes.entry(class).or_default().steps.entry(Class::step(rate)).or_default() += 1;
            if from != to {
                insight.lines.change(&insight.known, class, (from, to), None, Some(rate));
            }
        }
        for (class, order) in orders {
            insight.classes.entry(class).or_default().order = order.into_iter().collect();
        }
        let skew = |(from, to, forth): (usize, usize, f64)| {
            // Each pair once.
            if from < to { insight.known.rate(to, from).map(|back| skew_key(from, to, forth, back)) } else { None }
        };
        insight.skews = insight.known.iter().filter_map(skew).collect();
        insight
    }

    /// Tell a cell's bandwidth, bytes per second (`None` if it has none), and whether its last measurement failed. O(log n),
    /// or O(n) where the best of a rank's cells becomes slower.
    pub fn set(&mut self, class: PathClass, from: usize, to: usize, rate: Option<f64>, failed: bool) {
        if failed {
            self.failed.insert((from, to));
        } else {
            self.failed.remove(&(from, to));
        }
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        let old = self.known.set(from, to, rate.map(|rate| (rate, class)));
        if old == rate {
            return;
        }
        self.stale = true;
        let back = self.rate(to, from).filter(|_| from != to);
        let of_class = self.classes.entry(class).or_default();
        if let Some(old) = old {
            of_class.remove(old, from, to);
            if let Some(back) = back {
                self.skews.remove(&skew_key(from, to, old, back));
            }
        }
        if let Some(rate) = rate {
            of_class.add(rate, from, to);
            if let Some(back) = back {
                self.skews.insert(skew_key(from, to, rate, back));
            }
        }
        if from != to {
            self.lines.change(&self.known, class, (from, to), old, rate);
        }
    }

    fn rate(&self, from: usize, to: usize) -> Option<f64> {
        self.known.rate(from, to)
    }

    /// Typical bandwidth of a path class, bytes per second.
    pub fn typical(&self, class: PathClass) -> Option<f64> {
        self.classes.get(&class)?.typical()
    }

    /// Largest bandwidth between two ranks, bytes per second; NaN before the first.
    pub fn best(&self) -> f64 {
        let pairs = self.classes.iter().filter(|(class, _)| **class != PathClass::Local);
        pairs.filter_map(|(_, pairs)| pairs.order.last()).map(|&(bits, ..)| f64::from_bits(bits)).fold(f64::NAN, f64::max)
    }

    /// The pairs whose directions differ, most first.
    fn skews(&self) -> impl Iterator<Item = Skew> {
        let rate = |from, to| self.rate(from, to).unwrap_or(f64::NAN);
        let pairs = self.skews.iter().rev().map(|&(_, from, to)| (from as usize, to as usize));
        pairs.map(move |(from, to)| Skew { from, to, rate: rate(from, to), back: rate(to, from) })
    }

    /// Pairs without a good measurement that were tried: how many, and the first few.
    pub fn failed(&self, count: usize) -> (usize, Vec<(usize, usize)>) {
        (self.failed.len(), self.failed.iter().take(count).copied().collect())
    }

    /// Bring the findings up to date, in about O(n); before a frame, and only if a cell has changed.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.stale) {
            self.findings = self.find();
        }
    }

    /// What stood out when it was last settled.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Pairs worth a look, most urgent first: failed ones, those of slow ranks, slow ones, one-sided ones; each once.
    pub fn suspects(&self) -> Vec<(usize, usize)> {
        let found = &self.findings;
        let lines = found.lines.iter().map(|line| line.pair);
        let slow = found.pairs.iter().take(3).map(|slow| (slow.from, slow.to));
        let skew = found.skews.iter().take(3).map(|skew| (skew.from, skew.to));
        let mut seen = Vec::new();
        for pair in self.failed.iter().take(8).copied().chain(lines).chain(slow).chain(skew) {
            if !seen.contains(&pair) {
                seen.push(pair);
            }
        }
        seen
    }

    /// Pairs that have a bandwidth.
    pub fn measured(&self) -> usize {
        self.known.len()
    }
}

fn skew_key(from: usize, to: usize, rate: f64, back: f64) -> (u64, u32, u32) {
    let (from, to) = (from as u32, to as u32);
    // The same bits from either end, so that what one direction put in the other one finds again.
    let amount = (rate.max(back) / rate.min(back)).ln().to_bits();
    // The slow direction first; of equals, the lower rank.
    if rate < back || (rate.to_bits() == back.to_bits() && from < to) { (amount, from, to) } else { (amount, to, from) }
}
