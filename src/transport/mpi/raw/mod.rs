//! The calls into the MPI library that `mpi`'s safe interface cannot express: requests that are given up at a deadline
//! (its scopes wait for completion, which a dead link never brings) and one-sided puts (it has none).
//!
//! All `unsafe` of this engine stands here. The rule that makes it sound: memory that a request refers to is owned by
//! the object that owns the request ([`Arena`], [`Message`]), and is leaked, never freed, while a request is pending. Of
//! requests that are tested together ([`Many`]) the arenas count those that refer to them.

#![allow(unsafe_code, reason = "MPI is a C library; each block says why it is sound")]

mod many;

use std::os::raw::{c_int, c_void};

pub(super) use many::{Many, Side};

use mpi::ffi::{
    MPI_Cancel, MPI_Comm, MPI_Comm_get_attr, MPI_Datatype, MPI_Get_count, MPI_Info, MPI_Iprobe, MPI_Irecv, MPI_Isend, MPI_Put, MPI_Request,
    MPI_Status, MPI_Test, MPI_Testall, MPI_Win, MPI_Win_create, MPI_Win_flush, MPI_Win_free, MPI_Win_lock_all, MPI_Win_sync,
    MPI_Win_unlock_all, RSMPI_ANY_SOURCE, RSMPI_REQUEST_NULL, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T,
};
use mpi::traits::{AsRaw, Communicator};

/// `MPI_SUCCESS` of every MPI library.
const SUCCESS: c_int = 0;

/// `MPI_ERR_BUFFER` of the standard's order, for a part that is outside of its memory.
const OUTSIDE: c_int = 1;

/// True if the library says that it takes memory of GPUs; asked at run time, since it may be another one than at build time. `None` if it
/// does not know the question (an extension of Open MPI's, which MPICH has, too).
#[cfg(feature = "cuda")]
pub(super) fn takes_gpus() -> Option<bool> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const std::os::raw::c_char) -> *mut c_void;
    }
    // SAFETY: the null handle searches what is loaded (RTLD_DEFAULT); the function takes nothing and gives an int.
    unsafe {
        let found = dlsym(std::ptr::null_mut(), c"MPIX_Query_cuda_support".as_ptr());
        let asked = (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(found));
        asked.map(|ask| ask() == 1)
    }
}

/// A call that the library refused. Small, since calls inside timed regions return it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    call: &'static str,
    code: c_int,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with MPI error {}", self.call, self.code)
    }
}

#[inline]
fn checked(code: c_int, call: &'static str) -> Result<(), Refused> {
    if code == SUCCESS { Ok(()) } else { Err(Refused { call, code }) }
}

fn int(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

#[allow(clippy::cast_possible_wrap, reason = "MPI_Aint is i64 in one library and isize in the other; no arena is that large")]
fn aint(value: usize) -> mpi::ffi::MPI_Aint {
    value as mpi::ffi::MPI_Aint
}

fn byte() -> MPI_Datatype {
    // SAFETY: a constant that the library has set before main.
    unsafe { RSMPI_UINT8_T }
}

fn null_request() -> MPI_Request {
    // SAFETY: a constant that the library has set before main.
    unsafe { RSMPI_REQUEST_NULL }
}

/// A communicator of our own, so that nobody else's messages meet ours.
#[derive(Debug)]
pub(super) struct Comm {
    raw: MPI_Comm,
}

impl Comm {
    /// A duplicate of `world`; collective.
    pub(super) fn duplicate(world: &mpi::topology::SimpleCommunicator) -> Self {
        // Never freed: it lives as long as the job, and freeing is collective, which a lost rank makes impossible.
        let owner = std::mem::ManuallyDrop::new(world.duplicate());
        Self { raw: owner.as_raw() }
    }

    /// The largest tag that the library takes, at least 32767.
    pub(super) fn largest_tag(&self) -> i32 {
        const LEAST: c_int = 32_767;
        let (mut value, mut found): (*mut c_int, c_int) = (std::ptr::null_mut(), 0);
        // SAFETY: of this predefined attribute the library gives the address of an int that it owns.
        unsafe {
            let code = MPI_Comm_get_attr(self.raw, mpi::ffi::MPI_TAG_UB.cast_signed(), (&raw mut value).cast::<c_void>(), &raw mut found);
            if code == SUCCESS && found != 0 && !value.is_null() { (*value).max(LEAST) } else { LEAST }
        }
    }

    /// A message that has come in with this tag: its source and length.
    pub(super) fn probe(&self, tag: i32) -> Option<(usize, usize)> {
        let mut found: c_int = 0;
        let mut length: c_int = 0;
        // SAFETY: MPI_Status is a C struct without invalid bit patterns; the pointers live through the calls.
        let source = unsafe {
            let mut status: MPI_Status = std::mem::zeroed();
            if MPI_Iprobe(RSMPI_ANY_SOURCE, tag, self.raw, &raw mut found, &raw mut status) != SUCCESS || found == 0 {
                return None;
            }
            if MPI_Get_count(&raw const status, byte(), &raw mut length) != SUCCESS {
                return None;
            }
            status.MPI_SOURCE
        };
        Some((usize::try_from(source).ok()?, usize::try_from(length).ok()?))
    }
}

/// One message in memory of its own, being sent or received.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
    request: MPI_Request,
    pending: bool,
}

