//! A schedule as traffic.

use super::{Schedule, ScheduleError, schedule};
use crate::plan::{Batch, Flow, Stage, Staged, Traffic, Transfers};

impl Schedule {
    /// One flow for each pair of processes, its messages being the rounds; then, as the reference's executor does, the copies inside
    /// processes, one flow each.
    pub fn traffic(&self, batch: &Batch) -> Traffic {
        let named = batch.endpoints.source.values().chain(batch.endpoints.target.values());
        let ranks = named.max().map_or(0, |most| most + 1);
        let mut traffic = Traffic { name: name(batch), ranks, ..Traffic::default() };
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let flow =
            |stage, from, to| Flow { stage, from, to, bytes: 0, messages: 1, after: Vec::new(), offset: None, staged: Staged::default() };
        if !self.lanes.is_empty() {
            traffic.stages.push(Stage { name: "rounds".to_owned(), waits: true });
        }
        let mut arenas = vec![0; ranks];
        for lane in &self.lanes {
            let sum = self.sum(lane);
            let staged =
                Staged { packs: count(sum.packs), pack_bytes: sum.pack_bytes, unpacks: count(sum.unpacks), unpack_bytes: sum.unpack_bytes };
            traffic.flows.push(Flow { bytes: sum.bytes, messages: count(sum.rounds), staged, ..flow(0, lane.from, lane.to) });
            for (rank, bytes) in [(lane.from, lane.send_arena), (lane.to, lane.receive_arena)] {
                if let Some(arena) = arenas.get_mut(rank) {
                    *arena += bytes;
                }
            }
        }
        if arenas.iter().any(|&bytes| bytes > 0) {
            traffic.arenas = arenas;
        }
        if !self.copies.is_empty() {
            let stage = traffic.stages.len();
            traffic.stages.push(Stage { name: "local copies".to_owned(), waits: true });
            for copies in self.copies.chunk_by(|a, b| a.process == b.process) {
                let process = copies[0].process;
                let bytes = copies.iter().map(|copy| copy.bytes).sum();
                traffic.flows.push(Flow { bytes, messages: count(copies.len() as u64), ..flow(stage, process, process) });
            }
        }
        traffic.chunks = self.chunks.len() as u64;
        traffic
    }
}

/// What a batch is called: its parameter, or how many it has.
fn name(batch: &Batch) -> String {
    match &batch.parameters[..] {
        [one] if !one.name.is_empty() => one.name.clone(),
        [_] => "plan".to_owned(),
        several => format!("{} parameters", several.len()),
    }
}

impl Transfers {
    /// As flows between ranks: plans are scheduled; traffic is checked.
    pub fn traffic(&self) -> Result<Traffic, ScheduleError> {
        match self {
            Self::Batch(batch) => Ok(schedule(batch, None)?.traffic(batch)),
            Self::Traffic(traffic) => traffic.check().map(|()| traffic.clone()).map_err(ScheduleError::Traffic),
        }
    }
}
