use std::collections::{BTreeMap, VecDeque};

use super::{Cells, Event, Header, Outcome, Record};
use crate::sample::{Pattern, Sample, Status};
use crate::sweep::{Cell, Probe, SweepSettings};
use crate::units::plain;

/// Lines of the log kept in memory; the session's file has them all.
const LOG_LINES: usize = 5_000;

/// Where a sweep stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    Measuring,
    Paused,
    Ended(Outcome),
}

/// How far a sweep is, by size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    pub bytes: u64,
    /// repeats asked for
    pub wanted: u64,
    /// repeats that have a state
    pub done: u64,
    /// seconds that the probes of this size took, all included
    pub spent: f64,
}

/// The sweep that is running, or the last one.
#[derive(Debug, Clone)]
pub struct SweepState {
    pub settings: SweepSettings,
    pub running: Running,
    /// why it ended, if there is more to say
    pub reason: String,
    /// the probe that was started last and when, until it is done
    pub probe: Option<(Probe, f64)>,
    /// one entry a size
    pub progress: Vec<Progress>,
}

impl SweepState {
    /// Share of the repeats that have a state, 0 to 1.
    pub fn share(&self) -> f64 {
        let (done, wanted) =
            self.progress.iter().fold((0_u64, 0_u64), |(done, wanted), p| (done.saturating_add(p.done), wanted.saturating_add(p.wanted)));
        if wanted == 0 { 0.0 } else { done as f64 / wanted as f64 }
    }

    /// Seconds left, from what the probes so far took; `None` before the first.
    pub fn seconds_left(&self) -> Option<f64> {
        let per_repeat = |p: &Progress| (p.done > 0).then(|| p.spent / p.done as f64);
        let known = self.progress.iter().rev().find_map(|p| per_repeat(p).map(|seconds| (p.bytes, seconds)))?;
        let left = self.progress.iter().map(|p| {
            let (bytes, seconds) = known;
            let guess = seconds * (p.bytes as f64 / bytes as f64).clamp(0.1, 1e6);
            p.wanted.saturating_sub(p.done) as f64 * per_repeat(p).unwrap_or(guess)
        });
        Some(left.sum())
    }
}

/// A line of the log, safe to show.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    pub t: f64,
    /// `None` for the program itself
    pub rank: Option<usize>,
    pub text: String,
}

/// What an event changed, for those who keep something derived.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Nothing,
    /// these cells have new samples of this size
    Cells {
        cells: Vec<Cell>,
        bytes: u64,
    },
    /// anything may have changed but the samples
    State,
    /// a new sweep: no cell has a sample any more
    Cleared,
}

/// The facts of a session: the fold of its events.
#[derive(Debug, Clone)]
pub struct Model {
    pub header: Header,
    pub sweep: Option<SweepState>,
    pub cells: Cells,
    /// ranks that do not answer any more, with the reason
    pub lost: BTreeMap<usize, String>,
    pub log: VecDeque<LogLine>,
    /// time of the last event, seconds since the session began
    pub now: f64,
    /// the session was left in order
    pub closed: bool,
}

impl Model {
    /// A session that has just begun.
    pub fn new(header: Header) -> Self {
        Self { header, sweep: None, cells: Cells::default(), lost: BTreeMap::new(), log: VecDeque::new(), now: 0.0, closed: false }
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.header.topology.world()
    }

    /// Take in an event.
    pub fn apply(&mut self, record: &Record) -> Change {
        self.now = self.now.max(record.t);
        match &record.event {
            Event::SweepStarted { settings, resumed } => self.sweep_started(settings, *resumed),
            Event::ProbeStarted { probe } => {
                if let Some(sweep) = &mut self.sweep {
                    sweep.probe = Some((probe.clone(), record.t));
                }
                Change::State
            }
            Event::ProbeDone { probe, samples } => self.probe_done(*probe, samples, record.t),
            Event::Remeasure { cells: _, repeats } => {
                if let Some(sweep) = &mut self.sweep {
                    if matches!(sweep.running, Running::Ended(_)) {
                        sweep.running = Running::Measuring;
                    }
                    // Re-measurements count to the largest size's work, for want of better; they are few.
                    if let Some(progress) = sweep.progress.last_mut() {
                        progress.wanted = progress.wanted.saturating_add(*repeats);
                    }
                }
                Change::State
            }
            Event::Paused => self.set_running(Running::Paused),
            Event::Continued => self.set_running(Running::Measuring),
            Event::SweepEnded { outcome, reason } => {
                if let Some(sweep) = &mut self.sweep {
                    sweep.reason = plain(reason);
                    sweep.probe = None;
                }
                self.set_running(Running::Ended(*outcome))
            }
            Event::RankLost { rank, reason } => {
                self.lost.insert(*rank, plain(reason));
                self.say(record.t, Some(*rank), &format!("lost: {reason}"))
            }
            Event::Log { rank, line } => self.say(record.t, Some(*rank), line),
            Event::Notice { text } => self.say(record.t, None, text),
            Event::Closed => {
                self.closed = true;
                Change::State
            }
            Event::Unknown => Change::Nothing,
        }
    }

