//! Topologies from other tools' output, read as if discovered here. The parsers are pure functions of a text; only [`read`]
//! touches a file. What a text is is told by its content, never by its name.

mod format;
mod hwloc;
mod hwloc_io;
mod hwloc_links;
mod ib;
mod ids;
mod lacks;
mod links;
mod lspci;
mod lspci_tree;
mod matrix;
pub mod measured;
mod merge;
mod nccl;
mod nccl_log;
mod nvlink;
pub mod plans;
mod sections;
mod text;
mod topo_m;
mod topo_p2p;
mod tree;
mod xml;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::topology::Hardware;
use crate::units::plain;

pub use format::Format;
pub use lacks::of as lacks;
pub use merge::merge;

/// Larger files are refused: none of these tools writes as much about one cluster.
pub const MOST_BYTES: u64 = 64 << 20;

/// What a text told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// what was recognised, in order of appearance, each once
    pub formats: Vec<Format>,
    /// in order of appearance; their names are empty where the text does not tell them and there is only one
    pub hosts: Vec<Hardware>,
    /// what could not be learnt from it
    pub lacks: Vec<String>,
    /// what was left out, in order of lines
    pub skipped: Vec<Skipped>,
}

/// A line, or the first of several, that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// from 1
    pub line: usize,
    pub reason: String,
}

/// Why a file gives no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {value}: expected {expected}; {advice}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct ImportError {
    pub file: String,
    /// from 1; none if the whole file is meant
    pub line: Option<usize>,
    /// what was found, shortened
    pub value: String,
    pub expected: String,
    /// what to do
    pub advice: String,
}

impl ImportError {
    fn new(file: &str, line: Option<usize>, value: &str, expected: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { file: plain(file), line, value: text::shown(value), expected: expected.into(), advice: advice.into() }
    }
}

/// What was left out, so long as a person would read it; and how much of a file may still be kept.
#[derive(Debug)]
struct Skips {
    told: Vec<Skipped>,
    /// bytes of memory
    room: usize,
    spent: bool,
}

impl Default for Skips {
    fn default() -> Self {
        Self::with_room(usize::MAX)
    }
}

impl Skips {
    /// A damaged file has a fault in each line: these tell the kind.
    const MOST: usize = 200;

    /// For a file of which at most so many bytes are kept in memory.
    const fn with_room(room: usize) -> Self {
        Self { told: Vec::new(), room, spent: false }
    }

    /// Count what is about to be kept. False, and from then on for all that comes, where there is no room for it: a few bytes of a damaged
    /// file may ask for gigabytes.
    fn takes(&mut self, line: usize, bytes: usize) -> bool {
        if !self.spent {
            if let Some(left) = self.room.checked_sub(bytes) {
                self.room = left;
            } else {
                self.spent = true;
                let reason = "more ranks and numbers than so long a file is believed: from here on left out".to_owned();
                self.told.push(Skipped { line, reason });
            }
        }
        !self.spent
    }

    /// No more is kept of the file.
    const fn is_spent(&self) -> bool {
        self.spent
    }

    const fn is_full(&self) -> bool {
        self.told.len() > Self::MOST
    }

    fn push(&mut self, line: usize, reason: impl Into<String>) {
        if self.spent {
            // All from there on is told of.
        } else if self.told.len() < Self::MOST {
            self.told.push(Skipped { line, reason: reason.into() });
        } else if self.told.len() == Self::MOST {
            self.told.push(Skipped { line, reason: "and more from here on".to_owned() });
        }
    }

    fn sorted(mut self) -> Vec<Skipped> {
        self.told.sort_by_key(|skipped| skipped.line);
        self.told
    }
}

/// Read a topology from a text; `file` is only for what is said about it.
pub fn hardware(text: &str, file: &str) -> Result<Imported, ImportError> {
    let pieces = xml::pieces(text);
    let (formats, mut hosts, skips) = if pieces.is_empty() { sections::read(text, file)? } else { xml::read(&pieces, file)? };
    let several = hosts.len() > 1;
    for (at, host) in hosts.iter_mut().enumerate() {
        let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
        host.source = format!("{} in {}", names.join(" and "), plain(file));
        if several && host.host.is_empty() {
            host.host = format!("host{}", at + 1);
        }
    }
    Ok(Imported { lacks: lacks(&hosts, &formats), formats, hosts, skipped: skips.sorted() })
}

/// Read a topology from a file.
pub fn read(path: &Path) -> Result<Imported, ImportError> {
    hardware(&text_of(path, "give the part that tells the topology")?, &path.display().to_string())
}

/// The text of a file; `part` is the advice for one that is too large.
fn text_of(path: &Path, part: &str) -> Result<String, ImportError> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let taken = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    taken.map_err(|error| unread(&name, &error.to_string(), "check the path and its permissions"))?;
    decoded(&bytes, &name, part)
}

/// The text of what was read of a file, no more than [`MOST_BYTES`] and one; `part` is the advice for one that is too large.
pub fn decoded(bytes: &[u8], file: &str, part: &str) -> Result<String, ImportError> {
    const PACKED: [(&[u8], &str); 5] =
        [(b"\x1f\x8b", "zcat"), (b"\xfd7zXZ\0", "xzcat"), (b"\x28\xb5\x2f\xfd", "zstdcat"), (b"BZh", "bzcat"), (b"PK\x03\x04", "unzip -p")];
    if let Some((_, unpack)) = PACKED.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        if file.rsplit('/').next().is_some_and(|name| name.contains(".tar") || name.contains(".tgz")) {
            let advice =
                "unpack it (tar -xf FILE) and give the file in it; a recorded /sys tree is read by `toposcope discover --sysfs-root DIR`";
            return Err(unread(file, "a packed archive", advice));
        }
        return Err(unread(file, "packed data", &format!("unpack it: {unpack} FILE > TEXT, or give <({unpack} FILE) instead of the file")));
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unread(file, "more than 64 MiB", part));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(unread(file, "nothing", "the file is empty: see whether what should have written it did"));
    }
    text::decode(bytes)
        .ok_or_else(|| unread(file, "binary data", "unpack it; a recorded /sys tree is read by `toposcope discover --sysfs-root DIR`"))
}

fn unread(file: &str, what: &str, advice: &str) -> ImportError {
    ImportError::new(file, None, what, "a readable text file", advice)
}

#[cfg(test)]
mod tests;
