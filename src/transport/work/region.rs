use serde::{Deserialize, Serialize};

/// Bytes at regular distances: `run` of them from `at` on, repeated along the axes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    pub at: u64,
    pub run: u64,
    /// count and stride, bytes; the innermost first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<(u64, i64)>,
}

impl Region {
    /// Most axes beside the run.
    pub const MOST_AXES: usize = 8;

    /// One run.
    pub const fn packed(at: u64, bytes: u64) -> Self {
        Self { at, run: bytes, axes: Vec::new() }
    }

    /// A block of elements of `element` bytes; strides are bytes, the outermost axis first. `None` with too many axes.
    pub fn strided(at: u64, shape: &[u64], strides: &[i64], element: u64) -> Option<Self> {
        let mut region = Self::packed(at, element);
        for (&count, &stride) in shape.iter().zip(strides).rev() {
            if count == 0 {
                return Some(Self::packed(at, 0));
            }
            if count == 1 {
                continue;
            }
            match region.axes.last_mut() {
                None if i64::try_from(region.run) == Ok(stride) => region.run *= count,
                Some((inner, step)) if i64::try_from(*inner).ok().and_then(|inner| inner.checked_mul(*step)) == Some(stride) => {
                    *inner *= count;
                }
                _ => region.axes.push((count, stride)),
            }
        }
        (region.axes.len() <= Self::MOST_AXES).then_some(region)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.axes.iter().fold(self.run, |bytes, (count, _)| bytes.saturating_mul(*count))
    }

    /// True if it is one run.
    pub fn is_packed(&self) -> bool {
        self.axes.is_empty()
    }

    /// The first byte and the one behind the last; `None` if it leaves the memory that addresses can name.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let (mut low, mut high) = (i128::from(self.at), i128::from(self.at) + i128::from(self.run));
        for &(count, stride) in &self.axes {
            let reach = i128::from(count.saturating_sub(1)) * i128::from(stride);
            if reach < 0 { low += reach } else { high += reach }
        }
        Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?))
    }

    /// Where each of its runs begins.
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs { axes: &self.axes, at: self.at, index: [0; Self::MOST_AXES], over: self.bytes() == 0 }
    }

    /// Its runs along the innermost axis as rows: count and distance of those, and where each such lot begins.
    pub(crate) fn rows(&self) -> (u64, i64, Runs<'_>) {
        let (&(count, stride), outer) = self.axes.split_first().unwrap_or((&(1, 0), &[]));
        (count, stride, Runs { axes: outer, at: self.at, index: [0; Self::MOST_AXES], over: self.bytes() == 0 })
    }
}

/// The runs of a region, row by row. Allocates nothing.
#[derive(Debug)]
pub(crate) struct Runs<'a> {
    axes: &'a [(u64, i64)],
    at: u64,
    index: [u64; Region::MOST_AXES],
    over: bool,
}

impl Iterator for Runs<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.over {
            return None;
        }
        let found = self.at;
        for (index, &(count, stride)) in self.index.iter_mut().zip(self.axes) {
            *index += 1;
            if *index < count {
                self.at = self.at.wrapping_add_signed(stride);
                return Some(found);
            }
            *index = 0;
            self.at = self.at.wrapping_add_signed(stride.wrapping_neg().wrapping_mul(count.cast_signed() - 1));
        }
        self.over = true;
        Some(found)
    }
}

/// Call `each` with (place in the one, place in the other, length) of the pieces of two lists of regions that hold the same number
/// of bytes, in their order.
pub(crate) fn pieces<E>(one: &[Region], other: &[Region], mut each: impl FnMut(u64, u64, u64) -> Result<(), E>) -> Result<(), E> {
    let mut others = other.iter().flat_map(|region| region.runs().map(move |at| (at, region.run)));
    let (mut there, mut left) = (0, 0);
    for region in one {
        for start in region.runs() {
            let mut at = start;
            while at < start + region.run {
                if left == 0 {
                    let Some(next) = others.next() else { return Ok(()) };
                    (there, left) = next;
                }
                let length = left.min(start + region.run - at);
                each(at, there, length)?;
                (at, there, left) = (at + length, there + length, left - length);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_continue_each_other_are_one() {
        assert_eq!(Region::strided(8, &[2, 3, 4], &[24, 8, 2], 2), Some(Region::packed(8, 48)));
        assert_eq!(Region::strided(0, &[4, 6], &[10, 1], 1), Some(Region { at: 0, run: 6, axes: vec![(4, 10)] }));
        assert_eq!(Region::strided(0, &[2, 3, 4], &[60, 20, 2], 2), Some(Region { at: 0, run: 8, axes: vec![(6, 20)] }));
        assert_eq!(Region::strided(3, &[5, 0], &[1, 1], 1).map(|region| region.bytes()), Some(0));
        assert_eq!(Region::strided(0, &[2; 9], &[1 << 20, 1 << 18, 1 << 16, 1 << 14, 4096, 1024, 256, 64, 16], 1), None);
    }

    #[test]
    fn runs_are_walked_row_by_row() {
        let region = Region::strided(100, &[2, 3, 2], &[-50, 10, 2], 1).unwrap();
        assert_eq!(region.runs().collect::<Vec<_>>(), [100, 102, 110, 112, 120, 122, 50, 52, 60, 62, 70, 72]);
        assert_eq!(region.bounds(), Some((50, 123)));
        assert_eq!(Region { at: 10, run: 1, axes: vec![(2, -11)] }.bounds(), None);
        assert_eq!(Region::packed(7, 0).runs().count(), 0);
    }

    #[test]
    fn rows_are_the_same_runs() {
        for region in [
            Region::strided(100, &[2, 3, 2], &[-50, 10, 2], 1).unwrap(),
            Region { at: 0, run: 6, axes: vec![(4, 10)] },
            Region::packed(7, 9),
            Region::packed(7, 0),
        ] {
            let (count, stride, lots) = region.rows();
            let rows = lots.flat_map(|at| (0..count).map(move |row| at.wrapping_add_signed(row.cast_signed() * stride)));
            assert_eq!(rows.collect::<Vec<_>>(), region.runs().collect::<Vec<_>>(), "{region:?}");
        }
    }

    #[test]
    fn two_lists_are_walked_together_whatever_their_runs() {
        let one = [Region::packed(0, 5), Region { at: 100, run: 2, axes: vec![(2, 10)] }];
        let other = [Region { at: 0, run: 3, axes: vec![(3, 4)] }];
        let mut seen = Vec::new();
        let walked = pieces(&one, &other, |at, there, length| {
            seen.push((at, there, length));
            Ok::<(), ()>(())
        });
        assert_eq!(walked, Ok(()));
        assert_eq!(
            seen,
            [(0, 0, 3), (3, 4, 2), (100, 6, 1), (101, 8, 1), (110, 9, 2)][..4].iter().copied().chain([(110, 9, 2)]).collect::<Vec<_>>()
        );
    }
}
