//! The written report: what was measured on what, findings with their causes and next tests, matrices.

mod matrix;
mod page;
#[cfg(test)]
mod tests;
mod told;

use std::io::Write;
use std::path::Path;

use super::file::{ExportError, write_whole};
use super::svg::svg;
use crate::diagnose::{Diagnosis, Measured};
use crate::fit::FEWEST;
use crate::sample::EngineKind;
use crate::session::{Imported, Model};
use crate::units::{format_count, format_ranks, format_size};
pub use matrix::{Picture, changed, pictures};
pub use page::{Block, html, markdown};
pub use told::{identified, mark, parts, silenced};

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// one file with all pictures in it
    Html,
    /// with pictures in files of their own beside it: `NAME-1.svg`
    Markdown,
}

/// All parts of the report.
pub fn report(model: &Model, measured: &Measured, diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(1, title(model))];
    blocks.push(Block::Items(about(model, measured)));
    blocks.push(Block::Heading(2, "Findings".to_owned()));
    if diagnosis.findings.is_empty() {
        let only = model.only_together().map(|only| format!("No pair was measured: {only}."));
        blocks.push(Block::Text(only.unwrap_or_else(|| "Nothing stands out.".to_owned())));
    } else {
        let rows = diagnosis.findings.iter().zip(1..).map(|(finding, number)| {
            vec![
                format!("{} {number}", mark(finding.severity)),
                finding.severity.name().to_owned(),
                finding.title.clone(),
                finding.amount.clone(),
            ]
        });
        blocks.push(Block::Table { head: vec!["", "severity", "what", "how much"], rows: rows.collect() });
        for (finding, number) in diagnosis.findings.iter().zip(1..) {
            blocks.push(Block::Heading(3, format!("{} {number}  {}", mark(finding.severity), finding.title)));
            blocks.push(Block::Items(parts(finding)));
        }
    }
    let identified = identified(&diagnosis.identified, true);
    if !identified.is_empty() {
        blocks.push(Block::Heading(2, "What transfers at the same time share".to_owned()));
        blocks.extend(identified);
    }
    let pictures = pictures(measured);
    if !pictures.is_empty() {
        blocks.push(Block::Heading(2, "Matrices".to_owned()));
        blocks.extend(pictures.into_iter().map(|picture| Block::Picture(Box::new(picture))));
    }
    if !diagnosis.silenced.is_empty() {
        blocks.push(Block::Heading(2, "Alarms that were not raised".to_owned()));
        blocks.push(Block::Items(silenced(diagnosis)));
    }
    blocks
}

fn title(model: &Model) -> String {
    format!("toposcope: {}", model.header.name)
}

/// What was measured on what.
pub fn about(model: &Model, measured: &Measured) -> Vec<(&'static str, String)> {
    let (header, provenance) = (&model.header, &measured.provenance);
    let hosts = header.topology.hosts();
    let names = if hosts.len() > 8 { format!("{} … {}", hosts[0], hosts[hosts.len() - 1]) } else { hosts.join(", ") };
    let settings = model.sweep.as_ref().map_or(&header.settings, |sweep| &sweep.settings);
    let patterns: Vec<&str> = settings.patterns.iter().map(|pattern| pattern.name()).collect();
    let sizes: Vec<String> = measured.sizes.iter().map(|&size| format_size(size)).collect();
    let mut about = vec![
        ("ranks", format!("{} on {} {}: {names}", measured.world(), hosts.len(), if hosts.len() == 1 { "host" } else { "hosts" })),
        (
            "measured",
            model
                .only_together()
                .unwrap_or_else(|| format!("{}, {}; {} samples", patterns.join(", "), sizes.join(", "), format_count(model.samples()))),
        ),
        ("shown at", format_size(measured.bytes)),
        (
            "with",
            if provenance.engine == EngineKind::Imported {
                taken(model)
            } else {
                format!(
                    "{} ranks, mover {}, {} outstanding",
                    provenance.engine.name(),
                    provenance.mover.told(provenance.memory),
                    provenance.window
                )
            },
        ),
    ];
    if !provenance.group.is_empty() {
        about.push(("group", format!("rank {} of the job", format_ranks(&provenance.group))));
    }
    if !measured.lost.is_empty() {
        let lost: Vec<usize> = measured.lost.iter().map(|(rank, _)| *rank).collect();
        about.push(("lost", format!("rank {}", format_ranks(&lost))));
    }
    let list = |list: &[(String, String)]| list.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
    for (word, named) in [("software", &provenance.software), ("variables", &provenance.environment)] {
        if !named.is_empty() {
            about.push((word, list(named)));
        }
    }
    if !header.started.is_empty() {
        about.push(("started", header.started.clone()));
    }
    let few = measured.peer.iter().filter(|pair| (pair.n as usize) < FEWEST).count();
    if few > 0 && provenance.engine == EngineKind::Imported {
        about.push(("beware", format!("{few} of {} pairs have too few numbers for an interval", measured.peer.len())));
    } else if few > 0 {
        about.push(("beware", format!("{} of {} pairs have fewer than {FEWEST} repeats, and no interval", few, measured.peer.len())));
    }
    about
}

/// Which tables of other tools the samples are of, and what their numbers mean.
fn taken(model: &Model) -> String {
    let of = |table: &Imported| format!("{} in {} ({})", table.name(), table.file, table.means());
    let all: Vec<String> = model.imported.iter().filter(|table| table.taken || table.samples == 0).map(of).collect();
    all.join("; ")
}

/// Write the report; of Markdown also its pictures, beside it. The files of the pictures.
pub fn write_report(
    path: &Path,
    written: Written,
    model: &Model,
    measured: &Measured,
    diagnosis: &Diagnosis,
) -> Result<Vec<std::path::PathBuf>, ExportError> {
    let blocks = report(model, measured, diagnosis);
    let write = |path: &Path, text: &str| write_whole(path, |out| out.write_all(text.as_bytes()));
    if written == Written::Html {
        write(path, &html(&title(model), &blocks))?;
        return Ok(Vec::new());
    }
    let stem = path.file_stem().map_or_else(|| "report".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let name = |number: usize| format!("{stem}-{}.svg", number + 1);
    let mut files = Vec::new();
    for block in &blocks {
        if let Block::Picture(picture) = block {
            let file = path.with_file_name(name(files.len()));
            write(&file, &svg(&picture.canvas(), &picture.title))?;
            files.push(file);
        }
    }
    write(path, &markdown(&blocks, &name))?;
    Ok(files)
}
