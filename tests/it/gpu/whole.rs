//! Device memory through the program itself, four ranks under the stand-ins: every pattern by every mover, and what is in the calibration
//! held against what the stand-ins saw, byte by byte and call by call (issue 7, must show b).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use toposcope::export::{CALIBRATION_SCHEMA, read_calibration};
use toposcope::sample::{Pattern, Sample, Status};
use toposcope::session::{Event, store};

use super::stand_in::{Told, serve, told};
use crate::calibration::faults;
use crate::place::Place;

const LIMIT: Duration = Duration::from_secs(240);
const RANKS: usize = 4;
const SIZES: [u64; 2] = [4096, 300_000];
const REPEATS: u32 = 3;
/// At least as many as any probe has windows that are not timed: then each of them is a sample, too.
const WARMUP: u32 = 4;
const WINDOW: u64 = 2;
/// Several senders and receivers.
const CUSTOM: &str = "set,from,to\n0,1,0\n0,2,0\n1,0,1\n1,2,3\n";

/// Pattern, sender, receiver: each that there must be, and how many transfers it is in.
fn wanted() -> BTreeMap<(Pattern, usize, usize), usize> {
    let all = || (0..RANKS).flat_map(|from| (0..RANKS).map(move |to| (from, to)));
    let mut wanted = BTreeMap::new();
    for (from, to) in all() {
        if from == to {
            wanted.insert((Pattern::Local, from, to), 1);
            continue;
        }
        for pattern in [Pattern::Peer, Pattern::Duplex, Pattern::FanOut, Pattern::FanIn, Pattern::Relay] {
            wanted.insert((pattern, from, to), 1);
        }
    }
    for line in CUSTOM.lines().skip(1) {
        let numbers: Vec<usize> = line.split(',').map(|word| word.parse().unwrap()).collect();
        *wanted.entry((Pattern::Custom, numbers[1], numbers[2])).or_default() += 1;
    }
    wanted
}

/// Sweep with everything, and export the calibration; its samples, and bytes that must have been compared, by receiver.
fn swept(place: &Place, mut command: Command, mover: &str) -> (Vec<Sample>, BTreeMap<usize, u64>) {
    let report = place.folder().join("report");
    fs::create_dir(&report).unwrap();
    fs::write(place.folder().join("custom.csv"), CUSTOM).unwrap();
    command.args(["sweep", "--memory", "cuda", "--mover", mover, "--pattern-file", "custom.csv"]);
    command.args("--patterns local,peer,duplex,fan_out,fan_in,relay,custom --widths 3 --shifts 1,2,3 --isolated --seed 5".split(' '));
    command.args("--sizes 4096,300000 --repeats 3 --warmup 4 --window 2 --arena 4MiB --timeout 60s".split(' '));
    command.arg("--session").arg(place.session());
    let ran = place.run(serve(&mut command, &report), LIMIT);
    ran.ended_with(0);
    assert!(ran.stdout.contains(mover), "{}", ran.stdout);
    let file = place.folder().join("cal.json");
    let mut export = place.toposcope(&["export"]);
    export.arg(place.session()).args(["--format", "calibration", "--out"]).arg(&file);
    place.run(&mut export, LIMIT).ended_with(0);
    let document = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &document), [""; 0]);
    assert_eq!((&document["memory"], &document["mover"]), (&"cuda".into(), &mover.into()));
    let mut compared: BTreeMap<usize, u64> = BTreeMap::new();
    for record in store::read(&place.session()).unwrap().records {
        if let Event::ProbeStarted { probe } = record.event {
            // The first window of each transfer.
            probe.flows().into_iter().for_each(|(_, to)| *compared.entry(to).or_default() += WINDOW * probe.bytes);
        }
    }
    (read_calibration(&file).unwrap().samples, compared)
}

/// Every pair is there with every repeat of every size, and all are good.
fn complete(samples: &[Sample]) {
    let mut found: BTreeMap<(Pattern, usize, usize, u64), usize> = BTreeMap::new();
    for sample in samples {
        assert!(sample.status == Status::Ok && sample.messages > 0 && sample.messages.is_multiple_of(WINDOW), "{sample:?}");
        assert_eq!(sample.ack_seconds, Some(0.0), "by the GPUs' clocks: {sample:?}");
        if !sample.warmup {
            *found.entry((sample.pattern, sample.from, sample.to, sample.bytes)).or_default() += 1;
        }
    }
    let sized = |((pattern, from, to), count)| SIZES.map(|bytes| ((pattern, from, to, bytes), count * REPEATS as usize));
    let wanted: BTreeMap<(Pattern, usize, usize, u64), usize> = wanted().into_iter().flat_map(sized).collect();
    assert_eq!(found, wanted);
    assert!(samples.iter().filter(|sample| sample.warmup).count() >= found.len() * WARMUP as usize);
}

/// Bytes from GPU to GPU that samples tell of.
fn bytes(samples: &[Sample]) -> BTreeMap<(usize, usize), u64> {
    let mut sums = BTreeMap::new();
    for sample in samples {
        *sums.entry((sample.from, sample.to)).or_default() += sample.bytes * sample.messages;
    }
    sums
}

/// Bytes from one place to another, by the names of those.
type Sums = BTreeMap<String, u64>;

fn moved(told: &Told, wanted: impl Fn(&str) -> bool) -> Sums {
    told.moved.iter().filter(|(way, _)| wanted(way)).map(|(way, tally)| (way.clone(), tally.bytes)).collect()
}

