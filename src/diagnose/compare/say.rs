//! What changed, in words.

use std::collections::BTreeMap;

use super::causes::Found;
use super::evidence::{Kind, State};
use super::{Change, Place, What};
use crate::diagnose::{Measured, Selected, Ways};
use crate::fit::{Interval, median};
use crate::sample::{Pattern, Status};
use crate::units::{format_gbps, format_ranks, format_seconds};

/// Half of a 95 % interval in standard deviations.
const HALF_95: f64 = 1.96;
/// From this factor on a change is told as one.
const FACTOR: f64 = 2.0;
/// Pairs that are named one by one.
const NAMED: usize = 6;

/// What the list is sorted by: slower before faster, then how many cells times how much each changed.
pub(super) fn gravity(change: &Change) -> f64 {
    let size = change.cells.len().max(1) as f64;
    if change.what == What::State {
        return 2e18 * if change.ratio < 1.0 { 1.0 } else { 1e-18 } + size;
    }
    let by = change.ratio.ln().abs() * size;
    if change.ratio < 1.0 { 1e12 + by } else { by }
}

/// One cause as a change.
pub(super) fn change((old, new): (&Measured, &Measured), ranks: &[Option<usize>], what: What, kind: &Kind, found: &Found) -> Change {
    let mut members: Vec<_> = found.members.iter().map(|&at| kind.items[at]).collect();
    members.sort_by(|a, b| b.d.abs().total_cmp(&a.d.abs()));
    let half = HALF_95 * found.var.sqrt();
    let interval = Interval { low: (found.d - half).exp(), high: (found.d + half).exp() };
    let cells: Vec<(usize, usize)> = match what {
        What::Together => Vec::new(),
        _ => members.iter().map(|item| (item.from, item.to)).collect(),
    };
    let subject = subject(new, what, found);
    let by = by(what, found.d.exp(), interval);
    let numbers = match what {
        What::Together => fan_numbers(old, new, ranks, found),
        _ => numbers(old, new, ranks, what, &cells),
    };
    let count = match (found.place, members.len()) {
        (Place::Pair { .. } | Place::Together { .. }, _) => String::new(),
        (_, n) => format!(
            ", {n} {}",
            if what == What::Together {
                "of its kind"
            } else if what == What::Local {
                "ranks"
            } else {
                "pairs"
            }
        ),
    };
    let say = format!("{subject}: {by}{count}{numbers}");
    Change { what, place: found.place, say, ratio: found.d.exp(), interval: Some(interval), p: found.p, cells }
}

/// Who changed.
fn subject(new: &Measured, what: What, found: &Found) -> String {
    let name = |unit| new.units.name(unit).to_owned();
    let place = match found.place {
        Place::All => match what {
            What::Local => "copies of all ranks".to_owned(),
            What::Together => "all fans, relays and sets".to_owned(),
            _ => "all pairs".to_owned(),
        },
        Place::Class { class } => {
            format!("all {} pairs", new.classes.get(usize::from(class)).map_or_else(String::new, crate::diagnose::PairClass::name))
        }
        Place::Between { from, to } => format!("{} → {}", name(from), name(to)),
        Place::Unit { unit, ways } => match (what, ways) {
            (What::Local, _) => format!("copies within {}", name(unit)),
            (What::Together, _) => format!("fans of {}", name(unit)),
            (_, Ways::Sends) => format!("{} sends", name(unit)),
            (_, Ways::Receives) => format!("{} receives", name(unit)),
            (_, Ways::Both) => format!("{} sends and receives", name(unit)),
        },
        Place::Pair { from, .. } if what == What::Local => format!("copies of rank {from}"),
        Place::Pair { from, to } => format!("{from}→{to}"),
        Place::Together { index } => together(new, index),
    };
    match what {
        What::Duplex => format!("{place} with both directions busy"),
        What::Latency => format!("{place}, small messages"),
        _ => place,
    }
}

/// A fan, relay or set.
fn together(new: &Measured, index: usize) -> String {
    let Some(own) = new.together.get(index) else { return String::new() };
    let root = own.root.unwrap_or(0);
    let mut peers: Vec<usize> = own.flows.iter().map(|&(from, to)| if from == root { to } else { from }).collect();
    peers.sort_unstable();
    match own.pattern {
        Pattern::FanIn => format!("{} into {root} at once", format_ranks(&peers)),
        Pattern::FanOut => format!("{root} to {} at once", format_ranks(&peers)),
        Pattern::Relay => format!("a relay of {} ranks", own.flows.len()),
        _ => format!("{} transfers at once", own.flows.len()),
    }
}

