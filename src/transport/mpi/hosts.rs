//! What the hosts of a job tell of themselves: one rank of each speaks for it.

use serde_json::Value;

use crate::topology::hardware::NoteKind;
use crate::topology::{Hardware, Topology};

/// The hosts of a job, and what each has told.
pub(super) struct Hosts(Vec<Host>);

struct Host {
    name: String,
    /// its lowest rank
    rank: usize,
    told: Option<Hardware>,
}

impl Hosts {
    pub(super) fn of(topology: &Topology) -> Self {
        let mut hosts: Vec<Host> = Vec::new();
        for (rank, node) in topology.node_of().into_iter().enumerate() {
            // Hosts are numbered as ranks name them.
            if node == hosts.len() {
                hosts.push(Host { name: topology.ranks[rank].host.clone(), rank, told: None });
            }
        }
        Self(hosts)
    }

    /// The ranks that have still to speak for their hosts.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter(|host| host.told.is_none()).map(|host| host.rank)
    }

    /// What a rank tells of its host.
    pub(super) fn take(&mut self, rank: usize, mut told: Value) {
        let Some(host) = self.0.iter_mut().find(|host| host.rank == rank && host.told.is_none()) else { return };
        crate::units::plain_json(&mut told);
        let hardware =
            serde_json::from_value(told).unwrap_or_else(|error| silent(&format!("what this host told of itself cannot be read: {error}")));
        host.told = Some(Hardware { host: host.name.clone(), ..hardware });
    }

    /// One entry a host, in the order in which ranks name them; those that told nothing within the time have a note.
    pub(super) fn into_hardware(self, seconds: u64) -> Vec<Hardware> {
        let tell = |host: Host| {
            let hardware = host.told.unwrap_or_else(|| silent(&format!("this host did not tell what it is made of within {seconds} s")));
            Hardware { host: host.name, ..hardware }
        };
        self.0.into_iter().map(tell).collect()
    }
}

fn silent(why: &str) -> Hardware {
    let mut hardware = Hardware::default();
    hardware.note(NoteKind::Unseen, "host", crate::units::plain(why));
    hardware
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::topology::Placement;

    fn hosts(names: &[&str]) -> Hosts {
        let place = |(rank, host): (usize, &&str)| Placement { rank, host: (*host).to_owned(), ..Placement::default() };
        Hosts::of(&Topology::of(names.iter().enumerate().map(place).collect()))
    }

    #[test]
    fn the_lowest_rank_of_each_host_speaks_for_it_once() {
        let mut hosts = hosts(&["b", "a", "b", "a", "c"]);
        assert_eq!(hosts.waiting().collect::<Vec<_>>(), [0, 1, 4]);
        hosts.take(1, json!({"host": "other", "product": "first"}));
        hosts.take(1, json!({"product": "second"}));
        hosts.take(3, json!({"product": "third"}));
        hosts.take(99, json!({}));
        assert_eq!(hosts.waiting().collect::<Vec<_>>(), [0, 4]);
        let told: Vec<_> = hosts.into_hardware(10).into_iter().map(|hardware| (hardware.host, hardware.product)).collect();
        assert_eq!(told, [("b", ""), ("a", "first"), ("c", "")].map(|(host, product)| (host.to_owned(), product.to_owned())));
    }

    #[test]
    fn silence_and_nonsense_are_notes() {
        let mut hosts = hosts(&["a", "b", "c"]);
        hosts.take(0, json!({"product": "\u{1b}]0;owned"}));
        hosts.take(1, json!({"pci": "\u{1b}[31m"}));
        let hardware = hosts.into_hardware(10);
        assert!(hardware[0].notes.is_empty() && hardware[0].product == "]0;owned", "{:?}", hardware[0]);
        for (hardware, word) in [(&hardware[1], "cannot be read"), (&hardware[2], "within 10 s")] {
            let [note] = hardware.notes.as_slice() else { panic!("{hardware:?}") };
            assert!(note.kind == NoteKind::Unseen && note.text.contains(word) && !note.text.contains('\u{1b}'), "{note:?}");
        }
    }
}
