//! Memory for NCCL, windows of it, and puts with signals: what NCCL has had since 2.29.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::board::{Board, WINDOWS, Window};
use super::super::comm::{self, Comm, complain, lock};
use super::super::work::{Op, width};
use super::super::{Answer, CUDA_ERROR, Code, INVALID_ARGUMENT, INVALID_USAGE, LEDGER, SUCCESS, cuda};
use super::{add, call, put};

/// What `ncclMemAlloc` gave: address and bytes.
static ALLOCATED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
/// What a window's address must be a multiple of within its memory.
const ALIGNMENT: usize = 4096;
const SYMMETRIC: c_int = 1;
const FIRST: usize = 0x4_0000;

#[unsafe(no_mangle)]
pub extern "C" fn ncclMemAlloc(to: *mut usize, bytes: usize) -> Code {
    call("ncclMemAlloc", || {
        LEDGER.bytes("ncclMemAlloc", bytes as u64);
        let at = cuda::allocate(bytes)?;
        lock(&ALLOCATED).insert(at, bytes);
        put(to, at).map(|()| SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclMemFree(at: usize) -> Code {
    call("ncclMemFree", || {
        if lock(&ALLOCATED).remove(&at).is_none() {
            LEDGER.violation(format!("ncclMemFree of {at:#x}, which is none of ncclMemAlloc's"));
            return Err(INVALID_ARGUMENT);
        }
        cuda::release(at).map(|()| SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommRegister(of: usize, at: usize, bytes: usize, handle: *mut usize) -> Code {
    static MADE: AtomicUsize = AtomicUsize::new(1);
    call("ncclCommRegister", || {
        let comm = comm::get(of)?;
        cuda::share(at)?;
        let name = 0x8_0000 + MADE.fetch_add(1, Ordering::Relaxed) * 0x10;
        lock(&comm.registered).insert(name, [at, bytes]);
        put(handle, name).map(|()| SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDeregister(of: usize, handle: usize) -> Code {
    call("ncclCommDeregister", || {
        let found = lock(&comm::get(of)?.registered).remove(&handle);
        let Some([at, bytes]) = found else {
            LEDGER.violation(format!("ncclCommDeregister of {handle:#x}, which is none"));
            return Err(INVALID_ARGUMENT);
        };
        if cuda::share(at).is_err() {
            LEDGER.violation(format!("{bytes} bytes were freed while they were registered with a communicator"));
        }
        Ok(SUCCESS)
    })
}

/// All ranks do this together; windows get their numbers in the order in which they do.
#[unsafe(no_mangle)]
pub extern "C" fn ncclCommWindowRegister(of: usize, at: usize, bytes: usize, window: *mut usize, flags: c_int) -> Code {
    call("ncclCommWindowRegister", || {
        let comm = comm::get(of)?;
        comm.usable()?;
        LEDGER.bytes("ncclCommWindowRegister", bytes as u64);
        let start = lock(&ALLOCATED).range(..=at).next_back().filter(|(start, room)| at + bytes <= *start + *room).map(|(start, _)| *start);
        let Some(start) = start else {
            complain(comm.ordinal, "a window is of memory from ncclMemAlloc");
            return Err(CUDA_ERROR);
        };
        if !(at - start).is_multiple_of(ALIGNMENT) || window.is_null() || flags & SYMMETRIC == 0 {
            complain(comm.ordinal, "a window begins at a multiple of 4096 bytes and is symmetric");
            return Err(INVALID_ARGUMENT);
        }
        let number = {
            let mut windows = lock(&comm.windows);
            windows.push(Some([at, bytes]));
            windows.len() - 1
        };
        if number >= WINDOWS {
            return Err(INVALID_USAGE);
        }
        let (handle, offset) = cuda::share(at)?;
        // SAFETY: only this rank writes here, and the others read after the meeting.
        unsafe { Board::write(&comm.board.rank(comm.rank).windows[number], Window { handle, offset: offset as u64, size: bytes as u64 }) };
        let told = Told(window);
        comm.met(move || {
            // Checked above to be somewhere.
            let _ = put(told.place(), FIRST + number * 0x10);
        })
    })
}

/// Where the number of a window is told, once all ranks have one.
struct Told(*mut usize);

// SAFETY: the caller keeps the place until the call is done, which another thread may see to.
unsafe impl Send for Told {}

impl Told {
    fn place(&self) -> *mut usize {
        self.0
    }
}

fn number_of(comm: &Comm, window: usize) -> Answer<usize> {
    let number = window.checked_sub(FIRST).map(|after| after / 0x10).ok_or(INVALID_ARGUMENT)?;
    let known = lock(&comm.windows).get(number).copied().flatten().is_some();
    known.then_some(number).ok_or(INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommWindowDeregister(of: usize, window: usize) -> Code {
    call("ncclCommWindowDeregister", || {
        let comm = comm::get(of)?;
        let Ok(number) = number_of(&comm, window) else {
            LEDGER.violation(format!("ncclCommWindowDeregister of {window:#x}, which is none"));
            return Err(INVALID_ARGUMENT);
        };
        // SAFETY: this rank's own; puts that look at it meanwhile are told so.
        unsafe { Board::write(&comm.board.rank(comm.rank).windows[number].size, 0) };
        if let Some([at, bytes]) = lock(&comm.windows)[number].take()
            && cuda::share(at).is_err()
        {
            LEDGER.violation(format!("{bytes} bytes were freed while they were a window"));
        }
        Ok(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclWinGetUserPtr(of: usize, window: usize, to: *mut usize) -> Code {
    call("ncclWinGetUserPtr", || {
        let comm = comm::get(of)?;
        let number = number_of(&comm, window)?;
        let at = lock(&comm.windows)[number].map_or(0, |[at, _]| at);
        put(to, at).map(|()| SUCCESS)
    })
}

/// What puts and signals are not yet let to say, as of 2.29.
fn plain(comm: &Comm, signal: c_int, context: c_int, flags: c_uint) -> Answer {
    if comm::described().cuda.version < 12_050 {
        complain(comm.ordinal, "puts need a driver of CUDA 12.5");
        return Err(INVALID_USAGE);
    }
    if signal != 0 || context != 0 || flags != 0 {
        complain(comm.ordinal, "signal, context and flags of a put are 0");
        return Err(INVALID_ARGUMENT);
    }
    Ok(())
}

fn peer_of(comm: &Comm, peer: c_int) -> Answer<usize> {
    usize::try_from(peer).ok().filter(|&peer| peer < comm.board.ranks).ok_or(INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclPutSignal(
    from: *const c_void,
    count: usize,
    kind: u32,
    peer: c_int,
    window: usize,
    offset: usize,
    signal: c_int,
    context: c_int,
    flags: c_uint,
    of: usize,
    stream: *mut c_void,
) -> Code {
    call("ncclPutSignal", || {
        let comm = comm::get(of)?;
        plain(&comm, signal, context, flags)?;
        let to = peer_of(&comm, peer)?;
        let bytes = width(kind).and_then(|width| width.checked_mul(count as u64)).ok_or(INVALID_ARGUMENT)?;
        LEDGER.bytes("ncclPutSignal", bytes);
        let number = number_of(&comm, window)?;
        let own = |[at, room]: &[usize; 2]| from.addr() >= *at && from.addr() + bytes as usize <= at + room;
        if !lock(&comm.windows).iter().flatten().any(own) {
            complain(comm.ordinal, "what is put does not lie in a window");
            return Err(INVALID_ARGUMENT);
        }
        let theirs = comm.board.rank(to).windows[number];
        if offset as u64 + bytes > theirs.size {
            LEDGER.violation(format!("{bytes} bytes put at byte {offset} of a window of {} of rank {to}", theirs.size));
            return Err(INVALID_ARGUMENT);
        }
        add(&comm, stream.addr(), || {
            comm.way(comm.rank, to);
            let offset = theirs.offset + offset as u64;
            Ok(vec![Op::Put { to, from: from.expose_provenance(), bytes, window: number, handle: theirs.handle, offset }])
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSignal(peer: c_int, signal: c_int, context: c_int, flags: c_uint, of: usize, stream: *mut c_void) -> Code {
    call("ncclSignal", || {
        let comm = comm::get(of)?;
        plain(&comm, signal, context, flags)?;
        let to = peer_of(&comm, peer)?;
        add(&comm, stream.addr(), || {
            comm.way(comm.rank, to);
            Ok(vec![Op::Signal { to }])
        })
    })
}

/// `ncclWaitSignalDesc_t`: how many signals of a peer, by number and context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Awaited {
    count: c_int,
    peer: c_int,
    signal: c_int,
    context: c_int,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclWaitSignal(count: c_int, awaited: *const Awaited, of: usize, stream: *mut c_void) -> Code {
    call("ncclWaitSignal", || {
        let comm = comm::get(of)?;
        let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
        if awaited.is_null() || count == 0 {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the caller says that there are so many.
        let awaited = unsafe { std::slice::from_raw_parts(awaited, count) };
        for one in awaited {
            plain(&comm, one.signal, one.context, 0)?;
            if one.count <= 0 {
                return Err(INVALID_ARGUMENT);
            }
            peer_of(&comm, one.peer)?;
        }
        add(&comm, stream.addr(), || {
            let mut counts = lock(&comm.counts);
            let wait = |one: &Awaited| {
                let from = one.peer as usize;
                let until = counts.waits.entry(from).or_default();
                *until += one.count as u64;
                Op::Wait { from, until: *until }
            };
            Ok(awaited.iter().map(wait).collect())
        })
    })
}
