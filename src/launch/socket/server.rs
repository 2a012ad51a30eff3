use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use super::{Pass, client, read_line};
use crate::launch::{LaunchError, folder};
use crate::session::{Command, Header};
use crate::units::plain;

/// Clients at a time.
const MOST_CLIENTS: usize = 16;
/// Longest command, bytes: one that names a million cells.
const LONGEST_COMMAND: u64 = 64 << 20;
/// How much of the events is read and sent at a time, bytes.
const CHUNK: usize = 64 << 10;
/// How often the file is looked at although nobody said that it grew, and how long one wait for a slow client lasts.
const TICK: Duration = Duration::from_secs(1);
/// How long the end of the job waits for clients to get the last events.
const FAREWELL: Duration = Duration::from_secs(1);
/// Room for a socket's path, bytes (unix(7): 108 with the final zero).
const LONGEST_PATH: usize = 107;

/// The serving side, in rank 0. Dropping it sends what is left, closes every client and removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    header: Vec<u8>,
    events: PathBuf,
    pass: Pass,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("events", &self.events).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// counts appends; whoever saw another number looks at the file
    appended: u64,
    stopping: bool,
    clients: usize,
}

impl Server {
    /// Serve the session whose events are appended to `events`. `name` names the socket; commands of clients go to
    /// `commands`; everything that costs time is done through `pass`.
    pub fn start(name: &str, header: &Header, events: &Path, commands: Sender<Command>, pass: Pass) -> Result<Self, LaunchError> {
        Self::start_in(&folder::private()?, name, header, events, commands, pass)
    }

    pub(super) fn start_in(
        folder: &Path,
        name: &str,
        header: &Header,
        events: &Path,
        commands: Sender<Command>,
        pass: Pass,
    ) -> Result<Self, LaunchError> {
        client::remove_stale(folder);
        let (path, listener) = bind(folder, name)?;
        let at = || LaunchError::at(format!("serve {}", path.display()));
        // The folder is private already; this is for those who look only at the socket.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(at())?;
        let mut header = serde_json::to_vec(header).map_err(io::Error::from).map_err(at())?;
        header.push(b'\n');
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { header, events: events.to_owned(), pass, state, changed });
        let accepting = Arc::clone(&shared);
        let spawned = thread::Builder::new().name("socket".to_owned()).spawn(move || accept(&listener, &accepting, &commands));
        spawned.map_err(at())?;
        Ok(Self { path, shared })
    }

    /// Where clients connect.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Events were appended: tell those who follow.
    pub fn notify(&self) {
        self.shared.lock().appended += 1;
        self.shared.changed.notify_all();
    }

    /// How many are attached.
    pub fn clients(&self) -> usize {
        self.shared.lock().clients
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let mut state = self.shared.lock();
        state.stopping = true;
        self.shared.changed.notify_all();
        let end = Instant::now() + FAREWELL;
        while state.clients > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Three values, whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket named after the session, or after it and a number if another job has the name.
fn bind(folder: &Path, name: &str) -> Result<(PathBuf, UnixListener), LaunchError> {
    let clean: String = plain(name).chars().map(|c| if c == '/' || c.is_whitespace() { '-' } else { c }).collect();
    for number in 1..100 {
        let end = if number == 1 { ".sock".to_owned() } else { format!("-{number}.sock") };
        let room = LONGEST_PATH.saturating_sub(folder.as_os_str().as_bytes().len() + 1 + end.len());
        let mut stem = clean.as_str();
        while stem.len() > room {
            stem = &stem[..stem.char_indices().next_back().map_or(0, |(at, _)| at)];
        }
        let path = folder.join(format!("{stem}{end}"));
        match UnixListener::bind(&path) {
            Ok(listener) => return Ok((path, listener)),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(LaunchError::at(format!("make the socket {}", path.display()))(error)),
        }
    }
    Err(LaunchError::at(format!("make a socket for {clean} in {}", folder.display()))(io::Error::from(ErrorKind::AddrInUse)))
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>, commands: &Sender<Command>) {
    let limit = Timespec::try_from(TICK).unwrap_or_default();
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !shared.lock().stopping {
        // A timeout, so that the end of the job is noticed.
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&limit));
        let Ok((stream, _)) = listener.accept() else { continue };
        if shared.lock().clients >= MOST_CLIENTS {
            let _ = send(&stream, b"{\"error\":\"too many are attached; close another one\"}\n", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            continue;
        }
        // A client that cannot be served is one that is gone.
        let _ = serve(stream, shared, commands);
    }
}

/// What the reading and the writing thread of a client share.
#[derive(Debug, Default)]
struct Line {
    answers: VecDeque<Vec<u8>>,
    closed: bool,
}

