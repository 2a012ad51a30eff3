//! The process that outlives the job: it puts the terminal back and says what happened when rank 0 cannot.
//!
//! Rank 0 starts it before `MPI_Init` ([`Guard::start`]); it leads a session of its own, so that a launcher that kills
//! the job does not reach it. Its descriptors are: 0 a socket to rank 0 (words come by it, and the end of rank 0 is its
//! end), 1 a piece of memory that rank 0 overwrites with the newest [`Status`] (no process wakes up for it, so nothing is
//! disturbed between probes), 2 the terminal, or the error stream of whoever started the job. It always ends by itself:
//! when rank 0 lets it go, or after it has said its piece.

mod presence;
mod see_out;
mod tell;
mod watch;

pub use presence::Presence;
pub use watch::serve;

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde::{Deserialize, Serialize};

use super::terminal::{Link, Terminal};
use super::{LaunchError, Member, job, process};

/// Name of the hidden subcommand that is the guard: `toposcope guard` calls [`serve`].
pub const SUBCOMMAND: &str = "guard";

/// Room for a status, bytes.
const STATUS_ROOM: usize = 4096;
/// Longest time for anything between rank 0 and its guard.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time until a guard that was started answers: on a node where all ranks begin at once, a program may be long in loading.
const START: Duration = Duration::from_secs(30);

/// What rank 0 was doing, for the message. Overwritten between probes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// only a screen: the job, if one runs, is another process's
    #[serde(default)]
    pub watching: bool,
    /// folder of the session, if there is one
    pub session: Option<PathBuf>,
    /// completed samples that are in it
    pub samples: u64,
    /// the probe in flight, in words: `peer 0 → 2, 64 MiB`
    pub probe: Option<String>,
    /// command that goes on from here
    pub resume: Option<String>,
}

/// A word of rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Begin {
        /// descriptor 2 is a terminal to put back
        terminal: bool,
        /// nobody else may write to descriptor 2 as long as the launcher runs
        after_launcher: bool,
        /// processes between rank 0 and who typed the command, nearest first
        launchers: Vec<(u32, String)>,
        rank0: u32,
    },
    Ranks(Vec<Member>),
    /// the screen was entered, or left
    Screen(bool),
    /// rank 0 was told to end
    Signal(String),
    Dismiss,
    /// all is told, but ranks are lost: see that the launcher ends
    SeeOut,
}

/// Rank 0's end. Clones speak to the same guard.
#[derive(Debug, Clone)]
pub struct Guard(Arc<Post>);

#[derive(Debug)]
struct Post {
    words: Mutex<UnixStream>,
    status: File,
    child: Mutex<Option<Child>>,
}

impl Guard {
    /// Start the guard and wait until it has saved the terminal's settings. Without a terminal it speaks on the error
    /// stream of the launcher, if that can be opened, else on `stderr` (where this process's went before redirection).
    pub fn start(terminal: Option<&Terminal>, stderr: &File) -> Result<Self, LaunchError> {
        let program = env::current_exe().map_err(|error| LaunchError::Guard { why: error.to_string() })?;
        Self::start_program(&program, terminal, stderr)
    }

