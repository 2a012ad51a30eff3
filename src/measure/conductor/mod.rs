//! The one who runs the sweep, and the tests of findings and plans between its rounds.

mod executing;
mod gpus;
mod testing;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use self::testing::Testing;
use super::planner::Planner;
use super::ways::Ways;
use super::{Gate, samples};
use crate::plan::{Foreseen, Traffic};
use crate::sample::{MoverKind, Pattern, Sample, Status};
use crate::session::{Command, Event, Outcome};
use crate::sweep::{Cell, Done, Enough, Hosts, Knowledge, Probe, SweepSettings, Target, estimate, lanes};
use crate::transport::{End, Engine, Order, ProbeReport, Report, Setup};
use crate::units::format_size;

/// Where events go: the store, the screen, the socket. With the engine's own time, if it has one, seconds.
pub type Sink<'a> = dyn FnMut(Option<f64>, Event) + 'a;
/// What is foreseen for traffic by this mover, if it has a price.
pub type Foresee<'a> = dyn Fn(&Traffic, MoverKind) -> Option<Foreseen> + 'a;
/// Reads a plan from a file: its traffic, or what is wrong with it.
pub type LoadPlan<'a> = dyn Fn(&Path) -> Result<Traffic, String> + 'a;

/// How often the conductor looks after the ranks while nothing is measured.
const IDLE: Duration = Duration::from_millis(100);
/// Probes of a pair that may time out without one good repeat before the rest of that pair is waived.
const PATIENCE: u32 = 2;
/// Ranks up to which warm-ups are kept, flagged: of more ranks they would be most of what a session holds.
const WARMUPS: usize = 256;

/// A sweep to begin with.
#[derive(Debug, Clone)]
pub struct Start {
    pub settings: SweepSettings,
    /// what the session already has
    pub done: Vec<Done>,
    /// true when it takes up a session
    pub resumed: bool,
}

impl Start {
    /// A sweep of its own.
    pub fn new(settings: SweepSettings) -> Self {
        Self { settings, done: Vec::new(), resumed: false }
    }
}

/// The one who runs the sweep: the only owner of the engine.
#[allow(missing_debug_implementations, reason = "holds closures")]
pub struct Conductor<'a> {
    engine: Box<dyn Engine>,
    commands: Receiver<Command>,
    sink: Box<Sink<'a>>,
    gate: Arc<Gate>,
    /// lines that rank 0's own process printed
    printed: Box<dyn FnMut() -> Vec<String> + 'a>,
    /// what is known beforehand of who disturbs whom; hosts alone if nothing is
    knowledge: Option<Rc<dyn Knowledge>>,
    sweep: Option<Active>,
    /// the sweep that ended last, for re-measurements
    ended: Option<Active>,
    /// the test of a finding that is running; a sweep waits for it
    testing: Option<Testing>,
    /// what is foreseen for a run of a plan, where prices are known
    foresee: Option<Box<Foresee<'a>>>,
    /// where files may be read: what a person names as a plan
    load_plan: Option<Box<LoadPlan<'a>>>,
    /// plans that were run
    executions: u64,
    /// what was told of the ways of their bytes
    plan_ways: Ways,
    /// of what is run before any sweep was
    settings: SweepSettings,
    lost: BTreeMap<usize, String>,
    /// ranks that take no part in what was made ready last
    absent: BTreeMap<usize, String>,
    next_probe: u64,
    born: Instant,
    /// something was not measured as asked
    blemished: bool,
    gpus: gpus::Watched,
}

/// The sweep under way.
struct Active {
    settings: SweepSettings,
    planner: Planner,
    paused: bool,
    /// time that its rounds took, seconds
    spent: f64,
    /// timed-out probes of cells that have no good repeat yet
    hung: HashMap<Target, u32>,
    /// what was told of the paths that bytes took
    ways: Ways,
}

impl Active {
    /// True if the time that the person gave is used up, `more` seconds from the last round's end.
    fn time_is_up(&self, more: f64) -> bool {
        self.settings.budget > 0.0 && self.spent + more >= self.settings.budget
    }

