//! The fewest parts of a machine that explain which cells are slow: ranks, switches, sockets and hosts, and ways between two of
//! them.
//!
//! A greedy cover. A part gains what its cells would cost one by one, less by how far each is from the part's own level, less
//! one for each good cell that it would have to slow, less one for itself. The part with the largest gain is taken, its cells
//! are done with, and so on until none is worth it. In O(slow cells + cells of the parts that are looked at).

use std::collections::HashMap;

use crate::diagnose::Ways;
use crate::topology::{Level, Unit, Units};

/// A cell further from its part's level than this, in ln(share), is not explained by it: a factor of 1.5.
pub const ALIKE: f64 = 0.4;

/// A part's cells are slow to this share at least.
const MOST: f64 = 0.8;

/// A part must save this many findings.
const WORTH: f64 = 0.5;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub from: u32,
    pub to: u32,
    pub class: u16,
    /// ln of the share of what is usual
    pub log: f32,
    pub slow: bool,
}

impl Cell {
    pub const fn ends(&self) -> (usize, usize) {
        (self.from as usize, self.to as usize)
    }
}

/// What is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Unit { unit: Unit, ways: Ways },
    Between { from: Unit, to: Unit },
}

/// A part that explains slow cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub place: Place,
    /// its slow cells, slowest first
    pub cells: Vec<Cell>,
    /// cells of the same classes that are good although they are its own
    pub good: usize,
    /// classes in which it is slow, ascending
    pub classes: Vec<u16>,
}

impl Part {
    /// Median share of its cells.
    pub fn share(&self) -> f64 {
        f64::from(self.cells.get(self.cells.len() / 2).map_or(0.0, |cell| cell.log)).exp()
    }

    /// Sum of what its cells lost, in ln(share): what findings are sorted by.
    pub fn loss(&self) -> f64 {
        self.cells.iter().map(|cell| -f64::from(cell.log)).sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Guess {
    Unit(Unit),
    Between(Unit, Unit),
}

/// Cells by sender and by receiver.
struct Table<'a> {
    units: &'a Units,
    cells: &'a [Cell],
    rows: Vec<usize>,
    /// indices of cells, by receiver
    by_to: Vec<u32>,
    columns: Vec<usize>,
    /// `[level][rank]`
    of: Vec<Vec<Option<Unit>>>,
    /// cells that are slow and not explained yet
    open: Vec<bool>,
    /// cells that a part explains
    done: Vec<bool>,
}

/// What a guess would explain.
struct Worth {
    gain: f64,
    /// indices of its slow cells
    slow: Vec<usize>,
    /// indices of its other cells in those classes
    good: Vec<usize>,
    classes: Vec<u16>,
}

impl<'a> Table<'a> {
    fn new(units: &'a Units, cells: &'a [Cell]) -> Self {
        let world = units.world();
        let rows = (0..=world).map(|from| cells.partition_point(|cell| (cell.from as usize) < from)).collect();
        let mut columns = vec![0; world + 1];
        for cell in cells {
            columns[cell.to as usize + 1] += 1;
        }
        for to in 0..world {
            columns[to + 1] += columns[to];
        }
        let (mut next, mut by_to) = (columns.clone(), vec![0; cells.len()]);
        for (at, cell) in cells.iter().enumerate() {
            let next = &mut next[cell.to as usize];
            by_to[*next] = at as u32;
            *next += 1;
        }
        // A group of one rank is that rank; what is within a group of two is a pair.
        let unit = |level, rank| units.unit(level, rank).filter(|&unit| level == Level::Rank || units.members(unit).len() > 1);
        let of = Level::ALL.iter().map(|&level| (0..world).map(|rank| unit(level, rank)).collect()).collect();
        let open = cells.iter().map(|cell| cell.slow).collect();
        Self { units, cells, rows, by_to, columns, of, open, done: vec![false; cells.len()] }
    }

    fn unit(&self, level: Level, rank: u32) -> Option<Unit> {
        self.of[level as usize][rank as usize]
    }

