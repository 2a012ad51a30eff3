use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Imported;
use crate::diagnose::next::Test;
use crate::plan::{Execution, Traffic};
use crate::sample::{Pattern, Sample};
use crate::sweep::{Enough, Probe, SweepSettings};
use crate::topology::{Bound, GpuRange};

/// Something that happened, with when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// seconds since the session began
    pub t: f64,
    #[serde(flatten)]
    pub event: Event,
}

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// everything asked for has a state
    Complete,
    /// a person stopped it
    Aborted,
    /// the job ended under it: a signal, the launcher, or the engine
    Cut,
}

/// Transfers that were found to slow each other: probes of one round, tried again together and then each alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    /// of the probes
    pub pattern: Pattern,
    /// of one message
    pub bytes: u64,
    /// of each probe, together and alone
    pub repeats: u32,
    /// (sender, receiver) each
    pub flows: Vec<(usize, usize)>,
    /// mean seconds of a message while all of them ran, in the order of `flows`: times the repeats it is how long each was at it
    pub together: Vec<f64>,
    /// median seconds of a message alone
    pub alone: Vec<f64>,
}

impl Conflict {
    /// True if it is of a job of so many ranks and its numbers make sense: recorded sessions are data.
    pub fn is_sound(&self, world: usize) -> bool {
        let n = self.flows.len();
        let times = || self.together.iter().chain(&self.alone);
        n > 0
            && (self.together.len(), self.alone.len()) == (n, n)
            && self.bytes > 0
            && times().all(|seconds| seconds.is_finite() && *seconds > 0.0)
            && self.flows.iter().all(|&(from, to)| from < world && to < world)
    }
}

/// What can happen in a session. New kinds are new minor versions of the format; readers skip kinds they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// where the ranks of the next sweeps sit: whose each GPU is, or, after a sweep on GPUs, back on the host's memory
    Bound {
        ranks: Vec<Bound>,
        /// name and version of what moves the memory of GPUs
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        software: BTreeMap<String, String>,
    },
    /// how the GPUs of the sweep's ranks were doing so far, of those of which something is new
    GpusSeen {
        ranges: Vec<GpuRange>,
    },
    /// a sweep begins; `resumed` when it takes up an earlier one's settings and samples
    SweepStarted {
        settings: SweepSettings,
        resumed: bool,
    },
    /// a table of another tool's output was read
    Imported(Imported),
    /// a probe was handed to its ranks
    ProbeStarted {
        probe: Probe,
    },
    /// a probe ended; a state for each of its repeats
    ProbeDone {
        probe: u64,
        samples: Vec<Sample>,
        /// why its target gets no further repeats of this size, if it does not
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enough: Option<Enough>,
    },
    /// how many repeats of a size the sweep will have taken in the end, as far as is known now
    Foreseen {
        bytes: u64,
        repeats: u64,
    },
    /// cells were asked to be measured again: their next samples have a higher `take`
    Remeasure {
        cells: u64,
        repeats: u64,
    },
    /// a test of a finding begins, between the rounds of a sweep if one is running
    TestStarted {
        /// [`crate::diagnose::Finding::id`]
        finding: String,
        test: Test,
    },
    /// it ended; the cells and groups of the sweep are what they were
    TestDone {
        finding: String,
        test: Test,
        /// raw: a state for each repeat of every transfer that was tried, `set` is the number of its set
        samples: Vec<Sample>,
        /// what kept it from being whole; empty if nothing did
        reason: String,
    },
    /// transfers were found to slow each other; they are not measured at the same time any more
    Shared(Conflict),
    /// a plan, a strategy or a list of flows is looked at; one of the same name takes the place of the one before
    PlanLoaded {
        traffic: Traffic,
    },
    /// a plan is run on the ranks
    ExecutionStarted {
        /// of the traffic
        name: String,
    },
    /// it ended
    ExecutionDone(Execution),
    Paused,
    Continued,
    SweepEnded {
        outcome: Outcome,
        reason: String,
    },
    /// a rank does not answer any more
    RankLost {
        rank: usize,
        reason: String,
    },
    /// a line that a rank, or a library in it, printed
    Log {
        rank: usize,
        line: String,
    },
    /// the program's own word to the person: a refusal, a warning, a hint
    Notice {
        text: String,
    },
    /// the session was left in order
    Closed,
    /// a kind of event that this version does not know
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_that_makes_no_sense_is_told_from_one_that_does() {
        let good = Conflict {
            pattern: Pattern::Peer,
            bytes: 1 << 20,
            repeats: 3,
            flows: vec![(0, 4), (1, 5)],
            together: vec![2.0, 2.0],
            alone: vec![1.0, 1.0],
        };
        assert!(good.is_sound(6) && !good.is_sound(5));
        for bad in [
            Conflict { flows: Vec::new(), together: Vec::new(), alone: Vec::new(), ..good.clone() },
            Conflict { alone: vec![1.0], ..good.clone() },
            Conflict { together: vec![2.0, f64::NAN], ..good.clone() },
            Conflict { alone: vec![0.0, 1.0], ..good.clone() },
            Conflict { bytes: 0, ..good.clone() },
        ] {
            assert!(!bad.is_sound(6), "{bad:?}");
        }
    }
}
