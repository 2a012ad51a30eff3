use std::collections::HashMap;

use crate::sweep::Probe;

/// One of a probe's transfers, as both its ends know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// number within the probe, from 0
    pub number: usize,
    /// sending rank
    pub from: usize,
    /// receiving rank; `from` for a copy inside one rank's memory
    pub to: usize,
    /// receive arena of `to` that its messages land in: its number among the transfers into that rank
    pub lane: usize,
    /// its number among the transfers from the same rank to the same rank
    pub twin: usize,
}

impl Flow {
    /// Transfers from one rank to one other that an engine must tell apart; a probe with more is waived.
    pub const MOST_TWINS: usize = 31;

    /// All transfers of a probe, in its order.
    pub fn all(probe: &Probe) -> Vec<Self> {
        let (mut into, mut between) = (HashMap::new(), HashMap::new());
        let next = |count: &mut usize| std::mem::replace(count, *count + 1);
        let flow = |(number, (from, to)): (usize, (usize, usize))| Self {
            number,
            from,
            to,
            lane: next(into.entry(to).or_insert(0)),
            twin: next(between.entry((from, to)).or_insert(0)),
        };
        probe.flows().into_iter().enumerate().map(flow).collect()
    }

    /// True for a copy inside one rank's memory.
    pub const fn is_local(&self) -> bool {
        self.from == self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::{Cell, Group, Target};

    #[test]
    fn transfers_into_one_rank_land_apart_and_twins_are_told_apart() {
        let mut probe = Probe::pair(0, Cell { pattern: Pattern::Duplex, from: 1, to: 2 }, 8, 1);
        let told = |probe: &Probe| Flow::all(probe).iter().map(|flow| (flow.from, flow.to, flow.lane, flow.twin)).collect::<Vec<_>>();
        assert_eq!(told(&probe), [(1, 2, 0, 0), (2, 1, 0, 0)]);
        probe.target = Target::Group(Group::custom(1));
        probe.flows = vec![(1, 0), (2, 0), (1, 0), (0, 0), (0, 1)];
        assert_eq!(told(&probe), [(1, 0, 0, 0), (2, 0, 1, 0), (1, 0, 2, 1), (0, 0, 3, 0), (0, 1, 0, 0)]);
    }
}
