//! Sessions on disk under everything that can happen to files.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toposcope::sample::{Pattern, Status};
use toposcope::session::store::{self, Store, StoreError};
use toposcope::session::{Event, Model, Record};
use toposcope::sweep::{Cell, Probe, Target};

use crate::made;

/// A session of made-up records in a folder of its own.
struct Session {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Session {
    fn new() -> Self {
        Self::of(&made::records())
    }

    fn of(records: &[Record]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lab-2x3-20250101");
        let mut store = Store::create(&folder, &made::header()).unwrap();
        for record in records {
            store.append(record).unwrap();
        }
        Self { _root: root, folder }
    }

    fn events(&self) -> PathBuf {
        self.folder.join("events.ndjson")
    }

    fn header(&self) -> PathBuf {
        self.folder.join("header.json")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.events()).unwrap()
    }

    /// The message of the refusal to read it.
    fn refusal(&self) -> String {
        let error = store::read(&self.folder).unwrap_err().to_string();
        assert!(!error.chars().any(char::is_control), "{error:?}");
        assert!(error.contains("lab-2x3-20250101"), "{error}");
        error
    }
}

fn notice(text: &str) -> Record {
    Record { t: 99.0, event: Event::Notice { text: text.to_owned() } }
}

#[test]
fn a_session_cut_at_any_byte_gives_back_every_whole_record() {
    // Few records, each kind once or more: every cut reads all that is left.
    let mut records = made::records();
    records.drain(4..records.len() - 9);
    let session = Session::of(&records);
    let bytes = session.bytes();
    // Longest first, so that each cut is one byte more off the same file.
    let file = File::options().write(true).open(session.events()).unwrap();
    for end in (0..=bytes.len()).rev() {
        file.set_len(end as u64).unwrap();
        let recorded = store::read(&session.folder).unwrap();
        let whole = bytes[..end].split(|&byte| byte == b'\n').count() - 1;
        assert_eq!(recorded.records.len(), whole, "cut at {end}");
        assert_eq!(recorded.records.last(), whole.checked_sub(1).map(|last| &records[last]), "cut at {end}");
        assert_eq!(recorded.extent.whole + recorded.extent.cut, end as u64);
    }
}

#[test]
fn resuming_a_cut_session_drops_the_half_record_and_appends() {
    let session = Session::new();
    let bytes = session.bytes();
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at + 1).collect();
    for (whole, cut_at) in [(0, 0), (0, 1), (0, ends[0] - 1), (1, ends[0]), (3, ends[2] + 7), (ends.len(), bytes.len())] {
        fs::write(session.events(), &bytes[..cut_at]).unwrap();
        let (mut store, recorded) = Store::resume(&session.folder).unwrap();
        assert_eq!(recorded.records.len(), whole, "cut at {cut_at}");
        store.append(&notice("resumed")).unwrap();
        let again = store::read(&session.folder).unwrap();
        assert_eq!(again.records.len(), whole + 1);
        assert_eq!(again.records[..whole], made::records()[..whole]);
        assert_eq!(again.records[whole], notice("resumed"));
        assert_eq!(again.extent.cut, 0);
    }
}

#[test]
fn two_writers_are_refused_and_a_reader_is_not() {
    let session = Session::new();
    let (store, recorded) = Store::resume(&session.folder).unwrap();
    assert_eq!(recorded.header, made::header());
    let second = Store::resume(&session.folder).unwrap_err();
    assert!(matches!(second, StoreError::Busy { .. }), "{second}");
    assert!(second.to_string().contains("attach"), "{second}");
    assert!(store::read(&session.folder).is_ok());
    drop(store);
    assert!(Store::resume(&session.folder).is_ok());
    let over = Store::create(&session.folder, &made::header()).unwrap_err();
    assert!(matches!(over, StoreError::Exists { .. }), "{over}");
    assert!(over.to_string().contains("--resume"), "{over}");
}

#[test]
fn without_a_header_it_is_no_session() {
    let session = Session::new();
    fs::remove_file(session.header()).unwrap();
    assert!(session.refusal().contains("no header.json"));
    let missing = store::read(Path::new("/nonexistent/session")).unwrap_err();
    assert!(matches!(missing, StoreError::NoSession { .. }), "{missing}");
    let file = store::read(&session.events()).unwrap_err();
    assert!(matches!(file, StoreError::NoSession { .. }), "{file}");
}

#[test]
fn without_events_nothing_has_happened() {
    let session = Session::new();
    fs::remove_file(session.events()).unwrap();
    assert_eq!(store::read(&session.folder).unwrap().records.len(), 0);
}

