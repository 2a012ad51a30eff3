//! Processor copies under way at the same time, for engines whose ranks copy: one piece of each in turn.

use super::{Flow, Window};

/// A rank that copies looks after its other transfers at least this often, bytes: some microseconds.
const PIECE: usize = 64 << 10;
/// Of large messages a piece is this share, so that what comes in meanwhile is acknowledged less than 2 % of a copy late.
const PIECES: usize = 64;

/// The copies of one rank.
#[derive(Debug, Default)]
pub(super) struct Copies {
    jobs: Vec<Job>,
    /// whose turn it is
    next: usize,
    /// transfers that this rank copies for; with one alone, and nothing to receive, its copies need no pieces
    sources: usize,
    busy: bool,
}

#[derive(Debug)]
struct Job {
    flow: usize,
    window: Window,
    /// bytes of a piece
    piece: usize,
    /// pieces of one message
    per_message: usize,
    /// pieces at a time
    per_turn: usize,
    /// which piece goes first
    first: usize,
    /// pieces copied
    done: usize,
}

/// Pieces to copy now, all of one transfer.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) flow: usize,
    /// no piece of its window is left after these
    pub(super) last: bool,
    window: Window,
    piece: usize,
    per_message: usize,
    first: usize,
    pieces: std::ops::Range<usize>,
}

impl Copies {
    /// For the transfers of a probe in which `rank` takes part; forgets what was under way.
    pub(super) fn begin(&mut self, flows: &[Flow], rank: usize, copied: impl Fn(&Flow) -> bool) {
        self.clear();
        self.next = 0;
        self.sources = flows.iter().filter(|flow| copied(flow)).count();
        self.busy = self.sources > 1 || flows.iter().any(|flow| !copied(flow) && (flow.from == rank || flow.to == rank));
        self.jobs.reserve(self.sources);
    }

    /// Begin to copy a window of a transfer.
    pub(super) fn start(&mut self, flow: usize, window: Window) {
        let piece = if self.busy { (window.bytes / PIECES).next_multiple_of(64).max(PIECE) } else { usize::MAX };
        let per_message = window.bytes.div_ceil(piece).max(1);
        let total = per_message * window.count;
        // Of one source several copies would find each other's bytes in the cache: each begins elsewhere.
        let first = total * (flow % self.sources.max(1)) / self.sources.max(1);
        let per_turn = if self.busy { (piece / window.bytes.max(1)).max(1) } else { total };
        self.jobs.push(Job { flow, window, piece, per_message, per_turn, first, done: 0 });
    }

    /// Forget what is under way.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }

    /// What to copy next.
    pub(super) fn turn(&mut self) -> Option<Turn> {
        let count = self.jobs.len();
        if count == 0 {
            return None;
        }
        let at = self.next % count;
        let job = &mut self.jobs[at];
        let total = job.per_message * job.window.count;
        let until = (job.done + job.per_turn).min(total);
        let turn = Turn {
            flow: job.flow,
            last: until == total,
            window: job.window,
            piece: job.piece,
            per_message: job.per_message,
            first: job.first,
            pieces: job.done..until,
        };
        job.done = until;
        if turn.last {
            self.jobs.remove(at);
            self.next = at;
        } else {
            self.next = at + 1;
        }
        Some(turn)
    }
}

impl Turn {
    /// Place in the arenas and length of each piece, bytes.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let total = self.per_message * self.window.count;
        self.pieces.clone().map(move |number| {
            let number = (number + self.first) % total;
            let (message, part) = (number / self.per_message, number % self.per_message * self.piece);
            (self.window.offset(message) + part, self.piece.min(self.window.bytes - part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: usize, to: usize) -> Flow {
        Flow { number, from: 0, to, lane: 0, twin: 0 }
    }

    /// Which bytes were copied how often, for each transfer, and the order in which transfers had their turns.
    fn copied(flows: &[Flow], window: Window, arena: usize) -> (Vec<Vec<u8>>, Vec<usize>) {
        let mut copies = Copies::default();
        copies.begin(flows, 0, |flow| flow.from == 0);
        let mut times = vec![vec![0; arena]; flows.len()];
        let mut turns = Vec::new();
        for flow in flows.iter().filter(|flow| flow.from == 0) {
            copies.start(flow.number, window);
        }
        while let Some(turn) = copies.turn() {
            turns.push(turn.flow);
            for (at, length) in turn.pieces() {
                times[turn.flow][at..at + length].iter_mut().for_each(|times| *times += 1);
            }
        }
        (times, turns)
    }

    #[test]
    fn every_byte_of_every_window_is_copied_once_and_transfers_take_turns() {
        for (bytes, count) in [(100, 5), (64 << 10, 3), (200_000, 2), (5 << 20, 1)] {
            let window = Window { bytes, count, first: 1, slots: count + 1 };
            let arena = window.slots * Window::stride(bytes);
            let (times, turns) = copied(&[flow(0, 1), flow(1, 2), flow(2, 3)], window, arena);
            for times in times {
                let inside = |at: usize| at % Window::stride(bytes) < bytes && at / Window::stride(bytes) != 0;
                assert!(times.iter().enumerate().all(|(at, &times)| usize::from(times) == usize::from(inside(at))), "{bytes} x {count}");
            }
            assert_eq!(turns[..3], [0, 1, 2], "{bytes} x {count}");
            assert!(turns.len() < 3 * 2 * PIECES, "{bytes} x {count}: {} turns", turns.len());
        }
    }

    #[test]
    fn copies_of_the_same_bytes_are_at_different_places() {
        let window = Window { bytes: 6 << 20, count: 1, first: 0, slots: 1 };
        let mut copies = Copies::default();
        let flows = [flow(0, 1), flow(1, 2), flow(2, 3)];
        copies.begin(&flows, 0, |_| true);
        for flow in &flows {
            copies.start(flow.number, window);
        }
        let places: Vec<usize> = (0..3).map(|_| copies.turn().unwrap().pieces().next().unwrap().0).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 1 << 20), "{places:?}");
    }

    #[test]
    fn a_copy_with_nothing_beside_it_is_one_piece() {
        let window = Window { bytes: 5 << 20, count: 2, first: 0, slots: 2 };
        let arena = 2 * Window::stride(window.bytes);
        assert_eq!(copied(&[flow(0, 1), Flow { from: 2, to: 1, ..flow(1, 1) }], window, arena).1, [0]);
        assert!(copied(&[flow(0, 1), Flow { from: 1, to: 0, ..flow(1, 0) }], window, arena).1.len() > 100);
    }
}
