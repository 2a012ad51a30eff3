//! `toposcope replay`: what plans will take, and what binds them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use super::discover::{Look, Page};
use super::plans::GivenArgs;
use super::prices::{PriceArgs, Priced};
use super::{FINE, FOUND, prices, print};
use crate::import::plans;
use crate::plan::{Replay, Traffic, replay};
use crate::units::{format_count, format_seconds, format_size, plain, plain_json};

/// Resources that a person is told of.
const SHOWN: usize = 10;
/// Stages that a person is told of.
const STAGES: usize = 24;
/// Resources in JSON.
const TOLD: usize = 256;

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Plans, batches of plans, flow lists or traffic; several are compared
    #[arg(value_name = "PLAN", required = true)]
    pub plans: Vec<PathBuf>,
    #[command(flatten)]
    pub price: PriceArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    /// Every resource and every stage; in JSON every flow besides
    #[arg(long)]
    pub all: bool,
    /// Exit code 1 where something makes a prediction doubtful
    #[arg(long)]
    pub strict: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub execute: super::execute::ExecuteArgs,
}

/// One plan with what it takes.
pub(super) struct Told {
    pub traffic: Traffic,
    pub replay: Replay,
}

/// Price them, and tell.
pub(super) fn run(wanted: &ReplayArgs) -> Result<u8> {
    let priced = prices::load(&wanted.price)?;
    let told = read(wanted, &priced)?;
    if wanted.json {
        print(&document(&priced, &told, wanted.all));
    } else {
        print(&text(&priced, &told, wanted.all, Look::now()));
    }
    let doubtful = told.iter().any(|told| !told.replay.warnings.is_empty());
    Ok(if wanted.strict && doubtful { FOUND } else { FINE })
}

/// Every plan as flows with the ranks' numbers in the prices, and its replay.
pub(super) fn read(wanted: &ReplayArgs, priced: &Priced) -> Result<Vec<Told>> {
    let given = wanted.given.given()?;
    let one = |path: &PathBuf| {
        let file = || path.display().to_string();
        let mut traffic = plans::read(path, &given)?.traffic().with_context(file)?.plain();
        if traffic.name.is_empty() {
            traffic.name = path.file_stem().map_or_else(String::new, |stem| plain(&stem.to_string_lossy()));
        }
        let traffic = priced.placed(traffic).with_context(file)?;
        let replay = replay(&traffic, priced.prices.as_ref()).with_context(file)?;
        Ok(Told { traffic, replay })
    };
    wanted.plans.iter().map(one).collect()
}

/// For a program.
fn document(priced: &Priced, told: &[Told], all: bool) -> String {
    let plan = |Told { traffic, replay }: &Told| {
        let stages: Vec<Value> = replay
            .stages
            .iter()
            .map(|stage| {
                let told = &stage.bottleneck;
                json!({"name": stage.name, "start": stage.start, "end": stage.end, "latency": stage.latency,
                       "bottleneck": {"resource": told.resource, "seconds": told.seconds, "say": told.say}})
            })
            .collect();
        let many = if all { usize::MAX } else { TOLD };
        let resources: Vec<Value> = replay
            .resources
            .iter()
            .take(many)
            .map(|load| {
                json!({"name": load.resource.name, "bytes": load.bytes, "busy": load.busy, "share": share(load.busy, replay.seconds),
                       "by_stage": load.by_stage, "flows": if all { json!(load.flows) } else { json!(load.flows.len()) }})
            })
            .collect();
        let told = &replay.bottleneck;
        let mut value = json!({
            "name": traffic.name,
            "ranks": traffic.ranks,
            "flows": traffic.flows.len(),
            "bytes": traffic.bytes(),
            "seconds": replay.seconds,
            "low": replay.interval.low,
            "high": replay.interval.high,
            "prepare": replay.prepare,
            "bottleneck": {"resource": told.resource, "seconds": told.seconds, "say": told.say},
            "stages": stages,
            "resources": resources,
            "arenas": traffic.arenas,
            "warnings": replay.warnings,
        });
        if all {
            let flow = |(told, time): (&crate::plan::Flow, &crate::plan::FlowTime)| json!({"stage": told.stage, "from": told.from, "to": told.to, "bytes": told.bytes, "ready": time.ready, "start": time.start, "end": time.end});
            value["times"] = traffic.flows.iter().zip(&replay.flows).map(flow).collect();
        }
        value
    };
    let mut value = json!({"prices": priced.name, "plans": told.iter().map(plan).collect::<Vec<_>>()});
    plain_json(&mut value);
    format!("{value:#}\n")
}

