//! The whole screen without a terminal: keys in, state, commands and frames out.

use crossterm::event::{Event as Input, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

use super::fixture::{app, b70, boxed, boxes, fans, frame, header, lab, press, protocols, spread, switched, text, three};
use super::state::{Ask, Popup};
use super::{App, Effect, Mode, Tab};
use crate::matrix::Metric;
use crate::ramp::Level;
use crate::sample::{MoverKind, Pattern};
use crate::session::{Command, Event, Record};
use crate::sweep::Cell;

fn live(session: (crate::session::Header, Vec<Record>), tab: Tab) -> App {
    app(session, tab, Level::TrueColor, Mode::Live)
}

fn shown(app: &mut App) -> String {
    text(&frame(app, 120, 40))
}

#[test]
fn keys_move_choose_and_measure_again() {
    let mut app = live(b70(), Tab::Sweep);
    let effect = press(&mut app, "3 j j m r");
    assert_eq!(app.ui.tab, Tab::Matrix);
    assert_eq!((app.ui.matrix.cursor, app.ui.matrix.metric), ((2, 1), Metric::SmallTime));
    let cell = Cell { pattern: Pattern::Peer, from: 2, to: 1 };
    assert_eq!(effect, Effect::Send(Command::Remeasure { cells: vec![cell], bytes: None }));
}

#[test]
fn a_block_is_measured_again_at_the_size_shown() {
    let mut app = live(b70(), Tab::Matrix);
    let effect = press(&mut app, "h S j v l l j R");
    let cells = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)];
    let pattern = |from, to| if from == to { Pattern::Local } else { Pattern::Peer };
    let cells = cells.map(|(from, to)| Cell { pattern: pattern(from, to), from, to }).to_vec();
    assert_eq!(effect, Effect::Send(Command::Remeasure { cells, bytes: Some(1 << 20) }));
}

#[test]
fn a_transposed_matrix_moves_as_it_looks() {
    let mut app = live(b70(), Tab::Matrix);
    press(&mut app, "x j");
    assert_eq!(app.ui.matrix.cursor, (0, 2));
    press(&mut app, "l l");
    assert_eq!(app.ui.matrix.cursor, (2, 2));
}

#[test]
fn the_form_starts_what_it_says() {
    let mut app = live((header("new", &["a"; 3]), Vec::new()), Tab::Sweep);
    // up from the button: GPUs, memory, mover, seed, window, ci, repeats; then the second line of the patterns
    press(&mut app, "up up up right up up up up space ctrl-u 2 0 enter home j space right space");
    let effect = press(&mut app, "end enter");
    let Effect::Send(Command::StartSweep { settings }) = effect else { panic!("{effect:?}") };
    assert_eq!((settings.repeats, settings.mover), (20, MoverKind::MpiPut));
    assert_eq!(settings.patterns, [Pattern::Local, Pattern::Peer, Pattern::FanOut, Pattern::FanIn]);
    assert_eq!(app.ui.tab, Tab::Sweep, "digits that are typed are no tabs");
}

#[test]
fn what_cannot_be_measured_is_told_at_its_line_and_sends_nothing() {
    let mut app = live((header("new", &["a"; 3]), Vec::new()), Tab::Sweep);
    let effect = press(&mut app, "home j j j j space 0 - 9 enter enter");
    assert_eq!(effect, Effect::Nothing);
    let screen = shown(&mut app);
    assert!(screen.contains("\"0-9\" is not a set of ranks below 3"), "{screen}");
    press(&mut app, "space ctrl-u enter j space ctrl-u 2 G enter");
    assert_eq!(press(&mut app, "enter"), Effect::Nothing);
    assert!(shown(&mut app).contains("2147483647"), "{}", shown(&mut app));
}

