use std::sync::Arc;

use super::block::Node;
use super::packed::Packed;
use super::sum::Sum;
use super::{Axes, Block, Domain, Metric, Summary, Value};

/// Up to this many known values the domain follows every change.
const FEW: usize = 128;

/// Of more known values than this a share is looked at for the domain, and the two ends.
const LOOKED_AT: usize = 1 << 17;

/// The first level whose blocks are kept. Those below are made of their few cells whenever they are asked for: kept, they would
/// take as much memory as everything else.
const KEPT: usize = 2;

/// A table of one metric over all ordered pairs of ranks.
#[derive(Debug, Clone)]
pub struct Grid {
    metric: Metric,
    n: usize,
    /// `[from * n + to]`, by rank
    values: Vec<Packed>,
    rows: Vec<Sum>,
    columns: Vec<Sum>,
    axes: Arc<Axes>,
    /// blocks of levels 2.. of the pyramid, row by row
    levels: Vec<Vec<Node>>,
    /// known values off the diagonal
    known: usize,
    /// changes since the domain was found
    changes: usize,
    domain: Option<Domain>,
}

impl Grid {
    /// An empty table for `n` ranks in order.
    pub fn new(metric: Metric, n: usize) -> Self {
        Self::build(metric, n, |_, _| Value::Missing)
    }

    /// A table of ranks in order filled at once, in O(n²): `value(from, to)`.
    pub fn build(metric: Metric, n: usize, value: impl FnMut(usize, usize) -> Value) -> Self {
        Self::arranged(metric, Arc::new(Axes::plain(n)), value)
    }

    /// A table of ranks in a given order and given blocks, filled at once, in O(n²): `value(from, to)` by rank.
    pub fn arranged(metric: Metric, axes: Arc<Axes>, mut value: impl FnMut(usize, usize) -> Value) -> Self {
        let n = axes.len();
        let all = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
        Self::filled(metric, axes, all.map(|(from, to)| (from, to, value(from, to))))
    }

    /// The same from those cells that have a value or a state, each as (sender, receiver, value); of a cell that comes twice the
    /// last one counts, and outside the table nothing happens.
    pub fn filled(metric: Metric, axes: Arc<Axes>, cells: impl Iterator<Item = (usize, usize, Value)>) -> Self {
        let n = axes.len();
        let mut grid = Self {
            metric,
            n,
            values: vec![Packed::MISSING; n * n],
            rows: vec![Sum::default(); n],
            columns: vec![Sum::default(); n],
            axes,
            levels: Vec::new(),
            known: 0,
            changes: 0,
            domain: None,
        };
        for (from, to, value) in cells.filter(|&(from, to, _)| from < n && to < n) {
            grid.put(from, to, value);
        }
        grid.gather_all();
        grid.find_domain();
        grid
    }

    /// The same values in another order or in other blocks, in O(n²).
    pub fn arrange(&mut self, axes: Arc<Axes>) {
        if axes.len() == self.n {
            self.axes = axes;
            self.gather_all();
        }
    }

