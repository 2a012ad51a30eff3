//! A grid of characters -> pixels, as PNG: the same picture as [`super::svg`] makes, for what takes no SVG.
//!
//! Blocks, lines and braille are drawn as shapes, so that they join; letters come from the font in this folder, of which each
//! character stands in the middle of its cell.

use std::io::Write;

use ab_glyph::{Font, FontRef, Glyph as Letter, PxScale, point};

use super::svg::{CELL, Canvas, FONT, Glyph, block, box_lines};
use crate::ramp::Rgb;

/// Parts of `DejaVu Sans Mono`; see `font/LICENSE`.
const MONO: &[u8] = include_bytes!("font/mono.ttf");
const MONO_BOLD: &[u8] = include_bytes!("font/mono-bold.ttf");
/// Pixels of a unit: two, so that small letters are sharp, or one where the picture would be too large for that.
const SCALE: usize = 2;
/// Pixels beyond which it is too large.
const MOST: usize = 32 << 20;

/// A picture, red, green and blue of each pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// pixels of a row
    pub width: usize,
    pub height: usize,
    /// `3 * width * height` of them
    pub bytes: Vec<u8>,
    /// pixels of a unit
    scale: usize,
}

/// The canvas as a PNG file.
pub fn png(canvas: &Canvas) -> std::io::Result<Vec<u8>> {
    let pixels = pixels(canvas);
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, pixels.width as u32, pixels.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.bytes)?;
    writer.finish()?;
    out.flush()?;
    Ok(out)
}

/// The canvas in pixels.
pub fn pixels(canvas: &Canvas) -> Pixels {
    let units = (canvas.width.max(1) * CELL.0, canvas.height.max(1) * CELL.1);
    let scale = if units.0 * units.1 * SCALE * SCALE > MOST { 1 } else { SCALE };
    let (width, height) = (units.0 * scale, units.1 * scale);
    let Rgb(r, g, b) = canvas.background;
    let mut pixels = Pixels { width, height, bytes: [r, g, b].repeat(width * height), scale };
    let fonts = [MONO, MONO_BOLD].map(|bytes| FontRef::try_from_slice(bytes).ok());
    for row in 0..canvas.height {
        for (column, glyph) in canvas.row(row).iter().enumerate() {
            pixels.ground(canvas, (column, row), glyph);
        }
        for (column, glyph) in canvas.row(row).iter().enumerate() {
            pixels.glyph(canvas, (column, row), glyph, &fonts);
        }
    }
    pixels
}

impl Pixels {
    /// One pixel.
    pub fn at(&self, x: usize, y: usize) -> Rgb {
        let at = 3 * (y * self.width + x);
        self.bytes.get(at..at + 3).map_or(Rgb(0, 0, 0), |own| Rgb(own[0], own[1], own[2]))
    }

    /// Lay `share` of a colour over a pixel; outside the picture nothing happens.
    fn lay(&mut self, (x, y): (usize, usize), color: Rgb, share: f64) {
        if share <= 0.0 || x >= self.width || y >= self.height {
            return;
        }
        let Rgb(red, green, blue) = self.at(x, y).blend(color, share.min(1.0));
        let at = 3 * (y * self.width + x);
        self.bytes[at..at + 3].copy_from_slice(&[red, green, blue]);
    }

