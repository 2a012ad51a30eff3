//! How tests run: beside a sweep, when they fail, and in what sessions keep of them.

use toposcope::diagnose::next::Test;
use toposcope::sample::Status;
use toposcope::session::store::{Store, read};
use toposcope::session::{EVENT_SCHEMA, Outcome, Running};
use toposcope::sweep::Cell;

use super::*;
use crate::calibration::faults;

const TWO_HOSTS: &str = "
[hosts]
count = 2
ranks = 2
memory = \"1GiB\"
[path.local]
alpha = \"1us\"
rate = \"100GB/s\"
[path.intra_node]
alpha = \"5us\"
rate = \"20GB/s\"
[path.inter_node]
alpha = \"10us\"
rate = \"10GB/s\"
";

fn job(more: &str) -> Job<'static> {
    let fabric = Arc::new(Fabric::parse(&format!("{TWO_HOSTS}{more}"), "two").unwrap());
    Job::new(&fabric, &settings(&[Pattern::Local, Pattern::Peer], &[4096, 1 << 20]))
}

fn test(sets: Vec<Vec<(usize, usize)>>) -> Test {
    let say = "measure some of them".to_owned();
    Test { kind: TestKind::SwapPartners, say, sets, bytes: 1 << 20, repeats: 6, windows: Vec::new(), mover: None }
}

fn command(test: &Test) -> Command {
    Command::RunTest { finding: "the one".to_owned(), test: test.clone() }
}

/// Of each size the times of its repeats.
type Times = Vec<(u64, Vec<f64>)>;

/// The numbers of all that the sweep measured.
fn cells(model: &Model) -> Vec<(Cell, Times)> {
    let sizes = |sizes: &[toposcope::session::SizeCell]| sizes.iter().map(|size| (size.bytes, size.times())).collect();
    let mut all: Vec<_> = model.cells.iter().map(|(cell, own)| (cell, sizes(own))).collect();
    all.sort_by_key(|(cell, _)| *cell);
    all
}

#[test]
fn a_test_in_the_middle_of_a_sweep_changes_nothing_of_it() {
    let (mut alone, mut with) = (job(""), job(""));
    alone.sweep();
    // It is there from the beginning: run before the first round.
    with.commands.send(command(&test(vec![vec![(0, 2)], vec![(0, 1), (2, 3)]]))).unwrap();
    with.sweep();
    let (alone, with) = (alone.session.borrow(), with.session.borrow());
    assert_eq!(cells(&alone.0), cells(&with.0));
    assert_eq!(alone.0.groups.iter().count(), with.0.groups.iter().count());
    let sweep = with.0.sweep.as_ref().unwrap();
    assert_eq!((sweep.running, sweep.share()), (Running::Ended(Outcome::Complete), 1.0));
    let [result] = &with.0.tests[..] else { panic!("{:?}", with.0.tests) };
    assert_eq!((result.finding.as_str(), result.reason.as_str(), &with.0.testing), ("the one", "", &None));
    let of = |set, warm: bool| result.samples.iter().filter(|own| own.set == Some(set) && own.warmup == warm).count();
    assert_eq!((of(0, false), of(1, false), of(0, true)), (6, 12, 1));
    assert!(result.samples.iter().all(|sample| sample.status == Status::Ok && sample.isolated && sample.bytes == 1 << 20));
    // 1 MiB at 20 GB/s and 5 µs, as the fabric says.
    let own = result.samples.iter().find(|sample| (sample.from, sample.to, sample.warmup) == (2, 3, false)).unwrap();
    assert!((own.seconds_per_message().unwrap() - 57.43e-6).abs() < 0.01e-6, "{own:?}");
}

