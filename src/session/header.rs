use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::EngineKind;
use crate::sweep::SweepSettings;
use crate::topology::Topology;

/// Format of sessions that this version writes. A newer minor version is read, a newer major one refused.
pub const FORMAT: (&str, u32, u32) = ("toposcope.session", 1, 6);

/// What a session was taken on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// `toposcope.session/1.6`
    pub format: String,
    /// version of the program that wrote it
    pub program: String,
    /// name of the folder at the time
    pub name: String,
    /// start of the session, RFC 3339, UTC
    pub started: String,
    pub engine: EngineKind,
    /// the job's own numbers of the ranks, where only a group of the job takes part; empty for all of it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<usize>,
    /// what the job was started to measure; what was measured stands in the events
    #[serde(default)]
    pub settings: SweepSettings,
    pub topology: Topology,
    /// operating system, MPI library and the like, by name
    pub software: BTreeMap<String, String>,
    /// variables that change what is measured (`NCCL_*`, `UCX_*`, `OMPI_*` and so on)
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl Header {
    /// The name of the fabric that the session simulated, as its engine told it.
    pub fn simulated(&self) -> Option<&str> {
        let (_, rest) = self.software.get(EngineKind::Sim.name())?.split_once(" simulating ")?;
        Some(rest.split_once(": ").map_or(rest, |(name, _)| name))
    }

    /// `toposcope.session/1.6`
    pub fn current_format() -> String {
        let (name, major, minor) = FORMAT;
        format!("{name}/{major}.{minor}")
    }
}