impl Message {
    /// Start sending `bytes`.
    pub(super) fn send(comm: &Comm, bytes: Vec<u8>, to: usize, tag: i32) -> Self {
        let mut message = Self { bytes, request: null_request(), pending: true };
        let (start, length) = (message.bytes.as_ptr(), int(message.bytes.len()));
        // SAFETY: the bytes are owned by the message, are not touched while it is pending, and are leaked if it is dropped then.
        let code = unsafe { MPI_Isend(start.cast(), length, byte(), int(to), tag, comm.raw, &raw mut message.request) };
        message.pending = code == SUCCESS;
        message
    }

    /// Start receiving `length` bytes.
    pub(super) fn receive(comm: &Comm, length: usize, from: usize, tag: i32) -> Self {
        let mut message = Self { bytes: vec![0; length], request: null_request(), pending: true };
        let start = message.bytes.as_mut_ptr();
        // SAFETY: as for `send`.
        let code = unsafe { MPI_Irecv(start.cast(), int(length), byte(), int(from), tag, comm.raw, &raw mut message.request) };
        message.pending = code == SUCCESS;
        message
    }

    /// True when the library is done with it.
    pub(super) fn done(&mut self) -> bool {
        if self.pending {
            let mut flag: c_int = 0;
            // SAFETY: the request is ours and pending.
            let code = unsafe { MPI_Test(&raw mut self.request, &raw mut flag, RSMPI_STATUS_IGNORE) };
            self.pending = code == SUCCESS && flag == 0;
        }
        !self.pending
    }

    /// The bytes, once `done`.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.pending { &[] } else { &self.bytes }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if self.pending {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

/// Words sent and received inside timed regions: memory and requests are made once and used again.
#[derive(Debug)]
pub(super) struct Words {
    outgoing: Box<[u64; Self::RING]>,
    sends: [MPI_Request; Self::RING],
    next: usize,
    incoming: Box<u64>,
    receive: MPI_Request,
}

impl Words {
    /// Words that can be under way at a time.
    const RING: usize = 16;

    pub(super) fn new() -> Self {
        Self {
            outgoing: Box::new([0; Self::RING]),
            sends: [null_request(); Self::RING],
            next: 0,
            incoming: Box::new(0),
            receive: null_request(),
        }
    }

    /// True when the next slot can be sent from. Asked of all slots once a round: words are acknowledged long before
    /// their slot comes again, and a question costs as much as a tenth of a short message.
    #[inline]
    pub(super) fn slot_free(&mut self) -> Result<bool, Refused> {
        if self.next > 0 {
            return Ok(true);
        }
        self.all_sent()
    }

    fn all_sent(&mut self) -> Result<bool, Refused> {
        let mut flag: c_int = 0;
        // SAFETY: the requests are null or pending; the library allows both.
        let code = unsafe { MPI_Testall(int(Self::RING), self.sends.as_mut_ptr(), &raw mut flag, mpi::ffi::RSMPI_STATUSES_IGNORE) };
        checked(code, "MPI_Testall")?;
        Ok(flag != 0)
    }

