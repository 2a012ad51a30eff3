//! `ucx_perftest`, as text and as CSV (`-v`). The client sends, or gets. Megabytes are 2^20 bytes (`tools/perf/perftest_run.c`). The client
//! does not say how large its messages are: that is worked out of its rate of bytes and its rate of messages.

use super::rows::{MIB, Step, block, end, grouped, rated, size, value};
use super::{SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, named, shown};
use crate::sample::{Memory, Pattern};

/// The last words of a result's row, behind the test's name: iterations, three times, two rates of bytes, two of messages.
const COLUMNS: usize = 8;
/// With several threads: iterations, time, rate of bytes, rate of messages.
const THREADED: usize = 4;

struct Row {
    line: usize,
    name: String,
    iterations: f64,
    /// bytes/s
    rate: f64,
    /// messages/s
    messages: f64,
    last: bool,
}

impl Row {
    /// Bytes of a message, as told or as the rates say: exact where they are printed with digits enough, else the power of two that they
    /// allow, else what is nearest.
    fn bytes(&self, told: Option<u64>) -> (u64, SizeFrom) {
        if let Some(bytes) = told {
            return (bytes, SizeFrom::Told);
        }
        let bytes = self.rate / self.messages;
        if !bytes.is_finite() || !(0.5..=1e15).contains(&bytes) {
            return (1, SizeFrom::Default);
        }
        // Half of the last printed digit of either.
        let doubt = bytes * (0.005 * MIB / self.rate + 0.5 / self.messages);
        let power = 2.0_f64.powi(bytes.log2().round() as i32);
        if (power - bytes).abs() <= doubt {
            (power as u64, SizeFrom::Told)
        } else {
            (bytes.round() as u64, if doubt < 0.5 { SizeFrom::Told } else { SizeFrom::Default })
        }
    }
}

#[derive(Default)]
struct Draft {
    test: Option<String>,
    bytes: Option<u64>,
    memory: Memory,
    csv: bool,
    header: bool,
    rows: Vec<Row>,
}

