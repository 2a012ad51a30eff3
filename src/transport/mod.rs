//! Engines (who the ranks are) and movers (how bytes travel).
//!
//! Rank 0 sees an [`Engine`]: it starts a probe and polls for what came of it. Each rank runs an agent, which turns an
//! [`Order`] into timed repeats over its engine's [`Endpoint`]; the timing is written once, in `timed` for one transfer and
//! in `together` for several.

mod absent;
mod agent;
mod assembly;
pub mod binding;
mod collect;
mod copies;
#[cfg(feature = "cuda")]
pub mod cuda;
mod endpoint;
mod flow;
pub mod group;
pub mod libraries;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(feature = "nvml")]
pub mod nvswitch;
mod payload;
mod rest;
pub mod sim;
pub mod threads;
mod timed;
mod together;
pub mod work;

pub use absent::Absent;
pub use agent::{Agent, ToAgent, ToRoot, Unready};
pub use collect::Collector;
pub use endpoint::{Endpoint, News, Stop, Together, Window};
pub use flow::Flow;
pub use group::Grouped;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sample::{EngineKind, Memory, MoverKind};
use crate::sweep::{Buffers, Probe};
use crate::topology::{CudaDevice, GpuState, Topology};
use binding::Decided;
use work::{Carried, Carry, Work};

/// A rank's end as its agent has it: its bytes may lie on a GPU.
#[cfg(feature = "cuda")]
pub(crate) type Rank<C> = cuda::Device<C>;
#[cfg(not(feature = "cuda"))]
pub(crate) type Rank<C> = C;

/// The end of a rank whose words an engine carries.
#[cfg(feature = "cuda")]
pub(crate) fn rank<C: cuda::Control>(control: C) -> Rank<C> {
    cuda::Device::new(control)
}

/// As it is.
#[cfg(not(feature = "cuda"))]
pub(crate) fn rank<C: Together>(control: C) -> Rank<C> {
    control
}

/// What every rank prepares before the first probe of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    pub mover: MoverKind,
    pub memory: Memory,
    /// as [`crate::sweep::SweepSettings::gpus`]
    pub gpus: Vec<String>,
    /// host of each rank of the job, by the engine's own numbers; engines fill it in
    pub nodes: Vec<usize>,
    /// of one rank: its GPU, chosen by [`binding::decide`]; none of host memory, or for a rank that takes no part
    #[serde(default)]
    pub gpu: Option<CudaDevice>,
    /// of one rank: logical processors that it goes to first; empty for where it is
    #[serde(default)]
    pub cores: Vec<usize>,
    /// names the NCCL communicator that ranks meet in, 128 bytes made by rank 0; empty for movers without one
    pub nccl: Vec<u8>,
    /// the ranks that meet in it, by the engine's own numbers, in its order; engines fill it in
    pub group: Vec<usize>,
    pub buffers: Buffers,
    /// bytes of the arena a rank sends from, and of each one that it receives into
    pub arena: u64,
    /// arenas that a rank receives into, one for each of the most transfers that come in at the same time
    pub lanes: usize,
    /// seed of the payload
    pub seed: u64,
}

impl Setup {
    /// Instead of a host in `nodes`: the rank does not answer any more.
    pub const LOST: usize = usize::MAX;

    /// Bytes of a rank's buffers.
    pub const fn memory(&self) -> u64 {
        self.arena.saturating_mul(1 + self.lanes as u64)
    }

    /// Ranks with so much memory of the host for each arena, which does not lie on GPUs.
    pub const fn host(mover: MoverKind, buffers: Buffers, arena: u64, lanes: usize, seed: u64) -> Self {
        Self {
            mover,
            memory: Memory::Host,
            gpus: Vec::new(),
            gpu: None,
            cores: Vec::new(),
            nodes: Vec::new(),
            nccl: Vec::new(),
            group: Vec::new(),
            buffers,
            arena,
            lanes,
            seed,
        }
    }

    /// What a rank prepares that takes no part: no buffers.
    #[must_use]
    pub fn idle(&self) -> Self {
        Self { arena: 0, lanes: 0, ..self.clone() }
    }
}

/// One probe, with all its ranks need to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub probe: Probe,
    /// messages outstanding at a time
    pub window: u32,
    /// untimed repeats first
    pub warmup: u32,
    /// longest time for all of it, seconds
    pub timeout: f64,
}

/// One timed repeat of one transfer, as its sender saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// which of the probe's transfers ([`Probe::flows`])
    pub flow: u32,
    /// number within the probe's repeats, from 0; of warm-ups within those
    pub repeat: u32,
    /// discarded by rule: first use
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// messages moved
    pub messages: u64,
    /// sender's start to receiver's completion, seconds, acknowledgements taken off; of a relay, until the sender has also
    /// received all of its own
    pub seconds: f64,
    /// what was taken off, seconds
    pub ack_seconds: f64,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end", content = "reason")]
pub enum End {
    /// all repeats timed, payload as sent
    Complete,
    /// the probe's time was up
    Timeout(String),
    /// the payload that arrived was not the payload sent
    Corrupt(String),
    /// this rank cannot do it
    Waived(String),
}

/// What came of a probe: the repeats that completed, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// id of the probe
    pub probe: u64,
    /// of every transfer, in no particular order
    pub repeats: Vec<Repeat>,
    /// fans: the root's own time for all of a repeat's messages, seconds, one a timed repeat. `fan_in`: from its release of
    /// all senders until the last byte is in its buffers; `fan_out`: until the last acknowledgement. Half a round trip a
    /// window is taken off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub root_seconds: Vec<f64>,
    /// of transfers whose mover tells it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// its end is another rank's fault, which tells why by itself
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo: bool,
    /// what its ranks meet in was given up: all of them must meet anew
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parted: bool,
    pub end: End,
}

