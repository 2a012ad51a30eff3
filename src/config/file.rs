//! `config.toml` and the variables that go before it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::table::{AUTO, KEYS, Key, Value};
use crate::units::plain;

/// A file or a variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{place}: {message}")]
    Syntax { place: String, message: String },
    #[error("{place}: there is no setting {name:?}; did you mean {nearest:?}? (toposcope --print-config writes all of them)")]
    Unknown { place: String, name: String, nearest: &'static str },
    #[error("{place}: {name} = {found}: expected {expected}")]
    Wrong { place: String, name: String, found: String, expected: String },
    #[error("{path}: {message}")]
    Unread { path: String, message: String },
}

/// What this person set that is not the default, and where.
#[derive(Debug, Clone, Default)]
pub struct Config {
    set: BTreeMap<&'static str, (Value, String)>,
}

impl PartialEq for Config {
    /// The same settings, wherever they were set.
    fn eq(&self, other: &Self) -> bool {
        let values = |config: &Self| config.set.iter().map(|(&name, (value, _))| (name, value.clone())).collect::<Vec<_>>();
        values(self) == values(other)
    }
}

impl Config {
    /// The settings of a file's text, with variables of the environment over them; `path` is what the file is called in errors.
    pub fn load(text: Option<&str>, path: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if let Some(text) = text {
            config.read(text, &plain(&path.display().to_string()))?;
        }
        for key in &KEYS {
            let name = key.variable();
            // An empty variable is one that was taken back.
            let Some(text) = variable(&name).filter(|text| !text.is_empty()) else { continue };
            let Some(value) = key.parse(&text) else {
                let found = format!("{:?}", plain(&text));
                return Err(ConfigError::Wrong { place: "environment".to_owned(), name, found, expected: key.expected() });
            };
            config.put(key, value, name);
        }
        Ok(config)
    }

    fn read(&mut self, text: &str, path: &str) -> Result<(), ConfigError> {
        let at = |byte: usize| format!("{path}:{}", text.get(..byte).unwrap_or(text).matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            place: at(error.span().map_or(0, |span| span.start)),
            message: plain(&error.message().replace('\n', " ")),
        })?;
        for (name, value) in table.get_ref() {
            if let (true, Some(inner)) = (is_table(name.get_ref()), value.get_ref().as_table()) {
                for (below, value) in inner {
                    let whole = format!("{}.{}", name.get_ref(), below.get_ref());
                    self.take(&whole, value.get_ref(), at(below.span().start), &text[value.span()])?;
                }
            } else {
                self.take(name.get_ref(), value.get_ref(), at(name.span().start), &text[value.span()])?;
            }
        }
        Ok(())
    }

    fn take(&mut self, name: &str, value: &DeValue<'_>, place: String, written: &str) -> Result<(), ConfigError> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let nearest = nearest(name);
            return Err(ConfigError::Unknown { place, name: plain(name), nearest });
        };
        let value = match value {
            DeValue::String(text) => Some(Value::Text(text.to_string())),
            DeValue::Boolean(on) => Some(Value::Switch(*on)),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok().map(Value::Number),
            DeValue::Float(number) => number.as_str().parse().ok().map(Value::Number),
            _ => None,
        };
        let Some(value) = value.filter(|value| key.takes(value)) else {
            let found = plain(&written.replace('\n', " "));
            return Err(ConfigError::Wrong { place, name: name.to_owned(), found, expected: key.expected() });
        };
        self.put(key, value, place);
        Ok(())
    }

    /// The default is nothing set: whoever asks has it.
    fn put(&mut self, key: &Key, value: Value, place: String) {
        if value.to_string() == key.default {
            self.set.remove(key.name);
        } else {
            self.set.insert(key.name, (value, place));
        }
    }

    /// What was set, if it is not the default.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.set.get(name).map(|(value, _)| value).filter(|value| **value != Value::Text(AUTO.to_owned()))
    }

    /// What was set, as a word of the command line.
    pub fn word(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| match value {
            Value::Text(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// File and line, or the variable, that set it.
    pub fn place(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(|(_, place)| place.as_str())
    }

    /// Every setting that is not the default: its name, its value, and the place that set it.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, &Value, &str)> {
        self.set.iter().map(|(&name, (value, place))| (name, value, place.as_str()))
    }
}

fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.split_once('.').is_some_and(|(table, _)| table == name))
}

/// The setting that shares the most letters with what was written: a person who forgot the table, or a letter.
fn nearest(name: &str) -> &'static str {
    let last = name.rsplit('.').next().unwrap_or(name);
    let shared = |key: &Key| {
        let own = key.name.rsplit('.').next().unwrap_or(key.name);
        let front = own.chars().zip(last.chars()).take_while(|(a, b)| a == b).count();
        let back = own.chars().rev().zip(last.chars().rev()).take_while(|(a, b)| a == b).count();
        let length = own.len().max(last.len());
        (length - (front + back).min(length), key.name != name)
    };
    KEYS.iter().min_by_key(|key| shared(key)).map_or("theme", |key| key.name)
}

