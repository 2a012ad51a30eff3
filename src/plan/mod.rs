//! What is to be moved, from where to where, in which order, and what that costs: maps -> plan -> schedule -> traffic -> replay. Pure.
//!
//! ```text
//! map       who holds which elements of a tensor, and where: the affine map, its builders, its checks M1-M5, JSON, unions
//! build     two maps of a tensor -> the segments to copy; who of several holders sends is a Policy's choice
//! schedule  segments + endpoints + staging budget -> rounds between processes
//! traffic   flows between ranks, in stages: what a schedule, a strategy and other people's flow lists have in common
//! price     a calibration (or a described fabric) -> what flows cost: latency, own link, shared resources
//! replay    traffic over prices -> when each flow runs, how full each resource is, which one binds
//! strategy  ways to bring a model from trainers to engines, as traffic
//! scenario  the benchmark scenarios by name, made for the ranks that there are
//! work      transfers -> what each rank holds, sends, receives and must have in the end, to be run for real
//! ```
//!
//! Offsets and strides of maps, plans and schedules count elements, never bytes; those of traffic are bytes. Locations are keys of
//! maps; processes are ranks of the transfer's group; only [`Endpoints`] says which process holds which location.

pub mod build;
mod execution;
pub mod files;
pub mod map;
pub mod price;
mod replay;
pub mod scenario;
pub mod schedule;
mod segment;
pub mod strategy;
mod traffic;
mod transfers;
mod union;
pub mod work;

pub use execution::{Execution, Foreseen, Residual, Run};
pub use replay::{Bottleneck, Epoch, FlowTime, Replay, ResourceLoad, StageTime, Warning, replay};
pub use segment::{Place, Plan, Segment, Statistics};
pub use traffic::{Flow, MOST_MESSAGES, MOST_RANKS, Stage, Staged, Traffic};
pub use transfers::{Batch, Endpoints, Parameter, Transfers};
pub use union::union;

use thiserror::Error;

/// Why maps, plans or answers cannot be used. Each names the parameter, and where it can the location, the piece and the rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// contradicts itself or another map: nothing may fall back from it
    #[error("{place}: invalid: {what}")]
    Invalid { place: At, what: String },
    /// legal, but outside what can be planned: the caller may rebuild the tensor instead
    #[error("{place}: not supported: {what}")]
    Unsupported { place: At, what: String },
    /// more work than allowed: a refusal, never a truncation
    #[error("{place}: over budget: {what}")]
    Budget { place: At, what: String },
    /// a replica policy's answer that does not tile its request from its holders
    #[error("{place}: replica policy: {what}")]
    Policy { place: At, what: String },
}

impl PlanError {
    /// Where, and what.
    pub fn parts(&self) -> (&At, &str) {
        match self {
            Self::Invalid { place, what }
            | Self::Unsupported { place, what }
            | Self::Budget { place, what }
            | Self::Policy { place, what } => (place, what),
        }
    }
}

/// Where in maps something is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct At {
    /// name of the tensor; empty where there is but one
    pub parameter: String,
    /// such as `source map` or `target map`; may be empty
    pub side: &'static str,
    pub location: Option<i64>,
    /// number of the piece at its location, from 0
    pub piece: Option<usize>,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if !self.parameter.is_empty() {
            parts.push(format!("parameter {}", crate::units::plain(&self.parameter)));
        }
        if !self.side.is_empty() {
            parts.push(self.side.to_owned());
        }
        parts.extend(self.location.map(|location| format!("location {location}")));
        parts.extend(self.piece.map(|piece| format!("piece {piece}")));
        if parts.is_empty() { f.write_str("map") } else { f.write_str(&parts.join(", ")) }
    }
}
