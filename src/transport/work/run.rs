//! The timed region of a work, written once for all engines.
//!
//! Before each run every rank clears its memory but what it holds, begins to receive, and tells the coordinator that it is ready; the
//! coordinator releases all of them. From then on each rank sends what its dependencies allow, receives, packs and unpacks, until it
//! has all of its own. A flow is complete when its receiver has its last byte where it belongs; its time is the receiver's own, from
//! that rank's release. No barrier but those of stages that wait. After each run every byte is compared, outside the timed region.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::carrier::{Carrier, Heard, Word};
use super::content::{Check, Fault};
use super::region::Region;
use super::{Carried, Carry, Part, Role, SEED};
use crate::transport::rest::Rest;
use crate::transport::{End, Stop};
use crate::units::format_ranks;

/// Run this rank's part, untimed first and then timed.
pub(crate) fn run(endpoint: &mut impl Carrier, part: &Part, order: &Carry) -> Carried {
    let runs = Vec::with_capacity(order.runs as usize);
    let mut carried = Carried { id: order.id, runs, verified: 0, wrong: None, ways: Vec::new(), end: End::Complete };
    let begun = endpoint.begin(part, order.id);
    let mut running = Running::new(endpoint, part);
    let ran = begun.and_then(|()| running.all(order, &mut carried));
    // Wrong bytes come first: a run that hangs after them says less.
    if let (Err(stop), End::Complete) = (ran, &carried.end) {
        let rank = part.rank;
        carried.end = match stop {
            Stop::Deadline => End::Timeout(format!(
                "rank {rank} was not done within {} s, {} of {} timed runs done; missing: {}",
                order.timeout,
                carried.runs.len(),
                order.runs,
                running.missing()
            )),
            Stop::Failed(why) => End::Waived(format!("rank {rank}: {why}")),
            Stop::Refused(other) => End::Waived(format!("rank {rank}: rank {other} gave up")),
        };
    }
    let deadline = running.deadline;
    carried.ways = endpoint.ways(part);
    endpoint.end(deadline);
    carried
}

/// Where a share stands in a run.
#[derive(Debug, Clone, Default)]
struct State {
    /// message that comes next
    next: usize,
    /// flows that must be complete before, and are not
    left: usize,
    started: bool,
    /// sender: the message before is still being sent
    busy: bool,
    /// sender: the receiver's arena is in use
    taken: bool,
    done: Option<Instant>,
}

/// One rank in the middle of a work.
struct Running<'a, C> {
    carrier: &'a mut C,
    part: &'a Part,
    deadline: Instant,
    states: Vec<State>,
    /// this rank's share of each flow; ascending by flow
    by_flow: Vec<(usize, usize)>,
    /// (flow, share that waits for it); ascending
    waiters: Vec<(usize, usize)>,
    /// stages below this may begin
    open: usize,
    /// what comes to this rank, by stage, and is not there; the first stage of which it has not told
    incoming: Vec<usize>,
    passed: usize,
    /// the coordinator's: ranks that have told so of each stage
    told: Vec<usize>,
    /// the coordinator's: ranks that are ready
    ready: usize,
    /// shares that are not complete
    open_shares: usize,
    /// copies that may go on
    copies: VecDeque<usize>,
    released: bool,
    started: Option<Instant>,
    rest: Rest,
}

impl<'a, C: Carrier> Running<'a, C> {
    fn new(carrier: &'a mut C, part: &'a Part) -> Self {
        let shares = || part.shares.iter().enumerate();
        let mut by_flow: Vec<_> = shares().map(|(at, share)| (share.flow, at)).collect();
        let mut waiters: Vec<_> = shares().flat_map(|(at, share)| share.after.iter().map(move |&flow| (flow, at))).collect();
        by_flow.sort_unstable();
        waiters.sort_unstable();
        Self {
            carrier,
            part,
            deadline: Instant::now(),
            states: vec![State::default(); part.shares.len()],
            by_flow,
            waiters,
            open: 0,
            incoming: vec![0; part.waits.len()],
            passed: 0,
            told: vec![0; part.waits.len()],
            ready: 0,
            open_shares: 0,
            copies: VecDeque::with_capacity(part.shares.len()),
            released: false,
            started: None,
            rest: Rest::default(),
        }
    }

