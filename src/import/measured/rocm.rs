//! `rocm_bandwidth_test`: matrices of all devices, and sizes of one pair. GB are 1e9 bytes. A bidirectional rate counts both directions,
//! and a copy within one device counts twice (`rocm_bandwidth_test_trans.cpp`: `data_size += data_size`).

use super::dispatch::MOST_ENDS;
use super::rows::{Step, block, end, index, rated, size, timed, waived};
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, amount, named, shown};
use crate::sample::{Memory, Pattern};

const GB: f64 = 1e9;

/// What a matrix copies (`SIZE_LIST[16]`); `-m` sets others, which the launch command tells.
const DEFAULT_BYTES: u64 = 64 << 20;

/// A matrix or sweep whose rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Nowhere,
    /// its title was read
    Matrix {
        both: bool,
    },
    /// of access, links, distances: no rates
    Other,
    Sweep {
        both: bool,
    },
}

struct Draft {
    version: Option<String>,
    /// by their numbers, as listed
    devices: Vec<Option<End>>,
    bytes: Option<u64>,
    at: At,
    /// the title's own words and line
    title: (String, usize),
    /// columns of the matrix: indices of ends
    columns: Vec<usize>,
    rows: Vec<bool>,
    src: Option<End>,
    tables: Vec<Table>,
}

fn is_title(text: &str) -> bool {
    text.contains("directional copy ") && text.contains(" bandwidth GB/s") && !text.contains('[')
}

pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?;
    let text = first.text.trim();
    if !(text.starts_with("RocmBandwidthTest Version") || is_title(text) || text.contains("directional Benchmark Result")) {
        return None;
    }
    let mut draft = Draft {
        version: None,
        devices: Vec::new(),
        bytes: None,
        at: At::Nowhere,
        title: (String::new(), first.number),
        columns: Vec::new(),
        rows: Vec::new(),
        src: None,
        tables: Vec::new(),
    };
    let used = block(lines, skips, |line, skips| draft.line(line, line.number == first.number, skips));
    draft.tables.retain(|table| !table.samples.is_empty());
    if draft.tables.is_empty() {
        skips.push(first.number, "rocm_bandwidth_test printed no rates here");
    }
    Some((draft.tables, used))
}

impl Draft {
    fn line(&mut self, line: Line<'_>, first: bool, skips: &mut Skips) -> Step {
        let text = line.text.trim();
        let words: Vec<&str> = text.split_whitespace().take(MOST_ENDS + 2).collect();
        if let Some(version) = text.strip_prefix("RocmBandwidthTest Version:") {
            if !first {
                return Step::End;
            }
            self.version = Some(named(version));
        } else if let Some(command) = text.strip_prefix("Launch Command is:") {
            let mut options = command.split_whitespace().skip_while(|word| *word != "-m");
            // MB of 2^20 bytes; of several, none is told of a matrix.
            self.bytes =
                options.nth(1).and_then(size).filter(|megabytes| (1..1 << 20).contains(megabytes)).map(|megabytes| megabytes << 20);
        } else if let Some(device) = text.strip_prefix("Device:") {
            self.device(device);
        } else if is_title(text) {
            self.at = At::Matrix { both: text.starts_with("Bi") };
            self.title = (named(text), line.number);
        } else if text.starts_with("Inter-Device") || text.starts_with("Data Path Validation") {
            self.at = At::Other;
        } else if text.contains("directional Benchmark Result") {
            self.at = At::Sweep { both: text.contains("Bidirectional") };
            self.title = (named(text.trim_matches(['=', ' '])), line.number);
        } else if text.contains("Device Id:") && text.contains("Device Type:") {
            return self.banner(text, skips);
        } else if words.first() == Some(&"D/D") {
            self.header(&words[1..], line, skips);
        } else if text.starts_with("Data Size") || text.chars().all(|char| char == '.') && !text.is_empty() {
        } else {
            return match self.at {
                At::Matrix { both } if !self.columns.is_empty() => self.row(both, &words, line, skips),
                At::Sweep { both } => self.size(both, &words, line, skips),
                At::Other if words.first().and_then(|word| index(word)).is_some() => Step::Mine,
                _ => Step::Strange,
            };
        }
        Step::Mine
    }

