use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::MatrixView;
use super::paint::{Painter, color};
use super::placed::Placed;

/// Blocks along an edge at most.
const SIDE: usize = 16;
/// The least room beside which the whole is shown too, columns and rows.
const ROOM: (u16, u16) = (66, 12);
/// Share of the ground that is left of what is not looked at.
const QUIET: f64 = 0.45;

/// Take room for a picture of the whole at the right, where there is some to spare and a part is looked at.
pub(super) fn place(view: &MatrixView<'_>, area: Rect) -> (Rect, Option<Rect>) {
    if view.window.is_none() || area.width < ROOM.0 || area.height < ROOM.1 {
        return (area, None);
    }
    let side = view.grid.side(level(view)) as u16;
    let map = Rect { x: area.right() - side - 1, y: area.y + 1, width: side, height: side.div_ceil(2) };
    (Rect { width: area.width - side - 2, ..area }, Some(map))
}

/// The finest level that is small enough.
fn level(view: &MatrixView<'_>) -> usize {
    (0..view.grid.levels()).find(|&level| view.grid.side(level) <= SIDE).unwrap_or(0)
}

/// Draw the whole in two pixels a cell, what is looked at in the colour of the cursor; with few colours, as blocks among dots.
pub(super) fn draw(view: &MatrixView<'_>, painter: &Painter, placed: &Placed<'_>, area: Rect, buffer: &mut Buffer) {
    let level = level(view);
    let side = view.grid.side(level);
    let ground = view.theme.ground();
    let seen = |row: usize, column: usize| {
        let overlaps = |block: usize, at: usize| {
            let (span, window) = (placed.axes.span(level, block), &placed.window[at]);
            span.start < window.end && window.start < span.end
        };
        overlaps(row, 0) && overlaps(column, 1)
    };
    let tint = |row: usize, column: usize| {
        if seen(row, column) {
            return color(painter.accent);
        }
        let (senders, receivers) = view.turn((row, column));
        let look = painter.pixel(view.grid.block(level, senders, receivers).reduced(view.reduce, painter.metric));
        painter.faded(look, ground, QUIET)
    };
    let dim = view.theme.style("ui.text.dim");
    for (y, row) in (area.top()..area.bottom()).zip((0..side).step_by(2)) {
        for (x, column) in (area.left()..area.right()).zip(0..side) {
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            let lower = row + 1 < side;
            if painter.fills() {
                let style = Style::default().fg(tint(row, column)).bg(if lower { tint(row + 1, column) } else { Color::Reset });
                cell.set_char('▀').set_style(style);
            } else {
                let glyph = match (seen(row, column), lower && seen(row + 1, column)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => '·',
                };
                cell.set_char(glyph).set_style(dim);
            }
        }
    }
}
