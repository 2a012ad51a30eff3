//! Reading of plans, endpoints and traffic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::json::{Outline, parse};
use super::{BYTES_PER_PEER, ELEMENT_SIZE, FileError, Given, PLAN_FORMAT, TRAFFIC_FORMAT};
use crate::plan::{Batch, Endpoints, Flow, Parameter, Plan, Segment, Stage, Staged, Traffic, Transfers};
use crate::units::plain;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanDocument {
    logical_shape: Vec<u64>,
    segments: Vec<Segment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterDocument {
    name: String,
    element_size: u64,
    plan: PlanDocument,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchDocument {
    #[serde(rename = "format")]
    _format: String,
    parameters: Vec<ParameterDocument>,
    endpoints: Option<EndpointsDocument>,
    bytes_per_peer: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointsDocument {
    #[serde(deserialize_with = "once")]
    source: BTreeMap<i64, usize>,
    #[serde(deserialize_with = "once")]
    target: BTreeMap<i64, usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficDocument {
    #[serde(rename = "format")]
    _format: String,
    #[serde(default)]
    name: String,
    ranks: usize,
    stages: Vec<StageDocument>,
    flows: Vec<FlowDocument>,
    #[serde(default)]
    chunks: u64,
    #[serde(default)]
    arenas: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageDocument {
    name: String,
    waits: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowDocument {
    stage: usize,
    from: usize,
    to: usize,
    bytes: u64,
    messages: u32,
    #[serde(default)]
    after: Vec<usize>,
    offset: Option<u64>,
    staged: Option<StagedDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StagedDocument {
    packs: u32,
    pack_bytes: u64,
    unpacks: u32,
    unpack_bytes: u64,
}

/// A location's process, each location once: a JSON object may say it twice, and the last would win.
fn once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<i64, usize>, D::Error> {
    struct Once;

    impl<'de> Visitor<'de> for Once {
        type Value = BTreeMap<i64, usize>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str(r#"an object of location and process, such as {"0": 4}"#)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                let Ok(location) = key.parse() else {
                    return Err(A::Error::custom(format!("location {key:?}: expected a whole number")));
                };
                let process = map.next_value()?;
                if read.insert(location, process).is_some() {
                    return Err(A::Error::custom(format!("location {location} stands twice: one process each")));
                }
            }
            Ok(read)
        }
    }

    deserializer.deserialize_map(Once)
}

/// True for a document that [`read`] reads.
pub fn is_own(outline: &Outline) -> bool {
    outline.format.as_deref().is_some_and(|format| format.starts_with("toposcope.plan/") || format.starts_with("toposcope.traffic/"))
        || outline.has(&["logical_shape", "segments"])
}

/// Read a plan, a batch of plans, or traffic.
pub fn read(text: &str, given: &Given) -> Result<Transfers, FileError> {
    let outline = Outline::of(text)?;
    let newer =
        |format: &str, known: &str| Err(FileError::new("format", format!("{format:?}: expected {known:?}, which this version reads")));
    match outline.format.as_deref() {
        Some(PLAN_FORMAT) => batch(text, given),
        Some(TRAFFIC_FORMAT) => traffic(text),
        Some(format) if format.starts_with("toposcope.plan/") => newer(format, PLAN_FORMAT),
        Some(format) if format.starts_with("toposcope.traffic/") => newer(format, TRAFFIC_FORMAT),
        _ if outline.has(&["logical_shape", "segments"]) => plan(text, given),
        _ if outline.has(&["source", "target"]) => {
            Err(FileError::new("", "endpoints (which process holds which location), not a plan; give them with --endpoints"))
        }
        _ => Err(FileError::new(
            "",
            format!("no plan: expected logical_shape and segments, or a format ({PLAN_FORMAT:?} or {TRAFFIC_FORMAT:?})"),
        )),
    }
}

/// Read endpoints.
pub fn endpoints(text: &str) -> Result<Endpoints, FileError> {
    parse::<EndpointsDocument>(text).map(Endpoints::from)
}

impl From<EndpointsDocument> for Endpoints {
    fn from(EndpointsDocument { source, target }: EndpointsDocument) -> Self {
        Self { source, target }
    }
}

fn plan(text: &str, given: &Given) -> Result<Transfers, FileError> {
    let PlanDocument { logical_shape, segments } = parse(text)?;
    let plan = Plan { logical_shape, segments };
    let element_size = given.element_size.unwrap_or(ELEMENT_SIZE);
    whole("", vec![Parameter { name: String::new(), plan, element_size }], given, None, None)
}

fn batch(text: &str, given: &Given) -> Result<Transfers, FileError> {
    let read: BatchDocument = parse(text).map_err(|error| named(text, error))?;
    let parameter = |ParameterDocument { name, element_size, plan: PlanDocument { logical_shape, segments } }| Parameter {
        name: plain(&name),
        plan: Plan { logical_shape, segments },
        element_size,
    };
    let parameters: Vec<Parameter> = read.parameters.into_iter().map(parameter).collect();
    let mut names = BTreeSet::new();
    if let Some(again) = parameters.iter().find(|parameter| !names.insert(&parameter.name)) {
        return Err(FileError::new(format!("parameter {}", again.name), "stands twice: one plan each"));
    }
    whole("parameter ", parameters, given, read.endpoints.map(Endpoints::from), read.bytes_per_peer)
}

/// The name of the parameter that a place tells by its number, where it can be read.
fn named(text: &str, error: FileError) -> FileError {
    #[derive(Deserialize)]
    struct Names {
        parameters: Vec<Named>,
    }

    #[derive(Deserialize)]
    struct Named {
        name: Option<serde_json::Value>,
    }

    let number = error.place.strip_prefix("parameter ").map(|rest| rest.split(',').next().unwrap_or_default());
    let Some((digits, number)) = number.and_then(|digits| Some((digits.len(), digits.parse::<usize>().ok()?))) else { return error };
    let names = serde_json::from_str::<Names>(text).ok();
    let name = names.and_then(|names| names.parameters.get(number)?.name.as_ref()?.as_str().map(plain));
    match name {
        Some(name) => FileError { place: format!("parameter {name}{}", &error.place["parameter ".len() + digits..]), what: error.what },
        None => error,
    }
}

/// A batch of what a file and its reader tell, checked.
fn whole(
    label: &str,
    parameters: Vec<Parameter>,
    given: &Given,
    endpoints: Option<Endpoints>,
    bytes_per_peer: Option<u64>,
) -> Result<Transfers, FileError> {
    for Parameter { name, plan, element_size } in &parameters {
        let place = if label.is_empty() { String::new() } else { format!("{label}{name}") };
        if *element_size == 0 {
            return Err(FileError::new(place, "element_size is 0: expected bytes, 1 or more (2 for bf16)"));
        }
        for (number, segment) in plan.segments.iter().enumerate() {
            let axes = segment.shape.len();
            for (side, strides) in [("source", segment.source.2.len()), ("target", segment.target.2.len())] {
                if strides != axes {
                    let comma = if place.is_empty() { "" } else { ", " };
                    let place = format!("{place}{comma}segment {number}, {side} strides");
                    return Err(FileError::new(place, format!("{strides}: expected {axes}, one for each axis of its shape")));
                }
            }
        }
    }
    let endpoints = given.endpoints.clone().or(endpoints);
    let Some(endpoints) = endpoints else {
        return Err(FileError::new(
            "",
            "a plan without endpoints, which tell the process that holds each location: plan it with `toposcope plan build --endpoints FILE`, or \
             give them beside the plan where a command takes --endpoints",
        ));
    };
    let bytes_per_peer = given.bytes_per_peer.or(bytes_per_peer).unwrap_or(BYTES_PER_PEER);
    Ok(Transfers::Batch(Batch { parameters, endpoints, bytes_per_peer }))
}

fn traffic(text: &str) -> Result<Transfers, FileError> {
    let read: TrafficDocument = parse(text)?;
    let staged = |StagedDocument { packs, pack_bytes, unpacks, unpack_bytes }| Staged { packs, pack_bytes, unpacks, unpack_bytes };
    let flow = |FlowDocument { stage, from, to, bytes, messages, after, offset, staged: told }| Flow {
        stage,
        from,
        to,
        bytes,
        messages,
        after,
        offset,
        staged: told.map(staged).unwrap_or_default(),
    };
    let stage = |StageDocument { name, waits }| Stage { name, waits };
    let own = Traffic {
        name: read.name,
        ranks: read.ranks,
        stages: read.stages.into_iter().map(stage).collect(),
        flows: read.flows.into_iter().map(flow).collect(),
        chunks: read.chunks,
        arenas: read.arenas,
    }
    .plain();
    // It begins with the traffic's name, which may be none.
    own.check().map_err(|what| FileError::new("", what.trim_start_matches(": ")))?;
    Ok(Transfers::Traffic(own))
}
