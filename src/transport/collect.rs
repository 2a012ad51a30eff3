use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{End, Order, ProbeReport, Report};

/// Puts the reports of a probe's ranks together, and knows when a rank has been silent for too long.
#[derive(Debug, Default)]
pub struct Collector {
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    order: Order,
    waiting: BTreeSet<usize>,
    /// when ranks that have not reported by themselves count as lost
    overdue: Instant,
    merged: ProbeReport,
}

impl Collector {
    /// Time beyond a probe's own in which its ranks must report.
    pub const GRACE: Duration = Duration::from_secs(2);

    /// Expect the reports of this order's ranks.
    pub fn begin(&mut self, order: &Order) {
        self.pending = Some(Pending {
            waiting: order.probe.ranks().into_iter().collect(),
            overdue: Instant::now() + Duration::from_secs_f64(order.timeout) + Self::GRACE,
            merged: ProbeReport { probe: order.probe.id, repeats: Vec::new(), end: End::Complete },
            order: order.clone(),
        });
    }

    /// True while a probe's reports are missing.
    pub fn busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Take one rank's report; reports of other, abandoned probes are ignored. The whole when all are there.
    pub fn report(&mut self, rank: usize, report: ProbeReport) -> Option<Report> {
        let pending = self.pending.as_mut().filter(|pending| pending.order.probe.id == report.probe)?;
        if !pending.waiting.remove(&rank) {
            return None;
        }
        if rank == pending.order.probe.from {
            pending.merged.repeats = report.repeats;
        }
        if worse(&report.end) > worse(&pending.merged.end) {
            pending.merged.end = report.end;
        }
        if !pending.waiting.is_empty() {
            return None;
        }
        self.pending.take().map(|pending| Report::Probe(pending.merged))
    }

    /// Ranks that are overdue, each as lost, and the probe they were in as timed out; empty while there is time.
    pub fn overdue(&mut self) -> Vec<Report> {
        if self.pending.as_ref().is_none_or(|pending| Instant::now() < pending.overdue) {
            return Vec::new();
        }
        let Some(mut pending) = self.pending.take() else { return Vec::new() };
        let silent: Vec<String> = pending.waiting.iter().map(ToString::to_string).collect();
        pending.merged.end = End::Timeout(format!("no answer from rank {} within {} s", silent.join(" and "), pending.order.timeout));
        let description = pending.order.probe.describe();
        let lost = pending.waiting.iter().map(|&rank| Report::Lost { rank, reason: format!("no answer since {description}") });
        lost.chain([Report::Probe(pending.merged.clone())]).collect()
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
    use crate::sweep::Probe;
    use crate::transport::Repeat;

    fn order(timeout: f64) -> Order {
        let probe = Probe { id: 7, pattern: Pattern::Peer, from: 0, to: 1, bytes: 8, first_repeat: 0, repeats: 1, take: 0 };
        Order { probe, window: 1, warmup: 0, timeout }
    }

    fn report(probe: u64, repeats: usize, end: End) -> ProbeReport {
        let one = Repeat { messages: 1, seconds: 1.0, ack_seconds: 0.0 };
        ProbeReport { probe, repeats: vec![one; repeats], end }
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
    fn a_silent_rank_is_lost_and_its_probe_timed_out() {
        let mut collector = Collector::default();
        collector.begin(&order(1.0));
        assert!(collector.overdue().is_empty());
        collector.pending.as_mut().unwrap().overdue = Instant::now();
        collector.report(0, report(7, 0, End::Timeout("mine".into())));
        let reports = collector.overdue();
        assert!(matches!(&reports[0], Report::Lost { rank: 1, .. }), "{reports:?}");
        assert!(matches!(&reports[1], Report::Probe(ProbeReport { end: End::Timeout(_), .. })), "{reports:?}");
    }
}
