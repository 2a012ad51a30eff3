use std::collections::BTreeMap;

use super::cells::{Shot, flag_outliers, severity};
use crate::fit::median;
use crate::sample::{Sample, Status};
use crate::sweep::{Enough, Group};
use crate::topology::PathClass;

/// A sample of one transfer of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupShot {
    pub from: usize,
    pub to: usize,
    pub path: PathClass,
    /// relay: how the sender's received bytes came
    pub receive_path: Option<PathClass>,
    /// fans: the root's own time for all the repeat's messages, seconds
    pub root_seconds: Option<f64>,
    pub shot: Shot,
}

/// The samples of one group at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSize {
    /// size of one message, bytes
    pub bytes: u64,
    /// every sample, in the order in which it came
    pub shots: Vec<GroupShot>,
    /// the newest take; summaries are of this one only
    pub take: u32,
    /// worst state of the newest take
    pub status: Status,
    /// why there are no further samples, once there will be none
    pub enough: Option<Enough>,
}

impl GroupSize {
    /// Its transfers, (sender, receiver) each, in order.
    pub fn flows(&self) -> Vec<(usize, usize)> {
        let mut flows: Vec<(usize, usize)> = self.shots.iter().map(|shot| (shot.from, shot.to)).collect();
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    fn newest(&self) -> impl Iterator<Item = &GroupShot> {
        self.shots.iter().filter(|shot| shot.shot.take == self.take)
    }

    /// Good samples of one transfer, seconds a message.
    pub fn times(&self, from: usize, to: usize) -> Vec<f64> {
        let own = self.newest().filter(|shot| (shot.from, shot.to) == (from, to));
        own.filter_map(|shot| shot.shot.seconds_per_message()).collect()
    }

    /// Fans: the root's own times for one message of each peer, seconds, one a repeat in which every transfer was good.
    pub fn root_times(&self) -> Vec<f64> {
        let mut repeats: BTreeMap<u32, Option<f64>> = BTreeMap::new();
        for GroupShot { shot, root_seconds, .. } in self.newest().filter(|shot| !shot.shot.warmup) {
            let own = root_seconds.filter(|_| shot.status == Status::Ok).map(|seconds| seconds / f64::from(shot.messages.max(1)));
            repeats.entry(shot.repeat).and_modify(|all| *all = all.and(own)).or_insert(own);
        }
        repeats.into_values().flatten().collect()
    }

    /// Seconds of a message until the last transfer is through, one a repeat in which every transfer was good; of fans as
    /// the root saw it.
    pub fn completions(&self) -> Vec<f64> {
        let mut repeats: BTreeMap<u32, Option<f64>> = BTreeMap::new();
        for GroupShot { shot, root_seconds, .. } in self.newest().filter(|shot| !shot.shot.warmup) {
            let root = root_seconds.map(|seconds| seconds / f64::from(shot.messages.max(1)));
            let own = shot.seconds_per_message().map(|seconds| root.unwrap_or(seconds));
            let longer = |all: &mut Option<f64>| *all = all.zip(own).map(|(all, own)| all.max(own));
            repeats.entry(shot.repeat).and_modify(longer).or_insert(own);
        }
        repeats.into_values().flatten().collect()
    }

    /// Fans: all bytes of a repeat over the root's median time, bytes per second; NaN if no repeat is good.
    pub fn aggregate(&self, group: &Group) -> f64 {
        self.bytes as f64 * group.peers.len() as f64 / median(&mut self.root_times())
    }

    /// Flag what lies far from its own transfer's other samples; once a probe.
    fn flag_outliers(&mut self) {
        let newest = self.take;
        let mut flows: BTreeMap<(usize, usize), Vec<&mut Shot>> = BTreeMap::new();
        for shot in self.shots.iter_mut().filter(|shot| shot.shot.take == newest) {
            flows.entry((shot.from, shot.to)).or_default().push(&mut shot.shot);
        }
        for shots in flows.into_values() {
            flag_outliers(shots.into_iter());
        }
    }

    fn push(&mut self, shot: GroupShot) {
        if shot.shot.take > self.take {
            self.take = shot.shot.take;
            self.status = Status::Ok;
        }
        if shot.shot.take == self.take && severity(shot.shot.status) > severity(self.status) {
            self.status = shot.shot.status;
        }
        self.shots.push(shot);
    }

    /// Forget what an earlier job of the session could not time and these samples try again; how many were forgotten.
    fn tried_again(&mut self, samples: &[Sample]) -> usize {
        if self.status == Status::Ok {
            return 0;
        }
        let failed = |shot: &Shot| matches!(shot.status, Status::Timeout | Status::Waived);
        let again = |shot: &GroupShot| {
            let same = |sample: &Sample| {
                (sample.from, sample.to, sample.take, sample.repeat) == (shot.from, shot.to, shot.shot.take, shot.shot.repeat)
            };
            samples.iter().any(|sample| !sample.warmup && same(sample))
        };
        let before = self.shots.len();
        self.shots.retain(|shot| !(failed(&shot.shot) && again(shot)));
        let newest = self.shots.iter().filter(|shot| shot.shot.take == self.take).map(|shot| shot.shot.status);
        self.status = newest.max_by_key(|&status| severity(status)).unwrap_or(Status::Ok);
        before - self.shots.len()
    }
}

/// Every group that has a sample: fans, relays and sets of a pattern file.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    known: BTreeMap<Group, Vec<GroupSize>>,
    samples: u64,
}

impl Groups {
    /// All groups in order, each by size ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&Group, &[GroupSize])> {
        self.known.iter().map(|(group, sizes)| (group, sizes.as_slice()))
    }

    /// What is known of a group, by size ascending.
    pub fn get(&self, group: &Group) -> &[GroupSize] {
        self.known.get(group).map_or(&[], Vec::as_slice)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// True if no group has a sample.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Samples in all, warm-ups not counted.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Take in the samples of a probe of a group.
    pub(super) fn add(&mut self, group: &Group, samples: &[Sample], enough: Option<Enough>) {
        let Some(first) = samples.first() else { return };
        let sizes = self.known.entry(group.clone()).or_default();
        let at = sizes.binary_search_by_key(&first.bytes, |size| size.bytes).unwrap_or_else(|at| {
            let (bytes, take) = (first.bytes, first.take);
            sizes.insert(at, GroupSize { bytes, shots: Vec::new(), take, status: Status::Ok, enough: None });
            at
        });
        let size = &mut sizes[at];
        let forgotten = size.tried_again(samples) as u64;
        size.enough = enough.or(size.enough);
        for sample in samples {
            size.push(GroupShot {
                from: sample.from,
                to: sample.to,
                path: sample.path,
                receive_path: sample.receive_path,
                root_seconds: sample.root_seconds,
                shot: Shot::of(sample),
            });
        }
        size.flag_outliers();
        let warmups = samples.iter().filter(|sample| sample.warmup).count() as u64;
        self.samples = self.samples + samples.len() as u64 - warmups - forgotten;
    }
}
