//! Buffers on GPUs under every pattern and every mover that copies, on threads and in MPI jobs, whose ranks are this program.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use toposcope::sample::{Memory, MoverKind, Pattern};
use toposcope::transport::threads::Threads;
use toposcope::transport::{End, Engine, Order, ProbeReport, Report, Setup, TransportError};

use super::stand_in::{ALSO, Told, serve};
use crate::engine::probes::{LANES, duplex, every, fan_in, fan_out, pair, relay, setup, whole};
use crate::engine::{measured, of, told};
use crate::place::{Place, until};

/// What a child does with its engine.
const SCENARIO: &str = "TOPOSCOPE_TEST_GPU";
/// Where it tells what it has moved.
const MOVED: &str = "TOPOSCOPE_TEST_MOVED";
const RANKS: usize = 4;

type Scenario = fn(Box<dyn Engine>);

const SCENARIOS: [(&str, Scenario); 15] = [
    ("every pattern", every_pattern),
    ("staged", staged),
    ("slow gates", slow_gates),
    ("full", full),
    ("one GPU fewer", fewer),
    ("hang", hang),
    ("sick", sick),
    ("no mapping", no_mapping),
    ("works", works),
    ("aware", aware),
    ("unaware", unaware),
    ("across", super::host::across),
    ("no pinned memory", super::host::no_pinned),
    ("lost", super::host::lost),
    ("hung", super::host::hung),
];

fn scenario() -> Option<(String, Scenario)> {
    let name = std::env::var(SCENARIO).ok()?;
    let (_, scenario) = SCENARIOS.into_iter().find(|(own, _)| *own == name).unwrap();
    Some((name, scenario))
}

fn run(name: &str, scenario: Scenario, engine: Box<dyn Engine>) {
    let good = catch_unwind(AssertUnwindSafe(|| scenario(engine))).is_ok();
    let word = if good { "well" } else { "badly" };
    std::io::stderr().write_all(format!("\n{name} ended {word}\n").as_bytes()).unwrap();
}

#[test]
#[ignore = "the engine of a test's child"]
fn threads() {
    if let Some((name, scenario)) = scenario() {
        run(&name, scenario, Box::new(Threads::start(RANKS).unwrap()));
    }
}

#[cfg(feature = "mpi")]
#[test]
#[ignore = "one rank of a test's job"]
fn rank() {
    use toposcope::transport::mpi::{self, Role};
    let Some((name, scenario)) = scenario() else { return };
    match mpi::join(RANKS).unwrap() {
        Role::Worker(worker) => _ = worker.serve(Vec::new),
        Role::Root(engine) => run(&name, scenario, engine),
    }
}

/// Run a scenario with stand-ins, TOML on top of the box's: what these tell, and what the child has moved.
pub fn child(engine: &str, name: &str, also: &str) -> Option<(Told, BTreeMap<String, u64>)> {
    child_with(engine, name, also, &[])
}

#[cfg_attr(not(feature = "mpi"), allow(clippy::unnecessary_wraps, reason = "with MPI, which may not be installed, it may be skipped"))]
fn child_with(engine: &str, name: &str, also: &str, more: &[(&str, PathBuf)]) -> Option<(Told, BTreeMap<String, u64>)> {
    let place = Place::new();
    let (report, moved) = (place.folder().join("report"), place.folder().join("moved"));
    std::fs::create_dir(&report).unwrap();
    let own = std::env::current_exe().unwrap();
    let test = format!("gpu::memory::{engine}");
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
    command.args(words).env(SCENARIO, name).env(MOVED, &moved).env(ALSO, also).envs(more.iter().cloned());
    let run = place.start(serve(&mut command, &report));
    until(Duration::from_secs(240), name, || run.said(), || run.said().contains(&format!("{name} ended ")));
    let said = run.said();
    assert!(said.contains(&format!("{name} ended well")), "{said}");
    drop(run.end(Duration::from_secs(20)));
    let told = super::stand_in::told(&report, "cuda");
    let moved = std::fs::read_to_string(&moved).unwrap_or_default();
    let line = |line: &str| line.split_once(' ').map(|(way, bytes)| (way.to_owned(), bytes.parse().unwrap())).unwrap();
    Some((told, moved.lines().map(line).collect()))
}

