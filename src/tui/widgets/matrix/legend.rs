use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::frame::right;
use super::paint::{Painter, color};
use super::{Mark, MatrixView};
use crate::matrix::Metric;
use crate::ramp::State;
use crate::sample::Pattern;

/// Steps of the scale.
const STEPS: usize = 12;

/// Draw the key of the glyphs and the scale with its ends and unit; the scale goes first where room is short.
pub(super) fn draw(view: &MatrixView<'_>, painter: &Painter, area: Rect, buffer: &mut Buffer) {
    let (dim, text) = (view.theme.style("ui.text.dim"), view.theme.style("ui.text"));
    let mut left = area.x + 1;
    let mut end = area.right().saturating_sub(1);
    if let Some(domain) = painter.domain {
        let all = view.grid.all();
        let (least, most) = match painter.metric {
            Metric::Asymmetry => (-all.worst.abs(), all.worst.abs()),
            _ => (all.min, all.max),
        };
        // What lies beyond an end is drawn in the end's colour, and this says so.
        let beyond = |is: bool, sign: &'static str| if is { sign } else { "" };
        let low = format!("{}{}", beyond(least < domain.lo, "≤"), painter.metric.format(domain.lo, painter.unit));
        let high = format!("{}{}", beyond(most > domain.hi, "≥"), painter.metric.format(domain.hi, painter.unit));
        let high = format!("{high} {}", painter.unit.name).trim_end().to_owned();
        let width = |text: &str| Span::raw(text).width() as u16;
        let room = usize::from(end.saturating_sub(left)).saturating_sub(usize::from(width(&low) + width(&high)) + 2);
        let steps = STEPS.min(room);
        if steps >= 3 {
            end -= width(&high);
            buffer.set_string(end, area.y, &high, text);
            let mut shades = painter.ramp.legend(steps);
            if painter.less_is_better() {
                shades.reverse();
            }
            end -= 1 + steps as u16;
            for (x, shade) in (end..).zip(shades) {
                if let Some(cell) = buffer.cell_mut((x, area.y)) {
                    match shade.glyph {
                        Some(glyph) => cell.set_char(glyph).set_style(Style::default().fg(color(shade.paint))),
                        None => cell.set_char(' ').set_style(Style::default().bg(color(shade.paint))),
                    };
                }
            }
            end -= 1 + width(&low);
            right(buffer, end, area.y, width(&low), &low, text);
            // Which pattern, unless it is the usual one.
            if let Some(pattern) = painter.told_pattern().filter(|_| view.pattern != Pattern::Peer) {
                end = end.saturating_sub(1 + width(pattern));
                right(buffer, end, area.y, width(pattern), pattern, text);
            }
            end = end.saturating_sub(2);
        }
    }
    // Marks of headers only if there are any, then states.
    let marks =
        [(Mark::Lost, "lost", !view.lost.is_empty()), (Mark::Slow, "slow rank", !(view.slow.0.is_empty() && view.slow.1.is_empty()))];
    let marks = marks.into_iter().filter(|(.., any)| *any).map(|(mark, name, _)| (mark.glyph().to_owned(), mark.style(view.theme), name));
    let states = State::ALL.into_iter().map(|state| (state.glyph().to_string(), painter.state_style(state), state.name()));
    let lit = view.lit.filter(|lit| !lit.cells.is_empty()).map(|lit| (lit.mark.to_owned(), view.theme.style("finding.lit"), lit.name));
    for (glyph, style, name) in lit.into_iter().chain(marks).chain(states) {
        // What the hardware should give is not always known, and such a pair looks like one not measured.
        let name = if painter.metric == Metric::ShareOfExpected && name == State::Missing.name() { "nothing to compare" } else { name };
        let name = format!(" {name}");
        let width = 1 + Span::raw(name.as_str()).width() as u16;
        if left + width > end {
            break;
        }
        buffer.set_string(left, area.y, glyph, style);
        buffer.set_string(left + 1, area.y, name, dim);
        left += width + 2;
    }
}
