//! Directions that differ: what links, which are built alike both ways, do not explain.

use statrs::distribution::{ContinuousCDF, Normal};

use super::usual::{Usual, critical, error};
use super::{BROKEN, FEW, LIT, NAMED, SLOW, words};
use crate::diagnose::{Finding, Rule, Severity, Shape, View};
use crate::topology::{Level, Unit};
use crate::units::format_gbps;

pub const RULE: Rule = Rule {
    name: "asymmetry",
    summary: "pairs of which one direction is slower than the other, where no slow part of the machine explains it",
    check,
};

/// Directions that differ less than this are of no matter to anybody.
const LEAST: f64 = 1.25;

/// From here on it is more than the variety of healthy pairs: the published 2x8 H20 box has pairs that differ by 1.45.
const CLEAR: f64 = 1.5;

/// More groups than this of one level are told as one.
const MOST: usize = 4;

/// A pair with a slow direction.
#[derive(Debug, Clone, Copy)]
struct Lopsided {
    /// the fast direction
    from: usize,
    to: usize,
    rate: f64,
    back: f64,
    /// ln of the ratio, and its standard error
    log: f64,
    error: f64,
    /// share of the usual that the slow direction has
    share: f64,
    n: u32,
}

/// Where both ends are, as closely as one group holds them.
type Around = Option<Unit>;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let usual = Usual::rates(measured);
    let units = &measured.units;
    let limit = critical(measured.peer.len() / 2);
    let mut groups: Vec<(Around, Vec<Lopsided>)> = Vec::new();
    for one in measured.peer.iter().filter(|pair| pair.from < pair.to && pair.rate > 0.0) {
        let Some(other) = measured.peer.get(one.to as usize, one.from as usize).filter(|pair| pair.rate > 0.0) else { continue };
        let (fast, slow) = if one.rate >= other.rate { (one, other) } else { (other, one) };
        if fast.rate < slow.rate * LEAST {
            continue;
        }
        let log = (fast.rate / slow.rate).ln();
        let own = |pair| error(pair).unwrap_or(usual[usize::from(one.class)].sigma);
        let error = own(fast).hypot(own(slow)).max(1e-4);
        let share = slow.rate / usual[usize::from(slow.class)].value;
        let (from, to) = words::ends(fast);
        let told = view.claims.explain(units, slow.class, to, from, share) && !view.claims.open(units, to, from);
        if told || log < limit * error {
            continue;
        }
        let lopsided = Lopsided { from, to, rate: fast.rate, back: slow.rate, log, error, share, n: fast.n.min(slow.n) };
        let around = [Level::Socket, Level::Host].into_iter().find(|&level| units.together(level, from, to));
        let around = around.and_then(|level| units.unit(level, from));
        match groups.iter_mut().find(|(known, _)| *known == around) {
            Some((_, members)) => members.push(lopsided),
            None => groups.push((around, vec![lopsided])),
        }
    }
    groups.retain(|(_, members)| !of_one(view, members));
    let groups = merged(groups);
    groups.into_iter().map(|(around, members)| told(view, around, members)).collect()
}

/// True if all of them are the pairs of one rank whose slowness is told: that finding says what the other direction gives.
fn of_one(view: &View<'_>, members: &[Lopsided]) -> bool {
    let open = |pair: &Lopsided| view.claims.open(&view.measured.units, pair.to, pair.from);
    let same = |end: fn(&Lopsided) -> usize| members.windows(2).all(|pair| end(&pair[0]) == end(&pair[1]));
    members.iter().all(open) && (same(|pair| pair.to) || same(|pair| pair.from))
}