    fn all(&mut self, order: &Carry, carried: &mut Carried) -> Result<(), Stop> {
        let mut check = Check::new(SEED);
        for number in 0..order.warmup.saturating_add(order.runs) {
            self.deadline = Instant::now() + Duration::from_secs_f64(order.timeout);
            self.get_ready()?;
            self.start()?;
            self.go()?;
            if number >= order.warmup {
                carried.runs.push(self.times());
            }
            self.verify(&mut check, carried)?;
        }
        // Nobody leaves before all are done, so that nothing is on its way to a rank that listens no more.
        self.deadline = Instant::now() + Duration::from_secs_f64(order.timeout);
        self.start()
    }

    /// Everything as at the beginning.
    fn get_ready(&mut self) -> Result<(), Stop> {
        self.carrier.wipe();
        (self.open, self.passed, self.started) = (0, 0, None);
        self.told.fill(0);
        self.incoming.fill(0);
        self.open_shares = self.part.shares.len();
        for (at, share) in self.part.shares.iter().enumerate() {
            self.states[at] = State { left: share.after.len(), ..State::default() };
            if share.role != Role::Send {
                self.incoming[share.stage] += 1;
            }
            if share.role == Role::Receive && !share.messages.is_empty() {
                self.carrier.post(self.part, at, 0)?;
            }
        }
        Ok(())
    }

    /// All start together.
    fn start(&mut self) -> Result<(), Stop> {
        let Part { rank, coordinator, others, .. } = self.part;
        if rank == coordinator {
            while self.ready < others.len() {
                self.step()?;
            }
            self.ready = 0;
            for &other in others {
                self.carrier.tell(other, Word::Release.encode(), self.deadline)?;
            }
        } else {
            self.carrier.tell(*coordinator, Word::Ready.encode(), self.deadline)?;
            while !self.released {
                self.step()?;
            }
            self.released = false;
        }
        self.started = Some(Instant::now());
        Ok(())
    }

    /// One run, from the release until this rank has, and has sent, all of its own.
    fn go(&mut self) -> Result<(), Stop> {
        self.open_to(0)?;
        self.tell_passed()?;
        while self.open_shares > 0 || self.open < self.part.waits.len() {
            self.step()?;
        }
        Ok(())
    }

    /// This stage may begin, with those after it that do not wait.
    fn open_to(&mut self, stage: usize) -> Result<(), Stop> {
        let before = self.open;
        let waits = &self.part.waits;
        self.open = (stage + 1..waits.len()).find(|&next| waits[next]).unwrap_or(waits.len());
        for at in 0..self.part.shares.len() {
            if (before..self.open).contains(&self.part.shares[at].stage) {
                self.begin(at)?;
            }
        }
        Ok(())
    }

    /// Begin a share if it may.
    fn begin(&mut self, at: usize) -> Result<(), Stop> {
        let (share, state) = (&self.part.shares[at], &mut self.states[at]);
        if share.role == Role::Receive || state.started || state.left > 0 || share.stage >= self.open {
            return Ok(());
        }
        state.started = true;
        if share.role == Role::Copy {
            self.copies.push_back(at);
            return Ok(());
        }
        self.launch(at)
    }

    /// Send a share's next message if it can go.
    fn launch(&mut self, at: usize) -> Result<(), Stop> {
        let (share, state) = (&self.part.shares[at], &mut self.states[at]);
        let Some(message) = share.messages.get(state.next) else { return Ok(()) };
        let into_arena = message.lands_staged && self.carrier.one_sided();
        if !state.started || state.busy || (into_arena && state.taken) {
            return Ok(());
        }
        state.busy = true;
        state.taken |= into_arena;
        let number = state.next;
        if message.staged {
            gather(self.carrier, &message.regions, share.arena as usize);
            self.carrier.settle(self.deadline)?;
        }
        self.carrier.send(self.part, at, number)
    }

