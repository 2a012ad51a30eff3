//! A pair that is slow alone, too: is it the sender, the receiver, or the way between them? The swap rule: if the sender
//! does well with others and the receiver does well with others, it is neither (nccl-tests #325).

use super::check::{Check, SUSPECT};
use super::{Planner, words};
use crate::sample::Pattern;
use crate::sweep::Item;

/// Fewest other pairs that tell how a rank does.
const OTHERS: usize = 2;
/// Ranks or pairs that have a line each; more of a kind share one.
const FEW: usize = 3;

/// What is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Sender(usize),
    Receiver(usize),
    /// both ends do well with others
    Way(Pattern, usize, usize),
    /// there are too few others to tell
    Untold(Pattern, usize, usize),
}

/// What is slow, where it was found, and its share of the usual rate.
pub(super) type Finding = (Cause, Item, f64);

impl Cause {
    const fn kind(self) -> u8 {
        match self {
            Self::Sender(_) => 0,
            Self::Receiver(_) => 1,
            Self::Way(..) => 2,
            Self::Untold(..) => 3,
        }
    }
}

impl Planner {
    /// Say what the slow ones of a check tell.
    pub(super) fn say_slow(&mut self, check: &Check) {
        let mut found: Vec<Finding> = Vec::new();
        // Worst first, of each kind.
        for &item in &check.slow {
            for (cause, share) in self.causes(check, item).unwrap_or_default() {
                if !self.said.contains(&cause) && !found.iter().any(|(other, ..)| *other == cause) {
                    found.push((cause, item, share));
                }
            }
        }
        found.sort_by(|a, b| a.0.kind().cmp(&b.0.kind()).then(a.2.total_cmp(&b.2)));
        for kind in found.chunk_by(|a, b| a.0.kind() == b.0.kind()) {
            let texts =
                if kind.len() > FEW { vec![words::slow_many(self, kind)] } else { kind.iter().map(|one| words::slow(self, one)).collect() };
            self.words.extend(texts);
        }
        self.said.extend(found.into_iter().map(|(cause, ..)| cause));
    }

    /// What makes a pair slow, and its share of the usual rate.
    fn causes(&self, check: &Check, item: Item) -> Option<Vec<(Cause, f64)>> {
        let (pattern, class, size) = self.class(item)?;
        let usual = check.usual.get(&(pattern, class, size))?.median;
        let (from, to) = self.work.pair(item.target as usize)?;
        let share = |from: usize, to: usize| {
            let target = self.work.number(pattern, from, to).filter(|_| self.work.path(from, to) == class)? as u32;
            self.share(Item { target, size }, usual)
        };
        let ranks = self.work.ranks();
        let sent = middle(ranks.iter().filter(|&&rank| rank != to && rank != from).filter_map(|&rank| share(from, rank)).collect());
        let received = middle(ranks.iter().filter(|&&rank| rank != to && rank != from).filter_map(|&rank| share(rank, to)).collect());
        let own = share(from, to)?;
        Some(match (sent, received) {
            (Some(sent), Some(received)) => {
                let mut causes = Vec::new();
                if sent < SUSPECT {
                    causes.push((Cause::Sender(from), sent));
                }
                if received < SUSPECT {
                    causes.push((Cause::Receiver(to), received));
                }
                if causes.is_empty() {
                    causes.push((Cause::Way(pattern, from, to), own));
                }
                causes
            }
            _ => vec![(Cause::Untold(pattern, from, to), own)],
        })
    }
}

/// The median, if there are enough.
fn middle(mut shares: Vec<f64>) -> Option<f64> {
    (shares.len() >= OTHERS).then(|| crate::fit::median(&mut shares))
}
