//! A terminal that reads what is drawn on it: a pseudo-terminal with the program behind a shell, as a person has it.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::OFlags;
use rustix::termios::tcgetattr;
use vt100::{MouseProtocolMode, Parser, Screen};

use crate::place::{Place, until};

/// Long enough for a job of a few ranks on two busy cores.
pub const SOON: Duration = Duration::from_secs(40);

/// What the shell does: the program, then its exit code, then it waits for a line, the terminal still its own.
const SHELL: &str = r#""$@"; printf 'left with %s.\n' $?; read -r line"#;

pub struct Term {
    seen: Arc<Mutex<Seen>>,
    keys: Box<dyn std::io::Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    tty: PathBuf,
    before: String,
}

struct Seen {
    parser: Parser,
    bytes: Vec<u8>,
}

fn pty_size((columns, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn count(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

impl Term {
    /// Start a command on a terminal of `size` (columns, rows), with `variables` besides those of the place.
    pub fn start(place: &Place, size: (u16, u16), command: &[&str], variables: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let tty = pair.master.tty_name().unwrap();
        let before = settings(&tty);
        let mut shell = CommandBuilder::new("/bin/sh");
        shell.args(["-c", SHELL, "sh"]);
        shell.args(command);
        // What it writes goes with the place.
        shell.cwd(place.folder());
        for name in ["NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "TOPOSCOPE_SCREEN"] {
            shell.env_remove(name);
        }
        for (name, value) in place.environment() {
            shell.env(name, value);
        }
        for (name, value) in variables {
            shell.env(name, value);
        }
        let child = pair.slave.spawn_command(shell).unwrap();
        let parser = Parser::new(count(size.1), count(size.0), 200);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let into = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 16 << 10];
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
                seen.parser.process(&bytes[..length]);
                seen.bytes.extend_from_slice(&bytes[..length]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self { seen, keys, master: pair.master, child, tty, before }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands on the screen.
    pub fn text(&self) -> String {
        self.seen().parser.screen().contents()
    }

    /// Every byte that was sent so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen().bytes.clone()
    }

    /// How many those are.
    pub fn sent(&self) -> usize {
        self.seen().bytes.len()
    }

    fn told(&self) -> String {
        let mut told = String::new();
        let seen = self.seen();
        let screen = seen.parser.screen();
        let (alternate, mouse, paste) = (screen.alternate_screen(), screen.mouse_protocol_mode(), screen.bracketed_paste());
        let _ = writeln!(told, "alternate {alternate}, mouse {mouse:?}, paste {paste}, hidden cursor {}", screen.hide_cursor());
        let _ = writeln!(told, "{}", screen.contents());
        drop(seen);
        if settings(&self.tty) != self.before {
            let _ = writeln!(told, "settings of the terminal: {}\nbefore: {}", settings(&self.tty), self.before);
        }
        told
    }

    /// Wait until the screen is as told.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Screen) -> bool) {
        until(SOON, what, || self.told(), || condition(self.seen().parser.screen()));
    }

    /// Wait for a text.
    #[track_caller]
    pub fn see(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// The program's screen is there, and takes the mouse.
    #[track_caller]
    pub fn entered(&self) {
        self.until("the screen", |screen| screen.alternate_screen() && screen.contents().contains("toposcope"));
        self.until("the mouse", |screen| screen.mouse_protocol_mode() != MouseProtocolMode::None && screen.bracketed_paste());
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Another size (columns, rows).
    pub fn resize(&self, size: (u16, u16)) {
        self.seen().parser.set_size(count(size.1), count(size.0));
        self.master.resize(pty_size(size)).unwrap();
    }

    /// Wait until the program has left; its exit code. The shell may say so before the guard has left the screen, and what
    /// it writes there goes with the screen: so this looks at what was sent.
    #[track_caller]
    pub fn code(&self) -> u8 {
        let code = || {
            let bytes = self.bytes();
            let text = String::from_utf8_lossy(&bytes);
            text.split_once("left with ")?.1.split_once('.')?.0.parse().ok()
        };
        until(SOON, "the program's end", || self.told(), || code().is_some());
        code().unwrap()
    }

    /// Everything on the terminal is as before, the settings included, and the program left with `code`.
    #[track_caller]
    pub fn left_whole(&mut self, code: u8) {
        assert_eq!(self.code(), code, "{}", self.told());
        self.until("the terminal as it was", |screen| {
            !screen.alternate_screen()
                && screen.mouse_protocol_mode() == MouseProtocolMode::None
                && !screen.bracketed_paste()
                && !screen.hide_cursor()
                && settings(&self.tty) == self.before
        });
        // The shell reads lines again, so that the person can type.
        self.press("\n");
        let Self { child, .. } = self;
        until(SOON, "the shell's end", String::new, || child.try_wait().unwrap().is_some());
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// The terminal's settings, all of them, as text.
fn settings(tty: &PathBuf) -> String {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let file: File = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(tty).unwrap();
    format!("{:?}", tcgetattr(&file).unwrap())
}

/// The first sequence that sets a colour, if there is one.
pub fn first_colour(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    text.split("\x1b[").skip(1).find_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':'))?;
        let colours = |word: &str| matches!(word.parse::<u16>(), Ok(30..=38 | 40..=48 | 58 | 90..=97 | 100..=107));
        (rest[end..].starts_with('m') && rest[..end].split([';', ':']).any(colours)).then(|| rest[..=end].to_owned())
    })
}
