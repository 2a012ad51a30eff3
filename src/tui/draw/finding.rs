//! One finding: what is known, why it may be so, what tests have told, and the test that would tell more.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{count, cut, fit, panel, put, span, width, window, wrap};
use super::{HitMap, Scene};
use crate::diagnose::next::Next;
use crate::diagnose::{Finding, Suspect};
use crate::tui::atlas::short;
use crate::tui::feed::Mode;
use crate::tui::findings::{Told, mark};
use crate::tui::keys::Action;
use crate::units::{format_seconds, format_size, plain};

/// Columns of `against` and the like.
const NAMES: usize = 9;
/// Sets of a test up to which it is told what each cause predicts of them.
const SETS: usize = 4;

/// A line below what is told.
struct Foot {
    line: Line<'static>,
    /// first column, columns and what a click there asks for
    keys: Vec<(usize, usize, Action)>,
}

impl Foot {
    const fn plain(line: Line<'static>) -> Self {
        Self { line, keys: Vec::new() }
    }

    fn key(line: Line<'static>, action: Action) -> Self {
        Self { keys: vec![(0, line.width(), action)], line }
    }
}

/// Draw the chosen finding.
pub fn draw(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let at = scene.ui.findings.at;
    let Some(found) = told.get(at) else {
        panel(buf, area, look, &Line::from(span("no finding chosen", look.title())));
        return;
    };
    let columns = usize::from(area.width).saturating_sub(3);
    let inner_rows = usize::from(area.height.saturating_sub(2));
    // Free lines between, and what each cause predicts, where there is room for all of it.
    let whole = (body(scene, found, columns, true), foot(scene, found, columns, true));
    let (body, foot) = if whole.0.len() + whole.1.len() < inner_rows {
        whole
    } else {
        (body(scene, found, columns, false), foot(scene, found, columns, false))
    };
    // The next step stays in sight while the rest scrolls.
    let below = foot.len().min(inner_rows * 3 / 5);
    let rows = inner_rows - below;
    let shown = window(scene.ui.findings.scroll, body.len(), rows);
    let mut title = vec![format!("{} {} {}", mark(found.severity), at + 1, found.severity.name())];
    title.push(format!(" · {}", plain(&found.amount)));
    if shown.len() < body.len() {
        let keys = [Action::SamplesDown, Action::SamplesUp].map(|action| look.key_of(action)).join(" ");
        title.push(format!(" · {}–{} of {}", shown.start + 1, shown.end, body.len()));
        title.push(format!(" · {keys}"));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.finding(found.severity))));
    hits.detail = Some((area, body.len().saturating_sub(rows)));
    let used = shown.len() as u16;
    for (row, line) in (0..).zip(body.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
    // Right below where all is told, so that nothing has to be looked for; else at the bottom.
    let top = if body.len() < rows { used + 1 } else { rows as u16 };
    for (row, foot) in (top..).zip(foot.into_iter().take(below)) {
        put(buf, inner, row, &foot.line);
        for (x, columns, action) in foot.keys {
            let words = Rect { x: inner.x + x as u16, y: inner.y + row, width: columns as u16, height: 1 };
            hits.actions.push((words.intersection(inner), action));
        }
    }
}

/// Draw why an alarm was not raised.
pub fn draw_silenced(scene: &Scene<'_>, told: &Told, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let Some(alarm) = told.diagnosis.silenced.get(scene.ui.findings.silenced) else {
        panel(buf, area, look, &Line::from(span("no alarm was held back", look.title())));
        return;
    };
    let inner = panel(buf, area, look, &Line::from(span("not raised", look.title())));
    let columns = usize::from(inner.width).saturating_sub(2);
    let mut lines: Vec<Line<'static>> = told_in(&plain(&alarm.say), columns, look.strong());
    lines.push(Line::default());
    lines.push(Line::from(span(" because", look.dim())));
    lines.extend(told_in(&plain(&alarm.why), columns, look.text()));
    let rows = usize::from(inner.height);
    let shown = window(scene.ui.findings.scroll, lines.len(), rows);
    hits.detail = Some((area, lines.len().saturating_sub(rows)));
    for (row, line) in (0..).zip(lines.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
}

