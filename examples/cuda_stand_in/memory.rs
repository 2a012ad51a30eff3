//! A GPU's memory is a memfd of this process, which another one opens by way of `/proc`; nothing is left behind when the last of
//! them ends, however it ends.
//!
//! One page stands before the bytes: who has it open, and whether it was freed.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::codes::{Answer, INVALID_HANDLE, OUT_OF_MEMORY};
use super::described::is_alive;

const PAGE: usize = 4096;
const MAGIC: u64 = 0x746f_706f_6475_6461;

/// Allocations of this process so far.
static MADE: AtomicU64 = AtomicU64::new(1);

/// The page before the bytes, shared by all that have it open.
#[repr(C)]
struct Head {
    magic: u64,
    nonce: u64,
    freed: AtomicU32,
    /// a slot for each time that a process has it open
    openers: [AtomicU32; 128],
}

/// 64 bytes that name memory to another process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle {
    magic: u64,
    nonce: u64,
    size: u64,
    pid: u32,
    fd: i32,
    /// the GPU's place in the box
    pub gpu: u32,
    rest: [u32; 7],
}

const _: () = assert!(size_of::<Handle>() == 64);

impl Handle {
    /// True if this process made it.
    pub fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// Device memory, this process's own or another one's.
pub struct Memory {
    pub base: usize,
    pub size: usize,
    /// the GPU's place in the box
    pub gpu: usize,
    /// the device whose context it belongs to
    pub ordinal: usize,
    file: File,
    /// of another process
    pub foreign: bool,
    slot: Option<usize>,
    /// streams' work that has still to touch it
    users: AtomicUsize,
    /// times that it was opened, if it is another process's
    pub opened: AtomicUsize,
}

impl Memory {
    fn head(&self) -> &Head {
        // SAFETY: one page is mapped before the bytes for as long as this lives.
        unsafe { &*std::ptr::with_exposed_provenance::<Head>(self.base - PAGE) }
    }

