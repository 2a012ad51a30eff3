//! Closed loop: what is there is known, and the sweep must find it.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::told::{Told, Trunk, told};
use super::{ended, notices, run, run_knowing, samples};
use crate::measure::Start;
use crate::sample::{Pattern, Sample};
use crate::session::{Conflict, Event, Outcome};
use crate::sweep::made::on;
use crate::sweep::{Hosts, Knowledge, Load, Probe, SweepSettings};

/// What a host gives, bytes per second.
const RATE: f64 = 100e6;

fn settings() -> SweepSettings {
    SweepSettings { patterns: vec![Pattern::Peer], sizes: vec![64 << 10, 1 << 20, 4 << 20], repeats: 8, ..SweepSettings::default() }
}

/// Hosts of one rank each; every pair at the same rate.
fn hosts(count: usize) -> Told {
    Told { topology: on(&vec![1; count]), rate: Some(Box::new(|_, _| RATE)), alpha: 50e-6, ..told(count) }
}

/// Four hosts and four, and a trunk of one host's rate each way between them.
pub(super) fn trunk() -> Told {
    let sides = || ((0..4).collect::<Vec<_>>(), (4..8).collect::<Vec<_>>());
    let (near, far) = sides();
    let trunks = vec![Trunk { from: near.clone(), to: far.clone(), rate: RATE }, Trunk { from: far, to: near, rate: RATE }];
    Told { trunks, ..hosts(8) }
}

/// Which way over the trunk.
fn over((from, to): (usize, usize)) -> Option<bool> {
    ((from < 4) != (to < 4)).then_some(from < 4)
}

/// Rounds in the order in which they were begun.
fn rounds(events: &[Event]) -> Vec<Vec<&Probe>> {
    let mut rounds: Vec<Vec<&Probe>> = Vec::new();
    for event in events {
        if let Event::ProbeStarted { probe } = event {
            match rounds.last_mut() {
                Some(round) if round[0].round == probe.round => round.push(probe),
                _ => rounds.push(vec![probe]),
            }
        }
    }
    rounds
}

fn crowded(round: &[&Probe]) -> bool {
    let over: Vec<bool> = round.iter().filter_map(|probe| over(probe.flows()[0])).collect();
    [true, false].iter().any(|way| over.iter().filter(|other| *other == way).count() > 1)
}

/// Good samples of the newest take of each pair and size.
fn newest(events: &[Event]) -> BTreeMap<(usize, usize, u64), Vec<&Sample>> {
    let mut newest: BTreeMap<(usize, usize, u64), Vec<&Sample>> = BTreeMap::new();
    for sample in samples(events) {
        let own = newest.entry((sample.from, sample.to, sample.bytes)).or_default();
        own.retain(|other| other.take >= sample.take);
        if own.iter().all(|other| other.take == sample.take) {
            own.push(sample);
        }
    }
    newest
}

/// Median rate of samples, bytes per second.
fn rate(samples: &[&Sample]) -> f64 {
    let mut times: Vec<f64> = samples.iter().filter_map(|sample| sample.seconds_per_message()).collect();
    samples[0].bytes as f64 / crate::fit::median(&mut times)
}

fn truth(bytes: u64) -> f64 {
    bytes as f64 / (50e-6 + bytes as f64 / RATE)
}

