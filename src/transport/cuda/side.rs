//! A rank's GPU in a sweep: arenas, lanes, and what is known of the other ranks' arenas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{Buffer, CudaError, Gpu, Pinned, Stream};
use super::host::Host;
use super::joint::Joint;
use super::lane::Lane;
use crate::sample::MoverKind;
use crate::transport::payload::{PERIOD, Payload};
use crate::transport::rest::Rest;
use crate::transport::{Stop, Window};

/// A buffer, and where in it an arena begins.
type Place<'a> = (&'a Buffer, usize);

/// Who copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// the sender, into the receiver's memory
    Push,
    /// the receiver, out of the sender's
    Pull,
    /// both, through NCCL
    Joint,
    /// nobody: what carries the words moves the bytes, too, by addresses of GPUs, and the host's clock tells
    Through,
}

/// Longest time for a copy that is not measured: filling, clearing, reading back.
const SERVICE: Duration = Duration::from_secs(20);
/// Bytes that are read back at a time: whole periods of the payload, so that one piece fills the next.
pub(super) const BOUNCE: usize = PERIOD * 32;

/// One of the probe's transfers that this rank's GPU moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved<'a> {
    /// the rank whose arena it reads
    pub(super) from: usize,
    /// the rank whose arena it writes
    pub(super) to: usize,
    /// which of those
    pub(super) lane: usize,
    pub(super) window: &'a Window,
}

#[derive(Debug)]
pub(super) struct Side {
    /// of [`Way::Joint`]; first, since what it has is given back while the GPU's context is there
    pub(super) joint: Joint,
    pub(super) rank: usize,
    pub(super) gpu: Arc<Gpu>,
    pub(super) mover: MoverKind,
    pub(super) way: Way,
    /// what it sends from, and `lanes` arenas of the same size, one behind the other, that it receives into
    pub(super) outgoing: Buffer,
    pub(super) landing: Buffer,
    pub(super) arena: usize,
    pub(super) arenas: usize,
    /// from one of those to the next, bytes; the same on all ranks
    pub(super) stride: usize,
    pub(super) seed: u64,
    /// host of each rank
    pub(super) nodes: Vec<usize>,
    /// other ranks' arenas that this one's GPU reads or writes, or why not
    pub(super) reached: BTreeMap<usize, Result<Buffer, String>>,
    /// ranks that cannot reach this one's
    pub(super) shut: BTreeSet<usize>,
    /// what it has of the host's memory
    pub(super) host: Host,
    /// made before they are needed; `None` after one was given up
    pub(super) lanes: Vec<Option<Lane>>,
    /// for what is not measured
    service: Option<Stream>,
    bounce: Pinned,
    /// by transfer of the probe: what its last window took
    pub(super) clocked: Vec<Option<Duration>>,
    /// a copy of another rank's, given up by it, may still write here
    pub(super) doubtful: bool,
    /// wrong bytes that such a copy may have written: the probe's result is not to be trusted, and nobody is to be blamed
    pub(super) unsure: Option<String>,
    /// a copy that is not measured did not end; nothing more comes of this GPU
    broken: Option<String>,
}

impl Side {
    /// Arenas on a GPU, the one that is sent from filled.
    #[allow(clippy::too_many_arguments, reason = "a sweep's settings")]
    pub(super) fn new(
        rank: usize,
        gpu: Arc<Gpu>,
        (mover, way): (MoverKind, Way),
        (arena, arenas): (usize, usize),
        seed: u64,
        nodes: Vec<usize>,
    ) -> Result<Self, CudaError> {
        let stride = arena.checked_next_multiple_of(64).unwrap_or(usize::MAX);
        let (outgoing, landing, joint) = arenas_of(&gpu, mover, (arena, stride.saturating_mul(arenas)))?;
        let (service, bounce) = (Stream::new(&gpu)?, Pinned::allocate(&gpu, BOUNCE)?);
        let mut side = Self {
            rank,
            mover,
            way,
            outgoing,
            landing,
            arena,
            arenas,
            stride,
            seed,
            nodes,
            reached: BTreeMap::new(),
            shut: BTreeSet::new(),
            host: Host::default(),
            lanes: vec![Some(Lane::new(&gpu)?)],
            service: Some(service),
            bounce,
            clocked: vec![None],
            doubtful: false,
            unsure: None,
            broken: None,
            joint,
            gpu,
        };
        side.fill()?;
        Ok(side)
    }

    /// True if streams wait for their gates by themselves.
    pub(super) fn is_quick(&self) -> bool {
        self.lanes.iter().flatten().all(Lane::is_quick)
    }

