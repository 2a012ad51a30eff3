//! NCCL as a mover under its stand-in: every pattern, a part of the job, what hangs or fails, and what is missing; on threads and in MPI
//! jobs, whose ranks are this program.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use toposcope::plan::work::work;
use toposcope::plan::{Flow, Stage, Staged, Traffic, Transfers};
use toposcope::sample::{Memory, MoverKind, Pattern};
use toposcope::transport::cuda::driver::Gpu;
use toposcope::transport::cuda::nccl::{self, Communicator};
use toposcope::transport::threads::Threads;
use toposcope::transport::work::{Carried, Carry, Work};
use toposcope::transport::{End, Engine, Order, Report, Setup, TransportError};

use super::stand_in::{ALSO, Told, serve, without};
use crate::engine::probes::{LANES, custom, duplex, every, fan_in, fan_out, pair, relay, setup};
use crate::engine::works::{carried, every_work_on};
use crate::engine::{measured, of, told};
use crate::place::{Place, until};

/// What a child does with its engine.
const SCENARIO: &str = "TOPOSCOPE_TEST_NCCL";
/// Where its NCCL logs.
const LOGS: &str = "TOPOSCOPE_TEST_LOGS";
const RANKS: usize = 4;
const NCCL: [MoverKind; 2] = [MoverKind::Nccl, MoverKind::NcclPut];

type Scenario = fn(&mut dyn Engine);

const SCENARIOS: [(&str, Scenario); 11] = [
    ("every pattern", every_pattern),
    ("at the same time", at_the_same_time),
    ("a part of the job", part),
    ("hang", hang),
    ("sick", sick),
    ("no puts", no_puts),
    ("nobody comes", nobody_comes),
    ("plans", plans),
    ("a plan hangs", plan_hangs),
    ("a plan fails", plan_fails),
    ("unreadable", unreadable),
];

fn run(engine: impl FnOnce() -> Option<Box<dyn Engine>>) {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    nccl::log::ask(Path::new(&std::env::var(LOGS).unwrap()));
    let (_, scenario) = SCENARIOS.into_iter().find(|(own, _)| *own == name).unwrap();
    let Some(mut engine) = engine() else { return };
    let good = catch_unwind(AssertUnwindSafe(|| scenario(engine.as_mut()))).is_ok();
    let word = if good { "well" } else { "badly" };
    // Before the others leave: of those that leave by themselves a launcher ends the rest.
    std::io::stderr().write_all(format!("\n{name} ended {word}\n").as_bytes()).unwrap();
    engine.finish();
}

#[test]
#[ignore = "the engine of a test's child"]
fn threads() {
    run(|| Some(Box::new(Threads::start(RANKS).unwrap())));
}

#[cfg(feature = "mpi")]
#[test]
#[ignore = "one rank of a test's job"]
fn rank() {
    use toposcope::transport::mpi::{self, Role};
    run(|| match mpi::join(RANKS).unwrap() {
        Role::Root(engine) => Some(engine),
        Role::Worker(worker) => {
            worker.serve(Vec::new);
            None
        }
    });
}

