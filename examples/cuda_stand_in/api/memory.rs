//! Memory of devices, pinned memory of the host, and memory of other processes.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::codes::{self, Answer, Code, INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, PEER_UNSUPPORTED};
use super::super::driver::{Driver, LEDGER, call, context_handle, put};
use super::super::memory::{Handle, Memory, Pinned, Place};

/// Device memory in the current context.
pub fn allocate(driver: &Driver, bytes: usize) -> Answer<usize> {
    let ordinal = driver.current()?;
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let mut state = driver.state();
    if state.used(ordinal) + bytes as u64 > driver.described.memory() {
        return Err(OUT_OF_MEMORY);
    }
    let memory = Memory::new(bytes, driver.visible[ordinal], ordinal)?;
    let base = memory.base;
    state.memory.insert(base, Arc::new(memory));
    Ok(base)
}

/// Give it back; it must be at rest.
pub fn release(driver: &Driver, call: &str, at: usize) -> Answer {
    let mut state = driver.state();
    let Some(memory) = state.memory.get(&at).filter(|memory| !memory.foreign).cloned() else {
        LEDGER.violation(format!("{call} of {at:#x}, which is no allocation, or was freed"));
        return Err(INVALID_VALUE);
    };
    let users = memory.users();
    if users > 0 {
        LEDGER.violation(format!("{call} of {} bytes which {users} piece(s) of streams' work have still to touch", memory.size));
    }
    let openers = memory.openers();
    if !openers.is_empty() {
        LEDGER.violation(format!("{call} of {} bytes which process(es) {openers:?} have open", memory.size));
    }
    memory.free();
    state.memory.remove(&at);
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(pointer: *mut usize, bytes: usize) -> Code {
    call("cuMemAlloc_v2", |driver| {
        LEDGER.bytes("cuMemAlloc_v2", bytes as u64);
        put(pointer, allocate(driver, bytes)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(pointer: usize) -> Code {
    call("cuMemFree_v2", |driver| {
        driver.current()?;
        if pointer == 0 { Ok(()) } else { release(driver, "cuMemFree_v2", pointer) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    call("cuMemGetInfo_v2", |driver| {
        let ordinal = driver.current()?;
        let (all, used) = (driver.described.memory(), driver.state().used(ordinal));
        put(free, all.saturating_sub(used) as usize)?;
        put(total, all as usize)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetAddressRange_v2(base: *mut usize, bytes: *mut usize, pointer: usize) -> Code {
    call("cuMemGetAddressRange_v2", |driver| {
        let state = driver.state();
        let memory = state.device(pointer).ok_or(codes::NOT_FOUND)?;
        if !base.is_null() {
            put(base, memory.base)?;
        }
        if bytes.is_null() { Ok(()) } else { put(bytes, memory.size) }
    })
}

fn pin(driver: &Driver, pointer: *mut *mut c_void, bytes: usize) -> Answer {
    let ordinal = driver.current()?;
    if bytes == 0 || pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the system wants it.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(OUT_OF_MEMORY);
    }
    let base = at.expose_provenance();
    driver.state().pinned.insert(base, Arc::new(Pinned::new(base, bytes, true, ordinal)));
    put(pointer, at)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, _flags: c_uint) -> Code {
    call("cuMemHostAlloc", |driver| {
        LEDGER.bytes("cuMemHostAlloc", bytes as u64);
        pin(driver, pointer, bytes)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize) -> Code {
    call("cuMemAllocHost_v2", |driver| {
        LEDGER.bytes("cuMemAllocHost_v2", bytes as u64);
        pin(driver, pointer, bytes)
    })
}

fn unpin(driver: &Driver, call: &str, pointer: *mut c_void, own: bool, missing: Code) -> Answer {
    driver.current()?;
    let mut state = driver.state();
    let Some(pinned) = state.pinned.get(&pointer.addr()).filter(|pinned| pinned.own == own) else {
        LEDGER.violation(format!("{call} of {:#x}, which is none, or was freed", pointer.addr()));
        return Err(missing);
    };
    let users = pinned.users();
    if users > 0 {
        LEDGER.violation(format!("{call} of {} bytes which {users} piece(s) of streams' work have still to touch", pinned.size));
    }
    state.pinned.remove(&pointer.addr());
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(pointer: *mut c_void) -> Code {
    call("cuMemFreeHost", |driver| unpin(driver, "cuMemFreeHost", pointer, true, INVALID_VALUE))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, _flags: c_uint) -> Code {
    call("cuMemHostRegister_v2", |driver| {
        let ordinal = driver.current()?;
        let base = pointer.expose_provenance();
        let mut state = driver.state();
        if pointer.is_null() || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if state.host(base).is_some() || state.host(base + bytes - 1).is_some() {
            return Err(codes::REGISTERED);
        }
        state.pinned.insert(base, Arc::new(Pinned::new(base, bytes, false, ordinal)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(pointer: *mut c_void) -> Code {
    call("cuMemHostUnregister", |driver| unpin(driver, "cuMemHostUnregister", pointer, false, codes::NOT_REGISTERED))
}

/// One address serves both sides.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostGetDevicePointer_v2(device: *mut usize, host: *mut c_void, flags: c_uint) -> Code {
    call("cuMemHostGetDevicePointer_v2", |driver| {
        let known = driver.state().host(host.addr()).is_some();
        if flags != 0 || !known {
            return Err(INVALID_VALUE);
        }
        put(device, host.addr())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcGetMemHandle(handle: *mut Handle, pointer: usize) -> Code {
    call("cuIpcGetMemHandle", |driver| {
        driver.current()?;
        let state = driver.state();
        let memory = state.device(pointer).filter(|memory| !memory.foreign).ok_or(INVALID_VALUE)?;
        put(handle, memory.handle())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcOpenMemHandle_v2(pointer: *mut usize, handle: Handle, flags: c_uint) -> Code {
    call("cuIpcOpenMemHandle_v2", |driver| {
        let ordinal = driver.current()?;
        // Access to peers when first needed is the only flag, and must be given.
        if flags != 1 || pointer.is_null() {
            return Err(INVALID_VALUE);
        }
        if handle.is_own() {
            return Err(INVALID_CONTEXT);
        }
        let opened = open(driver, &handle, ordinal, false)?;
        put(pointer, opened)
    })
}

/// Map another process's memory for a device; what is open already is counted once more.
pub fn open(driver: &Driver, handle: &Handle, ordinal: usize, quiet: bool) -> Answer<usize> {
    if !driver.described.reaches(driver.visible[ordinal], handle.gpu as usize) {
        return Err(PEER_UNSUPPORTED);
    }
    let memory = Memory::open(handle, ordinal, quiet)?;
    let mut state = driver.state();
    let same = |open: &&Arc<Memory>| open.foreign && open.ordinal == ordinal && open.is_same(&memory);
    if let Some(open) = state.memory.values().find(same) {
        open.opened.fetch_add(1, Ordering::AcqRel);
        return Ok(open.base);
    }
    let base = memory.base;
    state.memory.insert(base, Arc::new(memory));
    Ok(base)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcCloseMemHandle(pointer: usize) -> Code {
    call("cuIpcCloseMemHandle", |driver| {
        driver.current()?;
        let mut state = driver.state();
        let Some(memory) = state.memory.get(&pointer).filter(|memory| memory.foreign) else {
            LEDGER.violation(format!("cuIpcCloseMemHandle of {pointer:#x}, which is not open"));
            return Err(INVALID_VALUE);
        };
        if memory.is_freed() {
            LEDGER.violation(format!("{} bytes were freed by their owner before cuIpcCloseMemHandle", memory.size));
        }
        let users = memory.users();
        if users > 0 {
            LEDGER.violation(format!(
                "cuIpcCloseMemHandle of {} bytes which {users} piece(s) of streams' work have still to touch",
                memory.size
            ));
        }
        if memory.opened.fetch_sub(1, Ordering::AcqRel) == 1 {
            state.memory.remove(&pointer);
        }
        Ok(())
    })
}

/// Numbers of `CUpointer_attribute` in cuda.h.
fn tell(driver: &Driver, to: *mut c_void, attribute: c_int, pointer: usize) -> Answer {
    let place = driver.state().place(pointer, 0)?;
    let (kind, base, size, ordinal) = match &place.place {
        Place::Device(memory) => (2, memory.base, memory.size, memory.ordinal),
        Place::Pinned(pinned) => (1, pinned.base, pinned.size, pinned.ordinal),
        Place::Pageable => return Err(INVALID_VALUE),
    };
    match attribute {
        1 => put(to.cast(), context_handle(ordinal)),
        2 => put(to.cast::<c_uint>(), kind),
        3 => put(to.cast(), pointer),
        4 if kind == 1 => put(to.cast(), pointer),
        4 => Err(INVALID_VALUE),
        7 => put(to.cast::<u64>(), base as u64),
        8 => put(to.cast::<c_uint>(), 0),
        9 => put(to.cast::<c_int>(), ordinal as c_int),
        10 => put(to.cast::<c_uint>(), c_uint::from(kind == 2)),
        11 => put(to.cast(), base),
        12 => put(to.cast(), size),
        13 => put(to.cast::<c_uint>(), 1),
        _ => Err(NOT_SUPPORTED),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuPointerGetAttribute(to: *mut c_void, attribute: c_int, pointer: usize) -> Code {
    call("cuPointerGetAttribute", |driver| tell(driver, to, attribute, pointer))
}

/// Of memory that the driver does not know, each is zero and the call goes well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttributes(count: c_uint, attributes: *const c_int, to: *const *mut c_void, pointer: usize) -> Code {
    call("cuPointerGetAttributes", |driver| {
        if attributes.is_null() || to.is_null() {
            return Err(INVALID_VALUE);
        }
        for at in 0..count as usize {
            // SAFETY: the caller says that there are so many of both.
            let (attribute, to) = unsafe { (*attributes.add(at), *to.add(at)) };
            if tell(driver, to, attribute, pointer).is_err() {
                match attribute {
                    1 | 3 | 4 | 7 | 11 | 12 => put(to.cast::<u64>(), 0)?,
                    9 => put(to.cast::<c_int>(), -2)?,
                    _ => put(to.cast::<c_uint>(), 0)?,
                }
            }
        }
        Ok(())
    })
}
