//! Who the ranks of a session are that several tables are put together in, and what they sit on.

use std::collections::{BTreeMap, HashMap};

use super::{End, Table};
use crate::import::text::number;
use crate::sample::Status;
use crate::topology::{Hardware, PathClass, Placement, Topology};
use crate::units::format_ranks;

/// The host of those who tell none.
const SOMEWHERE: &str = "host";

/// Ranks, and of each table which rank each of its ends is.
pub(super) fn seat(tables: &[&Table], pairs: &[(usize, usize)]) -> (Vec<End>, Vec<Vec<usize>>) {
    let mut ranks: Vec<End> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut gpus: HashMap<(String, u32), usize> = HashMap::new();
    let mut pairs = pairs.iter();
    let mut seats = Vec::with_capacity(tables.len());
    for table in tables {
        let apart = apart(table);
        let pair = (table.ends.len() == 2).then(|| pairs.next()).flatten();
        let seat = |(at, end): (usize, &End)| {
            let mut end = end.clone();
            if let Some(&(from, to)) = pair {
                end.label = format!("rank {}", if at == 0 { from } else { to });
            }
            if end.host.is_none() && apart {
                end.host = Some(end.label.clone());
            }
            let host = end.host.clone().unwrap_or_default();
            // Who does not tell a host is on the only one there is.
            let fits = |rank: &usize| host.is_empty() || ranks[*rank].host.as_ref().is_none_or(|own| *own == host);
            let label = |host: &str| known.get(&(host.to_owned(), end.label.clone())).copied().filter(fits);
            let gpu = |host: &str| gpus.get(&(host.to_owned(), end.gpu?)).copied().filter(fits);
            let hosts = [host.as_str(), ""];
            let same = if pair.is_some() { None } else { hosts.iter().find_map(|host| gpu(host)) };
            let found = same.or_else(|| hosts.iter().find_map(|host| label(host)));
            let rank = found.unwrap_or_else(|| {
                ranks.push(end.clone());
                ranks.len() - 1
            });
            let kept = &mut ranks[rank];
            kept.host = kept.host.take().or_else(|| end.host.clone());
            kept.gpu = kept.gpu.or(end.gpu);
            kept.pci = kept.pci.take().or_else(|| end.pci.clone());
            kept.model = kept.model.take().or_else(|| end.model.clone());
            for host in [host.as_str(), ""] {
                known.entry((host.to_owned(), end.label.clone())).or_insert(rank);
                if let Some(gpu) = end.gpu {
                    gpus.entry((host.to_owned(), gpu)).or_insert(rank);
                }
                if !host.is_empty() && ambiguous(&ranks, host) {
                    break;
                }
            }
            rank
        };
        seats.push(table.ends.iter().enumerate().map(seat).collect());
    }
    (ranks, seats)
}

/// Ranks of other hosts are known: then a number alone names nobody.
fn ambiguous(ranks: &[End], host: &str) -> bool {
    ranks.first().is_some_and(|first| first.host.as_deref().is_some_and(|other| other != host))
}

/// Ends without a host that a sample puts on two.
fn apart(table: &Table) -> bool {
    table.ends.iter().all(|end| end.host.is_none())
        && table.samples.iter().any(|sample| sample.status == Status::Ok && sample.path == PathClass::InterNode)
}

