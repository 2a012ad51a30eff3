use std::collections::HashSet;

use super::{Atlas, Shares, Tree};
use crate::tui::draw::HitMap;
use crate::tui::keys::Action;
use crate::tui::state::MatrixPanel;
use crate::tui::typing::Typing;
use crate::tui::update::Facts;

/// What stands beside the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sight {
    /// the selected pair's way, hop by hop
    #[default]
    Route,
    /// path classes of the ranks of the host under the cursor
    Classes,
}

/// The Topology tab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologyPanel {
    /// the line with the cursor
    pub at: usize,
    /// nodes that the person folded or unfolded
    turned: HashSet<u32>,
    /// how often that was done
    pub folds: u64,
    /// a node to put the cursor on once the lines are made
    pub seek: Option<u32>,
    pub sight: Sight,
    /// first line of the notes shown
    pub scroll: usize,
    /// what is looked for, if it is being typed
    pub typing: Option<Typing>,
    /// what was looked for last
    wanted: String,
    /// which of the suspects was visited last
    suspect: Option<usize>,
    /// the person has been shown what is at fault
    pub greeted: bool,
}

impl TopologyPanel {
    pub fn is_open(&self, tree: &Tree, node: u32) -> bool {
        tree.node(node).is_some_and(|found| found.open != self.turned.contains(&node) && !found.children.is_empty())
    }

    fn turn(&mut self, node: u32) {
        if !self.turned.remove(&node) {
            self.turned.insert(node);
        }
        self.folds += 1;
    }

    /// Put the cursor on a node, unfolding what is above it.
    pub fn go(&mut self, tree: &Tree, node: u32) {
        let above: Vec<u32> = tree.above(node).skip(1).collect();
        for above in above {
            if !self.is_open(tree, above) {
                self.turn(above);
            }
        }
        self.seek = Some(node);
        self.scroll = 0;
    }

    /// Without what is under way.
    pub fn settle(&mut self) {
        (self.typing, self.seek) = (None, None);
        // How often was folded is no place to be at.
        self.folds = 0;
    }

    /// Be as it was before; the lines are made anew.
    pub fn go_back(&mut self, before: Self) {
        let folds = self.folds + 1;
        *self = Self { folds, greeted: self.greeted, ..before };
    }

    /// Put the cursor on a line.
    pub const fn put(&mut self, row: usize) {
        self.at = row;
        self.scroll = 0;
    }

    /// Fold or unfold the line with the cursor; false if nothing lies below it.
    pub fn fold(&mut self, atlas: &Atlas) -> bool {
        let Some((node, found)) = atlas.at(self.at) else { return false };
        let folds = !found.children.is_empty();
        if folds {
            self.turn(node);
        }
        folds
    }

    /// Do what a key asks for; what there is to say comes back.
    pub fn update(&mut self, action: Action, facts: &Facts<'_>, hits: &HitMap, matrix: &mut MatrixPanel) -> Option<String> {
        let atlas = facts.atlas;
        let last = atlas.rows().len().saturating_sub(1);
        let page = hits.tree_rows.len().max(1);
        match action {
            Action::Up => self.put(self.at.saturating_sub(1)),
            Action::Down => self.put((self.at + 1).min(last)),
            Action::PageUp => self.put(self.at.saturating_sub(page)),
            Action::PageDown => self.put((self.at + page).min(last)),
            Action::Home => self.put(0),
            Action::End => self.put(last),
            Action::Left | Action::Right => self.along(action == Action::Right, atlas),
            Action::Fold if self.fold(atlas) => {}
            Action::Fold => return self.choose(facts, matrix),
            Action::OtherSight => {
                self.sight = if self.sight == Sight::Route { Sight::Classes } else { Sight::Route };
            }
            Action::RouteFrom | Action::RouteTo => {
                let Some(rank) = self.rank(atlas) else { return Some("no rank sits here".to_owned()) };
                let (from, to) = matrix.cursor;
                matrix.put(if action == Action::RouteFrom { (rank, to) } else { (from, rank) }, facts.model.world());
                matrix.pinned = true;
            }
            Action::TurnRoute => {
                let (from, to) = matrix.cursor;
                matrix.put((to, from), facts.model.world());
            }
            Action::NextFault => {
                let suspects = atlas.suspects();
                if suspects.is_empty() {
                    return Some("nothing is at fault as far as is known".to_owned());
                }
                let next = self.suspect.map_or(0, |last| (last + 1) % suspects.len());
                self.suspect = Some(next);
                self.show(suspects[next], facts, matrix);
            }
            Action::Find => self.typing = Some(Typing::new(&self.wanted)),
            Action::SamplesUp => self.scroll = self.scroll.saturating_sub(1),
            Action::SamplesDown => self.scroll = (self.scroll + 1).min(hits.notes.map_or(0, |(_, most)| most)),
            _ => {}
        }
        None
    }

