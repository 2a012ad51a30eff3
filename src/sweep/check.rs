//! Settings that cannot be measured, by name, with what would be right.

use std::fmt::Display;

use super::settings::MOST_REPEATS;
use super::{Peers, SettingsError, SweepSettings};
use crate::sample::{Memory, MoverKind, Pattern};
use crate::topology::GpuName;
use crate::units::{format_size, plain};

/// Most sizes of a sweep.
const MOST_SIZES: usize = 64;
/// Most pairs of a pattern: their state is kept. 2,048 ranks have as many.
const MOST_PAIRS: usize = 1 << 22;

type Checked = Result<(), SettingsError>;

fn refuse(setting: &'static str, value: impl Display, expected: impl Into<String>) -> Checked {
    Err(SettingsError { setting, value: plain(&format!("{value}")), expected: expected.into() })
}

impl SweepSettings {
    /// Refuse what cannot be measured in a job of `world` ranks, with what would be.
    pub fn check(&self, world: usize) -> Checked {
        self.check_patterns()?;
        self.check_sizes()?;
        self.check_ranks(world)?;
        self.check_repeats()?;
        self.check_memory()?;
        if self.patterns.iter().any(|pattern| pattern.is_fan()) {
            self.check_fans(world)?;
        }
        if self.patterns.contains(&Pattern::Relay) {
            self.check_shifts(world)?;
        }
        self.check_transfers(world)
    }

    fn check_patterns(&self) -> Checked {
        if self.patterns.is_empty() {
            let names: Vec<&str> = Pattern::ALL.iter().map(|pattern| pattern.name()).collect();
            return refuse("patterns", "none", format!("name at least one of {}", names.join(", ")));
        }
        if (1..self.patterns.len()).any(|at| self.patterns[..at].contains(&self.patterns[at])) {
            return refuse("patterns", "one of them twice", "each pattern once");
        }
        Ok(())
    }

    fn check_sizes(&self) -> Checked {
        if self.sizes.is_empty() || self.sizes.contains(&0) {
            return refuse("sizes", "none or zero", "give sizes of at least one byte, such as 4KiB..64MiB");
        }
        if let Some(&size) = self.sizes.iter().find(|&&size| size > i32::MAX as u64) {
            return refuse("sizes", format_size(size), "one MPI message holds at most 2147483647 bytes; use 1GiB or less");
        }
        // Buffers are laid out for the last size; a file or a socket may say anything.
        if !self.sizes.is_sorted_by(|a, b| a < b) {
            return refuse("sizes", "not ascending", "each size once, smallest first");
        }
        if self.sizes.len() > MOST_SIZES {
            return refuse("sizes", format!("{} of them", self.sizes.len()), format!("at most {MOST_SIZES}"));
        }
        Ok(())
    }

    fn check_ranks(&self, world: usize) -> Checked {
        if !self.ranks.is_sorted_by(|a, b| a < b) {
            return refuse("ranks", "not ascending", "each rank once, smallest first");
        }
        if let Some(&rank) = self.ranks.iter().find(|&&rank| rank >= world) {
            return refuse("ranks", rank, of_job(world));
        }
        let ranks = if self.ranks.is_empty() { world } else { self.ranks.len() };
        if ranks < 2 && !self.patterns.iter().any(|pattern| pattern.is_own()) {
            let names: Vec<&str> = self.patterns.iter().map(|pattern| pattern.name()).collect();
            let expected = format!("{} needs two ranks; this job has one (try --ranks 2 or mpirun -n 2)", names[0]);
            return refuse("patterns", names.join(", "), expected);
        }
        let pairs = ranks.saturating_mul(ranks.saturating_sub(1));
        let all = [Pattern::Peer, Pattern::Duplex].into_iter().any(|pattern| self.patterns.contains(&pattern)) && self.pairs == 0;
        if all && pairs > MOST_PAIRS {
            return refuse("pairs", "0 (all)", format!("{ranks} ranks have {pairs} pairs; measure some of each rank, such as --pairs 16"));
        }
        if self.pairs.saturating_mul(ranks) > MOST_PAIRS {
            return refuse("pairs", self.pairs, format!("at most {} from each of {ranks} ranks", MOST_PAIRS / ranks.max(1)));
        }
        Ok(())
    }