#[test]
fn buffers_that_do_not_fit_are_refused() {
    let mut session = header("small", &["a"; 3]);
    for place in &mut session.topology.ranks {
        place.memory_available = 100 << 20;
    }
    let mut app = live((session, Vec::new()), Tab::Sweep);
    assert!(shown(&mut app).contains("does not fit"), "{}", shown(&mut app));
    assert_eq!(press(&mut app, "enter"), Effect::Nothing);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal));
}

#[test]
fn a_running_sweep_pauses_and_goes_on_and_is_not_lost_by_one_key() {
    let mut app = live(three(), Tab::Sweep);
    assert_eq!(press(&mut app, "space"), Effect::Send(Command::Pause));
    app.take(vec![Record { t: 9.0, event: Event::Paused }]);
    assert_eq!(press(&mut app, "space"), Effect::Send(Command::Continue));
    assert_eq!(press(&mut app, "A"), Effect::Nothing);
    assert_eq!(app.ui.popups, [Popup::Confirm(Ask::Abort)]);
    assert_eq!(press(&mut app, "n"), Effect::Nothing);
    assert_eq!(press(&mut app, "A y"), Effect::Send(Command::Abort));
    assert_eq!(press(&mut app, "q"), Effect::Nothing);
    assert_eq!(press(&mut app, "esc q enter"), Effect::Leave);
    assert_eq!(press(&mut live(b70(), Tab::Sweep), "q"), Effect::Leave, "nothing runs: no question");
}

/// Where on the screen a pair of ranks was drawn.
fn place_of(app: &App, (from, to): (usize, usize)) -> (u16, u16) {
    let places = (0..40).flat_map(|row| (0..120).map(move |column| (column, row)));
    let hit = |&(column, row): &(u16, u16)| {
        app.hits.matrix.at(column, row, false).is_some_and(|hit| hit.from.contains(&from) && hit.to.contains(&to))
    };
    places.into_iter().find(hit).unwrap()
}

fn point(app: &mut App, kind: MouseEventKind, (column, row): (u16, u16)) -> super::Reaction {
    let reaction = app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    frame(app, 120, 40);
    reaction
}

#[test]
fn the_mouse_tells_pins_and_selects() {
    let mut app = live(b70(), Tab::Matrix);
    frame(&mut app, 120, 40);
    let (down, drag, up) =
        (MouseEventKind::Down(MouseButton::Left), MouseEventKind::Drag(MouseButton::Left), MouseEventKind::Up(MouseButton::Left));
    let places = [(2, 3), (4, 5), (6, 6)].map(|pair| place_of(&app, pair));
    assert!(point(&mut app, MouseEventKind::Moved, places[0]).changed);
    assert_eq!(app.ui.matrix.cursor, (2, 3));
    assert!(!point(&mut app, MouseEventKind::Moved, places[0]).changed, "the same cell again is no news");
    point(&mut app, down, places[1]);
    point(&mut app, up, places[1]);
    point(&mut app, MouseEventKind::Moved, places[0]);
    assert_eq!(app.ui.matrix.cursor, (4, 5), "a click pins");
    point(&mut app, down, places[0]);
    point(&mut app, drag, places[1]);
    assert_eq!(app.ui.matrix.block(app.view().grid.axes(), 0), (vec![2, 3, 4], vec![3, 4, 5]));
    point(&mut app, up, places[1]);
    let Effect::Send(Command::Remeasure { cells, .. }) = press(&mut app, "R") else { panic!("no command") };
    assert_eq!(cells.len(), 9);
    press(&mut app, "esc");
    point(&mut app, MouseEventKind::Moved, places[2]);
    assert_eq!(app.ui.matrix.cursor, (6, 6), "esc lets go");
    let session = app.hits.tabs.iter().find(|(_, tab)| *tab == Tab::Session).map(|(area, _)| (area.x, area.y)).unwrap();
    point(&mut app, down, session);
    assert_eq!(app.ui.tab, Tab::Session);
}

