//! Protocol breakpoints: where one line stops and the next one begins.
//!
//! A library changes its protocol with the size of a message (eager, rendezvous, pipelined), and each has an α and a bandwidth
//! of its own. After netgauge (Hoefler, Lichei & Rehm, "Low-Overhead `LogGP` Parameter Assessment for Modern Interconnection
//! Networks", IPDPS'07): sizes belong to one line until joining the next ones doubles its residual, and a
//! look-ahead keeps a single late size from being taken for a change. Netgauge measures as it walks; here all sizes are at hand,
//! so every placement is looked at instead of the first that comes, and instead of looking ahead each inner size is left out once:
//! if fewer lines serve the others, it was late. (At either end one size cannot be told from a short protocol.)

use std::ops::Range;

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::bootstrap::freedom_of;
use super::line::{Line, Point};

/// Sizes of a segment at least: a size that stands alone is no protocol.
const SHORTEST: usize = 2;

/// Segments at most. Known libraries have up to three protocols; one more for a cache or a limited buffer.
const MOST: usize = 4;

/// How much larger the residual of fewer lines must be.
const DOUBLING: f64 = 2.0;

/// Residuals below this share of the time are good enough for one line, however quiet the measurement is.
const GOOD_ENOUGH: f64 = 0.02;

/// Relative variance below which noise is taken for rounding.
const SILENCE: f64 = 1e-12;

/// The chance of such an improvement by noise alone, at most; low because a large world has a million pairs.
const CHANCE: f64 = 1e-6;

/// Index ranges of the points that belong to one line each, in order; empty where one line serves, as it does below 4 sizes.
///
/// `points` by ascending size, all timed.
pub(super) fn segments(points: &[Point]) -> Vec<Range<usize>> {
    let most = MOST.min(points.len() / SHORTEST);
    if most < 2 || Line::fit(points).is_ok_and(|line| line.max_rel_error <= GOOD_ENOUGH) {
        return Vec::new();
    }
    let noise = Noise::of(points);
    let best = Best::of(points, most);
    let explains = |few: usize, many: usize| {
        // Where the repeats do not show the noise, what many lines leave over does, if there are sizes to spare.
        let left = (best.spare(many) >= 2).then(|| Noise { variance: best.residual(many), freedom: best.spare(many) as f64 });
        let Some(noise) = noise.or(left) else { return false };
        let quiet = noise.variance.max(GOOD_ENOUGH.powi(2));
        let doubled = |residual: f64, over: f64| residual >= DOUBLING.powi(2) * over;
        doubled(best.residual(few), quiet.max(best.residual(many)))
            && noise.is_exceeded(best.loss(few) - best.loss(many), 2 * (many - few))
            && (1..points.len() - 1).all(|left_out| {
                let others: Vec<Point> = [&points[..left_out], &points[left_out + 1..]].concat();
                let residual = Best::of(&others, few).residual(few);
                doubled(residual, noise.variance) && residual >= GOOD_ENOUGH.powi(2)
            })
    };
    let enough = (1..most).find(|&few| !(few + 1..=most).any(|many| explains(few, many)));
    match enough.unwrap_or(most) {
        1 => Vec::new(),
        count => best.ranges(count),
    }
}

/// Relative variance of the medians, and how well it is known.
#[derive(Debug, Clone, Copy)]
struct Noise {
    variance: f64,
    freedom: f64,
}

impl Noise {
    /// Mean over the sizes, as the repeats show it; `None` where some have too few.
    fn of(points: &[Point]) -> Option<Self> {
        let relative = |point: &Point| Some((point.variance? / point.seconds.powi(2), point.n));
        let terms: Vec<(f64, usize)> = points.iter().map(relative).collect::<Option<_>>()?;
        let sum: f64 = terms.iter().map(|(variance, _)| variance).sum();
        Some(Self { variance: sum / terms.len() as f64, freedom: freedom_of(terms.into_iter()) })
    }

    /// Whether so many more parameters take away more loss than noise would, by Fisher's test.
    fn is_exceeded(self, loss: f64, parameters: usize) -> bool {
        let ratio = loss / parameters as f64 / self.variance;
        let chance = |noise: FisherSnedecor| noise.sf(ratio) < CHANCE;
        // (statrs panics outside 0..∞.)
        self.variance < SILENCE || (ratio > 0.0 && FisherSnedecor::new(parameters as f64, self.freedom.max(1.0)).is_ok_and(chance))
    }
}

