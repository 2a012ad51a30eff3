use super::*;
use crate::sample::EngineKind;
use crate::session::{Command, Event, Header, Record};
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn header() -> Header {
    let text = format!(
        r#"{{"format":"{}","program":"0","name":"lab","started":"2026-01-01T00:00:00Z","engine":"threads","topology":{},"software":{{}}}}"#,
        Header::current_format(),
        r#"{"ranks":[{"rank":0,"host":"a","pid":1,"cores":[0],"memory_available":1,"memory_total":1}]}"#
    );
    let header: Header = serde_json::from_str(&text).unwrap();
    assert_eq!(header.engine, EngineKind::Threads);
    header
}

struct Fixture {
    _scratch: tempfile::TempDir,
    events: File,
    commands: Receiver<Command>,
    server: Server,
}

fn start() -> Fixture {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.ndjson");
    let events = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let (into, commands) = mpsc::channel();
    let server = Server::start_in(scratch.path(), "lab 1x3", &header(), &path, into, one_at_a_time()).unwrap();
    Fixture { _scratch: scratch, events, commands, server }
}

/// A gate that one client would close for all, if it stayed in it.
fn one_at_a_time() -> Pass {
    let gate = std::sync::Mutex::new(());
    Arc::new(move |work| {
        let _inside = gate.lock().unwrap();
        work();
    })
}

fn notice(t: f64, text: &str) -> Record {
    Record { t, event: Event::Notice { text: text.to_owned() } }
}

impl Fixture {
    fn append(&mut self, record: &Record) {
        self.events.write_all(format!("{}\n", serde_json::to_string(record).unwrap()).as_bytes()).unwrap();
        self.server.notify();
    }

    fn attach(&self) -> Client {
        Client::connect(Some(self.server.path())).unwrap()
    }
}

#[test]
fn a_client_gets_the_past_then_the_present_and_the_end() {
    let mut fixture = start();
    fixture.append(&notice(1.0, "before"));
    let client = fixture.attach();
    assert_eq!(client.header.name, "lab");
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(1.0, "before"));
    fixture.append(&notice(2.0, "after"));
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(2.0, "after"));
    // A record in two writes arrives once, whole.
    let line = serde_json::to_string(&notice(3.0, "halves")).unwrap();
    fixture.events.write_all(&line.as_bytes()[..20]).unwrap();
    fixture.server.notify();
    fixture.events.write_all(&line.as_bytes()[20..]).unwrap();
    fixture.events.write_all(b"\n").unwrap();
    fixture.server.notify();
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(3.0, "halves"));
    // The last event before the end still arrives.
    let path = fixture.server.path().to_owned();
    fixture.events.write_all(b"{\"t\":4.0,\"event\":\"closed\"}\n").unwrap();
    drop(fixture.server);
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), Record { t: 4.0, event: Event::Closed });
    assert!(client.records.recv_timeout(LONG).is_err());
    assert!(!path.exists());
}

#[test]
fn commands_come_through_and_bad_lines_are_answered() {
    let fixture = start();
    let client = fixture.attach();
    client.send(&Command::Pause).unwrap();
    assert_eq!(fixture.commands.recv_timeout(LONG).unwrap(), Command::Pause);

    let raw = UnixStream::connect(fixture.server.path()).unwrap();
    (&raw).write_all(b"{\"command\":\"explode\"}\n\xff\xfe\n{\"command\":\"abort\"}\n").unwrap();
    assert_eq!(fixture.commands.recv_timeout(LONG).unwrap(), Command::Abort);
    let mut reader = BufReader::new(&raw);
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(String::from_utf8(read_line(&mut reader, 1 << 20).unwrap().unwrap()).unwrap());
    }
    assert!(lines[0].contains("toposcope.session"), "{lines:?}");
    assert!(lines[1].contains("error") && lines[1].contains("explode"), "{lines:?}");
    assert!(lines[2].starts_with("{\"error\""), "{lines:?}");
}

