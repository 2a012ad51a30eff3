//! Keys for rank 0 under a launcher: a pseudo-terminal between the forwarded standard input and whoever reads keys.
//!
//! crossterm reads descriptor 0 only if it is a terminal, and the launcher gives rank 0 a pipe. So the slave of a
//! pseudo-terminal takes the place of descriptor 0 and a thread pumps the pipe's bytes into its master.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::LaunchError;
use super::terminal::{Handle, Link, Told};

/// First and last byte of a size report. Neither occurs in UTF-8 or in what terminals send, so that none is mistaken
/// for a key and no key waits for the next byte.
const REPORT: (u8, u8) = (0xff, 0xfe);
/// Longest report: `65535;65535`.
const LONGEST_REPORT: usize = 11;

/// What `toposcope run` sends among the keys when the terminal has another size.
pub fn size_report(columns: u16, rows: u16) -> Vec<u8> {
    let mut report = vec![REPORT.0];
    report.extend_from_slice(format!("{rows};{columns}").as_bytes());
    report.push(REPORT.1);
    report
}

/// Takes size reports out of a stream of keys.
#[derive(Debug, Default)]
struct Sieve {
    report: Option<Vec<u8>>,
}

impl Sieve {
    /// The bytes that are keys; sizes go to `told`.
    fn pass(&mut self, bytes: &[u8], told: &Told, keys: &mut Vec<u8>) {
        for &byte in bytes {
            match (&mut self.report, byte) {
                (_, byte) if byte == REPORT.0 => self.report = Some(Vec::new()),
                (Some(report), byte) if byte == REPORT.1 => {
                    let text = String::from_utf8_lossy(report);
                    let both = text.split_once(';').and_then(|(rows, columns)| Some((columns.parse().ok()?, rows.parse().ok()?)));
                    if let Some((columns, rows)) = both.filter(|&(columns, rows)| columns > 0 && rows > 0) {
                        told.set(columns, rows);
                    }
                    self.report = None;
                }
                (Some(report), byte) if report.len() < LONGEST_REPORT => report.push(byte),
                // Too long for a report: its end was lost.
                (Some(_), _) => self.report = None,
                (None, byte) => keys.push(byte),
            }
        }
    }
}

/// A pseudo-terminal in raw mode: master and slave.
pub(crate) fn raw_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut settings = tcgetattr(&slave)?;
    settings.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    Ok((master, slave))
}

/// Pump `input` into a pseudo-terminal and give its slave. At the end of `input`, `ended` is called once; the slave
/// then stays silent (it never reports an end, which readers of terminals take for an endless stream of nothing).
pub fn between(input: File, told: Option<Told>, ended: impl FnOnce() + Send + 'static) -> io::Result<OwnedFd> {
    let (master, slave) = raw_pair()?;
    thread::Builder::new().name("keys in".to_owned()).spawn(move || {
        let mut master = File::from(master);
        pump(input, &mut master, told.as_ref());
        ended();
        // The master must stay open as long as the program runs.
        loop {
            thread::park();
        }
    })?;
    Ok(slave)
}

