//! Plans as they are scheduled: every shard has memory of its own.

use std::collections::BTreeMap;

use super::flows::{MOST, settle};
use super::memory::Memory;
use super::{SPACES, WorkError, assemble, possible};
use crate::plan::schedule::{Chunk, Schedule, schedule};
use crate::plan::{Batch, Place, Traffic};
use crate::transport::work::{Content, Message, Part, Region, Role, SPACE, Share, Work};
use crate::units::plain;

/// Shards of one side: by parameter and location, where it lies in its process's memory, and its number.
type Shards = BTreeMap<(u32, i64), (u64, u64)>;

pub(super) fn work(batch: &Batch, world: usize) -> Result<(Work, Traffic), WorkError> {
    let schedule = schedule(batch, None)?;
    let traffic = schedule.traffic(batch);
    possible(&traffic, world)?;
    let mut memories: Vec<Memory> = (0..world).map(|_| Memory::default()).collect();
    let mut parts = vec![Part::default(); world];
    let sizes = sizes(batch, |segment| &segment.source)?;
    if sizes.len() as u64 >= SPACES {
        return Err(WorkError::TooMany { count: sizes.len(), what: "source shards", most: SPACES });
    }
    let mut sources = Shards::new();
    for (number, ((parameter, location), bytes)) in (0..).zip(sizes) {
        let Some(rank) = batch.endpoints.source.get(&location).copied().filter(|&rank| rank < world) else { continue };
        let at = memories[rank].take(bytes);
        sources.insert((parameter, location), (at, number));
        parts[rank].content.push(Content { region: Region::packed(at, bytes), address: Region::packed(number * SPACE, bytes) });
    }
    for (part, memory) in parts.iter_mut().zip(&memories) {
        part.held = memory.size();
    }
    let mut targets = Shards::new();
    for ((parameter, location), bytes) in self::sizes(batch, |segment| &segment.target)? {
        let Some(rank) = batch.endpoints.target.get(&location).copied().filter(|&rank| rank < world) else { continue };
        targets.insert((parameter, location), (memories[rank].take(bytes), 0));
    }
    let made = Made { batch, sources, targets };
    let mut flow = 0;
    for lane in &schedule.lanes {
        let share =
            |role, peer| Share { flow, stage: 0, role, peer, tag: 0, after: Vec::new(), tell: Vec::new(), arena: 0, messages: Vec::new() };
        let (mut send, mut receive) = (share(Role::Send, lane.to), share(Role::Receive, lane.from));
        for round in schedule.rounds_of(lane) {
            let (mut out, mut into) =
                (Message { bytes: round.bytes, ..Message::default() }, Message { bytes: round.bytes, ..Message::default() });
            if round.bytes > MOST {
                let (count, what) = (usize::try_from(round.bytes).unwrap_or(usize::MAX), "bytes in one message (--bytes-per-peer)");
                return Err(WorkError::TooMany { count, what, most: MOST });
            }
            for &chunk in schedule.chunks_of(round) {
                let [source, expected, target] = made.regions(chunk)?;
                out.regions.push(source);
                into.regions.push(target);
                into.expected.push(expected);
            }
            // Nothing has no place.
            (out.staged, into.staged) = (!round.sent_in_place && round.bytes > 0, !round.received_in_place && round.bytes > 0);
            if round.bytes == 0 {
                out.regions.clear();
                into.regions.clear();
            }
            send.messages.push(out);
            receive.messages.push(into);
        }
        settle(&mut send, &mut receive, &mut memories);
        parts[lane.from].shares.push(send);
        parts[lane.to].shares.push(receive);
        flow += 1;
    }
    let stage = traffic.stages.len().saturating_sub(1);
    for copies in schedule.copies.chunk_by(|a, b| a.process == b.process) {
        let rank = copies[0].process;
        let mut messages = Vec::with_capacity(copies.len());
        for copy in copies {
            let [source, expected, target] = made.whole(copy.parameter, copy.segment)?;
            let (regions, into, expected) = (vec![source], vec![target], vec![expected]);
            messages.push(Message { bytes: copy.bytes, regions, into, expected, ..Message::default() });
        }
        let (after, tell) = (Vec::new(), Vec::new());
        parts[rank].shares.push(Share { flow, stage, role: Role::Copy, peer: rank, tag: 0, after, tell, arena: 0, messages });
        flow += 1;
    }
    for (part, memory) in parts.iter_mut().zip(&memories) {
        part.memory = memory.size();
    }
    Ok((assemble(&traffic, parts), traffic))
}

