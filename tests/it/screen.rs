//! The program on a terminal: drawn, used by keys, and left whole however it ends.

mod fuzz;
#[cfg(feature = "mpi")]
mod jobs;
pub mod term;

use std::fs;

use rustix::process::Signal;
use toposcope::session::store::{self, Store};

use crate::made;
use crate::place::{Place, TOPOSCOPE, kill};
use term::{Term, first_colour};

/// A small sweep of two threads, which the Sweep tab offers.
const SMALL: [&str; 10] = ["--engine", "threads", "--ranks", "2", "--sizes", "4KiB,64KiB", "--repeats", "6", "--arena", "1MiB"];
/// One that lasts.
const LONG: [&str; 10] = ["--engine", "threads", "--ranks", "2", "--sizes", "4KiB..1MiB", "--repeats", "8000", "--arena", "1MiB"];

fn start(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Term {
    let session = place.session().display().to_string();
    let command = [&[TOPOSCOPE, "--session", &session], arguments].concat();
    let term = Term::start(place, (120, 40), &command, variables);
    term.entered();
    term
}

/// The process that draws: the only one here with this command line that is no shell.
fn drawing(place: &Place) -> u32 {
    let ours = |line: &&String| line.starts_with(TOPOSCOPE) && !line.contains(" guard");
    let found: Vec<u32> = place.processes().iter().filter(|(_, line)| ours(line)).map(|(&pid, _)| pid).collect();
    assert_eq!(found.len(), 1, "{:#?}", place.processes());
    found[0]
}

fn started_sweep(term: &mut Term) {
    term.see("start this sweep");
    term.press("\r");
}

#[test]
fn a_sweep_started_by_a_key_fills_the_matrix_and_q_leaves() {
    let place = Place::new();
    let mut term = start(&place, &SMALL, &[]);
    started_sweep(&mut term);
    term.see("✓ complete");
    term.press("3");
    term.see("bandwidth, ");
    term.press("q");
    term.left_whole(0);
    place.nothing_runs();
    let recorded = store::read(&place.session()).unwrap();
    // (2 local + 2 peer) x 2 sizes x 6 repeats
    let samples = recorded.records.iter().map(|record| match &record.event {
        toposcope::session::Event::ProbeDone { samples, .. } => samples.iter().filter(|sample| !sample.warmup).count(),
        _ => 0,
    });
    assert_eq!(samples.sum::<usize>(), 48);
    assert!(first_colour(&term.bytes()).is_some(), "the test of NO_COLOR would see no colours either");
    let told = term.text();
    assert!(told.contains("48 samples on 2 ranks"), "{told}");
}

#[test]
fn leaving_a_running_sweep_asks_first() {
    let place = Place::new();
    let mut term = start(&place, &LONG, &[]);
    started_sweep(&mut term);
    term.see("● ");
    // Ctrl-C is a key like q.
    term.press("\x03");
    term.see("A sweep is running");
    term.press("n");
    term.until("the question gone", |screen| !screen.contents().contains("A sweep is running"));
    term.press("q");
    term.see("A sweep is running");
    term.press("y");
    term.left_whole(0);
    place.nothing_runs();
}

#[test]
fn a_small_terminal_gets_a_plain_message_and_a_large_one_its_screen_back() {
    let place = Place::new();
    let mut term = start(&place, &SMALL, &[]);
    term.see("start this sweep");
    term.resize((20, 5));
    term.see("this is 20 × 5");
    term.until("no more than that", |screen| !screen.contents().contains("Sweep"));
    term.resize((100, 30));
    term.see("start this sweep");
    term.press("q");
    term.left_whole(0);
}

#[test]
fn sigterm_leaves_the_terminal_whole() {
    let place = Place::new();
    let mut term = start(&place, &LONG, &[]);
    started_sweep(&mut term);
    term.see("● ");
    kill(drawing(&place), Signal::TERM);
    term.left_whole(128 + 15);
    // The guard has its say when the process is gone, so after the shell.
    term.see("to go on:");
    let told = term.text();
    assert!(told.contains("rank 0 was told to end (SIGTERM)"), "{told}");
    place.nothing_runs();
}

#[test]
fn kill_9_leaves_the_terminal_whole_and_tells_how_to_go_on() {
    let place = Place::new();
    let mut term = start(&place, &LONG, &[]);
    started_sweep(&mut term);
    term.see("● ");
    let pid = drawing(&place);
    kill(pid, Signal::KILL);
    term.left_whole(128 + 9);
    term.see("to go on:");
    place.nothing_runs();
    let told = term.text().replace('\n', "");
    assert!(told.contains(&format!("the process of ranks 0-1 ({pid} on ")) && told.contains("--resume"), "{told}");
}

#[test]
fn a_recorded_session_opens_and_names_in_it_do_no_harm() {
    let place = Place::new();
    let mut header = made::header();
    for rank in &mut header.topology.ranks {
        rank.host = format!("{}\u{1b}]0;owned\u{7}\u{1b}[31mz", rank.host);
    }
    header.name = "lab\u{1b}[2J".to_owned();
    let mut session = Store::create(&place.session(), &header).unwrap();
    for record in made::records() {
        session.append(&record).unwrap();
    }
    drop(session);
    let session = place.session().display().to_string();
    let mut term = Term::start(&place, (120, 40), &[TOPOSCOPE, "open", &session], &[]);
    term.entered();
    term.see("▸3 Matrix");
    term.see("0.20");
    term.press("2");
    term.see("alpha]0");
    let bytes = term.bytes();
    let sent = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    assert!(!sent(b"\x1b]") && !sent(b"\x07"), "a host's name wrote to the terminal");
    term.press("q");
    term.left_whole(0);
    place.nothing_runs();
}

#[test]
fn no_color_sends_no_colours() {
    let place = Place::new();
    let mut term = start(&place, &SMALL, &[("NO_COLOR", "1")]);
    started_sweep(&mut term);
    term.see("✓ complete");
    for (tab, seen) in [("3", "▸3 Matrix"), ("8", "▸8 Session"), ("?", "everywhere")] {
        term.press(tab);
        term.see(seen);
    }
    term.press("\x1b");
    term.until("the help gone", |screen| !screen.contents().contains("everywhere"));
    term.press("q");
    term.left_whole(0);
    assert_eq!(first_colour(&term.bytes()), None);
}

/// More than is read at once, and nothing behind it that would wake who reads.
#[test]
fn all_that_was_sent_at_once_is_taken() {
    let place = Place::new();
    let mut term = start(&place, &SMALL, &[]);
    drawing(&place);
    term.see("▸2 Sweep");
    term.press(&("3".repeat(3000) + "8"));
    term.see("▸8 Session");
    term.press("q");
    term.left_whole(0);
}

/// Slow links of a published box, told of a simulated one.
#[test]
fn what_is_slow_is_told_its_pairs_are_marked_and_a_key_runs_the_test_that_decides() {
    let place = Place::new();
    let fabric = ["--engine", "sim", "--fabric", "b70-8", "--sizes", "4KiB,1MiB,64MiB", "--repeats", "6"];
    let mut term = start(&place, &fabric, &[]);
    started_sweep(&mut term);
    term.see("✓ complete");
    term.press("6");
    term.see("likely causes");
    term.see("0→2 7.70 GB/s");
    term.press("m");
    term.see("▲ finding 1");
    term.press("6");
    // Not every test can be run without a device: the first that can. The last line is drawn last: when its word goes with the
    // next key, the rest is of that key, too.
    let runs = (0..12).any(|_| {
        term.press("c");
        term.see("--against OTHER");
        term.press("j");
        term.until("the next finding", |screen| !screen.contents().contains("--against OTHER"));
        term.text().contains("run it")
    });
    assert!(runs, "{}", term.text());
    term.press("t");
    term.see("what tests told");
    term.press("q");
    term.left_whole(0);
    place.nothing_runs();
    let recorded = store::read(&place.session()).unwrap();
    let done = |record: &toposcope::session::Record| matches!(record.event, toposcope::session::Event::TestDone { .. });
    assert!(recorded.records.iter().any(done), "the test is in the session");
    // And what changed since: nothing, of the same session.
    let session = place.session().display().to_string();
    let mut term = Term::start(&place, (120, 40), &[TOPOSCOPE, "open", &session, "--against", &session], &[]);
    term.entered();
    term.see("no change beyond noise");
    term.press("q");
    term.left_whole(0);
}

#[test]
fn without_a_terminal_nothing_is_drawn_and_the_way_out_is_told() {
    let place = Place::new();
    let ran = place.run(&mut place.toposcope(&["--ranks", "2"]), term::SOON);
    ran.ended_with(2);
    assert!(ran.stderr.contains("no terminal") && ran.stderr.contains("toposcope sweep"), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert!(!place.session().exists() && fs::read_dir(place.folder()).is_ok());
}

/// Larger than what is read before the screen is there.
fn large(place: &Place, damage: bool) {
    fs::create_dir(place.session()).unwrap();
    let mut store = Store::create(&place.session(), &made::header()).unwrap();
    let line = "x".repeat(4096);
    for number in 0..10_000 {
        let event = toposcope::session::Event::Log { rank: 0, line: format!("{number} {line}") };
        store.append(&toposcope::session::Record { t: f64::from(number), event }).unwrap();
    }
    if damage {
        let path = store.events_path();
        let mut text = fs::read(&path).unwrap();
        let at = text.len() - 1000;
        text[at..at + 10].copy_from_slice(b"\"\"\"\"\"\"\"\"\"\"");
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_large_session_is_read_beside_the_screen() {
    let place = Place::new();
    large(&place, false);
    let session = place.session().display().to_string();
    let mut term = Term::start(&place, (120, 40), &[TOPOSCOPE, "open", &session], &[]);
    term.entered();
    term.press("8");
    term.see("10000 of 10000 events");
    assert!(String::from_utf8_lossy(&term.bytes()).contains(" of events: "), "it was not said that it is read");
    term.press("q");
    term.left_whole(0);
}

#[test]
fn a_large_session_that_cannot_be_read_ends_the_screen_and_tells_where() {
    let place = Place::new();
    large(&place, true);
    let session = place.session().display().to_string();
    let mut term = Term::start(&place, (120, 40), &[TOPOSCOPE, "open", &session], &[]);
    term.left_whole(2);
    assert!(term.text().contains("events.ndjson:10000:"), "{}", term.text());
}
