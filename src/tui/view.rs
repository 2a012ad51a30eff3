//! What the Matrix tab shows of a model, kept up to date cell by cell.

use std::sync::Arc;

use super::atlas::{Atlas, Order};
use super::insight::Insight;
use super::state::MatrixPanel;
use crate::diagnose::compare::Changes;
use crate::matrix::{Grid, Metric, Unit, Value};
use crate::sample::{Pattern, Status};
use crate::session::{Change, Model, SizeCell};
use crate::sweep::Cell;
use crate::topology::{PathClass, Router, path_of};

/// Bandwidths in the one unit of a view.
#[derive(Debug, Clone, Copy)]
pub struct Rates(pub Unit);

impl Rates {
    /// As in a heading: `GB/s`, or `MB/s` where no pair reaches 1 GB/s.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Digits of a bandwidth in bytes per second.
    pub fn number(self, rate: f64) -> String {
        Metric::Bandwidth.format(rate, self.0)
    }

    /// Digits and unit of a bandwidth in bytes per second.
    pub fn text(self, rate: f64) -> String {
        format!("{} {}", self.number(rate), self.name())
    }
}

/// What determines a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub metric: Metric,
    /// peer (with local copies on the diagonal), duplex, or copies between hosts and their GPUs, which have the diagonal alone
    pub pattern: Pattern,
    /// message size of bandwidths and ratios, bytes; 0 before the first sample
    pub bytes: u64,
    /// of the small-message time: smallest size that has a sample, bytes; else 0, since it changes as a sweep goes on
    pub small: u64,
    /// in which order ranks stand
    pub order: Order,
}

impl Key {
    /// The view that is chosen now; without a size, of the largest that is measured throughout, and without a pattern, of
    /// peer unless neither it nor local copies are measured.
    pub fn of(model: &Model, panel: &MatrixPanel) -> Self {
        let sizes = model.cells.sizes();
        let bytes = panel.size.filter(|size| sizes.contains(size)).unwrap_or_else(|| steady_size(model));
        let patterns = model.sweep.as_ref().map_or(&[][..], |sweep| &sweep.settings.patterns);
        let usual = patterns.iter().any(|pattern| matches!(pattern, Pattern::Peer | Pattern::Local));
        let first = patterns.iter().copied().find(|pattern| pattern.is_pair()).filter(|_| !usual);
        let pattern = panel.pattern.or(first).unwrap_or(Pattern::Peer);
        let small = if panel.metric == Metric::SmallTime { sizes.first().copied().unwrap_or(0) } else { 0 };
        Self { metric: panel.metric, pattern, bytes, small, order: panel.order }
    }

    /// The cell of the matrix at a row and a column: on the diagonal of `peer`, the copy inside the rank.
    pub const fn cell(&self, from: usize, to: usize) -> Cell {
        let local = from == to && matches!(self.pattern, Pattern::Peer);
        Cell { pattern: if local { Pattern::Local } else { self.pattern }, from, to }
    }

    /// The same pair as the matrix of the other pattern has it.
    pub const fn other(&self) -> Self {
        Self { pattern: if matches!(self.pattern, Pattern::Peer) { Pattern::Duplex } else { Pattern::Peer }, ..*self }
    }

    /// What a cell should give, bytes per second.
    pub fn expected(&self, router: &Router, from: usize, to: usize) -> Option<f64> {
        if self.pattern.crosses() { router.host_link(from).filter(|_| from == to) } else { router.expected(from, to) }
    }

    /// The next pattern that has a matrix: copies between hosts and GPUs only where there are some, or will be.
    pub fn next_pattern(&self, model: &Model) -> Pattern {
        const ALL: [Pattern; 4] = [Pattern::Peer, Pattern::Duplex, Pattern::HostToDevice, Pattern::DeviceToHost];
        let asked = model.sweep.as_ref().map_or(&[][..], |sweep| &sweep.settings.patterns);
        let has = |pattern: Pattern| {
            !pattern.crosses() || asked.contains(&pattern) || model.cells.iter().any(|(cell, _)| cell.pattern == pattern)
        };
        let at = ALL.iter().position(|&pattern| pattern == self.pattern).unwrap_or(0);
        ALL.into_iter().cycle().skip(at + 1).take(ALL.len()).find(|&pattern| has(pattern)).unwrap_or(Pattern::Peer)
    }

