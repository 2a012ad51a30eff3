//! A plan and its replay, with what a frame looks up in them.

use std::collections::HashMap;

use super::strip::Strip;
use crate::plan::{Epoch, Execution, Replay, StageTime, Traffic};

/// What one rank sends to another, all its flows together.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
    pub flows: usize,
    /// when bytes pass
    pub passes: Strip,
    /// when something is on its way: from ready to complete
    pub runs: Strip,
}

/// All of it. Made once; frames only look things up.
#[derive(Debug)]
pub struct Reel {
    pub traffic: Traffic,
    pub replay: Replay,
    /// how full each resource is, in the order of [`Replay::resources`]
    pub strips: Vec<Strip>,
    /// in the order in which they begin
    pub lanes: Vec<Lane>,
    /// the lane of each flow
    lane_of: Vec<u32>,
    /// of each resource the lanes that load it with their bytes, most first
    loads: Vec<Vec<(u32, u64)>>,
    /// ends of all epochs are not after this
    latest: f64,
}

impl Reel {
    pub fn new(traffic: Traffic, replay: Replay) -> Self {
        let strips = strips(&replay);
        let (lanes, lane_of) = lanes(&traffic, &replay);
        let loads = replay.resources.iter().map(|resource| loads(&traffic, &lane_of, &resource.flows)).collect();
        let latest = replay.epochs.last().map_or(0.0, |epoch| epoch.end).max(replay.seconds);
        Self { traffic, replay, strips, lanes, lane_of, loads, latest }
    }

    /// Until everything is complete, seconds.
    pub const fn end(&self) -> f64 {
        self.latest
    }

    /// Number of the epoch at a time, or of the next one.
    fn number(&self, time: f64) -> usize {
        self.replay.epochs.partition_point(|epoch| epoch.end <= time)
    }

    /// What goes on at a time; at the very end, what went on last.
    pub fn epoch(&self, time: f64) -> Option<&Epoch> {
        let epochs = &self.replay.epochs;
        let epoch = if time >= self.latest { epochs.last() } else { epochs.get(self.number(time)) };
        epoch.filter(|epoch| epoch.start <= time)
    }

    /// Number of the epoch at a time, from 1.
    pub fn step(&self, time: f64) -> usize {
        (self.number(time) + 1).min(self.replay.epochs.len())
    }

    /// The beginning of the next epoch, or of this or the last one.
    pub fn beside(&self, time: f64, forward: bool) -> f64 {
        let epochs = &self.replay.epochs;
        if forward {
            let next = epochs.partition_point(|epoch| epoch.start <= time);
            epochs.get(next).map_or(self.latest, |epoch| epoch.start)
        } else {
            let before = epochs.partition_point(|epoch| epoch.start < time);
            before.checked_sub(1).and_then(|at| epochs.get(at)).map_or(0.0, |epoch| epoch.start)
        }
    }

    /// Bytes per second of each lane at a time.
    pub fn rates(&self, time: f64) -> HashMap<usize, f64> {
        let mut rates = HashMap::new();
        for &(flow, rate) in self.epoch(time).map_or(&[][..], |epoch| &epoch.rates) {
            if let Some(&lane) = self.lane_of.get(flow) {
                *rates.entry(lane as usize).or_default() += rate;
            }
        }
        rates
    }

    /// How full a resource is at a time.
    pub fn used(&self, resource: usize, time: f64) -> f64 {
        let used = self.epoch(time).map_or(&[][..], |epoch| &epoch.used);
        used.binary_search_by_key(&resource, |&(number, _)| number).ok().and_then(|at| used.get(at)).map_or(0.0, |&(_, share)| share)
    }

    /// Lanes that load a resource with their bytes, most first.
    pub fn loaders(&self, resource: usize) -> &[(u32, u64)] {
        self.loads.get(resource).map_or(&[], Vec::as_slice)
    }

