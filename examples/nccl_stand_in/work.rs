//! What a group of calls does when its stream gets to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::board::{Board, Rest, SLOTS, Slot};
use super::comm::{Comm, described, lock};
use super::cuda::{Handle, Mapped};
use super::{Answer, Code, LEDGER, REMOTE_ERROR, cuda};

/// Mappings of other ranks' memory that a communicator keeps.
const MAPPED: usize = 64;

/// One call's part.
pub enum Op {
    Send {
        to: usize,
        turn: u64,
        at: usize,
        slot: Slot,
        posted: bool,
    },
    Receive {
        from: usize,
        turn: u64,
        at: usize,
        bytes: u64,
        kind: u32,
        of: u32,
        fold: bool,
    },
    Put {
        to: usize,
        from: usize,
        bytes: u64,
        /// number of the window, and where in its memory
        window: usize,
        handle: Handle,
        offset: u64,
    },
    Signal {
        to: usize,
    },
    Wait {
        from: usize,
        until: u64,
    },
    /// bytes within this rank
    Copy {
        from: usize,
        to: usize,
        bytes: u64,
    },
    /// what was folded, once all of this rank's sends are received
    Folded {
        to: usize,
        from: usize,
        bytes: u64,
        kind: u32,
    },
    /// never ends; fails the communicator if it is told why
    Hang {
        why: Option<Code>,
    },
}

/// Bytes of a `ncclDataType_t`.
pub const fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 10 | 11 => Some(1),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        6 | 9 => Some(2),
        _ => None,
    }
}

/// The work of one stream's part of a group.
pub struct Task {
    pub comm: Arc<Comm>,
    pub ops: Vec<Op>,
    /// sums of a reduction, by kind of number
    sum: Option<Vec<u8>>,
    own: HashMap<[u8; 64], Mapped>,
}

impl Task {
    pub fn new(comm: Arc<Comm>, ops: Vec<Op>) -> Self {
        Self { comm, ops, sum: None, own: HashMap::new() }
    }

    /// Memory that it touches here.
    pub fn pieces(&self) -> Vec<[usize; 2]> {
        let piece = |op: &Op| match *op {
            Op::Send { at, slot, .. } => vec![[at, slot.bytes as usize]],
            Op::Receive { at, bytes, fold: false, .. } => vec![[at, bytes as usize]],
            Op::Put { from, bytes, .. } => vec![[from, bytes as usize]],
            Op::Copy { from, to, bytes } | Op::Folded { from, to, bytes, .. } => vec![[from, bytes as usize], [to, bytes as usize]],
            Op::Receive { .. } | Op::Signal { .. } | Op::Wait { .. } | Op::Hang { .. } => Vec::new(),
        };
        self.ops.iter().flat_map(piece).filter(|piece| piece[1] > 0).collect()
    }

    /// Do all of it, each as soon as it can be; until then, or until the communicator is aborted.
    pub fn run(mut self) {
        let mut rest = Rest::default();
        let mut ops = std::mem::take(&mut self.ops);
        while !ops.is_empty() && !self.comm.is_aborted() {
            let before = ops.len();
            let mut moved = false;
            let sending = ops.iter().any(|op| matches!(op, Op::Send { .. } | Op::Receive { .. }));
            ops.retain_mut(|op| match self.step(op, sending) {
                Ok(Step::Done) => false,
                Ok(Step::Moved) => {
                    moved = true;
                    true
                }
                Ok(Step::Not) => true,
                Err(code) => {
                    self.comm.fail(code);
                    *op = Op::Hang { why: None };
                    true
                }
            });
            if moved || ops.len() < before {
                rest.over();
            } else {
                if rest.is_long() {
                    self.look_for_the_dead(&ops);
                }
                rest.take();
            }
        }
    }

    /// A network tells when the other end is gone.
    fn look_for_the_dead(&self, ops: &[Op]) {
        for op in ops {
            let (from, to) = match *op {
                Op::Send { to, .. } | Op::Put { to, .. } | Op::Signal { to } => (self.comm.rank, to),
                Op::Receive { from, .. } | Op::Wait { from, .. } => (from, self.comm.rank),
                Op::Copy { .. } | Op::Folded { .. } | Op::Hang { .. } => continue,
            };
            let other = if from == self.comm.rank { to } else { from };
            if self.comm.board.is_gone(other) && self.comm.way(from, to).starts_with("NET/") {
                self.comm.fail(REMOTE_ERROR);
            }
        }
    }

    /// Another rank's memory, kept for the next time; this process's own only for as long as this is under way.
    fn map(&mut self, handle: &Handle) -> Answer<usize> {
        let mut kept = lock(&self.comm.mapped);
        if let Some(mapped) = self.own.get(&handle.0).or_else(|| kept.get(&handle.0)) {
            return Ok(mapped.base);
        }
        let mapped = Mapped::new(handle)?;
        let base = mapped.base;
        if handle.is_own() {
            self.own.insert(handle.0, mapped);
        } else {
            if kept.len() >= MAPPED {
                kept.clear();
            }
            kept.insert(handle.0, mapped);
        }
        Ok(base)
    }

