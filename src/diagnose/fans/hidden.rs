//! Resources that nobody told of, found by the flows that slow each other (see [`crate::fit::identify`]).

use crate::diagnose::hardware::evidence::{finding, said};
use crate::diagnose::{Fact, Finding, Rule, Severity, Shape, Silenced, View};
use crate::fit::identify::Hidden;
use crate::units::{format_gbps, format_ranks};

pub const HIDDEN: Rule =
    Rule { name: "hidden-resource", summary: "transfers slow each other although nothing known is shared by them", check };

/// Of the fastest single flow; noise makes a limit a little lower than that.
const LEAST: f64 = 0.9;
/// Flows that are listed.
const LISTED: usize = 8;
/// It leaves each flow that is seen on it this share of its own rate, or more: then it is no matter to act on.
const HARMLESS: f64 = 0.8;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut findings = Vec::new();
    for hidden in &view.identified.hidden {
        // No limit is lower than what one of its flows gives alone.
        let fastest = hidden.flows.iter().filter_map(|&(from, to)| measured.rate(from, to)).fold(0.0, f64::max);
        if hidden.capacity < LEAST * fastest {
            let say = format!("{}: {} GB/s for all of it together", hidden.name, format_gbps(hidden.capacity));
            let why = format!("one of its transfers alone gives {} GB/s; that is latency, no limit", format_gbps(fastest));
            view.silenced.push(Silenced { rule: HIDDEN.name, say, why });
            continue;
        }
        findings.push(of(hidden, fastest));
    }
    findings
}

fn of(hidden: &Hidden, fastest: f64) -> Finding {
    let mut senders: Vec<usize> = hidden.flows.iter().map(|&(from, _)| from).collect();
    senders.sort_unstable();
    senders.dedup();
    // All senders at once, each with its part.
    let part = hidden.capacity / senders.len().max(1) as f64 / fastest;
    let severity = if part >= HARMLESS { Severity::Note } else { Severity::Warning };
    let title = format!("{}: {} GB/s for all of it together", hidden.name, format_gbps(hidden.capacity));
    let flows: Vec<String> = hidden.flows.iter().take(LISTED).map(|(from, to)| format!("{from}→{to}")).collect();
    let more = if hidden.flows.len() > LISTED { format!(" and {} more", hidden.flows.len() - LISTED) } else { String::new() };
    let say = format!("{}{more} slow each other; alone they give up to {} GB/s", flows.join(", "), format_gbps(fastest));
    let mut facts = vec![Fact { say, pairs: hidden.flows.iter().take(LISTED).copied().collect(), together: Vec::new() }];
    if let Some(interval) = hidden.interval {
        facts.push(said(format!("95 % interval {} to {} GB/s", format_gbps(interval.low), format_gbps(interval.high))));
    }
    facts.push(said(format!("seen in {} measurements; senders: rank {}", hidden.n, format_ranks(&senders))));
    Finding {
        amount: format!("{} GB/s", format_gbps(hidden.capacity)),
        weight: hidden.flows.len() as f64 * (1.0 - part).max(0.0),
        facts,
        cells: hidden.flows.iter().take(4096).copied().collect(),
        ..finding(
            HIDDEN.name,
            format!("hidden-resource {}", hidden.name),
            severity,
            title,
            Shape::HiddenResource { hidden: hidden.clone() },
        )
    }
}
