//! NVLinks and NVLink-C2C: how many, how fast, whereto.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::nv_link::ErrorCounter;
use nvml_wrapper::enums::device::{DeviceArchitecture, SampleValue};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_C2C_LINK_COUNT, NVML_FI_DEV_C2C_LINK_GET_MAX_BW, NVML_FI_DEV_C2C_LINK_GET_STATUS, NVML_FI_DEV_NVLINK_LINK_COUNT,
    NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON,
};

use super::failures::{Failures, Whom, counted, is_news};
use super::{NVIDIA, Seen, device};
use crate::topology::Hardware;
use crate::topology::hardware::{GpuLink, GpuLinkKind, LinkEnd, NoteKind};

/// Links to ask about where the driver does not count them (`NVML_NVLINK_MAX_LINKS`), and at most.
const USUAL_LINKS: u32 = 18;
const MOST_LINKS: u32 = 64;

/// PCI class and subclass of an `NVSwitch`, and the maker of POWER's NVLink units.
const OTHER_BRIDGE: u32 = 0x0680;
const IBM: u16 = 0x1014;

/// What a GPU says of all its links at once, as far as it does. Rates in MB/s.
#[derive(Debug, Default)]
struct Fields {
    links: Option<u32>,
    speed: Option<f64>,
    c2c_links: u32,
    c2c_active: bool,
    c2c_speed: Option<f64>,
}

