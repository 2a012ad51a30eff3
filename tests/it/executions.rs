//! Plans that are run by a job: between rounds of its sweep, with what was foreseen, in what sessions keep of them.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

use toposcope::diagnose::diagnose;
use toposcope::fabric::Fabric;
use toposcope::measure::{Conductor, Gate, Start};
use toposcope::plan::strategy::{Held, Job, Strategy};
use toposcope::plan::{Execution, Foreseen, Traffic, Transfers, replay};
use toposcope::sample::{EngineKind, MoverKind, Pattern};
use toposcope::session::store::{Store, read};
use toposcope::session::{Command, EVENT_SCHEMA, Event, Header, Model, Record, measured};
use toposcope::sweep::SweepSettings;
use toposcope::topology::Efficiency;
use toposcope::transport::sim::Sim;
use toposcope::transport::{Engine, threads::Threads};

use crate::calibration::faults;
use crate::made;

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
[[shared]]
name = \"port\"
per = \"host\"
direction = \"each\"
rate = \"12GB/s\"
";

/// Two trainers on one host, two engines on another.
fn traffic(strategy: Strategy, bytes: u64) -> Traffic {
    let job = Job { hosts: vec![0, 0, 1, 1], bytes, trainers: vec![0, 1], engines: vec![2, 3], held: Held::Shards, message: None };
    strategy.traffic(&job).unwrap()
}

fn execute(traffic: &Traffic, repeats: u32) -> Command {
    Command::Execute { name: traffic.name.clone(), transfers: Transfers::Traffic(traffic.clone()), repeats }
}

fn settings(mover: MoverKind) -> SweepSettings {
    SweepSettings { patterns: vec![Pattern::Peer], sizes: vec![4096, 65536], repeats: 3, mover, ..SweepSettings::default() }
}

/// Run a job that these commands wait for, headless; its events.
fn run(
    engine: Box<dyn Engine>,
    start: Option<SweepSettings>,
    commands: &[Command],
    prepare: impl FnOnce(&mut Conductor<'_>),
) -> Vec<Event> {
    let (sender, orders): (Sender<Command>, _) = mpsc::channel();
    for command in commands {
        sender.send(command.clone()).unwrap();
    }
    let headless = start.is_some();
    if !headless {
        sender.send(Command::Quit).unwrap();
    }
    let events = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&events);
    let mover = engine.movers()[0];
    let mut conductor =
        Conductor::new(engine, orders, Arc::new(Gate::default()), 0, move |_, event| told.borrow_mut().push(event), Vec::new);
    conductor.like(settings(mover));
    prepare(&mut conductor);
    conductor.run(start.map(Start::new), headless);
    conductor.into_engine().finish();
    Rc::try_unwrap(events).map_or_else(|events| events.borrow().clone(), RefCell::into_inner)
}

fn executions(events: &[Event]) -> Vec<&Execution> {
    events.iter().filter_map(|event| if let Event::ExecutionDone(execution) = event { Some(execution) } else { None }).collect()
}

#[test]
fn a_plan_in_the_middle_of_a_sweep_is_run_and_the_sweep_goes_on() {
    let traffic = traffic(Strategy::ShardedPlan, 1_000_001);
    let engine = Box::new(Threads::start(4).unwrap());
    let events = run(engine, Some(settings(MoverKind::Memcpy)), &[execute(&traffic, 3)], |_| {});
    let found = executions(&events);
    let [execution] = found.as_slice() else { panic!("{events:?}") };
    assert_eq!((execution.failed.as_str(), execution.mover.as_str(), execution.runs.len()), ("", "memcpy", 3));
    assert_eq!(execution.verified, 4 * traffic.bytes());
    for run in &execution.runs {
        assert_eq!((run.stages.len(), run.flows.len()), (traffic.stages.len(), traffic.flows.len()));
        assert!(run.flows.iter().all(|&seconds| seconds > 0.0 && seconds <= run.seconds), "{run:?}");
        assert!(run.stages.windows(2).all(|two| two[0] <= two[1]), "the second waits for the first: {run:?}");
    }
    // Every repeat of every pair is there, after it, too.
    let samples = events
        .iter()
        .map(|event| if let Event::ProbeDone { samples, .. } = event { samples.iter().filter(|s| !s.warmup).count() } else { 0 });
    assert_eq!(samples.sum::<usize>(), 12 * 2 * 3);
    let at = |name: &str| events.iter().position(|event| serde_json::to_value(event).unwrap()["event"] == name).unwrap();
    assert!(at("execution_started") < at("execution_done") && at("execution_done") < at("sweep_ended"));
}

