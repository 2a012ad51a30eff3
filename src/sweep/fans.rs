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
        Peers::SameHost => next().filter(here).collect(),
        Peers::SameSwitch => {
            // Where no switch is known, as with host memory, a host counts as one.
            let switch = topology.switch_of(ranks[at]);
            next().filter(here).filter(|&rank| topology.switch_of(rank) == switch).collect()
        }
        Peers::CrossHost => next().filter(|rank| !here(rank)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;
    use crate::topology::hardware::{Gpu, Hardware, PciDevice, PciKind};

    /// Two hosts of three ranks; on the first two cards below a switch and one below another.
    fn job() -> Topology {
        let device = |kind, parent| PciDevice { parent, kind, ..PciDevice::default() };
        let (switch, card) = (device(PciKind::SwitchUp, None), |switch| device(PciKind::Endpoint, Some(switch)));
        let hardware = Hardware {
            host: "a".to_owned(),
            pci: vec![switch.clone(), switch, card(0), card(1), card(0)],
            gpus: [2, 3, 4].map(|pci| Gpu { pci: Some(pci), ..Gpu::default() }).into(),
            ..Hardware::default()
        };
        let place = |rank: usize| Placement {
            rank,
            host: if rank < 3 { "a" } else { "b" }.to_owned(),
            gpu: (rank < 3).then_some(rank),
            ..Placement::default()
        };
        Topology { ranks: (0..6).map(place).collect(), hardware: vec![hardware] }
    }

    #[test]
    fn peers_are_chosen_by_where_they_sit() {
        let topology = job();
        let peers = |choice: Peers, width: usize| -> Vec<(usize, Vec<usize>)> {
            let settings = SweepSettings { peers: choice, widths: vec![width], ..SweepSettings::default() };
            let fans = fans(Pattern::FanIn, &settings, &[0, 1, 2, 3, 4, 5], &topology);
            fans.into_iter().map(|fan| (fan.root.unwrap(), fan.peers)).collect()
        };
        assert_eq!(peers(Peers::Next, 2)[4], (4, vec![0, 5]));
        assert_eq!(peers(Peers::Nearest, 3)[1], (1, vec![0, 2, 3]));
        assert_eq!(peers(Peers::SameHost, 3)[2], (2, vec![0, 1]));
        assert_eq!(peers(Peers::CrossHost, 2)[1], (1, vec![3, 4]));
        // Rank 1 is alone below its switch; of host b no switch is known.
        assert_eq!(peers(Peers::SameSwitch, 3), [(0, vec![2]), (2, vec![0]), (3, vec![4, 5]), (4, vec![3, 5]), (5, vec![3, 4])]);
    }
}
