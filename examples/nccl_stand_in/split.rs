//! New communicators out of the ranks of one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::board::{Board, Id};
use super::comm::Comm;
use super::{Answer, INVALID_ARGUMENT};

/// The color of a rank that is in no new communicator.
const NONE: i32 = -1;

/// All ranks say where they belong; those of one color meet anew, ordered by key.
pub fn split(comm: &Comm, color: i32, key: i32, blocking: bool) -> Answer<Option<Arc<Comm>>> {
    if color < NONE {
        return Err(INVALID_ARGUMENT);
    }
    let own = comm.board.rank(comm.rank);
    own.color.store(color, Ordering::Release);
    own.key.store(key, Ordering::Release);
    comm.meet()?;
    let of = |rank: usize| comm.board.rank(rank);
    let mut members: Vec<usize> = (0..comm.board.ranks).filter(|&rank| of(rank).color.load(Ordering::Acquire) == color).collect();
    members.sort_by_key(|&rank| (of(rank).key.load(Ordering::Acquire), rank));
    if color != NONE && members.first() == Some(&comm.rank) {
        let id = Board::create()?;
        // SAFETY: only this rank writes here, and the others read after the next meeting.
        unsafe { Board::write(&own.id, id) };
    }
    comm.meet()?;
    let place = members.iter().position(|&rank| rank == comm.rank);
    let made = match (place, members.first()) {
        (Some(place), Some(&first)) if color != NONE => {
            let id: Id = of(first).id;
            let made = Comm::claim(&id, members.len(), place, blocking)?;
            made.settle()?;
            Some(made)
        }
        _ => None,
    };
    // What was written here is read by then.
    comm.meet()?;
    Ok(made)
}
