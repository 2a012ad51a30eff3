//! nccl-tests' JSON (`-J FILE`, `util.cu`): booleans and what is no number are strings there.

use serde_json::Value;

use super::{Collective, Row, Run, Table, operation, seat};
use crate::import::Skips;
use crate::import::measured::grid::amount;

/// Read a document; `None` if it is another tool's.
pub(in crate::import::measured) fn json(root: &Value, skips: &mut Skips) -> Option<Vec<Table>> {
    let results = root.get("results")?.as_array()?;
    let config = root.get("config").filter(|config| config.get("minimum_bytes").is_some() || config.get("nthreads").is_some())?;
    let mut run = Run { line: 1, version: number(&root["nccl_version"]).map(|version| format!("NCCL {version}")), ..Run::default() };
    let args = root["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    run.operation = args.take(64).find_map(operation).unwrap_or_default();
    for device in config["devices"].as_array().or_else(|| root["devices"].as_array()).into_iter().flatten() {
        let Some(rank) = device["rank"].as_u64().and_then(|rank| usize::try_from(rank).ok()) else { continue };
        let word = |key: &str| device[key].as_str().unwrap_or_default();
        let text = format!("{} device {} [{}] {}", word("hostname"), device["device"], word("device_hex"), word("device_info"));
        if let Some(end) = seat(&text, rank) {
            run.seat(rank, end, 1, skips);
        }
    }
    for result in results {
        let time = |part: &str| number(&result[part]["time"]).or_else(|| number(&result[part]["cpu_time"])).map(|time| time * 1e-6);
        let (out, in_place) = (time("out_of_place"), time("in_place"));
        let Some((bytes, seconds)) = result["size"].as_u64().zip(out.or(in_place)) else {
            skips.push(1, "nccl-tests: a result without a size or a time");
            continue;
        };
        let part = if out.is_some() { "out_of_place" } else { "in_place" };
        let bus = number(&result[part]["bus_bw"]).map(|rate| rate * 1e9);
        let wrong = number(&result[part]["nwrong"]).is_some_and(|wrong| wrong >= 1.0);
        let in_place_seconds = in_place.filter(|_| out.is_some());
        run.rows.push(Row { collective: Collective { bytes, seconds, in_place_seconds, bus_bandwidth: bus, sum: None }, wrong });
    }
    Some(run.table(skips).into_iter().collect())
}

/// A number, or one in a string; `nan` is none.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| *number >= 0.0),
        Value::String(text) => amount(text),
        _ => None,
    }
}
