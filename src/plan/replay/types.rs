//! What a replay tells. Times are seconds from the start of the traffic.

use serde::Serialize;

use crate::fabric::{Resource, ResourceId};
use crate::fit::Interval;

/// When a flow ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FlowTime {
    /// everything that it waits for is complete
    pub ready: f64,
    /// bytes begin to pass: latency and packing are over
    pub start: f64,
    /// all of them are there, unpacked
    pub end: f64,
}

/// A time during which no flow begins or ends: rates are constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Epoch {
    pub start: f64,
    pub end: f64,
    /// (flow, bytes per second) of those whose bytes pass; ascending by flow
    pub rates: Vec<(usize, f64)>,
    /// (number in [`Replay::resources`], share in use, 0 to 1) of those in use; ascending
    pub used: Vec<(usize, f64)>,
}

/// How much a resource had to do. `busy` never exceeds the time in which its flows ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLoad {
    pub id: ResourceId,
    pub resource: Resource,
    /// that passed it
    pub bytes: f64,
    /// seconds that its load takes at least, whatever the order: Σ bytes·w
    pub busy: f64,
    /// the same by stage
    pub by_stage: Vec<f64>,
    /// flows that load it, ascending
    pub flows: Vec<usize>,
}

/// What a stage, or all of it, takes at least, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Bottleneck {
    /// number in [`Replay::resources`]; `None` where the flows' own latency, or a chain of flows, decides
    pub resource: Option<usize>,
    /// seconds: its load
    pub seconds: f64,
    /// in words: what, how much over which rate, such as `node0 nic out: 8 GiB over 16.4 GB/s = 0.52 s`
    pub say: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StageTime {
    pub name: String,
    pub start: f64,
    pub end: f64,
    /// part of it that is latency, packing and unpacking, along the chain of flows that ends last
    pub latency: f64,
    pub bottleneck: Bottleneck,
}

/// Why a prediction may not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// such as `group`, `size`, `mover`, `fit`, `unmeasured`
    pub kind: &'static str,
    /// what is amiss, by how much it may matter, and what to do
    pub say: String,
}

/// Traffic over prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// until the last flow is complete
    pub seconds: f64,
    /// where the measured time should lie, 95 % of the times
    pub interval: Interval,
    /// paid once when plans are prepared, not in `seconds`
    pub prepare: f64,
    pub stages: Vec<StageTime>,
    /// one a flow of the traffic, in its order
    pub flows: Vec<FlowTime>,
    /// ascending, without gaps between them but where all flows wait
    pub epochs: Vec<Epoch>,
    /// all that were used, the busiest first; of very many the busiest ones
    pub resources: Vec<ResourceLoad>,
    pub bottleneck: Bottleneck,
    pub warnings: Vec<Warning>,
}
