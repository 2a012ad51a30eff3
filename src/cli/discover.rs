//! `toposcope discover`: what every rank sits on, as a table and trees for people, or as JSON.

mod gpus;

use std::collections::HashMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, bail};

use super::{FINE, print};
use crate::discover::{Machine, class_name};
use crate::topology::hardware::{Acs, CacheKind, LinkLayer, Nic, NoteKind, PciKind};
use crate::topology::{Hardware, PcieLink, Placement, Topology};
use crate::units::{format_ranks, format_size};

/// So many devices of no matter below one bridge are listed one by one; of more only the number is told.
const LISTED: usize = 8;
/// Narrowest text that is worth breaking.
const NARROW: usize = 40;

/// How a text for people looks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// characters in a line; `None` for as many as it takes
    width: Option<usize>,
    /// dim what is quiet
    dim: bool,
}

impl Look {
    /// As standard output is now.
    pub(super) fn now() -> Self {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Self::default();
        }
        let width = rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col)).filter(|&width| width > 0);
        Self { width, dim: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }
}

/// The hardware of a recorded tree, without any rank.
pub(super) fn recorded(root: &Path, json: bool) -> Result<u8> {
    if !root.join("sys").is_dir() && !root.join("proc").is_dir() {
        bail!("--sysfs-root {}: expected a folder that holds sys and proc as recorded", root.display());
    }
    let topology = Topology { hardware: vec![crate::transport::libraries::hardware(&Machine::at(root))], ..Topology::default() };
    print(&text(&topology, json, Look::now()));
    Ok(FINE)
}

/// Ranks and hosts.
pub(super) fn text(topology: &Topology, json: bool, look: Look) -> String {
    if json {
        return format!("{}\n", serde_json::to_string_pretty(topology).unwrap_or_default());
    }
    let mut page = Page::new(look);
    if !topology.ranks.is_empty() {
        ranks(&mut page, &topology.ranks);
    }
    for hardware in &topology.hardware {
        if !page.text.is_empty() {
            page.line("");
        }
        host(&mut page, hardware);
    }
    page.text
}

/// Lines, cut to the terminal.
pub(super) struct Page {
    look: Look,
    pub(super) text: String,
}

