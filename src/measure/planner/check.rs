//! Verification of what ran together: a random few and every suspect are measured again alone; where that differs, the whole
//! round is tried again, and what turns out to be shared is never used by two probes at a time from then on.
//!
//! Slow alone, too: then it is the pair, or one of its ends ([`super::cause`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::stop::Stat;
use super::{Ask, Planner, Stage, words};
use crate::sample::Pattern;
use crate::session::Conflict;
use crate::sweep::{FEWEST, Item, Knowledge};
use crate::topology::PathClass;

/// A rate below this share of what is usual in its class is suspect.
pub(super) const SUSPECT: f64 = 0.8;
/// Times as long as alone: so clear that [`FEW`] repeats show who is slowed, instead of as many as have an interval.
const CLEAR: f64 = 1.5;
const FEW: u32 = 3;
/// Rounds of a pass for each that is looked at by chance.
const ROUNDS: usize = 16;

/// Pairs that are compared with each other.
pub(super) type Class = (Pattern, PathClass, u8);

/// What is usual in a class: seconds of a message, or their share of what was expected of the pair, where something tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usual {
    pub median: f64,
    /// a quarter of the pairs are faster: where sharing has slowed half of them down, the median is slow, too
    pub fast: f64,
}

/// A target that is slow alone, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slow {
    /// where it was asked alone
    size: u8,
    /// of a message there
    seconds: f64,
    /// of the rate of the faster ones
    share: f64,
}

/// The check of one pass.
#[derive(Debug)]
pub(super) struct Check {
    /// to be measured alone; next ones last
    queue: Vec<Item>,
    pub usual: HashMap<Class, Usual>,
    state: State,
    /// slow alone, too
    pub slow: Vec<Item>,
}

#[derive(Debug)]
enum State {
    Next,
    /// one is measured alone
    Alone {
        item: Item,
        until: u32,
        before: Stat,
        /// who ran with it
        round: usize,
    },
    Trial(Trial),
}

/// A round that is tried again, since one of its probes was slower than alone.
#[derive(Debug)]
struct Trial {
    suspect: Item,
    /// what the suspect did alone
    known: Stat,
    members: Vec<Item>,
    /// of each member in each step
    repeats: u32,
    together: BTreeMap<u32, Stat>,
    alone: BTreeMap<u32, Stat>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// all at the same time
    Together,
    /// one after another; how many were
    Alone(usize),
    /// two at a time: who shares with whom
    Pairs(Pairs),
}

/// The slowed ones sorted by what they share: each is run with a first one, two at a time.
#[derive(Debug, Default)]
struct Pairs {
    /// the first of these with each of `todo`
    group: Vec<Item>,
    todo: Vec<Item>,
    /// share nothing with the first: they are next
    others: Vec<Item>,
    /// slowed only by more than one
    rest: Vec<Item>,
    found: Vec<Vec<Item>>,
}

impl Pairs {
    fn new(slowed: Vec<Item>) -> Self {
        let mut pairs = Self { others: slowed, ..Self::default() };
        pairs.next_group();
        pairs
    }

    /// Put the group away and begin with the first of the others.
    fn next_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        if group.len() > 1 {
            self.found.push(group);
        } else {
            self.rest.extend(group);
        }
        let mut others = std::mem::take(&mut self.others).into_iter();
        self.group.extend(others.next());
        self.todo = others.collect();
    }

    /// The next two to run together; `None` when all are sorted.
    fn next(&mut self) -> Option<(Item, Item)> {
        while self.todo.is_empty() && !self.group.is_empty() {
            self.next_group();
        }
        Some((*self.group.first()?, *self.todo.last()?))
    }

    /// What came of the two.
    fn told(&mut self, shared: bool) {
        if let Some(item) = self.todo.pop() {
            if shared { self.group.push(item) } else { self.others.push(item) }
        }
    }

    /// Who shares with whom; those slowed only by several at once are taken to share one thing.
    fn groups(mut self) -> Vec<Vec<Item>> {
        if !self.rest.is_empty() {
            self.found.push(self.rest);
        }
        self.found
    }
}

impl Planner {
    /// The class of a pair; `None` for a group.
    pub(super) fn class(&self, item: Item) -> Option<Class> {
        let target = item.target as usize;
        let (from, to) = self.work.pair(target)?;
        Some((self.work.pattern(target)?, self.work.path(from, to), item.size))
    }

