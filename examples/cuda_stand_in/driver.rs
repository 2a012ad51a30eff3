//! The driver of this process: its devices and their contexts, and what was made in them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::codes::{
    self, Answer, CONTEXT_IS_DESTROYED, Code, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, NOT_INITIALIZED, NOT_PERMITTED, SUCCESS,
    UNKNOWN,
};
use super::described::{self, Described};
use super::ledger::Ledger;
use super::memory::{Memory, Pinned, Place, Use};
use super::stream::{Event, Stream};

pub static LEDGER: Ledger = Ledger::new("cuda");
static DRIVER: OnceLock<Driver> = OnceLock::new();

thread_local! {
    /// devices whose primary contexts are current, the top one last
    pub static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// true within a function that a stream calls on the host
    pub static ON_STREAM: Cell<bool> = const { Cell::new(false) };
    /// the error that work enqueued now is to meet
    static LATE: Cell<Option<Late>> = const { Cell::new(None) };
}

/// How work is to fail when its stream gets to it.
#[derive(Clone, Copy)]
pub enum Late {
    Fails(Code),
    Hangs,
    /// goes well, and does nothing
    Loses,
}

pub struct Driver {
    pub described: Described,
    /// the GPUs that this process sees, as their places in the box
    pub visible: Vec<usize>,
    pub contexts: Vec<Context>,
    state: Mutex<State>,
}

/// The primary context of a device.
#[derive(Default)]
pub struct Context {
    pub retained: AtomicU32,
    pub flags: AtomicU32,
    /// the error that stays until the context is destroyed
    pub sticky: Arc<AtomicU32>,
}

/// What was made and not yet given back. Handles are numbers in the shape of pointers and are never followed.
#[derive(Default)]
pub struct State {
    pub memory: BTreeMap<usize, Arc<Memory>>,
    pub pinned: BTreeMap<usize, Arc<Pinned>>,
    pub streams: HashMap<usize, Arc<Stream>>,
    /// the default stream of each device that has used it
    pub defaults: HashMap<usize, Arc<Stream>>,
    pub events: HashMap<usize, Arc<Event>>,
    /// pairs of devices of which the first reaches the second
    pub peers: BTreeSet<(usize, usize)>,
    made: usize,
}

impl State {
    /// A handle that was never had before.
    pub fn name(&mut self) -> usize {
        self.made += 1;
        0x1_0000 + self.made * 0x10
    }

    /// Bytes taken on a device.
    pub fn used(&self, ordinal: usize) -> u64 {
        self.memory.values().filter(|memory| memory.ordinal == ordinal && !memory.foreign).map(|memory| memory.size as u64).sum()
    }

    fn at<T>(map: &BTreeMap<usize, Arc<T>>, at: usize) -> Option<&Arc<T>> {
        map.range(..=at).next_back().map(|(_, found)| found)
    }

    /// The device memory that has an address.
    pub fn device(&self, at: usize) -> Option<&Arc<Memory>> {
        Self::at(&self.memory, at).filter(|memory| at < memory.base + memory.size)
    }

    /// The memory of the host that has an address, if the driver knows it.
    pub fn host(&self, at: usize) -> Option<&Arc<Pinned>> {
        Self::at(&self.pinned, at).filter(|pinned| at < pinned.base + pinned.size)
    }

    /// A piece of memory for work to touch.
    pub fn place(&self, at: usize, bytes: usize) -> Answer<Use> {
        let within = |base: usize, size: usize| at + bytes <= base + size;
        if let Some(memory) = self.device(at) {
            return if within(memory.base, memory.size) {
                Ok(Use::new(at, Place::Device(Arc::clone(memory))))
            } else {
                LEDGER.violation(format!("{bytes} bytes from byte {} of an allocation of {}", at - memory.base, memory.size));
                Err(INVALID_VALUE)
            };
        }
        Ok(Use::new(at, self.host(at).map_or(Place::Pageable, |pinned| Place::Pinned(Arc::clone(pinned)))))
    }

