//! Strategies side by side: the fastest first, and what would change that.

use super::priced::{Binding, Ground, Priced, Scale, price};
use super::{Job, Strategy, StrategyError};
use crate::fit::Interval;
use crate::plan::{StageTime, Traffic, Warning};
use crate::units::format_seconds;

/// Numbers of slices that are tried where none is asked for.
const SLICES: [u64; 3] = [8, 32, 128];
/// Flows of a sliced strategy at most, to be tried.
const MOST_FLOWS: u64 = 20_000;
/// How much faster or slower a resource is imagined, at most.
const REACH: i32 = 10;
/// Kinds of resources that are imagined faster together, at most.
const TOGETHER: usize = 3;

/// A strategy and what it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub strategy: Strategy,
    pub traffic: Traffic,
    pub seconds: f64,
    /// where the measured time should lie, 95 % of the times
    pub interval: Interval,
    pub stages: Vec<StageTime>,
    /// what binds it, in words
    pub bottleneck: String,
    /// what would make it the first; of the first one, what would make it lose
    pub change: String,
    pub warnings: Vec<Warning>,
}

/// Strategies side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// the fastest first
    pub rows: Vec<Ranked>,
    /// name of those that cannot be used or priced, and why
    pub refused: Vec<(String, String)>,
}

struct Row {
    strategy: Strategy,
    traffic: Traffic,
    priced: Priced,
}

impl Row {
    fn told(self, change: String) -> Ranked {
        let Priced { seconds, interval, stages, say, warnings, .. } = self.priced;
        Ranked { strategy: self.strategy, traffic: self.traffic, seconds, interval, stages, bottleneck: say, change, warnings }
    }
}

/// Price every strategy, with so many slices where something is sliced (`None` tries some numbers and keeps the best of each), and
/// search for what would change the ranking.
///
/// # Errors
/// A job that makes no sense. What a single strategy lacks is told in the ranking.
pub fn rank(job: &Job, ground: &Ground, slices: Option<u64>) -> Result<Ranking, StrategyError> {
    rank_telling(job, ground, slices, &mut |_| {})
}

/// As [`rank`]; `tell` hears what is worked out next.
///
/// # Errors
/// The same.
pub fn rank_telling(job: &Job, ground: &Ground, slices: Option<u64>, tell: &mut dyn FnMut(&str)) -> Result<Ranking, StrategyError> {
    let (rows, refused) = priced(job, ground, slices, tell)?;
    let imagined = Imagined { job, ground, rows: &rows };
    let change = |at: usize| {
        tell(&format!("what would change the ranking: {} of {}", at + 1, rows.len()));
        imagined.change(at)
    };
    let changes: Vec<String> = (0..rows.len()).map(change).collect();
    Ok(Ranking { rows: rows.into_iter().zip(changes).map(|(row, change)| row.told(change)).collect(), refused })
}

/// As [`rank`], without that search.
///
/// # Errors
/// The same.
pub fn order(job: &Job, ground: &Ground, slices: Option<u64>) -> Result<Ranking, StrategyError> {
    let (rows, refused) = priced(job, ground, slices, &mut |_| {})?;
    Ok(Ranking { rows: rows.into_iter().map(|row| row.told(String::new())).collect(), refused })
}

/// Rows, the fastest first, and what cannot be used or priced.
type Found = (Vec<Row>, Vec<(String, String)>);

fn priced(job: &Job, ground: &Ground, slices: Option<u64>, tell: &mut dyn FnMut(&str)) -> Result<Found, StrategyError> {
    job.check().map_err(StrategyError::Job)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut refused = Vec::new();
    let flows = |slices: u64| slices.saturating_mul(job.engines.len() as u64) <= MOST_FLOWS;
    if let Some(slices) = slices.filter(|&slices| !flows(slices)) {
        let engines = job.engines.len();
        return Err(StrategyError::Job(format!(
            "{slices} slices for {engines} engines: {MOST_FLOWS} flows at most, so {} slices",
            MOST_FLOWS / engines as u64
        )));
    }
    let all = Strategy::all(slices.unwrap_or(SLICES[0]));
    let count = all.len();
    for (number, strategy) in all.into_iter().enumerate() {
        tell(&format!("pricing {} of {count}: {}", number + 1, strategy.name()));
        if strategy.slices().is_some() && job.engines.len() < 2 {
            refused.push((strategy.name(), "one engine: nothing is passed on".to_owned()));
            continue;
        }
        let mut best: Option<Row> = None;
        let tried = match (slices, strategy.slices()) {
            (None, Some(_)) => SLICES.into_iter().filter(|&slices| slices == SLICES[0] || flows(slices)).collect(),
            _ => vec![strategy.slices().unwrap_or(1)],
        };
        let mut why = None;
        for strategy in tried.into_iter().map(|slices| strategy.sliced(slices)) {
            let row = strategy.traffic(job).map_err(|error| error.to_string()).and_then(|traffic| {
                let priced = price(strategy, job, &traffic, ground, None).map_err(|error| error.to_string())?;
                Ok(Row { strategy, traffic, priced })
            });
            match row {
                Ok(row) => best = Some(best.take().filter(|best| best.priced.seconds <= row.priced.seconds).unwrap_or(row)),
                Err(error) => why = Some(error),
            }
        }
        match best {
            // Two that move the same bytes the same way are one.
            Some(row) if rows.iter().any(|other| other.traffic.flows == row.traffic.flows) => {}
            Some(row) => rows.push(row),
            None => refused.extend(why.map(|why| (strategy.name(), why))),
        }
    }
    rows.sort_by(|a, b| a.priced.seconds.total_cmp(&b.priced.seconds));
    Ok((rows, refused))
}

