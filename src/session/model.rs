use std::collections::{BTreeMap, VecDeque};

use super::{Cells, Conflict, Event, Groups, Header, Imported, Outcome, Record, SizeCell};
use crate::diagnose::next::{Test, TestResult};
use crate::plan::{Execution, Traffic};
use crate::sample::{Sample, Status};
use crate::sweep::{Cell, Done, Enough, Group, Probe, SweepSettings, Target, Work};
use crate::topology::{Bound, CudaDevice, GpuRange};
use crate::units::plain;

/// Lines of the log kept in memory; the session's file has them all.
const LOG_LINES: usize = 5_000;

/// Where a sweep stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    Measuring,
    Paused,
    Ended(Outcome),
}

/// How far a sweep is, by size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    pub bytes: u64,
    /// repeats asked for
    pub wanted: u64,
    /// repeats that have a state
    pub done: u64,
    /// seconds that the probes of this size took, all included
    pub spent: f64,
}

/// The sweep that is running, or the last one.
#[derive(Debug, Clone)]
pub struct SweepState {
    pub settings: SweepSettings,
    pub running: Running,
    /// why it ended, if there is more to say
    pub reason: String,
    /// the probes that run, and when each was started
    pub probes: Vec<(Probe, f64)>,
    /// one entry a size
    pub progress: Vec<Progress>,
    /// the sweep tells how many repeats it will have taken in the end
    pub foreseen: bool,
}

impl SweepState {
    /// One of the probes that run: the last one started.
    pub fn probe(&self) -> Option<&Probe> {
        self.probes.last().map(|(probe, _)| probe)
    }

    /// Share of the repeats that have a state, 0 to 1.
    pub fn share(&self) -> f64 {
        let (done, wanted) =
            self.progress.iter().fold((0_u64, 0_u64), |(done, wanted), p| (done.saturating_add(p.done), wanted.saturating_add(p.wanted)));
        if wanted == 0 { 0.0 } else { done as f64 / wanted as f64 }
    }

    /// Seconds left, from what the probes so far took; `None` before the first.
    pub fn seconds_left(&self) -> Option<f64> {
        let per_repeat = |p: &Progress| (p.done > 0).then(|| p.spent / p.done as f64);
        let known = self.progress.iter().rev().find_map(|p| per_repeat(p).map(|seconds| (p.bytes, seconds)))?;
        let left = self.progress.iter().map(|p| {
            let (bytes, seconds) = known;
            let guess = seconds * (p.bytes as f64 / bytes as f64).clamp(0.1, 1e6);
            p.wanted.saturating_sub(p.done) as f64 * per_repeat(p).unwrap_or(guess)
        });
        Some(left.sum())
    }
}

/// A line of the log, safe to show.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    pub t: f64,
    /// `None` for the program itself
    pub rank: Option<usize>,
    pub text: String,
}

/// What an event changed, for those who keep something derived.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Nothing,
    /// ranks sit elsewhere: whatever was derived from the topology is of another one
    Placed,
    /// these cells have new samples of this size
    Cells {
        cells: Vec<Cell>,
        bytes: u64,
    },
    /// this group has new samples of this size
    Group {
        group: Group,
        bytes: u64,
    },
    /// anything may have changed but the samples
    State,
    /// a new sweep: no cell has a sample any more
    Cleared,
}

/// The facts of a session: the fold of its events.
#[derive(Debug, Clone)]
pub struct Model {
    pub header: Header,
    pub sweep: Option<SweepState>,
    pub cells: Cells,
    pub groups: Groups,
    /// tests of findings that were run on this sweep's numbers, in their order; those that failed included
    pub tests: Vec<TestResult>,
    /// the test under way: of which finding
    pub testing: Option<(String, Test)>,
    /// transfers that were found to slow each other, in the order in which they were
    pub conflicts: Vec<Conflict>,
    /// plans that are looked at, in the order in which they came
    pub plans: Vec<Traffic>,
    /// counts plans that came, those that took another's place included: who derives something from plans looks at it
    pub plan_loads: u64,
    /// the plan that is run just now: its name
    pub executing: Option<String>,
    /// plans that were run, in their order; those that failed included
    pub executions: Vec<Execution>,
    /// tables of other tools' output that this session was made of, and those that were left out of it
    pub imported: Vec<Imported>,
    /// how the GPUs of this sweep's ranks were doing, by rank
    pub gpus: BTreeMap<usize, GpuRange>,
    /// ranks that do not answer any more, with the reason
    pub lost: BTreeMap<usize, String>,
    pub log: VecDeque<LogLine>,
    /// time of the last event, seconds since the session began
    pub now: f64,
    /// the session was left in order
    pub closed: bool,
}

