//! Two maps of a tensor -> the segments to copy.

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
    pub parameter: String,
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
