use std::collections::BTreeSet;

use super::boxes::Boxes;
use super::fill::{Held, fill};
use super::{Map, Piece};
use crate::plan::{At, PlanError};

/// The pieces of a map as blocks of its tensor, empty ones left out; by location, then piece.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    pub boxes: Boxes,
    shape: &'a [u64],
    place: At,
    location: Vec<i64>,
    piece: Vec<u32>,
    offset: Vec<u64>,
    strides: Vec<i64>,
    holders: Vec<&'a BTreeSet<i64>>,
}

/// Row-major strides of a shape.
pub fn row_major(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(i64::try_from(shape[axis]).unwrap_or(i64::MAX));
    }
    strides
}

/// Elements of a shape; `None` beyond 2⁶³.
pub fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let product = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent))?;
    i64::try_from(product).ok().map(|_| product)
}

/// The coordinate that an offset names in a tensor of that shape; `None` past its end.
fn coordinate(offset: u64, shape: &[u64], strides: &[i64]) -> Option<Vec<u64>> {
    let mut rest = offset;
    let mut at = Vec::with_capacity(shape.len());
    for (&extent, &stride) in shape.iter().zip(strides) {
        let stride = stride.unsigned_abs().max(1);
        at.push(rest / stride);
        if rest / stride >= extent {
            return None;
        }
        rest %= stride;
    }
    (rest == 0).then_some(at)
}

impl<'a> Frames<'a> {
    /// Rules M1 and M2: the numbers make sense, every piece is a block of the tensor, and the pieces of a location fill its shard,
    /// each address once.
    ///
    /// # Errors
    /// What is invalid, or is legal but no block, with location and piece.
    pub fn of(map: &'a Map, parameter: &str, name: &'static str) -> Result<Self, PlanError> {
        let place = At { parameter: parameter.to_owned(), side: name, ..At::default() };
        if elements(&map.shape).is_none() {
            return Err(invalid(&place, format!("rule M1: a tensor of shape {:?} has more than 2^63 elements", map.shape)));
        }
        let axes = map.shape.len();
        let count = map.shards.values().map(|shard| shard.pieces.len()).sum();
        let mut frames = Self {
            boxes: Boxes::new(axes),
            shape: &map.shape,
            place,
            location: Vec::with_capacity(count),
            piece: Vec::with_capacity(count),
            offset: Vec::with_capacity(count),
            strides: Vec::with_capacity(count * axes),
            holders: Vec::with_capacity(count),
        };
        let logical = row_major(&map.shape);
        for (&location, shard) in &map.shards {
            let place = At { location: Some(location), ..frames.place.clone() };
            let Some(size) = elements(&shard.shape) else {
                return Err(invalid(&place, format!("rule M1: a shard of shape {:?} has more than 2^63 elements", shard.shape)));
            };
            let rows = row_major(&shard.shape);
            let mut held = Vec::with_capacity(shard.pieces.len());
            for (number, piece) in shard.pieces.iter().enumerate() {
                let at = || At { piece: Some(number), ..place.clone() };
                numbers(piece, axes).map_err(|what| invalid(&at(), format!("rule M1: {what}")))?;
                if piece.shape.contains(&0) {
                    continue;
                }
                let origin = block(piece, &map.shape, &logical, &at)?;
                reach(piece, size, &at)?;
                let corner = local(piece, &shard.shape, &rows);
                frames.boxes.push(&origin, &piece.shape);
                frames.location.push(location);
                frames.piece.push(number as u32);
                frames.offset.push(piece.dest.offset);
                // Strides of axes with one element are free: those of the shard, so that neighbours can be joined.
                frames.strides.extend_from_slice(if corner.is_some() { &rows } else { &piece.dest.strides });
                frames.holders.push(&piece.holders);
                held.push(Held { number, piece, corner });
            }
            fill(&held, shard.shape.len(), size, &place)?;
        }
        Ok(frames)
    }

    /// Number of pieces that are not empty.
    pub fn len(&self) -> usize {
        self.boxes.len()
    }

    /// True where every piece is empty.
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Of the tensor.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// Who holds a piece.
    pub fn location(&self, of: usize) -> i64 {
        self.location[of]
    }

