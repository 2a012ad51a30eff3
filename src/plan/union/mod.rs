//! A parameter that several layouts hold at once, as one map: every holder of every element, none of them moved.

mod refine;

use std::collections::{BTreeSet, HashMap};

use super::map::{Map, Maps, Piece, Shard, Walk, elements, row_major};
use super::{At, PlanError};
use crate::units::plain;
use refine::{Block, Part, refine};

/// Axes of a tensor, as for planning: each is a sweep within the one before.
const MOST_AXES: usize = 8;
/// More cells are not looked at.
const MOST_CELLS: usize = 1 << 23;
/// More pieces are refused.
const MOST_PIECES: usize = 1 << 22;

/// One map of each parameter that any of the layouts holds. Layouts of a parameter have its shape and locations of their own, one a
/// buffer ([`super::Endpoints`] may give several to one process); their order does not matter.
///
/// Every piece is cut where any other block, of its own layout too, begins or ends over it, and lists the holders of all of them. A cut
/// keeps strides and scale, so every location holds exactly what it held. Where holders need not be told apart nothing is cut.
pub fn union(layouts: &[Maps]) -> Result<Maps, PlanError> {
    if layouts.is_empty() {
        return Err(PlanError::Invalid { place: At::default(), what: "no layouts: give one or more".to_owned() });
    }
    let names: BTreeSet<&String> = layouts.iter().flat_map(|maps| maps.keys()).collect();
    let one = |name: &String| {
        let maps: Vec<&Map> = layouts.iter().filter_map(|maps| maps.get(name)).collect();
        union_of(name, &maps).map(|map| (name.clone(), map))
    };
    names.into_iter().map(one).collect()
}

/// A location's shard, and its pieces with the numbers of their blocks; those without elements are left out.
struct Kept<'a> {
    location: i64,
    shard: &'a Shard,
    pieces: Vec<(usize, &'a Piece)>,
}

/// The same of one parameter.
fn union_of(name: &str, maps: &[&Map]) -> Result<Map, PlanError> {
    let at = |location, piece| At { parameter: plain(name), location, piece, ..At::default() };
    let Some(shape) = maps.first().map(|map| &map.shape) else { return Ok(Map::default()) };
    if let Some(other) = maps.iter().find(|map| map.shape != *shape) {
        let what = format!("its shape is {shape:?} in one layout and {:?} in another: give layouts of the same tensor", other.shape);
        return Err(PlanError::Invalid { place: at(None, None), what });
    }
    if shape.len() > MOST_AXES {
        let what = format!("{} axes, {MOST_AXES} at most", shape.len());
        return Err(PlanError::Budget { place: at(None, None), what });
    }
    if elements(shape).is_none() {
        let what = format!("{shape:?} has more elements than can be counted");
        return Err(PlanError::Unsupported { place: at(None, None), what });
    }
    let rows = row_major(shape);

    // Blocks that are the same box are one: replicas are cut alike.
    let mut known: HashMap<Block, usize> = HashMap::new();
    let mut holders: Vec<BTreeSet<i64>> = Vec::new();
    let mut kept: Vec<Kept> = Vec::new();
    let mut seen = BTreeSet::new();
    for (&location, shard) in maps.iter().flat_map(|map| &map.shards) {
        if !seen.insert(location) {
            let what = "in more than one layout: give each buffer a location of its own; endpoints may give several to one process";
            return Err(PlanError::Invalid { place: at(Some(location), None), what: what.to_owned() });
        }
        let mut pieces = Vec::new();
        for (number, piece) in shard.pieces.iter().enumerate().filter(|(_, piece)| !piece.shape.contains(&0)) {
            let block =
                block_of(piece, shape, &rows).map_err(|what| PlanError::Unsupported { place: at(Some(location), Some(number)), what })?;
            let id = *known.entry(block).or_insert_with(|| {
                holders.push(BTreeSet::new());
                holders.len() - 1
            });
            holders[id].extend(&piece.holders);
            holders[id].insert(location);
            pieces.push((id, piece));
        }
        kept.push(Kept { location, shard, pieces });
    }
    let mut blocks = vec![Block::default(); known.len()];
    for (block, id) in known {
        blocks[id] = block;
    }

    let Some(parts) = refine(&blocks, MOST_CELLS) else {
        let what = format!("more than {MOST_CELLS} cells between the edges of its blocks: union fewer layouts at a time");
        return Err(PlanError::Budget { place: at(None, None), what });
    };
    let mut of_block: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (number, part) in parts.iter().enumerate() {
        for &block in &part.over {
            of_block[block].push(number);
        }
    }
    let count: usize = kept.iter().flat_map(|kept| &kept.pieces).map(|&(id, _)| of_block[id].len()).sum();
    if count > MOST_PIECES {
        let what = format!("{count} pieces, {MOST_PIECES} at most: union fewer layouts at a time");
        return Err(PlanError::Budget { place: at(None, None), what });
    }
    let all = |part: &Part| -> BTreeSet<i64> { part.over.iter().flat_map(|&block| &holders[block]).copied().collect() };
    let holding: Vec<BTreeSet<i64>> = parts.iter().map(all).collect();
    let shard = |Kept { location, shard, pieces }: Kept| {
        let mut cut = Vec::new();
        for (id, piece) in pieces {
            for &number in &of_block[id] {
                cut.push(cut_out(piece, &blocks[id], &parts[number], holding[number].clone()));
            }
        }
        (location, Shard { shape: shard.shape.clone(), pieces: cut })
    };
    Ok(Map { shape: shape.clone(), shards: kept.into_iter().map(shard).collect() })
}

