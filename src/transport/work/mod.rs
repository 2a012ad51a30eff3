//! Work: what ranks do when a plan is run for real. Flows of messages in stages, each message a list of regions of a rank's memory
//! that are packed, sent and unpacked, or sent and received in place; and what every target byte must be afterwards.
//!
//! Each rank gets its own [`Part`] alone. The timed region is written once, in `run`, over what an engine's rank can do
//! ([`Carrier`]); all memory, regions and requests are made before.

mod carrier;
mod check;
mod collect;
mod content;
mod predicted;
mod region;
mod run;
mod steps;

pub use carrier::{Carrier, Heard};
pub use collect::Gathering;
pub use content::{Content, SPACE};
pub use region::Region;

pub(crate) use carrier::Word;
#[cfg(feature = "cuda")]
pub(crate) use content::Filling;
pub(crate) use content::{clear, fill};
pub(crate) use predicted::ends;
pub(crate) use run::run;

use serde::{Deserialize, Serialize};

use super::binding::Seats;
use super::{End, Way};
use crate::sample::Memory;
use crate::topology::CudaDevice;

/// Of all content.
pub(crate) const SEED: u64 = 0x746f_706f_7363_6f70;

/// All of a plan that is to be run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// of each stage: true if its flows begin when all those before are complete
    pub waits: Vec<bool>,
    pub flows: Vec<Moved>,
    /// one a rank of the job, by its number; those without a share take no part
    pub parts: Vec<Part>,
}

/// A flow as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub stage: usize,
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
    pub messages: u32,
    /// flows that must be complete before it begins
    pub after: Vec<usize>,
}

/// What one rank does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub rank: usize,
    /// the rank that lets all start together
    pub coordinator: usize,
    /// the other ranks that take part, where this one is the coordinator
    pub others: Vec<usize>,
    /// of each stage, as in [`Work::waits`]
    pub waits: Vec<bool>,
    /// bytes of all its memory
    pub memory: u64,
    /// bytes from its start that hold what is sent and are never written in a run; the rest is cleared before each
    pub held: u64,
    /// what those hold
    pub content: Vec<Content>,
    pub shares: Vec<Share>,
    /// flows from one rank to one other that must be told apart, at most
    pub tags: u32,
    /// of each share, where ranks move bytes together: the first of the steps that its messages go in; engines fill it in
    #[serde(default)]
    pub steps: Vec<usize>,
    #[serde(default)]
    pub lies: Lies,
}

/// Where memory lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lies {
    pub memory: Memory,
    /// as [`crate::sweep::SweepSettings::gpus`]
    pub gpus: Vec<String>,
    /// this rank's own; engines fill it in
    pub gpu: Option<CudaDevice>,
    /// the cores that this rank goes to where it has moved; engines fill it in
    #[serde(default)]
    pub cores: Vec<usize>,
    /// host of each rank of the job, by the engine's own numbers; engines fill it in
    pub nodes: Vec<usize>,
    /// where ranks move bytes together: the name that they meet by, and who they are; engines fill it in
    #[serde(default)]
    pub meeting: Vec<u8>,
    #[serde(default)]
    pub group: Vec<usize>,
}

/// What a rank has to do with a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Send,
    Receive,
    /// both ends are its own
    Copy,
}

/// A rank's side of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// number of the flow in [`Work::flows`]
    pub flow: usize,
    pub stage: usize,
    pub role: Role,
    /// the other side; itself for a copy
    pub peer: usize,
    /// its number among the flows between the same two ranks
    pub tag: u32,
    /// sender, copy: flows that must be complete before
    pub after: Vec<usize>,
    /// receiver, copy: other ranks that wait for its end
    pub tell: Vec<usize>,
    /// where messages are packed or unpacked, if any is staged
    pub arena: u64,
    /// one after another
    pub messages: Vec<Message>,
}

/// One message, as one side sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub bytes: u64,
    /// sender, copy: what is sent; receiver: where it belongs. In the order of the message's bytes
    pub regions: Vec<Region>,
    /// it goes through the arena on this side; otherwise its one region is packed
    pub staged: bool,
    /// sender: where it lands in the receiver's memory, and whether that is the receiver's arena
    pub lands: u64,
    pub lands_staged: bool,
    /// copy: where it belongs
    pub into: Vec<Region>,
    /// receiver, copy: the addresses of the content that must be there, in the order of the message's bytes
    pub expected: Vec<Region>,
}

