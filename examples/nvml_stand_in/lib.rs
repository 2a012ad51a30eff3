//! A library with NVML's C interface that serves a box described by a file, so that the tests go through nvml-wrapper without a
//! GPU. `TOPOSCOPE_STAND_IN` names the file (see `described`), which is read anew at every `nvmlInit`. Signatures and layouts are
//! those of nvml-wrapper-sys; only what toposcope calls is here.
//!
//! By hand: `TOPOSCOPE_NVML=target/debug/examples/libnvml_stand_in.so TOPOSCOPE_STAND_IN=tests/boxes/nvswitch.toml toposcope discover`.
//!
//! Handles are numbers in the shape of pointers and are never followed. Every pointer that is written through is checked for null
//! and otherwise trusted to be what NVML's interface asks for.

#![allow(unsafe_code, reason = "a C interface is the purpose")]
#![allow(non_snake_case, reason = "the names are NVML's")]
#![allow(clippy::missing_safety_doc, reason = "told once, above")]

mod described;
mod state;

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use described::{Described, Gpu, has};
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_C2C_LINK_COUNT, NVML_FI_DEV_C2C_LINK_GET_MAX_BW, NVML_FI_DEV_C2C_LINK_GET_STATUS, NVML_FI_DEV_NVLINK_LINK_COUNT,
    NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON,
};
use nvml_wrapper_sys::bindings::{
    nvmlClockType_enum_NVML_CLOCK_MEM as MEMORY_CLOCK, nvmlDevice_t, nvmlFieldValue_t, nvmlGpuFabricInfo_t, nvmlMemory_v2_t, nvmlPciInfo_t,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as SIZE, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND, nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlReturn_enum_NVML_ERROR_UNINITIALIZED as UNINITIALIZED, nvmlReturn_enum_NVML_ERROR_UNKNOWN as UNKNOWN,
    nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
};

type Answer = Result<(), nvmlReturn_t>;

static SERVED: Mutex<Option<Described>> = Mutex::new(None);

/// A handle: the GPU, and the instance on it if it is one.
#[derive(Clone, Copy)]
struct Handle {
    gpu: usize,
    instance: Option<usize>,
}

impl Handle {
    fn pack(self) -> nvmlDevice_t {
        std::ptr::without_provenance_mut(1 + self.gpu + (self.instance.map_or(0, |instance| instance + 1) << 16))
    }

    fn unpack(handle: nvmlDevice_t) -> Result<Self, nvmlReturn_t> {
        let number = handle.addr();
        let gpu = (number & 0xffff).checked_sub(1).ok_or(INVALID)?;
        Ok(Self { gpu, instance: (number >> 16).checked_sub(1) })
    }
}

/// Answer a call that is about no device.
fn answer(call: &str, tell: impl FnOnce(&Described) -> Answer) -> nvmlReturn_t {
    let served = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(described) = served.as_ref() else { return UNINITIALIZED };
    described.failure(call, None, None).map_or_else(|| tell(described), Err).err().unwrap_or(SUCCESS)
}

/// Answer a call about a device, and about a link of it if one is named.
fn of_device(
    call: &str,
    handle: nvmlDevice_t,
    link: Option<c_uint>,
    tell: impl FnOnce(&Described, &Gpu, Handle) -> Answer,
) -> nvmlReturn_t {
    let served = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(described) = served.as_ref() else { return UNINITIALIZED };
    let Ok(handle) = Handle::unpack(handle) else { return INVALID };
    let Some(gpu) = described.gpu.get(handle.gpu) else { return INVALID };
    let failure = described.failure(call, Some(handle.gpu), link);
    failure.map_or_else(|| tell(described, gpu, handle), Err).err().unwrap_or(SUCCESS)
}

/// Write a value where the caller wants it.
unsafe fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, and the caller of NVML's interface owns it.
    unsafe { to.write(value) };
    Ok(())
}

