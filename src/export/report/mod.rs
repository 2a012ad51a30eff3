//! The written report: what was measured on what, findings with their causes and next tests, matrices; as one page for people, or
//! short for a ticket.

mod curve;
mod fans;
mod machine;
mod matrix;
mod numbers;
mod page;
mod reproduce;
#[cfg(test)]
mod tests;
mod ticket;
mod told;
mod whole;

use std::io::Write;
use std::path::Path;

use super::file::{ExportError, write_whole};
use crate::diagnose::{Diagnosis, Measured};
use crate::fit::FEWEST;
use crate::sample::EngineKind;
use crate::session::{Imported, Model};
use crate::units::{format_count, format_ranks, format_size};
pub use matrix::{Picture, changed, pictures};
pub use page::Block;
pub use reproduce::reproduce;
pub use told::{identified, mark, parts, silenced};

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// the whole of it, one file
    Html,
    /// short, findings first
    Markdown,
}

/// What is said where no finding is.
fn nothing(model: &Model) -> String {
    let only = model.only_together().map(|only| format!("No pair was measured: {only}."));
    only.unwrap_or_else(|| "Nothing stands out.".to_owned())
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
    if model.only_together().is_some() {
        about.retain(|(word, _)| *word != "shown at");
    }
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

/// Write the report.
pub fn write_report(path: &Path, written: Written, model: &Model, measured: &Measured, diagnosis: &Diagnosis) -> Result<(), ExportError> {
    let text = match written {
        Written::Html => whole::whole(model, measured, diagnosis),
        Written::Markdown => ticket::ticket(model, measured, diagnosis),
    };
    write_whole(path, |out| out.write_all(text.as_bytes()))
}
