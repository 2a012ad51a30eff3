//! How well each explanation does over fans that are alike, and which is preferred.
//!
//! Preferred is the one of least error, where each parameter must be worth its while: Akaike's criterion for errors of Laplace's
//! distribution, 2n·ln(mean absolute error) + 2p, here as the error with a factor exp(p/n). Errors below what was resolved count
//! as that. Two explanations whose criteria lie less than 2 apart (Burnham & Anderson, Model Selection and Multimodel Inference,
//! 2.6) are not told apart.

use std::borrow::Cow;

use super::evidence::{Evidence, Ran};
use super::fan::{Fan, Parameters};
use super::fitted::{Point, fit, mean};
use super::types::{Explained, Explanation, ExtremeExplained, Stand};
use crate::sample::Pattern;
use crate::topology::PathClass;

/// No rate is told closer than this: repeats hide what is constant in a run.
pub(super) const RESOLVED: f64 = 0.01;
/// Errors within this factor are alike however many fans there are: what is common to all of them is not chance.
const ALIKE: f64 = 1.1;

/// One explanation as it stands, with what it was fitted to.
#[derive(Debug)]
pub(super) struct Standing {
    pub stand: Stand,
    pub parameters: Parameters,
    /// the same of those fans alone whose peers are known; NaN without any
    pub known: f64,
}

/// Fans that one set of parameters can explain: of one direction and one class of paths.
#[derive(Debug)]
pub(super) struct Alike {
    pub pattern: Pattern,
    pub path: Option<PathClass>,
    /// those of known peers first, in the order of [`Alike::fans`]
    pub points: Vec<Point>,
    /// of each fan, its concurrency
    pub fans: usize,
    /// best first
    pub standings: Vec<Standing>,
    /// what errors were resolved to
    pub floor: f64,
}

impl Alike {
    /// The fans whose peers are known.
    pub fn known(&self) -> impl Iterator<Item = (&Fan, &Point)> {
        self.points[..self.fans].iter().map(|point| (&point.fans[0], point))
    }

    /// The margin within which errors over so many fans are not told apart.
    pub fn margin(n: usize) -> f64 {
        (1.0 / n as f64).exp().max(ALIKE)
    }

    /// True if this one does as well as the preferred one over everything, or over the fans whose peers are known.
    pub fn undecided(&self, other: &Standing) -> bool {
        let Some(best) = self.standings.first() else { return false };
        let extremes = self.points.len() - self.fans;
        other.stand.score <= Self::margin(self.points.len()) * best.stand.score
            || (extremes > 0 && self.fans > 0 && other.known <= Self::margin(self.fans) * best.known)
    }

    /// The standing of an explanation.
    pub fn standing(&self, by: Explanation) -> Option<&Standing> {
        self.standings.iter().find(|standing| standing.stand.explanation == by)
    }

    fn judge(&mut self) {
        let halves = self.points.iter().map(|point| point.half);
        self.floor = (halves.sum::<f64>() / self.points.len() as f64).max(RESOLVED);
        let (all, known) = (self.points.len(), self.fans);
        let crosses = self.points.iter().flat_map(|point| &point.fans).any(|fan| fan.crossing > 0.0);
        let makes_sense = |by: &Explanation| crosses || !matches!(by, Explanation::TimeSharedLink | Explanation::TimeSharedBySocket);
        let standing = |by: Explanation| {
            let (parameters, p) = fit(by, &self.points);
            let scored = |error: f64, n: usize| error.max(self.floor) * (p as f64 / n as f64).exp();
            let wide = |point: &&Point| point.fans.iter().all(|fan| fan.width() > 2);
            let error = mean(self.points.iter(), by, &parameters);
            let known = if known == 0 { f64::NAN } else { scored(mean(self.points[..known].iter(), by, &parameters), known) };
            let stand = Stand {
                explanation: by,
                pattern: self.pattern,
                path: self.path,
                parameters: named(by, &parameters),
                mean: error,
                worst: self.points.iter().map(|point| point.error(by, &parameters).abs()).fold(0.0, f64::max),
                wide: mean(self.points.iter().filter(wide), by, &parameters),
                score: scored(error, all),
                n: all,
            };
            Standing { stand, parameters, known }
        };
        let mut standings: Vec<Standing> = Explanation::ALL.into_iter().filter(makes_sense).map(standing).collect();
        // Of equal ones the simpler: they are in that order.
        standings.sort_by(|a, b| a.stand.score.total_cmp(&b.stand.score));
        self.standings = standings;
    }

    fn each(&self, point: &Point) -> Vec<(Explanation, f64, f64)> {
        let one = |standing: &Standing| {
            let (by, parameters) = (standing.stand.explanation, &standing.parameters);
            (by, point.predict(by, parameters), point.error(by, parameters))
        };
        self.standings.iter().map(one).collect()
    }