pub fn on_gpus(mover: MoverKind, arena: u64) -> Setup {
    let gpus = (0..RANKS).map(|gpu| gpu.to_string()).collect();
    Setup { memory: Memory::Cuda, gpus, ..setup(mover, arena, LANES) }
}

/// Movers of an engine that copy on GPUs.
fn copying(engine: &dyn Engine) -> Vec<MoverKind> {
    let copies = |mover: &MoverKind| matches!(mover, MoverKind::Memcpy | MoverKind::CudaIpcPull | MoverKind::CudaIpcPush);
    engine.movers().iter().copied().filter(copies).collect()
}

/// Bytes that a probe must have moved, from GPU to GPU or to and from the host, its untimed windows included (`transport::timed`: four of short windows).
pub fn bytes_of(order: &Order, report: &ProbeReport, sums: &mut BTreeMap<String, u64>) {
    let window = u64::from(order.window);
    let untimed = order.warmup.max(if order.probe.bytes * window <= 256 << 10 { 4 } else { 1 });
    for (number, (from, to)) in order.probe.flows().into_iter().enumerate() {
        let own = report.repeats.iter().filter(|repeat| repeat.flow as usize == number);
        let messages: u64 = own.map(|repeat| repeat.messages).sum::<u64>() + u64::from(untimed - order.warmup) * window;
        let way = match order.probe.target.pattern() {
            Pattern::HostToDevice => format!("host->gpu{to}"),
            Pattern::DeviceToHost => format!("gpu{from}->host"),
            _ => format!("gpu{from}->gpu{to}"),
        };
        *sums.entry(way).or_default() += messages * order.probe.bytes;
    }
}

pub fn tell_moved(sums: &BTreeMap<String, u64>) {
    let lines: Vec<String> = sums.iter().map(|(way, bytes)| format!("{way} {bytes}")).collect();
    std::fs::write(std::env::var(MOVED).unwrap(), lines.join("\n")).unwrap();
}

/// Every pattern with every mover: right bytes, by the GPUs' clocks.
fn every_pattern(mut engine: Box<dyn Engine>) {
    let (mut id, mut sums) = (0, BTreeMap::new());
    for mover in copying(engine.as_ref()) {
        engine.prepare(&on_gpus(mover, 4 << 20)).unwrap();
        for bytes in [1, 4096, 300_000] {
            for mut order in every() {
                id += 1;
                (order.probe.id, order.probe.bytes) = (id, bytes);
                let report = measured(engine.as_mut(), &order);
                assert!(report.repeats.iter().all(|repeat| repeat.ack_seconds == 0.0), "by the host's clock: {report:?}");
                bytes_of(&order, &report, &mut sums);
            }
        }
        // More messages than wait behind a gate, and back to the host's memory.
        let mut many = pair(Pattern::Peer, 0, 1);
        id += 1;
        (many.probe.id, many.probe.bytes, many.window) = (id, 100, 700);
        let report = measured(engine.as_mut(), &many);
        bytes_of(&many, &report, &mut sums);
    }
    let host = engine.movers()[0];
    engine.prepare(&setup(host, 1 << 20, LANES)).unwrap();
    id += 1;
    let mut order = duplex(0, 1);
    order.probe.id = id;
    assert!(measured(engine.as_mut(), &order).repeats.iter().any(|repeat| repeat.ack_seconds > 0.0));
    engine.finish();
    tell_moved(&sums);
}

/// What was copied between GPUs is what the reports say, and nobody broke a rule.
#[track_caller]
fn right(name: &str, engine: &str, also: &str) -> Option<Told> {
    let (told, moved) = child(engine, name, also)?;
    told.clean();
    let between: BTreeMap<String, u64> =
        told.moved.iter().filter(|(way, _)| !way.contains("host")).map(|(way, tally)| (way.clone(), tally.bytes)).collect();
    assert!(!moved.is_empty());
    assert_eq!(between, moved);
    Some(told)
}

#[test]
fn threads_measure_every_pattern_on_gpus() {
    right("every pattern", "threads", "").unwrap();
}

#[cfg(feature = "mpi")]
#[test]
fn processes_measure_every_pattern_on_gpus() {
    let Some(told) = right("every pattern", "rank", "") else { return };
    assert_eq!(told.processes, RANKS);
    assert_eq!(told.calls("cuIpcOpenMemHandle_v2"), told.calls("cuIpcCloseMemHandle"));
    assert!(told.calls("cuIpcOpenMemHandle_v2") >= 2 * 12, "each rank maps three others, once a mover");
}

