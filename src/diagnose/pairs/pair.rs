//! Single slow pairs.

use super::usual::Usual;
use super::{FEW, LIT, NAMED, SLOW, severity, slow, words};
use crate::diagnose::{Fact, Finding, PairSeen, Rule, Severity, Shape, View};
use crate::sample::EngineKind;
use crate::units::format_gbps;

pub const RULE: Rule = Rule {
    name: "slow-pair",
    summary: "one pair that is slow although both of its ends do well with others, or with too few others to tell whose fault it is",
    check,
};

/// A rate with another partner that is this much higher shows that an end can do more.
const MORE: f64 = 1.25;

/// Most pairs that are told one by one; more of them are one finding.
const MOST: usize = 6;

/// A slow pair, one way or both.
struct Slow {
    ends: (usize, usize),
    class: u16,
    share: f64,
    both: bool,
    n: u32,
}

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let usual = Usual::rates(measured);
    let (cells, _) = slow::cells(view, &usual);
    let at = |from: u32, to: u32| cells.binary_search_by_key(&(from, to), |cell| (cell.from, cell.to)).ok().map(|at| &cells[at]);
    let mut found: Vec<Slow> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.slow) {
        let back = at(cell.to, cell.from);
        // Of a class that is nothing but this pair no other pair tells what is usual.
        if usual[usize::from(cell.class)].count <= 1 + usize::from(back.is_some_and(|back| back.class == cell.class)) {
            continue;
        }
        let back = back.filter(|back| back.slow);
        // Of a pair that is slow both ways, the slower one.
        if back.is_some_and(|back| (back.log, back.from) < (cell.log, cell.from)) {
            continue;
        }
        let n = measured.peer.get(cell.from as usize, cell.to as usize).map_or(0, |pair| pair.n);
        let share = f64::from(cell.log).exp();
        found.push(Slow { ends: cell.ends(), class: cell.class, share, both: back.is_some(), n });
    }
    found.sort_by(|a, b| a.share.total_cmp(&b.share).then(a.ends.cmp(&b.ends)));
    let many = if found.len() > MOST { found.split_off(MOST) } else { Vec::new() };
    let mut findings = Vec::new();
    for slow in &found {
        findings.push(one(view, &usual, slow));
    }
    findings.extend(rest(&usual, view, &many));
    for slow in found.iter().chain(&many) {
        let (from, to) = slow.ends;
        view.claims.pair(from, to);
        if slow.both {
            view.claims.pair(to, from);
        }
    }
    findings
}

/// Others of a rank's pairs the same way, from which it shows whether that end can do more.
struct Others {
    better: Vec<(usize, usize)>,
    best: f64,
    all: usize,
}

fn others<'a>(rate: f64, usual: &[Usual], pairs: impl Iterator<Item = &'a PairSeen>) -> Others {
    let mut found = Others { better: Vec::new(), best: 0.0, all: 0 };
    for pair in pairs.filter(|pair| pair.rate.is_finite()) {
        found.all += 1;
        found.best = found.best.max(pair.rate);
        if pair.rate >= rate * MORE && pair.rate >= usual[usize::from(pair.class)].value * SLOW {
            found.better.push(words::ends(pair));
        }
    }
    found
}

impl Others {
    /// What an end gives with one partner it can give with any: no more is needed to acquit it.
    fn healthy(&self) -> bool {
        !self.better.is_empty()
    }

    fn fact(&self, say: &str) -> Fact {
        let text = if self.all == 0 {
            format!("{say} nobody else that was measured")
        } else if self.healthy() {
            format!("{say} others up to {} GB/s", format_gbps(self.best))
        } else {
            format!("{say} others no more than {} GB/s, which tells nothing", format_gbps(self.best))
        };
        words::fact(text, self.better.iter().copied().take(NAMED).collect())
    }
}

