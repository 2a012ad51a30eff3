//! NCCL's and RCCL's topology XML (`NCCL_TOPO_DUMP_FILE`, or written by hand for `NCCL_TOPO_FILE`): per NUMA node the PCI switches,
//! GPUs with their NVLinks, and network devices. A bridge there is the upper side of a switch; ports and root ports are left out.
//! Link speeds are what both ends can do at most (src/graph/xml.cc reads `max_link_speed`).

use std::collections::HashMap;

use roxmltree::Node;

use super::links::{MOST_LINKS, of_sm};
use super::text::{amount, mask, named, number, shown};
use super::tree::{Tree, lanes, note_all, plant};
use super::xml::Piece;
use super::{Skips, ids};
use crate::topology::hardware::{Gpu, GpuLink, GpuLinkKind, Hardware, LinkEnd, LinkLayer, Nic, NoteKind, NumaNode, PciDevice, PciKind};
use crate::topology::{PciAddress, PcieLink};

/// A link as it is told, before all GPUs are known.
struct Link {
    gpu: usize,
    kind: GpuLinkKind,
    target: Option<PciAddress>,
    /// class of the other end
    class: u32,
    rate: Option<f64>,
    version: Option<u32>,
    count: u32,
    numa: Option<usize>,
}

/// One host in the making.
#[derive(Default)]
struct Draft {
    tree: Tree,
    numa: Vec<NumaNode>,
    gpus: Vec<Gpu>,
    /// by their place in the tree
    gpu_at: HashMap<usize, usize>,
    nics: Vec<Nic>,
    links: Vec<Link>,
    /// addresses by what is wrong with their links
    emulated: Vec<String>,
    widthless: Vec<String>,
    untold: Vec<String>,
}

/// Where an element stands.
#[derive(Clone, Copy, Default)]
struct Place {
    host: usize,
    numa: Option<usize>,
    /// nearest PCI device above, in the host's tree
    pci: Option<usize>,
    gpu: Option<usize>,
    sm: usize,
}

/// Hexadecimal with or without `0x`.
pub(super) fn hex(text: Option<&str>) -> u32 {
    let text = text.unwrap_or_default().trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).unwrap_or_default()
}

/// The hosts of a file, told apart by `host_hash`.
pub(super) fn read(root: Node<'_, '_>, piece: &Piece<'_>, skips: &mut Skips) -> Vec<Hardware> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut hosts: HashMap<&str, usize> = HashMap::new();
    let mut open: Vec<(Node<'_, '_>, Place)> = root.children().rev().map(|node| (node, Place::default())).collect();
    while let Some((node, mut place)) = open.pop() {
        if !node.is_element() {
            continue;
        }
        let name = node.tag_name().name();
        if name == "cpu" || drafts.is_empty() {
            let hash = node.attribute("host_hash").unwrap_or_default();
            // What is above a processor in a damaged file is another host's, maybe.
            place = Place { host: *hosts.entry(hash).or_insert(drafts.len()), ..Place::default() };
            if place.host == drafts.len() {
                drafts.push(Draft::default());
            }
        }
        let draft = &mut drafts[place.host];
        match name {
            "cpu" => place.numa = draft.cpu(node),
            "pci" => {
                let Some(at) = draft.pci(node, place) else {
                    piece.skip(node, skips, format!("{} is no PCI address", shown(node.attribute("busid").unwrap_or_default())));
                    continue;
                };
                place.pci = Some(at);
            }
            "gpu" => {
                place.sm = node.attribute("sm").and_then(number).unwrap_or_default();
                place.gpu = Some(draft.gpu(node, place));
            }
            "nvlink" | "xgmi" | "c2c" => {
                if let Err(reason) = draft.link(node, place) {
                    piece.skip(node, skips, reason);
                }
            }
            "net" => draft.net(node, place),
            "nic" => {}
            "pcilink" => piece.skip(node, skips, "a link between two PCI switches, which no path is looked for over"),
            other => piece.skip(node, skips, format!("<{}> is no part of a topology that is known here", named(other))),
        }
        open.extend(node.children().rev().map(|child| (child, place)));
    }
    drafts.into_iter().map(Draft::finish).collect()
}

impl Draft {
    fn cpu(&mut self, node: Node<'_, '_>) -> Option<usize> {
        let id = node.attribute("numaid").and_then(number)?;
        let cpus = node.attribute("affinity").and_then(mask).unwrap_or_default();
        match self.numa.iter_mut().take(1024).find(|known| known.id == id) {
            Some(known) if known.cpus.is_empty() => known.cpus = cpus,
            Some(_) => {}
            None => self.numa.push(NumaNode { id, cpus, ..NumaNode::default() }),
        }
        Some(id)
    }

