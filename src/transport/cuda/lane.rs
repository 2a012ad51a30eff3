use std::sync::Arc;
use std::time::Duration;

use super::driver::{CudaError, Gate, Gpu, Stream, Timer};
use crate::transport::{Stop, Window};

/// What one transfer needs of a GPU: a stream of its own, so that several run at the same time, a gate and a timer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) stream: Stream,
    timer: Timer,
    gate: Gate,
}

/// Pieces of work of a window besides its messages: the gate's, and two time stamps.
const BESIDES: usize = 3;

impl Lane {
    pub(super) fn new(gpu: &Arc<Gpu>) -> Result<Self, CudaError> {
        Ok(Self { stream: Stream::new(gpu)?, timer: Timer::new(gpu)?, gate: Gate::new(gpu)? })
    }

    /// True if the stream itself waits at the gate.
    pub(super) const fn is_quick(&self) -> bool {
        self.gate.is_quick()
    }

    /// Enqueue a window behind the closed gate, `copy` each message by where it lies in its arena. Of a window with more messages than
    /// wait behind a gate, the first ones go when that many are there.
    pub(super) fn enqueue(
        &mut self,
        window: Window,
        mut copy: impl FnMut(&Stream, usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let Self { stream, timer, gate } = self;
        gate.close(stream)?;
        timer.begin(stream)?;
        for message in 0..window.count {
            if message == Gate::MOST - BESIDES {
                gate.open();
            }
            copy(stream, window.offset(message))?;
        }
        timer.end(stream)
    }

    /// Enqueue a library's work behind the closed gate, which opens before it where so much does not wait: the driver would wait for
    /// the gate, too.
    pub(super) fn enqueue_work(
        &mut self,
        waits: bool,
        work: impl FnOnce(super::nccl::Stream) -> Result<(), Stop>,
        tell: impl Fn(&CudaError) -> Stop,
    ) -> Result<(), Stop> {
        let Self { stream, timer, gate } = self;
        gate.close(stream).and_then(|()| timer.begin(stream)).map_err(|error| tell(&error))?;
        if !waits {
            gate.open();
        }
        work(stream.raw().cast())?;
        timer.end(stream).map_err(|error| tell(&error))
    }

    /// Let what is enqueued go.
    #[inline]
    pub(super) fn open(&self) {
        self.gate.open();
    }

    /// What the window took, once all of it is done.
    #[inline]
    pub(super) fn elapsed(&self) -> Result<Option<Duration>, CudaError> {
        self.timer.elapsed()
    }

    /// Give up what is under way.
    pub(super) fn give_up(self) {
        let Self { stream, timer, gate } = self;
        gate.open();
        // First of all: what it may use is not freed from then on.
        stream.give_up();
        drop((timer, gate));
    }
}
