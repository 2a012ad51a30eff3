//! What stands out in the matrix, kept up to date cell by cell: slow pairs, one-sided pairs, failed pairs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::topology::PathClass;

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
    order: BTreeSet<(u64, usize, usize)>,
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
        self.order.insert((rate.to_bits(), from, to));
        *self.steps.entry(Self::step(rate)).or_default() += 1;
    }

    fn remove(&mut self, rate: f64, from: usize, to: usize) {
        self.order.remove(&(rate.to_bits(), from, to));
        let step = Self::step(rate);
        if let Some(count) = self.steps.get_mut(&step) {
            *count -= 1;
            if *count == 0 {
                self.steps.remove(&step);
            }
        }
    }

    /// Median, to 1 % when the pairs are many.
    fn typical(&self) -> Option<f64> {
        let n = self.order.len();
        if n <= EXACT {
            let upper = self.order.iter().nth(n / 2).map(|&(bits, ..)| f64::from_bits(bits))?;
            let lower = self.order.iter().nth(n.saturating_sub(1) / 2).map_or(upper, |&(bits, ..)| f64::from_bits(bits));
            return Some(f64::midpoint(lower, upper));
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
    known: HashMap<(usize, usize), f64>,
    classes: BTreeMap<PathClass, Class>,
    skews: BTreeSet<(u64, usize, usize)>,
    failed: BTreeSet<(usize, usize)>,
}

impl Insight {
    /// Tell a cell's bandwidth, bytes per second (`None` if it has none), and whether its last measurement failed.
    pub fn set(&mut self, class: PathClass, from: usize, to: usize, rate: Option<f64>, failed: bool) {
        if failed {
            self.failed.insert((from, to));
        } else {
            self.failed.remove(&(from, to));
        }
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        let old = match rate {
            Some(rate) => self.known.insert((from, to), rate),
            None => self.known.remove(&(from, to)),
        };
        if old == rate {
            return;
        }
        let back = self.known.get(&(to, from)).copied().filter(|_| from != to);
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
    }

    /// Typical bandwidth of a path class, bytes per second.
    pub fn typical(&self, class: PathClass) -> Option<f64> {
        self.classes.get(&class)?.typical()
    }

    /// The pairs that are slowest for their path class, slowest first. Copies within a rank are no pairs.
    pub fn slowest(&self, count: usize) -> Vec<Slow> {
        let mut slow: Vec<Slow> = Vec::new();
        for (&class, pairs) in self.classes.iter().filter(|(class, _)| **class != PathClass::Local) {
            let Some(typical) = pairs.typical() else { continue };
            let first = pairs.order.iter().take(count);
            slow.extend(first.map(|&(bits, from, to)| Slow { from, to, class, rate: f64::from_bits(bits), typical }));
        }
        slow.sort_by(|a, b| a.share().total_cmp(&b.share()).then(a.rate.total_cmp(&b.rate)));
        slow.truncate(count);
        slow
    }

    /// The pairs whose directions differ most.
    pub fn skewest(&self, count: usize) -> Vec<Skew> {
        let rate = |from, to| self.known.get(&(from, to)).copied().unwrap_or(f64::NAN);
        self.skews.iter().rev().take(count).map(|&(_, from, to)| Skew { from, to, rate: rate(from, to), back: rate(to, from) }).collect()
    }

    /// Pairs without a good measurement that were tried: how many, and the first few.
    pub fn failed(&self, count: usize) -> (usize, Vec<(usize, usize)>) {
        (self.failed.len(), self.failed.iter().take(count).copied().collect())
    }

    /// Pairs worth a look, most urgent first: failed ones, slow ones, one-sided ones; each once.
    pub fn suspects(&self) -> Vec<(usize, usize)> {
        let slow = self.slowest(3).into_iter().map(|slow| (slow.from, slow.to));
        let skew = self.skewest(3).into_iter().map(|skew| (skew.from, skew.to));
        let mut seen = Vec::new();
        for pair in self.failed.iter().take(8).copied().chain(slow).chain(skew) {
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

fn skew_key(from: usize, to: usize, rate: f64, back: f64) -> (u64, usize, usize) {
    let amount = (rate / back).ln().abs().to_bits();
    // The slow direction first; of equals, the lower rank.
    if rate < back || (rate.to_bits() == back.to_bits() && from < to) { (amount, from, to) } else { (amount, to, from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_means_slow_for_its_path() {
        let mut insight = Insight::default();
        for (class, from, to, rate) in [
            (PathClass::IntraNode, 0, 1, 10e9),
            (PathClass::IntraNode, 1, 0, 4e9),
            (PathClass::IntraNode, 2, 3, 10e9),
            (PathClass::InterNode, 0, 2, 1e9),
            (PathClass::InterNode, 2, 0, 1e9),
            (PathClass::Local, 0, 0, 1.0),
        ] {
            insight.set(class, from, to, Some(rate), false);
        }
        let slow = insight.slowest(1)[0];
        assert_eq!((slow.from, slow.to), (1, 0));
        assert!((slow.share() - 0.4).abs() < 1e-9);
        let skew = insight.skewest(1)[0];
        assert_eq!((skew.from, skew.to), (1, 0));
        assert!((skew.ratio() - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_newer_value_replaces_the_older_one() {
        let mut insight = Insight::default();
        insight.set(PathClass::InterNode, 0, 1, Some(1e9), false);
        insight.set(PathClass::InterNode, 1, 0, Some(3e9), false);
        insight.set(PathClass::InterNode, 0, 1, Some(6e9), false);
        assert_eq!(insight.measured(), 2);
        assert_eq!(insight.skewest(5).len(), 1);
        assert_eq!((insight.skewest(1)[0].from, insight.skewest(1)[0].to), (1, 0));
        insight.set(PathClass::InterNode, 0, 1, None, true);
        assert_eq!((insight.measured(), insight.skewest(5).len()), (1, 0));
        let rates: Vec<f64> = insight.slowest(5).iter().map(|slow| slow.rate).collect();
        assert_eq!(rates, [3e9]);
        assert_eq!(insight.failed(3), (1, vec![(0, 1)]));
    }

    #[test]
    fn many_pairs_have_a_median_to_one_percent() {
        let mut insight = Insight::default();
        for i in 0..1001_usize {
            insight.set(PathClass::InterNode, i, i + 1, Some((1 + i) as f64 * 1e6), false);
        }
        let typical = insight.typical(PathClass::InterNode).unwrap();
        assert!((typical / 501e6 - 1.0).abs() < 0.011, "{typical}");
    }
}