    /// The same, of memory that a device reaches.
    pub fn device_place(&self, at: usize, bytes: usize) -> Answer<Use> {
        let place = self.place(at, bytes)?;
        if matches!(place.place, Place::Pageable) {
            LEDGER.violation(format!("{bytes} bytes at {at:#x}: no memory of a device, or freed"));
            return Err(INVALID_VALUE);
        }
        Ok(place)
    }
}

impl Driver {
    /// What `cuInit` does.
    pub fn start() -> Code {
        if DRIVER.get().is_some() {
            return SUCCESS;
        }
        let described = match Described::read() {
            Ok(described) => described,
            Err(why) => {
                eprintln!("cuda_stand_in: {why}");
                return UNKNOWN;
            }
        };
        if let Some(fail) = described::failure(&described.cuda.fail, "cuInit") {
            return codes::code(&fail.error).unwrap_or(UNKNOWN);
        }
        let visible = described.visible();
        if visible.is_empty() {
            return codes::NO_DEVICE;
        }
        stay();
        let contexts = visible.iter().map(|_| Context::default()).collect();
        drop(DRIVER.set(Self { described, visible, contexts, state: Mutex::default() }));
        SUCCESS
    }

    pub fn get() -> Option<&'static Self> {
        DRIVER.get()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device of a context's handle, if the context lives.
    pub fn context(&self, handle: *mut c_void) -> Answer<usize> {
        let ordinal = (handle.addr() >> 4).checked_sub(1).filter(|&at| at < self.contexts.len()).ok_or(INVALID_CONTEXT)?;
        self.alive(ordinal)
    }

    fn alive(&self, ordinal: usize) -> Answer<usize> {
        if self.contexts[ordinal].retained.load(Ordering::Acquire) == 0 {
            return Err(CONTEXT_IS_DESTROYED);
        }
        Ok(ordinal)
    }

    /// The device whose context is current, which has no error.
    pub fn current(&self) -> Answer<usize> {
        let ordinal = CURRENT.with_borrow(|stack| stack.last().copied()).ok_or(INVALID_CONTEXT)?;
        self.alive(ordinal)?;
        match self.contexts[ordinal].sticky.load(Ordering::Acquire) {
            0 => Ok(ordinal),
            code => Err(code),
        }
    }

    /// A device by its number.
    pub fn device(&self, device: i32) -> Answer<usize> {
        usize::try_from(device).ok().filter(|&at| at < self.visible.len()).ok_or(codes::INVALID_DEVICE)
    }

    /// The default stream of a device.
    pub fn default_stream(&self, ordinal: usize) -> Arc<Stream> {
        let sticky = Arc::clone(&self.contexts[ordinal].sticky);
        Arc::clone(self.state().defaults.entry(ordinal).or_insert_with(|| Stream::start(ordinal, 0, 0, sticky)))
    }

    /// The stream of a handle.
    pub fn stream(&self, handle: *mut c_void) -> Answer<Arc<Stream>> {
        if handle.addr() <= 2 {
            return Ok(self.default_stream(self.current()?));
        }
        let found = self.state().streams.get(&handle.addr()).cloned();
        found.ok_or_else(|| {
            LEDGER.violation(format!("stream {:#x} is none, or was destroyed", handle.addr()));
            INVALID_HANDLE
        })
    }

    /// The event of a handle.
    pub fn event(&self, handle: *mut c_void) -> Answer<Arc<Event>> {
        let found = self.state().events.get(&handle.addr()).cloned();
        found.ok_or_else(|| {
            LEDGER.violation(format!("event {:#x} is none, or was destroyed", handle.addr()));
            INVALID_HANDLE
        })
    }

    /// Enqueue work in CUDA's order: the default stream waits for the others that do not opt out, and they for it.
    pub fn enqueue(&self, stream: &Arc<Stream>, always: bool, work: impl FnOnce() -> Answer + Send + 'static) -> u64 {
        let state = self.state();
        let default = state.defaults.get(&stream.ordinal).cloned();
        let before: Vec<(Arc<Stream>, u64)> = match default {
            Some(default) if Arc::ptr_eq(&default, stream) => {
                let others = state.streams.values().filter(|other| other.ordinal == stream.ordinal && other.flags & 1 == 0);
                others.map(|other| (Arc::clone(other), other.last())).collect()
            }
            Some(default) if stream.flags & 1 == 0 => vec![(Arc::clone(&default), default.last())],
            _ => Vec::new(),
        };
        drop(state);
        let late = LATE.take();
        stream.enqueue(always, move || {
            for (other, number) in before {
                other.wait(number);
            }
            match late {
                None => work(),
                Some(Late::Fails(code)) => Err(code),
                Some(Late::Loses) => Ok(()),
                Some(Late::Hangs) => loop {
                    std::thread::park();
                },
            }
        })
    }

