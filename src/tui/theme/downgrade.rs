use ratatui::style::{Color, Modifier, Style};

use super::rgb_of;
use crate::ramp::{Level, Rgb, contrast, nearest_index, xterm};

/// The 16 colours in their order.
pub(in crate::tui) const SIXTEEN: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];
/// Below this chroma (`OKLab`) a colour counts as grey.
const GREY: f64 = 0.035;
/// Text with less contrast to the ground than this is dim.
const DIM: f64 = 9.0;

/// A full-colour style as a terminal of `level` can show it; `ground` is the theme's.
pub(super) fn style(full: Style, ground: Rgb, level: Level) -> Style {
    let (fg, bg) = (full.fg.and_then(rgb_of), full.bg.and_then(rgb_of));
    match level {
        Level::TrueColor => full,
        Level::Ansi256 => {
            let index = |rgb: Rgb| Color::Indexed(nearest_index(rgb));
            Style { fg: fg.map(index), bg: bg.map(index), ..full }
        }
        // Whether the terminal's own ground is dark or light is not known: plain text and ground stay its own.
        Level::Ansi16 => {
            let mut style = Style { fg: fg.map(|rgb| text(rgb, ground)), bg: bg.map(plain_or_named), ..full };
            if style.bg.is_some_and(|bg| bg != Color::Reset) {
                style.fg = Some(Color::Black);
            }
            style
        }
        Level::None => {
            let mut style = Style { fg: None, bg: None, ..full };
            if fg.is_some_and(|rgb| is_grey(rgb) && contrast(rgb, ground) < DIM) && full.add_modifier.is_empty() {
                style = style.add_modifier(Modifier::DIM);
            }
            if bg.is_some_and(|rgb| !is_grey(rgb)) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            style
        }
    }
}

fn is_grey(color: Rgb) -> bool {
    let [_, a, b] = color.oklab();
    a.hypot(b) < GREY
}

fn text(color: Rgb, ground: Rgb) -> Color {
    if !is_grey(color) {
        named(color)
    } else if contrast(color, ground) < DIM {
        Color::DarkGray
    } else {
        Color::Reset
    }
}

fn plain_or_named(color: Rgb) -> Color {
    if is_grey(color) { Color::Reset } else { named(color) }
}

/// The nearest in hue.
fn named(color: Rgb) -> Color {
    let [_, a, b] = color.oklab();
    let apart = |index: u8| {
        let [_, x, y] = xterm(index).oklab();
        let angle = (b.atan2(a) - y.atan2(x)).abs();
        angle.min(std::f64::consts::TAU - angle)
    };
    // The plain six only: bright ones vanish on a light ground.
    let index = (1..=6).min_by(|&x, &y| apart(x).total_cmp(&apart(y))).unwrap_or(7);
    SIXTEEN[usize::from(index)]
}
