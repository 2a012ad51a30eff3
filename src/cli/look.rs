//! What the screen is told about this person: theme, colours, keys. The only place that reads those files.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::args::{Color, Global};
use super::keep::Writer;
use super::shelf::Library;
use crate::config;
use crate::measure::Gate;
use crate::ramp::Level;
use crate::sample::MoverKind;
use crate::sweep::SweepSettings;
use crate::tui::{self, Feed, Keeper, Look, Setup, Tab, Tty};

/// Theme when nobody names one.
const THEME: &str = "dark";

/// The colour level that `--color` names; `None` for auto.
pub(super) fn level(color: Color) -> Option<Level> {
    match color {
        Color::Auto => None,
        Color::Truecolor => Some(Level::TrueColor),
        Color::Ansi256 => Some(Level::Ansi256),
        Color::Ansi16 => Some(Level::Ansi16),
        Color::None => Some(Level::None),
    }
}

/// This person's own theme files, by name.
pub(super) fn themes() -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(config::themes()) else { return BTreeMap::new() };
    let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "toml"));
    files
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            Some((name, fs::read_to_string(&path).ok()?))
        })
        .collect()
}

/// This person's own keys.
pub(super) fn keys() -> Result<Option<String>> {
    let read = |path: std::path::PathBuf| fs::read_to_string(&path).with_context(|| path.display().to_string());
    config::keys().map(read).transpose()
}

/// Theme and keys for a picture, or to tell about them.
pub(super) fn look(global: &Global, fallback: Level) -> Result<Look> {
    let theme = global.theme.as_deref().unwrap_or(THEME);
    let (look, warnings) = Look::new(theme, themes(), global.color.and_then(level).unwrap_or(fallback), keys()?.as_deref())?;
    for warning in warnings {
        tell(&format!("theme: {warning}"));
    }
    Ok(look)
}

fn tell(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "toposcope: {text}");
}

/// Who writes what screens want to keep, between the probes of this process where it has any.
pub(super) fn writer(global: &Global, gate: Option<Arc<Gate>>) -> Result<Writer> {
    Writer::start(super::efficiency::table(global)?, gate, config::sessions(&global.config))
}

/// All that a run of the screen needs.
pub(super) fn setup(
    global: &Global,
    feed: Box<dyn Feed>,
    keeper: Box<dyn Keeper>,
    tty: Tty,
    gate: Option<Arc<Gate>>,
    settings: SweepSettings,
    movers: Vec<MoverKind>,
) -> Result<Setup> {
    let efficiency = super::efficiency::table(global)?;
    Ok(Setup {
        feed,
        keeper,
        tty,
        gate,
        theme: global.theme.clone().unwrap_or_else(|| THEME.to_owned()),
        themes: themes(),
        color: global.color.and_then(level),
        keys: keys()?,
        settings,
        movers,
        efficiency,
        against: None,
        start_tab: global
            .config
            .word("first_tab")
            .and_then(|name| Tab::ALL.into_iter().find(|tab| tab.title().eq_ignore_ascii_case(&name))),
        mouse: !matches!(global.config.value("mouse"), Some(config::Value::Switch(false))),
        frames: global.config.word("frames_per_second").and_then(|word| word.parse().ok()).unwrap_or(tui::FRAMES),
        shelf: Some(Box::new(Library::new(config::sessions(&global.config)))),
        changed_themes: Some(Box::new(super::shelf::changed_themes())),
    })
}