    /// Wait for all streams of a device.
    pub fn settle(&self, ordinal: usize) -> Answer {
        let of = |stream: &&Arc<Stream>| stream.ordinal == ordinal;
        let streams: Vec<_> = {
            let state = self.state();
            state.streams.values().chain(state.defaults.values()).filter(of).map(|stream| (Arc::clone(stream), stream.last())).collect()
        };
        for (stream, number) in streams {
            stream.wait(number);
        }
        self.healthy(ordinal)
    }

    /// The error of a device, if it has one.
    pub fn healthy(&self, ordinal: usize) -> Answer {
        match self.contexts[ordinal].sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

/// The library is never unloaded: its threads run in it.
fn stay() {
    // SAFETY: asks which library this function is in, and holds it once more.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(stay as *const c_void, &raw mut about) != 0 {
            libc::dlopen(about.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}

/// Answer a call.
pub fn call(name: &'static str, answer: impl FnOnce(&'static Driver) -> Answer) -> Code {
    LEDGER.called(name);
    let Some(driver) = DRIVER.get() else {
        LEDGER.failed(name);
        return NOT_INITIALIZED;
    };
    LATE.set(None);
    if ON_STREAM.get() {
        LEDGER.violation(format!("{name} within a function that a stream calls"));
        return NOT_PERMITTED;
    }
    let answer = || {
        if let Some(fail) = described::failure(&driver.described.cuda.fail, name) {
            let code = codes::code(&fail.error).unwrap_or(UNKNOWN);
            let late = match fail.error.as_str() {
                "hang" => Some(Late::Hangs),
                "lost" => Some(Late::Loses),
                _ => fail.is_late().then_some(Late::Fails(code)),
            };
            if late.is_some() {
                LATE.set(late);
            } else {
                if fail.sticky
                    && let Ok(ordinal) = driver.current()
                {
                    driver.contexts[ordinal].sticky.store(code, Ordering::Release);
                }
                return Err(code);
            }
        }
        answer(driver)
    };
    match answer() {
        Ok(()) => SUCCESS,
        Err(codes::NOT_READY) => codes::NOT_READY,
        Err(code) => {
            LEDGER.failed(name);
            code
        }
    }
}

/// Write where the caller wants it.
pub fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller of the driver's interface owns it.
    unsafe { to.write(value) };
    Ok(())
}

/// A handle of a number.
pub fn handle(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// The handle of a device's context.
pub fn context_handle(ordinal: usize) -> *mut c_void {
    handle((ordinal + 1) << 4)
}

/// What is left when the process ends.
extern "C" fn end() {
    if let Some(driver) = DRIVER.get()
        && let Ok(state) = driver.state.try_lock()
    {
        for ordinal in 0..driver.contexts.len() {
            let of = |what: &str, count: usize| {
                if count > 0 {
                    LEDGER.kept(format!("{count} {what} of device {ordinal} at the end of the process"));
                }
            };
            let memory = |foreign: bool| state.memory.values().filter(|own| own.ordinal == ordinal && own.foreign == foreign).count();
            of("allocation(s) of device memory", memory(false));
            of("mapping(s) of other processes' memory", memory(true));
            of("allocation(s) of pinned memory", state.pinned.values().filter(|pinned| pinned.ordinal == ordinal).count());
            of("stream(s)", state.streams.values().filter(|stream| stream.ordinal == ordinal).count());
            of("event(s)", state.events.values().filter(|event| event.ordinal == ordinal).count());
        }
    }
    LEDGER.close();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// The book, now.
#[unsafe(no_mangle)]
pub extern "C" fn stand_in_report() {
    LEDGER.close();
}
