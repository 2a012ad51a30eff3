//! `lspci` as a list, from plain to `-nnvvv`, and what `grep` leaves of it as long as each device's line is kept.

use std::collections::HashMap;

use super::text::{Line, named, number};
use super::tree::{Tree, lanes};
use super::{Skips, ids};
use crate::topology::hardware::{Acs, Gpu, Hardware, LinkLayer, Nic, NoteKind, PciDevice, PciKind};
use crate::topology::{Lanes, PciAddress, PcieLink};

/// What one device's paragraph tells beside the device itself.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    most: Option<Lanes>,
    now: Option<Lanes>,
    /// bus right below, for bridges
    secondary: Option<u8>,
}

/// The address that a line begins with, and what follows it.
fn address(text: &str) -> Option<(PciAddress, &str)> {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let shape: Vec<usize> = first.split([':', '.']).map(str::len).collect();
    let right = matches!(shape[..], [2, 2, 1] | [4..=8, 2, 2, 1])
        && first.contains('.')
        && first.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    Some((first.parse().ok().filter(|_| right)?, rest.trim()))
}

/// `3D controller [0302]: NVIDIA Corporation GA100 [A100] [10de:20b2] (rev a1)`, without numbers, or with numbers alone
/// (`0302: 10de:20b2`), or as `-mm` quotes it.
fn described(text: &str) -> Option<PciDevice> {
    let (class, name) = if text.starts_with('"') {
        let words: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        (*words.first()?, format!("{} {}", words.get(1)?, words.get(2)?))
    } else {
        let (class, name) = text.split_once(": ")?;
        (class, name.to_owned())
    };
    let code = |word: &str| u32::from_str_radix(word, 16).ok().filter(|_| word.len() == 4);
    let (title, code) = match class.rsplit_once(" [").and_then(|(title, rest)| Some((title, code(rest.strip_suffix(']')?)?))) {
        Some((title, code)) => (title, Some(code)),
        None => (class, code(class)),
    };
    if title.len() > 64 || !title.starts_with(|char: char| char.is_ascii_alphanumeric()) {
        return None;
    }
    let interface = name.split_once("(prog-if ").and_then(|(_, rest)| u32::from_str_radix(rest.get(..2)?, 16).ok()).unwrap_or_default();
    let pair = |text: &str| {
        let (vendor, device) = text.split_once(':')?;
        Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?)).filter(|_| text.len() == 9)
    };
    let numbers = name.split(['[', ']', ' ', '(']).filter_map(pair).next_back();
    let (vendor, device) = numbers.unwrap_or_else(|| (ids::vendor_of(&name), 0));
    let shown = name.split(" (rev ").next().unwrap_or_default().split(" (prog-if ").next().unwrap_or_default();
    let shown = shown.rsplit_once(" [").filter(|(_, rest)| pair(rest.trim_end_matches(']')).is_some()).map_or(shown, |(name, _)| name);
    let class = code.map_or_else(|| ids::class_of(title), |code| code << 8 | interface);
    let kind = if ids::is_bridge(class) { PciKind::Bridge } else { PciKind::Endpoint };
    Some(PciDevice { kind, class, vendor, device, name: named(shown), ..PciDevice::default() })
}

/// Beginnings of the lines below a device's; grep may have taken their indentation.
const KEYS: [&str; 16] = [
    "LnkCap",
    "LnkSta",
    "LnkCtl",
    "ACSC",
    "DevCap",
    "DevCtl",
    "DevSta",
    "Bus:",
    "NUMA node:",
    "Kernel ",
    "Capabilities:",
    "RlxdOrd",
    "Subsystem:",
    "Control:",
    "Status:",
    "IOMMU group:",
];

/// True for a line that tells something of the device above it.
pub(super) fn is_attribute(text: &str) -> bool {
    KEYS.iter().any(|key| text.starts_with(key))
}

/// `sudo lspci -s 02:00.0 -vvv | grep Speed`: the device that the lines below speak of.
fn asked(text: &str) -> Option<PciAddress> {
    let mut words = text.split_once("lspci")?.1.split_whitespace();
    words.find(|word| *word == "-s")?;
    address(words.next()?).map(|(address, _)| address)
}