    /// The stage that counts at a time: of those under way the last one that began.
    pub fn stage(&self, time: f64) -> Option<(usize, &StageTime)> {
        let stages = &self.replay.stages;
        let under_way = |stage: &StageTime| stage.start <= time && (time < stage.end || time >= self.latest && stage.end >= self.latest);
        let after = stages.iter().rposition(under_way).or_else(|| stages.iter().rposition(|stage| stage.start <= time))?;
        Some((after, stages.get(after)?))
    }

    /// When the bottleneck is fullest for the longest; where none is, the middle of the longest stage.
    pub fn tightest(&self) -> f64 {
        let full = self.replay.bottleneck.resource.and_then(|number| self.strips.get(number)?.fullest());
        let longest = || self.replay.stages.iter().max_by(|a, b| (a.end - a.start).total_cmp(&(b.end - b.start)));
        full.or_else(|| longest().map(|stage| f64::midpoint(stage.start, stage.end))).unwrap_or(0.0)
    }

    /// The most that a lane ever carries, bytes per second.
    pub fn most(&self, time: f64) -> f64 {
        self.rates(time).into_values().fold(0.0, f64::max)
    }

    /// The last run of this plan.
    pub fn run<'a>(&self, executions: &'a [Execution]) -> Option<&'a Execution> {
        executions.iter().rev().find(|execution| execution.name == self.traffic.name)
    }
}

fn strips(replay: &Replay) -> Vec<Strip> {
    let mut strips = vec![Strip::default(); replay.resources.len()];
    for epoch in &replay.epochs {
        for &(number, share) in &epoch.used {
            if let Some(strip) = strips.get_mut(number) {
                strip.push(epoch.start, epoch.end, share.min(1.0));
            }
        }
    }
    strips
}

/// Flows by their ranks, and the lane of each flow.
fn lanes(traffic: &Traffic, replay: &Replay) -> (Vec<Lane>, Vec<u32>) {
    let mut order: Vec<usize> = (0..traffic.flows.len().min(replay.flows.len())).collect();
    order.sort_by(|&a, &b| replay.flows[a].ready.total_cmp(&replay.flows[b].ready));
    let mut lanes: Vec<Lane> = Vec::new();
    let mut lane_of = vec![0_u32; traffic.flows.len()];
    let mut known: HashMap<(usize, usize), usize> = HashMap::new();
    // In order of readiness a strip of runs grows at its end; bytes may begin to pass in another order.
    let mut passing: Vec<Vec<(f64, f64)>> = Vec::new();
    for number in order {
        let (flow, time) = (&traffic.flows[number], replay.flows[number]);
        let at = *known.entry((flow.from, flow.to)).or_insert_with(|| {
            let none = (Strip::default(), Strip::default());
            lanes.push(Lane { from: flow.from, to: flow.to, bytes: 0, flows: 0, passes: none.0, runs: none.1 });
            passing.push(Vec::new());
            lanes.len() - 1
        });
        let lane = &mut lanes[at];
        lane.bytes = lane.bytes.saturating_add(flow.bytes);
        lane.flows += 1;
        lane.runs.push(time.ready, time.end, 1.0);
        passing[at].push((time.start, time.end));
        lane_of[number] = at as u32;
    }
    for (lane, mut times) in lanes.iter_mut().zip(passing) {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (start, end) in times {
            lane.passes.push(start, end, 1.0);
        }
    }
    (lanes, lane_of)
}

fn loads(traffic: &Traffic, lane_of: &[u32], flows: &[usize]) -> Vec<(u32, u64)> {
    let mut bytes: HashMap<u32, u64> = HashMap::new();
    for &flow in flows {
        if let (Some(&lane), Some(flow)) = (lane_of.get(flow), traffic.flows.get(flow)) {
            let sum = bytes.entry(lane).or_default();
            *sum = sum.saturating_add(flow.bytes);
        }
    }
    let mut loads: Vec<(u32, u64)> = bytes.into_iter().collect();
    loads.sort_by_key(|&(lane, bytes)| (std::cmp::Reverse(bytes), lane));
    loads
}
