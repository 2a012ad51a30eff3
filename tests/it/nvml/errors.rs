//! Every error on every call that the stand-in exports: survived, told once, and nothing else changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use toposcope::discover::{Machine, nvml};
use toposcope::topology::Hardware;
use toposcope::topology::hardware::{GpuLinkKind, LinkEnd, Note, ToldWhat};
use toposcope::transport::nvswitch;

use super::boxes::{self, show, stand_in};

/// Variables of the process that goes through all errors: the recorded machine, and a file for the number of cases.
const ROOT: &str = "TOPOSCOPE_TEST_ROOT";
const OUT: &str = "TOPOSCOPE_TEST_OUT";

/// Return codes of NVML and their names (`nvmlReturn_t` in nvml.h).
const CODES: [(u32, &str); 29] = [
    (1, "Uninitialized"),
    (2, "InvalidArg"),
    (3, "NotSupported"),
    (4, "NoPermission"),
    (5, "AlreadyInitialized"),
    (6, "NotFound"),
    (7, "InsufficientSize"),
    (8, "InsufficientPower"),
    (9, "DriverNotLoaded"),
    (10, "Timeout"),
    (11, "IrqIssue"),
    (12, "LibraryNotFound"),
    (13, "FunctionNotFound"),
    (14, "CorruptedInfoROM"),
    (15, "GpuLost"),
    (16, "ResetRequired"),
    (17, "OperatingSystem"),
    (18, "LibRmVersionMismatch"),
    (19, "InUse"),
    (20, "InsufficientMemory"),
    (21, "NoData"),
    (22, "VgpuEccNotSupported"),
    (23, "InsufficientResources"),
    (24, "FreqNotSupported"),
    (25, "ArgumentVersionMismatch"),
    (26, "Deprecated"),
    (27, "NotReady"),
    (28, "GpuNotFound"),
    (999, "Unknown"),
];

/// Three GPUs: one divided, two joined by two links of which one errs; one waits for the fabric; all have something to lose.
const BOX: &str = r#"
driver = "550.54.15"
tree = '''
pci0000:15 numa 0
  0000:15:01.0 port Gen4 x16
    0000:16:00.0 gpu Gen4 x16
  0000:15:02.0 port Gen4 x16
    0000:17:00.0 gpu Gen4 x16
  0000:15:03.0 port Gen4 x16
    0000:18:00.0 gpu Gen4 x16
'''
[model]
name = "NVIDIA Stand-in"
id = 0x1234
architecture = 7
clock = [210, 1410]
pcie = [4, 8]
pcie_most = [4, 16]
pcie_speed = 5
links = 2
link_speed = 24000
link_version = 5
c2c = [1, 44000]
mig = true
[[gpu]]
address = "0000:16:00.0"
cpus = "0-3"
throttled = 4
mig = ["1g.10gb"]
[[gpu]]
address = "0000:17:00.0"
cpus = "0-3"
throttled = 4
[[gpu]]
address = "0000:18:00.0"
cpus = "0-3"
throttled = 4
[[nvlink]]
gpus = "1"
links = "0-1"
to = "0000:18:00.0"
errors = [1, 0, 0, 0]
[[nvlink]]
gpus = "2"
links = "0-1"
to = "0000:17:00.0"
[[pair]]
a = "0-2"
b = "0-2"
level = "PHB"
p2p = ["OK", "OK", "NS", "NS", "OK"]
[[fabric]]
gpus = "2"
state = 2
status = 0
"#;

/// What the stand-in exports, read from its source, so that none is forgotten.
fn exported() -> BTreeSet<&'static str> {
    let source = include_str!("../../../examples/nvml_stand_in/lib.rs");
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names = code.flat_map(|line| {
        line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| {
            let rest = word.strip_prefix("nvml").unwrap_or_default();
            ["Init", "Shutdown", "System", "DeviceGet"].iter().any(|start| rest.starts_with(start))
        })
    });
    names.collect()
}

/// True if a call that fails in this way says nothing of interest.
fn is_quiet(call: &str, code: u32) -> bool {
    match call {
        // Shutting down has no more to tell; the crate asks for the version only to number fields.
        "nvmlShutdown" | "nvmlSystemGetDriverVersion" => true,
        "nvmlInit_v2" | "nvmlDeviceGetCount_v2" | "nvmlDeviceGetHandleByIndex_v2" | "nvmlDeviceGetPciInfo_v3" => false,
        // An empty slot.
        "nvmlDeviceGetMigDeviceHandleByIndex" if code == 6 => true,
        _ => code == 3,
    }
}

