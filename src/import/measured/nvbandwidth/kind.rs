//! What a test measures, by its name; where the name was cut off, by its heading as the source pairs the two.

use crate::sample::Pattern;

/// Whose bytes go where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// between a GPU, the column's, and its host, or within it
    Own(Pattern),
    RowToColumn,
    ColumnToRow,
    /// of two that send to each other, this direction
    BothRowToColumn,
    BothColumnToRow,
    /// the sum of both directions
    BothTotal,
    /// from the column's GPU to all others
    ToOthers,
    FromOthers,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    pub(super) flow: Flow,
    pub(super) latency: bool,
    /// nothing else of the test runs at the same time
    pub(super) isolated: bool,
}

impl Kind {
    /// Of a test's name and its heading, either of which may be empty; what it is instead, if it has no pairs or fans.
    pub(super) fn of(test: &str, heading: &str, rows: usize) -> Result<Self, &'static str> {
        let has = |word: &str| test.contains(word);
        let both = has("bidirectional") || heading.contains("<->");
        let latency = has("latency") || heading.contains("(ns)");
        let alone = |flow| Ok(Self { flow, latency, isolated: true });
        if has("broadcast") || heading.starts_with("multicast") {
            return Err("one copy that all receive at once, which is of no pair");
        }
        if has("bisect") || heading.starts_with("Bisect") {
            return Err("half of the GPUs to the other half at once, without a number for each pair");
        }
        let host = if has("host_to_device") || has("host_to_all") {
            Some(Pattern::HostToDevice)
        } else if has("device_to_host") || has("all_to_host") {
            Some(Pattern::DeviceToHost)
        } else if has("host_device") || (test.is_empty() && heading.contains("CPU(row)")) {
            let back = heading.contains("<- GPU(column)");
            Some(if back { Pattern::DeviceToHost } else { Pattern::HostToDevice })
        } else {
            None
        };
        if let Some(pattern) = host {
            let all = has("_to_all") || has("all_to_");
            return Ok(Self { flow: Flow::Own(pattern), latency, isolated: !all && (latency || !both) });
        }
        if has("local") || heading.contains("local") {
            return alone(Flow::Own(Pattern::Local));
        }
        if has("all_to_one") || has("one_to_all") || has("all_from_one") || (test.is_empty() && rows == 1) {
            let out = match (has("all_to_one"), has("one_to_all"), has("_read"), has("all_from_one")) {
                (_, _, _, true) => true,
                (true, _, read, _) => read,
                (_, true, read, _) => !read,
                _ => heading.contains("-> GPU(column)"),
            };
            return alone(if out { Flow::ToOthers } else { Flow::FromOthers });
        }
        if latency {
            // The row's GPU loads what lies in the column's.
            return alone(Flow::ColumnToRow);
        }
        if both {
            return alone(if heading.contains("Total") {
                Flow::BothTotal
            } else if heading.contains("Read2") || heading.contains("Write2") {
                Flow::BothRowToColumn
            } else if heading.contains("Read1") || heading.contains("Write1") || has("_read") {
                Flow::BothColumnToRow
            } else {
                Flow::BothRowToColumn
            });
        }
        match (has("_read"), has("_write")) {
            (true, _) => alone(Flow::ColumnToRow),
            (_, true) => alone(Flow::RowToColumn),
            _ if heading.contains("GPU(row) -> GPU(column)") => alone(Flow::ColumnToRow),
            _ if heading.contains("GPU(row) <- GPU(column)") => alone(Flow::RowToColumn),
            _ => Err("a test that this version does not know: which way its bytes go is not told"),
        }
    }

    /// True if rows are GPUs as columns are.
    pub(super) const fn is_square(self) -> bool {
        !matches!(self.flow, Flow::Own(_) | Flow::ToOthers | Flow::FromOthers)
    }

    /// The test's name, with which of its matrices it is.
    pub(super) fn name(test: &str, heading: &str) -> String {
        let part = ["Read1", "Read2", "Write1", "Write2", "Total"].into_iter().find(|part| heading.contains(part));
        match (test.is_empty(), part) {
            (true, _) => crate::import::text::named(heading),
            (false, Some(part)) => format!("{test} {part}"),
            (false, None) => test.to_owned(),
        }
    }

    pub(super) fn orientation(self, heading: &str) -> &'static str {
        let against = heading.contains("GPU(row)");
        match self.flow {
            Flow::Own(Pattern::Local) => "a copy within the column's GPU",
            Flow::Own(Pattern::DeviceToHost) => "the column's GPU sends to its host",
            Flow::Own(_) if self.latency => "the column's GPU loads from its host",
            Flow::Own(_) => "the host sends to the column's GPU",
            Flow::ColumnToRow if self.latency => "the row's GPU loads from the column's",
            Flow::RowToColumn if against => "row sends, column receives; the heading's arrow points the other way",
            Flow::ColumnToRow if against => "column sends, row receives; the heading's arrow points the other way",
            Flow::RowToColumn | Flow::BothRowToColumn => "row sends, column receives",
            Flow::ColumnToRow | Flow::BothColumnToRow => "column sends, row receives",
            Flow::BothTotal => "row and column send to each other; half of the sum is shown for each direction",
            Flow::ToOthers => "the column's GPU sends to all others",
            Flow::FromOthers => "all others send to the column's GPU",
        }
    }

    pub(super) fn notes(self, test: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if test.is_empty() {
            notes.push("the test's name was cut off: its heading tells what it is".to_owned());
        }
        if self.latency {
            notes.push("time of one load of a chain of loads, not of a copy".to_owned());
        } else if let Flow::Own(pattern) = self.flow
            && !self.isolated
        {
            let way = if pattern == Pattern::HostToDevice { "from the host" } else { "to the host" };
            let other =
                if test.contains("all") { "all other GPUs copied at the same time" } else { "copies went both ways at the same time" };
            notes.push(format!("{other}; the number is that of the GPU's own copy {way}"));
        }
        if self.flow == Flow::BothTotal {
            notes.push("the sum of both directions, which may differ: Read1 and Read2, Write1 and Write2 tell them apart".to_owned());
        }
        if matches!(self.flow, Flow::ToOthers | Flow::FromOthers) {
            notes.push("the sum over all others, shared out evenly; those without peer access take no part and are not told".to_owned());
        }
        notes
    }
}
