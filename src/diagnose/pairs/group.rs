//! Slow ranks, switches, sockets and hosts, and slow ways between two of them.

use super::cover::{ALIKE, Cell, Part, Place, cover};
use super::inverted::distance;
use super::usual::Usual;
use super::{NAMED, SLOW, severity, slow, words};
use crate::diagnose::{Fact, Finding, Measured, PairClass, Rule, Shape, View, Ways};
use crate::fit::median;
use crate::topology::{PathClass, PathLabel, Unit};
use crate::units::format_gbps;

pub const RULE: Rule = Rule {
    name: "slow-group",
    summary: "a rank, switch, socket or host all of whose transfers of a kind are slow, or all transfers from one such group to another",
    check,
};

/// A farther way that is this much faster shows that what is nearer is not the limit.
const OUTRUN: f64 = 1.25;

fn check(view: &mut View<'_>) -> Vec<Finding> {
    let measured = view.measured;
    let usual = Usual::rates(measured);
    let (cells, silenced) = slow::cells(view, &usual);
    view.silenced.extend(silenced);
    let mut findings = Vec::new();
    for part in cover(&measured.units, &cells) {
        let share = part.share();
        // Its slower cells are part of it, as far as the cover takes them for its own.
        let least = share * (-ALIKE).exp();
        let finding = match part.place {
            Place::Unit { unit, ways } => {
                let outrun = outrun(measured, &part, unit, ways);
                view.claims.unit(unit, ways, least);
                if outrun.is_some() {
                    view.claims.one_sided(unit, ways);
                }
                of_unit(measured, &usual, &cells, &part, (unit, ways), outrun)
            }
            Place::Between { from, to } => {
                view.claims.between(from, to, least);
                if from == to || from.level != to.level {
                    // Claims of ways hold between different groups of one level only.
                    part.cells.iter().for_each(|cell| view.claims.pair(cell.from as usize, cell.to as usize));
                }
                between(measured, &usual, &cells, &part, from, to)
            }
        };
        findings.push(finding);
    }
    findings
}

/// The rate that a slow unit has the same way with farther ranks, where that is clearly more than with near ones: then what it has
/// in common for both, its own link, cannot be what limits. GPU links are no part of a farther way.
fn outrun(measured: &Measured, part: &Part, unit: Unit, ways: Ways) -> Option<(f64, Vec<(usize, usize)>)> {
    let nearest = part.classes.iter().map(|&class| distance(measured, class)).max()?;
    if part.classes.iter().any(|&class| matches!(measured.classes[usize::from(class)].label, Some(PathLabel::Nvl(_)))) {
        return None;
    }
    let mut slow: Vec<f64> = part.cells.iter().filter_map(|cell| measured.rate(cell.from as usize, cell.to as usize)).collect();
    let slow = median(&mut slow);
    let inside = |rank: usize| measured.units.unit(unit.level, rank) == Some(unit);
    let mut far: Vec<(f64, (usize, usize))> = Vec::new();
    for &rank in measured.units.members(unit) {
        for other in (0..measured.world()).filter(|&other| !inside(other)) {
            let ends = if ways == Ways::Receives { (other, rank) } else { (rank, other) };
            if let Some(pair) = measured.peer.get(ends.0, ends.1)
                && pair.rate.is_finite()
                && distance(measured, pair.class) > nearest
            {
                far.push((pair.rate, ends));
            }
        }
    }
    let rate = median(&mut far.iter().map(|&(rate, _)| rate).collect::<Vec<_>>());
    (rate > slow * OUTRUN).then(|| (rate, far.into_iter().map(|(_, ends)| ends).take(NAMED).collect()))
}

/// `5.50 to 6.00 GB/s on 3 pairs (PIX and NODE), where others of their class give 53.6`.
fn evidence(measured: &Measured, usual: &[Usual], part: &Part) -> Fact {
    let rates = words::range(part.cells.iter().filter_map(|cell| measured.rate(cell.from as usize, cell.to as usize)));
    let others = words::range(part.classes.iter().map(|&class| usual[usize::from(class)].value));
    let count = part.cells.len();
    let good = if part.good > 0 { format!("; {} more are as usual", part.good) } else { String::new() };
    let names = words::classes(measured, &part.classes);
    let say = format!("{rates} GB/s on {count} pairs ({names}), where good ones of their class give {others}{good}");
    words::fact(say, named(&part.cells))
}

