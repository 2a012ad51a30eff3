//! `lspci -t`, `-tv` and `-tvnn`: the PCI tree as a drawing. Columns tell what hangs where.

use std::collections::HashMap;

use super::ids;
use super::text::{Line, named};
use super::tree::Tree;
use crate::topology::PciAddress;
use crate::topology::hardware::{Hardware, PciDevice, PciKind};

/// The bus that is drawn on, and the bridge above it.
#[derive(Debug, Clone, Copy)]
struct Bus {
    domain: u32,
    number: u8,
    above: Option<usize>,
}

/// `[0000:3a]`, `[3a]` or `[3a-3d]` at the beginning: domain where told, the first bus, and what follows.
fn bus(text: &str) -> Option<(Option<u32>, u8, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let first = inside.split('-').next()?;
    let (domain, bus) = first.rsplit_once(':').map_or((None, first), |(domain, bus)| (Some(domain), bus));
    let domain = domain.map(|domain| u32::from_str_radix(domain, 16)).transpose().ok()?;
    Some((domain, u8::from_str_radix(bus, 16).ok().filter(|_| bus.len() == 2)?, rest))
}

/// `04.0` at the beginning.
fn slot(text: &str) -> Option<(u8, u8, &str)> {
    let (device, rest) = text.split_at_checked(2)?;
    let device = u8::from_str_radix(device, 16).ok().filter(|device| *device < 32)?;
    let function = rest.strip_prefix('.')?.chars().next()?.to_digit(8)?;
    Some((device, function as u8, &rest[2..]))
}

/// What a drawing tells, if one begins with the first line, and the number of lines that it takes.
pub(super) fn read(lines: &[Line<'_>]) -> Option<(Hardware, usize)> {
    let first = lines.first()?.text;
    let start = first.find(['-', '+', '\\'])?;
    let rest = first[start..].trim_start_matches(['-', '+', '\\']);
    if !first[..start].trim().is_empty() || rest.len() == first[start..].len() {
        return None;
    }
    bus(rest)?;
    let mut tree = Tree::default();
    let mut open: HashMap<usize, Bus> = HashMap::new();
    let mut used = 0;
    for line in lines {
        let drawn = line.text.trim_start_matches([' ', '|']);
        if drawn.is_empty() || !draw(line.text, &mut tree, &mut open) {
            break;
        }
        used += 1;
    }
    let mut host = Hardware::default();
    tree.finish(&mut host);
    by_name(&mut host);
    super::lspci::name_devices(&mut host);
    (used > 0).then_some((host, used))
}

/// Follow one line; false if it is no part of a drawing.
fn draw(text: &str, tree: &mut Tree, open: &mut HashMap<usize, Bus>) -> bool {
    let mut on: Option<Bus> = None;
    let mut begun = false;
    let mut at = 0;
    // A line as deep as bridges nest.
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let next = rest.as_bytes()[0];
        match next {
            b' ' | b'|' if !begun => at += 1,
            // A branch that was opened above, or that opens here.
            b'+' | b'\\' => {
                match on {
                    Some(bus) if begun => _ = open.insert(at, bus),
                    _ => on = open.get(&at).copied(),
                }
                begun = true;
                at += 1;
            }
            b'-' => {
                begun = true;
                at += 1;
            }
            b'[' => {
                let Some((domain, number, after)) = bus(rest) else { return false };
                let inside = on.filter(|bus| bus.above.is_some());
                on = Some(match (inside, domain) {
                    // Below a bridge: its secondary bus. Else where a tree begins.
                    (Some(bus), told) if bus.number == u8::MAX && bus.domain == told.unwrap_or(bus.domain) => Bus { number, ..bus },
                    (_, domain) => {
                        let domain = domain.unwrap_or_default();
                        let address = PciAddress { domain, bus: number, device: 0, function: 0 };
                        let root = PciDevice { address, kind: PciKind::HostBridge, ..PciDevice::default() };
                        Bus { domain, number, above: Some(tree.add(root, None)) }
                    }
                });
                at = text.len() - after.len();
            }
            _ => {
                let (Some((device, function, after)), Some(bus)) = (slot(rest), on) else { return false };
                let bridge = after.starts_with('-');
                let name = if bridge { String::new() } else { named(after) };
                let address = PciAddress { domain: bus.domain, bus: bus.number, device, function };
                let above = bus.above.and_then(|above| tree.devices().get(above)).map(|device| device.kind);
                let kind = match above {
                    _ if !bridge => PciKind::Endpoint,
                    Some(PciKind::HostBridge) => PciKind::RootPort,
                    Some(PciKind::RootPort | PciKind::SwitchDown) => PciKind::SwitchUp,
                    Some(PciKind::SwitchUp) => PciKind::SwitchDown,
                    _ => PciKind::Bridge,
                };
                let class = if bridge { 0x06_04_00 } else { 0 };
                let place = tree.add(PciDevice { address, kind, class, name, ..PciDevice::default() }, bus.above);
                if !bridge {
                    return true;
                }
                // The secondary bus is told next; until then no bus is known.
                on = Some(Bus { domain: bus.domain, number: u8::MAX, above: Some(place) });
                at = text.len() - after.len();
            }
        }
    }
    begun
}

