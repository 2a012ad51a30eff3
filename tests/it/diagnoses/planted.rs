//! For each rule a planted fault gives its finding, at its place, first in the list (issue 5, must show c). Where the fault is, and
//! how bad, is left to the seed, as is the noise of 3 %.

use std::fmt::Write;
use std::sync::Arc;

use fastrand::Rng;
use toposcope::diagnose::{Finding, Shape, Ways};
use toposcope::fabric::Fabric;
use toposcope::sweep::SweepSettings;
use toposcope::topology::{Level, Unit};

use super::of;
use crate::closed_loop::calibration;

const RUNS: u64 = 100;

/// Of so many runs that many must be right.
const RIGHT: u64 = 98;

/// A fabric with a fault.
struct Planted {
    text: String,
    settings: SweepSettings,
    /// what is wrong where, for a message
    what: String,
    expected: Box<dyn Fn(&Finding) -> bool>,
}

impl Planted {
    fn new(text: String, what: String, expected: impl Fn(&Finding) -> bool + 'static) -> Self {
        Self { text, settings: settings(), what, expected: Box::new(expected) }
    }
}

/// Latency and bandwidth, as often as it takes for an interval.
fn settings() -> SweepSettings {
    SweepSettings { sizes: vec![4096, 64 << 20], repeats: 6, ..calibration(0.0) }
}

/// A job of hosts with two sockets each, of which nobody told the hardware.
fn job(rng: &mut Rng, hosts: usize, ranks: usize) -> String {
    format!(
        "seed = {}\n[hosts]\nmemory = \"80GiB\"\ncount = {hosts}\nranks = {ranks}\nsockets = 2\n\
         [path.local]\nalpha = \"5us\"\nrate = \"900GB/s\"\n\
         [path.same_socket]\nalpha = \"10us\"\nrate = \"52GB/s\"\n\
         [path.cross_socket]\nalpha = \"11us\"\nrate = \"30GB/s\"\n\
         {}[noise]\nkind = \"lognormal\"\ncv = 0.03\n",
        rng.u64(..1 << 40),
        if hosts > 1 { "[path.inter_node]\nalpha = \"20us\"\nrate = \"24GB/s\"\n" } else { "" }
    )
}

/// Two hosts of eight cards below four switches, with ports, and links as they should be times a share.
fn cards(rng: &mut Rng, inside: f64, across: f64, between: f64) -> String {
    format!(
        "seed = {}\n[hosts]\nmemory = \"80GiB\"\ncount = 2\nranks = 8\nsockets = 2\nswitches = 4\nnics = 4\n\
         [hardware]\ndevice = \"GPU\"\npcie = \"Gen4 x16\"\nnic = \"100Gbit/s\"\n\
         [path.local]\nalpha = \"5us\"\nrate = \"900GB/s\"\n\
         [path.same_socket]\nalpha = \"10us\"\nrate = \"{:.2}GB/s\"\n\
         [path.cross_socket]\nalpha = \"11us\"\nrate = \"{:.2}GB/s\"\n\
         [path.inter_node]\nalpha = \"20us\"\nrate = \"{:.2}GB/s\"\n\
         [noise]\nkind = \"lognormal\"\ncv = 0.03\n",
        rng.u64(..1 << 40),
        26.8 * inside,
        13.5 * across,
        11.9 * between
    )
}

/// A factor that a rate loses by.
fn factor(rng: &mut Rng) -> f64 {
    0.15 + 0.55 * rng.f64()
}

fn slow(text: &mut String, from: &str, to: &str, factor: f64) {
    writeln!(text, "[[fault]]\nkind = \"slow\"\nfrom = \"{from}\"\nto = \"{to}\"\nfactor = {factor}").unwrap();
}

/// Ranks from one number up to before another, as a set; and all others of so many.
fn split(first: usize, last: usize, world: usize) -> (String, String) {
    let set = |ranks: std::ops::Range<usize>| (!ranks.is_empty()).then(|| format!("{}-{}", ranks.start, ranks.end - 1));
    let others = [set(0..first), set(last..world)].into_iter().flatten().collect::<Vec<_>>().join(",");
    (format!("{first}-{}", last - 1), others)
}

const fn unit(level: Level, number: usize) -> Unit {
    Unit { level, number }
}

fn of_unit(unit: Unit, ways: Ways, factor: f64) -> impl Fn(&Finding) -> bool {
    move |finding| matches!(finding.shape, Shape::SlowUnit { unit: own, ways: way, share, .. } if (own, way) == (unit, ways) && (share / factor - 1.0).abs() < 0.1)
}