/// The best placements of 1, 2 .. lines, by dynamic programming over where the last one begins.
struct Best {
    /// points
    len: usize,
    /// `[lines − 1][end]`: least loss of that many lines over the points before `end`, and where the last of them begins
    steps: Vec<Vec<(f64, usize)>>,
}

impl Best {
    fn of(points: &[Point], most: usize) -> Self {
        let len = points.len();
        let loss = |range: Range<usize>| loss(&points[range]);
        let first = (0..=len).map(|end| (if end < SHORTEST { f64::INFINITY } else { loss(0..end) }, 0)).collect();
        let mut steps: Vec<Vec<(f64, usize)>> = vec![first];
        for count in 2..=most {
            let before = &steps[count - 2];
            let step = (0..=len)
                .map(|end| {
                    let begins = SHORTEST..(end + 1).saturating_sub(SHORTEST);
                    let ways = begins.map(|begin| (before[begin].0 + loss(begin..end), begin));
                    ways.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
                })
                .collect();
            steps.push(step);
        }
        Self { len, steps }
    }

    /// Sum of squared relative errors of `count` lines.
    fn loss(&self, count: usize) -> f64 {
        self.steps[count - 1][self.len].0
    }

    /// Sizes beyond what `count` lines need to be drawn.
    fn spare(&self, count: usize) -> usize {
        self.len - 2 * count
    }

    /// Mean of what `count` lines leave over, per size to spare.
    fn residual(&self, count: usize) -> f64 {
        self.loss(count) / self.spare(count).max(1) as f64
    }

    fn ranges(&self, count: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::with_capacity(count);
        let mut end = self.len;
        for last in (0..count).rev() {
            let begin = self.steps[last][end].1;
            ranges.push(begin..end);
            end = begin;
        }
        ranges.reverse();
        ranges
    }
}

