//! Raw samples of `DeepSpeed`'s affine-transfer calibration (`calibrate_links`), with the names that its threads state.

use serde::Deserialize;
use serde_json::Value;

use super::dispatch::{MOST_ENDS, MOST_SAMPLES};
use super::table::weight;
use super::{End, SizeFrom, Table, Tool};
use crate::import::Skips;
use crate::import::text::named;
use crate::sample::{Memory, Pattern, Sample, Status};
use crate::topology::PathClass;

/// One sample; what is absent where a pattern has no use for it has a default.
#[derive(Debug, Deserialize)]
struct Entry {
    pattern: String,
    #[serde(default)]
    both_ways: bool,
    #[serde(alias = "from")]
    from_process: usize,
    #[serde(alias = "to")]
    to_process: usize,
    process: Option<usize>,
    root: Option<usize>,
    #[serde(default)]
    peers: Vec<usize>,
    shift: Option<usize>,
    bytes: u64,
    #[serde(default)]
    repeat: u32,
    seconds: f64,
    root_seconds: Option<f64>,
    path: Option<String>,
    receive_path: Option<String>,
    send_path: Option<String>,
}

/// Read a document; `None` if it is another tool's.
pub(super) fn json(root: &Value, skips: &mut Skips) -> Option<Vec<Table>> {
    let samples = root.get("samples")?.as_array()?;
    let first = samples.iter().find_map(Value::as_object)?;
    if !(first.contains_key("pattern") && (first.contains_key("from_process") || root.get("backend").is_some())) {
        return None;
    }
    let seats: Vec<u64> = root["node_of"].as_array().into_iter().flatten().filter_map(Value::as_u64).take(MOST_ENDS).collect();
    let told = root["world"].as_u64().and_then(|world| usize::try_from(world).ok()).unwrap_or(seats.len());
    let mut read: Vec<Sample> = Vec::new();
    let (mut wrong, mut first_wrong) = (0_usize, String::new());
    for (at, value) in samples.iter().take(MOST_SAMPLES).enumerate() {
        match Entry::deserialize(value).map_err(|error| error.to_string()).and_then(|entry| sample(entry, &seats)) {
            Ok(sample) => {
                if !skips.takes(1, weight(&sample)) {
                    break;
                }
                read.push(sample);
            }
            Err(why) => {
                if wrong == 0 {
                    first_wrong = format!("samples[{at}]: {}", named(&why));
                }
                wrong += 1;
            }
        }
    }
    if wrong > 0 {
        skips.push(1, format!("{wrong} samples left out, the first: {first_wrong}"));
    }
    if samples.len() > MOST_SAMPLES {
        skips.push(1, format!("more than {MOST_SAMPLES} samples: the rest is left out"));
    }
    let ranks = read.iter().flat_map(|sample| [sample.from, sample.to].into_iter().chain(sample.root).chain(sample.peers.iter().copied()));
    let world = ranks.max().map_or(0, |most| most + 1).max(if told <= MOST_ENDS { told } else { 0 });
    let read = if skips.takes(1, world * (size_of::<End>() + 48)) { read } else { Vec::new() };
    let host = |rank: usize| seats.get(rank).map(|node| format!("node{node}"));
    let device = root["device"].as_str().unwrap_or("cpu");
    let memory = if device.starts_with("cuda") { Memory::Cuda } else { Memory::Host };
    let mut notes = Vec::new();
    if let Some(backend) = root["backend"].as_str() {
        notes.push(format!("backend {}, device {}", named(backend), named(device)));
    }
    if read.is_empty() {
        skips.push(1, "DeepSpeed raw samples: no sample could be read");
        return Some(Vec::new());
    }
    Some(vec![Table {
        tool: Tool::DeepSpeed,
        test: "calibrate_links".to_owned(),
        version: root["format"].as_u64().map(|format| format!("format {format}")),
        line: 1,
        unit: "s",
        orientation: "from_process sends, to_process receives",
        size_from: SizeFrom::Told,
        memory,
        ends: (0..world).map(|rank| End { label: format!("process {rank}"), host: host(rank), ..End::default() }).collect(),
        samples: read,
        collectives: Vec::new(),
        notes,
    }])
}

