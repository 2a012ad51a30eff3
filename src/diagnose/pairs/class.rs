//! Classes of pairs that are slow as a whole, which no comparison among themselves shows.

use super::usual::Usual;
use super::{BROKEN, CLASS_SLOW, LIT, NAMED, SLOW, inverted, words};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, View};
use crate::fit::median;
use crate::topology::PathClass;
use crate::units::{format_gbps, format_size};

pub const RULE: Rule = Rule { name: "slow-class", summary: "all pairs of a path class give less than their hardware should", check };

/// A message whose time is mostly latency says nothing of a link: the share that latency may take.
const LATENCY: f64 = 0.5;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let usual = Usual::rates(measured);
    let turned = inverted::turned(measured, &usual);
    let mut findings = Vec::new();
    for (number, class) in measured.classes.iter().enumerate().filter(|(_, class)| class.path != PathClass::Local) {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let Some(share) = share(measured, &usual, number) else { continue };
        // What an earlier rule said of a class stands; and that near pairs are slower than far ones says more.
        if share >= SLOW || view.claims.share_of_class(number) < 1.0 || turned.iter().any(|turned| turned.near == number) {
            continue;
        }
        let value = usual[usize::from(number)].value;
        let expected = value / share;
        let name = class.name();
        let mut finding =
            words::finding(RULE.name, format!("slow-class {name}"), severity(share), Shape::SlowClass { class: number, share });
        finding.title =
            format!("all {} {name} pairs: {} GB/s is usual, {} should be", class.count, format_gbps(value), format_gbps(expected));
        finding.amount = words::percent(share);
        finding.weight = -share.ln() * class.count as f64;
        let cells: Vec<(usize, usize)> = measured.peer.iter().filter(|pair| pair.class == number).map(words::ends).collect();
        let say = format!(
            "{} of the nominal rate of their narrowest hop times its usual efficiency, at {}",
            words::percent(share),
            format_size(measured.bytes)
        );
        finding.facts.push(words::fact(say, cells.iter().copied().take(NAMED).collect()));
        if let Some(best) = measured.peer.iter().filter(|pair| pair.class == number).max_by(|a, b| a.rate.total_cmp(&b.rate)) {
            let (from, to) = words::ends(best);
            let say = format!("the best of them, {}, gives {} GB/s", words::arrow(from, to), format_gbps(best.rate));
            finding.facts.push(words::fact(say, vec![(from, to)]));
        }
        finding.facts.extend(words::step(share).map(|say| words::fact(say, Vec::new())));
        finding.cells = cells.into_iter().take(LIT).collect();
        findings.push(finding);
    }
    findings
}

/// What it means that good pairs of a class have this share of what their hardware should give.
pub fn severity(share: f64) -> Severity {
    match () {
        () if share < BROKEN / 2.0 => Severity::Problem,
        () if share < CLASS_SLOW => Severity::Warning,
        () => Severity::Note,
    }
}

/// Share of what hardware should give that good pairs of a class have, without their latency; `None` where nothing tells what they
/// should, or where messages are so small that it cannot be seen.
pub fn share(measured: &Measured, usual: &[Usual], class: u16) -> Option<f64> {
    let value = usual.get(usize::from(class))?.value;
    let small = measured.classes.get(usize::from(class))?.usual_small;
    let mut expected: Vec<f64> =
        measured.peer.iter().filter(|pair| pair.class == class).map(|pair| pair.expected).filter(|expected| expected.is_finite()).collect();
    let expected = median(&mut expected);
    let seconds = measured.bytes as f64 / value;
    let latency = if measured.small_bytes < measured.bytes && small.is_finite() { small } else { 0.0 };
    let known = measured.bytes >= 1 << 20 && latency < LATENCY * seconds;
    (known && expected > 0.0 && value > 0.0).then(|| measured.bytes as f64 / (seconds - latency) / expected)
}
