use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::mailbox::Mailbox;
use crate::transport::payload::{self, Payload};
use crate::transport::{Endpoint, Setup, Stop, TransportError, Window};

/// What the threads of one engine share.
#[derive(Debug)]
pub(super) struct Shared {
    /// receive arena of each rank, touched first by its owner
    landing: Vec<Mutex<Vec<u8>>>,
    /// `mail[from * world + to]`
    mail: Vec<Mailbox>,
    world: usize,
}

impl Shared {
    pub(super) fn new(world: usize) -> Self {
        Self {
            landing: (0..world).map(|_| Mutex::default()).collect(),
            mail: (0..world * world).map(|_| Mailbox::default()).collect(),
            world,
        }
    }

    fn landing(&self, rank: usize) -> MutexGuard<'_, Vec<u8>> {
        // Bytes are whole at any time, whoever panicked.
        self.landing[rank].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's end: it copies from its own arena into the receiver's.
#[derive(Debug)]
pub(super) struct ThreadEndpoint {
    rank: usize,
    shared: Arc<Shared>,
    outgoing: Vec<u8>,
    probe: u64,
    seed: u64,
    /// words taken from each other rank's mailbox
    taken: Vec<u64>,
}

impl ThreadEndpoint {
    pub(super) fn new(rank: usize, shared: Arc<Shared>) -> Self {
        let taken = vec![0; shared.world];
        Self { rank, shared, outgoing: Vec::new(), probe: u64::MAX, seed: 0, taken }
    }

    fn copy_into(&self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        let mut landing = self.shared.landing(to);
        for message in 0..window.count {
            let at = window.offset(message);
            landing[at..at + window.bytes].copy_from_slice(&self.outgoing[at..at + window.bytes]);
        }
        drop(landing);
        // A copy cannot hang; it can be so slow that the probe's time is up.
        if Instant::now() >= deadline { Err(Stop::Deadline) } else { Ok(()) }
    }
}

impl Endpoint for ThreadEndpoint {
    fn rank(&self) -> usize {
        self.rank
    }

    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError> {
        let size = usize::try_from(setup.arena).unwrap_or(usize::MAX);
        let refuse = |reason: std::collections::TryReserveError| TransportError::Memory {
            rank: self.rank,
            bytes: setup.arena,
            reason: reason.to_string(),
        };
        let mut landing = Vec::new();
        landing.try_reserve_exact(size).map_err(refuse)?;
        // Written here, on this rank's core, so that the pages lie on its NUMA node.
        landing.resize(size, 0xa5);
        *self.shared.landing(self.rank) = landing;
        self.outgoing = Vec::new();
        self.outgoing.try_reserve_exact(size).map_err(refuse)?;
        self.outgoing.resize(size, 0);
        Payload::new(setup.seed, self.rank).fill(&mut self.outgoing);
        self.seed = setup.seed;
        Ok(())
    }

    fn arena(&self) -> usize {
        self.outgoing.len()
    }

    fn begin(&mut self, probe: u64) {
        self.probe = probe;
    }

    fn notify(&mut self, to: usize, word: u64, _deadline: Instant) -> Result<(), Stop> {
        self.shared.mail[self.rank * self.shared.world + to].put(self.probe, word);
        Ok(())
    }

    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop> {
        let mailbox = &self.shared.mail[from * self.shared.world + self.rank];
        mailbox.take(self.probe, &mut self.taken[from], deadline)
    }

    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        self.copy_into(to, window, deadline)?;
        self.notify(to, window.count as u64, deadline)
    }

    fn receive(&mut self, from: usize, _window: Window, deadline: Instant) -> Result<(), Stop> {
        self.await_notice(from, deadline).map(drop)
    }

    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop> {
        self.copy_into(self.rank, window, deadline)
    }

    fn clear(&mut self, window: Window) {
        let mut landing = self.shared.landing(self.rank);
        for message in 0..window.count {
            let at = window.offset(message);
            landing[at..at + window.bytes].fill(0xa5);
        }
    }

    fn verify(&mut self, from: usize, window: Window) -> Result<(), String> {
        payload::check(self.seed, from, &self.shared.landing(self.rank), window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{MoverKind, Pattern};
    use crate::sweep::{Buffers, Cell, Probe};
    use crate::transport::{Agent, End, Order};

    fn setup() -> Setup {
        Setup { mover: MoverKind::Memcpy, buffers: Buffers::Rotate, arena: 1 << 20, lanes: 1, seed: 5 }
    }

    fn order(from: usize, to: usize, timeout: f64) -> Order {
        let probe = Probe::pair(3, Cell { pattern: Pattern::Peer, from, to }, 40_000, 4);
        Order { probe, window: 3, warmup: 1, timeout }
    }

    fn two() -> [Agent<ThreadEndpoint>; 2] {
        let shared = Arc::new(Shared::new(2));
        [0, 1].map(|rank| {
            let mut agent = Agent::new(ThreadEndpoint::new(rank, Arc::clone(&shared)));
            assert_eq!(agent.prepare(&setup()), None);
            agent
        })
    }

    #[test]
    fn a_probe_brings_its_repeats_and_a_checked_payload() {
        let [mut a, mut b] = two();
        let (sent, received) = std::thread::scope(|scope| {
            let sender = scope.spawn(move || a.obey(&order(0, 1, 60.0)));
            let receiver = scope.spawn(move || b.obey(&order(0, 1, 60.0)));
            (sender.join().unwrap(), receiver.join().unwrap())
        });
        assert_eq!((sent.end, received.end), (End::Complete, End::Complete));
        assert_eq!(sent.repeats.len(), 4);
        assert!(sent.repeats.iter().all(|repeat| repeat.messages.is_multiple_of(3) && repeat.seconds > 0.0));
    }

    #[test]
    fn a_missing_partner_is_a_timeout_and_the_next_probe_works() {
        let [mut a, mut b] = two();
        assert!(matches!(a.obey(&order(0, 1, 0.02)).end, End::Timeout(_)));
        let mut next = order(1, 0, 60.0);
        next.probe.id = 4;
        std::thread::scope(|scope| {
            let next = &next;
            let one = scope.spawn(move || a.obey(next));
            let other = scope.spawn(move || b.obey(next));
            assert_eq!((one.join().unwrap().end, other.join().unwrap().end), (End::Complete, End::Complete));
        });
    }

    #[test]
    fn a_payload_of_the_wrong_rank_is_corrupt() {
        let [mut a, mut b] = two();
        a.endpoint().outgoing.fill(0);
        let received = std::thread::scope(|scope| {
            scope.spawn(move || a.obey(&order(0, 1, 60.0)));
            scope.spawn(move || b.obey(&order(0, 1, 60.0))).join().unwrap()
        });
        assert!(matches!(received.end, End::Corrupt(_)), "{received:?}");
    }
}
