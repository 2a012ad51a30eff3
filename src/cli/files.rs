//! Recorded sessions: opened, and written as something else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::args::Format;
use super::contents::{self, Contents};
use super::{FINE, print};
use crate::export;
use crate::fit::Confidence;
use crate::session::store::{self, Recorded};
use crate::session::{self, Model};

/// What `toposcope export` was asked for.
pub(super) struct Wanted {
    pub(super) format: Format,
    pub(super) out: PathBuf,
    pub(super) tab: String,
    pub(super) metric: String,
    pub(super) against: Option<PathBuf>,
    pub(super) plans: Vec<PathBuf>,
    pub(super) size: Option<String>,
    pub(super) zoom: Option<String>,
    pub(super) order: String,
    pub(super) reduce: String,
    pub(super) cells: String,
    pub(super) chunk: String,
}

/// The facts of a recorded session, as it ended.
pub(super) fn fold(recorded: &Recorded) -> Model {
    let mut model = Model::new(recorded.header.clone());
    for record in &recorded.records {
        model.apply(record);
    }
    model
}

/// The facts of a session's folder, of a calibration, or of another tool's output.
pub(super) fn load(path: &Path) -> Result<Model> {
    if !path.is_dir() {
        return Ok(fold(&recorded(path)?));
    }
    // Of very many samples the records take more room than what they come to.
    let header = store::read_header(path)?;
    let mut model = Model::new(header.clone());
    store::each(path, &header, |record, _| _ = model.apply(&record))?;
    Ok(model)
}

/// The same as it is, or would be, recorded.
pub(super) fn recorded(path: &Path) -> Result<Recorded> {
    if !path.exists() {
        bail!(
            "{}: no such file or folder: expected a session's folder (header.json and events.ndjson), a calibration, or the output of \
             another tool; toposcope sessions lists yours",
            crate::units::plain(&path.display().to_string())
        );
    }
    recorded_of(path, contents::read(path)?)
}

/// The same of what was read already.
pub(super) fn recorded_of(path: &Path, contents: Contents) -> Result<Recorded> {
    let (header, records) = match contents {
        Contents::Folder => return Ok(store::read(path)?),
        Contents::Ours(bytes) => export::parse_calibration(&bytes, path)?.to_records(),
        other @ Contents::Other(_) => {
            let built = super::import::alone(path, other)?;
            (built.header, built.records)
        }
    };
    Ok(Recorded { header, records, extent: store::Extent::default() })
}

/// Write a session or a calibration as something else.
pub(super) fn export(global: &super::args::Global, source: &Path, wanted: &Wanted) -> Result<u8> {
    let mut model = load(source)?;
    for path in &wanted.plans {
        let traffic = super::plans::load(path, &model.header.topology).map_err(anyhow::Error::msg).context("--plan")?;
        model.apply(&session::Record { t: model.now, event: session::Event::PlanLoaded { traffic } });
    }
    match wanted.format {
        Format::Deepspeed => {
            let left_out = export::write_deepspeed(&export::calibration(&model)?, &wanted.out)?;
            if left_out > 0 {
                eprintln!(
                    "toposcope: {left_out} samples have no place there: warm-ups, what did not complete, custom patterns, copies between hosts and GPUs"
                );
            }
        }
        Format::Calibration => export::write_calibration(&model, &wanted.out)?,
        Format::Taccl => {
            let chunk = crate::units::parse_size(&wanted.chunk).context("--chunk")?;
            let fits = session::fits(&model, None);
            export::write_taccl(&export::taccl(&model.header.name, &model.header.topology, &fits, chunk)?, &wanted.out)?;
        }
        Format::Fits => export::write_fits(&session::fits(&model, Some(&Confidence::new(0.95))), &wanted.out)?,
        Format::FitsCsv => export::write_fits_csv(&session::fits(&model, Some(&Confidence::new(0.95))), &wanted.out)?,
        Format::Csv => export::write_csv(&model, &super::efficiency::table(global)?, &wanted.out)?,
        Format::Markdown | Format::Html => {
            use export::report::{Written, write_report};
            let written = if wanted.format == Format::Html { Written::Html } else { Written::Markdown };
            let seen = session::measured(&model, &super::efficiency::table(global)?);
            write_report(&wanted.out, written, &model, &seen, &crate::diagnose::diagnose(&seen))?;
        }
        Format::Svg | Format::Png => {
            let canvas = picture(global, &model, wanted)?;
            let picture = if wanted.format == Format::Png {
                export::raster::png(&canvas)?
            } else {
                export::svg::svg(&canvas, &format!("toposcope {}", model.header.name)).into_bytes()
            };
            export::write_bytes(&wanted.out, &picture).context("--out")?;
        }
    }
    print(&format!("{}\n", wanted.out.display()));
    Ok(FINE)
}