/// Add the links of all GPUs.
pub fn read(hardware: &mut Hardware, failures: &mut Failures, seen: &[Seen<'_>]) {
    for gpu in seen {
        let fields = fields(failures, gpu);
        nvlinks(hardware, failures, gpu, &fields);
        let numa = hardware.gpus.get(gpu.gpu).and_then(|gpu| gpu.numa);
        for number in 0..fields.c2c_links.min(MOST_LINKS) {
            hardware.gpu_links.push(GpuLink {
                kind: GpuLinkKind::C2c,
                gpu: gpu.gpu,
                number: Some(number),
                end: numa.map_or(LinkEnd::Unknown, LinkEnd::Cpu),
                active: fields.c2c_active,
                version: None,
                rate: fields.c2c_speed.map(|speed| speed * 1e6),
            });
        }
    }
    fewer(hardware, seen);
}

/// One call for all that is not a link's own. C2C links are asked for the first one's state: the crate cannot ask for others'.
fn fields(failures: &mut Failures, seen: &Seen<'_>) -> Fields {
    let ids = [
        NVML_FI_DEV_NVLINK_LINK_COUNT,
        NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON,
        NVML_FI_DEV_C2C_LINK_COUNT,
        NVML_FI_DEV_C2C_LINK_GET_STATUS,
        NVML_FI_DEV_C2C_LINK_GET_MAX_BW,
    ];
    let mut fields = Fields::default();
    let answer = seen.device.field_values_for(&ids.map(FieldId));
    let samples = failures.ask("nvmlDeviceGetFieldValues", Whom::Gpu(seen.index), answer).unwrap_or_default();
    for (id, sample) in ids.into_iter().zip(samples) {
        // A driver that is older than a field calls it an invalid argument: there is no such thing here.
        let value = match sample.and_then(|sample| sample.value) {
            Err(NvmlError::InvalidArg) => None,
            value => failures.ask("nvmlDeviceGetFieldValues", Whom::Gpu(seen.index), value),
        };
        let Some(value) = value.as_ref().map(number) else { continue };
        match id {
            NVML_FI_DEV_NVLINK_LINK_COUNT => fields.links = Some(value as u32),
            NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON => fields.speed = Some(value).filter(|&speed| speed > 0.0),
            NVML_FI_DEV_C2C_LINK_COUNT => fields.c2c_links = value as u32,
            NVML_FI_DEV_C2C_LINK_GET_STATUS => fields.c2c_active = value > 0.0,
            _ => fields.c2c_speed = Some(value).filter(|&speed| speed > 0.0),
        }
    }
    fields
}

fn number(value: &SampleValue) -> f64 {
    match *value {
        SampleValue::F64(value) => value,
        SampleValue::U32(value) => f64::from(value),
        SampleValue::U64(value) => value as f64,
        SampleValue::I64(value) => value as f64,
    }
}

/// The NVLinks of one GPU.
fn nvlinks(hardware: &mut Hardware, failures: &mut Failures, gpu: &Seen<'_>, fields: &Fields) {
    let mut architecture = None;
    let mut errors = Vec::new();
    for number in 0..fields.links.unwrap_or(USUAL_LINKS).min(MOST_LINKS) {
        let (link, whom) = (gpu.device.link_wrapper_for(number), Whom::Link(gpu.index, number));
        let active = match link.is_active() {
            // Past the last one, or none at all.
            Err(NvmlError::InvalidArg | NvmlError::NotSupported) if fields.links.is_none() => break,
            answer => failures.ask("nvmlDeviceGetNvLinkState", whom, answer),
        };
        let Some(active) = active else { continue };
        let mut told = GpuLink { gpu: gpu.gpu, number: Some(number), active, ..GpuLink::default() };
        // Of a link that is down the driver knows neither.
        if active {
            let code = failures.ask("nvmlDeviceGetNvLinkVersion", whom, link.version());
            let architecture = *architecture.get_or_insert_with(|| generation(&gpu.device, failures, gpu.index));
            told.version = architecture.or_else(|| code.and_then(generation_of_code));
            told.rate = rate(told.version, fields.speed);
            told.end = match link.remote_pci_info() {
                // NCCL (graph/xml.cc) meets unprintable addresses too, and takes what is not visible for a switch.
                Err(NvmlError::Utf8Error(_)) => LinkEnd::Switch,
                answer => failures
                    .ask("nvmlDeviceGetNvLinkRemotePciInfo", whom, answer)
                    .map_or(LinkEnd::Unknown, |info| end(hardware, gpu, &info)),
            };
            errors.extend(counters(failures, &link, whom).map(|counts| format!("link {number}: {counts}")));
        }
        hardware.gpu_links.push(told);
    }
    if !errors.is_empty() {
        let text =
            format!("its NVLinks had errors since the driver was loaded ({}): they cost bandwidth while they happen", errors.join("; "));
        hardware.note(NoteKind::Warning, format!("GPU {}", gpu.index), text);
    }
}

/// NVLink's generation of a GPU's architecture.
fn generation(device: &Device<'_>, failures: &mut Failures, index: u32) -> Option<u32> {
    let answer = device.architecture();
    if answer.as_ref().is_err_and(is_news) {
        return None;
    }
    match failures.ask("nvmlDeviceGetArchitecture", Whom::Gpu(index), answer)? {
        DeviceArchitecture::Pascal => Some(1),
        DeviceArchitecture::Volta | DeviceArchitecture::Turing => Some(2),
        DeviceArchitecture::Ampere => Some(3),
        DeviceArchitecture::Hopper => Some(4),
        DeviceArchitecture::Blackwell => Some(5),
        _ => None,
    }
}

/// NVLink's generation by what `nvmlDeviceGetNvLinkVersion` answers, which is no version: drivers pass on the codes of
/// `NV2080_CTRL_NVLINK_STATUS_NVLINK_VERSION` (open-gpu-kernel-modules; an A100 answers 5, open-mpi/hwloc #658), not those of nvml.h.
const fn generation_of_code(code: u32) -> Option<u32> {
    match code {
        1 => Some(1),
        2..=4 => Some(2),
        5 | 6 => Some(3),
        7 => Some(4),
        8 => Some(5),
        _ => None,
    }
}

/// Nominal bytes per second each way. The speed that the driver tells counts the line's own overhead (26.562 GB/s for a link of
/// 25), so it decides only where it is lower, or where nothing else is known.
fn rate(generation: Option<u32>, speed: Option<f64>) -> Option<f64> {
    let nominal = match generation {
        Some(1) => Some(20e9),
        Some(2..=4) => Some(25e9),
        Some(5) => Some(50e9),
        _ => None,
    };
    match (nominal, speed.map(|speed| speed * 1e6)) {
        (Some(nominal), Some(speed)) => Some(f64::min(nominal, speed)),
        (nominal, speed) => nominal.or(speed),
    }
}

/// What a link leads to.
fn end(hardware: &Hardware, gpu: &Seen<'_>, info: &PciInfo) -> LinkEnd {
    let at = device::address(info).and_then(|address| hardware.pci_at(address));
    if let Some(peer) = at.and_then(|at| hardware.gpus.iter().position(|gpu| gpu.pci == Some(at))) {
        return LinkEnd::Gpu(peer);
    }
    let listed = at.and_then(|at| hardware.pci.get(at));
    let (vendor, model) = listed.map_or_else(|| device::ids(info.pci_device_id), |device| (device.vendor, device.device));
    if vendor == IBM {
        let numa = hardware.gpus.get(gpu.gpu).and_then(|gpu| gpu.numa);
        return numa.map_or(LinkEnd::Unknown, LinkEnd::Cpu);
    }
    let is_switch = listed.is_some_and(|device| device.class >> 8 == OTHER_BRIDGE);
    let own_model = hardware.gpus.get(gpu.gpu).and_then(|gpu| hardware.pci.get(gpu.pci?)).map(|device| device.device);
    if !is_switch && vendor == NVIDIA && own_model == Some(model) {
        // A GPU of the same kind that is kept from this container or machine.
        return LinkEnd::Unknown;
    }
    LinkEnd::Switch
}

/// The link's error counters that are not 0, in words.
fn counters(failures: &mut Failures, link: &nvml_wrapper::NvLink<'_, '_>, whom: Whom) -> Option<String> {
    const COUNTERS: [(ErrorCounter, &str); 4] = [
        (ErrorCounter::DlReplay, "replays"),
        (ErrorCounter::DlRecovery, "recoveries"),
        (ErrorCounter::DlCrcFlit, "flit CRC errors"),
        (ErrorCounter::DlCrcData, "data CRC errors"),
    ];
    let mut told = Vec::new();
    for (counter, name) in COUNTERS {
        let count = failures.ask("nvmlDeviceGetNvLinkErrorCounter", whom, link.error_counter(counter));
        told.extend(count.filter(|&count| count > 0).map(|count| format!("{count} {name}")));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

/// Say which GPUs have links down that should be up: all that lead to switches, and those that others of their kind have. Links
/// that no GPU has up were never fitted, and are no fault.
fn fewer(hardware: &mut Hardware, seen: &[Seen<'_>]) {
    #[derive(Default)]
    struct Count {
        up: u32,
        switched: bool,
        down: BTreeSet<u32>,
    }
    let mut counts: BTreeMap<usize, Count> = BTreeMap::new();
    for link in hardware.gpu_links.iter().filter(|link| link.kind == GpuLinkKind::Nvlink) {
        let count = counts.entry(link.gpu).or_default();
        count.up += u32::from(link.active);
        count.switched |= link.active && link.end == LinkEnd::Switch;
        count.down.extend(link.number.filter(|_| !link.active));
    }
    let name = |gpu: usize| hardware.gpus.get(gpu).map(|gpu| gpu.name.clone()).unwrap_or_default();
    let mut most: BTreeMap<String, u32> = BTreeMap::new();
    for (&gpu, count) in &counts {
        let of_kind = most.entry(name(gpu)).or_default();
        *of_kind = (*of_kind).max(if count.switched { count.up + count.down.len() as u32 } else { count.up });
    }
    let mut notes = Vec::new();
    for gpu in seen {
        let Some(count) = counts.get(&gpu.gpu) else { continue };
        let of_kind = most.get(&name(gpu.gpu)).copied().unwrap_or_default();
        if count.up < of_kind && !count.down.is_empty() {
            let text = format!(
                "{} of {of_kind} NVLinks are up; down: {}. See dmesg for Xid 74; reset the GPU, or check its seat, bridge and cables",
                count.up,
                counted("link", &count.down)
            );
            notes.push((format!("GPU {}", gpu.index), text));
        }
    }
    for (about, text) in notes {
        hardware.note(NoteKind::Warning, about, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_drivers_send() {
        let generations: Vec<_> = (0..10).map(generation_of_code).collect();
        assert_eq!(generations, [None, Some(1), Some(2), Some(2), Some(2), Some(3), Some(3), Some(4), Some(5), None]);
    }

    #[test]
    fn rates_are_nominal_unless_the_driver_tells_less() {
        assert_eq!(rate(Some(1), None), Some(20e9));
        assert_eq!(rate(Some(4), Some(26562.0)), Some(25e9));
        assert_eq!(rate(Some(5), Some(53125.0)), Some(50e9));
        assert_eq!(rate(Some(2), Some(19999.0)), Some(19.999e9));
        assert_eq!(rate(None, Some(26562.0)), Some(26.562e9));
        assert_eq!(rate(None, None), None);
    }
}
