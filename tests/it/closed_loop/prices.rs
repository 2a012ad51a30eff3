//! Prices in the closed loop (issue 6, must show b): what a sweep of a described fabric says that plans take is what the fabric itself
//! makes of them.

use toposcope::plan::price::Prices;
use toposcope::plan::{Flow, Replay, Stage, Staged, Traffic, replay};
use toposcope::sample::Pattern;
use toposcope::session::prices;
use toposcope::sweep::Peers;

use super::*;

const PART: u64 = 64 << 20;

fn traffic(ranks: usize, name: &str, flows: &[(usize, usize, usize)]) -> Traffic {
    let flow = |&(stage, from, to): &(usize, usize, usize)| Flow {
        stage,
        from,
        to,
        bytes: PART,
        messages: 1,
        after: Vec::new(),
        offset: None,
        staged: Staged::default(),
    };
    let stages = flows.iter().map(|flow| flow.0 + 1).max().unwrap_or(0);
    let stages = (0..stages).map(|stage| Stage { name: format!("{name} {stage}"), waits: true }).collect();
    Traffic { name: name.to_owned(), ranks, stages, flows: flows.iter().map(flow).collect(), ..Traffic::default() }
}

/// Fans, a relay in two stages, and each half of the ranks to the other.
fn plans(n: usize) -> Vec<Traffic> {
    let half = n / 2;
    let pairs: Vec<_> = (0..half).map(|rank| (0, rank, half + rank)).collect();
    let relay: Vec<_> = std::iter::once((0, 0, half)).chain((half + 1..n).map(|to| (1, half, to))).collect();
    vec![
        traffic(n, "one", &[(0, 0, n - 1)]),
        traffic(n, "fan in", &(1..=half).map(|from| (0, from, 0)).collect::<Vec<_>>()),
        traffic(n, "fan out", &(half..n).map(|to| (0, 0, to)).collect::<Vec<_>>()),
        traffic(n, "pairs", &pairs),
        traffic(n, "relay", &relay),
        traffic(n, "ring", &(0..n).map(|from| (0, from, (from + 1) % n)).collect::<Vec<_>>()),
    ]
}

fn both(name: &str, told: &dyn Prices, fabric: &Fabric) -> Vec<(String, f64, Replay)> {
    let one = |plan: Traffic| {
        let (truth, found) = (replay(&plan, fabric).unwrap(), replay(&plan, told).unwrap());
        println!("{name} {}: {:.3} ms of {:.3}: {}", plan.name, found.seconds * 1e3, truth.seconds * 1e3, found.bottleneck.say);
        (plan.name, found.seconds / truth.seconds - 1.0, found)
    };
    plans(fabric.world()).into_iter().map(one).collect()
}

#[test]
fn a_swept_fabric_prices_plans_as_the_fabric_does() {
    for name in ["b70-8", "h20-8", "l20-8", "h20-2x8"] {
        let fabric = shipped(name);
        let world = fabric.world();
        let widths = if world > 8 { vec![4, 7, 8] } else { vec![2, 4, 7] };
        let settings = SweepSettings {
            patterns: vec![Pattern::Local, Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::FanOut, Pattern::Relay],
            sizes: vec![4096, 1 << 20, 1 << 24, 256 << 20],
            widths,
            repeats: 6,
            // Fans of ranks of the other host, where there is one: those within a host are then not measured.
            peers: if world > 8 { Peers::CrossHost } else { Peers::Nearest },
            isolated: true,
            ..calibration(0.0)
        };
        let model = sweep(&fabric, &settings, false).model;
        let told = prices(&model);
        assert_eq!((told.world(), told.measured().ranks), (world, world));
        for (plan, off, found) in both(name, &told, &fabric) {
            let open = world > 8 && ["fan in", "relay"].contains(&plan.as_str());
            let warned: Vec<&str> = found.warnings.iter().map(|warning| warning.say.as_str()).collect();
            if open {
                assert!(warned.len() == 1 && warned[0].contains("no such fan was measured"), "{name} {plan}: {warned:?}");
            } else {
                assert!(warned.is_empty(), "{name} {plan}: {warned:?}");
                assert!(off.abs() < 0.15, "{name} {plan}: off by {off}");
            }
            assert!(found.interval.low < found.seconds && found.seconds < found.interval.high);
        }
    }
}
