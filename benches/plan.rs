//! What a large sync costs from its maps to its price: `cargo bench --bench plan`.
//!
//! Target (issue 6, must show f): 1,000,000 segments built, checked, scheduled and priced in under 5 s and 2 GB.
//!
//! `cargo bench --bench plan -- maps FOLDER` writes the maps of one parameter of each case as JSON instead, for other planners.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use toposcope::fabric::Fabric;
use toposcope::plan::build::{Budget, ElementSizes, FirstHolder, LocalFirst, Policy, Settings, plans};
use toposcope::plan::map::{self, Map, Maps, check, gather, split};
use toposcope::plan::{Batch, Endpoints, Parameter, PlanError, replay, schedule};

struct Case {
    name: &'static str,
    target: Maps,
    source: Maps,
    budget: Budget,
    /// locations of the source; those of the target are the processes behind
    senders: i64,
    receivers: i64,
}

/// The same layouts for so many parameters.
fn model(target: &Map, source: &Map, parameters: usize) -> (Maps, Maps) {
    let all = |map: &Map| (0..parameters).map(|number| (format!("layers.{number}.weight"), map.clone())).collect();
    (all(target), all(source))
}

fn cases() -> Result<Vec<Case>, PlanError> {
    let side = 8192;
    let (target, source) = model(&split(&[side, side], 1, &[128; 64])?, &split(&[side, side], 0, &[64; 128])?, 123);
    let batch = Case {
        name: "123 parameters, rows on 128 ranks -> columns on 64, the reference's budget",
        target,
        source,
        budget: Budget::default(),
        senders: 128,
        receivers: 64,
    };
    let (target, source) = model(&split(&[side, side], 1, &[8192 / 512; 512])?, &split(&[side, side], 0, &[8192 / 512; 512])?, 4);
    let wide = Case {
        name: "4 parameters, rows on 512 ranks -> columns on 512",
        target,
        source,
        budget: Budget::unlimited(),
        senders: 512,
        receivers: 512,
    };
    let blocks: BTreeMap<i64, Vec<u64>> =
        (0..8_u64).map(|own| (own.cast_signed(), (0..125_000).map(|block| block * 8 + own).collect())).collect();
    let (target, source) = model(&split(&[8_000_000], 0, &[2_000_000; 4])?, &gather(&[8_000_000], 0, &blocks, 8)?, 1);
    let pieces = Case {
        name: "1 parameter of 1,000,000 pieces, blocks dealt to 8 ranks -> 4 ranges",
        target,
        source,
        budget: Budget::unlimited(),
        senders: 8,
        receivers: 4,
    };
    Ok(vec![batch, wide, pieces])
}

/// A line of /proc/self/status, MiB.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|own| own.strip_prefix(line)?.split_whitespace().next()?.parse::<u64>().ok());
    found.unwrap_or_default() / 1024
}

fn run(case: &Case, fabric: &Fabric) -> Result<(), Box<dyn Error>> {
    println!("\n{}", case.name);
    let mut last = Instant::now();
    let mut step = |what: &str| {
        println!("  {what:<44} {:>8.3} s", last.elapsed().as_secs_f64());
        last = Instant::now();
    };
    for (maps, side) in [(&case.source, "source map"), (&case.target, "target map")] {
        maps.iter().try_for_each(|(name, map)| check(map, name, side))?;
    }
    step("rules M1 to M5 of both maps, alone");
    let endpoints = Endpoints {
        source: (0..case.senders).map(|own| (own, own as usize)).collect(),
        target: (0..case.receivers).map(|own| (own, (case.senders + own) as usize)).collect(),
    };
    let settings = |policy: &'static dyn Policy| Settings {
        endpoints: Some(&endpoints),
        element_size: ElementSizes::all(2),
        budget: case.budget,
        ..Settings::new(policy)
    };
    let made = plans(&case.target, &case.source, &settings(&FirstHolder))?;
    step("checked and planned, first_holder");
    drop(made);
    step("(plans put away)");
    let begin = Instant::now();
    let made = plans(&case.target, &case.source, &settings(&LocalFirst))?;
    step("checked and planned, local_first");
    let segments: usize = made.iter().map(|(_, plan, _)| plan.segments.len()).sum();
    let parameters = made.into_iter().map(|(name, plan, _)| Parameter { name, plan, element_size: 2 }).collect();
    let batch = Batch { parameters, endpoints: endpoints.clone(), bytes_per_peer: 8 << 20 };
    let traffic = schedule::schedule(&batch, None)?.traffic(&batch);
    step("scheduled, as traffic");
    let told = replay(&traffic, fabric)?;
    step("priced and replayed");
    println!(
        "  {segments} segments, {} flows, predicted {:.3} s; from maps to price with local_first {:.3} s, peak {} MiB",
        traffic.flows.len(),
        told.seconds,
        begin.elapsed().as_secs_f64(),
        memory("VmHWM:")
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let cases = cases()?;
    if let Some(at) = arguments.iter().position(|own| own == "maps") {
        let folder = arguments.get(at + 1).ok_or("a folder behind maps")?;
        for (number, case) in cases.iter().enumerate() {
            for (maps, side) in [(&case.source, "source"), (&case.target, "target")] {
                let one = maps.values().next().cloned().unwrap_or_default();
                std::fs::write(format!("{folder}/{number}-{side}.json"), map::write(&Maps::from([(String::new(), one)])))?;
            }
        }
        return Ok(());
    }
    let text = Fabric::shipped_text("nvswitch-128x8").ok_or("no such fabric")?;
    let fabric = Fabric::parse(text, "nvswitch-128x8")?;
    // One case a run, so that the peak is its own: cargo bench --bench plan -- 1
    let wanted = arguments.iter().find_map(|own| own.parse::<usize>().ok());
    for (number, case) in cases.iter().enumerate() {
        if wanted.is_none_or(|wanted| wanted == number) {
            run(case, &fabric)?;
        }
    }
    Ok(())
}
