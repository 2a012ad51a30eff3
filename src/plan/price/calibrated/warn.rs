//! What makes a calibration's prices doubtful for a traffic.

use std::collections::BTreeSet;

use super::{Calibrated, Conditions, path};
use crate::fit::{EXTRAPOLATION_LIMIT, Fan};
use crate::plan::{Traffic, Warning};
use crate::topology::PathClass;
use crate::units::{format_ranks, format_size};

/// Sizes this much beyond the measured ones are far outside: a line may hold there or not.
const FAR: u64 = 16;

/// Pairs that are named before the rest becomes a number.
const NAMED: usize = 4;

pub(super) fn warnings(own: &Calibrated, traffic: &Traffic) -> Vec<Warning> {
    let mut all = Vec::new();
    all.extend(group(&own.measured, &own.wanted, traffic));
    all.extend(mover(&own.measured, &own.wanted));
    all.extend(memory(&own.measured, &own.wanted));
    // Each pair once, with its smallest and largest message.
    let mut pairs: Vec<(usize, usize, u64)> = traffic
        .flows
        .iter()
        .filter(|flow| flow.bytes > 0)
        .map(|flow| (flow.from, flow.to, flow.bytes / u64::from(flow.messages.max(1))))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    all.extend(sizes(own, &pairs));
    all.extend(fits(own, &pairs));
    all.extend(unmeasured(own, &pairs));
    all.extend(fans(own, traffic));
    all
}

/// Rates depend on who takes part: libraries choose other ways for other groups.
fn group(measured: &Conditions, wanted: &Conditions, traffic: &Traffic) -> Option<Warning> {
    const WHY: &str = "libraries choose other ways in other groups (elsewhere, one NVLink pair gave 275 GB/s in a group of 8 and 54 in one of 16); \
                       calibrate on the group that the transfer uses";
    let same = if measured.group.is_empty() { wanted.group.iter().copied().eq(0..measured.ranks) } else { wanted.group == measured.group };
    let ranks = if wanted.ranks > 0 { wanted.ranks } else { traffic.ranks };
    let say = if measured.ranks == 0 {
        return None;
    } else if !wanted.group.is_empty() && !same {
        let own = if measured.group.is_empty() { (0..measured.ranks).collect() } else { measured.group.clone() };
        format!("measured on ranks {}, used on ranks {}: {WHY}", format_ranks(&own), format_ranks(&wanted.group))
    } else if ranks != measured.ranks {
        format!("measured in a group of {} ranks, used in one of {ranks}: {WHY}", measured.ranks)
    } else {
        return None;
    };
    Some(Warning { kind: "group", say })
}

fn mover(measured: &Conditions, wanted: &Conditions) -> Option<Warning> {
    let (measured, wanted) = (measured.mover?, wanted.mover?);
    let say = format!(
        "measured with {}, used with {}: the two may differ in rate and in what they share; calibrate with --mover {}",
        measured.name(),
        wanted.name(),
        wanted.name()
    );
    (measured != wanted).then_some(Warning { kind: "mover", say })
}

/// Memory of a host and of its GPUs are reached over other links.
fn memory(measured: &Conditions, wanted: &Conditions) -> Option<Warning> {
    let (measured, wanted) = (measured.memory?, wanted.memory?);
    let say = format!(
        "measured in {} memory, used in {} memory: the ways differ, and with them rate and what is shared; calibrate with --memory {}",
        measured.name(),
        wanted.name(),
        wanted.name()
    );
    (measured != wanted).then_some(Warning { kind: "memory", say })
}

fn sizes(own: &Calibrated, pairs: &[(usize, usize, u64)]) -> Option<Warning> {
    let mut off: Option<(u64, u64, bool)> = None;
    let (mut smallest, mut largest) = (u64::MAX, 0);
    for &(from, to, bytes) in pairs {
        let Ok(found) = own.find(from, to, bytes) else { continue };
        let (low, high) = found.curve.sizes();
        let refused = found.curve.refuses(bytes);
        if refused || bytes < low / FAR || bytes > high.saturating_mul(FAR) {
            (smallest, largest) = (smallest.min(bytes), largest.max(bytes));
            let known = off.get_or_insert((low, high, refused));
            known.2 |= refused;
        }
    }
    let (low, high, refused) = off?;
    let range = if smallest == largest { format_size(smallest) } else { format!("{} to {}", format_size(smallest), format_size(largest)) };
    let why = if refused {
        format!("and the fit there misses by more than {:.0} %", EXTRAPOLATION_LIMIT * 100.0)
    } else {
        "far outside".to_owned()
    };
    let say = format!(
        "messages of {range}, but {} to {} were measured, {why}: sweep with --sizes that hold them",
        format_size(low),
        format_size(high)
    );
    Some(Warning { kind: "size", say })
}

