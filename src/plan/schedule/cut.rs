//! How a segment is cut into chunks that a staging budget holds.

/// A segment's cut: extent 1 on the axes before `axis`, steps of `step` along it, everything behind it. All chunks keep the segment's
/// strides, so both sides pack a chunk in the same row-major order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// axis that is cut; equal to the number of axes where the whole segment is one chunk
    axis: usize,
    /// extent of a chunk on that axis; the last one may be shorter
    step: u64,
    /// chunks along that axis
    along: u64,
    /// of the segment
    pub chunks: u64,
}

/// Where a chunk begins in its segment, and how large it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub origin: Vec<u64>,
    pub shape: Vec<u64>,
}

impl Cut {
    /// Cut a region so that no chunk has more than `most` elements (at least 1). The caller knows that its elements can be counted.
    pub(super) fn new(shape: &[u64], most: u64) -> Self {
        if shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size)) <= most {
            return Self { axis: shape.len(), step: 1, along: 1, chunks: 1 };
        }
        let mut inner: u64 = 1;
        let mut axis = shape.len();
        // The innermost axes that fit whole; the one before them is cut. Not all fit: the product is more than `most`.
        while axis > 1 && shape[axis - 1].saturating_mul(inner) <= most {
            axis -= 1;
            inner *= shape[axis];
        }
        let axis = axis.saturating_sub(1);
        let step = most / inner;
        let along = shape[axis].div_ceil(step);
        Self { axis, step, along, chunks: shape[..axis].iter().fold(along, |chunks, &size| chunks.saturating_mul(size)) }
    }

    /// Extents of a chunk, outermost first.
    pub(super) fn extents(self, shape: &[u64], number: u64) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + '_ {
        let at = (number % self.along) * self.step;
        let (axis, step) = (self.axis, self.step);
        (0..shape.len()).map(move |a| match a.cmp(&axis) {
            std::cmp::Ordering::Less if axis == shape.len() => shape[a],
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => step.min(shape[a] - at),
            std::cmp::Ordering::Greater => shape[a],
        })
    }

    /// Elements of a chunk.
    pub(super) fn elements(self, shape: &[u64], number: u64) -> u64 {
        self.extents(shape, number).product()
    }

    /// A chunk as a block of its segment; chunks go row-major.
    pub(super) fn block(self, shape: &[u64], number: u64) -> Block {
        let mut origin = vec![0; shape.len()];
        if self.axis < shape.len() {
            origin[self.axis] = (number % self.along) * self.step;
            let mut rest = number / self.along;
            for a in (0..self.axis).rev() {
                origin[a] = rest % shape[a];
                rest /= shape[a];
            }
        }
        Block { shape: self.extents(shape, number).collect(), origin }
    }
}

/// True when a region's elements follow each other in memory in row-major order: axes of extent 1 may have any stride, and a region
/// without elements is packed.
pub fn is_packed(shape: &[u64], strides: &[i64]) -> bool {
    packed(shape.iter().copied(), strides)
}

/// The same of extents that are not stored.
pub(super) fn packed(extents: impl DoubleEndedIterator<Item = u64>, strides: &[i64]) -> bool {
    let mut next: i128 = 1;
    let mut dense = true;
    for (extent, &stride) in extents.rev().zip(strides.iter().rev()) {
        dense &= extent <= 1 || i128::from(stride) == next;
        next = next.saturating_mul(i128::from(extent));
    }
    dense || next == 0
}