    fn map(file: &File, size: usize) -> Answer<usize> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the system wants it.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size + PAGE, access, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(OUT_OF_MEMORY) } else { Ok(at.expose_provenance() + PAGE) }
    }

    /// Bytes that a kernel would find as they are: zeros.
    pub fn new(size: usize, gpu: usize, ordinal: usize) -> Answer<Self> {
        // SAFETY: a name and a flag.
        let fd = unsafe { libc::memfd_create(c"cuda_stand_in".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(OUT_OF_MEMORY);
        }
        // SAFETY: just made, and nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len((size + PAGE) as u64).map_err(|_| OUT_OF_MEMORY)?;
        let base = Self::map(&file, size)?;
        let nonce = (u64::from(std::process::id()) << 32) | MADE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the first page of the mapping, which nobody else knows yet; zeros are good for all that is not written.
        unsafe {
            let head = std::ptr::with_exposed_provenance_mut::<Head>(base - PAGE);
            (*head).magic = MAGIC;
            (*head).nonce = nonce;
        }
        let (users, opened) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self { base, size, gpu, ordinal, file, foreign: false, slot: None, users, opened })
    }

    /// What to tell another process.
    pub fn handle(&self) -> Handle {
        let (pid, fd) = (std::process::id(), self.file.as_raw_fd());
        Handle { magic: MAGIC, nonce: self.head().nonce, size: self.size as u64, pid, fd, gpu: self.gpu as u32, rest: [0; 7] }
    }

    /// Another process's memory; `quiet` if the owner need not know, as of NCCL's own mappings.
    pub fn open(handle: &Handle, ordinal: usize, quiet: bool) -> Answer<Self> {
        if handle.magic != MAGIC {
            return Err(INVALID_HANDLE);
        }
        let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
        let file = File::options().read(true).write(true).open(path).map_err(|_| INVALID_HANDLE)?;
        let size = usize::try_from(handle.size).map_err(|_| INVALID_HANDLE)?;
        if file.metadata().map_err(|_| INVALID_HANDLE)?.len() != (size + PAGE) as u64 {
            return Err(INVALID_HANDLE);
        }
        let base = Self::map(&file, size)?;
        let gpu = handle.gpu as usize;
        let (users, opened) = (AtomicUsize::new(0), AtomicUsize::new(1));
        let mut memory = Self { base, size, gpu, ordinal, file, foreign: true, slot: None, users, opened };
        let head = memory.head();
        if head.magic != MAGIC || head.nonce != handle.nonce || head.freed.load(Ordering::Acquire) != 0 {
            return Err(INVALID_HANDLE);
        }
        if !quiet {
            let free = |slot: &AtomicU32| slot.compare_exchange(0, std::process::id(), Ordering::AcqRel, Ordering::Relaxed).is_ok();
            memory.slot = Some(head.openers.iter().position(free).ok_or(OUT_OF_MEMORY)?);
        }
        Ok(memory)
    }

    /// True if a handle is of this memory.
    pub fn is_named(&self, handle: &Handle) -> bool {
        self.head().nonce == handle.nonce
    }

    /// True if two mappings are of the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        self.head().nonce == other.head().nonce
    }

    /// Processes that have it open and live.
    pub fn openers(&self) -> Vec<u32> {
        let open = self.head().openers.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|&pid| pid != 0);
        open.filter(|&pid| is_alive(pid)).collect()
    }

    /// Nobody opens it any more.
    pub fn free(&self) {
        self.head().freed.store(1, Ordering::Release);
    }

    /// Its owner freed it.
    pub fn is_freed(&self) -> bool {
        self.head().freed.load(Ordering::Acquire) != 0
    }

    /// Streams' work that has still to touch it.
    pub fn users(&self) -> usize {
        self.users.load(Ordering::Acquire)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.head().openers[slot].store(0, Ordering::Release);
        }
        // SAFETY: mapped by `map` with this size, and nobody points into it: work that does holds a share of this.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base - PAGE), self.size + PAGE) };
    }
}

/// Memory of the host that the driver knows.
pub struct Pinned {
    pub base: usize,
    pub size: usize,
    /// allocated here, not just registered
    pub own: bool,
    pub ordinal: usize,
    users: AtomicUsize,
}

impl Pinned {
    pub fn new(base: usize, size: usize, own: bool, ordinal: usize) -> Self {
        Self { base, size, own, ordinal, users: AtomicUsize::new(0) }
    }

    pub fn users(&self) -> usize {
        self.users.load(Ordering::Acquire)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.own {
            // SAFETY: allocated by `cuMemHostAlloc` with this size.
            unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base), self.size) };
        }
    }
}

/// Where bytes lie.
#[derive(Clone)]
pub enum Place {
    Device(Arc<Memory>),
    Pinned(Arc<Pinned>),
    /// any other memory of the host
    Pageable,
}

/// A piece of memory that a stream's work is going to touch.
pub struct Use {
    pub at: usize,
    pub place: Place,
}

impl Use {
    pub fn new(at: usize, place: Place) -> Self {
        match &place {
            Place::Device(memory) => drop(memory.users.fetch_add(1, Ordering::AcqRel)),
            Place::Pinned(pinned) => drop(pinned.users.fetch_add(1, Ordering::AcqRel)),
            Place::Pageable => {}
        }
        Self { at, place }
    }

    /// The GPU, if it is on one.
    pub fn gpu(&self) -> Option<usize> {
        if let Place::Device(memory) = &self.place { Some(memory.gpu) } else { None }
    }

    pub fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        match &self.place {
            Place::Device(memory) => drop(memory.users.fetch_sub(1, Ordering::AcqRel)),
            Place::Pinned(pinned) => drop(pinned.users.fetch_sub(1, Ordering::AcqRel)),
            Place::Pageable => {}
        }
    }
}
