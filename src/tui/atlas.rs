//! What the screen derives from the topology: routes, the tree of hosts and devices, groups of ranks, and what the ranks reach
//! of what is expected. Made once a session; the tree's lines when something is folded, shares cell by cell.

mod alike;
mod devices;
mod groups;
mod orders;
mod panel;
mod shares;
#[cfg(test)]
mod tests;
mod tree;

pub use groups::{Grouping, Groups};
pub use orders::{Order, Orders, tiers};
pub use panel::{Sight, TopologyPanel};
pub use shares::{Best, SLOW, Shares};
pub use tree::{Node, NodeKind, Tree};

use super::insight::Way;
use super::view::Key;
use crate::session::{Change, Model};
use crate::topology::{Efficiency, Router, Topology};
use crate::units::plain;

/// A device's name without the domain that most machines have but one of, and without control characters.
pub fn short(name: &str) -> String {
    plain(&name.replace(" 0000:", " "))
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Atlas {
    pub router: Router,
    pub tree: Tree,
    pub groups: Groups,
    pub orders: Orders,
    pub shares: Shares,
    /// nodes of the lines that are unfolded, top to bottom
    rows: Vec<u32>,
    /// columns of the widest name among them, without its indent, and the deepest indent
    widest: (usize, usize),
    /// the GPU of each rank
    seats: Vec<Option<usize>>,
    /// the folds that these are of
    folds: Option<u64>,
}

impl Atlas {
    pub fn new(topology: &Topology, efficiency: &Efficiency) -> Self {
        let router = Router::new(topology, efficiency);
        let groups = Groups::of(topology, &router);
        let seats = topology.ranks.iter().map(|place| place.gpu).collect();
        Self { router, tree: Tree::of(topology), groups, orders: Orders::of(topology), seats, ..Self::default() }
    }

    /// Take note of what an event changed.
    pub fn follow(&mut self, model: &Model, change: &Change) {
        self.shares.follow(model, &self.router, change);
    }

    /// The model is another one; ranks may sit elsewhere in it.
    pub fn forget(&mut self, topology: &Topology) {
        let seats: Vec<Option<usize>> = topology.ranks.iter().map(|place| place.gpu).collect();
        if seats == self.seats {
            self.shares.forget();
        } else {
            let efficiency = *self.router.efficiency();
            *self = Self::new(topology, &efficiency);
        }
    }

    /// Bring the tree's lines and the shares up to date for a frame.
    pub fn settle(&mut self, model: &Model, key: Key, panel: &mut TopologyPanel) {
        if self.folds != Some(panel.folds) {
            self.rows = self.tree.unfolded(|node| panel.is_open(&self.tree, node));
            self.folds = Some(panel.folds);
            let named = self.rows.iter().filter_map(|&row| self.tree.node(row));
            let named = named.filter(|node| !matches!(node.kind, NodeKind::Alike | NodeKind::Others | NodeKind::Other));
            self.widest = named.fold((0, 0), |(name, depth), node| (name.max(node.name.chars().count()), depth.max(node.depth.into())));
        }
        if let Some(node) = panel.seek.take() {
            panel.at = self.rows.iter().position(|&row| row == node).unwrap_or(panel.at);
        }
        panel.at = panel.at.min(self.rows.len().saturating_sub(1));
        self.shares.settle(model, &self.router, key);
    }

    /// Columns of the widest name, without its indent, and the deepest indent.
    pub const fn widest(&self) -> (usize, usize) {
        self.widest
    }

    /// Nodes of the lines that are unfolded, top to bottom.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The node of a line.
    pub fn at(&self, row: usize) -> Option<(u32, &Node)> {
        let &node = self.rows.get(row)?;
        Some((node, self.tree.node(node)?))
    }

    /// Nodes worth a look: those at fault, then those of ranks that are slow both by themselves.
    pub fn suspects(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.tree.faults().to_vec();
        for (rank, _, _) in self.slow_ranks() {
            if let Some(node) = self.tree.of_rank(rank).filter(|node| !found.contains(node)) {
                found.push(node);
            }
        }
        found
    }

    /// Ranks that stay below what is expected with whomever they talk to, slowest first, with their way and best share.
    pub fn slow_ranks(&self) -> Vec<(usize, Way, Best)> {
        self.shares.slow()
    }
}
