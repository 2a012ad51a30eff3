//! Routes between the ranks of a job.

use std::collections::HashMap;

use super::efficiency::Efficiency;
use super::hardware::{Device, GpuLink, GpuLinkKind, Hardware, LinkEnd};
use super::path::near;
use super::route::{Hop, HopKind, Route, nearest_port, port, way};
use super::{PathLabel, Topology};

/// Where a rank's transfers begin and end.
#[derive(Debug, Clone, Copy)]
struct End {
    /// index in [`Topology::hardware`]
    host: Option<usize>,
    /// of [`Topology::hosts`]
    node: usize,
    device: Device,
    /// what its way to and through its port should give
    exit: Option<f64>,
    port: Option<usize>,
    /// of a GPU: what its way to its host's memory should give
    host_link: Option<f64>,
}

/// What a pair of devices of one host has.
#[derive(Debug, Clone, Copy)]
struct Known {
    label: Option<PathLabel>,
    expected: Option<f64>,
}

/// Routes between the ranks of a job. What a pair needs is worked out once a host, so that a million pairs can be asked about.
/// It holds for the topology that it was made of.
#[derive(Debug, Clone, Default)]
pub struct Router {
    efficiency: Efficiency,
    ends: Vec<End>,
    inside: HashMap<(usize, Device, Device), Known>,
}

impl Router {
    pub fn new(topology: &Topology, efficiency: &Efficiency) -> Self {
        let index: HashMap<&str, usize> = topology.hardware.iter().enumerate().map(|(at, host)| (host.host.as_str(), at)).collect();
        let mut exits: HashMap<(usize, Device), (Option<usize>, Option<f64>)> = HashMap::new();
        let ends: Vec<End> = topology
            .ranks
            .iter()
            .zip(topology.node_of())
            .map(|(placement, node)| {
                let host = index.get(placement.host.as_str()).copied();
                let device = placement.gpu.map_or(Device::Memory(placement.numa.unwrap_or(0)), Device::Gpu);
                let found = host.and_then(|at| Some((at, topology.hardware.get(at)?)));
                let (port, exit) = found.map_or((None, None), |(at, hardware)| {
                    *exits.entry((at, device)).or_insert_with(|| {
                        let port = nearest_port(hardware, device);
                        (port, port.and_then(|nic| exit(hardware, device, nic, efficiency)))
                    })
                });
                let host_link = found.and_then(|(_, hardware)| to_memory(hardware, device, false, efficiency).expected);
                End { host, node, device, exit, port, host_link }
            })
            .collect();
        let mut devices: HashMap<usize, Vec<Device>> = HashMap::new();
        for end in &ends {
            if let Some(host) = end.host {
                let known = devices.entry(host).or_default();
                if !known.contains(&end.device) {
                    known.push(end.device);
                }
            }
        }
        let mut inside = HashMap::new();
        for (host, devices) in devices {
            for (&from, &to) in devices.iter().flat_map(|from| devices.iter().map(move |to| (from, to))) {
                let way = way(&topology.hardware[host], from, to, efficiency);
                inside.insert((host, from, to), Known { label: way.label, expected: way.expected });
            }
        }
        Self { efficiency: *efficiency, ends, inside }
    }

    /// The table that expected rates come from.
    pub const fn efficiency(&self) -> &Efficiency {
        &self.efficiency
    }

    /// False if no rank's host told what it is made of.
    pub fn knows(&self) -> bool {
        self.ends.iter().any(|end| end.host.is_some())
    }

    /// Where a rank's transfers begin and end: the index of its host in [`Topology::hardware`], and the device there.
    pub fn end(&self, rank: usize) -> Option<(usize, Device)> {
        let end = self.ends.get(rank)?;
        Some((end.host?, end.device))
    }

    /// The port that a rank's transfers to other hosts should use, an index in [`Hardware::nics`] of its host.
    pub fn port(&self, rank: usize) -> Option<usize> {
        self.ends.get(rank)?.port
    }

    fn pair(&self, from: usize, to: usize) -> Option<(&End, &End)> {
        self.ends.get(from).zip(self.ends.get(to))
    }

    fn known(&self, from: &End, to: &End) -> Option<Known> {
        self.inside.get(&(from.host?, from.device, to.device)).copied()
    }

