//! The event simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::loads::Loads;
use super::types::{Epoch, FlowTime, Warning};
use crate::fabric::{Demand, Route, shares};
use crate::plan::Traffic;
use crate::plan::price::{PriceError, Prices, Terms};

/// Rates of single flows that a run works out at most, about: some seconds; in tests less, so that they see it.
const WORK: usize = if cfg!(test) { 500_000 } else { 8_000_000 };

/// Two ends this near are one: sums of equal parts differ by rounding.
const SAME: f64 = 1e-9;

/// What came of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub seconds: f64,
    pub flows: Vec<FlowTime>,
    /// of each flow: latency, packing and unpacking, and waiting for other copies of its ranks; seconds
    pub latent: Vec<f64>,
    /// the flow whose end let it begin
    pub causes: Vec<Option<usize>>,
    pub epochs: Vec<Epoch>,
    pub loads: Loads,
    /// most ends that were looked at as one
    grain: usize,
    /// copies into or out of an arena that have no price
    unpriced: u64,
}

impl Outcome {
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let grain = (self.grain > 1).then(|| Warning {
            kind: "coarse",
            say: format!("too many flows to follow each: up to {} that begin or end one after another were looked at as one", self.grain),
        });
        let copies = (self.unpriced > 0).then(|| Warning {
            kind: "unmeasured",
            say: format!(
                "{} copies into and out of staging memory are priced at nothing: copies within a rank were not measured (--patterns local)",
                self.unpriced
            ),
        });
        grain.into_iter().chain(copies)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// bytes may pass
    Begin,
    /// unpacked
    Done,
}

/// Something that happens at a known time.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: f64,
    kind: Kind,
    flow: usize,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.flow.cmp(&other.flow))
    }
}

/// A flow whose bytes pass.
#[derive(Debug, Clone, Copy)]
struct Moving {
    flow: usize,
    left: f64,
}

struct Run<'a> {
    traffic: &'a Traffic,
    prices: &'a dyn Prices,
    terms: Terms,
    /// of each flow's rate; empty for 1
    factors: &'a [f64],
    keep: bool,
    now: f64,
    /// what each flow still waits for: other flows, and its stage's turn
    pending: Vec<usize>,
    /// `followers[starts[f]..starts[f + 1]]` wait for flow f
    starts: Vec<usize>,
    followers: Vec<usize>,
    /// first flow of each stage, and the end
    stage_begins: Vec<usize>,
    /// stages whose turn has come
    open: usize,
    done: usize,
    /// flows that may begin now
    fresh: Vec<usize>,
    due: BinaryHeap<Reverse<Due>>,
    moving: Vec<Moving>,
    /// `moving` is not that of the rates any more
    stale: bool,
    /// of `moving`, in its order: ways and rates
    routes: Vec<Route>,
    rates: Vec<f64>,
    /// numbers of the resources that each uses
    numbers: Vec<Vec<usize>>,
    /// flows that are known to their resources
    joined: Vec<bool>,
    /// when each rank's last copy ends
    copying: Vec<f64>,
    outcome: Outcome,
}

/// Every flow's times; with `keep` also epochs and loads.
pub(super) fn run(traffic: &Traffic, prices: &dyn Prices, factors: &[f64], keep: bool) -> Result<Outcome, PriceError> {
    let mut run = Run::new(traffic, prices, factors, keep);
    run.open_stages(None);
    loop {
        run.take_due()?;
        if run.moving.is_empty() {
            match run.due.peek() {
                Some(Reverse(next)) => run.now = next.at.max(run.now),
                None => break,
            }
        } else {
            run.step();
        }
    }
    run.outcome.seconds = run.outcome.flows.iter().map(|flow| flow.end).fold(0.0, f64::max);
    Ok(run.outcome)
}

impl<'a> Run<'a> {
    fn new(traffic: &'a Traffic, prices: &'a dyn Prices, factors: &'a [f64], keep: bool) -> Self {
        let n = traffic.flows.len();
        let mut starts = vec![0; n + 1];
        for &before in traffic.flows.iter().flat_map(|flow| &flow.after) {
            starts[before + 1] += 1;
        }
        for flow in 0..n {
            starts[flow + 1] += starts[flow];
        }
        let mut next = starts.clone();
        let mut followers = vec![0; starts[n]];
        for (flow, waits) in traffic.flows.iter().enumerate() {
            for &before in &waits.after {
                followers[next[before]] = flow;
                next[before] += 1;
            }
        }
        let stage_begins = (0..=traffic.stages.len()).map(|stage| traffic.flows.partition_point(|flow| flow.stage < stage)).collect();
        Self {
            traffic,
            prices,
            terms: prices.terms(),
            factors,
            keep,
            now: 0.0,
            pending: traffic.flows.iter().map(|flow| flow.after.len() + 1).collect(),
            starts,
            followers,
            stage_begins,
            open: 0,
            done: 0,
            fresh: Vec::new(),
            due: BinaryHeap::new(),
            moving: Vec::new(),
            stale: false,
            routes: Vec::new(),
            rates: Vec::new(),
            numbers: Vec::new(),
            joined: vec![false; n],
            copying: vec![0.0; traffic.ranks],
            outcome: Outcome {
                seconds: 0.0,
                flows: vec![FlowTime { ready: 0.0, start: 0.0, end: 0.0 }; n],
                latent: vec![0.0; n],
                causes: vec![None; n],
                epochs: Vec::new(),
                loads: Loads::default(),
                grain: 1,
                unpriced: 0,
            },
        }
    }