    fn step(&mut self, op: &mut Op, sending: bool) -> Answer<Step> {
        let comm = Arc::clone(&self.comm);
        match op {
            Op::Hang { why } => why.take().map_or(Ok(Step::Not), Err),
            Op::Send { to, turn, slot, posted, .. } => {
                let pair = comm.board.pair(comm.rank, *to);
                let taken = pair.taken.load(Ordering::Acquire);
                if *posted {
                    return Ok(if taken > *turn { Step::Done } else { Step::Not });
                }
                if pair.posted.load(Ordering::Acquire) != *turn || *turn >= taken + SLOTS {
                    return Ok(Step::Not);
                }
                // SAFETY: this turn's slot is free, and only this rank writes to it.
                unsafe { Board::write(&pair.slots[(*turn % SLOTS) as usize], *slot) };
                pair.posted.store(*turn + 1, Ordering::Release);
                *posted = true;
                Ok(Step::Moved)
            }
            Op::Receive { from, turn, at, bytes, kind, of, fold } => {
                let pair = comm.board.pair(*from, comm.rank);
                if pair.posted.load(Ordering::Acquire) <= *turn || pair.taken.load(Ordering::Acquire) != *turn {
                    return Ok(Step::Not);
                }
                let slot = pair.slots[(*turn % SLOTS) as usize];
                if (slot.bytes, slot.kind, slot.of) != (*bytes, *kind, *of) {
                    LEDGER.violation(format!(
                        "rank {from} sent {} bytes of type {} (call {}) where rank {} received {bytes} of type {kind} (call {of})",
                        slot.bytes, slot.kind, slot.of, comm.rank,
                    ));
                }
                let most = slot.bytes.min(*bytes);
                if most > 0 {
                    let source = self.map(&slot.handle)? + slot.offset as usize;
                    if *fold {
                        self.fold(source, most, *kind);
                    } else {
                        carry(&comm, (*from, source), (comm.rank, *at), most);
                    }
                }
                pair.taken.store(*turn + 1, Ordering::Release);
                Ok(Step::Done)
            }
            Op::Put { to, from, bytes, window, handle, offset } => {
                // SAFETY: a word of the board.
                if unsafe { Board::read(&comm.board.rank(*to).windows[*window].size) } == 0 {
                    LEDGER.violation(format!("rank {} put {bytes} bytes into a window that rank {to} has deregistered", comm.rank));
                }
                let target = self.map(handle)? + *offset as usize;
                carry(&comm, (comm.rank, *from), (*to, target), *bytes);
                comm.board.pair(comm.rank, *to).signals.fetch_add(1, Ordering::AcqRel);
                Ok(Step::Done)
            }
            Op::Signal { to } => {
                comm.board.pair(comm.rank, *to).signals.fetch_add(1, Ordering::AcqRel);
                Ok(Step::Done)
            }
            Op::Wait { from, until } => {
                let there = comm.board.pair(*from, comm.rank).signals.load(Ordering::Acquire) >= *until;
                Ok(if there { Step::Done } else { Step::Not })
            }
            Op::Copy { from, to, bytes } => {
                carry(&comm, (comm.rank, *from), (comm.rank, *to), *bytes);
                Ok(Step::Done)
            }
            Op::Folded { to, from, bytes, kind } => {
                if sending {
                    return Ok(Step::Not);
                }
                self.fold(*from, *bytes, *kind);
                if let Some(sum) = self.sum.take() {
                    // SAFETY: as many bytes as were checked when this was enqueued.
                    unsafe { std::ptr::copy_nonoverlapping(sum.as_ptr(), std::ptr::with_exposed_provenance_mut(*to), sum.len()) };
                }
                Ok(Step::Done)
            }
        }
    }

    /// Add numbers to the sum.
    fn fold(&mut self, source: usize, bytes: u64, kind: u32) {
        // SAFETY: mapped for as long as this task is.
        let more = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(source), bytes as usize) };
        let Some(sum) = &mut self.sum else {
            self.sum = Some(more.to_vec());
            return;
        };
        macro_rules! add {
            ($number:ty, $add:expr) => {
                for (sum, more) in sum.chunks_exact_mut(size_of::<$number>()).zip(more.chunks_exact(size_of::<$number>())) {
                    let numbers = (<$number>::from_ne_bytes(sum.try_into().unwrap_or_default()), more.try_into().unwrap_or_default());
                    let add: fn($number, $number) -> $number = $add;
                    sum.copy_from_slice(&add(numbers.0, <$number>::from_ne_bytes(numbers.1)).to_ne_bytes());
                }
            };
        }
        match kind {
            0 | 1 => add!(u8, u8::wrapping_add),
            2 | 3 => add!(u32, u32::wrapping_add),
            4 | 5 => add!(u64, u64::wrapping_add),
            7 => add!(f32, |a, b| a + b),
            8 => add!(f64, |a, b| a + b),
            _ => LEDGER.violation(format!("sums of type {kind} are not here")),
        }
    }
}

enum Step {
    Done,
    /// something happened, but there is more to come
    Moved,
    Not,
}

/// Move bytes from a rank to a rank, as fast as the box is said to be.
fn carry(comm: &Comm, from: (usize, usize), to: (usize, usize), bytes: u64) {
    let started = Instant::now();
    // SAFETY: both were checked to span so many bytes and are held by this task or by the stream's work.
    unsafe {
        let (source, target) = (std::ptr::with_exposed_provenance::<u8>(from.1), std::ptr::with_exposed_provenance_mut(to.1));
        std::ptr::copy(source, target, bytes as usize);
    }
    let rate = if from.0 == to.0 { described().cuda.rate.local } else { described().cuda.rate.peer };
    if rate > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(bytes as f64 / rate / 1e9).saturating_sub(started.elapsed()));
    }
    cuda::moved(comm.end(from.0).gpu, comm.end(to.0).gpu, bytes);
    LEDGER.moved(format!("{}->{}", from.0, to.0), bytes);
}

/// Numbers of sends and receives, in the order of their calls.
pub fn turn(comm: &Comm, peer: usize, sends: bool) -> u64 {
    let mut counts = lock(&comm.counts);
    let counts = if sends { &mut counts.sends } else { &mut counts.receives };
    let count = counts.entry(peer).or_default();
    *count += 1;
    *count - 1
}
