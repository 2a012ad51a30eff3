//! Threads that carry a work: each keeps its memory, others copy into it.
//!
//! What is held is the rank's own and never written in a run. The rest lies in stripes with a lock each, which a valid work never
//! contends for; where two are needed they are taken in the order of (rank, stripe), so that nobody waits for ever whatever the work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::endpoint::{Shared, ThreadEndpoint};
use crate::sample::MoverKind;
use crate::transport::work::{self, Carrier, Heard, Part, SEED, Word};
use crate::transport::{Stop, TransportError, payload};

/// Bytes of a stripe.
const STRIPE: usize = 64 << 10;
/// A rank that copies looks after what comes in at least this often, bytes: some tens of microseconds.
const PIECE: usize = 256 << 10;

/// What others reach of a rank.
#[derive(Debug, Default)]
pub(super) struct Store {
    rank: usize,
    /// addresses of stripes begin here
    held: usize,
    stripes: Vec<Mutex<Vec<u8>>>,
    inbox: Mutex<VecDeque<(usize, u64)>>,
    /// words in it
    count: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Bytes and queues are whole at any time, whoever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    fn put(&self, from: usize, word: u64) {
        lock(&self.inbox).push_back((from, word));
        self.count.fetch_add(1, Ordering::Release);
    }

    fn take(&self) -> Option<(usize, u64)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let word = lock(&self.inbox).pop_front();
        if word.is_some() {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        word
    }

    /// The stripe of an address, the place within it, and how many bytes are left of it.
    const fn stripe(&self, at: usize) -> (usize, usize, usize) {
        let at = at - self.held;
        (at / STRIPE, at % STRIPE, STRIPE - at % STRIPE)
    }
}

/// A message on its way to another rank.
#[derive(Debug)]
struct Job {
    share: usize,
    flow: usize,
    /// which of the other ranks' stores
    to: usize,
    from: usize,
    place: usize,
    left: usize,
}

/// What a thread knows of the work that it carries.
#[derive(Debug, Default)]
pub(super) struct Carrying {
    held: Vec<u8>,
    store: Arc<Store>,
    /// of ranks that it sends to or tells something
    others: Vec<(usize, Arc<Store>)>,
    jobs: VecDeque<Job>,
}

impl Carrying {
    /// Copy from this rank's memory into that of a store.
    fn transfer(&self, mut from: usize, into: &Store, mut to: usize, mut length: usize) {
        while length > 0 {
            let (there, at, room) = into.stripe(to);
            let step = if from < self.held.len() {
                let step = length.min(room).min(self.held.len() - from);
                lock(&into.stripes[there])[at..at + step].copy_from_slice(&self.held[from..from + step]);
                step
            } else {
                let (here, begin, whole) = self.store.stripe(from);
                let step = length.min(room).min(whole);
                let (own, other) = ((self.store.rank, here), (into.rank, there));
                if own == other {
                    lock(&into.stripes[there]).copy_within(begin..begin + step, at);
                } else {
                    let first = (own < other).then(|| lock(&self.store.stripes[here]));
                    let mut target = lock(&into.stripes[there]);
                    let source = first.unwrap_or_else(|| lock(&self.store.stripes[here]));
                    target[at..at + step].copy_from_slice(&source[begin..begin + step]);
                }
                step
            };
            (from, to, length) = (from + step, to + step, length - step);
        }
    }

    fn other(&self, rank: usize) -> Result<usize, Stop> {
        let found = self.others.binary_search_by_key(&rank, |&(other, _)| other);
        found.map_err(|_| Stop::Failed(format!("rank {rank} has no part in this work")))
    }
}

impl Carrier for ThreadEndpoint {
    fn rank(&self) -> usize {
        self.rank
    }