    /// What a sweep has not reached when its time is up; empty if it has everything.
    fn left(&self) -> String {
        let (left, all) = self.planner.unsettled();
        if left == 0 {
            return String::new();
        }
        let goal = if self.settings.ci > 0.0 {
            format!("within ±{} % of their median", self.settings.ci * 100.0)
        } else {
            format!("measured {} times", self.settings.repeats)
        };
        format!("the budget of {} s is used up: {left} of {all} targets x sizes are not {goal}", self.settings.budget)
    }
}

impl<'a> Conductor<'a> {
    /// A conductor over an engine; `next_probe` is above every probe number that the session has.
    pub fn new(
        engine: Box<dyn Engine>,
        commands: Receiver<Command>,
        gate: Arc<Gate>,
        next_probe: u64,
        sink: impl FnMut(Option<f64>, Event) + 'a,
        printed: impl FnMut() -> Vec<String> + 'a,
    ) -> Self {
        Self {
            engine,
            commands,
            sink: Box::new(sink),
            gate,
            printed: Box::new(printed),
            knowledge: None,
            sweep: None,
            ended: None,
            testing: None,
            foresee: None,
            load_plan: None,
            executions: 0,
            plan_ways: Ways::default(),
            settings: SweepSettings::default(),
            lost: BTreeMap::new(),
            absent: BTreeMap::new(),
            next_probe,
            born: Instant::now(),
            blemished: false,
            gpus: gpus::Watched::default(),
        }
    }

    /// Use what is known of who disturbs whom instead of what hosts alone tell.
    pub fn know(&mut self, knowledge: Rc<dyn Knowledge>) {
        self.knowledge = Some(knowledge);
    }

    /// Settings for what is run before any sweep was: mover and longest time.
    pub fn like(&mut self, settings: SweepSettings) {
        self.settings = settings;
    }

    /// How runs of plans are foreseen, and how plans are read.
    pub fn plans(
        &mut self,
        foresee: impl Fn(&Traffic, MoverKind) -> Option<Foreseen> + 'a,
        load: impl Fn(&Path) -> Result<Traffic, String> + 'a,
    ) {
        self.foresee = Some(Box::new(foresee));
        self.load_plan = Some(Box::new(load));
    }

    /// The engine, for leaving.
    pub fn into_engine(self) -> Box<dyn Engine> {
        self.engine
    }

    /// True if a probe timed out, was waived or brought wrong bytes, or a rank was lost.
    pub fn blemished(&self) -> bool {
        self.blemished
    }

    /// Run until told to quit or, when `headless`, until the first sweep and the test under way have ended.
    pub fn run(&mut self, start: Option<Start>, headless: bool) {
        if let Some(start) = start {
            self.begin(start);
        }
        loop {
            if headless && self.sweep.is_none() && self.testing.is_none() {
                break;
            }
            let measuring = self.testing.is_some() || self.sweep.as_ref().is_some_and(|active| !active.paused);
            let command = if measuring {
                self.commands.try_recv().map_err(|error| error == TryRecvError::Disconnected)
            } else {
                self.commands.recv_timeout(IDLE).map_err(|error| error == RecvTimeoutError::Disconnected)
            };
            match command {
                Ok(Command::Quit) => {
                    self.end_test("left by the person");
                    self.end(Outcome::Aborted, "left by the person");
                    break;
                }
                Ok(command) => self.obey(command),
                // Nobody can command any more: a screen that died. A headless sweep has none and goes on.
                Err(true) if !headless => {
                    self.end_test("the screen ended");
                    self.end(Outcome::Cut, "the screen ended");
                    break;
                }
                Err(true) if !measuring => break,
                Err(_) if self.testing.is_some() => self.step_test(),
                Err(_) if measuring => self.step(),
                Err(_) => self.idle(),
            }
        }
        self.end(Outcome::Cut, "the job ended");
        self.idle();
    }

    fn idle(&mut self) {
        for report in self.engine.poll(Duration::ZERO) {
            self.take(report);
        }
        self.tell_printed();
    }

