//! What the machine is, what it runs under and in, and its IOMMU.

use std::path::Path;

use super::pci::Folders;
use super::read;
use crate::topology::Hardware;
use crate::topology::hardware::NoteKind;

/// Groups of the IOMMU that are looked at.
const MOST_GROUPS: usize = 4096;

/// What makers and products of virtual machines are called.
const VIRTUAL: [(&str, &str); 15] = [
    ("kvm", "KVM"),
    ("qemu", "QEMU"),
    ("vmware", "VMware"),
    ("virtual machine", "Hyper-V"),
    ("virtualbox", "VirtualBox"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("openstack", "OpenStack"),
    ("alibaba cloud", "Alibaba Cloud"),
    ("digitalocean", "DigitalOcean"),
    ("xen", "Xen"),
    ("bochs", "Bochs"),
    ("parallels", "Parallels"),
    ("bhyve", "bhyve"),
    ("apple virtualization", "Apple Virtualization"),
];

/// Clocks that a hypervisor offers its guests.
const CLOCKS: [(&str, &str); 3] = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];

/// Fill in product, hypervisor and container of the machine below `root`.
pub(super) fn fill(root: &Path, hardware: &mut Hardware) {
    hardware.product = product(root);
    hardware.hypervisor = hypervisor(root, &hardware.product);
    hardware.container = container(root);
    if let Some(hypervisor) = &hardware.hypervisor {
        let text = format!(
            "under {hypervisor} the PCI tree, link speeds, NUMA nodes and caches are what the hypervisor chooses to show, \
             and the host's IOMMU and ACS cannot be seen; ask its owner, or run toposcope discover on the host"
        );
        hardware.note(NoteKind::Unseen, "virtual machine", text);
    }
    if let Some(container) = &hardware.container {
        let text = format!(
            "in a container ({container}) network and RDMA devices that it was not given are not shown, nor is what needs root on the host; start it with the host's network and devices (docker: --network host --privileged), or run toposcope discover outside"
        );
        hardware.note(NoteKind::Unseen, "container", text);
    }
}

/// Maker and model, from the firmware's tables or the device tree.
fn product(root: &Path) -> String {
    let id = |name: &str| read::word(&root.join("sys/class/dmi/id").join(name));
    let (maker, model) = (id("sys_vendor"), id("product_name"));
    let told: Vec<String> = maker.into_iter().chain(model).filter(|text| !text.contains("To Be Filled")).collect();
    if told.is_empty() {
        return read::word(&root.join("sys/firmware/devicetree/base/model"))
            .or_else(|| read::word(&root.join("proc/device-tree/model")))
            .unwrap_or_default();
    }
    // Some say the maker's name in both.
    match told.as_slice() {
        [maker, model] if model.starts_with(maker.as_str()) => model.clone(),
        _ => told.join(" "),
    }
}

fn hypervisor(root: &Path, product: &str) -> Option<String> {
    let info = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags"));
    let guest = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // An x86 processor says whether there is a hypervisor: clouds rent whole machines under the same names.
    if guest == Some(false) {
        return None;
    }
    let small = product.to_lowercase();
    let named = VIRTUAL.iter().find(|(word, _)| small.contains(word)).map(|(_, name)| *name);
    let kernel = read::word(&root.join("sys/hypervisor/type")).filter(|kind| kind == "xen").map(|_| "Xen");
    let clocks = read::word(&root.join("sys/devices/system/clocksource/clocksource0/available_clocksource")).unwrap_or_default();
    let clock = CLOCKS.iter().find(|(word, _)| clocks.contains(word)).map(|(_, name)| *name);
    let name = named.filter(|_| !small.contains(".metal")).or(kernel).or(clock.filter(|_| guest == Some(true)));
    name.or((guest == Some(true)).then_some("unnamed hypervisor")).map(str::to_owned)
}

