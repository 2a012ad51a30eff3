//! The PCI tree: where devices lie in `/sys/devices` says what lies above them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::config::{AcsRead, Config};
use super::names::Names;
use super::{link, read};
use crate::topology::hardware::{Acs, NoteKind, NumaNode, PciDevice, PciKind};
use crate::topology::{Hardware, PciAddress, PcieLink};

/// More devices than any machine has, virtual functions included.
const MOST_DEVICES: usize = 1 << 14;
/// Deeper than bridges can be nested: a domain has 256 buses.
const DEEPEST: usize = 64;
/// How deep below `/sys/devices` host bridges lie: directly, or on Arm below a platform device.
const HOST_BRIDGES_DEPTH: usize = 5;
/// Bytes of the configuration space: with the extended capabilities of ports, and without.
const WHOLE: u64 = 4096;
const PLAIN: u64 = 256;

/// One step from the processor down to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Step {
    /// `pciDDDD:BB`
    HostBridge { domain: u32, bus: u8 },
    /// `DDDD:BB:DD.F`
    Device(PciAddress),
}

impl Step {
    fn of(name: &str) -> Option<Self> {
        if let Some((domain, bus)) = name.strip_prefix("pci").and_then(|rest| rest.split_once(':')) {
            let digits =
                |text: &str, most: usize| !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !digits(domain, 8) || !digits(bus, 2) {
                return None;
            }
            return Some(Self::HostBridge { domain: u32::from_str_radix(domain, 16).ok()?, bus: u8::from_str_radix(bus, 16).ok()? });
        }
        // The whole form alone: tools leave parts out, the kernel does not.
        let address: PciAddress = name.parse().ok()?;
        (address.to_string() == name).then_some(Self::Device(address))
    }
}

/// Devices by the steps that lead to them, so that parents come before their children.
type Found = BTreeMap<Vec<Step>, Option<PathBuf>>;

/// Folders of the devices of [`Hardware::pci`], one each, with the devices' own answers.
#[derive(Debug, Default)]
pub(super) struct Folders(Vec<Option<PathBuf>>);

impl Folders {
    /// The folder of a device.
    pub(super) fn of(&self, device: usize) -> Option<&Path> {
        self.0.get(device)?.as_deref()
    }
}

/// The device that a folder of `/sys/class` belongs to: the nearest above where its link `device` leads.
pub(super) fn behind(root: &Path, hardware: &Hardware, link: &Path) -> Option<usize> {
    let real = fs::canonicalize(link).ok()?;
    let mut steps = real.strip_prefix(root).ok()?.iter().rev().filter_map(|part| Step::of(part.to_str()?));
    match steps.next()? {
        Step::Device(address) => hardware.pci_at(address),
        Step::HostBridge { .. } => None,
    }
}

/// Fill in the PCI tree of the machine below `root`, a path without links; its NUMA nodes must be there.
pub(super) fn fill(root: &Path, hardware: &mut Hardware) -> Folders {
    let found = find(root, hardware);
    let wanted: HashSet<(u16, u16)> = found.values().flatten().filter_map(|folder| numbers(folder)).collect();
    let names = Names::look_up(root, &wanted);
    let mut folders = Folders::default();
    let mut places: HashMap<Vec<Step>, usize> = HashMap::new();
    let (mut seen, mut below) = (HashSet::new(), HashSet::new());
    let mut links = Vec::new();
    let mut hidden = 0;
    for (steps, folder) in found {
        let Some((&step, above)) = steps.split_last() else { continue };
        if !seen.insert(step) || hardware.pci.len() >= MOST_DEVICES {
            continue;
        }
        let parent = places.get(above).copied();
        below.extend(parent);
        let (device, told) = match step {
            Step::HostBridge { domain, bus } => {
                let address = PciAddress { domain, bus, ..PciAddress::default() };
                let name = "host bridge".to_owned();
                (PciDevice { address, parent, kind: PciKind::HostBridge, name, ..PciDevice::default() }, link::Told::default())
            }
            Step::Device(address) => {
                let folder = folder.as_deref().unwrap_or(Path::new(""));
                let above = parent.and_then(|parent| hardware.pci.get(parent)).map(|parent| parent.kind);
                let (mut device, told, acs_hidden) = read_device(folder, above, &hardware.numa, &names);
                hidden += usize::from(acs_hidden);
                (device.address, device.parent) = (address, parent);
                (device, told)
            }
        };
        places.insert(steps, hardware.pci.len());
        hardware.pci.push(device);
        folders.0.push(folder);
        links.push(told);
    }
    join_links(hardware, &links, &below);
    remark(hardware, hidden);
    folders
}

/// Vendor and device.
fn numbers(folder: &Path) -> Option<(u16, u16)> {
    let number = |name: &str| read::hex(&folder.join(name)).and_then(|number| u16::try_from(number).ok());
    Some((number("vendor")?, number("device")?))
}

