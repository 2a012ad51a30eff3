//! How two measurements were taken, and on what, as far as it differs.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::ASSUMED;
use crate::diagnose::{Measured, Provenance};
use crate::sample::EngineKind;
use crate::topology::Placement;
use crate::topology::hardware::Hardware;
use crate::units::{format_gbps, format_ranks, format_size};

/// Of one kind so many are told one by one.
const LISTED: usize = 8;

/// Sentences, the most telling first.
pub(super) fn told(old: &Measured, new: &Measured, ranks: &[Option<usize>]) -> Vec<String> {
    let mut say = Vec::new();
    taking_part(old, new, ranks, &mut say);
    provenance(&old.provenance, &new.provenance, &mut say);
    if [old, new].iter().any(|measured| measured.provenance.engine == EngineKind::Imported) {
        say.push(format!(
            "other tools print one number of each pair, and nothing of its noise: {:.0} % is assumed for each",
            ASSUMED * 100.0
        ));
    }
    if old.sizes != new.sizes {
        let list = |sizes: &[u64]| sizes.iter().map(|&size| format_size(size)).collect::<Vec<_>>().join(", ");
        say.push(format!("sizes: {} before, {} now", list(&old.sizes), list(&new.sizes)));
    }
    seats(old, new, ranks, &mut say);
    hardware(old, new, &mut say);
    say
}

fn taking_part(old: &Measured, new: &Measured, ranks: &[Option<usize>], say: &mut Vec<String>) {
    let renumbered = ranks.iter().enumerate().any(|(rank, before)| before.is_some_and(|before| before != rank));
    if renumbered {
        say.push("ranks are numbered otherwise than before: they are told by host and place, with the numbers of now".to_owned());
    }
    let without: Vec<usize> = (0..ranks.len()).filter(|&rank| ranks[rank].is_none()).collect();
    let kept: BTreeSet<usize> = ranks.iter().flatten().copied().collect();
    let lost: Vec<usize> = (0..old.world()).filter(|rank| !kept.contains(rank)).collect();
    for (own, measured, when) in [(lost, old, "before"), (without, new, "now")] {
        if !own.is_empty() {
            let hosts: BTreeSet<&str> = own.iter().map(|&rank| measured.topology.ranks[rank].host.as_str()).collect();
            let hosts = hosts.into_iter().take(LISTED).collect::<Vec<_>>().join(", ");
            say.push(format!("only {when}: rank {} on {hosts}", format_ranks(&own)));
        }
    }
    for (measured, when) in [(old, "before"), (new, "now")] {
        let lost: Vec<usize> = measured.lost.iter().map(|(rank, _)| *rank).collect();
        if !lost.is_empty() {
            say.push(format!("lost {when}: rank {}", format_ranks(&lost)));
        }
    }
}

fn provenance(old: &Provenance, new: &Provenance, say: &mut Vec<String>) {
    let mut plain = |what: &str, before: String, after: String| {
        if before != after {
            say.push(format!("{what}: {before} before, {after} now"));
        }
    };
    plain("engine", old.engine.name().to_owned(), new.engine.name().to_owned());
    plain("mover", old.mover.name().to_owned(), new.mover.name().to_owned());
    plain("memory", old.memory.name().to_owned(), new.memory.name().to_owned());
    plain("messages outstanding", old.window.to_string(), new.window.to_string());
    let group =
        |group: &[usize]| if group.is_empty() { "all ranks of the job".to_owned() } else { format!("rank {}", format_ranks(group)) };
    plain("group", group(&old.group), group(&new.group));
    for (before, after) in [(&old.software, &new.software), (&old.environment, &new.environment)] {
        let (before, after) = (named(before), named(after));
        for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
            let value = |map: &BTreeMap<&str, &str>| map.get(name).map_or_else(|| "not set".to_owned(), |&value| value.to_owned());
            plain(name, value(&before), value(&after));
        }
    }
}

