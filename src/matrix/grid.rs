use super::sum::Sum;
use super::{Block, Domain, Metric, Summary, Value};

/// Up to this many known values the domain follows every change.
const FEW: usize = 128;

/// A table of one metric over all ordered pairs of ranks.
#[derive(Debug, Clone)]
pub struct Grid {
    metric: Metric,
    n: usize,
    values: Vec<Value>,
    rows: Vec<Sum>,
    columns: Vec<Sum>,
    /// levels 1.. of the pyramid: `(side, blocks)`
    levels: Vec<(usize, Vec<Block>)>,
    /// cells that have or had a known value, each once
    listed: Vec<u32>,
    is_listed: Vec<bool>,
    /// changes since the domain was found
    changes: usize,
    domain: Option<Domain>,
}

impl Grid {
    /// An empty table for `n` ranks.
    pub fn new(metric: Metric, n: usize) -> Self {
        Self::build(metric, n, |_, _| Value::Missing)
    }

    /// A table filled at once, in O(n²): `value(from, to)`.
    pub fn build(metric: Metric, n: usize, mut value: impl FnMut(usize, usize) -> Value) -> Self {
        let mut levels = Vec::new();
        let mut side = n;
        while side > 1 {
            side = side.div_ceil(2);
            levels.push((side, vec![Block::EMPTY; side * side]));
        }
        let mut grid = Self {
            metric,
            n,
            values: vec![Value::Missing; n * n],
            rows: vec![Sum::default(); n],
            columns: vec![Sum::default(); n],
            levels,
            listed: Vec::new(),
            is_listed: vec![false; n * n],
            changes: 0,
            domain: None,
        };
        for from in 0..n {
            for to in 0..n {
                grid.put(from, to, value(from, to));
            }
        }
        for level in 0..grid.levels.len() {
            for row in 0..grid.levels[level].0 {
                for column in 0..grid.levels[level].0 {
                    grid.gather(level, row, column);
                }
            }
        }
        grid.find_domain();
        grid
    }

    /// What the table shows.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.n
    }

    /// What is known of the transfer from one rank to another; `Missing` outside the table.
    pub fn get(&self, from: usize, to: usize) -> Value {
        if from < self.n && to < self.n { self.values[from * self.n + to] } else { Value::Missing }
    }

    /// Put a value, in O(log n). A number that the metric cannot have (not finite, or not above zero) counts as missing;
    /// outside the table nothing happens.
    pub fn set(&mut self, from: usize, to: usize, value: Value) {
        if from >= self.n || to >= self.n || !self.put(from, to, value) {
            return;
        }
        let (mut row, mut column) = (from, to);
        for level in 0..self.levels.len() {
            (row, column) = (row / 2, column / 2);
            self.gather(level, row, column);
        }
        let known = self.listed.len();
        if known <= FEW || self.changes * 20 >= known {
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

    /// Levels of the pyramid: level k has blocks of 2^k x 2^k cells, and the last level has one block.
    pub fn levels(&self) -> usize {
        self.levels.len() + 1
    }

    /// Blocks along an edge at a level.
    pub fn side(&self, level: usize) -> usize {
        self.n.div_ceil(1_usize.checked_shl(level as u32).unwrap_or(usize::MAX))
    }

    /// A block of the pyramid; `EMPTY` beyond the edge and, at level 0, on the diagonal.
    pub fn block(&self, level: usize, row: usize, column: usize) -> Block {
        if level == 0 {
            if row >= self.n || column >= self.n || row == column {
                return Block::EMPTY;
            }
            return Block::of(self.metric, self.values[row * self.n + column], (row as u32, column as u32));
        }
        match self.levels.get(level - 1) {
            Some((side, blocks)) if row < *side && column < *side => blocks[row * side + column],
            _ => Block::EMPTY,
        }
    }

    /// The whole table in one block.
    pub fn all(&self) -> Block {
        self.block(self.levels.len(), 0, 0)
    }

    /// The values between which colours are spread ([`Domain::robust`] of the known off-diagonal values), followed
    /// when a twentieth of them has changed. `None` before the first value.
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
        let old = std::mem::replace(&mut self.values[at], value);
        if from == to || old == value {
            return false;
        }
        if let Value::Known(number) = old {
            self.rows[from].remove(self.metric, number);
            self.columns[to].remove(self.metric, number);
        }
        if let Value::Known(number) = value {
            self.rows[from].add(self.metric, number);
            self.columns[to].add(self.metric, number);
            if !std::mem::replace(&mut self.is_listed[at], true) {
                self.listed.push(at as u32);
            }
        }
        self.changes += 1;
        true
    }

    /// Make a block of the four below it. `level` 0 is the first stored one.
    fn gather(&mut self, level: usize, row: usize, column: usize) {
        let (r, c) = (row * 2, column * 2);
        let parts = [(r, c), (r, c + 1), (r + 1, c), (r + 1, c + 1)].map(|(r, c)| self.block(level, r, c));
        let (side, blocks) = &mut self.levels[level];
        blocks[row * *side + column] = Block::merge(self.metric, parts);
    }

    /// O(known values), which is why a twentieth of them must change first: O(1) a change, over time.
    fn find_domain(&mut self) {
        let mut known: Vec<f64> = self.listed.iter().filter_map(|&at| self.values[at as usize].known()).collect();
        self.domain = Domain::robust(self.metric, &mut known);
        self.changes = 0;
    }
}
