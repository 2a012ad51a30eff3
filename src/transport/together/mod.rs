//! The timed region of several transfers at the same time, written once for all engines.
//!
//! One start, no barrier a message: a coordinator (a fan's root, or else the lowest rank) hears from every other rank that
//! it is ready, with its first receives posted, and releases all of them. From then on each rank has all its sends and
//! receives of one window under way at once and furthers them together. A transfer is complete when its receiver's
//! acknowledgement is back that every byte is in the receiver's buffer; half the median empty round trip to that receiver,
//! measured before, is taken off for each (as for one transfer alone, see `timed`).
//!
//! What a rank tells:
//! - of each of its sends, the time from its start to that completion;
//! - in a relay, where each rank sends and receives, its own time until both its send and its receive are complete;
//! - as the root of a `fan_out`, besides, the time until the last of its sends is complete; as the root of a `fan_in` the
//!   time from its release until every byte of all its peers is in its buffers, with half a round trip a window taken off,
//!   since peers start, and hear that they may go on, one way later.
//!
//! Where what moves the bytes has a clock of its own ([`super::Endpoint::clocked`]), each transfer's time is by that clock, from its own
//! start, and a rank's own time is the longest of its transfers'.

mod start;
mod told;

use std::time::{Duration, Instant};

use start::{Word, nanoseconds};

use super::endpoint::{News, Stop, Together, Window};
use super::rest::Rest;
use super::timed::{Outcome, Slots, answer_round_trips, half_round_trip, pings, told_of, untimed};
use super::{Flow, Order};
use crate::sample::Pattern;
use crate::sweep::{Buffers, Probe, Target};
use crate::units::format_ranks;

/// Run this rank's side of all the transfers of a probe that it has a part in.
pub(super) fn run(endpoint: &mut impl Together, order: &Order, buffers: Buffers, deadline: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    let flows = Flow::all(&order.probe);
    let slots = Slots::new(order, endpoint.arena(), buffers);
    let halves = match round_trips(endpoint, &flows, pings(order), deadline) {
        Ok(halves) => halves,
        Err((stop, with)) => {
            told_of(endpoint, &stop);
            return Outcome { stop: Some(stop), missing: format!("rank {with}"), ..outcome };
        }
    };
    let mut part = Part::new(endpoint, order, &flows, &halves, slots, deadline);
    outcome.repeats.reserve((order.warmup as usize + order.probe.repeats as usize) * part.sends.len());
    outcome.root_seconds.reserve(order.probe.repeats as usize);
    let ran = part.endpoint.join(&flows, slots.window()).and_then(|()| part.measure(&mut outcome));
    if let Err(stop) = ran {
        outcome.missing = part.missing();
        // Before this rank waits for what it has under way itself.
        told_of(part.endpoint, &stop);
        outcome.stop = Some(stop);
    }
    part.endpoint.part(deadline);
    outcome
}

/// Half the median empty round trip of each transfer that this rank sends, by the transfer's number; one pair at a time, in
/// an order that all ranks know. Of those that fail, the rank that did not answer.
fn round_trips(endpoint: &mut impl Together, flows: &[Flow], pings: usize, deadline: Instant) -> Result<Vec<Duration>, (Stop, usize)> {
    let rank = endpoint.rank();
    let mut halves = vec![Duration::ZERO; flows.len()];
    for flow in flows.iter().filter(|flow| !flow.is_local() && flow.twin == 0) {
        if flow.from == rank {
            halves[flow.number] = half_round_trip(endpoint, flow.to, pings, deadline).map_err(|stop| (stop, flow.to))?;
        } else if flow.to == rank {
            answer_round_trips(endpoint, flow.from, pings, deadline).map_err(|stop| (stop, flow.from))?;
        }
    }
    for flow in flows.iter().filter(|flow| flow.twin > 0) {
        let first = flows.iter().find(|first| (first.from, first.to) == (flow.from, flow.to));
        halves[flow.number] = first.map_or(Duration::ZERO, |first| halves[first.number]);
    }
    Ok(halves)
}

/// A transfer that this rank sends, or copies.
struct Send {
    flow: Flow,
    slots: Slots,
    half: Duration,
    /// windows of this repeat that are not acknowledged
    left: u64,
    done: Option<Instant>,
    /// what this repeat's windows took by the clock of what moved them
    clocked: Option<Duration>,
}

/// A transfer that this rank receives.
struct Receive {
    flow: Flow,
    slots: Slots,
    /// windows of this repeat that have not arrived
    left: u64,
    /// as of a send
    clocked: Option<Duration>,
}

