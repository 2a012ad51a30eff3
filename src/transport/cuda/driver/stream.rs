use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUevent, CUmemorytype, CUstream};

use super::api::Api;
use super::error::NOT_READY;
use super::{Buffer, CudaError, Gpu, Pinned};

/// Work of a GPU, one thing after another.
#[derive(Debug)]
pub struct Stream {
    gpu: Arc<Gpu>,
    raw: CUstream,
}

// SAFETY: may be used by any thread with the context current, which every user of it makes so.
unsafe impl Send for Stream {}

impl Stream {
    /// A stream of its own, which waits for no other.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, CudaError> {
        gpu.enter()?;
        Ok(Self { raw: Self::create(gpu.api)?, gpu: Arc::clone(gpu) })
    }

    /// In the context that is current.
    pub(super) fn create(api: &Api) -> Result<CUstream, CudaError> {
        /// `CU_STREAM_NON_BLOCKING`.
        const ALONE: u32 = 1;
        let mut raw: CUstream = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        api.checked("cuStreamCreate", unsafe { (api.stream_create)(&raw mut raw, ALONE) })?;
        Ok(raw)
    }

    /// The GPU whose work it is.
    pub const fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// For libraries that enqueue work by themselves.
    pub const fn raw(&self) -> CUstream {
        self.raw
    }

    /// Copy between buffers of GPUs: within one GPU, from or into mapped memory, or between two GPUs of this process.
    #[inline]
    pub fn copy(&self, into: &Buffer, to: usize, from: &Buffer, at: usize, length: usize) -> Result<(), CudaError> {
        let ((target, there), (source, here)) = (into.part(to, length)?, from.part(at, length)?);
        let api = self.gpu.api;
        // SAFETY: both parts lie within their buffers, which whoever enqueues work keeps until it is done.
        if there == here {
            api.checked("cuMemcpyDtoDAsync", unsafe { (api.copy)(target, source, length, self.raw) })
        } else {
            api.checked("cuMemcpyPeerAsync", unsafe { (api.copy_peer)(target, there, source, here, length, self.raw) })
        }
    }

    /// Copy rows of `width` bytes within one GPU, each so far from the one before (`steps`: into, from).
    pub fn copy_rows(
        &self,
        (into, to): (&Buffer, usize),
        (from, at): (&Buffer, usize),
        (width, rows): (usize, usize),
        steps: (usize, usize),
    ) -> Result<(), CudaError> {
        let reach = |step: usize| step.saturating_mul(rows.saturating_sub(1)).saturating_add(width);
        let (target, _) = into.part(to, reach(steps.0))?;
        let (source, _) = from.part(at, reach(steps.1))?;
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: source,
            srcArray: std::ptr::null_mut(),
            srcPitch: steps.1,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: target,
            dstArray: std::ptr::null_mut(),
            dstPitch: steps.0,
            WidthInBytes: width,
            Height: rows,
        };
        let api = self.gpu.api;
        // SAFETY: all rows lie within their buffers.
        api.checked("cuMemcpy2DAsync", unsafe { (api.copy_rows)(&raw const copy, self.raw) })
    }

    /// Copy from the host's memory, which must not change before it is done.
    pub fn write(&self, into: &Buffer, to: usize, from: &Pinned, at: usize, length: usize) -> Result<(), CudaError> {
        let ((target, _), source) = (into.part(to, length)?, from.part(at, length)?);
        let api = self.gpu.api;
        // SAFETY: both parts lie within their memory.
        api.checked("cuMemcpyHtoDAsync", unsafe { (api.copy_in)(target, source.cast(), length, self.raw) })
    }

    /// Copy into the host's memory, which must not be looked at before it is done.
    pub fn read(&self, into: &mut Pinned, to: usize, from: &Buffer, at: usize, length: usize) -> Result<(), CudaError> {
        let (target, (source, _)) = (into.part(to, length)?, from.part(at, length)?);
        let api = self.gpu.api;
        // SAFETY: both parts lie within their memory.
        api.checked("cuMemcpyDtoHAsync", unsafe { (api.copy_out)(target.cast(), source, length, self.raw) })
    }

    /// Set bytes.
    pub fn fill(&self, into: &Buffer, at: usize, length: usize, byte: u8) -> Result<(), CudaError> {
        if length == 0 {
            return Ok(());
        }
        let (target, _) = into.part(at, length)?;
        let api = self.gpu.api;
        // SAFETY: the part lies within the buffer.
        api.checked("cuMemsetD8Async", unsafe { (api.fill)(target, byte, length, self.raw) })
    }

    /// True when all that was enqueued is done. An error of that work, or of any before it, comes back here.
    #[inline]
    pub fn done(&self) -> Result<bool, CudaError> {
        let api = self.gpu.api;
        // SAFETY: the stream is this one's own.
        match unsafe { (api.stream_query)(self.raw) } {
            0 => Ok(true),
            NOT_READY => Ok(false),
            code => api.checked("cuStreamQuery", code).map(|()| true),
        }
    }

    /// Look until all is done, not in a timed region; false at the deadline.
    pub fn wait(&self, deadline: Instant) -> Result<bool, CudaError> {
        while !self.done()? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(true)
    }

    /// Give up what is under way: the stream is kept by its GPU until that is done, and what it may use is not freed before.
    pub fn give_up(mut self) {
        let raw = std::mem::replace(&mut self.raw, std::ptr::null_mut());
        self.gpu.keep(raw);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // Destroyed, or kept, when it is seen to be done.
            self.gpu.keep(self.raw);
            self.gpu.disturbed();
        }
    }
}