    /// Send a word from the next slot, which must be free.
    pub(super) fn send(&mut self, comm: &Comm, word: u64, to: usize, tag: i32) -> Result<(), Refused> {
        let slot = self.next;
        self.next = (slot + 1) % Self::RING;
        self.outgoing[slot] = word;
        let start = (&raw const self.outgoing[slot]).cast();
        // SAFETY: the slot is free, boxed (so it does not move) and leaked on drop.
        checked(unsafe { MPI_Isend(start, 8, byte(), int(to), tag, comm.raw, &raw mut self.sends[slot]) }, "MPI_Isend")
    }

    /// Start receiving a word.
    pub(super) fn post(&mut self, comm: &Comm, from: usize, tag: i32) -> Result<(), Refused> {
        let start = (&raw mut *self.incoming).cast();
        // SAFETY: boxed and leaked on drop; one receive at a time, see `give_up`.
        checked(unsafe { MPI_Irecv(start, 8, byte(), int(from), tag, comm.raw, &raw mut self.receive) }, "MPI_Irecv")
    }

    /// Start receiving a word of any rank, unless one is being received.
    pub(super) fn listen(&mut self, comm: &Comm, tag: i32) -> Result<(), Refused> {
        if self.receive != null_request() {
            return Ok(());
        }
        let start = (&raw mut *self.incoming).cast();
        // SAFETY: as for `post`.
        checked(unsafe { MPI_Irecv(start, 8, byte(), RSMPI_ANY_SOURCE, tag, comm.raw, &raw mut self.receive) }, "MPI_Irecv")
    }

    /// The word that was listened for, if it is there, and who sent it.
    #[inline]
    pub(super) fn heard(&mut self) -> Result<Option<(usize, u64)>, Refused> {
        let mut flag: c_int = 0;
        // SAFETY: MPI_Status is a C struct without invalid bit patterns; the request is null or pending.
        let source = unsafe {
            let mut status: MPI_Status = std::mem::zeroed();
            checked(MPI_Test(&raw mut self.receive, &raw mut flag, &raw mut status), "MPI_Test")?;
            status.MPI_SOURCE
        };
        Ok((flag != 0).then_some((usize::try_from(source).unwrap_or(usize::MAX), *self.incoming)))
    }

    /// The word that was posted for, if it is there.
    pub(super) fn arrived(&mut self) -> Result<Option<u64>, Refused> {
        // Not read before the library is done with it.
        if test(&mut self.receive)? { Ok(Some(*self.incoming)) } else { Ok(None) }
    }

    /// Withdraw a posted receive: its tag is never used again, so that nothing can match it, and cancelling is safe to try.
    ///
    /// Words that are still on their way, to a rank that takes none any more, keep their memory; the next ones get another,
    /// or a lost rank would hold up every later probe of this one.
    pub(super) fn give_up(&mut self) {
        if !self.all_sent().unwrap_or(false) {
            Box::leak(std::mem::replace(&mut self.outgoing, Box::new([0; Self::RING])));
            self.sends = [null_request(); Self::RING];
            self.next = 0;
        }
        if self.receive != null_request() {
            // SAFETY: the request is pending. Its memory is replaced by a fresh box, the old one leaked, since the
            // cancel may not succeed.
            unsafe {
                MPI_Cancel(&raw mut self.receive);
            }
            self.receive = null_request();
            Box::leak(std::mem::replace(&mut self.incoming, Box::new(0)));
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // 136 bytes, once a job: simpler than knowing that the library is done with each of them.
        Box::leak(std::mem::replace(&mut self.outgoing, Box::new([0; Self::RING])));
        Box::leak(std::mem::replace(&mut self.incoming, Box::new(0)));
    }
}

#[inline]
fn test(request: &mut MPI_Request) -> Result<bool, Refused> {
    let mut flag: c_int = 0;
    // SAFETY: the request is null or pending; the library allows both.
    checked(unsafe { MPI_Test(request, &raw mut flag, RSMPI_STATUS_IGNORE) }, "MPI_Test")?;
    Ok(flag != 0)
}

/// Memory that messages are sent from or received into, with the requests that refer to it.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// instead of those: address and length of memory that somebody else keeps for as long as this is disturbed
    far: Option<(usize, usize)>,
    requests: Vec<MPI_Request>,
    /// requests given up at a deadline, still pending as far as we know
    stale: Vec<MPI_Request>,
    /// requests in a [`Many`] that refer to this memory
    lent: usize,
}

impl Arena {
    /// Take over `bytes`; `window` requests will be posted at a time.
    pub(super) fn new(bytes: Vec<u8>, window: usize) -> Self {
        Self { bytes, far: None, requests: Vec::with_capacity(window), stale: Vec::new(), lent: 0 }
    }

