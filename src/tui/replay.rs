//! What the Replay tab shows of a model: its plans priced by what was measured, made when somebody looks at them.
//!
//! A plan of a million messages takes seconds, so no frame waits for it: a thread reads the model, then prices while samples come in
//! again. What is made stays until plans or samples change; frames look things up in it.

mod lights;
mod panel;
mod reel;
mod strategies;
mod strip;
#[cfg(test)]
mod tests;
mod work;

pub use lights::Lights;
pub use panel::{ReplayPanel, ReplaySight};
pub use reel::Reel;
pub use strategies::FIELDS;
#[cfg(test)]
pub use strategies::StrategyForm;
pub use strip::Strip;

use std::sync::Arc;

use crate::plan::Traffic;
use crate::plan::price::Calibrated;
use crate::plan::strategy::{Job, Ranking};
use crate::session::{Change, Model};
use work::{Order, Reply, Work};

/// Seconds without news before plans are priced again.
const QUIET: f64 = 0.3;

/// A plan, with its replay where that could be made.
#[derive(Debug, Clone)]
pub struct Shown {
    pub name: String,
    pub made: Made,
    /// version of the prices that it was made with
    of: u64,
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

/// The strategies of a job side by side.
#[derive(Debug, Clone)]
pub struct Ranked {
    pub job: Job,
    /// why there are none
    pub ranking: Result<Ranking, String>,
    of: u64,
}

/// The plans that can be looked at, priced: those of the model, then the strategies that were chosen.
#[derive(Debug, Default)]
pub struct Replays {
    shown: Vec<Shown>,
    ranked: Option<Ranked>,
    /// what the list is of: [`Model::plan_loads`], and how often a strategy was chosen
    listed: Option<(u64, u64)>,
    /// plans of the model in it
    plans: usize,
    /// counts what was made
    made: u64,
    /// counts changes of what prices are made from
    version: u64,
    /// prices, and the version that they are of
    prices: Option<(u64, Arc<Calibrated>)>,
    work: Option<Work>,
    /// seconds since the last change
    quiet: f64,
    /// tests tell what was priced
    #[cfg(test)]
    held: bool,
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

    /// Strategies, once they were asked for.
    pub const fn ranked(&self) -> Option<&Ranked> {
        self.ranked.as_ref()
    }

