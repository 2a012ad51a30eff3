//! Transfers as fluids: each flows at its fair share, which changes whenever one starts or ends. And the bound no schedule can beat.

use std::borrow::Borrow;
use std::collections::HashMap;

use super::share::{Bound, Contended, Flow, ResourceId, shares};

/// Bytes to be moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    pub flow: Flow,
    /// when the sender begins, seconds
    pub start: f64,
    /// latency before the first byte flows, seconds; it loads no resource
    pub alpha: f64,
    pub bytes: f64,
}

/// When each transfer is complete, seconds, in the order given; infinite when it never is.
///
/// Alone, a transfer ends at `start + α + bytes/rate`. Transfers that cannot hinder each other are computed apart, so that n independent
/// ones cost n; k that share resources cost k solutions of their fair shares at most.
pub fn completions(transfers: &[Transfer]) -> Vec<f64> {
    let flows: Vec<&Flow> = transfers.iter().map(|transfer| &transfer.flow).collect();
    let contended = Contended::of(&flows);
    let mut ends: Vec<f64> =
        transfers.iter().zip(&contended.limits).map(|(t, limit)| t.start + t.alpha + duration(t.bytes, limit.rate)).collect();
    for group in groups(&contended) {
        let together: Vec<&Transfer> = group.iter().map(|&number| &transfers[number]).collect();
        for (&number, end) in group.iter().zip(run(&together)) {
            ends[number] = end;
        }
    }
    ends
}

fn duration(bytes: f64, rate: f64) -> f64 {
    if bytes <= 0.0 { 0.0 } else { bytes / rate }
}

/// The representative of a flow's group; shortens the way there.
fn root(parent: &mut [usize], mut of: usize) -> usize {
    while parent[of] != of {
        parent[of] = parent[parent[of]];
        of = parent[of];
    }
    of
}

/// Flows that a chain of contended resources joins; flows that use none are in no group.
fn groups(contended: &Contended) -> Vec<Vec<usize>> {
    let mut parent: Vec<usize> = (0..contended.limits.len()).collect();
    let mut joined = vec![false; parent.len()];
    for users in &contended.users {
        for &(flow, _) in users {
            joined[flow] = true;
            let (a, b) = (root(&mut parent, users[0].0), root(&mut parent, flow));
            // The smaller number is the root, so that the groups do not depend on the order of resources.
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); parent.len()];
    for flow in (0..parent.len()).filter(|&flow| joined[flow]) {
        groups[root(&mut parent, flow)].push(flow);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The ends of transfers that do hinder each other.
fn run(transfers: &[&Transfer]) -> Vec<f64> {
    let mut ends = vec![f64::INFINITY; transfers.len()];
    let mut left: Vec<f64> = transfers.iter().map(|transfer| transfer.bytes).collect();
    let begins = |number: usize| transfers[number].start + transfers[number].alpha;
    let mut waiting: Vec<usize> = (0..transfers.len()).collect();
    waiting.sort_by(|&a, &b| begins(b).total_cmp(&begins(a)));
    let mut active: Vec<usize> = Vec::new();
    let mut now = f64::NEG_INFINITY;
    loop {
        if active.is_empty() {
            let Some(&next) = waiting.last() else { break };
            now = begins(next);
        }
        while let Some(&next) = waiting.last().filter(|&&next| begins(next) <= now) {
            waiting.pop();
            if left[next] > 0.0 { active.push(next) } else { ends[next] = begins(next) }
        }
        if active.is_empty() {
            continue;
        }
        let flows: Vec<&Flow> = active.iter().map(|&number| &transfers[number].flow).collect();
        let rates = shares(&flows);
        let lasts: Vec<f64> = active.iter().zip(&rates).map(|(&number, share)| duration(left[number], share.rate)).collect();
        let first = lasts.iter().copied().fold(f64::INFINITY, f64::min);
        let arrival = waiting.last().map_or(f64::INFINITY, |&next| begins(next) - now);
        let step = first.min(arrival);
        if !step.is_finite() {
            // What is left stands still, for ever.
            break;
        }
        now = if arrival <= first { waiting.last().map_or(now, |&next| begins(next)) } else { now + step };
        let mut still = Vec::with_capacity(active.len());
        for (at, &number) in active.iter().enumerate() {
            // What would end within a billionth of the step ends now: equal transfers end together, however their sums were rounded.
            if first <= arrival && lasts[at] <= first * (1.0 + 1e-9) {
                ends[number] = now;
            } else {
                left[number] -= rates[at].rate * step;
                still.push(number);
            }
        }
        active = still;
    }
    ends
}

/// The least time in which `bytes` of each flow can pass, whatever the schedule, and what sets it; nothing for no flows.
///
/// `t ≥ max over R of Σ_f bytes_f·w_R(f)`, a flow's own link included. Latency comes on top.
pub fn stage_bound<F: Borrow<Flow>>(loads: &[(F, f64)]) -> Option<(f64, Bound)> {
    let mut seconds: HashMap<ResourceId, f64> = HashMap::new();
    let mut longest: Option<(f64, Bound)> = None;
    for (flow, bytes) in loads {
        for used in &flow.borrow().uses {
            *seconds.entry(used.resource).or_default() += bytes * used.weight;
        }
        let own = duration(*bytes, flow.borrow().cap);
        if longest.is_none_or(|(most, _)| own > most) {
            longest = Some((own, Bound::Cap));
        }
    }
    let mut seconds: Vec<(ResourceId, f64)> = seconds.into_iter().collect();
    seconds.sort_by_key(|&(id, _)| id);
    for (id, load) in seconds {
        if longest.is_none_or(|(most, _)| load > most * (1.0 + 1e-9)) {
            longest = Some((load, Bound::Resource(id)));
        }
    }
    longest
}
