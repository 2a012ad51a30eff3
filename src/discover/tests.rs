use std::fs;
use std::process::Command;

use super::made::Tree;
use super::*;
use crate::topology::Lanes;
use crate::topology::hardware::{Acs, CacheKind, LinkLayer, NoteKind, PciDevice, PciKind};

fn recorded() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/hostname", "gpu\u{1b}[31m07\n");
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
    write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    write("sys/devices/system/cpu/cpu4/cache/index0/size", "48K\n");
    write("sys/devices/system/cpu/cpu4/cache/index3/size", "32768K\n");
    write("sys/fs/cgroup/memory.max", "409600\n");
    write("sys/fs/cgroup/memory.current", "102400\n");
    root
}

#[test]
fn a_recorded_machine_is_read() {
    let root = recorded();
    let machine = Machine::at(root.path());
    let placement = machine.placement(3, vec![4, 5]);
    assert_eq!(placement.host, "gpu[31m07");
    assert_eq!((placement.numa, placement.cache), (Some(1), 32 << 20));
    assert_eq!((placement.memory_available, placement.memory_total), (307_200, 409_600));
    assert_eq!(machine.numa_of(&[3, 4]), None);
}

#[test]
fn a_machine_that_says_nothing_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let placement = Machine::at(root.path()).placement(0, vec![]);
    assert_eq!((placement.host.as_str(), placement.numa, placement.memory_total), ("unknown", None, 0));
}

/// Two sockets, each with a switch that has two GPUs and a network device below.
fn two_sockets() -> Tree {
    let tree = Tree::new();
    tree.write("proc/sys/kernel/hostname", "gpu07");
    tree.write("proc/cpuinfo", "processor : 0\nmodel name : Xeon\nflags : fpu\n\nprocessor : 1\nmodel name : Xeon\n");
    tree.write("sys/class/dmi/id/sys_vendor", "Supermicro");
    tree.write("sys/class/dmi/id/product_name", "SYS-821GE");
    for socket in 0..2_usize {
        tree.cpu(socket, socket, 0, &socket.to_string());
        tree.numa(socket, &socket.to_string(), 512, if socket == 0 { "10 21" } else { "21 10" });
        let (bus, numa) = (0x10 + 0x40 * socket, i64::try_from(socket).unwrap());
        let port = tree.pci(&format!("pci0000:{bus:02x}/0000:{bus:02x}:01.0"), "0x060400", "0x8086", "0x352a", numa);
        tree.link(&port, "16.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16");
        let path = |rest: &str| format!("{}{rest}", port.trim_start_matches("sys/devices/"));
        let up = tree.pci(&path(&format!("/0000:{:02x}:00.0", bus + 1)), "0x060400", "0x1000", "0xc030", numa);
        tree.link(&up, "16.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16");
        for slot in 0..3 {
            let below = format!("/0000:{:02x}:00.0/0000:{:02x}:{slot:02x}.0", bus + 1, bus + 2);
            let down = tree.pci(&path(&below), "0x060400", "0x1000", "0xc030", numa);
            tree.link(&down, "32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16");
            let device = format!("{below}/0000:{:02x}:00.0", bus + 3 + slot);
            let (class, vendor, number) = if slot < 2 { ("0x030200", "0x10de", "0x2330") } else { ("0x020700", "0x15b3", "0x1021") };
            let device = tree.pci(&path(&device), class, vendor, number, numa);
            // The first GPU has lost half of its lanes.
            tree.link(&device, "32.0 GT/s PCIe", if bus == 0x10 && slot == 0 { "8" } else { "16" }, "32.0 GT/s PCIe", "16");
            if slot == 2 {
                tree.link_to(&format!("{device}/driver"), "sys/bus/pci/drivers/mlx5_core");
                tree.rdma(&device, &format!("mlx5_{socket}"), (1, "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand"));
            }
        }
    }
    tree
}