#[test]
fn a_click_on_the_slider_goes_to_that_time() {
    let mut app = app(b70(), Tab::Session, Level::TrueColor, Mode::Recorded);
    frame(&mut app, 120, 40);
    let slider = app.hits.slider.unwrap();
    point(&mut app, MouseEventKind::Down(MouseButton::Left), (slider.x + slider.width / 2, slider.y));
    let half = app.model.samples();
    assert!((600..900).contains(&half), "{half}");
    point(&mut app, MouseEventKind::Down(MouseButton::Left), (slider.x, slider.y));
    assert_eq!(app.model.samples(), 0);
}

#[test]
fn ctrl_c_twice_leaves() {
    let mut app = live(three(), Tab::Matrix);
    assert_eq!(press(&mut app, "ctrl-c"), Effect::Nothing);
    assert_eq!(press(&mut app, "ctrl-c"), Effect::Leave);
}

#[test]
fn lost_ranks_are_not_measured_again() {
    let mut app = live(three(), Tab::Matrix);
    assert_eq!(press(&mut app, "j j r"), Effect::Nothing);
    assert!(shown(&mut app).contains("lost"));
}

#[test]
fn the_first_glance_tells_what_is_slow_and_the_next_key_goes_there() {
    let mut app = live(b70(), Tab::Matrix);
    let screen = shown(&mut app);
    assert!(screen.contains("1→3") && screen.contains("3.60 "), "{screen}");
    press(&mut app, "n");
    assert_eq!(app.ui.matrix.cursor, (1, 3));
    assert!(shown(&mut app).contains("1 → 3"));
}

#[test]
fn escape_codes_in_names_and_lines_do_not_reach_the_screen() {
    for tab in Tab::ALL {
        let mut app = live(three(), tab);
        for (width, height) in [(60, 18), (120, 40)] {
            let screen = frame(&mut app, width, height);
            assert!(!screen.content.iter().any(|cell| cell.symbol().chars().any(char::is_control)), "{tab:?}");
        }
    }
}

#[test]
fn a_recorded_session_opens_at_its_end_and_goes_back_and_forth() {
    let (header, records) = b70();
    let total = records.len();
    let mut app = app((header, records), Tab::Session, Level::TrueColor, Mode::Recorded);
    let end = shown(&mut app);
    assert!(end.contains(&format!("{total} of {total} events")), "{end}");
    press(&mut app, ", ,");
    assert_eq!(app.model.samples(), 3 * 64 * 8 - 8);
    press(&mut app, ".");
    assert_eq!(app.model.samples(), 3 * 64 * 8);
    press(&mut app, ", , ,");
    assert_eq!(app.model.samples(), 3 * 64 * 8 - 24);
    press(&mut app, "{ { { { space");
    assert!(app.lively());
    app.tick(0.1);
    let early = app.model.samples();
    app.tick(1e6);
    assert!(early < app.model.samples() && !app.lively());
    assert_eq!(shown(&mut app), end);
    for back in (0..20).map(|_| press(&mut app, "{")) {
        assert!(matches!(back, Effect::Play(_)));
    }
    assert_eq!(app.model.samples(), 0);
    assert_eq!(press(&mut app, "2 enter"), Effect::Nothing);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal));
}

#[test]
fn following_cell_by_cell_shows_what_building_anew_shows() {
    let (header, records) = b70();
    for metric_keys in ["3", "3 m", "3 m m"] {
        let mut grown = live((header.clone(), Vec::new()), Tab::Matrix);
        press(&mut grown, metric_keys);
        for record in &records {
            grown.apply(record);
        }
        let mut whole = live((header.clone(), records.clone()), Tab::Matrix);
        press(&mut whole, metric_keys);
        assert_eq!(shown(&mut grown), shown(&mut whole), "{metric_keys}");
    }
}

#[test]
fn help_tells_every_key_once() {
    let mut app = live(b70(), Tab::Matrix);
    press(&mut app, "?");
    let mut page = String::new();
    for _ in 0..100 {
        page.push_str(&text(&frame(&mut app, 80, 24)));
        press(&mut app, "down");
    }
    for action in super::keys::Action::ALL {
        assert!(page.contains(action.doc()), "{action:?}");
    }
    press(&mut app, "esc");
    assert!(app.ui.popups.is_empty());
}

