//! Whole heaps of observations, worked by hand.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::topology::PathClass::{InterNode, IntraNode, Local};

const KIB64: u64 = 1 << 16;
const MIB16: u64 = 1 << 24;

fn seconds(bytes: u64, alpha_us: f64, gbps: f64) -> f64 {
    alpha_us * 1e-6 + bytes as f64 / (gbps * 1e9)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// Pairs of 4 ranks, {0, 1} on one host and {2, 3} on the other, 3 repeats: 10 µs and 40 + from GB/s inside a host, 30 µs and
/// 20 GB/s between, 16 from rank 0; both ways at once 0.8 of it.
fn pairs(observations: &mut Observations) {
    for from in 0..4usize {
        for to in (0..4).filter(|to| *to != from) {
            let inside = from / 2 == to / 2;
            let across = if from == 0 { 16.0 } else { 20.0 };
            let (path, alpha, gbps) = if inside { (IntraNode, 10.0, 40.0 + from as f64) } else { (InterNode, 30.0, across) };
            for bytes in [KIB64, 1 << 20, MIB16] {
                for _ in 0..3 {
                    let peer = Flow::Peer { from, to, path };
                    observations.push(Observation { flow: peer, bytes, seconds: seconds(bytes, alpha, gbps) });
                    let duplex = Flow::Duplex { from, to, path };
                    observations.push(Observation { flow: duplex, bytes, seconds: seconds(bytes, alpha, 0.8 * gbps) });
                }
            }
        }
    }
}

/// One fan's messages: each peer alone takes `own`, the root `whole`, for some repeats of two sizes.
fn fan(observations: &mut Observations, fan: Fan, root: usize, peers: &[usize], path: impl Fn(usize) -> crate::topology::PathClass) {
    for bytes in [KIB64, MIB16] {
        for repeat in 0..6 {
            for &peer in peers {
                let root_seconds = Some(seconds(peers.len() as u64 * bytes, 50.0, 25.0));
                let flow = Flow::Fan { fan, root, peers, path: path(peer), repeat, root_seconds };
                observations.push(Observation { flow, bytes, seconds: seconds(bytes, 45.0, 12.0) });
            }
        }
    }
}

#[test]
fn pairs_and_their_classes_come_back() {
    let mut observations = Observations::default();
    pairs(&mut observations);
    let fits = observations.fit(None);
    assert_eq!((fits.classes.len(), fits.single.len(), fits.ignored), (4, 24, 0));
    let line = |kind, key: &Key| fits.get(kind, key).unwrap().line;
    let pair = line(Kind::Peer, &Key::Pair { from: 3, to: 2 });
    assert!(close(pair.alpha, 10e-6) && close(pair.bandwidth, 43e9), "{pair:?}");
    let across = line(Kind::Duplex, &Key::Pair { from: 0, to: 3 });
    assert!(close(across.alpha, 30e-6) && close(across.bandwidth, 12.8e9), "{across:?}");
    let class = fits.get(Kind::Peer, &Key::Class { path: InterNode }).unwrap();
    assert!(close(class.line.alpha, 30e-6) && close(class.line.bandwidth, 20e9), "{class:?}");
    // 8 pairs, 3 sizes, 3 repeats; the median pair, not the mean
    assert_eq!((class.n, class.sizes), (72, 3));
    assert!(close(fits.duplex_ratio(InterNode).unwrap(), 0.8));
    assert_eq!(fits.duplex_ratio(Local), None);
    assert_eq!(fits.get(Kind::Peer, &Key::Pair { from: 0, to: 0 }), None);
}

#[test]
fn a_class_names_the_spread_of_its_pairs() {
    let mut observations = Observations::default();
    pairs(&mut observations);
    let fits = observations.fit(None);
    let spread = fits.get(Kind::Peer, &Key::Class { path: IntraNode }).unwrap().spread.clone().unwrap();
    assert_eq!(spread.count, 4);
    assert!(close(spread.min, 40e9) && close(spread.median, 41.5e9) && close(spread.max, 43e9), "{spread:?}");
    assert_eq!((spread.min_key, spread.max_key), (Key::Pair { from: 0, to: 1 }, Key::Pair { from: 3, to: 2 }));
    assert!(fits.single.iter().all(|fit| fit.spread.is_none()));
}

#[test]
fn a_fan_is_keyed_by_root_and_peers_and_fitted_from_both_sides() {
    let mut observations = Observations::default();
    pairs(&mut observations);
    fan(&mut observations, Fan::In, 0, &[3, 2], |_| InterNode);
    fan(&mut observations, Fan::In, 0, &[2, 1], |peer| if peer == 1 { IntraNode } else { InterNode });
    fan(&mut observations, Fan::Out, 0, &[2, 3], |_| InterNode);
    for one in [Fan::In, Fan::Out] {
        fan(&mut observations, one, 0, &[2], |_| InterNode);
    }
    let fits = observations.fit(Some(Confidence::usual()));
    let key = Key::Fan { root: 0, peers: [2, 3].into() };
    for (kind, n, alpha, gbps) in [
        // two peers, two sizes, 6 repeats; the root's time once a repeat, against the bytes of both
        (Kind::FanIn, 24, 45e-6, 12e9),
        (Kind::FanOut, 24, 45e-6, 12e9),
        (Kind::Receive, 12, 50e-6, 25e9),
        (Kind::Send, 12, 50e-6, 25e9),
    ] {
        let fit = fits.get(kind, &key).unwrap();
        assert_eq!(fit.n, n, "{kind:?}");
        assert!(close(fit.line.alpha, alpha) && close(fit.line.bandwidth, gbps), "{kind:?} {:?}", fit.line);
        let class = fits.get(kind, &Key::FanClass { path: InterNode, width: 2 }).unwrap();
        assert!(close(class.line.bandwidth, gbps));
        assert_eq!(class.spread.as_ref().unwrap().count, 1);
    }
    assert_eq!(fits.get(Kind::Receive, &key).unwrap().line.largest, 2 * MIB16);
    // The fan over two path classes has a fit of its own and belongs to no class.
    let mixed = fits.get(Kind::FanIn, &Key::Fan { root: 0, peers: [1, 2].into() }).unwrap();
    assert_eq!(mixed.path, None);
    assert!(!fits.classes.iter().any(|fit| fit.key == Key::FanClass { path: IntraNode, width: 2 }));
}

#[test]
fn fans_tell_what_the_root_moved_and_how_many_flows_it_served_at_once() {
    let mut observations = Observations::default();
    pairs(&mut observations);
    fan(&mut observations, Fan::In, 0, &[3, 2], |_| InterNode);
    fan(&mut observations, Fan::Out, 0, &[2, 3], |_| InterNode);
    fan(&mut observations, Fan::Out, 0, &[1, 9], |_| IntraNode);
    let fits = observations.fit(Some(Confidence::usual()));
    let rate = fits.fans.iter().find(|rate| rate.fan == Fan::In && rate.bytes == MIB16).unwrap();
    assert_eq!((rate.root, &*rate.peers, rate.n, rate.path), (0, [2, 3].as_slice(), 6, Some(InterNode)));
    let whole = seconds(2 * MIB16, 50.0, 25.0);
    assert!(close(rate.root_seconds, whole) && close(rate.aggregate, 2.0 * 16_777_216.0 / whole));
    let interval = rate.aggregate_ci.unwrap();
    assert!(close(interval.low, rate.aggregate) && close(interval.high, rate.aggregate));
    // Each flow alone runs at 20 GB/s to rank 0, at 16 from it.
    assert!(close(rate.concurrency.unwrap(), 2.0 * 16_777_216.0 / 20e9 / whole));
    let out = |peers: &[usize]| fits.fans.iter().find(|rate| rate.fan == Fan::Out && *rate.peers == *peers && rate.bytes == MIB16);
    assert!(close(out(&[2, 3]).unwrap().concurrency.unwrap(), 2.0 * 16_777_216.0 / 16e9 / whole));
    assert_eq!(out(&[1, 9]).unwrap().concurrency, None);
}

#[test]
fn the_slowest_repeats_bound_an_aggregate_from_below() {
    let mut observations = Observations::default();
    for repeat in 0..8 {
        let root_seconds = Some(1.0 + 0.25 * repeat as f64);
        let flow = Flow::Fan { fan: Fan::In, root: 0, peers: &[1, 2], path: IntraNode, repeat, root_seconds };
        observations.push(Observation { flow, bytes: 1000, seconds: 1.0 });
    }
    let fits = observations.fit(Some(Confidence::usual()));
    // Eight times 1 .. 2.75 s: all of them are the interval of the median, 1.875 s.
    let [rate] = fits.fans.as_slice() else { panic!("{:?}", fits.fans) };
    let interval = rate.aggregate_ci.unwrap();
    assert!(close(rate.aggregate, 2000.0 / 1.875) && close(interval.low, 2000.0 / 2.75) && close(interval.high, 2000.0));
}

#[test]
fn concurrency_of_the_published_fan() {
    // 8 × B70, 0 <- [1, 2] at 256 MiB: pairs 6.0 and 53.9 GB/s, both together 12.6 GB/s.
    let size = 268_435_456;
    let whole = 2.0 * size as f64 / 12.6e9;
    let served = effective_concurrency([(size, 6.0e9), (size, 53.9e9)], whole);
    assert!((served - 1.167).abs() < 5e-4, "{served}");
    // A collapse is told as one: together slower than one by one.
    assert!(close(effective_concurrency([(100, 10.0), (100, 10.0)], 40.0), 0.5));
}

#[test]
fn relays_are_keyed_by_both_paths_and_copies_by_rank() {
    let mut observations = Observations::default();
    for bytes in [KIB64, MIB16] {
        for rank in 0..2 {
            let flow = Flow::Relay { receive_path: InterNode, send_path: IntraNode };
            observations.push(Observation { flow, bytes, seconds: seconds(bytes, 20.0, 10.0) });
            let flow = Flow::Relay { receive_path: IntraNode, send_path: InterNode };
            observations.push(Observation { flow, bytes, seconds: seconds(bytes, 25.0, 15.0) });
            let rate = if rank == 0 { 100.0 } else { 150.0 };
            observations.push(Observation { flow: Flow::Local { rank }, bytes, seconds: seconds(bytes, 1.0, rate) });
        }
    }
    let fits = observations.fit(None);
    let relay = fits.get(Kind::Relay, &Key::Relay { receive_path: IntraNode, send_path: InterNode }).unwrap();
    assert!(close(relay.line.bandwidth, 15e9) && relay.n == 4 && relay.path.is_none(), "{relay:?}");
    assert_eq!(fits.classes.iter().filter(|fit| fit.kind == Kind::Relay).count(), 2);
    assert!(close(fits.get(Kind::Local, &Key::Rank { rank: 1 }).unwrap().line.bandwidth, 150e9));
    assert_eq!(fits.get(Kind::Local, &Key::Class { path: Local }).unwrap().spread.as_ref().unwrap().count, 2);
}

#[test]
fn one_size_is_no_fit() {
    let mut observations = Observations::default();
    for _ in 0..8 {
        observations.push(Observation { flow: Flow::Peer { from: 0, to: 1, path: IntraNode }, bytes: MIB16, seconds: 1e-3 });
    }
    let fits = observations.fit(None);
    assert!(fits.classes.is_empty() && fits.single.is_empty());
}

/// Eager below 64 KiB at 2 µs and 5 GB/s, then 12 µs and 10 GB/s.
fn two_protocols() -> Fit {
    let mut points: Vec<Point> = (0..9)
        .map(|step| 4096u64 << (2 * step))
        .map(|bytes| {
            let time = if bytes < KIB64 { seconds(bytes, 2.0, 5.0) } else { seconds(bytes, 12.0, 10.0) };
            Point::of(bytes, &mut (0..8).map(|i| time * (1.0 + 0.001 * f64::from(i))).collect::<Vec<_>>())
        })
        .collect();
    Fit::of(Kind::Peer, Key::Pair { from: 0, to: 1 }, Some(IntraNode), &mut points, Some(Confidence::usual())).unwrap()
}

#[test]
fn each_protocol_has_its_own_line_and_predicts_its_own_sizes() {
    let fit = two_protocols();
    assert_eq!(fit.breakpoints().collect::<Vec<_>>(), [KIB64]);
    let [eager, rendezvous] = fit.segments.as_slice() else { panic!("{:?}", fit.segments) };
    // The repeats' median lies 0.35 % above the time.
    assert!((eager.line.alpha / 2.007e-6 - 1.0).abs() < 1e-6 && (rendezvous.line.bandwidth * 1.0035 / 10e9 - 1.0).abs() < 1e-6);
    assert!(rendezvous.intervals.unwrap().bandwidth.contains(rendezvous.line.bandwidth));
    assert!(close(fit.predict(4096).unwrap(), eager.line.seconds(4096)));
    assert!(close(fit.predict(40_000).unwrap(), eager.line.seconds(40_000)));
    assert!(close(fit.predict(KIB64).unwrap(), rendezvous.line.seconds(KIB64)));
    // One line misses by over 25 %; that of the larger messages does not, and it is the one that speaks of still larger ones.
    assert!(fit.line.max_rel_error > EXTRAPOLATION_LIMIT && fit.line.predict(1 << 30).is_err());
    assert!(close(fit.predict(1 << 30).unwrap(), rendezvous.line.seconds(1 << 30)));
}

#[test]
fn fits_are_written_as_objects_with_plain_units() {
    let mut points = [Point::of(1000, &mut [2e-6; 6]), Point::of(2000, &mut [3e-6; 6])];
    let fit = Fit::of(Kind::Peer, Key::Pair { from: 2, to: 0 }, Some(IntraNode), &mut points, Some(Confidence::usual())).unwrap();
    let written = serde_json::to_value(&fit).unwrap();
    let number = |name: &str| written[name].as_f64().unwrap();
    assert_eq!(written["pattern"], "peer");
    assert_eq!(written["key"], json!({"from": 2, "to": 0}));
    assert_eq!(written["path"], "intra_node");
    assert!((number("alpha_us") - 1.0).abs() < 1e-9 && (number("gbps") - 1.0).abs() < 1e-9 && number("max_rel_error") < 1e-9);
    assert!((written["alpha_ci"][1].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!((written["gbps_ci"][0].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert_eq!((number("n"), number("sizes"), number("smallest"), number("largest")), (12.0, 2.0, 1000.0, 2000.0));
    assert_eq!(written["breakpoints"], json!([]));
    assert!(written.get("segments").is_none() && written.get("spread").is_none());
}

#[test]
fn what_is_not_finite_or_not_known_is_null() {
    let mut points = [Point::of(8, &mut [2e-6]), Point::of(64, &mut [1e-6])];
    let fit = Fit::of(Kind::Local, Key::Rank { rank: 0 }, Some(Local), &mut points, Some(Confidence::usual())).unwrap();
    let written = serde_json::to_value(&fit).unwrap();
    assert_eq!((&written["gbps"], &written["alpha_ci"], &written["gbps_ci"]), (&Value::Null, &Value::Null, &Value::Null));
    let breaks = serde_json::to_value(two_protocols()).unwrap();
    assert_eq!(breaks["breakpoints"], json!([KIB64]));
    assert_eq!(breaks["segments"].as_array().unwrap().len(), 2);
}

#[test]
fn all_fits_are_one_array_and_classes_tell_their_spread() {
    let mut observations = Observations::default();
    pairs(&mut observations);
    fan(&mut observations, Fan::In, 0, &[3, 2], |_| InterNode);
    let fits = observations.fit(None);
    let written = serde_json::to_value(&fits).unwrap();
    assert_eq!(written.as_array().unwrap().len(), fits.classes.len() + fits.single.len());
    assert_eq!(written[0]["spread"]["min_key"], json!({"from": 0, "to": 1}));
    let fans = serde_json::to_value(&fits.fans).unwrap();
    assert_eq!((&fans[0]["pattern"], &fans[0]["peers"], &fans[0]["gbps_ci"]), (&json!("fan_in"), &json!([2, 3]), &Value::Null));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_order_of_observations_does_not_matter(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let peers = [[1, 2], [2, 3]];
        let mut all = Vec::new();
        for bytes in [4096u64, KIB64, 1 << 20, MIB16] {
            for repeat in 0..7 {
                for from in 0..3usize {
                    let path = if from == 0 { IntraNode } else { InterNode };
                    let time = seconds(bytes, 20.0, 10.0) * (1.0 + 0.1 * random.f64());
                    all.push(Observation { flow: Flow::Peer { from, to: 3, path }, bytes, seconds: time });
                    all.push(Observation { flow: Flow::Relay { receive_path: path, send_path: InterNode }, bytes, seconds: time });
                    let root_seconds = Some(seconds(2 * bytes, 20.0, 12.0) * (1.0 + 0.01 * repeat as f64));
                    let flow = Flow::Fan { fan: Fan::In, root: 0, peers: &peers[from % 2], path, repeat, root_seconds };
                    all.push(Observation { flow, bytes, seconds: time });
                }
            }
        }
        let fit = |all: &[Observation<'_>]| {
            let mut observations = Observations::default();
            observations.extend(all.iter().copied());
            observations.fit(Some(Confidence::usual()))
        };
        let before = fit(&all);
        random.shuffle(&mut all);
        prop_assert_eq!(&before, &fit(&all));
        let sorted = |fits: &[Fit]| fits.is_sorted_by(|a, b| (a.kind, &a.key) < (b.kind, &b.key));
        prop_assert!(sorted(&before.classes) && sorted(&before.single));
    }
}
