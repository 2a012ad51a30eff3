use super::*;
use crate::topology::hardware::{Cache, Gpu, NumaNode, Package, PciDevice};
use crate::topology::{Lanes, PciAddress};

fn device(address: &str, parent: Option<usize>, kind: PciKind, class: u32) -> PciDevice {
    let address: PciAddress = address.parse().unwrap();
    PciDevice { address, parent, kind, class, name: format!("device {:x}", address.bus), ..PciDevice::default() }
}

/// A GPU on half of its lanes, a network device, and a processor's many small devices.
fn hardware() -> Hardware {
    let mut pci = vec![
        device("0000:10:00.0", None, PciKind::HostBridge, 0),
        device("0000:10:01.0", Some(0), PciKind::RootPort, 0x06_04_00),
        device("0000:11:00.0", Some(1), PciKind::Endpoint, 0x03_02_00),
        device("0000:10:02.0", Some(0), PciKind::Endpoint, 0x02_00_00),
    ];
    let gen5 = |width| Some(Lanes { speed: 32.0, width });
    pci[2].link = Some(PcieLink { now: gen5(8), most: gen5(16), port: gen5(16) });
    pci.extend((0..20).map(|at| device(&format!("0000:10:{:02x}.0", 8 + at), Some(0), PciKind::Endpoint, 0x08_80_00)));
    let mut hardware = Hardware {
        host: "gpu07".to_owned(),
        product: "Acme Box".to_owned(),
        iommu: Some("translated".to_owned()),
        packages: vec![Package { id: 0, model: "Xeon".to_owned(), cores: 1, cpus: vec![0, 1] }],
        caches: (0..2).map(|cpu| Cache { level: 1, kind: CacheKind::Data, bytes: 48 << 10, cpus: vec![cpu] }).collect(),
        numa: vec![NumaNode { id: 0, cpus: vec![0, 1], memory: 64 << 30, distances: vec![10] }],
        pci,
        gpus: vec![Gpu { name: "H100".to_owned(), pci: Some(2), ..Gpu::default() }],
        nics: vec![
            Nic {
                name: "mlx5_0".to_owned(),
                interface: Some("ib0".to_owned()),
                port: 1,
                pci: Some(3),
                state: "active".to_owned(),
                rate: Some(50e9),
                ..Nic::default()
            },
            Nic { name: "e".to_owned(), port: 1, state: "up".to_owned(), rate: Some(1.25e9), ..Nic::default() },
        ],
        ..Hardware::default()
    };
    hardware.note(NoteKind::Unseen, "ACS", "one two three four five six seven eight nine ten eleven twelve");
    hardware
}

fn drawn(look: Look) -> String {
    text(&Topology { hardware: vec![hardware()], ..Topology::default() }, false, look)
}

#[test]
fn a_host_is_told_as_a_tree() {
    let expected = "\
gpu07  Acme Box · IOMMU translated
  package 0    Xeon, 1 core with 2 threads: 0-1
  caches       L1d 2 × 48 KiB
  NUMA 0       processors 0-1, 64 GiB, distances 10
  PCI
  └─ 0000:10  host bridge
     ├─ 0000:10:01.0  root port, device 10
     │  └─ 0000:11:00.0  Gen5 x8 of Gen5 x16  GPU 0 H100
     ├─ 0000:10:02.0  mlx5_0 (ib0)  Ethernet, active, 400 Gbit/s  device 10
     └─ 20 other devices
  e  Ethernet, up, 10 Gbit/s
  unseen   ACS: one two three four five six seven eight nine ten eleven twelve
";
    assert_eq!(drawn(Look::default()), expected);
}

#[test]
fn a_terminal_gets_lines_that_fit_it_and_quiet_ones_dim() {
    let text = drawn(Look { width: Some(50), dim: true });
    for line in text.lines() {
        let shown = line.replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert!(shown.chars().count() <= 50, "{line:?}");
    }
    assert!(text.contains("\x1b[2m     └─ 20 other devices\x1b[0m\n"), "{text}");
    assert!(text.contains("  unseen   ACS: one two three four five six seven\n           eight nine ten eleven twelve\n"), "{text}");
    assert!(text.lines().any(|line| line.contains("├─ 0000:10:02.0  mlx5_0 (ib0)  Ether") && line.ends_with('…')), "{text}");
}

#[test]
fn ranks_stand_before_their_hosts() {
    let topology = Topology {
        ranks: vec![Placement { host: "gpu07".to_owned(), cores: vec![0], ..Placement::default() }],
        hardware: vec![hardware()],
    };
    let told = text(&topology, false, Look::default());
    assert!(told.starts_with("rank  host") && told.contains("\n\ngpu07  Acme Box"), "{told}");
    assert_eq!(serde_json::from_str::<Topology>(&text(&topology, true, Look::default())).unwrap(), topology);
}

#[test]
fn a_tree_that_goes_in_circles_is_drawn_to_its_end() {
    let mut hardware = hardware();
    hardware.pci[0].parent = Some(3);
    hardware.pci[1].parent = Some(1);
    hardware.pci[2].parent = Some(99);
    hardware.gpus[0].pci = Some(77);
    let told = text(&Topology { hardware: vec![hardware], ..Topology::default() }, false, Look::default());
    assert!(told.contains("0000:11:00.0") && told.contains("0000:10:02.0"), "{told}");
}
