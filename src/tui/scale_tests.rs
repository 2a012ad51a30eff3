//! The matrix of a thousand ranks, through keys, mouse and drawn frames.

use std::collections::HashSet;

use crossterm::event::{Event as Input, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;

use super::fixture::{app, frame, header, press, screen_on, spread, text};
use super::{App, Effect, Mode, Tab};
use crate::matrix::Reduce;
use crate::ramp::Level;
use crate::sample::{MoverKind, Pattern, Sample, Status};
use crate::session::{Command, Event, Model, Outcome, Record};
use crate::sweep::SweepSettings;
use crate::tui::atlas::Order;

const RANKS: usize = 1024;
/// The one slow link: from host 64 in rack 4 to host 113 in rack 7.
const SLOW: (usize, usize) = (517, 906);
/// The same where there are 256.
const FEW_SLOW: (usize, usize) = (133, 226);
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 56)];

/// Ranks on hosts of 8 in 8 racks, where all pairs are alike but one; a row of the matrix in each event.
fn big(ranks: usize, slow: (usize, usize), level: Level) -> App {
    let hosts: Vec<String> = (0..ranks).map(|rank| format!("host{:03}", rank / 8)).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mut header = header("big", &hosts);
    header.topology.ranks.iter_mut().for_each(|place| place.rack = Some(place.rank * 8 / ranks));
    let bytes = 16 << 20;
    let settings = SweepSettings { sizes: vec![bytes], mover: MoverKind::MpiSendrecv, repeats: 1, ..SweepSettings::default() };
    let mut model = Model::new(header);
    model.apply(&Record { t: 0.0, event: Event::SweepStarted { settings, resumed: false } });
    for from in 0..ranks {
        let sample = |to: usize| {
            let gbps = match (from / 8 == to / 8, (from, to) == slow) {
                (_, true) => 4.0,
                (true, _) => 50.0,
                _ => 12.0,
            };
            let noise = 1.0 + ((from * 7 + to * 3) % 8) as f64 / 200.0;
            Sample {
                messages: 1,
                seconds: Some(bytes as f64 / (gbps * noise * 1e9)),
                status: Status::Ok,
                ..Sample::blank(Pattern::Peer, from, to, bytes, model.header.topology.path(from, to))
            }
        };
        let samples = (0..ranks).filter(|&to| to != from).map(sample).collect();
        model.apply(&Record { t: 1.0 + from as f64, event: Event::ProbeDone { probe: from as u64, samples, enough: None } });
    }
    model.apply(&Record { t: 2e3, event: Event::SweepEnded { outcome: Outcome::Complete, reason: String::new() } });
    screen_on(model, Tab::Matrix, level, Mode::Live)
}

/// Points of the screen where a pair is drawn, and whether it is the lower half.
fn places(app: &App, buffer: &Buffer, pair: (usize, usize)) -> Vec<(u16, u16, bool)> {
    let (row, column) = app.view().grid.axes().places(pair);
    let is = |&(x, y, lower): &(u16, u16, bool)| {
        app.hits.matrix.at(x, y, lower).is_some_and(|hit| hit.from.contains(&row) && hit.to.contains(&column))
    };
    buffer.area.positions().flat_map(|at| [(at.x, at.y, false), (at.x, at.y, true)]).filter(is).collect()
}

fn mouse(app: &mut App, kind: MouseEventKind, (column, row): (u16, u16), modifiers: KeyModifiers) {
    app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers }));
    frame(app, 120, 40);
}

