//! Ports of hosts: unequal ones, those that are down, and those that several GPUs use while another idles.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Cells, claim_ranks, finding, percent, said};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, Silenced, View};
use crate::topology::hardware::{Device, Hardware, LinkLayer, Nic};
use crate::topology::nearest_port;
use crate::units::format_ranks;

pub const UNEQUAL: Rule =
    Rule { name: "unequal-ports", summary: "hosts have other ports than most, by rate, slot and kind of link", check: unequal };
pub const SHARED: Rule = Rule { name: "shared-port", summary: "several GPUs use one port while another one idles", check: shared };
pub const BAD: Rule = Rule { name: "bad-port", summary: "a port is down that is up on other hosts", check: bad };

/// Variables that name ports to use.
const NAMING: [&str; 4] = ["NCCL_IB_HCA", "UCX_NET_DEVICES", "NVSHMEM_HCA_LIST", "OMPI_MCA_btl_openib_if_include"];

/// Ranks of a host.
fn ranks_on(measured: &Measured, host: &str) -> Vec<usize> {
    let ranks = measured.topology.ranks.iter();
    ranks.filter(|placement| placement.host == host).map(|placement| placement.rank).collect()
}

/// Pairs of these ranks with ranks of other hosts, both ways.
pub fn across(measured: &Measured, ranks: &[usize]) -> Vec<(usize, usize)> {
    let node_of = measured.topology.node_of();
    let others = |rank: usize| (0..node_of.len()).filter(|&other| node_of[other] != node_of[rank]).collect::<Vec<_>>();
    let both = ranks.iter().flat_map(|&rank| others(rank).into_iter().flat_map(move |other| [(rank, other), (other, rank)]));
    let mut pairs: Vec<(usize, usize)> = both.collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Ports of real devices that are not much slower than the fastest of the job: what carries it.
fn main_ports(hardware: &Hardware, fastest: f64) -> impl Iterator<Item = &Nic> {
    hardware.nics.iter().filter(move |nic| nic.pci.is_some() && (!nic.up() || nic.rate.is_some_and(|rate| rate * 2.0 >= fastest)))
}

fn fastest(measured: &Measured) -> f64 {
    let nics = measured.topology.hardware.iter().flat_map(|hardware| &hardware.nics);
    nics.filter(|nic| nic.up() && nic.pci.is_some()).filter_map(|nic| nic.rate).fold(0.0, f64::max)
}

/// What is compared of a host's ports: kinds and rates in Gbit/s, sorted; never names.
type Kit = Vec<(LinkLayer, u64)>;

fn kit(hardware: &Hardware, fastest: f64) -> Kit {
    let mut kit: Kit = main_ports(hardware, fastest).map(|nic| (nic.layer, (nic.rate.unwrap_or(0.0) * 8e-9).round() as u64)).collect();
    kit.sort_unstable();
    kit
}

fn kit_words(kit: &Kit) -> String {
    let mut counts: BTreeMap<(LinkLayer, u64), usize> = BTreeMap::new();
    for &port in kit {
        *counts.entry(port).or_default() += 1;
    }
    let words = |((layer, gbit), count): (&(LinkLayer, u64), &usize)| {
        let layer = match layer {
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Other => "other",
        };
        format!("{count} × {gbit} Gbit/s {layer}")
    };
    if counts.is_empty() { "none".to_owned() } else { counts.iter().map(words).collect::<Vec<_>>().join(", ") }
}

fn unequal(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let fastest = fastest(measured);
    // Those with a port that is down are told as such.
    let hosts: Vec<&Hardware> = measured.topology.hardware.iter().filter(|hardware| main_ports(hardware, fastest).all(Nic::up)).collect();
    let mut kits: BTreeMap<Kit, Vec<&Hardware>> = BTreeMap::new();
    for &hardware in &hosts {
        kits.entry(kit(hardware, fastest)).or_default().push(hardware);
    }
    let Some((usual, like)) = kits.iter().max_by_key(|(kit, hosts)| (hosts.len(), kit.iter().map(|port| port.1).sum::<u64>())) else {
        return Vec::new();
    };
    if kits.len() == 1 {
        return names(view, &hosts, fastest);
    }
    let others: Vec<(&Kit, &Hardware)> =
        kits.iter().filter(|(kit, _)| *kit != usual).flat_map(|(kit, hosts)| hosts.iter().map(move |&host| (kit, host))).collect();
    let names: Vec<String> = others.iter().map(|(_, hardware)| hardware.host.clone()).collect();
    let (kit, first) = others[0];
    let say = format!(
        "{} has {}, {} {}",
        first.host,
        kit_words(kit),
        if like.len() == 1 { like[0].host.as_str() } else { "most have" },
        kit_words(usual)
    );
    let ranks: Vec<usize> = names.iter().flat_map(|host| ranks_on(measured, host)).collect();
    let cells = Cells::of(measured, across(measured, &ranks));
    let confirmed = cells.as_ref().filter(|cells| cells.of_others < super::evidence::SLOWER);
    let mut facts: Vec<_> = others.iter().take(8).map(|(kit, hardware)| said(format!("{}: {}", hardware.host, kit_words(kit)))).collect();
    facts.extend(cells.as_ref().map(|cells| cells.fact("with them")));
    if let Some(cells) = confirmed {
        for host in &names {
            claim_ranks(view, &ranks_on(measured, host), cells.of_others);
        }
    }
    let title = format!("ports differ: {say}");
    vec![Finding {
        amount: confirmed.map_or_else(|| format!("{} of {}", names.len(), hosts.len()), |cells| percent(cells.of_others)),
        weight: confirmed.map_or(0.0, Cells::weight),
        facts,
        cells: confirmed.map(Cells::cells).unwrap_or_default(),
        ..finding(
            UNEQUAL.name,
            format!("unequal-ports {}", first.host),
            Severity::Warning,
            title,
            Shape::UnequalPorts { hosts: names, say },
        )
    }]
}

/// Ports that are alike by rate and kind, but not called alike: a list of names means another set on each host.
fn names(view: &View<'_>, hosts: &[&Hardware], fastest: f64) -> Vec<Finding> {
    let measured = view.measured;
    let called = |hardware: &Hardware| main_ports(hardware, fastest).map(|nic| nic.name.clone()).collect::<BTreeSet<String>>();
    let Some(first) = hosts.first() else { return Vec::new() };
    let usual = called(first);
    let Some(other) = hosts.iter().find(|hardware| called(hardware) != usual) else { return Vec::new() };
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    let say = format!("like ports have other names: {} on {}, {} on {}", list(&usual), first.host, list(&called(other)), other.host);
    let common: BTreeSet<String> = hosts.iter().map(|hardware| called(hardware)).reduce(|a, b| &a & &b).unwrap_or_default();
    // A variable that names one which is not everywhere.
    let named = measured.provenance.environment.iter().filter(|(name, _)| NAMING.contains(&name.as_str()));
    let named = named.filter(|(_, value)| listed(value).iter().any(|port| usual.contains(*port) && !common.contains(*port))).count();
    let severity = if named > 0 { Severity::Warning } else { Severity::Note };
    let unlike: Vec<String> = [first, other].iter().map(|hardware| hardware.host.clone()).collect();
    let facts = vec![said("name ports by slot or GUID, not as mlx5_0, mlx5_1")];
    let shape = Shape::UnequalPorts { hosts: unlike, say: say.clone() };
    vec![Finding { facts, ..finding(UNEQUAL.name, format!("port-names {}", other.host), severity, say, shape) }]
}

/// Ports that a variable such as `NCCL_IB_HCA==mlx5_0:1,mlx5_3` names; none for a list of those to leave out.
fn listed(value: &str) -> Vec<&str> {
    if value.starts_with('^') {
        return Vec::new();
    }
    let parts = value.trim_start_matches('=').split(',');
    parts.map(|part| part.split(':').next().unwrap_or_default().trim()).filter(|part| !part.is_empty() && *part != "all").collect()
}

/// Which port each GPU of a host uses, and which are left.
struct Election {
    /// port -> GPUs
    chosen: BTreeMap<usize, Vec<usize>>,
    idle: Vec<usize>,
}

fn election(hardware: &Hardware, fastest: f64) -> Election {
    let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for gpu in 0..hardware.gpus.len() {
        if let Some(port) = nearest_port(hardware, Device::Gpu(gpu)) {
            chosen.entry(port).or_default().push(gpu);
        }
    }
    let usable = |nic: &Nic| nic.pci.is_some() && nic.up() && nic.rate.is_some_and(|rate| rate * 2.0 >= fastest);
    let idle = (0..hardware.nics.len()).filter(|nic| usable(&hardware.nics[*nic]) && !chosen.contains_key(nic)).collect();
    Election { chosen, idle }
}

fn shared(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    // Nothing goes out of a lone host.
    if measured.topology.hosts().len() < 2 {
        return Vec::new();
    }
    let fastest = fastest(measured);
    let elections: Vec<Election> = measured.topology.hardware.iter().map(|hardware| election(hardware, fastest)).collect();
    let mut findings: Vec<Finding> = Vec::new();
    // Told once, of the first host.
    let mut by_design: Option<Silenced> = None;
    for (host, hardware) in measured.topology.hardware.iter().enumerate() {
        let own = &elections[host];
        let ranks = |gpus: &[usize]| -> Vec<usize> {
            let of = |rank: &usize| matches!(measured.router.end(*rank), Some((at, Device::Gpu(gpu))) if at == host && gpus.contains(&gpu));
            ranks_on(measured, &hardware.host).into_iter().filter(of).collect()
        };
        let crowded =
            own.chosen.iter().map(|(&port, gpus)| (port, gpus, ranks(gpus))).filter(|(_, gpus, ranks)| gpus.len() > 1 && ranks.len() > 1);
        let Some((port, gpus, sharing)) = crowded.max_by_key(|(_, gpus, _)| gpus.len()).filter(|_| !own.idle.is_empty()) else { continue };
        // As it is on hosts with as much hardware: if it is so everywhere, somebody built it so.
        let like = |(at, other): &(usize, &Hardware)| {
            *at != host && other.gpus.len() == hardware.gpus.len() && other.nics.len() == hardware.nics.len()
        };
        let better =
            measured.topology.hardware.iter().enumerate().filter(like).filter(|(at, _)| elections[*at].idle.len() < own.idle.len()).count();
        let idle: Vec<String> = own.idle.iter().map(|&nic| hardware.nics[nic].name.clone()).collect();
        let name = hardware.nics[port].name.clone();
        let title = format!(
            "{} GPUs of {} are nearest to {name}, {} idle{}",
            gpus.len(),
            hardware.host,
            idle.join(", "),
            if idle.len() == 1 { "s" } else { "" }
        );
        if better == 0 {
            let why = "it is so on all hosts alike: those ports are for something else, or near no GPU".to_owned();
            by_design.get_or_insert(Silenced { rule: SHARED.name, say: title, why });
            continue;
        }
        let others = format!(
            "{better} host{} with the same hardware use{} all",
            if better == 1 { "" } else { "s" },
            if better == 1 { "s" } else { "" }
        );
        let facts = vec![said(format!("GPUs {} use {name}, as the PCI tree has them", format_ranks(gpus))), said(others)];
        let shape = Shape::SharedPort { host: hardware.host.clone(), port: name, ranks: sharing, idle };
        findings.push(Finding {
            amount: format!("1/{}", gpus.len()),
            weight: gpus.len() as f64,
            facts,
            ..finding(SHARED.name, format!("shared-port {}", hardware.host), Severity::Warning, title, shape)
        });
    }
    view.silenced.extend(by_design);
    findings.extend(confined(view, fastest));
    findings
}

/// A variable that leaves one port to all GPUs of hosts that have several.
fn confined(view: &View<'_>, fastest: f64) -> Option<Finding> {
    let measured = view.measured;
    let hardware = measured
        .topology
        .hardware
        .iter()
        .find(|hardware| hardware.gpus.len() > 1 && main_ports(hardware, fastest).filter(|nic| nic.up()).count() > 1)?;
    let ports: Vec<&str> = main_ports(hardware, fastest).filter(|nic| nic.up()).map(|nic| nic.name.as_str()).collect();
    let one = |(name, value): &(String, String)| match name.as_str() {
        // All processing elements take the first one (deepseek-ai/DeepEP#336).
        "NVSHMEM_ENABLE_NIC_PE_MAPPING" => (value != "0").then(|| ports[0].to_owned()),
        name if NAMING.contains(&name) => match listed(value).as_slice() {
            [one] if ports.contains(one) => Some((*one).to_owned()),
            _ => None,
        },
        _ => None,
    };
    let (name, value, port) =
        measured.provenance.environment.iter().find_map(|variable| Some((&variable.0, &variable.1, one(variable)?)))?;
    let gpus: Vec<usize> = ranks_on(measured, &hardware.host);
    if gpus.len() < 2 {
        return None;
    }
    let idle: Vec<String> = ports.iter().filter(|other| **other != port).map(|other| (*other).to_owned()).collect();
    let title = format!("{name}={value}: all ranks of a host use {port}, {} other ports idle", idle.len());
    let facts = vec![said(format!("{} ranks, {} ports of {}", gpus.len(), ports.len(), hardware.host))];
    let amount = format!("1/{}", gpus.len());
    let shape = Shape::SharedPort { host: hardware.host.clone(), port, ranks: gpus, idle };
    Some(Finding { amount, facts, ..finding(SHARED.name, format!("shared-port {name}"), Severity::Warning, title, shape) })
}

fn bad(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let hardware = &measured.topology.hardware;
    let slot = |hardware: &Hardware, nic: &Nic| nic.pci.and_then(|pci| Some((hardware.pci.get(pci)?.address, nic.port)));
    // By slot: on how many hosts it is up.
    let mut up: BTreeMap<_, usize> = BTreeMap::new();
    for hardware in hardware {
        hardware
            .nics
            .iter()
            .filter(|nic| nic.up())
            .filter_map(|nic| slot(hardware, nic))
            .for_each(|slot| *up.entry(slot).or_default() += 1);
    }
    let mut down: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut unplugged: BTreeMap<_, (String, usize)> = BTreeMap::new();
    for (host, hardware) in hardware.iter().enumerate() {
        for (nic, port) in hardware.nics.iter().enumerate().filter(|(_, nic)| !nic.up()) {
            let Some(slot) = slot(hardware, port) else { continue };
            let lone = hardware.nics.iter().all(|nic| nic.pci.is_none() || !nic.up()) && measured.topology.hosts().len() > 1;
            if up.get(&slot).copied().unwrap_or(0) > 0 || lone {
                down.entry(host).or_default().push(nic);
            } else {
                unplugged.entry(slot).or_insert_with(|| (format!("{} of {} is {}", port.name, hardware.host, port.state), 0)).1 += 1;
            }
        }
    }
    for (say, hosts) in unplugged.into_values() {
        let say = if hosts > 1 { format!("{say}, and that of {} more hosts", hosts - 1) } else { say };
        let why = "no host has the port of that slot up: it seems not to be connected".to_owned();
        view.silenced.push(Silenced { rule: BAD.name, say, why });
    }
    // One port of many hosts is one matter, as several ports of one host are.
    let slots: BTreeSet<_> = down
        .iter()
        .flat_map(|(&host, nics)| nics.iter().filter_map(move |&nic| slot(&hardware[host], &hardware[host].nics[nic])))
        .collect();
    if slots.len() == 1 && down.len() > 1 {
        let hosts: Vec<usize> = down.keys().copied().collect();
        return bad_on(view, &hosts, &down).into_iter().collect();
    }
    down.keys().copied().collect::<Vec<_>>().into_iter().filter_map(|host| bad_on(view, &[host], &down)).collect()
}

fn bad_on(view: &mut View<'_>, hosts: &[usize], down: &BTreeMap<usize, Vec<usize>>) -> Option<Finding> {
    let measured = view.measured;
    let &first = hosts.first()?;
    let hardware = &measured.topology.hardware[first];
    let nics = down.get(&first)?;
    let port = &hardware.nics[*nics.first()?];
    // Who would use them if they were up.
    let mut ranks = Vec::new();
    for &host in hosts {
        let mut mended = measured.topology.hardware[host].clone();
        let cut = down.get(&host)?;
        for &nic in cut {
            "active".clone_into(&mut mended.nics[nic].state);
            // A port that is down says little of its rate.
            let like = mended.nics.iter().filter(|nic| nic.up()).filter_map(|nic| nic.rate).fold(0.0, f64::max);
            mended.nics[nic].rate = Some(mended.nics[nic].rate.unwrap_or(0.0).max(like));
        }
        let uses = |rank: &usize| {
            measured.router.end(*rank).is_some_and(|(_, device)| nearest_port(&mended, device).is_some_and(|nic| cut.contains(&nic)))
        };
        ranks.extend(ranks_on(measured, &mended.host).into_iter().filter(uses));
    }
    let cells = Cells::of(measured, across(measured, &ranks));
    let confirmed = cells.as_ref().filter(|cells| cells.slow());
    if let Some(cells) = confirmed {
        claim_ranks(view, &ranks, cells.share());
    }
    let more = match (hosts.len() - 1, nics.len() - 1) {
        (0, 0) => String::new(),
        (0, more) => format!(" and {more} more ports"),
        (more, _) => format!(" and of {more} more hosts"),
    };
    let title = format!("port {} of {}{more} is {}", port.name, hardware.host, port.state);
    let mut facts = vec![said("the port of the same slot is up on other hosts")];
    facts.extend(cells.as_ref().map(|cells| cells.fact("of ranks that are nearest to it")));
    if !ranks.is_empty() {
        facts.push(said(format!("nearest to it: rank {}", format_ranks(&ranks))));
    }
    let shape = Shape::BadPort { host: hardware.host.clone(), port: port.name.clone(), say: port.state.clone() };
    Some(Finding {
        amount: confirmed.map_or_else(|| port.state.clone(), |cells| percent(cells.share())),
        weight: confirmed.map_or(0.0, Cells::weight),
        facts,
        cells: confirmed.map(Cells::cells).unwrap_or_default(),
        hop: Some((hardware.host.clone(), format!("{} → network", port.name))),
        ..finding(BAD.name, format!("bad-port {} {}", hardware.host, port.name), Severity::Problem, title, shape)
    })
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn ports_that_variables_name_are_read() {
        assert_eq!(listed("=mlx5_0:1,mlx5_3"), ["mlx5_0", "mlx5_3"]);
        assert_eq!(listed("^mlx5_3"), Vec::<&str>::new());
        assert_eq!(listed("all"), Vec::<&str>::new());
    }
}