    /// True if a cell is in the matrix.
    fn shows(&self, cell: Cell) -> bool {
        cell == self.cell(cell.from, cell.to)
    }
}

/// The largest size of which every cell has been tried, or else the one tried most: it does not jump as a sweep goes on.
fn steady_size(model: &Model) -> u64 {
    let measured = model.cells.sizes();
    let last = measured.last().copied().unwrap_or(0);
    let Some(sweep) = &model.sweep else { return last };
    let begun = || sweep.progress.iter().filter(|progress| progress.done > 0 && measured.contains(&progress.bytes));
    let repeats = u64::from(sweep.settings.repeats.max(1));
    let whole = begun().rev().find(|progress| progress.done >= progress.wanted / repeats);
    let most = begun().max_by_key(|progress| (progress.done, progress.bytes));
    whole.or(most).map_or(last, |progress| progress.bytes)
}

/// A grid and what stands out in it, for one key.
#[derive(Debug, Clone)]
pub struct View {
    pub key: Key,
    pub grid: Grid,
    pub insight: Insight,
    /// what changed since another session
    pub changes: Option<Arc<Changes>>,
}

impl View {
    /// All of it, in O(n²).
    pub fn build(model: &Model, atlas: &Atlas, key: Key, changes: Option<Arc<Changes>>) -> Self {
        Self { key, grid: grid(model, atlas, key, changes.as_deref()), insight: insight(model, key), changes }
    }

    /// The same facts beside another session.
    pub fn compare(&mut self, model: &Model, atlas: &Atlas, changes: Option<Arc<Changes>>) {
        self.changes = changes;
        if self.key.metric == Metric::Change {
            self.grid = grid(model, atlas, self.key, self.changes.as_deref());
        }
    }

    /// Another view of the same facts. What stands out does not depend on the metric, and of a thousand ranks takes longest.
    pub fn turn(&mut self, model: &Model, atlas: &Atlas, key: Key) {
        if key == (Key { order: key.order, ..self.key }) {
            self.key = key;
            self.grid.arrange(atlas.orders.axes(key.order, &self.grid));
            return;
        }
        if (key.pattern, key.bytes) != (self.key.pattern, self.key.bytes) {
            self.insight = insight(model, key);
        }
        self.grid = grid(model, atlas, key, self.changes.as_deref());
        self.key = key;
    }

    /// Take in what an event changed.
    pub fn follow(&mut self, model: &Model, router: &Router, change: &Change) {
        let Change::Cells { cells, bytes } = change else { return };
        let changes = self.changes.clone();
        let changes = changes.as_deref();
        if *bytes != self.key.bytes && *bytes != self.key.small {
            return;
        }
        for &cell in cells {
            if !self.key.shows(cell) && self.key.metric != Metric::DuplexRatio {
                continue;
            }
            self.grid.set(cell.from, cell.to, value(model, router, self.key, changes, (cell.from, cell.to)));
            if self.key.metric == Metric::Asymmetry {
                self.grid.set(cell.to, cell.from, value(model, router, self.key, changes, (cell.to, cell.from)));
            }
            if *bytes == self.key.bytes && self.key.shows(cell) {
                self.notice(model, cell, model.cells.get(cell, *bytes));
            }
        }
    }

    fn notice(&mut self, model: &Model, cell: Cell, size: Option<&SizeCell>) {
        let class = model.header.topology.path(cell.from, cell.to);
        let (rate, failed) = size.map_or((None, false), told);
        self.insight.set(class, cell.from, cell.to, rate, failed);
    }

    /// The unit in which every bandwidth of this view is told.
    pub fn rates(&self) -> Rates {
        Rates(Metric::Bandwidth.unit(self.insight.best()))
    }

    /// Typical bandwidth of a path class, bytes per second, if it has been measured.
    pub fn typical(&self, class: PathClass) -> Option<f64> {
        self.insight.typical(class)
    }
}

fn grid(model: &Model, atlas: &Atlas, key: Key, changes: Option<&Changes>) -> Grid {
    // Which order it is depends on the values only if it is by them.
    let by_value = key.order == Order::Slowness;
    let axes = if by_value { Arc::clone(atlas.orders.by_rank()) } else { atlas.orders.axes(key.order, &Grid::new(key.metric, 0)) };
    let mut grid = Grid::filled(key.metric, axes, values(model, &atlas.router, key, changes));
    if by_value {
        grid.arrange(atlas.orders.axes(key.order, &grid));
    }
    grid
}

