#![allow(clippy::float_cmp, reason = "rounded to what was printed")]

use super::*;
use crate::import::measured::tables;
use crate::session::Model;
use crate::sweep::Cell;

const READ: &str =
    "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 N/A 20\n 1 10 N/A\n";
const WRITE: &str =
    "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n 0 N/A 11\n 1 21 N/A\n";
const HOST: &str = "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 50 51\n";
const BUSY: &str = "Running host_to_all_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 25 26\n";

fn source(file: &str, text: &str) -> Source {
    Source { file: file.to_owned(), tables: tables(text, file).unwrap() }
}

fn model(built: &Built) -> Model {
    let mut model = Model::new(built.header.clone());
    built.records.iter().for_each(|record| _ = model.apply(record));
    model
}

fn gbps(model: &Model, from: usize, to: usize) -> f64 {
    let cell = Cell { pattern: Pattern::Peer, from, to };
    (model.cells.sizes_of(cell)[0].bandwidth() / 1e7).round() / 100.0
}

#[test]
fn one_table_of_each_pattern_and_size_is_taken_and_the_others_are_told() {
    let sources = [source("f", &format!("{BUSY}{READ}{WRITE}{HOST}"))];
    let built = build("n", &sources, Vec::new(), &[], &[]).unwrap();
    let seen = model(&built);
    let taken: Vec<(bool, &str)> = seen.imported.iter().map(|table| (table.taken, table.why.as_str())).collect();
    let host = "nvbandwidth host_to_device_memcpy_ce was taken, of the same pairs and sizes";
    let read = "nvbandwidth device_to_device_memcpy_read_ce was taken, of the same pairs and sizes";
    assert_eq!(taken, [(false, host), (true, ""), (false, read), (true, "")]);
    assert_eq!((gbps(&seen, 0, 1), gbps(&seen, 1, 0), seen.samples()), (10.0, 20.0, 4));
    assert_eq!(seen.sweep.as_ref().unwrap().share(), 1.0);
    let named = model(&build("n", &sources, Vec::new(), &[], &["WRITE".to_owned()]).unwrap());
    assert_eq!((gbps(&named, 0, 1), named.samples()), (11.0, 2));
    let numbered = model(&build("n", &sources, Vec::new(), &[], &["3".to_owned()]).unwrap());
    assert_eq!(gbps(&numbered, 0, 1), 11.0);
    let unknown = build("n", &sources, Vec::new(), &[], &["bogus".to_owned()]).unwrap_err();
    assert!(unknown.contains("2 device_to_device_memcpy_read_ce"), "{unknown}");
}

#[test]
fn ranks_sit_on_the_gpus_of_the_topology_that_is_given_along() {
    let text = "me@n1:~$ nvidia-smi topo -m\nGPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n";
    let hardware = crate::import::hardware(text, "t").unwrap().hosts;
    let built = build("n", &[source("f", READ)], hardware, &[], &[]).unwrap();
    let topology = &built.header.topology;
    assert_eq!(topology.hosts(), ["n1"]);
    assert_eq!(topology.ranks.iter().map(|rank| rank.gpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
    let router = crate::topology::Router::new(topology, &crate::topology::Efficiency::default());
    assert_eq!(router.label(0, 1).unwrap().to_string(), "NV4");
}

#[test]
fn what_all_ranks_did_together_is_a_session_without_samples() {
    let text = "# nThread 1\n#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n 8 2 float sum -1 17.9 0 0 0 17 0 0 0\n";
    let built = build("n", &[source("f", text)], Vec::new(), &[], &[]).unwrap();
    let seen = model(&built);
    assert_eq!((seen.samples(), seen.imported[0].collectives.len(), seen.world()), (0, 1, 1));
    assert_eq!(seen.imported[0].amount(), "1 size of all ranks together");
}

#[test]
fn repeats_of_any_number_are_counted() {
    let text =
        r#"{"backend": "nccl", "samples": [{"pattern": "peer", "from": 0, "to": 1, "bytes": 8, "repeat": 4294967295, "seconds": 1e-5}]}"#;
    let built = build("n", &[source("f", text)], Vec::new(), &[], &[]).unwrap();
    assert_eq!(built.header.settings.repeats, u32::MAX);
}

#[test]
fn a_number_of_a_table_is_no_part_of_a_name() {
    let mut sources = [source("f", &format!("{READ}{WRITE}"))];
    sources[0].tables[0].test = "round 2".to_owned();
    let taken = |named: &str| -> Vec<bool> {
        model(&build("n", &sources, Vec::new(), &[], &[named.to_owned()]).unwrap()).imported.iter().map(|table| table.taken).collect()
    };
    assert_eq!(taken("2"), [false, true]);
    assert_eq!(taken("round 2"), [true, false]);
    // No number of a table: a part of a name, if there is one.
    assert!(build("n", &sources, Vec::new(), &[], &["3".to_owned()]).is_err());
}

#[test]
fn pairs_are_of_tables_whose_ends_have_no_names() {
    let rates = "# OSU MPI Bandwidth Test v7.0\n# Size  Bandwidth (MB/s)\n4096 1000.00\n";
    let sources = [source("gpus.txt", READ), source("one.txt", rates), source("other.txt", rates)];
    let named = ["osu_bw".to_owned()];
    let built = build("n", &sources, Vec::new(), &[(3, 5), (5, 7)], &named).unwrap();
    let seen = model(&built);
    assert_eq!((seen.world(), seen.samples()), (5, 2));
    assert_eq!((gbps(&seen, 2, 3), gbps(&seen, 3, 4)), (1.0, 1.0));
    for pairs in [&[(3, 5)][..], &[(3, 5), (5, 7), (7, 9)]] {
        let told = build("n", &sources, Vec::new(), pairs, &named).unwrap_err();
        assert!(told.contains("one.txt") && told.contains("other.txt") && !told.contains("gpus.txt"), "{told}");
    }
    let none = build("n", &sources[..1], Vec::new(), &[(0, 1)], &[]).unwrap_err();
    assert!(none.contains("name"), "{none}");
}