    /// Never give its arenas back.
    pub(super) fn leak(self) {
        self.outgoing.leak();
        self.landing.leak();
        self.joint.leak();
    }

    /// Put this rank's payload into the arena that it sends from, and something else into the others.
    fn fill(&mut self) -> Result<(), CudaError> {
        Payload::new(self.seed, self.rank).fill(self.bounce.bytes_mut());
        let Some(service) = &self.service else { return Ok(()) };
        for at in (0..self.arena).step_by(BOUNCE) {
            service.write(&self.outgoing, at, &self.bounce, 0, BOUNCE.min(self.arena - at))?;
        }
        service.fill(&self.landing, 0, self.landing.len(), BLANK)?;
        self.settle("filling its buffers");
        Ok(())
    }

    /// Wait for what is not measured; what does not end breaks this GPU.
    fn settle(&mut self, what: &str) -> bool {
        let Some(service) = self.service.take() else { return false };
        match service.wait(Instant::now() + SERVICE) {
            Ok(true) => self.service = Some(service),
            Ok(false) => {
                service.give_up();
                self.broken = Some(format!("{}: {what} did not end within {} s", self.gpu.name(), SERVICE.as_secs()));
            }
            Err(error) => self.broken = Some(self.tell(&error)),
        }
        self.broken.is_none()
    }

    fn tell(&self, error: &CudaError) -> String {
        format!("{}: {error}", self.gpu.name())
    }

    #[cold]
    pub(super) fn failed(&self, error: &CudaError) -> Stop {
        Stop::Failed(self.tell(error))
    }

    /// What is wrong with the GPU, if anything is.
    pub(super) fn health(&self) -> Result<(), Stop> {
        match &self.broken {
            Some(why) => Err(Stop::Failed(why.clone())),
            None => self.gpu.health().map_err(|error| self.failed(&error)),
        }
    }

    /// True if two ranks are on one host.
    fn together(&self, a: usize, b: usize) -> bool {
        self.nodes.get(a).is_some() && self.nodes.get(a) == self.nodes.get(b)
    }

    /// Why a probe with these transfers cannot be moved so, if it cannot.
    pub(super) fn refusal(&self, flows: &[(usize, usize)]) -> Option<String> {
        match self.way {
            Way::Joint => return self.joint_refusal(flows),
            Way::Through => return None,
            Way::Push | Way::Pull => {}
        }
        let mover = self.mover.name();
        for &(from, to) in flows.iter().filter(|(from, to)| from != to) {
            if !self.together(from, to) {
                return Some(format!("{mover} works between ranks of one host, and {from}→{to} are on two"));
            }
            let (mapper, other) = if self.way == Way::Push { (from, to) } else { (to, from) };
            if mapper == self.rank {
                match self.reached.get(&other) {
                    Some(Ok(_)) => {}
                    Some(Err(why)) => return Some(format!("{mover} {from}→{to}: {why}")),
                    None => return Some(format!("{mover} {from}→{to}: rank {other} has offered no memory")),
                }
            } else if other == self.rank && self.shut.contains(&mapper) {
                return Some(format!("{mover} {from}→{to}: rank {mapper} cannot reach the memory of rank {other}"));
            }
        }
        None
    }

    /// Get ready for a probe of so many transfers, of which this rank's GPU moves some.
    pub(super) fn ready(&mut self, flows: usize, lanes: usize) -> Result<(), Stop> {
        self.gpu.enter().map_err(|error| self.failed(&error))?;
        self.clocked.clear();
        self.clocked.resize(flows.max(1), None);
        if self.lanes.len() < lanes {
            self.lanes.resize_with(lanes, || None);
        }
        for at in 0..lanes {
            if self.lanes[at].is_none() {
                self.lanes[at] = Some(Lane::new(&self.gpu).map_err(|error| self.failed(&error))?);
            }
        }
        Ok(())
    }

