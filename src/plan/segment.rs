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

impl Plan {
    /// Length of its JSON with sorted keys and without spaces.
    pub fn bytes(&self) -> usize {
        fn digits(number: u64) -> usize {
            number.checked_ilog10().map_or(1, |log| log as usize + 1)
        }
        let sign = |number: i64| usize::from(number < 0) + digits(number.unsigned_abs());
        let list = |lengths: usize, count: usize| 2 + lengths + count.saturating_sub(1);
        let shape = |shape: &[u64]| list(shape.iter().map(|&extent| digits(extent)).sum(), shape.len());
        let strides = |strides: &[i64]| list(strides.iter().map(|&stride| sign(stride)).sum(), strides.len());
        let place = |place: &Place| list(sign(place.0) + digits(place.1) + strides(&place.2), 3);
        // {"shape":..,"source":..,"target":..} and {"logical_shape":..,"segments":..}
        let segment = |own: &Segment| 30 + shape(&own.shape) + place(&own.source) + place(&own.target);
        30 + shape(&self.logical_shape) + list(self.segments.iter().map(segment).sum(), self.segments.len())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_plan_are_those_of_its_json() {
        let segment = |at: u64| Segment {
            shape: vec![at, 10],
            source: Place(-12, at * 99, vec![0, -7]),
            target: Place(3, 1000 + at, vec![i64::MIN, 1]),
        };
        for count in 0..4 {
            let plan = Plan { logical_shape: vec![8; count as usize], segments: (0..count).map(segment).collect() };
            assert_eq!(plan.bytes(), serde_json::to_string(&plan).unwrap().len(), "{count} segments");
        }
    }
}