    /// Path class of a pair of ranks; `None` when their host did not tell.
    pub fn label(&self, from: usize, to: usize) -> Option<PathLabel> {
        let (a, b) = self.pair(from, to)?;
        match (from == to, a.node == b.node) {
            (true, _) => Some(PathLabel::Local),
            (_, false) => Some(PathLabel::Net),
            // Two ranks on one memory or one GPU are near, but not one rank.
            _ if a.device == b.device => a.host.map(|_| PathLabel::Node),
            _ => self.known(a, b)?.label,
        }
    }

    /// What a pair of ranks should give alone, bytes per second; `None` when no hop between them has a known rate.
    pub fn expected(&self, from: usize, to: usize) -> Option<f64> {
        let (a, b) = self.pair(from, to)?;
        if from == to || (a.node == b.node && a.device == b.device) {
            return None;
        }
        if a.node == b.node { self.known(a, b)?.expected } else { Some(a.exit?.min(b.exit?)) }
    }

    /// What copies between a rank's GPU and its host's memory should give, bytes per second, either way; `None` without a GPU, and
    /// where no hop has a known rate.
    pub fn host_link(&self, rank: usize) -> Option<f64> {
        self.ends.get(rank)?.host_link
    }

    /// The way of such a copy, into the host's memory or (`into_gpu`) out of it, on the topology that this was made of.
    pub fn host_route(&self, topology: &Topology, rank: usize, into_gpu: bool) -> Route {
        let hardware = self.end(rank).and_then(|(at, device)| Some((topology.hardware.get(at)?, device)));
        hardware.map(|(hardware, device)| to_memory(hardware, device, into_gpu, &self.efficiency)).unwrap_or_default()
    }

    /// The way of a pair of ranks, hop by hop, on the topology that this was made of.
    pub fn route(&self, topology: &Topology, from: usize, to: usize) -> Route {
        let Some((a, b)) = self.pair(from, to) else { return Route::default() };
        let hardware = |end: &End| end.host.and_then(|at| topology.hardware.get(at));
        let label = self.label(from, to);
        if a.node == b.node {
            let found = hardware(a).map(|hardware| way(hardware, a.device, b.device, &self.efficiency)).unwrap_or_default();
            return Route { label, ..found };
        }
        let mut hops = Vec::new();
        if let (Some(hardware), Some(nic)) = (hardware(a), a.port) {
            hops.extend(way(hardware, a.device, Device::Nic(nic), &self.efficiency).hops);
            hops.extend(hardware.nics.get(nic).map(|nic| port(hardware, nic, true, &self.efficiency)));
        }
        if let (Some(here), Some(there)) = (hardware(a).filter(|_| a.port.is_some()), hardware(b).filter(|_| b.port.is_some())) {
            hops.push(Hop::new(HopKind::Network, here, format!("{} → {}", here.host, there.host)));
        }
        if let (Some(hardware), Some(nic)) = (hardware(b), b.port) {
            hops.extend(hardware.nics.get(nic).map(|nic| port(hardware, nic, false, &self.efficiency)));
            hops.extend(way(hardware, Device::Nic(nic), b.device, &self.efficiency).hops);
        }
        Route { label, hops, expected: self.expected(from, to) }
    }
}

/// The way between a GPU and the memory of its own node, or (`back`) from there. Nothing is known of one that has links of its own to a
/// processor: bytes take those, whatever its PCIe link can do.
fn to_memory(hardware: &Hardware, device: Device, back: bool, efficiency: &Efficiency) -> Route {
    let Device::Gpu(gpu) = device else { return Route::default() };
    let coherent = |link: &GpuLink| link.gpu == gpu && (link.kind == GpuLinkKind::C2c || matches!(link.end, LinkEnd::Cpu(_)));
    if hardware.gpu_links.iter().any(coherent) {
        return Route::default();
    }
    let memory = Device::Memory(near(hardware, device).unwrap_or(0));
    let (from, to) = if back { (memory, device) } else { (device, memory) };
    way(hardware, from, to, efficiency)
}

/// What the way from a device through a port should give.
fn exit(hardware: &Hardware, device: Device, nic: usize, efficiency: &Efficiency) -> Option<f64> {
    let inside = way(hardware, device, Device::Nic(nic), efficiency).expected;
    let wire = port(hardware, hardware.nics.get(nic)?, true, efficiency).expected?;
    Some(inside.map_or(wire, |inside| inside.min(wire)))
}
