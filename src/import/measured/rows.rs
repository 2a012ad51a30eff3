//! What the readers of benchmarks have in common: blocks of lines with strangers between, ends, and samples from rates and times.

use std::collections::HashMap;

use super::{End, Table};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, number};
use crate::sample::{Pattern, Sample, Status};
use crate::topology::PathClass;

/// Bytes of a megabyte as storage counts them, and as memory does.
pub(super) const MB: f64 = 1e6;
pub(super) const MIB: f64 = 1_048_576.0;

/// What a line is to the block that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Mine,
    /// warnings of libraries and launchers stand between
    Strange,
    /// something else begins
    End,
}

/// So many lines in a row that nobody knows end a block.
const MOST_STRANGE: usize = 12;

/// How many lines a block takes: to the last that is its own. The first is. Where no more is kept of the file it ends.
pub(super) fn block<'a>(lines: &[Line<'a>], skips: &mut Skips, mut each: impl FnMut(Line<'a>, &mut Skips) -> Step) -> usize {
    let (mut used, mut strange) = (1, 0);
    for (at, line) in lines.iter().enumerate() {
        let over = at > 0 && (line.text.trim_start().starts_with("$ ") || skips.is_spent());
        let step = if over { Step::End } else { each(*line, skips) };
        match step {
            Step::Mine => (used, strange) = (at + 1, 0),
            Step::Strange if line.text.trim().is_empty() => {}
            Step::Strange => strange += 1,
            Step::End if at > 0 => break,
            Step::End => {}
        }
        if strange > MOST_STRANGE {
            break;
        }
    }
    used
}

/// `rank 0`, of which the output tells no more.
pub(super) fn rank(number: usize) -> End {
    End { label: format!("rank {number}"), ..End::default() }
}

/// An end that is known by its name.
pub(super) fn end(label: &str) -> End {
    End { label: named(label), ..End::default() }
}

/// Which way ends lie to each other, as far as their hosts are told.
fn path(ends: &[End], from: usize, to: usize) -> PathClass {
    let host = |at: usize| ends.get(at).and_then(|end| end.host.as_deref());
    if from == to {
        PathClass::Local
    } else if host(from) == host(to) {
        PathClass::IntraNode
    } else {
        PathClass::InterNode
    }
}

/// One message in so many seconds; waived if that is no time.
pub(super) fn timed(ends: &[End], pattern: Pattern, (from, to): (usize, usize), bytes: u64, seconds: f64) -> Sample {
    let mut sample = Sample::blank(pattern, from, to, bytes, path(ends, from, to));
    if seconds.is_finite() && seconds > 0.0 {
        (sample.messages, sample.seconds, sample.status) = (1, Some(seconds), Status::Ok);
    } else {
        sample.reason = Some("the tool printed no time or rate".to_owned());
    }
    sample
}

/// One message at so many bytes a second; waived if that is no rate.
pub(super) fn rated(ends: &[End], pattern: Pattern, pair: (usize, usize), bytes: u64, rate: f64) -> Sample {
    timed(ends, pattern, pair, bytes, if rate > 0.0 { bytes as f64 / rate } else { 0.0 })
}

/// What the tool left out.
pub(super) fn waived(ends: &[End], pattern: Pattern, (from, to): (usize, usize), bytes: u64, reason: String) -> Sample {
    Sample { reason: Some(reason), ..Sample::blank(pattern, from, to, bytes, path(ends, from, to)) }
}

/// Both directions of a pair, each with the same rate.
pub(super) fn both(table: &mut Table, bytes: u64, seconds: f64, line: usize, skips: &mut Skips) {
    for pair in [(0, 1), (1, 0)] {
        let sample = timed(&table.ends, Pattern::Duplex, pair, bytes, seconds);
        table.put(sample, line, skips);
    }
}

/// Copies of one set ran at the same time; one that stands alone is a pair's own.
pub(super) fn settle(table: &mut Table) {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for set in table.samples.iter().filter_map(|sample| sample.set) {
        *counts.entry(set).or_default() += 1;
    }
    for sample in &mut table.samples {
        let Some(set) = sample.set else { continue };
        let alone = counts.get(&set) == Some(&1);
        if alone {
            sample.set = None;
        }
        sample.pattern = match sample.pattern {
            Pattern::Peer if !alone => Pattern::Custom,
            Pattern::Custom if alone => Pattern::Peer,
            pattern => pattern,
        };
    }
}

/// A message's size: digits only, and no more than a machine's memory.
pub(super) fn size(word: &str) -> Option<u64> {
    let right = !word.is_empty() && word.len() <= 15 && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| right)
}

/// A number with thousands set apart: `1,000`, `1'000`.
pub(super) fn grouped(word: &str) -> Option<f64> {
    amount(&word.replace([',', '\''], "")).filter(|_| !word.is_empty())
}

