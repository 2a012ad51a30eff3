//! Sessions that other tools measured, on the screen.

use super::findings::{Seen, Told};
use super::fixture::{app, frame, text};
use super::{App, Mode, Tab};
use crate::diagnose::Diagnosis;
use crate::import::measured::{Source, build, tables};
use crate::ramp::Level;

fn opened(output: &str, tab: Tab) -> App {
    let source = Source { file: "f.txt".to_owned(), tables: tables(output, "f.txt").unwrap() };
    let built = build("x", &[source], Vec::new(), &[], &[]).unwrap();
    app((built.header, built.records), tab, Level::TrueColor, Mode::Recorded)
}

fn shown(output: &str, tab: Tab) -> String {
    text(&frame(&mut opened(output, tab), 200, 56))
}

/// The Findings tab once they are there: none, of pairs with one number each.
fn looked_at(output: &str) -> String {
    let mut app = opened(output, Tab::Findings);
    let seen = Seen { pairs: 6, unsure: 6, sizes: 1, bytes: 512 << 20, ..Seen::default() };
    app.desk.hold(Some(Told::with(Diagnosis::default(), seen, |_| &[])));
    text(&frame(&mut app, 200, 56))
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
    let findings = looked_at(READ);
    assert!(findings.contains("nothing stands out") && !findings.contains("repeats"), "{findings}");
}

#[test]
fn what_all_ranks_did_together_is_told_where_pairs_would_be() {
    let output = "# Collective test starting: all_reduce_perf\n#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n \
                  8 2 float sum -1 17.9 0 0 0 17 0 0 0\n";
    let words = "nccl-tests all_reduce: 1 size of all ranks together";
    for screen in [shown(output, Tab::Matrix), looked_at(output)] {
        assert!(screen.contains(&format!("no pair was measured: {words}")), "{screen}");
        assert!(!screen.contains("start a sweep"), "{screen}");
    }
    let session = shown(output, Tab::Session);
    assert!(session.contains("17.9 µs, 17.0 µs in place"), "{session}");
}
