//! `toposcope diff` on the command line: what changed between two simulated runs, and nothing else (issue 5, must show g).

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use toposcope::fabric::Fabric;

use crate::place::{Place, Ran};

const MOMENT: Duration = Duration::from_secs(120);
/// Pairs of runs.
const SEEDS: u32 = 20;
/// Of the times of every repeat.
const NOISE: &str = "\n[noise]\nkind = \"lognormal\"\ncv = 0.03\n";

fn run(place: &Place, words: &str) -> Ran {
    place.run(&mut place.toposcope(&words.split_whitespace().collect::<Vec<_>>()), MOMENT)
}

/// A fabric that comes with the program, with noise, and with a fault.
fn fabric(place: &Place, name: &str, fault: &str) -> String {
    let text = Fabric::shipped_text("b70-8").unwrap();
    let path = place.folder().join(name);
    fs::write(&path, format!("{text}{NOISE}{fault}")).unwrap();
    path.display().to_string()
}

/// Sweep with nothing but the seed said.
fn swept(place: &Place, fabric: &str, seed: u32) -> String {
    let out = place.folder().join(format!("{seed}.json")).display().to_string();
    let session = place.folder().join(format!("s{seed}")).display().to_string();
    run(place, &format!("sweep --fabric {fabric} --seed {seed} --session {session} --out {out}")).ended_with(0);
    out
}

#[test]
fn runs_that_differ_in_their_seeds_say_no_change_and_a_link_slower_by_a_tenth_is_named_alone() {
    let place = Place::new();
    let healthy = fabric(&place, "b70.toml", "");
    let slow = fabric(&place, "slow.toml", "\n[[fault]]\nkind = \"slow\"\nfrom = 4\nto = 1\nfactor = 0.9\n");
    let mut before = swept(&place, &healthy, 0);
    for seed in 1..=SEEDS {
        let after = swept(&place, &healthy, seed);
        let same = run(&place, &format!("diff {before} {after}"));
        assert!(same.ended_with(0).stdout.contains("\nno change beyond noise\n"), "seed {seed}: {}", same.stdout);
        let slower = swept(&place, &slow, 100 + seed);
        let told: Value = serde_json::from_str(&run(&place, &format!("diff {after} {slower} --json")).ended_with(1).stdout).unwrap();
        let changes = told["changes"].as_array().unwrap();
        let places: Vec<&Value> = changes.iter().map(|change| &change["place"]).collect();
        assert_eq!(places, [&json!({"of": "pair", "from": 4, "to": 1})], "seed {seed}: {told:#}");
        let interval = &changes[0]["interval"];
        let (low, high) = (interval["low"].as_f64().unwrap(), interval["high"].as_f64().unwrap());
        assert!(low > 0.83 && high < 0.97 && low < high, "seed {seed}: {interval}");
        assert_eq!((&told["changed"], &told["compared"]), (&json!(true), &json!(56)));
        before = after;
    }
}

#[test]
fn a_person_reads_the_cause_the_numbers_and_the_matrix() {
    let place = Place::new();
    let healthy = fabric(&place, "b70.toml", "");
    let slow = fabric(&place, "slow.toml", "\n[[fault]]\nkind = \"slow\"\nfrom = 6\nfactor = 0.5\n");
    let (before, after) = (swept(&place, &healthy, 1), swept(&place, &slow, 2));
    let picture = place.folder().join("p.svg");
    let ran = run(&place, &format!("diff {before} {after} --svg {}", picture.display()));
    let told = &ran.ended_with(1).stdout;
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with(['▼', '△'])).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("▼ rank 6 sends: ") && lines[0].contains("7 pairs: "), "{told}");
    let row = told.lines().find(|line| line.starts_with("   6 ")).unwrap();
    assert_eq!(row.matches('*').count(), 7, "{told}");
    assert!(told.contains("measured otherwise") && told.contains("slow.toml"), "{told}");
    let picture = fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("after / before"));
    // What is not the same machine is refused, and nothing is printed.
    let other = place.folder().join("other.json");
    let renamed = fs::read_to_string(&after).unwrap().replace("\"b70\"", "\"elsewhere\"");
    fs::write(&other, renamed).unwrap();
    let refused = run(&place, &format!("diff {before} {}", other.display()));
    assert!(refused.ended_with(2).stderr.contains("no rank is in both: one ran on b70, the other on elsewhere"), "{refused:?}");
    assert_eq!(refused.stdout, "");
}

#[test]
fn a_diagnosis_and_its_report_come_from_the_command_line() {
    let place = Place::new();
    let cal = swept(&place, &fabric(&place, "b70.toml", ""), 1);
    let schema: Value = serde_json::from_str(&run(&place, "schema diagnosis").ended_with(0).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let ran = run(&place, &format!("diagnose {cal} --json"));
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let faults: Vec<String> = validator.iter_errors(&told).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:?}");
    let worst = told["worst"].as_str().unwrap_or("none");
    ran.ended_with(i32::from(matches!(worst, "warning" | "problem")));
    let html = place.folder().join("r.html").display().to_string();
    let ran = run(&place, &format!("diagnose {cal} --report {html}"));
    assert!(ran.stderr.contains("r.html"), "{ran:?}");
    let page = fs::read_to_string(&html).unwrap();
    let pictures = page.split("<noscript>").nth(1).unwrap().split("</noscript>").next().unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && pictures.matches("<svg").count() == 3, "bandwidth, share of expected, asymmetry");
    let markdown = place.folder().join("r.md").display().to_string();
    let exported = run(&place, &format!("export {cal} --format markdown --out {markdown}"));
    assert_eq!(exported.ended_with(0).stdout.lines().count(), 1);
    let ticket = fs::read_to_string(&markdown).unwrap();
    assert!(ticket.contains("## Findings") && ticket.contains("toposcope sweep --engine sim --fabric"), "{ticket}");
}