fn told_in(text: &str, columns: usize, style: ratatui::style::Style) -> Vec<Line<'static>> {
    wrap(text, columns).into_iter().map(|line| Line::from(vec![Span::raw(" "), span(line, style)])).collect()
}

fn body(scene: &Scene<'_>, found: &Finding, columns: usize, airy: bool) -> Vec<Line<'static>> {
    let look = scene.look;
    let air = || airy.then(Line::default);
    let mut lines = told_in(&short(&found.title), columns, look.strong());
    for fact in &found.facts {
        lines.extend(hung("·", &short(&fact.say), columns, (look.dim(), look.text())));
    }
    if !found.told.is_empty() {
        lines.extend(air());
        lines.push(heading(scene, "what tests told"));
        for told in &found.told {
            lines.extend(hung("✓", &short(told), columns, (look.good(), look.text())));
        }
    }
    if !found.suspects.is_empty() {
        lines.extend(air());
        lines.push(heading(scene, if found.suspects.len() > 1 { "likely causes, likeliest first" } else { "likely cause" }));
        for (at, suspect) in found.suspects.iter().enumerate() {
            lines.extend(cause(scene, at, suspect, columns));
        }
    }
    lines
}

fn heading(scene: &Scene<'_>, text: &str) -> Line<'static> {
    Line::from(span(format!(" {text}"), scene.look.dim()))
}

/// A text whose lines hang below its mark.
fn hung(mark: &str, text: &str, columns: usize, (marked, style): (ratatui::style::Style, ratatui::style::Style)) -> Vec<Line<'static>> {
    let indent = width(mark) + 1;
    let line = |(at, line): (usize, String)| {
        let head = if at == 0 { span(format!(" {mark} "), marked) } else { Span::raw(" ".repeat(indent + 1)) };
        Line::from(vec![head, span(line, style)])
    };
    wrap(text, columns.saturating_sub(indent)).into_iter().enumerate().map(line).collect()
}

/// A cause, what speaks for it and what against it.
fn cause(scene: &Scene<'_>, at: usize, suspect: &Suspect, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    let style = if at == 0 { look.strong() } else { look.text() };
    let mut lines = hung(&format!("{}", at + 1), suspect.cause.words(), columns, (look.dim(), style));
    for (name, text, style) in [("for", &suspect.because, look.text()), ("against", &suspect.against, look.dim())] {
        for (row, line) in wrap(&short(text), columns.saturating_sub(NAMES + 2)).into_iter().enumerate() {
            let name = if row == 0 { name } else { "" };
            lines.push(Line::from(vec![span(format!("   {name:<NAMES$}"), look.dim()), span(line, style)]));
        }
    }
    lines
}

/// What to do next: the test, and where to look.
fn foot(scene: &Scene<'_>, found: &Finding, columns: usize, airy: bool) -> Vec<Foot> {
    let look = scene.look;
    let mut lines: Vec<Foot> = Vec::new();
    let testing = scene.model.testing.as_ref().filter(|(of, _)| *of == found.id);
    match &found.next {
        _ if let Some((_, test)) = testing => {
            lines.push(Foot::plain(Line::from(span(" the test runs …", look.accent()))));
            lines.extend(told_in(&test.say, columns, look.text()).into_iter().map(Foot::plain));
            let key = look.key_of(Action::Abort);
            lines.push(Foot::key(Line::from(vec![Span::raw(" "), span(key, look.key()), span("  stop it", look.dim())]), Action::Abort));
        }
        Some(next) => {
            if airy {
                lines.push(Foot::plain(heading(scene, "next test")));
                lines.extend(told_in(&short(&next.test.say), columns, look.text()).into_iter().map(Foot::plain));
            } else {
                lines.extend(hung("next", &short(&next.test.say), columns, (look.dim(), look.text())).into_iter().map(Foot::plain));
            }
            if airy {
                lines.extend(predictions(scene, next, columns).into_iter().map(Foot::plain));
            }
            lines.extend(run(scene, next, columns));
            lines.extend(airy.then(|| Foot::plain(Line::default())));
        }
        None if !found.suspects.is_empty() => lines.push(Foot::plain(Line::from(span(" no test here would tell more", look.dim())))),
        None => {}
    }
    let mut where_: Vec<(Action, String)> = Vec::new();
    if !found.cells.is_empty() {
        where_.push((Action::ShowCells, format!("{} in the matrix", count(found.cells.len(), "pair"))));
    }
    match &found.hop {
        Some((host, hop)) => where_.push((Action::ShowHop, format!("{} of {}", short(hop), plain(host)))),
        None if !found.cells.is_empty() && !scene.atlas.tree.is_empty() => where_.push((Action::ShowHop, "where its ranks sit".to_owned())),
        None => {}
    }
    let told = |(action, text): &(Action, String), room: usize| {
        let key = look.key_of(*action);
        let text = cut(text, room.saturating_sub(width(&key) + 3));
        vec![Span::raw(" "), span(key, look.key()), span(format!("  {text}"), look.dim())]
    };
    if let ([(action, _), (other, _)], false) = (where_.as_slice(), airy) {
        // Side by side, each with its half.
        let half = columns / 2;
        let mut spans = told(&where_[0], half);
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(Span::raw(" ".repeat(half.saturating_sub(used))));
        spans.extend(told(&where_[1], columns - half));
        lines.push(Foot { line: Line::from(spans), keys: vec![(0, half, *action), (half, columns - half, *other)] });
        return lines;
    }
    lines.extend(where_.iter().map(|entry| Foot::key(Line::from(told(entry, columns)), entry.0)));
    lines
}

/// What each cause predicts of each set of the test, as shares of what is usual there.
fn predictions(scene: &Scene<'_>, next: &Next, columns: usize) -> Vec<Line<'static>> {
    let look = scene.look;
    if next.test.sets.len() > SETS {
        return Vec::new();
    }
    let told = next.predictions.iter().map(|prediction| {
        let shares: Vec<String> = prediction
            .shares
            .iter()
            .map(|&(from, to)| if (to - from).abs() < 0.005 { format!("{from:.2}") } else { format!("{from:.2}–{to:.2}") })
            .collect();
        let shares = format!("{} of usual", shares.join(" and "));
        let room = columns.saturating_sub(width(&shares) + 9);
        let name = cut(prediction.cause.words(), room);
        Line::from(vec![span(format!("   if {name}: "), look.dim()), span(shares, look.text())])
    });
    told.collect()
}

/// `t  run it   about 2.00 s, 6 repeats of 256 MiB`, or why it cannot be run here.
fn run(scene: &Scene<'_>, next: &Next, columns: usize) -> Vec<Foot> {
    let look = scene.look;
    let cost = format!(
        "about {}, {} of {}",
        format_seconds(next.seconds),
        count(next.test.repeats as usize, "repeat"),
        format_size(next.test.bytes)
    );
    if !next.cannot.is_empty() {
        let text = format!("cannot be run here: {}", plain(&next.cannot));
        return told_in(&text, columns, look.dim()).into_iter().map(Foot::plain).collect();
    }
    if scene.mode == Mode::Recorded {
        let text = format!("{cost}; it needs the job, and this session was recorded");
        return told_in(&text, columns, look.dim()).into_iter().map(Foot::plain).collect();
    }
    let key = scene.look.keymap.keys_of(Action::RunTest).last().map_or_else(|| "–".to_owned(), ToString::to_string);
    let line =
        Line::from(vec![Span::raw(" "), span(key, look.key()), span("  run it", look.strong()), span(format!("  {cost}"), look.dim())]);
    vec![Foot::key(line, Action::RunTest)]
}
