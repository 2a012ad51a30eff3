use crate::sample::{Sample, Status};
use crate::sweep::Probe;
use crate::topology::PathClass;
use crate::transport::{End, ProbeReport};

/// A state for every repeat of a probe: those that were timed, and for the rest how the probe ended.
pub(super) fn of_report(probe: &Probe, path: PathClass, report: &ProbeReport) -> Vec<Sample> {
    let (rest, reason) = match &report.end {
        End::Complete => (Status::Waived, Some("the probe ended before this repeat".to_owned())),
        End::Timeout(reason) => (Status::Timeout, Some(reason.clone())),
        End::Waived(reason) => (Status::Waived, Some(reason.clone())),
        End::Corrupt(reason) => (Status::Corrupt, Some(reason.clone())),
    };
    let corrupt = matches!(report.end, End::Corrupt(_));
    (0..probe.repeats)
        .map(|index| {
            let timed = report.repeats.get(index as usize);
            let status = if timed.is_some() && !corrupt { Status::Ok } else { rest };
            Sample {
                pattern: probe.pattern,
                both_ways: false,
                from: probe.from,
                to: probe.to,
                bytes: probe.bytes,
                repeat: probe.first_repeat + index,
                take: probe.take,
                messages: timed.map_or(0, |timed| timed.messages),
                seconds: timed.map(|timed| timed.seconds),
                ack_seconds: timed.map(|timed| timed.ack_seconds),
                path,
                isolated: true,
                status,
                reason: if status == Status::Ok { None } else { reason.clone() },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Pattern;
    use crate::transport::Repeat;

    fn statuses(done: usize, end: End) -> Vec<Status> {
        let probe = Probe { id: 0, pattern: Pattern::Peer, from: 0, to: 1, bytes: 8, first_repeat: 2, repeats: 3, take: 0 };
        let one = Repeat { messages: 1, seconds: 1e-3, ack_seconds: 0.0 };
        let report = ProbeReport { probe: 0, repeats: vec![one; done], end };
        let samples = of_report(&probe, PathClass::IntraNode, &report);
        assert_eq!(samples.iter().map(|sample| sample.repeat).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(samples.iter().all(|sample| (sample.status == Status::Ok) == sample.reason.is_none()));
        samples.iter().map(|sample| sample.status).collect()
    }

    #[test]
    fn every_repeat_has_a_state() {
        use Status::{Corrupt, Ok, Timeout, Waived};
        assert_eq!(statuses(3, End::Complete), [Ok, Ok, Ok]);
        assert_eq!(statuses(1, End::Timeout("slow".into())), [Ok, Timeout, Timeout]);
        assert_eq!(statuses(0, End::Waived("no".into())), [Waived, Waived, Waived]);
        assert_eq!(statuses(3, End::Corrupt("wrong".into())), [Corrupt, Corrupt, Corrupt]);
    }
}
