//! Which rows a scenario has on these ranks.

use super::made::{ELEMENT, Made};
use super::{Amounts, BUDGETS, Case, Ground, Lack, SENDERS, Scenario};
use crate::plan::strategy::{Held, Job, Strategy};
use crate::units::format_size;

/// Rows, and those that cannot be.
type Rows = (Vec<Case>, Vec<Lack>);
/// Who sends to whom, by plan, and the width that a table tells.
type Shape = (String, usize, Vec<Vec<(usize, usize)>>);

impl Scenario {
    /// Its rows on these ranks, and those that would need others.
    pub fn cases(self, ground: &Ground, amounts: &Amounts) -> Rows {
        match self {
            Self::Strided { across } => self.strided(ground, amounts, across),
            Self::Sync(strategy) => lacking(self.name(), self.sync(strategy, ground, amounts).map(|case| vec![case])),
            Self::Incast => self.incast(ground, amounts),
            Self::Staging => self.staging(ground, amounts),
            _ => {
                let rows = self.shape(ground).map(|(pattern, width, plans)| {
                    let row = |&bytes: &u64| {
                        let made = Made::Flows(ground.world, plans.clone());
                        Case { scenario: self, pattern: pattern.clone(), width, bytes, budget: None, made }
                    };
                    amounts.sizes.iter().map(row).collect()
                });
                lacking(self.name(), rows)
            }
        }
    }

    /// Transfers of one size.
    fn shape(self, ground: &Ground) -> Result<Shape, String> {
        let name = self.name();
        let at_once = |name: String, width: usize, flows: Vec<(usize, usize)>| Ok((name, width, vec![flows]));
        let all = |from: &[usize], to: &[usize]| {
            let each = from.iter().flat_map(|&from| to.iter().map(move |&to| (from, to)));
            each.collect::<Vec<_>>()
        };
        match self {
            Self::Peer { across: false } => {
                let host = host(ground, 2)?;
                let pairs: Vec<_> = all(host, host).into_iter().filter(|(from, to)| from != to).map(|pair| vec![pair]).collect();
                Ok((format!("{name} (median of {})", pairs.len()), 1, pairs))
            }
            Self::Peer { across: true } => {
                let (near, far) = hosts(ground, 1)?;
                let there = near.iter().zip(far).map(|(&near, &far)| vec![(near, far)]);
                let back = near.iter().zip(far).map(|(&near, &far)| vec![(far, near)]);
                let pairs: Vec<_> = there.chain(back).collect();
                Ok((format!("{name} (median of {})", pairs.len()), 1, pairs))
            }
            Self::Pairs { across: false } => {
                let pairs: Vec<_> = host(ground, 2)?.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                at_once(name, pairs.len(), pairs)
            }
            Self::Pairs { across: true } => {
                let (near, far) = hosts(ground, 1)?;
                let pairs: Vec<_> = near.iter().copied().zip(far.iter().copied()).collect();
                at_once(name, pairs.len(), pairs)
            }
            Self::FanOut { across: false } => {
                let host = host(ground, 2)?;
                at_once(name, host.len() - 1, all(&host[..1], &host[1..]))
            }
            Self::FanIn { across: false } => {
                let host = host(ground, 2)?;
                at_once(name, host.len() - 1, all(&host[1..], &host[..1]))
            }
            Self::FanOut { across: true } => {
                let (near, far) = hosts(ground, 1)?;
                at_once(name, far.len(), all(&near[..1], far))
            }
            Self::FanIn { across: true } => {
                let (near, far) = hosts(ground, 1)?;
                at_once(name, far.len(), all(far, &near[..1]))
            }
            Self::Bipartite { width, across: false } => {
                let width = width.unwrap_or(1);
                let host = host(ground, 2 * width)?;
                at_once(named(width, false), width, all(&host[..width], &host[width..2 * width]))
            }
            Self::Bipartite { width: Some(width), across: true } => {
                let (near, far) = hosts(ground, width)?;
                at_once(named(width, true), width, all(&near[..width], &far[..width]))
            }
            Self::Bipartite { width: None, across: true } => {
                let (near, far) = hosts(ground, 1)?;
                at_once(name, near.len().min(far.len()), all(near, far))
            }
            Self::Ring { across } => {
                let order: Vec<usize> = if across {
                    let (near, far) = hosts(ground, 1)?;
                    near.iter().zip(far).flat_map(|(&near, &far)| [near, far]).collect()
                } else {
                    host(ground, 2)?.to_vec()
                };
                let next = order.iter().cycle().skip(1);
                at_once(name, order.len(), order.iter().copied().zip(next.copied()).collect())
            }
            Self::MixedFanOut => {
                let (near, far) = hosts(ground, 1)?;
                let others = [&near[1..], far].concat();
                let pattern = format!("{name} ({} same host + {} remote)", near.len() - 1, far.len());
                at_once(pattern, others.len(), all(&near[..1], &others))
            }
            Self::Strided { .. } | Self::Sync(_) | Self::Incast | Self::Staging => Err(format!("{name} is no set of transfers")),
        }
    }

