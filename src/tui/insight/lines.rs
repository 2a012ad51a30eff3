use std::collections::BTreeMap;

use super::known::Known;
use crate::topology::PathClass;

/// What a rank does with the bytes: a row of the matrix, or a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Sends,
    Receives,
}

impl Way {
    pub const BOTH: [Self; 2] = [Self::Sends, Self::Receives];

    /// Sender and receiver, where `rank` does this with `other`.
    pub const fn pair(self, rank: usize, other: usize) -> (usize, usize) {
        match self {
            Self::Sends => (rank, other),
            Self::Receives => (other, rank),
        }
    }

    /// What the other rank does.
    pub const fn other(self) -> Self {
        match self {
            Self::Sends => Self::Receives,
            Self::Receives => Self::Sends,
        }
    }
}

/// The cells of one rank, one way and one path class.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    /// largest bandwidth, bytes per second; 0 without cells
    pub best: f64,
    /// cells that have a bandwidth
    pub count: usize,
}

/// Every line, by class and way: `[way][rank]`.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    classes: BTreeMap<PathClass, [Vec<Line>; 2]>,
    /// one more than the largest rank that has a cell
    world: usize,
}

impl Lines {
    /// A cell's bandwidth has changed; `known` has the new one.
    pub fn change(&mut self, known: &Known, class: PathClass, (from, to): (usize, usize), old: Option<f64>, new: Option<f64>) {
        self.world = self.world.max(from + 1).max(to + 1);
        let world = self.world;
        let ways = self.classes.entry(class).or_default();
        for way in Way::BOTH {
            let rank = if way == Way::Sends { from } else { to };
            let lines = &mut ways[way as usize];
            if lines.len() <= rank {
                lines.resize(rank + 1, Line::default());
            }
            let line = &mut lines[rank];
            line.count = line.count + usize::from(new.is_some()) - usize::from(old.is_some());
            let best = new.unwrap_or(0.0);
            if best >= line.best {
                line.best = best;
            } else if old.is_some_and(|old| old >= line.best) {
                let rates = (0..world).filter_map(|other| known.get(way.pair(rank, other)));
                line.best = rates.filter(|(_, of)| *of == class).map(|(rate, _)| rate).fold(0.0, f64::max);
            }
        }
    }

    /// One more than the largest rank that has a cell.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Every line with a cell.
    pub fn iter(&self) -> impl Iterator<Item = (PathClass, Way, usize, Line)> {
        self.classes.iter().flat_map(|(&class, ways)| {
            Way::BOTH.into_iter().flat_map(move |way| {
                let lines = ways[way as usize].iter().enumerate().filter(|(_, line)| line.count > 0);
                lines.map(move |(rank, line)| (class, way, rank, *line))
            })
        })
    }
}
