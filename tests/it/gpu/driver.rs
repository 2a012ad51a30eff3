//! The stand-in for CUDA's driver is as the driver in what the program relies on, and tells who breaks the rules.

use std::path::Path;

use super::super::nvml::boxes;
use super::cases::{command, ended, run};
use super::stand_in::{ALSO, told, without};

/// Lines of violations, without numbers.
fn kinds(violations: &[String]) -> Vec<String> {
    let plain = |text: &String| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    violations.iter().map(plain).collect()
}

#[test]
fn work_behind_a_gate_waits_and_its_time_begins_at_the_gate() {
    let told = run("gate", &[(ALSO, "cuda.rate.local = 0.1")]);
    assert_eq!(told.violations, Vec::<String>::new());
    let moved = told.moved["gpu0->gpu0"];
    assert_eq!((moved.count, moved.bytes), (1, 1 << 20));
    assert_eq!(told.calls("cuEventRecord"), 2);
}

#[test]
fn the_default_stream_and_pageable_memory_are_as_with_the_driver() {
    assert_eq!(run("order of streams", &[]).violations, Vec::<String>::new());
    assert_eq!(run("pageable", &[]).violations, Vec::<String>::new());
}

#[test]
fn a_stream_has_room_for_so_much_work() {
    assert_eq!(run("full", &[]).violations, Vec::<String>::new());
}

#[test]
fn memory_of_another_process_is_read_and_written() {
    let told = run("owner", &[("TOPOSCOPE_TEST_TOLD", "waits")]);
    assert_eq!((told.processes, told.violations), (2, Vec::new()));
    assert_eq!((told.calls["cuIpcOpenMemHandle_v2"].count, told.calls["cuIpcOpenMemHandle_v2"].failed), (4, 2));
}

#[test]
fn memory_that_is_freed_while_another_process_has_it_open_is_told_by_both() {
    let told = run("owner", &[("TOPOSCOPE_TEST_TOLD", "frees too early")]);
    let mut kinds = kinds(&told.violations);
    kinds.sort();
    assert_eq!(
        kinds,
        [" bytes were freed by their owner before cuIpcCloseMemHandle", "cuMemFree_v of  bytes which process(es) [] have open"]
    );
}

#[test]
fn each_broken_rule_is_told() {
    let told = run("broken rules", &[]);
    let expected = [
        "cuMemFree_v of  bytes which  piece(s) of streams' work have still to touch",
        " bytes at x: no memory of a device, or freed",
        "cuMemFree_v of x, which is no allocation, or was freed",
        " bytes from byte  of an allocation of ",
        "cuEventQuery of an event that was never recorded",
        "cuEventElapsedTime of an event that was made without times",
        "event x is none, or was destroyed",
        "cuMemGetInfo_v within a function that a stream calls",
        "leak:  of device memory when the context of device  was destroyed",
    ];
    let said: Vec<String> = told.violations.iter().map(|text| hexless(text)).collect();
    assert_eq!(kinds(&said), expected);
}

