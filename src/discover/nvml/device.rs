//! What one GPU is.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;

use super::Seen;
use super::failures::{self, Failures, Whom};
use crate::topology::hardware::NoteKind;
use crate::topology::{Hardware, Lanes, PciAddress, PcieLink};
use crate::units::plain;

/// Words of 64 bits that hold the processors of any host, and its NUMA nodes.
const CPU_WORDS: usize = 128;
const NODE_WORDS: usize = 16;

/// More than any GPU can be divided into.
const MOST_INSTANCES: u32 = 64;

/// Where a GPU sits; `None` for an address that is none (NVML fills it with `f` for what cannot be seen).
pub fn address(info: &PciInfo) -> Option<PciAddress> {
    info.bus_id.parse().ok()
}

/// Vendor and device of NVML's combined id.
pub const fn ids(combined: u32) -> (u16, u16) {
    (combined as u16, (combined >> 16) as u16)
}

/// Fill in the entry of a GPU.
pub fn read(hardware: &mut Hardware, failures: &mut Failures, seen: &Seen<'_>) {
    let (device, whom) = (&seen.device, Whom::Gpu(seen.index));
    let link = pcie(failures, seen);
    let Some(gpu) = hardware.gpus.get_mut(seen.gpu) else { return };
    if let Some(name) = failures.ask("nvmlDeviceGetName", whom, device.name()) {
        gpu.name = plain(&name);
    }
    if let Some(uuid) = failures.ask("nvmlDeviceGetUUID", whom, device.uuid()) {
        gpu.uuid = Some(plain(&uuid));
    }
    if let Some(memory) = failures.ask("nvmlDeviceGetMemoryInfo", whom, device.memory_info()) {
        gpu.memory = memory.total;
    }
    if let Some(cpus) = failures.ask("nvmlDeviceGetCpuAffinity", whom, device.cpu_affinity(CPU_WORDS)) {
        gpu.cpus = bits(&cpus);
    }
    // Scope 0 is the node. (nvmlDeviceGetNumaNodeId is another thing: the node that a coherent GPU's own memory makes.)
    if let Some(nodes) = failures.ask("nvmlDeviceGetMemoryAffinity", whom, device.memory_affinity(NODE_WORDS, 0))
        && let ([node], None) = (bits(&nodes).as_slice(), gpu.numa)
    {
        gpu.numa = Some(*node);
    }
    let now = failures.ask("nvmlDeviceGetClockInfo", whom, device.clock_info(Clock::SM));
    let most = failures.ask("nvmlDeviceGetMaxClockInfo", whom, device.max_clock_info(Clock::SM));
    gpu.clock = now.zip(most);
    let throttled = failures.ask("nvmlDeviceGetCurrentClocksThrottleReasons", whom, device.current_throttle_reasons());
    gpu.throttled = throttled.map(reasons).unwrap_or_default();
    let numa = gpu.numa;
    if let Some(device) = gpu.pci.and_then(|at| hardware.pci.get_mut(at)) {
        device.numa = device.numa.or(numa);
        let known = device.link.get_or_insert_default();
        known.now = trained(known.now).or(link.now);
        known.most = trained(known.most).or(link.most);
        known.port = trained(known.port).or(link.port);
        device.link = device.link.filter(|link| link.now.is_some() || link.most.is_some());
    }
    mig(hardware, failures, seen);
}

/// A reading that is one: emulated devices tell a width or a speed of 0.
fn trained(lanes: Option<Lanes>) -> Option<Lanes> {
    lanes.filter(|lanes| lanes.width > 0 && lanes.speed > 0.0)
}

/// The GPU's own link, as its driver reads it. NVML's maximum is what GPU and slot can both do; the GPU's own speed is told apart
/// where it is higher, and then the slot is what limits.
fn pcie(failures: &mut Failures, seen: &Seen<'_>) -> PcieLink {
    let (device, whom) = (&seen.device, Whom::Gpu(seen.index));
    let speed = failures.ask("nvmlDeviceGetCurrPcieLinkGeneration", whom, device.current_pcie_link_gen());
    let width = failures.ask("nvmlDeviceGetCurrPcieLinkWidth", whom, device.current_pcie_link_width());
    let most_speed = failures.ask("nvmlDeviceGetMaxPcieLinkGeneration", whom, device.max_pcie_link_gen());
    let most_width = failures.ask("nvmlDeviceGetMaxPcieLinkWidth", whom, device.max_pcie_link_width());
    let own = device.max_pcie_link_speed();
    let own = if own.as_ref().is_err_and(failures::is_news) { None } else { failures.ask("nvmlDeviceGetPcieLinkMaxSpeed", whom, own) };
    let lanes = |speed: Option<u32>, width: Option<u32>| trained(Lanes::of_generation(speed?, width?));
    let both = lanes(most_speed, most_width);
    let own = own.and_then(|speed| speed.as_integer()).map(|speed| f64::from(speed) / 1000.0);
    let (most, port) = match (both, own) {
        (Some(both), Some(own)) if own > both.speed => (Some(Lanes { speed: own, ..both }), Some(both)),
        _ => (both, None),
    };
    PcieLink { now: lanes(speed, width), most, port }
}

