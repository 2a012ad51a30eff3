//! GPUs through nvml-wrapper and a stand-in for NVML: every described box, and every error of every call. No GPU is needed.

pub mod boxes;
mod errors;

use std::path::Path;

use boxes::{discover, file, seen, stand_in};
use toposcope::topology::hardware::{Device, GpuLinkKind, LinkEnd, NoteKind, ToldWhat};
use toposcope::topology::{Efficiency, Hardware, Lanes, PathLabel, label, way};

/// Labels of all pairs of GPUs, rows as nvidia-smi prints them.
fn labels(hardware: &Hardware) -> Vec<String> {
    let gpus = 0..hardware.gpus.len();
    let cell = |from, to| label(hardware, Device::Gpu(from), Device::Gpu(to)).map_or("?".to_owned(), |label| label.to_string());
    gpus.clone().map(|from| gpus.clone().map(|to| cell(from, to)).collect::<Vec<_>>().join(" ")).collect()
}

/// Expected rate between two devices, GB/s with one decimal.
fn expected(hardware: &Hardware, from: usize, to: usize) -> String {
    let way = way(hardware, Device::Gpu(from), Device::Gpu(to), &Efficiency::default());
    way.expected.map_or("?".to_owned(), |rate| format!("{:.1}", rate / 1e9))
}

/// How many active links each GPU has to each kind of end.
fn ends(hardware: &Hardware) -> Vec<Vec<(LinkEnd, usize)>> {
    let of = |gpu: usize| {
        let mut ends: Vec<(LinkEnd, usize)> = Vec::new();
        for link in hardware.gpu_links.iter().filter(|link| link.gpu == gpu && link.active) {
            match ends.iter_mut().find(|(end, _)| *end == link.end) {
                Some((_, count)) => *count += 1,
                None => ends.push((link.end, 1)),
            }
        }
        ends
    };
    (0..hardware.gpus.len()).map(of).collect()
}

/// Statuses that the driver told of a pair, in the order of read, write, nvlink, atomics, prop.
fn peers(hardware: &Hardware, from: usize, to: usize) -> String {
    let of_pair = |told: &&toposcope::topology::hardware::Told| (told.from, told.to) == (Device::Gpu(from), Device::Gpu(to));
    let statuses = hardware.told.iter().filter(of_pair).filter_map(|told| match &told.what {
        ToldWhat::Peer { status, .. } => Some(status.as_str()),
        ToldWhat::Label(_) => None,
    });
    statuses.collect::<Vec<_>>().join(" ")
}

/// The label that the driver told of a pair.
fn told(hardware: &Hardware, from: usize, to: usize) -> Option<PathLabel> {
    let of_pair = |told: &&toposcope::topology::hardware::Told| (told.from, told.to) == (Device::Gpu(from), Device::Gpu(to));
    hardware.told.iter().filter(of_pair).find_map(|told| match told.what {
        ToldWhat::Label(label) => Some(label),
        ToldWhat::Peer { .. } => None,
    })
}

fn notes(hardware: &Hardware, kind: NoteKind) -> Vec<(&str, &str)> {
    hardware.notes.iter().filter(|note| note.kind == kind).map(|note| (note.about.as_str(), note.text.as_str())).collect()
}

