//! What a host is made of, whoever told it: this system's files, a driver, or another tool's output. Flat lists that name each
//! other by index; nothing here is worked out, and what nobody told is `None`.

use serde::{Deserialize, Serialize};

use super::{PathLabel, PciAddress, PcieLink};

/// What nobody told is left out of files.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// host name, as [`super::Placement::host`] has it
    pub host: String,
    /// who told: `this system`, a folder with a recorded tree, or a tool's output and its file
    pub source: String,
    /// maker and model of the machine; empty if nobody told
    #[serde(skip_serializing_if = "is_default")]
    pub product: String,
    /// hypervisor that this runs under, such as `KVM`
    #[serde(skip_serializing_if = "is_default")]
    pub hypervisor: Option<String>,
    /// container runtime that this runs in, such as `docker`
    #[serde(skip_serializing_if = "is_default")]
    pub container: Option<String>,
    /// `translated`, `passthrough` or `off`, where the system says
    #[serde(skip_serializing_if = "is_default")]
    pub iommu: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub packages: Vec<Package>,
    #[serde(skip_serializing_if = "is_default")]
    pub caches: Vec<Cache>,
    #[serde(skip_serializing_if = "is_default")]
    pub numa: Vec<NumaNode>,
    /// parents before their children
    #[serde(skip_serializing_if = "is_default")]
    pub pci: Vec<PciDevice>,
    #[serde(skip_serializing_if = "is_default")]
    pub gpus: Vec<Gpu>,
    #[serde(skip_serializing_if = "is_default")]
    pub nics: Vec<Nic>,
    /// links between GPUs, and between GPUs and switches or processors: one entry a link and end
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_links: Vec<GpuLink>,
    /// what a source says itself of pairs of devices
    #[serde(skip_serializing_if = "is_default")]
    pub told: Vec<Told>,
    /// what could not be seen, what contradicts itself, what to beware of
    #[serde(skip_serializing_if = "is_default")]
    pub notes: Vec<Note>,
}

/// A processor package: what sits in a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Package {
    /// the system's number
    pub id: usize,
    #[serde(skip_serializing_if = "is_default")]
    pub model: String,
    /// physical cores
    pub cores: usize,
    /// logical processors, ascending
    #[serde(skip_serializing_if = "is_default")]
    pub cpus: Vec<usize>,
}

/// A cache that some logical processors share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// 1 is nearest to the core
    pub level: u32,
    pub kind: CacheKind,
    /// bytes
    pub bytes: u64,
    /// logical processors, ascending
    #[serde(skip_serializing_if = "is_default")]
    pub cpus: Vec<usize>,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    Data,
    Instruction,
    #[default]
    Unified,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNode {
    /// the system's number; need not be consecutive
    pub id: usize,
    /// logical processors, ascending; none for memory alone (of a GPU, of CXL)
    #[serde(skip_serializing_if = "is_default")]
    pub cpus: Vec<usize>,
    /// bytes; 0 when not told
    #[serde(skip_serializing_if = "is_default")]
    pub memory: u64,
    /// the firmware's distances to the nodes of [`Hardware::numa`], in their order; 10 is here
    #[serde(skip_serializing_if = "is_default")]
    pub distances: Vec<u32>,
}

/// What a device of the PCI tree is to the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PciKind {
    /// where a tree begins; one PCI domain and bus number, no device of its own
    HostBridge,
    RootPort,
    /// a switch's side towards the processor
    SwitchUp,
    /// a switch's side towards devices
    SwitchDown,
    /// a bridge that does not say which
    Bridge,
    #[default]
    Endpoint,
}

impl PciKind {
    /// True if devices may lie below it.
    pub const fn is_bridge(self) -> bool {
        !matches!(self, Self::Endpoint)
    }
}

/// A device or bridge of the PCI tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PciDevice {
    pub address: PciAddress,
    /// index in [`Hardware::pci`]
    #[serde(skip_serializing_if = "is_default")]
    pub parent: Option<usize>,
    pub kind: PciKind,
    /// class code with subclass and interface, such as `0x030200`; 0 when not told
    #[serde(skip_serializing_if = "is_default")]
    pub class: u32,
    /// 0 when not told
    #[serde(skip_serializing_if = "is_default")]
    pub vendor: u16,
    #[serde(skip_serializing_if = "is_default")]
    pub device: u16,
    /// what a person calls it; empty if nobody told
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// the link above it, towards the processor
    #[serde(skip_serializing_if = "is_default")]
    pub link: Option<PcieLink>,
    /// NUMA node's number
    #[serde(skip_serializing_if = "is_default")]
    pub numa: Option<usize>,
    /// control bits of Access Control Services; `None` when not readable or not there
    #[serde(skip_serializing_if = "is_default")]
    pub acs: Option<Acs>,
    #[serde(skip_serializing_if = "is_default")]
    pub driver: Option<String>,
}

impl PciDevice {
    /// True for what transfers begin or end at: network devices, displays (GPUs among them), accelerators, `NVMe` storage.
    pub const fn is_end(&self) -> bool {
        matches!(self.class >> 16, 0x02 | 0x03 | 0x12) || self.class >> 8 == 0x0108
    }
}

/// Which transfers between devices a port sends up to the processor instead of across.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the bits of a register")]
pub struct Acs {
    pub source_validation: bool,
    pub request_redirect: bool,
    pub completion_redirect: bool,
    pub upstream_forwarding: bool,
    pub direct_translated: bool,
}

impl Acs {
    /// True if peer transfers through this port go by way of the processor.
    pub const fn redirects(self) -> bool {
        self.request_redirect || self.completion_redirect
    }
}

