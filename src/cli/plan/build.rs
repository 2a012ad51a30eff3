//! `toposcope plan build`: two layouts of a model -> the segments to copy.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::super::prices::{self, PriceArgs, Priced};
use super::super::{FINE, print};
use super::some;
use crate::export::write_bytes;
use crate::import::plans::{self, Layout};
use crate::plan::build::policy::Calibrated;
use crate::plan::build::{self, Budget, ElementSizes, FirstHolder, LocalFirst, LocalFirstInOrder, Policy, Settings};
use crate::plan::files::{self, BYTES_PER_PEER, ELEMENT_SIZE};
use crate::plan::{Batch, Endpoints, Parameter, Plan, Statistics};
use crate::units::{format_size, parse_size, plain, plain_json};

/// Parameters up to which each is told.
const FEW: usize = 40;

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Who holds what before: an affine map, or a Mooncake weight placement
    #[arg(long, value_name = "MAP")]
    pub source: PathBuf,
    /// Who shall hold what after
    #[arg(long, value_name = "MAP")]
    pub target: PathBuf,
    /// Which process holds which location: {"source": {"0": 0}, "target": {"0": 1}}; lets a policy prefer local copies
    #[arg(long, value_name = "FILE")]
    pub endpoints: Option<PathBuf>,
    /// Who of several holders sends: `local_first`, `local_first_in_order`, `first_holder`, or a file of answers (see --requests)
    #[arg(
        long,
        value_name = "POLICY|FILE",
        default_value = "local_first",
        help = "Who of several holders sends: local_first (least loaded), local_first_in_order (the same, loads counted in their turn), \
                first_holder (lowest location), calibrated (what takes the least time, in parts where they pay; with --endpoints and \
                --calibration or --fabric), or a file of answers (see --requests)"
    )]
    pub policy: String,
    /// What links cost, for the policy calibrated: folder of a session, a calibration, or fits
    #[arg(long, value_name = "SESSION|CAL|FITS", conflicts_with = "fabric")]
    pub calibration: Option<PathBuf>,
    /// The same of a described fabric: a name or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub fabric: Option<String>,
    /// Bytes of an element, of all parameters or of one: 2, or name=4; may be given several times (default: as the maps tell)
    #[arg(long, value_name = "BYTES|NAME=BYTES")]
    pub element_size: Vec<String>,
    /// Smallest part of a region that a policy may split
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub min_split: String,
    /// What a plan may take: the reference's limits, or none
    #[arg(long, value_enum, default_value = "reference")]
    pub limits: Limits,
    /// Write what a policy is asked, in the order of its answers: {"format": "toposcope.answers/1", "answers": [3, [{"`logical_origin`":
    /// [0, 0], "shape": [4, 8], "`source_location`": 0}, ..], ..]}
    #[arg(
        long,
        value_name = "FILE",
        help = "Write what a policy is asked. Its answers, in the same order: {\"format\": \"toposcope.answers/1\", \"answers\": [3, \
                [{\"logical_origin\": [0, 0], \"shape\": [4, 8], \"source_location\": 0}, ..], ..]}, a location or parts each"
    )]
    pub requests: Option<PathBuf>,
    /// Plan to write: as the reference stores it for one map without a name and endpoints, a batch of plans otherwise
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Limits {
    Reference,
    None,
}

type Made = Vec<(String, Plan, Statistics)>;

/// Plan it, and write the plan.
pub(super) fn run(wanted: &BuildArgs) -> Result<u8> {
    let source = plans::read_layout(&wanted.source).context("--source")?;
    let target = plans::read_layout(&wanted.target).context("--target")?;
    let endpoints = wanted.endpoints.as_deref().map(plans::endpoints).transpose().context("--endpoints")?;
    let priced = priced(wanted)?;
    let min_split_bytes = parse_size(&wanted.min_split).context("--min-split")?;
    let calibrated = priced.as_ref().map(|priced| Calibrated { prices: &*priced.prices, bytes_per_peer: BYTES_PER_PEER, min_split_bytes });
    let policy: Box<dyn Policy + '_> = match calibrated {
        Some(calibrated) => Box::new(calibrated),
        None => policy(&wanted.policy)?,
    };
    let settings = Settings {
        endpoints: endpoints.as_ref(),
        element_size: element_sizes(&wanted.element_size, [&source, &target])?,
        budget: if wanted.limits == Limits::Reference { Budget::default() } else { Budget::unlimited() },
        min_split_bytes,
        ..Settings::new(&*policy)
    };
    let between = || format!("{} -> {}", plain(&wanted.source.display().to_string()), plain(&wanted.target.display().to_string()));
    if wanted.requests.is_some() || calibrated.is_some() {
        let requests = build::requests(&target.maps, &source.maps, &settings).with_context(between)?;
        if let Some(path) = &wanted.requests {
            write(path, &(build::write_requests(&requests) + "\n")).context("--requests")?;
        }
        if let Some(Err(what)) = calibrated.map(|policy| policy.check(&requests)) {
            bail!("--policy calibrated: {what}");
        }
    }
    let made = build::plans(&target.maps, &source.maps, &settings).with_context(between)?;
    if let Some(path) = &wanted.out {
        write(path, &document(&made, &settings, endpoints.as_ref())).context("--out")?;
    }
    if wanted.json {
        print(&told(&made));
    } else {
        print(&text(&made, &settings, source.maps.keys().filter(|name| !target.maps.contains_key(*name)).count()));
    }
    Ok(FINE)
}

fn write(path: &Path, text: &str) -> Result<()> {
    Ok(write_bytes(path, text.as_bytes())?)
}

