//! Looks at GPUs between probes: clocks, what holds them down, the PCIe link, power and heat.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

use super::{MOST_GPUS, device, open};
use crate::topology::{GpuState, Lanes, PciAddress};
use crate::units::plain;

/// The library, open, with where its GPUs sit.
pub struct Looks {
    nvml: Nvml,
    /// the driver's numbers
    places: Vec<(PciAddress, u32)>,
}

impl Looks {
    /// `None` where there is no library.
    pub fn open() -> Option<Self> {
        let nvml = open(None).ok()?;
        let count = nvml.device_count().ok()?.min(MOST_GPUS);
        let place = |index| Some((device::address(&nvml.device_by_index(index).ok()?.pci_info().ok()?)?, index));
        let places = (0..count).filter_map(place).collect();
        Some(Self { nvml, places })
    }

    /// How the GPU at an address is doing now; what it does not tell is left out.
    pub fn state(&self, address: PciAddress) -> Option<GpuState> {
        let &(_, index) = self.places.iter().find(|(own, _)| *own == address)?;
        let gpu = self.nvml.device_by_index(index).ok()?;
        let lanes = |generation: Option<u32>, width: Option<u32>| Lanes::of_generation(generation?, width?).filter(|lanes| lanes.width > 0);
        Some(GpuState {
            sm_clock: gpu.clock_info(Clock::SM).ok(),
            memory_clock: gpu.clock_info(Clock::Memory).ok(),
            throttled: gpu.current_throttle_reasons().map(device::reasons).unwrap_or_default(),
            pcie: lanes(gpu.current_pcie_link_gen().ok(), gpu.current_pcie_link_width().ok()),
            pcie_most: lanes(gpu.max_pcie_link_gen().ok(), gpu.max_pcie_link_width().ok()),
            // milliwatts
            power: gpu.power_usage().ok().map(|power| f64::from(power) / 1e3),
            temperature: gpu.temperature(TemperatureSensor::Gpu).ok(),
        })
    }

    /// The driver's version, and whether it keeps the GPUs awake.
    pub fn software(&self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        if let Ok(version) = self.nvml.sys_driver_version() {
            told.push(("NVIDIA driver".to_owned(), plain(&version)));
        }
        if let Some(words) = self.persistence() {
            told.push(("GPU persistence".to_owned(), words));
        }
        told
    }

    /// `on`, `off`, or which of the driver's numbers it is off for; `None` where that is not told.
    pub fn persistence(&self) -> Option<String> {
        let awake = |index: u32| self.nvml.device_by_index(index).ok()?.is_in_persistent_mode().ok();
        let told: Vec<(usize, bool)> = self.places.iter().filter_map(|&(_, index)| Some((index as usize, awake(index)?))).collect();
        let off: Vec<usize> = told.iter().filter(|(_, on)| !on).map(|&(index, _)| index).collect();
        match (told.len(), off.len()) {
            (0, _) => None,
            (_, 0) => Some("on".to_owned()),
            (all, some) if all == some => Some("off".to_owned()),
            _ => Some(format!("off for GPU {}", crate::units::format_ranks(&off))),
        }
    }
}
