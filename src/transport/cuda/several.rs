//! Several transfers of a rank's GPU at the same time, each on a stream of its own.

use std::time::{Duration, Instant};

use super::Control;
use super::endpoint::Device;
use super::joint_several::Round;
use super::side::{Moved, Side, Way};
use super::word::{MOST_FLOWS, OWN, Word};
use crate::transport::timed::{longer, nanoseconds};
use crate::transport::{Endpoint, Flow, News, Stop, Together, Window};

/// Words are taken at once, or the rank that they are for is lost.
const TAKEN: Duration = Duration::from_secs(2);

/// Where a transfer that this rank's GPU moves stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// enqueued behind a closed gate
    Ready,
    /// its gate is to be opened, with those of all that start at the same time
    Starting,
    /// under way
    Open,
}

/// A transfer that this rank's GPU moves.
#[derive(Debug)]
struct Own {
    flow: Flow,
    /// its lane of the GPU
    lane: usize,
    state: State,
    /// the sender's word came before the window was asked for
    early: bool,
}

/// What a rank knows of its probe's transfers on GPUs.
#[derive(Debug, Default)]
pub(super) struct Several {
    flows: Vec<Flow>,
    own: Vec<Own>,
    /// place of each transfer in `own`
    place: Vec<usize>,
    /// whose turn it is to be looked at
    next: usize,
    /// some are [`State::Starting`]
    starting: bool,
    /// what goes through NCCL
    pub(super) round: Round,
    /// windows into this rank's memory that other ranks' GPUs copy and that have not landed
    expected: usize,
}

impl Several {
    fn own(&mut self, flow: usize) -> Option<&mut Own> {
        self.place.get(flow).and_then(|&at| self.own.get_mut(at))
    }
}

impl Side {
    /// True if this rank's GPU moves a transfer.
    fn moves(&self, flow: &Flow) -> bool {
        match self.way {
            Way::Pull if !flow.is_local() => flow.to == self.rank,
            Way::Push | Way::Pull => flow.from == self.rank,
            Way::Joint | Way::Through => flow.is_local() && flow.from == self.rank,
        }
    }
}

impl<C: Control> Device<C> {
    /// Open the gates of all that start at the same time.
    fn open(&mut self) {
        let Some(side) = self.side.as_ref().filter(|_| self.several.starting) else { return };
        for own in self.several.own.iter_mut().filter(|own| own.state == State::Starting) {
            side.open(own.lane);
            own.state = State::Open;
        }
        self.several.starting = false;
    }

    /// What a word of a GPU's means here.
    fn heard(&mut self, word: Word) -> Result<Option<News>, Stop> {
        if let Word::Refused(rank) = word {
            return Err(self.refused(rank));
        }
        let Some(side) = &mut self.side else { return Ok(None) };
        match word {
            Word::Refused(_) => Ok(None),
            Word::Launched(_) if side.way == Way::Joint => self.launched().map(|()| None),
            Word::Acknowledged(flow, time) if side.way == Way::Joint => {
                self.hold(flow, time);
                Ok(None)
            }
            Word::Landed(flow, time) => {
                if let Some(clocked) = side.clocked.get_mut(flow) {
                    *clocked = longer(None, time);
                }
                self.several.expected = self.several.expected.saturating_sub(1);
                Ok(Some(News::Arrived(flow)))
            }
            Word::Acknowledged(flow, time) => {
                if let Some(clocked) = side.clocked.get_mut(flow) {
                    *clocked = longer(*clocked, time);
                }
                Ok(Some(News::Acknowledged(flow)))
            }
            Word::Launched(flow) => {
                if let Some(own) = self.several.own(flow) {
                    if own.state == State::Ready {
                        own.state = State::Open;
                        let lane = own.lane;
                        side.open(lane);
                    } else {
                        own.early = true;
                    }
                }
                Ok(None)
            }
        }
    }

    /// Look at the transfers that are under way, each in turn: one that is done.
    fn look(&mut self) -> Result<Option<Flow>, Stop> {
        let (Some(side), Several { own, next, .. }) = (&mut self.side, &mut self.several) else { return Ok(None) };
        for _ in 0..own.len() {
            *next = (*next + 1) % own.len();
            let own = &mut own[*next];
            if own.state != State::Open {
                continue;
            }
            if let Some(time) = side.elapsed(own.lane)? {
                own.state = State::Idle;
                side.clocked[own.flow.number] = Some(time);
                return Ok(Some(own.flow));
            }
        }
        Ok(None)
    }

    fn flow(&self, number: usize) -> Result<Flow, Stop> {
        self.several.flows.get(number).copied().ok_or_else(|| Stop::Failed(format!("this probe has no transfer {number}")))
    }

    /// Enqueue a window of a transfer that this rank's GPU moves; true if it may go at once.
    fn enqueue(&mut self, flow: usize, window: Window) -> Result<bool, Stop> {
        let Some((side, own)) = self.side.as_mut().zip(self.several.own(flow)) else { return Ok(false) };
        let Flow { from, to, lane, .. } = own.flow;
        side.enqueue(own.lane, Moved { from, to, lane, window: &window })?;
        own.state = State::Ready;
        Ok(std::mem::take(&mut own.early))
    }
}

impl<C: Control> Together for Device<C> {
    const WORDS: u64 = OWN;

