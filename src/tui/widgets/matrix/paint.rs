use ratatui::style::{Color, Modifier, Style};

use super::MatrixView;
use crate::matrix::{Domain, Grid, Metric, Unit, Value};
use crate::ramp::{Level, Map, Paint, Ramp, Rgb, Shade, State, nearest_index, text_on, xterm};
use crate::tui::theme::{Theme, rgb_of, sixteen};

/// Share of the accent in a selected pixel.
const SELECTED: f64 = 0.45;

/// Share of the mark's colour in a marked pixel.
const LIT: f64 = 0.6;

/// Values -> looks, for one frame.
pub(super) struct Painter<'a> {
    pub theme: &'a Theme,
    /// name of the pattern whose cells these are
    pub pattern: &'static str,
    pub metric: Metric,
    pub domain: Option<Domain>,
    pub unit: Unit,
    pub ramp: Ramp,
    level: Level,
    dark: bool,
    /// colour of the cursor
    pub accent: Paint,
}

impl<'a> Painter<'a> {
    pub(super) fn new(view: &MatrixView<'a>) -> Self {
        let (theme, metric) = (view.theme, view.grid.metric());
        let domain = view.grid.domain();
        // Of rates the very largest, not a percentile: what is told in words has the same unit.
        let largest = if metric == Metric::Bandwidth { view.grid.all().max } else { domain.map_or(f64::NAN, |domain| domain.hi) };
        let map = if metric.has_sides() { Map::Diverging } else { Map::Sequential };
        let level = theme.level();
        let accent = match theme.style("ui.border.focus").fg {
            Some(color) if level >= Level::Ansi256 => rgb_of(color).map_or(Paint::Plain, |rgb| exact(rgb, level)),
            _ => Paint::Plain,
        };
        let pattern = view.pattern.name();
        Self { theme, pattern, metric, domain, unit: metric.unit(largest), ramp: Ramp::new(map, level), level, dark: theme.dark(), accent }
    }

    /// True if a cell's ground carries its value.
    pub(super) fn fills(&self) -> bool {
        self.ramp.fills()
    }

    /// The heading, with the unit.
    pub(super) fn title(&self) -> String {
        match self.metric {
            Metric::ShareOfExpected | Metric::Asymmetry | Metric::DuplexRatio | Metric::Spread | Metric::Change => {
                self.metric.title(f64::NAN)
            }
            metric => format!("{}, {}", metric.name(), self.unit.name),
        }
    }

