//! Repeats that scatter, and times that changed while it ran.

use super::{LIT, NAMED, words};
use crate::diagnose::{Finding, PairSeen, Rule, Severity, Shape, View};
use crate::fit::median;

pub const RULE: Rule = Rule {
    name: "unsteady",
    summary: "some pairs' repeats scatter far more than others', all repeats scatter, or times changed during the sweep",
    check,
};

/// A pair scatters if half of its middle half is this share of the median: eight times what 3 % of noise makes of many repeats.
const SCATTER: f64 = 0.15;

/// And this many times what pairs usually do.
const MORE: f64 = 4.0;

/// From here on the whole run is noisy.
const NOISY: f64 = 0.08;

/// Later repeats take this much longer, or shorter, than earlier ones.
const DRIFT: f64 = 1.1;

/// In this share of the pairs, all the same way; by chance so many do not.
const MANY: f64 = 0.1;
const FEWEST: usize = 4;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let all: Vec<&PairSeen> = measured.peer.iter().chain(measured.local.iter()).filter(|pair| pair.rate.is_finite()).collect();
    let mut scatters: Vec<f64> = all.iter().map(|pair| f64::from(pair.scatter)).filter(|scatter| scatter.is_finite()).collect();
    let usual = median(&mut scatters);
    [flapping(&all, usual), noisy(&all, usual), drifting(&all)].into_iter().flatten().collect()
}

/// Pairs that scatter while others do not.
fn flapping(all: &[&PairSeen], usual: f64) -> Option<Finding> {
    let limit = SCATTER.max(MORE * usual);
    let mut found: Vec<&&PairSeen> = all.iter().filter(|pair| f64::from(pair.scatter) > limit).collect();
    found.sort_by(|a, b| b.scatter.total_cmp(&a.scatter).then_with(|| words::ends(a).cmp(&words::ends(b))));
    let worst = f64::from(found.first()?.scatter);
    let pairs: Vec<(usize, usize)> = found.iter().map(|pair| words::ends(pair)).collect();
    let common = common(&pairs);
    let name = match (common, pairs.as_slice()) {
        (_, [(from, to)]) => words::arrow(*from, *to),
        (Some(rank), _) => format!("rank {rank}"),
        (None, _) => format!("{} pairs", pairs.len()),
    };
    let shape = Shape::Unsteady { pairs: pairs.iter().copied().take(NAMED).collect(), scatter: worst, drift: 1.0 };
    let mut finding = words::finding(RULE.name, format!("unsteady {name}"), Severity::Warning, shape);
    finding.title = format!("{name}: repeats scatter by {}, elsewhere by {}", words::percent(worst), words::percent(usual));
    finding.amount = format!("± {}", words::percent(worst));
    finding.weight = found.iter().map(|pair| f64::from(pair.scatter).ln_1p()).sum();
    let say = match common {
        Some(rank) if pairs.len() > 1 => {
            format!("{} pairs, all of rank {rank}: half of the middle half of their times over the median", pairs.len())
        }
        _ => format!("{} of {} pairs: half of the middle half of their times over the median", pairs.len(), all.len()),
    };
    finding.facts.push(words::fact(say, pairs.iter().copied().take(NAMED).collect()));
    finding.cells = pairs.into_iter().take(LIT).collect();
    Some(finding)
}

/// The rank that is an end of all pairs.
fn common(pairs: &[(usize, usize)]) -> Option<usize> {
    let &(a, b) = pairs.first()?;
    [a, b].into_iter().find(|&rank| pairs.iter().all(|&(from, to)| from == rank || to == rank))
}

/// Everything scatters.
fn noisy(all: &[&PairSeen], usual: f64) -> Option<Finding> {
    if usual.is_nan() || usual < NOISY {
        return None;
    }
    let shape = Shape::Unsteady { pairs: Vec::new(), scatter: usual, drift: 1.0 };
    let mut finding = words::finding(RULE.name, "unsteady everywhere".to_owned(), Severity::Note, shape);
    finding.title = format!("repeats scatter by {} everywhere", words::percent(usual));
    finding.amount = format!("± {}", words::percent(usual));
    finding.weight = usual * all.len() as f64;
    finding.facts.push(words::fact(format!("the median of {} cells; differences of less than that show nothing", all.len()), Vec::new()));
    Some(finding)
}

/// Times that changed the same way in many pairs.
fn drifting(all: &[&PairSeen]) -> Option<Finding> {
    let drifts: Vec<&&PairSeen> = all.iter().filter(|pair| pair.drift > 0.0).collect();
    let (mut slower, mut faster) = (Vec::new(), Vec::new());
    for pair in &drifts {
        match f64::from(pair.drift) {
            drift if drift > DRIFT => slower.push(**pair),
            drift if drift < DRIFT.recip() => faster.push(**pair),
            _ => {}
        }
    }
    let (mut found, other) = if slower.len() >= faster.len() { (slower, faster) } else { (faster, slower) };
    // Noise goes both ways.
    if (found.len() as f64) < (MANY * drifts.len() as f64).max(FEWEST as f64) || found.len() < 4 * other.len() {
        return None;
    }
    let change = median(&mut found.iter().map(|pair| f64::from(pair.drift)).collect::<Vec<_>>());
    found.sort_by(|a, b| (b.drift - 1.0).abs().total_cmp(&(a.drift - 1.0).abs()).then_with(|| words::ends(a).cmp(&words::ends(b))));
    let pairs: Vec<(usize, usize)> = found.iter().map(|pair| words::ends(pair)).collect();
    let shape = Shape::Unsteady { pairs: pairs.iter().copied().take(NAMED).collect(), scatter: 0.0, drift: change };
    let mut finding = words::finding(RULE.name, "unsteady drift".to_owned(), Severity::Warning, shape);
    let way = if change > 1.0 { "slower" } else { "faster" };
    let by = if change > 1.0 { change } else { change.recip() };
    finding.title =
        format!("{} of {} pairs became {way} while they were measured, by {}", pairs.len(), drifts.len(), words::percent(by - 1.0));
    finding.amount = words::percent(by - 1.0);
    finding.weight = found.iter().map(|pair| f64::from(pair.drift).ln().abs()).sum();
    let say = "median time of the later half of the repeats over that of the earlier half: something changed during the sweep";
    finding.facts.push(words::fact(say, pairs.iter().copied().take(NAMED).collect()));
    finding.cells = pairs.into_iter().take(LIT).collect();
    Some(finding)
}
