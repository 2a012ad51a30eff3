//! `toposcope diff`: what changed beyond noise from one measurement to another.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::discover::{Look, Page};
use super::{FINE, FOUND, efficiency, files, print};
use crate::diagnose::compare::{FALSE, LEAST_LATENCY, LEAST_RATE};
use crate::diagnose::{Changes, compare};
use crate::export::report::{changed, mark};
use crate::export::svg::svg;
use crate::export::write_bytes;
use crate::session::{self, Model};
use crate::units::{format_size, plain};

/// Ranks up to which the matrix is printed.
const FEW: usize = 16;
/// Cells that a change has in JSON.
const CELLS: usize = 10_000;

/// Compare two sessions or calibrations.
pub(super) fn run(global: &super::args::Global, before: &Path, after: &Path, json: bool, picture: Option<&Path>) -> Result<u8> {
    let efficiency = efficiency::table(global)?;
    let load = |path: &Path| files::load(path).map(|model| (session::measured(&model, &efficiency), model));
    let (old, old_model) = load(before)?;
    let (new, new_model) = load(after)?;
    let changes = compare(&old, &new)?;
    if let Some(path) = picture {
        let picture = changed(&changes);
        write_bytes(path, svg(&picture.canvas(), &picture.title).as_bytes()).context("--svg")?;
    }
    if json {
        print(&document((before, &old_model), (after, &new_model), &changes));
    } else {
        print(&text((before, &old_model), (after, &new_model), &changes, Look::now()));
    }
    Ok(if changes.any() { FOUND } else { FINE })
}

/// For a program.
fn document(old: (&Path, &Model), new: (&Path, &Model), changes: &Changes) -> String {
    let name = |(path, model): (&Path, &Model)| json!({"file": path, "started": model.header.started, "ranks": model.world()});
    let mut value = serde_json::to_value(changes).unwrap_or_default();
    for (told, change) in value["changes"].as_array_mut().into_iter().flatten().zip(&changes.changes) {
        if change.cells.len() > CELLS {
            told["cells"] = json!(change.cells[..CELLS]);
            told["more_cells"] = json!(change.cells.len() - CELLS);
        }
    }
    let world = changes.world();
    if world <= FEW {
        let row = |from: usize| -> Vec<Option<f64>> { (0..world).map(|to| changes.ratio(from, to)).collect() };
        value["ratios"] = json!((0..world).map(row).collect::<Vec<_>>());
    }
    value["before"] = name(old);
    value["after"] = name(new);
    value["changed"] = Value::Bool(changes.any());
    crate::units::plain_json(&mut value);
    format!("{value:#}\n")
}

/// For a person.
fn text(old: (&Path, &Model), new: (&Path, &Model), changes: &Changes, look: Look) -> String {
    let mut page = Page::new(look);
    for (word, (path, model)) in [("before", old), ("after", new)] {
        let started = if model.header.started.is_empty() { String::new() } else { format!(", {}", model.header.started) };
        let ranks = model.world();
        let hosts = model.header.topology.hosts().len();
        let hosts = if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
        page.line(&plain(&format!("{word:<7} {}{started}, {ranks} ranks on {hosts}", path.display())));
    }
    if !changes.conditions.is_empty() {
        page.line("");
        page.line("measured otherwise, so that rates may differ:");
        changes.conditions.iter().for_each(|say| page.sentence("  ", &plain(say)));
    }
    page.line("");
    for change in &changes.changes {
        page.sentence(if change.ratio < 1.0 { "▼ " } else { "△ " }, &plain(&change.say));
    }
    let told = |came: bool| changes.findings.iter().filter(move |own| own.changed && own.came == came);
    for (came, sign) in [(true, "+"), (false, "−")] {
        for own in told(came) {
            let word = if came { "finding came" } else { "finding went" };
            page.sentence(&format!("{sign} {} ", mark(own.severity)), &format!("{word}: {}", plain(&own.title)));
        }
    }
    if !changes.any() {
        page.line("no change beyond noise");
    }
    let edge: Vec<&str> = changes.findings.iter().filter(|own| !own.changed).map(|own| own.title.as_str()).collect();
    if !edge.is_empty() {
        page.sentence("  ", &format!("in one of the two only, though nothing of it changed measurably: {}", plain(&edge.join("; "))));
    }
    if changes.any() && changes.world() <= FEW && changes.compared > 0 {
        page.line("");
        matrix(&mut page, changes);
    }
    page.line("");
    let pairs = |n: usize| if n == 1 { "1 pair".to_owned() } else { format!("{n} pairs") };
    let untold =
        if changes.untold > 0 { format!("; {} without a measure of noise left out", pairs(changes.untold)) } else { String::new() };
    page.sentence(
        "",
        &format!(
            "{} compared, shown at {}; told are changes of {:.0} % or more ({:.0} % of a small message's time), of which 1 in {:.0} may be \
             chance{untold}",
            pairs(changes.compared),
            format_size(changes.bytes),
            LEAST_RATE * 100.0,
            LEAST_LATENCY * 100.0,
            1.0 / FALSE
        ),
    );
    page.text
}

/// Bandwidth after over before, `*` behind what changed beyond noise.
fn matrix(page: &mut Page, changes: &Changes) {
    let world = changes.world();
    page.line("bandwidth after / before, row sends; * beyond noise");
    let mut head = "     ".to_owned();
    (0..world).for_each(|to| {
        let _ = write!(head, "{to:>6} ");
    });
    page.quiet(&head);
    for from in 0..world {
        let mut line = format!("{from:>4} ");
        for to in 0..world {
            let star = if changes.beyond(from, to) { '*' } else { ' ' };
            let cell = changes.ratio(from, to).map_or_else(|| "·".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = write!(line, "{cell:>6}{star}");
        }
        page.line(&line);
    }
}