/// Run a scenario, with TOML on top of the stand-ins' box: what the stand-in for NCCL tells.
#[cfg_attr(not(feature = "mpi"), allow(clippy::unnecessary_wraps, reason = "with MPI, which may not be installed, it may be skipped"))]
fn child(engine: &str, name: &str, also: &str, libraries: Option<&Path>) -> Option<Told> {
    let place = Place::new();
    let report = place.folder().join("report");
    std::fs::create_dir(&report).unwrap();
    let own = std::env::current_exe().unwrap();
    let test = format!("gpu::nccl::{engine}");
    let words = [test.as_str(), "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    #[cfg(feature = "mpi")]
    let mut command = if engine == "rank" {
        let mpi = crate::place::mpi::Mpi::own()?;
        let mut command = place.command(mpi.launcher);
        command.args(&mpi.words("4")[1..]);
        command
    } else {
        place.command(&own)
    };
    #[cfg(not(feature = "mpi"))]
    let mut command = place.command(&own);
    serve(&mut command, &report).args(words).env(SCENARIO, name).env(LOGS, place.folder()).env(ALSO, also);
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let run = place.start(&mut command);
    until(Duration::from_secs(240), name, || run.said(), || run.said().contains(&format!("{name} ended ")));
    let said = run.said();
    assert!(said.contains(&format!("{name} ended well")), "{said}");
    drop(run.end(Duration::from_secs(20)));
    let cuda = super::stand_in::told(&report, "cuda");
    assert_eq!(cuda.violations, [""; 0]);
    Some(super::stand_in::told(&report, "nccl"))
}

/// On both kinds of ranks, where this build has them.
fn everywhere(name: &str, also: &str, check: impl Fn(&str, &Told)) {
    for engine in ["threads", "rank"] {
        if engine == "rank" && cfg!(not(feature = "mpi")) {
            continue;
        }
        if let Some(told) = child(engine, name, also, None) {
            check(engine, &told);
        }
    }
}

/// What was given up may be left behind, and nothing else is wrong.
fn besides_leaks(told: &Told) -> Vec<&String> {
    told.violations.iter().filter(|violation| !violation.starts_with("leak: ")).collect()
}

fn on_gpus(mover: MoverKind) -> Setup {
    Setup { memory: Memory::Cuda, ..setup(mover, 2 << 20, LANES) }
}

/// One short probe.
fn probe(id: u64, mut order: Order) -> Order {
    (order.probe.id, order.probe.bytes, order.timeout) = (id, 100_000, 3.0);
    order
}

#[track_caller]
fn end_of(engine: &mut dyn Engine, order: &Order) -> (End, Vec<Report>) {
    engine.start(std::slice::from_ref(order)).unwrap();
    let reports = told(engine, 1, |_| {});
    (of(&reports, order.probe.id).unwrap().end.clone(), reports)
}

/// Right bytes by the GPUs' clocks, and each transfer's way as NCCL tells it.
fn every_pattern(engine: &mut dyn Engine) {
    let direct = if engine.kind() == toposcope::sample::EngineKind::Threads { "P2P/direct pointer" } else { "P2P/CUMEM" };
    let mut id = 0;
    for mover in NCCL {
        engine.prepare(&on_gpus(mover)).unwrap();
        for bytes in [1, 4096, 300_000] {
            for mut order in every() {
                id += 1;
                (order.probe.id, order.probe.bytes) = (id, bytes);
                let report = measured(engine, &order);
                assert!(report.repeats.iter().all(|repeat| repeat.ack_seconds == 0.0), "by the host's clock: {report:?}");
                let told: BTreeMap<u32, &str> = report.ways.iter().map(|way| (way.flow, way.via.as_str())).collect();
                let away = (0_u32..).zip(order.probe.flows()).filter(|(_, (from, to))| from != to && mover == MoverKind::Nccl);
                assert_eq!(told, away.map(|(flow, _)| (flow, direct)).collect(), "{}", order.probe.describe());
            }
        }
        let mut many = probe(1000 + id, pair(Pattern::Peer, 0, 1));
        (many.probe.bytes, many.window) = (100, 700);
        measured(engine, &many);
    }
}

#[test]
fn every_pattern_goes_through_nccl_both_ways() {
    everywhere("every pattern", "", |engine, told| {
        assert_eq!(told.violations, [""; 0], "{engine}");
        assert!(told.calls("ncclSend") > 1000);
        assert_eq!(told.calls["ncclSend"].bytes, told.calls["ncclRecv"].bytes);
        assert_eq!((told.calls("ncclSend"), told.calls("ncclGroupStart")), (told.calls("ncclRecv"), told.calls("ncclGroupEnd")));
        assert!(told.calls("ncclPutSignal") > 1000);
        // One for each mover and rank, ended in order.
        assert_eq!((told.calls("ncclCommInitRankConfig"), told.calls("ncclCommDestroy"), told.calls("ncclCommAbort")), (8, 8, 0));
        assert_eq!((told.calls("ncclCommWindowRegister"), told.calls("ncclCommWindowDeregister")), (8, 8));
        assert_eq!((told.calls("ncclMemAlloc"), told.calls("ncclMemFree")), (8, 8));
    });
}

/// Probes of disjoint ranks of one communicator.
fn at_the_same_time(engine: &mut dyn Engine) {
    for mover in NCCL {
        engine.prepare(&on_gpus(mover)).unwrap();
        for id in 0..4 {
            let round = [probe(2 * id, duplex(0, 3)), probe(2 * id + 1, pair(Pattern::Peer, 2, 1))];
            engine.start(&round).unwrap();
            let reports = told(engine, 2, |_| {});
            for order in &round {
                crate::engine::probes::whole(order, of(&reports, order.probe.id).unwrap());
            }
        }
    }
}

#[test]
fn probes_of_other_ranks_share_a_communicator() {
    everywhere("at the same time", "", |engine, told| assert_eq!(told.violations, [""; 0], "{engine}"));
}

/// Three of the ranks, in an order of their own; the others have no part in anything.
fn part(engine: &mut dyn Engine) {
    engine.restrict(&[3, 1, 2]);
    for mover in NCCL {
        engine.prepare(&on_gpus(mover)).unwrap();
        for (id, order) in [duplex(1, 3), relay(&[1, 2, 3], 1), fan_in(3, &[1, 2]), pair(Pattern::Local, 2, 2)].into_iter().enumerate() {
            measured(engine, &probe(id as u64, order));
        }
    }
    // Back to all of them.
    engine.restrict(&[]);
    engine.bind(Memory::Cuda, &[]).unwrap();
    engine.prepare(&on_gpus(MoverKind::Nccl)).unwrap();
    measured(engine, &probe(9, custom(&[(0, 3), (3, 0), (2, 1)])));
}

#[test]
fn a_part_of_the_job_meets_by_itself() {
    everywhere("a part of the job", "", |engine, told| {
        assert_eq!(told.violations, [""; 0], "{engine}");
        assert_eq!(told.calls("ncclCommInitRankConfig"), 3 + 3 + 4);
    });
}

fn mixed(id: u64) -> Order {
    let order = match id % 4 {
        0 => pair(Pattern::Peer, 0, 1),
        1 => fan_in(2, &[0, 1, 3]),
        2 => relay(&[0, 1, 2, 3], 1),
        _ => fan_out(3, &[0, 1]),
    };
    probe(id, order)
}

/// A send that never ends: its probe is out of time, the ranks meet anew, and all others are measured.
fn hang(engine: &mut dyn Engine) {
    for mover in NCCL {
        engine.prepare(&on_gpus(mover)).unwrap();
        let (mut ends, mut lines) = (Vec::new(), Vec::new());
        for id in 0..12 {
            let (end, reports) = end_of(engine, &mixed(id));
            ends.push(end);
            lines.extend(reports.into_iter().filter_map(|report| if let Report::Log { line, .. } = report { Some(line) } else { None }));
        }
        let hung: Vec<&End> = ends.iter().filter(|end| **end != End::Complete).collect();
        assert!(matches!(hung[..], [End::Timeout(why)] if why.contains("saw no completion within 3 s")), "{mover:?} {ends:?}");
        assert!(lines.iter().any(|line| line.contains("new communicator") && line.contains("saw no completion")), "{lines:?}");
    }
}

fn failing(error: &str) -> String {
    let fail = |call: &str, after: u32| {
        format!("[[nccl.fail]]\ncall = \"{call}\"\nerror = \"{error}\"\nlate = true\nafter = {after}\ntimes = 1\nranks = \"1\"\n")
    };
    fail("ncclSend", 30) + &fail("ncclPutSignal", 30)
}

#[test]
fn what_hangs_in_nccl_times_out_its_probe_alone() {
    everywhere_as_rank_1("hang", &failing("hang"), |engine, told| {
        assert_eq!(besides_leaks(told), [""; 0], "{engine}");
        assert!(told.calls("ncclCommAbort") > 0);
    });
}

/// Failures of one rank: of all of them where they are threads.
fn everywhere_as_rank_1(name: &str, also: &str, check: impl Fn(&str, &Told)) {
    let told = child("threads", name, &also.replace("ranks = \"1\"\n", ""), None).unwrap();
    check("threads", &told);
    if cfg!(feature = "mpi")
        && let Some(told) = child("rank", name, also, None)
    {
        check("rank", &told);
    }
}

/// An error that NCCL finds by itself: the probe is waived with it, and the rest goes on.
fn sick(engine: &mut dyn Engine) {
    for mover in NCCL {
        engine.prepare(&on_gpus(mover)).unwrap();
        // No number comes twice in a job: words of what was given up would be taken for those of another probe.
        let first = 100 * mover as u64;
        let ends: Vec<End> = (first..first + 12).map(|id| end_of(engine, &mixed(id)).0).collect();
        let bad: Vec<&End> = ends.iter().filter(|end| **end != End::Complete).collect();
        let told = |end: &End| match end {
            // The other rank of the pair may have waited in vain; what it tells is graver.
            End::Timeout(_) => true,
            End::Waived(why) => why.contains("another rank failed") || why.contains("gave up"),
            _ => false,
        };
        assert!(bad.len() == 1 && told(bad[0]), "{mover:?} {ends:?}");
    }
}

#[test]
fn an_error_of_nccls_ends_its_probe_alone() {
    everywhere_as_rank_1("sick", &failing("ncclRemoteError"), |engine, told| assert_eq!(besides_leaks(told), [""; 0], "{engine}"));
}

/// An older NCCL: puts are refused with both versions, sends go.
fn no_puts(engine: &mut dyn Engine) {
    let refused = engine.prepare(&on_gpus(MoverKind::NcclPut)).unwrap_err();
    let told = refused.to_string();
    assert!(matches!(refused, TransportError::Unready { rank: 0, .. }), "{told}");
    assert!(told.contains("NCCL 2.29 or later") && told.contains("2.28.9") && told.contains("ncclPutSignal"), "{told}");
    engine.prepare(&on_gpus(MoverKind::Nccl)).unwrap();
    measured(engine, &probe(1, duplex(1, 2)));
}

#[test]
fn an_older_nccl_has_sends_and_says_what_puts_need() {
    let folder = without(&["cuda", "nccl"], &["ncclPutSignal", "ncclWaitSignal"]);
    let told = child("threads", "no puts", "nccl.version = 22809", Some(folder.path())).unwrap();
    assert_eq!(told.violations, [""; 0]);
}

/// Four ranks in a ring, all at once, in messages of 50 kB: whoever took one flow after another would wait for all others. Then the
/// other way round, each hop once the one ahead of it is through, of which nobody but its ends knows; something empty; and all with all.
fn cycles() -> Work {
    let flow = |stage, from: usize, hop: usize, bytes: u64, after: &[usize]| {
        let (messages, after) = (u32::try_from(bytes.div_ceil(50_000).max(1)).unwrap(), after.to_vec());
        Flow { stage, from, to: (from + hop) % RANKS, bytes, messages, after, offset: None, staged: Staged::default() }
    };
    let mut flows: Vec<Flow> = (0..RANKS).map(|rank| flow(0, rank, 1, 300_001 + 50_000 * rank as u64, &[])).collect();
    flows.extend((0..RANKS).map(|rank| flow(0, rank, 3, 250_000, &[(rank + 2) % RANKS])));
    flows.push(flow(0, 0, 2, 0, &[5]));
    flows.push(flow(0, 3, 2, 7, &[8]));
    flows.push(flow(0, 2, 0, 3 << 20, &[9]));
    flows.push(flow(0, 2, 3, 100, &[10]));
    flows.extend((0..16).map(|at| flow(1, at / RANKS, at % RANKS, 77_777 * (at as u64 + 1), &[])));
    let stage = |name: &str| Stage { name: name.to_owned(), waits: true };
    let stages = vec![stage("cycles"), stage("all with all")];
    let traffic = Traffic { ranks: RANKS, stages, flows, ..Traffic::default() };
    work(&Transfers::Traffic(traffic), RANKS).unwrap().0.on(Memory::Cuda, &[])
}

fn run_cycles(engine: &mut dyn Engine, id: u64, timeout: f64) -> Carried {
    carried(engine, &cycles(), MoverKind::Nccl, Carry { id, warmup: 1, runs: 3, timeout }, || {}).0
}

#[track_caller]
fn go_well(engine: &mut dyn Engine, id: u64) {
    let carried = run_cycles(engine, id, 30.0);
    let bytes: u64 = cycles().flows.iter().map(|flow| flow.bytes).sum();
    assert_eq!((&carried.end, carried.runs.len(), carried.verified), (&End::Complete, 3, 4 * bytes));
}

/// Every strategy, strided blocks that GPUs pack and unpack, wrong bytes, cycles; and back to a sweep.
fn plans(engine: &mut dyn Engine) {
    every_work_on(engine, Memory::Cuda, &[MoverKind::Nccl]);
    go_well(engine, 1000);
    engine.prepare(&on_gpus(MoverKind::Nccl)).unwrap();
    measured(engine, &probe(1, duplex(0, 3)));
}

#[test]
fn plans_go_through_nccl_in_steps_and_every_send_has_its_receive() {
    everywhere("plans", "", |engine, told| {
        assert_eq!(told.violations, [""; 0], "{engine}");
        assert_eq!(told.calls["ncclSend"].bytes, told.calls["ncclRecv"].bytes);
        assert_eq!((told.calls("ncclSend"), told.calls("ncclGroupStart")), (told.calls("ncclRecv"), told.calls("ncclGroupEnd")));
        assert!(told.calls("ncclSend") > 1000 && told.calls("ncclCommAbort") == 0, "{engine}");
    });
}

/// A send that never ends: the plan is out of time, and says what is missing; the next one has a communicator of its own.
fn plan_hangs(engine: &mut dyn Engine) {
    let begun = Instant::now();
    let hung = run_cycles(engine, 1, 4.0);
    assert!(matches!(&hung.end, End::Timeout(why) if why.contains("was not done within 4 s") && why.contains("missing: flow")), "{hung:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    go_well(engine, 2);
}

fn failing_plan(error: &str) -> String {
    format!("[[nccl.fail]]\ncall = \"ncclSend\"\nerror = \"{error}\"\nlate = true\nafter = 60\ntimes = 1\nranks = \"1\"\n")
}

#[test]
fn a_plan_that_hangs_in_nccl_ends_with_what_is_missing_and_the_next_one_goes_well() {
    everywhere_as_rank_1("a plan hangs", &failing_plan("hang"), |engine, told| {
        assert_eq!(besides_leaks(told), [""; 0], "{engine}");
        assert!(told.calls("ncclCommAbort") > 0);
    });
}

/// An error that NCCL finds by itself ends the plan with its reason.
fn plan_fails(engine: &mut dyn Engine) {
    let failed = run_cycles(engine, 1, 4.0);
    assert!(matches!(&failed.end, End::Waived(why) if why.contains("another rank failed")), "{failed:?}");
    go_well(engine, 2);
}

#[test]
fn a_plan_that_fails_in_nccl_ends_with_its_reason_and_the_next_one_goes_well() {
    everywhere_as_rank_1("a plan fails", &failing_plan("ncclRemoteError"), |engine, told| {
        assert_eq!(besides_leaks(told), [""; 0], "{engine}");
    });
}

/// Bytes that cannot be read back are an error of the GPU's, and not said to be wrong.
fn unreadable(engine: &mut dyn Engine) {
    let unread = run_cycles(engine, 1, 4.0);
    assert!(matches!(&unread.end, End::Waived(why) if why.contains("GPU 1") && why.contains("cuMemcpyDtoHAsync says")), "{unread:?}");
}

#[test]
fn target_bytes_that_cannot_be_read_back_are_an_error_and_not_wrong() {
    let also = "[[cuda.fail]]\ncall = \"cuMemcpyDtoHAsync_v2\"\nerror = \"CUDA_ERROR_INVALID_VALUE\"\nafter = 2\nranks = \"1\"\n";
    if cfg!(feature = "mpi") {
        child("rank", "unreadable", also, None);
    }
}

/// A communicator of two of whom one never comes.
fn nobody_comes(_: &mut dyn Engine) {
    let api = nccl::api().unwrap();
    let _gpu = Gpu::open(0).unwrap();
    let id = nccl::unique_id(api).unwrap();
    let begun = Instant::now();
    let refused = Communicator::join(api, &id, &[4, 7], 7, Duration::from_secs(1)).unwrap_err();
    assert!(refused.contains("not all of the 2 ranks") && refused.contains("within 1 s"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    // The library is none the worse for it.
    let id = nccl::unique_id(api).unwrap();
    let mut alone = Communicator::join(api, &id, &[7], 7, Duration::from_secs(5)).unwrap();
    assert_eq!(alone.close(), None);
}

#[test]
fn a_rank_that_never_comes_is_an_error_and_no_hang() {
    let told = child("threads", "nobody comes", "", None).unwrap();
    assert_eq!(besides_leaks(&told), [""; 0]);
    assert_eq!(told.calls("ncclCommAbort"), 1);
}

/// Doctor's line about NCCL, with libraries in a folder.
fn doctor(folder: &Path, named: Option<&Path>) -> serde_json::Value {
    let place = Place::new();
    let mut command = place.toposcope(&["doctor", "--json"]);
    command.env("LD_LIBRARY_PATH", folder);
    if let Some(named) = named {
        command.env("TOPOSCOPE_NCCL", named);
    }
    let output = command.output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    told["checks"].as_array().unwrap().iter().find(|check| check["id"] == "nccl").unwrap().clone()
}

#[test]
fn with_only_libnccl_so_2_there_it_is_found() {
    let folder = without(&["nccl"], &[]);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["libnccl.so.2"]);
    let told = doctor(folder.path(), None);
    assert!(told["state"] == "ok" && told["fact"].as_str().unwrap().starts_with("2.29.7 (libnccl.so.2)"), "{told}");
    // Or by name, wherever it is.
    let (empty, file) = (tempfile::tempdir().unwrap(), folder.path().join("libnccl.so.2"));
    let told = doctor(empty.path(), Some(&file));
    assert!(told["state"] == "ok" && told["fact"].as_str().unwrap().contains(file.to_str().unwrap()), "{told}");
    let told = doctor(empty.path(), Some(&empty.path().join("none")));
    assert!(told["state"] == "absent" && told["fact"].as_str().unwrap().contains("none, which is not there"), "{told}");
}
