use proptest::prelude::*;

use super::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Missing),
        1 => Just(Value::Waived),
        1 => Just(Value::Timeout),
        1 => Just(Value::Corrupt),
        1 => Just(Value::Known(f64::NAN)),
        6 => (1e-3..1e12).prop_map(Value::Known),
    ]
}

fn metric() -> impl Strategy<Value = Metric> {
    (0..Metric::ALL.len()).prop_map(|at| Metric::ALL[at])
}

fn close(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-12)
}

fn mean(metric: Metric, values: &[f64]) -> f64 {
    let n = values.len() as f64;
    match metric {
        Metric::Bandwidth => n / values.iter().map(|v| 1.0 / v).sum::<f64>(),
        Metric::ShareOfExpected | Metric::DuplexRatio => (values.iter().map(|v| v.ln()).sum::<f64>() / n).exp(),
        _ => values.iter().sum::<f64>() / n,
    }
}

/// The cells of a block off the diagonal, one by one, as (sender, receiver, value).
fn cells(grid: &Grid, level: usize, row: usize, column: usize) -> Vec<(usize, usize, Value)> {
    let axes = grid.axes();
    axes.span(level, row)
        .flat_map(|row| axes.span(level, column).map(move |column| (row, column)))
        .map(|places| axes.pair(places))
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (from, to, grid.get(from, to)))
        .collect()
}

fn check(grid: &Grid) {
    let (n, metric) = (grid.world(), grid.metric());
    for rank in 0..n {
        let known = |pick: &dyn Fn(usize) -> Value| {
            (0..n).filter(|&other| other != rank).filter_map(|other| pick(other).known()).collect::<Vec<_>>()
        };
        for (summary, values) in
            [(grid.row(rank), known(&|to| grid.get(rank, to))), (grid.column(rank), known(&|from| grid.get(from, rank)))]
        {
            assert_eq!(summary.count, values.len());
            assert!(close(summary.mean, mean(metric, &values)), "{} {}", summary.mean, mean(metric, &values));
        }
    }
    for level in 0..grid.levels() {
        for (row, column) in (0..grid.side(level)).flat_map(|row| (0..grid.side(level)).map(move |column| (row, column))) {
            let (block, cells) = (grid.block(level, row, column), cells(grid, level, row, column));
            let count = |state: Value| cells.iter().filter(|cell| cell.2 == state).count() as u32;
            let known: Vec<f64> = cells.iter().filter_map(|cell| cell.2.known()).collect();
            assert_eq!(
                (block.missing, block.waived, block.timeout, block.corrupt),
                (count(Value::Missing), count(Value::Waived), count(Value::Timeout), count(Value::Corrupt))
            );
            assert_eq!(block.count as usize, known.len());
            assert!(close(block.mean(metric), mean(metric, &known)));
            let badness = |pick: fn(f64, f64) -> f64| known.iter().map(|&v| metric.badness(v)).reduce(pick);
            assert_eq!((!block.worst.is_nan()).then(|| metric.badness(block.worst)), badness(f64::max));
            let end = |pick: fn(f64, f64) -> f64| known.iter().copied().reduce(pick);
            assert_eq!(Some(block.min).filter(|min| !min.is_nan()), end(f64::min));
            assert_eq!(Some(block.max).filter(|max| !max.is_nan()), end(f64::max));
            if !known.is_empty() {
                assert_eq!(block.reduced(Reduce::Min, metric), Some(Value::Known(block.min)));
                assert_eq!(block.reduced(Reduce::Max, metric), Some(Value::Known(block.max)));
                assert_eq!(block.reduced(Reduce::Mean, metric), Some(Value::Known(block.mean(metric))));
            }
            assert_eq!(block.reduced(Reduce::Worst, metric), block.shown());
            match block.worst_at {
                Some((from, to)) => {
                    assert!(cells.iter().any(|cell| (cell.0, cell.1) == (from as usize, to as usize)));
                    assert_eq!(grid.get(from as usize, to as usize), Value::Known(block.worst));
                }
                None => assert!(known.is_empty()),
            }
        }
    }
    assert_eq!(format!("{:?}", grid.all()), format!("{:?}", grid.block(grid.levels() - 1, 0, 0)));
}

