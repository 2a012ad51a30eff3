//! What transfers are priced with: a calibration, published numbers, or a described fabric.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::args::MemoryArg;
use super::contents::{self, Contents};
use super::{files, settings};
use crate::plan::price::{Calibrated, Conditions, Overridden, Prices, Published, Terms};
use crate::plan::{Foreseen, MOST_RANKS, Traffic, replay};
use crate::session;
use crate::units::{format_ranks, parse_seconds, plain};

#[derive(Debug, Default, Args)]
pub struct PriceArgs {
    /// Price with what was measured: folder of a session, a calibration, or fits alone (as `toposcope fit --json` prints them, or
    /// published ones: {"`node_of"`: [0, 0, 1, 1], "fits": [...]})
    #[arg(long, value_name = "SESSION|CAL|FITS", conflicts_with = "fabric")]
    pub calibration: Option<PathBuf>,
    /// Price with a described fabric: a name (see `toposcope fabrics`) or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub fabric: Option<String>,
    /// Ranks of the job that the transfer runs on, in the order of the plan's processes, such as 0-15 (default: all that have prices)
    #[arg(long, value_name = "SET")]
    pub group: Option<String>,
    /// How the transfer's bytes go: memcpy, `mpi_sendrecv`, `mpi_put`, nccl and so on (default: as in the calibration)
    #[arg(
        long,
        value_name = "NAME",
        help = "How the transfer's bytes go: memcpy, mpi_sendrecv, mpi_put, nccl and so on (default: as in the calibration)"
    )]
    pub mover: Option<String>,
    /// Where the transfer's bytes lie: host or cuda (default: as in the calibration)
    #[arg(long, value_enum)]
    pub memory: Option<MemoryArg>,
    /// What each further message of a flow adds, such as 27us (default: as much latency as the first)
    #[arg(long, value_name = "TIME")]
    pub round: Option<String>,
    /// What a chunk takes to prepare, once, such as 17us (default: 0)
    #[arg(long, value_name = "TIME")]
    pub prepare: Option<String>,
}

/// Prices, and where the plan's ranks are in them.
pub(super) struct Priced {
    pub prices: Box<dyn Prices>,
    /// what a person calls them
    pub name: String,
    /// the calibration, if it is one
    pub calibrated: Option<Calibrated>,
    /// number in the prices of each of the plan's ranks; empty for the same
    pub places: Vec<usize>,
}

/// As the arguments say.
pub(super) fn load(wanted: &PriceArgs) -> Result<Priced> {
    let group = wanted.group.as_deref().map(|text| crate::units::parse_ranks(text, MOST_RANKS)).transpose().context("--group")?;
    let mover = wanted.mover.as_deref().map(settings::mover).transpose().context("--mover")?;
    let memory = wanted.memory.map(MemoryArg::memory);
    let time = |text: &Option<String>, what: &'static str| text.as_deref().map(parse_seconds).transpose().context(what);
    let (round, chunk) = (time(&wanted.round, "--round")?, time(&wanted.prepare, "--prepare")?);
    let terms = |known: Terms| Terms { round: round.or(known.round), chunk: chunk.unwrap_or(known.chunk) };
    if let Some(text) = &wanted.fabric {
        let fabric = settings::fabric(text)?;
        let places = places(group.as_deref(), &[], fabric.world())?;
        let name = format!("fabric {}", fabric.name());
        return Ok(Priced {
            prices: Box::new(Overridden { terms: terms(fabric.terms()), prices: fabric }),
            name,
            calibrated: None,
            places,
        });
    }
    let Some(path) = &wanted.calibration else { bail!("--calibration SESSION|CAL|FITS or --fabric NAME|FILE is needed") };
    let calibrated = calibrated(path).context("--calibration")?;
    let measured = calibrated.measured().clone();
    let places = places(group.as_deref(), &measured.group, calibrated.world())?;
    let ranks = group.as_ref().map_or(0, Vec::len);
    let known = calibrated.terms();
    let calibrated = calibrated.with_terms(terms(known)).used_with(Conditions { ranks, group: group.unwrap_or_default(), mover, memory });
    let name = path.display().to_string();
    Ok(Priced { prices: Box::new(calibrated.clone()), name, calibrated: Some(calibrated), places })
}

