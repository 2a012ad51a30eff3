//! Plans, layouts and flow lists from files: our own, and other projects'. What a file is is told by its content, never by its name.
//!
//! Flow lists, for everything that can say who sends how much to whom, as JSON (an array of flows, or an object with `flows` and
//! optionally `name` and `ranks`) or CSV (RFC 4180; the first line names the columns, in any order; `#` begins a comment):
//!
//! ```text
//! [{"id": "a", "step": 1, "src": 0, "dst": 8, "bytes": 1048576},         id,step,src,dst,bytes,after
//!  {"id": "b", "step": 2, "src": 8, "dst": 9, "bytes": "1MiB",           a,1,0,8,1048576,
//!   "after": ["a"]}]                                                     b,2,8,9,1MiB,a
//! ```
//!
//! - `src`, `dst`: ranks; the same twice is a copy inside a rank. `bytes`: a whole number, or a size such as 4MiB.
//! - `messages` (optional): messages that the bytes travel in, one after another; 1 if not given.
//! - `step` (optional): flows of a step run at once, steps one after another: by number where all are numbers, else in order of
//!   appearance. Either all flows name a step or none.
//! - `after` (optional): what must be complete before the flow begins, one or several (in CSV between blanks or `;`). It names flows by
//!   their `id` where the file gives any, and otherwise steps. A step whose flows have `after` does not wait for the step before it:
//!   each of its flows begins as soon as what it names is complete (in JSON, `[]`: at once).
//!
//! Awex (`inclusionAI/Awex`, `awex/transfer/transfer_plan.py`): the dumps `global_communication_plan_*.json` (a list of operations) and
//! `local_communication_plan_*.json` (by peer; those of one rank only) become a batch of plans; locations and processes are the ranks
//! of its transfer group.
//!
//! Mooncake (`kvcache-ai/Mooncake`, model weight placements as `weight_placement_to_json` writes them) says who holds what: a layout,
//! of which two make a plan. Locations are the participants, numbered in the order of its topology.

mod awex;
mod flows;
mod layout;
mod mooncake;
mod table;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::text::decode;
use crate::plan::files::{self, FileError, Given, Outline};
use crate::plan::{Endpoints, Transfers};
use crate::units::plain;

pub use layout::{Layout, layout, read_layout};

/// Larger files are refused: a plan of ten million segments.
pub const MOST_BYTES: u64 = 1 << 30;

/// Why a file gives no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct PlansError {
    pub file: String,
    pub fault: FileError,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// a plan of the reference, or a document of ours
    Own,
    Flows,
    /// a CSV file
    Table,
    AwexGlobal,
    AwexLocal,
    Mooncake,
    /// who holds what, as the reference stores it
    AffineMap,
    Endpoints,
}

const KNOWN: &str = "a plan (logical_shape and segments, or a format toposcope.plan/1 or toposcope.traffic/1), a flow list (JSON or CSV \
                     with src, dst and bytes), an Awex communication plan, or a Mooncake weight placement";

