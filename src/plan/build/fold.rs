use std::cmp::Ordering;
use std::collections::HashMap;

use super::Budget;
use crate::plan::{At, Place, PlanError, Segment};

/// Join segments that continue each other on both sides along an axis, and put all in order. It is addresses that are joined, not
/// blocks of the tensor: what is far apart there may be neighbours in both shards.
///
/// Within a group of equal (source, target, strides) each pass takes the segments in order and joins each with the first kept one
/// that it continues or that continues it, until a pass joins nothing. Addresses of a target hold one element each, so at most one
/// kept segment begins, and one ends along an axis, at an address: these are looked up, not compared one by one. What the budget
/// counts are the comparisons that would take.
pub(super) fn fold(mut segments: Vec<Segment>, budget: &Budget, place: &At) -> Result<Vec<Segment>, PlanError> {
    let mut keys: Vec<(i64, i64, u32)> = (0..).zip(&segments).map(|(at, own): (u32, _)| (own.source.0, own.target.0, at)).collect();
    keys.sort_unstable();
    let mut checks = 0_usize;
    let mut folded = Vec::new();
    for pair in keys.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)).filter(|pair| pair.len() > 1) {
        // Taken out, an empty shape stays behind.
        let mut own: Vec<Segment> = pair.iter().map(|key| std::mem::replace(&mut segments[key.2 as usize], taken())).collect();
        own.sort_unstable_by(|one, other| strides(one, other).then_with(|| within(one, other)));
        let mut rest = own.into_iter().peekable();
        while let Some(first) = rest.next() {
            let mut own = vec![first];
            while let Some(next) = rest.next_if(|next| strides(&own[0], next).is_eq()) {
                own.push(next);
            }
            passes(&mut own, budget, &mut checks, place)?;
            folded.append(&mut own);
        }
    }
    if !folded.is_empty() {
        segments.retain(|own| own.source.1 != TAKEN);
        segments.append(&mut folded);
    }
    // Mostly in order already, which this sort sees.
    segments.sort_by(order);
    Ok(segments)
}

/// Offset of a segment that was taken out; none begins there, since shards have at most 2^63 elements.
const TAKEN: u64 = u64::MAX;

fn taken() -> Segment {
    Segment { shape: Vec::new(), source: Place(0, TAKEN, Vec::new()), target: Place(0, TAKEN, Vec::new()) }
}

/// Passes over a group, until one joins nothing.
fn passes(own: &mut Vec<Segment>, budget: &Budget, checks: &mut usize, place: &At) -> Result<(), PlanError> {
    for _ in 0..budget.merge_passes {
        let before = own.len();
        if before == 1 {
            break;
        }
        *own = pass(std::mem::take(own), checks);
        Budget::keeps("comparisons to join segments", *checks, budget.merge_checks, place)?;
        if own.len() == before {
            break;
        }
    }
    Ok(())
}

fn strides(one: &Segment, other: &Segment) -> Ordering {
    one.source.2.cmp(&other.source.2).then_with(|| one.target.2.cmp(&other.target.2))
}

fn within(one: &Segment, other: &Segment) -> Ordering {
    let key = |own: &Segment| (own.target.1, own.source.1);
    key(one).cmp(&key(other)).then_with(|| one.shape.cmp(&other.shape))
}

/// The order of a plan.
fn order(one: &Segment, other: &Segment) -> Ordering {
    let key = |own: &Segment| (own.target.0, own.target.1, own.source.0, own.source.1);
    key(one).cmp(&key(other)).then_with(|| one.shape.cmp(&other.shape)).then_with(|| strides(one, other))
}

/// Address just past a walk along an axis.
fn end(offset: u64, extent: u64, stride: i64) -> u64 {
    offset.wrapping_add_signed(extent.cast_signed().wrapping_mul(stride))
}

/// One pass over a group.
fn pass(segments: Vec<Segment>, checks: &mut usize) -> Vec<Segment> {
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut starts: HashMap<u64, usize> = HashMap::with_capacity(segments.len());
    let mut ends: HashMap<(usize, u64), usize> = HashMap::with_capacity(segments.len() * 2);
    for segment in segments {
        let rank = segment.shape.len();
        // (which kept one, along which axis, whether it comes before): the first kept one, along the first axis.
        let found = (0..rank).flat_map(|axis| {
            let past = end(segment.target.1, segment.shape[axis], segment.target.2[axis]);
            let before = ends.get(&(axis, segment.target.1)).filter(|&&own| continues(&kept[own], &segment, axis));
            let after = starts.get(&past).filter(|&&own| continues(&segment, &kept[own], axis));
            before.map(|&own| (own, axis, 0)).into_iter().chain(after.map(|&own| (own, axis, 1)))
        });
        let found = found.min();
        *checks = checks.saturating_add(found.map_or(kept.len(), |(own, ..)| own + 1));
        let own = match found {
            None => {
                kept.push(segment);
                kept.len() - 1
            }
            Some((joined, axis, after)) => {
                let old = &mut kept[joined];
                starts.remove(&old.target.1);
                for along in 0..rank {
                    ends.remove(&(along, end(old.target.1, old.shape[along], old.target.2[along])));
                }
                let extent = old.shape[axis] + segment.shape[axis];
                if after == 1 {
                    *old = segment;
                }
                old.shape[axis] = extent;
                joined
            }
        };
        let new = &kept[own];
        starts.insert(new.target.1, own);
        for axis in 0..new.shape.len() {
            ends.insert((axis, end(new.target.1, new.shape[axis], new.target.2[axis])), own);
        }
    }
    kept
}

/// The second goes on where the first ends along an axis, on both sides, and they are equal otherwise.
fn continues(first: &Segment, second: &Segment, axis: usize) -> bool {
    let (one, other) = (&first.shape, &second.shape);
    end(first.source.1, one[axis], first.source.2[axis]) == second.source.1
        && end(first.target.1, one[axis], first.target.2[axis]) == second.target.1
        && one[..axis] == other[..axis]
        && one[axis + 1..] == other[axis + 1..]
}
