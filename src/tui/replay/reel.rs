//! A plan and its replay, with what a frame looks up in them.

use std::collections::HashMap;

use super::strip::Strip;
use crate::plan::{Execution, Replay, StageTime, Traffic};

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
    /// of each resource
    loads: Vec<Loaders>,
    /// of each lane whether it loads what binds
    binding: Vec<bool>,
    /// of each epoch (lane, bytes per second) of those that pass bytes; ascending by lane
    rates: Vec<Vec<(u32, f64)>>,
    /// when a flow begins or ends, or passes bytes at another rate; ascending, from 0 to the end
    beats: Vec<f64>,
    /// ends of all epochs are not after this
    latest: f64,
    /// of all flows
    bytes: u64,
    tightest: f64,
}

/// Lanes that load a resource.
#[derive(Debug, Default)]
struct Loaders {
    /// with their bytes, most first
    lanes: Vec<(u32, u64)>,
    bytes: u64,
}

/// Two times this near are one step: sums of equal parts differ by rounding.
const SAME: f64 = 1e-9;

impl Reel {
    /// What frames look up. Rates of flows become those of lanes: [`Epoch::rates`] are empty afterwards.
    pub fn new(traffic: Traffic, mut replay: Replay) -> Self {
        let strips = strips(&replay);
        let (lanes, lane_of) = lanes(&traffic, &replay);
        let loads: Vec<Loaders> = replay.resources.iter().map(|resource| loads(&traffic, &lane_of, &resource.flows)).collect();
        let mut binding = vec![false; lanes.len()];
        for &(lane, _) in replay.bottleneck.resource.and_then(|number| loads.get(number)).map_or(&[][..], |loads| &loads.lanes) {
            binding[lane as usize] = true;
        }
        let latest = replay.epochs.last().map_or(0.0, |epoch| epoch.end).max(replay.seconds);
        let beats = beats(&replay, latest);
        let rates = replay.epochs.iter_mut().map(|epoch| by_lane(std::mem::take(&mut epoch.rates), &lane_of)).collect();
        let tightest = tightest(&replay, &strips);
        let bytes = traffic.bytes();
        Self { traffic, replay, strips, lanes, loads, binding, rates, beats, latest, bytes, tightest }
    }

    /// Until everything is complete, seconds.
    pub const fn end(&self) -> f64 {
        self.latest
    }

    /// Number of the epoch at a time; at the very end, of the last one.
    fn number(&self, time: f64) -> Option<usize> {
        let epochs = &self.replay.epochs;
        let at = if time >= self.latest { epochs.len().checked_sub(1)? } else { epochs.partition_point(|epoch| epoch.end <= time) };
        epochs.get(at).filter(|epoch| epoch.start <= time).map(|_| at)
    }

    /// Times between which no flow begins or ends.
    pub const fn steps(&self) -> usize {
        self.beats.len().saturating_sub(1)
    }

    /// Number of the step at a time, from 1.
    pub fn step(&self, time: f64) -> usize {
        self.beats.partition_point(|beat| *beat <= time).min(self.steps())
    }

    /// When a flow next begins or ends, or when one did before.
    pub fn beside(&self, time: f64, forward: bool) -> f64 {
        if forward {
            self.beats.get(self.beats.partition_point(|beat| *beat <= time)).copied().unwrap_or(self.latest)
        } else {
            let before = self.beats.partition_point(|beat| *beat < time);
            before.checked_sub(1).and_then(|at| self.beats.get(at)).copied().unwrap_or(0.0)
        }
    }

    /// Bytes per second of each lane that passes bytes at a time; ascending by lane.
    pub fn rates(&self, time: f64) -> &[(u32, f64)] {
        self.number(time).and_then(|at| self.rates.get(at)).map_or(&[], Vec::as_slice)
    }

    /// Bytes per second of a lane at a time, if any pass.
    pub fn rate(&self, lane: u32, time: f64) -> Option<f64> {
        let rates = self.rates(time);
        rates.binary_search_by_key(&lane, |rate| rate.0).ok().and_then(|at| rates.get(at)).map(|rate| rate.1)
    }

    /// Bytes of all flows.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How full a resource is at a time.
    pub fn used(&self, resource: usize, time: f64) -> f64 {
        let used = self.number(time).and_then(|at| self.replay.epochs.get(at)).map_or(&[][..], |epoch| &epoch.used);
        used.binary_search_by_key(&resource, |&(number, _)| number).ok().and_then(|at| used.get(at)).map_or(0.0, |&(_, share)| share)
    }

