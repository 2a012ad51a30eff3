//! A host's hardware as lines: NUMA nodes, PCIe switches and the devices on them. Host bridges, root ports and a switch's ports
//! are told by the routes; here they would hide what hangs on them.

use super::tree::{Mark, Node, NodeKind};
use crate::topology::hardware::{Gpu, GpuLinkKind, Hardware, Nic, NoteKind, PciDevice, PciKind};
use crate::topology::{Doubt, Lanes, Placement, Reading, name, reading};
use crate::units::{format_ranks, plain};

/// Memory is compared in steps of this, GiB: firmware keeps a little for itself.
const MEMORY_STEP: u64 = 16 << 30;

/// A line and those below it.
#[derive(Debug, Clone)]
pub struct Part {
    pub node: Node,
    /// what hosts are compared by: no addresses, nothing that comes and goes
    pub kind: String,
    pub below: Vec<Part>,
}

impl Part {
    fn new(kind: NodeKind, name: String, state: String) -> Self {
        let told = format!("{kind:?} {name} {state}");
        Self { node: Node { state, ..Node::new(kind, name) }, kind: told, below: Vec::new() }
    }
}

/// Lines that are being put together: each with the one it hangs on.
struct Builder<'a> {
    hardware: &'a Hardware,
    parts: Vec<(Option<usize>, Part)>,
}

/// All of a host; `own` are the ranks on it.
pub fn parts(hardware: &Hardware, ranks: &[Placement], own: &[usize]) -> Part {
    let mut builder = Builder { hardware, parts: Vec::new() };
    builder.add(None, host(hardware));
    let numa = builder.numa();
    let homes = builder.pci(&numa);
    for (at, gpu) in hardware.gpus.iter().enumerate().filter(|(_, gpu)| gpu.pci.is_none()) {
        let home = gpu.numa.and_then(|node| numa.iter().find(|(id, _)| *id == node)).map_or(0, |&(_, part)| part);
        builder.add(Some(home), gpu_part(hardware, at, gpu));
    }
    for nic in hardware.nics.iter().filter(|nic| nic.pci.is_none()) {
        let home = nic.numa.and_then(|node| numa.iter().find(|(id, _)| *id == node)).map_or(0, |&(_, part)| part);
        builder.add(Some(home), nic_part(hardware, nic));
    }
    for placement in own.iter().filter_map(|&rank| ranks.get(rank)) {
        let gpu = placement.gpu.and_then(|gpu| homes.iter().find(|(at, _)| *at == gpu)).map(|&(_, part)| part);
        let node = placement.numa.and_then(|node| numa.iter().find(|(id, _)| *id == node)).map(|&(_, part)| part);
        let home = gpu.or(node).unwrap_or(0);
        let far = misbound(hardware, placement);
        let part = &mut builder.parts[home].1;
        part.node.ranks.push(placement.rank);
        if let Some(text) = far {
            part.kind.push_str(" misbound");
            part.node.marks.push(Mark { fault: true, text });
        }
    }
    builder.whole()
}

/// A rank whose cores are far from its GPU.
fn misbound(hardware: &Hardware, placement: &Placement) -> Option<String> {
    let gpu = hardware.gpus.get(placement.gpu?)?;
    let told = || gpu.pci.into_iter().flat_map(|pci| hardware.above(pci)).find_map(|pci| hardware.pci.get(pci)?.numa);
    let (near, bound) = (gpu.numa.or_else(told)?, placement.numa?);
    (near != bound).then(|| format!("rank {} on cores of NUMA {bound}", placement.rank))
}

fn host(hardware: &Hardware) -> Part {
    let count = |n: usize, one: &str| (n > 0).then(|| format!("{n} {one}{}", if n == 1 { "" } else { "s" }));
    let real = hardware.nics.iter().filter(|nic| nic.pci.is_some()).count();
    let mut words: Vec<String> = [count(hardware.gpus.len(), "GPU"), count(real, "NIC")].into_iter().flatten().collect();
    words.extend(hardware.hypervisor.as_deref().map(|name| format!("under {}", plain(name))));
    words.extend(hardware.container.as_deref().map(|name| format!("in {}", plain(name))));
    let mut part = Part::new(NodeKind::Host, plain(&hardware.host), words.join(" · "));
    let notes = hardware.notes.iter().filter(|note| note.kind != NoteKind::Unseen).map(|note| note.text.as_str());
    part.node.model = plain(&hardware.product);
    let told = (&part.node.state, &part.node.model);
    part.kind = format!("{told:?} iommu {:?} {}", hardware.iommu, notes.collect::<Vec<_>>().join(" "));
    part
}