#[test]
fn one_slow_link_of_a_million_is_seen_at_every_zoom_and_three_keys_away() {
    let mut app = big(RANKS, SLOW, Level::TrueColor);
    // Elsewhere in the same window, so that the cursor does not hide it.
    let cursors = [(0, 1), (639, 1023), (512, 911)];
    for (name, level) in [("true", Level::TrueColor), ("256", Level::Ansi256), ("16", Level::Ansi16), ("none", Level::None)] {
        let (look, _) = super::Look::new("dark", std::collections::BTreeMap::new(), level, None).unwrap();
        app.set_look(look);
        for ((width, height), (depth, cursor)) in
            SIZES.into_iter().flat_map(|size| cursors.into_iter().enumerate().map(move |at| (size, at)))
        {
            (app.ui.matrix.depth, app.ui.matrix.cursor) = (depth, cursor);
            // Each way to reduce at one of the colour levels is enough.
            for reduce in Reduce::ALL.into_iter().filter(|&reduce| reduce == Reduce::Worst || level == Level::TrueColor) {
                app.ui.matrix.reduce = reduce;
                let buffer = frame(&mut app, width, height);
                let at = places(&app, &buffer, SLOW);
                let told = format!("{name} {width}x{height} depth {depth} {reduce:?}\n{}", text(&buffer));
                assert!(!at.is_empty(), "{told}");
                let marked = at.iter().any(|&(x, y, _)| buffer[(x, y)].symbol() == "◆");
                let digits: String = at.iter().filter(|at| !at.2).map(|&(x, y, _)| buffer[(x, y)].symbol()).collect();
                assert!(marked || digits.contains("4.0"), "{told}");
                if reduce != Reduce::Worst || level < Level::Ansi256 {
                    continue;
                }
                // No other block has its colour.
                let own = at.iter().find(|&&(x, y, _)| marked == (buffer[(x, y)].symbol() == "◆")).unwrap();
                let ground = buffer[(own.0, own.1)].bg;
                let alike: HashSet<_> = buffer
                    .area
                    .positions()
                    .flat_map(|at| [(at, false), (at, true)])
                    .filter(|&(at, lower)| {
                        let cell = &buffer[at];
                        (if cell.symbol() == "▀" && !lower { cell.fg } else { cell.bg }) == ground
                    })
                    .filter_map(|(at, lower)| app.hits.matrix.at(at.x, at.y, lower))
                    .map(|hit| (hit.from.start, hit.to.start))
                    .collect();
                // A diamond takes both halves of its cell.
                assert!((1..=2).contains(&alike.len()), "{alike:?} {told}");
            }
        }
    }
    let panel = &mut app.ui.matrix;
    (panel.depth, panel.cursor, panel.reduce) = (0, (0, 1), Reduce::Worst);
    frame(&mut app, 120, 40);
    press(&mut app, "n i i");
    assert_eq!((app.ui.matrix.cursor, app.ui.matrix.depth, app.hits.matrix.level()), (SLOW, 2, 0));
    let screen = text(&frame(&mut app, 120, 40));
    assert!(screen.contains("all ▸ rack 4 → rack 7 ▸ host064 → host113"), "{screen}");
    assert!(screen.contains("517 → 906") && screen.contains("[4.0]"), "{screen}");
    // And out again.
    press(&mut app, "o");
    assert_eq!(app.ui.matrix.depth, 1);
    press(&mut app, "backspace o");
    assert_eq!(app.ui.matrix.depth, 0);
    assert!(text(&frame(&mut app, 120, 40)).contains("all of it is in sight"));
    // All of it at once is a sweep, no block.
    press(&mut app, "home v G");
    assert_eq!(press(&mut app, "R"), Effect::Nothing);
    assert!(text(&frame(&mut app, 120, 40)).contains("1048576 cells are more than the 65536"));
    press(&mut app, "esc");
    look_as_they_did(&mut app);
}

/// Without colours, as it was drawn before.
fn look_as_they_did(app: &mut App) {
    app.ui.matrix.cursor = SLOW;
    for (width, height) in SIZES {
        for depth in 0..3 {
            app.ui.matrix.depth = depth;
            insta::assert_snapshot!(format!("thousand_{width}x{height}_{depth}"), text(&frame(app, width, height)));
        }
    }
}

#[test]
fn what_is_diagnosed_leads_to_the_slow_link_by_the_same_three_keys() {
    let mut app = big(256, FEW_SLOW, Level::TrueColor);
    app.desk = super::findings::Desk::new(&crate::topology::Efficiency::default());
    frame(&mut app, 120, 40);
    assert!(app.desk.told().is_some_and(|told| !told.findings().is_empty()), "{}", text(&frame(&mut app, 120, 40)));
    press(&mut app, "n i i");
    assert_eq!((app.ui.matrix.cursor, app.hits.matrix.level()), (FEW_SLOW, 0), "{}", text(&frame(&mut app, 120, 40)));
}

