//! hwloc's XML, versions 1 to 3 (`lstopo --of xml`): packages, caches, NUMA nodes, the PCI tree and what the system calls its
//! devices. Types of I/O objects are numbers, which version 3 turned into bits.

use std::collections::HashMap;

use roxmltree::Node;

use super::hwloc_io::{Known, OsDevice, devices};
use super::text::{amount, mask, named, number, shown};
use super::tree::{Tree, note_all};
use super::xml::Piece;
use super::{Skips, hwloc_links, ids};
use crate::topology::hardware::{Cache, CacheKind, Hardware, NoteKind, NumaNode, Package, PciDevice, PciKind};
use crate::topology::{Lanes, PciAddress, PcieLink};

/// Where an object stands.
#[derive(Clone, Copy, Default)]
struct Place {
    package: Option<usize>,
    numa: Option<usize>,
    /// nearest PCI object above, in the tree
    pci: Option<usize>,
}

/// The value of an object's `<info name= value=>`.
pub(super) fn info<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let infos = node.children().filter(|child| child.has_tag_name("info"));
    infos
        .filter(|info| info.attribute("name") == Some(name))
        .find_map(|info| info.attribute("value"))
        .filter(|value| !value.trim().is_empty())
}

/// What is read besides the hardware itself.
#[derive(Default)]
struct Draft {
    host: Hardware,
    tree: Tree,
    known: Known,
    /// NUMA node of `gp_index`, for links to processors
    nodes: HashMap<String, usize>,
    version: u32,
    /// addresses of devices that must lie below bridges which are left out
    hidden: Vec<String>,
    /// addresses that several devices have
    twice: Vec<String>,
}

/// The host of a file.
pub(super) fn read(root: Node<'_, '_>, piece: &Piece<'_>, skips: &mut Skips) -> Hardware {
    let version = root.attribute("version").and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(1);
    let mut draft = Draft { version, ..Draft::default() };
    draft.identify(root);
    let mut open: Vec<(Node<'_, '_>, Place)> = root.children().rev().map(|node| (node, Place::default())).collect();
    while let Some((node, mut place)) = open.pop() {
        match node.tag_name().name() {
            "object" => {
                if let Err(reason) = draft.object(node, &mut place) {
                    piece.skip(node, skips, reason);
                }
                open.extend(node.children().rev().map(|child| (child, place)));
            }
            "distances" => hwloc_links::latencies(node, &mut draft.host.numa),
            _ => {}
        }
    }
    let Draft { mut host, tree, known, nodes, twice, hidden, .. } = draft;
    let text = "the bridges above were filtered out when the file was written: PIX, PXB and PHB cannot be told apart (`lstopo --filter bridge:all` keeps them)";
    note_all(&mut host, NoteKind::Unseen, &hidden, text);
    note_all(&mut host, NoteKind::Lie, &twice, "the file has several devices at this address");
    let ends = devices(&mut host, tree, &known);
    for node in root.children().filter(Node::is_element) {
        let named = node.attribute("name").unwrap_or_default();
        match node.tag_name().name() {
            "distances2" if named.contains("Latency") => hwloc_links::distances(node, &mut host.numa),
            "distances2" | "distances2hetero" if named.ends_with("Bandwidth") => {
                hwloc_links::links(node, named.starts_with("XGMI"), &ends, &nodes, &mut host);
            }
            _ => {}
        }
    }
    // hwloc's issue 574.
    let doubted = host.gpus.iter().filter_map(|gpu| host.pci.get(gpu.pci?)).any(|gpu| gpu.vendor == ids::NVIDIA && gpu.device >= 0x2000);
    if doubted && !host.gpu_links.is_empty() {
        host.note(NoteKind::Unseen, "NVLink", "older hwloc tells wrong rates of NVLink 3 and later: compare with `nvidia-smi nvlink -s`");
    }
    for numa in &mut host.numa {
        // A node told twice, or a matrix of other nodes.
        if numa.distances.iter().all(|distance| *distance == 0) {
            numa.distances.clear();
        }
    }
    host
}

