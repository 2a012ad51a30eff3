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
    let mut broken = Skips::default();
    let found = json(text, &mut tables, &mut skips, &mut broken);
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
    // A tool whose JSON is none reads it by lines.
    let begins = || text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
    if found || tables.is_empty() && begins() {
        broken.sorted().into_iter().for_each(|skipped| skips.push(skipped.line, skipped.reason));
    }
    bound(&mut tables, &mut skips);
    if tables.is_empty() {
        return Err(refusal(text, file, skips));
    }
    Ok(Told { tables, skipped: skips.sorted() })
}

/// So often a text is looked through for JSON where much of it is broken.
const AGAIN: usize = 8;

/// Read the JSON values that begin lines, or stand behind another, whatever lies between; false if nobody knows them. `broken` are those
/// that end too soon or are damaged.
fn json(text: &str, tables: &mut Vec<Table>, skips: &mut Skips, broken: &mut Skips) -> bool {
    let (mut at, mut line, mut found) = (0, 1, false);
    // Lines up to here are of a value that is broken: so are those that begin within.
    let mut within = 0;
    // Lines may be read again after a value that is broken, but not by each of them.
    let mut again = AGAIN * newlines(text) + 1000;
    loop {
        let rest = &text[at..];
        let start = at + rest.len() - rest.trim_start_matches(|next: char| next.is_whitespace() || matches!(next, '\u{feff}' | ',')).len();
        line += newlines(&text[at..start]);
        let body = &text[start..];
        let mut used = body.find('\n').map_or(body.len(), |end| end + 1);
        if skips.is_spent() {
            return found;
        }
        if body.starts_with(['{', '[']) {
            let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    used = values.byte_offset().max(1);
                    if let Some(more) = OF_JSON.iter().find_map(|reader| reader(&value, skips)) {
                        found = true;
                        tables.extend(more);
                    }
                }
                Some(Err(error)) => {
                    // A launcher's tag, as in `[node1:12345] warning`, is none.
                    let tag = body.starts_with('[') && error.line() == 1 && !error.is_eof();
                    if !tag && line >= within {
                        broken.push(line, why(&error, line));
                    }
                    again = again.saturating_sub(error.line());
                    if again == 0 {
                        broken.push(line, "more JSON that is broken than is looked through: what follows is left out");
                        return found;
                    }
                    within = within.max(if error.is_eof() { usize::MAX } else { line + error.line() - 1 });
                }
                None => {}
            }
        } else if body.is_empty() {
            return found;
        }
        line += newlines(&body[..used]);
        at = start + used;
    }
}

/// Why a JSON value that begins in a line is left out.
fn why(error: &serde_json::Error, line: usize) -> String {
    if error.is_eof() {
        return "the JSON that begins here is cut off: give the whole of it".to_owned();
    }
    let told = error.to_string();
    let what = told.split(" at line ").next().unwrap_or_default();
    format!("the JSON that begins here is damaged in line {}, column {}: {what}", line + error.line() - 1, error.column())
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
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
