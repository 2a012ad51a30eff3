//! What is known of each target and size: small, since a thousand ranks have millions.

use std::collections::HashMap;

use super::stop::Stat;
use crate::sweep::Item;

/// The newest take of one target and size.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// median seconds of a message, of the slower direction; 0 when no repeat was good
    pub median: f32,
    /// repeats given out, below which all have a state or are in a hole
    pub taken: u32,
    /// number of the last round that it shared with others in this take, from 1; 0 if it was always alone
    pub round: u32,
    pub take: u16,
    /// it gets no further repeats
    pub settled: bool,
}

/// A slot of the ledger: a target and a size.
pub(super) type Slot = u64;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    sizes: usize,
    entries: Vec<Entry>,
    /// good repeats of the newest take: of `duplex` each direction's
    times: HashMap<Slot, Vec<Vec<f32>>>,
    /// runs of repeats, first and count, that a session has not although it has later ones; next ones last
    holes: HashMap<Slot, Vec<(u32, u32)>>,
    /// of each target the largest size seen, and the seconds of one repeat there
    pace: Vec<Option<(u8, f32)>>,
}

impl Ledger {
    pub fn new(targets: usize, sizes: usize) -> Self {
        Self { sizes, entries: vec![Entry::default(); targets * sizes], pace: vec![None; targets], ..Self::default() }
    }

    /// Make room for further targets, of which nothing is asked yet.
    pub fn grow(&mut self, targets: usize) {
        self.entries.resize(targets * self.sizes, Entry { settled: true, ..Entry::default() });
        self.pace.resize(targets, None);
    }

    fn at(&self, item: Item) -> usize {
        item.target as usize * self.sizes + usize::from(item.size)
    }

    fn slot(&self, item: Item) -> Slot {
        self.at(item) as Slot
    }

    pub fn entry(&self, item: Item) -> &Entry {
        &self.entries[self.at(item)]
    }

    pub fn entry_mut(&mut self, item: Item) -> &mut Entry {
        let at = self.at(item);
        &mut self.entries[at]
    }

    /// Every target and size.
    pub fn items(&self) -> impl Iterator<Item = (Item, &Entry)> {
        let sizes = self.sizes.max(1);
        self.entries.iter().enumerate().map(move |(at, entry)| (Item { target: (at / sizes) as u32, size: (at % sizes) as u8 }, entry))
    }

    /// Begin a take of its own: what was known of the last one counts no more.
    pub fn new_take(&mut self, item: Item, take: u16) {
        let slot = self.slot(item);
        self.times.remove(&slot);
        self.holes.remove(&slot);
        *self.entry_mut(item) = Entry { take, ..Entry::default() };
    }

    /// Newest take of a target at any size.
    pub fn newest(&self, target: u32) -> u16 {
        let first = target as usize * self.sizes;
        self.entries[first..first + self.sizes].iter().map(|entry| entry.take).max().unwrap_or(0)
    }

    /// Take in the good repeats of a probe, one series a direction.
    pub fn add(&mut self, item: Item, series: &[Vec<f64>]) {
        let slot = self.slot(item);
        let known = self.times.entry(slot).or_default();
        known.resize(known.len().max(series.len()), Vec::new());
        for (known, new) in known.iter_mut().zip(series) {
            known.reserve_exact(new.len());
            known.extend(new.iter().map(|&time| time as f32));
        }
        let median = self.stat(item).map_or(0.0, |stat| stat.median as f32);
        self.entry_mut(item).median = median;
    }

    /// Of the direction with the widest interval.
    pub fn width(&self, item: Item) -> f64 {
        let known = self.times.get(&self.slot(item)).map_or(&[][..], Vec::as_slice);
        let widths = known.iter().map(|times| Stat::of(times).map_or(f64::INFINITY, |stat| stat.width()));
        widths.reduce(f64::max).unwrap_or(f64::INFINITY)
    }

    /// Of the slower direction; `None` without a good repeat, or when its times were forgotten.
    pub fn stat(&self, item: Item) -> Option<Stat> {
        let known = self.times.get(&self.slot(item))?;
        known.iter().filter_map(|times| Stat::of(times)).max_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Drop the times of those that get no further repeats: nobody asks for them again.
    pub fn forget_settled(&mut self) {
        let entries = &self.entries;
        self.times.retain(|&slot, _| !entries[slot as usize].settled);
    }

    /// Set holes; `runs` next one last.
    pub fn set_holes(&mut self, item: Item, runs: Vec<(u32, u32)>) {
        if !runs.is_empty() {
            self.holes.insert(self.slot(item), runs);
        }
    }

    /// True if repeats below `taken` are missing.
    pub fn has_holes(&self, item: Item) -> bool {
        !self.holes.is_empty() && self.holes.contains_key(&self.slot(item))
    }

    /// Give out repeats: first number and count, at most `wanted`; those that are missing below others first.
    pub fn give(&mut self, item: Item, wanted: u32) -> (u32, u32) {
        let slot = self.slot(item);
        if let Some(runs) = self.holes.get_mut(&slot)
            && let Some((first, count)) = runs.pop()
        {
            let given = count.min(wanted.max(1));
            if given < count {
                runs.push((first + given, count - given));
            }
            if runs.is_empty() {
                self.holes.remove(&slot);
            }
            return (first, given);
        }
        let entry = self.entry_mut(item);
        let first = entry.taken;
        entry.taken += wanted;
        (first, wanted)
    }

    /// Repeats in holes.
    pub fn missing(&self, item: Item) -> u32 {
        // Asked of millions, and mostly there are none.
        if self.holes.is_empty() {
            0
        } else {
            self.holes.get(&self.slot(item)).map_or(0, |runs| runs.iter().map(|&(_, count)| count).sum())
        }
    }

    /// Keep how long one repeat took. Of small messages the large ones cannot be foretold, so the largest size seen counts.
    pub fn observe_pace(&mut self, item: Item, seconds: f64) {
        let pace = &mut self.pace[item.target as usize];
        if pace.is_none_or(|(size, _)| item.size >= size) {
            *pace = Some((item.size, seconds as f32));
        }
    }

    /// The largest size seen of a target, and the seconds of a repeat there.
    pub fn pace(&self, target: u32) -> Option<(u8, f32)> {
        self.pace[target as usize]
    }
}

/// The first repeat that is above all those done, and the runs below it that are missing, last first.
pub(super) fn missing(done: &[u32], wanted: u32) -> (u32, Vec<(u32, u32)>) {
    let mut done: Vec<u32> = done.iter().copied().filter(|&repeat| repeat < wanted).collect();
    done.sort_unstable();
    let (mut next, mut runs) = (0, Vec::new());
    for repeat in done {
        if repeat > next {
            runs.push((next, repeat - next));
        }
        next = repeat + 1;
    }
    runs.reverse();
    (next, runs)
}
