//! The way of the selected pair: hop by hop on the Topology tab, in a few lines in the inspector.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Scene;
use super::text::{cut, fit, left, panel, put, right, span, wrap};
use crate::sample::Pattern;
use crate::topology::{Doubt, Flag, Hop, HopKind, Route};
use crate::tui::atlas::{SLOW, short};
use crate::tui::findings::mark;
use crate::units::plain;

/// Columns of a rate.
const RATE: usize = 7;
/// Columns that a route takes where each hop is one line.
const ONE_LINE: usize = 96;

/// Draw the panel.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let route = way(scene).unwrap_or_default();
    let label = scene.atlas.router.label(from, to).map_or_else(|| "path not known".to_owned(), |label| label.to_string());
    let title = fit(&[format!("route {from} → {to}"), format!(" · {label}")], usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let columns = usize::from(inner.width).saturating_sub(1);
    let mut lines = Vec::new();
    if way(scene).is_none() {
        lines.push(Line::from(span(" a copy inside the rank passes no link", look.dim())));
    } else {
        lines.push(gives(scene, &route, columns).unwrap_or_else(|| Line::from(span(" nothing is known of its links", look.dim()))));
        lines.extend(hops(scene, &route, columns));
        lines.extend(verdict(scene, &route, columns));
    }
    for (y, line) in (0..inner.height).zip(&lines) {
        put(buf, inner, y, line);
    }
}

/// The way of the selected cell; `None` where it passes no link.
fn way(scene: &Scene<'_>) -> Option<Route> {
    let (from, to) = scene.ui.matrix.cursor;
    let (router, topology, pattern) = (&scene.atlas.router, &scene.model.header.topology, scene.view.key.pattern);
    match (from == to, pattern.crosses()) {
        (false, _) => Some(router.route(topology, from, to)),
        (true, true) => Some(router.host_route(topology, from, pattern == Pattern::HostToDevice)),
        (true, false) => None,
    }
}

/// Bandwidth of the selected pair at the size shown, bytes per second.
fn measured(scene: &Scene<'_>) -> Option<f64> {
    let (from, to) = scene.ui.matrix.cursor;
    let size = scene.model.cells.get(scene.view.key.cell(from, to), scene.view.key.bytes)?;
    Some(size.bandwidth()).filter(|rate| size.count > 0 && rate.is_finite())
}

