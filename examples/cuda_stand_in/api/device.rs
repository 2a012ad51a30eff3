//! The driver and its devices.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{CUdevice_attribute_enum as Attribute, CUuuid};

use super::super::codes::{self, Code, INVALID_DEVICE, INVALID_VALUE, SUCCESS};
use super::super::described;
use super::super::driver::{Driver, LEDGER, call, put};

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    LEDGER.called("cuInit");
    let code = if flags == 0 { Driver::start() } else { INVALID_VALUE };
    if code != SUCCESS {
        LEDGER.failed("cuInit");
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    LEDGER.called("cuDriverGetVersion");
    let told = Driver::get()
        .map_or_else(|| described::Described::read().map_or(0, |told| told.cuda.version), |driver| driver.described.cuda.version);
    put(version, told).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    let name = codes::name(code);
    put(text, name.map_or(std::ptr::null(), |name| name.as_ptr().cast())).err().unwrap_or(if name.is_some() {
        SUCCESS
    } else {
        INVALID_VALUE
    })
}

/// The driver's sentences are its own; here an error's name is its text.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    cuGetErrorName(code, text)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    call("cuDeviceGetCount", |driver| put(count, driver.visible.len() as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    call("cuDeviceGet", |driver| {
        driver.device(ordinal)?;
        put(device, ordinal)
    })
}

fn put_text(to: *mut c_char, room: c_int, text: &str) -> Result<(), Code> {
    let room = usize::try_from(room).unwrap_or(0);
    if to.is_null() || room == 0 {
        return Err(INVALID_VALUE);
    }
    let length = text.len().min(room - 1);
    // SAFETY: the caller says that there is this room.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length);
        to.add(length).write(0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> Code {
    call("cuDeviceGetName", |driver| {
        driver.device(device)?;
        put_text(name, length, &driver.described.model.name)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid(uuid: *mut CUuuid, device: c_int) -> Code {
    call("cuDeviceGetUuid", |driver| put_uuid(driver, uuid, device))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: c_int) -> Code {
    call("cuDeviceGetUuid_v2", |driver| put_uuid(driver, uuid, device))
}

fn put_uuid(driver: &Driver, uuid: *mut CUuuid, device: c_int) -> Result<(), Code> {
    let text = described::uuid(driver.visible[driver.device(device)?]);
    let digits: Vec<u8> = text.bytes().skip(4).filter(u8::is_ascii_hexdigit).collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| (pair[at] as char).to_digit(16).unwrap_or(0) as u8;
        *byte = (digit(0) << 4 | digit(1)).cast_signed();
    }
    put(uuid, CUuuid { bytes })
}

/// Domain, bus and device of an address.
fn parts(address: &str) -> [u32; 3] {
    let mut parts = address.split([':', '.']).map(|part| u32::from_str_radix(part, 16).unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    [next(), next(), next()]
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) -> Code {
    call("cuDeviceGetPCIBusId", |driver| {
        let [domain, bus, slot] = parts(&driver.described.gpu[driver.visible[driver.device(device)?]].address);
        put_text(text, length, &format!("{domain:04X}:{bus:02X}:{slot:02X}.0"))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char) -> Code {
    call("cuDeviceGetByPCIBusId", |driver| {
        if text.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller says that it is a text.
        let wanted = parts(&unsafe { CStr::from_ptr(text) }.to_string_lossy());
        let found = driver.visible.iter().position(|&gpu| parts(&driver.described.gpu[gpu].address) == wanted);
        put(device, found.ok_or(INVALID_DEVICE)? as c_int)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> Code {
    call("cuDeviceTotalMem_v2", |driver| {
        driver.device(device)?;
        put(bytes, driver.described.memory() as usize)
    })
}

/// Major and minor number of NVML's architectures.
fn capability(architecture: u32) -> (c_int, c_int) {
    match architecture {
        2 => (3, 5),
        3 => (5, 2),
        4 => (6, 0),
        5 => (7, 0),
        6 => (7, 5),
        8 => (8, 9),
        9 => (9, 0),
        10 => (10, 0),
        _ => (8, 0),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> Code {
    call("cuDeviceGetAttribute", |driver| {
        let ordinal = driver.device(device)?;
        let [domain, bus, slot] = parts(&driver.described.gpu[driver.visible[ordinal]].address).map(|part| part as c_int);
        let (major, minor) = capability(driver.described.model.architecture);
        let is = |known: Attribute| known as c_int == attribute;
        let yes = [
            Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
            Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
            Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
        ];
        let waits = [
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
            Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
        ];
        let told = if yes.into_iter().any(is) {
            1
        } else if waits.into_iter().any(is) {
            c_int::from(driver.described.cuda.wait_value)
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) {
            domain
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
            bus
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) {
            slot
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
            major
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
            minor
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) {
            driver.described.cuda.l2
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) {
            2
        } else if is(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
            108
        } else {
            // What is not here, pools of memory for one, is not there.
            0
        };
        put(value, told)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> Code {
    call("cuDeviceCanAccessPeer", |driver| {
        let (device, peer) = (driver.device(device)?, driver.device(peer)?);
        let reaches = device != peer && driver.described.reaches(driver.visible[device], driver.visible[peer]);
        put(can, c_int::from(reaches))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_int, device: c_int, peer: c_int) -> Code {
    call("cuDeviceGetP2PAttribute", |driver| {
        let (device, peer) = (driver.device(device)?, driver.device(peer)?);
        if device == peer {
            return Err(INVALID_DEVICE);
        }
        // Access is 2; rank, atomics and arrays are not told apart.
        let reaches = driver.described.reaches(driver.visible[device], driver.visible[peer]);
        put(value, c_int::from(attribute == 2 && reaches))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(context: *mut c_void, flags: c_uint) -> Code {
    call("cuCtxEnablePeerAccess", |driver| {
        let (own, peer) = (driver.current()?, driver.context(context)?);
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if own == peer || !driver.described.reaches(driver.visible[own], driver.visible[peer]) {
            return Err(codes::PEER_UNSUPPORTED);
        }
        if driver.state().peers.insert((own, peer)) { Ok(()) } else { Err(codes::PEER_ENABLED) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDisablePeerAccess(context: *mut c_void) -> Code {
    call("cuCtxDisablePeerAccess", |driver| {
        let pair = (driver.current()?, driver.context(context)?);
        if driver.state().peers.remove(&pair) { Ok(()) } else { Err(codes::PEER_NOT_ENABLED) }
    })
}

/// Open MPI's and MPICH's question whether they take memory of GPUs: preloaded, this library answers for them.
#[unsafe(no_mangle)]
pub extern "C" fn MPIX_Query_cuda_support() -> c_int {
    1
}
