use super::*;

const INTER: PathClass = PathClass::InterNode;

/// What stands out of `n` ranks, one a host, where ranks send and receive at rates of their own.
fn found(n: usize, send: impl Fn(usize) -> f64, receive: impl Fn(usize) -> f64) -> Insight {
    let mut insight = Insight::new((0..n).collect());
    for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        // A spread of 2 %, the same in every run.
        let noise = 1.0 + ((from * 7 + to * 3) % 5) as f64 / 200.0;
        insight.set(INTER, from, to, Some(send(from).min(receive(to)) * noise), false);
    }
    insight.settle();
    insight
}

fn lines(insight: &Insight) -> Vec<(Way, Vec<usize>, usize, usize)> {
    insight.findings().lines.iter().map(|line| (line.way, line.ranks.clone(), line.slow, line.of)).collect()
}

#[test]
fn slow_means_slow_for_its_path() {
    let mut insight = Insight::default();
    for (class, from, to, rate) in [
        (PathClass::IntraNode, 0, 1, 10e9),
        (PathClass::IntraNode, 1, 0, 4e9),
        (PathClass::IntraNode, 2, 3, 10e9),
        (INTER, 0, 2, 1e9),
        (INTER, 2, 0, 1e9),
        (PathClass::Local, 0, 0, 1.0),
    ] {
        insight.set(class, from, to, Some(rate), false);
    }
    insight.settle();
    let found = insight.findings();
    assert_eq!(found.pairs.len(), 1);
    assert_eq!((found.pairs[0].from, found.pairs[0].to), (1, 0));
    assert!((found.pairs[0].share() - 0.4).abs() < 1e-9);
    assert_eq!((found.skews[0].from, found.skews[0].to, found.skews.len()), (1, 0, 1));
    assert!((found.skews[0].ratio() - 2.5).abs() < 1e-9);
    assert_eq!(found.lines, []);
}

#[test]
fn a_newer_value_replaces_the_older_one() {
    let mut insight = Insight::default();
    insight.set(INTER, 0, 1, Some(1e9), false);
    insight.set(INTER, 1, 0, Some(3e9), false);
    insight.set(INTER, 0, 1, Some(6e9), false);
    insight.settle();
    assert_eq!(insight.measured(), 2);
    let skews = &insight.findings().skews;
    assert_eq!((skews.len(), skews[0].from, skews[0].to), (1, 1, 0));
    insight.set(INTER, 0, 1, None, true);
    insight.settle();
    assert_eq!((insight.measured(), insight.findings().skews.len()), (1, 0));
    assert_eq!(insight.findings().rest.map(|rest| rest.rate), Some(3e9));
    assert_eq!(insight.failed(3), (1, vec![(0, 1)]));
}

#[test]
fn many_pairs_have_a_median_to_one_percent() {
    let mut insight = Insight::default();
    for i in 0..1001_usize {
        insight.set(INTER, i, i + 1, Some((1 + i) as f64 * 1e6), false);
    }
    let typical = insight.typical(INTER).unwrap();
    assert!((typical / 501e6 - 1.0).abs() < 0.011, "{typical}");
}

#[test]
fn a_slow_sender_and_a_slow_receiver_are_accused_and_nobody_else() {
    for n in [4, 5, 16, 200] {
        let insight = found(n, |rank| if rank == 3 { 0.2e9 } else { 0.8e9 }, |rank| if rank == 1 { 0.3e9 } else { 0.8e9 });
        let expected = [(Way::Sends, vec![3], n - 1, n - 1), (Way::Receives, vec![1], n - 2, n - 1)];
        assert_eq!(lines(&insight), expected, "{n}");
        let found = insight.findings();
        assert_eq!((found.pairs.len(), found.skews.len()), (0, 0), "{n}: {found:?}");
        assert_eq!((found.senders.as_slice(), found.receivers.as_slice()), ([3].as_slice(), [1].as_slice()));
        assert!(found.rest.is_some_and(|rest| rest.share() > 0.95));
    }
}

#[test]
fn two_ranks_accuse_no_rank_but_a_direction() {
    let insight = found(2, |rank| if rank == 1 { 0.2e9 } else { 0.8e9 }, |_| 9e9);
    assert_eq!(lines(&insight), []);
    let found = insight.findings();
    assert_eq!((found.pairs.len(), found.skews.len(), found.skews[0].from), (0, 1, 1));
}