    fn tell_printed(&mut self) {
        for line in (self.printed)() {
            self.tell(Event::Log { rank: 0, line });
        }
    }

    fn tell(&mut self, event: Event) {
        (self.sink)(self.engine.clock(), event);
    }

    fn notice(&mut self, text: impl Into<String>) {
        self.tell(Event::Notice { text: text.into() });
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::StartSweep { settings } => {
                if self.sweep.is_some() {
                    self.notice("a sweep is running; abort it before starting another");
                } else if self.testing.is_some() {
                    self.notice("a test is running; abort it before starting a sweep");
                } else {
                    self.begin(Start::new(settings));
                }
            }
            Command::Pause => self.set_paused(true),
            Command::Continue => self.set_paused(false),
            Command::Abort if self.testing.is_some() => self.end_test("aborted by the person"),
            Command::Abort => self.end(Outcome::Aborted, "aborted by the person"),
            Command::Remeasure { cells, bytes } => self.remeasure(&cells, bytes),
            Command::RunTest { finding, test } => {
                let like = self.sweep.as_ref().or(self.ended.as_ref()).map(|active| active.settings.clone());
                self.test(&finding, &test, &like.unwrap_or_default());
            }
            Command::LoadPlan { path } => self.load_plan(&path),
            Command::Execute { name, transfers, repeats } => {
                let like = self.sweep.as_ref().or(self.ended.as_ref()).map(|active| active.settings.clone());
                let like = like.unwrap_or_else(|| self.settings.clone());
                self.execute(&name, &transfers, repeats, &like);
            }
            Command::Quit => {}
        }
    }

    fn set_paused(&mut self, paused: bool) {
        if let Some(active) = self.sweep.as_mut().filter(|active| active.paused != paused) {
            active.paused = paused;
            self.tell(if paused { Event::Paused } else { Event::Continued });
        }
    }

    fn begin(&mut self, start: Start) {
        let Start { settings, done, resumed } = start;
        if let Err(refusal) = self.ready(&settings) {
            self.blemished = true;
            self.notice(format!("the sweep was not started: {refusal}"));
            return;
        }
        let topology = self.engine.topology();
        let knowledge = self.knowledge.clone().unwrap_or_else(|| Rc::new(Hosts::new(topology)));
        let planner = Planner::new(&settings, topology, knowledge, done, self.next_probe);
        self.forget_gpus();
        self.tell(Event::SweepStarted { settings: settings.clone(), resumed });
        self.ended = None;
        self.sweep = Some(Active { settings, planner, paused: false, spent: 0.0, hung: HashMap::new(), ways: Ways::default() });
        self.tell_planned();
    }

    /// What the planner has to say.
    fn tell_planned(&mut self) {
        let Some(active) = &mut self.sweep else { return };
        let (foreseen, words, conflicts) = (active.planner.foreseen(), active.planner.words(), active.planner.conflicts());
        for (bytes, repeats) in foreseen {
            self.tell(Event::Foreseen { bytes, repeats });
        }
        for conflict in conflicts {
            self.tell(Event::Shared(conflict));
        }
        for text in words {
            self.notice(text);
        }
    }

    /// Check the settings and get every rank's buffers ready.
    fn ready(&mut self, settings: &SweepSettings) -> Result<(), String> {
        settings.check(self.engine.topology().world()).map_err(|error| error.to_string())?;
        if !self.engine.movers().contains(&settings.mover) {
            let names: Vec<_> = self.engine.movers().iter().map(|mover| mover.name()).collect();
            return Err(format!("mover = {}: this engine has {}", settings.mover.name(), names.join(", ")));
        }
        self.bind(settings)?;
        let topology = self.engine.topology();
        let estimate = estimate(settings, topology, |_| 1e9);
        if let Some((host, wanted, available)) = estimate.does_not_fit() {
            let (wanted, available) = (format_size(wanted), format_size(available));
            return Err(format!("the buffers need {wanted} on {host}, which has {available} to spare; {}", estimate.advice()));
        }
        let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
        let arena = settings.arena_bytes(cache);
        let lanes = lanes(settings, topology);
        let SweepSettings { mover, memory, buffers, seed, .. } = *settings;
        let setup = Setup { memory, gpus: settings.gpus.clone(), ..Setup::host(mover, buffers, arena, lanes, seed) };
        let absent = self.engine.prepare(&setup).map_err(|error| error.to_string())?;
        self.note_absent(absent);
        Ok(())
    }

    fn end(&mut self, outcome: Outcome, reason: &str) {
        if self.sweep.is_some() {
            self.sum_up_gpus();
        }
        if let Some(mut active) = self.sweep.take() {
            self.next_probe = active.planner.next_id();
            active.planner.stop();
            self.ended = Some(active);
            self.tell(Event::SweepEnded { outcome, reason: reason.to_owned() });
        }
    }

    fn remeasure(&mut self, cells: &[Cell], bytes: Option<u64>) {
        if self.sweep.is_none() {
            let Some(ended) = self.ended.take() else {
                self.notice("nothing to measure again: start a sweep first");
                return;
            };
            self.sweep = Some(Active { paused: false, ..ended });
        }
        let world = self.engine.topology().world();
        let host = self.sweep.as_ref().is_some_and(|active| active.settings.memory.is_host());
        let mut targets: Vec<Target> = cells
            .iter()
            // A command may come from another program's hand: a pair that no sweep has is not measured.
            .filter(|cell| cell.from < world && cell.to < world && cell.pattern.is_own() == (cell.from == cell.to))
            .filter(|cell| cell.pattern.is_pair() && !(host && cell.pattern.crosses()))
            .map(|&cell| match cell.pattern {
                // Both directions are one target.
                Pattern::Duplex => Cell { from: cell.from.min(cell.to), to: cell.from.max(cell.to), ..cell },
                _ => cell,
            })
            .map(Target::Pair)
            .collect();
        targets.sort_unstable();
        targets.dedup();
        if let Some(active) = &mut self.sweep {
            let repeats = active.planner.remeasure(&targets, bytes);
            self.tell(Event::Remeasure { cells: targets.len() as u64, repeats });
            self.tell_planned();
        }
    }

    /// One round, from orders to samples.
    fn step(&mut self) {
        let Some(active) = &mut self.sweep else { return };
        let time_is_up = active.time_is_up(0.0);
        let Some(mut round) = active.planner.next_round(time_is_up) else {
            let reason = if time_is_up { active.left() } else { String::new() };
            self.tell_planned();
            self.end(Outcome::Complete, &reason);
            return;
        };
        self.tell_planned();
        let begin = self.now();
        round.retain(|probe| self.worth_asking(probe));
        // Those left out may have been its only company.
        let isolated = round.len() == 1;
        for probe in &mut round {
            probe.isolated = isolated;
            self.tell(Event::ProbeStarted { probe: probe.clone() });
        }
        if !round.is_empty() {
            self.measure(&round, begin);
        }
        let spent = self.now() - begin;
        if let Some(active) = &mut self.sweep {
            active.spent += spent;
        }
        self.tell_printed();
    }

    /// Seconds on the clock that budgets are measured by.
    fn now(&self) -> f64 {
        self.engine.clock().unwrap_or_else(|| self.born.elapsed().as_secs_f64())
    }

    /// False, with a state for each of its repeats, for a probe that cannot come to anything.
    fn worth_asking(&mut self, probe: &Probe) -> bool {
        let hopeless = self.sweep.as_ref().is_some_and(|active| active.hung.get(&probe.target).is_some_and(|&times| times >= PATIENCE));
        let end = if let Some(end) = self.missing_of(probe) {
            end
        } else if hopeless {
            End::Waived(format!("{PATIENCE} probes of these ranks timed out without one good repeat"))
        } else {
            return true;
        };
        self.done(probe, &nothing(probe, end), false);
        false
    }

    /// What becomes of a probe of which a rank is lost, or takes no part, if one does.
    fn missing_of(&self, probe: &Probe) -> Option<End> {
        let ranks = probe.ranks();
        let lost = ranks.iter().find_map(|rank| self.lost.get(rank).map(|why| End::Timeout(format!("rank {rank} is lost: {why}"))));
        lost.or_else(|| ranks.iter().find_map(|&rank| self.absence(rank).map(End::Waived)))
    }

    fn measure(&mut self, round: &[Probe], begin: f64) {
        let Some(active) = &self.sweep else { return };
        let settings = &active.settings;
        let order = |probe: &Probe| Order {
            probe: probe.clone(),
            window: settings.window,
            warmup: settings.warmup,
            timeout: active.planner.timeout(probe),
        };
        let orders: Vec<Order> = round.iter().map(order).collect();
        let memory = settings.memory;
        let reports = self.ask(&orders);
        let spent = self.now() - begin;
        self.look_at_gpus(memory, round);
        let budget =
            self.sweep.as_ref().is_some_and(|active| active.settings.budget > 0.0 && active.spent + spent >= active.settings.budget);
        let probes: HashMap<u64, &Probe> = round.iter().map(|probe| (probe.id, probe)).collect();
        for report in reports {
            match report {
                Report::Probe(report) => {
                    if let Some(probe) = probes.get(&report.probe) {
                        self.done(probe, &report, budget);
                    }
                }
                other => self.take(other),
            }
        }
    }

    /// Start these at the same time and wait until each is told of.
    fn ask(&mut self, orders: &[Order]) -> Vec<Report> {
        let topology = self.engine.topology();
        // The screen and the socket live on rank 0's host; probes between other hosts do not mind them.
        let host = |rank: usize| topology.ranks.get(rank).map(|placement| placement.host.as_str());
        let quiet = orders.iter().flat_map(|order| order.probe.ranks()).any(|rank| host(rank) == host(0));
        if quiet {
            self.gate.close();
        }
        let mut reports = Vec::new();
        match self.engine.start(orders) {
            Ok(()) => {
                let told = |reports: &[Report]| reports.iter().filter(|report| matches!(report, Report::Probe(_))).count();
                while told(&reports) < orders.len() {
                    reports.extend(self.engine.poll(Duration::from_millis(50)));
                }
            }
            Err(error) => {
                let waived = |order: &Order| Report::Probe(nothing(&order.probe, End::Waived(error.to_string())));
                reports.extend(orders.iter().map(waived));
            }
        }
        if quiet {
            self.gate.open();
        }
        reports
    }

    /// What came of a probe; `budget`: there is no time for more.
    fn done(&mut self, probe: &Probe, report: &ProbeReport, budget: bool) {
        let mut samples = samples::of_report(probe, self.engine.topology(), report);
        if let Some(active) = &mut self.sweep {
            let news = active.ways.news(active.settings.mover, &samples, self.engine.topology());
            for text in news {
                self.notice(text);
            }
        }
        self.blemished |= samples.iter().any(|sample| sample.status != Status::Ok);
        let mut enough = None;
        if let Some(active) = &mut self.sweep {
            let longest =
                report.repeats.iter().filter(|repeat| !repeat.warmup).map(|repeat| repeat.seconds + repeat.ack_seconds).reduce(f64::max);
            if longest.is_some() {
                active.hung.remove(&probe.target);
            } else if matches!(report.end, End::Timeout(_)) {
                *active.hung.entry(probe.target.clone()).or_insert(0) += 1;
            }
            enough = active.planner.observe(probe, &samples::series(probe, &samples), longest).or(budget.then_some(Enough::Budget));
        }
        if self.engine.topology().world() > WARMUPS {
            samples.retain(|sample: &Sample| !sample.warmup);
        }
        self.tell(Event::ProbeDone { probe: probe.id, samples, enough });
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Log { rank, line } => self.tell(Event::Log { rank, line }),
            Report::Lost { rank, reason } => {
                self.blemished = true;
                self.lost.insert(rank, reason.clone());
                self.tell(Event::RankLost { rank, reason });
            }
            // Of what was given up before.
            Report::Probe(_) | Report::Carried(_) => {}
        }
    }
}

/// What is told of a probe that came to nothing.
const fn nothing(probe: &Probe, end: End) -> ProbeReport {
    ProbeReport::nothing(probe.id, end)
}