    /// A rectangle in units.
    fn rect(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), color: Rgb, share: f64) {
        let scale = self.scale;
        for row in y * scale..(y + height) * scale {
            for column in x * scale..(x + width) * scale {
                self.lay((column, row), color, share);
            }
        }
    }

    fn ground(&mut self, canvas: &Canvas, (column, row): (usize, usize), glyph: &Glyph) {
        let (_, bg) = canvas.colors(glyph);
        if bg != canvas.background {
            self.rect((column * CELL.0, row * CELL.1), CELL, bg, 1.0);
        }
    }

    fn glyph(&mut self, canvas: &Canvas, (column, row): (usize, usize), glyph: &Glyph, fonts: &[Option<FontRef<'_>>; 2]) {
        let (fg, _) = canvas.colors(glyph);
        let (x, y) = (column * CELL.0, row * CELL.1);
        if glyph.underline {
            self.rect((x, y + FONT.1 + 2), (CELL.0, 1), fg, 1.0);
        }
        let mut letters = glyph.symbol.chars();
        let Some(letter) = letters.next().filter(|letter| !letter.is_whitespace()) else { return };
        if let Some((left, top, wide, high, share)) = block(&glyph.symbol) {
            // Ends as the SVG rounds them, so that neighbours join.
            let from = (x + left * CELL.0 / 8, y + top * CELL.1 / 8);
            let to = (x + (left + wide) * CELL.0 / 8, y + (top + high) * CELL.1 / 8);
            self.rect(from, (to.0 - from.0, to.1 - from.1), fg, share);
        } else if let Some((ways, style)) = box_lines(&glyph.symbol) {
            self.lines((x, y), ways, style, fg);
        } else if let dots @ 1..=0xff = (letter as u32).wrapping_sub(0x2800) {
            self.braille((x, y), dots, fg);
        } else if letter != '\u{2800}' {
            // The empty second half of a wide character belongs to it.
            let next = canvas.row(row).get(column + 1);
            let wide = next.is_some_and(|next| next.symbol.is_empty());
            let font = if glyph.bold { &fonts[1] } else { &fonts[0] };
            if let Some(font) = font {
                self.letter((x, y), if wide { 2 } else { 1 }, letter, font, fg);
            }
        }
    }

    /// A character in the middle of its cell, or of two.
    fn letter(&mut self, (x, y): (usize, usize), cells: usize, letter: char, font: &FontRef<'_>, color: Rgb) {
        let scale = self.scale as f32;
        let em = font.units_per_em().unwrap_or(2048.0);
        let size = FONT.0 as f32 * scale * font.height_unscaled() / em;
        let id = font.glyph_id(letter);
        let advance = font.h_advance_unscaled(id) / em * FONT.0 as f32 * scale;
        let left = x as f32 * scale + ((cells * CELL.0) as f32 * scale - advance) / 2.0;
        let baseline = ((y + FONT.1) * self.scale) as f32;
        let placed = Letter { id, scale: PxScale::from(size), position: point(left, baseline) };
        let Some(outline) = font.outline_glyph(placed) else { return };
        let bounds = outline.px_bounds();
        outline.draw(|column, row, share| {
            let (across, down) = (bounds.min.x + column as f32, bounds.min.y + row as f32);
            if across >= 0.0 && down >= 0.0 {
                self.lay((across as usize, down as usize), color, f64::from(share));
            }
        });
    }

    /// Lines of a box from the middle of a cell: corners round, as the SVG has them.
    fn lines(&mut self, (x, y): (usize, usize), ways: [bool; 4], style: &str, color: Rgb) {
        let (wide, high) = (CELL.0 as f64, CELL.1 as f64);
        let (middle_x, middle_y) = (wide / 2.0 + 0.5, high / 2.0 + 0.5);
        let ends = [(0.0, middle_y), (wide, middle_y), (middle_x, 0.0), (middle_x, high)];
        let ends: Vec<(f64, f64)> = ends.into_iter().zip(ways).filter(|(_, has)| *has).map(|(end, _)| end).collect();
        let middle = (middle_x, middle_y);
        let mut path: Vec<[(f64, f64); 2]> = Vec::new();
        match ends[..] {
            [from, to] if (ways[0] || ways[1]) && (ways[2] || ways[3]) => {
                let along = |t: f64| {
                    let of = |a: f64, b: f64, c: f64| (1.0 - t).powi(2) * a + 2.0 * t * (1.0 - t) * b + t * t * c;
                    (of(from.0, middle.0, to.0), of(from.1, middle.1, to.1))
                };
                path.extend((0..8).map(|step| [along(f64::from(step) / 8.0), along(f64::from(step + 1) / 8.0)]));
            }
            [from, to] => path.push([from, to]),
            _ => path.extend(ends.iter().map(|&end| [middle, end])),
        }
        let half = if style.contains("stroke-width") { 1.5 } else { 0.5 };
        let (dashed, across) = (style.contains("dasharray"), ways[0] || ways[1]);
        let scale = self.scale as f64;
        for row in 0..CELL.1 * self.scale {
            for column in 0..CELL.0 * self.scale {
                let at = ((column as f64 + 0.5) / scale, (row as f64 + 0.5) / scale);
                let far = path.iter().map(|&[from, to]| distance(at, from, to)).fold(f64::INFINITY, f64::min);
                // 2 of 5 across and 3 of 6 down, as the SVG's dashes.
                let gap = dashed && if across { at.0 % 5.0 >= 2.0 } else { at.1 % 6.0 >= 3.0 };
                if !gap {
                    self.lay((x * self.scale + column, y * self.scale + row), color, (half - far) * scale + 0.5);
                }
            }
        }
    }

    /// The dots of a braille character, two across and four down.
    fn braille(&mut self, (x, y): (usize, usize), dots: u32, color: Rgb) {
        // Bits as Unicode numbers them: down the left, down the right, then the last row.
        const PLACES: [(f64, f64); 8] = [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
        const RADIUS: f64 = 1.5;
        let scale = self.scale as f64;
        for (across, down) in PLACES.iter().enumerate().filter(|(bit, _)| dots >> bit & 1 == 1).map(|(_, place)| place) {
            let middle = (across.mul_add(5.0, 2.5), down.mul_add(5.0, 2.5));
            for row in 0..CELL.1 * self.scale {
                for column in 0..CELL.0 * self.scale {
                    let far = ((column as f64 + 0.5) / scale - middle.0).hypot((row as f64 + 0.5) / scale - middle.1);
                    self.lay((x * self.scale + column, y * self.scale + row), color, (RADIUS - far) * scale + 0.5);
                }
            }
        }
    }
}

/// Of a point from a straight line between two others.
fn distance(at: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx * dx + dy * dy;
    let share = if length > 0.0 { (((at.0 - from.0) * dx + (at.1 - from.1) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    (at.0 - share.mul_add(dx, from.0)).hypot(at.1 - share.mul_add(dy, from.1))
}

#[cfg(test)]
mod tests;
