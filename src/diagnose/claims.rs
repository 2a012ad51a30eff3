//! What earlier rules have explained, so that later ones do not tell it again.

use std::collections::{HashMap, HashSet};

use crate::topology::{Unit, Units};

use super::Ways;

/// Pairs that are spoken for, with the share of the usual rate that the explanation leaves them.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    units: HashMap<(Unit, Ways), f64>,
    between: HashMap<(Unit, Unit), f64>,
    pairs: HashSet<(usize, usize)>,
    classes: HashMap<u16, f64>,
    one_sided: HashSet<(Unit, Ways)>,
}

impl Claims {
    /// All of a group's transfers with others go at this share.
    pub fn unit(&mut self, unit: Unit, ways: Ways, share: f64) {
        self.units.insert((unit, ways), share);
    }

    /// All from one group to another.
    pub fn between(&mut self, from: Unit, to: Unit, share: f64) {
        self.between.insert((from, to), share);
    }

    pub fn pair(&mut self, from: usize, to: usize) {
        self.pairs.insert((from, to));
    }

    /// All pairs of a class.
    pub fn class(&mut self, class: u16, share: f64) {
        self.classes.insert(class, share);
    }

    /// The share at which a class was claimed as a whole, 1 if it was not.
    pub fn share_of_class(&self, class: u16) -> f64 {
        self.classes.get(&class).copied().unwrap_or(1.0)
    }

    /// A claimed unit is slow one way though its own link is not the limit: where it is slow is told, why one direction is slow
    /// is open.
    pub fn one_sided(&mut self, unit: Unit, ways: Ways) {
        self.one_sided.insert((unit, ways));
    }

    /// True if a pair is a claimed unit's that is [`Self::one_sided`].
    pub fn open(&self, units: &Units, from: usize, to: usize) -> bool {
        if self.one_sided.is_empty() {
            return false;
        }
        let of = |rank, ways| {
            let unit = |level| units.unit(level, rank);
            crate::topology::Level::ALL.into_iter().filter_map(unit).any(|unit| self.one_sided.contains(&(unit, ways)))
        };
        of(from, Ways::Sends) || of(to, Ways::Receives)
    }

    /// The lowest share that what was claimed explains for a pair, 1 where nothing does; 0 for a pair claimed by itself.
    pub fn share(&self, units: &Units, class: u16, from: usize, to: usize) -> f64 {
        if self.pairs.contains(&(from, to)) {
            return 0.0;
        }
        let mut least = self.share_of_class(class);
        if self.units.is_empty() && self.between.is_empty() {
            return least;
        }
        // Of the sending end and of the receiving one: a pair between two slow ones has both losses.
        let mut ends = [1.0_f64; 2];
        for level in crate::topology::Level::ALL {
            let (a, b) = (units.unit(level, from), units.unit(level, to));
            if a == b {
                continue;
            }
            for (end, (unit, ways)) in ends.iter_mut().zip([(a, Ways::Sends), (b, Ways::Receives)]) {
                let of = |ways| unit.and_then(|unit| self.units.get(&(unit, ways)).copied());
                *end = [of(ways), of(Ways::Both)].into_iter().flatten().fold(*end, f64::min);
            }
            if let (Some(a), Some(b)) = (a, b)
                && let Some(&share) = self.between.get(&(a, b))
            {
                least = least.min(share);
            }
        }
        least.min(ends[0] * ends[1])
    }

    /// True if what was claimed explains that a pair goes at this share, a tenth more or less.
    pub fn explain(&self, units: &Units, class: u16, from: usize, to: usize, share: f64) -> bool {
        let least = self.share(units, class, from, to);
        least < 1.0 && share >= least * 0.9
    }
}
