//! The line t(B) = α + B/bandwidth through the medians of a size curve.

use serde::Serialize;
use thiserror::Error;

use super::bootstrap;
use super::stats::Interval;

/// A line whose largest relative error exceeds this says nothing about sizes that were not measured.
pub const EXTRAPOLATION_LIMIT: f64 = 0.25;

/// What was measured at one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// size of a message, bytes
    pub bytes: u64,
    /// median time of a message, seconds
    pub seconds: f64,
    /// repeats behind the median
    pub n: usize,
    /// variance of the median, seconds², from the bootstrap of the repeats; rough below 6 of them, `None` for a single one
    pub variance: Option<f64>,
}

impl Point {
    /// The point of some repeats, in seconds of one message each; orders them anew. `seconds` is NaN without repeats.
    pub fn of(bytes: u64, repeats: &mut [f64]) -> Self {
        let (seconds, variance) = bootstrap::median_and_variance(repeats);
        Self { bytes, seconds, n: repeats.len(), variance }
    }

    /// Whether the point can bear on a line: its median is a time.
    pub fn is_timed(&self) -> bool {
        self.seconds.is_finite() && self.seconds > 0.0
    }
}

/// Why there is no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FitError {
    #[error("a line needs two sizes, {0} measured")]
    TooFewSizes(usize),
    #[error("the median at {bytes} bytes is not a time above 0")]
    NotTimed { bytes: u64 },
}

/// Why a line says nothing about a size.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error(
    "{bytes} bytes lie outside the measured sizes, {smallest} to {largest} bytes, and the fit misses by up to {:.0} %: measure that size",
    max_rel_error * 100.0
)]
pub struct Extrapolation {
    pub bytes: u64,
    pub smallest: u64,
    pub largest: u64,
    pub max_rel_error: f64,
}

/// A fitted line with the sizes that it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// time of an empty message, seconds, never negative
    pub alpha: f64,
    /// bytes per second, above 0; infinite where larger messages took no longer
    pub bandwidth: f64,
    /// largest |line − median| / median over the measured sizes
    pub max_rel_error: f64,
    /// smallest measured size, bytes
    pub smallest: u64,
    /// largest measured size, bytes
    pub largest: u64,
}

impl Line {
    /// Fits the medians so that the sum of squared *relative* errors is least, with α ≥ 0 and bandwidth > 0.
    ///
    /// A weighted least-squares line with weights 1/median², in closed form. Where it would have a negative α or slope, that
    /// one is 0 in the best line allowed, since the sum is convex. Times of 4 KiB thus weigh as much as those of 256 MiB.
    pub fn fit(points: &[Point]) -> Result<Self, FitError> {
        let free = Free::fit(points)?;
        let sum = |term: fn(&Point) -> f64| points.iter().map(term).sum::<f64>();
        let (alpha, slope) = if free.alpha < 0.0 {
            let per_byte = |point: &Point| point.bytes as f64 / point.seconds;
            (0.0, points.iter().map(per_byte).sum::<f64>() / points.iter().map(|point| per_byte(point).powi(2)).sum::<f64>())
        } else if free.slope < 0.0 {
            (sum(|point| point.seconds.recip()) / sum(|point| point.seconds.powi(2).recip()), 0.0)
        } else {
            (free.alpha, free.slope)
        };
        let mut line = Self {
            alpha,
            bandwidth: slope.recip(),
            max_rel_error: 0.0,
            smallest: points.iter().map(|point| point.bytes).min().unwrap_or_default(),
            largest: points.iter().map(|point| point.bytes).max().unwrap_or_default(),
        };
        line.max_rel_error = points.iter().map(|point| line.relative_error(point).abs()).fold(0.0, f64::max);
        Ok(line)
    }

    /// Seconds that the line gives for a size, measured or not.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.alpha + bytes as f64 / self.bandwidth
    }

    /// (line − median) / median.
    pub fn relative_error(&self, point: &Point) -> f64 {
        (self.seconds(point.bytes) - point.seconds) / point.seconds
    }

    /// Seconds for a size; refused outside the measured sizes when the line misses one of them by more than
    /// [`EXTRAPOLATION_LIMIT`].
    pub fn predict(&self, bytes: u64) -> Result<f64, Extrapolation> {
        if (self.smallest..=self.largest).contains(&bytes) || self.max_rel_error <= EXTRAPOLATION_LIMIT {
            return Ok(self.seconds(bytes));
        }
        let Self { max_rel_error, smallest, largest, .. } = *self;
        Err(Extrapolation { bytes, smallest, largest, max_rel_error })
    }
}

