//! A box of GPUs as a file describes it.

use std::path::Path;

use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_AMPERE, NVML_DEVICE_ARCH_UNKNOWN, nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE as HOST_BRIDGE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE as MULTIPLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE as NODE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE as SINGLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM as SYSTEM,
    nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_UNKNOWN as STATUS_UNKNOWN,
};
use serde::Deserialize;

/// The file named by `TOPOSCOPE_STAND_IN`. Its `tree` is for the tests, which write the PCI devices from it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Described {
    pub driver: String,
    /// a file beside this one that tells the rest; what is here overrules it
    pub base: Option<String>,
    /// what all GPUs have in common
    pub model: Model,
    pub gpu: Vec<Gpu>,
    /// later entries overrule earlier ones
    pub nvlink: Vec<NvLinks>,
    /// later entries overrule earlier ones
    pub pair: Vec<Pair>,
    /// later entries overrule earlier ones; a GPU of none has no such thing
    pub fabric: Vec<Fabric>,
    pub fail: Vec<Fail>,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Model {
    pub name: String,
    /// PCI device
    pub id: u32,
    /// NVML's number
    pub architecture: u32,
    pub memory_gib: u64,
    /// SM clock now and at most, MHz
    pub clock: [u32; 2],
    /// MHz
    pub memory_clock: u32,
    /// milliwatts
    pub power: u32,
    /// °C
    pub temperature: u32,
    /// true if the driver keeps the GPUs awake
    pub persistence: bool,
    /// generation and width, now and at most
    pub pcie: [u32; 2],
    pub pcie_most: [u32; 2],
    /// the GPU's own PCIe speed as NVML codes it; 0 for none
    pub pcie_speed: u32,
    /// NVLinks, MB/s of each and what the driver answers for their version
    pub links: u32,
    pub link_speed: u32,
    pub link_version: u32,
    /// NVLink-C2C links and MB/s of each
    pub c2c: [u32; 2],
    /// true if MIG can be switched on
    pub mig: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "NVIDIA stand-in".to_owned(),
            id: 0,
            architecture: NVML_DEVICE_ARCH_AMPERE,
            memory_gib: 1,
            clock: [210, 1410],
            memory_clock: 1593,
            power: 61_000,
            temperature: 38,
            persistence: true,
            pcie: [4, 16],
            pcie_most: [4, 16],
            pcie_speed: 0,
            links: 0,
            link_speed: 0,
            link_version: 0,
            c2c: [0, 0],
            mig: false,
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Gpu {
    pub address: String,
    /// NUMA node
    #[serde(default)]
    pub node: usize,
    /// processors near it, as `0-15,32-47`
    #[serde(default)]
    pub cpus: String,
    /// bits of why clocks are held down
    #[serde(default)]
    pub throttled: u64,
    /// profiles of its instances; an empty list if MIG is on without any
    pub mig: Option<Vec<String>>,
    /// °C, if not the model's
    pub temperature: Option<u32>,
    pub persistence: Option<bool>,
    /// generation and width now, if not the model's
    pub pcie: Option<[u32; 2]>,
}

#[derive(Debug, Deserialize)]
pub struct NvLinks {
    pub gpus: String,
    pub links: String,
    /// address of the other end; none if the links are down
    pub to: Option<String>,
    /// replays, recoveries, flit CRC and data CRC errors
    #[serde(default)]
    pub errors: [u64; 4],
}

#[derive(Debug, Deserialize)]
pub struct Pair {
    pub a: String,
    pub b: String,
    /// `PIX` … `SYS`
    pub level: String,
    /// status of read, write, nvlink, atomics and prop, in nvidia-smi's words
    pub p2p: [String; 5],
}

/// How far the fabric is configured, in NVML's numbers.
#[derive(Debug, Deserialize)]
pub struct Fabric {
    pub gpus: String,
    pub state: u8,
    pub status: u32,
}

/// A call that answers with an error.
#[derive(Debug, Deserialize)]
pub struct Fail {
    /// every call on a device, if none is named
    pub call: Option<String>,
    /// a call that does not fail
    pub except: Option<String>,
    /// every GPU, if none is named
    pub gpu: Option<usize>,
    pub link: Option<u32>,
    pub error: u32,
}

/// True if a list such as `0-3,7` has a number.
pub fn has(list: &str, number: usize) -> bool {
    list.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        matches!((from.trim().parse::<usize>(), to.trim().parse::<usize>()), (Ok(from), Ok(to)) if (from..=to).contains(&number))
    })
}

impl Described {
    /// Read a file and the one that it is based on.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let own: Self = toml::from_str(&text).map_err(|error| wrong(&error))?;
        let Some(base) = &own.base else { return Ok(own) };
        let base = Self::read(&path.with_file_name(base))?;
        Ok(Self {
            nvlink: base.nvlink.into_iter().chain(own.nvlink).collect(),
            pair: base.pair.into_iter().chain(own.pair).collect(),
            fabric: base.fabric.into_iter().chain(own.fabric).collect(),
            fail: base.fail.into_iter().chain(own.fail).collect(),
            ..base
        })
    }

    /// State and status of the fabric's configuration.
    pub fn fabric(&self, gpu: usize) -> Option<&Fabric> {
        self.fabric.iter().rev().find(|fabric| has(&fabric.gpus, gpu))
    }

    /// The link of a GPU; `None` if it is down.
    pub fn link(&self, gpu: usize, link: u32) -> Option<&NvLinks> {
        self.nvlink.iter().rev().find(|links| has(&links.gpus, gpu) && has(&links.links, link as usize)).filter(|links| links.to.is_some())
    }

    fn pair(&self, a: usize, b: usize) -> Option<&Pair> {
        self.pair.iter().rev().find(|pair| (has(&pair.a, a) && has(&pair.b, b)) || (has(&pair.a, b) && has(&pair.b, a)))
    }

    /// NVML's number of how near two GPUs are.
    pub fn level(&self, a: usize, b: usize) -> u32 {
        match self.pair(a, b).map(|pair| pair.level.as_str()) {
            Some("PIX") => SINGLE,
            Some("PXB") => MULTIPLE,
            Some("PHB") => HOST_BRIDGE,
            Some("NODE") => NODE,
            _ => SYSTEM,
        }
    }

    /// NVML's number of a status of peer access.
    pub fn status(&self, a: usize, b: usize, access: usize) -> u32 {
        let word = self.pair(a, b).and_then(|pair| pair.p2p.get(access)).map_or("U", String::as_str);
        let known = ["OK", "CNS", "GNS", "TNS", "DR", "NS"].iter().position(|known| *known == word);
        known.and_then(|at| u32::try_from(at).ok()).unwrap_or(STATUS_UNKNOWN)
    }

    /// The error that a call is to answer with.
    pub fn failure(&self, call: &str, gpu: Option<usize>, link: Option<u32>) -> Option<u32> {
        let hit = |fail: &&Fail| {
            let called = fail.call.as_deref().map_or(gpu.is_some(), |named| named == call);
            called
                && fail.except.as_deref() != Some(call)
                && (fail.gpu.is_none() || fail.gpu == gpu)
                && (fail.link.is_none() || fail.link == link)
        };
        self.fail.iter().find(hit).map(|fail| fail.error)
    }

    /// The architecture that NVML tells.
    pub fn architecture(&self) -> u32 {
        if self.model.architecture == 0 { NVML_DEVICE_ARCH_UNKNOWN } else { self.model.architecture }
    }
}
