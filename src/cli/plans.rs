//! Plans from files, for whoever looks at a job or a session, and what is foreseen for them.

use std::path::Path;

use crate::import::plans;
use crate::plan::files::Given;
use crate::plan::price::{Conditions, Prices};
use crate::plan::{Foreseen, Traffic, replay};
use crate::sample::MoverKind;
use crate::session::{self, Model};

/// Read a plan, a list of flows or another tool's plan, with what it tells itself.
pub(super) fn load(path: &Path) -> Result<Traffic, String> {
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
