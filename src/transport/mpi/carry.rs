//! Processes that carry a work: messages between two of them on a communicator of its own, or puts into each other's memory.

use std::collections::VecDeque;
use std::time::Instant;

use super::endpoint::{MpiEndpoint, failed, spin};
use super::raw::{Arena, Comm, Many, PutWindow, Side};
use crate::sample::MoverKind;
use crate::transport::work::{self, Carrier, Heard, Part, SEED, Word};
use crate::transport::{Stop, TransportError, payload};

/// Works in a row whose messages are told apart.
const EPOCHS: i32 = 4;

/// What a process knows of the work that it carries.
#[derive(Debug)]
pub(super) struct Carrying {
    comm: Comm,
    memory: Arena,
    held: usize,
    put: Option<PutWindow>,
    many: Many,
    /// of shares whose message was put and not yet flushed, in order
    flushes: VecDeque<usize>,
    /// found, and not told
    heard: VecDeque<Heard>,
    /// tag of words; data have those above
    tag: i32,
    largest_tag: i32,
}

impl Carrying {
    pub(super) fn new(comm: Comm) -> Self {
        let largest_tag = comm.largest_tag();
        Self {
            comm,
            memory: Arena::default(),
            held: 0,
            put: None,
            many: Many::default(),
            flushes: VecDeque::new(),
            heard: VecDeque::new(),
            tag: 0,
            largest_tag,
        }
    }

    pub(super) fn disturbed(&mut self) -> bool {
        self.memory.disturbed()
    }

    /// Collective.
    pub(super) fn close(&mut self) {
        if let Some(window) = self.put.take() {
            let _ = window.free();
        }
    }

    fn look(&mut self) -> Result<(), Stop> {
        let Self { many, memory, heard, .. } = self;
        many.test_one(memory, |share, side| {
            heard.push_back(if side == Side::In { Heard::Arrived(share) } else { Heard::Sent(share) });
        })
        .map_err(failed)
    }

    fn data_tag(&self, tag: u32) -> i32 {
        self.tag + 1 + i32::try_from(tag).unwrap_or(0)
    }

    fn allocate(part: &Part) -> Result<Vec<u8>, TransportError> {
        let refuse = |reason: String| TransportError::Memory { rank: part.rank, bytes: part.memory, reason };
        let size = usize::try_from(part.memory).map_err(|error| refuse(error.to_string()))?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(size).map_err(|error| refuse(error.to_string()))?;
        payload::touch(&mut memory, size);
        work::fill(SEED, &part.content, &mut memory).map_err(TransportError::Work)?;
        Ok(memory)
    }
}

impl Carrier for MpiEndpoint {
    fn rank(&self) -> usize {
        crate::transport::Endpoint::rank(self)
    }

    fn load(&mut self, part: &Part, mover: MoverKind) -> Result<(), TransportError> {
        let refuse = |refused: super::raw::Refused| TransportError::Mpi(refused.to_string());
        let carrying = &mut self.carrying;
        if let Some(window) = carrying.put.take() {
            window.free().map_err(refuse)?;
        }
        carrying.memory = Arena::default();
        carrying.held = usize::try_from(part.held).unwrap_or(usize::MAX);
        let allocated = Carrying::allocate(part);
        let reason = match allocated {
            Ok(memory) => {
                carrying.memory = Arena::new(memory, 0);
                None
            }
            Err(error) => Some(error),
        };
        // The others enter the collective below whether this rank has its memory or not.
        if mover == MoverKind::MpiPut {
            carrying.put = Some(PutWindow::create(&carrying.comm, &mut carrying.memory).map_err(refuse)?);
        }
        reason.map_or(Ok(()), Err)
    }

    fn begin(&mut self, part: &Part, id: u64) -> Result<(), Stop> {
        let carrying = &mut self.carrying;
        let most = carrying.largest_tag / EPOCHS;
        if i32::try_from(part.tags).ok().and_then(|tags| tags.checked_add(1)).is_none_or(|tags| tags > most) {
            return Err(Stop::Failed(format!(
                "{} flows between the same two ranks are more than the {most} that this MPI library can tell apart",
                part.tags
            )));
        }
        // The same share of the tags whatever the work: what one that was given up has left under way is not the next one's.
        carrying.tag = most * i32::try_from(id % u64::from(EPOCHS.unsigned_abs())).unwrap_or(0);
        carrying.many.reserve(2 * part.shares.len());
        carrying.heard.reserve(2 * part.shares.len());
        carrying.flushes.reserve(part.shares.len());
        self.words.give_up();
        Ok(())
    }

