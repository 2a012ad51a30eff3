//! Flow lists, and what is recognised as what.

use super::super::*;
use crate::plan::{Traffic, Transfers};

fn flows(content: &str) -> Traffic {
    match text(content, "list", &Given::default()) {
        Ok(Transfers::Traffic(traffic)) => traffic,
        other => panic!("{other:?}"),
    }
}

fn refused(content: &str) -> String {
    text(content, "list", &Given::default()).unwrap_err().to_string()
}

/// stage, from, to, bytes, after
type Told = (usize, usize, usize, u64, Vec<usize>);

fn told(traffic: &Traffic) -> Vec<Told> {
    traffic.flows.iter().map(|flow| (flow.stage, flow.from, flow.to, flow.bytes, flow.after.clone())).collect()
}

#[test]
fn steps_run_one_after_another_by_number_and_flows_of_a_step_at_once() {
    let json = r#"[{"step": 10, "src": 1, "dst": 2, "bytes": 5}, {"step": 2, "src": 0, "dst": 1, "bytes": "4KiB"}, {"step": 2, "src": 0, "dst": 3, "bytes": 7, "messages": 3}]"#;
    let csv = "# a comment\nbytes,dst,src,step,messages\n5,2,1,10,\n\n4KiB,1,0,2,\n7,3,0,2,3\n";
    let expected = vec![(0, 0, 1, 4096, vec![]), (0, 0, 3, 7, vec![]), (1, 1, 2, 5, vec![])];
    for traffic in [flows(json), flows(csv)] {
        assert_eq!(told(&traffic), expected);
        assert_eq!((traffic.ranks, &traffic.name[..]), (4, "list"));
        assert_eq!(
            traffic.stages.iter().map(|stage| (&stage.name[..], stage.waits)).collect::<Vec<_>>(),
            [("step 2", true), ("step 10", true)]
        );
        assert_eq!(traffic.flows.iter().map(|flow| flow.messages).collect::<Vec<_>>(), [1, 3, 1]);
    }
}

#[test]
fn steps_with_names_run_in_order_of_appearance() {
    let csv = "step,src,dst,bytes\nscatter,0,1,8\ngather,1,2,8\nscatter,0,2,8\n";
    assert_eq!(told(&flows(csv)), [(0, 0, 1, 8, vec![]), (0, 0, 2, 8, vec![]), (1, 1, 2, 8, vec![])]);
}

#[test]
fn after_names_flows_by_id_where_there_are_ids_and_steps_otherwise() {
    let json = r#"{"name": "relay", "ranks": 8, "flows": [
        {"id": "a", "step": 0, "src": 0, "dst": 1, "bytes": 8}, {"id": 2, "step": 0, "src": 0, "dst": 2, "bytes": 8},
        {"id": "c", "step": 1, "src": 1, "dst": 3, "bytes": 8, "after": "a"},
        {"step": 1, "src": 2, "dst": 4, "bytes": 8, "after": [2, "c"]}, {"step": 1, "src": 5, "dst": 6, "bytes": 8, "after": []}]}"#;
    let traffic = flows(json);
    assert_eq!((&traffic.name[..], traffic.ranks), ("relay", 8));
    assert_eq!(told(&traffic).into_iter().map(|flow| flow.4).collect::<Vec<_>>(), [vec![], vec![], vec![0], vec![1, 2], vec![]]);
    assert_eq!(traffic.stages.iter().map(|stage| stage.waits).collect::<Vec<_>>(), [true, false]);

    let csv = "step,src,dst,bytes,after\n1,0,1,8,\n1,0,2,8,\n2,1,3,8,1\n3,3,4,8,1;2\n3,5,6,8,-\n";
    assert_eq!(told(&flows(csv)).into_iter().map(|flow| flow.4).collect::<Vec<_>>(), [vec![], vec![], vec![0, 1], vec![0, 1, 2], vec![]]);

    // Without steps there is one, in which flows wait for flows.
    let chain = flows("id,src,dst,bytes,after\na,0,1,8,-\nb,1,2,8,a\n");
    assert_eq!((told(&chain)[1].4.clone(), chain.stages.len()), (vec![0], 1));
}

