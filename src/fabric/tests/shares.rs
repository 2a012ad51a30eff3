//! The solver, by hand and by property.

use proptest::prelude::*;

use crate::fabric::{Bound, Flow, ResourceId, Share, Use, shares};

/// A flow with a cap and `(resource, weight)` uses.
fn flow(cap: f64, uses: &[(u64, f64)]) -> Flow {
    Flow { cap, uses: uses.iter().map(|&(id, weight)| Use { resource: ResourceId(id), weight }).collect() }
}

fn on(id: u64) -> Bound {
    Bound::Resource(ResourceId(id))
}

#[track_caller]
fn check(flows: &[Flow], expect: &[(f64, Bound)]) {
    let found = shares(flows);
    assert_eq!(found.len(), expect.len());
    for (at, (share, &(rate, bound))) in found.iter().zip(expect).enumerate() {
        assert!((share.rate - rate).abs() <= 1e-9 * rate.max(1.0), "flow {at}: {} instead of {rate}", share.rate);
        assert_eq!(share.bound, bound, "flow {at}");
    }
}

#[test]
fn flows_that_share_nothing_have_their_caps() {
    check(&[], &[]);
    check(&[flow(5.0, &[]), flow(0.0, &[(1, 0.1)]), flow(3.0, &[(2, 0.1)])], &[(5.0, Bound::Cap), (0.0, Bound::Cap), (3.0, Bound::Cap)]);
    assert_eq!(shares(&[flow(f64::INFINITY, &[])])[0].rate, f64::INFINITY);
}

#[test]
fn a_link_is_divided_equally_and_what_one_leaves_goes_to_the_others() {
    let tenth = [(1, 0.1)];
    check(&[flow(100.0, &tenth), flow(100.0, &tenth)], &[(5.0, on(1)), (5.0, on(1))]);
    check(&[flow(2.0, &tenth), flow(100.0, &tenth), flow(100.0, &tenth)], &[(2.0, Bound::Cap), (4.0, on(1)), (4.0, on(1))]);
}

#[test]
fn the_classic_parking_lot_gives_the_long_flow_the_narrowest_share() {
    // One flow through links 1 and 2 (10 each), one on each of them; link 2 has two.
    let flows = [flow(100.0, &[(1, 0.1), (2, 0.1)]), flow(100.0, &[(1, 0.1)]), flow(100.0, &[(2, 0.1)]), flow(100.0, &[(2, 0.1)])];
    let third = 10.0 / 3.0;
    check(&flows, &[(third, on(2)), (10.0 - third, on(1)), (third, on(2)), (third, on(2))]);
}

#[test]
fn a_time_shared_receiver_is_used_up_by_the_slow_sender() {
    // 0 <- [1, 2] of the B70 box: 6.0 and 53.9 into a receiver that takes turns: 2 / (1/6 + 1/53.9) together.
    let each = 1.0 / (1.0 / 6.0 + 1.0 / 53.9);
    check(&[flow(6.0, &[(9, 1.0 / 6.0)]), flow(53.9, &[(9, 1.0 / 53.9)])], &[(each, on(9)), (each, on(9))]);
    // A fixed receiver of 55.2 would be used up by nobody: the slow one has its link, the fast one the rest.
    check(&[flow(6.0, &[(9, 1.0 / 55.2)]), flow(53.9, &[(9, 1.0 / 55.2)])], &[(6.0, Bound::Cap), (49.2, on(9))]);
}

#[test]
fn a_single_flow_through_a_narrow_resource_is_bound_by_it() {
    check(&[flow(20.0, &[(3, 0.1), (4, 0.2)])], &[(5.0, on(4))]);
    check(&[flow(20.0, &[(3, 1.0 / 20.0)])], &[(20.0, Bound::Cap)]);
    check(&[flow(f64::INFINITY, &[(3, 0.1)]), flow(f64::INFINITY, &[(3, 0.1)])], &[(5.0, on(3)), (5.0, on(3))]);
}

#[test]
fn a_resource_named_twice_by_a_flow_costs_twice() {
    check(&[flow(100.0, &[(1, 0.1), (1, 0.1)]), flow(100.0, &[(1, 0.1)])], &[(10.0 / 3.0, on(1)), (10.0 / 3.0, on(1))]);
}

#[test]
fn weights_that_are_far_apart_keep_their_digits() {
    // 1e12 times as dear as the other on the shared resource: it stops at its cap, and the rest is the other's, exactly.
    let rest = (1.0 - 0.5) / 1e-12;
    check(&[flow(0.5, &[(1, 1.0)]), flow(1e13, &[(1, 1e-12)])], &[(0.5, Bound::Cap), (rest, on(1))]);
}

