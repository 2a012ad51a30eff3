//! NUMA nodes: `/sys/devices/system/node`.

use std::path::Path;

use super::read;
use crate::topology::Hardware;
use crate::topology::hardware::{NoteKind, NumaNode};

/// Fill in the NUMA nodes of the machine below `root`, by number.
pub(super) fn fill(root: &Path, hardware: &mut Hardware) {
    let folder = root.join("sys/devices/system/node");
    for name in read::names(&folder) {
        let Some(id) = name.strip_prefix("node").and_then(|number| number.parse().ok()) else { continue };
        let node = folder.join(&name);
        hardware.numa.push(NumaNode {
            id,
            cpus: read::cpus(&node, "cpulist", "cpumap").unwrap_or_default(),
            memory: read::text(&node.join("meminfo")).and_then(|text| memory(&text)).unwrap_or(0),
            distances: read::text(&node.join("distance")).map(|text| distances(&text)).unwrap_or_default(),
        });
    }
    let nodes = hardware.numa.len();
    let odd: Vec<usize> = hardware.numa.iter().filter(|node| node.distances.len() != nodes).map(|node| node.id).collect();
    if !odd.is_empty() {
        for node in &mut hardware.numa {
            node.distances.clear();
        }
        hardware.note(NoteKind::Unseen, "NUMA", format!("distances are not told for each of {nodes} nodes, and are left out"));
    }
}

/// `Node 0 MemTotal:  32827312 kB`, bytes.
fn memory(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("MemTotal:")?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn distances(text: &str) -> Vec<u32> {
    text.split_whitespace().map_while(|word| word.parse().ok()).take(read::MOST_CORES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::made::Tree;

    fn nodes(tree: &Tree) -> Hardware {
        let mut hardware = Hardware::default();
        fill(&tree.root(), &mut hardware);
        hardware
    }

    #[test]
    fn nodes_are_read_by_number_with_their_distances() {
        let tree = Tree::new();
        tree.numa(0, "0-3", 64, "10 21 80");
        tree.numa(1, "4-7", 32, "21 10 80");
        tree.numa(10, "", 96, "80 80 10");
        let hardware = nodes(&tree);
        let told: Vec<_> =
            hardware.numa.iter().map(|node| (node.id, node.cpus.len(), node.memory >> 30, node.distances.as_slice())).collect();
        assert_eq!(told, [(0, 4, 64, [10, 21, 80].as_slice()), (1, 4, 32, &[21, 10, 80]), (10, 0, 96, &[80, 80, 10])]);
        assert_eq!(hardware.notes, []);
    }

    #[test]
    fn distances_that_do_not_fit_are_left_out() {
        let tree = Tree::new();
        tree.numa(0, "0", 1, "10 21 80");
        tree.write("sys/devices/system/node/nodeX/cpulist", "9");
        let hardware = nodes(&tree);
        assert!(hardware.numa[0].distances.is_empty() && hardware.numa.len() == 1);
        assert_eq!(hardware.notes[0].about, "NUMA");
    }
}