    /// Who holds the same elements, as the piece says.
    pub fn holders(&self, of: usize) -> &'a BTreeSet<i64> {
        self.holders[of]
    }

    /// Number of a piece at its location.
    pub fn piece(&self, of: usize) -> usize {
        self.piece[of] as usize
    }

    /// Steps of a piece in its shard.
    pub fn strides(&self, of: usize) -> &[i64] {
        let axes = self.shape.len();
        &self.strides[of * axes..(of + 1) * axes]
    }

    /// Address in the shard of the element of a piece that is at `origin` in the tensor.
    pub fn address(&self, of: usize, origin: &[u64]) -> u64 {
        let steps = origin.iter().zip(self.boxes.low(of)).map(|(at, own)| (at - own).cast_signed());
        let moved: i64 = steps.zip(self.strides(of)).map(|(step, stride)| step * stride).sum();
        self.offset[of].wrapping_add_signed(moved)
    }

    /// Where a piece is, for an error.
    pub fn at(&self, of: usize) -> At {
        At { location: Some(self.location[of]), piece: Some(self.piece(of)), ..self.place.clone() }
    }

    /// Where the map is, for an error.
    pub fn place(&self) -> &At {
        &self.place
    }
}

/// A contradiction.
pub(super) fn invalid(place: &At, what: String) -> PlanError {
    PlanError::Invalid { place: place.clone(), what }
}

/// Rule M1.
fn numbers(piece: &Piece, axes: usize) -> Result<(), String> {
    let (shape, source, dest) = (piece.shape.len(), piece.source.strides.len(), piece.dest.strides.len());
    if shape != axes {
        return Err(format!("a shape of {shape} axes in a tensor of {axes}"));
    }
    if source != axes || dest != axes {
        return Err(format!("{source} source strides and {dest} dest strides for {axes} axes"));
    }
    if piece.holders.is_empty() {
        return Err("locations is empty: at least its own location holds it".to_owned());
    }
    if piece.scale == 0.0 || !piece.scale.is_finite() {
        return Err(format!("scale {}: a number that is not 0", piece.scale));
    }
    Ok(())
}

/// Corner of the block of the tensor that a piece is.
fn block(piece: &Piece, shape: &[u64], strides: &[i64], at: &impl Fn() -> At) -> Result<Vec<u64>, PlanError> {
    let wrong = piece.shape.iter().zip(&piece.source.strides).zip(strides).position(|((&extent, own), whole)| extent > 1 && own != whole);
    if let Some(axis) = wrong {
        let (own, whole) = (piece.source.strides[axis], strides[axis]);
        let what = format!("source stride {own} on axis {axis}, where a block of shape {shape:?} has {whole}; only blocks can be planned");
        return Err(PlanError::Unsupported { place: at(), what });
    }
    let Some(origin) = coordinate(piece.source.offset, shape, strides) else {
        return Err(invalid(&at(), format!("rule M1: source offset {} is past the end of shape {shape:?}", piece.source.offset)));
    };
    let beyond = (0..shape.len()).find(|&axis| piece.shape[axis] > shape[axis] - origin[axis]);
    if let Some(axis) = beyond {
        let (from, extent, end) = (origin[axis], piece.shape[axis], shape[axis]);
        let what = format!("rule M1: {extent} elements from {from} on axis {axis} leave the tensor, which ends at {end} there");
        return Err(invalid(&at(), what));
    }
    Ok(origin)
}

/// Every address of a piece lies in its shard.
fn reach(piece: &Piece, size: u64, at: &impl Fn() -> At) -> Result<(), PlanError> {
    let mut last = i128::from(piece.dest.offset);
    for (axis, (&extent, &stride)) in piece.shape.iter().zip(&piece.dest.strides).enumerate() {
        if extent > 1 && stride == 0 {
            return Err(invalid(&at(), format!("rule M2: dest stride 0 on axis {axis}: {extent} elements would have one address")));
        }
        if extent > 1 && stride < 0 {
            let what = format!("dest stride {stride} on axis {axis}; strides above 0 only");
            return Err(PlanError::Unsupported { place: at(), what });
        }
        last += i128::from(extent - 1) * i128::from(stride.max(0));
    }
    if last >= i128::from(size) {
        return Err(invalid(&at(), format!("rule M2: its last element is at address {last} of a shard of {size} elements")));
    }
    Ok(())
}

/// Corner of the block of its shard that a piece is; `None` where it is none.
fn local(piece: &Piece, shard: &[u64], rows: &[i64]) -> Option<Vec<u64>> {
    if shard.len() != piece.shape.len() {
        return None;
    }
    let matches = piece.shape.iter().zip(&piece.dest.strides).zip(rows).all(|((&extent, own), row)| extent <= 1 || own == row);
    let corner = if matches { coordinate(piece.dest.offset, shard, rows)? } else { return None };
    let inside = corner.iter().zip(&piece.shape).zip(shard).all(|((from, extent), end)| extent <= end && *from <= end - extent);
    inside.then_some(corner)
}