    fn load(&mut self, part: &Part, _mover: MoverKind) -> Result<(), TransportError> {
        let refuse = |reason: String| TransportError::Memory { rank: part.rank, bytes: part.memory, reason };
        // Free first: two sets of memory may not fit.
        self.carrying = Carrying::default();
        *lock(self.shared.store(self.rank)) = Arc::default();
        let size = |bytes: u64| usize::try_from(bytes).map_err(|error| refuse(error.to_string()));
        let (held, memory) = (size(part.held)?, size(part.memory)?);
        let mut own = Vec::new();
        own.try_reserve_exact(held).map_err(|error| refuse(error.to_string()))?;
        payload::touch(&mut own, held);
        work::fill(SEED, &part.content, &mut own).map_err(TransportError::Work)?;
        let mut stripes = Vec::new();
        let rest = memory.saturating_sub(held);
        for begin in (0..rest).step_by(STRIPE) {
            let mut stripe = Vec::new();
            let length = STRIPE.min(rest - begin);
            stripe.try_reserve_exact(length).map_err(|error| refuse(error.to_string()))?;
            payload::touch(&mut stripe, length);
            stripes.push(Mutex::new(stripe));
        }
        let inbox = Mutex::new(VecDeque::with_capacity(part.words()));
        let store = Arc::new(Store { rank: self.rank, held, stripes, inbox, count: AtomicUsize::new(0) });
        self.carrying = Carrying { held: own, store: Arc::clone(&store), ..Carrying::default() };
        *lock(self.shared.store(self.rank)) = store;
        Ok(())
    }

    fn begin(&mut self, part: &Part, _id: u64) -> Result<(), Stop> {
        let shares = part.shares.iter().flat_map(|share| share.tell.iter().copied().chain([share.peer]));
        let mut ranks: Vec<usize> = shares.chain(part.others.iter().copied()).chain([part.coordinator]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let store = |rank: usize| (rank, Arc::clone(&lock(self.shared.store(rank))));
        self.carrying.others = ranks.into_iter().map(store).collect();
        self.carrying.jobs.reserve(part.shares.len());
        Ok(())
    }

    fn one_sided(&self) -> bool {
        true
    }

    fn wipe(&mut self) {
        for stripe in &self.carrying.store.stripes {
            work::clear(&mut lock(stripe));
        }
    }

    fn copy(&mut self, from: usize, to: usize, length: usize) {
        self.carrying.transfer(from, &self.carrying.store, to, length);
    }

    fn read(&mut self, mut from: usize, mut into: &mut [u8]) -> Result<(), Stop> {
        let store = &self.carrying.store;
        while !into.is_empty() {
            let (stripe, at, left) = store.stripe(from);
            let (now, rest) = into.split_at_mut(left.min(into.len()));
            now.copy_from_slice(&lock(&store.stripes[stripe])[at..at + now.len()]);
            from += now.len();
            into = rest;
        }
        Ok(())
    }

    fn post(&mut self, _part: &Part, _share: usize, _message: usize) -> Result<(), Stop> {
        Ok(())
    }

    fn send(&mut self, part: &Part, number: usize, message: usize) -> Result<(), Stop> {
        let share = &part.shares[number];
        let message = &share.messages[message];
        let to = self.carrying.other(share.peer)?;
        let place = usize::try_from(message.lands).unwrap_or(usize::MAX);
        let job = Job { share: number, flow: share.flow, to, from: message.place(share.arena), place, left: message.length() };
        self.carrying.jobs.push_back(job);
        Ok(())
    }

    fn tell(&mut self, to: usize, word: u64, _deadline: Instant) -> Result<(), Stop> {
        let at = self.carrying.other(to)?;
        self.carrying.others[at].1.put(self.rank, word);
        Ok(())
    }

    fn news(&mut self, _part: &Part, _deadline: Instant) -> Result<Option<Heard>, Stop> {
        if let Some((from, word)) = self.carrying.store.take() {
            return Ok(Some(Heard::Word { from, word }));
        }
        let Some(mut job) = self.carrying.jobs.pop_front() else { return Ok(None) };
        let step = job.left.min(PIECE);
        let store = &self.carrying.others[job.to].1;
        self.carrying.transfer(job.from, store, job.place, step);
        (job.from, job.place, job.left) = (job.from + step, job.place + step, job.left - step);
        if job.left > 0 {
            self.carrying.jobs.push_back(job);
            return Ok(None);
        }
        store.put(self.rank, Word::Landed(job.flow).encode());
        Ok(Some(Heard::Sent(job.share)))
    }

    fn end(&mut self, _deadline: Instant) {
        // Whoever still copies into it keeps it until then.
        self.carrying = Carrying::default();
        *lock(self.shared.store(self.rank)) = Arc::default();
    }
}

impl Shared {
    /// What others reach of a rank that carries a work.
    fn store(&self, rank: usize) -> &Mutex<Arc<Store>> {
        &self.stores[rank]
    }
}
