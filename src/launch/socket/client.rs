use std::fs;
use std::io::{BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use super::read_line;
use crate::launch::{LaunchError, folder};
use crate::session::store::parse_header;
use crate::session::{Command, Event, Header, Record};
use crate::units::plain;

/// Longest line that is read, bytes; as for a session's file.
const LONGEST_LINE: u64 = 64 << 20;
/// Records that wait for the screen; then the server waits.
const WAITING: usize = 10_000;
/// Longest time for the header.
const PATIENCE: Duration = Duration::from_secs(10);

/// The watching side. Dropping it detaches; the job goes on.
#[derive(Debug)]
pub struct Client {
    pub header: Header,
    /// every event from the session's begin; it closes when the job ends or its host goes
    pub records: Receiver<Record>,
    pub path: PathBuf,
    pub(super) stream: UnixStream,
}

impl Client {
    /// Attach to the named socket, or to the only running job there is.
    pub fn connect(path: Option<&Path>) -> Result<Self, LaunchError> {
        if let Some(path) = path {
            return Self::to(path);
        }
        let mut found = list();
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(LaunchError::NoSocket),
            (Some(path), true) => Self::to(&path),
            (Some(path), false) => {
                found.push(path);
                Err(LaunchError::SeveralSockets { found })
            }
        }
    }

    fn to(path: &Path) -> Result<Self, LaunchError> {
        let at = || LaunchError::at(format!("attach to {}", path.display()));
        let stream = UnixStream::connect(path).map_err(at())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(at())?;
        let mut reader = BufReader::new(stream.try_clone().map_err(at())?);
        let protocol = |why: String| LaunchError::Protocol { path: path.to_owned(), why };
        let line = read_line(&mut reader, LONGEST_LINE).map_err(at())?;
        let line = line.ok_or_else(|| protocol("it closed before telling what it measures".to_owned()))?;
        if let Some(refusal) = refusal(&line) {
            return Err(protocol(refusal));
        }
        let header = parse_header(&line, path).map_err(|error| protocol(error.to_string()))?;
        stream.set_read_timeout(None).map_err(at())?;
        let (into, records) = mpsc::sync_channel(WAITING);
        let spawned = thread::Builder::new().name("attached".to_owned()).spawn(move || receive(reader, &into));
        spawned.map_err(at())?;
        Ok(Self { header, records, path: path.to_owned(), stream })
    }

    /// Ask the job for something. What it cannot read comes back as a notice.
    pub fn send(&self, command: &Command) -> Result<(), LaunchError> {
        let at = || LaunchError::at(format!("send a command to {}", self.path.display()));
        let mut line = serde_json::to_vec(command).map_err(std::io::Error::from).map_err(at())?;
        line.push(b'\n');
        (&self.stream).write_all(&line).map_err(at())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// `{"error": ".."}` instead of what was expected.
fn refusal(line: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value.get("error")?.as_str().map(plain)
}

fn receive(mut reader: BufReader<UnixStream>, into: &SyncSender<Record>) {
    let (mut now, mut told) = (0.0, false);
    // Any error is the end: the job's, or its host's.
    while let Ok(Some(line)) = read_line(&mut reader, LONGEST_LINE) {
        let notice = |t, text: String| Record { t, event: Event::Notice { text } };
        let record = match serde_json::from_slice::<Record>(&line) {
            Ok(record) => {
                now = record.t;
                record
            }
            Err(error) => match refusal(&line) {
                Some(text) => notice(now, text),
                None if told => continue,
                None => {
                    told = true;
                    notice(now, format!("the job tells things that this version cannot read: {}", plain(&error.to_string())))
                }
            },
        };
        if into.send(record).is_err() {
            return;
        }
    }
}

/// Sockets of this user's running jobs on this host, by name.
pub fn list() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folder::candidates().iter().flat_map(|folder| live(folder)).collect();
    found.sort();
    found
}

pub(super) fn live(folder: &Path) -> Vec<PathBuf> {
    sockets(folder).into_iter().filter(|path| UnixStream::connect(path).is_ok()).collect()
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let named = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    entries.flatten().filter(is_socket).map(|entry| entry.path()).filter(named).collect()
}

/// Remove sockets of jobs that are gone: nobody accepts there.
pub(super) fn remove_stale(folder: &Path) {
    for path in sockets(folder) {
        if UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = fs::remove_file(path);
        }
    }
}
