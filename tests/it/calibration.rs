//! What is written is what the schema says, is read back the same, and broken files are refused with the place.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toposcope::export::{CALIBRATION_SCHEMA, Calibration, calibration, csv, read_calibration, write_calibration, write_csv};
use toposcope::sample::Pattern;
use toposcope::session::store::{Store, parse_header};
use toposcope::session::{EVENT_SCHEMA, Event, HEADER_SCHEMA, Header, Model};
use toposcope::sweep::Cell;
use toposcope::topology::{Efficiency, Hardware};

use crate::made;

/// What breaks a document.
type Change = fn(&mut Value);

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    jsonschema::validator_for(&schema).unwrap()
}

fn whole() -> Calibration {
    calibration(&made::model(&made::records())).unwrap()
}

pub fn faults(schema: &str, document: &Value) -> Vec<String> {
    validator(schema).iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join("cal.json");
        fs::write(&path, text).unwrap();
        path
    }

    /// Read `whole` changed by `change`; the error's text.
    fn refused(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut document = serde_json::to_value(whole()).unwrap();
        change(&mut document);
        read_calibration(&self.write(document.to_string())).unwrap_err().to_string()
    }
}

#[test]
fn a_calibration_passes_the_schema_and_holds_every_repeat_in_order() {
    let scratch = Scratch::new();
    let path = scratch.folder.path().join("cal.json");
    write_calibration(&made::model(&made::records()), &path).unwrap();
    let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &document), [""; 0]);
    let samples = document["samples"].as_array().unwrap();
    // 9 cells x 2 sizes x 7 repeats, and 7 measured again.
    assert_eq!(samples.len(), 9 * 2 * 7 + 7);
    let key = |s: &Value| {
        let number = |key: &str| s[key].as_u64().unwrap_or(0);
        let pattern = s["pattern"].as_str().unwrap().to_owned();
        (pattern, number("from"), number("to"), number("bytes"), number("take"), number("repeat"))
    };
    assert!(samples.is_sorted_by(|a, b| key(a) < key(b)));
    assert_eq!(document["node_of"], json!([0, 0, 1]));
    assert_eq!(document["topology"]["hosts"], json!(["alpha", "beta"]));
    assert_eq!(document["software"]["toposcope"], "0.1.0");
    assert_eq!(fs::read_dir(scratch.folder.path()).unwrap().count(), 1, "no draft is left");
}

#[test]
fn it_is_written_one_sample_a_line_and_read_back_the_same() {
    let scratch = Scratch::new();
    let mut text = Vec::new();
    whole().write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let of = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((of("    {\"pattern\":"), of("    {\"rank\":")), (133, 3));
    assert!(text.contains("\n  \"sizes\": [4096,1048576],\n"), "{text}");
    assert_eq!(read_calibration(&scratch.write(&text)).unwrap(), whole());
}

#[test]
fn a_calibration_plays_back_as_the_session_it_came_from() {
    let again = calibration(&whole().to_model()).unwrap();
    assert_eq!(again, whole());
    let table = Efficiency::default();
    assert_eq!(csv(&whole().to_model(), &table), csv(&made::model(&made::records()), &table));
}

#[test]
fn a_session_without_a_sweep_exports_nothing() {
    let error = calibration(&made::model(&[])).unwrap_err().to_string();
    assert!(error.contains("no sweep"), "{error}");
}

#[test]
fn broken_calibrations_fail_the_schema() {
    let changes: [(&str, Change); 12] = [
        ("an ok sample without seconds", |d| drop(d["samples"][0].as_object_mut().unwrap().remove("seconds"))),
        ("an ok sample without messages", |d| d["samples"][0]["messages"] = json!(0)),
        ("no time at all", |d| d["samples"][0]["seconds"] = json!(0.0)),
        ("a timeout without its reason", |d| {
            d["samples"][0]["status"] = json!("timeout");
        }),
        ("an unknown state", |d| d["samples"][0]["status"] = json!("lost")),
        ("a sample without a state", |d| drop(d["samples"][0].as_object_mut().unwrap().remove("status"))),
        ("a size of nothing", |d| d["samples"][0]["bytes"] = json!(0)),
        ("a rank below 0", |d| d["samples"][0]["from"] = json!(-1)),
        ("a key of its own", |d| d["samples"][0]["speed"] = json!(1)),
        ("another format", |d| d["format"] = json!("toposcope.calibration/2")),
        ("no seed", |d| drop(d.as_object_mut().unwrap().remove("seed"))),
        ("a fit in the place of samples", |d| d["fits"] = json!([])),
    ];
    for (what, change) in changes {
        let mut document = serde_json::to_value(whole()).unwrap();
        change(&mut document);
        assert!(!faults(CALIBRATION_SCHEMA, &document).is_empty(), "{what}");
    }
}

