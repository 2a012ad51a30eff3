//! Every failure on demand, through the program itself in a job of four processes: what it touches is waived or out of time with its
//! reason, the rest is measured, and it is told (issue 7, must show b).

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use toposcope::export::read_calibration;
use toposcope::sample::{Sample, Status};
use toposcope::session::{Event, Outcome, store};

use super::stand_in::{ALSO, Told, serve, told};
use crate::place::mpi::Mpi;
use crate::place::{Place, Ran, Run, kill, until};

const LIMIT: Duration = Duration::from_secs(240);
const RANKS: usize = 4;

/// What a failure may touch.
enum Touches {
    /// all that needs this rank, and nothing else
    Rank(usize),
    /// all between two ranks, and no copies within one
    Pairs,
    /// one probe alone of this rank's
    OneProbe(usize),
    /// from some probe on all that needs this rank
    RankFrom(usize),
}

struct Case {
    name: &'static str,
    movers: &'static [&'static str],
    also: &'static str,
    touches: Touches,
    state: &'static [Status],
    /// in the reason of what was not measured, and in the summary
    reason: &'static str,
}

const WAIVED: &[Status] = &[Status::Waived];
const EITHER: &[Status] = &[Status::Waived, Status::Timeout];

const CASES: [Case; 9] = [
    Case {
        name: "one GPU fewer on the host",
        movers: &["cuda_ipc_pull", "nccl"],
        also: "[[cuda.hidden]]\ngpus = \"3\"",
        touches: Touches::Rank(3),
        state: WAIVED,
        reason: "4 ranks, 3 GPUs",
    },
    Case {
        name: "the driver does not start on rank 0",
        movers: &["cuda_ipc_push", "nccl"],
        also: "[[cuda.fail]]\ncall = \"cuInit\"\nerror = \"CUDA_ERROR_NO_DEVICE\"\nranks = \"0\"",
        touches: Touches::Rank(0),
        state: WAIVED,
        reason: "rank 0 sees no GPU",
    },
    Case {
        name: "out of memory on rank 1",
        movers: &["cuda_ipc_pull", "nccl"],
        also: "[[cuda.fail]]\ncall = \"cuMemAlloc_v2\"\nerror = \"CUDA_ERROR_OUT_OF_MEMORY\"\nranks = \"1\"",
        touches: Touches::Rank(1),
        state: WAIVED,
        reason: "its buffers of",
    },
    Case {
        name: "no peer access",
        movers: &["cuda_ipc_pull", "cuda_ipc_push"],
        also: "cuda.p2p = false",
        touches: Touches::Pairs,
        state: WAIVED,
        reason: "the memory of rank",
    },
    Case {
        name: "an error of NCCL",
        movers: &["nccl"],
        also: "[[nccl.fail]]\ncall = \"ncclSend\"\nerror = \"ncclRemoteError\"\nlate = true\nafter = 40\ntimes = 1\nranks = \"1\"",
        touches: Touches::OneProbe(1),
        state: EITHER,
        reason: "another rank failed",
    },
    Case {
        name: "an error of NCCL's puts",
        movers: &["nccl_put"],
        also: "[[nccl.fail]]\ncall = \"ncclPutSignal\"\nerror = \"ncclRemoteError\"\nlate = true\nafter = 40\ntimes = 1\nranks = \"1\"",
        touches: Touches::OneProbe(1),
        state: EITHER,
        reason: "another rank failed",
    },
    Case {
        name: "a hang in CUDA",
        movers: &["cuda_ipc_pull", "cuda_ipc_push"],
        also: "[[cuda.fail]]\ncall = \"cuMemcpyDtoDAsync_v2\"\nerror = \"hang\"\nafter = 60\ntimes = 1\nranks = \"1\"",
        touches: Touches::OneProbe(1),
        state: &[Status::Timeout],
        reason: "saw no completion within 3 s",
    },
    Case {
        name: "a hang in NCCL",
        movers: &["nccl"],
        also: "[[nccl.fail]]\ncall = \"ncclSend\"\nerror = \"hang\"\nafter = 40\ntimes = 1\nranks = \"1\"",
        touches: Touches::OneProbe(1),
        state: &[Status::Timeout],
        reason: "saw no completion within 3 s",
    },
    Case {
        name: "a launch failure in the middle of the sweep",
        movers: &["cuda_ipc_pull", "cuda_ipc_push"],
        also: "[[cuda.fail]]\ncall = \"cuMemcpyDtoDAsync_v2\"\nerror = \"CUDA_ERROR_LAUNCH_FAILED\"\nlate = true\nsticky = true\n\
               after = 60\nranks = \"1\"",
        touches: Touches::RankFrom(1),
        state: EITHER,
        reason: "CUDA_ERROR_LAUNCH_FAILED",
    },
];

