//! The topology in a log of NCCL or RCCL (`NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH`): each rank prints the tree that it works with
//! (src/graph/topo.cc, `ncclTopoPrint`), several at once, so lines are put together by whose they are. Addresses are told without their
//! colons, links with the GB/s that NCCL reckons with, GPUs with their ranks.

use std::collections::{BTreeMap, HashMap};

use super::Skips;
use super::links::MOST_LINKS;
use super::merge;
use super::text::{Line, amount, named, number, shown};
use super::tree::{Tree, note_all, plant};
use crate::topology::hardware::{Gpu, GpuLink, GpuLinkKind, Hardware, LinkEnd, LinkLayer, Nic, NoteKind, NumaNode, PciDevice, PciKind};
use crate::topology::{Lanes, PciAddress, PcieLink};

/// More systems than share NVLink with each other.
const MOST_SYSTEMS: usize = 256;
/// Deeper trees are no machine's.
const DEEPEST: usize = 32;
/// More ranks than any log is of.
const MOST_RANKS: usize = 16_384;
/// More NUMA nodes than a host has, and more different tellings of one than a job's communicators print.
const MOST_NODES: usize = 256;
const MOST_TELLINGS: usize = 64;

/// What is said of whom: `node2:1208:1249 [0]` and the text behind `NCCL INFO `.
fn said(text: &str) -> Option<(&str, &str)> {
    let (who, what) = text.split_once("NCCL INFO ")?;
    // The time may stand in front, in brackets.
    let who = who.trim();
    let who = if who.starts_with('[') { who.split_once("] ").map_or(who, |(_, rest)| rest) } else { who };
    Some((who.trim(), what))
}

fn begins(what: &str) -> bool {
    what.starts_with("=== System : max")
}

/// A node as it is printed: `GPU/0-68000 (8)`, `PCI/1000 (1000c03015b31000)`, `CPU/1 (1/2/-1)`, `NET/0 (0/7a85/1/25.000000)`.
struct Node<'a> {
    kind: &'a str,
    /// which of several systems that share NVLink; 0 where there is one
    system: u64,
    id: u64,
    /// in brackets
    more: &'a str,
}

impl<'a> Node<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (name, more) = text.split_once(" (").map_or((text, ""), |(name, more)| (name, more.split(')').next().unwrap_or_default()));
        let (kind, id) = name.split_once('/')?;
        let kind = ["GPU", "PCI", "NVS", "CPU", "NIC", "NET", "GIN", "RMA", "DEV", "CXB"].into_iter().find(|known| *known == kind)?;
        let id = id.split_whitespace().next()?;
        let (system, id) = id.split_once('-').unwrap_or(("0", id));
        let hex = |text: &str| u64::from_str_radix(text, 16).ok().filter(|_| !text.is_empty() && text.len() <= 16);
        Some(Self { kind, system: hex(system)?, id: hex(id)?, more })
    }

    /// `68000` is `0000:68:00.0`; above 40 bits stands which of several on one device.
    fn address(&self) -> Option<PciAddress> {
        let id = self.id & 0xff_ffff_ffff;
        let byte = |shift: u32| u8::try_from(id >> shift & 0xff).ok();
        let device = byte(4).filter(|device| *device < 32)?;
        let domain = u32::try_from(id >> 20).ok()?;
        // The lowest bits of a part of a GPU say which.
        let function = if self.kind == "DEV" { 0 } else { u8::try_from(id & 0xf).ok().filter(|function| *function < 8)? };
        (id > 0).then_some(PciAddress { domain, bus: byte(12)?, device, function })
    }
}

/// The PCI Express link of NCCL's GB/s (12 is Gen3 x16): the widest with that rate, as which of several it is nobody tells.
fn lanes(rate: f64) -> Option<Lanes> {
    const SPEEDS: [(f64, f64); 6] = [(2.5, 3.0), (5.0, 6.0), (8.0, 12.0), (16.0, 24.0), (32.0, 48.0), (64.0, 96.0)];
    [16, 8, 4, 2, 1].into_iter().find_map(|width| {
        let found = SPEEDS.into_iter().find(|(_, full)| (full * f64::from(width) / 16.0 - rate).abs() < 0.051)?;
        Some(Lanes { speed: found.0, width })
    })
}

