use serde::{Deserialize, Serialize};

use crate::diagnose::next::Test;
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
    /// end the job
    Quit,
}
