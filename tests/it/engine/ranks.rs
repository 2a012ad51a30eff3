//! MPI jobs of four ranks, each this program; what rank 0 finds out is told in its last words.

mod spoil;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use toposcope::sample::Pattern;
use toposcope::transport::mpi::{self, Role};
use toposcope::transport::{End, Engine, Report};

use super::probes::{LANES, duplex, fan_in, fan_out, pair, relay, setup, whole};
use super::{measured, of, told};
use crate::place::mpi::Mpi;
use crate::place::{Place, kill, until};

/// What rank 0 does, for those who start a rank.
const SCENARIO: &str = "TOPOSCOPE_TEST_SCENARIO";
const RANKS: usize = 4;

/// What rank 0 does with its engine.
type Scenario = fn(Box<mpi::Mpi>);

const SCENARIOS: [(&str, Scenario); 9] = [
    ("every pattern", |mut engine| {
        super::every_pattern(engine.as_mut());
        engine.finish();
    }),
    ("rounds", |mut engine| {
        super::rounds(engine.as_mut());
        engine.finish();
    }),
    ("missing partners", missing_partners),
    ("rounds in trouble", rounds_in_trouble),
    ("spoiled", spoiled),
    ("group", group),
    ("every work", |mut engine| {
        super::works::every_work(engine.as_mut());
        engine.finish();
    }),
    ("a group's work", |engine| super::works::group(engine).finish()),
    ("a work without a rank", super::works::stopped),
];

#[test]
#[ignore = "one rank of the jobs that the other tests start"]
fn rank() {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let (name, scenario) = SCENARIOS.into_iter().find(|(own, _)| *own == name).unwrap();
    match mpi::join(RANKS).unwrap() {
        Role::Worker(worker) => {
            if name == "spoiled" && worker.rank() == spoil::RANK {
                std::thread::spawn(spoil::payload);
            }
            worker.serve(Vec::new);
        }
        Role::Root(engine) => {
            let good = catch_unwind(AssertUnwindSafe(|| scenario(engine))).is_ok();
            let word = if good { "well" } else { "badly" };
            std::io::stderr().write_all(format!("\n{name} ended {word}\n").as_bytes()).unwrap();
        }
    }
}