#[test]
fn windows_and_sizes_of_a_test_are_its_own_and_the_sweep_can_be_measured_again_after_it() {
    let mut job = job("");
    job.sweep();
    let deep = Test { bytes: 4096, windows: vec![1, 64], ..test(vec![vec![(0, 2)], vec![(0, 2)]]) };
    job.conductor.test("the one", &deep, &job.settings);
    job.conductor.run(None, true);
    let cell = Cell { pattern: Pattern::Peer, from: 0, to: 2 };
    job.commands.send(Command::Remeasure { cells: vec![cell], bytes: Some(1 << 20) }).unwrap();
    job.commands.send(Command::Quit).unwrap();
    job.conductor.run(None, false);
    let (model, records) = &*job.session.borrow();
    let rate = |set| {
        let own = model.tests[0].samples.iter().filter(|own| own.set == Some(set) && !own.warmup);
        4096.0 / own.map(|own| own.seconds_per_message().unwrap()).fold(0.0, f64::max)
    };
    // 10 µs once a window.
    assert!((rate(0) / 0.393e9 - 1.0).abs() < 0.01 && (rate(1) / 7.24e9 - 1.0).abs() < 0.01, "{} {}", rate(0), rate(1));
    let ids: Vec<u64> =
        records.iter().filter_map(|own| if let Event::ProbeStarted { probe } = &own.event { Some(probe.id) } else { None }).collect();
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
}

#[test]
fn a_test_that_hangs_or_is_refused_is_told_and_leaves_all_else_in_place() {
    // Rank 3 answers as long as the sweep takes, and no longer.
    let asks = |record: &&Record| matches!(&record.event, Event::ProbeStarted { probe } if probe.ranks().contains(&3));
    let mut whole = job("");
    whole.sweep();
    let probes = whole.session.borrow().1.iter().filter(asks).count();
    let mut job = job(&format!("[[fault]]\nkind = \"hang\"\nrank = 3\nafter = {probes}\n"));
    job.sweep();
    assert!(!job.conductor.blemished());
    let before = cells(&job.session.borrow().0);
    for sets in [vec![vec![(0, 1)], vec![(2, 3)], vec![(0, 3)]], vec![vec![(0, 9)]], vec![vec![(0, 1), (0, 1)]], vec![vec![]]] {
        job.conductor.test("the one", &test(sets), &job.settings);
        job.conductor.run(None, true);
    }
    assert!(job.conductor.blemished());
    let model = &job.session.borrow().0;
    assert_eq!(before, cells(model));
    let reasons: Vec<&str> = model.tests.iter().map(|result| result.reason.as_str()).collect();
    assert!(reasons[0].starts_with("2→3: no answer from rank 3"), "{reasons:?}");
    // A set that names ranks that are not there is in no table.
    assert_eq!(model.tests.len(), 3);
    assert!(reasons[1].contains("each transfer once"), "{reasons:?}");
    assert!(reasons[2].contains("without transfers"), "{reasons:?}");
    let of = |set, status| model.tests[0].samples.iter().filter(|own| own.set == Some(set) && !own.warmup && own.status == status).count();
    assert_eq!((of(0, Status::Ok), of(1, Status::Timeout), of(2, Status::Timeout)), (6, 6, 6));
    assert!(model.log.iter().any(|line| line.text.contains("the test failed: 2→3")), "{:?}", model.log);
    assert!(model.lost.contains_key(&3));
    // What came through still counts, the failure is said.
    let found = settled(&job.measured(), finding(Shape::SlowUntold { from: 0, to: 1, share: 0.5 }, &[]));
    assert!(found.told[0].contains("0→1") && found.told[0].contains("no answer from rank 3"), "{:?}", found.told);
}

#[test]
fn a_person_can_leave_in_the_middle_of_a_test() {
    for (leave, reason) in [(Command::Quit, "left by the person"), (Command::Abort, "aborted by the person")] {
        let mut job = job("");
        job.sweep();
        for command in [command(&test(vec![vec![(0, 1)], vec![(1, 0)]])), leave, Command::Quit] {
            job.commands.send(command).unwrap();
        }
        job.conductor.run(None, false);
        let tests = &job.session.borrow().0.tests;
        assert_eq!((tests.len(), tests[0].reason.as_str()), (1, reason));
    }
}

