//! Communicators: made, asked and ended.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::super::board::{Board, Id};
use super::super::comm::{self, Comm};
use super::super::{Answer, Code, INVALID_ARGUMENT, NAMES, SUCCESS, split};
use super::{call, meet, put};

/// The beginning of `ncclConfig_t`, which all versions have.
#[repr(C)]
pub struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
}

/// What a field says that the caller left alone.
const UNDEFINED: c_int = c_int::MIN;
const MAGIC: c_uint = 0xcafe_beef;

unsafe fn blocking(config: *const Config) -> Answer<bool> {
    if config.is_null() {
        return Ok(true);
    }
    // SAFETY: not null, and the caller says that it is one.
    let config = unsafe { &*config };
    if config.magic != MAGIC || config.size < size_of::<Config>() {
        return Err(INVALID_ARGUMENT);
    }
    match config.blocking {
        0 => Ok(false),
        1 | UNDEFINED => Ok(true),
        _ => Err(INVALID_ARGUMENT),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetVersion(version: *mut c_int) -> Code {
    call("ncclGetVersion", || put(version, comm::described().nccl.version).map(|()| SUCCESS))
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: Code) -> *const c_char {
    NAMES.get(code as usize).map_or(c"unknown result code", |(_, text)| *text).as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: usize) -> *const c_char {
    let text = comm::last_error();
    if text.is_null() { CStr::as_ptr(c"") } else { text }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetUniqueId(id: *mut Id) -> Code {
    call("ncclGetUniqueId", || put(id, Board::create()?).map(|()| SUCCESS))
}

fn make(to: *mut usize, ranks: c_int, id: &Id, rank: c_int, blocking: bool) -> Answer<Code> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let number = |number: c_int| usize::try_from(number).map_err(|_| INVALID_ARGUMENT);
    let made = Comm::claim(id, number(ranks)?, number(rank)?, blocking)?;
    let handle = comm::keep(made.clone());
    put(to, handle)?;
    meet(&made).inspect_err(|_| {
        comm::forget(handle);
        // SAFETY: checked above.
        unsafe { to.write(0) };
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommInitRank(to: *mut usize, ranks: c_int, id: Id, rank: c_int) -> Code {
    call("ncclCommInitRank", || make(to, ranks, &id, rank, true))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(to: *mut usize, ranks: c_int, id: Id, rank: c_int, config: *const Config) -> Code {
    // SAFETY: as the caller says.
    call("ncclCommInitRankConfig", || make(to, ranks, &id, rank, unsafe { blocking(config) }?))
}

/// The new communicator blocks as the old one does, unless the caller says otherwise; it is there when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommSplit(of: usize, color: c_int, key: c_int, to: *mut usize, config: *const Config) -> Code {
    call("ncclCommSplit", || {
        let of = comm::get(of)?;
        of.usable()?;
        // SAFETY: as the caller says.
        let blocks = if config.is_null() { of.blocking } else { unsafe { blocking(config) }? };
        let made = split::split(&of, color, key, blocks)?;
        put(to, made.map_or(0, comm::keep))?;
        Ok(of.accepted())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommFinalize(of: usize) -> Code {
    call("ncclCommFinalize", || {
        comm::get(of)?.leave(false);
        Ok(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDestroy(of: usize) -> Code {
    call("ncclCommDestroy", || {
        comm::get(of)?.leave(false);
        comm::forget(of);
        Ok(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommAbort(of: usize) -> Code {
    call("ncclCommAbort", || {
        comm::get(of)?.leave(true);
        comm::forget(of);
        Ok(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommCount(of: usize, count: *mut c_int) -> Code {
    call("ncclCommCount", || put(count, comm::get(of)?.board.ranks as c_int).map(|()| SUCCESS))
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommUserRank(of: usize, rank: *mut c_int) -> Code {
    call("ncclCommUserRank", || put(rank, comm::get(of)?.rank as c_int).map(|()| SUCCESS))
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommCuDevice(of: usize, device: *mut c_int) -> Code {
    call("ncclCommCuDevice", || put(device, comm::get(of)?.ordinal as c_int).map(|()| SUCCESS))
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommGetAsyncError(of: usize, error: *mut Code) -> Code {
    call("ncclCommGetAsyncError", || put(error, comm::get(of)?.async_error()).map(|()| SUCCESS))
}
