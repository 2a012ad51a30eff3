//! What the Matrix tab shows of a model, kept up to date cell by cell.

use super::insight::Insight;
use crate::matrix::{Grid, Metric, Unit, Value};
use crate::sample::{Pattern, Status};
use crate::session::{Change, Model, SizeCell};
use crate::sweep::Cell;
use crate::topology::PathClass;

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
    /// message size of bandwidths and ratios, bytes; 0 before the first sample
    pub bytes: u64,
    /// smallest size that has a sample, bytes
    pub small: u64,
}

impl Key {
    /// The view that `metric` and a chosen size mean now; without one, the largest size that is measured throughout.
    pub fn of(model: &Model, metric: Metric, chosen: Option<u64>) -> Self {
        let sizes = model.cells.sizes();
        let bytes = chosen.filter(|size| sizes.contains(size)).unwrap_or_else(|| steady_size(model));
        Self { metric, bytes, small: sizes.first().copied().unwrap_or(0) }
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

/// The cell of a matrix at a row and a column: on the diagonal, the copy inside the rank.
pub const fn cell_at(from: usize, to: usize) -> Cell {
    Cell { pattern: if from == to { Pattern::Local } else { Pattern::Peer }, from, to }
}

/// A grid and what stands out in it, for one key.
#[derive(Debug, Clone)]
pub struct View {
    pub key: Key,
    pub grid: Grid,
    pub insight: Insight,
}

impl View {
    /// All of it, in O(n²).
    pub fn build(model: &Model, key: Key) -> Self {
        let grid = Grid::build(key.metric, model.world(), |from, to| value(model, key, from, to));
        let mut view = Self { key, grid, insight: Insight::new(model.header.topology.node_of()) };
        for (cell, sizes) in model.cells.iter() {
            if let Some(size) = sizes.iter().find(|size| size.bytes == key.bytes) {
                view.notice(model, cell, Some(size));
            }
        }
        view.insight.settle();
        view
    }

    /// Take in what an event changed.
    pub fn follow(&mut self, model: &Model, change: &Change) {
        let Change::Cells { cells, bytes } = change else { return };
        if *bytes != self.key.bytes && *bytes != self.key.small {
            return;
        }
        for &cell in cells {
            self.grid.set(cell.from, cell.to, value(model, self.key, cell.from, cell.to));
            if self.key.metric == Metric::Asymmetry {
                self.grid.set(cell.to, cell.from, value(model, self.key, cell.to, cell.from));
            }
            if *bytes == self.key.bytes {
                self.notice(model, cell, model.cells.get(cell, *bytes));
            }
        }
    }

    fn notice(&mut self, model: &Model, cell: Cell, size: Option<&SizeCell>) {
        let class = model.header.topology.path(cell.from, cell.to);
        let rate = size.filter(|size| size.status == Status::Ok).map(SizeCell::bandwidth);
        let failed = size.is_some_and(|size| matches!(size.status, Status::Timeout | Status::Corrupt));
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

fn value(model: &Model, key: Key, from: usize, to: usize) -> Value {
    let bandwidth = |from, to| state(model.cells.get(cell_at(from, to), key.bytes), SizeCell::bandwidth);
    match key.metric {
        Metric::Bandwidth => bandwidth(from, to),
        Metric::SmallTime => state(model.cells.get(cell_at(from, to), key.small), |size| size.median),
        Metric::Asymmetry if from == to => Value::Missing,
        Metric::Asymmetry => Value::asymmetry(bandwidth(from, to), bandwidth(to, from)),
    }
}
