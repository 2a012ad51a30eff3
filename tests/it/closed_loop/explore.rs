//! Scratch.
use super::*;
use std::time::Instant;
use toposcope::fit::{Key, Kind};
use toposcope::session::Event;

#[test]
#[ignore]
fn explore() {
    let names: Vec<String> = std::env::var("FABRICS").map_or_else(|_| Fabric::names().map(str::to_owned).collect(), |s| s.split(',').map(str::to_owned).collect());
    let ci: f64 = std::env::var("CI_").map_or(0.05, |s| s.parse().unwrap());
    for name in names {
        for told in [true, false] {
            let fabric = shipped(&name);
            let world = fabric.world();
            let mut settings = calibration(ci);
            if world > 100 {
                settings.pairs = if world > 500 { 4 } else { 8 };
                settings.sizes = vec![4096, 1 << 16, 1 << 20, 1 << 24, 1 << 28];
            }
            let begin = Instant::now();
            let run = sweep(&fabric, &settings, told);
            let swept = begin.elapsed();
            let fits = run.fits();
            let fitted = begin.elapsed() - swept;
            let mut errs = (vec![], vec![]);
            let (mut out_a, mut out_r, mut own_a, mut own_r, mut n) = (0, 0, 0, 0, 0);
            for fit in &fits.single {
                let (from, to) = match fit.key { Key::Pair { from, to } => (from, to), Key::Rank { rank } => (rank, rank), _ => continue };
                let truth = fabric.truth(from, to);
                if !truth.breakpoints.is_empty() || fit.breakpoints().count() > 0 { 
                    if from < 2 && to < 2 { println!("{from}->{to} truth {truth:?}: {:?} {:?}", fit.line, fit.segments.iter().map(|s| (s.line.smallest, s.line.largest, s.line.alpha, s.line.bandwidth, s.intervals)).collect::<Vec<_>>()); }
                    continue }
                n += 1;
                let (a, r) = (fit.line.alpha / truth.alpha - 1.0, fit.line.bandwidth / truth.rate - 1.0);
                let ci = fit.intervals.unwrap();
                let ok_a = ci.alpha.contains(truth.alpha); let ok_r = ci.bandwidth.contains(truth.rate);
                own_a += u32::from(!ok_a); own_r += u32::from(!ok_r);
                out_a += u32::from(!ok_a && a.abs() > 0.01); out_r += u32::from(!ok_r && r.abs() > 0.01);
                if fit.kind == Kind::Peer { errs.0.push(a.abs()); errs.1.push(r.abs()); }
            }
            errs.0.sort_by(f64::total_cmp); errs.1.sort_by(f64::total_cmp);
            let q = |v: &Vec<f64>, p: f64| v.get((v.len().saturating_sub(1) as f64 * p) as usize).copied().unwrap_or(f64::NAN) * 100.0;
            let probes = run.records.iter().filter(|r| matches!(r.event, Event::ProbeStarted { .. })).count();
            let first = first_picture(&run);
            println!("{name} told={told}: virtual {:.3} s, first picture {:.4} s ({:.2} %), {probes} probes, {} samples; wall {swept:.2?} + fit {fitted:.2?}; {n} fits: outside own a {own_a} r {own_r}; and 1%: a {out_a} r {out_r}; |a| med {:.3} p95 {:.3} max {:.3}; |r| med {:.3} p95 {:.3} max {:.3} %", run.seconds, first, first/run.seconds*100.0, run.model.samples(), q(&errs.0, 0.5), q(&errs.0, 0.95), q(&errs.0, 1.0), q(&errs.1, 0.5), q(&errs.1, 0.95), q(&errs.1, 1.0));
            for record in &run.records { if let Event::Notice { text } = &record.event { println!("   {:.3} {text}", record.t); } }
            let mut per: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
            if let Some(sweep) = &run.model.sweep { for p in &sweep.progress { per.insert(p.bytes, (p.spent, p.done)); println!("   {} spent {:.3} done {}", p.bytes, p.spent, p.done); } }
        }
    }
}

pub fn first_picture(run: &Run) -> f64 {
    let world = run.model.world();
    let mut wanted = std::collections::HashSet::new();
    let mut last = 0.0;
    let _ = world;
    for record in &run.records {
        if let Event::ProbeDone { samples, .. } = &record.event {
            for s in samples { if wanted.insert((s.pattern, s.from, s.to)) { last = record.t; } }
        }
    }
    last
}