/// A sweep of pairs and copies in a job of four, under way.
fn start(place: &Place, mpi: &Mpi, mover: &str, also: &str, more: &str) -> Run {
    let report = place.folder().join("report");
    fs::create_dir(&report).unwrap();
    let mut command = place.command(mpi.launcher);
    command.args(&mpi.words("4")[1..]).args(["sweep", "--memory", "cuda", "--mover", mover, "--session"]).arg(place.session());
    command.args("--patterns local,peer --sizes 4KiB,64KiB --warmup 1 --arena 4MiB --isolated --timeout 3s --seed 3".split(' '));
    command.args(more.split(' '));
    place.start(serve(&mut command, &report).env(ALSO, also))
}

/// The session can be read, its sweep is complete, and its calibration is exported; the samples in it, warm-ups left out, and the ends of
/// probes.
fn readable(place: &Place) -> (Vec<Sample>, Vec<Vec<Sample>>) {
    let records = store::read(&place.session()).unwrap().records;
    assert!(records.iter().any(|record| matches!(record.event, Event::SweepEnded { outcome: Outcome::Complete, .. })));
    let probes =
        records.into_iter().filter_map(|record| if let Event::ProbeDone { samples, .. } = record.event { Some(samples) } else { None });
    let file = place.folder().join("cal.json");
    let mut export = place.toposcope(&["export"]);
    export.arg(place.session()).args(["--format", "calibration", "--out"]).arg(&file);
    place.run(&mut export, LIMIT).ended_with(0);
    let mut samples = read_calibration(&file).unwrap().samples;
    samples.retain(|sample| !sample.warmup);
    (samples, probes.collect())
}

fn has(sample: &Sample, rank: usize) -> bool {
    sample.from == rank || sample.to == rank
}

