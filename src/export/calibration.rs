use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};

use super::file::{ExportError, io_at, write_whole};
use crate::sample::{EngineKind, Memory, MoverKind, Pattern, Sample, Status};
use crate::session::{GroupShot, Model};
use crate::sweep::{Buffers, Enough, Group};
use crate::topology::{GpuRange, Hardware, Placement, Topology};
use crate::units::{plain, plain_json};

/// Name and major version of the format that this version writes.
pub(super) const FORMAT: (&str, u32) = ("toposcope.calibration", 1);

/// How the end of a repeat is seen, as `transport::timed` does it.
const COMPLETION: &str = "the receiver's: a repeat ends when its acknowledgement that every byte is in its buffer reaches the sender, \
     one after each window; half the median of 32 empty round trips, measured before each probe, is taken off for each \
     acknowledgement and told as ack_seconds; a local copy ends when the copy returns, without acknowledgement. Transfers at the \
     same time (duplex, fan_in, fan_out, relay, custom) start on one word, of the fan's root or else of the lowest rank, and each \
     ends so; a relay's sample is its sender's own time until its send is acknowledged and its receive is complete. root_seconds is \
     the root's own time: in fan_in from its release of the senders until the last byte of all is in its buffers, in fan_out until \
     the last acknowledgement, each with half a round trip a window taken off";

/// Where a GPU's copies are timed.
const COMPLETION_GPU: &str = "the GPU's: each window is enqueued whole behind a gate that is opened when the receiver is ready, and its time \
     is that between two events on its stream, after the gate and after its last copy; a repeat is the sum of its windows, without the \
     acknowledgements between them (ack_seconds 0). memcpy and cuda_ipc_push are timed by the sender's GPU, which copies, cuda_ipc_pull by \
     the receiver's; nccl and nccl_put by both, of which the longer time counts. Transfers at the same time start on one word, of the fan's root or else \
     of the lowest rank, each on a stream of its own and each timed from its own gate, but for \
     nccl and nccl_put, where all that a rank sends and receives of a window is one group with one time; a relay's sample is the longer one of its sender's \
     two transfers, and root_seconds is the longest of the root's. mpi_sendrecv and mpi_put on memory of GPUs are timed as on the host's";

/// Hosts of the job, and what they are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hosts {
    /// names, in the order in which ranks name them; `node_of` indexes them
    pub hosts: Vec<String>,
    /// of those hosts that told it, at most one entry a host
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<Hardware>,
}

/// Raw samples and what they were taken on: what a planner reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `toposcope.calibration/1`
    pub format: String,
    /// ranks of the job
    pub world: usize,
    /// ranks that were measured, ascending; where only a group of a larger job took part, the job's own numbers of the
    /// ranks 0.. that everything else in here names
    pub group: Vec<usize>,
    /// index into `topology.hosts`, one a rank
    pub node_of: Vec<usize>,
    /// one entry a rank, in rank order
    pub placement: Vec<Placement>,
    pub engine: EngineKind,
    pub mover: MoverKind,
    pub memory: Memory,
    /// this program, the operating system, the MPI library and the like, by name
    pub software: BTreeMap<String, String>,
    /// variables that change what is measured
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// start of the session, RFC 3339, UTC
    #[serde(default)]
    pub started: String,
    /// how the ranks' GPUs were doing between the probes
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuRange>,
    /// message sizes, bytes, ascending
    pub sizes: Vec<u64>,
    /// timed repeats asked for each target and size: exactly, or with `ci` at most
    pub repeats: u32,
    /// half-width of the median's 95 % interval that was asked for, as a share of the median; 0 for a fixed number of repeats
    #[serde(default)]
    pub ci: f64,
    /// longest time asked for, seconds; 0 for none
    #[serde(default)]
    pub budget: f64,
    /// one probe at a time, always; else rounds of probes that do not disturb each other
    #[serde(default)]
    pub isolated: bool,
    /// pairs asked for from each rank; 0 for all
    #[serde(default)]
    pub pairs: usize,
    /// widths of fans asked for; empty where the hosts decided
    #[serde(default)]
    pub widths: Vec<usize>,
    /// shifts of relays asked for
    #[serde(default)]
    pub shifts: Vec<usize>,
    /// pairs and groups, times sizes, by what ended their repeats
    #[serde(default)]
    pub enough: BTreeMap<Enough, u64>,
    /// untimed repeats before the timed ones
    pub warmup: u32,
    /// messages outstanding at a time
    pub window: u32,
    pub buffers: Buffers,
    /// bytes of the arena a rank sends from, and of the one it receives into
    pub arena: u64,
    /// longest time for one probe, seconds
    pub timeout: f64,
    /// seed of the probes' order and of the payload
    pub seed: u64,
    /// how the end of a repeat is seen
    pub completion: String,
    pub topology: Hosts,
    /// by pattern, pair or group, size, take and repeat
    pub samples: Vec<Sample>,
}

