use super::sum::{mean, term};
use super::{Metric, Value};

/// Which one of a block's values stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reduce {
    /// the worst, or what failed: one slow link stays visible
    #[default]
    Worst,
    /// the smallest
    Min,
    /// the largest
    Max,
    /// harmonic for rates, geometric for ratios
    Mean,
}

impl Reduce {
    /// Every way, in the order in which a key goes through them.
    pub const ALL: [Self; 4] = [Self::Worst, Self::Min, Self::Max, Self::Mean];

    /// The name on the screen and in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }

    /// The way after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Worst => Self::Min,
            Self::Min => Self::Max,
            Self::Max => Self::Mean,
            Self::Mean => Self::Worst,
        }
    }
}

/// What is kept of a block of cells; the diagonal does not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// the smallest known value; NaN if there is none
    pub min: f64,
    /// the largest known value; NaN if there is none
    pub max: f64,
    /// the worst known value, which is one of these two; NaN if there is none
    pub worst: f64,
    /// sender and receiver of the worst; `None` if there is none
    pub worst_at: Option<(u32, u32)>,
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
    pub const EMPTY: Self = Self {
        min: f64::NAN,
        max: f64::NAN,
        worst: f64::NAN,
        worst_at: None,
        count: 0,
        missing: 0,
        waived: 0,
        timeout: 0,
        corrupt: 0,
        sum: 0.0,
    };

    /// One cell off the diagonal.
    pub(super) fn of(metric: Metric, value: Value, at: (u32, u32)) -> Self {
        match value {
            Value::Missing => Self { missing: 1, ..Self::EMPTY },
            Value::Waived => Self { waived: 1, ..Self::EMPTY },
            Value::Timeout => Self { timeout: 1, ..Self::EMPTY },
            Value::Corrupt => Self { corrupt: 1, ..Self::EMPTY },
            Value::Known(value) => {
                Self { min: value, max: value, worst: value, worst_at: Some(at), count: 1, sum: term(metric, value), ..Self::EMPTY }
            }
        }
    }

    /// Take in another block. Of values that are equally bad the smaller one counts, and of equal ones the first.
    pub(super) fn add(&mut self, metric: Metric, part: &Self) {
        self.missing += part.missing;
        self.waived += part.waived;
        self.timeout += part.timeout;
        self.corrupt += part.corrupt;
        if part.count == 0 {
            return;
        }
        let (own, other) = (metric.badness(self.worst), metric.badness(part.worst));
        if self.count == 0 || other > own || other >= own && part.worst < self.worst {
            (self.worst, self.worst_at) = (part.worst, part.worst_at);
        }
        // NaN loses against every number.
        (self.min, self.max) = (self.min.min(part.min), self.max.max(part.max));
        self.count += part.count;
        self.sum += part.sum;
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

    /// The same by another way to reduce, which shows a known value wherever there is one.
    pub fn reduced(&self, reduce: Reduce, metric: Metric) -> Option<Value> {
        let value = match reduce {
            Reduce::Worst => return self.shown(),
            _ if self.count == 0 => return self.shown(),
            Reduce::Min => self.min,
            Reduce::Max => self.max,
            Reduce::Mean => self.mean(metric),
        };
        Some(Value::Known(value))
    }
}

/// A stored block: half the size, since a table of 4,096 ranks has more than a million.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    min: f64,
    max: f64,
    sum: f64,
    /// the worst cell, `from * n + to`
    worst_at: u32,
    count: u32,
    missing: u32,
    waived: u32,
    timeout: u32,
    corrupt: u32,
}

impl Node {
    pub(super) const EMPTY: Self =
        Self { min: f64::NAN, max: f64::NAN, sum: 0.0, worst_at: 0, count: 0, missing: 0, waived: 0, timeout: 0, corrupt: 0 };

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn pack(block: &Block, n: usize) -> Self {
        let Block { min, max, sum, count, missing, waived, timeout, corrupt, .. } = *block;
        let worst_at = block.worst_at.map_or(0, |(from, to)| from * n as u32 + to);
        Self { min, max, sum, worst_at, count, missing, waived, timeout, corrupt }
    }

    pub(super) fn unpack(&self, metric: Metric, n: usize) -> Block {
        let Self { min, max, sum, count, missing, waived, timeout, corrupt, .. } = *self;
        let worst = if metric.badness(max) > metric.badness(min) { max } else { min };
        let worst_at = (count > 0).then(|| (self.worst_at / n as u32, self.worst_at % n as u32));
        Block { min, max, worst, worst_at, count, missing, waived, timeout, corrupt, sum }
    }
}
