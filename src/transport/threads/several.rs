//! Several transfers of a thread at the same time: it copies a piece of each in turn, and looks at counters in between.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::endpoint::{Landing, ThreadEndpoint};
use crate::transport::copies::Copies;
use crate::transport::{Flow, News, Stop, Together, Window};

/// What a thread knows of its probe's transfers.
#[derive(Debug, Default)]
pub(super) struct Several {
    flows: Vec<Flow>,
    copies: Copies,
    /// its transfers from others, and to others, with the windows that have arrived here, or were acknowledged
    incoming: Vec<(Flow, u32)>,
    outgoing: Vec<(Flow, u32)>,
    /// the probe's other ranks, whose words are looked for
    others: Vec<usize>,
}

impl ThreadEndpoint {
    /// The first transfer of these whose counter has gone on.
    fn counted(&self, flows: &[(Flow, u32)], arrived: bool) -> Result<Option<usize>, Stop> {
        for (at, &(flow, count)) in flows.iter().enumerate() {
            let landing = self.landing(flow.to, flow.lane)?;
            let counter = if arrived { &landing.arrived } else { &landing.acknowledged };
            if counter.load(Ordering::Acquire) == Landing::mark(self.probe, count + 1) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Copy what is next in turn; the transfer whose window that completes.
    fn further(&mut self) -> Result<Option<Flow>, Stop> {
        let Some(turn) = self.several.copies.turn() else { return Ok(None) };
        let flow = self.several.flows[turn.flow];
        let mut landing = self.landing(flow.to, flow.lane)?.lock();
        for (at, length) in turn.pieces() {
            landing[at..at + length].copy_from_slice(&self.outgoing[at..at + length]);
        }
        drop(landing);
        Ok(turn.last.then_some(flow))
    }
}

impl Together for ThreadEndpoint {
    fn join(&mut self, flows: &[Flow], _window: Window) -> Result<(), Stop> {
        let rank = self.rank;
        for flow in flows.iter().filter(|flow| flow.from == rank || flow.to == rank) {
            self.landing(flow.to, flow.lane)?;
        }
        let several = &mut self.several;
        several.flows = flows.to_vec();
        several.copies.begin(flows, rank, |flow| flow.from == rank);
        let away = |flow: &&Flow| !flow.is_local();
        several.incoming = flows.iter().filter(away).filter(|flow| flow.to == rank).map(|&flow| (flow, 0)).collect();
        several.outgoing = flows.iter().filter(away).filter(|flow| flow.from == rank).map(|&flow| (flow, 0)).collect();
        several.others = flows.iter().flat_map(|flow| [flow.from, flow.to]).filter(|&other| other != rank).collect();
        several.others.sort_unstable();
        several.others.dedup();
        Ok(())
    }

    fn post(&mut self, _flow: usize, _window: Window) -> Result<(), Stop> {
        Ok(())
    }

    fn launch(&mut self, flow: usize, window: Window) -> Result<(), Stop> {
        self.several.copies.start(flow, window);
        Ok(())
    }

    fn acknowledge(&mut self, flow: usize, _deadline: Instant) -> Result<(), Stop> {
        if let Some(&(flow, count)) = self.several.incoming.iter().find(|(own, _)| own.number == flow) {
            Landing::tell(&self.landing(flow.to, flow.lane)?.acknowledged, self.probe, count);
        }
        Ok(())
    }

    fn news(&mut self, deadline: Instant) -> Result<Option<News>, Stop> {
        if let Some(at) = self.counted(&self.several.incoming, true)? {
            let (flow, count) = &mut self.several.incoming[at];
            *count += 1;
            return Ok(Some(News::Arrived(flow.number)));
        }
        if let Some(at) = self.counted(&self.several.outgoing, false)? {
            let (flow, count) = &mut self.several.outgoing[at];
            *count += 1;
            return Ok(Some(News::Acknowledged(flow.number)));
        }
        for &from in &self.several.others {
            if let Some(word) = self.shared.mailbox(from, self.rank).try_take(self.probe, &mut self.taken[from]) {
                return Ok(Some(News::Word { from, word }));
            }
        }
        let Some(flow) = self.further()? else { return Ok(None) };
        if Instant::now() >= deadline {
            // A rank that is so late says nothing of its copy: the arena may be another probe's by now.
            return Err(Stop::Deadline);
        }
        if flow.is_local() {
            return Ok(Some(News::Arrived(flow.number)));
        }
        // Its own windows go one after another: this one is the one after those acknowledged.
        let count = self.several.outgoing.iter().find(|(own, _)| own.number == flow.number).map_or(0, |&(_, count)| count);
        Landing::tell(&self.landing(flow.to, flow.lane)?.arrived, self.probe, count + 1);
        Ok(None)
    }

    fn part(&mut self, _deadline: Instant) {
        self.several.copies.clear();
    }
}
