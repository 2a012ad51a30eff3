use std::time::Instant;

use super::carry::Carrying;
use super::raw::{Arena, Comm, PutWindow, Refused, Words};
use super::several::Several;
use crate::sample::MoverKind;
use crate::sweep::Probe;
use crate::transport::payload::{self, Payload};
use crate::transport::{Endpoint, Flow, Setup, Stop, TransportError, Window};

/// Tests of a request between two looks at the clock.
const SPINS: u32 = 64;
/// Probes whose messages can be told apart by their tags, where the library has tags enough.
const EPOCHS: i32 = 16_000;
/// Tags of a probe: one for words, and one for each transfer between the same two ranks.
const TAGS: i32 = 32;
const _: () = assert!(TAGS as usize == 1 + Flow::MOST_TWINS);

/// One MPI process's end.
#[derive(Debug)]
pub(super) struct MpiEndpoint {
    rank: usize,
    pub(super) comm: Comm,
    pub(super) words: Words,
    /// what it sends from, and `lanes` arenas of the same size, one behind the other, that it receives into
    pub(super) outgoing: Arena,
    pub(super) landing: Arena,
    pub(super) lanes: usize,
    /// from one of those to the next, bytes; the same on all ranks
    stride: usize,
    pub(super) put: Option<PutWindow>,
    seed: u64,
    /// the probe's number among those that can be told apart, and how many those are
    epoch: i32,
    epochs: i32,
    pub(super) several: Several,
    pub(super) carrying: Carrying,
}

impl MpiEndpoint {
    /// `works` carries what plans move.
    pub(super) fn new(rank: usize, comm: Comm, works: Comm) -> Self {
        let epochs = (comm.largest_tag() / TAGS).clamp(1, EPOCHS);
        Self {
            rank,
            comm,
            words: Words::new(),
            outgoing: Arena::default(),
            landing: Arena::default(),
            lanes: 0,
            stride: 0,
            put: None,
            seed: 0,
            epoch: 0,
            epochs,
            several: Several::default(),
            carrying: Carrying::new(works),
        }
    }

    pub(super) fn word_tag(&self) -> i32 {
        TAGS * self.epoch
    }

    /// Of the transfer with this number among those between the same two ranks.
    pub(super) fn data_tag(&self, twin: usize) -> i32 {
        TAGS * self.epoch + 1 + i32::try_from(twin).unwrap_or(0)
    }

    /// Where a lane begins, bytes.
    pub(super) fn base(&self, lane: usize) -> usize {
        lane * self.stride
    }

    /// Get ready with arenas that `make` gives for the bytes of the one that is sent from and of those that are received into.
    pub(super) fn prepare_with(
        &mut self,
        setup: &Setup,
        make: impl FnOnce(&Self, usize, usize) -> Result<(Arena, Arena), TransportError>,
    ) -> Result<(), TransportError> {
        let refuse = |refused: Refused| TransportError::Mpi(refused.to_string());
        if let Some(window) = self.put.take() {
            window.free().map_err(refuse)?;
        }
        // Free first, then allocate: two sets of buffers may not fit.
        self.outgoing = Arena::default();
        self.landing = Arena::default();
        let size = usize::try_from(setup.arena).unwrap_or(usize::MAX);
        self.lanes = setup.lanes;
        self.stride = size.checked_next_multiple_of(64).unwrap_or(usize::MAX);
        let arenas = make(self, size, self.stride.saturating_mul(setup.lanes));
        let failed = match arenas {
            Ok((outgoing, landing)) => {
                (self.outgoing, self.landing) = (outgoing, landing);
                None
            }
            Err(error) => Some(error),
        };
        // The others enter the collective, so this rank must, too, with what it has.
        if setup.mover == MoverKind::MpiPut {
            let window = PutWindow::create(&self.comm, &mut self.landing);
            self.put = if failed.is_some() { window.ok() } else { Some(window.map_err(refuse)?) };
        }
        self.seed = setup.seed;
        failed.map_or(Ok(()), Err)
    }

    fn allocate(&self, size: usize, setup: &Setup) -> Result<Vec<u8>, TransportError> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(size).map_err(|error| TransportError::Memory {
            rank: self.rank,
            bytes: setup.memory(),
            reason: error.to_string(),
        })?;
        payload::touch(&mut memory, size);
        Ok(memory)
    }
}

#[cold]
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn failed(refused: Refused) -> Stop {
    Stop::Failed(refused.to_string())
}

/// Spin on `ready` until it says yes or the deadline comes. The library's progress happens inside `ready`.
#[inline]
pub(super) fn spin<T>(deadline: Instant, mut ready: impl FnMut() -> Result<Option<T>, Refused>) -> Result<T, Stop> {
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
        self.prepare_with(setup, |endpoint, size, landing| {
            let (landing, mut outgoing) = (endpoint.allocate(landing, setup)?, endpoint.allocate(size, setup)?);
            Payload::new(setup.seed, endpoint.rank).fill(&mut outgoing);
            Ok((Arena::new(outgoing, 1024), Arena::new(landing, 1024)))
        })
    }

    fn arena(&self) -> usize {
        self.outgoing.len()
    }

    fn begin(&mut self, probe: &Probe) -> Result<(), Stop> {
        self.epoch = i32::try_from(probe.id % u64::from(self.epochs.unsigned_abs())).unwrap_or(0);
        self.words.give_up();
        Ok(())
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
                let at = window.offset(message);
                put.put(&self.outgoing, at, window.bytes, to, at).map_err(failed)?;
            }
            put.flush(to).map_err(failed)?;
            return self.notify(to, window.count as u64, deadline);
        }
        let tag = self.data_tag(0);
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
        let tag = self.data_tag(0);
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

    fn clear(&mut self, lane: usize, window: Window) {
        let base = self.base(lane);
        for message in 0..window.count {
            let at = base + window.offset(message);
            self.landing.bytes()[at..at + window.bytes].fill(0xa5);
        }
    }

    fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String> {
        // A transfer that was given up may still write here: what is found then says nothing about this probe.
        if self.landing.disturbed() {
            return Ok(());
        }
        let base = self.base(lane);
        payload::check(self.seed, from, &self.landing.bytes()[base..], window)
    }

    fn disturbed(&mut self) -> bool {
        self.outgoing.disturbed() | self.landing.disturbed() | self.carrying.disturbed()
    }

    fn close(&mut self) {
        if let Some(window) = self.put.take() {
            let _ = window.free();
        }
        self.carrying.close();
    }
}
