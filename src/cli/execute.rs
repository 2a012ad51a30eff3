//! `--execute`: plans run for real on threads of this machine, on the ranks of this MPI job, or on a described fabric's; what was
//! measured against what was foreseen, and every byte compared.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::args::{EngineArg, Global, MemoryArg, MemoryArgs, SweepArgs};
use super::prices::Priced;
use super::progress::Steps;
use super::recorder::Recorder;
use super::replay::ReplayArgs;
use super::{FINE, FOUND, live, prices};
use crate::diagnose::MARGIN;
use crate::import::plans as import;
use crate::launch::job::Job;
use crate::measure::Conductor;
use crate::plan::{Execution, Foreseen, Traffic, Transfers};
use crate::sample::{MPI_MOVERS, Memory, MoverKind};
use crate::session::Event;
use crate::sweep::{MOST_REPEATS, SweepSettings};
use crate::transport::threads;
use crate::units::{format_count, format_seconds, plain};

/// Timed runs when nobody says otherwise.
const REPEATS: u32 = 5;

/// How plans are run.
#[derive(Debug, Clone, Args)]
pub struct ExecuteArgs {
    /// Run it for real, too: on threads of this machine, or on the ranks of this MPI job; every byte is compared. Exit code 1 where one
    /// is wrong, or where the measured time is outside the predicted interval by more than --tolerance
    #[arg(long)]
    pub execute: bool,
    /// With --execute: timed runs, after one that is not (default: 5)
    #[arg(long, value_name = "N", requires = "execute", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPEATS)))]
    pub repeats: Option<u32>,
    /// With --execute: who the ranks are (default: mpi under an MPI launcher, else threads)
    #[arg(long, value_enum, requires = "execute")]
    pub engine: Option<EngineArg>,
    /// With --execute and --memory cuda: the GPU of each rank of a host, in their order, such as 0,1,3; see toposcope sweep
    #[arg(long, value_name = "LIST", requires = "execute")]
    pub gpus: Option<String>,
    /// With --execute: longest time of one run beside what its bytes take, such as 10s
    #[arg(long, value_name = "TIME", requires = "execute")]
    pub timeout: Option<String>,
    /// With --execute: how far outside the predicted interval is accepted, as a share (default: 0.15)
    #[arg(long, value_name = "SHARE", requires = "execute")]
    pub tolerance: Option<f64>,
}

/// A plan to be run.
pub(super) struct ToRun {
    pub(super) name: String,
    pub(super) transfers: Transfers,
    pub(super) traffic: Traffic,
    /// absent where nothing was calibrated
    pub(super) foreseen: Option<Foreseen>,
}

/// All that are to be run.
pub(super) struct Runs {
    pub(super) plans: Vec<ToRun>,
    pub(super) repeats: u32,
    pub(super) tolerance: f64,
    pub(super) json: bool,
}

/// `toposcope replay --execute`. A rank above 0 of an MPI job carries what rank 0 tells it; files lie on rank 0's host.
pub(super) fn run(global: &Global, wanted: &ReplayArgs, job: Option<Job>) -> Result<u8> {
    let args = &wanted.execute;
    let engine = args.engine.or(if job.is_some() { Some(EngineArg::Mpi) } else { Some(EngineArg::Threads) });
    let sweep = SweepArgs { engine, group: wanted.price.group.clone(), ..SweepArgs::default() };
    if let Some(job) = job.filter(|job| job.rank > 0) {
        let nothing = Runs { plans: Vec::new(), repeats: 1, tolerance: MARGIN, json: false };
        return live::start(global, &sweep, &live::Mode::Plans(nothing), Some(job));
    }
    let tolerance = args.tolerance.unwrap_or(MARGIN);
    anyhow::ensure!(tolerance >= 0.0 && tolerance.is_finite(), "--tolerance: {tolerance} is no share; such as 0.15");
    let measured = wanted.price.calibration.is_some() || wanted.price.fabric.is_some();
    let priced = measured.then(|| prices::load(&wanted.price)).transpose()?;
    let (mover, memory) = conditions(wanted, priced.as_ref(), engine);
    let plans = named(wanted, priced.as_ref())?;
    let ranks = plans.iter().map(|plan| plan.traffic.ranks).max().unwrap_or(0);
    let sweep = SweepArgs {
        ranks: (engine == Some(EngineArg::Threads) && sweep.group.is_none()).then(|| ranks.to_string()),
        fabric: if engine == Some(EngineArg::Sim) { wanted.price.fabric.clone() } else { None },
        mover,
        buffer: MemoryArgs { memory, gpus: args.gpus.clone() },
        timeout: args.timeout.clone(),
        ..sweep
    };
    let runs = Runs { plans, repeats: args.repeats.unwrap_or(REPEATS), tolerance, json: wanted.json };
    live::start(global, &sweep, &live::Mode::Plans(runs), job)
}