    /// Take one thing that has happened, or copy something, or look again later.
    fn step(&mut self) -> Result<(), Stop> {
        let Some(heard) = self.carrier.news(self.part, self.deadline)? else { return self.wait() };
        self.rest.over();
        match heard {
            Heard::Arrived(at) => self.arrived(at),
            Heard::Sent(at) => self.sent(at),
            Heard::Word { word, .. } => match Word::decode(word) {
                Word::Ready => {
                    self.ready += 1;
                    Ok(())
                }
                Word::Release => {
                    self.released = true;
                    Ok(())
                }
                Word::Landed(flow) => self.share_of(flow).map_or(Ok(()), |at| self.arrived(at)),
                Word::Free(flow) => {
                    let Some(at) = self.share_of(flow) else { return Ok(()) };
                    self.states[at].taken = false;
                    self.launch(at)
                }
                Word::Done(flow) => self.done(flow),
                Word::Passed(stage) => self.all_passed(stage),
                Word::Go(stage) => self.open_to(stage),
            },
        }
    }

    fn share_of(&self, flow: usize) -> Option<usize> {
        self.by_flow.binary_search_by_key(&flow, |&(flow, _)| flow).ok().map(|at| self.by_flow[at].1)
    }

    /// A message has left.
    fn sent(&mut self, at: usize) -> Result<(), Stop> {
        let (share, state) = (&self.part.shares[at], &mut self.states[at]);
        if !state.busy {
            return Ok(());
        }
        state.busy = false;
        state.next += 1;
        if state.next < share.messages.len() {
            return self.launch(at);
        }
        state.done = Some(Instant::now());
        self.open_shares -= 1;
        Ok(())
    }

    /// A message is in this rank's memory.
    fn arrived(&mut self, at: usize) -> Result<(), Stop> {
        let share = &self.part.shares[at];
        let Some(message) = share.messages.get(self.states[at].next).filter(|_| share.role == Role::Receive) else { return Ok(()) };
        if message.staged {
            scatter(self.carrier, &message.regions, share.arena as usize);
            self.carrier.settle(self.deadline)?;
        }
        self.states[at].next += 1;
        let next = self.states[at].next;
        if next == share.messages.len() {
            return self.complete(at);
        }
        if message.staged && self.carrier.one_sided() && share.messages[next..].iter().any(|message| message.staged) {
            self.carrier.tell(share.peer, Word::Free(share.flow).encode(), self.deadline)?;
        }
        self.carrier.post(self.part, at, next)
    }

    /// A flow has its last byte where it belongs.
    fn complete(&mut self, at: usize) -> Result<(), Stop> {
        self.states[at].done = Some(Instant::now());
        let share = &self.part.shares[at];
        self.open_shares -= 1;
        self.incoming[share.stage] -= 1;
        for &other in &share.tell {
            self.carrier.tell(other, Word::Done(share.flow).encode(), self.deadline)?;
        }
        self.done(share.flow)?;
        self.tell_passed()
    }

    /// A flow is complete, here or elsewhere.
    fn done(&mut self, flow: usize) -> Result<(), Stop> {
        let first = self.waiters.partition_point(|&(of, _)| of < flow);
        for number in first..self.waiters.len() {
            let (of, at) = self.waiters[number];
            if of != flow {
                break;
            }
            self.states[at].left = self.states[at].left.saturating_sub(1);
            self.begin(at)?;
        }
        Ok(())
    }

    /// Tell the coordinator of stages that have come to this rank whole, where another one waits for them.
    fn tell_passed(&mut self) -> Result<(), Stop> {
        while self.passed < self.incoming.len() && self.incoming[self.passed] == 0 {
            let stage = self.passed;
            self.passed += 1;
            if self.part.waits.get(stage + 1) != Some(&true) {
                continue;
            }
            if self.part.rank == self.part.coordinator {
                self.all_passed(stage)?;
            } else {
                self.carrier.tell(self.part.coordinator, Word::Passed(stage).encode(), self.deadline)?;
            }
        }
        Ok(())
    }

    /// The coordinator's: one more rank has all that comes to it up to this stage.
    fn all_passed(&mut self, stage: usize) -> Result<(), Stop> {
        let Some(told) = self.told.get_mut(stage) else { return Ok(()) };
        *told += 1;
        if *told <= self.part.others.len() {
            return Ok(());
        }
        for &other in &self.part.others {
            self.carrier.tell(other, Word::Go(stage + 1).encode(), self.deadline)?;
        }
        self.open_to(stage + 1)
    }

