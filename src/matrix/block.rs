use super::sum::{mean, term};
use super::{Metric, Value};

/// What is kept of a square of cells; the diagonal does not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// the worst known value; NaN if there is none
    pub worst: f64,
    /// sender and receiver of the worst; `None` if there is none
    pub worst_at: Option<(u32, u32)>,
    /// the best known value; NaN if there is none
    pub best: f64,
    /// known values
    pub count: u32,
    pub missing: u32,
    pub waived: u32,
    pub timeout: u32,
    pub corrupt: u32,
    sum: f64,
}

impl Block {
    /// Nothing, as beyond the edge and on the diagonal.
    pub const EMPTY: Self =
        Self { worst: f64::NAN, worst_at: None, best: f64::NAN, count: 0, missing: 0, waived: 0, timeout: 0, corrupt: 0, sum: 0.0 };

    /// One cell off the diagonal.
    pub(super) fn of(metric: Metric, value: Value, at: (u32, u32)) -> Self {
        match value {
            Value::Missing => Self { missing: 1, ..Self::EMPTY },
            Value::Waived => Self { waived: 1, ..Self::EMPTY },
            Value::Timeout => Self { timeout: 1, ..Self::EMPTY },
            Value::Corrupt => Self { corrupt: 1, ..Self::EMPTY },
            Value::Known(value) => {
                Self { worst: value, worst_at: Some(at), best: value, count: 1, sum: term(metric, value), ..Self::EMPTY }
            }
        }
    }

    pub(super) fn merge(metric: Metric, parts: [Self; 4]) -> Self {
        let mut whole = Self::EMPTY;
        for part in parts {
            whole.missing += part.missing;
            whole.waived += part.waived;
            whole.timeout += part.timeout;
            whole.corrupt += part.corrupt;
            if part.count == 0 {
                continue;
            }
            if whole.count == 0 || metric.badness(part.worst) > metric.badness(whole.worst) {
                (whole.worst, whole.worst_at) = (part.worst, part.worst_at);
            }
            if whole.count == 0 || metric.badness(part.best) < metric.badness(whole.best) {
                whole.best = part.best;
            }
            whole.count += part.count;
            whole.sum += part.sum;
        }
        whole
    }

    /// Mean of the known values, harmonic for rates and geometric for ratios; NaN if there is none.
    pub fn mean(&self, metric: Metric) -> f64 {
        mean(metric, self.sum, self.count as usize)
    }

    /// Cells that were tried and have no value.
    pub const fn bad(&self) -> u32 {
        self.waived + self.timeout + self.corrupt
    }

    /// The one thing to show of this block: a failed cell before the worst value, that before a waived or missing one.
    pub fn shown(&self) -> Option<Value> {
        if self.corrupt > 0 {
            Some(Value::Corrupt)
        } else if self.timeout > 0 {
            Some(Value::Timeout)
        } else if self.count > 0 {
            Some(Value::Known(self.worst))
        } else if self.missing > 0 {
            Some(Value::Missing)
        } else if self.waived > 0 {
            Some(Value::Waived)
        } else {
            None
        }
    }
}
