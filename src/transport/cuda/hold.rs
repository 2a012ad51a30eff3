//! A rank's GPU in a work: its memory, and what is on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{Buffer, CudaError, Gpu, Mark, Pinned, Stream};
use super::groups::Groups;
use super::side::{BOUNCE, Way};
use crate::transport::rest::Rest;
use crate::transport::work::{Filling, Heard, Part, Role, SEED};
use crate::transport::{Stop, TransportError};

/// Streams that messages go by, at most: of more the driver makes some share a queue of the GPU, anyway.
const STREAMS: usize = 32;
/// Longest time for copies that are not measured.
const SERVICE: Duration = Duration::from_secs(60);

/// Where a share's message stands, where this rank's GPU copies it.
#[derive(Debug)]
struct Job {
    /// behind it
    mark: Mark,
    under_way: bool,
    /// receiver that fetches: where the message belongs, and where it lies at the sender
    posted: Option<(usize, usize)>,
    lies: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Hold {
    /// of [`Way::Joint`]; first, since the communicator ends before what it uses
    pub(super) groups: Option<Groups>,
    pub(super) gpu: Arc<Gpu>,
    pub(super) way: Way,
    pub(super) memory: Buffer,
    held: usize,
    /// other ranks' memory that this one's GPU reads or writes
    pub(super) reached: BTreeMap<usize, Result<Buffer, String>>,
    streams: Vec<Stream>,
    /// by share, where this rank's GPU copies by itself
    jobs: Vec<Job>,
    /// of those, the ones under way
    busy: usize,
    next: usize,
    /// for packing, and for what is not measured
    own: Option<Stream>,
    bounce: Pinned,
    broken: Option<String>,
    /// this rank's share of each flow; ascending by flow
    by_flow: Vec<(usize, Role, usize)>,
    /// by rank: share of whose message it has told that it is there, and not where it lies
    named: Vec<Option<usize>>,
}

impl Hold {
    /// Memory on a GPU, with its content.
    pub(super) fn new(gpu: Arc<Gpu>, way: Way, part: &Part) -> Result<Self, TransportError> {
        let rank = part.rank;
        let refuse = |error: CudaError| match gpu.memory() {
            Ok((free, total)) if error.is_out_of_memory() => {
                let (free, total) = (crate::units::format_size(free), crate::units::format_size(total));
                let reason = format!("{} has {free} of {total} free", gpu.name());
                TransportError::Memory { rank, bytes: part.memory, reason }
            }
            _ => TransportError::Unready { rank, reason: format!("{}: {error}", gpu.name()) },
        };
        if gpu.memory().is_ok_and(|(free, _)| free < part.memory) {
            return Err(refuse(CudaError::out_of_memory()));
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let memory = Buffer::allocate(&gpu, size(part.memory)).map_err(refuse)?;
        let (own, bounce) = (Stream::new(&gpu).map_err(refuse)?, Pinned::allocate(&gpu, BOUNCE).map_err(refuse)?);
        let groups = if way == Way::Joint { Some(Groups::new(&gpu, part).map_err(refuse)?) } else { None };
        let alone = if groups.is_some() { 0 } else { part.shares.len() };
        let streams = (0..alone.min(STREAMS)).map(|_| Stream::new(&gpu)).collect::<Result<_, _>>().map_err(refuse)?;
        let job = |_| Ok(Job { mark: Mark::new(&gpu)?, under_way: false, posted: None, lies: None });
        let jobs = (0..alone).map(job).collect::<Result<_, _>>().map_err(refuse)?;
        let mut by_flow: Vec<_> = part.shares.iter().enumerate().map(|(at, share)| (share.flow, share.role, at)).collect();
        by_flow.sort_unstable_by_key(|&(flow, ..)| flow);
        let mut hold = Self {
            groups,
            way,
            memory,
            held: size(part.held),
            reached: BTreeMap::new(),
            streams,
            jobs,
            busy: 0,
            next: 0,
            own: Some(own),
            bounce,
            broken: None,
            by_flow,
            named: vec![None; part.lies.nodes.len()],
            gpu,
        };
        hold.fill(part)?;
        Ok(hold)
    }

    fn fill(&mut self, part: &Part) -> Result<(), TransportError> {
        let filling = Filling::new(SEED, &part.content, part.held).map_err(TransportError::Work)?;
        for at in (0..self.held).step_by(BOUNCE) {
            let length = BOUNCE.min(self.held - at);
            filling.part(at as u64, &mut self.bounce.bytes_mut()[..length]);
            let wrote = self.own.as_ref().map(|own| own.write(&self.memory, at, &self.bounce, 0, length));
            self.note(wrote.unwrap_or(Ok(())));
            self.settle(Instant::now() + SERVICE).map_err(|stop| self.unready(part.rank, stop))?;
        }
        Ok(())
    }

    fn unready(&self, rank: usize, stop: Stop) -> TransportError {
        let reason = stop.why(|| format!("{}: copying its content did not end within {} s", self.gpu.name(), SERVICE.as_secs()));
        TransportError::Unready { rank, reason }
    }

    /// Never give its memory back.
    pub(super) fn leak(self) {
        self.memory.leak();
        if let Some(groups) = self.groups {
            groups.leak();
        }
    }

    /// Keep what went wrong where it cannot be told at once.
    fn note(&mut self, done: Result<(), CudaError>) {
        if let Err(error) = done {
            self.broken.get_or_insert(format!("{}: {error}", self.gpu.name()));
        }
    }

    /// What has gone wrong, if anything has.
    pub(super) fn health(&self) -> Result<(), Stop> {
        self.broken.as_ref().map_or(Ok(()), |why| Err(Stop::Failed(why.clone())))
    }

    /// Wait for this rank's own copies.
    pub(super) fn settle(&mut self, deadline: Instant) -> Result<(), Stop> {
        self.health()?;
        let mut rest = Rest::default();
        while let Some(own) = &self.own {
            match own.done() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    self.note(Err(error));
                    return self.health();
                }
            }
            if let Err(stop) = rest.once(deadline) {
                // Nothing more comes of this GPU in this work.
                self.own.take().into_iter().for_each(Stream::give_up);
                self.broken.get_or_insert(format!("{}: a copy within its memory did not end", self.gpu.name()));
                return Err(stop);
            }
        }
        self.health()
    }

