//! Which GPU is whose, and where its rank runs: decided by rank 0 for all from what each rank sees, so that no two ranks land on one
//! GPU unseen. Pure but for [`pin`] and [`sight`].

mod cores;
mod seats;
mod sight;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use seats::Seats;
pub use sight::{pin, sight};
pub use watch::Watch;

use crate::topology::{Bound, CudaDevice, GpuName, Placement, Topology};
use crate::transport::Absent;
use crate::units::{format_count, format_ranks, plain};

/// What one rank's process sees of GPUs, and where it may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// in CUDA's order
    pub devices: Vec<CudaDevice>,
    /// `CUDA_VISIBLE_DEVICES`, where it is set
    pub visible: Option<String>,
    /// name and version of the driver, of CUDA and of NCCL
    #[serde(default)]
    pub software: BTreeMap<String, String>,
    /// why there is no device; empty where there is one
    pub error: String,
    /// logical processors that the rank may run on, ascending
    pub cores: Vec<usize>,
}

/// What is decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    pub bound: Vec<Bound>,
    /// name and version of what moves the memory of GPUs, on the first host
    pub software: BTreeMap<String, String>,
    /// ranks that have no GPU
    pub absent: Vec<Absent>,
    /// what a person should know of it, sentences
    pub told: Vec<String>,
}

/// Whether a rank runs on one core or on any of those near its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// ranks are threads of one process: one core each
    One,
    /// ranks are processes, with threads of their own
    Near,
}

/// One host's ranks, in order.
struct Host<'a> {
    name: &'a str,
    ranks: Vec<&'a Placement>,
    sights: Vec<&'a Sight>,
}

/// Bind the ranks that take part, each with what it sees; `gpus` names the GPU of each rank of a host, in their order, or is empty.
/// Without names each rank gets the first GPU that it sees and no earlier rank of its host has. Who gets none is absent, with the reason:
/// the others can be measured. Refused are names that do not tell who is meant, and a job of which no rank gets any; the refusal says
/// where, and what to do.
pub fn decide(topology: &Topology, seen: &[(usize, Sight)], gpus: &[String], cores: Cores) -> Result<Decided, String> {
    let names = gpus.iter().map(|gpu| gpu.parse::<GpuName>()).collect::<Result<Vec<_>, _>>().map_err(|error| format!("--gpus: {error}"))?;
    let mut decided = Decided::default();
    // Ranks told what they see in any order.
    let mut in_order: Vec<&(usize, Sight)> = seen.iter().collect();
    in_order.sort_by_key(|(rank, _)| *rank);
    for name in topology.hosts() {
        let own = in_order.iter().filter_map(|(rank, sight)| Some((topology.ranks.get(*rank).filter(|place| place.host == name)?, sight)));
        let (ranks, sights): (Vec<_>, Vec<_>) = own.unzip();
        if ranks.is_empty() {
            continue;
        }
        let host = Host { name, ranks, sights };
        let devices = if names.is_empty() { host.in_order() } else { host.named(&names, &mut decided.told)? };
        host.tell_visible(&mut decided.told);
        cores::place(&host, topology.hardware_of(name), devices, cores, &mut decided);
    }
    if decided.bound.is_empty()
        && let Some(Absent { reason, .. }) = decided.absent.first()
    {
        return Err(reason.clone());
    }
    decided.bound.sort_by_key(|bound| bound.rank);
    versions(topology, seen, &mut decided);
    Ok(decided)
}