/// One more window by a clock that is not the host's.
fn add(sum: &mut Option<Duration>, time: Option<Duration>) {
    if let Some(time) = time {
        *sum.get_or_insert(Duration::ZERO) += time;
    }
}

/// One rank's part in a probe.
struct Part<'a, E> {
    endpoint: &'a mut E,
    order: &'a Order,
    deadline: Instant,
    pattern: Pattern,
    /// of a fan
    root: Option<usize>,
    coordinator: usize,
    /// the coordinator's: the other ranks, and whether each is ready
    others: Vec<(usize, bool)>,
    sends: Vec<Send>,
    receives: Vec<Receive>,
    /// place of each of the probe's transfers in `sends` or `receives`
    place: Vec<usize>,
    /// transfers of this repeat that are not complete, and those of them that come in
    open: usize,
    incoming: usize,
    /// the coordinator's: when it released the first of the others
    released: Option<Instant>,
    /// when this rank's own transfers were started
    started: Option<Instant>,
    /// when the last byte of the last transfer into this rank was there
    received: Option<Instant>,
    /// a word of the coordinator's that was not acted upon yet
    told: Option<Word>,
    /// shortest time of one window of the fastest transfer: of this rank's, later of all ranks'
    fastest: Duration,
    /// the coordinator's: shortest time of one window of all transfers, from the release until every rank was ready again
    slowest: Duration,
    /// the root's of a `fan_in`: least half round trip between it and a peer
    nearest: Duration,
    /// looks without news in a row
    rest: Rest,
}

impl<'a, E: Together> Part<'a, E> {
    fn new(endpoint: &'a mut E, order: &'a Order, flows: &[Flow], halves: &[Duration], slots: Slots, deadline: Instant) -> Self {
        let (rank, ranks) = (endpoint.rank(), order.probe.ranks());
        let root = root(&order.probe);
        let coordinator = root.or_else(|| ranks.first().copied()).unwrap_or(rank);
        let mut part = Self {
            endpoint,
            order,
            deadline,
            pattern: order.probe.target.pattern(),
            root,
            coordinator,
            others: ranks.into_iter().filter(|&other| other != rank && rank == coordinator).map(|other| (other, false)).collect(),
            sends: Vec::new(),
            receives: Vec::new(),
            place: vec![usize::MAX; flows.len()],
            open: 0,
            incoming: 0,
            released: None,
            started: None,
            received: None,
            told: None,
            fastest: Duration::MAX,
            slowest: Duration::MAX,
            nearest: Duration::MAX,
            rest: Rest::default(),
        };
        for &flow in flows {
            let slots = slots.of(&flow, flows.len());
            if flow.from == rank {
                part.place[flow.number] = part.sends.len();
                part.sends.push(Send { flow, slots, half: halves[flow.number], left: 0, done: None, clocked: None });
            } else if flow.to == rank {
                part.place[flow.number] = part.receives.len();
                part.receives.push(Receive { flow, slots, left: 0, clocked: None });
            }
        }
        part
    }

    fn measure(&mut self, outcome: &mut Outcome) -> Result<(), Stop> {
        if let (Pattern::FanIn, Some(send)) = (self.pattern, self.sends.first()) {
            self.endpoint.notify(self.coordinator, Word::Half(nanoseconds(send.half)).encode(), self.deadline)?;
        }
        // The check: the first window of every transfer, untimed, into cleared buffers.
        let checked = self.landing();
        for &(flow, window) in &checked {
            self.endpoint.clear(flow.lane, window);
        }
        for repeat in 0..untimed(self.order) {
            let ran = self.repeat(1);
            if ran.is_ok() {
                let shortest = self.sends.iter().filter_map(|send| self.spent(send)).min();
                self.fastest = self.fastest.min(shortest.unwrap_or(Duration::MAX));
            }
            if repeat < self.order.warmup {
                self.tell(outcome, repeat, true, 1);
            }
            ran?;
            if repeat == 0 {
                self.verify(&checked, outcome);
            }
        }
        let windows = self.agree()?;
        for repeat in 0..self.order.probe.repeats {
            let ran = self.repeat(windows);
            // Of a repeat that hangs those transfers count that were complete.
            self.tell(outcome, repeat, false, windows);
            ran?;
            outcome.root_seconds.extend(self.root_seconds(windows));
            outcome.done += 1;
        }
        // Nobody leaves before all are done, so that nothing is on its way to a rank that listens no more.
        self.start()
    }