/// A text without addresses.
fn hexless(text: &str) -> String {
    let word = |word: &str| {
        if word.starts_with("0x") {
            "0x".to_owned()
                + if word.ends_with(':') {
                    ":"
                } else if word.ends_with(',') {
                    ","
                } else {
                    ""
                }
        } else {
            word.to_owned()
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn devices(set: &[(&str, &str)]) -> Vec<String> {
    let report = tempfile::tempdir().unwrap();
    let said = ended(command("devices", report.path()).envs(set.iter().copied()).spawn().unwrap());
    said.lines().filter_map(|line| line.split_once("device ").filter(|_| line.contains("0000")).map(|(_, rest)| rest.to_owned())).collect()
}

#[test]
fn devices_are_those_of_the_box_as_nvml_tells_them_too() {
    let file = boxes::file("nvlink-pairs");
    let served = (boxes::SERVED, file.to_str().unwrap());
    let told = devices(&[served]);
    assert_eq!(
        told,
        [
            "0 0000:18:00.0 00000000000000000000000000000000 48 0111",
            "1 0000:66:00.0 00000001000000000000000000000000 48 1011",
            "2 0000:A3:00.0 00000002000000000000000000000000 48 1101",
            "3 0000:E2:00.0 00000003000000000000000000000000 48 1110",
        ]
    );
    let seen = boxes::seen(&file, true);
    for (gpu, line) in seen.gpus.iter().zip(&told) {
        let uuid: String = gpu.uuid.as_deref().unwrap().trim_start_matches("GPU-").replace('-', "");
        assert_eq!(line.split(' ').nth(2), Some(uuid.as_str()));
    }
    // Some of them, by number and by name; CUDA's own order and that of the addresses.
    let order = (ALSO, "cuda.order = [2, 3, 0, 1]");
    let addresses = |set: &[(&str, &str)]| devices(set).iter().map(|line| line[7..9].to_owned()).collect::<Vec<_>>();
    assert_eq!(addresses(&[served, ("CUDA_VISIBLE_DEVICES", "3,1")]), ["E2", "66"]);
    assert_eq!(addresses(&[served, ("CUDA_VISIBLE_DEVICES", "GPU-00000002,0")]), ["A3", "18"]);
    assert_eq!(addresses(&[served, ("CUDA_VISIBLE_DEVICES", "1,-1,2")]), ["66"]);
    assert_eq!(addresses(&[served, order]), ["A3", "E2", "18", "66"]);
    assert_eq!(addresses(&[served, order, ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")]), ["18", "66", "A3", "E2"]);
}

#[test]
fn what_a_box_or_a_rank_lacks_is_absent() {
    let none = devices(&[(ALSO, "cuda.p2p = false")]);
    assert!(none.iter().all(|line| line.ends_with(" 0000")), "{none:?}");
    let hidden = "[[cuda.hidden]]\ngpus = \"3\"\nranks = \"1\"";
    let count = |rank: &str| devices(&[(ALSO, hidden), ("OMPI_COMM_WORLD_RANK", rank)]).len();
    assert_eq!((count("0"), count("1")), (4, 3));
    let report = tempfile::tempdir().unwrap();
    let said = ended(command("count", report.path()).env("CUDA_VISIBLE_DEVICES", "").spawn().unwrap());
    assert!(said.contains("Err(CUDA_ERROR_NO_DEVICE)"), "{said}");
}

#[test]
fn calls_fail_as_they_are_told_to() {
    let allocated = |also: &str| {
        let report = tempfile::tempdir().unwrap();
        let said = ended(command("allocate", report.path()).env(ALSO, also).spawn().unwrap());
        assert_eq!(told(report.path(), "cuda").violations, Vec::<String>::new());
        said.lines().find_map(|line| line.find('[').map(|at| line[at..].to_owned())).unwrap()
    };
    let fails = |what: &str| format!("[[cuda.fail]]\ncall = \"cuMemAlloc_v2\"\nerror = \"CUDA_ERROR_OUT_OF_MEMORY\"\n{what}");
    assert_eq!(allocated("cuda.memory = 2097152"), "[Ok(()), Ok(()), Err(CUDA_ERROR_OUT_OF_MEMORY)]");
    assert_eq!(allocated(&fails("after = 1")), "[Ok(()), Err(CUDA_ERROR_OUT_OF_MEMORY), Err(CUDA_ERROR_OUT_OF_MEMORY)]");
    assert_eq!(allocated(&fails("after = 1\ntimes = 1")), "[Ok(()), Err(CUDA_ERROR_OUT_OF_MEMORY), Ok(())]");
    assert_eq!(allocated(&fails("ranks = \"2\"")), "[Ok(()), Ok(()), Ok(())]");
}

#[test]
fn errors_of_a_device_stay_and_may_come_late() {
    let stays = "[[cuda.fail]]\ncall = \"cuMemsetD8_v2\"\nerror = \"CUDA_ERROR_ECC_UNCORRECTABLE\"\nafter = 1\nsticky = true";
    assert_eq!(run("sticky", &[(ALSO, stays)]).calls["cuMemFree_v2"].failed, 1);
    let late = "[[cuda.fail]]\ncall = \"cuMemcpyDtoDAsync_v2\"\nerror = \"CUDA_ERROR_ILLEGAL_ADDRESS\"\nlate = true";
    assert_eq!(run("late", &[(ALSO, late)]).calls["cuMemcpyDtoDAsync_v2"].failed, 0);
}

#[test]
fn an_older_driver_lacks_functions() {
    let folder = without(&["cuda"], &["cuStreamWaitValue32_v2"]);
    let path: &Path = folder.path();
    run("no wait", &[("LD_LIBRARY_PATH", path.to_str().unwrap())]);
}
