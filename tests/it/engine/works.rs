//! Works: plans and strategies that four ranks carry, with every mover.

use std::time::{Duration, Instant};

use toposcope::plan::strategy::{Held, Job, Strategy};
use toposcope::plan::work::work;
use toposcope::plan::{Batch, Endpoints, Parameter, Place, Plan, Segment, Transfers};
use toposcope::sample::{Memory, MoverKind};
use toposcope::transport::work::{Carried, Carry, Content, Region, SPACE, Work};
use toposcope::transport::{End, Engine, Grouped, Report};

use super::LIMIT;

const RUNS: u32 = 2;

fn of(transfers: &Transfers) -> Work {
    work(transfers, 4).unwrap().0
}

fn strategy(strategy: Strategy, bytes: u64) -> Work {
    let job = Job { hosts: vec![0, 0, 1, 1], bytes, trainers: vec![0, 1], engines: vec![2, 3], held: Held::Whole, message: Some(300_000) };
    of(&Transfers::Traffic(strategy.traffic(&job).unwrap()))
}

/// Columns over two ranks -> columns over four.
fn columns() -> Work {
    let (rows, columns) = (1000_u64, 64_u64);
    let segment = |to: i64| Segment {
        shape: vec![rows, columns / 4],
        source: Place(to / 2, to.unsigned_abs() % 2 * columns / 4, vec![(columns / 2).cast_signed(), 1]),
        target: Place(to, 0, vec![(columns / 4 + 1).cast_signed(), 1]),
    };
    let plan = Plan { logical_shape: vec![rows, columns], segments: (0..4).map(segment).collect() };
    let endpoints = Endpoints { source: [(0, 0), (1, 2)].into(), target: (0..4).map(|at| (at, at as usize)).collect() };
    of(&Transfers::Batch(Batch {
        parameters: vec![Parameter { name: "w".to_owned(), plan, element_size: 2 }],
        endpoints,
        bytes_per_peer: 5000,
    }))
}

/// Load, run, and wait; `each` may act after every look.
pub fn carried(engine: &mut dyn Engine, work: &Work, mover: MoverKind, order: Carry, mut each: impl FnMut()) -> (Carried, Vec<Report>) {
    engine.load(work, mover).unwrap();
    engine.carry(&order).unwrap();
    let (end, mut others) = (Instant::now() + LIMIT, Vec::new());
    loop {
        assert!(Instant::now() < end, "{others:?}");
        for report in engine.poll(Duration::from_millis(20)) {
            match report {
                Report::Carried(carried) => return (carried, others),
                other => others.push(other),
            }
        }
        each();
    }
}

fn whole(engine: &mut dyn Engine, work: &Work, mover: MoverKind, id: u64) {
    let (carried, _) = carried(engine, work, mover, Carry { id, warmup: 1, runs: RUNS, timeout: 30.0 }, || {});
    assert_eq!(carried.end, End::Complete);
    let bytes: u64 = work.flows.iter().map(|flow| flow.bytes).sum();
    assert_eq!(carried.verified, u64::from(RUNS + 1) * bytes);
    assert!(carried.runs.len() == RUNS as usize && carried.runs.iter().all(|run| run.len() == work.flows.len()), "{carried:?}");
}

/// One byte that a rank holds is another one.
fn spoil(work: &mut Work, rank: usize) {
    let part = &mut work.parts[rank];
    let Content { region, address } = part.content.remove(0);
    let half = region.run / 2;
    for (from, length, tag) in [(0, half, address.at), (half, 1, 99 * SPACE), (half + 1, region.run - half - 1, address.at + half + 1)] {
        part.content.push(Content { region: Region::packed(region.at + from, length), address: Region::packed(tag, length) });
    }
}

/// Every strategy, strided plans, and wrong bytes, with every mover.
pub fn every_work(engine: &mut dyn Engine) {
    let movers: Vec<MoverKind> = engine.movers().iter().copied().filter(|mover| mover.moves(Memory::Host)).collect();
    every_work_on(engine, Memory::Host, &movers);
}

/// The same on this memory, with these movers.
pub fn every_work_on(engine: &mut dyn Engine, memory: Memory, movers: &[MoverKind]) {
    let mut id = 0;
    for &mover in movers {
        let mut works: Vec<Work> = Strategy::all(4).into_iter().map(|of| strategy(of, 2_000_003)).collect();
        works.push(columns());
        for mut work in works.into_iter().map(|work| work.on(memory, &[])) {
            id += 1;
            whole(engine, &work, mover, id);
            spoil(&mut work, 0);
            id += 1;
            let (carried, _) = carried(engine, &work, mover, Carry { id, warmup: 1, runs: 1, timeout: 30.0 }, || {});
            assert!(matches!(&carried.end, End::Corrupt(why) if why.contains("is not what was to be sent")), "{carried:?}");
        }
    }
}

/// Two of four ranks, out of order, without rank 0.
pub fn group(engine: Box<dyn Engine>) -> Grouped {
    let mut engine = Grouped::new(engine, vec![3, 1]).unwrap();
    let job = Job { hosts: vec![0, 1], bytes: 500_000, trainers: vec![0], engines: vec![1], held: Held::Whole, message: None };
    let transfers = Transfers::Traffic(Strategy::Direct.traffic(&job).unwrap());
    let (work, _) = work(&transfers, 2).unwrap();
    let mover = engine.movers()[0];
    whole(&mut engine, &work, mover, 1);
    engine
}

/// A rank that does not answer: the others say so in time, and what they waited for.
#[cfg(feature = "mpi")]
pub fn stopped(mut engine: Box<toposcope::transport::mpi::Mpi>) {
    use crate::place::kill;
    use rustix::process::Signal;
    let engine = engine.as_mut();
    let pid = engine.topology().ranks[3].pid;
    let work = strategy(Strategy::Relay, 1_000_000);
    whole(engine, &work, MoverKind::MpiSendrecv, 1);
    engine.load(&work, MoverKind::MpiSendrecv).unwrap();
    kill(pid, Signal::STOP);
    engine.carry(&Carry { id: 2, warmup: 1, runs: 1, timeout: 0.5 }).unwrap();
    let (begun, mut reports) = (Instant::now(), Vec::new());
    while !reports.iter().any(|report| matches!(report, Report::Carried(_))) {
        assert!(begun.elapsed() < LIMIT, "{reports:?}");
        reports.extend(engine.poll(Duration::from_millis(20)));
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let lost: Vec<usize> =
        reports.iter().filter_map(|report| if let Report::Lost { rank, .. } = report { Some(*rank) } else { None }).collect();
    assert_eq!(lost, [3]);
    let Some(Report::Carried(carried)) = reports.last() else { panic!("{reports:?}") };
    let End::Timeout(why) = &carried.end else { panic!("{carried:?}") };
    assert!(why.contains("rank 3") && why.contains("within 0.5 s") && carried.runs.is_empty(), "{why}");
    // Another one needs every rank.
    assert!(engine.load(&work, MoverKind::MpiPut).unwrap_err().to_string().contains("rank 3 is lost"));
    engine.finish();
    kill(pid, Signal::KILL);
}