/// The first device of a list, if one begins with the first line.
fn begins(lines: &[Line<'_>]) -> Option<(PciAddress, Option<PciDevice>)> {
    let text = lines.first()?.text.trim();
    let told = |rest: &[Line<'_>]| {
        let next = rest.iter().take(3).map(|line| line.text.trim()).find(|text| !text.is_empty());
        next.is_some_and(is_attribute)
    };
    if let Some((address, rest)) = address(text) {
        let device = described(rest);
        return (device.is_some() || rest.is_empty() && told(&lines[1..])).then_some((address, device));
    }
    asked(text).filter(|_| told(&lines[1..])).map(|address| (address, None))
}

/// What a list tells, if one begins with the first line, and the number of lines that it takes.
pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Hardware, usize)> {
    begins(lines)?;
    let mut tree = Tree::default();
    let mut told: Vec<Told> = Vec::new();
    let mut denied = false;
    let (mut at, mut used) = (0, 0);
    let mut own = None;
    while let Some(line) = lines.get(at) {
        let text = line.text.trim();
        let head = address(text).map(|(address, rest)| (address, rest.is_empty(), described(rest)));
        if let Some((address, device)) = begins(&lines[at..])
            .or_else(|| head.and_then(|(address, bare, device)| (bare || device.is_some()).then_some((address, device))))
        {
            let device = PciDevice { address, ..device.unwrap_or_default() };
            let place = tree.add(device, None);
            told.resize(tree.devices().len(), Told::default());
            own = Some(place);
        } else if let (Some(own), true) = (own, is_attribute(text)) {
            denied |= text.contains("<access denied>");
            if let Some(device) = tree.get_mut(own) {
                attribute(text, device, &mut told[own]);
            }
        } else if !(text.is_empty() || line.text.starts_with([' ', '\t']) || text == "--") {
            break;
        }
        at += 1;
        if !text.is_empty() {
            used = at;
        }
    }
    let mut host = Hardware::default();
    place(&mut tree, &told, &mut host);
    let bare = tree.devices().iter().filter(|device| device.class == 0 && device.name.is_empty()).count();
    if bare > 0 {
        skips.push(lines[0].number, format!("{bare} devices are told by their address alone: not what they are"));
    }
    tree.finish(&mut host);
    name_devices(&mut host);
    if denied {
        host.note(
            NoteKind::Unseen,
            "PCI",
            "lspci ran without privileges and was denied capabilities: `sudo lspci -vv` tells links and ACS",
        );
    }
    Some((host, used))
}

/// One line of a device's paragraph.
fn attribute(text: &str, device: &mut PciDevice, told: &mut Told) {
    let (key, value) = text.split_once(':').unwrap_or((text, ""));
    let value = value.trim();
    let after = |word: &str| value.split_once(word).map(|(_, rest)| rest.trim_start());
    let state = || {
        // `Speed 2.5GT/s (downgraded), Width x8 (downgraded)`
        let speed = after("Speed ")?.split([',', ' ']).next()?;
        lanes(speed, after("Width ")?.split([',', ' ']).next()?)
    };
    match key {
        "LnkCap" => told.most = told.most.or_else(state),
        "LnkSta" => told.now = told.now.or_else(state),
        "Bus" => {
            let bus = after("secondary=").and_then(|rest| u8::from_str_radix(rest.split(',').next()?, 16).ok());
            told.secondary = bus.filter(|bus| *bus > 0);
        }
        "NUMA node" => device.numa = number(value),
        "Kernel driver in use" => device.driver = Some(named(value)),
        "ACSCtl" => {
            let on = |bit: &str| value.split_whitespace().any(|word| word.strip_suffix('+') == Some(bit));
            device.acs = Some(Acs {
                source_validation: on("SrcValid"),
                request_redirect: on("ReqRedir"),
                completion_redirect: on("CmpltRedir"),
                upstream_forwarding: on("UpstreamFwd"),
                direct_translated: on("DirectTrans"),
            });
        }
        "Capabilities" if value.contains("Express") => {
            let kinds = [("Root Port", PciKind::RootPort), ("Upstream Port", PciKind::SwitchUp), ("Downstream Port", PciKind::SwitchDown)];
            if let Some((_, kind)) = kinds.into_iter().find(|(name, _)| value.contains(name)) {
                device.kind = kind;
            }
        }
        _ => {}
    }
}

