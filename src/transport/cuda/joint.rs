//! Windows that the GPUs of sender and receiver move together, through NCCL: two-sided messages, or puts and the signals that tell of
//! them. Both ranks enqueue, tell each other, and open their gates; either's clock runs from its gate to the end of its own part, and
//! the longer time counts.
//!
//! Pairs are connected before anything of theirs is timed, with open gates: setting a connection up allocates and maps memory, which
//! may wait for all of a GPU's work, that behind a closed gate included.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Control;
use super::driver::{Buffer, Gate, Gpu};
use super::endpoint::Device;
use super::meet;
use super::nccl::{self, Communicator, Member, Memory, Message, Put};
use super::side::{Side, Way};
use super::word::Word;
use crate::sample::MoverKind;
use crate::sweep::Probe;
use crate::transport::{Endpoint, Setup, Stop, TransportError, Window};

/// The lane of all that goes through the communicator, which takes one thing after another.
pub(super) const LANE: usize = 0;
/// Longest time for all ranks to meet in a communicator: NCCL looks at every host's devices, and connects all with all.
pub(super) const MEET: Duration = Duration::from_secs(60);
/// Puts behind one gate: the rest of its room is for signals, stamps and the gate itself.
const MOST_PUTS: usize = Gate::MOST / 2;
/// Looks at a window between two at what the library has found wrong by itself.
const LOOKS: u32 = 256;

/// One rank's part in a window of a transfer with another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) peer: usize,
    pub(super) sends: bool,
    /// which of the receiver's arenas
    pub(super) lane: usize,
    pub(super) window: Window,
}

/// What a rank has of NCCL in a sweep.
#[derive(Debug, Default)]
pub(super) struct Joint {
    member: Member,
    /// what is registered for puts, kept until no communicator has it; given back before the GPU, with whose context it would go
    memory: Vec<(Memory, Arc<Gpu>)>,
    given_up: Option<String>,
    /// (sender, receiver) that have met before
    connected: BTreeSet<(usize, usize)>,
    looks: u32,
}

impl Joint {
    /// Arenas for puts: NCCL's own memory, which alone can be registered.
    pub(super) fn allocate(&mut self, gpu: &Arc<Gpu>, context: usize, length: usize) -> Result<Buffer, String> {
        let api = nccl::api().map_err(|missing| missing.to_string())?;
        gpu.enter().map_err(|error| error.to_string())?;
        let memory = Memory::allocate(api, length.max(1))?;
        let buffer = Buffer::lent(gpu, (memory.address(), context), length);
        self.memory.push((memory, Arc::clone(gpu)));
        Ok(buffer)
    }

    /// Never give its memory back.
    pub(super) fn leak(self) {
        drop(self.member);
        self.memory.into_iter().for_each(std::mem::forget);
    }

    /// True if its communicator was given up.
    pub(super) const fn is_given_up(&self) -> bool {
        self.given_up.is_some()
    }

    /// Why nothing can be moved any more.
    pub(super) fn refusal(&self, ranks: &[usize]) -> Option<String> {
        let Some(comm) = self.member.comm() else {
            return Some(self.given_up.clone().unwrap_or_else(|| "the ranks have not met in a communicator of NCCL".to_owned()));
        };
        let outside = ranks.iter().find(|rank| !comm.group().contains(rank));
        outside.map(|rank| format!("rank {rank} is not in NCCL's communicator any more"))
    }

    /// Meet the other ranks of `group`, and register what puts need; collective.
    fn meet(&mut self, setup: &Setup, group: &[usize], rank: usize) -> Result<(), String> {
        let api = nccl::api().map_err(|missing| missing.to_string())?;
        let mut comm = Communicator::join(api, &setup.nccl, group, rank, MEET)?;
        if let [(from, _), (into, _)] = &self.memory[..] {
            let late = || format!("registering memory for puts took more than {} s", MEET.as_secs());
            comm.register(from, into, Instant::now() + MEET).map_err(|stop| stop.why(late))?;
        }
        self.member.join(comm);
        Ok(())
    }

