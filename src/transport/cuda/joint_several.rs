//! Several transfers through NCCL at the same time: a window of all that a rank sends and receives is one group, as in real jobs, and
//! all ranks of the probe open their gates on one word, of the lowest of them, once everyone has enqueued.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Control;
use super::endpoint::Device;
use super::joint::{Half, LANE};
use super::word::Word;
use crate::transport::timed::longer;
use crate::transport::{Flow, News, Stop, Window};

/// Words are taken at once, or the rank that they are for is lost.
const TAKEN: Duration = Duration::from_secs(2);
/// Longest time to enqueue the first group of a probe, of pairs that are connected.
const ENQUEUED: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// windows are being gathered
    #[default]
    Idle,
    /// all are enqueued behind the closed gate
    Ready,
    /// the gate is open
    Open,
}

/// What a rank knows of its transfers through NCCL.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// its transfers with other ranks, in the order of their numbers
    flows: Vec<Flow>,
    halves: Vec<Half>,
    /// which of those have their next window
    gathered: Vec<bool>,
    state: State,
    /// the rank that says when to start
    first: usize,
    /// the others that take part, where this rank is that one, and how many of them are ready
    others: Vec<usize>,
    ready: usize,
    /// windows that have arrived, and acknowledgements that came before this rank's own part was through
    arrived: VecDeque<usize>,
    acknowledged: VecDeque<(usize, u64)>,
    deadline: Option<Instant>,
}

impl Round {
    /// For a rank's transfers among those of a probe.
    pub(super) fn new(flows: &[Flow], rank: usize, window: Window) -> Self {
        let away = || flows.iter().filter(|flow| !flow.is_local());
        let own: Vec<Flow> = away().filter(|flow| flow.from == rank || flow.to == rank).copied().collect();
        let half = |flow: &Flow| {
            let sends = flow.from == rank;
            Half { peer: if sends { flow.to } else { flow.from }, sends, lane: flow.lane, window }
        };
        let mut ranks: Vec<usize> = away().flat_map(|flow| [flow.from, flow.to]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let first = ranks.first().copied().unwrap_or(rank);
        Self {
            halves: own.iter().map(half).collect(),
            gathered: vec![false; own.len()],
            arrived: VecDeque::with_capacity(own.len()),
            acknowledged: VecDeque::with_capacity(own.len()),
            others: if rank == first { ranks.into_iter().filter(|&other| other != rank).collect() } else { Vec::new() },
            first,
            flows: own,
            ..Self::default()
        }
    }

    /// Add a window; true if all are there.
    fn gather(&mut self, flow: usize, window: Window) -> bool {
        if let Some(at) = self.flows.iter().position(|own| own.number == flow) {
            self.halves[at].window = window;
            self.gathered[at] = true;
        }
        let whole = self.gathered.iter().all(|&gathered| gathered);
        if whole {
            self.gathered.fill(false);
        }
        whole
    }
}

impl<C: Control> Device<C> {
    /// Begin to send or to receive a window; what is enqueued, once all of a round is there, is a group.
    pub(super) fn gather(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        let round = &mut self.several.round;
        if !round.gather(flow, window) {
            return Ok(());
        }
        let deadline = round.deadline.unwrap_or_else(|| Instant::now() + ENQUEUED);
        let Some(side) = &mut self.side else { return Ok(()) };
        round.state = State::Ready;
        side.enqueue_joint(&round.halves, deadline)?;
        if side.rank != round.first {
            let first = round.first;
            return self.control.notify(first, Word::Launched(0).encode(), Instant::now() + TAKEN);
        }
        self.start_round()
    }

    /// A word that a rank is ready, or, from the first one, that all are.
    pub(super) fn launched(&mut self) -> Result<(), Stop> {
        let Some(side) = &self.side else { return Ok(()) };
        let round = &mut self.several.round;
        if side.rank == round.first {
            round.ready += 1;
            return self.start_round();
        }
        side.open(LANE);
        round.state = State::Open;
        Ok(())
    }