/// Sum of squared relative errors of the best line through the points.
fn loss(points: &[Point]) -> f64 {
    Line::fit(points).map_or(f64::INFINITY, |line| points.iter().map(|point| line.relative_error(point).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use super::super::coverage::Noise as Kind;
    use super::*;
    use fastrand::Rng;
    use proptest::prelude::*;

    fn sizes(count: u32) -> Vec<u64> {
        (0..count).map(|step| 4096 << (2 * step)).collect()
    }

    fn measured(sizes: &[u64], repeats: usize, kind: Kind, seed: u64, seconds: impl Fn(u64) -> f64) -> Vec<Point> {
        let mut random = Rng::with_seed(seed);
        let mut point = |&bytes: &u64| {
            Point::of(bytes, &mut (0..repeats).map(|_| seconds(bytes) * kind.factor(&mut random).max(0.5)).collect::<Vec<_>>())
        };
        sizes.iter().map(&mut point).collect()
    }

    fn plain(_: u64) -> (f64, f64) {
        (57e-6, 53.8e9)
    }

    /// Seconds under an α and a bandwidth that depend on the size.
    fn seconds(protocol: fn(u64) -> (f64, f64)) -> impl Fn(u64) -> f64 + Copy {
        move |bytes| {
            let (alpha, bandwidth) = protocol(bytes);
            alpha + bytes as f64 / bandwidth
        }
    }

    fn breaks(points: &[Point]) -> Vec<usize> {
        segments(points).iter().skip(1).map(|range| range.start).collect()
    }

    #[test]
    fn clean_data_has_no_breakpoint() {
        for kind in [Kind::Normal, Kind::LogNormal, Kind::Student] {
            for repeats in [3, 6, 8, 20] {
                let false_alarms =
                    (0..1000).filter(|&seed| breaks(&measured(&sizes(9), repeats, kind, seed, seconds(plain))) != [0; 0]).count();
                assert_eq!(false_alarms, 0, "{kind:?}, {repeats} repeats");
            }
        }
        let single = (0..1000).filter(|&seed| breaks(&measured(&sizes(9), 1, Kind::Normal, seed, seconds(plain))) != [0; 0]).count();
        assert_eq!(single, 0);
    }

    #[test]
    fn a_planted_breakpoint_is_found_within_one_size_step() {
        type Protocol = fn(u64) -> (f64, f64);
        let planted: [(&str, Protocol, &[usize]); 7] = [
            ("slower start from 1 MiB", |bytes| (if bytes < 1 << 20 { 57e-6 } else { 100e-6 }, 53.8e9), &[4]),
            ("eager below 64 KiB", |bytes| if bytes < 1 << 16 { (2e-6, 5e9) } else { (8e-6, 12e9) }, &[2]),
            ("eager below 16 KiB", |bytes| if bytes < 1 << 14 { (2e-6, 5e9) } else { (8e-6, 12e9) }, &[1]),
            ("slower from 16 MiB", |bytes| (57e-6, if bytes < 1 << 24 { 53.8e9 } else { 30e9 }), &[6]),
            ("slower from 64 MiB", |bytes| (57e-6, if bytes < 1 << 26 { 53.8e9 } else { 30e9 }), &[7]),
            (
                "three protocols",
                |bytes| match bytes {
                    0..0x1_0000 => (2e-6, 5e9),
                    0x1_0000..0x40_0000 => (12e-6, 10e9),
                    _ => (30e-6, 24e9),
                },
                &[2, 5],
            ),
            (
                "a short one between",
                |bytes| match bytes {
                    0..0x4_0000 => (2e-6, 5e9),
                    0x4_0000..0x40_0000 => (100e-6, 5e9),
                    _ => (30e-6, 24e9),
                },
                &[3, 5],
            ),
        ];
        for (name, protocol, at) in planted {
            for kind in [Kind::Normal, Kind::LogNormal, Kind::Student] {
                for repeats in [8, 20] {
                    for seed in 0..50 {
                        let found = breaks(&measured(&sizes(9), repeats, kind, seed, seconds(protocol)));
                        let near = found.len() == at.len() && found.iter().zip(at).all(|(&found, &at)| found.abs_diff(at) <= 1);
                        assert!(near, "{name}: {found:?} for {at:?}, {kind:?}, {repeats} repeats, seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_noise_only_what_matters_is_a_breakpoint() {
        let exact = |protocol: fn(u64) -> (f64, f64)| measured(&sizes(9), 6, Kind::None, 0, seconds(protocol));
        assert_eq!(breaks(&exact(plain)), [0; 0]);
        assert_eq!(breaks(&exact(|bytes| (if bytes < 1 << 20 { 57e-6 } else { 100e-6 }, 53.8e9))), [4]);
        // 1.5 % more from 1 MiB on: one line is within 2 %.
        assert_eq!(breaks(&exact(|bytes| if bytes < 1 << 20 { (57e-6, 53.8e9) } else { (57.9e-6, 53e9) })), [0; 0]);
    }

    #[test]
    fn one_late_size_is_taken_for_a_protocol_in_two_of_a_hundred_cases_at_most() {
        let taken = |late: usize, seed: u64| {
            let mut points = measured(&sizes(9), 8, Kind::Normal, seed, seconds(plain));
            points[late].seconds *= 1.5;
            !breaks(&points).is_empty()
        };
        let false_alarms = (1..8).flat_map(|late| (0..100).map(move |seed| (late, seed))).filter(|&(late, seed)| taken(late, seed)).count();
        assert!(false_alarms <= 14, "{false_alarms} of 700");
    }

    #[test]
    fn three_sizes_are_too_few_to_tell() {
        let step = |bytes| if bytes < 1 << 16 { 1.0 } else { 5.0 };
        assert_eq!(segments(&measured(&sizes(3), 8, Kind::Normal, 1, step)), Vec::<Range<usize>>::new());
        assert_eq!(segments(&measured(&sizes(4), 8, Kind::Normal, 1, step)), [0..2, 2..4]);
    }

    proptest! {
        #[test]
        fn segments_follow_one_another_and_are_never_short(
            protocols in prop::collection::vec((1e-6f64..1e-3, 1e9f64..1e11, 1usize..6), 1..5),
            repeats in 1usize..9,
        ) {
            let lines: Vec<(f64, f64)> = protocols.iter().flat_map(|&(alpha, rate, len)| vec![(alpha, rate); len]).collect();
            let points: Vec<Point> = sizes(lines.len() as u32)
                .iter()
                .zip(&lines)
                .map(|(&bytes, (alpha, rate))| {
                    let time = |i| (alpha + bytes as f64 / rate) * (1.0 + 0.01 * i as f64);
                    Point::of(bytes, &mut (0..repeats).map(time).collect::<Vec<_>>())
                })
                .collect();
            let ranges = segments(&points);
            if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
                prop_assert_eq!((first.start, last.end), (0, points.len()));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                prop_assert!((2..=MOST).contains(&ranges.len()));
                prop_assert!(ranges.iter().all(|range| range.len() >= SHORTEST));
            }
        }
    }
}
