//! The machines that come with the program, against what was published of them. Figures re-typed from the threads, GB/s.

use crate::fabric::{Demand, Fabric, ResourceKind, Transfer, completions, shares};
use crate::topology::PathClass;

const LARGE: u64 = 256 << 20;

fn shipped(name: &str) -> Fabric {
    Fabric::shipped(name).unwrap().unwrap_or_else(|error| panic!("{error}"))
}

fn gbps(fabric: &Fabric, from: usize, to: usize) -> f64 {
    fabric.truth(from, to).rate / 1e9
}

/// What the root of a fan of `bytes` from each sees, GB/s: all bytes over the time until the last is there.
fn fan(fabric: &Fabric, pairs: &[(usize, usize)], bytes: u64) -> f64 {
    let demands: Vec<Demand> = pairs.iter().map(|&(from, to)| Demand { from, to, bytes }).collect();
    let transfers: Vec<Transfer> = fabric
        .routes(&demands)
        .into_iter()
        .map(|route| Transfer { flow: route.flow, start: 0.0, alpha: route.alpha, bytes: bytes as f64 })
        .collect();
    let last = completions(&transfers).into_iter().fold(0.0, f64::max);
    (pairs.len() as u64 * bytes) as f64 / last / 1e9
}

fn fan_in(fabric: &Fabric, root: usize, peers: &[usize]) -> f64 {
    fan(fabric, &peers.iter().map(|&peer| (peer, root)).collect::<Vec<_>>(), LARGE)
}

fn fan_out(fabric: &Fabric, root: usize, peers: &[usize]) -> f64 {
    fan(fabric, &peers.iter().map(|&peer| (root, peer)).collect::<Vec<_>>(), LARGE)
}

/// Smallest, median and largest.
fn range(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    (values[0], f64::midpoint(values[(values.len() - 1) / 2], values[middle]), values[values.len() - 1])
}

#[track_caller]
fn near(found: f64, published: f64, part: f64) {
    assert!((found / published - 1.0).abs() <= part, "{found} instead of {published}: {:+.1} %", 100.0 * (found / published - 1.0));
}

#[test]
fn every_shipped_file_is_read_and_tells_what_it_is() {
    let worlds: Vec<(&str, usize)> = Fabric::names().map(|name| (name, shipped(name).world())).collect();
    assert_eq!(
        worlds,
        [
            ("laptop", 4),
            ("b70-8", 8),
            ("l20-8", 8),
            ("h20-8", 8),
            ("h20-2x8", 16),
            ("h20-2x8-windows", 16),
            ("h20-2x8-pr8966", 16),
            ("nvswitch-8", 8),
            ("nvswitch-32x8", 256),
            ("nvswitch-128x8", 1024),
        ]
    );
    for name in Fabric::names() {
        let fabric = shipped(name);
        assert!(fabric.about().len() > 20 && fabric.describe().lines().count() >= 3, "{name}");
        // Nothing that a pair has alone is slowed by what it shares.
        let far = fabric.world() - 1;
        assert_eq!(fabric.truth(0, far).rate, fabric.link(0, far).rate, "{name}");
        assert!(fabric.can_bind(&[(0, far)]).is_none(), "{name}");
    }
    assert!(Fabric::shipped("cray-1").is_none());
}

#[test]
fn the_description_of_a_machine_is_short_and_whole() {
    assert_eq!(
        shipped("h20-2x8").describe(),
        "2 hosts, 8 ranks each, 8 NICs each\n\
         local: 1871 GB/s, α 9.40 µs\n\
         intra_node: 53.6 GB/s, α 60.3 µs, pairs 52.6 to 54.8 GB/s\n\
         inter_node: 20.2 GB/s, α 91.0 µs, pairs 19.7 to 28.5 GB/s\n\
         shared: send engine, receive engine, send engine (network), receive engine (network), adapters\n\
         hardware: NVIDIA H20, Gen5 x16, 18 NVLinks of 25.0 GB/s, NICs of 50.0 GB/s\n\
         noise: lognormal, 1 % of the time\n"
    );
}