fn named(list: &[(String, String)]) -> BTreeMap<&str, &str> {
    list.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// What a rank is bound to, by number.
type Seat = fn(&Placement) -> Option<usize>;

/// Where ranks are bound, and to what.
fn seats(old: &Measured, new: &Measured, ranks: &[Option<usize>], say: &mut Vec<String>) {
    let number = |number: Option<usize>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let kinds: [(&str, Seat); 2] = [("NUMA node", |own| own.numa), ("GPU", |own| own.gpu)];
    for (what, of) in kinds {
        let mut moved: BTreeMap<(Option<usize>, Option<usize>), Vec<usize>> = BTreeMap::new();
        for (rank, before) in ranks.iter().enumerate() {
            let Some(before) = before else { continue };
            let (before, after) = (of(&old.topology.ranks[*before]), of(&new.topology.ranks[rank]));
            if before != after {
                moved.entry((before, after)).or_default().push(rank);
            }
        }
        for ((before, after), own) in moved.into_iter().take(LISTED) {
            say.push(format!("rank {}: {what} {} before, {} now", format_ranks(&own), number(before), number(after)));
        }
    }
}

/// What hosts say of themselves, by what it is of.
fn hardware(old: &Measured, new: &Measured, say: &mut Vec<String>) {
    let mut differ: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    let hosts: BTreeSet<&str> = new.topology.hosts().into_iter().collect();
    for host in hosts {
        match (old.topology.hardware_of(host), new.topology.hardware_of(host)) {
            (Some(before), Some(after)) => {
                let (before, after) = (facts(before), facts(after));
                for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                    let value = |map: &BTreeMap<String, String>| map.get(name).cloned().unwrap_or_else(|| "not told".to_owned());
                    let (before, after) = (value(&before), value(&after));
                    if before != after {
                        differ.entry((name.clone(), before, after)).or_default().push(host.to_owned());
                    }
                }
            }
            (None, Some(_)) if old.topology.ranks.iter().any(|own| own.host == host) => {
                differ.entry(("hardware".to_owned(), "not told".to_owned(), "told".to_owned())).or_default().push(host.to_owned());
            }
            (Some(_), None) => {
                differ.entry(("hardware".to_owned(), "told".to_owned(), "not told".to_owned())).or_default().push(host.to_owned());
            }
            _ => {}
        }
    }
    let more = differ.len().saturating_sub(LISTED * 2);
    for ((name, before, after), hosts) in differ.into_iter().take(LISTED * 2) {
        let hosts = if hosts.len() > LISTED { format!("{} hosts", hosts.len()) } else { hosts.join(", ") };
        say.push(format!("{hosts}: {name} {before} before, {after} now"));
    }
    if more > 0 {
        say.push(format!("{more} more differences of hardware"));
    }
}

/// What of a host can change what its links give, by name. Speeds of PCIe links are left out: they rest when idle.
fn facts(hardware: &Hardware) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut tell = |name: String, value: String| {
        if !value.is_empty() {
            facts.insert(name, value);
        }
    };
    tell("machine".to_owned(), hardware.product.clone());
    tell("IOMMU".to_owned(), hardware.iommu.clone().unwrap_or_default());
    tell("hypervisor".to_owned(), hardware.hypervisor.clone().unwrap_or_default());
    for device in hardware.pci.iter().filter(|device| device.is_end() || device.kind.is_bridge()) {
        if let Some(lanes) = device.link.as_ref().and_then(|link| link.now).filter(|lanes| lanes.width > 0) {
            tell(format!("lanes of {}", device.address), lanes.width.to_string());
        }
        if let Some(acs) = &device.acs {
            tell(format!("ACS redirection at {}", device.address), if acs.redirects() { "on" } else { "off" }.to_owned());
        }
    }
    for (at, gpu) in hardware.gpus.iter().enumerate() {
        tell(format!("GPU {}", gpu.index), gpu.name.clone());
        tell(format!("GPU {} throttled", gpu.index), if gpu.throttled.is_empty() { "no".to_owned() } else { gpu.throttled.join(", ") });
        let links = hardware.gpu_links.iter().filter(|link| link.gpu == at);
        let up = links.clone().filter(|link| link.active).count();
        if links.count() > 0 {
            tell(format!("links of GPU {} that are up", gpu.index), up.to_string());
        }
    }
    for nic in &hardware.nics {
        let name = if nic.port > 1 { format!("{} port {}", nic.name, nic.port) } else { nic.name.clone() };
        tell(format!("{name} state"), nic.state.clone());
        tell(format!("{name} rate"), nic.rate.map(|rate| format!("{} GB/s", format_gbps(rate))).unwrap_or_default());
    }
    facts
}
