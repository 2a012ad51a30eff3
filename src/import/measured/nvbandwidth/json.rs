//! nvbandwidth's JSON (`-j`).

use serde_json::Value;

use super::super::grid::{Grid, cell};
use super::text::model;
use super::{End, Run, Table};
use crate::import::Skips;
use crate::import::measured::dispatch::{MOST_ENDS, MOST_SAMPLES};
use crate::import::text::{named, number, shown};

/// Read a document; `None` if it is another tool's.
pub(in crate::import::measured) fn json(root: &Value, skips: &mut Skips) -> Option<Vec<Table>> {
    let root = root.get("nvbandwidth")?;
    let mut run = Run { version: root["version"].as_str().map(named), ..Run::default() };
    for text in root["GPU Device list"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if let Some((number, end)) = device(text) {
            run.devices.insert(number, end);
        }
    }
    run.host = run.devices.values().next().and_then(|end| end.host.clone());
    let tests = root["testcases"].as_array();
    if let Some(error) = root["error"].as_str() {
        skips.push(1, format!("nvbandwidth failed: {}", shown(error)));
    } else if tests.is_none_or(Vec::is_empty) {
        skips.push(1, "nvbandwidth's JSON has no test in its testcases");
    }
    let mut tables = Vec::new();
    for test in tests.into_iter().flatten() {
        if skips.is_spent() {
            break;
        }
        tables.extend(table(&run, test, skips));
    }
    Some(tables)
}

fn table(run: &Run, test: &Value, skips: &mut Skips) -> Option<Table> {
    let name = named(test["name"].as_str().unwrap_or_default());
    let heading = test["bandwidth_description"].as_str().unwrap_or_default().trim();
    let matrix = test["bandwidth_matrix"].as_array().filter(|rows| !rows.is_empty());
    let Some(rows) = matrix else {
        let status = shown(test["status"].as_str().unwrap_or("no status"));
        let error = test["error"].as_str().map(|error| format!(", {}", shown(error))).unwrap_or_default();
        skips.push(1, format!("{name}: {status}{error}, no matrix"));
        return None;
    };
    // Of tests with several matrices all rows stand in one list, under the last one's heading (`addTestcaseResults` appends).
    let columns = rows.first().and_then(Value::as_array).map_or(0, Vec::len);
    let several = name.contains("bidirectional") && name.contains("device_to_device") && rows.len() == columns.saturating_mul(3);
    let rows = if several {
        skips.push(1, format!("{name}: its three matrices stand in one; the last, the sum of both directions, is read"));
        rows.get(columns * 2..).unwrap_or_default()
    } else {
        rows
    };
    if columns == 0 || columns > MOST_ENDS || rows.len() > MOST_ENDS || rows.len().saturating_mul(columns) > MOST_SAMPLES {
        skips.push(1, format!("{name}: a matrix of {} x {columns}", rows.len()));
        return None;
    }
    let read = |value: &Value| match value {
        Value::String(word) => cell(word.trim()).ok().flatten(),
        Value::Number(number) => number.as_f64().filter(|number| *number >= 0.0),
        _ => None,
    };
    let mut grid = Grid { columns: (0..columns).collect(), ..Grid::default() };
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<Option<f64>> = row.as_array().into_iter().flatten().map(read).collect();
        if cells.len() == columns {
            grid.rows.push((at, cells));
        } else {
            skips.push(1, format!("{name}: row {at} has {} cells, the first {columns}", cells.len()));
        }
    }
    run.table(&name, heading, 1, &grid, skips)
}

/// `0: NVIDIA A100 (00000000:34:00): (node1)`
fn device(text: &str) -> Option<(usize, End)> {
    let (at, rest) = text.split_once(": ")?;
    let (device, host) = rest.rsplit_once(": (").map_or((rest, None), |(device, host)| (device, host.strip_suffix(')')));
    let (at, (model, pci)) = (number(at.trim())?, model(device)?);
    let host = host.map(named).filter(|host| !host.is_empty());
    Some((at, End { host, gpu: u32::try_from(at).ok(), pci, model, ..End::default() }))
}