/// How much.
fn by(what: What, ratio: f64, interval: Interval) -> String {
    let times = what == What::Latency;
    let (word, factor, low, high) = if ratio < 1.0 {
        (if times { "longer" } else { "slower" }, 1.0 / ratio, 1.0 / interval.high, 1.0 / interval.low)
    } else {
        (if times { "shorter" } else { "faster" }, ratio, interval.low, interval.high)
    };
    if factor >= FACTOR {
        return format!("{factor:.1} × {word} ({low:.1}–{high:.1} ×)");
    }
    // Of what was before: a rate that halves falls by 50 %, a time that doubles grows by 100 %.
    let grows = (ratio >= 1.0) != times;
    let percent = |factor: f64| ((if grows { factor - 1.0 } else { 1.0 - 1.0 / factor }) * 100.0).max(0.0);
    format!("{:.0} % {word} ({:.0}–{:.0} %)", percent(factor), percent(low), percent(high))
}

/// Median rates (or times) before and after.
fn numbers(old: &Measured, new: &Measured, ranks: &[Option<usize>], what: What, cells: &[(usize, usize)]) -> String {
    let selected = match what {
        What::Duplex => Selected::Duplex,
        What::Local => Selected::Local,
        _ => Selected::Peer,
    };
    let of = |measured: &Measured, from: usize, to: usize| {
        let pair = measured.pairs(selected).get(from, to)?;
        Some(if what == What::Latency { pair.small } else { pair.rate }).filter(|value| value.is_finite())
    };
    let both = cells.iter().filter_map(|&(from, to)| {
        let before = of(old, (*ranks.get(from)?)?, (*ranks.get(to)?)?)?;
        Some((before, of(new, from, to)?))
    });
    let (mut before, mut after): (Vec<f64>, Vec<f64>) = both.unzip();
    if before.is_empty() || what != What::Latency && old.bytes != new.bytes || what == What::Latency && old.small_bytes != new.small_bytes {
        return String::new();
    }
    let (before, after) = (median(&mut before), median(&mut after));
    if what == What::Latency {
        format!(": {} → {}", format_seconds(before), format_seconds(after))
    } else {
        format!(": {} → {} GB/s", format_gbps(before), format_gbps(after))
    }
}

/// Aggregates before and after.
fn fan_numbers(old: &Measured, new: &Measured, ranks: &[Option<usize>], found: &Found) -> String {
    let Place::Together { index } = found.place else { return String::new() };
    let Some(after) = new.together.get(index) else { return String::new() };
    let mapped = |&(from, to): &(usize, usize)| (*ranks.get(from)?).zip(*ranks.get(to)?);
    let Some(mut flows) = after.flows.iter().map(mapped).collect::<Option<Vec<_>>>() else { return String::new() };
    flows.sort_unstable();
    let same = old.together.iter().find(|own| {
        let mut own_flows = own.flows.clone();
        own_flows.sort_unstable();
        own.pattern == after.pattern && own.bytes == after.bytes && own_flows == flows
    });
    same.map_or_else(String::new, |before| format!(": {} → {} GB/s", format_gbps(before.aggregate()), format_gbps(after.aggregate())))
}

/// Pairs that give no rate any more, or give one again, by what they did.
pub(super) fn states(all: Vec<State>) -> Vec<Change> {
    let mut kinds: BTreeMap<(bool, &'static str), Vec<(usize, usize)>> = BTreeMap::new();
    for (from, to, before, after) in all {
        let worse = before == Status::Ok;
        let other = if worse { after } else { before };
        kinds.entry((worse, other.name())).or_default().push((from, to));
    }
    let told = kinds.into_iter().map(|((worse, state), cells)| {
        let mut names: Vec<String> = cells.iter().take(NAMED).map(|(from, to)| format!("{from}→{to}")).collect();
        if cells.len() > NAMED {
            names.push(format!("{} more", cells.len() - NAMED));
        }
        let names = names.join(", ");
        let say =
            if worse { format!("{names}: {state}, gave a rate before") } else { format!("{names}: gives a rate again, {state} before") };
        let place = match cells.as_slice() {
            [(from, to)] => Place::Pair { from: *from, to: *to },
            _ => Place::All,
        };
        Change { what: What::State, place, say, ratio: if worse { 0.0 } else { f64::INFINITY }, interval: None, p: 0.0, cells }
    });
    told.collect()
}
