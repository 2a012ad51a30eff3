use proptest::prelude::*;

use super::*;
use crate::fabric::{Demand, Resource, ResourceId, ResourceKind, Route, Use};
use crate::plan::price::Terms;
use crate::plan::{Flow, Stage, Staged};

/// Prices made by hand: one latency, pair rates, a capacity out of and into each rank, receivers that serve in turns.
#[derive(Clone)]
struct Made {
    world: usize,
    alpha: f64,
    pair: fn(usize, usize) -> f64,
    out: f64,
    into: f64,
    /// concurrency by number of senders at once
    turns: Option<fn(usize) -> f64>,
    copy: Option<f64>,
    half: f64,
    terms: Terms,
}

fn made(world: usize) -> Made {
    Made {
        world,
        alpha: 0.0,
        pair: |_, _| 10.0,
        out: f64::INFINITY,
        into: f64::INFINITY,
        turns: None,
        copy: Some(0.0),
        half: 0.0,
        terms: Terms::default(),
    }
}

impl Prices for Made {
    fn world(&self) -> usize {
        self.world
    }

    fn routes(&self, together: &[Demand]) -> Result<Vec<Route>, PriceError> {
        let route = |demand: &Demand| {
            let &Demand { from, to, .. } = demand;
            let rate = (self.pair)(from, to);
            let use_of = |number: usize, weight: f64| Use { resource: ResourceId(number as u64), weight };
            let mut uses = vec![use_of(1000 + from * self.world + to, 1.0 / rate)];
            uses.extend(Some(use_of(from, 1.0 / self.out)).filter(|_| self.out.is_finite()));
            uses.extend(Some(use_of(100 + to, 1.0 / self.into)).filter(|_| self.into.is_finite()));
            if let Some(turns) = self.turns {
                let width = together.iter().filter(|other| other.to == to).count();
                uses.push(use_of(200 + to, 1.0 / (rate * turns(width))));
            }
            if rate > 0.0 { uses } else { Vec::new() }
        };
        let each = |demand: &Demand| Route {
            alpha: self.alpha,
            flow: crate::fabric::Flow { cap: (self.pair)(demand.from, demand.to), uses: route(demand) },
        };
        Ok(together.iter().map(each).collect())
    }

    fn resource(&self, id: ResourceId) -> Option<Resource> {
        let number = usize::try_from(id.0).ok()?;
        let told = |name: String, kind| Some(Resource { name, kind, capacity: 0.0 });
        match number {
            0..100 => told(format!("out of rank {number}"), ResourceKind::Fixed),
            100..200 => told(format!("into rank {}", number - 100), ResourceKind::Fixed),
            200..1000 => told(format!("receiving of rank {}", number - 200), ResourceKind::TimeShared),
            _ => told(format!("link {}→{}", (number - 1000) / self.world, (number - 1000) % self.world), ResourceKind::Pair),
        }
    }

    fn copy(&self, _rank: usize, bytes: u64) -> Option<f64> {
        self.copy.map(|per_byte| per_byte * bytes as f64)
    }