    /// One repeat of this many windows of every transfer.
    fn repeat(&mut self, windows: u64) -> Result<(), Stop> {
        for send in &mut self.sends {
            (send.left, send.done, send.clocked) = (windows, None, None);
        }
        (self.open, self.incoming) = (self.sends.len() + self.receives.len(), self.receives.len());
        self.received = None;
        self.started = None;
        for receive in &mut self.receives {
            (receive.left, receive.clocked) = (windows, None);
            self.endpoint.post(receive.flow.number, receive.slots.take())?;
        }
        self.start()?;
        for send in &mut self.sends {
            self.endpoint.launch(send.flow.number, send.slots.take())?;
        }
        while self.open > 0 {
            self.step()?;
        }
        Ok(())
    }

    /// Take one thing that has happened, or look again later.
    fn step(&mut self) -> Result<(), Stop> {
        let Some(news) = self.endpoint.news(self.deadline)? else { return self.rest.once(self.deadline) };
        self.rest.over();
        match news {
            News::Arrived(number) => {
                let at = self.at(number);
                if self.sends.get(at).is_some_and(|send| send.flow.number == number) {
                    return self.sent(at);
                }
                self.arrived(at)
            }
            News::Acknowledged(number) => self.sent(self.at(number)),
            News::Word { from, word } => {
                match Word::decode(word) {
                    Word::Half(ns) => self.nearest = self.nearest.min(Duration::from_nanos(ns)),
                    Word::Ready(ns) => {
                        self.fastest = self.fastest.min(Duration::from_nanos(ns));
                        for (_, ready) in self.others.iter_mut().filter(|(other, _)| *other == from) {
                            *ready = true;
                        }
                    }
                    word => self.told = Some(word),
                }
                Ok(())
            }
        }
    }

    /// Place of a transfer in `sends` or `receives`; nobody's for one that is not this rank's.
    fn at(&self, number: usize) -> usize {
        self.place.get(number).copied().unwrap_or(usize::MAX)
    }

    /// A window of a send is complete.
    fn sent(&mut self, at: usize) -> Result<(), Stop> {
        let Some(send) = self.sends.get_mut(at).filter(|send| send.left > 0) else { return Ok(()) };
        send.left -= 1;
        add(&mut send.clocked, self.endpoint.clocked(send.flow.number));
        if send.left > 0 {
            return self.endpoint.launch(send.flow.number, send.slots.take());
        }
        send.done = Some(Instant::now());
        self.open -= 1;
        Ok(())
    }

    /// A window is in this rank's buffer.
    fn arrived(&mut self, at: usize) -> Result<(), Stop> {
        let Some(receive) = self.receives.get_mut(at).filter(|receive| receive.left > 0) else { return Ok(()) };
        receive.left -= 1;
        add(&mut receive.clocked, self.endpoint.clocked(receive.flow.number));
        if receive.left > 0 {
            // The next one may come as soon as this one is acknowledged.
            self.endpoint.post(receive.flow.number, receive.slots.take())?;
        } else {
            self.open -= 1;
            self.incoming -= 1;
            if self.incoming == 0 {
                self.received = Some(Instant::now());
            }
        }
        self.endpoint.acknowledge(receive.flow.number, self.deadline)
    }

    /// Where the next window of each transfer into this rank lands.
    fn landing(&self) -> Vec<(Flow, Window)> {
        let copies = self.sends.iter().filter(|send| send.flow.is_local()).map(|send| (send.flow, send.slots.window()));
        self.receives.iter().map(|receive| (receive.flow, receive.slots.window())).chain(copies).collect()
    }

    fn verify(&mut self, landed: &[(Flow, Window)], outcome: &mut Outcome) {
        for &(flow, window) in landed {
            if let Err(wrong) = self.endpoint.verify(flow.from, flow.lane, window) {
                outcome.corrupt.get_or_insert(format!("{}→{}: {wrong}", flow.from, flow.to));
            }
        }
    }

    /// What has not come, in words.
    fn missing(&self) -> String {
        const MOST: usize = 4;
        if self.started.is_none() {
            let late: Vec<usize> = self.others.iter().filter(|(_, ready)| !ready).map(|&(other, _)| other).collect();
            return match late[..] {
                [] => format!("the start by rank {}", self.coordinator),
                [one] => format!("rank {one}"),
                _ => format!("ranks {}", format_ranks(&late)),
            };
        }
        let sends = self.sends.iter().filter(|send| send.done.is_none()).map(|send| send.flow);
        let receives = self.receives.iter().filter(|receive| receive.left > 0).map(|receive| receive.flow);
        let open: Vec<String> = sends.chain(receives).map(|flow| format!("{}→{}", flow.from, flow.to)).collect();
        let more = open.len().saturating_sub(MOST);
        let named = open[..open.len() - more].join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    }
}

/// The root of a fan.
fn root(probe: &Probe) -> Option<usize> {
    match &probe.target {
        Target::Group(group) if group.pattern.is_fan() => group.root,
        _ => None,
    }
}
