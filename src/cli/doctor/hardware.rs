//! What can be seen of this machine's devices, and the way to see the rest.

use super::here::Here;
use super::{Found, State};
use crate::topology::hardware::{LinkLayer, PciKind};

/// What stands between this process and the machine.
pub(super) fn confines(here: &Here) -> Found {
    let hardware = here.hardware();
    let told: Vec<String> = [("virtual machine", &hardware.hypervisor), ("container", &hardware.container)]
        .into_iter()
        .filter_map(|(what, name)| Some(format!("{what} ({})", name.as_ref()?)))
        .collect();
    if told.is_empty() {
        return Found::ok("neither a virtual machine nor a container");
    }
    let notes = hardware.notes.iter().filter(|note| ["virtual machine", "container"].contains(&note.about.as_str()));
    let ways: Vec<&str> = notes.filter_map(|note| note.text.rsplit_once("; ").map(|(_, way)| way)).collect();
    Found::not(State::Warn, told.join(" in a "), format!("what is hidden: {}", ways.join("; ")))
}

pub(super) fn pci(here: &Here) -> Found {
    let hardware = here.hardware();
    let trees = hardware.pci.iter().filter(|device| device.kind == PciKind::HostBridge).count();
    let devices = hardware.pci.len() - trees;
    if devices == 0 {
        let fix = "mount sysfs at /sys (mount -t sysfs sysfs /sys), or give the container the host's; a machine without PCI has none";
        return Found::not(State::Absent, "no PCI devices are shown", fix);
    }
    let links = hardware.pci.iter().filter(|device| device.link.is_some_and(|link| link.now.is_some())).count();
    let fact =
        format!("devices: {devices}, host bridges: {trees}, GPUs: {}, links that tell speed and width: {links}", hardware.gpus.len());
    if links == 0 {
        return Found::not(State::Warn, fact, "a hypervisor hides them: run toposcope discover on the host, or import what it shows there");
    }
    Found::ok(fact)
}

pub(super) fn acs(here: &Here) -> Found {
    let hardware = here.hardware();
    let known = hardware.pci.iter().filter_map(|device| device.acs);
    let (ports, redirecting) = known.fold((0, 0), |(ports, redirecting), acs| (ports + 1, redirecting + usize::from(acs.redirects())));
    if let Some(note) = hardware.notes.iter().find(|note| note.about == "ACS" && note.text.contains("could not be read")) {
        let fact = note.text.split(", so ").next().unwrap_or(&note.text);
        return Found::not(State::Warn, fact, "start as root: sudo toposcope doctor, or sudo lspci -vvv | grep ACSCtl");
    }
    if ports == 0 {
        return Found::ok("no port with Access Control Services is shown");
    }
    let fact = format!("{redirecting} of {ports} ports redirect transfers between devices");
    if redirecting > 0 && hardware.iommu.as_deref() != Some("off") {
        let fix = "where devices need not be kept apart: clear it (setpci -s PORT ECAP_ACS+6.w=0000) and boot with iommu=pt";
        return Found::not(State::Warn, fact, fix);
    }
    Found::ok(fact)
}

pub(super) fn iommu(here: &Here) -> Found {
    match here.hardware().iommu.as_deref() {
        Some("translated") => {
            let fix = "boot with iommu=pt (Arm: iommu.passthrough=1) where devices need not be kept apart";
            Found::not(State::Warn, "translates every address that devices use", fix)
        }
        Some(state) => Found::ok(state),
        None => Found::not(State::Absent, "its state is not told", "look at the host's /proc/cmdline and dmesg | grep -i iommu"),
    }
}

pub(super) fn network(here: &Here) -> Found {
    let hardware = here.hardware();
    let rdma: Vec<_> = hardware.nics.iter().filter(|nic| nic.guid.is_some() || nic.layer != LinkLayer::Ethernet).collect();
    let others = hardware.nics.len() - rdma.len();
    let down: Vec<&str> = hardware.nics.iter().filter(|nic| !nic.up()).map(|nic| nic.name.as_str()).collect();
    let fact = format!("{} RDMA ports and {others} other interfaces", rdma.len());
    if !down.is_empty() {
        return Found::not(
            State::Warn,
            format!("{fact}; down: {}", down.join(", ")),
            "ip link set NAME up, or check cable and switch (ibstat)",
        );
    }
    if rdma.is_empty() {
        let fix = "install rdma-core and the adapter's driver; in a container give it /dev/infiniband and the host's network";
        return Found::not(State::Absent, fact, fix);
    }
    Found::ok(fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_told_with_the_way_to_see_it() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let port = "sys/devices/pci0000:00/0000:00:01.0";
        for (device, class) in [(port.to_owned(), "0x060400"), (format!("{port}/0000:01:00.0"), "0x020700")] {
            for (file, text) in [("class", class), ("current_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "16"), ("driver", "")] {
                write(&format!("{device}/{file}"), text);
            }
        }
        write(&format!("{port}/0000:01:00.0/infiniband/mlx5_0/x"), "");
        write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
        write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
        write(".dockerenv", "");
        write("proc/cmdline", "intel_iommu=on");
        write("sys/kernel/iommu_groups/0/type", "DMA");
        let here = Here::at(root.path(), []);
        for (check, state, word) in [
            (confines as fn(&Here) -> Found, State::Warn, "container (docker)"),
            (pci, State::Ok, "devices: 2, host bridges: 1, GPUs: 0, links that tell speed and width: 1"),
            (acs, State::Warn, "1 port(s) could not be read"),
            (iommu, State::Warn, "translates"),
            (network, State::Warn, "down: mlx5_0"),
        ] {
            let found = check(&here);
            assert!(found.state == state && found.fact.contains(word), "{found:?}");
        }
        assert!(confines(&here).fix.unwrap().contains("--network host"));
    }
}
