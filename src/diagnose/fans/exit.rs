//! Hosts whose ranks together get no more out, or in, than one port gives, although they should use several
//! (deepseek-ai/DeepEP#336).

use crate::diagnose::hardware::evidence::{finding, said};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, View};
use crate::fit::identify::{Capacity, Owner, Side};
use crate::topology::{Level, Unit};
use crate::units::{format_gbps, format_ranks};

pub const EXIT: Rule =
    Rule { name: "crowded-port", summary: "all ranks of a host together get no more than one of its ports gives", check };

/// So much more than a port's nominal rate is not that port alone.
const ONE: f64 = 1.05;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut found: Vec<(Unit, Finding)> = Vec::new();
    for capacity in &view.identified.capacities {
        for (unit, out) in hosts(measured, capacity) {
            // Out and in of one host are one matter.
            if !found.iter().any(|(known, _)| *known == unit)
                && let Some(finding) = of(measured, unit, out, capacity)
            {
                found.push((unit, finding));
            }
        }
    }
    // Of many hosts alike one stands for all.
    let hosts = found.len();
    let mut findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    if hosts > 2 {
        findings.truncate(1);
        for finding in &mut findings {
            finding.facts.push(said(format!("{} more hosts are like that", hosts - 1)));
        }
    }
    findings
}

/// Hosts that a limit of what leaves or enters is of.
fn hosts(measured: &Measured, capacity: &Capacity) -> Vec<(Unit, bool)> {
    match capacity.owner {
        Owner::Unit { unit, side: side @ (Side::Out | Side::In) } if unit.level == Level::Host => vec![(unit, side == Side::Out)],
        Owner::Every { level: Level::Host, side: side @ (Side::Out | Side::In) } => {
            (0..measured.units.count(Level::Host)).map(|number| (Unit { level: Level::Host, number }, side == Side::Out)).collect()
        }
        _ => Vec::new(),
    }
}

fn of(measured: &Measured, unit: Unit, out: bool, capacity: &Capacity) -> Option<Finding> {
    let rate = capacity.rate?;
    let ranks = measured.units.members(unit);
    let (host, _) = measured.router.end(*ranks.first()?)?;
    let hardware = &measured.topology.hardware[host];
    let mut used: Vec<usize> = ranks.iter().filter_map(|&rank| measured.router.port(rank)).collect();
    used.sort_unstable();
    used.dedup();
    let rates: Vec<f64> = used.iter().filter_map(|&nic| hardware.nics[nic].rate).collect();
    let (one, all) = (rates.iter().copied().fold(0.0, f64::max), rates.iter().sum::<f64>());
    if used.len() < 2 || rate > one * ONE {
        return None;
    }
    let names: Vec<String> = used.iter().map(|&nic| hardware.nics[nic].name.clone()).collect();
    let way = if out { "out of" } else { "into" };
    let title = format!(
        "all ranks together get {} GB/s {way} {}, which has {} ports of {}",
        format_gbps(rate),
        hardware.host,
        used.len(),
        format_gbps(one)
    );
    let facts = vec![
        said(format!("seen in {} measurements of several transfers at once", capacity.n)),
        said(format!("by the PCI tree rank {} use {}", format_ranks(ranks), names.join(", "))),
    ];
    let shape = Shape::SharedPort { host: hardware.host.clone(), port: names[0].clone(), ranks: ranks.to_vec(), idle: names[1..].to_vec() };
    Some(Finding {
        amount: format!("{:.0} %", 100.0 * rate / all),
        weight: ranks.len() as f64 * (1.0 - rate / all).max(0.0),
        facts,
        ..finding(EXIT.name, format!("crowded-port {}", hardware.host), Severity::Warning, title, shape)
    })
}
