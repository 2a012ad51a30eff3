//! `toposcope scenarios run` as an MPI job: staged against window methods, every byte compared.

use toposcope::plan::scenario::Amounts;

use super::LIMIT;
use crate::place::Place;
use crate::place::mpi::{Mpi, with_both};
use crate::scenarios::{all_compared, document, parsed_back};

with_both! {
    scenarios_are_run_staged_and_with_puts_and_every_byte_is_compared
}

fn scenarios_are_run_staged_and_with_puts_and_every_byte_is_compared(mpi: &Mpi) {
    let place = Place::new();
    let mut job = place.command(mpi.launcher);
    job.args(&mpi.words("4")[1..]).args([
        "scenarios",
        "run",
        "xpeer",
        "pairs",
        "xbipartite",
        "xstrided",
        "weight_sync",
        "incast",
        "staging",
    ]);
    job.args("--hosts 0-1/2-3 --sizes 64KiB --bytes 512KiB --repeats 1 --warmup 1 --bytes-per-peer 50000".split(' '));
    job.arg("--session").arg(place.session()).arg("--out").arg(place.folder().join("scenarios.json"));
    let ran = place.run(&mut job, LIMIT);
    ran.ended_with(0);
    let document = document(&place);
    assert_eq!((&document["engine"], &document["ranks"]), (&"mpi".into(), &4.into()));
    let heads = parsed_back(&ran.stdout, &document);
    assert_eq!(heads[0], ["pattern", "w", "MiB", "mpi_sendrecv", "mpi_put", "best / first"]);
    assert_eq!(heads.last().unwrap(), &["scenario", "MiB", "mpi_sendrecv"], "staging budgets are of what is staged");
    all_compared(&document, &Amounts { sizes: vec![64 << 10], model: 512 << 10 });
    place.nothing_runs();
}
