//! Every default that a person may set: its name, what it may be, and what it means.

use std::fmt;

use crate::sample::Pattern;
use crate::units::{parse_size, parse_sizes, plain};

/// The word for what the program finds out by itself.
pub(super) const AUTO: &str = "auto";

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Number(f64),
    Switch(bool),
}

impl fmt::Display for Value {
    /// As TOML writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", toml::Value::String(text.clone())),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

/// What a setting may be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// one of these words
    Word(&'static [&'static str]),
    /// a text that a check takes; what was expected where it does not
    Text(fn(&str) -> bool, &'static str),
    /// a whole number from one to another
    Whole(u32, u32),
    /// a share above 0 and below 1
    Share,
    Switch,
}

/// A setting.
pub(super) struct Key {
    /// as in the file; `sweep.sizes` is `sizes` below `[sweep]`
    pub(super) name: &'static str,
    /// as TOML writes it
    pub(super) default: &'static str,
    pub(super) kind: Kind,
    pub(super) doc: &'static str,
}

/// Tabs by name, as the screen has them.
pub(super) const TABS: [&str; 9] = [AUTO, "topology", "sweep", "matrix", "fits", "fans", "findings", "replay", "session"];

const fn key(name: &'static str, default: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, default, kind, doc }
}

/// All settings, those of a table together.
pub(super) const KEYS: [Key; 20] = [
    key(
        "theme",
        "\"dark\"",
        Kind::Text(|text| !text.trim().is_empty(), "the name of a theme (see `toposcope themes`)"),
        "Theme of the screen and of pictures; see `toposcope themes`",
    ),
    key(
        "color",
        "\"auto\"",
        Kind::Word(&[AUTO, "truecolor", "256", "16", "none"]),
        "Colours of the screen: auto (what the terminal can show), truecolor, 256, 16 or none",
    ),
    key("mouse", "true", Kind::Switch, "The mouse is toposcope's; false leaves it to the terminal until M is pressed"),
    key("frames_per_second", "20", Kind::Whole(1, 60), "Frames a second at most; while a probe runs never more than 5"),
    key("first_tab", "\"auto\"", Kind::Word(&TABS), "Tab that the screen opens with: auto (the one that fits) or a tab's name"),
    key(
        "sessions",
        "\"auto\"",
        Kind::Text(|text| text == AUTO || std::path::Path::new(text).is_absolute(), "auto, or a folder's whole path, beginning with /"),
        "Folder that sessions are made and looked for in: auto ($XDG_DATA_HOME/toposcope/sessions) or a whole path",
    ),
    key("sweep.patterns", "\"local,peer\"", Kind::Text(are_patterns, "patterns such as local,peer,duplex,fan_in"), "Patterns to measure"),
    key(
        "sweep.sizes",
        "\"auto\"",
        Kind::Text(|text| text == AUTO || parse_sizes(text).is_ok(), "auto, sizes such as 1M,16M, or a range such as 4KiB..64MiB"),
        "Message sizes: auto (4KiB..256MiB, or up to what fits a quarter of the memory), a list or a range in steps of 4",
    ),
    key(
        "sweep.widths",
        "\"auto\"",
        Kind::Text(|text| text == AUTO || are_numbers(text), "auto, or numbers such as 1,2,4"),
        "Numbers of peers of a fan: auto (the ranks of a host minus one) or a list",
    ),
    key(
        "sweep.peers",
        "\"nearest\"",
        Kind::Word(&["nearest", "next", "same_host", "same_switch", "cross_host"]),
        "Peers of a fan's root: nearest, next, same_host, same_switch or cross_host",
    ),
    key("sweep.shifts", "\"1\"", Kind::Text(are_numbers, "numbers such as 1,2"), "Distances of a relay"),
    key(
        "sweep.repeats",
        "\"auto\"",
        Kind::Whole(0, crate::sweep::MOST_REPEATS),
        "Timed repeats for each pair and size: auto (at most 40, by sweep.ci), or exactly so many, or with sweep.ci at most",
    ),
    key("sweep.ci", "\"auto\"", Kind::Share, "Repeat until half the median's 95 % interval is within this share of it: auto is 0.05"),
    key("sweep.pairs", "\"auto\"", Kind::Whole(1, 1 << 20), "Pairs of each rank to measure: auto for all, or so many chosen by the seed"),
    key(
        "sweep.budget",
        "\"auto\"",
        Kind::Text(|text| text == AUTO || is_time(text), "auto, or a time such as 60s or 2m"),
        "Longest time for all of it: auto for none",
    ),
    key("sweep.timeout", "\"10s\"", Kind::Text(is_time, "a time such as 10s or 500ms"), "Longest time of one probe"),
    key("sweep.warmup", "1", Kind::Whole(0, crate::sweep::MOST_REPEATS), "Untimed repeats before the timed ones of each probe"),
    key("sweep.window", "1", Kind::Whole(1, 1 << 16), "Messages outstanding at a time"),
    key(
        "sweep.buffers",
        "\"rotate\"",
        Kind::Word(&["rotate", "reuse"]),
        "rotate (messages from cold memory) or reuse (the same buffers again)",
    ),
    key(
        "sweep.arena",
        "\"auto\"",
        Kind::Text(|text| text == AUTO || parse_size(text).is_ok(), "auto, or a size such as 256MiB"),
        "Size of each rank's send and receive arena: auto goes by the last-level cache",
    ),
];

fn are_patterns(text: &str) -> bool {
    text.split(',').all(|name| Pattern::ALL.into_iter().any(|pattern| pattern != Pattern::Custom && pattern.name() == name.trim()))
}

fn are_numbers(text: &str) -> bool {
    text.split(',').all(|part| part.trim().parse::<usize>().is_ok())
}

fn is_time(text: &str) -> bool {
    let number = ["ms", "s", "m"].into_iter().find_map(|unit| text.trim().strip_suffix(unit)).unwrap_or(text);
    number.trim().parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0)
}

impl Key {
    /// The variable of the environment that goes before the file.
    pub(super) fn variable(&self) -> String {
        format!("TOPOSCOPE_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// What was expected, for an error.
    pub(super) fn expected(&self) -> String {
        let auto = if self.default.trim_matches('"') == AUTO { "auto, or " } else { "" };
        match self.kind {
            Kind::Word(words) => words.join(", "),
            Kind::Text(_, expected) => expected.to_owned(),
            Kind::Whole(least, most) => format!("{auto}a whole number from {least} to {most}"),
            Kind::Share => format!("{auto}a share above 0 and below 1, such as 0.05"),
            Kind::Switch => "true or false".to_owned(),
        }
    }

    /// A text where the file may have something else: as a variable holds it.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        let value = match self.kind {
            Kind::Whole(..) | Kind::Share if text != AUTO => Value::Number(text.trim().parse().ok()?),
            Kind::Switch => Value::Switch(text.trim().parse().ok()?),
            _ => Value::Text(text.to_owned()),
        };
        self.takes(&value).then_some(value)
    }

    /// True if the setting may be this.
    pub(super) fn takes(&self, value: &Value) -> bool {
        match (self.kind, value) {
            (Kind::Word(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Kind::Text(check, _), Value::Text(text)) => plain(text) == *text && check(text),
            (Kind::Whole(least, most), Value::Number(number)) => {
                number.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(number)
            }
            (Kind::Share, Value::Number(number)) => *number > 0.0 && *number < 1.0,
            (Kind::Whole(..) | Kind::Share, Value::Text(text)) => text == AUTO && self.default.trim_matches('"') == AUTO,
            (Kind::Switch, Value::Switch(_)) => true,
            _ => false,
        }
    }
}
