use super::Piece;
use super::boxes::Boxes;
use super::frames::invalid;
use crate::plan::{At, PlanError};

/// Contiguous runs of addresses that are looked at where pieces of one shard interleave and are no blocks of it.
const MOST_RUNS: u64 = 1 << 22;

/// A piece in a shard.
pub(super) struct Held<'a> {
    /// of the piece at its location
    pub(super) number: usize,
    pub(super) piece: &'a Piece,
    /// of the block of the shard that it is, if it is one
    pub(super) corner: Option<Vec<u64>>,
}

/// Rule M2: these pieces (none empty, all within) fill a shard of `size` elements, each address once. Adding elements up does not
/// tell: two pieces that collide can still have the right sum.
pub(super) fn fill(held: &[Held], axes: usize, size: u64, place: &At) -> Result<(), PlanError> {
    let clash = match blocks(held, axes) {
        Some(blocks) => blocks.overlap().map(|(one, other)| (held[one].number, held[other].number)),
        None => interleaved(held, place)?,
    };
    if let Some((one, other)) = clash {
        let place = At { piece: Some(other), ..place.clone() };
        let what = if one == other {
            "rule M2: several of its elements have the same address in the shard".to_owned()
        } else {
            format!("rule M2: it shares addresses of the shard with piece {one}")
        };
        return Err(invalid(&place, what));
    }
    // Within the shard and apart, so their sum is at most its size.
    let filled: u64 = held.iter().map(|held| held.piece.shape.iter().product::<u64>()).sum();
    if filled != size {
        return Err(invalid(place, format!("rule M2: its pieces hold {filled} elements, its shard {size}")));
    }
    Ok(())
}

/// The pieces as blocks of the shard, if all are.
fn blocks(held: &[Held], axes: usize) -> Option<Boxes> {
    let mut boxes = Boxes::new(axes);
    for held in held {
        boxes.push(held.corner.as_ref()?, &held.piece.shape);
    }
    Some(boxes)
}

/// Addresses of a piece: contiguous runs of `run` elements, repeated along axes (extent, stride) from the inner to the outer.
struct Runs {
    number: usize,
    first: u64,
    run: u64,
    outer: Vec<(u64, u64)>,
}

impl Runs {
    fn of(held: &Held) -> Self {
        let piece = held.piece;
        let strides = piece.dest.strides.iter().map(|stride| stride.unsigned_abs());
        let mut axes: Vec<(u64, u64)> = piece.shape.iter().copied().zip(strides).filter(|&(extent, _)| extent > 1).collect();
        axes.sort_unstable_by_key(|&(extent, stride)| (stride, extent));
        let mut runs = Self { number: held.number, first: piece.dest.offset, run: 1, outer: Vec::new() };
        for (extent, stride) in axes {
            if runs.outer.is_empty() && stride == runs.run {
                runs.run *= extent;
            } else {
                runs.outer.push((extent, stride));
            }
        }
        runs
    }

    /// Address just past the last element.
    fn end(&self) -> u64 {
        self.first + self.outer.iter().map(|(extent, stride)| (extent - 1) * stride).sum::<u64>() + self.run
    }

    /// True where steps of each axis pass all that the inner ones reach: then no address comes twice.
    fn nested(&self) -> bool {
        let mut reach = self.run;
        self.outer.iter().all(|&(extent, stride)| {
            let apart = stride >= reach;
            reach += (extent - 1) * stride;
            apart
        })
    }

    fn count(&self) -> u64 {
        self.outer.iter().fold(1, |count, (extent, _)| extent.saturating_mul(count))
    }

    /// Starts of all runs.
    fn starts(&self, into: &mut Vec<(u64, u64, usize)>) {
        let begin = into.len();
        into.push((self.first, self.first + self.run, self.number));
        for &(extent, stride) in &self.outer {
            let inner = into.len();
            for step in 1..extent {
                for at in begin..inner {
                    let (from, to, number) = into[at];
                    into.push((from + step * stride, to + step * stride, number));
                }
            }
        }
    }
}

/// Two pieces with an address in common. Pieces whose spans lie apart need no closer look; of the others the contiguous runs are
/// compared.
fn interleaved(held: &[Held], place: &At) -> Result<Option<(usize, usize)>, PlanError> {
    let mut all: Vec<Runs> = held.iter().map(Runs::of).collect();
    all.sort_by_key(|runs| (runs.first, runs.number));
    let mut from = 0;
    while from < all.len() {
        let mut end = all[from].end();
        let mut to = from + 1;
        while to < all.len() && all[to].first < end {
            end = end.max(all[to].end());
            to += 1;
        }
        let group = &all[from..to];
        from = to;
        if group.len() == 1 && group[0].nested() {
            continue;
        }
        let runs = group.iter().fold(0_u64, |sum, runs| sum.saturating_add(runs.count()));
        if runs > MOST_RUNS {
            let what = format!("its pieces interleave in {runs} runs of addresses, more than {MOST_RUNS} to compare");
            return Err(PlanError::Budget { place: place.clone(), what });
        }
        let mut spans = Vec::with_capacity(runs as usize);
        for runs in group {
            runs.starts(&mut spans);
        }
        spans.sort_unstable();
        if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Ok(Some((pair[0].2.min(pair[1].2), pair[0].2.max(pair[1].2))));
        }
    }
    Ok(None)
}
