//! What hwloc tells the system calls its devices: several names for one GPU (`nvml0`, `cuda0`, `card1`) and for one port (`mlx5_0`,
//! `ib0`).

use std::collections::{BTreeMap, HashMap, HashSet};

use roxmltree::Node;

use super::hwloc::info;
use super::ids;
use super::text::{named, number};
use super::tree::Tree;
use crate::topology::hardware::{Gpu, Hardware, LinkLayer, Nic};

/// What an operating system's device is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OsKind {
    Gpu,
    Network,
    Rdma,
    Other,
}

/// A device by one of its names.
#[derive(Debug)]
pub(super) struct OsDevice {
    kind: OsKind,
    name: String,
    /// hwloc's number of the object
    gp: Option<String>,
    pci: Option<usize>,
    numa: Option<usize>,
    model: Option<String>,
    uuid: Option<String>,
    /// bytes
    memory: u64,
    guid: Option<String>,
    port: u32,
    state: String,
    /// length of the hardware address: 20 bytes for InfiniBand
    long_address: bool,
}

/// What is needed to find objects again.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) os: Vec<OsDevice>,
    /// places in the tree by hwloc's number
    pub(super) pci: HashMap<String, usize>,
    /// NVSwitches, by their place in the tree
    pub(super) switches: HashSet<usize>,
}

/// Where the objects of a matrix came to lie: by hwloc's number, a GPU or an NVSwitch.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) gpus: HashMap<String, usize>,
    pub(super) switches: HashSet<String>,
}

impl OsDevice {
    pub(super) fn of(node: Node<'_, '_>, version: u32, pci: Option<usize>, numa: Option<usize>) -> Self {
        let told = node.attribute("osdev_type").and_then(number).unwrap_or(usize::MAX);
        let kind = match (version, told) {
            (..=2, 1 | 5) => OsKind::Gpu,
            (..=2, 2) => OsKind::Network,
            (..=2, 3) => OsKind::Rdma,
            // Bits: storage 1, memory 2, GPU 4, co-processor 8, network 16, RDMA 32, DMA 64.
            (..=2, _) | (_, usize::MAX) => OsKind::Other,
            (_, bits) if bits & 0x20 != 0 => OsKind::Rdma,
            (_, bits) if bits & 0x10 != 0 => OsKind::Network,
            (_, bits) if bits & 0xc != 0 => OsKind::Gpu,
            _ => OsKind::Other,
        };
        let kib = |name| info(node, name).and_then(|kib| kib.parse::<u64>().ok()).map(|kib| kib.saturating_mul(1024));
        // `Port`, from 1, is an interface's; a device's first port says its state: 1 down, 2 init, 3 armed, 4 active.
        let state = match info(node, "Port1State") {
            Some("1") => "down",
            Some("2") => "init",
            Some("3") => "armed",
            Some("4") => "active",
            _ => "",
        };
        Self {
            kind,
            name: named(node.attribute("name").unwrap_or_default()),
            gp: node.attribute("gp_index").map(str::to_owned),
            pci,
            numa,
            model: info(node, "GPUModel").map(named),
            uuid: info(node, "NVIDIAUUID").or_else(|| info(node, "AMDUUID")).map(named),
            memory: kib("CUDAGlobalMemorySize")
                .or_else(|| kib("RSMIVRAMSize"))
                .or_else(|| kib("OpenCLGlobalMemorySize"))
                .unwrap_or_default(),
            guid: info(node, "NodeGUID").map(named),
            port: info(node, "Port").and_then(number).and_then(|port| u32::try_from(port).ok()).unwrap_or_default(),
            state: state.to_owned(),
            long_address: info(node, "Address").is_some_and(|address| address.len() > 40),
        }
    }

    /// The driver's number in `nvml3`, and how much that name's number is to be trusted: nvidia-smi's before CUDA's.
    fn gpu_number(&self) -> Option<(u8, usize)> {
        let names = ["nvml", "rsmi", "cuda", "ze"];
        names.iter().zip(0..).find_map(|(name, rank)| Some((rank, number(self.name.strip_prefix(name)?)?)))
    }
}