#[test]
fn an_answer_never_falls_into_an_event() {
    let mut fixture = start();
    let client = fixture.attach();
    let second = serde_json::to_string(&notice(2.0, "second")).unwrap();
    // A whole record and half of the next are there when the client does something wrong.
    let both = format!("{}\n{}", serde_json::to_string(&notice(1.0, "first")).unwrap(), &second[..20]);
    fixture.events.write_all(both.as_bytes()).unwrap();
    fixture.server.notify();
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(1.0, "first"));
    (&client.stream).write_all(b"nonsense\n").unwrap();
    let answer = client.records.recv_timeout(LONG).unwrap();
    assert!(matches!(&answer.event, Event::Notice { text } if text.contains("not a command")), "{answer:?}");
    fixture.events.write_all(format!("{}\n", &second[20..]).as_bytes()).unwrap();
    fixture.server.notify();
    assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(2.0, "second"));
}

#[test]
fn unknown_events_are_tolerated_and_unreadable_lines_told_once() {
    let mut fixture = start();
    let client = fixture.attach();
    fixture.events.write_all(b"{\"t\":1.0,\"event\":\"from_the_future\",\"x\":[1]}\nnonsense\nnonsense\n").unwrap();
    fixture.append(&notice(2.0, "on"));
    let got: Vec<Record> = (0..3).map(|_| client.records.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(got[0].event, Event::Unknown);
    assert!(matches!(&got[1].event, Event::Notice { text } if text.contains("cannot read")));
    assert_eq!(got[2], notice(2.0, "on"));
}

#[test]
fn one_who_does_not_read_holds_nobody_up() {
    let mut fixture = start();
    let stuck = UnixStream::connect(fixture.server.path()).unwrap();
    let gone = UnixStream::connect(fixture.server.path()).unwrap();
    drop(gone);
    let client = fixture.attach();
    let long = "x".repeat(100_000);
    for i in 0..50 {
        fixture.append(&notice(f64::from(i), &long));
        assert_eq!(client.records.recv_timeout(LONG).unwrap(), notice(f64::from(i), &long));
    }
    client.send(&Command::Quit).unwrap();
    assert_eq!(fixture.commands.recv_timeout(LONG).unwrap(), Command::Quit);
    drop(stuck);
}

#[test]
fn nothing_is_sent_while_the_gate_is_closed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.ndjson");
    fs::write(&path, "{\"t\":1.0,\"event\":\"closed\"}\n").unwrap();
    let gate = Arc::new(std::sync::Mutex::new(()));
    let closed = gate.lock().unwrap();
    let (arrived, waits) = mpsc::channel();
    let pass: Pass = Arc::new({
        let gate = Arc::clone(&gate);
        move |work| {
            let _ = arrived.send(());
            let _open = gate.lock().unwrap();
            work();
        }
    });
    let server = Server::start_in(scratch.path(), "lab", &header(), &path, mpsc::channel().0, pass).unwrap();
    let mut stream = UnixStream::connect(server.path()).unwrap();
    // It stands before the gate with everything to send.
    waits.recv_timeout(LONG).unwrap();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(closed);
    stream.set_nonblocking(false).unwrap();
    assert!(stream.read(&mut [0; 1]).unwrap() == 1);
}

#[test]
fn sockets_are_private_stale_ones_go_and_names_are_kept_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let stale = scratch.path().join("old.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    let begin = |name: &str| {
        let events = scratch.path().join("events.ndjson");
        Server::start_in(scratch.path(), name, &header(), &events, mpsc::channel().0, Arc::new(|work| work())).unwrap()
    };
    let (first, second) = (begin("a/b"), begin("a/b"));
    assert!(!stale.exists());
    let name = |server: &Server| server.path().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!((name(&first).as_str(), name(&second).as_str()), ("a-b.sock", "a-b-2.sock"));
    assert_eq!(fs::metadata(first.path()).unwrap().mode() & 0o777, 0o600);
    let mut live: Vec<PathBuf> = client::live(scratch.path());
    live.sort();
    assert_eq!(live, [second.path(), first.path()].map(Path::to_owned));
    // A name too long for a socket is cut, not refused.
    let long = begin(&"é".repeat(200));
    assert!(UnixStream::connect(long.path()).is_ok());
}

#[test]
fn lines_are_bounded() {
    let mut reader = BufReader::new(&b"abc\nabcdefgh\n"[..]);
    assert_eq!(read_line(&mut reader, 6).unwrap().unwrap(), b"abc");
    assert!(read_line(&mut reader, 6).is_err());
    assert!(read_line(&mut BufReader::new(&b"cut"[..]), 6).unwrap().is_none());
}
