//! Two measurements -> what changed beyond noise: how they were taken first, then one line a cause.
//!
//! A rate is compared free of latency: the time of a message less that of the smallest one, over all sizes that both have and at
//! which bytes take at least half of the time. How far it may lie off is told by the scatter of the repeats, moderated over pairs
//! of a class (Smyth 2004, "Linear models and empirical Bayes methods"), and widened where pairs scatter between the two by more
//! than their repeats do. Told is what is significant at a false discovery rate of [`FALSE`] (Benjamini & Hochberg 1995: among a
//! million pairs the familywise bound would hide what a person wants to see, and where nothing changed both are the same) and by
//! [`LEAST_RATE`] or more: a sweep asks for intervals of 5 %, so that less is not promised. Groups that moved alike are one cause.

mod causes;
mod conditions;
mod evidence;
mod findings;
mod ranks;
mod say;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::Serialize;

use super::{Diagnosis, Measured, Selected, Severity, Ways, diagnose};
use crate::fit::Interval;
use crate::topology::{Level, Unit};
use causes::{Family, Found, Places, causes};
use evidence::{Item, Kind};

/// Share of what is told that may be chance.
pub const FALSE: f64 = 0.001;
/// Least change of a rate that is told, as a share.
pub const LEAST_RATE: f64 = 0.05;
/// The same of a small message's time, which depends on more.
pub const LEAST_LATENCY: f64 = 0.1;
/// Kinds of change, which share [`FALSE`].
const FAMILIES: f64 = 6.0;

/// Why two measurements cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    #[error("no rank is in both: one ran on {before}, the other on {after}; compare runs on the same hosts")]
    NoCommonRank { before: String, after: String },
    #[error("nothing was measured in both at the same size; measure both with the same patterns and sizes (sweep --patterns --sizes)")]
    NothingCommon,
    #[error("neither tells its noise: it takes 4 repeats or more of a pair in both (--repeats 6)")]
    TooFewRepeats,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// no answer or wrong bytes where there was a rate, or the other way round
    State,
    /// bandwidth of pairs alone
    Rate,
    /// bandwidth of fans, relays and sets
    Together,
    /// bandwidth while both directions are busy
    Duplex,
    /// bandwidth of copies inside a rank
    Local,
    /// time of a small message
    Latency,
}

/// Where. Ranks are numbered as in the later measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Place {
    /// all that was compared
    All,
    /// index in [`Measured::classes`]
    Class {
        class: u16,
    },
    /// all from one group to another
    Between {
        from: Unit,
        to: Unit,
    },
    /// all that a group sends to others, receives from others, or both
    Unit {
        unit: Unit,
        ways: Ways,
    },
    Pair {
        from: usize,
        to: usize,
    },
    /// index in [`Measured::together`]
    Together {
        index: usize,
    },
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    pub what: What,
    pub place: Place,
    /// in one line
    pub say: String,
    /// bandwidth after over before; of latency speed likewise, below 1 it takes longer; NaN of a state
    pub ratio: f64,
    /// of the ratio, 95 %
    pub interval: Option<Interval>,
    /// probability of as much by chance
    pub p: f64,
    /// cells of the matrix, sender first; of copies the rank twice
    pub cells: Vec<(usize, usize)>,
}

/// A finding that only one of the two has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingChange {
    pub id: String,
    pub title: String,
    pub severity: Severity,
    /// the later measurement has it
    pub came: bool,
    /// what it rests on changed, too; else it stands at the edge of what is told
    pub changed: bool,
}

/// What changed between two measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// of each rank of the later one its number in the earlier one
    pub ranks: Vec<Option<usize>>,
    /// how the two were taken, and on what, as far as it differs: rates may differ for that reason
    pub conditions: Vec<String>,
    /// gravest first: slower before faster, wide before narrow
    pub changes: Vec<Change>,
    /// of warning level and above
    pub findings: Vec<FindingChange>,
    /// pairs that were compared
    pub compared: usize,
    /// pairs measured in both whose noise is not known
    pub untold: usize,
    /// size at which rates are shown, bytes
    pub bytes: u64,
    /// `[from * world + to]`, NaN where nothing was compared
    #[serde(skip)]
    ratios: Vec<f32>,
    #[serde(skip)]
    beyond: HashSet<(usize, usize)>,
}

impl Changes {
    /// True if anything changed beyond noise.
    pub fn any(&self) -> bool {
        !self.changes.is_empty() || self.findings.iter().any(|finding| finding.changed)
    }

    /// Number of ranks of the later measurement.
    pub fn world(&self) -> usize {
        self.ranks.len()
    }

    /// Bandwidth of a pair alone, after over before.
    pub fn ratio(&self, from: usize, to: usize) -> Option<f64> {
        let ratio = self.ratios.get(from * self.world() + to).filter(|_| to < self.world())?;
        Some(f64::from(*ratio)).filter(|ratio| ratio.is_finite())
    }

    /// True if a pair's rate changed beyond noise, or is part of what did.
    pub fn beyond(&self, from: usize, to: usize) -> bool {
        self.beyond.contains(&(from, to))
    }
}

/// What changed from one measurement to a later one.
pub fn compare(before: &Measured, after: &Measured) -> Result<Changes, CompareError> {
    compare_diagnosed((before, &diagnose(before)), (after, &diagnose(after)))
}

