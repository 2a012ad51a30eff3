//! How well predictions agree with an outcome, and with each other. Outcomes are shares of what is usual; all is in their logarithms.

use statrs::distribution::{ContinuousCDF, Normal};

use super::predict::{Scenario, Scenarios};
use crate::sample::{Sample, Status};

/// How much of any outcome comes from nothing that a cause foresees.
const STRAY: f64 = 0.01;
/// Logarithms of the shares between which outcomes lie.
const RANGE: (f64, f64) = (-7.0, 3.0);
/// Least noise of a median: clocks and the moment's luck.
const LEAST_NOISE: f64 = 0.01;
/// Standard deviation of a median over that of a mean, √(π/2).
const MEDIAN: f64 = 1.2533;

/// Noise of a median of `repeats`, relative, where single repeats scatter by `deviation`.
pub(super) fn noise(deviation: f64, repeats: usize) -> f64 {
    (MEDIAN * deviation / (repeats.max(1) as f64).sqrt()).max(LEAST_NOISE)
}

/// Density of an outcome under a prediction: anywhere within it alike, with the noise of a median, and some that nobody foresees.
pub(super) fn density((low, high): (f64, f64), noise: f64, outcome: f64) -> f64 {
    let (low, high, x) = (low.ln(), high.ln(), outcome.max(1e-300).ln().clamp(RANGE.0, RANGE.1));
    let normal = Normal::standard();
    let width = (high - low).max(1e-6);
    let inside = (normal.cdf((high - x) / noise) - normal.cdf((low - x) / noise)) / width;
    (1.0 - STRAY) * inside + STRAY / (RANGE.1 - RANGE.0)
}

/// How likely outcomes are under a cause; sets without one tell nothing.
pub(super) fn likelihood(scenarios: &Scenarios, outcomes: &[Option<Outcome>], usuals: &[f64]) -> f64 {
    scenarios.iter().map(|scenario| of_scenario(scenario, outcomes, usuals)).sum::<f64>() / scenarios.len().max(1) as f64
}

/// The same of one scenario.
pub(super) fn of_scenario(scenario: &Scenario, outcomes: &[Option<Outcome>], usuals: &[f64]) -> f64 {
    let one = |at: usize, range: (f64, f64)| outcomes[at].map_or(1.0, |own| density(range, own.noise, own.aggregate / usuals[at]));
    scenario.sets.iter().enumerate().map(|(at, &range)| one(at, range)).product()
}

/// How much two causes have in common before a test: 1 if they foresee the same of every set, near 0 if any set will tell them apart
/// (Bhattacharyya's coefficient, as if each prediction were normal; of several scenarios at most this).
pub(super) fn common(one: &Scenarios, other: &Scenarios, noise: f64) -> f64 {
    let of_set = |a: (f64, f64), b: (f64, f64)| {
        let normal = |(low, high): (f64, f64)| {
            let (low, high) = (low.ln(), high.ln());
            (f64::midpoint(low, high), (high - low).powi(2) / 12.0 + noise * noise)
        };
        let ((at, own), (there, theirs)) = (normal(a), normal(b));
        (2.0 * (own * theirs).sqrt() / (own + theirs)).sqrt() * (-(at - there).powi(2) / (4.0 * (own + theirs))).exp()
    };
    let all = |a: &Scenario, b: &Scenario| a.sets.iter().zip(&b.sets).map(|(&a, &b)| of_set(a, b)).product::<f64>();
    let both = one.iter().flat_map(|a| other.iter().map(move |b| all(a, b)));
    (both.sum::<f64>() / ((one.len() * other.len()) as f64).sqrt()).min(1.0)
}

/// What came of one set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    /// bytes per second, all transfers together until the last is through: of the median repeat
    pub aggregate: f64,
    /// of that median, relative
    pub noise: f64,
}

/// The whole repeats of a set; `None` without one. `flows` is how many transfers it has.
pub(super) fn outcome(samples: &[Sample], set: u32, flows: usize, bytes: u64) -> Option<Outcome> {
    let mut repeats: std::collections::BTreeMap<u32, (usize, f64)> = std::collections::BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.set == Some(set) && !sample.warmup && sample.status == Status::Ok) {
        let Some(seconds) = sample.seconds_per_message() else { continue };
        let own = repeats.entry(sample.repeat).or_insert((0, 0.0));
        *own = (own.0 + 1, own.1.max(seconds));
    }
    let mut seconds: Vec<f64> = repeats.into_values().filter(|&(count, _)| count == flows).map(|(_, seconds)| seconds).collect();
    if seconds.is_empty() {
        return None;
    }
    let middle = crate::fit::median(&mut seconds);
    let mut far: Vec<f64> = seconds.iter().map(|own| (own / middle).ln().abs()).collect();
    // Of a normal distribution, the median deviation is 0.6745 of the standard one.
    let deviation = crate::fit::median(&mut far) / 0.6745;
    Some(Outcome { aggregate: bytes as f64 * flows as f64 / middle, noise: noise(deviation, seconds.len()) })
}
