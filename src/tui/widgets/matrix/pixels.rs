use std::collections::HashSet;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::MatrixView;
use super::layout::{Groups, Layout, Spans};
use super::paint::{Look, Painter, color};
use super::placed::Placed;
use crate::matrix::{Block, Value};

/// Draw blocks of a level, column marks, the cursor and the worst pair; O(pixels drawn).
pub(super) fn draw(
    view: &MatrixView<'_>,
    painter: &Painter,
    placed: &Placed<'_>,
    groups: &[Groups<'_>; 2],
    layout: &Layout,
    level: usize,
    buffer: &mut Buffer,
) {
    let (Some(&(top, unit, _)), Some(last)) = (layout.rows.first(), layout.rows.last()) else { return };
    let scene = Scene { view, painter, placed, layout, level, groups: &groups[1] };
    let end = last.0 + last.1;
    let worst = scene.worst();
    let lit = scene.lit();
    for y in top / 2..end.div_ceil(2) {
        let halves = [y * 2, y * 2 + 1].map(|half| (half < end).then(|| usize::from((half - top) / unit)));
        for (column, &(start, width, _)) in layout.columns.iter().enumerate() {
            let [upper, lower] = halves.map(|row| {
                row.map(|row| {
                    let look = scene.look(row, column);
                    let look = if lit.contains(&(row, column)) { painter.lit(look) } else { look };
                    (look, scene.is_cursor(row, column))
                })
            });
            for x in start..start + width {
                if let Some(cell) = buffer.cell_mut((x, y)) {
                    if painter.fills() {
                        let tint =
                            |half: Option<(Look, bool)>| half.map(|(look, cursor)| color(if cursor { painter.accent } else { look.paint }));
                        let style = Style::default().fg(tint(upper).unwrap_or(Color::Reset));
                        cell.set_char('▀').set_style(tint(lower).map_or(style, |lower| style.bg(lower)));
                    } else if let Some((look, cursor)) = upper {
                        let (glyph, mut style) = look.glyph.unwrap_or((' ', Style::default()));
                        if cursor || halves[0].is_some_and(|row| scene.selected(row, column)) {
                            style = style.add_modifier(Modifier::REVERSED);
                        }
                        cell.set_char(glyph).set_style(style);
                    }
                }
            }
        }
    }
    if let Some((row, column)) = worst {
        scene.mark_worst(row, column, buffer);
    }
    scene.column_marks(buffer);
}

struct Scene<'a> {
    view: &'a MatrixView<'a>,
    painter: &'a Painter<'a>,
    placed: &'a Placed<'a>,
    layout: &'a Layout,
    level: usize,
    /// along the columns
    groups: &'a Groups<'a>,
}

