//! What a path gives: α and rate by size, and how the pairs of a class lie around it.

use super::class::Class;

/// Below this size, another α and rate: an eager protocol, or a copy that stays in cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breakpoint {
    /// sizes under this one, bytes
    pub below: u64,
    /// seconds
    pub alpha: f64,
    /// bytes per second
    pub rate: f64,
}

/// What a pair gives when it runs alone: the truth that a fit should find.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// seconds, at sizes past every breakpoint
    pub alpha: f64,
    /// bytes per second, at sizes past every breakpoint
    pub rate: f64,
    /// ascending in `below`; the first whose `below` exceeds a size rules it
    pub breakpoints: Vec<Breakpoint>,
}

impl Truth {
    /// α and rate of a message of `bytes`.
    pub fn at(&self, bytes: u64) -> (f64, f64) {
        let found = self.breakpoints.iter().find(|breakpoint| bytes < breakpoint.below);
        found.map_or((self.alpha, self.rate), |breakpoint| (breakpoint.alpha, breakpoint.rate))
    }

    /// Seconds of one message of `bytes`.
    pub fn seconds(&self, bytes: u64) -> f64 {
        let (alpha, rate) = self.at(bytes);
        alpha + bytes as f64 / rate
    }
}

/// What a class of paths gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    pub class: Class,
    pub truth: Truth,
    /// lowest and highest rate of a pair, with `truth.rate` their median
    pub spread: Option<(f64, f64)>,
    /// what is left of the rate while an end of the flow both sends and receives on this class; 1 when the directions are apart
    pub duplex: f64,
}

impl Rule {
    /// The rate of one pair.
    ///
    /// One direction of each pair lies above the class's rate and the other below, so that the rate stays the median; most lie close to
    /// it (a cube), few near the ends.
    pub fn rate(&self, from: usize, to: usize, seed: u64) -> f64 {
        let rate = self.truth.rate;
        let Some((low, high)) = self.spread.filter(|_| from != to) else { return rate };
        let up = (from < to) == (hash(seed, from.min(to), from.max(to)) & 1 == 0);
        // 53 bits make a fraction below 1.
        let depth = ((hash(seed ^ 1, from, to) >> 11) as f64 / (1_u64 << 53) as f64).powi(3);
        if up { rate + (high - rate) * depth } else { rate - (rate - low) * depth }
    }
}

/// A number that depends on all three and looks like chance, the same in every version (`SplitMix64`, Steele, Lea & Flood, OOPSLA'14).
fn hash(seed: u64, a: usize, b: usize) -> u64 {
    [a as u64, b as u64].into_iter().fold(mix(seed), |state, part| mix(state ^ part))
}

const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_median_of_its_spread_and_no_pair_leaves_it() {
        let truth = Truth { alpha: 0.0, rate: 20.2, breakpoints: vec![] };
        for seed in 0..20 {
            let rule = Rule { class: Class::InterNode, truth: truth.clone(), spread: Some((19.7, 28.5)), duplex: 1.0 };
            let mut rates: Vec<f64> = (0..16)
                .flat_map(|from| (0..16).map(move |to| (from, to)))
                .filter(|(from, to)| from != to)
                .map(|(from, to)| rule.rate(from, to, seed))
                .collect();
            rates.sort_by(f64::total_cmp);
            assert!((rates[119] - 20.2).abs() < 0.001 && (rates[120] - 20.2).abs() < 0.001, "{} {}", rates[119], rates[120]);
            assert!(rates[0] >= 19.7 && rates[239] <= 28.5);
            // It is a spread: the ends are approached.
            assert!(rates[0] < 19.85 && rates[239] > 26.0, "{} {}", rates[0], rates[239]);
        }
    }
}
