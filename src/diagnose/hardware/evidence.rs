//! What was measured where a fact of the hardware says that it should show.

use std::collections::{BTreeMap, HashSet};

use crate::diagnose::pairs::usual::Usual;
use crate::diagnose::{Fact, Finding, Measured, PairSeen, Severity, Shape, View, Ways};
use crate::fit::median;
use crate::topology::{Level, Unit};
use crate::units::format_gbps;

/// Most cells that a finding lights: the slowest.
const MOST_CELLS: usize = 4096;
/// From this part of a class on, its other pairs tell what is usual, not its median.
const MANY: f64 = 0.2;
/// A rate below this share of the others is slower than chance makes it.
pub const SLOWER: f64 = 0.9;
/// A rate this much above what a link says it lets through is no noise.
pub const BEYOND: f64 = 1.02;

/// A class that is struck as a whole is its own yardstick: its pairs give what is usual in it, and one that gives less has
/// something else.
const NEARLY: f64 = 0.99;

/// Pairs that a fact concerns, and how they do.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// slowest against its class first; only those with a rate
    pub pairs: Vec<(usize, usize)>,
    /// median rate, bytes per second
    pub rate: f64,
    /// fastest rate, bytes per second
    pub best: f64,
    /// median of the rate over what the other pairs of the same class give; NaN where there are none
    pub of_others: f64,
    /// median of the rate over what the hardware should give; NaN where nothing tells
    pub of_expected: f64,
}

impl Cells {
    /// Of these pairs, those that were measured; `None` if none was.
    pub fn of(measured: &Measured, pairs: impl IntoIterator<Item = (usize, usize)>) -> Option<Self> {
        let set: HashSet<(usize, usize)> = pairs.into_iter().filter(|&(from, to)| measured.rate(from, to).is_some()).collect();
        let seen = || set.iter().filter_map(|&(from, to)| measured.peer.get(from, to));
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for pair in seen() {
            *counts.entry(pair.class).or_default() += 1;
        }
        let usual: BTreeMap<u16, f64> = counts
            .into_iter()
            .map(|(class, count)| {
                let all = &measured.classes[usize::from(class)];
                if (count as f64) < MANY * all.count as f64 {
                    return (class, all.usual);
                }
                let others = measured.peer.iter().filter(|pair| pair.class == class && pair.rate.is_finite());
                let others: Vec<f64> =
                    others.filter(|pair| !set.contains(&(pair.from as usize, pair.to as usize))).map(|pair| pair.rate).collect();
                (class, Usual::of(others).value)
            })
            .collect();
        let share = |pair: &PairSeen| pair.rate / usual.get(&pair.class).copied().unwrap_or(f64::NAN);
        let of = |value: &dyn Fn(&PairSeen) -> f64| median(&mut seen().map(value).filter(|value| value.is_finite()).collect::<Vec<f64>>());
        let mut order: Vec<(f64, (usize, usize))> =
            seen().map(|pair| (pair.rate / measured.class(pair).usual, (pair.from as usize, pair.to as usize))).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        (!order.is_empty()).then(|| Self {
            pairs: order.into_iter().map(|(_, pair)| pair).collect(),
            rate: of(&|pair| pair.rate),
            best: seen().map(|pair| pair.rate).fold(0.0, f64::max),
            of_others: of(&share),
            of_expected: of(&|pair| pair.rate / pair.expected),
        })
    }

    /// How much is left: of what others of the class give, else of what the hardware should.
    pub fn share(&self) -> f64 {
        if self.of_others.is_nan() { self.of_expected } else { self.of_others }
    }

    /// True if they are slow by what is known of them.
    pub fn slow(&self) -> bool {
        self.share() < SLOWER
    }

    /// `12 pairs through it give 13.2 GB/s, 50 % of others like them, 49 % of what they should`.
    pub fn fact(&self, what: &str) -> Fact {
        let count = self.pairs.len();
        let (many, one) = if count == 1 { ("", "s") } else { ("s", "") };
        let given = format!("{count} pair{many} {what} give{one} {} GB/s", format_gbps(self.rate));
        let shares = [(self.of_others, "of others like them"), (self.of_expected, "of what the hardware should give")];
        let shares = shares.into_iter().filter(|(share, _)| share.is_finite()).map(|(share, of)| format!("{:.0} % {of}", 100.0 * share));
        let say = std::iter::once(given).chain(shares).collect::<Vec<_>>().join(", ");
        Fact { say, pairs: self.cells(), together: Vec::new() }
    }

    /// Those to light.
    pub fn cells(&self) -> Vec<(usize, usize)> {
        self.pairs.iter().take(MOST_CELLS).copied().collect()
    }

    /// How much was lost over all of them, in cells.
    pub fn weight(&self) -> f64 {
        let share = self.share();
        if share.is_finite() { self.pairs.len() as f64 * (1.0 - share).max(0.0) } else { 0.0 }
    }

    /// Claim them all: whole classes as such, the rest one by one.
    pub fn claim(&self, view: &mut View<'_>) {
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        let class = |&(from, to): &(usize, usize)| view.measured.peer.get(from, to).map(|pair| pair.class);
        for class in self.pairs.iter().filter_map(class) {
            *counts.entry(class).or_default() += 1;
        }
        counts.retain(|&class, count| *count as f64 >= 0.95 * view.measured.classes[usize::from(class)].count as f64);
        for &class in counts.keys() {
            view.claims.class(class, NEARLY);
        }
        for &(from, to) in &self.pairs {
            let class = view.measured.peer.get(from, to).map(|pair| pair.class);
            if !class.is_some_and(|class| counts.contains_key(&class)) {
                view.claims.pair(from, to);
            }
        }
    }
}

/// Claim all transfers of some ranks with others at this share: as one unit where they are one.
pub fn claim_ranks(view: &mut View<'_>, ranks: &[usize], share: f64) {
    for unit in units_of(view.measured, ranks) {
        view.claims.unit(unit, Ways::Both, share);
    }
}

/// The one group that these ranks are, else each of them.
pub fn units_of(measured: &Measured, ranks: &[usize]) -> Vec<Unit> {
    let whole = Level::ALL.into_iter().find_map(|level| {
        let unit = measured.units.unit(level, *ranks.first()?)?;
        (measured.units.members(unit) == ranks).then_some(unit)
    });
    whole.map_or_else(|| ranks.iter().filter_map(|&rank| measured.units.unit(Level::Rank, rank)).collect(), |unit| vec![unit])
}

/// `50 %`; empty where nothing tells.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", 100.0 * share) } else { String::new() }
}

/// A sentence without measurements of its own.
pub fn said(say: impl Into<String>) -> Fact {
    Fact { say: say.into(), pairs: Vec::new(), together: Vec::new() }
}

/// A finding with nothing but its head.
pub fn finding(rule: &'static str, id: String, severity: Severity, title: String, shape: Shape) -> Finding {
    Finding {
        id,
        rule,
        severity,
        title,
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
