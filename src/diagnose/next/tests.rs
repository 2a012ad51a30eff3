use super::*;
use crate::diagnose::{PairClass, PairSeen, Pairs, Provenance, Severity};
use crate::sample::{EngineKind, Memory, Pattern, Status};
use crate::topology::{Efficiency, PathClass, Placement, Router, Topology, Units};

const BYTES: u64 = 16 << 20;
const USUAL: f64 = 25e9;

/// Hosts of one rank each, and what some pairs of them give, as shares of what is usual.
fn seen(hosts: usize, shares: &[(usize, usize, f64)]) -> Measured {
    let place = |rank| Placement { rank, host: format!("h{rank}"), ..Placement::default() };
    let topology = Topology::of((0..hosts).map(place).collect());
    let pair = |&(from, to, share): &(usize, usize, f64)| PairSeen {
        from: from as u32,
        to: to as u32,
        class: 0,
        status: Status::Ok,
        n: 8,
        rate: share * USUAL,
        interval: None,
        expected: f64::NAN,
        small: 10e-6,
        fit_error: f32::NAN,
        scatter: 0.02,
        drift: 1.0,
    };
    let router = Router::new(&topology, &Efficiency::default());
    let class = PairClass {
        path: PathClass::InterNode,
        label: router.label(0, 1),
        same_socket: None,
        usual: USUAL,
        usual_small: 10e-6,
        count: shares.len(),
    };
    Measured {
        units: Units::of(&topology),
        efficiency: Efficiency::default(),
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
        bytes: BYTES,
        small_bytes: 4096,
        sizes: vec![4096, BYTES],
        classes: vec![class],
        peer: Pairs::new(hosts, shares.iter().map(pair).collect()),
        duplex: Pairs::default(),
        local: Pairs::default(),
        together: Vec::new(),
        lost: Vec::new(),
        tests: Vec::new(),
        executed: Vec::new(),
        gpus: Vec::new(),
        topology,
    }
}

fn finding(shape: Shape, causes: &[Cause]) -> Finding {
    let suspect = |&cause: &Cause| Suspect { cause, weight: 1.0, because: String::new(), against: String::new() };
    Finding {
        id: "one".to_owned(),
        rule: "made",
        severity: Severity::Warning,
        title: "1→4 gives 6.2 GB/s".to_owned(),
        amount: String::new(),
        weight: 1.0,
        shape,
        facts: Vec::new(),
        suspects: causes.iter().map(suspect).collect(),
        next: None,
        told: Vec::new(),
        cells: Vec::new(),
        hop: None,
    }
}

fn settled(measured: &Measured, mut finding: Finding) -> Finding {
    settle(measured, &Identified::default(), &mut finding);
    finding
}

/// A test's outcome: each set at this share of what is usual, a hundredth more or less.
fn result(test: &Test, shares: &[f64]) -> TestResult {
    let mut samples = Vec::new();
    for (set, flows) in (0_u32..).zip(&test.sets) {
        for (&(from, to), repeat) in flows.iter().flat_map(|flow| (0..test.repeats).map(move |repeat| (flow, repeat))) {
            let rate = shares[set as usize] * USUAL * (1.0 + 0.01 * f64::from(repeat % 3) - 0.01);
            let blank = Sample::blank(Pattern::Custom, from, to, test.bytes, PathClass::InterNode);
            let seconds = Some(test.bytes as f64 / rate);
            samples.push(Sample { set: Some(set), repeat, messages: 1, seconds, status: Status::Ok, ..blank });
        }
    }
    TestResult { finding: "one".to_owned(), test: test.clone(), samples, reason: String::new() }
}

fn untold() -> Finding {
    finding(Shape::SlowUntold { from: 1, to: 4, share: 0.25 }, &[])
}

/// 1→4 slow; of its ends nothing else is known, 2 and 5 do well.
fn sampled() -> Measured {
    seen(6, &[(1, 4, 0.25), (2, 5, 1.0), (5, 3, 1.01), (3, 2, 0.99)])
}

