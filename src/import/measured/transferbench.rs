//! `TransferBench`: the matrices of its preset `p2p`, and transfers one by one, as text or as CSV (`OUTPUT_TO_CSV=1`). GB are 1e9 bytes. In
//! a bidirectional matrix each row has three lines: `->` from the row to the column, `<-` the other way at the same time, and their sum.

use std::collections::HashMap;

use super::dispatch::MOST_ENDS;
use super::rows::{Step, block, end, index, rated, settle, size, waived};
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern, Sample};

const GB: f64 = 1e9;
/// `DEFAULT_BYTES_PER_TRANSFER`, 2^26.
const DEFAULT_BYTES: u64 = 64 << 20;

#[derive(Default)]
struct Draft {
    version: Option<String>,
    bytes: Option<u64>,
    tables: Vec<Table>,
    /// of the matrix at hand: its title, line and whether both directions run; columns by label
    title: Option<(String, usize, bool)>,
    at: HashMap<String, usize>,
    /// place of its table
    matrix: usize,
    /// number of the test whose transfers are read, and the place of their table
    test: u32,
    transfers: Option<usize>,
    /// ends of that table by memory
    memories: HashMap<String, usize>,
    /// columns of CSV by name
    csv: Option<Csv>,
}

/// Where the cells of a transfer stand.
#[derive(Clone, Copy)]
struct Csv {
    test: usize,
    bytes: usize,
    src: usize,
    dst: usize,
    rate: usize,
}

impl Csv {
    fn of(text: &str) -> Option<Self> {
        if !text.starts_with("Test#,") {
            return None;
        }
        let titles: Vec<&str> = text.split(',').map(str::trim).collect();
        let at = |title: &str| titles.iter().position(|found| *found == title);
        Some(Self { test: 0, bytes: at("NumBytes")?, src: at("Src")?, dst: at("Dst")?, rate: at("BW(GB/s)")? })
    }
}

fn is_title(text: &str) -> bool {
    text.contains("directional copy peak bandwidth GB/s [")
}