    /// True if samples have come in since a plan was priced.
    pub fn stale(&self, at: usize) -> bool {
        #[cfg(test)]
        if self.held {
            return false;
        }
        self.shown.get(at).is_some_and(|shown| shown.of != self.version)
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
        self.work.as_ref().is_some_and(Work::reads)
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

    /// Let time go by; true if something new is to be seen, or to be begun.
    pub fn tick(&mut self, seconds: f64, panel: &ReplayPanel, running: bool) -> bool {
        self.quiet += seconds;
        let came = self.collect();
        let waits = |at: usize| self.stale(at) && !running && self.quiet >= QUIET;
        came || !self.busy() && (waits(panel.at) || panel.other.is_some_and(waits))
    }

    /// Bring the list of plans up to date, and begin to price what is looked at; where nobody waits, price it at once.
    pub fn settle(&mut self, model: &Arc<Model>, panel: &mut ReplayPanel, running: bool, nobody_waits: bool) {
        self.collect();
        #[cfg(test)]
        if self.held {
            panel.follow(self);
            return;
        }
        self.list(model, panel);
        panel.follow(self);
        if self.busy() {
            return;
        }
        let plan = |at: usize| model.plans.get(at).or_else(|| panel.chosen.get(at.checked_sub(model.plans.len())?));
        let due = |at: &usize| {
            let shown = self.shown.get(*at)?;
            let again = shown.of != self.version && !running && (self.quiet >= QUIET || nobody_waits);
            if matches!(shown.made, Made::Not) || again { Some((*at, plan(*at)?.clone())) } else { None }
        };
        let plans: Vec<(usize, Traffic)> = [Some(panel.at), panel.other].iter().flatten().filter_map(due).collect();
        let job = (panel.sight == ReplaySight::Strategies).then(|| panel.form.job(&model.header.topology).ok()).flatten();
        let job = job.filter(|job| self.ranked.as_ref().is_none_or(|ranked| ranked.job != *job || ranked.of != self.version && !running));
        if plans.is_empty() && job.is_none() {
            return;
        }
        let prices = self.prices.as_ref().filter(|(of, _)| *of == self.version).map(|(_, prices)| Arc::clone(prices));
        let order = Order { version: self.version, prices, plans, job };
        if nobody_waits {
            order.carry_out(model, &mut |reply| self.take(reply));
        } else {
            self.work = Work::begin(order, model);
        }
    }

    /// The list of plans; what is known of those that are still there stays.
    fn list(&mut self, model: &Model, panel: &mut ReplayPanel) {
        let listed = Some((model.plan_loads, panel.choices));
        if self.listed == listed {
            return;
        }
        self.listed = listed;
        if model.plans.len() > self.plans {
            panel.wanted = model.plans.last().map(|plan| plan.name.clone());
        }
        self.plans = model.plans.len();
        // What is under way may still read the model, and is of the old numbers.
        self.release();
        let mut before = std::mem::take(&mut self.shown);
        let known = |plan: &Traffic| {
            let same = |shown: &Shown| matches!(&shown.made, Made::Reel(reel) if reel.traffic == *plan);
            let new = || Shown { name: plan.name.clone(), made: Made::Not, of: 0 };
            before.iter().position(same).map_or_else(new, |at| before.swap_remove(at))
        };
        self.shown = model.plans.iter().chain(&panel.chosen).map(known).collect();
        // Numbers have changed: what is under way is of others.
        self.work = None;
        self.made += 1;
    }

    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Prices(version, prices) => self.prices = Some((version, prices)),
            Reply::Made(version, at, made) => {
                if let Some(shown) = self.shown.get_mut(at) {
                    (shown.made, shown.of) = (made, version);
                }
            }
            Reply::Ranked(of, job, ranking) => self.ranked = Some(Ranked { job, ranking, of }),
        }
        self.made += 1;
    }

    /// The thread is gone: what it was asked and has not answered is not asked again.
    fn end(&mut self) {
        let Some(work) = self.work.take() else { return };
        let (plans, version) = work.asked;
        for at in plans {
            let missing = |shown: &&mut Shown| matches!(shown.made, Made::Not) || shown.of != version;
            if let Some(shown) = self.shown.get_mut(at).filter(missing) {
                (shown.made, shown.of) = (Made::Failed("pricing ended without a result".to_owned()), version);
            }
        }
    }

    /// Take what the thread has brought; true if that is something to be seen.
    fn collect(&mut self) -> bool {
        let mut came = false;
        while let Some(work) = &mut self.work {
            match work.ask() {
                Ok(Some(reply)) => self.take(reply),
                Ok(None) => break,
                Err(()) => self.end(),
            }
            came = true;
        }
        came
    }

    /// Wait until the thread has read the model, which is to change.
    pub fn release(&mut self) {
        while let Some(work) = self.work.as_mut().filter(|work| work.reads()) {
            match work.wait() {
                Ok(reply) => self.take(reply),
                Err(()) => self.end(),
            }
        }
    }

    /// Show these, whatever is measured.
    #[cfg(test)]
    pub fn hold(&mut self, reels: Vec<Reel>) {
        let shown = |reel: Reel| Shown { name: reel.traffic.name.clone(), made: Made::Reel(Arc::new(reel)), of: 0 };
        self.shown = reels.into_iter().map(shown).collect();
        (self.held, self.made) = (true, self.made + 1);
    }

    /// The same of strategies.
    #[cfg(test)]
    pub fn hold_ranking(&mut self, job: Job, ranking: Result<Ranking, String>) {
        self.ranked = Some(Ranked { job, ranking, of: 0 });
        self.held = true;
    }

    /// Price what is measured again.
    #[cfg(test)]
    pub fn let_go(&mut self) {
        self.held = false;
        self.listed = None;
    }
}
