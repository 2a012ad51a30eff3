//! What a test has told, in sentences.

use super::super::Measured;
use super::focus::Focus;
use super::traits::{At, Shared, Traits};
use super::weigh::Outcome;
use super::{Test, TestKind, TestResult};
use crate::topology::Level;
use crate::units::{format_gbps, format_ranks};

/// What a set is called: `2→5`, `0-3 into 4`.
pub(super) fn set(test: &Test, at: usize) -> String {
    let flows = test.sets.get(at).map_or(&[][..], Vec::as_slice);
    let senders = |pick: fn(&(usize, usize)) -> usize| {
        let mut ranks: Vec<usize> = flows.iter().map(pick).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    let (from, to) = (senders(|flow| flow.0), senders(|flow| flow.1));
    let name = match (flows, &from[..], &to[..]) {
        ([(from, to)], ..) => format!("{from}→{to}"),
        (_, peers, [root]) => format!("{} into {root} at the same time", format_ranks(peers)),
        (_, [root], peers) => format!("{root} to {} at the same time", format_ranks(peers)),
        _ => flows.iter().map(|(from, to)| format!("{from}→{to}")).collect::<Vec<_>>().join(" beside "),
    };
    match test.windows.get(at) {
        Some(1) => format!("{name} with one message outstanding"),
        Some(window) => format!("{name} with {window} messages outstanding"),
        None => name,
    }
}

/// The figures, and what follows; empty if nothing does.
pub(super) fn sentence(result: &TestResult, outcomes: &[Option<Outcome>], follows: &str) -> String {
    let seen = outcomes.iter().enumerate().filter_map(|(at, own)| own.map(|own| (at, own.aggregate)));
    let mut figures: Vec<String> = seen.map(|(at, rate)| format!("{} gives {}", set(&result.test, at), format_gbps(rate))).collect();
    for later in figures.iter_mut().skip(1) {
        *later = later.replacen(" gives ", " ", 1);
    }
    let failed = if result.reason.is_empty() { String::new() } else { format!("a test failed ({}): {}", result.test.say, result.reason) };
    if figures.is_empty() {
        return if failed.is_empty() { format!("a test brought nothing ({})", result.test.say) } else { failed };
    }
    let follows = if follows.is_empty() { "that does not decide it" } else { follows };
    let failed = if failed.is_empty() { failed } else { format!("; {failed}") };
    format!("{} GB/s: {follows}{failed}", figures.join(", "))
}

/// What is so, as a test of this kind shows it.
pub(super) fn conclusion(measured: &Measured, focus: &Focus, test: &Test, traits: Traits) -> String {
    if traits.passing == Some(true) && matches!(focus, Focus::Pair(_)) {
        return "it has passed".to_owned();
    }
    match (focus, test.kind) {
        (Focus::Fan(fan), _) => {
            let root = fan.root;
            let does = if fan.into { "takes" } else { "gives" };
            let named = |level| measured.units.unit(level, root).map_or_else(String::new, |unit| measured.units.name(unit).to_owned());
            match traits.shared {
                Some(Shared::Root) => format!("rank {root} {does} no more, whoever its peers are"),
                Some(Shared::Turns) => format!("rank {root} serves one after another"),
                Some(Shared::Border(level @ (Level::Socket | Level::Switch | Level::Host))) => {
                    format!("what bounds them is the way {} {}", if fan.into { "into" } else { "out of" }, named(level))
                }
                Some(Shared::Member) => "one of the first peers is slow, the others are not".to_owned(),
                _ => String::new(),
            }
        }
        (Focus::Pair(pair), TestKind::SwapPartners) => match traits.at {
            Some(At::Sender) => format!("it is what {} sends", pair.from),
            Some(At::Receiver) => format!("it is what {} receives", pair.to),
            Some(At::Way) => format!("it is the way from {} to {}, both do well with others", pair.from, pair.to),
            Some(At::Beside) => "it is slow only beside others".to_owned(),
            _ => String::new(),
        },
        (_, TestKind::Reverse) => match traits.both_ways {
            Some(true) => "both directions are slow".to_owned(),
            Some(false) => "it is one direction alone".to_owned(),
            None => String::new(),
        },
        (_, TestKind::UnderLoad) => match traits.at {
            Some(At::Beside) => "it is slow only beside others".to_owned(),
            Some(_) => "it is slow alone, too".to_owned(),
            None => String::new(),
        },
        (_, TestKind::Depth) => match traits.latency {
            Some(true) => "more messages outstanding make up for it: it is latency".to_owned(),
            Some(false) => "more messages outstanding do not help: it is what each byte takes".to_owned(),
            None => String::new(),
        },
        (_, TestKind::OtherMover) => match traits.mover {
            Some(true) => "the other mover is not slow".to_owned(),
            Some(false) => "the other mover is as slow".to_owned(),
            None => String::new(),
        },
        (_, TestKind::OtherMemory) => match traits.device {
            Some(true) => "only device memory is slow".to_owned(),
            Some(false) => "host memory is as slow".to_owned(),
            None => String::new(),
        },
        (_, TestKind::Again) => "it lasts".to_owned(),
        (_, TestKind::OtherPeers) => String::new(),
    }
}

/// What speaks against a cause that foresaw something else of a set.
pub(super) fn against(test: &Test, at: usize, seen: f64, (low, high): (f64, f64)) -> String {
    let (low, high) = (format_gbps(low), format_gbps(high));
    let foreseen = if low == high { low } else { format!("{low} to {high}") };
    format!("{} gives {} GB/s, where it would give {foreseen}", set(test, at), format_gbps(seen))
}
