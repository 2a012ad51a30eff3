//! The affine map: who holds which elements of a logical tensor, and where in their shards.
//!
//! Element `i` (`0 <= i_a < shape_a`) of a piece: logical address `source.offset + Σ i_a·source.strides_a` in the tensor, address
//! `dest.offset + Σ i_a·dest.strides_a` in the shard of its location; shard = tensor × scale. All in elements.

mod boxes;
mod builders;
mod check;
mod fill;
mod frames;
mod json;
mod names;

pub use boxes::Boxes;
pub use builders::{Segment, flat, gather, replicated, segmented, split, sub_parameters};
pub use check::{Regions, check};
pub use frames::{Frames, elements, row_major};
pub use json::{read, write};

use std::collections::{BTreeMap, BTreeSet};

/// Start and step of a walk through memory, elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Walk {
    pub offset: u64,
    /// one an axis
    pub strides: Vec<i64>,
}

/// A block of elements that one location holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    pub shape: Vec<u64>,
    /// in the logical tensor
    pub source: Walk,
    /// in the shard
    pub dest: Walk,
    /// every location that holds these elements, this one included
    pub holders: BTreeSet<i64>,
    /// shard = tensor × scale; never 0
    pub scale: f64,
}

/// What one location holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shard {
    pub shape: Vec<u64>,
    pub pieces: Vec<Piece>,
}

/// A tensor's layout over locations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Map {
    /// of the tensor
    pub shape: Vec<u64>,
    pub shards: BTreeMap<i64, Shard>,
}

/// Layouts of a model: by parameter.
pub type Maps = BTreeMap<String, Map>;
