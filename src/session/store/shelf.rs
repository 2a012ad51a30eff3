//! The sessions of a folder, told without reading their events as events; renamed, noted and deleted.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{EVENTS, HEADER, StoreError, io_at, read_version};
use crate::units::plain;

/// What a person wrote about a session, beside its events.
const NOTE: &str = "note.txt";
/// Files that a session's folder is made of; no other is ever deleted. The header goes last: until then it is a session.
const OWN: [&str; 6] = [EVENTS, "calibration.json", "header.json.new", "note.txt.new", NOTE, HEADER];
/// Longest note, bytes.
pub const LONGEST_NOTE: usize = 2000;
/// Events up to so many bytes are looked through for the number of samples.
const COUNTED: u64 = 64 << 20;

/// Whether a session is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum State {
    /// its job ended in order
    Ended,
    /// its job was cut; `sweep --resume` goes on
    Cut,
    /// a job writes it now
    Written,
    /// it cannot be read, and why
    Broken(String),
}

/// A folder among the sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// of the folder, safe for a terminal
    pub name: String,
    #[serde(serialize_with = "shown")]
    pub folder: PathBuf,
    #[serde(flatten)]
    pub state: State,
    /// RFC 3339, UTC
    pub started: Option<String>,
    pub engine: Option<String>,
    pub ranks: usize,
    pub hosts: usize,
    /// timed repeats; `None` where there are too many events to look through
    pub samples: Option<u64>,
    /// of the events
    pub bytes: u64,
    /// what a person wrote about it; empty for nothing
    pub note: String,
}

/// As text, whatever its bytes are.
fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What cannot be done to a session.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{name:?} is no name for a session: expected 1 to 100 characters without / and control characters, not beginning with . or -")]
    BadName { name: String },
    #[error("{} is there already; choose another name", path.display())]
    Taken { path: PathBuf },
    #[error("{}: {why}; it is left alone: look at it, and remove it yourself if it is not needed", path.display())]
    NotOurs { path: PathBuf, why: String },
    #[error("the note has {length} bytes: expected {LONGEST_NOTE} at most")]
    LongNote { length: usize },
}

#[derive(Deserialize)]
struct Brief {
    started: String,
    engine: String,
    topology: BriefTopology,
}

#[derive(Deserialize)]
struct BriefTopology {
    ranks: Vec<BriefRank>,
}

#[derive(Deserialize)]
struct BriefRank {
    host: String,
}

/// Every folder in `folder`, the newest session first, broken ones last; none where `folder` is not there.
pub fn list(folder: &Path) -> Result<Vec<Entry>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(StoreError::Io { path: folder.to_owned(), source }),
    };
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir() && !hidden(path));
    let mut found: Vec<Entry> = folders.map(|path| look(&path)).collect();
    found.sort_by(|a, b| (a.started.is_none(), &b.started, &a.name).cmp(&(b.started.is_none(), &a.started, &b.name)));
    Ok(found)
}

fn hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'))
}

/// The session that began last, by the headers alone.
pub fn newest(folder: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| !hidden(path));
    folders.filter_map(|path| Some((brief(&path).ok()?.started, path))).max().map(|(_, path)| path)
}

/// What one folder holds.
pub fn look(folder: &Path) -> Entry {
    let name = plain(&folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy());
    let mut entry = Entry {
        name,
        folder: folder.to_owned(),
        state: State::Ended,
        started: None,
        engine: None,
        ranks: 0,
        hosts: 0,
        samples: None,
        bytes: 0,
        note: note(folder),
    };
    match brief(folder) {
        Ok(brief) => {
            let mut hosts: Vec<&str> = brief.topology.ranks.iter().map(|rank| rank.host.as_str()).collect();
            entry.ranks = hosts.len();
            hosts.sort_unstable();
            hosts.dedup();
            entry.hosts = hosts.len();
            (entry.started, entry.engine) = (Some(plain(&brief.started)), Some(plain(&brief.engine)));
        }
        Err(error) => {
            let why = if matches!(error, StoreError::NoSession { .. }) { "it has no header.json".to_owned() } else { error.to_string() };
            entry.state = State::Broken(plain(&why));
            return entry;
        }
    }
    match events(&folder.join(EVENTS)) {
        Ok((state, bytes, samples)) => (entry.state, entry.bytes, entry.samples) = (state, bytes, samples),
        // Cut between its two files.
        Err(error) if error.kind() == ErrorKind::NotFound => (entry.state, entry.samples) = (State::Cut, Some(0)),
        Err(error) => entry.state = State::Broken(plain(&format!("{EVENTS}: {error}"))),
    }
    entry
}