    fn check_repeats(&self) -> Checked {
        if self.repeats == 0 {
            return refuse("repeats", "0", "at least one repeat; 6 or more give an interval");
        }
        for (setting, value) in [("repeats", self.repeats), ("warmup", self.warmup)] {
            if value > MOST_REPEATS {
                return refuse(setting, value, format!("at most {MOST_REPEATS}"));
            }
        }
        if !(0.0..1.0).contains(&self.ci) {
            let expected = "a share of the median, at least 0 (a fixed number of repeats) and below 1, such as 0.05";
            return refuse("ci", self.ci, expected);
        }
        if !(0.0..=1e8).contains(&self.budget) {
            return refuse("budget", self.budget, "seconds, at least 0 (no limit), such as 60");
        }
        if !(1..=1024).contains(&self.window) {
            return refuse("window", self.window, "between 1 and 1024 outstanding messages");
        }
        if !(self.timeout.is_finite() && self.timeout >= 0.01 && self.timeout <= 86_400.0) {
            return refuse("timeout", self.timeout, "between 0.01 and 86400 seconds");
        }
        Ok(())
    }

    /// A mover that moves this memory, and GPUs only where there is something for them to hold.
    fn check_memory(&self) -> Checked {
        let mover = self.mover.name();
        match self.memory {
            memory if self.mover.moves(memory) => {}
            Memory::Host => {
                return refuse("memory", "host", format!("mover {mover} moves the memory of GPUs: memory cuda, or another mover"));
            }
            Memory::Cuda => return refuse("memory", "cuda", format!("mover {mover} has no GPUs: memory host, or another engine")),
        }
        if let Some(crossing) = self.patterns.iter().find(|pattern| pattern.crosses() && self.memory.is_host()) {
            let needs = if self.mover == MoverKind::Simulated { "; fabrics do not describe those, so another engine" } else { "" };
            let expected = format!("it copies between the host's memory and each rank's GPU: memory cuda{needs}, or without this pattern");
            return refuse("patterns", crossing.name(), expected);
        }
        if self.memory.is_host() && !self.gpus.is_empty() {
            return refuse("gpus", self.gpus.join(","), "memory cuda, whose buffers lie on GPUs; none are named for memory host");
        }
        match self.gpus.iter().find_map(|gpu| gpu.parse::<GpuName>().err()) {
            Some(wrong) => refuse("gpus", self.gpus.join(","), wrong),
            None => Ok(()),
        }
    }

    /// True if this sweep measures a rank.
    fn measures(&self, rank: usize, world: usize) -> bool {
        if self.ranks.is_empty() { rank < world } else { self.ranks.binary_search(&rank).is_ok() }
    }

    /// The ranks that may be named, in words.
    fn choice(&self, world: usize) -> String {
        if self.ranks.is_empty() { of_job(world) } else { format!("--ranks names {}", crate::units::format_ranks(&self.ranks)) }
    }

    fn check_fans(&self, world: usize) -> Checked {
        let others = self.ranks_of(world).len().saturating_sub(1);
        if self.widths.contains(&0) {
            return refuse("widths", "0", "a fan has at least one peer");
        }
        if let Some(width) = self.widths.iter().find(|&&width| width > others) {
            return refuse("widths", width, format!("a root has {others} others here, so at most {others}"));
        }
        let Peers::Listed(listed) = &self.peers else { return Ok(()) };
        if listed.is_empty() {
            return refuse("peers", "none", "a root and its peers a line, such as 0: 1,2,3");
        }
        for (root, peers) in listed {
            if let Some(rank) = std::iter::once(root).chain(peers).find(|&&rank| !self.measures(rank, world)) {
                return refuse("peers", format!("rank {rank} in the fan of root {root}"), self.choice(world));
            }
            let mut distinct = peers.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() < peers.len() || distinct.contains(root) || peers.is_empty() {
                return refuse("peers", format!("the fan of root {root}"), "other ranks than the root, at least one, each once");
            }
        }
        Ok(())
    }

