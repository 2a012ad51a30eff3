//! Pairs that did not come through, wrong bytes, lost ranks.

use super::cover::{Cell, Place, cover};
use super::{LIT, NAMED, words};
use crate::diagnose::{Finding, Rule, Severity, Shape, View, Ways};
use crate::sample::Status;
use crate::topology::Level;
use crate::units::format_ranks;

pub const RULE: Rule = Rule { name: "failed", summary: "no answer in time, bytes that arrived wrong, and ranks that were lost", check };

/// ln(share) of nothing at all, for the sum of what was lost.
const NOTHING: f32 = -5.0;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut findings = Vec::new();
    let mut lost: Vec<usize> = measured.lost.iter().map(|&(rank, _)| rank).collect();
    lost.sort_unstable();
    lost.dedup();
    let failed = |status| matches!(status, Status::Timeout | Status::Corrupt);
    let mut bad: Vec<(usize, usize)> = Vec::new();
    let mut cells = [Vec::new(), Vec::new()];
    for pair in measured.peer.iter() {
        let (from, to) = words::ends(pair);
        if failed(pair.status) {
            view.claims.pair(from, to);
        }
        if lost.binary_search(&from).is_ok() || lost.binary_search(&to).is_ok() {
            if failed(pair.status) {
                bad.push((from, to));
            }
            continue;
        }
        // How far apart they are does not matter to what does not arrive.
        for (cells, status) in cells.iter_mut().zip([Status::Timeout, Status::Corrupt]) {
            if pair.status != Status::Waived && from != to {
                cells.push(Cell { from: pair.from, to: pair.to, class: 0, log: NOTHING, slow: pair.status == status });
            }
        }
    }
    if !lost.is_empty() {
        let shape = Shape::Failed { pairs: bad.iter().copied().take(NAMED).collect(), ranks: lost.clone(), corrupt: false };
        let id = format!("failed ranks {}", format_ranks(&lost));
        let mut finding = words::finding(RULE.name, id, Severity::Problem, shape);
        let s = if lost.len() == 1 { "" } else { "s" };
        finding.title = format!("rank{s} {} stopped answering", format_ranks(&lost));
        finding.amount = format!("{} lost", lost.len());
        finding.weight = f64::from(-NOTHING) * (bad.len() + 1) as f64;
        for (rank, why) in measured.lost.iter().take(NAMED) {
            finding.facts.push(words::fact(format!("rank {rank}: {why}"), Vec::new()));
        }
        if !bad.is_empty() {
            finding
                .facts
                .push(words::fact(format!("{} pairs with them got no answer", bad.len()), bad.iter().copied().take(NAMED).collect()));
        }
        finding.cells = bad.into_iter().take(LIT).collect();
        findings.push(finding);
    }
    for (cells, corrupt) in cells.iter().zip([false, true]) {
        findings.extend(places(view, cells, corrupt));
    }
    findings
}

fn places(view: &View<'_>, cells: &[Cell], corrupt: bool) -> Vec<Finding> {
    let units = &view.measured.units;
    let parts = cover(units, cells);
    let mut left: Vec<(usize, usize)> = cells.iter().filter(|cell| cell.slow).map(Cell::ends).collect();
    let what = if corrupt { "wrong bytes" } else { "no answer" };
    let mut findings = Vec::new();
    for part in parts {
        let mut pairs: Vec<(usize, usize)> = part.cells.iter().map(Cell::ends).collect();
        pairs.sort_unstable();
        left.retain(|pair| pairs.binary_search(pair).is_err());
        let (name, place, ranks) = match part.place {
            Place::Unit { unit, ways } => {
                let words = match ways {
                    Ways::Sends => "from",
                    Ways::Receives => "at",
                    Ways::Both => "from and at",
                };
                (format!("{words} {}", units.name(unit)), words::unit(view.measured, unit), units.members(unit).to_vec())
            }
            Place::Between { from, to } => {
                let name = format!("from {} to {}", units.name(from), units.name(to));
                // Of a single rank among several others, it is named.
                let ranks = [from, to].into_iter().filter(|unit| unit.level == Level::Rank).map(|unit| unit.number).collect();
                (name, format!("{} to {}", words::unit(view.measured, from), words::unit(view.measured, to)), ranks)
            }
        };
        findings.push(of_pairs(
            format!("failed {what} {name}"),
            format!("{place}: {what} on {} pairs", pairs.len()),
            pairs,
            ranks,
            corrupt,
        ));
    }
    if !left.is_empty() {
        let listed: Vec<String> = left.iter().take(NAMED).map(|&(from, to)| words::arrow(from, to)).collect();
        let more = if left.len() > NAMED { format!(" and {} more", left.len() - NAMED) } else { String::new() };
        let id = if let [(from, to)] = left[..] { format!("failed {what} {from} to {to}") } else { format!("failed {what}") };
        findings.push(of_pairs(id, format!("{}{more}: {what}", listed.join(", ")), left, Vec::new(), corrupt));
    }
    findings
}

fn of_pairs(id: String, title: String, pairs: Vec<(usize, usize)>, ranks: Vec<usize>, corrupt: bool) -> Finding {
    let shape = Shape::Failed { pairs: pairs.iter().copied().take(NAMED).collect(), ranks, corrupt };
    let mut finding = words::finding(RULE.name, id, Severity::Problem, shape);
    finding.title = title;
    finding.amount = if pairs.len() == 1 { "1 pair".to_owned() } else { format!("{} pairs", pairs.len()) };
    finding.weight = f64::from(-NOTHING) * pairs.len() as f64;
    let say = if corrupt { "what arrived was not what was sent" } else { "nothing arrived within the time for a probe" };
    finding.facts.push(words::fact(say, pairs.iter().copied().take(NAMED).collect()));
    finding.cells = pairs.into_iter().take(LIT).collect();
    finding
}