/// Plant it so many times; how often what is said first is right.
#[track_caller]
fn plant(name: &str, planted: impl Fn(&mut Rng) -> Planted) {
    let (mut right, mut wrong) = (0, String::new());
    for seed in 0..RUNS {
        let planted = planted(&mut Rng::with_seed(seed));
        let fabric = Arc::new(Fabric::parse(&planted.text, "planted").unwrap_or_else(|error| panic!("{error}")));
        let found = of(&fabric, &planted.settings);
        if found.findings.first().is_some_and(&planted.expected) {
            right += 1;
        } else {
            let first: Vec<String> =
                found.findings.iter().take(4).map(|finding| format!("{:?} {} {}", finding.severity, finding.id, finding.title)).collect();
            writeln!(wrong, "seed {seed}, {}: {first:#?}", planted.what).unwrap();
        }
    }
    println!("{name}: {right} of {RUNS}");
    assert!(right >= RIGHT, "{name}: {right} of {RUNS}\n{wrong}");
}

#[test]
fn a_slow_rank() {
    plant("slow rank", |rng| {
        let mut text = job(rng, 3, 4);
        let (rank, lost, way) = (rng.usize(..12), factor(rng), rng.usize(..3));
        let (own, all) = (rank.to_string(), "0-11");
        if way != 1 {
            slow(&mut text, &own, all, lost);
        }
        if way != 0 {
            slow(&mut text, all, &own, lost);
        }
        let ways = [Ways::Sends, Ways::Receives, Ways::Both][way];
        Planted::new(text, format!("rank {rank} {ways:?} {lost:.2}"), of_unit(unit(Level::Rank, rank), ways, lost))
    });
}

#[test]
fn a_slow_host() {
    plant("slow host", |rng| {
        let mut text = job(rng, 4, 4);
        let (host, lost, way) = (rng.usize(..4), factor(rng), rng.usize(..3));
        let (own, others) = split(4 * host, 4 * host + 4, 16);
        if way != 1 {
            slow(&mut text, &own, &others, lost);
        }
        if way != 0 {
            slow(&mut text, &others, &own, lost);
        }
        let ways = [Ways::Sends, Ways::Receives, Ways::Both][way];
        Planted::new(text, format!("host {host} {ways:?} {lost:.2}"), of_unit(unit(Level::Host, host), ways, lost))
    });
}

#[test]
fn a_slow_socket() {
    plant("slow socket", |rng| {
        let mut text = job(rng, 3, 4);
        let (socket, lost, sends) = (rng.usize(..6), factor(rng), rng.bool());
        let (own, others) = split(2 * socket, 2 * socket + 2, 12);
        let (from, to) = if sends { (&own, &others) } else { (&others, &own) };
        slow(&mut text, from, to, lost);
        let ways = if sends { Ways::Sends } else { Ways::Receives };
        Planted::new(text, format!("socket {socket} {ways:?} {lost:.2}"), of_unit(unit(Level::Socket, socket), ways, lost))
    });
}

#[test]
fn a_slow_switch() {
    plant("slow switch", |rng| {
        let mut text = cards(rng, 1.0, 1.0, 1.0);
        let (switch, lost, sends) = (rng.usize(..8), factor(rng), rng.bool());
        let (own, others) = split(2 * switch, 2 * switch + 2, 16);
        let (from, to) = if sends { (&own, &others) } else { (&others, &own) };
        slow(&mut text, from, to, lost);
        let ways = if sends { Ways::Sends } else { Ways::Receives };
        Planted::new(text, format!("switch {switch} {ways:?} {lost:.2}"), of_unit(unit(Level::Switch, switch), ways, lost))
    });
}

#[test]
fn a_slow_way_between_two_groups() {
    plant("slow between", |rng| {
        let mut text = job(rng, 3, 4);
        let (level, of, count) = if rng.bool() { (Level::Host, 4, 3) } else { (Level::Socket, 2, 6) };
        let (from, lost) = (rng.usize(..count), factor(rng));
        let to = (from + rng.usize(1..count)) % count;
        slow(&mut text, &split(of * from, of * from + of, 12).0, &split(of * to, of * to + of, 12).0, lost);
        Planted::new(
            text,
            format!("{level:?} {from} to {to} {lost:.2}"),
            move |finding| matches!(finding.shape, Shape::SlowBetween { from: a, to: b, share } if (a, b) == (unit(level, from), unit(level, to)) && (share / lost - 1.0).abs() < 0.1),
        )
    });
}

#[test]
fn a_slow_pair() {
    plant("slow pair", |rng| {
        let mut text = job(rng, 2, 8);
        let (from, lost, both) = (rng.usize(..16), factor(rng), rng.bool());
        let to = (from + rng.usize(1..16)) % 16;
        slow(&mut text, &from.to_string(), &to.to_string(), lost);
        if both {
            slow(&mut text, &to.to_string(), &from.to_string(), lost);
        }
        Planted::new(text, format!("{from}→{to} {lost:.2} both {both}"), move |finding| {
            let Shape::SlowPair { from: a, to: b, .. } = finding.shape else { return false };
            ((a, b) == (from, to) || (both && (b, a) == (from, to))) && finding.cells.len() == 1 + usize::from(both)
        })
    });
}

