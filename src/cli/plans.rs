//! Plans from files, for whoever looks at a job or a session, and what is foreseen for them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::import::plans;
use crate::plan::files::Given;
use crate::plan::price::{Conditions, Prices};
use crate::plan::{Foreseen, Traffic, replay};
use crate::sample::MoverKind;
use crate::session::{self, Model};
use crate::topology::Topology;
use crate::units::{parse_size, plain};

/// What plans do not tell themselves.
#[derive(Debug, Clone, Default, Args)]
pub struct GivenArgs {
    /// Which process holds which location: {"source": {"0": 0}, "target": {"0": 1}} (default: as the plan says)
    #[arg(long, value_name = "FILE")]
    pub endpoints: Option<PathBuf>,
    /// Most that a process stages for each peer and direction (default: as the plan says, or 8MiB)
    #[arg(long, value_name = "SIZE")]
    pub bytes_per_peer: Option<String>,
    /// Bytes of an element, for plans that do not tell (default: 2, as of bf16)
    #[arg(long, value_name = "BYTES")]
    pub element_size: Option<u64>,
}

impl GivenArgs {
    /// Read and ready to use.
    pub(super) fn given(&self) -> Result<Given> {
        Ok(Given {
            endpoints: self.endpoints.as_deref().map(plans::endpoints).transpose().context("--endpoints")?,
            element_size: self.element_size,
            bytes_per_peer: self.bytes_per_peer.as_deref().map(parse_size).transpose().context("--bytes-per-peer")?,
        })
    }
}

/// Read a plan, a list of flows or another tool's plan, with what it tells itself; `scenario:NAME` makes a benchmark scenario for the
/// ranks of this topology.
pub(super) fn load(path: &Path, topology: &Topology) -> Result<Traffic, String> {
    if let Some(wanted) = path.to_str().and_then(|text| text.strip_prefix("scenario:")) {
        return super::scenarios::plan(wanted, topology);
    }
    // What a pipe will say nobody knows; a screen would wait for it.
    if fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        return Err(format!("{}: expected a file", plain(&path.display().to_string())));
    }
    let mut traffic =
        plans::read(path, &Given::default()).map_err(|error| error.to_string())?.traffic().map_err(|error| error.to_string())?;
    if traffic.name.is_empty() {
        traffic.name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    }
    Ok(traffic)
}

/// What a session's own samples foresee; `None` where it has none, or not of all that is needed.
pub(super) fn foresee(model: &Model, traffic: &Traffic, mover: MoverKind) -> Option<Foreseen> {
    if model.samples() == 0 {
        return None;
    }
    let prices = session::prices(model);
    let wanted = Conditions { mover: Some(mover), ..prices.measured().clone() };
    let prices = prices.used_with(wanted);
    let fits = traffic.ranks <= prices.world();
    fits.then(|| replay(traffic, &prices).ok()).flatten().map(|replay| Foreseen::of(&replay))
}
