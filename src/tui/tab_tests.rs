//! The Fits and Fans tabs, and the matrix of several patterns: keys in, words and pictures out.

use crossterm::event::{Event as Input, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::fits::{Book, Column};
use super::fixture::{Story, app, fans, frame, header, live, press, protocols, shown, spread, text};
use super::form::Field;
use super::keys::Key;
use super::state::FitsPanel;
use super::{App, Effect, Mode, Tab};
use crate::fit::Confidence;
use crate::matrix::Metric;
use crate::ramp::Level;
use crate::sample::{Memory, Pattern};
use crate::session::{Command, Event, Model, Record};
use crate::sweep::{Cell, SweepSettings, Target};

/// Keys one by one as they are, spaces and digits included.
fn write(app: &mut App, text: &str) {
    for c in text.chars() {
        let key: Key = if c == ' ' { "space".parse().unwrap() } else { c.to_string().parse().unwrap() };
        app.input(&Input::Key(KeyEvent::from(key)));
    }
}

fn click(app: &mut App, (column, row): (u16, u16)) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    frame(app, 120, 40);
}

/// Kinds and keys in the table, top to bottom, with what stands in one of the number columns.
fn rows(app: &mut App) -> Vec<String> {
    let screen = shown(app);
    let rows = screen.lines().skip(4).filter_map(|line| line.split('│').nth(1));
    rows.map(|row| row.trim_start_matches('▸').trim().to_owned()).filter(|row| !row.is_empty()).collect()
}

#[test]
fn following_event_by_event_shows_what_building_anew_shows() {
    for (tab, session) in [(Tab::Fits, fans as fn() -> _), (Tab::Fits, protocols), (Tab::Fans, fans)] {
        let (header, records) = session();
        let mut grown = live((header.clone(), Vec::new()), tab);
        for (at, record) in records.iter().enumerate() {
            grown.apply(record);
            // Frames in between, so that the table grows bit by bit.
            if at % 50 == 0 {
                frame(&mut grown, 120, 40);
            }
        }
        let mut whole = live((header, records), tab);
        assert_eq!(shown(&mut grown), shown(&mut whole), "{tab:?}");
    }
}

#[test]
fn a_recorded_session_shows_the_fits_of_its_time() {
    let mut app = app(fans(), Tab::Fits, Level::TrueColor, Mode::Recorded);
    let end = shown(&mut app);
    assert!(end.contains("fits · 268"), "{end}");
    press(&mut app, "{ { { { { { { {");
    let early = shown(&mut app);
    assert!(!early.contains("fits · 268") && early.contains("fits · "), "{early}");
    for _ in 0..8 {
        press(&mut app, "}");
    }
    assert_eq!(shown(&mut app), end);
}

#[test]
fn fitting_takes_a_share_of_a_frame_and_gets_there_all_the_same() {
    let mut app = live(spread(40, 8), Tab::Fits);
    // One size: nothing can be fitted, and the screen says what to do.
    assert!(shown(&mut app).contains("a line needs two sizes"), "{}", shown(&mut app));
    let mut whole = live(fans(), Tab::Fits);
    let end = shown(&mut whole);
    let mut app = live(fans(), Tab::Sweep);
    app.share = Some(std::time::Duration::ZERO);
    assert!(!app.lively(), "nothing is fitted for a tab out of sight");
    press(&mut app, "4");
    assert!(app.lively() && shown(&mut app).contains("% looked at"), "{}", shown(&mut app));
    let mut frames = 0;
    while app.fitting() {
        app.tick(0.05);
        frame(&mut app, 120, 40);
        frames += 1;
        assert!(frames < 100);
    }
    assert!(frames > 1 && !app.tick(0.05));
    assert_eq!(shown(&mut app), end);
}

