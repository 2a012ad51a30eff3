use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcsetattr};
use signal_hook::consts::SIGWINCH;
use signal_hook::iterator::Signals;

use super::Plan;
use super::local::{Kept, pass_signals_on, start};
use crate::launch::LaunchError;
use crate::launch::keys::size_report;
use crate::launch::terminal::{LEAVE, Terminal, put, raw_of, restore_settings};

/// What the terminal may take for one piece of output.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long streams are waited for after the launcher ended: a stray process may hold them.
const FAREWELL: Duration = Duration::from_secs(2);
/// How much of what the launcher and the ranks said is kept to be told at the end, bytes.
const KEPT: usize = 64 << 10;

/// Rank 0 draws from another host: its drawing comes by the launcher's standard output, keys and sizes go by its
/// standard input.
pub(super) fn run(plan: &Plan) -> Result<ExitStatus, LaunchError> {
    let Kept { terminal: Some((terminal, saved)) } = Kept::new() else {
        let why = "toposcope run was started without one, and rank 0 is on another host".to_owned();
        return Err(LaunchError::NoTerminal { why });
    };
    let mut child = start(plan, |command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    })?;
    pass_signals_on(&child)?;
    let (Some(keys), Some(drawing), Some(words)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(LaunchError::System { what: "talk to the launcher".to_owned(), source: io::ErrorKind::BrokenPipe.into() });
    };
    let relay = Relay(Arc::new(Shared { terminal, saved, keys: Mutex::new(keys), drawing: Mutex::new(false), changed: Condvar::new() }));
    relay.report_size();
    let at = || LaunchError::at("relay the screen");
    let mut signals = Signals::new([SIGWINCH]).map_err(at())?;
    spawn("sizes", &relay, move |relay| signals.forever().for_each(|_| relay.report_size())).map_err(at())?;
    spawn("keys", &relay, |relay| relay.keys()).map_err(at())?;
    let drawn = spawn("drawing", &relay, move |relay| relay.draw(drawing)).map_err(at())?;
    let kept = spawn("words", &relay, move |_| keep(words)).map_err(at())?;
    let status = child.wait().map_err(LaunchError::at("wait for the launcher"));
    let _ = drawn.recv_timeout(FAREWELL);
    relay.leave();
    let words = kept.recv_timeout(FAREWELL).unwrap_or_default();
    let _ = io::stderr().write_all(&words);
    status
}

fn spawn<T: Send + 'static>(name: &str, relay: &Relay, work: impl FnOnce(Relay) -> T + Send + 'static) -> io::Result<Receiver<T>> {
    let (done, result) = mpsc::channel();
    let relay = relay.clone();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Nobody may wait for it any more.
        let _ = done.send(work(relay));
    })?;
    Ok(result)
}

#[derive(Clone)]
struct Relay(Arc<Shared>);

struct Shared {
    terminal: Terminal,
    saved: Termios,
    keys: Mutex<ChildStdin>,
    /// rank 0 is on the alternate screen: the terminal is raw and keys go to it
    drawing: Mutex<bool>,
    changed: Condvar,
}

impl Relay {
    fn report_size(&self) {
        let (columns, rows) = self.0.terminal.size();
        self.send(&size_report(columns, rows));
    }

    fn send(&self, bytes: &[u8]) {
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // A launcher that is gone reads no keys; its end is noticed elsewhere.
        let _ = keys.write_all(bytes);
    }

    /// Keys, while rank 0 draws. Before that the terminal is the launcher's own, for passwords and Ctrl-C.
    fn keys(&self) {
        let file: &File = &self.0.terminal.file;
        let limit = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut bytes = [0; 4096];
        loop {
            let mut drawing = self.0.drawing.lock().unwrap_or_else(PoisonError::into_inner);
            while !*drawing {
                drawing = self.0.changed.wait(drawing).unwrap_or_else(PoisonError::into_inner);
            }
            drop(drawing);
            if poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&limit)) == Ok(0) {
                continue;
            }
            match (&mut &*file).read(&mut bytes) {
                Ok(0) => return,
                Ok(length) => self.send(&bytes[..length]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return,
            }
        }
    }

    /// Pass drawing on; the terminal is raw exactly while rank 0 is on the alternate screen.
    fn draw(&self, mut from: impl Read) {
        let mut switch = Switch::default();
        let mut bytes = [0; 16 << 10];
        loop {
            let length = match from.read(&mut bytes) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let was = switch.on;
            switch.see(&bytes[..length]);
            if switch.on && !was {
                self.set_drawing(true);
            }
            // A terminal that is gone sends SIGHUP.
            let _ = put(&self.0.terminal.file, &bytes[..length], PATIENCE);
            if was && !switch.on {
                self.set_drawing(false);
            }
        }
    }

    fn set_drawing(&self, on: bool) {
        let (file, saved) = (&self.0.terminal.file, &self.0.saved);
        let _ =
            if on { tcsetattr(file, OptionalActions::Now, &raw_of(saved)).map_err(io::Error::from) } else { restore_settings(file, saved) };
        *self.0.drawing.lock().unwrap_or_else(PoisonError::into_inner) = on;
        self.0.changed.notify_all();
    }

    /// What rank 0 did not do any more.
    fn leave(&self) {
        let drawing = *self.0.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        if drawing {
            let _ = put(&self.0.terminal.file, LEAVE, FAREWELL);
            self.set_drawing(false);
        }
    }
}

/// Follows the switches to the alternate screen and back, wherever the stream is cut.
#[derive(Debug, Default)]
struct Switch {
    on: bool,
    /// how much of the sequence was seen
    seen: usize,
}

impl Switch {
    const SEQUENCE: &'static [u8] = b"\x1b[?1049";

    fn see(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match Self::SEQUENCE.get(self.seen) {
                Some(&next) if byte == next => self.seen += 1,
                None if byte == b'h' || byte == b'l' => {
                    self.on = byte == b'h';
                    self.seen = 0;
                }
                _ => self.seen = usize::from(byte == Self::SEQUENCE[0]),
            }
        }
    }
}

/// Everything that comes, but only the end of it is kept.
fn keep(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        kept.extend_from_slice(&bytes[..length]);
        if kept.len() > 2 * KEPT {
            kept.drain(..kept.len() - KEPT);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::terminal::ENTER;

    #[test]
    fn switches_are_seen_wherever_they_are_cut() {
        let mut stream = b"hello \x1b[31m\x1b\x1b[?104\x1b".to_vec();
        stream.extend_from_slice(ENTER);
        let entered = stream.len();
        stream.extend_from_slice(b"\x1b[?1049x");
        stream.extend_from_slice(LEAVE);
        for cut in 0..=stream.len() {
            let mut switch = Switch::default();
            switch.see(&stream[..cut.min(entered)]);
            switch.see(&stream[cut.min(entered)..entered]);
            assert!(switch.on, "cut at {cut}");
            switch.see(&stream[entered..cut.max(entered)]);
            switch.see(&stream[cut.max(entered)..]);
            assert!(!switch.on, "cut at {cut}");
        }
    }

    #[test]
    fn the_end_of_many_words_is_kept() {
        let text = [vec![b'x'; 10 * KEPT], b"the end".to_vec()].concat();
        let kept = keep(text.as_slice());
        assert!(kept.len() <= 2 * KEPT && kept.ends_with(b"xthe end"));
    }
}
