//! `toposcope import`: sessions made of what other tools measured.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::contents::{self, Contents};
use super::discover::{Look, Page};
use super::{FINE, files, imported, print};
use crate::export;
use crate::import::measured::{self, Built, End, SizeFrom, Source, Table, Tool};
use crate::import::{self, Imported};
use crate::session::store::Store;
use crate::session::{self, Event, Model, Record};
use crate::topology::{Hardware, Placement};
use crate::units::{format_size, plain};

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[allow(clippy::doc_markdown, reason = "the text of --help")]
    /// Output of nvbandwidth, p2pBandwidthLatencyTest, nccl-tests, mpiGraph, OSU, IMB, perftest, `ucx_perftest`, TransferBench,
    /// `rocm_bandwidth_test` or nvloom, DeepSpeed's raw samples, calibrations and sessions of this program; and topologies that tell what
    /// the ranks sit on: nvidia-smi topo -m, NCCL or hwloc XML, lspci
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Folder of the session to write; without it what there is is only told
    #[arg(long, value_name = "SESSION")]
    pub out: Option<PathBuf>,
    /// Take these tables instead of those that the rule chooses: part of a test's name, or its number in the list; repeatable
    #[arg(long = "table", value_name = "NAME")]
    pub tables: Vec<String>,
    /// Ranks of a file that was measured between two and does not name them, such as 0,1; one for each such file, in their order
    #[arg(long = "pair", value_name = "A,B")]
    pub pairs: Vec<String>,
    /// Only tell what is in the files, and what would be taken
    #[arg(long, conflicts_with = "out")]
    pub list: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Import files.
pub(super) fn run(wanted: &ImportArgs) -> Result<u8> {
    let pairs = wanted.pairs.iter().map(|text| pair(text)).collect::<Result<Vec<_>>>()?;
    let name =
        wanted.out.as_deref().and_then(Path::file_name).map_or_else(|| "imported".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut files = wanted.files.iter().map(|path| Ok((path.as_path(), contents::read(path)?)));
    let (built, said) = built(&name, &mut files, &pairs, &wanted.tables)?;
    super::say(&said);
    let mut model = Model::new(built.header.clone());
    built.records.iter().for_each(|record| _ = model.apply(record));
    if let Some(folder) = &wanted.out {
        let mut store = Store::create(folder, &built.header).context("--out")?;
        for record in &built.records {
            store.append(record)?;
        }
    }
    print(&if wanted.json { document(&model, wanted.out.as_deref()) } else { text(&model, wanted.out.as_deref(), Look::now()) });
    Ok(FINE)
}

/// The session that one file of another tool is.
pub(super) fn alone(path: &Path, contents: Contents) -> Result<Built> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(built(&name, &mut std::iter::once(Ok((path, contents))), &[], &[])?.0)
}

/// Put files together, in their order; with what is to be said about them.
fn built(
    name: &str,
    files: &mut dyn Iterator<Item = Result<(&Path, Contents)>>,
    pairs: &[(usize, usize)],
    named: &[String],
) -> Result<(Built, String)> {
    let mut read = Vec::new();
    let (mut sources, mut found, mut said) = (Vec::new(), Vec::new(), String::new());
    let mut notices = Vec::new();
    let mut own: Vec<Hardware> = Vec::new();
    for file in files {
        let (path, contents) = file?;
        let file = path.display().to_string();
        read.push(plain(&file));
        let Contents::Other(bytes) = contents else {
            let model = files::fold(&files::recorded_of(path, contents)?);
            own.extend(model.header.topology.hardware.iter().cloned());
            sources.push(Source { file, tables: ours(&model)? });
            continue;
        };
        let text = import::decoded(&bytes, &file, "give the part with the measurements")?;
        match measured::told(&text, &file) {
            Ok(told) => {
                // A script may have collected both.
                found.extend(import::hardware(&text, &file));
                for skipped in told.skipped {
                    notices.push(format!("{}:{}: left out: {}", plain(&file), skipped.line, plain(&skipped.reason)));
                }
                sources.push(Source { file, tables: told.tables });
            }
            Err(error) => match import::hardware(&text, &file) {
                Ok(topology) => found.push(topology),
                Err(other) => bail!(refusal(path, &text, error, other)),
            },
        }
    }
    if sources.is_empty() {
        bail!("no measurement in {}: only topologies, which `toposcope discover --from` tells", read.join(", "));
    }
    let (mut hardware, _) = imported::together(found.into_iter().collect::<Vec<Imported>>());
    for host in own {
        if !hardware.iter().any(|known| known.host == host.host) {
            hardware.push(host);
        }
    }
    let mut built = measured::build(name, &sources, hardware, pairs, named).map_err(anyhow::Error::msg)?;
    for notice in notices {
        let _ = writeln!(said, "toposcope: {notice}");
        built.records.insert(built.records.len() - 1, Record { t: 0.0, event: Event::Notice { text: notice } });
    }
    Ok((built, said))
}

