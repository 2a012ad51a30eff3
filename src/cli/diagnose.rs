//! `toposcope diagnose`: what stands out, why, and the test that would tell; for people, for programs, and as a report.

mod evidence;

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use super::args::{DiagnoseArgs, Global};
use super::discover::{Look, Page};
use super::{FINE, FOUND, efficiency, files, print, run_tests};
use crate::diagnose::{Diagnosis, Measured, Severity, diagnose};
use crate::export::report::{Block, Written, about, identified, mark, parts, silenced, write_report};
use crate::launch::job::Job;
use crate::session::{self, Model};
use crate::units::plain;

/// Columns between a finding's number and its amount.
const TITLE: usize = 64;

/// Tell what there is.
pub(super) fn run(global: &Global, wanted: &DiagnoseArgs, job: Option<Job>) -> Result<u8> {
    let written = wanted.report.as_deref().map(|path| written(path).map(|written| (path, written))).transpose()?;
    let mut failed = FINE;
    if let Some(count) = wanted.run_tests {
        failed = run_tests::run(global, &wanted.source, wanted.fabric.as_deref(), count, job)?;
    }
    if job.is_some_and(|job| job.rank > 0) {
        return Ok(failed);
    }
    let model = files::load(&wanted.source)?;
    let seen = session::measured(&model, &efficiency::table(global)?);
    let told = diagnose(&seen);
    if let Some((path, written)) = written {
        write_report(path, written, &model, &seen, &told)?;
        super::say(&format!("toposcope: wrote {}\n", path.display()));
    }
    if wanted.json {
        print(&document(&model, &seen, &told));
    } else {
        print(&text(&model, &seen, &told, wanted.all, Look::now()));
    }
    Ok(if found(&told, wanted.strict) { FOUND } else { failed })
}

/// True if there is something that the exit code should say.
fn found(told: &Diagnosis, strict: bool) -> bool {
    let least = if strict { Severity::Note } else { Severity::Warning };
    told.worst().is_some_and(|worst| worst >= least)
}

/// What a report's name asks for.
fn written(path: &Path) -> Result<Written> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("html" | "htm") => Ok(Written::Html),
        Some("md" | "markdown") => Ok(Written::Markdown),
        _ => bail!("--report {}: expected a name that ends in .html or .md", path.display()),
    }
}

/// For a program.
fn document(model: &Model, seen: &Measured, told: &Diagnosis) -> String {
    let findings: Vec<serde_json::Value> = told
        .findings
        .iter()
        .map(|finding| {
            let mut value = serde_json::to_value(finding).unwrap_or_default();
            let facts = finding.facts.iter().map(|fact| evidence::fact(model, seen, finding, fact));
            value["facts"] = facts.collect();
            value
        })
        .collect();
    let mut value = json!({
        "name": model.header.name,
        "ranks": seen.world(),
        "hosts": model.header.topology.hosts(),
        "engine": model.header.engine.name(),
        "mover": seen.provenance.mover.name(),
        "memory": seen.provenance.memory.name(),
        "bytes": seen.bytes,
        "small_bytes": seen.small_bytes,
        "worst": told.worst(),
        "findings": findings,
        "silenced": told.silenced,
        "identified": told.identified,
    });
    crate::units::plain_json(&mut value);
    format!("{value:#}\n")
}

/// For a person.
fn text(model: &Model, seen: &Measured, told: &Diagnosis, all: bool, look: Look) -> String {
    let mut page = Page::new(look);
    for (word, text) in about(model, seen).iter().take(4) {
        page.sentence(&format!("{word:<9} "), &plain(text));
    }
    page.line("");
    if let Some(only) = model.only_together() {
        page.sentence("", &plain(&format!("no pair was measured: {only}")));
    } else if told.findings.is_empty() {
        page.line("nothing stands out");
    }
    for (finding, number) in told.findings.iter().zip(1..) {
        let head = format!("{} {number:<3} {}", mark(finding.severity), plain(&finding.title));
        page.line(&format!("{head:<TITLE$}  {}", plain(&finding.amount)));
        for (word, text) in parts(finding) {
            page.sentence(&format!("      {word:<8} "), &plain(&text));
        }
    }
    let blocks = identified(&told.identified, all);
    if !blocks.is_empty() {
        page.line("");
        page.line("what transfers at the same time share");
        for block in &blocks {
            put(&mut page, block);
        }
    }
    let quiet = told.silenced.len();
    if all && quiet > 0 {
        page.line("");
        page.line("alarms that were not raised");
        for (_, text) in silenced(told) {
            page.sentence("      ", &plain(&text));
        }
    } else if quiet > 0 {
        page.line("");
        page.line(&format!("{quiet} alarm{} not raised; --all tells why", if quiet == 1 { "" } else { "s" }));
    }
    page.text
}

/// A part of a report on a terminal.
fn put(page: &mut Page, block: &Block) {
    match block {
        Block::Heading(_, text) => page.line(&plain(text)),
        Block::Text(text) => page.sentence("  ", &plain(text)),
        Block::Items(items) => items.iter().for_each(|(word, text)| page.sentence(&format!("  {word:<8} "), &plain(text))),
        Block::Table { head, rows } => {
            let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
            let length = |text: &str| text.chars().count();
            let width = |column: usize| {
                rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).chain([length(&head[column])]).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..head.len()).map(width).collect();
            let line = |cells: &mut dyn Iterator<Item = &str>| {
                cells.zip(&widths).fold("   ".to_owned(), |line, (cell, width)| format!("{line} {cell:<width$} "))
            };
            page.quiet(&line(&mut head.iter().map(String::as_str)));
            for row in &rows {
                page.line(&line(&mut row.iter().map(String::as_str)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
