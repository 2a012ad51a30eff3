//! A grid of characters -> SVG, so that pictures come from what the screen draws.
//!
//! Every word has its place and length in numbers, so that no font can shift a column; blocks and shades are drawn
//! as rectangles, so that they join.

use std::fmt::Write;

use crate::ramp::Rgb;

/// Size of a cell, in the units of the picture.
pub(super) const CELL: (usize, usize) = (10, 20);
/// Size of the font, at which the common monospaced fonts (0.602 of it a column) are as wide as a cell even where a viewer
/// does not know `textLength`; and how far the baseline is below the top of a cell.
pub(super) const FONT: (f64, usize) = (16.61, 15);
/// How much of its colour dim text keeps.
const DIM: f64 = 0.6;

/// One character cell.
#[allow(clippy::struct_excessive_bools, reason = "a terminal's modifiers are independent of each other")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glyph {
    /// one grapheme; empty for the second half of a wide one
    pub symbol: String,
    /// `None`: the canvas's own
    pub fg: Option<Rgb>,
    pub bg: Option<Rgb>,
    pub bold: bool,
    pub dim: bool,
    pub underline: bool,
    pub reverse: bool,
}

/// A screen as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canvas {
    /// columns
    pub width: usize,
    /// rows
    pub height: usize,
    /// row by row, `width * height` of them; missing ones are blank
    pub cells: Vec<Glyph>,
    pub background: Rgb,
    pub foreground: Rgb,
}

/// The colours and the weight of a run of text.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    fg: Rgb,
    bold: bool,
    underline: bool,
}

