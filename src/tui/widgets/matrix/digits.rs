use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::MatrixView;
use super::frame::right;
use super::layout::{Kind, Layout};
use super::paint::{Painter, color};
use super::placed::Placed;
use crate::matrix::{Summary, Value};

/// Columns beside a number from which on it stands in the middle.
const WIDE: u16 = 2;

/// Draw cells, column headers, lines and summaries; O(cells drawn).
pub(super) fn draw(view: &MatrixView<'_>, painter: &Painter, placed: &Placed<'_>, layout: &Layout, buffer: &mut Buffer) {
    let Kind::Digits { number } = layout.kind else { return };
    let cursor = placed.cursor;
    draw_lines(view, layout, buffer);
    draw_column_headers(view, placed, layout, number, buffer);
    let selected = |row: usize, column: usize| {
        view.selection.is_some_and(|(a, b)| {
            let (a, b) = (view.turn(placed.axes.places(a)), view.turn(placed.axes.places(b)));
            (a.0.min(b.0)..=a.0.max(b.0)).contains(&row) && (a.1.min(b.1)..=a.1.max(b.1)).contains(&column)
        })
    };
    let mut at_cursor = None;
    for (half, halves, rows) in &layout.rows {
        let row = rows.start;
        for (x, pitch, columns) in &layout.columns {
            let column = columns.start;
            let (from, to) = placed.axes.pair(view.turn((row, column)));
            let value = view.grid.get(from, to);
            let area = Rect { x: *x, y: half / 2, width: *pitch, height: halves / 2 };
            let (text, mut style) = painter.cell(value, from == to, usize::from(number));
            if selected(row, column) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            buffer.set_style(area, style);
            let (field, y) = (field(area, number), middle(area));
            if let (Value::Known(known), true) = (value, from != to) {
                let shade = painter.shade(known);
                if let Some(glyph) = shade.glyph {
                    let ink = Style::default().fg(color(shade.paint));
                    shade_cell(area, (field, number), (glyph, ink), buffer);
                }
            }
            right(buffer, field, y, number, &text, style);
            if view.is_lit((from, to)) {
                draw_lit(view, painter, (field, y), (number, style), buffer);
            }
            if (row, column) == cursor {
                at_cursor = Some(area);
            }
        }
    }
    // Last, since the right bracket may stand in the next cell's gap.
    if let Some(area) = at_cursor {
        draw_cursor(view, painter, area, number, buffer);
    }
    draw_summaries(view, painter, placed, layout, number, buffer);
}

/// First column of the number in a cell: at the right of a narrow one, in the middle of a wide one.
const fn field(area: Rect, number: u16) -> u16 {
    let spare = area.width.saturating_sub(number);
    area.x + if spare >= WIDE { spare.div_ceil(2) } else { spare }
}

/// The row of the number in a cell.
const fn middle(area: Rect) -> u16 {
    area.y + area.height.saturating_sub(1) / 2
}

/// Where colours are few, glyphs carry the amount: one beside the number, or all around it in a high cell.
fn shade_cell(area: Rect, (field, number): (u16, u16), (glyph, ink): (char, Style), buffer: &mut Buffer) {
    let mut put = |x: u16, y: u16| {
        if let Some(cell) = buffer.cell_mut((x, y)) {
            cell.set_char(glyph).set_style(ink);
        }
    };
    if area.height < 2 {
        put(field - 1, area.y);
        return;
    }
    // A column stays free between cells, and one on either side of the number.
    let inside = field.saturating_sub(1)..=field + number;
    for (x, y) in (area.y..area.bottom()).flat_map(|y| (area.x + 1..area.right()).map(move |x| (x, y))) {
        if y != middle(area) || !inside.contains(&x) {
            put(x, y);
        }
    }
}

/// A mark before the number of a marked pair, and a line below it: to be seen however few colours there are.
fn draw_lit(view: &MatrixView<'_>, painter: &Painter, (field, y): (u16, u16), (number, style): (u16, Style), buffer: &mut Buffer) {
    let Some(lit) = view.lit else { return };
    let own = view.theme.style("finding.lit");
    buffer.set_style(Rect { x: field, y, width: number, height: 1 }, Style::default().add_modifier(Modifier::UNDERLINED | Modifier::BOLD));
    // Beside the glyph that carries the amount, where there is one.
    let x = field.saturating_sub(if painter.fills() { 1 } else { 2 });
    let ink = if painter.fills() && style.bg.is_some() { style } else { own };
    buffer.set_stringn(x, y, lit.mark, 1, ink.add_modifier(Modifier::BOLD));
}

