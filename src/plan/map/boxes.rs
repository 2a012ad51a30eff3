use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Comparisons below which splitting further does not pay.
const FEW: usize = 256;

/// Axis-aligned blocks of one tensor, none empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Boxes {
    axes: usize,
    len: usize,
    low: Vec<u64>,
    high: Vec<u64>,
}

impl Boxes {
    /// No block yet, of a tensor with so many axes.
    pub fn new(axes: usize) -> Self {
        Self { axes, ..Self::default() }
    }

    /// Add the block that begins at `low`.
    pub fn push(&mut self, low: &[u64], extent: &[u64]) {
        self.len += 1;
        self.low.extend_from_slice(low);
        self.high.extend(low.iter().zip(extent).map(|(low, extent)| low + extent));
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First coordinates of a block.
    pub fn low(&self, of: usize) -> &[u64] {
        &self.low[of * self.axes..(of + 1) * self.axes]
    }

    /// Coordinates just past a block.
    pub fn high(&self, of: usize) -> &[u64] {
        &self.high[of * self.axes..(of + 1) * self.axes]
    }

    /// Extents of a block.
    pub fn extent(&self, of: usize) -> Vec<u64> {
        self.low(of).iter().zip(self.high(of)).map(|(low, high)| high - low).collect()
    }

    /// Elements of a block.
    pub fn volume(&self, of: usize) -> u64 {
        self.low(of).iter().zip(self.high(of)).map(|(low, high)| high - low).product()
    }

    /// Order by origin, then extent.
    pub fn order(&self, one: usize, other: usize) -> Ordering {
        self.low(one).cmp(self.low(other)).then_with(|| self.high(one).cmp(self.high(other)))
    }

    /// Corner and extent of what a block has in common with one of others; `None` where that is nothing.
    pub fn common(&self, own: usize, others: &Self, other: usize) -> Option<(Vec<u64>, Vec<u64>)> {
        if !self.meets(own, others, other) {
            return None;
        }
        let low: Vec<u64> = self.low(own).iter().zip(others.low(other)).map(|(&a, &b)| a.max(b)).collect();
        let high = self.high(own).iter().zip(others.high(other)).map(|(&a, &b)| a.min(b));
        let extent = high.zip(&low).map(|(high, low)| high - low).collect();
        Some((low, extent))
    }

    fn meets(&self, own: usize, others: &Self, other: usize) -> bool {
        let starts = self.low(own).iter().zip(others.high(other)).all(|(low, high)| low < high);
        starts && others.low(other).iter().zip(self.high(own)).all(|(low, high)| low < high)
    }

    /// Every pair (block of these, block of the others) that has elements in common, once, in no order of use. Space is halved at the
    /// median edge for as long as that saves comparisons: about n·log n plus the pairs for layouts that are cut along axes.
    pub fn join<B>(&self, others: &Self, visit: &mut impl FnMut(usize, usize) -> ControlFlow<B>) -> ControlFlow<B> {
        let all = |boxes: &Self| (0..boxes.len as u32).collect();
        Join { left: self, right: others, visit }.within(all(self), all(others), &mut vec![0; self.axes], &mut vec![u64::MAX; self.axes])
    }

    /// Two blocks that have elements in common, the lower number first.
    pub fn overlap(&self) -> Option<(usize, usize)> {
        if (0..self.axes).any(|axis| self.apart(axis)) {
            return None;
        }
        let found =
            self.join(self, &mut |one, other| if one < other { ControlFlow::Break((one, other)) } else { ControlFlow::Continue(()) });
        found.break_value()
    }

    /// True where no two blocks share a coordinate of an axis: the usual layouts, which need no closer look.
    fn apart(&self, axis: usize) -> bool {
        let mut spans: Vec<(u64, u64)> = (0..self.len).map(|own| (self.low(own)[axis], self.high(own)[axis])).collect();
        if !spans.is_sorted() {
            spans.sort_unstable();
        }
        spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
    }

    /// A block (corner, extent) of a tensor of that shape that none of these covers.
    pub fn gap(&self, shape: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
        if shape.contains(&0) {
            return None;
        }
        let inside = |own: &u32| self.low(*own as usize).iter().zip(shape).all(|(low, end)| low < end);
        let of = (0..self.len as u32).filter(inside).collect();
        let (low, high) = self.gap_within(of, &mut vec![0; self.axes], &mut shape.to_vec())?;
        let extent = high.iter().zip(&low).map(|(high, low)| high - low).collect();
        Some((low, extent))
    }

    fn gap_within(&self, of: Vec<u32>, low: &mut Vec<u64>, high: &mut Vec<u64>) -> Option<(Vec<u64>, Vec<u64>)> {
        if of.is_empty() {
            return Some((low.clone(), high.clone()));
        }
        let contains = |&own: &u32| {
            let (from, to) = (self.low(own as usize), self.high(own as usize));
            from.iter().zip(low.iter()).all(|(a, b)| a <= b) && to.iter().zip(high.iter()).all(|(a, b)| a >= b)
        };
        if of.iter().any(contains) {
            return None;
        }
        // Some block ends inside, or it would contain the region.
        let edges = |axis: usize| {
            let inside = |edge: &u64| low[axis] < *edge && *edge < high[axis];
            let both = of.iter().flat_map(|&own| [self.low(own as usize)[axis], self.high(own as usize)[axis]]);
            both.filter(inside).collect::<Vec<u64>>()
        };
        let (axis, mut inside) =
            (0..self.axes).map(|axis| (axis, edges(axis))).max_by_key(|(axis, edges)| (edges.len(), usize::MAX - axis))?;
        if inside.is_empty() {
            return None;
        }
        let middle = inside.len() / 2;
        let at = *inside.select_nth_unstable(middle).1;
        drop(inside);
        let (below, above) = self.halves(&of, axis, at);
        drop(of);
        let end = std::mem::replace(&mut high[axis], at);
        let found = self.gap_within(below, low, high);
        high[axis] = end;
        if found.is_some() {
            return found;
        }
        let start = std::mem::replace(&mut low[axis], at);
        let found = self.gap_within(above, low, high);
        low[axis] = start;
        found
    }

    /// Those with elements below and those with elements at or above an edge.
    fn halves(&self, of: &[u32], axis: usize, at: u64) -> (Vec<u32>, Vec<u32>) {
        let below = of.iter().copied().filter(|&own| self.low(own as usize)[axis] < at).collect();
        let above = of.iter().copied().filter(|&own| self.high(own as usize)[axis] > at).collect();
        (below, above)
    }

    /// How many [`Boxes::halves`] would find.
    fn counts(&self, of: &[u32], axis: usize, at: u64) -> (usize, usize) {
        let below = of.iter().filter(|&&own| self.low(own as usize)[axis] < at).count();
        let above = of.iter().filter(|&&own| self.high(own as usize)[axis] > at).count();
        (below, above)
    }
}

struct Join<'a, F> {
    left: &'a Boxes,
    right: &'a Boxes,
    visit: &'a mut F,
}