#[test]
fn whose_fault_it_is_is_asked_of_partners_that_do_well() {
    let found = settled(&sampled(), untold());
    let causes: Vec<Cause> = found.suspects.iter().map(|suspect| suspect.cause).collect();
    assert_eq!(causes, [Cause::Sender, Cause::Receiver, Cause::Way]);
    let next = found.next.unwrap();
    assert_eq!((next.test.kind, &next.test.sets[..]), (TestKind::SwapPartners, &[vec![(1, 5)], vec![(2, 4)]][..]));
    assert_eq!((next.test.bytes, next.test.repeats, &next.usual[..]), (BYTES, 8, &[USUAL, USUAL][..]));
    // Ten messages of each set at a quarter of 25 GB/s.
    assert!((next.seconds - 2.0 * (0.05 + 10.0 * BYTES as f64 / 6.25e9)).abs() < 0.01, "{}", next.seconds);
    let of = |cause: Cause| next.predictions.iter().find(|own| own.cause == cause).unwrap().shares.clone();
    let near = |(low, high): (f64, f64), share: f64| low < share && share < high && high < 1.5 * low;
    assert!(near(of(Cause::Sender)[0], 0.25) && near(of(Cause::Sender)[1], 1.0));
    assert!(near(of(Cause::Way)[0], 1.0) && near(of(Cause::Way)[1], 1.0));
}

#[test]
fn what_a_test_brings_reorders_the_causes_and_is_said_with_its_figures() {
    let mut measured = sampled();
    let test = settled(&measured, untold()).next.unwrap().test;
    for (shares, cause, words, shape) in [
        (
            [0.24, 1.0],
            Cause::Sender,
            "1→5 gives 6.00, 2→4 25.0 GB/s: it is what 1 sends",
            Shape::SlowUnit { unit: measured.units.unit(Level::Rank, 1).unwrap(), ways: Ways::Sends, share: 0.25, own_slow: false },
        ),
        (
            [0.98, 0.26],
            Cause::Receiver,
            "1→5 gives 24.5, 2→4 6.50 GB/s: it is what 4 receives",
            Shape::SlowUnit { unit: measured.units.unit(Level::Rank, 4).unwrap(), ways: Ways::Receives, share: 0.25, own_slow: false },
        ),
        (
            [1.0, 1.0],
            Cause::Way,
            "1→5 gives 25.0, 2→4 25.0 GB/s: it is the way from 1 to 4, both do well with others",
            Shape::SlowPair { from: 1, to: 4, share: 0.25 },
        ),
    ] {
        measured.tests = vec![result(&test, &shares)];
        let found = settled(&measured, untold());
        assert_eq!((found.suspects[0].cause, &found.told[..], &found.shape), (cause, &[words.to_owned()][..], &shape));
        assert_eq!(found.id, "one", "what a test is of stays the same");
        assert!(found.suspects[0].against.is_empty() && found.suspects[1..].iter().all(|own| own.against.contains("where it would give")));
        // One cause is left: nothing more to ask.
        assert_eq!(found.next, None);
    }
    let sum: f64 = settled(&measured, untold()).suspects.iter().map(|own| own.weight).sum();
    assert!((sum - 3.0).abs() < 1e-9, "weights are dealt again, not lost");
}

#[test]
fn what_does_not_decide_is_said_and_the_same_is_not_asked_again() {
    let mut measured = sampled();
    let test = settled(&measured, untold()).next.unwrap().test;
    // Half as slow at both ends: nobody foresaw that.
    measured.tests = vec![result(&test, &[0.5, 0.5])];
    let found = settled(&measured, untold());
    assert!(found.told[0].ends_with(": that does not decide it"), "{:?}", found.told);
    assert!(matches!(found.shape, Shape::SlowUntold { .. }));
    assert!(found.next.is_none_or(|next| next.test.sets != test.sets));
    // Another finding's results are no business of this one.
    measured.tests[0].finding = "another".to_owned();
    assert!(settled(&measured, untold()).told.is_empty());
}

#[test]
fn a_test_that_failed_is_said_and_weighs_nothing() {
    let mut measured = sampled();
    let test = settled(&measured, untold()).next.unwrap().test;
    measured.tests = vec![TestResult { samples: Vec::new(), reason: "1→5: no answer".to_owned(), ..result(&test, &[1.0, 1.0]) }];
    let found = settled(&measured, untold());
    assert!(found.told[0].starts_with("a test failed") && found.told[0].ends_with("1→5: no answer"), "{:?}", found.told);
    assert!(found.suspects.iter().all(|own| (own.weight - 1.0).abs() < 1e-9 && own.against.is_empty()));
}

#[test]
fn ends_that_are_known_are_not_asked_about() {
    let mut pairs = vec![(1, 4, 0.25)];
    pairs.extend([0, 2, 3, 5].iter().flat_map(|&other| [(1, other, 1.0), (other, 4, 1.0)]));
    let found =
        settled(&seen(6, &pairs), finding(Shape::SlowPair { from: 1, to: 4, share: 0.25 }, &[Cause::RouteCollision, Cause::TrainedDown]));
    // One of them is one way only.
    let next = found.next.unwrap();
    assert_eq!((next.test.kind, &next.test.sets[..]), (TestKind::Reverse, &[vec![(4, 1)]][..]));
}