#[test]
fn a_thousand_flows_with_a_chain_of_links_are_divided() {
    // Flow i uses links i and i+1; the first link is the narrowest, then they widen.
    let flows: Vec<Flow> = (0..1000_u32)
        .map(|i| flow(1e6, &[(u64::from(i), 1.0 / (100.0 + f64::from(i))), (u64::from(i) + 1, 1.0 / (101.0 + f64::from(i)))]))
        .collect();
    let found = shares(&flows);
    assert!((found[0].rate - 50.5).abs() < 1e-9, "{:?}", found[0]);
    assert!(is_max_min(&flows, &found).is_ok());
}

/// Feasible, and every flow either has its cap or is a largest one on a full resource: then, and only then, it is the max–min allocation.
fn is_max_min(flows: &[Flow], shares: &[Share]) -> Result<(), String> {
    let near = 1e-6;
    let load = |id: ResourceId| -> f64 {
        let users = flows.iter().zip(shares).flat_map(|(flow, share)| flow.uses.iter().map(move |used| (used, share.rate)));
        users.filter(|(used, _)| used.resource == id).map(|(used, rate)| used.weight * rate).sum()
    };
    for (at, (flow, share)) in flows.iter().zip(shares).enumerate() {
        if share.rate > flow.cap * (1.0 + near) {
            return Err(format!("flow {at} has {} above its cap {}", share.rate, flow.cap));
        }
        for used in flow.uses.iter().filter(|used| used.weight > 0.0) {
            if load(used.resource) > 1.0 + near {
                return Err(format!("{:?} carries {}", used.resource, load(used.resource)));
            }
        }
        match share.bound {
            Bound::Cap if (share.rate - flow.cap).abs() <= near * flow.cap => {}
            Bound::Cap => return Err(format!("flow {at} has {} and not its cap {}", share.rate, flow.cap)),
            Bound::Resource(id) => {
                if !flow.uses.iter().any(|used| used.resource == id && used.weight > 0.0) {
                    return Err(format!("flow {at} does not use what binds it"));
                }
                if load(id) < 1.0 - near {
                    return Err(format!("{id:?} binds flow {at}, but carries {}", load(id)));
                }
                let others = flows.iter().zip(shares).filter(|(other, _)| other.uses.iter().any(|u| u.resource == id && u.weight > 0.0));
                if let Some((_, larger)) = others.into_iter().find(|(_, other)| other.rate > share.rate * (1.0 + near)) {
                    return Err(format!("flow {at} could rise at the cost of one that has {}", larger.rate));
                }
            }
        }
    }
    Ok(())
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let cap = prop_oneof![4 => 0.1..100.0_f64, 1 => Just(0.0), 1 => Just(10.0)];
    let weight = prop_oneof![3 => 0.001..1.0_f64, 1 => Just(0.1), 1 => Just(0.0)];
    (cap, prop::collection::vec((0..8_u64, weight), 0..5)).prop_map(|(cap, uses)| flow(cap, &uses))
}

proptest! {
    #[test]
    fn shares_are_feasible_and_max_min(flows in prop::collection::vec(any_flow(), 0..24)) {
        let found = shares(&flows);
        prop_assert_eq!(is_max_min(&flows, &found), Ok(()));
    }

    #[test]
    fn the_order_of_flows_does_not_matter(
        (flows, order) in prop::collection::vec(any_flow(), 1..16)
            .prop_flat_map(|flows| { let order: Vec<usize> = (0..flows.len()).collect(); (Just(flows), Just(order).prop_shuffle()) })
    ) {
        let found = shares(&flows);
        let shuffled: Vec<Flow> = order.iter().map(|&at| flows[at].clone()).collect();
        for (share, &at) in shares(&shuffled).iter().zip(&order) {
            prop_assert!((share.rate - found[at].rate).abs() <= 1e-9 * found[at].rate.max(1e-9), "{} {}", share.rate, found[at].rate);
        }
    }

    #[test]
    fn faster_hardware_is_faster_in_proportion(flows in prop::collection::vec(any_flow(), 1..16), scale in 1e-3..1e9_f64) {
        let faster: Vec<Flow> = flows.iter().map(|flow| Flow {
            cap: flow.cap * scale,
            uses: flow.uses.iter().map(|used| Use { weight: used.weight / scale, ..*used }).collect(),
        }).collect();
        for (slow, fast) in shares(&flows).iter().zip(shares(&faster)) {
            prop_assert!((slow.rate * scale - fast.rate).abs() <= 1e-8 * fast.rate);
        }
    }
}