/// Ranks on hosts in racks, in any order, or an order for each edge.
fn axes() -> impl Strategy<Value = Axes> {
    let hosts = prop::collection::vec((1_usize..6, any::<bool>()), 1..6);
    (hosts, 0_u64..1000, 0_u8..4).prop_map(|(hosts, seed, kind)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut host_of, mut rack_of, mut rack) = (Vec::new(), Vec::new(), 0);
        for (host, (ranks, new_rack)) in hosts.into_iter().enumerate() {
            rack += usize::from(new_rack);
            host_of.extend(std::iter::repeat_n(host, ranks));
            rack_of.extend(std::iter::repeat_n(rack, ranks));
        }
        let mut order: Vec<usize> = (0..host_of.len()).collect();
        let mut other = order.clone();
        match kind {
            0 => Axes::snapped(&order, &host_of, Some(&rack_of)),
            1 => Axes::snapped(&order, &host_of, None),
            2 => {
                random.shuffle(&mut order);
                Axes::snapped(&order, &host_of, Some(&rack_of))
            }
            _ => {
                random.shuffle(&mut order);
                random.shuffle(&mut other);
                Axes::apart(order, other)
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pyramid_and_summaries_equal_brute_force(metric in metric(), n in 1_usize..12, steps in prop::collection::vec((0_usize..12, 0_usize..12, value()), 0..80)) {
        let mut grid = Grid::new(metric, n);
        let mut plain = vec![Value::Missing; n * n];
        for (from, to, value) in steps {
            grid.set(from, to, value);
            if from < n && to < n {
                plain[from * n + to] = value;
            }
        }
        check(&grid);
        // Built at once it is the same, but for the rounding of sums.
        let built = Grid::build(metric, n, |from, to| plain[from * n + to]);
        check(&built);
        prop_assert_eq!(grid.domain(), built.domain());
    }

    #[test]
    fn a_snapped_pyramid_equals_brute_force(metric in metric(), axes in axes(), again in axes(), steps in prop::collection::vec((0_usize..24, 0_usize..24, value()), 0..80)) {
        let n = axes.len();
        let mut grid = Grid::arranged(metric, std::sync::Arc::new(axes), |_, _| Value::Missing);
        for (from, to, value) in steps {
            grid.set(from, to, value);
        }
        check(&grid);
        // In another order the values are the same, and so is what all of them say together.
        let mut turned = grid.clone();
        let order: Vec<usize> = (0..n).rev().collect();
        turned.arrange(std::sync::Arc::new(Axes::snapped(&order, &order, None)));
        check(&turned);
        let told = |grid: &Grid| { let all = grid.all(); (all.count, all.bad(), all.min.to_bits(), all.max.to_bits()) };
        prop_assert_eq!(told(&turned), told(&grid));
        // One of another number of ranks is not taken.
        if again.len() != n {
            turned.arrange(std::sync::Arc::new(again));
            prop_assert_eq!(turned.axes().len(), n);
        }
    }

    #[test]
    fn blocks_nest_cover_all_places_and_cross_no_edge_of_hardware(axes in axes()) {
        for level in 0..axes.levels() {
            let mut next = 0;
            for block in 0..axes.side(level) {
                let span = axes.span(level, block);
                prop_assert_eq!(span.start, next);
                prop_assert!(!span.is_empty());
                next = span.end;
                for place in span.clone() {
                    prop_assert_eq!(axes.block_of(level, place), block);
                }
                if level > 0 {
                    let parts = axes.parts(level, block);
                    prop_assert!((1..=2).contains(&parts.len()));
                    prop_assert_eq!(axes.span(level - 1, parts.start).start, span.start);
                    prop_assert_eq!(axes.span(level - 1, parts.end - 1).end, span.end);
                }
            }
            prop_assert_eq!(next, axes.len());
        }
        prop_assert_eq!(axes.side(axes.levels() - 1), 1);
        for rank in 0..axes.len() {
            let (row, column) = axes.places((rank, rank));
            prop_assert_eq!(axes.pair((row, column)), (rank, rank));
        }
        let stops = axes.stops();
        prop_assert_eq!(stops[0], axes.levels() - 1);
        prop_assert!(stops.windows(2).all(|pair| pair[1] < pair[0]));
    }
}

#[test]
fn a_pair_of_hosts_is_a_block_and_so_is_a_pair_of_racks() {
    // 12 hosts of 3 ranks (no power of two), 5 and 7 of them in a rack.
    let host_of: Vec<usize> = (0..36).map(|rank| rank / 3).collect();
    let rack_of: Vec<usize> = host_of.iter().map(|&host| usize::from(host >= 5)).collect();
    let order: Vec<usize> = (0..36).collect();
    let axes = Axes::snapped(&order, &host_of, Some(&rack_of));
    let tiers: Vec<Tier> = (0..axes.levels()).map(|level| axes.tier(level)).collect();
    assert_eq!(tiers, [Tier::Ranks(1), Tier::Ranks(2), Tier::Host, Tier::Hosts(2), Tier::Hosts(4), Tier::Rack, Tier::All], "{axes:?}");
    assert_eq!((axes.side(2), axes.span(2, 4), axes.span(2, 11)), (12, 12..15, 33..36));
    assert_eq!((axes.side(3), axes.span(3, 2), axes.span(3, 3)), (7, 12..15, 15..21), "the odd host of a rack stays alone");
    assert_eq!((axes.side(5), axes.span(5, 0), axes.span(5, 1)), (2, 0..15, 15..36));
    assert_eq!(axes.stops(), [6, 5, 2]);
    // Ranks dealt out one by one have no hosts side by side.
    let dealt: Vec<usize> = (0..32).map(|rank| rank % 4).collect();
    let order: Vec<usize> = (0..32).collect();
    let axes = Axes::snapped(&order, &dealt, None);
    assert_eq!((axes.levels(), axes.side(1), axes.span(2, 3)), (6, 16, 12..16));
    // But put side by side they do.
    let mut order = order;
    order.sort_by_key(|&rank| dealt[rank]);
    let axes = Axes::snapped(&order, &dealt, None);
    assert_eq!((axes.tier(3), axes.side(3), axes.pair((0, 8))), (Tier::Host, 4, (0, 1)));
    assert!(!axes.by_rank());
}

#[test]
fn looks_from_all_to_one_host_leave_no_large_step() {
    for (hosts, ranks, racks) in [(128, 8, 8), (128, 8, 1), (512, 8, 1), (1, 1024, 1), (1, 8, 1), (4, 4, 2), (4096, 1, 1)] {
        let host_of: Vec<usize> = (0..hosts * ranks).map(|rank| rank / ranks).collect();
        let rack_of: Vec<usize> = host_of.iter().map(|&host| host / (hosts / racks)).collect();
        let order: Vec<usize> = (0..hosts * ranks).collect();
        let axes = Axes::snapped(&order, &host_of, (racks > 1).then_some(&rack_of));
        let stops = axes.stops();
        assert!(stops.windows(2).all(|pair| pair[0] - pair[1] <= 5), "{hosts} x {ranks}: {stops:?}");
        assert!(stops.len() <= 4, "{hosts} x {ranks}: {stops:?}");
        let last = *stops.last().unwrap();
        assert!(axes.span(last, 0).len() <= 32, "{hosts} x {ranks}: {stops:?}");
    }
}

#[test]
fn of_both_directions_of_a_pair_the_slower_one_is_the_worst() {
    for (from, to) in [(1, 6), (6, 1)] {
        let mut grid = Grid::new(Metric::Asymmetry, 8);
        grid.set(from, to, Value::Known(-1.5));
        grid.set(to, from, Value::Known(1.5));
        let at = |block: Block| (block.worst, block.worst_at);
        assert_eq!(at(grid.all()), (-1.5, Some((from as u32, to as u32))));
    }
}

#[test]
fn the_domain_of_very_many_values_keeps_its_ends() {
    let n = 600;
    let (slow, fast) = ((599, 17), (3, 598));
    let grid = Grid::build(Metric::Bandwidth, n, |from, to| match (from, to) {
        pair if pair == slow => Value::Known(4e9),
        pair if pair == fast => Value::Known(90e9),
        _ => Value::Known(10e9 + (from * 31 + to * 7) as f64 % 100.0 * 1e7),
    });
    let domain = grid.domain().unwrap();
    assert!((domain.lo - 4e9).abs() < 1.0, "the one slow pair has a colour of its own: {domain:?}");
    assert!((10.9e9..11.1e9).contains(&domain.hi), "{domain:?}");
}

#[test]
fn a_value_that_leaves_leaves_nothing_behind() {
    let mut grid = Grid::new(Metric::Bandwidth, 3);
    grid.set(0, 1, Value::Known(50e9));
    // One byte a second: its reciprocal is 5e10 times the other's.
    for _ in 0..1000 {
        grid.set(0, 2, Value::Known(1.0));
        grid.set(0, 2, Value::Timeout);
    }
    assert!(close(grid.row(0).mean, 50e9), "{}", grid.row(0).mean);
}

#[test]
fn local_copies_are_kept_apart() {
    let grid = Grid::build(Metric::Bandwidth, 5, |from, to| Value::Known(if from == to { 1e3 } else { 50e9 }));
    assert_eq!(grid.get(2, 2), Value::Known(1e3));
    assert!(close(grid.all().worst, 50e9) && close(grid.row(2).mean, 50e9));
    assert_eq!((grid.block(0, 2, 2).count, grid.block(0, 2, 2).shown()), (0, None));
    assert!(grid.domain().is_some_and(|domain| domain.lo > 1e9));
}

#[test]
fn the_domain_follows_after_a_twentieth_has_changed() {
    let n = 40;
    let mut grid = Grid::build(Metric::Bandwidth, n, |_, _| Value::Known(10e9));
    let before = grid.domain();
    let pairs: Vec<_> = (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|(from, to)| from != to).collect();
    let twentieth = pairs.len() / 20;
    for (at, &(from, to)) in pairs.iter().take(twentieth).enumerate() {
        assert_eq!(grid.domain(), before, "{at}");
        grid.set(from, to, Value::Known(90e9));
    }
    assert!(grid.domain().is_some_and(|domain| domain.hi > 80e9), "{:?}", grid.domain());
}

#[test]
fn failures_are_shown_before_the_worst_value() {
    let mut grid = Grid::new(Metric::Bandwidth, 4);
    assert_eq!(grid.all().shown(), Some(Value::Missing));
    grid.set(0, 1, Value::Known(9e9));
    grid.set(3, 1, Value::Known(5e9));
    grid.set(3, 2, Value::Waived);
    assert_eq!(grid.all().shown(), Some(Value::Known(5e9)));
    grid.set(1, 0, Value::Timeout);
    assert_eq!(grid.all().shown(), Some(Value::Timeout));
    assert_eq!((grid.all().bad(), grid.all().missing), (2, 8));
    assert_eq!(Block::EMPTY.shown(), None);
}

#[test]
fn a_value_stays_small() {
    assert!(size_of::<Value>() <= 16);
}

#[test]
fn asymmetry_is_antisymmetric_and_passes_states_on() {
    let (a, b) = (Value::Known(8e9), Value::Known(54e9));
    let (forth, back) = (Value::asymmetry(a, b).known().unwrap(), Value::asymmetry(b, a).known().unwrap());
    assert!((forth + back).abs() < 1e-12 && forth < -1.9);
    assert_eq!(Value::asymmetry(a, Value::Timeout), Value::Timeout);
    assert_eq!(Value::asymmetry(Value::Waived, Value::Corrupt), Value::Corrupt);
    assert_eq!(Value::asymmetry(a, Value::Missing), Value::Missing);
}
