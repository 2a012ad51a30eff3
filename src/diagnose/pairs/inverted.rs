//! Near pairs that are slower than far ones.

use super::usual::Usual;
use super::{LIT, NAMED, SLOW, class, words};
use crate::diagnose::{Finding, Measured, Rule, Severity, Shape, View};
use crate::topology::{PathClass, PathLabel};
use crate::units::format_gbps;

pub const RULE: Rule = Rule {
    name: "inverted",
    summary: "pairs of a near path class are slower than those of a far one, which way round no machine is built",
    check,
};

/// Two classes the wrong way round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turned {
    pub near: u16,
    pub far: u16,
    /// usual rate of near pairs over that of far ones
    pub ratio: f64,
}

/// How far apart the ends of a class are, in the order of this: within a rank, a host, between hosts; then by nvidia-smi's label; then
/// by NUMA node.
pub fn distance(measured: &Measured, class: u16) -> (u8, Option<PathLabel>, bool) {
    let class = &measured.classes[usize::from(class)];
    let coarse = match class.path {
        PathClass::Local => 0,
        PathClass::IntraNode => 1,
        PathClass::InterNode => 2,
    };
    // GPUs that have links to each other are as near, however many there are and wherever they sit.
    match class.label {
        Some(PathLabel::Nvl(_)) => (coarse, Some(PathLabel::Nvl(1)), false),
        label => (coarse, label, class.same_socket == Some(false)),
    }
}

/// Classes that are clearly slower than a farther one, each with the fastest of those, most turned first.
pub fn turned(measured: &Measured, usual: &[Usual]) -> Vec<Turned> {
    let classes = || (0..measured.classes.len()).filter_map(|class| u16::try_from(class).ok());
    let usable = |&class: &u16| measured.classes[usize::from(class)].path != PathClass::Local && usual[usize::from(class)].count >= 2;
    let value = |class: u16| usual[usize::from(class)].value;
    let mut turned = Vec::new();
    for near in classes().filter(usable) {
        let far = classes().filter(usable).filter(|&far| distance(measured, far) > distance(measured, near));
        let Some(far) = far.max_by(|&a, &b| value(a).total_cmp(&value(b))) else { continue };
        let ratio = value(near) / value(far);
        if ratio < SLOW {
            turned.push(Turned { near, far, ratio });
        }
    }
    turned.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    turned
}

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let usual = Usual::rates(measured);
    let mut turned = turned(measured, &usual);
    // What an earlier rule said of the near ones stands.
    turned.retain(|turned| view.claims.share_of_class(turned.near) >= 1.0);
    let Some(&Turned { near, far, ratio }) = turned.first() else { return Vec::new() };
    let gbps = |class: u16| format_gbps(usual[usize::from(class)].value);
    let name = |class: u16| measured.classes[usize::from(class)].name();
    let severity = class::share(measured, &usual, near).map_or(Severity::Warning, class::severity).max(Severity::Warning);
    let id = format!("inverted {} and {}", name(near), name(far));
    let mut finding = words::finding(RULE.name, id, severity, Shape::Inverted { near, far, ratio });
    finding.title = format!("near pairs are slower than far ones: {} {}, {} {} GB/s", name(near), gbps(near), name(far), gbps(far));
    finding.amount = words::percent(ratio);
    let of = |class: u16| measured.peer.iter().filter(move |pair| pair.class == class).map(words::ends);
    for turned in &turned {
        let share = class::share(measured, &usual, turned.near);
        let should = share.map_or_else(String::new, |share| {
            format!("; their hardware should give {}", format_gbps(usual[usize::from(turned.near)].value / share))
        });
        let say = format!(
            "{} pairs give {} GB/s, {} of what {} pairs do{should}",
            name(turned.near),
            gbps(turned.near),
            words::percent(turned.ratio),
            name(turned.far)
        );
        finding.facts.push(words::fact(say, of(turned.near).take(NAMED).collect()));
        finding.weight -= turned.ratio.ln() * usual[usize::from(turned.near)].count as f64;
        finding.cells.extend(of(turned.near).take(LIT));
    }
    finding.facts.extend(words::step(ratio).map(|say| words::fact(say, Vec::new())));
    vec![finding]
}
