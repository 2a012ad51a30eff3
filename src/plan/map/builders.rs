//! Layouts that models are cut into.

use std::collections::{BTreeMap, BTreeSet};

use super::frames::{elements, row_major};
use super::{Map, Piece, Shard, Walk};
use crate::plan::{At, PlanError};

/// A part of an axis in [`segmented`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// elements of the axis
    pub size: u64,
    /// of each location; `None`: every location has all of it
    pub widths: Option<Vec<u64>>,
}

impl Segment {
    /// Cut evenly over so many locations, the first ones one larger where that does not go up.
    pub fn even(size: u64, locations: usize) -> Self {
        Self { size, widths: Some(even(size, locations)) }
    }

    /// Held by all.
    pub const fn replicated(size: u64) -> Self {
        Self { size, widths: None }
    }
}

/// A size in so many parts, the first ones one larger where that does not go up.
fn even(size: u64, parts: usize) -> Vec<u64> {
    let parts = parts.max(1) as u64;
    (0..parts).map(|part| size / parts + u64::from(part < size % parts)).collect()
}

/// All of it on every location.
///
/// # Errors
/// A shape that is too large.
pub fn replicated(shape: &[u64], locations: &[i64]) -> Result<Map, PlanError> {
    sound(shape, None)?;
    let strides = row_major(shape);
    let holders: BTreeSet<i64> = locations.iter().copied().collect();
    let piece = Piece {
        shape: shape.to_vec(),
        source: Walk { offset: 0, strides: strides.clone() },
        dest: Walk { offset: 0, strides },
        holders: holders.clone(),
        scale: 1.0,
    };
    let shards = holders.into_iter().map(|location| (location, Shard { shape: shape.to_vec(), pieces: vec![piece.clone()] }));
    Ok(Map { shape: shape.to_vec(), shards: shards.collect() })
}

/// Cut along an axis into parts that follow each other: location `i` has `sizes[i]`.
///
/// # Errors
/// Sizes that do not add up to the axis.
pub fn split(shape: &[u64], axis: usize, sizes: &[u64]) -> Result<Map, PlanError> {
    let size = sound(shape, Some(axis))?;
    segmented(shape, axis, &[Segment { size, widths: Some(sizes.to_vec()) }], sizes.len())
}

/// Tensors that were put together along an axis, each cut over the locations: `widths[k][i]` of tensor `k` are on location `i`.
///
/// # Errors
/// Widths that do not add up to their tensor, or tensors that do not add up to the axis.
pub fn sub_parameters(shape: &[u64], axis: usize, sizes: &[u64], widths: &[Vec<u64>]) -> Result<Map, PlanError> {
    if sizes.len() != widths.len() {
        return Err(wrong(format!("{} sizes, but widths for {}", sizes.len(), widths.len())));
    }
    let parts: Vec<Segment> = sizes.iter().zip(widths).map(|(&size, widths)| Segment { size, widths: Some(widths.clone()) }).collect();
    segmented(shape, axis, &parts, widths.first().map_or(0, Vec::len))
}

/// Parts of an axis that follow each other, each cut over the locations or held by all of them, as fused attention weights are.
///
/// # Errors
/// Widths that do not add up to their part, or parts that do not add up to the axis.
pub fn segmented(shape: &[u64], axis: usize, parts: &[Segment], locations: usize) -> Result<Map, PlanError> {
    let whole = sound(shape, Some(axis))?;
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); locations];
    let all: BTreeSet<i64> = (0..).take(locations).collect();
    let mut start = 0_u64;
    for (number, part) in parts.iter().enumerate() {
        match &part.widths {
            None => runs.iter_mut().for_each(|runs| runs.push(Run { start, width: part.size, holders: all.clone() })),
            Some(widths) => {
                let sum = widths.iter().fold(0_u64, |sum, &width| sum.saturating_add(width));
                if widths.len() != locations || sum != part.size {
                    let what =
                        format!("part {number}: {} widths of together {sum}, for {locations} locations and {}", widths.len(), part.size);
                    return Err(wrong(what));
                }
                let mut at = start;
                for (location, (&width, runs)) in (0_i64..).zip(widths.iter().zip(&mut runs)) {
                    runs.push(Run { start: at, width, holders: BTreeSet::from([location]) });
                    at += width;
                }
            }
        }
        start = start.saturating_add(part.size);
    }
    if start != whole {
        return Err(wrong(format!("the parts add up to {start} of axis {axis}, which has {whole}")));
    }
    Ok(along(shape, axis, (0..).zip(runs).collect()))
}