/// A GPU, or one instance of a divided one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// the driver's number
    pub index: usize,
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub uuid: Option<String>,
    /// index in [`Hardware::pci`]
    #[serde(skip_serializing_if = "is_default")]
    pub pci: Option<usize>,
    /// NUMA node's number
    #[serde(skip_serializing_if = "is_default")]
    pub numa: Option<usize>,
    /// logical processors near it, ascending; empty when not told
    #[serde(skip_serializing_if = "is_default")]
    pub cpus: Vec<usize>,
    /// bytes; 0 when not told
    #[serde(skip_serializing_if = "is_default")]
    pub memory: u64,
    /// SM clock now and at most, MHz
    #[serde(skip_serializing_if = "is_default")]
    pub clock: Option<(u32, u32)>,
    /// why its clocks are held down now
    #[serde(skip_serializing_if = "is_default")]
    pub throttled: Vec<String>,
    /// instances it is divided into; empty when it is whole
    #[serde(skip_serializing_if = "is_default")]
    pub mig: Vec<String>,
}

/// A network device's kind of link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    #[serde(rename = "infiniband")]
    InfiniBand,
    #[default]
    Ethernet,
    /// Slingshot, EFA and others, by their driver's name
    Other,
}

/// One port of a network device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// `mlx5_0`, `eth0`
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// its network interface, where `name` is an RDMA device's
    #[serde(skip_serializing_if = "is_default")]
    pub interface: Option<String>,
    /// port, from 1
    pub port: u32,
    /// index in [`Hardware::pci`]; none for virtual devices
    #[serde(skip_serializing_if = "is_default")]
    pub pci: Option<usize>,
    /// NUMA node's number
    #[serde(skip_serializing_if = "is_default")]
    pub numa: Option<usize>,
    pub layer: LinkLayer,
    /// `active`, `down`, `polling`, as the source says it, in small letters; empty when not told
    #[serde(skip_serializing_if = "is_default")]
    pub state: String,
    /// bytes per second in one direction
    #[serde(skip_serializing_if = "is_default")]
    pub rate: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub guid: Option<String>,
    /// entries of the port's GID table
    #[serde(skip_serializing_if = "is_default")]
    pub gids: Option<u32>,
    /// GPUDirect RDMA, where the source says
    #[serde(skip_serializing_if = "is_default")]
    pub gdr: Option<bool>,
}

impl Nic {
    /// False if the source says that nothing can be sent.
    pub fn up(&self) -> bool {
        !matches!(
            self.state.as_str(),
            "down" | "polling" | "disabled" | "init" | "initialize" | "lowerlayerdown" | "dormant" | "notpresent"
        )
    }
}

/// What kind of link a GPU has beside PCIe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuLinkKind {
    #[default]
    Nvlink,
    /// between a processor and a GPU of one module
    C2c,
    Xgmi,
}

/// The other end of a GPU's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkEnd {
    /// index in [`Hardware::gpus`]
    Gpu(usize),
    /// a switch that joins all GPUs linked to it
    Switch,
    /// a processor: NUMA node's number
    Cpu(usize),
    #[default]
    Unknown,
}

/// One link of a GPU, seen from that GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuLink {
    pub kind: GpuLinkKind,
    /// index in [`Hardware::gpus`]
    pub gpu: usize,
    /// the driver's number of the link on that GPU
    #[serde(skip_serializing_if = "is_default")]
    pub number: Option<u32>,
    pub end: LinkEnd,
    pub active: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub version: Option<u32>,
    /// bytes per second in one direction, nominal
    #[serde(skip_serializing_if = "is_default")]
    pub rate: Option<f64>,
}

/// A device of a host that paths begin and end at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// index in [`Hardware::gpus`]
    Gpu(usize),
    /// index in [`Hardware::nics`]
    Nic(usize),
    /// the memory of a NUMA node, by the system's number
    Memory(usize),
}

/// What a source says itself of two devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub from: Device,
    pub to: Device,
    pub what: ToldWhat,
}

/// What can be told of two devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldWhat {
    /// how nvidia-smi labels the path
    Label(PathLabel),
    /// peer access: `read`, `write`, `nvlink`, `atomics`, `prop`, and the driver's word, such as `OK`, `CNS`
    Peer { access: String, status: String },
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// something could not be seen, and why
    #[default]
    Unseen,
    /// a told fact that is not to be believed, and why
    Lie,
    /// something that will cost bandwidth
    Warning,
}

/// A remark about what was discovered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    pub kind: NoteKind,
    /// what it is about: a device's name or address, `NVML`, `IOMMU`
    pub about: String,
    /// a sentence: what, why, and where there is one the way out
    pub text: String,
}

impl Hardware {
    /// Index of the PCI device at an address. A host bridge is at none: its bus may have a device 0 of its own.
    pub fn pci_at(&self, address: PciAddress) -> Option<usize> {
        self.pci.iter().position(|device| device.address == address && device.kind != PciKind::HostBridge)
    }

    /// A PCI device and all above it, nearest first.
    pub fn above(&self, device: usize) -> impl Iterator<Item = usize> {
        // A file may tell a circle, or a device that is not there: no tree is deeper than it has devices.
        let up = std::iter::successors(Some(device), |&at| self.pci.get(at)?.parent);
        up.take_while(|&at| at < self.pci.len()).take(self.pci.len())
    }

    /// Remark something.
    pub fn note(&mut self, kind: NoteKind, about: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note { kind, about: about.into(), text: text.into() });
    }
}
