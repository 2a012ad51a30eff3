use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::{Gate, samples};
use crate::sample::{Pattern, Status};
use crate::session::{Command, Event, Outcome};
use crate::sweep::{Cell, Probe, Sweep, SweepSettings, Target, estimate, lanes};
use crate::transport::{End, Engine, Order, ProbeReport, Report, Setup};
use crate::units::format_size;

/// Where events go: the store, the screen, the socket.
pub type Sink<'a> = dyn FnMut(Event) + 'a;

/// How often the conductor looks after the ranks while nothing is measured.
const IDLE: Duration = Duration::from_millis(100);
/// Probes of a pair that may time out without one good repeat before the rest of that pair is waived.
const PATIENCE: u32 = 2;

/// A sweep to begin with.
#[derive(Debug, Clone)]
pub struct Start {
    pub settings: SweepSettings,
    /// repeats that the session already has: target, bytes, their numbers
    pub done: Vec<(Target, u64, Vec<u32>)>,
    /// newest take of each target that was measured again
    pub takes: Vec<(Target, u32)>,
    /// true when it takes up a session
    pub resumed: bool,
}

impl Start {
    /// A sweep of its own.
    pub fn new(settings: SweepSettings) -> Self {
        Self { settings, done: Vec::new(), takes: Vec::new(), resumed: false }
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
    sweep: Option<Active>,
    lost: BTreeMap<usize, String>,
    takes: HashMap<Target, u32>,
    next_probe: u64,
    /// settings that the ranks are ready for
    last: Option<SweepSettings>,
    /// something was not measured as asked
    blemished: bool,
}

/// The sweep under way.
struct Active {
    settings: SweepSettings,
    sweep: Sweep,
    paused: bool,
    /// timed-out probes of cells that have no good repeat yet
    hung: HashMap<Target, u32>,
}

impl<'a> Conductor<'a> {
    /// A conductor over an engine; `next_probe` is above every probe number that the session has.
    pub fn new(
        engine: Box<dyn Engine>,
        commands: Receiver<Command>,
        gate: Arc<Gate>,
        next_probe: u64,
        sink: impl FnMut(Event) + 'a,
        printed: impl FnMut() -> Vec<String> + 'a,
    ) -> Self {
        Self {
            engine,
            commands,
            sink: Box::new(sink),
            gate,
            printed: Box::new(printed),
            sweep: None,
            lost: BTreeMap::new(),
            takes: HashMap::new(),
            next_probe,
            last: None,
            blemished: false,
        }
    }

    /// The engine, for leaving.
    pub fn into_engine(self) -> Box<dyn Engine> {
        self.engine
    }

    /// True if a probe timed out, was waived or brought wrong bytes, or a rank was lost.
    pub fn blemished(&self) -> bool {
        self.blemished
    }

    /// Run until told to quit or, when `headless`, until the first sweep has ended.
    pub fn run(&mut self, start: Option<Start>, headless: bool) {
        if let Some(start) = start {
            self.begin(start);
        }
        loop {
            if headless && self.sweep.is_none() {
                break;
            }
            let measuring = self.sweep.as_ref().is_some_and(|active| !active.paused);
            let command = if measuring {
                self.commands.try_recv().map_err(|error| error == TryRecvError::Disconnected)
            } else {
                self.commands.recv_timeout(IDLE).map_err(|error| error == RecvTimeoutError::Disconnected)
            };
            match command {
                Ok(Command::Quit) => {
                    self.end(Outcome::Aborted, "left by the person");
                    break;
                }
                Ok(command) => self.obey(command),
                // Nobody can command any more: a screen that died. A headless sweep has none and goes on.
                Err(true) if !headless => {
                    self.end(Outcome::Cut, "the screen ended");
                    break;
                }
                Err(true) if !measuring => break,
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
            (self.sink)(Event::Log { rank: 0, line });
        }
    }

    fn notice(&mut self, text: impl Into<String>) {
        (self.sink)(Event::Notice { text: text.into() });
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::StartSweep { settings } => {
                if self.sweep.is_some() {
                    self.notice("a sweep is running; abort it before starting another");
                } else {
                    self.begin(Start::new(settings));
                }
            }
            Command::Pause => self.set_paused(true),
            Command::Continue => self.set_paused(false),
            Command::Abort => self.end(Outcome::Aborted, "aborted by the person"),
            Command::Remeasure { cells, bytes } => self.remeasure(&cells, bytes),
            Command::Quit => {}
        }
    }

