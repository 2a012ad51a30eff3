//! N x N tables of one metric: values, row and column summaries, and a pyramid whose blocks end where hosts and racks do. No I/O.
//!
//! `grid[sender][receiver]` always: bytes flow from the row to the column. A new value costs O(log N), however large N is.

mod axis;
mod block;
mod domain;
mod grid;
mod metric;
mod packed;
mod sum;
#[cfg(test)]
mod tests;

pub use axis::{Axes, Edge, Tier};
pub use block::{Block, Reduce};
pub use domain::{Domain, Scale};
pub use grid::Grid;
pub use metric::{Metric, Unit};
pub use sum::Summary;

/// What is known of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Value {
    /// not measured yet
    #[default]
    Missing,
    /// not run, for a reason that its samples tell
    Waived,
    /// did not complete in its time
    Timeout,
    /// complete, but with the wrong bytes
    Corrupt,
    /// in the metric's own unit: bytes per second, seconds, a ratio or ln of one
    Known(f64),
}

impl Value {
    /// The number, if there is one.
    pub const fn known(self) -> Option<f64> {
        if let Self::Known(value) = self { Some(value) } else { None }
    }

    /// ln(B(i→j)/B(j→i)) from the bandwidths of the two directions. Where one is not known, what is wrong with it:
    /// the worse of the two states.
    pub fn asymmetry(forth: Self, back: Self) -> Self {
        Self::of_two(forth, back, |forth, back| (forth / back).ln())
    }

    /// What two cells together say. Where one has no number, what is wrong with it: the worse of the two states.
    pub fn of_two(a: Self, b: Self, number: impl FnOnce(f64, f64) -> f64) -> Self {
        match (a, b) {
            (Self::Known(a), Self::Known(b)) => Self::Known(number(a, b)),
            _ => [Self::Corrupt, Self::Timeout, Self::Waived].into_iter().find(|&bad| a == bad || b == bad).unwrap_or(Self::Missing),
        }
    }
}
