use std::fmt::Write as _;

use super::super::table::weight;
use super::*;

/// Bytes of memory of what was kept, about.
fn kept(tables: &[Table]) -> usize {
    tables.iter().map(|table| table.weight() + table.samples.iter().map(weight).sum::<usize>()).sum()
}

/// Texts of which a few bytes ask for much, each about `bytes` long.
fn tricks(bytes: usize) -> Vec<(&'static str, String)> {
    let many = |start: &str, more: &str| format!("{start}{}", more.repeat(bytes.saturating_sub(start.len()) / more.len()));
    let numbers = |n: usize| (0..n).map(|at| at.to_string()).collect::<Vec<_>>().join(" ");
    let wide = "x".repeat(160);
    let mut listed = "nvloom_cli 1.3.0\n".to_owned();
    for at in 0..bytes / 500 {
        writeln!(listed, "Process {at} ({wide}): device 0: {wide} (00000008:01:00); rackGuid: r").unwrap();
    }
    let mut devices = String::new();
    for at in 0..bytes / 1000 {
        writeln!(devices, "Device: {at}, {wide}, pciBusID: 3b, pciDeviceID: 0, pciDomainID:0").unwrap();
    }
    let header = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n 8 2 float sum -1 17.9 0 0 0 17 0 0 0\n";
    let rank = "#  Rank  16383 Group  0 Pid 1 on a device  0 [0009:01:00] X\n";
    let mut ring = "# Collective test starting: sendrecv_perf\n".to_owned();
    for at in 0..bytes / 100 {
        writeln!(ring, "#  Rank  {at} Group  0 Pid 1 on a device  0 [0009:01:00] X").unwrap();
    }
    let fan = format!(
        "Running all_to_one_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n {0}\n 0 {1}\n",
        numbers(128),
        "5.5 ".repeat(128)
    );
    let waived = fan.replace("5.5 ", "x ");
    let document = r#"{"world": 16384, "samples": [{"pattern": "peer", "from_process": 0, "to_process": 1, "bytes": 8, "seconds": 1e-5}]}"#;
    let far = r#"{"samples": [{"pattern": "peer", "from_process": 0, "to_process": 16383, "bytes": 8, "seconds": 1e-5}]}"#;
    let results = r#"{"config": {"nthreads": 1, "devices": [{"rank": 16383, "hostname": "a", "device": 0, "device_hex": "0009:01:00"}]}, "results": [{"size": 8, "out_of_place": {"time": 1}}]}"#;
    let tests = r#"{"name": "all_to_one_write_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)", "bandwidth_matrix": [["#;
    let tests = format!("{tests}{}]]}}", vec!["5"; 128].join(","));
    let csv = "measurement_id, bandwidth/latency, gpu_src_id, gpu_dst_id, iteration_count, mem_src_type, mem_dst_type, write/read, ce/sm/multicast, buffer_size, comment, result\n";
    let p2p = format!("Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D {}\n 1 {}\n", numbers(300), "5 ".repeat(300));
    vec![
        ("nvloom, matrices", many(&listed, "Running device_to_device_unidir_write_ce\n\t0\n1\t5\nMin a\n")),
        ("nvloom, far ends", many("", "Running device_to_device_unidir_write_ce\n\t0\t250\n0\tN/A\t1\nMin a\n")),
        ("nvloom, CSV", many(&listed, &format!("{csv}0, bandwidth, 0, 3, 16, device, device, write, ce, 1048576, c, 10.5\n"))),
        ("nvloom, cells", many("Running device_to_device_unidir_write_ce\n\t0\t1\n", "0\t1\t0\n")),
        ("p2p", many(&devices, &p2p)),
        ("nccl-tests", many("", &format!("{rank}{header}# Collective test concluded\n"))),
        ("nccl-tests, a ring", many(&format!("{ring}{header}"), " 8 2 float sum -1 17.9 0 0 0 17 0 0 0\n")),
        ("nccl-tests, JSON", many("", results)),
        ("DeepSpeed", many("", document)),
        ("DeepSpeed, far processes", many("", far)),
        ("nvbandwidth, fans", many("", &fan)),
        ("nvbandwidth, fans without numbers", many("", &waived)),
        ("nvbandwidth, JSON", format!(r#"{{"nvbandwidth": {{"testcases": [{}]}}}}"#, vec![tests.as_str(); bytes / tests.len()].join(","))),
        (
            "nvbandwidth, cells",
            format!(
                "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n{}\n{}",
                numbers(300),
                (0..300).map(|at| format!("{at} {}", "x ".repeat(299) + "1")).collect::<Vec<_>>().join("\n")
            ),
        ),
        (
            "rocm_bandwidth_test",
            many(
                &format!("RocmBandwidthTest Version: 2.6.0\nDevice: 0, {wide}, {wide}, {wide}\nUnidirectional copy peak bandwidth GB/s\n"),
                "D/D 0\n0 1\n",
            ),
        ),
        (
            "TransferBench",
            many(&format!("TransferBench v{wide}\nUnidirectional copy peak bandwidth GB/s [{wide}]\n"), "SRC\\DST CPU 0\nCPU 0 -> 5\n"),
        ),
        ("mpiGraph", many("", "Send a:0 b:1\na:0 to 1 1\n")),
        ("OSU", many("# OSU MPI Bandwidth Test v7\n", "# Size      Bandwidth (MB/s)\n1 1\n")),
        ("IMB", many("# Benchmarking PingPong\n", "#bytes #repetitions t[usec] Mbytes/sec\n1 1 1 1\n")),
        ("perftest", many("", "Send BW Test\n#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n8 1 1 1 1\n")),
        ("ucx_perftest", many("| API: x |\n| Test: x |\n(usec) bandwidth (MB/s)\n", "1 1 1 1 1 1 1 1\n")),
    ]
}

#[test]
fn a_short_file_asks_for_no_gigabytes() {
    for (name, text) in tricks(300_000) {
        let found = told(&text, "f");
        let kept = found.as_ref().map_or(0, |told| kept(&told.tables));
        println!("{name}: {} bytes, {kept} kept, {} skips", text.len(), found.as_ref().map_or(0, |told| told.skipped.len()));
        assert!(kept <= room(text.len()), "{name}: {kept} bytes of {}", text.len());
        assert!(found.is_ok() || name.contains("without"), "{name}: {found:?}");
    }
    for name in ["nvloom, matrices", "nccl-tests", "DeepSpeed", "nvbandwidth, fans", "nccl-tests, a ring", "nccl-tests, JSON"] {
        let (_, text) = tricks(300_000).into_iter().find(|(own, _)| *own == name).unwrap();
        let told = told(&text, "f").unwrap();
        assert!(told.skipped.iter().any(|skipped| skipped.reason.contains("so long a file")), "{name}: {:?}", told.skipped);
    }
}

#[test]
fn four_thousand_ranks_are_read() {
    let mut text = String::new();
    for _ in 0..20 {
        text.push_str("# nThread 1 nGpus 1\n# Collective test starting: all_reduce_perf\n");
        for rank in 0..4096 {
            writeln!(text, "#  Rank  {rank} Group  0 Pid 15784 on node{} device  {} [0009:01:00] NVIDIA GH200 120GB", rank / 4, rank % 4)
                .unwrap();
        }
        text.push_str(
            "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n 8 2 float sum -1 17.9 0 0 0 17 0 0 0\n",
        );
        text.push_str("# Collective test concluded\n");
    }
    let told = told(&text, "f").unwrap();
    assert_eq!((told.tables.len(), told.tables[19].ends.len(), told.skipped.len()), (20, 4096, 0));
}

const RUN: &str = r#"{"nvbandwidth": {"version": "v0.8", "testcases": [
  {"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
   "bandwidth_matrix": [["N/A", "20"],
["10", "N/A"]]}]}}
"#;