/// Groups of one level that are too many to be read apart are one.
fn merged(groups: Vec<(Around, Vec<Lopsided>)>) -> Vec<(Around, Vec<Lopsided>)> {
    let mut merged: Vec<(Around, Vec<Lopsided>)> = Vec::new();
    let count = |level: Option<Level>| groups.iter().filter(|(around, _)| around.map(|unit| unit.level) == level).count();
    let many: Vec<bool> = groups.iter().map(|(around, _)| count(around.map(|unit| unit.level)) > MOST).collect();
    let mut rest: Vec<Lopsided> = Vec::new();
    for ((around, members), many) in groups.into_iter().zip(many) {
        if many || around.is_none() {
            rest.extend(members);
        } else {
            merged.push((around, members));
        }
    }
    if !rest.is_empty() {
        merged.push((None, rest));
    }
    merged
}

/// One finding of pairs that belong together. It is headed by the pair in the middle, which shows what is typical; the most
/// extreme one may well have two things wrong with it.
fn told(view: &View<'_>, around: Around, mut members: Vec<Lopsided>) -> Finding {
    let measured = view.measured;
    members.sort_by(|a, b| b.log.total_cmp(&a.log).then((a.from, a.to).cmp(&(b.from, b.to))));
    let head = members[members.len() / 2];
    let ratio = head.log.exp();
    let place = around.map(|unit| measured.units.name(unit).to_owned());
    let id = match (&place, members.as_slice()) {
        (_, [one]) => format!("asymmetry {} and {}", one.from.min(one.to), one.from.max(one.to)),
        (Some(place), _) => format!("asymmetry within {place}"),
        (None, _) => "asymmetry".to_owned(),
    };
    let few = head.n < FEW && members.len() < 3;
    let severity = match () {
        () if few || ratio < CLEAR || head.share >= SLOW => Severity::Note,
        () if head.share < BROKEN => Severity::Problem,
        () => Severity::Warning,
    };
    let shape = Shape::Asymmetry { from: head.from, to: head.to, rate: head.rate, back: head.back };
    let mut finding = words::finding(RULE.name, id, severity, shape);
    let (there, back) = (words::arrow(head.from, head.to), words::arrow(head.to, head.from));
    finding.title = format!("{there} gives {}, {back} {} GB/s", format_gbps(head.rate), format_gbps(head.back));
    if members.len() > 1 {
        let place = place.map(|place| format!(" within {place}")).unwrap_or_default();
        finding.title = format!("{}; {} pairs{place} are as lopsided or more", finding.title, members.len() / 2 + 1);
    }
    finding.amount = words::times(ratio);
    finding.weight = members.iter().map(|pair| pair.log).sum();
    finding.facts.push(words::fact(interval(&head), vec![(head.from, head.to), (head.to, head.from)]));
    if members.len() > 1 {
        let listed: Vec<String> = members
            .iter()
            .take(NAMED)
            .map(|pair| format!("{} {}", words::arrow(pair.from, pair.to), words::times(pair.log.exp())))
            .collect();
        let more = if members.len() > NAMED { format!(", and {} more", members.len() - NAMED) } else { String::new() };
        let pairs = members.iter().take(NAMED).map(|pair| (pair.from, pair.to)).collect();
        finding.facts.push(words::fact(format!("faster than the way back: {}{more}", listed.join(", ")), pairs));
    }
    finding.facts.extend(words::step(ratio.recip()).map(|say| words::fact(format!("the slow direction has {say}"), Vec::new())));
    finding.cells = members.iter().take(LIT / 2).flat_map(|pair| [(pair.to, pair.from), (pair.from, pair.to)]).collect();
    finding
}

/// `6.8 times as fast (95 % interval 6.7 to 6.9, p < 0.001)`.
fn interval(head: &Lopsided) -> String {
    let (low, high) = ((head.log - 1.96 * head.error).exp(), (head.log + 1.96 * head.error).exp());
    let p = 2.0 * Normal::standard().sf(head.log / head.error);
    let p = if p < 1e-3 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
    format!("one direction is {:.2} times as fast as the other (95 % interval {low:.2} to {high:.2}, {p})", head.log.exp())
}
