use std::ops::Range;

use crate::plan::MOST_MESSAGES;

/// What trainers have before anything moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// each the whole model
    Whole,
    /// trainer i of K the i-th of K equal parts
    Shards,
}

/// A model to be brought from trainers to engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// number of the host of each rank
    pub hosts: Vec<usize>,
    /// of the model
    pub bytes: u64,
    /// ranks, in the order of their shards
    pub trainers: Vec<usize>,
    /// ranks; one that is a trainer, too, keeps what it holds and gets the rest
    pub engines: Vec<usize>,
    pub held: Held,
    /// most bytes of a message: the staging budget for each peer and direction; `None` for one message a flow (windows, puts)
    pub message: Option<u64>,
}

impl Job {
    /// What makes no sense in it, and what would.
    pub fn check(&self) -> Result<(), String> {
        let world = self.hosts.len();
        for (what, ranks) in [("trainers", &self.trainers), ("engines", &self.engines)] {
            if ranks.is_empty() {
                return Err(format!("{what}: none; name at least one rank, such as 0-3"));
            }
            if let Some(rank) = ranks.iter().find(|&&rank| rank >= world) {
                return Err(format!("{what}: rank {rank} is not one of the {world} ranks, 0 to {}", world.saturating_sub(1)));
            }
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            if let Some((twice, _)) = sorted.iter().zip(sorted.iter().skip(1)).find(|(rank, next)| rank == next) {
                return Err(format!("{what}: rank {twice} is named twice"));
            }
        }
        if self.bytes == 0 {
            return Err("bytes: 0; a model has at least one byte".to_owned());
        }
        if self.message == Some(0) {
            return Err("bytes per peer: 0; at least one byte must fit a message".to_owned());
        }
        if let Some(most) = self.message.filter(|&most| self.bytes.div_ceil(most) > MOST_MESSAGES) {
            let messages = self.bytes.div_ceil(most);
            return Err(format!("bytes per peer: {most} make {messages} messages of the model, {MOST_MESSAGES} at most; give more"));
        }
        Ok(())
    }

    /// The i-th of `parts` equal parts of the model: bytes.
    pub fn part(&self, i: usize, parts: usize) -> Range<u64> {
        let at = |i: usize| (u128::from(self.bytes) * i as u128 / parts.max(1) as u128) as u64;
        at(i)..at(i + 1)
    }

    /// The shard of a trainer, by its number.
    pub fn shard(&self, trainer: usize) -> Range<u64> {
        self.part(trainer, self.trainers.len())
    }

    /// True if the rank holds every byte of the range before anything moves.
    pub fn holds(&self, rank: usize, range: &Range<u64>) -> bool {
        let Some(trainer) = self.trainers.iter().position(|&trainer| trainer == rank) else { return range.is_empty() };
        let shard = self.shard(trainer);
        self.held == Held::Whole || range.is_empty() || (shard.start <= range.start && range.end <= shard.end)
    }

    /// Trainers that hold the whole model.
    pub fn whole(&self) -> &[usize] {
        if self.held == Held::Whole || self.trainers.len() == 1 { &self.trainers } else { &[] }
    }

    /// Hosts that have engines, in the engines' order, each with its engines.
    pub fn engine_hosts(&self) -> Vec<(usize, Vec<usize>)> {
        let mut hosts: Vec<(usize, Vec<usize>)> = Vec::new();
        for &engine in &self.engines {
            let host = self.hosts[engine];
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, engines)) => engines.push(engine),
                None => hosts.push((host, vec![engine])),
            }
        }
        hosts
    }
}
