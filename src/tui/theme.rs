//! Themes: names of what is on the screen -> styles.

use std::collections::BTreeMap;

use ratatui::style::Style;

use crate::ramp::Level;

/// A theme that cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("there is no theme {name:?}; did you mean {nearest:?}?")]
    Unknown { name: String, nearest: String },
}

/// The themes there are: built in, and a user's own before them.
#[derive(Debug, Clone, Default)]
pub struct Themes {
    user: BTreeMap<String, String>,
}

/// Styles by scope.
#[derive(Debug, Clone)]
pub struct Theme {
    name: String,
    level: Level,
}

impl Themes {
    /// With the texts of the user's theme files, by name.
    pub fn new(user: BTreeMap<String, String>) -> Self {
        Self { user }
    }

    /// Names of all themes, the built-in ones first.
    pub fn names(&self) -> Vec<String> {
        let _ = &self.user;
        Vec::new()
    }

    /// The theme after this one.
    pub fn next(&self, name: &str) -> String {
        name.to_owned()
    }

    /// A theme as a terminal can show it, and what was wrong in its file.
    pub fn load(&self, name: &str, level: Level) -> Result<(Theme, Vec<String>), ThemeError> {
        Ok((Theme { name: name.to_owned(), level }, Vec::new()))
    }
}

impl Theme {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The level it was loaded for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// True if its ground is dark.
    pub fn dark(&self) -> bool {
        true
    }

    /// Style of a scope, or of the nearest broader one.
    pub fn style(&self, _scope: &str) -> Style {
        Style::default()
    }
}