#[test]
fn sessions_pass_their_schemas_and_broken_ones_do_not() {
    assert_eq!(faults(HEADER_SCHEMA, &serde_json::to_value(made::header()).unwrap()), [""; 0]);
    let events = validator(EVENT_SCHEMA);
    for record in made::records() {
        let line = serde_json::to_value(&record).unwrap();
        assert!(events.is_valid(&line), "{line}");
        let mut more = line.clone();
        more["surprise"] = json!(1);
        assert!(!events.is_valid(&more), "{more}");
        let mut untimed = line;
        untimed.as_object_mut().unwrap().remove("t");
        assert!(!events.is_valid(&untimed), "{untimed}");
    }
    assert!(!events.is_valid(&json!({"t": 0.0, "event": "dance"})));
}

/// A session's header and its calibration with what two hosts are made of.
fn with_hardware() -> (Header, Calibration) {
    let mut header = made::header();
    header.topology.hardware = vec![made::hardware("alpha"), Hardware { host: "beta".to_owned(), ..Hardware::default() }];
    let mut model = Model::new(header.clone());
    for record in made::records() {
        model.apply(&record);
    }
    (header, calibration(&model).unwrap())
}

#[test]
fn what_hosts_are_made_of_passes_the_schemas_and_is_read_back() {
    let (header, calibration) = with_hardware();
    let document = serde_json::to_value(&header).unwrap();
    assert_eq!(faults(HEADER_SCHEMA, &document), [""; 0]);
    assert_eq!(parse_header(document.to_string().as_bytes(), Path::new("x")).unwrap(), header);
    let scratch = Scratch::new();
    let mut document = serde_json::to_value(&calibration).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &document), [""; 0]);
    let read = read_calibration(&scratch.write(document.to_string())).unwrap();
    assert_eq!((&read.topology, read.placed().hardware), (&calibration.topology, header.topology.hardware.clone()));
    document["topology"]["hardware"][0]["weather"] = json!("fine");
    assert!(!faults(CALIBRATION_SCHEMA, &document).is_empty());
    let definitions = |schema: &str| serde_json::from_str::<Value>(schema).unwrap()["$defs"].take();
    for of in ["hardware", "lanes", "device", "placement"] {
        assert_eq!(definitions(HEADER_SCHEMA)[of], definitions(CALIBRATION_SCHEMA)[of], "{of}");
    }
}

#[test]
fn names_of_devices_lose_their_escape_codes() {
    let (mut header, mut calibration) = with_hardware();
    let nasty = || "\u{1b}]0;owned\u{7}".to_owned();
    for hardware in [&mut header.topology.hardware, &mut calibration.topology.hardware] {
        hardware[0].pci[3].name = nasty();
        hardware[0].gpus[0].mig = vec![nasty()];
        hardware[1].host = nasty();
    }
    let header = parse_header(&serde_json::to_vec(&header).unwrap(), Path::new("x")).unwrap();
    let calibration = read_calibration(&Scratch::new().write(serde_json::to_string(&calibration).unwrap())).unwrap();
    assert_eq!(header.topology.hardware[0].pci[3].name, "]0;owned");
    let text = format!("{}{}", serde_json::to_string(&header).unwrap(), serde_json::to_string(&calibration).unwrap());
    assert!(!text.contains("\\u001b") && !text.contains("\\u0007"));
}

/// Of the largest box, a few hundred kilobytes even when it is indented.
#[test]
fn a_header_with_hardware_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let mut header = made::header();
    header.topology.hardware = vec![made::hardware("alpha")];
    drop(Store::create(folder.path(), &header).unwrap());
    let bytes = std::fs::metadata(folder.path().join("header.json")).unwrap().len();
    assert!(bytes < 300_000, "{bytes}");
}

