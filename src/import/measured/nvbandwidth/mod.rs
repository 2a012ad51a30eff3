//! nvbandwidth, as text and as JSON.
//!
//! The arrows in its headings of tests between GPUs point against the flow of bytes (its source at 66746a3, `testcases_ce.cpp`,
//! `testcase.cpp`), so what flows where is told by the test's name: in write tests bytes go from the row's GPU to the column's, though the
//! heading says `GPU(row) <- GPU(column)`; in read tests from the column's to the row's. `all_to_one` has its one in the column: of write
//! tests that receives from all others, of read tests, which swap both ends, it sends to them; `one_to_all` the other way round. Host
//! tests are labelled rightly.

mod json;
mod kind;
mod text;

pub(super) use json::json;
pub(super) use text::read;

use std::collections::BTreeMap;

use super::grid::Grid;
use super::table::fan;
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::sample::{Memory, Pattern, Sample, Status};
use crate::topology::PathClass;
use kind::{Flow, Kind};

/// Of one copy, unless `-b` asks for another: the output does not tell it (`common.h`).
const COPY: u64 = 512 << 20;
/// What a load of the latency tests takes: a pointer (`struct LatencyNode`).
const LOAD: u64 = 8;

/// What a run told of itself.
#[derive(Debug, Default)]
struct Run {
    version: Option<String>,
    host: Option<String>,
    /// by number: host, GPU's number there, model, PCI address
    devices: BTreeMap<usize, End>,
}

impl Run {
    fn ends(&self, world: usize) -> Vec<End> {
        let blank = |at: usize| End { label: format!("GPU{at}"), host: self.host.clone(), gpu: u32::try_from(at).ok(), ..End::default() };
        (0..world)
            .map(|at| self.devices.get(&at).map_or_else(|| blank(at), |end| End { label: format!("GPU{at}"), ..end.clone() }))
            .collect()
    }

    /// The table of a matrix; `None`, with the reason, if it is none of pairs or fans.
    fn table(&self, test: &str, heading: &str, line: usize, grid: &Grid, skips: &mut Skips) -> Option<Table> {
        let kind = match Kind::of(test, heading, grid.rows.len()) {
            Ok(kind) => kind,
            Err(why) => {
                skips.push(line, format!("{}: {why}", if test.is_empty() { heading } else { test }));
                return None;
            }
        };
        let numbers = || grid.columns.iter().copied().chain(grid.rows.iter().filter(|_| kind.is_square()).map(|&(row, _)| row));
        let world = numbers().max().map_or(0, |most| most + 1);
        let cells = grid.rows.len().saturating_mul(grid.columns.len());
        let each = match kind.flow {
            Flow::ToOthers | Flow::FromOthers => world.saturating_mul(fan(world)),
            _ => fan(0),
        };
        let ends = self.ends(world);
        let weight = cells.saturating_mul(each).saturating_add(ends.iter().map(End::weight).sum::<usize>() + size_of::<Table>());
        if !skips.takes(line, weight) {
            return None;
        }
        let (unit, scale) = if kind.latency { ("ns", 1e-9) } else { ("GB/s (1e9 bytes)", 1e9) };
        let mut table = Table {
            tool: Tool::Nvbandwidth,
            test: Kind::name(test, heading),
            version: self.version.clone(),
            line,
            unit,
            orientation: kind.orientation(heading),
            size_from: SizeFrom::Default,
            memory: Memory::Cuda,
            ends,
            samples: Vec::new(),
            collectives: Vec::new(),
            notes: kind.notes(test),
        };
        for (row, cells) in &grid.rows {
            for (&column, &value) in grid.columns.iter().zip(cells) {
                put(&mut table.samples, kind, (*row, column), value.map(|value| value * scale), world);
            }
        }
        if table.samples.iter().all(|sample| sample.status != Status::Ok) {
            skips.push(line, format!("{}: no cell has a number", table.test));
            return None;
        }
        Some(table)
    }
}

/// The samples of a cell; `value` is in bytes/s, or of latencies in seconds.
fn put(samples: &mut Vec<Sample>, kind: Kind, (row, column): (usize, usize), value: Option<f64>, world: usize) {
    let bytes = if kind.latency { LOAD } else { COPY };
    let one = |pattern: Pattern, from: usize, to: usize, rate: Option<f64>| {
        let path = if from == to { PathClass::Local } else { PathClass::IntraNode };
        let mut sample = Sample::blank(pattern, from, to, bytes, path);
        sample.isolated = kind.isolated;
        match rate.filter(|&rate| rate > 0.0) {
            Some(rate) => {
                sample.status = Status::Ok;
                sample.messages = 1;
                sample.seconds = Some(if kind.latency { rate } else { bytes as f64 / rate });
            }
            None if rate.is_some() => sample.reason = Some("nvbandwidth printed 0: nothing was measured".to_owned()),
            None => sample.reason = Some("nvbandwidth printed N/A: the two cannot access each other's memory".to_owned()),
        }
        sample
    };
    match kind.flow {
        Flow::Own(pattern) => samples.push(one(pattern, column, column, value)),
        // N/A, or 0.00 in older versions.
        Flow::RowToColumn | Flow::ColumnToRow | Flow::BothTotal | Flow::BothRowToColumn | Flow::BothColumnToRow if row == column => {}
        Flow::RowToColumn => samples.push(one(Pattern::Peer, row, column, value)),
        Flow::ColumnToRow => samples.push(one(Pattern::Peer, column, row, value)),
        Flow::BothRowToColumn => samples.push(one(Pattern::Duplex, row, column, value)),
        Flow::BothColumnToRow => samples.push(one(Pattern::Duplex, column, row, value)),
        Flow::BothTotal => samples.push(one(Pattern::Duplex, row, column, value.map(|value| value / 2.0))),
        Flow::ToOthers | Flow::FromOthers => {
            let peers: Vec<usize> = (0..world).filter(|&peer| peer != column).collect();
            let (n, pattern) = (peers.len(), if kind.flow == Flow::ToOthers { Pattern::FanOut } else { Pattern::FanIn });
            for &peer in &peers {
                let (from, to) = if pattern == Pattern::FanOut { (column, peer) } else { (peer, column) };
                let mut sample = one(pattern, from, to, value.map(|total| total / n as f64));
                sample.root = Some(column);
                sample.peers.clone_from(&peers);
                sample.width = Some(n);
                sample.root_seconds = sample.seconds;
                samples.push(sample);
            }
        }
    }
}

#[cfg(test)]
mod tests;
