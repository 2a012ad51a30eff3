//! Ranks as processes of one MPI job; rank 0 drives, the others sleep until an order comes.
//!
//! One thread of each process calls MPI (`MPI_THREAD_FUNNELED`). Nothing here waits without a deadline, but for
//! `MPI_Win_flush`, which the library offers no way to give up.

mod carry;
mod control;
mod endpoint;
mod hosts;
mod raw;
mod several;
mod worker;

use std::time::{Duration, Instant};

use ::mpi::environment::Universe;
use ::mpi::traits::Communicator;
use control::Control;
use endpoint::MpiEndpoint;
use hosts::Hosts;
use raw::Comm;

pub use worker::{Left, Worker};

use super::absent::absent;
use super::assembly::Assembly;
use super::binding::{self, Cores, Decided, Seats, Watch};
use super::work::{Carry, Gathering, Work};
use super::{
    Absent, Agent, Collector, End, Endpoint as _, Engine, Order, Report, Setup, ToAgent, ToRoot, TransportError, Unready, libraries,
};
use crate::discover::{Machine, allowed_cores};
use crate::sample::{EngineKind, Memory, MoverKind};
use crate::topology::{GpuState, Placement, Topology};

use crate::sample::MPI_MOVERS as MOVERS;
/// Longest time for all ranks to say where they sit, and to get ready for a sweep.
const ANSWER: Duration = Duration::from_secs(120);
/// Longest time for the hosts to say what they are made of, after all ranks have answered. NVIDIA's driver takes a second or more
/// a GPU to start where nothing keeps it awake.
const DESCRIBE: Duration = Duration::from_secs(30);
/// Longest time for GPUs to say how they are doing; those that do not are not waited for.
const LOOK: Duration = Duration::from_secs(2);
/// How often rank 0 says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// This process's part in the job.
#[allow(missing_debug_implementations, reason = "Universe has none")]
pub enum Role {
    /// rank 0: drives the others
    Root(Box<Mpi>),
    /// any other rank
    Worker(Box<Worker>),
}

/// Join the job; collective. `world` is what the launcher said.
pub fn join(world: usize) -> Result<Role, TransportError> {
    let (universe, _) = ::mpi::initialize_with_threading(::mpi::Threading::Funneled)
        .ok_or_else(|| TransportError::Mpi("MPI was initialised before".to_owned()))?;
    let all = universe.world();
    let (rank, size) = (usize::try_from(all.rank()).unwrap_or(0), usize::try_from(all.size()).unwrap_or(0));
    if size != world {
        return Err(TransportError::Mpi(format!(
            "the launcher started {world} processes, but this program's MPI library sees {size}: it was built for another MPI ({}). \
             Build it with this launcher's compiler: MPICC=... cargo build --release --features mpi",
            version()
        )));
    }
    let control = Comm::duplicate(&all);
    let agent = Agent::new(super::rank(MpiEndpoint::new(rank, Comm::duplicate(&all), Comm::duplicate(&all))));
    let placement = Machine::default().placement(rank, allowed_cores());
    if rank > 0 {
        return Ok(Role::Worker(Box::new(Worker::new(universe, rank, Control::new(control), agent, &placement)?)));
    }
    let mut engine = Mpi {
        universe: Some(universe),
        topology: Topology::default(),
        control: Control::new(control),
        agent,
        collector: Collector::default(),
        mine: None,
        work: None,
        gathering: None,
        my_carry: None,
        only: Vec::new(),
        seats: Seats::default(),
        watch: Watch::default(),
        lost: Vec::new(),
        untidy: false,
        heartbeat: Instant::now(),
        assembly: Assembly::default(),
        early: Vec::new(),
    };
    engine.gather(world, placement)?;
    Ok(Role::Root(Box::new(engine)))
}

/// Name and version of the MPI library, in one line.
pub fn version() -> String {
    let text = ::mpi::environment::library_version().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    crate::units::plain(line.trim_end_matches('\0').trim()).chars().take(120).collect()
}

#[cfg(feature = "cuda")]
impl super::cuda::Control for MpiEndpoint {
    const ONE_PROCESS: bool = false;

    fn takes_gpus(&self) -> Result<(), String> {
        let says = match raw::takes_gpus() {
            Some(true) => return Ok(()),
            Some(false) => "says that it does not",
            None => "does not say that it does",
        };
        Err(format!(
            "this MPI library must take memory of GPUs, and {says} (MPIX_Query_cuda_support; {}): one that was built --with-cuda does; \
             or choose --mover cuda_ipc_pull, cuda_ipc_push or nccl",
            version()
        ))
    }