    fn sweep_started(&mut self, settings: &SweepSettings, resumed: bool) -> Change {
        let ranks = settings.ranks_of(self.world()).len() as u64;
        let cells: u64 = settings
            .patterns
            .iter()
            .map(|pattern| match pattern {
                Pattern::Local => ranks,
                Pattern::Peer => ranks * ranks.saturating_sub(1),
            })
            .sum();
        let wanted = cells.saturating_mul(u64::from(settings.repeats));
        let progress = settings.sizes.iter().map(|&bytes| Progress { bytes, wanted, done: 0, spent: 0.0 });
        let mut state = SweepState {
            settings: settings.clone(),
            running: Running::Measuring,
            reason: String::new(),
            probe: None,
            progress: progress.collect(),
        };
        if resumed {
            // Another job: its ranks answer until they do not.
            self.lost.clear();
            for (_, bytes, repeats) in self.done() {
                if let Some(progress) = state.progress.iter_mut().find(|progress| progress.bytes == bytes) {
                    progress.done += repeats.iter().filter(|&&repeat| repeat < settings.repeats).count() as u64;
                }
            }
        } else {
            // Other settings, other numbers: a matrix shows one sweep. The earlier one stays in the session's file.
            self.cells = Cells::default();
        }
        self.sweep = Some(state);
        self.closed = false;
        if resumed { Change::State } else { Change::Cleared }
    }

    fn probe_done(&mut self, id: u64, samples: &[Sample], t: f64) -> Change {
        let world = self.world();
        // Recorded sessions and other programs' sockets are data: a pair that this job has not is in no table.
        if samples.iter().any(|sample| sample.from >= world || sample.to >= world) {
            let known: Vec<Sample> = samples.iter().filter(|sample| sample.from < world && sample.to < world).cloned().collect();
            let text =
                format!("{} samples of probe {id} name ranks that this job of {world} has not; left out", samples.len() - known.len());
            self.say(t, None, &text);
            return if known.is_empty() { Change::State } else { self.probe_done(id, &known, t) };
        }
        let cells = self.cells.add(samples);
        let Some(first) = samples.first() else { return Change::Nothing };
        if let Some(sweep) = &mut self.sweep {
            let began = sweep.probe.take_if(|(probe, _)| probe.id == id).map_or(t, |(_, began)| began);
            let slot = if first.take > 0 { sweep.progress.last_mut() } else { sweep.progress.iter_mut().find(|p| p.bytes == first.bytes) };
            if let Some(progress) = slot {
                progress.done = (progress.done + samples.len() as u64).min(progress.wanted);
                progress.spent += t - began;
            }
        }
        Change::Cells { cells, bytes: first.bytes }
    }

    fn set_running(&mut self, running: Running) -> Change {
        if let Some(sweep) = &mut self.sweep {
            sweep.running = running;
        }
        Change::State
    }

    fn say(&mut self, t: f64, rank: Option<usize>, text: &str) -> Change {
        if self.log.len() >= LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(LogLine { t, rank, text: plain(text) });
        Change::State
    }

    /// Newest take of each cell that was measured again.
    pub fn takes(&self) -> Vec<(Cell, u32)> {
        let newest = |sizes: &[super::SizeCell]| sizes.iter().map(|size| size.take).max().unwrap_or(0);
        self.cells.iter().map(|(cell, sizes)| (cell, newest(sizes))).filter(|&(_, take)| take > 0).collect()
    }

    /// Numbers of the repeats of each cell and size that the sweep's own take already has, for resuming: a timed-out or
    /// waived repeat is worth another try, so only `ok` and `corrupt` count.
    pub fn done(&self) -> Vec<(Cell, u64, Vec<u32>)> {
        let mut done = Vec::new();
        for (cell, sizes) in self.cells.iter() {
            for size in sizes {
                let has = size.shots.iter().filter(|shot| shot.take == 0 && matches!(shot.status, Status::Ok | Status::Corrupt));
                done.push((cell, size.bytes, has.map(|shot| shot.repeat).collect()));
            }
        }
        done
    }
}