    /// What seconds of a message are told in: those expected of the pair, or ones.
    fn unit(&self, item: Item) -> f64 {
        // What is expected of a rank's own copies is told of its memory alone.
        let crosses = self.work.pattern(item.target as usize).is_some_and(Pattern::crosses);
        let pair = self.work.pair(item.target as usize).filter(|_| !crosses);
        let bytes = self.settings.sizes[usize::from(item.size)];
        pair.and_then(|(from, to)| self.rules.expected(from, to, bytes)).filter(|&seconds| seconds > 0.0).unwrap_or(1.0)
    }

    /// How the rate of a pair compares: the usual one is 1. `None` without a good repeat, and of groups.
    pub(super) fn share(&self, item: Item, usual: f64) -> Option<f64> {
        let median = f64::from(self.ledger.entry(item).median);
        (median > 0.0).then(|| usual * self.unit(item) / median)
    }

    /// True if a target was found slow alone, and is not slower than that now.
    fn explained(&self, item: Item, share: f64) -> bool {
        let bytes = |size: u8| self.settings.sizes[usize::from(size)] as f64;
        self.slow.get(&item.target).is_some_and(|known| {
            // Larger messages go at a higher rate, whatever others do; of smaller ones latency is more, and alike.
            let slower = f64::from(self.ledger.entry(item).median) * bytes(known.size) / bytes(item.size) * SUSPECT > known.seconds;
            if item.size >= known.size { !slower } else { share >= SUSPECT * known.share }
        })
    }

    /// What is usual in the classes of these.
    fn usual(&self, items: &[Item]) -> HashMap<Class, Usual> {
        let classes: HashSet<Class> = items.iter().filter_map(|&item| self.class(item)).collect();
        let sizes: HashSet<u8> = classes.iter().map(|&(_, _, size)| size).collect();
        let mut times: HashMap<Class, Vec<f32>> = HashMap::new();
        for target in 0..self.work.len() as u32 {
            for &size in &sizes {
                let item = Item { target, size };
                let median = self.ledger.entry(item).median;
                if let Some(class) = self.class(item).filter(|class| median > 0.0 && classes.contains(class)) {
                    times.entry(class).or_default().push((f64::from(median) / self.unit(item)) as f32);
                }
            }
        }
        let of = |mut times: Vec<f32>| {
            times.sort_unstable_by(f32::total_cmp);
            Usual { median: f64::from(times[times.len() / 2]), fast: f64::from(times[times.len() / 4]) }
        };
        times.into_iter().map(|(class, times)| (class, of(times))).collect()
    }

    /// Begin to check what ran together since the last check, if anything did.
    pub(super) fn begin_check(&mut self) {
        let current = |&(target, take): &(u32, u16), size| {
            let item = Item { target, size };
            let entry = self.ledger.entry(item);
            (entry.take == take && entry.round > 0 && entry.median > 0.0).then_some(item)
        };
        let rounds = &self.history[self.checked..];
        let members = |at: usize| rounds[at].members.iter().filter_map(move |member| current(member, rounds[at].size));
        let mut all: Vec<Item> = (0..rounds.len()).flat_map(members).collect();
        all.sort_unstable_by_key(|item| (item.size, item.target));
        all.dedup();
        if all.is_empty() {
            self.end_check();
            return;
        }
        let usual = self.usual(&all);
        let share = |item: Item| self.class(item).and_then(|class| self.share(item, usual.get(&class)?.fast)).unwrap_or(1.0);
        let mut suspects: Vec<(f64, Item)> = all.iter().map(|&item| (share(item), item)).collect();
        suspects.retain(|&(share, item)| share < SUSPECT && !self.explained(item, share));
        suspects.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Alone is slow work: of very many suspects the worst are asked now, the others when they are still suspect after
        // the next pass.
        suspects.truncate((4 * self.topology.world()).max(32));
        let few = (all.len() / 50).max(2).min(rounds.len() / ROUNDS).max(if self.stage == Stage::First { 2 } else { 1 });
        let mut rng = fastrand::Rng::with_seed(self.settings.seed ^ self.passes << 32);
        let by_chance = rng.choose_multiple(0..rounds.len(), few.min(rounds.len()));
        let chosen = by_chance.into_iter().filter_map(|at| rng.choice(members(at).collect::<Vec<_>>()));
        let mut queue: Vec<Item> = chosen.collect();
        queue.extend(suspects.into_iter().rev().map(|(_, item)| item));
        for item in &queue {
            let repeats = self.ledger.entry(*item).taken.min(self.batch(item.size));
            self.extra[usize::from(item.size)] += u64::from(repeats) * self.work.width(item.target as usize) as u64;
        }
        self.check = Some(Check { queue, usual, state: State::Next, slow: Vec::new() });
        self.foresee();
    }

