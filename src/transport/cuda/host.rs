//! A rank's own copies between its host's memory and its GPU's: page-locked arenas that the GPU's copy engine reads and writes.

use super::driver::{CudaError, Pinned};
use super::side::{BLANK, Side};
use crate::sample::Pattern;
use crate::transport::payload::Payload;
use crate::transport::{Stop, Window};
use crate::units::format_size;

/// Which way a probe copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Across {
    /// out of the host's memory, into the arena that the GPU receives into
    In,
    /// out of the arena that the GPU sends from, into the host's memory
    Out,
}

/// What a rank has of the host's memory for that, each arena as large as those on its GPU and made when a probe first needs it: by the
/// rank itself, which runs near its GPU, so that it lies on that NUMA node.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// what the probe under way does, if it is one of these
    pub(super) across: Option<Across>,
    /// with the rank's payload
    outgoing: Option<Pinned>,
    landing: Option<Pinned>,
}

impl Host {
    /// Where windows land, while the probe under way copies to the host.
    fn landed(&mut self) -> Option<&mut Pinned> {
        self.landing.as_mut().filter(|_| self.across == Some(Across::Out))
    }
}

impl Side {
    /// Get ready for a probe of this pattern.
    pub(super) fn cross(&mut self, pattern: Pattern) -> Result<(), Stop> {
        self.host.across = match pattern {
            Pattern::HostToDevice => Some(Across::In),
            Pattern::DeviceToHost => Some(Across::Out),
            _ => None,
        };
        let Some(across) = self.host.across else { return Ok(()) };
        if self.gpu.disturbed() {
            let name = self.gpu.name();
            return Err(Stop::Failed(format!("{name}: a copy that was given up may still use its memory of the host")));
        }
        let arena = if across == Across::In { &mut self.host.outgoing } else { &mut self.host.landing };
        if arena.is_some() {
            return Ok(());
        }
        let mut made = Pinned::allocate(&self.gpu, self.arena).map_err(|error| self.no_pinned(&error))?;
        match across {
            Across::In => {
                Payload::new(self.seed, self.rank).fill(made.bytes_mut());
                self.host.outgoing = Some(made);
            }
            Across::Out => self.host.landing = Some(made),
        }
        Ok(())
    }

    #[cold]
    fn no_pinned(&self, error: &CudaError) -> Stop {
        let (name, size) = (self.gpu.name(), format_size(self.arena as u64));
        Stop::Failed(format!("{name}: no {size} of page-locked memory of the host: {error}; try a smaller --arena or smaller --sizes"))
    }

    /// Enqueue a window between the host and the GPU behind a closed gate.
    pub(super) fn enqueue_across(&mut self, across: Across, window: Window) -> Result<(), Stop> {
        let Self { lanes, host, outgoing, landing, .. } = self;
        let enqueued = match (lanes.first_mut(), across) {
            (Some(Some(lane)), Across::In) => {
                host.outgoing.as_ref().map(|from| lane.enqueue(window, |stream, at| stream.write(landing, at, from, at, window.bytes)))
            }
            (Some(Some(lane)), Across::Out) => {
                host.landing.as_mut().map(|into| lane.enqueue(window, |stream, at| stream.read(into, at, outgoing, at, window.bytes)))
            }
            _ => None,
        };
        match enqueued {
            Some(enqueued) => enqueued.map_err(|error| self.failed(&error)),
            None => Err(Stop::Failed("no memory of the host was prepared".to_owned())),
        }
    }

    /// Overwrite the host's memory where a window lands; false if it does not land there.
    pub(super) fn clear_host(&mut self, window: Window) -> bool {
        let Some(landing) = self.host.landed() else { return false };
        for message in 0..window.count {
            if let Some(bytes) = part(landing.bytes_mut(), window, message) {
                bytes.fill(BLANK);
            }
        }
        true
    }

    /// Compare the host's memory, where a window landed, with what this rank's GPU held; `None` if it does not land there.
    pub(super) fn verify_host(&mut self, window: Window) -> Option<Result<(), String>> {
        let (payload, rank) = (Payload::new(self.seed, self.rank), self.rank);
        let landing = self.host.landed()?.bytes_mut();
        for message in 0..window.count {
            let got = part(landing, window, message)?;
            if let Some(byte) = payload.first_difference(got, window.offset(message)) {
                return Some(Err(format!("byte {byte} of {} is not what the GPU of rank {rank} held", window.bytes)));
            }
        }
        Some(Ok(()))
    }
}

/// Where a message of a window lies in an arena.
fn part(arena: &mut [u8], window: Window, message: usize) -> Option<&mut [u8]> {
    let at = window.offset(message);
    arena.get_mut(at..at + window.bytes)
}
