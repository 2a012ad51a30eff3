use std::ops::Range;

use super::Job;
use crate::plan::{Flow, Stage, Staged, Traffic};

/// Traffic in the making.
pub(super) struct Writer<'a> {
    pub job: &'a Job,
    traffic: Traffic,
    /// of the next flow, not yet written: a stage without flows is none
    next: Option<Stage>,
}

impl<'a> Writer<'a> {
    pub fn new(name: String, job: &'a Job) -> Self {
        Self { job, traffic: Traffic { name, ranks: job.hosts.len(), ..Traffic::default() }, next: None }
    }

    /// What follows is of a new stage.
    pub fn stage(&mut self, name: &str, waits: bool) {
        self.next = Some(Stage { name: name.to_owned(), waits });
    }

    /// Bytes from one rank to another; the number of the flow. `None` for no bytes.
    pub fn flow(&mut self, from: usize, to: usize, range: &Range<u64>, after: &[Option<usize>]) -> Option<usize> {
        if range.is_empty() {
            return None;
        }
        self.traffic.stages.extend(self.next.take());
        let bytes = range.end - range.start;
        let messages = self.job.message.map_or(1, |most| bytes.div_ceil(most));
        self.traffic.chunks += messages;
        let mut after: Vec<usize> = after.iter().flatten().copied().collect();
        after.sort_unstable();
        after.dedup();
        self.traffic.flows.push(Flow {
            stage: self.traffic.stages.len().saturating_sub(1),
            from,
            to,
            bytes,
            messages: u32::try_from(messages).unwrap_or(u32::MAX),
            after,
            offset: Some(range.start),
            // A run of bytes is sent from where it lies and received where it belongs.
            staged: Staged::default(),
        });
        Some(self.traffic.flows.len() - 1)
    }

    pub fn finish(self) -> Traffic {
        self.traffic
    }
}

/// Neighbouring ranges made one.
pub(super) fn joined(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}