/// Parents by the buses that bridges tell, and the links above devices by both of their ends.
fn place(tree: &mut Tree, told: &[Told], host: &mut Hardware) {
    let devices = tree.devices();
    let below: HashMap<(u32, u8), usize> =
        (told.iter().enumerate()).filter_map(|(at, told)| Some(((devices[at].address.domain, told.secondary?), at))).collect();
    let count = devices.len();
    for (at, own) in told.iter().enumerate().take(count) {
        let PciAddress { domain, bus, .. } = tree.devices()[at].address;
        let parent = below.get(&(domain, bus)).copied().filter(|parent| *parent != at);
        // Where bridges tell their buses, a bus that is below none is one that a processor has.
        let root = (parent.is_none() && !below.is_empty()).then(|| {
            let address = PciAddress { domain, bus, device: 0, function: 0 };
            tree.add(PciDevice { address, kind: PciKind::HostBridge, ..PciDevice::default() }, None)
        });
        let port = parent.and_then(|parent| told.get(parent)).and_then(|port| port.most);
        if let Some(device) = tree.get_mut(at) {
            device.parent = parent.or(root);
            let link = PcieLink { now: own.now, most: own.most, port };
            // What a root or downstream port tells is the state of the link below it.
            let above = matches!(device.kind, PciKind::Endpoint | PciKind::SwitchUp | PciKind::Bridge);
            device.link = Some(link).filter(|link| above && (link.now.is_some() || link.most.is_some()));
        }
    }
    let lost: Vec<String> = told
        .iter()
        .enumerate()
        .filter(|(_, told)| told.most.is_some() && told.now.is_none())
        .map(|(at, _)| tree.devices()[at].address.to_string())
        .collect();
    super::tree::note_all(host, NoteKind::Unseen, &lost, "the trained state of the link is not in the file, only what it can do");
}

