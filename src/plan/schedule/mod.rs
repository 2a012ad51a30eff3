//! A batch of plans -> what each process sends and receives, round by round, under a staging budget. No buffers, no communication.
//!
//! The packing rule (the reference states the budget, the refusals and the rule of `in place`; the order is ours):
//!
//! - a segment larger than the budget is cut into chunks: sub-blocks with the segment's strides, the innermost axes whole;
//! - between two processes the chunks go in the order of (parameter, target, target offset, source, source offset, chunk), and fill
//!   rounds one after another; a round is closed when the next chunk would exceed the budget; a round is one message;
//! - a side sends or receives a round in place when it is one chunk that is packed there; otherwise through its staging arena, which
//!   is as large as the largest such round;
//! - copies inside a process are neither cut nor staged.
//!
//! Element sizes may differ by parameter; rounds are filled by bytes, which for one size is the same as by elements.

mod check;
mod counts;
mod cut;
mod order;
mod traffic;

use std::ops::Range;

use super::{Batch, Segment};
use cut::Cut;

pub use counts::Counts;
pub use cut::is_packed;

/// More chunks are refused: at the default budget they are 128 TiB.
pub const MOST_CHUNKS: u64 = 1 << 24;

/// Why a batch cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// not even one element can be staged
    #[error("{bytes_per_peer} bytes per peer are less than one element of {element_size} bytes{}: give at least {element_size}", of(.parameter))]
    Budget { parameter: String, bytes_per_peer: u64, element_size: u64 },
    #[error("{}elements of 0 bytes; 1 or more (2 for bf16)", before(.parameter, ":"))]
    ElementSize { parameter: String },
    #[error("process {process} is none that the endpoints name ({known}); processes are ranks of the transfer's group")]
    Process { process: usize, known: String },
    #[error("endpoints: process {process} is no rank: below {most} expected")]
    Endpoints { process: usize, most: usize },
    #[error("{}segment {segment}: {what}", before(.parameter, ","))]
    Segment { parameter: String, segment: usize, what: String },
    #[error("{chunks} chunks, {MOST_CHUNKS} at most: stage more bytes per peer")]
    Chunks { chunks: u64 },
    /// of traffic that is not scheduled but given
    #[error("{0}")]
    Traffic(String),
}

/// A parameter before what is said of it; of a plan without names nothing.
pub(super) fn before(parameter: &str, mark: &str) -> String {
    if parameter.is_empty() { String::new() } else { format!("parameter {parameter}{mark} ") }
}

fn of(parameter: &str) -> String {
    if parameter.is_empty() { String::new() } else { format!(" (parameter {parameter})") }
}

/// A part of a segment that travels in one piece; [`Schedule::region`] tells its geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// number of the parameter in the batch
    pub parameter: u32,
    /// number of the segment in its plan
    pub segment: u32,
    /// of the chunk in its segment, row-major
    pub number: u32,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    pub elements: u64,
    pub bytes: u64,
    /// in [`Schedule::chunks`], in packing order
    pub chunks: Range<usize>,
    /// its one chunk is packed at the source: sent without staging
    pub sent_in_place: bool,
    /// its one chunk is packed at the target: received without staging
    pub received_in_place: bool,
}

/// All that one process sends to another. Both sides read the same rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    pub from: usize,
    pub to: usize,
    /// in [`Schedule::rounds`]
    pub rounds: Range<usize>,
    /// bytes of the sender's staging arena; 0 if it sends everything in place
    pub send_arena: u64,
    /// bytes of the receiver's staging arena
    pub receive_arena: u64,
}

/// A segment whose both ends are in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalCopy {
    pub process: usize,
    pub parameter: u32,
    pub segment: u32,
    pub elements: u64,
    pub bytes: u64,
}

/// What a batch does, for one process or for all that the endpoints name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// whom it is for, ascending
    pub processes: Vec<usize>,
    /// ascending by (from, to)
    pub lanes: Vec<Lane>,
    /// of all lanes
    pub rounds: Vec<Round>,
    /// of all rounds
    pub chunks: Vec<Chunk>,
    /// ascending by process, then in the order of chunks
    pub copies: Vec<LocalCopy>,
}

/// Where a chunk's elements lie on both sides, elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region<'a> {
    pub shape: Vec<u64>,
    /// address of its first element in the source's shard
    pub source: u64,
    pub source_strides: &'a [i64],
    /// the same in the target's shard
    pub target: u64,
    pub target_strides: &'a [i64],
    /// bytes
    pub element_size: u64,
}

