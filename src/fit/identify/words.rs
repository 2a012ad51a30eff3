//! What is said of resources and explanations.

use super::stands::Alike;
use super::types::{Explanation, Side, Stand};
use super::undecided::Telling;
use crate::sample::Pattern;
use crate::topology::{Level, PathClass, Unit, Units};
use crate::units::{format_ranks, plain};

/// Names in full before the rest becomes a number.
const NAMES: usize = 4;

impl Explanation {
    /// What it says, as part of a sentence; of a fan in.
    pub const fn words(self) -> &'static str {
        match self {
            Self::SlowestPair => "nothing is shared",
            Self::Busiest => "fixed limits of the receiver and of the link between sockets",
            Self::BusiestByWidth => "a limit of the receiver for each number of senders",
            Self::TimeShared => "a receiver that serves one sender after another",
            Self::TimeSharedBy => "a receiver that serves its senders in turns",
            Self::TimeSharedBySocket => "each socket's senders one after another",
            Self::TimeSharedLink => "a link between sockets that serves one sender after another",
            Self::Mixture => "a receiver partly in turns, partly all at once",
            Self::MixtureBusiest => "a receiver partly in turns, with fixed limits",
        }
    }

    /// What it blames, in two words.
    const fn blames(self) -> &'static str {
        match self {
            Self::SlowestPair => "the slowest pair",
            Self::Busiest | Self::TimeSharedLink => "cross-socket link",
            Self::BusiestByWidth => "limit by width",
            Self::TimeShared | Self::TimeSharedBy => "receiver limit",
            Self::TimeSharedBySocket => "sockets in turns",
            Self::Mixture | Self::MixtureBusiest => "partly in turns",
        }
    }
}

impl Stand {
    /// What its explanation says of its fans, as part of a sentence.
    pub fn words(&self) -> String {
        turned(self.explanation.words(), self.pattern, self.path)
    }
}

/// The same words for a fan that goes the other way.
fn turned(text: &str, pattern: Pattern, path: Option<PathClass>) -> String {
    let text = if path == Some(PathClass::IntraNode) {
        text.to_owned()
    } else if path == Some(PathClass::InterNode) {
        text.replace(" and of the link between sockets", "")
    } else {
        text.replace("between sockets", "between hosts").replace("cross-socket", "cross-host").replace("socket", "host")
    };
    if pattern == Pattern::FanOut {
        text.replace("receiver", "SENDER").replace("sender", "receiver").replace("SENDER", "sender")
    } else {
        text
    }
}

/// What is open between two explanations, and what would tell.
pub(super) fn undecided(alike: &Alike, one: Explanation, other: Explanation, telling: Option<&Telling>) -> String {
    let turned = |text: &str| turned(text, alike.pattern, alike.path);
    // Where no fan crosses a border, a fixed limit is one of the root.
    let crosses = alike.points.iter().flat_map(|point| &point.fans).any(|fan| fan.crossing > 0.0);
    let words = |by: Explanation| match by {
        Explanation::Busiest if !crosses => turned("a fixed limit of the receiver"),
        _ => turned(by.words()),
    };
    let blames = |by: Explanation| match by {
        Explanation::Busiest if !crosses => "a fixed limit".to_owned(),
        Explanation::TimeShared | Explanation::TimeSharedBy if !crosses => "in turns".to_owned(),
        _ => turned(by.blames()),
    };
    let extremes = alike.points.len() - alike.fans;
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let data = match (alike.fans, extremes) {
        (fans, 0) => format!("the {}", count(fans, "fan")),
        (0, extremes) => format!("the {}", count(extremes, "published extreme")),
        (fans, extremes) => format!("the {} with known peers (beside {})", count(fans, "fan"), count(extremes, "published extreme")),
    };
    let ask = format!("{} or {}: {data} do not tell {} from {}", blames(one), blames(other), words(one), words(other));
    let Some((root, peers, predicted)) = telling else {
        return format!("{ask}; no fan of up to 8 would, since all its pairs are alike");
    };
    let arrow = if alike.pattern == Pattern::FanOut { '→' } else { '←' };
    let names: Vec<String> = peers.iter().map(usize::to_string).collect();
    format!("{ask}; the fan {root} {arrow} {} would: {} or {}", names.join(", "), rate(predicted.0), rate(predicted.1))
}

fn rate(rate: f64) -> String {
    if rate >= 1e9 { format!("{:.1} GB/s", rate / 1e9) } else { format!("{:.0} MB/s", rate / 1e6) }
}

/// `link out of NUMA 0 of b70`.
pub fn resource(units: &Units, unit: Unit, side: Side, path: Option<PathClass>) -> String {
    let name = plain(units.name(unit));
    let part = match (unit.level, side) {
        (Level::Rank, Side::Out) => "send side",
        (Level::Rank, Side::In) => "receive side",
        (Level::Switch, Side::Out) => return format!("uplink of {name}"),
        (Level::Switch, Side::In) => return format!("downlink of {name}"),
        (Level::Socket, Side::Out) => return format!("link out of {name}"),
        (Level::Socket, Side::In) => return format!("link into {name}"),
        (Level::Host, Side::Out) => return format!("network out of {name}"),
        (Level::Host, Side::In) => return format!("network into {name}"),
        (_, Side::Within) => return format!("memory and links within {name}"),
    };
    format!("{part} of {name}{}", over(path))
}

/// `send side of a rank`.
pub(super) fn every(level: Level, side: Side, path: Option<PathClass>) -> String {
    let part = match (level, side) {
        (Level::Rank, Side::Out) => "send side of every rank",
        (Level::Rank, Side::In) => "receive side of every rank",
        (Level::Rank, Side::Within) => "copies within every rank",
        (Level::Switch, Side::Out) => "uplink of every switch",
        (Level::Switch, Side::In) => "downlink of every switch",
        (Level::Switch, Side::Within) => "links within every switch",
        (Level::Socket, Side::Out) => "link out of every socket",
        (Level::Socket, Side::In) => "link into every socket",
        (Level::Socket, Side::Within) => "memory and links within every socket",
        (Level::Host, Side::Out) => "network out of every host",
        (Level::Host, Side::In) => "network into every host",
        (Level::Host, Side::Within) => "memory and links within every host",
    };
    format!("{part}{}", if level == Level::Rank { over(path) } else { "" })
}

const fn over(path: Option<PathClass>) -> &'static str {
    match path {
        Some(PathClass::IntraNode) => " within its host",
        Some(PathClass::InterNode) => " to other hosts",
        _ => "",
    }
}

/// `shared link from node1, node2 to node3, node4`, or between ranks of one host.
pub(super) fn between(units: &Units, from: &[usize], to: &[usize], within: Option<Unit>) -> String {
    if let Some(host) = within {
        return format!("shared link inside {} from ranks {} to ranks {}", plain(units.name(host)), format_ranks(from), format_ranks(to));
    }
    let names = |hosts: &[usize]| {
        let all: Vec<String> = hosts.iter().map(|&number| plain(units.name(Unit { level: Level::Host, number }))).collect();
        if all.len() <= NAMES { all.join(", ") } else { format!("{} and {} more", all[..NAMES - 1].join(", "), all.len() - NAMES + 1) }
    };
    format!("shared link from {} to {}", names(from), names(to))
}