impl Builder<'_> {
    fn add(&mut self, parent: Option<usize>, part: Part) -> usize {
        self.parts.push((parent, part));
        self.parts.len() - 1
    }

    /// NUMA nodes: number and part.
    fn numa(&mut self) -> Vec<(usize, usize)> {
        let hardware = self.hardware;
        let line = |node: &crate::topology::hardware::NumaNode| {
            let socket = hardware.packages.iter().find(|package| node.cpus.iter().any(|cpu| package.cpus.binary_search(cpu).is_ok()));
            let mut words: Vec<String> = Vec::new();
            words.extend(socket.map(|socket| format!("socket {}", socket.id)));
            if !node.cpus.is_empty() {
                words.push(format!("CPUs {}", format_ranks(&node.cpus)));
            } else if hardware.numa.iter().any(|other| !other.cpus.is_empty()) {
                words.push("memory alone".to_owned());
            }
            let compared = words.join(" · ");
            words.extend((node.memory > 0).then(|| format!("{} GiB", node.memory >> 30)));
            let mut part = Part::new(NodeKind::Numa, format!("NUMA {}", node.id), words.join(" · "));
            part.node.model = socket.map_or_else(String::new, |socket| plain(&socket.model));
            part.kind = format!("{} {compared} {} {}", part.node.name, part.node.model, node.memory.div_ceil(MEMORY_STEP));
            part
        };
        let lines: Vec<(usize, Part)> = hardware.numa.iter().map(|node| (node.id, line(node))).collect();
        lines.into_iter().map(|(id, part)| (id, self.add(Some(0), part))).collect()
    }

    /// The PCI tree: GPUs (index and part) come back.
    fn pci(&mut self, numa: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let hardware = self.hardware;
        let n = hardware.pci.len();
        let mut matters = vec![false; n];
        for at in hardware.gpus.iter().filter_map(|gpu| gpu.pci).chain(hardware.nics.iter().filter_map(|nic| nic.pci)) {
            for above in hardware.above(at) {
                if let Some(matters) = matters.get_mut(above) {
                    *matters = true;
                }
            }
        }
        // Which line a device of the tree hangs on, or is.
        let mut lines: Vec<usize> = vec![0; n];
        let mut others: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut homes = Vec::new();
        for (at, device) in hardware.pci.iter().enumerate() {
            let node = device.numa.and_then(|node| numa.iter().find(|(id, _)| *id == node)).map(|&(_, part)| part);
            let above = device.parent.and_then(|parent| lines.get(parent)).copied().filter(|&line| line > 0);
            // A file may name parents later than children; then a device hangs on its host.
            let home = above.or(node).unwrap_or(0);
            lines[at] = home;
            if !matters[at] {
                if device.kind == PciKind::Endpoint {
                    match others.iter_mut().find(|(line, _)| *line == home) {
                        Some((_, all)) => all.push(at),
                        None => others.push((home, vec![at])),
                    }
                }
                continue;
            }
            if matches!(device.kind, PciKind::SwitchUp | PciKind::Bridge) {
                lines[at] = self.add(Some(home), switch_part(hardware, at, device));
            }
            for (index, gpu) in hardware.gpus.iter().enumerate().filter(|(_, gpu)| gpu.pci == Some(at)) {
                homes.push((index, self.add(Some(home), gpu_part(hardware, index, gpu))));
            }
            for nic in hardware.nics.iter().filter(|nic| nic.pci == Some(at)) {
                self.add(Some(home), nic_part(hardware, nic));
            }
        }
        for (home, devices) in others {
            let text = format!("{} other device{}", devices.len(), if devices.len() == 1 { "" } else { "s" });
            let group = self.add(Some(home), Part::new(NodeKind::Others, text, String::new()));
            for at in devices {
                self.add(Some(group), other_part(hardware, at));
            }
        }
        homes
    }

    /// The first part with all others below it.
    fn whole(self) -> Part {
        let mut parts: Vec<(Option<usize>, Option<Part>)> = self.parts.into_iter().map(|(parent, part)| (parent, Some(part))).collect();
        // Those below come later: from the end each is complete when it is handed up.
        for at in (1..parts.len()).rev() {
            let (parent, part) = (parts[at].0, parts[at].1.take());
            if let (Some(part), Some((_, Some(above)))) = (part, parent.and_then(|parent| parts.get_mut(parent))) {
                above.below.insert(0, part);
            }
        }
        parts.swap_remove(0).1.unwrap_or_else(|| Part::new(NodeKind::Host, String::new(), String::new()))
    }
}

/// How a device's link is trained, what is wrong with it, and what stays the same while it rests.
fn link(hardware: &Hardware, at: usize) -> (String, Vec<Mark>, String) {
    let Some(read) = reading(hardware, at) else { return (String::new(), Vec::new(), String::new()) };
    if read == Reading::default() {
        return (String::new(), Vec::new(), String::new());
    }
    let mut marks = Vec::new();
    if let (Some(now), Some(most), true) = (read.now, read.most, read.narrow()) {
        marks.push(Mark { fault: true, text: format!("x{} of x{}", now.width, most.width) });
    }
    let doubt = read.doubt.map(|doubt| match doubt {
        Doubt::Emulated => "emulated",
        Doubt::NoWidth => "says x0",
        Doubt::Resting => "at rest",
    });
    marks.extend(doubt.map(|text| Mark { fault: false, text: text.to_owned() }));
    let awake = |now: Lanes, most: Lanes| Lanes { speed: most.speed, width: now.width };
    let rested = Reading { now: read.now.zip(read.most).map_or(read.now, |(now, most)| Some(awake(now, most))), doubt: None, ..read };
    (read.words(), marks, if read.doubt == Some(Doubt::Resting) { rested.words() } else { read.words() })
}

