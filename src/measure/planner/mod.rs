//! What to measure next: passes over all targets, in rounds; verification of what ran together; when it is enough.
//!
//! The first pass gives every target one large message, so that a usable picture is there at once; then every size gets
//! as many repeats as have an interval, small sizes first, since they are cheap; then those whose interval is widest get
//! more. After each pass, what ran together is checked alone ([`check`]).

mod cause;
mod check;
mod ledger;
mod stop;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use check::{Check, Slow};
use ledger::{Ledger, missing};
use stop::{enough, more};

use crate::session::Conflict;
use crate::sweep::{Done, Enough, Item, Knowledge, Pass, Probe, Rules, SweepSettings, Target, Work, coverage};
use crate::topology::Topology;

/// Times that what was disturbed is measured again together with others before it is measured alone.
const TRUST: u32 = 6;

/// Where the sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// one message of everything
    First,
    /// a batch of each size, by number in `fill`
    Fill(usize),
    /// more for those that need it
    Refine,
    Over,
}

/// Work for one target: so many repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ask {
    item: Item,
    repeats: u32,
}

/// Probes that ran at the same time.
#[derive(Debug)]
struct Together {
    size: u8,
    /// targets, and the take that it was of each
    members: Vec<(u32, u16)>,
}

/// A sweep under way: which probes come next.
#[allow(missing_debug_implementations, reason = "holds a trait object")]
pub(super) struct Planner {
    settings: SweepSettings,
    topology: Topology,
    work: Work,
    rules: Rules,
    ledger: Ledger,
    /// size of the first pass
    first: u8,
    /// sizes in the order in which they are filled in
    fill: Vec<u8>,
    stage: Stage,
    pass: Option<Pass>,
    check: Option<Check>,
    /// measured again because a person asked; alone
    urgent: VecDeque<Item>,
    /// rounds of several probes
    history: Vec<Together>,
    /// how much of the history has been checked
    checked: usize,
    /// found disturbed: to be measured again
    redo: Vec<Item>,
    /// how often in this stage
    redone: u32,
    /// targets that were slow alone, too
    slow: HashMap<u32, Slow>,
    /// what was said about slow ranks and pairs
    said: Vec<cause::Cause>,
    words: Vec<String>,
    /// what was found to be shared, since it was asked for last
    conflicts: Vec<Conflict>,
    /// repeats of each size given out
    given: Vec<u64>,
    /// expected besides, for verification
    extra: Vec<u64>,
    told: Vec<u64>,
    /// sizes of which another number is told than the last time
    news: BTreeSet<usize>,
    next_id: u64,
    passes: u64,
}

impl Planner {
    /// A sweep over the ranks of a job; `done` is what the session has already, `next_id` above every probe's number.
    pub fn new(
        settings: &SweepSettings,
        topology: &Topology,
        knowledge: Rc<dyn Knowledge>,
        done: impl IntoIterator<Item = Done>,
        next_id: u64,
    ) -> Self {
        let work = Work::new(settings, topology);
        let sizes = settings.sizes.len();
        let first = first_size(&settings.sizes);
        let mut planner = Self {
            rules: Rules::new(knowledge, topology, settings.isolated),
            ledger: Ledger::new(work.len(), sizes),
            first,
            fill: (0..sizes as u8).collect(),
            stage: Stage::First,
            pass: None,
            check: None,
            urgent: VecDeque::new(),
            history: Vec::new(),
            checked: 0,
            redo: Vec::new(),
            redone: 0,
            slow: HashMap::new(),
            said: Vec::new(),
            words: Vec::new(),
            conflicts: Vec::new(),
            given: vec![0; sizes],
            extra: vec![0; sizes],
            told: vec![0; sizes],
            news: BTreeSet::new(),
            next_id,
            passes: 0,
            settings: settings.clone(),
            topology: topology.clone(),
            work,
        };
        for done in done {
            planner.take_up(&done);
        }
        planner.words.extend(coverage(settings, topology).into_iter().map(|some| format!("not all is measured: {some}")));
        planner.begin_pass();
        planner
    }

