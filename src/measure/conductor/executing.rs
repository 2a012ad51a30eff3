//! Plans that are run for real, between the rounds of a sweep.

use std::path::Path;
use std::time::Duration;

use super::Conductor;
use crate::plan::work::{fits, work};
use crate::plan::{Execution, Run, Traffic, Transfers};
use crate::sample::{MoverKind, Pattern, Sample, Status};
use crate::session::{Event, Outcome};
use crate::sweep::SweepSettings;
use crate::transport::work::{Carried, Carry, Moved, Work};
use crate::transport::{End, Report};
use crate::units::plain;

/// Timed runs at most: what a command may ask for.
const MOST_RUNS: u32 = 1000;
/// A link that gives less than this is one that hangs, bytes per second, where nothing was foreseen.
const LEAST_RATE: f64 = 10e6;
/// So many times what was foreseen is a hang, too.
const MOST_FORESEEN: f64 = 10.0;

impl Conductor<'_> {
    /// Run transfers on the ranks, `repeats` times, with mover, longest time and untimed runs before as in `like`. What comes of it is
    /// told as [`Event::ExecutionDone`], a refusal, too.
    pub fn execute(&mut self, name: &str, transfers: &Transfers, repeats: u32, like: &SweepSettings) {
        if self.testing.is_some() {
            self.notice("a test is running; wait for its end or abort it before running a plan");
            return;
        }
        let name = plain(name);
        self.tell(Event::ExecutionStarted { name: name.clone() });
        let mut execution = Execution { name, mover: like.mover.name().to_owned(), memory: like.memory, ..Execution::default() };
        let mut touched = false;
        if let Err(why) = self.run_plan(&mut execution, transfers, repeats, like, &mut touched) {
            execution.failed = why;
        }
        self.blemished |= !execution.failed.is_empty();
        if execution.failed.is_empty() && like.mover == MoverKind::Simulated {
            self.notice(format!("{}: simulated; nothing moved, so no byte was compared", execution.name));
        }
        self.tell(Event::ExecutionDone(execution));
        self.tell_printed();
        if touched {
            self.ready_again("after a plan was run");
        }
    }

    fn run_plan(
        &mut self,
        execution: &mut Execution,
        transfers: &Transfers,
        repeats: u32,
        like: &SweepSettings,
        touched: &mut bool,
    ) -> Result<(), String> {
        let topology = self.engine.topology();
        let (work, traffic) = work(transfers, topology.world()).map_err(|error| error.to_string())?;
        // What a GPU holds is asked when it is started.
        if like.memory.is_host() {
            fits(&work, topology).map_err(|error| error.to_string())?;
        }
        if !like.mover.carries(like.memory) {
            let able = self.engine.movers().iter().filter(|mover| mover.carries(like.memory));
            let able: Vec<&str> = able.map(|mover| mover.name()).collect();
            let (mover, memory) = (like.mover.name(), like.memory.name());
            return Err(format!("mover = {mover}: plans on memory {memory} are run here by {}", able.join(", ")));
        }
        let work = work.on(like.memory, &like.gpus);
        if !self.engine.movers().contains(&like.mover) {
            let names: Vec<_> = self.engine.movers().iter().map(|mover| mover.name()).collect();
            return Err(format!("mover = {}: this engine has {}", like.mover.name(), names.join(", ")));
        }
        if repeats == 0 || repeats > MOST_RUNS {
            return Err(format!("{repeats} timed runs: 1 to {MOST_RUNS}"));
        }
        if like.warmup > MOST_RUNS {
            return Err(format!("{} untimed runs: {MOST_RUNS} at most", like.warmup));
        }
        if let Some(rank) = work.ranks().find(|rank| self.lost.contains_key(rank)) {
            return Err(format!("rank {rank} is lost: {}", self.lost[&rank]));
        }
        execution.foreseen = self.foresee.as_ref().and_then(|foresee| foresee(&traffic, like.mover));
        let usual = execution.foreseen.as_ref().map_or(0.0, |foreseen| foreseen.high * MOST_FORESEEN);
        let timeout = like.timeout + usual.max(work.busiest() as f64 / LEAST_RATE);
        // Ranks may have moved, and give up the sweep's buffers for it.
        *touched = true;
        self.bind(like)?;
        if let Some(why) = work.ranks().find_map(|rank| self.absence(rank)) {
            return Err(why);
        }
        self.engine.load(&work, like.mover).map_err(|error| error.to_string())?;
        self.executions += 1;
        let carried = self.carry(&work, Carry { id: self.executions, warmup: like.warmup, runs: repeats, timeout })?;
        self.tell_ways(&work, like.mover, &carried);
        execution.verified = carried.verified;
        execution.runs = carried.runs.iter().filter_map(|run| told(run, &traffic)).collect();
        match carried.end {
            End::Complete => Ok(()),
            End::Timeout(why) | End::Waived(why) | End::Corrupt(why) => Err(plain(&why)),
        }
    }

    /// A way through a host's memory is told, and that nothing is known of the ways, too.
    fn tell_ways(&mut self, work: &Work, mover: MoverKind, carried: &Carried) {
        let topology = self.engine.topology();
        let sent = |flow: &Moved, via: Option<String>| {
            let blank = Sample::blank(Pattern::Peer, flow.from, flow.to, flow.bytes, topology.path(flow.from, flow.to));
            Sample { via, status: Status::Ok, ..blank }
        };
        let ways = carried.ways.iter().filter_map(|way| Some(sent(work.flows.get(way.flow as usize)?, Some(plain(&way.via)))));
        let mut ways: Vec<Sample> = ways.collect();
        if ways.is_empty() {
            ways.extend(work.flows.iter().find(|flow| flow.from != flow.to && flow.bytes > 0).map(|flow| sent(flow, None)));
        }
        for line in self.plan_ways.news(mover, &ways, topology) {
            self.notice(line);
        }
    }

    /// Run what was loaded, and wait for its end.
    fn carry(&mut self, work: &Work, order: Carry) -> Result<Carried, String> {
        let host = |rank: usize| self.engine.topology().ranks.get(rank).map(|placement| placement.host.as_str());
        // The screen and the socket live on rank 0's host.
        let quiet = work.ranks().any(|rank| host(rank) == host(0));
        if quiet {
            self.gate.close();
        }
        let mut carried = self.engine.carry(&order).map(|()| None).map_err(|error| error.to_string());
        let mut others = Vec::new();
        while let Ok(None) = carried {
            for report in self.engine.poll(Duration::from_millis(50)) {
                match report {
                    Report::Carried(told) if told.id == order.id => carried = Ok(Some(told)),
                    other => others.push(other),
                }
            }
        }
        if quiet {
            self.gate.open();
        }
        for report in others {
            self.take(report);
        }
        carried.and_then(|carried| carried.ok_or_else(|| "nothing was told".to_owned()))
    }

    /// Read a plan, for whoever looks.
    pub fn load_plan(&mut self, path: &Path) {
        let loaded = match &self.load_plan {
            Some(load) => load(path),
            None => Err("this job reads no files".to_owned()),
        };
        match loaded {
            Ok(traffic) => self.tell(Event::PlanLoaded { traffic }),
            Err(why) => self.notice(format!("the plan was not loaded: {}", plain(&why))),
        }
    }

    /// Ranks get the sweep's buffers again.
    pub(super) fn ready_again(&mut self, when: &str) {
        let sweep = self.sweep.as_ref().or(self.ended.as_ref()).map(|active| active.settings.clone());
        if let Some(Err(error)) = sweep.map(|settings| self.ready(&settings)) {
            self.blemished = true;
            self.end(Outcome::Cut, &format!("{when}: {error}"));
            // Its buffers are gone: nothing of it can be measured again.
            self.ended = None;
        }
    }
}

/// A run as it is kept; `None` where a flow's time is missing.
fn told(run: &[(usize, f64)], traffic: &Traffic) -> Option<Run> {
    let mut flows = vec![f64::NAN; traffic.flows.len()];
    for &(flow, seconds) in run {
        *flows.get_mut(flow)? = seconds;
    }
    let mut stages = vec![0.0_f64; traffic.stages.len()];
    for (flow, &seconds) in traffic.flows.iter().zip(&flows) {
        let stage = stages.get_mut(flow.stage)?;
        *stage = stage.max(seconds);
    }
    let whole = flows.iter().all(|seconds| seconds.is_finite());
    let last = stages.iter().copied().fold(0.0, f64::max);
    whole.then_some(Run { seconds: last, stages, flows })
}