#[test]
fn a_box_with_two_sockets_is_seen_as_it_is() {
    let tree = two_sockets();
    let hardware = Machine::at(tree.root()).hardware();
    assert_eq!(
        (hardware.host.as_str(), hardware.product.as_str(), hardware.hypervisor.as_deref()),
        ("gpu07", "Supermicro SYS-821GE", None)
    );
    assert_eq!((hardware.packages.len(), hardware.numa.len(), hardware.gpus.len(), hardware.nics.len()), (2, 2, 4, 2));
    assert_eq!(hardware.pci.len(), 2 * (1 + 1 + 1 + 3 + 3));
    assert!(hardware.pci.iter().enumerate().all(|(index, device)| device.parent.is_none_or(|parent| parent < index)));
    let gpu = &hardware.gpus[0];
    let kinds: Vec<PciKind> = hardware.above(gpu.pci.unwrap()).map(|index| hardware.pci[index].kind).collect();
    assert_eq!(kinds, [PciKind::Endpoint, PciKind::SwitchDown, PciKind::SwitchUp, PciKind::RootPort, PciKind::HostBridge]);
    let link = hardware.pci[gpu.pci.unwrap()].link.unwrap();
    let gen5 = |width| Some(Lanes { speed: 32.0, width });
    assert_eq!((link.now, link.most, link.port), (gen5(8), gen5(16), gen5(16)));
    // The switch's link to the processor is told by the switch; ports tell none of their own.
    let switch = hardware.pci.iter().find(|device| device.kind == PciKind::SwitchUp).unwrap();
    assert_eq!(switch.link.unwrap().now, Some(Lanes { speed: 16.0, width: 16 }));
    assert!(hardware.pci.iter().all(|device| device.link.is_none() || matches!(device.kind, PciKind::Endpoint | PciKind::SwitchUp)));
    let nic = &hardware.nics[1];
    assert_eq!((nic.name.as_str(), nic.layer, nic.rate, nic.numa), ("mlx5_1", LinkLayer::InfiniBand, Some(50e9), Some(1)));
    assert_eq!(nic.driver.as_deref(), Some("mlx5_core"));
    assert_eq!(hardware.gpus.iter().map(|gpu| gpu.numa).collect::<Vec<_>>(), [Some(0), Some(0), Some(1), Some(1)]);
    assert!(hardware.notes.iter().all(|note| note.about == "ACS"), "{:?}", hardware.notes);
}

#[test]
fn ports_say_themselves_what_they_are_where_root_may_ask() {
    let tree = two_sockets();
    let switch = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0";
    let notes = |tree: &Tree| Machine::at(tree.root()).hardware().notes.into_iter().filter(|note| note.about == "ACS").collect::<Vec<_>>();
    assert!(
        matches!(notes(&tree).as_slice(), [note] if note.kind == NoteKind::Unseen && note.text.contains("8 port(s)")),
        "{:?}",
        notes(&tree)
    );
    // A switch that was put directly below the processor, as some hypervisors do.
    tree.write("sys/devices/pci0000:10/0000:10:01.0/config", config::made::config(5, 0x11, (5, 16), None));
    tree.write(&format!("{switch}/config"), config::made::config(6, 0x12, (5, 16), Some(0)));
    tree.write(&format!("{switch}/0000:12:00.0/config"), config::made::config(6, 0x13, (5, 16), Some(0x1d)));
    let hardware = Machine::at(tree.root()).hardware();
    let at = |address: &str| &hardware.pci[hardware.pci_at(address.parse().unwrap()).unwrap()];
    assert_eq!((at("0000:10:01.0").kind, at("0000:11:00.0").kind), (PciKind::SwitchUp, PciKind::SwitchDown));
    assert_eq!(at("0000:11:00.0").acs.map(Acs::redirects), Some(false));
    assert_eq!(at("0000:12:00.0").acs.map(Acs::redirects), Some(true));
    let notes = notes(&tree);
    assert!(notes.iter().any(|note| note.kind == NoteKind::Warning && note.text.contains("0000:12:00.0")), "{notes:?}");
}

