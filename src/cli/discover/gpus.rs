//! GPUs for people: what their driver tells beside their place in the PCI tree, equal ones in one line.

use std::collections::BTreeMap;

use crate::topology::Hardware;
use crate::topology::hardware::{Gpu, GpuLink, GpuLinkKind, LinkEnd};
use crate::units::{format_gbps, format_ranks, format_size};

/// `GPUs 0-3  80 GiB · SM 345 of 1980 MHz · 18 × NVLink 4 to switches, 450 GB/s`; nothing for GPUs whose driver told nothing.
pub(super) fn lines(hardware: &Hardware) -> Vec<String> {
    let mut alike: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, gpu) in hardware.gpus.iter().enumerate() {
        let facts = facts(hardware, at, gpu);
        if facts.is_empty() {
            continue;
        }
        match alike.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, gpus)) => gpus.push(gpu.index),
            None => alike.push((facts, vec![gpu.index])),
        }
    }
    let line = |(facts, mut gpus): (String, Vec<usize>)| {
        gpus.sort_unstable();
        let head = format!("GPU{} {}", if gpus.len() == 1 { "" } else { "s" }, format_ranks(&gpus));
        format!("  {head:<12} {facts}")
    };
    alike.into_iter().map(line).collect()
}

fn facts(hardware: &Hardware, at: usize, gpu: &Gpu) -> String {
    let mut facts = Vec::new();
    if gpu.memory > 0 {
        facts.push(format_size(gpu.memory >> 20 << 20));
    }
    if let Some((now, most)) = gpu.clock {
        facts.push(format!("SM {now} of {most} MHz"));
    }
    if !gpu.throttled.is_empty() {
        facts.push(format!("held down: {}", gpu.throttled.join(", ")));
    }
    if !gpu.mig.is_empty() {
        facts.push(format!("instances {}", gpu.mig.join(", ")));
    }
    facts.extend(links(hardware, at));
    facts.join(" · ")
}

/// A GPU's links by what they lead to, and how many are down.
fn links(hardware: &Hardware, gpu: usize) -> Vec<String> {
    let mut ends: BTreeMap<(String, String), (u32, Option<f64>)> = BTreeMap::new();
    let mut down = 0;
    for link in hardware.gpu_links.iter().filter(|link| link.gpu == gpu) {
        if link.active {
            let (number, rate) = ends.entry((name(link), end(hardware, link.end))).or_insert((0, Some(0.0)));
            *number += 1;
            *rate = rate.zip(link.rate).map(|(sum, rate)| sum + rate);
        } else {
            down += 1;
        }
    }
    let mut told: Vec<String> = ends
        .into_iter()
        .map(|((name, end), (number, rate))| {
            let rate = rate.map_or_else(String::new, |rate| format!(", {} GB/s", format_gbps(rate)));
            format!("{number} × {name} to {end}{rate}")
        })
        .collect();
    if down > 0 {
        told.push(format!("{down} link{} down", if down == 1 { "" } else { "s" }));
    }
    told
}

fn name(link: &GpuLink) -> String {
    match (link.kind, link.version) {
        (GpuLinkKind::Nvlink, Some(version)) => format!("NVLink {version}"),
        (GpuLinkKind::Nvlink, None) => "NVLink".to_owned(),
        (GpuLinkKind::C2c, _) => "NVLink-C2C".to_owned(),
        (GpuLinkKind::Xgmi, _) => "xGMI".to_owned(),
    }
}

fn end(hardware: &Hardware, end: LinkEnd) -> String {
    match end {
        LinkEnd::Gpu(gpu) => format!("GPU {}", hardware.gpus.get(gpu).map_or(gpu, |gpu| gpu.index)),
        LinkEnd::Switch => "switches".to_owned(),
        LinkEnd::Cpu(node) => format!("the processor of NUMA node {node}"),
        LinkEnd::Unknown => "something unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_gpus_are_one_line_and_what_differs_is_another() {
        let gpu = |index| Gpu { index, memory: 80 << 30, clock: Some((345, 1980)), ..Gpu::default() };
        let link = |gpu, end, active| GpuLink { gpu, end, active, version: Some(4), rate: Some(25e9), ..GpuLink::default() };
        let mut hardware = Hardware { gpus: (0..4).map(gpu).collect(), ..Hardware::default() };
        hardware.gpus[3].throttled = vec!["heat".to_owned()];
        for gpu in 0..3 {
            hardware.gpu_links.extend((0..18).map(|number| link(gpu, LinkEnd::Switch, (gpu, number) != (1, 5))));
        }
        hardware.gpu_links.push(GpuLink { rate: None, ..link(3, LinkEnd::Gpu(0), true) });
        let expected = [
            "  GPUs 0,2     80 GiB · SM 345 of 1980 MHz · 18 × NVLink 4 to switches, 450 GB/s",
            "  GPU 1        80 GiB · SM 345 of 1980 MHz · 17 × NVLink 4 to switches, 425 GB/s · 1 link down",
            "  GPU 3        80 GiB · SM 345 of 1980 MHz · held down: heat · 1 × NVLink 4 to GPU 0",
        ];
        assert_eq!(lines(&hardware), expected);
        assert_eq!(lines(&Hardware { gpus: vec![Gpu::default()], ..Hardware::default() }), [""; 0]);
    }
}