    /// `2,  AMD Instinct,  GPU-1234,  c3:0.0`; a processor has neither of the last two.
    fn device(&mut self, text: &str) {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let Some(at) = parts.first().and_then(|at| index(at)).map(|at| at as usize).filter(|at| *at < 1024) else { return };
        if self.devices.len() <= at {
            self.devices.resize(at + 1, None);
        }
        let gpu = parts.len() >= 4;
        let before = self.devices.iter().flatten().filter(|end| end.gpu.is_some()).count();
        self.devices[at] = Some(End {
            label: format!("{} {at}", if gpu { "GPU" } else { "CPU" }),
            gpu: if gpu { u32::try_from(before).ok() } else { None },
            pci: parts.get(3).map(|pci| named(pci)),
            model: parts.get(1).filter(|_| gpu).map(|model| named(model)),
            ..End::default()
        });
    }

    fn end(&self, at: usize) -> End {
        self.devices.get(at).cloned().flatten().unwrap_or_else(|| end(&format!("device {at}")))
    }

    fn table(&self, both: bool, ends: Vec<End>, unit: &'static str, size_from: SizeFrom, mut notes: Vec<String>) -> Table {
        if both {
            notes.push("the printed rate is the sum of both directions, half of it for each".to_owned());
        }
        notes.push("of repeats without the slowest; memory of processors and of GPUs".to_owned());
        Table {
            tool: Tool::RocmBandwidthTest,
            test: self.title.0.clone(),
            version: self.version.clone(),
            line: self.title.1,
            unit,
            orientation: "row sends",
            size_from,
            memory: if ends.iter().all(|end| end.label.starts_with("CPU")) { Memory::Host } else { Memory::Cuda },
            ends,
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        }
    }

