//! What commands print as JSON, checked against the schema that `toposcope schema` names for it.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::calibration::faults;
use crate::place::{Place, Ran};

const MOMENT: Duration = Duration::from_secs(60);

fn run(place: &Place, words: &str) -> Ran {
    place.run(&mut place.toposcope(&words.split_whitespace().collect::<Vec<_>>()), MOMENT)
}

/// The command's JSON, once it is as its schema tells; and the schema.
#[track_caller]
fn checked(place: &Place, words: &str, schema: &str) -> (Value, String) {
    let ran = run(place, words);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{words}: {error}: {ran:?}"));
    let schema = run(place, &format!("schema {schema}")).ended_with(0).stdout.clone();
    assert_eq!(faults(&schema, &told), [""; 0], "{words}");
    (told, schema)
}

/// A document that lacks something, or has a number in the place of a text, is refused.
#[track_caller]
fn strict(schema: &str, told: &Value, spoil: impl FnOnce(&mut Value)) {
    let mut other = told.clone();
    spoil(&mut other);
    assert_ne!(other, *told);
    assert_ne!(faults(schema, &other), [""; 0], "{other}");
}

#[test]
fn what_only_tells_is_as_its_schema() {
    let place = Place::new();
    for (words, schema) in [("fabrics --json", "fabrics"), ("scenarios --json", "scenarios-list")] {
        let (told, schema) = checked(&place, words, schema);
        assert!(told.as_array().is_some_and(|all| all.len() > 3), "{words}: {told}");
        strict(&schema, &told, |told| told[0]["name"] = json!(3));
    }
    if cfg!(feature = "tui") {
        let (told, schema) = checked(&place, "themes --json", "themes");
        assert_eq!((&told[0]["name"], &told[0]["own"]), (&json!("dark"), &json!(false)));
        strict(&schema, &told, |told| told[0]["own"] = json!("no"));
        let (told, schema) = checked(&place, "keys --json", "keys");
        let quit = told.as_array().unwrap().iter().find(|one| one["action"] == "quit").unwrap();
        assert_eq!(quit["keys"], json!(["q", "ctrl-c"]));
        strict(&schema, &told, |told| told[0]["context"] = json!("nowhere"));
    }
    let (told, schema) = checked(&place, "doctor --json", "doctor");
    strict(&schema, &told, |told| told["checks"][0]["state"] = json!("fine"));
    let (told, schema) = checked(&place, "--ranks 3 discover --json", "placement");
    assert_eq!(told["ranks"].as_array().map(Vec::len), Some(3));
    strict(&schema, &told, |told| told["ranks"][0]["rank"] = json!("0"));
}

#[test]
fn what_is_measured_priced_and_compared_is_as_its_schema() {
    let place = Place::new();
    let sweep = "sweep --engine sim --fabric b70-8 --sizes 64K,1M --patterns peer,local --repeats 6 --json";
    let (told, schema) = checked(&place, &format!("{sweep} --session one --out cal.json"), "sweep");
    assert_eq!(told["ranks"], json!(8));
    strict(&schema, &told, |told| told["ok"] = json!("all"));
    checked(&place, &format!("{sweep} --seed 9 --session two"), "sweep");

    let (told, schema) = checked(&place, "diff one two --json", "changes");
    strict(&schema, &told, |told| told["changed"] = json!(1));
    let (again, _) = checked(&place, "sessions compare one two --json", "changes");
    assert_eq!(again, told);
    checked(&place, "fit cal.json --json", "fits");
    checked(&place, "diagnose one --json", "diagnosis");

    let segment = |row: usize, column: usize, at: usize| json!({"shape": [4, 2], "source": [row, 2 * column, [8, 1]], "target": [column, at, [2, 1]]});
    let segments: Vec<Value> = (0..4).flat_map(|column| [segment(0, column, 0), segment(1, column, 8)]).collect();
    fs::write(place.folder().join("plan.json"), json!({"logical_shape": [8, 8], "segments": segments}).to_string()).unwrap();
    let ends = json!({"source": {"0": 0, "1": 1}, "target": {"0": 0, "1": 1, "2": 2, "3": 3}});
    fs::write(place.folder().join("ends.json"), ends.to_string()).unwrap();
    let plan = "plan.json --endpoints ends.json --element-size 4";
    let (told, schema) = checked(&place, &format!("plan schedule {plan} --bytes-per-peer 64 --json"), "schedule");
    strict(&schema, &told, |told| told["lanes"][0]["from"] = Value::Null);
    let (told, schema) = checked(&place, &format!("replay {plan} --calibration cal.json --json"), "prices");
    strict(&schema, &told, |told| told["plans"][0]["seconds"] = Value::Null);
    checked(&place, &format!("replay {plan} --fabric b70-8 --json"), "prices");
    let (told, schema) = checked(&place, &format!("replay {plan} --execute --fabric b70-8 --repeats 2 --json"), "executions");
    assert!(told[0]["runs"].as_array().map(Vec::len) == Some(2) && told[0]["within"].is_boolean(), "{told}");
    strict(&schema, &told, |told| told[0]["runs"] = json!(2));

    let piece = |shape: [u64; 2], from: u64, columns: u64, location: u64| json!({"shard_shape": shape, "pieces": [{"shape": shape, "source": [from, [4, 1]], "dest": [0, [columns, 1]], "locations": [location]}]});
    let map = |ranks: Value| json!({"version": 1, "params": {"^w$": {"logical_shape": [4, 4], "ranks": ranks}}}).to_string();
    let write = |name: &str, text: String| fs::write(place.folder().join(name), text).unwrap();
    write("rows.json", map(json!({"0": piece([2, 4], 0, 4, 0), "1": piece([2, 4], 8, 4, 1)})));
    write("columns.json", map(json!({"5": piece([4, 1], 0, 1, 5), "6": piece([4, 3], 1, 3, 6)})));
    let (told, schema) = checked(&place, "plan build --source rows.json --target columns.json --element-size 4 --json", "built");
    assert_eq!(told["moved_elements"], json!(16));
    strict(&schema, &told, |told| told["segments"] = json!("four"));

    let strategies = "strategies --calibration cal.json --bytes 64MiB --trainers 0-3 --engines 4-7 --json";
    let (told, schema) = checked(&place, strategies, "strategies");
    assert!(told["strategies"].as_array().is_some_and(|all| all.len() > 1), "{told}");
    strict(&schema, &told, |told| told["strategies"][0]["name"] = Value::Null);
    checked(&place, "strategies --fabric b70-8 --bytes 64MiB --trainers 0-3 --engines 4-7 --shards --json", "strategies");
}

