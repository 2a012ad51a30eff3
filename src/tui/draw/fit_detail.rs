//! One fit: its numbers and how sure they are, its size curve, its protocols, and how far it misses each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::fits::{micros, number, percent, rates};
use super::text::{cut, fit as fit_parts, left, panel, put, right, span, window, wrap};
use super::{HitMap, Scene};
use crate::fit::{EXTRAPOLATION_LIMIT, Interval, median_interval};
use crate::tui::fits::{Detail, key_text};
use crate::tui::widgets::fit_curve::{self, FitCurve, Median, Stretch};
use crate::units::{format_seconds, format_size};

/// Columns of the names.
const NAMES: usize = 10;
/// Rows of the curve, least and most.
const CURVE: (u16, u16) = (5, 14);
/// Rows of a panel that has a curve.
const LEAST: u16 = 12;
/// Columns of the residuals with all of theirs.
const RESIDUALS: u16 = 34;
/// A class whose members lie this far apart is no class.
const WIDE: f64 = 1.5;

/// Draw the fit under the cursor.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let Some(detail) = scene.fits.detail(scene.model, scene.ui.fits.at) else {
        let text = if scene.fits.busy() { "fitting …" } else { "no fit chosen" };
        panel(buf, area, look, &Line::from(span(text, look.title())));
        return;
    };
    let title = format!("{} · {}", detail.fit.kind.name(), key_text(&detail.fit.key, detail.fit.kind));
    let inner = panel(buf, area, look, &Line::from(span(cut(&title, usize::from(area.width).saturating_sub(4)), look.title())));
    // A third for the curve where there is room for one, the facts above it, and a line for each size below.
    let least = if inner.height >= LEAST { (inner.height / 3).clamp(CURVE.0, CURVE.1) } else { 0 };
    let lines = facts(scene, &detail, usize::from(inner.width));
    let mut y = 0;
    for line in lines.iter().take(usize::from(inner.height - least)) {
        put(buf, inner, y, line);
        y += 1;
    }
    if least > 0 {
        let rest = inner.height - y;
        let height = rest.saturating_sub(detail.points.len() as u16 + 3).clamp(least, CURVE.1).min(rest);
        // A free line above and below, where there are lines.
        let spare = u16::from(rest > height + 3);
        curve(scene, &detail, buf, Rect { y: inner.y + y + spare, width: inner.width.saturating_sub(1), height, ..inner });
        y += height + 2 * spare;
    }
    residuals(scene, &detail, buf, Rect { y: inner.y + y.min(inner.height), height: inner.height.saturating_sub(y), ..inner }, hits);
}