/// Mover and memory of the runs: as typed, else as in the calibration that foresees them, where these ranks have that.
fn conditions(wanted: &ReplayArgs, priced: Option<&Priced>, engine: Option<EngineArg>) -> (Option<String>, Option<MemoryArg>) {
    let measured = priced.and_then(|priced| priced.calibrated.as_ref()).map(|calibrated| calibrated.measured().clone()).unwrap_or_default();
    let own = match engine {
        Some(EngineArg::Mpi) => MPI_MOVERS,
        Some(EngineArg::Threads) => threads::MOVERS,
        Some(EngineArg::Sim) | None => &[],
    };
    let memory = wanted.price.memory.or(measured.memory.filter(|_| !own.is_empty()).map(MemoryArg::of));
    let there = memory.map_or(Memory::Host, MemoryArg::memory);
    // Of those that run no plans, the usual one takes the place.
    let able = |mover: &MoverKind| own.contains(mover) && mover.carries(there);
    let mover = measured.mover.filter(able).map(|mover| mover.name().to_owned());
    (wanted.price.mover.clone().or(mover), memory)
}

/// The plans that were named, each with what is foreseen where there are prices.
fn named(wanted: &ReplayArgs, priced: Option<&Priced>) -> Result<Vec<ToRun>> {
    let given = wanted.given.given()?;
    let mut plans: Vec<ToRun> = Vec::new();
    for path in &wanted.plans {
        let file = || path.display().to_string();
        let transfers = import::read(path, &given)?;
        let traffic = transfers.traffic().with_context(file)?.plain();
        let foreseen = priced.map(|priced| priced.foresee(traffic.clone())).transpose().with_context(file)?.map(|(foreseen, _)| foreseen);
        let stem = path.file_stem().map_or_else(String::new, |stem| plain(&stem.to_string_lossy()));
        let mut name = if traffic.name.is_empty() { stem.clone() } else { traffic.name.clone() };
        if plans.iter().any(|plan| plan.name == name) {
            name = format!("{name} ({stem})");
        }
        plans.push(ToRun { name, transfers, traffic, foreseen });
    }
    Ok(plans)
}

/// The runs, one after another; how they go is told on a terminal.
pub(super) fn all(
    conductor: &mut Conductor<'_>,
    recorder: &RefCell<Recorder>,
    foreseen: &Rc<RefCell<Option<Foreseen>>>,
    plans: &Runs,
    like: &SweepSettings,
    out: &File,
) {
    let mut steps = Steps::new(out, plans.plans.len());
    for plan in &plans.plans {
        steps.next(&format!("running {}: {} timed runs by {}", plain(&plan.name), plans.repeats, like.mover.told(like.memory)));
        recorder.borrow_mut().record(Event::PlanLoaded { traffic: Traffic { name: plan.name.clone(), ..plan.traffic.clone() } });
        foreseen.borrow_mut().clone_from(&plan.foreseen);
        conductor.execute(&plan.name, &plan.transfers, plans.repeats, like);
    }
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    execution: &'a Execution,
    #[serde(skip_serializing_if = "Option::is_none")]
    residual: Option<crate::plan::Residual>,
    within: bool,
}

/// True if every byte was right and the time is as foreseen.
fn is_good(execution: &Execution, tolerance: f64) -> bool {
    execution.failed.is_empty() && execution.residual().is_none_or(|residual| !residual.is_beyond(tolerance))
}

/// What came of them, and the exit code.
pub(super) fn told(plans: &Runs, traffics: &[Traffic], executions: &[Execution]) -> Result<(String, u8)> {
    let good = executions.len() == plans.plans.len() && executions.iter().all(|execution| is_good(execution, plans.tolerance));
    let code = if good { FINE } else { FOUND };
    if plans.json {
        let told = |execution| Told { execution, residual: execution.residual(), within: is_good(execution, plans.tolerance) };
        let text = serde_json::to_string_pretty(&executions.iter().map(told).collect::<Vec<_>>()).context("JSON")?;
        return Ok((text + "\n", code));
    }
    let mut text = String::new();
    for execution in executions {
        let traffic = traffics.iter().rev().find(|traffic| traffic.name == execution.name);
        text.push_str(&words(execution, traffic, plans.tolerance));
    }
    Ok((text, code))
}