/// Put the tree into the host, then GPUs and network ports. Returns where the ends of links came to lie.
pub(super) fn devices(host: &mut Hardware, tree: Tree, known: &Known) -> Ends {
    let place = tree.finish(host);
    let mut of: BTreeMap<Option<usize>, Vec<&OsDevice>> = BTreeMap::new();
    for device in &known.os {
        of.entry(device.pci.map(|at| place[at])).or_default().push(device);
    }
    let mut ends = Ends::default();
    let mut gpus: Vec<(Gpu, (u8, usize), Vec<&str>)> = Vec::new();
    for at in 0..host.pci.len() {
        let names = of.get(&Some(at)).map_or(&[][..], Vec::as_slice);
        gpus.extend(gpu(host, at, names));
        ports(host, Some(at), names);
    }
    let loose = of.get(&None).map_or(&[][..], Vec::as_slice);
    ports(host, None, loose);
    for device in loose.iter().filter(|device| device.kind == OsKind::Gpu) {
        if let Some(order) = device.gpu_number() {
            let gpu = Gpu { index: order.1, ..described(&[*device], None, device.numa) };
            gpus.push((gpu, order, device.gp.as_deref().into_iter().collect()));
        }
    }
    // By the driver's numbers where there are any, else by address, as it numbers them.
    gpus.sort_by_key(|(.., (rank, number), _)| (*rank, *number));
    for (at, (mut gpu, (rank, number), numbers)) in gpus.into_iter().enumerate() {
        gpu.index = if rank == u8::MAX { at } else { number };
        ends.gpus.extend(numbers.into_iter().map(|gp| (gp.to_owned(), host.gpus.len())));
        host.gpus.push(gpu);
    }
    for (gp, at) in &known.pci {
        if known.switches.contains(at) {
            ends.switches.insert(gp.clone());
        }
        if let Some(gpu) = host.gpus.iter().take(1024).position(|gpu| gpu.pci == Some(place[*at])) {
            ends.gpus.insert(gp.clone(), gpu);
        }
    }
    ends
}

/// What the names of one GPU tell of it.
fn described(names: &[&OsDevice], pci: Option<usize>, numa: Option<usize>) -> Gpu {
    let told = |of: fn(&OsDevice) -> Option<&String>| names.iter().find_map(|device| of(device).cloned());
    Gpu {
        name: told(|device| device.model.as_ref()).unwrap_or_default(),
        uuid: told(|device| device.uuid.as_ref()),
        memory: names.iter().map(|device| device.memory).max().unwrap_or_default(),
        pci,
        numa,
        ..Gpu::default()
    }
}

/// A PCI device as a GPU, if it is one by its class or its drivers; with its number and hwloc's numbers of its names.
fn gpu<'a>(host: &Hardware, at: usize, names: &[&'a OsDevice]) -> Option<(Gpu, (u8, usize), Vec<&'a str>)> {
    let device = host.pci.get(at)?;
    let names: Vec<&OsDevice> = names.iter().filter(|name| name.kind == OsKind::Gpu).copied().collect();
    let order = names.iter().filter_map(|name| name.gpu_number()).min();
    if order.is_none() && !ids::is_gpu(device.class, device.vendor, device.device) {
        return None;
    }
    let mut gpu = described(&names, Some(at), device.numa);
    if gpu.name.is_empty() {
        gpu.name.clone_from(&device.name);
    }
    Some((gpu, order.unwrap_or((u8::MAX, 0)), names.iter().filter_map(|name| name.gp.as_deref()).collect()))
}