fn one(view: &View<'_>, usual: &[Usual], slow: &Slow) -> Finding {
    let measured = view.measured;
    let (from, to) = slow.ends;
    let rate = measured.rate(from, to).unwrap_or(f64::NAN);
    let usually = usual[usize::from(slow.class)].value;
    let sends = others(rate, usual, measured.peer.row(from).iter().filter(|pair| pair.to as usize != to && pair.from != pair.to));
    let into = (0..measured.world()).filter(|&other| other != from && other != to).filter_map(|other| measured.peer.get(other, to));
    let receives = others(rate, usual, into);
    let told = sends.healthy() && receives.healthy();
    let share = slow.share;
    let few = slow.n < FEW;
    let severity = if few { Severity::Note } else { severity(share) };
    let (name, id) = if slow.both {
        let (low, high) = (from.min(to), from.max(to));
        (format!("{from}↔{to}"), format!("slow-pair {low} and {high}"))
    } else {
        (words::arrow(from, to), format!("slow-pair {from} to {to}"))
    };
    let seen = if told { Shape::SlowPair { from, to, share } } else { Shape::SlowUntold { from, to, share } };
    let mut finding = words::finding(RULE.name, id, severity, seen);
    finding.title = format!("{name} gives {} GB/s, {} is usual", format_gbps(rate), format_gbps(usually));
    if !told {
        finding.title.push_str("; too few others tell whose fault it is");
    }
    finding.amount = words::percent(share);
    finding.weight = -share.ln() * if slow.both { 2.0 } else { 1.0 };
    let class = measured.classes[usize::from(slow.class)].name();
    let say = format!("{} of what {class} pairs usually give", words::percent(share));
    finding.facts.push(words::fact(say, vec![(from, to)]));
    if let Some(back) = measured.rate(to, from) {
        let say = if slow.both { ", and is slow, too" } else { "" };
        finding.facts.push(words::fact(format!("the other direction gives {} GB/s{say}", format_gbps(back)), vec![(to, from)]));
    }
    finding.facts.push(sends.fact(&format!("rank {from} sends")));
    finding.facts.push(receives.fact(&format!("rank {to} receives from")));
    finding.facts.extend(words::step(share).map(|say| words::fact(say, Vec::new())));
    if few {
        let repeats = if slow.n == 1 { "one repeat".to_owned() } else { format!("{} repeats", slow.n) };
        let say = if measured.provenance.engine == EngineKind::Imported {
            format!("the file tells {repeats} of it, and no spread: other runs of the tool tell whether it stays")
        } else {
            format!("it was measured with {repeats} only: measure it again before blaming anything")
        };
        finding.facts.push(words::fact(say, Vec::new()));
    }
    finding.cells = if slow.both { vec![(from, to), (to, from)] } else { vec![(from, to)] };
    finding
}

/// More slow pairs than anybody would read one by one.
fn rest(usual: &[Usual], view: &View<'_>, many: &[Slow]) -> Option<Finding> {
    let worst = many.first()?;
    let (from, to) = worst.ends;
    let few = many.iter().all(|slow| slow.n < FEW);
    let severity = if few { Severity::Note } else { severity(worst.share) };
    let mut finding = words::finding(RULE.name, "slow-pair others".to_owned(), severity, Shape::SlowPair { from, to, share: worst.share });
    let rate = view.measured.rate(from, to).unwrap_or(f64::NAN);
    finding.title =
        format!("{} more single pairs are slow, the slowest {} with {} GB/s", many.len(), words::arrow(from, to), format_gbps(rate));
    finding.amount = words::percent(worst.share);
    finding.weight = many.iter().map(|slow| -slow.share.ln()).sum();
    let listed: Vec<String> =
        many.iter().take(NAMED).map(|slow| format!("{} {}", words::arrow(slow.ends.0, slow.ends.1), words::percent(slow.share))).collect();
    let value = format_gbps(usual[usize::from(worst.class)].value);
    let say = format!("of the usual rate ({value} GB/s for the slowest): {}", listed.join(", "));
    finding.facts.push(words::fact(say, many.iter().take(NAMED).map(|slow| slow.ends).collect()));
    finding.cells = many.iter().take(LIT).map(|slow| slow.ends).collect();
    Some(finding)
}
