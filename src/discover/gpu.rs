//! GPUs as the PCI tree and NVIDIA's kernel driver show them, without any library.

use std::collections::HashMap;
use std::path::Path;

use super::pci::Folders;
use super::read;
use crate::topology::Hardware;
use crate::topology::hardware::{Gpu, NoteKind, PciDevice};

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;
/// Where the driver tells of each GPU.
const DRIVER: &str = "proc/driver/nvidia/gpus";

/// Fill in the GPUs of the machine below `root`, in the order of their addresses; its PCI tree must be there.
pub(super) fn fill(root: &Path, hardware: &mut Hardware, folders: &Folders) {
    let mut found = Vec::new();
    for (index, device) in hardware.pci.iter().enumerate() {
        let told = root.join(DRIVER).join(device.address.to_string());
        let folder = folders.of(index);
        // A host sees the functions that it gives to its virtual machines; the GPU is the physical one.
        let shared = folder.is_some_and(|folder| folder.join("physfn").exists());
        if !shared && (is_gpu(device) || (is_display(device) && told.is_dir())) {
            found.push((index, told, folder));
        }
    }
    found.sort_by_key(|(index, ..)| hardware.pci[*index].address);
    let mut owners = HashMap::new();
    let mut gpus = Vec::new();
    for (number, (index, told, folder)) in found.into_iter().enumerate() {
        let device = &hardware.pci[index];
        let information = read::text(&told.join("information")).unwrap_or_default();
        let field = |name: &str| {
            let line = information.lines().find_map(|line| line.strip_prefix(name))?;
            let value = crate::units::plain(line.trim_start_matches(':').trim());
            (!value.is_empty() && !value.contains("???")).then_some(value)
        };
        let near = folder.and_then(|folder| read::cpus(folder, "local_cpulist", "local_cpus"));
        if let Some(node) = read::text(&told.join("numa_status")).as_deref().and_then(memory_node) {
            owners.insert(node, device.address.to_string());
        }
        gpus.push(Gpu {
            index: number,
            name: field("Model").unwrap_or_else(|| if device.vendor == 0 { "NVIDIA GPU".to_owned() } else { device.name.clone() }),
            uuid: field("GPU UUID"),
            pci: Some(index),
            numa: device.numa,
            cpus: near.unwrap_or_default(),
            ..Gpu::default()
        });
    }
    hardware.gpus = gpus;
    for node in hardware.numa.clone() {
        if node.cpus.is_empty() && node.memory > 0 {
            let what = match owners.get(&node.id) {
                Some(gpu) => format!("the memory of GPU {gpu}"),
                None if hardware.gpus.is_empty() => "memory without processors, as CXL has".to_owned(),
                None => "memory without processors, a GPU's (as in Grace Hopper) or CXL's".to_owned(),
            };
            let text = format!("{what}: pages of a rank that is not bound may land there");
            hardware.note(NoteKind::Warning, format!("NUMA node {}", node.id), text);
        }
    }
}

fn is_display(device: &PciDevice) -> bool {
    device.class >> 16 == 0x03
}

/// Displays of makers of GPUs (management controllers have displays of ASPEED and Matrox), and AMD's accelerators without one.
fn is_gpu(device: &PciDevice) -> bool {
    match device.vendor {
        NVIDIA | INTEL => is_display(device),
        AMD => is_display(device) || device.class >> 16 == 0x12,
        _ => false,
    }
}

/// `Status: online` and `Node: 250`: the memory is a NUMA node.
fn memory_node(text: &str) -> Option<usize> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start_matches(':').trim());
    if field("Status") != Some("online") {
        return None;
    }
    field("Node")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Machine;
    use crate::discover::made::Tree;

    #[test]
    fn gpus_are_told_from_displays_of_management_controllers() {
        let tree = Tree::new();
        tree.pci("pci0000:00/0000:00:1c.0/0000:02:00.0", "0x030000", "0x1a03", "0x2000", 0);
        tree.pci("pci0000:16/0000:16:01.0/0000:17:00.0", "0x030200", "0x10de", "0x2330", 0);
        tree.pci("pci0000:16/0000:16:03.0/0000:18:00.0", "0x120000", "0x1002", "0x74a1", 0);
        let shared = tree.pci("pci0000:16/0000:16:01.0/0000:17:00.4", "0x030200", "0x10de", "0x2330", 0);
        std::os::unix::fs::symlink("../0000:17:00.0", tree.path(&format!("{shared}/physfn"))).unwrap();
        tree.write(
            "proc/driver/nvidia/gpus/0000:17:00.0/information",
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 0\nGPU UUID: \t GPU-1234\nBus Type: \t PCIe\n",
        );
        let hardware = Machine::at(tree.root()).hardware();
        let told: Vec<_> =
            hardware.gpus.iter().map(|gpu| (gpu.index, hardware.pci[gpu.pci.unwrap()].address.bus, gpu.name.as_str())).collect();
        assert_eq!(told, [(0, 0x17, "NVIDIA H100 80GB HBM3"), (1, 0x18, "AMD accelerator 1002:74a1")]);
        assert_eq!(hardware.gpus[0].uuid.as_deref(), Some("GPU-1234"));
    }

    #[test]
    fn memory_without_processors_is_told_with_its_owner() {
        let tree = Tree::new();
        tree.numa(0, "0-3", 480, "10 80 80");
        tree.numa(1, "", 96, "80 10 80");
        tree.numa(2, "", 0, "80 80 10");
        tree.pci("pci0009:00/0009:00:00.0/0009:01:00.0", "0x030200", "0x10de", "0x2342", 0);
        let notes = |tree: &Tree| Machine::at(tree.root()).hardware().notes.into_iter().filter(|note| note.about.starts_with("NUMA node"));
        let told: Vec<_> = notes(&tree).map(|note| note.text).collect();
        assert!(matches!(told.as_slice(), [text] if text.contains("Grace Hopper")), "{told:?}");
        tree.write("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      1\nStatus:    online\n");
        let told: Vec<_> = notes(&tree).map(|note| note.text).collect();
        assert!(matches!(told.as_slice(), [text] if text.contains("of GPU 0009:01:00.0")), "{told:?}");
    }

    #[test]
    fn memory_that_is_a_node_is_told() {
        assert_eq!(memory_node("Node:      250\nStatus:    online\nAddress:   40000000000\n"), Some(250));
        assert_eq!(memory_node("Node:      250\nStatus:    offline\n"), None);
        assert_eq!(memory_node("Node: x\nStatus: online"), None);
    }
}
