//! Streams, and words that they wait for and write.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::super::codes::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED};
use super::super::driver::{Driver, LEDGER, ON_STREAM, call, context_handle, handle, put};
use super::super::stream::Stream;

fn create(driver: &Driver, stream: *mut *mut c_void, flags: c_uint, priority: c_int) -> Result<(), Code> {
    let ordinal = driver.current()?;
    if flags > 1 || stream.is_null() {
        return Err(INVALID_VALUE);
    }
    let sticky = Arc::clone(&driver.contexts[ordinal].sticky);
    let mut state = driver.state();
    let name = state.name();
    state.streams.insert(name, Stream::start(ordinal, flags, priority.clamp(-5, 0), sticky));
    put(stream, handle(name))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) -> Code {
    call("cuStreamCreate", |driver| create(driver, stream, flags, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) -> Code {
    call("cuStreamCreateWithPriority", |driver| create(driver, stream, flags, priority))
}

/// What was enqueued is still done.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> Code {
    call("cuStreamDestroy_v2", |driver| {
        let found = driver.state().streams.remove(&stream.addr());
        let Some(found) = found else {
            LEDGER.violation(format!("cuStreamDestroy_v2 of {:#x}, which is none, or was destroyed", stream.addr()));
            return Err(INVALID_HANDLE);
        };
        found.close();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> Code {
    call("cuStreamSynchronize", |driver| {
        let stream = driver.stream(stream)?;
        let number = driver.enqueue(&stream, true, || Ok(()));
        stream.wait(number);
        driver.healthy(stream.ordinal)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: *mut c_void) -> Code {
    call("cuStreamQuery", |driver| {
        let stream = driver.stream(stream)?;
        driver.healthy(stream.ordinal)?;
        if stream.has_done(stream.last()) { Ok(()) } else { Err(NOT_READY) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetFlags(stream: *mut c_void, flags: *mut c_uint) -> Code {
    call("cuStreamGetFlags", |driver| put(flags, driver.stream(stream)?.flags))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetPriority(stream: *mut c_void, priority: *mut c_int) -> Code {
    call("cuStreamGetPriority", |driver| put(priority, driver.stream(stream)?.priority))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetCtx(stream: *mut c_void, context: *mut *mut c_void) -> Code {
    call("cuStreamGetCtx", |driver| put(context, context_handle(driver.stream(stream)?.ordinal)))
}

/// Nothing is ever captured here.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamIsCapturing(stream: *mut c_void, status: *mut c_int) -> Code {
    call("cuStreamIsCapturing", |driver| {
        driver.stream(stream)?;
        put(status, 0)
    })
}

/// True if a word is as a stream waits for it: `CU_STREAM_WAIT_VALUE_GEQ`, `EQ`, `AND` or `NOR`.
const fn is_met(word: u64, value: u64, flags: c_uint, narrow: bool) -> bool {
    match flags & 3 {
        0 if narrow => (word as u32).wrapping_sub(value as u32).cast_signed() >= 0,
        0 => word.wrapping_sub(value).cast_signed() >= 0,
        1 => word == value,
        2 => word & value != 0,
        _ => {
            let all = if narrow { u32::MAX as u64 } else { u64::MAX };
            !(word | value) & all != 0
        }
    }
}

/// Look again and again: at once first, then with rests.
fn wait_until(met: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while !met() {
        looks += 1;
        if looks < 200 {
            std::hint::spin_loop();
        } else if looks < 400 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

fn wait_value(name: &'static str, stream: *mut c_void, at: usize, value: u64, flags: c_uint, narrow: bool) -> Code {
    call(name, |driver| {
        if !driver.described.cuda.wait_value {
            return Err(NOT_SUPPORTED);
        }
        let width = if narrow { 4 } else { 8 };
        let stream = driver.stream(stream)?;
        let place = driver.state().device_place(at, width)?;
        if !at.is_multiple_of(width) {
            return Err(INVALID_VALUE);
        }
        driver.enqueue(&stream, false, move || {
            wait_until(|| {
                // SAFETY: aligned, in memory that its share keeps mapped; others write it as atomically.
                let word = unsafe {
                    if narrow {
                        u64::from(AtomicU32::from_ptr(place.pointer().cast()).load(Ordering::Acquire))
                    } else {
                        AtomicU64::from_ptr(place.pointer().cast()).load(Ordering::Acquire)
                    }
                };
                is_met(word, value, flags, narrow)
            });
            Ok(())
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitValue32_v2(stream: *mut c_void, at: usize, value: u32, flags: c_uint) -> Code {
    wait_value("cuStreamWaitValue32_v2", stream, at, u64::from(value), flags, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitValue64_v2(stream: *mut c_void, at: usize, value: u64, flags: c_uint) -> Code {
    wait_value("cuStreamWaitValue64_v2", stream, at, value, flags, false)
}

fn write_value(name: &'static str, stream: *mut c_void, at: usize, value: u64, narrow: bool) -> Code {
    call(name, |driver| {
        if !driver.described.cuda.wait_value {
            return Err(NOT_SUPPORTED);
        }
        let width = if narrow { 4 } else { 8 };
        let stream = driver.stream(stream)?;
        let place = driver.state().device_place(at, width)?;
        if !at.is_multiple_of(width) {
            return Err(INVALID_VALUE);
        }
        driver.enqueue(&stream, false, move || {
            // SAFETY: aligned, in memory that its share keeps mapped; others read it as atomically.
            unsafe {
                if narrow {
                    AtomicU32::from_ptr(place.pointer().cast()).store(value as u32, Ordering::Release);
                } else {
                    AtomicU64::from_ptr(place.pointer().cast()).store(value, Ordering::Release);
                }
            }
            Ok(())
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWriteValue32_v2(stream: *mut c_void, at: usize, value: u32, _flags: c_uint) -> Code {
    write_value("cuStreamWriteValue32_v2", stream, at, u64::from(value), true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWriteValue64_v2(stream: *mut c_void, at: usize, value: u64, _flags: c_uint) -> Code {
    write_value("cuStreamWriteValue64_v2", stream, at, value, false)
}

/// What a stream calls on the host with.
struct Passed(*mut c_void);

// SAFETY: the caller of `cuLaunchHostFunc` says that another thread may have it.
unsafe impl Send for Passed {}

impl Passed {
    fn take(self) -> *mut c_void {
        self.0
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchHostFunc(stream: *mut c_void, function: Option<unsafe extern "C" fn(*mut c_void)>, with: *mut c_void) -> Code {
    call("cuLaunchHostFunc", |driver| {
        let function = function.ok_or(INVALID_VALUE)?;
        let stream = driver.stream(stream)?;
        let with = Passed(with);
        driver.enqueue(&stream, false, move || {
            ON_STREAM.set(true);
            // SAFETY: the caller says that this can be called once, with this.
            unsafe { function(with.take()) };
            ON_STREAM.set(false);
            Ok(())
        });
        Ok(())
    })
}