/// `     Transfer 00  |  50.1 GB/s |  1.3 ms |  67108864 bytes | G0 -> GPU00:004 -> G1`.
fn is_transfer(text: &str) -> bool {
    text.starts_with("Transfer ") && text.contains(" GB/s") && text.contains(" bytes") && text.contains("->")
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    let starts = text.starts_with("TransferBench v") || text.starts_with("TransferBench p2p") || text.starts_with("Bytes Per Direction");
    if !(starts || is_title(text) || is_transfer(text) || text.starts_with("Test#,")) {
        return None;
    }
    let mut draft = Draft::default();
    let used = block(lines, skips, |line, skips| draft.line(line, line.number == first.number, skips));
    draft.tables.iter_mut().for_each(settle);
    draft.tables.retain(|table| !table.samples.is_empty());
    if draft.tables.is_empty() {
        skips.push(first.number, "TransferBench printed no rates of pairs here");
    }
    Some((draft.tables, used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, first: bool, skips: &mut Skips) -> Step {
        let text = line.text.trim();
        if let Some(version) = text.strip_prefix("TransferBench v") {
            if !first {
                return Step::End;
            }
            self.version = version.split_whitespace().next().map(named);
        } else if text.starts_with("TransferBench ") && first {
        } else if let Some(bytes) = text.strip_prefix("Bytes Per Direction") {
            self.bytes = size(bytes.trim_matches([' ', ',', ':'])).filter(|bytes| *bytes > 0);
        } else if is_title(text) {
            self.title = Some((named(text), line.number, text.starts_with("Bi")));
            self.at.clear();
        } else if text.starts_with("SRC") && text.contains('\\') && text.contains("DST") {
            return self.header(text, line, skips);
        } else if text.starts_with("CPU->CPU") || text.starts_with("Averages (During") {
            self.at.clear();
        } else if (text.starts_with("CPU ") || text.starts_with("GPU ")) && !self.at.is_empty() {
            return self.row(text, line, skips);
        } else if let Some(csv) = Csv::of(text) {
            self.csv = Some(csv);
        } else if let Some(csv) = self.csv.filter(|_| text.starts_with(|char: char| char.is_ascii_digit())) {
            return self.record(csv, text, line, skips);
        } else if let Some(test) = text.strip_prefix("Test ").and_then(|rest| rest.strip_suffix(':')) {
            self.test = index(test.trim()).unwrap_or(self.test + 1);
        } else if is_transfer(text) {
            return self.transfer(text, line, skips);
        } else if text.starts_with("Executor:")
            || text.starts_with("Aggregate (CPU)")
            || text.starts_with("Iter ")
            || text.starts_with("StandardDev")
        {
        } else if !(text.starts_with("===") || text.starts_with('[') || text.contains("<SNIP>") || is_setting(text)) {
            return Step::Strange;
        }
        Step::Mine
    }

    fn blank(&self, test: String, line: usize, orientation: &'static str, size_from: SizeFrom, ends: Vec<End>) -> Table {
        let on_cpus = ends.iter().all(|end| end.label.starts_with("CPU"));
        Table {
            tool: Tool::TransferBench,
            test,
            version: self.version.clone(),
            line,
            unit: "GB/s (1e9 bytes)",
            orientation,
            size_from,
            memory: if on_cpus && !ends.is_empty() { Memory::Host } else { Memory::Cuda },
            ends,
            samples: Vec::new(),
            collectives: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// `SRC+EXE\DST  CPU 00  GPU 00`, with commas between in CSV.
    fn header(&mut self, text: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let Some((title, at, both)) = self.title.clone() else { return Step::Strange };
        let text = text.replace(',', " ");
        let words: Vec<&str> = text.split_whitespace().skip(1).take(2 * MOST_ENDS).collect();
        let pairs: Option<Vec<End>> = words.chunks(2).map(|pair| if let [kind, at] = pair { labelled(kind, at) } else { None }).collect();
        self.at = pairs.iter().flatten().enumerate().map(|(at, end)| (end.label.clone(), at)).collect();
        let Some(ends) = pairs.filter(|ends| ends.len() == self.at.len() && !ends.is_empty()) else {
            self.at.clear();
            skips.push(line.number, format!("{} names no devices, or one twice: the matrix is left out", shown(&text)));
            return Step::Mine;
        };
        let size_from = if self.bytes.is_some() { SizeFrom::Told } else { SizeFrom::Default };
        let mut table = self.blank(title, at, if both { "row sends by ->, column by <-" } else { "row sends" }, size_from, ends);
        if both {
            table.notes.push("each direction as it was measured while the other ran too; each pair twice, from either end".to_owned());
        }
        table.notes.push("the title says who copies; memory of processors where an end is a CPU".to_owned());
        self.matrix = self.tables.len();
        table.keep(&mut self.tables, skips);
        Step::Mine
    }

    /// `GPU 01  <-   24.06  N/A`.
    fn row(&mut self, text: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let text = text.replace(',', " ");
        let words: Vec<&str> = text.split_whitespace().take(MOST_ENDS + 4).collect();
        let [kind, number, arrow, cells @ ..] = words.as_slice() else { return Step::Strange };
        let both = self.title.as_ref().is_some_and(|(_, _, both)| *both);
        let known = labelled(kind, number).and_then(|end| self.at.get(&end.label).copied());
        let (Some(row), Some(table)) = (known, self.tables.get_mut(self.matrix)) else {
            skips.push(line.number, format!("{} {} is not in the header", named(kind), named(number)));
            return Step::Strange;
        };
        let back = match *arrow {
            "->" => false,
            "<-" if both => true,
            // Their sum; and of each cell its extremes, with SHOW_ITERATIONS.
            "<->" | "min" | "max" | "sd" => return Step::Mine,
            _ => return Step::Strange,
        };
        if cells.len() != table.ends.len() {
            skips.push(line.number, format!("{} numbers in a row of {}: what is there is read", cells.len(), table.ends.len()));
        }
        let bytes = self.bytes.unwrap_or(DEFAULT_BYTES);
        for (column, cell) in cells.iter().enumerate().take(table.ends.len()) {
            let pair = if back { (column, row) } else { (row, column) };
            let pattern = match (column == row, both) {
                (true, true) => continue,
                (true, false) => Pattern::Local,
                (false, true) => Pattern::Duplex,
                (false, false) => Pattern::Peer,
            };
            let sample = match amount(cell) {
                Some(rate) => rated(&table.ends, pattern, pair, bytes, rate * GB),
                None if *cell == "N/A" => waived(&table.ends, pattern, pair, bytes, "N/A: not measured".to_owned()),
                None => {
                    skips.push(line.number, format!("{} is no rate", shown(cell)));
                    continue;
                }
            };
            // The row of the other end has the same direction once more.
            table.put(Sample { repeat: u32::from(back), ..sample }, line.number, skips);
        }
        Step::Mine
    }

    fn transfer(&mut self, text: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let parts: Vec<&str> = text.split(['|', ',']).map(str::trim).collect();
        let before = |unit: &str| parts.iter().find_map(|part| part.strip_suffix(unit)).map(str::trim);
        // The first part has the transfer's number; without bars, the rate stands behind it.
        let rate = before("GB/s").and_then(|rate| amount(rate.rsplit(' ').next()?));
        let way: Vec<&str> = parts.last().map(|way| way.split("->").map(str::trim).collect()).unwrap_or_default();
        let found = before("bytes").and_then(size).filter(|bytes| *bytes > 0).zip(rate);
        let (Some((bytes, rate)), [src, _, dst]) = (found, way.as_slice()) else {
            skips.push(line.number, format!("{} is no transfer with a rate, a size and two memories", shown(text)));
            return Step::Mine;
        };
        self.put(self.test, (src, dst), bytes, rate, line, skips);
        Step::Mine
    }

    fn record(&mut self, csv: Csv, text: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let numbers = index(cell(csv.test)).zip(size(cell(csv.bytes)).filter(|bytes| *bytes > 0)).zip(amount(cell(csv.rate)));
        let Some(((set, bytes), rate)) = numbers.filter(|_| !cell(csv.rate).is_empty()) else {
            skips.push(line.number, format!("{} is no transfer with a size and a rate", shown(text)));
            return Step::Mine;
        };
        self.put(set, (cell(csv.src), cell(csv.dst)), bytes, rate, line, skips);
        Step::Mine
    }

    /// One transfer between two memories, such as `G0` and `C1`.
    fn put(&mut self, test: u32, (src, dst): (&str, &str), bytes: u64, rate: f64, line: Line<'_>, skips: &mut Skips) {
        let (Some(from), Some(to)) = (memory(src), memory(dst)) else {
            skips.push(line.number, format!("{} has several memories, or none: of no pair", shown(&format!("{src} -> {dst}"))));
            return;
        };
        // Of what it adds, most is the table, if it is new, and two ends.
        let weight = size_of::<Table>() * usize::from(self.transfers.is_none()) + from.weight() + to.weight();
        if !skips.takes(line.number, weight) {
            return;
        }
        let place = self.transfers.unwrap_or(self.tables.len());
        if self.transfers.is_none() {
            let mut table = self.blank("transfers".to_owned(), line.number, "source sends", SizeFrom::Told, Vec::new());
            table.notes.push("transfers of one test run at the same time; a number each".to_owned());
            self.tables.push(table);
            self.transfers = Some(place);
        }
        let Some(table) = self.tables.get_mut(place) else { return };
        let mut at = |end: End| {
            let next = table.ends.len();
            let at = *self.memories.entry(end.label.clone()).or_insert(next);
            if at == next {
                table.ends.push(end);
            }
            at
        };
        let pair = (at(from), at(to));
        let pattern = if pair.0 == pair.1 { Pattern::Local } else { Pattern::Peer };
        let sample = rated(&table.ends, pattern, pair, bytes, rate * GB);
        table.put(Sample { set: Some(test), ..sample }, line.number, skips);
    }
}

/// `ALWAYS_VALIDATE      =            0 : Validating after all iterations`.
fn is_setting(text: &str) -> bool {
    text.split_once(" = ")
        .or_else(|| text.split_once("= "))
        .is_some_and(|(name, _)| name.trim().bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit()))
}

/// `GPU` and `00`.
fn labelled(kind: &str, number: &str) -> Option<End> {
    let number = index(number)?;
    match kind {
        "GPU" => Some(End { gpu: Some(number), ..end(&format!("GPU {number}")) }),
        "CPU" => Some(end(&format!("CPU {number}"))),
        _ => None,
    }
}

/// `G0` and its kinds (F: fine-grained) lie on GPUs, `C0` and its kinds (B, D, H: pinned, coherent) on processors.
fn memory(word: &str) -> Option<End> {
    let (kind, number) = word.split_at_checked(1)?;
    let kind = match kind {
        "G" | "F" | "M" => "GPU",
        "C" | "B" | "D" | "K" | "H" | "P" | "U" => "CPU",
        _ => return None,
    };
    labelled(kind, number)
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{corpus, damage, near, rate, tables};
    use super::*;
    use crate::sample::Status;

    const P2P: &str = "TransferBench v1.50\n====\n[Common]\nALWAYS_VALIDATE      =            0 : Validating\n<SNIP>\nBytes Per Direction 4194304\n\
        Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)\n   SRC+EXE\\DST    CPU 00       GPU 00    GPU 01\n\
        \x20  CPU 00  ->     24.00        17.00     16.00\n\n   GPU 00  ->     23.00       108.00     64.00\n   GPU 01  ->       N/A        66.00    109.00\n\
        \x20                 CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU\nAverages (During UniDir):     22.23     16.35     23.77     37.74\n\n\
        Bidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)\n   SRC\\DST    CPU 00       GPU 00    GPU 01\n\
        \x20  GPU 00  ->     23.99          N/A     62.40\n   GPU 00 <-      16.87          N/A     65.21\n   GPU 00 <->     40.85          N/A    127.61\n\n\
        \x20  GPU 01  ->     24.11        65.10     oops\n";

    #[test]
    fn rows_are_of_the_matrix_whose_header_stands_above() {
        let transfer = "Transfer 00 | 50.1 GB/s | 1.3 ms | 67108864 bytes | G0 -> GPU00:004 -> G1\n";
        let (found, _) = tables(read, &P2P.replacen("   GPU 01  ->       N/A", &format!("{transfer}   GPU 01  ->       N/A"), 1));
        assert_eq!(found.iter().map(|table| (table.line, table.samples.len())).collect::<Vec<_>>(), [(7, 9), (12, 1), (17, 6)]);
    }

    #[test]
    fn rows_send_and_arrows_back_receive() {
        let (found, skipped) = tables(read, P2P);
        assert_eq!(found.iter().map(|table| (table.line, table.samples.len())).collect::<Vec<_>>(), [(7, 9), (16, 6)]);
        near(rate(&found[0], 0, 2), 16e9);
        near(rate(&found[0], 2, 1), 66e9);
        near(rate(&found[0], 1, 1), 108e9);
        assert_eq!(found[0].samples.iter().find(|sample| (sample.from, sample.to) == (2, 0)).unwrap().status, Status::Waived);
        near(rate(&found[1], 1, 2), 62.4e9);
        near(rate(&found[1], 2, 1), 65.21e9);
        let back: Vec<_> =
            found[1].samples.iter().filter(|sample| (sample.from, sample.to) == (2, 1)).map(|sample| sample.repeat).collect();
        assert_eq!(back, [1, 0]);
        assert!(found[0].samples.iter().all(|sample| sample.bytes == 4 << 20));
        assert_eq!((found[0].version.as_deref(), found[0].ends[2].gpu, found[0].ends[0].gpu), (Some("1.50"), Some(1), None));
        assert_eq!(skipped, []);
    }

    #[test]
    fn csv_of_the_preset_is_the_same_table() {
        let text = "Bytes Per Direction,1024\nUnidirectional copy peak bandwidth GB/s [Remote read / Local write] (GPU-Executor: DMA)\n\
            SRC\\EXE+DST,    CPU 00,    GPU 00,\n  CPU 00  ->,     2.00,     3.00,\n  GPU 00  ->,     4.00,   5.00,\n  GPU 00  min,  1, 1,\n  GPU 07 ->, 1, 1\n";
        let (found, skipped) = tables(read, text);
        near(rate(&found[0], 0, 1), 3e9);
        near(rate(&found[0], 1, 0), 4e9);
        assert_eq!((found[0].samples.len(), found[0].samples[0].bytes), (4, 1024));
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn transfers_of_one_test_run_together() {
        let text = "TransferBench v1.52\nTest 1:\n Executor: GPU 00 |  50.000 GB/s |    1.300 ms |     67108864 bytes | 50.000  GB/s (sum)\n\
            \x20    Transfer 00  |  50.000 GB/s |    1.300 ms |     67108864 bytes | G0 -> GPU00:004 -> G1\n Aggregate (CPU)  |  1 GB/s |\nTest 2:\n\
            \x20    Transfer 00  |  10.000 GB/s |    1.300 ms |     1024 bytes | C0 -> GPU00:004 -> G1\n     Transfer 01  |  11.000 GB/s |    1.300 ms |     1024 bytes | G1 -> GPU00:004 -> C0\n\
            \x20    Transfer 02  |  11.000 GB/s |    1.300 ms |     1024 bytes | G1G0 -> GPU00:004 -> C0\n";
        let (found, skipped) = tables(read, text);
        let told: Vec<_> = found[0].samples.iter().map(|sample| (sample.pattern, sample.set, sample.bytes)).collect();
        assert_eq!(told, [(Pattern::Peer, None, 64 << 20), (Pattern::Custom, Some(2), 1024), (Pattern::Custom, Some(2), 1024)]);
        assert_eq!(found[0].ends.iter().map(|end| end.label.as_str()).collect::<Vec<_>>(), ["GPU 0", "GPU 1", "CPU 0"]);
        near(rate(&found[0], 2, 1), 10e9);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn csv_of_transfers_has_a_line_each() {
        let text = "Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms),SrcAddr,DstAddr\n1,1,4096,G0,G0,C1,4,25.5,1.3,0x1,0x2\n1,2,4096,,G0,C1,4,25.5,1.3,0x1,0x2\n";
        let (found, skipped) = tables(read, text);
        near(rate(&found[0], 0, 1), 25.5e9);
        assert_eq!((found[0].samples[0].set, skipped.iter().map(|skip| skip.0).collect::<Vec<_>>()), (None, vec![3]));
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, P2P);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("transferbench") {
            let (found, skipped) = tables(read, &text);
            let expected: &[usize] = if name.contains("v1.50") { &[100, 180] } else { &[100] };
            assert_eq!(found.iter().map(|table| table.samples.len()).collect::<Vec<_>>(), expected, "{name}: {skipped:?}");
            assert_eq!(skipped, [], "{name}");
        }
    }
}
