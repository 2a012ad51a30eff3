//! How a rank's GPU is doing, asked between probes.

use std::collections::BTreeMap;

use crate::topology::{CudaDevice, GpuState};

/// The management library, kept open for a sweep; where there is none nothing is told.
#[derive(Default)]
pub struct Watch {
    #[cfg(feature = "nvml")]
    open: std::cell::OnceCell<Option<crate::discover::nvml::Looks>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// How a GPU is doing now. The first look opens the library.
    #[cfg(feature = "nvml")]
    pub fn look(&mut self, gpu: &CudaDevice) -> Option<GpuState> {
        self.open.get_or_init(crate::discover::nvml::Looks::open).as_ref()?.state(gpu.address?)
    }

    #[cfg(not(feature = "nvml"))]
    pub fn look(&mut self, _: &CudaDevice) -> Option<GpuState> {
        None
    }
}

/// Name and version of what moves GPU memory here.
pub(super) fn software() -> BTreeMap<String, String> {
    use crate::transport::libraries::{Library, cuda_driver, nccl};
    let mut software = BTreeMap::new();
    let mut tell = |name: &str, library: Library| {
        if let Library::Present(version) = library {
            software.insert(name.to_owned(), version);
        }
    };
    tell("CUDA driver", cuda_driver());
    tell("NCCL", nccl());
    #[cfg(feature = "nvml")]
    if let Some(looks) = crate::discover::nvml::Looks::open() {
        software.extend(looks.software());
    }
    software
}