#[test]
fn what_cannot_be_run_is_told_with_the_reason_and_the_job_goes_on() {
    let traffic = traffic(Strategy::ShardedDirect, 1000);
    let wide = Traffic { ranks: 9, flows: vec![toposcope::plan::Flow { to: 8, ..traffic.flows[0].clone() }], ..traffic.clone() };
    let commands = [execute(&wide, 1), execute(&traffic, 0), execute(&traffic, 1)];
    let events = run(Box::new(Threads::start(4).unwrap()), None, &commands, |_| {});
    let failed: Vec<&str> = executions(&events).iter().map(|execution| execution.failed.as_str()).collect();
    assert!(failed[0].contains("9 ranks, and there are 4") && failed[1].contains("0 timed runs") && failed[2].is_empty(), "{failed:?}");
}

#[test]
fn plans_are_read_where_files_may_be_read_and_foreseen_where_prices_are() {
    let traffic = traffic(Strategy::ShardedDirect, 1 << 20);
    let own = traffic.clone();
    let read = move |path: &Path| if path.ends_with("good") { Ok(own.clone()) } else { Err("no such file".to_owned()) };
    let loads = ["good", "bad"].map(|path| Command::LoadPlan { path: path.into() });
    let commands = [&loads[..], &[execute(&traffic, 1)]].concat();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    let events = run(Box::new(Threads::start(4).unwrap()), None, &commands, |conductor| {
        let foresee = move |traffic: &Traffic, mover| {
            told.lock().unwrap().push((traffic.name.clone(), mover));
            Some(Foreseen { seconds: 1.0, ..Foreseen::default() })
        };
        conductor.plans(foresee, read);
    });
    let loaded = events.iter().filter(|event| matches!(event, Event::PlanLoaded { traffic: loaded } if *loaded == traffic)).count();
    let notice = events.iter().any(|event| matches!(event, Event::Notice { text } if text.contains("no such file")));
    assert!(loaded == 1 && notice, "{events:?}");
    assert_eq!(*asked.lock().unwrap(), [(traffic.name.clone(), MoverKind::Memcpy)]);
    assert!((executions(&events)[0].foreseen.as_ref().unwrap().seconds - 1.0).abs() < 1e-12);
}

/// Times of a described machine are those that a replay of it foresees: two ways to the same numbers.
#[test]
fn simulated_runs_take_what_the_replay_says_and_say_that_nothing_moved() {
    let fabric = Arc::new(Fabric::parse(TWO_HOSTS, "two").unwrap());
    for strategy in [Strategy::Direct, Strategy::Relay, Strategy::ShardedPlan, Strategy::PipelinedRelay { slices: 8 }] {
        let Ok(traffic) = strategy.traffic(&Job {
            hosts: vec![0, 0, 1, 1],
            bytes: 64 << 20,
            trainers: vec![0, 1],
            engines: vec![2, 3],
            held: Held::Whole,
            message: None,
        }) else {
            continue;
        };
        let foreseen = replay(&traffic, &*fabric).unwrap();
        let events = run(Box::new(Sim::new(Arc::clone(&fabric))), None, &[execute(&traffic, 2)], |_| {});
        let [execution] = executions(&events)[..] else { panic!("{events:?}") };
        assert_eq!((execution.failed.as_str(), execution.verified, execution.runs.len()), ("", 0, 2));
        for run in &execution.runs {
            assert!((run.seconds / foreseen.seconds - 1.0).abs() < 1e-6, "{}: {} {}", traffic.name, run.seconds, foreseen.seconds);
        }
        assert!(events.iter().any(|event| matches!(event, Event::Notice { text } if text.contains("nothing moved"))));
    }
}

