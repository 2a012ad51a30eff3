//! `toposcope plan build` (issue 6, must show a and h).

use serde_json::{Value, json};
use toposcope::plan::map::{Maps, replicated, split, write};

use super::{file, run};
use crate::place::Place;

/// (8, 8): all of it on locations 0 and 1 -> rows on two.
fn maps(place: &Place) -> [String; 2] {
    let of = |map| write(&Maps::from([("layer.w".to_owned(), map)]));
    let source = of(replicated(&[8, 8], &[0, 1]).unwrap());
    let target = of(split(&[8, 8], 0, &[4, 4]).unwrap());
    [file(place, "source.json", &source), file(place, "target.json", &target)]
}

#[test]
fn two_layouts_make_a_plan_and_a_policy_is_a_name_or_a_file_of_answers() {
    let place = Place::new();
    let [source, target] = maps(&place);
    let path = |name: &str| place.folder().join(name).display().to_string();
    let (requests, out) = (path("requests.json"), path("plan.json"));
    let asked = ["plan", "build", "--source", &source, "--target", &target, "--element-size", "layer.w=4"];
    let read = |path: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    let senders = |path: &str| {
        let segments = read(path)["parameters"][0]["plan"]["segments"].as_array().unwrap().clone();
        segments.iter().map(|own| own["source"][0].as_i64().unwrap()).collect::<Vec<_>>()
    };

    let told = run(&place, &[&asked[..], &["--requests", &requests, "--out", &out]].concat());
    let said = &told.ended_with(0).stdout;
    assert!(
        said.starts_with("1 parameter, 2 segments, 256 B\n2 locations send, 128 B on average; location 0 sends most, 128 B\n"),
        "{said}"
    );
    assert_eq!(senders(&out), [0, 1]);
    assert_eq!(read(&out)["parameters"][0]["element_size"], json!(4));
    run(&place, &[&asked[..], &["--policy", "first_holder", "--out", &out]].concat()).ended_with(0);
    assert_eq!(senders(&out), [0, 0]);

    let asks = read(&requests);
    assert_eq!(asks["requests"][1]["logical_origin"], json!([4, 0]));
    assert_eq!(asks["requests"][1]["candidates"].as_array().unwrap().len(), 2);
    let part = |row: u64, source: i64| json!({"logical_origin": [row, 0], "shape": [2, 8], "source_location": source});
    let answers = json!({"format": "toposcope.answers/1", "answers": [1, [part(4, 0), part(6, 1)]]});
    let answers = file(&place, "answers.json", &answers.to_string());
    run(&place, &[&asked[..], &["--policy", &answers, "--min-split", "64", "--out", &out]].concat()).ended_with(0);
    assert_eq!(senders(&out), [1, 0, 1]);
    let small = run(&place, &[&asked[..], &["--policy", &answers, "--min-split", "65"]].concat());
    let said = &small.ended_with(2).stderr;
    assert!(said.contains("parameter layer.w, target map, location 1: replica policy: ") && said.contains("part 0: 64 bytes"), "{said}");
}

#[test]
fn what_is_wrong_in_a_map_is_told_with_file_parameter_location_piece_and_rule() {
    let place = Place::new();
    let [source, target] = maps(&place);
    let text = std::fs::read_to_string(&source).unwrap();
    let refused = |change: (&str, &str), parts: &[&str]| {
        let bad = file(&place, "bad.json", &text.replacen(change.0, change.1, 1));
        let ran = run(&place, &["plan", "build", "--source", &bad, "--target", &target]);
        let said = &ran.ended_with(2).stderr;
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    };
    let at = "parameter layer.w";
    refused(("\"locations\":[0,1]", "\"locations\":[0]"), &["bad.json", at, "source map, location 0, piece 0", "rule M5"]);
    refused(("\"dest\":[0,", "\"dest\":[8,"), &[at, "source map, location 0, piece 0", "rule M2", "address 71"]);
    refused(("\"dest\":[0,", "\"dest\":[\"x\","), &["bad.json", at, "location 0, piece 0", "invalid type"]);
    refused(("\"logical_shape\":[8,8]", "\"logical_shape\":[8,9]"), &[at, "shape [8, 8] in the target map, [8, 9] in the source map"]);
    refused(("layer", "other"), &["parameter layer.w", "the source map does not have it"]);
    let policy = run(&place, &["plan", "build", "--source", &source, "--target", &target, "--policy", "best"]);
    assert!(policy.ended_with(2).stderr.contains("\"best\" is neither"), "{}", policy.stderr);
}

#[test]
fn what_a_plan_was_built_with_is_in_it_and_files_that_are_no_prices_are_told_as_such() {
    let place = Place::new();
    // A map without a name, as the reference stores one parameter.
    let of = |map| write(&Maps::from([(String::new(), map)]));
    let source = file(&place, "source.json", &of(replicated(&[8, 8], &[0, 1]).unwrap()));
    let target = file(&place, "target.json", &of(split(&[8, 8], 0, &[4, 4]).unwrap()));
    let ends = file(&place, "ends.json", r#"{"source": {"0": 0, "1": 1}, "target": {"0": 2, "1": 3}}"#);
    let out = place.folder().join("plan.json").display().to_string();
    let asked = ["plan", "build", "--source", &source, "--target", &target];
    run(&place, &[&asked[..], &["--endpoints", &ends, "--out", &out]].concat()).ended_with(0);
    let said = run(&place, &["replay", &out, "--fabric", "h20-2x8"]);
    assert!(said.ended_with(0).stdout.contains("4 ranks, 2 flows"), "{}", said.stdout);
    // Without endpoints it is the reference's own document, and where they are missing the way to give them is told.
    run(&place, &[&asked[..], &["--out", &out]].concat()).ended_with(0);
    let said = run(&place, &["replay", &out, "--fabric", "h20-2x8"]);
    assert!(said.ended_with(2).stderr.contains("toposcope plan build --endpoints FILE"), "{}", said.stderr);

    for (name, text, expected) in [
        ("words", "hello", "no JSON: expected the folder of a session"),
        ("object", "{\"a\": 1}", "an object without format, samples or fits: expected the folder of a session"),
        ("empty", "", "the file is empty: expected the folder of a session"),
    ] {
        let said = run(&place, &["replay", &out, "--endpoints", &ends, "--calibration", &file(&place, name, text)]);
        assert!(said.ended_with(2).stderr.contains(expected), "{name}: {}", said.stderr);
    }
    let said = run(&place, &["replay", &out, "--endpoints", &ends, "--fabric", &source]);
    assert!(said.ended_with(2).stderr.contains("what was measured goes with --calibration"), "{}", said.stderr);
    let said = run(&place, &["replay", &place.folder().display().to_string(), "--fabric", "h20-2x8"]);
    assert!(said.ended_with(2).stderr.contains("a folder: expected one of the files in it"), "{}", said.stderr);
}
