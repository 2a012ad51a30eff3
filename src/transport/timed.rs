//! The timed region of one transfer alone (`peer`, and a rank's own copies), written once for all engines.
//!
//! A repeat begins when the receiver has said that it is ready, and ends when the receiver has said that every byte is
//! there, and with it that it is ready for the next one; half the median empty round trip, measured just before, is taken off
//! for each acknowledgement (Hoefler & Belli, SC'15; ucx #10184 shows what sender-side completion reports instead). No barrier,
//! no allocation, no log inside. The payload is checked once a probe, in the first of the windows that are not timed.
//!
//! What moves bytes may have a clock of its own ([`Endpoint::clocked`]: a GPU's). Then a repeat's time is the sum of its windows' by
//! that clock, acknowledgements are outside of it, and nothing is taken off. Where the receiver alone knows it, its nanoseconds are
//! the word of the acknowledgement; where both do, as with two-sided messages, the longer one counts.

use std::time::{Duration, Instant};

use super::endpoint::{Endpoint, Stop, Together, Window};
use super::{Flow, Order, Repeat, together};
use crate::sample::Pattern;
use crate::sweep::Buffers;

/// A sample lasts at least this long, so that the clock's resolution (tens of ns) is below a thousandth of it.
pub(super) const LONG_ENOUGH: Duration = Duration::from_micros(100);
/// Windows of at most this many bytes are short: many of them make a sample.
const SHORT: u64 = 256 << 10;
/// Windows in one sample at most.
const MOST_WINDOWS: u64 = 10_000;
/// Empty round trips measured before each probe of short windows, whose time is mostly latency; and before one of long windows.
const PINGS: [usize; 2] = [16, 8];
/// What a word of an acknowledgement holds, ns: 18 minutes.
pub(super) const MOST_NANOSECONDS: u64 = (1 << 40) - 1;
/// Windows before the timed ones: of short ones so many that the shortest tells how many make a sample, whatever the scheduler
/// did to the others; of long ones the one that is checked.
const UNTIMED: [u32; 2] = [4, 1];

/// What one side of a probe brings home.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) repeats: Vec<Repeat>,
    /// of a fan's root: its own time for each timed repeat, seconds
    pub(crate) root_seconds: Vec<f64>,
    /// timed repeats that were completed
    pub(crate) done: u32,
    pub(crate) stop: Option<Stop>,
    /// what it waited for when it stopped, where that is known
    pub(crate) missing: String,
    pub(crate) corrupt: Option<String>,
}

/// Run this rank's side of a probe: sender, receiver, or both for its own copy; of several transfers, all its sides.
pub(crate) fn run(endpoint: &mut impl Together, order: &Order, buffers: Buffers) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs_f64(order.timeout);
    let probe = &order.probe;
    let mut outcome = match endpoint.begin(probe).and_then(|()| endpoint.connect(probe, deadline)) {
        Ok(()) => probed(endpoint, order, buffers, deadline),
        Err(stop) => {
            told_of(endpoint, &stop);
            Outcome { stop: Some(stop), ..Outcome::default() }
        }
    };
    // Whatever was timed before is not to be trusted if this fails.
    if let Err(stop) = endpoint.end() {
        outcome = Outcome { stop: Some(stop), corrupt: outcome.corrupt, ..Outcome::default() };
    }
    outcome
}