fn fits(own: &Calibrated, pairs: &[(usize, usize, u64)]) -> Option<Warning> {
    let mut poor: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut worst = 0.0_f64;
    for &(from, to, bytes) in pairs {
        if let Ok(found) = own.find(from, to, bytes)
            && found.curve.misses(bytes) > EXTRAPOLATION_LIMIT
        {
            poor.insert((from, to));
            worst = worst.max(found.curve.misses(bytes));
        }
    }
    (!poor.is_empty()).then(|| Warning {
        kind: "fit",
        say: format!("{}: the line misses a measured size by up to {:.0} %; more sizes or repeats would tell", named(&poor), worst * 100.0),
    })
}

fn unmeasured(own: &Calibrated, pairs: &[(usize, usize, u64)]) -> Option<Warning> {
    let mut open: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut spread = 0.0_f64;
    for &(from, to, bytes) in pairs {
        if let Ok(found) = own.find(from, to, bytes)
            && let Some(class) = found.class
            && path(&own.units, from, to) != PathClass::Local
        {
            open.insert((from, to));
            spread = spread.max(class.spread);
        }
    }
    (!open.is_empty()).then(|| {
        let spread = if spread > 0.0 { format!(", whose pairs differ by ±{:.0} %", spread * 100.0) } else { String::new() };
        Warning {
            kind: "unmeasured",
            say: format!(
                "{}: not measured by themselves; priced like their class{spread} (sweep --patterns peer measures them)",
                named(&open)
            ),
        }
    })
}

/// What several flows of a rank share is known only where several were measured at once.
fn fans(own: &Calibrated, traffic: &Traffic) -> Option<Warning> {
    let mut ends: Vec<(Fan, PathClass, usize, usize, usize)> = Vec::with_capacity(2 * traffic.flows.len());
    let world = own.units.world();
    for flow in traffic.flows.iter().filter(|flow| flow.from != flow.to && flow.bytes > 0 && flow.from < world && flow.to < world) {
        let path = path(&own.units, flow.from, flow.to);
        ends.push((Fan::Out, path, flow.from, flow.stage, flow.to));
        ends.push((Fan::In, path, flow.to, flow.stage, flow.from));
    }
    ends.sort_unstable();
    ends.dedup();
    // The first and how many more, of the way and paths of the first.
    let mut told: Option<(Fan, PathClass, usize, usize)> = None;
    let mut roots: BTreeSet<usize> = BTreeSet::new();
    for fan in ends.chunk_by(|a, b| (a.0, a.1, a.2, a.3) == (b.0, b.1, b.2, b.3)) {
        let (way, path, root, ..) = fan[0];
        let peers: Vec<usize> = fan.iter().map(|end| end.4).collect();
        if peers.len() < 2 || own.shared.knows(root, way, path, &peers) {
            continue;
        }
        let known = told.get_or_insert((way, path, root, peers.len()));
        if (known.0, known.1) == (way, path) {
            known.3 = known.3.max(peers.len());
            roots.insert(root);
        }
    }
    let (way, path, root, width) = told?;
    let (does, others, sweep) = match (way, path) {
        (Fan::Out, PathClass::InterNode) => ("sends to", "of other hosts ", "fan_out --peers cross_host"),
        (Fan::Out, _) => ("sends to", "", "fan_out --peers same_host"),
        (Fan::In, PathClass::InterNode) => ("receives from", "of other hosts ", "fan_in --peers cross_host"),
        (Fan::In, _) => ("receives from", "", "fan_in --peers same_host"),
    };
    let more = match roots.len() {
        0 | 1 => String::new(),
        2 => " (and one rank more does so)".to_owned(),
        many => format!(" (and {} ranks more do so)", many - 1),
    };
    let say = format!(
        "rank {root} {does} {width} ranks {others}at once{more}, but no such fan was measured: what it shares is not known, and all may \
         take longer (sweep --patterns {sweep} --widths {width})"
    );
    Some(Warning { kind: "unmeasured", say })
}

fn named(pairs: &BTreeSet<(usize, usize)>) -> String {
    let names: Vec<String> = pairs.iter().take(NAMED).map(|(from, to)| format!("{from}→{to}")).collect();
    let more = pairs.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more pairs", names.join(", ")) } else { names.join(", ") }
}
