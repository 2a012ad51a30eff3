//! The stand-in for CUDA's driver, by the functions that it exports for this one.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use super::{Answer, CUDA_ERROR};

/// 64 bytes that name memory to another process.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Handle(pub [u8; 64]);

impl Handle {
    /// True if this process made it: its number is in the fourth word.
    pub fn is_own(&self) -> bool {
        self.0[24..28] == std::process::id().to_ne_bytes()
    }
}

type Work = unsafe extern "C" fn(*mut c_void) -> u32;

struct Hooks {
    gpu: unsafe extern "C" fn(*mut u32, *mut u32) -> u32,
    reaches: unsafe extern "C" fn(u32, u32) -> bool,
    enqueue: unsafe extern "C" fn(*mut c_void, *const [usize; 2], usize, Work, *mut c_void) -> u32,
    allocate: unsafe extern "C" fn(usize, *mut usize) -> u32,
    release: unsafe extern "C" fn(usize) -> u32,
    share: unsafe extern "C" fn(usize, *mut Handle, *mut usize) -> u32,
    map: unsafe extern "C" fn(*const Handle, *mut usize, *mut *mut c_void) -> u32,
    unmap: unsafe extern "C" fn(*mut c_void),
    moved: unsafe extern "C" fn(u32, u32, u64),
}

static HOOKS: OnceLock<Option<Hooks>> = OnceLock::new();

/// A function of the library; `None` if it is another driver.
///
/// # Safety
/// `T` is the function's type.
unsafe fn find<T>(library: *mut c_void, name: &CStr) -> Option<T> {
    // SAFETY: a library that is loaded, and a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: a function's address, of the type that the caller says.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

fn load() -> Option<Hooks> {
    // SAFETY: loads the driver, as NCCL does.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the types are those of examples/cuda_stand_in/api/hooks.rs.
    unsafe {
        Some(Hooks {
            gpu: find(library, c"stand_in_gpu")?,
            reaches: find(library, c"stand_in_reaches")?,
            enqueue: find(library, c"stand_in_enqueue")?,
            allocate: find(library, c"stand_in_allocate")?,
            release: find(library, c"stand_in_release")?,
            share: find(library, c"stand_in_share")?,
            map: find(library, c"stand_in_map")?,
            unmap: find(library, c"stand_in_unmap")?,
            moved: find(library, c"stand_in_moved")?,
        })
    }
}

fn hooks() -> Answer<&'static Hooks> {
    HOOKS.get_or_init(load).as_ref().ok_or(CUDA_ERROR)
}

fn checked(code: u32) -> Answer {
    if code == 0 { Ok(()) } else { Err(CUDA_ERROR) }
}

/// The current device: its place in the box, and its number in this process.
pub fn gpu() -> Answer<(u32, u32)> {
    let (mut gpu, mut ordinal) = (0, 0);
    // SAFETY: two places to write.
    checked(unsafe { (hooks()?.gpu)(&raw mut gpu, &raw mut ordinal) })?;
    Ok((gpu, ordinal))
}

/// True if a GPU reaches another one's memory.
pub fn reaches(from: u32, to: u32) -> bool {
    // SAFETY: two numbers.
    hooks().is_ok_and(|hooks| unsafe { (hooks.reaches)(from, to) })
}

/// Have a stream do work, which touches some pieces of memory.
pub fn enqueue(stream: usize, pieces: &[[usize; 2]], work: Box<dyn FnOnce() + Send>) -> Answer {
    unsafe extern "C" fn run(data: *mut c_void) -> u32 {
        // SAFETY: made below, and run once.
        let work = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
        work();
        0
    }
    let hooks = hooks()?;
    let data = Box::into_raw(Box::new(work)).cast();
    // SAFETY: `run` takes what is passed; the pieces are read before this returns.
    let code = unsafe { (hooks.enqueue)(std::ptr::without_provenance_mut(stream), pieces.as_ptr(), pieces.len(), run, data) };
    if code != 0 {
        // SAFETY: nobody took it.
        drop(unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) });
    }
    checked(code)
}

pub fn allocate(bytes: usize) -> Answer<usize> {
    let mut at = 0;
    // SAFETY: a place to write.
    checked(unsafe { (hooks()?.allocate)(bytes, &raw mut at) })?;
    Ok(at)
}

pub fn release(at: usize) -> Answer {
    // SAFETY: a number.
    checked(unsafe { (hooks()?.release)(at) })
}

/// How another process reaches device memory, and where in it an address is.
pub fn share(at: usize) -> Answer<(Handle, usize)> {
    let (mut handle, mut offset) = (Handle([0; 64]), 0);
    // SAFETY: two places to write.
    checked(unsafe { (hooks()?.share)(at, &raw mut handle, &raw mut offset) })?;
    Ok((handle, offset))
}

/// Memory of a rank, mapped here.
pub struct Mapped {
    pub base: usize,
    token: *mut c_void,
}

// SAFETY: the token is a share of a mapping that any thread may give back.
unsafe impl Send for Mapped {}

impl Mapped {
    pub fn new(handle: &Handle) -> Answer<Self> {
        let (mut base, mut token) = (0, std::ptr::null_mut());
        // SAFETY: a handle, and two places to write.
        checked(unsafe { (hooks()?.map)(handle, &raw mut base, &raw mut token) })?;
        Ok(Self { base, token })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if let Ok(hooks) = hooks() {
            // SAFETY: had from `map`, and given back once.
            unsafe { (hooks.unmap)(self.token) };
        }
    }
}

/// Bytes arrived, from GPU to GPU.
pub fn moved(from: u32, to: u32, bytes: u64) {
    if let Ok(hooks) = hooks() {
        // SAFETY: numbers.
        unsafe { (hooks.moved)(from, to, bytes) };
    }
}