/// A device's facts, what it says of its link, and whether its ACS may not be read; address and parent are still to come.
fn read_device(folder: &Path, above: Option<PciKind>, numa: &[NumaNode], names: &Names) -> (PciDevice, link::Told, bool) {
    let class = read::hex(&folder.join("class")).unwrap_or(0);
    let (vendor, device) = numbers(folder).unwrap_or((0, 0));
    let bridge = is_bridge(class);
    let config = Config::of(folder, if bridge { WHOLE } else { PLAIN });
    let told = link::of(folder, &config);
    let kind = kind(bridge, &config, told != link::Told::default(), above);
    // What has no link of PCI Express has no ACS, either.
    let port = told != link::Told::default() && matches!(kind, PciKind::RootPort | PciKind::SwitchDown);
    let (acs, hidden) = match port.then(|| config.acs()) {
        Some(AcsRead::Control(acs)) => (Some(acs), false),
        Some(AcsRead::Hidden) => (None, true),
        Some(AcsRead::Absent) | None => (None, false),
    };
    let driver = read::linked(&folder.join("driver")).or_else(|| {
        let events = read::text(&folder.join("uevent"))?;
        events.lines().find_map(|line| line.strip_prefix("DRIVER=")).map(crate::units::plain)
    });
    let name = names.name(vendor, device, class);
    let numa = numa_of(folder, numa);
    (PciDevice { kind, class, vendor, device, name, numa, acs, driver, ..PciDevice::default() }, told, hidden)
}

const fn is_bridge(class: u32) -> bool {
    matches!(class >> 8, 0x0604 | 0x0609)
}

/// What a bridge is: as it says itself, or by what lies above it, where only root may ask it. `express`: it has a link.
fn kind(bridge: bool, config: &Config, express: bool, above: Option<PciKind>) -> PciKind {
    if !bridge {
        return PciKind::Endpoint;
    }
    match (config.port_type(), above) {
        (Some(4), _) => PciKind::RootPort,
        (Some(5), _) => PciKind::SwitchUp,
        (Some(6), _) => PciKind::SwitchDown,
        (None, Some(above)) if express || !config.open() => match above {
            PciKind::HostBridge => PciKind::RootPort,
            PciKind::RootPort | PciKind::SwitchDown => PciKind::SwitchUp,
            PciKind::SwitchUp => PciKind::SwitchDown,
            PciKind::Bridge | PciKind::Endpoint => PciKind::Bridge,
        },
        _ => PciKind::Bridge,
    }
}

/// The NUMA node of a device; where a recorded tree does not say, that of the processors near it.
fn numa_of(folder: &Path, numa: &[NumaNode]) -> Option<usize> {
    if let Some(node) = read::number(&folder.join("numa_node")) {
        // −1 if the firmware says nothing of it.
        return usize::try_from(node).ok();
    }
    let near = read::cpus(folder, "local_cpulist", "local_cpus").filter(|near| !near.is_empty())?;
    numa.iter().find(|node| near.iter().all(|cpu| node.cpus.binary_search(cpu).is_ok())).map(|node| node.id)
}

/// Links lie between two devices: give each device the one above it, with what the port there can do.
fn join_links(hardware: &mut Hardware, links: &[link::Told], below: &HashSet<usize>) {
    for index in 0..hardware.pci.len() {
        let device = &hardware.pci[index];
        // These tell the link below them, which is told by the device there.
        let downward = matches!(device.kind, PciKind::HostBridge | PciKind::RootPort | PciKind::SwitchDown);
        let Some(told) = links.get(index).filter(|told| !downward && **told != link::Told::default()) else { continue };
        let port = device.parent.filter(|&parent| hardware.pci[parent].kind != PciKind::HostBridge);
        let port = port.and_then(|parent| links.get(parent)).and_then(|told| told.most);
        let link = PcieLink { now: told.now, most: told.most, port };
        // Devices within the root complex have no link, and say so by the same zeros.
        let within = device.parent.is_some_and(|parent| hardware.pci[parent].kind == PciKind::HostBridge);
        let matters = device.is_end() || (device.kind.is_bridge() && below.contains(&index));
        let about = device.address.to_string();
        if link != PcieLink::default() {
            hardware.pci[index].link = Some(link);
        }
        let Some(odd) = told.odd.as_ref().filter(|_| matters) else { continue };
        if odd.contains("width 0") && !within {
            let text = format!("its link is told as {odd}: an emulated device or one without power; what it carries must be measured");
            hardware.note(NoteKind::Lie, about, text);
        } else {
            hardware.note(NoteKind::Unseen, about, format!("its link is told as {odd}: speed and width of its link are not known"));
        }
    }
}

fn remark(hardware: &mut Hardware, hidden: usize) {
    if hidden > 0 {
        let text = format!(
            "control bits of {hidden} port(s) could not be read, so it is not known whether transfers between devices are redirected; start as root"
        );
        hardware.note(NoteKind::Unseen, "ACS", text);
    }
    let redirecting = hardware.pci.iter().filter(|device| device.kind == PciKind::SwitchDown && device.acs.is_some_and(Acs::redirects));
    let redirecting: Vec<String> = redirecting.map(|device| device.address.to_string()).collect();
    if let [first, rest @ ..] = redirecting.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let text = format!(
            "switch port {first}{more} sends transfers between devices up to the processor; clear ACS redirection (setpci, or pcie_acs_override) \
             where devices need not be kept apart"
        );
        hardware.note(NoteKind::Warning, "ACS", text);
    }
}

