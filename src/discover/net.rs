//! Network devices: `/sys/class/infiniband` (InfiniBand, RoCE, EFA) and `/sys/class/net`.

use std::collections::HashSet;
use std::path::Path;

use super::{pci, read};
use crate::topology::Hardware;
use crate::topology::hardware::{LinkLayer, Nic, NoteKind};

/// Loopback, and InfiniBand (`linux/if_arp.h`).
const LOOPBACK: i64 = 772;
const INFINIBAND: i64 = 32;
/// Entries of a GID table that are looked at.
const MOST_GIDS: usize = 4096;

/// Fill in the network devices of the machine below `root`; its PCI tree must be there.
pub(super) fn fill(root: &Path, hardware: &mut Hardware) {
    let mut taken = HashSet::new();
    rdma(root, hardware, &mut taken);
    interfaces(root, hardware, &taken);
}

/// RDMA devices, one entry a port. `taken` gets their network interfaces.
fn rdma(root: &Path, hardware: &mut Hardware, taken: &mut HashSet<String>) {
    let class = root.join("sys/class/infiniband");
    for name in read::names(&class) {
        let folder = class.join(&name);
        let nets = read::names(&folder.join("device/net"));
        taken.extend(nets.iter().cloned());
        let pci = pci::behind(root, hardware, &folder.join("device"));
        let numa = place(hardware, pci, &folder);
        for port_name in read::names(&folder.join("ports")) {
            let Ok(port) = port_name.parse::<u32>() else { continue };
            let at = folder.join("ports").join(&port_name);
            let interface = nets.iter().find(|net| of_port(&folder.join("device/net").join(net), port)).or(nets.first());
            let state = state(read::word(&at.join("state")).as_deref(), read::word(&at.join("phys_state")).as_deref());
            let mut nic = Nic {
                name: crate::units::plain(&name),
                interface: interface.map(|net| crate::units::plain(net)),
                port,
                pci,
                numa,
                layer: layer(read::word(&at.join("link_layer")).as_deref()),
                state,
                driver: read::linked(&folder.join("device/driver")),
                guid: read::word(&folder.join("node_guid")),
                gids: gids(&at.join("gids")),
                ..Nic::default()
            };
            // A port that is down tells the slowest rate of its kind.
            nic.rate = read::word(&at.join("rate")).and_then(|text| port_rate(&text)).filter(|_| nic.up());
            hardware.nics.push(nic);
        }
    }
}

/// A device with several ports has an interface for each, which counts ports from 0.
fn of_port(net: &Path, port: u32) -> bool {
    read::number(&net.join("dev_port")).is_some_and(|number| number + 1 == i64::from(port))
}

fn layer(text: Option<&str>) -> LinkLayer {
    match text {
        Some("InfiniBand") => LinkLayer::InfiniBand,
        Some("Ethernet") => LinkLayer::Ethernet,
        _ => LinkLayer::Other,
    }
}

/// `4: ACTIVE` and `5: LinkUp`, in small letters; of a port that is down why, if that is told.
fn state(logical: Option<&str>, physical: Option<&str>) -> String {
    let name = |text: &str| text.split_once(": ").map_or(text, |(_, name)| name).to_lowercase();
    let logical = logical.map(name).unwrap_or_default();
    match physical.map(name) {
        Some(why) if logical == "down" && matches!(why.as_str(), "polling" | "disabled") => why,
        _ => logical,
    }
}

/// `400 Gb/sec (4X NDR)`, bytes per second.
fn port_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let gigabits: f64 = number.parse().ok()?;
    (unit.starts_with("Gb/sec") && gigabits > 0.0 && gigabits < 1e5).then_some(gigabits * 1e9 / 8.0)
}

/// Entries that are not zero.
fn gids(folder: &Path) -> Option<u32> {
    let names = read::names(folder);
    let used = names.iter().take(MOST_GIDS).filter_map(|name| read::word(&folder.join(name)));
    let used = used.filter(|gid| gid.bytes().any(|byte| !matches!(byte, b'0' | b':'))).count();
    if names.is_empty() { None } else { u32::try_from(used).ok() }
}

/// NUMA node of a device: its own, or that of the PCI device behind it.
fn place(hardware: &Hardware, pci: Option<usize>, folder: &Path) -> Option<usize> {
    let own = read::number(&folder.join("device/numa_node")).and_then(|node| usize::try_from(node).ok());
    own.or_else(|| hardware.pci.get(pci?)?.numa)
}

/// Network interfaces that are no RDMA device's.
fn interfaces(root: &Path, hardware: &mut Hardware, taken: &HashSet<String>) {
    let class = root.join("sys/class/net");
    for name in read::names(&class).into_iter().filter(|name| !taken.contains(name)) {
        let folder = class.join(&name);
        let kind = read::number(&folder.join("type"));
        // `bonding_masters` is a file.
        if !folder.is_dir() || name == "lo" || kind == Some(LOOPBACK) {
            continue;
        }
        let state = read::word(&folder.join("operstate")).unwrap_or_default().to_lowercase();
        let real = folder.join("device").exists();
        // Tunnels do not tell a state; those with a carrier are in use.
        let used = state == "up" || (state == "unknown" && read::number(&folder.join("carrier")) == Some(1));
        if !real && !used {
            continue;
        }
        let pci = pci::behind(root, hardware, &folder.join("device"));
        let driver = read::linked(&folder.join("device/driver"));
        let name = crate::units::plain(&name);
        let rate = read::number(&folder.join("speed")).and_then(interface_rate).filter(|_| state != "down");
        if let Some(rate) = rate.filter(|_| !real) {
            let text =
                format!("a virtual interface: the {} Gbit/s that it tells is no wire's; what it carries must be measured", rate * 8e-9);
            hardware.note(NoteKind::Lie, name.clone(), text);
        }
        let layer = match (kind, driver.as_deref()) {
            (Some(INFINIBAND), _) => LinkLayer::InfiniBand,
            (_, Some(driver)) if driver.starts_with("cxi") => LinkLayer::Other,
            _ => LinkLayer::Ethernet,
        };
        let numa = place(hardware, pci, &folder);
        hardware.nics.push(Nic { name, port: 1, pci, numa, layer, state, rate, driver, ..Nic::default() });
    }
}

