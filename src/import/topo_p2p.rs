//! `nvidia-smi topo -p2p r|w|n|a|p`: which GPUs may reach into which others' memory.

use super::Skips;
use super::matrix::{Matrix, gpu_number};
use crate::topology::hardware::{Device, Gpu, Hardware, Told, ToldWhat};

/// The driver's words: OK, chipset, GPU or topology not supported, disabled by the registry, not supported, unknown.
const STATUSES: [&str; 7] = ["OK", "CNS", "GNS", "TNS", "DR", "NS", "U"];

/// True if the table's cells are such words, and all its devices GPUs.
pub(super) fn is_statuses(matrix: &Matrix) -> bool {
    let mut words = matrix.rows.iter().flat_map(|row| row.cells.split_whitespace());
    matrix.columns.is_empty() && words.any(|word| STATUSES.contains(&word)) && matrix.devices.iter().all(|name| gpu_number(name).is_some())
}

/// What `-p2p X` in a command asks for.
pub(super) fn access(command: &str) -> Option<&'static str> {
    let asked = command.split_once("-p2p")?.1;
    let asked = asked.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || char == '_');
    Some(match asked.trim_start_matches([' ', '=']).chars().next()? {
        'r' => "read",
        'w' => "write",
        'n' => "nvlink",
        'a' => "atomics",
        'p' => "prop",
        _ => return None,
    })
}

/// A host from a table.
pub(super) fn host(matrix: &Matrix, access: &str, skips: &mut Skips) -> Hardware {
    let gpus = matrix.devices.iter().map(|name| Gpu { index: gpu_number(name).unwrap_or_default(), ..Gpu::default() });
    let mut host = Hardware { gpus: gpus.collect(), ..Hardware::default() };
    for row in &matrix.rows {
        let cells: Vec<&str> = row.cells.split_whitespace().collect();
        if cells.len() != host.gpus.len() {
            skips.push(row.line, format!("{} statuses where the header has {} GPUs", cells.len(), host.gpus.len()));
            continue;
        }
        for (to, cell) in cells.into_iter().enumerate().filter(|(to, _)| *to != row.device) {
            if STATUSES.contains(&cell) {
                let what = ToldWhat::Peer { access: access.to_owned(), status: cell.to_owned() };
                host.told.push(Told { from: Device::Gpu(row.device), to: Device::Gpu(to), what });
            } else {
                skips.push(row.line, format!("{} is no status of peer access", super::text::shown(cell)));
            }
        }
    }
    host
}

#[cfg(test)]
mod tests {
    use super::super::{matrix, text};
    use super::*;

    #[test]
    fn statuses_of_peer_access_are_told_in_both_directions() {
        let table = matrix::read(&text::lines(" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tCNS\tX\n")).unwrap();
        assert!(is_statuses(&table));
        let mut skips = Skips::default();
        let host = host(&table, "write", &mut skips);
        let peer = |status: &str| ToldWhat::Peer { access: "write".to_owned(), status: status.to_owned() };
        assert_eq!(host.told.iter().map(|told| told.what.clone()).collect::<Vec<_>>(), [peer("OK"), peer("CNS")]);
        assert_eq!(host.told[1].from, Device::Gpu(1));
        assert!(skips.sorted().is_empty());
    }

    #[test]
    fn the_command_tells_which_access() {
        assert_eq!(access("$ nvidia-smi topo -p2p w"), Some("write"));
        assert_eq!(access("nvidia-smi topo --p2pstatus=n"), Some("nvlink"));
        assert_eq!(access("nvidia-smi topo -m"), None);
    }
}
