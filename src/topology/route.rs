//! The hops of a transfer between two devices or two ranks, and what each should give.
//!
//! A hop's nominal rate is what its hardware can do; its expected rate is that times an [`Efficiency`]. What it is trained to now
//! does not lower what is expected: a card on half of its lanes is a fault to be seen, not a machine to be content with.

use super::efficiency::Efficiency;
use super::hardware::{Device, GpuLinkKind, Hardware, LinkEnd, LinkLayer, Nic, PciKind};
use super::link::{Doubt, reading};
use super::path::{Chain, active, between, label, links_between};
use super::{Lanes, PathLabel};

/// What kind of thing bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HopKind {
    Pcie,
    GpuLink,
    /// between host bridges or sockets of one host; its rate is nobody's business to tell
    Processor,
    /// a NIC's port
    Port,
    /// between the ports of two hosts
    Network,
}

/// What is wrong or doubtful about a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// fewer lanes or links than there could be
    Narrow,
    /// not to be taken as it says
    Doubt(Doubt),
    /// no link at all
    Down,
}

/// One thing that bytes pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    pub kind: HopKind,
    /// host name
    pub host: String,
    /// `GPU 3 → switch 17:00.0`
    pub name: String,
    /// how it is trained: `Gen4 x8 of x16`; empty when there is nothing to tell
    pub state: String,
    /// of PCIe, what it says it is trained to now, if it is believed
    pub trained: Option<Lanes>,
    /// what it can do, bytes per second in this direction
    pub nominal: Option<f64>,
    /// as it is now, if it is believed
    pub now: Option<f64>,
    /// what it should give
    pub expected: Option<f64>,
    pub flag: Option<Flag>,
}

impl Hop {
    pub(super) fn new(kind: HopKind, hardware: &Hardware, name: String) -> Self {
        Self {
            kind,
            host: hardware.host.clone(),
            name,
            state: String::new(),
            trained: None,
            nominal: None,
            now: None,
            expected: None,
            flag: None,
        }
    }
}

/// A whole way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Route {
    pub label: Option<PathLabel>,
    /// in the order in which bytes pass them
    pub hops: Vec<Hop>,
    /// what the way as a whole should give, bytes per second; `None` when no hop has a rate
    pub expected: Option<f64>,
}

/// The way between two devices of one host.
pub fn way(hardware: &Hardware, from: Device, to: Device, efficiency: &Efficiency) -> Route {
    if from == to {
        return Route { label: Some(PathLabel::Local), ..Route::default() };
    }
    let label = label(hardware, from, to);
    if let (Some(PathLabel::Nvl(_)), Device::Gpu(a), Device::Gpu(b)) = (label, from, to) {
        return ended(label, over_links(hardware, a, b, efficiency), None);
    }
    let (up, down) = (Chain::of(hardware, from), Chain::of(hardware, to));
    let meeting = up.meet(&down);
    let (here, there) = meeting.unwrap_or((up.above.len(), down.above.len()));
    let mut hops: Vec<Hop> = up.above.iter().take(here).filter_map(|&at| pcie(hardware, at, true, efficiency)).collect();
    let across = match (meeting, up.numa, down.numa) {
        (None, Some(a), Some(b)) if a != b => Some(format!("NUMA {a} → NUMA {b}")),
        (None, _, _) if !up.memory && !down.memory => Some("between host bridges".to_owned()),
        _ => None,
    };
    hops.extend(across.map(|name| Hop::new(HopKind::Processor, hardware, name)));
    hops.extend(down.above.iter().take(there).rev().filter_map(|&at| pcie(hardware, at, false, efficiency)));
    let devices = !up.memory && !down.memory;
    ended(label, hops, (devices && label == Some(PathLabel::Sys)).then_some(efficiency.gpudirect_cross_socket))
}

/// A way gives what its slowest hop gives, or a share of that.
fn ended(label: Option<PathLabel>, hops: Vec<Hop>, share: Option<f64>) -> Route {
    let slowest = hops.iter().filter_map(|hop| hop.expected).min_by(f64::total_cmp);
    Route { label, expected: slowest.map(|rate| rate * share.unwrap_or(1.0)), hops }
}

/// The link above a device, if it has one of its own.
fn pcie(hardware: &Hardware, at: usize, up: bool, efficiency: &Efficiency) -> Option<Hop> {
    let read = reading(hardware, at)?;
    let (low, high) =
        (name(hardware, at), hardware.pci.get(at)?.parent.map_or_else(|| "processor".to_owned(), |above| name(hardware, above)));
    let mut hop = Hop::new(HopKind::Pcie, hardware, if up { format!("{low} → {high}") } else { format!("{high} → {low}") });
    hop.state = read.words();
    hop.nominal = read.most.or(read.now.filter(|_| read.doubt.is_none())).map(Lanes::rate);
    hop.trained = read.now;
    hop.now = read.now.map(Lanes::rate);
    hop.expected = hop.nominal.map(|rate| rate * efficiency.pcie);
    hop.flag = if read.narrow() { Some(Flag::Narrow) } else { read.doubt.map(Flag::Doubt) };
    Some(hop)
}

/// What a person calls a device of the tree.
pub fn name(hardware: &Hardware, at: usize) -> String {
    if let Some(gpu) = hardware.gpus.iter().find(|gpu| gpu.pci == Some(at)) {
        return format!("GPU {}", gpu.index);
    }
    if let Some(nic) = hardware.nics.iter().find(|nic| nic.pci == Some(at)) {
        return nic.name.clone();
    }
    hardware.pci.get(at).map_or_else(String::new, |device| match device.kind {
        PciKind::HostBridge => format!("host bridge {:04x}:{:02x}", device.address.domain, device.address.bus),
        PciKind::RootPort => format!("root port {}", device.address),
        PciKind::SwitchUp | PciKind::SwitchDown => format!("switch {}", device.address),
        PciKind::Bridge => format!("bridge {}", device.address),
        PciKind::Endpoint => device.address.to_string(),
    })
}