fn probed(endpoint: &mut impl Together, order: &Order, buffers: Buffers, deadline: Instant) -> Outcome {
    let probe = &order.probe;
    let pattern = probe.target.pattern();
    if pattern.crosses() && !endpoint.has_gpu() {
        let why = format!("{} copies between the host's memory and a GPU's, and its buffers lie on none (memory cuda)", pattern.name());
        return Outcome { stop: Some(Stop::Failed(why)), ..Outcome::default() };
    }
    if pattern != Pattern::Peer && !pattern.is_own() {
        return together::run(endpoint, order, buffers, deadline);
    }
    let repeats = Vec::with_capacity(order.warmup as usize + probe.repeats as usize);
    let mut outcome = Outcome { repeats, ..Outcome::default() };
    let Some(&(from, to)) = probe.flows().first() else { return outcome };
    let slots = Slots::new(order, endpoint.arena(), buffers);
    let ran = if from == to {
        local(endpoint, order, slots, deadline, &mut outcome)
    } else if endpoint.rank() == from {
        sender(endpoint, to, order, slots, deadline, &mut outcome)
    } else {
        receiver(endpoint, from, order, slots, deadline, &mut outcome)
    };
    if let Err(stop) = &ran {
        told_of(endpoint, stop);
    }
    outcome.stop = ran.err();
    outcome
}

/// The others hear of a failure by a word, and not only when their time is up; of a deadline they know by themselves.
#[cold]
pub(super) fn told_of(endpoint: &mut impl Together, stop: &Stop) {
    if let Stop::Failed(_) = stop {
        endpoint.give_up();
    }
}

/// Where the windows of a probe lie: each next one further along the arena, or always the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slots {
    window: Window,
    moving: bool,
}

impl Slots {
    pub(super) fn new(order: &Order, arena: usize, buffers: Buffers) -> Self {
        let bytes = usize::try_from(order.probe.bytes).unwrap_or(usize::MAX);
        let count = order.window as usize;
        let slots = (arena / Window::stride(bytes)).max(1);
        let moving = buffers == Buffers::Rotate;
        // Probes start at different places, so that many short ones do not meet the cache lines of the last; both sides
        // must agree, hence by the probe's number.
        let first = if moving { (order.probe.id as usize).wrapping_mul(7919) % slots } else { 0 };
        Self { window: Window { bytes, count, first, slots }, moving }
    }

    /// Those of one of several transfers: as far from the other ones' as the arena allows, so that none finds in the cache
    /// what another has just used.
    pub(super) fn of(mut self, flow: &Flow, flows: usize) -> Self {
        if self.moving {
            let apart = self.window.slots * flow.number / flows.max(1);
            self.window.first = (self.window.first + apart) % self.window.slots;
        }
        self
    }

    /// This window; the next call gives the one after it.
    pub(super) fn take(&mut self) -> Window {
        let window = self.window;
        if self.moving {
            self.window.first = (window.first + window.count) % window.slots;
        }
        window
    }

    /// A window as it is.
    pub(super) const fn window(&self) -> Window {
        self.window
    }
}

fn sender(
    endpoint: &mut impl Endpoint,
    to: usize,
    order: &Order,
    mut slots: Slots,
    deadline: Instant,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let half = half_round_trip(endpoint, to, pings(order), deadline)?;
    let mut shortest = Duration::MAX;
    for repeat in 0..untimed(order) {
        match repeat {
            0 => announce(endpoint, to, 1, deadline)?,
            // The receiver has checked the first one.
            1 => announce(endpoint, to, u64::from(untimed(order) - 1), deadline)?,
            _ => {}
        }
        let spent = send_windows(endpoint, to, &mut slots, 1, deadline)?;
        shortest = shortest.min(spent.time());
        if repeat < order.warmup {
            outcome.repeats.push(Repeat { warmup: true, ..told(order, repeat, 1, spent, half) });
        }
    }
    let windows = batch(shortest);
    announce(endpoint, to, windows * u64::from(order.probe.repeats), deadline)?;
    for repeat in 0..order.probe.repeats {
        let spent = send_windows(endpoint, to, &mut slots, windows, deadline)?;
        outcome.repeats.push(told(order, repeat, windows, spent, half));
        outcome.done += 1;
    }
    Ok(())
}