/// Every cell of the matrix of which something is known, in no particular order: of thousands of ranks most may not be measured,
/// and looking for each pair would take seconds.
fn values<'a>(
    model: &'a Model,
    router: &'a Router,
    key: Key,
    changes: Option<&'a Changes>,
) -> impl Iterator<Item = (usize, usize, Value)> + 'a {
    model.cells.iter().flat_map(move |(cell, sizes)| {
        let pair = (cell.from, cell.to);
        let ask = move |pair: (usize, usize)| Some((pair.0, pair.1, value(model, router, key, changes, pair)));
        match key.metric {
            // Of both directions each, and of two patterns.
            Metric::Asymmetry if key.shows(cell) => [ask(pair), ask((pair.1, pair.0))],
            Metric::DuplexRatio => [ask(pair), None],
            _ if !key.shows(cell) => [None, None],
            Metric::Bandwidth => {
                let size = sizes.iter().find(|size| size.bytes == key.bytes);
                [Some((pair.0, pair.1, state(size, SizeCell::bandwidth))), None]
            }
            _ => [ask(pair), None],
        }
        .into_iter()
        .flatten()
    })
}

fn insight(model: &Model, key: Key) -> Insight {
    let node_of = model.header.topology.node_of();
    let cells = model.cells.iter().filter(|&(cell, _)| key.shows(cell)).filter_map(|(cell, sizes)| {
        let size = sizes.iter().find(|size| size.bytes == key.bytes)?;
        let (rate, failed) = told(size);
        Some((path_of(&node_of, cell.from, cell.to), cell.from, cell.to, rate, failed))
    });
    let mut insight = Insight::build(node_of.clone(), cells);
    insight.settle();
    insight
}

/// What a cell says of its pair: its bandwidth if it is good, and whether it failed.
fn told(size: &SizeCell) -> (Option<f64>, bool) {
    let failed = matches!(size.status, Status::Timeout | Status::Corrupt);
    ((size.status == Status::Ok).then(|| size.bandwidth()), failed)
}

/// The state of a cell, or the number that `number` makes of it.
fn state(size: Option<&SizeCell>, number: impl Fn(&SizeCell) -> f64) -> Value {
    match size {
        None => Value::Missing,
        Some(size) => match size.status {
            Status::Corrupt => Value::Corrupt,
            Status::Timeout => Value::Timeout,
            Status::Waived => Value::Waived,
            Status::Ok => Value::Known(number(size)),
        },
    }
}

/// Half of the interval over the median; NaN without an interval.
pub fn spread(size: &SizeCell) -> f64 {
    size.interval().map_or(f64::NAN, |interval| (interval.high - interval.low) / 2.0 / size.median)
}

fn value(model: &Model, router: &Router, key: Key, changes: Option<&Changes>, (from, to): (usize, usize)) -> Value {
    let of = |key: Key, from, to, number: fn(&SizeCell) -> f64| state(model.cells.get(key.cell(from, to), key.bytes), number);
    let bandwidth = |from, to| of(key, from, to, SizeCell::bandwidth);
    match key.metric {
        Metric::Bandwidth => bandwidth(from, to),
        Metric::ShareOfExpected => match key.expected(router, from, to) {
            // A rate of nothing cannot be compared; what failed has failed all the same.
            None => of(key, from, to, |_| f64::NAN),
            Some(expected) => match bandwidth(from, to) {
                Value::Known(rate) => Value::Known(rate / expected),
                state => state,
            },
        },
        Metric::SmallTime => of(Key { bytes: key.small, ..key }, from, to, |size| size.median),
        Metric::Spread => of(key, from, to, spread),
        // Of pairs alone, free of latency, whatever size is shown; what failed has failed all the same.
        Metric::Change => match changes.and_then(|changes| changes.ratio(from, to)) {
            Some(ratio) => Value::Known(ratio.ln()),
            None => of(key, from, to, |_| f64::NAN),
        },
        Metric::Asymmetry | Metric::DuplexRatio if from == to => Value::Missing,
        Metric::Asymmetry => Value::asymmetry(bandwidth(from, to), bandwidth(to, from)),
        Metric::DuplexRatio => {
            let alone = Key { pattern: Pattern::Peer, ..key };
            Value::of_two(of(alone.other(), from, to, SizeCell::bandwidth), of(alone, from, to, SizeCell::bandwidth), |both, one| {
                both / one
            })
        }
    }
}
