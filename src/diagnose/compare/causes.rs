//! Many things that changed -> few causes: what explains most comes first.

use std::collections::HashMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Place;
use super::evidence::{Item, Kind};
use crate::topology::Level;

/// Share of a group that must have moved alike for it to be the cause.
const ALIKE: f64 = 0.75;
/// Below so many standard deviations nothing of a large family is told; saves the work.
const NEVER: f64 = 2.5;

/// What is told of a family of things.
pub(super) struct Family {
    /// least change, |ln|
    pub least: f64,
    /// false discovery rate
    pub q: f64,
}

/// A cause.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub place: Place,
    /// indices of the items that moved with it
    pub members: Vec<usize>,
    /// ln of the ratio, and its variance
    pub d: f64,
    pub var: f64,
    pub p: f64,
}

/// What is known of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// all of it, explained or not
    total: usize,
    /// what nothing explains yet: number, sum of weights, and of weights times change
    open: usize,
    weight: f64,
    sum: f64,
    /// of those, how many moved with the mean
    alike: usize,
}

impl Tally {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// What it explains: the fall of the sum of squares.
    fn gain(&self) -> f64 {
        self.sum * self.sum / self.weight
    }
}

/// Two-sided probability of a value so many standard deviations off.
struct Chance(Option<StudentsT>);

impl Chance {
    fn new(dof: f64) -> Self {
        Self(StudentsT::new(0.0, 1.0, dof).ok())
    }

    fn of(&self, d: f64, var: f64) -> f64 {
        let z = d.abs() / var.sqrt();
        match &self.0 {
            Some(student) if z >= NEVER => 2.0 * student.sf(z),
            _ => 1.0,
        }
    }
}

/// Which of groups of the same members is told: the one that blames neither side, the one that a person knows better.
fn order(place: &Place) -> usize {
    let known = |level| match level {
        Level::Rank => 0,
        Level::Host => 1,
        Level::Socket => 2,
        Level::Switch => 3,
    };
    match place {
        Place::All => 0,
        Place::Class { .. } => 1,
        Place::Between { from, .. } => 2 + known(from.level),
        Place::Unit { unit, .. } => 6 + known(unit.level),
        Place::Pair { .. } | Place::Together { .. } => 10,
    }
}

/// True if a change goes with a group's: the same way, and not more than twice or less than half as much.
fn goes_with(d: f64, mean: f64) -> bool {
    let share = d / mean;
    (0.5..=2.0).contains(&share)
}

/// The causes of what changed in a family: groups as long as one explains what is left, then single things.
pub(super) fn causes(kind: &Kind, family: &Family, places: &dyn Fn(&Item, &mut Vec<Place>), single: &dyn Fn(&Item) -> Place) -> Vec<Found> {
    let items = &kind.items;
    let chance = Chance::new(kind.dof);
    let mut open = vec![true; items.len()];
    let mut found = Vec::new();
    // Half of the least mean is what a member needs.
    while items.iter().zip(&open).filter(|(item, open)| **open && item.d.abs() >= family.least / 2.0).count() > 1 {
        let Some(group) = best(items, &open, family, &chance, places) else { break };
        group.members.iter().for_each(|&at| open[at] = false);
        found.push(group);
    }
    let mut rest: Vec<(f64, usize)> =
        (0..items.len()).filter(|&at| open[at]).map(|at| (chance.of(items[at].d, items[at].var), at)).filter(|&(p, _)| p < 1.0).collect();
    rest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let bound = |at: usize| family.q * (at + 1) as f64 / items.len() as f64;
    let told = rest.iter().enumerate().rposition(|(at, &(p, _))| p <= bound(at)).map_or(0, |last| last + 1);
    for &(p, at) in rest[..told].iter().filter(|&&(_, at)| items[at].d.abs() >= family.least) {
        found.push(Found { place: single(&items[at]), members: vec![at], d: items[at].d, var: items[at].var, p });
    }
    found
}

/// The group that explains most of what is left, if one does.
fn best(items: &[Item], open: &[bool], family: &Family, chance: &Chance, places: &dyn Fn(&Item, &mut Vec<Place>)) -> Option<Found> {
    let mut own = Vec::new();
    let mut all: HashMap<Place, Tally> = HashMap::new();
    for (item, &open) in items.iter().zip(open) {
        own.clear();
        places(item, &mut own);
        for &place in &own {
            let tally = all.entry(place).or_default();
            tally.total += 1;
            if open {
                tally.open += 1;
                tally.weight += 1.0 / item.var;
                tally.sum += item.d / item.var;
            }
        }
    }
    let tests = all.len() as f64;
    all.retain(|_, tally| {
        let enough = tally.open > 1 && tally.open as f64 >= ALIKE * tally.total as f64 && tally.mean().abs() >= family.least;
        enough && chance.of(tally.mean(), 1.0 / tally.weight) * tests <= family.q
    });
    for (item, _) in items.iter().zip(open).filter(|(_, open)| **open) {
        own.clear();
        places(item, &mut own);
        for place in &own {
            if let Some(tally) = all.get_mut(place)
                && goes_with(item.d, tally.mean())
            {
                tally.alike += 1;
            }
        }
    }
    all.retain(|_, tally| tally.alike as f64 >= ALIKE * tally.total as f64);
    let (&place, tally) =
        all.iter().max_by(|a, b| a.1.gain().total_cmp(&b.1.gain()).then_with(|| (order(b.0), b.0).cmp(&(order(a.0), a.0))))?;
    let mean = tally.mean();
    let mut members = Vec::new();
    for (at, item) in items.iter().enumerate().filter(|&(at, item)| open[at] && goes_with(item.d, mean)) {
        own.clear();
        places(item, &mut own);
        if own.contains(&place) {
            members.push(at);
        }
    }
    let weight: f64 = members.iter().map(|&at| 1.0 / items[at].var).sum();
    let d = members.iter().map(|&at| items[at].d / items[at].var).sum::<f64>() / weight;
    Some(Found { place, members, d, var: 1.0 / weight, p: chance.of(d, 1.0 / weight) })
}
