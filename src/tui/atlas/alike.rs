//! Which hosts are made of the same, and in what the others differ.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::devices::Part;

/// Hosts that are made of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// places among all hosts, ascending
    pub hosts: Vec<usize>,
    /// in what they differ from most hosts; empty for those
    pub differs: String,
}

/// From so many hosts on that differ alike they share a line.
const SHARE: usize = 3;

impl Group {
    /// `126 hosts alike · node001 – node128`; `None` for hosts that stand for themselves.
    pub fn name(&self, parts: &[Part]) -> Option<String> {
        if self.hosts.len() < if self.differs.is_empty() { 2 } else { SHARE } {
            return None;
        }
        let name = |at: Option<&usize>| at.and_then(|&at| parts.get(at)).map_or("", |part| part.node.name.as_str());
        Some(format!("{} hosts alike · {} – {}", self.hosts.len(), name(self.hosts.first()), name(self.hosts.last())))
    }
}

/// Hosts by what they are made of: those of which there are few first, most hosts last.
pub fn groups(parts: &[Part]) -> Vec<Group> {
    let mut lines: Vec<Vec<&Part>> = Vec::new();
    let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (host, part) in parts.iter().enumerate() {
        let mut all = Vec::new();
        walk(part, &mut all);
        let kinds: Vec<&str> = all.iter().map(|part| part.kind.as_str()).collect();
        let at = *known.entry(kinds).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.hosts.push(host),
            None => groups.push(Group { hosts: vec![host], differs: String::new() }),
        }
        lines.push(all);
    }
    // Of groups of one size the usual one is that with fewer faults, or the first.
    let faults = |group: &Group| lines[group.hosts[0]].iter().flat_map(|part| &part.node.marks).filter(|mark| mark.fault).count();
    let usual = |(at, group): &(usize, &Group)| (group.hosts.len(), Reverse(faults(group)), Reverse(*at));
    let most = groups.iter().enumerate().max_by_key(usual).map(|(at, _)| at);
    let Some(usual) = most.and_then(|most| groups[most].hosts.first().copied()) else { return groups };
    for group in groups.iter_mut().filter(|group| !group.hosts.contains(&usual)) {
        group.differs = differs(&lines[group.hosts[0]], &lines[usual]);
    }
    groups.sort_by_key(|group| (group.hosts.contains(&usual), group.hosts.len(), group.hosts[0]));
    groups
}

fn walk<'a>(part: &'a Part, all: &mut Vec<&'a Part>) {
    all.push(part);
    for below in &part.below {
        walk(below, all);
    }
}

/// In what a host differs from the usual one: `GPU 2 Gen5 x8 of x16, 1 more`.
fn differs(own: &[&Part], usual: &[&Part]) -> String {
    let what =
        |part: &Part| if part.node.state.is_empty() { part.node.name.clone() } else { format!("{} {}", part.node.name, part.node.state) };
    let mut found: Vec<String> = if own.len() == usual.len() {
        own.iter().zip(usual).filter(|(own, usual)| own.kind != usual.kind).map(|(own, _)| what(own)).collect()
    } else {
        // Lines that one has and the other has not, each as often.
        let mut left: HashMap<&str, (isize, &Part)> = HashMap::new();
        for (parts, step) in [(own, 1), (usual, -1)] {
            for part in parts {
                left.entry(&part.kind).or_insert((0, part)).0 += step;
            }
        }
        let mut left: Vec<(isize, &Part)> = left.into_values().filter(|(count, _)| *count != 0).collect();
        left.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.kind.cmp(&b.1.kind)));
        left.iter().map(|(count, part)| format!("{} {}", if *count < 0 { "without" } else { "with" }, what(part))).collect()
    };
    // The host's own line says what all others do, in general words.
    if found.len() > 1 && own.first().zip(usual.first()).is_some_and(|(own, usual)| own.kind != usual.kind) {
        found.remove(0);
    }
    let more = found.len().saturating_sub(1);
    let first = found.into_iter().next().unwrap_or_else(|| "differs".to_owned());
    if more > 0 { format!("{first}, {more} more") } else { first }
}