#[test]
fn what_cannot_be_run_here_is_proposed_only_where_nothing_else_tells() {
    let shape = || Shape::SlowPair { from: 1, to: 4, share: 0.25 };
    // Both ends are known, the other direction, too.
    let mut pairs = vec![(1, 4, 0.25), (4, 1, 0.25)];
    pairs.extend([0, 2, 3, 5].iter().flat_map(|&other| [(1, other, 1.0), (other, 4, 1.0)]));
    let mut measured = seen(6, &pairs);
    let nothing = settled(&measured, finding(shape(), &[Cause::NoPeerAccess, Cause::Protocol])).next;
    assert!(nothing.is_none_or(|next| next.test.kind != TestKind::OtherMemory), "host memory it was");
    measured.provenance.memory = Memory::Cuda;
    let device = settled(&measured, finding(shape(), &[Cause::NoPeerAccess, Cause::Protocol])).next.unwrap();
    assert_eq!((device.test.kind, device.cannot.is_empty()), (TestKind::OtherMemory, false));
    measured.provenance.memory = Memory::Host;
    (measured.provenance.engine, measured.provenance.mover) = (EngineKind::Mpi, MoverKind::MpiSendrecv);
    let mover = settled(&measured, finding(shape(), &[Cause::NoPeerAccess, Cause::Protocol])).next.unwrap();
    assert_eq!((mover.test.kind, mover.test.mover, mover.cannot.as_str()), (TestKind::OtherMover, Some(MoverKind::MpiPut), ""));
    // Alike in all that a test could show, or alone: nothing to ask.
    for causes in [&[Cause::TrainedDown, Cause::NarrowSlot][..], &[Cause::Way], &[]] {
        assert_eq!(settled(&sampled(), finding(shape(), causes)).next, None, "{causes:?}");
    }
}

#[test]
fn slow_transfers_are_repeated_less_and_large_ones_are_not_piled_up() {
    let found = settled(&seen(6, &[(1, 4, 1e-3), (2, 5, 1.0), (5, 3, 1.0), (3, 2, 1.0)]), untold());
    let next = found.next.unwrap();
    // 16 MiB at 25 MB/s take 0.67 s: five of them.
    assert_eq!((next.test.kind, next.test.repeats), (TestKind::SwapPartners, 5));
    let depth = |bytes| {
        let mut pairs = vec![(1, 4, 0.25)];
        pairs.extend([0, 2, 3, 5].iter().flat_map(|&other| [(1, other, 1.0), (other, 4, 1.0)]));
        let measured = Measured { bytes, small_bytes: bytes, ..seen(6, &pairs) };
        settled(&measured, finding(Shape::SlowPair { from: 1, to: 4, share: 0.25 }, &[Cause::LongDistance, Cause::NarrowSlot])).next
    };
    assert_eq!(depth(1 << 20).map(|next| (next.test.kind, next.test.windows)), Some((TestKind::Depth, vec![1, 8, 64])));
    assert!(depth(64 << 20).is_none_or(|next| next.test.kind != TestKind::Depth));
}

#[test]
fn predictions_are_densities_and_their_common_part_is_what_it_says() {
    for prediction in [(0.25, 0.26), (0.5, 1.0), (0.01, 2.0)] {
        let step = 1e-3;
        let all: f64 = (0..10_000).map(|at| -7.0 + f64::from(at) * step).map(|x| weigh::density(prediction, 0.02, x.exp()) * step).sum();
        assert!((all - 1.0).abs() < 0.01, "{prediction:?} {all}");
    }
    let common = |one: &[(f64, f64)], other: &[(f64, f64)]| {
        let traits = traits::of(Cause::Way);
        let scenarios = |all: &[(f64, f64)]| all.iter().map(|&own| predict::Scenario { traits, sets: vec![own] }).collect::<Vec<_>>();
        weigh::common(&scenarios(one), &scenarios(other), 0.02)
    };
    let (slow, usual, wide) = ((0.24, 0.26), (0.95, 1.05), (0.2, 1.0));
    assert!((common(&[wide], &[wide]) - 1.0).abs() < 1e-9 && (common(&[slow, usual], &[usual, slow]) - 1.0).abs() < 1e-6);
    assert!(common(&[slow], &[usual]) < 1e-6);
    assert!((common(&[wide], &[slow]) - common(&[slow], &[wide])).abs() < 1e-9);
    // What may be either way has half of it in common with each.
    assert!((common(&[slow, usual], &[slow]) - 0.5_f64.sqrt()).abs() < 1e-6);
}