    fn strided(self, ground: &Ground, amounts: &Amounts, across: bool) -> Rows {
        let ranks = if across { hosts(ground, 1).map(|(near, far)| [near, far].concat()) } else { host(ground, 2).map(<[usize]>::to_vec) };
        let pattern = format!("{}strided row→col (total)", if across { "x" } else { "" });
        let row = |bytes: u64, ranks: &[usize]| {
            let (rows, columns) = matrix(bytes / ELEMENT, ranks.len() as u64).ok_or_else(|| {
                format!("{}: it cannot be cut over {} ranks both ways; give more --bytes", format_size(bytes), ranks.len())
            })?;
            let made = Made::Strided(rows, columns, ranks.to_vec());
            let bytes = rows * columns * ELEMENT;
            Ok(Case { scenario: self, pattern: pattern.clone(), width: ranks.len(), bytes, budget: None, made })
        };
        let rows = ranks.and_then(|ranks| [amounts.model / 16, amounts.model / 4].into_iter().map(|bytes| row(bytes, &ranks)).collect());
        lacking(self.name(), rows)
    }

    fn sync(self, strategy: Strategy, ground: &Ground, amounts: &Amounts) -> Result<Case, String> {
        let (trainers, engines) = hosts(ground, 1)?;
        if amounts.model == 0 {
            return Err("a model of no bytes; give more --bytes".to_owned());
        }
        let job = Job {
            hosts: ground.numbers(),
            bytes: amounts.model,
            trainers: trainers.to_vec(),
            engines: engines.to_vec(),
            held: Held::Whole,
            message: None,
        };
        let (trainer, engine) = (trainers[0], engines[0]);
        let pattern = match strategy {
            Strategy::Direct => format!("direct: all engines from {trainer}"),
            Strategy::Relay => format!("relay: {trainer} → {engine}, then inside"),
            Strategy::ShardedDirect => "sharded direct".to_owned(),
            Strategy::ShardedPlan => "sharded, then a plan inside".to_owned(),
            Strategy::ShardedRing => "sharded, then a ring of messages".to_owned(),
            other => other.name(),
        };
        let (width, bytes) = (engines.len(), amounts.model);
        Ok(Case { scenario: self, pattern, width, bytes, budget: None, made: Made::Sync(strategy, job) })
    }

    fn incast(self, ground: &Ground, amounts: &Amounts) -> Rows {
        let mut rows = Rows::default();
        let (receiver, others) = match hosts(ground, 1) {
            Ok((near, _)) => {
                let others: Vec<usize> = ground.hosts.iter().filter(|host| host.as_slice() != near).flatten().copied().collect();
                (near[0], others)
            }
            Err(why) => return lacking(self.name(), Err(why)),
        };
        for senders in SENDERS {
            let pattern = format!("{senders} → 1");
            if others.len() < senders {
                let why = format!("needs {senders} ranks on other hosts than rank {receiver}'s; there are {}", others.len());
                rows.1.push(Lack { pattern: format!("{} {pattern}", self.name()), why });
                continue;
            }
            let flows = others[..senders].iter().map(|&from| (from, receiver)).collect();
            let (bytes, made) = (amounts.model / 8, Made::Flows(ground.world, vec![flows]));
            rows.0.push(Case { scenario: self, pattern, width: senders, bytes, budget: None, made });
        }
        rows
    }

    fn staging(self, ground: &Ground, amounts: &Amounts) -> Rows {
        let rows = [("direct", Strategy::Direct), ("sharded direct", Strategy::ShardedDirect)].into_iter().map(|(name, strategy)| {
            let case = self.sync(strategy, ground, amounts)?;
            let row = |budget| Case { pattern: name.to_owned(), budget: Some(budget), ..case.clone() };
            Ok(BUDGETS.into_iter().map(row).collect::<Vec<_>>())
        });
        lacking(self.name(), rows.collect::<Result<Vec<_>, String>>().map(|rows| rows.concat()))
    }
}

/// Rows, or the one that cannot be.
fn lacking(pattern: String, rows: Result<Vec<Case>, String>) -> Rows {
    match rows {
        Ok(rows) => (rows, Vec::new()),
        Err(why) => (Vec::new(), vec![Lack { pattern, why }]),
    }
}

fn named(width: usize, across: bool) -> String {
    format!("{}bipartite {width}x{width}", if across { "x" } else { "" })
}

/// The widest host, with so many ranks at least.
fn host(ground: &Ground, ranks: usize) -> Result<&[usize], String> {
    let host = ground.one();
    if host.len() < ranks {
        return Err(format!("needs {ranks} ranks on one host; the most that one has is {}", host.len()));
    }
    Ok(host)
}

/// Two hosts, with so many ranks each at least.
fn hosts(ground: &Ground, ranks: usize) -> Result<(&[usize], &[usize]), String> {
    let Some((near, far)) = ground.two() else {
        return Err("needs two hosts; all ranks are on one (--hosts 0-3/4-7 takes two sets of ranks as hosts)".to_owned());
    };
    let least = near.len().min(far.len());
    if least < ranks {
        return Err(format!("needs {ranks} ranks on each of two hosts; there are {} and {}", near.len(), far.len()));
    }
    Ok((near, far))
}

/// Rows and columns of a matrix of at most so many elements, about square, each a multiple of `parts`; `None` if it has too few. Of
/// sizes that are powers of two, cut in as many parts, nothing is lost.
fn matrix(elements: u64, parts: u64) -> Option<(u64, u64)> {
    let side = elements.isqrt().checked_div(parts)?.checked_ilog2().map(|power| parts << power)?;
    let columns = elements.checked_div(side)? / parts * parts;
    (columns > 0).then_some((side, columns))
}
