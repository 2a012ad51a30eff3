//! The first line, the line of tabs and the line of keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::{bar, count, cut, put, put_at, put_right, span};
use super::{HitMap, Scene};
use crate::session::{Outcome, Running, SweepState};
use crate::sweep::Probe;
use crate::tui::feed::Mode;
use crate::tui::findings::Told;
use crate::tui::keys::Action;
use crate::tui::state::Tab;
use crate::units::{format_duration, plain};

/// `toposcope  NAME  8 ranks · 1 host · mpi · mpi_sendrecv      ● peer 0→1 64 MiB  ━━━╌╌  61 %   0:11 left`
pub fn first_line(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let room = usize::from(area.width).saturating_sub(3);
    for richness in (0..4).rev() {
        let (left, right) = (who(scene, richness), run_state(scene, richness));
        if left.width() + right.width() <= room || richness == 0 {
            // Where even the shortest do not fit, the state of the sweep stays whole.
            let left_area = Rect { width: area.width.saturating_sub(right.width() as u16 + 2), ..area };
            put_at(buf, left_area, 1, 0, &left);
            let right_area = Rect { width: area.width.saturating_sub(1), ..area };
            put_right(buf, right_area, 0, &right);
            return;
        }
    }
}

fn who(scene: &Scene<'_>, richness: usize) -> Line<'static> {
    let (look, header) = (scene.look, &scene.model.header);
    let mut spans = vec![span("toposcope", look.accent())];
    let name = plain(&header.name);
    spans.push(span(format!("  {}", cut(&name, if richness == 0 { 16 } else { 40 })), look.text()));
    let lost = scene.model.lost.len();
    let mut facts = Vec::new();
    if richness >= 1 || lost == 0 {
        facts.push(count(scene.model.world(), "rank"));
    }
    if richness >= 1 {
        facts.push(count(header.topology.hosts().len(), "host"));
    }
    if richness >= 2 {
        facts.push(header.engine.name().to_owned());
        if let Some(sweep) = &scene.model.sweep {
            facts.push(sweep.settings.mover.told(sweep.settings.memory));
        }
    }
    if !facts.is_empty() {
        spans.push(span(format!("  {}", facts.join(" · ")), look.dim()));
    }
    if lost > 0 {
        spans.push(span(format!("  {lost} lost"), look.error()));
    }
    Line::from(spans)
}

fn run_state(scene: &Scene<'_>, richness: usize) -> Line<'static> {
    let look = scene.look;
    let mut spans: Vec<Span<'static>> = Vec::new();
    if scene.mode == Mode::Recorded {
        let (mark, word) = scene.player.map_or(("●", ""), |player| if player.playing() { ("▶", "playing") } else { ("‖", "recorded") });
        spans.push(span(format!("{mark} {word}"), look.accent()));
        if let Some(player) = scene.player {
            spans.push(span(format!("  {} / {}", format_duration(player.time()), format_duration(player.end())), look.text()));
        }
    }
    let Some(sweep) = &scene.model.sweep else {
        if spans.is_empty() {
            spans.push(span("○ nothing measured yet", look.dim()));
        }
        return Line::from(spans);
    };
    if scene.mode != Mode::Recorded {
        spans.push(state_of(scene, sweep, richness));
    }
    if richness >= 2 {
        spans.push(Span::raw("  "));
        spans.extend(bar(look, sweep.share(), if richness >= 3 { 18 } else { 8 }));
    }
    spans.push(span(format!("  {:.0} %", (sweep.share() * 100.0).floor()), look.text()));
    if !matches!(sweep.running, Running::Ended(_))
        && let Some(left) = sweep.seconds_left()
    {
        spans.push(span(format!("  {} left", format_duration(left)), look.text()));
    }
    Line::from(spans)
}

fn state_of(scene: &Scene<'_>, sweep: &SweepState, richness: usize) -> Span<'static> {
    let look = scene.look;
    match sweep.running {
        _ if scene.model.testing.is_some() => span("● test of a finding", look.accent()),
        Running::Measuring => {
            let probe = sweep.probe().filter(|_| richness >= 1).map(Probe::describe);
            // Probes differ in length: what follows must not move about.
            let text = format!("● {}", probe.unwrap_or_else(|| "measuring".to_owned()));
            span(if richness >= 3 { super::text::left(&text, 24) } else { text }, look.accent())
        }
        Running::Paused => span("‖ paused", look.warn()),
        Running::Ended(Outcome::Complete) => span("✓ complete", look.good()),
        Running::Ended(Outcome::Aborted) => span("■ aborted", look.warn()),
        Running::Ended(Outcome::Cut) => span("× cut", look.error()),
    }
}

/// ` 2 Sweep ▸3 Matrix  8 Session`
pub fn tab_line(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    let look = scene.look;
    let mut x = 0;
    let help = format!("{} help ", look.key_of(Action::Help));
    let mut right = vec![span(help, look.dim())];
    if scene.ui.mouse_released {
        // For as long as it is so: clicks that do nothing want an explanation.
        right.insert(0, span(format!(" {} mouse off  ", look.key_of(Action::ReleaseMouse)), look.warn()));
    }
    let whole: usize = Tab::ALL.into_iter().map(|tab| one_tab(scene, tab, false).width()).sum();
    let wanted = if scene.ui.mouse_released { Line::from(right.clone()).width() } else { 0 };
    let short = whole + wanted > usize::from(area.width);
    for tab in Tab::ALL {
        let line = one_tab(scene, tab, short);
        let width = line.width() as u16;
        put_at(buf, area, x, 0, &line);
        hits.tabs.push((Rect { x: area.x + x, width, ..area }.intersection(area), tab));
        x += width;
    }
    // Of the two the one that is needed more.
    while !right.is_empty() && usize::from(x) + Line::from(right.clone()).width() > usize::from(area.width) {
        right.pop();
    }
    put_right(buf, area, 0, &Line::from(right));
}

/// `▸6 Findings 3 `: a tab's number and name, and how many findings ask for something to be done.
fn one_tab(scene: &Scene<'_>, tab: Tab, short: bool) -> Line<'static> {
    let look = scene.look;
    let active = tab == scene.ui.tab;
    let style = if active { look.tab_active() } else { look.tab() };
    let title = if short { tab.short() } else { tab.title() };
    let mut spans = vec![span(format!("{}{} {title}", if active { "▸" } else { " " }, tab.number()), style)];
    let grave = scene.desk.told().map_or(0, Told::grave);
    if tab == Tab::Findings && grave > 0 {
        spans.push(span(format!(" {grave}"), look.warn()));
    }
    if !short {
        spans.push(span(" ", style));
    }
    Line::from(spans)
}

/// What was told last, or the keys that matter here.
pub fn last_line(scene: &Scene<'_>, buf: &mut Buffer, area: Rect) {
    let look = scene.look;
    if let Some(notice) = &scene.ui.notice {
        let style = if notice.refusal { look.error() } else { look.accent() };
        let text = cut(&plain(&notice.text), usize::from(area.width).saturating_sub(2));
        put(buf, area, 0, &Line::from(span(format!(" {text}"), style)));
        return;
    }
    if let Some(what) = super::footer::typed(scene) {
        let keys = [("enter", "takes it"), ("esc", "drops it")];
        let mut spans = vec![span(format!(" {what}"), look.dim())];
        spans.extend(
            keys.into_iter().flat_map(|(key, word)| [Span::raw("  "), span(key, look.key()), span(format!(" {word}"), look.dim())]),
        );
        put(buf, area, 0, &Line::from(spans));
        return;
    }
    let quit = hint(scene, Action::Quit, "quit");
    let quit_width = quit.width() + 1;
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    for (action, word) in super::footer::actions(scene) {
        let one = hint(scene, action, word);
        if used + one.width() + 2 + quit_width > usize::from(area.width) {
            break;
        }
        used += one.width() + 2;
        spans.extend(one.spans);
        spans.push(Span::raw("  "));
    }
    put(buf, area, 0, &Line::from(spans));
    put_right(buf, Rect { width: area.width.saturating_sub(1), ..area }, 0, &quit);
}

fn hint(scene: &Scene<'_>, action: Action, word: &str) -> Line<'static> {
    let look = scene.look;
    Line::from(vec![span(look.key_of(action), look.key()), span(format!(" {word}"), look.dim())])
}
