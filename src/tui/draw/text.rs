//! Small things that every panel draws with.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Widget};

use crate::tui::look::Look;
use crate::tui::typing::Typing;

/// Columns that `text` takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A span with an owned text.
pub fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// `1 rank`, `2 ranks`.
pub fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// Draw `line` at row `y` of `area` (from its top), cut at its right edge.
pub fn put(buf: &mut Buffer, area: Rect, y: u16, line: &Line<'_>) {
    put_at(buf, area, 0, y, line);
}

/// Draw `line` at column `x` and row `y` of `area`, cut at its right edge.
pub fn put_at(buf: &mut Buffer, area: Rect, x: u16, y: u16, line: &Line<'_>) {
    let area = area.intersection(buf.area);
    if y < area.height && x < area.width {
        buf.set_line(area.x + x, area.y + y, line, area.width - x);
    }
}

/// Draw `line` so that it ends at the right edge of `area`.
pub fn put_right(buf: &mut Buffer, area: Rect, y: u16, line: &Line<'_>) {
    let x = area.width.saturating_sub(line.width() as u16);
    put_at(buf, area, x, y, line);
}

/// A frame with a title; what lies inside it comes back.
pub fn panel(buf: &mut Buffer, area: Rect, look: &Look, title: &Line<'_>) -> Rect {
    let area = area.intersection(buf.area);
    let block = Block::new().borders(Borders::ALL).border_type(BorderType::Rounded).border_style(look.border());
    let inner = block.inner(area);
    block.render(area, buf);
    if area.width > 4 && area.height > 0 && title.width() > 0 {
        let room = area.width - 4;
        buf.set_line(area.x + 1, area.y, &Line::from(span(" ", look.border())), 1);
        let (x, _) = buf.set_line(area.x + 2, area.y, title, room);
        if x < area.right() - 1 {
            buf.set_line(x, area.y, &Line::from(span(" ", look.border())), 1);
        }
    }
    inner
}

/// `text` cut to `columns`, with `…` where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let more = width(c.encode_utf8(&mut [0; 4]));
        if used + more + 1 > columns {
            break;
        }
        kept.push(c);
        used += more;
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// `name` cut to `columns` so that its number stays, by which names that begin and end alike differ: `receiv…rank 12 within…`.
pub fn cut_name(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    let numbered = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let word = |at: usize| name[at..].split(' ').next().unwrap_or("");
    let begins = || std::iter::once(0).chain(name.match_indices(' ').map(|(at, _)| at + 1));
    let Some((before, at)) = begins().zip(begins().skip(1)).filter(|&(_, at)| numbered(word(at))).last() else { return cut(name, columns) };
    let end = at + word(at).len();
    // A bare number says little without the word before it.
    let from = if word(at).chars().all(|c| c.is_ascii_digit()) { before } else { at };
    let (head, key, tail) = (&name[..from], &name[from..end], &name[end..]);
    let Some(room) = columns.checked_sub(width(key)) else { return cut(name, columns) };
    let own = (room / 2).max(room.saturating_sub(width(tail)));
    let head = cut(head, own);
    format!("{head}{key}{}", cut(tail, room.saturating_sub(width(&head))))
}

/// At most `rows` of `lines`, with `…` at the end of the last where some are missing.
pub fn cut_lines(mut lines: Vec<String>, rows: usize, columns: usize) -> Vec<String> {
    if lines.len() > rows {
        lines.truncate(rows);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last}…"), columns);
        }
    }
    lines
}

/// As many of `parts` as fit in `columns`, from the first on; of the first as much as fits.
pub fn fit(parts: &[String], columns: usize) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() && width(&text) + width(part) > columns {
            break;
        }
        text.push_str(part);
    }
    cut(&text, columns)
}

/// `text` at the right of `columns`.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
}

/// `text` at the left of `columns`.
pub fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let fill = columns.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(fill))
}

/// `text` in lines of at most `columns`, broken at spaces where there are any.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let word = cut(word, columns);
        if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A bar of `columns`, filled by `share` (0 to 1).
pub fn bar(look: &Look, share: f64, columns: usize) -> [Span<'static>; 2] {
    let full = (share.clamp(0.0, 1.0) * columns as f64).floor() as usize;
    [span("━".repeat(full), look.bar()), span("╌".repeat(columns - full.min(columns)), look.dim())]
}

/// A line being typed in `columns`, its caret in sight.
pub fn typing(look: &Look, typing: &Typing, columns: usize) -> Vec<Span<'static>> {
    let text: Vec<char> = typing.text().chars().collect();
    let from = (typing.caret() + 1).saturating_sub(columns);
    let part = |range: std::ops::Range<usize>| {
        text.get(range.start.min(text.len())..range.end.min(text.len())).unwrap_or(&[]).iter().collect::<String>()
    };
    let under = part(typing.caret()..typing.caret() + 1);
    vec![
        span(part(from..typing.caret()), look.typing()),
        span(if under.is_empty() { " ".to_owned() } else { under }, look.selected()),
        span(part(typing.caret() + 1..from + columns), look.typing()),
    ]
}

/// Rows `offset..` of `total` that fit in `height`, kept within what exists.
pub fn window(offset: usize, total: usize, height: usize) -> std::ops::Range<usize> {
    let from = offset.min(total.saturating_sub(height));
    from..(from + height).min(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_columns() {
        for (text, columns, expected) in [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("abc", 1, "…"), ("abc", 0, "")]
        {
            assert_eq!(cut(text, columns), expected);
        }
        let long = "receive side of rank 12 within its host";
        for (name, columns, expected) in [
            (long, 39, long),
            (long, 22, "receiv…rank 12 within…"),
            (long, 8, "rank 12…"),
            (long, 5, "rece…"),
            ("host0 nic0 out", 12, "hos…nic0 out"),
            ("send side of rank 15", 15, "send si…rank 15"),
            ("日本 日本語 7→11 日", 10, "日…7→11 日"),
            ("each flow's own link", 8, "each fl…"),
        ] {
            assert_eq!(cut_name(name, columns), expected, "{columns}");
        }
        let lines = || ["one".to_owned(), "two".to_owned()].to_vec();
        assert_eq!(
            (cut_lines(lines(), 2, 3), cut_lines(lines(), 1, 4), cut_lines(lines(), 1, 3)),
            (lines(), vec!["one…".to_owned()], vec!["on…".to_owned()])
        );
        let parts = ["ab".to_owned(), " · cd".to_owned(), " · e".to_owned()];
        for (columns, expected) in [(20, "ab · cd · e"), (10, "ab · cd"), (4, "ab"), (1, "…")] {
            assert_eq!(fit(&parts, columns), expected);
        }
        assert_eq!((right("7", 3), left("7", 3)), ("  7".to_owned(), "7  ".to_owned()));
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 4), ["abc…", "i"]);
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn windows_stay_within_what_exists() {
        assert_eq!(window(90, 100, 20), 80..100);
        assert_eq!(window(5, 3, 20), 0..3);
    }
}
