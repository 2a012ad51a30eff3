//! A pair that is slow alone, too: is it the sender, the receiver, or the way between them? The swap rule: if the sender
//! does well with others and the receiver does well with others, it is neither (nccl-tests #325).

use super::check::{Check, SUSPECT};
use super::{Planner, words};
use crate::sample::Pattern;
use crate::sweep::Item;

/// Fewest other pairs that tell how a rank does.
const OTHERS: usize = 2;
/// Most that is said after a pass.
const MOST: usize = 6;

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

impl Planner {
    /// Say what the slow ones of a check tell.
    pub(super) fn say_slow(&mut self, check: &Check) {
        let mut found: Vec<(Cause, Item, f64)> = Vec::new();
        for &item in &check.slow {
            let Some(told) = self.causes(check, item) else { continue };
            for (cause, share) in told {
                if !self.said.contains(&cause) && !found.iter().any(|(other, ..)| *other == cause) {
                    found.push((cause, item, share));
                }
            }
        }
        for &(cause, item, share) in found.iter().take(MOST) {
            let text = words::slow(self, cause, item.size, share);
            self.words.push(text);
        }
        if let Some(more) = found.len().checked_sub(MOST).filter(|&more| more > 0) {
            self.words.push(format!("{more} more ranks or pairs are slow alone, too"));
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
            let median = f64::from(self.ledger.entry(Item { target, size }).median);
            (median > 0.0).then(|| usual / median)
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