impl Scene<'_> {
    /// (row, column) among what is drawn -> (sender block, receiver block).
    fn blocks(&self, row: usize, column: usize) -> (usize, usize) {
        let first = |spans: &Spans, at: usize| spans.get(at).map_or(usize::MAX, |span| self.placed.axes.block_of(self.level, span.2.start));
        self.view.turn((first(&self.layout.rows, row), first(&self.layout.columns, column)))
    }

    fn block(&self, row: usize, column: usize) -> Block {
        let (senders, receivers) = self.blocks(row, column);
        self.view.grid.block(self.level, senders, receivers)
    }

    fn look(&self, row: usize, column: usize) -> Look {
        // The diagonal is nothing here: a copy's bandwidth is on another scale.
        let look = self.painter.pixel(self.block(row, column).reduced(self.view.reduce, self.painter.metric));
        if self.selected(row, column) { self.painter.selected(look) } else { look }
    }

    fn is_cursor(&self, row: usize, column: usize) -> bool {
        let within = |spans: &Spans, at: usize, place: usize| spans.get(at).is_some_and(|span| span.2.contains(&place));
        let (down, along) = self.placed.cursor;
        within(&self.layout.rows, row, down) && within(&self.layout.columns, column, along)
    }

    fn selected(&self, row: usize, column: usize) -> bool {
        self.view.selection.is_some_and(|(a, b)| {
            let axes = self.placed.axes;
            let (a, b) = (self.view.turn(axes.places(a)), self.view.turn(axes.places(b)));
            // Blocks are taken whole.
            let within = |spans: &Spans, at: usize, a: usize, b: usize| {
                spans.get(at).is_some_and(|span| span.2.start <= a.max(b) && span.2.end > a.min(b))
            };
            within(&self.layout.rows, row, a.0, b.0) && within(&self.layout.columns, column, a.1, b.1)
        })
    }

    /// Blocks that a marked pair is in.
    fn lit(&self) -> HashSet<(usize, usize)> {
        let cells = self.view.lit.map_or(&[][..], |lit| lit.cells);
        cells.iter().filter_map(|&pair| self.place(pair)).collect()
    }

    /// Where a pair is drawn.
    fn place(&self, pair: (usize, usize)) -> Option<(usize, usize)> {
        let (row, column) = self.view.turn(self.placed.axes.places(pair));
        // Places are drawn in ascending order along both edges.
        let find = |spans: &Spans, place: usize| {
            let at = spans.partition_point(|span| span.2.end <= place);
            spans.get(at).filter(|span| span.2.contains(&place)).map(|_| at)
        };
        Some((find(&self.layout.rows, row)?, find(&self.layout.columns, column)?))
    }

    /// Where the worst known pair of what is looked at is drawn, if it is in sight and not under the cursor.
    fn worst(&self) -> Option<(usize, usize)> {
        let seen = match self.view.window {
            Some(window) => self.view.grid.block(window.level, window.senders, window.receivers),
            None => self.view.grid.all(),
        };
        let (from, to) = seen.worst_at?;
        let at = self.place((from as usize, to as usize))?;
        (!self.is_cursor(at.0, at.1)).then_some(at)
    }

    fn mark_worst(&self, row: usize, column: usize, buffer: &mut Buffer) {
        let (Some(&(half, count, _)), Some(&(x, width, _))) = (self.layout.rows.get(row), self.layout.columns.get(column)) else { return };
        let middle = u16::midpoint(half, (count - 1) / 2);
        // A failed pair in the same block is shown there instead.
        let shown = self.block(row, column).reduced(self.view.reduce, self.painter.metric);
        let Some(Value::Known(value)) = shown else { return };
        if let Some(cell) = buffer.cell_mut((x + (width - 1) / 2, middle)) {
            match self.painter.shade(value).rgb().filter(|_| self.painter.fills()) {
                Some(ground) => {
                    cell.set_char('◆').set_style(self.painter.on(ground));
                }
                None => {
                    cell.set_char('◆').set_style(self.view.theme.style("state.warning"));
                }
            }
        }
    }

    /// Where hosts begin and where the cursor is, above the columns.
    fn column_marks(&self, buffer: &mut Buffer) {
        let y = self.layout.area.y;
        let (dim, cross) = (self.view.theme.style("ui.text.dim"), self.view.theme.style("ui.crosshair"));
        let (_, cursor) = self.placed.cursor;
        let mut at = None;
        for (x, width, places) in &self.layout.columns {
            if self.groups.ruled && self.groups.begins_in(places).is_some() {
                buffer.set_string(*x, y, "╷", dim);
            }
            if let Some((mark, _)) = self.placed.mark(places, false) {
                buffer.set_string(x + (width - 1) / 2, y, mark.glyph(), mark.style(self.view.theme));
            }
            if places.contains(&cursor) {
                at = Some(x + (width - 1) / 2);
            }
        }
        let Some(x) = at else { return };
        buffer.set_string(x, y, "▾", cross);
        // The rank beside its mark, on whichever side has room.
        let text = self.placed.rank(false, cursor).to_string();
        let length = text.len() as u16;
        let end = self.layout.area.right();
        let at = if x + 1 + length <= end { x + 1 } else { x.saturating_sub(length) };
        buffer.set_stringn(at, y, text, usize::from(length), cross);
    }
}
