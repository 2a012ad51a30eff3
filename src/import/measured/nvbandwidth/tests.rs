#![allow(clippy::float_cmp, reason = "rounded to what was printed")]

use super::*;
use crate::import::text::lines;

fn told(text: &str) -> (Vec<Table>, usize, Vec<String>) {
    let mut skips = Skips::default();
    let (tables, used) = read(&lines(text), &mut skips).unwrap();
    (tables, used, skips.sorted().into_iter().map(|skipped| skipped.reason).collect())
}

/// GB/s of a flow.
fn rate(table: &Table, pattern: Pattern, from: usize, to: usize) -> f64 {
    let found = table.samples.iter().find(|sample| (sample.pattern, sample.from, sample.to) == (pattern, from, to));
    let sample = found.unwrap_or_else(|| panic!("{} has no {pattern:?} {from}→{to}", table.test));
    (sample.bytes as f64 / sample.seconds.unwrap() / 1e7).round() / 100.0
}

/// What flows from each GPU to each is typed as it was measured; what nvbandwidth prints of it follows from its source.
#[test]
fn bytes_go_the_way_that_the_source_copies_them_whatever_the_arrow_says() {
    // GPU 0 sends to GPU 1 at 10 GB/s, GPU 1 to GPU 0 at 20.
    let read = "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n \
                0       N/A     20.00\n 1     10.00       N/A\n\nSUM device_to_device_memcpy_read_ce 30.00\n";
    let write = "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n           0         1\n \
                 0       N/A     10.00\n 1     20.00       N/A\n\nSUM device_to_device_memcpy_write_ce 30.00\n";
    for text in [read, write] {
        let (tables, ..) = told(text);
        assert_eq!(tables[0].samples.len(), 2);
        assert_eq!((rate(&tables[0], Pattern::Peer, 0, 1), rate(&tables[0], Pattern::Peer, 1, 0)), (10.0, 20.0), "{text}");
        assert!(tables[0].orientation.contains("arrow points the other way"));
    }
    // GPU 0 sends to all others at 6 GB/s in sum and receives 9; GPU 1 sends 12 and receives 15; GPU 2 18 and 21.
    let fan = |name: &str, arrow: &str, cells: &str| {
        format!(
            "Running {name}.\nmemcpy CE GPU(row) {arrow} GPU(column) bandwidth (GB/s)\n      0     1    2\n 0 {cells}\n\nSUM {name} 36\n"
        )
    };
    for (name, arrow, cells, pattern) in [
        ("one_to_all_write_ce", "->", "6.00 12.00 18.00", Pattern::FanOut),
        ("all_to_one_read_ce", "->", "6.00 12.00 18.00", Pattern::FanOut),
        ("all_to_one_write_ce", "<-", "9.00 15.00 21.00", Pattern::FanIn),
        ("one_to_all_read_ce", "<-", "9.00 15.00 21.00", Pattern::FanIn),
    ] {
        let (tables, _, skips) = told(&fan(name, arrow, cells));
        let table = tables.first().unwrap_or_else(|| panic!("{name}: {skips:?}"));
        assert_eq!(table.samples.len(), 6, "{name}");
        let (from, to, each) = if pattern == Pattern::FanOut { (1, 2, 6.0) } else { (2, 1, 7.5) };
        assert_eq!(rate(table, pattern, from, to), each, "{name}");
        let sample = table.samples.iter().find(|sample| sample.root == Some(1)).unwrap();
        assert_eq!((sample.peers.as_slice(), sample.root_seconds), ([0, 2].as_slice(), sample.seconds), "{name}");
        // Without its name the heading tells the same.
        let cut = fan(name, arrow, cells);
        let (tables, ..) = told(&cut[cut.find("memcpy").unwrap()..].replace("SUM", "sum"));
        assert_eq!(rate(&tables[0], pattern, from, to), each, "{name} cut");
    }
}

#[test]
fn both_directions_of_a_pair_are_told_apart_where_the_tool_does() {
    let part =
        |part: &str, cells: &str| format!("memcpy CE GPU(row) <-> GPU(column) {part} bandwidth (GB/s)\n 0 1\n {cells}\n\nSUM x 1\n\n");
    let text = format!(
        "Running device_to_device_bidirectional_memcpy_write_ce.\n{}{}{}",
        part("Write1", "0 N/A 5.00\n 1 6.00 N/A"),
        part("Write2", "0 N/A 6.00\n 1 5.00 N/A"),
        part("Total", "0 N/A 11.00\n 1 11.00 N/A")
    );
    let (tables, ..) = told(&text);
    let names: Vec<&str> = tables.iter().map(|table| table.test.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["Write1", "Write2", "Total"]);
    for (table, there) in tables.iter().zip([6.0, 6.0, 5.5]) {
        assert_eq!(rate(table, Pattern::Duplex, 0, 1), there, "{}", table.test);
    }
}

