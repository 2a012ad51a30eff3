//! NCCL as it is loaded here: its functions by name, those that only later versions have as options.
//!
//! Own, since cudarc looks for `libnccl.so` alone (wheels and Debian's `libnccl2` ship `libnccl.so.2`), and panics where a function is
//! missing. The layouts are those of NCCL's public header; they are the same from 2.14 to 2.30.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::nccl::sys::{ncclComm_t, ncclDataType_t, ncclUniqueId, ncclWaitSignalDesc_t, ncclWindow_t};
use libloading::{Library, Symbol};

use super::super::loading::{Unloaded, load};

/// Names a file to load instead of what the loader finds.
pub const NAMED_BY: &str = "TOPOSCOPE_NCCL";
/// As jobs ask for it, then as those who build against it do.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// `ncclResult_t`: a number, since later versions have more than any binding knows.
pub(super) type Code = c_int;
pub(super) const SUCCESS: Code = 0;
pub(super) const IN_PROGRESS: Code = 7;
/// A byte, as `ncclDataType_t`.
pub(super) const BYTE: ncclDataType_t = ncclDataType_t::ncclUint8;
/// A CUDA stream; runtime and driver mean the same one.
pub type Stream = *mut c_void;

/// The first members of `ncclConfig_t`, as of 2.14. Its size and version tell NCCL which members are there; all others keep their
/// defaults, in every later version.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
}

impl Config {
    /// Calls return at once, and are asked after.
    pub(super) const fn not_blocking() -> Self {
        Self { size: size_of::<Self>(), magic: 0xcafe_beef, version: 21_400, blocking: 0 }
    }
}

type GetVersion = unsafe extern "C" fn(*mut c_int) -> Code;
type GetUniqueId = unsafe extern "C" fn(*mut ncclUniqueId) -> Code;
type InitRankConfig = unsafe extern "C" fn(*mut ncclComm_t, c_int, ncclUniqueId, c_int, *mut Config) -> Code;
type OfComm = unsafe extern "C" fn(ncclComm_t) -> Code;
type AsyncError = unsafe extern "C" fn(ncclComm_t, *mut Code) -> Code;
type ErrorString = unsafe extern "C" fn(Code) -> *const c_char;
type LastError = unsafe extern "C" fn(ncclComm_t) -> *const c_char;
type Group = unsafe extern "C" fn() -> Code;
type Send = unsafe extern "C" fn(*const c_void, usize, ncclDataType_t, c_int, ncclComm_t, Stream) -> Code;
type Receive = unsafe extern "C" fn(*mut c_void, usize, ncclDataType_t, c_int, ncclComm_t, Stream) -> Code;
type PutSignal = unsafe extern "C" fn(
    *const c_void,
    usize,
    ncclDataType_t,
    c_int,
    ncclWindow_t,
    usize,
    c_int,
    c_int,
    c_uint,
    ncclComm_t,
    Stream,
) -> Code;
type WaitSignal = unsafe extern "C" fn(c_int, *mut ncclWaitSignalDesc_t, ncclComm_t, Stream) -> Code;
type Register = unsafe extern "C" fn(ncclComm_t, *mut c_void, usize, *mut ncclWindow_t, c_int) -> Code;
type Deregister = unsafe extern "C" fn(ncclComm_t, ncclWindow_t) -> Code;
type Allocate = unsafe extern "C" fn(*mut *mut c_void, usize) -> Code;
type Free = unsafe extern "C" fn(*mut c_void) -> Code;

/// What puts need, from 2.29 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneSided {
    pub(super) put_signal: PutSignal,
    pub(super) wait_signal: WaitSignal,
    pub(super) register: Register,
    pub(super) deregister: Deregister,
    pub(super) allocate: Allocate,
    pub(super) free: Free,
}

/// What communicators that can be given up need, from 2.14 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    pub(super) unique_id: GetUniqueId,
    pub(super) init: InitRankConfig,
    pub(super) finalize: OfComm,
    pub(super) destroy: OfComm,
    pub(super) abort: OfComm,
    pub(super) async_error: AsyncError,
    pub(super) group_start: Group,
    pub(super) group_end: Group,
    pub(super) send: Send,
    pub(super) receive: Receive,
}

