//! What the stand-in for NCCL calls; no part of the driver's interface, and counted nowhere.

use std::ffi::c_void;

use super::super::codes::{Code, INVALID_CONTEXT, INVALID_VALUE, NOT_INITIALIZED, SUCCESS};
use super::super::driver::{Driver, LEDGER, put};
use super::super::memory::{Handle, Memory, Place, Use};
use super::memory::{allocate, release};

fn with(answer: impl FnOnce(&'static Driver) -> Result<(), Code>) -> Code {
    Driver::get().map_or(Err(NOT_INITIALIZED), answer).err().unwrap_or(SUCCESS)
}

/// The current device, as its place in the box.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_gpu(gpu: *mut u32, ordinal: *mut u32) -> Code {
    with(|driver| {
        let current = driver.current()?;
        put(gpu, driver.visible[current] as u32)?;
        put(ordinal, current as u32)
    })
}

/// True if one GPU of the box reaches another one.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_reaches(from: u32, to: u32) -> bool {
    Driver::get().is_some_and(|driver| driver.described.reaches(from as usize, to as usize))
}

/// A work's data, which another thread gets.
struct Data(*mut c_void);

// SAFETY: the caller says so.
unsafe impl Send for Data {}

impl Data {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Have a stream call `work`; what it answers other than 0 is an error of the GPU from then on. The memory is in use until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stand_in_enqueue(
    stream: *mut c_void,
    pieces: *const [usize; 2],
    count: usize,
    work: unsafe extern "C" fn(*mut c_void) -> Code,
    data: *mut c_void,
) -> Code {
    with(|driver| {
        let stream = driver.stream(stream)?;
        let state = driver.state();
        let mut held = Vec::with_capacity(count);
        for at in 0..count {
            // SAFETY: the caller says that there are so many.
            let [at, bytes] = unsafe { *pieces.add(at) };
            held.push(state.device_place(at, bytes)?);
        }
        drop(state);
        let data = Data(data);
        driver.enqueue(&stream, false, move || {
            let held: Vec<Use> = held;
            // SAFETY: the caller says that this can be called once, with this.
            let code = unsafe { work(data.get()) };
            drop(held);
            if code == SUCCESS { Ok(()) } else { Err(code) }
        });
        Ok(())
    })
}

/// Allocate on the current device, and give back, as NCCL does for its callers.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_allocate(bytes: usize, pointer: *mut usize) -> Code {
    with(|driver| put(pointer, allocate(driver, bytes)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn stand_in_release(pointer: usize) -> Code {
    with(|driver| release(driver, "ncclMemFree", pointer))
}

/// How another process can reach device memory, and where in it an address is.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_share(pointer: usize, handle: *mut Handle, offset: *mut usize) -> Code {
    with(|driver| {
        let state = driver.state();
        let memory = state.device(pointer).filter(|memory| !memory.foreign).ok_or(INVALID_VALUE)?;
        put(handle, memory.handle())?;
        put(offset, pointer - memory.base)
    })
}

/// Another rank's memory, which may be this process's own; to be given back with [`stand_in_unmap`].
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_map(handle: *const Handle, pointer: *mut usize, token: *mut *mut c_void) -> Code {
    with(|driver| {
        // SAFETY: the caller passes one that it had.
        let handle = unsafe { &*handle };
        let found = if handle.is_own() {
            let state = driver.state();
            state.memory.values().find(|memory| !memory.foreign && memory.is_named(handle)).cloned().ok_or(INVALID_CONTEXT)?
        } else {
            std::sync::Arc::new(Memory::open(handle, 0, true)?)
        };
        let base = found.base;
        let held = Box::new(Use::new(base, Place::Device(found)));
        put(pointer, base)?;
        put(token, Box::into_raw(held).cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn stand_in_unmap(token: *mut c_void) {
    if !token.is_null() {
        // SAFETY: made by `stand_in_map`, and given back once.
        drop(unsafe { Box::from_raw(token.cast::<Use>()) });
    }
}

/// Bytes arrived by NCCL.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_moved(from: u32, to: u32, bytes: u64) {
    LEDGER.moved(format!("gpu{from}->gpu{to}"), bytes);
}