/// Say how many windows come next, and wait until the receiver is ready for them.
fn announce(endpoint: &mut impl Endpoint, to: usize, windows: u64, deadline: Instant) -> Result<(), Stop> {
    endpoint.notify(to, windows, deadline)?;
    endpoint.await_notice(to, deadline).map(drop)
}

/// What windows took.
#[derive(Debug, Clone, Copy)]
enum Spent {
    /// by this host's clock, acknowledgements included
    Host(Duration),
    /// by the clock of what moved them
    Clocked(Duration),
}

impl Spent {
    const fn time(self) -> Duration {
        match self {
            Self::Host(time) | Self::Clocked(time) => time,
        }
    }
}

/// A time as a word of an acknowledgement; 0 for none.
pub(super) fn nanoseconds(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).clamp(1, MOST_NANOSECONDS))
}

/// The longer of a time that this rank knows and one that a word tells.
pub(super) fn longer(own: Option<Duration>, word: u64) -> Option<Duration> {
    own.max((word > 0).then(|| Duration::from_nanos(word)))
}

/// Send `windows` windows; the time from the start to the last acknowledgement, with which the receiver is ready for more.
fn send_windows(endpoint: &mut impl Endpoint, to: usize, slots: &mut Slots, windows: u64, deadline: Instant) -> Result<Spent, Stop> {
    let mut clocked = None;
    let start = Instant::now();
    for _ in 0..windows {
        endpoint.send(to, slots.take(), deadline)?;
        let word = endpoint.await_notice(to, deadline)?;
        if let Some(time) = longer(endpoint.clocked(0), word) {
            *clocked.get_or_insert(Duration::ZERO) += time;
        }
    }
    Ok(clocked.map_or_else(|| Spent::Host(start.elapsed()), Spent::Clocked))
}

fn receiver(
    endpoint: &mut impl Endpoint,
    from: usize,
    order: &Order,
    mut slots: Slots,
    deadline: Instant,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    answer_round_trips(endpoint, from, pings(order), deadline)?;
    // The check: the first window, untimed, into a cleared buffer.
    let checked = slots.window();
    endpoint.clear(0, checked);
    receive_windows(endpoint, from, &mut slots, deadline)?;
    outcome.corrupt = endpoint.verify(from, 0, checked).err();
    if untimed(order) > 1 {
        receive_windows(endpoint, from, &mut slots, deadline)?;
    }
    receive_windows(endpoint, from, &mut slots, deadline)
}

/// Receive as many windows as the sender announces.
fn receive_windows(endpoint: &mut impl Endpoint, from: usize, slots: &mut Slots, deadline: Instant) -> Result<(), Stop> {
    let windows = endpoint.await_notice(from, deadline)?;
    endpoint.notify(from, 0, deadline)?;
    for _ in 0..windows {
        endpoint.receive(from, slots.take(), deadline)?;
        endpoint.notify(from, nanoseconds(endpoint.clocked(0)), deadline)?;
    }
    Ok(())
}

fn local(endpoint: &mut impl Endpoint, order: &Order, mut slots: Slots, deadline: Instant, outcome: &mut Outcome) -> Result<(), Stop> {
    let mut shortest = Duration::MAX;
    let checked = slots.window();
    endpoint.clear(0, checked);
    for repeat in 0..untimed(order) {
        let spent = copy_windows(endpoint, &mut slots, 1, deadline)?;
        if repeat == 0 {
            outcome.corrupt = endpoint.verify(endpoint.rank(), 0, checked).err();
        }
        shortest = shortest.min(spent.time());
        if repeat < order.warmup {
            outcome.repeats.push(Repeat { warmup: true, ..told(order, repeat, 1, spent, Duration::ZERO) });
        }
    }
    let windows = batch(shortest);
    for repeat in 0..order.probe.repeats {
        let spent = copy_windows(endpoint, &mut slots, windows, deadline)?;
        outcome.repeats.push(told(order, repeat, windows, spent, Duration::ZERO));
        outcome.done += 1;
    }
    Ok(())
}

