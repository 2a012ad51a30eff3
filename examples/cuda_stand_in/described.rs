//! A box of GPUs as a file describes it: the same files that the stand-in for NVML serves, with tables of our own.

#![allow(dead_code, reason = "the stand-ins for CUDA and NCCL share this, and each reads its own part")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use toml::{Table, Value};

/// What the file named by `TOPOSCOPE_STAND_IN` says, and the TOML in `TOPOSCOPE_STAND_IN_ALSO` on top of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Described {
    pub model: Model,
    pub gpu: Vec<Gpu>,
    /// later entries overrule earlier ones
    pub pair: Vec<Pair>,
    pub cuda: Cuda,
    pub nccl: Nccl,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Model {
    pub name: String,
    /// NVML's number
    pub architecture: u32,
    pub memory_gib: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self { name: "NVIDIA stand-in".to_owned(), architecture: 7, memory_gib: 1 }
    }
}

#[derive(Debug, Deserialize)]
pub struct Gpu {
    pub address: String,
}

/// Peer access; a pair of none has none, but for a box without any pairs, where all GPUs reach each other.
#[derive(Debug, Deserialize)]
pub struct Pair {
    pub a: String,
    pub b: String,
    /// status of read, write, nvlink, atomics and prop, in nvidia-smi's words
    pub p2p: [String; 5],
}

/// The driver and how it fails.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Cuda {
    /// as `cuDriverGetVersion` tells it
    pub version: i32,
    /// bytes of each GPU, if not the model's
    pub memory: Option<u64>,
    /// bytes of a GPU's L2 cache, as it tells of itself
    pub l2: i32,
    /// the GPUs in the order of `CUDA_DEVICE_ORDER=FASTEST_FIRST`, which is CUDA's default; that of the file if none is told
    pub order: Vec<usize>,
    /// false: no GPU reaches another one
    pub p2p: bool,
    /// false: streams cannot wait for words, as the device tells of itself
    pub wait_value: bool,
    /// GB/s at most; 0 for as fast as memory is
    pub rate: Rate,
    /// GPUs that processes of some ranks do not see
    pub hidden: Vec<Hidden>,
    pub fail: Vec<Fail>,
}

impl Default for Cuda {
    fn default() -> Self {
        Self {
            version: 12_080,
            memory: None,
            l2: 0,
            order: Vec::new(),
            p2p: true,
            wait_value: true,
            rate: Rate::default(),
            hidden: Vec::new(),
            fail: Vec::new(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rate {
    /// within a GPU
    pub local: f64,
    /// between two of them
    pub peer: f64,
    /// to and from the host
    pub host: f64,
}

#[derive(Debug, Deserialize)]
pub struct Hidden {
    pub gpus: String,
    /// every process, if none is named
    pub ranks: Option<String>,
}

/// NCCL, its ways between ranks and how it fails.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Nccl {
    /// as `ncclGetVersion` tells it
    pub version: i32,
    /// the way from rank to rank in its log; the last entry that has both counts, else P2P/CUMEM or SHM/direct/direct
    pub via: Vec<Via>,
    pub fail: Vec<Fail>,
}

impl Default for Nccl {
    fn default() -> Self {
        Self { version: 22_907, via: Vec::new(), fail: Vec::new() }
    }
}

#[derive(Debug, Deserialize)]
pub struct Via {
    pub from: String,
    pub to: String,
    /// such as `NET/IB/0/GDRDMA`
    #[serde(rename = "via")]
    pub way: String,
}

/// A call that fails.
#[derive(Debug, Deserialize)]
pub struct Fail {
    /// its name; of streams' work that fails later, the call that enqueues it
    pub call: String,
    /// the error's name; `hang` for work that never ends until it is aborted; of CUDA's, `lost` for work that does nothing and goes well
    pub error: String,
    /// calls that go well first
    #[serde(default)]
    pub after: u64,
    /// calls that fail then; all, if none is told
    pub times: Option<u64>,
    /// every process, if none is named
    pub ranks: Option<String>,
    /// true if the call goes well and the stream fails when it gets there
    #[serde(default)]
    pub late: bool,
    /// true if every later call on the GPU fails the same way
    #[serde(default)]
    pub sticky: bool,
    #[serde(skip)]
    seen: AtomicU64,
}

impl Fail {
    /// True if the stream fails, and not the call: what never ends always does.
    pub fn is_late(&self) -> bool {
        self.late || self.error == "hang"
    }
}

/// True if a process runs: one that ended and was not yet waited for does not.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|after| !after.is_empty() && !after.trim_start().starts_with(['Z', 'X']))
}

/// True if a list such as `0-3,7` has a number.
pub fn has(list: &str, number: usize) -> bool {
    list.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        matches!((from.trim().parse::<usize>(), to.trim().parse::<usize>()), (Ok(from), Ok(to)) if (from..=to).contains(&number))
    })
}