#[test]
fn links_of_emulated_devices_are_not_believed() {
    let tree = Tree::new();
    let port = tree.pci("pci0000:00/0000:00:05.0", "0x060400", "0x1b36", "0x000c", -1);
    tree.link(&port, "2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1");
    let gpu = tree.pci("pci0000:00/0000:00:05.0/0000:01:00.0", "0x030200", "0x10de", "0x2330", -1);
    tree.link(&gpu, "2.5 GT/s PCIe", "0", "Unknown", "255");
    // Slots without a card and devices of the processor itself say the same, and it means nothing.
    let empty = tree.pci("pci0000:00/0000:00:06.0", "0x060400", "0x1b36", "0x000c", -1);
    tree.link(&empty, "2.5 GT/s PCIe", "0", "16.0 GT/s PCIe", "16");
    // A GPU that was put among those may have a link that is not shown.
    let among = tree.pci("pci0000:00/0000:00:07.0", "0x030200", "0x10de", "0x2330", -1);
    tree.link(&among, "Unknown", "0", "Unknown", "255");
    let own = tree.pci("pci0000:00/0000:00:1f.0", "0x088000", "0x8086", "0x1234", -1);
    tree.link(&own, "Unknown", "0", "Unknown", "255");
    let hardware = Machine::at(tree.root()).hardware();
    let link = hardware.pci[hardware.gpus[1].pci.unwrap()].link.unwrap();
    assert_eq!((link.now, link.most, link.port), (None, None, Some(Lanes { speed: 2.5, width: 1 })));
    let told: Vec<_> = hardware.notes.iter().filter(|note| note.about.contains(':')).map(|note| (note.kind, note.about.as_str())).collect();
    assert_eq!(told, [(NoteKind::Lie, "0000:01:00.0"), (NoteKind::Unseen, "0000:00:07.0")]);
}

#[test]
fn a_device_0_does_not_hide_behind_its_host_bridge() {
    let tree = Tree::new();
    let device = tree.pci("pci0001:00/0001:00:00.0", "0x020000", "0x15b3", "0x101e", 0);
    tree.net(&device, "eth1", "up", "100000");
    let hardware = Machine::at(tree.root()).hardware();
    let pci = hardware.nics[0].pci.unwrap();
    assert_eq!((hardware.pci[pci].kind, hardware.pci[pci].vendor), (PciKind::Endpoint, 0x15b3));
    assert_eq!(hardware.pci[pci].parent.map(|parent| hardware.pci[parent].kind), Some(PciKind::HostBridge));
}

#[test]
fn a_tree_without_links_tells_the_same() {
    let tree = two_sockets();
    let mut with = Machine::at(tree.root()).hardware();
    fs::remove_dir_all(tree.path("sys/bus")).unwrap();
    let without = Machine::at(tree.root()).hardware();
    // The link `driver` leads below the folder that is gone; its name is told all the same.
    with.source.clone_from(&without.source);
    assert_eq!(with, without);
}