#[test]
fn where_all_are_alike_nothing_stands_out() {
    for n in [2, 3, 8, 64] {
        let insight = found(n, |_| 5e9, |_| 5e9);
        let found = insight.findings();
        assert_eq!((found.lines.len(), found.pairs.len(), found.skews.len()), (0, 0, 0), "{n}");
        assert!(insight.suspects().is_empty() && found.rest.is_some(), "{n}");
    }
}

#[test]
fn what_a_slow_rank_does_not_explain_is_told() {
    let mut insight = found(8, |rank| if rank == 2 { 2e9 } else { 8e9 }, |_| 9e9);
    insight.set(INTER, 2, 5, Some(0.5e9), false);
    insight.set(INTER, 6, 7, Some(1e9), false);
    insight.settle();
    let pairs: Vec<_> = insight.findings().pairs.iter().map(|slow| (slow.from, slow.to)).collect();
    assert_eq!(pairs, [(2, 5), (6, 7)]);
    assert_eq!(lines(&insight).len(), 1);
    assert_eq!(insight.suspects(), [(2, 5), (6, 7)], "each once");
}

#[test]
fn half_a_matrix_accuses_no_rank_for_the_receivers_it_met_first() {
    // Rank 0 has met only the two slow receivers, 6 and 7.
    let mut insight = Insight::default();
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        if from != 0 || to > 5 {
            insight.set(INTER, from, to, Some(if to > 5 { 2e9 } else { 8e9 }), false);
        }
    }
    insight.settle();
    assert_eq!(insight.findings().senders, [0; 0]);
    assert_eq!(insight.findings().receivers, [6, 7]);
}

#[test]
fn a_rank_that_is_measured_again_and_well_is_not_accused_any_more() {
    let mut insight = found(4, |rank| if rank == 3 { 0.2e9 } else { 0.8e9 }, |_| 1e9);
    assert_eq!(insight.findings().senders, [3]);
    insight.set(INTER, 3, 0, Some(0.8e9), false);
    insight.settle();
    assert_eq!(insight.findings().senders, [0; 0]);
    assert_eq!(insight.findings().pairs.len(), 2);
    // And back: the best of the line is found again.
    insight.set(INTER, 3, 0, Some(0.2e9), false);
    insight.settle();
    assert_eq!(insight.findings().senders, [3]);
}

#[test]
fn a_slow_host_is_told_once() {
    let (n, per_host) = (32, 8);
    let mut insight = Insight::new((0..n).map(|rank| rank / per_host).collect());
    for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let (class, rate) = match (from / per_host, to / per_host) {
            (a, b) if a == b => (PathClass::IntraNode, 50e9),
            (2, _) => (INTER, 3e9),
            _ => (INTER, 12e9),
        };
        insight.set(class, from, to, Some(rate), false);
    }
    insight.settle();
    assert_eq!(lines(&insight), [(Way::Sends, (16..24).collect(), 8 * 24, 8 * 24)]);
    assert_eq!(insight.findings().classes, 2);
    assert!(insight.findings().pairs.is_empty());
}

#[test]
fn all_cells_at_once_are_as_one_by_one() {
    let mut random = fastrand::Rng::with_seed(5);
    let n = 24;
    let node_of: Vec<usize> = (0..n).map(|rank| rank / 4).collect();
    let mut cells = Vec::new();
    for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
        let class = crate::topology::path_of(&node_of, from, to);
        let rate = match random.u32(..20) {
            0 => None,
            1 => Some(f64::NAN),
            2 => Some(1e9),
            _ => Some(5e9 + random.f64() * 1e9),
        };
        let slow = if to == 7 { 0.3 } else { 1.0 };
        cells.push((class, from, to, rate.map(|rate| rate * slow), rate.is_none() && random.bool()));
    }
    let mut grown = Insight::new(node_of.clone());
    for &(class, from, to, rate, failed) in &cells {
        grown.set(class, from, to, rate, failed);
    }
    let mut built = Insight::build(node_of, cells.iter().copied());
    for round in 0..3 {
        grown.settle();
        built.settle();
        assert_eq!(grown.findings(), built.findings(), "{round}");
        assert!(!built.findings().lines.is_empty() && built.suspects() == grown.suspects());
        assert_eq!((grown.measured(), grown.failed(9)), (built.measured(), built.failed(9)));
        // And they go on alike.
        for &(class, from, to, ..) in cells.iter().skip(round * 17).take(60) {
            let rate = Some(4e9 + random.f64() * 3e9);
            grown.set(class, from, to, rate, false);
            built.set(class, from, to, rate, false);
        }
    }
}
