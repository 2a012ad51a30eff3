//! What bounds a fan, as far as its own number and those of its pairs can tell.
//!
//! Three explanations are held against the aggregate A of k peers whose pairs give P alone: every peer moves at its own
//! pace, so that the slowest ends the fan (A = k · min P); the root serves one peer after another (A = k / Σ 1/P, effective
//! concurrency c = 1); or something between is shared. Which of them a fan's numbers fit is all that is said.

/// Numbers within this share of each other count as the same.
const SAME: f64 = 0.10;
/// Pairs within this factor of each other are alike: a root that serves in turn and one with a limit then give the same.
const ALIKE: f64 = 1.15;

/// What bounds a fan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// pairs of these many peers are not measured
    Unknown(usize),
    /// one peer: the pair itself, which gives so much alone
    Pair(f64),
    /// as fast as its slowest peer allows: that rank, its pair's bandwidth
    Slowest(usize, f64),
    /// one peer after another
    InTurn,
    /// one peer after another, or a limit that all share: the pairs are too alike to tell
    InTurnOrLimit,
    /// slower than one peer after another
    Collapse,
    /// faster than in turn, slower than the slowest peer allows
    Shared,
    /// faster than the pairs allow: one of the numbers is wrong, or they ran on different days
    Faster,
}

/// A fan against its pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Against {
    pub why: Why,
    /// what the pairs give together, bytes per second; NaN if one is not known
    pub sum: f64,
    /// the slowest pair: peer and bandwidth
    pub slowest: Option<(usize, f64)>,
    pub fastest: Option<(usize, f64)>,
    /// effective concurrency: time of all peers one after another over the root's time; NaN if not known
    pub concurrency: f64,
}

impl Against {
    /// `aggregate` in bytes per second; `pairs` are the peers with the bandwidth of their pairs, NaN if not known.
    pub fn of(aggregate: f64, pairs: &[(usize, f64)]) -> Self {
        let known = || pairs.iter().copied().filter(|(_, rate)| rate.is_finite());
        let slowest = known().min_by(|a, b| a.1.total_cmp(&b.1));
        let fastest = known().max_by(|a, b| a.1.total_cmp(&b.1));
        let missing = pairs.len() - known().count();
        let all = if missing > 0 { f64::NAN } else { 1.0 };
        let peers = pairs.len() as f64;
        let in_turn = all * peers / known().map(|(_, rate)| rate.recip()).sum::<f64>();
        let concurrency = aggregate / in_turn;
        let why = match (slowest, fastest) {
            (Some(slowest), Some(fastest)) if missing == 0 => judge(aggregate, pairs.len(), slowest, fastest.1, concurrency),
            _ => Why::Unknown(missing),
        };
        Self { why, sum: all * known().map(|(_, rate)| rate).sum::<f64>(), slowest, fastest, concurrency }
    }
}

fn judge(aggregate: f64, peers: usize, slowest: (usize, f64), fastest: f64, concurrency: f64) -> Why {
    let allowed = peers as f64 * slowest.1;
    let off = |ratio: f64| ratio.ln().abs();
    let same = SAME.ln_1p();
    if peers == 1 {
        return Why::Pair(slowest.1);
    }
    let (turn, slow) = (off(concurrency), off(aggregate / allowed));
    // Where one slow peer takes nearly all of the time both fit; the nearer one is told.
    if slow <= same && slow <= turn {
        Why::Slowest(slowest.0, slowest.1)
    } else if turn <= same {
        if fastest / slowest.1 < ALIKE { Why::InTurnOrLimit } else { Why::InTurn }
    } else if concurrency < 1.0 {
        Why::Collapse
    } else if aggregate < allowed {
        Why::Shared
    } else {
        Why::Faster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(aggregate: f64, pairs: &[f64]) -> (Why, f64) {
        let pairs: Vec<(usize, f64)> = pairs.iter().copied().enumerate().map(|(at, rate)| (at + 1, rate)).collect();
        let against = Against::of(aggregate, &pairs);
        (against.why, against.concurrency)
    }

    #[test]
    fn the_published_cases_are_told_as_far_as_their_numbers_go() {
        // 0 <- [1, 2]: one sender at 6.0 of 53.9.
        assert_eq!(why(12.6, &[6.0, 53.9]).0, Why::Slowest(1, 6.0));
        // 1 <- [2, 3] and 3 <- [4..7]: all senders alike.
        let (reason, c) = why(55.2, &[53.7, 53.5]);
        assert!(reason == Why::InTurnOrLimit && (c - 1.03).abs() < 0.01, "{reason:?} {c}");
        let (reason, c) = why(27.9, &[27.4, 27.4, 27.3, 27.4]);
        assert!(reason == Why::InTurnOrLimit && (c - 1.02).abs() < 0.01, "{reason:?} {c}");
    }

    #[test]
    fn every_explanation_can_win() {
        // Unlike peers, and exactly the harmonic mean: in turn.
        assert_eq!(why(2.0 / (1.0 / 10.0 + 1.0 / 30.0), &[10.0, 30.0]).0, Why::InTurn);
        assert_eq!(why(10.5, &[20.0, 40.0, 40.0]).0, Why::Collapse);
        assert_eq!(why(50.0, &[25.0, 26.0, 30.0]).0, Why::Shared);
        assert_eq!(why(75.0, &[25.0, 26.0, 30.0]).0, Why::Slowest(1, 25.0));
        assert_eq!(why(100.0, &[25.0, 26.0, 30.0]).0, Why::Faster);
        assert_eq!(why(7.0, &[6.0]).0, Why::Pair(6.0));
        assert_eq!(why(7.0, &[6.0, f64::NAN]).0, Why::Unknown(1));
        assert!(why(7.0, &[6.0, f64::NAN]).1.is_nan());
    }
}