impl Schedule {
    /// Rounds of a lane, in order.
    pub fn rounds_of(&self, lane: &Lane) -> &[Round] {
        self.rounds.get(lane.rounds.clone()).unwrap_or_default()
    }

    /// Chunks of a round, in packing order.
    pub fn chunks_of(&self, round: &Round) -> &[Chunk] {
        self.chunks.get(round.chunks.clone()).unwrap_or_default()
    }

    /// Geometry of a chunk of this schedule; `None` where the batch is not the one that was scheduled.
    pub fn region(batch: &Batch, chunk: Chunk) -> Option<Region<'_>> {
        let parameter = batch.parameters.get(chunk.parameter as usize)?;
        let Segment { shape, source, target } = parameter.plan.segments.get(chunk.segment as usize)?;
        let cut = Cut::new(shape, batch.bytes_per_peer.checked_div(parameter.element_size)?.max(1));
        let number = u64::from(chunk.number);
        if number >= cut.chunks || source.2.len() != shape.len() || target.2.len() != shape.len() {
            return None;
        }
        let block = cut.block(shape, number);
        let moved = |offset: u64, strides: &[i64]| {
            let steps = block.origin.iter().zip(strides).map(|(&at, &stride)| at.cast_signed().wrapping_mul(stride));
            steps.fold(offset, u64::wrapping_add_signed)
        };
        Some(Region {
            source: moved(source.1, &source.2),
            source_strides: &source.2,
            target: moved(target.1, &target.2),
            target_strides: &target.2,
            element_size: parameter.element_size,
            shape: block.shape,
        })
    }
}

/// Schedule a batch: for one process, or for all that its endpoints name. Budgets and processes are checked even where there is
/// nothing to move.
pub fn schedule(batch: &Batch, process: Option<usize>) -> Result<Schedule, ScheduleError> {
    let processes = check::processes(batch, process)?;
    check::budget(batch)?;
    let (moves, chunks) = order::moves(batch, process)?;
    let copies_first = moves.partition_point(|at| at.is_local());
    let (copies, moves) = moves.split_at(copies_first);
    let mut made = Schedule { processes, chunks: Vec::with_capacity(chunks as usize), ..Schedule::default() };
    made.copies = copies.iter().map(|at| at.copy(batch)).collect();
    for lane in moves.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
        made.fill(batch, lane);
    }
    Ok(made)
}

impl Schedule {
    /// Append the rounds of one pair of processes.
    fn fill(&mut self, batch: &Batch, moves: &[order::Move]) {
        let Some(first) = moves.first() else { return };
        let mut lane =
            Lane { from: first.from as usize, to: first.to as usize, rounds: self.rounds.len()..0, send_arena: 0, receive_arena: 0 };
        let mut open = Round { elements: 0, bytes: 0, chunks: self.chunks.len()..0, sent_in_place: false, received_in_place: false };
        for at in moves {
            let (segment, element_size) = at.of(batch);
            let cut = Cut::new(&segment.shape, batch.bytes_per_peer / element_size);
            for number in 0..cut.chunks {
                let elements = cut.elements(&segment.shape, number);
                let bytes = elements * element_size;
                let started = self.chunks.len() > open.chunks.start;
                if started && open.bytes + bytes > batch.bytes_per_peer {
                    self.close(&mut lane, &mut open);
                }
                // Decided here for a round of one chunk; a second one undoes it.
                let extents = || cut.extents(&segment.shape, number);
                let alone = self.chunks.len() == open.chunks.start;
                open.sent_in_place = alone && cut::packed(extents(), &segment.source.2);
                open.received_in_place = alone && cut::packed(extents(), &segment.target.2);
                open.elements += elements;
                open.bytes += bytes;
                self.chunks.push(Chunk { parameter: at.parameter, segment: at.segment, number: number as u32 });
            }
        }
        self.close(&mut lane, &mut open);
        lane.rounds.end = self.rounds.len();
        self.lanes.push(lane);
    }

    fn close(&mut self, lane: &mut Lane, open: &mut Round) {
        let next = self.chunks.len();
        let fresh = Round { elements: 0, bytes: 0, chunks: next..0, sent_in_place: false, received_in_place: false };
        let mut round = std::mem::replace(open, fresh);
        round.chunks.end = next;
        if !round.sent_in_place {
            lane.send_arena = lane.send_arena.max(round.bytes);
        }
        if !round.received_in_place {
            lane.receive_arena = lane.receive_arena.max(round.bytes);
        }
        self.rounds.push(round);
    }
}

#[cfg(test)]
mod tests;
