//! Sessions on disk: a folder with `header.json` and `events.ndjson`, append-only, readable after a cut at any byte.

mod line;
pub mod shelf;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{FORMAT, Header, Record};
use crate::units::{plain, plain_json};

/// Longest line that is read; a sample's is a few hundred bytes, a probe of 10,000 repeats a few MB.
const LONGEST_LINE: u64 = 64 << 20;

/// A session that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// the system said no
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// there is a session already
    #[error("{} already holds a session; take it up with --resume, or name another folder", path.display())]
    Exists { path: PathBuf },
    /// another process writes there
    #[error("{} is being written by another process; attach to it with `toposcope attach`", path.display())]
    Busy { path: PathBuf },
    /// not a session
    #[error("{} is no session: it has no header.json (a session is a folder with header.json and events.ndjson); toposcope sessions lists yours", path.display())]
    NoSession { path: PathBuf },
    /// header or event that cannot be read
    #[error("{}:{line}:{column}: {message}", path.display())]
    Bad { path: PathBuf, line: usize, column: usize, message: String },
    /// written by a later program
    #[error("{} has format {found}, this program reads {ours} and older; open it with toposcope {program} or later", path.display())]
    Newer { path: PathBuf, found: String, ours: String, program: String },
}

/// An open session that events are appended to.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    events: File,
    line: Vec<u8>,
    /// bytes of whole records in the file
    whole: u64,
}

/// A session as read back.
#[derive(Debug)]
pub struct Recorded {
    pub header: Header,
    pub records: Vec<Record>,
    pub extent: Extent,
}

/// How much of a session's events there is, bytes of `events.ndjson`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// up to the end of the last whole record
    pub whole: u64,
    /// after that: what a cut left of one record
    pub cut: u64,
}

const HEADER: &str = "header.json";
const EVENTS: &str = "events.ndjson";
/// Hosts with hardware of which the header is indented.
const READABLE: usize = 8;

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

impl Store {
    /// Begin a session in `folder`, which may exist but must not hold one.
    pub fn create(folder: &Path, header: &Header) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(io_at(folder))?;
        let path = folder.join(HEADER);
        let events = folder.join(EVENTS);
        let exists = || StoreError::Exists { path: folder.to_owned() };
        if path.exists() {
            return Err(exists());
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o644).open(&events).map_err(io_at(&events))?;
        let store = Self::locked(folder, file)?;
        // An empty file without a header is what a program killed here left: no session yet.
        if path.exists() || store.events.metadata().map_err(io_at(&events))?.len() > 0 {
            return Err(exists());
        }
        // What many hosts are made of is read by programs: indented it would be thrice as long.
        let write = if header.topology.hardware.len() > READABLE { serde_json::to_vec } else { serde_json::to_vec_pretty };
        let mut text = write(header).map_err(|error| bad(&path, &error))?;
        text.push(b'\n');
        shelf::replace(&path, &text).map_err(io_at(&path))?;
        Ok(store)
    }

    /// Take up a session: what it holds, and a store that goes on after its last whole record.
    pub fn resume(folder: &Path) -> Result<(Self, Recorded), StoreError> {
        read_header(folder)?;
        let path = folder.join(EVENTS);
        let file = OpenOptions::new().append(true).create(true).mode(0o644).open(&path).map_err(io_at(&path))?;
        // Locked before it is read: what another writer appends in between must not be cut off below.
        let mut store = Self::locked(folder, file)?;
        let recorded = read(folder)?;
        // Only the cut record goes; everything whole stays as it is.
        store.events.set_len(recorded.extent.whole).map_err(io_at(&path))?;
        store.whole = recorded.extent.whole;
        Ok((store, recorded))
    }

    fn locked(folder: &Path, events: File) -> Result<Self, StoreError> {
        lock(&events, folder)?;
        Ok(Self { folder: folder.to_owned(), events, line: Vec::new(), whole: 0 })
    }

    /// The session's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of events.
    pub fn events_path(&self) -> PathBuf {
        self.folder.join(EVENTS)
    }

    /// Append one record, in one write, so that a killed program leaves whole records.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let path = self.folder.join(EVENTS);
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).map_err(|error| bad(&path, &error))?;
        self.line.push(b'\n');
        if let Err(source) = self.events.write_all(&self.line) {
            // On a full disk half a line may be there. The next record must not be glued to it: when there is room again,
            // the session goes on with a gap instead of a line that nobody can read.
            let _ = self.events.set_len(self.whole);
            return Err(StoreError::Io { path, source });
        }
        self.whole += self.line.len() as u64;
        Ok(())
    }
}

/// Bytes of a session's events; 0 where there are none.
pub fn size(folder: &Path) -> u64 {
    fs::metadata(folder.join(EVENTS)).map_or(0, |file| file.len())
}

/// Read a session; a record cut in the middle at its end is told, not refused.
pub fn read(folder: &Path) -> Result<Recorded, StoreError> {
    let header = read_header(folder)?;
    let mut records = Vec::new();
    let extent = each(folder, &header, |record, _| records.push(record))?;
    Ok(Recorded { header, records, extent })
}

