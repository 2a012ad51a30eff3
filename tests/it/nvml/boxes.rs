//! Boxes described by files: the stand-in for NVML serves one side of them, and these write the other, the system's files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use toposcope::topology::{Hardware, Topology};

use super::super::place::TOPOSCOPE;

/// The variables that name the box's file for the stand-in, and the stand-in for the program.
pub const SERVED: &str = "TOPOSCOPE_STAND_IN";
pub const LIBRARY: &str = "TOPOSCOPE_NVML";

/// What of a box's file concerns the system's files; the rest is the stand-in's.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    base: Option<String>,
    tree: Option<String>,
    gpu: Vec<Gpu>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Gpu {
    node: usize,
    cpus: String,
}

/// The stand-in, which `cargo test` builds along with the program.
pub fn stand_in() -> PathBuf {
    let path = Path::new(TOPOSCOPE).with_file_name("examples").join("libnvml_stand_in.so");
    assert!(
        path.exists(),
        "{} is not there: cargo build --example nvml_stand_in (cargo test without --test builds it, too)",
        path.display()
    );
    path
}

/// The file of a box of this project.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/boxes").join(name).with_extension("toml")
}

/// Write what Linux shows of a box below `root`.
pub fn show(path: &Path, root: &Path) {
    let read = |path: &Path| toml::from_str::<Described>(&fs::read_to_string(path).unwrap()).unwrap();
    let mut described = read(path);
    if let Some(base) = described.base.take() {
        described = read(&path.with_file_name(base));
    }
    let mut nodes: BTreeMap<usize, String> = BTreeMap::new();
    for gpu in &described.gpu {
        nodes.insert(gpu.node, gpu.cpus.clone());
    }
    for (node, cpus) in &nodes {
        let folder = format!("sys/devices/system/node/node{node}");
        write(root, &format!("{folder}/cpulist"), cpus);
        let distances: Vec<&str> = nodes.keys().map(|other| if other == node { "10" } else { "21" }).collect();
        write(root, &format!("{folder}/distance"), &distances.join(" "));
        write(root, &format!("{folder}/meminfo"), &format!("Node {node} MemTotal: 1048576 kB"));
    }
    write(root, "proc/sys/kernel/hostname", "stand-in");
    tree(root, &described.tree.expect("a box has a tree"));
}

/// Lines such as `0000:18:00.0 gpu Gen5 x16 now Gen5 x8`, each two blanks deeper than what it is attached to.
fn tree(root: &Path, text: &str) {
    let mut above: Vec<String> = Vec::new();
    let (mut numa, mut nics) = (0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        above.truncate((line.len() - line.trim_start().len()) / 2);
        above.push(words[0].to_owned());
        if let ["numa", node] = words[1..] {
            numa = node.parse().unwrap();
            continue;
        }
        let (class, vendor, device) = match words[1] {
            "port" => ("0x060400", "0x8086", "0x352a"),
            "up" | "down" => ("0x060400", "0x1000", "0xc030"),
            "gpu" => ("0x030200", "0x10de", "0x0000"),
            "nvswitch" => ("0x068000", "0x10de", "0x22a3"),
            "nic" => ("0x020700", "0x15b3", "0x1021"),
            other => panic!("{other}: what is that?"),
        };
        let folder = format!("sys/devices/{}", above.join("/"));
        for (name, text) in [("class", class), ("vendor", vendor), ("device", device), ("numa_node", &format!("{numa}"))] {
            write(root, &format!("{folder}/{name}"), text);
        }
        let speed = |generation: &str| {
            ["2.5", "5.0", "8.0", "16.0", "32.0"][generation[3..].parse::<usize>().unwrap() - 1].to_owned() + " GT/s PCIe"
        };
        let most = (words[2], words[3]);
        let now = if words.get(4) == Some(&"now") { (words[5], words[6]) } else { most };
        write(root, &format!("{folder}/max_link_speed"), &speed(most.0));
        write(root, &format!("{folder}/max_link_width"), &most.1[1..]);
        write(root, &format!("{folder}/current_link_speed"), &speed(now.0));
        write(root, &format!("{folder}/current_link_width"), &now.1[1..]);
        link(root, &format!("sys/bus/pci/devices/{}", words[0]), &folder);
        if words[1] == "nic" {
            let rdma = format!("{folder}/infiniband/mlx5_{nics}");
            for (name, text) in [("state", "4: ACTIVE"), ("rate", "400 Gb/sec (4X NDR)"), ("link_layer", "InfiniBand")] {
                write(root, &format!("{rdma}/ports/1/{name}"), text);
            }
            link(root, &format!("{rdma}/device"), &folder);
            link(root, &format!("sys/class/infiniband/mlx5_{nics}"), &rdma);
            nics += 1;
        }
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn link(root: &Path, path: &str, target: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(root.join(target), path).unwrap();
}

/// What the program tells of a box through the stand-in, with the system's files or without.
pub fn seen(path: &Path, with_files: bool) -> Hardware {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("sys")).unwrap();
    if with_files {
        show(path, root.path());
    }
    discover(root.path(), &[(SERVED, path), (LIBRARY, &stand_in())])
}

/// What `toposcope discover` tells of a recorded machine.
pub fn discover(root: &Path, variables: &[(&str, &Path)]) -> Hardware {
    let mut command = Command::new(TOPOSCOPE);
    command.args(["discover", "--json", "--sysfs-root"]).arg(root);
    command.env_remove(LIBRARY).env_remove(SERVED).envs(variables.iter().copied());
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let mut topology: Topology = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(topology.hardware.len(), 1);
    topology.hardware.remove(0)
}
