//! The loop with a terminal and a job that are not there.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crossterm::event::{Event as Input, KeyEvent};

use super::fixture::{header, three};
use super::{Drained, Ended, FRAMES, Feed, Keep, Keeper, Mode, Setup, Tty, run};
use crate::measure::Gate;
use crate::ramp::Level;
use crate::sample::MoverKind;
use crate::session::{Command, Record};
use crate::sweep::SweepSettings;

/// What was drawn, how often news were asked for, what was sent, whether inside a probe, what is to be kept, what became of it.
type Noted = (Vec<u8>, usize, Vec<Command>, bool, Vec<Keep>, Option<Result<String, String>>);

/// What the loop has done so far, to be waited for.
#[derive(Default)]
struct Seen {
    state: Mutex<Noted>,
    changed: Condvar,
}

impl Seen {
    fn note(&self, what: impl FnOnce(&mut Noted)) {
        what(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&Noted) -> bool) {
        let mut state = self.state.lock().unwrap();
        while !until(&state) {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn screen(&self) -> String {
        let mut terminal = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
        terminal.process(&self.state.lock().unwrap().0);
        terminal.screen().contents()
    }
}

struct Job {
    seen: Arc<Seen>,
    records: Receiver<Record>,
    ended: Receiver<String>,
    mode: Mode,
    gate: Option<Arc<Gate>>,
}

impl Feed for Job {
    fn drain(&mut self) -> Drained {
        let inside = self.gate.as_ref().is_some_and(|gate| gate.measuring());
        self.seen.note(|state| {
            state.1 += 1;
            state.3 |= inside;
        });
        Drained { records: self.records.try_iter().collect(), ended: self.ended.try_recv().ok(), ..Drained::default() }
    }
    fn send(&mut self, command: Command) {
        self.seen.note(|state| state.2.push(command));
    }
    fn mode(&self) -> Mode {
        self.mode
    }
}

/// Notes what it was asked to keep.
struct Shelf(Arc<Seen>);

impl Keeper for Shelf {
    fn keep(&mut self, what: Keep) {
        self.0.note(|state| state.4.push(what));
    }
    fn told(&mut self) -> Option<Result<String, String>> {
        self.0.state.lock().unwrap().5.take()
    }
}

struct Paper(Arc<Seen>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.note(|state| state.0.extend(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Stage {
    seen: Arc<Seen>,
    input: Sender<Input>,
    records: Sender<Record>,
    ended: Sender<String>,
    running: std::thread::JoinHandle<Result<Ended, super::TuiError>>,
}

fn set(mode: Mode, gate: Option<Arc<Gate>>) -> Stage {
    let seen = Arc::new(Seen::default());
    let ((input, inputs), (records, record_feed), (ended, ended_feed)) = (channel(), channel(), channel());
    let feed = Box::new(Job { seen: seen.clone(), records: record_feed, ended: ended_feed, mode, gate: gate.clone() });
    let setup = Setup {
        feed,
        keeper: Box::new(Shelf(seen.clone())),
        tty: Tty { output: Box::new(Paper(seen.clone())), size: Box::new(|| (80, 24)), input: Arc::new(Mutex::new(inputs)) },
        gate,
        theme: "dark".to_owned(),
        themes: BTreeMap::new(),
        color: Some(Level::TrueColor),
        keys: None,
        settings: SweepSettings::default(),
        efficiency: crate::topology::Efficiency::default(),
        movers: vec![MoverKind::Memcpy],
        against: None,
        start_tab: None,
        mouse: true,
        frames: FRAMES,
        shelf: None,
        changed_themes: None,
    };
    let running = std::thread::spawn(move || run(setup, header("stage", &["a", "a", "b"])));
    Stage { seen, input, records, ended, running }
}

fn key(name: &str) -> Input {
    Input::Key(KeyEvent::from(name.parse::<super::keys::Key>().unwrap()))
}

#[test]
fn keys_reach_the_job_and_leaving_ends_it() {
    let job = set(Mode::Live, None);
    job.seen.wait(|state| !state.0.is_empty());
    assert!(job.seen.screen().contains("nothing measured yet"), "{}", job.seen.screen());
    job.input.send(key("enter")).unwrap();
    job.seen.wait(|state| !state.2.is_empty());
    job.input.send(key("q")).unwrap();
    assert_eq!(job.running.join().unwrap().unwrap(), Ended::Quit);
    let after = job.seen.state.lock().unwrap();
    assert!(matches!(after.2[..], [Command::StartSweep { .. }, Command::Quit]), "{:?}", after.2);
}

/// In every kind of session, and under the help page, too: that is what a person looks at.
#[test]
fn pictures_and_reports_are_handed_out_and_what_became_of_them_is_told() {
    for mode in [Mode::Live, Mode::Attached, Mode::Recorded] {
        let job = set(mode, None);
        three().1.into_iter().for_each(|record| job.records.send(record).unwrap());
        for pressed in ["3", "P", "?", "P", "W"] {
            job.input.send(key(pressed)).unwrap();
        }
        job.seen.wait(|state| state.4.len() == 3);
        job.input.send(key("esc")).unwrap();
        job.seen.note(|state| state.5 = Some(Ok("wrote it in /there".to_owned())));
        job.seen.wait(|state| state.5.is_none());
        let asked = job.seen.state.lock().unwrap().1;
        job.seen.wait(|state| state.1 > asked + 1);
        assert!(job.seen.screen().contains("wrote it in /there"), "{}", job.seen.screen());
        // Leaving a sweep that runs would be asked about.
        drop(job.input);
        job.running.join().unwrap().unwrap();
        let state = job.seen.state.lock().unwrap();
        let [Keep::Picture { session, of, canvas }, Keep::Picture { canvas: help, .. }, Keep::Report { model }] = &state.4[..] else {
            panic!("{:?}", state.4.len())
        };
        assert_eq!((session.as_str(), of.as_str(), canvas.width, canvas.height), ("stage", "matrix", 80, 24));
        let text = |canvas: &crate::export::svg::Canvas| canvas.cells.iter().map(|cell| cell.symbol.as_str()).collect::<String>();
        assert!(text(canvas).contains("Matrix") && !text(canvas).contains("keys · more below"), "{}", text(canvas));
        assert!(text(help).contains("keys · more below"), "{}", text(help));
        assert_eq!(model.world(), 3);
    }
}

#[test]
fn leaving_a_job_that_is_only_watched_does_not_end_it() {
    let job = set(Mode::Attached, None);
    three().1.into_iter().for_each(|record| job.records.send(record).unwrap());
    job.input.send(key("q")).unwrap();
    assert_eq!(job.running.join().unwrap().unwrap(), Ended::Quit);
    assert_eq!(job.seen.state.lock().unwrap().2, []);
}

#[test]
fn the_end_of_the_job_and_of_the_terminal_are_told() {
    let over = set(Mode::Live, None);
    over.ended.send("mpirun ended".to_owned()).unwrap();
    assert_eq!(over.running.join().unwrap().unwrap(), Ended::Feed("mpirun ended".to_owned()));
    let gone = set(Mode::Live, None);
    drop(gone.input);
    assert_eq!(gone.running.join().unwrap().unwrap(), Ended::Hangup);
}

#[test]
fn nothing_new_draws_nothing() {
    let job = set(Mode::Live, None);
    job.seen.wait(|state| !state.0.is_empty());
    let (bytes, asked) = {
        let after = job.seen.state.lock().unwrap();
        (after.0.len(), after.1)
    };
    job.seen.wait(|state| state.1 > asked + 3);
    assert_eq!(job.seen.state.lock().unwrap().0.len(), bytes);
    job.input.send(key("3")).unwrap();
    job.seen.wait(|state| state.0.len() > bytes);
    drop(job.input);
    job.running.join().unwrap().unwrap();
}

#[test]
fn the_loop_works_between_probes_only() {
    let gate = Arc::new(Gate::default());
    gate.close();
    let job = set(Mode::Live, Some(gate.clone()));
    // Ends early if the loop goes on in spite of the gate; well below the screen's patience otherwise.
    let state = job.seen.state.lock().unwrap();
    let (state, _) = job.seen.changed.wait_timeout_while(state, Duration::from_millis(100), |state| state.1 == 0).unwrap();
    assert_eq!(state.1, 0, "the gate is closed");
    drop(state);
    for probe in 0..10 {
        job.input.send(key(if probe % 2 == 0 { "3" } else { "2" })).unwrap();
        gate.open();
        let asked = job.seen.state.lock().unwrap().1;
        job.seen.wait(|state| state.1 > asked);
        gate.close();
    }
    gate.open();
    drop(job.input);
    job.running.join().unwrap().unwrap();
    let after = job.seen.state.lock().unwrap();
    assert!(!after.3, "the feed was drained inside a probe");
    assert!(!after.0.is_empty());
}

#[test]
fn leaving_in_the_middle_of_a_probe_says_so_and_waits_or_not() {
    for again in [false, true] {
        let gate = Arc::new(Gate::default());
        gate.close();
        let job = set(Mode::Live, Some(gate));
        job.input.send(key("q")).unwrap();
        job.seen.wait(|state| state.2 == [Command::Quit]);
        let text = |state: &Noted| String::from_utf8_lossy(&state.0).contains("probe ends");
        job.seen.wait(text);
        if again {
            job.input.send(key("q")).unwrap();
        } else {
            job.ended.send("the job has ended".to_owned()).unwrap();
        }
        let ended = job.running.join().unwrap().unwrap();
        assert_eq!(ended, if again { Ended::AtOnce } else { Ended::Quit });
        assert_eq!(job.seen.state.lock().unwrap().2, [Command::Quit]);
    }
}
