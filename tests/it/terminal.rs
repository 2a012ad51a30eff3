//! The terminal is put back, whatever happens: on a pseudo-terminal, read as a screen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use portable_pty::{MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, getsid, kill_process};
use rustix::termios::tcgetattr;
use toposcope::launch::guard::{Guard, Status};
use toposcope::launch::process::Stat;
use toposcope::launch::terminal::{self, Link, Screen, Terminal, Told};
use toposcope::launch::{Member, signals};

/// Longer than any machine needs; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(20);
/// Names the pseudo-terminal of a test to the process that it starts.
const VARIABLE: &str = "TOPOSCOPE_TEST_TERMINAL";

/// A pseudo-terminal and the screen that a person would see on it.
struct Scene {
    master: Box<dyn MasterPty + Send>,
    output: Receiver<Vec<u8>>,
    path: PathBuf,
    slave: File,
    seen: vt100::Parser,
    before: String,
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn settings(file: &File) -> String {
    format!("{:?}", tcgetattr(file).unwrap())
}

fn terminal_at(path: &Path) -> Terminal {
    Terminal { file: open(path), link: Link::Own, path: Some(path.to_owned()), how: "test".to_owned(), told: Told::default() }
}

fn read_in_a_thread(mut output: Box<dyn Read + Send>) -> Receiver<Vec<u8>> {
    let (into, from) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut bytes) {
            if into.send(bytes[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    from
}

impl Scene {
    fn new() -> Self {
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 100, pixel_width: 0, pixel_height: 0 }).unwrap();
        let path = pair.master.tty_name().unwrap();
        let (slave, output) = (open(&path), read_in_a_thread(pair.master.try_clone_reader().unwrap()));
        let before = settings(&slave);
        let seen = vt100::Parser::new(NonZero::new(24).unwrap(), NonZero::new(100).unwrap(), 0);
        Self { output, path, before, slave, seen, master: pair.master }
    }

    /// Read on until the screen is as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let end = Instant::now() + LONG;
        while !wanted(self.seen.screen()) {
            let Ok(bytes) = self.output.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                panic!("no {what} on\n{}", self.seen.screen().contents())
            };
            self.seen.process(&bytes);
        }
    }

    /// Everything is as it was found.
    fn check_restored(&mut self) {
        self.until("main screen", |screen| !screen.alternate_screen());
        let screen = self.seen.screen();
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(!screen.bracketed_paste() && !screen.hide_cursor());
        let end = Instant::now() + LONG;
        // The settings follow the screen.
        while settings(&self.slave) != self.before {
            assert!(Instant::now() < end, "settings are {}\ninstead of {}", settings(&self.slave), self.before);
            std::thread::yield_now();
        }
    }

    /// Start this test binary with one of the tests below that only play a part.
    fn play(&self, part: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", part, "--ignored", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// In a process that plays a part: take the terminal over and say so.
fn take_over(guard: Option<Guard>) -> Option<Screen> {
    let path = PathBuf::from(std::env::var_os(VARIABLE)?);
    let screen = terminal_at(&path).enter(guard).unwrap();
    let mut writer = screen.writer();
    writer.write_all(b"\x1b[Hdrawn").unwrap();
    writer.flush().unwrap();
    Some(screen)
}

fn drawn(screen: &vt100::Screen) -> bool {
    screen.alternate_screen() && screen.contents().contains("drawn")
}

#[test]
fn what_entering_does_restoring_undoes_once() {
    let mut scene = Scene::new();
    let mut person = open(&scene.path);
    person.write_all(b"$ toposcope\r\n").unwrap();
    let screen = terminal_at(&scene.path).enter(None).unwrap();
    let mut writer = screen.writer();
    writer.write_all(b"drawn").unwrap();
    writer.flush().unwrap();
    scene.until("drawing", drawn);
    let seen = scene.seen.screen();
    assert_eq!(seen.mouse_protocol_mode(), vt100::MouseProtocolMode::AnyMotion);
    assert!(seen.bracketed_paste() && seen.hide_cursor());
    assert_ne!(settings(&scene.slave), scene.before);

    scene.master.resize(PtySize { rows: 50, cols: 132, pixel_width: 0, pixel_height: 0 }).unwrap();
    assert_eq!(screen.size(), (132, 50));

    screen.restore();
    scene.check_restored();
    assert!(scene.seen.screen().contents().contains("$ toposcope"));
    // Twice, by dropping too, and a late frame: nothing comes of it.
    screen.restore();
    writer.write_all(b"late").unwrap();
    writer.flush().unwrap();
    drop(screen);
    person.write_all(b"end").unwrap();
    scene.until("end", |screen| screen.contents().contains("end"));
    assert_eq!(scene.seen.screen().contents().trim(), "$ toposcope\nend");
}

#[test]
#[ignore = "plays a part in a_panic_restores_and_tells"]
fn part_panics() {
    let Some(screen) = take_over(None) else { return };
    terminal::panic_hook(Some(screen.handle()), None, || "go on with: toposcope --resume /s/lab".to_owned());
    let _ = std::thread::Builder::new().name("drawing".to_owned()).spawn(|| panic!("too bad")).unwrap().join();
    // Not by dropping: the hook alone has to do it.
    std::mem::forget(screen);
}

#[test]
fn a_panic_restores_and_tells() {
    let mut scene = Scene::new();
    let mut child = scene.play("terminal::part_panics");
    scene.until("message", |screen| screen.contents().contains("--resume /s/lab"));
    scene.check_restored();
    let text = scene.seen.screen().contents();
    assert!(text.contains("thread drawing at tests/it/terminal.rs") && text.contains("too bad"), "{text}");
    child.wait().unwrap();
}

#[test]
#[ignore = "plays a part in a_signal_restores_and_ends"]
fn part_is_told_to_end() {
    let Some(screen) = take_over(None) else { return };
    let handle = screen.handle();
    signals::watch(move |caught| {
        handle.restore();
        handle.say(&format!("ended by {}\n", caught.name()));
    })
    .unwrap();
    screen.writer().flush().unwrap();
    screen_is_watched(&screen);
    loop {
        std::thread::park();
    }
}

/// Tell the test that signals may come.
fn screen_is_watched(screen: &Screen) {
    let mut writer = screen.writer();
    writer.write_all(b" watched").unwrap();
    writer.flush().unwrap();
}

#[test]
fn a_signal_restores_and_ends() {
    for (signal, name, code) in [(Signal::TERM, "SIGTERM", 143), (Signal::INT, "SIGINT", 130), (Signal::HUP, "SIGHUP", 129)] {
        let mut scene = Scene::new();
        let mut child = scene.play("terminal::part_is_told_to_end");
        scene.until("drawing", |screen| screen.contents().contains("drawn watched"));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        scene.until("message", |screen| screen.contents().contains(&format!("ended by {name}")));
        scene.check_restored();
    }
}

fn guard_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_toposcope"))
}