    /// Everything that would explain a cell.
    fn guesses(&self, cell: &Cell, mut each: impl FnMut(Guess)) {
        let (a, b) = (self.unit(Level::Rank, cell.from), self.unit(Level::Rank, cell.to));
        for level in Level::ALL {
            let (from, to) = (self.unit(level, cell.from), self.unit(level, cell.to));
            if from != to {
                from.into_iter().chain(to).for_each(|unit| each(Guess::Unit(unit)));
            }
            if level == Level::Rank {
                continue;
            }
            if let (Some(from), Some(to)) = (from, to)
                && (from != to || self.units.members(from).len() > 2)
            {
                each(Guess::Between(from, to));
            }
            if let (Some(a), Some(to)) = (a, to) {
                each(Guess::Between(a, to));
            }
            if let (Some(from), Some(b)) = (from, b) {
                each(Guess::Between(from, b));
            }
        }
    }

    fn count(&self) -> HashMap<Guess, u32> {
        let mut counts = HashMap::new();
        for cell in self.cells.iter().filter(|cell| cell.slow) {
            self.guesses(cell, |guess| *counts.entry(guess).or_default() += 1);
        }
        counts
    }

    /// Cells from or to a group's ranks.
    fn outward(&self, unit: Unit, sends: bool) -> Vec<usize> {
        let inside = |rank: u32| self.unit(unit.level, rank) == Some(unit);
        let mut found = Vec::new();
        for &rank in self.units.members(unit) {
            if sends {
                found.extend((self.rows[rank]..self.rows[rank + 1]).filter(|&at| !inside(self.cells[at].to)));
            } else {
                let column = &self.by_to[self.columns[rank]..self.columns[rank + 1]];
                found.extend(column.iter().map(|&at| at as usize).filter(|&at| !inside(self.cells[at].from)));
            }
        }
        found
    }

    fn between(&self, from: Unit, to: Unit) -> Vec<usize> {
        let mut found = Vec::new();
        for &a in self.units.members(from) {
            let row = &self.cells[self.rows[a]..self.rows[a + 1]];
            for &b in self.units.members(to) {
                if let Ok(at) = row.binary_search_by_key(&b, |cell| cell.to as usize) {
                    found.push(self.rows[a] + at);
                }
            }
        }
        found
    }

    /// What a set of cells would gain as one part; `partner` tells the groups, of which there must be `partners`.
    fn worth(&self, covered: &[usize], partners: usize, partner: impl Fn(&Cell) -> Option<Unit>) -> Option<Worth> {
        let mut counts: Vec<(u16, usize, usize)> = Vec::new();
        for &at in covered.iter().filter(|&&at| !self.done[at]) {
            let cell = &self.cells[at];
            let slot = counts.iter().position(|&(class, ..)| class == cell.class).unwrap_or_else(|| {
                counts.push((cell.class, 0, 0));
                counts.len() - 1
            });
            counts[slot].1 += 1;
            counts[slot].2 += usize::from(self.open[at]);
        }
        counts.retain(|&(_, all, slow)| slow as f64 >= MOST * all as f64);
        let mut classes: Vec<u16> = counts.iter().map(|&(class, ..)| class).collect();
        classes.sort_unstable();
        let own = |at: &usize| !self.done[*at] && classes.contains(&self.cells[*at].class);
        let (slow, good): (Vec<usize>, Vec<usize>) = covered.iter().copied().filter(own).partition(|&at| self.open[at]);
        if slow.len() < 2 {
            return None;
        }
        let mut groups: Vec<Option<Unit>> = slow.iter().map(|&at| partner(&self.cells[at])).collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.len() < partners {
            return None;
        }
        let mut logs: Vec<f64> = slow.iter().map(|&at| f64::from(self.cells[at].log)).collect();
        let level = crate::fit::median(&mut logs);
        let fits: f64 = logs.iter().map(|log| 1.0 - ((log - level).abs() / ALIKE).min(1.0)).sum();
        Some(Worth { gain: fits - good.len() as f64 - 1.0, slow, good, classes })
    }

