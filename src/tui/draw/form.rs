//! The form of the Sweep tab: patterns to switch, settings to type, the button, and what the field under the cursor means.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{cut, fit, left, panel, put, put_at, span, wrap};
use super::{HitMap, Scene};
use crate::sweep::SweepSettings;
use crate::tui::feed::Mode;
use crate::tui::form::{Field, FormError, PATTERN_LINES};
use crate::tui::keys::Action;

/// Columns of a field's name, the space after it included.
const NAMES: u16 = 9;
/// Columns of a pattern's switch.
const SWITCH: u16 = 10;
/// Fewest and most lines of the hint.
const HINT: (u16, u16) = (2, 4);

/// Draw the form.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, settings: &Result<SweepSettings, FormError>, hits: &mut HitMap) {
    let (look, form) = (scene.look, &scene.ui.form);
    let recorded = scene.mode == Mode::Recorded;
    let inner = area.inner(ratatui::layout::Margin::new(1, 1));
    // The button and the hint stay; the lines above them scroll with the cursor.
    let lines = &Field::LINES[..Field::LINES.len() - 1];
    let hint_height = inner.height.saturating_sub(lines.len() as u16 + 1).clamp(HINT.0, HINT.1);
    let rows = usize::from(inner.height.saturating_sub(1 + hint_height)).min(lines.len());
    let (line, _) = form.field.place();
    let at = if form.field == Field::Start { 0 } else { line };
    let first = at.saturating_sub(rows / 2).min(lines.len() - rows);
    let mut title = vec!["sweep".to_owned()];
    if rows < lines.len() {
        title.push(format!(
            " · {}",
            ["▾ more below", "▴ more above", "▴▾ more"][usize::from(first > 0) + usize::from(first > 0 && first + rows < lines.len())]
        ));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    for (y, (number, fields)) in (0_u16..).zip(lines.iter().enumerate().skip(first).take(rows)) {
        let row = Rect { y: inner.y + y, height: 1, ..inner };
        if number < PATTERN_LINES {
            patterns(scene, buf, row, number, fields, hits);
        } else {
            let width = row.width / fields.len() as u16;
            for (x, &field) in (0_u16..).zip(*fields) {
                let area = Rect { x: row.x + x * width, width, ..row };
                value_line(scene, buf, area, field, settings);
                if !recorded {
                    hits.fields.push((area, field));
                }
            }
        }
    }
    let below = Rect { x: inner.x + 1, y: inner.y + rows as u16, width: inner.width.saturating_sub(2), height: inner.height - rows as u16 };
    if !recorded && below.height > 0 {
        let style = if form.field == Field::Start { look.selected() } else { look.accent() };
        put(buf, below, 0, &Line::from(span(format!(" start ({}) ", look.key_of(Action::StartSweep)), style)));
        hits.fields.push((Rect { height: 1, ..below }, Field::Start));
    }
    let (text, style) = match settings {
        Err(error) => (error.message.as_str(), look.error()),
        Ok(_) if recorded => ("a recorded session: nothing can be measured here", look.dim()),
        Ok(_) => match form.field {
            Field::Pattern(pattern) if !form.can(pattern) && !pattern.crosses() => {
                ("custom: no pattern file is loaded (--pattern-file)", look.dim())
            }
            field => (field.hint(), look.dim()),
        },
    };
    for (row, line) in (1..below.height).zip(wrap(text, usize::from(below.width))) {
        put(buf, below, row, &Line::from(span(line, style)));
    }
}

/// A line of switches.
fn patterns(scene: &Scene<'_>, buf: &mut Buffer, row: Rect, number: usize, fields: &[Field], hits: &mut HitMap) {
    let (look, form) = (scene.look, &scene.ui.form);
    let recorded = scene.mode == Mode::Recorded;
    // The name only where it leaves room for three switches.
    let named = row.width > NAMES + 3 * SWITCH;
    if named && number == 0 {
        put_at(buf, row, 1, 0, &Line::from(span(Field::Pattern(crate::sample::Pattern::Peer).name(), look.dim())));
    }
    let from = if named { NAMES } else { 0 };
    let width = ((row.width - from.min(row.width)) / 3).min(SWITCH + 3);
    let mut column = 0;
    for &field in fields {
        let Field::Pattern(pattern) = field else { continue };
        let here = form.field == field && !recorded;
        let (mark, style) = match (form.can(pattern), form.has(pattern)) {
            (false, _) => ("–", look.dim()),
            (true, true) => ("■", if here { look.strong() } else { look.text() }),
            (true, false) => ("□", if here { look.strong() } else { look.dim() }),
        };
        let mark_style = if form.has(pattern) { look.accent() } else { look.dim() };
        let line = Line::from(vec![
            span(if here { "▸" } else { " " }, look.accent()),
            span(mark, mark_style),
            span(format!(" {}", pattern.name()), style),
        ]);
        // Long names take two columns.
        let columns = if pattern.crosses() { 2 } else { 1 };
        let area = Rect { x: row.x + from + column * width, width: columns * width, ..row };
        column += columns;
        put(buf, area, 0, &line);
        if !recorded {
            hits.fields.push((area, field));
        }
    }
}

/// Name and value of a field.
fn value_line(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, field: Field, settings: &Result<SweepSettings, FormError>) {
    let look = scene.look;
    let here = field == scene.ui.form.field && scene.mode != Mode::Recorded;
    let wrong = settings.as_ref().is_err_and(|error| error.field == field);
    let mark = if here { "▸" } else { " " };
    let mut spans = vec![span(mark, look.accent()), span(left(field.name(), usize::from(NAMES) - 1), look.dim())];
    spans.push(Span::raw(" "));
    spans.extend(value(scene, field, here, wrong, usize::from(area.width.saturating_sub(NAMES + 2))));
    put(buf, area, 0, &Line::from(spans));
}

/// What a field says, with its caret, its choice marks or its error.
fn value(scene: &Scene<'_>, field: Field, here: bool, wrong: bool, columns: usize) -> Vec<Span<'static>> {
    let (look, form) = (scene.look, &scene.ui.form);
    if let Some(typing) = form.typing.as_ref().filter(|_| here) {
        return super::text::typing(look, typing, columns);
    }
    let text = form.text(field);
    let style = if wrong {
        look.error()
    } else if here {
        look.strong()
    } else if form.matters(field) {
        look.text()
    } else {
        look.dim()
    };
    if field == Field::Isolated {
        let mark = if text == "yes" { "■ " } else { "□ " };
        return vec![span(mark, if text == "yes" { look.accent() } else { look.dim() }), span(text, style)];
    }
    if field.is_choice() && here {
        return vec![span("‹ ", look.accent()), span(cut(&text, columns.saturating_sub(4)), style), span(" ›", look.accent())];
    }
    vec![span(cut(&text, columns), style)]
}