    /// The arena that a rank sends from, or one that it receives into, as this rank's GPU reaches it.
    fn place(&self, rank: usize, lane: Option<usize>) -> Option<Place<'_>> {
        let base = lane.map_or(0, |lane| lane * self.stride);
        match (rank == self.rank, lane) {
            (true, None) => Some((&self.outgoing, base)),
            (true, Some(_)) => Some((&self.landing, base)),
            (false, _) => self.reached.get(&rank).and_then(|reached| reached.as_ref().ok()).map(|buffer| (buffer, base)),
        }
    }

    /// Enqueue a window behind a closed gate.
    pub(super) fn enqueue(&mut self, lane: usize, moved: Moved<'_>) -> Result<(), Stop> {
        let mut own = self.lanes.get_mut(lane).and_then(Option::take);
        let enqueued = match (own.as_mut(), self.place(moved.from, None), self.place(moved.to, Some(moved.lane))) {
            (Some(own), Some((from, source)), Some((into, target))) => {
                let bytes = moved.window.bytes;
                let copied = own.enqueue(*moved.window, |stream, at| stream.copy(into, target + at, from, source + at, bytes));
                copied.map_err(|error| self.failed(&error))
            }
            _ => Err(Stop::Failed(format!("{}→{}: no way between their memory was prepared", moved.from, moved.to))),
        };
        if let Some(place) = self.lanes.get_mut(lane) {
            *place = own;
        }
        enqueued
    }

    /// Let a lane go.
    #[inline]
    pub(super) fn open(&self, lane: usize) {
        if let Some(Some(lane)) = self.lanes.get(lane) {
            lane.open();
        }
    }

    /// What the window of a lane took, once it is done.
    #[inline]
    pub(super) fn elapsed(&self, lane: usize) -> Result<Option<Duration>, Stop> {
        match self.lanes.get(lane) {
            Some(Some(lane)) => lane.elapsed().map_err(|error| self.failed(&error)),
            _ => Ok(None),
        }
    }

    /// Wait for a lane's window; given up at the deadline.
    pub(super) fn wait(&mut self, lane: usize, deadline: Instant) -> Result<(), Stop> {
        let mut rest = Rest::default();
        loop {
            if let Some(time) = self.elapsed(lane)? {
                self.clocked[0] = Some(time);
                return Ok(());
            }
            if let Err(stop) = rest.once(deadline) {
                self.give_up(lane);
                return Err(stop);
            }
        }
    }

    /// Give up what a lane has under way.
    pub(super) fn give_up(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane).and_then(Option::take) {
            lane.give_up();
        }
    }

    /// Overwrite a receive arena where a window lands.
    pub(super) fn clear(&mut self, lane: usize, window: Window) {
        if self.clear_host(window) {
            return;
        }
        let Some(service) = &self.service else { return };
        let base = lane * self.stride;
        let filled =
            (0..window.count).try_for_each(|message| service.fill(&self.landing, base + window.offset(message), window.bytes, BLANK));
        if let Err(error) = filled {
            self.broken = Some(self.tell(&error));
        }
        self.settle("clearing a buffer");
    }

    /// Compare a receive arena, where a window landed, with what `from` sent.
    pub(super) fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String> {
        if let Some(verified) = self.verify_host(window) {
            return verified;
        }
        let payload = Payload::new(self.seed, from);
        for message in 0..window.count {
            let offset = window.offset(message);
            for at in (0..window.bytes).step_by(BOUNCE) {
                let length = BOUNCE.min(window.bytes - at);
                let Some(service) = &self.service else { return Ok(()) };
                let read = service.read(&mut self.bounce, 0, &self.landing, lane * self.stride + offset + at, length);
                if let Err(error) = read {
                    self.broken = Some(self.tell(&error));
                }
                if !self.settle("reading back what has arrived") {
                    // Told at the probe's end, as what it is.
                    return Ok(());
                }
                if let Some(byte) = payload.first_difference(&self.bounce.bytes()[..length], offset + at) {
                    let what = format!("byte {} of {} is not what rank {from} sent", at + byte, window.bytes);
                    if self.doubtful || self.gpu.disturbed() {
                        self.unsure = Some(format!("{what}; a copy that was given up before may have come late"));
                        return Ok(());
                    }
                    return Err(what);
                }
            }
        }
        Ok(())
    }
}

/// Memory to send from and to receive into: where others put, NCCL's own.
fn arenas_of(gpu: &Arc<Gpu>, mover: MoverKind, (from, into): (usize, usize)) -> Result<(Buffer, Buffer, Joint), CudaError> {
    let mut joint = Joint::default();
    if mover != MoverKind::NcclPut {
        return Ok((Buffer::allocate(gpu, from)?, Buffer::allocate(gpu, into)?, joint));
    }
    // The buffer of nothing knows the context.
    let (_, context) = Buffer::allocate(gpu, 0)?.address();
    let mut allocate = |length| joint.allocate(gpu, context, length).map_err(CudaError::Library);
    let (outgoing, landing) = (allocate(from)?, allocate(into)?);
    Ok((outgoing, landing, joint))
}

/// A byte that nobody sends in a row.
pub(super) const BLANK: u8 = 0xa5;
