//! Flow lists: who sends how much to whom, in which step, after what.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::plan::MOST_RANKS;
use crate::plan::files::{FileError, Outline, parse};
use crate::plan::{Flow, Stage, Staged, Traffic};
use crate::units::{parse_size, plain};

/// More flows, or more that they wait for, are refused.
const MOST: usize = 1 << 22;

/// What a flow or a step is called: a text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(pub String);

/// One flow as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub id: Option<Name>,
    pub step: Option<Name>,
    pub src: usize,
    pub dst: usize,
    #[serde(deserialize_with = "size")]
    pub bytes: u64,
    #[serde(default = "once")]
    pub messages: u32,
    #[serde(default, deserialize_with = "names")]
    pub after: Option<Vec<Name>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Option<String>,
    ranks: Option<usize>,
    flows: Vec<Row>,
}

const fn once() -> u32 {
    1
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look;

        impl Visitor<'_> for Look {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a name or a whole number")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(Name(plain(name.trim())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }
        }

        deserializer.deserialize_any(Look)
    }
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Look;

    impl Visitor<'_> for Look {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a whole number of bytes, or a size such as \"4MiB\"")
        }

        fn visit_u64<E>(self, bytes: u64) -> Result<u64, E> {
            Ok(bytes)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            parse_size(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_any(Look)
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Name>>, D::Error> {
    struct Look;

    impl<'de> Visitor<'de> for Look {
        type Value = Vec<Name>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a name, a whole number, or a list of them")
        }

        fn visit_str<E>(self, name: &str) -> Result<Vec<Name>, E> {
            Ok(vec![Name(plain(name.trim()))])
        }

        fn visit_u64<E>(self, number: u64) -> Result<Vec<Name>, E> {
            Ok(vec![Name(number.to_string())])
        }

        fn visit_i64<E>(self, number: i64) -> Result<Vec<Name>, E> {
            Ok(vec![Name(number.to_string())])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Name>, A::Error> {
            let mut names = Vec::new();
            while let Some(name) = list.next_element()? {
                names.push(name);
            }
            Ok(names)
        }
    }

    deserializer.deserialize_any(Look).map(Some)
}

/// Read a flow list in JSON.
pub(super) fn read(text: &str, name: &str) -> Result<Traffic, FileError> {
    let Document { name: told, ranks, flows } =
        if Outline::of(text)?.list { Document { name: None, ranks: None, flows: parse(text)? } } else { parse(text)? };
    let rows = flows.into_iter().enumerate().map(|(number, row)| (format!("flow {number}"), row)).collect();
    traffic(told.as_deref().unwrap_or(name), ranks, rows)
}

/// Traffic of a list of flows, each with its place in the file.
pub(super) fn traffic(name: &str, ranks: Option<usize>, rows: Vec<(String, Row)>) -> Result<Traffic, FileError> {
    if rows.is_empty() {
        return Err(FileError::new("", "no flows: nothing is moved"));
    }
    if rows.len() > MOST {
        return Err(FileError::new("", format!("{} flows: expected {MOST} at most", rows.len())));
    }
    let most = rows.iter().map(|(_, row)| row.src.max(row.dst)).max().unwrap_or_default();
    let limit = ranks.unwrap_or(MOST_RANKS).min(MOST_RANKS);
    for (place, row) in &rows {
        if row.src >= limit || row.dst >= limit {
            let (side, rank) = if row.src >= limit { ("src", row.src) } else { ("dst", row.dst) };
            return Err(FileError::new(format!("{place}, {side}"), format!("{rank}: expected a rank below {limit}")));
        }
        if row.messages == 0 {
            return Err(FileError::new(format!("{place}, messages"), "0: expected 1 or more"));
        }
    }
    let (steps, rows) = by_step(rows)?;
    let mut flows = Vec::with_capacity(rows.len());
    let mut waited = 0;
    let earlier = Earlier::of(&rows)?;
    for (number, (stage, place, row)) in rows.iter().enumerate() {
        let after = earlier.all(number, place, row)?;
        waited += after.len();
        if waited > MOST {
            return Err(FileError::new(format!("{place}, after"), format!("more than {MOST} flows waited for: name fewer")));
        }
        let &Row { src: from, dst: to, bytes, messages, .. } = row;
        flows.push(Flow { stage: *stage, from, to, bytes, messages, after, offset: None, staged: Staged::default() });
    }
    let stages = steps.into_iter().map(|(name, pipelined)| Stage { name, waits: !pipelined }).collect();
    let traffic = Traffic { name: plain(name), ranks: ranks.unwrap_or(most + 1), stages, flows, ..Traffic::default() };
    traffic.check().map_err(|what| FileError::new("", what.trim_start_matches(": ")))?;
    Ok(traffic)
}

/// A row with the number of its step, and its place in the file.
type Placed = (usize, String, Row);

/// What a step is called, and whether its flows tell what they wait for.
type Step = (String, bool);

/// Steps in order, and the rows by step.
fn by_step(rows: Vec<(String, Row)>) -> Result<(Vec<Step>, Vec<Placed>), FileError> {
    let stepped = rows.iter().filter(|(_, row)| row.step.is_some()).count();
    if stepped > 0
        && let Some((place, _)) = rows.iter().find(|(_, row)| row.step.is_none())
    {
        return Err(FileError::new(format!("{place}, step"), "missing, though other flows have one: name a step for all or for none"));
    }
    let mut names: Vec<&Name> = Vec::new();
    let mut known = BTreeSet::new();
    for name in rows.iter().filter_map(|(_, row)| row.step.as_ref()) {
        if known.insert(name) {
            names.push(name);
        }
    }
    if let Some(numbers) = names.iter().map(|name| name.0.parse::<i64>().ok()).collect::<Option<Vec<_>>>() {
        let mut by_number: Vec<(i64, &Name)> = numbers.into_iter().zip(names).collect();
        by_number.sort_by_key(|&(number, _)| number);
        names = by_number.into_iter().map(|(_, name)| name).collect();
    }
    let numbers: HashMap<Name, usize> = names.iter().enumerate().map(|(number, &name)| (name.clone(), number)).collect();
    let mut steps: Vec<Step> = names.iter().map(|name| (format!("step {}", name.0), false)).collect();
    if steps.is_empty() {
        steps.push(("flows".to_owned(), false));
    }
    let number = |row: &Row| row.step.as_ref().and_then(|step| numbers.get(step)).copied().unwrap_or_default();
    let mut placed: Vec<Placed> = rows.into_iter().map(|(place, row)| (number(&row), place, row)).collect();
    placed.sort_by_key(|&(number, ..)| number);
    for (step, _, row) in &placed {
        steps[*step].1 |= row.after.is_some();
    }
    // In the first step there is nothing else to wait for.
    if let Some((_, place, _)) = placed.iter().find(|(step, _, row)| *step > 0 && steps[*step].1 && row.after.is_none()) {
        let what = "missing, though other flows of its step have one: name what it waits for ([] in JSON, - in CSV: nothing)";
        return Err(FileError::new(format!("{place}, after"), what));
    }
    Ok((steps, placed))
}

/// What `after` may name: flows where they have ids, otherwise steps.
enum Earlier {
    Flows(HashMap<Name, usize>),
    /// name -> first flow of the step, and the first behind it
    Steps(BTreeMap<Name, (usize, usize)>),
}

impl Earlier {
    fn of(rows: &[Placed]) -> Result<Self, FileError> {
        if rows.iter().all(|(_, _, row)| row.id.is_none()) {
            let mut steps = BTreeMap::new();
            for (number, (_, _, row)) in rows.iter().enumerate() {
                if let Some(step) = &row.step {
                    steps.entry(step.clone()).or_insert((number, number)).1 = number + 1;
                }
            }
            return Ok(Self::Steps(steps));
        }
        let mut flows = HashMap::new();
        for (number, (_, place, row)) in rows.iter().enumerate() {
            if let Some(id) = &row.id
                && flows.insert(id.clone(), number).is_some()
            {
                return Err(FileError::new(format!("{place}, id"), format!("{:?} stands twice: expected one flow of each id", id.0)));
            }
        }
        Ok(Self::Flows(flows))
    }

    /// Numbers of the flows that one waits for.
    fn all(&self, number: usize, place: &str, row: &Row) -> Result<Vec<usize>, FileError> {
        let wrong = |name: &Name, what: &str| Err(FileError::new(format!("{place}, after"), format!("{:?}: {what}", name.0)));
        let mut after = BTreeSet::new();
        for name in row.after.iter().flatten() {
            let (first, behind) = match self {
                Self::Flows(flows) => match flows.get(name) {
                    Some(&flow) => (flow, flow + 1),
                    None => return wrong(name, "expected the id of a flow of this file"),
                },
                Self::Steps(steps) => match steps.get(name) {
                    Some(&span) => span,
                    None => return wrong(name, "expected a step of this file (its flows have no ids)"),
                },
            };
            if behind > number {
                return wrong(name, "does not come before it: expected flows of earlier steps, or of earlier lines of its own step");
            }
            after.extend(first..behind);
            if after.len() > MOST {
                return wrong(name, "too many flows to wait for");
            }
        }
        Ok(after.into_iter().collect())
    }
}
