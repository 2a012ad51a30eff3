//! `toposcope strategies`: ways to bring a model from trainers to engines, priced, the fastest first.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::discover::{Look, Page};
use super::prices::{PriceArgs, Priced};
use super::progress::Progress;
use super::{FINE, FOUND, prices, print, settings};
use crate::export::write_bytes;
use crate::fabric::Fabric;
use crate::plan::files;
use crate::plan::strategy::{Ground, Held, Job, Ranking, rank_telling};
use crate::topology::Level;
use crate::units::{format_ranks, format_seconds, format_size, parse_ranks, parse_size, plain, plain_json};

#[derive(Debug, Args)]
pub struct StrategiesArgs {
    #[command(flatten)]
    pub price: PriceArgs,
    /// Price what a library's all-gather does with this calibration or fabric: the engines of one host as a group of their own,
    /// numbered from 0. A pair often gives more in such a group than in that of the transfer (default: as in the transfer's)
    #[arg(long, value_name = "SESSION|CAL|FITS|FABRIC")]
    pub inside: Option<String>,
    /// Size of the model
    #[arg(long, value_name = "SIZE")]
    pub bytes: String,
    /// Ranks that hold it, such as 0-7
    #[arg(long, value_name = "SET")]
    pub trainers: String,
    /// Ranks that shall hold all of it
    #[arg(long, value_name = "SET")]
    pub engines: String,
    /// Each trainer holds no more than its shard, the i-th of as many equal parts as there are trainers
    #[arg(long)]
    pub shards: bool,
    /// Staging budget: most bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "8MiB", conflicts_with = "windows")]
    pub bytes_per_peer: String,
    /// No staging: whatever goes from one rank to another is one message, as with windows and puts
    #[arg(long)]
    pub windows: bool,
    /// Slices of what is sent in slices (default: the best of 8, 32 and 128)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub slices: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write each as a document of traffic into this folder, or the fastest into this file (.json)
    #[arg(long, value_name = "DIR|FILE")]
    pub out: Option<PathBuf>,
}

/// Price them all. Exit code 1 where none can be priced.
pub(super) fn run(wanted: &StrategiesArgs) -> Result<u8> {
    let priced = prices::load(&wanted.price)?;
    let inside = wanted.inside.as_deref().map(inside).transpose().context("--inside")?;
    let job = job(wanted, &priced)?;
    if let Some(inside) = &inside
        && let Some((_, engines)) = job.engine_hosts().iter().find(|(_, engines)| engines.len() > inside.prices.world())
    {
        bail!("--inside: it has prices of {} ranks, but {} engines are on one host", inside.prices.world(), engines.len());
    }
    let ground = Ground { prices: priced.prices.as_ref(), inside: inside.as_ref().map(|inside| inside.prices.as_ref()) };
    if let Some(out) = &wanted.out {
        // Before what takes long, not after it.
        let folder = if is_one_file(out) { out.parent().unwrap_or(out) } else { out };
        if !folder.as_os_str().is_empty() {
            fs::create_dir_all(folder).with_context(|| format!("--out {}", out.display()))?;
        }
    }
    let progress = Progress::new();
    let ranking = rank_telling(&job, &ground, wanted.slices, &mut |what| progress.show(|| Some(what.to_owned())))?;
    drop(progress);
    let written = wanted.out.as_deref().map(|out| write(&ranking, out)).transpose()?.unwrap_or_default();
    let names = (priced.name, inside.map(|inside| inside.name));
    if wanted.json {
        print(&document(&names, &job, &ranking));
    } else {
        print(&text(&names, &job, &ranking, Look::now()));
        for path in written {
            print(&format!("{}\n", path.display()));
        }
    }
    Ok(if ranking.rows.is_empty() { FOUND } else { FINE })
}

/// Of a fabric that has that name or is such a file, else of a calibration.
fn inside(text: &str) -> Result<Priced> {
    let named = Fabric::shipped(text).is_some() || Path::new(text).extension().is_some_and(|kind| kind == "toml");
    let (calibration, fabric) = if named { (None, Some(text.to_owned())) } else { (Some(PathBuf::from(text)), None) };
    prices::load(&PriceArgs { calibration, fabric, ..PriceArgs::default() })
}

/// Ranks are those of the transfer: with `--group` numbered in it.
fn job(wanted: &StrategiesArgs, priced: &Priced) -> Result<Job> {
    let hosts = match (&priced.calibrated, &wanted.price.fabric) {
        (Some(calibrated), _) => {
            let units = calibrated.units();
            (0..units.world()).map(|rank| units.unit(Level::Host, rank).map_or(0, |unit| unit.number)).collect()
        }
        (None, Some(fabric)) => settings::fabric(fabric)?.topology().node_of(),
        (None, None) => bail!("the prices tell no hosts"),
    };
    let places = priced.ranks();
    let ranks = |text: &str, what: &'static str| -> Result<Vec<usize>> {
        Ok(parse_ranks(text, places.len()).context(what)?.into_iter().map(|rank| places[rank]).collect())
    };
    Ok(Job {
        hosts,
        bytes: parse_size(&wanted.bytes).context("--bytes")?,
        trainers: ranks(&wanted.trainers, "--trainers")?,
        engines: ranks(&wanted.engines, "--engines")?,
        held: if wanted.shards { Held::Shards } else { Held::Whole },
        message: if wanted.windows { None } else { Some(parse_size(&wanted.bytes_per_peer).context("--bytes-per-peer")?) },
    })
}