/// Read a session's events one by one, each with the bytes up to its end.
pub fn each(folder: &Path, header: &Header, mut take: impl FnMut(Record, u64)) -> Result<Extent, StoreError> {
    let path = folder.join(EVENTS);
    let file = match File::open(&path) {
        Ok(file) => file,
        // Cut between the two files: a session in which nothing has happened.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Extent::default()),
        Err(source) => return Err(StoreError::Io { path, source }),
    };
    let newer = minor_of(&header.format).is_some_and(|minor| minor > FORMAT.2);
    let mut reader = BufReader::new(file);
    let mut extent = Extent::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(io_at(&path))? as u64;
        if line.last() != Some(&b'\n') {
            if length == LONGEST_LINE {
                let message = "a line longer than 64 MiB, which no event is".to_owned();
                return Err(StoreError::Bad { path, line: number, column: 0, message });
            }
            // The last line, without its end: what a cut left, or what its writer is just adding.
            extent.cut = length;
            break;
        }
        extent.whole += length;
        match line::record(&line) {
            Ok(record) => take(record, extent.whole),
            Err(_) if newer && is_record(&line) => {}
            Err(error) => {
                let message = format!("not an event of a session: {}", plain(&error.to_string()));
                return Err(StoreError::Bad { path, line: number, column: error.column(), message });
            }
        }
    }
    Ok(extent)
}

/// Keep other writers out. Whoever lists sessions looks for a moment whether there is one, so it is tried for longer than that.
fn lock(events: &File, folder: &Path) -> Result<(), StoreError> {
    for _ in 0..5 {
        if flock(events, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Err(StoreError::Busy { path: folder.to_owned() })
}

/// An event of a newer minor version, with words that this version does not know: passed over, not refused.
fn is_record(line: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|value| value["event"].is_string() && value["t"].is_number())
}

fn minor_of(format: &str) -> Option<u32> {
    format.rsplit_once('.')?.1.parse().ok()
}

/// Read only the header of a session.
pub fn read_header(folder: &Path) -> Result<Header, StoreError> {
    let path = folder.join(HEADER);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(StoreError::NoSession { path: folder.to_owned() });
        }
        Err(source) => return Err(StoreError::Io { path, source }),
    };
    parse_header(&text, &path)
}

/// Parse a header that came from `path` (a file or a socket).
pub fn parse_header(text: &[u8], path: &Path) -> Result<Header, StoreError> {
    read_version(text, path)?;
    let mut value: serde_json::Value = serde_json::from_slice(text).map_err(|error| bad(path, &error))?;
    let mut header: Header = serde_json::from_slice(text).map_err(|error| bad(path, &error))?;
    let ranks = &header.topology.ranks;
    if ranks.is_empty() || ranks.iter().enumerate().any(|(at, placement)| placement.rank != at) {
        let message =
            format!("topology.ranks are {} whose numbers are not 0, 1, 2, ..: expected one entry a rank, in rank order", ranks.len());
        return Err(StoreError::Bad { path: path.to_owned(), line: 1, column: 0, message });
    }
    // Names in files are data: they must not reach a terminal as codes.
    header.name = plain(&header.name);
    header.started = plain(&header.started);
    for placement in &mut header.topology.ranks {
        placement.host = plain(&placement.host);
    }
    if let Some(hardware) = value.pointer_mut("/topology/hardware") {
        plain_json(hardware);
        header.topology.hardware = serde_json::from_value(hardware.take()).map_err(|error| bad(path, &error))?;
    }
    header.software = header.software.into_iter().map(|(key, value)| (plain(&key), plain(&value))).collect();
    header.environment = header.environment.into_iter().map(|(key, value)| (plain(&key), plain(&value))).collect();
    Ok(header)
}

/// Refuse what a later program wrote, before anything else of a header is read: a newer major format need not have our fields.
fn read_version(text: &[u8], path: &Path) -> Result<(), StoreError> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        format: serde_json::Value,
        #[serde(default)]
        program: serde_json::Value,
    }
    let version: Version = serde_json::from_slice(text).map_err(|error| bad(path, &error))?;
    let found = plain(version.format.as_str().unwrap_or("none"));
    let (name, major, minor) = FORMAT;
    let known = found.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).and_then(|rest| {
        let (major, _minor) = rest.split_once('.')?;
        major.parse::<u32>().ok()
    });
    match known {
        Some(theirs) if theirs <= major => Ok(()),
        Some(_) => {
            let program = plain(version.program.as_str().unwrap_or("?"));
            Err(StoreError::Newer { path: path.to_owned(), found, ours: format!("{name}/{major}.{minor}"), program })
        }
        None => {
            let message = format!("format is {found:?}, expected {name}/{major}.{minor}");
            Err(StoreError::Bad { path: path.to_owned(), line: 1, column: 0, message })
        }
    }
}

fn bad(path: &Path, error: &serde_json::Error) -> StoreError {
    StoreError::Bad { path: path.to_owned(), line: error.line(), column: error.column(), message: plain(&error.to_string()) }
}
