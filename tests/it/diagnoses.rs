//! Findings: from a described fabric by a sweep on the simulator to what is said.

mod healthy;
mod planted;

use std::sync::Arc;

use toposcope::diagnose::{Diagnosis, Measured, diagnose};
use toposcope::fabric::Fabric;
use toposcope::session::measured;
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;

use crate::closed_loop::{shipped, sweep};

/// A sweep of a described fabric as rules see it: probes one at a time, so that nothing but the fabric is seen.
pub fn swept(fabric: &Arc<Fabric>, settings: &SweepSettings) -> Measured {
    let run = sweep(fabric, &SweepSettings { isolated: true, ..settings.clone() }, false);
    measured(&run.model, &Efficiency::default())
}

/// What is said of a described fabric.
pub fn of(fabric: &Arc<Fabric>, settings: &SweepSettings) -> Diagnosis {
    diagnose(&swept(fabric, settings))
}

#[test]
fn what_rules_see_is_what_was_measured() {
    let fabric = shipped("b70-8");
    let settings = SweepSettings { sizes: vec![4096, 1 << 20, 256 << 20], ..crate::closed_loop::calibration(0.0) };
    let seen = swept(&fabric, &SweepSettings { repeats: 6, ..settings });
    assert_eq!((seen.world(), seen.bytes, seen.small_bytes, seen.peer.len(), seen.local.len()), (8, 256 << 20, 4096, 56, 8));
    let rate = |from, to| seen.rate(from, to).unwrap() * 1e-9;
    assert!((rate(2, 0) - 53.9).abs() < 0.05 && (rate(0, 2) - 7.9).abs() < 0.05, "{} {}", rate(2, 0), rate(0, 2));
    let pair = seen.peer.get(2, 0).unwrap();
    assert!(pair.interval.is_some() && pair.expected > 50e9 && pair.small > 300e-6 && pair.n == 6);
    // Below one switch, within a socket, across.
    let names: std::collections::BTreeSet<String> = seen.peer.iter().map(|pair| seen.class(pair).name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}