/// Which of two refusals helps: that of a format which was nearly read.
fn refusal(path: &Path, text: &str, measured: import::ImportError, topology: import::ImportError) -> anyhow::Error {
    if text.trim_start().starts_with('{')
        && measured.line.is_none_or(|line| line == 1)
        && let Err(error) = export::parse_calibration(text.as_bytes(), path)
    {
        return anyhow::Error::from(error).context(format!("{measured}"));
    }
    // Both tell what they read; a topology that was begun tells a line of its own.
    if topology.expected.starts_with("one of ") { measured.into() } else { topology.into() }
}

/// A session's or calibration's samples as a table.
fn ours(model: &Model) -> Result<Vec<Table>> {
    let calibration = export::calibration(model)?;
    let settings = model.sweep.as_ref().map_or(&model.header.settings, |sweep| &sweep.settings);
    let gpu = |place: &Placement| {
        let gpu = model.header.topology.hardware_of(&place.host)?.gpus.get(place.gpu?)?;
        u32::try_from(gpu.index).ok()
    };
    let end = |place: &Placement| End {
        label: format!("rank {}", place.rank),
        host: Some(place.host.clone()),
        gpu: gpu(place),
        ..End::default()
    };
    Ok(vec![Table {
        tool: Tool::Toposcope,
        test: format!("{} of {}", settings.mover.told(settings.memory), model.header.name),
        version: Some(model.header.program.clone()).filter(|program| !program.is_empty()),
        line: 1,
        unit: "s",
        orientation: "from sends, to receives",
        size_from: SizeFrom::Told,
        memory: settings.memory,
        ends: model.header.topology.ranks.iter().map(end).collect(),
        samples: calibration.samples,
        collectives: Vec::new(),
        notes: Vec::new(),
    }])
}

/// `0,1`
fn pair(text: &str) -> Result<(usize, usize)> {
    let two = text.split_once(',').and_then(|(a, b)| Some((a.trim().parse::<usize>().ok()?, b.trim().parse::<usize>().ok()?)));
    match two {
        Some((from, to)) if from != to && from.max(to) < 1 << 20 => Ok((from, to)),
        _ => bail!("--pair {text}: expected two different ranks, sender first, such as 0,1"),
    }
}

/// For a program.
fn document(model: &Model, out: Option<&Path>) -> String {
    let mut value = json!({
        "session": out.map(|path| path.display().to_string()),
        "ranks": model.world(),
        "hosts": model.header.topology.hosts(),
        "samples": model.samples(),
        "tables": model.imported,
    });
    crate::units::plain_json(&mut value);
    format!("{value:#}\n")
}

/// For a person.
fn text(model: &Model, out: Option<&Path>, look: Look) -> String {
    let mut page = Page::new(look);
    for (table, number) in model.imported.iter().zip(1..) {
        let sizes = match table.sizes.as_slice() {
            [] => String::new(),
            [one] => format!(" of {}", format_size(*one)),
            [first, .., last] => format!(" of {} to {}", format_size(*first), format_size(*last)),
        };
        let mark = if table.taken { "+" } else { "-" };
        page.line(&format!("{mark} {number:<3} {}  {}{sizes}", table.name(), table.amount()));
        page.sentence("        ", &format!("{}:{}: {}", table.file, table.line, table.means()));
        for line in session::collective_lines(table) {
            page.line(&format!("        {line}"));
        }
    }
    page.line("");
    let topology = &model.header.topology;
    let taken = model.imported.iter().filter(|table| table.taken).count();
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let samples = usize::try_from(model.samples()).unwrap_or(usize::MAX);
    let what = model.only_together().map_or_else(|| many(samples, "sample"), |_| "no number of a pair, a fan or a ring".to_owned());
    page.line(&format!(
        "{what} of {} on {}; {taken} of {} taken",
        many(topology.world(), "rank"),
        many(topology.hosts().len(), "host"),
        many(model.imported.len(), "table")
    ));
    match out {
        Some(folder) => page.line(&plain(&folder.display().to_string())),
        None => page.line("nothing was written: --out SESSION makes a session of what is marked +"),
    }
    page.text
}