/// "Pair bandwidth, GB/s" of the B70 box: row = sender.
const B70: [[f64; 8]; 8] = [
    [0.0, 8.3, 7.9, 8.3, 27.3, 27.5, 27.6, 27.8],
    [6.0, 0.0, 5.5, 3.6, 27.4, 27.5, 27.4, 27.5],
    [53.9, 53.7, 0.0, 53.6, 14.5, 14.6, 14.6, 14.6],
    [53.6, 53.5, 53.8, 0.0, 14.6, 14.6, 14.6, 14.6],
    [27.4, 27.3, 27.4, 27.3, 0.0, 14.4, 14.3, 14.4],
    [27.3, 27.3, 27.4, 27.4, 25.2, 0.0, 25.3, 25.3],
    [27.6, 27.7, 27.0, 27.3, 8.8, 8.7, 0.0, 8.6],
    [27.5, 27.8, 27.3, 27.4, 42.8, 42.9, 43.0, 0.0],
];

#[test]
fn the_b70_box_has_the_published_matrix_at_its_size_and_the_largest_asymmetry_where_it_was() {
    let fabric = shipped("b70-8");
    let mut largest = (0.0, (0, 0));
    for (from, row) in B70.iter().enumerate() {
        for (to, &rate) in row.iter().enumerate().filter(|&(to, _)| to != from) {
            let seconds = fabric.truth(from, to).seconds(LARGE);
            near(LARGE as f64 / seconds / 1e9, rate, 1e-9);
            assert_eq!(fabric.truth(from, to).alpha, 301e-6);
            let asymmetry = (fabric.truth(to, from).seconds(LARGE) / seconds).ln();
            if asymmetry > largest.0 {
                largest = (asymmetry, (from, to));
            }
        }
    }
    // 3 -> 1 is 53.5 against 3.6; of the two cards that the thread names, 2 -> 0 is 53.9 against 7.9.
    assert_eq!(largest.1, (3, 1));
    assert_eq!((fabric.truth(4, 4).alpha, gbps(&fabric, 4, 4)), (73e-6, 359.0));
}

#[test]
fn the_three_fans_of_the_b70_thread_come_out() {
    let fabric = shipped("b70-8");
    let case = |root, peers: &[usize]| (fan_in(&fabric, root, peers) * 100.0).round() / 100.0;
    // Published 12.6 (-12 %): the pair 1 -> 0 gave 7.0 in its fan of one, but 6.0 in the matrix.
    assert_eq!(case(0, &[1, 2]), 11.08);
    // Published 55.2 (+0.9 %).
    assert_eq!(case(1, &[2, 3]), 55.7);
    // Published 27.9 (+2.0 %): the cross-socket link and the receiver's turns say about the same.
    assert_eq!(case(3, &[4, 5, 6, 7]), 28.47);
}

#[test]
fn the_ranges_of_the_b70_fans_are_within_a_quarter_of_the_published() {
    let fabric = shipped("b70-8");
    // Width, published smallest and largest over the roots, and how far the fabric is off.
    for (width, low, high, off_low, off_high) in
        [(1, 7.0, 53.9, -0.143, -0.002), (2, 12.6, 55.2, -0.121, 0.009), (4, 18.7, 37.3, -0.080, 0.020), (7, 16.4, 23.6, -0.218, 0.021)]
    {
        let (least, _, most) =
            range((0..8).map(|root| fan_in(&fabric, root, &(1..=width).map(|k| (root + k) % 8).collect::<Vec<_>>())).collect());
        assert!((least / low - 1.0 - off_low).abs() < 6e-4, "width {width}: {least} is {:+.4}", least / low - 1.0);
        assert!((most / high - 1.0 - off_high).abs() < 6e-4, "width {width}: {most} is {:+.4}", most / high - 1.0);
    }
}

/// The other host's ranks from the root's own number on, or the root's own host-mates.
fn peers(root: usize, width: usize, across: bool) -> Vec<usize> {
    let host = if across { 8 - root / 8 * 8 } else { root / 8 * 8 };
    let first = usize::from(!across);
    (first..first + width).map(|k| host + (root + k) % 8).collect()
}

