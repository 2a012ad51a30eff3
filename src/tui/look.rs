//! How the screen looks and which keys it takes: a theme for this terminal's colours, and a keymap.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::feed::TuiError;
use super::keys::{Action, Keymap};
use super::theme::{Theme, Themes};
use super::view::Rates;
use super::widgets::curve::{self, CurveView, Point};
use crate::diagnose::Severity;
use crate::ramp::Level;
use crate::session::SizeCell;

/// A theme and a keymap in use.
#[derive(Debug, Clone)]
pub struct Look {
    pub theme: Theme,
    pub keymap: Keymap,
    themes: Themes,
}

impl Look {
    /// The theme called `theme`, for a terminal that can show `level`; and what was wrong in its file.
    pub fn new(theme: &str, own: BTreeMap<String, String>, level: Level, keys: Option<&str>) -> Result<(Self, Vec<String>), TuiError> {
        let keymap = Keymap::load(keys)?;
        let themes = Themes::new(own);
        let (theme, warnings) = themes.load(theme, level)?;
        Ok((Self { theme, keymap, themes }, warnings))
    }

    /// Take the next theme that can be used; what was wrong with it or with those passed over.
    pub fn next_theme(&mut self) -> Vec<String> {
        let mut name = self.theme.name().to_owned();
        let mut warnings = Vec::new();
        for _ in self.themes.names() {
            name = self.themes.next(&name);
            match self.themes.load(&name, self.theme.level()) {
                Ok((theme, more)) => {
                    self.theme = theme;
                    warnings.extend(more);
                    break;
                }
                Err(error) => warnings.push(error.to_string()),
            }
        }
        warnings
    }

    /// Names of all themes.
    pub fn theme_names(&self) -> Vec<String> {
        self.themes.names()
    }

    /// Take the theme called so; what was wrong in its file, or why it cannot be used.
    pub fn take_theme(&mut self, name: &str) -> Result<Vec<String>, String> {
        let (theme, warnings) = self.themes.load(name, self.theme.level()).map_err(|error| error.to_string())?;
        self.theme = theme;
        Ok(warnings)
    }

    /// The person's theme files are others now: take the one in use again, if it can be used; what is wrong is told. `None` if it is the
    /// same as before.
    pub fn renew_themes(&mut self, own: BTreeMap<String, String>) -> Option<Vec<String>> {
        self.themes = Themes::new(own);
        let name = self.theme.name().to_owned();
        match self.themes.load(&name, self.theme.level()) {
            Ok((theme, warnings)) => {
                let same = theme == self.theme;
                self.theme = theme;
                (!same || !warnings.is_empty()).then_some(warnings)
            }
            // What was seen until now stays.
            Err(error) => Some(vec![error.to_string()]),
        }
    }

    /// The first key of an action, as it is written; `–` without one.
    pub fn key_of(&self, action: Action) -> String {
        self.keymap.keys_of(action).first().map_or_else(|| "–".to_owned(), ToString::to_string)
    }

    /// All keys of an action, as they are written; `–` without one.
    pub fn all_keys_of(&self, action: Action) -> String {
        let keys: Vec<String> = self.keymap.keys_of(action).iter().map(ToString::to_string).collect();
        if keys.is_empty() { "–".to_owned() } else { keys.join(" ") }
    }

    /// Draw a cell's bandwidth over message size.
    pub fn curve(&self, sizes: &[SizeCell], marked: u64, rates: Rates, buf: &mut Buffer, area: Rect) {
        let points: Vec<Point> = sizes
            .iter()
            .map(|size| Point { bytes: size.bytes, bandwidth: size.bandwidth(), interval: size.bandwidth_interval() })
            .collect();
        curve::draw(&CurveView { points: &points, marked: Some(marked), unit: rates.0, theme: &self.theme }, area, buf);
    }
}

/// One line for each scope that panels draw with.
impl Look {
    /// A style that keeps the ground it is drawn on: a popup's is not the screen's.
    fn on_any_ground(&self, style: Style) -> Style {
        if style.bg == self.ground().bg { Style { bg: None, ..style } } else { style }
    }

    pub fn ground(&self) -> Style {
        self.theme.style("ui")
    }
    pub fn text(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.text"))
    }
    pub fn dim(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.text.dim"))
    }
    pub fn strong(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.text.bright"))
    }
    pub fn border(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.border"))
    }
    pub fn title(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.title"))
    }
    pub fn accent(&self) -> Style {
        self.on_any_ground(self.theme.style("state.running"))
    }
    pub fn tab(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.tab"))
    }
    pub fn tab_active(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.tab.active"))
    }
    pub fn key(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.key"))
    }
    pub fn typing(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.text.bright"))
    }
    pub fn selected(&self) -> Style {
        self.theme.style("ui.cursor").add_modifier(ratatui::style::Modifier::REVERSED)
    }
    pub fn popup(&self) -> Style {
        self.theme.style("ui.popup")
    }
    pub fn bar(&self) -> Style {
        self.on_any_ground(self.theme.style("ui.progress"))
    }
    pub fn good(&self) -> Style {
        self.on_any_ground(self.theme.style("state.ok"))
    }
    pub fn warn(&self) -> Style {
        self.on_any_ground(self.theme.style("state.warning"))
    }
    pub fn error(&self) -> Style {
        self.on_any_ground(self.theme.style("state.error"))
    }
    /// The mark and the amount of a finding.
    pub fn finding(&self, severity: Severity) -> Style {
        self.on_any_ground(match severity {
            Severity::Problem => self.theme.style("finding.problem"),
            Severity::Warning => self.theme.style("finding.warning"),
            Severity::Note => self.theme.style("finding.note"),
        })
    }
    /// What the chosen finding is of, on other tabs.
    pub fn lit(&self) -> Style {
        self.on_any_ground(self.theme.style("finding.lit"))
    }
    pub fn own(&self) -> Style {
        self.on_any_ground(self.theme.style("log.own"))
    }
    pub fn rank_lines(&self) -> Style {
        self.on_any_ground(self.theme.style("log.rank"))
    }
}
