//! mpiGraph: all ranks send to the rank `distance` above at the same time, for each distance; a matrix of the senders' rates, and one of
//! the receivers'. The second is not the first transposed: a rank's times end when its own sends, or receives, are done (mpiGraph.c).

use std::collections::HashMap;

use super::dispatch::MOST_ENDS;
use super::rows::{MIB, Step, block, end, rated, size};
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern};

/// What it sends unless told otherwise.
const DEFAULT_BYTES: u64 = 16_384;

/// `node3:1` as host and rank; a label of another form is a name only.
fn labelled(word: &str) -> End {
    let host = word.rsplit_once(':').filter(|(host, rank)| !host.is_empty() && size(rank).is_some()).map(|(host, _)| named(host));
    End { host, ..end(word) }
}

struct Draft<'a> {
    tables: Vec<Table>,
    version: Option<String>,
    bytes: Option<u64>,
    window: Option<u64>,
    /// columns of the table at hand by their labels, rows that are there, and whether rows receive
    at: HashMap<&'a str, usize>,
    rows: Vec<bool>,
    receives: bool,
}

/// True for the first line of a matrix: `Send`, then labels. `Send max 12.5` is none.
fn is_header(words: &[&str]) -> bool {
    matches!(words, ["Send" | "Recv", first, ..] if first.rsplit_once(':').is_some_and(|(_, rank)| size(rank).is_some()))
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?.text.trim_start();
    let starts = first.starts_with("START mpiGraph");
    if !starts && !is_header(&first.split_whitespace().take(2).collect::<Vec<_>>()) {
        return None;
    }
    let mut draft =
        Draft { tables: Vec::new(), version: None, bytes: None, window: None, at: HashMap::new(), rows: Vec::new(), receives: false };
    let (start, mut ended) = (lines[0].number, false);
    let used = block(lines, skips, |line, skips| {
        if ended || line.number > start && line.text.trim_start().starts_with("START mpiGraph") {
            return Step::End;
        }
        ended = line.text.trim_start().starts_with("END mpiGraph");
        draft.line(line, skips)
    });
    if draft.tables.is_empty() {
        skips.push(start, "mpiGraph's output ends before its matrices");
    }
    Some((draft.tables, used))
}

impl<'a> Draft<'a> {
    fn line(&mut self, line: Line<'a>, skips: &mut Skips) -> Step {
        let words: Vec<&str> = line.text.split_whitespace().take(MOST_ENDS + 4).collect();
        match words.as_slice() {
            ["START", "mpiGraph", version, ..] => self.version = Some(named(version.trim_start_matches('v'))),
            ["MsgSize", bytes] => self.bytes = size(bytes).filter(|bytes| *bytes > 0),
            ["Window", window] => self.window = size(window),
            ["Times" | "Procs", _] | ["Gathering", "results"] | ["Send" | "Recv", "max" | "avg", _] | ["START" | "END", "mpiGraph", ..] => {
            }
            [_, "of", _, percent] if percent.starts_with('(') => {}
            [way @ ("Send" | "Recv"), labels @ ..] if is_header(&words) => self.header(line, *way == "Recv", labels, skips),
            [label, "to" | "from", cells @ ..] => return self.row(line, label, words[1] == "from", cells, skips),
            _ => return Step::Strange,
        }
        Step::Mine
    }