    /// The next round of a check, which goes on with it; `None` when it is done.
    pub(super) fn check_on(&mut self, mut check: Check) -> Option<Vec<Ask>> {
        loop {
            let asks = match std::mem::replace(&mut check.state, State::Next) {
                State::Next => {
                    let Some(item) = check.queue.pop() else {
                        self.say_slow(&check);
                        self.checked = self.history.len();
                        return None;
                    };
                    self.begin_alone(&mut check, item)
                }
                State::Alone { item, until, before, round } => self.alone(&mut check, item, until, before, round),
                State::Trial(trial) => self.trial(&mut check, trial),
            };
            if let Some(asks) = asks {
                self.check = Some(check);
                return Some(asks);
            }
        }
    }

    fn begin_alone(&mut self, check: &mut Check, item: Item) -> Option<Vec<Ask>> {
        let entry = *self.ledger.entry(item);
        // Its take may have been superseded since: what it shared is known by now.
        let round = (entry.round as usize).checked_sub(1)?;
        let before = self.ledger.stat(item)?;
        let until = entry.taken.min(self.batch(item.size));
        self.ledger.new_take(item, entry.take.saturating_add(1));
        check.state = State::Alone { item, until, before, round };
        Some(vec![Ask { item, repeats: until }])
    }

    fn alone(&mut self, check: &mut Check, item: Item, until: u32, before: Stat, round: usize) -> Option<Vec<Ask>> {
        let taken = self.ledger.entry(item).taken;
        if taken < until && !self.ledger.entry(item).settled {
            check.state = State::Alone { item, until, before, round };
            return Some(vec![Ask { item, repeats: until - taken }]);
        }
        // Alone it did not answer at all: that is on record, and there is nothing to compare.
        let alone = self.ledger.stat(item)?;
        if !before.slower_than(&alone) {
            self.note_slow(check, item, &alone);
            return None;
        }
        let flows = |planner: &Self, item: &Item| planner.work.flows(item.target as usize);
        let mut members = vec![item];
        {
            // Without those that are known by now to be disturbed by others.
            let mut load = self.rules.begin();
            load.add(&flows(self, &item));
            let together = self.history.get(round)?;
            let others = together.members.iter().map(|&(target, _)| Item { target, size: item.size }).filter(|&other| other != item);
            members.extend(others.filter(|other| load.add(&flows(self, other))));
        }
        if members.len() < 2 {
            return None;
        }
        let repeats = if before.median > CLEAR * alone.median { FEW } else { FEWEST };
        let (suspect, known, step) = (item, alone, Step::Together);
        let trial = Trial { suspect, known, members, repeats, together: BTreeMap::new(), alone: BTreeMap::new(), step };
        let asks = self.again(&trial.members, repeats);
        check.state = State::Trial(trial);
        Some(asks)
    }

    /// New takes of these.
    fn again(&mut self, items: &[Item], repeats: u32) -> Vec<Ask> {
        for &item in items {
            let take = self.ledger.entry(item).take.saturating_add(1);
            self.ledger.new_take(item, take);
        }
        items.iter().map(|&item| Ask { item, repeats }).collect()
    }

