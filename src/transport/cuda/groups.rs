//! A work through NCCL: all that a rank sends and receives in a step is one group, on a stream that takes one group after another.
//!
//! NCCL has no tags and takes back nothing: a group holds up its stream until the other ranks have theirs. So all ranks go through the
//! same steps (see `transport::work`), a rank enqueues a step's group once all of its messages are there (packed what it sends, free
//! what it receives into), and both sides of a pair name its messages in the order of their flows. Pairs are connected before anything
//! is timed. What does not end is given up with the communicator, which is this work's alone.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::driver::{Buffer, CudaError, Gpu, Mark, Stream};
use super::joint::MEET;
use super::nccl::{self, Communicator, Member, Message};
use crate::transport::rest::Rest;
use crate::transport::work::{Heard, Part, Role, Share};
use crate::transport::{Stop, Way};

/// Looks at a group between two at what the library has found wrong by itself.
const LOOKS: u32 = 256;

/// What a rank has of NCCL in a work.
#[derive(Debug)]
pub(super) struct Groups {
    member: Member,
    gpu: Arc<Gpu>,
    stream: Option<Stream>,
    /// behind the group under way
    mark: Mark,
    /// a byte for each pair, to connect them
    trial: Buffer,
    /// (sender, receiver) that this rank is one of
    pairs: Vec<(usize, usize)>,
    /// by share: its messages go in groups; those of nothing but empty messages are told in words
    grouped: Vec<bool>,
    /// (share, message), in the order of step and flow
    entries: Vec<(usize, usize)>,
    /// steps that this rank has messages in: number, and where those stand in `entries`
    steps: Vec<(usize, Range<usize>)>,
    current: usize,
    /// messages of the current step that are not there
    missing: usize,
    under_way: bool,
    /// by share: its next message is there
    ready: Vec<bool>,
    heard: VecDeque<Heard>,
    looks: u32,
    failed: bool,
}

impl Groups {
    /// For a rank's part, whose steps are known.
    pub(super) fn new(gpu: &Arc<Gpu>, part: &Part) -> Result<Self, CudaError> {
        let plan = Plan::of(part);
        Ok(Self {
            member: Member::default(),
            stream: Some(Stream::new(gpu)?),
            mark: Mark::new(gpu)?,
            trial: Buffer::allocate(gpu, plan.pairs.len().max(1))?,
            ready: vec![false; part.shares.len()],
            heard: VecDeque::with_capacity(2 * part.shares.len()),
            pairs: plan.pairs,
            grouped: plan.grouped,
            entries: plan.entries,
            steps: plan.steps,
            current: 0,
            missing: 0,
            under_way: false,
            looks: 0,
            failed: false,
            gpu: Arc::clone(gpu),
        })
    }

    /// Meet the other ranks, and connect pairs: setting a connection up takes long, and may wait for all of a GPU's work. Collective.
    pub(super) fn meet(&mut self, part: &Part) -> Result<(), String> {
        let api = nccl::api().map_err(|missing| missing.to_string())?;
        self.gpu.enter().map_err(|error| error.to_string())?;
        self.member.join(Communicator::join(api, &part.lies.meeting, &part.lies.group, part.rank, MEET)?);
        let connected = self.connect(part.rank);
        connected.map_err(|stop| {
            let left = self.give_up();
            let why = stop.why(|| format!("it took more than {} s", MEET.as_secs()));
            format!("NCCL could not connect rank {} with those of its flows: {why}{left}", part.rank)
        })
    }

    fn connect(&mut self, rank: usize) -> Result<(), Stop> {
        let (Some(comm), Some(stream)) = (self.member.comm_mut(), &self.stream) else { return Ok(()) };
        if self.pairs.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + MEET;
        let byte = |number: usize| self.trial.address().0 + number as u64;
        let messages = self.pairs.iter().enumerate().map(|(number, &(from, to))| {
            if from == rank {
                Message::Send { to, at: byte(number), bytes: 1 }
            } else {
                Message::Receive { from, at: byte(number), bytes: 1 }
            }
        });
        comm.enqueue(messages, stream.raw().cast(), deadline)?;
        self.mark.set(stream).map_err(|error| tell(&self.gpu, &error))?;
        let mut rest = Rest::default();
        while !self.mark.passed().map_err(|error| tell(&self.gpu, &error))? {
            comm.check()?;
            rest.once(deadline)?;
        }
        Ok(())
    }