#[test]
fn a_rank_that_hangs_in_a_simulated_run_is_lost_and_told() {
    let text = format!("{TWO_HOSTS}[[fault]]\nkind = \"hang\"\nrank = 3\nafter = 0\n");
    let fabric = Arc::new(Fabric::parse(&text, "two").unwrap());
    let traffic = traffic(Strategy::ShardedDirect, 1000);
    let events = run(Box::new(Sim::new(fabric)), None, &[execute(&traffic, 1), execute(&traffic, 1)], |_| {});
    let failed: Vec<&str> = executions(&events).iter().map(|execution| execution.failed.as_str()).collect();
    assert!(failed[0].contains("no answer from rank 3") && failed[1].contains("rank 3 is lost"), "{failed:?}");
    assert!(events.iter().any(|event| matches!(event, Event::RankLost { rank: 3, .. })));
}

fn records() -> (Traffic, Vec<Record>) {
    let traffic = traffic(Strategy::ShardedPlan, 1000);
    let run = toposcope::plan::Run { seconds: 2.0, stages: vec![1.0, 2.0], flows: vec![1.0; traffic.flows.len()] };
    let resources = vec![("port of beta".to_owned(), 0.9, vec![0, 1])];
    let foreseen = Foreseen { seconds: 1.0, low: 0.9, high: 1.1, stages: vec![0.5, 1.0], bottleneck: "port of beta".to_owned(), resources };
    let mover = "mpi_put".to_owned();
    let done =
        Execution { name: traffic.name.clone(), mover, runs: vec![run], verified: 9, foreseen: Some(foreseen), ..Execution::default() };
    let failed =
        Execution { runs: Vec::new(), foreseen: None, failed: "rank 2 was stopped".to_owned(), name: "other".to_owned(), ..done.clone() };
    let events = [
        Event::PlanLoaded { traffic: traffic.clone() },
        Event::ExecutionStarted { name: traffic.name.clone() },
        Event::ExecutionDone(done),
        Event::ExecutionStarted { name: "other".to_owned() },
        Event::ExecutionDone(failed),
    ];
    (traffic, (0_u32..).zip(events).map(|(t, event)| Record { t: f64::from(t), event }).collect())
}

#[test]
fn executions_pass_the_schema_and_a_session_with_them_opens_again_with_its_findings() {
    let (traffic, records) = records();
    for record in &records {
        let line = serde_json::to_value(record).unwrap();
        assert_eq!(faults(EVENT_SCHEMA, &line), [""; 0], "{line}");
        let mut more = line.clone();
        more["surprise"] = serde_json::json!(1);
        assert!(!faults(EVENT_SCHEMA, &more).is_empty(), "{more}");
    }
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("session");
    let header = Header { engine: EngineKind::Mpi, ..made::header() };
    let mut store = Store::create(&session, &header).unwrap();
    for record in &records {
        store.append(record).unwrap();
    }
    drop(store);
    let again = read(&session).unwrap();
    assert_eq!(again.records, records);
    let mut model = Model::new(again.header);
    for record in &again.records {
        model.apply(record);
    }
    assert_eq!((model.plans.len(), model.executions.len(), &model.executing), (1, 2, &None));
    assert_eq!(model.plans[0], traffic);
    let findings = diagnose(&measured(&model, &Efficiency::default())).findings;
    let titles: Vec<&str> = findings.iter().filter(|finding| finding.rule == "execution").map(|finding| finding.title.as_str()).collect();
    assert!(titles.len() == 2 && titles.iter().any(|title| title.contains("rank 2 was stopped")), "{titles:?}");
    assert!(titles.iter().any(|title| title.contains(&traffic.name) && title.contains("2.00 s")), "{titles:?}");
}