/// Blocks of an axis, each location's in its own order: `blocks[location]` are numbers of blocks of `size` elements. Blocks that
/// follow each other make one piece.
///
/// # Errors
/// A block that does not exist, or an axis that is no multiple of the block.
pub fn gather(shape: &[u64], axis: usize, blocks: &BTreeMap<i64, Vec<u64>>, size: u64) -> Result<Map, PlanError> {
    let whole = sound(shape, Some(axis))?;
    if size == 0 || !whole.is_multiple_of(size) {
        return Err(wrong(format!("axis {axis} has {whole} elements, no multiple of blocks of {size}")));
    }
    let count = whole / size;
    let mut holders: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for (&location, own) in blocks {
        for &block in own {
            if block >= count {
                return Err(wrong(format!("location {location}: block {block} of {count}")));
            }
            if !holders.entry(block).or_default().insert(location) {
                return Err(wrong(format!("location {location}: block {block} twice")));
            }
        }
    }
    let runs = blocks.iter().map(|(&location, own)| {
        let mut runs: Vec<Run> = Vec::new();
        for &block in own {
            let held = &holders[&block];
            match runs.last_mut() {
                Some(last) if last.start + last.width == block * size && last.holders == *held => last.width += size,
                _ => runs.push(Run { start: block * size, width: size, holders: held.clone() }),
            }
        }
        (location, runs)
    });
    Ok(along(shape, axis, runs.collect()))
}

/// Ranges of the row-major tensor (start, end), one a location, each stored flat: the partitions of ZeRO-3. A range is cut into
/// the fewest blocks of rows.
///
/// # Errors
/// A range that is not within the tensor.
pub fn flat(shape: &[u64], ranges: &BTreeMap<i64, (u64, u64)>) -> Result<Map, PlanError> {
    sound(shape, None)?;
    let size = elements(shape).unwrap_or_default();
    let strides = row_major(shape);
    let mut shards = BTreeMap::new();
    for (&location, &(start, end)) in ranges {
        if start > end || end > size {
            return Err(wrong(format!("location {location}: elements {start} to {end} of {size}")));
        }
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let extent = largest(shape, &strides, at, end);
            let count: u64 = extent.iter().product();
            pieces.push(Piece {
                shape: extent,
                source: Walk { offset: at, strides: strides.clone() },
                dest: Walk { offset: at - start, strides: strides.clone() },
                holders: BTreeSet::from([location]),
                scale: 1.0,
            });
            at += count;
        }
        shards.insert(location, Shard { shape: vec![end - start], pieces });
    }
    Ok(Map { shape: shape.to_vec(), shards })
}

/// The largest block that is the row-major range from `at`, and ends at `end` at the latest.
fn largest(shape: &[u64], strides: &[i64], at: u64, end: u64) -> Vec<u64> {
    let mut extent = vec![1; shape.len()];
    for axis in 0..shape.len() {
        let stride = strides[axis].unsigned_abs();
        // Whole steps of this axis: it must begin at the start of one, and stay within the axis.
        if !at.is_multiple_of(stride) || end - at < stride {
            continue;
        }
        let from = at / stride % shape[axis];
        extent[axis] = ((end - at) / stride).min(shape[axis] - from);
        extent[axis + 1..].copy_from_slice(&shape[axis + 1..]);
        break;
    }
    extent
}

/// A stretch of the axis that a location has.
#[derive(Clone)]
struct Run {
    start: u64,
    width: u64,
    holders: BTreeSet<i64>,
}