/// `12` of `key : 12[B] other`: the first word behind a key and its colon.
pub(super) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1.trim_start().strip_prefix(':')?;
    rest.split_whitespace().next()
}

/// Why a row is left out.
pub(super) fn misshapen(text: &str, expected: usize) -> String {
    let found = text.split_whitespace().count();
    format!("{} has {found} words where the rows above have {expected}: the row is left out", crate::import::text::shown(text))
}

/// The number behind `CPU`, `GPU` or `rank`, at most what an end's number may be.
pub(super) fn index(word: &str) -> Option<u32> {
    number(word).and_then(|number| u32::try_from(number).ok())
}

/// What the tests of the readers have in common.
#[cfg(test)]
pub(super) mod testing {
    use super::super::Table;
    use crate::import::Skips;
    use crate::import::text::{Line, clean, lines};
    use crate::sample::{Sample, Status};

    pub type Reader = fn(&[Line<'_>], &mut Skips) -> Option<(Vec<Table>, usize)>;

    /// All tables of a text, and the lines of what was left out.
    pub fn tables(reader: Reader, text: &str) -> (Vec<Table>, Vec<(usize, String)>) {
        let cleaned = clean(text);
        let lines = lines(&cleaned);
        let (mut at, mut skips, mut found) = (0, Skips::default(), Vec::new());
        while at < lines.len() {
            let (more, used) = reader(&lines[at..], &mut skips).unwrap_or((Vec::new(), 1));
            assert!(used > 0 && at + used <= lines.len(), "{used} lines of {}", lines.len() - at);
            found.extend(more);
            at += used;
        }
        for table in &found {
            for sample in &table.samples {
                assert!(sample.from < table.ends.len() && sample.to < table.ends.len(), "{sample:?}");
                assert!((sample.status == Status::Waived) == sample.seconds.is_none(), "{sample:?}");
                assert!(sample.seconds.is_none_or(|seconds| seconds > 0.0 && seconds.is_finite()), "{sample:?}");
                assert!(sample.status != Status::Waived || sample.reason.is_some(), "{sample:?}");
            }
        }
        (found, skips.sorted().into_iter().map(|skipped| (skipped.line, skipped.reason)).collect())
    }

    /// Cut a text at every byte, and lose every byte: nothing may panic, and no sample may point outside its table.
    pub fn damage(reader: Reader, text: &str) {
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at) && text.is_char_boundary(at + 1)) {
            tables(reader, &text[..at]);
            tables(reader, &format!("{}{}", &text[..at], &text[at + 1..]));
            tables(reader, &format!("{}\t{}", &text[..at], &text[at + 1..]));
            tables(reader, &format!("{}9{}", &text[..at], &text[at..]));
        }
    }

    /// Bytes/s from one end to another, rounded to 1 kB/s: the first such sample.
    pub fn rate(table: &Table, from: usize, to: usize) -> f64 {
        let found: Option<&Sample> = table.samples.iter().find(|sample| (sample.from, sample.to) == (from, to) && sample.seconds.is_some());
        found.map_or(f64::NAN, |sample| sample.bytes as f64 / sample.seconds.unwrap())
    }

    pub fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} instead of {expected}");
    }

    /// The files of a folder of the corpus, if `TOPOSCOPE_CORPUS` names one.
    pub fn corpus(folder: &str) -> Vec<(String, String)> {
        let Some(root) = std::env::var_os("TOPOSCOPE_CORPUS") else { return Vec::new() };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(std::path::Path::new(&root).join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            found.push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()));
        }
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::text::lines;

    #[test]
    fn strangers_stand_inside_a_block_but_do_not_belong_to_its_end() {
        let mine = |line: Line<'_>, _: &mut Skips| if line.text.starts_with('a') { Step::Mine } else { Step::Strange };
        let text = format!("a\nx\n\na\n{}a\n", "x\n".repeat(13));
        assert_eq!(block(&lines(&text), &mut Skips::default(), mine), 4);
        assert_eq!(block(&lines("x\n$ a\na\n"), &mut Skips::default(), mine), 1);
        // Nor where no more is kept of the file: after its first line.
        let mut spent = Skips::with_room(0);
        assert!(!spent.takes(1, 1));
        assert_eq!(block(&lines("a\na\na\n"), &mut spent, mine), 1);
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!((size("4096"), size("4k"), size(""), size("9999999999999999")), (Some(4096), None, None, None));
        assert_eq!((grouped("1,000"), grouped("1'2.5"), grouped("inf"), grouped("")), (Some(1000.0), Some(12.5), None, None));
        assert_eq!(value(" Mtu             : 4096[B]", "Mtu"), Some("4096[B]"));
    }
}
