//! Whole MPI jobs: measured to the end, killed at any moment and taken up again, stopped, started wrongly.

mod kills;
mod plans;
mod scenarios;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use toposcope::discover::Machine;
use toposcope::export::{CALIBRATION_SCHEMA, read_calibration};
use toposcope::sample::{Pattern, Sample, Status};
use toposcope::session::{Event, Outcome, store};
use toposcope::topology::Topology;

use crate::calibration::faults;
use crate::place::mpi::{Mpi, with_both};
use crate::place::{Place, kill, until};

/// Nothing here takes this long.
const LIMIT: Duration = Duration::from_secs(120);

with_both! {
    every_repeat_is_there_once_and_good
    one_sided_puts_are_measured_too
    every_pattern_is_measured_at_every_width
    each_host_tells_once_what_it_is_made_of
    a_wrong_flag_is_told_once
    a_stopped_rank_is_lost_and_the_rest_is_measured
}

/// A sweep by this job, with more arguments; session and calibration lie in the place.
fn sweep(mpi: &Mpi, place: &Place, arguments: &str) -> Command {
    let mut job = mpi.job(place);
    job.arg("sweep").args(arguments.split_whitespace());
    job.arg("--session").arg(place.session()).arg("--out").arg(place.folder().join("cal.json"));
    job
}

/// What a sample is of: pattern, sender, receiver, size, repeat.
type Key = (Pattern, usize, usize, u64, u32);

fn keys(samples: &[Sample]) -> BTreeMap<Key, usize> {
    let mut keys = BTreeMap::new();
    for s in samples {
        assert_eq!(s.take, 0, "{s:?}");
        *keys.entry((s.pattern, s.from, s.to, s.bytes, s.repeat)).or_insert(0) += 1;
    }
    keys
}

/// Every key of a sweep of three ranks, once.
fn wanted(patterns: &[Pattern], sizes: &[u64], repeats: u32) -> BTreeMap<Key, usize> {
    let mut keys = BTreeMap::new();
    for &pattern in patterns {
        for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))) {
            if (from == to) == (pattern == Pattern::Local) {
                keys.extend(sizes.iter().flat_map(|&bytes| (0..repeats).map(move |repeat| ((pattern, from, to, bytes, repeat), 1))));
            }
        }
    }
    keys
}

/// The calibration passes the schema and its samples are these; they are given back.
fn calibrated(path: &Path, wanted: &BTreeMap<Key, usize>) -> Vec<Sample> {
    let document: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &document), [""; 0]);
    let mut samples = read_calibration(path).unwrap().samples;
    samples.retain(|sample| !sample.warmup);
    let found = keys(&samples);
    let odd: Vec<_> = found.iter().filter(|(key, count)| wanted.get(key) != Some(count)).take(5).collect();
    let missing: Vec<_> = wanted.keys().filter(|key| !found.contains_key(key)).take(5).collect();
    assert!(odd.is_empty() && missing.is_empty(), "not asked for, or not once: {odd:?}\nmissing: {missing:?}");
    samples
}

/// Samples that count: warm-ups do not.
fn timed(samples: &[Sample]) -> usize {
    samples.iter().filter(|sample| !sample.warmup).count()
}

fn good(samples: &[Sample]) {
    for sample in samples {
        let timed = sample.seconds.is_some_and(|seconds| seconds > 0.0) && sample.messages > 0;
        assert!(sample.status == Status::Ok && timed && sample.reason.is_none(), "{sample:?}");
        // A terabyte a second is nothing that these cores can do.
        assert!(sample.bytes as f64 / sample.seconds_per_message().unwrap() < 1e12, "{sample:?}");
    }
}

fn every_repeat_is_there_once_and_good(mpi: &Mpi) {
    let place = Place::new();
    let mut job = sweep(mpi, &place, "--patterns local,peer --sizes 4KiB..16MiB --repeats 10 --arena 64M");
    let ran = place.run(&mut job, LIMIT);
    ran.ended_with(0);
    let sizes: Vec<u64> = (0..7).map(|step| 4096 << (2 * step)).collect();
    good(&calibrated(&place.folder().join("cal.json"), &wanted(&[Pattern::Local, Pattern::Peer], &sizes, 10)));
    assert!(ran.stdout.contains("630 samples on 3 ranks"), "{ran:?}");
    assert_eq!(ran.stderr, "", "in a pipe nothing is told but the result");
    place.nothing_runs();
}

fn each_host_tells_once_what_it_is_made_of(mpi: &Mpi) {
    let place = Place::new();
    let mut job = mpi.job(&place);
    let ran = place.run(job.args(["discover", "--json"]), LIMIT);
    let told: Topology = serde_json::from_str(&ran.ended_with(0).stdout).unwrap();
    assert_eq!(told.ranks.len(), 3);
    // Three ranks on one host, which is seen as one process alone sees it.
    let [hardware] = told.hardware.as_slice() else { panic!("{:?}", told.hardware) };
    let alone = Machine::default().hardware();
    assert_eq!(hardware.host, told.ranks[0].host);
    assert_eq!((&hardware.packages, &hardware.caches, &hardware.pci), (&alone.packages, &alone.caches, &alone.pci));
    assert_eq!(ran.stderr, "");
    place.nothing_runs();
}

fn one_sided_puts_are_measured_too(mpi: &Mpi) {
    let place = Place::new();
    let mut job = sweep(mpi, &place, "--patterns peer --sizes 4KiB,1MiB --repeats 6 --arena 4M --mover mpi_put");
    place.run(&mut job, LIMIT).ended_with(0);
    good(&calibrated(&place.folder().join("cal.json"), &wanted(&[Pattern::Peer], &[4096, 1 << 20], 6)));
    place.nothing_runs();
}

