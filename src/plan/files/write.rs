//! Writing of plans, endpoints and traffic: one line each, so that a plan's length is the reference's `plan_bytes`.

use serde::Serialize;

use super::{PLAN_FORMAT, TRAFFIC_FORMAT};
use crate::plan::{Batch, Endpoints, Parameter, Plan, Traffic};

#[derive(Serialize)]
struct BatchDocument<'a> {
    format: &'static str,
    parameters: &'a [Parameter],
    endpoints: &'a Endpoints,
    bytes_per_peer: u64,
}

#[derive(Serialize)]
struct TrafficDocument<'a> {
    format: &'static str,
    #[serde(flatten)]
    traffic: &'a Traffic,
}

/// None of these values can fail: their keys are texts and whole numbers.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A plan as the reference stores it: sorted keys, no spaces.
pub fn plan(plan: &Plan) -> String {
    json(plan)
}

pub fn endpoints(endpoints: &Endpoints) -> String {
    json(endpoints) + "\n"
}

pub fn batch(batch: &Batch) -> String {
    let Batch { parameters, endpoints, bytes_per_peer } = batch;
    json(&BatchDocument { format: PLAN_FORMAT, parameters, endpoints, bytes_per_peer: *bytes_per_peer }) + "\n"
}

pub fn traffic(traffic: &Traffic) -> String {
    json(&TrafficDocument { format: TRAFFIC_FORMAT, traffic }) + "\n"
}