/// This process's rank, as its launcher says.
pub fn rank() -> Option<usize> {
    let names = ["TOPOSCOPE_STAND_IN_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn of_rank(ranks: Option<&String>) -> bool {
    ranks.is_none_or(|ranks| rank().is_some_and(|rank| has(ranks, rank)))
}

/// Put one description on top of another: tables join, lists of what is overruled one by one grow, all else is replaced.
fn lay(over: Table, under: &mut Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay(above, below),
            (Some(Value::Array(below)), Value::Array(above)) if matches!(key.as_str(), "pair" | "fail" | "hidden" | "via") => {
                below.extend(above);
            }
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

fn table(path: &Path) -> Result<Table, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let own: Table = std::fs::read_to_string(path).map_err(|error| wrong(&error))?.parse().map_err(|error| wrong(&error))?;
    let Some(base) = own.get("base").and_then(Value::as_str) else { return Ok(own) };
    let mut all = table(&path.with_file_name(base))?;
    lay(own, &mut all);
    Ok(all)
}

impl Described {
    /// What the environment says; four GPUs that reach each other if it says nothing.
    pub fn read() -> Result<Self, String> {
        let mut all = match std::env::var_os("TOPOSCOPE_STAND_IN") {
            Some(path) => table(Path::new(&path))?,
            None => Table::new(),
        };
        if let Ok(also) = std::env::var("TOPOSCOPE_STAND_IN_ALSO") {
            lay(also.parse().map_err(|error| format!("TOPOSCOPE_STAND_IN_ALSO: {error}"))?, &mut all);
        }
        let mut told: Self = all.try_into().map_err(|error| error.to_string())?;
        if told.gpu.is_empty() {
            told.gpu = (1..=4).map(|bus| Gpu { address: format!("0000:{bus:02x}:00.0") }).collect();
        }
        Ok(told)
    }

    /// True if a GPU can reach another one's memory.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        if from == to || self.pair.is_empty() {
            return from == to || self.cuda.p2p;
        }
        let pair = self.pair.iter().rev().find(|pair| (has(&pair.a, from) && has(&pair.b, to)) || (has(&pair.a, to) && has(&pair.b, from)));
        self.cuda.p2p && pair.is_some_and(|pair| pair.p2p[0] == "OK" && pair.p2p[1] == "OK")
    }

    /// Bytes of a GPU.
    pub fn memory(&self) -> u64 {
        self.cuda.memory.unwrap_or(self.model.memory_gib << 30)
    }

    /// The GPUs that this process sees, in CUDA's order.
    pub fn visible(&self) -> Vec<usize> {
        let by_address = std::env::var("CUDA_DEVICE_ORDER").is_ok_and(|order| order == "PCI_BUS_ID");
        let mut all: Vec<usize> =
            if by_address || self.cuda.order.is_empty() { (0..self.gpu.len()).collect() } else { self.cuda.order.clone() };
        let hidden = |gpu: usize| self.cuda.hidden.iter().any(|hidden| has(&hidden.gpus, gpu) && of_rank(hidden.ranks.as_ref()));
        all.retain(|&gpu| gpu < self.gpu.len() && !hidden(gpu));
        let Ok(wanted) = std::env::var("CUDA_VISIBLE_DEVICES") else { return all };
        let mut seen = Vec::new();
        // The first one that is none ends the list.
        for part in wanted.split(',') {
            let part = part.trim();
            let by_name = || all.iter().copied().find(|&gpu| part.starts_with("GPU-") && uuid(gpu).starts_with(part));
            let Some(gpu) = part.parse::<usize>().ok().and_then(|at| all.get(at).copied()).or_else(by_name) else { break };
            if seen.contains(&gpu) {
                return Vec::new();
            }
            seen.push(gpu);
        }
        seen
    }
}

/// A GPU's UUID, as the stand-in for NVML tells it.
pub fn uuid(gpu: usize) -> String {
    format!("GPU-{gpu:08x}-0000-0000-0000-{:012x}", 0)
}

/// The failure that a call is to meet this time.
pub fn failure<'a>(fails: &'a [Fail], call: &str) -> Option<&'a Fail> {
    fails.iter().filter(|fail| fail.call == call && of_rank(fail.ranks.as_ref())).find(|fail| {
        let seen = fail.seen.fetch_add(1, Ordering::Relaxed);
        seen >= fail.after && fail.times.is_none_or(|times| seen < fail.after + times)
    })
}