    /// Of the first rank: let all start, once all are ready.
    fn start_round(&mut self) -> Result<(), Stop> {
        let round = &mut self.several.round;
        if round.state != State::Ready || round.ready < round.others.len() {
            return Ok(());
        }
        round.ready = 0;
        let until = Instant::now() + TAKEN;
        for &other in &round.others {
            self.control.notify(other, Word::Launched(0).encode(), until)?;
        }
        if let Some(side) = &self.side {
            side.open(LANE);
        }
        round.state = State::Open;
        Ok(())
    }

    /// An acknowledgement counts once this rank's own part is through, too.
    pub(super) fn hold(&mut self, flow: usize, time: u64) {
        self.several.round.acknowledged.push_back((flow, time));
    }

    /// Look after the group under way: one thing that has happened.
    pub(super) fn look_jointly(&mut self, deadline: Instant) -> Result<Option<News>, Stop> {
        let (Some(side), round) = (&mut self.side, &mut self.several.round) else { return Ok(None) };
        round.deadline = Some(deadline);
        if round.state == State::Open {
            side.joint_health()?;
            let Some(time) = side.elapsed(LANE)? else { return Ok(None) };
            round.state = State::Idle;
            for flow in &round.flows {
                side.clocked[flow.number] = Some(time);
                if flow.to == side.rank {
                    round.arrived.push_back(flow.number);
                }
            }
        }
        if let Some(flow) = round.arrived.pop_front() {
            return Ok(Some(News::Arrived(flow)));
        }
        if round.state != State::Idle {
            return Ok(None);
        }
        let Some((flow, time)) = round.acknowledged.pop_front() else { return Ok(None) };
        if let Some(clocked) = side.clocked.get_mut(flow) {
            *clocked = longer(*clocked, time);
        }
        Ok(Some(News::Acknowledged(flow)))
    }

    /// The probe ends here.
    pub(super) fn part_round(&mut self, deadline: Instant) {
        let round = std::mem::take(&mut self.several.round);
        let Some(side) = self.side.as_mut().filter(|_| round.state != State::Idle) else { return };
        let mut stop = Stop::Failed("another of the probe's ranks gave up".to_owned());
        if round.state == State::Open {
            loop {
                match side.elapsed(LANE).and_then(|time| side.joint_health().map(|()| time)) {
                    Ok(Some(_)) => return,
                    Ok(None) if Instant::now() < deadline => std::thread::yield_now(),
                    Ok(None) => {
                        stop = Stop::Deadline;
                        break;
                    }
                    Err(failed) => {
                        stop = failed;
                        break;
                    }
                }
            }
        } else if Instant::now() >= deadline {
            stop = Stop::Deadline;
        }
        side.abandon(&round.halves, &stop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::{Cell, Probe};

    #[test]
    fn a_window_of_all_transfers_is_a_group_and_the_lowest_rank_starts_it() {
        let probe = Probe::pair(1, Cell { pattern: Pattern::Duplex, from: 2, to: 5 }, 8, 1);
        let (flows, window) = (Flow::all(&probe), Window { bytes: 8, count: 1, first: 0, slots: 4 });
        let mut round = Round::new(&flows, 5, window);
        assert_eq!((round.first, round.others.len(), round.halves.len()), (2, 0, 2));
        assert_eq!(round.halves.iter().filter(|half| half.sends).count(), 1);
        assert!(!round.gather(flows[0].number, window));
        assert!(!round.gather(flows[0].number, window), "the same one again is not another one");
        let next = Window { first: 2, ..window };
        assert!(round.gather(flows[1].number, next));
        assert_eq!(round.halves[1].window, next);
        assert!(!round.gather(flows[1].number, next), "and then it begins anew");
        assert_eq!(Round::new(&flows, 2, window).others, [5]);
    }
}