#[test]
fn faults_of_flow_lists_are_told_with_line_field_and_what_was_expected() {
    let one = r#"{"src": 0, "dst": 1, "bytes": 8}"#;
    let with = |more: &str| format!("[{one}, {}]", one.replace('}', &format!(", {more}}}")));
    let cases = [
        (format!("[{one}, {}]", one.replace("\"dst\": 1, ", "")), "entry 1: missing field `dst`"),
        (format!("[{one}, {}]", one.replace('8', "-8")), "entry 1, bytes: invalid type: integer `-8`, expected a whole number of bytes"),
        (format!("[{one}, {}]", one.replace('8', "8.5")), "entry 1, bytes: invalid type: floating point `8.5`"),
        (format!("[{one}, {}]", one.replace('8', "\"8 MB\"")), "entry 1, bytes: \"8 MB\" is not a size"),
        (with(r#""afer": []"#), "entry 1, afer: unknown field `afer`"),
        (with(r#""src": 1"#), "entry 1"),
        (with(r#""messages": 0"#), "flow 1, messages: 0: expected 1 or more"),
        (with(r#""step": 1"#), "flow 0, step: missing, though other flows have one"),
        (with(r#""after": [7]"#), "flow 1, after: \"7\": expected a step of this file"),
        (with(r#""id": 7, "after": [7]"#), "flow 1, after: \"7\": does not come before it"),
        (with(r#""id": "x", "after": {}"#), "entry 1, after: invalid type: map, expected a name"),
        (format!("{{\"ranks\": 1, \"flows\": [{one}]}}"), "flow 0, dst: 1: expected a rank below 1"),
        (format!("[{}]", one.replace('0', "9999999")), "flow 0, src: 9999999: expected a rank below 1048576"),
        (format!("[{one}"), "the text ends in the middle"),
        ("{\"flows\": []}".to_owned(), "no flows: nothing is moved"),
        ("[]".to_owned(), "an empty list: nothing is moved"),
        ("src,dst,bytes\n0,1\n".to_owned(), "line 2: 2 fields: expected 3, as many as columns: is the file complete?"),
        ("src,dst,bytes\n\n0,x,1\n".to_owned(), "line 3, dst: \"x\": expected a rank, a whole number"),
        ("src,dst,bytes\n0,1,4MB\n".to_owned(), "line 2, bytes: \"4MB\": expected a whole number or a size such as 4MiB"),
        ("src,dst\n0,1\n".to_owned(), "line 1: columns src, dst: expected src, dst and bytes among them"),
        ("src,dst,bytes,when\n0,1,1,2\n".to_owned(), "line 1: column \"when\": expected id, step, src, dst, bytes, messages, after"),
        ("src,dst,bytes,src\n0,1,1,2\n".to_owned(), "line 1: column src stands twice"),
        ("src,dst,bytes\n".to_owned(), "no flows"),
        ("id,src,dst,bytes\na,0,1,1\na,0,1,1\n".to_owned(), "line 3, id: \"a\" stands twice: expected one flow of each id"),
        (
            "step,src,dst,bytes,after\n1,0,1,1,\n2,1,2,1,1\n2,1,3,1,\n".to_owned(),
            "line 4, after: missing, though other flows of its step have one",
        ),
        ("step,src,dst,bytes,after\n1,0,1,1,2\n2,1,2,1,1\n".to_owned(), "line 2, after: \"2\": does not come before it"),
        ("GPU0 GPU1\n".to_owned(), "it begins with \"GPU0 GPU1"),
        (" \n".to_owned(), "the file is empty: expected a plan"),
        ("step;src;dst;bytes\n0;0;1;8\n".to_owned(), "line 1: columns parted by semicolons: a flow list's are parted by commas"),
        ("src\tdst\tbytes\n".to_owned(), "line 1: columns parted by tabs"),
        ("{\"a\": 1}".to_owned(), "an object with the keys [\"a\"]: expected a plan"),
        ("[{\"from\": 1}]".to_owned(), "a list of objects with the keys [\"from\"]: expected a plan"),
        ("{\"params\": {}}".to_owned(), "a map says who holds what, not what is moved"),
        ("{\"source\": {}, \"target\": {}}".to_owned(), "endpoints (which process holds which location), not a plan"),
    ];
    for (content, expected) in cases {
        let said = refused(&content);
        assert!(said.starts_with(expected), "{content}\n{said}\n{expected}");
    }
}

#[test]
fn our_own_documents_are_recognised_by_content_and_files_told_by_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sync.txt");
    let plan = r#"{"logical_shape":[2],"segments":[{"shape":[2],"source":[0,0,[1]],"target":[0,0,[1]]}]}"#;
    std::fs::write(&path, format!("\u{feff}{plan}")).unwrap();
    let said = read(&path, &Given::default()).unwrap_err().to_string();
    assert!(said.starts_with(&path.display().to_string()) && said.contains("--endpoints FILE"), "{said}");
    let ends = folder.path().join("ends");
    std::fs::write(&ends, r#"{"source": {"0": 0}, "target": {"0": 1}}"#).unwrap();
    let given = Given { endpoints: Some(endpoints(&ends).unwrap()), element_size: Some(4), ..Given::default() };
    let traffic = read(&path, &given).unwrap().traffic().unwrap();
    assert_eq!(traffic.flows.iter().map(|flow| (flow.from, flow.to, flow.bytes)).collect::<Vec<_>>(), [(0, 1, 8)]);

    std::fs::write(&path, "src,dst,bytes\n0,1,8\n").unwrap();
    assert_eq!(read(&path, &Given::default()).unwrap().traffic().unwrap().name, "sync");
    std::fs::write(&path, b"\0\x01").unwrap();
    assert!(read(&path, &Given::default()).unwrap_err().to_string().contains("binary data"));
    assert!(read(&folder.path().join("none"), &Given::default()).unwrap_err().to_string().contains("expected a readable file"));
}

/// Whatever a file holds, reading it ends in a plan or in words.
#[test]
fn damaged_files_never_break_the_reader() {
    let mut random = fastrand::Rng::with_seed(6);
    let fine = [
        "step,src,dst,bytes,after\n1,0,1,8,\n2,1,3,8,1\n",
        r#"[{"id": "a", "src": 0, "dst": 1, "bytes": 8}, {"id": "b", "src": 0, "dst": 1, "bytes": "1KiB", "after": ["a"]}]"#,
        super::foreign::AWEX,
        super::foreign::MOONCAKE,
        r#"{"format":"toposcope.traffic/1","ranks":2,"stages":[{"name":"","waits":true}],"flows":[{"stage":0,"from":0,"to":1,"bytes":1,"messages":1}]}"#,
        r#"{"format":"toposcope.plan/1","endpoints":{"source":{"0":1},"target":{"0":0}},"parameters":[{"name":"w","element_size":2,"plan":{"logical_shape":[2],"segments":[{"shape":[2],"source":[0,0,[1]],"target":[0,0,[1]]}]}}]}"#,
    ];
    for whole in fine {
        for _ in 0..400 {
            let mut bytes = whole.as_bytes().to_vec();
            match random.u8(0..4) {
                0 => bytes.truncate(random.usize(0..bytes.len())),
                1 => {
                    let at = random.usize(0..bytes.len());
                    bytes[at] = random.u8(32..127);
                }
                2 => {
                    let at = random.usize(0..bytes.len());
                    bytes.splice(at..at, *b"99999999999999999999");
                }
                _ => {
                    let (from, to) = (random.usize(0..bytes.len()), random.usize(0..bytes.len()));
                    bytes.drain(from.min(to)..from.max(to));
                }
            }
            let damaged = String::from_utf8_lossy(&bytes);
            if let Ok(transfers) = text(&damaged, "x", &Given::default()) {
                let _ = transfers.traffic();
            }
            let _ = layout(&damaged);
        }
    }
}