/// The table is fitted key by key, files all at once: the same numbers come of both.
#[test]
fn the_table_has_the_fits_that_files_get() {
    for session in [fans as fn() -> _, protocols] {
        let (header, records) = session();
        let mut model = Model::new(header);
        for record in &records {
            model.apply(record);
        }
        let mut book = Book::new(&model);
        book.settle(&model, &mut FitsPanel::default(), None);
        let fits = crate::session::fits(&model, Some(&Confidence::new(0.95)));
        assert_eq!(book.shown(), fits.classes.len() + fits.single.len());
        for place in 0..book.shown() {
            let detail = book.detail(&model, place).unwrap();
            let expected = fits.get(detail.fit.kind, &detail.fit.key).unwrap();
            assert_eq!(&detail.fit, expected);
            let row = book.at(place).unwrap();
            assert_eq!((row.kind, row.n as usize, usize::from(row.breaks)), (expected.kind, expected.n, expected.breakpoints().count()));
        }
    }
}

#[test]
fn the_table_sorts_by_every_column_both_ways() {
    let mut app = live(fans(), Tab::Fits);
    let natural = rows(&mut app);
    assert!(natural[0].starts_with("local   local") && natural[1].starts_with("peer    intra_node"), "{natural:?}");
    // kind, key, α, bandwidth
    press(&mut app, "o o o");
    let slow = rows(&mut app);
    assert!(slow[0].starts_with("fan_in  ") || slow[0].starts_with("fan_out ") || slow[0].starts_with("relay"), "{slow:?}");
    press(&mut app, "O");
    assert!(rows(&mut app)[0].starts_with("local"), "the fastest is a copy: {:?}", rows(&mut app));
    // Error: the poor ones first.
    let mut app = live(protocols(), Tab::Fits);
    press(&mut app, "o o o o");
    assert!(rows(&mut app)[0].contains(" 63 "), "{:?}", rows(&mut app));
    // By key, all of a rank together.
    press(&mut app, "o o o o");
    assert_eq!(app.ui.fits.column, Column::Key);
    let keys = rows(&mut app);
    let first = keys.iter().position(|row| row.starts_with("local   0")).unwrap();
    assert!(keys[first + 1].starts_with("peer    0 → 1") && keys[first + 2].starts_with("peer    0 → 2"), "{keys:?}");
    // A click on a heading sorts, another one turns round.
    let heading = app.hits.columns.iter().find(|(_, column)| *column == Column::Bandwidth).map(|(area, _)| (area.x + 2, area.y)).unwrap();
    click(&mut app, heading);
    assert_eq!((app.ui.fits.column, app.ui.fits.descending), (Column::Bandwidth, false));
    click(&mut app, heading);
    assert!(app.ui.fits.descending && shown(&mut app).contains("GB/s▾"), "{}", shown(&mut app));
}

#[test]
fn a_filter_narrows_the_table_while_it_is_typed() {
    let mut app = live(fans(), Tab::Fits);
    press(&mut app, "/");
    write(&mut app, "peer 3");
    assert_eq!(app.ui.tab, Tab::Fits, "digits that are typed are no tabs");
    let found = rows(&mut app);
    assert!(found.len() == 14 && found.iter().all(|row| row.starts_with("peer") && row.contains('3')), "{found:?}");
    press(&mut app, "enter");
    assert!(shown(&mut app).contains("14 of 268 · filter peer 3"), "{}", shown(&mut app));
    press(&mut app, "/ ctrl-u");
    write(&mut app, "2->0");
    assert_eq!(rows(&mut app).len(), 2, "peer and duplex: {:?}", rows(&mut app));
    press(&mut app, "ctrl-u");
    write(&mut app, "fan_in 0");
    let fans = rows(&mut app);
    assert!(fans.iter().all(|row| row.starts_with("fan_in")) && fans.iter().any(|row| row.contains("0 ← 1-2")), "{fans:?}");
    press(&mut app, "ctrl-u");
    write(&mut app, "nothing");
    assert!(shown(&mut app).contains("nothing fits the filter"));
    press(&mut app, "esc");
    assert!(shown(&mut app).contains("fits · 268"));
}

#[test]
fn the_cursor_stays_with_its_row_as_others_come_in() {
    let (header, records) = protocols();
    let half = records.len() / 2;
    let mut app = live((header, records[..half].to_vec()), Tab::Fits);
    press(&mut app, "o o o j j");
    let at = app.ui.fits.at;
    let title = |app: &mut App| shown(app).lines().nth(2).unwrap().split("╮╭ ").nth(1).unwrap().split(" ─").next().unwrap().to_owned();
    let before = title(&mut app);
    app.take(records[half..].to_vec());
    frame(&mut app, 120, 40);
    assert_eq!(title(&mut app), before, "{at} -> {}", app.ui.fits.at);
}