/// A piece's elements as a box of the tensor, or why they are none.
fn block_of(piece: &Piece, shape: &[u64], rows: &[i64]) -> Result<Block, String> {
    let (axes, strides) = (piece.shape.len(), piece.source.strides.len());
    if axes != shape.len() || strides != axes || piece.dest.strides.len() != axes {
        let dest = piece.dest.strides.len();
        return Err(format!("{axes} axes, {strides} source and {dest} dest strides: expected {} of each", shape.len()));
    }
    let mut rest = piece.source.offset;
    let mut origin = Vec::with_capacity(axes);
    for (a, (&size, &row)) in shape.iter().zip(rows).enumerate() {
        let (Some(at), Some(left)) = (rest.checked_div(row.unsigned_abs()), rest.checked_rem(row.unsigned_abs())) else {
            return Err(format!("no block of the tensor: {shape:?} has no elements"));
        };
        rest = left;
        let (extent, stride) = (piece.shape[a], piece.source.strides[a]);
        if extent > 1 && stride != row {
            return Err(format!("no block of the tensor: stride {stride} on axis {a}, where its rows have {row}"));
        }
        if at.checked_add(extent).is_none_or(|end| end > size) {
            return Err(format!("no block of the tensor: {extent} elements from {at} on along axis {a}, which has {size}"));
        }
        origin.push(at);
    }
    if rest > 0 {
        return Err(format!("no block of the tensor: it begins at {}, outside of {shape:?}", piece.source.offset));
    }
    Ok(Block { origin, extent: piece.shape.clone() })
}

fn cut_out(piece: &Piece, block: &Block, part: &Part, holders: BTreeSet<i64>) -> Piece {
    let moved = |walk: &Walk| {
        let steps = part.origin.iter().zip(&block.origin).zip(&walk.strides);
        let by = steps.fold(0_i64, |by, ((&at, &from), &stride)| by.wrapping_add((at - from).cast_signed().wrapping_mul(stride)));
        Walk { offset: walk.offset.wrapping_add_signed(by), strides: walk.strides.clone() }
    };
    Piece { shape: part.extent.clone(), source: moved(&piece.source), dest: moved(&piece.dest), holders, scale: piece.scale }
}

#[cfg(test)]
mod tests;
