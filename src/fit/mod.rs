//! Samples -> summaries and fits. No I/O.
//!
//! [`Observations`] are plain times with what they belong to; [`Observations::fit`] makes every fit of them: per rank, pair,
//! fan, relay and path class, each α + bytes/bandwidth with its intervals, its largest error and its protocol breakpoints.
//! [`Fit::of`] is one curve's.

mod bootstrap;
#[cfg(test)]
mod coverage;
mod fans;
mod fits;
pub mod identify;
mod key;
mod keyed;
mod line;
mod observe;
mod segments;
mod stats;
#[cfg(test)]
mod tests;

pub use bootstrap::Confidence;
pub use fans::{FanRate, effective_concurrency};
pub use fits::Fits;
pub use key::{Fan, Key, Kind};
pub use keyed::{Fit, Segment, Spread};
pub use line::{EXTRAPOLATION_LIMIT, Extrapolation, FitError, Line, LineIntervals, Point};
pub use observe::{Flow, Observation, Observations};
pub use stats::{FEWEST, Interval, median, median_interval, outliers, outliers_about};
