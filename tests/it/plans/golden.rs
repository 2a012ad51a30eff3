//! Plans of many small layouts, and maps that must be refused (issue 6, must show a).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use toposcope::plan::build::{FirstHolder, LocalFirstInOrder, Policy, Settings, plans};
use toposcope::plan::map::{self, Map, Maps};
use toposcope::plan::{Place, Plan, PlanError, Segment, Statistics};

#[derive(Deserialize)]
struct Planned {
    maps: BTreeMap<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    policy: String,
    source: String,
    target: String,
    segments: Vec<(Vec<u64>, Place, Place)>,
    moved: u64,
    statistics: [usize; 6],
}

fn read(map: &Value) -> Maps {
    map::read(&map.to_string()).unwrap()
}

#[test]
fn every_case_gives_its_plan_and_its_statistics() {
    let Planned { maps, cases } = serde_json::from_str(include_str!("planned.json")).unwrap();
    assert_eq!(cases.len(), 121);
    for case in cases {
        let policy: &dyn Policy = match case.policy.as_str() {
            "first_holder" => &FirstHolder,
            // These plans were made counting every load in its turn.
            "least_loaded_by_location" => &LocalFirstInOrder,
            other => panic!("{other}"),
        };
        let (source, target) = (read(&maps[&case.source]), read(&maps[&case.target]));
        let made = plans(&target, &source, &Settings::new(policy)).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let [(_, plan, statistics)] = &made[..] else { panic!("one plan") };
        let segments = case.segments.into_iter().map(|(shape, source, target)| Segment { shape, source, target });
        let expected = Plan { logical_shape: target[""].shape.clone(), segments: segments.collect() };
        assert_eq!(*plan, expected, "{}, {}", case.name, case.policy);
        let [source_pieces, target_pieces, pair_checks, segments_before_merge, segments, plan_bytes] = case.statistics;
        let moved_elements = case.moved;
        let expected =
            Statistics { source_pieces, target_pieces, pair_checks, segments_before_merge, segments, plan_bytes, moved_elements };
        assert_eq!(*statistics, expected, "{}, {}", case.name, case.policy);
    }
}

#[test]
fn maps_are_written_as_they_were_read() {
    let Planned { maps, .. } = serde_json::from_str(include_str!("planned.json")).unwrap();
    for (name, map) in maps {
        assert_eq!(serde_json::from_str::<Value>(&map::write(&read(&map))).unwrap(), map, "{name}");
    }
}

#[test]
fn maps_that_contradict_themselves_are_refused_and_so_are_layouts_that_cannot_be_planned() {
    #[derive(Deserialize)]
    struct Case {
        #[serde(rename = "case")]
        name: String,
        source: Value,
        target: Value,
        kind: String,
    }
    let cases: Vec<Case> = serde_json::from_str(include_str!("refused.json")).unwrap();
    let expected = [
        ("two locations have", "source map, location 0, piece 0", "rule M5"),
        ("a piece is transposed", "source map, location 0, piece 0", "source stride 1 on axis 0"),
        ("two pieces of a shard", "source map, location 0, piece 1", "rule M2: it shares addresses of the shard with piece 0"),
        ("the tensor has another", "map", "shape [8, 8] in the target map, [64] in the source map"),
        ("the target lacks", "target map", "rule M4: no location holds the block of shape [2] at [2]"),
        ("replicas are cut", "source map, location", "overlap without being equal"),
        ("a holder is named", "source map, location 0, piece 0", "rule M5"),
    ];
    assert_eq!(cases.len(), expected.len());
    for (case, (name, place, rule)) in cases.into_iter().zip(expected) {
        assert!(case.name.starts_with(name));
        let error = plans(&read(&case.target), &read(&case.source), &Settings::new(&FirstHolder)).unwrap_err();
        let kind = match &error {
            PlanError::Invalid { .. } => "invalid",
            PlanError::Unsupported { .. } => "unsupported",
            other => panic!("{other}"),
        };
        assert_eq!(kind, case.kind, "{}: {error}", case.name);
        let told = error.to_string();
        assert!(told.starts_with(place) && told.contains(rule), "{}: {told}", case.name);
    }
}

/// A map of one parameter.
fn one(map: Map) -> Maps {
    Maps::from([("w".to_owned(), map)])
}

#[test]
fn the_builders_make_the_layouts_of_the_cases() {
    use toposcope::plan::map::{Segment as Part, gather, replicated, segmented, split, sub_parameters};
    let Planned { maps, cases } = serde_json::from_str(include_str!("planned.json")).unwrap();
    let of = |case: &str| {
        let case = cases.iter().find(|own| own.name == case).unwrap();
        (read(&maps[&case.source]).remove("").unwrap(), read(&maps[&case.target]).remove("").unwrap())
    };
    assert_eq!(of("row_even 4->2"), (split(&[8, 8], 0, &[2; 4]).unwrap(), split(&[8, 8], 0, &[4; 2]).unwrap()));
    assert_eq!(of("column 2->4").0.shards[&0].shape[1] * 2, of("column 2->4").0.shape[1]);
    let column = of("column 2->4").0;
    assert_eq!(column, split(&column.shape, 1, &[column.shape[1] / 2; 2]).unwrap());
    let copies = of("replicated 2->4").1;
    assert_eq!(copies, replicated(&copies.shape, &[0, 1, 2, 3]).unwrap());
    assert_eq!(of("bigcode 4->2").1, segmented(&[48, 8], 0, &[Part::even(32, 2), Part::replicated(16)], 2).unwrap());
    let fused = of("sub_params 4->2").1;
    let sizes: Vec<u64> = (0..fused.shards[&0].pieces.len()).map(|k| fused.shards.values().map(|s| s.pieces[k].shape[0]).sum()).collect();
    let widths: Vec<Vec<u64>> = (0..sizes.len()).map(|k| fused.shards.values().map(|s| s.pieces[k].shape[0]).collect()).collect();
    assert_eq!(fused, sub_parameters(&fused.shape, 0, &sizes, &widths).unwrap());
    let blocks = BTreeMap::from([(0, vec![0, 2, 4, 6]), (1, vec![1, 3, 5, 7])]);
    assert_eq!(of("yuan_gather 2->1").0, gather(&[8, 64], 1, &blocks, 8).unwrap());
    assert!(plans(&one(column.clone()), &one(column), &Settings::new(&FirstHolder)).is_ok());
}