fn find(root: &Path, hardware: &mut Hardware) -> Found {
    let mut found = Found::new();
    let bus = root.join("sys/bus/pci/devices");
    let (mut flat, mut lost) = (BTreeMap::new(), 0_usize);
    for name in read::names(&bus) {
        let Some(Step::Device(address)) = Step::of(&name) else { continue };
        // What leads out of a recorded tree would tell of this machine.
        match fs::canonicalize(bus.join(&name)) {
            Ok(real) if real.starts_with(root) => {
                if !insert(&mut found, root, &real, address) {
                    flat.insert(address, real);
                }
            }
            _ => lost += 1,
        }
    }
    if lost > 0 {
        hardware.note(NoteKind::Unseen, "PCI", format!("{lost} device(s) of this tree are links that lead nowhere in it"));
    }
    if found.is_empty() && flat.is_empty() {
        walk(root, &root.join("sys/devices"), 0, &mut found);
    }
    nest(&flat, &mut found, hardware);
    found
}

/// Enter a device and what its path says is above it; false if the path says nothing.
fn insert(found: &mut Found, root: &Path, real: &Path, address: PciAddress) -> bool {
    let Ok(inner) = real.strip_prefix(root) else { return false };
    let mut folder = root.to_owned();
    let mut steps: Vec<(Step, PathBuf)> = Vec::new();
    for part in inner {
        folder.push(part);
        steps.extend(part.to_str().and_then(Step::of).map(|step| (step, folder.clone())));
    }
    let whole = steps.len() > 1 && steps.len() <= DEEPEST && steps.last().is_some_and(|(step, _)| *step == Step::Device(address));
    let mut above = HashSet::new();
    if !whole || !steps.iter().all(|(step, _)| above.insert(*step)) {
        return false;
    }
    for length in 1..=steps.len() {
        let key = steps[..length].iter().map(|(step, _)| *step).collect();
        found.entry(key).or_insert_with(|| Some(steps[length - 1].1.clone()));
    }
    true
}

/// Enter every device of the folders below, without following links.
fn walk(root: &Path, folder: &Path, depth: usize, found: &mut Found) {
    for name in read::names(folder) {
        let path = folder.join(&name);
        let plain = fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
        let step = Step::of(&name);
        let inside = folder.file_name().and_then(OsStr::to_str).is_some_and(|above| Step::of(above).is_some());
        let elsewhere = depth == 0 && matches!(name.as_str(), "system" | "virtual");
        if !plain || elsewhere || found.len() >= MOST_DEVICES || (step.is_none() && (inside || depth >= HOST_BRIDGES_DEPTH)) {
            continue;
        }
        if let Some(Step::Device(address)) = step {
            insert(found, root, &path, address);
        }
        if depth < HOST_BRIDGES_DEPTH + DEEPEST {
            walk(root, &path, depth + 1, found);
        }
    }
}

/// Devices as plain folders side by side: what is above them is told by the bridges' bus numbers, if at all.
fn nest(flat: &BTreeMap<PciAddress, PathBuf>, found: &mut Found, hardware: &mut Hardware) {
    let mut bridges: HashMap<(u32, u8), PciAddress> = HashMap::new();
    for (&address, folder) in flat {
        if read::hex(&folder.join("class")).is_some_and(is_bridge) {
            let told = read::number(&folder.join("secondary_bus_number")).and_then(|bus| u8::try_from(bus).ok());
            if let Some(bus) = told.filter(|&bus| bus > 0).or_else(|| Config::of(folder, 64).secondary()) {
                bridges.insert((address.domain, bus), address);
            }
        }
    }
    let mut orphans = 0_usize;
    for &address in flat.keys() {
        let mut devices = vec![address];
        let mut top = address;
        while let Some(&bridge) = bridges.get(&(top.domain, top.bus)).filter(|bridge| !devices.contains(bridge)) {
            devices.push(bridge);
            top = bridge;
            if devices.len() > DEEPEST {
                break;
            }
        }
        let mut steps: Vec<Step> = Vec::new();
        // Bus 0 is always a host bridge's. Any other is, too, if bridges tell the buses below them; else it may be below one.
        if top.bus == 0 || !bridges.is_empty() {
            steps.push(Step::HostBridge { domain: top.domain, bus: top.bus });
            found.entry(steps.clone()).or_insert(None);
        } else {
            orphans += 1;
        }
        for &device in devices.iter().rev() {
            steps.push(Step::Device(device));
            found.entry(steps.clone()).or_insert_with(|| flat.get(&device).cloned());
        }
    }
    if orphans > 0 {
        hardware.note(NoteKind::Unseen, "PCI", format!("nothing tells what lies above {orphans} device(s) of this tree"));
    }
}