    /// Put the cursor on a node, and select the worst pair of its rank.
    fn show(&mut self, node: u32, facts: &Facts<'_>, matrix: &mut MatrixPanel) {
        self.go(&facts.atlas.tree, node);
        if let Some(&rank) = facts.atlas.tree.ranks_at(node).first() {
            Self::choose_rank(rank, facts, matrix);
        }
    }

    /// The first time that somebody looks: what is at fault, and the pair that shows it, unless they chose one.
    pub fn greet(&mut self, facts: &Facts<'_>, matrix: &mut MatrixPanel) {
        self.greeted = true;
        let suspects = facts.atlas.suspects();
        // One with a rank shows what it costs.
        let with = suspects.iter().position(|&node| !facts.atlas.tree.ranks_at(node).is_empty());
        let Some(at) = with.or((!suspects.is_empty()).then_some(0)) else { return };
        let pinned = matrix.pinned;
        let chosen = matrix.cursor;
        self.suspect = Some(at);
        self.show(suspects[at], facts, matrix);
        if pinned {
            matrix.put(chosen, facts.model.world());
        }
        matrix.pinned = pinned;
    }

    /// Into what lies below the cursor, or out to what lies above it.
    fn along(&mut self, inwards: bool, atlas: &Atlas) {
        let Some((node, found)) = atlas.at(self.at) else { return };
        let open = self.is_open(&atlas.tree, node);
        match (inwards, open, found.parent) {
            (true, true, _) => self.put(self.at + 1),
            (true, false, _) | (false, true, _) => {
                self.fold(atlas);
            }
            (false, false, Some(above)) => self.go(&atlas.tree, above),
            (false, false, None) => {}
        }
    }

    /// The rank under the cursor.
    fn rank(&self, atlas: &Atlas) -> Option<usize> {
        atlas.at(self.at)?.1.ranks.first().copied()
    }

    /// Select the worst pair of the rank under the cursor.
    fn choose(&self, facts: &Facts<'_>, matrix: &mut MatrixPanel) -> Option<String> {
        match self.rank(facts.atlas) {
            Some(rank) => Self::choose_rank(rank, facts, matrix),
            None => return Some("no rank sits here".to_owned()),
        }
        None
    }

    fn choose_rank(rank: usize, facts: &Facts<'_>, matrix: &mut MatrixPanel) {
        if let Some(pair) = Shares::worst_pair(facts.model, &facts.atlas.router, facts.view.key, rank) {
            matrix.put(pair, facts.model.world());
            matrix.pinned = true;
        }
    }

    /// Take what was typed: the cursor goes to the next line that has it.
    pub fn accept(&mut self, atlas: &Atlas) -> Option<String> {
        let typed = self.typing.take()?.text();
        let after = atlas.at(self.at).map(|(node, _)| node);
        let found = atlas.tree.find(&typed, after);
        self.wanted = typed;
        match found {
            Some(node) => {
                self.go(&atlas.tree, node);
                None
            }
            None if self.wanted.trim().is_empty() => None,
            None => Some(format!("nothing here is called {:?}", self.wanted)),
        }
    }
}