impl Model {
    /// A session that has just begun.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            sweep: None,
            cells: Cells::default(),
            groups: Groups::default(),
            tests: Vec::new(),
            testing: None,
            conflicts: Vec::new(),
            plans: Vec::new(),
            plan_loads: 0,
            executing: None,
            executions: Vec::new(),
            imported: Vec::new(),
            gpus: BTreeMap::new(),
            lost: BTreeMap::new(),
            log: VecDeque::new(),
            now: 0.0,
            closed: false,
        }
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.header.topology.world()
    }

    /// Samples in all, warm-ups not counted.
    pub fn samples(&self) -> u64 {
        self.cells.samples() + self.groups.samples()
    }

    /// What there is instead of samples of pairs, if that is all: `nccl-tests all_reduce: 28 sizes of all 8 ranks together`.
    pub fn only_together(&self) -> Option<String> {
        let told: Vec<String> = self.imported.iter().map(|table| format!("{}: {}", table.name(), table.amount())).collect();
        (self.samples() == 0 && !told.is_empty()).then(|| told.join("; "))
    }

    /// Take in an event.
    pub fn apply(&mut self, record: &Record) -> Change {
        self.now = self.now.max(record.t);
        match &record.event {
            Event::Bound { ranks, software } => self.bound(ranks, software),
            Event::GpusSeen { ranges } => {
                let world = self.world();
                let good = ranges.iter().filter(|range| range.rank < world).filter_map(|range| range.cleaned(plain));
                self.gpus.extend(good.map(|range| (range.rank, range)));
                Change::State
            }
            Event::SweepStarted { settings, resumed } => self.sweep_started(settings, *resumed),
            Event::Imported(imported) => {
                self.imported.push(imported.plain());
                Change::State
            }
            Event::ProbeStarted { probe } => {
                if let Some(sweep) = &mut self.sweep {
                    sweep.probes.push((probe.clone(), record.t));
                }
                Change::State
            }
            Event::ProbeDone { probe, samples, enough } => self.probe_done(*probe, samples, *enough, record.t),
            Event::Foreseen { bytes, repeats } => {
                if let Some(sweep) = &mut self.sweep {
                    sweep.foreseen = true;
                }
                let progress = self.sweep.iter_mut().flat_map(|sweep| &mut sweep.progress);
                for progress in progress.filter(|progress| progress.bytes == *bytes) {
                    progress.wanted = (*repeats).max(progress.done);
                }
                Change::State
            }
            Event::Remeasure { cells: _, repeats } => {
                if let Some(sweep) = &mut self.sweep {
                    if matches!(sweep.running, Running::Ended(_)) {
                        sweep.running = Running::Measuring;
                    }
                    // What is foreseen has them already. Otherwise they count to the largest size's work, for want of better.
                    if !sweep.foreseen
                        && let Some(progress) = sweep.progress.last_mut()
                    {
                        progress.wanted = progress.wanted.saturating_add(*repeats);
                    }
                }
                Change::State
            }
            Event::TestStarted { finding, test } => self.test_started(finding, test, record.t),
            Event::TestDone { finding, test, samples, reason } => self.test_done(finding, test, samples, reason, record.t),
            Event::Shared(conflict) => {
                if conflict.is_sound(self.world()) {
                    self.conflicts.push(conflict.clone());
                }
                Change::State
            }
            Event::PlanLoaded { traffic } => self.plan_loaded(traffic, record.t),
            Event::ExecutionStarted { name } => {
                self.executing = Some(plain(name));
                Change::State
            }
            Event::ExecutionDone(execution) => self.execution_done(execution, record.t),
            Event::Paused => self.set_running(Running::Paused),
            Event::Continued => self.set_running(Running::Measuring),
            Event::SweepEnded { outcome, reason } => {
                if let Some(sweep) = &mut self.sweep {
                    sweep.reason = plain(reason);
                    sweep.probes.clear();
                    if *outcome == Outcome::Complete && sweep.settings.ci > 0.0 {
                        // Intervals were narrow enough before the most that was asked for.
                        sweep.progress.iter_mut().for_each(|progress| progress.wanted = progress.done);
                    }
                }
                self.set_running(Running::Ended(*outcome))
            }
            Event::RankLost { rank, reason } => {
                self.lost.insert(*rank, plain(reason));
                self.say(record.t, Some(*rank), &format!("lost: {reason}"))
            }
            Event::Log { rank, line } => self.say(record.t, Some(*rank), line),
            Event::Notice { text } => self.say(record.t, None, text),
            Event::Closed => {
                self.closed = true;
                Change::State
            }
            Event::Unknown => Change::Nothing,
        }
    }

    /// Names in files are data.
    fn bound(&mut self, ranks: &[Bound], software: &BTreeMap<String, String>) -> Change {
        let safe = |gpu: &CudaDevice| CudaDevice { name: plain(&gpu.name), uuid: gpu.uuid.as_deref().map(plain), ..gpu.clone() };
        let ranks: Vec<Bound> = ranks.iter().map(|bound| Bound { gpu: bound.gpu.as_ref().map(safe), ..bound.clone() }).collect();
        self.header.topology.bind(&ranks);
        self.header.software.extend(software.iter().map(|(name, value)| (plain(name), plain(value))));
        Change::Placed
    }

    fn plan_loaded(&mut self, traffic: &Traffic, t: f64) -> Change {
        if let Err(what) = traffic.check() {
            return self.say(t, None, &format!("a plan was left out: {what}"));
        }
        self.plan_loads += 1;
        let traffic = traffic.plain();
        match self.plans.iter_mut().find(|plan| plan.name == traffic.name) {
            Some(plan) => *plan = traffic,
            None => self.plans.push(traffic),
        }
        Change::State
    }

    fn execution_done(&mut self, execution: &Execution, t: f64) -> Change {
        self.executing = None;
        match execution.plain() {
            Ok(execution) => {
                self.executions.push(execution);
                Change::State
            }
            Err(what) => self.say(t, None, &format!("a run of a plan was left out: {what}")),
        }
    }

    fn sweep_started(&mut self, settings: &SweepSettings, resumed: bool) -> Change {
        let transfers = Work::new(settings, &self.header.topology).transfers();
        let wanted = transfers.saturating_mul(u64::from(settings.repeats));
        let progress = settings.sizes.iter().map(|&bytes| Progress { bytes, wanted, done: 0, spent: 0.0 });
        let mut state = SweepState {
            settings: settings.clone(),
            running: Running::Measuring,
            reason: String::new(),
            probes: Vec::new(),
            progress: progress.collect(),
            foreseen: false,
        };
        if resumed {
            // Another job: its ranks answer until they do not.
            self.lost.clear();
            for done in self.done() {
                let transfers = match &done.target {
                    Target::Pair(_) => done.target.cells().len(),
                    Target::Group(group) => self.groups.get(group).first().map_or(0, |size| size.flows().len()),
                };
                if let Some(progress) = state.progress.iter_mut().find(|progress| progress.bytes == done.bytes) {
                    progress.done += (done.repeats.len() * transfers) as u64;
                }
            }
        } else {
            // Other settings, other numbers: a matrix shows one sweep. The earlier one stays in the session's file.
            self.cells = Cells::default();
            self.groups = Groups::default();
            self.tests.clear();
            self.conflicts.clear();
            self.gpus.clear();
        }
        self.testing = None;
        self.sweep = Some(state);
        self.closed = false;
        if resumed { Change::State } else { Change::Cleared }
    }

    fn probe_done(&mut self, id: u64, samples: &[Sample], enough: Option<Enough>, t: f64) -> Change {
        let world = self.world();
        // Recorded sessions and other programs' sockets are data: a pair that this job has not is in no table.
        let known =
            |sample: &Sample| sample.from < world && sample.to < world && sample.root.iter().chain(&sample.peers).all(|&rank| rank < world);
        if !samples.iter().all(known) {
            let good: Vec<Sample> = samples.iter().filter(|sample| known(sample)).cloned().collect();
            let text =
                format!("{} samples of probe {id} name ranks that this job of {world} has not; left out", samples.len() - good.len());
            self.say(t, None, &text);
            return if good.is_empty() { Change::State } else { self.probe_done(id, &good, enough, t) };
        }
        let Some(first) = samples.first() else { return Change::Nothing };
        if let Some(sweep) = &mut self.sweep {
            let running = sweep.probes.iter().position(|(probe, _)| probe.id == id);
            let began = running.map_or(t, |at| sweep.probes.swap_remove(at).1);
            // Sessions that foresaw nothing counted re-measurements to the largest size.
            let last = first.take > 0 && !sweep.foreseen;
            let slot = if last { sweep.progress.last_mut() } else { sweep.progress.iter_mut().find(|p| p.bytes == first.bytes) };
            if let Some(progress) = slot {
                let repeats = samples.iter().filter(|sample| !sample.warmup).count() as u64;
                progress.done = (progress.done + repeats).min(progress.wanted);
                progress.spent += t - began;
            }
        }
        let bytes = first.bytes;
        if let Some(group) = Group::of(first) {
            self.groups.add(&group, samples, enough);
            return Change::Group { group, bytes };
        }
        Change::Cells { cells: self.cells.add(samples, enough), bytes }
    }

    fn test_started(&mut self, finding: &str, test: &Test, t: f64) -> Change {
        self.closed = false;
        self.testing = Some((plain(finding), said(test)));
        self.say(t, None, &format!("test: {}", test.say))
    }

    fn test_done(&mut self, finding: &str, test: &Test, samples: &[Sample], reason: &str, t: f64) -> Change {
        self.testing = None;
        let world = self.world();
        let mut pairs = test.sets.iter().flatten().copied().chain(samples.iter().map(|sample| (sample.from, sample.to)));
        if pairs.any(|(from, to)| from >= world || to >= world) {
            return self.say(t, None, &format!("a test names ranks that this job of {world} has not; left out"));
        }
        let (finding, test, reason) = (plain(finding), said(test), plain(reason));
        let told = if reason.is_empty() { "the test is done".to_owned() } else { format!("the test failed: {reason}") };
        self.tests.push(TestResult { finding, test, samples: samples.to_vec(), reason });
        self.say(t, None, &told)
    }

    fn set_running(&mut self, running: Running) -> Change {
        if let Some(sweep) = &mut self.sweep {
            sweep.running = running;
        }
        Change::State
    }

    fn say(&mut self, t: f64, rank: Option<usize>, text: &str) -> Change {
        if self.log.len() >= LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(LogLine { t, rank, text: plain(text) });
        Change::State
    }

    /// What there is of each target and size, for resuming: the newest take's repeats. A timed-out or waived repeat is worth
    /// another try, so only `ok` and `corrupt` count.
    pub fn done(&self) -> Vec<Done> {
        let has = |shot: &super::Shot, take: u32| shot.take == take && !shot.warmup && matches!(shot.status, Status::Ok | Status::Corrupt);
        let mut done = Vec::new();
        for (cell, sizes) in self.cells.iter() {
            // Both directions of a duplex are measured together.
            let Some(target) = target(cell) else { continue };
            for size in sizes {
                let own = || size.shots.iter().filter(|shot| has(shot, size.take));
                let times = target.cells().into_iter().filter_map(|cell| self.cells.get(cell, size.bytes)).map(SizeCell::times).collect();
                done.push(Done {
                    target: target.clone(),
                    bytes: size.bytes,
                    take: size.take,
                    repeats: own().map(|shot| shot.repeat).collect(),
                    times,
                    together: own().any(|shot| !shot.isolated),
                });
            }
        }
        for (group, sizes) in self.groups.iter() {
            for size in sizes {
                let first = size.flows().first().copied();
                let own = || size.shots.iter().filter(|shot| Some((shot.from, shot.to)) == first && has(&shot.shot, size.take));
                done.push(Done {
                    target: Target::Group(group.clone()),
                    bytes: size.bytes,
                    take: size.take,
                    repeats: own().map(|shot| shot.shot.repeat).collect(),
                    times: vec![size.completions()],
                    together: own().any(|shot| !shot.shot.isolated),
                });
            }
        }
        done
    }
}

/// A test whose words are safe to show.
fn said(test: &Test) -> Test {
    Test { say: plain(&test.say), ..test.clone() }
}

/// The target that a cell stands for; `None` for the second direction of a duplex.
fn target(cell: Cell) -> Option<Target> {
    (cell.pattern != crate::sample::Pattern::Duplex || cell.from < cell.to).then_some(Target::Pair(cell))
}