/// The classes of devices that matter here, from their names: a drawing has no others.
fn by_name(host: &mut Hardware) {
    for device in host.pci.iter_mut().filter(|device| device.class == 0 && !device.name.is_empty()) {
        let name = &device.name;
        device.vendor = ids::vendor_of(name);
        if let Some((vendor, id)) = name.rsplit_once('[').and_then(|(_, rest)| rest.trim_end_matches(']').split_once(':')) {
            device.vendor = u16::from_str_radix(vendor, 16).unwrap_or(device.vendor);
            device.device = u16::from_str_radix(id, 16).unwrap_or_default();
        }
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        device.class = if has(&["Audio", "USB", "UCSI", "Host Bridge", "Root Complex", "Thermal", "IOMMU"]) {
            0
        } else if has(&["NVSwitch", "Device 1af1", "Device 22a3", "Device 1ac2"]) {
            0x06_80_00
        } else if device.vendor == ids::NVIDIA && device.address.function == 0 {
            0x03_02_00
        } else if has(&["InfiniBand", "Infiniband", "ConnectX-IB"]) {
            0x02_07_00
        } else if has(&["Ethernet", "Network Connection", "ConnectX", "BlueField", "Elastic Fabric", "(ENA)", "network device"]) {
            0x02_00_00
        } else if device.vendor == ids::AMD && has(&["Instinct", "Radeon", "Aldebaran", "Arcturus", "Vega"]) {
            0x03_80_00
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    const DRAWN: &str = "-+-[0000:ae]-+-00.0-[af-b2]----00.0-[b0-b2]--+-04.0-[b1]----00.0  NVIDIA Corporation GV100GL [Tesla V100]\n\
        \x20|           |                               +-08.0-[b2]--+-00.0  Mellanox Technologies MT27800 Family [ConnectX-5]\n\
        \x20|           |                               |            \\-00.1  Mellanox Technologies MT27800 Family [ConnectX-5]\n\
        \x20|           |                               \\-0c.0-[b3]--\n\
        \x20|           \\-05.0  Intel Corporation Sky Lake-E MM/Vt-d\n\
        \x20\\-[0000:00]-+-00.0  Intel Corporation Sky Lake-E DMI3\n\
        \x20            \\-1f.3  Intel Corporation Audio\n";

    #[test]
    fn a_drawing_tells_what_hangs_where() {
        let (host, used) = read(&lines(DRAWN)).unwrap();
        assert_eq!(used, 7);
        assert_eq!((host.pci.len(), host.gpus.len(), host.nics.len()), (13, 1, 2));
        let gpu = host.gpus[0].pci.unwrap();
        let above: Vec<_> = host.above(gpu).map(|at| (host.pci[at].address.to_string(), host.pci[at].kind)).collect();
        let expected = [
            ("0000:b1:00.0", PciKind::Endpoint),
            ("0000:b0:04.0", PciKind::SwitchDown),
            ("0000:af:00.0", PciKind::SwitchUp),
            ("0000:ae:00.0", PciKind::RootPort),
            ("0000:ae:00.0", PciKind::HostBridge),
        ];
        assert_eq!(above, expected.map(|(address, kind)| (address.to_owned(), kind)));
        let second = host.pci.iter().find(|device| device.address.to_string() == "0000:b2:00.1").unwrap();
        assert_eq!(host.pci[second.parent.unwrap()].address.to_string(), "0000:b0:08.0");
    }

    #[test]
    fn one_domain_without_a_fork_and_other_dashes_are_told_apart() {
        let (host, used) = read(&lines("-[0000:00]-+-00.0\n           +-01.0-[01]----00.0\n           \\-02.0\nend\n")).unwrap();
        assert_eq!((host.pci.len(), used), (5, 3));
        for wrong in ["--- topology", "-[x]-", "----", "- item", "[0000:00]", "\\-[0000:0000]"] {
            assert!(read(&lines(wrong)).is_none(), "{wrong}");
        }
    }
}
