//! Plans and strategies as threads carry them: every byte.

use std::time::{Duration, Instant};

use super::*;
use crate::fabric::Fabric;
use crate::plan::strategy::{Held, Job, Strategy};
use crate::plan::{Batch, Endpoints, Flow, Parameter, Place, Plan, Segment, Stage, Staged};
use crate::sample::MoverKind;
use crate::topology::{Placement, Topology};
use crate::transport::threads::Threads;
use crate::transport::work::{Carried, Carry, Content, Moved, Region, Role, ends};
use crate::transport::{End, Engine, Report};

const RUNS: u32 = 2;

fn carried(work: &Work) -> Carried {
    let mut engine = Threads::start(work.parts.len()).unwrap();
    engine.load(work, MoverKind::Memcpy).unwrap();
    engine.carry(&Carry { id: 1, warmup: 1, runs: RUNS, timeout: 20.0 }).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let carried = loop {
        assert!(Instant::now() < end);
        let mut told = engine.poll(Duration::from_millis(20)).into_iter();
        if let Some(carried) = told.find_map(|report| if let Report::Carried(carried) = report { Some(carried) } else { None }) {
            break carried;
        }
    };
    engine.finish();
    carried
}

/// Run it: all is well, every flow has a time in every run, and so many target bytes were compared.
#[track_caller]
fn whole(transfers: &Transfers, world: usize) -> (Work, Carried) {
    let (work, traffic) = work(transfers, world).unwrap();
    assert_eq!(work.check(world), Ok(()), "{}", traffic.name);
    let carried = carried(&work);
    assert_eq!(carried.end, End::Complete, "{}", traffic.name);
    assert_eq!(carried.verified, u64::from(RUNS + 1) * traffic.bytes(), "{}", traffic.name);
    assert_eq!(carried.runs.len(), RUNS as usize);
    for run in &carried.runs {
        let mut flows: Vec<usize> = run.iter().map(|&(flow, _)| flow).collect();
        flows.sort_unstable();
        assert_eq!(flows, (0..traffic.flows.len()).collect::<Vec<_>>(), "{}", traffic.name);
    }
    (work, carried)
}

fn flow(stage: usize, from: usize, to: usize, bytes: u64, after: &[usize], offset: Option<u64>) -> Flow {
    Flow { stage, from, to, bytes, messages: 2, after: after.to_vec(), offset, staged: Staged::default() }
}

fn traffic(waits: &[bool], flows: Vec<Flow>) -> Traffic {
    let stages = waits.iter().map(|&waits| Stage { name: "a stage".to_owned(), waits }).collect();
    Traffic { name: "made by hand".to_owned(), ranks: 4, stages, flows, ..Traffic::default() }
}

fn job(bytes: u64, held: Held) -> Job {
    Job { hosts: vec![0, 0, 1, 1, 1], bytes, trainers: vec![0, 1], engines: vec![2, 3, 4], held, message: Some(100_000) }
}

#[test]
fn every_strategy_brings_every_byte() {
    for held in [Held::Whole, Held::Shards] {
        for strategy in Strategy::all(5) {
            let Ok(traffic) = strategy.traffic(&job(1_000_003, held)) else { continue };
            whole(&Transfers::Traffic(traffic), 5);
        }
    }
}

#[test]
fn a_relay_holds_nothing_of_its_own_and_sends_on_what_it_was_sent() {
    let traffic = Strategy::Relay.traffic(&job(300_000, Held::Whole)).unwrap();
    let (mut work, _) = whole(&Transfers::Traffic(traffic), 5);
    let holders: Vec<usize> = (0..5).filter(|&rank| work.parts[rank].held > 0).collect();
    assert_eq!(holders, [0], "one trainer alone");
    // One byte is another one: it is told where it arrives first, and of every rank that it was sent on to.
    spoil(&mut work.parts[0], 200_001);
    let End::Corrupt(why) = carried(&work).end else { panic!("a wrong byte was not seen") };
    assert!(why.contains("flow 0 (0→2)") && why.contains("byte 200001"), "{why}");
    // A relay that holds the model from another address on: what comes in is right, what it should have sent on is not.
    let sent = work.parts[2].shares.iter_mut().find(|share| share.role == Role::Send).unwrap();
    sent.messages[0].regions[0].at += 64;
    let told: Vec<String> = (0..3).map(|_| format!("{:?}", carried(&work).end)).collect();
    assert!(told.iter().all(|told| told.contains("Corrupt")), "{told:?}");
}

