use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUipcMemHandle};

use super::api::Api;
use super::{CudaError, Gpu};

/// Whose memory it is.
#[derive(Debug)]
enum Kind {
    /// allocated here
    Own,
    /// another process's, mapped into this one
    Mapped,
    /// another thread's, which keeps it
    Lent,
}

/// Memory of a GPU. Given back when dropped, but for what work that was given up may still use.
#[derive(Debug)]
pub struct Buffer {
    gpu: Arc<Gpu>,
    start: CUdeviceptr,
    length: usize,
    /// of the GPU that it lies on
    context: CUcontext,
    kind: Kind,
}

// SAFETY: an address, a length and a context, used through calls that make the context current.
unsafe impl Send for Buffer {}

/// By which another process of the host maps a buffer (`CUipcMemHandle`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub [u8; 64]);

impl Buffer {
    /// Allocate so many bytes on a GPU; none for zero.
    pub fn allocate(gpu: &Arc<Gpu>, length: usize) -> Result<Self, CudaError> {
        gpu.enter()?;
        let mut start: CUdeviceptr = 0;
        if length > 0 {
            // SAFETY: writes one address.
            gpu.api.checked("cuMemAlloc", unsafe { (gpu.api.allocate)(&raw mut start, length) })?;
        }
        Ok(Self { gpu: Arc::clone(gpu), start, length, context: gpu.context, kind: Kind::Own })
    }

    /// Map another process's buffer for this GPU.
    pub fn map(gpu: &Arc<Gpu>, handle: Handle, length: usize) -> Result<Self, CudaError> {
        /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
        const PEER: u32 = 1;
        gpu.enter()?;
        let raw = CUipcMemHandle { reserved: handle.0.map(u8::cast_signed) };
        let mut start: CUdeviceptr = 0;
        // SAFETY: writes one address. A handle of nothing is refused by the driver.
        gpu.api.checked("cuIpcOpenMemHandle", unsafe { (gpu.api.ipc_open)(&raw mut start, raw, PEER) })?;
        Ok(Self { gpu: Arc::clone(gpu), start, length, context: gpu.context, kind: Kind::Mapped })
    }

    /// A buffer of another thread of this process by its [`Buffer::address`]. That thread keeps it until no work of `gpu` uses it.
    pub(in crate::transport::cuda) fn lent(gpu: &Arc<Gpu>, (start, context): (u64, usize), length: usize) -> Self {
        let context = std::ptr::with_exposed_provenance_mut(context);
        Self { gpu: Arc::clone(gpu), start, length, context, kind: Kind::Lent }
    }

    /// Where it lies, for libraries and for other threads: address and context.
    pub fn address(&self) -> (u64, usize) {
        (self.start, self.context.expose_provenance())
    }

    /// Bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// True if it has none.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Let other processes map it.
    pub fn handle(&self) -> Result<Handle, CudaError> {
        self.gpu.enter()?;
        let mut raw = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: writes one handle; the address is the start of an allocation.
        self.gpu.api.checked("cuIpcGetMemHandle", unsafe { (self.gpu.api.ipc_handle)(&raw mut raw, self.start) })?;
        Ok(Handle(raw.reserved.map(i8::cast_unsigned)))
    }

    /// Address of a part, and the context that it lies in.
    #[inline]
    pub(super) fn part(&self, at: usize, length: usize) -> Result<(CUdeviceptr, CUcontext), CudaError> {
        if at.checked_add(length).is_some_and(|end| end <= self.length) {
            Ok((self.start + at as u64, self.context))
        } else {
            Err(CudaError::Outside { at, length, size: self.length })
        }
    }
}

impl Buffer {
    /// Never give it back, nor its context, with which it would go: others may still use it. Both end with the process.
    pub fn leak(mut self) {
        self.gpu.stay();
        self.start = 0;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.start == 0 {
            return;
        }
        // Freeing and unmapping wait for the GPU's work: for ever where it hangs.
        if self.gpu.disturbed() || self.gpu.enter().is_err() {
            self.gpu.stay();
            return;
        }
        // SAFETY: allocated, or mapped, by this buffer, and not used by any work that is under way.
        unsafe {
            match self.kind {
                Kind::Own => _ = (self.gpu.api.free)(self.start),
                Kind::Mapped => _ = (self.gpu.api.ipc_close)(self.start),
                Kind::Lent => {}
            }
        }
    }
}

/// Memory of the host that GPUs read and write directly.
#[derive(Debug)]
pub struct Pinned {
    gpu: Arc<Gpu>,
    start: *mut u8,
    length: usize,
}

// SAFETY: owned memory.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocate so many bytes, at least one.
    pub fn allocate(gpu: &Arc<Gpu>, length: usize) -> Result<Self, CudaError> {
        /// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
        const FLAGS: u32 = 1 | 2;
        gpu.enter()?;
        let length = length.max(1);
        let mut start = std::ptr::null_mut();
        // SAFETY: writes one address; the bytes are set before anyone reads them.
        unsafe {
            gpu.api.checked("cuMemHostAlloc", (gpu.api.host_allocate)(&raw mut start, length, FLAGS))?;
            start.cast::<u8>().write_bytes(0, length);
        }
        Ok(Self { gpu: Arc::clone(gpu), start: start.cast(), length })
    }

    /// Its bytes, which no work may be using now.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and set to this length; copies into it are waited for before it is looked at.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    pub(super) const fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its address as GPUs see it.
    pub(super) fn device_address(&self) -> Result<CUdeviceptr, CudaError> {
        let api: &Api = self.gpu.api;
        let mut address: CUdeviceptr = 0;
        // SAFETY: writes one address; the memory was allocated to be mapped.
        api.checked("cuMemHostGetDevicePointer", unsafe { (api.host_address)(&raw mut address, self.start.cast(), 0) })?;
        Ok(address)
    }

    pub(super) fn part(&self, at: usize, length: usize) -> Result<*mut u8, CudaError> {
        if at.checked_add(length).is_some_and(|end| end <= self.length) {
            // SAFETY: within the allocation.
            Ok(unsafe { self.start.add(at) })
        } else {
            Err(CudaError::Outside { at, length, size: self.length })
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.gpu.disturbed() || self.gpu.enter().is_err() {
            self.gpu.stay();
            return;
        }
        // SAFETY: allocated by this, and not used by any work that is under way.
        unsafe {
            (self.gpu.api.host_free)(self.start.cast());
        }
    }
}
