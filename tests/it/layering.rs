//! The house rules of src/lib.rs, checked in the sources: a single crate rots into cycles otherwise.

mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Source, Use};

/// Every room of the design, those to come included, and its floor.
const FLOORS: [(&str, u8); 22] = [
    ("units", 0),
    ("topology", 0),
    ("sample", 0),
    ("discover", 1),
    ("fabric", 1),
    ("sweep", 1),
    ("matrix", 1),
    ("ramp", 1),
    ("fit", 2),
    ("transport", 2),
    ("diagnose", 3),
    ("plan", 3),
    ("session", 4),
    ("launch", 5),
    ("measure", 5),
    ("import", 5),
    ("export", 5),
    ("tui", 6),
    ("config", 7),
    ("cli", 7),
    ("main", 7),
    ("lib", 7),
];

/// Within a floor, only these, and never back: a sample names its path; the command line knows everything.
const SAME_FLOOR: [(&str, &str); 4] = [("sample", "topology"), ("cli", "config"), ("main", "cli"), ("main", "config")];

/// Rooms without any I/O.
const PURE: [&str; 10] = ["fit", "plan", "diagnose", "sweep", "matrix", "fabric", "ramp", "units", "topology", "sample"];

const LONGEST_FILE: usize = 600;

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|&(_, floor)| floor)
}

/// What is wrong with one source, as `path:line: what`.
fn faults(path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text);
    let mut faults = Vec::new();
    let mut say = |line: usize, what: String| faults.push(format!("{path}:{line}: {what}"));
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        say(lines, format!("{lines} lines; split it, {LONGEST_FILE} at most"));
    }
    let room = source.room.as_str();
    let Some(own) = floor(room) else {
        say(1, format!("room {room} has no floor; add it to FLOORS and to design.md's table"));
        return faults;
    };
    for Use { line, path } in source.uses() {
        if let Some(other) = path.strip_prefix("crate::").and_then(|rest| rest.split("::").next()).filter(|other| *other != room)
            && let Some(theirs) = floor(other)
        {
            if theirs > own {
                say(line, format!("{room} (floor {own}) imports {other} (floor {theirs}): only lower floors"));
            } else if theirs == own && !SAME_FLOOR.contains(&(room, other)) {
                say(line, format!("{room} imports {other}, both on floor {own}: only lower floors"));
            }
        }
        let first = path.split("::").next().unwrap_or_default();
        let events = room == "launch" && (path == "crossterm::event" || path.starts_with("crossterm::event::"));
        if own < 6 && matches!(first, "ratatui" | "crossterm") && !events {
            say(line, format!("{room} (floor {own}) mentions {path}: only tui draws"));
        }
        let second = path.splitn(3, "::").take(2).collect::<Vec<_>>().join("::");
        if PURE.contains(&room) && matches!(second.as_str(), "std::fs" | "std::net" | "std::process" | "std::env") {
            say(line, format!("{room} does no I/O, but mentions {second}"));
        }
    }
    for (line, what) in source.forbidden() {
        if what == "unsafe" {
            if room != "transport" {
                say(line, "unsafe: only movers and engines in src/transport may call C".to_owned());
            }
        } else {
            say(line, format!("{what} outside tests: return an error that says what, where and what to do"));
        }
    }
    faults
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn files_below(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&root.join(folder), &mut files);
    files.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Where the modules lie that only tests have (`#[cfg(test)] mod NAME;`): `src/room/NAME.rs` and `src/room/NAME/`.
fn test_modules(files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        let folder = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            let name = if line == "#[cfg(test)]" { lines.next() } else { None };
            let name = name
                .and_then(|line| line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
            found.extend(name.into_iter().flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]));
        }
    }
    found
}

#[test]
fn only_modules_behind_cfg_test_are_tests() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [file("src/tui/mod.rs", "#[cfg(test)]\nmod tests;\nmod draw;"), file("src/tui/draw.rs", "#[cfg(test)]\npub mod made;")];
    let found = ["src/tui/tests.rs", "src/tui/tests/", "src/tui/draw/made.rs", "src/tui/draw/made/"];
    assert_eq!(test_modules(&files), found);
}

/// Sources that no other one declares as its module: nobody compiles them.
fn orphans(files: &[(String, String)]) -> Vec<&str> {
    let declared = |path: &str| {
        let inner = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        let Some((folder, name)) = inner.rsplit_once('/') else { return false };
        let parents = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].map(|end| format!("{folder}{end}"));
        let line = format!("mod {name};");
        files.iter().any(|(parent, text)| parents.contains(parent) && text.lines().any(|own| own.trim().ends_with(&line)))
    };
    let is_root = |path: &str| ["/lib.rs", "/main.rs"].iter().any(|end| path.ends_with(end));
    files.iter().map(|(path, _)| path.as_str()).filter(|path| !is_root(path) && !declared(path)).collect()
}

