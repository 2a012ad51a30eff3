//! One timed repeat, and the words it is made of. No I/O.

use serde::{Deserialize, Serialize};

use crate::topology::PathClass;

/// What a probe does. More patterns (`duplex`, `fan_out`, `fan_in`, `relay`) join these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// a copy inside one rank's memory
    Local,
    /// one rank sends to another while all others idle
    Peer,
}

impl Pattern {
    /// Every pattern this build can measure.
    pub const ALL: [Self; 2] = [Self::Local, Self::Peer];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Peer => "peer",
        }
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
}

impl MoverKind {
    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::MpiSendrecv => "mpi_sendrecv",
            Self::MpiPut => "mpi_put",
        }
    }
}

/// Movers of the `mpi` engine, also for those who look at a job without being able to start one.
pub const MPI_MOVERS: &[MoverKind] = &[MoverKind::MpiSendrecv, MoverKind::MpiPut];

/// Who the ranks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EngineKind {
    /// threads of this process, each bound to a core
    Threads,
    /// processes of one MPI job
    Mpi,
}

impl EngineKind {
    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Mpi => "mpi",
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
pub struct Sample {
    pub pattern: Pattern,
    #[serde(default)]
    pub both_ways: bool,
    /// sending rank
    pub from: usize,
    /// receiving rank; equal to `from` for [`Pattern::Local`]
    pub to: usize,
    /// size of one message, bytes
    pub bytes: u64,
    /// number of this repeat within its pair, size and take, from 0
    pub repeat: u32,
    /// which measurement of the cell this is: 0 the sweep's own, 1.. each re-measurement
    #[serde(default, skip_serializing_if = "is_zero")]
    pub take: u32,
    /// messages moved in `seconds`; 0 when none was timed
    pub messages: u64,
    /// from the sender's start to the receiver's completion of all messages, as the sender's clock saw it with
    /// `ack_seconds` taken off; absent unless timed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// what was taken off for the receiver's acknowledgements: half the median of the empty round trips measured before the probe, once a window; at most
    /// half of the repeat
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_seconds: Option<f64>,
    pub path: PathClass,
    /// true when no other probe of the job ran at the same time
    pub isolated: bool,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(take: &u32) -> bool {
    *take == 0
}

impl Sample {
    /// Seconds of one message; `None` unless the repeat was timed and is [`Status::Ok`].
    pub fn seconds_per_message(&self) -> Option<f64> {
        match (self.status, self.seconds) {
            (Status::Ok, Some(seconds)) if self.messages > 0 => Some(seconds / self.messages as f64),
            _ => None,
        }
    }
}
