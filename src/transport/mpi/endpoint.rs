use std::time::Instant;

use super::raw::{Arena, Comm, PutWindow, Refused, Words};
use crate::sample::MoverKind;
use crate::transport::payload::{self, Payload};
use crate::transport::{Endpoint, Setup, Stop, TransportError, Window};

/// Tests of a request between two looks at the clock.
const SPINS: u32 = 64;
/// Probes whose messages can be told apart by their tags: two tags each, below the 32767 that every library grants.
const EPOCHS: u64 = 16_000;

/// One MPI process's end.
#[derive(Debug)]
pub(super) struct MpiEndpoint {
    rank: usize,
    comm: Comm,
    words: Words,
    outgoing: Arena,
    landing: Arena,
    put: Option<PutWindow>,
    seed: u64,
    epoch: i32,
}

impl MpiEndpoint {
    pub(super) fn new(rank: usize, comm: Comm) -> Self {
        Self { rank, comm, words: Words::new(), outgoing: Arena::default(), landing: Arena::default(), put: None, seed: 0, epoch: 0 }
    }

    /// True when a transfer that was given up may still be under way.
    pub(super) fn disturbed(&mut self) -> bool {
        self.outgoing.disturbed() | self.landing.disturbed()
    }

    /// Give back what only all ranks together can; collective, before the library's end.
    pub(super) fn close(&mut self) {
        if let Some(window) = self.put.take() {
            let _ = window.free();
        }
    }

    fn word_tag(&self) -> i32 {
        2 * self.epoch
    }

    fn data_tag(&self) -> i32 {
        2 * self.epoch + 1
    }

    fn allocate(&self, bytes: u64) -> Result<Vec<u8>, TransportError> {
        let mut memory = Vec::new();
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        memory.try_reserve_exact(size).map_err(|error| TransportError::Memory { rank: self.rank, bytes, reason: error.to_string() })?;
        // Written here, by the process that uses it, so that the pages lie on its NUMA node.
        memory.resize(size, 0xa5);
        Ok(memory)
    }
}

#[cold]
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(refused: Refused) -> Stop {
    Stop::Failed(refused.to_string())
}

/// Spin on `ready` until it says yes or the deadline comes. The library's progress happens inside `ready`.
#[inline]
fn spin<T>(deadline: Instant, mut ready: impl FnMut() -> Result<Option<T>, Refused>) -> Result<T, Stop> {
    let mut spins = 0_u32;
    loop {
        if let Some(value) = ready().map_err(failed)? {
            return Ok(value);
        }
        spins += 1;
        if spins.is_multiple_of(SPINS) {
            if Instant::now() >= deadline {
                return Err(Stop::Deadline);
            }
            if spins.is_multiple_of(16 * SPINS) {
                // Ranks may share a core: the other one must get to run.
                std::thread::yield_now();
            }
        }
    }
}

impl Endpoint for MpiEndpoint {
    fn rank(&self) -> usize {
        self.rank
    }

    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError> {
        if let Some(window) = self.put.take() {
            window.free().map_err(|refused| TransportError::Mpi(refused.to_string()))?;
        }
        // Free first, then allocate: two sets of buffers may not fit.
        self.outgoing = Arena::default();
        self.landing = Arena::default();
        let memory = self.allocate(setup.arena).and_then(|landing| Ok((self.allocate(setup.arena)?, landing)));
        let (mut outgoing, landing) = match memory {
            Ok(memory) => memory,
            // The others enter the collective below; this rank must, too, with what it has.
            Err(error) => {
                if setup.mover == MoverKind::MpiPut {
                    self.put = PutWindow::create(&self.comm, &mut self.landing).ok();
                }
                return Err(error);
            }
        };
        Payload::new(setup.seed, self.rank).fill(&mut outgoing);
        self.outgoing = Arena::new(outgoing, 1024);
        self.landing = Arena::new(landing, 1024);
        if setup.mover == MoverKind::MpiPut {
            self.put = Some(PutWindow::create(&self.comm, &mut self.landing).map_err(|refused| TransportError::Mpi(refused.to_string()))?);
        }
        self.seed = setup.seed;
        Ok(())
    }

    fn arena(&self) -> usize {
        self.outgoing.len()
    }

    fn begin(&mut self, probe: u64) {
        self.epoch = i32::try_from(probe % EPOCHS).unwrap_or(0);
        self.words.give_up();
    }

    fn notify(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        let tag = self.word_tag();
        let (words, comm) = (&mut self.words, &self.comm);
        if !words.slot_free().map_err(failed)? {
            spin(deadline, || Ok(words.slot_free()?.then_some(())))?;
        }
        words.send(comm, word, to, tag).map_err(failed)
    }

    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop> {
        let tag = self.word_tag();
        self.words.post(&self.comm, from, tag).map_err(failed)?;
        let words = &mut self.words;
        let word = spin(deadline, || words.arrived());
        if word.is_err() {
            self.words.give_up();
        }
        word
    }

    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        if let Some(put) = &self.put {
            for message in 0..window.count {
                put.put(&self.outgoing, window.offset(message), window.bytes, to).map_err(failed)?;
            }
            put.flush(to).map_err(failed)?;
            return self.notify(to, window.count as u64, deadline);
        }
        let tag = self.data_tag();
        for message in 0..window.count {
            self.outgoing.send(&self.comm, window.offset(message), window.bytes, to, tag).map_err(failed)?;
        }
        let arena = &mut self.outgoing;
        let sent = spin(deadline, || Ok(arena.complete()?.then_some(())));
        if sent.is_err() {
            self.outgoing.give_up(false);
        }
        sent
    }

    fn receive(&mut self, from: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        if self.put.is_some() {
            self.await_notice(from, deadline)?;
            return self.put.as_ref().map_or(Ok(()), |put| put.sync().map_err(failed));
        }
        let tag = self.data_tag();
        for message in 0..window.count {
            self.landing.receive(&self.comm, window.offset(message), window.bytes, from, tag).map_err(failed)?;
        }
        let arena = &mut self.landing;
        let received = spin(deadline, || Ok(arena.complete()?.then_some(())));
        if received.is_err() {
            self.landing.give_up(true);
        }
        received
    }

    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop> {
        let (from, to) = (self.outgoing.bytes(), self.landing.bytes());
        for message in 0..window.count {
            let at = window.offset(message);
            to[at..at + window.bytes].copy_from_slice(&from[at..at + window.bytes]);
        }
        if Instant::now() >= deadline { Err(Stop::Deadline) } else { Ok(()) }
    }

    fn clear(&mut self, window: Window) {
        for message in 0..window.count {
            let at = window.offset(message);
            self.landing.bytes()[at..at + window.bytes].fill(0xa5);
        }
    }

    fn verify(&mut self, from: usize, window: Window) -> Result<(), String> {
        // A transfer that was given up may still write here: what is found then says nothing about this probe.
        if self.landing.disturbed() {
            return Ok(());
        }
        payload::check(self.seed, from, self.landing.bytes(), window)
    }
}
