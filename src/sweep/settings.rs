use serde::{Deserialize, Serialize};

use crate::sample::{MoverKind, Pattern};

/// Most timed repeats of a pair and size, and most untimed ones: the raw samples are kept, and one probe is one message.
pub const MOST_REPEATS: u32 = 100_000;

/// Whether messages come from memory or from cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// each message uses the next part of an arena as large as the last-level cache: cold, as a transfer of real data is
    #[default]
    Rotate,
    /// every window uses the same buffers again: hot, as most micro-benchmarks do
    Reuse,
}

/// Which ranks the peers of a fan's root are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peers {
    /// ranks of the root's host first, then the others, each time the next ones above the root, modulo the ranks
    #[default]
    Nearest,
    /// the next ranks above the root, modulo the ranks
    Next,
    /// the next ranks on the root's own host
    SameHost,
    /// the next ranks below the root's own `PCIe` switch
    SameSwitch,
    /// the next ranks on other hosts
    CrossHost,
    /// these: a root and its peers each
    Listed(Vec<(usize, Vec<usize>)>),
}

/// One line of a pattern file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transfer {
    /// transfers with the same number run at the same time
    pub set: u32,
    pub from: usize,
    pub to: usize,
}

/// All that determines a sweep, apart from the ranks that exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepSettings {
    pub patterns: Vec<Pattern>,
    /// message sizes, bytes, ascending
    pub sizes: Vec<u64>,
    /// ranks to measure, ascending; empty for all of the job
    #[serde(default)]
    pub ranks: Vec<usize>,
    /// widths of fans; empty for one: the ranks of a host minus one
    #[serde(default)]
    pub widths: Vec<usize>,
    #[serde(default)]
    pub peers: Peers,
    /// shifts of relays
    #[serde(default = "one")]
    pub shifts: Vec<usize>,
    /// of `custom`: what runs, in the order of the pattern file
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// pairs to measure from each rank, chosen at random in equal parts of each path class; 0 for all
    #[serde(default)]
    pub pairs: usize,
    /// one probe at a time, always
    #[serde(default = "yes")]
    pub isolated: bool,
    /// timed repeats for each target and size: exactly, or with `ci` at most
    pub repeats: u32,
    /// repeat (6 times or more) until the half-width of the median's 95 % interval is within this share of it; 0 to repeat
    /// a fixed number of times
    #[serde(default)]
    pub ci: f64,
    /// longest time for all of it, seconds; 0 for none. The first picture is completed in any case
    #[serde(default)]
    pub budget: f64,
    /// untimed repeats before the timed ones of each probe
    pub warmup: u32,
    /// messages outstanding at a time; 1 measures single messages, 64 is the habit of OSU
    pub window: u32,
    /// seed of the probes' order and of the payload
    pub seed: u64,
    /// longest time for one probe, seconds; a probe that needs more becomes `timeout`, unless its ranks were seen to be so slow
    pub timeout: f64,
    pub mover: MoverKind,
    #[serde(default)]
    pub buffers: Buffers,
    /// size of each rank's send and receive arena, bytes; 0 to choose by the cache
    #[serde(default)]
    pub arena: u64,
}

fn one() -> Vec<usize> {
    vec![1]
}

/// What sessions did before rounds of several probes existed.
const fn yes() -> bool {
    true
}

impl Default for SweepSettings {
    /// Sizes 4 KiB…64 MiB (×4), 8 repeats after 1 warm-up, one message at a time, 10 s a probe, rounds where they cannot
    /// disturb.
    fn default() -> Self {
        Self {
            patterns: vec![Pattern::Local, Pattern::Peer],
            sizes: (0..8).map(|step| 4096 << (2 * step)).collect(),
            ranks: Vec::new(),
            widths: Vec::new(),
            peers: Peers::default(),
            shifts: one(),
            transfers: Vec::new(),
            pairs: 0,
            isolated: false,
            repeats: 8,
            ci: 0.0,
            budget: 0.0,
            warmup: 1,
            window: 1,
            seed: 1,
            timeout: 10.0,
            mover: MoverKind::Memcpy,
            buffers: Buffers::Rotate,
            arena: 0,
        }
    }
}

/// A setting that cannot be measured, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} = {value}: {expected}")]
pub struct SettingsError {
    /// which setting, named as the flag and the file name it
    pub setting: &'static str,
    /// its value
    pub value: String,
    /// what was expected and what to do
    pub expected: String,
}

impl SweepSettings {
    /// The ranks that this sweep measures in a job of `world` ranks, ascending.
    pub fn ranks_of(&self, world: usize) -> Vec<usize> {
        if self.ranks.is_empty() { (0..world).collect() } else { self.ranks.clone() }
    }

    /// Bytes of each arena (a rank has two: one it sends from, one it receives into).
    ///
    /// `cache` is the last-level cache in bytes, or 0 if unknown. Never smaller than one window of the largest size.
    pub fn arena_bytes(&self, cache: u64) -> u64 {
        let largest = self.sizes.iter().max().copied().unwrap_or(0).checked_next_multiple_of(64).unwrap_or(u64::MAX);
        let window = largest.saturating_mul(u64::from(self.window));
        let cold = match (self.buffers, self.arena) {
            (Buffers::Reuse, _) => 0,
            (Buffers::Rotate, 0) => {
                if cache == 0 {
                    64 << 20
                } else {
                    cache.min(256 << 20)
                }
            }
            (Buffers::Rotate, told) => told,
        };
        window.max(cold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_hold_a_window_and_outgrow_the_cache() {
        let mut settings = SweepSettings { sizes: vec![4096, 1 << 20], window: 4, ..SweepSettings::default() };
        assert_eq!(settings.arena_bytes(32 << 20), 32 << 20);
        assert_eq!(settings.arena_bytes(0), 64 << 20);
        settings.buffers = Buffers::Reuse;
        assert_eq!(settings.arena_bytes(32 << 20), 4 << 20);
        settings.sizes = vec![1 << 30];
        settings.buffers = Buffers::Rotate;
        assert_eq!(settings.arena_bytes(32 << 20), 4 << 30);
    }
}
