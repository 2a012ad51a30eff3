//! What binds, in words.

use super::types::{Bottleneck, FlowTime, ResourceLoad, StageTime};
use crate::fabric::ResourceKind;
use crate::plan::Traffic;
use crate::units::{format_count, format_gbps, format_seconds, format_size};

/// Ranks of a chain that are told before it is cut short.
const CHAIN: usize = 6;

/// A stage with less of the whole time than this does not tell what the whole is bound by.
const LARGE: f64 = 0.25;

/// What a finished run tells.
pub(super) struct Told<'a> {
    pub traffic: &'a Traffic,
    pub flows: &'a [FlowTime],
    pub latent: &'a [f64],
    pub causes: &'a [Option<usize>],
    /// the busiest first
    pub resources: &'a [ResourceLoad],
}

impl Told<'_> {
    /// Every stage with what binds it.
    pub fn stages(&self) -> Vec<StageTime> {
        let stage = |number: usize| {
            let begin = self.traffic.flows.partition_point(|flow| flow.stage < number);
            let end = self.traffic.flows.partition_point(|flow| flow.stage <= number);
            let busiest = || {
                let used = self.resources.iter().enumerate().filter(|(_, told)| told.by_stage[number] > 0.0);
                let most = used.clone().map(|(_, told)| told.by_stage[number]).fold(0.0, f64::max);
                let alike = used.filter(|(_, told)| told.by_stage[number] >= most * (1.0 - 1e-9));
                // Of equal ones the one that most flows share; a flow alone on its way is best told by its own link.
                let flows =
                    |told: &ResourceLoad| told.flows.partition_point(|&flow| flow < end) - told.flows.partition_point(|&flow| flow < begin);
                let rank = |told: &ResourceLoad| match flows(told) {
                    0 | 1 => (1, told.resource.kind == ResourceKind::Pair),
                    many => (many, false),
                };
                let best = alike.reduce(|best, one| if rank(one.1) > rank(best.1) { one } else { best });
                best.map(|(at, told)| (at, told.by_stage[number]))
            };
            let flows = &self.flows[begin..end];
            let start = flows.iter().map(|flow| flow.ready).fold(f64::INFINITY, f64::min);
            let last = (begin..end).reduce(|a, b| if self.flows[b].end > self.flows[a].end { b } else { a });
            let Some(last) = last else { return self.empty(number) };
            let chain = self.chain(last, |flow| flow >= begin);
            let latency = chain.iter().map(|&flow| self.latent[flow]).sum();
            let seconds = self.flows[last].end - start;
            let bottleneck = self.binds(busiest(), Some(number), &chain, latency, seconds);
            StageTime { name: self.traffic.stages[number].name.clone(), start, end: self.flows[last].end, latency, bottleneck }
        };
        (0..self.traffic.stages.len()).map(stage).collect()
    }

    /// What binds all of it: the longest stage's where each waits for the one before, if that is a large part; else what most of the
    /// time goes to over all.
    pub fn bottleneck(&self, stages: &[StageTime], seconds: f64) -> Bottleneck {
        let used = stages.iter().filter(|stage| stage.end > stage.start);
        let apart = stages.iter().zip(&self.traffic.stages).skip(1).all(|(time, stage)| stage.waits || time.end <= time.start);
        let longest = used.clone().reduce(|a, b| if b.end - b.start > a.end - a.start { b } else { a });
        match longest {
            Some(longest) if apart && longest.end - longest.start < LARGE * seconds => self.in_turn(stages, longest, seconds),
            Some(longest) if apart => {
                let mut bottleneck = longest.bottleneck.clone();
                if used.count() > 1 {
                    bottleneck.say = format!("{}: {}", longest.name, bottleneck.say);
                }
                bottleneck
            }
            Some(_) => {
                let last = (0..self.flows.len()).reduce(|a, b| if self.flows[b].end > self.flows[a].end { b } else { a });
                let chain = last.map_or_else(Vec::new, |last| self.chain(last, |_| true));
                let latency = chain.iter().map(|&flow| self.latent[flow]).sum();
                self.binds(self.resources.first().map(|told| (0, told.busy)), None, &chain, latency, seconds)
            }
            None => nothing(),
        }
    }

    /// What binds many short stages, one after another: `40 stages, bound by 12 resources in turn; busiest over all: link 7→11,
    /// 155 ms of 275 ms; longest stage: round 25, 9.05 ms`.
    fn in_turn(&self, stages: &[StageTime], longest: &StageTime, seconds: f64) -> Bottleneck {
        let used: Vec<&StageTime> = stages.iter().filter(|stage| stage.end > stage.start).collect();
        let many = format_count(used.len() as u64);
        let tail = format!("longest stage: {}, {}", longest.name, format_seconds(longest.end - longest.start));
        let latency: f64 = used.iter().map(|stage| stage.latency).sum();
        let busiest = self.resources.first();
        let Some(told) = busiest.filter(|told| told.busy > latency) else {
            let say = format!(
                "{many} stages one after another, each with its latency: {} of {}; {tail}",
                format_seconds(latency),
                format_seconds(seconds)
            );
            return Bottleneck { resource: None, seconds: latency, say };
        };
        let mut binding: Vec<Option<usize>> = used.iter().map(|stage| stage.bottleneck.resource).collect();
        binding.sort_unstable();
        binding.dedup();
        let own = binding.iter().flatten().count();
        let busy = format!("{}, {} of {}", told.resource.name, format_seconds(told.busy), format_seconds(seconds));
        let say = match binding[..] {
            [Some(0)] => format!("{many} stages, each bound by {busy}; {tail}"),
            _ if own > 1 => format!("{many} stages, bound by {own} resources in turn; busiest over all: {busy}; {tail}"),
            _ => format!("{many} stages; busiest over all: {busy}; {tail}"),
        };
        Bottleneck { resource: Some(0), seconds: told.busy, say }
    }

    fn empty(&self, number: usize) -> StageTime {
        // As early as it could have been: when the flows before it are complete, as far as it waits for them.
        let begin = self.traffic.flows.partition_point(|flow| flow.stage < number);
        let before = if self.traffic.stages[number].waits { &self.flows[..begin] } else { &[] };
        let at = before.iter().map(|flow| flow.end).fold(0.0, f64::max);
        StageTime { name: self.traffic.stages[number].name.clone(), start: at, end: at, latency: 0.0, bottleneck: nothing() }
    }

    /// The flows that let each other begin, up to one, as far back as they belong to it; ascending.
    fn chain(&self, last: usize, belongs: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut chain = vec![last];
        let mut at = last;
        while let Some(before) = self.causes[at].filter(|&before| belongs(before)) {
            chain.push(before);
            at = before;
        }
        chain.reverse();
        chain
    }

    /// The largest part of a time: the busiest resource, latency, or that flows wait for each other.
    fn binds(&self, busiest: Option<(usize, f64)>, stage: Option<usize>, chain: &[usize], latency: f64, seconds: f64) -> Bottleneck {
        let (resource, busy) = busiest.map_or((None, 0.0), |(at, busy)| (Some(at), busy));
        let waiting = if chain.len() > 1 { seconds - latency - busy } else { 0.0 };
        let ends = |flow: &usize| &self.traffic.flows[*flow];
        if latency >= busy.max(waiting) {
            let Some(told) = chain.last().map(ends) else { return nothing() };
            let messages: u64 = chain.iter().map(|flow| u64::from(ends(flow).messages)).sum();
            let whose = if chain.len() > 1 { format!("{} flows in a row, the last", chain.len()) } else { "the flow".to_owned() };
            let say = format!(
                "latency: {whose} {}→{}, {messages} {} and its copies: {}",
                told.from,
                told.to,
                if messages == 1 { "message" } else { "messages" },
                format_seconds(latency)
            );
            return Bottleneck { resource: None, seconds: latency, say };
        }
        if waiting > busy {
            let way: Vec<String> = chain.iter().take(CHAIN).map(|flow| format!("{}→{}", ends(flow).from, ends(flow).to)).collect();
            let more = if chain.len() > CHAIN { ", ..." } else { "" };
            let say = format!(
                "{} flows that wait for each other ({}{more}): {} of {}; no resource is busy for more than {}",
                chain.len(),
                way.join(", "),
                format_seconds(waiting),
                format_seconds(seconds),
                format_seconds(busy)
            );
            return Bottleneck { resource: None, seconds: waiting, say };
        }
        let Some(at) = resource else { return nothing() };
        Bottleneck { resource: Some(at), seconds: busy, say: self.resource(at, stage, busy) }
    }

    /// `node0 nic out: 8 GiB over 16.4 GB/s = 524 ms`.
    fn resource(&self, at: usize, stage: Option<usize>, busy: f64) -> String {
        let told = &self.resources[at];
        // Every byte of a stage weighs about the same there; what passed in it is known by its flows.
        let within = |flow: &&usize| stage.is_none_or(|stage| self.traffic.flows[**flow].stage == stage);
        let bytes = told.flows.iter().filter(within).fold(0_u64, |sum, &flow| sum.saturating_add(self.traffic.flows[flow].bytes));
        let turns = if told.resource.kind == ResourceKind::TimeShared { " one peer after another," } else { "" };
        format!(
            "{}:{turns} {} over {} GB/s = {}",
            told.resource.name,
            format_size(bytes),
            format_gbps(bytes as f64 / busy),
            format_seconds(busy)
        )
    }
}

fn nothing() -> Bottleneck {
    Bottleneck { resource: None, seconds: 0.0, say: "nothing passes".to_owned() }
}
