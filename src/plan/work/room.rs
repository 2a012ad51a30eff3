//! Whether ranks have the memory.

use std::collections::BTreeMap;

use super::WorkError;
use crate::topology::Topology;
use crate::transport::work::Work;
use crate::units::{format_ranks, format_size};

/// Refuse what the hosts of its ranks do not hold. A fifth of what is available stays for MPI, the page cache and everybody else; where
/// a host does not tell, its ranks find out.
pub fn fits(work: &Work, topology: &Topology) -> Result<(), WorkError> {
    let mut hosts: BTreeMap<&str, (u64, u64, Vec<usize>)> = BTreeMap::new();
    for (part, place) in work.parts.iter().zip(&topology.ranks).filter(|(part, _)| part.memory > 0) {
        let (wanted, there, ranks) = hosts.entry(&place.host).or_default();
        *wanted = wanted.saturating_add(part.memory);
        *there = (*there).max(place.memory_available);
        ranks.push(place.rank);
    }
    let narrow = hosts.into_iter().find(|(_, (wanted, there, _))| *there > 0 && *wanted > there / 5 * 4);
    narrow.map_or(Ok(()), |(host, (wanted, there, ranks))| {
        Err(WorkError::Memory {
            host: host.to_owned(),
            wanted: format_size(wanted),
            there: format_size(there),
            of: if ranks.len() > 1 { format!(" for its ranks {}", format_ranks(&ranks)) } else { String::new() },
        })
    })
}
