//! nvloom: matrices of all GPUs of a job, and CSV of chosen copies. GB are 1e9 bytes (`library/nvloom.cpp`). In a matrix the column's GPU
//! sends and the row's receives, whichever of them makes the copy (`cli/testcases.cpp`: `output.set(i, j, ...)` with the source first).
//! Both `N/A` and 0 are cells that were not measured.

use super::dispatch::{MOST_ENDS, MOST_SAMPLES};
use super::rows::{Step, block, end, index, rated, settle, size, waived};
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern};

const GB: f64 = 1e9;
const DEFAULT_BYTES: u64 = 512 << 20;

/// What the cells of a test are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// column to row
    Pairs,
    /// both at once, summed
    Both,
    /// `0->4` in each row, all at the same time
    Bisect,
    /// samples that name their pair: `46.1;(0-5)`
    Named { both: bool },
    /// chosen copies, as CSV
    Chosen,
}

impl Kind {
    /// By the test's name; why its numbers are of no pair otherwise. `None` if no test of nvloom has such a name.
    fn of(name: &str) -> Option<Result<Self, &'static str>> {
        let has = |word: &str| name.contains(word);
        Some(if name.starts_with("gpu_to_rack") {
            Ok(Self::Named { both: has("_bidir_") })
        } else if name.starts_with("rack_to_rack") {
            Err("of racks: many pairs at once, summed")
        } else if name.starts_with("bisect_") {
            Ok(Self::Bisect)
        } else if name.starts_with("all_to_one") || name.starts_with("all_from_one") {
            Err("the sum of a fan: of no pair of GPUs")
        } else if name.starts_with("multicast_") {
            Err("of multicast: of no pair of GPUs")
        } else if name.starts_with("latency_") {
            Err("the latency of single loads, of no message")
        } else if name.starts_with("csv_pattern") {
            Ok(Self::Chosen)
        } else if has("_to_") && has("_unidir_") {
            Ok(Self::Pairs)
        } else if has("_to_") && has("_bidir_") {
            Ok(Self::Both)
        } else {
            return None;
        })
    }
}

#[derive(Default)]
struct Draft {
    version: Option<String>,
    bytes: Option<u64>,
    /// as the processes are listed
    ends: Vec<End>,
    kind: Option<Kind>,
    test: (String, usize),
    /// ends of the columns
    columns: Vec<usize>,
    /// the header of CSV was read
    csv: bool,
    tables: Vec<Table>,
}

fn is_csv(text: &str) -> bool {
    text.starts_with("measurement_id,") && text.contains("gpu_src_id")
}

