//! Every shipped fabric is found again, pair by pair (issue 3, must show b).

use toposcope::fit::{Fit, Key, Line, LineIntervals};
use toposcope::sample::Pattern;
use toposcope::topology::PathClass;

use super::*;

/// What the fits of a sweep say of the truth.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// α and rates that were compared
    numbers: usize,
    /// neither within 1 % of the truth nor with it in their interval
    outside: Vec<String>,
    /// without it in their interval
    beyond_interval: usize,
    /// further than 1 % off
    beyond_percent: usize,
    /// fits with other breakpoints than the truth has at these sizes
    bent: Vec<String>,
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

    fn of(fabric: &Fabric, run: &Run) -> Self {
        let fits = run.fits();
        let sizes = &run.model.sweep.as_ref().unwrap().settings.sizes;
        let mut verdict = Self::default();
        fits.single.iter().for_each(|fit| verdict.fit(fabric, sizes, fit));
        verdict
    }
}

/// The default, of as many pairs as a test has time for.
fn settings(name: &str) -> SweepSettings {
    let default = calibration(0.05);
    match name {
        // From below its smallest breakpoint on: two sizes make a line.
        "laptop" => SweepSettings { sizes: (0..11).map(|step| 256 << (2 * step)).collect(), ..default },
        "nvswitch-32x8" => SweepSettings { pairs: 2, ..default },
        "nvswitch-128x8" => SweepSettings { pairs: 1, patterns: vec![Pattern::Peer], ..default },
        _ => default,
    }
}

fn judged(name: &str, settings: &SweepSettings) -> Verdict {
    let fabric = shipped(name);
    let run = sweep(&fabric, settings, true);
    let verdict = Verdict::of(&fabric, &run);
    println!(
        "{name}: of {} numbers {} off by more than 1 %, {} without the truth in their interval, {} both; {:.3} s, {} samples",
        verdict.numbers,
        verdict.beyond_percent,
        verdict.beyond_interval,
        verdict.outside.len(),
        run.seconds,
        run.model.samples()
    );
    verdict
}

#[track_caller]
fn found(name: &str, settings: &SweepSettings, numbers: usize) {
    let verdict = judged(name, settings);
    assert_eq!((verdict.numbers, &verdict.outside, &verdict.bent), (numbers, &vec![], &vec![]), "{name}");
}

#[test]
fn small_fabrics_are_found_again() {
    // α and rate of each pair and copy; l20-8 and the laptop have two of their own on either side of a breakpoint.
    for (name, lines) in [("b70-8", 64), ("l20-8", 56 + 2 * 8), ("h20-8", 64), ("h20-2x8", 256), ("nvswitch-8", 64)] {
        found(name, &settings(name), 2 * lines);
    }
    // With 2 and 3 % of noise, intervals of 5 % at each size leave a fit some per cent wide, and one interval in twenty misses:
    // asked for each pair to 1 %, one has to ask for more.
    found("h20-2x8-pr8966", &SweepSettings { ci: 0.0, repeats: 40, ..settings("h20-2x8-pr8966") }, 2 * 256);
    found("laptop", &SweepSettings { ci: 0.005, repeats: 400, ..settings("laptop") }, 2 * 2 * 16);
}

#[test]
fn a_large_fabric_is_found_again() {
    found("nvswitch-32x8", &settings("nvswitch-32x8"), 2 * (256 + 2 * 256));
}

#[test]
fn a_thousand_ranks_are_found_again() {
    found("nvswitch-128x8", &settings("nvswitch-128x8"), 2 * 1024);
}

/// What the default leaves where noise is large, over several orders of the probes.
#[test]
fn the_default_misses_no_more_than_its_intervals_claim() {
    for (name, numbers) in [("h20-2x8-pr8966", 512), ("laptop", 64)] {
        let verdicts = (1..=4).map(|seed| judged(name, &SweepSettings { seed, ..settings(name) }));
        let (mut beyond, mut outside) = (0, 0);
        for verdict in verdicts {
            assert_eq!((verdict.numbers, &verdict.bent), (numbers, &vec![]));
            beyond += verdict.beyond_interval;
            outside += verdict.outside.len();
        }
        assert!(beyond * 100 <= 7 * 4 * numbers, "{name}: {beyond} of {} intervals miss", 4 * numbers);
        assert!(outside * 100 <= 4 * numbers, "{name}: {outside} of {} are off by more than 1 %, too", 4 * numbers);
    }
}

/// Another α and rate below a size of the sweep, for all pairs between hosts.
#[test]
fn a_planted_breakpoint_is_found_within_a_size_step() {
    for (below, alpha, rate) in [("64KiB", "4us", "2GB/s"), ("1MiB", "10us", "9GB/s"), ("16MiB", "25us", "24GB/s")] {
        for noise in ["normal", "lognormal", "heavy"] {
            let text = format!(
                r#"
about = "two hosts with another protocol below {below}"
[hosts]
count = 2
ranks = 2
memory = "32GiB"
[path.local]
alpha = "1us"
rate = "100GB/s"
[path.intra_node]
alpha = "10us"
rate = "40GB/s"
[path.inter_node]
alpha = "30us"
rate = "12GB/s"
breakpoints = [{{ below = "{below}", alpha = "{alpha}", rate = "{rate}" }}]
[noise]
kind = "{noise}"
cv = 0.03
"#
            );
            let fabric = Arc::new(Fabric::parse(&text, "planted").unwrap());
            let fits = sweep(&fabric, &calibration(0.05), true).fits();
            assert_eq!(fits.single.len(), 16);
            for fit in &fits.single {
                let found: Vec<u64> = fit.breakpoints().collect();
                if fit.path != Some(PathClass::InterNode) {
                    assert_eq!(found, [0; 0], "{below} {noise} {:?}", fit.key);
                    continue;
                }
                let planted = toposcope::units::parse_size(below).unwrap();
                assert!(found.len() == 1 && (planted / 4..=planted * 4).contains(&found[0]), "{below} {noise} {:?}: {found:?}", fit.key);
            }
        }
    }
}
