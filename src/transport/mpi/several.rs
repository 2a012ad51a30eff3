//! Several transfers of a process at the same time.

use std::collections::VecDeque;
use std::time::Instant;

use super::endpoint::{MpiEndpoint, failed};
use super::raw::{Many, Side};
use crate::transport::copies::Copies;
use crate::transport::{Endpoint, Flow, News, Stop, Together, Window};

/// What a word says besides [`Endpoint::notify`]'s own: that a window of a transfer was acknowledged, or was put.
const ACKNOWLEDGED: u64 = 1 << 63;
const PUT: u64 = 1 << 62;

/// What a process knows of its probe's transfers.
#[derive(Debug, Default)]
pub(super) struct Several {
    flows: Vec<Flow>,
    many: Many,
    copies: Copies,
    /// messages of the window under way into this rank, by transfer
    pending: Vec<usize>,
    /// transfers whose window was put and not yet flushed, in order
    put: VecDeque<usize>,
    /// found, and not told
    arrived: VecDeque<usize>,
}

impl MpiEndpoint {
    /// Look at all messages; transfers whose window is here go to `arrived`.
    fn look(&mut self) -> Result<(), Stop> {
        let Several { many, pending, arrived, .. } = &mut self.several;
        let looked = many.test(&mut self.outgoing, &mut self.landing, |flow, side| {
            if side == Side::In {
                pending[flow] -= 1;
                if pending[flow] == 0 {
                    arrived.push_back(flow);
                }
            }
        });
        looked.map_err(failed)
    }

    fn flow(&self, number: usize) -> Result<Flow, Stop> {
        self.several.flows.get(number).copied().ok_or_else(|| Stop::Failed(format!("this probe has no transfer {number}")))
    }
}

impl Together for MpiEndpoint {
    fn join(&mut self, flows: &[Flow], window: Window) -> Result<(), Stop> {
        let rank = self.rank();
        let own = || flows.iter().filter(|flow| flow.from == rank || flow.to == rank);
        if let Some(flow) = own().find(|flow| flow.twin >= Flow::MOST_TWINS) {
            return Err(Stop::Failed(format!(
                "{} transfers from rank {} to rank {} at the same time are more than the {} that can be told apart",
                flow.twin + 1,
                flow.from,
                flow.to,
                Flow::MOST_TWINS
            )));
        }
        if let Some(flow) = own().find(|flow| flow.lane >= self.lanes) {
            return Err(Stop::Failed(format!("rank {} has no arena for {} transfers at the same time", flow.to, flow.lane + 1)));
        }
        let several = &mut self.several;
        several.flows = flows.to_vec();
        several.pending = vec![0; flows.len()];
        several.copies.begin(flows, rank, |flow| flow.from == rank && flow.is_local());
        // Of a send, the window before may have been acknowledged and still be the library's.
        several.many.reserve(2 * window.count * own().count());
        several.put = VecDeque::with_capacity(own().count());
        several.arrived = VecDeque::with_capacity(own().count());
        Ok(())
    }

    fn post(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        if self.put.is_some() {
            return Ok(());
        }
        let flow = self.flow(flow)?;
        let (tag, base) = (self.data_tag(flow.twin), self.base(flow.lane));
        self.several.pending[flow.number] = window.count;
        for message in 0..window.count {
            let at = base + window.offset(message);
            let many = &mut self.several.many;
            many.receive(&mut self.landing, &self.comm, flow.number, at, window.bytes, flow.from, tag).map_err(failed)?;
        }
        Ok(())
    }

    fn launch(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        let flow = self.flow(flow)?;
        if flow.is_local() {
            self.several.copies.start(flow.number, window);
            return Ok(());
        }
        if let Some(put) = &self.put {
            let base = self.base(flow.lane);
            for message in 0..window.count {
                let at = window.offset(message);
                put.put(&self.outgoing, at, window.bytes, flow.to, base + at).map_err(failed)?;
            }
            self.several.put.push_back(flow.number);
            return Ok(());
        }
        let tag = self.data_tag(flow.twin);
        for message in 0..window.count {
            let at = window.offset(message);
            let many = &mut self.several.many;
            many.send(&mut self.outgoing, &self.comm, flow.number, at, window.bytes, flow.to, tag).map_err(failed)?;
        }
        Ok(())
    }

    fn acknowledge(&mut self, flow: usize, deadline: Instant) -> Result<(), Stop> {
        let flow = self.flow(flow)?;
        self.notify(flow.from, ACKNOWLEDGED | flow.number as u64, deadline)
    }

    fn news(&mut self, deadline: Instant) -> Result<Option<News>, Stop> {
        if let Some(flow) = self.several.arrived.pop_front() {
            return Ok(Some(News::Arrived(flow)));
        }
        // Asked for only while something is awaited; the last thing that a rank hears in a probe is a word, so that none is
        // listened for when it ends.
        self.words.listen(&self.comm, self.word_tag()).map_err(failed)?;
        if let Some((from, word)) = self.words.heard().map_err(failed)? {
            let flow = usize::try_from(word & !(ACKNOWLEDGED | PUT)).unwrap_or(usize::MAX);
            if word & ACKNOWLEDGED != 0 {
                return Ok(Some(News::Acknowledged(flow)));
            }
            if word & PUT != 0 {
                self.put.as_ref().map_or(Ok(()), |put| put.sync().map_err(failed))?;
                return Ok(Some(News::Arrived(flow)));
            }
            return Ok(Some(News::Word { from, word }));
        }
        self.look()?;
        if let Some(flow) = self.several.arrived.pop_front() {
            return Ok(Some(News::Arrived(flow)));
        }
        // All windows of a start were put before the first is waited for.
        if let (Some(put), Some(number)) = (&self.put, self.several.put.pop_front()) {
            let to = self.flow(number)?.to;
            put.flush(to).map_err(failed)?;
            self.notify(to, PUT | number as u64, deadline)?;
        }
        let Some(turn) = self.several.copies.turn() else { return Ok(None) };
        let base = self.base(self.flow(turn.flow)?.lane);
        let (from, to) = (self.outgoing.bytes(), self.landing.bytes());
        for (at, length) in turn.pieces() {
            to[base + at..base + at + length].copy_from_slice(&from[at..at + length]);
        }
        if Instant::now() >= deadline {
            return Err(Stop::Deadline);
        }
        Ok(turn.last.then_some(News::Arrived(turn.flow)))
    }

    fn part(&mut self, deadline: Instant) {
        while !self.several.many.is_empty() && Instant::now() < deadline {
            if self.look().is_err() {
                break;
            }
        }
        self.several.many.give_up(&mut self.outgoing, &mut self.landing);
        self.several.copies.clear();
        self.several.put.clear();
        self.several.arrived.clear();
    }
}