    /// Nothing has happened: copy what is to be copied within this rank, one message of it.
    fn wait(&mut self) -> Result<(), Stop> {
        if self.started.is_some()
            && let Some(at) = self.copies.pop_front()
        {
            let share = &self.part.shares[at];
            if let Some(message) = share.messages.get(self.states[at].next) {
                let carrier = &mut *self.carrier;
                let _ = super::region::pieces(&message.regions, &message.into, |from, to, length| {
                    carrier.copy(from as usize, to as usize, length as usize);
                    Ok::<(), ()>(())
                });
                self.carrier.settle(self.deadline)?;
                self.states[at].next += 1;
            }
            if self.states[at].next < share.messages.len() {
                self.copies.push_back(at);
            } else {
                self.complete(at)?;
            }
        }
        self.rest.once(self.deadline)
    }

    /// When each flow into this rank was complete, seconds from its start.
    fn times(&self) -> Vec<(usize, f64)> {
        let Some(started) = self.started else { return Vec::new() };
        let own = self.part.shares.iter().zip(&self.states).filter(|(share, _)| share.role != Role::Send);
        own.filter_map(|(share, state)| Some((share.flow, state.done?.saturating_duration_since(started).as_secs_f64()))).collect()
    }

    /// Compare every byte that came to this rank.
    fn verify(&mut self, check: &mut Check, carried: &mut Carried) -> Result<(), Stop> {
        for share in self.part.shares.iter().filter(|share| share.role != Role::Send) {
            let mut before = 0;
            for message in &share.messages {
                let regions = if share.role == Role::Copy { &message.into } else { &message.regions };
                let memory = &mut *self.carrier;
                match check.compare(regions, &message.expected, |at, into| memory.read(at, into)) {
                    Ok(bytes) => carried.verified += bytes,
                    Err(Fault::Unread(stop)) => return Err(stop),
                    Err(Fault::Byte(byte)) if carried.wrong.is_none_or(|flow| flow > share.flow) => {
                        carried.wrong = Some(share.flow);
                        let (from, to) = (share.peer, self.part.rank);
                        carried.end = End::Corrupt(format!(
                            "rank {to}: flow {} ({from}→{to}): byte {} is not what was to be sent",
                            share.flow,
                            before + byte
                        ));
                    }
                    Err(Fault::Byte(_)) => {}
                }
                before += message.bytes;
            }
        }
        Ok(())
    }

    /// What has not come, in words.
    fn missing(&self) -> String {
        const MOST: usize = 4;
        if self.started.is_none() {
            return if self.part.rank == self.part.coordinator {
                let others = format_ranks(&self.part.others);
                format!("{} of the {} other ranks ({others}) are ready", self.ready, self.part.others.len())
            } else {
                format!("the start by rank {}", self.part.coordinator)
            };
        }
        let rank = self.part.rank;
        let open = self.part.shares.iter().zip(&self.states).filter(|(_, state)| state.done.is_none());
        let told: Vec<String> = open
            .map(|(share, _)| {
                let (from, to) = if share.role == Role::Receive { (share.peer, rank) } else { (rank, share.peer) };
                format!("flow {} ({from}→{to})", share.flow)
            })
            .collect();
        let named = told[..told.len().min(MOST)].join(", ");
        match told.len().saturating_sub(MOST) {
            0 if told.is_empty() => "that stages are passed elsewhere".to_owned(),
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }
}

/// Pack regions into an arena.
fn gather(carrier: &mut impl Carrier, regions: &[Region], arena: usize) {
    let mut to = arena;
    for region in regions {
        let (rows, stride, lots) = region.rows();
        let lot = (region.run as usize, rows as usize);
        for from in lots {
            carrier.rows(from as usize, to, lot, (stride, region.run.cast_signed()));
            to += lot.0 * lot.1;
        }
    }
}

/// Unpack an arena into regions.
fn scatter(carrier: &mut impl Carrier, regions: &[Region], arena: usize) {
    let mut from = arena;
    for region in regions {
        let (rows, stride, lots) = region.rows();
        let lot = (region.run as usize, rows as usize);
        for to in lots {
            carrier.rows(from, to as usize, lot, (region.run.cast_signed(), stride));
            from += lot.0 * lot.1;
        }
    }
}
