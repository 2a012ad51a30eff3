//! hwloc's matrices: distances between NUMA nodes, and bandwidths of NVLinks and xGMI between GPUs and switches.

use std::collections::HashMap;

use roxmltree::Node;

use super::hwloc_io::Ends;
use super::links::MOST_LINKS;
use super::text::{amount, number};
use crate::topology::hardware::{GpuLink, GpuLinkKind, Hardware, LinkEnd, NumaNode};

/// The words of all children of a name, which are cut into lines.
fn words<'a>(node: Node<'a, '_>, name: &'a str) -> impl Iterator<Item = &'a str> {
    node.children().filter(move |child| child.has_tag_name(name)).filter_map(|child| child.text()).flat_map(str::split_whitespace)
}

/// Version 1: `<latency value=>` row by row, in the order of the nodes, relative to a base.
pub(super) fn latencies(node: Node<'_, '_>, numa: &mut [NumaNode]) {
    let base = node.attribute("latency_base").and_then(amount).unwrap_or(1.0);
    let values = node.children().filter(|child| child.has_tag_name("latency")).map(|child| child.attribute("value").and_then(amount));
    let values: Vec<u32> = values.map(|value| value.map_or(0, |value| (value * base).round().min(1e6) as u32)).collect();
    fill(numa, &(0..numa.len()).collect::<Vec<_>>(), &values);
}

/// Versions 2 and 3: the nodes' numbers, then the values.
pub(super) fn distances(node: Node<'_, '_>, numa: &mut [NumaNode]) {
    let places: Option<Vec<usize>> =
        words(node, "indexes").take(1024).map(|word| numa.iter().position(|known| Some(known.id) == number(word))).collect();
    let values: Vec<u32> = words(node, "u64values").map(|word| word.parse().unwrap_or_default()).collect();
    if let Some(places) = places {
        fill(numa, &places, &values);
    }
}

/// Rows of a square matrix, if it is one of all nodes.
fn fill(numa: &mut [NumaNode], places: &[usize], values: &[u32]) {
    let nodes = numa.len();
    if nodes == 0 || places.len() != nodes || nodes.checked_mul(nodes) != Some(values.len()) {
        return;
    }
    for (row, &from) in values.chunks(nodes).zip(places) {
        let mut distances = vec![0; nodes];
        for (&distance, &to) in row.iter().zip(places) {
            distances[to] = distance;
        }
        numa[from].distances = distances;
    }
}

/// What one index of a matrix names.
#[derive(Clone, Copy)]
enum End {
    Gpu(usize),
    Switch,
    Cpu(usize),
    Other,
}

/// Links from a matrix in MB/s: `OSDev:802 PCIDev:449`, or plain numbers in a matrix of one type.
pub(super) fn links(node: Node<'_, '_>, xgmi: bool, at: &Ends, nodes: &HashMap<String, usize>, host: &mut Hardware) {
    let end = |word: &str| {
        let (kind, gp) = word.split_once(':').unwrap_or(("", word));
        if let Some(&gpu) = at.gpus.get(gp).filter(|_| kind != "NUMANode" && kind != "Package") {
            End::Gpu(gpu)
        } else if at.switches.contains(gp) {
            End::Switch
        } else {
            nodes.get(gp).map_or(End::Other, |&node| End::Cpu(node))
        }
    };
    let ends: Vec<End> = words(node, "indexes").take(4096).map(end).collect();
    for (place, value) in words(node, "u64values").take(ends.len() * ends.len()).enumerate() {
        let (from, to) = (ends[place / ends.len()], ends[place % ends.len()]);
        let (End::Gpu(gpu), Some(rate)) = (from, amount(value).filter(|rate| *rate > 0.0)) else { continue };
        let end = match to {
            End::Gpu(peer) if peer == gpu => continue,
            End::Gpu(peer) => LinkEnd::Gpu(peer),
            End::Switch => LinkEnd::Switch,
            End::Cpu(node) => LinkEnd::Cpu(node),
            End::Other => LinkEnd::Unknown,
        };
        let kind = if xgmi { GpuLinkKind::Xgmi } else { GpuLinkKind::Nvlink };
        let count = if xgmi { 1 } else { count(rate) };
        let rate = Some(rate * 1e6 / f64::from(count));
        host.gpu_links.extend(std::iter::repeat_n(GpuLink { kind, gpu, end, active: true, rate, ..GpuLink::default() }, count as usize));
    }
}

/// How many links of one NVLink generation add up to a rate in MB/s: 25 GB/s for V100, A100 and H100, 20 for P100; 1 if none do.
fn count(rate: f64) -> u32 {
    let of = |one: f64| (1..=MOST_LINKS).find(|&count| (rate / f64::from(count) - one).abs() < 1.0);
    of(25e3).or_else(|| of(20e3)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn bandwidths_are_counted_as_links_to_gpus_switches_and_processors() {
        let gpu = |bus: u8| {
            format!(
                "<object type=\"PCIDev\" gp_index=\"{bus}\" pci_busid=\"0000:{bus:02x}:00.0\" pci_type=\"0302 [10de:1] [0:0] a1\"><object type=\"OSDev\" gp_index=\"5{bus}\" name=\"nvml{bus}\" osdev_type=\"12\"/></object>"
            )
        };
        let text = format!(
            "<topology version=\"3.0\"><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"8\" gp_index=\"3\"/>\
             <object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-05]\">{}{}\
             <object type=\"PCIDev\" gp_index=\"9\" subtype=\"NVSwitch\" pci_busid=\"0000:04:00.0\" pci_type=\"0000 [0:0] [0:0] 00\"/></object></object>\
             <distances2hetero nbobjs=\"4\" name=\"NVLinkBandwidth\"><indexes>OSDev:50 OSDev:51 </indexes><indexes>PCIDev:9 NUMANode:3</indexes>\
             <u64values>1000000 50000 25000 75000 50000 0 </u64values><u64values>0 33000 0 0 0 0 0 0 0 0</u64values></distances2hetero></topology>",
            gpu(0),
            gpu(1)
        );
        let host = xml::read(&xml::pieces(&text), "f").unwrap().1.remove(0);
        let ends: Vec<_> = host.gpu_links.iter().map(|link| (link.gpu, link.end, link.rate)).collect();
        let peer = |gpu, to| (gpu, LinkEnd::Gpu(to), Some(25e9));
        let cpu = (0, LinkEnd::Cpu(8), Some(25e9));
        let expected = [
            peer(0, 1),
            peer(0, 1),
            (0, LinkEnd::Switch, Some(25e9)),
            cpu,
            cpu,
            cpu,
            peer(1, 0),
            peer(1, 0),
            (1, LinkEnd::Cpu(8), Some(33e9)),
        ];
        assert_eq!(ends, expected);
    }

    #[test]
    fn a_matrix_of_other_nodes_fills_nothing() {
        let mut numa = vec![NumaNode::default(), NumaNode { id: 1, ..NumaNode::default() }];
        fill(&mut numa, &[0, 1], &[10, 20, 20]);
        fill(&mut numa, &[0], &[10]);
        assert!(numa.iter().all(|node| node.distances.is_empty()));
        fill(&mut numa, &[1, 0], &[10, 21, 22, 10]);
        assert_eq!((&numa[1].distances, &numa[0].distances), (&vec![21, 10], &vec![10, 22]));
    }
}
