//! How rules speak.

use crate::diagnose::{Fact, Finding, Measured, PairClass, PairSeen, Severity, Shape, Ways};
use crate::topology::{Level, PathClass, Unit};
use crate::units::{format_gbps, format_ranks};

/// An exact step is met within this share of itself: what α and noise take away from a rate.
const MET: f64 = 0.06;

/// Rates that differ by less than this factor are one number to a reader.
const ONE: f64 = 1.03;

/// What a share of an exact half, quarter or eighth suggests.
pub fn step(share: f64) -> Option<&'static str> {
    let steps = [
        (0.5, "just half: half of the lanes or links, one generation lower, or a port that two share"),
        (0.25, "just a quarter: a quarter of the lanes, two generations lower, or a port that four share"),
        (0.125, "just an eighth: an eighth of the lanes, or a port that eight share"),
    ];
    steps.into_iter().find(|&(exact, _)| (share / exact - 1.0).abs() <= MET).map(|(_, say)| say)
}

/// `46 %`, `3.6 %`.
pub fn percent(share: f64) -> String {
    if share < 0.095 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

/// `6.8 ×`, `15 ×`.
pub fn times(ratio: f64) -> String {
    if ratio >= 9.95 { format!("{ratio:.0} ×") } else { format!("{ratio:.1} ×") }
}

/// `5.50`, or `3.60 to 6.00`: GB/s, without the unit.
pub fn range(rates: impl Iterator<Item = f64>) -> String {
    let (low, high) = rates.fold((f64::INFINITY, 0.0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    if high <= low * ONE { format_gbps((low * high).sqrt()) } else { format!("{} to {}", format_gbps(low), format_gbps(high)) }
}

/// `2→0`.
pub fn arrow(from: usize, to: usize) -> String {
    format!("{from}→{to}")
}

/// `sends`, `receives`, `sends and receives`.
pub const fn ways(ways: Ways) -> &'static str {
    match ways {
        Ways::Sends => "sends",
        Ways::Receives => "receives",
        Ways::Both => "sends and receives",
    }
}

/// `rank 3`; of a group its ranks too: `node1 (ranks 8-15)`.
pub fn unit(measured: &Measured, unit: Unit) -> String {
    let name = measured.units.name(unit);
    match measured.units.members(unit) {
        [_] => name.to_owned(),
        members => format!("{name} (ranks {})", format_ranks(members)),
    }
}

/// What a person calls a class: `PIX`, `local`.
pub fn class(measured: &Measured, class: u16) -> String {
    let name = |class: &PairClass| if class.path == PathClass::Local { class.path.name().to_owned() } else { class.name() };
    measured.classes.get(usize::from(class)).map_or_else(String::new, name)
}

/// Names of classes: `PIX and NODE`.
pub fn classes(measured: &Measured, classes: &[u16]) -> String {
    let names: Vec<String> = classes.iter().map(|&number| class(measured, number)).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A fact with the cells that it rests on.
pub fn fact(say: impl Into<String>, pairs: Vec<(usize, usize)>) -> Fact {
    Fact { say: say.into(), pairs, together: Vec::new() }
}

/// Ends of a pair.
pub const fn ends(pair: &PairSeen) -> (usize, usize) {
    (pair.from as usize, pair.to as usize)
}

/// A finding of which causes and the next test are not known yet. Its cells are those of its facts, and more if given.
pub fn finding(rule: &'static str, id: String, severity: Severity, shape: Shape) -> Finding {
    Finding {
        id,
        rule,
        severity,
        title: String::new(),
        amount: String::new(),
        weight: 0.0,
        shape,
        facts: Vec::new(),
        suspects: Vec::new(),
        next: None,
        told: Vec::new(),
        cells: Vec::new(),
        hop: None,
    }
}

/// `rank`, `switch`, `socket`, `host`.
pub const fn level(level: Level) -> &'static str {
    match level {
        Level::Rank => "rank",
        Level::Switch => "switch",
        Level::Socket => "socket",
        Level::Host => "host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_exact_or_nothing() {
        for (share, begins) in
            [(0.5, Some("just half")), (0.48, Some("just half")), (0.26, Some("just a quarter")), (0.12, Some("just an"))]
        {
            assert_eq!(step(share).map(|say| say.starts_with(begins.unwrap())), Some(true), "{share}");
        }
        for share in [0.9, 0.67, 0.4, 0.3, 0.2, 0.1] {
            assert_eq!(step(share), None, "{share}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (percent(0.462), percent(0.036), times(6.82), times(14.9)),
            ("46 %".into(), "3.6 %".into(), "6.8 ×".into(), "15 ×".into())
        );
        assert_eq!((range([5.5e9, 6e9, 3.6e9].into_iter()), range([54e9, 54e9].into_iter())), ("3.60 to 6.00".into(), "54.0".into()));
    }
}