/// The line of least squares of relative errors before α and slope are kept from being negative, and what its intervals need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Free {
    /// seconds
    pub alpha: f64,
    /// seconds per byte
    pub slope: f64,
    /// Σ 1/median²
    weight: f64,
    /// weighted mean of the sizes, bytes
    center: f64,
    /// Σ (bytes − center)²/median²
    moment: f64,
}

impl Free {
    pub fn fit(points: &[Point]) -> Result<Self, FitError> {
        if let Some(point) = points.iter().find(|point| !point.is_timed()) {
            return Err(FitError::NotTimed { bytes: point.bytes });
        }
        let Some(first) = points.first() else { return Err(FitError::TooFewSizes(0)) };
        if points.iter().all(|point| point.bytes == first.bytes) {
            return Err(FitError::TooFewSizes(1));
        }
        let (mut weight, mut bytes, mut seconds) = (0.0, 0.0, 0.0);
        for point in points {
            let own = point.seconds.powi(2).recip();
            weight += own;
            bytes += own * point.bytes as f64;
            seconds += own * point.seconds;
        }
        let (center, level) = (bytes / weight, seconds / weight);
        let (mut moment, mut product) = (0.0, 0.0);
        for point in points {
            let (own, off) = (point.seconds.powi(2).recip(), point.bytes as f64 - center);
            moment += own * off * off;
            product += own * off * (point.seconds - level);
        }
        let slope = product / moment;
        Ok(Self { alpha: level - slope * center, slope, weight, center, moment })
    }

    /// How far α and the slope move when one median moves by a second.
    ///
    /// Derived from Σ (1 − line/median)/median = 0 and Σ bytes (1 − line/median)/median = 0, the medians in the weights included.
    pub fn influence(&self, point: &Point) -> (f64, f64) {
        let off = point.bytes as f64 - self.center;
        let line = self.alpha + self.slope * point.bytes as f64;
        let pull = (2.0 * line / point.seconds - 1.0) / point.seconds.powi(2);
        let slope = pull * off / self.moment;
        (pull / self.weight - self.center * slope, slope)
    }
}