    fn prepare_far(&mut self, setup: &Setup, [outgoing, landing]: [(u64, usize); 2]) -> Result<(), TransportError> {
        self.prepare_with(setup, |_, _, _| Ok((raw::Arena::far(outgoing, 1024), raw::Arena::far(landing, 1024))))
    }
}

/// The job as rank 0 sees it.
#[allow(missing_debug_implementations, reason = "Universe has none")]
pub struct Mpi {
    universe: Option<Universe>,
    topology: Topology,
    control: Control<ToAgent, ToRoot>,
    agent: Agent<super::Rank<MpiEndpoint>>,
    collector: Collector,
    /// an order in which rank 0 itself takes part, to be run by the next poll
    mine: Option<Order>,
    /// the work that was loaded, the one that is carried, and the order to carry it where rank 0 takes part, to be run by the next poll
    work: Option<Work>,
    gathering: Option<Gathering>,
    my_carry: Option<Carry>,
    /// the only ranks that get buffers; empty for all
    only: Vec<usize>,
    seats: Seats,
    watch: Watch,
    lost: Vec<usize>,
    /// a transfer was given up: the library's collective end could wait for it forever
    untidy: bool,
    heartbeat: Instant,
    assembly: Assembly,
    /// what was said while ranks got ready, to be told by the next poll
    early: Vec<Report>,
}

impl Mpi {
    fn gather(&mut self, world: usize, own: Placement) -> Result<(), TransportError> {
        let mut places: Vec<Option<Placement>> = vec![None; world];
        if let Some(place) = places.first_mut() {
            *place = Some(own);
        }
        let missing = |places: &[Option<Placement>]| -> Vec<usize> { (0..world).filter(|&rank| places[rank].is_none()).collect() };
        let deadline = Instant::now() + ANSWER;
        let mut nap = Nap::new();
        while places.iter().any(Option::is_none) {
            if Instant::now() >= deadline {
                let missing = crate::units::format_ranks(&missing(&places));
                return Err(TransportError::Silent { missing, world, seconds: ANSWER.as_secs() });
            }
            for message in self.control.receive() {
                if let ToRoot::Here(placement) = message
                    && let Some(place) = places.get_mut(placement.rank)
                {
                    *place = Some(placement);
                    nap = Nap::new();
                }
            }
            nap.sleep(Duration::MAX);
        }
        self.topology.ranks = places.into_iter().flatten().collect();
        self.describe()
    }

    /// Have the lowest rank of each host tell what that is made of. A host that does not is a note, no error.
    fn describe(&mut self) -> Result<(), TransportError> {
        let mut hosts = Hosts::of(&self.topology);
        for rank in hosts.waiting().filter(|&rank| rank > 0).collect::<Vec<_>>() {
            self.tell(rank, &ToAgent::Describe)?;
        }
        hosts.take(0, serde_json::to_value(libraries::hardware(&Machine::default())).unwrap_or_default());
        let deadline = Instant::now() + DESCRIBE;
        let mut nap = Nap::new();
        while hosts.waiting().next().is_some() && Instant::now() < deadline {
            for message in self.control.receive() {
                if let ToRoot::Hardware { rank, hardware } = message {
                    hosts.take(rank, hardware);
                    nap = Nap::new();
                }
            }
            nap.sleep(Duration::MAX);
        }
        self.topology.hardware = hosts.into_hardware(DESCRIBE.as_secs());
        Ok(())
    }

    fn world(&self) -> usize {
        self.topology.world()
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let lost = self.lost.clone();
        (1..self.world()).filter(move |rank| !lost.contains(rank))
    }

    fn tell(&mut self, rank: usize, message: &ToAgent) -> Result<(), TransportError> {
        self.control.send(rank, message).map_err(TransportError::Mpi)
    }

