//! What this very machine says of the ends and the way of a transfer.

use super::case::Case;
use crate::diagnose::hardware::links::{Link, links_of};
use crate::diagnose::hardware::models::without_peers;
use crate::diagnose::hardware::redirect::redirecting;
use crate::diagnose::{Cause, Measured};
use crate::fit::median;
use crate::topology::hardware::{Device, Gpu, Hardware, Nic};
use crate::topology::{Doubt, HopKind, PathClass};

/// How near a share must be to a step to be one.
const NEAR: f64 = 0.07;

/// What a share of exactly 1/2, 1/4 or 1/8 may come from.
pub fn step(share: f64) -> Option<(u32, &'static str)> {
    [(2, "exactly 1/2"), (4, "exactly 1/4"), (8, "exactly 1/8")].into_iter().find(|(of, _)| (share * f64::from(*of) - 1.0).abs() < NEAR)
}

/// The host of a rank and its device there.
pub fn seat(measured: &Measured, rank: usize) -> Option<(&Hardware, Device)> {
    let (host, device) = measured.router.end(rank)?;
    Some((measured.topology.hardware.get(host)?, device))
}

/// The GPU whose memory a rank moves.
pub fn gpu(measured: &Measured, rank: usize) -> Option<&Gpu> {
    match seat(measured, rank)? {
        (hardware, Device::Gpu(gpu)) => hardware.gpus.get(gpu),
        _ => None,
    }
}

/// The port that a rank should use.
pub fn port(measured: &Measured, rank: usize) -> Option<&Nic> {
    let (host, _) = measured.router.end(rank)?;
    measured.topology.hardware.get(host)?.nics.get(measured.router.port(rank)?)
}

/// The hardware of a host.
pub fn host<'a>(measured: &'a Measured, name: &str) -> Option<&'a Hardware> {
    measured.topology.hardware.iter().find(|hardware| hardware.host == name)
}

/// A variable's value.
pub fn variable<'a>(measured: &'a Measured, name: &str) -> Option<&'a str> {
    measured.provenance.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// True if the pair is of one host.
pub fn inside(measured: &Measured, from: usize, to: usize) -> bool {
    measured.topology.path(from, to) != PathClass::InterNode
}

/// How long small messages of some pairs take, over what is usual in their classes; NaN where nothing tells.
pub fn latency(measured: &Measured, pairs: &[(usize, usize)]) -> f64 {
    let ratio = |&(from, to): &(usize, usize)| measured.peer.get(from, to).map(|pair| pair.small / measured.class(pair).usual_small);
    median(&mut pairs.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
}

/// The links of PCIe that transfers of these pairs go over.
fn links_on(measured: &Measured, pairs: &[(usize, usize)]) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for &(from, to) in pairs {
        let route = measured.router.route(&measured.topology, from, to);
        for link in links_of(measured, &[from, to]) {
            let (name, host) = (link.hop(measured), &link.hardware(measured).host);
            // The hop down is named the other way round.
            let (low, high) = name.split_once(" → ").unwrap_or((name.as_str(), ""));
            let down = format!("{high} → {low}");
            let on = route.hops.iter().any(|hop| hop.kind == HopKind::Pcie && hop.host == *host && (hop.name == name || hop.name == down));
            if on && !found.iter().any(|known| (known.host, known.at) == (link.host, link.at)) {
                found.push(link);
            }
        }
    }
    found
}