fn container(root: &Path) -> Option<String> {
    let there = |path: &str| root.join(path).exists();
    if let Some(told) = read::word(&root.join("run/systemd/container")) {
        return Some(told);
    }
    for (path, name) in [(".dockerenv", "docker"), ("run/.containerenv", "podman"), (".singularity.d", "Singularity")] {
        if there(path) {
            return Some(name.to_owned());
        }
    }
    let groups = read::text(&root.join("proc/1/cgroup")).unwrap_or_default();
    let known = [("kubepods", "Kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("containerd", "containerd"), ("lxc", "LXC")];
    // The path of process 1 itself, not that of what it has started.
    let known = known.iter().find(|(word, _)| groups.lines().any(|line| line.rsplit(':').next().is_some_and(|path| path.contains(word))));
    known.map(|(_, name)| (*name).to_owned())
}

/// `translated`, `passthrough` or `off`: by the groups of GPUs and network devices, else of all devices, else by the kernel's
/// command line. In a virtual machine without one nothing is known: the host may translate all the same.
pub(super) fn iommu(root: &Path, hardware: &Hardware, folders: &Folders) -> Option<String> {
    let devices = hardware.gpus.iter().map(|gpu| gpu.pci).chain(hardware.nics.iter().map(|nic| nic.pci));
    let of_devices = devices.flatten().filter_map(|pci| read::word(&folders.of(pci)?.join("iommu_group/type")));
    let groups = root.join("sys/kernel/iommu_groups");
    let numbers = read::names(&groups);
    let of_groups = numbers.iter().take(MOST_GROUPS).filter_map(|group| read::word(&groups.join(group).join("type")));
    if let Some(told) = told_by_types(of_devices).or_else(|| told_by_types(of_groups)) {
        return Some(told.to_owned());
    }
    let line = read::text(&root.join("proc/cmdline")).unwrap_or_default();
    if let Some(told) = told_by_line(&line, !numbers.is_empty()) {
        return Some(told.to_owned());
    }
    (groups.is_dir() && numbers.is_empty() && hardware.hypervisor.is_none()).then(|| "off".to_owned())
}

fn told_by_types(types: impl Iterator<Item = String>) -> Option<&'static str> {
    let mut told = None;
    for kind in types {
        match kind.as_str() {
            "DMA" | "DMA-FQ" | "DMA-SQ" => return Some("translated"),
            "identity" => told = Some("passthrough"),
            _ => {}
        }
    }
    told
}

/// The kernel's parameters; the last one of a name counts.
fn told_by_line(line: &str, groups: bool) -> Option<&'static str> {
    let value = |name: &str| line.split_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let has = |name: &str, wanted: &str| value(name).is_some_and(|value| value.split(',').any(|part| part == wanted));
    if ["iommu", "intel_iommu", "amd_iommu"].iter().any(|name| has(name, "off")) {
        return Some("off");
    }
    if has("iommu", "pt") || value("iommu.passthrough") == Some("1") {
        return groups.then_some("passthrough");
    }
    let on = has("intel_iommu", "on") || has("amd_iommu", "on") || has("iommu", "nopt") || value("iommu.passthrough") == Some("0");
    (on && groups).then_some("translated")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Machine;
    use crate::discover::made::Tree;

    fn guest(tree: &Tree, flags: &str, maker: &str, product: &str) -> Option<String> {
        tree.write("proc/cpuinfo", flags);
        tree.write("sys/class/dmi/id/sys_vendor", maker);
        tree.write("sys/class/dmi/id/product_name", product);
        Machine::at(tree.root()).hardware().hypervisor
    }

    #[test]
    fn virtual_machines_are_told_from_machines() {
        let tree = Tree::new();
        let (inside, outside) = ("flags\t: fpu hypervisor lm\n", "flags\t: fpu lm\n");
        for (flags, maker, product, expected) in [
            (inside, "QEMU", "Standard PC (Q35 + ICH9, 2009)", Some("QEMU")),
            (inside, "Microsoft Corporation", "Virtual Machine", Some("Hyper-V")),
            (inside, "Amazon EC2", "p5.48xlarge", Some("Amazon EC2")),
            (outside, "Amazon EC2", "g4dn.metal", None),
            ("", "Amazon EC2", "c7g.metal", None),
            ("", "Amazon EC2", "c7g.large", Some("Amazon EC2")),
            (outside, "Google", "Google Compute Engine", None),
            (outside, "Microsoft Corporation", "Surface", None),
            (outside, "Supermicro", "SYS-821GE-TNHR", None),
            (inside, "Acme", "Cloud", Some("unnamed hypervisor")),
        ] {
            assert_eq!(guest(&tree, flags, maker, product).as_deref(), expected, "{maker} {product}");
        }
        tree.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc");
        assert_eq!(guest(&tree, inside, "", "").as_deref(), Some("KVM"));
        let notes = Machine::at(tree.root()).hardware().notes;
        assert!(notes.iter().any(|note| note.kind == NoteKind::Unseen && note.text.contains("KVM")), "{notes:?}");
    }

    #[test]
    fn containers_are_told_by_what_they_leave() {
        let told = |path: &str, text: &str| {
            let tree = Tree::new();
            tree.write(path, text);
            container(&tree.root())
        };
        assert_eq!(told(".dockerenv", "").as_deref(), Some("docker"));
        assert_eq!(told("run/systemd/container", "lxc\n").as_deref(), Some("lxc"));
        assert_eq!(told("proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice\n").as_deref(), Some("Kubernetes"));
        assert_eq!(told("proc/1/cgroup", "0::/init.scope\n"), None);
    }

    #[test]
    fn the_iommu_is_told_by_groups_then_by_the_command_line() {
        let tree = Tree::new();
        let state = || Machine::at(tree.root()).hardware().iommu;
        assert_eq!(state(), None);
        std::fs::create_dir_all(tree.path("sys/kernel/iommu_groups")).unwrap();
        assert_eq!(state().as_deref(), Some("off"));
        tree.write("proc/cpuinfo", "flags : hypervisor\n");
        assert_eq!(state(), None, "a guest without one knows nothing of the host's");
        tree.write("proc/cpuinfo", "");
        std::fs::create_dir_all(tree.path("sys/kernel/iommu_groups/0")).unwrap();
        for (line, expected) in [
            ("ro quiet", None),
            ("intel_iommu=on iommu=pt", Some("passthrough")),
            ("intel_iommu=on", Some("translated")),
            ("intel_iommu=on,sm_on", Some("translated")),
            ("amd_iommu=off", Some("off")),
            ("iommu.passthrough=0 iommu.passthrough=1", Some("passthrough")),
        ] {
            tree.write("proc/cmdline", line);
            assert_eq!(state().as_deref(), expected, "{line}");
        }
        tree.write("sys/kernel/iommu_groups/0/type", "DMA-FQ");
        assert_eq!(state().as_deref(), Some("translated"));
        // A GPU's own group says more than that of a device that is kept apart.
        let gpu = tree.pci("pci0000:16/0000:16:01.0/0000:17:00.0", "0x030200", "0x10de", "0x2330", 0);
        tree.write(&format!("{gpu}/iommu_group/type"), "identity");
        assert_eq!(state().as_deref(), Some("passthrough"));
    }
}
