//! The disjoint refinement of boxes that overlap: a sweep along each axis in turn.
//!
//! It is made once for all boxes together, so that two boxes over the same elements are always cut alike. What lies under the same
//! boxes is joined again, along every axis, where it makes up a box.

use std::collections::{BTreeSet, HashMap};

/// A box of the tensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub origin: Vec<u64>,
    pub extent: Vec<u64>,
}

/// A box of the refinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub origin: Vec<u64>,
    pub extent: Vec<u64>,
    /// the blocks over it, ascending
    pub over: Vec<usize>,
}

/// The refinement of blocks of the same number of axes, none of them empty; ascending by origin. `None` if it takes a look at more
/// than `most` cells.
pub(super) fn refine(blocks: &[Block], most: usize) -> Option<Vec<Part>> {
    let all: Vec<usize> = (0..blocks.len()).collect();
    let mut left = most;
    let mut parts = if blocks.is_empty() { Vec::new() } else { sweep(blocks, &all, 0, &mut left)? };
    parts.sort_by(|a, b| a.origin.cmp(&b.origin));
    Some(parts)
}

/// Parts below the live blocks, as boxes of the axes from `axis` on; `None` when no cell is left to look at.
fn sweep(blocks: &[Block], live: &[usize], axis: usize, left: &mut usize) -> Option<Vec<Part>> {
    *left = left.checked_sub(1)?;
    if axis == blocks[live[0]].origin.len() {
        let mut over = live.to_vec();
        over.sort_unstable();
        return Some(vec![Part { origin: Vec::new(), extent: Vec::new(), over }]);
    }
    let ends = |block: usize| {
        let from = blocks[block].origin[axis];
        (from, from + blocks[block].extent[axis])
    };
    let edges: BTreeSet<u64> = live.iter().flat_map(|&block| <[u64; 2]>::from(ends(block))).collect();
    let edges: Vec<u64> = edges.into_iter().collect();
    let mut coming: Vec<usize> = live.to_vec();
    coming.sort_by_key(|&block| std::cmp::Reverse(ends(block).0));
    let mut here: Vec<usize> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    // Parts that reach the edge, by what they are on the axes behind: those may go on.
    let mut open: HashMap<(Block, Vec<usize>), usize> = HashMap::new();
    for slab in edges.windows(2) {
        let (from, to) = (slab[0], slab[1]);
        here.retain(|&block| ends(block).1 > from);
        while let Some(block) = coming.pop_if(|block| ends(*block).0 <= from) {
            here.push(block);
        }
        let mut still = HashMap::new();
        if !here.is_empty() {
            for Part { origin, extent, over } in sweep(blocks, &here, axis + 1, left)? {
                let key = (Block { origin, extent }, over);
                let number = if let Some(&number) = open.get(&key) {
                    parts[number].extent[0] += to - from;
                    number
                } else {
                    let (tail, over) = key.clone();
                    let lead = |first: u64, rest: Vec<u64>| [vec![first], rest].concat();
                    parts.push(Part { origin: lead(from, tail.origin), extent: lead(to - from, tail.extent), over });
                    parts.len() - 1
                };
                still.insert(key, number);
            }
        }
        open = still;
    }
    Some(parts)
}