    /// Overwrite everything but what is held, before a run.
    pub(super) fn wipe(&mut self) {
        self.groups.iter_mut().for_each(Groups::rewind);
        let rest = self.memory.len() - self.held;
        let wiped = self.own.as_ref().map(|own| own.fill(&self.memory, self.held, rest, 0xa5));
        self.note(wiped.unwrap_or(Ok(())));
        let _ = self.settle(Instant::now() + SERVICE);
    }

    /// Copy within this rank's memory.
    pub(super) fn copy(&mut self, from: usize, to: usize, length: usize) {
        let copied = self.own.as_ref().map(|own| own.copy(&self.memory, to, &self.memory, from, length));
        self.note(copied.unwrap_or(Ok(())));
    }

    /// The same of rows, each so far from the one before (`steps`: from, to).
    pub(super) fn rows(&mut self, from: usize, to: usize, (width, rows): (usize, usize), (step, into): (i64, i64)) {
        /// Of a row's distance; what is further apart is copied row by row.
        const PITCH: usize = i32::MAX as usize;
        let pitch = |step: i64| usize::try_from(step).ok().filter(|&step| step >= width && step <= PITCH);
        if let (Some(step), Some(into)) = (pitch(step), pitch(into)) {
            let (target, source) = ((&self.memory, to), (&self.memory, from));
            let copied = self.own.as_ref().map(|own| own.copy_rows(target, source, (width, rows), (into, step)));
            self.note(copied.unwrap_or(Ok(())));
        } else {
            let at = |start: usize, row: usize, step: i64| start.wrapping_add_signed(row.cast_signed().wrapping_mul(step as isize));
            (0..rows).for_each(|row| self.copy(at(from, row, step), at(to, row, into), width));
        }
    }

    /// Read from this rank's memory.
    pub(super) fn read(&mut self, from: usize, into: &mut [u8]) -> Result<(), Stop> {
        for (number, piece) in into.chunks_mut(BOUNCE).enumerate() {
            let at = from + number * BOUNCE;
            let read = self.own.as_ref().map(|own| own.read(&mut self.bounce, 0, &self.memory, at, piece.len()));
            self.note(read.unwrap_or(Ok(())));
            let settled = self.settle(Instant::now() + SERVICE);
            let late = || format!("{}: reading back what has arrived did not end within {} s", self.gpu.name(), SERVICE.as_secs());
            settled.map_err(|stop| Stop::Failed(stop.why(late)))?;
            piece.copy_from_slice(&self.bounce.bytes()[..piece.len()]);
        }
        Ok(())
    }

