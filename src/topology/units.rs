//! What ranks are grouped by: switch, socket and host of each.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Topology;
use super::hardware::Device;
use super::path::Chain;
use super::route::name;

/// How coarse a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// a rank by itself
    Rank,
    /// ranks whose devices are below one `PCIe` switch
    Switch,
    /// ranks of one NUMA node
    Socket,
    Host,
}

impl Level {
    /// From fine to coarse.
    pub const ALL: [Self; 4] = [Self::Rank, Self::Switch, Self::Socket, Self::Host];
}

/// One group of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unit {
    pub level: Level,
    /// among those of its level, over all hosts, in the order of their first ranks; of a rank its own number
    pub number: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Grouped {
    /// `[rank]`; `None` where nothing tells
    of: Vec<Option<usize>>,
    names: Vec<String>,
    /// ascending
    members: Vec<Vec<usize>>,
}

impl Grouped {
    fn by<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = Option<(K, String)>>) -> Self {
        let mut grouped = Self::default();
        let mut numbers: HashMap<K, usize> = HashMap::new();
        for (rank, key) in keys.enumerate() {
            let number = key.map(|(key, name)| {
                *numbers.entry(key).or_insert_with(|| {
                    grouped.names.push(name);
                    grouped.members.push(Vec::new());
                    grouped.names.len() - 1
                })
            });
            if let Some(number) = number {
                grouped.members[number].push(rank);
            }
            grouped.of.push(number);
        }
        grouped
    }
}

/// The groups of a job's ranks at every level.
#[derive(Debug, Clone, PartialEq)]
pub struct Units {
    levels: [Grouped; 4],
}

impl Units {
    /// From where ranks sit: a device's own switch and NUMA node where there is one, else those of the rank's cores.
    pub fn of(topology: &Topology) -> Self {
        let hardware: HashMap<&str, _> = topology.hardware.iter().map(|hardware| (hardware.host.as_str(), hardware)).collect();
        let host = |host: &String| Some((host.clone(), host.clone()));
        let switch = |rank: usize| {
            let placement = &topology.ranks[rank];
            let hardware = hardware.get(placement.host.as_str())?;
            let at = topology.switch_of(rank)?;
            Some(((placement.host.clone(), at), format!("{} of {}", name(hardware, at), placement.host)))
        };
        let socket = |rank: usize| {
            let placement = &topology.ranks[rank];
            let device = || {
                let hardware = hardware.get(placement.host.as_str())?;
                Chain::of(hardware, Device::Gpu(placement.gpu?)).numa
            };
            let node = device().or(placement.numa)?;
            Some(((placement.host.clone(), node), format!("NUMA {node} of {}", placement.host)))
        };
        let world = topology.world();
        Self {
            levels: [
                Grouped::by((0..world).map(|rank| Some((rank, format!("rank {rank}"))))),
                Grouped::by((0..world).map(switch)),
                Grouped::by((0..world).map(socket)),
                Grouped::by(topology.ranks.iter().map(|placement| host(&placement.host))),
            ],
        }
    }

    fn level(&self, level: Level) -> &Grouped {
        &self.levels[level as usize]
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.level(Level::Rank).of.len()
    }

    /// The group of a rank; `None` where nothing tells.
    pub fn unit(&self, level: Level, rank: usize) -> Option<Unit> {
        self.level(level).of.get(rank).copied().flatten().map(|number| Unit { level, number })
    }

    /// How many groups a level has.
    pub fn count(&self, level: Level) -> usize {
        self.level(level).names.len()
    }

    /// What a person calls it: `rank 3`, `switch 0000:17:00.0 of node1`, `NUMA 0 of node1`, `node1`.
    pub fn name(&self, unit: Unit) -> &str {
        self.level(unit.level).names.get(unit.number).map_or("", String::as_str)
    }

    /// Its ranks, ascending.
    pub fn members(&self, unit: Unit) -> &[usize] {
        self.level(unit.level).members.get(unit.number).map_or(&[], Vec::as_slice)
    }

    /// True if two ranks are of one group of this level.
    pub fn together(&self, level: Level, a: usize, b: usize) -> bool {
        self.unit(level, a).is_some_and(|unit| self.unit(level, b) == Some(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Placement;

    #[test]
    fn ranks_are_grouped_by_node_and_host_in_the_order_of_first_ranks() {
        let seats = [("b", Some(1)), ("a", None), ("b", Some(0)), ("b", Some(1))];
        let ranks = seats.iter().enumerate();
        let place =
            |(rank, &(host, numa)): (usize, &(&str, Option<usize>))| Placement { rank, host: host.into(), numa, ..Placement::default() };
        let units = Units::of(&Topology::of(ranks.map(place).collect()));
        let unit = |level, number| Unit { level, number };
        assert_eq!((units.world(), units.count(Level::Host), units.count(Level::Socket), units.count(Level::Switch)), (4, 2, 2, 0));
        assert_eq!((units.name(unit(Level::Host, 0)), units.members(unit(Level::Host, 0))), ("b", &[0, 2, 3][..]));
        assert_eq!((units.name(unit(Level::Socket, 0)), units.members(unit(Level::Socket, 0))), ("NUMA 1 of b", &[0, 3][..]));
        assert_eq!((units.unit(Level::Socket, 1), units.unit(Level::Rank, 2)), (None, Some(unit(Level::Rank, 2))));
        assert!(units.together(Level::Host, 0, 2) && !units.together(Level::Socket, 0, 2) && !units.together(Level::Socket, 1, 1));
    }
}
