//! Hosts and what they are made of, as lines that fold.

use std::collections::HashMap;

use super::alike;
use super::devices::{self, Part};
use crate::topology::Topology;
use crate::units::plain;

/// What a line of the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// hosts that are made of the same
    Alike,
    Host,
    Numa,
    Switch,
    Gpu,
    Nic,
    /// devices that are neither, folded away
    Others,
    Other,
}

/// What is wrong with a device, or not to be taken as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// false for what is merely doubtful
    pub fault: bool,
    /// `x8 of x16`
    pub text: String,
}

/// A line of the tree.
#[derive(Debug, Clone)]
pub struct Node {
    pub kind: NodeKind,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
    pub depth: u16,
    /// index in [`Topology::hardware`]; none for groups, and for hosts that told nothing
    pub host: Option<usize>,
    pub name: String,
    /// how its link is trained, or what it has
    pub state: String,
    /// what a person calls such a one
    pub model: String,
    pub marks: Vec<Mark>,
    /// ranks that sit there, ascending
    pub ranks: Vec<usize>,
    /// marks that are faults, of it and of all below it
    pub faults: usize,
    /// unfolded unless the person folds it
    pub open: bool,
}

/// All lines.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    roots: Vec<u32>,
    /// nodes with a fault of their own, as they stand in the tree
    faults: Vec<u32>,
    /// where a rank sits
    ranks: HashMap<usize, u32>,
}

/// Hosts up to which those alike are shown one by one from the beginning.
const FEW: usize = 2;

impl Tree {
    /// Hosts that differ from the others first, then those alike in a line of their own.
    pub fn of(topology: &Topology) -> Self {
        let mut tree = Self::default();
        if topology.hardware.is_empty() {
            return tree;
        }
        let mut ranks: HashMap<&str, Vec<usize>> = HashMap::new();
        for placement in &topology.ranks {
            ranks.entry(&placement.host).or_default().push(placement.rank);
        }
        let of_host = |host: &str| ranks.get(host).map_or(&[][..], Vec::as_slice);
        let parts: Vec<Part> =
            topology.hardware.iter().map(|hardware| devices::parts(hardware, &topology.ranks, of_host(&hardware.host))).collect();
        let groups = alike::groups(&parts);
        let several = topology.hardware.len() > 1;
        for group in groups {
            let parent = group.name(&parts).filter(|_| several).map(|name| {
                let open = group.hosts.len() <= FEW;
                let line = Node { open, ..Node::new(NodeKind::Alike, name) };
                tree.add(None, Node { state: group.differs.clone(), ..line })
            });
            for &host in &group.hosts {
                let at = tree.put(parent, host, &parts[host]);
                if parent.is_none() && !group.differs.is_empty() {
                    tree.nodes[at as usize].state.clone_from(&group.differs);
                }
            }
        }
        // Hosts with ranks of which nobody told anything.
        for host in topology.hosts() {
            if topology.hardware_of(host).is_none() {
                let line =
                    Node { state: "told nothing".to_owned(), ranks: of_host(host).to_vec(), ..Node::new(NodeKind::Host, plain(host)) };
                tree.add(None, line);
            }
        }
        tree.count();
        tree
    }

    /// A part and all below it; where its first line is.
    fn put(&mut self, parent: Option<u32>, host: usize, part: &Part) -> u32 {
        let at = self.add(parent, Node { host: Some(host), ..part.node.clone() });
        for below in &part.below {
            self.put(Some(at), host, below);
        }
        at
    }

