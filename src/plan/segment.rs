use serde::{Deserialize, Serialize};

/// One side of a segment: location, offset and strides, elements. In files an array of the three.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place(pub i64, pub u64, pub Vec<i64>);

/// A block that is copied from one location's shard into another's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    pub shape: Vec<u64>,
    pub source: Place,
    pub target: Place,
}

impl Segment {
    /// Elements copied.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// All that is copied of one tensor; as the reference stores it. Segments are in the order of (target, target offset, source, source
/// offset, shape, source strides, target strides), whatever the order of the maps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// of the tensor
    pub logical_shape: Vec<u64>,
    pub segments: Vec<Segment>,
}

/// What planning looked at; not stored with a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// distinct source regions
    pub source_pieces: usize,
    pub target_pieces: usize,
    pub pair_checks: usize,
    pub segments_before_merge: usize,
    pub segments: usize,
    /// length of the plan's JSON with sorted keys and without spaces
    pub plan_bytes: usize,
    pub moved_elements: u64,
}