    fn take(&mut self, message: ToRoot, reports: &mut Vec<Report>) {
        match message {
            ToRoot::Done { rank, report } => {
                // Noted here: beside another rank's wrong bytes the whole does not tell it.
                self.untidy |= matches!(report.end, End::Timeout(_));
                reports.extend(self.collector.report(rank, report));
            }
            ToRoot::Carried { rank, carried } => {
                self.untidy |= matches!(carried.end, End::Timeout(_));
                reports.extend(self.gathering.as_mut().and_then(|gathering| gathering.take(rank, carried)));
            }
            ToRoot::Log { rank, lines } => reports.extend(lines.into_iter().map(|line| Report::Log { rank, line })),
            // Too late, or already known.
            ToRoot::Here(_) | ToRoot::Hardware { .. } | ToRoot::Seen { .. } | ToRoot::State { .. } | ToRoot::Ready { .. } => {}
        }
    }

    /// Wait until all have prepared what they were told to; `own` is rank 0's reason why not. Those that are not ready.
    fn all_ready(&mut self, own: Option<Unready>, mut waiting: Vec<usize>) -> Result<Vec<(usize, Unready)>, TransportError> {
        let mut unready: Vec<(usize, Unready)> = own.map(|own| (0, own)).into_iter().collect();
        let deadline = Instant::now() + ANSWER;
        let mut nap = Nap::new();
        while !waiting.is_empty() {
            if Instant::now() >= deadline {
                let missing = crate::units::format_ranks(&waiting);
                return Err(TransportError::Silent { missing, world: self.world(), seconds: ANSWER.as_secs() });
            }
            for message in self.control.receive() {
                match message {
                    ToRoot::Ready { rank, error } => {
                        waiting.retain(|&other| other != rank);
                        unready.extend(error.map(|error| (rank, error)));
                    }
                    ToRoot::Log { rank, lines } => self.early.extend(lines.into_iter().map(|line| Report::Log { rank, line })),
                    _ => {}
                }
            }
            nap.sleep(Duration::MAX);
        }
        Ok(unready)
    }

    fn takes_part(&self, rank: usize) -> bool {
        self.only.is_empty() || self.only.contains(&rank)
    }

    /// What the ranks that take part see of GPUs.
    fn sights(&mut self) -> Result<Vec<(usize, binding::Sight)>, TransportError> {
        if let Some(&rank) = self.lost.iter().find(|&&rank| self.takes_part(rank)) {
            return Err(TransportError::Lost { what: "binding ranks to GPUs", rank });
        }
        let mut waiting: Vec<usize> = self.others().filter(|&rank| self.takes_part(rank)).collect();
        for &rank in &waiting {
            self.tell(rank, &ToAgent::Look)?;
        }
        let mut seen = Vec::new();
        if self.takes_part(0) {
            seen.push((0, binding::sight(self.started_on(0))));
        }
        let deadline = Instant::now() + ANSWER;
        let mut nap = Nap::new();
        while !waiting.is_empty() {
            if Instant::now() >= deadline {
                let missing = crate::units::format_ranks(&waiting);
                return Err(TransportError::Silent { missing, world: self.world(), seconds: ANSWER.as_secs() });
            }
            for message in self.control.receive() {
                if let ToRoot::Seen { rank, mut sight } = message
                    && waiting.contains(&rank)
                {
                    waiting.retain(|&other| other != rank);
                    sight.cores = self.started_on(rank);
                    seen.push((rank, sight));
                }
            }
            nap.sleep(Duration::MAX);
        }
        Ok(seen)
    }

    /// The cores that the launcher has left to a rank, wherever it runs now.
    fn started_on(&self, rank: usize) -> Vec<usize> {
        self.topology.ranks.get(rank).map_or_else(Vec::new, |placement| placement.cores.clone())
    }

    /// What a rank prepares.
    fn setup_of(&self, rank: usize, setup: &Setup) -> Setup {
        let setup = self.seats.setup(rank, setup);
        if self.takes_part(rank) { setup } else { setup.idle() }
    }

    /// Ranks that are measured and answer.
    fn measured(&self) -> Vec<usize> {
        let all: Vec<usize> = if self.only.is_empty() { (0..self.world()).collect() } else { self.only.clone() };
        all.into_iter().filter(|rank| !self.lost.contains(rank)).collect()
    }

    /// Those of them that have what it takes.
    fn able(&self) -> Vec<usize> {
        self.measured().into_iter().filter(|&rank| !self.seats.is_absent(rank)).collect()
    }

