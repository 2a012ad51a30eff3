//! Classes, routes and expected rates of a machine made by hand: two sockets, on the first a switch with two GPUs and a NIC and a
//! cascaded switch with a third GPU, a fourth GPU on a root port of its own; on the second one GPU and a slow NIC.

use super::hardware::PciKind::{Endpoint, HostBridge, RootPort, SwitchDown, SwitchUp};
use super::hardware::{Device, Gpu, GpuLink, GpuLinkKind, LinkEnd, Nic, NumaNode, PciDevice, PciKind, Told, ToldWhat};
use super::*;

const FULL: Lanes = Lanes { speed: 16.0, width: 16 };

fn machine(host: &str) -> Hardware {
    let mut hardware = Hardware { host: host.to_owned(), ..Hardware::default() };
    let mut add = |bus: u8, kind: PciKind, parent: Option<usize>, numa: Option<usize>| {
        let link =
            (!matches!(kind, HostBridge | RootPort | SwitchDown)).then_some(PcieLink { now: Some(FULL), most: Some(FULL), port: None });
        let address = PciAddress { bus, ..PciAddress::default() };
        hardware.pci.push(PciDevice { address, parent, kind, link, numa, ..PciDevice::default() });
        hardware.pci.len() - 1
    };
    let bridge = add(0, HostBridge, None, Some(0));
    let root = add(1, RootPort, Some(bridge), None);
    let switch = add(2, SwitchUp, Some(root), None);
    let mut below = |switch: usize, bus: u8, kind: PciKind| {
        let port = add(bus, SwitchDown, Some(switch), None);
        add(bus + 1, kind, Some(port), None)
    };
    let (gpu0, gpu1, nic0) = (below(switch, 3, Endpoint), below(switch, 5, Endpoint), below(switch, 7, Endpoint));
    let second = below(switch, 9, SwitchUp);
    let gpu2 = below(second, 11, Endpoint);
    let root = add(13, RootPort, Some(bridge), None);
    let gpu3 = add(14, Endpoint, Some(root), None);
    let other = add(0x80, HostBridge, None, Some(1));
    let root = add(0x81, RootPort, Some(other), None);
    let gpu4 = add(0x82, Endpoint, Some(root), None);
    let root = add(0x83, RootPort, Some(other), None);
    let nic1 = add(0x84, Endpoint, Some(root), None);
    hardware.gpus = [gpu0, gpu1, gpu2, gpu3, gpu4]
        .into_iter()
        .enumerate()
        .map(|(index, pci)| Gpu { index, pci: Some(pci), ..Gpu::default() })
        .collect();
    let nic = |name: &str, pci, gbit: f64| Nic {
        name: name.to_owned(),
        pci: Some(pci),
        layer: hardware::LinkLayer::InfiniBand,
        state: "active".to_owned(),
        rate: Some(gbit * 1.25e8),
        ..Nic::default()
    };
    hardware.nics = vec![nic("mlx5_0", nic0, 200.0), nic("mlx5_1", nic1, 100.0)];
    hardware.numa = (0..2).map(|id| NumaNode { id, ..NumaNode::default() }).collect();
    hardware
}

fn gpu(a: usize, b: usize) -> (Device, Device) {
    (Device::Gpu(a), Device::Gpu(b))
}

fn labelled(hardware: &Hardware, pair: (Device, Device)) -> String {
    label(hardware, pair.0, pair.1).map_or("?".to_owned(), |label| label.to_string())
}

#[test]
fn classes_follow_the_tree() {
    let hardware = machine("a");
    for (pair, expected) in [
        (gpu(0, 0), "X"),
        (gpu(0, 1), "PIX"),
        (gpu(0, 2), "PXB"),
        (gpu(2, 1), "PXB"),
        (gpu(0, 3), "PHB"),
        (gpu(3, 4), "SYS"),
        ((Device::Gpu(1), Device::Nic(0)), "PIX"),
        ((Device::Gpu(1), Device::Nic(1)), "SYS"),
        ((Device::Gpu(4), Device::Nic(1)), "PHB"),
        ((Device::Gpu(0), Device::Memory(0)), "PHB"),
        ((Device::Memory(0), Device::Memory(1)), "SYS"),
    ] {
        assert_eq!(labelled(&hardware, pair), expected, "{pair:?}");
        assert_eq!(labelled(&hardware, (pair.1, pair.0)), expected, "{pair:?} turned round");
    }
    // Two host bridges of one NUMA node.
    let mut node = hardware.clone();
    for device in &mut node.pci {
        device.numa = device.numa.map(|_| 0);
    }
    assert_eq!(labelled(&node, gpu(3, 4)), "NODE");
}

