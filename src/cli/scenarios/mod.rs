//! `toposcope scenarios`: benchmark scenarios by name, run on the ranks that there are, as tables.

mod document;
mod method;
mod row;
mod run;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::args::{EngineArg, Global, MemoryArgs, SweepArgs};
use super::discover::{Look, Page};
use super::prices::PriceArgs;
use super::{FINE, live, print};
use crate::launch::job::Job;
use crate::plan::Traffic;
use crate::plan::scenario::{Amounts, Ground, MODEL, SIZES, Scenario, Table};
use crate::topology::Topology;
use crate::units::{format_size, parse_size, parse_sizes, plain};
use method::Typed;

pub(super) use run::Bench;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ScenariosArgs {
    #[command(subcommand)]
    pub what: Option<ScenariosCommands>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ScenariosCommands {
    /// Run scenarios, and print their tables: a row a scenario and size, a column a method. Exit code 1 where a byte was wrong, where a
    /// scenario that was named cannot be run on these ranks, and where none can
    Run(Box<RunArgs>),
}

#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Scenarios (see `toposcope scenarios`), tables of them (`one_host`, `across_hosts`, `weight_sync`, incast, staging), or all
    #[arg(
        value_name = "NAME",
        required = true,
        help = "Scenarios (see toposcope scenarios), tables of them (one_host, across_hosts, weight_sync, incast, staging), or all"
    )]
    pub names: Vec<String>,
    /// Bytes of each transfer, a row each
    #[arg(long, value_name = "SIZES", default_value = "4MiB,64MiB,256MiB")]
    pub sizes: String,
    /// Bytes of the model of a weight sync; each sender of an incast has an eighth, strided matrices have a sixteenth and a quarter
    #[arg(long, value_name = "SIZE", default_value = "8GiB")]
    pub bytes: String,
    /// How bytes go, a column each: movers (memcpy, `mpi_sendrecv`, `mpi_put`, ...), each as it is usually used, or with :staged or :window
    #[arg(
        long,
        value_name = "LIST",
        help = "How bytes go, a column each: movers (memcpy, mpi_sendrecv, mpi_put, ...), each as it is usually used, or with \
                :staged or :window behind it, such as mpi_put:staged (default: all that these ranks have)"
    )]
    pub methods: Option<String>,
    /// Staging budget of staged methods: most bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub bytes_per_peer: String,
    /// Timed runs of each; their median is told
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeats: u32,
    /// Untimed runs before them
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warmup: u32,
    /// Take these sets of ranks as hosts, such as 0-3/4-7: runs inside one host what goes across two
    #[arg(long, value_name = "SETS")]
    pub hosts: Option<String>,
    #[command(flatten)]
    pub buffer: MemoryArgs,
    /// Who the ranks are (default: mpi under an MPI launcher, sim with --fabric, else threads)
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// Number of ranks of the threads engine (default: one a core)
    #[arg(long, value_name = "N")]
    pub ranks: Option<String>,
    /// Run on a group of the job's ranks as if there were no others, such as 0-7
    #[arg(long, value_name = "SET")]
    pub group: Option<String>,
    /// Predict each row with what was measured, and tell predicted over measured
    #[arg(long, value_name = "SESSION|CAL|FITS", conflicts_with = "fabric")]
    pub calibration: Option<PathBuf>,
    /// Predict each row with a described fabric; what the sim engine simulates
    #[arg(long, value_name = "NAME|FILE")]
    pub fabric: Option<String>,
    /// Longest time of one run beside what its bytes take, such as 10s
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Print JSON (see `toposcope schema scenarios`)
    #[arg(long)]
    pub json: bool,
    /// Write the same JSON to this file, too
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What is to be run, once ranks are there.
pub struct Wanted {
    /// and whether it was named itself, not as one of a table
    scenarios: Vec<(Scenario, bool)>,
    amounts: Amounts,
    methods: Option<Vec<Typed>>,
    message: u64,
    repeats: u32,
    hosts: Option<String>,
    prices: Option<PriceArgs>,
    json: bool,
    pub(super) out: Option<PathBuf>,
}

