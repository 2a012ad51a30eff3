//! A matrix as a picture: digits in coloured cells where ranks are few, half-blocks where they are many, the worst of a block
//! where they are too many for that. Needs no screen.

use crate::diagnose::{Changes, Measured, PairSeen};
use crate::export::svg::{Canvas, Glyph};
use crate::matrix::{Block, Grid, Metric, Value};
use crate::ramp::{Level, Map, Ramp, Rgb, State, state_rgb, text_on};
use crate::sample::Status;

/// Ranks up to which a cell has digits.
const DIGITS: usize = 24;
/// Blocks along an edge at most.
const BLOCKS: usize = 128;
/// Columns of a cell with digits, and of a row's name.
const CELL: usize = 6;
const NAME: usize = 5;
/// Columns of the legend's colours.
const LEGEND: usize = 24;
const GROUND: Rgb = Rgb(255, 255, 255);
const INK: Rgb = Rgb(34, 34, 34);
const QUIET: Rgb = Rgb(110, 110, 110);

/// One table with what it takes to draw it.
#[derive(Debug, Clone)]
pub struct Picture {
    pub title: String,
    pub grid: Grid,
    /// ln of a ratio is told as the ratio
    pub ratio: bool,
    /// cells whose digits are bold
    bold: Vec<(usize, usize)>,
}

fn value(pair: Option<&PairSeen>, number: impl Fn(&PairSeen) -> f64) -> Value {
    let Some(pair) = pair else { return Value::Missing };
    let number = number(pair);
    match pair.status {
        _ if number.is_finite() => Value::Known(number),
        Status::Timeout => Value::Timeout,
        Status::Corrupt => Value::Corrupt,
        Status::Waived => Value::Waived,
        Status::Ok => Value::Missing,
    }
}

/// Bandwidth, share of what the hardware should give where it tells, asymmetry: those that have a value.
pub fn pictures(measured: &Measured) -> Vec<Picture> {
    let world = measured.world();
    let of = |metric: Metric, from: usize, to: usize| {
        let pair = measured.peer.get(from, to);
        match metric {
            Metric::ShareOfExpected => value(pair, |pair| pair.rate / pair.expected),
            Metric::Asymmetry => Value::asymmetry(value(pair, |pair| pair.rate), value(measured.peer.get(to, from), |pair| pair.rate)),
            _ => value(pair, |pair| pair.rate),
        }
    };
    let all = [Metric::Bandwidth, Metric::ShareOfExpected, Metric::Asymmetry];
    let grids =
        all.into_iter().map(|metric| Grid::build(metric, world, |from, to| if from == to { Value::Missing } else { of(metric, from, to) }));
    let shown = grids.filter_map(|grid| {
        let domain = grid.domain()?;
        let words = match grid.metric() {
            Metric::ShareOfExpected => "share of what the hardware should give".to_owned(),
            metric => metric.title(domain.hi),
        };
        let size = crate::units::format_size(measured.bytes);
        Some(Picture { title: format!("{words} · {size} · row sends"), grid, ratio: false, bold: Vec::new() })
    });
    shown.collect()
}

/// Bandwidth after over before.
pub fn changed(changes: &Changes) -> Picture {
    let world = changes.world();
    let ratio = |from, to| changes.ratio(from, to).map_or(Value::Missing, |ratio| Value::Known(ratio.ln()));
    let pairs = (0..world.min(DIGITS)).flat_map(|from| (0..world.min(DIGITS)).map(move |to| (from, to)));
    Picture {
        title: "bandwidth, after / before · row sends · bold: beyond noise".to_owned(),
        grid: Grid::build(Metric::Asymmetry, world, ratio),
        ratio: true,
        bold: pairs.filter(|&(from, to)| changes.beyond(from, to)).collect(),
    }
}

impl Picture {
    /// A value as it is told.
    pub fn text(&self, value: f64) -> String {
        if self.ratio {
            return format!("{:.2}", value.exp());
        }
        let metric = self.grid.metric();
        let hi = self.grid.domain().map_or(f64::NAN, |domain| domain.hi);
        metric.format(value, metric.unit(hi))
    }

    /// The colour of a block; `None` where there is nothing.
    fn color(&self, block: Block) -> Option<Rgb> {
        let map = if self.grid.metric() == Metric::Asymmetry { Map::Diverging } else { Map::Sequential };
        let state = |state| Some(state_rgb(state, false));
        if block.count > 0 {
            return Ramp::new(map, Level::TrueColor).shade(self.grid.domain()?.position(block.worst)).rgb();
        }
        match block {
            Block { corrupt: 1.., .. } => state(State::Corrupt),
            Block { timeout: 1.., .. } => state(State::Timeout),
            Block { waived: 1.., .. } => state(State::Waived),
            Block { missing: 1.., .. } => state(State::Missing),
            _ => None,
        }
    }

