//! nccl-tests' table.

use super::super::grid::amount;
use super::{Collective, Row, Run, Table, operation, seat};
use crate::import::Skips;
use crate::import::text::{Line, named, number};

/// Lines of something else, one after another, that may stand within a run.
const GAP: usize = 12;
/// Rows kept of one run: a linear sweep has hundreds.
const MOST_ROWS: usize = 100_000;

/// Read a run that begins here; runs one after another are several.
pub(in crate::import::measured) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?.text.trim();
    (is_begin(first) || rank(first).is_some() || Columns::of(first).is_some()).then(|| {
        let (run, used) = run(lines, skips);
        (run.table(skips).into_iter().collect(), used)
    })
}

fn is_begin(text: &str) -> bool {
    text.starts_with("# nccl-tests version")
        || text.starts_with("# nThread ")
        || text.starts_with("# Collective test starting")
        || (text.len() < 2_000 && !text.starts_with('#') && text.contains("_perf") && operation(text).is_some() && is_command(text))
}

/// A command line that somebody pasted with what it printed: its first word, or one behind a prompt, is a program.
fn is_command(text: &str) -> bool {
    text.starts_with(['$', '>', '.', '/'])
        || text.contains("$ ")
        || text.contains("# ")
        || ["srun", "mpirun", "mpiexec"].iter().any(|word| text.contains(word))
}

fn run(lines: &[Line<'_>], skips: &mut Skips) -> (Run, usize) {
    let mut run = Run { line: lines[0].number, ..Run::default() };
    let mut columns: Option<Columns> = None;
    let (mut used, mut at) = (0, 0);
    let (mut configured, mut checked, mut unchecked, mut reduces) = (false, false, false, true);
    while at < lines.len() && at - used <= GAP && !skips.is_spent() {
        let text = lines[at].text.trim();
        let mut known = true;
        if let Some(found) = text.strip_prefix("# nccl-tests version ") {
            if !run.rows.is_empty() || run.version.is_some() {
                break;
            }
            run.version = found.split_whitespace().next().map(named);
        } else if text.starts_with("# Collective test starting") {
            if !run.rows.is_empty() {
                break;
            }
            run.operation = operation(text).unwrap_or(run.operation);
        } else if text.starts_with("# nThread ") {
            if configured || !run.rows.is_empty() {
                break;
            }
            configured = true;
        } else if let Some((number, rest)) = rank(text) {
            if !run.rows.is_empty() {
                break;
            }
            if let Some(end) = seat(rest, number) {
                run.seat(number, end, lines[at].number, skips);
            }
        } else if let Some(found) = Columns::of(text) {
            // A page's second header goes on with the same rows.
            columns = Some(found);
        } else if let Some(row) = columns.as_ref().and_then(|columns| columns.row(text)) {
            checked |= row.checked;
            unchecked |= row.in_place_unchecked && row.checked;
            reduces &= row.reduces;
            if run.rows.len() < MOST_ROWS {
                run.rows.push(row.row);
            } else if run.rows.len() == MOST_ROWS {
                skips.push(lines[at].number, format!("more than {MOST_ROWS} rows: from here on left out"));
            }
        } else if is_begin(text) {
            if at > 0 && (!run.rows.is_empty() || configured) {
                break;
            }
            run.operation = operation(text).unwrap_or(run.operation);
        } else if text.starts_with("# Collective test concluded") {
            used = at + 1;
            break;
        } else {
            known = text.starts_with("# Out of bounds") || text.starts_with("# Avg bus") || text == "# Using devices" || text == "#";
        }
        at += 1;
        if known {
            used = at;
        }
    }
    if run.operation.is_empty() && checked && unchecked && reduces && !run.rows.is_empty() {
        "sendrecv".clone_into(&mut run.operation);
        run.guessed = true;
    }
    (run, used.max(1))
}

/// Number and rest of `#  Rank  0 Group  0 Pid  15784 on node1 device ...`.
fn rank(text: &str) -> Option<(usize, &str)> {
    let rest = text.strip_prefix('#')?.trim_start().strip_prefix("Rank ").filter(|rest| rest.len() < 400)?;
    let (at, rest) = rest.trim_start().split_once(' ')?;
    let (_, seat) = rest.split_once(" on ")?;
    Some((number(at)?, seat))
}

/// Where the columns stand, by their names: versions differ.
#[derive(Debug)]
struct Columns {
    size: usize,
    redop: Option<usize>,
    time: usize,
    bus: Option<usize>,
    wrong: Option<usize>,
    in_place: Option<usize>,
    in_place_wrong: Option<usize>,
}

/// What a row told.
struct Told {
    row: Row,
    checked: bool,
    in_place_unchecked: bool,
    reduces: bool,
}

impl Columns {
    fn of(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('#').filter(|rest| rest.len() < 1_000 && rest.contains("busbw"))?;
        let names: Vec<&str> = rest.split_whitespace().collect();
        let nth = |wanted: &[&str], n: usize| names.iter().enumerate().filter(|(_, name)| wanted.contains(name)).map(|(at, _)| at).nth(n);
        let wrong = |n| nth(&["#wrong", "error", "wrong"], n);
        Some(Self {
            size: nth(&["size"], 0)?,
            redop: nth(&["redop"], 0),
            time: nth(&["time", "cputime"], 0)?,
            bus: nth(&["busbw"], 0),
            wrong: wrong(0),
            in_place: nth(&["time", "cputime"], 1),
            in_place_wrong: wrong(1),
        })
    }

    fn row(&self, text: &str) -> Option<Told> {
        if text.len() > 1_000 || !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        // Some builds end rows with what no name stands above, others leave out what was not done in place.
        if words.len() <= self.bus.unwrap_or(self.time) {
            return None;
        }
        let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied();
        let bytes: u64 = words.get(self.size)?.parse().ok()?;
        let seconds = amount(word(Some(self.time))?)? * 1e-6;
        let in_place = word(self.in_place).and_then(amount).map(|time| time * 1e-6);
        let bus = word(self.bus).and_then(amount).map(|rate| rate * 1e9);
        let count = |at| word(at).and_then(amount);
        Some(Told {
            row: Row {
                collective: Collective { bytes, seconds, in_place_seconds: in_place, bus_bandwidth: bus, sum: None },
                wrong: count(self.wrong).is_some_and(|wrong| wrong >= 1.0),
            },
            checked: count(self.wrong).is_some(),
            in_place_unchecked: word(self.in_place_wrong) == Some("N/A"),
            reduces: word(self.redop).is_some_and(|redop| redop != "none"),
        })
    }
}