/// The calibration of a session: the samples of all its sweeps, with the settings of the newest.
pub fn calibration(model: &Model) -> Result<Calibration, ExportError> {
    let settings = &model.sweep.as_ref().ok_or(ExportError::Nothing)?.settings;
    let header = &model.header;
    let topology = &header.topology;
    let mut samples = Vec::new();
    for (cell, sizes) in model.cells.iter() {
        for size in sizes {
            let blank = Sample::blank(cell.pattern, cell.from, cell.to, size.bytes, topology.path(cell.from, cell.to));
            samples.extend(size.shots.iter().map(|shot| shot.sample(blank.clone())));
        }
    }
    for (group, sizes) in model.groups.iter() {
        for size in sizes {
            samples.extend(size.shots.iter().map(|shot| of_group(group, size.bytes, shot)));
        }
    }
    for reason in samples.iter_mut().filter_map(|sample| sample.reason.as_mut()) {
        *reason = plain(reason);
    }
    // Cells come in no order of their own; a stable sort keeps the order of arrival where two samples share a place.
    samples.sort_by(|a, b| place(a).cmp(&place(b)));
    let mut enough = BTreeMap::new();
    let pairs = model.cells.iter().flat_map(|(_, sizes)| sizes).filter_map(|size| size.enough);
    let groups = model.groups.iter().flat_map(|(_, sizes)| sizes).filter_map(|size| size.enough);
    for why in pairs.chain(groups) {
        *enough.entry(why).or_insert(0) += 1;
    }
    let mut software = header.software.clone();
    software.insert("toposcope".to_owned(), header.program.clone());
    let cache = topology.ranks.iter().map(|placement| placement.cache).max().unwrap_or(0);
    Ok(Calibration {
        format: format!("{}/{}", FORMAT.0, FORMAT.1),
        world: model.world(),
        group: if header.group.is_empty() { settings.ranks_of(model.world()) } else { header.group.clone() },
        node_of: topology.node_of(),
        placement: topology.ranks.clone(),
        engine: header.engine,
        mover: settings.mover,
        memory: settings.memory,
        software,
        environment: header.environment.clone(),
        started: header.started.clone(),
        gpus: model.gpus.values().cloned().collect(),
        sizes: settings.sizes.clone(),
        repeats: settings.repeats,
        ci: settings.ci,
        budget: settings.budget,
        isolated: settings.isolated,
        pairs: settings.pairs,
        widths: settings.widths.clone(),
        shifts: settings.shifts.clone(),
        enough,
        warmup: settings.warmup,
        window: settings.window,
        buffers: settings.buffers,
        arena: settings.arena_bytes(cache),
        timeout: settings.timeout,
        seed: settings.seed,
        completion: if settings.memory.is_host() { COMPLETION.to_owned() } else { format!("{COMPLETION_GPU}: {COMPLETION}") },
        topology: Hosts { hosts: topology.hosts().into_iter().map(str::to_owned).collect(), hardware: topology.hardware.clone() },
        samples,
    })
}