/// What was not measured is what the failure touches, with its reason; every other pair was.
fn check(case: &Case, mover: &str, place: &Place, ran: &Ran) -> Told {
    let what = format!("{} by {mover}\n{}{}", case.name, ran.stdout, ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{what}");
    assert!(ran.stdout.contains(case.reason), "{what}");
    let (samples, probes) = readable(place);
    let bad: Vec<&Sample> = samples.iter().filter(|sample| sample.status != Status::Ok).collect();
    assert!(!bad.is_empty() && bad.iter().all(|sample| case.state.contains(&sample.status) && sample.reason.is_some()), "{what}\n{bad:?}");
    let explained = bad.iter().filter(|sample| sample.reason.as_ref().is_some_and(|reason| reason.contains(case.reason))).count();
    let failed = probes.iter().filter(|probe| probe.iter().any(|sample| sample.status != Status::Ok)).count();
    let measured: BTreeSet<(usize, usize)> =
        samples.iter().filter(|sample| sample.status == Status::Ok).map(|sample| (sample.from, sample.to)).collect();
    let all = || (0..RANKS).flat_map(|from| (0..RANKS).map(move |to| (from, to)));
    match case.touches {
        Touches::Rank(rank) => {
            assert!(samples.iter().all(|sample| (sample.status != Status::Ok) == has(sample, rank)), "{what}");
            assert_eq!(explained, bad.len(), "{what}");
        }
        Touches::Pairs => {
            assert!(samples.iter().all(|sample| (sample.status != Status::Ok) == (sample.from != sample.to)), "{what}");
            assert!(explained > 0, "{what}");
        }
        Touches::OneProbe(rank) => {
            assert!(
                failed == 1 && bad.iter().all(|sample| has(sample, rank)) && explained == bad.len(),
                "{failed} probes of {what}\n{bad:?}"
            );
            assert_eq!(measured, all().collect::<BTreeSet<_>>(), "{what}");
        }
        Touches::RankFrom(rank) => {
            assert!(bad.iter().all(|sample| has(sample, rank)) && explained > 0, "{what}\n{bad:?}");
            let others: BTreeSet<_> = all().filter(|&(from, to)| from != rank && to != rank).collect();
            assert!(others.is_subset(&measured), "{what}");
        }
    }
    let report = place.folder().join("report");
    let cuda = told(&report, "cuda");
    assert_eq!(cuda.violations, [""; 0], "{what}");
    cuda
}

#[test]
fn every_failure_on_demand_is_told_with_its_reason_and_the_rest_goes_on() {
    let Some(mpi) = Mpi::open() else { return };
    for case in &CASES {
        for mover in case.movers {
            let place = Place::new();
            let ran = start(&place, &mpi, mover, case.also, "--repeats 4").end(LIMIT);
            let cuda = check(case, mover, &place, &ran);
            if matches!(case.touches, Touches::Rank(_) | Touches::Pairs) {
                assert_eq!(cuda.kept, [""; 0], "{} by {mover}: nothing was given up", case.name);
            }
        }
    }
}

#[test]
fn a_job_of_which_no_rank_has_a_gpu_is_refused() {
    let Some(mpi) = Mpi::open() else { return };
    let place = Place::new();
    let ran = start(&place, &mpi, "nccl", "[[cuda.hidden]]\ngpus = \"0-3\"", "--repeats 3").end(LIMIT);
    ran.ended_with(2);
    assert!(ran.stderr.contains("rank 0 sees no GPU"), "{ran:?}");
}

/// A rank that is stopped while NCCL is measured: it is lost, and the others meet again without it.
#[test]
fn ranks_meet_again_in_nccl_without_one_that_is_lost() {
    let Some(mpi) = Mpi::open() else { return };
    let place = Place::new();
    let run = start(&place, &mpi, "nccl", "", "--repeats 30 --ci 0.0001");
    let done = || fs::read_to_string(place.session().join("events.ndjson")).unwrap_or_default().matches("\"event\":\"probe_done\"").count();
    // The first pass, one probe for each of sixteen cells, is over.
    until(LIMIT, "20 probes", || run.said(), || done() >= 20);
    let stopped = store::read_header(&place.session()).unwrap().topology.ranks[3].pid;
    kill(stopped, Signal::STOP);
    until(LIMIT, "rank 0's last word", || run.said(), || run.said().contains("lost: rank 3"));
    kill(stopped, Signal::KILL);
    let ran = run.end(LIMIT);
    assert!(!ran.status.success(), "{ran:?}");
    let (samples, _) = readable(&place);
    assert!(samples.iter().all(|sample| sample.status == Status::Ok || (has(sample, 3) && sample.reason.is_some())), "{ran:?}");
    let records = store::read(&place.session()).unwrap().records;
    let lost = records.iter().position(|record| matches!(record.event, Event::RankLost { rank: 3, .. })).unwrap();
    let met =
        records.iter().position(|record| matches!(&record.event, Event::Log { line, .. } if line.contains("meet in a new communicator")));
    assert!(met.is_some_and(|met| met > lost), "{met:?} after {lost}");
    let after = records[met.unwrap()..]
        .iter()
        .filter_map(|record| if let Event::ProbeDone { samples, .. } = &record.event { Some(samples) } else { None });
    let pairs: BTreeSet<(usize, usize)> =
        after.flatten().filter(|own| own.status == Status::Ok && own.from != own.to).map(|own| (own.from, own.to)).collect();
    assert!(pairs.len() > 1, "measured in the new one: {pairs:?}");
    place.nothing_runs();
}

/// A rank that is killed ends the job, whose launcher sees to that; it is told who died, and the session goes on from there.
#[test]
fn a_rank_that_is_killed_is_named_and_the_sweep_is_taken_up_again() {
    let Some(mpi) = Mpi::open() else { return };
    let place = Place::new();
    let run = start(&place, &mpi, "nccl", "", "--repeats 30 --ci 0.0001");
    let done = || fs::read_to_string(place.session().join("events.ndjson")).unwrap_or_default().matches("\"event\":\"probe_done\"").count();
    until(LIMIT, "10 probes", || run.said(), || done() >= 10);
    kill(store::read_header(&place.session()).unwrap().topology.ranks[2].pid, Signal::KILL);
    let ran = run.end(LIMIT);
    assert!(!ran.status.success() && ran.stderr.contains(" died ") && ran.stderr.contains("--resume"), "{ran:?}");
    place.nothing_runs();
    let mut again = place.command(mpi.launcher);
    again.args(&mpi.words("4")[1..]).arg("sweep").arg("--resume").arg(place.session());
    place.run(serve(&mut again, &place.folder().join("report")), LIMIT).ended_with(0);
    let (samples, _) = readable(&place);
    assert!(samples.iter().all(|sample| sample.status == Status::Ok), "{ran:?}");
}