/// The instances that a GPU is divided into.
fn mig(hardware: &mut Hardware, failures: &mut Failures, seen: &Seen<'_>) {
    let (device, whom) = (&seen.device, Whom::Gpu(seen.index));
    let Some(mode) = failures.ask("nvmlDeviceGetMigMode", whom, device.mig_mode()) else { return };
    let about = format!("GPU {}", seen.index);
    if mode.current != mode.pending {
        let to = if mode.pending == 0 { "off" } else { "on" };
        hardware.note(NoteKind::Warning, about.as_str(), format!("MIG will be {to} after the GPU's next reset"));
    }
    if mode.current == 0 {
        return;
    }
    let slots = failures.ask("nvmlDeviceGetMaxMigDeviceCount", whom, device.mig_device_count());
    let mut instances = Vec::new();
    let mut complete = slots.is_some();
    for slot in 0..slots.unwrap_or(0).min(MOST_INSTANCES) {
        let whom = Whom::Instance(seen.index, slot);
        let instance = match device.mig_device_by_index(slot) {
            // An empty slot.
            Err(NvmlError::NotFound) => continue,
            answer => failures.ask("nvmlDeviceGetMigDeviceHandleByIndex", whom, answer),
        };
        let Some(instance) = instance else {
            complete = false;
            continue;
        };
        let name = failures.ask("nvmlDeviceGetName", whom, instance.name()).unwrap_or_default();
        let uuid = failures.ask("nvmlDeviceGetUUID", whom, instance.uuid()).unwrap_or_default();
        // The name is the GPU's, then `MIG` and the profile.
        let profile = name.rsplit_once("MIG ").map_or("instance", |(_, profile)| profile);
        instances.push(plain(format!("{profile} {uuid}").trim()));
    }
    let text = match instances.len() {
        0 if complete => "it is to be divided (MIG is on), but has no instance: nothing runs on it until there is one".to_owned(),
        number if complete => {
            format!("it is divided into {number} instance(s) (MIG): none reaches another GPU directly, over NVLinks neither")
        }
        _ => "it is divided (MIG is on): no instance reaches another GPU directly, over NVLinks neither".to_owned(),
    };
    hardware.note(NoteKind::Warning, about, text);
    if let Some(gpu) = hardware.gpus.get_mut(seen.gpu) {
        gpu.mig = instances;
    }
}

/// Why clocks are held down, in words; that nothing runs is no reason.
pub fn reasons(bits: ThrottleReasons) -> Vec<String> {
    const WORDS: [(ThrottleReasons, &str); 8] = [
        (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "clocks set by the administrator"),
        (ThrottleReasons::SW_POWER_CAP, "power limit"),
        (ThrottleReasons::HW_SLOWDOWN, "slowed to half or less by hardware"),
        (ThrottleReasons::SYNC_BOOST, "another GPU of its boost group"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "heat"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "heat, slowed by hardware"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power supply asks to brake"),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display clocks"),
    ];
    WORDS.iter().filter(|(flag, _)| bits.contains(*flag)).map(|(_, word)| (*word).to_owned()).collect()
}

/// Numbers of the bits that are set.
fn bits(words: &[std::ffi::c_ulong]) -> Vec<usize> {
    let width = std::ffi::c_ulong::BITS as usize;
    (0..words.len() * width).filter(|bit| words[bit / width] >> (bit % width) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_numbers_from_the_first_word_on() {
        assert_eq!(bits(&[0b101, 0, 1 << 63]), [0, 2, 191]);
        assert_eq!(bits(&[]), [0; 0]);
    }

    #[test]
    fn reasons_are_told_in_words_and_idling_is_none() {
        assert_eq!(reasons(ThrottleReasons::GPU_IDLE), [""; 0]);
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN | ThrottleReasons::GPU_IDLE;
        assert_eq!(reasons(hot), ["slowed to half or less by hardware", "heat, slowed by hardware"]);
    }

    #[test]
    fn an_address_of_what_cannot_be_seen_is_none() {
        let info = |bus_id: &str| PciInfo {
            bus: 0,
            bus_id: bus_id.to_owned(),
            device: 0,
            domain: 0,
            pci_device_id: 0x2330_10de,
            pci_sub_system_id: None,
        };
        assert_eq!(address(&info("00000000:1B:00.0")).map(|address| address.to_string()), Some("0000:1b:00.0".to_owned()));
        assert_eq!(address(&info("fffffff:ffff:ff")), None);
        assert_eq!(address(&info("")), None);
        assert_eq!(ids(0x2330_10de), (0x10de, 0x2330));
    }
}
