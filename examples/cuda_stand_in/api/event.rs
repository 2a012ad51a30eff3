//! Events: marks in streams, with the time when a stream got there.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use super::super::codes::{Answer, Code, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use super::super::driver::{Driver, LEDGER, call, handle, put};
use super::super::stream::{Event, Record};

#[unsafe(no_mangle)]
pub extern "C" fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> Code {
    call("cuEventCreate", |driver| {
        let ordinal = driver.current()?;
        // Blocking wait is 1, no times 2, for other processes 4.
        if flags > 7 || flags & 6 == 4 || event.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut state = driver.state();
        let name = state.name();
        state.events.insert(name, Arc::new(Event::new(ordinal, flags & 2 == 0)));
        put(event, handle(name))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> Code {
    call("cuEventDestroy_v2", |driver| {
        driver.event(event)?;
        driver.state().events.remove(&event.addr());
        Ok(())
    })
}

fn record(driver: &Driver, event: *mut c_void, stream: *mut c_void) -> Answer {
    let (event, stream) = (driver.event(event)?, driver.stream(stream)?);
    if event.ordinal != stream.ordinal {
        LEDGER.violation(format!("an event of device {} recorded in a stream of device {}", event.ordinal, stream.ordinal));
        return Err(INVALID_HANDLE);
    }
    driver.healthy(stream.ordinal)?;
    let record = event.begin();
    driver.enqueue(&stream, true, move || {
        record.reach();
        Ok(())
    });
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> Code {
    call("cuEventRecord", |driver| record(driver, event, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, _flags: c_uint) -> Code {
    call("cuEventRecordWithFlags", |driver| record(driver, event, stream))
}

/// The recording that is asked about; none if the event was never recorded, which the driver takes for done and we do not.
fn asked(driver: &Driver, name: &str, event: *mut c_void) -> Answer<(Arc<Event>, Option<Arc<Record>>)> {
    let event = driver.event(event)?;
    let record = event.record();
    if record.is_none() {
        LEDGER.violation(format!("{name} of an event that was never recorded"));
    }
    Ok((event, record))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: *mut c_void) -> Code {
    call("cuEventQuery", |driver| {
        let (event, record) = asked(driver, "cuEventQuery", event)?;
        driver.healthy(event.ordinal)?;
        if record.is_none_or(|record| record.time().is_some()) { Ok(()) } else { Err(NOT_READY) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: *mut c_void) -> Code {
    call("cuEventSynchronize", |driver| {
        let (event, record) = asked(driver, "cuEventSynchronize", event)?;
        if let Some(record) = record {
            record.wait();
        }
        driver.healthy(event.ordinal)
    })
}

fn elapsed(driver: &Driver, name: &str, milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> Answer {
    let ((from, began), (to, ended)) = (asked(driver, name, from)?, asked(driver, name, to)?);
    if !from.timed || !to.timed {
        LEDGER.violation(format!("{name} of an event that was made without times"));
        return Err(INVALID_HANDLE);
    }
    driver.healthy(from.ordinal)?;
    let (began, ended) = (began.ok_or(INVALID_HANDLE)?, ended.ok_or(INVALID_HANDLE)?);
    let (began, ended) = (began.time().ok_or(NOT_READY)?, ended.time().ok_or(NOT_READY)?);
    let seconds = if ended >= began { (ended - began).as_secs_f64() } else { -(began - ended).as_secs_f64() };
    put(milliseconds, (seconds * 1e3) as f32)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> Code {
    call("cuEventElapsedTime", |driver| elapsed(driver, "cuEventElapsedTime", milliseconds, from, to))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime_v2(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> Code {
    call("cuEventElapsedTime_v2", |driver| elapsed(driver, "cuEventElapsedTime_v2", milliseconds, from, to))
}

/// Waits for the recording that the event has now; for none, not at all.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) -> Code {
    call("cuStreamWaitEvent", |driver| {
        let (stream, event) = (driver.stream(stream)?, driver.event(event)?);
        if let Some(record) = event.record() {
            driver.enqueue(&stream, true, move || {
                record.wait();
                Ok(())
            });
        }
        Ok(())
    })
}
