use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::termios::{Termios, tcgetattr};

use super::tell::{Case, Gone, tell};
use super::{READY, STATUS_ROOM, Status, Word};
use crate::launch::terminal::{LEAVE, block_stop_signals, put, restore_settings, still_raw};
use crate::launch::{Member, chatter, process};

/// How long the guard waits, after rank 0 went silent, for the kernel to tell who ended.
const AFTERMATH: Duration = Duration::from_secs(2);
/// The same after rank 0 was told to end by somebody else, in which case its own end explains nothing.
const SHORT_AFTERMATH: Duration = Duration::from_millis(100);
/// How long it tries to put its message on a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest list of words that are not whole yet, bytes.
const LONGEST: usize = 64 << 20;
/// Lines of the last words of a rank that died.
const LAST_WORDS: usize = 3;

/// The guard, as the hidden subcommand: give its exit code.
pub fn serve() -> i32 {
    // Own session: the launcher kills process groups. It fails only for a group leader, which a child is not.
    let _ = rustix::process::setsid();
    let _ = block_stop_signals();
    let own = |fd: rustix::io::Result<OwnedFd>| fd.map_err(io::Error::from);
    let opened = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)).and_then(|words| {
        let status = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3))?;
        let out = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3))?;
        Ok((UnixStream::from(words), File::from(status), File::from(out)))
    });
    let Ok((words, status, out)) = opened else { return 2 };
    i32::from(watch(words, &status, &out).is_err())
}

/// A process that is watched.
struct Watched {
    who: Gone,
    handle: OwnedFd,
    ended: bool,
}

impl Watched {
    fn new(who: Gone, pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(pid.cast_signed())?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { who, handle, ended: false })
    }
}

struct Watch<'a> {
    out: &'a File,
    /// settings of the terminal before rank 0 changed them
    saved: Option<Termios>,
    entered: bool,
    launchers: Vec<Watched>,
    ranks: Vec<Watched>,
    case: Case,
}

/// Watch until rank 0 lets go or ends; in the latter case put the terminal back and tell.
pub(super) fn watch(mut words: UnixStream, status: &File, out: &File) -> io::Result<()> {
    let mut watch = Watch { out, saved: None, entered: false, launchers: Vec::new(), ranks: Vec::new(), case: Case::default() };
    let mut pending = Vec::new();
    words.set_nonblocking(true)?;
    loop {
        let speaks = watch.wait(Some(&words), None)?;
        if !speaks {
            continue;
        }
        let over = read_some(&mut words, &mut pending)?;
        while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Word::Dismiss) => return Ok(()),
                Ok(word) => {
                    if watch.take(word) {
                        words.write_all(READY)?;
                    }
                }
                // Rank 0 is of the same build; a half line can only be its end.
                Err(_) => {}
            }
        }
        if over {
            break;
        }
    }
    watch.put_back();
    if watch.case.first.is_empty() {
        // The socket closes a moment before the process counts as ended; and a launcher's children are told of its end a
        // moment before others can see it.
        let limit = if watch.case.signal.is_none() { AFTERMATH } else { SHORT_AFTERMATH };
        watch.wait(None, Some(limit))?;
    }
    // A helper ends with its launcher, and may be seen to first.
    if watch.case.first.len() > 1 || matches!(watch.case.first.as_slice(), [Gone::Launcher(..)]) {
        watch.settle()?;
    }
    watch.tell(status)
}

/// True at the end of the stream.
fn read_some(words: &mut UnixStream, pending: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 16 << 10];
    loop {
        match io::Read::read(words, &mut bytes) {
            Ok(0) => return Ok(true),
            Ok(length) if pending.len() < LONGEST => pending.extend_from_slice(&bytes[..length]),
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Reset: rank 0 ended with something unread.
            Err(_) => return Ok(true),
        }
    }
}

