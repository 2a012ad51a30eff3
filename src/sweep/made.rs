//! Topologies made up for tests.

use crate::topology::{Placement, Topology};

/// Hosts node1, node2, ... with so many ranks each, numbered host by host, with plenty of memory.
pub fn on(sizes: &[usize]) -> Topology {
    let hosts = sizes.iter().enumerate().flat_map(|(host, &size)| std::iter::repeat_n(host, size));
    let place = |(rank, host): (usize, usize)| Placement {
        rank,
        host: format!("node{}", host + 1),
        pid: 1,
        cores: vec![rank],
        numa: None,
        memory_available: 1 << 40,
        memory_total: 1 << 40,
        cache: 0,
        ..Placement::default()
    };
    Topology::of(hosts.enumerate().map(place).collect())
}