#[test]
fn sessions_keep_tests_pass_their_schema_and_play_back_the_same() {
    let mut job = job("");
    job.sweep();
    let deep = Test { windows: vec![8], mover: Some(MoverKind::Simulated), ..test(vec![vec![(0, 2)]]) };
    for test in [test(vec![vec![(0, 2)], vec![(0, 1), (2, 3)]]), deep] {
        job.conductor.test("slow-untold 0 2", &test, &job.settings);
        job.conductor.run(None, true);
    }
    let (model, records) = &*job.session.borrow();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("kept");
    let mut store = Store::create(&folder, &model.header).unwrap();
    let last = records.iter().filter(|record| matches!(record.event, Event::TestStarted { .. } | Event::TestDone { .. }));
    assert_eq!(last.clone().count(), 4);
    for record in last {
        assert_eq!(faults(EVENT_SCHEMA, &serde_json::to_value(record).unwrap()), [""; 0]);
    }
    for record in records {
        store.append(record).unwrap();
    }
    let recorded = read(&folder).unwrap();
    let mut again = Model::new(recorded.header);
    recorded.records.iter().for_each(|record| drop(again.apply(record)));
    assert_eq!(again.tests, model.tests);
    assert_eq!(measured(&again, &Efficiency::default()).tests, model.tests);
    // A job that takes it up goes on with them; a new sweep has other numbers.
    let begin = |resumed| Record { t: 99.0, event: Event::SweepStarted { settings: job.settings.clone(), resumed } };
    drop(again.apply(&begin(true)));
    assert_eq!(again.tests.len(), 2);
    drop(again.apply(&begin(false)));
    assert!(again.tests.is_empty());
    for change in [
        (|line| line["test"]["kind"] = "guess".into()) as fn(&mut serde_json::Value),
        |line| line["test"]["sets"] = serde_json::json!([[]]),
        |line| line["reason"] = serde_json::Value::Null,
        |line| line["samples"][0]["status"] = "lost".into(),
    ] {
        let mut line = serde_json::to_value(records.last().unwrap()).unwrap();
        change(&mut line);
        assert!(!faults(EVENT_SCHEMA, &line).is_empty(), "{line}");
    }
}

/// The whole way with the real rules and causes: a sampled sweep from the command line, and the tests that decide appended to it.
#[test]
fn the_command_runs_the_tests_of_a_recorded_session_and_appends_them() {
    let place = crate::place::Place::new();
    let sampled = SweepSettings { pairs: 1, ..settings(&[Pattern::Peer], &[4096, 16 << 20]) };
    let (from, _) = lonely(&sampled);
    let fabric = place.folder().join("machine.toml");
    std::fs::write(&fabric, format!("{EIGHT_HOSTS}[[fault]]\nkind = \"slow\"\nfactor = 0.4\nfrom = {from}\n")).unwrap();
    let (session, named) = (place.session().display().to_string(), fabric.display().to_string());
    let run = |words: &[&str]| place.run(&mut place.toposcope(words), std::time::Duration::from_secs(60));
    let sweep = ["--session", &session, "sweep", "--fabric", &named, "--pairs", "1", "--patterns", "peer", "--sizes", "4K,16M"];
    run(&[&sweep[..], &["--repeats", "8"]].concat()).ended_with(0);
    let before = read(&place.session()).unwrap().records.len();
    let ran = run(&["diagnose", &session, "--json", "--run-tests=1"]);
    // Something is slow: that is what the exit code says.
    let told: serde_json::Value = serde_json::from_str(&ran.ended_with(1).stdout).unwrap();
    assert!(ran.stderr.contains("test 1: measure") && ran.stderr.contains(&format!("it is what {from} sends")), "{}", ran.stderr);
    let recorded = read(&place.session()).unwrap();
    let tests = recorded.records[before..].iter().filter(|record| matches!(record.event, Event::TestDone { .. })).count();
    assert_eq!(tests, 1);
    assert_eq!(recorded.records.last().unwrap().event, Event::Closed);
    let found = told["findings"].as_array().unwrap().iter().find(|own| own["told"].is_array()).unwrap();
    assert_eq!((&found["shape"]["kind"], &found["suspects"][0]["cause"]), (&"slow_unit".into(), &"sender".into()), "{found:#}");
    // Another machine's ranks have no place in it, and a calibration has none for tests.
    let other = run(&["diagnose", &session, "--run-tests=1", "--fabric", "b70-8"]);
    assert!(other.ended_with(2).stderr.contains("measured on"), "{}", other.stderr);
    let calibration = format!("{session}/calibration.json");
    let refused = run(&["diagnose", &calibration, "--run-tests=1"]);
    assert!(refused.ended_with(2).stderr.contains("no session's folder"), "{}", refused.stderr);
}
