//! What the hosts of a described machine are made of, as if they had been discovered: sockets, switches, cards and ports in the
//! places that the hosts table gives them, with the links that the hardware table names.

use super::Fabric;
use super::fault::FaultKind;
use crate::topology::hardware::{Gpu, GpuLink, GpuLinkKind, Hardware, LinkEnd, LinkLayer, Nic, NumaNode, Package, PciDevice, PciKind};
use crate::topology::{Lanes, PciAddress, PcieLink};

/// The hardware table of a fabric file. Each rank is a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parts {
    /// what each device is called
    pub device: String,
    /// of each device's slot
    pub pcie: Lanes,
    /// of each switch towards its processor
    pub uplink: Lanes,
    /// of each device, to the switches of its host
    pub nvlinks: u32,
    /// of one of them, bytes per second in one direction
    pub nvlink: f64,
    /// of each of the hosts table's NICs, bytes per second; 0 where there are none
    pub nic: f64,
}

/// Devices of a host's PCI tree, numbered as they are found.
struct Tree {
    pci: Vec<PciDevice>,
    /// the next bus
    bus: u32,
}

impl Tree {
    fn add(&mut self, kind: PciKind, parent: Option<usize>, numa: usize, class: u32, link: Option<PcieLink>) -> usize {
        let (domain, bus) = (self.bus >> 8, u8::try_from(self.bus & 0xff).unwrap_or_default());
        self.bus += 1;
        let address = PciAddress { domain, bus, ..PciAddress::default() };
        self.pci.push(PciDevice { address, parent, kind, class, numa: Some(numa), link, ..PciDevice::default() });
        self.pci.len() - 1
    }

    /// A root port on a host bridge of its own.
    fn root(&mut self, numa: usize) -> usize {
        let bridge = self.add(PciKind::HostBridge, None, numa, 0x06_0000, None);
        self.add(PciKind::RootPort, Some(bridge), numa, 0x06_0400, None)
    }
}

const fn trained(now: Lanes, most: Lanes) -> PcieLink {
    PcieLink { now: Some(now), most: Some(most), port: None }
}

impl Fabric {
    /// What its hosts are made of; none where the file has no hardware table.
    pub fn hardware(&self) -> Vec<Hardware> {
        let Some(parts) = &self.parts else { return Vec::new() };
        (0..self.layout.hosts.len()).map(|host| self.host(host, parts)).collect()
    }

    fn host(&self, host: usize, parts: &Parts) -> Hardware {
        let (layout, on_host) = (&self.layout, self.layout.ranks_per_host);
        let socket = |local: usize| layout.sockets.as_ref().map_or(0, |sockets| sockets.of[local]);
        let sockets = layout.sockets.as_ref().map_or(1, |sockets| sockets.count);
        let mut tree = Tree { pci: Vec::new(), bus: 0 };
        let mut hardware = Hardware { host: layout.hosts[host].clone(), source: format!("fabric {}", self.name), ..Hardware::default() };
        // Where a switch or socket has been put.
        let mut switches: Vec<Option<usize>> = vec![None; layout.switches.as_ref().map_or(0, |switches| switches.count)];
        let mut nics: Vec<Option<usize>> = vec![None; layout.nics.as_ref().filter(|_| parts.nic > 0.0).map_or(0, |nics| nics.count)];
        for local in 0..on_host {
            let numa = socket(local);
            let slot = |tree: &mut Tree, switches: &mut Vec<Option<usize>>| {
                let Some(number) = layout.switches.as_ref().map(|groups| groups.of[local]) else { return tree.root(numa) };
                let up = *switches[number].get_or_insert_with(|| {
                    let root = tree.root(numa);
                    tree.add(PciKind::SwitchUp, Some(root), numa, 0x06_0400, Some(trained(parts.uplink, parts.uplink)))
                });
                tree.add(PciKind::SwitchDown, Some(up), numa, 0x06_0400, None)
            };
            let under = slot(&mut tree, &mut switches);
            let now = Lanes { width: self.lanes(host * on_host + local).unwrap_or(parts.pcie.width), ..parts.pcie };
            let card = tree.add(PciKind::Endpoint, Some(under), numa, 0x03_0200, Some(trained(now, parts.pcie)));
            hardware.gpus.push(Gpu {
                index: local,
                name: parts.device.clone(),
                pci: Some(card),
                numa: Some(numa),
                memory: self.memory,
                ..Gpu::default()
            });
            let link = || GpuLink {
                kind: GpuLinkKind::Nvlink,
                gpu: local,
                end: LinkEnd::Switch,
                active: true,
                rate: Some(parts.nvlink),
                ..GpuLink::default()
            };
            hardware.gpu_links.extend((0..parts.nvlinks).map(|number| GpuLink { number: Some(number), ..link() }));
            if let Some(port) = layout.nics.as_ref().map(|nics| nics.of[local]).filter(|&port| nics.get(port) == Some(&None)) {
                let under = slot(&mut tree, &mut switches);
                nics[port] = Some(tree.add(PciKind::Endpoint, Some(under), numa, 0x02_0700, Some(trained(parts.pcie, parts.pcie))));
            }
        }
        let nics = nics.into_iter().enumerate().filter_map(|(number, pci)| {
            Some(Nic {
                name: format!("mlx5_{number}"),
                port: 1,
                pci: Some(pci?),
                layer: LinkLayer::InfiniBand,
                state: "active".to_owned(),
                rate: Some(parts.nic),
                ..Nic::default()
            })
        });
        hardware.nics = nics.collect();
        hardware.pci = tree.pci;
        hardware.packages = (0..sockets).map(|id| Package { id, ..Package::default() }).collect();
        let distances = |node: usize| (0..sockets).map(|other| if other == node { 10 } else { 21 }).collect();
        hardware.numa = (0..sockets).map(|id| NumaNode { id, distances: distances(id), ..NumaNode::default() }).collect();
        hardware
    }

    /// Lanes that a rank's device is trained to, where a fault says fewer.
    fn lanes(&self, rank: usize) -> Option<u32> {
        self.faults.iter().find_map(|fault| match fault.kind {
            FaultKind::Narrow { lanes, .. } if fault.from.as_ref().is_some_and(|ranks| ranks.binary_search(&rank).is_ok()) => Some(lanes),
            _ => None,
        })
    }

    /// The factor on a pair's rate of narrow slots at its ends: bytes that go by NVLink do not pass them.
    pub(super) fn narrowed(&self, from: usize, to: usize) -> f64 {
        let linked = self.parts.as_ref().is_some_and(|parts| parts.nvlinks > 0) && self.layout.host_of(from) == self.layout.host_of(to);
        if from == to || linked {
            return 1.0;
        }
        let ends = [from, to];
        let struck =
            |ranks: &Option<Vec<usize>>| ends.iter().any(|end| ranks.as_ref().is_some_and(|ranks| ranks.binary_search(end).is_ok()));
        let factors = self.faults.iter().map(|fault| match fault.kind {
            FaultKind::Narrow { factor, .. } if struck(&fault.from) => factor,
            _ => 1.0,
        });
        factors.fold(1.0, f64::min)
    }
}