/// The reference's way.
pub fn reference(fabric: &Fabric, sizes: &[u64], seed: u64) -> (f64, u64, Fits) {
    use toposcope::fit::{Flow, Observation, Observations};
    let topology = fabric.topology();
    let world = fabric.world();
    let all = || (0..world).flat_map(|from| (0..world).map(move |to| (from, to)));
    let slowest = all().map(|(from, to)| fabric.truth(from, to).alpha).fold(0.0, f64::max);
    let barrier = f64::from(world.next_power_of_two().trailing_zeros()) * slowest;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut observations = Observations::default();
    let (mut seconds, mut messages) = (0.0, 0);
    for (from, to) in all() {
        for &bytes in sizes {
            for repeat in 0..12 {
                let time = fabric.truth(from, to).seconds(bytes) * fabric.noise().map_or(1.0, |noise| noise.factor(&mut rng));
                seconds += time + 2.0 * barrier;
                messages += 1;
                if repeat >= 2 {
                    let path = topology.path(from, to);
                    let flow = if from == to { Flow::Local { rank: from } } else { Flow::Peer { from, to, path } };
                    observations.push(Observation { flow, bytes, seconds: time });
                }
            }
        }
    }
    (seconds, messages, observations.fit(Some(Confidence::usual())))
}

pub fn errors(fabric: &Fabric, fits: &Fits) -> [Vec<f64>; 2] {
    let mut errs = [vec![], vec![]];
    for fit in fits.single.iter().filter(|fit| fit.kind == Kind::Peer) {
        let Key::Pair { from, to } = fit.key else { continue };
        let truth = fabric.truth(from, to);
        errs[0].push((fit.line.alpha / truth.alpha - 1.0).abs() * 100.0);
        errs[1].push((fit.line.bandwidth / truth.rate - 1.0).abs() * 100.0);
    }
    errs
}

fn q(v: &mut Vec<f64>, p: f64) -> f64 { v.sort_by(f64::total_cmp); v[((v.len() - 1) as f64 * p).round() as usize] }

#[test]
#[ignore]
fn cost() {
    let fabric = shipped("h20-2x8");
    let mut all = [[vec![], vec![]], [vec![], vec![]]];
    for seed in 1..=std::env::var("SEEDS").map_or(10, |s| s.parse().unwrap()) {
        let (t, m, fits) = reference(&fabric, &sizes(), seed);
        let mut e = errors(&fabric, &fits);
        let run = sweep(&fabric, &SweepSettings { seed, ..calibration(0.05) }, true);
        let mut o = errors(&fabric, &run.fits());
        println!("ref {t:.3} s {m} msgs; ours {:.3} s ({:.2}x), first {:.2} %; a med {:.3}/{:.3} p95 {:.3}/{:.3}; r med {:.3}/{:.3} p95 {:.3}/{:.3}", run.seconds, t / run.seconds, first_picture(&run)/run.seconds*100.0,
            q(&mut o[0], 0.5), q(&mut e[0], 0.5), q(&mut o[0], 0.95), q(&mut e[0], 0.95), q(&mut o[1], 0.5), q(&mut e[1], 0.5), q(&mut o[1], 0.95), q(&mut e[1], 0.95));
        for i in 0..2 { all[0][i].extend(o[i].clone()); all[1][i].extend(e[i].clone()); }
        if seed == 1 { if let Some(sweep) = &run.model.sweep { for p in &sweep.progress { println!("   {} spent {:.3} done {}", p.bytes, p.spent, p.done); } } }
    }
    for (name, mut w) in [("ours", all[0].clone()), ("ref", all[1].clone())] {
        println!("{name}: a med {:.3} p95 {:.3}; r med {:.3} p95 {:.3}", q(&mut w[0], 0.5), q(&mut w[0], 0.95), q(&mut w[1], 0.5), q(&mut w[1], 0.95));
    }
}

#[test]
#[ignore]
fn rounds() {
    let fabric = shipped("h20-2x8");
    let run = sweep(&fabric, &calibration(0.05), true);
    let mut rounds: BTreeMap<u64, (f64, f64, Vec<(usize, usize, u64, u32, u32)>)> = BTreeMap::new();
    let mut of = BTreeMap::new();
    for record in &run.records {
        match &record.event {
            Event::ProbeStarted { probe } => {
                of.insert(probe.id, probe.round);
                let (from, to) = probe.flows()[0];
                rounds.entry(probe.round).or_insert((record.t, 0.0, vec![])).2.push((from, to, probe.bytes, probe.repeats, probe.take));
            }
            Event::ProbeDone { probe, .. } => rounds.get_mut(&of[probe]).unwrap().1 = record.t,
            _ => {}
        }
    }
    let mut sums: BTreeMap<(u64, &str, usize, u32), (usize, f64)> = BTreeMap::new();
    for (begin, end, probes) in rounds.values() {
        let (from, to, bytes, _, take) = probes[0];
        let class = run.model.header.topology.path(from, to).name();
        let sum = sums.entry((bytes, class, probes.len(), take)).or_default();
        sum.0 += 1;
        sum.1 += end - begin;
    }
    for (key, (n, t)) in sums { println!("{key:?}: {n} rounds, {t:.3} s"); }
}
