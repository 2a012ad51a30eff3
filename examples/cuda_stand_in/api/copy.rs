//! Copies and fills. Those without a stream go by the default one.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUDA_MEMCPY2D_st, CUmemorytype_enum as Kind};

use super::super::codes::{Answer, Code, INVALID_VALUE};
use super::super::driver::{Driver, LEDGER, call};
use super::super::memory::{Place, Use};
use super::super::stream::Stream;

/// Rows of bytes: of the same length, each so much after the last one.
#[derive(Clone, Copy)]
struct Rows {
    width: usize,
    height: usize,
    from_pitch: usize,
    to_pitch: usize,
}

impl Rows {
    fn one(bytes: usize) -> Self {
        Self { width: bytes, height: 1, from_pitch: bytes, to_pitch: bytes }
    }

    fn bytes(self) -> usize {
        self.width * self.height
    }

    fn span(self, pitch: usize) -> usize {
        if self.height == 0 { 0 } else { pitch * (self.height - 1) + self.width }
    }
}

fn named(of: &Use) -> String {
    of.gpu().map_or_else(|| "host".to_owned(), |gpu| format!("gpu{gpu}"))
}

/// Move bytes, as fast as the box is said to be.
fn carry(driver: &Driver, from: &Use, to: &Use, rows: Rows) {
    let started = Instant::now();
    for row in 0..rows.height {
        // SAFETY: both were checked to span the rows when they were enqueued, and their shares keep them mapped; memory of the
        // host is the caller's to keep until the copy is done, as with the driver.
        unsafe { std::ptr::copy(from.pointer().add(row * rows.from_pitch), to.pointer().add(row * rows.to_pitch), rows.width) };
    }
    let rate = &driver.described.cuda.rate;
    let rate = match (from.gpu(), to.gpu()) {
        (Some(from), Some(to)) if from == to => rate.local,
        (Some(_), Some(_)) => rate.peer,
        _ => rate.host,
    };
    if rate > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(rows.bytes() as f64 / rate / 1e9).saturating_sub(started.elapsed()));
    }
    LEDGER.moved(format!("{}->{}", named(from), named(to)), rows.bytes() as u64);
}

/// A stream's handle, or the default stream.
fn stream_of(driver: &Driver, stream: Option<*mut c_void>) -> Answer<Arc<Stream>> {
    driver.current()?;
    driver.stream(stream.unwrap_or_default())
}

/// Enqueue a copy. One without a stream is waited for if the host's memory is part of it, one to or from pageable memory as the
/// driver does.
fn copy(name: &'static str, stream: Option<*mut c_void>, from: Use, to: Use, rows: Rows) -> impl FnOnce(&'static Driver) -> Answer {
    move |driver| {
        LEDGER.bytes(name, rows.bytes() as u64);
        let on = stream_of(driver, stream)?;
        let pageable = |of: &Use| matches!(of.place, Place::Pageable);
        let wait = match (pageable(&from), pageable(&to)) {
            (false, false) => stream.is_none() && (from.gpu().is_none() || to.gpu().is_none()),
            _ => stream.is_none() || pageable(&to),
        };
        let staged = (pageable(&from) && !wait).then(|| {
            let mut bytes = vec![0_u8; rows.span(rows.from_pitch)];
            // SAFETY: the caller says that the rows are there.
            unsafe { std::ptr::copy_nonoverlapping(from.pointer(), bytes.as_mut_ptr(), bytes.len()) };
            bytes
        });
        let number = driver.enqueue(&on, false, move || {
            match staged {
                Some(mut bytes) => carry(driver, &Use::new(bytes.as_mut_ptr().expose_provenance(), Place::Pageable), &to, rows),
                None => carry(driver, &from, &to, rows),
            }
            Ok(())
        });
        if wait {
            on.wait(number);
            driver.healthy(on.ordinal)?;
        }
        Ok(())
    }
}

/// The two ends of a copy between devices.
fn both(driver: &Driver, from: usize, to: usize, bytes: usize) -> Answer<(Use, Use)> {
    let state = driver.state();
    Ok((state.device_place(from, bytes)?, state.device_place(to, bytes)?))
}

fn host(driver: &Driver, at: *const c_void, bytes: usize) -> Answer<Use> {
    if at.is_null() && bytes > 0 {
        return Err(INVALID_VALUE);
    }
    driver.state().place(at.expose_provenance(), bytes)
}

fn to_device(name: &'static str, to: usize, from: *const c_void, bytes: usize, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        let from = host(driver, from, bytes)?;
        let to = driver.state().device_place(to, bytes)?;
        copy(name, stream, from, to, Rows::one(bytes))(driver)
    })
}

fn to_host(name: &'static str, to: *mut c_void, from: usize, bytes: usize, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        let to = host(driver, to, bytes)?;
        let from = driver.state().device_place(from, bytes)?;
        copy(name, stream, from, to, Rows::one(bytes))(driver)
    })
}

fn between(name: &'static str, to: usize, from: usize, bytes: usize, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        let (from, to) = both(driver, from, to, bytes)?;
        copy(name, stream, from, to, Rows::one(bytes))(driver)
    })
}

