//! Transfers -> work for ranks: whose memory holds what, which regions each message takes and where they land.
//!
//! - Plans go as scheduled: rounds through staging arenas, or in place; every shard has memory of its own.
//! - Flows with an offset move parts of one row of bytes, the same on both sides. A rank holds what it sends unless a flow before
//!   brought it: then it sends on what it received, so that wrong bytes travel, too.
//! - Flows without one have memory of their own on both sides.
//!
//! Flows have the numbers that they have in [`Transfers::traffic`], so that each measured time has its predicted one.

mod batch;
mod flows;
mod memory;
mod room;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::schedule::ScheduleError;
use super::{Traffic, Transfers};
use crate::transport::work::{Moved, Part, SPACE, Share, Work};

pub use room::fits;

/// Why transfers cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkError {
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error("it is of {wanted} ranks, and there are {there}: start as many, or price it without running it")]
    Ranks { wanted: usize, there: usize },
    #[error("nothing to run: it has no flow")]
    Empty,
    #[error("flow {flow}: {what}")]
    Flow { flow: usize, what: String },
    #[error("{}segment {segment}: {what}", super::schedule::before(.parameter, ","))]
    Segment { parameter: String, segment: usize, what: String },
    #[error("{count} {what}, {most} at most")]
    TooMany { count: usize, what: &'static str, most: u64 },
    #[error("the memory for it is {wanted} on {host}, which has {there} to spare{of}; run a smaller one (fewer bytes, fewer ranks a host)")]
    Memory { host: String, wanted: String, there: String, of: String },
}

/// Address spaces there are.
const SPACES: u64 = u64::MAX / SPACE;

/// Transfers as work for `world` ranks, and the traffic that it is.
pub fn work(transfers: &Transfers, world: usize) -> Result<(Work, Traffic), WorkError> {
    let (work, traffic) = match transfers {
        Transfers::Batch(batch) => batch::work(batch, world)?,
        Transfers::Traffic(traffic) => {
            traffic.check().map_err(ScheduleError::Traffic)?;
            (flows::work(traffic, world)?, traffic.clone())
        }
    };
    Ok((work, traffic))
}

/// As many ranks as it needs, and something to do.
fn possible(traffic: &Traffic, world: usize) -> Result<(), WorkError> {
    let wanted = traffic.flows.iter().map(|flow| flow.from.max(flow.to) + 1).max().ok_or(WorkError::Empty)?;
    if wanted > world {
        return Err(WorkError::Ranks { wanted: wanted.max(traffic.ranks), there: world });
    }
    Ok(())
}

/// Put shares, by rank, together with memory and the rest that ranks need to know.
fn assemble(traffic: &Traffic, mut parts: Vec<Part>) -> Work {
    let waits: Vec<bool> = traffic.stages.iter().map(|stage| stage.waits).collect();
    let busy: Vec<usize> = parts.iter().enumerate().filter(|(_, part)| !part.is_idle()).map(|(rank, _)| rank).collect();
    let coordinator = busy.first().copied().unwrap_or(0);
    let tags = parts.iter().flat_map(|part| &part.shares).map(|share| share.tag + 1).max().unwrap_or(0);
    for (rank, part) in parts.iter_mut().enumerate() {
        (part.rank, part.coordinator, part.tags) = (rank, coordinator, tags);
        part.waits.clone_from(&waits);
        part.shares.sort_by_key(|share: &Share| share.flow);
    }
    if let Some(part) = parts.get_mut(coordinator) {
        part.others = busy.into_iter().skip(1).collect();
    }
    let messages = |flow: usize, rank: usize| {
        let own = parts[rank].shares.binary_search_by_key(&flow, |share| share.flow).ok();
        own.map_or(1, |at| parts[rank].shares[at].messages.len() as u32)
    };
    let flows = traffic.flows.iter().enumerate().map(|(number, flow)| Moved {
        stage: flow.stage,
        from: flow.from,
        to: flow.to,
        bytes: flow.bytes,
        messages: messages(number, flow.from),
        after: flow.after.clone(),
    });
    let flows = flows.collect();
    Work { waits, flows, parts }
}

/// Ranks that must be told of each flow's end: senders of those that wait for it, but for its own receiver.
fn tells(traffic: &Traffic) -> Vec<Vec<usize>> {
    let mut tell: Vec<Vec<usize>> = vec![Vec::new(); traffic.flows.len()];
    for flow in &traffic.flows {
        for &before in &flow.after {
            if traffic.flows[before].to != flow.from && !tell[before].contains(&flow.from) {
                tell[before].push(flow.from);
            }
        }
    }
    tell
}