    /// The picture as a grid of characters.
    pub fn canvas(&self) -> Canvas {
        let world = self.grid.world();
        if world <= DIGITS { self.digits() } else { self.blocks() }
    }

    fn digits(&self) -> Canvas {
        let world = self.grid.world();
        let mut sheet = Sheet::new((NAME + world * CELL).max(self.title.chars().count() + 1).max(LEGEND + 20), world + 4);
        sheet.put(0, 0, &self.title, Some(QUIET), None, false);
        for to in 0..world {
            sheet.right(1, NAME + to * CELL, CELL - 1, &to.to_string(), Some(QUIET), None, false);
        }
        for from in 0..world {
            sheet.right(2 + from, 0, NAME - 1, &from.to_string(), Some(QUIET), None, false);
            for to in (0..world).filter(|&to| to != from) {
                let block = self.grid.block(0, from, to);
                let Some(ground) = self.color(block) else { continue };
                let text = match self.grid.get(from, to) {
                    Value::Known(value) => self.text(value),
                    Value::Missing => State::Missing.glyph().to_string(),
                    Value::Waived => State::Waived.glyph().to_string(),
                    Value::Timeout => State::Timeout.glyph().to_string(),
                    Value::Corrupt => State::Corrupt.glyph().to_string(),
                };
                sheet.fill(2 + from, NAME + to * CELL, CELL, ground);
                let bold = self.bold.contains(&(from, to));
                sheet.right(2 + from, NAME + to * CELL, CELL - 1, &text, Some(text_on(ground)), Some(ground), bold);
            }
        }
        self.legend(&mut sheet, world + 3);
        sheet.canvas
    }

    fn blocks(&self) -> Canvas {
        let level = (0..self.grid.levels()).find(|&level| self.grid.side(level) <= BLOCKS).unwrap_or(0);
        let side = self.grid.side(level);
        let rows = side.div_ceil(2);
        let mut sheet = Sheet::new(side.max(self.title.chars().count() + 1).max(LEGEND + 40), rows + 4);
        sheet.put(0, 0, &self.title, Some(QUIET), None, false);
        for row in 0..rows {
            for column in 0..side {
                let color = |row| self.color(self.grid.block(level, row, column)).unwrap_or(GROUND);
                sheet.put(1 + row, column, "▀", Some(color(row * 2)), Some(color(row * 2 + 1)), false);
            }
        }
        let world = self.grid.world();
        let each = if level == 0 { "one pair".to_owned() } else { format!("the worst of {0} × {0} pairs", 1_usize << level) };
        sheet.put(1 + rows, 0, &format!("ranks 0–{} · a square is {each}", world - 1), Some(QUIET), None, false);
        self.legend(&mut sheet, rows + 3);
        sheet.canvas
    }

    fn legend(&self, sheet: &mut Sheet, row: usize) {
        let Some(domain) = self.grid.domain() else { return };
        let map = if self.grid.metric() == Metric::Asymmetry { Map::Diverging } else { Map::Sequential };
        let (low, high) = (self.text(domain.lo), self.text(domain.hi));
        let mut at = NAME;
        sheet.put(row, at, &low, Some(QUIET), None, false);
        at += low.chars().count() + 1;
        for shade in Ramp::new(map, Level::TrueColor).legend(LEGEND) {
            sheet.put(row, at, "█", shade.rgb(), None, false);
            at += 1;
        }
        sheet.put(row, at + 1, &high, Some(QUIET), None, false);
    }
}

/// A canvas to write on.
struct Sheet {
    canvas: Canvas,
}

impl Sheet {
    fn new(width: usize, height: usize) -> Self {
        let blank = Glyph { symbol: " ".to_owned(), ..Glyph::default() };
        Self { canvas: Canvas { width, height, cells: vec![blank; width * height], background: GROUND, foreground: INK } }
    }

    fn put(&mut self, row: usize, column: usize, text: &str, fg: Option<Rgb>, bg: Option<Rgb>, bold: bool) {
        let width = self.canvas.width;
        for (at, letter) in (column..width).zip(text.chars()) {
            if let Some(glyph) = self.canvas.cells.get_mut(row * width + at) {
                *glyph = Glyph { symbol: letter.to_string(), fg, bg, bold, ..Glyph::default() };
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a place and a look")]
    fn right(&mut self, row: usize, column: usize, room: usize, text: &str, fg: Option<Rgb>, bg: Option<Rgb>, bold: bool) {
        self.put(row, column + room.saturating_sub(text.chars().count()), text, fg, bg, bold);
    }

    fn fill(&mut self, row: usize, column: usize, room: usize, ground: Rgb) {
        self.put(row, column, &" ".repeat(room), None, Some(ground), false);
    }
}