/// Intervals of a line's two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineIntervals {
    /// seconds
    pub alpha: Interval,
    /// bytes per second
    pub bandwidth: Interval,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(bytes: u64, seconds: f64) -> Point {
        Point { bytes, seconds, n: 1, variance: None }
    }

    fn on_a_line(alpha: f64, bandwidth: f64, sizes: &[u64]) -> Vec<Point> {
        sizes.iter().map(|&bytes| point(bytes, alpha + bytes as f64 / bandwidth)).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    /// Sum of squared relative errors of a line through the points.
    fn loss(points: &[Point], alpha: f64, slope: f64) -> f64 {
        points.iter().map(|point| (1.0 - (alpha + slope * point.bytes as f64) / point.seconds).powi(2)).sum()
    }

    #[test]
    fn points_on_a_line_give_it_back() {
        let sizes: Vec<u64> = (0..9).map(|step| 4096 << (2 * step)).collect();
        let line = Line::fit(&on_a_line(57e-6, 53.8e9, &sizes)).unwrap();
        assert!(close(line.alpha, 57e-6) && close(line.bandwidth, 53.8e9), "{line:?}");
        assert!(line.max_rel_error < 1e-9);
        assert_eq!((line.smallest, line.largest), (4096, 1 << 28));
    }

    #[test]
    fn the_errors_are_relative() {
        // Three points (1 B, 1 s) (2 B, 2 s) (3 B, 4 s): with weights 1, 1/4 and 1/16 the weighted means are 27/21 bytes and 28/21
        // seconds, so the slope is (1·6·7 + ¼·15·14 + 1/16·36·56) / (1·6² + ¼·15² + 1/16·36²) = 220.5/173.25 = 14/11, α = −10/33.
        // That is negative, so the best line goes through the origin: (1 + 1 + 3/4)/(1 + 1 + 9/16) = 44/41 seconds a byte.
        let points = [point(1, 1.0), point(2, 2.0), point(3, 4.0)];
        let free = Free::fit(&points).unwrap();
        assert!(close(free.slope, 14.0 / 11.0) && close(free.alpha, -10.0 / 33.0), "{free:?}");
        let line = Line::fit(&points).unwrap();
        assert!(line.alpha.abs() < 1e-300 && close(line.bandwidth, 41.0 / 44.0), "{line:?}");
        // At 3 bytes the line gives 132/41 s against 4 s.
        assert!(close(line.max_rel_error, 32.0 / 164.0), "{line:?}");
    }

    #[test]
    fn larger_messages_that_took_no_longer_leave_a_constant() {
        let line = Line::fit(&[point(8, 2.0), point(64, 1.0)]).unwrap();
        // (1/2 + 1) / (1/4 + 1)
        assert!(close(line.alpha, 1.2) && line.bandwidth.is_infinite(), "{line:?}");
        assert!(close(line.max_rel_error, 0.4));
        assert!(close(line.predict(16).unwrap(), 1.2));
    }

    #[test]
    fn what_cannot_be_fitted_is_told() {
        assert_eq!(Line::fit(&[]), Err(FitError::TooFewSizes(0)));
        assert_eq!(Line::fit(&[point(8, 1.0), point(8, 2.0)]), Err(FitError::TooFewSizes(1)));
        assert_eq!(Line::fit(&[point(8, 1.0), point(9, 0.0)]), Err(FitError::NotTimed { bytes: 9 }));
        assert_eq!(Line::fit(&[point(8, f64::NAN), point(9, 1.0)]), Err(FitError::NotTimed { bytes: 8 }));
    }

    #[test]
    fn a_poor_line_does_not_speak_of_sizes_that_were_not_measured() {
        let poor = Line { alpha: 16e-6, bandwidth: 1534e9, max_rel_error: 0.77, smallest: 4096, largest: 1 << 28 };
        assert!(poor.predict(4096).is_ok() && poor.predict(1 << 28).is_ok());
        let refused = poor.predict(1 << 30).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "1073741824 bytes lie outside the measured sizes, 4096 to 268435456 bytes, and the fit misses by up to 77 %: measure that size"
        );
        assert!(poor.predict(4095).is_err());
        let fair = Line { max_rel_error: 0.25, ..poor };
        assert!(close(fair.predict(1 << 30).unwrap(), 16e-6 + 1_073_741_824.0 / 1534e9));
    }

    #[test]
    fn the_influence_of_a_median_is_what_moving_it_does() {
        let mut points = on_a_line(57e-6, 53.8e9, &[4096, 65536, 1 << 20, 1 << 24, 1 << 28]);
        points[2].seconds *= 1.3;
        points[4].seconds *= 0.8;
        let free = Free::fit(&points).unwrap();
        for moved in 0..points.len() {
            let (alpha, slope) = free.influence(&points[moved]);
            let step = points[moved].seconds * 1e-6;
            let mut there = points.clone();
            there[moved].seconds += step;
            let after = Free::fit(&there).unwrap();
            assert!(((after.alpha - free.alpha) / step - alpha).abs() < 1e-4 * alpha.abs().max(1e-3), "{moved}");
            assert!(((after.slope - free.slope) / step - slope).abs() < 1e-4 * slope.abs().max(1e-12), "{moved}");
        }
    }

    fn curves() -> impl Strategy<Value = Vec<Point>> {
        prop::collection::btree_map(0u64..1 << 30, 1e-7f64..1.0, 2..12)
            .prop_map(|points| points.into_iter().map(|(bytes, seconds)| point(bytes, seconds)).collect())
    }

    proptest! {
        #[test]
        fn no_allowed_line_is_better(points in curves(), alpha in 0.0f64..2.0, slope in 0.0f64..2.0) {
            let line = Line::fit(&points).unwrap();
            prop_assert!(line.alpha >= 0.0 && line.bandwidth > 0.0);
            let best = loss(&points, line.alpha, line.bandwidth.recip());
            let largest = points.iter().map(|point| point.bytes).max().unwrap() as f64;
            let slopes = [line.bandwidth.recip() * slope, slope / largest];
            for slope in slopes {
                for alpha in [line.alpha * alpha, alpha, 0.0] {
                    prop_assert!(loss(&points, alpha, slope) >= best * (1.0 - 1e-9));
                }
            }
        }

        #[test]
        fn the_order_of_sizes_and_the_unit_of_time_do_not_matter(points in curves(), unit in 1e-3f64..1e3) {
            let line = Line::fit(&points).unwrap();
            let other: Vec<Point> = points.iter().rev().map(|p| point(p.bytes, p.seconds * unit)).collect();
            let other = Line::fit(&other).unwrap();
            prop_assert!((other.alpha - line.alpha * unit).abs() <= 1e-6 * (line.alpha * unit).max(1e-9));
            prop_assert!((other.max_rel_error - line.max_rel_error).abs() <= 1e-6);
        }

        #[test]
        fn the_largest_error_bounds_every_measured_size(points in curves()) {
            let line = Line::fit(&points).unwrap();
            for point in &points {
                prop_assert!(line.relative_error(point).abs() <= line.max_rel_error);
                prop_assert!(line.predict(point.bytes).is_ok());
            }
        }
    }
}
