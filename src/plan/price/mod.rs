//! What flows cost: latency, a link of their own, and the resources that they share (method.md, "The resource model").

mod calibrated;

pub use calibrated::{Calibrated, Conditions, Published, PublishedError, SharedRate};

use thiserror::Error;

use super::{Traffic, Warning};
use crate::fabric::{Demand, Fabric, Resource, ResourceId, Route};

/// Prices of a machine: a calibration's ([`super::price`]) or a described one's.
pub trait Prices: Sync {
    /// Ranks that have prices: those below this.
    fn world(&self) -> usize;

    /// The ways of flows that run at once, in their order: α of one message of that size, its own link, what it shares.
    fn routes(&self, together: &[Demand]) -> Result<Vec<Route>, PriceError>;

    /// What a resource is.
    fn resource(&self, id: ResourceId) -> Option<Resource>;

    /// Seconds to copy so many bytes within a rank: packing and unpacking. `None` where that was not measured.
    fn copy(&self, rank: usize, bytes: u64) -> Option<f64>;

    /// Half the 95 % interval of the rate of a pair, as a share of it: 0 where it is exact.
    fn uncertainty(&self, from: usize, to: usize, bytes: u64) -> f64;

    /// What messages and chunks cost beyond their bytes.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// What makes these prices doubtful for that traffic: another group, mover or sizes than it was measured with.
    fn warnings(&self, traffic: &Traffic) -> Vec<Warning>;
}

/// Costs of a message and of a chunk that no link has. They depend on the software that moves the bytes, not on the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// seconds that each further message of a flow adds to the first one's latency; `None`: as much as the first
    #[serde(default)]
    pub round: Option<f64>,
    /// seconds to prepare a chunk, once
    #[serde(default)]
    pub chunk: f64,
}

impl Terms {
    /// Of prepared staged transfers on 2×8 H20, from the published times under three staging budgets (S1, "Staging budget per peer"):
    /// 0.027 ms a round of 8 messages; and 17 µs a chunk, from what the same plan took longer where it was prepared anew.
    pub const PUBLISHED: Self = Self { round: Some(26.6e-6), chunk: 17e-6 };

    /// Seconds of latency of so many messages that follow each other, the first of which has α.
    pub fn latency(&self, alpha: f64, messages: u32) -> f64 {
        alpha + f64::from(messages.saturating_sub(1)) * self.round.unwrap_or(alpha)
    }
}

/// Why there is no price.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PriceError {
    #[error("{from}→{to} was not measured: no price for {bytes} bytes; sweep it, or a pair of its class (--patterns peer)")]
    Unmeasured { from: usize, to: usize, bytes: u64 },
    #[error("{0}")]
    Traffic(String),
    #[error(
        "flow {flow}: nothing passes from {from} to {to} (its rate is 0), but {bytes} bytes would have to: take another way, or mend the link"
    )]
    Dead { flow: usize, from: usize, to: usize, bytes: u64 },
    #[error("rank {rank} is not one of the {world} ranks that have prices; calibrate on the group that the transfer uses")]
    NoRank { rank: usize, world: usize },
}

impl Prices for Fabric {
    fn world(&self) -> usize {
        self.world()
    }

    fn routes(&self, together: &[Demand]) -> Result<Vec<Route>, PriceError> {
        let world = self.world();
        match together.iter().flat_map(|demand| [demand.from, demand.to]).find(|&rank| rank >= world) {
            Some(rank) => Err(PriceError::NoRank { rank, world }),
            None => Ok(self.routes(together)),
        }
    }

    fn resource(&self, id: ResourceId) -> Option<Resource> {
        self.resource(id)
    }

    fn copy(&self, rank: usize, bytes: u64) -> Option<f64> {
        let Route { alpha, flow } = self.route(rank, rank, bytes);
        Some(alpha + bytes as f64 / flow.alone().rate)
    }

    fn uncertainty(&self, _from: usize, _to: usize, _bytes: u64) -> f64 {
        0.0
    }

    fn warnings(&self, _traffic: &Traffic) -> Vec<Warning> {
        Vec::new()
    }
}
