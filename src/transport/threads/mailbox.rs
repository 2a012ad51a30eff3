use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::transport::Stop;

/// Words that can be under way before the reader has taken the first: an acknowledgement and the next step's word.
const DEPTH: usize = 8;
/// The same with transfers that GPUs move: two words for each that may be under way between two ranks.
const DEEP: usize = 64;
const _: () = assert!(DEPTH.is_power_of_two() && DEEP.is_power_of_two() && DEEP > 2 * crate::transport::Flow::MOST_TWINS + 1);

/// A word, and the probe that it is of.
#[derive(Debug, Default)]
struct Slot {
    word: AtomicU64,
    probe: AtomicU64,
}

/// Words from one thread to another, in order, without a lock. Each carries its probe's number, so that words of a
/// probe that was given up are skipped. On cache lines of its own: another pair's words must not cost this one's time.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Mailbox {
    slots: Box<[Slot]>,
    written: AtomicU64,
}

impl Mailbox {
    /// Ranks that have room for what GPUs say: more than a machine has GPUs. Of more ranks, every pair has less, since they are many.
    pub(super) const MOST_ON_GPUS: usize = 64;

    /// For each pair of so many ranks.
    pub(super) fn new(world: usize) -> Self {
        let depth = if world <= Self::MOST_ON_GPUS { DEEP } else { DEPTH };
        Self { slots: (0..depth).map(|_| Slot::default()).collect(), written: AtomicU64::new(0) }
    }

    fn slot(&self, at: u64) -> &Slot {
        // As many as a power of two.
        &self.slots[at as usize & (self.slots.len() - 1)]
    }

    /// Add a word; only the sending thread calls this.
    pub(super) fn put(&self, probe: u64, word: u64) {
        let at = self.written.load(Ordering::Relaxed);
        let slot = self.slot(at);
        slot.word.store(word, Ordering::Relaxed);
        slot.probe.store(probe, Ordering::Relaxed);
        self.written.store(at + 1, Ordering::Release);
    }

    /// Take the next word of this probe if it is there; only the receiving thread calls this, with its own count of words taken.
    pub(super) fn try_take(&self, probe: u64, taken: &mut u64) -> Option<u64> {
        let written = self.written.load(Ordering::Acquire);
        *taken = (*taken).max(written.saturating_sub(self.slots.len() as u64));
        while *taken < written {
            let slot = self.slot(*taken);
            *taken += 1;
            if slot.probe.load(Ordering::Relaxed) == probe {
                return Some(slot.word.load(Ordering::Relaxed));
            }
        }
        None
    }

    /// Take the next word of this probe; spins.
    pub(super) fn take(&self, probe: u64, taken: &mut u64, deadline: Instant) -> Result<u64, Stop> {
        let mut spins = 0_u32;
        loop {
            if let Some(word) = self.try_take(probe, taken) {
                return Ok(word);
            }
            spins += 1;
            if spins.is_multiple_of(256) {
                if Instant::now() >= deadline {
                    return Err(Stop::Deadline);
                }
                // Ranks may share a core: the other one must get to run.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn words_come_in_order_and_old_probes_are_skipped() {
        let mailbox = Mailbox::new(2);
        let soon = Instant::now() + Duration::from_secs(60);
        let mut taken = 0;
        mailbox.put(1, 10);
        mailbox.put(2, 20);
        mailbox.put(2, 21);
        assert_eq!(mailbox.take(2, &mut taken, soon), Ok(20));
        assert_eq!(mailbox.take(2, &mut taken, soon), Ok(21));
        assert_eq!(mailbox.take(2, &mut taken, Instant::now()), Err(Stop::Deadline));
        mailbox.put(2, 22);
        mailbox.put(3, 30);
        assert_eq!((mailbox.try_take(3, &mut taken), mailbox.try_take(3, &mut taken)), (Some(30), None));
    }
}