fn share(busy: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { busy / seconds } else { 0.0 }
}

/// For a person.
fn text(priced: &Priced, told: &[Told], all: bool, look: Look) -> String {
    let mut page = Page::new(look);
    page.line(&format!("priced with {}", plain(&priced.name)));
    let terms = priced.prices.terms();
    if let Some(round) = terms.round {
        page.line(&format!("each further message of a flow adds {}", format_seconds(round)));
    }
    if told.len() > 1 {
        page.line("");
        compared(&mut page, told);
    }
    for one in told {
        page.line("");
        plan(&mut page, one, all);
    }
    page.text
}

/// All beside each other, the fastest first.
fn compared(page: &mut Page, told: &[Told]) {
    let mut order: Vec<&Told> = told.iter().collect();
    order.sort_by(|a, b| a.replay.seconds.total_cmp(&b.replay.seconds));
    let fastest = order.first().map_or(0.0, |first| first.replay.seconds);
    let wide = order.iter().map(|one| one.traffic.name.chars().count()).max().unwrap_or(0).min(40);
    for Told { traffic, replay } in order {
        let times = if replay.seconds > fastest && fastest > 0.0 { format!("{:.2}×", replay.seconds / fastest) } else { String::new() };
        let head = format!("{:wide$}  {:>8} {times:>7}  ", traffic.name, format_seconds(replay.seconds));
        page.sentence(&head, &replay.bottleneck.say);
    }
}

fn plan(page: &mut Page, Told { traffic, replay }: &Told, all: bool) {
    let flows = format_count(traffic.flows.len() as u64);
    page.line(&format!("{}: {} ranks, {flows} flows, {}", traffic.name, traffic.ranks, format_size(traffic.bytes())));
    let range = if replay.interval.low < replay.interval.high {
        format!(" ({} to {})", format_seconds(replay.interval.low), format_seconds(replay.interval.high))
    } else {
        String::new()
    };
    let once = if replay.prepare > 0.0 { format!(", and {} once to prepare", format_seconds(replay.prepare)) } else { String::new() };
    page.line(&format!("  predicted  {}{range}{once}", format_seconds(replay.seconds)));
    page.sentence("  binds      ", &replay.bottleneck.say);
    if let Some(memory) = memory(&traffic.arenas) {
        page.sentence("  memory     ", &memory);
    }
    for warning in &replay.warnings {
        page.sentence("  ! ", &format!("{}: {}", warning.kind, warning.say));
    }
    let shown = if all { usize::MAX } else { STAGES };
    if replay.stages.len() > 1 || all {
        page.line("");
        page.line("  stage                     begins      takes  of it latency  what binds");
        for stage in replay.stages.iter().take(shown) {
            let head = format!(
                "  {:<22} {:>9}  {:>9}  {:>13}  ",
                short(&stage.name, 22),
                seconds(stage.start),
                seconds(stage.end - stage.start),
                seconds(stage.latency)
            );
            page.sentence(&head, &stage.bottleneck.say);
        }
        more(page, replay.stages.len(), shown, "stage");
    }
    let shown = if all { usize::MAX } else { SHOWN };
    if !replay.resources.is_empty() {
        page.line("");
        page.line("       busy  of the time    bytes   flows  resource");
        for (number, load) in replay.resources.iter().take(shown).enumerate() {
            page.line(&format!(
                "  {} {:>8}  {:>10.0}%  {:>8}  {:>6}  {}",
                if replay.bottleneck.resource == Some(number) { '▶' } else { ' ' },
                format_seconds(load.busy),
                share(load.busy, replay.seconds) * 100.0,
                format_size(load.bytes.round() as u64),
                format_count(load.flows.len() as u64),
                plain(&load.resource.name)
            ));
        }
        more(page, replay.resources.len(), shown, "resource");
    }
}