#[test]
fn devices_side_by_side_are_nested_by_their_bus_numbers() {
    let tree = Tree::new();
    for (name, class, secondary) in [
        ("0000:10:01.0", "0x060400", Some(0x11)),
        ("0000:11:00.0", "0x060400", Some(0x12)),
        ("0000:12:00.0", "0x030200", None),
        ("0000:20:00.0", "0x020000", None),
    ] {
        tree.write(&format!("sys/bus/pci/devices/{name}/class"), class);
        tree.write(&format!("sys/bus/pci/devices/{name}/vendor"), "0x10de");
        tree.write(&format!("sys/bus/pci/devices/{name}/device"), "0x2330");
        if let Some(secondary) = secondary {
            tree.write(&format!("sys/bus/pci/devices/{name}/config"), &config::made::config(0, secondary, (4, 16), None)[..64]);
        }
    }
    let hardware = Machine::at(tree.root()).hardware();
    let told: Vec<(String, Option<usize>)> = hardware.pci.iter().map(|device| (device.address.to_string(), device.parent)).collect();
    let expected = [
        ("0000:10:00.0", None),
        ("0000:10:01.0", Some(0)),
        ("0000:11:00.0", Some(1)),
        ("0000:12:00.0", Some(2)),
        ("0000:20:00.0", None),
        ("0000:20:00.0", Some(4)),
    ];
    assert_eq!(told, expected.map(|(address, parent)| (address.to_owned(), parent)));
    // Bridges that claim each other's bus.
    tree.write("sys/bus/pci/devices/0000:10:01.0/secondary_bus_number", "17");
    tree.write("sys/bus/pci/devices/0000:11:00.0/secondary_bus_number", "16");
    assert_eq!(Machine::at(tree.root()).hardware().pci.iter().filter(|device| device.kind != PciKind::HostBridge).count(), 4);
}

