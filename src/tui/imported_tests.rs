//! Sessions that other tools measured, on the screen.

use super::fixture::{app, frame, text};
use super::{Mode, Tab};
use crate::import::measured::{Source, build, tables};
use crate::ramp::Level;

fn shown(output: &str, tab: Tab) -> String {
    let source = Source { file: "f.txt".to_owned(), tables: tables(output, "f.txt").unwrap() };
    let built = build("x", &[source], Vec::new(), &[], &[]).unwrap();
    text(&frame(&mut app((built.header, built.records), tab, Level::TrueColor, Mode::Recorded), 200, 56))
}

const READ: &str = "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1 2\n \
                    0 N/A 20 21\n 1 10 N/A 22\n 2 11 12 N/A\n";

#[test]
fn the_matrix_and_the_session_tab_tell_whose_numbers_they_are() {
    let matrix = shown(READ, Tab::Matrix);
    for words in ["nvbandwidth device_to_device_memcpy_read_ce", "size not told", "printed in GB/s, column sends"] {
        assert!(matrix.contains(words), "{words}\n{matrix}");
    }
    let session = shown(READ, Tab::Session);
    for words in ["imported", "f.txt:2", "6 samples", "the heading's arrow", "the tool's default"] {
        assert!(session.contains(words), "{words}\n{session}");
    }
    assert!(!session.contains("seed"), "{session}");
    let findings = shown(READ, Tab::Findings);
    assert!(!findings.contains("repeats"), "{findings}");
}

#[test]
fn what_all_ranks_did_together_is_told_where_pairs_would_be() {
    let output = "# Collective test starting: all_reduce_perf\n#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n \
                  8 2 float sum -1 17.9 0 0 0 17 0 0 0\n";
    let words = "nccl-tests all_reduce: 1 size of all ranks together";
    for tab in [Tab::Matrix, Tab::Findings] {
        let screen = shown(output, tab);
        assert!(screen.contains(&format!("no pair was measured: {words}")), "{screen}");
        assert!(!screen.contains("start a sweep"), "{screen}");
    }
    let session = shown(output, Tab::Session);
    assert!(session.contains("8 B       17.9 µs, 17.0 µs in place"), "{session}");
}