    /// What the table shows.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.n
    }

    /// The order of ranks along the edges, and the blocks that they are gathered in.
    pub fn axes(&self) -> &Arc<Axes> {
        &self.axes
    }

    /// What is known of the transfer from one rank to another; `Missing` outside the table.
    pub fn get(&self, from: usize, to: usize) -> Value {
        if from < self.n && to < self.n { self.values[from * self.n + to].get() } else { Value::Missing }
    }

    /// Put a value, in O(log n). A number that the metric cannot have (not finite, or not above zero) counts as missing;
    /// outside the table nothing happens.
    pub fn set(&mut self, from: usize, to: usize, value: Value) {
        if from >= self.n || to >= self.n || !self.put(from, to, value) {
            return;
        }
        let axes = Arc::clone(&self.axes);
        let (row, column) = axes.places((from, to));
        for level in KEPT..axes.levels() {
            self.gather(level, axes.block_of(level, row), axes.block_of(level, column));
        }
        if self.known <= FEW || self.changes * 20 >= self.known {
            self.find_domain();
        }
    }

    /// Known off-diagonal values of what a rank sends.
    pub fn row(&self, from: usize) -> Summary {
        self.rows.get(from).copied().unwrap_or_default().summary(self.metric)
    }

    /// Known off-diagonal values of what a rank receives.
    pub fn column(&self, to: usize) -> Summary {
        self.columns.get(to).copied().unwrap_or_default().summary(self.metric)
    }

    /// Levels of the pyramid: at level 0 a block is one cell, and the last level has one block.
    pub fn levels(&self) -> usize {
        self.axes.levels()
    }

    /// Blocks along an edge at a level.
    pub fn side(&self, level: usize) -> usize {
        self.axes.side(level)
    }

    /// A block of the pyramid, by its places along the edges; `EMPTY` beyond the edge and, at level 0, where a rank meets itself.
    pub fn block(&self, level: usize, row: usize, column: usize) -> Block {
        let side = self.side(level);
        if row >= side || column >= side {
            return Block::EMPTY;
        }
        if level == 0 {
            let (from, to) = self.axes.pair((row, column));
            if from == to {
                return Block::EMPTY;
            }
            return Block::of(self.metric, self.get(from, to), (from as u32, to as u32));
        }
        match level.checked_sub(KEPT).and_then(|at| self.levels.get(at)) {
            Some(nodes) => nodes[row * side + column].unpack(self.metric, self.n),
            None => self.sum(level, row, column),
        }
    }

    /// The whole table in one block.
    pub fn all(&self) -> Block {
        self.block(self.levels() - 1, 0, 0)
    }

    /// The values between which colours are spread ([`Domain::robust`] of the known off-diagonal values, or of a share of very
    /// many and their ends), followed when a twentieth of them has changed. `None` before the first value.
    pub fn domain(&self) -> Option<Domain> {
        self.domain
    }

    /// Store a value and its share in the summaries; false if nothing changed.
    fn put(&mut self, from: usize, to: usize, value: Value) -> bool {
        let value = match value {
            Value::Known(number) if !self.metric.accepts(number) => Value::Missing,
            value => value,
        };
        let at = from * self.n + to;
        let old = std::mem::replace(&mut self.values[at], value.into()).get();
        if from == to || old == value {
            return false;
        }
        if let Value::Known(number) = old {
            self.rows[from].remove(self.metric, number);
            self.columns[to].remove(self.metric, number);
            self.known -= 1;
        }
        if let Value::Known(number) = value {
            self.rows[from].add(self.metric, number);
            self.columns[to].add(self.metric, number);
            self.known += 1;
        }
        self.changes += 1;
        true
    }

    /// A block made of those of the level below.
    fn sum(&self, level: usize, row: usize, column: usize) -> Block {
        let mut whole = Block::EMPTY;
        for row in self.axes.parts(level, row) {
            for column in self.axes.parts(level, column) {
                whole.add(self.metric, &self.block(level - 1, row, column));
            }
        }
        whole
    }

    /// Make a kept block of those of the level below.
    fn gather(&mut self, level: usize, row: usize, column: usize) {
        let block = self.sum(level, row, column);
        let side = self.side(level);
        self.levels[level - KEPT][row * side + column] = Node::pack(&block, self.n);
    }

    fn gather_all(&mut self) {
        let kept = KEPT..self.axes.levels().max(KEPT);
        self.levels = kept.clone().map(|level| vec![Node::EMPTY; self.axes.side(level).pow(2)]).collect();
        for level in kept {
            let side = self.axes.side(level);
            for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
                self.gather(level, row, column);
            }
        }
    }

    /// O(known values), which is why a twentieth of them must change first: O(1) a change, over time.
    fn find_domain(&mut self) {
        let every = self.known.div_ceil(LOOKED_AT).max(1);
        let mut found = Vec::with_capacity(self.known / every + 2);
        self.collect(self.levels() - 1, (0, 0), every, &mut 0, &mut found);
        if every > 1 {
            let all = self.all();
            found.extend([all.min, all.max]);
        }
        self.domain = Domain::robust(self.metric, &mut found);
        self.changes = 0;
    }

    /// Every so many'th known value of a block, after `skip` more.
    fn collect(&self, level: usize, (row, column): (usize, usize), every: usize, skip: &mut usize, found: &mut Vec<f64>) {
        if level <= 1 {
            for row in self.axes.span(level, row) {
                for column in self.axes.span(level, column) {
                    let (from, to) = self.axes.pair((row, column));
                    let Some(value) = self.get(from, to).known().filter(|_| from != to) else { continue };
                    if *skip == 0 {
                        found.push(value);
                        *skip = every;
                    }
                    *skip -= 1;
                }
            }
            return;
        }
        let nodes = level.checked_sub(KEPT).and_then(|at| self.levels.get(at));
        let count = nodes.map_or(0, |nodes| nodes[row * self.side(level) + column].count() as usize);
        if count <= *skip {
            *skip -= count;
            return;
        }
        for row in self.axes.parts(level, row) {
            for column in self.axes.parts(level, column) {
                self.collect(level - 1, (row, column), every, skip, found);
            }
        }
    }
}