/// Bytes of each shard, as far as plans reach.
fn sizes(batch: &Batch, side: impl Fn(&crate::plan::Segment) -> &Place) -> Result<BTreeMap<(u32, i64), u64>, WorkError> {
    let mut sizes = BTreeMap::new();
    for (parameter, of) in (0..).zip(&batch.parameters) {
        for (number, segment) in of.plan.segments.iter().enumerate() {
            let Place(location, offset, strides) = side(segment);
            let region = region(0, &segment.shape, *offset, strides, of.element_size);
            let bounds = region.as_ref().and_then(Region::bounds);
            let Some((_, end)) = bounds.filter(|&(_, end)| end <= SPACE) else { return Err(wrong(batch, parameter, number)) };
            let known = sizes.entry((parameter, *location)).or_insert(0_u64);
            *known = (*known).max(end);
        }
    }
    Ok(sizes)
}

fn wrong(batch: &Batch, parameter: u32, segment: usize) -> WorkError {
    let name = batch.parameters.get(parameter as usize).map_or_else(String::new, |parameter| plain(&parameter.name));
    let what = format!("it has more than {} axes, or reaches beyond {SPACE} bytes of a shard", Region::MOST_AXES);
    WorkError::Segment { parameter: name, segment, what }
}

/// A block of elements behind `base`, in bytes.
fn region(base: u64, shape: &[u64], offset: u64, strides: &[i64], element: u64) -> Option<Region> {
    let wide = i64::try_from(element).ok()?;
    let strides: Option<Vec<i64>> = strides.iter().map(|stride| stride.checked_mul(wide)).collect();
    Region::strided(base.checked_add(offset.checked_mul(element)?)?, shape, &strides?, element)
}

struct Made<'a> {
    batch: &'a Batch,
    sources: Shards,
    targets: Shards,
}

impl Made<'_> {
    /// Of a chunk: its region in the source's memory, the addresses of its content, its region in the target's memory.
    fn regions(&self, chunk: Chunk) -> Result<[Region; 3], WorkError> {
        let Some(of) = Schedule::region(self.batch, chunk) else {
            return Err(wrong(self.batch, chunk.parameter, chunk.segment as usize));
        };
        let (source, target) = ((of.source, of.source_strides), (of.target, of.target_strides));
        self.placed(chunk.parameter, chunk.segment, &of.shape, source, target)
    }

    /// The same of a whole segment.
    fn whole(&self, parameter: u32, number: u32) -> Result<[Region; 3], WorkError> {
        let of = self.batch.parameters.get(parameter as usize).and_then(|of| of.plan.segments.get(number as usize));
        let Some(segment) = of else { return Err(wrong(self.batch, parameter, number as usize)) };
        let (source, target) = ((segment.source.1, &segment.source.2[..]), (segment.target.1, &segment.target.2[..]));
        self.placed(parameter, number, &segment.shape, source, target)
    }

    fn placed(
        &self,
        parameter: u32,
        number: u32,
        shape: &[u64],
        source: (u64, &[i64]),
        target: (u64, &[i64]),
    ) -> Result<[Region; 3], WorkError> {
        let find = || {
            let of = self.batch.parameters.get(parameter as usize)?;
            let segment = of.plan.segments.get(number as usize)?;
            let &(from, space) = self.sources.get(&(parameter, segment.source.0))?;
            let &(to, _) = self.targets.get(&(parameter, segment.target.0))?;
            let element = of.element_size;
            Some([
                region(from, shape, source.0, source.1, element)?,
                region(space * SPACE, shape, source.0, source.1, element)?,
                region(to, shape, target.0, target.1, element)?,
            ])
        };
        find().ok_or_else(|| wrong(self.batch, parameter, number as usize))
    }
}
