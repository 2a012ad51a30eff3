//! Small recorded trees for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A folder that is filled as the kernel would fill `/sys` and `/proc`.
pub(super) struct Tree(tempfile::TempDir);

impl Tree {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn root(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A link, with as many steps up as it takes.
    pub(super) fn link_to(&self, path: &str, target: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        let up = "../".repeat(Path::new(path).components().count() - 1);
        let _ = fs::remove_file(self.path(path));
        symlink(format!("{up}{target}"), self.path(path)).unwrap();
    }

    pub(super) fn link(&self, device: &str, speed: &str, width: &str, most_speed: &str, most_width: &str) {
        for (name, text) in
            [("current_link_speed", speed), ("current_link_width", width), ("max_link_speed", most_speed), ("max_link_width", most_width)]
        {
            self.write(&format!("{device}/{name}"), text);
        }
    }

    /// A device below `sys/devices`, with its link in `sys/bus`; its folder.
    pub(super) fn pci(&self, path: &str, class: &str, vendor: &str, device: &str, numa: i64) -> String {
        let folder = format!("sys/devices/{path}");
        for (name, text) in [("class", class), ("vendor", vendor), ("device", device), ("numa_node", &numa.to_string())] {
            self.write(&format!("{folder}/{name}"), text);
        }
        let name = path.rsplit('/').next().unwrap();
        self.link_to(&format!("sys/bus/pci/devices/{name}"), &folder);
        folder
    }

    pub(super) fn numa(&self, node: usize, cpus: &str, gib: u64, distances: &str) {
        let folder = format!("sys/devices/system/node/node{node}");
        self.write(&format!("{folder}/cpulist"), cpus);
        self.write(&format!("{folder}/meminfo"), format!("Node {node} MemTotal:       {} kB\nNode {node} MemFree: 1 kB\n", gib << 20));
        self.write(&format!("{folder}/distance"), distances);
    }

    pub(super) fn cpu(&self, cpu: usize, package: usize, core: usize, siblings: &str) {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        self.write(&format!("{folder}/physical_package_id"), package.to_string());
        self.write(&format!("{folder}/core_id"), core.to_string());
        self.write(&format!("{folder}/thread_siblings_list"), siblings);
    }

    pub(super) fn cache(&self, cpu: usize, index: usize, (level, kind, size): (u32, &str, &str), shared: &str) {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        for (name, text) in [("level", level.to_string().as_str()), ("type", kind), ("size", size), ("shared_cpu_list", shared)] {
            self.write(&format!("{folder}/{name}"), text);
        }
    }

    /// A network interface of a device, or of the virtual ones.
    pub(super) fn net(&self, device: &str, name: &str, state: &str, speed: &str) {
        let folder = format!("{device}/net/{name}");
        self.write(&format!("{folder}/operstate"), state);
        self.write(&format!("{folder}/speed"), speed);
        self.write(&format!("{folder}/type"), if name == "lo" { "772" } else { "1" });
        if device != "sys/devices/virtual" {
            self.link_to(&format!("{folder}/device"), device);
        }
        self.link_to(&format!("sys/class/net/{name}"), &folder);
    }

    /// An RDMA device with one port.
    pub(super) fn rdma(&self, device: &str, name: &str, (port, state, rate, layer): (u32, &str, &str, &str)) {
        let folder = format!("{device}/infiniband/{name}");
        for (file, text) in [("state", state), ("rate", rate), ("link_layer", layer), ("phys_state", "5: LinkUp")] {
            self.write(&format!("{folder}/ports/{port}/{file}"), text);
        }
        self.write(&format!("{folder}/node_guid"), "e8eb:d303:0032:1f2c");
        self.link_to(&format!("{folder}/device"), device);
        self.link_to(&format!("sys/class/infiniband/{name}"), &folder);
    }
}
