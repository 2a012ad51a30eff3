//! The report as a page and as a ticket, from the command line and from the screen; and the page in a browser, where there is one.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use toposcope::sample::{Pattern, Status};
use toposcope::session::store::Store;
use toposcope::session::{Header, Model, Record};
use toposcope::sweep::Cell;

use crate::made;
use crate::place::Place;

const MOMENT: Duration = Duration::from_secs(120);
/// A name that would be markup, would end the script's element and would leave the folder.
const NAME: &str = "</script><script>alert(1)</script><!--|*x*`../";

fn record(place: &Place, header: Header, records: Vec<Record>) -> (String, Model) {
    let mut store = Store::create(&place.session(), &header).unwrap();
    let mut model = Model::new(header);
    for record in records {
        store.append(&record).unwrap();
        model.apply(&record);
    }
    (place.session().display().to_string(), model)
}

fn evil(place: &Place) -> (String, Model) {
    let mut header = made::header();
    NAME.clone_into(&mut header.name);
    for rank in &mut header.topology.ranks {
        if rank.rank == 2 {
            NAME.clone_into(&mut rank.host);
        }
    }
    header.software.insert("os".to_owned(), NAME.to_owned());
    record(place, header, made::records())
}

fn export(place: &Place, session: &str, format: &str, name: &str) -> String {
    let out = place.folder().join(name);
    let ran = place.run(&mut place.toposcope(&["export", session, "--format", format, "--out", &out.display().to_string()]), MOMENT);
    assert_eq!(ran.ended_with(0).stdout.trim(), out.display().to_string());
    fs::read_to_string(out).unwrap()
}

/// The numbers of a page, which end where the first `<` is.
fn numbers(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(&rest[..rest.find('<').unwrap()]).unwrap()
}

#[test]
fn the_numbers_of_a_page_are_those_of_the_session() {
    let place = Place::new();
    let (session, model) = evil(&place);
    let page = export(&place, &session, "html", "r.html");
    let numbers = numbers(&page);
    assert_eq!((numbers["format"].as_str(), numbers["ranks"].as_u64()), (Some("toposcope.report/1"), Some(3)));
    assert_eq!(numbers["hosts"][1], NAME, "in the numbers a name is what it was");
    let world = model.world();
    let mut found = 0;
    for table in numbers["tables"].as_array().unwrap() {
        let bytes = table["bytes"].as_u64().unwrap();
        let pattern = if table["pattern"] == "peer" { Pattern::Peer } else { Pattern::Duplex };
        for (from, to) in (0..world).flat_map(|from| (0..world).map(move |to| (from, to))) {
            let at = from * world + to;
            let pattern = if from == to && pattern == Pattern::Peer { Pattern::Local } else { pattern };
            let size = model.cells.get(Cell { pattern, from, to }, bytes);
            let good = size.filter(|size| size.count > 0);
            let letter = table["state"].as_str().unwrap().as_bytes()[at];
            assert_eq!(letter == b'.', good.is_some_and(|size| size.status == Status::Ok), "{from} {to} {bytes}");
            match good {
                Some(size) => {
                    let us = table["us"][at].as_f64().unwrap();
                    assert!((us / 1e6 / size.median - 1.0).abs() < 1e-12, "{us} {}", size.median);
                    assert_eq!(table["n"][at].as_u64(), Some(size.count as u64));
                    found += 1;
                }
                None => assert!(table["us"][at].is_null(), "{from} {to}"),
            }
        }
    }
    assert!(found > 4, "{found}");
    let mut seconds = 0;
    for sample in numbers["samples"].as_array().unwrap() {
        let number = |name: &str| sample[name].as_u64().unwrap();
        let pattern = Pattern::ALL.into_iter().find(|pattern| sample["pattern"] == pattern.name()).unwrap();
        let size = model.cells.get(Cell { pattern, from: number("from") as usize, to: number("to") as usize }, number("bytes")).unwrap();
        let times: Vec<f64> = sample["seconds"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!(times, size.times());
        seconds += times.len();
    }
    assert!(seconds > 10, "{seconds}");
}

/// What ran together is on the page, too, since it says that nothing is left out.
#[test]
fn the_numbers_of_a_page_have_fans_and_relays() {
    let place = Place::new();
    let (session, model) = record(&place, made::header(), made::grouped());
    let numbers = numbers(&export(&place, &session, "html", "r.html"));
    assert_eq!(numbers["left_out"], serde_json::json!([]));
    let own = |sample: &&Value| Pattern::ALL.into_iter().any(|pattern| sample["pattern"] == pattern.name() && !pattern.is_pair());
    let times = |sample: &Value| sample["seconds"].as_array().unwrap().len();
    let told: usize = numbers["samples"].as_array().unwrap().iter().filter(own).map(times).sum();
    let sizes = model.groups.iter().flat_map(|(_, sizes)| sizes);
    let good = |size: &toposcope::session::GroupSize| {
        let newest = size.shots.iter().filter(|own| own.shot.take == size.take && !own.shot.warmup);
        newest.filter(|own| own.shot.seconds_per_message().is_some()).count()
    };
    assert!(told > 0);
    assert_eq!(told, sizes.map(good).sum::<usize>());
}

#[test]
fn names_are_text_on_the_page_and_in_the_ticket() {
    let place = Place::new();
    let (session, _) = evil(&place);
    let page = export(&place, &session, "html", "r.html");
    assert_eq!((page.matches("<script").count(), page.matches("</script").count(), page.matches("<!--").count()), (2, 2, 0));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)") && page.contains("default-src 'none'"));
    // Names of XML are no addresses, and nothing else has one.
    assert_eq!(page.matches("://").count(), page.matches("http://www.w3.org/2000/svg").count());
    let ticket = export(&place, &session, "markdown", "r.md");
    assert!(!ticket.contains("<script") && ticket.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "{ticket}");
    assert!(ticket.contains("## How to measure it again") && ticket.contains("mpirun -n 3 toposcope sweep --patterns"), "{ticket}");
    place.nothing_runs();
}