    /// This rank's share of a flow that it sends, or receives.
    pub(super) fn share_of(&self, flow: usize, role: Role) -> Option<usize> {
        let at = self.by_flow.binary_search_by_key(&flow, |&(flow, ..)| flow).ok()?;
        let (_, own, share) = self.by_flow[at];
        (own == role).then_some(share)
    }

    /// A sender has told that a message of this flow is there; where, it tells next.
    pub(super) fn name(&mut self, from: usize, flow: usize) {
        let share = self.share_of(flow, Role::Receive);
        if let Some(named) = self.named.get_mut(from) {
            *named = share;
        }
    }

    /// Share of whose message it has told that.
    pub(super) fn named(&self, from: usize) -> Option<usize> {
        self.named.get(from).copied().flatten()
    }

    /// Begin to copy a message: into another rank's memory, or out of it.
    pub(super) fn start(&mut self, share: usize, peer: usize, (from, to): (usize, usize), length: usize) -> Result<(), Stop> {
        self.health()?;
        let Some(Ok(other)) = self.reached.get(&peer) else {
            return Err(Stop::Failed(format!("no way to the memory of rank {peer} was prepared")));
        };
        let (into, source) = if self.way == Way::Push { (other, &self.memory) } else { (&self.memory, other) };
        let streams = self.streams.len().max(1);
        let job = self.jobs.get_mut(share).zip(self.streams.get(share % streams));
        let Some((job, stream)) = job else {
            return Err(Stop::Failed(format!("a message of share {share} was given up")));
        };
        let enqueued = stream.copy(into, to, source, from, length).and_then(|()| job.mark.set(stream));
        enqueued.map_err(|error| Stop::Failed(format!("{}: {error}", self.gpu.name())))?;
        job.under_way = true;
        self.busy += 1;
        Ok(())
    }

    /// A receiver that fetches: where the next message of a share belongs.
    pub(super) fn post(&mut self, share: usize, place: usize, length: usize) -> Option<(usize, usize, usize)> {
        self.jobs.get_mut(share)?.posted = Some((place, length));
        self.both(share)
    }

    /// And where it lies at its sender. Place there, place here and length, once both are known.
    pub(super) fn lies(&mut self, share: usize, place: usize) -> Option<(usize, usize, usize)> {
        self.jobs.get_mut(share)?.lies = Some(place);
        self.both(share)
    }

    fn both(&mut self, share: usize) -> Option<(usize, usize, usize)> {
        let job = self.jobs.get_mut(share)?;
        let ((here, length), there) = job.posted.zip(job.lies)?;
        (job.posted, job.lies) = (None, None);
        Some((there, here, length))
    }

    /// A share whose message is through, if any is.
    pub(super) fn look(&mut self) -> Result<Option<usize>, Stop> {
        self.health()?;
        if self.busy == 0 {
            return Ok(None);
        }
        let count = self.jobs.len();
        for _ in 0..count {
            self.next = (self.next + 1) % count;
            let job = &mut self.jobs[self.next];
            if job.under_way && job.mark.passed().map_err(|error| Stop::Failed(format!("{}: {error}", self.gpu.name())))? {
                job.under_way = false;
                self.busy -= 1;
                return Ok(Some(self.next));
            }
        }
        Ok(None)
    }

    /// Look after what goes through NCCL; `None` where nothing does.
    pub(super) fn look_jointly(&mut self, part: &Part, deadline: Instant) -> Option<Result<Option<Heard>, Stop>> {
        let health = self.health();
        let (groups, memory) = (self.groups.as_mut()?, &self.memory);
        Some(health.and_then(|()| groups.look(part, memory, deadline)))
    }

    /// Nothing more comes: what is still under way at the deadline is given up. What is to be said of that.
    pub(super) fn end(&mut self, deadline: Instant) -> Option<String> {
        let done = |stream: &Stream| stream.wait(deadline).unwrap_or(true);
        for stream in self.streams.drain(..) {
            if !done(&stream) {
                stream.give_up();
            }
        }
        let gone = if self.broken.is_some() { Instant::now() } else { deadline };
        self.groups.as_mut().and_then(|groups| groups.end(gone))
    }
}
