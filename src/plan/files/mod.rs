//! Plans, endpoints and traffic as JSON: a single plan as the reference stores it, and documents of our own. Texts, not files.
//!
//! ```text
//! {"logical_shape": [..], "segments": [{"shape": [..], "source": [location, offset, [strides]], "target": [..]}]}
//! {"format": "toposcope.plan/1", "parameters": [{"name", "element_size", "plan"}], "endpoints"?: {..}, "bytes_per_peer"?: 8388608}
//! {"source": {"0": 0}, "target": {"0": 1}}
//! {"format": "toposcope.traffic/1", "name", "ranks", "stages": [{"name", "waits"}], "flows": [{"stage", "from", "to", "bytes", ..}]}
//! ```
//!
//! Reading is strict: a field that is not known, that is missing, or that stands twice is an error, since plans are acted upon.

mod json;
mod read;
mod write;

use thiserror::Error;

use super::Endpoints;
use crate::units::plain;

pub use json::{Outline, parse};
pub use read::{endpoints, is_own, read};
pub use write::{batch as write_batch, endpoints as write_endpoints, plan as write_plan, traffic as write_traffic};

/// Format of a batch of plans.
pub const PLAN_FORMAT: &str = "toposcope.plan/1";
/// Format of traffic.
pub const TRAFFIC_FORMAT: &str = "toposcope.traffic/1";
/// JSON Schema (draft 2020-12) of a batch of plans as this version writes it.
pub const PLAN_SCHEMA: &str = include_str!("schema/plan.json");
/// JSON Schema (draft 2020-12) of traffic as this version writes it.
pub const TRAFFIC_SCHEMA: &str = include_str!("schema/traffic.json");

/// Bytes of an element where nothing tells: bf16.
pub const ELEMENT_SIZE: u64 = 2;
/// Most that is staged for each peer and direction where nothing tells: the reference's default.
pub const BYTES_PER_PEER: u64 = 8 << 20;

/// What a file of plans may leave to its reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// which process holds which location; before what the file says
    pub endpoints: Option<Endpoints>,
    /// bytes of an element, of files that do not tell
    pub element_size: Option<u64>,
    /// most that is staged for each peer and direction; before what the file says
    pub bytes_per_peer: Option<u64>,
}

/// What is wrong in a text, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}{}{what}", if place.is_empty() { "" } else { ": " })]
pub struct FileError {
    /// such as `parameter w, segment 17, source offset`; empty for all of it
    pub place: String,
    /// what stands there and what was expected
    pub what: String,
}

impl FileError {
    /// Both are made safe to show.
    pub fn new(place: impl AsRef<str>, what: impl AsRef<str>) -> Self {
        Self { place: plain(place.as_ref()), what: plain(what.as_ref()) }
    }
}

#[cfg(test)]
mod tests;
