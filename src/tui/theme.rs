//! Themes: names of what is on the screen -> styles, in Helix's file format.
//!
//! Dotted scopes fall back to the broader scope, colours come from a `[palette]`, `inherits` names a parent. A bad entry is
//! a warning and the rest holds. Colours are turned into what the terminal can show when the theme is loaded.

mod downgrade;
mod file;

use std::collections::BTreeMap;

use ratatui::style::{Color, Style};

use crate::ramp::{Level, Rgb, xterm};
use crate::units::plain;

/// The built-in themes, by name.
const BUILT_IN: [(&str, &str); 4] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("contrast", include_str!("../../themes/contrast.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
];

/// Every scope that the program asks for.
pub const SCOPES: [&str; 32] = [
    "ui",
    "ui.text",
    "ui.text.dim",
    "ui.text.bright",
    "ui.border",
    "ui.border.focus",
    "ui.title",
    "ui.tab",
    "ui.tab.active",
    "ui.key",
    "ui.cursor",
    "ui.crosshair",
    "ui.popup",
    "ui.progress",
    "state.ok",
    "state.running",
    "state.paused",
    "state.warning",
    "state.error",
    "state.missing",
    "log.rank",
    "log.own",
    "curve",
    "curve.interval",
    "curve.fit",
    "curve.break",
    "curve.other",
    "curve.back",
    "finding.problem",
    "finding.warning",
    "finding.note",
    "finding.lit",
];

/// A theme that cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("there is no theme {name:?}; did you mean {nearest:?}?")]
    Unknown { name: String, nearest: String },
    #[error("theme {name:?} is not TOML: {message}")]
    Syntax { name: String, message: String },
    #[error("themes inherit from each other in a circle: {0}")]
    Cycle(String),
}

/// The themes there are: a user's own, read first, and the built-in ones.
#[derive(Debug, Clone, Default)]
pub struct Themes {
    user: BTreeMap<String, String>,
}

/// Styles by scope, for one level of colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    name: String,
    level: Level,
    styles: BTreeMap<String, Style>,
    ground: Rgb,
    text: Rgb,
}

impl Themes {
    /// With the texts of the user's theme files, by name (the file's without `.toml`).
    pub fn new(user: BTreeMap<String, String>) -> Self {
        Self { user }
    }

    /// Names of all themes, the built-in ones first.
    pub fn names(&self) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|(name, _)| (*name).to_owned());
        let own = self.user.keys().filter(|name| BUILT_IN.iter().all(|(known, _)| known != name)).cloned();
        built_in.chain(own).collect()
    }

    /// The theme after this one, round and round.
    pub fn next(&self, name: &str) -> String {
        let names = self.names();
        let at = names.iter().position(|known| known == name).map_or(0, |at| (at + 1) % names.len());
        names[at].clone()
    }

    /// A theme as a terminal can show it, and what was wrong in its file.
    pub fn load(&self, name: &str, level: Level) -> Result<(Theme, Vec<String>), ThemeError> {
        let mut warnings = Vec::new();
        let file = file::read(self, name, &mut warnings)?;
        let full = file.styles(&mut warnings);
        let ui = full.get("ui").copied().unwrap_or_default();
        let ground = ui.bg.and_then(rgb_of).unwrap_or(Rgb(0, 0, 0));
        let text = ui.fg.and_then(rgb_of).unwrap_or(Rgb(255, 255, 255));
        let styles = full.into_iter().map(|(scope, style)| (scope, downgrade::style(style, ground, level))).collect();
        Ok((Theme { name: plain(name), level, styles, ground, text }, warnings))
    }

    fn text(&self, name: &str) -> Option<&str> {
        let built_in = || BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        self.user.get(name).map(String::as_str).or_else(built_in)
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
        self.ground.oklab()[0] < 0.5
    }

    /// Colour of the ground, in numbers whatever the level.
    pub fn ground(&self) -> Rgb {
        self.ground
    }

    /// Colour of plain text, in numbers whatever the level.
    pub fn text(&self) -> Rgb {
        self.text
    }

    /// Style of a scope, or of the nearest broader one; plain if there is none.
    pub fn style(&self, scope: &str) -> Style {
        resolve(&self.styles, scope).unwrap_or_default()
    }
}

