//! Ranks as threads of this process, each bound to a core; bytes travel by one processor copy.

mod carry;
mod endpoint;
mod mailbox;
mod several;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use endpoint::{Shared, ThreadEndpoint};

use super::absent::absent;
use super::assembly::Assembly;
use super::binding::{self, Cores, Decided, Seats, Watch};
use super::work::{Carry, Gathering, Work};
use super::{Absent, Agent, Collector, Endpoint as _, Engine, Order, Report, Setup, ToAgent, ToRoot, TransportError, Unready, libraries};
use crate::discover::{Machine, allowed_cores};
use crate::sample::{EngineKind, Memory, MoverKind};
use crate::topology::{GpuState, Topology};

/// How bytes travel between threads.
pub const MOVERS: &[MoverKind] = &[MoverKind::Memcpy, MoverKind::Nccl, MoverKind::NcclPut];
/// Longest time for threads to leave.
const LEAVE: Duration = Duration::from_secs(2);
/// Longest time for all threads to allocate and touch their buffers.
const PREPARE: Duration = Duration::from_secs(120);

/// Threads as ranks.
#[derive(Debug)]
pub struct Threads {
    topology: Topology,
    to_agents: Vec<Sender<ToAgent>>,
    from_agents: Receiver<ToRoot>,
    handles: Vec<JoinHandle<()>>,
    collector: Collector,
    /// the work that is carried
    gathering: Option<Gathering>,
    /// the one that was loaded
    work: Option<Work>,
    /// the only ranks that get buffers; empty for all
    only: Vec<usize>,
    assembly: Assembly,
    /// what was said while ranks got ready, to be told by the next poll
    early: Vec<ToRoot>,
    seats: Seats,
    watch: Watch,
}

impl Threads {
    /// Start `ranks` threads, one after another on the cores that this process may use; cores are shared when there are
    /// more ranks.
    pub fn start(ranks: usize) -> Result<Self, TransportError> {
        let (to_root, from_agents) = mpsc::channel();
        let shared = Arc::new(Shared::new(ranks));
        let cores = allowed_cores();
        let machine = Machine::default();
        let mut engine = Self {
            topology: Topology { hardware: vec![libraries::hardware(&machine)], ..Topology::default() },
            to_agents: Vec::new(),
            from_agents,
            handles: Vec::new(),
            collector: Collector::default(),
            gathering: None,
            work: None,
            only: Vec::new(),
            assembly: Assembly::default(),
            early: Vec::new(),
            seats: Seats::default(),
            watch: Watch::default(),
        };
        for rank in 0..ranks {
            let core = cores.get(rank % cores.len().max(1)).copied().unwrap_or(0);
            engine.topology.ranks.push(machine.placement(rank, vec![core]));
            let (sender, orders) = mpsc::channel();
            let endpoint = ThreadEndpoint::new(rank, Arc::clone(&shared));
            let to_root = to_root.clone();
            let thread = std::thread::Builder::new()
                .name(format!("rank {rank}"))
                .spawn(move || serve(rank, core, endpoint, &orders, &to_root))
                .map_err(|source| TransportError::System { what: "could not start a thread for a rank", source })?;
            engine.to_agents.push(sender);
            engine.handles.push(thread);
        }
        Ok(engine)
    }

