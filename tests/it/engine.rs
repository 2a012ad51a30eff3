//! Engines driven directly, without a sweep: every pattern on threads and in MPI jobs, whose ranks are this program.

pub mod probes;
#[cfg(feature = "mpi")]
mod ranks;
pub mod works;

use std::time::{Duration, Instant};

use probes::{LANES, duplex, every, fan_in, pair, relay, setup, whole};
use toposcope::sample::{Memory, MoverKind, Pattern};
use toposcope::transport::{Engine, Grouped, Order, ProbeReport, Report, threads::Threads};

/// Nothing here takes this long.
const LIMIT: Duration = Duration::from_secs(60);

/// Poll until this many probes are told; `each` may act after every look.
pub fn told(engine: &mut dyn Engine, probes: usize, mut each: impl FnMut(&[Report])) -> Vec<Report> {
    let end = Instant::now() + LIMIT;
    let mut reports = Vec::new();
    while reports.iter().filter(|report| matches!(report, Report::Probe(_))).count() < probes {
        assert!(Instant::now() < end, "{reports:?}");
        reports.extend(engine.poll(Duration::from_millis(20)));
        each(&reports);
    }
    reports
}

pub fn of(reports: &[Report], id: u64) -> Option<&ProbeReport> {
    reports
        .iter()
        .find_map(|report| if let Report::Probe(report) = report { Some(report).filter(|report| report.probe == id) } else { None })
}

#[track_caller]
pub fn measured(engine: &mut dyn Engine, order: &Order) -> ProbeReport {
    engine.start(std::slice::from_ref(order)).unwrap();
    let reports = told(engine, 1, |_| {});
    let report = of(&reports, order.probe.id).unwrap().clone();
    whole(order, &report);
    report
}

/// Every pattern with every mover, from bytes to megabytes: a state for every transfer and repeat, and the payload is right.
fn every_pattern(engine: &mut dyn Engine) {
    let mut id = 0;
    for &mover in engine.movers().iter().filter(|mover| mover.moves(Memory::Host)) {
        engine.prepare(&setup(mover, 8 << 20, LANES)).unwrap();
        for bytes in [1, 4096, 300_000, 3 << 20] {
            for mut order in every() {
                id += 1;
                (order.probe.id, order.probe.bytes) = (id, bytes);
                let report = measured(engine, &order);
                if order.probe.target.pattern() == Pattern::FanOut {
                    let timed = report.repeats.iter().filter(|repeat| !repeat.warmup);
                    assert!(timed.clone().all(|repeat| report.root_seconds[repeat.repeat as usize] >= repeat.seconds), "{report:?}");
                }
            }
        }
    }
}

/// Two probes in one round, rank 0 in one of them, and in none.
fn rounds(engine: &mut dyn Engine) {
    let mover = engine.movers()[0];
    engine.prepare(&setup(mover, 8 << 20, LANES)).unwrap();
    for (at, (one, other)) in [
        (pair(Pattern::Peer, 0, 1), pair(Pattern::Peer, 2, 3)),
        (pair(Pattern::Peer, 3, 1), pair(Pattern::Peer, 2, 0)),
        (fan_in(3, &[1]), duplex(0, 2)),
        (pair(Pattern::Local, 1, 1), relay(&[0, 2, 3], 1)),
        (pair(Pattern::Local, 1, 1), pair(Pattern::Peer, 3, 2)),
    ]
    .into_iter()
    .enumerate()
    {
        let (mut one, mut other) = (one, other);
        (one.probe.id, other.probe.id) = (2 * at as u64, 2 * at as u64 + 1);
        engine.start(&[one.clone(), other.clone()]).unwrap();
        let reports = told(engine, 2, |_| {});
        assert_eq!(reports.len(), 2, "{reports:?}");
        whole(&one, of(&reports, one.probe.id).unwrap());
        whole(&other, of(&reports, other.probe.id).unwrap());
    }
}

/// A group of two, out of order, without rank 0.
fn group(engine: Box<dyn Engine>) -> Grouped {
    let mut engine = Grouped::new(engine, vec![3, 1]).unwrap();
    let mover = engine.movers()[0];
    engine.prepare(&setup(mover, 64 << 20, 1)).unwrap();
    for (id, order) in [pair(Pattern::Peer, 1, 0), duplex(0, 1), fan_in(0, &[1]), relay(&[0, 1], 1)].into_iter().enumerate() {
        let mut order = order;
        order.probe.id = id as u64;
        measured(&mut engine, &order);
    }
    engine
}

#[test]
fn threads_measure_every_pattern() {
    let mut engine = Threads::start(4).unwrap();
    let on_host: Vec<MoverKind> = engine.movers().iter().copied().filter(|mover| mover.moves(Memory::Host)).collect();
    assert_eq!(on_host, [MoverKind::Memcpy]);
    every_pattern(&mut engine);
    rounds(&mut engine);
    engine.finish();
    group(Box::new(Threads::start(4).unwrap())).finish();
}

#[test]
fn threads_carry_every_work_and_find_wrong_bytes() {
    let mut engine = Threads::start(4).unwrap();
    works::every_work(&mut engine);
    engine.finish();
    works::group(Box::new(Threads::start(4).unwrap())).finish();
}