fn named(cells: &[Cell]) -> Vec<(usize, usize)> {
    cells.iter().take(NAMED).map(Cell::ends).collect()
}

/// What the other direction gives of the same pairs.
fn back(usual: &[Usual], cells: &[Cell], part: &Part, measured: &Measured) -> Option<Fact> {
    let mut shares: Vec<(f64, f64, (usize, usize))> = Vec::new();
    for cell in &part.cells {
        let (from, to) = cell.ends();
        if let Ok(at) = cells.binary_search_by_key(&(to, from), Cell::ends) {
            let rate = measured.rate(to, from)?;
            shares.push((rate / usual[usize::from(cells[at].class)].value, rate, (to, from)));
        }
    }
    if shares.is_empty() {
        return None;
    }
    let rates = words::range(shares.iter().map(|&(_, rate, _)| rate));
    let say = match (shares.iter().filter(|&&(share, ..)| share >= SLOW).count(), shares.len()) {
        (good, all) if good == all => "is as usual".to_owned(),
        (0, _) => "is slow, too".to_owned(),
        (good, all) => format!("is as usual for {good} of {all}"),
    };
    let pairs = shares.iter().take(NAMED).map(|&(.., ends)| ends).collect();
    Some(words::fact(format!("the other direction {say}: {rates} GB/s"), pairs))
}

fn of_unit(
    measured: &Measured,
    usual: &[Usual],
    cells: &[Cell],
    part: &Part,
    (unit, ways): (Unit, Ways),
    outrun: Option<(f64, Vec<(usize, usize)>)>,
) -> Finding {
    let share = part.share();
    let own = own_copies(measured, usual, unit);
    let own_slow = own.as_ref().is_some_and(|&(share, _)| share < SLOW);
    let id = format!("slow-unit {} {}", measured.units.name(unit), words::ways(ways));
    let mut finding = words::finding(RULE.name, id, severity(share), Shape::SlowUnit { unit, ways, share, own_slow });
    let rates = words::range(part.cells.iter().filter_map(|cell| measured.rate(cell.from as usize, cell.to as usize)));
    let usually = words::range(part.classes.iter().map(|&class| usual[usize::from(class)].value));
    let only =
        if part.classes.len() < seen(cells, part, measured, unit) { format!(", {} only", paths(measured, part)) } else { String::new() };
    let verb = match (ways, measured.units.members(unit).len()) {
        (_, 0 | 1) => words::ways(ways),
        (Ways::Sends, _) => "sends to others",
        (Ways::Receives, _) => "receives from others",
        (Ways::Both, _) => "sends and receives",
    };
    finding.title = format!("{} {verb} {rates} GB/s, {usually} is usual{only}", words::unit(measured, unit));
    finding.amount = words::percent(share);
    finding.weight = part.loss();
    finding.facts.push(evidence(measured, usual, part));
    if ways != Ways::Both {
        finding.facts.extend(back(usual, cells, part, measured));
    }
    if let Some((rate, pairs)) = outrun {
        let say = format!("with farther ranks it gives {} GB/s, so its own link is not what limits", format_gbps(rate));
        finding.facts.push(words::fact(say, pairs));
    }
    if let Some((share, pairs)) = own {
        let say = if own_slow {
            format!("its own copies give {} of what others' do, too", words::percent(share))
        } else {
            "its own copies are as fast as others'".to_owned()
        };
        finding.facts.push(words::fact(say, pairs));
    }
    finding.facts.extend(words::step(share).map(|say| words::fact(say, Vec::new())));
    finding.cells = part.cells.iter().map(Cell::ends).collect();
    finding
}

