//! GPUs as NVIDIA's management library (NVML) tells them. The library is loaded at run time; that it is absent is a fact, and
//! each call that fails costs what it would have told and nothing else.
//!
//! Only calls that nvml-wrapper has safely. Its `remote_device_type` always answers `Unknown` (0.13), so the other end of a link
//! is told by its PCI address.

mod device;
mod failures;
mod links;
mod pairs;
mod state;

use std::path::{Path, PathBuf};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

pub use failures::{Failures, Whom, counted, phrase};
pub use state::Looks;

use crate::topology::hardware::{Gpu, NoteKind, PciDevice};
use crate::topology::{Hardware, PciAddress};
use crate::units::plain;

/// Names a library to load instead of the driver's.
const LIBRARY: &str = "TOPOSCOPE_NVML";

/// Where drivers put it: in the loader's path, then as WSL, GPU containers and `NixOS` do.
const PLACES: [&str; 5] = [
    "libnvidia-ml.so.1",
    "libnvidia-ml.so",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
];

/// More GPUs than any host has; a count beyond it is not believed.
const MOST_GPUS: u32 = 256;

const NVIDIA: u16 = 0x10de;

/// One of the driver's GPUs.
struct Seen<'nvml> {
    /// the driver's number
    index: u32,
    device: Device<'nvml>,
    address: Option<PciAddress>,
    /// PCI vendor and device
    id: (u16, u16),
    /// index in [`Hardware::gpus`]
    gpu: usize,
}

/// Why there is no library to ask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    #[error("libnvidia-ml.so.1 is not there")]
    Absent,
    #[error("{0}")]
    Broken(String),
}

/// The library that `TOPOSCOPE_NVML` names instead of the driver's.
pub fn named() -> Option<PathBuf> {
    std::env::var_os(LIBRARY).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Add what NVML tells to `hardware`: its GPUs and their links. `library` is the one to load; else `TOPOSCOPE_NVML` names it; else
/// the driver's. Asked once, never while something is timed: drivers that keep no GPU awake may take seconds. Returns the opened
/// library for who has more to ask.
pub fn look(hardware: &mut Hardware, library: Option<&Path>) -> Option<Nvml> {
    match open(library) {
        Ok(nvml) => {
            read(hardware, &nvml);
            Some(nvml)
        }
        Err(why) => {
            let way = if why == Unopened::Absent { ": it comes with NVIDIA's driver, and into a container with --gpus all" } else { "" };
            let text = format!("{why}{way}. Nothing is known of NVIDIA GPUs but what the system shows");
            hardware.note(NoteKind::Unseen, "NVML", text);
            None
        }
    }
}

/// Load and initialise the library, or say why not.
pub fn open(library: Option<&Path>) -> Result<Nvml, Unopened> {
    let own = library.map(Path::to_owned).or_else(named);
    let places = own.as_ref().map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |own| vec![own.clone()]);
    let mut broken = None;
    for place in places {
        let shown = plain(&place.to_string_lossy());
        match Nvml::builder().lib_path(place.as_os_str()).init() {
            Ok(nvml) => return Ok(nvml),
            Err(NvmlError::LibloadingError(error)) => {
                let error = plain(&error.to_string());
                // The loader names what it does not find, which is this library or one that it needs.
                if own.is_some() || !(error.starts_with(&shown) && error.contains("No such file")) {
                    broken = broken.or(Some(format!("{shown} cannot be loaded: {error}")));
                }
            }
            Err(error) => return Err(Unopened::Broken(format!("{shown}: nvmlInit failed with {}", phrase(&error)))),
        }
    }
    Err(broken.map_or(Unopened::Absent, Unopened::Broken))
}