    fn set_paused(&mut self, paused: bool) {
        if let Some(active) = self.sweep.as_mut().filter(|active| active.paused != paused) {
            active.paused = paused;
            (self.sink)(if paused { Event::Paused } else { Event::Continued });
        }
    }

    fn begin(&mut self, start: Start) {
        let Start { settings, done, takes, resumed } = start;
        self.takes = takes.into_iter().collect();
        if let Err(refusal) = self.ready(&settings) {
            self.blemished = true;
            self.notice(format!("the sweep was not started: {refusal}"));
            return;
        }
        let sweep = Sweep::new(&settings, self.engine.topology(), done, self.next_probe);
        (self.sink)(Event::SweepStarted { settings: settings.clone(), resumed });
        self.last = Some(settings.clone());
        self.sweep = Some(Active { settings, sweep, paused: false, hung: HashMap::new() });
    }

    /// Check the settings and get every rank's buffers ready.
    fn ready(&mut self, settings: &SweepSettings) -> Result<(), String> {
        let topology = self.engine.topology();
        settings.check(topology.world()).map_err(|error| error.to_string())?;
        if !self.engine.movers().contains(&settings.mover) {
            let names: Vec<_> = self.engine.movers().iter().map(|mover| mover.name()).collect();
            return Err(format!("mover = {}: this engine has {}", settings.mover.name(), names.join(", ")));
        }
        if let Some((host, wanted, available)) = estimate(settings, topology, |_| 1e9).does_not_fit() {
            return Err(format!(
                "the buffers need {} on {host}, which has {} to spare; lower --sizes, --window or --arena",
                format_size(wanted),
                format_size(available)
            ));
        }
        let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
        let arena = settings.arena_bytes(cache);
        let lanes = lanes(settings, topology);
        let setup = Setup { mover: settings.mover, buffers: settings.buffers, arena, lanes, seed: settings.seed };
        self.engine.prepare(&setup).map_err(|error| error.to_string())
    }

    fn end(&mut self, outcome: Outcome, reason: &str) {
        if let Some(active) = self.sweep.take() {
            self.next_probe = active.sweep.next_id();
            (self.sink)(Event::SweepEnded { outcome, reason: reason.to_owned() });
        }
    }

    fn remeasure(&mut self, cells: &[Cell], bytes: Option<u64>) {
        if self.sweep.is_none() {
            let Some(settings) = self.last.clone() else {
                self.notice("nothing to measure again: start a sweep first");
                return;
            };
            let sweep = Sweep::nothing(&settings, self.engine.topology(), self.next_probe);
            self.sweep = Some(Active { settings, sweep, paused: false, hung: HashMap::new() });
        }
        let world = self.engine.topology().world();
        let mut targets: Vec<Target> = cells
            .iter()
            // A command may come from another program's hand: a pair that no sweep has is not measured.
            .filter(|cell| cell.from < world && cell.to < world && (cell.pattern == Pattern::Local) == (cell.from == cell.to))
            .filter(|cell| cell.pattern.is_pair())
            .map(|&cell| match cell.pattern {
                // Both directions are one target.
                Pattern::Duplex => Cell { from: cell.from.min(cell.to), to: cell.from.max(cell.to), ..cell },
                _ => cell,
            })
            .map(Target::Pair)
            .collect();
        targets.sort_unstable();
        targets.dedup();
        let known: Vec<(Target, u32)> = targets
            .into_iter()
            .map(|target| {
                let take = self.takes.entry(target.clone()).or_insert(0);
                *take += 1;
                (target, *take)
            })
            .collect();
        if let Some(active) = &mut self.sweep {
            let sizes = if bytes.is_some() { 1 } else { active.settings.sizes.len() as u64 };
            let repeats = known.len() as u64 * sizes * u64::from(active.settings.repeats);
            active.sweep.remeasure(&known, bytes);
            (self.sink)(Event::Remeasure { cells: known.len() as u64, repeats });
        }
    }