/// The loaded library. Never unloaded: its threads may still run.
#[derive(Debug)]
pub struct Api {
    /// the name or path under which it was found
    pub name: String,
    /// as it tells it: 23007 is 2.30.7; before 2.9, 2804 is 2.8.4
    pub code: i32,
    calls: Option<Calls>,
    one_sided: Option<OneSided>,
    /// of those, what is missing
    lacks: Vec<&'static str>,
    error_string: Option<ErrorString>,
    last_error: Option<LastError>,
}

/// Why there is no NCCL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// the loader finds none; what it says
    Absent(String),
    /// it was found, and cannot be used
    Broken(String),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent(said) => {
                write!(f, "NCCL is not found ({said}); install libnccl2, or set {NAMED_BY} to the libnccl.so.2 of your jobs")
            }
            Self::Broken(why) => write!(f, "NCCL cannot be used: {why}"),
        }
    }
}

/// NCCL, loaded on the first call. That runs its initialisers: never inside a timed region.
pub fn api() -> Result<&'static Api, Missing> {
    static API: OnceLock<Result<Api, Missing>> = OnceLock::new();
    API.get_or_init(|| match std::env::var_os(NAMED_BY).filter(|file| !file.is_empty()) {
        Some(file) => Api::load(&[&file.to_string_lossy()]),
        None => Api::load(&NAMES),
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// A version in words.
pub fn version(code: i32) -> String {
    if code >= 10_000 {
        return format!("{}.{}.{}", code / 10_000, code / 100 % 100, code % 100);
    }
    format!("{}.{}.{}", code / 1000, code / 100 % 10, code % 100)
}

/// A function of the library.
fn symbol<T: Copy>(library: &Library, name: &'static str, lacks: &mut Vec<&'static str>) -> Option<T> {
    // SAFETY: the callers name each function with its type as in NCCL's header.
    #[allow(unsafe_code, reason = "a symbol has no type of its own")]
    let found: Result<Symbol<'_, T>, _> = unsafe { library.get(name) };
    let found = found.ok().map(|symbol| *symbol);
    if found.is_none() {
        lacks.push(name);
    }
    found
}

impl Api {
    fn load(names: &[&str]) -> Result<Self, Missing> {
        match load(names) {
            Ok((name, library)) => Self::of(name, library),
            Err(Unloaded::Absent(said)) => Err(Missing::Absent(said)),
            Err(Unloaded::Broken(why)) => Err(Missing::Broken(why)),
        }
    }

    fn of(name: &str, library: Library) -> Result<Self, Missing> {
        let broken = |why: String| Missing::Broken(format!("{name}: {why}"));
        let mut lacks = Vec::new();
        let get_version: GetVersion =
            symbol(&library, "ncclGetVersion", &mut lacks).ok_or_else(|| broken("it has no ncclGetVersion; is it NCCL?".to_owned()))?;
        let mut code = 0;
        // SAFETY: writes one int to the place given.
        #[allow(unsafe_code, reason = "a C function")]
        let got = unsafe { get_version(&raw mut code) };
        if got != SUCCESS {
            return Err(broken(format!("ncclGetVersion: error {got}")));
        }
        let calls = calls(&library, &mut lacks);
        let one_sided = calls.and_then(|_| one_sided(&library, &mut lacks));
        let mut ignored = Vec::new();
        let api = Self {
            name: name.to_owned(),
            code,
            calls,
            one_sided,
            lacks,
            error_string: symbol(&library, "ncclGetErrorString", &mut ignored),
            last_error: symbol(&library, "ncclGetLastError", &mut ignored),
        };
        std::mem::forget(library);
        Ok(api)
    }

    /// The version in words.
    pub fn version(&self) -> String {
        version(self.code)
    }

    /// In one line: version, where from, what it cannot do here.
    pub fn describe(&self) -> String {
        let cannot = match (&self.calls, &self.one_sided) {
            (None, _) => "; too old to be a mover: 2.14 or later is needed",
            (_, None) => "; without one-sided puts: nccl_put needs 2.29 or later",
            _ => "",
        };
        format!("{} ({}){cannot}", self.version(), self.name)
    }

    /// What every mover of NCCL needs, or why there is none.
    pub(super) fn calls(&self) -> Result<&Calls, String> {
        self.calls.as_ref().ok_or_else(|| self.lack("communicators that can be given up (NCCL 2.14 or later)"))
    }

    /// What puts need, or why there are none.
    pub(super) fn one_sided(&self) -> Result<&OneSided, String> {
        self.one_sided.as_ref().ok_or_else(|| self.lack("nccl_put (NCCL 2.29 or later)"))
    }

    fn lack(&self, what: &str) -> String {
        format!("{what} is wanted, {} ({}) is loaded and lacks {}", self.version(), self.name, self.lacks.join(", "))
    }

    /// What a code means, with what the library says of the last error of this process.
    pub(super) fn tell(&self, call: &str, code: Code, comm: ncclComm_t) -> String {
        // SAFETY: both return a string of the library's that lives as long as it, or null; a null communicator is allowed.
        #[allow(unsafe_code, reason = "C functions")]
        let (means, last) = unsafe {
            let means = self.error_string.and_then(|means| text(means(code)));
            (means, self.last_error.and_then(|last| text(last(comm))))
        };
        let means = means.unwrap_or_else(|| format!("error {code}"));
        let last = last.map(|last| crate::units::plain(last.trim())).filter(|last| !last.is_empty());
        last.map_or_else(|| format!("{call}: {means}"), |last| format!("{call}: {means}: {last}"))
    }
}

fn calls(library: &Library, lacks: &mut Vec<&'static str>) -> Option<Calls> {
    Some(Calls {
        unique_id: symbol(library, "ncclGetUniqueId", lacks)?,
        init: symbol(library, "ncclCommInitRankConfig", lacks)?,
        finalize: symbol(library, "ncclCommFinalize", lacks)?,
        destroy: symbol(library, "ncclCommDestroy", lacks)?,
        abort: symbol(library, "ncclCommAbort", lacks)?,
        async_error: symbol(library, "ncclCommGetAsyncError", lacks)?,
        group_start: symbol(library, "ncclGroupStart", lacks)?,
        group_end: symbol(library, "ncclGroupEnd", lacks)?,
        send: symbol(library, "ncclSend", lacks)?,
        receive: symbol(library, "ncclRecv", lacks)?,
    })
}

fn one_sided(library: &Library, lacks: &mut Vec<&'static str>) -> Option<OneSided> {
    Some(OneSided {
        put_signal: symbol(library, "ncclPutSignal", lacks)?,
        wait_signal: symbol(library, "ncclWaitSignal", lacks)?,
        register: symbol(library, "ncclCommWindowRegister", lacks)?,
        deregister: symbol(library, "ncclCommWindowDeregister", lacks)?,
        allocate: symbol(library, "ncclMemAlloc", lacks)?,
        free: symbol(library, "ncclMemFree", lacks)?,
    })
}

/// # Safety
/// `string` is null or ends with 0 and lives while it is read.
#[allow(unsafe_code, reason = "a C string")]
unsafe fn text(string: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_both_codings() {
        assert_eq!([2804, 21_400, 23_007].map(version), ["2.8.4", "2.14.0", "2.30.7"]);
    }

    #[test]
    fn a_library_that_is_none_of_these_is_broken() {
        // The C library is one, and not this one.
        let wrong = Api::load(&["libc.so.6"]);
        assert!(matches!(&wrong, Err(Missing::Broken(why)) if why.contains("ncclGetVersion")), "{wrong:?}");
    }

    #[test]
    fn a_configuration_is_as_large_as_nccl_2_14_knows_it() {
        let config = Config::not_blocking();
        assert_eq!((config.size, config.version, config.blocking), (24, 21_400, 0));
    }
}
