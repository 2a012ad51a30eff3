//! Strategies of a weight sync on the described machines and on calibrations swept on them (issue 6, must show e).

use std::sync::Arc;

use toposcope::fabric::Fabric;
use toposcope::plan::price::{Calibrated, Prices};
use toposcope::plan::strategy::{Ground, Held, Job, Ranking, Strategy, order, rank};
use toposcope::sample::Pattern;
use toposcope::session;
use toposcope::sweep::{Peers, SweepSettings, Transfer};

use crate::closed_loop::{calibration, shipped, sweep};

const MIB: u64 = 1 << 20;

/// "Weight sync": 8 GiB from the ranks of one host to 8 engines on the other.
fn weight_sync(message: Option<u64>) -> Job {
    Job {
        hosts: (0..16).map(|rank| rank / 8).collect(),
        bytes: 8 << 30,
        trainers: (0..8).collect(),
        engines: (8..16).collect(),
        held: Held::Whole,
        message,
    }
}

/// The five rows of that table, with the column `this stage_p` and the column `this push_p`, ms.
const PUBLISHED: [(Strategy, f64, f64); 5] = [
    (Strategy::ShardedRing, 80.1, 72.6),
    (Strategy::ShardedPlan, 233.1, 71.5),
    (Strategy::ShardedDirect, 393.9, 574.0),
    (Strategy::Direct, 973.7, 4090.5),
    (Strategy::Relay, 1098.5, 557.3),
];

fn told(what: &str, ranking: &Ranking) {
    for (name, why) in &ranking.refused {
        println!("{what}: {name}: {why}");
    }
    for row in &ranking.rows {
        let published = PUBLISHED.iter().find(|published| published.0 == row.strategy);
        let published = published.map_or_else(String::new, |(_, staged, push)| format!(" (published: {staged} staged, {push} pushed)"));
        println!("{what}: {:8.1} ms  {}{published}; {}", row.seconds * 1e3, row.strategy.name(), row.bottleneck);
    }
}

/// The published five in the order of a ranking.
fn published_in(ranking: &Ranking) -> Vec<Strategy> {
    let known = |strategy: &Strategy| PUBLISHED.iter().any(|published| published.0 == *strategy);
    ranking.rows.iter().map(|row| row.strategy).filter(known).collect()
}

/// Everything that tells of shared resources: pairs, both ways, fans inside hosts and across, and of two hosts all ranks of one to
/// those of the other at once.
pub fn calibrated(fabric: &Arc<Fabric>) -> Calibrated {
    let world = fabric.world();
    let mut patterns = vec![Pattern::Local, Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::FanOut];
    let mut fans = Vec::new();
    let mut transfers = Vec::new();
    for root in 0..world {
        let host = root / 8 * 8;
        let near: Vec<usize> = (1..8).map(|step| host + (root + step) % 8).collect();
        let far: Vec<usize> = (8..world.min(16)).map(|step| (host + step + root % 8 - 8) % 8 + (host + 8) % world).collect();
        fans.extend([2, 4, 7].map(|width| (root, near[..width].to_vec())));
        if !far.is_empty() {
            fans.extend([2, 4, 8].map(|width| (root, far[..width].to_vec())));
        }
    }
    if world == 16 {
        patterns.push(Pattern::Custom);
        let all = |set: u32, near: usize, far: usize| (0..64).map(move |at| Transfer { set, from: near + at / 8, to: far + at % 8 });
        transfers = all(0, 0, 8).chain(all(1, 8, 0)).collect();
    }
    let sizes = vec![1 << 12, 16 << 20, 256 << 20];
    let settings = SweepSettings { sizes, repeats: 6, patterns, peers: Peers::Listed(fans), transfers, ..calibration(0.0) };
    session::prices(&sweep(fabric, &settings, true).model)
}

fn ranked(prices: &dyn Prices, inside: &dyn Prices, message: Option<u64>) -> Ranking {
    order(&weight_sync(message), &Ground { prices, inside: Some(inside) }, Some(32)).unwrap()
}

#[test]
fn staged_strategies_on_two_hosts_of_h20_come_in_the_published_order() {
    let (fabric, inside) = (shipped("h20-2x8"), shipped("h20-8"));
    let published: Vec<Strategy> = PUBLISHED.iter().map(|row| row.0).collect();
    let ranking = ranked(&*fabric, &*inside, Some(8 * MIB));
    told("described", &ranking);
    assert_eq!(published_in(&ranking), published);
    let ranking = ranked(&calibrated(&fabric), &calibrated(&inside), Some(8 * MIB));
    told("swept", &ranking);
    assert_eq!(published_in(&ranking), published);
    assert!(ranking.rows.iter().all(|row| row.interval.contains(row.seconds) && row.interval.low < row.interval.high));
}

#[test]
fn with_windows_the_sharded_plan_comes_first_and_takes_what_was_measured() {
    let (fabric, inside) = (shipped("h20-2x8-windows"), shipped("h20-8"));
    for (what, ranking) in
        [("described", ranked(&*fabric, &*inside, None)), ("swept", ranked(&calibrated(&fabric), &calibrated(&inside), None))]
    {
        told(what, &ranking);
        assert_eq!(ranking.rows[0].strategy, Strategy::ShardedPlan);
        assert!((ranking.rows[0].seconds / 71.5e-3 - 1.0).abs() < 0.05, "{what}: {} s", ranking.rows[0].seconds);
    }
}

/// What would change a ranking does change it there, and not before.
#[test]
fn nothing_is_passed_on_to_one_engine() {
    let machine = shipped("h20-2x8");
    let job = Job { trainers: vec![0], engines: vec![8], ..weight_sync(Some(8 * MIB)) };
    let ranking = rank(&job, &Ground { prices: &*machine, inside: None }, None).unwrap();
    assert_eq!(ranking.rows[0].strategy, Strategy::Direct);
    assert!(ranking.rows.iter().all(|row| row.strategy.slices().is_none()));
    let sliced: Vec<&str> = ranking.refused.iter().filter(|(_, why)| why.starts_with("one engine")).map(|(name, _)| &name[..]).collect();
    assert_eq!(sliced.len(), 4, "{:?}", ranking.refused);
}

#[test]
fn the_change_that_is_told_changes_the_ranking() {
    let (fabric, inside) = (shipped("h20-2x8"), shipped("h20-8"));
    let ground = Ground { prices: &*fabric, inside: Some(&*inside) };
    let ranking = rank(&weight_sync(Some(8 * MIB)), &ground, Some(8)).unwrap();
    let row = ranking.rows.iter().find(|row| row.strategy == Strategy::ShardedPlan).unwrap();
    // Its engines send and receive too slowly; both have to be faster.
    assert!(row.change.contains("would be the first if send engine out of rank 8 and 7 like it (now 79.5 GB/s)"), "{}", row.change);
    let factor: f64 = row.change.split("were ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let first = |factor: f64| {
        let text = Fabric::shipped_text("h20-2x8").unwrap();
        let faster = |text: &str, rate: f64| text.replace(&format!("\"{rate}GB/s\""), &format!("\"{}GB/s\"", rate * factor));
        let fabric = Fabric::parse(&faster(&faster(text, 79.5), 94.4), "faster").unwrap();
        ranked(&fabric, &*inside, Some(8 * MIB)).rows[0].strategy
    };
    assert_eq!(first(factor * 1.05), Strategy::ShardedPlan);
    assert_eq!(first(factor * 0.9), Strategy::ShardedRing);
}
