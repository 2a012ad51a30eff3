//! What hosts say of themselves that a fabric file has no words for.

use toposcope::diagnose::{Measured, Pairs};
use toposcope::sample::Status;
use toposcope::session::Header;
use toposcope::topology::hardware::{Acs, GpuLink, GpuLinkKind, LinkEnd, LinkLayer, Nic, PciDevice, PciKind};
use toposcope::topology::{Hardware, Lanes, PciAddress, PcieLink};

fn each(header: &mut Header, change: impl Fn(&mut Hardware)) {
    header.topology.hardware.iter_mut().for_each(change);
}

pub fn iommu(header: &mut Header, mode: &str) {
    each(header, |host| host.iommu = Some(mode.to_owned()));
}

/// Every switch port sends requests up, as `ACSCtl 0x001d` does.
pub fn redirect(header: &mut Header, mode: &str) {
    iommu(header, mode);
    each(header, |host| {
        let acs =
            Acs { source_validation: true, request_redirect: true, completion_redirect: true, upstream_forwarding: true, ..Acs::default() };
        host.pci.iter_mut().filter(|device| device.kind == PciKind::SwitchDown).for_each(|device| device.acs = Some(acs));
    });
}

pub fn direct(header: &mut Header, gdr: bool) {
    each(header, |host| host.nics.iter_mut().for_each(|nic| nic.gdr = Some(gdr)));
}

pub fn variable(header: &mut Header, name: &str, value: &str) {
    header.environment.insert(name.to_owned(), value.to_owned());
}

/// What the slots of some GPUs have, and what their links say now.
pub fn slot(header: &mut Header, gpus: &[usize], slot: &str, now: &str) {
    let (slot, now): (Lanes, Lanes) = (slot.parse().unwrap(), now.parse().unwrap());
    each(header, |host| {
        for &gpu in gpus {
            let card = &mut host.pci[host.gpus[gpu].pci.unwrap()];
            let most = card.link.and_then(|link| link.most);
            card.link = Some(PcieLink { now: Some(now), most, port: Some(slot) });
        }
    });
}

/// All that a rank sends arrives wrong.
pub fn corrupt(measured: &mut Measured, rank: u32) {
    let mut seen: Vec<_> = measured.peer.iter().copied().collect();
    seen.iter_mut().filter(|pair| pair.from == rank).for_each(|pair| {
        (pair.status, pair.rate, pair.n) = (Status::Corrupt, f64::NAN, 0);
    });
    measured.peer = Pairs::new(measured.world(), seen);
}

/// The ranks of host 1 move host memory.
pub fn host_memory_of_second_host(header: &mut Header) {
    let second = header.topology.hosts()[1].to_owned();
    header.topology.ranks.iter_mut().filter(|rank| rank.host == second).for_each(|rank| rank.gpu = None);
}

/// On the last host the first port is seen below a root of its own.
pub fn port_moved(header: &mut Header) {
    let host = header.topology.hardware.last_mut().unwrap();
    add_root(host, 0);
    let root = host.pci.len() - 1;
    let port = host.nics[0].pci.unwrap();
    // Parents come before their children.
    let mut moved = host.pci[port].clone();
    moved.parent = Some(root);
    host.pci.push(moved);
    host.pci[port].class = 0x08_8000;
    host.pci[port].address = PciAddress { domain: 9, ..PciAddress::default() };
    host.nics[0].pci = Some(host.pci.len() - 1);
}

fn add_root(host: &mut Hardware, numa: usize) {
    let bus = u8::try_from(0x80 + host.pci.len()).unwrap();
    let address = |domain| PciAddress { domain, bus, ..PciAddress::default() };
    let device = |address, kind, parent| PciDevice { address, kind, parent, class: 0x06_0400, numa: Some(numa), ..PciDevice::default() };
    host.pci.push(device(address(7), PciKind::HostBridge, None));
    let bridge = host.pci.len() - 1;
    host.pci.push(device(address(8), PciKind::RootPort, Some(bridge)));
}

/// Two ports on roots of their own, one for each socket.
pub fn storage_ports(header: &mut Header) {
    each(header, |host| {
        for numa in 0..2 {
            add_root(host, numa);
            let root = host.pci.len() - 1;
            let lanes = "Gen4 x16".parse().ok();
            let address = PciAddress { domain: 10, bus: u8::try_from(numa).unwrap(), ..PciAddress::default() };
            let link = Some(PcieLink { now: lanes, most: lanes, port: None });
            host.pci.push(PciDevice {
                address,
                kind: PciKind::Endpoint,
                class: 0x02_0700,
                parent: Some(root),
                link,
                numa: Some(numa),
                ..PciDevice::default()
            });
            host.nics.push(Nic {
                name: format!("mlx5_{}", 4 + numa),
                port: 1,
                pci: Some(host.pci.len() - 1),
                layer: LinkLayer::InfiniBand,
                state: "active".to_owned(),
                rate: Some(25e9),
                ..Nic::default()
            });
        }
    });
}

/// Hosts 2 and 3 number their ports in another way.
pub fn port_names(header: &mut Header) {
    for (at, host) in header.topology.hardware.iter_mut().enumerate() {
        let numbers = if at < 2 { [0, 3, 5, 8] } else { [0, 1, 4, 5] };
        host.nics.iter_mut().zip(numbers).for_each(|(nic, number)| nic.name = format!("mlx5_{number}"));
    }
}

/// Some links of a GPU are inactive.
pub fn down(header: &mut Header, gpu: usize, numbers: &[u32]) {
    each(header, |host| {
        let struck = |link: &&mut GpuLink| link.gpu == gpu && link.number.is_some_and(|number| numbers.contains(&number));
        host.gpu_links.iter_mut().filter(struck).for_each(|link| (link.active, link.end) = (false, LinkEnd::Unknown));
    });
}

fn bridge(header: &mut Header, up: u32, of: u32) {
    each(header, |host| {
        for gpu in 0..2 {
            host.gpu_links.extend((0..of).map(|number| GpuLink {
                kind: GpuLinkKind::Nvlink,
                gpu,
                number: Some(number),
                end: if number < up { LinkEnd::Gpu(1 - gpu) } else { LinkEnd::Unknown },
                active: number < up,
                version: Some(3),
                rate: Some(14e9),
            }));
        }
    });
}

pub fn loose_bridge(header: &mut Header) {
    bridge(header, 3, 4);
}

pub fn no_bridge(header: &mut Header) {
    bridge(header, 0, 12);
}

/// What a hypervisor shows: bridges of its own above the devices, at 2.5 GT/s x1.
pub fn emulated(header: &mut Header) {
    each(header, |host| {
        host.hypervisor = Some("KVM".to_owned());
        let slow = "Gen1 x1".parse().ok();
        for device in &mut host.pci {
            if device.kind.is_bridge() && device.kind != PciKind::HostBridge {
                (device.vendor, device.device) = (0x104c, 0x8232);
            }
            if device.link.is_some() {
                device.link = Some(PcieLink { now: slow, most: slow, port: None });
            }
        }
    });
}

/// Both ways at once, those of lower rank keep what they have and the others half.
pub fn one_way_halved(measured: &mut Measured) {
    let mut seen: Vec<_> = measured.duplex.iter().copied().collect();
    seen.iter_mut().filter(|pair| pair.from > pair.to).for_each(|pair| pair.rate /= 2.0);
    measured.duplex = Pairs::new(measured.world(), seen);
}