/// A place in a stream, to ask whether its work has come there; keeps no time.
#[derive(Debug)]
pub struct Mark {
    gpu: Arc<Gpu>,
    event: CUevent,
}

// SAFETY: as for Stream.
unsafe impl Send for Mark {}

impl Mark {
    /// One that is nowhere so far.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, CudaError> {
        /// `CU_EVENT_DISABLE_TIMING`.
        const NO_TIME: u32 = 2;
        gpu.enter()?;
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        gpu.api.checked("cuEventCreate", unsafe { (gpu.api.event_create)(&raw mut event, NO_TIME) })?;
        Ok(Self { gpu: Arc::clone(gpu), event })
    }

    /// Behind all that was enqueued.
    #[inline]
    pub fn set(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: event and stream are of one context and live.
        self.gpu.api.checked("cuEventRecord", unsafe { (self.gpu.api.event_record)(self.event, stream.raw) })
    }

    /// True once all before it is done. An error of that work comes back here.
    #[inline]
    pub fn passed(&self) -> Result<bool, CudaError> {
        // SAFETY: this mark's event.
        match unsafe { (self.gpu.api.event_query)(self.event) } {
            0 => Ok(true),
            NOT_READY => Ok(false),
            code => self.gpu.api.checked("cuEventQuery", code).map(|()| false),
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: destroyed once; the driver keeps what a stream still needs.
            unsafe {
                (self.gpu.api.event_destroy)(self.event);
            }
        }
    }
}

/// Two time stamps on a stream, by the GPU's clock (of about half a microsecond, says CUDA).
#[derive(Debug)]
pub struct Timer {
    gpu: Arc<Gpu>,
    begin: CUevent,
    end: CUevent,
}

// SAFETY: as for Stream.
unsafe impl Send for Timer {}

impl Timer {
    /// Two events that keep time.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, CudaError> {
        gpu.enter()?;
        let mut timer = Self { gpu: Arc::clone(gpu), begin: std::ptr::null_mut(), end: std::ptr::null_mut() };
        for event in [&raw mut timer.begin, &raw mut timer.end] {
            // SAFETY: writes one pointer.
            gpu.api.checked("cuEventCreate", unsafe { (gpu.api.event_create)(event, 0) })?;
        }
        Ok(timer)
    }

    /// Time starts when the stream comes here.
    #[inline]
    pub fn begin(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: event and stream are of one context and live.
        self.gpu.api.checked("cuEventRecord", unsafe { (self.gpu.api.event_record)(self.begin, stream.raw) })
    }

    /// Time ends when the stream comes here.
    #[inline]
    pub fn end(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: as for `begin`.
        self.gpu.api.checked("cuEventRecord", unsafe { (self.gpu.api.event_record)(self.end, stream.raw) })
    }

    /// The time, once both stamps are there. An error of the work before comes back here.
    #[inline]
    pub fn elapsed(&self) -> Result<Option<Duration>, CudaError> {
        let api = self.gpu.api;
        // SAFETY: events of this timer.
        match unsafe { (api.event_query)(self.end) } {
            0 => {}
            NOT_READY => return Ok(None),
            code => return api.checked("cuEventQuery", code).map(|()| None),
        }
        let mut milliseconds: f32 = 0.0;
        // SAFETY: writes one number; both events are recorded and complete.
        api.checked("cuEventElapsedTime", unsafe { (api.event_elapsed)(&raw mut milliseconds, self.begin, self.end) })?;
        let seconds = f64::from(milliseconds).max(0.0) * 1e-3;
        // Whatever a driver says, a time is none that panics.
        Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.gpu.enter().is_err() {
            return;
        }
        for event in [self.begin, self.end].into_iter().filter(|event| !event.is_null()) {
            // SAFETY: destroyed once; the driver keeps what a stream still needs.
            unsafe {
                (self.gpu.api.event_destroy)(event);
            }
        }
    }
}
