//! A finding: what is seen, where, how sure, on which evidence, why it may be so, and what to test next.

use serde::Serialize;

use crate::fit::identify::{Hidden, Identified};
use crate::topology::{PathLabel, Unit};

use super::Cause;
use super::next::Next;

/// How much it matters, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// worth knowing; nothing to mend
    Note,
    /// something is slower than it should be, or may be wrong
    Warning,
    /// something is broken, or so slow that it will decide what a job takes
    Problem,
}

impl Severity {
    /// The name used in files and in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// Which of a rank's or group's transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ways {
    Sends,
    Receives,
    Both,
}

/// What is seen, whatever the cause. Rates are bytes per second, shares plain numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shape {
    /// one direction of a pair is slower than the other
    Asymmetry { from: usize, to: usize, rate: f64, back: f64 },
    /// all of a group's transfers with others are slow: of a rank, a switch, a socket, a host. `own_slow`: its own copies, too
    SlowUnit { unit: Unit, ways: Ways, share: f64, own_slow: bool },
    /// transfers from one group to another are slow, both do well with others
    SlowBetween { from: Unit, to: Unit, share: f64 },
    /// one pair is slow, both ends do well with others
    SlowPair { from: usize, to: usize, share: f64 },
    /// one pair is slow, and too few others tell whose fault it is
    SlowUntold { from: usize, to: usize, share: f64 },
    /// all pairs of a class are below what they should give
    SlowClass { class: u16, share: f64 },
    /// near pairs are slower than far ones
    Inverted { near: u16, far: u16, ratio: f64 },
    /// small messages take much longer than usual, large ones do not; `whole`: all pairs of the class
    HighLatency { ranks: Vec<usize>, class: u16, ratio: f64, whole: bool },
    /// several at once take longer than one by one
    FanCollapse { root: usize, peers: Vec<usize>, concurrency: f64 },
    /// several at once bring no more than one
    FanDoesNotScale { roots: Vec<usize>, width: usize, concurrency: f64, into: bool },
    /// two directions at once leave little of each
    DuplexLoss { pairs: Vec<(usize, usize)>, ratio: f64 },
    /// one line does not fit
    PoorFit { what: String, error: f64 },
    /// more than the hardware can give
    AboveNominal { from: usize, to: usize, ratio: f64 },
    /// a link of the hardware has fewer lanes or a lower generation than it could
    TrainedDown { host: String, hop: String, state: String, ranks: Vec<usize> },
    /// NVLinks that are down, or fewer than others have
    MissingLinks { host: String, gpu: usize, up: u32, of: u32, ranks: Vec<usize> },
    /// GPUs with links whose paths do not use them
    LinksUnused { host: String, label: Option<PathLabel> },
    /// hosts whose ports are not alike
    UnequalPorts { hosts: Vec<String>, say: String },
    /// two GPUs use one port while another idles
    SharedPort { host: String, port: String, ranks: Vec<usize>, idle: Vec<String> },
    /// a rank's cores are not where its device is
    Misbound { ranks: Vec<usize> },
    /// a port that is down or errs
    BadPort { host: String, port: String, say: String },
    /// redirection that sends peers' bytes through the processor
    Redirected { host: String, bridges: Vec<String>, ranks: Vec<usize> },
    /// repeats scatter, or times changed while it ran
    Unsteady { pairs: Vec<(usize, usize)>, scatter: f64, drift: f64 },
    /// no answer, wrong bytes, ranks lost
    Failed { pairs: Vec<(usize, usize)>, ranks: Vec<usize>, corrupt: bool },
    /// a resource that nobody told of
    HiddenResource { hidden: Hidden },
    /// a plan took longer than foreseen
    SlowExecution { name: String, ratio: f64, stage: String, resource: String },
    /// measured for another group, mover or library than it is used for
    Mismatch { say: String },
    /// a fact that stands by itself
    Other { say: String },
}

/// A piece of evidence: a sentence, and the measurements behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fact {
    pub say: String,
    /// cells of the matrix that it rests on, the most telling first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(usize, usize)>,
    /// fans, relays and sets that it rests on: indices in [`super::Measured::together`]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<usize>,
}

/// A likely cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    pub cause: Cause,
    /// how much speaks for it, plain; the list is in this order
    pub weight: f64,
    /// what speaks for it
    pub because: String,
    /// what speaks against it; empty if nothing does
    #[serde(skip_serializing_if = "String::is_empty")]
    pub against: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// the same for the same thing in another run: `slow-unit rank 3 sends`
    pub id: String,
    /// of the rule that found it
    pub rule: &'static str,
    pub severity: Severity,
    /// what is seen, in one line: `0→2 gives 7.9, 2→0 53.9 GB/s`
    pub title: String,
    /// how much, in a few characters: `6.8 ×`, `46 %`
    pub amount: String,
    /// how many cells it explains times what each lost: what the list is sorted by within a severity
    #[serde(skip)]
    pub weight: f64,
    pub shape: Shape,
    pub facts: Vec<Fact>,
    /// likely causes, likeliest first
    pub suspects: Vec<Suspect>,
    /// the test to run next, if one would tell more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// what tests that were run have told, in sentences
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// cells to light in the matrix
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<(usize, usize)>,
    /// the hop to light in the topology: host, and name of [`crate::topology::Hop`]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<(String, String)>,
}

/// An alarm that was not raised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Silenced {
    pub rule: &'static str,
    /// what would have been said
    pub say: String,
    /// why it was not
    pub why: String,
}

/// Everything there is to say.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// gravest first
    pub findings: Vec<Finding>,
    pub silenced: Vec<Silenced>,
    pub identified: Identified,
}

impl Diagnosis {
    /// The gravest severity; `None` without a finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
