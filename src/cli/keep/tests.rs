use super::*;
use crate::export::svg::{Canvas, Glyph};
use crate::ramp::Rgb;
use crate::session::{Header, Model};
use crate::topology::{Placement, Topology};

fn picture(session: &str) -> Keep {
    let cells = vec![Glyph { symbol: "█".to_owned(), ..Glyph::default() }; 4];
    let canvas = Canvas { width: 2, height: 2, cells, background: Rgb(0, 0, 0), foreground: Rgb(200, 100, 50) };
    Keep::Picture { session: session.to_owned(), of: "matrix".to_owned(), canvas }
}

fn report() -> Keep {
    let rank = |rank| Placement { rank, host: "a".to_owned(), ..Placement::default() };
    let model = Model::new(Header {
        format: Header::current_format(),
        program: "0".to_owned(),
        name: "lab".to_owned(),
        started: String::new(),
        engine: crate::sample::EngineKind::Threads,
        group: Vec::new(),
        settings: crate::sweep::SweepSettings::default(),
        topology: Topology::of((0..2).map(rank).collect()),
        software: std::collections::BTreeMap::new(),
        environment: std::collections::BTreeMap::new(),
    });
    Keep::Report { model: Arc::new(model) }
}

#[test]
fn pictures_and_reports_are_written_beside_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let here = [folder.path().to_owned()];
    let said = keep_it(&here, &picture("lab"), &Efficiency::default()).unwrap();
    assert_eq!(said, format!("wrote lab-matrix-1.svg and .png in {}", folder.path().display()));
    keep_it(&here, &picture("lab"), &Efficiency::default()).unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("lab-matrix-2.svg").starts_with(b"<svg") && read("lab-matrix-2.png").starts_with(b"\x89PNG\r\n"));
    assert!(keep_it(&here, &report(), &Efficiency::default()).unwrap().starts_with("wrote lab-report-1.html and .md"));
    assert!(read("lab-report-1.html").starts_with(b"<!DOCTYPE html>") && read("lab-report-1.md").starts_with(b"# toposcope"));
}

#[test]
fn a_folder_that_takes_nothing_is_passed_over_and_the_first_reason_told() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    let said = keep_it(&[none.clone(), folder.path().to_owned()], &picture("lab"), &Efficiency::default()).unwrap();
    assert!(said.ends_with(&folder.path().display().to_string()), "{said}");
    let refused = keep_it(&[none.clone(), none.join("below")], &picture("lab"), &Efficiency::default()).unwrap_err();
    assert!(refused.to_string().contains("none/lab-matrix-1.svg"), "{refused}");
}

#[test]
fn of_what_cannot_be_written_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let files = new_files(folder.path(), "lab", ["svg", "png"]).unwrap();
    let full = |[image, _]: &[PathBuf; 2]| write_bytes(image, b"whole").and(Err(ExportError::Nothing));
    both(&files, full).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_was_asked_for_is_written_and_told_although_the_screen_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let writer = Writer::start(Efficiency::default(), Some(Arc::clone(&gate)), std::env::temp_dir()).unwrap();
    let mut keeper = writer.keeper();
    let session = folder.path().file_name().unwrap().to_string_lossy().trim_start_matches('.').to_owned();
    keeper.keep(picture(&session));
    let said = loop {
        if let Some(told) = keeper.told() {
            break told.unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let made = std::env::current_dir().unwrap().join(format!("{session}-matrix-1.svg"));
    assert!(said.contains(&format!("{session}-matrix-1.svg")), "{said}");
    keeper.keep(picture(&session));
    drop(keeper);
    let last = std::cell::RefCell::new(Vec::new());
    writer.end(|line| last.borrow_mut().push(line.to_owned()));
    let last = last.into_inner();
    assert!(last.last().is_some_and(|line| line.contains(&format!("{session}-matrix-2.svg"))), "{last:?}");
    for number in [1, 2] {
        for end in ["svg", "png"] {
            std::fs::remove_file(made.with_file_name(format!("{session}-matrix-{number}.{end}"))).unwrap();
        }
    }
}

#[test]
fn a_key_that_is_held_down_asks_for_no_more_than_is_waited_for() {
    let (work, wanted) = channel::<Keep>();
    let mut desk = Desk { work, state: Arc::default() };
    for _ in 0..100 {
        desk.keep(picture("lab"));
    }
    // The report has its own bound.
    desk.keep(report());
    desk.keep(report());
    drop(desk.work);
    assert_eq!(wanted.iter().count(), MOST_OPEN + 1);
    let told: Vec<_> = std::mem::take(&mut lock(&desk.state).told).into();
    assert_eq!(told, ["8 files are being written: wait for one", "a report is being written: wait for it"].map(|why| Err(why.to_owned())));
}
