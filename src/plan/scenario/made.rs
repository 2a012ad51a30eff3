//! A row of a table, as plans.

use std::collections::BTreeMap;

use super::Scenario;
use crate::fit::median;
use crate::plan::build::{ElementSizes, FirstHolder, Settings, plans};
use crate::plan::files::BYTES_PER_PEER;
use crate::plan::map::{Maps, split};
use crate::plan::strategy::{Job, Strategy};
use crate::plan::{Batch, Endpoints, Flow, Parameter, Stage, Staged, Traffic, Transfers};

/// Bytes of an element of a strided matrix: bf16.
pub(super) const ELEMENT: u64 = 2;

/// One row: what it is called, and what is run for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub scenario: Scenario,
    /// as the table calls it
    pub pattern: String,
    /// the most ranks that one rank sends to or receives from, or that take part side by side
    pub width: usize,
    /// of each transfer, bytes; of a strided matrix and of a model all of it, of an incast what each sender sends
    pub bytes: u64,
    /// the staging budget that the row is of, bytes; `None` for the method's own
    pub budget: Option<u64>,
    pub(super) made: Made,
}

/// What is run, before a method cuts it into messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Made {
    /// so many ranks; plans of transfers of [`Case::bytes`] that run at the same time, one plan after another
    Flows(usize, Vec<Vec<(usize, usize)>>),
    Sync(Strategy, Job),
    /// rows and columns, cut over these ranks
    Strided(u64, u64, Vec<usize>),
}

/// One of the plans of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// what tells it from the row's others; empty if there are none
    pub part: String,
    pub transfers: Transfers,
    /// that it moves, copies within ranks included
    pub bytes: u64,
}

impl Case {
    /// Its plans, where a message has at most so many bytes (`None`: no limit, as with windows). A strided block is packed into
    /// messages in any case.
    ///
    /// # Errors
    /// What the planner refuses.
    pub fn plans(&self, message: Option<u64>) -> Result<Vec<Plan>, String> {
        let message = self.budget.or(message);
        let one = |transfers: Transfers, bytes: u64| vec![Plan { part: String::new(), transfers, bytes }];
        Ok(match &self.made {
            Made::Flows(world, plans) => {
                let part = |flows: &[(usize, usize)]| match flows {
                    &[(from, to)] if plans.len() > 1 => format!("{from}→{to}"),
                    _ => String::new(),
                };
                let plan = |flows: &Vec<(usize, usize)>| {
                    let traffic = traffic(*world, flows, self.bytes, message);
                    Plan { part: part(flows), bytes: traffic.bytes(), transfers: Transfers::Traffic(traffic) }
                };
                plans.iter().map(plan).collect()
            }
            Made::Sync(strategy, job) => {
                let job = Job { message, ..job.clone() };
                let traffic = strategy.traffic(&job).map_err(|error| error.to_string())?;
                let bytes = traffic.bytes();
                one(Transfers::Traffic(traffic), bytes)
            }
            Made::Strided(rows, columns, ranks) => {
                let batch = strided(*rows, *columns, ranks, message.unwrap_or(BYTES_PER_PEER))?;
                one(Transfers::Batch(batch), rows * columns * ELEMENT)
            }
        })
    }

    /// What the row says of times of its plans, seconds: milliseconds, or GB/s of all transfers together, the median over the plans.
    pub fn figure(&self, bytes: &[u64], seconds: &[f64]) -> f64 {
        if self.scenario.table().is_time() {
            return median(&mut seconds.to_vec()) * 1e3;
        }
        median(&mut bytes.iter().zip(seconds).map(|(&bytes, seconds)| bytes as f64 / seconds / 1e9).collect::<Vec<_>>())
    }
}

/// Transfers that begin together, each of memory of its own.
fn traffic(ranks: usize, flows: &[(usize, usize)], bytes: u64, message: Option<u64>) -> Traffic {
    let messages = message.map_or(1, |most| bytes.div_ceil(most.max(1)).max(1));
    let flow = |&(from, to): &(usize, usize)| Flow {
        stage: 0,
        from,
        to,
        bytes,
        messages: u32::try_from(messages).unwrap_or(u32::MAX),
        after: Vec::new(),
        offset: None,
        staged: Staged::default(),
    };
    Traffic {
        ranks,
        stages: vec![Stage { name: "at once".to_owned(), waits: true }],
        flows: flows.iter().map(flow).collect(),
        chunks: messages.saturating_mul(flows.len() as u64),
        ..Traffic::default()
    }
}

/// A matrix that is held in rows, to be held in columns.
fn strided(rows: u64, columns: u64, ranks: &[usize], bytes_per_peer: u64) -> Result<Batch, String> {
    const NAME: &str = "matrix";
    let count = ranks.len().max(1) as u64;
    let even = |size: u64| vec![size / count; ranks.len()];
    let cut = |axis: usize, size: u64| split(&[rows, columns], axis, &even(size)).map_err(|error| error.to_string());
    let maps = |map| Maps::from([(NAME.to_owned(), map)]);
    let (source, target) = (maps(cut(0, rows)?), maps(cut(1, columns)?));
    let held: BTreeMap<i64, usize> = (0..).zip(ranks.iter().copied()).collect();
    let endpoints = Endpoints { source: held.clone(), target: held };
    let settings = Settings { endpoints: Some(&endpoints), element_size: ElementSizes::all(ELEMENT), ..Settings::new(&FirstHolder) };
    let made = plans(&target, &source, &settings).map_err(|error| error.to_string())?;
    let parameters = made.into_iter().map(|(name, plan, _)| Parameter { name, plan, element_size: ELEMENT }).collect();
    Ok(Batch { parameters, endpoints, bytes_per_peer })
}