impl Draft {
    /// Names of host, machine and hypervisor.
    fn identify(&mut self, root: Node<'_, '_>) {
        let machine = root.children().find(|node| node.attribute("type") == Some("Machine"));
        let told = |name| machine.and_then(|machine| info(machine, name)).or_else(|| info(root, name)).map(named);
        let host = &mut self.host;
        host.host = told("HostName").unwrap_or_default();
        let maker = told("DMIBoardVendor").or_else(|| told("DMISysVendor")).or_else(|| told("DMIChassisVendor"));
        let model = told("DMIProductName").or_else(|| told("PlatformModel"));
        host.product = match (maker, model) {
            (Some(maker), Some(model)) if !model.contains(&maker) => format!("{maker} {model}"),
            (maker, model) => model.or(maker).unwrap_or_default(),
        };
    }

    fn object(&mut self, node: Node<'_, '_>, place: &mut Place) -> Result<(), String> {
        let kind = node.attribute("type").unwrap_or_default();
        let index = || node.attribute("os_index").and_then(number);
        let cpus = || node.attribute("cpuset").and_then(mask).unwrap_or_default();
        // What lies in one node is near it; version 1 nests nodes, later ones name them by sets.
        if let Some([only]) = node.attribute("nodeset").and_then(mask).as_deref() {
            place.numa = Some(*only);
        }
        match kind {
            "Package" | "Socket" => {
                place.package = Some(self.host.packages.len());
                let model = info(node, "CPUModel").map(named).unwrap_or_default();
                let id = index().unwrap_or(self.host.packages.len());
                self.host.packages.push(Package { id, model, cores: 0, cpus: cpus() });
            }
            "Core" => {
                if let Some(package) = place.package.and_then(|at| self.host.packages.get_mut(at)) {
                    package.cores += 1;
                }
            }
            "NUMANode" => {
                let id = index().ok_or("a NUMA node without a number")?;
                place.numa = Some(id);
                self.nodes.extend(node.attribute("gp_index").map(|gp| (gp.to_owned(), id)));
                let memory = node.attribute("local_memory").and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
                self.host.numa.push(NumaNode { id, cpus: cpus(), memory, distances: Vec::new() });
            }
            "Bridge" => place.pci = self.bridge(node, *place)?.or(place.pci),
            "PCIDev" => place.pci = Some(self.pci(node, PciKind::Endpoint, *place)?),
            "OSDev" => self.known.os.push(OsDevice::of(node, self.version, place.pci, place.numa)),
            _ => {
                if let Some(cache) = cache(node, kind) {
                    self.host.caches.push(Cache { cpus: cpus(), ..cache });
                }
            }
        }
        Ok(())
    }

    /// A bridge from the processor (`0-1`) has a range of buses, one between PCI buses (`1-1`) an address.
    fn bridge(&mut self, node: Node<'_, '_>, place: Place) -> Result<Option<usize>, String> {
        if node.attribute("bridge_type").is_some_and(|kind| kind.starts_with("0-")) {
            let buses = node.attribute("bridge_pci").unwrap_or_default();
            let first =
                buses.split_once('[').map(|(domain, rest)| format!("{domain}{}:00.0", rest.split(['-', ']']).next().unwrap_or_default()));
            let address = first.and_then(|first| first.parse().ok()).ok_or_else(|| format!("{} is no range of buses", shown(buses)))?;
            let bridge = PciDevice { address, kind: PciKind::HostBridge, numa: place.numa, ..PciDevice::default() };
            return Ok(Some(self.tree.add(bridge, None)));
        }
        let above = place.pci.and_then(|at| self.tree.devices().get(at)).map(|device| device.kind);
        let kind = match above {
            Some(PciKind::HostBridge) => PciKind::RootPort,
            Some(PciKind::RootPort | PciKind::SwitchDown) => PciKind::SwitchUp,
            Some(PciKind::SwitchUp) => PciKind::SwitchDown,
            _ => PciKind::Bridge,
        };
        self.pci(node, kind, place).map(Some)
    }