    /// A stage's turn comes when all flows of earlier stages are complete; where it does not wait, together with the one before.
    fn open_stages(&mut self, cause: Option<usize>) {
        while let Some(stage) = self.traffic.stages.get(self.open) {
            if stage.waits && self.done < self.stage_begins[self.open] {
                break;
            }
            for flow in self.stage_begins[self.open]..self.stage_begins[self.open + 1] {
                self.freed(flow, cause);
            }
            self.open += 1;
        }
    }

    /// A flow has one thing less to wait for.
    fn freed(&mut self, flow: usize, cause: Option<usize>) {
        self.pending[flow] -= 1;
        if self.pending[flow] == 0 {
            self.outcome.causes[flow] = cause;
            self.fresh.push(flow);
        }
    }

    /// All that is due now, and what that lets begin.
    fn take_due(&mut self) -> Result<(), PriceError> {
        loop {
            self.begin()?;
            match self.due.peek() {
                Some(&Reverse(due)) if due.at <= self.now => {
                    self.due.pop();
                    self.happens(due);
                }
                _ => break,
            }
        }
        if std::mem::take(&mut self.stale) { self.rate() } else { Ok(()) }
    }

    fn happens(&mut self, Due { at, kind, flow }: Due) {
        match kind {
            Kind::Begin if self.traffic.flows[flow].bytes > 0 => {
                self.moving.push(Moving { flow, left: self.traffic.flows[flow].bytes as f64 });
                self.stale = true;
            }
            Kind::Begin => self.arrived(flow, at),
            Kind::Done => self.complete(flow, at),
        }
    }