/// Where the ranks sit: `told` are hosts that topology files told.
pub(super) fn place(ranks: &[End], mut told: Vec<Hardware>) -> Topology {
    let names: Vec<&str> = ranks.iter().filter_map(|end| end.host.as_deref()).collect();
    let alone = told.len() == 1;
    let unnamed = names.is_empty();
    let other = alone && !names.is_empty() && names.iter().all(|name| *name == names[0]) && told[0].host != names[0];
    if let Some(hardware) = told.first_mut().filter(|_| alone) {
        if other {
            // The only host of the measurement is the only one of the topology, whatever the prompt above it said.
            names[0].clone_into(&mut hardware.host);
        } else if hardware.host.is_empty() {
            SOMEWHERE.clone_into(&mut hardware.host);
        }
    }
    let somewhere = if unnamed && alone { told[0].host.clone() } else { SOMEWHERE.to_owned() };
    let host = |end: &End| end.host.clone().unwrap_or_else(|| somewhere.clone());
    let mut placements = Vec::with_capacity(ranks.len());
    for (rank, end) in ranks.iter().enumerate() {
        let host = host(end);
        // Only of what a topology tells: a host whose links nobody told is not one without links.
        let gpu = end.gpu.and_then(|number| {
            let hardware = told.iter().find(|hardware| hardware.host == host)?;
            let by_address = end.pci.as_deref().and_then(|pci| gpu_at(hardware, pci));
            by_address.or_else(|| hardware.gpus.iter().position(|gpu| gpu.index == number as usize))
        });
        placements.push(Placement { rank, host, gpu, ..Placement::default() });
    }
    // Hosts on which nobody sits tell nothing of the ranks.
    told.retain(|hardware| placements.iter().any(|placement| placement.host == hardware.host));
    Topology { ranks: placements, hardware: told }
}

/// Which GPUs the ranks are, as their tool tells them: `NVIDIA GH200 120GB (ranks 0-3)`.
pub(super) fn models(ranks: &[End]) -> String {
    let mut models: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (rank, end) in ranks.iter().enumerate() {
        if let Some(model) = end.model.as_deref() {
            models.entry(model).or_default().push(rank);
        }
    }
    let told = models
        .iter()
        .map(|(model, ranks)| format!("{model} ({} {})", if ranks.len() == 1 { "rank" } else { "ranks" }, format_ranks(ranks)));
    told.collect::<Vec<_>>().join(", ")
}

/// The GPU at an address, whatever its domain's width: `00000000:3B:00.0` is `0000:3b:00.0`.
fn gpu_at(hardware: &Hardware, pci: &str) -> Option<usize> {
    let short = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        text.split_once(':')
            .filter(|(_, rest)| rest.contains(':'))
            .map(|(domain, rest)| format!("{}:{rest}", domain.trim_start_matches('0')))
    };
    let wanted = short(pci)?;
    hardware.gpus.iter().position(|gpu| {
        let device = gpu.pci.and_then(|at| hardware.pci.get(at));
        device.is_some_and(|device| short(&device.address.to_string()).as_deref() == Some(&wanted))
    })
}

/// The two ranks that a file's name tells, such as `osu_bw_3_7.txt`: two numbers at its end.
pub(super) fn pair_of(name: &str) -> Option<(usize, usize)> {
    let stem = name.rsplit('/').next()?.split('.').next()?;
    let mut parts = stem.rsplit(['-', '_', ',']);
    let digits = |part: &str| number(part.trim_start_matches(|first: char| first.is_ascii_alphabetic()));
    let (to, from) = (digits(parts.next()?)?, digits(parts.next()?)?);
    (from != to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_tell_pairs() {
        for (name, pair) in
            [("a/osu_bw_0_12.txt", Some((0, 12))), ("r3-r1.out", Some((3, 1))), ("bw.txt", None), ("osu_7.4_1_1", None), ("osu_bw-8", None)]
        {
            assert_eq!(pair_of(name), pair, "{name}");
        }
    }

    #[test]
    fn addresses_are_the_same_whatever_their_width() {
        use crate::topology::hardware::{Gpu, PciDevice};
        let device = PciDevice { address: "0000:3b:00.0".parse().unwrap(), ..PciDevice::default() };
        let hardware = Hardware { pci: vec![device], gpus: vec![Gpu { pci: Some(0), ..Gpu::default() }], ..Hardware::default() };
        assert_eq!(gpu_at(&hardware, "00000000:3B:00.0"), Some(0));
        assert_eq!(gpu_at(&hardware, "00000001:3B:00.0"), None);
    }
}
