//! What happens when several transfers run at once, and what fails or scatters.

use super::case::Case;
use super::facts::{gpu, inside, port, variable};
use crate::diagnose::hardware::models::without_peers;
use crate::diagnose::{Cause, Measured};
use crate::fit::identify::{Explanation, Hidden};
use crate::topology::Level;
use crate::units::format_gbps;

/// True if bytes between devices of these ranks are staged in host memory, with the reason.
fn staged(measured: &Measured, ranks: &[usize]) -> Option<String> {
    let names = ranks.iter().filter_map(|&rank| gpu(measured, rank));
    if let Some(gpu) = names.clone().find(|gpu| without_peers(&gpu.name)) {
        return Some(format!("{} reaches no peer directly: bytes are staged in host memory", gpu.name));
    }
    if let Some(value) = variable(measured, "NCCL_P2P_DISABLE").filter(|value| *value != "0") {
        return Some(format!("NCCL_P2P_DISABLE={value}: bytes are staged in host memory"));
    }
    (measured.router.knows() && names.count() == 0).then(|| "host memory was moved".to_owned())
}

pub fn collapse(case: &mut Case<'_>, root: usize, peers: &[usize]) {
    let measured = case.measured();
    let across = peers.iter().any(|&peer| !inside(measured, root, peer));
    if across {
        case.add(Cause::Congestion, 2.4, "many senders fill a switch's buffers, and pauses spread (incast)", "");
        case.add(Cause::ReceiveLimit, 1.4, "the receiver spends its time on switching between them", "");
    } else {
        case.add(Cause::ReceiveLimit, 1.9, "the root spends its time on switching between them", "");
        case.add(Cause::Congestion, 1.2, "they hinder each other on a link", "");
    }
    if let Some(why) = staged(measured, peers) {
        case.add(Cause::HostMemory, 1.8, why, "");
    }
    case.add(Cause::Protocol, 1.0, "messages of unexpected senders are copied twice", "");
    case.add(Cause::Interference, 0.6, "other work on the root's cores", "");
}

pub fn scaling(case: &mut Case<'_>, roots: &[usize], concurrency: f64, into: bool) {
    let measured = case.measured();
    let best = case.view.identified.stands.first().map(|stand| stand.explanation);
    let turns = matches!(
        best,
        Some(Explanation::TimeShared | Explanation::TimeSharedBy | Explanation::TimeSharedBySocket | Explanation::TimeSharedLink)
    );
    let busiest = matches!(best, Some(Explanation::Busiest | Explanation::BusiestByWidth));
    let even = if (concurrency - 1.0).abs() < 0.12 { 0.4 } else { 0.0 };
    let because =
        if turns { "serving peers one after another explains all fans best" } else { "the time is the sum of the times one by one" };
    case.add(
        Cause::TimeShared,
        1.8 + even + if turns { 0.8 } else { 0.0 },
        format!("{because}: c = {concurrency:.2}"),
        if busiest { "fixed limits explain the fans better" } else { "" },
    );
    let limit = if into { Cause::ReceiveLimit } else { Cause::SendLimit };
    case.add(limit, 1.5 + if busiest { 0.9 } else { 0.0 }, "one side of the root has a fixed limit", "");
    if let Some(why) = staged(measured, roots) {
        case.add(Cause::HostMemory, 2.3, why, "");
    }
    case.add(Cause::CrossSocket, 0.8, "peers of another socket share the link between them", "");
    case.add(Cause::SharedUplink, 0.7, "peers below one switch share its uplink", "");
}

