//! Who the ranks of a session are that several tables are put together in, and what they sit on.

use std::collections::{BTreeMap, HashMap};

use super::{End, Table};
use crate::import::text::number;
use crate::sample::Status;
use crate::topology::{Hardware, PathClass, Placement, Topology};
use crate::units::format_ranks;

/// The host of those who tell none.
const SOMEWHERE: &str = "host";

/// Ranks, and of each table which rank each of its ends is; of tables with a pair, that is who their two ends are.
pub(super) fn seat(tables: &[&Table], pairs: &[Option<(usize, usize)>]) -> (Vec<End>, Vec<Vec<usize>>) {
    let mut ranks: Vec<End> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut gpus: HashMap<(String, u32), usize> = HashMap::new();
    let mut seats = Vec::with_capacity(tables.len());
    for (at, table) in tables.iter().enumerate() {
        let apart = apart(table);
        let pair = pairs.get(at).copied().flatten();
        let seat = |(at, end): (usize, &End)| {
            let mut end = end.clone();
            if let Some((from, to)) = pair {
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

/// The two ranks that a file's name tells, such as `osu_bw_3_7.txt`: two numbers at its end, or before the day and time there.
pub(super) fn pair_of(name: &str) -> Option<(usize, usize)> {
    let stem = name.rsplit('/').next()?.split('.').next()?;
    let parts: Vec<&str> = stem.split(['-', '_', ',']).collect();
    let digits = |part: &str| number(part.trim_start_matches(|first: char| first.is_ascii_alphabetic()));
    let last = |parts: &[&str]| {
        let [.., from, to] = parts else { return None };
        Some((digits(from)?, digits(to)?)).filter(|(from, to)| from != to)
    };
    let day = (0..parts.len()).find_map(|at| Some((at, at + date(&parts[at..])?)));
    let Some((day, end)) = day else { return last(&parts) };
    match &parts[end + time(&parts[end..])..] {
        [] => last(&parts[..day]),
        rest => last(rest),
    }
}

/// How many parts of a name are a day that begins here: `2026-11-30`, `2026-11`, `20261130`.
fn date(parts: &[&str]) -> Option<usize> {
    let within = |part: Option<&&str>, width: usize, range: std::ops::RangeInclusive<usize>| {
        part.is_some_and(|part| {
            part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse().is_ok_and(|n| range.contains(&n))
        })
    };
    let years = 1990..=2099;
    if within(parts.first(), 8, 19_900_101..=20_991_231) {
        Some(1)
    } else if within(parts.first(), 4, years) && within(parts.get(1), 2, 1..=12) {
        Some(if within(parts.get(2), 2, 1..=31) { 3 } else { 2 })
    } else {
        None
    }
}

/// How many parts behind a day are its time: `10-15-00`, `10-15`, `101500`.
fn time(parts: &[&str]) -> usize {
    let two =
        |part: &&&str| part.trim_start_matches('T').len() == 2 && part.trim_start_matches('T').bytes().all(|byte| byte.is_ascii_digit());
    let whole = |part: &&str| matches!(part.len(), 4 | 6 | 7) && part.trim_start_matches('T').bytes().all(|byte| byte.is_ascii_digit());
    match parts.iter().take(3).take_while(two).count() {
        0 | 1 => usize::from(parts.first().is_some_and(whole)),
        most => most,
    }
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
    fn dates_in_names_of_files_are_no_pairs() {
        for (name, pair) in [
            ("2026-11-30.txt", None),
            ("osu_2026-11-30.txt", None),
            ("osu_2026_11.txt", None),
            ("osu_2026-11-30_3-5.txt", Some((3, 5))),
            ("osu_3-5_2026-11-30.txt", Some((3, 5))),
            ("osu_3_5_20261130.txt", Some((3, 5))),
            ("osu_3_5_20261130-101500.txt", Some((3, 5))),
            ("osu_20261130_101500.txt", None),
            ("osu_3-5_2026-11-30_10-15-00.txt", Some((3, 5))),
            ("osu_2026-11-30_10-15.txt", None),
            ("osu_2026-11-30_10-15-00_3-5.txt", Some((3, 5))),
            ("osu_2026-11-30_3.txt", None),
            ("2026_2027.txt", Some((2026, 2027))),
        ] {
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
