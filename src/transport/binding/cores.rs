//! The cores that ranks run on, near their GPUs.

use super::{Cores, Decided, Host};
use crate::topology::{Bound, CudaDevice, Hardware, find_gpu};
use crate::transport::Absent;
use crate::units::format_ranks;

/// Bind each rank to the cores near its GPU that it may use; where a launcher has left it none of those, it stays where it is.
pub(super) fn place(
    host: &Host<'_>,
    hardware: Option<&Hardware>,
    devices: Vec<Result<CudaDevice, String>>,
    cores: Cores,
    decided: &mut Decided,
) {
    let mut used: Vec<usize> = Vec::new();
    let (mut kept, mut unknown) = (Vec::new(), Vec::new());
    for (at, device) in devices.into_iter().enumerate() {
        let (placement, allowed) = (host.ranks[at], &host.sights[at].cores);
        let device = match device {
            Ok(device) => device,
            Err(reason) => {
                decided.absent.push(Absent { rank: placement.rank, reason });
                continue;
            }
        };
        let near = hardware.map_or_else(Vec::new, |hardware| near(hardware, &device));
        let here: Vec<usize> = allowed.iter().copied().filter(|core| near.contains(core)).collect();
        let mut own = here.clone();
        if near.is_empty() || here.is_empty() {
            own.clone_from(&placement.cores);
        } else if cores == Cores::One {
            let times = |core: &usize| used.iter().filter(|other| *other == core).count();
            own = here.iter().copied().min_by_key(times).into_iter().collect();
            used.extend(&own);
        }
        if near.is_empty() {
            unknown.push(placement.rank);
        } else if here.is_empty() {
            decided.told.push(format!(
                "host {}: rank {} runs on core {}, none of them near {} (core {}): it was started so; let it run there, or bind it to none \
                 (mpirun --bind-to none)",
                host.name,
                placement.rank,
                format_ranks(&placement.cores),
                device.told(),
                format_ranks(&near)
            ));
        } else if here.len() < near.len() && cores == Cores::Near && here.len() == allowed.len() {
            kept.push(placement.rank);
        }
        let numa = hardware.map_or(placement.numa, |hardware| node_of(hardware, &own));
        decided.bound.push(Bound { rank: placement.rank, gpu: Some(device), cores: own, numa });
    }
    if !kept.is_empty() {
        let ranks = format_ranks(&kept);
        decided
            .told
            .push(format!("host {}: rank {ranks} stays on the cores that it was started on, fewer than are near its GPU", host.name));
    }
    if !unknown.is_empty() {
        let ranks = format_ranks(&unknown);
        decided
            .told
            .push(format!("host {}: nothing tells which cores are near the GPU of rank {ranks}; it runs where it was started", host.name));
    }
}

/// Logical processors near a GPU, as its driver tells them, or else those of its NUMA node; empty when neither is known.
fn near(hardware: &Hardware, device: &CudaDevice) -> Vec<usize> {
    let Some(gpu) = find_gpu(hardware, device).and_then(|at| hardware.gpus.get(at)) else { return Vec::new() };
    if !gpu.cpus.is_empty() {
        return gpu.cpus.clone();
    }
    // Firmware often tells the node of the root alone.
    let above = || gpu.pci.and_then(|pci| hardware.above(pci).find_map(|at| hardware.pci.get(at)?.numa));
    let node = gpu.numa.or_else(above).and_then(|id| hardware.numa.iter().find(|node| node.id == id));
    node.map_or_else(Vec::new, |node| node.cpus.clone())
}

/// The NUMA node that holds all of them.
fn node_of(hardware: &Hardware, cores: &[usize]) -> Option<usize> {
    let holds = |cpus: &[usize]| !cores.is_empty() && cores.iter().all(|core| cpus.contains(core));
    hardware.numa.iter().find(|node| holds(&node.cpus)).map(|node| node.id)
}