/// A sample of a group with all that its group says.
fn of_group(group: &Group, bytes: u64, shot: &GroupShot) -> Sample {
    let blank = Sample::blank(group.pattern, shot.from, shot.to, bytes, shot.path);
    Sample {
        root: group.root,
        peers: group.peers.clone(),
        width: group.root.map(|_| group.peers.len()),
        shift: group.shift,
        set: group.set,
        root_seconds: shot.root_seconds,
        receive_path: shot.receive_path,
        send_path: shot.receive_path.map(|_| shot.path),
        ..shot.shot.sample(blank)
    }
}

/// Where a sample stands in the file: its group as a whole, then its pair, size, take and repeat.
#[allow(clippy::type_complexity, reason = "a key, not an interface")]
fn place(s: &Sample) -> (Pattern, Option<usize>, &[usize], Option<usize>, Option<u32>, u64, u32, bool, u32, usize, usize) {
    // Pairs by sender and receiver first; of groups all transfers of a repeat together.
    let (root, shift) = if s.pattern.is_pair() { (Some(s.from), Some(s.to)) } else { (s.root, s.shift) };
    (s.pattern, root, &s.peers, shift, s.set, s.bytes, s.take, !s.warmup, s.repeat, s.from, s.to)
}

/// Write the calibration of a session, whole or not at all: one key a line, one sample a line.
pub fn write_calibration(model: &Model, path: &Path) -> Result<(), ExportError> {
    let calibration = calibration(model)?;
    write_whole(path, |out| calibration.write(out))
}

/// What every version of the format has.
#[derive(Deserialize)]
struct Version {
    format: String,
}

/// Read a calibration. Unknown keys of later minor versions are skipped; a later major version is refused.
pub fn read_calibration(path: &Path) -> Result<Calibration, ExportError> {
    parse_calibration(&fs::read(path).map_err(io_at(path))?, path)
}

/// [`read_calibration`] of what was read already; `path` is only for what is said about it.
pub fn parse_calibration(text: &[u8], path: &Path) -> Result<Calibration, ExportError> {
    let bad = |error: serde_json::Error| ExportError::Bad {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        // serde_json says what it expected, and repeats the place that we tell first.
        message: format!(
            "{}{}",
            plain(error.to_string().split(" at line ").next().unwrap_or_default()),
            if error.is_eof() { ": the file is cut off; write it again, or take another copy" } else { "" }
        ),
    };
    // The version first: a later major version need not have the keys of ours.
    let found = plain(&serde_json::from_slice::<Version>(text).map_err(bad)?.format);
    let (name, ours) = FORMAT;
    let major = found.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).and_then(|version| {
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        minor.parse::<u32>().ok()?;
        major.parse::<u32>().ok()
    });
    match major {
        Some(major) if major == ours => {}
        Some(major) if major > ours => {
            return Err(ExportError::Newer { path: path.to_owned(), found, ours: format!("{name}/{ours}") });
        }
        _ => {
            let (at, expected) = ("format".to_owned(), format!("{name}/{ours}"));
            return Err(ExportError::Invalid { path: path.to_owned(), at, found: format!("{found:?}"), expected });
        }
    }
    let mut calibration: Calibration = serde_json::from_slice(text).map_err(bad)?;
    calibration.clean();
    calibration.check().map_err(|(at, found, expected)| ExportError::Invalid { path: path.to_owned(), at, found, expected })?;
    Ok(calibration)
}