/// The same for those who know the findings already.
pub fn compare_diagnosed(before: (&Measured, &Diagnosis), after: (&Measured, &Diagnosis)) -> Result<Changes, CompareError> {
    let (old, new) = (before.0, after.0);
    let ranks = ranks::common(old, new)?;
    let world = new.world();
    let peer = evidence::pairs(old, new, &ranks, Selected::Peer);
    let duplex = evidence::pairs(old, new, &ranks, Selected::Duplex);
    let local = evidence::pairs(old, new, &ranks, Selected::Local);
    let together = evidence::together(old, new, &ranks);
    let all = [&peer.rates, &duplex.rates, &local.rates, &together.rates];
    let untold = peer.untold + duplex.untold + local.untold + together.untold;
    let state = evidence::states(old, new, &ranks);
    if all.iter().all(|kind| kind.items.is_empty()) && state.is_empty() {
        return Err(if untold > 0 { CompareError::TooFewRepeats } else { CompareError::NothingCommon });
    }
    let family = |least: f64| Family { least: (1.0 - least).ln().abs(), q: FALSE / FAMILIES };
    let find = |kind: &Kind, least: f64, places: &Places<'_>, single: &dyn Fn(&Item) -> Place| causes(kind, &family(least), places, single);
    let of_pair = |item: &Item| Place::Pair { from: item.from, to: item.to };
    let between = |item: &Item, places: &mut Vec<Place>| places_of_pair(new, item, places);
    let alone = |item: &Item, places: &mut Vec<Place>| {
        places.push(Place::All);
        places.extend(new.units.unit(Level::Host, item.from).map(|unit| Place::Unit { unit, ways: Ways::Both }));
    };
    let rooted = |item: &Item, places: &mut Vec<Place>| {
        places.push(Place::All);
        places.extend(new.units.unit(Level::Rank, item.from).map(|unit| Place::Unit { unit, ways: Ways::Both }));
    };
    let of_together = |item: &Item| Place::Together { index: item.to };
    let mut changes: Vec<Change> = say::states(state);
    let mut moved: HashSet<(usize, usize, bool)> = HashSet::new();
    let mut tell = |what: What, kind: &Kind, found: Vec<Found>| {
        for found in found {
            changes.push(say::change((old, new), &ranks, what, kind, &found));
        }
    };
    let rates = find(&peer.rates, LEAST_RATE, &between, &of_pair);
    for item in rates.iter().flat_map(|found| &found.members).map(|&at| &peer.rates.items[at]) {
        moved.insert((item.from, item.to, item.d > 0.0));
    }
    tell(What::Rate, &peer.rates, rates);
    // What a pair that changed explains of measurements that it takes part in is not told again.
    let same = |from: usize, to: usize, d: f64| moved.contains(&(from, to, d > 0.0));
    let duplex_rates = duplex.rates.without(|item| same(item.from, item.to, item.d) || same(item.to, item.from, item.d));
    let together_rates = together.rates.without(|item| {
        let flows = new.together.get(item.to).map_or(&[][..], |own| &own.flows);
        flows.iter().any(|&(from, to)| same(from, to, item.d))
    });
    tell(What::Duplex, &duplex_rates, find(&duplex_rates, LEAST_RATE, &between, &of_pair));
    tell(What::Local, &local.rates, find(&local.rates, LEAST_RATE, &alone, &of_pair));
    let fans = find(&together_rates, LEAST_RATE, &rooted, &of_together);
    let moved_together: HashSet<usize> = fans.iter().flat_map(|found| &found.members).map(|&at| together_rates.items[at].to).collect();
    tell(What::Together, &together_rates, fans);
    tell(What::Latency, &peer.latencies, find(&peer.latencies, LEAST_LATENCY, &between, &of_pair));
    changes.sort_by(|a, b| say::gravity(b).total_cmp(&say::gravity(a)).then_with(|| a.say.cmp(&b.say)));
    let mut ratios = vec![f32::NAN; world * world];
    for item in &peer.rates.items {
        ratios[item.from * world + item.to] = item.d.exp() as f32;
    }
    let beyond: HashSet<(usize, usize)> = moved.iter().map(|&(from, to, _)| (from, to)).collect();
    Ok(Changes {
        conditions: conditions::told(old, new, &ranks),
        findings: findings::told(before.1, after.1, &ranks, &changes, &moved_together),
        changes,
        compared: peer.rates.items.len(),
        untold,
        bytes: new.bytes,
        ratios,
        beyond,
        ranks,
    })
}

/// The groups that a pair belongs to, from wide to narrow.
fn places_of_pair(new: &Measured, item: &Item, places: &mut Vec<Place>) {
    places.push(Place::All);
    places.push(Place::Class { class: item.class });
    for level in Level::ALL.into_iter().rev() {
        let (from, to) = (new.units.unit(level, item.from), new.units.unit(level, item.to));
        if from == to {
            continue;
        }
        if let (Some(from), Some(to)) = (from, to)
            && level != Level::Rank
        {
            places.push(Place::Between { from, to });
        }
        for (unit, ways) in [(from, Ways::Sends), (to, Ways::Receives)] {
            let Some(unit) = unit else { continue };
            places.push(Place::Unit { unit, ways: Ways::Both });
            places.push(Place::Unit { unit, ways });
        }
    }
}
