//! nvbandwidth's text.

use super::super::grid::{self, Grid};
use super::{End, Run, Table};
use crate::import::Skips;
use crate::import::text::{Line, named, number};

/// Lines of something else, one after another, that may stand within a run.
const GAP: usize = 12;

/// Read a run that begins here.
pub(in crate::import::measured) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Table>, usize)> {
    let first = lines.first()?.text.trim();
    let begins = version(first).is_some() || running(first).is_some() || is_heading(first) || device(first).is_some();
    begins.then(|| run(lines, skips))
}

fn run(lines: &[Line<'_>], skips: &mut Skips) -> (Vec<Table>, usize) {
    let (mut told, mut tables) = (Run::default(), Vec::new());
    let (mut running_test, mut pending) = (String::new(), None::<(usize, String)>);
    let (mut used, mut at, mut before) = (0, 0, "");
    while at < lines.len() && at - used <= GAP {
        let line = lines[at];
        let text = line.text.trim();
        if at > 0 && version(text).is_some() || belongs_elsewhere(text) || skips.is_spent() {
            break;
        }
        let mut known = true;
        if let Some(found) = version(text) {
            told.version = Some(named(found));
        } else if let Some(name) = running(text) {
            untold(&mut pending, skips);
            named(name).clone_into(&mut running_test);
            pending = Some((line.number, format!("{running_test}: no matrix follows")));
        } else if let Some((number, end)) = device(text) {
            if number == 0 && end.host.is_none() && is_host(before) {
                told.host = Some(named(before));
            }
            let host = end.host.clone().or_else(|| told.host.clone());
            told.devices.insert(number, End { host, ..end });
        } else if is_heading(text) {
            pending = None;
            let grid = lines.get(at + 1..).and_then(|rest| grid::read(rest, None, skips));
            if let Some(grid) = grid {
                at += grid.used;
                let name = name_of(&running_test, lines.get(at + 1..).unwrap_or_default());
                tables.extend(told.table(&name, text, line.number, &grid, skips).filter(|_| has_rows(&grid)));
            } else {
                skips.push(line.number, format!("{running_test}: no matrix under its heading"));
            }
        } else if let Some(why) = outcome(text) {
            if let Some((_, reason)) = &mut pending {
                *reason = format!("{running_test}: {why}");
            }
        } else {
            known = ["CUDA ", "Driver Version", "Built from", "MPI version", "SUM ", "MIN ", "MAX ", "AVG ", "&&&& ", "NOTE: "]
                .iter()
                .any(|word| text.starts_with(word));
        }
        if !text.is_empty() {
            before = text;
        }
        at += 1;
        if known {
            used = at;
        }
    }
    untold(&mut pending, skips);
    (tables, used.max(1))
}

const fn has_rows(grid: &Grid) -> bool {
    !grid.rows.is_empty()
}

/// Tell of a test that was announced and gave nothing.
fn untold(pending: &mut Option<(usize, String)>, skips: &mut Skips) {
    if let Some((line, reason)) = pending.take() {
        skips.push(line, reason);
    }
}

fn version(text: &str) -> Option<&str> {
    text.strip_prefix("nvbandwidth Version:").map(str::trim)
}

/// The test of `Running device_to_device_memcpy_read_ce.`
fn running(text: &str) -> Option<&str> {
    let name = text.strip_prefix("Running ")?.trim_end_matches(['.', ' ']);
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (word
        && name.len() < 100
        && ["memcpy", "local_copy", "latency", "multinode", "one_to", "to_one"].iter().any(|part| name.contains(part)))
    .then_some(name)
}

fn is_heading(text: &str) -> bool {
    let begins = ["memcpy ", "memory latency ", "Device to Device Latency ", "multicast "].iter().any(|word| text.starts_with(word));
    begins && text.len() < 200 && (text.contains("(column)") || text.contains("(GB/s)"))
}

/// `Device 0: NVIDIA A100 (00000000:34:00)`, or `Process 0 (node1): device 0: NVIDIA A100 (00000000:34:00)`.
pub(super) fn device(text: &str) -> Option<(usize, End)> {
    if text.len() > 400 {
        return None;
    }
    if let Some(rest) = text.strip_prefix("Device ") {
        let (at, rest) = rest.split_once(": ")?;
        let (at, (model, pci)) = (number(at.trim())?, model(rest)?);
        return Some((at, End { gpu: u32::try_from(at).ok(), pci, model, ..End::default() }));
    }
    let (at, rest) = text.strip_prefix("Process ")?.split_once(" (")?;
    let (host, rest) = rest.split_once("): device ")?;
    let (local, rest) = rest.split_once(": ")?;
    let (model, pci) = model(rest)?;
    let gpu = number(local.trim()).and_then(|gpu| u32::try_from(gpu).ok());
    Some((number(at.trim())?, End { host: Some(named(host)), gpu, pci, model, ..End::default() }))
}

/// Model and PCI address of `NVIDIA A100 (00000000:34:00)`; the address lacks its function.
pub(super) fn model(text: &str) -> Option<(Option<String>, Option<String>)> {
    let (name, rest) = text.rsplit_once(" (")?;
    let pci = rest.strip_suffix(')')?;
    let right = pci.len() <= 16 && pci.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':') && pci.contains(':');
    right.then(|| (Some(named(name)), Some(format!("{pci}.0"))))
}

/// The line above `Device 0:` is the host's name from 0.8 on.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.len() < 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) && text != "..."
}

/// What a line says of a test without a matrix.
fn outcome(text: &str) -> Option<String> {
    let wrong = ["Waived", "WAIVED", "ERROR", "Error", "ASSERT", "Invalid value", "Not Found", "[CUDA_ERROR"];
    wrong.iter().any(|word| text.starts_with(word)).then(|| crate::import::text::shown(text))
}

/// The name that was announced, or that the sum below tells.
fn name_of(test: &str, below: &[Line<'_>]) -> String {
    let sum = |line: &Line<'_>| {
        let words = line.text.trim();
        let rest = words.strip_prefix("SUM ").or_else(|| words.strip_prefix("&&&& PERF "))?;
        rest.split_whitespace().next().map(named)
    };
    let below = below.iter().take(3).find_map(sum);
    match below {
        // Of tests with several matrices their sums add which it is: that is told by the heading.
        Some(name) if test.is_empty() => {
            let parts = ["_read1", "_read2", "_write1", "_write2", "_total"];
            parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name).to_owned()
        }
        _ => test.to_owned(),
    }
}

/// Other tools' lines end a run.
fn belongs_elsewhere(text: &str) -> bool {
    ["D\\D", "P2P ", "P2P=", "# OSU", "# nThread", "mpiGraph", "NCCL INFO", "TransferBench", "nvidia-smi"]
        .iter()
        .any(|word| text.contains(word))
}
