//! `kill -9` at any moment: nothing whole is lost, it is told who died, nothing stays, and the sweep goes on.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use rustix::process::Signal;
use toposcope::sample::Pattern;
use toposcope::session::{Event, store};
use toposcope::sweep::Probe;
use toposcope::topology::Placement;
use toposcope::units::parse_ranks;

use super::{LIMIT, calibrated, good, timed, wanted};
use crate::place::mpi::{Mpi, with_both};
use crate::place::{Place, kill, until};

/// 36 probes with 270 samples, a few seconds.
const SWEEP: &str = "--sizes 16KiB,256KiB,1MiB --repeats 10 --arena 8M";
const SIZES: [u64; 3] = [16 << 10, 256 << 10, 1 << 20];
const PROBES: usize = 36;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Worker,
    Rank0,
    Launcher,
}

const VICTIMS: [Victim; 3] = [Victim::Worker, Victim::Rank0, Victim::Launcher];

with_both! {
    three_kills_of_each
    #[ignore = "minutes: run it by name, with --nocapture for the table"] twenty_kills_of_each
}

/// Probes that the session's file has whole.
pub fn probes_done(place: &Place) -> usize {
    let text = fs::read_to_string(place.session().join("events.ndjson")).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.contains("\"event\":\"probe_done\"") && line.ends_with('\n')).count()
}

/// What one kill came to.
struct Told {
    /// the message named the victim alone
    exact: bool,
    /// the message named a probe, rather than the moment between two
    probe: Option<String>,
    message: String,
    code: Option<i32>,
    kept: usize,
}

/// Launchers end a job within a millisecond of a rank's death. A guard that was not awake then cannot tell who was first,
/// and says so; the one that was killed must be among those that it names.
fn among_several(told: &str, pid: u32, ranks: &[Placement]) -> bool {
    let named = |(_, rest): (&str, &str)| {
        let numbers = rest.split(' ').next().unwrap_or_default();
        parse_ranks(numbers, ranks.len()).is_ok_and(|numbers| numbers.iter().any(|&rank| ranks[rank].pid == pid))
    };
    let as_rank = ["ranks ", "rank "].iter().any(|word| told.split_once(word).is_some_and(named));
    told.contains("too close together") && (as_rank || told.contains(&format!("process {pid})")))
}

fn one_kill(mpi: &Mpi, victim: Victim, random: &mut fastrand::Rng) -> Told {
    let place = Place::new();
    let run = place.start(&mut super::sweep(mpi, &place, SWEEP));
    let moment = random.usize(1..PROBES - 6);
    until(LIMIT, "the moment", || run.said(), || probes_done(&place) >= moment);
    let ranks = store::read_header(&place.session()).unwrap().topology.ranks;
    let (pid, who) = match victim {
        Victim::Worker => {
            let rank = random.usize(1..3);
            (ranks[rank].pid, format!("rank {rank}"))
        }
        Victim::Rank0 => (ranks[0].pid, "rank 0".to_owned()),
        Victim::Launcher => (run.pid(), "the launcher".to_owned()),
    };
    let events = place.session().join("events.ndjson");
    let before = fs::read(&events).unwrap();
    kill(pid, Signal::KILL);
    let ran = run.end(LIMIT);
    assert!(!ran.status.success(), "{ran:?}");
    place.nothing_runs();

    // Every whole event is there and can be read; what was there before is unchanged.
    let after = fs::read(&events).unwrap();
    assert!(after.starts_with(&before));
    let recorded = store::read(&place.session()).unwrap();
    let kept: usize =
        recorded.records.iter().map(|record| if let Event::ProbeDone { samples, .. } = &record.event { timed(samples) } else { 0 }).sum();

    // Who, where and during which probe, what is kept, and how to go on.
    let message = ran.stderr;
    let who_died = message.lines().find(|line| line.starts_with("toposcope: ") && line.contains(" died "));
    let who_died = who_died.unwrap_or_else(|| panic!("nobody is named for {who} ({pid}):\n{message}"));
    let exact = who_died.contains(&who) && who_died.contains(&format!("process {pid}"));
    assert!(exact || among_several(who_died, pid, &ranks), "{who} ({pid}):\n{message}");
    let probe = who_died.split_once(" during ").map(|(_, probe)| probe.split(", too close").next().unwrap_or(probe).to_owned());
    if let Some(probe) = &probe {
        let started: Vec<Probe> = recorded
            .records
            .iter()
            .filter_map(|record| if let Event::ProbeStarted { probe } = &record.event { Some(probe.clone()) } else { None })
            .collect();
        assert!(started.iter().skip(moment - 1).any(|started| *probe == started.describe()), "{probe} was not in flight:\n{message}");
    }
    // An event is in the file a moment before the guard knows of it.
    let told: Option<usize> = message.lines().find_map(|line| line.trim_start().split_once(" completed samples are in ")?.0.parse().ok());
    let last = recorded.records.iter().rev().find_map(|record| match &record.event {
        Event::ProbeDone { samples, .. } => Some(timed(samples)),
        _ => None,
    });
    assert!(told == Some(kept) || told == kept.checked_sub(last.unwrap_or(0)), "{kept} are:\n{message}");
    assert!(message.contains("to go on:") && message.contains("--resume"), "{message}");

    // The same command with --resume finishes what is left, and measures nothing twice.
    let out = place.folder().join("cal.json");
    let mut job = mpi.job(&place);
    job.args(["sweep", "--resume"]).arg(place.session()).arg("--out").arg(&out);
    place.run(&mut job, LIMIT).ended_with(0);
    good(&calibrated(&out, &wanted(&[Pattern::Local, Pattern::Peer], &SIZES, 10)));
    let again = fs::read(&events).unwrap();
    let whole = usize::try_from(recorded.extent.whole).unwrap();
    assert!(again.starts_with(&after[..whole]));
    place.nothing_runs();
    Told { exact, probe, message, code: ran.status.code(), kept }
}

/// Kills of each victim; a table of what came of them.
fn kills(mpi: &Mpi, times: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut table = format!("{}, seed {seed}\n", mpi.name);
    for victim in VICTIMS {
        let (mut named, mut exact) = (0, 0);
        for number in 0..times {
            let told = one_kill(mpi, victim, &mut random);
            named += usize::from(told.probe.is_some());
            exact += usize::from(told.exact);
            let (code, probe) = (told.code.map_or("signal".to_owned(), |code| code.to_string()), told.probe.unwrap_or_default());
            let first = told.message.lines().find(|line| line.contains(" died ")).unwrap_or_default();
            writeln!(table, "{victim:?} {number}: code {code}, {} samples kept, during {probe:?}: {first}", told.kept).unwrap();
        }
        // Between two probes there is next to no time.
        assert!(2 * named > times, "{victim:?}: only {named} of {times} messages name a probe\n{table}");
        assert!(exact > 0, "{victim:?}: no message names the victim alone\n{table}");
    }
    table
}

fn three_kills_of_each(mpi: &Mpi) {
    kills(mpi, 3, 11);
}

fn twenty_kills_of_each(mpi: &Mpi) {
    let table = kills(mpi, 20, 2024);
    std::io::stderr().write_all(format!("\n{table}\n").as_bytes()).unwrap();
}