    /// Over memory of a GPU, for a library that takes it. Whoever lends it keeps it until this is not disturbed any more.
    #[cfg(feature = "cuda")]
    pub(super) fn far((start, length): (u64, usize), window: usize) -> Self {
        let start = usize::try_from(start).unwrap_or(0);
        let mut arena = Self::new(Vec::new(), window);
        arena.far = Some((start, length));
        arena
    }

    pub(super) fn len(&self) -> usize {
        self.far.map_or(self.bytes.len(), |(_, length)| length)
    }

    /// Address of a part.
    #[inline]
    fn part(&self, at: usize, length: usize, call: &'static str) -> Result<*const u8, Refused> {
        let outside = Refused { call, code: OUTSIDE };
        match self.far {
            None => self.bytes.get(at..at + length).map(<[u8]>::as_ptr).ok_or(outside),
            Some((start, size)) if at + length <= size => Ok(std::ptr::with_exposed_provenance(start + at)),
            Some(_) => Err(outside),
        }
    }

    /// Address of a part that is written.
    #[inline]
    fn part_mut(&mut self, at: usize, length: usize, call: &'static str) -> Result<*mut u8, Refused> {
        let outside = Refused { call, code: OUTSIDE };
        match self.far {
            None => self.bytes.get_mut(at..at + length).map(<[u8]>::as_mut_ptr).ok_or(outside),
            Some((start, size)) if at + length <= size => Ok(std::ptr::with_exposed_provenance_mut(start + at)),
            Some(_) => Err(outside),
        }
    }

    /// True if the library may still read or write this memory on behalf of a probe that was given up.
    pub(super) fn disturbed(&mut self) -> bool {
        self.stale.retain_mut(|request| !matches!(test(request), Ok(true)));
        !self.stale.is_empty() || self.lent > 0
    }

    /// The memory, for filling, clearing and checking between probes.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Start sending a part.
    pub(super) fn send(&mut self, comm: &Comm, at: usize, length: usize, to: usize, tag: i32) -> Result<(), Refused> {
        let request = self.isend(comm, at, length, to, tag)?;
        self.requests.push(request);
        Ok(())
    }

    /// Start receiving into a part.
    pub(super) fn receive(&mut self, comm: &Comm, at: usize, length: usize, from: usize, tag: i32) -> Result<(), Refused> {
        let request = self.irecv(comm, at, length, from, tag)?;
        self.requests.push(request);
        Ok(())
    }

    /// The request must be kept with this arena.
    #[inline]
    fn isend(&mut self, comm: &Comm, at: usize, length: usize, to: usize, tag: i32) -> Result<MPI_Request, Refused> {
        let part = self.part(at, length, "MPI_Isend")?;
        let mut request = null_request();
        // SAFETY: the arena owns the memory, does not grow, and leaks it while requests are pending; what is lent to it is kept.
        checked(unsafe { MPI_Isend(part.cast(), int(length), byte(), int(to), tag, comm.raw, &raw mut request) }, "MPI_Isend")?;
        Ok(request)
    }

    /// The request must be kept with this arena.
    #[inline]
    fn irecv(&mut self, comm: &Comm, at: usize, length: usize, from: usize, tag: i32) -> Result<MPI_Request, Refused> {
        let part = self.part_mut(at, length, "MPI_Irecv")?;
        let mut request = null_request();
        // SAFETY: as for `isend`.
        checked(unsafe { MPI_Irecv(part.cast(), int(length), byte(), int(from), tag, comm.raw, &raw mut request) }, "MPI_Irecv")?;
        Ok(request)
    }