    /// The orderly end; collective. What could not be ended, if anything.
    pub(super) fn close(&mut self) -> Option<String> {
        self.member.close()
    }

    /// True if memory must stay, since the library may still use it.
    pub(super) const fn hangs(&self) -> bool {
        self.member.hangs()
    }
}

impl Side {
    /// Why a probe with these transfers cannot be moved through NCCL.
    pub(super) fn joint_refusal(&self, flows: &[(usize, usize)]) -> Option<String> {
        let mut ranks = flows.iter().filter(|(from, to)| from != to).flat_map(|&(from, to)| [from, to]).peekable();
        ranks.peek()?;
        self.joint.refusal(&ranks.collect::<Vec<_>>())
    }

    /// Enqueue this rank's parts of a window of all its transfers as one group behind a closed gate. Both sides of a pair must give its
    /// transfers in the same order.
    pub(super) fn enqueue_joint(&mut self, halves: &[Half], deadline: Instant) -> Result<(), Stop> {
        let enqueued = self.enqueue_halves(halves, true, deadline);
        if let Err(stop) = &enqueued {
            self.abandon(halves, stop);
        }
        enqueued
    }

    fn enqueue_halves(&mut self, halves: &[Half], gated: bool, deadline: Instant) -> Result<(), Stop> {
        // Each put is a piece of work of its own, unlike the messages of a group.
        let puts: usize = halves.iter().filter(|half| half.sends).map(|half| half.window.count).sum();
        let waits = self.mover != MoverKind::NcclPut || puts <= MOST_PUTS;
        let mut lane = self.lanes.get_mut(LANE).and_then(Option::take);
        let mut member = std::mem::take(&mut self.joint.member);
        let done = match (lane.as_mut(), member.comm_mut()) {
            (Some(lane), Some(comm)) => {
                let (outgoing, landing, stride) = (self.outgoing.address().0, self.landing.address().0, self.stride);
                let mut work = |stream| {
                    if self.mover == MoverKind::NcclPut {
                        return put(comm, halves, stride, stream, deadline);
                    }
                    let message = |half: &Half, number| {
                        let (at, bytes) = (half.window.offset(number), half.window.bytes);
                        if half.sends {
                            return Message::Send { to: half.peer, at: outgoing + at as u64, bytes };
                        }
                        Message::Receive { from: half.peer, at: landing + (half.lane * stride + at) as u64, bytes }
                    };
                    let message = &message;
                    let all = halves.iter().flat_map(|half| (0..half.window.count).map(move |number| message(half, number)));
                    comm.enqueue(all, stream, deadline)
                };
                if gated { lane.enqueue_work(waits, work, |error| self.failed(error)) } else { work(lane.stream.raw().cast()) }
            }
            (_, None) => Err(Stop::Failed(self.joint.refusal(&[]).unwrap_or_default())),
            (None, _) => Err(Stop::Failed("the GPU has no stream for it".to_owned())),
        };
        self.joint.member = member;
        if let Some(place) = self.lanes.get_mut(LANE) {
            *place = lane;
        }
        done
    }

    /// An error that NCCL has found by itself; looked for now and then.
    pub(super) fn joint_health(&mut self) -> Result<(), Stop> {
        self.joint.looks = self.joint.looks.wrapping_add(1);
        match self.joint.member.comm() {
            Some(comm) if self.joint.looks.is_multiple_of(LOOKS) => comm.check(),
            _ => Ok(()),
        }
    }

    /// Wait for what was enqueued; the communicator is given up if it does not end.
    fn wait_joint(&mut self, halves: &[Half], deadline: Instant) -> Result<(), Stop> {
        let mut looks = 0_u32;
        loop {
            match self.elapsed(LANE) {
                Ok(Some(time)) => {
                    self.clocked[0] = Some(time);
                    return Ok(());
                }
                Ok(None) => {}
                Err(stop) => return Err(self.abandoned(halves, stop)),
            }
            if let Err(stop) = self.joint_health() {
                return Err(self.abandoned(halves, stop));
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                if Instant::now() >= deadline {
                    return Err(self.abandoned(halves, Stop::Deadline));
                }
                std::thread::yield_now();
            }
        }
    }

