use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUcontext, CUdevice, CUstream, CUuuid};

use super::api::Api;
use super::error::{ALREADY_ENABLED, NOT_READY};
use super::{CudaError, Stream};

/// `CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE`.
const L2: u32 = 38;

/// What the driver says of a GPU without starting it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// CUDA's number in this process, after `CUDA_VISIBLE_DEVICES`
    pub ordinal: usize,
    pub name: String,
    /// `GPU-…`, as nvidia-smi prints it
    pub uuid: String,
    /// PCI address, as in `0000:3b:00.0`
    pub address: String,
    /// bytes
    pub memory: u64,
    /// bytes
    pub l2: u64,
}

/// All GPUs that this process may use, in CUDA's order.
pub fn devices() -> Result<Vec<Device>, CudaError> {
    let api = Api::get()?;
    (0..count(api)?).map(|ordinal| Device::of(api, ordinal)).collect()
}

/// The newest CUDA that the driver speaks, as (12, 8).
pub fn version() -> Result<(u32, u32), CudaError> {
    let api = Api::get()?;
    let mut version: c_int = 0;
    // SAFETY: writes one int.
    api.checked("cuDriverGetVersion", unsafe { (api.driver_version)(&raw mut version) })?;
    let version = version.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

/// Whether one GPU's engines can read and write another one's memory directly, by CUDA's numbers; neither is started for it.
pub fn reaches(from: usize, to: usize) -> Result<bool, CudaError> {
    let api = Api::get()?;
    let (from, to) = (device(api, from)?, device(api, to)?);
    let mut can: c_int = 0;
    // SAFETY: writes one int.
    api.checked("cuDeviceCanAccessPeer", unsafe { (api.can_access)(&raw mut can, from, to) })?;
    Ok(can != 0)
}

fn count(api: &Api) -> Result<usize, CudaError> {
    let mut count: c_int = 0;
    // SAFETY: writes one int.
    api.checked("cuDeviceGetCount", unsafe { (api.device_count)(&raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn device(api: &Api, ordinal: usize) -> Result<CUdevice, CudaError> {
    let found = count(api)?;
    let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < found);
    let number = number.ok_or(CudaError::NoDevice { wanted: ordinal, found })?;
    let mut device: CUdevice = 0;
    // SAFETY: writes one int.
    api.checked("cuDeviceGet", unsafe { (api.device_get)(&raw mut device, number) })?;
    Ok(device)
}

/// Text of a buffer that the driver has filled.
fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes).map_or(String::new(), |text| crate::units::plain(&text.to_string_lossy()))
}

impl Device {
    fn of(api: &Api, ordinal: usize) -> Result<Self, CudaError> {
        const LENGTH: c_int = 128;
        let device = device(api, ordinal)?;
        let (mut name, mut address) = ([0; LENGTH as usize], [0; LENGTH as usize]);
        let mut uuid = CUuuid { bytes: [0; 16] };
        let (mut memory, mut l2) = (0, 0);
        let ask = api.device_uuid_v2.unwrap_or(api.device_uuid);
        // SAFETY: each writes into the place given, of the length told, or of the one thing that its type is.
        unsafe {
            api.checked("cuDeviceGetName", (api.device_name)(name.as_mut_ptr(), LENGTH, device))?;
            api.checked("cuDeviceGetPCIBusId", (api.device_address)(address.as_mut_ptr(), LENGTH, device))?;
            api.checked("cuDeviceGetUuid", ask(&raw mut uuid, device))?;
            api.checked("cuDeviceTotalMem", (api.device_total)(&raw mut memory, device))?;
            api.checked("cuDeviceGetAttribute", (api.device_attribute)(&raw mut l2, L2, device))?;
        }
        let hex = format!("{:032x}", u128::from_be_bytes(uuid.bytes.map(c_char::cast_unsigned)));
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Ok(Self {
            ordinal,
            name: text(&name),
            uuid: format!("GPU-{}", parts.join("-")),
            address: text(&address).to_lowercase(),
            memory: memory as u64,
            l2: u64::try_from(l2).unwrap_or(0),
        })
    }
}

/// A GPU that this process uses: its primary context, which all libraries of the process share, and a stream.
#[derive(Debug)]
pub struct Gpu {
    pub(super) api: &'static Api,
    about: Device,
    device: CUdevice,
    pub(super) context: CUcontext,
    stream: CUstream,
    /// streams that were given up, still pending as far as is known
    stale: Mutex<Vec<CUstream>>,
    /// something in its context stays until the process ends
    stays: AtomicBool,
}

// SAFETY: contexts and streams may be used by any thread that has made the context current, which every call here does first.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver locks for itself.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Start a GPU by CUDA's number, current for this thread.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        let api = Api::get()?;
        let (about, device) = (Device::of(api, ordinal)?, device(api, ordinal)?);
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        api.checked("cuDevicePrimaryCtxRetain", unsafe { (api.retain)(&raw mut context, device) })?;
        let mut gpu =
            Self { api, about, device, context, stream: std::ptr::null_mut(), stale: Mutex::default(), stays: AtomicBool::new(false) };
        gpu.enter()?;
        gpu.stream = Stream::create(api)?;
        Ok(Arc::new(gpu))
    }

    /// Make this GPU the one that the calls of this thread are about.
    pub fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained for as long as this is.
        self.api.checked("cuCtxSetCurrent", unsafe { (self.api.set_current)(self.context) })
    }

    /// What it is.
    pub fn about(&self) -> &Device {
        &self.about
    }

    /// As people are told of it.
    pub fn name(&self) -> String {
        format!("GPU {} ({}, {})", self.about.ordinal, self.about.name, self.about.address)
    }

    /// Free and all memory, bytes.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        self.api.checked("cuMemGetInfo", unsafe { (self.api.memory_info)(&raw mut free, &raw mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Its stream, for libraries that enqueue work by themselves; kept as long as this.
    pub fn stream(&self) -> CUstream {
        self.stream
    }

    /// Its context, for the same.
    pub fn context(&self) -> CUcontext {
        self.context
    }

    /// Let this GPU's engines read and write another one's memory directly. False where the driver says that they cannot; copies
    /// between the two then go through the host's memory.
    pub fn reach(&self, other: &Self) -> Result<bool, CudaError> {
        self.reach_raw(other.device, other.context)
    }

    /// The same for a GPU of another thread, by CUDA's number.
    pub fn reach_ordinal(&self, ordinal: usize) -> Result<bool, CudaError> {
        let device = device(self.api, ordinal)?;
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: writes one pointer. The other thread retains the context, too, and longer than this one needs it.
        unsafe {
            self.api.checked("cuDevicePrimaryCtxRetain", (self.api.retain)(&raw mut context, device))?;
            let reached = self.reach_raw(device, context);
            (self.api.release)(device);
            reached
        }
    }

    fn reach_raw(&self, device: CUdevice, context: CUcontext) -> Result<bool, CudaError> {
        if device == self.device {
            return Ok(true);
        }
        self.enter()?;
        let mut can: c_int = 0;
        // SAFETY: writes one int.
        self.api.checked("cuDeviceCanAccessPeer", unsafe { (self.api.can_access)(&raw mut can, self.device, device) })?;
        if can == 0 {
            return Ok(false);
        }
        // SAFETY: the context is one that is retained.
        match unsafe { (self.api.enable_access)(context, 0) } {
            0 | ALREADY_ENABLED => Ok(true),
            code => self.api.checked("cuCtxEnablePeerAccess", code).map(|()| true),
        }
    }

    /// Keep a stream that was given up until it is done.
    pub(super) fn keep(&self, stream: CUstream) {
        self.stale.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// Keep its context until the process ends, whoever lets go of it: something in it may still be used.
    pub(super) fn stay(&self) {
        self.stays.store(true, Ordering::Release);
    }

    /// True while work that was given up may still be under way.
    pub fn disturbed(&self) -> bool {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        stale.retain(|&stream| {
            // SAFETY: the stream is kept here alone, and destroyed once.
            unsafe {
                let pending = self.enter().is_ok() && (self.api.stream_query)(stream) == NOT_READY;
                if !pending {
                    (self.api.stream_destroy)(stream);
                }
                pending
            }
        });
        !stale.is_empty()
    }

    /// What is wrong with the GPU, if anything is. An error in work that was done before comes back from every call from then on, and
    /// only a new process gets rid of it.
    pub fn health(&self) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: the stream is this GPU's own.
        match unsafe { (self.api.stream_query)(self.stream) } {
            0 | NOT_READY => Ok(()),
            code => self.api.checked("cuStreamQuery", code),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Destroying a context waits for its work: of a GPU that hangs for ever. And all that lies in it goes with it.
        if self.disturbed() || self.stays.load(Ordering::Acquire) {
            return;
        }
        // SAFETY: the stream is this GPU's own, and was retained with its context once.
        unsafe {
            if self.enter().is_ok() && !self.stream.is_null() {
                (self.api.stream_destroy)(self.stream);
            }
            (self.api.release)(self.device);
        }
    }
}
