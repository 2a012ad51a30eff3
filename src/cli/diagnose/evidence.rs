//! The samples behind a fact, so that every number of it can be traced.

use serde_json::{Value, json};

use crate::diagnose::{Fact, Finding, Measured, Shape};
use crate::fit::identify::Together;
use crate::sample::Pattern;
use crate::session::{Model, SizeCell};
use crate::sweep::Cell;

/// Cells, and transfers at the same time, of which a fact has its samples; of the others it says how many there are.
const TRACED: usize = 16;

/// A fact with its samples.
pub(super) fn fact(model: &Model, seen: &Measured, finding: &Finding, fact: &Fact) -> Value {
    let cells = fact.pairs.iter().take(TRACED).flat_map(|&(from, to)| pair(model, seen, finding, from, to));
    let groups = fact.together.iter().take(TRACED).filter_map(|&at| Some(group(model, seen.together.get(at)?)));
    let samples: Vec<Value> = cells.chain(groups).collect();
    let mut value = serde_json::to_value(fact).unwrap_or_default();
    value["samples"] = samples.into();
    let left = fact.pairs.len().saturating_sub(TRACED) + fact.together.len().saturating_sub(TRACED);
    if left > 0 {
        value["not_traced"] = left.into();
    }
    value
}

/// A pair at the sizes that rules look at, in the patterns that the finding is about.
fn pair(model: &Model, seen: &Measured, finding: &Finding, from: usize, to: usize) -> Vec<Value> {
    let patterns: &[Pattern] = match (&finding.shape, from == to) {
        (_, true) => &[Pattern::Local],
        (Shape::DuplexLoss { .. }, _) => &[Pattern::Peer, Pattern::Duplex],
        _ => &[Pattern::Peer],
    };
    // A poor line is about all sizes.
    let every = matches!(finding.shape, Shape::PoorFit { .. });
    let mut all = Vec::new();
    for &pattern in patterns {
        let sizes = model.cells.sizes_of(Cell { pattern, from, to }).iter();
        for size in sizes.filter(|size| every || size.bytes == seen.bytes || size.bytes == seen.small_bytes) {
            all.push(json!({
                "pattern": pattern.name(),
                "from": from,
                "to": to,
                "bytes": size.bytes,
                "median_seconds": Some(size.median).filter(|median| median.is_finite()),
                "repeats": repeats(size),
            }));
        }
    }
    all
}

/// Seconds of one message; `used` are in the median.
fn repeats(size: &SizeCell) -> Vec<Value> {
    let shots = size.shots.iter().map(|shot| {
        let seconds = shot.seconds().map(|seconds| seconds / f64::from(shot.messages.max(1)));
        let used = shot.take == size.take && shot.seconds_per_message().is_some();
        json!({"seconds": seconds, "repeat": shot.repeat, "take": shot.take, "status": shot.status.name(), "used": used})
    });
    shots.collect()
}

/// A fan, relay or set: when its last transfer was through, as the root of a fan saw it.
fn group(model: &Model, own: &Together) -> Value {
    let mut flows = own.flows.clone();
    flows.sort_unstable();
    let same = model.groups.iter().filter(|(group, _)| group.pattern == own.pattern && group.root == own.root);
    let size = same.flat_map(|(_, sizes)| sizes).find(|size| size.bytes == own.bytes && size.flows() == flows);
    let seconds = size.map(crate::session::GroupSize::completions).unwrap_or_default();
    let repeats: Vec<Value> = seconds.into_iter().map(|seconds| json!({"seconds": seconds, "used": true})).collect();
    json!({
        "pattern": own.pattern.name(),
        "root": own.root,
        "flows": own.flows,
        "bytes": own.bytes,
        "median_seconds": Some(own.seconds).filter(|median| median.is_finite()),
        "repeats": repeats,
    })
}
