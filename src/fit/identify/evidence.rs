//! Evidence made comparable: what flows take alone and together, in seconds, at about one size.

use std::collections::HashMap;

use super::types::{Extreme, PairRates, Together};
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Units};

/// Fans and sets of smaller messages than this share of the usual size say more of latency than of what is shared.
const COMPARABLE: f64 = 1.0 / 16.0;

/// What makes two measurements the same but for their size: pattern, root, flows.
type Same<'a> = (Pattern, Option<usize>, &'a [(usize, usize)]);

/// Tell every one: sender, receiver, bytes per second.
pub type Told<'a> = dyn Fn(&mut dyn FnMut(usize, usize, f64)) + 'a;

/// All that [`super::identify_all`] goes by.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "holds functions")]
pub struct Evidence<'a> {
    pub units: &'a Units,
    /// what a pair gives alone, bytes per second, in messages of `bytes`
    pub rate: &'a PairRates<'a>,
    /// 0: of about the size of all other evidence
    pub bytes: u64,
    /// seconds of a message that is nearly empty, where it was measured
    pub latency: Option<&'a PairRates<'a>>,
    /// one direction of two at once, where it was measured
    pub duplex: Option<&'a Told<'a>>,
    pub together: &'a [Together],
    pub extremes: &'a [Extreme],
}

/// One flow alone, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alone {
    pub latency: f64,
    /// of the bytes, beyond latency
    pub bytes: f64,
}

/// A measurement of several at once beside what each of them does alone.
#[derive(Debug)]
pub(super) struct Ran<'a> {
    pub told: &'a Together,
    /// in the order of the flows
    pub alone: Vec<Option<Alone>>,
}

impl<'a> Evidence<'a> {
    /// Of pair rates alone.
    pub fn new(units: &'a Units, rate: &'a PairRates<'a>) -> Self {
        Self { units, rate, bytes: 0, latency: None, duplex: None, together: &[], extremes: &[] }
    }

    /// The size at which predictions are made.
    pub(super) fn usual_bytes(&self) -> u64 {
        let largest = || self.together.iter().map(|one| one.bytes).max();
        if self.bytes > 0 { self.bytes } else { largest().unwrap_or(1 << 28) }
    }

    /// A pair alone with messages of `bytes`.
    pub(super) fn alone(&self, from: usize, to: usize, bytes: u64) -> Option<Alone> {
        let rate = (self.rate)(from, to).filter(|rate| *rate > 0.0 && rate.is_finite())?;
        let size = if self.bytes > 0 { self.bytes } else { bytes } as f64;
        let whole = size / rate;
        let latency = self.latency.and_then(|latency| latency(from, to)).filter(|seconds| *seconds > 0.0);
        // A message that is mostly latency does not tell what the bytes take.
        let latency = latency.map_or(0.0, |seconds| seconds.min(whole / 2.0));
        Some(Alone { latency, bytes: (whole - latency) * bytes as f64 / size })
    }

    pub(super) fn path(&self, from: usize, to: usize) -> PathClass {
        match (from == to, self.units.together(Level::Host, from, to)) {
            (true, _) => PathClass::Local,
            (_, true) => PathClass::IntraNode,
            _ => PathClass::InterNode,
        }
    }

    /// What ran together, each set of flows at the size that is nearest to that of the pair rates.
    pub(super) fn ran(&self) -> Vec<Ran<'a>> {
        let world = self.units.world();
        let known = |one: &&Together| one.seconds > 0.0 && one.bytes > 0 && one.flows.iter().all(|&(a, b)| a < world && b < world);
        let distance = |one: &Together| if self.bytes == 0 { 0.0 } else { (one.bytes as f64 / self.bytes as f64).ln().abs() };
        let comparable = |one: &Together| !one.alone.is_empty() || self.bytes == 0 || one.bytes as f64 >= self.bytes as f64 * COMPARABLE;
        let mut nearest: HashMap<Same<'_>, usize> = HashMap::new();
        let mut chosen: Vec<&Together> = Vec::new();
        for one in self.together.iter().filter(known).filter(|one| comparable(one)) {
            // With their own times alone they stand for themselves; without a size to go by all count.
            if self.bytes == 0 || !one.alone.is_empty() {
                chosen.push(one);
                continue;
            }
            let at = *nearest.entry((one.pattern, one.root, &one.flows)).or_insert_with(|| {
                chosen.push(one);
                chosen.len() - 1
            });
            if distance(one) < distance(chosen[at]) {
                chosen[at] = one;
            }
        }
        chosen.into_iter().map(|told| Ran { told, alone: self.alone_of(told) }).collect()
    }

    fn alone_of(&self, told: &Together) -> Vec<Option<Alone>> {
        let own = |at: usize| told.alone.get(at).copied().filter(|seconds| *seconds > 0.0);
        let one = |(at, &(from, to)): (usize, &(usize, usize))| match own(at) {
            Some(seconds) => {
                let latency = self.latency.and_then(|latency| latency(from, to)).filter(|latency| *latency > 0.0);
                let latency = latency.map_or(0.0, |latency| latency.min(seconds / 2.0));
                Some(Alone { latency, bytes: seconds - latency })
            }
            None => self.alone(from, to, told.bytes),
        };
        told.flows.iter().enumerate().map(one).collect()
    }
}

impl Ran<'_> {
    /// Seconds of the bytes until the last of these flows (by number) is through, beyond latency.
    pub fn seconds(&self, flows: impl ExactSizeIterator<Item = usize> + Clone) -> f64 {
        let own = flows.clone().map(|at| self.told.own.get(at).copied().unwrap_or(f64::NAN));
        if self.told.pattern == Pattern::Peer {
            let latency = |at: usize| self.alone[at].map_or(0.0, |alone| alone.latency);
            let rates = own.zip(flows.clone()).map(|(own, at)| (own - latency(at)).max(own / 2.0).recip());
            return flows.len() as f64 / rates.sum::<f64>();
        }
        let last =
            if flows.len() == self.told.flows.len() || own.clone().any(f64::is_nan) { self.told.seconds } else { own.fold(0.0, f64::max) };
        let latency = flows.filter_map(|at| self.alone[at]).map(|alone| alone.latency).fold(0.0, f64::max);
        (last - latency).max(last / 2.0)
    }
}
