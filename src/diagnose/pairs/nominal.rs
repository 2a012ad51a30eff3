//! More than the hardware can give: several rails at once, other accounting, a wrong clock, or hardware that is told wrong.

use super::{LIT, NAMED, words};
use crate::diagnose::{Finding, PairSeen, Rule, Severity, Shape, View};
use crate::units::format_gbps;

pub const RULE: Rule = Rule { name: "above-nominal", summary: "a rate above the nominal rate of the narrowest link on the way", check };

/// A rate so far above is no rounding of sizes and times.
const BEYOND: f64 = 1.02;

/// What is so far above means that rates cannot be taken as one link's.
const FAR: f64 = 1.1;

/// Nominal rates are at least this much above what is expected, whatever the efficiencies say: a quick look before routes are
/// worked out.
const HEADROOM: f64 = 1.02;

/// Most routes that are worked out.
const ROUTES: usize = 4096;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    // Several at once of one way, or an efficiency above 1, have no nominal rate of their own.
    let suspect = |pair: &&PairSeen| pair.rate > pair.expected * HEADROOM;
    let mut found: Vec<Vec<(f64, f64, PairSeen)>> = vec![Vec::new(); measured.classes.len()];
    for pair in measured.peer.iter().filter(suspect).take(ROUTES) {
        let (from, to) = words::ends(pair);
        let route = measured.router.route(&measured.topology, from, to);
        let Some(nominal) = route.hops.iter().filter_map(|hop| hop.nominal).min_by(f64::total_cmp) else { continue };
        let least = pair.interval.map_or(pair.rate, |interval| interval.low);
        if least > nominal * BEYOND {
            found[usize::from(pair.class)].push((pair.rate / nominal, nominal, *pair));
        }
    }
    let mut findings = Vec::new();
    for (class, mut pairs) in found.into_iter().enumerate() {
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| words::ends(&a.2).cmp(&words::ends(&b.2))));
        let Some(&(ratio, nominal, pair)) = pairs.first() else { continue };
        let (from, to) = words::ends(&pair);
        let name = measured.classes[class].name();
        let severity = if ratio > FAR { Severity::Warning } else { Severity::Note };
        let shape = Shape::AboveNominal { from, to, ratio };
        let mut finding = words::finding(RULE.name, format!("above-nominal {name}"), severity, shape);
        finding.title =
            format!("{} gives {} GB/s, its narrowest link has {}", words::arrow(from, to), format_gbps(pair.rate), format_gbps(nominal));
        finding.amount = words::percent(ratio);
        finding.weight = pairs.iter().map(|&(ratio, ..)| ratio.ln()).sum();
        let cells: Vec<(usize, usize)> = pairs.iter().map(|(.., pair)| words::ends(pair)).collect();
        let say = format!("{} {name} pairs are above the nominal rate of a link on their way", cells.len());
        finding.facts.push(words::fact(say, cells.iter().copied().take(NAMED).collect()));
        if let Some(interval) = pair.interval {
            let say = format!(
                "95 % interval of {}: {} to {} GB/s",
                words::arrow(from, to),
                format_gbps(interval.low),
                format_gbps(interval.high)
            );
            finding.facts.push(words::fact(say, vec![(from, to)]));
        }
        finding.cells = cells.into_iter().take(LIT).collect();
        findings.push(finding);
    }
    findings
}
