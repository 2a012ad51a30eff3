//! Which GPU is a rank's, and the cores that it runs on for it.

use serde::{Deserialize, Serialize};

use super::hardware::{Gpu, PciDevice};
use super::{Hardware, PciAddress, Topology};

/// A GPU as the CUDA driver shows it to one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaDevice {
    /// CUDA's number, among those that the process sees
    pub number: usize,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PciAddress>,
    /// bytes; 0 when not told
    #[serde(default)]
    pub memory: u64,
}

impl CudaDevice {
    /// True if both are the same GPU (or the same instance of one), whatever their numbers.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.uuid, &other.uuid, self.address, other.address) {
            (Some(own), Some(theirs), ..) => own == theirs,
            (_, _, Some(own), Some(theirs)) => own == theirs,
            _ => self.number == other.number,
        }
    }

    /// `GPU 3 (NVIDIA H100, 0000:3b:00.0)`
    pub fn told(&self) -> String {
        let address = self.address.map(|address| address.to_string());
        let facts: Vec<&str> =
            [Some(self.name.as_str()), address.as_deref()].into_iter().flatten().filter(|text| !text.is_empty()).collect();
        if facts.is_empty() { format!("GPU {}", self.number) } else { format!("GPU {} ({})", self.number, facts.join(", ")) }
    }
}

/// What a rank is bound to from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub rank: usize,
    /// whose memory it moves; absent for the host's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<CudaDevice>,
    /// logical processors that it runs on, ascending
    pub cores: Vec<usize>,
    /// NUMA node of those
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<usize>,
}

impl Topology {
    /// Ranks are bound so from now on. A GPU that nobody has told of yet is added to its host.
    pub fn bind(&mut self, bound: &[Bound]) {
        for Bound { rank, gpu, cores, numa } in bound {
            let Some(host) = self.ranks.get(*rank).map(|placement| placement.host.clone()) else { continue };
            let index = gpu.as_ref().map(|gpu| {
                let known = self.hardware.iter().position(|hardware| hardware.host == host).unwrap_or_else(|| {
                    self.hardware.push(Hardware { host, source: "CUDA driver".to_owned(), ..Hardware::default() });
                    self.hardware.len() - 1
                });
                index_of(&mut self.hardware[known], gpu)
            });
            let placement = &mut self.ranks[*rank];
            (placement.gpu, placement.numa) = (index, *numa);
            placement.cores.clone_from(cores);
        }
    }
}

/// Index in [`Hardware::gpus`] of what the CUDA driver shows; added if it is not there.
fn index_of(hardware: &mut Hardware, told: &CudaDevice) -> usize {
    if let Some(at) = find_gpu(hardware, told) {
        return at;
    }
    let pci = told.address.map(|address| {
        hardware.pci_at(address).unwrap_or_else(|| {
            hardware.pci.push(PciDevice { address, class: 0x03_0200, vendor: 0x10de, ..PciDevice::default() });
            hardware.pci.len() - 1
        })
    });
    let Some(last) = hardware.gpus.iter().map(|gpu| gpu.index).max() else {
        hardware.gpus.push(Gpu {
            index: told.number,
            name: told.name.clone(),
            uuid: told.uuid.clone(),
            pci,
            memory: told.memory,
            ..Gpu::default()
        });
        return 0;
    };
    hardware.gpus.push(Gpu {
        index: last + 1,
        name: told.name.clone(),
        uuid: told.uuid.clone(),
        pci,
        memory: told.memory,
        ..Gpu::default()
    });
    hardware.gpus.len() - 1
}

/// Which of the host's GPUs the CUDA driver means; an instance (MIG) is of the GPU at its address.
pub fn find_gpu(hardware: &Hardware, told: &CudaDevice) -> Option<usize> {
    let at = told.address.and_then(|address| hardware.pci_at(address));
    let by_address = at.and_then(|at| hardware.gpus.iter().position(|gpu| gpu.pci == Some(at)));
    by_address.or_else(|| hardware.gpus.iter().position(|gpu| told.uuid.is_some() && gpu.uuid == told.uuid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    fn device(number: usize, address: &str) -> CudaDevice {
        CudaDevice { number, name: "A".to_owned(), uuid: Some(format!("GPU-{address}")), address: address.parse().ok(), memory: 8 << 30 }
    }

    #[test]
    fn ranks_move_to_their_gpus_and_back_and_unknown_gpus_are_added_once() {
        let place = |rank| Placement { rank, host: "a".to_owned(), cores: vec![rank], ..Placement::default() };
        let mut topology = Topology::of((0..3).map(place).collect());
        let known = PciDevice { address: "0000:3b:00.0".parse().unwrap(), ..PciDevice::default() };
        let gpus = vec![Gpu { index: 4, ..Gpu::default() }, Gpu { index: 7, pci: Some(0), ..Gpu::default() }];
        topology.hardware = vec![Hardware { host: "a".to_owned(), pci: vec![known], gpus, ..Hardware::default() }];
        let home = topology.clone();
        let bind = |rank, gpu: Option<CudaDevice>, cores: &[usize]| Bound { rank, gpu, cores: cores.to_vec(), numa: Some(1) };
        let other = device(1, "0000:5e:00.0");
        topology.bind(&[
            bind(0, Some(device(0, "0000:3b:00.0")), &[8, 9]),
            bind(1, Some(other.clone()), &[10]),
            bind(2, Some(other), &[11]),
            bind(9, None, &[0]),
        ]);
        let placed: Vec<_> = topology.ranks.iter().map(|own| (own.gpu, own.cores.clone(), own.numa)).collect();
        assert_eq!(placed, [(Some(1), vec![8, 9], Some(1)), (Some(2), vec![10], Some(1)), (Some(2), vec![11], Some(1))]);
        let added = &topology.hardware[0].gpus[2];
        assert_eq!((added.index, added.name.as_str(), added.memory, topology.hardware[0].gpus.len()), (8, "A", 8 << 30, 3));
        let back: Vec<Bound> =
            home.ranks.iter().map(|own| Bound { rank: own.rank, gpu: None, cores: own.cores.clone(), numa: own.numa }).collect();
        topology.bind(&back);
        assert_eq!(topology.ranks, home.ranks);
        // A host of which nothing is known.
        let mut bare = Topology::of(vec![place(0)]);
        bare.bind(&[bind(0, Some(CudaDevice { number: 3, ..CudaDevice::default() }), &[0])]);
        assert_eq!((bare.ranks[0].gpu, bare.hardware[0].gpus[0].index), (Some(0), 3));
    }

    #[test]
    fn a_gpu_is_itself_whatever_its_number() {
        let (a, mut b) = (device(0, "0000:3b:00.0"), device(5, "0000:3b:00.0"));
        assert!(a.is(&b));
        b.uuid = Some("MIG-1".to_owned());
        assert!(!a.is(&b), "an instance is not the whole");
        b.uuid = None;
        assert!(a.is(&b) && !a.is(&device(0, "0000:5e:00.0")));
        assert_eq!(a.told(), "GPU 0 (A, 0000:3b:00.0)");
        assert_eq!(CudaDevice::default().told(), "GPU 0");
    }
}
