//! What is left of a pair's rate when it goes both ways at once.

use super::evidence::Evidence;
use super::types::DuplexRatio;
use crate::fit::{median, median_interval};
use crate::topology::{Level, PathClass};

/// The ratio of each class of paths: both ways at once over one way alone, medians over the pairs.
pub(super) fn ratios(evidence: &Evidence<'_>) -> Vec<DuplexRatio> {
    let Some(told) = evidence.duplex else { return Vec::new() };
    // Within a socket, across, and where sockets are not known; between hosts.
    let mut classes: [(PathClass, Option<bool>, Vec<f64>); 4] = [
        (PathClass::IntraNode, None, Vec::new()),
        (PathClass::IntraNode, Some(true), Vec::new()),
        (PathClass::IntraNode, Some(false), Vec::new()),
        (PathClass::InterNode, None, Vec::new()),
    ];
    let socket = |rank| evidence.units.unit(Level::Socket, rank);
    told(&mut |from, to, rate| {
        let Some(alone) = (evidence.rate)(from, to).filter(|alone| *alone > 0.0 && rate > 0.0 && rate.is_finite()) else { return };
        let class = match (evidence.path(from, to), socket(from), socket(to)) {
            (PathClass::InterNode, ..) => 3,
            (PathClass::IntraNode, Some(a), Some(b)) => 2 - usize::from(a == b),
            (PathClass::IntraNode, ..) => 0,
            _ => return,
        };
        classes[class].2.push(rate / alone);
    });
    let ratio = |(path, same_socket, mut ratios): (PathClass, Option<bool>, Vec<f64>)| {
        let interval = median_interval(&ratios, 0.95);
        DuplexRatio { path, same_socket, ratio: median(&mut ratios), interval, n: ratios.len() }
    };
    classes.into_iter().filter(|class| !class.2.is_empty()).map(ratio).collect()
}