fn copy_windows(endpoint: &mut impl Endpoint, slots: &mut Slots, windows: u64, deadline: Instant) -> Result<Spent, Stop> {
    let mut clocked = None;
    let start = Instant::now();
    for _ in 0..windows {
        endpoint.copy(slots.take(), deadline)?;
        if let Some(time) = endpoint.clocked(0) {
            *clocked.get_or_insert(Duration::ZERO) += time;
        }
    }
    Ok(clocked.map_or_else(|| Spent::Host(start.elapsed()), Spent::Clocked))
}

/// A repeat of one transfer alone.
fn told(order: &Order, repeat: u32, windows: u64, spent: Spent, half: Duration) -> Repeat {
    let ack_seconds = match spent {
        Spent::Host(spent) => taken_off(spent, half, windows),
        Spent::Clocked(_) => 0.0,
    };
    let spent = spent.time();
    Repeat {
        flow: 0,
        repeat,
        warmup: false,
        messages: windows * u64::from(order.window),
        // A transfer cannot take less than the clock can tell.
        seconds: (spent.as_secs_f64() - ack_seconds).max(1e-9),
        ack_seconds,
    }
}

/// The other side of `half_round_trip`.
pub(super) fn answer_round_trips(endpoint: &mut impl Endpoint, from: usize, pings: usize, deadline: Instant) -> Result<(), Stop> {
    for _ in 0..pings {
        endpoint.await_notice(from, deadline)?;
        endpoint.notify(from, 0, deadline)?;
    }
    Ok(())
}

/// Half of the median of so many empty round trips to a rank that answers.
pub(super) fn half_round_trip(endpoint: &mut impl Endpoint, to: usize, pings: usize, deadline: Instant) -> Result<Duration, Stop> {
    let mut trips = [Duration::ZERO; PINGS[0]];
    let trips = &mut trips[..pings.min(PINGS[0])];
    for trip in &mut *trips {
        let start = Instant::now();
        endpoint.notify(to, 0, deadline)?;
        endpoint.await_notice(to, deadline)?;
        *trip = start.elapsed();
    }
    trips.sort_unstable();
    Ok(trips.get(trips.len() / 2).copied().unwrap_or_default() / 2)
}

/// What of `spent` was the acknowledgements' of `windows` windows, seconds. At most half: on their way there, bytes take no
/// less than the empty answer on its way back. (On cores shared with others the round trip may have met a time slice, of
/// milliseconds, that the repeat did not.)
pub(super) fn taken_off(spent: Duration, half: Duration, windows: u64) -> f64 {
    (half.as_secs_f64() * windows as f64).min(spent.as_secs_f64() / 2.0)
}

/// Which of two constants holds for a probe; both sides must agree, hence by its bytes.
const fn kind(order: &Order) -> usize {
    if order.probe.bytes.saturating_mul(order.window as u64) <= SHORT { 0 } else { 1 }
}

/// Empty round trips measured before a probe, the same on both sides.
pub(super) const fn pings(order: &Order) -> usize {
    PINGS[kind(order)]
}

/// Windows before the timed ones, the same on both sides. The first pays for connections and registration, and is checked.
pub(super) fn untimed(order: &Order) -> u32 {
    order.warmup.max(UNTIMED[kind(order)])
}

/// Windows in one sample, given what one took.
pub(super) fn batch(one: Duration) -> u64 {
    let needed = LONG_ENOUGH.as_nanos() / one.as_nanos().max(1) + 1;
    u64::try_from(needed).unwrap_or(MOST_WINDOWS).min(MOST_WINDOWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_round_trip_never_makes_a_transfer_instant() {
        let ms = Duration::from_millis;
        assert!((taken_off(ms(20), ms(1), 4) - 4e-3).abs() < 1e-12);
        assert!((taken_off(ms(20), ms(6), 4) - 10e-3).abs() < 1e-12);
    }
}