fn facts(scene: &Scene<'_>, detail: &Detail, columns: usize) -> Vec<Line<'static>> {
    let (look, rates, fit) = (scene.look, rates(scene), &detail.fit);
    let room = columns.saturating_sub(NAMES + 2);
    let row = |name: &str, text: String| {
        Line::from(vec![span(format!(" {}", left(name, NAMES)), look.dim()), span(cut(&text, room), look.text())])
    };
    let told = |text: &str, style| {
        wrap(text, columns.saturating_sub(2)).into_iter().map(move |line| Line::from(vec![Span::raw(" "), span(line, style)]))
    };
    let mut lines = Vec::new();
    let with = |value: String, interval: Option<(String, String)>| {
        let mut spans = vec![span(value, look.strong())];
        if let Some((low, high)) = interval {
            spans.push(span(format!("   {low} – {high}"), look.text()));
        }
        spans
    };
    let intervals = fit.intervals.as_ref();
    let gbps = format!(" {} {}", number(rates, fit.line.bandwidth), rates.name());
    let mut first = with(gbps, intervals.map(|i| (number(rates, i.bandwidth.low), number(rates, i.bandwidth.high))));
    if first.iter().map(Span::width).sum::<usize>() + 7 <= columns && intervals.is_some() {
        first.push(span(" (95 %)", look.dim()));
    }
    lines.push(Line::from(first));
    let alpha = format!(" α {} µs", micros(fit.line.alpha));
    lines.push(Line::from(with(alpha, intervals.map(|i| (micros(i.alpha.low), micros(i.alpha.high))))));
    // Where it misses most, and what that means for other sizes.
    let worst = detail.points.iter().max_by(|a, b| off(detail, a.bytes, a.seconds).abs().total_cmp(&off(detail, b.bytes, b.seconds).abs()));
    let error = format!("{} %", percent(fit.line.max_rel_error));
    let protocols = fit.segments.iter().map(|segment| segment.line.max_rel_error).reduce(f64::max);
    let more = match (protocols, worst) {
        (Some(most), _) => format!(", by protocols {} %", percent(most)),
        (None, Some(point)) => format!(" at {}", format_size(point.bytes)),
        (None, None) => String::new(),
    };
    lines.push(row("error", fit_parts(&[error, more], room)));
    let beyond = fit.line.largest.saturating_mul(4);
    match fit.predict(beyond) {
        Ok(seconds) => lines.push(row("beyond", format!("{} in {}", format_size(beyond), format_seconds(seconds)))),
        Err(_) => lines.extend(told(
            &format!(
                "▲ misses by over {:.0} %: says nothing beyond {} to {}",
                EXTRAPOLATION_LIMIT * 100.0,
                format_size(fit.line.smallest),
                format_size(fit.line.largest)
            ),
            look.warn(),
        )),
    }
    for segment in &fit.segments {
        let line = &segment.line;
        let parts = [
            format!("{} µs, {} {}", micros(line.alpha), number(rates, line.bandwidth), rates.name()),
            format!(", error {} %", percent(line.max_rel_error)),
        ];
        lines.push(row(&format!("{}..", format_size(line.smallest)), fit_parts(&parts, room)));
    }
    if let Some(spread) = &fit.spread {
        let named = |key| key_text(key, fit.kind);
        lines.push(row("members", format!("{}, median {}", spread.count, number(rates, spread.median))));
        lines.push(row("slowest", format!("{}  {}", number(rates, spread.min), named(&spread.min_key))));
        lines.push(row("fastest", format!("{}  {}", number(rates, spread.max), named(&spread.max_key))));
        if spread.max > spread.min * WIDE && spread.count > 1 {
            lines.extend(told(&format!("▲ {:.1} × apart: one line for all of them says little", spread.max / spread.min), look.warn()));
        }
    }
    lines.push(match detail.pooled {
        Some((pooled, all)) => row("samples", format!("{} of {pooled} of {all} pairs", fit.n)),
        None => row("samples", fit.n.to_string()),
    });
    lines
}

/// How far the fit is off at a size, as a share of what was measured there.
fn off(detail: &Detail, bytes: u64, seconds: f64) -> f64 {
    (detail.fit.line_at(bytes).seconds(bytes) - seconds) / seconds
}

fn curve(scene: &Scene<'_>, detail: &Detail, buf: &mut Buffer, area: Rect) {
    let medians: Vec<Median> = detail
        .points
        .iter()
        .map(|point| {
            let times = detail.curve.get(&point.bytes).map_or(&[][..], Vec::as_slice);
            let interval = median_interval(times, 0.95)
                .map(|time| Interval { low: point.bytes as f64 / time.high, high: point.bytes as f64 / time.low });
            Median { bytes: point.bytes, bandwidth: point.bytes as f64 / point.seconds, interval }
        })
        .collect();
    let lines = if detail.fit.segments.is_empty() {
        vec![detail.fit.line]
    } else {
        detail.fit.segments.iter().map(|segment| segment.line).collect()
    };
    let stretches: Vec<Stretch> =
        lines.iter().map(|line| Stretch { from: line.smallest, to: line.largest, alpha: line.alpha, bandwidth: line.bandwidth }).collect();
    let breaks: Vec<u64> = detail.fit.breakpoints().collect();
    let view = FitCurve { medians: &medians, stretches: &stretches, breaks: &breaks, unit: rates(scene).0, theme: &scene.look.theme };
    fit_curve::draw(&view, area, buf);
}

/// Each size: the median time, what the fit says, and how far that is off.
fn residuals(scene: &Scene<'_>, detail: &Detail, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    if area.height < 2 {
        return;
    }
    let look = scene.look;
    let rows = usize::from(area.height - 1);
    hits.residuals = Some((area, detail.points.len().saturating_sub(rows)));
    let range = window(scene.ui.fits.scroll, detail.points.len(), rows);
    let more =
        if rows < detail.points.len() { format!(" {}–{} of {}", range.start + 1, range.end, detail.points.len()) } else { String::new() };
    let fitted = area.width >= RESIDUALS;
    let line = |texts: [&str; 4]| {
        let [size, time, fit, off] = texts;
        format!(" {}{}{}{}", right(size, 8), right(time, 9), if fitted { right(fit, 9) } else { String::new() }, right(off, 7))
    };
    let heading = fit_parts(&[line(["size", "median", "fit", "off %"]), more], usize::from(area.width));
    put(buf, area, 0, &Line::from(span(heading, look.dim())));
    for (y, point) in (1_u16..).zip(detail.points.get(range).unwrap_or(&[])) {
        let off = off(detail, point.bytes, point.seconds);
        let text = line([
            &format_size(point.bytes),
            &format_seconds(point.seconds),
            &format_seconds(detail.fit.line_at(point.bytes).seconds(point.bytes)),
            &format!("{:+.1}", off * 100.0),
        ]);
        let style = if off.abs() > EXTRAPOLATION_LIMIT { look.warn() } else { look.text() };
        put(buf, area, y, &Line::from(span(text, style)));
    }
}
