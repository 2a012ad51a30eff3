//! The same as JSON (schema: `toposcope schema scenarios`).

use serde_json::{Map, Value, json};

use super::row::{Cell, Row};
use super::run::Report;
use crate::units::plain_json;

pub(super) const FORMAT: &str = "toposcope.scenarios/1";

/// The document, as it is printed and written.
pub(super) fn json(report: &Report) -> String {
    let mut document = json!({
        "format": FORMAT,
        "engine": report.engine,
        "session": report.session,
        "memory": report.memory,
        "ranks": report.ground.world,
        "hosts": report.ground.hosts,
        "hosts_given": report.given,
        "repeats": report.repeats,
        "warmup": report.warmup,
        "methods": report.methods.iter().map(|method| {
            json!({"name": method.name(), "mover": method.mover.name(), "message_bytes": method.message})
        }).collect::<Vec<_>>(),
        "prices": report.prices,
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "doubts": report.doubts,
        "not_possible": report.lacks.iter().map(|lack| json!({"pattern": lack.pattern, "why": lack.why})).collect::<Vec<_>>(),
    });
    plain_json(&mut document);
    format!("{document:#}\n")
}

fn row(row: &Row) -> Value {
    let case = &row.case;
    let table = case.scenario.table();
    let best = row.best();
    let mut told = json!({
        "table": table.name(),
        "scenario": case.scenario.name(),
        "pattern": case.pattern,
        "width": case.width,
        "bytes": case.bytes,
        "unit": if table.is_time() { "ms" } else { "GB/s" },
        "cells": row.cells.iter().map(cell).collect::<Vec<_>>(),
        "best": best.map(|(at, _)| row.cells[at].method.name()),
        "best_over_first": best.and_then(|(_, times)| times),
    });
    if let Some(budget) = case.budget {
        told["budget_bytes"] = json!(budget);
    }
    told
}

fn cell(cell: &Cell) -> Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let mut told = Map::new();
    told.insert("method".to_owned(), json!(cell.method.name()));
    told.insert("value".to_owned(), json!(finite(cell.figure)));
    told.insert("plans".to_owned(), json!(cell.plans));
    told.insert("plan_bytes".to_owned(), json!(cell.bytes));
    told.insert("plan_seconds".to_owned(), json!(cell.seconds));
    told.insert("runs".to_owned(), json!(cell.runs));
    told.insert("verified_bytes".to_owned(), json!(cell.verified));
    told.insert("ok".to_owned(), json!(cell.is_good()));
    if !cell.failed.is_empty() {
        told.insert("failed".to_owned(), json!(cell.failed));
    }
    if let Some(predicted) = cell.predicted.and_then(finite) {
        told.insert("predicted".to_owned(), json!(predicted));
        told.insert("predicted_over_measured".to_owned(), json!(cell.ratio()));
    }
    if !cell.doubts.is_empty() {
        told.insert("doubts".to_owned(), json!(cell.doubts));
    }
    Value::Object(told)
}
