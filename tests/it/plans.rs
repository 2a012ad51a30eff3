//! Plans on the command line, and those that Python writes (issue 6, must show a and h).

mod building;
mod golden;
mod properties;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use toposcope::import::plans;
use toposcope::plan::files::{Given, PLAN_SCHEMA};
use toposcope::plan::{Place as Side, Transfers};

use crate::place::{Place, Ran, skipped};

const MOMENT: Duration = Duration::from_secs(60);

fn run(place: &Place, arguments: &[&str]) -> Ran {
    place.run(&mut place.toposcope(arguments), MOMENT)
}

/// Write a file in a place; its path.
fn file(place: &Place, name: &str, text: &str) -> String {
    let path = place.folder().join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// (8, 8) in rows on two locations -> columns on four.
fn columns() -> Value {
    let segments: Vec<Value> = (0..4)
        .flat_map(|column| {
            [(0, 0), (1, 8)].map(|(row, at)| json!({"shape": [4, 2], "source": [row, 2 * column, [8, 1]], "target": [column, at, [2, 1]]}))
        })
        .collect();
    json!({"logical_shape": [8, 8], "segments": segments})
}

#[test]
fn a_plan_is_scheduled_for_people_and_for_programs_and_a_fault_is_told_with_its_place() {
    let place = Place::new();
    let plan = file(&place, "plan.json", &columns().to_string());
    let endpoints = file(&place, "ends.json", r#"{"source": {"0": 0, "1": 1}, "target": {"0": 0, "1": 1, "2": 2, "3": 3}}"#);
    let asked = ["plan", "schedule", &plan, "--endpoints", &endpoints, "--bytes-per-peer", "64", "--element-size", "4"];

    let text = run(&place, &asked);
    let said = &text.ended_with(0).stdout;
    assert!(said.starts_with("1 parameter, 8 segments, 6 chunks between processes, at most 1 round of up to 64 B\n"), "{said}");
    let one = run(&place, &[&asked[..], &["--process", "2"]].concat());
    assert!(one.ended_with(0).stdout.contains("\n0→2: 32 B in 1 round, sent through 32 B, received in place\n"), "{}", one.stdout);

    let told = run(&place, &[&asked[..], &["--json"]].concat());
    let told: Value = serde_json::from_str(&told.ended_with(0).stdout).unwrap();
    assert_eq!((&told["chunks"], &told["lanes"].as_array().map(Vec::len)), (&json!(6), &Some(6)));
    assert_eq!(
        told["lanes"][0]["rounds"],
        json!([{"elements": 8, "bytes": 32, "chunks": 1, "sent_in_place": false, "received_in_place": true}])
    );
    assert_eq!(told["processes"][0]["local_copy_bytes"], json!(32));

    let unknown = run(&place, &[&asked[..], &["--process", "9"]].concat());
    assert!(unknown.ended_with(2).stderr.contains("process 9 is none that the endpoints name (0-3)"), "{}", unknown.stderr);
    let none = run(&place, &["plan", "schedule", &plan, "--endpoints", &endpoints, "--bytes-per-peer", "0"]);
    assert!(none.ended_with(2).stderr.contains("0 bytes per peer are less than one element"), "{}", none.stderr);
    let bare = run(&place, &["plan", "schedule", &plan]);
    assert!(bare.ended_with(2).stderr.contains(&format!("{plan}: a plan without endpoints")), "{}", bare.stderr);
    let broken = file(&place, "broken.json", &columns().to_string().replacen("[0,6,[8,1]]", "[0,6.5,[8,1]]", 1));
    let broken = run(&place, &["plan", "schedule", &broken, "--endpoints", &endpoints]);
    assert!(
        broken.ended_with(2).stderr.contains("broken.json: segment 6, source offset: invalid type: floating point `6.5`"),
        "{}",
        broken.stderr
    );
}

#[test]
fn layouts_are_united_whatever_their_order_and_one_that_cannot_be_is_named() {
    let place = Place::new();
    let piece = |shape: [u64; 2], from: u64, columns: u64, location: u64| json!({"shard_shape": shape, "pieces": [{"shape": shape, "source": [from, [4, 1]], "dest": [0, [columns, 1]], "locations": [location]}]});
    let map = |ranks: Value| json!({"version": 1, "params": {"^w$": {"logical_shape": [4, 4], "ranks": ranks}}}).to_string();
    let rows = file(&place, "rows.json", &map(json!({"0": piece([2, 4], 0, 4, 0), "1": piece([2, 4], 8, 4, 1)})));
    let columns = file(&place, "columns.json", &map(json!({"5": piece([4, 1], 0, 1, 5), "6": piece([4, 3], 1, 3, 6)})));
    let out = place.folder().join("out.json").display().to_string();
    let said = run(&place, &["plan", "union", &rows, &columns, "--out", &out]);
    assert_eq!(said.ended_with(0).stdout, format!("{out}: 1 parameter of 2 layouts, 8 pieces\n"));
    let first = fs::read_to_string(&out).unwrap();
    run(&place, &["plan", "union", &columns, &rows, "--out", &out]).ended_with(0);
    assert_eq!(fs::read_to_string(&out).unwrap(), first);
    let read: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        read["params"]["^w$"]["ranks"]["6"]["pieces"][1],
        json!({"shape": [2, 3], "source": [9, [4, 1]], "dest": [6, [3, 1]], "locations": [1, 6]})
    );

    let twice = run(&place, &["plan", "union", &rows, &rows, "--out", &out]);
    assert!(twice.ended_with(2).stderr.contains("parameter w, location 0: invalid: in more than one layout"), "{}", twice.stderr);
    let bad = file(&place, "bad.json", "{\"params\": 1}");
    let bad = run(&place, &["plan", "union", &rows, &bad, "--out", &out]);
    assert!(bad.ended_with(2).stderr.contains("bad.json: "), "{}", bad.stderr);
}

/// Objects that look like the reference's, with every kind of number that it may hold.
const STAND_INS: &str = r#"
import pickle, sys
sys.path.insert(0, sys.argv[1])
import export_plans

class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)