pub fn duplex(case: &mut Case<'_>, pairs: &[(usize, usize)], ratio: f64) {
    let measured = case.measured();
    let half = (ratio - 0.5).abs() < 0.08;
    let because = if half { "half of each direction is left: both share one thing" } else { "both directions take from each other" };
    case.add(Cause::SharedDirections, if half { 2.6 } else { 1.8 }, because, "");
    let ranks: Vec<usize> = pairs.iter().take(32).flat_map(|&(from, to)| [from, to]).collect();
    if let Some(why) = staged(measured, &ranks) {
        case.add(Cause::HostMemory, 2.3, why, "");
    }
    if pairs.first().is_some_and(|&(from, to)| inside(measured, from, to)) {
        case.redirect(&ranks, 1.0, "both directions may go up and down one uplink");
        case.add(Cause::SharedUplink, 1.1, "both directions may go up and down one uplink", "");
    } else {
        case.add(Cause::Congestion, 0.8, "pauses for one direction hold up the other", "");
    }
    case.add(Cause::Protocol, 0.9, "one thread drives both directions", "");
}

pub fn hidden(case: &mut Case<'_>, hidden: &Hidden) {
    let measured = case.measured();
    let across = !hidden.from_hosts.is_empty() || !hidden.to_hosts.is_empty();
    if !across {
        case.add(Cause::SharedUplink, 1.8, "these transfers share lanes towards the processor", "");
        case.add(Cause::CrossSocket, 1.5, "these transfers share the link between sockets", "");
        let ranks: Vec<usize> = hidden.flows.iter().take(32).flat_map(|&(from, to)| [from, to]).collect();
        if let Some(why) = staged(measured, &ranks) {
            case.add(Cause::HostMemory, 2.2, why, "");
        }
        case.add(Cause::TimeShared, 1.0, "one engine may serve all of them in turns", "");
        return;
    }
    case.add(Cause::SharedTrunk, 2.0, format!("{} share {} GB/s", hidden.name, format_gbps(hidden.capacity)), "");
    // As much as one port of a host gives, where it has several.
    let ranks = hidden.flows.iter().map(|&(from, _)| from);
    let one = ranks.filter_map(|rank| Some((rank, port(measured, rank)?))).find_map(|(rank, nic)| {
        let (host, _) = measured.router.end(rank)?;
        let several = measured.topology.hardware[host].nics.iter().filter(|nic| nic.pci.is_some() && nic.up()).count();
        let share = hidden.capacity / nic.rate?;
        (several > 1 && (0.8..1.05).contains(&share)).then(|| (nic.name.clone(), several, measured.topology.hardware[host].host.clone()))
    });
    let single = hidden.from_hosts.len() <= 1 || hidden.to_hosts.len() <= 1;
    if let Some((name, several, host)) = one.filter(|_| single) {
        let because = format!("{} GB/s is what one port such as {name} gives, and {host} has {several}", format_gbps(hidden.capacity));
        case.add(Cause::SharedPort, 2.8, because, "");
    } else if single {
        case.add(Cause::SharedPort, 1.2, "ranks of one host may use one port", "");
    }
    case.add(Cause::RouteCollision, 1.1, "their routes may collide on one cable", "");
    let names = |hosts: &[usize]| {
        hosts
            .iter()
            .filter_map(|&number| {
                Some(
                    measured.units.name(
                        measured
                            .units
                            .unit(Level::Host, *measured.units.members(crate::topology::Unit { level: Level::Host, number }).first()?)?,
                    ),
                )
            })
            .take(2)
            .collect::<Vec<_>>()
            .join(", ")
    };
    case.add(
        Cause::LongDistance,
        0.5,
        format!("{} and {} may be of different sites", names(&hidden.from_hosts), names(&hidden.to_hosts)),
        "",
    );
}

pub fn poor_fit(case: &mut Case<'_>) {
    case.add(Cause::Cache, 1.8, "small sizes stay in a cache, large ones do not", "");
    case.add(Cause::Protocol, 1.6, "another protocol from some size on", "");
    case.add(Cause::TcpFallback, 0.9, "TCP's curve is jagged", "");
    case.add(Cause::Interference, 0.8, "something else ran at the same time", "");
}

