//! Machines whose answers are known because they were made up.

use super::super::*;
use crate::fit::Interval;
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Placement, Topology, Unit, Units};

const MESSAGE: u64 = 64 << 20;
const GB: f64 = 1e9;

/// Hosts of so many ranks each, two NUMA nodes a host.
fn hosts(count: usize, ranks: usize) -> Units {
    let place = |rank: usize| Placement {
        rank,
        host: format!("node{}", rank / ranks),
        numa: Some(rank % ranks * 2 / ranks),
        ..Placement::default()
    };
    Units::of(&Topology::of((0..count * ranks).map(place).collect()))
}

/// Flows at the same time, with the rate that each came to, GB/s.
fn set(flows: &[((usize, usize), f64)]) -> Together {
    let seconds: Vec<f64> = flows.iter().map(|flow| MESSAGE as f64 / (flow.1 * GB)).collect();
    let last = seconds.iter().copied().fold(0.0, f64::max);
    Together {
        pattern: Pattern::Custom,
        root: None,
        flows: flows.iter().map(|flow| flow.0).collect(),
        bytes: MESSAGE,
        seconds: last,
        interval: Some(Interval { low: last * 0.99, high: last * 1.01 }),
        own: seconds,
        alone: Vec::new(),
        n: 6,
    }
}

/// A fan in with its aggregate, GB/s.
fn fan(root: usize, peers: &[usize], aggregate: f64) -> Together {
    let each = aggregate / peers.len() as f64;
    let flows: Vec<_> = peers.iter().map(|&peer| ((peer, root), each)).collect();
    Together { pattern: Pattern::FanIn, root: Some(root), ..set(&flows) }
}

fn find<'a>(found: &'a Identified, name: &str) -> &'a Capacity {
    let names: Vec<&str> = found.capacities.iter().map(|capacity| capacity.name.as_str()).collect();
    found.capacities.iter().find(|capacity| capacity.name == name).unwrap_or_else(|| panic!("no {name}: {names:?}"))
}

#[track_caller]
fn near(found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() < 0.02, "{found} instead of {truth}");
}

#[test]
fn where_all_pairs_are_alike_turns_and_capacity_are_not_told_apart() {
    let units = hosts(1, 8);
    let fans: Vec<Together> = (0..8).map(|root| fan(root, &(1..8).map(|step| (root + step) % 8).collect::<Vec<_>>(), 26.6)).collect();
    let found = identify(&units, &|_, _| Some(25.3 * GB), &fans, &[]);
    let family = |by: Explanation| matches!(by, Explanation::Busiest | Explanation::TimeSharedBy | Explanation::TimeShared);
    let open = found.undecided.iter().find(|open| family(open.one) && family(open.other)).expect("two that coincide");
    assert!(open.say.contains("do not tell"), "{}", open.say);
    assert!(open.say.contains("no fan of up to 8 would"), "{}", open.say);
    assert_eq!(open.peers, [0; 0]);
    let root = find(&found, "receive side of every rank within its host");
    near(root.rate.unwrap(), 26.6 * GB);
    near(root.concurrency.unwrap(), 26.6 / 25.3);
    assert_eq!(root.by_width.len(), 1);
}

#[test]
fn a_collapse_is_a_concurrency_below_one_and_no_capacity() {
    let units = hosts(9, 1);
    let fans: Vec<Together> = (0..4).map(|root| fan(root, &[4, 5, 6, 7], 6.0)).collect();
    let found = identify(&units, &|_, _| Some(10.0 * GB), &fans, &[]);
    let root = find(&found, "receive side of every rank to other hosts");
    near(root.concurrency.unwrap(), 0.6);
    // Ten of a single flow: six are no fixed capacity.
    assert_eq!(root.rate, None);
    near(root.at_least.unwrap(), 10.0 * GB);
    assert_eq!(found.hidden, []);
}

