use std::time::{Duration, Instant};

use super::Control;
use super::driver::Buffer;
use super::hold::Hold;
use super::joint::Half;
use super::several::Several;
use super::side::{Moved, Side, Way};
use super::word::Word;
use crate::sweep::Probe;
use crate::transport::{Endpoint, Setup, Stop, TransportError, Window};

/// A rank whose buffers may lie on a GPU: then words travel by `control`, and bytes by the GPU's copies. With buffers in the host's
/// memory all is `control`'s.
#[derive(Debug)]
pub struct Device<C> {
    pub(super) control: C,
    /// of a sweep on GPUs that this rank takes part in
    pub(super) side: Option<Side>,
    pub(super) several: Several,
    /// of a work on GPUs that this rank takes part in
    pub(super) hold: Option<Hold>,
    /// why this rank moves nothing of a sweep on GPUs, if it does not
    pub(super) absent: Option<String>,
    /// the other ranks of the probe, until they are told that nothing will come of it
    others: Vec<usize>,
    /// the other ranks of this host that the last preparation on GPUs was made with
    pub(super) met: Option<Vec<usize>>,
    /// preparations on GPUs, those that end one included
    pub(super) meetings: u64,
    pub(super) lines: Vec<String>,
    /// `control` moves the bytes of the sweep under way
    pub(super) through: bool,
}

impl<C> Device<C> {
    /// A rank without a GPU so far.
    pub fn new(control: C) -> Self {
        Self {
            control,
            side: None,
            absent: None,
            several: Several::default(),
            others: Vec::new(),
            hold: None,
            met: None,
            meetings: 0,
            lines: Vec::new(),
            through: false,
        }
    }

    /// Leave alone: others may still have this rank's memory mapped, or be gone with theirs, so all stays as it is until the process ends.
    fn abandon(&mut self) {
        if self.met.take().is_none() {
            return;
        }
        if let Some(mut side) = self.side.take() {
            std::mem::take(&mut side.reached).into_values().flatten().for_each(Buffer::leak);
            side.leak();
        }
        if let Some(mut hold) = self.hold.take() {
            std::mem::take(&mut hold.reached).into_values().flatten().for_each(Buffer::leak);
            hold.leak();
        }
    }

    /// What carries its words, for the engine's own needs.
    pub fn control(&mut self) -> &mut C {
        &mut self.control
    }
}

impl<C> Drop for Device<C> {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl<C: Control> Device<C> {
    /// Tell all others of the probe, once, that nothing will come of it since `rank` cannot take part.
    fn pass_on(&mut self, rank: usize) {
        let soon = Instant::now() + Duration::from_millis(100);
        for other in std::mem::take(&mut self.others) {
            let _ = self.control.notify(other, Word::Refused(rank).encode(), soon);
        }
    }

    /// This rank cannot take part in the probe.
    #[cold]
    pub(super) fn refuse(&mut self, stop: Stop) -> Stop {
        self.pass_on(self.control.rank());
        stop
    }

    /// Another rank cannot. Passed on, since each rank listens to those alone whom its part in the probe has it wait for.
    #[cold]
    pub(super) fn refused(&mut self, rank: usize) -> Stop {
        self.pass_on(rank);
        Stop::Refused(rank)
    }
}

impl<C: Control> Endpoint for Device<C> {
    fn rank(&self) -> usize {
        self.control.rank()
    }

    fn prepare(&mut self, setup: &Setup) -> Result<(), TransportError> {
        self.prepare_either(setup)
    }

    fn has_gpu(&self) -> bool {
        self.side.is_some()
    }

    fn arena(&self) -> usize {
        self.side.as_ref().map_or_else(|| self.control.arena(), |side| side.arena)
    }

    fn told(&mut self) -> Vec<String> {
        let mut lines = self.control.told();
        lines.append(&mut self.lines);
        lines
    }

    fn begin(&mut self, probe: &Probe) -> Result<(), Stop> {
        self.control.begin(probe)?;
        let rank = self.control.rank();
        self.others.clear();
        if self.side.is_some() || self.absent.is_some() {
            self.others.extend(probe.ranks().into_iter().filter(|&other| other != rank));
        }
        if let Some(why) = &self.absent {
            let stop = Stop::Failed(why.clone());
            return Err(self.refuse(stop));
        }
        let Some(side) = &mut self.side else { return Ok(()) };
        let flows = probe.flows();
        let ready = match side.refusal(&flows) {
            Some(why) => Err(Stop::Failed(why)),
            None => side.health().and_then(|()| side.ready(flows.len(), 1)).and_then(|()| side.cross(probe.target.pattern())),
        };
        ready.map_err(|stop| self.refuse(stop))
    }