/// Every setting with its default and what it means, as a file to start from.
pub fn defaults() -> String {
    let mut text = "\
# Settings of toposcope: ~/.config/toposcope/config.toml ($XDG_CONFIG_HOME/toposcope/config.toml). What stands here is what holds
# without the file. An option of the command line goes before the environment, that before this file; variables are called after
# the settings: TOPOSCOPE_THEME, TOPOSCOPE_SWEEP_SIZES.
"
    .to_owned();
    let mut table = "";
    for key in &KEYS {
        let (own, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if own != table {
            table = own;
            let _ = write!(text, "\n# What a new sweep begins with\n[{table}]\n");
        }
        let _ = write!(text, "\n# {}\n{name} = {}\n", key.doc, key.default);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        Config::load(Some(text), Path::new("/c/config.toml"), |_| None)
    }

    #[test]
    fn what_is_printed_is_read_back_as_the_same_settings() {
        let text = defaults();
        for key in &KEYS {
            assert!(text.contains(&format!("\n# {}\n", key.doc)), "{}", key.name);
        }
        assert_eq!(load(&text).unwrap(), Config::default());
        // Each line counts: with another value the settings are others.
        let other = text.replace("warmup = 1", "warmup = 3").replace("mouse = true", "mouse = false");
        let other = load(&other).unwrap();
        assert_eq!((other.word("sweep.warmup").as_deref(), other.value("mouse")), (Some("3"), Some(&Value::Switch(false))));
        assert_ne!(other, Config::default());
    }

    #[test]
    fn every_default_is_a_value_of_its_setting() {
        for key in &KEYS {
            let text = key.default.trim_matches('"');
            assert_eq!(key.parse(text).map(|value| value.to_string()).as_deref(), Some(key.default), "{}", key.name);
        }
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let text = "theme = 'light'\n[sweep]\nsizes = '1M'\nci = 0.02\n";
        let variable = |name: &str| match name {
            "TOPOSCOPE_THEME" => Some("mono".to_owned()),
            "TOPOSCOPE_SWEEP_CI" => Some(AUTO.to_owned()),
            "TOPOSCOPE_COLOR" => Some(String::new()),
            _ => None,
        };
        let config = Config::load(Some(text), Path::new("c"), variable).unwrap();
        assert_eq!((config.word("theme").as_deref(), config.place("theme")), (Some("mono"), Some("TOPOSCOPE_THEME")));
        assert_eq!((config.word("sweep.sizes").as_deref(), config.place("sweep.sizes")), (Some("1M"), Some("c:3")));
        assert_eq!((config.word("sweep.ci"), config.word("color")), (None, None));
        let error = Config::load(None, Path::new("c"), |name| (name == "TOPOSCOPE_MOUSE").then(|| "maybe".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "environment: TOPOSCOPE_MOUSE = \"maybe\": expected true or false");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_was_expected() {
        let error = |text: &str| load(text).unwrap_err().to_string();
        assert_eq!(error("\ncolor = \"blue\""), "/c/config.toml:2: color = \"blue\": expected auto, truecolor, 256, 16, none");
        assert_eq!(error("frames_per_second = 0"), "/c/config.toml:1: frames_per_second = 0: expected a whole number from 1 to 60");
        assert_eq!(error("frames_per_second = 2.5"), "/c/config.toml:1: frames_per_second = 2.5: expected a whole number from 1 to 60");
        assert!(error("[sweep]\n\nsizes = [1, 2]").starts_with("/c/config.toml:3: sweep.sizes = [1, 2]: expected auto, sizes"));
        assert!(error("[sweep]\nci = 1").ends_with("expected auto, or a share above 0 and below 1, such as 0.05"));
        assert!(error("[sweep]\npatterns = 'pear'").contains("expected patterns such as"));
        assert!(error("[sweep]\ntimeout = '-1s'").contains("expected a time such as"));
        assert!(error("sessions = 'here'").contains("a folder's whole path"));
        assert!(error("theem = 'x'").contains("no setting \"theem\"; did you mean \"theme\"?"));
        assert!(error("sizes = '1M'").contains("did you mean \"sweep.sizes\"?"));
        assert!(error("sweep = 3").contains("no setting \"sweep\""));
        assert!(error("a = 1\ntheme = [").starts_with("/c/config.toml:2: "), "{}", error("a = 1\ntheme = ["));
        // Names in files are data.
        assert!(!error("\"\\u001b[2J\" = 1").contains('\u{1b}'));
    }
}