#[cfg(not(feature = "tui"))]
fn picture(_: &super::args::Global, _: &Model, _: &Wanted) -> Result<export::svg::Canvas> {
    bail!("pictures are drawn by the screen, and this program was built without it (feature tui)")
}

#[cfg(feature = "tui")]
fn picture(global: &super::args::Global, model: &Model, wanted: &Wanted) -> Result<export::svg::Canvas> {
    use crate::matrix::{Metric, Reduce};
    use crate::tui::{Order, Tab, Ui, picture};
    let metric = match wanted.metric.as_str() {
        "bandwidth" => Metric::Bandwidth,
        "share_of_expected" => Metric::ShareOfExpected,
        "time" => Metric::SmallTime,
        "asymmetry" => Metric::Asymmetry,
        "duplex" => Metric::DuplexRatio,
        "spread" => Metric::Spread,
        "change" if wanted.against.is_none() => bail!("--metric change: name the session that is compared with (--against)"),
        "change" => Metric::Change,
        other => bail!("--metric: {other:?} is not one of bandwidth, time, asymmetry, duplex, spread, share_of_expected, change"),
    };
    let cells = wanted.cells.split_once('x').and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
    let Some((width, height)) = cells.filter(|&(w, h): &(u16, u16)| (60..=500).contains(&w) && (18..=300).contains(&h)) else {
        bail!("--cells: {:?} is not a size in characters between 60x18 and 500x300", wanted.cells);
    };
    let settings = model.sweep.as_ref().map_or_else(|| model.header.settings.clone(), |sweep| sweep.settings.clone());
    let movers = vec![settings.mover];
    let chosen = |tab: &Tab| tab.title().eq_ignore_ascii_case(&wanted.tab);
    let Some(tab) = Tab::ALL.into_iter().find(chosen) else {
        let names: Vec<String> = Tab::ALL.iter().map(|tab| tab.title().to_lowercase()).collect();
        bail!("--tab: {:?} is not one of {}", wanted.tab, names.join(", "));
    };
    let mut ui = Ui::new(tab, &settings, movers);
    let against = wanted.against.as_deref().map(load).transpose().context("--against")?;
    if against.is_some() {
        ui.compare();
    }
    if against.is_none() || metric != Metric::Bandwidth {
        ui.matrix.metric = metric;
    }
    if let Some(text) = &wanted.size {
        let bytes = crate::units::parse_size(text).context("--size")?;
        if !model.cells.sizes().contains(&bytes) {
            let sizes: Vec<String> = model.cells.sizes().iter().map(|&size| crate::units::format_size(size)).collect();
            bail!("--size: nothing was measured at {text}; there is {}", sizes.join(", "));
        }
        ui.matrix.size = Some(bytes);
    }
    let Some(order) = Order::ALL.into_iter().find(|order| order.name() == wanted.order) else {
        bail!("--order: {:?} is not one of {}", wanted.order, Order::ALL.map(Order::name).join(", "));
    };
    let Some(reduce) = Reduce::ALL.into_iter().find(|reduce| reduce.name() == wanted.reduce) else {
        bail!("--reduce: {:?} is not one of {}", wanted.reduce, Reduce::ALL.map(Reduce::name).join(", "));
    };
    (ui.matrix.order, ui.matrix.reduce) = (order, reduce);
    if let Some(text) = &wanted.zoom {
        ui.look_at(&model.header.topology, text).map_err(anyhow::Error::msg).context("--zoom")?;
    }
    if wanted.plans.len() > 1 {
        ui.compare_last_plans();
    }
    let look = super::look::look(global, crate::ramp::Level::TrueColor)?;
    Ok(picture(model, &ui, &look, &super::efficiency::table(global)?, (width, height), against))
}

/// Open a recorded session on this terminal, or let the person choose one.
#[cfg(feature = "tui")]
pub(super) fn open(global: &super::args::Global, session: Option<&Path>, against: Option<&Path>, plans: &[PathBuf]) -> Result<u8> {
    use super::watch::screen::{Showing, alone};

    if session.is_none() && (against.is_some() || !plans.is_empty()) {
        bail!("--against and --plan belong to a session: name it (toposcope sessions lists yours)");
    }
    let first = session.map_or_else(|| Ok(Showing::List(None)), |session| super::recorded::showing(session, against, plans))?;
    alone(global, first, |folder, against| super::recorded::showing(folder, against, &[]))
}

#[cfg(not(feature = "tui"))]
pub(super) fn open(_: &super::args::Global, _: Option<&Path>, _: Option<&Path>, _: &[PathBuf]) -> Result<u8> {
    bail!("this program was built without the screen (feature tui)")
}
