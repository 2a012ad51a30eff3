use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Block, BorderType, Widget};

use super::layout::{Groups, Kind, Layout, short};
use super::paint::Painter;
use super::placed::Placed;
use super::{Mark, MatrixView};
use crate::tui::atlas::tiers;
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
    let mut parts = vec![format!(" {}", painter.title())];
    parts.extend(painter.told_pattern().map(|pattern| format!(" · {pattern}")));
    if level > 0 {
        parts.push(format!(" · {} of {}", view.reduce.name(), tiers(view.grid.axes().tier(level))));
    }
    let mut own = view.title.iter();
    parts.extend(own.next().map(|part| format!(" · {}", plain(part))));
    parts.push(format!(" · {}", if view.transpose { "row receives" } else { "row sends" }));
    parts.extend(own.map(|part| format!(" · {}", plain(part))));
    let room = usize::from(area.width.saturating_sub(3));
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() && Span::raw(text.as_str()).width() + Span::raw(part.as_str()).width() > room {
            break;
        }
        text.push_str(&part);
    }
    buffer.set_stringn(area.x + 1, area.y, format!("{text} "), room + 1, view.theme.style("ui.title"));
}

/// Draw the way to the part that is seen into the lower border; where room is short, its end.
pub(super) fn draw_crumbs(view: &MatrixView<'_>, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(4));
    let told = |from: usize| {
        let cut = if from > 0 { "… ▸ " } else { "" };
        format!("{cut}{}", view.crumbs.get(from..).unwrap_or(&[]).join(" ▸ "))
    };
    let fits = (0..view.crumbs.len()).map(told).find(|text| Span::raw(text.as_str()).width() <= room);
    if let Some(text) = fits {
        buffer.set_stringn(area.x + 1, area.bottom() - 1, format!(" {text} "), room + 2, view.theme.style("ui.title"));
    }
}

/// Draw host and rank of every row.
pub(super) fn draw_row_headers(view: &MatrixView<'_>, placed: &Placed<'_>, groups: &Groups<'_>, layout: &Layout, buffer: &mut Buffer) {
    let (host_width, rank_width) = layout.header;
    let (dim, cross) = (view.theme.style("ui.text.dim"), view.theme.style("ui.crosshair"));
    let (cursor, _) = placed.cursor;
    let host_x = layout.area.x + 1;
    let rank_x = if host_width > 0 { host_x + host_width + 1 } else { host_x };
    let digits = matches!(layout.kind, Kind::Digits { .. });
    let (mut told, mut marked, mut at_cursor) = (None, None, None);
    for (at, (half, count, places)) in layout.rows.iter().enumerate() {
        // Digits stand in the middle of a high row.
        let y = if digits { half / 2 + (count / 2).saturating_sub(1) / 2 } else { half / 2 };
        let mark = placed.mark(places, true);
        if let Some((mark, rank)) = mark.filter(|(mark, _)| *mark == Mark::Lost || marked != Some(y)) {
            buffer.set_stringn(layout.area.x, y, mark.glyph(), 1, mark.style(view.theme));
            if !digits && at_cursor != Some(y) {
                right(buffer, rank_x, y, rank_width, &rank.to_string(), mark.style(view.theme));
            }
            marked = Some(y);
        }
        let dim = mark.filter(|_| digits).map_or(dim, |(mark, _)| mark.style(view.theme));
        let under = places.contains(&cursor);
        // Of the hosts that begin in this block the first is named.
        let begins = groups.begins_in(places);
        let name = begins.or_else(|| groups.run_of(places.start)).filter(|_| at == 0 || begins.is_some());
        if let Some((_, name)) = name.filter(|_| host_width > 0 && told != Some(y)) {
            buffer.set_stringn(host_x, y, short(name), usize::from(host_width), if under { cross } else { dim });
            told = Some(y);
        }
        if digits {
            right(buffer, rank_x, y, rank_width, &placed.rank(true, places.start).to_string(), if under { cross } else { dim });
        } else if under {
            let middle = u16::midpoint(*half, (count - 1) / 2);
            right(buffer, rank_x, middle, rank_width, &placed.rank(true, cursor).to_string(), cross);
            buffer.set_stringn(rank_x + rank_width, middle, "▸", 1, cross);
            at_cursor = Some(middle);
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