    fn check_shifts(&self, world: usize) -> Checked {
        let ranks = self.ranks_of(world).len();
        if self.shifts.is_empty() {
            return refuse("shifts", "none", "at least one, such as 1");
        }
        match self.shifts.iter().find(|&&shift| shift == 0 || shift >= ranks) {
            Some(shift) if ranks > 1 => refuse("shifts", shift, format!("between 1 and {} for {ranks} ranks", ranks - 1)),
            _ => Ok(()),
        }
    }

    fn check_transfers(&self, world: usize) -> Checked {
        if !self.patterns.contains(&Pattern::Custom) {
            return Ok(());
        }
        if self.transfers.is_empty() {
            return refuse("patterns", "custom", "custom runs the transfers of a file: --pattern-file FILE");
        }
        let mut seen = std::collections::HashSet::new();
        for (number, &transfer) in (1..).zip(&self.transfers) {
            let super::Transfer { set, from, to } = transfer;
            let value = || format!("number {number}, {from}→{to} of set {set}");
            if let Some(rank) = [from, to].into_iter().find(|&rank| !self.measures(rank, world)) {
                return refuse("transfers", value(), format!("rank {rank}: {}", self.choice(world)));
            }
            if from == to {
                return refuse("transfers", value(), "two ranks; a copy within one is the pattern local");
            }
            if !seen.insert((set, from, to)) {
                return refuse("transfers", value(), "each transfer once in a set");
            }
        }
        Ok(())
    }
}

