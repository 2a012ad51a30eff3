//! The screen as data, for pictures.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use ratatui::text::Span;

use super::theme::{Theme, rgb_of};
use crate::export::svg::{Canvas, Glyph};

/// A drawn buffer, all colours in numbers; the theme gives ground and text where the terminal's own would show.
pub fn canvas(buffer: &Buffer, theme: &Theme) -> Canvas {
    let area = buffer.area;
    let mut cells = Vec::with_capacity(usize::from(area.width) * usize::from(area.height));
    for y in area.top()..area.bottom() {
        let mut covered = 0;
        for x in area.left()..area.right() {
            let cell = &buffer[(x, y)];
            let mut glyph = glyph(cell);
            if covered > 0 {
                covered -= 1;
                glyph.symbol.clear();
            } else {
                covered = Span::raw(cell.symbol()).width().saturating_sub(1);
            }
            cells.push(glyph);
        }
    }
    Canvas { width: area.width.into(), height: area.height.into(), cells, background: theme.ground(), foreground: theme.text() }
}

fn glyph(cell: &Cell) -> Glyph {
    let has = |modifier| cell.modifier.contains(modifier);
    let color = |color: Color| rgb_of(color);
    Glyph {
        symbol: if has(Modifier::HIDDEN) { " ".to_owned() } else { cell.symbol().to_owned() },
        fg: color(cell.fg),
        bg: color(cell.bg),
        bold: has(Modifier::BOLD),
        dim: has(Modifier::DIM),
        underline: has(Modifier::UNDERLINED),
        reverse: has(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use crate::export::svg::svg;
    use crate::ramp::{Level, Rgb};
    use crate::tui::theme::Themes;

    #[test]
    fn every_kind_of_colour_becomes_numbers() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "a", Style::default().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(21)));
        buffer.set_string(1, 0, "b", Style::default().fg(Color::LightRed).add_modifier(Modifier::BOLD | Modifier::REVERSED));
        buffer.set_string(2, 0, "漢x", Style::default());
        let (theme, _) = Themes::default().load("light", Level::TrueColor).unwrap();
        let canvas = canvas(&buffer, &theme);
        assert_eq!((canvas.cells[0].fg, canvas.cells[0].bg), (Some(Rgb(1, 2, 3)), Some(Rgb(0, 0, 255))));
        assert_eq!((canvas.cells[1].fg, canvas.cells[1].bold, canvas.cells[1].reverse), (Some(Rgb(255, 0, 0)), true, true));
        assert_eq!((canvas.cells[2].symbol.as_str(), canvas.cells[3].symbol.as_str(), canvas.cells[4].symbol.as_str()), ("漢", "", "x"));
        assert_eq!((canvas.cells[7].fg, canvas.background), (None, theme.ground()));
        assert!(svg(&canvas, "t").contains("<text x=\"30\" y=\"15\" text-anchor=\"middle\" fill=\"#2e333d\">漢</text>"));
    }
}
