//! How often the 95 % intervals hold the truth (issue 3, must show b): a nominal level is a claim, and this is its test.

use super::bootstrap::Confidence;
use super::line::{Line, Point};
use fastrand::Rng;

const ALPHA: f64 = 57e-6;
const BANDWIDTH: f64 = 53.8e9;

/// Noise of one repeat, as a factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Noise {
    None,
    Normal,
    LogNormal,
    /// Student's t with 3 degrees of freedom, whose fourth moment is infinite
    Student,
    /// normal, and one repeat in ten late by a Pareto time of infinite variance
    Pareto,
    /// late only
    Exponential,
}

fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

impl Noise {
    /// Median 1, 3 % wide.
    pub fn factor(self, random: &mut Rng) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Normal => 1.0 + 0.03 * normal(random),
            Self::LogNormal => (0.03 * normal(random)).exp(),
            Self::Student => {
                let chi = (0..3).map(|_| normal(random).powi(2)).sum::<f64>() / 3.0;
                1.0 + 0.03 * normal(random) / chi.sqrt()
            }
            // 90 % of a normal distribution lie below its 0.5/0.9 quantile, 0.1397 deviations, which is the mixture's median.
            Self::Pareto if random.f64() < 0.1 => (1.0 + 0.1 * (1.0 - random.f64()).powf(-1.0 / 1.5)) / 1.004_191,
            Self::Pareto => (1.0 + 0.03 * normal(random)) / 1.004_191,
            Self::Exponential => 1.0 + 0.03 * (-(1.0 - random.f64()).ln() - std::f64::consts::LN_2),
        }
    }
}

/// How many times its 3 % the noise of a size is, by the size's index.
type Scale = fn(usize) -> f64;

/// Of `runs` seeded runs, the shares whose interval held α and bandwidth, in percent.
fn coverage(sizes: &[u64], repeats: usize, noise: Noise, scale: Scale, runs: u64) -> (f64, f64) {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let part = |first: u64| {
        let (mut alphas, mut bandwidths) = (0, 0);
        for seed in (first..runs).step_by(threads as usize) {
            let mut random = Rng::with_seed(seed);
            let mut point = |(index, &bytes): (usize, &u64)| {
                let mut draw = || (ALPHA + bytes as f64 / BANDWIDTH) * (1.0 + scale(index) * (noise.factor(&mut random) - 1.0));
                Point::of(bytes, &mut (0..repeats).map(|_| draw()).collect::<Vec<_>>())
            };
            let points: Vec<Point> = sizes.iter().enumerate().map(&mut point).collect();
            let found = Confidence::usual().of_line(&points, &Line::fit(&points).unwrap()).unwrap();
            alphas += u32::from(found.alpha.contains(ALPHA));
            bandwidths += u32::from(found.bandwidth.contains(BANDWIDTH));
        }
        (alphas, bandwidths)
    };
    let (alphas, bandwidths) = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        let counts = handles.into_iter().map(|handle| handle.join().unwrap());
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    });
    let percent = |count: u32| 100.0 * f64::from(count) / runs as f64;
    (percent(alphas), percent(bandwidths))
}

fn default_sizes() -> Vec<u64> {
    (0..9).map(|step| 4096 << (2 * step)).collect()
}

#[test]
fn the_95_percent_intervals_cover_the_truth_93_to_97_percent_of_the_time() {
    for noise in [Noise::Normal, Noise::LogNormal, Noise::Student] {
        for repeats in [8, 20] {
            let (alpha, bandwidth) = coverage(&default_sizes(), repeats, noise, |_| 1.0, 1000);
            for (what, share) in [("alpha", alpha), ("bandwidth", bandwidth)] {
                assert!((93.0..=97.0).contains(&share), "{noise:?}, {repeats} repeats: {what} in {share} %");
            }
        }
    }
}

/// The noise need not be alike at all sizes, nor the sizes many.
#[test]
fn coverage_bears_few_sizes_and_unlike_noise() {
    let uneven = |index: usize| if index < 4 { 3.0 } else { 0.3 };
    let cases: [(&[u64], usize, Noise, Scale); 5] = [
        (&default_sizes(), 8, Noise::Normal, uneven),
        (&default_sizes(), 8, Noise::Pareto, |_| 1.0),
        (&default_sizes(), 12, Noise::Exponential, |_| 1.0),
        (&[4096, 1 << 20, 1 << 28], 8, Noise::Normal, |_| 1.0),
        (&[1 << 16, 1 << 28], 20, Noise::Student, |_| 1.0),
    ];
    for (sizes, repeats, noise, scale) in cases {
        let (alpha, bandwidth) = coverage(sizes, repeats, noise, scale, 1000);
        for (what, share) in [("alpha", alpha), ("bandwidth", bandwidth)] {
            assert!((92.0..=98.5).contains(&share), "{} sizes, {noise:?}, {repeats} repeats: {what} in {share} %", sizes.len());
        }
    }
}

/// `cargo test --lib fit::coverage -- --ignored --nocapture` prints the table of coverages.
#[test]
#[ignore = "two minutes; prints the coverage of every case"]
fn table_of_coverages() {
    let nine = default_sizes();
    let sizes: [&[u64]; 4] = [&nine, &[4096, 1 << 16, 1 << 20, 1 << 24, 1 << 28], &[4096, 1 << 20, 1 << 28], &[1 << 16, 1 << 28]];
    let scales: [(&str, Scale); 2] = [("alike", |_| 1.0), ("uneven", |index| if index == 0 { 3.0 } else { 0.3 })];
    for sizes in sizes {
        for (name, scale) in scales {
            for repeats in [6, 7, 8, 10, 12, 20, 50] {
                for noise in [Noise::Normal, Noise::LogNormal, Noise::Student, Noise::Pareto, Noise::Exponential] {
                    let (alpha, bandwidth) = coverage(sizes, repeats, noise, scale, 10_000);
                    println!(
                        "{} sizes  {name:6}  {repeats:3} repeats  {noise:?}: alpha {alpha:.1} %, bandwidth {bandwidth:.1} %",
                        sizes.len()
                    );
                    assert!((90.0..=99.5).contains(&alpha) && (90.0..=99.5).contains(&bandwidth));
                }
            }
        }
    }
}
