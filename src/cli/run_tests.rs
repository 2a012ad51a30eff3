//! `--run-tests`: the ranks that a session was measured with, started again, for the tests that decide what its samples leave open.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::args::{EngineArg, Global, SweepArgs};
use super::recorder::Recorder;
use super::{efficiency, live};
use crate::diagnose::{Diagnosis, Finding, diagnose};
use crate::launch::job::Job;
use crate::measure::Conductor;
use crate::sample::EngineKind;
use crate::session::{measured, store};
use crate::sweep::SweepSettings;
use crate::units::format_ranks;

/// Run at most `count` tests of a session's findings, gravest first, each after looking at what the ones before brought, and append
/// them to the session; how they go is told on standard error, nothing is printed. Whoever calls reads the session again afterwards.
///
/// Threads and simulated ranks are started here; `fabric` names the fabric of a simulated session where its header does not. MPI
/// ranks must be there: the command runs under the launcher with as many of them. Gives back the exit code: 0, or 1 if a test failed.
/// Ranks of a job above 0 come back when rank 0 has let them go, and have nothing left to do but to end with it.
///
/// Fails if there is no session at the path (a calibration has no place for tests), if it is written elsewhere, and if the ranks, hosts,
/// group or fabric are not those that it was measured with.
pub(super) fn run(global: &Global, session: &Path, fabric: Option<&str>, count: usize, job: Option<Job>) -> Result<u8> {
    let mode = live::Mode::Tests { count };
    if let Some(job) = job.filter(|job| job.rank > 0) {
        // The session is a folder of rank 0's host.
        return live::start(global, &SweepArgs { engine: Some(EngineArg::Mpi), ..SweepArgs::default() }, &mode, Some(job));
    }
    if !session.is_dir() {
        bail!("--run-tests: {} is no session's folder; tests are added to a session", session.display());
    }
    let header = store::read_header(session)?;
    let world = header.topology.world();
    if header.engine == EngineKind::Mpi && job.is_none() {
        bail!(
            "--run-tests: {} was measured with {world} MPI ranks; start it with as many: mpirun -n {world} toposcope diagnose {0} --run-tests",
            session.display()
        );
    }
    let engine = match header.engine {
        EngineKind::Threads => EngineArg::Threads,
        EngineKind::Mpi => EngineArg::Mpi,
        EngineKind::Sim => EngineArg::Sim,
        EngineKind::Imported => bail!(
            "--run-tests: {} was imported from another tool's output: its ranks are not here; measure them with `toposcope sweep`",
            session.display()
        ),
    };
    let named =
        || header.simulated().map(str::to_owned).context("--run-tests: its header names no fabric; name it with --fabric NAME|FILE");
    let fabric = match (header.engine, fabric) {
        (_, Some(fabric)) => Some(fabric.to_owned()),
        (EngineKind::Sim, None) => Some(named()?),
        _ => None,
    };
    // A group's own numbers begin at 0; the job has at least its last rank.
    let threads = header.group.iter().max().map_or(world, |last| last + 1);
    let args = SweepArgs {
        engine: Some(engine),
        ranks: (header.engine == EngineKind::Threads).then(|| threads.to_string()),
        group: (!header.group.is_empty()).then(|| format_ranks(&header.group)),
        fabric,
        resume: Some(session.to_owned()),
        ..SweepArgs::default()
    };
    live::start(global, &args, &mode, job)
}

/// The tests, one after another.
pub(super) fn all(
    global: &Global,
    conductor: &mut Conductor<'_>,
    recorder: &RefCell<Recorder>,
    like: &SweepSettings,
    count: usize,
    mut out: &File,
) -> Result<()> {
    let table = efficiency::table(global)?;
    let look = || diagnose(&measured(recorder.borrow().model(), &table));
    let mut diagnosis = look();
    for number in 1..=count {
        let Some((id, next)) = diagnosis.findings.iter().find_map(runnable) else {
            let _ = writeln!(out, "toposcope: no {}test would tell more", if number == 1 { "" } else { "further " });
            break;
        };
        let _ = writeln!(out, "test {number}: {}", next.test.say);
        conductor.test(id, &next.test, like);
        conductor.run(None, true);
        let id = id.to_owned();
        diagnosis = look();
        let _ = writeln!(out, "  {}", last_told(&diagnosis, &id));
    }
    Ok(())
}

/// The test of a finding, if it can be run here.
fn runnable(finding: &Finding) -> Option<(&str, &crate::diagnose::next::Next)> {
    finding.next.as_ref().filter(|next| next.cannot.is_empty()).map(|next| (finding.id.as_str(), next))
}

/// What the last test of a finding told.
fn last_told<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a str {
    let finding = diagnosis.findings.iter().find(|finding| finding.id == id);
    finding.and_then(|finding| finding.told.last()).map_or("what it was about is not seen any more", String::as_str)
}

#[cfg(test)]
mod tests {
    use crate::session::Header;

    #[test]
    fn the_fabric_of_a_session_is_read_from_what_it_was_measured_with() {
        let mut header: Header = serde_json::from_value(serde_json::json!({
            "format": Header::current_format(), "program": "1", "name": "x", "started": "2025-01-01T10:00:00Z", "engine": "sim",
            "topology": {"hosts": [], "ranks": []}, "software": {"sim": "toposcope 1.0 simulating b70-8: eight GPUs: two sockets"},
        }))
        .unwrap();
        assert_eq!(header.simulated(), Some("b70-8"));
        header.software.clear();
        assert_eq!(header.simulated(), None);
    }
}