impl Page {
    pub(super) const fn new(look: Look) -> Self {
        Self { look, text: String::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        let width = self.look.width.unwrap_or(usize::MAX);
        if line.chars().count() > width {
            self.text.extend(line.chars().take(width.saturating_sub(1)));
            self.text.push('…');
        } else {
            self.text.push_str(line.trim_end());
        }
        self.text.push('\n');
    }

    /// One that only completes the picture.
    pub(super) fn quiet(&mut self, line: &str) {
        if self.look.dim {
            self.text.push_str("\x1b[2m");
            self.line(line);
            self.text.pop();
            self.text.push_str("\x1b[0m\n");
        } else {
            self.line(line);
        }
    }

    /// A sentence, broken between words to go on below its own beginning.
    pub(super) fn sentence(&mut self, head: &str, text: &str) {
        let indent = head.chars().count();
        let room = self.look.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(NARROW));
        let mut line = head.to_owned();
        let mut used = 0;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > room {
                self.line(&line);
                (line, used) = (" ".repeat(indent), 0);
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
        self.line(&line);
    }
}

fn ranks(page: &mut Page, ranks: &[Placement]) {
    page.line("rank  host              pid      cores         NUMA  cache      memory free of all");
    for rank in ranks {
        let numa = rank.numa.map_or_else(|| "–".to_owned(), |node| node.to_string());
        page.line(&format!(
            "{:<4}  {:<16}  {:<7}  {:<12}  {numa:<4}  {:<9}  {} of {}",
            rank.rank,
            rank.host,
            rank.pid,
            format_ranks(&rank.cores),
            if rank.cache > 0 { format_size(rank.cache) } else { "–".to_owned() },
            format_size(rank.memory_available >> 20 << 20),
            format_size(rank.memory_total >> 20 << 20),
        ));
    }
}

fn host(page: &mut Page, hardware: &Hardware) {
    let under = hardware.hypervisor.iter().map(|name| format!("virtual machine ({name})"));
    let within = hardware.container.iter().map(|name| format!("in a container ({name})"));
    let iommu = hardware.iommu.iter().map(|state| format!("IOMMU {state}"));
    let product = Some(hardware.product.clone()).filter(|product| !product.is_empty());
    let about: Vec<String> = product.into_iter().chain(under).chain(within).chain(iommu).collect();
    page.line(&format!("{}  {}", hardware.host, about.join(" · ")));
    for package in &hardware.packages {
        let cpus = format_ranks(&package.cpus);
        let threads = if package.cpus.len() == package.cores { String::new() } else { format!(" with {} threads", package.cpus.len()) };
        let cores = if package.cores == 1 { "1 core".to_owned() } else { format!("{} cores", package.cores) };
        page.line(&format!("  package {:<4} {}, {cores}{threads}: {cpus}", package.id, package.model));
    }
    let caches = caches(hardware);
    if !caches.is_empty() {
        page.line(&format!("  caches       {caches}"));
    }
    for node in &hardware.numa {
        let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
        let cpus = if node.cpus.is_empty() { "no processors".to_owned() } else { format!("processors {}", format_ranks(&node.cpus)) };
        let distances = if distances.is_empty() { String::new() } else { format!(", distances {}", distances.join(" ")) };
        let memory = if node.memory == 0 { String::new() } else { format!(", {}", format_size(node.memory >> 20 << 20)) };
        let line = format!("  NUMA {:<7} {cpus}{memory}{distances}", node.id);
        if node.cpus.is_empty() && node.memory == 0 { page.quiet(&line) } else { page.line(&line) }
    }
    if !hardware.pci.is_empty() {
        page.line("  PCI");
        Tree::of(hardware).draw(page);
    }
    for line in gpus::lines(hardware) {
        page.line(&line);
    }
    for nic in hardware.nics.iter().filter(|nic| nic.pci.is_none()) {
        page.line(&format!("  {}", nic_text(nic)));
    }
    for note in &hardware.notes {
        let kind = match note.kind {
            NoteKind::Unseen => "unseen",
            NoteKind::Lie => "lie",
            NoteKind::Warning => "warning",
        };
        page.sentence(&format!("  {kind:<8} "), &format!("{}: {}", note.about, note.text));
    }
}

/// Each kind once, with how many there are: `L1d 2 × 48 KiB`.
fn caches(hardware: &Hardware) -> String {
    let mut kinds: Vec<((u32, CacheKind, u64), usize)> = Vec::new();
    for cache in &hardware.caches {
        let key = (cache.level, cache.kind, cache.bytes);
        match kinds.iter_mut().find(|(known, _)| *known == key) {
            Some((_, number)) => *number += 1,
            None => kinds.push((key, 1)),
        }
    }
    let name = |((level, kind, bytes), number): ((u32, CacheKind, u64), usize)| {
        let letter = match kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let times = if number == 1 { String::new() } else { format!("{number} × ") };
        format!("L{level}{letter} {times}{}", format_size(bytes))
    };
    kinds.into_iter().map(name).collect::<Vec<_>>().join(" · ")
}

/// Network device with port, rate and state.
fn nic_text(nic: &Nic) -> String {
    let mut text = nic.name.clone();
    if let Some(interface) = &nic.interface {
        let _ = write!(text, " ({interface})");
    }
    if nic.port > 1 {
        let _ = write!(text, " port {}", nic.port);
    }
    let layer = match nic.layer {
        LinkLayer::InfiniBand => "InfiniBand",
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Other => "fabric",
    };
    let rate = nic.rate.map_or_else(|| "rate not told".to_owned(), |rate| format!("{} Gbit/s", (rate * 8e-6).round() / 1e3));
    let state = if nic.state.is_empty() { "state not told" } else { &nic.state };
    let _ = write!(text, "  {layer}, {state}, {rate}");
    if let Some(gids) = nic.gids {
        let _ = write!(text, ", {gids} GIDs");
    }
    text
}

/// Link as it is, and as it could be.
fn link_text(link: &PcieLink) -> String {
    let most = match (link.most, link.port) {
        (Some(most), Some(port)) => Some(if port.rate() < most.rate() { port } else { most }),
        (most, port) => most.or(port),
    };
    match (link.now, most) {
        (Some(now), Some(most)) if now.rate() < most.rate() => format!("{now} of {most}"),
        (Some(now), _) => now.to_string(),
        (None, Some(most)) => format!("link not told, at most {most}"),
        (None, None) => "link not told".to_owned(),
    }
}

/// The PCI tree of a host.
struct Tree<'a> {
    hardware: &'a Hardware,
    children: HashMap<Option<usize>, Vec<usize>>,
    /// devices that matter, and all above them
    loud: Vec<bool>,
}