fn over_links(hardware: &Hardware, a: usize, b: usize, efficiency: &Efficiency) -> Vec<Hop> {
    let direct = active(hardware, a).any(|link| link.end == LinkEnd::Gpu(b)) || active(hardware, b).any(|link| link.end == LinkEnd::Gpu(a));
    let title = |gpu: usize| format!("GPU {}", hardware.gpus.get(gpu).map_or(gpu, |gpu| gpu.index));
    if direct {
        return vec![links(hardware, a, links_between(hardware, a, b), format!("{} → {}", title(a), title(b)), efficiency, false)];
    }
    let count = |gpu| u32::try_from(active(hardware, gpu).filter(|link| link.end == LinkEnd::Switch).count()).unwrap_or(u32::MAX);
    vec![
        links(hardware, a, count(a), format!("{} → NVSwitch", title(a)), efficiency, true),
        links(hardware, b, count(b), format!("NVSwitch → {}", title(b)), efficiency, true),
    ]
}

/// So many links of a GPU at once. All of those to switches should be up; how many there are between two GPUs, nobody can tell.
fn links(hardware: &Hardware, gpu: usize, up: u32, name: String, efficiency: &Efficiency, switched: bool) -> Hop {
    let own = || hardware.gpu_links.iter().filter(move |link| link.gpu == gpu);
    let (kind, rate) = active(hardware, gpu).next().map_or((GpuLinkKind::Nvlink, None), |link| (link.kind, link.rate));
    let down = u32::try_from(own().filter(|link| !link.active).count()).unwrap_or(u32::MAX);
    let all = if switched { up.saturating_add(down) } else { up };
    let mut hop = Hop::new(HopKind::GpuLink, hardware, name);
    let (title, share) = match kind {
        GpuLinkKind::Nvlink => ("NVLink", efficiency.nvlink),
        GpuLinkKind::Xgmi => ("xGMI", efficiency.xgmi),
        GpuLinkKind::C2c => ("C2C", efficiency.c2c),
    };
    hop.state = if down > 0 { format!("{title} ×{up}, {down} down") } else { format!("{title} ×{up}") };
    // A bridge between two cards leaves links unfitted: no fault.
    hop.flag = (switched && down > 0).then_some(Flag::Narrow);
    hop.nominal = rate.map(|rate| rate * f64::from(all));
    hop.now = rate.map(|rate| rate * f64::from(up));
    hop.expected = hop.nominal.map(|rate| rate * share);
    hop
}

pub(super) fn port(hardware: &Hardware, nic: &Nic, out: bool, efficiency: &Efficiency) -> Hop {
    let mut hop =
        Hop::new(HopKind::Port, hardware, if out { format!("{} → network", nic.name) } else { format!("network → {}", nic.name) });
    let share = if nic.layer == LinkLayer::InfiniBand || nic.interface.is_some() { efficiency.infiniband } else { efficiency.ethernet };
    hop.state = [nic.rate.map(|rate| format!("{} Gbit/s", rate * 8e-9)), Some(nic.state.clone()).filter(|state| !state.is_empty())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    (hop.nominal, hop.now) = (nic.rate, nic.rate);
    hop.expected = nic.rate.map(|rate| rate * share);
    hop.flag = (!nic.up()).then_some(Flag::Down);
    hop
}

/// The port that transfers between this device and other hosts should use: of those that are up and not much slower than the
/// fastest, the nearest one. GPUs that have the same ones equally near share them out in turn.
pub fn nearest_port(hardware: &Hardware, device: Device) -> Option<usize> {
    let near = nearest_ports(hardware, device);
    let before = match device {
        Device::Gpu(gpu) if near.len() > 1 => (0..gpu).filter(|&other| nearest_ports(hardware, Device::Gpu(other)) == near).count(),
        _ => 0,
    };
    near.get(before % near.len().max(1)).copied()
}

/// All ports that are as near as the nearest.
fn nearest_ports(hardware: &Hardware, device: Device) -> Vec<usize> {
    let real = hardware.nics.iter().any(|nic| nic.pci.is_some() && nic.up());
    let usable = |nic: &&(usize, &Nic)| nic.1.up() && (nic.1.pci.is_some() || !real);
    let nics: Vec<(usize, &Nic)> = hardware.nics.iter().enumerate().collect();
    let fastest = nics.iter().filter(usable).filter_map(|(_, nic)| nic.rate).fold(0.0, f64::max);
    let chain = Chain::of(hardware, device);
    let near = |nic: usize| {
        let told = || super::path::told(hardware, device, Device::Nic(nic));
        between(hardware, &chain, &Chain::of(hardware, Device::Nic(nic))).or_else(told).unwrap_or(PathLabel::Net)
    };
    let fast = nics.iter().filter(usable).filter(|(_, nic)| nic.rate.unwrap_or(0.0) * 2.0 >= fastest);
    let labelled: Vec<(PathLabel, usize)> = fast.map(|&(at, _)| (near(at), at)).collect();
    let nearest = labelled.iter().map(|&(label, _)| label).min();
    labelled.into_iter().filter(|&(label, _)| Some(label) == nearest).map(|(_, at)| at).collect()
}