#[test]
fn themes_change_while_running() {
    let mut app = live(b70(), Tab::Matrix);
    let before = frame(&mut app, 120, 40);
    press(&mut app, "T");
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.starts_with("theme ")));
    let after = frame(&mut app, 120, 40);
    assert_ne!(before.content[0].bg, after.content[0].bg);
}

#[test]
fn without_colours_no_colour_is_sent() {
    use ratatui::style::Color;
    for tab in Tab::ALL {
        let mut app = app(b70(), tab, Level::None, Mode::Live);
        let screen = frame(&mut app, 120, 40);
        assert!(screen.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{tab:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_size_and_no_key_breaks_the_screen(
        sizes in prop::collection::vec((1_u16..130, 1_u16..60), 1..6),
        keys in prop::collection::vec(prop::sample::select(
            "1 1 2 3 4 5 6 7 7 8 b e . , Z s f t j k h l up down left right enter space esc m p s S c x z v r R n o O / 0 f J K ? q y A T tab shift-tab g G page-up page-down + - [ ] { } < > backspace".split(' ').collect::<Vec<_>>()
        ), 0..40),
        points in prop::collection::vec((0_u16..130, 0_u16..60, 0_u8..5), 0..10),
        which in 0..8,
    ) {
        let session = match which { 0 => b70(), 1 => three(), 4 => fans(), 5 => protocols(), 6 => boxed(), 7 => switched(), 2 => (header("empty", &[]), Vec::new()), _ => (header("one", &["a"]), Vec::new()) };
        let mode = if keys.len() % 2 == 0 { Mode::Live } else { Mode::Recorded };
        let mut app = app(session, Tab::Matrix, Level::TrueColor, mode);
        match which {
            0 => {
                app.desk.hold(Some(super::fixture::found()));
                app.replays.hold(super::fixture::plans());
            }
            // The same session beside itself.
            1 => {
                let same = crate::session::Model::clone(&app.model);
                app.compare_with(same);
                app.desk.let_go();
            }
            _ => {}
        }
        for (i, key) in keys.iter().enumerate() {
            press(&mut app, key);
            let (width, height) = sizes[i % sizes.len()];
            frame(&mut app, width, height);
            if let Some(&(column, row, kind)) = points.get(i) {
                let kind = match kind {
                    0 => MouseEventKind::Moved,
                    1 => MouseEventKind::Down(MouseButton::Left),
                    2 => MouseEventKind::Drag(MouseButton::Left),
                    3 => MouseEventKind::ScrollUp,
                    _ => MouseEventKind::ScrollDown,
                };
                app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
            }
            app.tick(0.3);
        }
        for (width, height) in sizes {
            frame(&mut app, width, height);
        }
        for (width, height) in [(0, 0), (1, 1), (1, 60), (130, 1), (59, 18), (60, 17), (60, 18)] {
            frame(&mut app, width, height);
        }
    }
}

#[test]
#[ignore = "prints the screens for a person to look at"]
fn print_screens() {
    for (width, height) in [(60, 18), (80, 24), (120, 40), (200, 56)] {
        for tab in Tab::ALL {
            for session in [b70(), three(), fans()] {
                let mut app = live(session, tab);
                println!("{tab:?} {width}x{height}\n{}", text(&frame(&mut app, width, height)));
            }
        }
    }
    let mut app = app(b70(), Tab::Session, Level::TrueColor, Mode::Recorded);
    println!("{}", text(&frame(&mut app, 120, 40)));
    press(&mut app, "?");
    println!("{}", text(&frame(&mut app, 80, 24)));
}

/// The made truth of the laboratory: rank 3 sends at 200 of 800 Mbit/s, rank 1 receives at 300.
#[test]
fn the_words_name_the_slow_ranks_of_the_laboratory_and_nobody_else() {
    let mut app = live(lab(), Tab::Matrix);
    let screen = shown(&mut app);
    assert!(screen.contains("▲ rank 3 (node4) sends at 0.25 of typical to all 3  23.9 of 95.7 MB/s"), "{screen}");
    assert!(screen.contains("▲ rank 1 (node2) receives at 0.37 of typical from 2 of 3  35.9 of 95.7 MB/s"), "{screen}");
    assert!(screen.contains("all else is within 1 % of typical"), "{screen}");
    assert_eq!(screen.matches("▲ rank").count(), 2 + 1, "two findings, and one at the pair under the cursor: {screen}");
    let found = app.view().insight.findings();
    assert_eq!((found.senders.as_slice(), found.receivers.as_slice()), ([3].as_slice(), [1].as_slice()));
    assert!(found.pairs.is_empty() && found.skews.is_empty(), "{found:?}");
    // Marks in the headers: the row of rank 3, the column of rank 1.
    assert!(screen.lines().any(|line| line.contains("▲node4")) && !screen.contains("▲node2"), "{screen}");
    assert!(screen.contains("▲1") && !screen.contains("▲3"), "{screen}");
    // The keys go to both, and no further.
    press(&mut app, "n");
    assert_eq!(app.ui.matrix.cursor.0, 3);
    press(&mut app, "n");
    assert_eq!(app.ui.matrix.cursor.1, 1);
    press(&mut app, "n");
    assert_eq!(app.ui.matrix.cursor.0, 3);
}

#[test]
fn the_inspector_says_which_direction_is_slower_and_by_how_much() {
    let mut app = live(lab(), Tab::Matrix);
    for (pair, rates, reason) in [
        ((3, 0), ["23.9 MB/s", "reverse   95.7 MB/s  0 → 3"], Some("▲ rank 3 sends slowly")),
        ((0, 3), ["95.7 MB/s", "reverse   23.9 MB/s  3 → 0"], None),
    ] {
        app.ui.matrix.put(pair, 4);
        let screen = shown(&mut app);
        let beside: Vec<&str> =
            screen.lines().filter_map(|line| line.split_once("││").or_else(|| line.split_once("╮╭"))).map(|s| s.1).collect();
        let beside = beside.join("\n");
        assert!(beside.contains(&format!("{} → {}", pair.0, pair.1)), "{beside}");
        assert!(rates.iter().all(|rate| beside.contains(rate)), "{beside}");
        assert!(beside.contains("asymmetry 3→0 4.0 × slower"), "{beside}");
        match reason {
            Some(reason) => assert!(beside.contains(reason) && beside.contains("0.25 × 95.7 MB/s"), "{beside}"),
            None => assert!(!beside.contains("slowly") && beside.contains("1.00 × 95.7 MB/s"), "{beside}"),
        }
    }
}

#[test]
fn where_all_is_alike_the_screen_says_so() {
    for hosts in [&["a", "b"][..], &["a", "a", "b"]] {
        let header = header("even", hosts);
        let settings = crate::sweep::SweepSettings { sizes: vec![1 << 20], ..Default::default() };
        let mut story = super::fixture::Story::new(&settings);
        let n = hosts.len();
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            story.probe(&header.topology, (from, to), 1 << 20, Some(0.5));
        }
        let mut app = live((header, story.records), Tab::Matrix);
        for (width, height) in [(60, 18), (120, 40)] {
            let screen = text(&frame(&mut app, width, height));
            assert!(screen.contains("nothing stands out: all within 1 % of typical"), "{screen}");
            assert!(!screen.contains('▲') && !screen.contains('⇄'), "{screen}");
            assert!(screen.contains("bandwidth, MB/s") && !screen.contains("GB/s"), "{screen}");
        }
    }
    let mut app = live((header("new", &["a", "b"]), Vec::new()), Tab::Matrix);
    assert!(shown(&mut app).contains("nothing to compare yet"));
}

#[test]
fn facts_that_do_not_fit_scroll() {
    let (mut session, records) = b70();
    for i in 0..30 {
        session.environment.insert(format!("OMPI_{i:02}"), "x".to_owned());
    }
    let mut app = live((session, records), Tab::Session);
    let screen = text(&frame(&mut app, 60, 18));
    assert!(screen.contains("session · 1–7 of 39 · J K") && !screen.contains("OMPI_29"), "{screen}");
    for _ in 0..40 {
        app.input(&Input::Key(crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char('J'))));
        frame(&mut app, 60, 18);
    }
    let screen = text(&frame(&mut app, 60, 18));
    assert!(screen.contains("33–39 of 39") && screen.contains("UCX_TLS"), "{screen}");
}

/// `PICTURES=/tmp/p cargo test --lib pictures -- --ignored`, with parts of names in `ONLY`, then `rsvg-convert`.
#[test]
#[ignore = "writes pictures for a person to look at"]
fn pictures() {
    let folder = std::env::var("PICTURES").unwrap();
    let only = std::env::var("ONLY").unwrap_or_default();
    let sessions: [(&str, fn() -> _); 15] = [
        ("found", b70),
        ("narrow", boxed),
        ("box", boxed),
        ("boxes", || boxes(2)),
        ("switched", switched),
        ("protocols", protocols),
        ("fans", fans),
        ("lab", lab),
        ("b70", b70),
        ("three", three),
        ("n002", || spread(2, 1)),
        ("n003", || spread(3, 1)),
        ("n008", || spread(8, 4)),
        ("n040", || spread(40, 8)),
        ("n256", || spread(256, 8)),
    ];
    for ((name, session), level) in
        sessions.into_iter().flat_map(|s| [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None].map(|level| (s, level)))
    {
        for (tab, theme) in Tab::ALL.into_iter().flat_map(|tab| ["dark", "light", "contrast", "mono"].map(|theme| (tab, theme))) {
            for (width, height) in [(60, 18), (80, 24), (120, 34), (120, 40), (200, 56)] {
                let title = format!("{name}-{}-{width}x{height}-{level:?}-{theme}", tab.title().to_lowercase());
                if !only.split(' ').any(|wanted| wanted.split('*').all(|part| title.contains(part))) {
                    continue;
                }
                let mut app = app(session(), tab, level, Mode::Live);
                app.desk.hold(match name {
                    "found" => Some(super::fixture::found()),
                    "narrow" => Some(super::fixture::narrow()),
                    _ => None,
                });
                press(&mut app, &std::env::var("KEYS").unwrap_or_default());
                let (look, _) = super::Look::new(theme, std::collections::BTreeMap::new(), level, None).unwrap();
                app.set_look(look);
                let buffer = frame(&mut app, width, height);
                let canvas = super::picture::canvas(&buffer, app.theme());
                std::fs::write(format!("{folder}/{title}.svg"), crate::export::svg::svg(&canvas, &title)).unwrap();
            }
        }
    }
}

/// Text, then which style each character has (a letter each), then what the letters mean.
pub(super) fn styled(buffer: &ratatui::buffer::Buffer) -> String {
    const LETTERS: &str = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩ";
    let mut styles = Vec::new();
    let mut letters = String::new();
    let width = usize::from(buffer.area.width);
    for row in buffer.content.chunks(width) {
        let line: String = row
            .iter()
            .map(|cell| {
                let style = (cell.fg, cell.bg, cell.modifier);
                let at = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                    styles.push(style);
                    styles.len() - 1
                });
                LETTERS.chars().nth(at).unwrap_or('?')
            })
            .collect();
        letters.push_str(line.trim_end_matches('.'));
        letters.push('\n');
    }
    let color = |color: ratatui::style::Color| color.to_string();
    let legend = styles
        .iter()
        .zip(LETTERS.chars())
        .map(|((fg, bg, modifier), letter)| format!("{letter} {} on {} {modifier:?}", color(*fg), color(*bg)));
    format!("{}\n---\n{letters}---\n{}", text(buffer), legend.collect::<Vec<_>>().join("\n"))
}