#[test]
fn a_header_cut_at_any_byte_is_refused_with_the_place() {
    let session = Session::new();
    let text = fs::read_to_string(session.header()).unwrap();
    for end in 0..text.trim_end().len() {
        fs::write(session.header(), &text.as_bytes()[..end]).unwrap();
        let error = session.refusal();
        assert!(error.contains("header.json:"), "cut at {end}: {error}");
    }
}

#[test]
fn later_formats_are_read_or_refused_by_their_number() {
    let session = Session::new();
    let mut header: Value = serde_json::from_slice(&fs::read(session.header()).unwrap()).unwrap();
    header["format"] = json!("toposcope.session/1.9");
    header["moon"] = json!("full");
    fs::write(session.header(), header.to_string()).unwrap();
    let mut events = session.bytes();
    events.extend_from_slice(b"{\"t\":9.0,\"event\":\"eclipse\",\"share\":[0.5,{\"of\":1}]}\n");
    events.extend_from_slice(b"{\"t\":9.5,\"event\":\"log\",\"rank\":1,\"line\":\"x\",\"level\":\"warn\"}\n");
    fs::write(session.events(), events).unwrap();
    let recorded = store::read(&session.folder).unwrap();
    let count = made::records().len();
    assert_eq!(recorded.records[count].event, Event::Unknown);
    assert_eq!(recorded.records[count + 1].event, Event::Log { rank: 1, line: "x".to_owned() });

    let newer = json!({"format": "toposcope.session/2.0", "program": "3.1.4"}).to_string();
    fs::write(session.header(), newer).unwrap();
    let error = session.refusal();
    for part in ["toposcope.session/2.0", "toposcope.session/1.6", "3.1.4"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    for other in [json!("toposcope.session/one"), json!("nonsense"), json!(null), json!(7)] {
        fs::write(session.header(), json!({"format": other}).to_string()).unwrap();
        assert!(session.refusal().contains("expected toposcope.session/1.6"), "{other}");
    }
}

#[test]
fn a_garbage_line_in_the_middle_is_refused_with_its_number() {
    let garbage: [&[u8]; 6] = [
        b"garbage",
        b"",
        b"{\"t\":1.0,\"event\":\"log\",\"rank\":\"one\",\"line\":\"\"}",
        b"{\"t\":1.0}",
        b"\xff\xfe\x1b[31m",
        b"\0\0\0\0\0\0\0\0",
    ];
    for line in garbage {
        let session = Session::new();
        let bytes = session.bytes();
        let second = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        fs::write(session.events(), [&bytes[..second], line, b"\n", &bytes[second..]].concat()).unwrap();
        let error = session.refusal();
        assert!(error.contains("events.ndjson:2:"), "{error}");
    }
}

#[test]
fn zeroes_that_a_crash_of_the_host_leaves_at_the_end_are_a_cut() {
    let session = Session::new();
    let bytes = session.bytes();
    fs::write(session.events(), [bytes.as_slice(), &[0; 4096]].concat()).unwrap();
    let recorded = store::read(&session.folder).unwrap();
    assert_eq!((recorded.records.len(), recorded.extent.cut), (made::records().len(), 4096));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_without_being_held() {
    for ending in ["", "\"}\n"] {
        let session = Session::new();
        let mut file = BufWriter::new(File::options().append(true).open(session.events()).unwrap());
        file.write_all(b"{\"t\":1.0,\"event\":\"notice\",\"text\":\"").unwrap();
        let part = vec![b'x'; 1 << 16];
        for _ in 0..1600 {
            file.write_all(&part).unwrap();
        }
        file.write_all(ending.as_bytes()).unwrap();
        drop(file);
        let error = session.refusal();
        let number = made::records().len() + 1;
        assert!(error.contains(&format!("events.ndjson:{number}:")) && error.contains("64 MiB"), "{error}");
    }
}

#[test]
fn names_with_escape_codes_come_back_without_them() {
    let session = Session::new();
    let mut header = made::header();
    header.name = "x\u{1b}[2J".to_owned();
    header.topology.ranks[0].host = "al\u{1b}]0;owned\u{7}pha\u{9b}31m".to_owned();
    header.software.insert("mpi\u{1b}c".to_owned(), "\u{1b}[1m4".to_owned());
    fs::write(session.header(), serde_json::to_vec(&header).unwrap()).unwrap();
    let mut events = session.bytes();
    let line = "\u{1b}[31mred\u{0}\r\n\u{7}";
    serde_json::to_writer(&mut events, &Record { t: 50.0, event: Event::Log { rank: 0, line: line.to_owned() } }).unwrap();
    events.push(b'\n');
    fs::write(session.events(), events).unwrap();
    let recorded = store::read(&session.folder).unwrap();
    assert_eq!(recorded.header.topology.ranks[0].host, "al]0;ownedpha31m");
    let header = serde_json::to_string(&recorded.header).unwrap();
    assert!(!header.contains("\\u001b") && !header.chars().any(char::is_control), "{header}");
    let model = made::model(&recorded.records);
    assert_eq!(model.log.back().unwrap().text, "[31mred");
}

#[test]
fn a_newer_minor_version_is_read_without_what_is_new() {
    let session = Session::new();
    let mut text = fs::read_to_string(session.events()).unwrap();
    text.push_str("{\"t\":99.0,\"event\":\"probe_done\",\"probe\":7,\"samples\":[{\"pattern\":\"spiral\"}]}\n");
    fs::write(session.events(), &text).unwrap();
    let refused = store::read(&session.folder).unwrap_err();
    assert!(matches!(refused, StoreError::Bad { .. }), "{refused}");
    let newer = fs::read_to_string(session.header()).unwrap().replace("toposcope.session/1.6", "toposcope.session/1.7");
    fs::write(session.header(), newer).unwrap();
    assert_eq!(store::read(&session.folder).unwrap().records, made::records());
}

#[test]
fn a_folder_that_was_cut_before_its_header_can_be_used() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("events.ndjson"), "").unwrap();
    let mut store = Store::create(root.path(), &made::header()).unwrap();
    store.append(&made::records()[0]).unwrap();
    drop(store);
    assert!(matches!(Store::create(root.path(), &made::header()), Err(StoreError::Exists { .. })));
}

