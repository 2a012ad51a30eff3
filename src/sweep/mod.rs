//! What a person asked to be measured, and in which order: patterns, sizes, repeats -> probes. No I/O.

mod estimate;
mod plan;
mod settings;

pub use estimate::{Estimate, estimate};
pub use plan::{Cell, Sweep};
pub use settings::{Buffers, MOST_REPEATS, SettingsError, SweepSettings};

use serde::{Deserialize, Serialize};

use crate::sample::Pattern;

/// One pattern, its ranks and one size: what is sent to the ranks as one piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// number in the order of the session, from 0
    pub id: u64,
    pub pattern: Pattern,
    /// sending rank
    pub from: usize,
    /// receiving rank
    pub to: usize,
    /// size of one message, bytes
    pub bytes: u64,
    /// number of the first repeat of this probe within its cell, size and take
    pub first_repeat: u32,
    /// repeats to time
    pub repeats: u32,
    /// 0 for the sweep's own measurement, 1.. for each re-measurement of the cell
    #[serde(default)]
    pub take: u32,
}

impl Probe {
    /// The ranks that take part, each once.
    pub fn ranks(&self) -> Vec<usize> {
        if self.from == self.to { vec![self.from] } else { vec![self.from, self.to] }
    }

    /// As a person would say it: `peer 1→2 64 MiB`.
    pub fn describe(&self) -> String {
        let size = crate::units::format_size(self.bytes);
        if self.from == self.to {
            format!("{} {} {size}", self.pattern.name(), self.from)
        } else {
            format!("{} {}→{} {size}", self.pattern.name(), self.from, self.to)
        }
    }
}