impl Message {
    /// Where it is sent from or received into.
    pub(crate) fn place(&self, arena: u64) -> usize {
        let place = if self.staged { arena } else { self.regions.first().map_or(0, |region| region.at) };
        usize::try_from(place).unwrap_or(usize::MAX)
    }

    /// Its bytes.
    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

impl Part {
    /// True if it has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.shares.is_empty()
    }

    /// Words that others tell this rank in a run, at most.
    pub(crate) fn words(&self) -> usize {
        let messages: usize = self.shares.iter().map(|share| share.messages.len() + share.after.len()).sum();
        messages + (self.others.len() + 2) * (self.waits.len() + 3)
    }
}

impl Work {
    /// Ranks that have a share.
    pub fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().enumerate().filter(|(_, part)| !part.is_idle()).map(|(rank, _)| rank)
    }

    /// Bytes that its busiest rank sends or receives.
    pub fn busiest(&self) -> u64 {
        let of = |part: &Part| {
            let sum = |role: Role| {
                let own = part.shares.iter().filter(move |share| share.role == role);
                own.flat_map(|share| &share.messages).fold(0_u64, |sum, message| sum.saturating_add(message.bytes))
            };
            sum(Role::Send).max(sum(Role::Receive)).max(sum(Role::Copy))
        };
        self.parts.iter().map(of).max().unwrap_or(0)
    }

    /// The same on memory of GPUs, or of the host.
    #[must_use]
    pub fn on(mut self, memory: Memory, gpus: &[String]) -> Self {
        for part in &mut self.parts {
            part.lies = Lies { memory, gpus: gpus.to_vec(), ..Lies::default() };
        }
        self
    }

    /// Where its memory lies, and the GPUs that were named for it.
    pub(crate) fn lies(&self) -> Lies {
        self.parts.first().map(|part| part.lies.clone()).unwrap_or_default()
    }

    /// The part of a rank, as an engine gives it out whose ranks sit on these hosts, with the GPU that it is bound to.
    pub(crate) fn part(&self, rank: usize, nodes: &[usize], seats: &Seats) -> Part {
        let mut part = self.parts.get(rank).cloned().unwrap_or_default();
        // Others of the host wait for the words of one without a part, too.
        part.rank = rank;
        part.lies.cores = seats.cores(rank);
        if !part.lies.memory.is_host() {
            (part.lies.nodes, part.lies.gpu) = (nodes.to_vec(), seats.gpu(rank).cloned());
        }
        part
    }

    /// The same for a job of `world` ranks, of which `group` are this work's.
    #[must_use]
    pub fn renumbered(mut self, group: &[usize], world: usize) -> Self {
        let of = |rank: usize| group.get(rank).copied().unwrap_or(usize::MAX);
        for flow in &mut self.flows {
            (flow.from, flow.to) = (of(flow.from), of(flow.to));
        }
        let lies = self.lies();
        let mut parts = vec![Part { lies, ..Part::default() }; world];
        for (number, mut part) in self.parts.into_iter().enumerate() {
            (part.rank, part.coordinator) = (of(number), of(part.coordinator));
            part.others.iter_mut().for_each(|other| *other = of(*other));
            for share in &mut part.shares {
                share.peer = of(share.peer);
                share.tell.iter_mut().for_each(|rank| *rank = of(*rank));
            }
            if let Some(place) = parts.get_mut(part.rank) {
                *place = part;
            }
        }
        self.parts = parts;
        self
    }
}

/// How often, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Carry {
    pub id: u64,
    /// runs before the timed ones
    pub warmup: u32,
    /// timed runs
    pub runs: u32,
    /// longest time of one run, seconds
    pub timeout: f64,
}

/// What came of it, of one rank or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    pub id: u64,
    /// of each timed run that was completed: flow, and seconds from the start until all of it was at its receiver
    pub runs: Vec<Vec<(usize, f64)>>,
    /// target bytes that were compared, of all runs, the untimed ones included
    pub verified: u64,
    /// the first flow whose bytes are wrong: what is sent on is wrong, too
    pub wrong: Option<usize>,
    /// how bytes went from rank to rank, by the first flow of each two, where the library that moved them says it
    #[serde(default)]
    pub ways: Vec<Way>,
    pub end: End,
}