#[test]
fn unlike_pairs_tell_a_capacity_from_turns() {
    // Odd senders go at 10, even ones at 30; a receiver has 40.
    let units = hosts(1, 8);
    let rate = |from: usize, _| Some(if from % 2 == 1 { 10.0 } else { 30.0 } * GB);
    let busiest = |peers: &[usize]| {
        let slowest = peers.iter().map(|&peer| rate(peer, 0).unwrap() / GB).fold(f64::INFINITY, f64::min);
        (slowest * peers.len() as f64).min(40.0)
    };
    let sets: [&[usize]; 5] = [&[2, 4], &[1, 3], &[2, 4, 6], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6]];
    let fans: Vec<Together> = sets.iter().map(|peers| fan(0, peers, busiest(peers))).collect();
    let found = identify(&units, &rate, &fans, &[]);
    let best = &found.stands[0];
    assert_eq!(best.explanation, Explanation::Busiest);
    assert_eq!(best.parameters.len(), 1, "the link between sockets binds nowhere: {:?}", best.parameters);
    near(best.parameters[0].1, 40.0 * GB);
    let root = find(&found, "receive side of rank 0 within its host");
    near(root.rate.unwrap(), 40.0 * GB);
    assert_eq!(root.concurrency, None);
    assert!(!found.undecided.iter().any(|open| matches!(open.other, Explanation::TimeShared | Explanation::TimeSharedBy)));
}

#[test]
fn a_pair_that_was_not_measured_leaves_its_fans_unexplained() {
    let found = identify(&hosts(1, 4), &|from, _| (from != 2).then_some(GB), &[fan(0, &[1, 2, 3], 1.0)], &[]);
    assert!(found.fans[0].by.is_empty() && found.fans[0].concurrency.is_none() && found.fans[0].best.is_none());
    assert_eq!(found.stands, []);
}

#[test]
fn cards_and_links_between_sockets_get_what_pairs_at_the_same_time_had() {
    let units = hosts(2, 8);
    let rate = |from: usize, to: usize| Some(if from / 8 == to / 8 { 20.0 } else { 12.0 } * GB);
    let found = identify(
        &units,
        &rate,
        &[
            // A card of 25 out of node0: three flows to other ranks of node1.
            set(&[((0, 8), 25.0 / 3.0), ((1, 9), 25.0 / 3.0), ((2, 10), 25.0 / 3.0)]),
            // 30 from socket to socket, and as much as anybody likes within one.
            set(&[((8, 12), 10.0), ((9, 13), 10.0), ((10, 14), 10.0)]),
            set(&[((8, 9), 20.0), ((10, 11), 20.0)]),
        ],
        &[],
    );
    let card = find(&found, "network out of node0");
    near(card.rate.unwrap(), 25.0 * GB);
    assert!(card.interval.unwrap().contains(25.0 * GB) && card.n == 1);
    near(find(&found, "link out of NUMA 0 of node1").rate.unwrap(), 30.0 * GB);
    let within = find(&found, "memory and links within NUMA 0 of node1");
    assert_eq!(within.rate, None);
    near(within.at_least.unwrap(), 40.0 * GB);
    assert_eq!(found.hidden, []);
}

/// Eight hosts; four pairs across at a time share `trunk`, GB/s.
fn across(trunk: f64, both: bool) -> Vec<Together> {
    let flows = |back: bool, shift: usize| (0..4).map(move |a| if back { (4 + (a + shift) % 4, a) } else { (a, 4 + (a + shift) % 4) });
    let share = |n: f64| (trunk / n).min(10.0);
    let there = (0..2).map(|shift| flows(false, shift).map(|flow| (flow, share(4.0))).collect::<Vec<_>>());
    let ways = (0..usize::from(both)).map(|shift| {
        let two = flows(false, shift).take(2).chain(flows(true, shift).skip(2).take(2));
        two.map(|flow| (flow, share(2.0))).collect::<Vec<_>>()
    });
    there.chain(ways).map(|flows| set(&flows)).collect()
}

#[test]
fn pairs_that_slow_each_other_share_a_hidden_link_between_their_hosts() {
    let found = identify(&hosts(8, 1), &|_, _| Some(10.0 * GB), &across(16.0, false), &[]);
    let [hidden] = found.hidden.as_slice() else { panic!("{:?}", found.hidden) };
    assert_eq!((&hidden.from_hosts[..], &hidden.to_hosts[..], hidden.n), (&[0, 1, 2, 3][..], &[4, 5, 6, 7][..], 2));
    assert_eq!(hidden.name, "shared link from node0, node1, node2, node3 to node4, node5, node6, node7");
    near(hidden.capacity, 16.0 * GB);
    assert!(hidden.interval.unwrap().contains(16.0 * GB) && hidden.flows.len() == 8);
    let capacity = find(&found, &hidden.name);
    assert_eq!(capacity.owner, Owner::Between { from: vec![0, 1, 2, 3], to: vec![4, 5, 6, 7] });
    assert_eq!(identify(&hosts(8, 1), &|_, _| Some(10.0 * GB), &across(80.0, true), &[]).hidden, []);
}

