//! Every shipped fabric is found again, pair by pair (issue 3, must show b).

use toposcope::fit::{Fit, Key, Line, LineIntervals};

use super::*;

/// What the fits of a sweep say of the truth.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// α and rates that were compared
    pub numbers: usize,
    /// neither within 1 % of the truth nor with it in their interval
    pub outside: Vec<String>,
    /// without it in their interval
    pub beyond_interval: usize,
    /// further than 1 % off
    pub beyond_percent: usize,
    /// fits with other breakpoints than the truth has at these sizes
    pub bent: Vec<String>,
}

/// Sizes of each of the truth's regimes that were measured: the smallest size, α, rate.
fn regimes(fabric: &Fabric, from: usize, to: usize, sizes: &[u64]) -> Vec<(u64, f64, f64)> {
    let truth = fabric.truth(from, to);
    let mut found: Vec<(u64, f64, f64)> = Vec::new();
    for &bytes in sizes {
        let (alpha, rate) = truth.at(bytes);
        if found.last().is_none_or(|&(_, a, r)| (a, r) != (alpha, rate)) {
            found.push((bytes, alpha, rate));
        }
    }
    found
}

impl Verdict {
    fn compare(&mut self, what: &str, found: f64, truth: f64, interval: toposcope::fit::Interval) {
        self.numbers += 1;
        let (off, held) = ((found / truth - 1.0).abs(), interval.contains(truth));
        self.beyond_interval += usize::from(!held);
        self.beyond_percent += usize::from(off > 0.01);
        if off > 0.01 && !held {
            self.outside.push(format!("{what}: {found:e} in {interval:?} instead of {truth:e}, {:+.2} %", 100.0 * (found / truth - 1.0)));
        }
    }

    fn line(&mut self, what: &str, line: &Line, intervals: Option<LineIntervals>, (_, alpha, rate): (u64, f64, f64)) {
        let intervals = intervals.expect("6 repeats or more of every size");
        self.compare(&format!("{what} alpha"), line.alpha, alpha, intervals.alpha);
        self.compare(&format!("{what} rate"), line.bandwidth, rate, intervals.bandwidth);
    }

    fn fit(&mut self, fabric: &Fabric, sizes: &[u64], fit: &Fit) {
        let (from, to) = match fit.key {
            Key::Pair { from, to } => (from, to),
            Key::Rank { rank } => (rank, rank),
            _ => return,
        };
        let what = format!("{from}→{to}");
        let regimes = regimes(fabric, from, to, sizes);
        let breaks: Vec<u64> = fit.breakpoints().collect();
        if breaks != regimes[1..].iter().map(|regime| regime.0).collect::<Vec<_>>() {
            self.bent.push(format!("{what}: breakpoints {breaks:?}"));
        } else if fit.segments.is_empty() {
            self.line(&what, &fit.line, fit.intervals, regimes[0]);
        } else {
            for (segment, &regime) in fit.segments.iter().zip(&regimes) {
                self.line(&format!("{what} from {}", regime.0), &segment.line, segment.intervals, regime);
            }
        }
    }

    pub fn of(fabric: &Fabric, run: &Run) -> Self {
        let fits = run.fits();
        let sizes = &run.model.sweep.as_ref().unwrap().settings.sizes;
        let mut verdict = Self::default();
        fits.single.iter().for_each(|fit| verdict.fit(fabric, sizes, fit));
        verdict
    }
}

pub fn settings(name: &str) -> SweepSettings {
    let every_second = |first: u64| (0..5).map(|step| first << (4 * step)).collect();
    match name {
        "laptop" => SweepSettings { sizes: (0..11).map(|step| 256 << (2 * step)).collect(), ..calibration(0.05) },
        "nvswitch-32x8" => SweepSettings { pairs: 4, sizes: every_second(4096), ..calibration(0.05) },
        "nvswitch-128x8" => SweepSettings { pairs: 2, sizes: every_second(4096), ..calibration(0.05) },
        _ => calibration(0.05),
    }
}

#[test]
#[ignore]
fn seeds() {
    let names: Vec<String> = std::env::var("FABRICS").map_or_else(|_| Fabric::names().map(str::to_owned).collect(), |s| s.split(',').map(str::to_owned).collect());
    let seeds: u64 = std::env::var("SEEDS").map_or(5, |s| s.parse().unwrap());
    let cis: Vec<f64> = std::env::var("CI_").map_or(vec![0.05], |s| s.split(',').map(|s| s.parse().unwrap()).collect());
    for name in names {
        let fabric = shipped(&name);
        for &ci in &cis {
            let mut all = Verdict::default();
            let (mut t, mut n) = (0.0, 0);
            let begin = std::time::Instant::now();
            for seed in 1..=seeds {
                let run = sweep(&fabric, &SweepSettings { seed, ci, repeats: if ci < 0.05 {400} else {40}, ..settings(&name) }, true);
                let v = Verdict::of(&fabric, &run);
                t += run.seconds; n += run.model.samples();
                all.numbers += v.numbers; all.beyond_interval += v.beyond_interval; all.beyond_percent += v.beyond_percent;
                all.outside.extend(v.outside); all.bent.extend(v.bent);
            }
            println!("{name} ci {ci} {seeds} seeds: {} numbers, beyond interval {}, beyond 1 % {}, outside {}, bent {}; virtual {:.3} s, {} samples, wall {:?} each", all.numbers, all.beyond_interval, all.beyond_percent, all.outside.len(), all.bent.len(), t / seeds as f64, n / seeds, begin.elapsed() / seeds as u32);
            for s in all.outside.iter().take(12).chain(all.bent.iter().take(5)) { println!("   {s}"); }
        }
    }
}