/// GPUs and network devices by class, numbered by address as their drivers do.
pub(super) fn name_devices(host: &mut Hardware) {
    let mut order: Vec<usize> = (0..host.pci.len()).collect();
    order.sort_by_key(|&at| host.pci[at].address);
    for at in order {
        let device = &host.pci[at];
        if ids::is_gpu(device.class, device.vendor, device.device) {
            let (index, name) = (host.gpus.len(), device.name.clone());
            host.gpus.push(Gpu { index, name, pci: Some(at), numa: device.numa, ..Gpu::default() });
        } else if ids::is_nic(device.class) && device.kind == PciKind::Endpoint {
            let layer = match device.class >> 8 {
                0x02_07 => LinkLayer::InfiniBand,
                0x02_00 if !device.name.contains("EFA") => LinkLayer::Ethernet,
                _ => LinkLayer::Other,
            };
            let (name, driver) = (device.address.to_string(), device.driver.clone());
            host.nics.push(Nic { name, pci: Some(at), numa: device.numa, layer, driver, ..Nic::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    fn list(text: &str) -> Hardware {
        read(&lines(text), &mut Skips::default()).unwrap().0
    }

    #[test]
    fn lists_tell_devices_with_names_numbers_or_both() {
        for text in [
            "0001:00:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1)\n",
            "0001:00:00.0 0302: 10de:20b2 (rev a1)\n",
            "0001:00:00.0 \"3D controller [0302]\" \"NVIDIA Corporation [10de]\" \"GA100 [10de:20b2]\" -ra1 \"\" \"\"\n",
        ] {
            let host = list(text);
            assert_eq!((host.pci.len(), host.gpus.len()), (1, 1), "{text}");
            assert_eq!((host.pci[0].class, host.pci[0].device, host.pci[0].address.domain), (0x03_02_00, 0x20b2, 1), "{text}");
        }
        let host = list("3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4] (rev a1)\n5e:00.1 Ethernet controller: Mellanox X\n");
        assert_eq!((host.gpus[0].name.as_str(), host.nics[0].name.as_str()), ("NVIDIA Corporation GA100 [A100 SXM4]", "0000:5e:00.1"));
        for wrong in ["12:30.5 hello\n", "3b:00.0\nhello\n", "00:00.0: x\n", "3b:00 3D controller: x\n", ""] {
            assert!(read(&lines(wrong), &mut Skips::default()).is_none(), "{wrong:?}");
        }
    }

    const TREE: &str = "00:01.0 PCI bridge: Intel Corporation Root (rev 07) (prog-if 00 [Normal decode])\n\
        \tControl: I/O- Mem+\n\tNUMA node: 1\n\tBus: primary=00, secondary=3a, subordinate=3c, sec-latency=0\n\
        \tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n\
        \t\tLnkCap:\tPort #2, Speed 16GT/s, Width x16, ASPM L1\n\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x16 (ok)\n\
        \t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd+ EgressCtrl- DirectTrans-\n\n\
        3a:00.0 PCI bridge: PLX\n\tBus: primary=3a, secondary=3b, subordinate=3c\n\tCapabilities: [68] Express (v2) Upstream Port, MSI 00\n\
        3b:04.0 PCI bridge: PLX\n\tBus: primary=3b, secondary=3c, subordinate=3c\n\tCapabilities: [68] Express (v2) Downstream Port (Slot-), MSI 00\n\
        \t\tLnkCap: Port #4, Speed 8GT/s, Width x16\n\
        3c:00.0 VGA compatible controller: NVIDIA Corporation AD102 (rev a1)\n\tCapabilities: <access denied>\n\
        \t\tLnkCap: Port #0, Speed 16GT/s, Width x16\n\t\tLnkSta: Speed 2.5GT/s (downgraded), Width x8\n\tKernel driver in use: nvidia\n";

    #[test]
    fn paragraphs_tell_parents_links_and_acs() {
        let host = list(TREE);
        let kinds: Vec<_> = host.pci.iter().map(|device| (device.kind, device.parent)).collect();
        let expected = [
            (PciKind::HostBridge, None),
            (PciKind::RootPort, Some(0)),
            (PciKind::SwitchUp, Some(1)),
            (PciKind::SwitchDown, Some(2)),
            (PciKind::Endpoint, Some(3)),
        ];
        assert_eq!(kinds, expected);
        assert_eq!((host.pci[1].numa, host.pci[1].link), (Some(1), None));
        let acs = host.pci[1].acs.unwrap();
        assert!(acs.source_validation && acs.request_redirect && acs.upstream_forwarding && !acs.completion_redirect);
        let link = host.pci[4].link.unwrap();
        let said = |lanes: Option<Lanes>| lanes.unwrap().to_string();
        assert_eq!(
            (said(link.now), said(link.most), said(link.port)),
            ("Gen1 x8".to_owned(), "Gen4 x16".to_owned(), "Gen3 x16".to_owned())
        );
        assert_eq!(host.pci[4].driver.as_deref(), Some("nvidia"));
        assert!(host.notes.iter().any(|note| note.text.contains("sudo")));
    }

    #[test]
    fn what_grep_leaves_is_read_where_the_device_is_told() {
        let host = list(
            "31:00.0\n   LnkCap: Port #0, Speed 16GT/s, Width x16\n   LnkSta: Speed 2.5GT/s, Width x8\n34:00.0\n   LnkCap: Speed 16GT/s, Width x16\n",
        );
        assert_eq!((host.pci.len(), host.pci[0].link.unwrap().now.unwrap().width), (2, 8));
        assert_eq!(host.notes[0].about, "0000:34:00.0");
        let host = list(
            "$ sudo lspci -s 02:00.0 -vvv | grep Speed\n\nLnkCap: Port #0, Speed 32GT/s, Width x16\nLnkSta: Speed 32GT/s (ok), Width x16 (ok)\n",
        );
        assert_eq!((host.pci[0].address.bus, host.pci[0].link.unwrap().most.unwrap().generation()), (2, Some(5)));
    }
}