    fn pci(&mut self, node: Node<'_, '_>, kind: PciKind, place: Place) -> Result<usize, String> {
        let address = node.attribute("pci_busid").unwrap_or_default();
        let address: PciAddress = address.parse().map_err(|_| format!("{} is no PCI address", shown(address)))?;
        // `0302 [10de:1db8] [10de:131d] a1 00`: class, device, subsystem, revision, interface
        let words: Vec<&str> =
            node.attribute("pci_type").unwrap_or_default().split([' ', '[', ']', ':']).filter(|word| !word.is_empty()).collect();
        let word = |at: usize| words.get(at).and_then(|word| u32::from_str_radix(word, 16).ok()).unwrap_or_default();
        let small = |at: usize| u16::try_from(word(at)).unwrap_or_default();
        let class = if word(0) <= 0xffff { word(0) << 8 | word(6).min(0xff) } else { 0 };
        // ASPEED's management controller has a bridge to old PCI, no switch.
        let kind = if kind.is_bridge() && small(1) == 0x1a03 { PciKind::Bridge } else { kind };
        let now = node.attribute("pci_link_speed").and_then(amount).and_then(widest);
        // The state of a port is that of the link below it.
        let link = now.filter(|_| matches!(kind, PciKind::Endpoint | PciKind::SwitchUp | PciKind::Bridge));
        let above = place.pci.and_then(|at| self.tree.devices().get(at));
        if above.is_some_and(|above| above.kind == PciKind::HostBridge && above.address.bus != address.bus) {
            self.hidden.push(address.to_string());
        }
        if self.tree.has(address) {
            self.twice.push(address.to_string());
        }
        let at = self.tree.add(
            PciDevice {
                address,
                kind,
                class,
                vendor: small(1),
                device: small(2),
                name: info(node, "PCIDevice").map(named).unwrap_or_default(),
                link: link.map(|now| PcieLink { now: Some(now), ..PcieLink::default() }),
                numa: place.numa,
                ..PciDevice::default()
            },
            place.pci,
        );
        if let Some(gp) = node.attribute("gp_index") {
            self.known.pci.insert(gp.to_owned(), at);
        }
        if ids::is_nvswitch(class, small(1)) || node.attribute("subtype") == Some("NVSwitch") {
            self.known.switches.insert(at);
        }
        Ok(at)
    }
}

/// The widest link with a rate in GB/s after the line code, as hwloc works it out from generation and width.
fn widest(rate: f64) -> Option<Lanes> {
    let all = [16, 8, 4, 2, 1].into_iter().flat_map(|width| (1..=6).filter_map(move |generation| Lanes::of_generation(generation, width)));
    // hwloc counts 128b/130b for the sixth generation, too.
    let gbs =
        |lanes: Lanes| if lanes.speed > 60.0 { lanes.speed * 128.0 / 130.0 / 8.0 * f64::from(lanes.width) } else { lanes.rate() / 1e9 };
    all.into_iter().find(|lanes| (gbs(*lanes) - rate).abs() < rate * 0.005)
}

