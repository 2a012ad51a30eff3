//! An engine that does as it is told: rates by pair, something shared, hangs; on a clock of its own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use crate::sample::{EngineKind, MoverKind};
use crate::sweep::made::on;
use crate::topology::Topology;
use crate::transport::{Absent, End, Engine, Order, ProbeReport, Repeat, Report, Setup, TransportError};

/// What several flows share: those from one of these ranks to one of those.
pub struct Trunk {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
    /// bytes per second, for all together
    pub rate: f64,
}

pub struct Told {
    pub topology: Topology,
    /// pairs that do not answer
    pub hang: Vec<(usize, usize)>,
    /// the rank that is lost with the first of them
    pub lose: Option<usize>,
    /// ranks that take no part
    pub absent: Vec<Absent>,
    /// bytes per second of each pair alone; 1 ms a message, whatever its size, without
    pub rate: Option<Box<dyn Fn(usize, usize) -> f64>>,
    pub trunks: Vec<Trunk>,
    /// pairs that any company slows down to a share of their rate
    pub beside: Vec<((usize, usize), f64)>,
    /// a repeat of a pair takes up to this share longer, by chance
    pub noise_of: Box<dyn Fn(usize, usize) -> f64>,
    /// seconds of a message besides its bytes
    pub alpha: f64,
    /// timed warm-ups of each probe
    pub warmups: u32,
    pub rng: fastrand::Rng,
    /// has a clock of its own
    pub clock: Option<Rc<Cell<f64>>>,
    pub reports: VecDeque<Report>,
    pub setups: Rc<RefCell<Vec<Setup>>>,
}

/// One host, one millisecond a message.
pub fn told(world: usize) -> Told {
    Told {
        topology: on(&[world]),
        hang: Vec::new(),
        lose: None,
        absent: Vec::new(),
        rate: None,
        trunks: Vec::new(),
        beside: Vec::new(),
        noise_of: Box::new(|_, _| 0.0),
        alpha: 0.0,
        warmups: 0,
        rng: fastrand::Rng::with_seed(1),
        clock: None,
        reports: VecDeque::new(),
        setups: Rc::default(),
    }
}

impl Told {
    /// Seconds of a message of each flow of a round.
    fn seconds(&self, flows: &[(usize, usize)], of: (usize, usize), bytes: u64) -> f64 {
        let Some(rate) = &self.rate else { return 1e-3 };
        let on = |trunk: &Trunk, flow: &(usize, usize)| trunk.from.contains(&flow.0) && trunk.to.contains(&flow.1);
        let shares = self.trunks.iter().filter(|trunk| on(trunk, &of));
        let share = shares.map(|trunk| trunk.rate / flows.iter().filter(|flow| on(trunk, flow)).count() as f64);
        let beside = self.beside.iter().find(|&&(pair, _)| pair == of && flows.len() > 1).map_or(1.0, |&(_, share)| share);
        self.alpha + bytes as f64 / (share.fold(rate(of.0, of.1), f64::min) * beside)
    }
}

impl Engine for Told {
    fn kind(&self) -> EngineKind {
        EngineKind::Threads
    }
    fn topology(&self) -> &Topology {
        &self.topology
    }
    fn movers(&self) -> &'static [MoverKind] {
        &[MoverKind::Memcpy]
    }
    fn software(&self) -> String {
        "told".to_owned()
    }
    fn prepare(&mut self, setup: &Setup) -> Result<Vec<Absent>, TransportError> {
        self.setups.borrow_mut().push(setup.clone());
        Ok(self.absent.clone())
    }
    fn start(&mut self, round: &[Order]) -> Result<(), TransportError> {
        let flows: Vec<(usize, usize)> = round.iter().flat_map(|order| order.probe.flows()).collect();
        let mut longest = 0.0_f64;
        for order in round {
            let probe = &order.probe;
            if let (true, Some(rank)) = (self.hang.contains(&probe.flows()[0]), self.lose) {
                self.reports.push_back(Report::Lost { rank, reason: "told to".to_owned() });
                self.lose = None;
            }
            let mut report = ProbeReport::nothing(probe.id, End::Complete);
            for (flow, &of) in (0..).zip(&probe.flows()) {
                if self.hang.contains(&of) {
                    report.end = End::Timeout("told to".to_owned());
                    longest = longest.max(order.timeout);
                    continue;
                }
                let one = self.seconds(&flows, of, probe.bytes);
                let mut spent = 0.0;
                for number in 0..self.warmups + probe.repeats {
                    let warmup = number < self.warmups;
                    let repeat = if warmup { number } else { number - self.warmups };
                    let seconds = one * (1.0 + (self.noise_of)(of.0, of.1) * self.rng.f64());
                    spent += seconds;
                    report.repeats.push(Repeat { flow, repeat, warmup, messages: 1, seconds, ack_seconds: 0.0 });
                }
                // At least one message before the timed ones, as real engines have it.
                longest = longest.max(spent + one * f64::from(order.warmup.max(1)));
            }
            self.reports.push_back(Report::Probe(report));
        }
        if let Some(clock) = &self.clock {
            clock.set(clock.get() + longest);
        }
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Vec<Report> {
        self.reports.drain(..).collect()
    }
    fn finish(&mut self) {}
    fn clock(&self) -> Option<f64> {
        self.clock.as_ref().map(|clock| clock.get())
    }
}