/// List them, or run some.
pub(super) fn run(global: &Global, args: &ScenariosArgs, job: Option<Job>) -> Result<u8> {
    let Some(ScenariosCommands::Run(args)) = &args.what else {
        if job.is_none_or(|job| job.rank == 0) {
            print(&list(args.json));
        }
        return Ok(FINE);
    };
    let wanted = wanted(args)?;
    let simulates = args.engine == Some(EngineArg::Sim) || (args.engine.is_none() && job.is_none());
    let sweep = SweepArgs {
        engine: args.engine,
        ranks: args.ranks.clone(),
        group: args.group.clone(),
        // Of other engines it only predicts.
        fabric: args.fabric.clone().filter(|_| simulates),
        buffer: args.buffer.clone(),
        timeout: args.timeout.clone(),
        repeats: Some(args.repeats),
        warmup: Some(args.warmup),
        ..SweepArgs::default()
    };
    live::start(global, &sweep, &live::Mode::Scenarios(Box::new(wanted)), job)
}

fn wanted(args: &RunArgs) -> Result<Wanted> {
    let amounts = Amounts { sizes: parse_sizes(&args.sizes).context("--sizes")?, model: parse_size(&args.bytes).context("--bytes")? };
    let message = parse_size(&args.bytes_per_peer).context("--bytes-per-peer")?;
    if message == 0 {
        bail!("--bytes-per-peer: at least one byte must fit a message");
    }
    if args.repeats == 0 {
        bail!("--repeats: 0; at least one timed run");
    }
    let named_prices = args.calibration.is_some() || args.fabric.is_some();
    let prices = named_prices.then(|| PriceArgs {
        calibration: args.calibration.clone(),
        fabric: args.fabric.clone(),
        group: args.group.clone().filter(|_| args.calibration.is_some()),
        ..PriceArgs::default()
    });
    Ok(Wanted {
        scenarios: named(&args.names)?,
        amounts,
        methods: args.methods.as_deref().map(method::parse).transpose()?,
        message,
        repeats: args.repeats,
        hosts: args.hosts.clone(),
        prices,
        json: args.json,
        out: args.out.clone(),
    })
}

/// The scenarios that these names stand for, each once, in the order of their tables, and whether each was named itself.
fn named(names: &[String]) -> Result<Vec<(Scenario, bool)>> {
    let all = Scenario::all();
    let mut chosen: Vec<Option<bool>> = vec![None; all.len()];
    for name in names.iter().flat_map(|names| names.split(',')).map(str::trim) {
        let is = |scenario: &Scenario| name == "all" || scenario.table().name() == name || scenario.name() == name;
        if !all.iter().any(is) {
            let tables: Vec<_> = Table::ALL.into_iter().map(Table::name).collect();
            let names: Vec<_> = all.iter().map(|scenario| scenario.name()).collect();
            bail!("{:?} is no scenario; there are {}, the tables {}, and all", plain(name), names.join(", "), tables.join(", "));
        }
        for (chosen, scenario) in chosen.iter_mut().zip(&all) {
            let own = name == scenario.name();
            *chosen = if is(scenario) { Some(own || *chosen == Some(true)) } else { *chosen };
        }
    }
    Ok(all.into_iter().zip(chosen).filter_map(|(scenario, chosen)| chosen.map(|own| (scenario, own))).collect())
}

/// A scenario as one plan for the Replay tab, of `NAME` or `NAME:SIZE`: its last row, with that size (64 MiB; of a model 8 GiB), as one
/// message from rank to rank; of a row of several plans the first.
pub(super) fn plan(text: &str, topology: &Topology) -> Result<Traffic, String> {
    let (name, size) = text.split_once(':').map_or((text, None), |(name, size)| (name, Some(size)));
    let scenario = Scenario::named(name.trim()).ok_or_else(|| {
        let names: Vec<_> = Scenario::all().into_iter().map(Scenario::name).collect();
        format!("scenario:{}: there are {}", plain(name), names.join(", "))
    })?;
    let size = size.map(parse_size).transpose().map_err(|error| format!("scenario:{}: {error}", plain(text)))?;
    let amounts = Amounts { sizes: vec![size.unwrap_or(SIZES[1])], model: size.unwrap_or(MODEL) };
    let (mut cases, mut lacks) = scenario.cases(&Ground::of(topology), &amounts);
    let Some(case) = cases.pop() else {
        return Err(lacks.pop().map_or_else(|| format!("{name}: it has no row"), |lack| format!("{}: {}", lack.pattern, lack.why)));
    };
    let plans = case.plans(None)?;
    let first = plans.first().ok_or_else(|| format!("{name}: nothing to move"))?;
    let part = if first.part.is_empty() { String::new() } else { format!(", {}", first.part) };
    let traffic = first.transfers.traffic().map_err(|error| error.to_string())?;
    Ok(Traffic { name: format!("{}, {}{part}", case.pattern, format_size(case.bytes)), ..traffic })
}

