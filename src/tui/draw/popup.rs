//! What lies on top: help, made from the key table, and questions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};

use super::text::{left, panel, put, span, window, wrap};
use super::{HitMap, Scene};
use crate::tui::keys::{Action, Context};
use crate::tui::look::Look;
use crate::tui::state::{Ask, Popup};

/// Draw everything that lies on top, the last one uppermost.
pub fn draw(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, hits: &mut HitMap) {
    for popup in &scene.ui.popups {
        match *popup {
            Popup::Help { scroll } => help(scene, buf, area, scroll, hits),
            Popup::Confirm(ask) => confirm(scene.look, buf, area, ask),
            Popup::Palette => super::palette::draw(scene, buf, area),
            Popup::Sessions => super::browser::draw(&scene.ui.browser, scene.look, buf, area),
        }
    }
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// The lines of the help page: every action that has a key, by where it counts, what counts on this tab first.
fn help_lines(look: &Look, tab: Option<Context>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut contexts = [
        (Context::Everywhere, "everywhere"),
        (Context::Topology, "Topology tab"),
        (Context::Sweep, "Sweep tab"),
        (Context::Matrix, "Matrix tab"),
        (Context::Fits, "Fits tab"),
        (Context::Fans, "Fans tab"),
        (Context::Findings, "Findings tab"),
        (Context::Replay, "Replay tab"),
        (Context::Recorded, "recorded session"),
    ];
    contexts.sort_by_key(|(context, _)| Some(*context) != tab);
    for (context, heading) in contexts {
        lines.push(Line::from(span(heading, look.title())));
        for &action in Action::ALL.iter().filter(|action| action.context() == context) {
            let keys = look.all_keys_of(action);
            lines.push(Line::from(vec![span(format!("  {} ", left(&keys, 20)), look.key()), span(action.doc(), look.text())]));
        }
        lines.push(Line::default());
    }
    lines.push(Line::from(span("mouse", look.title())));
    for (what, does) in [
        ("move", "tell the cell under the pointer"),
        ("click", "go there"),
        ("drag", "select a block"),
        ("wheel", "scroll, or zoom the matrix"),
        ("released", "select text with it: what it did is the terminal's then"),
    ] {
        lines.push(Line::from(vec![span(format!("  {} ", left(what, 20)), look.key()), span(does, look.text())]));
    }
    lines
}

fn help(scene: &Scene<'_>, buf: &mut Buffer, area: Rect, scroll: usize, hits: &mut HitMap) {
    let look = scene.look;
    let lines = help_lines(look, scene.ui.tab.context());
    let area = middle(area, 78, lines.len() as u16 + 2);
    Clear.render(area, buf);
    buf.set_style(area, look.popup());
    let rows = usize::from(area.height.saturating_sub(2));
    hits.help_scroll = lines.len().saturating_sub(rows);
    let shown = window(scroll, lines.len(), rows);
    let more = if shown.end < lines.len() { " · more below" } else { "" };
    let inner = panel(buf, area, look, &Line::from(span(format!("keys{more}"), look.title())));
    for (row, line) in (0..).zip(lines.get(shown).unwrap_or(&[])) {
        put(buf, inner, row, line);
    }
}

fn confirm(look: &Look, buf: &mut Buffer, area: Rect, ask: Ask) {
    let (title, text) = match ask {
        Ask::Quit => {
            ("leave?", "A sweep is running. Leaving ends it; what is measured stays in the session, and --resume goes on from there.")
        }
        Ask::Abort => ("abort the sweep?", "What is measured stays in the session; the rest is not measured."),
        Ask::Execute => (
            "run this plan?",
            "Its bytes are moved between the ranks of this job, once to warm up and then timed, and compared. A sweep waits for it.",
        ),
    };
    let lines = wrap(text, 50);
    let area = middle(area, 54, lines.len() as u16 + 5);
    Clear.render(area, buf);
    buf.set_style(area, look.popup());
    let inner = panel(buf, area, look, &Line::from(span(title, look.warn())));
    for (row, line) in (0..).zip(&lines) {
        put(buf, inner, row, &Line::from(span(format!(" {line}"), look.text())));
    }
    let answer = Line::from(vec![
        span(" y", look.key()),
        span(" or ", look.dim()),
        span("enter", look.key()),
        span(" yes     ", look.text()),
        span("n", look.key()),
        span(" or ", look.dim()),
        span("esc", look.key()),
        span(" no", look.text()),
    ]);
    put(buf, inner, lines.len() as u16 + 1, &answer);
}
