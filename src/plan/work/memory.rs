//! Where things lie in a rank's memory.

use crate::transport::work::Region;

/// Everything begins at a cache line.
const LINE: u64 = 64;

/// Hands out memory, one piece behind the other.
#[derive(Debug, Default)]
pub(super) struct Memory(u64);

impl Memory {
    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        let at = self.0;
        self.0 = at.saturating_add(bytes).checked_next_multiple_of(LINE).unwrap_or(u64::MAX);
        at
    }

    /// Bytes handed out.
    pub(super) const fn size(&self) -> u64 {
        self.0
    }
}

/// Ranges of addresses that lie in memory: those that touch or overlap are one.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// first address, the one behind the last, and where the first lies; ascending
    placed: Vec<(u64, u64, u64)>,
}

impl Extents {
    pub(super) fn new(mut ranges: Vec<(u64, u64)>, memory: &mut Memory) -> Self {
        ranges.retain(|(start, end)| start < end);
        ranges.sort_unstable();
        let mut placed: Vec<(u64, u64, u64)> = Vec::new();
        for (start, end) in ranges {
            match placed.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => placed.push((start, end, 0)),
            }
        }
        for (start, end, at) in &mut placed {
            *at = memory.take(*end - *start);
        }
        Self { placed }
    }

    /// Where an address lies, which is in one of the ranges; 0 for none.
    pub(super) fn locate(&self, address: u64) -> u64 {
        let behind = self.placed.partition_point(|&(start, ..)| start <= address);
        let found = behind.checked_sub(1).map(|at| self.placed[at]);
        found.map_or(0, |(start, _, at)| at + (address - start))
    }

    /// (where, first address, bytes) of each.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.placed.iter().map(|&(start, end, at)| (at, start, end - start))
    }
}

/// Append a run, which may continue the last one.
pub(super) fn append(regions: &mut Vec<Region>, at: u64, bytes: u64) {
    match regions.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.is_packed() && last.at + last.run == at => last.run += bytes,
        _ => regions.push(Region::packed(at, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_lie_together() {
        let mut memory = Memory::default();
        memory.take(10);
        let extents = Extents::new(vec![(500, 600), (100, 150), (150, 300), (0, 0), (120, 130)], &mut memory);
        assert_eq!(extents.all().collect::<Vec<_>>(), [(64, 100, 200), (320, 500, 100)]);
        assert_eq!((extents.locate(100), extents.locate(250), extents.locate(599)), (64, 214, 419));
        assert_eq!(memory.size(), 448);
    }

    #[test]
    fn runs_that_continue_are_one() {
        let mut regions = Vec::new();
        for (at, bytes) in [(0, 5), (5, 5), (10, 0), (20, 1)] {
            append(&mut regions, at, bytes);
        }
        assert_eq!(regions, [Region::packed(0, 10), Region::packed(20, 1)]);
    }
}