/// Versions of the first rank; what another host has otherwise is told, once a host.
fn versions(topology: &Topology, seen: &[(usize, Sight)], decided: &mut Decided) {
    let Some((_, first)) = seen.iter().min_by_key(|(rank, _)| *rank) else { return };
    let plainly = |map: &BTreeMap<String, String>| map.iter().map(|(name, value)| (plain(name), plain(value))).collect::<BTreeMap<_, _>>();
    decided.software = plainly(&first.software);
    for host in topology.hosts() {
        let own = seen.iter().find(|(rank, _)| topology.ranks.get(*rank).is_some_and(|place| place.host == host));
        let Some(own) = own.map(|(_, sight)| plainly(&sight.software)).filter(|own| *own != decided.software) else { continue };
        let value = |map: &BTreeMap<String, String>, name: &String| map.get(name).cloned().unwrap_or_else(|| "none".to_owned());
        let names: std::collections::BTreeSet<&String> = own.keys().chain(decided.software.keys()).collect();
        let differ = names.into_iter().filter(|&name| value(&own, name) != value(&decided.software, name));
        let differ: Vec<String> =
            differ.map(|name| format!("{name} {}, elsewhere {}", value(&own, name), value(&decided.software, name))).collect();
        decided.told.push(format!("host {host}: {}", differ.join("; ")));
    }
}