    /// Wait until all have prepared what they were told to; those that are not ready.
    fn all_ready(&mut self) -> Result<Vec<(usize, Unready)>, TransportError> {
        let world = self.to_agents.len();
        let deadline = Instant::now() + PREPARE;
        let mut ready = 0;
        let mut unready = Vec::new();
        while ready < world {
            match self.from_agents.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(ToRoot::Ready { rank, error }) => {
                    ready += 1;
                    unready.extend(error.map(|error| (rank, error)));
                }
                Ok(other) => self.early.push(other),
                Err(_) => {
                    return Err(TransportError::Silent { missing: "?".to_owned(), world, seconds: PREPARE.as_secs() });
                }
            }
        }
        Ok(unready)
    }

    /// Ranks that are measured.
    fn measured(&self) -> Vec<usize> {
        if self.only.is_empty() { (0..self.to_agents.len()).collect() } else { self.only.clone() }
    }

    /// Ranks that are measured and have what it takes.
    fn able(&self) -> Vec<usize> {
        self.measured().into_iter().filter(|&rank| !self.seats.is_absent(rank)).collect()
    }

    /// Have every rank prepare.
    fn set_up(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        let world = self.to_agents.len();
        let setup = &Setup { nodes: vec![0; world], ..setup.clone() };
        for rank in 0..world {
            let idle = !self.only.is_empty() && !self.only.contains(&rank);
            let setup = self.seats.setup(rank, setup);
            self.tell(rank, ToAgent::Setup(if idle { setup.idle() } else { setup }))?;
        }
        let unready = self.all_ready()?;
        absent(setup, self.seats.absent(), unready, &self.measured())
    }

    fn tell(&self, rank: usize, message: ToAgent) -> Result<(), TransportError> {
        let gone = || TransportError::Lost { what: "a probe", rank };
        self.to_agents.get(rank).ok_or_else(gone)?.send(message).map_err(|_| gone())
    }
}

#[cfg(feature = "cuda")]
impl super::cuda::Control for ThreadEndpoint {
    const ONE_PROCESS: bool = true;
}

/// A rank's life: bound to its core, asleep until an order comes.
fn serve(rank: usize, core: usize, endpoint: ThreadEndpoint, orders: &Receiver<ToAgent>, to_root: &Sender<ToRoot>) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        let line = format!("could not bind this rank to core {core}: {error}; it runs where the system puts it");
        let _ = to_root.send(ToRoot::Log { rank, lines: vec![line] });
    }
    let mut agent = Agent::new(crate::transport::rank(endpoint));
    while let Ok(message) = orders.recv() {
        let answer = match message {
            ToAgent::Setup(setup) => ToRoot::Ready { rank, error: agent.prepare(&setup) },
            ToAgent::Order(order) => ToRoot::Done { rank, report: agent.obey(&order) },
            ToAgent::Part { part, mover } => ToRoot::Ready { rank, error: agent.load(*part, mover) },
            ToAgent::Carry(order) => ToRoot::Carried { rank, carried: agent.carry(&order) },
            // What this machine is made of, the engine sees itself.
            ToAgent::Heartbeat | ToAgent::Describe | ToAgent::Look | ToAgent::State(_) => continue,
            ToAgent::Leave { together } => {
                if together {
                    agent.endpoint().close();
                }
                break;
            }
        };
        let lines = agent.told();
        if !lines.is_empty() {
            let _ = to_root.send(ToRoot::Log { rank, lines });
        }
        if to_root.send(answer).is_err() {
            break;
        }
    }
}

impl Engine for Threads {
    fn kind(&self) -> EngineKind {
        EngineKind::Threads
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn movers(&self) -> &'static [MoverKind] {
        MOVERS
    }

    fn software(&self) -> String {
        format!("toposcope {} threads", env!("CARGO_PKG_VERSION"))
    }

    fn restrict(&mut self, ranks: &[usize]) {
        self.only = ranks.to_vec();
    }

    fn bind(&mut self, memory: Memory, gpus: &[String]) -> Result<Decided, TransportError> {
        if memory.is_host() {
            return Ok(self.seats.leave(&mut self.topology));
        }
        let (world, most) = (self.to_agents.len(), mailbox::Mailbox::MOST_ON_GPUS);
        if world > most {
            return Err(TransportError::Gpus(format!(
                "{world} threads, of which {most} at most can measure memory of GPUs: --ranks {most}"
            )));
        }
        // One process: all of its threads see the same.
        let sight = binding::sight(allowed_cores());
        let part = (0..self.to_agents.len()).filter(|rank| self.only.is_empty() || self.only.contains(rank));
        let seen: Vec<_> = part.map(|rank| (rank, sight.clone())).collect();
        self.seats.take(&mut self.topology, &seen, gpus, Cores::One)
    }