    fn header(&mut self, labels: &[&str], line: Line<'_>, skips: &mut Skips) {
        let At::Matrix { both } = self.at else { return };
        let numbers: Option<Vec<usize>> = labels.iter().map(|label| index(label).map(|at| at as usize)).collect();
        let mut known = std::collections::HashSet::new();
        let numbers = numbers.filter(|numbers| numbers.len() <= MOST_ENDS && numbers.iter().all(|at| known.insert(*at)));
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
            skips.push(line.number, "the header names no devices, or one twice: the matrix is left out");
            self.at = At::Other;
            return;
        };
        let mut notes = Vec::new();
        if !both {
            notes.push("a copy within one device is printed with twice its rate, for reading and writing; half of it is read".to_owned());
        }
        let ends = numbers.iter().map(|at| self.end(*at)).collect();
        let size_from = if self.bytes.is_some() { SizeFrom::Told } else { SizeFrom::Default };
        let table = self.table(both, ends, "GB/s (1e9 bytes)", size_from, notes);
        self.rows = vec![false; numbers.len()];
        self.columns = numbers;
        table.keep(&mut self.tables, skips);
    }

    fn row(&mut self, both: bool, words: &[&str], line: Line<'_>, skips: &mut Skips) -> Step {
        let Some((label, cells)) = words.split_first() else { return Step::Strange };
        let Some(number) = index(label).map(|at| at as usize) else {
            return Step::Strange;
        };
        let row = self
            .columns
            .get(number)
            .filter(|at| **at == number)
            .map_or_else(|| self.columns.iter().position(|at| *at == number), |_| Some(number));
        let (Some(row), Some(table)) = (row.filter(|row| !self.rows[*row]), self.tables.last_mut()) else {
            skips.push(line.number, format!("device {number} is not in the header, or had its row"));
            return Step::Strange;
        };
        self.rows[row] = true;
        if cells.len() != self.columns.len() {
            skips.push(line.number, format!("{} numbers in a row of {}: what is there is read", cells.len(), self.columns.len()));
        }
        let bytes = self.bytes.unwrap_or(DEFAULT_BYTES);
        for (column, cell) in cells.iter().enumerate().take(self.columns.len()) {
            let own = column == row;
            let pattern = if own {
                Pattern::Local
            } else if both {
                Pattern::Duplex
            } else {
                Pattern::Peer
            };
            let sample = match amount(cell) {
                Some(rate) if both && !own || own && !both => rated(&table.ends, pattern, (row, column), bytes, rate * GB / 2.0),
                Some(rate) => rated(&table.ends, pattern, (row, column), bytes, rate * GB),
                None if *cell == "N/A" && own => continue,
                None if *cell == "N/A" => {
                    waived(&table.ends, pattern, (row, column), bytes, "N/A: the devices cannot reach each other so".to_owned())
                }
                None => {
                    skips.push(line.number, format!("{} is no rate", shown(cell)));
                    continue;
                }
            };
            table.put(sample, line.number, skips);
        }
        Step::Mine
    }

    /// `Src Device Id: 0 Src Device Type: Cpu`.
    fn banner(&mut self, text: &str, skips: &mut Skips) -> Step {
        let At::Sweep { both } = self.at else { return Step::Strange };
        let words: Vec<&str> = text.split_whitespace().collect();
        let behind = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
        let Some(at) = behind("Id:").and_then(|at| index(at)) else { return Step::Strange };
        let kind = behind("Type:").map(|kind| kind.to_ascii_uppercase()).filter(|kind| kind == "GPU" || kind == "CPU");
        let found = match (self.end(at as usize), kind) {
            (found, Some(kind)) if found.label.starts_with("device") => end(&format!("{kind} {at}")),
            (found, _) => found,
        };
        if text.contains("Src") {
            self.src = Some(found);
        } else if let Some(src) = self.src.take() {
            let table = self.table(both, vec![src, found], "µs", SizeFrom::Told, Vec::new());
            let orientation = if both { "both ways at the same time" } else { "source sends" };
            Table { orientation, ..table }.keep(&mut self.tables, skips);
        }
        Step::Mine
    }

    /// `64 KB  7.520  8.715  7.520  8.715`.
    fn size(&mut self, both: bool, words: &[&str], line: Line<'_>, skips: &mut Skips) -> Step {
        let [number, unit @ ("Bytes" | "KB" | "MB" | "GB"), rest @ ..] = words else { return Step::Strange };
        let unit = match *unit {
            "KB" => 1 << 10,
            "MB" => 1 << 20,
            "GB" => 1 << 30,
            _ => 1,
        };
        let bytes = size(number).and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes > 0 && *bytes < 1 << 50);
        let time = rest.first().and_then(|time| amount(time)).filter(|_| rest.len() == 4);
        let (Some(bytes), Some(time), Some(table)) = (bytes, time, self.tables.last_mut().filter(|table| table.line == self.title.1))
        else {
            skips.push(line.number, format!("{} is no row of a size, two times and two rates", shown(line.text)));
            return Step::Mine;
        };
        if both {
            super::rows::both(table, bytes, time * 1e-6, line.number, skips);
        } else {
            let sample = timed(&table.ends, Pattern::Peer, (0, 1), bytes, time * 1e-6);
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

    const ALL: &str = "....\n          RocmBandwidthTest Version: 2.6.0\n\n          Launch Command is: rocm-bandwidth-test -a\n\n\
        \x20         Device: 0,  A Processor\n          Device: 1,  A GPU,  GPU-12,  c3:0.0\n\n          Inter-Device Access\n\n          D/D       0         1\n\n\
        \x20         0         1         0\n\n          1         1         1\n\n          Unidirectional copy peak bandwidth GB/s\n\n\
        \x20         D/D       0           1\n\n          0         N/A         20.000\n\n          1         30.000      400.000\n\n\
        \x20         Bidirectional copy peak bandwidth GB/s\n\n          D/D       0           1\n\n          0         N/A         44.000\n\n          1         44.000      N/A\n\n";

    #[test]
    fn rows_send_and_sums_are_halved() {
        let (found, skipped) = tables(read, ALL);
        assert_eq!((found.len(), skipped.len()), (2, 0), "{skipped:?}");
        near(rate(&found[0], 0, 1), 20e9);
        near(rate(&found[0], 1, 0), 30e9);
        near(rate(&found[0], 1, 1), 200e9);
        near(rate(&found[1], 0, 1), 22e9);
        assert_eq!((found[0].samples.len(), found[1].samples.len(), found[1].samples[0].pattern), (3, 2, Pattern::Duplex));
        let gpu = &found[0].ends[1];
        assert_eq!(
            (gpu.label.as_str(), gpu.gpu, gpu.pci.as_deref(), gpu.model.as_deref()),
            ("GPU 1", Some(0), Some("c3:0.0"), Some("A GPU"))
        );
        assert_eq!(
            (found[0].version.as_deref(), found[0].size_from, found[0].samples[0].bytes),
            (Some("2.6.0"), SizeFrom::Default, 64 << 20)
        );
    }

    #[test]
    fn cells_that_are_not_there_are_waived_or_told() {
        let text = "Unidirectional copy average bandwidth GB/s\nD/D 0 1 5\n0 N/A N/A oops\n0 1 2 3\n5 7.5\n";
        let (found, skipped) = tables(read, text);
        assert_eq!(found[0].samples.iter().map(|sample| sample.status).collect::<Vec<_>>(), [Status::Waived, Status::Ok]);
        assert_eq!((found[0].samples[1].from, found[0].samples[1].to, found[0].ends[2].label.as_str()), (2, 0, "device 5"));
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(tables(read, "Unidirectional copy peak bandwidth GB/s\nD/D 0 0\n").1.len(), 2);
        assert_eq!(tables(read, "Unidirectional copy peak bandwidth GB/s [Local read / Remote write]\n"), (vec![], vec![]));
    }

    const SWEEP: &str = "================    Unidirectional Benchmark Result    ================\n================ Src Device Id: 0 Src Device Type: Cpu ================\n\
        ================ Dst Device Id: 4 Dst Device Type: Gpu ================\n\nData Size      Avg Time(us)   Avg BW(GB/s)   Min Time(us)   Peak BW(GB/s)\n\
        1 KB           5.000          0.190          5.280          0.194\n2 MB           100.000         x\n";

    #[test]
    fn sizes_of_a_pair_are_read_with_their_mean_time() {
        let (found, skipped) = tables(read, SWEEP);
        assert_eq!((found[0].ends[0].label.as_str(), found[0].ends[1].label.as_str()), ("CPU 0", "GPU 4"));
        assert_eq!(found[0].samples.len(), 1);
        near(rate(&found[0], 0, 1), 1024.0 / 5e-6);
        assert_eq!(skipped.iter().map(|skip| skip.0).collect::<Vec<_>>(), [7]);
        let (found, _) = tables(read, &SWEEP.replace("Unidir", "Bidir"));
        assert_eq!((found[0].samples.len(), found[0].samples[1].from, found[0].samples[1].pattern), (2, 1, Pattern::Duplex));
    }

    #[test]
    fn damage_is_told_or_passed_over() {
        damage(read, ALL);
        damage(read, SWEEP);
    }

    #[test]
    fn real_outputs_are_read_whole() {
        for (name, text) in corpus("rocm-bandwidth-test") {
            let (found, skipped) = tables(read, &text);
            assert!(!found.is_empty() && skipped.is_empty(), "{name}: {skipped:?}");
            let cells: usize = found.iter().map(|table| table.samples.len()).sum();
            let expected = if name.contains("bidir") {
                90
            } else if name.contains("sweep") {
                20
            } else {
                5
            };
            assert_eq!(cells, expected, "{name}");
        }
    }
}
