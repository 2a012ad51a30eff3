//! The Session tab: what the session was taken on, its log and, for a recorded one, its time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{count, cut, fit, left, panel, put, right, span, window, wrap};
use super::{HitMap, Scene};
use crate::sample::EngineKind;
use crate::session::{LogLine, Model, collective_lines};
use crate::topology::{GpuRange, Placement};
use crate::tui::keys::Action;
use crate::tui::player::Player;
use crate::tui::state::Whose;
use crate::units::{format_duration, plain};

/// Ranks whose GPUs are told here; of more the matrix tells each.
const GPUS: usize = 32;

/// Draw the tab.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let mut body = area;
    if let Some(player) = scene.player {
        let height = 3.min(area.height);
        slider(scene, buf, Rect { height, ..area }, player, hits);
        body = Rect { y: area.y + height, height: area.height - height, ..area };
    }
    if area.width >= 100 {
        let columns = area.width * 38 / 100;
        let lines = facts(scene, columns.saturating_sub(2));
        draw_facts(scene, buf, Rect { width: columns, ..body }, &lines, hits);
        log(scene, buf, Rect { x: body.x + columns, width: body.width - columns, ..body }, hits);
    } else {
        // All facts, but of a low screen a part stays with the log.
        let lines = facts(scene, area.width.saturating_sub(2));
        let height = (lines.len() as u16 + 2).min(body.height.saturating_sub(6).max(body.height / 2));
        draw_facts(scene, buf, Rect { height, ..body }, &lines, hits);
        log(scene, buf, Rect { y: body.y + height, height: body.height - height, ..body }, hits);
    }
}

/// The time of a recorded session, from its beginning to its end.
fn slider(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, player: &Player, hits: &mut HitMap) {
    let look = scene.look;
    let (at, of) = player.position();
    let state = if player.playing() { "▶ playing" } else { "‖ stopped" };
    let title = [state.to_owned(), format!(" · {} ×", player.speed()), format!(" · {at} of {of} events")];
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let times = [format_duration(player.time()), format_duration(player.end())];
    let columns = usize::from(inner.width).saturating_sub(18);
    let share = if player.end() > 0.0 { player.time() / player.end() } else { 1.0 };
    let full = ((share.clamp(0.0, 1.0) * columns as f64).round() as usize).min(columns.saturating_sub(1));
    let line = Line::from(vec![
        span(right(&times[0], 8), look.text()),
        Span::raw(" "),
        span("━".repeat(full), look.bar()),
        span("●", look.accent()),
        span("─".repeat(columns.saturating_sub(full + 1)), look.dim()),
        span(right(&times[1], 8), look.dim()),
    ]);
    put(buf, inner, 0, &line);
    if columns > 1 && inner.height > 0 {
        hits.slider = Some(Rect { x: inner.x + 9, y: inner.y, width: columns as u16, height: 1 });
    }
}

