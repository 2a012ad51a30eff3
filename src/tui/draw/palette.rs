//! The command palette: a line that is typed, and what fits it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::Scene;
use super::text::{cut, left, panel, put, span, typing, window, wrap};
use crate::tui::palette::{Row, place};

/// Columns of names and of keys.
const NAME: usize = 20;
const KEYS: usize = 12;
/// Most lines of the list.
const LINES: usize = 16;

/// Draw the palette over `area`.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let (look, palette) = (scene.look, &scene.ui.palette);
    let rows = palette.rows(&look.keymap);
    let width = area.width.saturating_sub(4).min(84);
    let height = (LINES as u16 + 4).min(area.height);
    let area = Rect { x: area.x + (area.width - width) / 2, y: area.y, width, height };
    Clear.render(area, buf);
    buf.set_style(area, look.popup());
    let title = format!("commands · {}", if rows.is_empty() { "none".to_owned() } else { rows.len().to_string() });
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let room = usize::from(inner.width);
    let mut line = vec![span(" : ", look.key())];
    line.extend(typing(look, &palette.typing, room.saturating_sub(4)));
    put(buf, inner, 0, &Line::from(line));
    let told = match &palette.error {
        Some(error) => wrap(error, room.saturating_sub(2)),
        None => Vec::new(),
    };
    let mut y = 1;
    for line in told.iter().take(3) {
        put(buf, inner, y, &Line::from(span(format!(" {line}"), look.error())));
        y += 1;
    }
    let shown = usize::from(inner.height.saturating_sub(y + 1));
    let at = palette.at.min(rows.len().saturating_sub(1));
    let from = at.saturating_sub(shown.saturating_sub(1));
    for i in window(from, rows.len(), shown) {
        put(buf, inner, y, &row(scene, rows[i], i == at, room));
        y += 1;
    }
    let keys = [("enter", "run"), ("tab", "complete"), ("esc", "close")];
    let keys = keys.into_iter().flat_map(|(key, word)| [span(format!(" {key}"), look.key()), span(format!(" {word}  "), look.dim())]);
    put(buf, inner, inner.height.saturating_sub(1), &Line::from(keys.collect::<Vec<Span<'_>>>()));
}

fn row(scene: &Scene<'_>, row: Row<'_>, chosen: bool, room: usize) -> Line<'static> {
    let look = scene.look;
    let style = if chosen { look.strong() } else { look.text() };
    let mark = span(if chosen { "▸ " } else { "  " }, look.accent());
    let (name, keys, about) = match row {
        Row::Word(word) => return Line::from(vec![mark, span(cut(word, room.saturating_sub(3)), style)]),
        Row::Verb(verb) => (verb.name(), "…".to_owned(), verb.doc().to_owned()),
        Row::Action(action) => {
            let place = place(action);
            let about = if place.is_empty() { action.doc().to_owned() } else { format!("{} ({place})", action.doc()) };
            (action.name(), look.all_keys_of(action), about)
        }
    };
    let about = cut(&about, room.saturating_sub(NAME + KEYS + 4));
    Line::from(vec![mark, span(left(name, NAME), style), span(left(&keys, KEYS - 1) + " ", look.key()), span(about, look.dim())])
}
