//! `toposcope run`: starts the job with the launcher that is there and the flags that it needs, and guards the terminal.

mod forward;
mod local;
mod plan;

pub use plan::{Kind, Plan, plan};

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::LaunchError;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// number of ranks
    pub ranks: usize,
    /// hosts, each `name` or `name:slots`; empty for this one, or for what the batch system gives
    pub hosts: Vec<String>,
    /// `mpirun`, `srun` or a path; `None` for whichever is there
    pub launcher: Option<String>,
    /// the MPI library of the program, as it calls itself; a launcher that is not named must be of it
    pub library: String,
    /// for the launcher, as typed after `--`
    pub launcher_arguments: Vec<String>,
    /// what every rank runs: this program
    pub program: PathBuf,
    /// the ranks' own command line
    pub arguments: Vec<String>,
    /// rank 0 draws a screen; false for `sweep` and the like, whose streams are passed through
    pub screen: bool,
}

/// Start the job, wait for it, put the terminal back. Gives the exit code: the launcher's, or 128 + the signal that
/// ended it. What went wrong is told on standard error.
pub fn run(spec: &Spec) -> Result<i32, LaunchError> {
    let plan = plan(spec)?;
    let status = if plan.forward { forward::run(&plan)? } else { local::run(&plan)? };
    if let Some(text) = told(&plan, status) {
        eprint!("{text}");
    }
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn told(plan: &Plan, status: ExitStatus) -> Option<String> {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    Some(format!("toposcope run: the launcher ({}) {how}. It was started as\n  {}\n", plan.kind.name(), plan.command_line()))
}