/// One short probe.
pub fn probe(id: u64, mut order: Order) -> Order {
    (order.probe.id, order.probe.bytes, order.timeout) = (id, 100_000, 2.0);
    order
}

fn lines(reports: &[Report]) -> Vec<&str> {
    reports.iter().filter_map(|report| if let Report::Log { line, .. } = report { Some(line.as_str()) } else { None }).collect()
}

/// Run one probe, whatever comes of it.
#[track_caller]
pub fn end_of(engine: &mut dyn Engine, order: &Order) -> (End, Vec<Report>) {
    engine.start(std::slice::from_ref(order)).unwrap();
    let reports = told(engine, 1, |_| {});
    (of(&reports, order.probe.id).unwrap().end.clone(), reports)
}

/// GPUs that do not reach each other: the driver stages, and it is said.
fn staged(mut engine: Box<dyn Engine>) {
    engine.prepare(&on_gpus(MoverKind::Memcpy, 1 << 20)).unwrap();
    let order = probe(1, fan_in(0, &[1, 2, 3]));
    engine.start(std::slice::from_ref(&order)).unwrap();
    let reports = told(engine.as_mut(), 1, |_| {});
    let report = of(&reports, 1).unwrap();
    whole(&order, report);
    let said = lines(&reports);
    assert!(said.iter().any(|line| line.contains("1→0: GPU 1 cannot reach the memory of GPU 0") && line.contains("host")), "{said:?}");
    let mut sums = BTreeMap::new();
    bytes_of(&order, report, &mut sums);
    engine.finish();
    tell_moved(&sums);
}

#[test]
fn copies_that_the_driver_stages_are_told() {
    right("staged", "threads", "cuda.p2p = false").unwrap();
}

/// A driver whose streams do not wait by themselves.
fn slow_gates(mut engine: Box<dyn Engine>) {
    engine.prepare(&on_gpus(MoverKind::Memcpy, 1 << 20)).unwrap();
    let mut sums = BTreeMap::new();
    for (id, order) in [pair(Pattern::Peer, 0, 1), relay(&[0, 1, 2, 3], 1), pair(Pattern::Local, 2, 2)].into_iter().enumerate() {
        let order = probe(id as u64, order);
        let report = measured(engine.as_mut(), &order);
        bytes_of(&order, &report, &mut sums);
    }
    engine.finish();
    tell_moved(&sums);
}

#[test]
fn gates_work_without_stream_waits() {
    let told = right("slow gates", "threads", "cuda.wait_value = false").unwrap();
    assert!(told.calls("cuLaunchHostFunc") > 0);
}

/// Buffers that do not fit are refused with the GPU and the bytes; those that do are measured then.
fn full(mut engine: Box<dyn Engine>) {
    for mover in copying(engine.as_ref()) {
        let refused = engine.prepare(&on_gpus(mover, 32 << 20)).unwrap_err();
        let TransportError::Memory { bytes, ref reason, .. } = refused else { panic!("{refused}") };
        assert_eq!(bytes, (1 + LANES as u64) * (32 << 20));
        assert!(reason.contains("GPU ") && reason.contains("64 MiB"), "{reason}");
        engine.prepare(&on_gpus(mover, 1 << 20)).unwrap();
        measured(engine.as_mut(), &probe(mover as u64, duplex(1, 2)));
    }
    engine.finish();
}

#[test]
fn buffers_that_a_gpu_does_not_hold_are_refused_with_its_name() {
    let (told, _) = child("threads", "full", "cuda.memory = 67108864").unwrap();
    assert_eq!(told.violations, [""; 0]);
    #[cfg(feature = "mpi")]
    if let Some((told, _)) = child("rank", "full", "cuda.memory = 67108864") {
        assert_eq!(told.violations, [""; 0]);
    }
}

