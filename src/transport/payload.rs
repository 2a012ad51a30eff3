//! Payload that tells which rank sent it and where it lay, cheap to write and to compare.

use super::Window;

/// A prime, so that a message shifted by any power of two does not look right.
pub(crate) const PERIOD: usize = 65_521;

/// The bytes that one rank sends: a pseudo-random block of prime length, repeated along the arena.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    block: Vec<u8>,
}

impl Payload {
    /// Payload of `rank` in a sweep with `seed`.
    pub(crate) fn new(seed: u64, rank: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ rank as u64);
        let mut block = vec![0; PERIOD];
        rng.fill(&mut block);
        Self { block }
    }

    /// Fill an arena from its start.
    pub(crate) fn fill(&self, arena: &mut [u8]) {
        for part in arena.chunks_mut(PERIOD) {
            part.copy_from_slice(&self.block[..part.len()]);
        }
    }

    /// Position within `got`, which lay at `offset` of the arena, of the first byte that differs from what was sent.
    pub(crate) fn first_difference(&self, got: &[u8], offset: usize) -> Option<usize> {
        let mut at = 0;
        while at < got.len() {
            let phase = (offset + at) % PERIOD;
            let length = (PERIOD - phase).min(got.len() - at);
            let (expected, part) = (&self.block[phase..phase + length], &got[at..at + length]);
            if expected != part {
                return expected.iter().zip(part).position(|(a, b)| a != b).map(|within| at + within);
            }
            at += length;
        }
        None
    }
}

/// Bytes that nobody sends.
const BLANK: [u8; 4096] = [0xa5; 4096];

/// Write a new buffer to its size, for which there must be room. To be called by the thread that uses it, so that its pages lie
/// on that one's NUMA node. (In blocks: byte by byte, an unoptimised build takes a second for what a test needs.)
pub(crate) fn touch(buffer: &mut Vec<u8>, size: usize) {
    while buffer.len() < size {
        buffer.extend_from_slice(&BLANK[..BLANK.len().min(size - buffer.len())]);
    }
}

/// Check what `from` sent into a window of a receive arena; tells the first wrong byte.
pub(crate) fn check(seed: u64, from: usize, arena: &[u8], window: Window) -> Result<(), String> {
    let payload = Payload::new(seed, from);
    for message in 0..window.count {
        let at = window.offset(message);
        if let Some(byte) = payload.first_difference(&arena[at..at + window.bytes], at) {
            return Err(format!("byte {byte} of {} is not what rank {from} sent", window.bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_bytes_pass_and_wrong_ones_are_found() {
        let payload = Payload::new(1, 3);
        let mut arena = vec![0; 300_000];
        payload.fill(&mut arena);
        assert_eq!(payload.first_difference(&arena[4096..270_000], 4096), None);
        assert!(Payload::new(1, 2).first_difference(&arena[..64], 0).is_some(), "another rank");
        assert!(payload.first_difference(&arena[64..200_000], 0).is_some(), "shifted");
        arena[200_000] ^= 1;
        assert_eq!(payload.first_difference(&arena[4096..270_000], 4096), Some(200_000 - 4096));
    }
}