#[test]
fn a_slow_pair_of_which_nobody_can_tell_whose_fault_it_is() {
    // Two cards a host: near partners are one each, and far ones show no more than the slow near one gives.
    plant("slow untold", |rng| {
        let (host, lost) = (rng.usize(..4), 0.3 + 0.4 * rng.f64());
        let mut text = format!(
            "seed = {}\n[hosts]\nmemory = \"80GiB\"\ncount = 4\nranks = 2\n[path.local]\nalpha = \"5us\"\nrate = \"900GB/s\"\n\
             [path.intra_node]\nalpha = \"10us\"\nrate = \"50GB/s\"\n[path.inter_node]\nalpha = \"20us\"\nrate = \"12GB/s\"\n\
             [noise]\nkind = \"lognormal\"\ncv = 0.03\n",
            rng.u64(..1 << 40)
        );
        let (from, to) = (2 * host, 2 * host + 1);
        slow(&mut text, &from.to_string(), &to.to_string(), lost);
        Planted::new(
            text,
            format!("{from}→{to} {lost:.2}"),
            move |finding| matches!(finding.shape, Shape::SlowUntold { from: a, to: b, .. } if (a, b) == (from, to)),
        )
    });
}

#[test]
fn directions_that_differ() {
    plant("asymmetry, two ranks", |rng| {
        let (rate, lost) = (5.0 + 40.0 * rng.f64(), factor(rng));
        let text = format!(
            "seed = {}\n[hosts]\nmemory = \"80GiB\"\ncount = 2\nranks = 1\n[path.local]\nalpha = \"5us\"\nrate = \"900GB/s\"\n\
             [path.inter_node]\nalpha = \"20us\"\nrate = \"{rate}GB/s\"\n[noise]\nkind = \"lognormal\"\ncv = 0.03\n",
            rng.u64(..1 << 40)
        );
        let from = rng.usize(..2);
        let mut text = text;
        slow(&mut text, &from.to_string(), &(1 - from).to_string(), lost);
        Planted::new(
            text,
            format!("{from} {lost:.2}"),
            move |finding| matches!(finding.shape, Shape::Asymmetry { from: a, to: b, .. } if (b, a) == (from, 1 - from)),
        )
    });
    // As on the B70 box: two cards of a socket that send slowly to their neighbours, and well to the other socket.
    plant("asymmetry, near senders", |rng| {
        let mut text = job(rng, 1, 8);
        let (socket, first) = (rng.usize(..2), rng.usize(..4));
        let second = (first + rng.usize(1..4)) % 4;
        let near = split(4 * socket, 4 * socket + 4, 8).0;
        let senders = [4 * socket + first, 4 * socket + second];
        for sender in senders {
            slow(&mut text, &sender.to_string(), &near, 0.07 + 0.15 * rng.f64());
        }
        Planted::new(
            text,
            format!("socket {socket}, {senders:?}"),
            move |finding| matches!(finding.shape, Shape::Asymmetry { from, to, .. } if senders.contains(&to) && from / 4 == socket),
        )
    });
}

#[test]
fn a_class_that_is_slow_as_a_whole() {
    plant("slow class", |rng| {
        let (which, lost) = (rng.usize(..2), 0.15 + 0.4 * rng.f64());
        // Were cards below one switch slow, they would be slower than far ones: that is another finding.
        let text = if which == 0 { cards(rng, 1.0, lost, 1.0) } else { cards(rng, 1.0, 1.0, lost) };
        let text =
            if which == 0 { text.replace("rate = \"11.90GB/s\"", "rate = \"1.50GB/s\"").replace("100Gbit/s", "13Gbit/s") } else { text };
        Planted::new(text, format!("class {which} {lost:.2}"), move |finding| {
            let cells = if which == 0 { 64 } else { 128 };
            matches!(finding.shape, Shape::SlowClass { share, .. } if (share / lost - 1.0).abs() < 0.15 && finding.cells.len() == cells)
        })
    });
}

#[test]
fn near_pairs_that_are_slower_than_far_ones() {
    plant("inverted", |rng| {
        let lost = 0.2 + 0.5 * rng.f64();
        let text = job(rng, 2, 8).replace("rate = \"52GB/s\"", &format!("rate = \"{}GB/s\"", 30.0 * lost));
        Planted::new(
            text,
            format!("{lost:.2}"),
            move |finding| matches!(finding.shape, Shape::Inverted { ratio, .. } if (ratio / lost - 1.0).abs() < 0.1),
        )
    });
}