/// How many NVLinks of which generation and nominal bytes/s, by the GB/s that versions of NCCL give one (src/graph/topo.h).
fn nvlinks(rate: f64) -> Option<(u32, Option<u32>, f64)> {
    const ONE: [(f64, Option<u32>, f64); 7] = [
        (20.6, Some(4), 25e9),
        (40.1, Some(5), 50e9),
        (20.0, None, 25e9),
        (21.0, None, 25e9),
        (22.0, None, 25e9),
        (18.0, Some(1), 20e9),
        (12.0, Some(3), 14.0625e9),
    ];
    ONE.into_iter().find_map(|(one, version, nominal)| {
        let count = (rate / one).round();
        let fits = (1.0..=f64::from(MOST_LINKS)).contains(&count) && (rate - count * one).abs() < 0.051;
        fits.then_some((count as u32, version, nominal))
    })
}

/// A link of a GPU before all GPUs are known.
struct Link {
    gpu: usize,
    kind: GpuLinkKind,
    end: End,
    rate: f64,
}

enum End {
    Gpu(PciAddress),
    Switch,
    Cpu(usize),
}

/// One system in the making.
#[derive(Default)]
struct Draft {
    tree: Tree,
    numa: Vec<NumaNode>,
    gpus: Vec<Gpu>,
    /// by their place in the tree
    gpu_at: HashMap<usize, usize>,
    nics: Vec<Nic>,
    links: Vec<Link>,
}

/// A node whose links follow.
#[derive(Clone, Copy)]
struct Open {
    /// where its text begins, and so the `+` of its links
    column: usize,
    system: u64,
    /// its place in the tree
    pci: Option<usize>,
    gpu: Option<usize>,
    numa: Option<usize>,
    address: Option<PciAddress>,
}

/// What one rank has printed so far.
#[derive(Default)]
struct Rank {
    systems: BTreeMap<u64, Draft>,
    open: Vec<Open>,
    closed: bool,
}

