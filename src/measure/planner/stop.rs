//! When a target has enough repeats: sequential stopping by the interval of the median (Hoefler & Belli, SC'15, rule 5 ff.).

use crate::fit::{median, median_interval};
use crate::sweep::{Enough, FEWEST, SweepSettings};

/// Fewest values whose interval leaves the extremes out: from here on more values make it narrower.
const NARROWER: u32 = 11;

/// What is known of one series of times, seconds a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stat {
    /// values
    pub n: usize,
    pub median: f64,
    pub mean: f64,
    /// 95 % interval of the median; the extremes below [`FEWEST`] values
    pub low: f64,
    pub high: f64,
}

impl Stat {
    /// `None` without a value.
    pub fn of(times: &[f32]) -> Option<Self> {
        let mut values: Vec<f64> = times.iter().map(|&time| f64::from(time)).collect();
        let interval = median_interval(&values, 0.95);
        let (middle, mean) = (median(&mut values), values.iter().sum::<f64>() / values.len() as f64);
        let extremes = || (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max));
        let (low, high) = interval.map_or_else(extremes, |interval| (interval.low, interval.high));
        (!values.is_empty()).then_some(Self { n: values.len(), median: middle, mean, low, high })
    }

    /// Half the interval's width as a share of the median; infinite without an interval.
    pub fn width(&self) -> f64 {
        if self.n < FEWEST as usize { f64::INFINITY } else { (self.high - self.low) / 2.0 / self.median }
    }

    /// True if this is slower than `other` by more than 10 %, and by more than both intervals.
    pub fn slower_than(&self, other: &Self) -> bool {
        self.median > 1.1 * other.median && self.low > other.high
    }
}

/// Whether `taken` repeats are enough, given the widest interval of a target's series; `None` to go on.
pub(super) fn enough(settings: &SweepSettings, taken: u32, width: f64) -> Option<Enough> {
    if settings.ci > 0.0 && width <= settings.ci { Some(Enough::Interval) } else { (taken >= settings.repeats).then_some(Enough::Repeats) }
}

/// How many more repeats to take of one that has `taken` and is not narrow enough: as many as would do if the width shrank
/// with the square root of their number, but at most as many as it has.
pub(super) fn more(settings: &SweepSettings, taken: u32, width: f64) -> u32 {
    let left = settings.repeats.saturating_sub(taken);
    if taken < NARROWER {
        return left.min(NARROWER.saturating_sub(taken).max(FEWEST.saturating_sub(taken)));
    }
    let factor = (width / settings.ci.max(1e-6)).powi(2).clamp(1.2, 2.0);
    left.min((f64::from(taken) * (factor - 1.0)).ceil() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(ci: f64, repeats: u32) -> SweepSettings {
        SweepSettings { repeats, ci, ..SweepSettings::default() }
    }

    #[test]
    fn the_interval_decides_or_the_number() {
        let times: Vec<f32> = (0..20_u8).map(|i| 1.0 + f32::from(i) / 100.0).collect();
        let width = |n: usize| Stat::of(&times[..n]).map_or(f64::NAN, |stat| stat.width());
        assert!(width(5).is_infinite() && width(0).is_nan());
        // Of six values the interval is the extremes: 0.05 wide around 1.025.
        assert!((width(6) - 0.025 / 1.025).abs() < 1e-6);
        assert_eq!(enough(&settings(0.05, 40), 6, width(6)), Some(Enough::Interval));
        assert_eq!(enough(&settings(0.02, 40), 6, width(6)), None);
        assert_eq!(enough(&settings(0.02, 6), 6, width(6)), Some(Enough::Repeats));
        assert_eq!(enough(&settings(0.0, 8), 6, 0.0), None, "a fixed number is that number");
        assert_eq!(enough(&settings(0.0, 8), 8, f64::INFINITY), Some(Enough::Repeats));
    }

    #[test]
    fn further_repeats_are_as_many_as_may_be_needed() {
        // Between 7 and 10 values the interval stays the extremes.
        assert_eq!(more(&settings(0.05, 40), 6, 0.06), 5);
        assert_eq!(more(&settings(0.05, 40), 11, 0.06), 5);
        assert_eq!(more(&settings(0.05, 40), 11, 0.5), 11);
        assert_eq!(more(&settings(0.05, 40), 38, 0.5), 2);
        assert_eq!(more(&settings(0.05, 8), 8, 0.5), 0);
    }

    #[test]
    fn slower_is_beyond_ten_percent_and_beyond_the_intervals() {
        let stat = |low, median, high| Stat { n: 6, median, mean: median, low, high };
        let alone = stat(0.9, 1.0, 1.1);
        assert!(stat(1.2, 1.5, 1.6).slower_than(&alone));
        assert!(!stat(1.05, 1.5, 1.6).slower_than(&alone), "the intervals meet");
        assert!(!stat(1.08, 1.09, 1.10).slower_than(&stat(0.99, 1.0, 1.01)), "not by enough");
        // Of a single value there is no interval: the value itself.
        let of = |times: &[f32]| Stat::of(times).unwrap();
        assert!(of(&[1.2]).slower_than(&of(&[1.0])));
        // Of a few the extremes.
        assert!(of(&[1.9, 1.5, 2.0]).slower_than(&of(&[1.0, 1.4, 1.1])));
        assert!(!of(&[1.9, 1.3, 2.0]).slower_than(&of(&[1.0, 1.4, 1.1])));
    }
}