    /// True if no member of a group does well by itself: else it is the others, not the group.
    fn shared(&self, worth: &Worth, unit: Unit, end: impl Fn(&Cell) -> u32) -> bool {
        if unit.level == Level::Rank {
            return true;
        }
        let members = self.units.members(unit);
        let count = |cells: &[usize]| {
            let mut counts = vec![0usize; members.len()];
            for &at in cells {
                if let Ok(member) = members.binary_search(&(end(&self.cells[at]) as usize)) {
                    counts[member] += 1;
                }
            }
            counts
        };
        count(&worth.slow).into_iter().zip(count(&worth.good)).all(|(slow, good)| slow >= good)
    }

    fn judge(&self, guess: Guess) -> Option<(Place, Worth)> {
        match guess {
            Guess::Between(from, to) => {
                let worth = self.worth(&self.between(from, to), 1, |_| None)?;
                let shared = self.shared(&worth, from, |cell| cell.from) && self.shared(&worth, to, |cell| cell.to);
                shared.then_some((Place::Between { from, to }, worth))
            }
            Guess::Unit(unit) => {
                let level = unit.level;
                let sends = self.worth(&self.outward(unit, true), 2, |cell| self.unit(level, cell.to));
                let sends = sends.filter(|worth| self.shared(worth, unit, |cell| cell.from));
                let receives = self.worth(&self.outward(unit, false), 2, |cell| self.unit(level, cell.from));
                let receives = receives.filter(|worth| self.shared(worth, unit, |cell| cell.to));
                let (ways, worth) = match (sends, receives) {
                    (Some(a), Some(b)) if a.gain > 0.0 && b.gain > 0.0 => {
                        let mut classes = [a.classes, b.classes].concat();
                        classes.sort_unstable();
                        classes.dedup();
                        let (slow, good) = ([a.slow, b.slow].concat(), [a.good, b.good].concat());
                        (Ways::Both, Worth { gain: a.gain + b.gain + 1.0, slow, good, classes })
                    }
                    (Some(a), Some(b)) if b.gain > a.gain => (Ways::Receives, b),
                    (Some(a), _) => (Ways::Sends, a),
                    (None, Some(b)) => (Ways::Receives, b),
                    (None, None) => return None,
                };
                Some((Place::Unit { unit, ways }, worth))
            }
        }
    }
}

/// Parts that explain the slow cells, those that explain most first. `cells` by sender, then receiver, none of them a rank's own.
pub fn cover(units: &Units, cells: &[Cell]) -> Vec<Part> {
    let mut table = Table::new(units, cells);
    let mut counts = table.count();
    let mut parts = Vec::new();
    loop {
        let mut guesses: Vec<(u32, Guess)> =
            counts.iter().filter(|&(_, &count)| count >= 2).map(|(&guess, &count)| (count, guess)).collect();
        // What explains most first; of what explains the same, whole groups before their members, and then a fixed order.
        let coarse = |guess: Guess| match guess {
            Guess::Unit(unit) => (true, unit.level, unit.level),
            Guess::Between(from, to) => (false, from.level, to.level),
        };
        guesses.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| coarse(b.1).cmp(&coarse(a.1))).then_with(|| a.1.cmp(&b.1)));
        let mut best: Option<(Place, Worth)> = None;
        for (count, guess) in guesses {
            let least = best.as_ref().map_or(WORTH, |(_, worth)| worth.gain);
            if f64::from(count) - 1.0 < least {
                break;
            }
            if let Some((place, worth)) = table.judge(guess)
                && (worth.gain > least || (best.is_none() && worth.gain >= least))
            {
                best = Some((place, worth));
            }
        }
        let Some((place, worth)) = best else { return parts };
        for &at in &worth.slow {
            table.guesses(&cells[at], |guess| {
                if let Some(count) = counts.get_mut(&guess) {
                    *count = count.saturating_sub(1);
                }
            });
            table.open[at] = false;
            table.done[at] = true;
        }
        let mut slow: Vec<Cell> = worth.slow.iter().map(|&at| cells[at]).collect();
        slow.sort_by(|a, b| a.log.total_cmp(&b.log).then_with(|| a.ends().cmp(&b.ends())));
        parts.push(Part { place, cells: slow, good: worth.good.len(), classes: worth.classes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Placement, Topology};

    /// 2 hosts of 8 ranks on 2 sockets, one class; slow where told.
    fn found(slow: impl Fn(usize, usize) -> Option<f32>) -> Vec<(Place, usize)> {
        let place = |rank| Placement { rank, host: format!("node{}", rank / 8), numa: Some(rank % 8 / 4), ..Placement::default() };
        let units = Units::of(&Topology::of((0..16).map(place).collect()));
        let mut cells = Vec::new();
        for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let log = slow(from, to);
            let class = u16::from(from / 8 != to / 8);
            cells.push(Cell { from: from as u32, to: to as u32, class, log: log.unwrap_or(0.0), slow: log.is_some() });
        }
        cover(&units, &cells).into_iter().map(|part| (part.place, part.cells.len())).collect()
    }

