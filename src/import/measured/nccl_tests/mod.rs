//! nccl-tests, as text and as JSON (`-J`).
//!
//! Times are of one operation of all ranks. The bus bandwidth is worked out of them so that operations can be compared; it is no link's, and
//! is never shown as one. `sendrecv` is a ring (its source): every rank sends to the next while it receives from the one before, all at the
//! same time, so its time is a relay's. All other operations are kept as what they are.

mod json;
mod text;

pub(super) use json::json;
pub(super) use text::read;

use super::{Collective, End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::{named, number};
use crate::sample::{Memory, Pattern, Sample, Status};
use crate::topology::PathClass;

/// More ranks than any job of these tests: numbers above are damage.
const MOST_RANKS: usize = super::dispatch::MOST_ENDS;

/// A run, as far as it was read.
#[derive(Debug, Default)]
struct Run {
    line: usize,
    /// `sendrecv`; empty where nothing tells it
    operation: String,
    /// by rank
    ends: Vec<Option<End>>,
    version: Option<String>,
    rows: Vec<Row>,
    /// the name was told by the columns alone
    guessed: bool,
}

/// One size.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    collective: Collective,
    /// what the results were compared with did not match
    wrong: bool,
}

impl Run {
    /// Set what a rank's line tells.
    fn seat(&mut self, rank: usize, end: End, line: usize, skips: &mut Skips) {
        let more = rank.saturating_add(1).saturating_sub(self.ends.len()).saturating_mul(size_of::<End>() + 32);
        if rank < MOST_RANKS && skips.takes(line, more + end.weight()) {
            if self.ends.len() <= rank {
                self.ends.resize(rank + 1, None);
            }
            self.ends[rank] = Some(end);
        }
    }

    fn table(self, skips: &mut Skips) -> Option<Table> {
        if self.rows.is_empty() || !skips.takes(self.line, size_of::<Table>() + 256) {
            if self.line > 0 {
                skips.push(self.line, "nccl-tests: no row with a size and a time");
            }
            return None;
        }
        let world = self.ends.len();
        // Hand-made excerpts keep only the last rank's line: how many there are is told, the others' places are not.
        let whole = world > 1 && self.ends.iter().all(Option::is_some);
        let mut notes = vec!["times are of all ranks together; the bus bandwidth is worked out of them and is no link's".to_owned()];
        if self.operation.is_empty() {
            notes.push("the output does not tell which operation it was".to_owned());
        }
        if self.guessed {
            notes.push("taken for sendrecv, the only test that checks no result in place but has a reduction in its table".to_owned());
        }
        let ring = self.operation == "sendrecv";
        if ring && !whole {
            notes.push("no list of ranks, so that a ring cannot be told from it".to_owned());
        }
        let wrong = self.rows.iter().filter(|row| row.wrong).count();
        if wrong > 0 {
            notes.push(format!("{wrong} sizes had wrong results"));
        }
        let mut samples = Vec::new();
        if ring && whole {
            let hosts: Vec<Option<&str>> = self.ends.iter().flatten().map(|end| end.host.as_deref()).collect();
            let path = |from: usize, to: usize| if hosts[from] == hosts[to] { PathClass::IntraNode } else { PathClass::InterNode };
            for row in self.rows.iter().filter(|row| row.collective.bytes > 0 && row.collective.seconds > 0.0) {
                if !skips.takes(self.line, world * super::table::fan(0)) {
                    break;
                }
                for rank in 0..world {
                    let (next, before) = ((rank + 1) % world, (rank + world - 1) % world);
                    let mut sample = Sample::blank(Pattern::Relay, rank, next, row.collective.bytes, path(rank, next));
                    sample.shift = Some(1);
                    sample.receive_path = Some(path(before, rank));
                    sample.send_path = Some(path(rank, next));
                    sample.messages = 1;
                    sample.seconds = Some(row.collective.seconds);
                    sample.status = if row.wrong { Status::Corrupt } else { Status::Ok };
                    sample.reason = row.wrong.then(|| "nccl-tests counted wrong elements".to_owned());
                    samples.push(sample);
                }
            }
        }
        let ends = self.ends.into_iter().enumerate();
        let ends = ends.map(|(rank, end)| end.unwrap_or_else(|| End { label: format!("rank {rank}"), ..End::default() })).collect();
        let name = if self.operation.is_empty() { "an operation that is not named".to_owned() } else { self.operation };
        Some(Table {
            tool: Tool::NcclTests,
            test: name,
            version: self.version,
            line: self.line,
            unit: "µs",
            orientation: if samples.is_empty() { "all ranks together" } else { "each rank sends to the next one" },
            size_from: SizeFrom::Told,
            memory: Memory::Cuda,
            ends,
            samples,
            collectives: self.rows.into_iter().map(|row| row.collective).collect(),
            notes,
        })
    }
}

/// `all_reduce` of `all_reduce_perf`, `./build/all_reduce_perf_mpi`, or of a whole command line.
fn operation(text: &str) -> Option<String> {
    let words = text.split_whitespace().take(64);
    let name = words.filter_map(|word| word.rsplit('/').next()?.split_once("_perf")).find(|(name, rest)| {
        let right = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        !name.is_empty() && name.len() < 40 && right(name) && right(rest)
    });
    name.map(|(name, _)| name.to_owned())
}

/// What is behind `Rank 0 Group 0 Pid 1 on`: `node1 device 0 [0009:01:00] NVIDIA GH200`; older versions have `[0x0f]`, the bus alone.
fn seat(text: &str, rank: usize) -> Option<End> {
    let (host, rest) = text.trim_start().split_once(" device ")?;
    let (gpu, rest) = rest.split_once('[')?;
    let (pci, model) = rest.split_once(']')?;
    let hex = |text: &str| !text.is_empty() && text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
    let pci = match pci.strip_prefix("0x") {
        // Virtual machines and old versions print 0x00 for all.
        Some(bus) if hex(bus) && bus.len() == 2 && bus != "00" => Some(format!("0000:{bus}:00.0")),
        None if hex(pci) && pci.matches(':').count() == 2 => Some(format!("{pci}.0")),
        _ => None,
    };
    Some(End {
        label: format!("rank {rank}"),
        host: Some(named(host)).filter(|host| !host.is_empty()),
        gpu: number(gpu.trim()).and_then(|gpu| u32::try_from(gpu).ok()),
        pci,
        model: Some(named(model)).filter(|model| !model.is_empty()),
    })
}

#[cfg(test)]
mod tests;
