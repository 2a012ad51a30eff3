//! Which way bytes go between two devices of a host, and how nvidia-smi would label it. Worked out from the PCI tree and the
//! GPUs' links; what a source told itself counts only where there is no tree.

use super::PathLabel;
use super::hardware::{Device, GpuLink, Hardware, LinkEnd, PciKind, ToldWhat};

/// A device and what lies between it and the processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// the device itself and the bridges above it, indices in [`Hardware::pci`]; empty for memory and for devices off the tree
    pub above: Vec<usize>,
    /// NUMA node's number
    pub numa: Option<usize>,
    /// true for memory, which is the processor's own
    pub memory: bool,
}

impl Chain {
    pub fn of(hardware: &Hardware, device: Device) -> Self {
        let on_tree = |pci: Option<usize>, numa: Option<usize>| {
            let above: Vec<usize> = pci.map_or_else(Vec::new, |pci| hardware.above(pci).collect());
            // Firmware often tells the node of the root alone.
            let numa = numa.or_else(|| above.iter().find_map(|&at| hardware.pci.get(at)?.numa));
            Self { above, numa, memory: false }
        };
        match device {
            Device::Gpu(gpu) => hardware.gpus.get(gpu).map_or_else(Self::default, |gpu| on_tree(gpu.pci, gpu.numa)),
            Device::Nic(nic) => hardware.nics.get(nic).map_or_else(Self::default, |nic| on_tree(nic.pci, nic.numa)),
            Device::Memory(node) => Self { above: Vec::new(), numa: Some(node), memory: true },
        }
    }

    /// Where two chains meet: positions in both of the nearest common device.
    pub fn meet(&self, other: &Self) -> Option<(usize, usize)> {
        self.above.iter().enumerate().find_map(|(at, device)| Some((at, other.above.iter().position(|theirs| theirs == device)?)))
    }
}

/// NUMA node of a device, if anything tells.
pub(super) fn near(hardware: &Hardware, device: Device) -> Option<usize> {
    Chain::of(hardware, device).numa
}

/// How two devices of a host reach each other; `None` where neither a tree nor a source says.
pub fn label(hardware: &Hardware, from: Device, to: Device) -> Option<PathLabel> {
    if from == to {
        return Some(PathLabel::Local);
    }
    if let (Device::Gpu(a), Device::Gpu(b)) = (from, to) {
        let links = links_between(hardware, a, b);
        if links > 0 {
            return Some(PathLabel::Nvl(links));
        }
    }
    between(hardware, &Chain::of(hardware, from), &Chain::of(hardware, to)).or_else(|| told(hardware, from, to))
}

/// What a source says itself of two devices, in whichever order it names them.
pub fn told(hardware: &Hardware, from: Device, to: Device) -> Option<PathLabel> {
    hardware.told.iter().find_map(|told| match told.what {
        ToldWhat::Label(label) if [(from, to), (to, from)].contains(&(told.from, told.to)) => Some(label),
        _ => None,
    })
}

/// Active links of a GPU.
pub(super) fn active(hardware: &Hardware, gpu: usize) -> impl Iterator<Item = &GpuLink> {
    hardware.gpu_links.iter().filter(move |link| link.gpu == gpu && link.active)
}

/// Active links that two GPUs have to each other, or, through switches, the fewer of theirs to these.
pub fn links_between(hardware: &Hardware, a: usize, b: usize) -> u32 {
    let count = |gpu, end| active(hardware, gpu).filter(|link| link.end == end).count();
    // Some sources tell a link at one of its ends only.
    let direct = count(a, LinkEnd::Gpu(b)).max(count(b, LinkEnd::Gpu(a)));
    let through = count(a, LinkEnd::Switch).min(count(b, LinkEnd::Switch));
    u32::try_from(direct + through).unwrap_or(u32::MAX)
}

/// The label of a way over PCIe alone.
pub(super) fn between(hardware: &Hardware, from: &Chain, to: &Chain) -> Option<PathLabel> {
    if let Some((here, there)) = from.meet(to) {
        let meeting = *from.above.get(here)?;
        if hardware.pci.get(meeting)?.kind == PciKind::HostBridge {
            return Some(PathLabel::Phb);
        }
        let passed = switches(hardware, from, here) + switches(hardware, to, there) + usize::from(is_switch(hardware, meeting));
        return Some(if passed <= 1 { PathLabel::Pix } else { PathLabel::Pxb });
    }
    let off_tree = |chain: &Chain| chain.above.is_empty() && !chain.memory;
    if off_tree(from) || off_tree(to) {
        return None;
    }
    match (from.numa, to.numa) {
        (Some(a), Some(b)) if a != b => Some(PathLabel::Sys),
        // On one node, or on a machine that has but one.
        (Some(_), Some(_)) => Some(if from.memory == to.memory { PathLabel::Node } else { PathLabel::Phb }),
        _ if hardware.numa.len() <= 1 && hardware.packages.len() <= 1 => Some(PathLabel::Node),
        _ => None,
    }
}

/// Switches that a way up to a meeting point passes below it.
fn switches(hardware: &Hardware, chain: &Chain, meeting: usize) -> usize {
    chain.above.iter().take(meeting).filter(|&&at| is_switch(hardware, at)).count()
}

/// A switch has one side up, and is counted by it. (A bridge that does not say what it is counts as one.)
fn is_switch(hardware: &Hardware, device: usize) -> bool {
    hardware.pci.get(device).is_some_and(|device| matches!(device.kind, PciKind::SwitchUp | PciKind::Bridge))
}
