use std::time::Instant;

use super::{Setup, TransportError};

/// Why a rank gave up in the middle of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// the deadline came first
    Deadline,
    /// the library or the system said no
    Failed(String),
}

/// Consecutive messages in the arenas: message `i` lies at `offset(i)`, the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// size of one message, bytes
    pub bytes: usize,
    /// messages
    pub count: usize,
    /// slot of the first one
    pub first: usize,
    /// slots in use; numbers wrap here
    pub slots: usize,
}

impl Window {
    /// Distance between slots, bytes: whole cache lines.
    pub const fn stride(bytes: usize) -> usize {
        bytes.next_multiple_of(64)
    }

    /// Byte offset of message `i` of this window in the arena.
    pub const fn offset(&self, i: usize) -> usize {
        (self.first + i) % self.slots * Self::stride(self.bytes)
    }
}

/// What one rank can do: the part of a mover that both sides of a probe run. Everything here may be inside a timed
/// region, but for `prepare`, `clear` and `verify`.
///
/// `notify` and `await_notice` carry one word each way and are ordered with the messages between the same two ranks.
pub trait Endpoint {
    /// This rank.
    fn rank(&self) -> usize;
    /// Allocate, touch and fill the arenas. Collective.
    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError>;
    /// Bytes of each arena as prepared.
    fn arena(&self) -> usize;
    /// A probe begins; whatever is still under way from one that was given up must not be taken for its messages.
    fn begin(&mut self, probe: u64);
    /// Send one word.
    fn notify(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop>;
    /// Receive one word.
    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop>;
    /// Send a window of messages; complete here when the buffers may be used again.
    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// Receive a window of messages; complete when every byte is in this rank's arena.
    fn receive(&mut self, from: usize, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// Copy a window of messages from this rank's send arena into its receive arena.
    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// Overwrite the receive arena where this window lands.
    fn clear(&mut self, window: Window);
    /// Compare the receive arena, where this window landed, with what `from` sent; the first wrong offset within a message.
    fn verify(&mut self, from: usize, window: Window) -> Result<(), String>;
}
