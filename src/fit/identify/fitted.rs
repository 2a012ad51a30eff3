//! The parameters with which an explanation comes nearest to what was measured.

use super::fan::{Fan, Parameters};
use super::types::Explanation;

/// Values of a parameter that are tried; of more every n-th.
const TRIED: usize = 40;
/// Predictions that are worth trying all combinations of parameters; with more they are tried one by one, in turns.
const ALL: usize = 2_000_000;
const TURNS: usize = 6;

/// An aggregate that was measured: of a fan, or the least or greatest of several.
#[derive(Debug)]
pub(super) struct Point {
    pub fans: Vec<Fan>,
    /// of an extreme, whether it is the greatest
    pub most: Option<bool>,
    /// bytes per second
    pub aggregate: f64,
    /// half the width of its interval as a share of it; 0 where there is none
    pub half: f64,
}

impl Point {
    /// What would have been measured by an explanation, bytes per second.
    pub fn predict(&self, by: Explanation, parameters: &Parameters) -> f64 {
        let each = self.fans.iter().map(|fan| fan.predict(by, parameters));
        if self.most == Some(true) { each.fold(0.0, f64::max) } else { each.fold(f64::INFINITY, f64::min) }
    }

    /// Relative error of that, with its sign.
    pub fn error(&self, by: Explanation, parameters: &Parameters) -> f64 {
        self.predict(by, parameters) / self.aggregate - 1.0
    }
}

/// Mean of the relative errors without signs; NaN without points.
pub(super) fn mean<'a>(points: impl Iterator<Item = &'a Point>, by: Explanation, parameters: &Parameters) -> f64 {
    let (sum, n) = points.fold((0.0, 0.0), |(sum, n), point| (sum + point.error(by, parameters).abs(), n + 1.0));
    sum / n
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Axis {
    Root,
    Width(usize),
    Link,
    Concurrency,
    Theta,
}

impl Axis {
    fn set(self, parameters: &mut Parameters, value: f64) {
        match self {
            Self::Root => parameters.root = value,
            Self::Link => parameters.link = value,
            Self::Concurrency => parameters.concurrency = value,
            Self::Theta => parameters.theta = value,
            Self::Width(width) => match parameters.widths.iter_mut().find(|known| known.0 == width) {
                Some(known) => known.1 = value,
                None => parameters.widths.push((width, value)),
            },
        }
    }

    /// The value with which a fan of a point comes out as measured.
    fn exact(self, fan: &Fan, aggregate: f64) -> Option<f64> {
        let seconds = fan.seconds_at(aggregate);
        match self {
            Self::Root => Some(fan.bytes() / seconds),
            Self::Width(width) => (fan.width() == width).then(|| fan.bytes() / seconds),
            Self::Link => (fan.crossing > 0.0).then(|| fan.crossing * fan.message / seconds),
            Self::Concurrency => (fan.width() > 1).then(|| fan.sum / seconds),
            Self::Theta => {
                let spread = fan.sum - fan.slowest;
                (spread > 1e-9 * fan.sum).then(|| ((fan.sum - seconds) / spread).clamp(0.0, 1.0))
            }
        }
    }

    /// Values worth trying. A least sum of absolute errors is where one of them vanishes. A fixed capacity is never below the
    /// fastest single flow through it.
    fn values(self, points: &[Point]) -> Vec<f64> {
        let fans = || points.iter().flat_map(|point| point.fans.iter().map(move |fan| (fan, point.aggregate)));
        let least = match self {
            Self::Root => fans().map(|(fan, _)| fan.fastest).fold(0.0, f64::max),
            Self::Link => fans().map(|(fan, _)| fan.fastest_crossing).fold(0.0, f64::max),
            _ => 0.0,
        };
        let mut values: Vec<f64> =
            fans().filter_map(|(fan, aggregate)| self.exact(fan, aggregate)).filter(|value| *value > least).collect();
        values.extend((least > 0.0).then_some(least));
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let step = values.len().div_ceil(TRIED).max(1);
        let mut tried: Vec<f64> = values.into_iter().step_by(step).collect();
        match self {
            // First what explains least: it stays where nothing speaks for another value.
            Self::Root | Self::Link | Self::Width(_) => tried.insert(0, f64::INFINITY),
            Self::Theta => tried.insert(0, 0.0),
            Self::Concurrency => tried.insert(0, 1.0),
        }
        tried
    }
}

/// Which parameters an explanation has.
fn axes(by: Explanation, points: &[Point]) -> Vec<Axis> {
    let crosses = points.iter().flat_map(|point| &point.fans).any(|fan| fan.crossing > 0.0);
    let link = crosses.then_some(Axis::Link);
    match by {
        Explanation::SlowestPair | Explanation::TimeShared | Explanation::TimeSharedBySocket => Vec::new(),
        Explanation::Busiest => [Axis::Root].into_iter().chain(link).collect(),
        Explanation::BusiestByWidth => {
            let mut widths: Vec<usize> = points.iter().flat_map(|point| &point.fans).map(Fan::width).filter(|&width| width > 1).collect();
            widths.sort_unstable();
            widths.dedup();
            widths.into_iter().map(Axis::Width).chain(link).collect()
        }
        Explanation::TimeSharedBy => vec![Axis::Concurrency],
        Explanation::TimeSharedLink => vec![Axis::Root],
        Explanation::Mixture => vec![Axis::Theta],
        Explanation::MixtureBusiest => [Axis::Theta, Axis::Root].into_iter().chain(link).collect(),
    }
}

/// Parameters of least mean absolute relative error, and how many there are.
pub(super) fn fit(by: Explanation, points: &[Point]) -> (Parameters, usize) {
    let axes: Vec<(Axis, Vec<f64>)> = axes(by, points).into_iter().map(|axis| (axis, axis.values(points))).collect();
    let cost: usize = points.iter().map(|point| point.fans.len()).sum();
    let all = axes.iter().fold(cost, |product, (_, values)| product.saturating_mul(values.len()));
    let parameters = if all <= ALL { of_all(by, points, &axes) } else { in_turns(by, points, &axes) };
    (parameters, axes.len())
}

fn of_all(by: Explanation, points: &[Point], axes: &[(Axis, Vec<f64>)]) -> Parameters {
    let mut best = (f64::INFINITY, Parameters::FREE);
    let mut at = vec![0; axes.len()];
    loop {
        let mut parameters = Parameters::FREE;
        for (&at, (axis, values)) in at.iter().zip(axes) {
            axis.set(&mut parameters, values[at]);
        }
        let error = mean(points.iter(), by, &parameters);
        if error < best.0 - 1e-12 {
            best = (error, parameters);
        }
        let Some(next) = (0..axes.len()).find(|&axis| at[axis] + 1 < axes[axis].1.len()) else { return best.1 };
        at[next] += 1;
        at[..next].fill(0);
    }
}

fn in_turns(by: Explanation, points: &[Point], axes: &[(Axis, Vec<f64>)]) -> Parameters {
    let mut best = (mean(points.iter(), by, &Parameters::FREE), Parameters::FREE);
    for _ in 0..TURNS {
        let before = best.0;
        for (axis, values) in axes {
            for &value in values {
                let mut parameters = best.1.clone();
                axis.set(&mut parameters, value);
                let error = mean(points.iter(), by, &parameters);
                if error < best.0 - 1e-12 {
                    best = (error, parameters);
                }
            }
        }
        if best.0 > before - 1e-9 {
            break;
        }
    }
    best.1
}