#[test]
fn a_trunk_that_nobody_told_of_is_found_and_every_rate_is_that_of_a_pair_alone() {
    for seed in 0..20 {
        for noise in [0.0, 0.03] {
            let engine = Told { noise_of: Box::new(move |_, _| noise), rng: fastrand::Rng::with_seed(seed), ..trunk() };
            let start = Start::new(SweepSettings { seed, ..settings() });
            let (events, blemished) = run(engine, Some(start), true, |_, _| {});
            assert!(!blemished && ended(&events) == [Outcome::Complete]);
            let found = newest(&events);
            assert_eq!(found.len(), 56 * 3);
            for (key, samples) in found {
                assert_eq!(samples.len(), 8, "{key:?} seed {seed}");
                let ratio = rate(&samples) / truth(key.2);
                assert!((0.9..1.05).contains(&ratio), "{key:?} {ratio} seed {seed} noise {noise}: {:?}", notices(&events));
            }
            let told = notices(&events);
            assert!(told.iter().any(|text| text.contains("between node1-4 and node5-8")), "seed {seed}: {told:#?}");
            assert!(told.iter().any(|text| text.contains("between node5-8 and node1-4")), "seed {seed}: {told:#?}");
            assert!(told.iter().all(|text| text.contains("share something")), "{told:#?}");
            // Each finding is on record with what it rests on.
            let kept = events.iter().filter_map(|event| if let Event::Shared(conflict) = event { Some(conflict) } else { None });
            let kept: Vec<&Conflict> = kept.collect();
            assert_eq!(kept.len(), told.len(), "seed {seed}");
            for conflict in kept {
                assert!(conflict.is_sound(8) && conflict.flows.len() > 1 && conflict.repeats >= 3, "{conflict:?}");
                let there = |&(from, to): &(usize, usize)| (from / 4 != to / 4).then_some(from < 4);
                assert!(
                    conflict.flows.iter().all(|flow| there(flow) == there(&conflict.flows[0]) && there(flow).is_some()),
                    "{conflict:?}"
                );
                let moved: f64 = conflict.together.iter().map(|seconds| conflict.bytes as f64 / seconds).sum();
                assert!((0.85..1.15).contains(&(moved / RATE)), "seed {seed}: {conflict:?}");
                assert!(conflict.alone.iter().zip(&conflict.together).all(|(alone, together)| together > alone), "{conflict:?}");
            }
            // From the last finding on it is never used by two at a time, and yet there is company.
            let last = events.iter().rposition(|event| matches!(event, Event::Notice { .. })).unwrap();
            let after = rounds(&events[last..]);
            assert!(!after.iter().any(|round| crowded(round)), "seed {seed}");
            assert!(after.iter().filter(|round| round.len() > 2).count() * 2 > after.len(), "seed {seed}");
        }
    }
}

/// What was disturbed is measured again before anything else, so that even the first picture is one of pairs alone.
#[test]
fn the_first_picture_is_right_when_there_is_no_time_for_more() {
    for seed in 0..10 {
        let engine = Told { clock: Some(Rc::default()), rng: fastrand::Rng::with_seed(seed), ..trunk() };
        let start = Start::new(SweepSettings { seed, budget: 1e-6, ..settings() });
        let (events, _) = run(engine, Some(start), true, |_, _| {});
        let found = newest(&events);
        assert_eq!(found.len(), 56, "one size");
        for ((from, to, bytes), samples) in found {
            assert!((rate(&samples) / truth(bytes) - 1.0).abs() < 1e-3, "{from}→{to} seed {seed}: {:?}", notices(&events));
        }
    }
}

/// What is told of the trunk beforehand.
struct Trunked(Hosts);

struct TrunkLoad<'a>(Box<dyn Load + 'a>, [bool; 2]);

impl Knowledge for Trunked {
    fn begin(&self) -> Box<dyn Load + '_> {
        Box::new(TrunkLoad(self.0.begin(), [false; 2]))
    }
}

impl Load for TrunkLoad<'_> {
    fn add(&mut self, flows: &[(usize, usize)]) -> bool {
        let ways: Vec<usize> = flows.iter().filter_map(|&flow| over(flow)).map(usize::from).collect();
        if ways.iter().any(|&way| self.1[way]) || !self.0.add(flows) {
            return false;
        }
        for way in ways {
            self.1[way] = true;
        }
        true
    }
}

#[test]
fn a_trunk_that_was_told_is_never_used_by_two_pairs_at_a_time() {
    let engine = Told { noise_of: Box::new(|_, _| 0.05), ..trunk() };
    let knowledge = Rc::new(Trunked(Hosts::new(&engine.topology)));
    let settings = SweepSettings { ci: 0.03, repeats: 20, patterns: vec![Pattern::Peer, Pattern::Duplex], ..settings() };
    let (events, _) = run_knowing(Some(knowledge), engine, Some(Start::new(settings)), true, |_, _| {});
    let rounds = rounds(&events);
    assert!(!rounds.iter().any(|round| crowded(round)));
    assert_eq!(notices(&events), [""; 0], "there is nothing to find");
    assert!(rounds.iter().filter(|round| round.len() > 2).count() * 2 > rounds.len());
    // Samples say whether they had company.
    for event in &events {
        if let Event::ProbeDone { probe: id, samples, .. } = event {
            let round = rounds.iter().find(|round| round.iter().any(|probe| probe.id == *id)).unwrap();
            assert!(samples.iter().all(|sample| sample.isolated == (round.len() == 1)));
        }
    }
}