/// Take away what a call tells, and what follows from it, of the failing GPUs.
fn without(hardware: &Hardware, call: &str, fails: impl Fn(usize) -> bool) -> Hardware {
    let mut left = hardware.clone();
    left.notes.clear();
    for gpu in left.gpus.iter_mut().filter(|gpu| fails(gpu.index)) {
        let whole = matches!(call, "nvmlDeviceGetHandleByIndex_v2" | "nvmlDeviceGetCount_v2" | "nvmlInit_v2");
        let any = |calls: &[&str]| whole || calls.contains(&call);
        if any(&["nvmlDeviceGetName"]) {
            gpu.name.clear();
        }
        if any(&["nvmlDeviceGetUUID"]) {
            gpu.uuid = None;
        }
        if any(&[
            "nvmlDeviceGetName",
            "nvmlDeviceGetUUID",
            "nvmlDeviceGetMigMode",
            "nvmlDeviceGetMaxMigDeviceCount",
            "nvmlDeviceGetMigDeviceHandleByIndex",
        ]) {
            gpu.mig.clear();
        }
        if any(&["nvmlDeviceGetMemoryInfo_v2"]) {
            gpu.memory = 0;
        }
        if any(&["nvmlDeviceGetCpuAffinity"]) {
            gpu.cpus.clear();
        }
        if any(&["nvmlDeviceGetMemoryAffinity"]) {
            gpu.numa = None;
            left.pci[gpu.pci.unwrap()].numa = None;
        }
        if any(&["nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo"]) {
            gpu.clock = None;
        }
        if any(&["nvmlDeviceGetCurrentClocksThrottleReasons"]) {
            gpu.throttled.clear();
        }
        if whole || call.contains("Pcie") {
            let pci = gpu.pci.unwrap();
            left.pci[pci].link = None;
        }
    }
    let whole = matches!(call, "nvmlDeviceGetHandleByIndex_v2" | "nvmlDeviceGetCount_v2" | "nvmlInit_v2");
    let states = whole || call == "nvmlDeviceGetNvLinkState";
    left.gpu_links.retain(|link| !(fails(link.gpu) && states));
    for link in left.gpu_links.iter_mut().filter(|link| fails(link.gpu)) {
        match call {
            // The generation is told by either, the rate by generation and speed.
            "nvmlDeviceGetNvLinkVersion" | "nvmlDeviceGetArchitecture" => (link.version, link.rate) = (None, None),
            "nvmlDeviceGetFieldValues" => link.rate = None,
            "nvmlDeviceGetNvLinkRemotePciInfo_v2" => link.end = LinkEnd::Unknown,
            // A processor is named by its NUMA node.
            "nvmlDeviceGetMemoryAffinity" if link.kind == GpuLinkKind::C2c => link.end = LinkEnd::Unknown,
            _ => {}
        }
    }
    if call == "nvmlDeviceGetFieldValues" {
        left.gpu_links.retain(|link| !(fails(link.gpu) && link.kind == GpuLinkKind::C2c));
    }
    // Whether NVLinks join two GPUs decides whether they are labelled.
    let labels = states || matches!(call, "nvmlDeviceGetNvLinkRemotePciInfo_v2" | "nvmlDeviceGetTopologyCommonAncestor");
    let peers = whole || call == "nvmlDeviceGetP2PStatus";
    left.told.retain(|told| {
        let of = |device| matches!(device, toposcope::topology::hardware::Device::Gpu(gpu) if fails(gpu));
        let hit = of(told.from) || of(told.to);
        !(hit
            && match told.what {
                ToldWhat::Label(_) => labels,
                ToldWhat::Peer { .. } => peers,
            })
    });
    left
}

fn look(files: &Hardware) -> Hardware {
    let mut hardware = files.clone();
    if let Some(nvml) = nvml::look(&mut hardware, None) {
        nvswitch::look(&mut hardware, &nvml);
    }
    hardware
}