/// The fastest alone is wanted.
fn is_one_file(out: &Path) -> bool {
    out.extension().is_some_and(|kind| kind == "json") && !out.is_dir()
}

/// Documents that can be replayed and executed.
fn write(ranking: &Ranking, out: &Path) -> Result<Vec<PathBuf>> {
    let one = |path: PathBuf, traffic: &crate::plan::Traffic| -> Result<PathBuf> {
        write_bytes(&path, files::write_traffic(traffic).as_bytes()).context("--out")?;
        Ok(path)
    };
    if is_one_file(out) {
        return ranking.rows.iter().take(1).map(|row| one(out.to_owned(), &row.traffic)).collect();
    }
    ranking.rows.iter().map(|row| one(out.join(format!("{}.json", row.strategy.slug())), &row.traffic)).collect()
}

/// Of the prices, and of those of a host's engines.
type Names = (String, Option<String>);

/// For a program.
fn document((prices, inside): &Names, job: &Job, ranking: &Ranking) -> String {
    let row = |row: &crate::plan::strategy::Ranked| {
        let stages: Vec<_> = row
            .stages
            .iter()
            .map(|stage| json!({"name": stage.name, "start": stage.start, "end": stage.end, "latency": stage.latency, "bottleneck": stage.bottleneck.say}))
            .collect();
        json!({
            "name": row.strategy.name(),
            "seconds": row.seconds,
            "low": row.interval.low,
            "high": row.interval.high,
            "bottleneck": row.bottleneck,
            "change": row.change,
            "stages": stages,
            "flows": row.traffic.flows.len(),
            "bytes": row.traffic.bytes(),
            "warnings": row.warnings,
        })
    };
    let mut value = json!({
        "prices": prices,
        "inside": inside,
        "bytes": job.bytes,
        "trainers": job.trainers,
        "engines": job.engines,
        "shards": job.held == Held::Shards,
        "bytes_per_peer": job.message,
        "strategies": ranking.rows.iter().map(row).collect::<Vec<_>>(),
        "refused": ranking.refused.iter().map(|(name, why)| json!({"name": name, "why": why})).collect::<Vec<_>>(),
    });
    plain_json(&mut value);
    format!("{value:#}\n")
}

/// For a person.
fn text((prices, inside): &Names, job: &Job, ranking: &Ranking, look: Look) -> String {
    let mut page = Page::new(look);
    let number = |ranks: &[usize], what: &str| {
        let plural = if ranks.len() == 1 { "" } else { "s" };
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        format!("{} {what}{plural} ({})", ranks.len(), format_ranks(&sorted))
    };
    let held = if job.held == Held::Shards { ", a shard each," } else { "" };
    let message =
        job.message.map_or_else(|| "one message from rank to rank".to_owned(), |most| format!("messages of {} at most", format_size(most)));
    page.sentence(
        "",
        &plain(&format!(
            "{} from {}{held} to {}, {message}; prices of {}",
            format_size(job.bytes),
            number(&job.trainers, "trainer"),
            number(&job.engines, "engine"),
            prices
        )),
    );
    if let Some(inside) = inside {
        page.sentence("", &plain(&format!("a library's all-gather among the engines of a host: prices of {inside}")));
    }
    page.line("");
    for (at, row) in ranking.rows.iter().enumerate() {
        let times = if at == 0 { String::new() } else { format!(", {:.2} × the first", row.seconds / ranking.rows[0].seconds) };
        let interval = if row.interval.low < row.interval.high {
            format!(" ({} to {})", format_seconds(row.interval.low), format_seconds(row.interval.high))
        } else {
            String::new()
        };
        // Told at the end; a rank that rests on a guess must not pass for measured.
        let doubt = if row.warnings.is_empty() { ' ' } else { '!' };
        page.line(&format!("{:>2}{doubt} {:>8}{interval}  {}{times}", at + 1, format_seconds(row.seconds), row.strategy.name()));
        page.sentence("      binds   ", &plain(&row.bottleneck));
        if !row.change.is_empty() {
            page.sentence("      change  ", &plain(&row.change));
        }
    }
    let mut warnings: Vec<&str> = Vec::new();
    for warning in ranking.rows.iter().flat_map(|row| &row.warnings) {
        if !warnings.contains(&warning.say.as_str()) {
            warnings.push(&warning.say);
        }
    }
    if !ranking.refused.is_empty() || !warnings.is_empty() {
        page.line("");
    }
    for (_, why) in &ranking.refused {
        page.sentence("–  ", &plain(why));
    }
    for warning in warnings {
        page.sentence("!  ", &plain(warning));
    }
    page.text
}