/// ` gives 53.9 of 55.0 GB/s expected  98 %`
fn gives(scene: &Scene<'_>, route: &Route, columns: usize) -> Option<Line<'static>> {
    let mut spans = vec![span(" gives ", scene.look.dim())];
    spans.extend(given(scene, route, columns.saturating_sub(7))?);
    Some(Line::from(spans))
}

/// `53.9 of 55.0 GB/s expected  98 %`, in at most `room` columns if that can be.
fn given(scene: &Scene<'_>, route: &Route, room: usize) -> Option<Vec<Span<'static>>> {
    let (look, rates) = (scene.look, scene.view.rates());
    let expected = route.expected?;
    let Some(rate) = measured(scene) else {
        let parts = [rates.text(expected), " expected".to_owned(), ", not measured".to_owned()];
        return Some(vec![span(fit(&parts, room), look.text())]);
    };
    let share = rate / expected;
    let style = if share < SLOW { look.warn() } else { look.good() };
    let (rate, percent) = (rates.number(rate), format!("  {:.0} %", share * 100.0));
    let used = super::text::width(&rate) + super::text::width(&percent);
    let of = [format!(" of {}", rates.text(expected)), format!(" of {}", rates.number(expected))];
    let of = of.into_iter().map(|of| format!("{of} expected")).find(|of| used + super::text::width(of) <= room);
    let of = of.unwrap_or_else(|| format!(" of {}", rates.number(expected)));
    Some(vec![span(rate, look.strong()), span(of, look.text()), span(percent, style)])
}

/// What is wrong with a hop, in a few words; nothing where more went over it than it says.
fn flag(hop: &Hop, measured: Option<f64>) -> Option<(String, bool)> {
    let overruled = hop.overruled(measured);
    Some(match hop.flag? {
        Flag::Down => ("down".to_owned(), true),
        Flag::Narrow | Flag::Doubt(Doubt::Resting) if overruled => return None,
        Flag::Narrow => (narrow(hop), true),
        Flag::Doubt(Doubt::Resting) => ("at rest".to_owned(), false),
        Flag::Doubt(Doubt::Emulated) => ("emulated".to_owned(), false),
        Flag::Doubt(Doubt::NoWidth) => ("says x0".to_owned(), false),
    })
}

/// `x8 of x16`, `2 links down`: what of the state is the fault.
fn narrow(hop: &Hop) -> String {
    match hop.kind {
        HopKind::GpuLink => hop.state.rsplit(", ").next().map_or_else(String::new, |down| down.replace(" down", " links down")),
        _ => hop.state.split_once(' ').map_or_else(|| hop.state.clone(), |(_, width)| width.to_owned()),
    }
}

/// What a link says, where more went over it: `says Gen1 x16 (4.0 GB/s), measured 52.0: at rest or wrong`.
fn overruled(scene: &Scene<'_>, hop: &Hop) -> Option<String> {
    let (rate, now) = (measured(scene).filter(|&rate| hop.overruled(Some(rate)))?, hop.now?);
    let rates = scene.view.rates();
    let says = hop.trained.map_or_else(|| plain(&hop.state), |lanes| lanes.to_string());
    Some(format!("says {says} ({}), measured {}: at rest or wrong", rates.text(now), rates.number(rate)))
}

/// Each hop with what it can do, does now, should give, and gave.
fn hops(scene: &Scene<'_>, route: &Route, columns: usize) -> Vec<Line<'static>> {
    let (look, rates) = (scene.look, scene.view.rates());
    let rate = measured(scene);
    let slowest = route.slowest(rate);
    let lit = scene.ui.findings.lit(scene.desk.told());
    let one = columns >= ONE_LINE;
    let numbers = if columns >= 4 * RATE + 8 { 4 } else { 3 };
    let state = if one { 20 } else { columns.saturating_sub(3 + numbers * RATE) };
    let name = if one { columns.saturating_sub(3 + state + numbers * RATE) } else { columns.saturating_sub(2) };
    let heads = ["nominal", "now", "expect", "got"];
    let heads: String = heads.iter().skip(4 - numbers).map(|head| right(head, RATE)).collect();
    let before = if one { 3 + name + state } else { 3 + state };
    let mut lines = vec![Line::from(span(format!("{}{heads}", left(&format!("  {}", rates.name()), before)), look.dim()))];
    for (at, hop) in route.hops.iter().enumerate() {
        let flag = flag(hop, rate);
        let slow = slowest == Some(at);
        let told = match (&flag, slow) {
            (Some((flag, _)), true) => format!("  {flag} ◀ slowest"),
            (Some((flag, _)), false) => format!("  {flag}"),
            (None, true) => "  ◀ slowest".to_owned(),
            (None, false) => String::new(),
        };
        let named = lit.filter(|(_, finding)| finding.hop.as_ref().is_some_and(|(host, name)| is_hop(hop, host, name)));
        let told = match named {
            Some((at, _)) => {
                // Where there is no room for all, the finding has said the rest.
                let tag = format!("  ◀ finding {}", at + 1);
                let all = format!("{tag}{told}");
                if super::text::width(&all) + super::text::width(&short(&hop.name)) <= name { all } else { tag }
            }
            None => told,
        };
        let bad = slow || flag.as_ref().is_some_and(|(_, fault)| *fault);
        let style = match (named, bad) {
            (Some(_), _) => look.lit(),
            (None, true) => look.warn(),
            (None, false) => look.text(),
        };
        let mark = if let Some((_, finding)) = named {
            format!("{} ", mark(finding.severity))
        } else if flag.as_ref().is_some_and(|(_, fault)| *fault) {
            "▲ ".to_owned()
        } else {
            "· ".to_owned()
        };
        // The flag goes before the name where room is short.
        let room = name.saturating_sub(super::text::width(&told));
        let title = format!("{}{told}", cut(&short(&hop.name), room));
        let number = |value: Option<f64>| right(&value.map_or_else(|| "–".to_owned(), |value| rates.number(value)), RATE);
        let values = [hop.nominal, hop.now, hop.expected, rate.filter(|_| hop.expected.is_some())];
        let slow_here = matches!((rate, hop.expected), (Some(rate), Some(expected)) if rate < expected * SLOW);
        let mut tail = vec![span(left(&plain(&hop.state), state), look.dim())];
        for (column, value) in values.into_iter().enumerate().skip(4 - numbers) {
            let style = match column {
                1 if bad => look.warn(),
                3 if slow_here => look.warn(),
                _ => look.text(),
            };
            tail.push(span(number(value), style));
        }
        let nameless = hop.state.is_empty() && hop.nominal.is_none();
        let head = vec![span(mark, style), span(left(&title, name), style)];
        if one {
            let tail = if nameless { Vec::new() } else { [vec![Span::raw(" ")], tail].concat() };
            lines.push(Line::from([head, tail].concat()));
        } else {
            lines.push(Line::from(head));
            if !nameless {
                tail.insert(0, Span::raw("   "));
                lines.push(Line::from(tail));
            }
        }
        if let Some(text) = overruled(scene, hop) {
            lines.extend(
                wrap(&text, columns.saturating_sub(4)).into_iter().map(|line| Line::from(span(format!("    {line}"), look.warn()))),
            );
        }
    }
    lines
}

/// True if a hop of a route is the one of that name, either way round.
fn is_hop(hop: &Hop, host: &str, name: &str) -> bool {
    let turned = || hop.name.split_once(" → ").is_some_and(|(from, to)| name.split_once(" → ") == Some((to, from)));
    hop.host == host && (hop.name == name || turned())
}

/// Why it is slow, in one sentence: the hop, or that no hop says why.
fn verdict(scene: &Scene<'_>, route: &Route, columns: usize) -> Vec<Line<'static>> {
    let Some((text, bad)) = reason(scene, route) else { return Vec::new() };
    let style = if bad { scene.look.warn() } else { scene.look.dim() };
    wrap(&text, columns.saturating_sub(2)).into_iter().map(|line| Line::from(span(format!(" {line}"), style))).collect()
}

/// The hop that explains what was measured, and whether that is a fault.
fn reason(scene: &Scene<'_>, route: &Route) -> Option<(String, bool)> {
    let rate = measured(scene);
    let slow = matches!((rate, route.expected), (Some(rate), Some(expected)) if rate < expected * SLOW);
    let faulty = route.hops.iter().find(|hop| flag(hop, rate).is_some_and(|(_, fault)| fault));
    if let Some(hop) = faulty {
        let why = flag(hop, rate).map_or_else(String::new, |(flag, _)| flag);
        return Some((format!("▲ {}: {why}", short(&hop.name)), true));
    }
    // Some hops are made up or say nothing: then none of them can be cleared.
    let unseen = route.hops.iter().any(|hop| matches!(hop.flag, Some(Flag::Doubt(Doubt::Emulated | Doubt::NoWidth))));
    match (slow, unseen) {
        (true, true) => Some(("▲ slow, and not every hop tells the truth".to_owned(), true)),
        (true, false) => Some(("▲ slow, and no hop says why".to_owned(), true)),
        _ => None,
    }
}

/// A line of the inspector: its name, and what it says.
pub type Row = (&'static str, Vec<Span<'static>>);

/// What the inspector says of the way: `path PXB  GPU 2 → switch 03:00.0 → GPU 0`, `gives 53.9 of 55.0 expected 98 %`, the hop.
pub fn rows(scene: &Scene<'_>, room: usize) -> Vec<Row> {
    let look = scene.look;
    let (from, to) = scene.ui.matrix.cursor;
    let Some(route) = way(scene).filter(|_| scene.atlas.router.knows()) else { return Vec::new() };
    let label = scene.atlas.router.label(from, to).map_or_else(|| "not known".to_owned(), |label| label.to_string());
    let way = places(&route);
    let mut rows: Vec<Row> = Vec::new();
    for (at, line) in wrap(&format!("{label}  {}", way.join(" → ")), room).into_iter().take(4).enumerate() {
        rows.push((if at == 0 { "path" } else { "" }, vec![span(line, look.text())]));
    }
    rows.extend(given(scene, &route, room).map(|spans| ("gives", spans)));
    if let Some((text, bad)) = reason(scene, &route) {
        let style = if bad { look.warn() } else { look.dim() };
        rows.extend(wrap(&text, room).into_iter().take(2).map(|line| ("", vec![span(line, style)])));
    }
    let says = route.hops.iter().find_map(|hop| Some(format!("{} {}", short(&hop.name), overruled(scene, hop)?)));
    rows.extend(says.into_iter().flat_map(|text| wrap(&text, room).into_iter().take(3)).map(|line| ("", vec![span(line, look.warn())])));
    rows
}

/// The same in one line, for where there is no more: `PXB  98 % of 55.0 GB/s`, and the hop at fault.
pub fn brief(scene: &Scene<'_>) -> Vec<Span<'static>> {
    let Some(route) = way(scene).filter(|_| scene.atlas.router.knows()) else { return Vec::new() };
    let mut spans = vec![span(route.label.map_or_else(|| "path not known".to_owned(), |label| label.to_string()), scene.look.text())];
    if let (Some(rate), Some(expected)) = (measured(scene), route.expected) {
        let share = rate / expected;
        let style = if share < SLOW { scene.look.warn() } else { scene.look.text() };
        spans.push(span(format!("  {:.0} % of {}", share * 100.0, scene.view.rates().text(expected)), style));
    }
    spans.extend(reason(scene, &route).map(|(text, _)| span(format!("  {text}"), scene.look.warn())));
    spans
}

/// The things that a way leads over, each once: both ports of a switch are one place.
fn places(route: &Route) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for hop in &route.hops {
        let (from, to) = hop.name.split_once(" → ").unwrap_or(("", hop.name.as_str()));
        if places.is_empty() && !from.is_empty() {
            places.push(short(from));
        }
        places.push(short(to));
    }
    places
}
