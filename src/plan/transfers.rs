use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Plan, Traffic};

/// Which process holds which location: two maps, since location 0 of the trainer and of the engine are different processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// location of the source maps -> process
    pub source: BTreeMap<i64, usize>,
    /// location of the target maps -> process
    pub target: BTreeMap<i64, usize>,
}

/// One tensor of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub plan: Plan,
    /// bytes of an element
    pub element_size: u64,
}

/// The plans of one sync, with all that a schedule needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub parameters: Vec<Parameter>,
    pub endpoints: Endpoints,
    /// most that a process stages for each peer and direction, bytes (the reference's default: 8 MiB)
    pub bytes_per_peer: u64,
}

/// Anything that can be priced, drawn and run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transfers {
    /// plans, to be scheduled
    Batch(Batch),
    /// a strategy, or somebody's list of flows
    Traffic(Traffic),
}