    fn one_sided(&self) -> bool {
        self.carrying.put.is_some()
    }

    fn wipe(&mut self) {
        let held = self.carrying.held;
        work::clear(&mut self.carrying.memory.bytes()[held..]);
    }

    fn copy(&mut self, from: usize, to: usize, length: usize) {
        self.carrying.memory.bytes().copy_within(from..from + length, to);
    }

    fn read(&mut self, from: usize, into: &mut [u8]) -> Result<(), Stop> {
        into.copy_from_slice(&self.carrying.memory.bytes()[from..from + into.len()]);
        Ok(())
    }

    fn post(&mut self, part: &Part, number: usize, message: usize) -> Result<(), Stop> {
        let carrying = &mut self.carrying;
        if carrying.put.is_some() {
            return Ok(());
        }
        let share = &part.shares[number];
        let (message, tag) = (&share.messages[message], carrying.data_tag(share.tag));
        let (at, length) = (message.place(share.arena), message.length());
        carrying.many.receive(&mut carrying.memory, &carrying.comm, number, at, length, share.peer, tag).map_err(failed)
    }

    fn send(&mut self, part: &Part, number: usize, message: usize) -> Result<(), Stop> {
        let carrying = &mut self.carrying;
        let share = &part.shares[number];
        let (message, tag) = (&share.messages[message], carrying.data_tag(share.tag));
        let (at, length) = (message.place(share.arena), message.length());
        if let Some(put) = &carrying.put {
            let place = usize::try_from(message.lands).unwrap_or(usize::MAX);
            put.put(&carrying.memory, at, length, share.peer, place).map_err(failed)?;
            carrying.flushes.push_back(number);
            return Ok(());
        }
        carrying.many.send(&mut carrying.memory, &carrying.comm, number, at, length, share.peer, tag).map_err(failed)
    }

    fn tell(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        let (words, carrying) = (&mut self.words, &self.carrying);
        if !words.slot_free().map_err(failed)? {
            spin(deadline, || Ok(words.slot_free()?.then_some(())))?;
        }
        words.send(&carrying.comm, word, to, carrying.tag).map_err(failed)
    }

    fn news(&mut self, part: &Part, deadline: Instant) -> Result<Option<Heard>, Stop> {
        if let Some(heard) = self.carrying.heard.pop_front() {
            return Ok(Some(heard));
        }
        // Asked for only while something is awaited; the last thing that a rank hears is a word, so that none is listened for when
        // the work ends.
        self.words.listen(&self.carrying.comm, self.carrying.tag).map_err(failed)?;
        if let Some((from, word)) = self.words.heard().map_err(failed)? {
            if let (Word::Landed(_), Some(put)) = (Word::decode(word), &self.carrying.put) {
                put.sync().map_err(failed)?;
            }
            return Ok(Some(Heard::Word { from, word }));
        }
        self.carrying.look()?;
        if let Some(heard) = self.carrying.heard.pop_front() {
            return Ok(Some(heard));
        }
        // All that can be put was, before the first is waited for.
        let Some(number) = self.carrying.flushes.pop_front() else { return Ok(None) };
        let share = &part.shares[number];
        if let Some(put) = &self.carrying.put {
            put.flush(share.peer).map_err(failed)?;
        }
        self.tell(share.peer, Word::Landed(share.flow).encode(), deadline)?;
        Ok(Some(Heard::Sent(number)))
    }

    fn end(&mut self, deadline: Instant) {
        let carrying = &mut self.carrying;
        while !carrying.many.is_empty() && Instant::now() < deadline {
            if carrying.look().is_err() {
                break;
            }
        }
        carrying.many.give_up_one(&mut carrying.memory);
        carrying.flushes.clear();
        carrying.heard.clear();
        self.words.give_up();
        // A window over it is freed together, with the next work or at the end; until then it stays.
        if self.carrying.put.is_none() {
            self.carrying.memory = Arena::default();
        }
    }
}