#[test]
fn a_poor_fit_refuses_to_say_more_and_a_wide_class_names_its_ends() {
    let mut app = live(protocols(), Tab::Fits);
    let copies = shown(&mut app);
    assert!(copies.contains("misses by over 25 %: says nothing") && copies.contains("beyond 4 KiB to 64 MiB"), "{copies}");
    press(&mut app, "j");
    let good = shown(&mut app);
    assert!(good.contains("beyond    256 MiB in") && !good.contains("says nothing"), "{good}");
    press(&mut app, "j");
    let broken = shown(&mut app);
    assert!(broken.contains("256 KiB.. 60.0 µs, 11.8 GB/s") && broken.contains("by protocols 0.0 %"), "{broken}");
    let mut app = live(fans(), Tab::Fits);
    press(&mut app, "j");
    let class = shown(&mut app);
    assert!(class.contains("slowest   3.60  1 → 3") && class.contains("2 → 0") && class.contains("15.0 × apart"), "{class}");
}

#[test]
fn a_fan_is_told_with_its_pairs_and_what_bounds_it() {
    let mut app = live(fans(), Tab::Fans);
    press(&mut app, "h h");
    // Published: 0 <- [1, 2] 12.6 GB/s, since 1 -> 0 gives 6.0.
    let screen = shown(&mut app);
    for told in
        ["fan_in 0 ← 1-2 · 256 MiB", "12.6 GB/s", "one pair alone 6.00 to 54.1", "bound by the slowest sender: rank 1 at 6.00 alone"]
    {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    // 1 <- [2, 3] 55.2: one pair alone is as fast.
    press(&mut app, "j");
    let screen = shown(&mut app);
    assert!(screen.contains("fan_in 1 ← 2-3") && screen.contains("55.1 GB/s") && screen.contains("served in turn (c 1.02)"), "{screen}");
    // 3 <- [4..7] 27.9.
    press(&mut app, "j j l");
    let screen = shown(&mut app);
    assert!(screen.contains("fan_in 3 ← 4-7") && screen.contains("27.8 GB/s") && screen.contains("or a limit of 27.8"), "{screen}");
    // The spread over the roots, as published: 7.0 to 53.9, 12.6 to 55.2, 18.7 to 37.3, 16.4 to 23.6, less 1 % of made noise.
    let least: Vec<&str> = screen.lines().find(|line| line.contains("│ least")).unwrap().split_whitespace().skip(2).take(4).collect();
    assert_eq!(least, ["6.98", "12.6", "18.7", "16.4"]);
    let (out, size) = (press(&mut app, "x"), app.fans.bytes);
    assert!(out == Effect::Nothing && shown(&mut app).contains("fan_out 3 → 4-7"), "{}", shown(&mut app));
    press(&mut app, "S");
    assert!(app.fans.bytes < size && shown(&mut app).contains("1 MiB"), "{}", shown(&mut app));
}

#[test]
fn relays_and_sets_are_told_after_the_roots_and_the_mouse_chooses() {
    let mut app = live(fans(), Tab::Fans);
    press(&mut app, "end");
    let set = shown(&mut app);
    assert!(set.contains("▸ custom 3") && set.contains("all at the same time") && set.contains("0→4"), "{set}");
    press(&mut app, "up");
    let relay = shown(&mut app);
    assert!(relay.contains("▸ relay +1") && relay.contains("each rank's own time"), "{relay}");
    let place = app.hits.entries.iter().find(|(_, entry)| *entry == (5, Some(1))).map(|(area, _)| (area.x + 3, area.y)).unwrap();
    click(&mut app, place);
    assert!(shown(&mut app).contains("fan_in 5 ← 6-7"), "{}", shown(&mut app));
    let place = app.hits.fans.iter().find(|(_, fan)| *fan == 3).map(|(area, _)| (area.x + 3, area.y)).unwrap();
    click(&mut app, place);
    assert!(shown(&mut app).contains("fan_in 5 ← 0-4,6-7"), "{}", shown(&mut app));
}

#[test]
fn where_nothing_is_measured_the_tabs_say_what_to_do() {
    let mut app = live((header("new", &["a", "b"]), Vec::new()), Tab::Fans);
    assert!(shown(&mut app).contains("no fan measured yet: key 2, switch on fan_in"), "{}", shown(&mut app));
    press(&mut app, "4");
    assert!(shown(&mut app).contains("nothing measured yet: key 2, then enter"), "{}", shown(&mut app));
    // Fans whose pairs are not measured have no reason.
    let (header, records) = fans();
    let only_fans = |record: &Record| match &record.event {
        Event::ProbeDone { samples, .. } => samples.iter().all(|sample| !sample.pattern.is_pair()),
        _ => true,
    };
    let mut app = live((header, records.into_iter().filter(only_fans).collect()), Tab::Fans);
    let screen = shown(&mut app);
    assert!(screen.contains("the pairs of 7 peers are not measured; switch on peer"), "{screen}");
}

#[test]
fn the_matrix_shows_what_both_ways_at_once_leave() {
    let mut app = live(fans(), Tab::Matrix);
    let peer = shown(&mut app);
    assert!(peer.contains("bandwidth, GB/s · peer · 256 MiB") && peer.contains("duplex    6.97 GB/s  ratio 0.84"), "{peer}");
    press(&mut app, "p");
    let duplex = shown(&mut app);
    assert!(duplex.contains("bandwidth, GB/s · duplex · 256 MiB") && duplex.contains("0 → 1 · both ways at once"), "{duplex}");
    // Words, units and colours are of the pattern shown: the slowest pair is 3.6 × 0.84.
    assert!(duplex.contains("duplex 3.02") || duplex.contains("duplex 3.0"), "the legend names it: {duplex}");
    // A warm-up, an outlier, neighbours of the same round and why it ended.
    for told in ["warm-up", "outlier", "shared", "4 of 8 alone, all done"] {
        assert!(duplex.contains(told), "{told}: {duplex}");
    }
    app.ui.matrix.metric = Metric::DuplexRatio;
    press(&mut app, "p");
    let ratio = shown(&mut app);
    assert!(ratio.contains("duplex ratio, both ways / alone") && ratio.contains("0.84") && ratio.contains("0.97"), "{ratio}");
    app.ui.matrix.metric = Metric::Spread;
    press(&mut app, "h l");
    let spread = shown(&mut app);
    assert!(spread.contains("spread, ± % of the median (95 %) · peer"), "{spread}");
}

#[test]
fn following_every_metric_and_pattern_shows_what_building_anew_shows() {
    let (header, records) = fans();
    for keys in ["3 m m m", "3 m m m m", "3 p", "3 p m m"] {
        let mut grown = live((header.clone(), Vec::new()), Tab::Matrix);
        press(&mut grown, keys);
        for record in &records {
            grown.apply(record);
        }
        let mut whole = live((header.clone(), records.clone()), Tab::Matrix);
        press(&mut whole, keys);
        assert_eq!(shown(&mut grown), shown(&mut whole), "{keys}");
    }
}

#[test]
fn copies_between_hosts_and_gpus_have_a_matrix_and_fits_of_their_own() {
    let header = header("gpus", &["a"; 3]);
    let patterns = vec![Pattern::HostToDevice, Pattern::DeviceToHost];
    let settings = SweepSettings { patterns, memory: Memory::Cuda, sizes: vec![1 << 20, 256 << 20], ..SweepSettings::default() };
    let mut story = Story::new(&settings);
    for &bytes in &settings.sizes {
        for rank in 0..3 {
            for (pattern, gbps) in [(Pattern::HostToDevice, 24.5), (Pattern::DeviceToHost, 12.25)] {
                let target = Target::Pair(Cell { pattern, from: rank, to: rank });
                story.at_once(&target, &[(rank, rank, gbps)], bytes, None);
            }
        }
    }
    let session = (header, story.records);
    let mut app = live(session.clone(), Tab::Matrix);
    app.ui.matrix.put((1, 1), 3);
    let into = shown(&mut app);
    assert!(into.contains("host_to_device · 256 MiB") && into.contains("1 · copy from its host to its GPU"), "{into}");
    let near = |screen: &str, rates: [&str; 3]| rates.iter().any(|rate| screen.contains(rate));
    assert!(near(&into, ["24.4", "24.5", "24.6"]) && !near(&into, ["12.2", "12.3", "12.1"]), "{into}");
    press(&mut app, "p");
    let back = shown(&mut app);
    assert!(back.contains("device_to_host · 256 MiB") && back.contains("1 · copy from its GPU to its host"), "{back}");
    assert!(near(&back, ["12.2", "12.3", "12.1"]) && !near(&back, ["24.4", "24.5", "24.6"]), "{back}");
    let cell = Cell { pattern: Pattern::DeviceToHost, from: 1, to: 1 };
    assert_eq!(press(&mut app, "r"), Effect::Send(Command::Remeasure { cells: vec![cell], bytes: None }));
    // Round and round: peer, duplex and back; where no GPU was measured these two alone.
    press(&mut app, "p p p");
    assert!(shown(&mut app).contains("host_to_device · 256 MiB"));
    let mut without = live(fans(), Tab::Matrix);
    press(&mut without, "p p");
    assert!(shown(&mut without).contains("· peer ·"));
    let mut app = live(session, Tab::Fits);
    let rows = rows(&mut app);
    let starts = |start: &str| rows.iter().filter(|row| row.starts_with(start)).count();
    assert_eq!((starts("host_to_device "), starts("device_to_host ")), (4, 4), "three ranks and all together: {rows:?}");
    assert!(rows[0].starts_with("host_to_device local"), "{rows:?}");
}

#[test]
fn both_directions_of_a_duplex_are_measured_again_at_once() {
    let mut app = live(fans(), Tab::Matrix);
    app.ui.matrix.put((5, 2), 8);
    let effect = press(&mut app, "p r");
    let cell = Cell { pattern: Pattern::Duplex, from: 2, to: 5 };
    assert_eq!(effect, Effect::Send(Command::Remeasure { cells: vec![cell], bytes: None }));
    // A block over the diagonal: no pair twice, and none of a rank with itself.
    app.ui.matrix.put((1, 1), 8);
    let Effect::Send(Command::Remeasure { cells, .. }) = press(&mut app, "v j j l l R") else { panic!("no command") };
    let pairs: Vec<(usize, usize)> = cells.iter().map(|cell| (cell.from, cell.to)).collect();
    assert_eq!(pairs, [(1, 2), (1, 3), (2, 3)]);
}

#[test]
fn patterns_are_switched_by_keys_and_by_one_click() {
    let mut app = live((header("new", &["a"; 4]), Vec::new()), Tab::Sweep);
    frame(&mut app, 120, 40);
    let place =
        |app: &App, field: Field| app.hits.fields.iter().find(|(_, of)| *of == field).map(|(area, _)| (area.x + 3, area.y)).unwrap();
    for pattern in [Pattern::Duplex, Pattern::FanIn, Pattern::FanOut, Pattern::Relay, Pattern::Local, Pattern::Custom] {
        let at = place(&app, Field::Pattern(pattern));
        click(&mut app, at);
    }
    let isolated = place(&app, Field::Isolated);
    click(&mut app, isolated);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal && notice.text.contains("pattern file")));
    let Effect::Send(Command::StartSweep { settings }) = press(&mut app, "end enter") else { panic!("no command") };
    assert_eq!(settings.patterns, [Pattern::Peer, Pattern::Duplex, Pattern::FanOut, Pattern::FanIn, Pattern::Relay]);
    assert!(settings.isolated);
}

#[test]
fn every_line_of_the_form_can_be_reached_on_the_smallest_screen() {
    let mut app = live((header("new", &["a"; 4]), Vec::new()), Tab::Sweep);
    press(&mut app, "home");
    let mut seen = String::new();
    for _ in 0..Field::LINES.len() {
        seen.push_str(&text(&frame(&mut app, 60, 18)));
        let line = app.hits.fields.iter().any(|(_, field)| *field == app.ui.form.field);
        assert!(line, "{:?} is out of sight", app.ui.form.field);
        press(&mut app, "down");
    }
    for field in Field::LINES.iter().flat_map(|fields| fields.iter()) {
        let name = if let Field::Pattern(pattern) = field { pattern.name() } else { field.name() };
        assert!(seen.contains(name), "{name}");
    }
}
