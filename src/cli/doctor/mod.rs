//! `toposcope doctor`: what this build and this machine can do, and each absent thing with the way to get it.

mod build;
mod gpu;
mod hardware;
mod here;
mod machine;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::Serialize;

use crate::units::plain;
use here::Here;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// as it should be
    Ok,
    /// works, but something is to be known
    Warn,
    /// not here; the rest of the program works without it
    Absent,
    /// not looked at
    Skipped,
}

impl State {
    /// The word in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Absent => "absent",
            Self::Skipped => "skipped",
        }
    }
}

/// What was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    pub state: State,
    /// what is there, or what is missing
    pub fact: String,
    /// the way to get it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Found {
    fn ok(fact: impl Into<String>) -> Self {
        Self { state: State::Ok, fact: fact.into(), fix: None }
    }

    fn not(state: State, fact: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state, fact: fact.into(), fix: Some(fix.into()) }
    }
}

/// One thing that is looked at.
struct Check {
    /// stable name, for scripts
    id: &'static str,
    title: &'static str,
    run: fn(&Here) -> Found,
}

/// Every check, in the order of the table.
const CHECKS: [Check; 24] = [
    Check { id: "build", title: "this build", run: build::features },
    Check { id: "mpi", title: "MPI ranks", run: build::mpi },
    Check { id: "mpirun", title: "mpirun", run: |here| build::launcher(here, "mpirun") },
    Check { id: "mpiexec", title: "mpiexec", run: |here| build::launcher(here, "mpiexec") },
    Check { id: "srun", title: "srun", run: |here| build::launcher(here, "srun") },
    Check { id: "libclang", title: "libclang", run: build::libclang },
    Check { id: "nvml", title: "NVML", run: gpu::nvml },
    Check { id: "cuda", title: "CUDA driver", run: gpu::cuda },
    Check { id: "peers", title: "peer access", run: gpu::peers },
    Check { id: "persistence", title: "persistence", run: gpu::persistence },
    Check { id: "nccl", title: "NCCL", run: gpu::nccl },
    Check { id: "cuda_mpi", title: "MPI on GPUs", run: gpu::mpi },
    Check { id: "terminal", title: "terminal", run: machine::terminal },
    Check { id: "colours", title: "colours", run: machine::colours },
    Check { id: "cores", title: "cores", run: machine::cores },
    Check { id: "memory", title: "memory", run: machine::memory },
    Check { id: "confines", title: "seen through", run: hardware::confines },
    Check { id: "pci", title: "PCI devices", run: hardware::pci },
    Check { id: "acs", title: "ACS", run: hardware::acs },
    Check { id: "iommu", title: "IOMMU", run: hardware::iommu },
    Check { id: "network", title: "network", run: hardware::network },
    Check { id: "settings", title: "settings", run: machine::settings },
    Check { id: "efficiency", title: "efficiencies", run: machine::efficiency },
    Check { id: "sockets", title: "socket folder", run: machine::sockets },
];

#[derive(Debug, Serialize)]
struct Line {
    id: &'static str,
    title: &'static str,
    #[serde(flatten)]
    found: Found,
}

fn examine(check: &Check, here: &Here) -> Line {
    // Driver libraries are other people's code, and cudarc panics where they lack a function.
    let found = catch_unwind(AssertUnwindSafe(|| (check.run)(here)));
    let mut found = found.unwrap_or_else(|_| Found::not(State::Warn, "the check itself failed", "please report this, with the line above"));
    found.fact = plain(&found.fact);
    found.fix = found.fix.map(|fix| plain(&fix));
    Line { id: check.id, title: check.title, found }
}

/// Look at everything and print it as a table, or as JSON: `{"toposcope": version, "checks": [{id, title, state, fact, fix}]}`.
///
/// Exit code 0: an absent thing is a fact, not a fault.
/// `efficiency` is the table that the command line names.
pub fn run(efficiency: Option<&Path>, json: bool, out: &mut dyn Write) -> io::Result<u8> {
    let mut here = Here::now();
    here.efficiency = efficiency.map(Path::to_owned);
    report(&here, json, out)
}

fn report(here: &Here, json: bool, out: &mut dyn Write) -> io::Result<u8> {
    let lines: Vec<Line> = CHECKS.iter().map(|check| examine(check, here)).collect();
    if json {
        let document = serde_json::json!({"toposcope": env!("CARGO_PKG_VERSION"), "checks": lines});
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)?;
        return Ok(0);
    }
    let width = lines.iter().map(|line| line.title.len()).max().unwrap_or(0);
    for Line { title, found: Found { state, fact, fix }, .. } in &lines {
        writeln!(out, "{:<7}  {title:<width$}  {fact}", state.name())?;
        if let Some(fix) = fix {
            writeln!(out, "{:<7}  {:<width$}  -> {fix}", "", "")?;
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_empty_machine_is_told_with_a_way_out_for_each_absent_thing() {
        let root = tempfile::tempdir().unwrap();
        let here = Here::at(root.path(), []);
        let mut text = Vec::new();
        assert_eq!(report(&here, true, &mut text).unwrap(), 0);
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let checks = document["checks"].as_array().unwrap();
        assert_eq!(checks.len(), CHECKS.len());
        for check in checks {
            let state = check["state"].as_str().unwrap();
            assert!(state == "ok" || check["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{check}");
        }
        let state = |id: &str| checks.iter().find(|check| check["id"] == id).unwrap()["state"].as_str().unwrap();
        for id in ["mpirun", "mpiexec", "srun", "libclang"] {
            assert_eq!(state(id), "absent", "{id}");
        }
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
    }

    #[test]
    fn the_table_has_a_row_a_check_and_its_fix_below() {
        let root = tempfile::tempdir().unwrap();
        let mut text = Vec::new();
        report(&Here::at(root.path(), []), false, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for check in &CHECKS {
            assert!(text.lines().any(|line| line.get(9..).is_some_and(|rest| rest.starts_with(check.title))), "{text}");
        }
        assert!(text.lines().any(|line| line.trim_start().starts_with("-> ")), "{text}");
    }

    #[test]
    fn a_check_that_panics_is_a_line_of_the_table() {
        let root = tempfile::tempdir().unwrap();
        let check = Check { id: "x", title: "x", run: |_| panic!("library without a function") };
        assert_eq!(examine(&check, &Here::at(root.path(), [])).found.state, State::Warn);
        let check = Check { id: "x", title: "x", run: |_| Found::ok("GPU \u{1b}[31mred") };
        assert_eq!(examine(&check, &Here::at(root.path(), [])).found.fact, "GPU [31mred");
    }
}
