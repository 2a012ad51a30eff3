//! JSON from outside: what it is at a glance, and where in it a fault is.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::Segment;

use super::FileError;

/// A message of a parser is cut here: it may quote what it found.
const LONGEST: usize = 200;

/// What a document is made of, without keeping it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// true for an array
    pub list: bool,
    /// keys of an object
    pub keys: BTreeSet<String>,
    /// text under the key `format`
    pub format: Option<String>,
    /// of the first thing in it, an object's or an array's
    pub first: Option<Box<Outline>>,
}

impl Outline {
    /// What a text is made of; a text that is no JSON is refused with the place of the fault.
    pub fn of(text: &str) -> Result<Self, FileError> {
        serde_json::from_str(unmarked(text)).map_err(|error| fault(String::new(), &error))
    }

    /// True for an object with all of these keys.
    pub fn has(&self, keys: &[&str]) -> bool {
        !self.list && keys.iter().all(|&key| self.keys.contains(key))
    }

    /// True for an object whose keys are all whole numbers, one at least.
    pub fn is_numbered(&self) -> bool {
        !self.keys.is_empty() && self.keys.iter().all(|key| key.parse::<u64>().is_ok())
    }
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look;

        impl<'de> Visitor<'de> for Look {
            type Value = Outline;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
                let mut outline = Outline::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "format" {
                        outline.format = map.next_value::<serde_json::Value>()?.as_str().map(str::to_owned);
                    } else if outline.first.is_none() {
                        outline.first = Some(Box::new(map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                    outline.keys.insert(key);
                }
                Ok(outline)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Outline, A::Error> {
                let first = list.next_element::<Outline>()?.map(Box::new);
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Outline { list: true, first, ..Outline::default() })
            }

            fn visit_bool<E>(self, _: bool) -> Result<Outline, E> {
                Ok(Outline::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Outline, E> {
                Ok(Outline::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Outline, E> {
                Ok(Outline::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Outline, E> {
                Ok(Outline::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Outline, E> {
                Ok(Outline::default())
            }

            fn visit_unit<E>(self) -> Result<Outline, E> {
                Ok(Outline::default())
            }
        }

        deserializer.deserialize_any(Look)
    }
}

/// Read a document; a fault is told with the way to it, such as `parameter 3, segment 17, source offset`.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, FileError> {
    let text = unmarked(text);
    let error = match serde_json::from_str(text) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // Again, slower, to learn where.
    let mut again = serde_json::Deserializer::from_str(text);
    let way = match serde_path_to_error::deserialize::<_, T>(&mut again) {
        Err(told) => way(told.path()),
        Ok(_) => String::new(),
    };
    Err(fault(way, &error))
}

/// Without a byte order mark.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn fault(place: String, error: &serde_json::Error) -> FileError {
    let (line, column) = (error.line(), error.column());
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    let told: String = told.chars().take(LONGEST).collect();
    let what = match error.classify() {
        serde_json::error::Category::Eof => format!("the text ends in the middle ({told}): is the file complete?"),
        serde_json::error::Category::Syntax => format!("no JSON: {told}"),
        _ => told,
    };
    FileError::new(place, format!("{what} (line {line}, column {column})"))
}

/// A path in words: members of a list by the singular of its name.
fn way(path: &serde_path_to_error::Path) -> String {
    let mut words: Vec<String> = Vec::new();
    for step in path {
        match step {
            Segment::Map { key } => words.push(key.clone()),
            Segment::Seq { index } => match words.pop() {
                Some(list) => words.push(member(&list, *index)),
                None => words.push(format!("entry {index}")),
            },
            Segment::Enum { variant } => words.push(variant.clone()),
            Segment::Unknown => {}
        }
    }
    words.join(", ")
}

fn member(list: &str, index: usize) -> String {
    const SIDE: [&str; 3] = ["location", "offset", "strides"];
    match list {
        "source" | "target" if index < SIDE.len() => format!("{list} {}", SIDE[index]),
        _ => match list.strip_suffix('s') {
            Some(one) if list.len() > 3 => format!("{one} {index}"),
            _ => format!("{list}[{index}]"),
        },
    }
}