fn of_job(world: usize) -> String {
    format!("this job has ranks 0 to {}", world.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Transfer;

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let good = SweepSettings::default();
        assert_eq!(good.check(4), Ok(()));
        let with = |pattern| SweepSettings { patterns: vec![pattern], ..good.clone() };
        let fans = with(Pattern::FanIn);
        let listed = |listed: &[(usize, &[usize])]| SweepSettings {
            peers: Peers::Listed(listed.iter().map(|(root, peers)| (*root, peers.to_vec())).collect()),
            ..fans.clone()
        };
        let custom = |transfers: &[(u32, usize, usize)]| SweepSettings {
            transfers: transfers.iter().map(|&(set, from, to)| Transfer { set, from, to }).collect(),
            ..with(Pattern::Custom)
        };
        let cases = [
            ("patterns", SweepSettings { patterns: vec![], ..good.clone() }),
            ("sizes", SweepSettings { sizes: vec![], ..good.clone() }),
            ("sizes", SweepSettings { sizes: vec![4 << 30], ..good.clone() }),
            ("ranks", SweepSettings { ranks: vec![0, 4], ..good.clone() }),
            ("repeats", SweepSettings { repeats: 0, ..good.clone() }),
            ("timeout", SweepSettings { timeout: f64::NAN, ..good.clone() }),
            // From a socket or a file: nobody sorted these.
            ("sizes", SweepSettings { sizes: vec![1 << 20, 4096], ..good.clone() }),
            ("ranks", SweepSettings { ranks: vec![1, 1], ..good.clone() }),
            ("patterns", SweepSettings { patterns: vec![Pattern::Peer, Pattern::Peer], ..good.clone() }),
            ("repeats", SweepSettings { repeats: u32::MAX, ..good.clone() }),
            ("warmup", SweepSettings { warmup: u32::MAX, ..good.clone() }),
            ("ci", SweepSettings { ci: 1.0, ..good.clone() }),
            ("ci", SweepSettings { ci: f64::NAN, ..good.clone() }),
            ("ci", SweepSettings { ci: -0.1, ..good.clone() }),
            ("budget", SweepSettings { budget: -1.0, ..good.clone() }),
            ("budget", SweepSettings { budget: f64::INFINITY, ..good.clone() }),
            ("sizes", SweepSettings { sizes: (1..=65).collect(), ..good.clone() }),
            ("pairs", SweepSettings { pairs: 1 << 30, ..good.clone() }),
            ("widths", SweepSettings { widths: vec![1, 4], ..fans.clone() }),
            ("widths", SweepSettings { widths: vec![0], ..fans.clone() }),
            ("widths", SweepSettings { widths: vec![2], ranks: vec![0, 3], ..fans.clone() }),
            ("peers", listed(&[])),
            ("peers", listed(&[(0, &[1]), (4, &[1])])),
            ("peers", listed(&[(0, &[1, 4])])),
            ("peers", listed(&[(0, &[1, 1])])),
            ("peers", listed(&[(0, &[0, 1])])),
            ("peers", listed(&[(0, &[])])),
            ("peers", SweepSettings { ranks: vec![0, 1], ..listed(&[(0, &[2])]) }),
            ("shifts", SweepSettings { shifts: vec![1, 4], ..with(Pattern::Relay) }),
            ("shifts", SweepSettings { shifts: vec![0], ..with(Pattern::Relay) }),
            ("shifts", SweepSettings { shifts: vec![], ..with(Pattern::Relay) }),
            ("memory", SweepSettings { mover: MoverKind::Nccl, ..good.clone() }),
            ("memory", SweepSettings { mover: MoverKind::Simulated, memory: Memory::Cuda, ..good.clone() }),
            ("gpus", SweepSettings { gpus: vec!["0".to_owned()], ..good.clone() }),
            ("gpus", SweepSettings { gpus: vec!["0".to_owned(), "x".to_owned()], memory: Memory::Cuda, ..good.clone() }),
            ("patterns", SweepSettings { patterns: vec![Pattern::Local, Pattern::DeviceToHost], ..good.clone() }),
            ("patterns", with(Pattern::Custom)),
            ("transfers", custom(&[(0, 0, 4)])),
            ("transfers", custom(&[(0, 1, 1)])),
            ("transfers", custom(&[(0, 0, 1), (1, 0, 1), (0, 0, 1)])),
        ];
        for (setting, settings) in cases {
            assert_eq!(settings.check(4).unwrap_err().setting, setting, "{settings:?}");
        }
        for settings in [
            SweepSettings { widths: vec![1, 3], ..fans.clone() },
            listed(&[(0, &[3, 1]), (0, &[2])]),
            SweepSettings { shifts: vec![1, 3], ..with(Pattern::Relay) },
            custom(&[(0, 0, 1), (1, 0, 1), (0, 1, 0)]),
            SweepSettings { ranks: vec![2], memory: Memory::Cuda, mover: MoverKind::Nccl, ..with(Pattern::HostToDevice) },
            // What a pattern needs is asked only where it is measured.
            SweepSettings { widths: vec![99], shifts: vec![0], peers: Peers::Listed(vec![]), ..good.clone() },
            SweepSettings { pairs: 100, ..good.clone() },
            SweepSettings {
                gpus: vec!["1".to_owned(), "GPU-8f".to_owned()],
                memory: Memory::Cuda,
                mover: MoverKind::NcclPut,
                ..good.clone()
            },
        ] {
            assert_eq!(settings.check(4), Ok(()), "{settings:?}");
        }
        let text = custom(&[(0, 0, 1), (7, 0, 9)]).check(4).unwrap_err().to_string();
        assert_eq!(text, "transfers = number 2, 0→9 of set 7: rank 9: this job has ranks 0 to 3");
        let text = with(Pattern::HostToDevice).check(4).unwrap_err().to_string();
        assert!(text.starts_with("patterns = host_to_device: it copies between") && text.contains("memory cuda, or without"), "{text}");
        let text = SweepSettings { mover: MoverKind::Simulated, ..with(Pattern::HostToDevice) }.check(4).unwrap_err().to_string();
        assert!(text.contains("another engine"), "{text}");
        assert!(with(Pattern::Duplex).check(1).unwrap_err().to_string().contains("duplex needs two ranks"));
    }

    #[test]
    fn very_many_pairs_are_refused_with_the_way_to_measure_some() {
        let peers = SweepSettings { patterns: vec![Pattern::Peer], ..SweepSettings::default() };
        assert_eq!(peers.check(1024), Ok(()));
        assert!(peers.check(10_000).unwrap_err().to_string().contains("--pairs 16"));
        assert_eq!(SweepSettings { pairs: 16, ..peers }.check(10_000), Ok(()));
    }
}