fn list(json: bool) -> String {
    let all = Scenario::all();
    if json {
        let told = |scenario: &Scenario| json!({"name": scenario.name(), "table": scenario.table().name(), "about": scenario.about()});
        return format!("{:#}\n", json!(all.iter().map(told).collect::<Vec<_>>()));
    }
    let mut page = Page::new(Look::now());
    for table in Table::ALL {
        page.line(&format!("{}: {}", table.name(), table::unit(table)));
        for scenario in all.iter().filter(|scenario| scenario.table() == table) {
            page.sentence(&format!("  {:<16}", scenario.name()), &scenario.about());
        }
    }
    page.line("");
    page.sentence("", "toposcope scenarios run NAME.. runs them, by scenario, table or all: on threads, or under mpirun on its ranks");
    page.sentence("", "scenario:NAME (or scenario:NAME:SIZE) in place of a plan's file loads one into the Replay tab");
    page.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    #[test]
    fn names_stand_for_scenarios_tables_and_all_of_them() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            named(&names).map(|found| found.into_iter().map(|(scenario, _)| scenario.name()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["xpeer", "peer,incast", "peer"]).unwrap(), ["peer", "xpeer", "incast"]);
        assert_eq!(of(&["weight_sync"]).unwrap(), ["sync_direct", "sync_relay", "sync_sharded", "sync_plan", "sync_ring"]);
        assert_eq!(of(&["all"]).unwrap().len(), Scenario::all().len());
        let refused = of(&["fan"]).unwrap_err().to_string();
        assert!(refused.contains("\"fan\"") && refused.contains("mixed_fan_out") && refused.contains("one_host"), "{refused}");
    }

    #[test]
    fn a_scenario_is_a_plan_for_the_ranks_of_a_topology() {
        let place = |rank| Placement { rank, host: format!("h{}", rank / 2), ..Placement::default() };
        let topology = Topology::of((0..4).map(place).collect());
        let made = plan("xfan_in:1MiB", &topology).unwrap();
        assert_eq!((made.name.as_str(), made.bytes(), made.flows.len()), ("xfan_in, 1 MiB", 2 << 20, 2));
        assert_eq!(plan("peer", &topology).unwrap().name, "peer (median of 2), 64 MiB, 0→1");
        assert_eq!(plan("incast:8MiB", &topology).unwrap().flows.len(), 2, "the widest");
        assert_eq!(plan("sync_plan:1MiB", &topology).unwrap().bytes(), 2 << 20);
        assert!(plan("strided:1MiB", &topology).unwrap().flows.iter().any(|flow| flow.staged.packs > 0));
        for (wrong, told) in [("fan", "mixed_fan_out"), ("ring:q", "a size such as"), ("bipartite_4x4", "needs 8 ranks")] {
            let why = plan(wrong, &topology).unwrap_err();
            assert!(why.contains(told), "{wrong}: {why}");
        }
        assert!(super::super::plans::load("scenario:ring".as_ref(), &topology).is_ok(), "as a person types it");
    }

    #[test]
    fn the_list_has_every_scenario_once() {
        let text = list(false);
        for scenario in Scenario::all() {
            let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(&scenario.name())).count();
            assert_eq!(lines, 1, "{}", scenario.name());
        }
        let told: Vec<serde_json::Value> = serde_json::from_str(&list(true)).unwrap();
        assert_eq!(told.len(), Scenario::all().len());
    }
}
