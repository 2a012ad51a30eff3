//! How many repeats: by interval, by number, by time; of some pairs; over several jobs; and what is foreseen of it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::told::{Told, told};
use super::{ended, notices, run, samples};
use crate::measure::Start;
use crate::sample::{EngineKind, Pattern, Sample, Status};
use crate::session::{Command, Event, Header, Model, Outcome, Record};
use crate::sweep::made::on;
use crate::sweep::{Enough, SweepSettings};
use crate::topology::Topology;

/// Rates and noise: two ranks a host; rank 0 sends with much noise, rank 1 with some.
fn noisy(hosts: usize) -> Told {
    let engine = told(2 * hosts);
    Told {
        topology: on(&vec![2; hosts]),
        rate: Some(Box::new(|_, _| 1e9)),
        alpha: 20e-6,
        noise_of: Box::new(|from, _| [0.8, 0.2].get(from).copied().unwrap_or(0.02)),
        clock: Some(Rc::new(Cell::new(0.0))),
        ..engine
    }
}

fn settings() -> SweepSettings {
    SweepSettings {
        patterns: vec![Pattern::Local, Pattern::Peer],
        sizes: vec![16 << 10, 256 << 10, 1 << 20],
        repeats: 40,
        ci: 0.05,
        ..SweepSettings::default()
    }
}

/// The session that these events are.
fn fold(topology: &Topology, events: &[Event]) -> Model {
    let mut model = Model::new(Header {
        format: Header::current_format(),
        program: String::new(),
        name: String::new(),
        started: String::new(),
        engine: EngineKind::Threads,
        settings: settings(),
        topology: topology.clone(),
        software: BTreeMap::new(),
        environment: BTreeMap::new(),
        group: Vec::new(),
    });
    for event in events {
        model.apply(&Record { t: 0.0, event: event.clone() });
    }
    model
}

#[test]
fn each_pair_gets_as_many_repeats_as_its_interval_needs() {
    let engine = noisy(2);
    let topology = engine.topology.clone();
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let model = fold(&topology, &events);
    let mut most = BTreeMap::new();
    for (cell, sizes) in model.cells.iter() {
        assert_eq!(sizes.len(), 3);
        for size in sizes {
            let interval = size.interval().unwrap();
            let width = (interval.high - interval.low) / 2.0 / size.median;
            let fewest = settings().batch(size.bytes, 12) as usize;
            assert!((fewest..=40).contains(&size.count), "{cell:?} {}", size.count);
            match size.enough {
                Some(Enough::Interval) => assert!(width <= 0.05, "{cell:?} {width}"),
                Some(Enough::Repeats) => assert!(width > 0.05 && size.count == 40, "{cell:?} {width} {}", size.count),
                other => panic!("{cell:?} {}: {other:?}", size.bytes),
            }
            let more = most.entry(cell.from).or_insert(0);
            *more = (size.count - fewest).max(*more);
        }
    }
    // Those with much noise, with some, and with little.
    assert!(most[&0] == 40 - 6 && (1..34).contains(&most[&1]) && most[&2] == 0, "{most:?}");
}

