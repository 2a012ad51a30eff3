//! Primary contexts, and which one is current.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

use super::super::codes::{Code, INVALID_CONTEXT};
use super::super::driver::{CURRENT, Driver, LEDGER, call, context_handle, put};

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> Code {
    call("cuDevicePrimaryCtxRetain", |driver| {
        let ordinal = driver.device(device)?;
        driver.contexts[ordinal].retained.fetch_add(1, Ordering::AcqRel);
        put(context, context_handle(ordinal))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    call("cuDevicePrimaryCtxRelease_v2", |driver| {
        let ordinal = driver.device(device)?;
        let less = |held: u32| held.checked_sub(1);
        let held =
            driver.contexts[ordinal].retained.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).map_err(|_| INVALID_CONTEXT)?;
        if held == 1 {
            destroy(driver, ordinal);
        }
        Ok(())
    })
}

/// What is left in a context goes with it.
fn destroy(driver: &Driver, ordinal: usize) {
    let mut state = driver.state();
    let memory = state.memory.values().filter(|memory| memory.ordinal == ordinal).count();
    let pinned = state.pinned.values().filter(|pinned| pinned.ordinal == ordinal).count();
    let streams = state.streams.values().filter(|stream| stream.ordinal == ordinal).count();
    let events = state.events.values().filter(|event| event.ordinal == ordinal).count();
    for (what, count) in [("device memory", memory), ("pinned memory", pinned), ("streams", streams), ("events", events)] {
        // Of a GPU with an error that stays nothing can be given back.
        if count > 0 && driver.healthy(ordinal).is_ok() {
            LEDGER.violation(format!("leak: {count} of {what} when the context of device {ordinal} was destroyed"));
        }
    }
    for memory in state.memory.values().filter(|memory| memory.ordinal == ordinal && !memory.foreign) {
        memory.free();
    }
    state.memory.retain(|_, memory| memory.ordinal != ordinal);
    state.pinned.retain(|_, pinned| pinned.ordinal != ordinal);
    state.streams.retain(|_, stream| stream.ordinal != ordinal || drop_stream(stream));
    state.events.retain(|_, event| event.ordinal != ordinal);
    state.peers.retain(|&(from, to)| from != ordinal && to != ordinal);
    if let Some(stream) = state.defaults.remove(&ordinal) {
        stream.close();
    }
    driver.contexts[ordinal].sticky.store(0, Ordering::Release);
}

fn drop_stream(stream: &super::super::stream::Stream) -> bool {
    stream.close();
    false
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) -> Code {
    call("cuDevicePrimaryCtxGetState", |driver| {
        let context = &driver.contexts[driver.device(device)?];
        put(flags, context.flags.load(Ordering::Acquire))?;
        put(active, c_int::from(context.retained.load(Ordering::Acquire) > 0))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) -> Code {
    call("cuDevicePrimaryCtxSetFlags_v2", |driver| {
        driver.contexts[driver.device(device)?].flags.store(flags, Ordering::Release);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> Code {
    call("cuCtxSetCurrent", |driver| {
        let ordinal = if context.is_null() { None } else { Some(driver.context(context)?) };
        CURRENT.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend(ordinal);
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> Code {
    call("cuCtxGetCurrent", |_| {
        let top = CURRENT.with_borrow(|stack| stack.last().copied());
        put(context, top.map_or(std::ptr::null_mut(), context_handle))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> Code {
    call("cuCtxPushCurrent_v2", |driver| {
        let ordinal = driver.context(context)?;
        CURRENT.with_borrow_mut(|stack| stack.push(ordinal));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> Code {
    call("cuCtxPopCurrent_v2", |_| {
        let top = CURRENT.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        if context.is_null() { Ok(()) } else { put(context, context_handle(top)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetDevice(device: *mut c_int) -> Code {
    call("cuCtxGetDevice", |driver| put(device, driver.current()? as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    call("cuCtxSynchronize", |driver| driver.settle(driver.current()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Code {
    call("cuCtxGetStreamPriorityRange", |driver| {
        driver.current()?;
        put(least, 0)?;
        put(greatest, -5)
    })
}
