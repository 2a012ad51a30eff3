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

/// The cells of a block off the diagonal, one by one.
fn cells(grid: &Grid, level: usize, row: usize, column: usize) -> Vec<(usize, usize, Value)> {
    let (n, side) = (grid.world(), 1 << level);
    let within = |at: usize| at * side..((at + 1) * side).min(n);
    within(row)
        .flat_map(|from| within(column).map(move |to| (from, to)))
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
            assert_eq!((!block.best.is_nan()).then(|| metric.badness(block.best)), badness(f64::min));
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
