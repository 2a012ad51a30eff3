//! Who of several holders sends.

mod calibrated;
mod local;

pub use calibrated::Calibrated;
pub use local::{LocalFirst, LocalFirstInOrder};

use super::{Answer, Policy, Request};

/// The lowest location: what the reference did first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstHolder;

impl Policy for FirstHolder {
    fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        requests.iter().map(|request| Answer::Whole(request.candidates[0].location)).collect()
    }
}

/// Answers that somebody gave before, such as a user's from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers(pub Vec<Answer>);

impl Policy for Answers {
    fn answer(&self, _: &[Request]) -> Vec<Answer> {
        self.0.clone()
    }
}