impl<'a> Tree<'a> {
    fn of(hardware: &'a Hardware) -> Self {
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        let mut loud = vec![false; hardware.pci.len()];
        for (index, device) in hardware.pci.iter().enumerate() {
            // A file may tell anything; drawn is what has its parent before it.
            children.entry(device.parent.filter(|&parent| parent < index)).or_default().push(index);
            if device.is_end() {
                hardware.above(index).for_each(|above| loud[above] = true);
            }
        }
        Self { hardware, children, loud }
    }

    fn below(&self, at: Option<usize>) -> &[usize] {
        self.children.get(&at).map(Vec::as_slice).unwrap_or_default()
    }

    fn draw(&self, page: &mut Page) {
        // Deep trees are no reason for deep calls: what is still to draw, with the rails before it.
        let mut rest = self.lines(None, "  ");
        rest.reverse();
        while let Some((item, rails, last)) = rest.pop() {
            let (branch, rail) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            match item {
                Item::Device(index) => {
                    let line = format!("{rails}{branch}{}", self.label(index));
                    if self.loud[index] {
                        page.line(&line);
                    } else {
                        page.quiet(&line);
                    }
                    let mut below = self.lines(Some(index), &format!("{rails}{rail}"));
                    below.reverse();
                    rest.append(&mut below);
                }
                Item::Others(number) => page.quiet(&format!("{rails}{branch}{number} other devices")),
            }
        }
    }

    /// What stands directly below a device.
    fn lines(&self, at: Option<usize>, rails: &str) -> Vec<(Item, String, bool)> {
        let below = self.below(at);
        let quiet: usize = below.iter().filter(|&&index| !self.loud[index]).map(|&index| self.size(index)).sum();
        let fold = quiet > LISTED;
        let mut items: Vec<Item> = below.iter().filter(|&&index| !fold || self.loud[index]).map(|&index| Item::Device(index)).collect();
        if fold {
            items.push(Item::Others(quiet));
        }
        let last = items.len().saturating_sub(1);
        items.into_iter().enumerate().map(|(at, item)| (item, rails.to_owned(), at == last)).collect()
    }

    /// A device and all below it.
    fn size(&self, index: usize) -> usize {
        let (mut count, mut rest) = (0, vec![index]);
        while let Some(at) = rest.pop() {
            count += 1;
            rest.extend(self.below(Some(at)));
        }
        count
    }

    fn label(&self, index: usize) -> String {
        let device = &self.hardware.pci[index];
        let mut text = match device.kind {
            PciKind::HostBridge => format!("{:04x}:{:02x}  host bridge", device.address.domain, device.address.bus),
            _ => format!("{}  ", device.address),
        };
        let what = match device.kind {
            PciKind::HostBridge | PciKind::Endpoint => "",
            PciKind::RootPort => "root port, ",
            PciKind::SwitchUp => "switch, ",
            PciKind::SwitchDown => "switch port, ",
            PciKind::Bridge => "bridge, ",
        };
        text.push_str(what);
        // What decides first: the right end is what a narrow terminal loses.
        if let Some(link) = &device.link {
            let _ = write!(text, "{}  ", link_text(link));
        }
        for nic in self.hardware.nics.iter().filter(|nic| nic.pci == Some(index)) {
            let _ = write!(text, "{}  ", nic_text(nic));
        }
        let gpu = self.hardware.gpus.iter().find(|gpu| gpu.pci == Some(index));
        if let Some(gpu) = gpu {
            let _ = write!(text, "GPU {} {}", gpu.index, gpu.name);
        } else if device.kind != PciKind::HostBridge {
            text.push_str(if device.name.is_empty() { class_name(device.class) } else { &device.name });
        }
        if let Some(numa) = device.numa.filter(|_| device.kind == PciKind::Endpoint && self.loud[index] && self.hardware.numa.len() > 1) {
            let _ = write!(text, "  NUMA {numa}");
        }
        if device.acs.is_some_and(Acs::redirects) {
            text.push_str("  ACS redirects");
        }
        if let Some(driver) = &device.driver {
            let _ = write!(text, "  [{driver}]");
        }
        text
    }
}

enum Item {
    Device(usize),
    /// so many that nobody asks for
    Others(usize),
}

#[cfg(test)]
mod tests;
