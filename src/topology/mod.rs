//! Where ranks sit and what lies between them. No I/O; `discover` fills it in.

mod bound;
pub mod efficiency;
mod gpu_name;
mod gpu_state;
pub mod hardware;
mod judge;
mod label;
mod link;
mod path;
mod pcie;
mod racks;
mod route;
mod router;
mod units;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use bound::{Bound, CudaDevice, find_gpu};
pub use efficiency::Efficiency;
pub use gpu_name::GpuName;
pub use gpu_state::{GpuRange, GpuState};
pub use hardware::Hardware;
use hardware::PciKind;
pub use label::PathLabel;
pub use link::{Doubt, Reading, reading};
pub use path::{label, links_between};
pub use pcie::{Lanes, PciAddress, PcieLink};
pub use racks::Racks;
pub use route::{Flag, Hop, HopKind, Route, name, nearest_port, way};
pub use router::Router;
pub use units::{Level, Unit, Units};

/// What one rank sits on, as its own process sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// rank in the job, from 0
    pub rank: usize,
    /// host name, control characters removed
    pub host: String,
    /// process id on that host
    pub pid: u32,
    /// logical processors this rank may run on, ascending
    pub cores: Vec<usize>,
    /// NUMA node of those cores; `None` when they span several or the system does not say
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<usize>,
    /// memory that can be allocated here now, bytes (`MemAvailable`, or what the control group leaves)
    pub memory_available: u64,
    /// memory of the host, bytes
    pub memory_total: u64,
    /// last-level cache that the cores share, bytes; 0 when the system does not say
    #[serde(default)]
    pub cache: u64,
    /// the GPU whose memory it moves, an index in [`Hardware::gpus`] of its host; `None` for host memory
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
    /// number of the rack that its host stands in, where somebody tells
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<usize>,
}

/// How far apart two ranks are, as samples and fits are keyed. What hardware lies between them is a [`PathLabel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathClass {
    /// within one rank
    Local,
    /// between two ranks of one host
    IntraNode,
    /// between hosts
    InterNode,
}

impl PathClass {
    /// The name used in files and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::IntraNode => "intra_node",
            Self::InterNode => "inter_node",
        }
    }
}

/// The ranks of a job and where they sit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// one entry a rank, in rank order
    pub ranks: Vec<Placement>,
    /// what hosts are made of, those that told it; at most one entry a host
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<Hardware>,
}

impl Topology {
    /// Ranks and where they sit, with nothing known of their hosts.
    pub const fn of(ranks: Vec<Placement>) -> Self {
        Self { ranks, hardware: Vec::new() }
    }

    /// What a host is made of, if it told.
    pub fn hardware_of(&self, host: &str) -> Option<&Hardware> {
        self.hardware.iter().find(|hardware| hardware.host == host)
    }

    /// The PCIe switch nearest above a rank's device, an index in [`Hardware::pci`] of its host; `None` where there is none or
    /// nobody told.
    pub fn switch_of(&self, rank: usize) -> Option<usize> {
        let placement = self.ranks.get(rank)?;
        let hardware = self.hardware_of(&placement.host)?;
        let card = hardware.gpus.get(placement.gpu?)?.pci?;
        hardware.above(card).skip(1).find(|&at| hardware.pci.get(at).is_some_and(|device| device.kind == PciKind::SwitchUp))
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.ranks.len()
    }

    /// Host names in the order in which ranks name them.
    pub fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for placement in &self.ranks {
            if seen.insert(placement.host.as_str()) {
                hosts.push(&placement.host);
            }
        }
        hosts
    }

    /// Host index of every rank: `node_of[rank]` indexes [`Self::hosts`].
    pub fn node_of(&self) -> Vec<usize> {
        let mut index = std::collections::HashMap::new();
        self.ranks
            .iter()
            .map(|placement| {
                let next = index.len();
                *index.entry(placement.host.as_str()).or_insert(next)
            })
            .collect()
    }

    /// Path class from one rank to another; `InterNode` when a rank is unknown.
    pub fn path(&self, from: usize, to: usize) -> PathClass {
        if from == to {
            return PathClass::Local;
        }
        match (self.ranks.get(from), self.ranks.get(to)) {
            (Some(a), Some(b)) if a.host == b.host => PathClass::IntraNode,
            _ => PathClass::InterNode,
        }
    }
}

/// [`Topology::path`] from [`Topology::node_of`], for those who ask a million times.
pub fn path_of(node_of: &[usize], from: usize, to: usize) -> PathClass {
    match (from == to, node_of.get(from), node_of.get(to)) {
        (true, ..) => PathClass::Local,
        (_, Some(a), Some(b)) if a == b => PathClass::IntraNode,
        _ => PathClass::InterNode,
    }
}
