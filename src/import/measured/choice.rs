//! Which of several tables become a session's samples.
//!
//! A session has one number of each pair (or fan, or ring) and size. Of several tables that have one the first is taken, in the order of the
//! files, but that what ran alone goes before what ran beside others, a copy before a load, direct access of each other's memory before
//! copies through the host, copy engines before kernels, one direction before the sum of both. Tables of one pattern are of one tool and
//! one kind of memory, since tools do not measure the same way. Names that were given choose instead.

use std::collections::{HashMap, HashSet};

use super::{Table, Tool};
use crate::sample::{Memory, Pattern, Status};

/// What became of a table.
pub(super) type Verdict = Result<(), String>;

/// Where a sample counts: pattern, sender, receiver, root, first and number of the peers, shift, set, size, repeat.
type Place = (Pattern, usize, usize, Option<usize>, Option<usize>, usize, Option<usize>, Option<u32>, u64, u32);

/// Of each table whether it is taken, and if not, why. `ranks` are those of the session that each table's ends are; `named` are parts of
/// tests' names, or numbers of tables from 1.
pub(super) fn choose(tables: &[&Table], ranks: &[Vec<usize>], named: &[String]) -> Vec<Verdict> {
    let wanted = |at: usize| named.iter().position(|name| is_named(tables, at, name));
    let mut order: Vec<usize> = (0..tables.len()).collect();
    if named.is_empty() {
        order.sort_by_key(|&at| preference(tables[at]));
    } else {
        order.sort_by_key(|&at| wanted(at).unwrap_or(usize::MAX));
    }
    let mut verdicts: Vec<Verdict> = vec![Ok(()); tables.len()];
    let mut owners: HashMap<Pattern, usize> = HashMap::new();
    let mut memory: Option<(Memory, usize)> = None;
    let mut places: HashSet<Place> = HashSet::new();
    for at in order {
        let table = tables[at];
        verdicts[at] = if table.samples.iter().all(|sample| sample.status == Status::Waived) {
            Err(if table.collectives.is_empty() {
                "it has no number of a pair, a fan or a ring"
            } else {
                "of all ranks together: no cell of a matrix"
            }
            .to_owned())
        } else if !named.is_empty() && wanted(at).is_none() {
            Err("--table names others".to_owned())
        } else {
            let other = |of: usize| format!("{} {} was taken", tables[of].tool.name(), tables[of].test);
            let patterns: HashSet<Pattern> = table.samples.iter().map(|sample| sample.pattern).collect();
            let apart = |&of: &&usize| tables[*of].tool != table.tool || is_load(tables[*of]) != is_load(table);
            if let Some((_, of)) = memory.filter(|&(memory, _)| memory != table.memory) {
                Err(format!("{}, which is of other memory", other(of)))
            } else if let Some(&of) = patterns.iter().filter_map(|pattern| owners.get(pattern)).find(apart) {
                Err(format!("{}: tools and tests that measure in other ways are not put together", other(of)))
            } else if let Some(of) = taken(table, &ranks[at], &mut places).then(|| patterns.iter().find_map(|pattern| owners.get(pattern)))
            {
                Err(of.map_or_else(
                    || "the same numbers stand in it twice".to_owned(),
                    |&of| format!("{}, of the same pairs and sizes", other(of)),
                ))
            } else {
                for pattern in patterns {
                    owners.entry(pattern).or_insert(at);
                }
                memory.get_or_insert((table.memory, at));
                Ok(())
            }
        };
    }
    verdicts
}

/// True if a name that was given is this table's number, from 1, or, if it is no table's number, a part of its test's name.
pub(super) fn is_named(tables: &[&Table], at: usize, name: &str) -> bool {
    match name.parse::<usize>() {
        Ok(number) if (1..=tables.len()).contains(&number) => number == at + 1,
        _ => tables[at].test.to_lowercase().contains(&name.to_lowercase()),
    }
}

/// True if a place of the table is taken; else its places are from now on.
fn taken(table: &Table, ranks: &[usize], places: &mut HashSet<Place>) -> bool {
    let rank = |end: usize| ranks.get(end).copied().unwrap_or(usize::MAX);
    let of = |sample: &crate::sample::Sample| -> Place {
        let first = sample.peers.first().copied().map(rank);
        let (root, count) = (sample.root.map(rank), sample.peers.len());
        (sample.pattern, rank(sample.from), rank(sample.to), root, first, count, sample.shift, sample.set, sample.bytes, sample.repeat)
    };
    if table.samples.iter().any(|sample| places.contains(&of(sample))) {
        return true;
    }
    places.extend(table.samples.iter().map(of));
    false
}

/// A load of a chain of loads, which is no copy.
fn is_load(table: &Table) -> bool {
    table.tool == Tool::Nvbandwidth && table.test.contains("latency")
}

/// Less is taken before.
fn preference(table: &Table) -> (bool, bool, bool, bool, bool) {
    let test = table.test.as_str();
    (
        is_load(table),
        table.samples.iter().any(|sample| !sample.isolated),
        test.contains("P2P=Disabled"),
        test.ends_with("_sm") || test.contains("_sm "),
        test.ends_with(" Total"),
    )
}