#[test]
fn host_tests_have_one_row_and_are_labelled_rightly() {
    let text = "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: 12060\n\nnode1\n\
                Device 0: NVIDIA H20-3e (00000000:18:00)\nDevice 1: NVIDIA H20-3e (00000000:38:00)\n\n\
                Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n     0     1\n 0 55.1 44.2\n\n\
                SUM host_to_device_memcpy_ce 99.3\n\n\
                Running all_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n     0     1\n 0 25.1 24.2\n\n\
                Running device_local_copy.\nmemcpy local GPU(column) bandwidth (GB/s)\n     0     1\n 0 1100.5 1200.25\n\n\
                Running host_device_latency_sm.\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n     0     1\n 0 700 800\n\n\
                Running device_to_device_latency_sm.\nDevice to Device Latency SM GPU(row) <-> GPU(column) (ns)\n  0 1\n 0 N/A 600\n 1 650 N/A\n\n\
                NOTE: The reported results may not reflect the full capabilities of the platform.\n";
    let (tables, used, skips) = told(text);
    assert_eq!((tables.len(), skips.len()), (5, 0), "{skips:?}");
    assert_eq!(used, text.lines().count());
    assert_eq!(rate(&tables[0], Pattern::HostToDevice, 1, 1), 44.2);
    assert!(tables[0].samples[0].isolated && !tables[1].samples[0].isolated);
    assert_eq!(rate(&tables[1], Pattern::DeviceToHost, 0, 0), 25.1);
    assert_eq!(rate(&tables[2], Pattern::Local, 1, 1), 1200.25);
    assert!((tables[3].samples[1].seconds.unwrap() - 800e-9).abs() < 1e-15);
    // GPU 0 loads from GPU 1 in 600 ns: bytes go from 1 to 0.
    let load = tables[4].samples.iter().find(|sample| (sample.from, sample.to) == (1, 0)).unwrap();
    assert!((load.seconds.unwrap() - 600e-9).abs() < 1e-15);
    let end = &tables[0].ends[1];
    assert_eq!((end.host.as_deref(), end.pci.as_deref(), end.gpu), (Some("node1"), Some("00000000:38:00.0"), Some(1)));
    assert_eq!(tables[0].version.as_deref(), Some("v0.8"));
}

#[test]
fn what_was_not_measured_is_told() {
    let (tables, _, skips) = told("Running device_to_device_memcpy_read_ce.\n Invalid value when checking\nASSERT in expression x\n");
    assert!(tables.is_empty() && skips[0].contains("ASSERT"), "{skips:?}");
    let (tables, _, skips) =
        told("Running device_to_device_memcpy_read_ce.\nWaived: \nRunning multinode_bisect_write_ce.\nBisect benchmarking\n");
    assert!(tables.is_empty() && skips[0].contains("Waived") && skips[1].contains("no matrix"), "{skips:?}");
    let text =
        "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n0 0.00 N/A\n1 3.5 0.00\n";
    let (tables, ..) = told(text);
    let waived = tables[0].samples.iter().find(|sample| sample.from == 0).unwrap();
    assert_eq!((waived.status, tables[0].samples.len()), (Status::Waived, 2));
    assert!(waived.reason.as_deref().unwrap().contains("N/A"));
}

#[test]
fn json_tells_the_same_as_text() {
    let text = r#"{"nvbandwidth": {"GPU Device list": ["0: NVIDIA A100 (00000000:34:00): (n7)", "1: NVIDIA A100 (00000000:35:00): (n7)"],
        "version": "v0.8", "testcases": [
        {"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
         "bandwidth_matrix": [["N/A", "20"], ["10", "N/A"]]},
        {"name": "host_to_device_memcpy_ce", "status": "Waived"},
        {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
         "bandwidth_matrix": [["N/A", "1"], ["1", "N/A"], ["N/A", "2"], ["2", "N/A"], ["N/A", "3e+01"], ["30", "N/A"]]}]}}"#;
    let mut skips = Skips::default();
    let tables = json(&serde_json::from_str(text).unwrap(), &mut skips).unwrap();
    assert_eq!(tables.len(), 2);
    assert_eq!((rate(&tables[0], Pattern::Peer, 0, 1), rate(&tables[0], Pattern::Peer, 1, 0)), (10.0, 20.0));
    assert_eq!(rate(&tables[1], Pattern::Duplex, 0, 1), 15.0);
    assert_eq!((tables[0].ends[1].host.as_deref(), tables[0].ends[1].pci.as_deref()), (Some("n7"), Some("00000000:35:00.0")));
    let skips: Vec<String> = skips.sorted().into_iter().map(|skipped| skipped.reason).collect();
    assert!(skips[0].contains("Waived"), "{skips:?}");
}