#[test]
fn the_place_and_what_was_expected_are_told() {
    let scratch = Scratch::new();
    let mut text = Vec::new();
    whole().write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();

    let broken = text.replacen("\"mover\": \"mpi_sendrecv\"", "\"mover\": \"pigeon\"", 1);
    let line = 1 + broken.lines().position(|line| line.contains("pigeon")).unwrap();
    let error = read_calibration(&scratch.write(&broken)).unwrap_err().to_string();
    assert!(error.contains(&format!("cal.json:{line}:")), "{error}");
    assert!(error.contains("pigeon") && error.contains("expected one of `memcpy`"), "{error}");

    // Cut at every tenth byte: always refused, never a panic.
    for end in (0..text.trim_end().len()).step_by(10) {
        let error = read_calibration(&scratch.write(&text[..end])).unwrap_err().to_string();
        assert!(error.contains("cal.json:"), "{error}");
    }
    let missing = read_calibration(&scratch.folder.path().join("other.json")).unwrap_err().to_string();
    assert!(missing.contains("other.json: No such file"), "{missing}");
}

#[test]
fn later_versions_are_read_or_refused_by_their_number() {
    let scratch = Scratch::new();
    let mut document = serde_json::to_value(whole()).unwrap();
    document["format"] = json!("toposcope.calibration/1.7");
    document["weather"] = json!("fine");
    document["samples"][0]["temperature_c"] = json!(61);
    document["placement"][0]["board"] = json!("H200");
    let read = read_calibration(&scratch.write(document.to_string())).unwrap();
    assert_eq!(read.samples, whole().samples);

    let newer = scratch.refused(|document| *document = json!({"format": "toposcope.calibration/2.1", "else": true}));
    let told = "has format toposcope.calibration/2.1, this program reads toposcope.calibration/1 ";
    assert!(newer.contains(told), "{newer}");
    for other in ["toposcope.calibration/x", "toposcope.session/1.0", "", "toposcope.calibration/0"] {
        let error = scratch.refused(|document| document["format"] = json!(other));
        assert!(error.contains("expected toposcope.calibration/1"), "{error}");
    }
}

