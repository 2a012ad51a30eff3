use std::time::{Duration, Instant};

use ::mpi::environment::Universe;

use super::Nap;
use super::control::Control;
use super::endpoint::MpiEndpoint;
use crate::discover::Machine;
use crate::topology::Placement;
use crate::transport::binding::{self, Watch};
use crate::transport::{Agent, Endpoint as _, Rank, ToAgent, ToRoot, TransportError, libraries};

/// Without a word from rank 0 for this long, and twice a probe's time, a rank leaves: its rank 0 is gone or out of reach.
const ORPHANED: Duration = Duration::from_secs(60);
/// How often a rank looks for lines that it or a library printed.
const LOG_EVERY: Duration = Duration::from_millis(250);

/// A rank other than 0: asleep until an order comes.
#[allow(missing_debug_implementations, reason = "Universe has none")]
pub struct Worker {
    universe: Option<Universe>,
    rank: usize,
    control: Control<ToRoot, ToAgent>,
    agent: Agent<Rank<MpiEndpoint>>,
    /// time of the longest probe so far, seconds
    longest: f64,
    watch: Watch,
}

/// How a worker's life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// told to, all ranks together
    Together,
    /// told to, each by itself: transfers were given up or ranks are lost
    Alone,
    /// no word from rank 0
    Orphaned,
}

impl Worker {
    pub(super) fn new(
        universe: Universe,
        rank: usize,
        mut control: Control<ToRoot, ToAgent>,
        agent: Agent<Rank<MpiEndpoint>>,
        placement: &Placement,
    ) -> Result<Self, TransportError> {
        control.send(0, &ToRoot::Here(placement.clone())).map_err(TransportError::Mpi)?;
        Ok(Self { universe: Some(universe), rank, control, agent, longest: 0.0, watch: Watch::default() })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Serve until told to leave. `printed` gives lines that this process has printed since it was last asked.
    pub fn serve(mut self, mut printed: impl FnMut() -> Vec<String>) -> Left {
        let (mut heard, mut looked) = (Instant::now(), Instant::now());
        let mut nap = Nap::new();
        loop {
            for message in self.control.receive() {
                nap = Nap::new();
                if let Some(left) = self.obey(message) {
                    return left;
                }
                heard = Instant::now();
            }
            if looked.elapsed() >= LOG_EVERY {
                looked = Instant::now();
                let lines = printed();
                if !lines.is_empty() {
                    let _ = self.control.send(0, &ToRoot::Log { rank: self.rank, lines });
                }
            }
            if heard.elapsed() > ORPHANED + Duration::from_secs_f64(2.0 * self.longest) {
                std::mem::forget(self.universe.take());
                return Left::Orphaned;
            }
            nap.sleep(Duration::MAX);
        }
    }

    fn obey(&mut self, message: ToAgent) -> Option<Left> {
        let answer = match message {
            ToAgent::Setup(setup) => ToRoot::Ready { rank: self.rank, error: self.agent.prepare(&setup) },
            ToAgent::Order(order) => {
                self.longest = self.longest.max(order.timeout);
                ToRoot::Done { rank: self.rank, report: self.agent.obey(&order) }
            }
            ToAgent::Part { part, mover } => ToRoot::Ready { rank: self.rank, error: self.agent.load(*part, mover) },
            ToAgent::Carry(order) => {
                self.longest = self.longest.max(order.timeout * f64::from(order.warmup.saturating_add(order.runs).saturating_add(1)));
                if self.agent.is_spared() {
                    return None;
                }
                ToRoot::Carried { rank: self.rank, carried: self.agent.carry(&order) }
            }
            ToAgent::Heartbeat => return None,
            ToAgent::Describe => match serde_json::to_value(libraries::hardware(&Machine::default())) {
                Ok(hardware) => ToRoot::Hardware { rank: self.rank, hardware },
                Err(_) => return None,
            },
            // Where the rank runs, rank 0 knows since it was started.
            ToAgent::Look => ToRoot::Seen { rank: self.rank, sight: binding::sight(Vec::new()) },
            ToAgent::State(gpu) => ToRoot::State { rank: self.rank, state: self.watch.look(&gpu) },
            ToAgent::Leave { together: true } => {
                self.agent.endpoint().close();
                self.universe.take();
                return Some(Left::Together);
            }
            ToAgent::Leave { together: false } => {
                std::mem::forget(self.universe.take());
                return Some(Left::Alone);
            }
        };
        let lines = self.agent.told();
        if !lines.is_empty() {
            let _ = self.control.send(0, &ToRoot::Log { rank: self.rank, lines });
        }
        let _ = self.control.send(0, &answer);
        None
    }
}

impl Drop for Worker {
    /// Without having been told to leave, as on a panic: `MPI_Finalize` would wait for all the others.
    fn drop(&mut self) {
        std::mem::forget(self.universe.take());
    }
}
