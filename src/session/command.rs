use serde::{Deserialize, Serialize};

use std::path::PathBuf;

use crate::diagnose::next::Test;
use crate::plan::Transfers;
use crate::sweep::{Cell, SweepSettings};

/// What a person wants: the only way back from a screen to the job. One JSON line each on the socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    StartSweep {
        settings: SweepSettings,
    },
    Pause,
    Continue,
    Abort,
    /// measure these cells again: one size, or every size of the sweep
    Remeasure {
        cells: Vec<Cell>,
        bytes: Option<u64>,
    },
    /// run a test of a finding: at once, or after the round under way; a sweep waits for it
    RunTest {
        /// [`crate::diagnose::Finding::id`]
        finding: String,
        test: Test,
    },
    /// read a plan, a list of flows or another tool's plan on rank 0's host
    LoadPlan {
        path: PathBuf,
    },
    /// run this on the ranks, at once or after the round under way; a sweep waits for it
    Execute {
        /// of the traffic
        name: String,
        transfers: Transfers,
        /// timed runs, after those that are not
        repeats: u32,
    },
    /// end the job
    Quit,
}