#[test]
fn a_box_with_switches_has_all_its_links_and_one_label() {
    let hardware = seen(&file("nvswitch"), true);
    assert_eq!(hardware.gpus.len(), 8);
    for (index, gpu) in hardware.gpus.iter().enumerate() {
        assert_eq!((gpu.index, gpu.name.as_str(), gpu.memory), (index, "NVIDIA H100 80GB HBM3", 80 << 30));
        assert_eq!(gpu.uuid.as_deref(), Some(format!("GPU-{index:08x}-0000-0000-0000-000000000000").as_str()));
        assert_eq!((gpu.numa, gpu.cpus.len(), gpu.cpus[0]), (Some(index / 4), 56, index / 4 * 56));
        assert_eq!((gpu.clock, gpu.throttled.len(), gpu.mig.len()), (Some((345, 1980)), 0, 0));
    }
    assert_eq!(hardware.nics.len(), 8);
    assert_eq!(ends(&hardware), vec![vec![(LinkEnd::Switch, 18)]; 8]);
    assert!(hardware.gpu_links.iter().all(|link| (link.version, link.rate) == (Some(4), Some(25e9))));
    for (row, line) in labels(&hardware).iter().enumerate() {
        let cells: Vec<&str> = (0..8).map(|column| if column == row { "X" } else { "NV18" }).collect();
        assert_eq!(*line, cells.join(" "));
    }
    // 18 links of 25 GB/s, of which 88 % are for payload.
    assert_eq!((expected(&hardware, 0, 7), peers(&hardware, 0, 7)), ("396.0".to_owned(), "OK OK OK OK OK".to_owned()));
    let nic = |gpu, nic| label(&hardware, Device::Gpu(gpu), Device::Nic(nic));
    assert_eq!((nic(2, 2), nic(2, 3), nic(2, 7)), (Some(PathLabel::Pix), Some(PathLabel::Node), Some(PathLabel::Sys)));
    assert_eq!(notes(&hardware, NoteKind::Warning), []);
}

#[test]
fn links_that_are_down_are_told_and_missing_in_the_label() {
    let hardware = seen(&file("two-links-down"), true);
    assert_eq!(ends(&hardware)[3], [(LinkEnd::Switch, 16)]);
    let down: Vec<_> = hardware.gpu_links.iter().filter(|link| !link.active).map(|link| (link.gpu, link.number)).collect();
    assert_eq!(down, [(3, Some(3)), (3, Some(5))]);
    assert_eq!(labels(&hardware)[3], "NV16 NV16 NV16 X NV16 NV16 NV16 NV16");
    assert_eq!(labels(&hardware)[0], "X NV18 NV18 NV16 NV18 NV18 NV18 NV18");
    // What it should give stays what it could with all of them.
    assert_eq!(expected(&hardware, 3, 0), "396.0");
    let warnings = notes(&hardware, NoteKind::Warning);
    assert_eq!(warnings.iter().map(|(about, _)| *about).collect::<Vec<_>>(), ["GPU 3", "GPU 3"]);
    assert!(warnings[0].1.contains("link 4: 17 replays, 2 recoveries"), "{warnings:?}");
    assert!(warnings[1].1.starts_with("16 of 18 NVLinks are up; down: links 3,5."), "{warnings:?}");
}

#[test]
fn an_absent_fabric_manager_is_the_cause_that_is_told() {
    let hardware = seen(&file("no-fabric-manager"), true);
    assert_eq!((ends(&hardware).len(), peers(&hardware, 1, 6).as_str()), (8, "NS NS NS NS NS"));
    let warnings = notes(&hardware, NoteKind::Warning);
    let [("NVSwitch", text)] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(text.starts_with("GPUs 0-7: still waits for the fabric manager"), "{text}");
    // A driver that does not tell the fabric's state (A100) is judged by what it lets GPUs do.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a100.toml");
    std::fs::copy(file("nvswitch"), folder.path().join("nvswitch.toml")).unwrap();
    let older = "\n[[fail]]\ncall = \"nvmlDeviceGetGpuFabricInfo\"\nerror = 3\n";
    std::fs::write(&path, std::fs::read_to_string(file("no-fabric-manager")).unwrap() + older).unwrap();
    let hardware = seen(&path, true);
    let warnings = notes(&hardware, NoteKind::Warning);
    let [("NVSwitch", text)] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(text.starts_with("56 ordered pair(s) of GPUs, such as 0 and 1, have NVLinks up to the same switches"), "{text}");
}

