//! Several tellings of one host made one: devices are the same by address, identifier, number or name.

use std::collections::{HashMap, HashSet};

use super::tree::Tree;
use crate::topology::PciAddress;
use crate::topology::hardware::{Device, Gpu, GpuLink, Hardware, LinkEnd, LinkLayer, Nic, NumaNode, PciDevice, Told};

/// One host from what several tools told of it, the first believed first.
pub fn merge(hosts: Vec<Hardware>) -> Hardware {
    let mut sources: Vec<String> = Vec::new();
    for host in &hosts {
        if !host.source.is_empty() && !sources.contains(&host.source) {
            sources.push(host.source.clone());
        }
    }
    Hardware { source: sources.join("; "), ..join(hosts) }
}

/// The same without a source.
pub(super) fn join(mut hosts: Vec<Hardware>) -> Hardware {
    if hosts.len() == 1 {
        return hosts.pop().unwrap_or_default();
    }
    let mut all = Merged::default();
    for host in hosts {
        all.add(host);
    }
    all.finish()
}

/// What was taken so far; `pci` of GPUs and ports counts in `tree`.
#[derive(Default)]
struct Merged {
    host: Hardware,
    tree: Tree,
    /// by address, identifier and number
    gpu_at: HashMap<String, usize>,
    nic_at: HashMap<String, usize>,
    told: HashSet<(Device, Device, String)>,
}

/// The first if it is told, else the second.
fn first<T>(known: &mut Option<T>, told: Option<T>) {
    if known.is_none() {
        *known = told;
    }
}

fn filled(known: &mut String, told: String) {
    if known.is_empty() {
        *known = told;
    }
}

impl Merged {
    fn add(&mut self, other: Hardware) {
        let Hardware {
            host,
            source: _,
            product,
            hypervisor,
            container,
            iommu,
            packages,
            caches,
            numa,
            pci,
            gpus,
            nics,
            gpu_links,
            told,
            notes,
        } = other;
        let own = &mut self.host;
        filled(&mut own.host, host);
        filled(&mut own.product, product);
        first(&mut own.hypervisor, hypervisor);
        first(&mut own.container, container);
        first(&mut own.iommu, iommu);
        if own.packages.is_empty() {
            own.packages = packages;
        }
        if own.caches.is_empty() {
            own.caches = caches;
        }
        self.nodes(numa);
        let mut places: Vec<usize> = Vec::with_capacity(pci.len());
        for device in pci {
            let parent = device.parent.and_then(|parent| places.get(parent).copied());
            places.push(self.tree.add(device, parent));
        }
        let at = |pci: Option<usize>| pci.and_then(|pci| places.get(pci).copied());
        let gpus: Vec<usize> = gpus
            .into_iter()
            .map(|gpu| {
                let pci = at(gpu.pci);
                self.gpu(Gpu { pci, ..gpu })
            })
            .collect();
        let nics: Vec<usize> = nics
            .into_iter()
            .map(|nic| {
                let pci = at(nic.pci);
                self.nic(Nic { pci, ..nic })
            })
            .collect();
        self.links(gpu_links, &gpus);
        let device = |device: Device| match device {
            Device::Gpu(gpu) => gpus.get(gpu).copied().map(Device::Gpu),
            Device::Nic(nic) => nics.get(nic).copied().map(Device::Nic),
            Device::Memory(node) => Some(Device::Memory(node)),
        };
        for told in told {
            let (Some(from), Some(to)) = (device(told.from), device(told.to)) else { continue };
            if self.told.insert((from, to, format!("{:?}", told.what))) {
                self.host.told.push(Told { from, to, ..told });
            }
        }
        for note in notes {
            if !self.host.notes.iter().take(256).any(|known| *known == note) {
                self.host.notes.push(note);
            }
        }
    }

    fn nodes(&mut self, numa: Vec<NumaNode>) {
        // Distances go by the order of nodes: those of the first telling that has all of them stay.
        if self.host.numa.is_empty() {
            self.host.numa = numa;
            return;
        }
        let at: HashMap<usize, usize> = self.host.numa.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        let same = numa.len() == self.host.numa.len() && numa.iter().zip(&self.host.numa).all(|(a, b)| a.id == b.id);
        for mut node in numa {
            if !same {
                node.distances = Vec::new();
            }
            let Some(known) = at.get(&node.id).and_then(|&at| self.host.numa.get_mut(at)) else {
                self.host.numa.push(node);
                continue;
            };
            if known.cpus.is_empty() {
                known.cpus = node.cpus;
            }
            if known.memory == 0 {
                known.memory = node.memory;
            }
            if known.distances.is_empty() {
                known.distances = node.distances;
            }
        }
        let nodes = self.host.numa.len();
        for node in &mut self.host.numa {
            if node.distances.len() != nodes {
                node.distances.clear();
            }
        }
    }

