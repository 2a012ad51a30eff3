use serde::{Deserialize, Serialize};

use super::binding::{self, Sight};
use super::endpoint::{Stop, Together};
use super::timed::{self, Outcome};
use super::work::{self, Carried, Carrier, Carry, Part};
use super::{End, Order, ProbeReport, Setup, TransportError};
use crate::sample::MoverKind;
use crate::sweep::Buffers;
use crate::topology::{CudaDevice, GpuState, Placement};

/// What rank 0 tells a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    Setup(Setup),
    Order(Order),
    /// of a work: get ready
    Part {
        part: Box<Part>,
        mover: MoverKind,
    },
    /// run it
    Carry(Carry),
    /// rank 0 is still there
    Heartbeat,
    /// tell what this host is made of
    Describe,
    /// tell which GPUs this process sees
    Look,
    /// tell how its GPU is doing
    State(CudaDevice),
    /// leave; the library's collective end is possible only when every rank still answers
    Leave {
        together: bool,
    },
}

/// What a rank tells rank 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToRoot {
    Here(Placement),
    /// what its host is made of, as a [`crate::topology::Hardware`]; not trusted to be one
    Hardware {
        rank: usize,
        hardware: serde_json::Value,
    },
    /// which GPUs it sees
    Seen {
        rank: usize,
        sight: Sight,
    },
    /// how its GPU is doing
    State {
        rank: usize,
        state: Option<GpuState>,
    },
    /// ready for a sweep, or why not
    Ready {
        rank: usize,
        error: Option<Unready>,
    },
    Done {
        rank: usize,
        report: ProbeReport,
    },
    /// what came of its part of a work
    Carried {
        rank: usize,
        carried: Carried,
    },
    Log {
        rank: usize,
        lines: Vec<String>,
    },
}

/// Why a rank is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unready {
    pub reason: String,
    /// its buffers could not be had
    pub memory: bool,
}

impl Unready {
    /// As the engine tells it.
    pub fn of(self, rank: usize, bytes: u64) -> TransportError {
        let Self { reason, memory } = self;
        if memory { TransportError::Memory { rank, bytes, reason } } else { TransportError::Unready { rank, reason } }
    }
}

/// What a rank does with an order, whatever the engine.
#[derive(Debug)]
pub struct Agent<E> {
    endpoint: E,
    buffers: Buffers,
    part: Part,
}

impl<E: Together> Agent<E> {
    /// An agent over one rank's endpoint.
    pub fn new(endpoint: E) -> Self {
        Self { endpoint, buffers: Buffers::default(), part: Part::default() }
    }

    /// The endpoint, for its engine's own needs.
    pub fn endpoint(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// Get ready for a sweep; collective. The reason why not.
    pub fn prepare(&mut self, setup: &Setup) -> Option<Unready> {
        self.buffers = setup.buffers;
        if cfg!(not(feature = "cuda")) && !setup.memory.is_host() {
            return Some(without_gpus());
        }
        // First: memory comes from the node of the core that touches it.
        let seated = go_to(&setup.cores);
        // Others wait for this rank there, whatever has become of it.
        let ready = self.endpoint.prepare(setup).err().map(unready);
        seated.or(ready)
    }

    /// Lines for the log.
    pub fn told(&mut self) -> Vec<String> {
        self.endpoint.told()
    }

    /// This rank's side of a probe. Senders bring the repeats, receivers the check of the payload, a fan's root its own times.
    pub fn obey(&mut self, order: &Order) -> ProbeReport {
        let outcome = timed::run(&mut self.endpoint, order, self.buffers);
        let end = end_of(&outcome, order, super::Endpoint::rank(&self.endpoint));
        let (ways, parted) = (self.endpoint.ways(&order.probe), self.endpoint.parted());
        let echo = outcome.corrupt.is_none() && matches!(outcome.stop, Some(Stop::Refused(_)));
        ProbeReport { probe: order.probe.id, repeats: outcome.repeats, root_seconds: outcome.root_seconds, ways, echo, parted, end }
    }
}

impl<E: Together + Carrier> Agent<E> {
    /// Get ready for a work; collective. The reason why not.
    pub fn load(&mut self, part: Part, mover: MoverKind) -> Option<Unready> {
        if cfg!(not(feature = "cuda")) && !part.lies.memory.is_host() {
            return Some(without_gpus());
        }
        self.part = part;
        // Probes' buffers first: both may not fit.
        let setup = Setup::host(MoverKind::Memcpy, self.buffers, 0, 0, 0);
        let seated = go_to(&self.part.lies.cores);
        let ready = self.endpoint.prepare(&setup).and_then(|()| self.endpoint.load(&self.part, mover)).err().map(unready);
        seated.or(ready)
    }

    /// True if this rank has no part in the work that was loaded.
    pub fn is_spared(&self) -> bool {
        self.part.is_idle()
    }

    /// This rank's part of a work.
    pub fn carry(&mut self, order: &Carry) -> Carried {
        let part = std::mem::take(&mut self.part);
        work::run(&mut self.endpoint, &part, order)
    }
}

/// Run on these cores; none: where it runs already.
fn go_to(cores: &[usize]) -> Option<Unready> {
    let pinned = if cores.is_empty() { Ok(()) } else { binding::pin(cores) };
    pinned.err().map(|reason| Unready { reason, memory: false })
}

fn without_gpus() -> Unready {
    let reason = "this build measures no memory of GPUs; build it with the feature cuda, which is on by default".to_owned();
    Unready { reason, memory: false }
}

/// Rank and bytes are told by the engine.
fn unready(error: TransportError) -> Unready {
    match error {
        TransportError::Memory { reason, .. } => Unready { reason, memory: true },
        TransportError::Unready { reason, .. } => Unready { reason, memory: false },
        other => Unready { reason: other.to_string(), memory: false },
    }
}

fn end_of(outcome: &Outcome, order: &Order, rank: usize) -> End {
    match (&outcome.stop, &outcome.corrupt) {
        // Whatever came after: no repeat of this probe is good.
        (_, Some(reason)) => End::Corrupt(format!("rank {rank}: {reason}")),
        (Some(Stop::Deadline), None) => End::Timeout(format!(
            "rank {rank} saw no completion within {} s, {} of {} repeats done{}{}",
            order.timeout,
            outcome.done,
            order.probe.repeats,
            if outcome.missing.is_empty() { "" } else { "; missing: " },
            outcome.missing
        )),
        (Some(Stop::Failed(reason)), None) => End::Waived(format!("rank {rank}: {reason}")),
        (Some(Stop::Refused(other)), None) => End::Waived(format!("rank {rank}: rank {other} gave up")),
        (None, None) => End::Complete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::{Cell, Probe};

    #[test]
    fn a_probe_that_hangs_after_wrong_bytes_is_told_as_wrong() {
        let probe = Probe::pair(1, Cell { pattern: Pattern::Peer, from: 0, to: 1 }, 8, 3);
        let order = Order { probe, window: 1, warmup: 1, timeout: 1.0 };
        let hung = Outcome { stop: Some(Stop::Deadline), done: 1, ..Outcome::default() };
        assert!(matches!(end_of(&hung, &order, 1), End::Timeout(reason) if reason.contains("1 of 3 repeats")));
        let wrong = Outcome { corrupt: Some("byte 0".to_owned()), ..hung };
        assert_eq!(end_of(&wrong, &order, 1), End::Corrupt("rank 1: byte 0".to_owned()));
    }
}