#[test]
fn what_no_tree_says_is_as_told_and_links_go_first() {
    let mut hardware = machine("a");
    for gpu in &mut hardware.gpus {
        gpu.pci = None;
    }
    assert_eq!(labelled(&hardware, gpu(0, 1)), "?");
    let told = |what| Told { from: Device::Gpu(0), to: Device::Gpu(1), what };
    hardware.told.push(told(ToldWhat::Peer { access: "read".to_owned(), status: "OK".to_owned() }));
    hardware.told.push(told(ToldWhat::Label(PathLabel::Pxb)));
    assert_eq!(labelled(&hardware, gpu(0, 1)), "PXB");
    let link = |gpu, end, active| GpuLink { gpu, end, active, rate: Some(25e9), ..GpuLink::default() };
    hardware.gpu_links = vec![link(0, LinkEnd::Gpu(1), true), link(0, LinkEnd::Gpu(1), true), link(1, LinkEnd::Gpu(0), true)];
    assert_eq!(labelled(&hardware, gpu(1, 0)), "NV2", "one end may say less than the other");
    hardware.gpu_links = vec![
        link(0, LinkEnd::Switch, true),
        link(0, LinkEnd::Switch, true),
        link(1, LinkEnd::Switch, true),
        link(1, LinkEnd::Switch, false),
    ];
    assert_eq!(labelled(&hardware, gpu(0, 1)), "NV1");
}

fn shown(route: &Route) -> Vec<(&str, &str)> {
    route.hops.iter().map(|hop| (hop.name.as_str(), hop.state.as_str())).collect()
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value / expected - 1.0).abs() < 1e-9)
}

#[test]
fn a_way_has_a_hop_for_each_link_and_gives_what_its_slowest_does() {
    let mut hardware = machine("a");
    let table = Efficiency::default();
    let (from, to) = gpu(0, 2);
    let route = way(&hardware, from, to, &table);
    assert_eq!(
        shown(&route),
        [
            ("GPU 0 → switch 0000:03:00.0", "Gen4 x16"),
            ("switch 0000:09:00.0 → switch 0000:0a:00.0", "Gen4 x16"),
            ("switch 0000:0b:00.0 → GPU 2", "Gen4 x16"),
        ]
    );
    assert!(close(route.expected, FULL.rate() * table.pcie));
    // A card that is trained narrower is told, and still expected to give what it could.
    let card = hardware.gpus[2].pci.unwrap();
    hardware.pci[card].link = Some(PcieLink { now: Some(Lanes { width: 8, ..FULL }), most: Some(FULL), port: None });
    let narrow = way(&hardware, from, to, &table);
    assert_eq!((narrow.hops[2].state.as_str(), narrow.hops[2].flag), ("Gen4 x8 of x16", Some(Flag::Narrow)));
    assert!(close(narrow.hops[2].now, FULL.rate() / 2.0) && close(narrow.expected, FULL.rate() * table.pcie));
    // Across sockets half of it.
    let (from, to) = gpu(3, 4);
    let route = way(&hardware, from, to, &table);
    assert_eq!(shown(&route)[1], ("NUMA 0 → NUMA 1", ""));
    assert!(close(route.expected, FULL.rate() * table.pcie / 2.0));
}

#[test]
fn links_to_switches_that_are_down_are_missed() {
    let mut hardware = machine("a");
    let link = |gpu, active| GpuLink {
        kind: GpuLinkKind::Nvlink,
        gpu,
        end: if active { LinkEnd::Switch } else { LinkEnd::Unknown },
        active,
        rate: Some(25e9),
        ..GpuLink::default()
    };
    hardware.gpu_links = (0..12).map(|at| link(0, at > 1)).chain((0..12).map(|_| link(1, true))).collect();
    let (from, to) = gpu(1, 0);
    let route = way(&hardware, from, to, &Efficiency::default());
    assert_eq!(route.label, Some(PathLabel::Nvl(10)));
    assert_eq!(shown(&route), [("GPU 1 → NVSwitch", "NVLink ×12"), ("NVSwitch → GPU 0", "NVLink ×10, 2 down")]);
    assert_eq!((route.hops[0].flag, route.hops[1].flag), (None, Some(Flag::Narrow)));
    assert!(close(route.expected, 300e9 * 0.88) && close(route.hops[1].now, 250e9));
}

