//! Fans: which peers each root has, at which widths.

use super::{Group, Peers, SweepSettings};
use crate::sample::Pattern;
use crate::topology::Topology;

/// Fans of every root at every width, each set of peers once.
pub(super) fn fans(pattern: Pattern, settings: &SweepSettings, ranks: &[usize], topology: &Topology) -> Vec<Group> {
    let mut fans: Vec<Group> = Vec::new();
    let mut add = |root: usize, peers: Vec<usize>| {
        if !peers.is_empty() {
            fans.push(Group::fan(pattern, root, peers));
        }
    };
    if let Peers::Listed(listed) = &settings.peers {
        for (root, peers) in listed {
            add(*root, peers.clone());
        }
        return fans;
    }
    let widths = widths(settings, topology);
    for (at, &root) in ranks.iter().enumerate() {
        let order = order(&settings.peers, at, ranks, topology);
        for &width in &widths {
            add(root, order.iter().copied().take(width).collect());
        }
    }
    fans
}

/// Widths of fans, ascending: as told, or the ranks of a host minus one (at least 1, and all others, up to 7, where every rank
/// has a host of its own).
pub fn widths(settings: &SweepSettings, topology: &Topology) -> Vec<usize> {
    let ranks = settings.ranks_of(topology.world());
    let others = ranks.len().saturating_sub(1);
    let mut widths = settings.widths.clone();
    if widths.is_empty() {
        let node_of = topology.node_of();
        let mut per_host = std::collections::HashMap::new();
        for &rank in &ranks {
            *per_host.entry(node_of.get(rank)).or_insert(0_usize) += 1;
        }
        let most = per_host.values().copied().max().unwrap_or(1).saturating_sub(1);
        widths.push(if most == 0 { others.min(7) } else { most });
    }
    widths.retain(|&width| width > 0);
    for width in &mut widths {
        *width = (*width).min(others);
    }
    widths.sort_unstable();
    widths.dedup();
    widths
}

/// The ranks that may be peers of the root `ranks[at]`, the first ones first.
fn order(choice: &Peers, at: usize, ranks: &[usize], topology: &Topology) -> Vec<usize> {
    let next = || (1..ranks.len()).map(|step| ranks[(at + step) % ranks.len()]);
    let host = |rank: usize| topology.ranks.get(rank).map(|placement| placement.host.as_str());
    let here = |&rank: &usize| host(rank) == host(ranks[at]);
    match choice {
        Peers::Next | Peers::Listed(_) => next().collect(),
        Peers::Nearest => next().filter(here).chain(next().filter(|rank| !here(rank))).collect(),
        // Switches are discovered with issue 4; until then a host counts as one.
        Peers::SameHost | Peers::SameSwitch => next().filter(here).collect(),
        Peers::CrossHost => next().filter(|rank| !here(rank)).collect(),
    }
}