#[test]
fn both_directions_are_links_of_their_own() {
    let found = identify(&hosts(8, 1), &|_, _| Some(10.0 * GB), &across(16.0, true), &[]);
    let ends: Vec<_> = found.hidden.iter().map(|hidden| (&hidden.from_hosts[..], &hidden.to_hosts[..])).collect();
    assert_eq!(ends, [(&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]), (&[6, 7], &[2, 3])]);
}

#[test]
fn a_known_card_explains_what_its_flows_lose() {
    // Two hosts of four: what is slow has left the same host.
    let slow = set(&[((0, 4), 6.0), ((1, 5), 6.0)]);
    let found = identify(&hosts(2, 4), &|_, _| Some(10.0 * GB), std::slice::from_ref(&slow), &[]);
    assert_eq!(found.hidden, []);
    near(find(&found, "network out of node0").rate.unwrap(), 12.0 * GB);
    // With three hosts it may have carried 20 to the third one: then it is no more the card.
    let more = set(&[((0, 8), 10.0), ((1, 9), 10.0)]);
    let into = set(&[((8, 4), 10.0), ((9, 5), 10.0)]);
    let found = identify(&hosts(3, 4), &|_, _| Some(10.0 * GB), &[slow, more, into], &[]);
    let [hidden] = found.hidden.as_slice() else { panic!("{:?}", found.hidden) };
    assert_eq!((&hidden.from_hosts[..], &hidden.to_hosts[..]), (&[0][..], &[1][..]));
    near(hidden.capacity, 12.0 * GB);
    near(find(&found, "network out of every host").at_least.unwrap(), 20.0 * GB);
}

#[test]
fn within_a_host_a_hidden_link_is_between_ranks() {
    let units = hosts(1, 8);
    let all = set(&[((0, 1), 10.0), ((2, 3), 10.0), ((4, 5), 10.0), ((6, 7), 10.0)]);
    // Within socket 0 two pairs take half each, while others take all.
    let slow = set(&[((0, 2), 5.0), ((1, 3), 5.0)]);
    let found = identify(&units, &|_, _| Some(10.0 * GB), &[all, slow], &[]);
    let [hidden] = found.hidden.as_slice() else { panic!("{:?}", found.hidden) };
    assert_eq!(hidden.name, "shared link inside node0 from ranks 0-1 to ranks 2-3");
    assert!(hidden.from_hosts.is_empty());
    near(hidden.capacity, 10.0 * GB);
}

#[test]
fn opposite_ways_at_one_end_are_duplex_and_not_hidden() {
    // A relay around four hosts at 0.6 of the rate alone.
    let relay = |share: f64| Together {
        pattern: Pattern::Relay,
        ..set(&[((0, 1), 10.0 * share), ((1, 2), 10.0 * share), ((2, 3), 10.0 * share), ((3, 0), 10.0 * share)])
    };
    let identified = |share: f64| identify(&hosts(4, 1), &|_, _| Some(10.0 * GB), &[relay(share)], &[]);
    assert_eq!(identified(0.6).hidden, []);
    // A quarter is more than two that share can cost.
    assert!(!identified(0.25).hidden.is_empty());
}

#[test]
fn a_few_late_messages_are_not_sharing() {
    let noisy = |factor: f64, n: usize| Together { n, ..set(&[((0, 4), 10.0 / factor), ((1, 5), 10.0 / factor)]) };
    let hidden = |together: Together| identify(&hosts(8, 1), &|_, _| Some(10.0 * GB), &[together], &[]).hidden.len();
    assert_eq!((hidden(noisy(1.08, 6)), hidden(noisy(1.5, 2)), hidden(noisy(1.5, 3))), (0, 0, 1));
}

#[test]
fn times_alone_of_their_own_come_before_the_rates_of_pairs() {
    // The pairs' rates are of a larger size.
    let together = Together { pattern: Pattern::Peer, ..set(&[((0, 4), 4.0), ((1, 5), 4.0)]) };
    let alone = |rate: f64| vec![MESSAGE as f64 / (rate * GB); 2];
    let hidden = |alone: Vec<f64>| {
        let together = Together { alone, ..together.clone() };
        identify(&hosts(8, 1), &|_, _| Some(10.0 * GB), &[together], &[]).hidden.len()
    };
    assert_eq!((hidden(alone(8.0)), hidden(alone(4.1)), hidden(Vec::new())), (1, 0, 1));
}