    const fn unit(level: Level, number: usize) -> Unit {
        Unit { level, number }
    }

    #[test]
    fn a_slow_rank_is_one_part_whichever_way() {
        let rank = unit(Level::Rank, 3);
        assert_eq!(found(|from, _| (from == 3).then_some(-0.7)), [(Place::Unit { unit: rank, ways: Ways::Sends }, 15)]);
        assert_eq!(found(|_, to| (to == 3).then_some(-0.7)), [(Place::Unit { unit: rank, ways: Ways::Receives }, 15)]);
        let both = found(|from, to| (from == 3 || to == 3).then_some(-0.7));
        assert_eq!(both, [(Place::Unit { unit: rank, ways: Ways::Both }, 30)]);
    }

    #[test]
    fn a_way_between_two_groups_is_not_laid_on_either() {
        let (a, b) = (unit(Level::Host, 0), unit(Level::Host, 1));
        assert_eq!(found(|from, to| (from < 8 && to >= 8).then_some(-1.0)), [(Place::Between { from: a, to: b }, 64)]);
        let (a, b) = (unit(Level::Socket, 1), unit(Level::Socket, 2));
        assert_eq!(
            found(|from, to| ((4..8).contains(&from) && (8..12).contains(&to)).then_some(-1.0)),
            [(Place::Between { from: a, to: b }, 16)]
        );
        assert_eq!(
            found(|from, to| (from < 8 && to < 8).then_some(-1.0)),
            [(Place::Between { from: unit(Level::Host, 0), to: unit(Level::Host, 0) }, 56)]
        );
    }

    #[test]
    fn senders_of_different_levels_are_told_apart_from_a_way_between_them() {
        // Two senders, each at its own level, inside a socket of four: not "0 and 1 to 2 and 3".
        let slow = |from, to| (to < 4 && from < 2).then(|| if from == 0 { -1.87 } else { -2.3 - 0.1 * to as f32 });
        let parts = found(slow);
        let ranks = [0, 1].map(|rank| (Place::Unit { unit: unit(Level::Rank, rank), ways: Ways::Sends }, 3));
        // In one class within the host their good cells across sockets speak against it; that is what classes are for.
        assert!(parts.iter().all(|part| !ranks.contains(part)), "{parts:?}");
        let way = |rank| Place::Between { from: unit(Level::Rank, rank), to: unit(Level::Socket, 0) };
        assert_eq!(parts, [(way(0), 3), (way(1), 3)]);
    }

    #[test]
    fn single_cells_are_no_part() {
        assert_eq!(found(|from, to| ((from, to) == (2, 9)).then_some(-1.0)), []);
        assert_eq!(found(|from, to| [(2, 9), (9, 2), (4, 12)].contains(&(from, to)).then_some(-1.0)), []);
    }
}