    fn add(&mut self, parent: Option<u32>, node: Node) -> u32 {
        let at = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let depth = parent.and_then(|parent| self.nodes.get(parent as usize)).map_or(0, |above| above.depth + 1);
        for &rank in &node.ranks {
            self.ranks.insert(rank, at);
        }
        self.nodes.push(Node { parent, depth, ..node });
        match parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
            Some(above) => above.children.push(at),
            None => self.roots.push(at),
        }
        at
    }

    /// Count faults upwards, and unfold what has some.
    fn count(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let own = self.nodes[at].marks.iter().filter(|mark| mark.fault).count();
            if own > 0 {
                self.faults.push(at as u32);
            }
            self.nodes[at].faults += own;
            let (faults, parent) = (self.nodes[at].faults, self.nodes[at].parent);
            if let Some(above) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
                above.faults += faults;
            }
        }
        self.faults.reverse();
        // One host is shown whole, of several those in which something is wrong and that are not one of many alike.
        let alone = self.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() == 1;
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let shown = node.parent.is_none_or(|parent| self.nodes[parent as usize].open);
            self.nodes[at].open |= match node.kind {
                NodeKind::Host => alone || node.faults > 0 && shown,
                NodeKind::Numa | NodeKind::Switch => true,
                _ => false,
            };
        }
    }

    /// The device whose link a hop of a host is, as routes name it: of its two ends the one further from the processor.
    pub fn of_hop(&self, topology: &Topology, host: &str, hop: &str) -> Option<u32> {
        let host = topology.hardware.iter().position(|hardware| hardware.host == host)?;
        let ends: Vec<String> = hop.split(" → ").map(super::short).collect();
        let is = |node: &Node| {
            let named =
                |end: &String| node.name.strip_prefix(end.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(" port "));
            node.host == Some(host) && ends.iter().any(named)
        };
        let own = |kind| self.nodes.iter().position(|node: &Node| node.kind == kind && node.host == Some(host));
        let found =
            self.nodes.iter().enumerate().filter(|(_, node)| is(node)).max_by_key(|(at, node)| (node.depth, std::cmp::Reverse(*at)));
        found.map(|(at, _)| at).or_else(|| own(NodeKind::Host)).map(|at| at as u32)
    }

    /// True if nobody told anything.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    /// Nodes with a fault of their own, top to bottom.
    pub fn faults(&self) -> &[u32] {
        &self.faults
    }

    /// Where a rank sits.
    pub fn of_rank(&self, rank: usize) -> Option<u32> {
        self.ranks.get(&rank).copied()
    }

    /// A node and all above it, nearest first.
    pub fn above(&self, at: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(at), |&at| self.node(at)?.parent)
    }

    /// The ranks that sit on a node.
    pub fn ranks_at(&self, at: u32) -> &[usize] {
        self.node(at).map_or(&[], |node| &node.ranks)
    }

    /// The lines that are to be seen, top to bottom, in O(lines).
    pub fn unfolded(&self, is_open: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut left: Vec<u32> = self.roots.iter().rev().copied().collect();
        while let Some(at) = left.pop() {
            rows.push(at);
            if is_open(at) {
                left.extend(self.node(at).into_iter().flat_map(|node| node.children.iter().rev()));
            }
        }
        rows
    }

    /// The next node from a line on, round the end, whose name, state, marks or ranks have a word.
    pub fn find(&self, text: &str, after: Option<u32>) -> Option<u32> {
        let wanted = text.trim().to_lowercase();
        if wanted.is_empty() {
            return None;
        }
        // `12` and `rank 12` are a rank, if there is such a one.
        let rank = wanted.strip_prefix("rank").unwrap_or(&wanted).trim().parse().ok();
        if let Some(node) = rank.and_then(|rank: usize| self.of_rank(rank)) {
            return Some(node);
        }
        let has = |node: &Node| {
            let marks = node.marks.iter().any(|mark| mark.text.to_lowercase().contains(&wanted));
            marks || node.name.to_lowercase().contains(&wanted) || node.state.to_lowercase().contains(&wanted)
        };
        let begin = after.map_or(0, |at| at as usize + 1);
        let n = self.nodes.len();
        (0..n).map(|step| (begin + step) % n).find(|&at| has(&self.nodes[at])).map(|at| at as u32)
    }
}

impl Node {
    pub fn new(kind: NodeKind, name: String) -> Self {
        Self {
            kind,
            parent: None,
            children: Vec::new(),
            depth: 0,
            host: None,
            name,
            state: String::new(),
            model: String::new(),
            marks: Vec::new(),
            ranks: Vec::new(),
            faults: 0,
            open: false,
        }
    }
}