    fn abandoned(&mut self, halves: &[Half], stop: Stop) -> Stop {
        self.abandon(halves, &stop);
        stop
    }

    /// Give up the communicator with what it has under way: a send or receive alone cannot be taken back.
    pub(super) fn abandon(&mut self, halves: &[Half], stop: &Stop) {
        // What waits behind the gate would hold up the end of the communicator.
        self.open(LANE);
        if self.joint.member.comm().is_none() {
            return;
        }
        let pairs: Vec<String> = halves
            .iter()
            .take(4)
            .map(|half| if half.sends { format!("{}→{}", self.rank, half.peer) } else { format!("{}→{}", half.peer, self.rank) })
            .collect();
        let what = match stop {
            Stop::Deadline => "did not end in time".to_owned(),
            Stop::Failed(why) => format!("failed: {why}"),
            Stop::Refused(other) => format!("were given up by rank {other}"),
        };
        let left = self.joint.member.abort().map_or_else(String::new, |left| format!(" ({left})"));
        self.joint.given_up = Some(format!("NCCL's communicator was given up after {} {what}{left}", pairs.join(", ")));
        self.joint.connected.clear();
        self.give_up(LANE);
        self.doubtful = true;
    }
}

/// Puts of this rank, and signals of those of others, as one group.
fn put(comm: &mut Communicator, halves: &[Half], stride: usize, stream: nccl::Stream, deadline: Instant) -> Result<(), Stop> {
    let puts = halves.iter().filter(|half| half.sends).flat_map(|half| {
        (0..half.window.count).map(move |number| {
            let at = half.window.offset(number);
            Put { to: half.peer, from: at, at: half.lane * stride + at, bytes: half.window.bytes }
        })
    });
    let mut signals: Vec<(usize, usize)> = Vec::new();
    for half in halves.iter().filter(|half| !half.sends) {
        match signals.iter_mut().find(|(peer, _)| *peer == half.peer) {
            Some((_, count)) => *count += half.window.count,
            None => signals.push((half.peer, half.window.count)),
        }
    }
    comm.put(puts, &signals, stream, deadline)
}

impl<C: Control> Device<C> {
    /// True if sender and receiver move bytes together.
    pub(super) fn is_joint(&self) -> bool {
        self.side.as_ref().is_some_and(|side| side.way == Way::Joint)
    }

    /// Those ranks of the sweep's group that are here meet in a communicator; for the others nobody waits there.
    pub(super) fn assemble(&mut self, setup: &Setup) -> Result<(), TransportError> {
        if !matches!(setup.mover, MoverKind::Nccl | MoverKind::NcclPut) {
            return Ok(());
        }
        // Of ranks that take no part, too: their words go by the same count.
        self.meet();
        let rank = self.control.rank();
        let here = self.who_is_here(&setup.group, self.side.as_ref().is_some_and(|side| side.way == Way::Joint));
        // Those that are missing say why.
        let Some(side) = self.side.as_mut().filter(|_| here.contains(&rank)) else { return Ok(()) };
        let unready = |reason| TransportError::Unready { rank, reason };
        side.gpu.enter().map_err(|error| unready(error.to_string()))?;
        side.joint.meet(setup, &here, rank).map_err(unready)
    }

    /// True if all ranks of a group are here, as this one is or is not; false for one that is not in it. Collective in it.
    pub(super) fn all_here(&mut self, group: &[usize], here: bool) -> bool {
        !group.is_empty() && self.who_is_here(group, here) == group
    }