impl Calibration {
    /// Write as JSON: one key a line, and in lists of objects one object a line.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        write_lines(self, &mut out)?;
        out.write_all(b"\n")
    }

    /// The ranks that were measured, as samples number them.
    pub fn ranks(&self) -> Vec<usize> {
        if self.group.len() == self.world { (0..self.world).collect() } else { self.group.clone() }
    }

    /// Where the ranks sit.
    pub fn placed(&self) -> Topology {
        Topology { ranks: self.placement.clone(), hardware: self.topology.hardware.clone() }
    }

    /// Text from outside is data: no control characters.
    fn clean(&mut self) {
        let map = |map: &BTreeMap<String, String>| map.iter().map(|(key, value)| (plain(key), plain(value))).collect();
        (self.software, self.environment) = (map(&self.software), map(&self.environment));
        self.gpus = self.gpus.iter().filter(|range| range.rank < self.world).filter_map(|range| range.cleaned(plain)).collect();
        (self.started, self.completion) = (plain(&self.started), plain(&self.completion));
        let names = self.topology.hosts.iter_mut().chain(self.placement.iter_mut().map(|placement| &mut placement.host));
        for text in names.chain(self.samples.iter_mut().filter_map(|sample| sample.reason.as_mut())) {
            *text = plain(text);
        }
        if let Ok(mut hardware) = serde_json::to_value(&self.topology.hardware) {
            plain_json(&mut hardware);
            self.topology.hardware = serde_json::from_value(hardware).unwrap_or_default();
        }
    }

    /// What is at odds with itself: where, what is there, what was expected.
    fn check(&self) -> Result<(), (String, String, String)> {
        let refuse = |at: String, found: String, expected: String| Err((at, found, expected));
        let world = self.world;
        for (at, length) in [("node_of", self.node_of.len()), ("placement", self.placement.len())] {
            if length != world {
                return refuse(at.to_owned(), format!("a list of {length}"), format!("one entry for each of {world} ranks (world)"));
            }
        }
        let hosts = self.topology.hosts.len();
        if let Some((rank, node)) = self.node_of.iter().enumerate().find(|&(_, &node)| node >= hosts) {
            return refuse(format!("node_of[{rank}]"), node.to_string(), format!("an index below {hosts} (topology.hosts)"));
        }
        let whole = self.group.len() == world;
        if let Some((at, rank)) = self.group.iter().enumerate().find(|&(_, &rank)| !whole && rank >= world) {
            return refuse(format!("group[{at}]"), rank.to_string(), format!("a rank below {world} (world)"));
        }
        if let Some((at, placement)) = self.placement.iter().enumerate().find(|&(at, placement)| placement.rank != at) {
            return refuse(format!("placement[{at}].rank"), placement.rank.to_string(), format!("{at}: ranks in order"));
        }
        for (number, sample) in self.samples.iter().enumerate() {
            let at = |key: &str| format!("samples[{number}].{key}");
            let root = sample.root.map(|rank| ("root", rank));
            let peers = sample.peers.iter().map(|&rank| ("peers", rank));
            for (key, rank) in [("from", sample.from), ("to", sample.to)].into_iter().chain(root).chain(peers) {
                if rank >= world {
                    return refuse(at(key), rank.to_string(), format!("a rank below {world} (world)"));
                }
            }
            if sample.bytes == 0 {
                return refuse(at("bytes"), "0".to_owned(), "at least 1".to_owned());
            }
            let timed = sample.seconds.is_some_and(|seconds| seconds.is_finite() && seconds > 0.0) && sample.messages > 0;
            if sample.status == Status::Ok && !timed {
                let found = format!("ok with seconds {:?} and {} messages", sample.seconds, sample.messages);
                return refuse(at("status"), found, "an ok sample to have seconds above 0 and at least one message".to_owned());
            }
        }
        Ok(())
    }
}

/// JSON with one key of the document a line, and one object of its lists.
pub(super) fn write_lines(document: &impl Serialize, out: impl Write) -> io::Result<()> {
    Ok(document.serialize(&mut Serializer::with_formatter(out, Lines::default()))?)
}

/// One key of the document a line, one object of its lists a line, the rest without spaces.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    /// the list of the document that is being written holds objects
    objects: bool,
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.depth == 2 {
            self.objects = false;
        }
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.depth == 2 && self.objects {
            out.write_all(b"\n  ")?;
        }
        self.depth -= 1;
        out.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.depth == 2 {
            self.objects = true;
            out.write_all(b"\n    ")?;
        }
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"\n}" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.depth == 1 { out.write_all(b"\n  ") } else { Ok(()) }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.depth == 1 { b": " } else { b":" })
    }
}
