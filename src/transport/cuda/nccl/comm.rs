//! A communicator: the ranks of a group that meet, and what one of them sends and receives there. Nothing here waits without a
//! deadline: calls return at once and are asked after, and a communicator that does not go on is aborted.

use std::ffi::{c_int, c_void};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cudarc::nccl::sys::{ncclComm_t, ncclUniqueId};

use super::api::{Api, BYTE, Calls, Code, Config, IN_PROGRESS, SUCCESS, Stream};
use super::put::Windows;
use crate::transport::Stop;

/// Bytes of the name that ranks meet by.
pub const ID_BYTES: usize = 128;
/// Longest time for a communicator to end before it is left to itself.
const END: Duration = Duration::from_secs(5);
/// Looks in a row before the processor is given to others: ranks may share a core.
const LOOKS: u32 = 64;

/// A name for ranks to meet by; whoever makes it must live until all have met.
pub fn unique_id(api: &Api) -> Result<Vec<u8>, String> {
    let calls = api.calls()?;
    let mut id = ncclUniqueId { internal: [0; ID_BYTES] };
    // SAFETY: writes 128 bytes to the place given.
    #[allow(unsafe_code, reason = "a C function")]
    let code = unsafe { (calls.unique_id)(&raw mut id) };
    if code != SUCCESS {
        return Err(api.tell("ncclGetUniqueId", code, std::ptr::null_mut()));
    }
    Ok(id.internal.map(i8::cast_unsigned).to_vec())
}

/// One message of a group, by ranks of the job and addresses of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Send { to: usize, at: u64, bytes: usize },
    Receive { from: usize, at: u64, bytes: usize },
}

/// One rank's end of a communicator.
#[derive(Debug)]
pub struct Communicator {
    pub(super) api: &'static Api,
    calls: Calls,
    pub(super) raw: ncclComm_t,
    /// ranks of the job, in the order of the communicator
    group: Vec<usize>,
    pub(super) windows: Option<Windows>,
}

// SAFETY: the library allows any thread to use a communicator, one at a time, which `&mut self` sees to.
#[allow(unsafe_code, reason = "a raw pointer is not Send by itself")]
unsafe impl Send for Communicator {}

/// A communicator's address, on its way to the thread that ends it.
struct Ended(ncclComm_t);

// SAFETY: as for the communicator; its owner does not use it any more.
#[allow(unsafe_code, reason = "a raw pointer is not Send by itself")]
unsafe impl Send for Ended {}

/// A rank's place in a communicator, as long as it has one.
#[derive(Debug, Default)]
pub struct Member {
    /// `None` before the ranks have met, and once it was ended
    comm: Option<Communicator>,
    /// the library did not return from ending it, and may still use memory that it knows of
    hangs: bool,
}

impl Member {
    pub fn join(&mut self, comm: Communicator) {
        self.comm = Some(comm);
    }

    pub const fn comm(&self) -> Option<&Communicator> {
        self.comm.as_ref()
    }

    pub const fn comm_mut(&mut self) -> Option<&mut Communicator> {
        self.comm.as_mut()
    }

    /// As [`Communicator::abort`]; nothing without one.
    pub fn abort(&mut self) -> Option<String> {
        self.end(Communicator::abort)
    }

    /// As [`Communicator::close`]; nothing without one.
    pub fn close(&mut self) -> Option<String> {
        self.end(Communicator::close)
    }

    fn end(&mut self, by: impl FnOnce(&mut Communicator) -> Option<String>) -> Option<String> {
        let left = self.comm.take().and_then(|mut comm| by(&mut comm));
        self.hangs |= left.is_some();
        left
    }

    /// True if memory must stay, since the library may still use it.
    pub const fn hangs(&self) -> bool {
        self.hangs
    }
}

impl Communicator {
    /// Meet the other ranks of `group`, all of which call this with the same `id`; the device's context must be this thread's.
    /// A rank that does not come by `deadline` is an error that says how long was waited.
    pub fn join(api: &'static Api, id: &[u8], group: &[usize], rank: usize, within: Duration) -> Result<Self, String> {
        let calls = *api.calls()?;
        let Some(own) = group.iter().position(|&member| member == rank) else {
            return Err(format!("rank {rank} is not one of the ranks {group:?} that meet"));
        };
        let bytes: [u8; ID_BYTES] =
            id.try_into().map_err(|_| format!("the name to meet by has {} bytes, {ID_BYTES} were expected", id.len()))?;
        super::log::begin(&bytes, group);
        let id = ncclUniqueId { internal: bytes.map(u8::cast_signed) };
        let mut config = Config::not_blocking();
        let mut raw: ncclComm_t = std::ptr::null_mut();
        // SAFETY: both places outlive the call; the library copies the configuration.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (calls.init)(&raw mut raw, int(group.len())?, id, int(own)?, &raw mut config) };
        if !matches!(code, SUCCESS | IN_PROGRESS) || raw.is_null() {
            return Err(api.tell("ncclCommInitRankConfig", code, std::ptr::null_mut()));
        }
        let mut comm = Self { api, calls, raw, group: group.to_vec(), windows: None };
        let deadline = Instant::now() + within;
        match comm.settle("ncclCommInitRankConfig", deadline, Some(Duration::from_millis(1))) {
            Ok(()) => Ok(comm),
            Err(stop) => {
                let left = comm.abort();
                let (count, within) = (group.len(), within.as_secs_f64());
                let why = stop.why(|| format!("not all of the {count} ranks of NCCL's communicator came within {within} s"));
                Err(left.map_or(why.clone(), |left| format!("{why}; {left}")))
            }
        }
    }

    /// The ranks of the job, in the communicator's order.
    pub fn group(&self) -> &[usize] {
        &self.group
    }