/// Three GPUs for four ranks: one takes no part, and what needs it is waived at once, whoever is asked.
fn fewer(mut engine: Box<dyn Engine>) {
    for (at, mover) in (0..).zip(copying(engine.as_ref())) {
        let absent = engine.prepare(&Setup { gpus: Vec::new(), ..on_gpus(mover, 1 << 20) }).unwrap();
        assert!(matches!(&absent[..], [one] if one.rank == 3 && one.reason.contains("4 ranks, 3 GPUs")), "{absent:?}");
        let begun = Instant::now();
        for (number, order) in (0..).zip([pair(Pattern::Peer, 3, 0), pair(Pattern::Local, 3, 3), relay(&[0, 1, 2, 3], 1)]) {
            let mut order = probe(10 * at + number, order);
            order.timeout = 60.0;
            let (end, _) = end_of(engine.as_mut(), &order);
            assert!(matches!(&end, End::Waived(why) if why.contains("rank 3")), "{end:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        measured(engine.as_mut(), &probe(10 * at + 8, duplex(0, 2)));
        measured(engine.as_mut(), &probe(10 * at + 9, fan_in(1, &[0, 2])));
    }
    engine.finish();
}

#[test]
fn a_rank_beyond_the_gpus_takes_no_part_and_the_others_are_measured() {
    for engine in ["threads", "rank"] {
        if cfg!(feature = "mpi") || engine == "threads" {
            let Some((told, _)) = child(engine, "one GPU fewer", "[[cuda.hidden]]\ngpus = \"3\"") else { continue };
            told.clean();
        }
    }
}

/// A copy that never ends: that probe is out of time, others are measured, and the end is not waited for.
fn hang(mut engine: Box<dyn Engine>) {
    let mover = copying(engine.as_ref())[0];
    engine.prepare(&on_gpus(mover, 1 << 20)).unwrap();
    let mut hung = 0;
    for id in 0..12 {
        let order = match id % 4 {
            0 => pair(Pattern::Peer, 0, 1),
            1 => fan_in(2, &[0, 1, 3]),
            2 => relay(&[0, 1, 2, 3], 1),
            _ => fan_out(3, &[0, 1]),
        };
        match end_of(engine.as_mut(), &probe(id, order)).0 {
            End::Complete => {}
            End::Timeout(why) => {
                assert!(why.contains("saw no completion within 2 s"), "{why}");
                hung += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(hung, 1);
    let begun = Instant::now();
    engine.finish();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_copy_that_hangs_times_out_its_probe_alone() {
    let also = "[[cuda.fail]]\ncall = \"cuMemcpyPeerAsync\"\nerror = \"hang\"\nafter = 60\ntimes = 1";
    let (told, _) = child("threads", "hang", also).unwrap();
    assert_eq!(told.violations, [""; 0]);
    // What the copy may still use was left with its context, and the process was not kept by it.
    assert!(told.kept.iter().any(|kept| kept.contains("device memory")), "{:?}", told.kept);
    #[cfg(feature = "mpi")]
    {
        let also = also.replace("cuMemcpyPeerAsync", "cuMemcpyDtoDAsync_v2") + "\nranks = \"1\"";
        let Some((told, _)) = child("rank", "hang", &also) else { return };
        assert_eq!(told.violations, [""; 0]);
        assert!(told.kept.iter().any(|kept| kept.contains("device memory")), "{:?}", told.kept);
    }
}

/// An error of the GPU's: the probe is waived with its name, and so is what needs that GPU from then on; the rest goes on.
fn sick(mut engine: Box<dyn Engine>) {
    engine.prepare(&on_gpus(MoverKind::Memcpy, 1 << 20)).unwrap();
    let (end, _) = end_of(engine.as_mut(), &probe(1, pair(Pattern::Local, 1, 1)));
    assert!(matches!(&end, End::Waived(why) if why.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && why.contains("GPU 1")), "{end:?}");
    let (end, _) = end_of(engine.as_mut(), &probe(2, duplex(1, 2)));
    assert!(matches!(&end, End::Waived(_)), "{end:?}");
    measured(engine.as_mut(), &probe(3, duplex(0, 2)));
    measured(engine.as_mut(), &probe(4, fan_in(3, &[0, 2])));
    engine.finish();
}

#[test]
fn a_sick_gpu_waives_what_needs_it_and_the_rest_goes_on() {
    let also = "[[cuda.fail]]\ncall = \"cuMemcpyDtoDAsync_v2\"\nerror = \"CUDA_ERROR_ILLEGAL_ADDRESS\"\nlate = true\nsticky = true";
    child("threads", "sick", also).unwrap();
}

/// Processes that cannot map each other's memory: each pair is waived at once with the reason, and copies within a GPU go on.
fn no_mapping(mut engine: Box<dyn Engine>) {
    for (at, mover) in (0..).zip(copying(engine.as_ref())) {
        engine.prepare(&on_gpus(mover, 1 << 20)).unwrap();
        let begun = Instant::now();
        for (number, order) in [pair(Pattern::Peer, 0, 1), fan_in(0, &[1, 2]), relay(&[0, 1, 2, 3], 1)].into_iter().enumerate() {
            let mut order = probe(at * 10 + number as u64, order);
            order.timeout = 60.0;
            let (end, _) = end_of(engine.as_mut(), &order);
            assert!(matches!(&end, End::Waived(_)), "{end:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        measured(engine.as_mut(), &probe(at * 10 + 9, pair(Pattern::Local, 1, 1)));
    }
    engine.finish();
}

#[cfg(feature = "mpi")]
#[test]
fn memory_that_cannot_be_mapped_waives_its_pairs() {
    child("rank", "no mapping", "cuda.p2p = false");
}

/// Plans on GPUs: packed and unpacked there, every byte compared.
fn works(mut engine: Box<dyn Engine>) {
    let movers = copying(engine.as_ref());
    crate::engine::works::every_work_on(engine.as_mut(), Memory::Cuda, &movers);
    // And back to a sweep.
    engine.prepare(&on_gpus(movers[0], 1 << 20)).unwrap();
    measured(engine.as_mut(), &probe(1, duplex(0, 3)));
    engine.finish();
}

#[test]
fn plans_are_carried_on_gpus_and_wrong_bytes_are_found() {
    for engine in ["threads", "rank"] {
        if cfg!(not(feature = "mpi")) && engine == "rank" {
            continue;
        }
        let Some((told, _)) = child(engine, "works", "") else { continue };
        told.clean();
        assert!(told.calls("cuMemcpy2DAsync_v2") > 0, "{engine}: columns are packed by rows");
    }
}

/// The MPI library's own movers, on addresses of GPUs.
fn aware(mut engine: Box<dyn Engine>) {
    let mut id = 0;
    for mover in [MoverKind::MpiSendrecv, MoverKind::MpiPut] {
        engine.prepare(&on_gpus(mover, 2 << 20)).unwrap();
        let own = [Pattern::HostToDevice, Pattern::DeviceToHost].map(|pattern| pair(pattern, 2, 2));
        for bytes in [1, 300_000] {
            for mut order in every().into_iter().chain(own.clone()) {
                id += 1;
                (order.probe.id, order.probe.bytes) = (id, bytes);
                let report = measured(engine.as_mut(), &order);
                let crosses = order.probe.target.pattern().crosses();
                assert!(!crosses || report.repeats.iter().all(|repeat| repeat.ack_seconds == 0.0), "by the GPU's clock");
            }
        }
    }
    engine.finish();
}

fn unaware(mut engine: Box<dyn Engine>) {
    for mover in [MoverKind::MpiSendrecv, MoverKind::MpiPut] {
        let refused = engine.prepare(&on_gpus(mover, 1 << 20)).unwrap_err().to_string();
        assert!(refused.contains("MPIX_Query_cuda_support") && refused.contains("--with-cuda"), "{refused}");
    }
    engine.finish();
}

#[cfg(feature = "mpi")]
#[test]
fn an_mpi_that_takes_gpus_moves_their_memory_and_another_one_is_refused() {
    // The stand-in answers for the library, whose own copies reach its memory as they are.
    if let Some((told, _)) = child_with("rank", "aware", "", &[("LD_PRELOAD", super::stand_in::stand_ins().join("libcuda.so.1"))]) {
        assert_eq!(told.violations, [""; 0]);
        child("rank", "unaware", "");
    }
}

#[test]
fn without_a_driver_gpus_are_refused_and_nothing_panics() {
    let mut engine = Threads::start(1).unwrap();
    // This process has no stand-in; a machine with a driver has nothing to refuse.
    if toposcope::transport::cuda::driver::devices().is_ok() {
        return;
    }
    let refused = engine.prepare(&on_gpus(MoverKind::Memcpy, 1 << 20)).unwrap_err().to_string();
    assert!(refused.contains("no CUDA driver") && !refused.contains("--sizes"), "{refused}");
    engine.prepare(&setup(MoverKind::Memcpy, 1 << 20, 1)).unwrap();
    engine.finish();
}