#[test]
fn arrows_go_from_block_to_block() {
    let mut app = big(256, FEW_SLOW, Level::None);
    // Arrows go from block to block, each at its worst pair, and over the edge of what is looked at into what is beside it.
    app.ui.matrix.depth = 0;
    frame(&mut app, 120, 40);
    press(&mut app, "home");
    assert_eq!(app.ui.matrix.cursor, (0, 0));
    let side = app.view().grid.side(app.hits.matrix.level());
    for step in 1..side {
        press(&mut app, "right");
        let (_, column) = app.ui.matrix.cursor;
        assert_eq!(app.view().grid.axes().block_of(app.hits.matrix.level(), column), step);
    }
    (app.ui.matrix.depth, app.ui.matrix.cursor) = (2, (7, 15));
    frame(&mut app, 120, 40);
    press(&mut app, "down right");
    assert_eq!(app.ui.matrix.cursor, (8, 16));
    assert!(text(&frame(&mut app, 120, 40)).contains("host001 → host002"));
}

#[test]
fn a_rank_a_host_and_a_pair_are_found_by_name() {
    let mut app = big(256, FEW_SLOW, Level::TrueColor);
    frame(&mut app, 120, 40);
    press(&mut app, "/ h o s t 0 2 1 enter");
    assert_eq!(app.ui.matrix.cursor, (168, 1));
    press(&mut app, "/ ctrl-u 1 7 : h o s t 0 3 1 enter");
    assert_eq!(app.ui.matrix.cursor, (17, 248));
    press(&mut app, "/ ctrl-u r a c k");
    app.input(&Input::Key(crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char(' '))));
    press(&mut app, "3 enter");
    assert_eq!(app.ui.matrix.cursor, (96, 248));
    press(&mut app, "/ ctrl-u 2 5 6 enter");
    assert_eq!(app.ui.matrix.cursor, (96, 248));
    assert!(text(&frame(&mut app, 120, 40)).contains("there is no rank 256, only 0 to 255"));
    press(&mut app, "/ ctrl-u n o d e enter");
    assert!(text(&frame(&mut app, 120, 40)).contains("no rank, host or rack is called \"node\""));
    // What is typed is seen, is no key, and can be dropped.
    press(&mut app, "/ ctrl-u q");
    let screen = text(&frame(&mut app, 120, 40));
    assert!(screen.contains(" find q"), "{screen}");
    press(&mut app, "esc");
    assert!(app.ui.matrix.typing.is_none());
}

#[test]
fn a_drag_over_blocks_measures_all_of_their_pairs_again() {
    let mut app = big(256, FEW_SLOW, Level::TrueColor);
    let buffer = frame(&mut app, 120, 40);
    let level = app.hits.matrix.level();
    assert!(level > 0);
    let side = app.view().grid.axes().span(level, 0).len();
    let at = |pair| places(&app, &buffer, pair).into_iter().find(|place| !place.2).map(|(x, y, _)| (x, y)).unwrap();
    let (start, end) = (at((64, 128)), at((64, 128 + side)));
    mouse(&mut app, MouseEventKind::Down(MouseButton::Left), start, KeyModifiers::NONE);
    mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), end, KeyModifiers::NONE);
    mouse(&mut app, MouseEventKind::Up(MouseButton::Left), end, KeyModifiers::NONE);
    let Effect::Send(Command::Remeasure { cells, bytes }) = press(&mut app, "R") else { panic!("nothing measured") };
    let wanted: HashSet<_> = (64..64 + side).flat_map(|from| (128..128 + 2 * side).map(move |to| (from, to))).collect();
    assert_eq!(cells.iter().map(|cell| (cell.from, cell.to)).collect::<HashSet<_>>(), wanted);
    assert_eq!(bytes, Some(16 << 20));
}