/// The ports of a device, or those of no device: RDMA devices and network interfaces are two names of the same ports.
fn ports(host: &mut Hardware, at: Option<usize>, names: &[&OsDevice]) {
    let of = |kind| names.iter().filter(move |name| name.kind == kind).copied();
    let (rdma, nets): (Vec<&OsDevice>, Vec<&OsDevice>) = (of(OsKind::Rdma).collect(), of(OsKind::Network).collect());
    let device = at.and_then(|at| host.pci.get(at));
    let (class, vendor, numa) = device.map_or((0, 0, None), |device| (device.class, device.vendor, device.numa));
    let layer = |net: Option<&OsDevice>| match class >> 8 {
        0x02_08 => LinkLayer::Other,
        _ if vendor == ids::AMAZON && !rdma.is_empty() => LinkLayer::Other,
        _ if net.is_some_and(|net| net.long_address || net.name.starts_with("ib")) => LinkLayer::InfiniBand,
        0x02_07 | 0x0c_06 if net.is_none() => LinkLayer::InfiniBand,
        _ => LinkLayer::Ethernet,
    };
    for port in 0..rdma.len().max(nets.len()) {
        // One RDMA device may have several ports; else they go by pairs.
        let net = nets.get(port).copied();
        let ib = if rdma.len() == 1 { rdma.first() } else { rdma.get(port) }.copied();
        let Some(name) = ib.or(net) else { continue };
        host.nics.push(Nic {
            name: name.name.clone(),
            interface: net.filter(|_| ib.is_some()).map(|net| net.name.clone()),
            port: net.map_or(1, |net| {
                if net.port > 0 {
                    net.port
                } else if rdma.len() == 1 {
                    port as u32 + 1
                } else {
                    1
                }
            }),
            pci: at,
            numa: numa.or(name.numa),
            layer: layer(net),
            state: ib.map(|ib| ib.state.clone()).unwrap_or_default(),
            guid: ib.and_then(|ib| ib.guid.clone()),
            ..Nic::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    fn read(version: &str, inner: &str) -> Hardware {
        let text = format!(
            "<topology{version}><object type=\"Machine\" nodeset=\"0x1\"><object type=\"NUMANode\" os_index=\"0\"/>\
             <object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-05]\">{inner}</object></object></topology>"
        );
        xml::read(&xml::pieces(&text), "f").unwrap().1.remove(0)
    }

    #[test]
    fn names_of_one_gpu_are_one_gpu_numbered_by_nvidia_smi() {
        let gpu = |bus: u8, cuda: u8, nvml: u8| {
            format!(
                "<object type=\"PCIDev\" pci_busid=\"0000:{bus:02x}:00.0\" pci_type=\"0302 [10de:20b0] [0:0] a1\">\
                 <object type=\"OSDev\" name=\"cuda{cuda}\" osdev_type=\"5\"><info name=\"CUDAGlobalMemorySize\" value=\"2\"/></object>\
                 <object type=\"OSDev\" name=\"nvml{nvml}\" osdev_type=\"1\"><info name=\"GPUModel\" value=\"A100\"/>\
                 <info name=\"NVIDIAUUID\" value=\"GPU-{bus}\"/></object></object>"
            )
        };
        let console = "<object type=\"PCIDev\" pci_busid=\"0000:05:00.0\" pci_type=\"0300 [1a03:2000] [0:0] 41\">\
                       <object type=\"OSDev\" name=\"card0\" osdev_type=\"1\"/></object>";
        let host = read(" version=\"2.0\"", &format!("{}{}{console}", gpu(1, 0, 1), gpu(2, 1, 0)));
        let gpus: Vec<_> = host.gpus.iter().map(|gpu| (gpu.index, gpu.name.as_str(), gpu.uuid.as_deref(), gpu.memory)).collect();
        assert_eq!(gpus, [(0, "A100", Some("GPU-2"), 2048), (1, "A100", Some("GPU-1"), 2048)]);
        assert_eq!((host.gpus[0].numa, host.nics.len()), (Some(0), 0));
    }

    #[test]
    fn ports_have_two_names_and_types_changed_with_the_version() {
        let card = |net: u8, rdma: u8| {
            format!(
                "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0207 [15b3:1017] [0:0] 00\">\
                 <object type=\"OSDev\" name=\"hsi0\" osdev_type=\"{net}\"><info name=\"Address\" value=\"{}\"/></object>\
                 <object type=\"OSDev\" name=\"mlx5_0\" osdev_type=\"{rdma}\"><info name=\"Port1State\" value=\"4\"/></object></object>",
                "00:".repeat(20)
            )
        };
        for (version, text) in [("", card(2, 3)), (" version=\"2.0\"", card(2, 3)), (" version=\"3.0\"", card(16, 48))] {
            let host = read(version, &text);
            assert_eq!(host.nics.len(), 1, "{version}");
            let nic = &host.nics[0];
            assert_eq!((nic.name.as_str(), nic.interface.as_deref(), nic.state.as_str()), ("mlx5_0", Some("hsi0"), "active"));
            assert_eq!((nic.layer, nic.port), (LinkLayer::InfiniBand, 1));
        }
        let two = "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0c06 [15b3:6746] [0:0] b0\">\
                   <object type=\"OSDev\" name=\"eth2\" osdev_type=\"16\"/><object type=\"OSDev\" name=\"ib0\" osdev_type=\"16\"/>\
                   <object type=\"OSDev\" name=\"mlx4_0\" osdev_type=\"48\"/></object>";
        let host = read(" version=\"3.0\"", two);
        let ports: Vec<_> = host.nics.iter().map(|nic| (nic.port, nic.layer)).collect();
        assert_eq!(ports, [(1, LinkLayer::Ethernet), (2, LinkLayer::InfiniBand)]);
    }
}