/// Noise is no conflict, and one probe at a time is one at a time.
#[test]
fn where_nothing_is_shared_nothing_is_found() {
    for seed in 0..10 {
        for noise in [0.03, 0.3] {
            let engine = Told { noise_of: Box::new(move |_, _| noise), rng: fastrand::Rng::with_seed(seed), ..hosts(8) };
            let (events, _) = run(engine, Some(Start::new(SweepSettings { seed, ..settings() })), true, |_, _| {});
            assert_eq!(notices(&events), [""; 0], "seed {seed}");
            let rounds = rounds(&events);
            assert!(rounds.iter().filter(|round| round.len() == 1).count() * 4 < rounds.len(), "seed {seed}");
        }
    }
    let isolated = SweepSettings { isolated: true, ..settings() };
    let (events, _) = run(trunk(), Some(Start::new(isolated)), true, |_, _| {});
    assert!(rounds(&events).iter().all(|round| round.len() == 1) && samples(&events).iter().all(|sample| sample.isolated));
    assert_eq!(samples(&events).len(), 56 * 3 * 8, "exactly what was asked for");
}

/// Company that slows a single pair down: two ranks of a host whose port was thought to be two.
#[test]
fn a_pair_that_only_its_company_slows_runs_alone_from_then_on() {
    let engine = Told { trunks: vec![Trunk { from: vec![0], to: vec![1], rate: 30e6 }], ..hosts(6) };
    // A way that is narrow always is no conflict.
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let told = notices(&events);
    assert!(told.len() == 1 && told[0].contains("0→1 goes at 0.30 of the usual rate") && told[0].contains("the way between"), "{told:?}");
    // One that is slow beside others is.
    let mut engine = hosts(6);
    engine.beside = vec![((0, 1), 0.5)];
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let told = notices(&events);
    assert!(told.len() == 1 && told[0].starts_with("0→1 ran at ") && told[0].contains("measured alone from now on"), "{told:?}");
    for ((from, to, bytes), samples) in newest(&events) {
        assert!((rate(&samples) / truth(bytes) - 1.0).abs() < 1e-3, "{from}→{to}");
        assert_eq!(samples.len(), 8);
    }
    let last = events.iter().rposition(|event| matches!(event, Event::Notice { .. })).unwrap();
    let beside = |round: &&Vec<&Probe>| round.len() > 1 && round.iter().any(|probe| probe.flows() == [(0, 1)]);
    assert_eq!(rounds(&events[last..]).iter().filter(beside).count(), 0);
}

/// The swap rule: who is slow with everybody is slow, and a pair whose ends do well with others is a slow way.
#[test]
fn slow_ranks_and_slow_ways_are_told_apart() {
    let rate = |from, to| match (from, to) {
        (3, _) => RATE / 4.0,
        (_, 5) => RATE / 2.0,
        (1, 0) => RATE * 0.6,
        _ => RATE,
    };
    let engine = Told { rate: Some(Box::new(rate)), noise_of: Box::new(|_, _| 0.03), ..hosts(8) };
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let told = notices(&events);
    assert_eq!(told.len(), 3, "each is said once: {told:#?}");
    for part in ["rank 3 on node4 sends at 0.25", "rank 5 on node6 receives at 0.50", "1→0 goes at 0."] {
        assert!(told.iter().any(|text| text.starts_with(part)), "{part}: {told:#?}");
    }
    // Asked alone once, not for each size again.
    let alone = rounds(&events).iter().filter(|round| round.len() == 1).count();
    assert!(alone < 30, "{alone} of {}", rounds(&events).len());
}
