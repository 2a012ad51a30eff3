//! Which GPU is a rank's.

use super::driver::{Device, devices};
use crate::transport::Setup;

/// CUDA's number of this rank's GPU: of its host's ranks, the first has the first of those that are named, or that CUDA sees.
pub(super) fn ordinal(setup: &Setup, rank: usize, mates: &[usize]) -> Result<usize, String> {
    let seen = devices().map_err(|error| error.to_string())?;
    let local = mates.iter().filter(|&&mate| mate < rank).count();
    let Some(name) = setup.gpus.get(local) else {
        if !setup.gpus.is_empty() {
            return Err(format!("--gpus names {} GPUs, and this rank is number {} of its host", setup.gpus.len(), local + 1));
        }
        let few = || format!("this rank is number {} of its host, which has {} GPUs; start fewer ranks there", local + 1, seen.len());
        return seen.get(local).map(|device| device.ordinal).ok_or_else(few);
    };
    let is = |device: &&Device| {
        *name == device.ordinal.to_string() || device.uuid.eq_ignore_ascii_case(name) || device.address.eq_ignore_ascii_case(name)
    };
    let known =
        || seen.iter().map(|device| format!("{} ({}, {})", device.ordinal, device.uuid, device.address)).collect::<Vec<_>>().join(", ");
    let found = seen.iter().find(is).map(|device| device.ordinal);
    found.ok_or_else(|| format!("--gpus {name}: no such GPU here; CUDA sees {}", known()))
}
