//! Where the person was: view changes taken back and made again.

use std::collections::VecDeque;

use super::atlas::TopologyPanel;
use super::findings::FindingsPanel;
use super::state::{FansPanel, FitsPanel, MatrixPanel, SessionPanel, Tab, Ui};

/// Changes that are remembered.
const MOST: usize = 200;

/// What is looked at, and how. What is measured, typed or run is no part of it.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    tab: Tab,
    topology: TopologyPanel,
    matrix: MatrixPanel,
    fits: FitsPanel,
    fans: FansPanel,
    findings: FindingsPanel,
    session: SessionPanel,
}

impl Place {
    fn of(ui: &Ui) -> Self {
        let mut place = Self {
            tab: ui.tab,
            topology: ui.topology.clone(),
            matrix: ui.matrix.clone(),
            fits: ui.fits.clone(),
            fans: ui.fans.clone(),
            findings: ui.findings.clone(),
            session: ui.session.clone(),
        };
        place.topology.settle();
        (place.fits.typing, place.matrix.typing) = (None, None);
        place
    }

    fn put(self, ui: &mut Ui) {
        ui.tab = self.tab;
        ui.topology.go_back(self.topology);
        ui.matrix = self.matrix;
        ui.fits = self.fits;
        ui.fans = self.fans;
        ui.findings = self.findings;
        ui.session = self.session;
    }

    /// The same without cursors and scrolls: two that differ in nothing else are one step.
    fn still(mut self) -> Self {
        self.topology.put(0);
        let at = MatrixPanel::default();
        self.matrix = MatrixPanel { cursor: at.cursor, scroll: 0, pinned: false, suspect: None, ..self.matrix };
        (self.fits.at, self.fits.scroll) = (0, 0);
        let first = FansPanel::default();
        self.fans = FansPanel { entry: first.entry, fan: first.fan, scroll: first.scroll, ..self.fans };
        self.findings.home();
        (self.session.scroll, self.session.facts) = (0, 0);
        self
    }
}

/// View changes, the last one last.
#[derive(Debug, Default)]
pub struct Past {
    now: Option<Place>,
    back: VecDeque<Place>,
    forth: Vec<Place>,
    /// the last change was a move of a cursor; the next one joins it
    moving: bool,
}

impl Past {
    /// The person is here before something is done: what moved by itself is nobody's change.
    pub fn arrive(&mut self, ui: &Ui) {
        self.now = Some(Place::of(ui));
    }

    /// Take note of where the person is now.
    pub fn note(&mut self, ui: &Ui) {
        let place = Place::of(ui);
        let Some(now) = self.now.take() else {
            self.now = Some(place);
            return;
        };
        if now == place {
            self.now = Some(now);
            return;
        }
        let moves = now.clone().still() == place.clone().still();
        if !(moves && self.moving) {
            self.back.push_back(now);
            if self.back.len() > MOST {
                self.back.pop_front();
            }
        }
        self.moving = moves;
        self.forth.clear();
        self.now = Some(place);
    }

    /// Go back to before the last change, or forth again; false if there is none.
    pub fn step(&mut self, ui: &mut Ui, back: bool) -> bool {
        let there = if back { self.back.pop_back() } else { self.forth.pop() };
        let Some(there) = there else { return false };
        let here = self.now.replace(there.clone()).unwrap_or_else(|| Place::of(ui));
        if back {
            self.forth.push(here);
        } else {
            self.back.push_back(here);
        }
        there.put(ui);
        self.moving = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::matrix::Metric;
    use crate::tui::fixture::{app, b70, boxed, press};
    use crate::tui::{App, Mode, Tab};

    fn live(tab: Tab) -> App {
        app(b70(), tab, crate::ramp::Level::TrueColor, Mode::Live)
    }

    #[test]
    fn view_changes_are_taken_back_one_by_one_and_made_again() {
        let mut app = live(Tab::Matrix);
        let first = app.ui.matrix.cursor;
        press(&mut app, "m S z 4");
        let last = (app.ui.tab, app.ui.matrix.clone());
        press(&mut app, "u");
        assert_eq!(app.ui.tab, Tab::Matrix);
        press(&mut app, "u u u");
        assert_eq!((app.ui.matrix.metric, app.ui.matrix.size, app.ui.matrix.cursor), (Metric::Bandwidth, None, first));
        press(&mut app, "u");
        assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.contains("nothing to take back")), "{:?}", app.ui.notice);
        press(&mut app, "U U U U");
        assert_eq!((app.ui.tab, app.ui.matrix.clone()), last);
        // A new change ends what could be made again.
        press(&mut app, "u 5 U");
        assert_eq!(app.ui.tab, Tab::Fans);
    }

    #[test]
    fn moves_of_the_cursor_are_one_step() {
        let mut app = live(Tab::Matrix);
        press(&mut app, "m j j l l j u");
        assert_eq!((app.ui.matrix.metric, app.ui.matrix.cursor), (Metric::SmallTime, (0, 1)));
        press(&mut app, "u");
        assert_eq!(app.ui.matrix.metric, Metric::Bandwidth);
        press(&mut app, "U U");
        assert_eq!(app.ui.matrix.cursor, (3, 3));
    }

    #[test]
    fn what_was_folded_unfolds_and_filters_come_back() {
        let mut app = app(boxed(), Tab::Topology, crate::ramp::Level::TrueColor, Mode::Live);
        crate::tui::fixture::frame(&mut app, 120, 40);
        press(&mut app, "g");
        let rows = app.atlas().rows().len();
        press(&mut app, "enter");
        crate::tui::fixture::frame(&mut app, 120, 40);
        assert_ne!(app.atlas().rows().len(), rows);
        press(&mut app, "u");
        crate::tui::fixture::frame(&mut app, 120, 40);
        assert_eq!(app.atlas().rows().len(), rows);
        press(&mut app, "4 / p e e r enter u");
        assert_eq!((app.ui.fits.filter.as_str(), app.ui.tab), ("", Tab::Fits), "what was typed is one change");
        press(&mut app, "U");
        assert_eq!(app.ui.fits.filter, "peer");
    }

    #[test]
    fn a_find_goes_back_without_its_line() {
        let mut app = live(Tab::Matrix);
        press(&mut app, "/ 2 enter");
        let there = app.ui.matrix.cursor;
        press(&mut app, "u");
        assert!(app.ui.matrix.typing.is_none() && app.ui.matrix.cursor != there, "{:?}", app.ui.matrix);
        press(&mut app, "U");
        assert!(app.ui.matrix.typing.is_none() && app.ui.matrix.cursor == there, "{:?}", app.ui.matrix);
    }

    #[test]
    fn the_past_is_bounded() {
        let mut app = live(Tab::Matrix);
        for _ in 0..super::MOST + 50 {
            press(&mut app, "x");
        }
        for _ in 0..super::MOST {
            press(&mut app, "u");
            assert!(app.ui.notice.as_ref().is_none_or(|notice| !notice.refusal));
        }
        press(&mut app, "u");
        assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.contains("nothing to take back")));
    }
}
