use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Block, BorderType, Widget};

use super::MatrixView;
use super::layout::{Groups, Kind, Layout};
use super::paint::Painter;
use crate::units::plain;

/// Draw the border; what is inside it is returned.
pub(super) fn draw_border(view: &MatrixView<'_>, area: Rect, buffer: &mut Buffer) -> Rect {
    let border = if view.focused { "ui.border.focus" } else { "ui.border" };
    let ground = view.theme.style("ui");
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(view.theme.style(border)).style(ground);
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

/// Draw the heading into the border.
pub(super) fn draw_title(view: &MatrixView<'_>, painter: &Painter, level: usize, area: Rect, buffer: &mut Buffer) {
    let mut parts = vec![painter.metric.title(painter.domain.map_or(f64::NAN, |domain| domain.hi))];
    if !view.title.is_empty() {
        parts.push(plain(view.title));
    }
    if level > 0 {
        parts.push(format!("worst of {0}×{0}", 1_usize << level));
    }
    parts.push(if view.transpose { "row receives" } else { "row sends" }.to_owned());
    let room = usize::from(area.width.saturating_sub(2));
    buffer.set_stringn(area.x + 1, area.y, format!(" {} ", parts.join(" · ")), room, view.theme.style("ui.title"));
}

/// Draw host and rank of every row.
pub(super) fn draw_row_headers(view: &MatrixView<'_>, groups: &Groups, layout: &Layout, buffer: &mut Buffer) {
    let (host_width, rank_width) = layout.header;
    let (dim, cross) = (view.theme.style("ui.text.dim"), view.theme.style("ui.crosshair"));
    let (cursor, _) = view.turn(view.cursor);
    let host_x = layout.area.x + 1;
    let rank_x = if host_width > 0 { host_x + host_width + 1 } else { host_x };
    let digits = matches!(layout.kind, Kind::Digits { .. });
    let mut told = None;
    for (at, (half, count, ranks)) in layout.rows.iter().enumerate() {
        let y = half / 2;
        let under = ranks.contains(&cursor);
        // Of the hosts that begin in this block the first is named.
        let begins = groups.begins_in(ranks);
        let name = begins.or_else(|| groups.run_of(ranks.start)).filter(|_| at == 0 || begins.is_some());
        if let Some((_, name)) = name.filter(|_| host_width > 0 && told != Some(y)) {
            buffer.set_stringn(host_x, y, name, usize::from(host_width), if under { cross } else { dim });
            told = Some(y);
        }
        if digits {
            right(buffer, rank_x, y, rank_width, &ranks.start.to_string(), if under { cross } else { dim });
        } else if under {
            let middle = u16::midpoint(*half, (count - 1) / 2);
            right(buffer, rank_x, middle, rank_width, &cursor.to_string(), cross);
            buffer.set_stringn(rank_x + rank_width, middle, "▸", 1, cross);
        }
    }
}

/// Text right-aligned in a field.
pub(super) fn right(buffer: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) {
    let used = Span::raw(text).width().min(usize::from(width)) as u16;
    let x = x + width - used;
    if buffer.area.contains((x, y).into()) {
        buffer.set_stringn(x, y, text, usize::from(used), style);
    }
}