impl<F> Join<'_, F> {
    /// Pairs whose common corner lies in the region.
    fn within<B>(&mut self, left: Vec<u32>, right: Vec<u32>, low: &mut Vec<u64>, high: &mut Vec<u64>) -> ControlFlow<B>
    where
        F: FnMut(usize, usize) -> ControlFlow<B>,
    {
        if left.is_empty() || right.is_empty() {
            return ControlFlow::Continue(());
        }
        let Some((axis, at)) = self.split(&left, &right, low) else {
            return self.all(&left, &right, low, high);
        };
        let (left_below, left_above) = self.left.halves(&left, axis, at);
        let (right_below, right_above) = self.right.halves(&right, axis, at);
        drop((left, right));
        let end = std::mem::replace(&mut high[axis], at);
        let found = self.within(left_below, right_below, low, high);
        high[axis] = end;
        if found.is_break() {
            return found;
        }
        let start = std::mem::replace(&mut low[axis], at);
        let found = self.within(left_above, right_above, low, high);
        low[axis] = start;
        found
    }

    /// The edge that saves most comparisons; `None` where none saves a quarter.
    fn split(&self, left: &[u32], right: &[u32], low: &[u64]) -> Option<(usize, u64)> {
        let now = left.len().saturating_mul(right.len());
        if now <= FEW {
            return None;
        }
        let best = (0..low.len()).filter_map(|axis| {
            let starts = |boxes: &Boxes, of: &[u32]| of.iter().map(|&own| boxes.low(own as usize)[axis]).collect::<Vec<u64>>();
            let mut edges = starts(self.left, left);
            edges.extend(starts(self.right, right));
            edges.retain(|edge| *edge > low[axis]);
            if edges.is_empty() {
                return None;
            }
            let middle = edges.len() / 2;
            let at = *edges.select_nth_unstable(middle).1;
            let (left_below, left_above) = self.left.counts(left, axis, at);
            let (right_below, right_above) = self.right.counts(right, axis, at);
            let then = left_below.saturating_mul(right_below).saturating_add(left_above.saturating_mul(right_above));
            Some((then, axis, at))
        });
        let (then, axis, at) = best.min()?;
        (then < now - now / 4).then_some((axis, at))
    }

    fn all<B>(&mut self, left: &[u32], right: &[u32], low: &[u64], high: &[u64]) -> ControlFlow<B>
    where
        F: FnMut(usize, usize) -> ControlFlow<B>,
    {
        for &one in left {
            let one = one as usize;
            for &other in right {
                let other = other as usize;
                if !self.left.meets(one, self.right, other) {
                    continue;
                }
                // A pair that lies on both sides of an edge is told on one.
                let corner = self.left.low(one).iter().zip(self.right.low(other)).map(|(&a, &b)| a.max(b));
                if corner.zip(low.iter().zip(high)).all(|(corner, (&low, &high))| low <= corner && corner < high) {
                    (self.visit)(one, other)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boxes(of: &[([u64; 2], [u64; 2])]) -> Boxes {
        let mut boxes = Boxes::new(2);
        for (low, extent) in of {
            boxes.push(low, extent);
        }
        boxes
    }

    fn some(most: usize) -> impl Strategy<Value = Vec<([u64; 2], [u64; 2])>> {
        prop::collection::vec(([0..20_u64, 0..20_u64], [1..9_u64, 1..9_u64]), 0..most)
    }

    proptest! {
        #[test]
        fn a_join_finds_what_comparing_all_pairs_finds(left in some(60), right in some(60)) {
            let (left, right) = (boxes(&left), boxes(&right));
            let mut found = Vec::new();
            let _ = left.join(&right, &mut |one, other| { found.push((one, other)); ControlFlow::<()>::Continue(()) });
            found.sort_unstable();
            let pairs = (0..left.len()).flat_map(|one| (0..right.len()).map(move |other| (one, other)));
            let expected: Vec<_> = pairs.filter(|&(one, other)| left.common(one, &right, other).is_some()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_gap_is_one_and_none_is_missed(of in some(40), shape in [1..12_u64, 1..12_u64]) {
            let boxes = boxes(&of);
            let holds = |at: [u64; 2]| (0..boxes.len()).any(|own| (0..2).all(|a| boxes.low(own)[a] <= at[a] && at[a] < boxes.high(own)[a]));
            let open = (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |column| [row, column])).find(|&at| !holds(at));
            match boxes.gap(&shape) {
                None => prop_assert_eq!(open, None),
                Some((low, extent)) => {
                    for row in low[0]..low[0] + extent[0] {
                        for column in low[1]..low[1] + extent[1] {
                            prop_assert!(!holds([row, column]) && row < shape[0] && column < shape[1]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_scalar_is_one_block() {
        let mut one = Boxes::new(0);
        assert_eq!(one.gap(&[]), Some((vec![], vec![])));
        one.push(&[], &[]);
        assert_eq!(one.gap(&[]), None);
        assert_eq!(one.overlap(), None);
        one.push(&[], &[]);
        assert_eq!(one.overlap(), Some((0, 1)));
    }
}
