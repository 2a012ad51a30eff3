//! `toposcope plan schedule`: what a plan sends between processes, round by round.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::super::plans::GivenArgs;
use super::super::{FINE, print};
use super::some;
use crate::import::plans;
use crate::plan::schedule::{Counts, Lane, Round, Schedule, schedule};
use crate::plan::{Batch, Transfers};
use crate::units::format_size;

#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// A plan, a batch of plans, or an Awex communication plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    #[command(flatten)]
    pub given: GivenArgs,
    /// Tell one process only, peer by peer
    #[arg(long, value_name = "P")]
    pub process: Option<usize>,
    /// Print JSON, with every round
    #[arg(long)]
    pub json: bool,
}

/// Schedule it, and tell.
pub(super) fn run(wanted: &ScheduleArgs) -> Result<u8> {
    let given = wanted.given.given()?;
    let file = wanted.plan.display();
    let Transfers::Batch(batch) = plans::read(&wanted.plan, &given)? else {
        bail!("{file}: flows between ranks, which need no schedule: `toposcope replay` prices them")
    };
    let made = schedule(&batch, wanted.process).with_context(|| file.to_string())?;
    if wanted.json {
        print(&(serde_json::to_string_pretty(&told(&batch, &made))? + "\n"));
    } else {
        print(&text(&batch, &made, wanted.process));
    }
    Ok(FINE)
}

#[derive(Serialize)]
struct Told<'a> {
    bytes_per_peer: u64,
    chunks: usize,
    processes: Vec<ToldProcess>,
    lanes: Vec<ToldLane>,
    local_copies: Vec<ToldCopy<'a>>,
}

#[derive(Serialize)]
struct ToldProcess {
    process: usize,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Serialize)]
struct ToldLane {
    from: usize,
    to: usize,
    /// bytes
    send_arena: u64,
    receive_arena: u64,
    rounds: Vec<ToldRound>,
}

#[derive(Serialize)]
struct ToldRound {
    elements: u64,
    bytes: u64,
    chunks: usize,
    sent_in_place: bool,
    received_in_place: bool,
}

#[derive(Serialize)]
struct ToldCopy<'a> {
    process: usize,
    parameter: &'a str,
    segment: u32,
    bytes: u64,
}

fn told<'a>(batch: &'a Batch, made: &Schedule) -> Told<'a> {
    let round = |round: &Round| ToldRound {
        elements: round.elements,
        bytes: round.bytes,
        chunks: round.chunks.len(),
        sent_in_place: round.sent_in_place,
        received_in_place: round.received_in_place,
    };
    let lane = |lane: &Lane| ToldLane {
        from: lane.from,
        to: lane.to,
        send_arena: lane.send_arena,
        receive_arena: lane.receive_arena,
        rounds: made.rounds_of(lane).iter().map(round).collect(),
    };
    let copies = made.copies.iter().map(|copy| ToldCopy {
        process: copy.process,
        parameter: batch.parameters.get(copy.parameter as usize).map_or("", |parameter| &parameter.name),
        segment: copy.segment,
        bytes: copy.bytes,
    });
    Told {
        bytes_per_peer: batch.bytes_per_peer,
        chunks: made.chunks.len(),
        processes: made.counts().into_iter().map(|(process, counts)| ToldProcess { process, counts }).collect(),
        lanes: made.lanes.iter().map(lane).collect(),
        local_copies: copies.collect(),
    }
}

fn text(batch: &Batch, made: &Schedule, process: Option<usize>) -> String {
    let counts = made.counts();
    let rounds = counts.values().map(|own| own.rounds).max().unwrap_or_default();
    let segments: usize = batch.parameters.iter().map(|parameter| parameter.plan.segments.len()).sum();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}, {}, {} between processes, at most {} of up to {}",
        some(batch.parameters.len() as u64, "parameter"),
        some(segments as u64, "segment"),
        some(made.chunks.len() as u64, "chunk"),
        some(rounds, "round"),
        format_size(batch.bytes_per_peer)
    );
    let _ = writeln!(
        text,
        "\n{:>7} {:>7} {:>10} {:>10} {:>8} {:>10} {:>8} {:>10} {:>7} {:>10} {:>10}",
        "process", "rounds", "sent", "received", "packs", "", "unpacks", "", "copies", "", "staging"
    );
    for (process, own) in &counts {
        let size = format_size;
        let _ = writeln!(
            text,
            "{process:>7} {:>7} {:>10} {:>10} {:>8} {:>10} {:>8} {:>10} {:>7} {:>10} {:>10}",
            own.rounds,
            size(own.sent_bytes),
            size(own.received_bytes),
            own.packs,
            size(own.pack_bytes),
            own.unpacks,
            size(own.unpack_bytes),
            own.local_copies,
            size(own.local_copy_bytes),
            size(own.arena_bytes)
        );
    }
    if process.is_some() && !made.lanes.is_empty() {
        text.push('\n');
        for lane in &made.lanes {
            let rounds = made.rounds_of(lane);
            let bytes = rounds.iter().map(|round| round.bytes).sum();
            let way = |arena: u64, side: &str| match arena {
                0 => format!("{side} in place"),
                arena => format!("{side} through {}", format_size(arena)),
            };
            let _ = writeln!(
                text,
                "{}→{}: {} in {}, {}, {}",
                lane.from,
                lane.to,
                format_size(bytes),
                some(rounds.len() as u64, "round"),
                way(lane.send_arena, "sent"),
                way(lane.receive_arena, "received")
            );
        }
    }
    text
}
