//! Whose output a text is: of one tool or of several, one after another, with whatever stands around them.

use std::path::Path;

use serde_json::Value;

use super::{Table, Tool, deepspeed, imb, mpigraph, nccl_tests, nvbandwidth, nvloom, osu, p2p, perftest, rocm, transferbench, ucx};
use crate::import::format::{MEASUREMENT, other};
use crate::import::text::{Line, clean, lines};
use crate::import::{ImportError, Skipped, Skips};
use crate::sample::Status;

/// Asked at each line of a cleaned text: does a block of mine begin at `lines[0]`? Answers `None` cheaply, from the line alone. Else its
/// tables (maybe none, with the reason in `skips`), and how many lines it takes, at least 1: as many as it looked at, or nearly, so that
/// the whole is read in linear time.
type OfLines = fn(&[Line<'_>], &mut Skips) -> Option<(Vec<Table>, usize)>;

/// Asked of a text that is JSON.
type OfJson = fn(&Value, &mut Skips) -> Option<Vec<Table>>;

/// The first that answers takes the block.
const OF_LINES: &[OfLines] = &[
    nvbandwidth::read, //
    p2p::read,
    nccl_tests::read,
    mpigraph::read,
    osu::read,
    imb::read,
    perftest::read,
    ucx::read,
    transferbench::read,
    rocm::read,
    nvloom::read,
];

const OF_JSON: &[OfJson] = &[
    nvbandwidth::json, //
    nccl_tests::json,
    deepspeed::json,
    perftest::json,
];

/// More columns, rows or ranks than any of these tools was ever run with: a header that tells more is refused.
pub(super) const MOST_ENDS: usize = 16_384;

/// More samples are not kept of a file.
pub(super) const MOST_SAMPLES: usize = 2 << 20;

/// Bytes of memory that the tables of a text may take. Of true files a number takes six characters or more, from which a sample is made; fans
/// of all GPUs, which name their peers, are short files.
const fn room(bytes: usize) -> usize {
    let room = (48 << 20) + 48 * bytes;
    if room < MOST_ROOM { room } else { MOST_ROOM }
}

const MOST_ROOM: usize = 1 << 30;

/// What a text told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// in order of appearance, at least one
    pub tables: Vec<Table>,
    /// what was left out, in order of lines
    pub skipped: Vec<Skipped>,
}

/// Read the tables of a text; `file` is only for what is said about it.
pub fn tables(text: &str, file: &str) -> Result<Vec<Table>, ImportError> {
    told(text, file).map(|told| told.tables)
}

/// Read a file's tables and what was left out of it.
pub fn read(path: &Path) -> Result<Told, ImportError> {
    let name = path.display().to_string();
    told(&crate::import::text_of(path, "give the part with the measurements")?, &name)
}

/// Read the tables of a text, and tell what was left out.
pub fn told(text: &str, file: &str) -> Result<Told, ImportError> {
    let mut skips = Skips::with_room(room(text.len()));
    let mut tables = Vec::new();
    let found = json(text, &mut tables, &mut skips);
    if !found {
        let cleaned = clean(text);
        let lines = lines(&cleaned);
        let mut at = 0;
        while at < lines.len() && !skips.is_spent() {
            let taken = OF_LINES.iter().find_map(|reader| reader(&lines[at..], &mut skips));
            let (more, used) = taken.unwrap_or_default();
            tables.extend(more);
            at += used.max(1);
        }
    }
    bound(&mut tables, &mut skips);
    if tables.is_empty() {
        return Err(refusal(text, file, skips));
    }
    Ok(Told { tables, skipped: skips.sorted() })
}

/// Read JSON values that stand one after another from the first line that begins one; false if nobody knows them.
fn json(text: &str, tables: &mut Vec<Table>, skips: &mut Skips) -> bool {
    let mut at = 0;
    let start = text.split_inclusive('\n').find_map(|line| {
        let here = at;
        at += line.len();
        line.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']).then_some(here)
    });
    let Some(start) = start else { return false };
    let body = text[start..].trim_start_matches('\u{feff}');
    let mut found = false;
    for value in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
        let Ok(value) = value else { break };
        if skips.is_spent() {
            break;
        }
        if let Some(more) = OF_JSON.iter().find_map(|reader| reader(&value, skips)) {
            found = true;
            tables.extend(more);
        }
    }
    found
}

/// Seconds of one message that are no damage.
const TIMES: std::ops::Range<f64> = 1e-12..1e9;

/// What no tool measures is damage: it is waived with the reason. Of all tables together so many samples are kept.
fn bound(tables: &mut Vec<Table>, skips: &mut Skips) {
    let mut left = MOST_SAMPLES;
    tables.retain(|table| {
        let fits = table.samples.len() <= left;
        if fits {
            left -= table.samples.len();
        } else {
            skips.push(table.line, format!("{}: more than {MOST_SAMPLES} numbers in one file", table.test));
        }
        fits
    });
    for sample in tables.iter_mut().flat_map(|table| &mut table.samples) {
        let seconds = sample.seconds.filter(|seconds| TIMES.contains(seconds));
        if sample.status == Status::Ok && (seconds.is_none() || sample.bytes == 0 || sample.messages == 0) {
            sample.status = Status::Waived;
            sample.reason = Some("a number that nothing gives".to_owned());
            (sample.seconds, sample.messages) = (None, 0);
        }
        sample.root_seconds = sample.root_seconds.filter(|seconds| TIMES.contains(seconds) && sample.status == Status::Ok);
        sample.bytes = sample.bytes.max(1);
    }
}

/// Why nothing was read.
fn refusal(text: &str, file: &str, skips: Skips) -> ImportError {
    if let Some(first) = skips.sorted().into_iter().next() {
        let line = text.lines().nth(first.line.saturating_sub(1)).unwrap_or_default();
        return ImportError::new(file, Some(first.line), line, "a measurement", first.reason);
    }
    if let Some((who, what)) = other(text) {
        let advice = if what == MEASUREMENT { "none of its numbers is whole".to_owned() } else { format!("this is {what}") };
        return ImportError::new(file, None, &format!("the output of {who}"), format!("one of {}", known()), advice);
    }
    let first = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty());
    let advice = "see whether the file is what you meant; the tools are told by content, not by name";
    ImportError::new(file, first.map(|(at, _)| at + 1), first.map_or("", |(_, line)| line), format!("one of {}", known()), advice)
}

/// `nvbandwidth, ... and nvloom`.
pub fn known() -> String {
    let names: Vec<_> = Tool::ALL.iter().map(|tool| tool.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
