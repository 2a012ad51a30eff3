use std::hash::{BuildHasherDefault, Hasher};

/// Makes a [`Mixer`].
pub(super) type Mix = BuildHasherDefault<Mixer>;

/// A hash of a few small numbers: a screen asks for a million cells when another metric is chosen, and the usual hash, made for
/// keys that an enemy chooses, takes most of that time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        // As rustc hashes: rotate, mix, spread by an odd number without a pattern.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The upper bits are the better ones, and a table takes the lower ones.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::Cell;
    use std::hash::BuildHasher;

    #[test]
    fn cells_of_a_thousand_ranks_are_spread_evenly() {
        let (n, buckets) = (512_usize, 1_usize << 16);
        let mut filled = vec![0_u32; buckets];
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
            let hash = Mix::default().hash_one(Cell { pattern: Pattern::Peer, from, to });
            filled[hash as usize % buckets] += 1;
        }
        // Four each on average; by chance the fullest has about 17.
        assert!(filled.iter().all(|&count| count < 40), "{:?}", filled.iter().max());
        assert!(filled.iter().filter(|&&count| count == 0).count() < buckets / 10);
    }
}
