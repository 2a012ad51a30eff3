//! Hosts whose ranks together get no more out, or in, than one port gives, although they should use several
//! (deepseek-ai/DeepEP#336).

use std::collections::BTreeMap;

use crate::diagnose::hardware::evidence::finding;
use crate::diagnose::{Fact, Finding, Measured, Rule, Severity, Shape, View};
use crate::fit::identify::Together;
use crate::sample::Pattern;
use crate::topology::{Level, Unit};
use crate::units::{format_gbps, format_ranks};

pub const EXIT: Rule =
    Rule { name: "crowded-port", summary: "transfers of a host's ranks together get no more than one of its ports gives", check };

/// So much more than a port's nominal rate is not that port alone.
const ONE: f64 = 1.05;
/// Alone they give so much more, or nothing holds them back.
const HELD: f64 = 1.8;

/// What went out of a host, or in, at once.
struct Crowd {
    out: bool,
    /// of its own ranks
    ranks: Vec<usize>,
    flows: Vec<(usize, usize)>,
    /// bytes per second, together
    rate: f64,
    /// of one port, and how many these ranks should use
    port: f64,
    ports: Vec<usize>,
    /// indices in [`Measured::together`]
    seen: Vec<usize>,
}

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut crowds: BTreeMap<Unit, Crowd> = BTreeMap::new();
    let mut free: Vec<(Unit, bool)> = Vec::new();
    for (at, together) in measured.together.iter().enumerate() {
        // A fan has its root's port alone; small messages are latency.
        if matches!(together.pattern, Pattern::FanIn | Pattern::FanOut) || together.bytes * 4 < measured.bytes {
            continue;
        }
        for out in [true, false] {
            for (host, flows) in crossing(measured, together, out) {
                match crowd(measured, together, out, &flows, at) {
                    Some(Ok(crowd)) => {
                        crowds.entry(host).and_modify(|known| known.seen.push(at)).or_insert(crowd);
                    }
                    Some(Err(())) => free.push((host, out)),
                    None => {}
                }
            }
        }
    }
    // What got more at another time has its ports.
    crowds.retain(|host, crowd| !free.contains(&(*host, crowd.out)));
    let hosts = crowds.len();
    let mut findings: Vec<Finding> = crowds.into_iter().map(|(host, crowd)| told(measured, host, &crowd)).collect();
    // Of many hosts alike one stands for all.
    if hosts > 2 {
        findings.truncate(1);
        for finding in &mut findings {
            finding.title = format!("{}; so do {} more hosts", finding.title, hosts - 1);
        }
    }
    findings
}

/// Flows to or from other hosts, indices in `flows`, by the host that they leave or enter.
fn crossing(measured: &Measured, together: &Together, out: bool) -> BTreeMap<Unit, Vec<usize>> {
    let mut by_host: BTreeMap<Unit, Vec<usize>> = BTreeMap::new();
    for (at, &(from, to)) in together.flows.iter().enumerate() {
        let (a, b) = (measured.units.unit(Level::Host, from), measured.units.unit(Level::Host, to));
        if let Some(host) = if out { a } else { b }.filter(|_| a != b) {
            by_host.entry(host).or_default().push(at);
        }
    }
    by_host
}

/// What these flows got, if they should have several ports: no more than one of them gives, or (as an error) more.
fn crowd(measured: &Measured, together: &Together, out: bool, flows: &[usize], at: usize) -> Option<Result<Crowd, ()>> {
    let pairs: Vec<(usize, usize)> = flows.iter().map(|&flow| together.flows[flow]).collect();
    let mut ranks: Vec<usize> = pairs.iter().map(|&(from, to)| if out { from } else { to }).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let (host, _) = measured.router.end(*ranks.first()?)?;
    let mut ports: Vec<usize> = ranks.iter().filter_map(|&rank| measured.router.port(rank)).collect();
    ports.sort_unstable();
    ports.dedup();
    let nics = &measured.topology.hardware[host].nics;
    let port = ports.iter().filter_map(|&nic| nics[nic].rate).fold(0.0, f64::max);
    if ports.len() < 2 || port == 0.0 {
        return None;
    }
    let slowest = flows.iter().filter_map(|&flow| together.own.get(flow)).copied().fold(0.0, f64::max);
    let alone: f64 = pairs.iter().map(|&(from, to)| measured.rate(from, to)).sum::<Option<f64>>()?;
    let rate = together.bytes as f64 * flows.len() as f64 / slowest;
    if !rate.is_finite() || alone < HELD * port {
        return None;
    }
    let held = rate <= port * ONE && alone >= HELD * rate;
    Some(if held { Ok(Crowd { out, ranks, flows: pairs, rate, port, ports, seen: vec![at] }) } else { Err(()) })
}

fn told(measured: &Measured, host: Unit, crowd: &Crowd) -> Finding {
    let name = measured.units.name(host).to_owned();
    let nics = measured.topology.hardware_of(&name).map_or(&[][..], |hardware| hardware.nics.as_slice());
    let names: Vec<String> = crowd.ports.iter().filter_map(|&nic| nics.get(nic)).map(|nic| nic.name.clone()).collect();
    let way = if crowd.out { "out of" } else { "into" };
    let title = format!(
        "{} transfers at once get {} GB/s {way} {name}, what one of its ports gives; by the PCI tree they have {}",
        crowd.flows.len(),
        format_gbps(crowd.rate),
        crowd.ports.len()
    );
    let say = format!("rank {} should use {}, {} GB/s each", format_ranks(&crowd.ranks), names.join(", "), format_gbps(crowd.port));
    let all = crowd.port * crowd.ports.len() as f64;
    let (port, idle) = (names.first().cloned().unwrap_or_default(), names.iter().skip(1).cloned().collect());
    Finding {
        amount: format!("{:.0} %", 100.0 * crowd.rate / all),
        weight: crowd.ranks.len() as f64 * (1.0 - crowd.rate / all).max(0.0),
        facts: vec![Fact {
            say,
            pairs: crowd.flows.iter().take(8).copied().collect(),
            together: crowd.seen.iter().take(8).copied().collect(),
        }],
        cells: crowd.flows.iter().take(4096).copied().collect(),
        ..finding(
            EXIT.name,
            format!("crowded-port {name}"),
            Severity::Warning,
            title,
            Shape::SharedPort { host: name, port, ranks: crowd.ranks.clone(), idle },
        )
    }
}