class Number:
    def __init__(self, value):
        self.value = value
    def __index__(self):
        return self.value

def segment(source, target):
    return Thing(source_rank=source, source_offset=Number(2), source_strides=(4, 1), target_rank=target, target_offset=0,
                 target_strides=(2, Number(1)), shape=(4, 2), logical_origin=(0, 2))

plan = Thing(segments=(segment(0, 0), segment(0, 1)), logical_shape=(4, 4), moved_elements=16, statistics=None)
endpoints = Thing(source={0: 2}, target={1: 1, 0: 0})
export_plans.export_plan(plan, "plan.json")
export_plans.export_endpoints(endpoints, "ends.json")
export_plans.export_batch([("a.weight", plan, 2), ("a.bias", plan, 4)], endpoints, "batch.json", bytes_per_peer=Number(4096))

def refused(make, expected):
    try:
        make()
    except ValueError as error:
        assert expected in str(error), error
    else:
        raise AssertionError("not refused: " + expected)

broken = segment(0, 0)
broken.target_offset = 1.5
refused(lambda: export_plans.plan_document(Thing(segments=[segment(0, 0), broken], logical_shape=(4, 4))), "plan.segments[1].target_offset: 1.5: expected a whole number")
broken.target_offset = True
refused(lambda: export_plans.plan_document(Thing(segments=[broken], logical_shape=(4, 4))), "expected a whole number")
broken.target_offset = 0
broken.shape = (4,)
refused(lambda: export_plans.plan_document(Thing(segments=[broken], logical_shape=(4, 4))), "plan.segments[0]: 1 axes, 2 source and 2 target strides")
refused(lambda: export_plans.batch_document([("a", plan, 2), ("a", plan, 2)]), "'a' stands twice")
refused(lambda: export_plans.batch_document([("a", plan, 0)]), "element size of 'a': 0: expected 1 or more")
"#;

#[test]
fn plans_that_python_exports_are_read() {
    let place = Place::new();
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped("no python3");
    }
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
    let mut python = place.command("python3");
    python.args(["-B", "-c", STAND_INS]).arg(contrib).current_dir(place.folder());
    place.run(&mut python, MOMENT).ended_with(0);

    let given =
        Given { endpoints: Some(plans::endpoints(&place.folder().join("ends.json")).unwrap()), element_size: Some(8), ..Given::default() };
    let Ok(Transfers::Batch(plan)) = plans::read(&place.folder().join("plan.json"), &given) else { panic!("no plan") };
    assert_eq!(plan.parameters[0].plan.segments[1].target, Side(1, 0, vec![2, 1]));
    assert_eq!(
        Transfers::Batch(plan).traffic().unwrap().flows.iter().map(|flow| (flow.from, flow.to, flow.bytes)).collect::<Vec<_>>(),
        [(2, 0, 64), (2, 1, 64)]
    );

    let batch = place.folder().join("batch.json");
    let schema = serde_json::from_str(PLAN_SCHEMA).unwrap();
    assert!(jsonschema::is_valid(&schema, &serde_json::from_str(&fs::read_to_string(&batch).unwrap()).unwrap()));
    let Ok(Transfers::Batch(batch)) = plans::read(&batch, &Given::default()) else { panic!("no batch") };
    assert_eq!((batch.bytes_per_peer, batch.parameters.len(), batch.endpoints.target[&1]), (4096, 2, 1));
    assert_eq!(
        batch.parameters.iter().map(|parameter| (&parameter.name[..], parameter.element_size)).collect::<Vec<_>>(),
        [("a.weight", 2), ("a.bias", 4)]
    );
}

#[test]
fn the_schemas_of_plans_and_traffic_are_printed() {
    let place = Place::new();
    for (of, format) in [("plan", "toposcope.plan/1"), ("traffic", "toposcope.traffic/1")] {
        let schema: Value = serde_json::from_str(&run(&place, &["schema", of]).ended_with(0).stdout).unwrap();
        assert_eq!(schema["properties"]["format"]["const"], json!(format));
    }
}