    fn gpu_states(&mut self, ranks: &[usize]) -> Vec<(usize, GpuState)> {
        let Self { seats, watch, .. } = self;
        ranks.iter().filter_map(|&rank| Some((rank, watch.look(seats.gpu(rank)?)?))).collect()
    }

    fn prepare(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        if !setup.memory.is_host() && self.seats.is_free() {
            self.bind(setup.memory, &setup.gpus)?;
        }
        let setup = self.assembly.call(setup, self.able())?;
        self.set_up(&setup)
    }

    fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
        if let Some((setup, why)) = self.assembly.again(self.able())? {
            let line = format!("the ranks meet in a new communicator of NCCL: {why}");
            self.early.push(ToRoot::Log { rank: 0, lines: vec![line] });
            self.set_up(&setup).map_err(|error| self.assembly.end(&error))?;
        }
        for order in round {
            self.collector.begin(order);
            for rank in order.probe.ranks() {
                // A rank whose thread has ended is found lost when it does not report; its partners wait as for any other.
                let _ = self.tell(rank, ToAgent::Order(order.clone()));
            }
        }
        Ok(())
    }

    fn load(&mut self, work: &Work, mover: MoverKind) -> Result<(), TransportError> {
        work.check(self.to_agents.len()).map_err(TransportError::Work)?;
        let lies = work.lies();
        if !lies.memory.is_host() && self.seats.is_free() {
            self.bind(lies.memory, &lies.gpus)?;
        }
        let nodes = vec![0; self.to_agents.len()];
        let work = Assembly::work(work, mover)?;
        for rank in 0..self.to_agents.len() {
            self.tell(rank, ToAgent::Part { part: Box::new(work.part(rank, &nodes, &self.seats)), mover })?;
        }
        let refused = self.all_ready()?.into_iter().next();
        let ready = refused.map_or(Ok(()), |(rank, why)| Err(why.of(rank, work.parts.get(rank).map_or(0, |part| part.memory))));
        self.work = Some(work);
        ready
    }

    fn carry(&mut self, order: &Carry) -> Result<(), TransportError> {
        let work = self.work.take().ok_or_else(|| TransportError::Work("nothing was loaded".to_owned()))?;
        self.gathering = Some(Gathering::new(&work, *order));
        for rank in work.ranks() {
            let _ = self.tell(rank, ToAgent::Carry(*order));
        }
        Ok(())
    }

    fn poll(&mut self, wait: Duration) -> Vec<Report> {
        let mut reports = Vec::new();
        let early = std::mem::take(&mut self.early);
        for message in early.into_iter().chain(self.from_agents.recv_timeout(wait)) {
            match message {
                ToRoot::Done { rank, report } => reports.extend(self.collector.report(rank, report)),
                ToRoot::Carried { rank, carried } => {
                    reports.extend(self.gathering.as_mut().and_then(|gathering| gathering.take(rank, carried)));
                }
                ToRoot::Log { rank, lines } => reports.extend(lines.into_iter().map(|line| Report::Log { rank, line })),
                ToRoot::Here(_) | ToRoot::Hardware { .. } | ToRoot::Seen { .. } | ToRoot::State { .. } | ToRoot::Ready { .. } => {}
            }
        }
        reports.extend(self.collector.overdue());
        reports.extend(self.gathering.as_mut().map(Gathering::overdue).unwrap_or_default());
        self.gathering.take_if(|gathering| gathering.is_over());
        for report in &reports {
            if let Report::Probe(probe) = report {
                self.assembly.see(probe);
            }
        }
        reports
    }

    fn finish(&mut self) {
        for sender in self.to_agents.drain(..) {
            let _ = sender.send(ToAgent::Leave { together: true });
        }
        // A moment for what they give back. A thread in the middle of a probe ends with it; the process does not wait for one that hangs.
        let end = Instant::now() + LEAVE;
        while !self.collector.busy() && !self.handles.iter().all(JoinHandle::is_finished) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        for thread in self.handles.drain(..).filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}
