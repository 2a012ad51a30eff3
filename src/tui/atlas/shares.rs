use crate::matrix::Metric;
use crate::sample::Pattern;
use crate::session::{Change, Model, SizeCell};
use crate::sweep::Cell;
use crate::topology::{PathLabel, Router};
use crate::tui::insight::Way;
use crate::tui::view::Key;

/// A rank whose best pair stays below this share of what is expected stands out.
pub const SLOW: f64 = 0.8;
/// Kinds of paths, as [`kind`] numbers them.
const KINDS: usize = 8;

/// The pair of a rank that comes nearest to what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// bytes per second
    pub rate: f64,
    /// what the pair should give, bytes per second
    pub expected: f64,
    /// the other rank
    pub other: usize,
}

impl Best {
    pub fn share(&self) -> f64 {
        self.rate / self.expected
    }
}

/// The pairs of a rank, one way, over one kind of path.
#[derive(Debug, Clone, Copy)]
struct Line {
    best: Best,
    /// there are others than that one
    several: bool,
}

/// Of every rank, way and kind of path the best share of what is expected. The best, not the mean: one slow partner makes one pair
/// of every rank slow, but never all of them. By kind of path: what binds a near pair may not bind one across sockets, of which
/// half is expected.
#[derive(Debug, Clone, Default)]
pub struct Shares {
    /// pattern and size that these are of; `None` before anybody looked
    of: Option<(Pattern, u64)>,
    /// `[kind][way][rank]`
    lines: [[Vec<Option<Line>>; 2]; KINDS],
}

impl Shares {
    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.of = None;
    }

    /// Bring them up to date: at once if pattern and size are the same, else in O(n²).
    pub fn settle(&mut self, model: &Model, router: &Router, key: Key) {
        if self.of == Some((key.pattern, key.bytes)) || !router.knows() {
            return;
        }
        self.of = Some((key.pattern, key.bytes));
        let world = model.world();
        self.lines = std::array::from_fn(|_| std::array::from_fn(|_| vec![None; world]));
        for (cell, sizes) in model.cells.iter().filter(|(cell, _)| cell.pattern == key.pattern) {
            if let Some(rate) = sizes.iter().find(|size| size.bytes == key.bytes).and_then(good) {
                self.put(model, router, cell, rate);
            }
        }
    }

    /// Take note of what an event changed, if somebody looked.
    pub fn follow(&mut self, model: &Model, router: &Router, change: &Change) {
        match (change, self.of) {
            (Change::Cleared, _) => self.forget(),
            (Change::Cells { cells, bytes }, Some((pattern, size))) if *bytes == size => {
                for &cell in cells.iter().filter(|cell| cell.pattern == pattern) {
                    match model.cells.get(cell, size).and_then(good) {
                        Some(rate) => self.put(model, router, cell, rate),
                        None => self.look_again(model, router, cell),
                    }
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, model: &Model, router: &Router, cell: Cell, rate: f64) {
        let Some(expected) = router.expected(cell.from, cell.to) else { return };
        let kind = kind(router, cell);
        let mut dropped = false;
        for way in Way::BOTH {
            let (rank, other) = if way == Way::Sends { (cell.from, cell.to) } else { (cell.to, cell.from) };
            let Some(line) = self.lines[kind][way as usize].get_mut(rank) else { return };
            let best = Best { rate, expected, other };
            match line {
                None => *line = Some(Line { best, several: false }),
                Some(line) => {
                    line.several |= line.best.other != other;
                    if best.share() >= line.best.share() {
                        line.best = best;
                    } else {
                        dropped |= line.best.other == other;
                    }
                }
            }
        }
        if dropped {
            self.look_again(model, router, cell);
        }
    }

    /// The best pair of a line is not what it was: all of the line's pairs, in O(n).
    fn look_again(&mut self, model: &Model, router: &Router, cell: Cell) {
        let Some((pattern, bytes)) = self.of else { return };
        let kind_of = kind(router, cell);
        for way in Way::BOTH {
            let rank = if way == Way::Sends { cell.from } else { cell.to };
            let pairs = (0..model.world()).filter(|&other| other != rank).filter_map(|other| {
                let (from, to) = way.pair(rank, other);
                let cell = Cell { pattern, from, to };
                let rate = model.cells.get(cell, bytes).and_then(good)?;
                (kind(router, cell) == kind_of).then_some(Best { rate, expected: router.expected(from, to)?, other })
            });
            let pairs: Vec<Best> = pairs.collect();
            let best = pairs.iter().copied().max_by(|a, b| a.share().total_cmp(&b.share()));
            if let Some(line) = self.lines[kind_of][way as usize].get_mut(rank) {
                *line = best.map(|best| Line { best, several: pairs.len() > 1 });
            }
        }
    }

    /// What a rank reaches one way: the best pair of the kind of path of which that is worst. Of a single pair nobody knows whose
    /// fault it is: it counts only where there are no others.
    pub fn of(&self, rank: usize, way: Way) -> Option<Best> {
        let lines = || self.lines.iter().filter_map(|kind| kind[way as usize].get(rank).copied().flatten());
        let any = lines().any(|line| line.several);
        lines().filter(|line| line.several || !any).map(|line| line.best).min_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// Ranks below [`SLOW`], slowest first.
    pub fn slow(&self) -> Vec<(usize, Way, Best)> {
        let world = self.lines[0][0].len();
        let all = (0..world).flat_map(|rank| Way::BOTH.map(|way| (rank, way)));
        let mut slow: Vec<_> = all.filter_map(|(rank, way)| Some((rank, way, self.of(rank, way)?))).collect();
        slow.retain(|(_, _, best)| best.share() < SLOW);
        slow.sort_by(|a, b| a.2.share().total_cmp(&b.2.share()).then(a.0.cmp(&b.0)));
        slow
    }

    /// The pair of a rank that is farthest from what is expected; without measurements the first that has an expectation.
    pub fn worst_pair(model: &Model, router: &Router, key: Key, rank: usize) -> Option<(usize, usize)> {
        let pairs = || {
            let all = (0..model.world()).filter(|&other| other != rank).flat_map(|other| Way::BOTH.map(|way| way.pair(rank, other)));
            all.filter_map(|(from, to)| Some(((from, to), router.expected(from, to)?)))
        };
        let share = |((from, to), expected): ((usize, usize), f64)| {
            let rate = model.cells.get(key.cell(from, to), key.bytes).and_then(good)?;
            Some((Metric::ShareOfExpected.badness(rate / expected), (from, to)))
        };
        let worst = pairs().filter_map(share).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pair)| pair);
        worst.or_else(|| pairs().next().map(|(pair, _)| pair))
    }
}

fn good(size: &SizeCell) -> Option<f64> {
    Some(size.bandwidth()).filter(|rate| size.count > 0 && rate.is_finite() && *rate > 0.0)
}

/// What kind of path a pair has.
fn kind(router: &Router, cell: Cell) -> usize {
    match router.label(cell.from, cell.to) {
        None | Some(PathLabel::Local) => 0,
        Some(PathLabel::Nvl(_)) => 1,
        Some(PathLabel::Pix) => 2,
        Some(PathLabel::Pxb) => 3,
        Some(PathLabel::Phb) => 4,
        Some(PathLabel::Node) => 5,
        Some(PathLabel::Sys) => 6,
        Some(PathLabel::Net) => 7,
    }
}
