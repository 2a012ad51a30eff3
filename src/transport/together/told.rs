//! What a rank tells of a repeat.

use std::time::Duration;

use super::{Part, Send};
use crate::sample::Pattern;
use crate::transport::timed::{Outcome, taken_off};
use crate::transport::{Repeat, Together};

impl<E: Together> Part<'_, E> {
    /// The repeat as this rank saw it: each of its sends that is complete.
    pub(super) fn tell(&self, outcome: &mut Outcome, repeat: u32, warmup: bool, windows: u64) {
        for send in &self.sends {
            let Some((seconds, ack_seconds)) = self.seconds(send, windows) else { continue };
            outcome.repeats.push(Repeat {
                flow: u32::try_from(send.flow.number).unwrap_or(u32::MAX),
                repeat,
                warmup,
                messages: windows * u64::from(self.order.window),
                // A transfer cannot take less than the clock can tell.
                seconds: seconds.max(1e-9),
                ack_seconds,
            });
        }
    }

    /// What a send took until its last acknowledgement, or by the clock of what moved it.
    pub(super) fn spent(&self, send: &Send) -> Option<Duration> {
        let done = send.done?;
        send.clocked.or_else(|| Some(done.saturating_duration_since(self.started?)))
    }

    /// The longest of what came in, where all of it was timed by the clock of what moved it.
    fn clocked_in(&self) -> Option<Duration> {
        let all = self.receives.iter().map(|receive| receive.clocked.filter(|_| receive.left == 0));
        all.reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    /// What a send took, and what of that was taken off, seconds.
    fn seconds(&self, send: &Send, windows: u64) -> Option<(f64, f64)> {
        if let (Some(_), Some(clocked)) = (send.done, send.clocked) {
            let both = if self.pattern == Pattern::Relay { clocked.max(self.clocked_in()?) } else { clocked };
            return Some((both.as_secs_f64(), 0.0));
        }
        let (started, done) = (self.started?, send.done?);
        let spent = done.saturating_duration_since(started);
        let off = taken_off(spent, send.half, windows);
        let acknowledged = spent.as_secs_f64() - off;
        if self.pattern != Pattern::Relay {
            return Some((acknowledged, off));
        }
        // Until both are complete; what has arrived by itself needs no answer.
        let received = self.received?.saturating_duration_since(started);
        let both = acknowledged.max(received.as_secs_f64());
        Some((both, spent.max(received).as_secs_f64() - both))
    }

    /// Of a fan's root: its own time, seconds.
    pub(super) fn root_seconds(&self, windows: u64) -> Option<f64> {
        if self.root != Some(self.endpoint.rank()) {
            return None;
        }
        if self.pattern == Pattern::FanOut {
            return self.sends.iter().filter_map(|send| Some(self.seconds(send, windows)?.0)).reduce(f64::max);
        }
        if let Some(clocked) = self.clocked_in() {
            return Some(clocked.as_secs_f64().max(1e-9));
        }
        let spent = self.received?.saturating_duration_since(self.released?);
        Some((spent.as_secs_f64() - taken_off(spent, self.nearest, windows)).max(1e-9))
    }
}
