//! What is told on the tab in sight, as plain lines for the clipboard: the words of the screen, whatever its size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{HitMap, Scene, changes, fan, finding, fit_detail, inspector, replay, route, session, sweep};
use crate::tui::findings::FindingsSight;
use crate::tui::state::Tab;

/// Paper that holds all that is told of one thing; curves are no text.
const PAPER: (u16, u16) = (110, 60);

/// The lines; none where nothing is told.
pub fn facts_text(scene: &Scene<'_>) -> Vec<String> {
    let area = Rect::new(0, 0, PAPER.0, PAPER.1);
    let mut paper = Buffer::empty(area);
    let mut hits = HitMap::default();
    match (scene.ui.tab, scene.desk.told()) {
        (Tab::Topology, _) => route::draw(scene, &mut paper, area),
        (Tab::Sweep, _) => sweep::draw(scene, &mut paper, area, &mut hits),
        (Tab::Matrix, _) => inspector::draw(scene, &mut paper, area, &mut hits),
        (Tab::Fits, _) => fit_detail::draw(scene, &mut paper, area, &mut hits),
        (Tab::Fans, _) => fan::draw(scene, &mut paper, area, scene.fans.direction(&scene.ui.fans), &mut hits),
        (Tab::Findings, Some(told)) => match scene.ui.findings.sight {
            FindingsSight::Findings => finding::draw(scene, told, &mut paper, area, &mut hits),
            FindingsSight::Silenced => finding::draw_silenced(scene, told, &mut paper, area, &mut hits),
            FindingsSight::Changes => changes::detail(scene, told, &mut paper, area, &mut hits),
        },
        (Tab::Findings, None) => {}
        (Tab::Replay, _) => replay::draw(scene, &mut paper, area, &mut hits),
        (Tab::Session, _) => session::draw_facts_alone(scene, &mut paper, area, &mut hits),
    }
    lines(&paper)
}

/// Rows without frames, curves and empty ones.
fn lines(paper: &Buffer) -> Vec<String> {
    let frame = |c: char| matches!(c, '\u{2500}'..='\u{257f}');
    let drawn = |c: char| matches!(c, '\u{2580}'..='\u{259f}' | '\u{2800}'..='\u{28ff}');
    let mut lines: Vec<String> = Vec::new();
    for y in 0..paper.area.height {
        let row: String = (0..paper.area.width).map(|x| paper[(x, y)].symbol()).collect();
        // Nor are the sizes below a curve, which say nothing without it.
        let size = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['i', 'B']);
        let axis = row.split_whitespace().all(|word| size(word) || word.chars().all(frame));
        if axis || row.chars().any(drawn) {
            continue;
        }
        let line = row.trim_matches(|c: char| frame(c) || c.is_whitespace()).trim_end();
        if !line.is_empty() {
            lines.push(line.to_owned());
        }
    }
    lines
}
