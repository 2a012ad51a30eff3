//! What the Findings tab shows of a model: its diagnosis, made anew when samples have changed.
//!
//! Of a thousand ranks that takes seconds, so no frame waits for it: a thread reads the model, then the rules look at what it
//! read while samples come in again. Few ranks take less than starting a thread would disturb, and are done between probes.

mod panel;
#[cfg(test)]
mod tests;
mod told;
mod words;

pub use panel::{FindingsPanel, FindingsSight, Lit};
pub use told::{Other, Seen, Told};
pub use words::{direction, mark};

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::draw::running;
use super::view::Key;
use crate::sample::Pattern;
use crate::session::{Change, Model, measured};
use crate::topology::Efficiency;

/// Ranks up to which the first diagnosis is made at once.
const FEW: usize = 64;
/// One that took no longer is made within a frame.
const AT_ONCE: Duration = Duration::from_millis(30);
/// While samples come in, seconds between two diagnoses that are made within a frame.
const WAIT: f64 = 3.0;
/// Seconds without news before a thread reads the model: who plays a session or steps through it goes first.
const QUIET: f64 = 0.3;

/// The last diagnosis, and the one that is being made.
pub struct Desk {
    efficiency: Efficiency,
    /// what is measured is compared with it
    other: Option<Arc<Other>>,
    told: Option<Told>,
    /// counts diagnoses
    made: u64,
    /// counts changes of what a diagnosis is made from
    version: u64,
    /// version that the last one is of
    of: Option<u64>,
    work: Option<Work>,
    /// how long the last one took
    took: Option<Duration>,
    /// seconds since it was begun, and since the last change
    waited: f64,
    quiet: f64,
    /// tests tell what was found
    #[cfg(test)]
    held: bool,
}

/// A diagnosis under way on its thread.
struct Work {
    version: u64,
    begun: Instant,
    replies: Receiver<Reply>,
    /// the thread still reads the model
    reads: bool,
}

enum Reply {
    /// the model has been read
    Read,
    Told(Box<Told>),
}

impl Desk {
    /// Nothing found yet.
    pub fn new(efficiency: &Efficiency) -> Self {
        Self {
            efficiency: *efficiency,
            other: None,
            told: None,
            made: 0,
            version: 0,
            of: None,
            work: None,
            took: None,
            waited: f64::INFINITY,
            quiet: f64::INFINITY,
            #[cfg(test)]
            held: false,
        }
    }

    /// Compare what is measured with another session.
    pub fn compare_with(&mut self, other: Other) {
        self.other = Some(Arc::new(other));
        self.changed();
    }

    /// The session that is compared with.
    pub fn other(&self) -> Option<&Other> {
        self.other.as_deref()
    }

    /// How many diagnoses there were.
    pub const fn made(&self) -> u64 {
        self.made
    }

