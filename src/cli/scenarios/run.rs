//! The runs, one after another, each an execution of the session.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::rc::Rc;

use anyhow::{Context, Result, bail};

use super::super::args::MemoryArg;
use super::super::discover::Look;
use super::super::prices::{self, PriceArgs, Priced};
use super::super::progress::Steps;
use super::super::recorder::Recorder;
use super::super::{FINE, FOUND};
use super::method::{self, Method};
use super::row::{Cell, Row};
use super::{Wanted, document, table};
use crate::measure::Conductor;
use crate::plan::scenario::{Case, Ground, Lack, Plan, Scenario, Table};
use crate::plan::{Foreseen, Traffic};
use crate::sample::{EngineKind, MoverKind};
use crate::session::Event;
use crate::sweep::SweepSettings;
use crate::topology::Topology;
use crate::units::{format_size, parse_ranks, plain};

/// Ranks that are there, and those who watch them.
pub(in crate::cli) struct Bench<'a, 'b> {
    pub conductor: &'a mut Conductor<'b>,
    pub recorder: &'a RefCell<Recorder>,
    /// told when a plan is run
    pub foreseen: &'a Rc<RefCell<Option<Foreseen>>>,
    pub movers: &'a [MoverKind],
}

/// All that came of it.
pub(super) struct Report {
    pub engine: &'static str,
    /// folder of the session that has every run
    pub session: String,
    pub memory: &'static str,
    pub ground: Ground,
    /// the sets of ranks were given, not found
    pub given: bool,
    pub methods: Vec<Method>,
    pub repeats: u32,
    pub warmup: u32,
    /// what the predictions are of
    pub prices: Option<String>,
    pub rows: Vec<Row>,
    pub lacks: Vec<Lack>,
    /// what makes the times doubtful
    pub doubts: Vec<String>,
}

impl Bench<'_, '_> {
    /// Run what is wanted; how it goes is told on standard error. What to print, the exit code, and what else went wrong.
    ///
    /// # Errors
    /// Sets of ranks, methods or prices that do not fit these ranks.
    pub fn all(&mut self, wanted: &Wanted, like: &SweepSettings, out: &File) -> Result<(String, u8, Option<String>)> {
        let (topology, engine, session) = {
            let recorder = self.recorder.borrow();
            let header = &recorder.model().header;
            (header.topology.clone(), header.engine.name(), recorder.folder().display().to_string())
        };
        let ground = ground(wanted, &topology)?;
        let methods = method::chosen(wanted.methods.as_deref(), self.movers, like.memory, wanted.message)?;
        let mut report = Report {
            engine,
            session,
            memory: like.memory.name(),
            ground,
            given: wanted.hosts.is_some(),
            methods,
            repeats: wanted.repeats,
            warmup: like.warmup,
            prices: None,
            rows: Vec::new(),
            lacks: Vec::new(),
            doubts: if engine == EngineKind::Sim.name() { Vec::new() } else { crowded(&topology) },
        };
        let columns: Vec<(Method, Option<Priced>)> =
            report.methods.iter().map(|&method| Ok((method, priced(wanted, method, like, topology.world())?))).collect::<Result<_>>()?;
        report.prices = columns.iter().find_map(|(_, priced)| priced.as_ref().map(|priced| plain(&priced.name)));
        let mut missed = false;
        let staged = |table| if table == Table::Staging { method::staged(&report.methods, wanted.message) } else { report.methods.clone() };
        let cases = |scenario: &Scenario| scenario.cases(&report.ground, &wanted.amounts).0.len() * staged(scenario.table()).len();
        let mut steps = Steps::new(out, wanted.scenarios.iter().map(|(scenario, _)| cases(scenario)).sum());
        for (scenario, asked) in &wanted.scenarios {
            let (cases, lacks) = scenario.cases(&report.ground, &wanted.amounts);
            // Of a table or of all some rows are always too wide.
            missed |= *asked && cases.is_empty();
            report.lacks.extend(lacks);
            let own = staged(scenario.table());
            for case in cases {
                let price =
                    |method: &Method| columns.iter().find(|(own, _)| own.mover == method.mover).and_then(|(_, priced)| priced.as_ref());
                let cells = own.iter().map(|&method| self.cell(&case, method, price(&method), wanted.repeats, like, &mut steps)).collect();
                report.rows.push(Row { case, cells });
            }
        }
        let good = !missed && !report.rows.is_empty() && report.rows.iter().all(Row::is_good);
        let document = document::json(&report);
        let kept = wanted.out.as_ref().and_then(|path| fs::write(path, &document).err().map(|error| (path, error)));
        let text = if wanted.json { document } else { table::text(&report, Look::now()) };
        // Hours of runs are told even where the file cannot be written.
        let complaint = kept.map(|(path, error)| format!("toposcope: --out {}: {error}", path.display()));
        Ok((text, if good { FINE } else { FOUND }, complaint))
    }