    /// Everything as before a run.
    pub(super) fn rewind(&mut self) {
        self.ready.fill(false);
        self.heard.clear();
        self.current = 0;
        self.missing = self.steps.first().map_or(0, |(_, entries)| entries.len());
    }

    /// A message is there: packed, or what it is received into is free. False for one that is told in words.
    pub(super) fn ready(&mut self, part: &Part, share: usize, message: usize) -> bool {
        if !self.grouped.get(share).copied().unwrap_or(false) {
            return false;
        }
        self.ready[share] = true;
        let step = part.steps.get(share).map(|first| first + message);
        if self.steps.get(self.current).map(|(number, _)| *number) == step {
            self.missing = self.missing.saturating_sub(1);
        }
        true
    }

    /// An empty message has left.
    pub(super) fn told(&mut self, share: usize) {
        self.heard.push_back(Heard::Sent(share));
    }

    /// Look after the groups: one thing that has happened.
    pub(super) fn look(&mut self, part: &Part, memory: &Buffer, deadline: Instant) -> Result<Option<Heard>, Stop> {
        if let Some(heard) = self.heard.pop_front() {
            return Ok(Some(heard));
        }
        let looked = if self.under_way { self.watch(part) } else { self.enqueue(part, memory, deadline) };
        self.failed |= looked.is_err();
        looked.map(|()| self.heard.pop_front())
    }

    /// Of the group under way; once it is done, the next step is the current one.
    fn watch(&mut self, part: &Part) -> Result<(), Stop> {
        self.looks = self.looks.wrapping_add(1);
        if let Some(comm) = self.member.comm().filter(|_| self.looks.is_multiple_of(LOOKS)) {
            comm.check()?;
        }
        if !self.mark.passed().map_err(|error| tell(&self.gpu, &error))? {
            return Ok(());
        }
        self.under_way = false;
        let Some((_, entries)) = self.steps.get(self.current) else { return Ok(()) };
        for &(share, _) in &self.entries[entries.clone()] {
            self.ready[share] = false;
            let sends = part.shares[share].role == Role::Send;
            self.heard.push_back(if sends { Heard::Sent(share) } else { Heard::Arrived(share) });
        }
        self.current += 1;
        let next = self.steps.get(self.current).map_or(&[][..], |(_, entries)| &self.entries[entries.clone()]);
        self.missing = next.iter().filter(|&&(share, _)| !self.ready[share]).count();
        Ok(())
    }

    /// Enqueue the current step's group, if all of its messages are there.
    fn enqueue(&mut self, part: &Part, memory: &Buffer, deadline: Instant) -> Result<(), Stop> {
        let Some((_, entries)) = self.steps.get(self.current).filter(|_| self.missing == 0) else { return Ok(()) };
        let (Some(comm), Some(stream)) = (self.member.comm_mut(), &self.stream) else {
            return Err(Stop::Failed("NCCL's communicator was given up".to_owned()));
        };
        let start = memory.address().0;
        let messages = self.entries[entries.clone()].iter().filter_map(|&(share, number)| {
            let share = &part.shares[share];
            let message = &share.messages[number];
            let (at, bytes) = (start + message.place(share.arena) as u64, message.length());
            let sends = share.role == Role::Send;
            let moved = if sends { Message::Send { to: share.peer, at, bytes } } else { Message::Receive { from: share.peer, at, bytes } };
            // Both sides know where it is empty.
            (bytes > 0).then_some(moved)
        });
        comm.enqueue(messages, stream.raw().cast(), deadline)?;
        self.mark.set(stream).map_err(|error| tell(&self.gpu, &error))?;
        self.under_way = true;
        Ok(())
    }

    /// How this rank's sends went, as NCCL says, by the first flow to each other rank.
    pub(super) fn ways(&self, part: &Part) -> Vec<Way> {
        let first = |to: usize| part.shares.iter().enumerate().find(|(at, share)| self.grouped[*at] && is_sent(share, to));
        let way = |to: usize| {
            let (_, share) = first(to)?;
            Some(Way { flow: u32::try_from(share.flow).ok()?, via: nccl::log::via(part.rank, to)? })
        };
        self.pairs.iter().filter(|(from, _)| *from == part.rank).filter_map(|&(_, to)| way(to)).collect()
    }

