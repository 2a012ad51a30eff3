//! `toposcope replay --execute` as an MPI job: every byte, both movers, and a rank that is killed meanwhile.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use toposcope::plan::files::{write_batch, write_traffic};
use toposcope::plan::strategy::{Held, Job, Strategy};
use toposcope::plan::{Batch, Endpoints, Execution, Parameter, Place as Side, Plan, Segment};
use toposcope::session::{Event, store};

use super::LIMIT;
use crate::place::mpi::{Mpi, with_both};
use crate::place::{Place, kill, until};

with_both! {
    plans_are_run_with_both_movers_and_every_byte_is_compared
    a_rank_that_is_killed_in_a_run_ends_it_with_its_name
}

fn relay(place: &Place, bytes: u64) -> PathBuf {
    let job = Job { hosts: vec![0, 1, 1], bytes, trainers: vec![0], engines: vec![1, 2], held: Held::Whole, message: Some(100_000) };
    let path = place.folder().join("relay.json");
    fs::write(&path, write_traffic(&Strategy::Relay.traffic(&job).unwrap())).unwrap();
    path
}

/// Columns of rank 0 -> half of them each to ranks 1 and 2, strided on both sides.
fn columns(place: &Place) -> PathBuf {
    let segment = |to: i64| Segment {
        shape: vec![500, 32],
        source: Side(0, (to.unsigned_abs() - 1) * 32, vec![64, 1]),
        target: Side(to, 1, vec![40, 1]),
    };
    let plan = Plan { logical_shape: vec![500, 64], segments: vec![segment(1), segment(2)] };
    let endpoints = Endpoints { source: [(0, 0)].into(), target: [(1, 1), (2, 2)].into() };
    let batch = Batch { parameters: vec![Parameter { name: "w".to_owned(), plan, element_size: 2 }], endpoints, bytes_per_peer: 5000 };
    let path = place.folder().join("columns.json");
    fs::write(&path, write_batch(&batch)).unwrap();
    path
}

fn executions(place: &Place) -> Vec<Execution> {
    let records = store::read(&place.session()).unwrap().records;
    records
        .into_iter()
        .filter_map(|record| if let Event::ExecutionDone(execution) = record.event { Some(execution) } else { None })
        .collect()
}

fn plans_are_run_with_both_movers_and_every_byte_is_compared(mpi: &Mpi) {
    for mover in ["mpi_sendrecv", "mpi_put"] {
        let place = Place::new();
        let (relay, columns) = (relay(&place, 1_000_003), columns(&place));
        let mut job = mpi.job(&place);
        job.args(["replay", "--execute", "--repeats", "2", "--mover", mover, "--session"]).arg(place.session()).arg(relay).arg(columns);
        let ran = place.run(&mut job, LIMIT);
        ran.ended_with(0);
        assert!(ran.stdout.contains("target bytes compared"), "{ran:?}");
        let told: Vec<(u64, usize, String)> =
            executions(&place).into_iter().map(|done| (done.verified, done.runs.len(), done.failed)).collect();
        assert_eq!(told, [(3 * 2 * 1_000_003, 2, String::new()), (3 * 500 * 64 * 2, 2, String::new())], "{mover}");
        place.nothing_runs();
    }
}

fn a_rank_that_is_killed_in_a_run_ends_it_with_its_name(mpi: &Mpi) {
    let place = Place::new();
    let relay = relay(&place, 4 << 20);
    let mut job = mpi.job(&place);
    job.args(["replay", "--execute", "--repeats", "1000", "--session"]).arg(place.session()).arg(relay);
    let run = place.start(&mut job);
    let started = || fs::read_to_string(place.session().join("events.ndjson")).is_ok_and(|text| text.contains("execution_started"));
    until(LIMIT, "the run", || run.said(), started);
    let pid = store::read_header(&place.session()).unwrap().topology.ranks[2].pid;
    kill(pid, Signal::KILL);
    let ran = run.end(LIMIT);
    assert!(!ran.status.success(), "{ran:?}");
    let told = ran.stderr.lines().find(|line| line.starts_with("toposcope: ") && line.contains(" died "));
    assert!(told.is_some_and(|told| told.contains("rank 2") || told.contains("too close together")), "{ran:?}");
    place.nothing_runs();
}
