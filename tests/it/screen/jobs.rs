//! The screen of MPI jobs: rank 0's own, that of `toposcope run`, and one that is attached.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::Signal;
use toposcope::session::{Command, Event, store};

use super::term::{SOON, Term};
use crate::place::mpi::{Mpi, with_both};
use crate::place::{Place, kill, until};

with_both! {
    rank_0_draws_and_takes_keys
    kill_9_of_rank_0_leaves_the_terminal_whole
    kill_9_of_the_launcher_leaves_the_terminal_whole
    run_starts_the_same
    a_job_without_a_terminal_is_attached_to
}

const SMALL: &str = "--patterns local,peer --sizes 4KiB,64KiB --repeats 6 --arena 1MiB";
const LONG: &str = "--patterns peer --sizes 4KiB..1MiB --repeats 100000 --arena 4MiB";
/// 3 local and 6 peer cells, 2 sizes, 6 repeats
const SAMPLES: usize = 108;

fn start(place: &Place, words: &[&str], arguments: &str) -> Term {
    let session = place.session().display().to_string();
    let more: Vec<&str> = arguments.split_whitespace().chain(["--session", &session]).collect();
    let term = Term::start(place, (120, 40), &[words, &more].concat(), &[]);
    term.entered();
    term.see("start this sweep");
    term
}

fn samples(place: &Place) -> usize {
    let records = store::read(&place.session()).unwrap().records;
    records
        .iter()
        .map(
            |record| {
                if let Event::ProbeDone { samples, .. } = &record.event {
                    samples.iter().filter(|sample| !sample.warmup).count()
                } else {
                    0
                }
            },
        )
        .sum()
}

/// A sweep by keys, the matrix full, and out.
fn used(place: &Place, mut term: Term) {
    assert!(term.text().contains("3 ranks"), "{}", term.text());
    term.press("\r");
    term.see("✓ complete");
    term.press("3");
    term.see("bandwidth, ");
    term.resize((90, 30));
    term.until("the new size", |screen| screen.contents().lines().next().is_some_and(|line| line.trim_end().ends_with("100 %")));
    term.press("q");
    term.left_whole(0);
    place.nothing_runs();
    assert_eq!(samples(place), SAMPLES);
}

fn rank_0_draws_and_takes_keys(mpi: &Mpi) {
    let place = Place::new();
    let term = start(&place, &mpi.words("3"), SMALL);
    used(&place, term);
}

fn run_starts_the_same(mpi: &Mpi) {
    let place = Place::new();
    let term = start(&place, &[&mpi.program, "run", "-n", "3", "--launcher", mpi.launcher], SMALL);
    used(&place, term);
}

/// End a process of a running job by force; what the terminal shows then.
fn killed(mpi: &Mpi, victim: impl Fn(&Place) -> u32) -> (u32, String) {
    let place = Place::new();
    let mut term = start(&place, &mpi.words("3"), LONG);
    term.press("\r");
    term.see("● peer");
    let pid = victim(&place);
    kill(pid, Signal::KILL);
    term.see("to go on:");
    let told = term.text().replace('\n', "");
    let code = term.code();
    assert_ne!(code, 0, "{told}");
    term.left_whole(code);
    place.nothing_runs();
    assert!(told.contains("--resume"), "{told}");
    (pid, told)
}

fn kill_9_of_rank_0_leaves_the_terminal_whole(mpi: &Mpi) {
    let (pid, told) = killed(mpi, |place| store::read_header(&place.session()).unwrap().topology.ranks[0].pid);
    assert!(told.contains(&format!("rank 0 (process {pid} on ")) && told.contains(" died "), "{told}");
}

fn kill_9_of_the_launcher_leaves_the_terminal_whole(mpi: &Mpi) {
    let launcher = |place: &Place| {
        let processes = place.processes();
        let found = processes.iter().find(|(_, line)| line.starts_with(mpi.launcher));
        *found.unwrap_or_else(|| panic!("no launcher in {processes:#?}")).0
    };
    let (pid, told) = killed(mpi, launcher);
    assert!(told.contains("the launcher (") && told.contains(&format!("process {pid}")), "{told}");
}

fn a_job_without_a_terminal_is_attached_to(mpi: &Mpi) {
    let place = Place::new();
    let mut job = mpi.job(&place);
    job.args(SMALL.split_whitespace()).arg("--session").arg(place.session());
    let run = place.start(&mut job);
    until(SOON, "the socket", || run.said(), || !place.sockets().is_empty());
    assert_eq!(place.sockets().len(), 1);

    let attach = |place: &Place| {
        let term = Term::start(place, (120, 40), &[&mpi.program, "attach"], &[]);
        term.entered();
        term
    };
    let mut first = attach(&place);
    first.see("start this sweep");
    // The form begins with the job's settings; what is typed into it wins.
    while !first.text().contains("▸sizes") {
        let before = first.text();
        first.press("k");
        until(SOON, "the field above", || first.text(), || first.text() != before);
    }
    first.press(" ");
    first.press("\x154KiB,64KiB\r");
    first.see("4KiB,64KiB");
    first.press("\r");
    first.see("● ");
    first.press("q");
    first.left_whole(0);

    until(
        SOON,
        "the sweep's end",
        || run.said(),
        || {
            let text = std::fs::read_to_string(place.session().join("events.ndjson")).unwrap_or_default();
            text.contains("\"event\":\"sweep_ended\"")
        },
    );
    let mut second = attach(&place);
    second.see("✓ complete");
    second.press("3");
    second.see("bandwidth, ");
    // Somebody else ends the job: the screen tells and leaves.
    let mut line = serde_json::to_vec(&Command::Quit).unwrap();
    line.push(b'\n');
    UnixStream::connect(&place.sockets()[0]).unwrap().write_all(&line).unwrap();
    second.left_whole(0);
    assert!(second.text().contains("the job has ended"), "{}", second.text());
    let ran = run.end(Duration::from_secs(60));
    ran.ended_with(0);
    assert!(ran.stderr.contains("toposcope attach"), "{ran:?}");
    assert!(place.sockets().is_empty());
    place.nothing_runs();
    // What the job was started to measure: 9 cells, 2 sizes, 6 repeats.
    assert_eq!(samples(&place), 108);
}
