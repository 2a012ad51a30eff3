//! The PCIe links that ranks' transfers pass: who is behind each, and which pairs go over it.

use std::collections::{BTreeMap, HashMap};

use crate::diagnose::Measured;
use crate::topology::hardware::{Device, Hardware};
use crate::topology::{HopKind, Lanes, Reading, name, reading};

/// A link, and the ranks whose device or port is below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// index in [`crate::topology::Topology::hardware`]
    pub host: usize,
    /// the device below it, an index in [`Hardware::pci`]
    pub at: usize,
    pub reading: Reading,
    /// what the device below could do in another slot; `None` if it is not told
    pub card: Option<Lanes>,
    /// ascending
    pub ranks: Vec<usize>,
}

impl Link {
    fn of(measured: &Measured, host: usize, at: usize, ranks: Vec<usize>) -> Option<Self> {
        let hardware = measured.topology.hardware.get(host)?;
        let card = hardware.pci.get(at)?.link.and_then(|link| link.most).filter(|lanes| lanes.width > 0 && lanes.speed > 0.0);
        Some(Self { host, at, reading: reading(hardware, at)?, card, ranks })
    }

    pub fn hardware<'a>(&self, measured: &'a Measured) -> &'a Hardware {
        &measured.topology.hardware[self.host]
    }

    /// What a person calls the device below it: `GPU 3`.
    pub fn device(&self, measured: &Measured) -> String {
        name(self.hardware(measured), self.at)
    }

    /// The hop up, as routes name it: `GPU 3 → switch 0000:17:00.0`.
    pub fn hop(&self, measured: &Measured) -> String {
        let [up, _] = hops(self.hardware(measured), self.at);
        up
    }

    /// What there is of it now over what both ends could use, where it has fewer lanes.
    pub fn narrowed(&self) -> Option<f64> {
        let (now, most) = (self.reading.now?, self.reading.most?);
        self.reading.narrow().then(|| f64::from(now.width) / f64::from(most.width))
    }

    /// What the slot gives over what the device below could use, where that is much less: half or less.
    pub fn slot_share(&self) -> Option<f64> {
        let share = self.reading.most?.rate() / self.card?.rate();
        (share < 0.6).then_some(share)
    }

    /// Pairs of ranks that go over it, both directions.
    pub fn pairs(&self, measured: &Measured) -> Vec<(usize, usize)> {
        let hardware = self.hardware(measured);
        let names = hops(hardware, self.at);
        let over = |from: usize, to: usize| {
            let route = measured.router.route(&measured.topology, from, to);
            route.hops.iter().any(|hop| hop.kind == HopKind::Pcie && hop.host == hardware.host && names.contains(&hop.name))
        };
        let world = measured.world();
        let mut pairs = Vec::new();
        for &rank in &self.ranks {
            // One way to each device of the same host, one way out.
            let mut known: HashMap<Option<Device>, bool> = HashMap::new();
            for other in (0..world).filter(|&other| other != rank) {
                let key = measured.router.end(other).filter(|&(host, _)| host == self.host).map(|(_, device)| device);
                if *known.entry(key).or_insert_with(|| over(rank, other)) {
                    pairs.extend([(rank, other), (other, rank)]);
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// Both directions of the link above a device, as hops are named.
fn hops(hardware: &Hardware, at: usize) -> [String; 2] {
    let low = name(hardware, at);
    let above = hardware.pci.get(at).and_then(|device| device.parent);
    let high = above.map_or_else(|| "processor".to_owned(), |above| name(hardware, above));
    [format!("{low} → {high}"), format!("{high} → {low}")]
}

/// What a rank's transfers pass at its side: the devices above its GPU, and above the port that it should use.
fn chain(measured: &Measured, rank: usize, hardware: &Hardware, device: Device) -> Vec<usize> {
    let gpu = match device {
        Device::Gpu(gpu) => hardware.gpus.get(gpu).and_then(|gpu| gpu.pci),
        _ => None,
    };
    let port = measured.router.port(rank).and_then(|nic| hardware.nics.get(nic)?.pci);
    let mut chain: Vec<usize> = [gpu, port].into_iter().flatten().flat_map(|pci| hardware.above(pci).collect::<Vec<_>>()).collect();
    chain.sort_unstable();
    chain.dedup();
    chain
}

/// All links that some rank is behind, by host, then from the processor down.
pub fn links(measured: &Measured) -> Vec<Link> {
    let mut behind: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut chains: HashMap<(usize, Device), Vec<usize>> = HashMap::new();
    for rank in 0..measured.world() {
        let Some((host, device)) = measured.router.end(rank) else { continue };
        let Some(hardware) = measured.topology.hardware.get(host) else { continue };
        for &at in chains.entry((host, device)).or_insert_with(|| chain(measured, rank, hardware, device)).iter() {
            behind.entry((host, at)).or_default().push(rank);
        }
    }
    behind.into_iter().filter_map(|((host, at), ranks)| Link::of(measured, host, at, ranks)).collect()
}

/// The links of some ranks.
pub fn links_of(measured: &Measured, ranks: &[usize]) -> Vec<Link> {
    let mut behind: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for &rank in ranks {
        let Some((host, device)) = measured.router.end(rank) else { continue };
        let Some(hardware) = measured.topology.hardware.get(host) else { continue };
        for at in chain(measured, rank, hardware, device) {
            behind.entry((host, at)).or_default().push(rank);
        }
    }
    behind.into_iter().filter_map(|((host, at), ranks)| Link::of(measured, host, at, ranks)).collect()
}