fn pump(mut input: File, master: &mut File, told: Option<&Told>) {
    let mut sieve = Sieve::default();
    let (mut bytes, mut keys) = ([0; 4096], Vec::new());
    loop {
        let length = match input.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // EIO of a terminal in whose background we are, and anything else: no more keys.
            Err(_) => return,
        };
        let sent = if let Some(told) = told {
            keys.clear();
            sieve.pass(&bytes[..length], told, &mut keys);
            master.write_all(&keys)
        } else {
            master.write_all(&bytes[..length])
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Put the pseudo-terminal in the place of descriptor 0 if the screen's keys come by standard input.
///
/// At the end of standard input Ctrl-C becomes a signal for the launcher again, so that nobody is locked out.
pub fn prepare(screen: &Handle) -> Result<(), LaunchError> {
    if screen.link() == Link::Own {
        return Ok(());
    }
    let what = "put a pseudo-terminal before standard input";
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(LaunchError::at(what))?;
    let told = (screen.link() == Link::Forwarded).then(|| screen.told());
    let slave = between(File::from(input), told, {
        let screen = screen.clone();
        move || screen.allow_interrupt()
    });
    rustix::stdio::dup2_stdin(slave.map_err(LaunchError::at(what))?.as_fd()).map_err(LaunchError::at(what))
}

/// How often the size is asked for: no SIGWINCH comes to a rank.
#[cfg(feature = "tui")]
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// Read keys, mouse, paste and changes of size in a thread and send them; after [`prepare`]. The thread ends when
/// nobody listens any more or the terminal is gone; then the channel closes.
#[cfg(feature = "tui")]
pub fn events(screen: Handle, into: std::sync::mpsc::Sender<crossterm::event::Event>) -> Result<(), LaunchError> {
    use crossterm::event::Event;
    let read_all = move || {
        let mut size = screen.size();
        loop {
            let event = match crossterm::event::poll(TICK) {
                Ok(true) => crossterm::event::read().ok(),
                Ok(false) => None,
                Err(_) => return,
            };
            // crossterm asks /dev/tty for the size, which may be none or another one.
            let event = event.filter(|event| !matches!(event, Event::Resize(..)));
            if event.is_some_and(|event| into.send(event).is_err()) {
                return;
            }
            let now = screen.size();
            if now != size {
                size = now;
                if into.send(Event::Resize(now.0, now.1)).is_err() {
                    return;
                }
            }
        }
    };
    let spawned = thread::Builder::new().name("keys".to_owned()).spawn(read_all);
    spawned.map(drop).map_err(LaunchError::at("start the thread that reads keys"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn sizes_are_taken_out_wherever_they_are_cut() {
        let mut stream = b"ab\x1b".to_vec();
        stream.extend(size_report(200, 56));
        stream.extend("[Aé".as_bytes());
        for cut in 0..=stream.len() {
            let (mut sieve, told, mut keys) = (Sieve::default(), Told::default(), Vec::new());
            sieve.pass(&stream[..cut], &told, &mut keys);
            sieve.pass(&stream[cut..], &told, &mut keys);
            assert_eq!(keys, "ab\x1b[Aé".as_bytes(), "cut at {cut}");
            assert_eq!(told.get(), (200, 56));
        }
    }

    #[test]
    fn a_lone_escape_does_not_wait() {
        let (mut sieve, told, mut keys) = (Sieve::default(), Told::default(), Vec::new());
        sieve.pass(b"\x1b", &told, &mut keys);
        assert_eq!(keys, b"\x1b");
    }

    #[test]
    fn a_report_without_end_swallows_little() {
        let (mut sieve, told, mut keys) = (Sieve::default(), Told::default(), Vec::new());
        sieve.pass(b"\xff123456789012345q", &told, &mut keys);
        assert_eq!(keys, b"345q");
        assert_eq!(told.get(), (80, 24));
    }

    #[test]
    fn bytes_come_one_by_one_and_the_end_is_told_once() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (told, end) = mpsc::channel();
        let slave = between(File::from(OwnedFd::from(reader)), None, move || told.send(()).unwrap()).unwrap();
        let mut slave = File::from(slave);
        let mut byte = [0; 1];
        // Ctrl-C, Enter and Escape are bytes like any other.
        for key in [b'q', 3, b'\r', 0x1b] {
            writer.write_all(&[key]).unwrap();
            slave.read_exact(&mut byte).unwrap();
            assert_eq!(byte[0], key);
        }
        drop(writer);
        end.recv().unwrap();
        assert!(end.recv().is_err());
        // The slave is open and silent.
        let poll = rustix::event::poll(
            &mut [rustix::event::PollFd::new(&slave, rustix::event::PollFlags::IN)],
            Some(&rustix::event::Timespec::default()),
        );
        assert_eq!(poll, Ok(0));
    }
}