fn serve(stream: UnixStream, shared: &Arc<Shared>, commands: &Sender<Command>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let reading = stream.try_clone()?;
    let line = Arc::new(Mutex::new(Line::default()));
    let reader = (Arc::clone(shared), Arc::clone(&line), commands.clone());
    let writer = (Arc::clone(shared), line);
    shared.lock().clients += 1;
    let spawned = thread::Builder::new().name("attached, out".to_owned()).spawn(move || {
        let (shared, line) = writer;
        // An error is the client's going.
        let _ = follow(&stream, &shared, &line);
        let _ = stream.shutdown(Shutdown::Both);
        shared.lock().clients -= 1;
        shared.changed.notify_all();
    });
    if let Err(error) = spawned {
        shared.lock().clients -= 1;
        return Err(error);
    }
    thread::Builder::new().name("attached, in".to_owned()).spawn(move || {
        let (shared, line, commands) = reader;
        listen(reading, &shared, &line, &commands);
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        line.closed = true;
        drop(line);
        shared.changed.notify_all();
    })?;
    Ok(())
}

/// Take in commands until the client goes or sends an endless line.
fn listen(stream: UnixStream, shared: &Shared, line: &Mutex<Line>, commands: &Sender<Command>) {
    let mut reader = BufReader::new(stream);
    let answer = |why: &str| {
        let mut text = serde_json::json!({ "error": plain(why) }).to_string().into_bytes();
        text.push(b'\n');
        line.lock().unwrap_or_else(PoisonError::into_inner).answers.push_back(text);
        shared.changed.notify_all();
    };
    loop {
        let bytes = match read_line(&mut reader, LONGEST_COMMAND) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(error) => {
                answer(&error.to_string());
                return;
            }
        };
        let mut parsed = None;
        (shared.pass)(&mut || parsed = Some(serde_json::from_slice::<Command>(&bytes)));
        match parsed {
            Some(Ok(command)) => {
                let taken = commands.send(command);
                if taken.is_err() {
                    answer("the job is ending and takes no more commands");
                }
            }
            Some(Err(error)) => answer(&format!("not a command: {error}")),
            None => {}
        }
    }
}

/// Send header and events, whole lines only, and answers between them.
fn follow(stream: &UnixStream, shared: &Shared, line: &Mutex<Line>) -> io::Result<()> {
    let mut out = Outgoing { pending: shared.header.clone(), sent: 0 };
    let (mut file, mut at) = (None, 0);
    loop {
        let (seen, stopping) = {
            let state = shared.lock();
            (state.appended, state.stopping)
        };
        if out.is_empty() {
            let answer = line.lock().unwrap_or_else(PoisonError::into_inner).answers.pop_front();
            if let Some(answer) = answer {
                out = Outgoing { pending: answer, sent: 0 };
            }
        }
        let mut result = Ok(Sent::All);
        (shared.pass)(&mut || {
            if file.is_none() {
                file = File::open(&shared.events).ok();
            }
            result = match &file {
                Some(file) if out.is_empty() => out.fill(file, &mut at).and_then(|()| out.send(stream)),
                _ => out.send(stream),
            };
        });
        match result? {
            Sent::Some => {}
            Sent::Full => {
                if stopping {
                    // One more moment for a client that is slow, none for one that is stuck.
                    let gone = poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&Timespec::try_from(FAREWELL).unwrap_or_default()))?;
                    if gone == 0 {
                        return Err(ErrorKind::TimedOut.into());
                    }
                } else {
                    poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&Timespec::try_from(TICK).unwrap_or_default()))?;
                }
            }
            Sent::All => {
                let known = line.lock().unwrap_or_else(PoisonError::into_inner);
                let (waiting, closed) = (!known.answers.is_empty(), known.closed);
                drop(known);
                if waiting {
                    continue;
                }
                if stopping || closed {
                    return Ok(());
                }
                let state = shared.lock();
                if state.appended == seen && !state.stopping {
                    drop(shared.changed.wait_timeout(state, TICK));
                }
            }
        }
    }
}

enum Sent {
    /// nothing is left
    All,
    /// there may be more
    Some,
    /// the client takes no more now
    Full,
}

/// Whole lines on their way.
struct Outgoing {
    pending: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.sent == self.pending.len()
    }

    /// Read on in the file up to the end of a line.
    fn fill(&mut self, file: &File, at: &mut u64) -> io::Result<()> {
        self.pending.clear();
        self.sent = 0;
        loop {
            let start = self.pending.len();
            self.pending.resize(start + CHUNK, 0);
            let length = file.read_at(&mut self.pending[start..], *at + start as u64)?;
            self.pending.truncate(start + length);
            if let Some(end) = self.pending.iter().rposition(|&byte| byte == b'\n') {
                self.pending.truncate(end + 1);
                break;
            }
            if length == 0 {
                // A line that is being written.
                self.pending.clear();
                break;
            }
        }
        *at += self.pending.len() as u64;
        Ok(())
    }

    fn send(&mut self, stream: &UnixStream) -> io::Result<Sent> {
        if self.is_empty() {
            return Ok(Sent::All);
        }
        match send(stream, &self.pending[self.sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(length) => {
                self.sent += length;
                Ok(if self.is_empty() { Sent::Some } else { Sent::Full })
            }
            Err(rustix::io::Errno::AGAIN) => Ok(Sent::Full),
            Err(rustix::io::Errno::INTR) => Ok(Sent::Some),
            Err(error) => Err(error.into()),
        }
    }
}