    fn address(&self, pci: Option<usize>) -> Option<PciAddress> {
        self.tree.devices().get(pci?).map(|device| device.address)
    }

    fn gpu(&mut self, gpu: Gpu) -> usize {
        let address = self.address(gpu.pci);
        let by_address = address.map(|address| format!("at {address}"));
        let by_uuid = gpu.uuid.as_ref().map(|uuid| format!("id {uuid}"));
        let by_number = format!("no {}", gpu.index);
        let strong = [&by_address, &by_uuid].into_iter().flatten().find_map(|key| self.gpu_at.get(key).copied());
        // By number only where nothing better contradicts.
        let weak = || {
            let at = *self.gpu_at.get(&by_number)?;
            let known = self.host.gpus.get(at)?;
            let differ = known.pci.is_some() && gpu.pci.is_some() || known.uuid.is_some() && gpu.uuid.is_some();
            (!differ).then_some(at)
        };
        let at = strong.or_else(weak).unwrap_or(self.host.gpus.len());
        for key in [by_address, by_uuid, Some(by_number)].into_iter().flatten() {
            self.gpu_at.entry(key).or_insert(at);
        }
        let Some(known) = self.host.gpus.get_mut(at) else {
            self.host.gpus.push(gpu);
            return at;
        };
        // A maker's name says more than an architecture's or a list's.
        if known.name.is_empty() || known.name.starts_with("sm_") && !gpu.name.is_empty() {
            known.name = gpu.name;
        }
        first(&mut known.uuid, gpu.uuid);
        first(&mut known.pci, gpu.pci);
        first(&mut known.numa, gpu.numa);
        first(&mut known.clock, gpu.clock);
        if known.cpus.is_empty() {
            known.cpus = gpu.cpus;
        }
        if known.memory == 0 {
            known.memory = gpu.memory;
        }
        if known.mig.is_empty() {
            known.mig = gpu.mig;
        }
        at
    }

    /// True for a port that a list of PCI devices named by its address.
    fn is_nameless(&self, nic: usize) -> bool {
        let nic = self.host.nics.get(nic);
        nic.is_some_and(|nic| self.address(nic.pci).is_some_and(|address| address.to_string() == nic.name))
    }

    fn nic(&mut self, nic: Nic) -> usize {
        let address = self.address(nic.pci);
        // Lists of PCI devices name ports by their address.
        let nameless = address.is_some_and(|address| address.to_string() == nic.name);
        let by_port = (!nameless && nic.port > 0).then(|| format!("{} {}", nic.name, nic.port));
        let by_name = (!nameless && nic.port <= 1).then(|| nic.name.clone());
        let by_address = address.map(|address| format!("at {address}"));
        let found = [&by_port, &by_name].into_iter().flatten().find_map(|key| self.nic_at.get(key).copied());
        let other = || by_address.as_ref().and_then(|key| self.nic_at.get(key).copied()).filter(|&at| nameless || self.is_nameless(at));
        let at = found.or_else(other).unwrap_or(self.host.nics.len());
        for key in [by_port, by_name, by_address].into_iter().flatten() {
            self.nic_at.entry(key).or_insert(at);
        }
        if at == self.host.nics.len() {
            self.host.nics.push(nic);
            return at;
        }
        let rename = self.is_nameless(at) && !nameless;
        let known = &mut self.host.nics[at];
        if rename {
            known.name = nic.name;
        }
        if known.port == 0 {
            known.port = nic.port;
        }
        if known.layer == LinkLayer::Other {
            known.layer = nic.layer;
        }
        filled(&mut known.state, nic.state);
        first(&mut known.interface, nic.interface);
        first(&mut known.pci, nic.pci);
        first(&mut known.numa, nic.numa);
        first(&mut known.rate, nic.rate);
        first(&mut known.driver, nic.driver);
        first(&mut known.guid, nic.guid);
        first(&mut known.gids, nic.gids);
        first(&mut known.gdr, nic.gdr);
        at
    }

