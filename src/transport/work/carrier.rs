use std::time::Instant;

use super::Part;
use crate::sample::MoverKind;
use crate::transport::{Stop, TransportError, Way};

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// a message of this share is in this rank's memory
    Arrived(usize),
    /// the memory that a message of this share was sent from may be used again
    Sent(usize),
    Word {
        from: usize,
        word: u64,
    },
}

/// What one rank can do with a work: what engines differ in. Shares are meant by their numbers in the part. Everything may be inside
/// a timed region but `load`, `begin`, `wipe`, `read`, `ways` and `end`; nothing waits but `tell` and `settle`.
pub trait Carrier {
    /// This rank.
    fn rank(&self) -> usize;
    /// Allocate and fill memory; collective.
    fn load(&mut self, part: &Part, mover: MoverKind) -> Result<(), TransportError>;
    /// All ranks have loaded theirs: get ready for its runs.
    fn begin(&mut self, part: &Part, id: u64) -> Result<(), Stop>;
    /// True if a sender writes into the receiver's memory, so that it must know when it may.
    fn one_sided(&self) -> bool;
    /// Overwrite everything but what is held.
    fn wipe(&mut self);
    /// Copy within this rank's memory.
    fn copy(&mut self, from: usize, to: usize, length: usize);
    /// The same of rows (bytes of one, how many), each so far from the one before (`steps`: from, to).
    fn rows(&mut self, from: usize, to: usize, (width, rows): (usize, usize), steps: (i64, i64)) {
        let at = |start: usize, row: usize, step: i64| start.wrapping_add_signed(row.cast_signed().wrapping_mul(step as isize));
        (0..rows).for_each(|row| self.copy(at(from, row, steps.0), at(to, row, steps.1), width));
    }
    /// Wait for this rank's own copies, where those go on by themselves.
    fn settle(&mut self, _deadline: Instant) -> Result<(), Stop> {
        Ok(())
    }
    /// Read from it.
    fn read(&mut self, from: usize, into: &mut [u8]) -> Result<(), Stop>;
    /// Begin to receive a message of this share.
    fn post(&mut self, part: &Part, share: usize, message: usize) -> Result<(), Stop>;
    /// Begin to send one, packed already where it is staged.
    fn send(&mut self, part: &Part, share: usize, message: usize) -> Result<(), Stop>;
    /// Tell another rank a word below 2^62.
    fn tell(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop>;
    /// Further what is under way; one thing that has happened, if any has.
    fn news(&mut self, part: &Part, deadline: Instant) -> Result<Option<Heard>, Stop>;
    /// How its bytes went to other ranks, by the first flow to each, where the library that moved them says it.
    fn ways(&mut self, _part: &Part) -> Vec<Way> {
        Vec::new()
    }
    /// No more runs: give memory back; what is still under way at the deadline is given up.
    fn end(&mut self, deadline: Instant);
}

/// What ranks tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// to the coordinator: this rank can start
    Ready,
    /// from the coordinator: start
    Release,
    /// to a receiver: a message of this flow is in your memory
    Landed(usize),
    /// to a sender: the arena of this flow is free again
    Free(usize),
    /// a flow is complete
    Done(usize),
    /// to the coordinator: this rank has all that comes to it up to this stage
    Passed(usize),
    /// from the coordinator: this stage may begin
    Go(usize),
}

impl Word {
    pub(crate) const fn encode(self) -> u64 {
        match self {
            Self::Ready => 0,
            Self::Release => 1,
            Self::Landed(flow) => (flow as u64) << 3 | 2,
            Self::Free(flow) => (flow as u64) << 3 | 3,
            Self::Done(flow) => (flow as u64) << 3 | 4,
            Self::Passed(stage) => (stage as u64) << 3 | 5,
            Self::Go(stage) => (stage as u64) << 3 | 6,
        }
    }

    pub(crate) const fn decode(word: u64) -> Self {
        let value = (word >> 3) as usize;
        match word & 7 {
            0 => Self::Ready,
            1 => Self::Release,
            2 => Self::Landed(value),
            3 => Self::Free(value),
            4 => Self::Done(value),
            5 => Self::Passed(value),
            _ => Self::Go(value),
        }
    }
}
