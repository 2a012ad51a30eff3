//! Plans from files, for whoever looks at a job or a session, and what is foreseen for them.

use std::fs;
use std::path::Path;

use crate::plan::{Foreseen, Traffic, Transfers};
use crate::sample::MoverKind;
use crate::session::Model;

/// Read a plan, a list of flows or another tool's plan.
pub(super) fn load(path: &Path) -> Result<Traffic, String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| at(&error))?;
    let transfers: Transfers = serde_json::from_str(&text).map_err(|error| at(&error))?;
    transfers.traffic().map_err(|error| at(&error))
}

/// What a session's own calibration foresees; `None` where it has none, or not of all that is needed.
pub(super) fn foresee(_model: &Model, _traffic: &Traffic, _mover: MoverKind) -> Option<Foreseen> {
    None
}