fn job() -> Topology {
    let rank = |rank, host: &str, gpu| Placement { rank, host: host.to_owned(), gpu, numa: Some(1), ..Placement::default() };
    let ranks = vec![
        rank(0, "a", Some(0)),
        rank(1, "a", Some(4)),
        rank(2, "b", Some(1)),
        rank(3, "c", Some(0)),
        rank(4, "b", None),
        rank(5, "b", None),
    ];
    Topology { ranks, hardware: vec![machine("a"), machine("b")] }
}

#[test]
fn ranks_reach_each_other_by_their_nearest_ports() {
    let topology = job();
    let table = Efficiency::default();
    let router = Router::new(&topology, &table);
    assert_eq!(router.label(0, 2), Some(PathLabel::Net));
    // Of two that are up, the one that is not twice as slow and near.
    assert_eq!(nearest_port(&topology.hardware[0], Device::Gpu(0)), Some(0));
    assert_eq!(nearest_port(&topology.hardware[0], Device::Gpu(4)), Some(1));
    assert!(close(router.expected(0, 2), 25e9 * table.infiniband));
    assert!(close(router.expected(1, 2), 12.5e9 * table.infiniband), "the slower port binds");
    let route = router.route(&topology, 1, 2);
    assert_eq!(
        shown(&route).into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        [
            "GPU 4 → root port 0000:81:00.0",
            "root port 0000:83:00.0 → mlx5_1",
            "mlx5_1 → network",
            "a → b",
            "network → mlx5_0",
            "mlx5_0 → switch 0000:07:00.0",
            "switch 0000:05:00.0 → GPU 1",
        ]
    );
    assert_eq!(route.expected, router.expected(1, 2));
    // A copy between a GPU and its own node's memory passes what lies above the GPU, and no other node.
    assert!(close(router.host_link(0), FULL.rate() * table.pcie) && close(router.host_link(1), FULL.rate() * table.pcie));
    let ways = [true, false].map(|into_gpu| router.host_route(&topology, 0, into_gpu));
    assert_eq!(shown(&ways[0]).last().map(|(name, _)| *name), Some("switch 0000:03:00.0 → GPU 0"));
    assert_eq!(shown(&ways[1]).first().map(|(name, _)| *name), Some("GPU 0 → switch 0000:03:00.0"));
    assert!(ways.iter().all(|route| route.hops.iter().all(|hop| hop.kind == HopKind::Pcie)));
    assert_eq!((router.host_link(3), router.host_link(4)), (None, None), "a host that told nothing, a rank without a GPU");
    let mut coherent = topology.clone();
    coherent.hardware[0].gpu_links = vec![GpuLink { kind: GpuLinkKind::C2c, end: LinkEnd::Cpu(0), active: true, ..GpuLink::default() }];
    assert_eq!(Router::new(&coherent, &table).host_link(0), None, "its PCIe link does not tell");
    // A host that told nothing, ranks on one memory, a rank itself.
    assert_eq!((router.label(0, 3), router.expected(0, 3)), (Some(PathLabel::Net), None));
    assert_eq!((router.label(4, 5), router.expected(4, 5)), (Some(PathLabel::Node), None));
    assert_eq!((router.label(4, 4), router.label(4, 9)), (Some(PathLabel::Local), None));
    // A port that is down is no way out.
    let mut cut = topology.clone();
    cut.hardware[1].nics[0].state = "down".to_owned();
    assert_eq!(nearest_port(&cut.hardware[1], Device::Gpu(0)), Some(1));
}

fn on(hosts: &[&str]) -> Topology {
    let ranks = hosts
        .iter()
        .enumerate()
        .map(|(rank, host)| Placement {
            rank,
            host: (*host).to_owned(),
            pid: 1,
            cores: vec![0],
            numa: None,
            memory_available: 1,
            memory_total: 1,
            ..Placement::default()
        })
        .collect();
    Topology::of(ranks)
}

#[test]
fn paths_follow_hosts() {
    let topology = on(&["a", "b", "a"]);
    assert_eq!(topology.hosts(), ["a", "b"]);
    assert_eq!(topology.node_of(), [0, 1, 0]);
    assert_eq!(topology.path(1, 1), PathClass::Local);
    assert_eq!(topology.path(0, 2), PathClass::IntraNode);
    assert_eq!(topology.path(0, 1), PathClass::InterNode);
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        assert_eq!(path_of(&topology.node_of(), from, to), topology.path(from, to), "{from} {to}");
    }
}
