//! How well predictions agree with an outcome, and with each other. Outcomes are shares of what is usual; all is in their logarithms.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::sample::{Sample, Status};

/// How much of any outcome comes from nothing that a cause foresees.
const STRAY: f64 = 0.01;
/// Logarithms of the shares between which outcomes lie.
const RANGE: (f64, f64) = (-7.0, 3.0);
/// Steps of that range at which predictions are compared.
const STEPS: usize = 500;
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

/// How much two predictions have in common: 1 for the same, 0 for none (Bhattacharyya's coefficient).
pub(super) fn common(one: (f64, f64), other: (f64, f64), noise: f64) -> f64 {
    if one == other {
        return 1.0;
    }
    let step = (RANGE.1 - RANGE.0) / STEPS as f64;
    let at = |number: usize| (RANGE.0 + (number as f64 + 0.5) * step).exp();
    // A step must not jump over a peak.
    let noise = noise.max(step);
    let sum: f64 = (0..STEPS).map(at).map(|x| (density(one, noise, x) * density(other, noise, x)).sqrt()).sum();
    (sum * step).min(1.0)
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