/// Addresses alone say where the memory is.
fn anywhere(name: &'static str, to: usize, from: usize, bytes: usize, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        let (from, to) = {
            let state = driver.state();
            (state.place(from, bytes)?, state.place(to, bytes)?)
        };
        copy(name, stream, from, to, Rows::one(bytes))(driver)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpy(to: usize, from: usize, bytes: usize) -> Code {
    anywhere("cuMemcpy", to, from, bytes, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyAsync(to: usize, from: usize, bytes: usize, stream: *mut c_void) -> Code {
    anywhere("cuMemcpyAsync", to, from, bytes, Some(stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoD_v2(to: usize, from: *const c_void, bytes: usize) -> Code {
    to_device("cuMemcpyHtoD_v2", to, from, bytes, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(to: usize, from: *const c_void, bytes: usize, stream: *mut c_void) -> Code {
    to_device("cuMemcpyHtoDAsync_v2", to, from, bytes, Some(stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: usize, bytes: usize) -> Code {
    to_host("cuMemcpyDtoH_v2", to, from, bytes, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: usize, bytes: usize, stream: *mut c_void) -> Code {
    to_host("cuMemcpyDtoHAsync_v2", to, from, bytes, Some(stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoD_v2(to: usize, from: usize, bytes: usize) -> Code {
    between("cuMemcpyDtoD_v2", to, from, bytes, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: *mut c_void) -> Code {
    between("cuMemcpyDtoDAsync_v2", to, from, bytes, Some(stream))
}

/// Between the memory of two contexts, whether or not they reach each other.
fn peer(
    name: &'static str,
    (to, to_context): (usize, *mut c_void),
    (from, from_context): (usize, *mut c_void),
    bytes: usize,
    stream: Option<*mut c_void>,
) -> Code {
    call(name, |driver| {
        let (own, other) = (driver.context(to_context)?, driver.context(from_context)?);
        let (from, to) = both(driver, from, to, bytes)?;
        let of = |end: &Use, ordinal: usize| !matches!(&end.place, Place::Device(memory) if memory.ordinal != ordinal);
        if !of(&to, own) || !of(&from, other) {
            LEDGER.violation(format!("{name} names a context that the memory is not of"));
            return Err(INVALID_VALUE);
        }
        copy(name, stream, from, to, Rows::one(bytes))(driver)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeer(to: usize, to_context: *mut c_void, from: usize, from_context: *mut c_void, bytes: usize) -> Code {
    peer("cuMemcpyPeer", (to, to_context), (from, from_context), bytes, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: usize,
    to_context: *mut c_void,
    from: usize,
    from_context: *mut c_void,
    bytes: usize,
    stream: *mut c_void,
) -> Code {
    peer("cuMemcpyPeerAsync", (to, to_context), (from, from_context), bytes, Some(stream))
}

fn rectangle(name: &'static str, told: *const CUDA_MEMCPY2D_st, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        if told.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and the caller says that it is one.
        let told = unsafe { &*told };
        let pitch = |pitch: usize| if pitch == 0 { told.WidthInBytes } else { pitch };
        let (from_pitch, to_pitch) = (pitch(told.srcPitch), pitch(told.dstPitch));
        if from_pitch < told.WidthInBytes || to_pitch < told.WidthInBytes {
            return Err(INVALID_VALUE);
        }
        let rows = Rows { width: told.WidthInBytes, height: told.Height, from_pitch, to_pitch };
        let place = |kind: Kind, host: *const c_void, device: usize, skipped: usize, pitch: usize| match kind {
            Kind::CU_MEMORYTYPE_HOST => driver.state().place(host.expose_provenance() + skipped, rows.span(pitch)),
            Kind::CU_MEMORYTYPE_DEVICE => driver.state().device_place(device + skipped, rows.span(pitch)),
            Kind::CU_MEMORYTYPE_UNIFIED => driver.state().place(device + skipped, rows.span(pitch)),
            Kind::CU_MEMORYTYPE_ARRAY => Err(INVALID_VALUE),
        };
        let skipped = told.srcY * from_pitch + told.srcXInBytes;
        let from = place(told.srcMemoryType, told.srcHost, told.srcDevice as usize, skipped, from_pitch)?;
        let skipped = told.dstY * to_pitch + told.dstXInBytes;
        let to = place(told.dstMemoryType, told.dstHost, told.dstDevice as usize, skipped, to_pitch)?;
        copy(name, stream, from, to, rows)(driver)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpy2D_v2(told: *const CUDA_MEMCPY2D_st) -> Code {
    rectangle("cuMemcpy2D_v2", told, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpy2DAsync_v2(told: *const CUDA_MEMCPY2D_st, stream: *mut c_void) -> Code {
    rectangle("cuMemcpy2DAsync_v2", told, Some(stream))
}

fn fill<T: Copy + Send + 'static>(name: &'static str, to: usize, value: T, count: usize, stream: Option<*mut c_void>) -> Code {
    call(name, |driver| {
        let bytes = count * size_of::<T>();
        LEDGER.bytes(name, bytes as u64);
        if !to.is_multiple_of(align_of::<T>()) {
            return Err(INVALID_VALUE);
        }
        let place = driver.state().device_place(to, bytes)?;
        let on = stream_of(driver, stream)?;
        driver.enqueue(&on, false, move || {
            // SAFETY: checked to have room for so many, aligned, and kept mapped by its share.
            unsafe { std::slice::from_raw_parts_mut(place.pointer().cast::<T>(), count) }.fill(value);
            Ok(())
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8_v2(to: usize, value: c_uchar, count: usize) -> Code {
    fill("cuMemsetD8_v2", to, value, count, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: usize, value: c_uchar, count: usize, stream: *mut c_void) -> Code {
    fill("cuMemsetD8Async", to, value, count, Some(stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD16Async(to: usize, value: c_ushort, count: usize, stream: *mut c_void) -> Code {
    fill("cuMemsetD16Async", to, value, count, Some(stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32_v2(to: usize, value: c_uint, count: usize) -> Code {
    fill("cuMemsetD32_v2", to, value, count, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(to: usize, value: c_uint, count: usize, stream: *mut c_void) -> Code {
    fill("cuMemsetD32Async", to, value, count, Some(stream))
}