    /// Take in what a session has already.
    fn take_up(&mut self, done: &Done) {
        let Some(target) = self.work.find(&done.target) else { return };
        let Some(size) = self.settings.sizes.iter().position(|&bytes| bytes == done.bytes) else { return };
        let item = Item { target: target as u32, size: size as u8 };
        let (taken, holes) = missing(&done.repeats, self.settings.repeats);
        self.given[size] += done.repeats.len() as u64 * self.work.width(target) as u64;
        self.ledger.new_take(item, u16::try_from(done.take).unwrap_or(u16::MAX));
        self.ledger.add(item, &done.times);
        let whole = holes.is_empty();
        self.ledger.set_holes(item, holes);
        let width = self.ledger.width(item);
        let entry = self.ledger.entry_mut(item);
        entry.taken = taken;
        entry.settled = whole && enough(&self.settings, taken, width).is_some();
    }

    /// The number that the next probe will have.
    pub const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// A number for a probe that is not of the sweep.
    pub const fn reserve(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Targets and sizes that are not settled, and all of them.
    pub fn unsettled(&self) -> (u64, u64) {
        let mut counts = (0, 0);
        for (item, entry) in self.ledger.items() {
            counts.0 += u64::from(!entry.settled || self.ledger.has_holes(item));
            counts.1 += 1;
        }
        counts
    }

    /// What a person should know, since the last call.
    pub fn words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// Transfers that were found to slow each other, since the last call.
    pub fn conflicts(&mut self) -> Vec<Conflict> {
        std::mem::take(&mut self.conflicts)
    }

    /// Sizes of which another number of repeats is expected than was told last: bytes, repeats in all.
    pub fn foreseen(&mut self) -> Vec<(u64, u64)> {
        for size in 0..self.told.len() {
            // Verification may take more than was expected; a bar that is full too early would be a lie.
            if self.given[size] > self.told[size] {
                self.told[size] = self.given[size];
                self.news.insert(size);
            }
        }
        std::mem::take(&mut self.news).into_iter().map(|size| (self.settings.sizes[size], self.told[size])).collect()
    }

    /// Count what is expected of each size, as far as is known now.
    fn foresee(&mut self) {
        let mut expected = self.given.clone();
        for (item, _) in self.ledger.items() {
            let more = u64::from(self.wanted(item, Stage::Refine));
            expected[usize::from(item.size)] += more * self.work.width(item.target as usize) as u64;
        }
        for (size, extra) in self.extra.iter().enumerate() {
            let expected = expected[size] + extra;
            if self.told[size] != expected {
                self.told[size] = expected;
                self.news.insert(size);
            }
        }
    }

    /// Repeats that a target and size still gets in a stage.
    fn wanted(&self, item: Item, stage: Stage) -> u32 {
        let entry = self.ledger.entry(item);
        let until = if stage == Stage::First { 1 } else { self.batch(item.size) };
        let short = self.ledger.missing(item) + until.saturating_sub(entry.taken);
        if entry.settled {
            0
        } else if short > 0 || stage != Stage::Refine {
            short
        } else {
            more(&self.settings, entry.taken, self.ledger.width(item))
        }
    }

    /// Seconds that a repeat is expected to take, from what the target was seen to do.
    fn pace(&self, item: Item) -> Option<f64> {
        let (size, seconds) = self.ledger.pace(item.target)?;
        let bytes = |size: u8| self.settings.sizes[usize::from(size)] as f64;
        Some(f64::from(seconds) * (bytes(item.size) / bytes(size)).max(1.0))
    }

    /// As many of `wanted` repeats as half the probe's time holds, at least one.
    fn fitting(&self, item: Item, wanted: u32) -> u32 {
        let Some(one) = self.pace(item) else { return wanted };
        let room = self.settings.timeout / 2.0 / one.max(1e-9) - f64::from(self.untimed());
        wanted.min(room.clamp(1.0, f64::from(u32::MAX)) as u32)
    }

    /// Longest time of a probe, seconds: as set, but twice what a single repeat of ranks that do answer is expected to take
    /// with all that comes before and after it. A slow way is not one that hangs.
    pub fn timeout(&self, probe: &Probe) -> f64 {
        let number = self.work.find(&probe.target).map(|number| number as u32);
        let size = self.settings.sizes.iter().position(|&bytes| bytes == probe.bytes).map(|size| size as u8);
        let one = number.zip(size).and_then(|(target, size)| self.pace(Item { target, size })).unwrap_or(0.0);
        self.settings.timeout.max(2.0 * one * f64::from(self.untimed() + 1))
    }

    /// Repeats of a probe of long messages before the timed ones: one is checked in any case.
    fn untimed(&self) -> u32 {
        self.settings.warmup.max(1)
    }

    /// Repeats that a size gets before its interval is looked at.
    fn batch(&self, size: u8) -> u32 {
        self.settings.batch(self.settings.sizes[usize::from(size)], self.work.len())
    }

    /// Measure these again, alone and before anything else: every size of the sweep, or one. How many repeats that is at least.
    pub fn remeasure(&mut self, targets: &[Target], bytes: Option<u64>) -> u64 {
        let mut repeats = 0;
        for target in targets {
            let number = match target {
                Target::Pair(cell) => self.work.add(*cell),
                Target::Group(_) => match self.work.find(target) {
                    Some(number) => number,
                    None => continue,
                },
            };
            self.ledger.grow(self.work.len());
            let take = self.ledger.newest(number as u32).saturating_add(1);
            for size in (0..self.settings.sizes.len()).rev() {
                if bytes.is_none_or(|only| only == self.settings.sizes[size]) {
                    let item = Item { target: number as u32, size: size as u8 };
                    self.ledger.new_take(item, take);
                    self.urgent.push_back(item);
                    repeats += u64::from(self.batch(item.size)) * self.work.width(number) as u64;
                }
            }
        }
        self.foresee();
        repeats
    }

    /// Nothing more but what a person asks for.
    pub fn stop(&mut self) {
        (self.stage, self.pass, self.check) = (Stage::Over, None, None);
        self.urgent.clear();
    }

    /// The next probes, which run at the same time; `None` when there is nothing more to do, or when time is up: then only
    /// what a person asks for is done, and what the first picture lacks.
    pub fn next_round(&mut self, time_is_up: bool) -> Option<Vec<Probe>> {
        loop {
            if let Some(&item) = self.urgent.front() {
                let wanted = self.wanted(item, Stage::Refine);
                if wanted > 0 {
                    return Some(self.round(&[Ask { item, repeats: wanted }]));
                }
                self.urgent.pop_front();
            } else if time_is_up && self.stage != Stage::First {
                return None;
            } else if let Some(check) = self.check.take() {
                if let Some(asks) = self.check_on(check) {
                    return Some(self.round(&asks));
                }
                self.end_check();
            } else if let Some(pass) = &mut self.pass {
                if let Some(items) = pass.next(&self.work, &self.rules) {
                    let stage = self.stage;
                    let asks = items.into_iter().map(|item| Ask { item, repeats: self.wanted(item, stage) });
                    let asks: Vec<Ask> = asks.filter(|ask| ask.repeats > 0).collect();
                    if !asks.is_empty() {
                        return Some(self.round_of_pass(&asks));
                    }
                } else {
                    self.pass = None;
                    self.begin_check();
                }
            } else if self.stage == Stage::Over {
                return None;
            } else {
                self.advance();
            }
        }
    }

    /// The same; items whose probes do not hold all that is wanted are next again.
    fn round_of_pass(&mut self, asks: &[Ask]) -> Vec<Probe> {
        let round = self.round(asks);
        for (ask, probe) in asks.iter().zip(&round) {
            if let Some(pass) = self.pass.as_mut().filter(|_| probe.repeats < ask.repeats) {
                pass.again(ask.item);
            }
        }
        round
    }

    /// Probes for these, which run at the same time.
    fn round(&mut self, asks: &[Ask]) -> Vec<Probe> {
        let isolated = asks.len() == 1;
        if !isolated {
            let members = asks.iter().map(|ask| (ask.item.target, self.ledger.entry(ask.item).take)).collect();
            self.history.push(Together { size: asks[0].item.size, members });
        }
        let round = self.next_id;
        let mut probes = Vec::with_capacity(asks.len());
        for &Ask { item, repeats } in asks {
            let number = item.target as usize;
            let Some(target) = self.work.target(number) else { continue };
            let (first_repeat, repeats) = self.ledger.give(item, self.fitting(item, repeats));
            self.given[usize::from(item.size)] += u64::from(repeats) * self.work.width(number) as u64;
            if !isolated {
                self.ledger.entry_mut(item).round = self.history.len() as u32;
            }
            probes.push(Probe {
                id: self.next_id,
                flows: if matches!(target, Target::Group(_)) { self.work.flows(number) } else { Vec::new() },
                target,
                bytes: self.settings.sizes[usize::from(item.size)],
                first_repeat,
                repeats,
                take: u32::from(self.ledger.entry(item).take),
                isolated,
                round,
            });
            self.next_id += 1;
        }
        probes
    }

    /// What came of a probe: the good repeats of each direction, seconds a message, and the longest of all, seconds. Why its
    /// target gets no further repeats of this size, if it does not.
    pub fn observe(&mut self, probe: &Probe, series: &[Vec<f64>], longest: Option<f64>) -> Option<Enough> {
        let number = self.work.find(&probe.target)?;
        let size = self.settings.sizes.iter().position(|&bytes| bytes == probe.bytes)?;
        let item = Item { target: number as u32, size: size as u8 };
        if let Some(seconds) = longest {
            self.ledger.observe_pace(item, seconds);
        }
        if u32::from(self.ledger.entry(item).take) != probe.take {
            return None;
        }
        self.ledger.add(item, series);
        let (taken, width) = (self.ledger.entry(item).taken, self.ledger.width(item));
        let whole = !self.ledger.has_holes(item);
        let why = enough(&self.settings, taken, width).filter(|_| whole);
        // What does not answer is not asked for ever.
        let hopeless = whole && taken >= self.batch(item.size) && series.iter().all(Vec::is_empty);
        let entry = self.ledger.entry_mut(item);
        entry.settled = why.is_some() || hopeless;
        why
    }

    /// The next stage that has something to do.
    fn advance(&mut self) {
        self.redone = 0;
        self.stage = match self.stage {
            Stage::First => Stage::Fill(0),
            Stage::Fill(at) if at + 1 < self.fill.len() => Stage::Fill(at + 1),
            Stage::Fill(_) | Stage::Refine | Stage::Over => Stage::Refine,
        };
        self.begin_pass();
        if self.stage == Stage::Refine && self.pass.is_none() {
            self.stage = Stage::Over;
        }
    }

    /// Begin the pass of the stage.
    fn begin_pass(&mut self) {
        self.foresee();
        self.passes += 1;
        let seed = self.settings.seed ^ self.passes << 48;
        let stage = self.stage;
        let wants = |planner: &Self, item: Item| planner.wanted(item, stage) > 0;
        let items: Vec<Item> = match stage {
            Stage::First | Stage::Fill(_) => {
                let size = if let Stage::Fill(at) = stage { self.fill[at] } else { self.first };
                let order = self.work.order(&mut fastrand::Rng::with_seed(seed));
                order.into_iter().map(|target| Item { target, size }).filter(|&item| wants(self, item)).collect()
            }
            Stage::Refine => {
                let unsettled = self.ledger.items().map(|(item, _)| item).filter(|&item| wants(self, item));
                let mut items: Vec<(f64, Item)> = unsettled.map(|item| (self.ledger.width(item), item)).collect();
                // By chance first, so that equally wide ones come in no order of their own.
                fastrand::Rng::with_seed(seed).shuffle(&mut items);
                items.sort_by(|a, b| b.0.total_cmp(&a.0));
                items.into_iter().map(|(_, item)| item).collect()
            }
            Stage::Over => Vec::new(),
        };
        self.pass = (!items.is_empty()).then(|| Pass::new(&self.work, items, self.topology.world(), stage != Stage::Refine, seed));
    }

    /// After a check: what was disturbed is measured again, or the stage is over.
    fn end_check(&mut self) {
        self.extra.fill(0);
        self.ledger.forget_settled();
        let redo = std::mem::take(&mut self.redo);
        if redo.is_empty() {
            self.foresee();
            return;
        }
        self.redone += 1;
        if self.redone > TRUST {
            for item in &redo {
                let flows = self.work.flows(item.target as usize);
                self.rules.set_alone(&flows);
            }
        }
        self.passes += 1;
        let seed = self.settings.seed ^ self.passes << 48;
        // In the order in which rounds are made, not in that of discovery.
        let wanted: std::collections::HashSet<Item> = redo.into_iter().collect();
        let order = self.work.order(&mut fastrand::Rng::with_seed(seed));
        let sizes = self.settings.sizes.len() as u8;
        let items = order.into_iter().flat_map(|target| (0..sizes).map(move |size| Item { target, size }));
        let items: Vec<Item> = items.filter(|item| wanted.contains(item)).collect();
        self.pass = Some(Pass::new(&self.work, items, self.topology.world(), true, seed));
        self.foresee();
    }
}

/// The size of the first pass: large enough to tell a rate, and small enough that one message of everything is about a hundredth
/// of the whole sweep's work (of 4 KiB to 256 MiB: 4 MiB), so that a picture is there in seconds.
fn first_size(sizes: &[u64]) -> u8 {
    let limit = sizes.last().map_or(0, |largest| (largest / 64).clamp(1 << 20, 16 << 20));
    sizes.iter().rposition(|&size| size <= limit).unwrap_or(0) as u8
}