fn sample(entry: Entry, seats: &[u64]) -> Result<Sample, String> {
    let pattern = match (entry.pattern.as_str(), entry.both_ways) {
        ("local", _) => Pattern::Local,
        ("peer", false) => Pattern::Peer,
        ("peer", true) => Pattern::Duplex,
        ("fan_out", _) => Pattern::FanOut,
        ("fan_in", _) => Pattern::FanIn,
        ("relay", _) => Pattern::Relay,
        (other, _) => return Err(format!("pattern {other:?} is not one of local, peer, fan_out, fan_in, relay")),
    };
    let most =
        [entry.from_process, entry.to_process].into_iter().chain(entry.root).chain(entry.process).chain(entry.peers.iter().copied()).max();
    if most.is_some_and(|most| most >= MOST_ENDS) {
        return Err(format!("process {}: more than {MOST_ENDS}", most.unwrap_or_default()));
    }
    if entry.bytes == 0 || !(entry.seconds.is_finite() && entry.seconds > 0.0) {
        return Err(format!("{} bytes in {} s", entry.bytes, entry.seconds));
    }
    if pattern.is_fan() && (entry.root.is_none() || entry.peers.is_empty()) {
        return Err("a fan without root or peers".to_owned());
    }
    // A relay's sample is one process's own time: it sends to the one above.
    let (from, to) = match (pattern, entry.process) {
        (Pattern::Relay, Some(process)) => (process, entry.to_process),
        (Pattern::Local, _) => (entry.from_process, entry.from_process),
        _ => (entry.from_process, entry.to_process),
    };
    if (pattern == Pattern::Local) != (from == to) {
        return Err(format!("{} from process {from} to process {to}", entry.pattern));
    }
    if pattern.is_fan() {
        let (root, peer) = if pattern == Pattern::FanOut { (from, to) } else { (to, from) };
        let mut peers = entry.peers.clone();
        peers.sort_unstable();
        peers.dedup();
        // A place that nothing tells would be another's.
        if entry.root != Some(root) || peers.len() < entry.peers.len() || peers.contains(&root) || peers.binary_search(&peer).is_err() {
            return Err(format!("{} from process {from} to process {to}, of which root and peers tell otherwise", entry.pattern));
        }
    }
    let between = |a: usize, b: usize| match (a == b, seats.get(a), seats.get(b)) {
        (true, ..) => PathClass::Local,
        (_, Some(a), Some(b)) if a != b => PathClass::InterNode,
        _ => PathClass::IntraNode,
    };
    let named = |name: &Option<String>| match name.as_deref() {
        Some("local") => Some(PathClass::Local),
        Some("intra_node" | "peer") => Some(PathClass::IntraNode),
        Some("inter_node") => Some(PathClass::InterNode),
        _ => None,
    };
    let path = named(&entry.path).unwrap_or_else(|| between(from, to));
    Ok(Sample {
        root: entry.root,
        width: pattern.is_fan().then_some(entry.peers.len()),
        peers: entry.peers,
        shift: (pattern == Pattern::Relay).then(|| entry.shift.unwrap_or(1)),
        repeat: entry.repeat,
        messages: 1,
        seconds: Some(entry.seconds),
        root_seconds: entry.root_seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0),
        receive_path: named(&entry.receive_path).filter(|_| pattern == Pattern::Relay),
        send_path: named(&entry.send_path).filter(|_| pattern == Pattern::Relay),
        status: Status::Ok,
        ..Sample::blank(pattern, from, to, entry.bytes, path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_whose_processes_do_not_fit_are_left_out_with_the_reason() {
        let mut skips = Skips::default();
        let sample = |words: &str| format!(r#"{{"pattern": {words}, "bytes": 8, "seconds": 1e-5}}"#);
        let wrong = [
            r#""peer", "from": 1, "to": 1"#,
            r#""fan_in", "from": 1, "to": 0, "root": 0"#,
            r#""fan_in", "from": 1, "to": 0, "root": 2, "peers": [1]"#,
            r#""fan_in", "from": 1, "to": 0, "root": 0, "peers": [2]"#,
            r#""fan_out", "from": 0, "to": 1, "root": 0, "peers": [1, 0]"#,
            r#""fan_out", "from": 0, "to": 1, "root": 0, "peers": [1, 1]"#,
            r#""fan_out", "from": 0, "to": 1, "root": 0, "peers": [1, "x"]"#,
            r#""peer", "from": 0, "to": 99999"#,
            r#""peer", "from": 0"#,
        ];
        let right = [r#""peer", "from": 1, "to": 0"#, r#""fan_out", "from": 0, "to": 1, "root": 0, "peers": [2, 1]"#];
        for words in wrong {
            let text = format!(r#"{{"backend": "nccl", "samples": [{}]}}"#, sample(words));
            assert_eq!(json(&serde_json::from_str(&text).unwrap(), &mut skips), Some(Vec::new()), "{words}");
        }
        let all: Vec<String> = wrong.iter().chain(&right).map(|words| sample(words)).collect();
        let text = format!(r#"{{"backend": "nccl", "samples": [{}]}}"#, all.join(", "));
        let mut skips = Skips::default();
        let tables = json(&serde_json::from_str(&text).unwrap(), &mut skips).unwrap();
        assert_eq!(tables[0].samples.len(), 2);
        let told = skips.sorted();
        assert!(told[0].reason.starts_with("9 samples left out, the first: samples[0]: peer from process 1 to process 1"), "{told:?}");
    }
}
