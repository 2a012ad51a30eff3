//! What pairs of a class do when nothing is the matter, though up to three quarters of them may be slow.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::diagnose::{Measured, PairSeen};

/// Values this near to each other, as a factor, are of one kind: wider than noise and the variety of good pairs, narrower than
/// the smallest step that links have (5 of 6 lanes or links).
const KIND: f64 = 1.18;

/// No class is quieter than this: standard deviation of ln(value). With few values their own spread says nothing.
const QUIET: f64 = 0.005;
const QUIET_FEW: f64 = 0.02;

/// Chance that any of the values of a healthy class is taken for a fault, if their noise were normal.
const FALSE_ALARM: f64 = 0.001;

/// Of more values than this every so many are looked at: their level is known to a hundredth of their spread then.
const ENOUGH: usize = 1 << 15;

/// Standard deviation of a normal distribution over its median absolute deviation, and over half of its middle half.
const NORMAL: f64 = 1.4826;

/// Standard error of a median over that of a mean: √(π/2).
const MEDIAN: f64 = 1.2533;

/// Of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// what good pairs give, in the unit of the values; NaN without any
    pub value: f64,
    /// standard deviation of ln(value) among good pairs
    pub sigma: f64,
    /// values in the class
    pub count: usize,
}

impl Usual {
    /// The level of the upper quartile, or the highest below it that several values share: one that is far too high sets no
    /// standard, and with three quarters slow the rest still does.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite() && *value > 0.0);
        let count = values.len();
        if count > ENOUGH {
            // An odd step, since faults and rows of a matrix come in even numbers.
            let step = (count / ENOUGH) | 1;
            values = values.into_iter().step_by(step).collect();
        }
        values.sort_unstable_by(f64::total_cmp);
        if count == 0 {
            return Self { value: f64::NAN, sigma: QUIET_FEW, count };
        }
        let enough = if count < 4 { 1 } else { 2.max(values.len() / 8) };
        let kind = |at: usize| {
            let (low, high) = (values[at] / KIND, values[at] * KIND);
            &values[values.partition_point(|&value| value < low)..values.partition_point(|&value| value <= high)]
        };
        let quartile = (3 * (values.len() - 1)).div_ceil(4);
        let good = (0..=quartile).rev().map(kind).find(|good| good.len() >= enough).unwrap_or(&values);
        let value = crate::fit::median(&mut good.to_vec());
        let mut off: Vec<f64> = good.iter().map(|good| (good / value).ln().abs()).collect();
        let sigma = (crate::fit::median(&mut off) * NORMAL).max(if good.len() < 6 { QUIET_FEW } else { QUIET });
        Self { value, sigma, count }
    }

    /// Of every class, by what is given of each pair: the more, the better.
    pub fn classes(measured: &Measured, of: impl Fn(&PairSeen) -> f64) -> Vec<Self> {
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); measured.classes.len()];
        for pair in measured.peer.iter().chain(measured.local.iter()) {
            if let Some(values) = values.get_mut(usize::from(pair.class)) {
                values.push(of(pair));
            }
        }
        values.into_iter().map(Self::of).collect()
    }

    /// Of every class, by rate, bytes per second.
    pub fn rates(measured: &Measured) -> Vec<Self> {
        Self::classes(measured, |pair| pair.rate)
    }

    /// Whether ln(value/usual) lies further below 0 than chance brings it.
    pub fn below(&self, log: f64, error: f64) -> bool {
        log < -critical(self.count) * self.sigma.hypot(error)
    }
}

/// How many standard deviations a value must be off, when so many are looked at.
pub fn critical(looks: usize) -> f64 {
    Normal::standard().inverse_cdf(1.0 - FALSE_ALARM / looks.max(1) as f64)
}

/// Standard error of ln(rate) of a pair, from its own repeats; `None` where there are too few.
pub fn error(pair: &PairSeen) -> Option<f64> {
    if let Some(interval) = pair.interval.filter(|interval| interval.low > 0.0 && interval.high.is_finite()) {
        return Some((interval.high / interval.low).ln() / (2.0 * 1.96));
    }
    let scatter = f64::from(pair.scatter);
    (scatter.is_finite() && pair.n > 0).then(|| scatter * NORMAL * MEDIAN / f64::from(pair.n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(values: &[f64]) -> f64 {
        Usual::of(values.to_vec()).value
    }

    #[track_caller]
    fn check(values: &[f64], expect: f64) {
        assert!((level(values) - expect).abs() < 1e-9, "{} instead of {expect}", level(values));
    }

    #[test]
    fn three_quarters_slow_do_not_make_slow_usual() {
        check(&[6.0, 8.3, 8.6, 14.4, 25.2, 43.0, 53.6, 53.8], 53.7);
        check(&[10.0, 5.0], 10.0);
        check(&[24.0, 24.1, 23.9, 48.0, 48.2, 24.0, 24.2, 48.1], 48.1);
    }

    #[test]
    fn one_value_far_too_high_sets_no_standard() {
        check(&[10.0, 10.1, 9.9, 100.0], 10.0);
        let mut many = vec![10.0; 40];
        many.extend([90.0, 95.0, 100.0]);
        check(&many, 10.0);
        assert!(level(&[]).is_nan());
    }

    #[test]
    fn of_a_million_pairs_none_is_slow_by_chance_at_three_percent() {
        let usual = Usual { value: 1.0, sigma: 0.03, count: 1_000_000 };
        // The most extreme of a million normal numbers is about 4.9 deviations off.
        assert!(!usual.below(-0.03 * 5.2, 0.0) && usual.below(0.8f64.ln(), 0.0));
        assert!(!usual.below(0.8f64.ln(), 0.2), "its own repeats scatter as much");
    }
}
