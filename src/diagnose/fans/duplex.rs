//! What is left of each direction when both go at once.

use std::collections::BTreeMap;

use crate::diagnose::hardware::evidence::finding;
use crate::diagnose::{Fact, Finding, Rule, Severity, Shape, Silenced, View};
use crate::fit::median;
use crate::topology::PathClass;

pub const DUPLEX: Rule = Rule { name: "duplex-loss", summary: "two directions at once leave little of each", check };

/// Both directions share one thing: half of it each, and what noise adds.
const SHARED: f64 = 0.65;
/// Less than nothing lost; down to here it is known of healthy links (0.83–0.86 on NVLink, 0.93 on others; method.md).
const KNOWN: f64 = 0.75;
const NOTHING: f64 = 0.97;
/// So many of a class make it the class's own.
const MOST: f64 = 0.5;

/// A pair, and what is left of it.
type Left = ((usize, usize), f64);

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    // By class: both directions, what is left of the less lucky one.
    let mut left: BTreeMap<u16, Vec<Left>> = BTreeMap::new();
    for pair in measured.duplex.iter().filter(|pair| pair.from < pair.to) {
        let (from, to) = (pair.from as usize, pair.to as usize);
        let share = |from: usize, to: usize| Some(measured.duplex.get(from, to)?.rate / measured.rate(from, to)?);
        let (Some(there), Some(back)) = (share(from, to), share(to, from)) else { continue };
        let ratio = f64::midpoint(there, back);
        if ratio.is_finite() {
            left.entry(pair.class).or_default().push(((from, to), ratio));
        }
    }
    let mut findings = Vec::new();
    for (class, mut pairs) in left {
        pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
        let all = pairs.len();
        let usual = median(&mut pairs.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
        let name = measured.classes[usize::from(class)].name();
        if (KNOWN..NOTHING).contains(&usual) {
            let say = format!("{name}: both ways at once leave {:.0} % of each direction", 100.0 * usual);
            view.silenced
                .push(Silenced { rule: DUPLEX.name, say, why: "healthy links lose that much: 83–93 % have been seen".to_owned() });
        }
        pairs.retain(|(_, ratio)| *ratio < SHARED);
        if pairs.is_empty() {
            continue;
        }
        let ratio = median(&mut pairs.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
        let whole = pairs.len() as f64 >= MOST * all as f64;
        // Copies in host memory read and write the same memory.
        let inside = measured.classes[usize::from(class)].path == PathClass::IntraNode;
        let host = |rank: usize| measured.topology.ranks.get(rank).is_some_and(|placement| placement.gpu.is_none());
        let memory = inside && pairs.iter().all(|&((from, to), _)| host(from) && host(to));
        let severity = if memory { Severity::Note } else { Severity::Warning };
        let (from, to) = pairs[0].0;
        let (title, id) = if whole {
            (format!("{name}: both ways at once leave {:.0} % of each direction", 100.0 * ratio), format!("duplex-loss {name}"))
        } else {
            let more = if pairs.len() > 1 { format!(" and {} more pairs", pairs.len() - 1) } else { String::new() };
            (
                format!("{from}↔{to}{more}: both ways at once leave {:.0} % of each direction", 100.0 * ratio),
                format!("duplex-loss {from}-{to}"),
            )
        };
        let cells: Vec<(usize, usize)> = pairs.iter().flat_map(|&((from, to), _)| [(from, to), (to, from)]).take(4096).collect();
        let say = format!("{} of {all} pairs of this kind; usual {:.0} %, lowest {:.0} %", pairs.len(), 100.0 * usual, 100.0 * pairs[0].1);
        findings.push(Finding {
            amount: format!("{:.0} %", 100.0 * ratio),
            weight: pairs.iter().map(|(_, ratio)| 2.0 * (1.0 - ratio)).sum(),
            facts: vec![Fact { say, pairs: cells.clone(), together: Vec::new() }],
            cells,
            ..finding(DUPLEX.name, id, severity, title, Shape::DuplexLoss { pairs: pairs.iter().map(|(pair, _)| *pair).collect(), ratio })
        });
    }
    findings
}
