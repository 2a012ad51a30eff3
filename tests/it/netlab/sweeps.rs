//! Sweeps of real Open MPI ranks in the laboratory, against the rates that were set.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use toposcope::export::{csv, read_calibration};
use toposcope::sample::{Pattern, Sample, Status};
use toposcope::session::{Event, Outcome, store};
use toposcope::sweep::Cell;

use super::lab::{BURST, Lab, payload_rate};
use super::settled;

/// The size that rates are compared at: large against tbf's bucket, whose content goes at line rate.
const LARGE: u64 = 4 << 20;

/// Wait for a condition, for at most `limit`.
fn until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Rates from one host to another as set, Mbit/s: hosts send at 800, node4 at 200; node2 receives at 300.
fn truth(from: usize, to: usize) -> u32 {
    let out = if from == 3 { 200 } else { 800 };
    if to == 1 { out.min(300) } else { out }
}

/// Repeats of the newest take of each pair and size, ascending; no warm-ups.
fn newest(samples: &[Sample]) -> BTreeMap<(usize, usize, u64), Vec<u32>> {
    let mut takes: BTreeMap<(usize, usize, u64), BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| !sample.warmup) {
        takes.entry((sample.from, sample.to, sample.bytes)).or_default().entry(sample.take).or_default().push(sample.repeat);
    }
    let newest = takes.into_iter().filter_map(|(key, mut takes)| Some((key, takes.pop_last()?.1)));
    newest
        .map(|(key, mut repeats)| {
            repeats.sort_unstable();
            (key, repeats)
        })
        .collect()
}

/// All twelve rates are what the shaping leaves for payload, and only the slow directions are slow.
pub fn twelve_rates_are_what_was_set(toposcope: &Path) {
    let Some(lab) = Lab::new(4) else { return };
    for host in 1..=4 {
        lab.shape_out(host, if host == 4 { 200 } else { 800 });
    }
    lab.shape_in(2, 300);
    let (session, out) = (lab.folder().join("lab-4x4"), lab.folder().join("cal.json"));
    let mut job = lab.mpirun(1, 4, [toposcope]);
    job.args(["sweep", "--patterns", "peer", "--sizes", "4KiB,64KiB,1MiB,4MiB", "--repeats", "6"]);
    job.arg("--session").arg(&session).arg("--out").arg(&out);
    let ran = lab.run(&mut job, Duration::from_secs(120));
    assert!(ran.status.is_some_and(|status| status.success()), "{ran:?}");

    let calibration = read_calibration(&out).unwrap();
    assert_eq!(calibration.topology.hosts, ["node1", "node2", "node3", "node4"]);
    // Six repeats of each pair and size in the take that counts: what ran together and was checked alone has a newer one, and
    // what was not measured yet when that began is not measured for the old one.
    let newest = newest(&calibration.samples);
    assert_eq!(newest.len(), 12 * 4);
    for (key, repeats) in newest {
        assert_eq!(repeats, [0, 1, 2, 3, 4, 5], "{key:?}");
    }
    assert!(calibration.samples.iter().all(|sample| sample.status == Status::Ok));
    let model = calibration.to_model();
    let rate = |from, to| model.cells.get(Cell { pattern: Pattern::Peer, from, to }, LARGE).unwrap().bandwidth();
    let pairs = || (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let mut told = String::new();
    let mut wrong = 0;
    for (from, to) in pairs() {
        let ratio = rate(from, to) / payload_rate(truth(from, to));
        writeln!(told, "{from}→{to}: {:.1} Mbit/s, {ratio:.3} of what was set", rate(from, to) * 8e-6).unwrap();
        wrong += u32::from((ratio - 1.0).abs() > 0.05);
    }
    // A full bucket may make a rate this much too high: it must fit in the tolerance, or the test tests nothing.
    const { assert!((BURST as u64) * 20 < LARGE) };
    assert_eq!(wrong, 0, "\n{told}");

    // Both slow directions stand out by the ratio that was set, and their reverses do not.
    let table = csv(&model, &toposcope::topology::Efficiency::default());
    let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|&other| other == name).unwrap();
    for row in table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()) {
        let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
        let (from, to) = (number("from") as usize, number("to") as usize);
        if row[column("bytes")] != LARGE.to_string() {
            continue;
        }
        let expected = (f64::from(truth(from, to)) / f64::from(truth(to, from))).ln();
        assert!((number("asymmetry_ln_ratio") - expected).abs() < 0.1, "{row:?}: expected {expected}\n{told}");
    }
    // For `sessions/`: this very session, to be opened by people and by tests that have no laboratory.
    if let Some(keep) = std::env::var_os("TOPOSCOPE_LAB_SESSION") {
        fs::create_dir_all(&keep).unwrap();
        for name in ["header.json", "events.ndjson"] {
            fs::copy(session.join(name), Path::new(&keep).join(name)).unwrap();
        }
    }
}

