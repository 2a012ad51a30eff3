//! The system -> where this rank sits. Reads files below a root, so that a recorded tree serves as a test.

use std::fs;
use std::path::PathBuf;

use crate::topology::Placement;
use crate::units::{parse_ranks, plain};

/// More logical processors than any machine has; a list beyond it is not believed.
const MOST_CORES: usize = 1 << 16;

/// A machine as seen through its files: `/` for this one, or a folder with a recorded `/sys` and `/proc`.
#[derive(Debug, Clone)]
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
        fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()
    }

    /// Host name, without control characters; `unknown` if there is none.
    pub fn host(&self) -> String {
        let name = self.read("/proc/sys/kernel/hostname").map(|name| plain(name.trim()));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
    }

    /// NUMA node that holds all of `cores`; `None` if they span several or the system does not say.
    pub fn numa_of(&self, cores: &[usize]) -> Option<usize> {
        let folder = self.root.join("sys/devices/system/node");
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let name = entry.file_name();
            let Some(node) = name.to_str().and_then(|name| name.strip_prefix("node")).and_then(|n| n.parse().ok()) else { continue };
            let list = fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
            let Ok(members) = parse_ranks(list.trim(), MOST_CORES) else { continue };
            if !cores.is_empty() && cores.iter().all(|core| members.binary_search(core).is_ok()) {
                return Some(node);
            }
        }
        None
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
    const PREFIXES: [&str; 9] = ["NCCL_", "UCX_", "OMPI_MCA_", "MPICH_", "I_MPI_", "FI_", "CUDA_VISIBLE", "HWLOC_", "OMP_"];
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (plain(&key), plain(&value).chars().take(200).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "gpu\u{1b}[31m07\n");
        write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
        write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
        write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
        write("sys/devices/system/cpu/cpu4/cache/index0/size", "48K\n");
        write("sys/devices/system/cpu/cpu4/cache/index3/size", "32768K\n");
        write("sys/fs/cgroup/memory.max", "409600\n");
        write("sys/fs/cgroup/memory.current", "102400\n");
        root
    }

    #[test]
    fn a_recorded_machine_is_read() {
        let root = recorded();
        let machine = Machine::at(root.path());
        let placement = machine.placement(3, vec![4, 5]);
        assert_eq!(placement.host, "gpu[31m07");
        assert_eq!((placement.numa, placement.cache), (Some(1), 32 << 20));
        assert_eq!((placement.memory_available, placement.memory_total), (307_200, 409_600));
        assert_eq!(machine.numa_of(&[3, 4]), None);
    }

    #[test]
    fn a_machine_that_says_nothing_is_no_error() {
        let root = tempfile::tempdir().unwrap();
        let placement = Machine::at(root.path()).placement(0, vec![]);
        assert_eq!((placement.host.as_str(), placement.numa, placement.memory_total), ("unknown", None, 0));
    }
}
