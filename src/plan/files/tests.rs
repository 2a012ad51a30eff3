use super::*;
use crate::plan::{Batch, Flow, Parameter, Place, Plan, Segment, Stage, Staged, Traffic, Transfers};

const PLAN: &str = r#"{"logical_shape":[4,4],"segments":[{"shape":[4,2],"source":[0,0,[4,1]],"target":[0,0,[2,1]]},{"shape":[4,2],"source":[0,2,[4,1]],"target":[1,0,[2,1]]}]}"#;
const ENDPOINTS: &str = r#"{"source": {"0": 2}, "target": {"0": 0, "1": 1}}"#;

fn given() -> Given {
    Given { endpoints: Some(endpoints(ENDPOINTS).unwrap()), ..Given::default() }
}

fn batch_of(text: &str, given: &Given) -> Batch {
    match read(text, given) {
        Ok(Transfers::Batch(batch)) => batch,
        other => panic!("{other:?}"),
    }
}

fn faults(schema: &str, text: &str) -> Vec<String> {
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let document = serde_json::from_str(text).unwrap();
    validator.iter_errors(&document).map(|fault| fault.to_string()).collect()
}

#[test]
fn a_plan_of_the_reference_is_read_and_written_back_byte_by_byte() {
    let batch = batch_of(PLAN, &given());
    assert_eq!((batch.bytes_per_peer, batch.parameters[0].element_size), (8 << 20, 2));
    assert_eq!(batch.endpoints.target[&1], 1);
    let plan = &batch.parameters[0].plan;
    assert_eq!(plan.segments[1].source, Place(0, 2, vec![4, 1]));
    assert_eq!(write_plan(plan), PLAN);
}