    /// The same with another program than this one; its subcommand `guard` must be [`serve`].
    pub fn start_program(program: &Path, terminal: Option<&Terminal>, stderr: &File) -> Result<Self, LaunchError> {
        let failed = |error: io::Error| LaunchError::Guard { why: error.to_string() };
        let terminal = terminal.filter(|terminal| terminal.link != Link::Forwarded);
        let (out, after_launcher) = match (terminal, launcher_stderr()) {
            (Some(terminal), _) => (terminal.file.try_clone(), false),
            (None, Some((file, after_launcher))) => (Ok(file), after_launcher),
            (None, None) => (stderr.try_clone(), false),
        };
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).current_dir("/");
        Self::spawn(command, terminal.is_some(), after_launcher, out.map_err(failed)?).map_err(failed)
    }

    fn spawn(mut command: Command, terminal: bool, after_launcher: bool, out: File) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let status = File::from(memfd_create("toposcope-status", MemfdFlags::CLOEXEC)?);
        command.stdin(OwnedFd::from(theirs)).stdout(status.try_clone()?).stderr(out);
        let child = command.spawn()?;
        // The command holds copies of the guard's descriptors.
        drop(command);
        let guard = Self::over(ours, status, Some(child))?;
        guard.begin(terminal, after_launcher)?;
        Ok(guard)
    }

    /// Its process id, until it is dismissed.
    pub fn process(&self) -> Option<u32> {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Child::id)
    }

    fn over(words: UnixStream, status: File, child: Option<Child>) -> io::Result<Self> {
        words.set_read_timeout(Some(PATIENCE))?;
        words.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(Arc::new(Post { words: Mutex::new(words), status, child: Mutex::new(child) })))
    }

    fn begin(&self, terminal: bool, after_launcher: bool) -> io::Result<()> {
        let launchers = launchers().into_iter().map(|stat| (stat.pid, stat.name)).collect();
        self.word(&Word::Begin { terminal, after_launcher, launchers, rank0: std::process::id() })?;
        let mut answer = [0; READY.len()];
        let mut words = self.0.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.set_read_timeout(Some(START))?;
        words.read_exact(&mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, format!("it gave no answer within {} s", START.as_secs()))
            }
            _ => error,
        })?;
        words.set_read_timeout(Some(PATIENCE))?;
        if answer == *READY { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn word(&self, word: &Word) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        self.0.words.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }

    /// Who the ranks are: those of this host are watched from here on.
    pub fn ranks(&self, ranks: &[Member]) {
        // A guard that died is not worth ending a job for, here and below.
        let _ = self.word(&Word::Ranks(ranks.to_vec()));
    }

    /// Note what goes on; one copy into shared memory, for between probes. What does not fit in 4 KiB is left out.
    pub fn status(&self, status: &Status) {
        let Ok(mut bytes) = serde_json::to_vec(status) else { return };
        if bytes.len() > STATUS_ROOM {
            let short = Status { session: None, resume: None, probe: None, ..status.clone() };
            bytes = serde_json::to_vec(&short).unwrap_or_default();
        }
        bytes.resize(STATUS_ROOM, b' ');
        let _ = self.0.status.write_all_at(&bytes, 0);
    }

    /// The screen is about to be entered, or was left.
    pub fn screen(&self, entered: bool) {
        let _ = self.word(&Word::Screen(entered));
    }

    /// This rank was told to end by a signal, and will without [`Self::dismiss`]: the guard says why.
    pub fn signal(&self, name: &str) {
        let _ = self.word(&Word::Signal(name.to_owned()));
    }

    /// All is told, but ranks are lost, and a launcher waits for their hosts for ever: end it if it does not end by itself.
    ///
    /// Open MPI's mpirun does not come back when a host is out of reach (4.1.4, a cable pulled).
    pub fn see_out(&self) {
        let _ = self.word(&Word::SeeOut);
    }

    /// All is well: the guard leaves without a word. Returns once it is gone.
    pub fn dismiss(&self) {
        let _ = self.word(&Word::Dismiss);
        let Some(mut child) = self.0.child.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let end = Instant::now() + PATIENCE;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = child.kill();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

const READY: &[u8] = b"ready\n";

/// The processes of the launcher on this host; none for a process that somebody started by itself.
fn launchers() -> Vec<process::Stat> {
    if job::detect().is_some() { process::launchers() } else { Vec::new() }
}

/// The error stream of the launcher itself, and whether it must be gone before anybody else writes there. (The pipe that
/// it gave us is not read any more once it ends the job.)
fn launcher_stderr() -> Option<(File, bool)> {
    let pid = launchers().last()?.pid;
    // The same open file, with the launcher's position in it; some systems allow that only to root.
    let handle = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
    if let Ok(shared) = pidfd_getfd(&handle, 2, PidfdGetfdFlags::empty()) {
        return Some((File::from(shared), false));
    }
    let flags = OFlags::NOCTTY.bits().cast_signed();
    let file = OpenOptions::new().append(true).custom_flags(flags).open(format!("/proc/{pid}/fd/2")).ok()?;
    // In a plain file the launcher would write over what others append.
    let plain = file.metadata().is_ok_and(|about| about.is_file());
    Some((file, plain))
}

/// The command by which the job was started, as far as this host can tell: the launcher's command line, or our own.
pub fn command_line() -> Option<String> {
    launchers().pop().or_else(process::Stat::own)?.command_line()
}

#[cfg(test)]
mod tests;
