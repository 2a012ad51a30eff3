//! Which process moves which segment to which, in the order of packing.

use super::cut::Cut;
use super::{LocalCopy, MOST_CHUNKS, ScheduleError, check};
use crate::plan::{Batch, Segment};
use crate::units::plain;

/// A segment between two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    /// false, and so before all others, for a copy inside a process
    between: bool,
    pub from: u32,
    pub to: u32,
    pub parameter: u32,
    pub segment: u32,
}

impl Move {
    pub(super) const fn is_local(self) -> bool {
        !self.between
    }

    /// Its segment, and the bytes of an element.
    pub(super) fn of(self, batch: &Batch) -> (&Segment, u64) {
        let parameter = &batch.parameters[self.parameter as usize];
        (&parameter.plan.segments[self.segment as usize], parameter.element_size)
    }

    pub(super) fn copy(self, batch: &Batch) -> LocalCopy {
        let (segment, element_size) = self.of(batch);
        let elements = segment.elements();
        let Self { from, parameter, segment, .. } = self;
        LocalCopy { process: from as usize, parameter, segment, elements, bytes: elements * element_size }
    }
}

/// Every segment that concerns the process (all, if none is given): copies inside processes first, then by pair, each in packing order.
/// And the number of chunks that travel.
pub(super) fn moves(batch: &Batch, process: Option<usize>) -> Result<(Vec<Move>, u64), ScheduleError> {
    let mut moves = Vec::with_capacity(if process.is_none() { batch.parameters.iter().map(|p| p.plan.segments.len()).sum() } else { 0 });
    let (mut chunks, mut total) = (0_u64, 0_u64);
    for (parameter, of) in batch.parameters.iter().enumerate() {
        let wrong = |segment, what| ScheduleError::Segment { parameter: plain(&of.name), segment, what };
        for (number, segment) in of.plan.segments.iter().enumerate() {
            let bytes = check::bytes(segment, of.element_size).map_err(|what| wrong(number, what))?;
            total = total.checked_add(bytes).ok_or_else(|| wrong(number, "with it, more bytes than can be counted".to_owned()))?;
            let [from, to] = [("source", &batch.endpoints.source, segment.source.0), ("target", &batch.endpoints.target, segment.target.0)]
                .map(|(side, known, location)| {
                    let process = known.get(&location).map(|&process| process as u32);
                    process.ok_or_else(|| format!("{side} location {location} has no process in the endpoints"))
                });
            let (from, to) = (from.map_err(|what| wrong(number, what))?, to.map_err(|what| wrong(number, what))?);
            if process.is_some_and(|process| from as usize != process && to as usize != process) {
                continue;
            }
            if from != to {
                chunks = chunks.saturating_add(Cut::new(&segment.shape, batch.bytes_per_peer / of.element_size).chunks);
            }
            moves.push(Move { between: from != to, from, to, parameter: parameter as u32, segment: number as u32 });
        }
    }
    if chunks > MOST_CHUNKS {
        return Err(ScheduleError::Chunks { chunks });
    }
    moves.sort_unstable();
    // Plans are in packing order already when a planner wrote them.
    for run in moves.chunk_by_mut(|a, b| (a.from, a.to, a.parameter) == (b.from, b.to, b.parameter)) {
        let key = |at: &Move| {
            let segment = at.of(batch).0;
            (segment.target.0, segment.target.1, segment.source.0, segment.source.1, at.segment)
        };
        if !run.is_sorted_by_key(key) {
            run.sort_by_key(key);
        }
    }
    Ok((moves, chunks))
}