    fn uncertainty(&self, _from: usize, _to: usize, _bytes: u64) -> f64 {
        self.half
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    fn warnings(&self, _traffic: &Traffic) -> Vec<Warning> {
        Vec::new()
    }
}

fn flow(stage: usize, from: usize, to: usize, bytes: u64, after: &[usize]) -> Flow {
    Flow { stage, from, to, bytes, messages: 1, after: after.to_vec(), offset: None, staged: Staged::default() }
}

fn traffic(ranks: usize, waits: &[bool], flows: Vec<Flow>) -> Traffic {
    let stages = waits.iter().enumerate().map(|(at, &waits)| Stage { name: format!("stage {at}"), waits }).collect();
    Traffic { name: "t".to_owned(), ranks, stages, flows, ..Traffic::default() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1e-9)
}

fn ends(replay: &Replay) -> Vec<f64> {
    replay.flows.iter().map(|flow| flow.end).collect()
}

#[test]
fn a_flow_alone_takes_its_latency_and_its_bytes() {
    let prices = Made { alpha: 0.5, ..made(2) };
    let mut traffic = traffic(2, &[true], vec![flow(0, 0, 1, 100, &[])]);
    let told = replay(&traffic, &prices).unwrap();
    assert_eq!(told.flows[0], FlowTime { ready: 0.0, start: 0.5, end: 10.5 });
    assert_eq!((told.seconds, told.interval), (10.5, Interval { low: 10.5, high: 10.5 }));
    assert_eq!(told.epochs.len(), 1);
    assert_eq!((told.epochs[0].start, told.epochs[0].end, &told.epochs[0].rates), (0.5, 10.5, &vec![(0, 10.0)]));
    assert_eq!(told.bottleneck.say, "link 0→1: 100 B over 1.0e-8 GB/s = 10.0 s");
    assert!((told.stages[0].latency - 0.5).abs() < 1e-12);
    // Four messages have four latencies, unless it is known what a further one costs.
    traffic.flows[0].messages = 4;
    assert!(close(replay(&traffic, &prices).unwrap().seconds, 12.0));
    let prices = Made { terms: Terms { round: Some(0.125), chunk: 0.25 }, ..prices };
    traffic.chunks = 8;
    let told = replay(&traffic, &prices).unwrap();
    assert!(close(told.seconds, 10.875) && close(told.prepare, 2.0), "{told:?}");
}

#[test]
fn flows_into_one_rank_share_it_and_what_one_leaves_the_other_takes() {
    // 60 and 120 bytes at half of 12 each: the first ends at 10 s, the other has 60 left at its own 10.
    let prices = Made { into: 12.0, ..made(3) };
    let told = replay(&traffic(3, &[true], vec![flow(0, 1, 0, 60, &[]), flow(0, 2, 0, 120, &[])]), &prices).unwrap();
    assert!(close(told.flows[0].end, 10.0) && close(told.seconds, 16.0), "{told:?}");
    assert_eq!(told.resources[0].resource.name, "into rank 0");
    assert!(close(told.resources[0].busy, 15.0) && close(told.resources[0].bytes, 180.0));
    assert_eq!(told.resources[0].flows, [0, 1]);
    assert_eq!(told.resources[0].by_stage, [told.resources[0].busy]);
    assert_eq!(told.bottleneck.say, "into rank 0: 180 B over 1.2e-8 GB/s = 15.0 s");
    let used: Vec<f64> = told.epochs.iter().map(|epoch| epoch.used[0].1).collect();
    assert!(close(used[0], 1.0) && close(used[1], 10.0 / 12.0), "{used:?}");
}

#[test]
fn a_receiver_that_serves_in_turns_is_as_wide_as_flows_run_there() {
    // Pair rates 10 and 5, concurrency 1 for one and 1.5 for two: 30 B each = (3 + 6)/1.5 s, both with the same rate until 30/5 s.
    let prices =
        Made { pair: |from, _| if from == 1 { 10.0 } else { 5.0 }, turns: Some(|width| if width > 1 { 1.5 } else { 1.0 }), ..made(3) };
    let told = replay(&traffic(3, &[true], vec![flow(0, 1, 0, 30, &[]), flow(0, 2, 0, 30, &[])]), &prices).unwrap();
    assert!(close(told.seconds, 6.0), "{told:?}");
    let told = replay(&traffic(3, &[true], vec![flow(0, 1, 0, 15, &[]), flow(0, 2, 0, 45, &[])]), &prices).unwrap();
    // Together 5 B/s each until 3 s; then the second alone, at its own 5.
    assert!(close(told.flows[0].end, 3.0) && close(told.seconds, 9.0), "{told:?}");
    assert!(
        told.bottleneck.say.starts_with("receiving of rank 0: one peer after another, ") || told.bottleneck.say.starts_with("link 2→0")
    );
}

#[test]
fn stages_wait_or_do_not() {
    let flows = || vec![flow(0, 0, 1, 100, &[]), flow(1, 1, 2, 50, &[]), flow(2, 2, 3, 10, &[0])];
    let waiting = replay(&traffic(4, &[true, true, true], flows()), &made(4)).unwrap();
    assert_eq!(ends(&waiting), [10.0, 15.0, 16.0]);
    assert_eq!((waiting.stages[1].start, waiting.stages[1].end), (10.0, 15.0));
    assert_eq!(waiting.bottleneck.say, "stage 0: link 0→1: 100 B over 1.0e-8 GB/s = 10.0 s");
    let free = replay(&traffic(4, &[true, false, false], flows()), &made(4)).unwrap();
    assert_eq!(ends(&free), [10.0, 5.0, 11.0]);
    // What does not wait has its turn with the stage before it, not before.
    let behind = replay(&traffic(4, &[true, true, false], flows()), &made(4)).unwrap();
    assert_eq!(ends(&behind), [10.0, 15.0, 11.0]);
    // A stage without flows ends at once.
    let empty = replay(&traffic(4, &[true, true, true], vec![flow(0, 0, 1, 10, &[]), flow(2, 0, 1, 10, &[])]), &made(4)).unwrap();
    assert_eq!((empty.seconds, empty.stages[1].start, empty.stages[1].end), (2.0, 1.0, 1.0));
    assert_eq!(replay(&Traffic::default(), &made(1)).unwrap().bottleneck.say, "nothing passes");
}

#[test]
fn packing_and_unpacking_come_one_after_another_within_a_rank() {
    // Rank 0 packs for 1, then for 2 (0.1 s a byte); both send at once; each unpacks.
    let staged = Staged { packs: 2, pack_bytes: 20, unpacks: 1, unpack_bytes: 20 };
    let flows = vec![Flow { staged, ..flow(0, 0, 1, 20, &[]) }, Flow { staged, ..flow(0, 0, 2, 20, &[]) }];
    let prices = Made { copy: Some(0.1), ..made(3) };
    let told = replay(&traffic(3, &[true], flows.clone()), &prices).unwrap();
    assert!(close(told.flows[0].start, 2.0) && close(told.flows[1].start, 4.0));
    assert!(close(told.flows[0].end, 6.0) && close(told.flows[1].end, 8.0), "{told:?}");
    assert_eq!(told.bottleneck.resource, None);
    assert!(told.bottleneck.say.starts_with("latency: the flow 0→2, 1 message and its copies: 6.00 s"), "{}", told.bottleneck.say);
    // Without a price of copies that is said.
    let told = replay(&traffic(3, &[true], flows), &Made { copy: None, ..prices }).unwrap();
    assert!(close(told.seconds, 2.0) && told.warnings[0].say.starts_with("6 copies into and out of"), "{told:?}");
}

#[test]
fn a_chain_is_told_as_one_and_a_full_pipeline_by_its_resource() {
    let pipeline = |slices: usize, hops: usize| {
        let number = |slice: usize, hop: usize| slice * hops + hop;
        let one = |slice: usize, hop: usize| {
            let after: Vec<usize> =
                [(hop > 0).then(|| number(slice, hop - 1)), (slice > 0).then(|| number(slice - 1, hop))].into_iter().flatten().collect();
            flow(0, hop, hop + 1, 100, &after)
        };
        let flows = (0..slices).flat_map(|slice| (0..hops).map(move |hop| one(slice, hop))).collect();
        traffic(hops + 1, &[false], flows)
    };
    let one = replay(&pipeline(1, 4), &made(5)).unwrap();
    assert!(close(one.seconds, 40.0) && one.bottleneck.resource.is_none());
    let say = "4 flows that wait for each other (0→1, 1→2, 2→3, 3→4): 30.0 s of 40.0 s; no resource is busy for more than 10.0 s";
    assert_eq!(one.stages[0].bottleneck.say, say);
    // n slices over h hops: n + h − 1 times of one.
    let many = replay(&pipeline(1000, 8), &made(9)).unwrap();
    assert!(close(many.seconds, 10.0 * 1007.0) && many.bottleneck.resource.is_some());
    assert!(many.bottleneck.say.contains("97.7 KiB over") && many.bottleneck.say.ends_with("= 10000 s"), "{}", many.bottleneck.say);
}

#[test]
fn many_short_stages_are_bound_by_what_is_busiest_over_all() {
    let plan = |flows: &dyn Fn(usize) -> Vec<Flow>| traffic(30, &[true; 10], (0..10).flat_map(flows).collect());
    // Each stage has a link of its own that binds it; one that never does is busy for most of the time.
    let own = plan(&|stage| vec![flow(stage, 7, 8, 60, &[]), flow(stage, 10 + stage, 9, if stage == 3 { 110 } else { 100 }, &[])]);
    let told = replay(&own, &made(30)).unwrap().bottleneck;
    let say = "10 stages, bound by 10 resources in turn; busiest over all: link 7→8, 60.0 s of 101 s; longest stage: stage 3, 11.0 s";
    assert_eq!((told.resource, told.say.as_str()), (Some(0), say));
    assert!(close(told.seconds, 60.0));
    let same = plan(&|stage| vec![flow(stage, 7, 8, 100, &[])]);
    let told = replay(&same, &made(30)).unwrap().bottleneck;
    assert!(told.resource == Some(0) && told.say.starts_with("10 stages, each bound by link 7→8, 100 s of 100 s; "), "{}", told.say);
    let short = plan(&|stage| vec![flow(stage, 7, 8, 1, &[])]);
    let told = replay(&short, &Made { alpha: 1.0, ..made(30) }).unwrap().bottleneck;
    assert!(told.resource.is_none() && close(told.seconds, 10.0), "{told:?}");
    assert!(told.say.starts_with("10 stages one after another, each with its latency: 10.0 s of 11.0 s; "), "{}", told.say);
}

#[test]
fn what_cannot_pass_is_refused_and_nothing_to_pass_is_not() {
    let dead = Made { pair: |_, to| if to == 1 { 0.0 } else { 10.0 }, ..made(3) };
    let refused = replay(&traffic(3, &[true], vec![flow(0, 0, 2, 5, &[]), flow(0, 0, 1, 5, &[])]), &dead).unwrap_err();
    assert_eq!(refused, PriceError::Dead { flow: 1, from: 0, to: 1, bytes: 5 });
    assert!(refused.to_string().starts_with("flow 1: nothing passes from 0 to 1"), "{refused}");
    let empty = Made { alpha: 0.25, ..dead };
    assert!(close(replay(&traffic(3, &[true], vec![flow(0, 0, 1, 0, &[])]), &empty).unwrap().seconds, 0.25));
    let bad = traffic(1, &[true], vec![flow(0, 0, 1, 0, &[])]);
    assert!(matches!(replay(&bad, &empty), Err(PriceError::Traffic(_))));
    let endless = Made { pair: |_, _| f64::INFINITY, ..made(2) };
    let told = replay(&traffic(2, &[true], vec![flow(0, 0, 1, 7, &[])]), &endless).unwrap();
    assert!(told.seconds == 0.0 && told.epochs.is_empty(), "{told:?}");
}

#[test]
fn an_interval_is_that_of_the_rates() {
    let prices = Made { alpha: 1.0, half: 0.1, ..made(2) };
    let told = replay(&traffic(2, &[true], vec![flow(0, 0, 1, 99, &[])]), &prices).unwrap();
    assert!(close(told.interval.low, 10.0) && close(told.interval.high, 12.0) && close(told.seconds, 10.9), "{told:?}");
}

/// All ranks to all, each pair with a rate of its own.
fn all_to_all(ranks: usize) -> Traffic {
    let pairs = (0..ranks).flat_map(|from| (0..ranks).filter(move |&to| to != from).map(move |to| (from, to)));
    traffic(ranks, &[true], pairs.map(|(from, to)| flow(0, from, to, 1000, &[])).collect())
}

#[test]
fn more_flows_than_can_be_followed_one_by_one_are_followed_in_groups() {
    let rate = |from: usize, to: usize| 10.0 + ((from * 31 + to * 17) % 101) as f64 * 0.05;
    // Where none hinders another every end is exact.
    let free = Made { pair: rate, ..made(80) };
    let told = replay(&all_to_all(80), &free).unwrap();
    for (flow, time) in all_to_all(80).flows.iter().zip(&told.flows) {
        assert!(close(time.end, 1000.0 / rate(flow.from, flow.to)));
    }
    // Where they do, the last end is that of the load.
    let hindered = Made { out: 79.0, ..free };
    let told = replay(&all_to_all(80), &hindered).unwrap();
    assert!(close(told.seconds, 1000.0), "{}", told.seconds);
    // All of them at the same time: that is not coarse.
    assert_eq!(told.warnings, []);
    let passed: f64 = told.epochs.iter().map(|epoch| epoch.rates.iter().map(|rate| rate.1).sum::<f64>() * (epoch.end - epoch.start)).sum();
    assert!(close(passed, 80.0 * 79.0 * 1000.0), "{passed}");
    // Of uneven ones several ends are one, which is said; the busiest rank's load bounds them all the same.
    let mut uneven = all_to_all(80);
    for flow in &mut uneven.flows {
        flow.bytes = 500 + 10 * ((flow.from * 7 + flow.to * 13) as u64 % 97);
    }
    let load = |rank: usize| uneven.flows.iter().filter(|flow| flow.from == rank).map(|flow| flow.bytes).sum::<u64>() as f64 / 79.0;
    let bound = (0..80).map(load).fold(0.0, f64::max);
    let told = replay(&uneven, &hindered).unwrap();
    assert!(told.warnings.iter().any(|warning| warning.kind == "coarse"));
    assert!(told.seconds >= bound * (1.0 - 1e-9) && told.seconds <= bound * 1.1, "{} {bound}", told.seconds);
}

fn any_traffic() -> impl Strategy<Value = Traffic> {
    let one = (0usize..5, 0usize..5, 0u64..1000, 1u32..4, prop::collection::vec(any::<prop::sample::Index>(), 0..3), prop::bool::ANY);
    let stages = prop::collection::vec((prop::bool::ANY, prop::collection::vec(one, 0..8)), 1..4);
    stages.prop_map(|stages| {
        let mut flows: Vec<Flow> = Vec::new();
        let waits: Vec<bool> = stages.iter().map(|stage| stage.0).collect();
        for (stage, (_, told)) in stages.into_iter().enumerate() {
            for (from, to, bytes, messages, after, packed) in told {
                let number = flows.len();
                let after: Vec<usize> = after.iter().filter(|_| number > 0).map(|index| index.index(number)).collect();
                let copies =
                    if packed { Staged { packs: 1, pack_bytes: bytes, unpacks: 1, unpack_bytes: bytes } } else { Staged::default() };
                flows.push(Flow { messages, staged: copies, ..flow(stage, from, to, bytes, &after) });
            }
        }
        traffic(5, &waits, flows)
    })
}

fn some_prices() -> Made {
    let rate = |from: usize, to: usize| [10.0, 7.0, 3.0, 12.0][(from * 3 + to) % 4];
    Made { alpha: 0.3, pair: rate, out: 15.0, into: 11.0, turns: Some(|width| 1.0 + width as f64 * 0.2), copy: Some(0.01), ..made(5) }
}

proptest! {
    #[test]
    fn bytes_are_conserved_and_no_resource_does_more_than_it_can(traffic in any_traffic()) {
        let told = replay(&traffic, &some_prices()).unwrap();
        let mut passed = vec![0.0; traffic.flows.len()];
        let mut last = 0.0;
        for epoch in &told.epochs {
            prop_assert!(epoch.start >= last - 1e-9 && epoch.end > epoch.start);
            last = epoch.end;
            for &(flow, rate) in &epoch.rates {
                passed[flow] += rate * (epoch.end - epoch.start);
                let time = told.flows[flow];
                prop_assert!(time.start <= epoch.start + 1e-9 && epoch.end <= time.end + 1e-9);
            }
            for &(resource, used) in &epoch.used {
                prop_assert!(used <= 1.0 + 1e-6, "{} {used}", told.resources[resource].resource.name);
            }
        }
        for (flow, passed) in traffic.flows.iter().zip(&passed) {
            prop_assert!((flow.bytes as f64 - passed).abs() <= 1e-6 * flow.bytes as f64, "{flow:?} {passed}");
        }
        for load in &told.resources {
            prop_assert!(load.busy <= told.seconds * (1.0 + 1e-9));
            prop_assert!((load.by_stage.iter().sum::<f64>() - load.busy).abs() <= 1e-9 * load.busy);
            let bytes: u64 = load.flows.iter().map(|&flow| traffic.flows[flow].bytes).sum();
            prop_assert!((bytes as f64 - load.bytes).abs() <= 1e-6 * load.bytes);
        }
    }

    #[test]
    fn flows_keep_their_order(traffic in any_traffic()) {
        let told = replay(&traffic, &some_prices()).unwrap();
        for (number, flow) in traffic.flows.iter().enumerate() {
            let time = told.flows[number];
            prop_assert!(time.ready <= time.start && time.start <= time.end && time.end <= told.seconds);
            prop_assert!(flow.after.iter().all(|&before| told.flows[before].end <= time.ready + 1e-9));
            if traffic.stages[flow.stage].waits {
                let earlier = traffic.flows.iter().zip(&told.flows).filter(|(other, _)| other.stage < flow.stage);
                prop_assert!(earlier.into_iter().all(|(_, other)| other.end <= time.ready + 1e-9));
            }
            let alone = some_prices().routes(&[Demand { from: flow.from, to: flow.to, bytes: 1 }]).unwrap().remove(0);
            prop_assert!(time.end - time.start >= flow.bytes as f64 / alone.flow.alone().rate * (1.0 - 1e-6));
        }
    }

    /// Where all flows begin together and share one resource alone, max–min shares fall with each further flow.
    #[test]
    fn one_more_flow_into_a_rank_makes_none_there_faster(sizes in prop::collection::vec(1u64..1000, 2..9)) {
        let prices = Made { into: 25.0, ..made(10) };
        let flows: Vec<Flow> = sizes.iter().enumerate().map(|(at, &bytes)| flow(0, at + 1, 0, bytes, &[])).collect();
        let all = replay(&traffic(10, &[true], flows.clone()), &prices).unwrap();
        let fewer = replay(&traffic(10, &[true], flows[1..].to_vec()), &prices).unwrap();
        for (with, without) in all.flows[1..].iter().zip(&fewer.flows) {
            prop_assert!(with.end >= without.end * (1.0 - 1e-9));
        }
    }
}
