//! What this process sees, and where this thread runs.

use super::Sight;
use super::watch::software;
use crate::transport::libraries::cuda_devices;
use crate::units::{format_ranks, plain};

/// The GPUs that CUDA shows to this process; `cores` are those that the rank may run on. Starts the driver, which takes a second or
/// more where nothing keeps the GPUs awake: asked before anything is timed.
pub fn sight(cores: Vec<usize>) -> Sight {
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES").map(|value| plain(&value.to_string_lossy()));
    match cuda_devices() {
        Ok(devices) => Sight { devices, visible, cores, software: software(), error: String::new() },
        Err(error) => Sight { visible, error, cores, ..Sight::default() },
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
