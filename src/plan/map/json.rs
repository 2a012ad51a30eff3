//! Maps as the reference stores them: `{"version": 1, "params": {"^name$": map}}`, or one bare map.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::{name, pattern};
use super::{Map, Maps, Piece, Shard, Walk};
use crate::plan::{At, PlanError};
use crate::units::plain;

const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMaps {
    version: u64,
    params: BTreeMap<String, StoredMap>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMap {
    logical_shape: Vec<i64>,
    /// keys are numbers; as text, since JSON has no others
    ranks: BTreeMap<Key, StoredShard>,
}

/// A location, in the order of numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key(Result<i64, String>);

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(location) => serializer.collect_str(location),
            Err(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Ok(Self(text.parse().ok().filter(|location: &i64| *location.to_string() == *text).ok_or_else(|| text.into_owned())))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredShard {
    shard_shape: Vec<i64>,
    pieces: Vec<StoredPiece>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPiece {
    shape: Vec<i64>,
    /// offset and strides
    source: (i64, Vec<i64>),
    dest: (i64, Vec<i64>),
    locations: Vec<i64>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    scale: f64,
}

const fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's way to call it")]
fn is_one(scale: &f64) -> bool {
    (*scale - 1.0).abs() == 0.0
}

/// Maps from JSON: a stored document, or one bare map (`{"logical_shape", "ranks"}`), whose name is then empty. The numbers of pieces
/// are taken as they are; [`super::check`] tells whether they make sense.
///
/// # Errors
/// What is no JSON, or not of that form, with parameter, location and piece.
pub fn read(text: &str) -> Result<Maps, PlanError> {
    #[derive(Deserialize)]
    struct Look {
        params: Option<IgnoredAny>,
        ranks: Option<IgnoredAny>,
    }
    let place = At::default();
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(wrong(&place, format!("no JSON: {error}")));
    }
    let look = serde_json::from_str::<Look>(text).unwrap_or(Look { params: None, ranks: None });
    let mut maps = Maps::new();
    if look.params.is_some() {
        let stored: StoredMaps = serde_json::from_str(text).map_err(|error| explain(text, &error))?;
        if stored.version != VERSION {
            return Err(wrong(&place, format!("version {}, of which nothing is known here; {VERSION} is", stored.version)));
        }
        for (key, map) in stored.params {
            let Some(name) = name(&key) else {
                let what = format!("{:?} matches several names; a stored map has one tensor's: ^name$ with \\ before dots", plain(&key));
                return Err(wrong(&place, what));
            };
            let place = At { parameter: name.clone(), ..At::default() };
            if maps.insert(name, map.own(&place)?).is_some() {
                return Err(wrong(&place, "two maps have this name".to_owned()));
            }
        }
    } else if look.ranks.is_some() {
        let stored: StoredMap = serde_json::from_str(text).map_err(|error| explain(text, &error))?;
        maps.insert(String::new(), stored.own(&place)?);
    } else {
        let what = "expected a stored document {\"version\": 1, \"params\": {..}} or one map {\"logical_shape\": [..], \"ranks\": {..}}";
        return Err(wrong(&place, what.to_owned()));
    }
    Ok(maps)
}

/// Maps as JSON, compact: one map without a name as a bare map, anything else as a stored document.
pub fn write(maps: &Maps) -> String {
    let text = match maps.first_key_value() {
        Some((name, map)) if name.is_empty() && maps.len() == 1 => serde_json::to_string(&StoredMap::of(map)),
        _ => {
            let params = maps.iter().map(|(name, map)| (pattern(name), StoredMap::of(map))).collect();
            serde_json::to_string(&StoredMaps { version: VERSION, params })
        }
    };
    // Numbers and names only: nothing that could fail.
    text.unwrap_or_default()
}

impl StoredMap {
    fn of(map: &Map) -> Self {
        let numbers = |numbers: &[u64]| numbers.iter().map(|&number| number.cast_signed()).collect::<Vec<i64>>();
        let walk = |walk: &Walk| (walk.offset.cast_signed(), walk.strides.clone());
        let ranks = map.shards.iter().map(|(&location, shard)| {
            let pieces = shard.pieces.iter().map(|piece| StoredPiece {
                shape: numbers(&piece.shape),
                source: walk(&piece.source),
                dest: walk(&piece.dest),
                locations: piece.holders.iter().copied().collect(),
                scale: piece.scale,
            });
            (Key(Ok(location)), StoredShard { shard_shape: numbers(&shard.shape), pieces: pieces.collect() })
        });
        Self { logical_shape: numbers(&map.shape), ranks: ranks.collect() }
    }

    fn own(self, place: &At) -> Result<Map, PlanError> {
        let shape = extents(self.logical_shape, "logical_shape", place)?;
        let mut shards = BTreeMap::new();
        for (key, shard) in self.ranks {
            let location = key.0.map_err(|text| wrong(place, format!("ranks: {:?} is no location; a whole number", plain(&text))))?;
            let place = At { location: Some(location), ..place.clone() };
            let shape = extents(shard.shard_shape, "shard_shape", &place)?;
            let pieces = shard.pieces.into_iter().enumerate().map(|(number, piece)| {
                let place = || At { piece: Some(number), ..place.clone() };
                let walk = |(offset, strides): (i64, Vec<i64>), of: &str| {
                    let offset =
                        u64::try_from(offset).map_err(|_| wrong(&place(), format!("rule M1: {of} offset {offset}: 0 or more elements")))?;
                    Ok(Walk { offset, strides })
                };
                Ok(Piece {
                    shape: extents(piece.shape, "shape", &place())?,
                    source: walk(piece.source, "source")?,
                    dest: walk(piece.dest, "dest")?,
                    holders: piece.locations.into_iter().collect(),
                    scale: piece.scale,
                })
            });
            let pieces = pieces.collect::<Result<_, _>>()?;
            shards.insert(location, Shard { shape, pieces });
        }
        Ok(Map { shape, shards })
    }
}

fn extents(numbers: Vec<i64>, of: &str, place: &At) -> Result<Vec<u64>, PlanError> {
    match numbers.iter().find(|&&number| number < 0) {
        Some(number) => Err(wrong(place, format!("rule M1: {of} has an extent of {number}; 0 or more"))),
        None => Ok(numbers.into_iter().map(i64::unsigned_abs).collect()),
    }
}

fn wrong(place: &At, what: String) -> PlanError {
    PlanError::Invalid { place: place.clone(), what }
}

/// Where a document that is JSON has not the form of maps: looked at piece by piece, which the good case need not.
fn explain(text: &str, error: &serde_json::Error) -> PlanError {
    let fallback = || wrong(&At::default(), error.to_string());
    let Ok(value) = serde_json::from_str::<Value>(text) else { return fallback() };
    let maps: Vec<(String, &Value)> = match value.get("params").and_then(Value::as_object) {
        Some(params) => params.iter().map(|(key, map)| (name(key).unwrap_or_else(|| key.clone()), map)).collect(),
        None => vec![(String::new(), &value)],
    };
    for (parameter, map) in maps {
        let place = At { parameter, ..At::default() };
        for (key, shard) in map.get("ranks").and_then(Value::as_object).into_iter().flatten() {
            let place = At { location: key.parse().ok(), ..place.clone() };
            for (number, piece) in shard.get("pieces").and_then(Value::as_array).into_iter().flatten().enumerate() {
                if let Err(error) = serde_json::from_value::<StoredPiece>(piece.clone()) {
                    return wrong(&At { piece: Some(number), ..place }, error.to_string());
                }
            }
            if let Err(error) = serde_json::from_value::<StoredShard>(shard.clone()) {
                return wrong(&place, error.to_string());
            }
        }
        if let Err(error) = serde_json::from_value::<StoredMap>(map.clone()) {
            return wrong(&place, error.to_string());
        }
    }
    fallback()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"logical_shape":[2,4],"ranks":{"0":{"shard_shape":[2,4],"pieces":[{"shape":[2,4],"source":[0,[4,1]],"dest":[0,[4,1]],"locations":[0,11]}]},"11":{"shard_shape":[2,4],"pieces":[{"shape":[2,4],"source":[0,[4,1]],"dest":[0,[4,1]],"locations":[0,11],"scale":2.0}]}}}"#;

    fn told(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_map_is_written_as_it_was_read() {
        let maps = read(ONE).unwrap();
        assert!((maps[""].shards[&11].pieces[0].scale - 2.0).abs() < f64::EPSILON);
        assert_eq!(write(&maps), ONE);
        let stored = format!(r#"{{"version":1,"params":{{"^a\\.b$":{ONE},"^c$":{ONE}}}}}"#);
        let maps = read(&stored).unwrap();
        assert_eq!(maps.keys().collect::<Vec<_>>(), ["a.b", "c"]);
        assert_eq!(write(&maps), stored);
    }

    #[test]
    fn what_is_no_map_is_told_with_parameter_location_and_piece() {
        let stored = |map: &str| format!(r#"{{"version":1,"params":{{"^w$":{map}}}}}"#);
        let say = told(&stored(&ONE.replace("\"dest\":[0,[4,1]],\"locations\":[0,11],\"scale\":2.0", "\"dest\":[0,4],\"locations\":[0]")));
        assert!(say.starts_with("parameter w, location 11, piece 0: "), "{say}");
        let say = told(&stored(&ONE.replacen("\"shape\":[2,4],\"source\"", "\"shape\":[-2,4],\"source\"", 1)));
        assert!(say.contains("location 0, piece 0") && say.contains("M1") && say.contains("-2"), "{say}");
        let say = told(&ONE.replacen("\"source\":[0", "\"source\":[-1", 1));
        assert!(say.contains("source offset -1"), "{say}");
        let say = told(&ONE.replacen("\"shard_shape\":[2,4],", "", 1));
        assert!(say.starts_with("location 0: ") && say.contains("shard_shape"), "{say}");
        let say = told(&ONE.replace("\"11\"", "\"x\""));
        assert!(say.contains("\"x\" is no location"), "{say}");
        let say = told(&ONE.replace("\"11\"", "\"011\""));
        assert!(say.contains("\"011\" is no location"), "{say}");
        assert!(told(&stored(ONE).replace("\"version\":1", "\"version\":2")).contains("version 2"));
        assert!(told(&stored(ONE).replace("^w$", "^w.*$")).contains("several names"));
        assert!(told(&ONE[..60]).contains("no JSON"));
        assert!(told("[1]").contains("expected a stored document"));
        assert!(told("{}").contains("expected a stored document"));
    }
}