/// Run a job to rank 0's last word, whatever the launcher makes of ranks that were given up.
fn job(name: &str) {
    let Some(mpi) = Mpi::own() else { return };
    let place = Place::new();
    let mut command = place.command(mpi.launcher);
    let words = mpi.words("4");
    command.args(&words[1..]).args(["engine::ranks::rank", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    let run = place.start(command.env(SCENARIO, name));
    until(Duration::from_secs(300), name, || run.said(), || run.said().contains(&format!("{name} ended ")));
    let said = run.said();
    assert!(said.contains(&format!("{name} ended well")), "{}: {said}", mpi.name);
}

#[test]
fn every_pattern_is_measured_with_every_mover() {
    job("every pattern");
}

#[test]
fn probes_of_a_round_run_at_the_same_time() {
    job("rounds");
}

#[test]
fn a_missing_partner_is_a_timeout_and_the_next_probe_works() {
    job("missing partners");
}

#[test]
fn a_probe_in_trouble_leaves_the_others_of_its_round_alone() {
    job("rounds in trouble");
}

#[test]
fn a_spoiled_transfer_is_found_and_named() {
    job("spoiled");
}

#[test]
fn a_group_is_measured_and_the_others_sleep_without_buffers() {
    job("group");
}

#[test]
fn every_work_is_carried_with_every_mover_and_wrong_bytes_are_found() {
    job("every work");
}

#[test]
fn a_group_carries_a_work() {
    job("a group's work");
}

#[test]
fn a_rank_that_stops_in_a_work_is_told_in_time() {
    job("a work without a rank");
}

fn pid(engine: &dyn Engine, rank: usize) -> u32 {
    engine.topology().ranks[rank].pid
}

/// A rank is stopped for a while, so that it takes no part in time.
fn missing_partners(mut engine: Box<mpi::Mpi>) {
    let engine = engine.as_mut();
    let movers = engine.movers();
    let mut id = 0;
    for &mover in movers.iter().filter(|mover| mover.moves(toposcope::sample::Memory::Host)) {
        engine.prepare(&setup(mover, 1 << 20, LANES)).unwrap();
        for (order, away) in [
            (fan_in(0, &[1, 2, 3]), 3),
            (fan_out(0, &[1, 2, 3]), 1),
            (fan_in(2, &[0, 1, 3]), 2),
            (relay(&[0, 1, 2, 3], 1), 2),
            (duplex(1, 3), 3),
        ] {
            let mut order = order;
            let stopped = pid(engine, away);
            // On a busy machine the others may begin so late that this one is there again: not missed, then.
            let missed = (0..5).any(|_| {
                kill(stopped, Signal::STOP);
                id += 1;
                (order.probe.id, order.timeout) = (id, 0.4);
                engine.start(std::slice::from_ref(&order)).unwrap();
                // Well after the others have given up, and well before this one is given up.
                let begun = Instant::now();
                let reports = told(engine, 1, |_| {
                    if begun.elapsed() > Duration::from_secs(1) {
                        kill(stopped, Signal::CONT);
                    }
                });
                assert!(!reports.iter().any(|report| matches!(report, Report::Lost { .. })), "{reports:?}");
                let report = of(&reports, id).unwrap();
                matches!(report.end, End::Timeout(_)) && report.repeats.is_empty()
            });
            assert!(missed, "{order:?}");
            id += 1;
            (order.probe.id, order.timeout) = (id, 60.0);
            measured(engine, &order);
        }
    }
    engine.finish();
}

/// One probe of a round goes on, hangs, or loses a rank; the other one is measured.
fn rounds_in_trouble(mut engine: Box<mpi::Mpi>) {
    let engine = engine.as_mut();
    let mover = engine.movers()[0];
    engine.prepare(&setup(mover, 1 << 20, LANES)).unwrap();

    // They overlap: one is complete while a rank of the other one is stopped, which is complete after that.
    let (mut one, mut other) = (pair(Pattern::Peer, 0, 1), pair(Pattern::Peer, 2, 3));
    (one.probe.id, other.probe.id) = (1, 2);
    let stopped = pid(engine, 3);
    kill(stopped, Signal::STOP);
    engine.start(&[other.clone(), one.clone()]).unwrap();
    let reports = told(engine, 2, |reports| {
        if of(reports, 1).is_some() {
            assert!(of(reports, 2).is_none() || reports.len() == 2, "{reports:?}");
            kill(stopped, Signal::CONT);
        }
    });
    assert_eq!(reports.iter().position(|report| matches!(report, Report::Probe(report) if report.probe == 1)), Some(0), "{reports:?}");
    whole(&one, of(&reports, 1).unwrap());
    whole(&other, of(&reports, 2).unwrap());

    // The one with rank 0 times out, then the other one.
    for (id, away) in [(10, 1), (20, 2)] {
        (one.probe.id, other.probe.id) = (id, id + 1);
        (one.timeout, other.timeout) = if away == 1 { (0.4, 60.0) } else { (60.0, 0.4) };
        let stopped = pid(engine, away);
        kill(stopped, Signal::STOP);
        let begun = Instant::now();
        engine.start(&[one.clone(), other.clone()]).unwrap();
        let reports = told(engine, 2, |_| {
            if begun.elapsed() > Duration::from_millis(600) {
                kill(stopped, Signal::CONT);
            }
        });
        assert_eq!(reports.len(), 2, "{reports:?}");
        let (hung, well) = if away == 1 { (id, id + 1) } else { (id + 1, id) };
        assert!(matches!(of(&reports, hung).unwrap().end, End::Timeout(_)), "{reports:?}");
        whole(if away == 1 { &other } else { &one }, of(&reports, well).unwrap());
    }

    // A rank of one of them is lost for good.
    let (mut fan, mut beside) = (fan_in(2, &[1]), duplex(0, 3));
    (fan.probe.id, fan.timeout, beside.probe.id) = (30, 0.4, 31);
    let stopped = pid(engine, 2);
    kill(stopped, Signal::STOP);
    engine.start(&[fan, beside.clone()]).unwrap();
    let reports = told(engine, 2, |_| {});
    whole(&beside, of(&reports, 31).unwrap());
    assert!(matches!(of(&reports, 30).unwrap().end, End::Timeout(_)), "{reports:?}");
    let lost: Vec<usize> =
        reports.iter().filter_map(|report| if let Report::Lost { rank, .. } = report { Some(*rank) } else { None }).collect();
    assert_eq!(lost, [2]);
    let mut rest = relay(&[0, 1, 3], 1);
    rest.probe.id = 32;
    measured(engine, &rest);
    engine.finish();
}

/// Rank 2's payload is spoiled in its memory, behind everybody's back.
fn spoiled(mut engine: Box<mpi::Mpi>) {
    let engine = engine.as_mut();
    let movers = engine.movers();
    let mut id = 0;
    for &mover in movers.iter().filter(|mover| mover.moves(toposcope::sample::Memory::Host)) {
        engine.prepare(&setup(mover, spoil::ARENA, 3)).unwrap();
        for (order, told) in [
            (fan_in(0, &[1, 2, 3]), "rank 0: 2→0: byte "),
            (relay(&[0, 1, 2, 3], 1), "rank 3: 2→3: byte "),
            (duplex(1, 2), "rank 1: 2→1: byte "),
            (fan_out(2, &[0]), "rank 0: 2→0: byte "),
        ] {
            let mut order = order;
            // It happens at any moment after the payload was filled in.
            let end = Instant::now() + super::LIMIT;
            let reason = loop {
                id += 1;
                order.probe.id = id;
                engine.start(std::slice::from_ref(&order)).unwrap();
                let reports = super::told(engine, 1, |_| {});
                match &of(&reports, id).unwrap().end {
                    End::Corrupt(reason) => break reason.clone(),
                    other => assert!(Instant::now() < end && *other == End::Complete, "{other:?}"),
                }
            };
            assert!(reason.starts_with(told), "{reason}");
        }
    }
    engine.finish();
}

/// Ticks of processor time, and pages of memory, of a process.
fn used(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    (number(11) + number(12), number(21))
}

fn group(engine: Box<mpi::Mpi>) {
    let (outside, inside) = (pid(engine.as_ref(), 2), pid(engine.as_ref(), 1));
    let mut engine = super::group(engine);
    let (before, _) = used(outside);
    let begun = Instant::now();
    let mut id = 100;
    while begun.elapsed() < Duration::from_secs(2) {
        let mut order = relay(&[0, 1], 1);
        (order.probe.id, order.probe.bytes, order.probe.repeats) = (id, 1 << 20, 50);
        measured(&mut engine, &order);
        id += 1;
    }
    let ((after, pages), (_, theirs)) = (used(outside), used(inside));
    // 100 ticks make a second.
    assert!(after - before < 20, "{} ticks in 2 s of others' probes", after - before);
    assert!(theirs > pages + (100 << 20) / 4096, "{pages} pages outside, {theirs} inside");
    engine.finish();
}
