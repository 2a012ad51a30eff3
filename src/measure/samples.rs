use std::collections::{BTreeMap, HashMap};

use crate::sample::{Pattern, Sample, Status};
use crate::sweep::{Group, Probe, Target};
use crate::topology::Topology;
use crate::transport::{End, ProbeReport, Repeat};
use crate::units::plain;

/// A state for every repeat of every transfer of a probe: those that were timed, and for the rest how the probe ended.
/// Warm-ups, where they were timed, come first.
pub(super) fn of_report(probe: &Probe, topology: &Topology, report: &ProbeReport) -> Vec<Sample> {
    let (rest, reason) = match &report.end {
        End::Complete => (Status::Waived, Some("the probe ended before this repeat".to_owned())),
        End::Timeout(reason) => (Status::Timeout, Some(reason.clone())),
        End::Waived(reason) => (Status::Waived, Some(reason.clone())),
        End::Corrupt(reason) => (Status::Corrupt, Some(reason.clone())),
    };
    let corrupt = matches!(report.end, End::Corrupt(_));
    let mut samples = Vec::with_capacity(report.repeats.len());
    // By transfer, once: a relay of a thousand ranks has a thousand of them.
    let mut repeats: Vec<&Repeat> = report.repeats.iter().collect();
    repeats.sort_by_key(|repeat| (repeat.flow, !repeat.warmup, repeat.repeat));
    let senders: HashMap<usize, usize> = probe.flows.iter().map(|&(from, to)| (to, from)).collect();
    for (flow, (from, to)) in (0_u32..).zip(probe.flows()) {
        let own = &repeats[repeats.partition_point(|repeat| repeat.flow < flow)..repeats.partition_point(|repeat| repeat.flow <= flow)];
        let (warmups, own) = own.split_at(own.partition_point(|repeat| repeat.warmup));
        let via = report.ways.iter().find(|way| way.flow == flow).map(|way| plain(&way.via));
        let blank = Sample { via, ..labelled(probe, topology, &senders, from, to) };
        let timed = |repeat: &Repeat| Sample {
            messages: repeat.messages,
            seconds: Some(repeat.seconds),
            ack_seconds: Some(repeat.ack_seconds),
            status: Status::Ok,
            ..blank.clone()
        };
        samples.extend(warmups.iter().map(|repeat| Sample { repeat: repeat.repeat, warmup: true, ..timed(repeat) }));
        for index in 0..probe.repeats {
            let found = own.binary_search_by_key(&index, |repeat| repeat.repeat).ok().map(|at| timed(own[at]));
            let whole = found.is_some() && !corrupt;
            samples.push(Sample {
                repeat: probe.first_repeat + index,
                root_seconds: report.root_seconds.get(index as usize).copied(),
                status: if whole { Status::Ok } else { rest },
                reason: if whole { None } else { reason.clone() },
                ..found.unwrap_or_else(|| blank.clone())
            });
        }
    }
    samples
}

/// Good repeats as times that are compared and summarised, seconds a message: of a pair one series a direction; of a group one,
/// each until the last of its transfers is through, of fans as the root saw it.
pub(super) fn series(probe: &Probe, samples: &[Sample]) -> Vec<Vec<f64>> {
    let of = |from: usize, to: usize| {
        let own = samples.iter().filter(move |sample| (sample.from, sample.to) == (from, to));
        own.filter_map(Sample::seconds_per_message).collect()
    };
    match &probe.target {
        Target::Pair(_) => probe.flows().into_iter().map(|(from, to)| of(from, to)).collect(),
        Target::Group(_) => {
            let mut repeats: BTreeMap<u32, Option<f64>> = BTreeMap::new();
            for sample in samples.iter().filter(|sample| !sample.warmup) {
                let root = sample.root_seconds.map(|seconds| seconds / sample.messages.max(1) as f64);
                let own = sample.seconds_per_message().map(|seconds| root.unwrap_or(seconds));
                let longer = |all: &mut Option<f64>| *all = all.zip(own).map(|(all, own)| all.max(own));
                repeats.entry(sample.repeat).and_modify(longer).or_insert(own);
            }
            vec![repeats.into_values().flatten().collect()]
        }
    }
}

/// A sample of a probe's transfer with all that is known beforehand. `senders` tells from whom each rank receives.
fn labelled(probe: &Probe, topology: &Topology, senders: &HashMap<usize, usize>, from: usize, to: usize) -> Sample {
    let path = topology.path(from, to);
    let mut sample = Sample::blank(probe.target.pattern(), from, to, probe.bytes, path);
    sample.take = probe.take;
    sample.isolated = probe.isolated;
    if let Target::Group(Group { pattern, root, peers, shift, set }) = &probe.target {
        (sample.root, sample.shift, sample.set) = (*root, *shift, *set);
        sample.width = root.map(|_| peers.len());
        sample.peers.clone_from(peers);
        if *pattern == Pattern::Relay {
            sample.receive_path = senders.get(&from).map(|&source| topology.path(source, from));
            sample.send_path = Some(path);
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Cell;

    fn statuses(done: u32, end: End) -> Vec<Status> {
        let probe = Probe { first_repeat: 2, ..Probe::pair(0, Cell { pattern: Pattern::Peer, from: 0, to: 1 }, 8, 3) };
        let one = |repeat| Repeat { flow: 0, repeat, warmup: false, messages: 1, seconds: 1e-3, ack_seconds: 0.0 };
        let report = ProbeReport { repeats: (0..done).map(one).collect(), ..ProbeReport::nothing(0, end) };
        let samples = of_report(&probe, &Topology::default(), &report);
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
