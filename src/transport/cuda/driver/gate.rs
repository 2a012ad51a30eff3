use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{CudaError, Gpu, Pinned, Stream};

/// A place in a stream that its work does not pass before the gate is opened: all can be enqueued first, so that what enqueuing takes
/// is in nobody's time. Opened once for each [`Gate::close`].
#[derive(Debug)]
pub struct Gate {
    flag: Flag,
    /// times it was closed
    closed: u32,
}

#[derive(Debug)]
enum Flag {
    /// a word of the host's memory that the GPU itself looks at
    Word { word: Pinned, address: u64 },
    /// one that a thread of the driver's looks at
    Function(Arc<AtomicU32>),
}

/// What that thread waits for.
struct Waiting {
    flag: Arc<AtomicU32>,
    until: u32,
}

/// True if `now` has come to `until`, numbers wrapping.
const fn reached(now: u32, until: u32) -> bool {
    now.wrapping_sub(until).cast_signed() >= 0
}

unsafe extern "C" fn wait(waiting: *mut c_void) {
    // SAFETY: a box of `close`, which gave it away; the driver calls this once.
    let waiting = unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
    while !reached(waiting.flag.load(Ordering::Acquire), waiting.until) {
        // The opener may share this core.
        std::thread::yield_now();
    }
}

impl Gate {
    /// Most pieces of work behind a closed gate: of more the driver makes the host wait for the stream, which waits for the host.
    pub const MOST: usize = 256;

    /// An open gate, for streams of this GPU. By a wait of the stream's own where the driver has it, which takes about a microsecond;
    /// else by a function of the host that the stream waits for, which takes tens.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, CudaError> {
        let word = Pinned::allocate(gpu, 4)?;
        let address = word.device_address()?;
        let mut gate = Self { flag: Flag::Word { word, address }, closed: 0 };
        // One that is open, to see whether the driver takes it.
        let trial = Stream::new(gpu)?;
        let passed = gpu.api.wait_value.is_some() && gate.pass(&trial).is_ok();
        if !passed || !trial.wait(std::time::Instant::now() + Duration::from_secs(2))? {
            // It may still look at the word, which is kept then.
            trial.give_up();
            gate.flag = Flag::Function(Arc::default());
        }
        Ok(gate)
    }

    /// True if the stream itself waits.
    pub const fn is_quick(&self) -> bool {
        matches!(self.flag, Flag::Word { .. })
    }

    /// The stream waits here until the next [`Self::open`].
    #[inline]
    pub fn close(&mut self, stream: &Stream) -> Result<(), CudaError> {
        self.closed = self.closed.wrapping_add(1);
        self.pass(stream)
    }

    fn pass(&self, stream: &Stream) -> Result<(), CudaError> {
        /// `CU_STREAM_WAIT_VALUE_GEQ`: cyclic, of 32 bits.
        const AT_LEAST: u32 = 0;
        let api = stream.gpu().api;
        match (&self.flag, api.wait_value) {
            (Flag::Word { address, .. }, Some(wait_value)) => {
                // SAFETY: the word is kept as long as the gate, and leaked while the stream is pending.
                api.checked("cuStreamWaitValue32", unsafe { wait_value(stream.raw(), *address, self.closed, AT_LEAST) })
            }
            (Flag::Word { .. }, None) => Err(super::Missing::Symbol("cuStreamWaitValue32_v2").into()),
            (Flag::Function(flag), _) => {
                let waiting = Box::into_raw(Box::new(Waiting { flag: Arc::clone(flag), until: self.closed }));
                // SAFETY: the driver calls it once with the box; where it refuses, the box is taken back.
                unsafe {
                    let told = api.checked("cuLaunchHostFunc", (api.launch_host)(stream.raw(), wait, waiting.cast()));
                    if told.is_err() {
                        drop(Box::from_raw(waiting));
                    }
                    told
                }
            }
        }
    }

    /// Let the stream go on.
    #[inline]
    pub fn open(&self) {
        match &self.flag {
            // SAFETY: four bytes of the word's own, aligned as the driver's allocations are; the GPU only reads them.
            Flag::Word { word, .. } => unsafe { AtomicU32::from_ptr(word.start().cast()) }.store(self.closed, Ordering::Release),
            Flag::Function(flag) => flag.store(self.closed, Ordering::Release),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Whatever waits for it must not wait for ever.
        self.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_closings_wrap() {
        assert!(reached(5, 5) && reached(6, 5) && !reached(4, 5));
        assert!(reached(0, u32::MAX) && !reached(u32::MAX, 0));
    }
}