/// The header without what its hosts are made of, which is most of it.
fn brief(folder: &Path) -> Result<Brief, StoreError> {
    let path = folder.join(HEADER);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(StoreError::NoSession { path: folder.to_owned() }),
        Err(source) => return Err(StoreError::Io { path, source }),
    };
    read_version(&text, &path)?;
    let brief: Brief = serde_json::from_slice(&text).map_err(|error| super::bad(&path, &error))?;
    if brief.topology.ranks.is_empty() {
        return Err(StoreError::Bad { path, line: 1, column: 0, message: "topology.ranks is empty: expected one entry a rank".to_owned() });
    }
    Ok(brief)
}

/// How a file of events ends, how long it is, and its samples.
fn events(path: &Path) -> io::Result<(State, u64, Option<u64>)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    // Shared with others who look; a writer that begins at this moment tries again.
    let written = flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK);
    let _ = flock(&file, FlockOperation::Unlock);
    let samples = if bytes <= COUNTED { Some(count(&mut BufReader::with_capacity(1 << 16, &file))?) } else { None };
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(bytes.saturating_sub(4096)))?;
    file.take(4096).read_to_end(&mut tail)?;
    let last = tail.strip_suffix(b"\n").map(|tail| tail.rsplit(|&byte| byte == b'\n').next().unwrap_or(tail));
    let closed = last.is_some_and(|line| contains(line, br#""event":"closed""#));
    let state = match (written, closed) {
        (true, _) => State::Written,
        (false, true) => State::Ended,
        (false, false) => State::Cut,
    };
    Ok((state, bytes, samples))
}

/// Timed repeats in lines of events.
fn count(events: &mut impl BufRead) -> io::Result<u64> {
    let (mut line, mut samples) = (Vec::new(), 0);
    loop {
        line.clear();
        if events.read_until(b'\n', &mut line)? == 0 {
            return Ok(samples);
        }
        if line.last() == Some(&b'\n') && contains(&line[..line.len().min(100)], br#""event":"probe_done""#) {
            let times = |word: &[u8]| memchr::memmem::find_iter(&line, word).count() as u64;
            samples += times(br#""status":""#).saturating_sub(times(br#""warmup":true"#));
        }
    }
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(line, word).is_some()
}

/// What a person wrote about a session; lines are kept, what a terminal would obey is not.
pub fn note(folder: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(folder.join(NOTE)).and_then(|file| file.take(LONGEST_NOTE as u64).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    text.trim().lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// Write a note; an empty one takes it away.
pub fn set_note(folder: &Path, text: &str) -> Result<(), ShelfError> {
    session(folder)?;
    let text = text.trim();
    if text.len() > LONGEST_NOTE {
        return Err(ShelfError::LongNote { length: text.len() });
    }
    let path = folder.join(NOTE);
    let done = match text {
        "" => fs::remove_file(&path).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }),
        text => replace(&path, format!("{text}\n").as_bytes()),
    };
    Ok(done.map_err(io_at(&path))?)
}

/// Give a session another name: its folder's, and the one in its header. Not while a job writes it.
pub fn rename(folder: &Path, name: &str) -> Result<PathBuf, ShelfError> {
    let bad = name.is_empty()
        || name.chars().count() > 100
        || plain(name) != name
        || name.trim() != name
        || name.contains('/')
        || name.starts_with(['.', '-']);
    if bad {
        return Err(ShelfError::BadName { name: plain(name) });
    }
    session(folder)?;
    let _held = hold(folder)?;
    let to = folder.with_file_name(name);
    // The same place under another spelling is there, too.
    if to.symlink_metadata().is_ok() {
        return Err(ShelfError::Taken { path: to });
    }
    let path = folder.join(HEADER);
    let text = fs::read(&path).map_err(io_at(&path))?;
    let mut header: serde_json::Value = serde_json::from_slice(&text).map_err(|error| super::bad(&path, &error))?;
    header["name"] = name.into();
    let mut text = serde_json::to_vec(&header).map_err(|error| super::bad(&path, &error))?;
    text.push(b'\n');
    fs::rename(folder, &to).map_err(io_at(folder))?;
    let path = to.join(HEADER);
    replace(&path, &text).map_err(io_at(&path))?;
    Ok(to)
}

/// Delete a session's own files and its folder; what else lies there stays, and is told. Not while a job writes it, and nothing that is
/// no session.
pub fn delete(folder: &Path) -> Result<Vec<String>, ShelfError> {
    session(folder)?;
    let _held = hold(folder)?;
    for name in OWN {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(StoreError::Io { path, source: error }.into()),
            _ => {}
        }
    }
    let left = fs::read_dir(folder).map_err(io_at(folder))?.flatten();
    let left: Vec<String> = left.map(|entry| plain(&entry.file_name().to_string_lossy())).collect();
    if left.is_empty() {
        fs::remove_dir(folder).map_err(io_at(folder))?;
    }
    Ok(left)
}

/// Refuse what is no session of ours, and links, behind which anything may lie.
fn session(folder: &Path) -> Result<(), ShelfError> {
    // A slash at the end would ask for what lies behind a link.
    let bare: PathBuf = folder.components().collect();
    if bare.symlink_metadata().is_ok_and(|about| about.is_symlink()) {
        return Err(ShelfError::NotOurs { path: folder.to_owned(), why: "a link to another place".to_owned() });
    }
    match brief(folder) {
        Ok(_) => Ok(()),
        Err(error @ StoreError::NoSession { .. }) => Err(error.into()),
        Err(error) => Err(ShelfError::NotOurs { path: folder.to_owned(), why: error.to_string() }),
    }
}

/// Keep writers out for as long as the file lives; refused while one is there.
fn hold(folder: &Path) -> Result<Option<File>, StoreError> {
    let path = folder.join(EVENTS);
    // NFS gives a lock only to those who may write.
    let file = match File::options().append(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::Io { path, source }),
    };
    super::lock(&file, folder)?;
    Ok(Some(file))
}

