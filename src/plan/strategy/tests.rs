use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::{Held, Job, Strategy, StrategyError};
use crate::plan::Traffic;

/// Whether each byte of the model is held.
type Memory = Vec<bool>;

/// Play a traffic byte by byte: the first thing that is wrong in it.
fn played(job: &Job, traffic: &Traffic) -> Result<(), String> {
    traffic.check()?;
    let world = job.hosts.len();
    let bytes = usize::try_from(job.bytes).unwrap();
    let mut at_first: Vec<Memory> = vec![vec![false; bytes]; world];
    for (number, &trainer) in job.trainers.iter().enumerate() {
        let held = if job.held == Held::Whole { 0..job.bytes } else { job.shard(number) };
        at_first[trainer][held.start as usize..held.end as usize].fill(true);
    }
    let mut got = at_first.clone();
    // Flows that are complete before each one begins, for certain: those it waits for and what those waited for.
    let mut done: Vec<Vec<bool>> = Vec::new();
    for (number, flow) in traffic.flows.iter().enumerate() {
        let mut before = vec![false; number];
        let waits = traffic.stages[flow.stage].waits;
        let stage_before = (0..number).filter(|&other| waits && traffic.flows[other].stage + 1 == flow.stage);
        for other in flow.after.iter().copied().chain(stage_before) {
            before[other] = true;
            for (earlier, _) in done[other].iter().enumerate().filter(|(_, done)| **done) {
                before[earlier] = true;
            }
        }
        let start = usize::try_from(flow.offset.unwrap()).unwrap();
        let range = start..start + usize::try_from(flow.bytes).unwrap();
        let mut held = at_first[flow.from].clone();
        for (earlier, _) in before.iter().enumerate().filter(|(_, done)| **done) {
            let earlier = &traffic.flows[earlier];
            if earlier.to == flow.from {
                let start = usize::try_from(earlier.offset.unwrap()).unwrap();
                held[start..start + usize::try_from(earlier.bytes).unwrap()].fill(true);
            }
        }
        if !held[range.clone()].iter().all(|&held| held) {
            return Err(format!("flow {number}: {} sends what it does not hold yet", flow.from));
        }
        if got[flow.to][range.clone()].iter().any(|&got| got) {
            return Err(format!("flow {number}: {} gets what it has", flow.to));
        }
        got[flow.to][range].fill(true);
        done.push(before);
    }
    match job.engines.iter().find(|&&engine| !got[engine].iter().all(|&got| got)) {
        Some(engine) => Err(format!("engine {engine} lacks bytes")),
        None => Ok(()),
    }
}

fn job(world: usize, per_host: usize, trainers: &[usize], engines: &[usize], bytes: u64) -> Job {
    let hosts = (0..world).map(|rank| rank / per_host).collect();
    Job { hosts, bytes, trainers: trainers.to_vec(), engines: engines.to_vec(), held: Held::Whole, message: None }
}

