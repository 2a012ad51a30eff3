//! What changed since another session: one line a cause, and beside them how sure and under which conditions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{count, cut, fit, panel, put, right, span, window, wrap};
use super::{HitMap, Scene};
use crate::diagnose::Severity;
use crate::diagnose::compare::{Change, Changes, What};
use crate::matrix::Metric;
use crate::tui::findings::{Told, direction, mark};
use crate::tui::keys::Action;
use crate::units::{format_count, plain};

/// Columns before the words, and of the amount with the space before it.
const HEAD: usize = 7;
const AMOUNT: usize = 10;
/// Lines of a change in the list.
const WORDS: usize = 2;

/// Name of the other session.
fn other<'a>(scene: &Scene<'a>) -> &'a str {
    scene.desk.other().map_or("", |other| other.name.as_str())
}

/// Rows that the list takes, frame included, in so many columns.
pub fn rows(told: &Told, columns: usize) -> u16 {
    let lines = told.changes().map_or(1, |changes| changes.changes.iter().map(|change| words(change, columns).len()).sum::<usize>().max(1));
    lines as u16 + 4
}

fn words(change: &Change, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(HEAD + AMOUNT).max(8);
    let mut lines = wrap(&plain(&change.say), room);
    if lines.len() > WORDS {
        let rest = lines.split_off(WORDS - 1).join(" ");
        lines.push(cut(&rest, room));
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// `-46 %`; of a state what came of it.
fn amount(change: &Change) -> String {
    match change.what {
        What::State if change.ratio < 1.0 => "failed".to_owned(),
        What::State => "came back".to_owned(),
        // What is told is the time, which a lower speed makes longer.
        What::Latency => format!("{} %", Metric::Change.format(-change.ratio.ln(), Metric::Change.unit(1.0))),
        _ => format!("{} %", Metric::Change.format(change.ratio.ln(), Metric::Change.unit(1.0))),
    }
}

fn style(scene: &Scene<'_>, change: &Change) -> Style {
    if change.ratio < 1.0 { scene.look.finding(Severity::Problem) } else { scene.look.finding(Severity::Note) }
}

/// Draw the list.
pub fn list(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, at) = (scene.look, scene.ui.findings.change);
    let changes = told.changes();
    let mut title = vec!["what changed".to_owned(), format!(" since {}", other(scene))];
    title.push(format!(" · {} findings", look.key_of(Action::ShowChanges)));
    let inner = panel(buf, area, look, &Line::from(span(fit(&title, usize::from(area.width).saturating_sub(4)), look.title())));
    let columns = usize::from(inner.width);
    let Some(changes) = changes else {
        let why = match &told.changes {
            Some(Err(error)) => error.clone(),
            _ => "not compared yet".to_owned(),
        };
        for (row, line) in (0_u16..).zip(wrap(&why, columns.saturating_sub(2))) {
            put(buf, inner, row, &Line::from(span(format!(" {line}"), look.warn())));
        }
        return;
    };
    let foot = u16::from(inner.height > 1);
    let rows = usize::from(inner.height - foot);
    let lines: Vec<Vec<String>> = changes.changes.iter().map(|change| words(change, columns)).collect();
    if lines.is_empty() {
        put(buf, inner, 0, &Line::from(span(" no change beyond noise", look.good())));
    }
    let mut first = 0;
    while first < at && lines.get(first..=at).is_some_and(|before| before.iter().map(Vec::len).sum::<usize>() > rows) {
        first += 1;
    }
    let mut y = 0;
    for (place, (change, lines)) in changes.changes.iter().zip(&lines).enumerate().skip(first) {
        if usize::from(y) + lines.len() > rows && y > 0 {
            break;
        }
        let here = place == at;
        let text = if here { look.strong() } else { look.text() };
        for (row, line) in lines.iter().enumerate() {
            let cursor = span(if here { "▌" } else { " " }, look.accent());
            let spans = if row == 0 {
                let room = columns.saturating_sub(HEAD + super::text::width(line) + 1);
                vec![
                    cursor,
                    span(direction(change.ratio), style(scene, change)),
                    span(format!("{}  ", right(&(place + 1).to_string(), 3)), look.dim()),
                    span(line.clone(), text),
                    span(right(&amount(change), room), style(scene, change)),
                ]
            } else {
                vec![cursor, Span::raw(" ".repeat(HEAD - 1)), span(line.clone(), text)]
            };
            put(buf, inner, y + row as u16, &Line::from(spans));
        }
        hits.findings.push((Rect { y: inner.y + y, height: lines.len() as u16, ..inner }, place));
        y += lines.len() as u16;
    }
    if foot > 0 {
        put(
            buf,
            inner,
            inner.height - 1,
            &Line::from(span(format!(" {}", fit(&compared(changes), columns.saturating_sub(2))), look.dim())),
        );
    }
}

/// `56 pairs compared`, `, 2 without enough repeats`
fn compared(changes: &Changes) -> Vec<String> {
    let mut parts = vec![format!("{} pairs compared", format_count(changes.compared as u64))];
    parts.extend((changes.untold > 0).then(|| format!(", {} more have too few repeats", format_count(changes.untold as u64))));
    parts
}

/// Draw the chosen change, what else differs, and which findings came and went.
pub fn detail(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let Some(changes) = told.changes() else {
        panel(buf, area, look, &Line::from(span("nothing to compare", look.title())));
        return;
    };
    let columns = usize::from(area.width).saturating_sub(3);
    let chosen = changes.changes.get(scene.ui.findings.change);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let paragraph = |lines: &mut Vec<Line<'static>>, text: &str, style| {
        lines.extend(wrap(text, columns).into_iter().map(|line| Line::from(span(format!(" {line}"), style))));
    };
    if let Some(change) = chosen {
        paragraph(&mut lines, &plain(&change.say), look.strong());
        paragraph(&mut lines, &evidence(change), look.text());
        if !change.cells.is_empty() {
            let key = look.key_of(Action::ShowCells);
            let words = format!("  {} in the matrix", count(change.cells.len(), "pair"));
            lines.push(Line::from(vec![Span::raw(" "), span(key, look.key()), span(words, look.dim())]));
        }
    }
    let mut section = |heading: String, entries: Vec<(String, Style, String)>| {
        if entries.is_empty() {
            return;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(format!(" {heading}"), look.dim())));
        for (mark, style, text) in entries {
            for (row, line) in wrap(&text, columns.saturating_sub(2)).into_iter().enumerate() {
                let head = if row == 0 { mark.clone() } else { " ".to_owned() };
                lines.push(Line::from(vec![span(format!(" {head} "), style), span(line, look.text())]));
            }
        }
    };
    let findings = |came: bool| {
        let own = changes.findings.iter().filter(|finding| finding.came == came);
        own.map(|finding| {
            let edge = if finding.changed { "" } else { " (at the edge of what is told: nothing it rests on changed)" };
            (mark(finding.severity).to_owned(), look.finding(finding.severity), format!("{}{edge}", plain(&finding.title)))
        })
        .collect()
    };
    section("findings that are new".to_owned(), findings(true));
    section(format!("findings that only {} has", other(scene)), findings(false));
    let conditions = changes.conditions.iter().map(|condition| ("·".to_owned(), look.dim(), plain(condition))).collect();
    section("taken differently, so rates may differ for that reason".to_owned(), conditions);
    let rows = usize::from(area.height.saturating_sub(2));
    let shown = window(scene.ui.findings.scroll, lines.len(), rows);
    let mut title = match chosen {
        Some(change) => {
            vec![format!("{} change {}", direction(change.ratio), scene.ui.findings.change + 1), format!(" · {}", amount(change))]
        }
        None => vec!["no change".to_owned()],
    };
    if shown.len() < lines.len() {
        let keys = [Action::SamplesDown, Action::SamplesUp].map(|action| look.key_of(action)).join(" ");
        title.push(format!(" · {}–{} of {} · {keys}", shown.start + 1, shown.end, lines.len()));
    }
    let title_style = chosen.map_or_else(|| look.title(), |change| style(scene, change));
    let inner = panel(buf, area, look, &Line::from(span(fit(&title, usize::from(area.width).saturating_sub(4)), title_style)));
    hits.detail = Some((area, lines.len().saturating_sub(rows)));
    for (row, line) in (0_u16..).zip(lines.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
}

/// `bandwidth of pairs alone: after over before 0.540 (0.530–0.550, 95 %); probability of as much by chance below 1e-6`
fn evidence(change: &Change) -> String {
    let what = match change.what {
        What::State => return "no answer or wrong bytes on one side".to_owned(),
        What::Rate => "bandwidth of pairs alone",
        What::Together => "bandwidth of fans, relays and sets",
        What::Duplex => "bandwidth while both directions are busy",
        What::Local => "bandwidth of copies inside a rank",
        What::Latency => "speed of small messages",
    };
    let interval = change.interval.map_or_else(String::new, |interval| format!(" ({:.3}–{:.3}, 95 %)", interval.low, interval.high));
    let probability = if change.p < 1e-6 { "below 1e-6".to_owned() } else { format!("{:.1e}", change.p) };
    format!("{what}: after over before {:.3}{interval}; probability of as much by chance {probability}", change.ratio)
}