/// The canvas as an SVG document with a title for those who do not see it.
pub fn svg(canvas: &Canvas, title: &str) -> String {
    let (width, height) = (canvas.width * CELL.0, canvas.height * CELL.1);
    let title = escape(title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n\
         <g shape-rendering=\"crispEdges\">\n",
        hex(canvas.background)
    );
    for row in 0..canvas.height {
        grounds(canvas, row, &mut out);
        blocks(canvas, row, &mut out);
    }
    let _ = writeln!(
        out,
        "</g>\n<g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{}\" xml:space=\"preserve\">",
        FONT.0
    );
    for row in 0..canvas.height {
        texts(canvas, row, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

impl Canvas {
    pub(super) fn row(&self, row: usize) -> &[Glyph] {
        let start = (row * self.width).min(self.cells.len());
        &self.cells[start..(start + self.width).min(self.cells.len())]
    }

    /// Foreground and background as they come out.
    pub(super) fn colors(&self, glyph: &Glyph) -> (Rgb, Rgb) {
        let (mut fg, mut bg) = (glyph.fg.unwrap_or(self.foreground), glyph.bg.unwrap_or(self.background));
        if glyph.reverse {
            std::mem::swap(&mut fg, &mut bg);
        }
        (if glyph.dim { bg.blend(fg, DIM) } else { fg }, bg)
    }
}

/// Backgrounds of a row, one rectangle a run.
fn grounds(canvas: &Canvas, row: usize, out: &mut String) {
    let mut cells = canvas.row(row).iter().enumerate().peekable();
    while let Some((start, glyph)) = cells.next() {
        let (_, bg) = canvas.colors(glyph);
        let mut end = start + 1;
        while cells.next_if(|(_, next)| canvas.colors(next).1 == bg).is_some() {
            end += 1;
        }
        if bg != canvas.background {
            rect(out, (start * CELL.0, row * CELL.1), ((end - start) * CELL.0, CELL.1), bg, 1.0);
        }
    }
}

/// Blocks and shades of a row, runs of the same one in one rectangle.
fn blocks(canvas: &Canvas, row: usize, out: &mut String) {
    let mut cells = canvas.row(row).iter().enumerate().peekable();
    while let Some((start, glyph)) = cells.next() {
        let Some((x, y, w, h, alpha)) = block(&glyph.symbol) else { continue };
        let (fg, _) = canvas.colors(glyph);
        let mut end = start + 1;
        if w == 8 {
            while cells.next_if(|(_, next)| next.symbol == glyph.symbol && canvas.colors(next).0 == fg).is_some() {
                end += 1;
            }
        }
        let place = (start * CELL.0 + x * CELL.0 / 8, row * CELL.1 + y * CELL.1 / 8);
        let width = if w == 8 { (end - start) * CELL.0 } else { (x + w) * CELL.0 / 8 - x * CELL.0 / 8 };
        rect(out, place, (width, (y + h) * CELL.1 / 8 - y * CELL.1 / 8), fg, alpha);
    }
}

/// The part of a cell that a block element fills: x, y, width, height in eighths, and how much of its colour.
pub(super) fn block(symbol: &str) -> Option<(usize, usize, usize, usize, f64)> {
    let mut chars = symbol.chars();
    let symbol = chars.next().filter(|_| chars.next().is_none())?;
    Some(match symbol {
        '▀' => (0, 0, 8, 4, 1.0),
        '▁'..='█' => {
            let eighths = symbol as usize - '▁' as usize + 1;
            (0, 8 - eighths, 8, eighths, 1.0)
        }
        '▉'..='▏' => (0, 0, 8 - (symbol as usize - '█' as usize), 8, 1.0),
        '▐' => (4, 0, 4, 8, 1.0),
        '▕' => (7, 0, 1, 8, 1.0),
        '▔' => (0, 0, 8, 1, 1.0),
        '░' => (0, 0, 8, 8, 0.25),
        '▒' => (0, 0, 8, 8, 0.5),
        '▓' => (0, 0, 8, 8, 0.75),
        _ => return None,
    })
}

/// Text of a row: a word of equal looks is one element, so that a font of another width shifts nothing after it. What may be
/// wider or narrower than a letter, or come from another font, stands alone in the middle of its cell.
fn texts(canvas: &Canvas, row: usize, out: &mut String) {
    let look = |glyph: &Glyph| Look { fg: canvas.colors(glyph).0, bold: glyph.bold, underline: glyph.underline };
    let blank = |glyph: &Glyph| glyph.symbol.trim().is_empty() && !glyph.underline || block(&glyph.symbol).is_some();
    let line = |glyph: &Glyph| box_lines(&glyph.symbol).is_some();
    let cells = canvas.row(row);
    let mut start = 0;
    while start < cells.len() {
        let glyph = &cells[start];
        let mut end = start + 1;
        if let Some(path) = box_lines(&glyph.symbol) {
            box_drawing(out, (start * CELL.0, row * CELL.1), path, look(glyph));
        } else if !blank(glyph) {
            let plain = |glyph: &Glyph| glyph.symbol.is_ascii() && !glyph.symbol.is_empty();
            // The empty second half of a wide grapheme belongs to it.
            while cells.get(end).is_some_and(|next| next.symbol.is_empty()) {
                end += 1;
            }
            if plain(glyph) {
                // Only an underline goes on through spaces.
                let joins = |next: &Glyph| plain(next) && !line(next) && look(next) == look(glyph) && !blank(next);
                while cells.get(end).is_some_and(joins) {
                    end += 1;
                }
            }
            let text: String = cells[start..end].iter().map(|glyph| glyph.symbol.as_str()).collect();
            let text = if glyph.underline { text.as_str() } else { text.trim_end() };
            let y = row * CELL.1 + FONT.1;
            if plain(glyph) {
                element(out, (start * CELL.0, y), Fit::Length(text.len() * CELL.0), text, look(glyph));
            } else {
                element(out, ((start + end) * CELL.0 / 2, y), Fit::Centred, text, look(glyph));
            }
        }
        start = end;
    }
}

/// How a text is kept where it belongs.
#[derive(Clone, Copy)]
enum Fit {
    /// from its place on, as long as this
    Length(usize),
    /// its place is its middle
    Centred,
}

fn element(out: &mut String, (x, y): (usize, usize), fit: Fit, text: &str, look: Look) {
    let fit = match fit {
        Fit::Length(length) => format!("textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\""),
        Fit::Centred => "text-anchor=\"middle\"".to_owned(),
    };
    let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
    let underline = if look.underline { " text-decoration=\"underline\"" } else { "" };
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" {fit} fill=\"{}\"{bold}{underline}>{}</text>", hex(look.fg), escape(text));
}

/// Which ways the lines of a box-drawing character go from the middle: left, right, up, down; and if they are dashed or heavy.
pub(super) fn box_lines(symbol: &str) -> Option<([bool; 4], &'static str)> {
    let mut chars = symbol.chars();
    let symbol = chars.next().filter(|_| chars.next().is_none())?;
    let ways = |ways: &str| ['l', 'r', 'u', 'd'].map(|way| ways.contains(way));
    Some(match symbol {
        '─' => (ways("lr"), ""),
        '━' => (ways("lr"), " stroke-width=\"3\""),
        '│' => (ways("ud"), ""),
        '┈' | '┄' | '╌' => (ways("lr"), " stroke-dasharray=\"2 3\""),
        '┊' | '┆' | '╎' => (ways("ud"), " stroke-dasharray=\"3 3\""),
        '╭' | '┌' => (ways("rd"), ""),
        '╮' | '┐' => (ways("ld"), ""),
        '╰' | '└' => (ways("ru"), ""),
        '╯' | '┘' => (ways("lu"), ""),
        '├' => (ways("rud"), ""),
        '┤' => (ways("lud"), ""),
        '┬' => (ways("lrd"), ""),
        '┴' => (ways("lru"), ""),
        '┼' => (ways("lrud"), ""),
        '╷' => (ways("d"), ""),
        '╵' => (ways("u"), ""),
        _ => return None,
    })
}

/// Half a unit is added everywhere, so that a line one unit thick fills whole units.
fn box_drawing(out: &mut String, (x, y): (usize, usize), ([left, right, up, down], style): ([bool; 4], &str), look: Look) {
    let (middle_x, middle_y) = (x + CELL.0 / 2, y + CELL.1 / 2);
    let ends = [(left, x, middle_y), (right, x + CELL.0, middle_y), (up, middle_x, y), (down, middle_x, y + CELL.1)];
    let ends: Vec<(usize, usize)> = ends.into_iter().filter(|end| end.0).map(|(_, x, y)| (x, y)).collect();
    let mut path = String::new();
    match ends[..] {
        // A corner is round, a straight line one stroke.
        [from, to] => {
            let _ = write!(path, "M{}.5 {}.5Q{middle_x}.5 {middle_y}.5 {}.5 {}.5", from.0, from.1, to.0, to.1);
        }
        _ => ends.iter().for_each(|end| {
            let _ = write!(path, "M{middle_x}.5 {middle_y}.5L{}.5 {}.5", end.0, end.1);
        }),
    }
    let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{}\"{style}/>", hex(look.fg));
}

fn rect(out: &mut String, (x, y): (usize, usize), (width, height): (usize, usize), fill: Rgb, alpha: f64) {
    let opacity = if alpha < 1.0 { format!(" fill-opacity=\"{alpha}\"") } else { String::new() };
    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"{opacity}/>", hex(fill));
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Text as XML may hold it: markup escaped, characters that XML forbids dropped.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas(width: usize, rows: &[&str]) -> Canvas {
        let glyph = |c: char| Glyph { symbol: c.to_string(), ..Glyph::default() };
        let cells = rows.iter().flat_map(|row| row.chars().map(glyph)).collect();
        Canvas { width, height: rows.len(), cells, background: Rgb(0, 0, 0), foreground: Rgb(255, 255, 255) }
    }

    fn lines<'a>(svg: &'a str, tag: &str) -> Vec<&'a str> {
        svg.lines().filter(|line| line.starts_with(tag)).collect()
    }

    #[test]
    fn markup_is_escaped_and_control_characters_are_dropped() {
        let svg = svg(&canvas(6, &["<a>&\"b"]), "x\u{1b}[31m & <y>");
        assert!(svg.contains(">&lt;a&gt;&amp;&quot;b</text>"), "{svg}");
        assert!(svg.contains("<title>x[31m &amp; &lt;y&gt;</title>"));
    }

    #[test]
    fn a_run_has_its_place_and_length() {
        let mut canvas = canvas(8, &["ab cd  e"]);
        canvas.cells[7].bold = true;
        let svg = svg(&canvas, "");
        let texts = lines(&svg, "<text");
        assert_eq!(texts.len(), 3, "{svg}");
        assert!(texts[0].contains("x=\"0\" y=\"15\" textLength=\"20\"") && texts[0].ends_with(">ab</text>"), "{}", texts[0]);
        assert!(texts[1].contains("x=\"30\"") && texts[1].ends_with(">cd</text>"), "{}", texts[1]);
        assert!(texts[2].contains("x=\"70\"") && texts[2].contains("font-weight=\"bold\""));
    }

    #[test]
    fn what_is_no_letter_stands_in_the_middle_of_its_cell() {
        let svg = svg(&canvas(10, &["4.0 × 3→1 "]), "");
        let texts = lines(&svg, "<text");
        let told: Vec<(&str, &str)> = texts
            .iter()
            .map(|line| {
                let after = |tag: &str| line.split_once(tag).unwrap().1;
                (after("x=\"").split_once('"').unwrap().0, after(">").split_once('<').unwrap().0)
            })
            .collect();
        assert_eq!(told, [("0", "4.0"), ("45", "×"), ("60", "3"), ("75", "→"), ("80", "1")], "{svg}");
        assert_eq!(svg.matches("text-anchor=\"middle\"").count(), 2);
    }

    #[test]
    fn half_blocks_are_rectangles_of_two_colours() {
        let mut canvas = canvas(2, &["▀▀"]);
        for cell in &mut canvas.cells {
            (cell.fg, cell.bg) = (Some(Rgb(255, 0, 0)), Some(Rgb(0, 0, 255)));
        }
        let svg = svg(&canvas, "");
        assert!(lines(&svg, "<text").is_empty());
        assert!(svg.contains("<rect x=\"0\" y=\"0\" width=\"20\" height=\"20\" fill=\"#0000ff\"/>"), "{svg}");
        assert!(svg.contains("<rect x=\"0\" y=\"0\" width=\"20\" height=\"10\" fill=\"#ff0000\"/>"), "{svg}");
    }

    #[test]
    fn blocks_fill_their_part_of_a_cell() {
        for (symbol, part) in [
            ("▄", (0, 4, 8, 4, 1.0)),
            ("█", (0, 0, 8, 8, 1.0)),
            ("▁", (0, 7, 8, 1, 1.0)),
            ("▌", (0, 0, 4, 8, 1.0)),
            ("▏", (0, 0, 1, 8, 1.0)),
            ("▒", (0, 0, 8, 8, 0.5)),
        ] {
            assert_eq!(block(symbol), Some(part), "{symbol}");
        }
        assert_eq!(block("a"), None);
    }

    #[test]
    fn lines_join_and_reverse_and_dim_are_colours() {
        let mut canvas = canvas(2, &["╭─", "│x"]);
        canvas.cells[3].reverse = true;
        canvas.cells[0].dim = true;
        let svg = svg(&canvas, "");
        assert!(svg.contains("M10.5 10.5Q5.5 10.5 5.5 20.5\" fill=\"none\" stroke=\"#999999\""), "{svg}");
        assert!(svg.contains("M10.5 10.5Q15.5 10.5 20.5 10.5"));
        assert!(svg.contains("<rect x=\"10\" y=\"20\" width=\"10\" height=\"20\" fill=\"#ffffff\"/>"));
        assert!(lines(&svg, "<text")[0].contains("fill=\"#000000\""));
    }

    #[test]
    fn too_few_cells_are_blank() {
        let mut canvas = canvas(3, &["abc", "def"]);
        canvas.cells.truncate(4);
        assert_eq!(lines(&svg(&canvas, ""), "<text").len(), 2);
    }
}
