//! A session made of tables.

use std::collections::BTreeMap;

use super::choice::{Verdict, choose, is_named};
use super::ranks::{models, pair_of, place, seat};
use super::{End, SizeFrom, Table};
use crate::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use crate::session::{Event, Header, Imported, Outcome, Record};
use crate::sweep::{Group, Peers, SweepSettings};
use crate::topology::{Hardware, Placement, Topology, path_of};
use crate::units::plain;

/// Tables of one file.
#[derive(Debug, Clone)]
pub struct Source {
    pub file: String,
    pub tables: Vec<Table>,
}

/// A session as it would be recorded.
#[derive(Debug, Clone)]
pub struct Built {
    pub header: Header,
    pub records: Vec<Record>,
}

/// Put tables together as one session. `hardware` are hosts that topology files told; `pairs` are the ranks of tables with two ends, in the
/// order of those; `named` chooses tables by parts of their tests' names or by their numbers.
///
/// What cannot be: the reason.
pub fn build(name: &str, sources: &[Source], hardware: Vec<Hardware>, pairs: &[(usize, usize)], named: &[String]) -> Result<Built, String> {
    let tables: Vec<&Table> = sources.iter().flat_map(|source| &source.tables).collect();
    if tables.is_empty() {
        return Err("no measurement: nothing to make a session of".to_owned());
    }
    let unknown = named.iter().find(|name| !(0..tables.len()).any(|at| is_named(&tables, at, name)));
    if let Some(unknown) = unknown {
        let all: Vec<String> = tables.iter().zip(1..).map(|(table, at)| format!("{at} {}", table.test)).collect();
        return Err(format!("--table {}: no table is named so; there are {}", plain(unknown), all.join(", ")));
    }
    let pairs = told_pairs(sources, pairs)?;
    let (ends, seats) = seat(&tables, &pairs);
    if ends.is_empty() {
        // What all ranks did together, by nobody knows how many: the session has one place that stands for them.
        let one = Placement { host: "host".to_owned(), ..Placement::default() };
        return Ok(session(name, sources, &tables, &seats, &[], &Topology::of(vec![one])));
    }
    let verdicts = choose(&tables, &seats, named);
    let topology = place(&ends, hardware);
    let mut built = session(name, sources, &tables, &seats, &verdicts, &topology);
    let models = models(&ends);
    if !models.is_empty() {
        built.header.software.insert("GPUs".to_owned(), models);
    }
    Ok(built)
}

/// Of each table the pair that its two ends are, if nothing in it names them: those given, or, of several such files, those of the files'
/// names.
fn told_pairs(sources: &[Source], given: &[(usize, usize)]) -> Result<Vec<Option<(usize, usize)>>, String> {
    // The tools call them by what they are to each other; who they are among others is told nowhere.
    let nameless = |end: &End| {
        let label = end.label.as_str();
        end.host.is_none() && end.gpu.is_none() && (label.starts_with("rank ") || label == "client" || label == "server")
    };
    let wants = |table: &Table| table.ends.len() == 2 && table.ends.iter().all(nameless);
    let counts: Vec<usize> = sources.iter().map(|source| source.tables.iter().filter(|table| wants(table)).count()).collect();
    let all: usize = counts.iter().sum();
    let files = counts.iter().filter(|&&count| count > 0).count();
    let pairs: Vec<(usize, usize)> = if given.len() == all {
        given.to_vec()
    } else if given.len() == files {
        // One pair a file is enough where a file has several tables of it.
        given.iter().zip(counts.iter().filter(|&&count| count > 0)).flat_map(|(&pair, &count)| std::iter::repeat_n(pair, count)).collect()
    } else if !given.is_empty() {
        return Err(misfit(sources, &counts, given.len()));
    } else {
        let named = |(source, &count): (&Source, &usize)| pair_of(&source.file).map(|pair| std::iter::repeat_n(pair, count));
        let of_names = || sources.iter().zip(&counts).filter(|&(_, &count)| count > 0).map(named).collect::<Option<Vec<_>>>();
        let pairs = if files > 1 { of_names() } else { None };
        pairs.into_iter().flatten().flatten().collect()
    };
    let mut pairs = pairs.into_iter();
    Ok(sources.iter().flat_map(|source| &source.tables).map(|table| if wants(table) { pairs.next() } else { None }).collect())
}