#[test]
fn the_wheel_looks_closer_where_the_pointer_is_and_back_to_the_whole() {
    let mut app = big(256, FEW_SLOW, Level::TrueColor);
    let buffer = frame(&mut app, 120, 40);
    let (x, y, _) = places(&app, &buffer, FEW_SLOW)[0];
    mouse(&mut app, MouseEventKind::ScrollUp, (x, y), KeyModifiers::NONE);
    assert_eq!(app.ui.matrix.depth, 1);
    let (row, column) = app.ui.matrix.cursor;
    assert_eq!((row / 32, column / 32), (FEW_SLOW.0 / 32, FEW_SLOW.1 / 32));
    let buffer = frame(&mut app, 120, 40);
    let (x, y, _) = places(&app, &buffer, FEW_SLOW)[0];
    mouse(&mut app, MouseEventKind::ScrollDown, (x, y), KeyModifiers::NONE);
    assert_eq!(app.ui.matrix.depth, 0);
}

#[test]
fn in_any_order_everything_names_true_ranks() {
    let mut app = app(spread(16, 4), Tab::Matrix, Level::None, Mode::Live);
    app.ui.matrix.cursor = (3, 9);
    frame(&mut app, 200, 56);
    for order in [Order::Topology, Order::Slowness] {
        press(&mut app, "O");
        assert_eq!((app.ui.matrix.order, app.ui.matrix.cursor), (order, (3, 9)));
        let buffer = frame(&mut app, 200, 56);
        let screen = text(&buffer);
        assert!(screen.contains(order.told()) && screen.contains(" 3 → 9 "), "{screen}");
        let grid = &app.view().grid;
        let axes = grid.axes();
        // Every number stands where its pair is hit.
        for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let shown: String =
                places(&app, &buffer, (from, to)).iter().filter(|at| !at.2).map(|&(x, y, _)| buffer[(x, y)].symbol()).collect();
            let number = grid.metric().format(grid.get(from, to).known().unwrap(), grid.metric().unit(50e9));
            assert!(shown.contains(&number), "{from}→{to} {number} in {shown:?}\n{screen}");
        }
        // And so does every header.
        let all: Vec<(u16, u16, bool)> = (0..16).flat_map(|place| places(&app, &buffer, axes.pair((place, place)))).collect();
        let (left, top) = (all.iter().map(|at| at.0).min().unwrap(), all.iter().map(|at| at.1).min().unwrap());
        for place in 0..16 {
            let own = places(&app, &buffer, axes.pair((place, place)));
            let words = |at: Vec<(u16, u16)>| -> String { at.into_iter().map(|at| buffer[at].symbol()).collect() };
            let has = |text: &str, rank: usize| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == rank.to_string());
            let row: HashSet<u16> = own.iter().map(|at| at.1).collect();
            let row = words(row.into_iter().flat_map(|y| (left - 6..left).map(move |x| (x, y))).collect());
            let column = words(own.iter().filter(|at| at.1 == own[0].1 && !at.2).map(|at| (at.0, top - 1)).collect());
            let (from, to) = axes.pair((place, place));
            assert!(has(&row, from) && has(&column, to), "{from} in {row:?}, {to} in {column:?}\n{screen}");
        }
        if order == Order::Slowness {
            // Rank 14 sends slowly, rank 1 receives slowly.
            assert_eq!(axes.pair((0, 0)), (14, 1), "{screen}");
            let row = screen.lines().find(|line| line.contains("▲") && line.contains(" 14 ")).unwrap_or_default();
            assert!(!row.is_empty(), "{screen}");
        }
    }
    // A block of neighbours on the screen is measured by its ranks.
    let axes = std::sync::Arc::clone(app.view().grid.axes());
    app.ui.matrix.cursor = axes.pair((2, 3));
    let Effect::Send(Command::Remeasure { cells, .. }) = press(&mut app, "v down R") else { panic!("nothing measured") };
    let wanted: HashSet<_> = [axes.pair((2, 3)), axes.pair((3, 3))].into_iter().collect();
    assert_eq!(cells.iter().map(|cell| (cell.from, cell.to)).collect::<HashSet<_>>(), wanted);
    press(&mut app, "O");
    assert_eq!(app.ui.matrix.order, Order::Rank);
}

#[test]
fn the_title_says_what_stands_for_a_block() {
    let mut app = app(spread(256, 8), Tab::Matrix, Level::TrueColor, Mode::Live);
    for name in ["worst", "min", "max", "mean", "worst"] {
        let screen = text(&frame(&mut app, 200, 56));
        assert!(screen.contains(&format!(" · {name} of ")), "{name}: {screen}");
        press(&mut app, "e");
    }
}
