use super::*;
use crate::import::text::lines;

fn told(text: &str) -> (Vec<Table>, usize) {
    read(&lines(text), &mut Skips::default()).unwrap()
}

const RANKS: &str = "# Using devices\n#  Rank  0 Group  0 Pid 1 on node1 device  0 [0009:01:00] NVIDIA GH200\n\
                     #  Rank  1 Group  0 Pid 2 on node1 device  1 [0x31] NVIDIA GH200\n#  Rank  2 Group  0 Pid 3 on node2 device  0 [0x00] NVIDIA GH200\n#\n";
const HEAD: &str = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
                    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

#[test]
fn sendrecv_is_a_ring_of_the_time_told() {
    let text = format!(
        "# nccl-tests version 2.18.2 nccl-headers=23007\n# Collective test starting: sendrecv_perf\n# nThread 1 nGpus 1\n{RANKS}{HEAD}\
           1048576  262144  float  sum  -1  339.61  3.09  3.09  0  335.85  3.12  3.12  N/A\n# Out of bounds values : 0 OK\n\
         # Avg bus bandwidth    : 3\n#\n# Collective test concluded: sendrecv_perf\nrest\n"
    );
    let (tables, used) = told(&text);
    let table = &tables[0];
    assert_eq!((table.test.as_str(), table.version.as_deref(), used), ("sendrecv", Some("2.18.2"), text.lines().count() - 1));
    let flows: Vec<(usize, usize)> = table.samples.iter().map(|sample| (sample.from, sample.to)).collect();
    assert_eq!(flows, [(0, 1), (1, 2), (2, 0)]);
    let ring = &table.samples[1];
    assert_eq!((ring.pattern, ring.shift, ring.seconds), (Pattern::Relay, Some(1), Some(339.61 * 1e-6)));
    assert_eq!((ring.receive_path, ring.path), (Some(PathClass::IntraNode), PathClass::InterNode));
    let pci: Vec<Option<&str>> = table.ends.iter().map(|end| end.pci.as_deref()).collect();
    assert_eq!(pci, [Some("0009:01:00.0"), Some("0000:31:00.0"), None]);
}

#[test]
fn other_operations_have_no_cell_and_keep_their_numbers() {
    let text = format!(
        "$ srun -N2 ./all_reduce_perf -b 8\n# nThread 1\n{RANKS}{HEAD} 33554432 8388608 float sum -1 25.70 1305.8 2.50 0 0.19 175724 0.00 0\n"
    );
    let (tables, _) = told(&text);
    assert_eq!((tables[0].test.as_str(), tables[0].samples.len(), tables[0].ends.len()), ("all_reduce", 0, 3));
    let collective = &tables[0].collectives[0];
    assert_eq!((collective.bytes, collective.bus_bandwidth), (33_554_432, Some(2.5e9)));
    assert!((collective.seconds - 25.7e-6).abs() < 1e-12);
}

#[test]
fn old_layouts_runs_one_after_another_and_untold_names_are_read() {
    let old = "# nThread 1 nGpus 8\n#\n#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n\
               h:1:1 [0] NCCL INFO Launch mode Parallel\n  32  1  float  35.03  0.00  0.00  N/A  34.15  0.00  0.00  N/A\n";
    let text = format!("{old}# Avg bus bandwidth : 1\n#\n{old}");
    let (first, used) = told(&text);
    assert_eq!(first[0].collectives.len(), 1);
    let rest: Vec<_> = lines(&text).split_off(used);
    let (second, _) = read(&rest, &mut Skips::default()).unwrap();
    assert_eq!((second.len(), second[0].line), (1, 8));
    let ring = format!("# nThread 1\n{RANKS}{HEAD} 256 64 float sum -1 34.24 0.01 0.01 0 33.65 0.01 0.01 N/A\n");
    let (tables, _) = told(&ring);
    assert_eq!((tables[0].test.as_str(), tables[0].samples.len()), ("sendrecv", 3));
    assert!(tables[0].notes.iter().any(|note| note.contains("taken for sendrecv")));
}

#[test]
fn json_is_read_with_its_strings_for_numbers() {
    let text = r#"{"version": 1, "args": ["/opt/build/sendrecv_perf", "-b", "8"], "nccl_version": 23007,
        "config": {"nthreads": 1, "minimum_bytes": 8, "blocking_collectives": "false", "devices": [
          {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0, "device_hex": "0009:01:00", "device_info": "X"},
          {"rank": 1, "group": 0, "pid": 1, "hostname": "b", "device": 0, "device_hex": "0009:01:00", "device_info": "X"}]},
        "results": [{"size": 1024, "out_of_place": {"time": 10.5, "alg_bw": 1, "bus_bw": "nan", "nwrong": 3}, "in_place": {"time": "12"}},
                    {"size": 2048, "out_of_place": null, "in_place": {"time": 11}}, {"size": 4}]}"#;
    let mut skips = Skips::default();
    let tables = json(&serde_json::from_str(text).unwrap(), &mut skips).unwrap();
    assert_eq!((tables[0].samples.len(), tables[0].collectives.len()), (4, 2));
    assert_eq!(tables[0].samples[0].status, Status::Corrupt);
    assert_eq!(tables[0].collectives[0].bus_bandwidth, None);
    assert_eq!(skips.sorted().len(), 1);
}