impl Kind {
    /// What a person calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::Own => "a plan",
            Self::Flows | Self::Table => "a flow list",
            Self::AwexGlobal | Self::AwexLocal => "an Awex communication plan",
            Self::Mooncake => "a Mooncake weight placement",
            Self::AffineMap => "an affine map",
            Self::Endpoints => "endpoints (which process holds which location)",
        }
    }

    /// What a text is, where `expected` is wanted.
    fn of(text: &str, expected: &str) -> Result<Self, FileError> {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if !start.starts_with(['{', '[']) {
            return if table::is_one(text) {
                Ok(Self::Table)
            } else if start.is_empty() {
                Err(FileError::new("", format!("the file is empty: expected {expected}")))
            } else if let Some(other) = table::other_separator(text) {
                Err(FileError::new("line 1", format!("columns parted by {other}: a flow list's are parted by commas")))
            } else {
                let begin: String = start.chars().take(40).collect();
                Err(FileError::new("", format!("it begins with {begin:?}: expected {expected}")))
            };
        }
        let outline = Outline::of(text)?;
        let first = outline.first.clone().map(|first| *first).unwrap_or_default();
        let operation = ["send_rank", "recv_rank", "overlap_shape"];
        if files::is_own(&outline) {
            Ok(Self::Own)
        } else if outline.list && first.has(&operation) {
            Ok(Self::AwexGlobal)
        } else if outline.is_numbered() && first.list && first.first.as_ref().is_some_and(|first| first.has(&operation)) {
            Ok(Self::AwexLocal)
        } else if outline.has(&["topology", "tensors", "parts"]) {
            Ok(Self::Mooncake)
        } else if outline.has(&["flows"]) || (outline.list && ["src", "dst", "bytes"].iter().any(|key| first.has(&[key]))) {
            Ok(Self::Flows)
        } else if outline.has(&["source", "target"]) {
            Ok(Self::Endpoints)
        } else if outline.has(&["params"]) || outline.has(&["logical_shape", "ranks"]) {
            Ok(Self::AffineMap)
        } else if outline.list && outline.first.is_none() {
            Err(FileError::new("", "an empty list: nothing is moved"))
        } else {
            let (what, keys) = if outline.list { ("a list of objects", first.keys) } else { ("an object", outline.keys) };
            let keys: Vec<String> = keys.into_iter().take(5).collect();
            Err(FileError::new("", format!("{what} with the keys {keys:?}: expected {expected}")))
        }
    }
}

/// Read what is to be moved from a text; `name` is what it is called where it does not say itself.
pub fn text(text: &str, name: &str, given: &Given) -> Result<Transfers, FileError> {
    match Kind::of(text, KNOWN)? {
        Kind::Own => files::read(text, given),
        Kind::Flows => flows::read(text, name).map(Transfers::Traffic),
        Kind::Table => table::read(text, name).map(Transfers::Traffic),
        Kind::AwexGlobal => awex::global(text, given).map(Transfers::Batch),
        Kind::AwexLocal => awex::local(text, given).map(Transfers::Batch),
        Kind::Mooncake => Err(FileError::new(
            "",
            "a Mooncake placement says who holds what, not what is moved: `toposcope plan build` makes a plan of two",
        )),
        Kind::AffineMap => {
            Err(FileError::new("", "a map says who holds what, not what is moved: `toposcope plan build` makes a plan of two"))
        }
        Kind::Endpoints => {
            Err(FileError::new("", "endpoints (which process holds which location), not a plan; give them with --endpoints"))
        }
    }
}

/// Read what is to be moved from a file of any of the formats.
pub fn read(path: &Path, given: &Given) -> Result<Transfers, PlansError> {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    named(path, contents(path).and_then(|contents| text(&contents, &name, given)))
}

/// Read which process holds which location from a file.
pub fn endpoints(path: &Path) -> Result<Endpoints, PlansError> {
    named(path, contents(path).and_then(|contents| files::endpoints(&contents)))
}

fn named<T>(path: &Path, read: Result<T, FileError>) -> Result<T, PlansError> {
    read.map_err(|fault| PlansError { file: plain(&path.display().to_string()), fault })
}

/// A file's text.
fn contents(path: &Path) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    if path.is_dir() {
        return Err(FileError::new("", "a folder: expected one of the files in it"));
    }
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| FileError::new("", format!("{error}: expected a readable file")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(FileError::new("", "more than 1 GiB: expected a plan, a layout or a flow list; split it by parameter"));
    }
    // Not a copy of what is UTF-8 already: plans are large.
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => return Ok(text),
        Ok(text) => text.into_bytes(),
        Err(other) => other.into_bytes(),
    };
    decode(&bytes).ok_or_else(|| FileError::new("", "binary data: expected JSON or CSV"))
}

#[cfg(test)]
mod tests;