    fn pci(&mut self, node: Node<'_, '_>, place: Place) -> Option<usize> {
        let address: PciAddress = node.attribute("busid")?.parse().ok()?;
        let class = hex(node.attribute("class"));
        let id = |key| u16::try_from(hex(node.attribute(key))).ok().filter(|id| *id != 0xffff).unwrap_or_default();
        let (vendor, device) = (id("vendor"), id("device"));
        let (speed, width) = (node.attribute("link_speed").unwrap_or_default(), node.attribute("link_width").unwrap_or_default());
        let most = lanes(speed, width);
        let bridge = ids::is_bridge(class);
        // Texas Instruments' XIO2221 and QEMU's bridges stand for whatever the hypervisor passes through.
        let slow = most.is_some_and(|most| most.speed < 3.0 && most.width == 1);
        if bridge && slow {
            self.emulated.push(address.to_string());
        } else if most.is_none() && !speed.trim().is_empty() && width.trim() == "0" {
            self.widthless.push(address.to_string());
        } else if most.is_none() {
            self.untold.push(address.to_string());
        }
        let link = most.map(|most| PcieLink { most: Some(most), ..PcieLink::default() });
        let kind = if bridge { PciKind::SwitchUp } else { PciKind::Endpoint };
        Some(self.tree.add(PciDevice { address, kind, class, vendor, device, link, numa: place.numa, ..PciDevice::default() }, place.pci))
    }

    fn gpu(&mut self, node: Node<'_, '_>, place: Place) -> usize {
        if let Some(&known) = place.pci.and_then(|at| self.gpu_at.get(&at)) {
            return known;
        }
        let name = match node.attribute("gcn") {
            Some(gcn) if gcn.starts_with("gfx") => named(gcn),
            Some(gcn) => format!("gcn {}", named(gcn)),
            None if place.sm > 0 => format!("sm_{}", place.sm),
            None => String::new(),
        };
        let index = node.attribute("dev").and_then(number).unwrap_or(self.gpus.len());
        self.gpus.push(Gpu { index, name, pci: place.pci, numa: place.numa, ..Gpu::default() });
        self.gpu_at.extend(place.pci.map(|at| (at, self.gpus.len() - 1)));
        self.gpus.len() - 1
    }

    fn net(&mut self, node: Node<'_, '_>, place: Place) {
        let name = named(node.attribute("name").unwrap_or_default());
        let device = place.pci.and_then(|at| self.tree.devices().get(at));
        let layer = match device {
            Some(device) if device.vendor == ids::AMAZON && device.class >> 8 == 0x02_00 => LinkLayer::Other,
            Some(device) if device.class >> 8 == 0x02_07 => LinkLayer::InfiniBand,
            Some(device) if device.class >> 8 == 0x02_00 => LinkLayer::Ethernet,
            _ if ["e", "br", "veth", "bond"].iter().any(|start| name.starts_with(start)) => LinkLayer::Ethernet,
            _ => LinkLayer::Other,
        };
        self.nics.push(Nic {
            name,
            port: node.attribute("port").and_then(number).and_then(|port| u32::try_from(port).ok()).unwrap_or_default(),
            pci: place.pci,
            numa: place.numa,
            layer,
            // Mb/s
            rate: node.attribute("speed").and_then(amount).filter(|speed| *speed > 0.0).map(|speed| speed * 1e6 / 8.0),
            // Sockets are numbered; only real ones have the maker's upper half.
            guid: node.attribute("guid").filter(|guid| guid.len() > 10).map(named),
            gdr: node.attribute("gdr").map(|gdr| gdr == "1"),
            ..Nic::default()
        });
    }