    /// What was found last, and by what.
    pub const fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }

    /// True if nothing has changed since the last diagnosis.
    pub fn current(&self) -> bool {
        #[cfg(test)]
        if self.held {
            return true;
        }
        self.of == Some(self.version)
    }

    /// What was found, where it is what a matrix of this key shows: while samples come in, what stands out is told instead.
    pub fn speaks(&self, model: &Model, key: Key) -> Option<&Told> {
        let told = self.told.as_ref().filter(|_| self.current())?;
        let same = key.pattern == Pattern::Peer && key.bytes == told.seen.bytes && told.seen.pairs > 0;
        (same && !running(model)).then_some(told)
    }

    /// True while one is being made.
    pub const fn busy(&self) -> bool {
        self.work.is_some()
    }

    /// True while the thread reads the model, which can't change meanwhile.
    pub fn reads(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.reads)
    }

    /// Take note of what an event changed.
    pub fn follow(&mut self, change: &Change) {
        match change {
            Change::Nothing | Change::State => return,
            Change::Cleared | Change::Placed => self.told = None,
            Change::Cells { .. } | Change::Group { .. } => {}
        }
        self.changed();
    }

    /// Ranks were lost, a test has brought something, or the model is another one.
    pub const fn changed(&mut self) {
        self.version += 1;
        self.quiet = 0.0;
    }

    /// Let time go by; true if something new is to be seen or to be begun.
    pub fn tick(&mut self, seconds: f64, world: usize, running: bool) -> bool {
        self.waited += seconds;
        self.quiet += seconds;
        let came = self.collect();
        came || self.due(world, running)
    }

    /// True if a diagnosis should begin.
    fn due(&self, world: usize, running: bool) -> bool {
        if self.current() || self.busy() {
            return false;
        }
        if self.at_once(world) { !running || self.waited >= WAIT } else { !running && self.quiet >= QUIET }
    }

    fn at_once(&self, world: usize) -> bool {
        self.took.map_or(world <= FEW, |took| took <= AT_ONCE)
    }

    /// Bring it up to date for a frame; where nobody waits, at once and whatever it takes.
    pub fn settle(&mut self, model: &Arc<Model>, running: bool, nobody_waits: bool) {
        self.collect();
        if nobody_waits && !self.current() {
            self.make(model);
        } else if self.due(model.world(), running) {
            if self.at_once(model.world()) { self.make(model) } else { self.begin(model) }
        }
    }

    /// Make one now.
    pub fn make(&mut self, model: &Model) {
        let begun = Instant::now();
        self.tell(Told::of(&measured(model, &self.efficiency), self.other.as_deref(), &self.efficiency));
        (self.of, self.took, self.waited) = (Some(self.version), Some(begun.elapsed()), 0.0);
    }

    fn tell(&mut self, told: Told) {
        self.told = Some(told);
        self.made += 1;
    }

    fn begin(&mut self, model: &Arc<Model>) {
        let (sender, replies) = channel();
        let (model, other, efficiency) = (Arc::clone(model), self.other.clone(), self.efficiency);
        let work = move || {
            let measured = measured(&model, &efficiency);
            // From here on samples can come in again. Who asked may be gone: then nobody wants an answer.
            drop(model);
            if sender.send(Reply::Read).is_ok() {
                let _ = sender.send(Reply::Told(Box::new(Told::of(&measured, other.as_deref(), &efficiency))));
            }
        };
        self.waited = 0.0;
        let begun = thread::Builder::new().name("diagnose".to_owned()).spawn(work);
        // Without a thread there is no diagnosis now; the next change asks again.
        self.of = begun.is_err().then_some(self.version);
        self.work = begun.ok().map(|_| Work { version: self.version, begun: Instant::now(), replies, reads: true });
    }

    /// Take what the thread has brought; true if that is a diagnosis, or that there will be none.
    fn collect(&mut self) -> bool {
        while let Some(work) = &self.work {
            match work.replies.try_recv() {
                Ok(reply) => {
                    if self.take(reply) {
                        return true;
                    }
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return self.give_up(),
            }
        }
        false
    }

    /// Wait until the thread has read the model, which is to change.
    pub fn release(&mut self) {
        while let Some(work) = self.work.as_ref().filter(|work| work.reads) {
            match work.replies.recv() {
                Ok(reply) => {
                    self.take(reply);
                }
                Err(_) => {
                    self.give_up();
                }
            }
        }
    }

    fn take(&mut self, reply: Reply) -> bool {
        match reply {
            Reply::Read => {
                if let Some(work) = &mut self.work {
                    work.reads = false;
                }
                false
            }
            Reply::Told(told) => {
                if let Some(work) = self.work.take() {
                    self.took = Some(work.begun.elapsed());
                    self.of = Some(work.version);
                }
                self.tell(*told);
                true
            }
        }
    }

    /// The thread is gone without an answer: what it was asked is not asked again.
    fn give_up(&mut self) -> bool {
        self.of = self.work.take().map(|work| work.version);
        true
    }

    /// Show this, whatever is measured.
    #[cfg(test)]
    pub fn hold(&mut self, told: Option<Told>) {
        (self.told, self.held) = (told, true);
        self.made += 1;
    }

    /// How often what a diagnosis is made from has changed.
    #[cfg(test)]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Diagnose again what is measured.
    #[cfg(test)]
    pub fn let_go(&mut self) {
        self.held = false;
        self.changed();
    }
}
