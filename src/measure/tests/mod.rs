//! The conductor over an engine that does as it is told, without time.

mod described;
mod rounds;
mod stopping;
mod told;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use told::{Told, told};

use super::{Conductor, Gate, Start};
use crate::sample::{MoverKind, Pattern, Sample, Status};
use crate::session::{Command, Event, Outcome};
use crate::sweep::{Cell, Done, Knowledge, SweepSettings, Target};
use crate::transport::Absent;

fn settings() -> SweepSettings {
    SweepSettings { patterns: vec![Pattern::Peer], sizes: vec![4096, 1 << 20], repeats: 3, ..SweepSettings::default() }
}

/// Run a conductor; `react` sees each event and may command.
fn run(engine: Told, start: Option<Start>, headless: bool, react: impl FnMut(&Event, &Sender<Command>)) -> (Vec<Event>, bool) {
    run_knowing(None, engine, start, headless, react)
}

/// The same with what is known of who disturbs whom.
fn run_knowing(
    knowledge: Option<Rc<dyn Knowledge>>,
    engine: Told,
    start: Option<Start>,
    headless: bool,
    mut react: impl FnMut(&Event, &Sender<Command>),
) -> (Vec<Event>, bool) {
    let (commands, orders) = mpsc::channel();
    let events = RefCell::new(Vec::new());
    let sink = |_: Option<f64>, event: Event| {
        react(&event, &commands);
        events.borrow_mut().push(event);
    };
    let mut conductor = Conductor::new(Box::new(engine), orders, Arc::new(Gate::default()), 0, sink, Vec::new);
    if let Some(knowledge) = knowledge {
        conductor.know(knowledge);
    }
    conductor.run(start, headless);
    let blemished = conductor.blemished();
    drop(conductor);
    (events.into_inner(), blemished)
}

fn samples(events: &[Event]) -> Vec<&Sample> {
    events.iter().filter_map(|event| if let Event::ProbeDone { samples, .. } = event { Some(samples) } else { None }).flatten().collect()
}

fn notices(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| if let Event::Notice { text } = event { Some(text.as_str()) } else { None }).collect()
}

fn ended(events: &[Event]) -> Vec<Outcome> {
    events.iter().filter_map(|event| if let Event::SweepEnded { outcome, .. } = event { Some(*outcome) } else { None }).collect()
}

#[test]
fn a_headless_sweep_measures_everything_and_ends() {
    let engine = told(3);
    let setups = Rc::clone(&engine.setups);
    let (events, blemished) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    assert_eq!((samples(&events).len(), blemished), (6 * 2 * 3, false));
    assert_eq!(ended(&events), [Outcome::Complete]);
    assert_eq!(setups.borrow().len(), 1);
    assert!(setups.borrow()[0].arena >= 1 << 20);
}

#[test]
fn a_pair_that_hangs_is_given_up_and_the_rest_goes_on() {
    let engine = Told { hang: vec![(0, 1)], ..told(3) };
    let (events, blemished) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    let mut states: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for sample in samples(&events) {
        *states.entry(((sample.from, sample.to) == (0, 1), sample.status.name())).or_default() += 1;
    }
    // Two probes of it time out: one repeat of the first pass, and three of the smaller size; the other two are waived without asking.
    assert_eq!(states, BTreeMap::from([((false, "ok"), 30), ((true, "timeout"), 4), ((true, "waived"), 2)]));
    assert!(blemished);
    let started = events.iter().filter(|event| matches!(event, Event::ProbeStarted { probe } if probe.flows() == [(0, 1)])).count();
    assert_eq!(started, 2);
}

#[test]
fn all_cells_of_a_lost_rank_are_timeouts() {
    let engine = Told { hang: vec![(0, 2), (2, 0), (1, 2), (2, 1)], lose: Some(2), ..told(3) };
    let (events, _) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    assert!(events.contains(&Event::RankLost { rank: 2, reason: "told to".to_owned() }));
    for sample in samples(&events) {
        let gone = sample.from == 2 || sample.to == 2;
        assert_eq!(sample.status, if gone { Status::Timeout } else { Status::Ok }, "{sample:?}");
    }
    let asked = events.iter().filter(|event| matches!(event, Event::ProbeStarted { probe } if probe.ranks().contains(&2))).count();
    assert_eq!(asked, 1, "a lost rank is not asked again");
}