    /// Have every rank that answers prepare.
    fn set_up(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        // Nobody asks for them where all memory is the hosts' and nobody is lost; they go to every rank.
        let needed = !setup.memory.is_host() || !self.lost.is_empty();
        let mut nodes = if needed { self.topology.node_of() } else { Vec::new() };
        self.lost.iter().for_each(|&rank| nodes[rank] = Setup::LOST);
        let setup = &Setup { nodes, ..setup.clone() };
        let waiting: Vec<usize> = self.others().collect();
        for rank in self.others() {
            let setup = self.setup_of(rank, setup);
            self.tell(rank, &ToAgent::Setup(setup))?;
        }
        let own = self.setup_of(0, setup);
        let refused = self.agent.prepare(&own);
        self.tell_own();
        let unready = self.all_ready(refused, waiting)?;
        absent(setup, self.seats.absent(), unready, &self.measured())
    }

    /// Lines of rank 0's own.
    fn tell_own(&mut self) {
        self.early.extend(self.agent.told().into_iter().map(|line| Report::Log { rank: 0, line }));
    }

    fn beat(&mut self) {
        if self.heartbeat.elapsed() >= HEARTBEAT {
            self.heartbeat = Instant::now();
            // To ranks that take none they would pile up; those are found lost by their next probe.
            if self.control.flush() {
                for rank in self.others() {
                    let _ = self.control.send(rank, &ToAgent::Heartbeat);
                }
            }
        }
    }
}

impl Engine for Mpi {
    fn kind(&self) -> EngineKind {
        EngineKind::Mpi
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn movers(&self) -> &'static [MoverKind] {
        MOVERS
    }

    fn software(&self) -> String {
        version()
    }

    fn restrict(&mut self, ranks: &[usize]) {
        self.only = ranks.to_vec();
    }

    fn bind(&mut self, memory: Memory, gpus: &[String]) -> Result<Decided, TransportError> {
        let home = self.seats.leave(&mut self.topology);
        if memory.is_host() {
            return Ok(home);
        }
        let seen = self.sights()?;
        self.seats.take(&mut self.topology, &seen, gpus, Cores::Near)
    }

    fn gpu_states(&mut self, ranks: &[usize]) -> Vec<(usize, GpuState)> {
        let mut states = Vec::new();
        let mut waiting = Vec::new();
        for &rank in ranks {
            let Some(gpu) = self.seats.gpu(rank).cloned() else { continue };
            if rank == 0 {
                states.extend(self.watch.look(&gpu).map(|state| (0, state)));
            } else if !self.lost.contains(&rank) && self.tell(rank, &ToAgent::State(gpu)).is_ok() {
                waiting.push(rank);
            }
        }
        let deadline = Instant::now() + LOOK;
        let mut nap = Nap::new();
        while !waiting.is_empty() && Instant::now() < deadline {
            for message in self.control.receive() {
                match message {
                    ToRoot::State { rank, state } => {
                        waiting.retain(|&other| other != rank);
                        states.extend(state.map(|state| (rank, state)));
                    }
                    // No probe runs now; what ranks print is kept for the next poll.
                    ToRoot::Log { rank, lines } => self.early.extend(lines.into_iter().map(|line| Report::Log { rank, line })),
                    _ => {}
                }
            }
            nap.sleep(Duration::MAX);
        }
        states
    }

    fn prepare(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        if !setup.memory.is_host() && self.seats.is_free() {
            self.bind(setup.memory, &setup.gpus)?;
        }
        if let (MoverKind::MpiPut, Some(&rank)) = (setup.mover, self.lost.first()) {
            return Err(TransportError::Lost { what: "mpi_put", rank });
        }
        let setup = self.assembly.call(setup, self.able())?;
        self.set_up(&setup)
    }

    fn load(&mut self, work: &Work, mover: MoverKind) -> Result<(), TransportError> {
        work.check(self.world()).map_err(TransportError::Work)?;
        if let Some(&rank) = self.lost.first() {
            return Err(TransportError::Lost { what: "running a plan", rank });
        }
        let waiting: Vec<usize> = self.others().collect();
        let lies = work.lies();
        if !lies.memory.is_host() && self.seats.is_free() {
            self.bind(lies.memory, &lies.gpus)?;
        }
        let nodes = self.topology.node_of();
        let work = Assembly::work(work, mover)?;
        for &rank in &waiting {
            let part = Box::new(work.part(rank, &nodes, &self.seats));
            self.tell(rank, &ToAgent::Part { part, mover })?;
        }
        let refused = self.agent.load(work.part(0, &nodes, &self.seats), mover);
        self.tell_own();
        let refused = self.all_ready(refused, waiting)?.into_iter().next();
        let ready = refused.map_or(Ok(()), |(rank, why)| Err(why.of(rank, work.parts[rank].memory)));
        self.work = Some(work);
        ready
    }