#[test]
fn tags_of_launchers_before_json_are_no_json() {
    let text = format!("[node1:12345] warning: no cuda\n[node1] {{}}\n[1,0] x\n{RUN}");
    let found = told(&text, "f").unwrap();
    assert_eq!((found.tables.len(), found.skipped), (1, Vec::new()));
}

#[test]
fn json_that_is_cut_behind_other_json_is_told() {
    let cut = &RUN[..RUN.len() - 5];
    let found = told(&format!("{RUN}bye\n{cut}"), "f").unwrap();
    assert_eq!(found.tables.len(), 1);
    assert_eq!(found.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [6], "{:?}", found.skipped);
    // And what follows one that is damaged is read all the same.
    let found = told(&format!("{}{RUN}", RUN.replacen("20", "2\"0", 1)), "f").unwrap();
    assert_eq!((found.tables.len(), found.skipped[0].line), (1, 1));
    let alone = told(cut, "f").unwrap_err().to_string();
    assert!(alone.starts_with("f:1: ") && alone.contains("cut"), "{alone}");
}

#[test]
fn text_that_only_begins_like_json_is_read_in_linear_time() {
    let begun = std::time::Instant::now();
    for text in ["[\n".repeat(200_000), "[[1],\n".repeat(200_000), "{\"a\":\n".repeat(200_000), "[1, 2\n".repeat(200_000)] {
        assert!(told(&text, "f").is_err());
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}