/// `ui.text.dim`, else `ui.text`, else `ui`.
fn resolve(styles: &BTreeMap<String, Style>, scope: &str) -> Option<Style> {
    let mut scope = scope;
    loop {
        if let Some(style) = styles.get(scope) {
            return Some(*style);
        }
        scope = scope.rsplit_once('.')?.0;
    }
}

/// A colour in numbers; `None` for the terminal's own.
pub(super) fn rgb_of(color: Color) -> Option<Rgb> {
    Some(match color {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => Rgb(r, g, b),
        Color::Indexed(index) => xterm(index),
        named => xterm(downgrade::SIXTEEN.iter().position(|&known| known == named)? as u8),
    })
}

/// One of the 16 colours by its number.
pub(super) fn sixteen(index: u8) -> Color {
    downgrade::SIXTEEN[usize::from(index & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Modifier;

    use crate::ramp::contrast;

    const LEVELS: [Level; 4] = [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None];

    fn themes(files: &[(&str, &str)]) -> Themes {
        Themes::new(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn every_file_in_themes_is_embedded_and_without_fault() {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/themes")).unwrap() {
            let path = entry.unwrap().path();
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
        names.sort();
        let mut known = Themes::default().names();
        known.sort();
        assert_eq!(names, known);
        for (name, level) in names.iter().flat_map(|name| LEVELS.map(|level| (name, level))) {
            let (theme, warnings) = Themes::default().load(name, level).unwrap();
            assert_eq!(warnings, [""; 0], "{name}");
            for scope in SCOPES {
                assert!(resolve(&theme.styles, scope).is_some(), "{name} has no {scope}");
            }
        }
    }

    #[test]
    fn every_scope_that_a_source_file_asks_for_is_listed() {
        fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { files(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        files(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tui")), &mut found);
        let call = concat!(".sty", "le(\"");
        for path in found.iter().filter(|path| path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tui/theme.rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            for rest in text.split(call).skip(1) {
                let scope = rest.split('"').next().unwrap();
                assert!(SCOPES.contains(&scope), "{}: {scope} is not in SCOPES", path.display());
            }
        }
    }

    #[test]
    fn text_of_every_theme_can_be_read() {
        for name in Themes::default().names() {
            let (theme, _) = Themes::default().load(&name, Level::TrueColor).unwrap();
            for scope in SCOPES {
                let style = theme.style(scope);
                let fg = style.fg.and_then(rgb_of).unwrap();
                let ground = style.bg.and_then(rgb_of).unwrap_or(theme.ground());
                // Borders are lines, not text.
                let wanted = if scope.starts_with("ui.border") { 2.0 } else { 4.5 };
                assert!(contrast(fg, ground) >= wanted, "{name} {scope}: {:.2}", contrast(fg, ground));
            }
        }
        let (contrast_theme, _) = Themes::default().load("contrast", Level::TrueColor).unwrap();
        assert!(contrast(rgb_of(contrast_theme.style("ui.text.dim").fg.unwrap()).unwrap(), contrast_theme.ground()) >= 7.0);
    }

    #[test]
    fn scopes_fall_back_and_children_override_the_palette() {
        let themes = themes(&[("mine", "inherits = 'dark'\n\"ui.key\" = 'accent'\n[palette]\naccent = '#010203'")]);
        let (theme, warnings) = themes.load("mine", Level::TrueColor).unwrap();
        assert_eq!(warnings, [""; 0]);
        assert_eq!(theme.style("ui.key").fg, Some(Color::Rgb(1, 2, 3)));
        assert_eq!(theme.style("ui.progress").fg, Some(Color::Rgb(1, 2, 3)));
        assert_eq!(theme.style("ui.key.of.something"), theme.style("ui.key"));
        assert_eq!(theme.style("nothing"), Style::default());
    }

    #[test]
    fn a_bad_entry_is_a_warning_and_the_rest_holds() {
        let themes = themes(&[(
            "mine",
            "inherits = 'dark'\n\"ui.key\" = 'mauve'\n\"ui.tab\" = {fg = '#12', modifiers = ['bald']}\ncurve = 3\n\"ui.text\" = '#00ff00'\nuy = 'text'\n[palette]\nx = '#xyzxyz'",
        )]);
        let (theme, warnings) = themes.load("mine", Level::TrueColor).unwrap();
        assert_eq!(theme.style("ui.text").fg, Some(Color::Rgb(0, 255, 0)));
        for part in ["mauve", "#12", "bald", "curve", "uy", "#xyzxyz"] {
            assert_eq!(warnings.iter().filter(|warning| warning.contains(part)).count(), 1, "{part}: {warnings:?}");
        }
        assert_eq!(warnings.len(), 6);
    }

    #[test]
    fn what_cannot_be_loaded_says_why() {
        let themes = themes(&[("a", "inherits = 'b'"), ("b", "inherits = 'a'"), ("c", "inherits = 'drak'"), ("d", "[")]);
        let error = |name| themes.load(name, Level::None).unwrap_err().to_string();
        assert_eq!(error("lihgt"), "there is no theme \"lihgt\"; did you mean \"light\"?");
        assert_eq!(error("a"), "themes inherit from each other in a circle: a, b, a");
        assert!(error("c").contains("did you mean \"dark\"?"));
        assert!(error("d").starts_with("theme \"d\" is not TOML"));
    }

    #[test]
    fn a_user_s_theme_goes_before_a_built_in_one_and_joins_the_round() {
        let themes = themes(&[("dark", "ui = {fg = '#ffffff', bg = '#202020'}"), ("zebra", "inherits = 'mono'")]);
        assert_eq!(themes.load("dark", Level::TrueColor).unwrap().0.ground(), Rgb(32, 32, 32));
        assert_eq!(themes.names(), ["dark", "light", "contrast", "mono", "zebra"]);
        assert_eq!((themes.next("mono").as_str(), themes.next("zebra").as_str(), themes.next("gone").as_str()), ("zebra", "dark", "dark"));
    }

    #[test]
    fn without_colour_modifiers_tell_apart_what_colour_told() {
        let (theme, _) = Themes::default().load("dark", Level::None).unwrap();
        for scope in SCOPES {
            let style = theme.style(scope);
            assert_eq!((style.fg, style.bg), (None, None), "{scope}");
        }
        assert!(theme.style("ui.text.dim").add_modifier.contains(Modifier::DIM));
        assert!(theme.style("state.error").add_modifier.contains(Modifier::BOLD));
        assert_ne!(theme.style("ui.tab"), theme.style("ui.tab.active"));
    }

    #[test]
    fn few_colours_leave_the_ground_to_the_terminal() {
        for name in ["dark", "light"] {
            let (theme, _) = Themes::default().load(name, Level::Ansi16).unwrap();
            assert_eq!((theme.style("ui").fg, theme.style("ui").bg), (Some(Color::Reset), Some(Color::Reset)), "{name}");
            assert_eq!(theme.style("ui.text.dim").fg, Some(Color::DarkGray), "{name}");
            assert!(
                matches!(theme.style("state.error").fg, Some(Color::Red | Color::LightRed)),
                "{name} {:?}",
                theme.style("state.error").fg
            );
        }
        let (theme, _) = Themes::default().load("dark", Level::Ansi256).unwrap();
        assert!(matches!(theme.style("ui.key").fg, Some(Color::Indexed(16..))));
    }
}
