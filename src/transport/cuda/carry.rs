//! Works: on the host's memory as the engine carries them.

use std::time::Instant;

use super::Control;
use super::endpoint::Device;
use crate::sample::MoverKind;
use crate::transport::work::{Carrier, Heard, Part};
use crate::transport::{Stop, TransportError};

impl<C: Control + Carrier> Carrier for Device<C> {
    fn rank(&self) -> usize {
        Carrier::rank(&self.control)
    }

    fn load(&mut self, part: &Part, mover: MoverKind) -> Result<(), TransportError> {
        self.control.load(part, mover)
    }

    fn begin(&mut self, part: &Part, id: u64) -> Result<(), Stop> {
        Carrier::begin(&mut self.control, part, id)
    }

    fn one_sided(&self) -> bool {
        self.control.one_sided()
    }

    fn wipe(&mut self) {
        self.control.wipe();
    }

    fn copy(&mut self, from: usize, to: usize, length: usize) {
        Carrier::copy(&mut self.control, from, to, length);
    }

    fn read(&mut self, from: usize, into: &mut [u8]) {
        self.control.read(from, into);
    }

    fn post(&mut self, part: &Part, share: usize, message: usize) -> Result<(), Stop> {
        Carrier::post(&mut self.control, part, share, message)
    }

    fn send(&mut self, part: &Part, share: usize, message: usize) -> Result<(), Stop> {
        Carrier::send(&mut self.control, part, share, message)
    }

    fn tell(&mut self, to: usize, word: u64, deadline: Instant) -> Result<(), Stop> {
        self.control.tell(to, word, deadline)
    }

    fn news(&mut self, part: &Part, deadline: Instant) -> Result<Option<Heard>, Stop> {
        Carrier::news(&mut self.control, part, deadline)
    }

    fn end(&mut self, deadline: Instant) {
        Carrier::end(&mut self.control, deadline);
    }
}