/// What links cost, where the policy asks.
fn priced(wanted: &BuildArgs) -> Result<Option<Priced>> {
    if wanted.policy != "calibrated" {
        return Ok(None);
    }
    let BuildArgs { calibration, fabric, .. } = wanted;
    if calibration.is_none() && fabric.is_none() {
        bail!("--policy calibrated: --calibration SESSION|CAL|FITS or --fabric NAME|FILE is needed");
    }
    prices::load(&PriceArgs { calibration: calibration.clone(), fabric: fabric.clone(), ..PriceArgs::default() }).map(Some)
}

/// A policy by its name, or answers from a file.
fn policy(name: &str) -> Result<Box<dyn Policy>> {
    Ok(match name {
        "first_holder" => Box::new(FirstHolder),
        "local_first" => Box::new(LocalFirst),
        "local_first_in_order" => Box::new(LocalFirstInOrder),
        file if Path::new(file).exists() => {
            let text = fs::read_to_string(file).with_context(|| format!("--policy {file}"))?;
            Box::new(build::read_answers(&text).with_context(|| format!("--policy {file}"))?)
        }
        other => bail!("--policy: {other:?} is neither local_first, local_first_in_order, first_holder, calibrated nor a file of answers"),
    })
}

/// What is given before what the layouts tell.
fn element_sizes(given: &[String], layouts: [&Layout; 2]) -> Result<ElementSizes> {
    let mut sizes = ElementSizes::default();
    for layout in layouts {
        sizes.by_parameter.extend(layout.element_sizes.iter().map(|(name, size)| (name.clone(), *size)));
    }
    for text in given {
        let (name, number) = text.rsplit_once('=').map_or((None, text.as_str()), |(name, number)| (Some(name), number));
        let Some(bytes) = number.parse().ok().filter(|bytes| (1..=1024).contains(bytes)) else {
            bail!("--element-size {text}: expected bytes of an element, 1 to 1024, such as 2 or name=4")
        };
        match name {
            Some(name) => {
                sizes.by_parameter.insert(name.to_owned(), bytes);
            }
            None => sizes.all = Some(bytes),
        }
    }
    Ok(sizes)
}

/// The plan as a file.
fn document(made: &Made, settings: &Settings, endpoints: Option<&Endpoints>) -> String {
    // A plan as the reference stores it has no endpoints.
    if let ([(name, plan, _)], None) = (&made[..], endpoints)
        && name.is_empty()
    {
        return files::write_plan(plan);
    }
    let parameters = made.iter().map(|(name, plan, _)| Parameter {
        name: name.clone(),
        plan: plan.clone(),
        element_size: settings.element_size.of(name).unwrap_or(ELEMENT_SIZE),
    });
    let endpoints = endpoints.cloned().unwrap_or_default();
    files::write_batch(&Batch { parameters: parameters.collect(), endpoints, bytes_per_peer: BYTES_PER_PEER })
}

/// For a program.
fn told(made: &Made) -> String {
    let parameters: Vec<_> = made.iter().map(|(name, _, statistics)| json!({"parameter": name, "statistics": statistics})).collect();
    let sum = |of: fn(&Statistics) -> u64| made.iter().fold(0_u64, |sum, (.., statistics)| sum.saturating_add(of(statistics)));
    let mut value = json!({
        "parameters": parameters,
        "segments": sum(|own| own.segments as u64),
        "segments_before_merge": sum(|own| own.segments_before_merge as u64),
        "moved_elements": sum(|own| own.moved_elements),
    });
    plain_json(&mut value);
    format!("{value:#}\n")
}

/// For a person.
fn text(made: &Made, settings: &Settings, others: usize) -> String {
    let sum = |of: fn(&Statistics) -> usize| made.iter().map(|(.., statistics)| of(statistics) as u64).sum::<u64>();
    let sized = made.iter().all(|(name, ..)| settings.element_size.of(name).is_some());
    let amount = |amount: u64| if sized { format_size(amount) } else { some(amount, "element") };
    let bytes = |name: &str, elements: u64| elements.saturating_mul(settings.element_size.of(name).filter(|_| sized).unwrap_or(1));
    let moved = made.iter().fold(0_u64, |total, (name, _, own)| total.saturating_add(bytes(name, own.moved_elements)));
    let (segments, before) = (sum(|own| own.segments), sum(|own| own.segments_before_merge));
    let joined = if before > segments { format!(" (of {})", some(before, "region")) } else { String::new() };
    let mut text = format!("{}, {}{joined}, {}\n", some(made.len() as u64, "parameter"), some(segments, "segment"), amount(moved));
    if others > 0 {
        let _ = writeln!(text, "{} of the source map alone left as they are", some(others as u64, "parameter"));
    }
    let mut sent: BTreeMap<i64, u64> = BTreeMap::new();
    for (name, plan, _) in made {
        for segment in &plan.segments {
            let sent = sent.entry(segment.source.0).or_default();
            *sent = sent.saturating_add(bytes(name, segment.elements()));
        }
    }
    // The lowest of those that send most.
    if let Some((location, most)) = sent.iter().max_by_key(|(location, sent)| (**sent, std::cmp::Reverse(**location))) {
        let mean = sent.values().fold(0_u64, |sum, own| sum.saturating_add(*own)) / sent.len() as u64;
        let of = some(sent.len() as u64, "location");
        let _ = writeln!(text, "{of} send, {} on average; location {location} sends most, {}", amount(mean), amount(*most));
    }
    if made.len() <= FEW && made.len() > 1 {
        text.push('\n');
        for (name, _, own) in made {
            let elements = amount(bytes(name, own.moved_elements));
            let _ = writeln!(text, "{:>9}  {elements:>14}  {}", some(own.segments as u64, "segment"), plain(name));
        }
    }
    text
}