#[test]
fn the_two_hosts_of_the_window_thread_come_back() {
    let fabric = shipped("h20-2x8");
    let topology = fabric.topology();
    let pairs = |path: PathClass| -> Vec<((usize, usize), f64)> {
        let all = (0..16).flat_map(|from| (0..16).map(move |to| (from, to)));
        all.filter(|&(from, to)| topology.path(from, to) == path).map(|(from, to)| ((from, to), gbps(&fabric, from, to))).collect()
    };
    for (path, count, published, slowest, fastest) in [
        (PathClass::IntraNode, 112, (52.6, 53.6, 54.8), (12, 9), (1, 7)),
        (PathClass::InterNode, 128, (19.7, 20.2, 28.5), (15, 2), (5, 11)),
    ] {
        let found = pairs(path);
        assert_eq!(found.len(), count);
        let (low, median, high) = range(found.iter().map(|&(_, rate)| rate).collect());
        assert_eq!((low, (median * 1e3).round() / 1e3, high), published);
        assert_eq!(found.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0, slowest);
        assert_eq!(found.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0, fastest);
    }
    // Published fans: the median of the roots.
    for (across, width, out, into) in [(false, 1, 54.0, 53.2), (false, 7, 79.5, 94.4), (true, 4, 69.2, 22.2), (true, 8, 78.3, 22.6)] {
        near(range((0..16).map(|root| fan_out(&fabric, root, &peers(root, width, across))).collect()).1, out, 0.02);
        near(range((0..16).map(|root| fan_in(&fabric, root, &peers(root, width, across))).collect()).1, into, 0.02);
    }
    near(range((0..16).map(|root| fan_in(&fabric, root, &peers(root, 1, true))).collect()).1, 20.3, 0.02);
    // Eight pairs across at once 152.0, eight to eight 172.8 (64 MiB), staged.
    near(fan(&fabric, &(0..8).map(|rank| (rank, rank + 8)).collect::<Vec<_>>(), LARGE), 152.0, 0.04);
    near(fan(&fabric, &(0..64).map(|flow| (flow / 8, 8 + flow % 8)).collect::<Vec<_>>(), 64 << 20), 172.8, 0.01);
}

#[test]
fn the_two_hosts_with_windows_come_back() {
    let fabric = shipped("h20-2x8-windows");
    let pairs: Vec<(usize, usize)> = (0..4).map(|pair| (2 * pair, 2 * pair + 1)).collect();
    let out: Vec<(usize, usize)> = (1..8).map(|to| (0, to)).collect();
    let into: Vec<(usize, usize)> = (1..8).map(|from| (from, 0)).collect();
    let both: Vec<(usize, usize)> = (0..4).flat_map(|from| (4..8).map(move |to| (from, to))).collect();
    let across: Vec<(usize, usize)> = (0..8).map(|from| (from, from + 8)).collect();
    let far: Vec<(usize, usize)> = (8..16).map(|to| (0, to)).collect();
    for (flows, at_64, at_256) in [
        (&pairs, 999.6, 1273.0),
        (&out, 310.8, 340.3),
        (&into, 366.4, 389.8),
        (&both, 1185.4, 1334.4),
        (&vec![(0, 8)], 21.9, 22.5),
        (&far, 22.6, 22.7),
    ] {
        // A fan begins later than a pair: 7 copies are started one after another.
        near(fan(&fabric, flows, 64 << 20), at_64, 0.09);
        near(fan(&fabric, flows, LARGE), at_256, 0.03);
    }
    // At 64 MiB, half as much again was expected of eight pairs across as was seen (121.5).
    near(fan(&fabric, &across, LARGE), 179.2, 0.03);
    for (senders, gbps) in [(1, 22.3), (2, 44.5), (4, 45.5), (8, 30.5)] {
        near(fan(&fabric, &(0..senders).map(|from| (8 + from, 0)).collect::<Vec<_>>(), 1 << 30), gbps, 0.05);
    }
}