    /// Packing and latency of the flows that may begin.
    fn begin(&mut self) -> Result<(), PriceError> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        let fresh = std::mem::take(&mut self.fresh);
        let demands: Vec<Demand> = fresh.iter().map(|&flow| demand(self.traffic, flow)).collect();
        let routes = self.prices.routes(&demands)?;
        for (&flow, route) in fresh.iter().zip(&routes) {
            let told = &self.traffic.flows[flow];
            let packed = self.copied(told.from, told.staged.packs, told.staged.pack_bytes, self.now);
            let start = packed + self.terms.latency(route.alpha, told.messages);
            self.outcome.flows[flow] = FlowTime { ready: self.now, start, end: start };
            self.outcome.latent[flow] = start - self.now;
            self.due.push(Reverse(Due { at: start, kind: Kind::Begin, flow }));
        }
        Ok(())
    }

    /// When copies within a rank that may begin at a time are done: a rank makes one after another.
    fn copied(&mut self, rank: usize, copies: u32, bytes: u64, at: f64) -> f64 {
        if copies == 0 {
            return at;
        }
        let Some(each) = self.prices.copy(rank, bytes / u64::from(copies)) else {
            self.outcome.unpriced += u64::from(copies);
            return at;
        };
        self.copying[rank] = self.copying[rank].max(at) + each * f64::from(copies);
        self.copying[rank]
    }

    /// All bytes of a flow are through.
    fn arrived(&mut self, flow: usize, at: f64) {
        let told = &self.traffic.flows[flow];
        let end = self.copied(told.to, told.staged.unpacks, told.staged.unpack_bytes, at);
        self.outcome.latent[flow] += end - at;
        self.outcome.flows[flow].end = end;
        if end > at {
            self.due.push(Reverse(Due { at: end, kind: Kind::Done, flow }));
        } else {
            self.complete(flow, at);
        }
    }

    fn complete(&mut self, flow: usize, at: f64) {
        self.outcome.flows[flow].end = at;
        self.done += 1;
        for follower in self.starts[flow]..self.starts[flow + 1] {
            self.freed(self.followers[follower], Some(flow));
        }
        self.open_stages(Some(flow));
    }

    /// Ways and fair shares of the flows that run now.
    fn rate(&mut self) -> Result<(), PriceError> {
        let demands: Vec<Demand> = self.moving.iter().map(|moving| demand(self.traffic, moving.flow)).collect();
        self.routes = self.prices.routes(&demands)?;
        for (route, moving) in self.routes.iter_mut().zip(&self.moving) {
            if let Some(&factor) = self.factors.get(moving.flow) {
                route.flow.cap *= factor;
                route.flow.uses.iter_mut().for_each(|used| used.weight /= factor);
            }
        }
        let flows: Vec<_> = self.routes.iter().map(|route| &route.flow).collect();
        self.rates = shares(&flows).iter().map(|share| share.rate).collect();
        if let Some(at) = self.rates.iter().position(|&rate| rate.is_nan() || rate <= 0.0) {
            let flow = self.moving[at].flow;
            let told = &self.traffic.flows[flow];
            return Err(PriceError::Dead { flow, from: told.from, to: told.to, bytes: told.bytes });
        }
        if !self.keep {
            return Ok(());
        }
        self.numbers.clear();
        for (route, moving) in self.routes.iter().zip(&self.moving) {
            let numbers: Vec<usize> = route.flow.uses.iter().map(|used| self.outcome.loads.number(used.resource)).collect();
            if !std::mem::replace(&mut self.joined[moving.flow], true) {
                for &number in &numbers {
                    self.outcome.loads.joined(number, moving.flow);
                }
            }
            self.numbers.push(numbers);
        }
        Ok(())
    }

    /// How many events to look at as one, so that all of them cost no more than [`WORK`].
    fn grain(&self) -> usize {
        let events = 2 * (self.traffic.flows.len() - self.done);
        let active = self.moving.len();
        let grain = active.saturating_mul(events).div_ceil(WORK);
        if grain <= 1 {
            return 1;
        }
        // Where none hinders another, the end of one changes nothing.
        let free = || self.routes.iter().zip(&self.rates).all(|(route, rate)| *rate >= route.flow.alone().rate * (1.0 - SAME));
        if free() { active } else { grain }
    }

    /// Let bytes pass until something changes.
    fn step(&mut self) {
        let grain = self.grain();
        let lasts: Vec<f64> = self.moving.iter().zip(&self.rates).map(|(moving, rate)| moving.left / rate).collect();
        let reach = if grain > 1 {
            let mut sorted = lasts.clone();
            *sorted.select_nth_unstable_by(grain.min(lasts.len()) - 1, f64::total_cmp).1
        } else {
            lasts.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let mut happened: Vec<Due> = Vec::new();
        while happened.len() < grain
            && let Some(&Reverse(due)) = self.due.peek()
            && due.at - self.now < reach
        {
            self.due.pop();
            happened.push(due);
        }
        let cut = happened.last().filter(|_| happened.len() == grain).map(|due| due.at.max(self.now));
        let until = cut.unwrap_or(self.now + reach);
        let span = until - self.now;
        let ends = |last: f64| last <= if cut.is_some() { span } else { reach * (1.0 + SAME) };
        let ended = self.pass(&lasts, span, ends);
        // What ends at the same time anyway is not looked at coarsely.
        let spread = |times: &mut dyn Iterator<Item = f64>| {
            let first = times.next()?;
            let (low, high) = times.fold((first, first), |(low, high), at| (low.min(at), high.max(at)));
            Some(high - low)
        };
        let apart = |seconds: Option<f64>| seconds.is_some_and(|seconds| seconds > 1e-6 * until);
        if grain > 1 && apart(spread(&mut ended.iter().map(|end| end.1))) {
            self.outcome.grain = self.outcome.grain.max(ended.len());
        }
        if grain > 1 && apart(spread(&mut happened.iter().map(|due| due.at))) {
            self.outcome.grain = self.outcome.grain.max(happened.len());
        }
        if !ended.is_empty() {
            let mut last = lasts.iter();
            self.moving.retain(|_| !last.next().is_some_and(|&last| ends(last)));
            self.stale = true;
        }
        self.now = until;
        for (flow, end) in ended {
            self.arrived(flow, end);
        }
        for due in happened {
            self.happens(due);
        }
    }

    /// What passes in a span, and which flows end when.
    fn pass(&mut self, lasts: &[f64], span: f64, ends: impl Fn(f64) -> bool) -> Vec<(usize, f64)> {
        let mut ended = Vec::new();
        let mut rates = Vec::with_capacity(if self.keep { self.moving.len() } else { 0 });
        for (at, moving) in self.moving.iter_mut().enumerate() {
            let passed = if ends(lasts[at]) { moving.left } else { (self.rates[at] * span).min(moving.left) };
            moving.left -= passed;
            if ends(lasts[at]) {
                ended.push((moving.flow, self.now + lasts[at].min(span)));
            }
            if self.keep {
                let stage = self.traffic.flows[moving.flow].stage;
                for (used, &number) in self.routes[at].flow.uses.iter().zip(&self.numbers[at]) {
                    self.outcome.loads.passed(number, used, stage, passed);
                }
                rates.push((moving.flow, passed / span));
            }
        }
        if self.keep {
            let used = self.outcome.loads.used(span);
            // Of an instant there is no rate.
            if span > 0.0 {
                rates.sort_unstable_by_key(|rate| rate.0);
                self.outcome.epochs.push(Epoch { start: self.now, end: self.now + span, rates, used });
            }
        }
        ended
    }
}

fn demand(traffic: &Traffic, flow: usize) -> Demand {
    let told = &traffic.flows[flow];
    Demand { from: told.from, to: told.to, bytes: told.bytes / u64::from(told.messages) }
}