fn test(text: &str) -> Option<&str> {
    text.strip_prefix("Running ").map(str::trim).filter(|name| !name.contains([' ', '.']))
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    if !(text.starts_with("nvloom_cli ") || is_csv(text) || test(text).and_then(Kind::of).is_some()) {
        return None;
    }
    let mut draft = Draft::default();
    let used = block(lines, skips, |line, skips| draft.line(line, line.number == first.number, skips));
    draft.tables.retain(|table| !table.samples.is_empty());
    draft.tables.iter_mut().for_each(settle);
    if draft.tables.is_empty() {
        skips.push(first.number, "nvloom printed no rates of pairs here");
    }
    Some((draft.tables, used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, first: bool, skips: &mut Skips) -> Step {
        let text = line.text.trim();
        if let Some(version) = text.strip_prefix("nvloom_cli ") {
            if !first {
                return Step::End;
            }
            self.version = Some(named(version));
        } else if let Some(megabytes) = super::rows::value(text, "Buffer size").filter(|_| text.ends_with("MiB")) {
            self.bytes = size(megabytes).filter(|megabytes| (1..1 << 30).contains(megabytes)).map(|megabytes| megabytes << 20);
        } else if let Some(process) = text.strip_prefix("Process ") {
            self.process(process, line, skips);
        } else if let Some(name) = test(text) {
            return self.begin(name, line, skips);
        } else if is_csv(text) {
            self.csv = true;
            if self.kind != Some(Kind::Chosen) {
                self.test = ("csv_pattern".to_owned(), line.number);
            }
            self.kind = Some(Kind::Chosen);
            self.table("source sends", SizeFrom::Told, skips);
        } else if self.csv {
            return self.chosen(text, line, skips);
        } else if [
            "Done ",
            "ExecutionTime ",
            "Min ",
            "Avg ",
            "Max ",
            "Total ",
            "git commit",
            "NVCC ",
            "CUDA ",
            "Driver ",
            "Allocation ",
            "Iteration ",
        ]
        .iter()
        .any(|word| text.starts_with(word))
        {
            if text.starts_with("Min ") || text.starts_with("Done ") {
                (self.kind, self.columns) = (None, Vec::new());
            }
        } else if let Some(kind) = self.kind {
            return self.cells(kind, line, skips);
        } else {
            // Rows of a test that is left out.
            return if line.text.contains('\t') && !self.test.0.is_empty() { Step::Mine } else { Step::Strange };
        }
        Step::Mine
    }

    /// `Process  3 (node1): device 3: NVIDIA GB200 (00000019:01:00); rackGuid: 12`.
    fn process(&mut self, text: &str, line: Line<'_>, skips: &mut Skips) {
        let Some((at, rest)) = text.trim().split_once(' ') else { return };
        let Some(at) = index(at).map(|at| at as usize).filter(|at| *at == self.ends.len() && *at < MOST_ENDS) else { return };
        let host = rest.trim().strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(host, _)| named(host));
        let device = rest.split_once("device ").map_or("", |(_, device)| device);
        let (gpu, model) = device.split_once(':').unwrap_or((device, ""));
        let (model, pci) = model.split_once('(').unwrap_or((model, ""));
        let full = |text: &str| Some(named(text)).filter(|text| !text.is_empty());
        let end = End {
            label: format!("GPU {at}"),
            host,
            gpu: index(gpu.trim()),
            pci: pci.split_once(')').and_then(|(pci, _)| full(pci)),
            model: full(model),
        };
        if skips.takes(line.number, end.weight()) {
            self.ends.push(end);
        }
    }

    fn begin(&mut self, name: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let Some(kind) = Kind::of(name) else { return Step::End };
        (self.columns, self.csv, self.test) = (Vec::new(), false, (named(name), line.number));
        if let Err(why) = kind {
            skips.push(line.number, format!("{} is {why}", shown(name)));
        }
        self.kind = kind.ok();
        Step::Mine
    }

    fn table(&mut self, orientation: &'static str, size_from: SizeFrom, skips: &mut Skips) {
        let mut notes = Vec::new();
        match self.kind {
            Some(Kind::Both | Kind::Named { both: true }) => notes.push("the sum of both directions, half of it for each".to_owned()),
            Some(Kind::Bisect) => notes.push("all at the same time".to_owned()),
            _ => {}
        }
        if !self.test.0.contains("device_to_device") && self.test.0.contains("egm") {
            notes.push("memory of processors that GPUs reach (EGM)".to_owned());
        }
        let table = Table {
            tool: Tool::Nvloom,
            test: self.test.0.clone(),
            version: self.version.clone(),
            line: self.test.1,
            unit: "GB/s (1e9 bytes)",
            orientation,
            size_from,
            memory: Memory::Cuda,
            ends: self.ends.clone(),
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        };
        table.keep(&mut self.tables, skips);
    }

    /// The end of a number, made if it was not listed.
    fn end(table: &mut Table, at: u32, line: Line<'_>, skips: &mut Skips) -> Option<usize> {
        let at = at as usize;
        // One beyond those that are known at most: numbers of a damaged file are not to be believed.
        if at >= MOST_ENDS || at > 4 * (table.ends.len() + table.samples.len() + 64) {
            return None;
        }
        while table.ends.len() <= at {
            let end = end(&format!("GPU {}", table.ends.len()));
            if !skips.takes(line.number, end.weight()) {
                return None;
            }
            table.ends.push(end);
        }
        Some(at)
    }

    fn size(&self) -> (u64, SizeFrom) {
        self.bytes.map_or((DEFAULT_BYTES, SizeFrom::Default), |bytes| (bytes, SizeFrom::Told))
    }

    /// A header or a row of a matrix.
    fn cells(&mut self, kind: Kind, line: Line<'_>, skips: &mut Skips) -> Step {
        let words: Vec<&str> = line.text.split_whitespace().filter(|word| *word != "|").take(MOST_ENDS + 2).collect();
        let Some(label) = words.first() else { return Step::Strange };
        let (bytes, size_from) = self.size();
        if self.columns.is_empty() {
            let labels: Option<Vec<usize>> = words.iter().map(|word| index(word).map(|at| at as usize)).collect();
            let racks = matches!(kind, Kind::Named { .. });
            let Some(labels) = labels.or(racks.then(|| vec![0; words.len()])) else { return Step::Strange };
            let orientation = match kind {
                Kind::Both => "both ways at the same time",
                Kind::Bisect => "as the row's label says",
                Kind::Named { .. } => "the first of the pair in brackets sends",
                _ => "column sends",
            };
            if self.ends.len() * (self.tables.len() + 1) > MOST_SAMPLES {
                skips.push(line.number, "more matrices of so many GPUs than are kept of a file");
                self.kind = None;
                return Step::Mine;
            }
            self.table(orientation, size_from, skips);
            if skips.is_spent() {
                return Step::End;
            }
            let Some(table) = self.tables.last_mut() else { return Step::Strange };
            if !racks
                && kind != Kind::Bisect
                && labels.iter().any(|at| u32::try_from(*at).ok().and_then(|at| Self::end(table, at, line, skips)).is_none())
            {
                skips.push(line.number, "the header names more GPUs than it has columns: the matrix is left out");
                self.kind = None;
                return Step::Mine;
            }
            self.columns = labels;
            return Step::Mine;
        }
        let Some(table) = self.tables.last_mut() else { return Step::Strange };
        match kind {
            Kind::Pairs | Kind::Both => {
                let Some(row) = index(label).and_then(|at| Self::end(table, at, line, skips)) else { return Step::Strange };
                if words.len() != self.columns.len() + 1 {
                    skips.push(line.number, format!("{} cells in a row of {}: what is there is read", words.len() - 1, self.columns.len()));
                }
                for (column, cell) in self.columns.iter().zip(&words[1..]).filter(|(column, _)| **column != row) {
                    put(table, (*column, row), cell, bytes, kind, line, skips);
                }
            }
            Kind::Bisect => {
                let pair = label.split_once("->").and_then(|(from, to)| Some((index(from)?, index(to)?)));
                let Some((from, to)) =
                    pair.and_then(|(from, to)| Some((Self::end(table, from, line, skips)?, Self::end(table, to, line, skips)?)))
                else {
                    return Step::Strange;
                };
                if let Some(cell) = words.get(1).filter(|_| from != to) {
                    put(table, (from, to), cell, bytes, kind, line, skips);
                }
            }
            Kind::Named { .. } => {
                for (cell, pair) in words[1..].iter().filter_map(|cell| cell.split_once(";(")) {
                    let pair = pair.trim_end_matches(')').split_once('-').and_then(|(from, to)| Some((index(from)?, index(to)?)));
                    let pair = pair.and_then(|(from, to)| Some((Self::end(table, from, line, skips)?, Self::end(table, to, line, skips)?)));
                    if let Some(pair) = pair.filter(|(from, to)| from != to) {
                        put(table, pair, cell, bytes, kind, line, skips);
                    }
                }
                if !line.text.contains(";(") && table.samples.is_empty() {
                    skips.push(self.test.1, "medians over racks name no pair: `--richOutput` prints the pairs");
                    self.kind = None;
                }
            }
            Kind::Chosen => return Step::Strange,
        }
        Step::Mine
    }

    /// A row of CSV; rows with the same number ran at the same time.
    fn chosen(&mut self, text: &str, line: Line<'_>, skips: &mut Skips) -> Step {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let Some(set) = cells.first().and_then(|set| index(set)).filter(|_| cells.len() >= 12) else {
            if text.starts_with(|char: char| char.is_ascii_digit()) {
                skips.push(line.number, format!("{} cells of 12: the row is left out", cells.len()));
                return Step::Mine;
            }
            return Step::Strange;
        };
        let Some(table) = self.tables.last_mut() else { return Step::Strange };
        let result = cells.last().and_then(|result| amount(result));
        let ends = index(cells[2])
            .zip(index(cells[3]))
            .and_then(|(from, to)| Some((Self::end(table, from, line, skips)?, Self::end(table, to, line, skips)?)));
        match (cells[1], ends, size(cells[9]).filter(|bytes| *bytes > 0), result) {
            ("latency", ..) => skips.push(line.number, "the latency of single loads, of no message"),
            ("bandwidth", Some((from, to)), Some(bytes), Some(rate)) => {
                let pattern = if from == to { Pattern::Local } else { Pattern::Peer };
                let mut sample = rated(&table.ends, pattern, (from, to), bytes, rate * GB);
                sample.set = Some(set);
                table.put(sample, line.number, skips);
            }
            _ => skips.push(line.number, format!("{} is not told with GPUs, a size and a result", shown(text))),
        }
        Step::Mine
    }
}