/// Write text with its final zero.
unsafe fn put_text(to: *mut c_char, room: c_uint, text: &str) -> Answer {
    if to.is_null() {
        return Err(INVALID);
    }
    if text.len() >= room as usize {
        return Err(SIZE);
    }
    // SAFETY: the caller says that there is this room.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Write a set of numbers as bits.
unsafe fn put_bits(to: *mut c_ulong, words: c_uint, set: impl Fn(usize) -> bool) -> Answer {
    if to.is_null() {
        return Err(INVALID);
    }
    let width = c_ulong::BITS as usize;
    for word in 0..words as usize {
        let bits = (0..width).filter(|bit| set(word * width + bit)).fold(0, |bits, bit| bits | 1 << bit);
        // SAFETY: the caller says that there are so many words.
        unsafe { to.add(word).write(bits) };
    }
    Ok(())
}

/// A PCI address as NVML tells it; one that cannot be parsed is passed on as text alone.
fn pci(address: &str, device: u32) -> nvmlPciInfo_t {
    let mut info = nvmlPciInfo_t {
        busIdLegacy: [0; 16],
        domain: 0,
        bus: 0,
        device: 0,
        pciDeviceId: device << 16 | 0x10de,
        pciSubSystemId: 0,
        busId: [0; 32],
    };
    let hex = |part: Option<&str>| part.and_then(|part| u32::from_str_radix(part, 16).ok()).unwrap_or(0);
    let mut parts = address.split([':', '.']);
    (info.domain, info.bus, info.device) = (hex(parts.next()), hex(parts.next()), hex(parts.next()));
    let long = format!("{:08X}:{:02X}:{:02X}.0", info.domain, info.bus, info.device);
    let text = if address.starts_with("ffff") { address } else { &long };
    for (to, byte) in info.busId.iter_mut().zip(text.bytes().take(31)) {
        *to = byte.cast_signed();
    }
    info
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    let path = std::env::var("TOPOSCOPE_STAND_IN").map_err(|_| "TOPOSCOPE_STAND_IN names no file".to_owned());
    match path.and_then(|path| Described::read(Path::new(&path))) {
        Ok(described) => {
            *SERVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(described);
            answer("nvmlInit_v2", |_| Ok(()))
        }
        Err(why) => {
            eprintln!("nvml_stand_in: {why}");
            UNKNOWN
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    let code = answer("nvmlShutdown", |_| Ok(()));
    *SERVED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer("nvmlSystemGetDriverVersion", |described| unsafe { put_text(version, length, &described.driver) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    answer("nvmlDeviceGetCount_v2", |described| unsafe { put(count, described.gpu.len() as c_uint) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    let handle = Handle { gpu: index as usize, instance: None }.pack();
    of_device("nvmlDeviceGetHandleByIndex_v2", handle, None, |_, _, _| unsafe { put(device, handle) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetName", device, None, |described, gpu, handle| {
        let profile = handle.instance.and_then(|instance| gpu.mig.as_ref()?.get(instance));
        let text = profile.map_or_else(|| described.model.name.clone(), |profile| format!("{} MIG {profile}", described.model.name));
        unsafe { put_text(name, length, &text) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetUUID", device, None, |_, _, handle| {
        let kind = if handle.instance.is_some() { "MIG" } else { "GPU" };
        let text = format!("{kind}-{:08x}-0000-0000-0000-{:012x}", handle.gpu, handle.instance.map_or(0, |instance| instance + 1));
        unsafe { put_text(uuid, length, &text) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, info: *mut nvmlPciInfo_t) -> nvmlReturn_t {
    of_device("nvmlDeviceGetPciInfo_v3", device, None, |described, gpu, _| unsafe { put(info, pci(&gpu.address, described.model.id)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) -> nvmlReturn_t {
    of_device("nvmlDeviceGetMemoryInfo_v2", device, None, |described, _, _| {
        let total = described.model.memory_gib << 30;
        let version = size_of::<nvmlMemory_v2_t>() as c_uint | 2 << 24;
        unsafe { put(memory, nvmlMemory_v2_t { version, total, reserved: 0, free: total, used: 0 }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, architecture: *mut c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetArchitecture", device, None, |described, _, _| unsafe { put(architecture, described.architecture()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCpuAffinity(device: nvmlDevice_t, words: c_uint, set: *mut c_ulong) -> nvmlReturn_t {
    of_device("nvmlDeviceGetCpuAffinity", device, None, |_, gpu, _| unsafe { put_bits(set, words, |cpu| has(&gpu.cpus, cpu)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryAffinity(
    device: nvmlDevice_t,
    words: c_uint,
    set: *mut c_ulong,
    _scope: c_uint,
) -> nvmlReturn_t {
    of_device("nvmlDeviceGetMemoryAffinity", device, None, |_, gpu, _| unsafe { put_bits(set, words, |node| node == gpu.node) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, clock: c_uint, value: *mut c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetClockInfo", device, None, |described, _, _| {
        let own = if clock == MEMORY_CLOCK { described.model.memory_clock } else { described.model.clock[0] };
        unsafe { put(value, own) }
    })
}

/// A call that answers with one number: its name and where the number is.
macro_rules! number {
    ($($call:ident($($before:ident: $of:ty),*) -> $kind:ty = $tell:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, $($before: $of,)* value: *mut $kind) -> nvmlReturn_t {
            $(let _ = $before;)*
            let tell: fn(&Described, &Gpu) -> Result<$kind, nvmlReturn_t> = $tell;
            of_device(stringify!($call), device, None, |described, gpu, _| unsafe { put(value, tell(described, gpu)?) })
        }
    )*};
}

number! {
    nvmlDeviceGetMaxClockInfo(clock: c_uint) -> c_uint = |described, _| Ok(described.model.clock[1]);
    nvmlDeviceGetCurrentClocksThrottleReasons() -> c_ulonglong = |_, gpu| Ok(gpu.throttled);
    nvmlDeviceGetCurrPcieLinkGeneration() -> c_uint = |described, gpu| Ok(gpu.pcie.unwrap_or(described.model.pcie)[0]);
    nvmlDeviceGetCurrPcieLinkWidth() -> c_uint = |described, gpu| Ok(gpu.pcie.unwrap_or(described.model.pcie)[1]);
    nvmlDeviceGetMaxPcieLinkGeneration() -> c_uint = |described, _| Ok(described.model.pcie_most[0]);
    nvmlDeviceGetMaxPcieLinkWidth() -> c_uint = |described, _| Ok(described.model.pcie_most[1]);
    nvmlDeviceGetPcieLinkMaxSpeed() -> c_uint = |described, _| Some(described.model.pcie_speed).filter(|&code| code > 0).ok_or(NOT_SUPPORTED);
    nvmlDeviceGetMaxMigDeviceCount() -> c_uint = |described, _| if described.model.mig { Ok(7) } else { Err(NOT_SUPPORTED) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetMigMode", device, None, |described, gpu, _| {
        if !described.model.mig {
            return Err(NOT_SUPPORTED);
        }
        let on = c_uint::from(gpu.mig.is_some());
        unsafe { put(current, on).and_then(|()| put(pending, on)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    instance: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    of_device("nvmlDeviceGetMigDeviceHandleByIndex", device, None, |_, gpu, handle| {
        let slot = index as usize;
        gpu.mig.as_ref().and_then(|profiles| profiles.get(slot)).ok_or(NOT_FOUND)?;
        unsafe { put(instance, Handle { instance: Some(slot), ..handle }.pack()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, count: c_int, values: *mut nvmlFieldValue_t) -> nvmlReturn_t {
    of_device("nvmlDeviceGetFieldValues", device, None, |described, _, _| {
        if values.is_null() {
            return Err(INVALID);
        }
        let model = &described.model;
        for at in 0..usize::try_from(count).map_err(|_| INVALID)? {
            // SAFETY: the caller says that there are so many.
            let value = unsafe { &mut *values.add(at) };
            let number = match value.fieldId {
                NVML_FI_DEV_NVLINK_LINK_COUNT => Some(model.links),
                NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON if model.links > 0 => Some(model.link_speed),
                NVML_FI_DEV_C2C_LINK_COUNT => Some(model.c2c[0]),
                NVML_FI_DEV_C2C_LINK_GET_STATUS if model.c2c[0] > 0 => Some(1),
                NVML_FI_DEV_C2C_LINK_GET_MAX_BW if model.c2c[0] > 0 => Some(model.c2c[1]),
                _ => None,
            };
            value.valueType = UNSIGNED_INT;
            value.value.uiVal = number.unwrap_or(0);
            value.nvmlReturn = if number.is_some() { SUCCESS } else { NOT_SUPPORTED };
        }
        Ok(())
    })
}

/// Answer a call about a link that exists.
fn of_link(
    call: &str,
    device: nvmlDevice_t,
    link: c_uint,
    tell: impl FnOnce(&Described, Option<&described::NvLinks>) -> Answer,
) -> nvmlReturn_t {
    of_device(call, device, Some(link), |described, _, handle| match described.model.links {
        0 => Err(NOT_SUPPORTED),
        links if link >= links => Err(INVALID),
        _ => tell(described, described.link(handle.gpu, link)),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkState(device: nvmlDevice_t, link: c_uint, active: *mut c_uint) -> nvmlReturn_t {
    of_link("nvmlDeviceGetNvLinkState", device, link, |_, up| unsafe { put(active, c_uint::from(up.is_some())) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, link: c_uint, version: *mut c_uint) -> nvmlReturn_t {
    of_link("nvmlDeviceGetNvLinkVersion", device, link, |described, up| {
        up.ok_or(NOT_SUPPORTED)?;
        unsafe { put(version, described.model.link_version) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: nvmlDevice_t, link: c_uint, info: *mut nvmlPciInfo_t) -> nvmlReturn_t {
    of_link("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, |described, up| {
        let to = up.and_then(|up| up.to.as_deref()).ok_or(NOT_SUPPORTED)?;
        let is_gpu = described.gpu.iter().any(|gpu| gpu.address == to);
        unsafe { put(info, pci(to, if is_gpu { described.model.id } else { 0 })) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkErrorCounter(
    device: nvmlDevice_t,
    link: c_uint,
    counter: c_uint,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    of_link("nvmlDeviceGetNvLinkErrorCounter", device, link, |_, up| {
        let counts = up.ok_or(NOT_SUPPORTED)?.errors;
        unsafe { put(count, *counts.get(counter as usize).ok_or(INVALID)?) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetP2PStatus(
    one: nvmlDevice_t,
    other: nvmlDevice_t,
    access: c_uint,
    status: *mut c_uint,
) -> nvmlReturn_t {
    of_device("nvmlDeviceGetP2PStatus", one, None, |described, _, handle| {
        let other = Handle::unpack(other)?;
        unsafe { put(status, described.status(handle.gpu, other.gpu, access as usize)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTopologyCommonAncestor(one: nvmlDevice_t, other: nvmlDevice_t, level: *mut c_uint) -> nvmlReturn_t {
    of_device("nvmlDeviceGetTopologyCommonAncestor", one, None, |described, _, handle| {
        let other = Handle::unpack(other)?;
        unsafe { put(level, described.level(handle.gpu, other.gpu)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuFabricInfo(device: nvmlDevice_t, info: *mut nvmlGpuFabricInfo_t) -> nvmlReturn_t {
    of_device("nvmlDeviceGetGpuFabricInfo", device, None, |described, _, handle| {
        let fabric = described.fabric(handle.gpu).ok_or(NOT_SUPPORTED)?;
        unsafe { put(info, nvmlGpuFabricInfo_t { clusterUuid: [0; 16], status: fabric.status, cliqueId: 0, state: fabric.state }) }
    })
}