    /// The ranks of a group that are here, as this one is or is not, in its order; none for one that is not in it. Collective in it.
    fn who_is_here(&mut self, group: &[usize], here: bool) -> Vec<usize> {
        let (rank, own) = (self.control.rank(), u64::from(here));
        let Some(&first) = group.first().filter(|_| group.contains(&rank)) else { return Vec::new() };
        let flags = if rank == first {
            let others: Vec<usize> = group.iter().copied().filter(|&other| other != rank).collect();
            let said = self.exchange(&others, |_| vec![own]);
            let is_here = |member: &usize| if *member == rank { here } else { said.get(member).is_some_and(|words| words[..] == [1]) };
            let flags = meet::flags(group.iter().map(is_here));
            self.exchange(&others, |_| flags.clone());
            flags
        } else {
            let _ = self.exchange(&[first], |_| vec![own]);
            let mut said = self.exchange(&[first], |_| vec![own]);
            said.remove(&first).unwrap_or_default()
        };
        group.iter().copied().zip(meet::are_set(&flags)).filter_map(|(rank, here)| here.then_some(rank)).collect()
    }

    /// Connect the pairs of a probe that this rank is one of and that have not met before.
    pub(super) fn connect_joint(&mut self, probe: &Probe, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = self.side.as_mut().filter(|side| side.way == Way::Joint) else { return Ok(()) };
        let rank = side.rank;
        let mut pairs: Vec<(usize, usize)> =
            probe.flows().into_iter().filter(|&(from, to)| from != to && (from == rank || to == rank)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|pair| !side.joint.connected.contains(pair));
        if pairs.is_empty() {
            return Ok(());
        }
        let window = Window { bytes: 1, count: 1, first: 0, slots: 1 };
        let half = |&(from, to): &(usize, usize)| Half { peer: if from == rank { to } else { from }, sends: from == rank, lane: 0, window };
        let halves: Vec<Half> = pairs.iter().map(half).collect();
        let mut peers: Vec<usize> = halves.iter().map(|half| half.peer).collect();
        peers.sort_unstable();
        peers.dedup();
        // One that cannot take part says so here, and nobody waits for it on a stream.
        for &peer in &peers {
            self.control.notify(peer, Word::Launched(0).encode(), deadline)?;
        }
        for &peer in &peers {
            self.await_notice(peer, deadline)?;
        }
        let Some(side) = &mut self.side else { return Ok(()) };
        if let Err(stop) = side.enqueue_halves(&halves, false, deadline) {
            return Err(side.abandoned(&halves, stop));
        }
        loop {
            let done = match side.lanes.get(LANE) {
                Some(Some(lane)) => lane.stream.done().map_err(|error| side.failed(&error)),
                _ => Ok(true),
            };
            match done.and_then(|done| side.joint_health().map(|()| done)) {
                Ok(true) => break,
                Ok(false) if Instant::now() >= deadline => return Err(side.abandoned(&halves, Stop::Deadline)),
                Ok(false) => std::thread::yield_now(),
                Err(stop) => return Err(side.abandoned(&halves, stop)),
            }
        }
        side.joint.connected.extend(pairs);
        Ok(())
    }

    /// This rank's part of a window of one transfer alone.
    pub(super) fn move_jointly(&mut self, half: Half, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = &mut self.side else { return Ok(()) };
        side.enqueue_joint(&[half], deadline)?;
        let told = self.control.notify(half.peer, Word::Launched(0).encode(), deadline);
        let told = told.and_then(|()| self.await_notice(half.peer, deadline));
        let Some(side) = &mut self.side else { return told.map(drop) };
        if let Err(stop) = told {
            return Err(side.abandoned(&[half], stop));
        }
        side.open(LANE);
        side.wait_joint(&[half], deadline)
    }

    /// How this rank's sends went, as NCCL says.
    pub(super) fn joint_ways(&self, probe: &Probe) -> Vec<crate::transport::Way> {
        let Some(side) = self.side.as_ref().filter(|side| side.mover == MoverKind::Nccl) else { return Vec::new() };
        let own = (0_u32..).zip(probe.flows()).filter(|&(_, (from, to))| from == side.rank && from != to);
        own.filter_map(|(flow, (from, to))| Some(crate::transport::Way { flow, via: nccl::log::via(from, to)? })).collect()
    }
}