    fn connect(&mut self, probe: &Probe, deadline: Instant) -> Result<(), Stop> {
        self.control.connect(probe, deadline)?;
        self.connect_joint(probe, deadline)
    }

    #[inline]
    fn notify(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        self.control.notify(to, word, deadline)
    }

    #[inline]
    fn await_notice(&mut self, from: usize, deadline: Instant) -> Result<u64, Stop> {
        let word = self.control.await_notice(from, deadline)?;
        match self.side.as_ref().and_then(|_| Word::decode(word)) {
            Some(Word::Refused(rank)) => Err(self.refused(rank)),
            _ => Ok(word),
        }
    }

    fn send(&mut self, to: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = &mut self.side else { return self.control.send(to, window, deadline) };
        if side.way == Way::Through {
            return self.control.send(to, window, deadline);
        }
        if side.way == Way::Joint {
            return self.move_jointly(Half { peer: to, sends: true, lane: 0, window }, deadline);
        }
        if side.way == Way::Push {
            let moved = Moved { from: side.rank, to, lane: 0, window: &window };
            side.enqueue(0, moved)?;
            side.open(0);
            side.wait(0, deadline)?;
        }
        self.control.notify(to, window.count as u64, deadline)
    }

    fn receive(&mut self, from: usize, window: Window, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = &mut self.side else { return self.control.receive(from, window, deadline) };
        if side.way == Way::Through {
            return self.control.receive(from, window, deadline);
        }
        if side.way == Way::Joint {
            return self.move_jointly(Half { peer: from, sends: false, lane: 0, window }, deadline);
        }
        if side.way == Way::Push {
            let told = self.await_notice(from, deadline).map(drop);
            if let (Err(Stop::Deadline), Some(side)) = (&told, &mut self.side) {
                side.doubtful = true;
            }
            return told;
        }
        side.enqueue(0, Moved { from, to: side.rank, lane: 0, window: &window })?;
        let told = self.await_notice(from, deadline);
        let Some(side) = &mut self.side else { return told.map(drop) };
        if told.is_err() {
            side.give_up(0);
            return told.map(drop);
        }
        side.open(0);
        side.wait(0, deadline)
    }

    fn copy(&mut self, window: Window, deadline: Instant) -> Result<(), Stop> {
        let Some(side) = &mut self.side else { return self.control.copy(window, deadline) };
        let rank = side.rank;
        match side.host.across {
            Some(across) => side.enqueue_across(across, window)?,
            None => side.enqueue(0, Moved { from: rank, to: rank, lane: 0, window: &window })?,
        }
        side.open(0);
        side.wait(0, deadline)
    }

    #[inline]
    fn clocked(&self, flow: usize) -> Option<Duration> {
        self.side.as_ref().and_then(|side| side.clocked.get(flow).copied().flatten())
    }

    fn clear(&mut self, lane: usize, window: Window) {
        match &mut self.side {
            Some(side) => side.clear(lane, window),
            None => self.control.clear(lane, window),
        }
    }

    fn verify(&mut self, from: usize, lane: usize, window: Window) -> Result<(), String> {
        match &mut self.side {
            Some(side) => {
                side.doubtful |= self.control.disturbed();
                side.verify(from, lane, window)
            }
            None => self.control.verify(from, lane, window),
        }
    }

    fn ways(&mut self, probe: &Probe) -> Vec<crate::transport::Way> {
        self.joint_ways(probe)
    }

    fn give_up(&mut self) {
        self.pass_on(self.control.rank());
    }

    fn parted(&self) -> bool {
        self.side.as_ref().is_some_and(|side| side.joint.is_given_up())
    }

    fn end(&mut self) -> Result<(), Stop> {
        self.control.end()?;
        let Some(side) = &mut self.side else { return Ok(()) };
        let unsure = side.unsure.take();
        side.health()?;
        unsure.map_or(Ok(()), |why| Err(Stop::Failed(why)))
    }

    fn disturbed(&mut self) -> bool {
        self.control.disturbed()
            | self.side.as_ref().is_some_and(|side| side.gpu.disturbed())
            | self.hold.as_ref().is_some_and(|hold| hold.gpu.disturbed())
    }

    fn close(&mut self) {
        self.control.close();
        self.leave();
    }
}