#[test]
#[ignore = "plays a part in killed_the_guard_restores_tells_and_goes"]
fn part_is_killed() {
    let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return };
    let terminal = terminal_at(&path);
    let guard = Guard::start_program(guard_program(), Some(&terminal), &open(Path::new("/dev/null"))).unwrap();
    let probe = Some("peer 0 → 1, 64 MiB".to_owned());
    guard.status(&Status {
        watching: false,
        session: Some("/s/lab".into()),
        samples: 12,
        probe,
        resume: Some("toposcope --resume /s/lab".to_owned()),
    });
    let pid = guard.process().unwrap();
    let screen = take_over(Some(guard)).unwrap();
    let mut writer = screen.writer();
    write!(writer, "\r\nguard {pid}.").unwrap();
    writer.flush().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn killed_the_guard_restores_tells_and_goes() {
    let mut scene = Scene::new();
    let mut child = scene.play("terminal::part_is_killed");
    scene.until("guard", |screen| screen.contents().contains('.'));
    let text = scene.seen.screen().contents();
    let guard: u32 = text.split_once("guard ").unwrap().1.trim_end().trim_end_matches('.').parse().unwrap();
    let pid = Pid::from_raw(guard.cast_signed());
    assert_eq!(getsid(pid).unwrap(), pid.unwrap(), "not a session of its own");
    child.kill().unwrap();
    child.wait().unwrap();
    scene.until("message", |screen| screen.contents().contains("to go on:  toposcope --resume /s/lab"));
    scene.check_restored();
    let text = scene.seen.screen().contents();
    assert!(text.contains(&format!("rank 0 (process {} on ", child.id())), "{text}");
    assert!(text.contains("died during peer 0 → 1, 64 MiB") && text.contains("12 completed samples are in /s/lab"), "{text}");
    check_gone(guard);
}

fn check_gone(pid: u32) {
    let end = Instant::now() + LONG;
    while Stat::of(pid).is_some_and(|stat| stat.alive()) {
        assert!(Instant::now() < end, "process {pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn dismissed_the_guard_goes_without_a_word() {
    let mut scene = Scene::new();
    let terminal = terminal_at(&scene.path);
    let guard = Guard::start_program(guard_program(), Some(&terminal), &open(Path::new("/dev/null"))).unwrap();
    let pid = guard.process().unwrap();
    guard.ranks(&[Member { rank: 0, host: "here".to_owned(), pid: std::process::id() }]);
    let screen = terminal.enter(Some(guard.clone())).unwrap();
    drop(screen);
    guard.dismiss();
    // Waited for: not even a zombie.
    assert_eq!(Stat::of(pid), None);
    open(&scene.path).write_all(b"end").unwrap();
    scene.until("end", |screen| screen.contents().contains("end"));
    scene.check_restored();
    assert_eq!(scene.seen.screen().contents().trim(), "end");
}

#[test]
fn without_a_terminal_the_guard_speaks_on_the_error_stream() {
    // A guard that is late learns of everything at once.
    for late in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("stderr");
        let stderr = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let guard = Guard::start_program(guard_program(), None, &stderr).unwrap();
        let pid = guard.process().unwrap();
        let signal = |signal| rustix::process::kill_process(rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        let mut rank = Command::new("sleep").arg("600").spawn().unwrap();
        if late {
            signal(rustix::process::Signal::STOP);
        }
        guard.ranks(&[Member { rank: 1, host: toposcope::launch::process::host_name(), pid: rank.id() }]);
        rank.kill().unwrap();
        rank.wait().unwrap();
        drop(guard);
        signal(rustix::process::Signal::CONT);
        check_gone(pid);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("toposcope: rank 1 (process {} on ", rank.id())), "{text}");
    }
}
