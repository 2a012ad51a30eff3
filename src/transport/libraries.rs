//! CUDA's driver, NCCL and NVML, as far as they can be loaded here. Absent is a fact, not an error.

use crate::discover::Machine;
use crate::topology::{CudaDevice, Hardware};

/// What loading a library came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// loaded; what it says of itself
    Present(String),
    /// loaded, but it does not work
    Broken(String),
    /// the loader does not find it
    Absent,
    /// this build does not look for it
    NotBuilt,
}

/// The CUDA driver: its version and the GPUs that it shows.
#[cfg(feature = "cuda")]
pub fn cuda_driver() -> Library {
    use super::cuda::driver::{CudaError, Missing, devices, version};
    let told = version().and_then(|version| Ok((version, devices()?)));
    match told {
        Ok(((major, minor), devices)) => {
            // Names with their number, in the order of the first of each.
            let mut names: Vec<(String, usize)> = Vec::new();
            for device in devices {
                match names.iter_mut().find(|(known, _)| *known == device.name) {
                    Some((_, number)) => *number += 1,
                    None => names.push((device.name, 1)),
                }
            }
            let names: Vec<String> = names.into_iter().map(|(name, number)| format!("{number} x {name}")).collect();
            let names = if names.is_empty() { "no GPU".to_owned() } else { names.join(", ") };
            Library::Present(format!("CUDA {major}.{minor}, {names}"))
        }
        Err(CudaError::Missing(Missing::Library)) => Library::Absent,
        Err(error) => Library::Broken(error.to_string()),
    }
}

/// The GPUs that CUDA shows to this process, in its order, or why there is none to ask.
#[cfg(feature = "cuda")]
pub fn cuda_devices() -> Result<Vec<CudaDevice>, String> {
    let seen = super::cuda::driver::devices().map_err(|error| error.to_string())?;
    let one = |device: super::cuda::driver::Device| CudaDevice {
        number: device.ordinal,
        name: device.name,
        address: device.address.parse().ok(),
        uuid: Some(device.uuid),
        memory: device.memory,
    };
    Ok(seen.into_iter().map(one).collect())
}

/// Whether one GPU's engines can read and write another one's memory directly, by CUDA's numbers.
#[cfg(feature = "cuda")]
pub fn reaches(from: usize, to: usize) -> Result<bool, String> {
    super::cuda::driver::reaches(from, to).map_err(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
const NOT_BUILT: &str = "this build has no CUDA: cargo build --release --features cuda";

#[cfg(not(feature = "cuda"))]
pub fn cuda_devices() -> Result<Vec<CudaDevice>, String> {
    Err(NOT_BUILT.to_owned())
}

#[cfg(not(feature = "cuda"))]
pub fn reaches(_: usize, _: usize) -> Result<bool, String> {
    Err(NOT_BUILT.to_owned())
}

/// NCCL: its version, and what it lacks of what movers need.
#[cfg(feature = "cuda")]
pub fn nccl() -> Library {
    use super::cuda::nccl::{Missing, api};
    match api() {
        Ok(api) => Library::Present(api.describe()),
        Err(Missing::Absent(_)) => Library::Absent,
        Err(Missing::Broken(why)) => Library::Broken(why),
    }
}

/// What this host is made of: what its files say, and what NVML tells of its GPUs. Asked once, before anything is timed.
pub fn hardware(machine: &Machine) -> Hardware {
    let mut hardware = machine.hardware();
    gpus(&mut hardware, machine);
    hardware
}

/// Of a recorded machine only a library that `TOPOSCOPE_NVML` names is asked: the driver's would tell of this one.
#[cfg(feature = "nvml")]
fn gpus(hardware: &mut Hardware, machine: &Machine) {
    let asked = *machine == Machine::default() || crate::discover::nvml::named().is_some();
    if let Some(nvml) = asked.then(|| crate::discover::nvml::look(hardware, None)).flatten() {
        super::nvswitch::look(hardware, &nvml);
    }
}

/// This build does not ask.
#[cfg(not(feature = "nvml"))]
fn gpus(_: &mut Hardware, _: &Machine) {}

#[cfg(not(feature = "cuda"))]
pub fn cuda_driver() -> Library {
    Library::NotBuilt
}

#[cfg(not(feature = "cuda"))]
pub fn nccl() -> Library {
    Library::NotBuilt
}