/// A cache by its type's name: `L3Cache`, `L1iCache`; `Cache` with its depth in version 1.
fn cache(node: Node<'_, '_>, kind: &str) -> Option<Cache> {
    let name = kind.strip_suffix("Cache")?;
    if node.attribute("subtype") == Some("MemorySideCache") || name == "Mem" {
        return None;
    }
    let depth = name.strip_prefix('L').map(|name| name.trim_end_matches('i')).or_else(|| node.attribute("depth"))?;
    let kind = match node.attribute("cache_type") {
        Some("1") => CacheKind::Data,
        Some("2") => CacheKind::Instruction,
        _ if name.ends_with('i') => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let bytes = node.attribute("cache_size").and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    Some(Cache { level: u32::try_from(number(depth)?).ok()?, kind, bytes, cpus: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    pub(super) fn read(text: &str) -> Hardware {
        let (_, hosts, _) = xml::read(&xml::pieces(text), "f").unwrap();
        hosts.into_iter().next().unwrap()
    }

    #[test]
    fn the_machine_is_read_in_the_second_version() {
        let host = read(
            r#"<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
            <object type="Machine" cpuset="0x0000000f" nodeset="0x3">
             <info name="DMIProductName" value="Model 7"/><info name="DMIBoardVendor" value="Maker"/><info name="HostName" value="n1"/>
             <object type="Package" os_index="0" cpuset="0x3" nodeset="0x1"><info name="CPUModel" value="Fast"/>
              <object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1" gp_index="5" local_memory="4096"/>
              <object type="L3Cache" cpuset="0x3" cache_size="1000" cache_type="0">
               <object type="L1iCache" cpuset="0x1" cache_size="32"/><object type="Core"><object type="PU"/></object><object type="Core"/></object>
              <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[3a-3d]">
               <object type="Bridge" bridge_type="1-1" pci_busid="0000:3a:00.0" pci_type="0604 [8086:2030] [0:0] 04" pci_link_speed="15.753846">
                <object type="Bridge" bridge_type="1-1" pci_busid="0000:3b:00.0" pci_type="0604 [10b5:9781] [0:0] b0" pci_link_speed="15.753846">
                 <object type="Bridge" bridge_type="1-1" pci_busid="0000:3c:04.0" pci_type="0604 [10b5:9781] [0:0] b0" pci_link_speed="3.938462">
                  <object type="PCIDev" pci_busid="0000:3d:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1" pci_link_speed="3.938462">
                   <info name="PCIDevice" value="GV100"/></object></object></object></object></object>
             </object>
             <object type="Package" os_index="1" cpuset="0xc" nodeset="0x2"><object type="NUMANode" os_index="1" cpuset="0xc" nodeset="0x2"/></object>
            </object>
            <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os"><indexes>0 1 </indexes>
             <u64values>10 21 21 </u64values><u64values>10</u64values></distances2></topology>"#,
        );
        assert_eq!((host.host.as_str(), host.product.as_str()), ("n1", "Maker Model 7"));
        assert_eq!((host.packages.len(), host.packages[0].cores, host.packages[0].cpus.len()), (2, 2, 2));
        assert_eq!(
            host.caches.iter().map(|cache| (cache.level, cache.kind, cache.bytes)).collect::<Vec<_>>(),
            [(3, CacheKind::Unified, 1000), (1, CacheKind::Instruction, 32)]
        );
        assert_eq!((host.numa[0].memory, &host.numa[1].distances), (4096, &vec![21, 10]));
        let kinds: Vec<_> = host.pci.iter().map(|device| device.kind).collect();
        assert_eq!(kinds, [PciKind::HostBridge, PciKind::RootPort, PciKind::SwitchUp, PciKind::SwitchDown, PciKind::Endpoint]);
        let gpu = &host.pci[host.gpus[0].pci.unwrap()];
        assert_eq!((gpu.vendor, gpu.device, gpu.class, gpu.numa, gpu.name.as_str()), (0x10de, 0x1db8, 0x03_02_00, Some(0), "GV100"));
        assert_eq!(gpu.link.unwrap().now.unwrap().to_string(), "Gen1 x16".replace("Gen1 x16", &widest(3.938_462).unwrap().to_string()));
        assert_eq!(host.above(host.gpus[0].pci.unwrap()).count(), 5);
    }

    #[test]
    fn the_first_version_nests_nodes_and_numbers_caches() {
        let host = read(
            r#"<topology><object type="Machine" cpuset="0x3"><object type="NUMANode" os_index="8" cpuset="0x3" local_memory="7">
              <distances nbobjs="1" relative_depth="1" latency_base="10.0"><latency value="1.0"/></distances>
              <object type="Socket" os_index="0" cpuset="0x3"><object type="Cache" depth="2" cache_size="5" cache_type="0" cpuset="0x3"/></object>
              <object type="Bridge" bridge_type="0-1" bridge_pci="0004:[00-01]">
               <object type="PCIDev" pci_busid="0004:01:00.0" pci_type="0200 [14e4:1657] [0:0] 01"/><object type="PCIDev" pci_busid="x"/></object>
              </object></object></topology>"#,
        );
        assert_eq!((host.numa[0].id, host.numa[0].memory, host.packages.len(), host.caches[0].level), (8, 7, 1, 2));
        assert_eq!((host.pci.len(), host.pci[1].numa), (2, Some(8)));
        assert!(host.notes[0].text.contains("filtered out"), "{:?}", host.notes);
    }

    #[test]
    fn a_rate_is_read_as_the_widest_link_that_has_it() {
        for (rate, link) in
            [(15.753_846, "Gen3 x16"), (31.507_692, "Gen4 x16"), (63.015_385, "Gen5 x16"), (4.0, "Gen1 x16"), (0.25, "Gen1 x1")]
        {
            assert_eq!(widest(rate).map(|lanes| lanes.to_string()).as_deref(), Some(link), "{rate}");
        }
        assert!(widest(0.0).is_none() && widest(0.4).is_none());
    }
}