#[test]
fn the_widest_interval_is_next() {
    // One host: one probe at a time, so that the order of rounds is the order of probes.
    let engine = Told { noise_of: Box::new(|from, to| 0.1 + 0.1 * (from * 3 + to) as f64), topology: on(&[6]), ..noisy(3) };
    let settings = SweepSettings { sizes: vec![1 << 20], patterns: vec![Pattern::Peer], ..settings() };
    let (events, _) = run(engine, Some(Start::new(settings)), true, |_, _| {});
    let mut times: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    let mut pass: Vec<((usize, usize), f64)> = Vec::new();
    let mut compared = 0;
    for event in &events {
        match event {
            Event::ProbeStarted { probe } if probe.first_repeat >= 6 => {
                let pair = probe.flows()[0];
                let own = &times[&pair];
                let interval = crate::fit::median_interval(own, 0.95).unwrap();
                let width = (interval.high - interval.low) / 2.0 / crate::fit::median(&mut own.clone());
                if pass.iter().any(|(other, _)| *other == pair) {
                    pass.clear();
                }
                if let Some((_, before)) = pass.last() {
                    assert!(width <= before * (1.0 + 1e-6), "{pair:?}: {width} after {before}");
                    compared += 1;
                }
                pass.push((pair, width));
            }
            Event::ProbeDone { samples, .. } => {
                for sample in samples {
                    times.entry((sample.from, sample.to)).or_default().extend(sample.seconds_per_message());
                }
            }
            _ => {}
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn a_fixed_number_is_exactly_that_number_and_few_are_no_interval() {
    for (ci, repeats) in [(0.0, 9), (0.05, 3)] {
        let (events, _) = run(noisy(1), Some(Start::new(SweepSettings { repeats, ci, ..settings() })), true, |_, _| {});
        assert_eq!(samples(&events).len(), 4 * 3 * repeats as usize);
        let enough: Vec<Enough> =
            events.iter().filter_map(|event| if let Event::ProbeDone { enough, .. } = event { *enough } else { None }).collect();
        assert_eq!(enough, [Enough::Repeats; 12]);
    }
}

#[test]
fn the_budget_ends_the_sweep_but_not_before_everything_has_a_value() {
    let whole = {
        let engine = noisy(3);
        let clock = engine.clock.clone().unwrap();
        run(engine, Some(Start::new(settings())), true, |_, _| {});
        clock.get()
    };
    for (budget, share) in [(1e-6, 0.2), (whole / 2.0, 0.6)] {
        let engine = noisy(3);
        let (topology, clock) = (engine.topology.clone(), engine.clock.clone().unwrap());
        let (events, blemished) = run(engine, Some(Start::new(SweepSettings { budget, ..settings() })), true, |_, _| {});
        assert!(clock.get() < share * whole, "{} of {whole}", clock.get());
        assert!(!blemished);
        let Some(Event::SweepEnded { outcome: Outcome::Complete, reason }) = events.last() else { panic!("{:?}", events.last()) };
        let model = fold(&topology, &events);
        let settled = |size: &crate::session::SizeCell| matches!(size.enough, Some(Enough::Interval | Enough::Repeats));
        let left = 36 * 3 - model.cells.iter().flat_map(|(_, sizes)| sizes).filter(|size| settled(size)).count();
        assert!(reason.contains(&format!(": {left} of 108 targets x sizes are not within ±5 %")), "{left}: {reason}");
        assert_eq!(model.cells.iter().filter(|(_, sizes)| sizes.iter().any(|size| size.count > 0)).count(), 36);
        let cut = |event: &&Event| matches!(event, Event::ProbeDone { enough: Some(Enough::Budget), .. });
        let cut = events.iter().filter(cut).count();
        assert!(if budget < 1e-3 { cut >= 36 } else { cut <= 6 }, "those that were measured when it was used up say so: {cut}");
    }
}

/// A bar that is honest never goes back much, and is full at the end, not before.
#[test]
fn what_is_foreseen_is_what_comes() {
    // With what a trunk makes verification do besides, too.
    for engine in [noisy(4), super::rounds::trunk()] {
        foreseen(engine);
    }
}

fn foreseen(engine: Told) {
    let topology = engine.topology.clone();
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let mut model = fold(&topology, &[]);
    let (mut highest, mut worst) = (0.0_f64, 0.0_f64);
    for event in &events {
        model.apply(&Record { t: 0.0, event: event.clone() });
        let Some(sweep) = &model.sweep else { continue };
        let share = sweep.share();
        worst = worst.max(highest - share);
        highest = highest.max(share);
        assert!(sweep.progress.iter().all(|progress| progress.done <= progress.wanted));
    }
    let sweep = model.sweep.unwrap();
    for progress in &sweep.progress {
        assert_eq!(progress.done, progress.wanted, "{progress:?}");
    }
    assert_eq!(sweep.progress.iter().map(|progress| progress.done).sum::<u64>(), samples(&events).len() as u64);
    assert!(worst < 0.25, "went back by {worst}");
    let foreseen = events.iter().filter(|event| matches!(event, Event::Foreseen { .. })).count();
    assert!(foreseen < events.len() / 10, "{foreseen} of {}", events.len());
}

#[test]
fn some_pairs_of_many_are_measured_and_said_to_be_some() {
    let engine = Told { noise_of: Box::new(|_, _| 0.01), ..noisy(16) };
    let (events, _) = run(engine, Some(Start::new(SweepSettings { pairs: 4, ..settings() })), true, |_, _| {});
    let pairs: BTreeSet<(usize, usize)> =
        samples(&events).iter().filter(|sample| sample.pattern == Pattern::Peer).map(|sample| (sample.from, sample.to)).collect();
    assert_eq!(pairs.len(), 32 * 4);
    for rank in 0..32 {
        assert_eq!(pairs.iter().filter(|(from, _)| *from == rank).count(), 4);
        assert_eq!(pairs.iter().filter(|(_, to)| *to == rank).count(), 4);
    }
    assert_eq!(
        notices(&events),
        ["not all is measured: peer: 128 of 992 pairs (13 %), 4 from each rank, in equal parts of intra_node and inter_node"]
    );
    let position = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let (said, first) =
        (position(|event| matches!(event, Event::Notice { .. })), position(|event| matches!(event, Event::ProbeStarted { .. })));
    assert!(said < first, "beforehand");
}

/// A sweep that is cut anywhere, any number of times, comes to the same as one that is not.
#[test]
fn a_sweep_is_taken_up_where_it_was_cut() {
    let patterns = vec![Pattern::Local, Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::Relay];
    for (ci, repeats, each) in [(0.0, 8, 7), (0.05, 40, 11), (0.05, 40, 40), (0.0, 3, 1)] {
        let settings = SweepSettings { repeats, ci, patterns: patterns.clone(), ..settings() };
        let mut all: Vec<Event> = Vec::new();
        let mut jobs = 0;
        loop {
            let mut engine = noisy(2);
            engine.rng = fastrand::Rng::with_seed(jobs);
            let topology = engine.topology.clone();
            let model = fold(&topology, &all);
            let start = Start { done: model.done(), resumed: jobs > 0, ..Start::new(settings.clone()) };
            let mut probes = 0;
            let (events, _) = run(engine, Some(start), true, |event, commands| {
                probes += usize::from(matches!(event, Event::ProbeDone { .. }));
                if probes == each && matches!(event, Event::ProbeDone { .. }) {
                    commands.send(Command::Quit).unwrap();
                }
            });
            // The last event of a job that is killed is not written.
            all.extend(events.iter().filter(|event| !matches!(event, Event::SweepEnded { .. })).cloned());
            jobs += 1;
            assert!(jobs < 2000, "it ends");
            if ended(&events) == [Outcome::Complete] {
                break;
            }
        }
        let model = fold(&noisy(2).topology, &all);
        let done = model.done();
        assert_eq!(done.len(), (4 + 12 + 6 + 4 + 1) * 3, "ci {ci}");
        for done in &done {
            let mut numbers = done.repeats.clone();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>(), "{done:?}");
            if ci == 0.0 {
                assert_eq!(numbers.len(), repeats as usize, "{done:?}");
            } else {
                assert!(numbers.len() >= 6);
            }
        }
        assert!(jobs > 4, "{jobs}");
    }
}

#[test]
fn warm_ups_are_kept_of_small_worlds_and_in_no_count() {
    for (hosts, kept) in [(2, true), (130, false)] {
        let engine = Told { warmups: 2, noise_of: Box::new(|_, _| 0.01), ..noisy(hosts) };
        let topology = engine.topology.clone();
        let settings =
            SweepSettings { ci: 0.0, repeats: 2, sizes: vec![4096], patterns: vec![Pattern::Local], isolated: true, ..settings() };
        let (events, _) = run(engine, Some(Start::new(settings)), true, |_, _| {});
        let all = samples(&events);
        assert_eq!(all.iter().any(|sample| sample.warmup), kept);
        let good = |sample: &&&Sample| !sample.warmup && sample.status == Status::Ok;
        assert_eq!(all.iter().filter(good).count(), 2 * hosts * 2);
        assert_eq!(fold(&topology, &events).samples(), (2 * hosts * 2) as u64);
    }
}