#[test]
fn a_batch_is_read_as_it_was_written_and_follows_its_schema() {
    let segment = Segment { shape: vec![2], source: Place(0, 0, vec![1]), target: Place(-1, 4, vec![3]) };
    let plan = Plan { logical_shape: vec![2], segments: vec![segment] };
    let parameter = |name: &str, element_size| Parameter { name: name.to_owned(), plan: plan.clone(), element_size };
    let endpoints = endpoints(r#"{"source": {"0": 0}, "target": {"-1": 3}}"#).unwrap();
    let batch = Batch { parameters: vec![parameter("a.weight", 2), parameter("a.bias", 4)], endpoints, bytes_per_peer: 4096 };
    let text = write_batch(&batch);
    assert_eq!(faults(PLAN_SCHEMA, &text), [""; 0]);
    assert_eq!(batch_of(&text, &Given::default()), batch);
    // What is given goes before what the file says; element sizes are the file's.
    let other = Given { endpoints: given().endpoints, element_size: Some(8), bytes_per_peer: Some(64) };
    let told = batch_of(&text, &other);
    assert_eq!((told.bytes_per_peer, told.parameters[1].element_size), (64, 4));
    assert_eq!(Some(told.endpoints), other.endpoints);
}

#[test]
fn traffic_is_read_as_it_was_written_and_follows_its_schema() {
    let flow = |stage, from, to, after: &[usize]| Flow {
        stage,
        from,
        to,
        bytes: 1 << 20,
        messages: 2,
        after: after.to_vec(),
        offset: (stage == 1).then_some(7),
        staged: if stage == 0 { Staged { packs: 1, pack_bytes: 1 << 20, ..Staged::default() } } else { Staged::default() },
    };
    let stages = vec![Stage { name: "first".to_owned(), waits: true }, Stage { name: "then".to_owned(), waits: false }];
    let traffic = Traffic {
        name: "relay".to_owned(),
        ranks: 3,
        stages,
        flows: vec![flow(0, 0, 1, &[]), flow(1, 1, 2, &[0])],
        chunks: 9,
        arenas: vec![8, 0, 0],
    };
    let text = write_traffic(&traffic);
    assert_eq!(faults(TRAFFIC_SCHEMA, &text), [""; 0]);
    assert_eq!(read(&text, &Given::default()), Ok(Transfers::Traffic(traffic)));
}

#[test]
fn faults_are_told_with_their_place_and_what_was_expected() {
    let batch =
        |plan: &str| format!(r#"{{"format":"toposcope.plan/1","parameters":[{{"name":"w\u001b","element_size":2,"plan":{plan}}}]}}"#);
    let traffic = |flow: &str, more: &str| {
        format!(r#"{{"format":"toposcope.traffic/1","ranks":2,"stages":[{{"name":"","waits":true}}],"flows":[{flow}]{more}}}"#)
    };
    let fine = r#"{"stage":0,"from":0,"to":1,"bytes":1,"messages":1}"#;
    let cases = [
        (PLAN.replace("[0,2,[4,1]]", "[0,-2,[4,1]]"), "segment 1, source offset: invalid value: integer `-2`, expected u64 (line 1, "),
        (PLAN.replace("[1,0,[2,1]]", "[1,0,[2]]"), "segment 1, target strides: 1: expected 2, one for each axis of its shape"),
        (PLAN.replace("[0,0,[2,1]]", "[0,0]"), "segment 0, target: invalid length 2"),
        (PLAN.replacen("\"shape\"", "\"shapes\"", 1), "segment 0, shapes: unknown field `shapes`"),
        (PLAN.replacen("\"shape\":[4,2],", "", 1), "segment 0: missing field `shape`"),
        (PLAN.replacen("[4,2]", "[4,2.5]", 1), "segment 0, shape[1]: invalid type: floating point `2.5`, expected u64"),
        (PLAN[..80].to_owned(), "the text ends in the middle"),
        (format!("{PLAN}]"), "no JSON: trailing characters"),
        (batch(&PLAN.replace("[1,0,[2,1]]", "[\"1\",0,[2,1]]")), "parameter w, plan, segment 1, target location: invalid type: string"),
        (batch(&PLAN.replace("[1,0,[2,1]]", "[1,0,[2]]")), "parameter w, segment 1, target strides: 1: expected 2"),
        (batch(PLAN).replace(":2,\"plan", ":0,\"plan"), "parameter w: element_size is 0: expected bytes, 1 or more"),
        (batch(PLAN).replace("}]}}]}", "}]}}],\"bytes_per_peer\":8.0}"), "bytes_per_peer: invalid type: floating point `8.0`"),
        (batch(PLAN).replace("}]}}]}", "}]}}],\"endpoint\":1}"), "endpoint: unknown field `endpoint`"),
        (batch(PLAN).replace("plan/1", "plan/7"), "format: \"toposcope.plan/7\": expected \"toposcope.plan/1\""),
        (
            batch(PLAN),
            "a plan without endpoints, which tell the process that holds each location: plan it with `toposcope plan build --endpoints FILE`, or give them beside the plan where a command takes --endpoints",
        ),
        (traffic(r#"{"stage":0,"from":0,"to":2,"bytes":1,"messages":1}"#, ""), "flow 0: rank 2 is not one of its 2 ranks"),
        (traffic(&format!("{fine},{}", fine.replace("1}", "-1}")), ""), "flow 1, messages: invalid value: integer `-1`, expected u32"),
        (traffic(fine, ",\"arenas\":[1]"), "1 arenas: none, or one for each of the 2 ranks"),
        (traffic(fine, ",\"ranks\":3"), "duplicate field `ranks`"),
        (ENDPOINTS.to_owned(), "endpoints (which process holds which location), not a plan"),
        ("[1,2]".to_owned(), "no plan: expected logical_shape and segments"),
        ("7".to_owned(), "no plan: expected"),
        (String::new(), "the text ends in the middle"),
        ("[".repeat(100_000), "no JSON: recursion limit exceeded"),
    ];
    for (text, expected) in cases {
        let told = read(&text, &Given::default()).unwrap_err().to_string();
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
    let twice =
        batch(PLAN).replace("[{\"name", "[{\"name\":\"w\",\"element_size\":1,\"plan\":{\"logical_shape\":[],\"segments\":[]}},{\"name");
    assert_eq!(read(&twice, &given()).unwrap_err().to_string(), "parameter w: stands twice: one plan each");
}

#[test]
fn endpoints_are_strict() {
    let cases = [
        (r#"{"source": {"0": 0}}"#, "missing field `target`"),
        (r#"{"source": {"0": 0}, "target": {"x": 0}}"#, "target: location \"x\": expected a whole number"),
        (r#"{"source": {"0": -1}, "target": {}}"#, "source, 0: invalid value: integer `-1`, expected usize"),
        (r#"{"source": {"0": 0, "0": 1}, "target": {}}"#, "location 0 stands twice: one process each"),
        (r#"{"source": [0], "target": {}}"#, "source: invalid type: sequence, expected an object of location and process"),
    ];
    for (text, expected) in cases {
        let told = endpoints(text).unwrap_err().to_string();
        assert!(told.contains(expected), "{told}\n{expected}");
    }
    let told = given().endpoints.unwrap();
    assert_eq!(endpoints(&write_endpoints(&told)), Ok(told));
}