/// Mbit/s, as bytes per second; −1 (and the same without a sign) is told by what does not know.
fn interface_rate(speed: i64) -> Option<f64> {
    (speed > 0 && speed < i64::from(u32::MAX)).then_some(speed as f64 * 1e6 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::made::Tree;

    fn nics(tree: &Tree) -> Hardware {
        let mut hardware = Hardware::default();
        pci::fill(&tree.root(), &mut hardware);
        fill(&tree.root(), &mut hardware);
        hardware
    }

    #[test]
    fn states_and_rates_are_read_as_the_kernel_writes_them() {
        assert_eq!(state(Some("4: ACTIVE"), Some("5: LinkUp")), "active");
        assert_eq!(state(Some("1: DOWN"), Some("2: Polling")), "polling");
        assert_eq!(state(Some("1: DOWN"), Some("3: Disabled")), "disabled");
        assert_eq!(state(Some("1: DOWN"), None), "down");
        assert_eq!(state(None, None), "");
        assert_eq!(port_rate("400 Gb/sec (4X NDR)"), Some(50e9));
        assert_eq!(port_rate("2.5 Gb/sec (1X SDR)"), Some(312.5e6));
        assert_eq!(["", "fast", "-1 Gb/sec", "nan Gb/sec"].map(port_rate), [None; 4]);
        assert_eq!([100_000, -1, 0, 4_294_967_295].map(interface_rate), [Some(12.5e9), None, None, None]);
    }

    #[test]
    fn an_rdma_device_and_its_interface_are_one() {
        let tree = Tree::new();
        let device = tree.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x020000", "0x15b3", "0xa2dc", 0);
        tree.rdma(&device, "mlx5_0", (1, "4: ACTIVE", "100 Gb/sec (4X EDR)", "Ethernet"));
        tree.write(&format!("{device}/infiniband/mlx5_0/ports/1/gids/0"), "fe80:0000:0000:0000:0e42:a1ff:fe5c:0001");
        tree.write(&format!("{device}/infiniband/mlx5_0/ports/1/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000");
        tree.net(&device, "ens1f0np0", "up", "100000");
        tree.net(&device, "eth7", "up", "100000");
        tree.write(&format!("{device}/net/ens1f0np0/dev_port"), "0");
        tree.write(&format!("{device}/net/eth7/dev_port"), "1");
        let hardware = nics(&tree);
        let [nic] = hardware.nics.as_slice() else { panic!("{:?}", hardware.nics) };
        assert_eq!((nic.name.as_str(), nic.interface.as_deref(), nic.state.as_str()), ("mlx5_0", Some("ens1f0np0"), "active"));
        assert_eq!((nic.rate, nic.layer, nic.gids, nic.port), (Some(12.5e9), LinkLayer::Ethernet, Some(1), 1));
        assert_eq!(nic.pci.map(|pci| hardware.pci[pci].address.to_string()).as_deref(), Some("0000:01:00.0"));
    }

    #[test]
    fn a_port_that_is_down_has_no_rate() {
        let tree = Tree::new();
        let device = tree.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x020700", "0x15b3", "0x1021", 0);
        tree.rdma(&device, "mlx5_3", (1, "1: DOWN", "10 Gb/sec (4X SDR)", "InfiniBand"));
        let nic = nics(&tree).nics[0].clone();
        assert_eq!((nic.state.as_str(), nic.rate, nic.up(), nic.layer), ("down", None, false, LinkLayer::InfiniBand));
    }

    #[test]
    fn virtual_interfaces_count_when_they_are_up_and_their_rate_is_a_lie() {
        let tree = Tree::new();
        tree.net("sys/devices/virtual", "lo", "unknown", "-1");
        tree.net("sys/devices/virtual", "docker0", "down", "10000");
        tree.net("sys/devices/virtual", "e", "up", "10000");
        tree.write("sys/class/net/bonding_masters", "bond0");
        let device = tree.pci("pci0000:00/0000:00:03.0", "0x020000", "0x1af4", "0x1041", -1);
        tree.net(&device, "eth0", "down", "-1");
        let hardware = nics(&tree);
        let told: Vec<_> = hardware.nics.iter().map(|nic| (nic.name.as_str(), nic.rate, nic.pci.is_some())).collect();
        assert_eq!(told, [("e", Some(1.25e9), false), ("eth0", None, true)]);
        assert!(hardware.notes.iter().any(|note| note.kind == NoteKind::Lie && note.about == "e"), "{:?}", hardware.notes);
    }
}