/// Written whole under another name first, so that it is never half there.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    File::create(&draft)?.write_all(bytes)?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::*;
    use crate::session::{Event, Record};

    const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sessions/lab-4x4");

    fn copied(at: &Path) -> PathBuf {
        let folder = at.join("lab-4x4");
        fs::create_dir(&folder).unwrap();
        for name in [HEADER, EVENTS] {
            fs::copy(Path::new(LAB).join(name), folder.join(name)).unwrap();
        }
        folder
    }

    #[test]
    fn what_is_told_of_a_session_is_what_its_events_tell() {
        let recorded = super::super::read(Path::new(LAB)).unwrap();
        let mut model = crate::session::Model::new(recorded.header);
        for record in &recorded.records {
            model.apply(record);
        }
        let entry = look(Path::new(LAB));
        assert_eq!((entry.ranks, entry.hosts, entry.engine.as_deref()), (4, 4, Some("mpi")));
        assert_eq!(entry.samples, Some(model.samples()));
        assert_eq!(entry.started.as_deref(), Some(model.header.started.as_str()));
        assert!(model.samples() > 50);
    }

    #[test]
    fn a_session_is_ended_cut_written_or_broken() {
        let place = tempfile::tempdir().unwrap();
        let folder = copied(place.path());
        let state = || look(&folder).state;
        assert_eq!(state(), State::Ended);
        let (mut writer, _) = Store::resume(&folder).unwrap();
        assert_eq!(state(), State::Written);
        writer.append(&Record { t: 99.0, event: Event::Notice { text: "closed".into() } }).unwrap();
        drop(writer);
        assert_eq!(state(), State::Cut);
        fs::remove_file(folder.join(EVENTS)).unwrap();
        assert_eq!((state(), look(&folder).samples), (State::Cut, Some(0)));
        fs::write(folder.join(HEADER), "{\"format\": \"toposcope.session/9.0\", \"program\": \"7\"}").unwrap();
        assert!(matches!(state(), State::Broken(why) if why.contains("toposcope 7 or later")));
        fs::create_dir(place.path().join("empty")).unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let listed = list(place.path()).unwrap();
        assert_eq!(listed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["empty", "lab-4x4"]);
        assert!(listed.iter().all(|entry| matches!(entry.state, State::Broken(_))));
        assert_eq!(list(&place.path().join("none")).unwrap(), []);
    }

    #[test]
    fn a_name_is_the_folder_s_and_the_header_s() {
        let place = tempfile::tempdir().unwrap();
        let folder = copied(place.path());
        for bad in ["", "a/b", "..", "-x", " a", "a\u{1b}b", &"x".repeat(101)] {
            assert!(matches!(rename(&folder, bad), Err(ShelfError::BadName { .. })), "{bad:?}");
        }
        assert!(matches!(rename(&folder, "lab-4x4"), Err(ShelfError::Taken { .. })));
        let before = super::super::read(&folder).unwrap();
        let to = rename(&folder, "before the new switch").unwrap();
        let after = super::super::read(&to).unwrap();
        assert_eq!(after.header.name, "before the new switch");
        assert_eq!((after.header.topology, after.records), (before.header.topology, before.records));
        assert!(!folder.exists());
    }

    #[test]
    fn a_session_that_is_written_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = copied(place.path());
        let writer = Store::resume(&folder).unwrap();
        assert!(matches!(rename(&folder, "other"), Err(ShelfError::Store(StoreError::Busy { .. }))));
        assert!(matches!(delete(&folder), Err(ShelfError::Store(StoreError::Busy { .. }))));
        assert!(folder.join(EVENTS).exists() && folder.join(HEADER).exists());
        drop(writer);
        assert_eq!(delete(&folder).unwrap(), [""; 0]);
        assert!(!folder.exists());
    }

    #[test]
    fn only_a_session_s_own_files_are_deleted() {
        let place = tempfile::tempdir().unwrap();
        let folder = copied(place.path());
        fs::write(folder.join("mine.txt"), "").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(matches!(delete(&link), Err(ShelfError::NotOurs { .. })));
        fs::create_dir(place.path().join("other")).unwrap();
        assert!(matches!(delete(&place.path().join("other")), Err(ShelfError::Store(StoreError::NoSession { .. }))));
        fs::write(place.path().join("other").join(HEADER), "{").unwrap();
        assert!(matches!(delete(&place.path().join("other")), Err(ShelfError::NotOurs { .. })));
        assert_eq!(delete(&folder).unwrap(), ["mine.txt"]);
        assert!(folder.join("mine.txt").exists() && !folder.join(HEADER).exists());
    }

    #[test]
    fn a_note_is_kept_and_taken_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = copied(place.path());
        assert_eq!(note(&folder), "");
        set_note(&folder, " cable of node3 replaced\u{1b}[31m\nsecond line ").unwrap();
        assert_eq!(look(&folder).note, "cable of node3 replaced[31m\nsecond line");
        assert!(matches!(set_note(&folder, &"x".repeat(2001)), Err(ShelfError::LongNote { length: 2001 })));
        set_note(&folder, "").unwrap();
        set_note(&folder, "").unwrap();
        assert!(!folder.join(NOTE).exists());
    }
}