    /// One cell: every plan of the row by one method.
    fn cell(
        &mut self,
        case: &Case,
        method: Method,
        priced: Option<&Priced>,
        repeats: u32,
        like: &SweepSettings,
        steps: &mut Steps,
    ) -> Cell {
        let message = case.budget.or(method.message);
        let method = Method { message, ..method };
        let mut cell = Cell {
            method,
            plans: 1,
            bytes: Vec::new(),
            seconds: Vec::new(),
            runs: 0,
            verified: 0,
            figure: f64::NAN,
            predicted: None,
            doubts: Vec::new(),
            failed: String::new(),
            impossible: false,
        };
        let budget = case.budget.map_or_else(String::new, |budget| format!(", budget {}", format_size(budget)));
        let row = format!("{}, {}{budget}, {}", case.pattern, format_size(case.bytes), method.name());
        steps.next(&format!("running {}", plain(&row)));
        let plans = match case.plans(message) {
            Ok(plans) => plans,
            Err(why) => {
                cell.failed = plain(&why);
                return cell;
            }
        };
        cell.plans = plans.len();
        if let Some((from, to)) = self.far(&plans, method.mover, like) {
            cell.failed = format!("{} works between ranks of one host, and {from}→{to} are on two", method.mover.name());
            cell.impossible = true;
            return cell;
        }
        let (mut foreseen, mut bytes) = (Vec::new(), Vec::new());
        for plan in &plans {
            let name = if plan.part.is_empty() { row.clone() } else { format!("{row}, {}", plan.part) };
            match self.plan(&name, plan, priced, repeats, &SweepSettings { mover: method.mover, ..like.clone() }, &mut cell) {
                Ok(Some(seconds)) => {
                    foreseen.push(seconds);
                    bytes.push(plan.bytes);
                }
                Err(why) if cell.failed.is_empty() => cell.failed = why,
                Ok(None) | Err(_) => {}
            }
        }
        cell.figure = case.figure(&cell.bytes, &cell.seconds);
        cell.predicted = (foreseen.len() == plans.len()).then(|| case.figure(&bytes, &foreseen));
        cell
    }

    /// The first flow between two hosts, where a mover of GPUs' memory does not go.
    fn far(&self, plans: &[Plan], mover: MoverKind, like: &SweepSettings) -> Option<(usize, usize)> {
        if like.memory.is_host() || !mover.stays_on_host() {
            return None;
        }
        let nodes = self.recorder.borrow().model().header.topology.node_of();
        let mut flows = plans.iter().filter_map(|plan| plan.transfers.traffic().ok()).flat_map(|traffic| traffic.flows);
        flows.find(|flow| nodes.get(flow.from) != nodes.get(flow.to)).map(|flow| (flow.from, flow.to))
    }

