//! Prices from a calibration: fits of the pairs, what was identified of shared resources, duplex ratios.

mod links;
mod published;
mod shared;
#[cfg(test)]
mod tests;
mod warn;

pub use published::{Published, PublishedError, SharedRate};

use std::collections::HashMap;

use super::{PriceError, Prices, Terms};
use crate::fabric::{Demand, Flow, Resource, ResourceId, ResourceKind, Route, Use};
use crate::fit::Fits;
use crate::fit::identify::{DuplexRatio, Identified};
use crate::plan::{Traffic, Warning};
use crate::sample::{Memory, MoverKind};
use crate::topology::{Level, PathClass, Units};
use links::{Found, Links};
use shared::{Capacities, SharedAll, path};

/// What a model of this kind leaves over where all is measured: the mean error of receivers that serve in turns over the published
/// fans of 8 × B70 (`fit::identify`).
const MODEL: f64 = 0.08;

/// Pairs' own links are numbered from here.
const PAIRS: u64 = 1 << 32;

/// With what a calibration was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// ranks that took part; 0 where that is not known
    pub ranks: usize,
    /// the job's own numbers of those ranks, where only a group of it took part
    pub group: Vec<usize>,
    pub mover: Option<MoverKind>,
    /// where the buffers lay
    pub memory: Option<Memory>,
}

/// Prices of a calibrated machine.
#[derive(Debug, Clone)]
pub struct Calibrated {
    units: Units,
    links: Links,
    shared: SharedAll,
    duplex: Vec<DuplexRatio>,
    terms: Terms,
    measured: Conditions,
    wanted: Conditions,
}

impl Calibrated {
    /// Of fits and of what was identified from the same samples; ranks sit as `units` say.
    pub fn new(units: Units, fits: &Fits, identified: &Identified, measured: Conditions) -> Self {
        let shared = SharedAll::of(&units, identified);
        let (links, duplex) = (Links::of(fits), identified.duplex.clone());
        Self { units, links, shared, duplex, terms: Terms::default(), measured, wanted: Conditions::default() }
    }

    /// Of fits alone: fans of a width tell how ranks serve their peers.
    pub fn of_fits(units: Units, fits: &Fits, measured: Conditions) -> Self {
        let links = Links::of(fits);
        let shared = SharedAll::of_fits(&units, fits, &links);
        let ratio = |path| {
            let ratio = fits.duplex_ratio(path)?;
            Some(DuplexRatio { path, same_socket: None, ratio, interval: None, n: 0 })
        };
        let duplex = [PathClass::IntraNode, PathClass::InterNode].into_iter().filter_map(ratio).collect();
        Self { units, links, shared, duplex, terms: Terms::default(), measured, wanted: Conditions::default() }
    }

    /// The same with other costs of messages and chunks.
    #[must_use]
    pub fn with_terms(mut self, terms: Terms) -> Self {
        self.terms = terms;
        self
    }

    /// The same for transfers that run so: warnings tell where the calibration was made otherwise.
    #[must_use]
    pub fn used_with(mut self, wanted: Conditions) -> Self {
        self.wanted = wanted;
        self
    }

    /// With what it was made.
    pub fn measured(&self) -> &Conditions {
        &self.measured
    }

    /// Where its ranks sit.
    pub fn units(&self) -> &Units {
        &self.units
    }

    fn find(&self, from: usize, to: usize, bytes: u64) -> Result<Found<'_>, PriceError> {
        let world = self.units.world();
        if let Some(rank) = [from, to].into_iter().find(|&rank| rank >= world) {
            return Err(PriceError::NoRank { rank, world });
        }
        self.links.find(path(&self.units, from, to), from, to).ok_or(PriceError::Unmeasured { from, to, bytes })
    }

    /// What both ways at once leave of a pair's rate, and which kind of link that is.
    fn both_ways(&self, from: usize, to: usize) -> Option<(usize, f64)> {
        let way = path(&self.units, from, to);
        let socket = |rank| self.units.unit(Level::Socket, rank);
        let same = socket(from).zip(socket(to)).map(|(a, b)| a == b).filter(|_| way == PathClass::IntraNode);
        let of = |wanted: Option<bool>| self.duplex.iter().position(|told| told.path == way && told.same_socket == wanted);
        let at = of(same).or_else(|| of(None))?;
        Some((at, self.duplex[at].ratio.min(1.0))).filter(|(_, ratio)| *ratio > 0.0 && *ratio < 1.0)
    }
}

/// The one flow that each rank sends, and the one that it receives, by number.
struct Ring {
    sends: Vec<Option<usize>>,
    receives: Vec<Option<usize>>,
}

impl Calibrated {
    /// Flows of which each rank of every host that takes part sends one and receives one. What that gives is measured (relays), not
    /// derived: from pairs alone it came out twice too fast in the published tables.
    fn ring(&self, together: &[Demand]) -> Option<Ring> {
        let world = self.units.world();
        if !self.links.has_relays() || together.len() > world {
            return None;
        }
        let mut ring = Ring { sends: vec![None; world], receives: vec![None; world] };
        for (number, &Demand { from, to, .. }) in together.iter().enumerate() {
            let (sends, receives) = (ring.sends.get_mut(from)?, ring.receives.get_mut(to)?);
            if from == to || sends.replace(number).is_some() || receives.replace(number).is_some() {
                return None;
            }
        }
        let whole = |rank: &usize| {
            let host = self.units.unit(Level::Host, *rank);
            host.is_some_and(|host| {
                self.units.members(host).iter().all(|&rank| ring.sends[rank].is_some() && ring.receives[rank].is_some())
            })
        };
        let all = together.iter().flat_map(|demand| [demand.from, demand.to]).collect::<std::collections::BTreeSet<_>>().iter().all(whole);
        all.then_some(ring)
    }