fn switch_part(hardware: &Hardware, at: usize, device: &PciDevice) -> Part {
    let (state, mut marks, kind) = link(hardware, at);
    let redirects = |port: &PciDevice| port.parent == Some(at) && port.acs.is_some_and(crate::topology::hardware::Acs::redirects);
    if hardware.pci.iter().any(redirects) {
        marks.push(Mark { fault: true, text: "ACS sends peers by the processor".to_owned() });
    }
    let title = if device.kind == PciKind::Bridge { "bridge" } else { "switch" };
    let mut part = Part::new(NodeKind::Switch, super::short(&name(hardware, at)), state);
    part.kind = format!("{title} {kind} {marks:?}", marks = faults(&marks));
    part.node.marks = marks;
    part
}

fn gpu_part(hardware: &Hardware, at: usize, gpu: &Gpu) -> Part {
    let (link, mut marks, kind) = gpu.pci.map_or_else(Default::default, |pci| link(hardware, pci));
    let links = || hardware.gpu_links.iter().filter(|link| link.gpu == at);
    let (up, down) = (links().filter(|link| link.active).count(), links().filter(|link| !link.active).count());
    let title = match links().next().map(|link| link.kind) {
        Some(GpuLinkKind::C2c) => "C2C",
        Some(GpuLinkKind::Xgmi) => "xGMI",
        _ => "NVLink",
    };
    let joined = (up + down > 0).then(|| format!("{title} ×{up}"));
    if down > 0 {
        marks.push(Mark { fault: true, text: format!("{down} link{} down", if down == 1 { "" } else { "s" }) });
    }
    if !gpu.throttled.is_empty() {
        let words = plain(&gpu.throttled.join(", "));
        let hot = ["thermal", "slowdown", "brake"].iter().any(|word| words.to_lowercase().contains(word));
        marks.push(Mark { fault: hot, text: format!("throttled: {words}") });
    }
    let mig = (!gpu.mig.is_empty()).then(|| format!("MIG ×{}", gpu.mig.len()));
    let model = plain(&gpu.name);
    let words = |link: &str| {
        let parts = [Some(link.to_owned()).filter(|link| !link.is_empty()), joined.clone(), mig.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    };
    let mut part = Part::new(NodeKind::Gpu, format!("GPU {}", gpu.index), words(&link));
    part.kind = format!("{} {model} {} {:?}", part.node.name, words(&kind), faults(&marks));
    part.node.model = model;
    part.node.marks = marks;
    part
}

fn nic_part(hardware: &Hardware, nic: &Nic) -> Part {
    let (link, mut marks, kind) = nic.pci.map_or_else(Default::default, |pci| link(hardware, pci));
    let several = hardware.nics.iter().filter(|other| other.name == nic.name).count() > 1;
    let number = if several { format!(" port {}", nic.port) } else { String::new() };
    let rate = nic.rate.map(|rate| format!("{:.0} Gbit/s", rate * 8e-9)).filter(|_| nic.rate.is_some_and(|rate| rate > 0.0));
    let state = plain(&nic.state);
    if !nic.up() {
        // A port of the data network should be up; many machines have others that nobody uses.
        let fault = nic.pci.is_some() && (nic.layer != crate::topology::hardware::LinkLayer::Ethernet || nic.interface.is_some());
        let text = if state == "down" { "port down".to_owned() } else { format!("port {state}") };
        marks.push(Mark { fault, text });
    }
    let told = Some(state).filter(|state| !state.is_empty() && nic.up());
    let words = |link: &str| {
        let parts = [rate.clone(), told.clone(), Some(link.to_owned()).filter(|link| !link.is_empty())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    };
    let mut part = Part::new(NodeKind::Nic, format!("{}{number}", plain(&nic.name)), words(&link));
    part.kind = format!("{} {} {:?}", part.node.name, words(&kind), marks);
    part.node.marks = marks;
    part
}

fn other_part(hardware: &Hardware, at: usize) -> Part {
    let device = &hardware.pci[at];
    let (state, marks, kind) = link(hardware, at);
    let name = plain(&device.name);
    let title =
        if name.is_empty() { format!("{} class {:04x}", device.address, device.class >> 8) } else { format!("{} {name}", device.address) };
    let mut part = Part::new(NodeKind::Other, title, state);
    part.kind = format!("{:x} {:x} {kind}", device.vendor, device.device);
    // What nobody measures is not accused.
    part.node.marks = marks.into_iter().map(|mark| Mark { fault: false, ..mark }).collect();
    part
}

fn faults(marks: &[Mark]) -> Vec<&str> {
    marks.iter().filter(|mark| mark.fault).map(|mark| mark.text.as_str()).collect()
}