/// A picture in pixels is what the picture in shapes is, and no way of asking for one replaces a file.
#[cfg(feature = "tui")]
#[test]
fn pictures_are_written_by_key_and_by_command() {
    use crate::screen::term::Term;
    let place = Place::new();
    let (session, _) = record(&place, made::header(), made::records());
    let out = place.folder().join("m.png");
    let words = ["export", &session, "--format", "png", "--cells", "80x24", "--out", &out.display().to_string()];
    place.run(&mut place.toposcope(&words), MOMENT).ended_with(0);
    let png = fs::read(&out).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((size(16), size(20)), (80 * 20, 24 * 40));
    let mut term = Term::start(&place, (100, 30), &[crate::place::TOPOSCOPE, "open", &session], &[]);
    term.entered();
    term.see("bandwidth, ");
    term.press("P");
    term.see("-1.svg and .png in ");
    term.press("P");
    term.see("-2.svg and .png in ");
    term.press("W");
    term.see("-1.html and .md in ");
    term.press("q");
    term.left_whole(0);
    let made = |end: &str| {
        let names = fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(end)).collect::<Vec<_>>()
    };
    assert_eq!((made("-matrix-1.svg").len(), made("-matrix-2.png").len()), (1, 1), "{:?}", made(""));
    let html = fs::read_to_string(place.folder().join(&made("-report-1.html")[0])).unwrap();
    assert!(html.contains("toposcope.report/1") && made("-report-1.md").len() == 1);
    place.nothing_runs();
}

/// What a person would do, in Chromium: on a phone and on a desktop, light and dark. Skips where there is none, in CI, too: it is large.
#[test]
fn the_page_works_in_a_browser() {
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    });
    let Some(chromium) = chromium else {
        std::io::Write::write_all(&mut std::io::stderr(), b"\nSKIPPED: the page in a browser: no Chromium (apt-get install chromium)\n\n")
            .unwrap();
        return;
    };
    let place = Place::new();
    let (session, _) = evil(&place);
    export(&place, &session, "html", "r.html");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/page/look.py");
    let shots = place.folder().join("shots");
    // Its own environment: a browser needs more than a test's place gives.
    let ran = Command::new("python3").arg(script).arg(place.folder().join("r.html")).arg(&shots).arg(chromium).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("all is well"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(["390-light.png", "390-dark.png", "1440-light.png", "1440-dark.png"].iter().all(|name| shots.join(name).exists()));
}
