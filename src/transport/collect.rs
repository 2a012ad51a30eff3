use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{End, Order, ProbeReport, Report};

/// Puts the reports of each probe's ranks together, and knows when a rank has been silent for too long.
#[derive(Debug, Default)]
pub struct Collector {
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    order: Order,
    waiting: BTreeSet<usize>,
    /// when ranks that have not reported by themselves count as lost
    overdue: Instant,
    merged: ProbeReport,
}

impl Pending {
    /// One rank's end beside the others': the graver one, and of a hang also what another rank says was the cause.
    fn merge(&mut self, end: End, echo: bool) {
        let (before, known_echo) = (std::mem::replace(&mut self.merged.end, End::Complete), self.merged.echo);
        (self.merged.end, self.merged.echo) = match (before, end) {
            (End::Waived(_), End::Waived(why)) if known_echo && !echo => (End::Waived(why), false),
            (End::Timeout(hang), End::Waived(why)) => (End::Timeout(if echo { hang } else { both(hang, &why) }), false),
            (End::Waived(why), End::Timeout(hang)) => (End::Timeout(if known_echo { hang } else { both(hang, &why) }), false),
            (before, end) if worse(&end) > worse(&before) => (end, echo),
            (before, _) => (before, known_echo),
        };
    }
}

fn both(hang: String, why: &str) -> String {
    if hang.contains(why) { hang } else { format!("{hang}; {why}") }
}

impl Collector {
    /// Time beyond a probe's own in which its ranks must report.
    pub const GRACE: Duration = Duration::from_secs(2);

    /// Expect the reports of this order's ranks.
    pub fn begin(&mut self, order: &Order) {
        self.pending.push(Pending {
            waiting: order.probe.ranks().into_iter().collect(),
            overdue: Instant::now() + Duration::from_secs_f64(order.timeout) + Self::GRACE,
            merged: ProbeReport::nothing(order.probe.id, End::Complete),
            order: order.clone(),
        });
    }

    /// True while a probe's reports are missing.
    pub fn busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Rank 0 was in a probe of its own until now: what others have said meanwhile is still to be read.
    pub fn listened_again(&mut self) {
        let least = Instant::now() + Self::GRACE;
        for pending in &mut self.pending {
            pending.overdue = pending.overdue.max(least);
        }
    }

    /// Take one rank's report; reports of other, abandoned probes are ignored. The whole when all are there.
    pub fn report(&mut self, rank: usize, report: ProbeReport) -> Option<Report> {
        let at = self.pending.iter().position(|pending| pending.order.probe.id == report.probe)?;
        let pending = &mut self.pending[at];
        if !pending.waiting.remove(&rank) {
            return None;
        }
        pending.merged.repeats.extend(report.repeats);
        pending.merged.root_seconds.extend(report.root_seconds);
        pending.merged.ways.extend(report.ways);
        pending.merged.parted |= report.parted;
        pending.merge(report.end, report.echo);
        if !pending.waiting.is_empty() {
            return None;
        }
        Some(Report::Probe(self.pending.swap_remove(at).merged))
    }

    /// Ranks that are overdue, each as lost, and the probes they were in as timed out; empty while there is time.
    pub fn overdue(&mut self) -> Vec<Report> {
        let now = Instant::now();
        let mut reports = Vec::new();
        for mut pending in self.pending.extract_if(.., |pending| now >= pending.overdue) {
            let silent: Vec<String> = pending.waiting.iter().map(ToString::to_string).collect();
            let before = std::mem::replace(&mut pending.merged.end, End::Complete);
            let told = format!("no answer from rank {} within {} s", silent.join(" and "), pending.order.timeout);
            pending.merged.end = match before {
                End::Waived(why) if !pending.merged.echo => End::Timeout(format!("{told}; {why}")),
                _ => End::Timeout(told),
            };
            // Whatever the others met in was with this rank.
            pending.merged.parted = true;
            let description = pending.order.probe.describe();
            reports.extend(pending.waiting.iter().map(|&rank| Report::Lost { rank, reason: format!("no answer since {description}") }));
            reports.push(Report::Probe(pending.merged));
        }
        reports
    }
}

