//! Samples -> summaries. No I/O.

mod bootstrap;
#[cfg(test)]
mod coverage;
mod line;
mod stats;

pub use bootstrap::Confidence;
pub use line::{EXTRAPOLATION_LIMIT, Extrapolation, FitError, Line, LineIntervals, Point};
pub use stats::{FEWEST, Interval, enough, harmonic_mean, median, median_interval, minimum, outliers, relative_half_width};