/// Who wants a pair, where the count of those that were given does not fit; `counts` are each file's tables that want one.
fn misfit(sources: &[Source], counts: &[usize], given: usize) -> String {
    const MOST: usize = 8;
    let wanting: Vec<String> = sources
        .iter()
        .zip(counts)
        .filter(|&(_, &count)| count > 0)
        .map(|(source, &count)| if count > 1 { format!("{} ({count} tables)", plain(&source.file)) } else { plain(&source.file) })
        .collect();
    let pairs = if given == 1 { "1 pair".to_owned() } else { format!("{given} pairs") };
    let more = if wanting.len() > MOST { format!(" and {} more", wanting.len() - MOST) } else { String::new() };
    match wanting.len() {
        0 => format!("--pair: {pairs} for no file: every table names who was measured; leave it out"),
        n => format!(
            "--pair: {pairs} for {n} file{} of two ranks without names: expected one for each, in this order: {}{more}",
            if n == 1 { "" } else { "s" },
            wanting[..n.min(MOST)].join(", ")
        ),
    }
}

fn session(name: &str, sources: &[Source], tables: &[&Table], seats: &[Vec<usize>], verdicts: &[Verdict], topology: &Topology) -> Built {
    let taken = |at: usize| verdicts.get(at).is_some_and(Result::is_ok);
    let node_of = topology.node_of();
    let path = |from: usize, to: usize| path_of(&node_of, from, to);
    let mut samples: Vec<Sample> = Vec::new();
    let mut software = BTreeMap::new();
    for (at, table) in tables.iter().enumerate() {
        let version = table.version.clone().unwrap_or_else(|| "of a version that it does not tell".to_owned());
        software.entry(table.tool.name().to_owned()).or_insert(version);
        if taken(at) {
            samples.extend(table.samples.iter().filter_map(|sample| moved(sample, &seats[at], path)));
        }
    }
    let files: Vec<String> = sources.iter().map(|source| plain(&source.file)).collect();
    software.insert("imported from".to_owned(), files.join(", "));
    // Alike samples stand together: those of a pair, size and take are one probe, as a sweep's are.
    let key = |s: &Sample| (s.pattern, s.bytes, s.root, s.shift, s.set, s.take);
    samples.sort_by(|a, b| {
        key(a).cmp(&key(b)).then_with(|| a.peers.cmp(&b.peers)).then_with(|| (a.from, a.to, a.repeat).cmp(&(b.from, b.to, b.repeat)))
    });
    let settings = settings(&samples, tables.iter().enumerate().find(|&(at, _)| taken(at)).map(|(_, table)| *table));
    let header = Header {
        format: Header::current_format(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        name: plain(name),
        started: String::new(),
        engine: EngineKind::Imported,
        group: Vec::new(),
        settings: settings.clone(),
        topology: topology.clone(),
        software,
        environment: BTreeMap::new(),
    };
    let mut events = Vec::new();
    let mut at = 0;
    for source in sources {
        for table in &source.tables {
            let why = verdicts.get(at).and_then(|verdict| verdict.as_ref().err()).cloned().unwrap_or_default();
            events.push(Event::Imported(imported(&source.file, table, taken(at), why)));
            at += 1;
        }
    }
    if !samples.is_empty() {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for sample in &samples {
            *counts.entry(sample.bytes).or_default() += 1;
        }
        events.push(Event::SweepStarted { settings, resumed: false });
        events.extend(counts.iter().map(|(&bytes, &repeats)| Event::Foreseen { bytes, repeats }));
        let same = |a: &Sample, b: &Sample| {
            let one = if a.pattern.is_pair() { a.from == b.from } else { Group::of(a) == Group::of(b) };
            one && (a.pattern, a.bytes, a.take) == (b.pattern, b.bytes, b.take)
        };
        let probes = samples.chunk_by(same);
        events.extend((0_u64..).zip(probes).map(|(probe, samples)| Event::ProbeDone { probe, samples: samples.to_vec(), enough: None }));
        events.push(Event::SweepEnded { outcome: Outcome::Complete, reason: "imported".to_owned() });
    }
    events.push(Event::Closed);
    Built { header, records: events.into_iter().map(|event| Record { t: 0.0, event }).collect() }
}

/// A sample with the session's ranks instead of the table's ends; `None` if it names ends that the table has not.
fn moved(sample: &Sample, seats: &[usize], path: impl Fn(usize, usize) -> crate::topology::PathClass) -> Option<Sample> {
    let rank = |end: usize| seats.get(end).copied();
    let (from, to) = (rank(sample.from)?, rank(sample.to)?);
    let mut peers = sample.peers.iter().map(|&peer| rank(peer)).collect::<Option<Vec<usize>>>()?;
    peers.sort_unstable();
    let root = match sample.root {
        Some(root) => Some(rank(root)?),
        None => None,
    };
    let mut sample = Sample { from, to, root, peers, ..sample.clone() };
    sample.path = path(from, to);
    Some(sample)
}

fn settings(samples: &[Sample], table: Option<&Table>) -> SweepSettings {
    let distinct = |values: &mut dyn Iterator<Item = u64>| {
        let mut all: Vec<u64> = values.collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let patterns = patterns(samples);
    let mut fans: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.pattern.is_fan()) {
        if let Some(root) = sample.root {
            fans.entry(root).or_insert_with(|| sample.peers.clone());
        }
    }
    let small = |values: Vec<u64>| values.into_iter().filter_map(|value| usize::try_from(value).ok()).collect::<Vec<usize>>();
    SweepSettings {
        patterns,
        sizes: distinct(&mut samples.iter().map(|sample| sample.bytes)),
        widths: small(distinct(&mut samples.iter().filter_map(|sample| sample.width).map(|width| width as u64))),
        peers: if fans.is_empty() { Peers::Nearest } else { Peers::Listed(fans.into_iter().collect()) },
        shifts: small(distinct(&mut samples.iter().filter_map(|sample| sample.shift).map(|shift| shift as u64))),
        isolated: samples.iter().all(|sample| sample.isolated),
        repeats: samples.iter().map(|sample| sample.repeat.saturating_add(1)).max().unwrap_or(1),
        warmup: 0,
        mover: MoverKind::Untold,
        memory: table.map_or_else(Default::default, |table| table.memory),
        ..SweepSettings::default()
    }
}

/// Each once, in order of appearance.
fn patterns(samples: &[Sample]) -> Vec<Pattern> {
    let mut all = Vec::new();
    for sample in samples {
        if !all.contains(&sample.pattern) {
            all.push(sample.pattern);
        }
    }
    all
}

fn imported(file: &str, table: &Table, taken: bool, why: String) -> Imported {
    let mut sizes: Vec<u64> = table.samples.iter().map(|sample| sample.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let good = table.samples.iter().filter(|sample| matches!(sample.status, Status::Ok | Status::Corrupt)).count();
    Imported {
        file: file.to_owned(),
        line: table.line,
        tool: table.tool.name().to_owned(),
        version: table.version.clone(),
        test: table.test.clone(),
        unit: table.unit.to_owned(),
        orientation: table.orientation.to_owned(),
        size_told: table.size_from == SizeFrom::Told,
        patterns: patterns(&table.samples),
        sizes,
        samples: good as u64,
        taken,
        why,
        notes: table.notes.clone(),
        collectives: table.collectives.clone(),
        ranks: table.ends.len(),
    }
    .plain()
}

#[cfg(test)]
mod tests;
