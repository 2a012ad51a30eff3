//! What a person asked to be measured, and in which order: patterns, sizes, repeats -> rounds of probes. No I/O.

mod check;
mod coverage;
mod estimate;
mod fans;
mod files;
mod hosts;
mod knowledge;
#[cfg(test)]
pub(crate) mod made;
mod rounds;
mod sampled;
mod settings;
mod target;
mod work;

pub use coverage::coverage;
pub use estimate::{Estimate, estimate, lanes};
pub use fans::widths;
pub use files::{FileError, parse_pattern_file, parse_peers_file};
pub(crate) use files::{fields, lines};
pub use knowledge::{Hosts, Knowledge, Load, Rules, Shared};
pub use rounds::{Item, Pass};
pub use settings::{Buffers, FEWEST, MOST_REPEATS, Peers, SettingsError, SweepSettings, Transfer, parse_gpus};
pub use target::{Cell, Group, Target};
pub use work::{Flows, Work};

use serde::{Deserialize, Serialize};

/// One target and one size: what is sent to the ranks as one piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// number in the order of the session, from 0
    pub id: u64,
    #[serde(flatten)]
    pub target: Target,
    /// of a group: its transfers, (sender, receiver) each, which run at the same time
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<(usize, usize)>,
    /// size of one message, bytes
    pub bytes: u64,
    /// number of the first repeat of this probe within its target, size and take
    pub first_repeat: u32,
    /// repeats to time
    pub repeats: u32,
    /// 0 for the sweep's own measurement, 1.. for each re-measurement of the target
    #[serde(default)]
    pub take: u32,
    /// true when no other probe runs at the same time
    #[serde(default = "yes")]
    pub isolated: bool,
    /// number of the round; probes with the same one run at the same time
    #[serde(default)]
    pub round: u64,
}

/// What a session has of a target and size already: the good repeats of its newest take.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub target: Target,
    /// size of one message, bytes
    pub bytes: u64,
    pub take: u32,
    /// numbers of the repeats
    pub repeats: Vec<u32>,
    /// seconds of a message, one a repeat: of a pair, of both directions of `duplex`, of a group until the last one is through
    pub times: Vec<Vec<f64>>,
    /// true if another probe ran at the same time as one of them
    pub together: bool,
}

/// Why a target gets no further repeats of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enough {
    /// the interval of the median is as narrow as was asked for
    Interval,
    /// it has as many repeats as was asked for, at most
    Repeats,
    /// the time is used up
    Budget,
}

const fn yes() -> bool {
    true
}

impl Probe {
    /// A probe of a pair, alone.
    pub const fn pair(id: u64, cell: Cell, bytes: u64, repeats: u32) -> Self {
        Self { id, target: Target::Pair(cell), flows: Vec::new(), bytes, first_repeat: 0, repeats, take: 0, isolated: true, round: 0 }
    }

    /// Its transfers, which run at the same time: (sender, receiver) each. A local copy has one from a rank to itself.
    pub fn flows(&self) -> Vec<(usize, usize)> {
        match &self.target {
            Target::Pair(_) => self.target.cells().into_iter().map(|cell| (cell.from, cell.to)).collect(),
            Target::Group(_) => self.flows.clone(),
        }
    }

    /// The ranks that take part, ascending, each once.
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = self.flows().into_iter().flat_map(|(from, to)| [from, to]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// As a person would say it: `peer 1→2 64 MiB`.
    pub fn describe(&self) -> String {
        let size = crate::units::format_size(self.bytes);
        match &self.target {
            Target::Pair(Cell { pattern, from, to }) if from == to => format!("{} {from} {size}", pattern.name()),
            Target::Pair(cell) => {
                let arrow = if cell.pattern == crate::sample::Pattern::Duplex { '↔' } else { '→' };
                format!("{} {}{arrow}{} {size}", cell.pattern.name(), cell.from, cell.to)
            }
            Target::Group(group) => format!("{} {size}", group.describe()),
        }
    }
}