/// `within its socket`, `with other hosts`, `on PIX and NODE paths`: where a part is slow.
fn paths(measured: &Measured, part: &Part) -> String {
    let all = |holds: fn(&PairClass) -> bool| part.classes.iter().all(|&class| holds(&measured.classes[usize::from(class)]));
    match () {
        () if all(|class| class.same_socket == Some(true)) => "within its socket".to_owned(),
        () if all(|class| class.same_socket == Some(false)) => "between sockets".to_owned(),
        () if all(|class| class.path == PathClass::IntraNode) => "within its host".to_owned(),
        () if all(|class| class.path == PathClass::InterNode) => "with other hosts".to_owned(),
        () => format!("on {} paths", words::classes(measured, &part.classes)),
    }
}

/// Number of classes that a unit has any cell of.
fn seen(cells: &[Cell], part: &Part, measured: &Measured, unit: Unit) -> usize {
    let mut classes = part.classes.clone();
    for &rank in measured.units.members(unit) {
        let row = cells.partition_point(|cell| (cell.from as usize) < rank)..cells.partition_point(|cell| (cell.from as usize) <= rank);
        for cell in &cells[row] {
            if !classes.contains(&cell.class) && measured.units.unit(unit.level, cell.to as usize) != Some(unit) {
                classes.push(cell.class);
            }
        }
    }
    classes.len()
}

/// Share of the usual of a unit's own copies, where they were measured.
fn own_copies(measured: &Measured, usual: &[Usual], unit: Unit) -> Option<(f64, Vec<(usize, usize)>)> {
    let copies = measured.units.members(unit).iter().filter_map(|&rank| measured.local.get(rank, rank));
    let mut shares = Vec::new();
    let mut pairs = Vec::new();
    for pair in copies.filter(|pair| pair.rate.is_finite()) {
        shares.push(pair.rate / usual.get(usize::from(pair.class))?.value);
        pairs.push(words::ends(pair));
    }
    pairs.truncate(NAMED);
    (!shares.is_empty()).then(|| (median(&mut shares), pairs))
}

fn between(measured: &Measured, usual: &[Usual], cells: &[Cell], part: &Part, from: Unit, to: Unit) -> Finding {
    let share = part.share();
    let (a, b) = (measured.units.name(from), measured.units.name(to));
    let id = if from == to { format!("slow-within {a}") } else { format!("slow-between {a} to {b}") };
    let mut finding = words::finding(RULE.name, id, severity(share), Shape::SlowBetween { from, to, share });
    let rates = words::range(part.cells.iter().filter_map(|cell| measured.rate(cell.from as usize, cell.to as usize)));
    let usually = words::range(part.classes.iter().map(|&class| usual[usize::from(class)].value));
    finding.title = if from == to {
        format!("within {} pairs give {rates} GB/s, {usually} is usual", words::unit(measured, from))
    } else {
        format!("{} to {}: {rates} GB/s, {usually} is usual", words::unit(measured, from), words::unit(measured, to))
    };
    finding.amount = words::percent(share);
    finding.weight = part.loss();
    finding.facts.push(evidence(measured, usual, part));
    if from != to {
        finding.facts.extend(back(usual, cells, part, measured));
        finding.facts.extend(elsewhere(cells, part, measured, (from, to)));
    }
    finding.facts.extend(words::step(share).map(|say| words::fact(say, Vec::new())));
    finding.cells = part.cells.iter().map(Cell::ends).collect();
    finding
}

/// How the two groups do with others.
fn elsewhere(cells: &[Cell], part: &Part, measured: &Measured, (from, to): (Unit, Unit)) -> Option<Fact> {
    let units = &measured.units;
    let inside = |unit: Unit, rank: u32| units.unit(unit.level, rank as usize) == Some(unit);
    let (mut logs, mut pairs) = (Vec::new(), Vec::new());
    for cell in cells.iter().filter(|cell| part.classes.contains(&cell.class)) {
        let (a, b) = (inside(from, cell.from), inside(to, cell.to));
        if a != b {
            logs.push(f64::from(cell.log));
            if pairs.len() < NAMED {
                pairs.push(cell.ends());
            }
        }
    }
    if logs.is_empty() {
        let level = words::level(from.level);
        return Some(words::fact(format!("no other {level} tells which of the two is slow, or the way between them"), Vec::new()));
    }
    let share = median(&mut logs).exp();
    (share >= SLOW).then(|| words::fact(format!("with others both give {} of the usual", words::percent(share)), pairs))
}