/// What a file or a folder holds.
fn calibrated(path: &Path) -> Result<Calibrated> {
    #[derive(Deserialize)]
    struct Kind {
        format: Option<IgnoredAny>,
        fits: Option<IgnoredAny>,
        samples: Option<IgnoredAny>,
    }
    let mut contents = contents::read(path)?;
    if let Contents::Ours(bytes) | Contents::Other(bytes) = contents {
        let wrong = |what: &str| {
            let expected = "the folder of a session, a calibration (sweep --out), or fits (fit --json)";
            anyhow::anyhow!("{}: {what}: expected {expected}", path.display())
        };
        let Ok(text) = String::from_utf8(bytes) else { return Err(wrong("binary data")) };
        if !text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) {
            return Err(wrong(if text.trim().is_empty() { "the file is empty" } else { "no JSON" }));
        }
        let kind = serde_json::from_str::<Kind>(&text);
        if matches!(&kind, Ok(Kind { fits: None, samples: None, format: None })) {
            return Err(wrong("an object without format, samples or fits"));
        }
        if text.trim_start().starts_with('[') || kind.is_ok_and(|kind| kind.fits.is_some() && kind.samples.is_none()) {
            let published = Published::read(&text).and_then(|published| published.prices());
            return published.with_context(|| path.display().to_string());
        }
        contents = Contents::of(text.into_bytes());
    }
    Ok(session::prices(&files::fold(&files::recorded_of(path, contents)?)))
}

/// Numbers that the ranks of a group have in the prices.
fn places(group: Option<&[usize]>, measured: &[usize], world: usize) -> Result<Vec<usize>> {
    let Some(group) = group else { return Ok(Vec::new()) };
    let place = |&rank: &usize| {
        let known =
            if measured.is_empty() { Some(rank).filter(|rank| *rank < world) } else { measured.iter().position(|own| *own == rank) };
        let there = if measured.is_empty() { format!("0-{}", world.saturating_sub(1)) } else { format_ranks(measured) };
        known.with_context(|| format!("--group: rank {rank} has no prices; those of {there} have"))
    };
    group.iter().map(place).collect()
}

impl Priced {
    /// What they say of a traffic, and what makes that doubtful.
    pub fn foresee(&self, traffic: Traffic) -> Result<(Foreseen, BTreeSet<String>)> {
        let replay = replay(&self.placed(traffic)?, self.prices.as_ref())?;
        let doubts = replay.warnings.iter().map(|warning| plain(&warning.say)).collect();
        Ok((Foreseen::of(&replay), doubts))
    }

    /// Number in the prices of each rank of the transfer.
    pub fn ranks(&self) -> Vec<usize> {
        if self.places.is_empty() { (0..self.prices.world()).collect() } else { self.places.clone() }
    }

    /// A traffic with the numbers that its ranks have in the prices.
    pub fn placed(&self, traffic: Traffic) -> Result<Traffic> {
        if self.places.is_empty() {
            return Ok(traffic);
        }
        if traffic.ranks > self.places.len() {
            bail!("--group names {} ranks, but {} has {}", self.places.len(), crate::units::plain(&traffic.name), traffic.ranks);
        }
        let mut placed = traffic;
        for flow in &mut placed.flows {
            (flow.from, flow.to) = (self.places[flow.from], self.places[flow.to]);
        }
        let mut arenas = vec![0; self.prices.world()];
        for (rank, bytes) in placed.arenas.iter().enumerate() {
            arenas[self.places[rank]] = *bytes;
        }
        if !placed.arenas.is_empty() {
            placed.arenas = arenas;
        }
        placed.ranks = self.prices.world();
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_job_are_found_among_those_that_were_calibrated() {
        assert_eq!(places(None, &[], 4).unwrap(), [0; 0]);
        assert_eq!(places(Some(&[1, 3]), &[], 4).unwrap(), [1, 3]);
        assert_eq!(places(Some(&[9, 11]), &[8, 9, 10, 11], 4).unwrap(), [1, 3]);
        let refuse = |group: &[usize], measured: &[usize]| places(Some(group), measured, 4).unwrap_err().to_string();
        assert_eq!(refuse(&[4], &[]), "--group: rank 4 has no prices; those of 0-3 have");
        assert_eq!(refuse(&[0], &[8, 9]), "--group: rank 0 has no prices; those of 8-9 have");
    }

    #[test]
    fn a_file_of_fits_is_known_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = folder.path().join("x.json");
            std::fs::write(&path, text).unwrap();
            calibrated(&path)
        };
        let fit = r#"{"pattern": "peer", "key": {"from": 0, "to": 1}, "path": "inter_node", "alpha_us": 5, "gbps": 8}"#;
        assert_eq!(file(&format!("[{fit}]")).unwrap().world(), 2);
        assert_eq!(file(&format!(r#"{{"node_of": [0, 1, 1], "fits": [{fit}]}}"#)).unwrap().world(), 3);
        let refused = format!("{:#}", file(r#"[{"pattern": "peer", "key": {"from": 0}, "gbps": 8}]"#).unwrap_err());
        assert!(refused.contains("x.json") && refused.contains("fit 0: key: expected"), "{refused}");
    }
}
