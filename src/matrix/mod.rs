//! N x N tables of one metric: values, row and column summaries, and a pyramid that keeps the worst. No I/O.
//!
//! `grid[sender][receiver]` always: bytes flow from the row to the column. A new value costs O(log N), however large N is.

mod block;
mod domain;
mod grid;
mod metric;
mod sum;

pub use block::Block;
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
    /// in the metric's own unit: bytes per second, seconds, or ln of a ratio
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
        match (forth, back) {
            (Self::Known(a), Self::Known(b)) => Self::Known((a / b).ln()),
            _ => [Self::Corrupt, Self::Timeout, Self::Waived].into_iter().find(|&bad| forth == bad || back == bad).unwrap_or(Self::Missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_small() {
        assert!(size_of::<Value>() <= 16);
    }

    #[test]
    fn asymmetry_is_antisymmetric_and_passes_states_on() {
        let (a, b) = (Value::Known(8e9), Value::Known(54e9));
        let (forth, back) = (Value::asymmetry(a, b).known().unwrap(), Value::asymmetry(b, a).known().unwrap());
        assert!((forth + back).abs() < 1e-12 && forth < -1.9);
        assert_eq!(Value::asymmetry(a, Value::Timeout), Value::Timeout);
        assert_eq!(Value::asymmetry(Value::Waived, Value::Corrupt), Value::Corrupt);
        assert_eq!(Value::asymmetry(a, Value::Missing), Value::Missing);
    }
}
