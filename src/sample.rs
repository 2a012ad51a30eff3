//! One timed repeat, and the words it is made of. No I/O.

use serde::{Deserialize, Serialize};

use crate::topology::PathClass;

/// What a probe does (method: the link calibration of `DeepSpeed`'s affine transfer, and a pattern that people write).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// a copy inside one rank's memory
    Local,
    /// a copy from one rank's host memory, page-locked, into its GPU's
    HostToDevice,
    /// and back
    DeviceToHost,
    /// one rank sends to another while all others idle
    Peer,
    /// two ranks send to each other at the same time; a sample for each direction
    Duplex,
    /// one rank (the root) sends to several at the same time
    FanOut,
    /// several ranks send to one (the root) at the same time
    FanIn,
    /// every rank receives from the rank `shift` below while it sends to the rank `shift` above; a sample is one rank's
    /// own time for both
    Relay,
    /// transfers of a pattern file that have the same number there, all at the same time
    Custom,
}

impl Pattern {
    /// Every pattern this build can measure.
    pub const ALL: [Self; 9] = [
        Self::Local,
        Self::HostToDevice,
        Self::DeviceToHost,
        Self::Peer,
        Self::Duplex,
        Self::FanOut,
        Self::FanIn,
        Self::Relay,
        Self::Custom,
    ];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::HostToDevice => "host_to_device",
            Self::DeviceToHost => "device_to_host",
            Self::Peer => "peer",
            Self::Duplex => "duplex",
            Self::FanOut => "fan_out",
            Self::FanIn => "fan_in",
            Self::Relay => "relay",
            Self::Custom => "custom",
        }
    }

    /// True if a sample belongs to an ordered pair alone, so that it has a cell in a matrix.
    pub const fn is_pair(self) -> bool {
        matches!(self, Self::Peer | Self::Duplex) || self.is_own()
    }

    /// True for a rank's own copies, from itself to itself: the cells of a matrix's diagonal.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Local) || self.crosses()
    }

    /// True for copies between the host's memory and a GPU's, which the GPU makes whatever moves bytes between ranks.
    pub const fn crosses(self) -> bool {
        matches!(self, Self::HostToDevice | Self::DeviceToHost)
    }

    /// True for the patterns that have a root.
    pub const fn is_fan(self) -> bool {
        matches!(self, Self::FanOut | Self::FanIn)
    }
}

/// How bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MoverKind {
    /// one processor copy from the sender's buffer into the receiver's
    Memcpy,
    /// two-sided `MPI_Isend` and `MPI_Irecv`
    MpiSendrecv,
    /// one-sided `MPI_Put` with `MPI_Win_flush`
    MpiPut,
    /// the receiver copies out of the sender's device memory, mapped into its process (CUDA IPC), on its own stream
    CudaIpcPull,
    /// the sender copies into the receiver's device memory, mapped into its process
    CudaIpcPush,
    /// `ncclSend` and `ncclRecv`, the messages of a window as one group
    Nccl,
    /// one-sided `ncclPutSignal` into a registered window, awaited by `ncclWaitSignal` (NCCL 2.29 and later)
    NcclPut,
    /// nothing moves: times come from a fabric's description
    Simulated,
    /// another tool moved them, and its output does not tell how
    Untold,
}

impl MoverKind {
    /// Every way that this program measures with.
    pub const ALL: [Self; 8] =
        [Self::Memcpy, Self::MpiSendrecv, Self::MpiPut, Self::CudaIpcPull, Self::CudaIpcPush, Self::Nccl, Self::NcclPut, Self::Simulated];

    /// True if it moves buffers that lie there.
    pub const fn moves(self, memory: Memory) -> bool {
        match self {
            Self::Memcpy | Self::MpiSendrecv | Self::MpiPut | Self::Untold => true,
            Self::CudaIpcPull | Self::CudaIpcPush | Self::Nccl | Self::NcclPut => matches!(memory, Memory::Cuda),
            Self::Simulated => matches!(memory, Memory::Host),
        }
    }

    /// True if plans on buffers that lie there are run by it. On GPUs, by what maps memory of one host, and by NCCL's messages.
    pub const fn carries(self, memory: Memory) -> bool {
        let on_gpus = matches!(self, Self::Memcpy | Self::CudaIpcPull | Self::CudaIpcPush | Self::Nccl);
        self.moves(memory) && (on_gpus || matches!(memory, Memory::Host)) && !matches!(self, Self::Untold)
    }

    /// True if it works between ranks of one host alone.
    pub const fn stays_on_host(self) -> bool {
        matches!(self, Self::Memcpy | Self::CudaIpcPull | Self::CudaIpcPush)
    }

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::MpiSendrecv => "mpi_sendrecv",
            Self::MpiPut => "mpi_put",
            Self::CudaIpcPull => "cuda_ipc_pull",
            Self::CudaIpcPush => "cuda_ipc_push",
            Self::Nccl => "nccl",
            Self::NcclPut => "nccl_put",
            Self::Simulated => "simulated",
            Self::Untold => "untold",
        }
    }
}

impl MoverKind {
    /// How bytes went, in words: `mpi_put`, or `nccl on GPU memory`.
    pub fn told(self, memory: Memory) -> String {
        match memory {
            Memory::Host => self.name().to_owned(),
            Memory::Cuda => format!("{} on GPU memory", self.name()),
        }
    }
}

