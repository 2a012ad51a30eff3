use std::collections::BTreeMap;

use super::Policy;
use crate::plan::files::BYTES_PER_PEER;
use crate::plan::{At, Endpoints, PlanError};

/// How a sync is planned.
pub struct Settings<'a> {
    /// who holds which location, where known: lets a policy see processes
    pub endpoints: Option<&'a Endpoints>,
    pub element_size: ElementSizes,
    pub budget: Budget,
    pub policy: &'a dyn Policy,
    /// parts of a split region that are smaller are refused: a message that small does not pay. Where the element size is not known
    /// an element counts as one byte
    pub min_split_bytes: u64,
}

impl<'a> Settings<'a> {
    /// With that policy, and the reference's budget; splits down to its staging budget.
    pub fn new(policy: &'a dyn Policy) -> Self {
        let element_size = ElementSizes::default();
        Self { endpoints: None, element_size, budget: Budget::default(), policy, min_split_bytes: Self::MIN_SPLIT }
    }

    /// Smallest part of a split, bytes: what is staged for a peer by default.
    pub const MIN_SPLIT: u64 = BYTES_PER_PEER;
}

/// Bytes of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElementSizes {
    /// of parameters that are not named
    pub all: Option<u64>,
    pub by_parameter: BTreeMap<String, u64>,
}

impl ElementSizes {
    /// The same for all.
    pub fn all(bytes: u64) -> Self {
        Self { all: Some(bytes), ..Self::default() }
    }

    /// Of a parameter, where known.
    pub fn of(&self, parameter: &str) -> Option<u64> {
        self.by_parameter.get(parameter).copied().or(self.all)
    }
}

/// The most that a parameter's plan may take. Going over is a refusal. The defaults are the reference's, and what is counted is what
/// it counts, so that a plan that is refused here is refused there; none of it is work that this planner does pair by pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// axes of a tensor
    pub axes: usize,
    /// pieces of a map, empty ones included
    pub pieces: usize,
    /// pieces of a map squared (without the empty ones), source regions squared, and source regions times target pieces
    pub pair_checks: usize,
    pub segments: usize,
    /// times that all segments are gone over to join them
    pub merge_passes: usize,
    /// comparisons of joining them one by one
    pub merge_checks: usize,
    /// of the plan's JSON
    pub plan_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            axes: 8,
            pieces: 1 << 12,
            pair_checks: 1 << 18,
            segments: 1 << 16,
            merge_passes: 8,
            merge_checks: 1 << 18,
            plan_bytes: 1 << 24,
        }
    }
}

impl Budget {
    /// No refusals; segments are joined in as many passes as by default.
    pub fn unlimited() -> Self {
        let most = usize::MAX;
        Self { axes: most, pieces: most, pair_checks: most, segments: most, merge_checks: most, plan_bytes: most, ..Self::default() }
    }

    pub(super) fn keeps(of: &str, count: usize, most: usize, place: &At) -> Result<(), PlanError> {
        if count <= most {
            return Ok(());
        }
        Err(PlanError::Budget { place: place.clone(), what: format!("{count} {of}; {most} at most") })
    }
}