#[test]
fn latency_of_a_rank_and_between_hosts() {
    plant("latency of a rank", |rng| {
        let mut text = job(rng, 2, 4);
        let (rank, ratio) = (rng.usize(..8), 4.0 + 10.0 * rng.f64());
        for other in (0..8).filter(|&other| other != rank) {
            let (alpha, rate) = match (other / 4 == rank / 4, other / 2 == rank / 2) {
                (false, _) => (20.0, 24),
                (_, true) => (10.0, 52),
                (_, false) => (11.0, 30),
            };
            for (from, to) in [(rank, other), (other, rank)] {
                writeln!(text, "[[pair]]\nfrom = {from}\nto = {to}\nrate = \"{rate}GB/s\"\nalpha = \"{:.2}us\"", alpha * ratio).unwrap();
            }
        }
        Planted::new(
            text,
            format!("rank {rank} {ratio:.1}"),
            move |finding| matches!(&finding.shape, Shape::HighLatency { ranks, whole: false, .. } if *ranks == [rank]),
        )
    });
    plant("latency between hosts", |rng| {
        let far = 40.0 + 200.0 * rng.f64();
        let text = cards(rng, 1.0, 1.0, 1.0)
            .replace("\"10us\"", "\"1.0us\"")
            .replace("\"11us\"", "\"1.1us\"")
            .replace("\"20us\"", &format!("\"{far:.1}us\""));
        Planted::new(text, format!("{far:.0} µs"), |finding| matches!(finding.shape, Shape::HighLatency { whole: true, .. }))
    });
}

#[test]
fn a_rank_that_answers_nobody_and_one_that_is_lost() {
    plant("dead", |rng| {
        let mut text = job(rng, 3, 4);
        let (rank, all) = (rng.usize(..12), rng.bool());
        let other = (rank + rng.usize(1..12)) % 12;
        let to = if all { "0-11".to_owned() } else { other.to_string() };
        writeln!(text, "[[fault]]\nkind = \"dead\"\nfrom = {rank}\nto = \"{to}\"").unwrap();
        Planted::new(text, format!("{rank} to {to}"), move |finding| match &finding.shape {
            Shape::Failed { ranks, corrupt: false, .. } if all => *ranks == [rank] && finding.cells.len() == 11,
            Shape::Failed { ranks, corrupt: false, pairs } => ranks.is_empty() && *pairs == [(rank, other)],
            _ => false,
        })
    });
    plant("lost", |rng| {
        let mut text = job(rng, 2, 4);
        let (rank, after) = (rng.usize(..8), rng.usize(1..60));
        writeln!(text, "[[fault]]\nkind = \"hang\"\nrank = {rank}\nafter = {after}").unwrap();
        Planted::new(
            text,
            format!("{rank} after {after}"),
            move |finding| matches!(&finding.shape, Shape::Failed { ranks, .. } if *ranks == [rank]),
        )
    });
}

#[test]
fn repeats_that_scatter() {
    plant("flapping", |rng| {
        let mut text = job(rng, 2, 4);
        let rank = rng.usize(..8);
        let probability = 0.3 + 0.1 * rng.f64();
        writeln!(text, "[[fault]]\nkind = \"flaky\"\nfrom = {rank}\nprobability = {probability}\nfactor = 0.3").unwrap();
        let planted = Planted::new(
            text,
            format!("{rank} {probability:.2}"),
            move |finding| matches!(&finding.shape, Shape::Unsteady { pairs, .. } if pairs.len() > 3 && pairs.iter().all(|&(from, _)| from == rank)),
        );
        Planted { settings: SweepSettings { repeats: 24, ..settings() }, ..planted }
    });
}

#[test]
fn sizes_that_no_line_fits() {
    // A cache that ends between the sizes that were measured, which are too few to show where.
    plant("poor fit", |rng| {
        let fast = 3.0 + 3.0 * rng.f64();
        let text = job(rng, 1, 8).replace(
            "rate = \"52GB/s\"",
            &format!("rate = \"52GB/s\"\nbreakpoints = [{{ below = \"2MiB\", alpha = \"10us\", rate = \"{:.0}GB/s\" }}]", 52.0 * fast),
        );
        let planted = Planted::new(text, format!("{fast:.1}"), |finding| {
            matches!(&finding.shape, Shape::PoorFit { error, .. } if *error > 0.25)
                && finding.cells.iter().all(|(from, to)| from / 4 == to / 4)
        });
        Planted { settings: SweepSettings { sizes: vec![4096, 1 << 20, 16 << 20], ..settings() }, ..planted }
    });
}

#[test]
fn more_than_the_hardware_has() {
    plant("above nominal", |rng| {
        let times = 1.3 + rng.f64();
        let text = cards(rng, 1.0, 1.0, times);
        Planted::new(
            text,
            format!("{times:.2}"),
            |finding| matches!(finding.shape, Shape::AboveNominal { from, to, .. } if from / 8 != to / 8),
        )
    });
}