    fn link(&mut self, node: Node<'_, '_>, place: Place) -> Result<(), String> {
        let Some(gpu) = place.gpu else { return Err("a link of no GPU".to_owned()) };
        let count = node.attribute("count").map_or(Some(1), number).and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| (1..=MOST_LINKS).contains(count));
        let Some(count) = count else {
            return Err(format!("{} links: no GPU has so many", shown(node.attribute("count").unwrap_or_default())));
        };
        let target = node.attribute("target").and_then(|target| target.parse().ok());
        let class = hex(node.attribute("tclass"));
        let (kind, rate, version) = match node.tag_name().name() {
            "xgmi" => (GpuLinkKind::Xgmi, None, None),
            // MB/s
            "c2c" => (GpuLinkKind::C2c, node.attribute("bw").and_then(amount).map(|rate| rate * 1e6), None),
            _ => (GpuLinkKind::Nvlink, of_sm(place.sm).map(|(_, rate)| rate), of_sm(place.sm).map(|(version, _)| version)),
        };
        self.links.push(Link { gpu, kind, target, class, rate, version, count, numa: place.numa });
        Ok(())
    }

    /// Static files have no `gpu` and `nic` elements: what a device's class says.
    fn by_class(&mut self) {
        let mut counted = vec![false; self.tree.devices().len()];
        for at in self.gpus.iter().filter_map(|gpu| gpu.pci).chain(self.nics.iter().filter_map(|nic| nic.pci)) {
            counted[at] = true;
        }
        let mut next = self.gpus.iter().map(|gpu| gpu.index + 1).max().unwrap_or_default();
        let mut bare: Vec<usize> = (0..counted.len()).filter(|&at| !counted[at]).collect();
        // The driver numbers GPUs by address.
        bare.sort_by_key(|&at| self.tree.devices()[at].address);
        for at in bare {
            let device = &self.tree.devices()[at];
            // A hand-written file may leave the vendor out.
            let vendor = if device.vendor == 0 { ids::NVIDIA } else { device.vendor };
            if ids::is_gpu(device.class, vendor, device.device) {
                self.gpus.push(Gpu { index: next, pci: Some(at), numa: device.numa, ..Gpu::default() });
                next += 1;
            } else if ids::is_nic(device.class) {
                let layer = match device.class >> 8 {
                    0x02_07 => LinkLayer::InfiniBand,
                    0x02_00 if vendor != ids::AMAZON => LinkLayer::Ethernet,
                    _ => LinkLayer::Other,
                };
                self.nics.push(Nic { name: device.address.to_string(), pci: Some(at), numa: device.numa, layer, ..Nic::default() });
            }
        }
    }

    fn finish(mut self) -> Hardware {
        self.by_class();
        let mut host = Hardware { numa: self.numa, gpus: self.gpus, nics: self.nics, ..Hardware::default() };
        let at = plant(self.tree, &mut host);
        let mut own = Vec::new();
        for link in self.links {
            let peer = link.target.and_then(|target| at.get(&target).copied());
            let end = match (link.kind, peer) {
                (GpuLinkKind::C2c, _) => link.numa.map_or(LinkEnd::Unknown, LinkEnd::Cpu),
                (_, Some(peer)) if peer == link.gpu => {
                    own.extend(link.target.map(|target| target.to_string()));
                    LinkEnd::Unknown
                }
                (_, Some(peer)) => LinkEnd::Gpu(peer),
                // POWER's bridge to the processor has an interface of its own in this class.
                (_, None) if link.class == 0x06_80_01 => link.numa.map_or(LinkEnd::Unknown, LinkEnd::Cpu),
                (_, None) if link.class >> 8 == 0x06_80 => LinkEnd::Switch,
                _ => LinkEnd::Unknown,
            };
            let told = GpuLink { kind: link.kind, gpu: link.gpu, end, active: true, version: link.version, rate: link.rate, number: None };
            host.gpu_links.extend(std::iter::repeat_n(told, link.count as usize));
        }
        own.dedup();
        note_all(&mut host, NoteKind::Lie, &own, "NVLinks lead back to the GPU that they begin at, by what the file says");
        note_all(&mut host, NoteKind::Lie, &self.emulated, "2.5 GT/s x1 is what emulated bridges say: nothing is as slow");
        note_all(
            &mut host,
            NoteKind::Lie,
            &self.widthless,
            "a link without lanes is what virtual functions say: nothing is learnt from it",
        );
        note_all(&mut host, NoteKind::Unseen, &self.untold, "speed and width of the link are not told, as in virtual machines");
        host
    }
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    fn read(text: &str) -> (Vec<Hardware>, Vec<super::super::Skipped>) {
        let (_, hosts, skips) = xml::read(&xml::pieces(text), "f").unwrap();
        (hosts, skips.sorted())
    }

    const TWO: &str = r#"<system version="1">
      <cpu host_hash="0x1" numaid="1" affinity="0000000f,00000000" arch="x86_64">
        <pci busid="0000:10:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="16.0 GT/s PCIe" link_width="16">
          <pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16 GT/s" link_width="16">
            <gpu dev="3" sm="80" rank="0" gdr="1">
              <nvlink target="0000:13:00.0" count="2" tclass="0x030200"/><nvlink target="0000:f0:00.0" count="4" tclass="0x068000"/>
              <c2c bw="44712" count="10"/><nvlink target="0000:13:00.0" count="4000000"/>
            </gpu></pci>
          <pci busid="0000:13:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="" link_width="0">
            <gpu dev="4" sm="80" rank="1" gdr="1"/></pci>
          <pci busid="0000:14:00.0" class="0x020700" vendor="0x15b3" device="0x101b" link_speed="16 GT/s" link_width="16">
            <nic><net name="mlx5_2" dev="0" speed="200000" port="1" guid="0x0011223344556677" gdr="1"/></nic></pci>
        </pci>
        <nic><net name="eth0" dev="1" speed="10000" port="0" guid="0x0" gdr="0"/></nic>
        <new/>
      </cpu>
      <cpu host_hash="0x2" numaid="0" affinity="1"><pci busid="zz" class="0x030200"/></cpu>
    </system>"#;

    #[test]
    fn switches_gpus_links_and_ports_are_read_per_host() {
        let (hosts, skipped) = read(TWO);
        assert_eq!(hosts.len(), 2);
        let host = &hosts[0];
        assert_eq!((host.pci.len(), host.gpus.len(), host.nics.len()), (4, 2, 2));
        assert_eq!(host.numa, [NumaNode { id: 1, cpus: vec![32, 33, 34, 35], ..NumaNode::default() }]);
        assert_eq!((host.gpus[0].index, host.gpus[0].name.as_str(), host.gpus[0].numa), (3, "sm_80", Some(1)));
        assert_eq!((host.pci[0].kind, host.pci[1].parent), (PciKind::SwitchUp, Some(0)));
        assert_eq!(host.pci[1].link.unwrap().most.unwrap().to_string(), "Gen4 x16");
        let ends = |end: LinkEnd| host.gpu_links.iter().filter(|link| link.end == end).count();
        assert_eq!((ends(LinkEnd::Gpu(1)), ends(LinkEnd::Switch), ends(LinkEnd::Cpu(1))), (2, 4, 10));
        assert!(host.gpu_links[..6].iter().all(|link| link.rate == Some(25e9) && link.version == Some(3)));
        assert_eq!((host.nics[0].rate, host.nics[0].gdr, host.nics[0].layer), (Some(25e9), Some(true), LinkLayer::InfiniBand));
        assert_eq!((host.nics[1].pci, &host.nics[1].guid, host.nics[1].layer), (None, &None, LinkLayer::Ethernet));
        assert_eq!(skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [7, 15, 17]);
        assert_eq!(
            host.notes.iter().map(|note| (note.kind, note.about.as_str())).collect::<Vec<_>>(),
            [(NoteKind::Unseen, "0000:13:00.0")]
        );
    }

    /// Found by damaging real files: its devices were sought in the tree of the host around it.
    #[test]
    fn a_host_inside_a_device_of_another_begins_anew() {
        let text = r#"<system version="1"><cpu host_hash="0x1" numaid="0"><pci busid="0000:01:00.0" class="0x060400">
            <cpu host_hash="0x2" numaid="1"><nic><net name="eth0"/></nic><gpu dev="0" sm="90"/></cpu></pci></cpu></system>"#;
        let (hosts, _) = read(text);
        let within = |host: &Hardware, at: Option<usize>| at.is_none_or(|at| at < host.pci.len());
        assert!(hosts.iter().any(|host| host.nics.len() == 1 && host.gpus.len() == 1), "{hosts:?}");
        for host in &hosts {
            assert!(host.nics.iter().all(|nic| within(host, nic.pci)) && host.gpus.iter().all(|gpu| within(host, gpu.pci)), "{host:?}");
        }
    }

    #[test]
    fn static_files_tell_devices_by_class_alone() {
        let text = r#"<system version="1"><cpu numaid="0" affinity="f">
            <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
              <pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
              <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
              <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
            </pci></cpu></system>"#;
        let host = &read(text).0[0];
        let gpus: Vec<_> = host.gpus.iter().map(|gpu| (gpu.index, host.pci[gpu.pci.unwrap()].address.domain)).collect();
        assert_eq!(gpus, [(0, 1), (1, 2)]);
        assert_eq!(host.nics[0].name, "0101:00:00.0");
    }

    #[test]
    fn lies_of_virtual_machines_and_of_hands_are_remarked() {
        let text = r#"<system><cpu numaid="0">
            <pci busid="0:1.0" class="0x060400" vendor="0x104c" device="0x8232" link_speed="2.5 GT/s PCIe" link_width="1">
              <pci busid="1:0.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="0"><gpu dev="0" sm="90">
                <nvlink target="0000:01:00.0" count="12" tclass="0x030200"/></gpu></pci>
            </pci></cpu></system>"#;
        let host = &read(text).0[0];
        let lies: Vec<_> = host.notes.iter().filter(|note| note.kind == NoteKind::Lie).map(|note| note.about.as_str()).collect();
        assert_eq!(lies, ["0000:01:00.0", "0000:00:01.0", "0000:01:00.0"]);
        assert!(host.gpu_links.iter().all(|link| link.end == LinkEnd::Unknown));
    }
}
