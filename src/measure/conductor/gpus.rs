//! GPUs of a sweep: who is bound to which, and how they are doing between probes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Conductor;
use crate::sample::Memory;
use crate::session::Event;
use crate::sweep::{Probe, SweepSettings};
use crate::topology::hardware::Device;
use crate::topology::{Bound, GpuRange, PathLabel, label};
use crate::transport::Absent;
use crate::units::{format_ranks, plain};

/// A GPU is looked at so often at most. Its library takes a millisecond or two, and nothing is measured meanwhile.
const BETWEEN: Duration = Duration::from_secs(1);

/// What is kept of GPUs while a sweep runs.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// as was told last
    bound: Vec<Bound>,
    software: BTreeMap<String, String>,
    /// ranks that take no part, as was told last
    absent: BTreeMap<usize, String>,
    /// by rank
    ranges: BTreeMap<usize, GpuRange>,
    /// as they were told last
    told: BTreeMap<usize, GpuRange>,
    /// the last look at each
    looked: BTreeMap<usize, Instant>,
    /// seconds that looking took
    spent: f64,
}

impl Conductor<'_> {
    /// Bind the ranks as the settings say, and tell whom to what where that is new.
    pub(super) fn bind(&mut self, settings: &SweepSettings) -> Result<(), String> {
        let decided = self.engine.bind(settings.memory, &settings.gpus).map_err(|error| error.to_string())?;
        self.absent = decided.absent.into_iter().map(|absent| (absent.rank, absent.reason)).collect();
        if (&decided.bound, &decided.software) != (&self.gpus.bound, &self.gpus.software) {
            (self.gpus.bound, self.gpus.software) = (decided.bound.clone(), decided.software.clone());
            self.tell(Event::Bound { ranks: decided.bound, software: decided.software });
            for text in decided.told {
                self.notice(text);
            }
        }
        Ok(())
    }

    /// Keep who takes no part, and tell it where that is new: once for all with the same reason.
    pub(super) fn note_absent(&mut self, absent: Vec<Absent>) {
        self.absent = absent.into_iter().map(|absent| (absent.rank, plain(&absent.reason))).collect();
        if self.absent == self.gpus.absent {
            return;
        }
        self.gpus.absent.clone_from(&self.absent);
        let mut reasons: Vec<(&str, Vec<usize>)> = Vec::new();
        for (&rank, reason) in &self.absent {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, ranks)) => ranks.push(rank),
                None => reasons.push((reason, vec![rank])),
            }
        }
        let host = |rank: usize| self.engine.topology().ranks.get(rank).map_or("?", |placement| placement.host.as_str());
        let told: Vec<String> = reasons
            .into_iter()
            .map(|(reason, ranks)| match ranks[..] {
                [rank] => format!("rank {rank} on {} takes no part, and what needs it is waived: {reason}", host(rank)),
                _ => format!("ranks {} take no part, and what needs them is waived: {reason}", format_ranks(&ranks)),
            })
            .collect();
        for text in told {
            self.notice(text);
        }
    }

    /// Why a rank takes no part, if it does not.
    pub(super) fn absence(&self, rank: usize) -> Option<String> {
        self.absent.get(&rank).map(|why| format!("rank {rank} takes no part: {why}"))
    }

    /// A sweep begins: what was seen before is of another.
    pub(super) fn forget_gpus(&mut self) {
        self.gpus.ranges.clear();
        self.gpus.told.clear();
        self.gpus.looked.clear();
        self.gpus.spent = 0.0;
    }

    /// Look at the GPUs of a round that has just ended, while their clocks and links are still up: nothing is timed now.
    pub(super) fn look_at_gpus(&mut self, memory: Memory, round: &[Probe]) {
        if memory.is_host() {
            return;
        }
        let begin = Instant::now();
        // Each with whether its PCIe link was under load: the first such look does not wait.
        let mut due: BTreeMap<usize, bool> = BTreeMap::new();
        for (probe, rank) in round.iter().flat_map(|probe| probe.ranks().into_iter().map(move |rank| (probe, rank))) {
            let waited = self.gpus.looked.get(&rank).is_none_or(|last| begin.duration_since(*last) >= BETWEEN);
            let unknown = self.gpus.ranges.get(&rank).is_some_and(|range| range.pcie.is_none());
            if self.lost.contains_key(&rank) || !(waited || unknown) {
                continue;
            }
            let loaded = self.over_pcie(probe, rank);
            if waited || loaded {
                *due.entry(rank).or_default() |= loaded;
            }
        }
        if due.is_empty() {
            return;
        }
        self.gpus.looked.extend(due.keys().map(|&rank| (rank, begin)));
        let states = self.engine.gpu_states(&due.keys().copied().collect::<Vec<_>>());
        self.gpus.spent += begin.elapsed().as_secs_f64();
        let mut news = Vec::new();
        for (rank, state) in states {
            let loaded = due.get(&rank).copied().unwrap_or(false);
            let range = self.gpus.ranges.entry(rank).or_insert_with(|| GpuRange::of(rank));
            range.add(&state, loaded);
            if self.gpus.told.get(&rank).is_none_or(|before| range.is_news(before)) {
                news.push(range.clone());
            }
        }
        self.tell_gpus(news);
    }

    /// What a sweep has seen of its GPUs in the end, and what looking cost.
    pub(super) fn sum_up_gpus(&mut self) {
        let all = self.gpus.ranges.values().filter(|range| self.gpus.told.get(&range.rank) != Some(range));
        let news: Vec<GpuRange> = all.cloned().collect();
        let looks: u64 = self.gpus.ranges.values().map(|range| range.looks).sum();
        self.tell_gpus(news);
        if looks > 0 {
            let spent = crate::units::format_seconds(self.gpus.spent);
            self.notice(format!("looks at GPUs between probes, for clocks, heat and links: {looks}, {spent} in all"));
        }
    }

    fn tell_gpus(&mut self, ranges: Vec<GpuRange>) {
        if ranges.is_empty() {
            return;
        }
        self.gpus.told.extend(ranges.iter().map(|range| (range.rank, range.clone())));
        self.tell(Event::GpusSeen { ranges });
    }

    /// True if a rank's part in a probe goes over its GPU's PCIe link: not inside the GPU, and not over links of its own.
    fn over_pcie(&self, probe: &Probe, rank: usize) -> bool {
        let topology = self.engine.topology();
        let seat = |rank: usize| topology.ranks.get(rank).map(|place| (place.host.as_str(), place.gpu));
        let over = |&(from, to): &(usize, usize)| match (seat(from), seat(to)) {
            (Some((a, Some(own))), Some((b, Some(other)))) if a == b => {
                let way = topology.hardware_of(a).and_then(|hardware| label(hardware, Device::Gpu(own), Device::Gpu(other)));
                !matches!(way, Some(PathLabel::Nvl(_) | PathLabel::Local))
            }
            _ => true,
        };
        probe.flows().iter().filter(|(from, to)| *from == rank || *to == rank).any(over)
    }
}
