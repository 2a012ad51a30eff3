//! Sessions measured with released or committed versions: each still opens and gives everything it gave.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toposcope::export::CALIBRATION_SCHEMA;
use toposcope::session::{EVENT_SCHEMA, HEADER_SCHEMA, Model, store};

use crate::calibration::faults;
use crate::place::Place;

const MOMENT: Duration = Duration::from_secs(60);

/// Every folder in `sessions/`.
fn committed() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions");
    // Absent until the first one is committed.
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Open, fold, and export a session in every format.
fn opens(session: &Path) {
    let recorded = store::read(session).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recorded.extent.cut, 0, "{}: a committed session ends with a whole event", session.display());
    assert!(!recorded.records.is_empty(), "{}: nothing happened in it", session.display());
    let header: Value = serde_json::from_slice(&fs::read(session.join("header.json")).unwrap()).unwrap();
    assert_eq!(faults(HEADER_SCHEMA, &header), [""; 0], "{}", session.display());
    let last: Value = serde_json::to_value(recorded.records.last().unwrap()).unwrap();
    assert_eq!(faults(EVENT_SCHEMA, &last), [""; 0], "{}", session.display());
    let mut model = Model::new(recorded.header);
    for record in &recorded.records {
        model.apply(record);
    }
    assert!(model.samples() > 0, "{}: no sample", session.display());

    let place = Place::new();
    let export = |format: &str| {
        let out = place.folder().join(format!("out.{format}"));
        let mut command = place.toposcope(&["export", "--format", format, "--out"]);
        place.run(command.arg(&out).arg(session), MOMENT).ended_with(0);
        fs::read_to_string(out).unwrap()
    };
    let calibration: Value = serde_json::from_str(&export("calibration")).unwrap();
    assert_eq!(faults(CALIBRATION_SCHEMA, &calibration), [""; 0], "{}", session.display());
    let timed = calibration["samples"].as_array().unwrap().iter().filter(|sample| sample["warmup"] != true).count();
    assert_eq!(timed as u64, model.samples(), "{}", session.display());
    let table = export("csv");
    let cells: usize = model.cells.iter().map(|(_, sizes)| sizes.len()).sum();
    assert_eq!(table.lines().count(), 1 + cells, "{}", session.display());
    if cfg!(feature = "tui") {
        let picture = export("svg");
        assert!(picture.starts_with("<svg") || picture.starts_with("<?xml"), "{}", session.display());
        // Small rates are told in MB/s.
        assert!(picture.contains("B/s") && picture.trim_end().ends_with("</svg>"), "{}", session.display());
    }
}

#[test]
fn every_committed_session_opens_and_exports() {
    for session in committed() {
        opens(&session);
    }
}

/// The same for one that is measured now: `sessions/` may be empty.
#[test]
fn a_session_of_this_version_opens_and_exports() {
    let place = Place::new();
    let session = place.session();
    let mut command = place.toposcope(&["sweep", "--ranks", "2", "--sizes", "4KiB,64KiB", "--repeats", "6", "--arena", "1MiB"]);
    place.run(command.arg("--session").arg(&session), MOMENT).ended_with(0);
    let kept = tempfile::tempdir().unwrap();
    let moved = kept.path().join("session");
    fs::rename(&session, &moved).unwrap();
    drop(place);
    opens(&moved);
}

/// The words of a picture, which stand each by itself in it.
#[cfg(feature = "tui")]
fn words(picture: &str) -> String {
    let texts = picture.split("<text").skip(1).filter_map(|text| text.split_once('>')?.1.split_once('<'));
    texts.map(|(word, _)| word.trim()).collect::<Vec<_>>().join(" ")
}

#[test]
#[cfg(feature = "tui")]
fn a_part_of_a_large_matrix_is_drawn_as_the_screen_shows_it() {
    let place = Place::new();
    let session = place.folder().join("large");
    let sweep = "sweep --engine sim --fabric nvswitch-32x8 --patterns peer --pairs 2 --sizes 1MiB --repeats 1 --warmup 0";
    let mut command = place.toposcope(&sweep.split(' ').collect::<Vec<_>>());
    command.arg("--session").arg(&session).arg("--out").arg(place.folder().join("large.json"));
    place.run(&mut command, MOMENT).ended_with(0);
    let out = place.folder().join("matrix.svg");
    let export = |options: &str| {
        let mut command = place.toposcope(&["export", "--format", "svg", "--cells", "160x50", "--out"]);
        command.arg(&out).arg(&session).args(options.split(' '));
        command
    };
    let picture = |options: &str| {
        place.run(&mut export(options), MOMENT).ended_with(0);
        words(&fs::read_to_string(&out).unwrap())
    };
    let part = picture("--zoom node3:node9 --order topology --reduce mean");
    assert!(part.contains("node3 → node9") && part.contains("by topology"), "{part}");
    let whole = picture("--reduce mean --order slowness");
    assert!(whole.contains("mean of") && whole.contains("slowest first") && !whole.contains("node3 → node9"), "{whole}");
    for (options, word) in [
        ("--order size", "is not one of rank, topology, slowness"),
        ("--reduce median", "is not one of worst, min, max, mean"),
        ("--zoom node99", "no rank, host or rack is called"),
        ("--zoom 12:256", "there is no rank 256, only 0 to 255"),
    ] {
        let ran = place.run(&mut export(options), MOMENT);
        ran.ended_with(2);
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
}

#[test]
#[cfg(feature = "tui")]
fn plans_are_drawn_over_what_a_session_measured() {
    let place = Place::new();
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/lab-4x4");
    let plan = |name: &str, from: usize| {
        let path = place.folder().join(format!("{name}.json"));
        let flow = format!(r#"{{"stage":0,"from":{from},"to":0,"bytes":67108864,"messages":1}}"#);
        let stages = r#"[{"name":"all of it","waits":true}]"#;
        fs::write(&path, format!(r#"{{"format":"toposcope.traffic/1","name":"{name}","ranks":4,"stages":{stages},"flows":[{flow}]}}"#))
            .unwrap();
        path
    };
    let picture = |plans: &[&PathBuf]| {
        let out = place.folder().join("replay.svg");
        let mut command = place.toposcope(&["export", "--format", "svg", "--tab", "replay", "--cells", "160x50", "--out"]);
        command.arg(&out).arg(&session);
        for plan in plans {
            command.arg("--plan").arg(plan);
        }
        place.run(&mut command, MOMENT).ended_with(0);
        words(&fs::read_to_string(out).unwrap())
    };
    let (slow, fast) = (plan("from-the-slow-one", 3), plan("from-another", 2));
    let one = picture(&[&slow]);
    assert!(one.contains("bottleneck") && one.contains("from-the-slow-one") && one.contains("all of it"), "{one}");
    // The made truth of the laboratory: rank 3 sends at 200 of 800 Mbit/s.
    let two = picture(&[&slow, &fast]);
    assert!(two.contains("from-another is ") && two.contains("× faster than from-the-slow-one"), "{two}");
    let offered = picture(&[]);
    assert!(offered.contains("strategies") && offered.contains("trainers"), "{offered}");
}