/// The same strategies on other machines.
struct Imagined<'a> {
    job: &'a Job,
    ground: &'a Ground<'a>,
    rows: &'a [Row],
}

impl Imagined<'_> {
    /// What it would take for a strategy to become the first, or for the first to lose.
    fn change(&self, at: usize) -> String {
        let Some(binding) = &self.rows[at].priced.binding else { return String::new() };
        if self.rows.len() < 2 {
            return String::new();
        }
        if at == 0 { self.loses(binding) } else { self.wins(at, binding) }
    }

    /// The price of a strategy on a machine with some resources `factor` times as fast, and one that is faster there, if any is.
    fn there(&self, of: &Binding, factor: f64, whose: usize) -> Option<(Priced, Option<usize>)> {
        let scale = Scale { of, factor };
        let priced = |row: &Row| price(row.strategy, self.job, &row.traffic, self.ground, Some(scale)).ok();
        let own = priced(&self.rows[whose])?;
        let faster = |at: usize| {
            let row = &self.rows[at];
            // Those that do not use them are as fast as they were.
            let seconds = if row.priced.uses(of) { priced(row)?.seconds } else { row.priced.seconds };
            (seconds < own.seconds).then_some(at)
        };
        let beaten = (0..self.rows.len()).filter(|&at| at != whose).find_map(faster);
        Some((own, beaten))
    }

    /// The factor nearest to 1, up or down by steps of two and then closer, from which on a condition holds; to two per cent.
    fn factor(up: bool, holds: impl Fn(f64) -> bool) -> Option<f64> {
        let step = |power: f64| 2_f64.powf(if up { power } else { -power });
        let mut far = (1..=REACH).map(f64::from).find(|&power| holds(step(power)))?;
        let mut near = far - 1.0;
        while far - near > 0.03 {
            let middle = f64::midpoint(near, far);
            if holds(step(middle)) { far = middle } else { near = middle }
        }
        Some(step(far))
    }

    fn wins(&self, at: usize, binding: &Binding) -> String {
        let mut of = binding.clone();
        let fastest = 2_f64.powi(REACH);
        let mut left = String::new();
        for _ in 0..TOGETHER {
            let Some((own, beaten)) = self.there(&of, fastest, at) else { break };
            if beaten.is_none() {
                let first = |factor: f64| self.there(&of, factor, at).is_some_and(|(_, beaten)| beaten.is_none());
                return Self::factor(true, first)
                    .map_or_else(String::new, |factor| format!("would be the first if {} {}", of.names(), of.would(factor)));
            }
            left = format_seconds(own.seconds);
            // Something else binds it then; both together?
            let Some(next) = own.binding.as_ref().filter(|next| !next.ids.is_subset(&of.ids)) else { break };
            left = format!("{left} ({})", own.say);
            match of.and(next) {
                Some(both) => of = both,
                None => break,
            }
        }
        format!("would not be the first however fast {} were: it would still take {left}", of.names())
    }

    fn loses(&self, binding: &Binding) -> String {
        let other = |factor: f64| self.there(binding, factor, 0).and_then(|(_, beaten)| beaten);
        match Self::factor(false, |factor| other(factor).is_some()) {
            Some(factor) => {
                let next = other(factor).map_or_else(String::new, |at| self.rows[at].strategy.name());
                format!("would no longer be the first if {} {}: then {next}", binding.names(), binding.would(factor))
            }
            None => format!("stays the first however slow {} is", binding.names()),
        }
    }
}
