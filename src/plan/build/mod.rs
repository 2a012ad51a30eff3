//! Two maps of a tensor -> the segments to copy.
//!
//! For each target block and each source region that it meets: a request, which a [`Policy`] answers with who sends. The requests of
//! all parameters go to the policy in one call, since load balances only over the whole sync. Answers become segments, and segments
//! that continue each other on both sides are joined.

mod answers;
mod documents;
mod fold;
pub mod policy;
mod requests;
mod settings;

pub use documents::{read_answers, write_requests};
pub use policy::{Answers, FirstHolder, LocalFirst, LocalFirstInOrder};
pub use settings::{Budget, ElementSizes, Settings};

use std::collections::VecDeque;
use std::sync::Arc;

use super::map::Maps;
use super::{At, Plan, PlanError, Statistics};

/// One of those who hold a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub location: i64,
    /// its process, where endpoints are known
    pub process: Option<usize>,
    /// where the region begins in its shard, and its strides there, elements
    pub offset: u64,
    pub strides: Vec<i64>,
}

/// A region of a target that somebody must send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// one text for all requests of a parameter
    pub parameter: Arc<str>,
    pub target: i64,
    /// its process, where endpoints are known
    pub process: Option<usize>,
    /// corner and extent of the region in the tensor
    pub origin: Vec<u64>,
    pub shape: Vec<u64>,
    /// where it begins in the target's shard, and its strides there
    pub offset: u64,
    pub strides: Vec<i64>,
    /// ascending by location; never empty
    pub candidates: Vec<Candidate>,
    /// bytes of an element, where known
    pub element_size: Option<u64>,
}

/// A part of a request's region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub origin: Vec<u64>,
    pub shape: Vec<u64>,
    /// one of the request's candidates
    pub source: i64,
}

/// Who sends a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// all of it from one location
    Whole(i64),
    /// parts that tile it
    Parts(Vec<Part>),
}

/// Chooses who sends. One call for a whole sync, with every request, those with a single holder included, in the order of
/// (parameter, target, origin). Every answer is checked before a segment is made. Where every rank plans for itself the same
/// requests must give the same answers.
pub trait Policy {
    fn answer(&self, requests: &[Request]) -> Vec<Answer>;
}

/// Plans that bring `source` into `target`, by parameter; parameters that only the source has are left alone.
///
/// # Errors
/// Maps that break a rule or contradict each other, layouts that cannot be planned, what goes over the budget (nothing is ever cut
/// short), and answers of the policy that do not tile their requests from those who hold them.
pub fn plans(target: &Maps, source: &Maps, settings: &Settings) -> Result<Vec<(String, Plan, Statistics)>, PlanError> {
    let (requests, drafts) = requests::of(target, source, settings)?;
    let answers = settings.policy.answer(&requests);
    if answers.len() != requests.len() {
        let what = format!("{} answers to {} requests", answers.len(), requests.len());
        return Err(PlanError::Policy { place: At::default(), what });
    }
    for (request, answer) in requests.iter().zip(&answers) {
        answers::check(request, answer, settings.min_split_bytes)?;
    }
    let mut pending = VecDeque::from(requests).into_iter().zip(answers);
    let mut plans = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let mut segments = Vec::with_capacity(draft.requests);
        for (request, answer) in pending.by_ref().take(draft.requests) {
            answers::segments(request, answer, &mut segments);
        }
        let before = segments.len();
        let segments = fold::fold(segments, &settings.budget, &draft.place)?;
        let plan = Plan { logical_shape: draft.shape, segments };
        let statistics = Statistics {
            segments_before_merge: before,
            segments: plan.segments.len(),
            plan_bytes: plan.bytes(),
            moved_elements: plan.segments.iter().fold(0, |moved: u64, segment| moved.saturating_add(segment.elements())),
            ..draft.statistics
        };
        Budget::keeps("segments", plan.segments.len(), settings.budget.segments, &draft.place)?;
        Budget::keeps("bytes of the plan", statistics.plan_bytes, settings.budget.plan_bytes, &draft.place)?;
        plans.push((draft.place.parameter, plan, statistics));
    }
    Ok(plans)
}

/// The requests of a sync, as a policy is asked them.
///
/// # Errors
/// As [`plans`], before any policy is asked.
pub fn requests(target: &Maps, source: &Maps, settings: &Settings) -> Result<Vec<Request>, PlanError> {
    requests::of(target, source, settings).map(|(requests, _)| requests)
}