/// How the bytes of a transfer went, as the library that moved them says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// which of the probe's transfers
    pub flow: u32,
    pub via: String,
}

impl ProbeReport {
    /// Of a probe that came to nothing, or of which nothing has come yet.
    pub const fn nothing(probe: u64, end: End) -> Self {
        Self { probe, repeats: Vec::new(), root_seconds: Vec::new(), ways: Vec::new(), echo: false, parted: false, end }
    }
}

/// What an engine tells rank 0 between probes.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    Probe(ProbeReport),
    /// a work was carried, or was not
    Carried(Carried),
    /// a rank does not answer any more; nothing more comes from it
    Lost {
        rank: usize,
        reason: String,
    },
    /// a line that a rank, or a library in it, printed
    Log {
        rank: usize,
        line: String,
    },
}

/// An engine that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// ranks did not tell where they sit in time
    #[error("rank(s) {missing} of {world} did not answer within {seconds} s; is every host reachable from rank 0's?")]
    Silent { missing: String, world: usize, seconds: u64 },
    /// this engine has no such mover
    #[error("the {engine} engine has no mover {mover}; it has {available}")]
    NoMover { engine: &'static str, mover: &'static str, available: String },
    /// buffers could not be had
    #[error("rank {rank} could not allocate {bytes} bytes for its buffers: {reason}; try smaller --sizes, --window or --widths")]
    Memory { rank: usize, bytes: u64, reason: String },
    /// a rank cannot take part in a sweep that is set up so
    #[error("rank {rank}: {reason}")]
    Unready { rank: usize, reason: String },
    /// a collective step is impossible since a rank is lost
    #[error("{what} needs every rank, but rank {rank} is lost; start the job again")]
    Lost { what: &'static str, rank: usize },
    /// ranks and GPUs do not go together
    #[error("{0}")]
    Gpus(String),
    /// no such group
    #[error("--group: rank {rank} is named twice or is not one of this job's {world} ranks")]
    Group { rank: usize, world: usize },
    /// a work that these ranks cannot carry
    #[error("{0}")]
    Work(String),
    /// the system refused
    #[error("{what}: {source}")]
    System { what: &'static str, source: std::io::Error },
    /// the MPI library refused
    #[error("{0}")]
    Mpi(String),
}

#[cfg(feature = "cuda")]
impl TransportError {
    /// The reason without the rank that it is about, as that rank's agent tells it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Memory { reason, .. } | Self::Unready { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }
}

/// The ranks of a job, as rank 0 drives them.
pub trait Engine {
    /// Who the ranks are.
    fn kind(&self) -> EngineKind;
    /// Where the ranks sit.
    fn topology(&self) -> &Topology;
    /// How bytes can travel here.
    fn movers(&self) -> &'static [MoverKind];
    /// Name and version of what carries the bytes, for the record.
    fn software(&self) -> String;
    /// The ranks of the job that are measured, in the order of this engine's topology; empty for all of them.
    fn group(&self) -> &[usize] {
        &[]
    }
    /// From the next [`Engine::prepare`] on only these ranks get buffers; the others take part in nothing. Empty for all.
    fn restrict(&mut self, _ranks: &[usize]) {}
    /// Decide whose each GPU is, or send the ranks home for the host's memory; collective. The topology says it from then on. What is
    /// decided is empty where nothing has changed.
    fn bind(&mut self, memory: Memory, _gpus: &[String]) -> Result<Decided, TransportError> {
        match memory {
            Memory::Host => Ok(Decided::default()),
            Memory::Cuda => Err(TransportError::Gpus(format!("the {} engine has no GPUs: memory host", self.kind().name()))),
        }
    }
    /// How the GPUs that ranks are bound to are doing. Never asked while a probe runs; ranks of which nothing is told are left out.
    fn gpu_states(&mut self, _ranks: &[usize]) -> Vec<(usize, GpuState)> {
        Vec::new()
    }
    /// Get every rank ready for a sweep; collective. Of memory of GPUs: the ranks that are not, which take part in nothing; an error
    /// where that is all of them.
    fn prepare(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError>;
    /// Start probes, which run at the same time; no rank takes part in two of them. Each is reported by itself. Returns at
    /// once.
    fn start(&mut self, round: &[Order]) -> Result<(), TransportError>;
    /// Give every rank its part of a work, its memory allocated and filled; collective. What was prepared for a sweep is gone then.
    fn load(&mut self, _work: &Work, _mover: MoverKind) -> Result<(), TransportError> {
        Err(TransportError::Work("this engine runs no plans".to_owned()))
    }
    /// Run the work that was loaded, once; reported as [`Report::Carried`]. Returns at once.
    fn carry(&mut self, _order: &Carry) -> Result<(), TransportError> {
        Err(TransportError::Work("this engine runs no plans".to_owned()))
    }
    /// What has happened since, waiting at most `wait`. Sleeps, never spins.
    fn poll(&mut self, wait: Duration) -> Vec<Report>;
    /// Let every rank that still answers leave, and wait for them a moment.
    fn finish(&mut self);
    /// Seconds on the engine's own clock, if it has one: a simulated sweep takes no time of ours.
    fn clock(&self) -> Option<f64> {
        None
    }
}