    fn trial(&mut self, check: &mut Check, mut trial: Trial) -> Option<Vec<Ask>> {
        let stat = |planner: &Self, item: Item| planner.ledger.stat(item);
        trial.step = match trial.step {
            Step::Together => {
                trial.together = trial.members.iter().filter_map(|&item| Some((item.target, stat(self, item)?))).collect();
                // Once more as before? Otherwise it was chance, or has passed.
                let slowed = trial.together.get(&trial.suspect.target).is_some_and(|now| now.slower_than(&trial.known));
                if !slowed {
                    return None;
                }
                Step::Alone(0)
            }
            Step::Alone(at) => {
                let item = trial.members[at];
                trial.alone.extend(stat(self, item).map(|stat| (item.target, stat)));
                Step::Alone(at + 1)
            }
            Step::Pairs(mut pairs) => {
                if let Some((first, second)) = pairs.next() {
                    let slower =
                        |item: Item| stat(self, item).zip(trial.alone.get(&item.target)).is_some_and(|(now, alone)| now.slower_than(alone));
                    pairs.told(slower(first) || slower(second));
                }
                Step::Pairs(pairs)
            }
        };
        if let Step::Alone(at) = trial.step {
            if let Some(&item) = trial.members.get(at) {
                let asks = self.again(&[item], trial.repeats);
                check.state = State::Trial(trial);
                return Some(asks);
            }
            let is_slower = |item: &&Item| {
                let two = trial.together.get(&item.target).zip(trial.alone.get(&item.target));
                two.is_some_and(|(together, alone)| together.slower_than(alone))
            };
            let slowed: Vec<Item> = trial.members.iter().filter(is_slower).copied().collect();
            match slowed.len() {
                0 => return None,
                1 | 2 => {
                    self.learn(&trial, &[slowed]);
                    return None;
                }
                _ => trial.step = Step::Pairs(Pairs::new(slowed)),
            }
        }
        let Step::Pairs(pairs) = &mut trial.step else { return None };
        if let Some((first, second)) = pairs.next() {
            let asks = self.again(&[first, second], trial.repeats);
            check.state = State::Trial(trial);
            return Some(asks);
        }
        let groups = std::mem::take(pairs).groups();
        self.learn(&trial, &groups);
        None
    }

    /// What a group did together and alone; `None` where one of it did not answer.
    fn conflict(&self, trial: &Trial, group: &[Item]) -> Option<Conflict> {
        let first = group.first()?;
        let mut conflict = Conflict {
            pattern: self.work.pattern(first.target as usize)?,
            bytes: self.settings.sizes[usize::from(first.size)],
            repeats: trial.repeats,
            flows: Vec::new(),
            together: Vec::new(),
            alone: Vec::new(),
        };
        for item in group {
            let (together, alone) = (trial.together.get(&item.target)?, trial.alone.get(&item.target)?);
            for flow in self.work.flows(item.target as usize) {
                conflict.flows.push(flow);
                conflict.together.push(together.mean);
                conflict.alone.push(alone.median);
            }
        }
        Some(conflict)
    }

    /// Those of each group share something; what ran together against that is measured again.
    fn learn(&mut self, trial: &Trial, groups: &[Vec<Item>]) {
        for group in groups {
            let flows: Vec<(usize, usize)> = group.iter().flat_map(|item| self.work.flows(item.target as usize)).collect();
            let shared = if group.len() > 1 {
                Some(self.rules.learn(&flows))
            } else {
                self.rules.set_alone(&flows);
                None
            };
            self.conflicts.extend(self.conflict(trial, group).filter(|_| group.len() > 1));
            let text = words::conflict(self, group, &trial.members, shared.as_ref(), &trial.together, &trial.alone);
            self.words.push(text);
        }
        let mut bad = Vec::new();
        for round in &self.history {
            let flows: Vec<_> = round.members.iter().map(|&(target, _)| self.work.flows(target as usize)).collect();
            for at in self.rules.disturbed(&flows) {
                let (target, take) = round.members[at];
                bad.push((Item { target, size: round.size }, take));
            }
        }
        for (item, take) in bad {
            let entry = *self.ledger.entry(item);
            if entry.take == take && entry.round > 0 {
                self.ledger.new_take(item, take.saturating_add(1));
                self.redo.push(item);
            }
        }
    }

    /// Keep that a target is slow alone, too.
    fn note_slow(&mut self, check: &mut Check, item: Item, alone: &Stat) {
        let Some(usual) = self.class(item).and_then(|class| check.usual.get(&class)).copied() else { return };
        let share = |usual: f64| self.share(item, usual).unwrap_or(1.0);
        let (fast, median) = (share(usual.fast), share(usual.median));
        if fast < SUSPECT {
            self.slow.insert(item.target, Slow { size: item.size, seconds: alone.median, share: fast });
        }
        if median < SUSPECT {
            check.slow.push(item);
        }
    }
}