/// Every tab at the sizes that matter; colours where they differ.
#[test]
fn screens_look_as_they_did() {
    let sizes = [(60, 18), (80, 24), (120, 40), (200, 56)];
    for (name, session, tab, keys) in [
        ("fans", fans as fn() -> _, Tab::Fans, ""),
        ("fans", fans, Tab::Fits, "j"),
        ("protocols", protocols, Tab::Fits, "j j"),
        ("duplex", fans, Tab::Matrix, "p"),
        ("box", boxed, Tab::Topology, ""),
        ("box-classes", boxed, Tab::Topology, "v"),
        ("box-share", boxed, Tab::Matrix, "m g g"),
        ("boxes", || boxes(2), Tab::Topology, "t"),
        ("switched", switched, Tab::Topology, "n"),
    ] {
        for ((width, height), level) in
            sizes.into_iter().flat_map(|size| [Level::TrueColor, Level::Ansi256, Level::None].map(|level| (size, level)))
        {
            // Colours change with the level, not with the size.
            if level != Level::TrueColor && !(width == 80 && matches!((name, level), ("fans", _) | ("box" | "box-share", Level::None))) {
                continue;
            }
            let mut app = app(session(), tab, level, Mode::Live);
            frame(&mut app, width, height);
            press(&mut app, keys);
            insta::assert_snapshot!(
                format!("{name}-{}-{width}x{height}-{level:?}", tab.title().to_lowercase()),
                styled(&frame(&mut app, width, height))
            );
        }
    }
    for (name, session, told, keys) in [
        ("found", b70 as fn() -> _, super::fixture::found as fn() -> _, ""),
        ("found-lit", b70, super::fixture::found, "m"),
        ("found-link", boxed, super::fixture::narrow, "r"),
    ] {
        for ((width, height), level) in
            sizes.into_iter().flat_map(|size| [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None].map(|level| (size, level)))
        {
            if level != Level::TrueColor && width != 80 {
                continue;
            }
            let mut app = app(session(), Tab::Findings, level, Mode::Live);
            app.desk.hold(Some(told()));
            frame(&mut app, width, height);
            press(&mut app, keys);
            insta::assert_snapshot!(format!("{name}-{width}x{height}-{level:?}"), styled(&frame(&mut app, width, height)));
        }
    }
    for (name, session) in [("b70", b70 as fn() -> _), ("three", three as fn() -> _)] {
        for tab in Tab::ALL {
            for (width, height) in sizes {
                for level in [Level::TrueColor, Level::Ansi256, Level::None] {
                    // Colours change with the level, not with the size.
                    if level != Level::TrueColor && (width != 80 || name != "b70") {
                        continue;
                    }
                    let mut app = app(session(), tab, level, Mode::Live);
                    insta::assert_snapshot!(
                        format!("{name}-{}-{width}x{height}-{level:?}", tab.title().to_lowercase()),
                        styled(&frame(&mut app, width, height))
                    );
                }
            }
        }
    }
}

#[test]
fn what_lies_on_top_looks_as_it_did() {
    let mut app = app(b70(), Tab::Session, Level::TrueColor, Mode::Recorded);
    insta::assert_snapshot!("recorded-session-80x24", styled(&frame(&mut app, 80, 24)));
    press(&mut app, "?");
    insta::assert_snapshot!("help-80x24", styled(&frame(&mut app, 80, 24)));
    let mut app = live(three(), Tab::Matrix);
    press(&mut app, "q");
    insta::assert_snapshot!("leave-60x18", styled(&frame(&mut app, 60, 18)));
    insta::assert_snapshot!("too-small-40x10", styled(&frame(&mut app, 40, 10)));
}
