//! Ways to bring a model from trainers to engines, as traffic between ranks.
//!
//! ```text
//! direct                  the first trainer sends the whole model to every engine
//! direct, spread          each engine takes the whole model from a trainer of its own
//! relay                   once across to an engine of each host, which sends it on inside
//! sharded direct          trainer i sends its shard to every engine
//! sharded, then gather    once across in shards, then every engine reads what it lacks from its neighbours, or a ring passes it on
//! pipelined relay, trees  in slices, each sent on as soon as it is there
//! ```
//!
//! Each gives every engine each byte exactly once. The model is one row of bytes: [`crate::plan::Flow::offset`] is an address in it.

mod broadcast;
mod direct;
mod gather;
mod job;
mod priced;
mod rank;
mod write;

#[cfg(test)]
mod tests;

pub use job::{Held, Job};
pub use priced::Ground;
pub use rank::{Ranked, Ranking, order, rank, rank_telling};

use thiserror::Error;

use super::Traffic;
use write::Writer;

/// Why there is no such traffic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StrategyError {
    /// of the job itself: names what is wrong and what was expected
    #[error("{0}")]
    Job(String),
    #[error("{strategy}: no trainer holds the whole model, each has its shard only")]
    NeedsWhole { strategy: String },
}

/// A way to bring a model from trainers to engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    Direct,
    Spread,
    Relay,
    ShardedDirect,
    /// across in shards; then every engine reads what it lacks from those of its host that have it, all at once
    ShardedPlan,
    /// the same, the shards passed on around a ring of the host's engines
    ShardedRing,
    /// so many slices; the relay's sends begin when its first slice is there
    PipelinedRelay {
        slices: u64,
    },
    /// over hosts, and inside each: every one sends each slice to `arity` others as soon as it has it. 1 is a chain
    Tree {
        arity: usize,
        slices: u64,
    },
}

impl Strategy {
    /// All of them, with so many slices where something is sliced.
    pub fn all(slices: u64) -> Vec<Self> {
        let trees = [1, 2, 4].map(|arity| Self::Tree { arity, slices });
        let mut all = vec![Self::Direct, Self::Spread, Self::Relay, Self::ShardedDirect, Self::ShardedPlan, Self::ShardedRing];
        all.push(Self::PipelinedRelay { slices });
        all.extend(trees);
        all
    }

    /// The same with another number of slices; itself where nothing is sliced.
    #[must_use]
    pub const fn sliced(self, slices: u64) -> Self {
        match self {
            Self::PipelinedRelay { .. } => Self::PipelinedRelay { slices },
            Self::Tree { arity, .. } => Self::Tree { arity, slices },
            whole => whole,
        }
    }

    /// Number of slices, where it has some.
    pub const fn slices(self) -> Option<u64> {
        match self {
            Self::PipelinedRelay { slices } | Self::Tree { slices, .. } => Some(slices),
            _ => None,
        }
    }

    pub fn name(self) -> String {
        let sliced = |what: &str, slices: u64| format!("{what}, {slices} slice{}", if slices == 1 { "" } else { "s" });
        match self {
            Self::Direct => "direct".to_owned(),
            Self::Spread => "direct, spread over trainers".to_owned(),
            Self::Relay => "relay".to_owned(),
            Self::ShardedDirect => "sharded direct".to_owned(),
            Self::ShardedPlan => "sharded, then a plan inside hosts".to_owned(),
            Self::ShardedRing => "sharded, then a ring all-gather".to_owned(),
            Self::PipelinedRelay { slices } => sliced("pipelined relay", slices),
            Self::Tree { arity: 1, slices } => sliced("chain", slices),
            Self::Tree { arity: 2, slices } => sliced("binary tree", slices),
            Self::Tree { arity, slices } => sliced(&format!("{arity}-ary tree"), slices),
        }
    }

    /// Its name as part of a file name: letters, digits and hyphens.
    pub fn slug(self) -> String {
        let name = self.name();
        let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        words.join("-")
    }

    /// The flows of it.
    pub fn traffic(self, job: &Job) -> Result<Traffic, StrategyError> {
        job.check().map_err(StrategyError::Job)?;
        let mut writer = Writer::new(self.name(), job);
        match (self, job.whole()) {
            (Self::ShardedDirect, _) => direct::sharded(&mut writer),
            (Self::ShardedPlan, _) => gather::by_plan(&mut writer),
            (Self::ShardedRing, _) => gather::by_ring(&mut writer),
            (_, []) => return Err(StrategyError::NeedsWhole { strategy: self.name() }),
            (Self::Direct, &[root, ..]) => direct::direct(&mut writer, root),
            (Self::Spread, whole) => direct::spread(&mut writer, whole),
            (Self::Relay, whole) => broadcast::relay(&mut writer, whole, usize::MAX, 1),
            (Self::PipelinedRelay { slices }, whole) => broadcast::relay(&mut writer, whole, usize::MAX, slices),
            (Self::Tree { arity, slices }, whole) => broadcast::relay(&mut writer, whole, arity, slices),
        }
        Ok(writer.finish())
    }
}
