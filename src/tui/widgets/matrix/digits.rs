use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::MatrixView;
use super::frame::right;
use super::layout::{Kind, Layout};
use super::paint::{Painter, color};
use crate::matrix::{Summary, Value};

/// Draw cells, column headers, lines and summaries; O(cells drawn).
pub(super) fn draw(view: &MatrixView<'_>, painter: &Painter, layout: &Layout, buffer: &mut Buffer) {
    let Kind::Digits { number, gap } = layout.kind else { return };
    let cursor = view.turn(view.cursor);
    draw_lines(view, layout, buffer);
    let (dim, cross) = (view.theme.style("ui.text.dim"), view.theme.style("ui.crosshair"));
    for (x, pitch, ranks) in &layout.columns {
        let style = if ranks.start == cursor.1 { cross } else { dim };
        right(buffer, *x, layout.area.y, *pitch, &ranks.start.to_string(), style);
    }
    let selected = |row: usize, column: usize| {
        view.selection.is_some_and(|(a, b)| {
            let (a, b) = (view.turn(a), view.turn(b));
            (a.0.min(b.0)..=a.0.max(b.0)).contains(&row) && (a.1.min(b.1)..=a.1.max(b.1)).contains(&column)
        })
    };
    let mut at_cursor = None;
    for (half, _, rows) in &layout.rows {
        let (y, row) = (half / 2, rows.start);
        for (x, pitch, columns) in &layout.columns {
            let column = columns.start;
            let (from, to) = view.turn((row, column));
            let value = view.grid.get(from, to);
            let (text, mut style) = painter.cell(value, from == to, usize::from(number));
            if selected(row, column) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            buffer.set_style(Rect { x: *x, y, width: *pitch, height: 1 }, style);
            right(buffer, x + pitch - number, y, number, &text, style);
            if let (Value::Known(known), true) = (value, from != to) {
                let shade = painter.shade(known);
                if let (Some(glyph), Some(cell)) = (shade.glyph, buffer.cell_mut((x + gap, y))) {
                    cell.set_char(glyph).set_style(Style::default().fg(color(shade.paint)));
                }
            }
            if (row, column) == cursor {
                at_cursor = Some((x + gap - 1, x + pitch, y));
            }
        }
    }
    // Last, since the right bracket stands in the next cell's gap.
    if let Some((left, end, y)) = at_cursor {
        let style = view.theme.style("ui.cursor");
        // Half blocks would run into a shade's glyph.
        let brackets = if painter.fills() { ['▐', '▌'] } else { ['[', ']'] };
        for (x, bracket) in [left, end].into_iter().zip(brackets) {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_char(bracket).set_style(Style { bg: None, ..style });
            }
        }
        let inside = Rect { x: left + 1, y, width: end - left - 1, height: 1 };
        buffer.set_style(inside, Style::default().add_modifier(Modifier::BOLD));
    }
    draw_summaries(view, painter, layout, number, buffer);
}

/// Rule hosts off from each other.
fn draw_lines(view: &MatrixView<'_>, layout: &Layout, buffer: &mut Buffer) {
    let style = view.theme.style("ui.border");
    let (Some(first), Some(last), Some(bottom)) = (layout.columns.first(), layout.columns.last(), layout.rows.last()) else { return };
    for &y in &layout.lines.1 {
        for x in first.0..last.0 + last.1 {
            buffer.set_string(x, y, "┈", style);
        }
    }
    for &x in &layout.lines.0 {
        for y in layout.area.y..=bottom.0 / 2 {
            buffer.set_string(x, y, if layout.lines.1.contains(&y) { "┼" } else { "┊" }, style);
        }
    }
}

fn draw_summaries(view: &MatrixView<'_>, painter: &Painter, layout: &Layout, number: u16, buffer: &mut Buffer) {
    let Some((x, y)) = layout.summary else { return };
    let (dim, text) = (view.theme.style("ui.text.dim"), view.theme.style("ui.text"));
    let told = |summary: Summary, width: u16| {
        if summary.count == 0 { "·".to_owned() } else { painter.number(summary.mean, usize::from(width)) }
    };
    let (of_rows, of_columns) = if view.transpose { ("recv", "send") } else { ("send", "recv") };
    let width = number.max(5);
    right(buffer, x, layout.area.y, width, of_rows, dim);
    for (half, _, ranks) in &layout.rows {
        let summary = if view.transpose { view.grid.column(ranks.start) } else { view.grid.row(ranks.start) };
        right(buffer, x, half / 2, width, &told(summary, width), text);
    }
    let header = layout.columns.first().map_or(0, |column| column.0.saturating_sub(layout.area.x + 1));
    right(buffer, layout.area.x + 1, y, header, of_columns, dim);
    for (x, pitch, ranks) in &layout.columns {
        let summary = if view.transpose { view.grid.row(ranks.start) } else { view.grid.column(ranks.start) };
        right(buffer, x + pitch - number, y, number, &told(summary, number), text);
    }
}