/// The trees of all ranks that print at the same time, each host once, and the lines that they take.
pub(super) fn read(lines: &[Line<'_>], skips: &mut Skips) -> Option<(Vec<Hardware>, usize)> {
    said(lines.first()?.text).filter(|(_, what)| begins(what.trim_start()))?;
    let mut ranks: HashMap<&str, Rank> = HashMap::new();
    // In order of appearance.
    let mut order: Vec<&str> = Vec::new();
    let (mut used, mut open) = (1, 0_usize);
    let mut hosts = Hosts::default();
    for (at, line) in lines.iter().enumerate() {
        let Some((who, what)) = said(line.text) else { continue };
        if begins(what.trim_start()) {
            if !ranks.contains_key(who) && ranks.len() >= MOST_RANKS {
                break;
            }
            if let Some(before) = ranks.insert(who, Rank::default()) {
                // Another communicator of the same rank: what it printed before is told.
                open += usize::from(before.closed);
                hosts.keep(who, before);
            } else {
                open += 1;
                order.push(who);
            }
        } else if let Some(rank) = ranks.get_mut(who).filter(|rank| !rank.closed) {
            if what.starts_with("====") {
                rank.closed = true;
                open -= 1;
            } else if !rank.line(what, *line, skips) {
                continue;
            }
        } else {
            continue;
        }
        used = at + 1;
        if open == 0 {
            break;
        }
    }
    for who in order {
        if let Some(rank) = ranks.remove(who) {
            hosts.keep(who, rank);
        }
    }
    let hosts = hosts.tellings.into_iter().filter(|tellings| !tellings.is_empty()).map(merge::join).collect();
    Some((hosts, used))
}

/// What the ranks of each host printed.
#[derive(Default)]
struct Hosts {
    /// by name
    at: HashMap<String, usize>,
    /// in order of appearance
    tellings: Vec<Vec<Hardware>>,
}

impl Hosts {
    /// Add what a rank printed to its host, once.
    fn keep(&mut self, who: &str, rank: Rank) {
        let host = named(who.split([':', ' ']).next().unwrap_or_default());
        let several = rank.systems.len() > 1;
        for (system, draft) in rank.systems {
            // Which system is the rank's own is not told.
            let name = if several { format!("{host} system {system}") } else { host.clone() };
            let mut hardware = draft.finish();
            hardware.host.clone_from(&name);
            let at = *self.at.entry(name).or_insert(self.tellings.len());
            if at == self.tellings.len() {
                self.tellings.push(Vec::new());
            }
            let known = &mut self.tellings[at];
            // Ranks of one host print the same, but for what they left out of their trees.
            let tells = hardware.gpus.len() + hardware.pci.len() + hardware.numa.len() > 0;
            if tells && known.len() < MOST_TELLINGS && !known.contains(&hardware) {
                known.push(hardware);
            }
        }
    }
}

impl Rank {
    /// True if the line is of the tree.
    fn line(&mut self, what: &str, line: Line<'_>, skips: &mut Skips) -> bool {
        let column = what.len() - what.trim_start().len();
        let text = what.trim();
        let Some(told) = text.strip_prefix("+ ") else {
            let Some(node) = Node::of(text).filter(|node| node.kind == "CPU" && column == 0) else { return false };
            if self.systems.len() >= MOST_SYSTEMS && !self.systems.contains_key(&node.system) {
                skips.push(line.number, format!("more than {MOST_SYSTEMS} systems: {} is left out", shown(text)));
                self.open.clear();
                return true;
            }
            let numa = usize::try_from(node.id).ok().filter(|id| *id < 4096);
            let draft = self.systems.entry(node.system).or_default();
            if let Some(id) = numa.filter(|id| draft.numa.len() < MOST_NODES && draft.numa.iter().all(|known| known.id != *id)) {
                draft.numa.push(NumaNode { id, ..NumaNode::default() });
            }
            self.open = vec![Open { column, system: node.system, pci: None, gpu: None, numa, address: None }];
            return true;
        };
        while self.open.last().is_some_and(|open| open.column > column) {
            self.open.pop();
        }
        let parent = self.open.last().copied().filter(|open| open.column == column);
        let parts = told.split_once("] - ").and_then(|(link, node)| {
            let (kind, rate) = link.split_once('[')?;
            Some((kind, amount(rate)?, Node::of(node)?))
        });
        let (Some(parent), Some((kind, rate, node))) = (parent, parts) else {
            let why =
                if parent.is_none() { "hangs below nothing: its blanks are lost, or lines above it" } else { "is no link to a device" };
            skips.push(line.number, format!("{} {why}", shown(text)));
            return true;
        };
        let begins = column + 2 + told.find("] - ").map_or(0, |at| at + 4);
        let draft = self.systems.entry(parent.system).or_default();
        if let Some(child) = draft.link(parent, kind, rate, &node).filter(|_| self.open.len() < DEEPEST) {
            self.open.push(Open { column: begins, ..child });
        }
        true
    }
}

impl Draft {
    /// What hangs at a node; what its links are found below, if it may have some.
    fn link(&mut self, parent: Open, kind: &str, rate: f64, node: &Node<'_>) -> Option<Open> {
        let address = node.address();
        match (kind, node.kind) {
            ("PCI", "PCI" | "GPU" | "NIC" | "DEV") => {
                let pci = address.map(|address| self.device(parent, address, rate, node));
                // A device is there for the ranks on it, and has their links (NCCL 2.28 and later).
                let gpu = if matches!(node.kind, "GPU" | "DEV") { Some(self.gpu(pci, parent.numa)) } else { None };
                Some(Open { column: 0, pci: pci.or(parent.pci), gpu, address, ..parent })
            }
            ("NET", "NET") => {
                self.net(parent, node);
                None
            }
            // Parts of a GPU share its link to the processor, and each tells all of it.
            ("C2C", "CXB") if self.links.iter().any(|link| Some(link.gpu) == parent.gpu && link.kind == GpuLinkKind::C2c) => None,
            ("NVL" | "XGMI" | "C2C", "GPU" | "DEV" | "NVS" | "CPU" | "CXB") => {
                let kind = match kind {
                    "NVL" => GpuLinkKind::Nvlink,
                    "XGMI" => GpuLinkKind::Xgmi,
                    _ => GpuLinkKind::C2c,
                };
                let end = match node.kind {
                    "NVS" => Some(End::Switch),
                    "CPU" => usize::try_from(node.id).ok().map(End::Cpu),
                    "CXB" => parent.numa.map(End::Cpu),
                    _ => address.map(End::Gpu),
                };
                // Seen from a processor, it is told by the GPU once more.
                if let (Some(gpu), Some(end)) = (parent.gpu, end) {
                    self.links.push(Link { gpu, kind, end, rate });
                }
                None
            }
            _ => None,
        }
    }

    fn device(&mut self, parent: Open, address: PciAddress, rate: f64, node: &Node<'_>) -> usize {
        let told = u64::from_str_radix(node.more, 16).unwrap_or_default();
        let (kind, class) = match node.kind {
            "PCI" => (PciKind::SwitchUp, 0x06_04_00),
            "NIC" => (PciKind::Endpoint, 0x02_00_00),
            _ => (PciKind::Endpoint, 0x03_02_00),
        };
        // Of GPUs and NICs something else stands in brackets.
        let known = matches!(node.kind, "PCI" | "DEV");
        let id = |shift: u32| u16::try_from(told >> shift & 0xffff).ok().filter(|id| known && *id != 0xffff).unwrap_or_default();
        let link = lanes(rate).map(|most| PcieLink { most: Some(most), ..PcieLink::default() });
        let device = PciDevice { address, kind, class, vendor: id(48), device: id(32), link, numa: parent.numa, ..PciDevice::default() };
        self.tree.add(device, parent.pci)
    }

    fn gpu(&mut self, pci: Option<usize>, numa: Option<usize>) -> usize {
        let next = self.gpus.len();
        let at = pci.map_or(next, |pci| *self.gpu_at.entry(pci).or_insert(next));
        if at == next {
            self.gpus.push(Gpu { index: next, pci, numa, ..Gpu::default() });
        }
        at
    }

    /// `NET/1 (7a852d0003f6ceb8/1/25.000000)`, or with one more in front.
    fn net(&mut self, parent: Open, node: &Node<'_>) {
        let parts: Vec<&str> = node.more.split('/').collect();
        let [.., guid, port, rate] = parts.as_slice() else { return };
        self.nics.push(Nic {
            name: format!("NET/{}", node.id),
            port: number(port).and_then(|port| u32::try_from(port).ok()).unwrap_or_default(),
            pci: parent.pci.filter(|_| parent.address.is_some()),
            numa: parent.numa,
            layer: LinkLayer::Other,
            rate: amount(rate).filter(|rate| *rate > 0.0).map(|rate| rate * 1e9),
            // Sockets are numbered; only real ones have the maker's upper half.
            guid: (guid.len() > 8).then(|| format!("0x{}", named(guid))),
            ..Nic::default()
        });
    }

    fn finish(mut self) -> Hardware {
        // The driver numbers GPUs by address.
        let address = |gpu: &Gpu| gpu.pci.and_then(|at| self.tree.devices().get(at)).map(|device| device.address);
        let mut places: Vec<usize> = (0..self.gpus.len()).collect();
        places.sort_by_key(|&at| address(&self.gpus[at]));
        for (index, &at) in places.iter().enumerate() {
            self.gpus[at].index = index;
        }
        let mut host = Hardware { numa: self.numa, gpus: self.gpus, nics: self.nics, ..Hardware::default() };
        let at = plant(self.tree, &mut host);
        let mut uncounted = Vec::new();
        for link in self.links {
            let end = match link.end {
                End::Gpu(address) => {
                    at.get(&address).filter(|peer| **peer != link.gpu).map_or(LinkEnd::Unknown, |peer| LinkEnd::Gpu(*peer))
                }
                End::Switch => LinkEnd::Switch,
                End::Cpu(numa) => LinkEnd::Cpu(numa),
            };
            let counted = if link.kind == GpuLinkKind::Nvlink { nvlinks(link.rate) } else { None };
            if counted.is_none() {
                uncounted.push(format!("GPU{}", host.gpus[link.gpu].index));
            }
            let (count, version, rate) = counted.unwrap_or((1, None, link.rate * 1e9));
            let told = GpuLink { kind: link.kind, gpu: link.gpu, end, active: true, version, rate: Some(rate), number: None };
            host.gpu_links.extend(std::iter::repeat_n(told, count as usize));
        }
        uncounted.dedup();
        note_all(
            &mut host,
            NoteKind::Unseen,
            &uncounted,
            "how many links lie between two ends is not told: one with the rate that NCCL reckons with stands for all",
        );
        if !host.gpus.is_empty() {
            host.note(
                NoteKind::Unseen,
                "GPUs",
                "the log tells ranks, not the driver's numbers: GPUs are numbered by address, and those without a rank are not there",
            );
        }
        host
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{clean, lines};
    use super::super::{Format, Skipped, hardware};
    use super::*;

    fn told(text: &str) -> (Vec<Hardware>, Vec<Skipped>) {
        let found = hardware(text, "log.txt").unwrap();
        assert_eq!(found.formats, [Format::NcclLog]);
        (found.hosts, found.skipped)
    }

    /// Two ranks of one host and one of another, each with `who` in front of its lines, line by line in turn.
    fn interleaved(trees: &[(&str, &str)]) -> String {
        let longest = trees.iter().map(|(_, tree)| tree.lines().count()).max().unwrap_or(0);
        let mut text = String::from("job: starts\n");
        for at in 0..longest {
            for (who, tree) in trees {
                if let Some(line) = tree.lines().nth(at) {
                    text.push_str(who);
                    text.push_str(" NCCL INFO ");
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }

    const TREE: &str = "\
=== System : maxBw 24.0 totalBw 240.0 ===
CPU/0-1 (1/2/-1)
+ SYS[10.0] - CPU/0-0
+ PCI[48.0] - PCI/0-1000 (1000c03015b31000)
              + PCI[24.0] - GPU/0-3b000 (1)
                            + NVL[240.0] - NVS/0-0
                            + NVL[41.2] - GPU/0-af000
              + PCI[12.0] - NIC/0-3c000
                            + NET[25.0] - NET/0-2 (0/7a852d0003f6ceb8/1/25.000000)
+ PCI[24.0] - GPU/0-af000 (0)
              + NVL[41.2] - GPU/0-3b000
CPU/0-0 (1/2/-1)
==========================================
GPU/0-3b000 :GPU/0-3b000 (0/5000.0/LOC) CPU/0-1 (3/24.0/PHB)
";

    #[test]
    fn trees_of_ranks_that_talk_at_once_are_told_apart() {
        let other = "=== System : maxWidth 252.0 totalWidth 252.0 ===\nCPU/0 (1/2/-1)\n+ PCI[24.0] - GPU/E000 (0)\n              + NVL[252.0] - NVS/0\n====\n";
        let text = interleaved(&[("n1:10:11 [0]", TREE), ("n1:12:13 [1]", TREE), ("[2026-01-01 10:00:00] n2:9:9 [0]", other)]);
        let (hosts, skipped) = told(&text);
        assert_eq!(hosts.iter().map(|host| (host.host.as_str(), host.gpus.len())).collect::<Vec<_>>(), [("n1", 2), ("n2", 1)]);
        let host = &hosts[0];
        let addresses: Vec<_> = host.pci.iter().map(|device| device.address.to_string()).collect();
        assert_eq!(addresses, ["0000:01:00.0", "0000:3b:00.0", "0000:3c:00.0", "0000:af:00.0"]);
        assert_eq!((host.pci[1].parent, host.pci[3].parent, host.pci[3].numa), (Some(0), None, Some(1)));
        assert_eq!((host.pci[0].vendor, host.pci[0].device, host.pci[0].kind), (0x1000, 0xc030, PciKind::SwitchUp));
        assert_eq!(host.pci[0].link.unwrap().most.unwrap().to_string(), "Gen5 x16");
        let numbers: Vec<_> = host.gpus.iter().map(|gpu| (gpu.index, gpu.pci)).collect();
        assert_eq!(numbers, [(0, Some(1)), (1, Some(3))]);
        let count = |gpu: usize, end: LinkEnd| host.gpu_links.iter().filter(|link| link.gpu == gpu && link.end == end).count();
        assert_eq!((count(0, LinkEnd::Switch), count(0, LinkEnd::Gpu(1)), count(1, LinkEnd::Gpu(0))), (12, 2, 2));
        let nic = &host.nics[0];
        assert_eq!((nic.name.as_str(), nic.pci, nic.rate, nic.port), ("NET/2", Some(2), Some(25e9), 1));
        assert_eq!(hosts[1].gpu_links.len(), 12);
        assert_eq!(hosts[1].pci[0].address.to_string(), "0000:0e:00.0");
        assert!(skipped.iter().all(|skip| skip.line == 1), "{skipped:?}");
    }

    #[test]
    fn what_follows_a_log_is_read_too() {
        let text = format!("{}mlx5_0 port 1 ==> eth2 (Up)\n", interleaved(&[("n1:10:11 [0]", TREE)]));
        assert_eq!(hardware(&text, "f").unwrap().formats, [Format::NcclLog, Format::Ibdev2netdev]);
    }

    #[test]
    fn lines_that_lost_their_place_are_told() {
        let text = interleaved(&[(
            "n1:1:1 [0]",
            "=== System : maxBw 1 ===\nCPU/0 (1/2/-1)\n+ PCI[12.0] - GPU/1000 (0)\n   + PCI[12.0] - GPU/2000 (1)\n+ PCI[12.0] - what\n",
        )]);
        let (hosts, skipped) = told(&text);
        assert_eq!(hosts[0].gpus.len(), 1);
        assert_eq!(skipped.iter().map(|skip| skip.line).collect::<Vec<_>>(), [1, 5, 6]);
        let without = "a:1:1 [0] NCCL INFO Bootstrap : Using eth0\n";
        assert!(hardware(without, "f").unwrap_err().to_string().contains("NCCL_DEBUG_SUBSYS"));
    }

    #[test]
    fn very_many_systems_and_hosts_take_time_in_proportion() {
        let begun = std::time::Instant::now();
        let systems: Vec<String> = (0..20_000).map(|at| format!("n:1:1 [0] NCCL INFO CPU/{at:x}-0 (1/2/-1)\n")).collect();
        let text = format!("n:1:1 [0] NCCL INFO === System : maxBw 1 ===\n{}", systems.concat());
        let (hosts, skipped) = told(&text);
        assert_eq!((hosts.len(), skipped.len()), (MOST_SYSTEMS, 201));
        assert!(skipped.iter().any(|skip| skip.reason.contains("more than 256 systems")), "{skipped:?}");
        let one = |at: usize| {
            format!(
                "n{at}:1:1 [0] NCCL INFO === System : maxBw 1 ===\nn{at}:1:1 [0] NCCL INFO CPU/0 (1/2/-1)\nn{at}:1:1 [0] NCCL INFO ====\n"
            )
        };
        let many: String = (0..10_000).map(one).collect();
        assert_eq!(hardware(&many, "f").unwrap().hosts.len(), 10_000);
        // Quadratic it would be minutes.
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_rank_may_stand_below_its_device() {
        let text = interleaved(&[(
            "a:1:1 [0]",
            "=== System : maxBw 1 ===\nCPU/0-0 (1/2/-1)\n+ PCI[48.0] - DEV/0-1b000 (10de2330)\n              + LOC[5000.0] - GPU/0-1b000\n====\n",
        )]);
        let (hosts, _) = told(&text);
        assert_eq!((hosts[0].gpus.len(), hosts[0].pci.len(), hosts[0].gpus[0].pci), (1, 1, Some(0)));
    }

    /// As NCCL 2.28 and later print (src/graph/topo.cc, `ncclTopoPrintRec`): links hang at the device, whose ranks it names.
    #[test]
    fn links_of_devices_are_those_of_their_gpus() {
        let text = interleaved(&[(
            "a:1:1 [0]",
            "=== System : maxBw 1 ===\nCPU/0-0 (2/6/-1)\n+ C2C[450.0] - DEV/0-901000\n\
             + PCI[48.0] - DEV/0-901000 (10de234210de16eb)\n              + LOC[5000.0] - GPU/0-10000901000\n              + LOC[5000.0] - GPU/0-901000\n\
             \x20             + C2C[450.0] - CPU/0-0\n              + NVL[123.6] - DEV/0-1901000\n              + NVL[123.6] - NVS/0-0\n\
             + PCI[48.0] - DEV/0-1901001 (10de234210de16eb)\n              + LOC[5000.0] - GPU/0-1901001\n              + LOC[2618.0] - DEV/0-1901003\n\
             \x20             + NVL[123.6] - DEV/0-901000\n              + C2C[450.0] - CXB/0-1901000\n\
             + PCI[48.0] - DEV/0-1901003 (10de234210de16eb)\n              + LOC[5000.0] - GPU/0-1901003\n              + C2C[450.0] - CXB/0-1901000\n====\n",
        )]);
        let (hosts, skipped) = told(&text);
        let host = &hosts[0];
        assert!(skipped.iter().all(|skip| skip.line == 1), "{skipped:?}");
        let addresses: Vec<_> = host.pci.iter().map(|device| device.address.to_string()).collect();
        assert_eq!((host.gpus.len(), addresses), (2, vec!["0009:01:00.0".to_owned(), "0019:01:00.0".to_owned()]));
        assert_eq!((host.pci[0].vendor, host.pci[0].device), (0x10de, 0x2342));
        let count = |gpu: usize, end: LinkEnd| host.gpu_links.iter().filter(|link| link.gpu == gpu && link.end == end).count();
        assert_eq!((count(0, LinkEnd::Gpu(1)), count(0, LinkEnd::Switch), count(1, LinkEnd::Gpu(0))), (6, 6, 6));
        // The processor's link is told by both ends, and once by each part of a GPU.
        assert_eq!((count(0, LinkEnd::Cpu(0)), count(1, LinkEnd::Cpu(0))), (1, 1));
    }

    #[test]
    fn rates_tell_links() {
        assert_eq!(lanes(12.0).unwrap().to_string(), "Gen3 x16");
        assert_eq!(lanes(1.5).unwrap().to_string(), "Gen1 x8");
        assert_eq!(lanes(13.0), None);
        for (rate, count) in [(370.8, 18), (721.8, 18), (240.0, 12), (264.0, 12), (252.0, 12), (48.0, 4), (18.0, 1)] {
            assert_eq!(nvlinks(rate).map(|found| found.0), Some(count), "{rate}");
        }
        assert_eq!(nvlinks(37.0), None);
    }

    #[test]
    fn cut_logs_are_read_as_far_as_they_go() {
        let text = interleaved(&[("n1:10:11 [0]", TREE), ("n2:12:13 [1]", TREE)]);
        for at in 0..text.len() {
            for damaged in
                [text[..at].to_owned(), format!("{}{}", &text[..at], &text[at + 1..]), format!("{}9{}", &text[..at], &text[at..])]
            {
                let cleaned = clean(&damaged);
                let lines = lines(&cleaned);
                let mut skips = Skips::default();
                for start in 0..lines.len() {
                    if let Some((hosts, used)) = read(&lines[start..], &mut skips) {
                        assert!(used >= 1 && start + used <= lines.len());
                        assert!(hosts.iter().all(|host| host.gpus.iter().all(|gpu| gpu.pci.is_none_or(|at| at < host.pci.len()))));
                    }
                }
            }
        }
    }
}