    /// A rank of the job by its number here.
    pub(super) fn peer(&self, rank: usize) -> Result<c_int, Stop> {
        let found = self.group.iter().position(|&member| member == rank).and_then(|at| c_int::try_from(at).ok());
        found.ok_or_else(|| {
            Stop::Failed(format!("rank {rank} is not in NCCL's communicator of ranks {}", crate::units::format_ranks(&self.group)))
        })
    }

    /// Put messages on a stream as one group, as jobs do. On return all of it is on the stream, or nothing will come of it.
    ///
    /// Of messages between the same two ranks both sides must give the same order: NCCL has no tags.
    pub(crate) fn enqueue(&mut self, messages: impl IntoIterator<Item = Message>, stream: Stream, deadline: Instant) -> Result<(), Stop> {
        let (calls, raw) = (self.calls, self.raw);
        self.grouped(deadline, |comm| {
            for message in messages {
                // SAFETY: the memory is the caller's, of this device, and lives until the stream is through.
                #[allow(unsafe_code, reason = "C functions on device memory")]
                let (call, code) = match message {
                    Message::Send { to, at, bytes } => {
                        let peer = comm.peer(to)?;
                        ("ncclSend", unsafe { (calls.send)(at as *const c_void, bytes, BYTE, peer, raw, stream) })
                    }
                    Message::Receive { from, at, bytes } => {
                        let peer = comm.peer(from)?;
                        ("ncclRecv", unsafe { (calls.receive)(at as *mut c_void, bytes, BYTE, peer, raw, stream) })
                    }
                };
                comm.checked(call, code)?;
            }
            Ok(())
        })
    }

    /// Calls as one group; it is closed whatever they come to.
    pub(super) fn grouped(&mut self, deadline: Instant, calls: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        // SAFETY: no arguments.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (self.calls.group_start)() };
        self.checked("ncclGroupStart", code)?;
        let within = calls(self);
        // SAFETY: a group is open.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (self.calls.group_end)() };
        within?;
        self.checked("ncclGroupEnd", code)?;
        self.settle("ncclGroupEnd", deadline, None)
    }

    /// An error that the library found by itself since, such as of a network or of another rank.
    pub fn check(&self) -> Result<(), Stop> {
        self.state().and_then(|state| self.checked("NCCL", state))
    }

    fn state(&self) -> Result<Code, Stop> {
        let mut state = SUCCESS;
        // SAFETY: the communicator is alive, and the place outlives the call.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (self.calls.async_error)(self.raw, &raw mut state) };
        self.checked("ncclCommGetAsyncError", code)?;
        Ok(state)
    }

    pub(super) fn checked(&self, call: &str, code: Code) -> Result<(), Stop> {
        match code {
            SUCCESS | IN_PROGRESS => Ok(()),
            code => Err(Stop::Failed(self.api.tell(call, code, self.raw))),
        }
    }

    /// Wait until the last call is done; `nap` where that may take long.
    pub(super) fn settle(&self, call: &str, deadline: Instant, nap: Option<Duration>) -> Result<(), Stop> {
        let mut looks = 0_u32;
        loop {
            let state = self.state()?;
            if state != IN_PROGRESS {
                return self.checked(call, state);
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                if Instant::now() >= deadline {
                    return Err(Stop::Deadline);
                }
                match nap {
                    Some(nap) => std::thread::sleep(nap),
                    None => std::thread::yield_now(),
                }
            }
        }
    }

    /// End what is under way, wherever it hangs. What could not be ended, if anything.
    pub fn abort(&mut self) -> Option<String> {
        // Windows of a communicator that is aborted go with it.
        self.windows = None;
        self.end("ncclCommAbort", self.calls.abort)
    }

    /// The orderly end, when nothing is under way on any rank; collective, but no rank waits for ever.
    pub fn close(&mut self) -> Option<String> {
        if self.raw.is_null() {
            return None;
        }
        let deadline = Instant::now() + END;
        self.forget_windows(deadline);
        // SAFETY: the communicator is alive.
        #[allow(unsafe_code, reason = "a C function")]
        let code = unsafe { (self.calls.finalize)(self.raw) };
        let done = self.checked("ncclCommFinalize", code);
        match done.and_then(|()| self.settle("ncclCommFinalize", deadline, Some(Duration::from_millis(1)))) {
            Ok(()) => self.end("ncclCommDestroy", self.calls.destroy),
            Err(_) => self.abort(),
        }
    }

    /// Give the communicator back by a call that may hang; then it is left to itself.
    #[allow(unsafe_code, reason = "a C function")]
    fn end(&mut self, name: &str, call: unsafe extern "C" fn(ncclComm_t) -> Code) -> Option<String> {
        let raw = std::mem::replace(&mut self.raw, std::ptr::null_mut());
        if raw.is_null() {
            return None;
        }
        let (done, wait) = mpsc::channel();
        let ended = Ended(raw);
        let thread = std::thread::Builder::new().name("nccl end".to_owned()).spawn(move || {
            let ended = ended;
            // SAFETY: the communicator is alive, and nobody uses it after this.
            let code = unsafe { call(ended.0) };
            let _ = done.send(code);
        });
        let left = || format!("{name} did not return within {} s", END.as_secs());
        match thread.map(|_| wait.recv_timeout(END)) {
            Ok(Ok(SUCCESS | IN_PROGRESS)) => None,
            Ok(Ok(code)) => Some(self.api.tell(name, code, std::ptr::null_mut())),
            Ok(Err(_)) => Some(left()),
            Err(error) => Some(format!("{name}: no thread for it: {error}")),
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.abort();
    }
}

fn int(number: usize) -> Result<c_int, String> {
    c_int::try_from(number).map_err(|_| format!("{number} ranks are more than NCCL can number"))
}
