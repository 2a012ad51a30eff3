use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use super::{Made, Reel};
use crate::plan::price::Calibrated;
use crate::plan::strategy::{Ground, Job, Ranking, rank};
use crate::plan::{Traffic, replay};
use crate::session::{Model, prices};

/// What is to be priced.
#[derive(Debug)]
pub struct Order {
    /// of the samples
    pub version: u64,
    /// absent where they must be made of the model first
    pub prices: Option<Arc<Calibrated>>,
    /// plans by their numbers
    pub plans: Vec<(usize, Traffic)>,
    /// whose strategies are wanted
    pub job: Option<Job>,
}

/// What came of it, with the version that it is of. Prices come first; from then on the model is not read any more.
#[derive(Debug)]
pub enum Reply {
    Prices(u64, Arc<Calibrated>),
    Made(u64, usize, Made),
    Ranked(u64, Job, Result<Ranking, String>),
}

impl Order {
    /// Price everything, telling each at once.
    pub fn carry_out(self, model: &Model, tell: &mut impl FnMut(Reply)) {
        let prices = self.prices.clone().unwrap_or_else(|| Arc::new(prices(model)));
        self.price(&prices, tell);
    }

    fn price(self, prices: &Arc<Calibrated>, tell: &mut impl FnMut(Reply)) {
        tell(Reply::Prices(self.version, Arc::clone(prices)));
        for (at, traffic) in self.plans {
            let made = match replay(&traffic, &**prices) {
                Ok(replay) => Made::Reel(Arc::new(Reel::new(traffic, replay))),
                Err(why) => Made::Failed(why.to_string()),
            };
            tell(Reply::Made(self.version, at, made));
        }
        if let Some(job) = self.job {
            let ranking = rank(&job, &Ground { prices: &**prices, inside: None }, None).map_err(|why| why.to_string());
            tell(Reply::Ranked(self.version, job, ranking));
        }
    }
}

/// Pricing under way on its thread.
#[derive(Debug)]
pub struct Work {
    replies: Receiver<Reply>,
    /// plans that were asked for, and the version of the samples
    pub asked: (Vec<usize>, u64),
    /// the thread still reads the model
    reads: bool,
}

impl Work {
    /// Begin; `None` where there can be no thread now.
    pub fn begin(order: Order, model: &Arc<Model>) -> Option<Self> {
        let (sender, replies) = channel();
        let asked = (order.plans.iter().map(|(at, _)| *at).collect(), order.version);
        let model = Arc::clone(model);
        let work = move || {
            let made = order.prices.clone().unwrap_or_else(|| Arc::new(prices(&model)));
            // From here on samples can come in again. Who asked may be gone: then nobody wants an answer.
            drop(model);
            order.price(&made, &mut |reply| {
                let _ = sender.send(reply);
            });
        };
        thread::Builder::new().name("replay".to_owned()).spawn(work).ok().map(|_| Self { replies, asked, reads: true })
    }

    pub const fn reads(&self) -> bool {
        self.reads
    }

    fn heard(&mut self, reply: Reply) -> Reply {
        if matches!(reply, Reply::Prices(..)) {
            self.reads = false;
        }
        reply
    }

    /// What has come, if anything has; an error when nothing will any more.
    pub fn ask(&mut self) -> Result<Option<Reply>, ()> {
        match self.replies.try_recv() {
            Ok(reply) => Ok(Some(self.heard(reply))),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(()),
        }
    }

    /// The next thing that comes.
    pub fn wait(&mut self) -> Result<Reply, ()> {
        self.replies.recv().map(|reply| self.heard(reply)).map_err(|_| ())
    }
}