    /// Links of the same GPU told twice: one telling knows where they lead, another their numbers, rates and states.
    fn links(&mut self, links: Vec<GpuLink>, gpus: &[usize]) {
        let mut told: HashMap<usize, Vec<GpuLink>> = HashMap::new();
        for mut link in links {
            let Some(&gpu) = gpus.get(link.gpu) else { continue };
            link.gpu = gpu;
            if let LinkEnd::Gpu(peer) = link.end {
                link.end = gpus.get(peer).map_or(LinkEnd::Unknown, |&peer| LinkEnd::Gpu(peer));
            }
            told.entry(gpu).or_default().push(link);
        }
        let known: Vec<GpuLink> = std::mem::take(&mut self.host.gpu_links);
        let mut before: HashMap<usize, Vec<GpuLink>> = HashMap::new();
        let mut order: Vec<usize> = Vec::new();
        for link in known {
            let own = before.entry(link.gpu).or_default();
            if own.is_empty() {
                order.push(link.gpu);
            }
            own.push(link);
        }
        let mut new: Vec<usize> = told.keys().copied().filter(|gpu| !before.contains_key(gpu)).collect();
        new.sort_unstable();
        order.extend(new);
        for gpu in order {
            let (known, other) = (before.remove(&gpu).unwrap_or_default(), told.remove(&gpu).unwrap_or_default());
            self.host.gpu_links.extend(one(known, other));
        }
    }

    fn finish(self) -> Hardware {
        let Self { mut host, tree, .. } = self;
        let place = tree.finish(&mut host);
        for at in host.gpus.iter_mut().map(|gpu| &mut gpu.pci).chain(host.nics.iter_mut().map(|nic| &mut nic.pci)) {
            *at = at.and_then(|at| place.get(at).copied());
        }
        for at in 0..host.gpus.len() {
            let told = host.gpus[at].pci.and_then(|pci| host.pci.get(pci)).and_then(|device| device.numa);
            first(&mut host.gpus[at].numa, told);
        }
        drop_nameless(&mut host);
        host
    }
}

/// A list of PCI devices may have told a port by its address before another tool, that knew its name alone, was found to mean it.
fn drop_nameless(host: &mut Hardware) {
    let nameless =
        |nic: &Nic, pci: &[PciDevice]| nic.pci.and_then(|at| pci.get(at)).is_some_and(|device| device.address.to_string() == nic.name);
    let named: HashSet<usize> = host.nics.iter().filter(|nic| !nameless(nic, &host.pci)).filter_map(|nic| nic.pci).collect();
    let mut place = Vec::with_capacity(host.nics.len());
    let mut kept = Vec::with_capacity(host.nics.len());
    for nic in std::mem::take(&mut host.nics) {
        let keep = !(nameless(&nic, &host.pci) && nic.pci.is_some_and(|at| named.contains(&at)));
        place.push(keep.then_some(kept.len()));
        kept.extend(keep.then_some(nic));
    }
    host.nics = kept;
    let moved = |device: Device| match device {
        Device::Nic(nic) => place.get(nic).copied().flatten().map(Device::Nic),
        other => Some(other),
    };
    host.told = std::mem::take(&mut host.told)
        .into_iter()
        .filter_map(|told| Some(Told { from: moved(told.from)?, to: moved(told.to)?, what: told.what }))
        .collect();
}

