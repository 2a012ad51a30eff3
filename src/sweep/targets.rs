//! Settings and where ranks sit -> what is measured.

use super::{Cell, Group, Peers, SweepSettings, Target};
use crate::sample::Pattern;
use crate::topology::Topology;

/// Transfers of one target: (sender, receiver) each.
pub type Flows = Vec<(usize, usize)>;

/// Everything that a sweep measures, with the transfers of groups (none told for pairs: the pair says it).
pub fn targets(settings: &SweepSettings, topology: &Topology) -> Vec<(Target, Flows)> {
    let ranks = settings.ranks_of(topology.world());
    let mut targets = Vec::new();
    for &pattern in &settings.patterns {
        match pattern {
            Pattern::Local => targets.extend(ranks.iter().map(|&rank| pair(pattern, rank, rank))),
            Pattern::Peer => {
                for &from in &ranks {
                    targets.extend(ranks.iter().filter(|&&to| to != from).map(|&to| pair(pattern, from, to)));
                }
            }
            Pattern::Duplex => {
                for (at, &from) in ranks.iter().enumerate() {
                    targets.extend(ranks[at + 1..].iter().map(|&to| pair(pattern, from, to)));
                }
            }
            Pattern::FanOut | Pattern::FanIn => targets.extend(fans(pattern, settings, &ranks, topology)),
            Pattern::Relay => {
                let n = ranks.len();
                let shifts = settings.shifts.iter().map(|&shift| shift % n.max(1)).filter(|&shift| shift > 0);
                targets.extend(shifts.map(|shift| {
                    let flows = (0..n).map(|at| (ranks[at], ranks[(at + shift) % n])).collect();
                    (Target::Group(Group::relay(shift)), flows)
                }));
            }
            Pattern::Custom => {
                let mut sets: Vec<u32> = settings.transfers.iter().map(|transfer| transfer.set).collect();
                sets.sort_unstable();
                sets.dedup();
                targets.extend(sets.into_iter().map(|set| {
                    let own = settings.transfers.iter().filter(|transfer| transfer.set == set);
                    (Target::Group(Group::custom(set)), own.map(|transfer| (transfer.from, transfer.to)).collect())
                }));
            }
        }
    }
    targets
}

fn pair(pattern: Pattern, from: usize, to: usize) -> (Target, Flows) {
    (Target::Pair(Cell { pattern, from, to }), Vec::new())
}

/// Fans of every root at every width, each set of peers once.
fn fans(pattern: Pattern, settings: &SweepSettings, ranks: &[usize], topology: &Topology) -> Vec<(Target, Flows)> {
    let mut fans: Vec<(Target, Flows)> = Vec::new();
    let mut add = |root: usize, peers: Vec<usize>| {
        if peers.is_empty() {
            return;
        }
        let group = Group::fan(pattern, root, peers);
        let flow = |&peer: &usize| if pattern == Pattern::FanOut { (root, peer) } else { (peer, root) };
        let flows = group.peers.iter().map(flow).collect();
        let target = Target::Group(group);
        if fans.last().is_none_or(|(last, _)| *last != target) {
            fans.push((target, flows));
        }
    };
    if let Peers::Listed(listed) = &settings.peers {
        for (root, peers) in listed {
            add(*root, peers.clone());
        }
        return fans;
    }
    let widths = widths(settings, topology);
    for &root in ranks {
        let order = order(&settings.peers, root, ranks, topology);
        for &width in &widths {
            add(root, order.iter().copied().take(width).collect());
        }
    }
    fans
}

/// Widths of fans, ascending: as told, or the ranks of a host minus one (at least 1, and all others where every rank has a
/// host of its own).
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

/// The ranks that may be a root's peers, the first ones first.
fn order(choice: &Peers, root: usize, ranks: &[usize], topology: &Topology) -> Vec<usize> {
    let at = ranks.iter().position(|&rank| rank == root).unwrap_or(0);
    let next = || (1..ranks.len()).map(|step| ranks[(at + step) % ranks.len()]);
    let host = |rank: usize| topology.ranks.get(rank).map(|placement| placement.host.as_str());
    let here = |&rank: &usize| host(rank) == host(root);
    match choice {
        Peers::Next | Peers::Listed(_) => next().collect(),
        Peers::Nearest => next().filter(here).chain(next().filter(|rank| !here(rank))).collect(),
        // Switches are discovered with issue 4; until then a host counts as one.
        Peers::SameHost | Peers::SameSwitch => next().filter(here).collect(),
        Peers::CrossHost => next().filter(|rank| !here(rank)).collect(),
    }
}