#[test]
fn sessions_are_listed_renamed_noted_named_and_deleted() {
    let place = Place::new();
    let listed = |place: &Place| checked(place, "sessions --json", "sessions").0;
    assert_eq!(listed(&place)["sessions"], json!([]));
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/sessions/lab-4x4");
    let home = place.folder().join("data/toposcope/sessions");
    for name in ["one", "two"] {
        fs::create_dir_all(home.join(name)).unwrap();
        for file in ["header.json", "events.ndjson"] {
            fs::copy(format!("{lab}/{file}"), home.join(name).join(file)).unwrap();
        }
    }
    fs::create_dir(home.join("torn")).unwrap();
    let names = |told: &Value| -> Vec<String> {
        told["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["state"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(names(&listed(&place)), ["one ended", "two ended", "torn broken"]);
    checked(&place, "sessions rename one eins --json", "sessions");
    checked(&place, "sessions note eins cable --json", "sessions");
    assert_eq!(run(&place, "sessions note eins").ended_with(0).stdout, "cable\n");
    assert_eq!(names(&listed(&place)), ["eins ended", "two ended", "torn broken"]);
    // A name stands for the session wherever one is read.
    assert_eq!(run(&place, "diff eins two --json").ended_with(0).stderr, "");
    run(&place, "fit last").ended_with(0);
    run(&place, "export two --format csv --out two.csv").ended_with(0);
    // Nothing goes without a question, and what is no session does not go at all.
    let asked = run(&place, "sessions delete two");
    assert!(asked.ended_with(2).stderr.contains("--yes"), "{}", asked.stderr);
    let torn = run(&place, "sessions delete torn two --yes");
    assert!(torn.ended_with(2).stderr.contains("left alone"), "{}", torn.stderr);
    assert_eq!(names(&listed(&place)).len(), 3);
    checked(&place, "sessions delete two --yes --json", "sessions");
    assert_eq!(names(&listed(&place)), ["eins ended", "torn broken"]);
    let taken = run(&place, "sessions rename eins torn");
    assert!(taken.ended_with(2).stderr.contains("is there already"), "{}", taken.stderr);
}

#[test]
fn settings_are_printed_taken_and_refused_with_their_line() {
    let place = Place::new();
    let printed = run(&place, "--print-config").ended_with(0).stdout.clone();
    let folder = place.folder().join("config/toposcope");
    fs::create_dir_all(&folder).unwrap();
    let write = |text: &str| fs::write(folder.join("config.toml"), text).unwrap();
    let measured = |place: &Place, words: &str| -> Value {
        let ran = run(place, &format!("sweep --engine sim --fabric laptop --json {words}"));
        serde_json::from_str(&ran.ended_with(0).stdout).unwrap()
    };
    write(&printed.replace("sizes = \"auto\"", "sizes = \"64K\"").replace("repeats = \"auto\"", "repeats = 2"));
    assert_eq!(measured(&place, "--session a")["at_bytes"], json!(65536));
    assert_eq!(measured(&place, "--sizes 4K --session b")["at_bytes"], json!(4096));
    let mut command = place.toposcope(&["sweep", "--engine", "sim", "--fabric", "laptop", "--json"]);
    let ran = place.run(command.env("TOPOSCOPE_SWEEP_SIZES", "16K"), MOMENT);
    let told: Value = serde_json::from_str(&ran.ended_with(0).stdout).unwrap();
    assert_eq!(told["at_bytes"], json!(16384));
    // Where sessions go, the settings say, too.
    write(&format!("sessions = {:?}\n[sweep]\nsizes = '4K'\nrepeats = 2\n", place.folder().join("mine").display().to_string()));
    let session = measured(&place, "")["session"].as_str().unwrap().to_owned();
    assert!(session.starts_with(&place.folder().join("mine").display().to_string()), "{session}");
    write("[sweep]\nsizes = 'many'\n");
    let refused = run(&place, "sweep --engine sim --fabric laptop");
    assert!(refused.ended_with(2).stderr.contains("config.toml:2: sweep.sizes = 'many': expected auto, sizes"), "{}", refused.stderr);
    // What mends a file works beside a broken one.
    run(&place, "--print-config").ended_with(0);
    run(&place, "doctor").ended_with(0);
    if cfg!(feature = "tui") {
        write("theme = 'drak'\n");
        let refused = run(&place, "sessions");
        assert!(
            refused.ended_with(2).stderr.contains("config.toml:1: theme: there is no theme \"drak\"; did you mean \"dark\"?"),
            "{}",
            refused.stderr
        );
    }
}
