//! Fans on a written page: over the roots of each width, and each by itself.

use std::collections::BTreeMap;

use super::page::{Block, titles};
use crate::diagnose::Measured;
use crate::fit::{Fan, FanRate, Fits, median};
use crate::units::{format_gbps, format_ranks, format_size};

/// Fans that are told one by one at most.
const FANS: usize = 128;

/// Over all roots and one by one, of the largest size that most fans have.
pub fn fans(fits: &Fits, measured: &Measured) -> (Vec<Block>, Vec<Block>) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    fits.fans.iter().for_each(|fan| *counts.entry(fan.bytes).or_default() += 1);
    let Some((&bytes, _)) = counts.iter().max_by_key(|&(&bytes, &count)| (count, bytes)) else { return (Vec::new(), Vec::new()) };
    let own: Vec<&FanRate> = fits.fans.iter().filter(|fan| fan.bytes == bytes && fan.aggregate.is_finite()).collect();
    let mut widths: BTreeMap<(bool, usize), Vec<&FanRate>> = BTreeMap::new();
    for fan in &own {
        widths.entry((fan.fan == Fan::Out, fan.peers.len())).or_default().push(fan);
    }
    let over = widths.into_iter().filter_map(|((out, width), fans)| {
        let by = |a: &&&FanRate, b: &&&FanRate| a.aggregate.total_cmp(&b.aggregate);
        let (least, most) = (fans.iter().min_by(by)?, fans.iter().max_by(by)?);
        let mut rates: Vec<f64> = fans.iter().map(|fan| fan.aggregate).collect();
        let mut at_once: Vec<f64> = fans.iter().filter_map(|fan| fan.concurrency).collect();
        let at_once = if at_once.is_empty() { "–".to_owned() } else { format!("{:.2}", median(&mut at_once)) };
        let told = |fan: &FanRate| format!("{} (rank {})", format_gbps(fan.aggregate), fan.root);
        Some(vec![
            if out { "1 → N" } else { "N → 1" }.to_owned(),
            width.to_string(),
            fans.len().to_string(),
            told(least),
            format_gbps(median(&mut rates)),
            told(most),
            at_once,
        ])
    });
    let over = vec![
        Block::Text(format!("All bytes over the root's own time, GB/s, at {} a message.", format_size(bytes))),
        Block::Table { head: titles(["way", "peers", "fans", "least", "median", "most", "at a time"]), rows: over.collect() },
    ];
    let mut slowest = own.clone();
    let per_peer = |fan: &FanRate| fan.aggregate / alone(fan, measured);
    slowest.sort_by(|a, b| per_peer(a).total_cmp(&per_peer(b)));
    let rows = slowest.iter().take(FANS).map(|fan| {
        let interval = fan.aggregate_ci.map_or_else(|| "–".to_owned(), |own| format!("{}–{}", format_gbps(own.low), format_gbps(own.high)));
        vec![
            if fan.fan == Fan::Out { "1 → N" } else { "N → 1" }.to_owned(),
            fan.root.to_string(),
            format_ranks(&fan.peers),
            format_gbps(fan.aggregate),
            interval,
            fan.concurrency.map_or_else(|| "–".to_owned(), |own| format!("{own:.2}")),
            fan.n.to_string(),
        ]
    });
    let mut each =
        vec![Block::Table { head: titles(["way", "root", "peers", "GB/s", "95 %", "at a time", "repeats"]), rows: rows.collect() }];
    if slowest.len() > FANS {
        each.push(Block::Text(format!("and {} more fans, whose share of their pairs' own rates is larger.", slowest.len() - FANS)));
    }
    (over, each)
}

/// The fastest of a fan's pairs alone, bytes per second.
fn alone(fan: &FanRate, measured: &Measured) -> f64 {
    let own = |&peer: &usize| if fan.fan == Fan::In { measured.rate(peer, fan.root) } else { measured.rate(fan.root, peer) };
    fan.peers.iter().filter_map(own).fold(f64::NAN, f64::max)
}