#[test]
fn the_two_hosts_of_the_calibration_thread_come_back() {
    let fabric = shipped("h20-2x8-pr8966");
    let across: Vec<f64> =
        (0..8).flat_map(|from| (8..16).flat_map(move |to| [(from, to), (to, from)])).map(|(a, b)| gbps(&fabric, a, b)).collect();
    let (low, median, high) = range(across);
    near(median, 16.6, 0.001);
    assert!((14.0..14.2).contains(&low) && (23.5..=24.5).contains(&high), "{low} {high}");
    assert_eq!((gbps(&fabric, 0, 1), fabric.truth(0, 1).alpha, fabric.truth(0, 8).alpha), (53.8, 57e-6, 97e-6));
    near(fan_in(&fabric, 3, &peers(3, 7, false)), 94.6, 0.01);
    near(fan_out(&fabric, 3, &peers(3, 8, true)), 62.1, 0.01);
}

#[test]
fn one_host_boxes_have_the_published_pairs_fans_and_duplex() {
    let h20 = shipped("h20-8");
    near(fan_out(&h20, 0, &[1, 2, 3, 4, 5, 6, 7]), 7.0 * 49.6, 0.02);
    near(fan_in(&h20, 0, &[1, 2, 3, 4, 5, 6, 7]), 7.0 * 54.5, 0.02);
    let both = h20.routes(&[(0, 1), (1, 0)].map(|(from, to)| Demand { from, to, bytes: LARGE }));
    assert!(both.iter().all(|route| (route.flow.cap / 275e9 - 0.85).abs() < 1e-12));
    let relay: Vec<Demand> = (0..8).map(|rank| Demand { from: rank, to: (rank + 1) % 8, bytes: LARGE }).collect();
    let relay: Vec<_> = h20.routes(&relay).into_iter().map(|route| route.flow).collect();
    assert!(shares(&relay).iter().all(|share| (share.rate / 275e9 - 0.85).abs() < 1e-12));
    let l20 = shipped("l20-8");
    near(fan_out(&l20, 0, &[1, 2, 3, 4, 5, 6, 7]), 7.0 * 3.6, 0.01);
    near(fan_in(&l20, 0, &[1, 2, 3, 4, 5, 6, 7]), 7.0 * 3.8, 0.01);
    // The line published for the local copy is 0.77 off at 256 MiB, where it does not stay in cache.
    let (alpha, rate) = (16e-6, 1534e9);
    let line = alpha + LARGE as f64 / rate;
    assert!((line / l20.truth(0, 0).seconds(LARGE) - 1.0 + 0.77).abs() < 0.01);
    near(l20.truth(0, 0).seconds(16 << 20), alpha + f64::from(16 << 20) / rate, 1e-9);
}

#[test]
fn rails_keep_out_of_each_others_way_and_a_full_shift_across_racks_does_not() {
    let fabric = shipped("nvswitch-128x8");
    let shift = |by: usize| -> Vec<(usize, usize)> { (0..1024).map(|rank| (rank, (rank + by) % 1024)).collect() };
    // To the next host, same rail: only the last host of each rack (16 hosts) crosses the spine.
    assert_eq!(fabric.can_bind(&shift(8)), None);
    // To the next rack: 16 ports of each leaf want 768 GB/s of 384.
    let bound = fabric.resource(fabric.can_bind(&shift(128)).unwrap()).unwrap();
    assert_eq!((bound.name.as_str(), bound.kind), ("leaf uplinks out of rail 0 of rack 0", ResourceKind::Fixed));
    // Half of them may.
    let every_other: Vec<_> = shift(128).into_iter().filter(|(rank, _)| rank / 8 % 2 == 0).collect();
    assert_eq!(fabric.can_bind(&every_other), None);
    let demands: Vec<Demand> = shift(128).into_iter().map(|(from, to)| Demand { from, to, bytes: LARGE }).collect();
    let flows: Vec<_> = fabric.routes(&demands).into_iter().map(|route| route.flow).collect();
    assert!(shares(&flows).iter().all(|share| (share.rate - 24e9).abs() < 1.0));
}