    /// Every fan as all explanations have it.
    pub fn explained(&self) -> impl Iterator<Item = Explained> + '_ {
        self.known().map(|(fan, point)| {
            let by = self.each(point);
            let resolved = point.half.max(RESOLVED);
            // The one that explains its like, unless another one does clearly better here.
            let nearest = by.iter().min_by(|a, b| a.2.abs().total_cmp(&b.2.abs()));
            let best = by.first().zip(nearest).map(
                |(usual, nearest)| {
                    if usual.2.abs() <= resolved + nearest.2.abs() { usual.0 } else { nearest.0 }
                },
            );
            Explained {
                root: fan.root,
                peers: fan.peers.clone(),
                pattern: self.pattern,
                aggregate: point.aggregate,
                concurrency: Some(fan.concurrency(point.aggregate)),
                by,
                best,
            }
        })
    }

    /// Every extreme in the same way.
    pub fn extremes(&self) -> impl Iterator<Item = ExtremeExplained> + '_ {
        self.points[self.fans..].iter().map(|point| ExtremeExplained {
            fans: point.fans.len(),
            width: point.fans.iter().map(Fan::width).max().unwrap_or(0),
            most: point.most.unwrap_or(false),
            aggregate: point.aggregate,
            by: self.each(point),
        })
    }
}

/// Parameters by name; those that bind nowhere are left out.
fn named(by: Explanation, parameters: &Parameters) -> Vec<(Cow<'static, str>, f64)> {
    let mut named: Vec<(Cow<'static, str>, f64)> = vec![("R".into(), parameters.root)];
    named.extend(parameters.widths.iter().map(|(width, rate)| (format!("R{width}").into(), *rate)));
    named.push(("X".into(), parameters.link));
    named.retain(|(_, value)| value.is_finite());
    match by {
        Explanation::TimeSharedBy => named.push(("c".into(), parameters.concurrency)),
        Explanation::Mixture | Explanation::MixtureBusiest => named.push(("theta".into(), parameters.theta)),
        _ => {}
    }
    named
}

/// Fans and extremes by direction and class of paths, judged; those of most fans first. Fans with a pair that was not measured
/// are told apart.
pub(super) fn alike(evidence: &Evidence<'_>, ran: &[Ran<'_>]) -> (Vec<Alike>, Vec<Explained>) {
    let mut groups: Vec<Alike> = Vec::new();
    let mut open = Vec::new();
    let group = |groups: &mut Vec<Alike>, pattern: Pattern, path: Option<PathClass>| {
        groups.iter().position(|known| (known.pattern, known.path) == (pattern, path)).unwrap_or_else(|| {
            groups.push(Alike { pattern, path, points: Vec::new(), fans: 0, standings: Vec::new(), floor: RESOLVED });
            groups.len() - 1
        })
    };
    for one in ran.iter().map(|ran| ran.told).filter(|told| matches!(told.pattern, Pattern::FanIn | Pattern::FanOut)) {
        let Some(root) = one.root else { continue };
        let peers: Vec<usize> = one.flows.iter().map(|&(from, to)| if from == root { to } else { from }).collect();
        let aggregate = one.aggregate();
        let half = one.interval.map_or(0.0, |interval| (interval.high - interval.low) / 2.0 / one.seconds);
        if let Some(fan) = Fan::of(evidence, one.pattern, root, &peers, one.bytes) {
            let at = group(&mut groups, one.pattern, fan.path);
            groups[at].points.push(Point { fans: vec![fan], most: None, aggregate, half });
            groups[at].fans += 1;
        } else {
            let mut peers = peers;
            peers.sort_unstable();
            open.push(Explained { root, peers, pattern: one.pattern, aggregate, concurrency: None, by: Vec::new(), best: None });
        }
    }
    let bytes = evidence.usual_bytes();
    for extreme in evidence.extremes {
        let fan = |(root, peers): &(usize, Vec<usize>)| Fan::of(evidence, Pattern::FanIn, *root, peers, bytes);
        let Some(fans) = extreme.fans.iter().map(fan).collect::<Option<Vec<Fan>>>() else { continue };
        let Some(path) = fans.first().map(|fan| fan.path) else { continue };
        let path = path.filter(|path| fans.iter().all(|fan| fan.path == Some(*path)));
        let at = group(&mut groups, Pattern::FanIn, path);
        groups[at].points.push(Point { fans, most: Some(extreme.most), aggregate: extreme.aggregate, half: 0.0 });
    }
    groups.iter_mut().for_each(Alike::judge);
    groups.sort_by(|a, b| b.points.len().cmp(&a.points.len()).then((a.pattern, a.path).cmp(&(b.pattern, b.path))));
    (groups, open)
}