/// The process that goes through all calls and codes: the box's file changes under it.
#[test]
#[ignore = "the other test here starts it"]
fn survives() {
    let root = PathBuf::from(std::env::var_os(ROOT).unwrap());
    let file = PathBuf::from(std::env::var_os(boxes::SERVED).unwrap());
    let files = Machine::at(root).hardware();
    let baseline = look(&files);
    let known: BTreeSet<&str> = baseline.notes.iter().map(|note| note.text.as_str()).collect();
    let mut tried = 0;
    for call in exported() {
        for gpu in [None, Some(1)] {
            let about_no_device = ["nvmlInit_v2", "nvmlShutdown", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount_v2"].contains(&call);
            // The first GPU alone has an instance, and pairs without NVLinks.
            let of_first = call.contains("MigDevice") || call == "nvmlDeviceGetTopologyCommonAncestor";
            let gpu = gpu.map(|gpu| if of_first { 0 } else { gpu });
            if about_no_device && gpu.is_some() {
                continue;
            }
            // Every code without a tree or on a single GPU would tell the same: those that are treated apart are enough there.
            let few = gpu.is_some() || files.pci.is_empty();
            for (code, name) in CODES.into_iter().filter(|(code, _)| !few || [2, 3, 6, 13, 15, 23].contains(code)) {
                let only = gpu.map_or(String::new(), |gpu| format!("gpu = {gpu}\n"));
                std::fs::write(&file, format!("{BOX}\n[[fail]]\ncall = \"{call}\"\nerror = {code}\n{only}")).unwrap();
                let hardware = look(&files);
                let case = format!("{call} answers {code} ({name}) on {gpu:?}");
                let news: Vec<&Note> = hardware.notes.iter().filter(|note| !known.contains(note.text.as_str())).collect();
                let said: Vec<_> = news.iter().filter(|note| note.text.contains("failed with")).collect();
                if is_quiet(call, code) {
                    assert_eq!(said.len(), 0, "{case}: {news:?}");
                } else {
                    assert_eq!(said.len(), 1, "{case}: {news:?}");
                    let plain = call.trim_end_matches("_v2").trim_end_matches("_v3");
                    let text = &said[0].text;
                    assert!(text.contains(plain) && text.contains(&format!("failed with {name}: ")), "{case}: {text}");
                    let about = gpu.map(|gpu| format!("GPU {gpu}"));
                    assert!(about.is_none_or(|about| said[0].about == about), "{case}: {said:?}");
                }
                let fails = |index: usize| gpu.is_none_or(|gpu| gpu == index);
                let names_gpu =
                    matches!(call, "nvmlInit_v2" | "nvmlDeviceGetCount_v2" | "nvmlDeviceGetHandleByIndex_v2" | "nvmlDeviceGetPciInfo_v3");
                if files.pci.is_empty() && names_gpu {
                    // Nobody else knows of these GPUs.
                    let left: Vec<_> = hardware.gpus.iter().map(|gpu| gpu.index).collect();
                    let expected: Vec<_> = (0..3).filter(|&gpu| call == "nvmlDeviceGetPciInfo_v3" || !fails(gpu)).collect();
                    assert_eq!(left, expected, "{case}");
                } else {
                    assert_eq!(without(&hardware, call, fails), without(&baseline, call, fails), "{case}");
                }
                tried += 1;
            }
        }
    }
    std::fs::write(std::env::var_os(OUT).unwrap(), format!("{tried}")).unwrap();
}

#[test]
fn every_error_of_every_call_is_survived_and_told_once() {
    let calls = exported();
    assert_eq!(calls.len(), 31, "{calls:?}");
    let folder = tempfile::tempdir().unwrap();
    for (with_files, expected) in [(true, 31 * 29 + 27 * 6), (false, 31 * 6 + 27 * 6)] {
        let (root, file) = (folder.path().join(format!("root-{with_files}")), folder.path().join("box.toml"));
        std::fs::create_dir(&root).unwrap();
        std::fs::write(&file, BOX).unwrap();
        if with_files {
            show(&file, &root);
        }
        let out = folder.path().join("tried");
        // In a process of its own: the stand-in is told its box by the environment, which threads share.
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["nvml::errors::survives", "--exact", "--ignored", "--nocapture"]);
        command.env(ROOT, &root).env(OUT, &out).env(boxes::SERVED, &file).env(boxes::LIBRARY, stand_in());
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        let tried = std::fs::read_to_string(&out).unwrap();
        assert_eq!(tried, expected.to_string());
    }
}

#[test]
fn a_gpu_that_is_lost_costs_its_own_facts_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lost.toml");
    std::fs::copy(boxes::file("nvswitch"), folder.path().join("nvswitch.toml")).unwrap();
    std::fs::write(&file, "base = \"nvswitch.toml\"\n[[fail]]\ngpu = 3\nerror = 15\n").unwrap();
    let hardware = boxes::seen(&file, true);
    assert_eq!((hardware.gpus.len(), hardware.gpus[3].memory, hardware.gpus[4].memory), (8, 0, 80 << 30));
    assert_eq!(hardware.gpu_links.len(), 7 * 18);
    let lost: Vec<_> = hardware.notes.iter().filter(|note| note.text.contains("GpuLost")).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((lost[0].about.as_str(), lost[0].text.contains("Xid 79")), ("GPU 3", true));
    // Lost only after its handle was had: one note of what it is, one of its fabric.
    let later = "base = \"nvswitch.toml\"\n[[fail]]\ngpu = 3\nerror = 15\nexcept = \"nvmlDeviceGetHandleByIndex_v2\"\n";
    std::fs::write(&file, later).unwrap();
    let hardware = boxes::seen(&file, true);
    let lost: Vec<_> = hardware.notes.iter().filter(|note| note.text.contains("GpuLost")).map(|note| note.about.as_str()).collect();
    assert_eq!(lost, ["GPU 3"; 2]);
    assert_eq!(hardware.gpu_links.len(), 7 * 18);
}
