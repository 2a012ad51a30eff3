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

fn page(seen: &Measured) -> String {
    whole::whole(&model(seen), seen, &diagnosis())
}

#[test]
fn the_page_loads_nothing_and_holds_no_markup_from_outside() {
    let page = page(&measured(4));
    let data = page.find("<script type=\"application/json\"").unwrap();
    let (shown, rest) = page.split_at(data);
    assert!(shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !shown.contains("<script") && !page.contains('\u{1b}'));
    assert!(page.contains("Linux &amp; Co"));
    // Its own two: the numbers and what draws them.
    assert_eq!((rest.matches("<script").count(), rest.matches("</script").count()), (2, 2));
    assert!(rest.contains("\\u003cscript\\u003ealert(1)\\u003c/script\\u003e|*x*[31m"), "{}", &rest[..400]);
    for foreign in [
        "src=",
        "url(",
        "@import",
        "<link",
        "<img",
        "onload=",
        "onclick=",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "innerHTML",
        "eval(",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(
        page.matches("href=\"").all(|_| true) && page.split("href=\"").skip(1).all(|rest| rest.starts_with('#')),
        "links stay on the page"
    );
    // The one address is the name of SVG itself, in pictures and in the script that makes some.
    let names = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(page.matches("://").count(), names, "no other address");
    assert!(page.contains("default-src 'none'; style-src 'sha256-") && page.contains("script-src 'sha256-") && !page.contains("unsafe"));
    for tag in [
        "table", "tr", "td", "th", "dl", "dd", "dt", "section", "article", "p", "h1", "h2", "h3", "div", "details", "noscript", "body",
        "html",
    ] {
        let (open, close) = (
            shown.matches(&format!("<{tag}>")).count() + shown.matches(&format!("<{tag} ")).count(),
            shown.matches(&format!("</{tag}>")).count() + usize::from(matches!(tag, "body" | "html")),
        );
        assert_eq!(open, close, "{tag}");
    }
    for words in [
        "1 problem.",
        "46 %",
        "3→0 5.0 of 10.9 GB/s",
        "a link trained down: Gen5 x8 of x16",
        "against it: its own copies are fast",
        "it rests",
    ] {
        assert!(shown.contains(words), "{words}");
    }
}

#[test]
fn the_policy_names_the_page_s_own_style_and_script() {
    use sha2::{Digest, Sha256};
    let hash = |text: &str| {
        // Base64 of 32 bytes.
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digest = Sha256::digest(text.as_bytes());
        let mut out = String::from("sha256-");
        for part in digest.chunks(3) {
            let bits = part.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - part.len()));
            (0..4).for_each(|at| out.push(if at > part.len() { '=' } else { LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char }));
        }
        out
    };
    assert_eq!(whole::STYLE_HASH, hash(whole::STYLE), "page.css has changed: put this into whole.rs");
    assert_eq!(whole::SCRIPT_HASH, hash(whole::SCRIPT), "page.js has changed: put this into whole.rs");
}

#[test]
fn the_ticket_is_short_and_means_nothing_but_itself() {
    let seen = measured(4);
    let page = ticket::ticket(&model(&seen), &seen, &diagnosis());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\|\\*x\\*\\[31m") && !page.contains("<script"), "{page}");
    let order = [
        "1 problem.",
        "## Findings",
        "1. **▲ problem: rank 3 of",
        "## Bandwidth, GB/s at 256 MiB",
        "## Settings",
        "## How to measure it again",
    ];
    let places: Vec<usize> = order.iter().map(|part| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    let row = |from: &str| page.lines().find(|line| line.starts_with(from)).unwrap().to_owned();
    assert_eq!(row("| 3 →"), "| 3 → | 13.0 | 13.1 | 13.2 |  |");
    assert_eq!(row("| 1 →"), "| 1 → | 11.0 |  | timeout | 11.3 |");
    let seen = measured(40);
    let page = ticket::ticket(&model(&seen), &seen, &diagnosis());
    assert!(page.contains("## Slowest pairs of 1560, GB/s at 256 MiB") && page.contains("wrong bytes: 1."), "{page}");
    assert!(page.lines().count() < 60, "short: {}", page.lines().count());
}

#[test]
fn what_is_to_be_typed_stays_within_its_fence() {
    assert_eq!(page::fenced("a ``` b\u{1b}[31m"), "````sh\na ``` b[31m\n````\n\n");
    assert_eq!(page::fenced("plain"), "```sh\nplain\n```\n\n");
}

#[test]
fn a_matrix_of_few_ranks_has_its_numbers_and_of_many_its_worst() {
    let few = &pictures(&measured(4))[0];
    let picture = crate::export::svg::svg(&few.canvas(), &few.title);
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
