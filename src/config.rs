//! Search paths: where sessions, themes and keys of this person lie; and the settings that hold for them.

mod file;
mod table;

use std::path::{Path, PathBuf};

pub use file::{Config, ConfigError, defaults};
pub use table::Value;

fn home(variable: &str, below_home: &str) -> PathBuf {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let fallback = || std::env::var_os("HOME").map_or_else(std::env::temp_dir, |home| Path::new(&home).join(below_home));
    set.unwrap_or_else(fallback).join("toposcope")
}

/// File of this person's own settings: `$XDG_CONFIG_HOME/toposcope/config.toml`, whether there is one or not.
pub fn settings() -> PathBuf {
    home("XDG_CONFIG_HOME", ".config").join("config.toml")
}

/// The settings that hold here: this person's file, and the environment before it.
pub fn load() -> Result<Config, ConfigError> {
    load_from(&settings(), |name| std::env::var(name).ok())
}

/// The settings of a file, which need not be there, and of an environment before it.
pub fn load_from(path: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => None,
        Err(error) => return Err(ConfigError::Unread { path: path.display().to_string(), message: error.to_string() }),
    };
    Config::load(text.as_deref(), path, variable)
}

/// Folder that new sessions are made in: `$XDG_DATA_HOME/toposcope/sessions`, unless the settings name another.
pub fn sessions(config: &Config) -> PathBuf {
    config.word("sessions").map_or_else(|| home("XDG_DATA_HOME", ".local/share").join("sessions"), PathBuf::from)
}

/// Folder of this person's own themes, read before the built-in ones: `$XDG_CONFIG_HOME/toposcope/themes`.
pub fn themes() -> PathBuf {
    home("XDG_CONFIG_HOME", ".config").join("themes")
}

/// File of this person's own keys: `$XDG_CONFIG_HOME/toposcope/keys.toml`, if there is one.
pub fn keys() -> Option<PathBuf> {
    Some(home("XDG_CONFIG_HOME", ".config").join("keys.toml")).filter(|path| path.exists())
}

/// File of this person's own efficiencies of links: `$XDG_CONFIG_HOME/toposcope/efficiency.toml`, whether there is one or not.
pub fn efficiency() -> PathBuf {
    home("XDG_CONFIG_HOME", ".config").join("efficiency.toml")
}

/// A new session's folder within `folder`: `<site>-<nodes>x<ranks>-<date>`, with a number if it is taken.
pub fn new_session(folder: &Path, host: &str, nodes: usize, ranks: usize) -> PathBuf {
    // node007 and node12 are both of the site "node".
    let site: String = host
        .split('.')
        .next()
        .unwrap_or(host)
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
        .collect();
    let site = site.trim_matches('-');
    let site = if site.is_empty() { "host" } else { site };
    let date = jiff::ZonedDateTime::now().strftime("%Y-%m-%d-%H%M%S");
    let name = format!("{site}-{nodes}x{ranks}-{date}");
    let mut path = folder.join(&name);
    let mut number = 2;
    while path.exists() {
        path = folder.join(format!("{name}-{number}"));
        number += 1;
    }
    path
}