#[test]
fn a_box_without_nvlinks_is_labelled_by_its_switches() {
    let hardware = seen(&file("pcie-switches"), true);
    assert_eq!(hardware.gpu_links, []);
    let labels = labels(&hardware);
    assert_eq!((labels[0].as_str(), labels[5].as_str()), ("X PIX PIX PIX SYS SYS SYS SYS", "SYS SYS SYS SYS PIX X PIX PIX"));
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        assert_eq!(told(&hardware, from, to), label(&hardware, Device::Gpu(from), Device::Gpu(to)), "the driver and the tree agree");
    }
    assert_eq!(peers(&hardware, 0, 4), "OK OK NS NS OK");
    // 16 lanes of 16 GT/s, 86 % for payload; half of that across sockets.
    assert_eq!((expected(&hardware, 0, 1).as_str(), expected(&hardware, 0, 4).as_str()), ("27.1", "13.5"));
    let narrow = hardware.pci[hardware.gpus[5].pci.unwrap()].link.unwrap();
    assert_eq!(narrow.now, Some(Lanes { speed: 16.0, width: 8 }));
    assert_eq!(hardware.gpus[2].throttled, ["slowed to half or less by hardware", "heat, slowed by hardware"]);
    assert_eq!(notes(&hardware, NoteKind::Warning), []);
}

#[test]
fn bridged_pairs_reach_only_their_partner_over_nvlink() {
    let hardware = seen(&file("nvlink-pairs"), true);
    let partner = |gpu| vec![(LinkEnd::Gpu(gpu), 4)];
    assert_eq!(ends(&hardware), [partner(1), partner(0), partner(3), partner(2)]);
    assert_eq!(labels(&hardware), ["X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X"]);
    // The driver tells less than NVLink 3 could: 4 x 14.062 GB/s.
    assert!(hardware.gpu_links.iter().all(|link| (link.version, link.rate) == (Some(3), Some(14.062e9))));
    assert_eq!(expected(&hardware, 2, 3), "49.5");
    assert_eq!((peers(&hardware, 0, 1).as_str(), peers(&hardware, 1, 2).as_str()), ("OK OK OK OK OK", "OK OK NS NS OK"));
    let told = |from, to| told(&hardware, from, to);
    assert_eq!((told(0, 1), told(1, 2), told(2, 1)), (None, Some(PathLabel::Sys), Some(PathLabel::Sys)));
}

#[test]
fn divided_gpus_tell_their_instances() {
    let hardware = seen(&file("mig"), true);
    assert_eq!(
        hardware.gpus[0].mig,
        [
            "3g.40gb MIG-00000000-0000-0000-0000-000000000001",
            "2g.20gb MIG-00000000-0000-0000-0000-000000000002",
            "1g.10gb MIG-00000000-0000-0000-0000-000000000003"
        ]
    );
    assert_eq!((hardware.gpus[1].mig.len(), hardware.gpus[2].mig.len()), (0, 0));
    assert_eq!(labels(&hardware), ["X PHB PHB", "PHB X PHB", "PHB PHB X"]);
    assert_eq!(expected(&hardware, 0, 2), "27.1");
    // Links without a bridge are there, but down, and that is no fault.
    assert_eq!((hardware.gpu_links.len(), ends(&hardware)), (36, vec![vec![]; 3]));
    let warnings = notes(&hardware, NoteKind::Warning);
    let [("GPU 0", divided), ("GPU 1", empty)] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(divided.contains("3 instance(s)") && empty.contains("no instance"), "{warnings:?}");
}

#[test]
fn gpus_that_the_system_does_not_show_keep_their_links() {
    let hardware = seen(&file("pcie-switches"), false);
    assert_eq!((hardware.gpus.len(), hardware.pci.len()), (8, 8));
    let gpu = &hardware.pci[hardware.gpus[5].pci.unwrap()];
    assert_eq!((gpu.address.to_string().as_str(), gpu.parent, gpu.vendor, gpu.device), ("0000:9b:00.0", None, 0x10de, 0x26ba));
    let lanes = |width| Some(Lanes { speed: 16.0, width });
    assert_eq!(gpu.link.map(|link| (link.now, link.most, link.port)), Some((lanes(8), lanes(16), None)));
    assert_eq!((hardware.gpus[5].numa, hardware.gpus[5].cpus.len()), (Some(1), 32));
    // Across NUMA nodes it can be told without a tree.
    assert_eq!(label(&hardware, Device::Gpu(0), Device::Gpu(4)), Some(PathLabel::Sys));
}

