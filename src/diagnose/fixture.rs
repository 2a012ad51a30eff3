//! Measured matrices made by hand, for the tests of rules.

use super::{Measured, PairClass, PairSeen, Pairs, Provenance};
use crate::fit::{Interval, median};
use crate::sample::{EngineKind, Memory, MoverKind, Status};
use crate::topology::{Efficiency, Level, PathClass, Placement, Router, Topology, Units, path_of};

/// What a pair gives.
#[derive(Debug, Clone, Copy)]
pub struct Gives {
    /// GB/s at 256 MiB
    pub gbps: f64,
    /// µs at 4 KiB
    pub small: f64,
    pub expected: f64,
    pub n: u32,
    /// half-width of the rate's interval over the rate
    pub within: f64,
    pub scatter: f64,
    pub drift: f64,
    pub fit_error: f64,
    pub status: Status,
}

/// A healthy pair of so many GB/s.
pub const fn gives(gbps: f64) -> Gives {
    Gives { gbps, small: 20.0, expected: f64::NAN, n: 10, within: 0.01, scatter: 0.01, drift: 1.0, fit_error: 0.02, status: Status::Ok }
}

/// Hosts of so many ranks on so many sockets each, and what each pair gives; `None` for pairs that were not measured. Equal ranks are
/// copies in place.
pub fn measured(hosts: usize, ranks: usize, sockets: usize, pair: impl Fn(usize, usize) -> Option<Gives>) -> Measured {
    let place = |rank| Placement {
        rank,
        host: format!("node{}", rank / ranks),
        numa: (sockets > 0).then(|| rank % ranks * sockets / ranks),
        ..Placement::default()
    };
    with_topology(Topology::of((0..hosts * ranks).map(place).collect()), pair)
}

/// The same, on a topology of one's own.
pub fn with_topology(topology: Topology, pair: impl Fn(usize, usize) -> Option<Gives>) -> Measured {
    let (units, efficiency) = (Units::of(&topology), Efficiency::default());
    let router = Router::new(&topology, &efficiency);
    let node_of = topology.node_of();
    let world = topology.world();
    let mut classes: Vec<PairClass> = Vec::new();
    let (mut peer, mut local) = (Vec::new(), Vec::new());
    for (from, to) in (0..world).flat_map(|from| (0..world).map(move |to| (from, to))) {
        let Some(gives) = pair(from, to) else { continue };
        let path = path_of(&node_of, from, to);
        let same = units.unit(Level::Socket, from).zip(units.unit(Level::Socket, to)).map(|(a, b)| a == b);
        let key = (path, router.label(from, to), same.filter(|_| path == PathClass::IntraNode));
        let class = classes.iter().position(|class| (class.path, class.label, class.same_socket) == key).unwrap_or_else(|| {
            let (path, label, same_socket) = key;
            classes.push(PairClass { path, label, same_socket, usual: f64::NAN, usual_small: f64::NAN, count: 0 });
            classes.len() - 1
        });
        let rate = if gives.status == Status::Ok { gives.gbps * 1e9 } else { f64::NAN };
        let expected = if gives.expected.is_nan() { router.expected(from, to).unwrap_or(f64::NAN) } else { gives.expected * 1e9 };
        let interval = Interval { low: rate * (1.0 - gives.within), high: rate * (1.0 + gives.within) };
        let seen = PairSeen {
            from: from as u32,
            to: to as u32,
            class: class as u16,
            status: gives.status,
            n: if gives.status == Status::Ok { gives.n } else { 0 },
            rate,
            interval: Some(interval).filter(|_| gives.n >= 6 && rate.is_finite()),
            expected,
            small: gives.small * 1e-6,
            fit_error: gives.fit_error as f32,
            scatter: gives.scatter as f32,
            drift: gives.drift as f32,
        };
        if from == to { local.push(seen) } else { peer.push(seen) }
    }
    for (at, class) in classes.iter_mut().enumerate() {
        let of = || peer.iter().chain(&local).filter(|pair| usize::from(pair.class) == at && pair.rate.is_finite());
        class.usual = median(&mut of().map(|pair| pair.rate).collect::<Vec<_>>());
        class.usual_small = median(&mut of().map(|pair| pair.small).collect::<Vec<_>>());
        class.count = of().count();
    }
    Measured {
        units,
        efficiency,
        router,
        provenance: Provenance {
            engine: EngineKind::Sim,
            mover: MoverKind::Simulated,
            memory: Memory::Host,
            window: 1,
            group: Vec::new(),
            software: Vec::new(),
            environment: Vec::new(),
        },
        bytes: 256 << 20,
        small_bytes: 4096,
        sizes: vec![4096, 1 << 20, 256 << 20],
        classes,
        peer: Pairs::new(world, peer),
        duplex: Pairs::default(),
        local: Pairs::new(world, local),
        together: Vec::new(),
        lost: Vec::new(),
        tests: Vec::new(),
        executed: Vec::new(),
        gpus: Vec::new(),
        topology,
    }
}
