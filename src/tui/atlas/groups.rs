use crate::topology::hardware::{Device, PciKind};
use crate::topology::{Router, Topology};
use crate::units::plain;

/// By what the matrix rules ranks off from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    Host,
    /// NUMA node of the rank's device
    Socket,
    /// PCIe switch that the rank's device hangs on
    Switch,
}

/// Names of the groups that ranks are in, by hardware; empty where no host told what it is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    socket: Vec<String>,
    switch: Vec<String>,
}

impl Groups {
    pub fn of(topology: &Topology, router: &Router) -> Self {
        if !router.knows() {
            return Self::default();
        }
        let several = topology.hosts().len() > 1;
        // Switches are numbered in each host, in the order of its tree.
        let switches: Vec<Vec<usize>> = topology
            .hardware
            .iter()
            .map(|hardware| (0..hardware.pci.len()).filter(|&at| hardware.pci[at].kind == PciKind::SwitchUp).collect())
            .collect();
        let mut groups = Self::default();
        for (rank, placement) in topology.ranks.iter().enumerate() {
            let named = |what: String| if several { format!("{} {what}", plain(&placement.host)) } else { what };
            let (mut socket, mut switch) = (placement.numa, None);
            if let Some((at, Device::Gpu(gpu))) = router.end(rank)
                && let Some(hardware) = topology.hardware.get(at)
                && let Some(gpu) = hardware.gpus.get(gpu)
            {
                let mut above = gpu.pci.into_iter().flat_map(|pci| hardware.above(pci));
                switch = above.find_map(|pci| switches[at].iter().position(|&switch| switch == pci));
                let told = gpu.pci.into_iter().flat_map(|pci| hardware.above(pci)).find_map(|pci| hardware.pci.get(pci)?.numa);
                socket = gpu.numa.or(told).or(socket);
            }
            let socket = socket.map_or_else(|| "NUMA ?".to_owned(), |node| format!("NUMA {node}"));
            groups.switch.push(named(switch.map_or_else(|| socket.clone(), |switch| format!("sw{switch}"))));
            groups.socket.push(named(socket));
        }
        groups
    }

    /// The group that each rank is in; `None` by host, and where nothing is known.
    pub fn names(&self, by: Grouping) -> Option<&[String]> {
        let names = match by {
            Grouping::Host => return None,
            Grouping::Socket => &self.socket,
            Grouping::Switch => &self.switch,
        };
        (!names.is_empty()).then_some(names)
    }

    /// The next way to group that tells something new.
    pub fn next(&self, by: Grouping) -> Grouping {
        match by {
            Grouping::Host if !self.socket.is_empty() => Grouping::Socket,
            Grouping::Socket if self.switch != self.socket => Grouping::Switch,
            _ => Grouping::Host,
        }
    }
}