    fn join(&mut self, flows: &[Flow], window: Window) -> Result<(), Stop> {
        let Some(side) = &mut self.side else { return self.control.join(flows, window) };
        if flows.len() > MOST_FLOWS {
            return Err(Stop::Failed(format!("{} transfers at the same time are more than {MOST_FLOWS}", flows.len())));
        }
        let rank = side.rank;
        let mine = |flow: &&Flow| flow.from == rank || flow.to == rank;
        if let Some(flow) = flows.iter().filter(mine).find(|flow| flow.to == rank && flow.lane >= side.arenas) {
            return Err(Stop::Failed(format!("rank {rank} has no arena for {} transfers at the same time", flow.lane + 1)));
        }
        if let Some(flow) = flows.iter().filter(mine).find(|flow| flow.twin >= Flow::MOST_TWINS) {
            let (count, most) = (flow.twin + 1, Flow::MOST_TWINS);
            return Err(Stop::Failed(format!("{count} transfers {}→{} at the same time are more than {most}", flow.from, flow.to)));
        }
        let moved: Vec<Flow> = flows.iter().filter(|flow| side.moves(flow)).copied().collect();
        // The first lane is NCCL's.
        let lanes = usize::from(side.way == Way::Joint);
        let ready = side.ready(flows.len(), (lanes + moved.len()).max(1));
        let several = &mut self.several;
        several.flows = flows.to_vec();
        several.place = vec![usize::MAX; flows.len()];
        for (at, flow) in moved.iter().enumerate() {
            several.place[flow.number] = at;
        }
        let own = |(at, flow)| Own { flow, lane: lanes + at, state: State::Idle, early: false };
        several.round = Round::new(flows, rank, window);
        several.own = moved.into_iter().enumerate().map(own).collect();
        (several.next, several.starting, several.expected) = (0, false, 0);
        if let Err(stop) = ready {
            return Err(self.refuse(stop));
        }
        self.control.join(flows, window)
    }

    fn post(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        let Some(side) = &self.side else { return self.control.post(flow, window) };
        if side.way == Way::Joint {
            return self.gather(flow, window);
        }
        if side.way == Way::Through {
            return self.control.post(flow, window);
        }
        if side.way == Way::Push {
            self.several.expected += 1;
            return Ok(());
        }
        if self.enqueue(flow, window)? {
            // Its sender was first.
            if let Some((side, own)) = self.side.as_ref().zip(self.several.own(flow)) {
                side.open(own.lane);
                own.state = State::Open;
            }
        }
        Ok(())
    }

    fn launch(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        let Some(side) = &self.side else { return self.control.launch(flow, window) };
        let about = self.flow(flow)?;
        if side.moves(&about) {
            self.enqueue(flow, window)?;
            if let Some(own) = self.several.own(flow) {
                own.state = State::Starting;
            }
            self.several.starting = true;
            return Ok(());
        }
        if side.way == Way::Joint {
            return self.gather(flow, window);
        }
        if side.way == Way::Through {
            return self.control.launch(flow, window);
        }
        // By the clock of the receiver, who has not moved this one yet.
        self.side.iter_mut().for_each(|side| side.clocked[flow] = None);
        self.control.notify(about.to, Word::Launched(flow).encode(), Instant::now() + TAKEN)
    }

    fn acknowledge(&mut self, flow: usize, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = &self.side else { return self.control.acknowledge(flow, deadline) };
        if side.way == Way::Through {
            return self.control.acknowledge(flow, deadline);
        }
        let about = self.flow(flow)?;
        // Who has moved it knows it.
        let time = if side.way == Way::Joint || side.moves(&about) { nanoseconds(self.clocked(flow)) } else { 0 };
        self.control.notify(about.from, Word::Acknowledged(flow, time).encode(), deadline)
    }

    fn news(&mut self, deadline: Instant) -> Result<Option<News>, Stop> {
        if self.side.is_none() {
            return self.control.news(deadline);
        }
        self.open();
        match self.control.news(deadline)? {
            Some(News::Word { from, word }) => {
                return match Word::decode(word) {
                    Some(word) => self.heard(word),
                    None => Ok(Some(News::Word { from, word })),
                };
            }
            None => {}
            // Of what moves through it.
            other => return Ok(other),
        }
        if self.is_joint()
            && let Some(news) = self.look_jointly(deadline)?
        {
            return Ok(Some(news));
        }
        let Some(flow) = self.look()? else { return Ok(None) };
        if flow.is_local() || flow.to == self.rank() {
            return Ok(Some(News::Arrived(flow.number)));
        }
        let word = Word::Landed(flow.number, nanoseconds(self.clocked(flow.number)));
        self.control.notify(flow.to, word.encode(), deadline)?;
        Ok(None)
    }

    fn part(&mut self, deadline: Instant) {
        self.control.part(deadline);
        self.part_round(deadline);
        let Some(side) = &mut self.side else { return };
        side.doubtful |= self.several.expected > 0;
        for own in &mut self.several.own {
            if std::mem::take(&mut own.state) == State::Idle {
                continue;
            }
            side.open(own.lane);
            while matches!(side.elapsed(own.lane), Ok(None)) {
                if Instant::now() >= deadline {
                    side.give_up(own.lane);
                    break;
                }
                std::thread::yield_now();
            }
        }
    }
}
