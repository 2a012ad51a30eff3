//! A trunk as wide as one host's port between two groups of four hosts: the planner keeps pairs on it apart, told of it or not
//! (issue 3, must show f, on the simulator).

use std::collections::BTreeMap;

use toposcope::sample::Pattern;
use toposcope::sweep::{Cell, Probe};

use super::*;

pub(super) const TRUNK: &str = r#"
about = "eight hosts behind two bridges"
[hosts]
count = 8
ranks = 1
memory = "8GiB"
[path.local]
alpha = "1us"
rate = "10GB/s"
[path.inter_node]
alpha = "50us"
rate = "200Mbit/s"
[[shared]]
name = "port"
per = "host"
direction = "each"
rate = "200Mbit/s"
[[trunk]]
name = "trunk"
from = "0-3"
to = "4-7"
rate = "200Mbit/s"
"#;

/// The direction of a pair over the trunk.
fn over((from, to): (usize, usize)) -> Option<bool> {
    (from / 4 != to / 4).then_some(from < 4)
}

/// True if two of a round's pairs use the trunk the same way.
fn crowded(round: &[&Probe]) -> bool {
    [true, false].iter().any(|&way| round.iter().flat_map(|probe| probe.flows()).filter(|&flow| over(flow) == Some(way)).count() > 1)
}

/// Rounds of several probes or one.
fn rounds(records: &[Record]) -> Vec<Vec<&Probe>> {
    let mut rounds: BTreeMap<u64, Vec<&Probe>> = BTreeMap::new();
    for record in records {
        if let Event::ProbeStarted { probe } = &record.event {
            rounds.entry(probe.round).or_default().push(probe);
        }
    }
    rounds.into_values().collect()
}

fn settings(seed: u64) -> SweepSettings {
    SweepSettings { patterns: vec![Pattern::Peer], sizes: vec![1 << 16, 1 << 20, 1 << 22], timeout: 60.0, seed, ..calibration(0.05) }
}

/// The newest take of every pair is what the pair does alone.
fn isolated_truth(fabric: &Fabric, run: &Run) {
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        for &bytes in &run.model.sweep.as_ref().unwrap().settings.sizes {
            let found = run.model.cells.get(Cell { pattern: Pattern::Peer, from, to }, bytes).unwrap();
            let truth = fabric.truth(from, to).seconds(bytes);
            assert!((found.median / truth - 1.0).abs() < 0.01, "{from}→{to} {bytes}: {} instead of {truth}", found.median);
            assert!(found.count >= 6);
        }
    }
}

/// Four pairs at a time at least, since no two of them share anything.
fn company(rounds: &[Vec<&Probe>]) -> bool {
    rounds.iter().filter(|round| round.len() > 2).count() * 2 > rounds.len()
}

#[test]
fn a_trunk_that_is_told_is_never_used_twice_at_a_time() {
    let fabric = Arc::new(Fabric::parse(TRUNK, "trunk").unwrap());
    let run = sweep(&fabric, &settings(1), true);
    let rounds = rounds(&run.records);
    assert!(!rounds.iter().any(|round| crowded(round)) && company(&rounds));
    isolated_truth(&fabric, &run);
}

#[test]
fn a_trunk_that_is_not_told_is_found_in_the_first_pass() {
    let fabric = Arc::new(Fabric::parse(&format!("{TRUNK}[noise]\nkind = \"lognormal\"\ncv = 0.005\n"), "trunk").unwrap());
    for seed in 1..=10 {
        let run = sweep(&fabric, &settings(seed), false);
        assert!(rounds(&run.records).iter().any(|round| crowded(round)), "seed {seed}: it was not to be known");
        let found = |record: &Record| matches!(&record.event, Event::Notice { text } if text.contains("share something"));
        let last = run.records.iter().rposition(found).expect("both ways are told");
        let words: Vec<&str> = run
            .records
            .iter()
            .filter_map(|record| if let Event::Notice { text } = &record.event { Some(text.as_str()) } else { None })
            .collect();
        for (near, far) in [("node0-3", "node4-7"), ("node4-7", "node0-3")] {
            assert!(words.iter().any(|text| text.contains(&format!("between {near} and {far}"))), "seed {seed}: {words:#?}");
        }
        // Of all that was measured until then there is one size, the first pass's.
        let sizes: Vec<u64> = rounds(&run.records[..last]).iter().flatten().map(|probe| probe.bytes).collect();
        assert!(sizes.iter().all(|&bytes| bytes == sizes[0]), "seed {seed}");
        let after = rounds(&run.records[last..]);
        assert!(!after.iter().any(|round| crowded(round)) && company(&after), "seed {seed}");
        isolated_truth(&fabric, &run);
    }
}
