//! How ranks start together, and agree on the windows of a repeat.

use std::time::{Duration, Instant};

use super::Part;
use crate::transport::timed::{LONG_ENOUGH, batch};
use crate::transport::{Stop, Together};

/// Of short windows so many make a repeat that the fastest transfer is timed well, but not more than take the slowest rank this long.
const LONGEST: Duration = LONG_ENOUGH.saturating_mul(100);
/// What ranks tell each other before a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// to a fan's root: half the median empty round trip to it, ns
    Half(u64),
    /// to the coordinator: receives are posted; one window of this rank's fastest transfer has taken so many ns
    Ready(u64),
    /// from the coordinator: start
    Release,
    /// from the coordinator: so many windows make a repeat from now on
    Windows(u64),
}

impl Word {
    pub(super) fn encode(self) -> u64 {
        // 32 bits of nanoseconds are four seconds: nobody batches those.
        match self {
            Self::Half(ns) => ns.min(u64::from(u32::MAX)) << 2,
            Self::Ready(ns) => ns.min(u64::from(u32::MAX)) << 2 | 1,
            Self::Release => 2,
            Self::Windows(count) => count << 2 | 3,
        }
    }

    pub(super) const fn decode(word: u64) -> Self {
        let value = word >> 2;
        match word & 3 {
            0 => Self::Half(value),
            1 => Self::Ready(value),
            2 => Self::Release,
            _ => Self::Windows(value),
        }
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Windows in a repeat, where one of the fastest transfer takes `fastest` and one of all transfers `slowest`.
fn windows(fastest: Duration, slowest: Duration) -> u64 {
    let most = LONGEST.as_nanos() / slowest.as_nanos().max(1);
    batch(fastest).min(u64::try_from(most).unwrap_or(u64::MAX)).max(1)
}

impl<E: Together> Part<'_, E> {
    /// All start together.
    pub(super) fn start(&mut self) -> Result<(), Stop> {
        if self.endpoint.rank() == self.coordinator {
            self.all_ready()?;
            self.released = Some(Instant::now());
            self.tell_others(Word::Release)?;
        } else {
            self.ready(Word::Release)?;
        }
        self.started = Some(Instant::now());
        Ok(())
    }

    /// Agree on the windows of a repeat.
    pub(super) fn agree(&mut self) -> Result<u64, Stop> {
        if self.endpoint.rank() != self.coordinator {
            let word = self.ready(Word::Windows(0))?;
            return Ok(if let Word::Windows(windows) = word { windows.max(1) } else { 1 });
        }
        self.all_ready()?;
        let windows = windows(self.fastest, self.slowest);
        self.tell_others(Word::Windows(windows))?;
        Ok(windows)
    }

    /// Any rank but the coordinator: say that this one is ready, and wait for a word of this kind.
    fn ready(&mut self, kind: Word) -> Result<Word, Stop> {
        self.started = None;
        self.endpoint.notify(self.coordinator, Word::Ready(nanoseconds(self.fastest)).encode(), self.deadline)?;
        loop {
            if let Some(word) = self.told.take_if(|word| std::mem::discriminant(word) == std::mem::discriminant(&kind)) {
                return Ok(word);
            }
            self.step()?;
        }
    }

    /// The coordinator: wait until all others are ready.
    fn all_ready(&mut self) -> Result<(), Stop> {
        self.started = None;
        while !self.others.iter().all(|&(_, ready)| ready) {
            self.step()?;
        }
        for (_, ready) in &mut self.others {
            *ready = false;
        }
        if let Some(released) = self.released.take() {
            self.slowest = self.slowest.min(released.elapsed());
        }
        Ok(())
    }

    fn tell_others(&mut self, word: Word) -> Result<(), Stop> {
        for &(other, _) in &self.others {
            self.endpoint.notify(other, word.encode(), self.deadline)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_windows_make_repeats_that_the_clock_can_tell() {
        let us = Duration::from_micros;
        assert_eq!(windows(us(2), us(3)), 51, "as many as the fastest transfer needs");
        assert_eq!(windows(us(2), us(1000)), 10, "but a slow one need not last for ever");
        assert_eq!(windows(us(200), us(200)), 1);
        assert_eq!(windows(us(2), us(50_000)), 1, "never none");
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        for word in [Word::Half(7), Word::Ready(12_345), Word::Release, Word::Windows(10_000)] {
            assert_eq!(Word::decode(word.encode()), word);
        }
        assert_eq!(Word::decode(Word::Ready(u64::MAX).encode()), Word::Ready(u64::from(u32::MAX)));
    }
}