fn more(page: &mut Page, all: usize, shown: usize, what: &str) {
    if all > shown {
        let plural = if all - shown == 1 { "" } else { "s" };
        page.quiet(&format!("    and {} {what}{plural} more (--all)", format_count((all - shown) as u64)));
    }
}

/// Nothing at all has no unit.
fn seconds(seconds: f64) -> String {
    if seconds == 0.0 { "0".to_owned() } else { format_seconds(seconds) }
}

fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most { name.to_owned() } else { name.chars().take(most - 1).chain(['…']).collect() }
}

/// Staging memory of the ranks.
fn memory(arenas: &[u64]) -> Option<String> {
    let (rank, most) = arenas.iter().enumerate().max_by_key(|arena| (arena.1, std::cmp::Reverse(arena.0)))?;
    let sum = arenas.iter().fold(0_u64, |sum, arena| sum.saturating_add(*arena));
    (*most > 0).then(|| format!("staging takes {} of rank {rank}, the most; {} of all ranks", format_size(*most), format_size(sum)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::price::Published;
    use crate::topology::PathClass;

    fn priced() -> Priced {
        let published = Published { node_of: vec![0, 0, 0, 0], ranks: 8, ..Published::default() };
        let prices = published.peer(PathClass::IntraNode, 5.0, 10.0, 0.05).prices().unwrap();
        Priced { prices: Box::new(prices), name: "fits.json".to_owned(), calibrated: None, places: vec![2, 3] }
    }

    fn told() -> Vec<Told> {
        let flows = r#"{"name": "NAME", "ranks": 2, "stages": [{"name": "all", "waits": true}], "arenas": [4194304, 8388608],
                        "flows": [{"stage": 0, "from": 0, "to": 1, "bytes": 1073741824, "messages": 1}]}"#;
        let one = |name: &str, bytes: u64| {
            let mut traffic: Traffic = serde_json::from_str(&flows.replace("NAME", name)).unwrap();
            traffic.flows[0].bytes = bytes;
            let traffic = priced().placed(traffic).unwrap();
            Told { replay: replay(&traffic, priced().prices.as_ref()).unwrap(), traffic }
        };
        vec![one("slow", 2 << 30), one("fast", 1 << 30)]
    }

    #[test]
    fn a_person_reads_the_fastest_first_what_binds_and_what_is_doubtful() {
        let text = text(&priced(), &told(), false, Look::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "priced with fits.json");
        assert_eq!(lines[2], "fast    107 ms          link 2→3: 1 GiB over 10.0 GB/s = 107 ms");
        assert_eq!(lines[3], "slow    215 ms   2.00×  link 2→3: 2 GiB over 10.0 GB/s = 215 ms");
        for part in [
            "slow: 4 ranks, 1 flows, 2 GiB",
            "  predicted  215 ms (",
            "  memory     staging takes 8 MiB of rank 3, the most; 12 MiB of all",
            "  ! group: measured in a group of 8 ranks, used in one of 4: ",
            "  ▶   215 ms         100%     2 GiB       1  link 2→3",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn a_program_reads_the_same() {
        let value: Value = serde_json::from_str(&document(&priced(), &told(), true)).unwrap();
        let slow = &value["plans"][0];
        assert_eq!((&slow["name"], &slow["resources"][0]["name"]), (&json!("slow"), &json!("link 2→3")));
        assert!((slow["seconds"].as_f64().unwrap() - 0.214_753_364_8).abs() < 1e-9, "{slow}");
        assert!(slow["low"].as_f64() < slow["seconds"].as_f64() && slow["seconds"].as_f64() < slow["high"].as_f64());
        assert_eq!(
            (&slow["times"][0]["from"], &slow["bottleneck"]["resource"], &slow["warnings"][0]["kind"]),
            (&json!(2), &json!(0), &json!("group"))
        );
    }

    #[test]
    fn a_group_says_where_the_plans_ranks_are() {
        let traffic = Traffic { ranks: 3, ..told()[0].traffic.clone() };
        assert_eq!(priced().placed(traffic).unwrap_err().to_string(), "--group names 2 ranks, but slow has 3");
        assert!(priced().prices.world() == 4);
    }
}
