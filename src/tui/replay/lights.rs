use std::collections::HashMap;

use super::{ReplayPanel, Replays};
use crate::session::Model;
use crate::tui::atlas::Atlas;

/// The devices whose links carry bytes at the play head.
#[derive(Debug, Default)]
pub struct Lights {
    /// of each pair of ranks the devices on its way, nodes of the tree
    ways: HashMap<(usize, usize), Vec<u32>>,
    /// plan, step and pricing that the rates are of
    of: Option<(usize, usize, u64)>,
    /// bytes per second, both directions together
    rates: HashMap<u32, f64>,
}

impl Lights {
    /// Bring them up to date for a frame.
    pub fn settle(&mut self, model: &Model, atlas: &Atlas, panel: &ReplayPanel, replays: &Replays) {
        let Some(reel) = panel.reel(replays) else {
            (self.of, self.rates) = (None, HashMap::new());
            return;
        };
        let head = panel.head(reel);
        let step = if head >= reel.end() { usize::MAX } else { reel.step(head) };
        let of = Some((panel.at, step, replays.made()));
        if self.of == of {
            return;
        }
        self.of = of;
        self.rates.clear();
        for &(lane, rate) in reel.rates(head) {
            let Some(lane) = reel.lanes.get(lane as usize).filter(|lane| lane.from != lane.to) else { continue };
            let way = self.ways.entry((lane.from, lane.to)).or_insert_with(|| way(model, atlas, lane.from, lane.to));
            for &node in &*way {
                *self.rates.entry(node).or_default() += rate;
            }
        }
    }

    /// Bytes per second of each device, no order.
    pub fn rates(&self) -> impl Iterator<Item = (u32, f64)> {
        self.rates.iter().map(|(&node, &rate)| (node, rate))
    }
}

/// The devices whose links a pair's bytes pass, each once.
fn way(model: &Model, atlas: &Atlas, from: usize, to: usize) -> Vec<u32> {
    let topology = &model.header.topology;
    let hops = atlas.router.route(topology, from, to).hops;
    let mut nodes: Vec<u32> = hops.iter().filter_map(|hop| atlas.tree.of_hop(topology, &hop.host, &hop.name)).collect();
    nodes.extend([from, to].into_iter().filter_map(|rank| atlas.tree.of_rank(rank)));
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
