//! A machine described: who sits where, what every path gives, what flows share, and what is broken. Pure; text comes as `&str`.
//!
//! The simulator takes its truth from here, the planner of rounds what may run at once, the replay its predicted times. Routes are worked
//! out when they are asked for; nothing is stored for each pair unless the file gives a matrix.
//!
//! Three kinds of limits, after method.md ("The resource model"): a pair's own link, a fixed capacity, and an endpoint that serves one
//! flow after another. [`shares`] divides them, [`completions`] lets transfers run to their ends.

mod class;
mod describe;
mod fault;
mod fluid;
mod layout;
mod load;
mod machine;
mod noise;
mod parse;
mod resource;
mod route;
mod rule;
mod share;
mod shipped;
mod source;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use class::Class;
pub use fault::LinkFault;
pub use fluid::{Transfer, completions, stage_bound};
pub use layout::Unit;
pub use load::Load;
pub use noise::{Noise, NoiseKind};
pub use resource::{Concurrency, Direction, Resource, ResourceKind};
pub use route::{Demand, Route};
pub use rule::{Breakpoint, Truth};
pub use share::{Bound, Flow, ResourceId, Share, Use, shares};
pub use source::FabricError;

use fault::{Fault, FaultKind};
use layout::Layout;
use machine::Parts;
use resource::{Capacity, Meaning, Numbering, Shared, Trunk};
use rule::Rule;

use crate::topology::{Placement, Topology};

/// One pair's own figures.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PairRule {
    rate: f64,
    alpha: Option<f64>,
}

/// A machine, as a fabric file describes it. Ranks are numbered host by host; every rank asked about must be below [`Self::world`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    name: String,
    about: String,
    seed: u64,
    layout: Layout,
    /// at most one for each class
    rules: Vec<Rule>,
    /// `[from * world + to]`, bytes per second, where the file gives a matrix
    matrix: Option<Vec<f64>>,
    pairs: BTreeMap<(usize, usize), PairRule>,
    shared: Vec<Shared>,
    trunks: Vec<Trunk>,
    /// what hosts are made of, where the file says
    parts: Option<Parts>,
    numbering: Numbering,
    faults: Vec<Fault>,
    noise: Option<Noise>,
    /// of each rank, bytes
    memory: u64,
    /// of each rank, bytes; 0 when not told
    cache: u64,
}

impl Fabric {
    /// Read a fabric file's text; `name` is the file's, for errors, and the fabric's.
    pub fn parse(text: &str, name: &str) -> Result<Self, FabricError> {
        parse::fabric(text, name)
    }

    /// The name it was parsed under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What machine this is, in a sentence.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Seed of all that is left to chance.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.layout.world()
    }

    /// The same machine with other noise, or none.
    #[must_use]
    pub const fn with_noise(mut self, noise: Option<Noise>) -> Self {
        self.noise = noise;
        self
    }

    /// The noise of measured times, if any.
    pub const fn noise(&self) -> Option<Noise> {
        self.noise
    }

    /// Where the ranks sit, as real ranks would tell it.
    pub fn topology(&self) -> Topology {
        let on_host = self.layout.ranks_per_host;
        let ranks = (0..self.world())
            .map(|rank| Placement {
                rank,
                host: self.layout.hosts[self.layout.host_of(rank)].clone(),
                pid: 0,
                cores: vec![rank % on_host],
                numa: self.layout.socket_of(rank),
                // A host's, as a system tells it.
                memory_available: self.memory.saturating_mul(on_host as u64),
                memory_total: self.memory.saturating_mul(on_host as u64),
                cache: self.cache,
                gpu: self.parts.is_some().then_some(rank % on_host),
                rack: self.layout.racks.is_some().then(|| self.layout.rack_of(rank)),
            })
            .collect();
        Topology { ranks, hardware: self.hardware() }
    }

    /// What a resource is; `None` for a number that this fabric never gave out.
    pub fn resource(&self, id: ResourceId) -> Option<Resource> {
        let meaning = self.numbering.meaning(id)?;
        Some(match meaning {
            Meaning::Shared { entry, unit, entering } => {
                let entry = &self.shared[entry];
                let side = match entry.direction {
                    Direction::In => "into",
                    Direction::Each if entering => "into",
                    Direction::Out | Direction::Each => "out of",
                    Direction::Both => "of",
                    Direction::Within => "in",
                };
                let (kind, capacity) = match &entry.capacity {
                    Capacity::Rate(rate) => (ResourceKind::Fixed, *rate),
                    Capacity::TimeShared(concurrency) => (ResourceKind::TimeShared, concurrency.at(2)),
                };
                Resource { name: format!("{} {side} {}", entry.name, self.layout.unit_name(entry.per, unit)), kind, capacity }
            }
            Meaning::Trunk { trunk, back } => {
                let trunk = &self.trunks[trunk];
                let name = if back { format!("{} (back)", trunk.name) } else { trunk.name.clone() };
                Resource { name, kind: ResourceKind::Fixed, capacity: trunk.rates[usize::from(back)] }
            }
            Meaning::Duplex { rank, rule } => {
                let rule = &self.rules[rule];
                let name = format!("{} both ways at rank {rank}", rule.class.name());
                Resource { name, kind: ResourceKind::Duplex, capacity: rule.duplex }
            }
            Meaning::Pair { from, to } => {
                Resource { name: format!("link {from} to {to}"), kind: ResourceKind::Pair, capacity: self.truth(from, to).rate }
            }
        })
    }

    /// How the link misbehaves now and then or for good; a direction that is always slow is part of [`Self::truth`].
    pub fn link_fault(&self, from: usize, to: usize) -> LinkFault {
        let mut found = LinkFault::default();
        for fault in self.faults.iter().filter(|fault| fault.strikes(from, to)) {
            match fault.kind {
                FaultKind::Dead => found.dead = true,
                FaultKind::Flaky { probability, factor } => found.flaky = Some((probability, factor)),
                FaultKind::Slow { .. } | FaultKind::Hang { .. } | FaultKind::Narrow { .. } => {}
            }
        }
        found
    }

    /// After how many of its probes a rank stops answering, if it does.
    pub fn hangs(&self, rank: usize) -> Option<u64> {
        self.faults.iter().find_map(|fault| match fault.kind {
            FaultKind::Hang { after } if fault.from.as_ref().is_some_and(|ranks| ranks.binary_search(&rank).is_ok()) => Some(after),
            _ => None,
        })
    }
}
