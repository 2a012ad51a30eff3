//! Flows whose bytes are one row, or their own.

use std::collections::HashMap;

use super::memory::{Extents, Memory, append};
use super::{SPACES, WorkError, assemble, possible, tells};
use crate::plan::{Flow, MOST_MESSAGES, Traffic};
use crate::transport::work::{Content, Message, Part, Region, Role, SPACE, Share, Work};

/// A message has at most this many bytes: MPI counts them in an int.
pub(super) const MOST: u64 = 1 << 30;
/// Copies within a rank are made in pieces of at most this many bytes, so that it looks after what comes in.
const PIECE: u64 = 1 << 20;

/// Bytes from where: of the rank's own, or brought by a flow.
#[derive(Debug, Clone, Copy)]
struct Source {
    start: u64,
    end: u64,
    by: Option<usize>,
}

pub(super) fn work(traffic: &Traffic, world: usize) -> Result<Work, WorkError> {
    possible(traffic, world)?;
    let flows = &traffic.flows;
    if flows.len() as u64 >= SPACES {
        return Err(WorkError::TooMany { count: flows.len(), what: "flows", most: SPACES });
    }
    let mut parts = vec![Part::default(); world];
    let mut places = Places::new(traffic, &mut parts)?;
    let tell = tells(traffic);
    let pieces = |flow: &Flow| u64::from(flow.messages).max(flow.bytes.div_ceil(if flow.from == flow.to { PIECE } else { MOST }));
    let all = flows.iter().fold(0, |all: u64, flow| all.saturating_add(pieces(flow)));
    if all > MOST_MESSAGES {
        return Err(WorkError::TooMany { count: usize::try_from(all).unwrap_or(usize::MAX), what: "messages", most: MOST_MESSAGES });
    }
    let mut twins: HashMap<(usize, usize), u32> = HashMap::new();
    for (number, flow) in flows.iter().enumerate() {
        let copy = flow.from == flow.to;
        let twin = twins.entry((flow.from, flow.to)).or_default();
        let share = |role, peer| Share {
            flow: number,
            stage: flow.stage,
            role,
            peer,
            tag: if copy { 0 } else { *twin },
            after: if role == Role::Receive { Vec::new() } else { flow.after.clone() },
            tell: if role == Role::Send { Vec::new() } else { tell[number].clone() },
            arena: 0,
            messages: Vec::new(),
        };
        let (mut send, mut receive) = (share(Role::Send, flow.to), share(Role::Receive, flow.from));
        let pieces = pieces(flow);
        for (out, into) in (0..pieces).map(|piece| places.message(number, flow, piece, pieces)) {
            send.messages.push(out);
            receive.messages.push(into);
        }
        if copy {
            for (out, into) in send.messages.iter_mut().zip(receive.messages) {
                (out.into, out.expected, out.staged) = (into.regions, into.expected, false);
            }
            (send.role, send.tell) = (Role::Copy, receive.tell);
            parts[flow.from].shares.push(send);
            continue;
        }
        *twin += 1;
        settle(&mut send, &mut receive, &mut places.memories);
        parts[flow.from].shares.push(send);
        parts[flow.to].shares.push(receive);
    }
    for (part, memory) in parts.iter_mut().zip(&places.memories) {
        part.memory = memory.size();
    }
    Ok(assemble(traffic, parts))
}

/// Where the bytes of flows lie.
struct Places {
    /// where each flow's bytes have their addresses
    addresses: Vec<u64>,
    /// receiver of each flow
    to: Vec<usize>,
    sources: Vec<Vec<Source>>,
    memories: Vec<Memory>,
    /// of each rank: what it holds, and what it receives
    held: Vec<Extents>,
    landed: Vec<Extents>,
    /// of flows that bring what another one brings, too
    apart: HashMap<usize, u64>,
}

impl Places {
    /// Memory for what ranks hold and receive; what they hold goes to their parts.
    fn new(traffic: &Traffic, parts: &mut [Part]) -> Result<Self, WorkError> {
        let flows = &traffic.flows;
        let addresses: Vec<u64> = flows.iter().enumerate().map(address).collect::<Result<_, _>>()?;
        let range = |number: usize| (addresses[number], addresses[number] + flows[number].bytes);
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
        for (number, flow) in flows.iter().enumerate() {
            into[flow.to].push(number);
        }
        let mut order = Order::new(traffic);
        let sources: Vec<Vec<Source>> =
            flows.iter().enumerate().map(|(number, flow)| order.sources(number, &into[flow.from], &range)).collect();
        let mut kept: Vec<Vec<(u64, u64)>> = vec![Vec::new(); parts.len()];
        for (flow, sources) in flows.iter().zip(&sources) {
            kept[flow.from].extend(sources.iter().filter(|source| source.by.is_none()).map(|source| (source.start, source.end)));
        }
        let to = flows.iter().map(|flow| flow.to).collect();
        let (held, landed, apart, memories) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        let mut places = Self { addresses: addresses.clone(), to, sources, memories, held, landed, apart };
        for ((part, own), kept) in parts.iter_mut().zip(into).zip(kept) {
            let mut memory = Memory::default();
            let extents = Extents::new(kept, &mut memory);
            let content = |(at, address, bytes)| Content { region: Region::packed(at, bytes), address: Region::packed(address, bytes) };
            part.content = extents.all().map(content).collect();
            part.held = memory.size();
            places.held.push(extents);
            let (together, apart) = split(own, range);
            places.landed.push(Extents::new(together.into_iter().map(range).collect(), &mut memory));
            places.apart.extend(apart.into_iter().map(|number| (number, memory.take(flows[number].bytes))));
            places.memories.push(memory);
        }
        Ok(places)
    }

