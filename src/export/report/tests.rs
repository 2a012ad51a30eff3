use super::*;
use crate::diagnose::{Cause, Fact, Finding, PairClass, PairSeen, Pairs, Provenance, Severity, Shape, Silenced, Suspect};
use crate::fit::identify::Identified;
use crate::sample::{EngineKind, Memory, MoverKind, Status};
use crate::session::Header;
use crate::topology::{Efficiency, PathClass, Placement, Router, Topology, Units};

/// A host whose name is an attack.
const HOST: &str = "<script>alert(1)</script>|*x*\u{1b}[31m";

fn measured(world: usize) -> Measured {
    let place = |rank| Placement { rank, host: HOST.to_owned(), ..Placement::default() };
    let topology = Topology::of((0..world).map(place).collect());
    let pair = |from: usize, to: usize| PairSeen {
        from: from as u32,
        to: to as u32,
        class: 0,
        status: if (from, to) == (1, 2) { Status::Timeout } else { Status::Ok },
        n: 8,
        rate: if (from, to) == (1, 2) { f64::NAN } else { 10e9 + (from * 10 + to) as f64 * 1e8 },
        interval: None,
        expected: 20e9,
        small: 1e-5,
        fit_error: 0.01,
        scatter: 0.01,
        drift: 1.0,
    };
    let all = (0..world).flat_map(|from| (0..world).filter(move |&to| to != from).map(move |to| pair(from, to)));
    Measured {
        units: Units::of(&topology),
        efficiency: Efficiency::default(),
        router: Router::new(&topology, &Efficiency::default()),
        provenance: Provenance {
            engine: EngineKind::Mpi,
            mover: MoverKind::MpiSendrecv,
            memory: Memory::Host,
            window: 1,
            group: Vec::new(),
            software: vec![("os".to_owned(), "Linux & Co".to_owned())],
            environment: Vec::new(),
        },
        bytes: 256 << 20,
        small_bytes: 4096,
        sizes: vec![4096, 256 << 20],
        classes: vec![PairClass {
            path: PathClass::IntraNode,
            label: None,
            same_socket: None,
            usual: 11e9,
            usual_small: 1e-5,
            count: world,
        }],
        peer: Pairs::new(world, all.collect()),
        duplex: Pairs::default(),
        local: Pairs::default(),
        together: Vec::new(),
        lost: Vec::new(),
        tests: Vec::new(),
        executed: Vec::new(),
        gpus: Vec::new(),
        topology,
    }
}

fn model(measured: &Measured) -> Model {
    Model::new(Header {
        format: Header::current_format(),
        program: "0.1.0".to_owned(),
        name: HOST.to_owned(),
        started: "2025-01-01T10:00:00Z".to_owned(),
        engine: EngineKind::Mpi,
        group: Vec::new(),
        settings: crate::sweep::SweepSettings::default(),
        topology: measured.topology.clone(),
        software: std::collections::BTreeMap::new(),
        environment: std::collections::BTreeMap::new(),
    })
}

fn diagnosis() -> Diagnosis {
    let suspect = |cause, against: &str| Suspect { cause, weight: 1.0, because: "Gen5 x8 of x16".to_owned(), against: against.to_owned() };
    Diagnosis {
        findings: vec![Finding {
            id: "slow-unit rank 3 sends".to_owned(),
            rule: "slow-unit",
            severity: Severity::Problem,
            title: format!("rank 3 of {HOST} sends slowly"),
            amount: "46 %".to_owned(),
            weight: 1.0,
            shape: Shape::Other { say: String::new() },
            facts: vec![Fact { say: "3→0 5.0 of 10.9 GB/s".to_owned(), pairs: vec![(3, 0)], together: Vec::new() }],
            suspects: vec![suspect(Cause::TrainedDown, ""), suspect(Cause::SmallerDevice, "its own copies are fast")],
            next: None,
            told: vec!["swapped: slow with all".to_owned()],
            cells: vec![(3, 0)],
            hop: None,
        }],
        silenced: vec![Silenced { rule: "trained-down", say: "x8".to_owned(), why: "it rests".to_owned() }],
        identified: Identified::default(),
    }
}

#[test]
fn html_is_one_file_that_loads_nothing_and_holds_no_markup_from_outside() {
    let seen = measured(4);
    let page = html("<b>", &report(&model(&seen), &seen, &diagnosis()));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script") && !page.contains('\u{1b}'));
    assert!(page.contains("<title>&lt;b&gt;</title>") && page.contains("Linux &amp; Co"));
    for foreign in ["src=", "href=", "url(", "@import", "<link", "<img", "onload"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // The one address is the name of SVG itself.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count() + 1, "and http-equiv");
    assert_eq!(page.matches("<svg").count(), 3);
    for tag in ["table", "tr", "td", "th", "dl", "dd", "dt", "figure", "svg", "p", "h1", "h2", "h3", "body", "html"] {
        let (open, close) = (
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count(),
            page.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(open, close, "{tag}");
    }
    for words in
        ["▲ 1", "46 %", "3→0 5.0 of 10.9 GB/s", "a link trained down: Gen5 x8 of x16", "against it: its own copies are fast", "it rests"]
    {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn markdown_means_nothing_but_itself_and_links_its_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.md");
    let seen = measured(4);
    let pictures = write_report(&path, Written::Markdown, &model(&seen), &seen, &diagnosis()).unwrap();
    let names: Vec<_> = pictures.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["r-1.svg", "r-2.svg", "r-3.svg"]);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\|\\*x\\*\\[31m"), "{page}");
    assert!(!page.contains("<script") && page.contains("](<r-1.svg>)"), "{page}");
    let row = page.lines().find(|line| line.contains("46 %")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 5, "{row}");
    assert!(std::fs::read_to_string(&pictures[0]).unwrap().starts_with("<svg"));
}

#[test]
fn a_matrix_of_few_ranks_has_its_numbers_and_of_many_its_worst() {
    let few = &pictures(&measured(4))[0];
    let picture = svg(&few.canvas(), &few.title);
    assert!(picture.contains(">13.0</text>") && picture.contains(">!</text>"), "3 → 0, and 1 → 2 which timed out: {picture}");
    let mut seen = measured(300);
    let slow = |pair: &PairSeen| PairSeen { rate: if (pair.from, pair.to) == (7, 290) { 1e9 } else { 40e9 }, status: Status::Ok, ..*pair };
    seen.peer = Pairs::new(300, seen.peer.iter().map(slow).collect());
    let many = &pictures(&seen)[0];
    let canvas = many.canvas();
    assert!(canvas.width <= 140 && canvas.height <= 80, "{} x {}", canvas.width, canvas.height);
    // Row 7 is in block 1 (of 4 ranks), the lower half of the first line; column 290 in block 72.
    let at = |row: usize, column: usize| canvas.cells[row * canvas.width + column].clone();
    assert_ne!(at(1, 72).bg, at(1, 71).bg);
    assert_eq!(at(1, 71).bg, at(1, 70).bg);
}
