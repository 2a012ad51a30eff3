//! Transfers over time.

use proptest::prelude::*;

use crate::fabric::{Bound, Flow, ResourceId, Transfer, Use, completions, stage_bound};

fn transfer(cap: f64, uses: &[(u64, f64)], start: f64, alpha: f64, bytes: f64) -> Transfer {
    let uses = uses.iter().map(|&(id, weight)| Use { resource: ResourceId(id), weight }).collect();
    Transfer { flow: Flow { cap, uses }, start, alpha, bytes }
}

#[track_caller]
fn check(transfers: &[Transfer], expect: &[f64]) {
    let found = completions(transfers);
    assert_eq!(found.len(), expect.len());
    for (at, (found, expect)) in found.iter().zip(expect).enumerate() {
        assert!(found == expect || (found - expect).abs() < 1e-9 * expect.abs(), "transfer {at} ends at {found}, not {expect}");
    }
}

#[test]
fn alone_it_takes_its_latency_and_its_bytes() {
    check(&[], &[]);
    check(&[transfer(10.0, &[(1, 0.1)], 3.0, 0.5, 20.0), transfer(10.0, &[], 0.0, 0.5, 0.0)], &[5.5, 0.5]);
}

#[test]
fn what_one_no_longer_takes_the_other_gets() {
    // Both at 5 until the short one is done at 2, then the long one alone at 10.
    let link = [(1, 0.1)];
    check(&[transfer(10.0, &link, 0.0, 0.0, 10.0), transfer(10.0, &link, 0.0, 0.0, 30.0)], &[2.0, 4.0]);
    // The second comes when the first has moved 10 of 30; both end at 5, and a third comes to an idle link.
    check(
        &[transfer(10.0, &link, 0.0, 0.0, 30.0), transfer(10.0, &link, 0.5, 0.5, 20.0), transfer(10.0, &link, 7.0, 0.0, 5.0)],
        &[5.0, 5.0, 7.5],
    );
}

#[test]
fn latency_loads_nothing() {
    let link = [(1, 0.1)];
    check(&[transfer(10.0, &link, 0.0, 0.0, 10.0), transfer(10.0, &link, 0.0, 1.0, 10.0)], &[1.0, 2.0]);
}

#[test]
fn a_dead_link_never_completes_and_holds_nobody() {
    let link = [(1, 0.1)];
    check(
        &[transfer(0.0, &[], 0.0, 0.0, 1.0), transfer(0.0, &link, 0.0, 0.0, 1.0), transfer(10.0, &link, 0.0, 0.0, 10.0)],
        &[f64::INFINITY, f64::INFINITY, 1.0],
    );
}

#[test]
fn a_fan_into_a_time_shared_receiver_takes_the_sum_of_its_senders_times() {
    let sender = |rate: f64| transfer(rate, &[(1, 1.0 / rate)], 0.0, 0.25, 100.0);
    let ends = completions(&[sender(10.0), sender(20.0), sender(50.0)]);
    let sum = 0.25 + 10.0 + 5.0 + 2.0;
    assert!(ends.iter().all(|end| (end - sum).abs() < 1e-9), "{ends:?}");
}

#[test]
fn the_busiest_resource_bounds_a_stage() {
    let flow = |cap: f64, uses: &[(u64, f64)]| transfer(cap, uses, 0.0, 0.0, 0.0).flow;
    assert_eq!(stage_bound::<Flow>(&[]), None);
    let loads = [(flow(10.0, &[(1, 0.05), (2, 0.01)]), 100.0), (flow(10.0, &[(1, 0.05), (2, 0.02)]), 200.0)];
    // Link of the second: 20; resource 1: 5 + 10.
    assert_eq!(stage_bound(&loads), Some((20.0, Bound::Cap)));
    let fast = loads.map(|(flow, bytes)| (Flow { cap: 1e3, ..flow }, bytes));
    assert_eq!(stage_bound(&fast), Some((15.0, Bound::Resource(ResourceId(1)))));
    assert_eq!(stage_bound(&[(flow(0.0, &[]), 1.0)]), Some((f64::INFINITY, Bound::Cap)));
}

#[test]
fn five_hundred_independent_transfers_and_a_thousand_joined_ones_are_quick() {
    let own = |i: u32| transfer(10.0, &[(u64::from(i), 0.1)], f64::from(i), 0.0, f64::from(i));
    let transfers: Vec<Transfer> = (0..512).map(own).collect();
    let ends = completions(&transfers);
    assert!(ends.iter().zip(&transfers).all(|(end, t)| (end - (t.start + t.bytes / 10.0)).abs() < 1e-9));
    // One trunk for all, different bytes: the last ends when all bytes are through.
    let joined: Vec<Transfer> = (0..1000_u32).map(|i| transfer(1e3, &[(0, 0.1)], 0.0, 0.0, 1.0 + f64::from(i))).collect();
    let last = completions(&joined).into_iter().fold(0.0, f64::max);
    assert!((last - 50_050.0).abs() < 1e-4, "{last}");
}

prop_compose! {
    fn any_transfer()(
        cap in 1.0..50.0_f64, uses in prop::collection::vec((0..4_u64, 0.02..0.5_f64), 0..3), start in 0.0..3.0_f64,
        alpha in prop_oneof![Just(0.0), 0.0..1.0_f64], bytes in prop_oneof![Just(0.0), 1.0..100.0_f64],
    ) -> Transfer {
        transfer(cap, &uses, start, alpha, bytes)
    }
}

proptest! {
    #[test]
    fn nothing_is_faster_than_alone_and_no_resource_moves_more_than_it_can(transfers in prop::collection::vec(any_transfer(), 1..10)) {
        let ends = completions(&transfers);
        for (end, t) in ends.iter().zip(&transfers) {
            let alone = t.start + t.alpha + t.bytes / t.flow.alone().rate;
            prop_assert!(*end >= alone * (1.0 - 1e-9), "{} {}", end, alone);
        }
        let begin = transfers.iter().map(|t| t.start + t.alpha).fold(f64::INFINITY, f64::min);
        let last = ends.iter().copied().fold(0.0, f64::max);
        let loads: Vec<(&Flow, f64)> = transfers.iter().map(|t| (&t.flow, t.bytes)).collect();
        let (bound, _) = stage_bound(&loads).unwrap();
        prop_assert!(last - begin >= bound * (1.0 - 1e-9), "{} {}", last - begin, bound);
    }

    #[test]
    fn those_that_hinder_nobody_change_nothing(transfers in prop::collection::vec(any_transfer(), 1..8)) {
        // Seen together with a crowd on resources of their own.
        let alone = completions(&transfers);
        let mut crowd = transfers.clone();
        crowd.extend((0..5).map(|i| transfer(10.0, &[(100, 0.2)], f64::from(i), 0.1, 50.0)));
        for (a, b) in alone.iter().zip(completions(&crowd)) {
            prop_assert!((a - b).abs() <= 1e-9 * a.max(1.0));
        }
    }
}