/// Add what an opened library tells.
fn read(hardware: &mut Hardware, nvml: &Nvml) {
    let mut failures = Failures::default();
    let count = failures.need("nvmlDeviceGetCount", Whom::Library, nvml.device_count()).map(|count| count.min(MOST_GPUS));
    let mut seen = Vec::new();
    for index in 0..count.unwrap_or(0) {
        let whom = Whom::Gpu(index);
        let Some(device) = failures.need("nvmlDeviceGetHandleByIndex", whom, nvml.device_by_index(index)) else { continue };
        let info = failures.need("nvmlDeviceGetPciInfo", whom, device.pci_info());
        let id = info.as_ref().map_or((0, 0), |info| device::ids(info.pci_device_id));
        seen.push(Seen { index, device, address: info.as_ref().and_then(device::address), id, gpu: 0 });
    }
    place(hardware, &mut seen);
    for gpu in &seen {
        device::read(hardware, &mut failures, gpu);
    }
    links::read(hardware, &mut failures, &seen);
    pairs::read(hardware, &mut failures, nvml, &seen);
    failures.tell(hardware);
    // Which of the driver's GPUs did not answer is told by then.
    if count == Some(seen.len() as u32) {
        unlisted(hardware, &seen);
    }
}

/// Find every GPU's entry by its PCI address, or make one. A GPU that does not tell its address takes one of the entries that the
/// driver's other GPUs left over, first of all the one of its number: both are in the order of addresses.
fn place(hardware: &mut Hardware, found: &mut [Seen<'_>]) {
    let entry = |hardware: &Hardware, address: PciAddress| {
        let at = hardware.pci_at(address);
        hardware.gpus.iter().position(|gpu| gpu.pci.is_some() && gpu.pci == at)
    };
    let taken: Vec<usize> = found.iter().filter_map(|seen| entry(hardware, seen.address?)).collect();
    let mut left: Vec<usize> = (0..hardware.gpus.len()).filter(|gpu| !taken.contains(gpu) && nvidia(hardware, *gpu).is_some()).collect();
    for seen in found {
        let known = match seen.address {
            Some(address) => entry(hardware, address),
            None if left.is_empty() => None,
            None => {
                let same = left.iter().position(|&gpu| hardware.gpus[gpu].index == seen.index as usize);
                Some(left.remove(same.unwrap_or(0)))
            }
        };
        seen.gpu = known.unwrap_or_else(|| {
            let pci = seen.address.map(|address| hardware.pci_at(address).unwrap_or_else(|| add(hardware, address, seen.id)));
            hardware.gpus.push(Gpu { pci, ..Gpu::default() });
            hardware.gpus.len() - 1
        });
        if let Some(gpu) = hardware.gpus.get_mut(seen.gpu) {
            gpu.index = seen.index as usize;
        }
    }
}

/// A PCI device that the system does not show, so that what the driver says of its link has a place.
fn add(hardware: &mut Hardware, address: PciAddress, (vendor, device): (u16, u16)) -> usize {
    hardware.pci.push(PciDevice { address, class: 0x03_0200, vendor, device, ..PciDevice::default() });
    hardware.pci.len() - 1
}

/// The PCI device of a GPU, if NVIDIA made it.
fn nvidia(hardware: &Hardware, gpu: usize) -> Option<&PciDevice> {
    hardware.pci.get(hardware.gpus.get(gpu)?.pci?).filter(|device| device.vendor == NVIDIA)
}

/// Say which NVIDIA GPUs are in the PCI tree but not among the driver's.
fn unlisted(hardware: &mut Hardware, seen: &[Seen<'_>]) {
    let missing: Vec<String> = (0..hardware.gpus.len())
        .filter(|gpu| !seen.iter().any(|seen| seen.gpu == *gpu))
        .filter_map(|gpu| nvidia(hardware, gpu).map(|device| device.address.to_string()))
        .collect();
    if missing.is_empty() {
        return;
    }
    let text = format!(
        "the driver lists {} GPU(s), without the ones at {}: they fell off the bus, belong to another driver (vfio-pci), or are kept \
         from this container",
        seen.len(),
        missing.join(", ")
    );
    hardware.note(NoteKind::Warning, "NVML", text);
}