#[test]
fn where_both_ends_do_well_with_others_it_is_neither_of_them() {
    let mut measured = sampled();
    let shape = || Shape::SlowPair { from: 1, to: 4, share: 0.25 };
    let open = || finding(shape(), &[Cause::TrainedDown, Cause::MissingNvlinks]);
    let next = settled(&measured, open()).next.unwrap();
    assert_eq!(next.test.kind, TestKind::SwapPartners);
    // One end is slow, whichever: that is an end.
    for (shares, cause) in [([0.25, 1.0], Cause::TrainedDown), ([1.0, 0.25], Cause::TrainedDown), ([1.0, 1.0], Cause::MissingNvlinks)] {
        measured.tests = vec![result(&next.test, &shares)];
        let found = settled(&measured, open());
        assert_eq!(found.suspects[0].cause, cause, "{shares:?}");
        assert!(found.suspects[0].weight > 10.0 * found.suspects[1].weight, "{:?}", found.suspects);
    }
}

#[test]
fn only_whole_repeats_count() {
    let test = Test {
        kind: TestKind::UnderLoad,
        say: String::new(),
        sets: vec![vec![(0, 1), (2, 3)]],
        bytes: BYTES,
        repeats: 6,
        windows: Vec::new(),
        mover: None,
    };
    let mut samples = result(&test, &[0.5]).samples;
    let whole = weigh::outcome(&samples, 0, 2, BYTES).unwrap();
    assert!((whole.aggregate / USUAL - 1.0).abs() < 0.011 && whole.noise >= 0.01, "{whole:?}");
    assert_eq!(weigh::outcome(&samples, 1, 2, BYTES), None);
    // A transfer that did not come through takes its repeat with it; a slower one decides.
    samples.iter_mut().filter(|own| own.repeat > 0 && own.from == 2).for_each(|own| own.status = Status::Timeout);
    samples.iter_mut().filter(|own| own.repeat == 0 && own.from == 2).for_each(|own| own.seconds = own.seconds.map(|own| 2.0 * own));
    let rest = weigh::outcome(&samples, 0, 2, BYTES).unwrap();
    assert!((rest.aggregate / (2.0 * 0.25 * 0.99 * USUAL) - 1.0).abs() < 1e-9, "{rest:?}");
    for sample in &mut samples {
        sample.warmup = true;
    }
    assert_eq!(weigh::outcome(&samples, 0, 2, BYTES), None);
}

#[test]
fn a_fan_is_asked_about_with_peers_of_the_root_s_own_side() {
    let place = |rank: usize| Placement { rank, host: "h".to_owned(), numa: Some(rank / 4), ..Placement::default() };
    let topology = Topology::of((0..8).map(place).collect());
    let mut measured = seen(8, &[]);
    measured.units = Units::of(&topology);
    let pair = |from: usize, to: usize| PairSeen { from: from as u32, to: to as u32, ..*seen(2, &[(0, 1, 1.0)]).peer.get(0, 1).unwrap() };
    let all = (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to);
    measured.peer = Pairs::new(8, all.map(|(from, to)| pair(from, to)).collect());
    let flows: Vec<(usize, usize)> = (4..8).map(|peer| (peer, 0)).collect();
    measured.together = vec![crate::fit::identify::Together {
        pattern: Pattern::FanIn,
        root: Some(0),
        flows,
        bytes: BYTES,
        seconds: 4.0 * BYTES as f64 / 30e9,
        interval: None,
        own: Vec::new(),
        alone: Vec::new(),
        n: 8,
    }];
    let shape = Shape::FanDoesNotScale { roots: vec![0], width: 4, concurrency: 1.2, into: true };
    let next = settled(&measured, finding(shape, &[Cause::ReceiveLimit, Cause::CrossSocket])).next.unwrap();
    // All that its side has, and one of the others to make it as wide.
    assert_eq!((next.test.kind, &next.test.sets[..]), (TestKind::OtherPeers, &[vec![(1, 0), (2, 0), (3, 0), (4, 0)]][..]));
    let of = |cause: Cause| next.predictions.iter().find(|own| own.cause == cause).unwrap().shares[0];
    // 30 of 100 GB/s if it is the root, clearly more if it is the way between the sockets.
    assert!(of(Cause::ReceiveLimit).0 < 0.4 && of(Cause::ReceiveLimit).1 < 0.45 && of(Cause::CrossSocket).0 > 0.45);
}