fn is_csv(text: &str) -> bool {
    text.contains("iterations,") && text.contains("_percentile_lat,")
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    let starts = text.starts_with("| API:") || text.contains("(usec)") && text.contains("bandwidth (MB/s)") || is_csv(text);
    if !starts {
        return None;
    }
    let mut draft = Draft::default();
    let used = block(lines, skips, |line, _| draft.line(line, line.number == first.number));
    if draft.rows.is_empty() {
        skips.push(first.number, "ucx_perftest printed no results here: the client prints them, not the server");
    }
    Some((draft.finish(first.number, skips), used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, first: bool) -> Step {
        let text = line.text.trim();
        if text.starts_with("| API:") && !first {
            return Step::End;
        }
        if is_csv(text) || text.contains("(usec)") && text.contains("bandwidth (MB/s)") {
            if self.header {
                return Step::End;
            }
            self.header = true;
            self.csv = is_csv(text);
            return Step::Mine;
        }
        if let Some(test) = text.strip_prefix("| Test:") {
            self.test = Some(named(test.trim_end_matches('|')));
        } else if let Some(bytes) = value(text, "| Message size") {
            self.bytes = size(bytes).filter(|bytes| *bytes > 0);
        } else if let Some(kind) = value(text, "| Send memory").or_else(|| value(text, "| Recv memory")) {
            if kind.starts_with("cuda") || kind.starts_with("rocm") {
                self.memory = Memory::Cuda;
            }
        } else if text.starts_with('+') || text.starts_with('|') {
            // Rules, titles of columns, names of tests of a batch.
            let name = text.trim_matches(['+', '-', '|', ' ']);
            if text.starts_with('+') && !name.is_empty() && !name.contains('+') {
                self.test = Some(named(name));
            }
        } else if !self.header {
            return Step::Strange;
        } else if let Some(row) = if self.csv { Self::csv(line) } else { self.text(line) } {
            self.rows.push(row);
        } else {
            return Step::Strange;
        }
        Step::Mine
    }

    fn text(&self, line: Line<'_>) -> Option<Row> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        // Behind may stand what `-x` adds.
        let start = words.iter().position(|word| grouped(word).is_some())?;
        let numbers: Vec<f64> = words[start..].iter().map_while(|word| grouped(word)).take(COLUMNS).collect();
        let before = words[..start].join(" ");
        let thread = before.starts_with("[thread");
        let name = match before.as_str() {
            "Final:" | "" => self.test.clone().unwrap_or_default(),
            other => named(other),
        };
        Self::row(line.number, name, &numbers, !thread)
    }

    fn csv(line: Line<'_>) -> Option<Row> {
        let text = line.text.trim();
        let (thread, text) = match text.strip_prefix("[thread ") {
            Some(rest) => (true, rest.split_once(']')?.1),
            None => (false, text),
        };
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let numeric = cells.iter().rev().take_while(|cell| grouped(cell).is_some()).count();
        let columns = if numeric >= COLUMNS { COLUMNS } else { THREADED };
        let start = cells.len().checked_sub(columns)?;
        let numbers: Option<Vec<f64>> = cells[start..].iter().map(|cell| grouped(cell)).collect();
        // An interim row has its thread behind the names.
        let names: Vec<&str> = cells[..start].iter().copied().filter(|cell| !cell.starts_with('[')).collect();
        Self::row(line.number, named(&names.join("/")), &numbers?, !thread)
    }

    fn row(line: usize, name: String, numbers: &[f64], last: bool) -> Option<Row> {
        let ([iterations, _, _, _, _, rate, _, messages] | [iterations, _, rate, messages]) = *numbers else { return None };
        Some(Row { line, name, iterations, rate: rate * MIB, messages, last })
    }

    fn finish(self, start: usize, skips: &mut Skips) -> Vec<Table> {
        let mut tables: Vec<Table> = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let (bytes, size_from) = row.bytes(self.bytes);
            // Progress is told of a test that goes on: the last row counts it all.
            let goes_on = self.rows.get(at + 1).is_some_and(|next| {
                next.name == row.name && next.iterations >= row.iterations && next.bytes(self.bytes).0 == bytes && (next.last || !row.last)
            });
            if !row.last || goes_on && self.csv {
                continue;
            }
            let gets = row.name.to_ascii_lowercase().split(|char: char| !char.is_ascii_alphanumeric()).any(|word| word == "get");
            let ends = vec![end("client"), end("server")];
            let pair = if gets { (1, 0) } else { (0, 1) };
            // Of small messages in slow tests, the rate of bytes is printed as 0.00.
            let rate = if row.rate < 0.1 * MIB { bytes as f64 * row.messages } else { row.rate };
            let sample = rated(&ends, Pattern::Peer, pair, bytes, rate);
            if sample.seconds.is_none() {
                skips.push(row.line, "a row without a rate");
            }
            let mut notes = Vec::new();
            if self.bytes.is_none() {
                notes.push("the size is the rate of bytes over the rate of messages".to_owned());
            }
            if !self.csv {
                notes.push("as the client's own completions count; one-sided tests end before the bytes arrive".to_owned());
            }
            let mut table = Table {
                tool: Tool::UcxPerftest,
                test: if row.name.is_empty() { "ucx_perftest".to_owned() } else { row.name.clone() },
                version: None,
                line: if tables.is_empty() { start } else { row.line },
                unit: "MB/s (2^20 bytes)",
                orientation: if gets { "the client gets from the server" } else { "the client sends to the server" },
                size_from,
                memory: self.memory,
                ends,
                samples: Vec::new(),
                collectives: Vec::new(),
                notes,
            };
            table.put(sample, row.line, skips);
            table.keep(&mut tables, skips);
        }
        if tables.is_empty() && !self.rows.is_empty() {
            skips.push(self.rows[0].line, format!("{} is progress of a test whose last row is not there", shown(&self.rows[0].name)));
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;

    /// As version 1.13 prints it.
    const CLIENT: &str = "+--------------+--------------+------------------------------+---------------------+-----------------------+\n\
        |              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n\
        +--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n\
        |    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |\n\
        +--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n\
        [thread 0]             10000      3.700    28.300    28.300     2100.00    2100.00       33600       33600\n\
        Final:                 20000      3.730    28.348    28.348     2204.73    2204.73       35276       35276\n";

    #[test]
    fn the_client_tells_rates_of_bytes_and_of_messages() {
        let (found, skipped) = tables(read, CLIENT);
        assert_eq!((found.len(), skipped.len()), (1, 0), "{skipped:?}");
        assert_eq!((found[0].samples[0].bytes, found[0].size_from, found[0].line), (65_536, SizeFrom::Told, 2));
        near(rate(&found[0], 0, 1), 2204.73 * 1_048_576.0);
    }

    #[test]
    fn csv_has_a_row_a_test() {
        let text = "put_lat,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n\
            8,10000,3.961,4.065,4.065,1.88,1.88,246015,246015\n8,20000,3.961,4.065,4.065,1.88,1.90,246015,249000\n4096,20000,1,2,3,4,976.56,1,250000\n";
        let (found, _) = tables(read, text);
        let told: Vec<_> = found.iter().map(|table| (table.test.as_str(), table.samples[0].bytes)).collect();
        assert_eq!(told, [("8", 8), ("4096", 4096)]);
        near(rate(&found[0], 0, 1), 1.90 * 1_048_576.0);
    }

    #[test]
    fn what_the_server_says_of_the_test_is_taken() {
        let text = format!(
            "| API:          protocol layer   |\n| Test:         get bandwidth   |\n| Send memory:  cuda   |\n| Recv memory:  host  |\n| Message size: 65000   |\n{CLIENT}"
        );
        let (found, _) = tables(read, &text);
        assert_eq!((found[0].test.as_str(), found[0].samples[0].bytes, found[0].memory), ("get bandwidth", 65_000, Memory::Cuda));
        assert_eq!((found[0].samples[0].from, found[0].samples[0].to), (1, 0));
    }

    #[test]
    fn a_server_alone_and_a_test_that_was_cut_are_told() {
        assert_eq!(tables(read, "| API:  protocol layer |\n| Test:  tag match latency |\n").1[0].0, 1);
        let cut: String = CLIENT.split_inclusive('\n').take(6).collect();
        assert!(tables(read, &cut).1[0].1.contains("progress"));
        assert_eq!(tables(read, "iterations,and,more\n| APIs\n"), (vec![], vec![]));
    }

    #[test]
    fn a_final_row_alone_and_several_threads_are_read() {
        let head: String = CLIENT.split_inclusive('\n').take(5).collect();
        let found = tables(read, &format!("{head}   tag_bw  20,000  4.318  4.468  4.468  1.71  1.71  223815  223815\n")).0;
        assert_eq!((found[0].test.as_str(), found[0].samples[0].bytes), ("tag_bw", 8));
        let found = tables(read, &format!("{head}Final:  40000  1.000  2000.00  2048\n")).0;
        assert_eq!(found[0].samples[0].bytes, 1_024_000);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("ucx") {
            let (found, skipped) = tables(read, &text);
            assert!(!found.is_empty() && skipped.is_empty(), "{name}: {skipped:?}");
        }
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, CLIENT);
    }
}
