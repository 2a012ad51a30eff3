//! What a calibration costs beside the reference's way, and how well both find the truth (issue 3, must show d).

use toposcope::fit::{Flow, Key, Kind, Observation, Observations, median};

use super::*;

/// Timed and untimed messages of each pair and size, as the reference's threads tell of their runs ("median of 10").
const MESSAGES: (usize, usize) = (10, 2);

/// The reference's way: every pair by itself, all sizes, a fixed number of messages, a barrier before and one after each. Seconds and
/// fits.
fn reference(fabric: &Fabric, sizes: &[u64], seed: u64) -> (f64, Fits) {
    let (world, topology) = (fabric.world(), fabric.topology());
    let pairs = || (0..world).flat_map(|from| (0..world).map(move |to| (from, to)));
    // A dissemination barrier: in each of its steps everybody sends somewhere, so that the slowest path rules.
    let slowest = pairs().map(|(from, to)| fabric.truth(from, to).alpha).fold(0.0, f64::max);
    let barrier = f64::from(world.next_power_of_two().ilog2()) * slowest;
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut seconds, mut observations) = (0.0, Observations::default());
    for (from, to) in pairs() {
        let flow = if from == to { Flow::Local { rank: from } } else { Flow::Peer { from, to, path: topology.path(from, to) } };
        for &bytes in sizes {
            for message in 0..MESSAGES.0 + MESSAGES.1 {
                let own = fabric.truth(from, to).seconds(bytes) * fabric.noise().map_or(1.0, |noise| noise.factor(&mut random));
                // Local copies cost it once: all ranks do theirs at the same time.
                seconds += if from == to { 0.0 } else { own + 2.0 * barrier };
                if message >= MESSAGES.1 {
                    observations.push(Observation { flow, bytes, seconds: own });
                }
            }
        }
    }
    let local: f64 = sizes.iter().map(|&bytes| fabric.truth(0, 0).seconds(bytes) + 2.0 * barrier).sum();
    (seconds + local * (MESSAGES.0 + MESSAGES.1) as f64, observations.fit(Some(Confidence::usual())))
}

/// How far α and rate of every pair are off, as shares of the truth.
fn errors(fabric: &Fabric, fits: &Fits) -> [Vec<f64>; 2] {
    let pairs = fits
        .single
        .iter()
        .filter_map(|fit| if let (Kind::Peer, Key::Pair { from, to }) = (fit.kind, &fit.key) { Some((fit, *from, *to)) } else { None });
    let (mut alphas, mut rates) = (Vec::new(), Vec::new());
    for (fit, from, to) in pairs {
        let truth = fabric.truth(from, to);
        alphas.push((fit.line.alpha / truth.alpha - 1.0).abs());
        rates.push((fit.line.bandwidth / truth.rate - 1.0).abs());
    }
    [alphas, rates]
}

/// Median and 95th percentile.
fn summary(errors: &mut [f64]) -> (f64, f64) {
    let middle = median(errors);
    (middle, errors[errors.len() * 95 / 100])
}

/// When every pair had its first sample, seconds.
fn first_picture(run: &Run) -> f64 {
    let mut seen = BTreeSet::new();
    let mut last = 0.0;
    for record in &run.records {
        if let Event::ProbeDone { samples, .. } = &record.event {
            for sample in samples {
                if seen.insert((sample.pattern.name(), sample.from, sample.to)) {
                    last = record.t;
                }
            }
        }
    }
    assert_eq!(seen.len(), run.model.world().pow(2));
    last
}

#[test]
fn a_calibration_costs_a_tenth_of_the_reference_and_is_no_less_exact() {
    let fabric = shipped("h20-2x8");
    let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
    for seed in 1..=6 {
        let (expected, fits) = reference(&fabric, &sizes(), seed);
        let run = sweep(&fabric, &SweepSettings { seed, ..calibration(0.05) }, true);
        let (ratio, first) = (expected / run.seconds, first_picture(&run) / run.seconds);
        println!(
            "seed {seed}: {:.3} s, the reference {expected:.2} s, {ratio:.2} times; the first picture after {:.2} %",
            run.seconds,
            100.0 * first
        );
        assert!(ratio >= 10.0, "seed {seed}: {ratio}");
        assert!(first <= 0.02, "seed {seed}: {first}");
        for (all, own) in [(&mut ours, errors(&fabric, &run.fits())), (&mut theirs, errors(&fabric, &fits))] {
            all.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
        }
    }
    for (what, (ours, theirs)) in ["alpha", "rate"].into_iter().zip(ours.iter_mut().zip(&mut theirs)) {
        let (ours, theirs) = (summary(ours), summary(theirs));
        println!(
            "{what}: off by {:.3} %, 95 % of the pairs by at most {:.3} %; the reference {:.3} and {:.3} %",
            100.0 * ours.0,
            100.0 * ours.1,
            100.0 * theirs.0,
            100.0 * theirs.1
        );
        assert!(ours.0 <= theirs.0 && ours.1 <= theirs.1, "{what}: {ours:?} {theirs:?}");
    }
}