    /// The pattern, unless the metric says it.
    pub(super) fn told_pattern(&self) -> Option<&'static str> {
        (self.metric != Metric::DuplexRatio).then_some(self.pattern)
    }

    /// True if the low end of the scale is the good one.
    pub(super) fn less_is_better(&self) -> bool {
        matches!(self.metric, Metric::SmallTime | Metric::Spread)
    }

    pub(super) fn shade(&self, value: f64) -> Shade {
        let position = self.domain.map_or(0.0, |domain| domain.position(value));
        // Dark is bad in every map: a long time as much as a low bandwidth.
        self.ramp.shade(if self.less_is_better() { 1.0 - position } else { position })
    }

    /// A value's digits in at most `width` columns; `…` if two significant digits do not fit.
    pub(super) fn number(&self, value: f64, width: usize) -> String {
        let full = self.metric.format(value, self.unit);
        if full.chars().count() <= width {
            return full;
        }
        if self.metric == Metric::Change {
            let whole = format!("{:+.0}", value.exp_m1() * 100.0);
            return if whole.len() <= width { whole } else { "…".to_owned() };
        }
        let scaled = value / self.unit.scale;
        let sign = if self.metric == Metric::Asymmetry { "+" } else { "" };
        for decimals in (0..4).rev() {
            let text = if sign.is_empty() { format!("{scaled:.decimals$}") } else { format!("{scaled:+.decimals$}") };
            let significant = text.trim_start_matches(['+', '-', '0', '.']).chars().filter(char::is_ascii_digit).count();
            if text.len() <= width && (significant >= 2 || decimals == 0 && scaled.abs() >= 0.95) {
                return text;
            }
        }
        "…".to_owned()
    }

    /// Columns that the numbers of this matrix need at least.
    pub(super) fn least_width(&self) -> u16 {
        let Some(domain) = self.domain else { return 4 };
        let fits = |width: usize| [domain.lo, domain.hi].into_iter().all(|value| self.number(value, width) != "…");
        (3..=6).find(|&width| fits(width)).unwrap_or(6) as u16
    }

    /// Columns that show every number of a small matrix, its diagonal included, in full.
    pub(super) fn full_width(&self, grid: &Grid) -> u16 {
        let all = grid.all();
        let diagonal = (0..grid.world()).filter_map(|rank| grid.get(rank, rank).known());
        let ends = [all.min, all.max, -all.worst].into_iter().filter(|value| self.metric.accepts(*value));
        let widths = ends.chain(diagonal).map(|value| self.metric.format(value, self.unit).chars().count());
        widths.max().unwrap_or(1).clamp(3, 6) as u16
    }

    /// A value or a state as a pixel: its ground where colours are many, else its glyph. `None` is the diagonal.
    pub(super) fn pixel(&self, shown: Option<Value>) -> Look {
        let ink = |paint: Paint| if paint == Paint::Plain { Style::default() } else { Style::default().fg(color(paint)) };
        match shown {
            Some(Value::Known(value)) => {
                let shade = self.shade(value);
                Look { paint: shade.paint, glyph: shade.glyph.map(|glyph| (glyph, ink(shade.paint))) }
            }
            Some(state) => {
                let state = state_of(state);
                let glyph = (!self.fills()).then(|| (state.glyph(), self.state_style(state)));
                Look { paint: state.paint(self.level, self.dark), glyph }
            }
            None if self.fills() => Look { paint: exact(self.theme.ground().blend(self.theme.text(), 0.08), self.level), glyph: None },
            None => Look { paint: Paint::Plain, glyph: Some(('╲', self.theme.style("state.missing"))) },
        }
    }

    /// The ground of a pixel, some of it taken away.
    pub(super) fn faded(&self, look: Look, ground: Rgb, share: f64) -> Color {
        color(rgb_of_paint(look.paint).map_or(look.paint, |rgb| exact(rgb.blend(ground, share), self.level)))
    }

    /// A pixel inside a selection.
    pub(super) fn selected(&self, look: Look) -> Look {
        match (rgb_of_paint(look.paint), rgb_of_paint(self.accent)) {
            (Some(rgb), Some(accent)) if self.fills() => Look { paint: exact(rgb.blend(accent, SELECTED), self.level), ..look },
            _ => look,
        }
    }

    /// A marked pixel: the colour of marks shines through, or its glyph stands on a line.
    pub(super) fn lit(&self, look: Look) -> Look {
        let style = self.theme.style("finding.lit");
        match (rgb_of_paint(look.paint), style.fg.and_then(rgb_of)) {
            (Some(rgb), Some(mark)) if self.fills() => Look { paint: exact(rgb.blend(mark, LIT), self.level), ..look },
            _ => Look { glyph: look.glyph.map(|(glyph, _)| (glyph, style.add_modifier(Modifier::UNDERLINED | Modifier::BOLD))), ..look },
        }
    }

    /// Text and its style for a cell with digits.
    pub(super) fn cell(&self, value: Value, diagonal: bool, width: usize) -> (String, Style) {
        let dim = self.theme.style("ui.text.dim");
        match value {
            // A copy inside a rank is no transfer: told, but outside the colours.
            Value::Known(value) if diagonal => (self.number(value, width), dim),
            Value::Known(value) => {
                let text = self.number(value, width);
                let style = match self.shade(value).rgb().filter(|_| self.fills()) {
                    Some(ground) => self.on(ground),
                    None => self.theme.style("ui.text"),
                };
                (text, style)
            }
            state => {
                let state = state_of(state);
                (state.glyph().to_string(), self.state_style(state))
            }
        }
    }

    /// How a state's glyph stands out, in a cell and in the legend.
    pub(super) fn state_style(&self, state: State) -> Style {
        let paint = state.paint(self.level, self.dark);
        let failed = matches!(state, State::Timeout | State::Corrupt);
        let style = match rgb_of_paint(paint) {
            Some(ground) if self.fills() => self.on(ground),
            _ if !failed => return self.theme.style("state.missing"),
            Some(_) => Style::default().fg(color(paint)),
            None => Style::default().add_modifier(Modifier::REVERSED),
        };
        if failed { style.add_modifier(Modifier::BOLD) } else { style }
    }

    /// Text that reads on a ground.
    pub(super) fn on(&self, ground: Rgb) -> Style {
        Style::default().fg(color(exact(text_on(ground), self.level))).bg(color(exact(ground, self.level)))
    }
}

/// How a pixel looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// its ground, where there is no glyph
    pub paint: Paint,
    pub glyph: Option<(char, Style)>,
}

/// The state of a value that is not known.
pub(super) fn state_of(value: Value) -> State {
    match value {
        Value::Waived => State::Waived,
        Value::Timeout => State::Timeout,
        Value::Corrupt => State::Corrupt,
        Value::Missing | Value::Known(_) => State::Missing,
    }
}

/// As ratatui says it.
pub(in crate::tui) fn color(paint: Paint) -> Color {
    match paint {
        Paint::Rgb(Rgb(r, g, b)) => Color::Rgb(r, g, b),
        Paint::Index(index) if index < 16 => sixteen(index),
        Paint::Index(index) => Color::Indexed(index),
        Paint::Plain => Color::Reset,
    }
}

fn rgb_of_paint(paint: Paint) -> Option<Rgb> {
    match paint {
        Paint::Rgb(rgb) => Some(rgb),
        Paint::Index(index) => Some(xterm(index)),
        Paint::Plain => None,
    }
}

fn exact(rgb: Rgb, level: Level) -> Paint {
    if level == Level::Ansi256 { Paint::Index(nearest_index(rgb)) } else { Paint::Rgb(rgb) }
}
