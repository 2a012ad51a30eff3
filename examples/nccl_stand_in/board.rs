//! Where the ranks of a communicator meet: memory that the unique id leads to.
//!
//! The id names a memfd of the process that made it; the ranks open it by way of `/proc`, so that nothing is left behind.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::cuda::Handle;
use super::described::is_alive;
use super::{Answer, INTERNAL_ERROR, INVALID_ARGUMENT, SYSTEM_ERROR};

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Id(pub [u8; 128]);

const MAGIC: u64 = 0x746f_706f_6e63_636c;
const PAGE: usize = 4096;
/// sends that wait for their receives, of a pair of ranks
pub const SLOTS: u64 = 32;
/// windows of a communicator
pub const WINDOWS: usize = 256;

#[repr(C)]
struct Head {
    magic: u64,
    nonce: u64,
    /// number of ranks, once the first one has told it
    ranks: AtomicU32,
    /// times that a rank came to a meeting
    arrivals: AtomicU64,
}

/// What a rank tells of itself.
#[repr(C)]
pub struct Rank {
    pub pid: AtomicU32,
    /// place in the box
    pub gpu: AtomicU32,
    /// what its host's name comes to
    pub host: AtomicU64,
    /// 1 once it has left in peace, 2 once it has aborted
    pub left: AtomicU32,
    /// of a split
    pub color: AtomicI32,
    pub key: AtomicI32,
    pub id: Id,
    pub windows: [Window; WINDOWS],
}

/// A rank's part of a window.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Window {
    pub handle: Handle,
    pub offset: u64,
    pub size: u64,
}

/// What goes from one rank to another: sends in their order, and signals.
#[repr(C)]
pub struct Pair {
    /// sends that are told
    pub posted: AtomicU64,
    /// of those, the ones that were received
    pub taken: AtomicU64,
    pub signals: AtomicU64,
    pub slots: [Slot; SLOTS as usize],
}

/// A send that waits for its receive.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slot {
    pub handle: Handle,
    pub offset: u64,
    pub bytes: u64,
    /// `ncclDataType_t`
    pub kind: u32,
    /// the call
    pub of: u32,
}

/// The boards of the ids that this process made, which end with it.
static MADE: Mutex<Vec<File>> = Mutex::new(Vec::new());

pub struct Board {
    base: usize,
    length: usize,
    pub ranks: usize,
}

impl Board {
    /// Make an empty one; what leads to it.
    pub fn create() -> Answer<Id> {
        // SAFETY: a name and a flag.
        let fd = unsafe { libc::memfd_create(c"nccl_stand_in".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(SYSTEM_ERROR);
        }
        // SAFETY: just made, and nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(PAGE as u64).map_err(|_| SYSTEM_ERROR)?;
        let base = map(&file, PAGE)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = (since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40);
        // SAFETY: one page of zeros, which nobody else knows yet, and which is given back here.
        unsafe {
            let head = std::ptr::with_exposed_provenance_mut::<Head>(base);
            (*head).magic = MAGIC;
            (*head).nonce = nonce;
            libc::munmap(head.cast(), PAGE);
        }
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..16].copy_from_slice(&nonce.to_ne_bytes());
        bytes[16..20].copy_from_slice(&std::process::id().to_ne_bytes());
        bytes[20..24].copy_from_slice(&file.as_raw_fd().to_ne_bytes());
        MADE.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        Ok(Id(bytes))
    }

    /// Go to where an id leads.
    pub fn open(id: &Id, ranks: usize) -> Answer<Self> {
        let word = |at: usize| id.0[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let half = |at: usize| id.0[at..at + 4].try_into().map_or(0, i32::from_ne_bytes);
        if word(0) != MAGIC {
            return Err(INVALID_ARGUMENT);
        }
        let path = format!("/proc/{}/fd/{}", half(16), half(20));
        let file = File::options().read(true).write(true).open(path).map_err(|_| SYSTEM_ERROR)?;
        let length = PAGE + ranks * size_of::<Rank>() + ranks * ranks * size_of::<Pair>();
        if file.metadata().map_err(|_| SYSTEM_ERROR)?.len() < length as u64 {
            file.set_len(length as u64).map_err(|_| SYSTEM_ERROR)?;
        }
        let board = Self { base: map(&file, length)?, length, ranks };
        if board.head().magic != MAGIC || board.head().nonce != word(8) {
            return Err(SYSTEM_ERROR);
        }
        let told = board.head().ranks.compare_exchange(0, ranks as u32, Ordering::AcqRel, Ordering::Acquire);
        if told.is_err_and(|told| told != ranks as u32) {
            return Err(INVALID_ARGUMENT);
        }
        Ok(board)
    }

    fn head(&self) -> &Head {
        // SAFETY: the first page of the mapping.
        unsafe { &*std::ptr::with_exposed_provenance(self.base) }
    }

    pub fn rank(&self, rank: usize) -> &Rank {
        // SAFETY: `open` made room for each rank; callers have ranks below `ranks`.
        unsafe { &*std::ptr::with_exposed_provenance::<Rank>(self.base + PAGE).add(rank.min(self.ranks - 1)) }
    }

    pub fn pair(&self, from: usize, to: usize) -> &Pair {
        let at = self.base + PAGE + self.ranks * size_of::<Rank>();
        // SAFETY: as above, each with each.
        unsafe { &*std::ptr::with_exposed_provenance::<Pair>(at).add((from * self.ranks + to).min(self.ranks * self.ranks - 1)) }
    }

    /// Write into what others read only after they were told so.
    ///
    /// # Safety
    /// `to` is in this board, and nobody reads or writes it now.
    pub unsafe fn write<T>(to: &T, value: T) {
        // SAFETY: memory shared by mappings; the caller says that it is nobody else's now.
        unsafe { std::ptr::from_ref(to).cast_mut().write_volatile(value) };
    }

    /// Read what its owner may write meanwhile.
    ///
    /// # Safety
    /// `of` is in this board.
    pub unsafe fn read<T: Copy>(of: &T) -> T {
        // SAFETY: a word of memory shared by mappings.
        unsafe { std::ptr::from_ref(of).read_volatile() }
    }

    /// Come to a meeting; how many have come then.
    pub fn arrive(&self) {
        self.head().arrivals.fetch_add(1, Ordering::AcqRel);
    }

    /// True once all have come to so many meetings.
    pub fn have_met(&self, meetings: u64) -> bool {
        self.head().arrivals.load(Ordering::Acquire) >= meetings * self.ranks as u64
    }

    /// True if a rank's process is gone, or has aborted.
    pub fn is_gone(&self, rank: usize) -> bool {
        let rank = self.rank(rank);
        let pid = rank.pid.load(Ordering::Acquire);
        rank.left.load(Ordering::Acquire) == 2 || (pid != 0 && !is_alive(pid))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base), self.length) };
    }
}

fn map(file: &File, length: usize) -> Answer<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, wherever the system wants it.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(INTERNAL_ERROR) } else { Ok(at.expose_provenance()) }
}

/// Rest between looks: not at all first.
#[derive(Default)]
pub struct Rest(u32);

impl Rest {
    pub fn take(&mut self) {
        self.0 += 1;
        if self.0 < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(30));
        }
    }

    /// Something happened.
    pub fn over(&mut self) {
        self.0 = 0;
    }

    /// True now and then: time for what is dear.
    pub fn is_long(&self) -> bool {
        self.0 % 1000 == 999
    }
}
