//! What was published of machines comes back from sweeps of their fabrics (issue 3, must show c). Figures re-typed from the threads.

use toposcope::fit::{Fit, Key, Kind};
use toposcope::sample::Pattern;
use toposcope::sweep::{Cell, Peers};
use toposcope::topology::PathClass;

use super::*;

const LARGEST: u64 = 256 << 20;

#[track_caller]
fn near(what: &str, found: f64, published: f64, part: f64) {
    assert!((found / published - 1.0).abs() <= part, "{what}: {found} instead of {published}, {:+.1} %", 100.0 * (found / published - 1.0));
}

fn class(fits: &Fits, kind: Kind, path: PathClass) -> &Fit {
    fits.get(kind, &Key::Class { path }).unwrap()
}

/// "deepspeedai#8966 link calibration, same machines": α in µs and GB/s of each path, and the pairs furthest apart.
#[test]
fn two_hosts_of_h20_come_back_with_the_pairs_that_lie_furthest_apart() {
    let fabric = shipped("h20-2x8");
    let fits = sweep(&fabric, &calibration(0.05), true).fits();
    for (kind, path, alpha, rate) in [
        (Kind::Local, PathClass::Local, 9.4, 1871.0),
        (Kind::Peer, PathClass::IntraNode, 60.3, 53.6),
        (Kind::Peer, PathClass::InterNode, 91.0, 20.4),
    ] {
        let line = class(&fits, kind, path).line;
        near(path.name(), line.alpha * 1e6, alpha, 0.03);
        near(path.name(), line.bandwidth / 1e9, rate, 0.03);
    }
    // Others are as slow as the slowest to a thousandth: which one it is can only be told where there is no noise.
    let quiet = sweep(&Arc::new(Fabric::clone(&fabric).with_noise(None)), &calibration(0.05), true).fits();
    for (path, pairs, (least, slowest), median, (most, fastest)) in [
        (PathClass::IntraNode, 112, (52.6, (12, 9)), 53.6, (54.8, (1, 7))),
        (PathClass::InterNode, 128, (19.7, (15, 2)), 20.2, (28.5, (5, 11))),
    ] {
        for fits in [&fits, &quiet] {
            let spread = class(fits, Kind::Peer, path).spread.as_ref().unwrap();
            assert_eq!(spread.count, pairs);
            near("slowest", spread.min / 1e9, least, 0.01);
            near("median", spread.median / 1e9, median, 0.01);
            near("fastest", spread.max / 1e9, most, 0.01);
            for ((from, to), rate) in [(slowest, least), (fastest, most)] {
                near("named", fits.get(Kind::Peer, &Key::Pair { from, to }).unwrap().line.bandwidth / 1e9, rate, 0.01);
            }
        }
        let spread = class(&quiet, Kind::Peer, path).spread.as_ref().unwrap();
        let key = |(from, to)| Key::Pair { from, to };
        assert_eq!((&spread.min_key, &spread.max_key), (&key(slowest), &key(fastest)));
    }
}

/// "Multi-node (2 x 8 H20, RoCE 8 x 200 Gb/s per node, `node_path_of(8)`, 16 processes)".
#[test]
fn two_hosts_of_the_calibration_thread_come_back_with_their_spread() {
    let fits = sweep(&shipped("h20-2x8-pr8966"), &calibration(0.05), true).fits();
    for (path, alpha, rate) in [(PathClass::IntraNode, 57.0, 53.8), (PathClass::InterNode, 97.0, 16.6)] {
        let line = class(&fits, Kind::Peer, path).line;
        near(path.name(), line.alpha * 1e6, alpha, 0.03);
        near(path.name(), line.bandwidth / 1e9, rate, 0.03);
    }
    let spread = class(&fits, Kind::Peer, PathClass::InterNode).spread.clone().unwrap();
    near("slowest", spread.min / 1e9, 14.0, 0.03);
    near("fastest", spread.max / 1e9, 24.5, 0.03);
}

/// The root's median over the roots, GB/s: (width, `fan_out`, `fan_in`).
#[test]
fn fans_of_two_hosts_of_h20_move_what_their_roots_moved() {
    for (peers, path, published) in [
        (Peers::SameHost, PathClass::IntraNode, [(7, 79.5, 94.4)].as_slice()),
        (Peers::CrossHost, PathClass::InterNode, [(4, 69.2, 22.2), (8, 78.3, 22.6)].as_slice()),
    ] {
        let widths = published.iter().map(|fan| fan.0).collect();
        let settings = SweepSettings { patterns: vec![Pattern::FanOut, Pattern::FanIn], widths, peers, ..calibration(0.05) };
        let fits = sweep(&shipped("h20-2x8"), &settings, true).fits();
        for &(width, out, into) in published {
            for (kind, rate) in [(Kind::Send, out), (Kind::Receive, into)] {
                let spread = fits.get(kind, &Key::FanClass { path, width }).unwrap().spread.clone().unwrap();
                assert_eq!(spread.count, 16);
                near(&format!("{kind:?} {width}"), spread.median / 1e9, rate, 0.02);
            }
        }
    }
}

/// "Pair bandwidth, GB/s (row = sender, column = receiver)" of 8 B70, 256 MiB.
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
fn eight_b70_give_the_published_matrix_and_its_asymmetries() {
    for told in [true, false] {
        let run = sweep(&shipped("b70-8"), &calibration(0.05), told);
        let rate = |from, to| run.model.cells.get(Cell { pattern: Pattern::Peer, from, to }, LARGEST).unwrap().bandwidth() / 1e9;
        let pairs = || (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to);
        for (from, to) in pairs() {
            near(&format!("{from}→{to}"), rate(from, to), B70[from][to], 1e-9);
        }
        // The thread tells of 2→0 and 0→2, 6.8 times; the largest ratio of the matrix is that of 3→1 and 1→3.
        let ratio = |(from, to): (usize, usize)| rate(from, to) / rate(to, from);
        let largest = pairs().max_by(|&a, &b| ratio(a).total_cmp(&ratio(b))).unwrap();
        assert_eq!(largest, (3, 1));
        near("3→1 over 1→3", ratio((3, 1)), 53.5 / 3.6, 1e-9);
        near("2→0 over 0→2", ratio((2, 0)), 53.9 / 7.9, 1e-9);
    }
}