    /// Run one plan, and add what came of it to its cell. What was foreseen for it, seconds.
    fn plan(
        &mut self,
        name: &str,
        plan: &Plan,
        priced: Option<&Priced>,
        repeats: u32,
        like: &SweepSettings,
        cell: &mut Cell,
    ) -> Result<Option<f64>, String> {
        let traffic = Traffic { name: name.to_owned(), ..plan.transfers.traffic().map_err(|error| error.to_string())? };
        let (foreseen, doubts) = match priced.map(|priced| priced.foresee(traffic.clone())) {
            Some(Ok((foreseen, doubts))) => (Some(foreseen), doubts),
            Some(Err(why)) => (None, BTreeSet::from([format!("{why:#}")])),
            None => (None, BTreeSet::new()),
        };
        let new: Vec<String> = doubts.into_iter().filter(|doubt| !cell.doubts.contains(doubt)).collect();
        cell.doubts.extend(new);
        let seconds = foreseen.as_ref().map(|foreseen| foreseen.seconds);
        self.recorder.borrow_mut().record(Event::PlanLoaded { traffic });
        self.foreseen.borrow_mut().clone_from(&foreseen);
        let before = self.recorder.borrow().model().executions.len();
        let first = cell.runs == 0 && cell.verified == 0 && cell.seconds.is_empty();
        self.conductor.execute(name, &plan.transfers, repeats, like);
        let recorder = self.recorder.borrow();
        let Some(execution) = recorder.model().executions.get(before) else { return Err("nothing was told of the run".to_owned()) };
        if let Some(median) = execution.median() {
            cell.bytes.push(plan.bytes);
            cell.seconds.push(median.seconds);
        }
        // Of the plan that has the fewest.
        cell.runs = if first { execution.runs.len() } else { cell.runs.min(execution.runs.len()) };
        cell.verified += execution.verified;
        if !execution.failed.is_empty() {
            return Err(execution.failed.clone());
        }
        Ok(seconds)
    }
}

/// Prices as a method's mover would need them on the memory that is measured.
fn priced(wanted: &Wanted, method: Method, like: &SweepSettings, world: usize) -> Result<Option<Priced>> {
    let Some(named) = &wanted.prices else { return Ok(None) };
    let calibrated = named.calibration.is_some();
    let mover = calibrated.then(|| method.mover.name().to_owned());
    let memory = calibrated.then(|| MemoryArg::of(like.memory));
    let PriceArgs { calibration, fabric, group, .. } = named;
    let (calibration, fabric, group) = (calibration.clone(), fabric.clone(), group.clone());
    let priced = prices::load(&PriceArgs { calibration, fabric, group, mover, memory, ..PriceArgs::default() })?;
    if priced.ranks().len() < world {
        let what = if named.fabric.is_some() { "--fabric" } else { "--calibration" };
        bail!("{what}: it has prices of {} ranks, and there are {world}", priced.ranks().len());
    }
    Ok(Some(priced))
}

/// The ranks by host, as they are or as they were given.
fn ground(wanted: &Wanted, topology: &Topology) -> Result<Ground> {
    let Some(text) = &wanted.hosts else { return Ok(Ground::of(topology)) };
    let world = topology.world();
    let sets = text.split('/').map(|set| parse_ranks(set, world).with_context(|| format!("--hosts {text}")));
    let sets = sets.collect::<Result<Vec<_>>>()?;
    Ground::given(world, sets).map_err(|why| anyhow::anyhow!("--hosts {text}: {why}; such as 0-3/4-7"))
}

/// Hosts with fewer cores than ranks: a rank that waits for one starts late, or sees late what has come.
fn crowded(topology: &Topology) -> Vec<String> {
    let mut hosts: BTreeMap<&str, (usize, BTreeSet<usize>)> = BTreeMap::new();
    for rank in &topology.ranks {
        let (ranks, cores) = hosts.entry(&rank.host).or_default();
        *ranks += 1;
        cores.extend(&rank.cores);
    }
    let crowded = hosts.into_iter().filter(|(_, (ranks, cores))| !cores.is_empty() && *ranks > cores.len());
    let say = |(host, (ranks, cores)): (&str, (usize, BTreeSet<usize>))| {
        let plural = if cores.len() == 1 { "" } else { "s" };
        plain(&format!("{host}: {ranks} ranks on {} core{plural}; they wait for each other, and times tell little of links", cores.len()))
    };
    crowded.map(say).collect()
}
