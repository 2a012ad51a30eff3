//! Sizes that one line does not fit: caches, protocols, and fall-backs with jagged curves.

use super::{LIT, NAMED, words};
use crate::diagnose::{Finding, Measured, PairSeen, Rule, Severity, Shape, View};
use crate::fit::median;

pub const RULE: Rule = Rule {
    name: "poor-fit",
    summary: "times at some sizes lie far off the line α + bytes/bandwidth, and no change of protocol was found that explains it",
    check,
};

/// Largest error of a line over all sizes that noise explains; the published fits of healthy pairs have up to 0.07 within a host,
/// the one of local copies that stay in a cache 0.77.
const FIT: f64 = 0.25;

/// Share of a class's pairs with a poor fit, from which on it is the class and not the pairs.
const WHOLE: f64 = 0.5;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let mut findings = Vec::new();
    for number in 0..measured.classes.len() {
        let of = |pair: &&PairSeen| usize::from(pair.class) == number && pair.fit_error.is_finite();
        let (mut all, mut errors, mut cells) = (0usize, Vec::new(), Vec::new());
        for pair in measured.peer.iter().chain(measured.local.iter()).filter(of) {
            all += 1;
            let error = f64::from(pair.fit_error);
            if error > FIT {
                errors.push(error);
                cells.push((error, words::ends(pair)));
            }
        }
        if cells.is_empty() {
            continue;
        }
        cells.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let whole = cells.len() as f64 >= WHOLE * all as f64;
        findings.push(told(measured, number, whole, median(&mut errors), &cells, all));
    }
    findings
}

fn told(measured: &Measured, class: usize, whole: bool, error: f64, cells: &[(f64, (usize, usize))], all: usize) -> Finding {
    let name = words::class(measured, u16::try_from(class).unwrap_or(u16::MAX));
    let pairs: Vec<(usize, usize)> = cells.iter().map(|&(_, ends)| ends).collect();
    let what = match (whole, pairs.as_slice()) {
        (true, _) => name.clone(),
        (false, [(from, to)]) => words::arrow(*from, *to),
        (false, _) => format!("{} of {all} {name} pairs", pairs.len()),
    };
    let id = if whole { format!("poor-fit {name}") } else { format!("poor-fit some {name}") };
    let shape = Shape::PoorFit { what: what.clone(), error };
    let mut finding = words::finding(RULE.name, id, Severity::Note, shape);
    finding.title = format!("{what}: one line does not fit all sizes, {} off", words::percent(error));
    finding.amount = words::percent(error);
    finding.weight = error * pairs.len() as f64;
    let (worst, (from, to)) = cells[0];
    let say = format!(
        "largest error of a line through {} sizes: {} at worst, {}",
        measured.sizes.len(),
        words::percent(worst),
        words::arrow(from, to)
    );
    finding.facts.push(words::fact(say, pairs.iter().copied().take(NAMED).collect()));
    finding.cells = pairs.into_iter().take(LIT).collect();
    finding
}
