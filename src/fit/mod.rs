//! Samples -> summaries. No I/O.
//!
//! Medians with nonparametric intervals from order statistics: Hoefler & Belli, "Scientific Benchmarking of Parallel
//! Computing Systems", SC'15, rules 3 to 12. Fits and the identification of resources join this room later.

use statrs::distribution::{ContinuousCDF, Normal};

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// Median; sorts `values` in place. NaN when empty.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Interval of the median at `confidence` (0.95), without assuming a distribution; `None` below 6 values.
///
/// Ranks floor((n − z√n)/2) and ceil(1 + (n + z√n)/2), counted from 1 and kept within 1..n.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len();
    if n < 6 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(median(&mut []).is_nan());
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&mut [4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn intervals_use_the_published_ranks() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(median_interval(&values, 0.95), Some(Interval { low: 40.0, high: 61.0 }));
        let few: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(median_interval(&few, 0.95), Some(Interval { low: 1.0, high: 8.0 }));
        assert_eq!(median_interval(&few[..5], 0.95), None);
    }
}
