//! What the planner tells a person.

use std::collections::{BTreeMap, BTreeSet};

use super::Planner;
use super::cause::{Cause, Finding};
use super::stop::Stat;
use crate::fit::median;
use crate::sample::Pattern;
use crate::sweep::{Item, Shared};
use crate::units::{format_size, plain};

/// Names in full before the rest becomes a number.
const NAMES: usize = 6;

/// These were slowed down when they ran together with the other members of their round.
pub(super) fn conflict(
    planner: &Planner,
    group: &[Item],
    members: &[Item],
    shared: Option<&Shared>,
    together: &BTreeMap<u32, Stat>,
    alone: &BTreeMap<u32, Stat>,
) -> String {
    let size = group.first().map_or(0, |item| planner.settings.sizes[usize::from(item.size)]);
    let rate = |of: &BTreeMap<u32, Stat>| {
        let times = group.iter().filter_map(|item| of.get(&item.target));
        size as f64 / median(&mut times.map(|stat| stat.median).collect::<Vec<_>>())
    };
    let [together, alone] = rates([rate(together), rate(alone)]);
    let size = format_size(size);
    let who = names(&group.iter().map(|item| pair(planner, *item)).collect::<Vec<_>>());
    let Some(shared) = shared else {
        let others: Vec<String> = members.iter().filter(|item| !group.contains(item)).map(|item| pair(planner, *item)).collect();
        return format!("{who} ran at {together} beside {}, {alone} alone ({size}): it is measured alone from now on", names(&others));
    };
    let between = if shared.from == shared.to {
        format!("within {}", hosts(planner, &shared.from))
    } else {
        format!("between {} and {}", hosts(planner, &shared.from), hosts(planner, &shared.to))
    };
    format!(
        "{who} ran at {together} each together, {alone} alone ({size}): they share something {between}; \
         such pairs are measured one at a time from now on"
    )
}

/// A rank or pair that is slow alone, too.
pub(super) fn slow(planner: &Planner, &(cause, item, share): &Finding) -> String {
    let size = size_of(planner, item);
    let host = |rank: usize| planner.topology.ranks.get(rank).map_or_else(String::new, |placement| plain(&placement.host));
    match cause {
        Cause::Sender(rank) => {
            format!("rank {rank} on {} sends at {share:.2} of the usual rate to most others, alone, too ({size})", host(rank))
        }
        Cause::Receiver(rank) => {
            format!("rank {rank} on {} receives at {share:.2} of the usual rate from most others, alone, too ({size})", host(rank))
        }
        Cause::Way(_, from, to) => format!(
            "{} goes at {share:.2} of the usual rate, alone, too ({size}), while {from} sends and {to} receives well with others: \
             it is the way between them",
            pair(planner, item)
        ),
        Cause::Untold(..) => format!("{} goes at {share:.2} of the usual rate, alone, too ({size})", pair(planner, item)),
    }
}

/// Several of one kind, worst first.
pub(super) fn slow_many(planner: &Planner, found: &[Finding]) -> String {
    let share = |finding: Option<&Finding>| finding.map_or(f64::NAN, |&(_, _, share)| share);
    let rate = format!("at {:.2} to {:.2} of the usual rate", share(found.first()), share(found.last()));
    let size = found.first().map(|&(_, item, _)| size_of(planner, item)).unwrap_or_default();
    let told = |&(cause, item, _): &Finding| match cause {
        Cause::Sender(rank) | Cause::Receiver(rank) => rank.to_string(),
        Cause::Way(..) | Cause::Untold(..) => pair(planner, item),
    };
    let who = names(&found.iter().map(told).collect::<Vec<_>>());
    match found.first().map(|finding| finding.0) {
        Some(Cause::Sender(_)) => format!("ranks {who} send {rate} to most others, alone, too ({size})"),
        Some(Cause::Receiver(_)) => format!("ranks {who} receive {rate} from most others, alone, too ({size})"),
        Some(Cause::Way(..)) => format!("{who} go {rate}, alone, too ({size}), while their ends do well with others"),
        _ => format!("{who} go {rate}, alone, too ({size})"),
    }
}

fn size_of(planner: &Planner, item: Item) -> String {
    format_size(planner.settings.sizes[usize::from(item.size)])
}

fn pair(planner: &Planner, item: Item) -> String {
    let duplex = planner.work.pattern(item.target as usize) == Some(Pattern::Duplex);
    planner.work.pair(item.target as usize).map_or_else(String::new, |(from, to)| match (from == to, duplex) {
        (true, _) => format!("{} {from}", planner.work.pattern(item.target as usize).unwrap_or(Pattern::Local).name()),
        (_, true) => format!("{from}↔{to}"),
        _ => format!("{from}→{to}"),
    })
}

/// `a, b and c`; of many the first ones.
fn names(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if all.len() <= NAMES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", all[..NAMES - 1].join(", "), all.len() - NAMES + 1),
    }
}

/// Two rates in the unit of the first; the second without it.
fn rates(rates: [f64; 2]) -> [String; 2] {
    let (scale, unit, digits) = if rates[0].min(rates[1]) >= 1e9 { (1e9, "GB/s", 2) } else { (1e6, "MB/s", 0) };
    let [first, second] = rates.map(|rate| rate / scale);
    let digits = if first < 10.0 && digits == 0 { 2 } else { digits };
    [format!("{first:.digits$} {unit}"), format!("{second:.digits$}")]
}

/// Hosts by name: those that differ only in a number at the end as a range.
fn hosts(planner: &Planner, hosts: &BTreeSet<usize>) -> String {
    let all = planner.topology.hosts();
    let named: Vec<String> = hosts.iter().filter_map(|&host| all.get(host)).map(|name| plain(name)).collect();
    ranges(&named)
}

fn ranges(named: &[String]) -> String {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &name[stem.len()..];
        // Leading zeros are part of the name.
        let number = number.parse::<u64>().ok().filter(|value| value.to_string() == number)?;
        Some((stem.to_owned(), number))
    };
    let mut numbered: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut parts = Vec::new();
    for name in named {
        match split(name) {
            Some((stem, number)) => numbered.entry(stem).or_default().push(usize::try_from(number).unwrap_or(usize::MAX)),
            None => parts.push(name.clone()),
        }
    }
    for (stem, mut numbers) in numbered {
        numbers.sort_unstable();
        parts.push(format!("{stem}{}", crate::units::format_ranks(&numbers)));
    }
    names(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(names: &[&str]) -> String {
        ranges(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn hosts_are_told_in_few_words() {
        assert_eq!(text(&["node1", "node2", "node3", "node4"]), "node1-4");
        assert_eq!(text(&["login", "node12", "node7", "gpu3"]), "login, gpu3 and node7,12");
        assert_eq!(text(&["n001", "n002"]), "n001 and n002");
        let many: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(str::to_owned).to_vec();
        assert_eq!(ranges(&many), "a, b, c, d, e and 3 more");
    }

    #[test]
    fn numbers_are_told_with_a_unit_both_have() {
        assert_eq!(rates([100.2e6, 399.0e6]), ["100 MB/s", "399"]);
        assert_eq!(rates([8.31e9, 16.6e9]), ["8.31 GB/s", "16.60"]);
        assert_eq!(rates([0.9e9, 16.6e9]), ["900 MB/s", "16600"]);
    }
}