#[test]
fn documents_at_odds_with_themselves_are_refused_with_the_key() {
    let scratch = Scratch::new();
    let changes: [(&str, Change); 7] = [
        ("node_of is a list of 2", |d| d["node_of"] = json!([0, 0])),
        ("node_of[1] is 9", |d| d["node_of"] = json!([0, 9, 1])),
        ("group[0] is 3", |d| d["group"] = json!([3])),
        ("placement[0].rank is 1", |d| d["placement"][0]["rank"] = json!(1)),
        ("samples[4].to is 3", |d| d["samples"][4]["to"] = json!(3)),
        ("samples[4].bytes is 0", |d| d["samples"][4]["bytes"] = json!(0)),
        ("samples[4].status is ok with", |d| d["samples"][4]["messages"] = json!(0)),
    ];
    for (told, change) in changes {
        let error = scratch.refused(change);
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn names_from_files_lose_their_escape_codes() {
    let scratch = Scratch::new();
    let mut document = serde_json::to_value(whole()).unwrap();
    document["topology"]["hosts"][0] = json!("al\u{1b}[31mpha");
    document["placement"][0]["host"] = json!("al\u{1b}[31mpha");
    document["samples"][0]["reason"] = json!("\u{1b}]0;owned\u{7}");
    document["software"]["mpi\u{1b}"] = json!("x\u{9b}2J");
    let read = read_calibration(&scratch.write(document.to_string())).unwrap();
    let text = format!("{}{}", csv(&read.to_model(), &Efficiency::default()), serde_json::to_string(&read).unwrap());
    assert!(!text.chars().any(|c| c.is_control() && c != '\r' && c != '\n'), "{text:?}");
    assert!(!text.contains("\\u001b"), "{text}");
}

#[test]
fn the_table_tells_rates_intervals_asymmetry_and_states() {
    let scratch = Scratch::new();
    let model = made::model(&made::records());
    let path = scratch.folder.path().join("cal.csv");
    write_csv(&model, &Efficiency::default(), &path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let mut lines = text.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let names = &lines.next().unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    assert_eq!(rows.len(), 18);
    let find = |pattern: Pattern, from: &str, to: &str, bytes: &str| {
        let row = rows.iter().find(|row| row[0] == pattern.name() && row[1] == from && row[2] == to && row[6] == bytes).unwrap();
        move |name: &str| row[names.iter().position(|&column| column == name).unwrap()]
    };
    let number = |text: &str| text.parse::<f64>().unwrap();

    let slow = find(Pattern::Peer, "2", "0", "1048576");
    assert_eq!((slow("from_host"), slow("to_host"), slow("path")), ("beta", "alpha", "inter_node"));
    assert_eq!((slow("n"), slow("messages"), slow("ok"), slow("status")), ("7", "28", "7", "ok"));
    assert!((number(slow("bandwidth_median_GBps")) - 0.2).abs() < 1e-6);
    assert!((number(slow("median_s")) - 1_048_576.0 / 0.2e9).abs() < 1e-7);
    assert!((number(slow("bandwidth_best_GBps")) - 0.206).abs() < 1e-6);
    assert!((number(slow("bandwidth_ci95_low_GBps")) - 0.194).abs() < 1e-6);
    assert!((number(slow("bandwidth_ci95_high_GBps")) - 0.206).abs() < 1e-6);
    assert!((number(slow("asymmetry_ln_ratio")) - 0.2_f64.ln()).abs() < 1e-4);
    assert!((number(find(Pattern::Peer, "0", "2", "1048576")("asymmetry_ln_ratio")) + 0.2_f64.ln()).abs() < 1e-4);

    let hung = find(Pattern::Peer, "1", "2", "1048576");
    assert_eq!((hung("status"), hung("n"), hung("ok"), hung("timeout")), ("timeout", "2", "2", "5"));
    assert_eq!((hung("bandwidth_ci95_low_GBps"), hung("reason")), ("", "no completion within 10 s"));
    let again = find(Pattern::Peer, "0", "1", "1048576");
    assert_eq!((again("take"), again("n")), ("1", "7"));
    let waived = find(Pattern::Local, "2", "2", "1048576");
    assert_eq!((waived("bandwidth_best_GBps"), waived("min_s"), waived("median_s")), ("", "", ""));
    assert_eq!((waived("waived"), waived("asymmetry_ln_ratio")), ("7", ""));
}

#[test]
fn every_pattern_passes_the_schemas_and_reads_back() {
    let events = validator(EVENT_SCHEMA);
    for record in made::grouped() {
        let line = serde_json::to_value(&record).unwrap();
        assert!(events.is_valid(&line), "{line}");
        assert_eq!(serde_json::from_value::<toposcope::session::Record>(line).unwrap(), record);
    }
    let written = calibration(&made::model(&made::grouped())).unwrap();
    // Three repeats and a warm-up of 2 + 2 + 3 + 2 transfers.
    assert_eq!(written.samples.len(), 9 * 4);
    assert_eq!(faults(CALIBRATION_SCHEMA, &serde_json::to_value(&written).unwrap()), [""; 0]);
    assert_eq!(calibration(&written.to_model()).unwrap().samples, written.samples);
    for change in [
        (|s| drop(s.as_object_mut().unwrap().remove("peers"))) as fn(&mut Value),
        |s| s["shift"] = json!(1),
        |s| s["pattern"] = json!("peer"),
    ] {
        let mut document = serde_json::to_value(&written).unwrap();
        let fan = document["samples"].as_array_mut().unwrap().iter_mut().find(|sample| sample["pattern"] == "fan_in").unwrap();
        change(fan);
        assert!(!faults(CALIBRATION_SCHEMA, &document).is_empty());
    }
}

#[test]
fn the_reference_gets_its_own_field_names() {
    let written = calibration(&made::model(&made::grouped())).unwrap();
    let document = serde_json::to_value(toposcope::export::deepspeed(&written)).unwrap();
    let of =
        |pattern: &str| document["samples"].as_array().unwrap().iter().filter(|s| s["pattern"] == pattern).cloned().collect::<Vec<_>>();
    // Warm-ups and the custom set stay away; a duplex is two ways of one pair.
    assert_eq!((of("peer").len(), of("fan_in").len(), of("relay").len(), of("custom").len()), (6, 6, 9, 0));
    assert!(of("peer").iter().all(|sample| sample["both_ways"] == true));
    assert_eq!(document["fan_widths"], json!([2]));
    let one_message = 2.0 * f64::from(1 << 20) / 1e9;
    let fan = &of("fan_in")[0];
    assert_eq!((&fan["root"], &fan["peers"], &fan["width"], &fan["to_process"]), (&json!(0), &json!([1, 2]), &json!(2), &json!(0)));
    assert!((fan["root_seconds"].as_f64().unwrap() - one_message).abs() < 1e-9, "{fan}");
    let relay = of("relay").into_iter().find(|sample| sample["process"] == 0).unwrap();
    // Rank 0 receives from 2, of another host, and sends to 1, of its own.
    assert_eq!((&relay["from_process"], &relay["to_process"]), (&json!(2), &json!(1)));
    assert_eq!((&relay["receive_path"], &relay["send_path"]), (&json!("inter_node"), &json!("intra_node")));
}

#[test]
fn fits_pass_their_schema_and_keep_to_the_samples() {
    let model = made::model(&made::records());
    let fits = toposcope::session::fits(&model, Some(&toposcope::fit::Confidence::new(0.95)));
    let mut text = Vec::new();
    toposcope::export::write_json(&fits, &mut text).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(faults(toposcope::export::FITS_SCHEMA, &document), [""; 0]);
    let of = |key: Value| document.as_array().unwrap().iter().find(|fit| fit["pattern"] == "peer" && fit["key"] == key).cloned();
    // 2 → 0 is a fifth as fast as the rest of its class.
    let slow = of(json!({"from": 2, "to": 0})).unwrap();
    assert!((slow["gbps"].as_f64().unwrap() - 0.2).abs() < 0.01, "{slow}");
    let class = of(json!({"path": "inter_node"})).unwrap();
    assert_eq!((&class["spread"]["min_key"], &class["spread"]["count"]), (&json!({"from": 2, "to": 0}), &json!(4)));
    // 1 → 2 timed out at one of its two sizes but for two repeats: still a fit, without an interval.
    assert_eq!(of(json!({"from": 1, "to": 2})).unwrap()["gbps_ci"], Value::Null);
    for change in
        [(|fit| fit["key"]["speed"] = json!(1)) as fn(&mut Value), |fit| drop(fit.as_object_mut().unwrap().remove("max_rel_error"))]
    {
        let mut broken = document.clone();
        change(&mut broken[0]);
        assert!(!faults(toposcope::export::FITS_SCHEMA, &broken).is_empty());
    }
}

#[test]
fn a_profile_for_taccl_has_its_matrices_receiver_first() {
    let model = made::model(&made::records());
    let fits = toposcope::session::fits(&model, None);
    // Two ranks on one host, one on another: TACCL has no such machine.
    let refused = toposcope::export::taccl("x", &made::topology(), &fits, 1 << 20).unwrap_err().to_string();
    assert!(refused.contains("as many ranks each"), "{refused}");
    let mut even = made::topology();
    even.ranks.truncate(2);
    let profile = serde_json::to_value(toposcope::export::taccl("x", &even, &fits, 1 << 20).unwrap()).unwrap();
    // 10 GB/s: 1 MiB in 104.9 µs.
    let beta = profile["node_betas_list"][0].as_f64().unwrap();
    assert!((beta - 104.86).abs() < 1.0, "{profile}");
    assert_eq!((&profile["gpus_per_node"], &profile["links"]), (&json!(2), &Value::Null));
}

#[test]
fn what_lies_far_from_its_cell_is_flagged_and_stays_in_every_number() {
    let mut records = made::records();
    let mut late = 0;
    for record in &mut records {
        if let Event::ProbeDone { samples, .. } = &mut record.event
            && (samples[0].pattern, samples[0].from, samples[0].to, samples[0].bytes, samples[0].take) == (Pattern::Peer, 0, 2, 4096, 0)
        {
            samples[3].seconds = samples[3].seconds.map(|seconds| 9.0 * seconds);
            // A file may say anything; what counts are the samples.
            samples[0].outlier = true;
            late += 1;
        }
    }
    assert_eq!(late, 1);
    let written = calibration(&made::model(&records)).unwrap();
    let flagged: Vec<_> = written.samples.iter().filter(|s| s.outlier).map(|s| (s.pattern, s.from, s.to, s.bytes, s.repeat)).collect();
    assert_eq!(flagged, [(Pattern::Peer, 0, 2, 4096, 3)]);
    let size = made::model(&records);
    let size = size.cells.get(Cell { pattern: Pattern::Peer, from: 0, to: 2 }, 4096).unwrap();
    assert_eq!((size.count, size.times().len()), (7, 7));
}
