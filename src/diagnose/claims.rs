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

    /// The lowest share that what was claimed explains for a pair, 1 where nothing does; 0 for a pair claimed by itself.
    pub fn share(&self, units: &Units, class: u16, from: usize, to: usize) -> f64 {
        if self.pairs.contains(&(from, to)) {
            return 0.0;
        }
        let mut least = self.classes.get(&class).copied().unwrap_or(1.0);
        if self.units.is_empty() && self.between.is_empty() {
            return least;
        }
        for level in crate::topology::Level::ALL {
            let (a, b) = (units.unit(level, from), units.unit(level, to));
            if a == b {
                continue;
            }
            let of = |unit: Option<Unit>, ways| unit.and_then(|unit| self.units.get(&(unit, ways)).copied());
            for share in [of(a, Ways::Sends), of(a, Ways::Both), of(b, Ways::Receives), of(b, Ways::Both)].into_iter().flatten() {
                least = least.min(share);
            }
            if let (Some(a), Some(b)) = (a, b)
                && let Some(&share) = self.between.get(&(a, b))
            {
                least = least.min(share);
            }
        }
        least
    }

    /// True if what was claimed explains that a pair goes at this share, a tenth more or less.
    pub fn explain(&self, units: &Units, class: u16, from: usize, to: usize, share: f64) -> bool {
        let least = self.share(units, class, from, to);
        least < 1.0 && share >= least * 0.9
    }
}