/// A cell of a matrix.
fn put(table: &mut Table, pair: (usize, usize), cell: &str, bytes: u64, kind: Kind, line: Line<'_>, skips: &mut Skips) {
    let pattern = match kind {
        Kind::Both | Kind::Named { both: true } => Pattern::Duplex,
        Kind::Bisect => Pattern::Custom,
        _ => Pattern::Peer,
    };
    let sample = match amount(cell) {
        Some(rate) if rate > 0.0 => {
            rated(&table.ends, pattern, pair, bytes, if pattern == Pattern::Duplex { rate / 2.0 } else { rate } * GB)
        }
        Some(_) => waived(&table.ends, pattern, pair, bytes, "0: not measured".to_owned()),
        None if cell.starts_with("N/A") => waived(&table.ends, pattern, pair, bytes, "N/A: not measured".to_owned()),
        None => {
            skips.push(line.number, format!("{} is no rate", shown(cell)));
            return;
        }
    };
    let custom = pattern == Pattern::Custom;
    table.put(crate::sample::Sample { set: custom.then_some(0), ..sample }, line.number, skips);
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{damage, near, rate, tables};
    use super::*;
    use crate::sample::Status;
    use crate::topology::PathClass;

    const RUN: &str = "nvloom_cli 1.3.0\ngit commit: abc\nBuffer size: 256 MiB\nIteration count: 16\n\
        Process 0 (n1): device 0: NVIDIA GB200 (00000008:01:00); rackGuid: r\nProcess 1 (n1): device 1: NVIDIA GB200 (00000009:01:00); rackGuid: r\n\
        Process 2 (n2): device 0: NVIDIA GB200 (00000008:01:00); rackGuid: r\n\nRunning device_to_device_unidir_write_ce\n\t0\t1\t2\t\n\
        0\tN/A\t10.00\t20.00\t\n1\t30.00\tN/A\tN/A\t\n2\t50.00\t0\tN/A\t\n\nMin device_to_device_unidir_write_ce 10.00 GB/s\n\
        ExecutionTime x 1 s\nDone device_to_device_unidir_write_ce\n\nRunning bisect_device_to_device_write_ce\n\t0\t\n0->2\t7.00\t\n2->1\t8.00\t\n\nMin b 1\n\
        Running all_to_one_device_to_device_write_ce\n\t0\t\n0\t700.00\t\n1\t800.00\t\nMin a 1\nDone a\n\
        Running device_to_device_bidir_read_ce\n\t0\t1\t\n0\tN/A\t60.00\t\n1\t60.00\tx\t\n";

    #[test]
    fn columns_send_and_rows_receive() {
        let (found, skipped) = tables(read, RUN);
        let told: Vec<_> = found.iter().map(|table| (table.line, table.orientation, table.samples.len())).collect();
        assert_eq!(told, [(9, "column sends", 6), (19, "as the row's label says", 2), (31, "both ways at the same time", 2)]);
        near(rate(&found[0], 1, 0), 10e9);
        near(rate(&found[0], 0, 1), 30e9);
        near(rate(&found[0], 0, 2), 50e9);
        let missing: Vec<_> =
            found[0].samples.iter().filter(|sample| sample.status == Status::Waived).map(|sample| (sample.from, sample.to)).collect();
        assert_eq!(missing, [(2, 1), (1, 2)]);
        assert_eq!((found[0].samples[0].path, found[0].samples[1].path), (PathClass::IntraNode, PathClass::InterNode));
        near(rate(&found[1], 2, 1), 8e9);
        assert!(found[1].samples.iter().all(|sample| sample.pattern == Pattern::Custom && sample.set == Some(0)));
        near(rate(&found[2], 0, 1), 30e9);
        assert!(found.iter().all(|table| table.samples.iter().all(|sample| sample.bytes == 256 << 20)));
        let gpu = &found[0].ends[1];
        assert_eq!(
            (gpu.host.as_deref(), gpu.gpu, gpu.pci.as_deref(), gpu.model.as_deref()),
            (Some("n1"), Some(1), Some("00000009:01:00"), Some("NVIDIA GB200"))
        );
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [25], "{skipped:?}");
    }

    #[test]
    fn chosen_copies_say_all_themselves() {
        let text = "measurement_id, bandwidth/latency, gpu_src_id, gpu_dst_id, iteration_count, mem_src_type, mem_dst_type, write/read, ce/sm/multicast, buffer_size, comment, result [GB/s] [ns]\n\
            0, bandwidth, 0, 3, 16, device, device, write, ce, 1048576, c, 10.5\n1, bandwidth, 1, 2, 16, device, device, read, sm, 4096, , 2\n\
            1, bandwidth, 2, 1, 16, device, device, read, sm, 4096, , 3\n2, latency, 0, 1, 1024, device, ignored, ignored, ignored, ignored, , 800\n3, bandwidth, 0\n";
        let (found, skipped) = tables(read, text);
        let told: Vec<_> =
            found[0].samples.iter().map(|sample| (sample.pattern, sample.set, sample.from, sample.to, sample.bytes)).collect();
        assert_eq!(
            told,
            [(Pattern::Peer, None, 0, 3, 1_048_576), (Pattern::Custom, Some(1), 1, 2, 4096), (Pattern::Custom, Some(1), 2, 1, 4096)]
        );
        near(rate(&found[0], 0, 3), 10.5e9);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn samples_over_racks_are_read_where_they_name_their_pairs() {
        let text =
            "Running gpu_to_rack_device_to_device_unidir_write_ce\n\tr1-0\tr1-1\t|\tr2-0\t\n0\t5.00;(0-1)\t6.00;(0-3)\t|\t7.00;(0-9)\t\n";
        let (found, _) = tables(read, text);
        near(rate(&found[0], 0, 9), 7e9);
        assert_eq!((found[0].samples.len(), found[0].size_from), (3, SizeFrom::Default));
        let (found, skipped) = tables(read, "Running gpu_to_rack_device_to_device_unidir_write_ce\n\tr1\t\n0\t5.00\t\n");
        assert_eq!((found.len(), skipped.len()), (0, 2));
    }

    #[test]
    fn numbers_that_no_job_has_make_no_ends() {
        let text = "Running device_to_device_unidir_write_ce\n\t0\t999999\t\n0\t1\t2\t\n";
        assert!(tables(read, text).1[1].1.contains("more GPUs"));
        assert_eq!(tables(read, "Running host_to_device_memcpy_ce.\nRunning make\n"), (vec![], vec![]));
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, RUN);
    }
}