/// What the session was taken on, in lines of at most `columns`.
fn facts(scene: &Scene<'_>, columns: u16) -> Vec<Line<'static>> {
    let (look, header) = (scene.look, &scene.model.header);
    let topology = &header.topology;
    let mut rows = vec![
        ("name".to_owned(), plain(&header.name)),
        ("started".to_owned(), if header.started.is_empty() { "not told".to_owned() } else { plain(&header.started) }),
        ("program".to_owned(), format!("toposcope {}", plain(&header.program))),
        (
            "engine".to_owned(),
            format!("{} · {} on {}", header.engine.name(), count(topology.world(), "rank"), count(topology.hosts().len(), "host")),
        ),
    ];
    let imported = header.engine == EngineKind::Imported;
    for table in &scene.model.imported {
        rows.push((
            if table.taken { "imported" } else { "left out" }.to_owned(),
            format!("{} · {} · {}:{} · {}", table.name(), table.amount(), table.file, table.line, table.means()),
        ));
        rows.extend(collective_lines(table).into_iter().map(|line| (String::new(), line)));
    }
    if let Some(sweep) = scene.model.sweep.as_ref().filter(|_| !imported) {
        let s = &sweep.settings;
        rows.push((
            "sweep".to_owned(),
            format!("{} · {} repeats · window {} · seed {}", s.mover.told(s.memory), s.repeats, s.window, s.seed),
        ));
    }
    rows.push(("samples".to_owned(), scene.model.only_together().unwrap_or_else(|| scene.model.samples().to_string())));
    rows.extend(gpus(scene.model));
    rows.extend(header.software.iter().map(|(key, value)| (plain(key), plain(value))));
    let columns = usize::from(columns);
    let names = rows.iter().map(|(name, _)| super::text::width(name)).max().unwrap_or(0).min(columns / 2);
    let mut lines = Vec::new();
    for (name, value) in rows {
        for (i, part) in wrap(&value, columns.saturating_sub(names + 3)).into_iter().enumerate() {
            let name = if i == 0 { left(&name, names) } else { " ".repeat(names) };
            lines.push(Line::from(vec![span(format!(" {name} "), look.dim()), span(part, look.text())]));
        }
    }
    // Names of variables are long, and differ at their ends.
    for (name, value) in &header.environment {
        let (name, value) = (plain(name), plain(value));
        let beside = super::text::width(&name) + super::text::width(&value) + 2 <= columns;
        let name = span(format!(" {} ", cut(&name, columns.saturating_sub(2))), look.dim());
        if beside {
            lines.push(Line::from(vec![name, span(value, look.text())]));
        } else {
            lines.push(Line::from(name));
            let parts = wrap(&value, columns.saturating_sub(4));
            lines.extend(parts.into_iter().map(|part| Line::from(span(format!("   {part}"), look.text()))));
        }
    }
    lines
}

/// Whose each GPU is, and how it was doing.
fn gpus(model: &Model) -> Vec<(String, String)> {
    let topology = &model.header.topology;
    let of = |place: &Placement| {
        let own = place.gpu?;
        let hardware = topology.hardware_of(&place.host)?;
        let gpu = hardware.gpus.get(own)?;
        let address = gpu.pci.and_then(|at| hardware.pci.get(at)).map(|device| device.address.to_string());
        let range = model.gpus.get(&place.rank).map(GpuRange::told).unwrap_or_default();
        let facts: Vec<String> = std::iter::once(format!("GPU {} {}", gpu.index, gpu.name)).chain(address).chain(range).collect();
        Some((format!("rank {}", place.rank), facts.join(" · ")))
    };
    topology.ranks.iter().filter_map(of).take(GPUS).collect()
}

/// What the session was taken on, and nothing else.
pub fn draw_facts_alone(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    draw_facts(scene, buf, area, &facts(scene, area.width.saturating_sub(2)), hits);
}

fn draw_facts(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, lines: &[Line<'static>], hits: &mut HitMap) {
    let look = scene.look;
    let rows = usize::from(area.height.saturating_sub(2));
    let shown = window(scene.ui.session.facts, lines.len(), rows);
    let mut title = vec!["session".to_owned()];
    if shown.len() < lines.len() {
        let keys = [Action::SamplesDown, Action::SamplesUp].map(|action| look.key_of(action)).join(" ");
        title.push(format!(" · {}–{} of {}", shown.start + 1, shown.end, lines.len()));
        title.push(format!(" · {keys}"));
    }
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    hits.facts = Some((area, lines.len().saturating_sub(rows)));
    for (row, line) in (0..inner.height).zip(lines.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
}

/// True if the log shows this line.
fn shows(whose: Whose, line: &LogLine) -> bool {
    match whose {
        Whose::All => true,
        Whose::Program => line.rank.is_none(),
        Whose::Rank(rank) => line.rank == Some(rank),
    }
}

fn log(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let (look, panel_state) = (scene.look, &scene.ui.session);
    let whose = match panel_state.whose {
        Whose::All => "everyone".to_owned(),
        Whose::Program => "toposcope".to_owned(),
        Whose::Rank(rank) => format!("rank {rank}"),
    };
    let total = scene.model.log.iter().filter(|line| shows(panel_state.whose, line)).count();
    let title = ["log".to_owned(), format!(" · ‹ {whose} ›"), format!(" · {}", count(total, "line"))];
    let title = fit(&title, usize::from(area.width).saturating_sub(4));
    let inner = panel(buf, area, look, &Line::from(span(title, look.title())));
    let rows = usize::from(inner.height);
    hits.log = Some((area, total.saturating_sub(rows)));
    if total == 0 {
        put(buf, inner, 0, &Line::from(span(" nothing was printed", look.dim())));
        return;
    }
    // Newest at the bottom: from the end, those scrolled past, then as many as fit.
    let scroll = panel_state.scroll.min(total.saturating_sub(rows));
    let shown = scene.model.log.iter().rev().filter(|line| shows(panel_state.whose, line)).skip(scroll).take(rows);
    let lines: Vec<&LogLine> = shown.collect();
    for (row, line) in (0_u16..).zip(lines.iter().rev()) {
        let rank = line.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string());
        let lost = line.rank.is_some_and(|rank| scene.model.lost.contains_key(&rank)) && line.text.starts_with("lost: ");
        let style = if lost {
            look.error()
        } else if line.rank.is_none() {
            look.accent()
        } else {
            look.text()
        };
        let head = format!("{} {} ", right(&format_duration(line.t), 8), right(&rank, 4));
        let text = cut(&line.text, usize::from(inner.width).saturating_sub(14));
        put(buf, inner, row, &Line::from(vec![span(head, look.dim()), span(text, style)]));
    }
}