#[test]
fn what_needs_a_rank_that_takes_no_part_is_waived_with_the_reason_which_is_told_once() {
    let absent = Absent { rank: 2, reason: "host h0: 3 ranks, 2 GPUs".to_owned() };
    let (events, blemished) = run(Told { absent: vec![absent], ..told(3) }, Some(Start::new(settings())), true, |_, _| {});
    for sample in samples(&events) {
        let gone = sample.from == 2 || sample.to == 2;
        assert_eq!(sample.status, if gone { Status::Waived } else { Status::Ok }, "{sample:?}");
        assert_eq!(sample.reason.as_deref(), gone.then_some("rank 2 takes no part: host h0: 3 ranks, 2 GPUs"));
    }
    assert!(blemished && samples(&events).len() == 6 * 2 * 3);
    let told: Vec<&str> = notices(&events).into_iter().filter(|text| text.contains("takes no part")).collect();
    assert!(matches!(told[..], [one] if one.starts_with("rank 2 on ") && one.ends_with("waived: host h0: 3 ranks, 2 GPUs")), "{told:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::ProbeStarted { probe } if probe.ranks().contains(&2))), "it is not asked");
}

#[test]
fn pause_holds_continue_goes_on_and_abort_ends() {
    let mut seen = 0;
    let (events, _) = run(told(3), Some(Start::new(settings())), false, |event, commands| match event {
        Event::ProbeDone { .. } => {
            seen += 1;
            match seen {
                2 => commands.send(Command::Pause).unwrap(),
                5 => commands.send(Command::Abort).unwrap(),
                _ => {}
            }
        }
        Event::Paused => commands.send(Command::Continue).unwrap(),
        Event::SweepEnded { .. } => commands.send(Command::Quit).unwrap(),
        _ => {}
    });
    let position = |wanted: &Event| events.iter().position(|event| event == wanted).unwrap();
    assert_eq!(position(&Event::Continued), position(&Event::Paused) + 1, "nothing is measured while paused");
    assert_eq!(ended(&events), [Outcome::Aborted]);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::ProbeDone { .. })).count(), 5);
}

#[test]
fn a_cell_is_measured_again_during_a_sweep_and_after_it() {
    let cell = Cell { pattern: Pattern::Peer, from: 1, to: 0 };
    let mut asked = 0;
    let (events, _) = run(told(2), Some(Start::new(settings())), false, |event, commands| match event {
        Event::ProbeDone { .. } if asked == 0 => {
            asked = 1;
            let never = [Cell { pattern: Pattern::Local, ..cell }, Cell { to: 1, ..cell }, Cell { from: 9, ..cell }];
            commands.send(Command::Remeasure { cells: [&never[..], &[cell]].concat(), bytes: Some(4096) }).unwrap();
        }
        Event::SweepEnded { .. } if asked == 1 => {
            asked = 2;
            commands.send(Command::Remeasure { cells: vec![cell], bytes: None }).unwrap();
        }
        Event::SweepEnded { .. } => commands.send(Command::Quit).unwrap(),
        _ => {}
    });
    let takes = |take: u32| samples(&events).into_iter().filter(move |sample| sample.take == take).collect::<Vec<_>>();
    // What was not measured yet when a newer take began is not measured for the old one.
    let own = |(from, bytes): (usize, u64)| takes(0).iter().filter(|sample| (sample.from, sample.bytes) == (from, bytes)).count();
    assert_eq!([(0, 4096), (0, 1 << 20), (1, 1 << 20), (1, 4096)].map(own), [3, 3, 3, 0]);
    assert!(takes(1).iter().all(|sample| (sample.from, sample.to, sample.bytes) == (1, 0, 4096)));
    assert_eq!((takes(1).len(), takes(2).len()), (3, 2 * 3));
    let ids: Vec<u64> =
        events.iter().filter_map(|event| if let Event::ProbeStarted { probe } = event { Some(probe.id) } else { None }).collect();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]) && ids.len() == ids.iter().collect::<std::collections::BTreeSet<_>>().len());
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    let mut engine = told(2);
    for placement in &mut engine.topology.ranks {
        placement.memory_available = 1 << 20;
    }
    let (events, blemished) = run(engine, Some(Start::new(settings())), true, |_, _| {});
    assert!(blemished);
    assert!(matches!(&events[..], [Event::Notice { text }] if text.contains("MiB on node1, which has 1 MiB")), "{events:?}");
    let wrong = SweepSettings { mover: MoverKind::MpiPut, ..settings() };
    let (events, _) = run(told(2), Some(Start::new(wrong)), true, |_, _| {});
    assert!(matches!(&events[..], [Event::Notice { text }] if text.contains("mover = mpi_put: this engine has memcpy")), "{events:?}");
}

#[test]
fn a_resumed_sweep_measures_only_what_is_missing() {
    let cell = Cell { pattern: Pattern::Peer, from: 0, to: 1 };
    let done = |bytes, repeats: &[u32]| Done {
        target: Target::Pair(cell),
        bytes,
        take: 0,
        repeats: repeats.to_vec(),
        times: vec![vec![1e-3; repeats.len()]],
        together: false,
    };
    let start = Start { done: vec![done(4096, &[0, 1, 2]), done(1 << 20, &[0])], resumed: true, ..Start::new(settings()) };
    let (events, _) = run(told(2), Some(start), true, |_, _| {});
    let of_cell: Vec<(u64, u32)> =
        samples(&events).iter().filter(|sample| sample.from == 0).map(|sample| (sample.bytes, sample.repeat)).collect();
    assert_eq!(of_cell, [(1 << 20, 1), (1 << 20, 2)]);
}
