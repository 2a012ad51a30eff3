//! What was measured on: hosts, those alike together, and what each rank sits on.

use std::collections::BTreeMap;

use super::page::{Block, titles};
use crate::diagnose::Measured;
use crate::topology::hardware::Nic;
use crate::topology::{Hardware, Topology};
use crate::units::{format_gbps, format_ranks, format_size};

/// Ranks whose line is told at most.
const RANKS: usize = 1024;
/// Hosts that are named in one line at most.
const NAMED: usize = 8;
/// Notes of a host that are told at most.
const NOTES: usize = 12;

/// A word and what it says each.
type Facts = Vec<(&'static str, String)>;

/// Hosts and their hardware; `None` of both where nobody told.
pub fn hosts(topology: &Topology) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut alike: Vec<(Facts, Vec<&str>)> = Vec::new();
    for host in topology.hosts() {
        let told = topology.hardware_of(host).map(facts).unwrap_or_default();
        match alike.iter_mut().find(|(facts, _)| *facts == told) {
            Some((_, hosts)) => hosts.push(host),
            None => alike.push((told, vec![host])),
        }
    }
    for (facts, hosts) in alike {
        let shown = hosts.len().min(NAMED);
        let more = if hosts.len() > shown { format!(" and {} more", hosts.len() - shown) } else { String::new() };
        let number = if hosts.len() == 1 { String::new() } else { format!("{} hosts alike: ", hosts.len()) };
        blocks.push(Block::Heading(3, format!("{number}{}{more}", hosts[..shown].join(", "))));
        if facts.is_empty() {
            blocks.push(Block::Text("Nothing is told of what it is made of.".to_owned()));
        } else {
            blocks.push(Block::Items(facts));
        }
    }
    blocks
}

fn facts(hardware: &Hardware) -> Facts {
    let mut facts = Vec::new();
    let within = [
        hardware.hypervisor.as_ref().map(|name| format!("virtual machine ({name})")),
        hardware.container.as_ref().map(|name| format!("container ({name})")),
        hardware.iommu.as_ref().map(|state| format!("IOMMU {state}")),
    ];
    let product = Some(hardware.product.clone()).filter(|product| !product.is_empty());
    let machine: Vec<String> = product.into_iter().chain(within.into_iter().flatten()).collect();
    if !machine.is_empty() {
        facts.push(("machine", machine.join(" · ")));
    }
    let counted = |names: Vec<String>| {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for name in names {
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, number)) => *number += 1,
                None => kinds.push((name, 1)),
            }
        }
        let told: Vec<String> =
            kinds.into_iter().map(|(name, number)| if number == 1 { name } else { format!("{number} × {name}") }).collect();
        told.join("; ")
    };
    let packages = hardware.packages.iter().map(|package| format!("{}, {} cores", package.model, package.cores)).collect();
    let gpus = hardware.gpus.iter().map(|gpu| {
        let memory = if gpu.memory > 0 { format!(", {}", format_size(gpu.memory >> 20 << 20)) } else { String::new() };
        let trained = gpu.pci.and_then(|at| hardware.pci.get(at)?.link).and_then(|link| Some((link.now?, link.most)));
        let link = trained.map_or_else(String::new, |(now, most)| match most.filter(|most| *most != now) {
            Some(most) => format!(", PCIe {now} of {most}"),
            None => format!(", PCIe {now}"),
        });
        let held = if gpu.throttled.is_empty() { String::new() } else { format!(", held down: {}", gpu.throttled.join(", ")) };
        format!("{}{memory}{link}{held}", gpu.name)
    });
    for (word, text) in
        [("CPUs", counted(packages)), ("GPUs", counted(gpus.collect())), ("network", counted(hardware.nics.iter().map(nic).collect()))]
    {
        if !text.is_empty() {
            facts.push((word, text));
        }
    }
    if !hardware.numa.is_empty() {
        let memory: u64 = hardware.numa.iter().map(|node| node.memory).sum();
        let memory = if memory > 0 { format!(", {}", format_size(memory >> 20 << 20)) } else { String::new() };
        facts.push(("NUMA", format!("{} node{}{memory}", hardware.numa.len(), if hardware.numa.len() == 1 { "" } else { "s" })));
    }
    if !hardware.gpu_links.is_empty() {
        facts.push(("links", format!("{} ends of links between GPUs", hardware.gpu_links.len())));
    }
    let notes = &hardware.notes;
    facts.extend(notes.iter().take(NOTES).map(|note| ("note", format!("{}: {}", note.about, note.text))));
    if notes.len() > NOTES {
        facts.push(("note", format!("and {} more (toposcope discover)", notes.len() - NOTES)));
    }
    facts
}

fn nic(nic: &Nic) -> String {
    let rate = nic.rate.map(|rate| format!(", {} GB/s", format_gbps(rate))).unwrap_or_default();
    let state = if nic.state.is_empty() { String::new() } else { format!(", {}", nic.state) };
    format!("{}{rate}{state}", nic.name)
}

/// One line a rank: host, cores, NUMA node, GPU, its own copies.
pub fn ranks(measured: &Measured) -> Vec<Block> {
    let topology = &measured.topology;
    let dash = || "–".to_owned();
    let gpus: BTreeMap<usize, String> = topology
        .ranks
        .iter()
        .filter_map(|rank| {
            let gpu = topology.hardware_of(&rank.host)?.gpus.get(rank.gpu?)?;
            Some((rank.rank, format!("{} {}", gpu.index, gpu.name)))
        })
        .collect();
    let rows = topology.ranks.iter().take(RANKS).map(|rank| {
        let own = measured.local.get(rank.rank, rank.rank).map(|own| own.rate).filter(|rate| rate.is_finite());
        let mut row = vec![
            rank.rank.to_string(),
            rank.host.clone(),
            format_ranks(&rank.cores),
            rank.numa.map_or_else(dash, |node| node.to_string()),
            own.map_or_else(dash, format_gbps),
        ];
        if !gpus.is_empty() {
            row.push(gpus.get(&rank.rank).cloned().unwrap_or_else(dash));
        }
        row
    });
    let mut head = titles(["rank", "host", "cores", "NUMA", "own copies, GB/s"]);
    if !gpus.is_empty() {
        head.push("GPU".to_owned());
    }
    let mut blocks = vec![Block::Table { head, rows: rows.collect() }];
    if topology.world() > RANKS {
        blocks.push(Block::Text(format!("and {} more ranks, which are among the numbers below.", topology.world() - RANKS)));
    }
    blocks
}