prop_compose! {
    /// Any sets, in any order, on any hosts: they may overlap.
    fn jobs()(world in 1_usize..12, per_host in 1_usize..6)(
        trainers in proptest::sample::subsequence((0..world).collect::<Vec<_>>(), 1..=world).prop_shuffle(),
        engines in proptest::sample::subsequence((0..world).collect::<Vec<_>>(), 1..=world).prop_shuffle(),
        bytes in 1_u64..200,
        shards in any::<bool>(),
        message in proptest::option::of(1_u64..50),
        per_host in Just(per_host),
        world in Just(world),
    ) -> Job {
        let held = if shards { Held::Shards } else { Held::Whole };
        Job { held, message, ..job(world, per_host, &trainers, &engines, bytes) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_engine_gets_every_byte_once_from_one_that_has_it(job in jobs(), slices in 1_u64..9) {
        for strategy in Strategy::all(slices) {
            match strategy.traffic(&job) {
                Ok(traffic) => {
                    prop_assert_eq!(played(&job, &traffic), Ok(()), "{}", strategy.name());
                    let most = job.message.unwrap_or(u64::MAX);
                    for flow in &traffic.flows {
                        prop_assert!(flow.bytes.div_ceil(u64::from(flow.messages)) <= most, "{}", strategy.name());
                    }
                    prop_assert_eq!(traffic.chunks, traffic.flows.iter().map(|flow| u64::from(flow.messages)).sum::<u64>());
                }
                Err(StrategyError::NeedsWhole { .. }) => {
                    prop_assert!(job.whole().is_empty());
                    let sharded = matches!(strategy, Strategy::ShardedDirect | Strategy::ShardedPlan | Strategy::ShardedRing);
                    prop_assert!(!sharded, "shards are enough for {}", strategy.name());
                }
                Err(wrong) => prop_assert!(false, "{wrong}"),
            }
        }
    }
}

#[test]
fn the_player_of_these_tests_sees_what_is_wrong() {
    let job = job(3, 3, &[0], &[1, 2], 8);
    let good = Strategy::PipelinedRelay { slices: 2 }.traffic(&job).unwrap();
    assert_eq!(played(&job, &good), Ok(()));
    let with = |change: fn(&mut Traffic)| {
        let mut bad = good.clone();
        change(&mut bad);
        played(&job, &bad).unwrap_err()
    };
    assert!(with(|t| t.flows[1].from = 2).contains("does not hold"));
    assert!(with(|t| t.flows[1].offset = Some(1)).contains("lacks") || with(|t| t.flows[1].offset = Some(1)).contains("gets"));
    assert!(with(|t| drop(t.flows.pop())).contains("lacks"));
    assert!(with(|t| t.flows.push(t.flows[0].clone())).contains("gets what it has"));
}

#[test]
fn what_crosses_between_hosts_is_what_each_strategy_promises() {
    let job = job(16, 8, &[0, 1, 2, 3, 4, 5, 6, 7], &[8, 9, 10, 11, 12, 13, 14, 15], 8 << 30);
    let across = |strategy: Strategy| {
        let traffic = strategy.traffic(&job).unwrap();
        let crossing = traffic.flows.iter().filter(|flow| (flow.from < 8) != (flow.to < 8));
        crossing.map(|flow| flow.bytes).sum::<u64>() >> 30
    };
    for strategy in [Strategy::Direct, Strategy::Spread, Strategy::ShardedDirect] {
        assert_eq!(across(strategy), 64, "{}", strategy.name());
    }
    for strategy in [Strategy::Relay, Strategy::ShardedPlan, Strategy::ShardedRing].into_iter().chain(Strategy::all(4).split_off(6)) {
        assert_eq!(across(strategy), 8, "{}", strategy.name());
    }
    // i to 8 + i, a shard each, and then each of 8 reads 7 shards.
    let plan = Strategy::ShardedPlan.traffic(&job).unwrap();
    let first: Vec<(usize, usize, u64)> = plan.flows[..8].iter().map(|flow| (flow.from, flow.to, flow.bytes >> 30)).collect();
    assert_eq!(first, (0..8).map(|i| (i, 8 + i, 1)).collect::<Vec<_>>());
    assert_eq!(plan.flows.len(), 8 + 8 * 7);
    assert_eq!(plan.stages.iter().map(|stage| stage.waits).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn a_flow_has_as_many_messages_as_the_budget_asks_for() {
    let mut job = job(2, 1, &[0], &[1], (64 << 20) + 1);
    job.message = Some(8 << 20);
    assert_eq!(Strategy::Direct.traffic(&job).unwrap().flows[0].messages, 9);
    job.message = None;
    assert_eq!(Strategy::Direct.traffic(&job).unwrap().flows[0].messages, 1);
}

#[test]
fn a_job_that_makes_no_sense_is_refused_with_what_is_wrong() {
    let good = job(4, 2, &[0, 1], &[2, 3], 8);
    let with = |change: fn(&mut Job)| {
        let mut bad = good.clone();
        change(&mut bad);
        Strategy::Direct.traffic(&bad).unwrap_err().to_string()
    };
    assert!(with(|job| job.trainers = vec![]).contains("trainers: none"));
    assert!(with(|job| job.engines = vec![4]).contains("engines: rank 4 is not one of the 4 ranks"));
    assert!(with(|job| job.engines = vec![2, 3, 2]).contains("engines: rank 2 is named twice"));
    assert!(with(|job| job.bytes = 0).contains("bytes: 0"));
    assert!(with(|job| job.message = Some(0)).contains("bytes per peer: 0"));
    assert!(with(|job| job.held = Held::Shards).contains("direct: no trainer holds the whole model"));
}
