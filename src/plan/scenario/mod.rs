//! Benchmark scenarios by name, made for the ranks and hosts that there are: the ones that window transfers and weight syncs are
//! compared with (the thread on windows across hosts, 2 x 8 H20; the weight-sync thread before it). One of that thread's rows is not
//! here: shards and then a library's all-gather, which is one call in a group of its own and no plan. `sync_ring` passes the shards on
//! by point-to-point messages, each rank to the next, and its times are not that row's.
//!
//! ```text
//! within a host      peer pairs fan_out fan_in bipartite_2x2 bipartite_4x4 ring strided       GB/s of all transfers together
//! across two hosts   the same with an x before: xpeer, ...; xbipartite as wide as both are; mixed_fan_out
//! weight sync        sync_direct sync_relay sync_sharded sync_plan sync_ring                 ms until all engines have the model
//! incast             1, 2, 4, 8 ranks of other hosts into one                                 GB/s
//! staging            sync_direct and sync_sharded with other staging budgets                  ms
//! ```
//!
//! A case is one row of a table: plans that say who sends how much to whom. How their bytes go is the method's: a staged one cuts what
//! one rank sends another into messages of its budget, a window takes it as one.

mod cases;
mod ground;
mod made;
#[cfg(test)]
mod tests;

pub use ground::Ground;
pub use made::{Case, Plan};

use super::strategy::Strategy;

/// Bytes of each transfer when nobody says otherwise: 4, 64 and 256 MiB.
pub const SIZES: [u64; 3] = [4 << 20, 64 << 20, 256 << 20];
/// Bytes of a model when nobody says otherwise.
pub const MODEL: u64 = 8 << 30;
/// Staging budgets that are compared, bytes.
pub const BUDGETS: [u64; 3] = [8 << 20, 64 << 20, 256 << 20];
/// Senders of an incast.
pub const SENDERS: [usize; 4] = [1, 2, 4, 8];

/// A table of rows that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    OneHost,
    AcrossHosts,
    WeightSync,
    Incast,
    Staging,
}

impl Table {
    pub const ALL: [Self; 5] = [Self::OneHost, Self::AcrossHosts, Self::WeightSync, Self::Incast, Self::Staging];

    /// The name used in files and on the command line, where it stands for all its scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneHost => "one_host",
            Self::AcrossHosts => "across_hosts",
            Self::WeightSync => "weight_sync",
            Self::Incast => "incast",
            Self::Staging => "staging",
        }
    }

    /// True if figures are milliseconds; otherwise GB/s of all transfers together.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::WeightSync | Self::Staging)
    }
}

/// A scenario; `across` two hosts or within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// one pair at a time: the median of all of a host; across, of each rank and its partner on the other host
    Peer {
        across: bool,
    },
    /// every rank in one pair, all pairs at once
    Pairs {
        across: bool,
    },
    FanOut {
        across: bool,
    },
    FanIn {
        across: bool,
    },
    /// each of so many ranks to each of as many others; `None`: as many as both hosts have
    Bipartite {
        width: Option<usize>,
        across: bool,
    },
    /// every rank to the next one; across, each next one on the other host
    Ring {
        across: bool,
    },
    /// one to all others, those of its host and of the other
    MixedFanOut,
    /// rows on each rank -> columns on each: blocks that are strided in their source
    Strided {
        across: bool,
    },
    /// a model from the ranks of one host to those of another
    Sync(Strategy),
    Incast,
    /// the same syncs with other staging budgets
    Staging,
}

/// Weight syncs, by name.
const SYNCS: [(&str, Strategy); 5] = [
    ("sync_direct", Strategy::Direct),
    ("sync_relay", Strategy::Relay),
    ("sync_sharded", Strategy::ShardedDirect),
    ("sync_plan", Strategy::ShardedPlan),
    ("sync_ring", Strategy::ShardedRing),
];

impl Scenario {
    /// All of them, in the order of their tables.
    pub fn all() -> Vec<Self> {
        let side = |across: bool| {
            let mut own = vec![Self::Peer { across }, Self::FanOut { across }, Self::FanIn { across }, Self::Pairs { across }];
            own.extend([Some(2), Some(4)].map(|width| Self::Bipartite { width, across }));
            if across {
                own.push(Self::Bipartite { width: None, across });
            }
            own.push(Self::Ring { across });
            if across {
                own.push(Self::MixedFanOut);
            }
            own.push(Self::Strided { across });
            own
        };
        let syncs = SYNCS.into_iter().map(|(_, strategy)| Self::Sync(strategy));
        side(false).into_iter().chain(side(true)).chain(syncs).chain([Self::Incast, Self::Staging]).collect()
    }