/// The links of one GPU from two tellings.
fn one(known: Vec<GpuLink>, other: Vec<GpuLink>) -> Vec<GpuLink> {
    if known.is_empty() || other.is_empty() || known[0].kind != other[0].kind {
        return known.into_iter().chain(other).collect();
    }
    let leads = |links: &[GpuLink]| links.iter().any(|link| link.end != LinkEnd::Unknown);
    let (ends, states) = match (leads(&known), leads(&other)) {
        (true, false) => (known, other),
        (false, true) => (other, known),
        // Both know: the first is believed.
        _ => return known,
    };
    let active: Vec<&GpuLink> = states.iter().filter(|link| link.active).collect();
    let rate = active.first().and_then(|link| link.rate).filter(|rate| active.iter().all(|link| link.rate == Some(*rate)));
    // Where all links lead to one end, each state has that end; what a cut list of states leaves out stays.
    if ends.iter().all(|link| link.end == ends[0].end) {
        let more = ends.iter().skip(active.len()).map(|link| GpuLink { rate: link.rate.or(rate), ..link.clone() });
        let known = states.iter().map(|state| GpuLink { end: if state.active { ends[0].end } else { LinkEnd::Unknown }, ..state.clone() });
        return known.chain(more).collect();
    }
    // Else it is not told which link leads where.
    let ends = ends.iter().map(|link| GpuLink { rate: link.rate.or(rate), ..link.clone() });
    ends.chain(states.iter().filter(|link| !link.active).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::hardware;

    fn told(text: &str) -> Hardware {
        hardware(text, "f").unwrap().hosts.remove(0)
    }

    const TABLE: &str = "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity\nGPU0 X NV2 PIX 0-3 0\nGPU1 NV2 X SYS 4-7 1\nNIC0 PIX SYS X\n\nNIC Legend:\n NIC0: mlx5_0\n";
    const LINKS: &str = "GPU 0: Tesla (UUID: GPU-a)\n Link 0: 25 GB/s\n Link 1: 25 GB/s\n Link 2: <inactive>\nGPU 1: Tesla (UUID: GPU-b)\n Link 0: 25 GB/s\n Link 1: 25 GB/s\n";
    const LIST: &str = "3b:00.0 3D controller [0302]: NVIDIA V [10de:1db1]\n5e:00.0 3D controller [0302]: NVIDIA V [10de:1db1]\n5f:00.0 Infiniband controller [0207]: Mellanox X [15b3:1017]\n";

    #[test]
    fn a_table_links_and_a_list_are_one_host() {
        let host = merge(vec![told(TABLE), told(LINKS), told(LIST), told("5f:00.0 mlx5_0 (MT) x port 1 (ACTIVE) ==> ib0 (Up)\n")]);
        assert_eq!((host.gpus.len(), host.nics.len(), host.pci.len(), host.told.len()), (2, 1, 3, 3));
        assert_eq!((host.gpus[0].name.as_str(), host.gpus[0].uuid.as_deref(), host.gpus[0].numa), ("Tesla", Some("GPU-a"), Some(0)));
        assert_eq!(host.pci[host.gpus[1].pci.unwrap()].address.bus, 0x5e);
        let nic = &host.nics[0];
        assert_eq!((nic.name.as_str(), nic.interface.as_deref(), nic.layer, nic.port), ("mlx5_0", Some("ib0"), LinkLayer::InfiniBand, 1));
        assert_eq!(host.pci[nic.pci.unwrap()].address.bus, 0x5f);
        let links: Vec<_> = host.gpu_links.iter().map(|link| (link.gpu, link.number, link.end, link.rate)).collect();
        let (a, b) = (LinkEnd::Gpu(0), LinkEnd::Gpu(1));
        let rate = Some(25e9);
        let expected = [
            (0, Some(0), b, rate),
            (0, Some(1), b, rate),
            (0, Some(2), LinkEnd::Unknown, None),
            (1, Some(0), a, rate),
            (1, Some(1), a, rate),
        ];
        assert_eq!(links, expected);
        assert!(host.source.contains("topo -m") && host.source.contains("lspci"), "{}", host.source);
    }

    #[test]
    fn ports_named_later_are_still_the_devices_of_the_list() {
        let host = merge(vec![told(LIST), told("5f:00.0 mlx5_0 (MT) x port 1 (ACTIVE) ==> ib0 (Up)\n"), told(TABLE)]);
        assert_eq!((host.nics.len(), host.nics[0].name.as_str(), host.told.len()), (1, "mlx5_0", 3));
    }

    #[test]
    fn gpus_with_other_addresses_are_others() {
        let host = merge(vec![told("3b:00.0 0302: 10de:1db1\n"), told("5e:00.0 0302: 10de:1db1\n")]);
        assert_eq!((host.gpus.len(), host.pci.len()), (2, 2));
    }

    #[test]
    fn links_to_several_peers_get_rates_where_all_are_equal() {
        let table = "GPU0 GPU1 GPU2\nGPU0 X NV1 NV2\nGPU1 NV1 X SYS\nGPU2 NV2 SYS X\n";
        let host = merge(vec![told(table), told("GPU 0: T\n Link 0: 25 GB/s\n Link 1: 25 GB/s\n Link 2: 25 GB/s\n Link 3: <inactive>\n")]);
        let first: Vec<_> = host.gpu_links.iter().filter(|link| link.gpu == 0).map(|link| (link.end, link.rate, link.active)).collect();
        let rate = Some(25e9);
        let peer = LinkEnd::Gpu;
        assert_eq!(first, [(peer(1), rate, true), (peer(2), rate, true), (peer(2), rate, true), (LinkEnd::Unknown, None, false)]);
    }
}
