//! Size curves of a model, as fits take them: the good times of the newest take of a rank, a pair, a fan, by size.

use std::collections::BTreeMap;

use super::{GroupSize, Model, SizeCell};
use crate::fit::{EXTRAPOLATION_LIMIT, Fit, Key, Kind, Point};
use crate::sample::Pattern;
use crate::sweep::{Cell, Group};

/// Times of one message, seconds, by its size in bytes.
pub type Curve = BTreeMap<u64, Vec<f64>>;

/// Of a cell.
pub fn of_cell(sizes: &[SizeCell]) -> Curve {
    sizes.iter().map(|size| (size.bytes, size.times())).filter(|(_, times)| !times.is_empty()).collect()
}

/// Of a fan, a relay or a set: each transfer's own times.
pub fn of_group(sizes: &[GroupSize]) -> Curve {
    let own = |size: &GroupSize| -> Vec<f64> {
        size.shots.iter().filter(|shot| shot.shot.take == size.take).filter_map(|shot| shot.shot.seconds_per_message()).collect()
    };
    sizes.iter().map(|size| (size.bytes, own(size))).filter(|(_, times)| !times.is_empty()).collect()
}

/// Of a fan's root: all bytes of its peers, in its own time.
pub fn of_root(group: &Group, sizes: &[GroupSize]) -> Curve {
    let bytes = |size: &GroupSize| size.bytes.saturating_mul(group.peers.len() as u64);
    sizes.iter().map(|size| (bytes(size), size.root_times())).filter(|(_, times)| !times.is_empty()).collect()
}

/// Medians of a curve with how sure they are; the times come out in another order.
pub fn points(curve: &mut Curve) -> Vec<Point> {
    curve.iter_mut().map(|(&bytes, times)| Point::of(bytes, times)).collect()
}

/// Bandwidth of an ordered pair alone, bytes per second: the slope of its fit at this size; of a pair without a fit that holds,
/// what it gave at this size.
pub fn pair_rate(model: &Model, (from, to): (usize, usize), bytes: u64) -> Option<f64> {
    let cell = Cell { pattern: if from == to { Pattern::Local } else { Pattern::Peer }, from, to };
    let sizes = model.cells.sizes_of(cell);
    let fit = Fit::of(Kind::Peer, Key::Pair { from, to }, None, &mut points(&mut of_cell(sizes)), None).ok();
    let slope = fit.map(|fit| *fit.line_at(bytes)).filter(|line| line.max_rel_error <= EXTRAPOLATION_LIMIT).map(|line| line.bandwidth);
    let measured = || sizes.iter().find(|size| size.bytes == bytes).map(SizeCell::bandwidth);
    slope.or_else(measured).filter(|rate| rate.is_finite())
}