impl Host<'_> {
    fn rank(&self, at: usize) -> usize {
        self.ranks[at].rank
    }

    /// Those of a rank, or why it sees none.
    fn devices(&self, at: usize) -> Result<&[CudaDevice], String> {
        let sight = self.sights[at];
        if !sight.devices.is_empty() {
            return Ok(&sight.devices);
        }
        let why = if sight.error.is_empty() { "the CUDA driver lists none" } else { sight.error.as_str() };
        let visible = sight.visible.as_ref().map_or_else(String::new, |visible| format!(" (CUDA_VISIBLE_DEVICES={})", plain(visible)));
        Err(format!("host {}: rank {} sees no GPU: {}{visible}; see toposcope doctor there", self.name, self.rank(at), plain(why)))
    }

    /// One for each rank, or why it has none.
    fn in_order(&self) -> Vec<Result<CudaDevice, String>> {
        let mut taken: Vec<Result<CudaDevice, String>> = Vec::new();
        for at in 0..self.ranks.len() {
            let has = |device: &CudaDevice| taken.iter().flatten().any(|other| other.is(device));
            let free = self.devices(at).and_then(|devices| devices.iter().find(|device| !has(device)).ok_or_else(|| self.too_few(at)));
            taken.push(free.cloned());
        }
        taken
    }

    fn too_few(&self, at: usize) -> String {
        let mut all: Vec<&CudaDevice> = Vec::new();
        for device in self.sights.iter().flat_map(|sight| &sight.devices) {
            if !all.iter().any(|known| known.is(device)) {
                all.push(device);
            }
        }
        let (ranks, count) = (self.ranks.len(), all.len());
        let few = format!("host {}: {}, {}", self.name, counted(ranks, "rank"), counted(count, "GPU"));
        if count >= ranks {
            let own: Vec<String> = self.sights[at].devices.iter().map(CudaDevice::told).collect();
            let rank = self.rank(at);
            return format!(
                "{few}, but rank {rank} sees only {}, which other ranks have: let all ranks see all GPUs, or name each rank's with --gpus",
                plain(&own.join(", "))
            );
        }
        let hidden = self.visible().map_or_else(String::new, |visible| format!(", with CUDA_VISIBLE_DEVICES={visible}"));
        format!("{few}{hidden}; start {count} at most there, or name the GPU of each rank with --gpus (one that is named twice is shared)")
    }

    /// `CUDA_VISIBLE_DEVICES`, where all ranks have the same.
    fn visible(&self) -> Option<String> {
        let first = self.sights.first()?.visible.as_ref()?;
        self.sights.iter().all(|sight| sight.visible.as_ref() == Some(first)).then(|| plain(first))
    }

    /// The one that is named for each rank, or why it has none; an error where names do not tell who is meant.
    fn named(&self, names: &[GpuName], told: &mut Vec<String>) -> Result<Vec<Result<CudaDevice, String>>, String> {
        let ranks = self.ranks.len();
        if names.len() < ranks {
            return Err(format!(
                "host {}: {}, but --gpus names {}; name one for each rank of a host, in their order",
                self.name,
                counted(ranks, "rank"),
                counted(names.len(), "GPU")
            ));
        }
        let mut devices: Vec<Result<CudaDevice, String>> = Vec::new();
        for (at, name) in (0..ranks).zip(names) {
            let device = match self.find(at, name)? {
                Ok(device) => device,
                Err(why) => {
                    devices.push(Err(why));
                    continue;
                }
            };
            let same = |known: &Result<CudaDevice, String>| known.as_ref().is_ok_and(|known| known.is(device));
            if let Some(other) = devices.iter().position(same).filter(|&other| names[other] != *name) {
                return Err(format!(
                    "host {}: {} of rank {} and {name} of rank {} (--gpus) are the same {}; name it twice by the same word to share it",
                    self.name,
                    names[other],
                    self.rank(other),
                    self.rank(at),
                    plain(&device.told())
                ));
            }
            devices.push(Ok(device.clone()));
        }
        let mut shared: Vec<(&CudaDevice, Vec<usize>)> = Vec::new();
        for (at, device) in devices.iter().enumerate().filter_map(|(at, device)| Some((at, device.as_ref().ok()?))) {
            match shared.iter_mut().find(|(known, _)| known.is(device)) {
                Some((_, ranks)) => ranks.push(self.rank(at)),
                None => shared.push((device, vec![self.rank(at)])),
            }
        }
        for (device, ranks) in shared.into_iter().filter(|(_, ranks)| ranks.len() > 1) {
            told.push(format!(
                "host {}: ranks {} share {}, which --gpus names for each: between them bytes cross no link, and at the same time each \
                 gets a part of it",
                self.name,
                format_ranks(&ranks),
                plain(&device.told())
            ));
        }
        Ok(devices)
    }

    /// The GPU that is meant, or why there is none; an error where two are.
    fn find(&self, at: usize, name: &GpuName) -> Result<Result<&CudaDevice, String>, String> {
        let devices = match self.devices(at) {
            Ok(devices) => devices,
            Err(why) => return Ok(Err(why)),
        };
        let mut meant = devices.iter().filter(|device| name.means(device.number, device.uuid.as_deref(), device.address));
        let where_ = || format!("host {}: --gpus gives rank {} the GPU {name}", self.name, self.rank(at));
        match (meant.next(), meant.next()) {
            (Some(device), None) => Ok(Ok(device)),
            (Some(a), Some(b)) => Err(format!("{}, which {} and {} both are; write more of it", where_(), a.told(), b.told())),
            (None, _) => {
                let seen: Vec<String> = devices.iter().map(CudaDevice::told).collect();
                let visible = self.sights[at].visible.as_ref().map_or_else(String::new, |visible| {
                    format!("; CUDA_VISIBLE_DEVICES={} hides others, and numbers count what is left", plain(visible))
                });
                Ok(Err(format!("{}, but it sees {}{visible}", where_(), plain(&seen.join(", ")))))
            }
        }
    }

    /// What hides GPUs is told, once a host.
    fn tell_visible(&self, told: &mut Vec<String>) {
        if let Some(visible) = self.visible() {
            told.push(format!("host {}: CUDA_VISIBLE_DEVICES={visible}: ranks see no other GPUs", self.name));
        } else if self.sights.iter().any(|sight| sight.visible.is_some()) {
            let own: Vec<String> = (0..self.ranks.len())
                .filter_map(|at| Some(format!("{} for rank {}", plain(self.sights[at].visible.as_ref()?), self.rank(at))))
                .collect();
            told.push(format!("host {}: CUDA_VISIBLE_DEVICES is {}: each rank has its GPU among its own", self.name, own.join(", ")));
        }
    }
}

/// `1 rank`, `8 GPUs`
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", format_count(count as u64))
}