    /// Where a byte lies that a flow brings.
    fn place(&self, number: usize, address: u64) -> u64 {
        match self.apart.get(&number) {
            Some(own) => own + (address - self.addresses[number]),
            None => self.landed[self.to[number]].locate(address),
        }
    }

    /// Both sides of a flow's message, one of so many pieces.
    fn message(&self, number: usize, flow: &Flow, piece: u64, pieces: u64) -> (Message, Message) {
        let cut = |piece: u64| self.addresses[number] + (u128::from(flow.bytes) * u128::from(piece) / u128::from(pieces)) as u64;
        let (start, end) = (cut(piece), cut(piece + 1));
        let (bytes, mut regions, mut target) = (end - start, Vec::new(), Vec::new());
        for source in &self.sources[number] {
            let (first, last) = (source.start.max(start), source.end.min(end));
            if first < last {
                let at = source.by.map_or_else(|| self.held[flow.from].locate(first), |by| self.place(by, first));
                append(&mut regions, at, last - first);
            }
        }
        append(&mut target, self.place(number, start), bytes);
        let expected = vec![Region::packed(start, bytes)];
        let staged = bytes > 0 && (regions.len() > 1 || flow.staged.packs > 0);
        let out = Message { bytes, regions, staged, ..Message::default() };
        let staged = bytes > 0 && flow.staged.unpacks > 0;
        (out, Message { bytes, regions: target, staged, expected, ..Message::default() })
    }
}

/// Flows into a rank: those that lie together, and those that bring what another one brings, too: they lie apart.
fn split(own: Vec<usize>, range: impl Fn(usize) -> (u64, u64)) -> (Vec<usize>, Vec<usize>) {
    let mut sorted = own;
    sorted.sort_by_key(|&number| (range(number).0, number));
    let mut end = 0;
    sorted.into_iter().filter(|&number| range(number).0 < range(number).1).partition(|&number| {
        let together = range(number).0 >= end;
        if together {
            end = range(number).1;
        }
        together
    })
}

/// Arenas for both sides of a flow, and where its messages land. (Memory is taken last, behind what is held and what arrives.)
pub(super) fn settle(send: &mut Share, receive: &mut Share, memories: &mut [Memory]) {
    let (from, to) = (receive.peer, send.peer);
    for (share, rank) in [(&mut *send, from), (&mut *receive, to)] {
        let staged = share.messages.iter().filter(|message| message.staged).map(|message| message.bytes).max();
        share.arena = staged.map_or(memories[rank].size(), |bytes| memories[rank].take(bytes));
    }
    for (out, into) in send.messages.iter_mut().zip(&receive.messages) {
        let place = if into.staged { receive.arena } else { into.regions.first().map_or(0, |region| region.at) };
        (out.lands, out.lands_staged) = (place, into.staged);
    }
}

/// Where a flow's bytes have their addresses.
fn address((number, flow): (usize, &Flow)) -> Result<u64, WorkError> {
    let wrong = |what: String| Err(WorkError::Flow { flow: number, what });
    let start = flow.offset.unwrap_or(0);
    match start.checked_add(flow.bytes) {
        Some(end) if end <= SPACE => Ok(flow.offset.unwrap_or((number as u64 + 1) * SPACE)),
        _ => wrong(format!("{} bytes from {start} on reach beyond {SPACE} bytes", flow.bytes)),
    }
}

/// Which flows are complete before others begin.
struct Order<'a> {
    traffic: &'a Traffic,
    /// of each stage: flows of stages below are complete before it begins
    gates: Vec<usize>,
    /// flows before the one that is asked about, marked with its number + 1
    before: Vec<usize>,
    stack: Vec<usize>,
}

impl<'a> Order<'a> {
    fn new(traffic: &'a Traffic) -> Self {
        let mut gate = 0;
        let gates = traffic.stages.iter().enumerate().map(|(stage, of)| {
            if of.waits {
                gate = stage;
            }
            gate
        });
        Self { traffic, gates: gates.collect(), before: vec![0; traffic.flows.len()], stack: Vec::new() }
    }

    /// Mark all that is complete before a flow by what it waits for.
    fn mark(&mut self, number: usize) {
        let flows = &self.traffic.flows;
        self.stack.extend(&flows[number].after);
        while let Some(at) = self.stack.pop() {
            if self.before[at] != number + 1 {
                self.before[at] = number + 1;
                self.stack.extend(&flows[at].after);
            }
        }
    }

    /// Where a flow's bytes come from, in their order: what flows into its sender (`into`) have brought, and else what that holds.
    fn sources(&mut self, number: usize, into: &[usize], range: &impl Fn(usize) -> (u64, u64)) -> Vec<Source> {
        let (start, end) = range(number);
        let flows = &self.traffic.flows;
        let mut found: Vec<Source> = Vec::new();
        let mut left = vec![(start, end)];
        let mut marked = false;
        let gate = self.gates[flows[number].stage];
        for &by in into.iter().take_while(|&&by| by < number) {
            let (first, last) = range(by);
            if last <= start || first >= end {
                continue;
            }
            if flows[by].stage >= gate {
                if !std::mem::replace(&mut marked, true) {
                    self.mark(number);
                }
                if self.before[by] != number + 1 {
                    continue;
                }
            }
            let mut rest = Vec::with_capacity(left.len() + 1);
            for (from, to) in left {
                let (low, high) = (from.max(first), to.min(last));
                if low >= high {
                    rest.push((from, to));
                    continue;
                }
                found.push(Source { start: low, end: high, by: Some(by) });
                rest.extend([(from, low), (high, to)].into_iter().filter(|(from, to)| from < to));
            }
            left = rest;
        }
        found.extend(left.into_iter().map(|(start, end)| Source { start, end, by: None }));
        found.sort_by_key(|source| source.start);
        found
    }
}
