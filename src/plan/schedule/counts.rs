//! What a price needs to know of a schedule.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Lane, Schedule};

/// Work of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// messages that follow each other: the most over its peers and directions
    pub rounds: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// chunks that it sends and receives
    pub chunks: u64,
    /// chunks copied into a sending arena, and their bytes
    pub packs: u64,
    pub pack_bytes: u64,
    /// chunks copied out of a receiving arena, and their bytes
    pub unpacks: u64,
    pub unpack_bytes: u64,
    pub local_copies: u64,
    pub local_copy_bytes: u64,
    /// all its staging arenas together
    pub arena_bytes: u64,
    /// pairs of peer and direction
    pub lanes: u64,
}

/// Of the rounds of one lane: bytes, chunks, and what is packed and unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub rounds: u64,
    pub bytes: u64,
    pub chunks: u64,
    pub packs: u64,
    pub pack_bytes: u64,
    pub unpacks: u64,
    pub unpack_bytes: u64,
}

impl Schedule {
    pub(super) fn sum(&self, lane: &Lane) -> Sum {
        let mut sum = Sum::default();
        for round in self.rounds_of(lane) {
            let chunks = round.chunks.len() as u64;
            sum.rounds += 1;
            sum.bytes += round.bytes;
            sum.chunks += chunks;
            if !round.sent_in_place {
                sum.packs += chunks;
                sum.pack_bytes += round.bytes;
            }
            if !round.received_in_place {
                sum.unpacks += chunks;
                sum.unpack_bytes += round.bytes;
            }
        }
        sum
    }

    /// Work of every process that it is for, those without any included.
    pub fn counts(&self) -> BTreeMap<usize, Counts> {
        let mut counts: BTreeMap<usize, Counts> = self.processes.iter().map(|&process| (process, Counts::default())).collect();
        for lane in &self.lanes {
            let sum = self.sum(lane);
            if let Some(own) = counts.get_mut(&lane.from) {
                own.sent_bytes += sum.bytes;
                own.packs += sum.packs;
                own.pack_bytes += sum.pack_bytes;
                own.arena_bytes += lane.send_arena;
            }
            if let Some(own) = counts.get_mut(&lane.to) {
                own.received_bytes += sum.bytes;
                own.unpacks += sum.unpacks;
                own.unpack_bytes += sum.unpack_bytes;
                own.arena_bytes += lane.receive_arena;
            }
            for process in [lane.from, lane.to] {
                if let Some(own) = counts.get_mut(&process) {
                    own.rounds = own.rounds.max(sum.rounds);
                    own.chunks += sum.chunks;
                    own.lanes += 1;
                }
            }
        }
        for copy in &self.copies {
            if let Some(own) = counts.get_mut(&copy.process) {
                own.local_copies += 1;
                own.local_copy_bytes += copy.bytes;
            }
        }
        counts
    }
}
