use serde_json::{Value, json};

use super::*;
use crate::diagnose::next::{Next, Prediction, Test, TestKind};
use crate::diagnose::{Cause, Fact, Finding, Shape, Silenced, Suspect};
use crate::fit::identify::Identified;
use crate::sample::{EngineKind, MoverKind, Pattern, Sample, Status};
use crate::session::{Event, Header, Record};
use crate::sweep::SweepSettings;
use crate::topology::{Efficiency, PathClass, Placement, Topology};

/// Two ranks, and what was measured of one pair of them.
fn model() -> Model {
    let place = |rank| Placement { rank, host: "a".to_owned(), ..Placement::default() };
    let settings = SweepSettings { sizes: vec![4096, 1 << 20], mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let mut model = Model::new(Header {
        format: Header::current_format(),
        program: "0.1.0".to_owned(),
        name: "two".to_owned(),
        started: "2025-01-01T10:00:00Z".to_owned(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: settings.clone(),
        topology: Topology::of(vec![place(0), place(1)]),
        software: std::collections::BTreeMap::new(),
        environment: std::collections::BTreeMap::new(),
    });
    let mut events = vec![Event::SweepStarted { settings, resumed: false }];
    for (probe, bytes) in (0..).zip([4096, 1 << 20]) {
        let sample = |repeat: u32| Sample {
            repeat,
            messages: 2,
            seconds: Some(2e-4 + f64::from(repeat) * 1e-6),
            status: Status::Ok,
            warmup: repeat == 0,
            ..Sample::blank(Pattern::Peer, 0, 1, bytes, PathClass::IntraNode)
        };
        events.push(Event::ProbeDone { probe, samples: (0..8).map(sample).collect(), enough: None });
    }
    for event in events {
        model.apply(&Record { t: 0.0, event });
    }
    model
}

fn finding(severity: Severity) -> Finding {
    let test = Test {
        kind: TestKind::SwapPartners,
        say: "each end with others".to_owned(),
        sets: vec![vec![(0, 1)]],
        bytes: 1 << 20,
        repeats: 8,
        windows: Vec::new(),
        mover: None,
    };
    let predictions = vec![Prediction { cause: Cause::Sender, shares: vec![(0.4, 0.6)] }];
    let suspect =
        |cause, against: &str| Suspect { cause, weight: 1.0, because: "all of it is slow".to_owned(), against: against.to_owned() };
    Finding {
        id: "slow-pair 0 1".to_owned(),
        rule: "slow-pair",
        severity,
        title: "0→1 is slow\u{1b}[31m".to_owned(),
        amount: "50 %".to_owned(),
        weight: 1.0,
        shape: Shape::SlowPair { from: 0, to: 1, share: 0.5 },
        facts: vec![Fact { say: "0→1 5.2 GB/s".to_owned(), pairs: vec![(0, 1); 40], together: vec![7] }],
        suspects: vec![suspect(Cause::Sender, ""), suspect(Cause::BadCable, "no errors are counted")],
        next: Some(Next { test, seconds: 2.0, usual: vec![1e10], predictions, cannot: String::new() }),
        told: vec!["the other direction is as slow".to_owned()],
        cells: vec![(0, 1)],
        hop: Some(("a".to_owned(), "GPU 0".to_owned())),
    }
}

fn diagnosis(severity: Severity) -> Diagnosis {
    let silenced = vec![Silenced { rule: "trained-down", say: "x8 of x16".to_owned(), why: "the card rests".to_owned() }];
    Diagnosis { findings: vec![finding(severity)], silenced, identified: Identified::default() }
}

fn told() -> (Value, Value) {
    let model = model();
    let seen = session::measured(&model, &Efficiency::default());
    let schema = serde_json::from_str(crate::export::DIAGNOSIS_SCHEMA).unwrap();
    (serde_json::from_str(&document(&model, &seen, &diagnosis(Severity::Warning))).unwrap(), schema)
}

#[test]
fn what_is_written_for_programs_is_what_the_schema_says() {
    let (document, schema) = told();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    for (at, wrong) in [
        ("/worst", json!("awful")),
        ("/findings/0/surprise", json!(1)),
        ("/findings/0/facts/0/samples/0/repeats/0/used", json!("yes")),
        ("/findings/0/next/test/sets", json!([[[0]]])),
        ("/identified/stands", json!(null)),
    ] {
        let mut broken = document.clone();
        let (parent, name) = at.rsplit_once('/').unwrap();
        broken.pointer_mut(parent).unwrap()[name] = wrong;
        assert!(!validator.is_valid(&broken), "{at}");
    }
}

#[test]
fn every_number_of_a_fact_can_be_traced_to_its_repeats() {
    let (document, _) = told();
    let fact = &document["findings"][0]["facts"][0];
    // 16 of 40 cells at two sizes, and a group that is not there.
    assert_eq!((fact["samples"].as_array().unwrap().len(), &fact["not_traced"]), (32, &json!(24)));
    let large = &fact["samples"][1];
    assert_eq!((&large["pattern"], &large["bytes"]), (&json!("peer"), &json!(1 << 20)));
    let repeats = large["repeats"].as_array().unwrap();
    assert_eq!((repeats.len(), &repeats[0]["used"], &repeats[7]["repeat"]), (8, &json!(false), &json!(7)));
    let mut used: Vec<f64> = repeats.iter().filter(|own| own["used"] == true).map(|own| own["seconds"].as_f64().unwrap()).collect();
    // Two messages in 201 … 207 µs.
    assert!((crate::fit::median(&mut used) - 102e-6).abs() < 1e-9 && used.len() == 7, "{used:?}");
    assert!((large["median_seconds"].as_f64().unwrap() - 102e-6).abs() < 1e-9);
}

#[test]
fn a_person_reads_what_where_how_much_why_and_what_next() {
    let model = model();
    let seen = session::measured(&model, &Efficiency::default());
    let short = text(&model, &seen, &diagnosis(Severity::Warning), false, Look::default());
    assert!(!short.contains('\u{1b}'), "{short}");
    let lines: Vec<&str> = short.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("● 1   0→1 is slow[31m")).unwrap();
    assert!(lines[at].ends_with("  50 %"), "{short}");
    let expected = [
        "      seen     0→1 5.2 GB/s",
        "      likely   the sending side: all of it is slow",
        "      or       a bad cable or connector: all of it is slow; against it: no errors are counted",
        "      told     the other direction is as slow",
        "      next     each end with others (about 2.00 s)",
    ];
    assert_eq!(lines[at + 1..at + 6], expected);
    assert!(short.contains("1 alarm not raised; --all tells why") && !short.contains("the card rests"), "{short}");
    assert!(text(&model, &seen, &diagnosis(Severity::Warning), true, Look::default()).contains("x8 of x16: the card rests"));
    assert!(text(&model, &seen, &Diagnosis::default(), false, Look::default()).contains("nothing stands out"));
}

#[test]
fn the_exit_code_says_warnings_and_with_strict_notes() {
    for (severity, plain, strict) in [(Severity::Note, false, true), (Severity::Warning, true, true), (Severity::Problem, true, true)] {
        assert_eq!((found(&diagnosis(severity), false), found(&diagnosis(severity), true)), (plain, strict), "{severity:?}");
    }
    assert!(!found(&Diagnosis::default(), true));
}

/// What a report says is typed again gives the settings that it tells.
#[test]
fn the_command_of_a_report_measures_the_same() {
    use crate::cli::args::{Cli, Commands};
    use crate::sample::Memory;
    use crate::sweep::{Buffers, Peers};
    use clap::Parser;
    let base = SweepSettings { sizes: vec![4096, 1 << 20], mover: MoverKind::MpiSendrecv, ..SweepSettings::default() };
    let all = [
        base.clone(),
        SweepSettings {
            patterns: vec![Pattern::Peer, Pattern::Duplex, Pattern::FanIn, Pattern::Relay],
            widths: vec![1],
            peers: Peers::SameHost,
            repeats: 40,
            ci: 0.05,
            budget: 90.0,
            warmup: 2,
            window: 4,
            seed: 7,
            timeout: 0.5,
            isolated: true,
            buffers: Buffers::Reuse,
            ..base.clone()
        },
        SweepSettings {
            memory: Memory::Cuda,
            gpus: vec!["GPU-1 a'b".to_owned(), "0".to_owned()],
            mover: MoverKind::Nccl,
            arena: 1 << 26,
            ..base
        },
    ];
    for settings in all {
        let mut model = model();
        model.apply(&Record { t: 1.0, event: Event::SweepStarted { settings: settings.clone(), resumed: false } });
        let (command, beware) = crate::export::report::reproduce(&model);
        assert_eq!(beware, Vec::<String>::new(), "one host, all ranks");
        let words = command.strip_prefix("mpirun -n 2 ").unwrap_or_else(|| panic!("{command}"));
        // As a shell would: words apart, quotes taken off.
        let words = words.replace("'GPU-1 a'\\''b,0'", "GPU-1\u{a0}a'b,0");
        let cli = Cli::try_parse_from(words.split(' ').map(|word| word.replace('\u{a0}', " ")))
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let Some(Commands::Sweep { sweep, .. }) = cli.command else { panic!("{command}") };
        let again = crate::cli::settings::settings(&sweep, EngineKind::Mpi, &model.header.topology, None).unwrap();
        assert_eq!(again, settings, "{command}");
    }
}
