//! What is broken, on purpose.

/// The fault of a fabric file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FaultKind {
    /// the rate times a factor, always: part of the truth
    Slow { factor: f64 },
    /// now and then, with this probability a message, the rate times a factor
    Flaky { probability: f64, factor: f64 },
    /// nothing ever arrives
    Dead,
    /// the sending rank stops answering after so many of its probes
    Hang { after: u64 },
    /// the sending rank's device is trained to fewer lanes than it has: a factor on the rate of all that passes its slot
    Narrow { lanes: u32, factor: f64 },
}

/// A fault and the flows that it strikes: from some ranks to some ranks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub kind: FaultKind,
    /// ranks, ascending; `None` for all
    pub from: Option<Vec<usize>>,
    pub to: Option<Vec<usize>>,
}

impl Fault {
    pub fn strikes(&self, from: usize, to: usize) -> bool {
        let holds = |ranks: &Option<Vec<usize>>, rank: usize| ranks.as_ref().is_none_or(|ranks| ranks.binary_search(&rank).is_ok());
        from != to && holds(&self.from, from) && holds(&self.to, to)
    }
}

/// How a link misbehaves beyond its true rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkFault {
    /// nothing ever arrives
    pub dead: bool,
    /// probability that a message is slowed, and the factor on its rate then
    pub flaky: Option<(f64, f64)>,
}
