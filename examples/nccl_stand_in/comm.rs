//! Communicators.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::board::{Board, Id, Rest};
use super::described::{self, Described};
use super::log::{self, End};
use super::{Answer, CUDA_ERROR, Code, IN_PROGRESS, INVALID_ARGUMENT, INVALID_USAGE, LEDGER, NAMES, SUCCESS, cuda};

static COMMS: Mutex<BTreeMap<usize, Arc<Comm>>> = Mutex::new(BTreeMap::new());
static DESCRIBED: OnceLock<Described> = OnceLock::new();
static LAST_ERROR: Mutex<Option<CString>> = Mutex::new(None);

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The box.
pub fn described() -> &'static Described {
    DESCRIBED.get_or_init(|| {
        Described::read().unwrap_or_else(|why| {
            eprintln!("nccl_stand_in: {why}");
            Described::default()
        })
    })
}

/// Keep why a call failed, and log it.
pub fn complain(device: u32, text: &str) {
    log::warn(device, text);
    *lock(&LAST_ERROR) = CString::new(text).ok();
}

/// Why the last one failed; stays where it is, since callers keep the pointer.
pub fn last_error() -> *const std::ffi::c_char {
    static KEPT: Mutex<Vec<CString>> = Mutex::new(Vec::new());
    let text = lock(&LAST_ERROR).clone().unwrap_or_default();
    let mut kept = lock(&KEPT);
    if kept.last() != Some(&text) {
        kept.push(text);
    }
    kept.last().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// What is enqueued and not yet done.
#[derive(Default)]
struct Running {
    count: Mutex<usize>,
    changed: Condvar,
}

/// What is counted per pair of ranks, as each is enqueued.
#[derive(Default)]
pub struct Counts {
    pub sends: HashMap<usize, u64>,
    pub receives: HashMap<usize, u64>,
    /// signals that were waited for
    pub waits: HashMap<usize, u64>,
    /// peers that the log has told
    pub met: Vec<(usize, usize)>,
}

pub struct Comm {
    pub board: Board,
    pub rank: usize,
    pub gpu: u32,
    pub ordinal: u32,
    pub blocking: bool,
    aborted: AtomicBool,
    error: AtomicU32,
    /// answers of `ncclInProgress` to come
    busy: AtomicU32,
    /// meetings that go on in threads of their own
    meeting: AtomicU32,
    ready: AtomicBool,
    meetings: AtomicU64,
    pub counts: Mutex<Counts>,
    pub windows: Mutex<Vec<Option<[usize; 2]>>>,
    pub registered: Mutex<BTreeMap<usize, [usize; 2]>>,
    pub mapped: Mutex<HashMap<[u8; 64], cuda::Mapped>>,
    running: Running,
}

fn host_number() -> u64 {
    let mut hasher = DefaultHasher::new();
    log::host().hash(&mut hasher);
    hasher.finish()
}

impl Comm {
    /// A rank's place; the others may not be there yet.
    pub fn claim(id: &Id, ranks: usize, rank: usize, blocking: bool) -> Answer<Arc<Self>> {
        if ranks == 0 || rank >= ranks {
            return Err(INVALID_ARGUMENT);
        }
        let (gpu, ordinal) = cuda::gpu().inspect_err(|_| complain(0, "no CUDA context is current, or there is no driver"))?;
        let board = Board::open(id, ranks).inspect_err(|_| complain(ordinal, "the rank that made the unique id cannot be reached"))?;
        let own = board.rank(rank);
        if own.pid.compare_exchange(0, std::process::id(), Ordering::AcqRel, Ordering::Acquire).is_err() {
            complain(ordinal, &format!("rank {rank} is there already"));
            return Err(INVALID_ARGUMENT);
        }
        own.gpu.store(gpu, Ordering::Release);
        own.host.store(host_number(), Ordering::Release);
        if rank == 0 {
            log::version(described().nccl.version);
        }
        let comm = Self {
            board,
            rank,
            gpu,
            ordinal,
            blocking,
            aborted: AtomicBool::new(false),
            error: AtomicU32::new(SUCCESS),
            busy: AtomicU32::new(0),
            meeting: AtomicU32::new(0),
            ready: AtomicBool::new(false),
            meetings: AtomicU64::new(1),
            counts: Mutex::default(),
            windows: Mutex::default(),
            registered: Mutex::default(),
            mapped: Mutex::default(),
            running: Running::default(),
        };
        comm.board.arrive();
        Ok(Arc::new(comm))
    }

    /// Wait for the other ranks, and check that no two are on one GPU.
    pub fn settle(&self) -> Answer {
        self.until_met(1)?;
        for other in (0..self.board.ranks).filter(|&other| other != self.rank) {
            let other_end = self.end(other);
            if (other_end.gpu, other_end.host) == (self.gpu, host_number()) {
                let text = format!("Duplicate GPU detected : rank {} and rank {other} both on CUDA device {:x}", self.rank, self.gpu);
                complain(self.ordinal, &text);
                return Err(INVALID_USAGE);
            }
        }
        let [rank, ranks] = [self.rank, self.board.ranks];
        let text = format!("comm {:p} rank {rank} nranks {ranks} cudaDev {} nvmlDev {} - Init COMPLETE", self, self.ordinal, self.gpu);
        log::info(self.ordinal, &text);
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    fn until_met(&self, meetings: u64) -> Answer {
        let mut rest = Rest::default();
        while !self.board.have_met(meetings) {
            if self.is_aborted() {
                return Err(INVALID_USAGE);
            }
            rest.take();
        }
        Ok(())
    }

    /// Meet all other ranks.
    pub fn meet(&self) -> Answer {
        let meetings = self.meetings.fetch_add(1, Ordering::AcqRel) + 1;
        self.board.arrive();
        self.until_met(meetings)
    }

    /// Meet, then do what needs that: now, or if it does not block in a thread of its own.
    pub fn met(self: &Arc<Self>, then: impl FnOnce() + Send + 'static) -> Answer<Code> {
        if self.blocking {
            self.meet()?;
            then();
            return Ok(SUCCESS);
        }
        self.meeting.fetch_add(1, Ordering::AcqRel);
        let comm = Arc::clone(self);
        std::thread::spawn(move || {
            match comm.meet() {
                Ok(()) => then(),
                Err(code) => comm.fail(code),
            }
            comm.meeting.fetch_sub(1, Ordering::AcqRel);
        });
        Ok(IN_PROGRESS)
    }

    /// Where a rank is.
    pub fn end(&self, rank: usize) -> End {
        let of = self.board.rank(rank);
        let (gpu, host) = (of.gpu.load(Ordering::Acquire), of.host.load(Ordering::Acquire));
        End { rank, gpu, host, pid: of.pid.load(Ordering::Acquire) }
    }

    /// The way from rank to rank; logged when they first meet.
    pub fn way(&self, from: usize, to: usize) -> String {
        let (from, to) = (self.end(from), self.end(to));
        let way = log::way(described(), from, to, cuda::reaches(from.gpu, to.gpu));
        if from.rank != to.rank {
            let mut counts = lock(&self.counts);
            if !counts.met.contains(&(from.rank, to.rank)) {
                counts.met.push((from.rank, to.rank));
                drop(counts);
                log::channel(self, from, to, &way);
            }
        }
        way
    }

    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    /// Fail from now on.
    pub fn fail(&self, code: Code) {
        let first = self.error.compare_exchange(SUCCESS, code, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            let name = NAMES.get(code as usize).map_or("an error", |(name, _)| name);
            complain(self.ordinal, &format!("rank {}: {name}", self.rank));
        }
    }

    /// The error that came to it, or that it is still busy.
    pub fn async_error(&self) -> Code {
        match self.error.load(Ordering::Acquire) {
            SUCCESS => {
                let less = |left: u32| left.checked_sub(1);
                let busy = self.busy.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok();
                let meeting = !self.ready.load(Ordering::Acquire) || self.meeting.load(Ordering::Acquire) > 0;
                if busy || meeting { IN_PROGRESS } else { SUCCESS }
            }
            code => code,
        }
    }

    /// True if it can take work: all ranks are there, and nothing failed.
    pub fn usable(&self) -> Answer {
        match self.error.load(Ordering::Acquire) {
            SUCCESS if self.ready.load(Ordering::Acquire) && !self.is_aborted() => Ok(()),
            SUCCESS => Err(INVALID_USAGE),
            code => Err(code),
        }
    }

    /// What a call answers that went well: of one that does not block, that it goes on, for the next two questions.
    pub fn accepted(&self) -> Code {
        if self.blocking {
            return SUCCESS;
        }
        self.busy.store(2, Ordering::Release);
        IN_PROGRESS
    }

    /// Work begins to wait in a stream.
    pub fn begin(&self) {
        *lock(&self.running.count) += 1;
    }

    /// It is done.
    pub fn done(&self) {
        *lock(&self.running.count) -= 1;
        self.running.changed.notify_all();
    }

    fn drain(&self) {
        let mut count = lock(&self.running.count);
        while *count > 0 {
            count = self.running.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Leave: in peace once all work is done, or at once.
    pub fn leave(&self, abort: bool) {
        if abort {
            self.aborted.store(true, Ordering::Release);
        }
        self.drain();
        lock(&self.mapped).clear();
        let before = self.board.rank(self.rank).left.swap(if abort { 2 } else { 1 }, Ordering::AcqRel);
        let failed = self.error.load(Ordering::Acquire) != SUCCESS;
        if before != 0 || abort || failed {
            return;
        }
        for other in 0..self.board.ranks {
            let out = self.board.pair(self.rank, other);
            let [posted, taken] = [&out.posted, &out.taken].map(|count| count.load(Ordering::Acquire));
            if posted != taken {
                LEDGER.violation(format!("{} send(s) of rank {} to rank {other} were never received", posted - taken, self.rank));
            }
            let signals = self.board.pair(other, self.rank).signals.load(Ordering::Acquire);
            let waited = lock(&self.counts).waits.get(&other).copied().unwrap_or(0);
            if signals > waited {
                LEDGER.violation(format!("{} signal(s) of rank {other} to rank {} were never waited for", signals - waited, self.rank));
            }
        }
        let windows = lock(&self.windows).iter().flatten().count();
        let registered = lock(&self.registered).len();
        if windows + registered > 0 {
            LEDGER.violation(format!("leak: {windows} window(s) and {registered} buffer(s) registered with a communicator that ends"));
        }
    }
}

/// The handle of a new one.
pub fn keep(comm: Arc<Comm>) -> usize {
    static MADE: AtomicU64 = AtomicU64::new(1);
    let name = 0x2_0000 + MADE.fetch_add(1, Ordering::Relaxed) as usize * 0x10;
    lock(&COMMS).insert(name, comm);
    name
}

/// The communicator of a handle.
pub fn get(handle: usize) -> Answer<Arc<Comm>> {
    lock(&COMMS).get(&handle).cloned().ok_or_else(|| {
        LEDGER.violation(format!("communicator {handle:#x} is none, or was destroyed"));
        INVALID_ARGUMENT
    })
}

/// The handle is of nothing from now on.
pub fn forget(handle: usize) {
    lock(&COMMS).remove(&handle);
}

/// Communicators that were not destroyed, and work that was not done.
pub fn left() -> (usize, usize) {
    let work = |comm: &Arc<Comm>| comm.running.count.try_lock().map_or(0, |count| *count);
    COMMS.try_lock().map_or((0, 0), |comms| (comms.len(), comms.values().map(work).sum()))
}

/// How a call is to fail.
pub enum Failure {
    Now(Code),
    /// when its stream gets to it
    Late(Late),
}

/// Work that never ends, and the error that it makes the communicator have, if any.
#[derive(Clone, Copy)]
pub struct Late {
    pub why: Option<Code>,
}

pub fn failure(call: &str) -> Option<Failure> {
    let fail = described::failure(&described().nccl.fail, call)?;
    if fail.error == "hang" {
        return Some(Failure::Late(Late { why: None }));
    }
    let code = NAMES.iter().position(|(name, _)| *name == fail.error).map_or(CUDA_ERROR, |at| at as Code);
    Some(if fail.is_late() { Failure::Late(Late { why: Some(code) }) } else { Failure::Now(code) })
}