/// One host's cable is pulled in the middle: its cells time out, the rest is measured, the sweep ends by itself.
pub fn a_pulled_cable_is_a_lost_rank_and_the_rest_is_measured(toposcope: &Path) {
    let Some(lab) = Lab::new(4) else { return };
    for host in 1..=4 {
        lab.shape_out(host, 400);
    }
    let (session, out, code) = (lab.folder().join("session"), lab.folder().join("cal.json"), lab.folder().join("code"));
    // Open MPI 4.1's mpirun does not come back when a host is gone: it waits for its daemon there, until our guard ends it.
    // So rank 0's own exit code goes to a file.
    let mut job = lab.mpirun(1, 4, ["sh", "-c", "\"$@\"; c=$?; [ $OMPI_COMM_WORLD_RANK != 0 ] || echo $c >\"$0\""]);
    job.arg(&code).arg(toposcope);
    job.args(["sweep", "--patterns", "peer", "--sizes", "64KiB,1MiB,4MiB", "--repeats", "3", "--timeout", "2s"]);
    job.arg("--session").arg(&session).arg("--out").arg(&out);
    // Into files: the lost host's daemon keeps pipes open for as long as it lives.
    let (stdout, stderr) = (lab.folder().join("stdout"), lab.folder().join("stderr"));
    let mut child = job.stdout(fs::File::create(&stdout).unwrap()).stderr(fs::File::create(&stderr).unwrap()).spawn().unwrap();
    let probes = || {
        let text = fs::read_to_string(session.join("events.ndjson")).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"probe_done\"")).count()
    };
    // The first pass has 12 probes; after 14, every cell has a sample and most are still to come.
    until(Duration::from_secs(30), "14 probes", || probes() >= 14);
    lab.link_down(4);
    until(Duration::from_secs(90), "rank 0's end", || fs::read_to_string(&code).is_ok_and(|text| text.ends_with('\n')));
    assert_eq!(fs::read_to_string(&code).unwrap(), "1\n");
    let mut status = None;
    until(Duration::from_secs(40), "mpirun's end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let [stdout, stderr] = [stdout, stderr].map(|path| fs::read_to_string(path).unwrap());
    assert!(!status.unwrap().success(), "not as if all were well");
    assert!(stdout.contains("rank 3: no answer since peer"), "{stdout}");
    assert!(stderr.contains("waits for what was lost; it is ended now"), "{stderr}");

    let records = store::read(&session).unwrap().records;
    let lost: Vec<usize> =
        records.iter().filter_map(|record| if let Event::RankLost { rank, .. } = record.event { Some(rank) } else { None }).collect();
    assert_eq!(lost, [3]);
    let ended = records.iter().any(|record| matches!(&record.event, Event::SweepEnded { outcome: Outcome::Complete, .. }));
    assert!(ended, "{:?}", records.last());

    let mut samples = read_calibration(&out).unwrap().samples;
    samples.retain(|sample| !sample.warmup);
    let newest = newest(&samples);
    assert_eq!(newest.len(), 12 * 3);
    for (key, repeats) in newest {
        // A trial of what ran together takes as many as have an interval.
        assert!(repeats == [0, 1, 2] || repeats == [0, 1, 2, 3, 4, 5], "every repeat has a state: {key:?} {repeats:?}");
    }
    for sample in &samples {
        let gone = sample.from == 3 || sample.to == 3;
        assert!(sample.status == Status::Ok || (gone && sample.status == Status::Timeout), "{sample:?}");
        assert_eq!(sample.status == Status::Timeout, sample.reason.is_some(), "{sample:?}");
    }
    let timeouts = |from, to| samples.iter().filter(|s| (s.from, s.to) == (from, to) && s.status == Status::Timeout).count();
    for rank in 0..3 {
        assert!(timeouts(rank, 3) > 0 && timeouts(3, rank) > 0, "rank {rank} and the lost one");
    }
}

#[test]
fn rates() {
    settled(|| twelve_rates_are_what_was_set(Path::new(env!("CARGO_BIN_EXE_toposcope"))));
}

#[test]
fn pulled_cable() {
    a_pulled_cable_is_a_lost_rank_and_the_rest_is_measured(Path::new(env!("CARGO_BIN_EXE_toposcope")));
}