    /// The rate that a flow has within a ring: the lesser of its two ends'.
    fn in_ring(&self, ring: &Ring, together: &[Demand], flow: usize) -> Option<f64> {
        let Demand { from, to, bytes } = together[flow];
        let at = |rank: usize| {
            let (into, out) = (&together[ring.receives[rank]?], &together[ring.sends[rank]?]);
            self.links.relay(path(&self.units, into.from, rank), path(&self.units, rank, out.to), bytes)
        };
        Some(at(from)?.min(at(to)?))
    }
}

/// Of a flow: its own link, the link both of whose directions it may share (kind and duplex ratio), and the resources that it passes.
type Way = (links::Cost, Option<(usize, f64)>, Vec<usize>);

impl Prices for Calibrated {
    fn world(&self) -> usize {
        self.units.world()
    }

    fn routes(&self, together: &[Demand]) -> Result<Vec<Route>, PriceError> {
        let world = self.units.world() as u64;
        let mut found = Vec::with_capacity(together.len());
        // Which ranks send and receive on each kind of link.
        let mut busy: HashMap<(usize, usize), [bool; 2]> = HashMap::new();
        let mut peers: HashMap<usize, Vec<usize>> = HashMap::new();
        for &Demand { from, to, bytes } in together {
            let cost = self.find(from, to, bytes)?.curve.at(bytes);
            let both = if from == to { None } else { self.both_ways(from, to) };
            if let Some((kind, _)) = both {
                busy.entry((from, kind)).or_default()[0] = true;
                busy.entry((to, kind)).or_default()[1] = true;
            }
            let mut touched = Vec::new();
            self.shared.touched(&self.units, from, to, |number| touched.push(number));
            for &number in &touched {
                let shared = &self.shared.all[number];
                if matches!(shared.capacity, Capacities::Turns(_)) || shared.fan.is_some() {
                    let peer = if shared.fan.is_some_and(|(root, _)| root == from) { to } else { from };
                    peers.entry(number).or_default().push(peer);
                }
            }
            found.push((cost, both, touched));
        }
        let turns: HashMap<usize, (f64, bool)> = peers
            .into_iter()
            .map(|(number, mut peers)| {
                peers.sort_unstable();
                peers.dedup();
                let shared = &self.shared.all[number];
                let measured = shared.fan.and_then(|fan| self.shared.measured(fan, &peers));
                (number, (measured.unwrap_or_else(|| shared.concurrency(peers.len())), measured.is_some()))
            })
            .collect();
        let ring = self.ring(together);
        let full = |rank: usize, kind: usize| busy.get(&(rank, kind)) == Some(&[true, true]);
        let route = |(number, (cost, both, touched)): (usize, Way)| {
            let Demand { from, to, .. } = together[number];
            let halved = both.filter(|&(kind, _)| full(from, kind) || full(to, kind)).map_or(1.0, |(_, ratio)| ratio);
            let relayed = ring.as_ref().and_then(|ring| self.in_ring(ring, together, number));
            let rate = relayed.map_or(cost.rate * halved, |relayed| relayed.min(cost.rate));
            let mut uses = Vec::with_capacity(touched.len() + 1);
            uses.push(Use { resource: ResourceId(PAIRS + from as u64 * world + to as u64), weight: 1.0 / rate });
            uses.extend(touched.iter().map(|&number| {
                let weight = match (&self.shared.all[number].capacity, turns.get(&number)) {
                    // A fan of just these peers was measured: that says more than a capacity.
                    (_, Some(&(c, true))) | (Capacities::Turns(_), Some(&(c, _))) => 1.0 / (c * rate),
                    (Capacities::Fixed(capacity), _) => 1.0 / capacity,
                    (Capacities::Turns(_), None) => 1.0 / rate,
                };
                Use { resource: ResourceId(number as u64), weight }
            }));
            Route { alpha: cost.alpha, flow: Flow { cap: rate, uses } }
        };
        Ok(found.into_iter().enumerate().map(route).collect())
    }

    fn resource(&self, id: ResourceId) -> Option<Resource> {
        let world = self.units.world() as u64;
        if let Some(pair) = id.0.checked_sub(PAIRS) {
            let (from, to) = (usize::try_from(pair / world.max(1)).ok()?, usize::try_from(pair % world.max(1)).ok()?);
            let capacity = self.find(from, to, u64::MAX).ok()?.curve.at(u64::MAX).rate;
            let name = if from == to { format!("copies within rank {from}") } else { format!("link {from}→{to}") };
            return Some(Resource { name, kind: ResourceKind::Pair, capacity });
        }
        self.shared.all.get(usize::try_from(id.0).ok()?).map(shared::Shared::told)
    }

    fn copy(&self, rank: usize, bytes: u64) -> Option<f64> {
        let cost = self.links.find(PathClass::Local, rank, rank)?.curve.at(bytes);
        Some(cost.alpha + bytes as f64 / cost.rate)
    }

    fn uncertainty(&self, from: usize, to: usize, bytes: u64) -> f64 {
        let Ok(found) = self.find(from, to, bytes) else { return 0.0 };
        let spread = found.class.map_or(0.0, |class| class.spread);
        found.curve.half(bytes).hypot(spread).hypot(MODEL)
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    fn warnings(&self, traffic: &Traffic) -> Vec<Warning> {
        warn::warnings(self, traffic)
    }
}