    /// True when all that was started is complete.
    #[inline]
    pub(super) fn complete(&mut self) -> Result<bool, Refused> {
        if let [request] = self.requests.as_mut_slice() {
            let done = test(request)?;
            if done {
                self.requests.clear();
            }
            return Ok(done);
        }
        let mut flag: c_int = 0;
        let (count, first) = (int(self.requests.len()), self.requests.as_mut_ptr());
        // SAFETY: `count` requests of ours; null statuses as MPI allows (MPI_STATUSES_IGNORE is the same constant in both libraries).
        let code = unsafe { MPI_Testall(count, first, &raw mut flag, mpi::ffi::RSMPI_STATUSES_IGNORE) };
        checked(code, "MPI_Testall")?;
        if flag != 0 {
            self.requests.clear();
        }
        Ok(flag != 0)
    }

    /// Give up what is pending: receives are cancelled where the library can, and the memory counts as disturbed until all is done.
    pub(super) fn give_up(&mut self, receives: bool) {
        for request in self.requests.drain(..) {
            self.stale.extend(withdrawn(request, receives));
        }
    }
}

/// A request that is given up, if it is still pending.
fn withdrawn(mut request: MPI_Request, receive: bool) -> Option<MPI_Request> {
    if matches!(test(&mut request), Ok(true)) {
        return None;
    }
    if receive {
        // SAFETY: the request is pending.
        unsafe {
            MPI_Cancel(&raw mut request);
        }
    }
    Some(request)
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.disturbed() || !self.requests.is_empty() {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

/// A window of one-sided memory over an arena of every rank. Freed only together; dropped alone, it is leaked.
#[derive(Debug)]
pub(super) struct PutWindow {
    raw: MPI_Win,
}

impl PutWindow {
    /// Expose `arena`; collective. The arena must be kept until [`Self::free`] or the end of the process.
    pub(super) fn create(comm: &Comm, arena: &mut Arena) -> Result<Self, Refused> {
        let size = arena.len();
        let start = arena.part_mut(0, size, "MPI_Win_create")?;
        let size = aint(size);
        // SAFETY: a null-initialised handle is filled by the call; MPI_INFO_NULL as the libraries define it is obtained
        // from a fresh, empty info object, which has the same meaning.
        unsafe {
            let mut info: MPI_Info = std::mem::zeroed();
            checked(mpi::ffi::MPI_Info_create(&raw mut info), "MPI_Info_create")?;
            let mut raw: MPI_Win = std::mem::zeroed();
            let code = MPI_Win_create(start.cast(), size, 1, info, comm.raw, &raw mut raw);
            mpi::ffi::MPI_Info_free(&raw mut info);
            checked(code, "MPI_Win_create")?;
            checked(MPI_Win_lock_all(0, raw), "MPI_Win_lock_all")?;
            Ok(Self { raw })
        }
    }

    /// Put a part of `arena` at `place` in the memory of `to`.
    pub(super) fn put(&self, arena: &Arena, at: usize, length: usize, to: usize, place: usize) -> Result<(), Refused> {
        let part = arena.part(at, length, "MPI_Put")?;
        // SAFETY: the origin is not changed before the flush that follows; the library knows the target's size.
        let code = unsafe {
            let target = aint(place);
            MPI_Put(part.cast(), int(length), byte(), int(to), target, int(length), byte(), self.raw)
        };
        checked(code, "MPI_Put")
    }

    /// Wait until all puts to `to` are in its memory. The library offers no way to give up on this.
    pub(super) fn flush(&self, to: usize) -> Result<(), Refused> {
        // SAFETY: the window is locked for all ranks.
        checked(unsafe { MPI_Win_flush(int(to), self.raw) }, "MPI_Win_flush")
    }

    /// Make what others have put visible to this rank's loads.
    pub(super) fn sync(&self) -> Result<(), Refused> {
        // SAFETY: the window is locked for all ranks.
        checked(unsafe { MPI_Win_sync(self.raw) }, "MPI_Win_sync")
    }

    /// Collective end.
    pub(super) fn free(mut self) -> Result<(), Refused> {
        // SAFETY: the window is ours, and no put is pending.
        unsafe {
            checked(MPI_Win_unlock_all(self.raw), "MPI_Win_unlock_all")?;
            checked(MPI_Win_free(&raw mut self.raw), "MPI_Win_free")
        }
    }
}
