//! What a model's samples say of a pair, for those who compare.

use super::Model;
use crate::sample::Pattern;
use crate::sweep::Cell;

/// Bandwidth of an ordered pair alone, bytes per second.
pub fn pair_rate(model: &Model, (from, to): (usize, usize), bytes: u64) -> Option<f64> {
    let cell = Cell { pattern: if from == to { Pattern::Local } else { Pattern::Peer }, from, to };
    Some(model.cells.get(cell, bytes)?.bandwidth()).filter(|rate| rate.is_finite())
}