    fn carry(&mut self, order: &Carry) -> Result<(), TransportError> {
        let work = self.work.take().ok_or_else(|| TransportError::Work("nothing was loaded".to_owned()))?;
        self.gathering = Some(Gathering::new(&work, *order));
        self.my_carry = work.ranks().next().filter(|&rank| rank == 0).map(|_| *order);
        // Those without a part, too: rank 0 may be silent for as long as it takes, and they must not think themselves orphaned.
        for rank in self.others().collect::<Vec<_>>() {
            self.tell(rank, &ToAgent::Carry(*order))?;
        }
        Ok(())
    }

    fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
        if let Some((setup, why)) = self.assembly.again(self.able())? {
            self.early.push(Report::Log { rank: 0, line: format!("the ranks meet in a new communicator of NCCL: {why}") });
            self.set_up(&setup).map_err(|error| self.assembly.end(&error))?;
        }
        for order in round {
            self.collector.begin(order);
            for rank in order.probe.ranks() {
                if rank == 0 {
                    self.mine = Some(order.clone());
                } else {
                    self.tell(rank, &ToAgent::Order(order.clone()))?;
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, wait: Duration) -> Vec<Report> {
        let mut reports = std::mem::take(&mut self.early);
        if let Some(order) = self.mine.take() {
            let report = self.agent.obey(&order);
            self.tell_own();
            reports.extend(self.collector.report(0, report));
            self.collector.listened_again();
        }
        if let Some(order) = self.my_carry.take() {
            let carried = self.agent.carry(&order);
            self.tell_own();
            self.take(ToRoot::Carried { rank: 0, carried }, &mut reports);
            if let Some(gathering) = &mut self.gathering {
                gathering.listened_again();
            }
        }
        let end = Instant::now() + wait;
        let mut nap = Nap::new();
        loop {
            for message in self.control.receive() {
                self.take(message, &mut reports);
            }
            reports.extend(self.collector.overdue());
            reports.extend(self.gathering.as_mut().map(Gathering::overdue).unwrap_or_default());
            if !reports.is_empty() || Instant::now() >= end {
                break;
            }
            nap.sleep(end.saturating_duration_since(Instant::now()));
        }
        for report in &reports {
            match report {
                Report::Lost { rank, .. } => {
                    self.lost.push(*rank);
                    self.untidy = true;
                }
                Report::Probe(probe) => {
                    self.assembly.see(probe);
                    self.untidy |= matches!(probe.end, End::Timeout(_));
                }
                Report::Carried(carried) => self.untidy |= matches!(carried.end, End::Timeout(_) | End::Waived(_)),
                Report::Log { .. } => {}
            }
        }
        self.gathering.take_if(|gathering| gathering.is_over());
        self.beat();
        reports
    }

    fn finish(&mut self) {
        let together = self.lost.is_empty() && !self.untidy && !self.agent.endpoint().disturbed();
        for rank in self.others() {
            let _ = self.tell(rank, &ToAgent::Leave { together });
        }
        if together {
            self.agent.endpoint().close();
            self.universe.take();
        } else {
            // MPI_Finalize would wait for what was given up: each rank leaves by itself. A moment for the message to go out.
            let end = Instant::now() + Duration::from_millis(500);
            let mut nap = Nap::new();
            while !self.control.flush() && Instant::now() < end {
                nap.sleep(Duration::from_millis(50));
            }
            std::mem::forget(self.universe.take());
        }
    }
}

impl Drop for Mpi {
    /// Without [`Engine::finish`], as on a panic: `MPI_Finalize` would wait for ranks that wait for orders.
    fn drop(&mut self) {
        std::mem::forget(self.universe.take());
    }
}

/// Sleep that grows with the time waited: quick answers are met quickly, and long waits cost nothing.
#[derive(Debug)]
struct Nap {
    since: Instant,
}

impl Nap {
    const LEAST: Duration = Duration::from_micros(50);
    const MOST: Duration = Duration::from_millis(2);

    fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// Sleep an eighth of the time waited so far, between 50 µs and 2 ms, at most `limit`.
    fn sleep(&mut self, limit: Duration) {
        std::thread::sleep((self.since.elapsed() / 8).clamp(Self::LEAST, Self::MOST).min(limit));
    }
}
