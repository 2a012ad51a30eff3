//! What this process sees, and where this thread runs.

use super::Sight;
use super::watch::software;
use crate::topology::CudaDevice;
use crate::units::{format_ranks, plain};

/// The GPUs that CUDA shows to this process; `cores` are those that the rank may run on. Starts the driver, which takes a second or
/// more where nothing keeps the GPUs awake: asked before anything is timed.
pub fn sight(cores: Vec<usize>) -> Sight {
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES").map(|value| plain(&value.to_string_lossy()));
    match devices() {
        Ok(devices) => Sight { devices, visible, cores, software: software(), error: String::new() },
        Err(error) => Sight { visible, cores, error, ..Sight::default() },
    }
}

/// Let the calling thread, and those that it starts, run on these cores alone.
pub fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    for &core in cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU) {
        set.set(core);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| format!("could not bind this rank to core {}: {error}", format_ranks(cores)))
}

#[cfg(not(feature = "cuda"))]
fn devices() -> Result<Vec<CudaDevice>, String> {
    Err("this build has no CUDA: cargo build --release --features cuda".to_owned())
}

/// In CUDA's order.
#[cfg(feature = "cuda")]
fn devices() -> Result<Vec<CudaDevice>, String> {
    let seen = crate::transport::cuda::driver::devices().map_err(|error| error.to_string())?;
    let one = |device: crate::transport::cuda::driver::Device| CudaDevice {
        number: device.ordinal,
        name: device.name,
        address: device.address.parse().ok(),
        uuid: Some(device.uuid),
        memory: device.memory,
    };
    Ok(seen.into_iter().map(one).collect())
}
