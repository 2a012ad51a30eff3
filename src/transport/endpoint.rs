use std::time::{Duration, Instant};

use super::{Flow, Setup, TransportError, Way};
use crate::sweep::Probe;

/// Why a rank gave up in the middle of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// the deadline came first
    Deadline,
    /// the library or the system said no
    Failed(String),
    /// another rank of the probe has said that it gave up; that one tells why
    Refused(usize),
}

impl Stop {
    /// In words; `late` says what was not done by the deadline.
    pub fn why(self, late: impl FnOnce() -> String) -> String {
        match self {
            Self::Deadline => late(),
            Self::Failed(why) => why,
            Self::Refused(other) => format!("rank {other} gave up"),
        }
    }
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
/// region, but for `prepare`, `told`, `begin`, `connect`, `clear`, `verify`, `end`, `disturbed` and `close`.
///
/// `notify` and `await_notice` carry one word each way and are ordered with the messages between the same two ranks.
pub trait Endpoint {
    /// This rank.
    fn rank(&self) -> usize;
    /// Allocate, touch and fill the arenas. Collective.
    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError>;
    /// Bytes of each arena as prepared.
    fn arena(&self) -> usize;
    /// True if they lie on a GPU. Then a probe of `host_to_device` or `device_to_host` copies between them and this rank's host memory,
    /// where [`Endpoint::begin`] makes room for as much, and so do `copy`, `clear` and `verify` until the next one begins.
    fn has_gpu(&self) -> bool {
        false
    }
    /// Lines for whoever reads the log, that have come up since they were last asked for.
    fn told(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// A probe begins; whatever is still under way from one that was given up must not be taken for its messages. Fails where it can
    /// be seen beforehand that nothing can come of it, on all ranks that it takes if possible.
    fn begin(&mut self, probe: &Probe) -> Result<(), Stop>;
    /// Whatever the ranks of a probe do once, such as setting up what connects them; nothing of it is in anyone's time.
    fn connect(&mut self, _probe: &Probe, _deadline: Instant) -> Result<(), Stop> {
        Ok(())
    }
    /// Send one word, below [`Together::WORDS`].
    fn notify(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop>;
    /// Receive one word.
    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop>;
    /// Send a window of messages; complete here when the buffers may be used again.
    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// Receive a window of messages; complete when every byte is in this rank's arena.
    fn receive(&mut self, from: usize, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// Copy a window of messages from this rank's send arena into its receive arena.
    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop>;
    /// What the last window took of the transfer with this number in the probe, by the clock of what moved it, as far as this rank
    /// knows. `None`: the host's clock tells. Known by the time that the window is sent, received, copied, or told of as news; a
    /// receiver tells the sender.
    fn clocked(&self, _flow: usize) -> Option<Duration> {
        None
    }
    /// Overwrite a receive arena where this window lands.
    fn clear(&mut self, lane: usize, window: Window);
    /// Compare a receive arena, where this window landed, with what `from` sent; the first wrong offset within a message.
    fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String>;
    /// How this rank's sends of a probe that has ended went, where the mover tells it.
    fn ways(&mut self, _probe: &Probe) -> Vec<Way> {
        Vec::new()
    }
    /// Nothing more comes of a probe here, though its time is not up: tell the other ranks of it, where that can be done at once.
    fn give_up(&mut self) {}
    /// True if what the ranks meet in was given up in a probe that has ended: they must meet anew.
    fn parted(&self) -> bool {
        false
    }
    /// The probe is over: what has gone wrong meanwhile without a call that said so.
    fn end(&mut self) -> Result<(), Stop> {
        Ok(())
    }
    /// True when a transfer that was given up may still be under way.
    fn disturbed(&mut self) -> bool {
        false
    }
    /// Give back what only all ranks together can; collective, before the job's end.
    fn close(&mut self) {}
}

/// What has happened to the transfers that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// every byte of the window of this transfer is in this rank's arena; of a local copy: it is done
    Arrived(usize),
    /// the receiver of this transfer has acknowledged the window
    Acknowledged(usize),
    /// a word of [`Endpoint::notify`]
    Word { from: usize, word: u64 },
}

/// Several transfers of a rank at the same time. Transfers are meant by their numbers; of each, one window is under way at
/// a time. Nothing here waits: the rank asks for `news` until it has all.
pub trait Together: Endpoint {
    /// Words of [`Endpoint::notify`] are below this.
    const WORDS: u64 = 1 << 62;

    /// The transfers of the probe that has begun, with a window as large as any; make room for all that they need.
    fn join(&mut self, flows: &[Flow], window: Window) -> Result<(), Stop>;
    /// Begin to receive a window.
    fn post(&mut self, flow: usize, window: Window) -> Result<(), Stop>;
    /// Begin to send a window, or to copy it.
    fn launch(&mut self, flow: usize, window: Window) -> Result<(), Stop>;
    /// Tell the sender that its window has arrived.
    fn acknowledge(&mut self, flow: usize, deadline: Instant) -> Result<(), Stop>;
    /// Further everything that is under way; one thing that has happened, if any has.
    fn news(&mut self, deadline: Instant) -> Result<Option<News>, Stop>;
    /// The probe ends here; what is still under way at the deadline is given up.
    fn part(&mut self, deadline: Instant);
}