/// One of them in words.
fn words(execution: &Execution, traffic: Option<&Traffic>, tolerance: f64) -> String {
    let mut text = String::new();
    let runs = execution.runs.len();
    let bytes = if execution.verified == 0 && execution.mover == "simulated" {
        "nothing moved, so no byte was compared".to_owned()
    } else {
        format!("{} target bytes compared", format_count(execution.verified))
    };
    let plural = if runs == 1 { "" } else { "s" };
    let _ = writeln!(text, "{}: {runs} timed run{plural} by {}, {bytes}", execution.name, execution.carried_by());
    if !execution.failed.is_empty() {
        let _ = writeln!(text, "  failed: {}", execution.failed);
    }
    let stage = |number: usize| traffic.and_then(|traffic| traffic.stages.get(number)).map_or("", |stage| stage.name.as_str());
    let Some(residual) = execution.residual() else {
        if let Some(median) = execution.median() {
            let _ = writeln!(text, "  {:<28} {:>11}", "", "measured");
            let _ = writeln!(text, "  {:<28} {:>11}", "all of it", format_seconds(median.seconds));
            for (number, seconds) in median.stages.iter().enumerate() {
                let _ = writeln!(
                    text,
                    "  {:<28} {:>11}",
                    format!("until {} is over", stage_name(stage(number), number)),
                    format_seconds(*seconds)
                );
            }
            text.push_str("  nothing was foreseen: no calibration of these ranks\n");
        }
        return text;
    };
    let mut row = |what: &str, measured: f64, foreseen: f64| {
        let ratio = if foreseen > 0.0 { format!("{:.2}", measured / foreseen) } else { "–".to_owned() };
        let _ = writeln!(text, "  {what:<28} {:>11} {:>11} {ratio:>6}", format_seconds(measured), format_seconds(foreseen));
    };
    row("all of it", residual.seconds, residual.foreseen);
    for (number, &(measured, foreseen)) in residual.stages.iter().enumerate() {
        row(&format!("until {} is over", stage_name(stage(number), number)), measured, foreseen);
    }
    let head = format!("  {:<28} {:>11} {:>11} {:>6}\n", "", "measured", "foreseen", "ratio");
    let at = text.find("  all of it").unwrap_or(0);
    text.insert_str(at, &head);
    let (low, high) = (format_seconds(residual.low), format_seconds(residual.high));
    let side = if residual.is_beyond(tolerance) { "outside" } else { "within" };
    let _ = writeln!(text, "  {side} the interval foreseen, {low} to {high}, give or take {:.0} %", tolerance * 100.0);
    if let Some(foreseen) = &execution.foreseen {
        let _ = writeln!(text, "  binds: {}", foreseen.bottleneck);
    }
    for (name, busy, last) in &residual.resources {
        let share = if *last > 0.0 { format!("{:.0} %", 100.0 * busy / last) } else { "–".to_owned() };
        let _ = writeln!(
            text,
            "  {name}: {} of load, its last flow done after {} ({share} of that time)",
            format_seconds(*busy),
            format_seconds(*last)
        );
    }
    text
}

fn stage_name(name: &str, number: usize) -> String {
    if name.is_empty() { format!("stage {number}") } else { plain(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Run, Stage};

    fn execution(seconds: f64) -> Execution {
        let foreseen = Foreseen {
            seconds: 1.0,
            low: 0.9,
            high: 1.1,
            stages: vec![1.0],
            bottleneck: "port of node3: 8 MiB over 8.4 MB/s".to_owned(),
            resources: vec![("port of node3".to_owned(), 0.99, vec![0])],
        };
        let run = Run { seconds, stages: vec![seconds], flows: vec![seconds] };
        let mover = "mpi_put".to_owned();
        Execution { name: "relay".to_owned(), mover, runs: vec![run], verified: 77, foreseen: Some(foreseen), ..Execution::default() }
    }

    fn runs(json: bool) -> Runs {
        let traffic =
            Traffic { name: "relay".to_owned(), stages: vec![Stage { name: "across".to_owned(), waits: true }], ..Traffic::default() };
        let plan = ToRun { name: "relay".to_owned(), transfers: Transfers::Traffic(traffic.clone()), traffic, foreseen: None };
        Runs { plans: vec![plan], repeats: 1, tolerance: MARGIN, json }
    }

    #[test]
    fn what_was_measured_is_told_beside_what_was_foreseen_and_decides_the_exit_code() {
        let plans = runs(false);
        let traffics = [plans.plans[0].traffic.clone()];
        let (text, code) = super::told(&plans, &traffics, &[execution(1.2)]).unwrap();
        assert_eq!(code, FINE);
        for told in ["77 target bytes", "all of it", "until across is over", "1.20", "within the interval", "binds: port of node3"] {
            assert!(text.contains(told), "{told}:\n{text}");
        }
        let (text, code) = super::told(&plans, &traffics, &[execution(1.3)]).unwrap();
        assert!(code == FOUND && text.contains("outside the interval"), "{text}");
        let failed = Execution { failed: "rank 3: byte 7".to_owned(), runs: Vec::new(), ..execution(1.0) };
        let (text, code) = super::told(&plans, &traffics, &[failed]).unwrap();
        assert!(code == FOUND && text.contains("failed: rank 3: byte 7"), "{text}");
        assert_eq!(super::told(&plans, &traffics, &[]).unwrap().1, FOUND, "refused");
    }

    #[test]
    fn json_has_the_residual() {
        let plans = runs(true);
        let (text, _) = super::told(&plans, &[], &[execution(1.2)]).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&told[0]["within"], &told[0]["residual"]["seconds"]), (&true.into(), &1.2.into()));
    }
}
