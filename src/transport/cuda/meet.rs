//! Ranks of a host tell each other where their memory lies, before anything is measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Control;
use super::driver::Handle;
use super::endpoint::Device;
use crate::sample::Pattern;
use crate::sweep::{Cell, Probe};

/// Longest time for the ranks of a host to come: each starts its GPU first, which takes seconds where many do.
const COME: Duration = Duration::from_secs(60);
/// Bytes of a handle in a word.
const PIECE: usize = 7;
/// Flags in a word.
const FLAGS: usize = 56;
/// Words that a rank tells another at a time, at most.
const MOST_WORDS: u64 = 1 << 16;

/// What each rank of the host has said; one that did not come is missing.
pub(super) type Said = BTreeMap<usize, Vec<u64>>;

impl<C: Control> Device<C> {
    /// Words from now on are about the next meeting.
    pub(super) fn meet(&mut self) {
        self.meetings += 1;
        let own = self.control.rank();
        // Numbers that no probe has.
        let meeting = Probe::pair(u64::MAX - self.meetings, Cell { pattern: Pattern::Local, from: own, to: own }, 1, 1);
        let _ = self.control.begin(&meeting);
    }

    /// Tell each of these ranks some words, and hear what they tell this one.
    pub(super) fn exchange(&mut self, mates: &[usize], tell: impl Fn(usize) -> Vec<u64>) -> Said {
        let deadline = Instant::now() + COME;
        for &mate in mates {
            let words = tell(mate);
            let mut all = std::iter::once(words.len() as u64).chain(words);
            // To one that does not take them there is nothing more to say.
            let _ = all.try_for_each(|word| self.control.notify(mate, word, deadline));
        }
        let mut said = Said::new();
        for &mate in mates {
            let mut hear = || self.control.await_notice(mate, deadline);
            let words = hear().and_then(|count| (0..count.min(MOST_WORDS)).map(|_| hear()).collect());
            if let Ok(words) = words {
                said.insert(mate, words);
            }
        }
        said
    }
}

/// A handle as words.
pub(super) fn words(handle: &Handle) -> Vec<u64> {
    let word = |piece: &[u8]| piece.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    handle.0.chunks(PIECE).map(word).collect()
}

/// A handle of words.
pub(super) fn handle(words: &[u64]) -> Option<Handle> {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(PIECE));
    let bytes: Vec<u8> = bytes.take(64).collect();
    bytes.try_into().ok().map(Handle)
}

/// Yes or no of many, as words.
pub(super) fn flags(all: impl Iterator<Item = bool>) -> Vec<u64> {
    let all: Vec<bool> = all.collect();
    let word = |piece: &[bool]| piece.iter().rev().fold(0, |word, &flag| word << 1 | u64::from(flag));
    all.chunks(FLAGS).map(word).collect()
}

/// And back; of as many as there were, and some more that are not set.
pub(super) fn are_set(words: &[u64]) -> impl Iterator<Item = bool> {
    words.iter().flat_map(|&word| (0..FLAGS).map(move |at| word >> at & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_flags_go_through_words() {
        let all: Vec<bool> = (0..130).map(|at| at % 3 == 1).collect();
        let words = flags(all.iter().copied());
        assert!(words.len() == 3 && words.iter().all(|&word| word < 1 << FLAGS));
        assert_eq!(are_set(&words).take(130).collect::<Vec<_>>(), all);
        assert!(!are_set(&words).skip(130).any(|set| set) && are_set(&[]).next().is_none());
    }

    #[test]
    fn a_handle_goes_through_words() {
        let sent = Handle(std::array::from_fn(|at| 255 - at as u8 * 3));
        let words = words(&sent);
        assert!(words.len() < 16 && words.iter().all(|&word| word < 1 << 56));
        assert_eq!(handle(&words), Some(sent));
        assert_eq!(handle(&words[..9]), None);
    }
}
