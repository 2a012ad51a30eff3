//! `p2pBandwidthLatencyTest` of the CUDA samples.
//!
//! By its source (cuda-samples, `p2pBandwidthLatencyTest.cu`): unless `--p2p_read` was given, the row's GPU writes into the column's; of
//! reads, and of the years before headings told either, bytes go from the column to the row. Copies between two at the same time are
//! printed as the sum of both directions. On the diagonal each byte is counted twice, read and written.

use std::collections::HashMap;

use super::grid::{self, Grid};
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{Line, named, number};
use crate::sample::{Memory, Pattern, Sample, Status};
use crate::topology::PathClass;

/// Of one copy: 40 million integers, unless `--numElems` asks for others.
const COPY: u64 = 160_000_000;
/// Of one copy of the latency test: four integers.
const SMALL: u64 = 16;

/// Lines without anything of this tool that may stand within its output.
const GAP: usize = 12;

/// Read an output that begins here, with its list of devices or with one of its matrices.
pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?.text.trim();
    let begins = first.starts_with("[P2P (Peer-to-Peer)") || first == "P2P Connectivity Matrix" || Heading::of(first).is_some();
    begins.then(|| run(lines, skips))
}

fn run(lines: &[Line<'_>], skips: &mut Skips) -> (Vec<Table>, usize) {
    let (mut devices, mut tables) = (HashMap::new(), Vec::new());
    let mut heading: Option<Heading> = None;
    let (mut used, mut at) = (0, 0);
    while at < lines.len() && at - used <= GAP {
        let line = lines[at];
        let text = line.text.trim();
        if at > 0 && text.starts_with("[P2P (Peer-to-Peer)") || skips.is_spent() {
            break;
        }
        let mut known = true;
        let corner = ["D\\D", "GPU", "CPU"].into_iter().find(|corner| grid::header(text, Some(corner)).is_some());
        if let Some(found) = Heading::of(text) {
            heading = Some(Heading { line: line.number, ..found });
        } else if let Some(corner) = corner {
            if let Some(grid) = grid::read(&lines[at..], Some(corner), skips) {
                // Without a heading it is who can access whom.
                tables.extend(heading.as_ref().and_then(|heading| heading.table(corner, &grid, &devices, skips)));
                at += grid.used.max(1) - 1;
            }
            if corner == "D\\D" {
                heading = None;
            }
        } else if let Some(end) = device(text) {
            devices.insert(end.gpu, end);
        } else {
            known = text.starts_with("Device=") || text.contains("Peer-to-Peer") || text.starts_with("P2P ") || text.starts_with("***NOTE");
        }
        at += 1;
        if known {
            used = at;
        }
    }
    (tables, used.max(1))
}

/// What stands above a matrix.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "what a heading says, one by one")]
struct Heading {
    text: String,
    line: usize,
    latency: bool,
    both: bool,
    /// bytes go from the row to the column
    writes: bool,
    /// whether that is told, or what the years before did
    told: bool,
}

impl Heading {
    fn of(text: &str) -> Option<Self> {
        let is = text.len() < 120 && text.contains("P2P=") && text.contains(" Matrix (");
        is.then(|| {
            let disabled = text.contains("P2P=Disabled");
            let (writes, reads) = (text.contains("P2P Writes"), text.contains("P2P Reads"));
            Self {
                text: named(text),
                line: 0,
                latency: text.contains("Latency"),
                both: text.starts_with("Bidirectional"),
                writes: writes || (disabled && !reads) || text.starts_with("Bidirectional"),
                told: writes || reads || disabled,
            }
        })
    }

    fn table(&self, corner: &str, grid: &Grid, devices: &HashMap<Option<u32>, End>, skips: &mut Skips) -> Option<Table> {
        let numbers = grid.columns.iter().copied().chain(grid.rows.iter().map(|&(row, _)| row));
        let world = numbers.max()? + 1;
        if self.latency && corner == "CPU" {
            skips.push(self.line, format!("{} as the processor saw it: how long enqueuing a copy took, not the copy", self.text));
            return None;
        }
        let mut notes = Vec::new();
        if self.both {
            notes.push("the sum of both directions was printed: half of it is shown for each".to_owned());
        }
        if !self.latency && !self.both {
            notes.push("on the diagonal each byte was counted twice, read and written: half of that is shown".to_owned());
        }
        if !self.told && !self.both {
            notes.push(
                "the heading does not tell whether copies were reads or writes; versions that did not made the column's GPU send"
                    .to_owned(),
            );
        }
        // Each end is as long as the list of devices has it.
        let longest = devices.values().map(End::weight).max().unwrap_or(size_of::<End>() + 32);
        if !skips.takes(self.line, world.saturating_mul(longest)) {
            return None;
        }
        let mut table = Table {
            tool: Tool::P2pBandwidthLatencyTest,
            test: self.text.split(" Matrix (").next().unwrap_or_default().to_owned(),
            version: None,
            line: self.line,
            unit: if self.latency { "µs" } else { "GB/s (1e9 bytes)" },
            orientation: match (self.both, self.writes) {
                (true, _) => "row and column send to each other",
                (false, true) => "row sends, column receives",
                (false, false) => "column sends, row receives",
            },
            size_from: SizeFrom::Default,
            memory: Memory::Cuda,
            ends: (0..world).map(|at| end(at, devices)).collect(),
            samples: Vec::new(),
            collectives: Vec::new(),
            notes,
        };
        for (row, cells) in &grid.rows {
            for sample in grid.columns.iter().zip(cells).filter_map(|(&column, &value)| self.sample(*row, column, value)) {
                table.put(sample, self.line, skips);
            }
        }
        if table.samples.iter().all(|sample| sample.status != Status::Ok) {
            skips.push(self.line, format!("{}: no cell has a number", table.test));
            return None;
        }
        Some(table)
    }

    fn sample(&self, row: usize, column: usize, value: Option<f64>) -> Option<Sample> {
        let own = row == column;
        if own && self.both {
            // Two copies within a GPU at the same time are no pattern of ours.
            return None;
        }
        let (from, to) = if self.writes { (row, column) } else { (column, row) };
        let pattern = match (own, self.both) {
            (true, _) => Pattern::Local,
            (_, true) => Pattern::Duplex,
            _ => Pattern::Peer,
        };
        let bytes = if self.latency { SMALL } else { COPY };
        let mut sample = Sample::blank(pattern, from, to, bytes, if own { PathClass::Local } else { PathClass::IntraNode });
        let Some(value) = value.filter(|&value| value > 0.0) else {
            if !own {
                sample.reason = Some("no number was printed".to_owned());
            }
            return (!own).then_some(sample);
        };
        let shared = if own || self.both { 2.0 } else { 1.0 };
        sample.status = Status::Ok;
        sample.messages = 1;
        sample.seconds = Some(if self.latency { value * 1e-6 } else { bytes as f64 / (value * 1e9 / shared) });
        Some(sample)
    }
}

fn end(at: usize, devices: &HashMap<Option<u32>, End>) -> End {
    let number = u32::try_from(at).ok();
    let known = devices.get(&number).cloned();
    known.unwrap_or_else(|| End { label: format!("GPU{at}"), gpu: number, ..End::default() })
}

/// `Device: 0, NVIDIA A100, pciBusID: 21, pciDeviceID: 0, pciDomainID:0`, hexadecimal.
fn device(text: &str) -> Option<End> {
    let rest = text.strip_prefix("Device: ").filter(|rest| rest.len() < 300)?;
    let (at, rest) = rest.split_once(", ")?;
    let (model, rest) = rest.rsplit_once(", pciBusID: ")?;
    let hex = |text: &str| u32::from_str_radix(text.trim(), 16).ok();
    let (bus, rest) = rest.split_once(", pciDeviceID: ")?;
    let (device, domain) = rest.split_once(", pciDomainID:")?;
    let at = number(at)?;
    let pci = format!("{:04x}:{:02x}:{:02x}.0", hex(domain)?, hex(bus)?, hex(device)?);
    Some(End { label: format!("GPU{at}"), gpu: u32::try_from(at).ok(), pci: Some(pci), model: Some(named(model)), host: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::text::lines;

    fn told(text: &str) -> (Vec<Table>, usize, Vec<String>) {
        let mut skips = Skips::default();
        let (tables, used) = read(&lines(text), &mut skips).unwrap();
        (tables, used, skips.sorted().into_iter().map(|skipped| skipped.reason).collect())
    }

    fn rate(table: &Table, from: usize, to: usize) -> f64 {
        let sample = table.samples.iter().find(|sample| (sample.from, sample.to) == (from, to)).unwrap();
        sample.bytes as f64 / sample.seconds.unwrap() / 1e9
    }

    const OUTPUT: &str = "\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA L4, pciBusID: 3b, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA L4, pciBusID: af, pciDeviceID: 0, pciDomainID:1
Device=0 CAN Access Peer Device=1

P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 200.00  11.00
     1  22.00 400.00
Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)
   D\\D     0      1
     0 200.00  11.00
     1  22.00 400.00
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 200.00  44.00
     1  48.00 400.00
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   1.50  12.00
     1  13.00   1.60

   CPU     0      1
     0   2.00   5.00
     1   5.00   2.00

NOTE: The CUDA Samples are not meant for performance measurements.
next
";

    #[test]
    fn writes_go_from_row_to_column_and_reads_the_other_way() {
        let (tables, used, skips) = told(OUTPUT);
        let names: Vec<&str> = tables.iter().map(|table| table.test.as_str()).collect();
        let all = ["Unidirectional P2P=Disabled Bandwidth", "Unidirectional P2P=Enabled Bandwidth (P2P Reads)"];
        assert_eq!(names, [all[0], all[1], "Bidirectional P2P=Enabled Bandwidth", "P2P=Enabled Latency (P2P Writes)"]);
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        close(rate(&tables[0], 0, 1), 11.0);
        close(rate(&tables[0], 1, 1), 200.0);
        close(rate(&tables[1], 1, 0), 11.0);
        close(rate(&tables[2], 0, 1), 22.0);
        close(tables[3].samples[1].seconds.unwrap(), 12e-6);
        assert_eq!(tables[0].ends[1].pci.as_deref(), Some("0001:af:00.0"));
        assert_eq!(skips.len(), 1, "{skips:?}");
        assert_eq!(used, OUTPUT.lines().count() - 3, "what comes after is left to others");
    }

    #[test]
    fn a_heading_of_the_years_before_has_the_column_send() {
        let (tables, ..) = told("Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n 0 200 11\n 1 22 400\n");
        assert!((rate(&tables[0], 1, 0) - 11.0).abs() < 1e-9);
        assert!(tables[0].notes.iter().any(|note| note.contains("reads or writes")));
    }
}
