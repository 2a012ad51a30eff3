use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Carried, Carry, Work};
use crate::transport::{Collector, End, Report};

/// Puts together what the ranks of a work tell, and knows when one has been silent for too long.
#[derive(Debug)]
pub struct Gathering {
    order: Carry,
    waiting: BTreeSet<usize>,
    overdue: Instant,
    merged: Carried,
}

impl Gathering {
    /// Expect the ranks of this work.
    pub fn new(work: &Work, order: Carry) -> Self {
        // Every run has its time, and time between two for clearing and comparing, which cannot take longer.
        let longest = order.timeout * 2.0 * f64::from(order.warmup.saturating_add(order.runs).saturating_add(1));
        Self {
            order,
            waiting: work.ranks().collect(),
            overdue: Instant::now() + Duration::try_from_secs_f64(longest).unwrap_or(Duration::MAX / 4) + Collector::GRACE,
            merged: Carried {
                id: order.id,
                runs: vec![Vec::new(); order.runs as usize],
                verified: 0,
                wrong: None,
                ways: Vec::new(),
                end: End::Complete,
            },
        }
    }

    /// Rank 0 was in the work itself until now: what others have said meanwhile is still to be read.
    pub fn listened_again(&mut self) {
        self.overdue = self.overdue.max(Instant::now() + Collector::GRACE);
    }

    /// Take one rank's word; the whole when all are there.
    pub fn take(&mut self, rank: usize, carried: Carried) -> Option<Report> {
        if carried.id != self.order.id || !self.waiting.remove(&rank) {
            return None;
        }
        for (all, own) in self.merged.runs.iter_mut().zip(&carried.runs) {
            all.extend_from_slice(own);
        }
        let whole = carried.runs.len();
        self.merged.verified += carried.verified;
        self.merged.ways.extend(carried.ways);
        if carried.end != End::Complete {
            // The others wait for a partner that has given up no longer than their own time.
            let soon = Instant::now() + Duration::from_secs_f64(self.order.timeout) + Collector::GRACE;
            self.overdue = self.overdue.min(soon);
            // Only runs that all ranks have completed are whole.
            self.merged.runs.truncate(whole);
        }
        let earlier = carried.wrong.is_some_and(|flow| self.merged.wrong.is_none_or(|known| flow < known));
        if worse(&carried.end) > worse(&self.merged.end) || earlier {
            self.merged.end = carried.end;
            self.merged.wrong = carried.wrong;
        }
        self.waiting.is_empty().then(|| Report::Carried(self.merged.clone()))
    }

    /// Ranks that are overdue, each as lost, and what there is; empty while there is time.
    pub fn overdue(&mut self) -> Vec<Report> {
        if self.waiting.is_empty() || Instant::now() < self.overdue {
            return Vec::new();
        }
        let silent: Vec<String> = self.waiting.iter().map(ToString::to_string).collect();
        let silent = format!("no answer from rank {} while a plan was run", silent.join(" and "));
        let mut reports: Vec<Report> = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|rank| Report::Lost { rank, reason: "no answer while a plan was run".to_owned() })
            .collect();
        self.merged.end = match std::mem::replace(&mut self.merged.end, End::Complete) {
            End::Timeout(why) => End::Timeout(format!("{silent}; {why}")),
            End::Complete | End::Waived(_) => End::Timeout(silent),
            corrupt @ End::Corrupt(_) => corrupt,
        };
        self.merged.runs.clear();
        reports.push(Report::Carried(self.merged.clone()));
        reports
    }

    /// True when nothing is awaited any more.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Which of two ends to tell.
const fn worse(end: &End) -> u8 {
    match end {
        End::Complete => 0,
        End::Timeout(_) => 1,
        End::Waived(_) => 2,
        End::Corrupt(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::work::{Part, Role, Share};

    fn share() -> Share {
        let role = Role::Send;
        Share { flow: 0, stage: 0, role, peer: 1, tag: 0, after: Vec::new(), tell: Vec::new(), arena: 0, messages: Vec::new() }
    }

    fn gathering() -> Gathering {
        let part = |rank| Part { rank, shares: vec![share()], ..Part::default() };
        let work = Work { parts: vec![part(0), part(1), Part::default()], ..Work::default() };
        Gathering::new(&work, Carry { id: 3, warmup: 1, runs: 2, timeout: 5.0 })
    }

    fn told(runs: usize, end: End) -> Carried {
        Carried { id: 3, runs: vec![vec![(0, 1.0)]; runs], verified: 10, wrong: None, ways: Vec::new(), end }
    }

    #[test]
    fn ranks_make_one_report_of_the_runs_that_all_have() {
        let mut gathering = gathering();
        assert_eq!(gathering.take(2, told(2, End::Complete)), None, "has no share");
        assert_eq!(gathering.take(0, told(2, End::Complete)), None);
        let Some(Report::Carried(whole)) = gathering.take(1, told(1, End::Timeout("late".to_owned()))) else { panic!() };
        assert_eq!((whole.runs.len(), whole.verified), (1, 20));
        assert!(matches!(whole.end, End::Timeout(_)) && gathering.is_over());
    }

    #[test]
    fn a_silent_rank_is_lost_and_named() {
        let mut gathering = gathering();
        gathering.take(0, told(0, End::Timeout("rank 0 waits".to_owned())));
        assert!(gathering.overdue().is_empty());
        gathering.overdue = Instant::now();
        let reports = gathering.overdue();
        let [Report::Lost { rank: 1, .. }, Report::Carried(Carried { end: End::Timeout(why), .. })] = &reports[..] else {
            panic!("{reports:?}")
        };
        assert!(why.contains("rank 1") && why.contains("rank 0 waits"), "{why}");
    }
}
