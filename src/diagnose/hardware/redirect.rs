//! Switch ports that send transfers between devices up to the processor (PCI Express Base Specification 6.0, 6.12, Access Control
//! Services): with an IOMMU that translates they cost rate and latency (NVIDIA/nccl#2409, NVIDIA/nccl-tests#252).

use std::collections::BTreeSet;

use super::evidence::{Cells, finding, percent, said};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, Silenced, View};
use crate::topology::PathLabel;
use crate::topology::hardware::{Acs, Device, Hardware, PciKind};
use crate::units::{format_gbps, format_ranks};

pub const REDIRECT: Rule =
    Rule { name: "acs-redirect", summary: "switch ports send transfers between devices by way of the processor, and it shows", check };

/// At this share of what the hardware should give, redirection costs nothing.
const FINE: f64 = 0.85;

/// Ports of a switch that redirect, indices in [`Hardware::pci`]. A root port has nothing to pass by: its peers are reached by the
/// processor anyway.
pub fn redirecting(hardware: &Hardware) -> BTreeSet<usize> {
    let ports = hardware.pci.iter().enumerate();
    ports
        .filter(|(_, device)| matches!(device.kind, PciKind::SwitchDown | PciKind::Bridge) && device.acs.is_some_and(Acs::redirects))
        .map(|(at, _)| at)
        .collect()
}

fn above(hardware: &Hardware, device: Device) -> Vec<usize> {
    let pci = match device {
        Device::Gpu(gpu) => hardware.gpus.get(gpu).and_then(|gpu| gpu.pci),
        Device::Nic(nic) => hardware.nics.get(nic).and_then(|nic| nic.pci),
        Device::Memory(_) => None,
    };
    pci.map_or_else(Vec::new, |pci| hardware.above(pci).collect())
}

/// True if the way between two devices turns round below the processor at ports that redirect.
fn turned(hardware: &Hardware, ports: &BTreeSet<usize>, a: Device, b: Device) -> bool {
    let (a, b) = (above(hardware, a), above(hardware, b));
    let Some(meet) = a.iter().find(|at| b.contains(at)) else { return false };
    let below = hardware.pci.get(*meet).is_some_and(|device| device.kind != PciKind::HostBridge);
    below && [&a, &b].iter().any(|chain| chain.iter().take_while(|at| *at != meet).any(|at| ports.contains(at)))
}

/// A host's ranks by what is redirected of theirs.
#[derive(Debug, Default)]
struct Struck {
    /// pairs of ranks within the host
    inside: Vec<(usize, usize)>,
    /// ranks on their way to their port
    out: Vec<usize>,
}

fn struck(measured: &Measured, host: usize, ports: &BTreeSet<usize>) -> Struck {
    let hardware = &measured.topology.hardware[host];
    let here: Vec<(usize, Device)> = (0..measured.world())
        .filter_map(|rank| measured.router.end(rank).filter(|&(at, _)| at == host).map(|(_, device)| (rank, device)))
        .collect();
    let mut struck = Struck::default();
    for &(from, a) in &here {
        let near = |to: usize| matches!(measured.router.label(from, to), Some(PathLabel::Pix | PathLabel::Pxb));
        struck
            .inside
            .extend(here.iter().filter(|&&(to, b)| to != from && near(to) && turned(hardware, ports, a, b)).map(|&(to, _)| (from, to)));
        if measured.router.port(from).is_some_and(|nic| turned(hardware, ports, a, Device::Nic(nic))) {
            struck.out.push(from);
        }
    }
    struck
}

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let (mut hosts, mut bridges, mut ranks) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut inside, mut out) = (Vec::new(), BTreeSet::new());
    for (host, hardware) in measured.topology.hardware.iter().enumerate() {
        let ports = redirecting(hardware);
        if ports.is_empty() {
            continue;
        }
        let struck = struck(measured, host, &ports);
        if struck.inside.is_empty() && struck.out.is_empty() {
            continue;
        }
        hosts.push(host);
        bridges.extend(ports.iter().map(|&at| hardware.pci[at].address.to_string()));
        ranks.extend(struck.inside.iter().map(|pair| pair.0).chain(struck.out.iter().copied()));
        inside.extend(struck.inside);
        out.extend(struck.out);
    }
    let Some(&first) = hosts.first() else { return Vec::new() };
    let hardware = &measured.topology.hardware[first];
    let node_of = measured.topology.node_of();
    let world = measured.world();
    let across = out.iter().flat_map(|&rank| {
        let others = (0..world).filter(move |&other| other != rank);
        others.map(move |other| (rank, other))
    });
    let across: Vec<(usize, usize)> =
        across.filter(|&(rank, other)| node_of[rank] != node_of[other]).flat_map(|(rank, other)| [(rank, other), (other, rank)]).collect();
    let (inside, across) = (Cells::of(measured, inside), Cells::of(measured, across));
    let more = if hosts.len() > 1 { format!(" and {} more hosts", hosts.len() - 1) } else { String::new() };
    let title = format!("{} switch ports of {}{more} send transfers between devices up to the processor", bridges.len(), hardware.host);
    let slow = |cells: &&Cells| if cells.of_expected.is_nan() { cells.slow() } else { cells.of_expected < FINE };
    let struck: Vec<&Cells> = [&inside, &across].into_iter().flatten().filter(slow).collect();
    if struck.is_empty()
        && let Some(cells) = inside.as_ref().or(across.as_ref())
    {
        let share = percent(cells.share());
        let why = format!("measured beats reported: pairs over them give {} GB/s, {share} of what they should", format_gbps(cells.rate));
        view.silenced.push(Silenced { rule: REDIRECT.name, say: title, why });
        return Vec::new();
    }
    let ranks: Vec<usize> = ranks.into_iter().collect();
    let left = struck.iter().map(|cells| if cells.of_expected.is_finite() { cells.of_expected } else { cells.share() }).fold(1.0, f64::min);
    let severity = if left < 0.5 { Severity::Problem } else { Severity::Warning };
    let iommu = hardware.iommu.as_deref().unwrap_or("not told");
    let mut facts =
        vec![said(format!("redirecting: {}; the IOMMU is {iommu}", bridges.iter().take(8).cloned().collect::<Vec<_>>().join(", ")))];
    facts.extend(inside.as_ref().map(|cells| cells.fact("below such switches")));
    facts.extend(across.as_ref().map(|cells| cells.fact("to ports below such switches")));
    facts.push(said(format!("concerned: rank {}", format_ranks(&ranks))));
    for cells in &struck {
        cells.claim(view);
    }
    let shape = Shape::Redirected { host: hardware.host.clone(), bridges, ranks };
    vec![Finding {
        amount: if struck.is_empty() { String::new() } else { percent(left) },
        weight: struck.iter().map(|cells| cells.pairs.len() as f64 * (1.0 - left)).sum(),
        facts,
        cells: struck.iter().flat_map(|cells| cells.cells()).collect(),
        ..finding(REDIRECT.name, format!("acs-redirect {}", hardware.host), severity, title, shape)
    }]
}