/// Stretches of one axis, one behind the other in the shard.
fn along(shape: &[u64], axis: usize, runs: Vec<(i64, Vec<Run>)>) -> Map {
    let strides = row_major(shape);
    let extent = |width: u64| {
        let mut extent = shape.to_vec();
        extent[axis] = width;
        extent
    };
    let shards = runs.into_iter().map(|(location, runs)| {
        let shard = extent(runs.iter().map(|run| run.width).sum());
        let rows = row_major(&shard);
        let mut at = 0;
        let pieces = runs.into_iter().map(|run| {
            let piece = Piece {
                shape: extent(run.width),
                source: Walk { offset: run.start * strides[axis].unsigned_abs(), strides: strides.clone() },
                dest: Walk { offset: at * rows[axis].unsigned_abs(), strides: rows.clone() },
                holders: run.holders,
                scale: 1.0,
            };
            at += run.width;
            piece
        });
        let pieces = pieces.collect();
        (location, Shard { shape: shard, pieces })
    });
    Map { shape: shape.to_vec(), shards: shards.collect() }
}

/// Extent of an axis of a shape that can be laid out.
fn sound(shape: &[u64], axis: Option<usize>) -> Result<u64, PlanError> {
    if elements(shape).is_none() {
        return Err(wrong(format!("a tensor of shape {shape:?} has more than 2^63 elements")));
    }
    match axis {
        None => Ok(0),
        Some(axis) => shape.get(axis).copied().ok_or_else(|| wrong(format!("axis {axis} of a shape with {} axes", shape.len()))),
    }
}

fn wrong(what: String) -> PlanError {
    PlanError::Invalid { place: At::default(), what }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn every_builder_makes_a_map_that_keeps_the_rules() {
        let maps = [
            replicated(&[3, 5], &[0, 7, -1]),
            split(&[5, 4], 0, &[2, 0, 3]),
            split(&[3, 4, 5], 1, &[1, 3]),
            sub_parameters(&[12, 3], 0, &[4, 8], &[vec![1, 3], vec![8, 0]]),
            segmented(&[4, 10], 1, &[Segment::even(7, 3), Segment::replicated(3)], 3),
            gather(&[8, 2], 0, &BTreeMap::from([(0, vec![3, 0, 1]), (4, vec![2, 1])]), 2),
            flat(&[4, 6], &BTreeMap::from([(0, (0, 5)), (1, (5, 21)), (2, (21, 24))])),
            flat(&[3, 2, 5], &BTreeMap::from([(0, (0, 7)), (1, (7, 29)), (2, (29, 30))])),
            replicated(&[], &[1]),
        ];
        for (number, map) in maps.into_iter().enumerate() {
            assert_eq!(check(&map.unwrap(), "", ""), Ok(()), "map {number}");
        }
    }

    #[test]
    fn a_flat_range_is_cut_into_the_fewest_blocks_of_rows() {
        let map = flat(&[4, 6], &BTreeMap::from([(0, (0, 5)), (1, (5, 21)), (2, (21, 24))])).unwrap();
        let shapes: Vec<Vec<u64>> = map.shards[&1].pieces.iter().map(|piece| piece.shape.clone()).collect();
        assert_eq!(shapes, [[1, 1], [2, 6], [1, 3]]);
        assert_eq!(map.shards[&1].pieces[1].dest.offset, 1);
    }

    #[test]
    fn blocks_that_follow_each_other_make_one_piece_unless_others_hold_them() {
        let map = gather(&[8], 0, &BTreeMap::from([(0, vec![0, 1, 2]), (1, vec![3, 2])]), 2).unwrap();
        assert_eq!(map.shards[&0].pieces.len(), 2);
        assert_eq!(map.shards[&0].pieces[1].holders, BTreeSet::from([0, 1]));
    }

    #[test]
    fn parts_that_do_not_go_up_are_told() {
        let told = |map: Result<Map, PlanError>| map.unwrap_err().to_string();
        assert!(told(split(&[5, 4], 0, &[2, 2])).contains("together 4"));
        assert!(told(split(&[5, 4], 2, &[4])).contains("axis 2"));
        assert!(told(segmented(&[5], 0, &[Segment::replicated(4)], 2)).contains("add up to 4"));
        assert!(told(gather(&[8], 0, &BTreeMap::from([(3, vec![4])]), 2)).contains("location 3: block 4"));
        assert!(told(gather(&[8], 0, &BTreeMap::from([(3, vec![1])]), 3)).contains("no multiple"));
        assert!(told(flat(&[8], &BTreeMap::from([(3, (4, 9))]))).contains("4 to 9"));
    }
}
