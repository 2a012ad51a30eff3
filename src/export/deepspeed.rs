use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::Calibration;
use super::file::{ExportError, write_whole};
use crate::sample::{EngineKind, Memory, MoverKind, Pattern, Sample};
use crate::topology::PathClass;

/// Raw samples with the field names of `DeepSpeed`'s affine-transfer calibration (`calibrate_links`, as its threads state
/// them): what its `fit_links` and policies read.
///
/// One message a sample, seconds each. Warm-ups and what did not complete are left out, as the reference has neither;
/// `custom` patterns and copies between hosts and GPUs too, which it does not know. Two-way samples are `peer` with `both_ways`;
/// those of a relay are one process's own time, labelled with where it received from and where it sent to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeepSpeed {
    format: u32,
    world: usize,
    /// ranks of the job; samples number ranks within it
    group: Vec<usize>,
    node_of: Vec<usize>,
    backend: &'static str,
    device: &'static str,
    software: BTreeMap<String, String>,
    sizes: Vec<u64>,
    repeats: u32,
    warmup: u32,
    fan_widths: Vec<usize>,
    samples: Vec<Entry>,
    /// samples that have no place in this format, by reason
    #[serde(skip)]
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Entry {
    pattern: &'static str,
    both_ways: bool,
    from_process: usize,
    to_process: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    peers: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<usize>,
    bytes: u64,
    repeat: u32,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_seconds: Option<f64>,
    path: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive_path: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    send_path: Option<&'static str>,
}

/// A calibration in the reference's words.
pub fn deepspeed(calibration: &Calibration) -> DeepSpeed {
    let samples: Vec<Entry> = calibration.samples.iter().filter_map(|sample| entry(calibration, sample)).collect();
    let mut fan_widths: Vec<usize> = samples.iter().filter_map(|entry| entry.width).collect();
    fan_widths.sort_unstable();
    fan_widths.dedup();
    DeepSpeed {
        format: 1,
        world: calibration.world,
        group: calibration.group.clone(),
        node_of: calibration.node_of.clone(),
        backend: backend(calibration.engine, calibration.mover),
        device: match calibration.memory {
            Memory::Host => "cpu",
            Memory::Cuda => "cuda",
        },
        software: calibration.software.clone(),
        sizes: calibration.sizes.clone(),
        repeats: calibration.repeats,
        warmup: calibration.warmup,
        fan_widths,
        left_out: calibration.samples.len() - samples.len(),
        samples,
    }
}

/// Write [`deepspeed`] to a file, whole or not at all: one sample a line. How many samples have no place there.
pub fn write_deepspeed(calibration: &Calibration, path: &Path) -> Result<usize, ExportError> {
    let document = deepspeed(calibration);
    write_whole(path, |out| super::calibration::write_lines(&document, &mut *out).and_then(|()| out.write_all(b"\n")))?;
    Ok(document.left_out)
}

const fn backend(engine: EngineKind, mover: MoverKind) -> &'static str {
    match (engine, mover) {
        (EngineKind::Mpi, MoverKind::MpiSendrecv | MoverKind::MpiPut) => "mpi",
        // As torch calls its backend; puts and copies through mapped windows have no name there.
        _ => mover.name(),
    }
}

/// The labels of the reference: a copy inside a process is `local`, whatever the hosts.
fn entry(calibration: &Calibration, sample: &Sample) -> Option<Entry> {
    let seconds = sample.seconds_per_message()?;
    if sample.pattern == Pattern::Custom || sample.pattern.crosses() {
        return None;
    }
    let relay = sample.pattern == Pattern::Relay;
    let shift = sample.shift.unwrap_or(0);
    // A relay's ranks are those of the group, in order; the one below sends to this one.
    let source = || {
        let ring = calibration.ranks();
        let (at, n) = (ring.iter().position(|&rank| rank == sample.from)?, ring.len());
        ring.get((at + n - shift % n) % n).copied()
    };
    let name = |path: PathClass| path.name();
    Some(Entry {
        pattern: if sample.pattern == Pattern::Duplex { Pattern::Peer.name() } else { sample.pattern.name() },
        both_ways: sample.both_ways,
        from_process: if relay { source()? } else { sample.from },
        to_process: sample.to,
        process: relay.then_some(sample.from),
        root: sample.root,
        peers: sample.peers.clone(),
        width: sample.width,
        shift: sample.shift,
        bytes: sample.bytes,
        repeat: sample.repeat,
        seconds,
        root_seconds: sample.root_seconds.map(|seconds| seconds / sample.messages.max(1) as f64),
        path: name(sample.path),
        receive_path: sample.receive_path.map(name),
        send_path: sample.send_path.map(name),
    })
}