impl Watch<'_> {
    /// Take a word in; true if it is answered.
    fn take(&mut self, word: Word) -> bool {
        match word {
            Word::Begin { terminal, launchers, rank0 } => {
                self.saved = terminal.then(|| tcgetattr(self.out).ok()).flatten();
                let watched = |(pid, name): (u32, String)| Watched::new(Gone::Launcher(name, pid), pid);
                self.launchers = launchers.into_iter().filter_map(watched).collect();
                self.watch_ranks(&[Member { rank: 0, host: process::host_name(), pid: rank0 }]);
                return true;
            }
            Word::Ranks(members) => self.watch_ranks(&members),
            Word::Screen(entered) => self.entered = entered,
            Word::Signal(name) => {
                let is_rank0 = |gone: &Gone| matches!(gone, Gone::Rank(member) if member.rank == 0);
                // Who ends from now on was told to, as rank 0 was: Open MPI kills within milliseconds.
                self.ranks.iter_mut().for_each(|watched| watched.ended = true);
                self.case.first.retain(|gone| !is_rank0(gone));
                self.case.signal = Some(name);
            }
            Word::Dismiss => {}
        }
        false
    }

    fn watch_ranks(&mut self, members: &[Member]) {
        let host = process::host_name();
        let here = members.iter().filter(|member| member.host == host);
        self.ranks = here.clone().filter_map(|member| Watched::new(Gone::Rank(member.clone()), member.pid)).collect();
        // One that died since it told its process id.
        let early = here.filter(|member| process::Stat::of(member.pid).is_none_or(|stat| !stat.alive()));
        let early: Vec<Gone> = early.cloned().map(Gone::Rank).collect();
        if self.case.first.is_empty() {
            self.case.first = early;
        }
        let mut elsewhere: Vec<String> = members.iter().filter(|member| member.host != host).map(|member| member.host.clone()).collect();
        elsewhere.dedup();
        self.case.elsewhere = elsewhere;
    }

    /// Wait for rank 0 to speak (or to end), or for a watched process to end; notes who ended first. True if rank 0 did.
    fn wait(&mut self, words: Option<&UnixStream>, limit: Option<Duration>) -> io::Result<bool> {
        let watched: Vec<&mut Watched> = self.launchers.iter_mut().chain(&mut self.ranks).filter(|watched| !watched.ended).collect();
        let mut polled: Vec<PollFd<'_>> = watched.iter().map(|watched| PollFd::new(&watched.handle, PollFlags::IN)).collect();
        polled.extend(words.map(|words| PollFd::from_borrowed_fd(words.as_fd(), PollFlags::IN)));
        let limit = limit.map(|limit| Timespec::try_from(limit).unwrap_or_default());
        match poll(&mut polled, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        drop(polled);
        let mut ended = Vec::new();
        for (watched, _) in watched.into_iter().zip(&ready).filter(|(_, ready)| **ready) {
            watched.ended = true;
            ended.push(watched.who.clone());
        }
        // Only the first matter: what ends later, ends because of them.
        if self.case.first.is_empty() {
            self.case.first = ended;
        }
        Ok(words.is_some() && ready.last() == Some(&true))
    }

    /// A launcher's connections close before its end shows, and its helpers are faster: see whether it ended too.
    fn settle(&mut self) -> io::Result<()> {
        let Some(top) = self.launchers.last_mut() else { return Ok(()) };
        let limit = Timespec::try_from(SHORT_AFTERMATH).unwrap_or_default();
        if !top.ended && poll(&mut [PollFd::new(&top.handle, PollFlags::IN)], Some(&limit))? > 0 {
            top.ended = true;
        }
        if top.ended {
            // What it is made of needs no mention then.
            let top = top.who.clone();
            if !self.case.first.contains(&top) {
                self.case.first.push(top.clone());
            }
            self.case.first.retain(|gone| matches!(gone, Gone::Rank(_)) || *gone == top);
        }
        Ok(())
    }

    fn put_back(&self) {
        let Some(saved) = &self.saved else { return };
        let raw = still_raw(self.out, saved);
        // Rank 0 says so before it enters and after it has left; between the two the settings tell.
        if self.entered || raw {
            let _ = put(self.out, LEAVE, PATIENCE);
        }
        if raw {
            let _ = restore_settings(self.out, saved);
        }
    }

    fn tell(&mut self, status: &File) -> io::Result<()> {
        let mut bytes = vec![0; STATUS_ROOM];
        let length = status.read_at(&mut bytes, 0).unwrap_or(0);
        self.case.status = serde_json::from_slice::<Status>(&bytes[..length]).unwrap_or_default();
        let died: Vec<Member> =
            self.case.first.iter().filter_map(|gone| if let Gone::Rank(member) = gone { Some(member.clone()) } else { None }).collect();
        let most = if died.len() == 1 { LAST_WORDS } else { 1 };
        self.case.last_words = died.iter().take(4).map(|member| (member.rank, chatter::last_words(member.pid, most))).collect();
        for watched in &self.ranks {
            if let Gone::Rank(member) = &watched.who {
                // The job is over: what its ranks print from now on interests nobody.
                chatter::remove(member.pid);
            }
        }
        // On a terminal whose settings are a shell's again, a bare line feed would make stairs.
        let text = if self.saved.is_some() { tell(&self.case).replace('\n', "\r\n") } else { tell(&self.case) };
        write_or_leave(self.out, text)
    }
}

/// A pipe of a launcher that was stopped would hold us for ever, and the guard must end.
fn write_or_leave(out: &File, text: String) -> io::Result<()> {
    let out = out.try_clone()?;
    let (done, written) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = done.send(put(&out, text.as_bytes(), PATIENCE));
    })?;
    written.recv_timeout(2 * PATIENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