    /// Lanes that load a resource with their bytes, most first.
    pub fn loaders(&self, resource: usize) -> &[(u32, u64)] {
        self.loads.get(resource).map_or(&[], |loads| &loads.lanes)
    }

    /// Bytes of all of them.
    pub fn loaded(&self, resource: usize) -> u64 {
        self.loads.get(resource).map_or(0, |loads| loads.bytes)
    }

    /// True if a lane loads what binds.
    pub fn binds(&self, lane: u32) -> bool {
        self.binding.get(lane as usize).copied().unwrap_or(false)
    }

    /// The stage that counts at a time: of those under way the last one that began.
    pub fn stage(&self, time: f64) -> Option<(usize, &StageTime)> {
        let stages = &self.replay.stages;
        let under_way = |stage: &StageTime| stage.start <= time && (time < stage.end || time >= self.latest && stage.end >= self.latest);
        let after = stages.iter().rposition(under_way).or_else(|| stages.iter().rposition(|stage| stage.start <= time))?;
        Some((after, stages.get(after)?))
    }

    /// When the bottleneck is fullest for the longest; where none is, the middle of the longest stage.
    pub const fn tightest(&self) -> f64 {
        self.tightest
    }

    /// The last run of this plan.
    pub fn run<'a>(&self, executions: &'a [Execution]) -> Option<&'a Execution> {
        executions.iter().rev().find(|execution| execution.name == self.traffic.name)
    }
}

fn tightest(replay: &Replay, strips: &[Strip]) -> f64 {
    let full = replay.bottleneck.resource.and_then(|number| strips.get(number)?.fullest());
    let longest = || replay.stages.iter().max_by(|a, b| (a.end - a.start).total_cmp(&(b.end - b.start)));
    full.or_else(|| longest().map(|stage| f64::midpoint(stage.start, stage.end))).unwrap_or(0.0)
}

fn by_lane(mut rates: Vec<(usize, f64)>, lane_of: &[u32]) -> Vec<(u32, f64)> {
    let lane = |flow: usize| lane_of.get(flow).copied();
    rates.sort_by_key(|&(flow, _)| lane(flow));
    let mut sums: Vec<(u32, f64)> = Vec::new();
    for (flow, rate) in rates {
        let Some(lane) = lane(flow) else { continue };
        match sums.last_mut() {
            Some(last) if last.0 == lane => last.1 += rate,
            _ => sums.push((lane, rate)),
        }
    }
    sums
}

/// When flows become ready, pass bytes, and are complete; and when rates change otherwise.
fn beats(replay: &Replay, latest: f64) -> Vec<f64> {
    let flows = replay.flows.iter().flat_map(|flow| [flow.ready, flow.start, flow.end]);
    let epochs = replay.epochs.iter().flat_map(|epoch| [epoch.start, epoch.end]);
    let mut beats: Vec<f64> = [0.0, latest].into_iter().chain(flows).chain(epochs).filter(|time| (0.0..=latest).contains(time)).collect();
    beats.sort_by(f64::total_cmp);
    // Of those that are one the last, when all of it has happened; the beginning stays.
    let near = SAME * latest;
    beats.reverse();
    beats.dedup_by(|earlier, later| *later - *earlier <= near);
    beats.reverse();
    if let Some(first) = beats.first_mut().filter(|first| **first <= near) {
        *first = 0.0;
    }
    beats
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

fn loads(traffic: &Traffic, lane_of: &[u32], flows: &[usize]) -> Loaders {
    let mut bytes: HashMap<u32, u64> = HashMap::new();
    for &flow in flows {
        if let (Some(&lane), Some(flow)) = (lane_of.get(flow), traffic.flows.get(flow)) {
            let sum = bytes.entry(lane).or_default();
            *sum = sum.saturating_add(flow.bytes);
        }
    }
    let mut lanes: Vec<(u32, u64)> = bytes.into_iter().collect();
    lanes.sort_by_key(|&(lane, bytes)| (std::cmp::Reverse(bytes), lane));
    let bytes = lanes.iter().fold(0, |sum: u64, lane| sum.saturating_add(lane.1));
    Loaders { lanes, bytes }
}