    fn header(&mut self, line: Line<'a>, receives: bool, labels: &[&'a str], skips: &mut Skips) {
        self.at = labels.iter().enumerate().map(|(at, label)| (*label, at)).collect();
        self.receives = receives;
        self.rows = vec![false; labels.len()];
        if labels.len() > MOST_ENDS || self.at.len() < labels.len() {
            self.at.clear();
            let what = if labels.len() > MOST_ENDS { "more ranks than any job has" } else { "a rank twice" };
            skips.push(line.number, format!("the header names {what}: the matrix is left out"));
            return;
        }
        let mut notes = vec![
            "all ranks send and receive at the same time, to and from the rank so far above and below: no pair has the network alone"
                .to_owned(),
        ];
        notes.push(if receives {
            "time until a rank's own receives were done; the table of senders tells other numbers of the same messages".to_owned()
        } else {
            "time until a rank's own sends were done, which may be before the bytes arrive".to_owned()
        });
        notes.extend(self.window.map(|window| format!("{window} messages under way at a time")));
        let table = Table {
            tool: Tool::MpiGraph,
            test: if receives { "Recv" } else { "Send" }.to_owned(),
            version: self.version.clone(),
            line: line.number,
            unit: "MB/s (2^20 bytes)",
            orientation: if receives { "row receives" } else { "row sends" },
            size_from: if self.bytes.is_some() { SizeFrom::Told } else { SizeFrom::Default },
            memory: Memory::Host,
            ends: labels.iter().map(|label| labelled(label)).collect(),
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        };
        table.keep(&mut self.tables, skips);
    }

    fn row(&mut self, line: Line<'a>, label: &str, receives: bool, cells: &[&str], skips: &mut Skips) -> Step {
        let Some(table) = self.tables.last_mut() else { return Step::Strange };
        let fault = match self.at.get(label) {
            None => Some("a rank that the header does not name"),
            Some(_) if receives != self.receives => Some("a row of the other matrix"),
            Some(&row) if self.rows[row] => Some("a rank that had its row"),
            Some(_) => None,
        };
        let Some(&row) = self.at.get(label).filter(|_| fault.is_none()) else {
            skips.push(line.number, format!("{} is {}", shown(label), fault.unwrap_or_default()));
            return Step::Strange;
        };
        self.rows[row] = true;
        if cells.len() != table.ends.len() {
            skips.push(line.number, format!("{} numbers in a row of {}: what is there is read", cells.len(), table.ends.len()));
        }
        let bytes = self.bytes.unwrap_or(DEFAULT_BYTES);
        for (column, cell) in cells.iter().enumerate().take(table.ends.len()).filter(|(column, _)| *column != row) {
            let pair = if receives { (column, row) } else { (row, column) };
            let rate = amount(cell).unwrap_or_else(|| {
                skips.push(line.number, format!("{} is no rate", shown(cell)));
                0.0
            });
            let mut sample = rated(&table.ends, Pattern::Peer, pair, bytes, rate * MIB);
            sample.isolated = false;
            table.put(sample, line.number, skips);
        }
        Step::Mine
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;
    use crate::sample::Status;
    use crate::topology::PathClass;

    const THREE: &str = "START mpiGraph v1.5\nMsgSize\t4096\nTimes\t5\nWindow\t5\nProcs\t3\n\n1 of 3 (33.3%)\nGathering results\n\nSend max\t9.0\n\
        Send\ta:0\ta:1\tb:2\t\na:0 to\t0.000\t1.000\t2.000\t\nbtl: a warning\na:1 to\t3.000\t0.000\t4.000\t\nb:2 to\t5.000\t0.000\t0.000\t\n\n\
        Recv\ta:0\ta:1\tb:2\t\na:0 from\t0.000\t11.000\t12.000\t\na:1 from\t13.000\t0.000\t14.000\t\nb:2 from\t15.000\tx\t0.000\t\nEND mpiGraph\n";

    #[test]
    fn rows_send_in_one_matrix_and_receive_in_the_other() {
        let (found, skipped) = tables(read, THREE);
        assert_eq!(
            found.iter().map(|table| (table.test.as_str(), table.orientation)).collect::<Vec<_>>(),
            [("Send", "row sends"), ("Recv", "row receives")]
        );
        near(rate(&found[0], 0, 2), 2.0 * 1_048_576.0);
        near(rate(&found[0], 2, 0), 5.0 * 1_048_576.0);
        near(rate(&found[1], 2, 0), 12.0 * 1_048_576.0);
        near(rate(&found[1], 0, 2), 15.0 * 1_048_576.0);
        let cells: Vec<_> = found.iter().map(|table| table.samples.len()).collect();
        assert_eq!(cells, [6, 6]);
        assert!(found[0].samples.iter().all(|sample| sample.bytes == 4096 && !sample.isolated));
        assert_eq!(found[0].samples.iter().find(|sample| (sample.from, sample.to) == (2, 1)).unwrap().status, Status::Waived);
        assert_eq!((found[0].samples[0].path, found[0].samples[1].path), (PathClass::IntraNode, PathClass::InterNode));
        assert_eq!((found[0].ends[2].label.as_str(), found[0].ends[2].host.as_deref()), ("b:2", Some("b")));
        assert_eq!((found[0].version.as_deref(), found[0].size_from), (Some("1.5"), SizeFrom::Told));
        assert_eq!(skipped, [(20, "\"x\" is no rate".to_owned())]);
    }

    #[test]
    fn a_matrix_alone_is_read_with_the_size_that_is_usual() {
        let (found, skipped) = tables(read, "Send n:0 n:1\nn:0 to 0.0 7.0\nn:0 to 0.0 7.0\nn:9 to 1.0 2.0\nn:1 from 1.0 0.0\nn:1 to 8.0\n");
        assert_eq!((found.len(), found[0].size_from, found[0].samples.len()), (1, SizeFrom::Default, 2));
        assert_eq!(found[0].samples[0].bytes, 16_384);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert_eq!(tables(read, "Send max\t9\nSending a:0\n").0, []);
        assert_eq!(tables(read, "START mpiGraph v1.5\nMsgSize 4\n").1[0].0, 1);
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, THREE);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("mpigraph") {
            let (found, skipped) = tables(read, &text);
            assert_eq!((found.len(), skipped.len()), (2, 0), "{name}: {skipped:?}");
            let ranks = found[0].ends.len();
            assert!(found.iter().all(|table| table.samples.len() == ranks * (ranks - 1)), "{name}");
        }
    }
}