#[test]
fn trees_that_make_no_sense_are_read_to_their_end() {
    let tree = two_sockets();
    let outside = Tree::new();
    let stranger = outside.pci("pci0000:00/0000:00:09.0", "0x030200", "0x10de", "0x2330", 0);
    std::os::unix::fs::symlink(outside.path(&stranger), tree.path("sys/bus/pci/devices/0000:00:09.0")).unwrap();
    std::os::unix::fs::symlink("0000:00:0a.0", tree.path("sys/bus/pci/devices/0000:00:0a.0")).unwrap();
    std::os::unix::fs::symlink("..", tree.path("sys/devices/pci0000:10/loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", tree.path("sys/devices/pci0000:10/0000:10:01.0/config")).unwrap();
    tree.pci("pci0000:77/0000:77:00.0/0000:77:00.0", "0x060400", "0x1", "0x1", 7);
    tree.write("sys/devices/pci0000:10/0000:10:01.0/class", [0xff; 64]);
    tree.write("sys/devices/pci0000:10/0000:10:01.0/numa_node", "18446744073709551615");
    tree.write("sys/devices/system/cpu/cpu99999999999999999999/topology/core_id", "0");
    tree.write("sys/devices/system/cpu/cpu7/cache/index0/size", "99999999999999999T");
    tree.write("sys/devices/system/cpu/cpu7/cache/index0/level", "-3");
    tree.write("sys/devices/system/node/node1/distance", "10 99999999999999 x");
    tree.write("sys/class/net/eth0", "a file");
    tree.write("sys/class/infiniband/x\u{1b}[31m/ports/9999999999/state", "");
    tree.write("proc/cpuinfo", "model name\nprocessor : x\n:::\n");
    let hardware = Machine::at(tree.root()).hardware();
    assert_eq!(hardware.gpus.len(), 4, "the stranger's GPU is not this tree's");
    assert!(hardware.notes.iter().any(|note| note.about == "PCI" && note.text.starts_with("2 device(s)")), "{:?}", hardware.notes);
    assert!(hardware.pci.iter().enumerate().all(|(index, device)| device.parent.is_none_or(|parent| parent < index)));
    let nothing = Machine::at("/no/such/folder").hardware();
    assert_eq!((nothing.host.as_str(), nothing.pci.len(), nothing.notes.len()), ("unknown", 0, 0));
}

#[test]
fn a_module_with_processor_and_gpu_shows_the_gpus_memory() {
    let tree = Tree::new();
    tree.write("proc/cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd4f\n");
    tree.write("sys/firmware/devicetree/base/model", "NVIDIA GH200\0");
    tree.cpu(0, 0, 0, "0");
    tree.numa(0, "0", 480, "10 80");
    tree.numa(1, "", 96, "80 10");
    let gpu = tree.pci("pci0009:00/0009:00:00.0/0009:01:00.0", "0x030200", "0x10de", "0x2342", 0);
    tree.link(&gpu, "32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16");
    let hardware = Machine::at(tree.root()).hardware();
    assert_eq!((hardware.product.as_str(), hardware.packages[0].model.as_str()), ("NVIDIA GH200", "Neoverse-V2"));
    assert_eq!((hardware.gpus.len(), hardware.gpus[0].numa, hardware.hypervisor.as_deref()), (1, Some(0), None));
    assert!(hardware.notes.iter().any(|note| note.about == "NUMA node 1"), "{:?}", hardware.notes);
}

/// What another program says of this machine; `None` and a loud word where it is not installed.
fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    let Ok(out) = out else {
        eprintln!("\nSKIPPED: comparing this machine with {program}, which is not installed\n");
        return None;
    };
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn this_machine_is_seen_as_lscpu_sees_it() {
    let Some(told) = asked("lscpu", &["-B"]) else { return };
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let number = |name: &str| field(name).and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    let hardware = Machine::default().hardware();
    assert_eq!(Some(hardware.packages.len() as u64), number("Socket(s)"), "{told}");
    let cores: usize = hardware.packages.iter().map(|package| package.cores).sum();
    assert_eq!(Some(cores as u64), number("Core(s) per socket").zip(number("Socket(s)")).map(|(a, b)| a * b), "{told}");
    let cpus: usize = hardware.packages.iter().map(|package| package.cpus.len()).sum();
    assert_eq!(Some(cpus as u64), number("CPU(s)"), "{told}");
    assert_eq!(Some(hardware.packages[0].model.as_str()), field("Model name"));
    assert_eq!(Some(hardware.numa.len() as u64), number("NUMA node(s)"), "{told}");
    assert_eq!(hardware.hypervisor.is_some(), field("Hypervisor vendor").is_some(), "{told}");
    for (name, level, kind) in [
        ("L1d cache", 1, CacheKind::Data),
        ("L1i cache", 1, CacheKind::Instruction),
        ("L2 cache", 2, CacheKind::Unified),
        ("L3 cache", 3, CacheKind::Unified),
    ] {
        let bytes: u64 = hardware.caches.iter().filter(|cache| (cache.level, cache.kind) == (level, kind)).map(|cache| cache.bytes).sum();
        assert_eq!(bytes, number(name).unwrap_or(0), "{name}: {told}");
    }
}

#[test]
fn this_machine_has_the_pci_devices_that_lspci_lists() {
    let Some(told) = asked("lspci", &["-D", "-n"]) else { return };
    // 0000:00:03.0 0200: 1af4:1041 (rev 01)
    let line = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let mut listed: Vec<String> = told.lines().map(line).collect();
    listed.sort();
    let hardware = Machine::default().hardware();
    // The root of a tree is no device of its own.
    let devices = hardware.pci.iter().filter(|device| device.vendor != 0);
    let told = |device: &PciDevice| format!("{} {:04x}: {:04x}:{:04x}", device.address, device.class >> 8, device.vendor, device.device);
    let mut seen: Vec<String> = devices.map(told).collect();
    seen.sort();
    assert_eq!(seen, listed);
}

#[test]
fn this_machine_is_seen_as_lstopo_sees_it() {
    let Some(told) = asked("lstopo-no-graphics", &["--of", "xml", "--whole-io"]) else { return };
    let hardware = Machine::default().hardware();
    let count = |what: &str| told.matches(what).count();
    assert_eq!(hardware.packages.len(), count("type=\"Package\""));
    assert_eq!(hardware.numa.len(), count("type=\"NUMANode\""));
    assert_eq!(hardware.packages.iter().map(|package| package.cores).sum::<usize>(), count("type=\"Core\""));
    let caches =
        ["L1Cache", "L1iCache", "L2Cache", "L3Cache", "L4Cache"].map(|kind| count(&format!("type=\"{kind}\""))).iter().sum::<usize>();
    assert_eq!(hardware.caches.len(), caches);
    let devices: Vec<String> = told.split("pci_busid=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect();
    for device in hardware.pci.iter().filter(|device| device.kind != PciKind::HostBridge) {
        assert!(devices.contains(&device.address.to_string()), "{} is not in {devices:?}", device.address);
    }
    let nets = told.split("osdev_type=\"2\"").count() - 1;
    let real = hardware.nics.iter().filter(|nic| nic.pci.is_some()).count();
    assert!(real <= nets, "{real} of {nets}");
}

/// hwloc's recorder takes what this reads, too. It takes half a minute, so only with the sweep of the corpus.
#[test]
fn a_tree_recorded_here_tells_what_this_machine_tells() {
    if std::env::var_os("TOPOSCOPE_CORPUS").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    if asked("hwloc-gather-topology", &["--io", record.to_str().unwrap()]).is_none() {
        return;
    }
    let unpacked = Command::new("tar").arg("-xjf").arg(record.with_extension("tar.bz2")).arg("-C").arg(folder.path()).status().unwrap();
    assert!(unpacked.success());
    let (there, here) = (Machine::at(&record).hardware(), Machine::default().hardware());
    // Names come from this machine's pci.ids, which is no part of a record.
    let unnamed = |hardware: &Hardware| -> Vec<PciDevice> {
        hardware.pci.iter().map(|device| PciDevice { name: String::new(), ..device.clone() }).collect()
    };
    assert_eq!((&there.host, &there.packages, &there.caches, unnamed(&there)), (&here.host, &here.packages, &here.caches, unnamed(&here)));
    let nodes =
        |hardware: &Hardware| hardware.numa.iter().map(|node| (node.id, node.cpus.clone(), node.distances.clone())).collect::<Vec<_>>();
    assert_eq!(nodes(&there), nodes(&here));
    let real = |hardware: &Hardware| {
        hardware.nics.iter().filter(|nic| nic.pci.is_some()).map(|nic| (nic.name.clone(), nic.pci)).collect::<Vec<_>>()
    };
    assert_eq!(real(&there), real(&here));
}

/// Recorded trees of the corpus: devices and processors counted with `ls`, and by `lscpu --sysroot` and lstopo.
#[test]
fn recorded_trees_of_the_corpus_are_read() {
    let Some(corpus) = std::env::var_os("TOPOSCOPE_CORPUS") else { return };
    let folder = Path::new(&corpus).join("sysfs-tree");
    let mut read = 0;
    for archive in fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()) {
        let unpacked = tempfile::tempdir().unwrap();
        let done = Command::new("tar").arg("-xjf").arg(&archive).arg("-C").arg(unpacked.path()).status().unwrap();
        assert!(done.success(), "{}", archive.display());
        let tree = fs::read_dir(unpacked.path()).unwrap().flatten().next().unwrap().path();
        let hardware = Machine::at(&tree).hardware();
        let counts = (
            hardware.packages.len(),
            hardware.packages.iter().map(|package| package.cores).sum::<usize>(),
            hardware.packages.iter().map(|package| package.cpus.len()).sum::<usize>(),
            hardware.numa.len(),
            hardware.pci.len(),
            hardware.gpus.len(),
        );
        let expected = match tree.file_name().unwrap().to_str().unwrap() {
            "nvidia-dgx-gb10" => (1, 20, 20, 1, 0, 0),
            // Six GPUs whose memories are nodes; 4 of 22 cores of each POWER9 were recorded. Two GPUs are on bus 0, below host
            // bridges of their own.
            "nvidiagpunumanodes" => (2, 8, 32, 8, 8, 6),
            other => {
                eprintln!("{other}: {counts:?}");
                continue;
            }
        };
        assert_eq!(counts, expected, "{}", archive.display());
        let near: Vec<_> = hardware.gpus.iter().map(|gpu| gpu.numa).collect();
        assert!(near.is_empty() || near == [0, 0, 0, 8, 8, 8].map(Some), "{near:?}");
        read += 1;
    }
    assert!(read >= 2, "{}", folder.display());
}
