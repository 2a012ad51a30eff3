//! Orders for engines, and what must come of them.

use toposcope::sample::{MoverKind, Pattern};
use toposcope::sweep::{Buffers, Cell, Group, Probe, Target};
use toposcope::transport::{End, Order, ProbeReport, Repeat, Setup};

/// As many as the widest probe here needs.
pub const LANES: usize = 4;

pub fn setup(mover: MoverKind, arena: u64, lanes: usize) -> Setup {
    Setup::host(mover, Buffers::Rotate, arena, lanes, 3)
}

/// 3 repeats after 2 warm-ups, two messages outstanding.
pub fn pair(pattern: Pattern, from: usize, to: usize) -> Order {
    let probe = Probe::pair(0, Cell { pattern, from, to }, 40_000, 3);
    Order { probe, window: 2, warmup: 2, timeout: 60.0 }
}

pub fn duplex(from: usize, to: usize) -> Order {
    pair(Pattern::Duplex, from, to)
}

fn group(group: Group, flows: Vec<(usize, usize)>) -> Order {
    let mut order = pair(Pattern::Peer, 0, 0);
    (order.probe.target, order.probe.flows) = (Target::Group(group), flows);
    order
}

pub fn fan_in(root: usize, peers: &[usize]) -> Order {
    group(Group::fan(Pattern::FanIn, root, peers.to_vec()), peers.iter().map(|&peer| (peer, root)).collect())
}

pub fn fan_out(root: usize, peers: &[usize]) -> Order {
    group(Group::fan(Pattern::FanOut, root, peers.to_vec()), peers.iter().map(|&peer| (root, peer)).collect())
}

pub fn relay(ranks: &[usize], shift: usize) -> Order {
    let to = |at: usize| ranks[(at + shift) % ranks.len()];
    group(Group::relay(shift), ranks.iter().enumerate().map(|(at, &from)| (from, to(at))).collect())
}

pub fn custom(flows: &[(usize, usize)]) -> Order {
    group(Group::custom(1), flows.to_vec())
}

/// Every pattern among four ranks.
pub fn every() -> [Order; 13] {
    [
        pair(Pattern::Peer, 3, 0),
        pair(Pattern::Local, 1, 1),
        duplex(0, 3),
        duplex(1, 2),
        fan_in(0, &[1, 2, 3]),
        fan_in(2, &[0]),
        fan_in(3, &[1, 2]),
        fan_out(0, &[1, 2, 3]),
        fan_out(1, &[0, 3]),
        relay(&[0, 1, 2, 3], 1),
        relay(&[0, 1, 2, 3], 2),
        relay(&[1, 2, 3], 2),
        custom(&[(1, 0), (2, 0), (1, 0), (0, 0), (0, 1), (3, 3), (3, 2)]),
    ]
}

/// Every transfer has every repeat once, warm-ups apart, each with its time and whole windows; a fan's root its own times.
#[track_caller]
pub fn whole(order: &Order, report: &ProbeReport) {
    let what = order.probe.describe();
    assert_eq!(report.end, End::Complete, "{what}");
    let flows = u32::try_from(order.probe.flows().len()).unwrap();
    let mut wanted: Vec<(u32, bool, u32)> = Vec::new();
    for flow in 0..flows {
        wanted.extend((0..order.probe.repeats).map(|repeat| (flow, false, repeat)));
        wanted.extend((0..order.warmup).map(|repeat| (flow, true, repeat)));
    }
    let mut found: Vec<(u32, bool, u32)> = report.repeats.iter().map(|r| (r.flow, r.warmup, r.repeat)).collect();
    found.sort_unstable();
    assert_eq!(found, wanted, "{what}");
    let good = |repeat: &Repeat| {
        let windows = repeat.messages / u64::from(order.window);
        let rate = order.probe.bytes as f64 * repeat.messages as f64 / repeat.seconds;
        // A terabyte a second is nothing that these cores can do.
        windows > 0 && repeat.messages.is_multiple_of(u64::from(order.window)) && rate < 1e12 && repeat.ack_seconds >= 0.0
    };
    assert!(report.repeats.iter().all(good), "{what}: {report:?}");
    let roots = if order.probe.target.pattern().is_fan() { order.probe.repeats as usize } else { 0 };
    assert!(report.root_seconds.len() == roots && report.root_seconds.iter().all(|&seconds| seconds > 0.0), "{what}: {report:?}");
}