#[test]
fn a_header_whose_ranks_are_not_numbered_is_refused() {
    let session = Session::new();
    let good: Value = serde_json::from_slice(&fs::read(session.header()).unwrap()).unwrap();
    let (mut none, mut twice) = (good.clone(), good);
    none["topology"]["ranks"] = json!([]);
    twice["topology"]["ranks"][1]["rank"] = json!(0);
    for header in [none, twice] {
        fs::write(session.header(), header.to_string()).unwrap();
        assert!(session.refusal().contains("in rank order"));
    }
}

#[test]
fn what_names_ranks_beyond_the_world_or_numbers_beyond_reason_folds() {
    let mut records = made::records();
    for record in &mut records {
        match &mut record.event {
            Event::ProbeDone { samples, .. } => {
                samples.iter_mut().filter(|sample| sample.from == 1).for_each(|sample| sample.from = usize::MAX);
            }
            Event::Remeasure { repeats, .. } => *repeats = u64::MAX,
            Event::SweepStarted { settings, .. } => settings.sizes.push(u64::MAX),
            _ => {}
        }
    }
    let model = made::model(&records);
    assert!(model.cells.iter().all(|(cell, _)| cell.from < 3 && cell.from != 1));
    assert!(model.log.iter().any(|line| line.text.contains("left out")), "{:?}", model.log);
    assert!(model.sweep.is_some_and(|sweep| sweep.share() < 1.0));
}

#[test]
fn a_repeat_that_is_tried_again_has_one_state_and_ranks_of_a_new_job_are_not_lost() {
    let mut records = made::records();
    let model = made::model(&records);
    let cell = Cell { pattern: Pattern::Peer, from: 1, to: 2 };
    let missing = |model: &Model| {
        let done = model.done().into_iter().find(|done| (&done.target, done.bytes) == (&Target::Pair(cell), 1 << 20));
        (0..7).filter(|repeat| !done.as_ref().unwrap().repeats.contains(repeat)).collect::<Vec<_>>()
    };
    assert_eq!(missing(&model), [2, 3, 4, 5, 6]);
    let (before, t) = (model.samples(), model.now + 1.0);
    assert!(!model.lost.is_empty());
    records.push(Record { t, event: Event::SweepStarted { settings: made::settings(), resumed: true } });
    let probe = Probe { first_repeat: 2, ..Probe::pair(900, Cell { pattern: Pattern::Peer, from: 1, to: 2 }, 1 << 20, 5) };
    let samples = (2..7).map(|repeat| made::sample(&probe, repeat, 1e9)).collect();
    records.push(Record { t, event: Event::ProbeDone { probe: 900, samples, enough: None } });
    let model = made::model(&records);
    let size = model.cells.get(cell, 1 << 20).unwrap();
    assert_eq!((size.status, size.shots.len(), size.count), (Status::Ok, 7, 7));
    assert_eq!(model.samples(), before);
    assert!(missing(&model).is_empty() && model.lost.is_empty());
}
