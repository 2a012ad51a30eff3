//! A work on a described fabric: nothing moves, flows share what their routes share.

use super::Work;
use crate::fabric::{Demand, Fabric, Route, shares};

/// When each flow is complete, seconds from the start; infinite when it never is.
pub(crate) fn ends(work: &Work, fabric: &Fabric) -> Vec<f64> {
    let flows = &work.flows;
    let mut ends = vec![f64::NAN; flows.len()];
    let mut left: Vec<f64> = flows.iter().map(|flow| flow.bytes as f64).collect();
    // Of flows that have begun: when their first byte flows.
    let mut begins: Vec<Option<f64>> = vec![None; flows.len()];
    let mut now = 0.0;
    loop {
        // Stages below this may begin.
        let waits = |stage: usize| work.waits.get(stage) == Some(&true);
        let unfinished = flows.iter().zip(&ends).filter(|(_, end)| end.is_nan()).map(|(flow, _)| flow.stage).min();
        let Some(first) = unfinished else { break };
        let open = (first + 1..=work.waits.len()).find(|&stage| stage == work.waits.len() || waits(stage)).unwrap_or(work.waits.len());
        for (number, flow) in flows.iter().enumerate() {
            let ready = flow.stage < open && flow.after.iter().all(|&before| !ends[before].is_nan());
            if begins[number].is_none() && ready {
                let size = flow.bytes / u64::from(flow.messages.max(1));
                begins[number] = Some(now + fabric.route(flow.from, flow.to, size).alpha * f64::from(flow.messages));
            }
        }
        let running: Vec<usize> = (0..flows.len()).filter(|&number| begins[number].is_some() && ends[number].is_nan()).collect();
        let flowing: Vec<usize> = running.iter().copied().filter(|&number| begins[number].is_some_and(|begin| begin <= now)).collect();
        let demand = |&number: &usize| {
            let flow = &flows[number];
            Demand { from: flow.from, to: flow.to, bytes: flow.bytes / u64::from(flow.messages.max(1)) }
        };
        let routes: Vec<Route> = fabric.routes(&flowing.iter().map(demand).collect::<Vec<_>>());
        let given: Vec<_> = routes.into_iter().map(|route| route.flow).collect();
        let rates: Vec<f64> = shares(&given).into_iter().map(|share| share.rate).collect();
        let finish: Vec<f64> =
            flowing.iter().zip(&rates).map(|(&number, rate)| now + if left[number] > 0.0 { left[number] / rate } else { 0.0 }).collect();
        let next_begin = running.iter().filter_map(|&number| begins[number]).filter(|&begin| begin > now);
        let next = finish.iter().copied().chain(next_begin).fold(f64::INFINITY, f64::min);
        if !next.is_finite() {
            // Nothing goes on any more: a dead link, or flows that wait for each other.
            break;
        }
        for ((&number, rate), finish) in flowing.iter().zip(&rates).zip(&finish) {
            // What is left to rounding is over: by the clock, since the step may be too short to tell.
            let over = *finish <= next * (1.0 + 1e-12);
            left[number] = if over { 0.0 } else { left[number] - rate * (next - now) };
            if over {
                ends[number] = next;
            }
        }
        now = next;
    }
    ends.into_iter().map(|end| if end.is_nan() { f64::INFINITY } else { end }).collect()
}