    /// The name used on the command line, in tables and in files.
    pub fn name(self) -> String {
        let side = |name: &str, across: bool| format!("{}{name}", if across { "x" } else { "" });
        match self {
            Self::Peer { across } => side("peer", across),
            Self::Pairs { across } => side("pairs", across),
            Self::FanOut { across } => side("fan_out", across),
            Self::FanIn { across } => side("fan_in", across),
            Self::Bipartite { width: Some(width), across } => side(&format!("bipartite_{width}x{width}"), across),
            Self::Bipartite { width: None, across } => side("bipartite", across),
            Self::Ring { across } => side("ring", across),
            Self::MixedFanOut => "mixed_fan_out".to_owned(),
            Self::Strided { across } => side("strided", across),
            Self::Sync(strategy) => {
                let known = SYNCS.into_iter().find(|(_, own)| *own == strategy);
                known.map_or_else(|| format!("sync_{}", strategy.slug()), |(name, _)| name.to_owned())
            }
            Self::Incast => "incast".to_owned(),
            Self::Staging => "staging".to_owned(),
        }
    }

    /// In which table its rows stand.
    pub const fn table(self) -> Table {
        match self {
            Self::Peer { across }
            | Self::Pairs { across }
            | Self::FanOut { across }
            | Self::FanIn { across }
            | Self::Bipartite { across, .. }
            | Self::Ring { across }
            | Self::Strided { across } => {
                if across {
                    Table::AcrossHosts
                } else {
                    Table::OneHost
                }
            }
            Self::MixedFanOut => Table::AcrossHosts,
            Self::Sync(_) => Table::WeightSync,
            Self::Incast => Table::Incast,
            Self::Staging => Table::Staging,
        }
    }

    /// What is run, in a line.
    pub fn about(self) -> String {
        let between = |across: bool, inside: &str, over: &str| (if across { over } else { inside }).to_owned();
        match self {
            Self::Peer { across } => between(
                across,
                "one pair at a time: median of all ordered pairs of a host",
                "one pair at a time: median of each rank and its partner on the other host, both ways",
            ),
            Self::Pairs { across } => {
                between(across, "all ranks of a host in pairs, all pairs at once", "rank i of a host to rank i of the other, all at once")
            }
            Self::FanOut { across } => between(across, "one rank to all others of its host", "one rank to all of the other host"),
            Self::FanIn { across } => between(across, "all others of a host to one rank", "all ranks of a host to one of the other"),
            Self::Bipartite { width, across } => {
                let many = width.map_or_else(|| "all ranks".to_owned(), |width| format!("{width} ranks"));
                let others = width.map_or_else(|| "all".to_owned(), |width| width.to_string());
                format!("each of {many} to each of {others} {}", if across { "of the other host" } else { "others of the host" })
            }
            Self::Ring { across } => between(across, "every rank of a host to the next one", "a ring of which every hop leaves the host"),
            Self::MixedFanOut => "one rank to all others of its host and all of the other host".to_owned(),
            Self::Strided { across } => format!(
                "a matrix in rows on all ranks of {} -> in columns on them: strided blocks",
                if across { "both hosts" } else { "a host" }
            ),
            Self::Sync(strategy) => format!(
                "a model from the ranks of a host to all of another: {}",
                match strategy {
                    Strategy::Direct => "the first one sends everything to each",
                    Strategy::Relay => "once across, then from there to the others",
                    Strategy::ShardedDirect => "each sends its shard to each",
                    Strategy::ShardedPlan => "shard i to rank i, then each reads the rest from the others of its host",
                    Strategy::ShardedRing =>
                        "shard i to rank i, then each passes them on to the next of its host (no library's all-gather)",
                    _ => "another strategy",
                }
            ),
            Self::Incast => "1, 2, 4 and 8 ranks of other hosts into one".to_owned(),
            Self::Staging => "sync_direct and sync_sharded with staging budgets of 8, 64 and 256 MiB".to_owned(),
        }
    }

    /// A scenario by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|own| own.name() == name)
    }
}

/// How much is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amounts {
    /// of each transfer, bytes, one row each
    pub sizes: Vec<u64>,
    /// of the model of a weight sync, bytes; each sender of an incast has an eighth, a strided matrix a sixteenth and a quarter of it
    pub model: u64,
}

impl Default for Amounts {
    fn default() -> Self {
        Self { sizes: SIZES.to_vec(), model: MODEL }
    }
}

/// A row that these ranks cannot run, and what it would need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// of the row
    pub pattern: String,
    /// in words: what it needs, and what there is
    pub why: String,
}
