use serde::{Deserialize, Serialize};

use crate::sample::{Pattern, Sample};

/// One cell of a matrix: a pattern and its ordered pair of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// one of pairs ([`Pattern::is_pair`])
    pub pattern: Pattern,
    /// sending rank
    pub from: usize,
    /// receiving rank
    pub to: usize,
}

/// Transfers that run at the same time and are told together: a fan by its root and peers, never by its width alone (the
/// peers decide on a tree); a relay by its shift; a set of a pattern file by its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Group {
    /// `fan_out`, `fan_in`, relay or custom
    pub pattern: Pattern,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<usize>,
    /// ascending, without the root
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<u32>,
}

impl Group {
    /// A fan: `pattern` is `fan_out` or `fan_in`.
    pub fn fan(pattern: Pattern, root: usize, mut peers: Vec<usize>) -> Self {
        peers.sort_unstable();
        Self { pattern, root: Some(root), peers, shift: None, set: None }
    }

    /// A relay over all ranks that take part.
    pub const fn relay(shift: usize) -> Self {
        Self { pattern: Pattern::Relay, root: None, peers: Vec::new(), shift: Some(shift), set: None }
    }

    /// The transfers of a pattern file that have this number.
    pub const fn custom(set: u32) -> Self {
        Self { pattern: Pattern::Custom, root: None, peers: Vec::new(), shift: None, set: Some(set) }
    }

    /// Where a sample belongs; `None` if to a pair.
    pub fn of(sample: &Sample) -> Option<Self> {
        let Sample { pattern, root, shift, set, .. } = *sample;
        (!pattern.is_pair()).then(|| Self { pattern, root, peers: sample.peers.clone(), shift, set })
    }

    /// As a person would say it: `fan_in 0 ← 1-3`, `relay +1`, `custom 4`.
    pub fn describe(&self) -> String {
        let name = self.pattern.name();
        let peers = crate::units::format_ranks(&self.peers);
        match (self.pattern, self.root, self.shift, self.set) {
            (Pattern::FanIn, Some(root), ..) => format!("{name} {root} ← {peers}"),
            (_, Some(root), ..) => format!("{name} {root} → {peers}"),
            (_, _, Some(shift), _) => format!("{name} +{shift}"),
            (_, _, _, Some(set)) => format!("{name} {set}"),
            _ => name.to_owned(),
        }
    }
}

/// What a probe measures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Target {
    /// a pair; of `duplex` the one with `from` < `to`, which stands for both directions
    Pair(Cell),
    Group(Group),
}

impl Target {
    /// What it does.
    pub const fn pattern(&self) -> Pattern {
        match self {
            Self::Pair(cell) => cell.pattern,
            Self::Group(group) => group.pattern,
        }
    }

    /// The cells of a pair: one, or both directions of `duplex`; none of a group.
    pub fn cells(&self) -> Vec<Cell> {
        match *self {
            Self::Pair(cell @ Cell { pattern: Pattern::Duplex, from, to }) => vec![cell, Cell { from: to, to: from, ..cell }],
            Self::Pair(cell) => vec![cell],
            Self::Group(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_back_as_what_they_were() {
        let pair = Target::Pair(Cell { pattern: Pattern::Peer, from: 2, to: 0 });
        let text = serde_json::to_string(&pair).unwrap();
        assert_eq!(text, r#"{"pattern":"peer","from":2,"to":0}"#);
        for target in [
            pair,
            Target::Group(Group::fan(Pattern::FanIn, 0, vec![3, 1])),
            Target::Group(Group::relay(2)),
            Target::Group(Group::custom(7)),
        ] {
            let text = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<Target>(&text).unwrap(), target, "{text}");
        }
        assert_eq!(Group::fan(Pattern::FanIn, 0, vec![3, 1, 2]).describe(), "fan_in 0 ← 1-3");
    }
}