impl Case<'_> {
    /// Links on the way of these pairs: trained down, in a narrow slot, or as they should be. `of`: ranks whose side is suspected;
    /// empty for both ends.
    pub fn links(&mut self, pairs: &[(usize, usize)], of: &[usize], share: f64) {
        let measured = self.measured();
        let suspected = |link: &&Link| of.is_empty() || link.ranks.iter().any(|rank| of.contains(rank));
        let all = links_on(measured, pairs);
        let mut fine: Option<String> = None;
        let stepped = step(share);
        for link in all.iter().filter(suspected) {
            let (name, words) = (link.device(measured), link.reading.words());
            let fits = |left: f64| if (left / share - 1.0).abs() < 0.2 { 0.5 } else { 0.0 };
            let speed = link.reading.now.zip(link.reading.most).map(|(now, most)| now.rate() / most.rate());
            if let Some(left) = link.narrowed() {
                self.add(Cause::TrainedDown, 3.2 + fits(left), format!("the link of {name} is {words}"), "");
            } else if let Some(left) = link.slot_share() {
                let slot = link.reading.most.map(|lanes| lanes.to_string()).unwrap_or_default();
                let card = link.card.map(|lanes| lanes.to_string()).unwrap_or_default();
                self.add(Cause::NarrowSlot, 2.6 + fits(left), format!("the slot of {name} has {slot}, its card could use {card}"), "");
            } else if let Some(left) = speed.filter(|_| link.reading.doubt == Some(Doubt::Resting)) {
                let against = if fits(left) > 0.0 { "" } else { "it may have been at rest when it was read" };
                self.add(Cause::TrainedDown, 1.6, format!("the link of {name} says {words}"), against);
            } else if link.reading.doubt.is_none() && link.reading.now.is_some() {
                fine.get_or_insert_with(|| format!("the link of {name} is {words}, as it should be"));
            }
        }
        let (because, weight) = stepped.map_or_else(
            || ("a narrow link slows all that goes over it".to_owned(), 0.6),
            |(of, exactly)| {
                let lanes = 16 / of;
                (
                    format!(
                        "{exactly} of the usual rate: x{lanes} of x16, or {} lower",
                        if of == 2 { "one generation" } else { "some generations" }
                    ),
                    1.7,
                )
            },
        );
        let silent = all.is_empty() && stepped.is_some();
        self.add(Cause::TrainedDown, weight, because, fine.unwrap_or_default());
        if silent {
            self.add(Cause::NarrowSlot, weight - 0.3, "a slot with fewer lanes looks the same", "");
        }
    }

    /// What control bits and the IOMMU say of transfers between devices of these ranks.
    pub fn redirect(&mut self, ranks: &[usize], weight: f64, seen: &str) {
        let measured = self.measured();
        let mut told = false;
        for &rank in ranks.iter().take(64) {
            let Some((hardware, Device::Gpu(_))) = seat(measured, rank) else { continue };
            let ports = redirecting(hardware);
            let iommu = hardware.iommu.as_deref();
            if let Some(&first) = ports.first() {
                let because = format!(
                    "{seen}; {} switch ports of {} redirect (such as {}), IOMMU {}",
                    ports.len(),
                    hardware.host,
                    hardware.pci[first].address,
                    iommu.unwrap_or("not told")
                );
                self.add(Cause::AcsRedirect, weight.max(1.5) + 1.5, because, "");
                return;
            }
            told |= hardware.pci.iter().any(|device| device.acs.is_some());
        }
        let translated = ranks
            .iter()
            .take(64)
            .filter_map(|&rank| seat(measured, rank))
            .any(|(hardware, _)| hardware.iommu.as_deref() == Some("translated"));
        let gpus = ranks.iter().any(|&rank| gpu(measured, rank).is_some());
        if told {
            self.add(Cause::AcsRedirect, weight, seen, "no switch port there redirects");
        } else if !gpus {
            self.add(Cause::AcsRedirect, weight, seen, "host memory was moved, which no switch redirects");
        } else if translated {
            self.add(Cause::AcsRedirect, weight + 0.7, format!("{seen}; the IOMMU translates, and control bits could not be read"), "");
        } else {
            self.add(Cause::AcsRedirect, weight, format!("{seen}; control bits could not be read"), "");
        }
    }

    /// Cards between which nothing moves directly.
    pub fn peers(&mut self, ranks: &[usize], weight: f64) {
        let measured = self.measured();
        let names: Vec<&str> = ranks.iter().filter_map(|&rank| gpu(measured, rank)).map(|gpu| gpu.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| without_peers(name)) {
            self.add(Cause::NoPeerAccess, weight + 1.5, format!("{name}: its driver lets cards move nothing to each other directly"), "");
        } else if let Some(value) = variable(measured, "NCCL_P2P_DISABLE").filter(|value| *value != "0") {
            self.add(Cause::NoPeerAccess, weight + 1.5, format!("NCCL_P2P_DISABLE={value}"), "");
        } else if let Some(name) = names.first().filter(|name| !name.is_empty()) {
            self.add(Cause::NoPeerAccess, weight, "bytes go by way of host memory", format!("{name} can reach its peers"));
        } else {
            self.add(Cause::NoPeerAccess, weight, "bytes may go by way of host memory", "");
        }
    }

    /// GPUDirect RDMA of the hosts of some ranks.
    pub fn direct(&mut self, ranks: &[usize], weight: f64, seen: &str) {
        let measured = self.measured();
        let nics: Vec<&Nic> = ranks.iter().filter_map(|&rank| port(measured, rank)).collect();
        let gpus = ranks.iter().any(|&rank| gpu(measured, rank).is_some());
        if let Some(nic) = nics.iter().find(|nic| nic.gdr == Some(false)) {
            self.add(Cause::DirectRdmaMissing, weight + 1.5, format!("{seen}; {} says that it has no GPUDirect RDMA", nic.name), "");
        } else if !nics.is_empty() && nics.iter().all(|nic| nic.gdr == Some(true)) {
            self.add(Cause::DirectRdmaMissing, weight, seen, "its ports say that they have GPUDirect RDMA");
        } else if !gpus && measured.router.knows() {
            self.add(Cause::DirectRdmaMissing, weight, seen, "host memory was moved");
        } else {
            self.add(Cause::DirectRdmaMissing, weight, seen, "");
        }
    }

    /// The ports of some ranks against those of others: slower ones, and those that several share.
    pub fn ports(&mut self, ranks: &[usize], share: f64) {
        let measured = self.measured();
        let rate = |rank: usize| port(measured, rank).and_then(|nic| nic.rate);
        let mut others: Vec<f64> = (0..measured.world()).filter(|rank| !ranks.contains(rank)).filter_map(rate).collect();
        let usual = median(&mut others);
        for &rank in ranks.iter().take(64) {
            let Some(nic) = port(measured, rank) else { continue };
            if let Some(own) = nic.rate.filter(|own| *own < 0.8 * usual) {
                let because = format!("{} has {:.0} Gbit/s, those of others {:.0}", nic.name, own * 8e-9, usual * 8e-9);
                self.add(Cause::WrongPort, 3.0, because, "");
            } else if !nic.up() {
                self.add(Cause::PortDown, 3.5, format!("{} is {}", nic.name, nic.state), "");
            }
        }
        // So many ranks of its host on one port.
        let Some((&first, k)) = ranks.first().zip(ranks.first().map(|&rank| crowd(measured, rank))) else { return };
        if let Some((of, exactly)) = step(share) {
            let because = format!("{exactly} of the usual rate: {of} may share one port");
            let against = if k <= 1 && port(measured, first).is_some() { "by the PCI tree each has a port of its own" } else { "" };
            self.add(Cause::SharedPort, 1.6, because, against);
        }
    }

    /// Ranks bound away from their devices.
    pub fn seats(&mut self, ranks: &[usize], weight: f64) {
        let measured = self.measured();
        let away = ranks.iter().find_map(|&rank| Some((rank, crate::diagnose::hardware::seats::misbound(measured, rank)?)));
        if let Some((rank, (device, cores))) = away {
            let node = |node: Option<usize>| node.map_or_else(|| "another node".to_owned(), |node| format!("NUMA {node}"));
            self.add(
                Cause::WrongNuma,
                weight + 1.5,
                format!("rank {rank} has its device at {}, its cores at {}", node(device), node(cores)),
                "",
            );
        } else if ranks.iter().all(|&rank| gpu(measured, rank).is_some()) {
            self.add(Cause::WrongNuma, weight, "cores far from the device cost rate and latency", "cores and devices are of one NUMA node");
        } else {
            self.add(Cause::WrongNuma, weight, "memory of another NUMA node costs rate and latency", "");
        }
    }

    /// Clocks that are held down.
    pub fn clocks(&mut self, ranks: &[usize], weight: f64) {
        let measured = self.measured();
        for &rank in ranks.iter().take(64) {
            let Some(gpu) = gpu(measured, rank) else { continue };
            if !gpu.throttled.is_empty() {
                self.add(
                    Cause::Throttled,
                    weight + 1.5,
                    format!("GPU {} holds its clocks down: {}", gpu.index, gpu.throttled.join(", ")),
                    "",
                );
                return;
            }
        }
        self.add(Cause::Throttled, weight, "heat or power may hold clocks down", "");
    }
}

/// Ranks of a rank's host that should use the same port.
fn crowd(measured: &Measured, rank: usize) -> usize {
    let (Some((host, _)), port) = (measured.router.end(rank), measured.router.port(rank)) else { return 0 };
    let same = |other: &usize| measured.router.port(*other) == port && measured.router.end(*other).is_some_and(|end| end.0 == host);
    (0..measured.world()).filter(same).count()
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn steps_are_exact() {
        assert_eq!(step(0.505).map(|step| step.0), Some(2));
        assert_eq!(step(0.245).map(|step| step.0), Some(4));
        assert_eq!(step(0.124).map(|step| step.0), Some(8));
        for share in [1.0, 0.9, 0.6, 0.4, 0.333, 0.2, 0.05, f64::NAN] {
            assert_eq!(step(share), None, "{share}");
        }
    }
}