#[test]
fn duplex_ratios_are_told_by_path() {
    let units = hosts(2, 4);
    let rate = |_, _| Some(10.0 * GB);
    let told = |tell: &mut dyn FnMut(usize, usize, f64)| {
        for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let share = if from / 4 != to / 4 {
                1.0
            } else if from % 4 / 2 == to % 4 / 2 {
                0.85
            } else {
                0.9
            };
            tell(from, to, 10.0 * GB * share);
        }
    };
    let found = identify_all(&Evidence { duplex: Some(&told), ..Evidence::new(&units, &rate) });
    let ratios: Vec<_> = found.duplex.iter().map(|one| (one.path, one.same_socket, one.ratio, one.n)).collect();
    assert_eq!(
        ratios,
        [(PathClass::IntraNode, Some(true), 0.85, 8), (PathClass::IntraNode, Some(false), 0.9, 16), (PathClass::InterNode, None, 1.0, 32)]
    );
}

#[test]
fn latency_is_no_part_of_capacities_and_concurrency() {
    let units = hosts(1, 4);
    // 1 ms of latency beside 6.7 ms.
    let rate = |_, _| Some(MESSAGE as f64 / (1e-3 + MESSAGE as f64 / (10.0 * GB)));
    let latency = |_, _| Some(1e-3);
    let fans: Vec<Together> = (0..4)
        .map(|root| {
            let peers: Vec<usize> = (0..4).filter(|&peer| peer != root).collect();
            Together { seconds: 1e-3 + 3.0 * MESSAGE as f64 / (12.0 * GB), ..fan(root, &peers, 1.0) }
        })
        .collect();
    let found = identify_all(&Evidence { latency: Some(&latency), bytes: MESSAGE, together: &fans, ..Evidence::new(&units, &rate) });
    let root = find(&found, "receive side of every rank within its host");
    near(root.rate.unwrap(), 12.0 * GB);
    near(root.concurrency.unwrap(), 1.2);
}

#[test]
fn of_many_sizes_the_one_of_the_pair_rates_counts() {
    let units = hosts(1, 4);
    let rate = |_, _| Some(10.0 * GB);
    let small = Together { bytes: 4096, ..fan(0, &[1, 2, 3], 0.5) };
    let found = identify_all(&Evidence { bytes: MESSAGE, together: &[small, fan(0, &[1, 2, 3], 10.0)], ..Evidence::new(&units, &rate) });
    assert_eq!(found.fans.len(), 1);
    near(found.fans[0].aggregate, 10.0 * GB);
}

#[test]
fn units_that_are_alike_are_one_entry_and_the_odd_one_stands_out() {
    let units = hosts(12, 2);
    let rate = |from: usize, _| Some(if from / 2 == 7 { 6.0 } else { 12.0 } * GB);
    let sets: Vec<Together> = (0..12)
        .map(|host| {
            let each = if host == 7 { 3.0 } else { 6.0 };
            let to = (host + 1) % 12;
            set(&[((2 * host, 2 * to), each), ((2 * host + 1, 2 * to + 1), each)])
        })
        .collect();
    let found = identify(&units, &rate, &sets, &[]);
    near(find(&found, "network out of every host").rate.unwrap(), 12.0 * GB);
    near(find(&found, "network out of node7").rate.unwrap(), 6.0 * GB);
    assert_eq!(found.capacities.iter().filter(|capacity| capacity.name.starts_with("network out")).count(), 2);
    assert_eq!(find(&found, "network out of node7").owner, Owner::Unit { unit: Unit { level: Level::Host, number: 7 }, side: Side::Out });
}

/// 1,024 ranks, fans of every rank at three widths, all pairs.
#[test]
fn a_thousand_ranks_take_no_time() {
    let units = hosts(128, 8);
    let rate = |from: usize, to: usize| Some(if from / 8 == to / 8 { 300.0 } else { 40.0 } * GB);
    let fans: Vec<Together> = (0..1024)
        .flat_map(|root| {
            [2, 4, 7].map(|width| fan(root, &(1..=width).map(|step| root / 8 * 8 + (root + step) % 8).collect::<Vec<_>>(), 310.0))
        })
        .collect();
    let begin = std::time::Instant::now();
    let found = identify(&units, &rate, &fans, &[]);
    let took = begin.elapsed();
    assert_eq!(found.fans.len(), 3072);
    assert!(found.capacities.len() < 40, "{}", found.capacities.len());
    println!("{took:?}");
    // Unoptimised, on a machine that does other things too; optimised it is well under a second.
    assert!(took.as_secs() < 30, "{took:?}");
}
