//! Summaries of repeated measurements, without assuming how they are distributed.
//!
//! After Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems", SC'15, rules 3 to 12.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

/// Fewer values than this have no interval of their median: even the whole range would hold it in less than 95 % of the cases.
pub const FEWEST: usize = 6;

/// How many robust standard deviations from the median an outlier lies at least (Iglewicz & Hoaglin 1993).
const OUTLIER: f64 = 3.5;

/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_MAD: f64 = 1.4826;

/// Standard deviation of a normal distribution over its mean absolute deviation, √(π/2).
const NORMAL_MEAN_DEVIATION: f64 = 1.2533;

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval of the same quantity in a unit `factor` times smaller.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    /// The smallest interval that holds this one and a value.
    #[must_use]
    pub fn with(&self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value) }
    }
}

/// Median; sorts `values` in place. NaN when empty.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    middle(values)
}

/// Median of values in ascending order. NaN when empty.
pub fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Interval of the median at `confidence` (0.95), without assuming a distribution; `None` below [`FEWEST`] values.
///
/// Ranks floor((n − z√n)/2) and ceil(1 + (n + z√n)/2), counted from 1 and kept within 1..n.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, confidence));
    let spread = z * (n as f64).sqrt();
    let low = ((n as f64 - spread) / 2.0).floor().max(1.0) as usize;
    let high = (1.0 + f64::midpoint(n as f64, spread)).ceil().min(n as f64) as usize;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(Interval { low: sorted[low - 1], high: sorted[high - 1] })
}

/// Which values are outliers, in the order given. They are to be flagged, never dropped: the median bears them.
///
/// Further than 3.5 robust standard deviations from the median: 1.4826 times the median absolute deviation or, where over half
/// of the values are equal, 1.2533 times the mean one (Iglewicz & Hoaglin, "How to Detect and Handle Outliers", 1993). Below
/// [`FEWEST`] values none is flagged: they do not show their own spread yet.
pub fn outliers(values: &[f64]) -> Vec<bool> {
    outliers_about(median(&mut values.to_vec()), values)
}

/// [`outliers`] of values whose median is known.
pub fn outliers_about(center: f64, values: &[f64]) -> Vec<bool> {
    if values.len() < FEWEST {
        return vec![false; values.len()];
    }
    let mut deviations: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    let mean = deviations.iter().sum::<f64>() / values.len() as f64;
    let typical = median(&mut deviations);
    let deviation = if typical > 0.0 { NORMAL_MAD * typical } else { NORMAL_MEAN_DEVIATION * mean };
    values.iter().map(|value| (value - center).abs() > OUTLIER * deviation).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn medians() {
        assert!(median(&mut []).is_nan());
        assert!(close(median(&mut [3.0, 1.0, 2.0]), 2.0));
        assert!(close(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5));
    }

    #[test]
    fn intervals_use_the_published_ranks() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(median_interval(&values, 0.95), Some(Interval { low: 40.0, high: 61.0 }));
        let few: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(median_interval(&few, 0.95), Some(Interval { low: 1.0, high: 8.0 }));
        assert_eq!(median_interval(&few[..5], 0.95), None);
        assert_eq!(median_interval(&[], 0.95), None);
    }

    #[test]
    fn one_late_repeat_is_flagged_and_the_others_are_not() {
        let flags = outliers(&[10.0, 10.1, 9.9, 10.2, 25.0, 9.8, 10.0]);
        assert_eq!(flags, [false, false, false, false, true, false, false]);
        // Median 10, deviations 0 0.1 0.1 0.2 0.2 0.5 x: their median is 0.2, so the fence is 3.5 x 0.29652 = 1.03782.
        let at = |last: f64| outliers(&[10.0, 10.1, 9.9, 10.2, 9.8, 9.5, last])[6];
        assert!(!at(11.03) && at(11.04));
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 9.0]), [false; 5]);
    }

    #[test]
    fn equal_values_leave_a_measure_of_spread() {
        // The mean deviation is 0.1, so the fence is 3.5 x 0.12533 = 0.43866 from 1.
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.6])[8..], [false, true]);
        assert_eq!(outliers(&[2.0; 8]), [false; 8]);
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(values in prop::collection::vec(1e-9f64..1e3, 6..80)) {
            let center = median(&mut values.clone());
            let interval = median_interval(&values, 0.95).unwrap();
            prop_assert!(interval.contains(center));
            let wider = median_interval(&values, 0.99).unwrap();
            prop_assert!(wider.low <= interval.low && interval.high <= wider.high);
        }

        #[test]
        fn the_unit_does_not_change_what_is_flagged(values in prop::collection::vec(1.0f64..100.0, 6..40)) {
            let scaled: Vec<f64> = values.iter().map(|value| value * 1024.0).collect();
            prop_assert_eq!(outliers(&values), outliers(&scaled));
        }
    }
}