#[test]
fn a_file_that_no_module_names_is_an_orphan() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("tests/it/main.rs", "#[cfg(test)]\nmod gpu;\nmod place;"),
        file("tests/it/gpu/mod.rs", "pub mod nccl;"),
        file("tests/it/gpu/nccl.rs", ""),
        file("tests/it/gpu/scripts.rs", ""),
        file("tests/it/place.rs", "mod mpi;"),
        file("tests/it/place/mpi.rs", ""),
    ];
    assert_eq!(orphans(&files), ["tests/it/gpu/scripts.rs"]);
}

#[test]
fn every_source_is_compiled() {
    for folder in ["src", "tests", "examples"] {
        assert_eq!(orphans(&files_below(folder)), [""; 0], "name them with mod, or remove them");
    }
}

#[test]
fn the_house_is_in_order() {
    let files = files_below("src");
    assert!(files.len() > 20, "{}", files.len());
    let tests = test_modules(&files);
    let outside = files.iter().filter(|(path, _)| !tests.iter().any(|test| path.starts_with(test.as_str())));
    let faults: Vec<String> = outside.flat_map(|(path, text)| faults(path, text)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn tests_and_benches_stay_short_too() {
    for (path, text) in files_below("tests").into_iter().chain(files_below("benches")) {
        assert!(text.lines().count() <= LONGEST_FILE, "{path}");
    }
}

#[test]
fn the_exceptions_within_a_floor_make_no_cycle() {
    let pairs: BTreeSet<_> = SAME_FLOOR.into_iter().collect();
    for (from, to) in SAME_FLOOR {
        assert_eq!(floor(from), floor(to));
        assert!(!pairs.contains(&(to, from)));
        // Rank within the floor: the exceptions all point from a later room of FLOORS to an earlier one.
        let place = |room| FLOORS.iter().position(|(name, _)| *name == room).unwrap();
        assert!(place(from) > place(to), "{from} -> {to}");
    }
}

/// The faults of a snippet in a file, without the path.
fn told(path: &str, text: &str) -> Vec<String> {
    faults(path, text).into_iter().map(|fault| fault.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn imports_from_above_are_found_however_they_are_written() {
    let upwards = [
        ("src/fit/mod.rs", "use crate::session::Model;"),
        ("src/fit/mod.rs", "use crate::{units, session::{Model, Cells}};"),
        ("src/fit/mod.rs", "use crate::{\n    units::{plain, self},\n    session as s,\n};"),
        ("src/fit/mod.rs", "fn f() { let _ = crate::session::FORMAT; }"),
        ("src/fit/mod.rs", "use super::session::Model;"),
        ("src/fit/line.rs", "use super::super::session::Model;"),
        ("src/fit/line.rs", "use super::{helper, super::session};"),
        ("src/fit/deep/line.rs", "pub(crate) use super::super::super::session::Model;"),
        ("src/fit/mod.rs", "mod inner { use super::super::session::Model; }"),
        ("src/fit/mod.rs", "#[cfg(not(test))]\nuse crate::session::Model;"),
        ("src/fit/mod.rs", "use ::toposcope::session::Model;"),
        ("src/fit/mod.rs", "fn f<'a>(c: char) -> bool { c == '\"' && crate::session::x('\\'') }"),
        ("src/fit/mod.rs", "const A: &str = r#\"\"#; use crate::session::Model; const B: &str = \"\";"),
    ];
    for (path, text) in upwards {
        let told = told(path, text);
        assert!(!told.is_empty() && told.iter().all(|fault| fault.contains("session (floor 4)")), "{text}: {told:?}");
    }
    assert_eq!(told("src/fit/mod.rs", "use crate::transport::Window;"), ["fit imports transport, both on floor 2: only lower floors"]);
    assert_eq!(told("src/topology.rs", "use crate::sample::Sample;").len(), 1);
    assert_eq!(told("src/config.rs", "use crate::cli::Cli;").len(), 1);
    assert_eq!(
        faults("src/fit/mod.rs", "\n\nuse crate::tui::Ui;"),
        ["src/fit/mod.rs:3: fit (floor 2) imports tui (floor 6): only lower floors"]
    );
    assert_eq!(told("src/attic/mod.rs", ""), ["room attic has no floor; add it to FLOORS and to design.md's table"]);
}

#[test]
fn what_is_allowed_is_left_alone() {
    let allowed = [
        ("src/session/mod.rs", "use crate::{fit::median, units::plain, session::Model};"),
        ("src/fit/line.rs", "use super::median;\nmod inner { use super::x; }"),
        ("src/sample.rs", "use crate::topology::PathClass;"),
        ("src/main.rs", "fn main() { toposcope::cli::run(); }"),
        ("src/lib.rs", "pub mod tui;\npub use crate::tui::Ui;"),
        ("src/fit/mod.rs", "// use crate::session::Model;\n/* crate::tui /* nested */ crate::tui */\n/// crate::tui\n//! crate::tui"),
        ("src/fit/mod.rs", "const A: &str = \"crate::session \\\" crate::tui\"; const B: &[u8] = br##\"crate::tui \"# \"##;"),
        ("src/fit/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::session::Model;\n    fn f() { Some(1).unwrap(); panic!(); }\n}"),
        ("src/fit/mod.rs", "#[cfg(test)]\n#[allow(dead_code)]\nuse crate::session::Model;\nfn f() {}"),
        ("src/fit/mod.rs", "#[cfg(all(test, feature = \"mpi\"))]\nfn f() { panic!(\"}\") }"),
        ("src/launch/mod.rs", "use crossterm::event::{Event, KeyCode};\nuse crossterm::event;"),
        ("src/tui/mod.rs", "use ratatui::Frame;"),
        ("src/transport/mpi.rs", "fn f() { unsafe { g() } }"),
        ("src/session/store.rs", "use std::{env, fs, process};"),
        (
            "src/fit/mod.rs",
            "fn f() { x.unwrap_or(1); y.expect_err(2); std::panic::catch_unwind(g); }\n#[expect(dead_code)]\nfn unwrap() {}",
        ),
        ("src/fit/mod.rs", "use std::{collections::HashMap, fmt};"),
    ];
    for (path, text) in allowed {
        assert_eq!(told(path, text), [""; 0], "{text}");
    }
}

#[test]
fn each_other_rule_fires() {
    let broken = [
        ("src/session/model.rs", "use ratatui::style::Color;", "mentions ratatui::style::Color"),
        ("src/measure/mod.rs", "fn f() { crossterm::terminal::size(); }", "mentions crossterm::terminal::size"),
        ("src/launch/mod.rs", "use crossterm::{event::Event, terminal};", "mentions crossterm::terminal"),
        ("src/fit/mod.rs", "use std::fs::File;", "mentions std::fs"),
        ("src/sweep/plan.rs", "use std::{collections::HashMap, env::{self, var}};", "mentions std::env"),
        ("src/units/text.rs", "fn f() { ::std::process::exit(1) }", "mentions std::process"),
        ("src/ramp/mod.rs", "use std::net::{TcpStream};", "mentions std::net"),
        ("src/tui/mod.rs", "fn f() { unsafe { g() } }", "unsafe"),
        ("src/cli/mod.rs", "unsafe impl Send for X {}", "unsafe"),
        ("src/cli/mod.rs", "fn f() { x.unwrap(); }", "unwrap() outside tests"),
        ("src/cli/mod.rs", "fn f() { x\n    .expect (\"y\"); }", "expect() outside tests"),
        ("src/main.rs", "fn f() { panic!(\"x\") }", "panic! outside tests"),
        ("src/main.rs", "fn f() { std::todo!() }", "todo! outside tests"),
        ("src/main.rs", "fn f() { unimplemented!() }", "unimplemented! outside tests"),
        ("src/fit/mod.rs", "#[cfg(test)]\nmod tests { fn f() { x.unwrap(); } }\nfn f() { x.unwrap(); }", "unwrap() outside tests"),
        ("src/fit/mod.rs", "#[cfg(feature = \"test\")]\nfn f() { x.unwrap(); }", "unwrap() outside tests"),
    ];
    for (path, text, what) in broken {
        let told = told(path, text);
        assert!(told.iter().any(|fault| fault.contains(what)), "{text}: {told:?}");
        assert!(told.iter().all(|fault| fault.contains(what)), "{text}: {told:?}");
    }
    let long = "\n".repeat(LONGEST_FILE + 1);
    assert_eq!(faults("src/fit/mod.rs", &long), ["src/fit/mod.rs:601: 601 lines; split it, 600 at most"]);
    assert_eq!(faults("src/fit/mod.rs", &long[1..]), [""; 0]);
}
