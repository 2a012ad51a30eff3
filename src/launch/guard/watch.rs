use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::termios::{Termios, tcgetattr};

use super::presence::Door;
use super::see_out::{self, see_out};
use super::tell::{Case, Gone, tell};
use super::{READY, STATUS_ROOM, Status, Word};
use crate::launch::terminal::{LEAVE, block_stop_signals, put, restore_settings, still_raw};
use crate::launch::{Member, chatter, process};
use crate::units::plain;

/// How long the guard waits, after rank 0 went silent, for the kernel to tell who ended.
const AFTERMATH: Duration = Duration::from_secs(2);
/// The same after rank 0 was told to end by somebody else, in which case its own end explains nothing.
const SHORT_AFTERMATH: Duration = Duration::from_millis(100);
/// How long it waits for the launcher to end.
const LAUNCHER_PATIENCE: Duration = Duration::from_secs(5);
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
    close_inherited();
    let own = |fd: rustix::io::Result<OwnedFd>| fd.map_err(io::Error::from);
    let opened = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)).and_then(|words| {
        let status = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3))?;
        let out = own(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3))?;
        Ok((UnixStream::from(words), File::from(status), File::from(out)))
    });
    let Ok((words, status, out)) = opened else { return 2 };
    i32::from(watch(words, &status, &out).is_err())
}

/// Close what launchers leave open in their ranks (Hydra: the connection to its proxy): they wait for its end.
fn close_inherited() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|&number| number > 2) {
        // The one that listed them is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// A process that is watched.
struct Watched {
    who: Gone,
    pid: u32,
    handle: OwnedFd,
}

struct Watch<'a> {
    out: &'a File,
    /// settings of the terminal before rank 0 changed them
    saved: Option<Termios>,
    entered: bool,
    /// reports in the order in which things happened, even if the guard is late
    queue: OwnedFd,
    /// rank 0's socket once more, for its end alone: with unread words in it the socket itself stands in the queue since these came
    end: UnixStream,
    watched: Vec<Watched>,
    /// ranks of this host, rank 0 first
    members: Vec<Member>,
    door: Option<Door>,
    /// the launcher that was typed
    top: Option<Gone>,
    /// the message waits for the end of that
    after_launcher: bool,
    case: Case,
}

/// What the queue calls rank 0's socket; processes are called by their place in `watched`.
const WORDS: u64 = u64::MAX;
/// What the queue calls the door.
const DOOR: u64 = u64::MAX - 1;
/// What the queue calls the end of rank 0's socket.
const END: u64 = u64::MAX - 2;

/// Watch until rank 0 lets go or ends; in the latter case put the terminal back and tell.
pub(super) fn watch(mut words: UnixStream, status: &File, out: &File) -> io::Result<()> {
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&queue, &words, epoll::EventData::new_u64(WORDS), epoll::EventFlags::IN)?;
    let end = words.try_clone()?;
    epoll::add(&queue, &end, epoll::EventData::new_u64(END), epoll::EventFlags::HUP)?;
    let mut watch = Watch {
        out,
        saved: None,
        entered: false,
        queue,
        end,
        watched: Vec::new(),
        members: Vec::new(),
        door: None,
        top: None,
        after_launcher: false,
        case: Case::default(),
    };
    let mut pending = Vec::new();
    words.set_nonblocking(true)?;
    loop {
        let (spoke, ended) = watch.wait(None)?;
        let over = spoke && read_some(&mut words, &mut pending)?;
        while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Word::Dismiss) => return Ok(()),
                Ok(Word::SeeOut) => return watch.see_launcher_out(),
                Ok(word) => {
                    if watch.take(word) {
                        words.write_all(READY)?;
                    }
                }
                // Rank 0 is of the same build; a half line can only be its end.
                Err(_) => {}
            }
        }
        // After its last words: a rank that they tell of may have ended before rank 0 did.
        watch.note(ended);
        if over {
            break;
        }
    }
    watch.put_back();
    epoll::delete(&watch.queue, &words)?;
    if watch.case.first.is_empty() {
        // The socket closes a moment before the process counts as ended; and a launcher's children are told of its end a
        // moment before others can see it.
        let limit = if watch.case.signal.is_none() { AFTERMATH } else { SHORT_AFTERMATH };
        let end = Instant::now() + limit;
        // A rank that comes in at the last moment is not who is waited for.
        while watch.case.first.is_empty() && Instant::now() < end {
            let (_, ended) = watch.wait(Some(end.saturating_duration_since(Instant::now())))?;
            watch.note(ended);
        }
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
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Reset: rank 0 ended with something unread. Or words without end: no rank 0 of ours.
            Ok(_) | Err(_) => return Ok(true),
        }
    }
}

