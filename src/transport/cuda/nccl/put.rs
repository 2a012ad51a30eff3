//! One-sided puts: memory that all ranks of a communicator register as windows, and signals that tell of what was put there.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use cudarc::nccl::sys::{ncclWaitSignalDesc_t, ncclWindow_t};

use super::api::{Api, BYTE, Code, OneSided, SUCCESS, Stream};
use super::comm::Communicator;
use crate::transport::Stop;

/// `NCCL_WIN_COLL_SYMMETRIC`: all ranks register as many bytes, so that an offset means the same place on each.
const SYMMETRIC: c_int = 1;
/// The only signal and context that NCCL has so far (2.30).
const SIGNAL: c_int = 0;
const CONTEXT: c_int = 0;

/// Device memory that can be registered as a window.
#[derive(Debug)]
pub struct Memory {
    one_sided: OneSided,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: device memory belongs to no thread.
#[allow(unsafe_code, reason = "a raw pointer is not Send by itself")]
unsafe impl Send for Memory {}

impl Memory {
    /// So many bytes on the device whose context is this thread's.
    pub fn allocate(api: &'static Api, bytes: usize) -> Result<Self, String> {
        let one_sided = *api.one_sided()?;
        let mut at = std::ptr::null_mut();
        // SAFETY: writes a pointer to the place given.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (one_sided.allocate)(&raw mut at, bytes) };
        if code != SUCCESS || at.is_null() {
            return Err(api.tell("ncclMemAlloc", code, std::ptr::null_mut()));
        }
        Ok(Self { one_sided, at, bytes })
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.at as u64
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated by the same library; nobody has its address any more.
        #[allow(unsafe_code, reason = "a C function")]
        unsafe {
            (self.one_sided.free)(self.at);
        }
    }
}

/// What a rank has registered.
#[derive(Debug)]
pub(super) struct Windows {
    /// what it puts from must lie in one, too
    from: ncclWindow_t,
    into: ncclWindow_t,
    /// where the first begins on this device
    source: u64,
    one_sided: OneSided,
}

impl Communicator {
    /// Register what this rank puts from and what is put into; collective, of the same sizes on every rank.
    pub fn register(&mut self, from: &Memory, into: &Memory, deadline: Instant) -> Result<(), Stop> {
        self.forget_windows(deadline);
        let one_sided = *self.api.one_sided().map_err(Stop::Failed)?;
        let mut windows = [std::ptr::null_mut(); 2];
        for (memory, window) in [from, into].into_iter().zip(&mut windows) {
            // SAFETY: the memory is registered until `forget_windows` or the communicator's end, and its owner keeps it for as long. The
            // library fills the handle at the latest when the call is done, which is awaited here.
            #[allow(unsafe_code, reason = "a C function")]
            let code: Code = unsafe { (one_sided.register)(self.raw, memory.at, memory.bytes, window, SYMMETRIC) };
            self.checked("ncclCommWindowRegister", code)?;
            self.settle("ncclCommWindowRegister", deadline, None)?;
            if window.is_null() {
                let why = "this communicator cannot put: its GPUs reach each other's memory neither directly nor over a network that can";
                return Err(Stop::Failed(format!("ncclCommWindowRegister gave no window; {why}")));
            }
        }
        self.windows = Some(Windows { from: windows[0], into: windows[1], source: from.address(), one_sided });
        Ok(())
    }

    /// Give windows back; collective.
    pub(super) fn forget_windows(&mut self, deadline: Instant) {
        let Some(windows) = self.windows.take() else { return };
        for window in [windows.from, windows.into] {
            // SAFETY: the window is registered, and nothing is put any more.
            #[allow(unsafe_code, reason = "a C function")]
            let code = unsafe { (windows.one_sided.deregister)(self.raw, window) };
            if self.checked("ncclCommWindowDeregister", code).is_err() || self.settle("ncclCommWindowDeregister", deadline, None).is_err() {
                return;
            }
        }
    }

    /// Put `puts` on a stream as one group, and wait there for `signals`: how many from which ranks. Signals of one rank
    /// are counted, not told apart: each put gives one.
    pub(crate) fn put(
        &mut self,
        puts: impl IntoIterator<Item = Put>,
        signals: &[(usize, usize)],
        stream: Stream,
        deadline: Instant,
    ) -> Result<(), Stop> {
        let Some(windows) = &self.windows else { return Err(Stop::Failed("no window is registered".to_owned())) };
        let (one_sided, into, source) = (windows.one_sided, windows.into, windows.source);
        self.grouped(deadline, |comm| {
            for Put { to, from, at, bytes } in puts {
                let peer = comm.peer(to)?;
                let from = (source + from as u64) as *const c_void;
                // SAFETY: within what both ranks have registered, which the library checks on this side.
                #[allow(unsafe_code, reason = "a C function on device memory")]
                let code = unsafe { (one_sided.put_signal)(from, bytes, BYTE, peer, into, at, SIGNAL, CONTEXT, 0, comm.raw, stream) };
                comm.checked("ncclPutSignal", code)?;
            }
            if signals.is_empty() {
                return Ok(());
            }
            let awaited = |&(from, count): &(usize, usize)| {
                let count = c_int::try_from(count).map_err(|_| Stop::Failed(format!("{count} signals are more than NCCL counts")))?;
                Ok(ncclWaitSignalDesc_t { opCnt: count, peer: comm.peer(from)?, sigIdx: SIGNAL, ctx: CONTEXT })
            };
            let mut awaited = signals.iter().map(awaited).collect::<Result<Vec<_>, Stop>>()?;
            let count = c_int::try_from(awaited.len()).unwrap_or(c_int::MAX);
            // SAFETY: the library copies the descriptions.
            #[allow(unsafe_code, reason = "a C function")]
            let code = unsafe { (one_sided.wait_signal)(count, awaited.as_mut_ptr(), comm.raw, stream) };
            comm.checked("ncclWaitSignal", code)
        })
    }
}

/// One message: `bytes` from offset `from` of this rank's source to offset `at` of what `to` has registered for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    pub to: usize,
    pub from: usize,
    pub at: usize,
    pub bytes: usize,
}
