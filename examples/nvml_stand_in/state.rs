//! What is asked between probes, not when a machine is discovered: heat, power, and whether the driver keeps the GPU awake.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::{Answer, of_device, put};
use crate::described::{Described, Gpu};

fn number(call: &str, device: nvmlDevice_t, value: *mut c_uint, tell: impl FnOnce(&Described, &Gpu) -> c_uint) -> nvmlReturn_t {
    // SAFETY: as all of NVML's calls are.
    of_device(call, device, None, |described, gpu, _| -> Answer { unsafe { put(value, tell(described, gpu)) } })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, milliwatts: *mut c_uint) -> nvmlReturn_t {
    number("nvmlDeviceGetPowerUsage", device, milliwatts, |described, _| described.model.power)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: nvmlDevice_t, _sensor: c_uint, degrees: *mut c_uint) -> nvmlReturn_t {
    number("nvmlDeviceGetTemperature", device, degrees, |described, gpu| gpu.temperature.unwrap_or(described.model.temperature))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: *mut c_uint) -> nvmlReturn_t {
    number("nvmlDeviceGetPersistenceMode", device, mode, |described, gpu| {
        c_uint::from(gpu.persistence.unwrap_or(described.model.persistence))
    })
}
