//! What rows of tables came to.

use super::method::Method;
use crate::plan::scenario::Case;

/// A row, with a cell for each method.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub case: Case,
    pub cells: Vec<Cell>,
}

/// One method's runs of a row.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub method: Method,
    /// plans that it was to run, one after another
    pub plans: usize,
    /// of each plan that gave a time: bytes, and the median of its runs, seconds
    pub bytes: Vec<u64>,
    pub seconds: Vec<f64>,
    /// timed runs of each
    pub runs: usize,
    /// target bytes that were compared, of all runs together
    pub verified: u64,
    /// as the table shows it; NaN where nothing was timed
    pub figure: f64,
    /// the same, predicted
    pub predicted: Option<f64>,
    /// why the prediction is doubtful, or why there is none
    pub doubts: Vec<String>,
    /// what kept a run from being whole, a wrong byte included; empty if nothing did
    pub failed: String,
    /// that, where the method is none for this row: nothing was run
    pub impossible: bool,
}

impl Cell {
    /// True if everything was run and every byte was right.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty() && self.figure.is_finite() && self.seconds.len() == self.plans
    }

    /// Predicted over measured.
    pub fn ratio(&self) -> Option<f64> {
        self.predicted.map(|predicted| predicted / self.figure).filter(|ratio| ratio.is_finite())
    }
}

impl Row {
    /// True if every method that can run it did, and every byte was right.
    pub fn is_good(&self) -> bool {
        self.cells.iter().any(Cell::is_good) && self.cells.iter().all(|cell| cell.is_good() || cell.impossible)
    }

    /// Number of the best cell whose bytes were right, and how many times better than the first one it is.
    pub fn best(&self) -> Option<(usize, Option<f64>)> {
        let time = self.case.scenario.table().is_time();
        let good = self.cells.iter().enumerate().filter(|(_, cell)| cell.is_good());
        let better = |a: f64, b: f64| if time { b.total_cmp(&a) } else { a.total_cmp(&b) };
        let (at, best) = good.max_by(|(_, a), (_, b)| better(a.figure, b.figure))?;
        let first = self.cells.first().filter(|cell| cell.is_good());
        let times = first.map(|first| if time { first.figure / best.figure } else { best.figure / first.figure });
        Some((at, times))
    }
}