/// Movers of the `mpi` engine, also for those who look at a job without being able to start one.
pub const MPI_MOVERS: &[MoverKind] =
    &[MoverKind::MpiSendrecv, MoverKind::MpiPut, MoverKind::CudaIpcPull, MoverKind::CudaIpcPush, MoverKind::Nccl, MoverKind::NcclPut];

/// Where the measured buffers lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Memory {
    /// the host's own memory
    #[default]
    Host,
    /// the memory of the GPU that a rank is bound to
    Cuda,
}

impl Memory {
    pub const ALL: [Self; 2] = [Self::Host, Self::Cuda];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Cuda => "cuda",
        }
    }

    /// True for what files need not say.
    pub fn is_host(&self) -> bool {
        *self == Self::Host
    }
}

/// Who the ranks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EngineKind {
    /// threads of this process, each bound to a core
    Threads,
    /// processes of one MPI job
    Mpi,
    /// ranks of a described fabric, on a clock of their own
    Sim,
    /// those of another tool's output: nothing can be measured again
    Imported,
}

impl EngineKind {
    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Mpi => "mpi",
            Self::Sim => "sim",
            Self::Imported => "imported",
        }
    }
}

/// What became of a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// timed to the receiver's completion and, where checked, the right bytes arrived
    Ok,
    /// not complete within the probe's time, or its rank was lost: a hang is a value
    Timeout,
    /// not run, for the reason given
    Waived,
    /// complete, but the payload that arrived was not the payload that was sent
    Corrupt,
}

impl Status {
    /// The name used in files and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Timeout => "timeout",
            Self::Waived => "waived",
            Self::Corrupt => "corrupt",
        }
    }
}

/// One timed repeat: `messages` messages of `bytes` bytes from one rank to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a record, as files name them")]
pub struct Sample {
    pub pattern: Pattern,
    /// true for [`Pattern::Duplex`]
    #[serde(default)]
    pub both_ways: bool,
    /// sending rank
    pub from: usize,
    /// receiving rank; equal to `from` for a rank's own copies ([`Pattern::is_own`])
    pub to: usize,
    /// fans: the rank that all transfers share
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<usize>,
    /// fans: the other ranks, ascending
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<usize>,
    /// fans: how many those are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// relay: `to` − `from`, modulo the ranks that take part
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<usize>,
    /// custom: the number in the pattern file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<u32>,
    /// size of one message, bytes
    pub bytes: u64,
    /// number of this repeat within its pair (or group), size and take, from 0
    pub repeat: u32,
    /// which measurement of the cell this is: 0 the sweep's own, 1.. each re-measurement
    #[serde(default, skip_serializing_if = "is_zero")]
    pub take: u32,
    /// messages moved in `seconds`; 0 when none was timed
    pub messages: u64,
    /// from the sender's start to the receiver's completion of all messages, as the sender's clock saw it with
    /// `ack_seconds` taken off; of a relay, until the sender has also received; absent unless timed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// what was taken off for the receiver's acknowledgements: half the median of the empty round trips measured before the probe, once a window; at most
    /// half of the repeat
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_seconds: Option<f64>,
    /// fans: the root's own time for the messages of all its peers together; the same in every sample of the repeat
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_seconds: Option<f64>,
    pub path: PathClass,
    /// relay: how the rank's received bytes came
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_path: Option<PathClass>,
    /// relay: how its sent bytes went
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_path: Option<PathClass>,
    /// how the bytes went, where the library that moved them tells it (NCCL: `P2P/CUMEM`, `SHM/direct/direct`, `NET/IB/0/GDRDMA`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// true when no other probe of the job ran at the same time
    pub isolated: bool,
    /// first use, discarded by rule (the first repeats of each probe); in no statistic
    #[serde(default, skip_serializing_if = "is_false")]
    pub warmup: bool,
    /// far from its cell's other samples by a stated rule; flagged, in every statistic all the same
    #[serde(default, skip_serializing_if = "is_false")]
    pub outlier: bool,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(take: &u32) -> bool {
    *take == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Sample {
    /// A sample of which nothing is known but where it belongs: not run, alone, first repeat.
    pub const fn blank(pattern: Pattern, from: usize, to: usize, bytes: u64, path: PathClass) -> Self {
        Self {
            pattern,
            both_ways: matches!(pattern, Pattern::Duplex),
            from,
            to,
            root: None,
            peers: Vec::new(),
            width: None,
            shift: None,
            set: None,
            bytes,
            repeat: 0,
            take: 0,
            messages: 0,
            seconds: None,
            ack_seconds: None,
            root_seconds: None,
            path,
            receive_path: None,
            send_path: None,
            via: None,
            isolated: true,
            warmup: false,
            outlier: false,
            status: Status::Waived,
            reason: None,
        }
    }

    /// Seconds of one message; `None` unless the repeat was timed, is [`Status::Ok`] and no warm-up.
    pub fn seconds_per_message(&self) -> Option<f64> {
        match (self.status, self.seconds) {
            (Status::Ok, Some(seconds)) if self.messages > 0 && !self.warmup => Some(seconds / self.messages as f64),
            _ => None,
        }
    }
}