fn a_wrong_flag_is_told_once(mpi: &Mpi) {
    for (arguments, expected) in [
        ("--repetitions 3", "--repetitions"),
        ("--sizes 4q", "--sizes"),
        ("--ranks 0-7", "--ranks"),
        ("--mover memcpy", "mpi_sendrecv"),
        ("--resume /no/such/session", "/no/such/session"),
    ] {
        let place = Place::new();
        let mut ran = place.run(&mut sweep(mpi, &place, arguments), LIMIT);
        // Hydra itself can die of SIGPIPE when ranks end before it has wired them up: its fault, so it gets two more tries.
        for _ in 0..2 {
            if std::os::unix::process::ExitStatusExt::signal(&ran.status) == Some(13) {
                ran = place.run(&mut sweep(mpi, &place, arguments), LIMIT);
            }
        }
        ran.ended_with(2);
        let told = ran.stderr.lines().filter(|line| line.starts_with("toposcope: ") || line.starts_with("error: ")).count();
        assert!(told == 1 && ran.stderr.contains(expected), "{arguments}: {ran:?}");
        place.nothing_runs();
    }
}

fn a_stopped_rank_is_lost_and_the_rest_is_measured(mpi: &Mpi) {
    let place = Place::new();
    let run = place.start(&mut sweep(mpi, &place, "--sizes 64KiB,256KiB --repeats 40 --arena 1M --timeout 1s"));
    let done = || kills::probes_done(&place);
    // The first pass, one probe for each of nine cells, is over; what follows is the most.
    until(LIMIT, "10 probes", || run.said(), || done() >= 10);
    let stopped = store::read_header(&place.session()).unwrap().topology.ranks[2].pid;
    kill(stopped, Signal::STOP);
    until(
        LIMIT,
        "the end of the sweep",
        || run.said(),
        || {
            let text = fs::read_to_string(place.session().join("events.ndjson")).unwrap_or_default();
            text.contains("\"event\":\"sweep_ended\"")
        },
    );
    // The launchers wait for a stopped process for ever: that is theirs. Rank 0 is done and has said so.
    until(LIMIT, "rank 0's last word", || run.said(), || run.said().contains("lost: rank 2"));
    kill(stopped, Signal::KILL);
    let ran = run.end(LIMIT);
    assert!(!ran.status.success(), "{ran:?}");

    let records = store::read(&place.session()).unwrap().records;
    let lost: Vec<usize> =
        records.iter().filter_map(|record| if let Event::RankLost { rank, .. } = record.event { Some(rank) } else { None }).collect();
    assert_eq!(lost, [2]);
    assert!(records.iter().any(|record| matches!(record.event, Event::SweepEnded { outcome: Outcome::Complete, .. })));
    let all = wanted(&[Pattern::Local, Pattern::Peer], &[64 << 10, 256 << 10], 40);
    let samples = calibrated(&place.folder().join("cal.json"), &all);
    for sample in &samples {
        let gone = sample.from == 2 || sample.to == 2;
        assert!(sample.status == Status::Ok || (gone && sample.reason.is_some()), "{sample:?}");
    }
    assert!(samples.iter().any(|sample| sample.status == Status::Timeout));
    place.nothing_runs();
}

/// Samples of a pattern by their group, transfer, size and repeat.
fn every_pattern_is_measured_at_every_width(mpi: &Mpi) {
    let place = Place::new();
    let mut job = place.command(mpi.launcher);
    job.args(&mpi.words("4")[1..]).args(["sweep", "--session"]).arg(place.session()).arg("--out").arg(place.folder().join("cal.json"));
    job.args("--patterns local,peer,duplex,fan_in,fan_out,relay --widths 1,2,3 --sizes 4KiB,256KiB --repeats 6 --arena 1M".split(' '));
    place.run(&mut job, LIMIT).ended_with(0);
    let path = place.folder().join("cal.json");
    let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &document), [""; 0]);
    let mut samples = read_calibration(&path).unwrap().samples;
    samples.retain(|sample| !sample.warmup);
    good(&samples);
    let mut found: BTreeMap<_, usize> = BTreeMap::new();
    for s in &samples {
        *found.entry((s.pattern, s.root, s.peers.clone(), s.from, s.to, s.bytes, s.repeat)).or_insert(0) += 1;
        assert_eq!(s.root_seconds.is_some(), s.pattern.is_fan(), "{s:?}");
    }
    assert!(found.values().all(|&count| count == 1));
    let of = |pattern| found.keys().filter(|key| key.0 == pattern).count() / 12;
    // Transfers: 4 copies, 12 ordered pairs, both ways of 6, 4 roots with 1 + 2 + 3 peers, a ring of 4.
    let counts = [Pattern::Local, Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::FanOut, Pattern::Relay].map(of);
    assert_eq!(counts, [4, 12, 12, 24, 24, 4]);
    // The fits of all kinds come out of it.
    let mut fit = place.toposcope(&["fit", "--json"]);
    let printed = place.run(fit.arg(&path), LIMIT);
    printed.ended_with(0);
    let fits: Value = serde_json::from_str(&printed.stdout).unwrap();
    let kinds: std::collections::BTreeSet<&str> = fits.as_array().unwrap().iter().filter_map(|fit| fit["pattern"].as_str()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["duplex", "fan_in", "fan_out", "local", "peer", "receive", "relay", "send"]);
    place.nothing_runs();
}