impl Watch<'_> {
    /// Take a word in; true if it is answered.
    fn take(&mut self, word: Word) -> bool {
        match word {
            Word::Begin { terminal, after_launcher, launchers, rank0 } => {
                self.after_launcher = after_launcher;
                self.saved = terminal.then(|| tcgetattr(self.out).ok()).flatten();
                let rank0 = Member { rank: 0, host: process::host_name(), pid: rank0 };
                self.members.push(rank0.clone());
                self.watch(Gone::Rank(rank0.clone()), rank0.pid);
                self.door = launchers.last().and_then(|(pid, _)| Door::open(*pid));
                if let Some(door) = &self.door {
                    let _ = epoll::add(&self.queue, &door.listener, epoll::EventData::new_u64(DOOR), epoll::EventFlags::IN);
                }
                for (pid, name) in launchers {
                    let launcher = Gone::Launcher(name, pid);
                    self.top = Some(launcher.clone());
                    self.watch(launcher, pid);
                }
                return true;
            }
            Word::Ranks(members) => self.watch_ranks(members),
            Word::Screen(entered) => self.entered = entered,
            Word::Signal(name) => {
                // Who ends from now on was told to, as rank 0 was: Open MPI kills within milliseconds.
                for watched in self.watched.iter().filter(|watched| matches!(watched.who, Gone::Rank(_))) {
                    let _ = epoll::delete(&self.queue, &watched.handle);
                }
                self.case.signal = Some(name);
            }
            Word::Dismiss | Word::SeeOut => {}
        }
        false
    }

    fn watch(&mut self, who: Gone, pid: u32) {
        let handle = Pid::from_raw(pid.cast_signed()).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let data = epoll::EventData::new_u64(self.watched.len() as u64);
        match handle {
            Some(handle) if epoll::add(&self.queue, &handle, data, epoll::EventFlags::IN).is_ok() => {
                self.watched.push(Watched { who, pid, handle });
            }
            // It died since it told its process id.
            _ if process::Stat::of(pid).is_none() && self.case.first.is_empty() => self.case.first.push(who),
            _ => {}
        }
    }

    fn watch_ranks(&mut self, members: Vec<Member>) {
        let host = process::host_name();
        let (here, elsewhere): (Vec<Member>, Vec<Member>) = members.into_iter().partition(|member| member.host == host);
        self.case.elsewhere = elsewhere.into_iter().map(|member| member.host).collect();
        self.case.elsewhere.sort();
        self.case.elsewhere.dedup();
        // Rank 0 is watched since the beginning; ranks that are threads of its process end with it.
        let rank0 = here.iter().find(|member| member.rank == 0).map(|member| member.pid);
        self.case.threads = here.iter().filter(|member| Some(member.pid) == rank0).count();
        for member in here.into_iter().filter(|member| Some(member.pid) != rank0) {
            let pid = member.pid;
            self.members.push(member.clone());
            self.watch(Gone::Rank(member), pid);
        }
    }

    /// A rank came in: its connection closes when it ends, a moment before its process counts as ended.
    fn admit(&mut self) {
        while let Some((pid, stream)) = self.door.as_ref().and_then(Door::admit) {
            let data = epoll::EventData::new_u64(self.watched.len() as u64);
            let handle = OwnedFd::from(stream);
            if epoll::add(&self.queue, &handle, data, epoll::EventFlags::RDHUP).is_ok() {
                // Who it is, rank 0 may tell later.
                let stranger = Member { rank: usize::MAX, host: process::host_name(), pid };
                self.watched.push(Watched { who: Gone::Rank(stranger), pid, handle });
            }
        }
    }

    /// Who a watched process is, if rank 0 has told.
    fn known(&self, watched: &Watched) -> Option<Gone> {
        match &watched.who {
            Gone::Rank(member) if member.rank == usize::MAX => {
                self.members.iter().find(|known| known.pid == watched.pid).cloned().map(Gone::Rank)
            }
            who => Some(who.clone()),
        }
    }

    /// Wait for rank 0 to speak (or to end), or for a watched process to end: whether rank 0 did, and who ended, in order.
    fn wait(&mut self, limit: Option<Duration>) -> io::Result<(bool, Vec<Gone>)> {
        let limit = limit.map(|limit| Timespec::try_from(limit).unwrap_or_default());
        let mut events = Vec::with_capacity(self.watched.len() + 1);
        match epoll::wait(&self.queue, spare_capacity(&mut events), limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (mut spoke, mut ended) = (false, Vec::new());
        for event in events {
            let data = { event.data }.u64();
            if data == WORDS {
                spoke = true;
            } else if data == END {
                epoll::delete(&self.queue, &self.end)?;
                // In its place among the others'; unless it has said goodbye.
                let over = self.case.signal.is_none();
                ended.extend(self.members.first().filter(|_| over).cloned().map(Gone::Rank));
            } else if data == DOOR {
                self.admit();
            } else if let Some(watched) = self.watched.get(data as usize) {
                epoll::delete(&self.queue, &watched.handle)?;
                ended.extend(self.known(watched).filter(|gone| !ended.contains(gone)));
            }
        }
        Ok((spoke, ended))
    }

    /// Only the first matter: what ends later, ends because of them.
    fn note(&mut self, ended: Vec<Gone>) {
        if self.case.first.is_empty() {
            self.case.first = self.first_of(ended);
            // Its end explains nothing if it was told to.
            self.case.first.retain(|gone| self.case.signal.is_none() || !is_rank0(gone));
        }
    }

    /// Who of those that were seen to end together, in order, was the cause.
    fn first_of(&self, ended: Vec<Gone>) -> Vec<Gone> {
        let (Some(top), Some(first)) = (&self.top, ended.first()) else { return ended.into_iter().take(1).collect() };
        if first == top {
            return vec![top.clone()];
        }
        if ended.contains(top) {
            // The guard was late: a launcher's connections close before its end shows, and its helpers are quick.
            return ended.iter().filter(|gone| matches!(gone, Gone::Rank(_)) || *gone == top).cloned().collect();
        }
        let dying = matches!(top, Gone::Launcher(_, pid) if is_dying(*pid));
        vec![if dying { top.clone() } else { first.clone() }]
    }

    /// The job is told of, but ranks are lost: the launcher may never notice.
    fn see_launcher_out(&self) -> io::Result<()> {
        let top = self.watched.iter().find(|watched| Some(&watched.who) == self.top.as_ref());
        let Some(Watched { who: Gone::Launcher(name, pid), handle, .. }) = top else { return Ok(()) };
        see_out(name, handle, see_out::PATIENCE, || {
            let text = format!("toposcope: the launcher ({}, process {pid}) waits for what was lost; it is ended now\n", plain(name));
            let text = if self.saved.is_some() { text.replace('\n', "\r\n") } else { text };
            write_or_leave(self.out, text)
        })
    }

    fn wait_for_launcher(&self) {
        let top = self.watched.iter().find(|watched| Some(&watched.who) == self.top.as_ref());
        if let (Some(top), Ok(limit)) = (top, Timespec::try_from(LAUNCHER_PATIENCE)) {
            // Late is better than never.
            let _ = poll(&mut [PollFd::new(&top.handle, PollFlags::IN)], Some(&limit));
        }
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
        for watched in &self.watched {
            // The job is over: what its ranks print from now on interests nobody.
            chatter::remove(watched.pid);
        }
        // On a terminal whose settings are a shell's again, a bare line feed would make stairs.
        let text = if self.saved.is_some() { tell(&self.case).replace('\n', "\r\n") } else { tell(&self.case) };
        if self.after_launcher {
            self.wait_for_launcher();
        }
        write_or_leave(self.out, text)
    }
}

fn is_rank0(gone: &Gone) -> bool {
    matches!(gone, Gone::Rank(member) if member.rank == 0)
}

/// A process gives its memory up, command line included, before its connections, and those before it counts as ended.
fn is_dying(pid: u32) -> bool {
    !fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
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
