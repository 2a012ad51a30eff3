//! An amount as the ground of its digits, in the matrix's colours.

use ratatui::style::{Color, Style};

use super::matrix::color;
use crate::ramp::{Level, Rgb};
use crate::ramp::{Map, Paint, Ramp, nearest_index, text_on};
use crate::tui::theme::Theme;

/// The style of a value between a low and a high end, both above 0; `None` where colours are too few, or without ends.
pub fn style(theme: &Theme, value: f64, (low, high): (f64, f64)) -> Option<Style> {
    let ramp = Ramp::new(Map::Sequential, theme.level());
    if ![value, low, high].into_iter().all(f64::is_finite) || !ramp.fills() {
        return None;
    }
    // What is all alike is painted as good.
    let position = if high > low * 1.1 { (value - low) / (high - low) } else { 1.0 };
    let shade = ramp.shade(position);
    let exact = |rgb: Rgb| if theme.level() == Level::Ansi256 { Paint::Index(nearest_index(rgb)) } else { Paint::Rgb(rgb) };
    let ink: Color = color(exact(text_on(shade.rgb()?)));
    Some(Style::default().fg(ink).bg(color(shade.paint)))
}
