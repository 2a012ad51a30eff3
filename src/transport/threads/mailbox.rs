use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::transport::Stop;

/// Words that can be under way before the reader has taken the first: an acknowledgement and the next step's word; with transfers
/// that GPUs move, two words for each that may be under way between two ranks.
const DEPTH: u64 = 64;
const _: () = assert!(DEPTH as usize > 2 * crate::transport::Flow::MOST_TWINS + 1);

/// Words from one thread to another, in order, without a lock. Each carries its probe's number, so that words of a
/// probe that was given up are skipped.
#[derive(Debug)]
pub(super) struct Mailbox {
    words: [AtomicU64; DEPTH as usize],
    probes: [AtomicU64; DEPTH as usize],
    written: AtomicU64,
}

impl Default for Mailbox {
    fn default() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { words: zeros(), probes: zeros(), written: AtomicU64::new(0) }
    }
}

impl Mailbox {
    /// Add a word; only the sending thread calls this.
    pub(super) fn put(&self, probe: u64, word: u64) {
        let at = self.written.load(Ordering::Relaxed);
        let slot = (at % DEPTH) as usize;
        self.words[slot].store(word, Ordering::Relaxed);
        self.probes[slot].store(probe, Ordering::Relaxed);
        self.written.store(at + 1, Ordering::Release);
    }

    /// Take the next word of this probe if it is there; only the receiving thread calls this.
    pub(super) fn try_take(&self, probe: u64, taken: &mut u64) -> Option<u64> {
        let written = self.written.load(Ordering::Acquire);
        *taken = (*taken).max(written.saturating_sub(DEPTH));
        while *taken < written {
            let slot = (*taken % DEPTH) as usize;
            *taken += 1;
            if self.probes[slot].load(Ordering::Relaxed) == probe {
                return Some(self.words[slot].load(Ordering::Relaxed));
            }
        }
        None
    }

    /// Take the next word of this probe; only the receiving thread calls this, with its own count of words taken.
    pub(super) fn take(&self, probe: u64, taken: &mut u64, deadline: Instant) -> Result<u64, Stop> {
        let mut spins = 0_u32;
        loop {
            let written = self.written.load(Ordering::Acquire);
            *taken = (*taken).max(written.saturating_sub(DEPTH));
            while *taken < written {
                let slot = (*taken % DEPTH) as usize;
                *taken += 1;
                if self.probes[slot].load(Ordering::Relaxed) == probe {
                    return Ok(self.words[slot].load(Ordering::Relaxed));
                }
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
        let mailbox = Mailbox::default();
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