fn draw_column_headers(view: &MatrixView<'_>, placed: &Placed<'_>, layout: &Layout, number: u16, buffer: &mut Buffer) {
    let (_, cursor) = placed.cursor;
    let (dim, cross) = (view.theme.style("ui.text.dim"), view.theme.style("ui.crosshair"));
    let y = layout.area.y;
    for (x, pitch, places) in &layout.columns {
        let mark = placed.mark(places, false).map(|(mark, _)| mark);
        let plain = mark.map_or(dim, |mark| mark.style(view.theme));
        let text = placed.rank(false, places.start).to_string();
        let start = field(Rect { x: *x, y, width: *pitch, height: 1 }, number);
        let end = start + number;
        right(buffer, start, y, number, &text, if places.start == cursor { cross } else { plain });
        if let Some(mark) = mark {
            buffer.set_stringn(end.saturating_sub(text.len() as u16 + 1).max(*x), y, mark.glyph(), 1, mark.style(view.theme));
        }
    }
}

/// Brackets beside the number of a cell that is one row high, bars along the sides of a higher one.
fn draw_cursor(view: &MatrixView<'_>, painter: &Painter, area: Rect, number: u16, buffer: &mut Buffer) {
    let style = Style { bg: None, ..view.theme.style("ui.cursor") };
    let start = field(area, number);
    // Half blocks would run into a shade's glyph.
    let (marks, ends) = if area.height > 1 && area.width >= number + WIDE {
        (if painter.fills() { ['▌', '▐'] } else { ['[', ']'] }, (area.x, area.right() - 1))
    } else {
        let left = if painter.fills() { start - 1 } else { start.saturating_sub(2) };
        (if painter.fills() { ['▐', '▌'] } else { ['[', ']'] }, (left, start + number))
    };
    for (y, (x, mark)) in (area.y..area.bottom()).flat_map(|y| [ends.0, ends.1].into_iter().zip(marks).map(move |end| (y, end))) {
        if let Some(cell) = buffer.cell_mut((x, y)) {
            cell.set_char(mark).set_style(style);
        }
    }
    let inside = Rect { x: start, y: middle(area), width: number, height: 1 };
    buffer.set_style(inside, Style::default().add_modifier(Modifier::BOLD));
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
        for y in layout.area.y..bottom.0 / 2 + bottom.1 / 2 {
            buffer.set_string(x, y, if layout.lines.1.contains(&y) { "┼" } else { "┊" }, style);
        }
    }
}

fn draw_summaries(view: &MatrixView<'_>, painter: &Painter, placed: &Placed<'_>, layout: &Layout, number: u16, buffer: &mut Buffer) {
    let Some((x, y)) = layout.summary else { return };
    let (dim, text) = (view.theme.style("ui.text.dim"), view.theme.style("ui.text"));
    let told = |summary: Summary, width: u16| {
        if summary.count == 0 { "·".to_owned() } else { painter.number(summary.mean, usize::from(width)) }
    };
    let (of_rows, of_columns) = if view.transpose { ("recv", "send") } else { ("send", "recv") };
    let width = number.max(5);
    right(buffer, x, layout.area.y, width, of_rows, dim);
    for (half, halves, places) in &layout.rows {
        let rank = placed.rank(true, places.start);
        let summary = if view.transpose { view.grid.column(rank) } else { view.grid.row(rank) };
        right(buffer, x, middle(Rect { x, y: half / 2, width, height: halves / 2 }), width, &told(summary, width), text);
    }
    let header = layout.columns.first().map_or(0, |column| column.0.saturating_sub(layout.area.x + 1));
    right(buffer, layout.area.x + 1, y, header, of_columns, dim);
    for (x, pitch, places) in &layout.columns {
        let rank = placed.rank(false, places.start);
        let summary = if view.transpose { view.grid.row(rank) } else { view.grid.column(rank) };
        right(buffer, field(Rect { x: *x, y, width: *pitch, height: 1 }, number), y, number, &told(summary, number), text);
    }
}