    /// One round, from orders to samples.
    fn step(&mut self) {
        let Some(active) = &mut self.sweep else { return };
        let Some(mut round) = active.sweep.next_round() else {
            self.end(Outcome::Complete, "");
            return;
        };
        round.retain(|probe| self.worth_asking(probe));
        for probe in &round {
            (self.sink)(Event::ProbeStarted { probe: probe.clone() });
        }
        if !round.is_empty() {
            self.measure(&round);
        }
        self.tell_printed();
    }

    /// False, with a state for each of its repeats, for a probe that cannot come to anything.
    fn worth_asking(&mut self, probe: &Probe) -> bool {
        let lost = probe.ranks().into_iter().find_map(|rank| self.lost.get(&rank).map(|why| (rank, why.clone())));
        let hopeless = self.sweep.as_ref().is_some_and(|active| active.hung.get(&probe.target).is_some_and(|&times| times >= PATIENCE));
        let end = if let Some((rank, why)) = lost {
            End::Timeout(format!("rank {rank} is lost: {why}"))
        } else if hopeless {
            End::Waived(format!("{PATIENCE} probes of these ranks timed out without one good repeat"))
        } else {
            return true;
        };
        let report = ProbeReport { probe: probe.id, repeats: Vec::new(), root_seconds: Vec::new(), end };
        let samples = samples::of_report(probe, self.engine.topology(), &report);
        self.blemished = true;
        (self.sink)(Event::ProbeDone { probe: probe.id, samples, enough: None });
        false
    }

    fn measure(&mut self, round: &[Probe]) {
        let Some(active) = &self.sweep else { return };
        let settings = &active.settings;
        let order =
            |probe: &Probe| Order { probe: probe.clone(), window: settings.window, warmup: settings.warmup, timeout: settings.timeout };
        let orders: Vec<Order> = round.iter().map(order).collect();
        let topology = self.engine.topology();
        // The screen and the socket live on rank 0's host; probes between other hosts do not mind them.
        let host = |rank: usize| topology.ranks.get(rank).map(|placement| placement.host.as_str());
        let quiet = round.iter().flat_map(Probe::ranks).any(|rank| host(rank) == host(0));
        if quiet {
            self.gate.close();
        }
        let mut reports = Vec::new();
        match self.engine.start(&orders) {
            Ok(()) => {
                let told = |reports: &[Report]| reports.iter().filter(|report| matches!(report, Report::Probe(_))).count();
                while told(&reports) < round.len() {
                    reports.extend(self.engine.poll(Duration::from_millis(50)));
                }
            }
            Err(error) => {
                let waived = |probe: &Probe| {
                    let end = End::Waived(error.to_string());
                    Report::Probe(ProbeReport { probe: probe.id, repeats: Vec::new(), root_seconds: Vec::new(), end })
                };
                reports.extend(round.iter().map(waived));
            }
        }
        if quiet {
            self.gate.open();
        }
        for report in reports {
            match report {
                Report::Probe(report) => {
                    if let Some(probe) = round.iter().find(|probe| probe.id == report.probe) {
                        self.done(probe, &report);
                    }
                }
                other => self.take(other),
            }
        }
    }

    fn done(&mut self, probe: &Probe, report: &ProbeReport) {
        let samples = samples::of_report(probe, self.engine.topology(), report);
        self.blemished |= samples.iter().any(|sample| sample.status != Status::Ok);
        if let Some(active) = &mut self.sweep {
            let longest = report.repeats.iter().map(|repeat| repeat.seconds + repeat.ack_seconds).reduce(f64::max);
            if let Some(longest) = longest {
                active.hung.remove(&probe.target);
                active.sweep.observe(probe, longest);
            } else if matches!(report.end, End::Timeout(_)) {
                *active.hung.entry(probe.target.clone()).or_insert(0) += 1;
            }
        }
        (self.sink)(Event::ProbeDone { probe: probe.id, samples, enough: None });
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Log { rank, line } => (self.sink)(Event::Log { rank, line }),
            Report::Lost { rank, reason } => {
                self.blemished = true;
                self.lost.insert(rank, reason.clone());
                (self.sink)(Event::RankLost { rank, reason });
            }
            // Of a probe that was given up before.
            Report::Probe(_) => {}
        }
    }
}
