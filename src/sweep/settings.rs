use serde::{Deserialize, Serialize};

use crate::sample::{Memory, MoverKind, Pattern};

/// Most timed repeats of a pair and size, and most untimed ones: the raw samples are kept, and one probe is one message.
pub const MOST_REPEATS: u32 = 100_000;

/// Arena on a GPU: twice the largest L2 cache of any (B200: 126 MiB), since no cache of the host tells anything of those. A rank says so
/// when it gets ready where its GPU's is larger than its arena.
const DEVICE_ARENA: u64 = 256 << 20;

/// Fewest repeats that have a 95 % interval of their median.
pub const FEWEST: u32 = 6;
/// Targets from which on each gets the fewest repeats: their number tells more than a better interval, and all samples are kept.
const MANY: usize = 1 << 16;

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
    #[serde(default, skip_serializing_if = "Memory::is_host")]
    pub memory: Memory,
    /// GPUs in the order of the ranks of a host, as CUDA numbers them or by UUID or PCI address; empty for the one of each rank's number
    /// on its host
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    #[serde(default)]
    pub buffers: Buffers,
    /// size of each rank's send and receive arena, bytes; 0 to choose by the cache
    #[serde(default)]
    pub arena: u64,
}

/// A list of GPUs as typed: their names between commas; none of nothing. What is between two commas counts, so that what was
/// forgotten there is refused and moves nobody to another rank's GPU.
pub fn parse_gpus(text: &str) -> Vec<String> {
    if text.trim().is_empty() { Vec::new() } else { text.split(',').map(|gpu| gpu.trim().to_owned()).collect() }
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
            memory: Memory::Host,
            gpus: Vec::new(),
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

    /// Repeats that each of `targets` gets of a size before its interval decides: of the largest the fewest that have one, of
    /// smaller ones more.
    ///
    /// A fit's slope rests on all sizes whose bytes outweigh its latency. Its error for the time spent is least when repeats go with
    /// one over the square root of what they cost; below the 16th part of the largest that would be more than their share of the
    /// error is worth. From the 256th part on time is mostly latency: such sizes are many, and tell it together.
    pub fn batch(&self, bytes: u64, targets: usize) -> u32 {
        if self.ci <= 0.0 {
            return self.repeats;
        }
        let largest = self.sizes.last().copied().unwrap_or(bytes);
        let wanted = match largest / bytes.max(1) {
            _ if targets > MANY => FEWEST,
            0..4 => FEWEST,
            16..256 => 24,
            _ => 16,
        };
        self.repeats.min(wanted)
    }

    /// Bytes of each arena (a rank has two: one it sends from, one it receives into; and on its host one for each pattern that
    /// [crosses](Pattern::crosses)).
    ///
    /// `cache` is the host's last-level cache in bytes, or 0 if unknown; of buffers on GPUs it says nothing. Never smaller than one window
    /// of the largest size.
    pub fn arena_bytes(&self, cache: u64) -> u64 {
        let largest = self.sizes.iter().max().copied().unwrap_or(0).checked_next_multiple_of(64).unwrap_or(u64::MAX);
        let window = largest.saturating_mul(u64::from(self.window));
        let cold = match (self.buffers, self.arena) {
            (Buffers::Reuse, _) => 0,
            (Buffers::Rotate, 0) if self.memory == Memory::Cuda => DEVICE_ARENA,
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
        assert_eq!(SweepSettings { memory: Memory::Cuda, ..settings.clone() }.arena_bytes(32 << 20), 256 << 20);
        settings.buffers = Buffers::Reuse;
        assert_eq!(settings.arena_bytes(32 << 20), 4 << 20);
        settings.sizes = vec![1 << 30];
        settings.buffers = Buffers::Rotate;
        assert_eq!(settings.arena_bytes(32 << 20), 4 << 30);
    }

    #[test]
    fn sizes_get_repeats_by_what_they_cost_and_a_fixed_number_is_that_number() {
        let settings = |ci, repeats| SweepSettings { sizes: vec![4096, 1 << 28], ci, repeats, ..SweepSettings::default() };
        let sizes = [1 << 28, 1 << 26, 1 << 24, 1 << 22, 1 << 20, 4096];
        assert_eq!(sizes.map(|bytes| settings(0.05, 40).batch(bytes, 256)), [6, 16, 24, 24, 16, 16]);
        assert_eq!(sizes.map(|bytes| settings(0.05, 40).batch(bytes, 1 << 20)), [6; 6], "a million targets");
        assert_eq!(sizes.map(|bytes| settings(0.05, 10).batch(bytes, 256)), [6, 10, 10, 10, 10, 10], "never more than told");
        assert_eq!(sizes.map(|bytes| settings(0.0, 40).batch(bytes, 256)), [40; 6]);
    }
}