/// Which of two ends to tell: the payload first, then the hang, then the excuse.
const fn worse(end: &End) -> u8 {
    match end {
        End::Complete => 0,
        End::Waived(_) => 1,
        End::Timeout(_) => 2,
        End::Corrupt(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::sweep::{Cell, Probe};
    use crate::transport::Repeat;

    fn order(timeout: f64) -> Order {
        let probe = Probe::pair(7, Cell { pattern: Pattern::Peer, from: 0, to: 1 }, 8, 1);
        Order { probe, window: 1, warmup: 0, timeout }
    }

    fn report(probe: u64, repeats: usize, end: End) -> ProbeReport {
        let one = Repeat { flow: 0, repeat: 0, warmup: false, messages: 1, seconds: 1.0, ack_seconds: 0.0 };
        ProbeReport { repeats: vec![one; repeats], ..ProbeReport::nothing(probe, end) }
    }

    #[test]
    fn both_sides_make_one_report_and_strangers_are_ignored() {
        let mut collector = Collector::default();
        collector.begin(&order(1.0));
        assert_eq!(collector.report(1, report(6, 0, End::Complete)), None);
        assert_eq!(collector.report(2, report(7, 0, End::Complete)), None);
        assert_eq!(collector.report(1, report(7, 0, End::Corrupt("x".into()))), None);
        let whole = collector.report(0, report(7, 1, End::Complete));
        assert_eq!(whole, Some(Report::Probe(report(7, 1, End::Corrupt("x".into())))));
        assert!(!collector.busy());
    }

    #[test]
    fn probes_at_the_same_time_are_told_each_by_itself() {
        let mut collector = Collector::default();
        let mut other = order(1.0);
        other.probe = Probe::pair(8, Cell { pattern: Pattern::Duplex, from: 3, to: 2 }, 8, 1);
        collector.begin(&order(1.0));
        collector.begin(&other);
        assert_eq!(collector.report(0, report(7, 1, End::Complete)), None);
        assert_eq!(collector.report(2, report(8, 1, End::Complete)), None);
        // The first one hangs; the other one has time, and its second rank reports at last.
        collector.pending[0].overdue = Instant::now();
        let reports = collector.overdue();
        assert!(matches!(&reports[..], [Report::Lost { rank: 1, .. }, Report::Probe(ProbeReport { probe: 7, .. })]), "{reports:?}");
        let whole = collector.report(3, report(8, 2, End::Complete));
        assert_eq!(whole, Some(Report::Probe(report(8, 3, End::Complete))));
        assert!(!collector.busy());
    }

    #[test]
    fn what_was_said_while_rank_0_was_busy_is_heard() {
        let mut collector = Collector::default();
        collector.begin(&order(1.0));
        collector.pending[0].overdue = Instant::now();
        collector.listened_again();
        assert!(collector.overdue().is_empty());
        assert_eq!(collector.report(0, report(7, 1, End::Complete)), None);
        assert!(collector.report(1, report(7, 0, End::Complete)).is_some());
    }

    #[test]
    fn the_cause_is_told_whoever_tells_it_first() {
        let (waived, hang) = (|why: &str| End::Waived(why.to_owned()), || End::Timeout("rank 0 waits".to_owned()));
        let merged = |ends: [(End, bool); 2]| {
            let mut collector = Collector::default();
            collector.begin(&order(1.0));
            let mut whole = None;
            for (rank, (end, echo)) in ends.into_iter().enumerate() {
                whole = collector.report(rank, ProbeReport { echo, ..report(7, 0, end) });
            }
            let Some(Report::Probe(report)) = whole else { panic!("{whole:?}") };
            report.end
        };
        let both = [(waived("rank 0: rank 1 gave up"), true), (waived("rank 1: full"), false)];
        let turned = [both[1].clone(), both[0].clone()];
        assert_eq!((merged(both), merged(turned)), (waived("rank 1: full"), waived("rank 1: full")));
        let both = [(hang(), false), (waived("rank 1: full"), false)];
        let turned = [both[1].clone(), both[0].clone()];
        let told = End::Timeout("rank 0 waits; rank 1: full".to_owned());
        assert_eq!((merged(both), merged(turned)), (told.clone(), told));
        let echo = [(waived("rank 0: rank 1 gave up"), true), (hang(), false)];
        assert_eq!(merged(echo), hang());
    }

    #[test]
    fn a_silent_rank_is_lost_and_its_probe_timed_out() {
        let mut collector = Collector::default();
        collector.begin(&order(1.0));
        assert!(collector.overdue().is_empty());
        collector.pending[0].overdue = Instant::now();
        collector.report(0, report(7, 0, End::Timeout("mine".into())));
        let reports = collector.overdue();
        assert!(matches!(&reports[0], Report::Lost { rank: 1, .. }), "{reports:?}");
        assert!(matches!(&reports[1], Report::Probe(ProbeReport { end: End::Timeout(_), .. })), "{reports:?}");
    }
}