/// Let the byte with this address be another one.
fn spoil(part: &mut Part, address: u64) {
    let at = part.content.iter().position(|content| (content.address.at..content.address.at + content.address.run).contains(&address));
    let Content { region, address: whole } = part.content.remove(at.unwrap());
    let before = address - whole.at;
    for (from, length, tag) in [(0, before, whole.at), (before, 1, SPACE * 77), (before + 1, whole.run - before - 1, address + 1)] {
        part.content.push(Content { region: Region::packed(region.at + from, length), address: Region::packed(tag, length) });
    }
}

#[test]
fn flows_with_memory_of_their_own_copies_and_staging_are_whole() {
    let staged = Staged { packs: 3, pack_bytes: 200_000, unpacks: 3, unpack_bytes: 200_000 };
    let mut flows = vec![
        flow(0, 0, 1, 200_000, &[], None),
        flow(0, 0, 1, 70_001, &[], None),
        flow(0, 2, 2, 3_000_000, &[], None),
        flow(0, 3, 1, 0, &[], None),
        flow(1, 1, 3, 131_072, &[1], None),
        flow(1, 1, 1, 5, &[0], Some(7)),
    ];
    for (number, messages) in [(0, 7), (1, 1), (3, 1)] {
        flows[number].messages = messages;
    }
    (flows[0].staged, flows[4].staged) = (staged, staged);
    whole(&Transfers::Traffic(traffic(&[true, false], flows)), 4);
}

#[test]
fn flows_begin_when_those_before_them_are_complete() {
    // A long flow, and short ones that wait for it; all into one rank, since each rank tells by its own clock.
    let flows = vec![flow(0, 0, 3, 8 << 20, &[], None), flow(0, 2, 3, 64, &[0], None), flow(1, 1, 3, 64, &[], None)];
    let (_, carried) = whole(&Transfers::Traffic(traffic(&[true, true], flows)), 4);
    for run in &carried.runs {
        let end = |flow: usize| run.iter().find(|(of, _)| *of == flow).unwrap().1;
        assert!(end(0) < end(1) && end(1) < end(2), "{run:?}");
    }
}

#[test]
fn what_a_rank_gets_twice_lies_apart_and_what_a_flow_before_brought_is_sent_on() {
    // Rank 1 has the first half from rank 0 and the second from rank 2, in one row; and the middle again. It sends on all of it.
    let flows = vec![
        flow(0, 0, 1, 1000, &[], Some(0)),
        flow(0, 2, 1, 1000, &[], Some(1000)),
        flow(0, 0, 1, 1000, &[], Some(500)),
        flow(0, 1, 3, 2000, &[0, 1], Some(0)),
        flow(1, 3, 0, 2000, &[], Some(0)),
    ];
    let (work, _) = whole(&Transfers::Traffic(traffic(&[true, true], flows)), 4);
    assert_eq!((work.parts[1].held, work.parts[3].held), (0, 0));
    let sent = work.parts[1].shares.iter().find(|share| share.flow == 3).unwrap();
    assert!(sent.messages.iter().all(|message| !message.staged), "one row: in place");
}

/// Columns over two ranks -> columns over four, with gaps behind every row at the targets; and rows over two -> columns over four.
fn reshard(bytes_per_peer: u64) -> Batch {
    let (rows, columns) = (96_u64, 64_u64);
    let segment = |shape: [u64; 2], source: (i64, u64, u64), target: (i64, u64, u64)| Segment {
        shape: shape.to_vec(),
        source: Place(source.0, source.1, vec![source.2.cast_signed(), 1]),
        target: Place(target.0, target.1, vec![target.2.cast_signed(), 1]),
    };
    let by_columns =
        (0..4).map(|to| segment([rows, columns / 4], (to / 2, to.unsigned_abs() % 2 * columns / 4, columns / 2), (to, 2, columns / 4 + 3)));
    let halves = (0..4).flat_map(|to| (0..2).map(move |from| (from, to)));
    let by_rows = halves.map(|(from, to): (i64, i64)| {
        let place = from.unsigned_abs() * rows / 2 * columns / 4;
        segment([rows / 2, columns / 4], (from, to.unsigned_abs() * columns / 4, columns), (to, place, columns / 4))
    });
    let plan = |segments: Vec<Segment>| Plan { logical_shape: vec![rows, columns], segments };
    let parameter = |name: &str, plan, element_size| Parameter { name: name.to_owned(), plan, element_size };
    Batch {
        parameters: vec![parameter("columns", plan(by_columns.collect()), 2), parameter("rows", plan(by_rows.collect()), 4)],
        endpoints: Endpoints { source: [(0, 0), (1, 1)].into(), target: (0..4).map(|at| (at, at as usize)).collect() },
        bytes_per_peer,
    }
}

