//! CUDA's driver, NCCL and NVML, as far as they can be loaded here. Absent is a fact, not an error.

use crate::discover::Machine;
use crate::topology::Hardware;

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

/// The CUDA driver: its version and the number of devices that it sees.
#[cfg(feature = "cuda")]
pub fn cuda_driver() -> Library {
    use cudarc::driver::{result, sys};
    // SAFETY: loads libcuda and runs its initialisers, which is what is asked for. Asked first, since the calls below
    // panic without the library.
    #[allow(unsafe_code, reason = "loading a library runs its code")]
    let present = unsafe { sys::is_culib_present() };
    if !present {
        return Library::Absent;
    }
    if let Err(error) = result::init() {
        return Library::Broken(format!("cuInit: {error:?}"));
    }
    let mut version = 0;
    // SAFETY: writes one int to the place given.
    #[allow(unsafe_code, reason = "cudarc has no safe call for the version")]
    let got = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    match (got.result(), result::device::get_count()) {
        (Ok(()), Ok(count)) => Library::Present(format!("CUDA {}.{}, {count} device(s)", version / 1000, version % 1000 / 10)),
        (Err(error), _) | (_, Err(error)) => Library::Broken(format!("{error:?}")),
    }
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