/// What CUDA's stand-in saw: all bytes of all samples and no others, all that was compared, two events for each time, and nothing left.
fn cuda_agrees(told: &Told, expected: &BTreeMap<(usize, usize), u64>, compared: &BTreeMap<usize, u64>) {
    told.clean();
    let between: Sums = expected.iter().map(|((from, to), bytes)| (format!("gpu{from}->gpu{to}"), *bytes)).collect();
    assert_eq!(moved(told, |way| !way.contains("host")), between);
    let back: Sums = compared.iter().map(|(rank, bytes)| (format!("gpu{rank}->host"), *bytes)).collect();
    assert_eq!(moved(told, |way| way.ends_with("->host")), back);
    let times = told.calls("cuEventElapsedTime") + told.calls("cuEventElapsedTime_v2");
    assert!(times > 0 && told.calls("cuEventRecord") == 2 * times, "{times} times of {} events", told.calls("cuEventRecord"));
    assert_eq!(told.calls("cuEventCreate"), told.calls("cuEventDestroy_v2"));
    assert_eq!(told.calls("cuStreamCreate"), told.calls("cuStreamDestroy_v2"));
    assert_eq!(told.calls("cuIpcOpenMemHandle_v2"), told.calls("cuIpcCloseMemHandle"));
    assert_eq!(told.calls("cuDevicePrimaryCtxRetain"), told.calls("cuDevicePrimaryCtxRelease_v2"));
    // Threads of one process may have let each other in already.
    let failed = |(call, tally): (&String, &super::stand_in::Tally)| tally.failed > 0 && call != "cuCtxEnablePeerAccess";
    assert!(!told.calls.iter().any(failed), "{:?}", told.calls);
}

/// What NCCL's saw: the same bytes, a receive for each send, groups and communicators that end.
fn nccl_agrees(told: &Told, expected: &BTreeMap<(usize, usize), u64>) {
    told.clean();
    let away = expected.iter().filter(|((from, to), _)| from != to);
    let away: Sums = away.map(|((from, to), bytes)| (format!("{from}->{to}"), *bytes)).collect();
    assert_eq!(moved(told, |_| true), away);
    assert_eq!((told.calls("ncclSend"), told.calls("ncclGroupStart")), (told.calls("ncclRecv"), told.calls("ncclGroupEnd")));
    let ended = [told.calls("ncclCommInitRankConfig"), told.calls("ncclCommDestroy"), told.calls("ncclCommAbort")];
    assert_eq!(ended, [RANKS as u64, RANKS as u64, 0]);
    assert_eq!(told.calls("ncclCommWindowRegister"), told.calls("ncclCommWindowDeregister"));
    assert_eq!(told.calls("ncclMemAlloc"), told.calls("ncclMemFree"));
}

fn right(place: &Place, command: Command, mover: &str) {
    let (samples, compared) = swept(place, command, mover);
    complete(&samples);
    let mut expected = bytes(&samples);
    let through_nccl = mover.starts_with("nccl");
    if through_nccl {
        // A byte connects each pair before anything of it is timed.
        expected.iter_mut().filter(|((from, to), _)| from != to).for_each(|(_, bytes)| *bytes += 1);
    }
    let report = place.folder().join("report");
    let cuda = told(&report, "cuda");
    cuda_agrees(&cuda, &expected, &compared);
    if through_nccl {
        let nccl = told(&report, "nccl");
        nccl_agrees(&nccl, &expected);
        let ways: BTreeSet<Option<&str>> = samples.iter().filter(|own| own.from != own.to).map(|own| own.via.as_deref()).collect();
        assert_eq!(ways, [if mover == "nccl" { Some("P2P/CUMEM") } else { None }].into());
        let puts = nccl.calls("ncclPutSignal") > 0;
        assert_eq!((puts, nccl.calls("ncclSend") > 0), (mover == "nccl_put", mover == "nccl"));
    }
}

#[test]
fn threads_give_a_calibration_of_which_every_byte_and_call_is_right() {
    let place = Place::new();
    let command = place.toposcope(&[]);
    right(&place, command, "memcpy");
    let processes = fs::read_dir(place.folder().join("report")).unwrap().filter(|entry| is_of_cuda(&entry.as_ref().unwrap().path()));
    assert_eq!(processes.count(), 1);
}

fn is_of_cuda(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda"))
}

#[cfg(feature = "mpi")]
fn job(mover: &str) {
    let Some(mpi) = crate::place::mpi::Mpi::open() else { return };
    let place = Place::new();
    let mut command = place.command(mpi.launcher);
    command.args(&mpi.words("4")[1..]);
    right(&place, command, mover);
    let processes = fs::read_dir(place.folder().join("report")).unwrap().filter(|entry| is_of_cuda(&entry.as_ref().unwrap().path()));
    assert_eq!(processes.count(), RANKS);
}

#[cfg(feature = "mpi")]
#[test]
fn pulls_between_processes_give_a_calibration_of_which_every_byte_and_call_is_right() {
    job("cuda_ipc_pull");
}

#[cfg(feature = "mpi")]
#[test]
fn pushes_between_processes_give_a_calibration_of_which_every_byte_and_call_is_right() {
    job("cuda_ipc_push");
}

#[cfg(feature = "mpi")]
#[test]
fn nccl_between_processes_gives_a_calibration_of_which_every_byte_and_call_is_right() {
    job("nccl");
}

#[cfg(feature = "mpi")]
#[test]
fn puts_between_processes_give_a_calibration_of_which_every_byte_and_call_is_right() {
    job("nccl_put");
}
