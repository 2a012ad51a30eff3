use std::collections::HashSet;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::MatrixView;
use super::layout::{Groups, Layout, Spans};
use super::paint::{Look, Painter, color};
use crate::matrix::Value;

/// Draw blocks of `1 << level` ranks a side, column marks, the cursor and the worst pair; O(pixels drawn).
pub(super) fn draw(view: &MatrixView<'_>, painter: &Painter, groups: &Groups, layout: &Layout, level: usize, buffer: &mut Buffer) {
    let (Some(&(top, unit, _)), Some(last)) = (layout.rows.first(), layout.rows.last()) else { return };
    let scene = Scene { view, painter, layout, level, groups };
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
    layout: &'a Layout,
    level: usize,
    groups: &'a Groups,
}

impl Scene<'_> {
    /// (row, column) among what is drawn -> (sender block, receiver block).
    fn pair(&self, row: usize, column: usize) -> (usize, usize) {
        let first = |spans: &Spans, at: usize| spans.get(at).map_or(usize::MAX, |span| span.2.start >> self.level);
        self.view.turn((first(&self.layout.rows, row), first(&self.layout.columns, column)))
    }

    fn look(&self, row: usize, column: usize) -> Look {
        let (from, to) = self.pair(row, column);
        let shown = if self.level == 0 {
            // The diagonal is a state of its own here: a copy's bandwidth is on another scale.
            (from != to).then(|| self.view.grid.get(from, to))
        } else {
            self.view.grid.block(self.level, from, to).shown()
        };
        let look = self.painter.pixel(shown);
        if self.selected(row, column) { self.painter.selected(look) } else { look }
    }

    fn is_cursor(&self, row: usize, column: usize) -> bool {
        self.pair(row, column) == (self.view.cursor.0 >> self.level, self.view.cursor.1 >> self.level)
    }

    fn selected(&self, row: usize, column: usize) -> bool {
        self.view.selection.is_some_and(|(a, b)| {
            let (from, to) = self.pair(row, column);
            let within = |at: usize, a: usize, b: usize| (a.min(b) >> self.level..=a.max(b) >> self.level).contains(&at);
            within(from, a.0, b.0) && within(to, a.1, b.1)
        })
    }

    /// Blocks that a marked pair is in.
    fn lit(&self) -> HashSet<(usize, usize)> {
        let cells = self.view.lit.map_or(&[][..], |lit| lit.cells);
        // Ranks are drawn in ascending order along both edges.
        let find = |spans: &Spans, rank: usize| {
            let at = spans.partition_point(|span| span.2.end <= rank);
            spans.get(at).filter(|span| span.2.contains(&rank)).map(|_| at)
        };
        let place = |&pair: &(usize, usize)| {
            let (row, column) = self.view.turn(pair);
            Some((find(&self.layout.rows, row)?, find(&self.layout.columns, column)?))
        };
        cells.iter().filter_map(place).collect()
    }

    /// Where the worst known pair is drawn, if it is in sight and not under the cursor.
    fn worst(&self) -> Option<(usize, usize)> {
        let (from, to) = self.view.grid.all().worst_at?;
        let (row, column) = self.view.turn((from as usize, to as usize));
        let find = |spans: &Spans, rank: usize| spans.iter().position(|span| span.2.contains(&rank));
        let at = (find(&self.layout.rows, row)?, find(&self.layout.columns, column)?);
        (!self.is_cursor(at.0, at.1)).then_some(at)
    }

    fn mark_worst(&self, row: usize, column: usize, buffer: &mut Buffer) {
        let (Some(&(half, count, _)), Some(&(x, width, _))) = (self.layout.rows.get(row), self.layout.columns.get(column)) else { return };
        let middle = u16::midpoint(half, (count - 1) / 2);
        let (from, to) = self.pair(row, column);
        // A failed pair in the same block is shown there instead.
        let shown = if self.level == 0 { Some(self.view.grid.get(from, to)) } else { self.view.grid.block(self.level, from, to).shown() };
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
        let (_, cursor) = self.view.turn(self.view.cursor);
        let mut at = None;
        for (x, width, ranks) in &self.layout.columns {
            if self.groups.ruled && self.groups.begins_in(ranks).is_some() {
                buffer.set_string(*x, y, "╷", dim);
            }
            if let Some((mark, _)) = self.view.mark(ranks, false) {
                buffer.set_string(x + (width - 1) / 2, y, mark.glyph(), mark.style(self.view.theme));
            }
            if ranks.contains(&cursor) {
                at = Some(x + (width - 1) / 2);
            }
        }
        let Some(x) = at else { return };
        buffer.set_string(x, y, "▾", cross);
        // The rank beside its mark, on whichever side has room.
        let text = cursor.to_string();
        let length = text.len() as u16;
        let end = self.layout.area.right();
        let at = if x + 1 + length <= end { x + 1 } else { x.saturating_sub(length) };
        buffer.set_stringn(at, y, text, usize::from(length), cross);
    }
}
