//! Dots, eight a character cell, in braille.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Bits of a braille character by column and row of its dots.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// The dot of a value on a logarithmic axis of so many.
pub fn place(value: f64, (low, high): (f64, f64), dots: usize) -> usize {
    let span = (high / low).ln();
    let share = if span > 0.0 { (value / low).ln() / span } else { 0.5 };
    ((share * (dots - 1) as f64).round().max(0.0) as usize).min(dots - 1)
}

/// Dots, eight a cell.
pub struct Dots {
    plot: Rect,
    bits: Vec<u32>,
}

impl Dots {
    /// None set yet.
    pub fn new(plot: Rect) -> Self {
        Self { plot, bits: vec![0; usize::from(plot.width) * usize::from(plot.height)] }
    }

    /// Set one, from the left and from the top; nothing outside.
    pub fn set(&mut self, (x, y): (usize, usize)) {
        if let Some(bits) = self.bits.get_mut(y / 4 * usize::from(self.plot.width) + x / 2) {
            *bits |= DOTS[x % 2][y % 4];
        }
    }

    /// Set all between two.
    pub fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, at: usize| {
            let share = at as f64 / steps as f64;
            (a as f64 + (b as f64 - a as f64) * share).round() as usize
        };
        for at in 0..=steps {
            self.set((between(from.0, to.0, at), between(from.1, to.1, at)));
        }
    }

    /// Put the dots on the screen; a cell shared with `below` shows both.
    pub fn draw(&self, below: Option<&Self>, style: Style, buffer: &mut Buffer) {
        for (at, &bits) in self.bits.iter().enumerate().filter(|&(_, &bits)| bits != 0) {
            let (x, y) = ((at % usize::from(self.plot.width)) as u16, (at / usize::from(self.plot.width)) as u16);
            let all = bits | below.map_or(0, |below| below.bits[at]);
            if let (Some(cell), Some(braille)) = (buffer.cell_mut((self.plot.x + x, self.plot.y + y)), char::from_u32(0x2800 + all)) {
                cell.set_char(braille).set_style(style);
            }
        }
    }
}
