//! The test that decides: what to measure, what each cause predicts, and what came of it.

use serde::{Deserialize, Serialize};

use super::{Cause, Finding, Measured};
use crate::fit::identify::Identified;
use crate::sample::{MoverKind, Sample};

/// What kind of test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TestKind {
    /// each end with others
    SwapPartners,
    /// the other direction
    Reverse,
    /// alone against beside others
    UnderLoad,
    /// host memory against device memory
    OtherMemory,
    OtherMover,
    /// 1, 8 and 64 messages outstanding
    Depth,
    /// other peers of the same width
    OtherPeers,
    /// the same again
    Again,
}

/// Transfers to measure, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    pub kind: TestKind,
    /// what will be done, in a sentence
    pub say: String,
    /// each of these runs by itself, its transfers at the same time
    pub sets: Vec<Vec<(usize, usize)>>,
    /// of one message
    pub bytes: u64,
    pub repeats: u32,
    /// messages outstanding at a time, for each set; empty for the sweep's own
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<u32>,
    /// another mover than the sweep's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mover: Option<MoverKind>,
}

/// What a cause predicts of a test's outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub cause: Cause,
    /// of each set, aggregate over what is usual there: from, to
    pub shares: Vec<(f64, f64)>,
}

/// A test with what it would tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Next {
    pub test: Test,
    /// about how long it takes, seconds
    pub seconds: f64,
    /// bytes per second of each set that count as usual
    pub usual: Vec<f64>,
    pub predictions: Vec<Prediction>,
    /// why it cannot be run here; empty if it can
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cannot: String,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// [`Finding::id`]
    pub finding: String,
    pub test: Test,
    /// raw, `set` is the index in [`Test::sets`]
    pub samples: Vec<Sample>,
}

/// Choose the test that tells a finding's leading causes apart, after taking in what came of earlier ones.
pub(super) fn settle(measured: &Measured, identified: &Identified, finding: &mut Finding) {
    let _ = (measured, identified, finding);
}