    /// No more runs. Of a work that did not go through, the communicator is given up with what it has under way.
    pub(super) fn end(&mut self, deadline: Instant) -> Option<String> {
        let through = self.current >= self.steps.len() && !self.under_way && !self.failed;
        if through || self.member.comm().is_none() {
            return None;
        }
        if self.under_way && !self.failed {
            // It may just be slow.
            if let Some(stream) = &self.stream {
                let _ = stream.wait(deadline);
            }
        }
        let left = self.give_up();
        Some(format!("NCCL's communicator was given up after a plan that did not go through{left}"))
    }

    /// End the communicator at once; what could not be ended.
    fn give_up(&mut self) -> String {
        let left = self.member.abort();
        if let Some(stream) = self.stream.take() {
            stream.give_up();
        }
        self.under_way = false;
        left.map_or_else(String::new, |left| format!(" ({left})"))
    }

    /// The orderly end; collective. What could not be ended, if anything.
    pub(super) fn close(&mut self) -> Option<String> {
        self.member.close()
    }

    /// True if memory must stay, since the library may still use it.
    pub(super) const fn hangs(&self) -> bool {
        self.member.hangs()
    }

    /// Never give its memory back.
    pub(super) fn leak(self) {
        self.trial.leak();
    }
}

fn is_sent(share: &Share, to: usize) -> bool {
    share.role == Role::Send && share.peer == to
}

fn tell(gpu: &Gpu, error: &CudaError) -> Stop {
    Stop::Failed(format!("{}: {error}", gpu.name()))
}

/// Which messages a rank has in which step.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    pairs: Vec<(usize, usize)>,
    grouped: Vec<bool>,
    entries: Vec<(usize, usize)>,
    steps: Vec<(usize, Range<usize>)>,
}

impl Plan {
    fn of(part: &Part) -> Self {
        let grouped: Vec<bool> =
            (part.shares.iter()).map(|share| share.role != Role::Copy && share.messages.iter().any(|message| message.bytes > 0)).collect();
        let own = || part.shares.iter().enumerate().filter(|(at, _)| grouped[*at]);
        let mut pairs: Vec<(usize, usize)> =
            own().map(|(_, share)| if share.role == Role::Send { (part.rank, share.peer) } else { (share.peer, part.rank) }).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut all: Vec<(usize, usize, usize, usize)> = Vec::new();
        for (at, share) in own() {
            let first = part.steps.get(at).copied().unwrap_or(0);
            all.extend((0..share.messages.len()).map(|message| (first + message, share.flow, at, message)));
        }
        all.sort_unstable();
        let mut steps: Vec<(usize, Range<usize>)> = Vec::new();
        for (place, &(step, ..)) in all.iter().enumerate() {
            match steps.last_mut() {
                Some((last, entries)) if *last == step => entries.end = place + 1,
                _ => steps.push((step, place..place + 1)),
            }
        }
        let entries = all.into_iter().map(|(_, _, share, message)| (share, message)).collect();
        Self { pairs, grouped, entries, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::work::Message;

    fn share(flow: usize, role: Role, peer: usize, bytes: &[u64]) -> Share {
        let messages = bytes.iter().map(|&bytes| Message { bytes, ..Message::default() }).collect();
        Share { flow, stage: 0, role, peer, tag: 0, after: Vec::new(), tell: Vec::new(), arena: 0, messages }
    }

    #[test]
    fn both_ranks_of_a_pair_have_its_messages_in_the_same_steps_and_order() {
        use Role::{Copy, Receive, Send};
        let part = |rank, shares: Vec<Share>, steps: &[usize]| Part { rank, shares, steps: steps.to_vec(), ..Part::default() };
        let sender = part(
            2,
            vec![share(0, Send, 1, &[8, 8]), share(3, Send, 1, &[8]), share(4, Copy, 2, &[8]), share(5, Receive, 0, &[8, 0])],
            &[0, 1, 0, 7],
        );
        let receiver = part(1, vec![share(0, Receive, 2, &[8, 8]), share(3, Receive, 2, &[8]), share(6, Send, 0, &[0])], &[0, 1, 0]);
        let plan = Plan::of(&sender);
        assert_eq!(plan.steps, [(0, 0..1), (1, 1..3), (7, 3..4), (8, 4..5)]);
        assert_eq!(plan.entries, [(0, 0), (0, 1), (1, 0), (3, 0), (3, 1)]);
        assert_eq!(plan.pairs, [(0, 2), (2, 1)]);
        let other = Plan::of(&receiver);
        assert_eq!((&other.steps[..], &other.entries[..]), (&plan.steps[..2], &plan.entries[..3]));
        assert_eq!(other.grouped, [true, true, false], "what is empty is told in words");
    }
}