pub fn unsteady(case: &mut Case<'_>, pairs: &[(usize, usize)]) {
    let measured = case.measured();
    let ranks: Vec<usize> = pairs.iter().take(16).flat_map(|&(from, to)| [from, to]).collect();
    let across = pairs.iter().any(|&(from, to)| !inside(measured, from, to));
    // Others' load strikes many; what has one end in common is that end's.
    let common = ranks.first().into_iter().chain(ranks.get(1)).find(|end| pairs.iter().all(|(from, to)| from == *end || to == *end));
    case.add(Cause::Interference, 1.6, "something else ran at the same time", "");
    match common.filter(|_| pairs.len() > 1) {
        Some(rank) => case.add(
            Cause::FlappingLink,
            2.0,
            format!("only pairs of rank {rank} scatter: its link errs, or comes and goes (error counters)"),
            "",
        ),
        None => case.add(Cause::FlappingLink, 1.2, "a link that errs and sends again (error counters)", ""),
    }
    if across {
        case.add(Cause::Congestion, 1.7, "others use the same network", "");
    }
    case.clocks(&ranks, 1.3);
    case.add(Cause::PowerSaving, 0.8, "processors or links that sleep between messages", "");
}

pub fn failed(case: &mut Case<'_>, pairs: &[(usize, usize)], ranks: &[usize], corrupt: bool) {
    let measured = case.measured();
    if corrupt {
        case.add(Cause::BadCable, 2.4, "wrong bytes arrive: a riser, a contact or a cable that errs (AER counters)", "");
        case.add(Cause::FlappingLink, 1.6, "a link that errs; a lower generation may hide it", "");
        case.add(Cause::AcsRedirect, 0.8, "peer transfers under a translating IOMMU have been seen to corrupt", "");
        return;
    }
    let ends: Vec<usize> = pairs.iter().take(32).flat_map(|&(from, to)| [from, to]).chain(ranks.iter().copied()).collect();
    let across = pairs.iter().all(|&(from, to)| !inside(measured, from, to));
    if across && !pairs.is_empty() {
        let names: Vec<_> = ends.iter().filter_map(|&rank| Some((rank, port(measured, rank)?.name.clone()))).collect();
        let unlike = pairs.iter().take(32).find_map(|&(from, to)| {
            let name = |rank: usize| names.iter().find(|(own, _)| *own == rank).map(|(_, name)| name.clone());
            name(from).zip(name(to)).filter(|(a, b)| a != b)
        });
        match unlike {
            Some((a, b)) => case.add(
                Cause::WrongPort,
                2.6,
                format!("their ports are called {a} and {b}: ports of unlike numbers may not reach each other"),
                "",
            ),
            None => case.add(Cause::WrongPort, 1.2, "they may use ports that do not reach each other", ""),
        }
        case.direct(&ends, 1.2, "transfers of device memory fail where those of host memory go through");
        case.redirect(&ends, 1.3, "transfers between devices and ports may be refused");
    } else if !pairs.is_empty() {
        case.redirect(&ends, 1.6, "transfers between devices may be refused");
        case.peers(&ends, 1.2);
    }
    case.add(Cause::PortDown, 1.0, "a port may be down", "");
    if !ranks.is_empty() {
        case.add(Cause::Interference, 1.2, "a process that ended or hangs", "");
    }
    case.add(Cause::BadCable, 0.6, "a link that is down", "");
}

/// A plan took longer than its prices say.
pub fn executed(case: &mut Case<'_>, resource: &str) {
    let at = if resource.is_empty() { String::new() } else { format!(" on {resource}") };
    case.add(Cause::Interference, 1.4, format!("other work{at}, or on the ranks' cores, while it ran"), "");
    case.add(Cause::Congestion, 1.2, "flows of a plan meet in other ways than the pairs and fans that were measured", "");
    case.add(Cause::OtherGroup, 1.0, "a calibration with other ranks, sizes, window or mover than the plan has", "");
}
