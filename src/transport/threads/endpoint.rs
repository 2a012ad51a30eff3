use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::carry::{Carrying, Store};
use super::mailbox::Mailbox;
use super::several::Several;
use crate::sweep::Probe;
use crate::transport::payload::{self, Payload};
use crate::transport::{Endpoint, Setup, Stop, TransportError, Window};

/// An arena that transfers into one rank land in, with a lock of its own: several threads can copy into one rank at the
/// same time. Cache lines are its own, too.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Landing {
    bytes: Mutex<Vec<u8>>,
    /// windows of the probe's transfer that have arrived, and that the receiver has acknowledged (see [`Landing::mark`])
    pub(super) arrived: AtomicU64,
    pub(super) acknowledged: AtomicU64,
}

impl Landing {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        // Bytes are whole at any time, whoever panicked.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `arrived` and `acknowledged` hold after `count` windows of a probe: what an earlier one left there is not it.
    pub(super) const fn mark(probe: u64, count: u32) -> u64 {
        probe << 32 | count as u64
    }

    /// Tell the other side of `count` windows, and of everything written before.
    pub(super) fn tell(counter: &AtomicU64, probe: u64, count: u32) {
        counter.store(Self::mark(probe, count), Ordering::Release);
    }
}

/// What the threads of one engine share.
#[derive(Debug)]
pub(super) struct Shared {
    /// receive arenas of each rank, touched first by their owner
    landings: Vec<Mutex<Arc<[Landing]>>>,
    /// `mail[from * world + to]`
    mail: Vec<Mailbox>,
    /// what others reach of each rank that carries a work
    pub(super) stores: Vec<Mutex<Arc<Store>>>,
    world: usize,
}

impl Shared {
    pub(super) fn new(world: usize) -> Self {
        Self {
            landings: (0..world).map(|_| Mutex::default()).collect(),
            mail: (0..world * world).map(|_| Mailbox::new(world)).collect(),
            stores: (0..world).map(|_| Mutex::default()).collect(),
            world,
        }
    }

    fn landings(&self, rank: usize) -> MutexGuard<'_, Arc<[Landing]>> {
        self.landings[rank].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mailbox(&self, from: usize, to: usize) -> &Mailbox {
        &self.mail[from * self.world + to]
    }
}

/// One thread's end: it copies from its own arena into the receiver's.
#[derive(Debug)]
pub(super) struct ThreadEndpoint {
    pub(super) rank: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) outgoing: Vec<u8>,
    /// arenas of each rank, those of the probe's ranks up to date
    landings: Vec<Arc<[Landing]>>,
    pub(super) probe: u64,
    seed: u64,
    /// words taken from each other rank's mailbox
    pub(super) taken: Vec<u64>,
    pub(super) several: Several,
    pub(super) carrying: Carrying,
}

impl ThreadEndpoint {
    pub(super) fn new(rank: usize, shared: Arc<Shared>) -> Self {
        let taken = vec![0; shared.world];
        let landings = (0..shared.world).map(|_| Arc::default()).collect();
        Self {
            rank,
            shared,
            outgoing: Vec::new(),
            landings,
            probe: u64::MAX,
            seed: 0,
            taken,
            several: Several::default(),
            carrying: Carrying::default(),
        }
    }

    /// Where transfers into a rank land.
    #[inline]
    pub(super) fn landing(&self, rank: usize, lane: usize) -> Result<&Landing, Stop> {
        self.landings[rank].get(lane).ok_or_else(|| no_arena(rank, lane))
    }

    fn copy_into(&self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        let mut landing = self.landing(to, 0)?.lock();
        for message in 0..window.count {
            let at = window.offset(message);
            landing[at..at + window.bytes].copy_from_slice(&self.outgoing[at..at + window.bytes]);
        }
        drop(landing);
        // A copy cannot hang; it can be so slow that the probe's time is up.
        if Instant::now() >= deadline { Err(Stop::Deadline) } else { Ok(()) }
    }
}

#[cold]
fn no_arena(rank: usize, lane: usize) -> Stop {
    Stop::Failed(format!("rank {rank} has no arena for {} transfers at the same time", lane + 1))
}

impl Endpoint for ThreadEndpoint {
    fn rank(&self) -> usize {
        self.rank
    }

    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError> {
        let size = usize::try_from(setup.arena).unwrap_or(usize::MAX);
        let refuse = |reason: std::collections::TryReserveError| TransportError::Memory {
            rank: self.rank,
            bytes: setup.memory(),
            reason: reason.to_string(),
        };
        // Free first, then allocate: two sets of buffers may not fit.
        self.outgoing = Vec::new();
        for landing in &**self.shared.landings(self.rank) {
            *landing.lock() = Vec::new();
        }
        let mut landings = Vec::new();
        for _ in 0..setup.lanes {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).map_err(refuse)?;
            payload::touch(&mut bytes, size);
            landings.push(Landing { bytes: Mutex::new(bytes), ..Landing::default() });
        }
        *self.shared.landings(self.rank) = landings.into();
        self.outgoing.try_reserve_exact(size).map_err(refuse)?;
        payload::touch(&mut self.outgoing, size);
        Payload::new(setup.seed, self.rank).fill(&mut self.outgoing);
        self.seed = setup.seed;
        Ok(())
    }

    fn arena(&self) -> usize {
        self.outgoing.len()
    }

    fn begin(&mut self, probe: &Probe) -> Result<(), Stop> {
        self.probe = probe.id;
        for rank in probe.ranks() {
            self.landings[rank] = Arc::clone(&self.shared.landings(rank));
        }
        Ok(())
    }

    fn notify(&mut self, to: usize, word: u64, _deadline: Instant) -> Result<(), Stop> {
        self.shared.mailbox(self.rank, to).put(self.probe, word);
        Ok(())
    }

    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop> {
        self.shared.mailbox(from, self.rank).take(self.probe, &mut self.taken[from], deadline)
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

    fn clear(&mut self, lane: usize, window: Window) {
        let Ok(landing) = self.landing(self.rank, lane) else { return };
        let mut bytes = landing.lock();
        for message in 0..window.count {
            let at = window.offset(message);
            bytes[at..at + window.bytes].fill(0xa5);
        }
    }

    fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String> {
        let landing = self.landing(self.rank, lane).map_err(|_| format!("nothing of rank {from} can have arrived"))?;
        payload::check(self.seed, from, &landing.lock(), window)
    }
}