#[test]
fn a_gpu_that_is_faster_than_its_slot_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slot.toml");
    std::fs::write(&path, "[model]\npcie = [4, 8]\npcie_most = [4, 8]\npcie_speed = 5\n[[gpu]]\naddress = \"0000:01:00.0\"\n").unwrap();
    let hardware = seen(&path, false);
    let link = hardware.pci[0].link.unwrap();
    let lanes = |speed| Some(Lanes { speed, width: 8 });
    assert_eq!((link.now, link.most, link.port), (lanes(16.0), lanes(32.0), lanes(16.0)));
}

#[test]
fn a_module_of_processor_and_gpu_has_links_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.toml");
    let text = "[model]\narchitecture = 9\nc2c = [10, 44712]\n[[gpu]]\naddress = \"0009:01:00.0\"\nnode = 2\ncpus = \"144-215\"\n";
    std::fs::write(&path, text).unwrap();
    let hardware = seen(&path, false);
    assert_eq!(ends(&hardware), [[(LinkEnd::Cpu(2), 10)]]);
    assert!(hardware.gpu_links.iter().all(|link| link.kind == GpuLinkKind::C2c && link.rate == Some(44.712e9)));
}

#[test]
fn what_cannot_be_seen_at_the_other_end_is_a_switch_unless_it_is_a_gpu_of_the_same_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("guest.toml");
    let text = "[model]\nid = 0x2330\narchitecture = 9\nlinks = 3\nlink_version = 7\n[[gpu]]\naddress = \"0000:01:00.0\"\n\
                [[gpu]]\naddress = \"0000:02:00.0\"\n[[fail]]\ncall = \"nvmlDeviceGetHandleByIndex_v2\"\ngpu = 1\nerror = 4\n";
    let link = |number: u32, to: &str| format!("[[nvlink]]\ngpus = \"0\"\nlinks = \"{number}\"\nto = \"{to}\"\n");
    let links = link(0, "0000:05:00.0") + &link(1, "fffffff:ffff:ff") + &link(2, "0000:02:00.0");
    std::fs::write(&path, text.to_owned() + &links).unwrap();
    let hardware = seen(&path, false);
    let told: Vec<LinkEnd> = hardware.gpu_links.iter().map(|link| link.end).collect();
    assert_eq!(told, [LinkEnd::Switch, LinkEnd::Switch, LinkEnd::Unknown]);
}

#[test]
fn a_library_that_is_not_there_is_one_note() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("sys")).unwrap();
    let told = |library: &Path| {
        let hardware = discover(root.path(), &[(boxes::LIBRARY, library)]);
        assert!(hardware.gpus.is_empty());
        let notes: Vec<_> = hardware.notes.into_iter().filter(|note| note.about == "NVML").collect();
        assert_eq!((notes.len(), notes[0].kind), (1, NoteKind::Unseen), "{notes:?}");
        notes[0].text.clone()
    };
    assert!(told(&root.path().join("libnone.so")).contains("libnone.so cannot be loaded: "));
    std::fs::write(root.path().join("broken.so"), "not a library").unwrap();
    assert!(told(&root.path().join("broken.so")).contains("broken.so cannot be loaded: "));
    // Without a box the stand-in does not start.
    assert!(told(&stand_in()).contains("nvmlInit failed with Unknown"));
}

#[test]
fn a_recorded_machine_is_not_mixed_with_the_gpus_of_this_one() {
    let root = tempfile::tempdir().unwrap();
    boxes::show(&file("mig"), root.path());
    let hardware = discover(root.path(), &[]);
    assert_eq!(hardware.gpus.len(), 3);
    assert!(hardware.gpus.iter().all(|gpu| gpu.memory == 0));
    assert!(hardware.notes.iter().all(|note| note.about != "NVML"), "{:?}", hardware.notes);
}