#[test]
fn strided_plans_from_two_ranks_to_four_are_whole_at_any_budget() {
    for budget in [64, 1000, 8 << 20] {
        let batch = reshard(budget);
        let (work, _) = whole(&Transfers::Batch(batch), 4);
        let staged = work.parts.iter().flat_map(|part| &part.shares).flat_map(|share| &share.messages).filter(|message| message.staged);
        assert!(staged.count() > 0);
    }
}

#[test]
fn one_wrong_byte_of_a_strided_plan_is_found() {
    let (mut work, _) = work(&Transfers::Batch(reshard(1000)), 4).unwrap();
    let content = &work.parts[0].content[0];
    let address = content.address.at + 2 * 64 / 4 + 6;
    spoil(&mut work.parts[0], address);
    let End::Corrupt(why) = carried(&work).end else { panic!("a wrong byte was not seen") };
    assert!(why.contains("rank 1: ") && why.contains("(0→1)"), "{why}");
}

#[test]
fn what_cannot_be_run_is_refused_with_the_numbers() {
    let of = |flows: Vec<Flow>, world| work(&Transfers::Traffic(traffic(&[true], flows)), world).unwrap_err().to_string();
    assert!(of(vec![flow(0, 0, 3, 8, &[], None)], 3).contains("4 ranks, and there are 3"));
    assert!(of(Vec::new(), 4).contains("no flow"));
    let many = Flow { messages: u32::MAX, ..flow(0, 0, 1, 1, &[], None) };
    assert!(of(vec![many], 4).contains("4294967295 messages, 16777216 at most"));
    assert!(of(vec![flow(0, 0, 1, 8, &[], Some(SPACE))], 4).contains("flow 0"));
    let flows = vec![flow(0, 0, 1, 1 << 20, &[], None)];
    let (work, _) = work(&Transfers::Traffic(traffic(&[true], flows)), 4).unwrap();
    let place = |rank| Placement { rank, host: "h".to_owned(), memory_available: 2 << 20, ..Placement::default() };
    let error = fits(&work, &Topology::of((0..4).map(place).collect())).unwrap_err().to_string();
    assert!(error.contains("2 MiB on h, which has 2 MiB to spare for its ranks 0-1"), "{error}");
    let roomy = |rank| Placement { memory_available: 8 << 20, ..place(rank) };
    assert_eq!(fits(&work, &Topology::of((0..4).map(roomy).collect())), Ok(()));
}

#[test]
fn a_work_that_was_tampered_with_is_refused() {
    let (good, _) = work(&Transfers::Batch(reshard(1000)), 4).unwrap();
    let with = |change: fn(&mut Work)| {
        let mut bad = good.clone();
        change(&mut bad);
        bad.check(4).unwrap_err()
    };
    assert_eq!(good.check(4), Ok(()));
    assert!(good.check(5).unwrap_err().contains("4 ranks"));
    assert!(with(|work| work.parts[1].memory /= 2).contains("rank 1"));
    assert!(with(|work| work.parts[0].shares[0].messages[0].lands = 0).contains("do not agree"));
    assert!(with(|work| work.parts[1].shares[0].messages[0].regions[0].at = 0).contains("rank 1"), "or it writes what it holds");
    assert!(with(|work| drop(work.parts[3].shares.pop())).contains("do not agree"));
    assert!(with(|work| work.parts[0].content[0].region.at = u64::MAX).contains("rank 0"));
}

#[test]
fn a_simulated_run_ends_however_short_the_last_step_is() {
    // At the ends of stages steps are so short that the clock hardly moves.
    let text = "[hosts]\ncount = 2\nranks = 2\nmemory = \"1GiB\"\n[path.local]\nalpha = \"1us\"\nrate = \"100GB/s\"\n\
                [path.intra_node]\nalpha = \"5us\"\nrate = \"20GB/s\"\n[path.inter_node]\nalpha = \"10us\"\nrate = \"16.4GB/s\"\n";
    let fabric = Fabric::parse(text, "made").unwrap();
    for (bytes, more) in [(8 << 20, 4 << 10), (1 << 30, 4 << 10), (8 << 20, 1)] {
        let moved = |stage, from, bytes| Moved { stage, from, to: from + 2, bytes, messages: 1, after: Vec::new() };
        let flows = (0..200).flat_map(|stage| [moved(stage, 0, bytes), moved(stage, 1, bytes + more)]).collect();
        let ends = ends(&Work { flows, waits: vec![true; 200], parts: Vec::new() }, &fabric);
        assert!(ends.iter().all(|end| end.is_finite()) && ends.windows(2).all(|pair| pair[0] <= pair[1]), "{bytes} {more}");
    }
}
