//! The system -> where this rank sits, and what its host is made of. Reads files below a root, so that a recorded tree serves
//! as a test and as a report of a fault.

mod config;
mod cpu;
mod gpu;
mod link;
#[cfg(test)]
mod made;
mod names;
mod net;
mod numa;
mod pci;
mod read;
mod system;
#[cfg(test)]
mod tests;

#[cfg(feature = "nvml")]
pub mod nvml;

use std::fs;
use std::path::{Path, PathBuf};

pub use names::class_name;

use crate::topology::{Hardware, Placement};
use crate::units::plain;

/// A machine as seen through its files: `/` for this one, or a folder with a recorded `/sys` and `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Machine {
    /// The machine whose `sys` and `proc` lie below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn read(&self, path: &str) -> Option<String> {
        read::text(&self.root.join(path.trim_start_matches('/')))
    }

    /// Host name, without control characters; `unknown` if there is none.
    pub fn host(&self) -> String {
        let name = read::word(&self.root.join("proc/sys/kernel/hostname"));
        // hwloc-gather-topology records it elsewhere.
        let recorded = || {
            let info = self.read("/proc/hwloc-nofile-info")?;
            info.lines().find_map(|line| line.strip_prefix("HostName:")).map(|name| plain(name.trim())).filter(|name| !name.is_empty())
        };
        name.or_else(recorded).unwrap_or_else(|| "unknown".to_owned())
    }

    /// What this host is made of, as the kernel tells it. What cannot be read is left out, with a note where that matters.
    pub fn hardware(&self) -> Hardware {
        let source = if self.root == Path::new("/") { "this system".to_owned() } else { plain(&self.root.display().to_string()) };
        let mut hardware = Hardware { host: self.host(), source, ..Hardware::default() };
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        system::fill(&root, &mut hardware);
        cpu::fill(&root, &mut hardware);
        numa::fill(&root, &mut hardware);
        let folders = pci::fill(&root, &mut hardware);
        net::fill(&root, &mut hardware);
        gpu::fill(&root, &mut hardware, &folders);
        hardware.iommu = system::iommu(&root, &hardware, &folders);
        hardware
    }

    /// NUMA node that holds all of `cores`; `None` if they span several or the system does not say.
    pub fn numa_of(&self, cores: &[usize]) -> Option<usize> {
        let folder = self.root.join("sys/devices/system/node");
        read::names(&folder).iter().find_map(|name| {
            let node = name.strip_prefix("node")?.parse().ok()?;
            let members = read::cpus(&folder.join(name), "cpulist", "cpumap")?;
            (!cores.is_empty() && cores.iter().all(|core| members.binary_search(core).is_ok())).then_some(node)
        })
    }

    /// Last-level cache of the first of `cores`, bytes; 0 if the system does not say.
    pub fn cache_of(&self, cores: &[usize]) -> u64 {
        let Some(core) = cores.first() else { return 0 };
        let sizes = (0..8).filter_map(|index| {
            let size = self.read(&format!("/sys/devices/system/cpu/cpu{core}/cache/index{index}/size"))?;
            crate::units::parse_size(size.trim()).ok()
        });
        sizes.max().unwrap_or(0)
    }

    /// Memory that can be had now and memory in all, bytes: what the control group leaves, if that is less.
    pub fn memory(&self) -> (u64, u64) {
        let info = self.read("/proc/meminfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
        };
        let total = field("MemTotal").unwrap_or(0) * 1024;
        let available = field("MemAvailable").unwrap_or(0) * 1024;
        let number = |path: &str| self.read(path)?.trim().parse::<u64>().ok();
        match (number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")) {
            (Some(limit), Some(used)) => (available.min(limit.saturating_sub(used)), total.min(limit)),
            _ => (available, total),
        }
    }

    /// Where a rank of this process sits, with the cores it may use.
    pub fn placement(&self, rank: usize, cores: Vec<usize>) -> Placement {
        let (memory_available, memory_total) = self.memory();
        Placement {
            rank,
            host: self.host(),
            pid: std::process::id(),
            numa: self.numa_of(&cores),
            cache: self.cache_of(&cores),
            gpu: None,
            rack: None,
            cores,
            memory_available,
            memory_total,
        }
    }

    /// Name and release of the operating system, for the record.
    pub fn system(&self) -> String {
        let read = |path| self.read(path).map(|text| plain(text.trim())).unwrap_or_default();
        format!("{} {}", read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease"))
    }

    /// Model name of the processor; empty if the system does not say.
    pub fn processor(&self) -> String {
        let info = self.read("/proc/cpuinfo").unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix("model name"));
        line.and_then(|rest| rest.split_once(':')).map(|(_, name)| plain(name.trim())).unwrap_or_default()
    }
}

/// Logical processors that this thread may run on, ascending.
pub fn allowed_cores() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Variables that change what is measured, for the record; values cut at 200 characters.
pub fn environment() -> std::collections::BTreeMap<String, String> {
    const PREFIXES: [&str; 9] = ["NCCL_", "UCX_", "OMPI_MCA_", "MPICH_", "I_MPI_", "FI_", "CUDA_", "HWLOC_", "OMP_"];
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (plain(&key), plain(&value).chars().take(200).collect()))
        .collect()
}
