//! The Replay tab: keys and the mouse in, words and pictures out.

use crossterm::event::{Event as Input, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::plan::{Flow, Stage, Staged, Traffic, Transfers};
use crate::ramp::Level;
use crate::session::{Command, Event, Record};
use crate::tui::fixture::{Session, app, b70, boxed, frame, header, plans, press, ranking, rounds, shown, text, told_plans, two_hosts};
use crate::tui::keys::Key;
use crate::tui::replay::Reel;
use crate::tui::tests::styled;
use crate::tui::{App, Effect, Mode, Tab};

/// A screen on two hosts and three plans, the last of which was run.
fn holding(level: Level) -> App {
    let mut app = app(two_hosts(), Tab::Replay, level, Mode::Live);
    app.replays.hold(plans());
    frame(&mut app, 120, 40);
    app
}

fn row<'a>(screen: &'a str, begins: &str) -> &'a str {
    let own = |line: &&str| line.trim_start_matches(['│', ' ', '▌']).starts_with(begins);
    screen.lines().find(own).unwrap_or_else(|| panic!("{begins}: {screen}"))
}

fn mouse(app: &mut App, kind: MouseEventKind, (column, row): (u16, u16)) {
    app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    frame(app, 120, 40);
}

#[test]
fn the_first_glance_tells_what_binds_and_the_figures_are_told_beside_it() {
    for (width, height) in [(60, 18), (80, 24), (120, 40), (200, 56)] {
        let mut app = holding(Level::TrueColor);
        let screen = text(&frame(&mut app, width, height));
        let words = screen.replace("│\n│ ", " ");
        for told in ["◀ bottleneck", "host0 nic0 out: 8 GiB over 16.4 GB/s = 0.52", "predicted 764 ms (741–795 ms)"] {
            assert!(words.contains(told), "{width}: {told}: {screen}");
        }
        let bottleneck = row(&screen, "host0 nic0 out  ");
        assert!(bottleneck.contains("100 %◀") && bottleneck.contains("▇▇▇▇▇"), "{screen}");
        assert_eq!(screen.matches("%◀").count(), 1, "one is the bottleneck: {screen}");
        if width >= 80 {
            assert!(screen.contains("measured 775 ms, 1.3 % longer (5 runs)"), "{screen}");
        }
        if width >= 120 {
            assert!(
                row(&screen, "relay 0→8").contains("524 ms   538 ms") && row(&screen, "spread 8→9-15").contains("764 ms   775 ms"),
                "{screen}"
            );
        }
    }
}

#[test]
fn keys_move_the_play_head_by_columns_and_steps_and_to_the_bottleneck() {
    let mut app = holding(Level::TrueColor);
    let at = |app: &App| app.ui.replay.head;
    assert_eq!(at(&app), None, "it begins where the bottleneck is fullest");
    assert!(shown(&mut app).contains("▼262 ms"));
    press(&mut app, "end");
    assert!(row(&shown(&mut app), "gpu8 send").contains(" 100 %"), "{}", shown(&mut app));
    press(&mut app, "left");
    let before = at(&app).unwrap();
    assert!(before < 0.7646 && before > 0.74, "{before}");
    press(&mut app, "home . .");
    // The relay's flow begins after its latency and ends with the first stage.
    let end = told_plans()[2].1.flows[0].end;
    assert!((at(&app).unwrap() - end).abs() < 1e-9, "{:?}", at(&app));
    // What it let begin has its latency first: no bytes pass, and yet both are steps.
    press(&mut app, ".");
    assert!((at(&app).unwrap() - end - 40e-6).abs() < 1e-9, "{:?}", at(&app));
    press(&mut app, ", ,");
    assert!((at(&app).unwrap() - 40e-6).abs() < 1e-9, "{:?}", at(&app));
    press(&mut app, ", , ,");
    assert_eq!(at(&app), Some(0.0));
    assert!(row(&shown(&mut app), "host0 nic0 out  ").contains(" 0 %"));
    press(&mut app, "b");
    assert_eq!((at(&app), app.ui.replay.resource), (None, Some(0)));
    let screen = shown(&mut app);
    assert!(screen.contains("bottleneck: host0 nic0 out") && row(&screen, "host0 nic0 out  ").contains("100 %"), "{screen}");
}

#[test]
fn playing_moves_the_head_and_stops_at_the_end() {
    let mut app = holding(Level::TrueColor);
    press(&mut app, "space");
    assert!(app.lively() && app.ui.replay.head == Some(0.0), "from the beginning, if no time was chosen");
    assert!(app.tick(2.0));
    let slow = app.ui.replay.head.unwrap();
    assert!((slow - 0.2 * 0.7646).abs() < 1e-3, "a tenth of it a second: {slow}");
    press(&mut app, ">");
    app.tick(1.0);
    assert!((app.ui.replay.head.unwrap() - slow - 0.2 * 0.7646).abs() < 1e-3);
    press(&mut app, "space");
    assert!(!app.lively() && !app.tick(1.0));
    press(&mut app, "space");
    app.tick(100.0);
    assert!(!app.ui.replay.playing && app.ui.replay.head.unwrap() > 0.764);
    press(&mut app, "space");
    assert_eq!(app.ui.replay.head, Some(0.0), "from the beginning again");
}

#[test]
fn the_mouse_scrubs_and_chooses_whose_flows_are_shown() {
    let mut app = holding(Level::TrueColor);
    let line = app.hits.timeline.unwrap();
    let down = MouseEventKind::Down(MouseButton::Left);
    mouse(&mut app, down, (line.x, line.y + 2));
    assert_eq!(app.ui.replay.head, Some(0.0));
    mouse(&mut app, MouseEventKind::Drag(MouseButton::Left), (line.right() - 1, line.y + 2));
    assert!(app.ui.replay.head.unwrap() > 0.76);
    let (area, number) = app.hits.resources[2];
    mouse(&mut app, down, (area.x + 3, area.y));
    assert_eq!(app.ui.replay.resource, Some(number));
    let screen = shown(&mut app);
    assert!(screen.contains("▌gpu8 send") && screen.contains("its flows"), "{screen}");
    assert!(!screen.contains("│ 0→8") && screen.contains("│ 8→15"), "only those that load it: {screen}");
    mouse(&mut app, down, (area.x + 3, area.y));
    assert_eq!(app.ui.replay.resource, None, "a second click lets go");
    mouse(&mut app, MouseEventKind::ScrollDown, (area.x + 3, area.y));
    assert_eq!(app.ui.replay.resource, Some(0));
    let tab = app.hits.tabs.iter().find(|(_, tab)| *tab == Tab::Matrix).map(|(area, _)| (area.x, area.y)).unwrap();
    mouse(&mut app, down, tab);
    mouse(&mut app, down, (line.x + 5, line.y + 2));
    assert!(app.ui.replay.head.unwrap() > 0.76, "no timeline on another tab");
}

#[test]
fn two_plans_stand_on_the_same_time_and_their_difference_is_told() {
    let mut app = holding(Level::TrueColor);
    press(&mut app, "c c");
    let screen = shown(&mut app);
    for told in [
        "sharded is 1.38 × faster than relay",
        "both move 64 GiB",
        "host0 nic0 out binds both, for 524 ms in each; the rest of relay takes 241 ms, of sharded 30.1 ms",
        "relay  predicted 764 ms",
        "sharded  predicted 554 ms",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    // The same stage ends at the same column in both.
    let ends = |begins: &str| row(&screen, begins).chars().collect::<Vec<_>>().iter().rposition(|c| matches!(c, '━' | '┝')).unwrap();
    let (relay, sharded) = (ends("relay 0→8"), ends("shards 0-7"));
    assert!(relay.abs_diff(sharded) <= 1, "{screen}");
    app.ui.replay.other = Some(0);
    let screen = shown(&mut app);
    assert!(screen.contains("relay is 5.48 × faster than direct") && screen.contains("524 ms and 4.19 s"), "{screen}");
    press(&mut app, "p");
    assert!(app.ui.replay.at != app.ui.replay.other.unwrap_or(9));
    press(&mut app, "esc");
    assert_eq!(app.ui.replay.other, None);
}

#[test]
fn a_plan_is_run_only_when_the_question_is_answered() {
    let mut app = holding(Level::TrueColor);
    assert_eq!(press(&mut app, "e"), Effect::Nothing);
    assert!(shown(&mut app).contains("run this plan?"));
    assert_eq!(press(&mut app, "n"), Effect::Nothing);
    press(&mut app, "e");
    let Effect::Send(Command::Execute { name, transfers: Transfers::Traffic(traffic), repeats }) = press(&mut app, "y") else {
        panic!("no command")
    };
    assert_eq!((name.as_str(), traffic.flows.len()), ("relay", 8));
    assert!(repeats > 1);
    app.take(vec![Record { t: 99.0, event: Event::ExecutionStarted { name: "relay".to_owned() } }]);
    assert!(shown(&mut app).contains("running …"));
    assert_eq!(press(&mut app, "e"), Effect::Nothing);
    assert!(shown(&mut app).contains("relay is running: wait for it"));
    let (_, records) = two_hosts();
    app.take(vec![records.last().unwrap().clone()]);
    assert!(shown(&mut app).contains("relay was run: it took 775 ms"), "{}", shown(&mut app));
    // A smaller job, and a recorded one.
    for (session, mode, why) in [(boxed(), Mode::Live, "of 16 ranks, the job has 8"), (two_hosts(), Mode::Recorded, "was recorded")] {
        let mut app = crate::tui::fixture::app(session, Tab::Replay, Level::TrueColor, mode);
        app.replays.hold(plans());
        frame(&mut app, 120, 40);
        press(&mut app, "e");
        assert!(app.ui.popups.is_empty() && shown(&mut app).contains(why), "{}", shown(&mut app));
    }
}

#[test]
fn a_path_that_is_typed_is_read() {
    let mut app = app(two_hosts(), Tab::Replay, Level::TrueColor, Mode::Live);
    press(&mut app, "o");
    for c in "my plan.json".chars() {
        let key: Key = if c == ' ' { "space".parse().unwrap() } else { c.to_string().parse().unwrap() };
        app.input(&Input::Key(KeyEvent::from(key)));
    }
    let screen = shown(&mut app);
    assert!(screen.contains("plan file my plan.json") && screen.contains("type the path of a plan's file"), "{screen}");
    assert!(screen.contains("enter takes it  esc drops it") && !screen.contains("q quit"), "{screen}");
    assert_eq!(press(&mut app, "enter"), Effect::Send(Command::LoadPlan { path: "my plan.json".into() }));
    assert_eq!(press(&mut app, "o enter"), Effect::Nothing);
}

#[test]
fn a_thousand_rounds_are_shown_stretched_and_stepped_through() {
    let mut app = app(two_hosts(), Tab::Replay, Level::TrueColor, Mode::Live);
    app.replays.hold(vec![rounds(4, 1000)]);
    let screen = shown(&mut app);
    assert!(screen.contains("stage ") && screen.contains("of 1,000") && screen.contains("1,000 ×"), "{screen}");
    press(&mut app, "home z z z");
    let screen = shown(&mut app);
    assert!(screen.contains("64 ×") && screen.contains("1/1000 round 0"), "{screen}");
    press(&mut app, "end");
    assert!(shown(&mut app).contains("1000/1000 round 999"), "{}", shown(&mut app));
    press(&mut app, "Z Z Z Z");
    assert_eq!(app.ui.replay.zoom, 0);
}

#[test]
fn links_are_lit_as_bytes_pass() {
    let mut app = app(boxed(), Tab::Replay, Level::TrueColor, Mode::Live);
    let (mut traffic, replay) = told_plans().remove(2);
    // The same between ranks of one host.
    for flow in &mut traffic.flows {
        (flow.from, flow.to) = (flow.from % 8, (flow.to + 1) % 8);
    }
    traffic.ranks = 8;
    app.replays.hold(vec![Reel::new(traffic, replay)]);
    frame(&mut app, 120, 40);
    press(&mut app, "r");
    assert_eq!(app.ui.tab, Tab::Topology);
    let screen = text(&frame(&mut app, 200, 56));
    let lit = |name: &str| screen.lines().any(|line| line.contains(name) && line.contains("▶ 16.4 GB/s"));
    assert!(lit("GPU 0") && lit("GPU 1") && !lit("GPU 5"), "{screen}");
    assert!(screen.contains("relay at 262 ms"), "{screen}");
    press(&mut app, "esc");
    assert!(!text(&frame(&mut app, 200, 56)).contains("▶ 16.4"));
}

/// A plan of a single flow of 1 GiB.
fn plan(name: &str, from: usize, to: usize) -> Record {
    let flow = Flow { stage: 0, from, to, bytes: 1 << 30, messages: 1, after: Vec::new(), offset: None, staged: Staged::default() };
    let stages = vec![Stage { name: "all".to_owned(), waits: true }];
    let traffic = Traffic { name: name.to_owned(), ranks: 8, stages, flows: vec![flow], ..Traffic::default() };
    Record { t: 99.0, event: Event::PlanLoaded { traffic } }
}

/// A screen that prices what it is given, at once.
fn pricing(session: Session, plans: Vec<Record>) -> App {
    let mut app = app(session, Tab::Replay, Level::TrueColor, Mode::Live);
    app.replays.let_go();
    app.take(plans);
    frame(&mut app, 120, 40);
    app
}

#[test]
fn a_loaded_plan_is_priced_with_what_was_measured() {
    let mut app = pricing(b70(), vec![plan("slow", 1, 3), plan("fast", 2, 0)]);
    let screen = shown(&mut app);
    assert!(screen.contains("replay · fast · plan 2 of 2"), "what came last is looked at: {screen}");
    // 53.9 and 3.6 GB/s were measured.
    let seconds = |app: &App| app.replays.reel(app.ui.replay.at).unwrap().replay.seconds;
    let gib = f64::from(1 << 30);
    assert!((seconds(&app) / (gib / 53.9e9) - 1.0).abs() < 0.03, "{}", seconds(&app));
    press(&mut app, "p");
    assert!((seconds(&app) / (gib / 3.6e9) - 1.0).abs() < 0.03, "{}", seconds(&app));
    // One of the same name takes the place of the one before.
    app.take(vec![plan("slow", 2, 0)]);
    frame(&mut app, 120, 40);
    assert_eq!(app.replays.shown().len(), 2);
    assert!((seconds(&app) / (gib / 53.9e9) - 1.0).abs() < 0.03, "{}", seconds(&app));
}

#[test]
fn what_has_no_price_says_why() {
    let mut app = pricing((header("new", &["a"; 8]), Vec::new()), vec![plan("early", 0, 1)]);
    let screen = shown(&mut app);
    assert!(screen.contains("early has no price") && screen.contains("nothing is measured yet: enter on tab 2"), "{screen}");
    assert_eq!(press(&mut app, "e"), Effect::Nothing);
    assert!(app.ui.popups.is_empty() && shown(&mut app).contains("no plan is priced"));
    // Once it has a price nobody says so any more.
    app.replays.hold(plans());
    assert!(!shown(&mut app).contains("no plan is priced"));
}

#[test]
fn a_thread_prices_while_the_screen_goes_on_and_news_are_priced_when_it_is_quiet() {
    let mut app = app(b70(), Tab::Replay, Level::TrueColor, Mode::Live);
    app.replays.let_go();
    app.share = Some(std::time::Duration::from_millis(5));
    app.take(vec![plan("fast", 2, 0)]);
    let until = |app: &mut App, what: &dyn Fn(&App) -> bool| {
        let begun = std::time::Instant::now();
        while !what(app) {
            assert!(begun.elapsed().as_secs() < 60);
            app.tick(0.05);
            frame(app, 120, 40);
        }
    };
    until(&mut app, &|app| app.replays.reel(0).is_some());
    until(&mut app, &|app| !app.replays.busy());
    let made = app.replays.made();
    for _ in 0..5 {
        app.tick(0.05);
        frame(&mut app, 120, 40);
    }
    assert_eq!(app.replays.made(), made, "what is made stays");
    // The same pair again, slower.
    let (_, records) = b70();
    let again = records
        .iter()
        .rev()
        .find(|record| matches!(&record.event, Event::ProbeDone { samples, .. } if (samples[0].from, samples[0].to) == (2, 0)));
    app.apply(again.unwrap());
    assert!(app.replays.stale(0) && shown(&mut app).contains("samples came in since"), "{}", shown(&mut app));
    until(&mut app, &|app| !app.replays.stale(0));
}

#[test]
fn plans_that_the_screen_is_opened_with_are_shown_the_first_beside_the_second() {
    let (session, records) = (b70(), vec![plan("slow", 1, 3), plan("fast", 2, 0), plan("third", 0, 1)]);
    let measured = session.1.clone();
    let open = |app: &mut App, records: &[Record]| app.ui.open_plans(records.iter().rev().map(std::borrow::Cow::Borrowed));
    for mode in [Mode::Live, Mode::Recorded] {
        let mut app = crate::tui::fixture::app(session.clone(), Tab::Sweep, Level::TrueColor, mode);
        app.replays.let_go();
        open(&mut app, &measured);
        assert_eq!(app.ui.tab, Tab::Sweep, "nobody asked for a plan");
        open(&mut app, &[&measured[..], &records[..1]].concat());
        open(&mut app, &records[1..]);
        app.take(records.clone());
        let screen = shown(&mut app);
        assert_eq!((app.ui.tab, app.ui.replay.other), (Tab::Replay, Some(1)), "{screen}");
        assert!(screen.contains("replay · slow · plan 1 of 3") && screen.contains("fast is "), "{screen}");
    }
    // A plan that was run before, in a session that went on: what was measured since is looked at.
    let mut app = app(session, Tab::Sweep, Level::TrueColor, Mode::Live);
    open(&mut app, &[&records[..1], &measured[..]].concat());
    assert_eq!(app.ui.tab, Tab::Sweep);
}

/// The relay with other names of its resources.
fn named(name: impl Fn(usize) -> String) -> App {
    let mut app = app(two_hosts(), Tab::Replay, Level::TrueColor, Mode::Live);
    let plan = |(traffic, mut replay): (Traffic, crate::plan::Replay)| {
        for (number, load) in replay.resources.iter_mut().enumerate() {
            load.resource.name = name(number);
        }
        Reel::new(traffic, replay)
    };
    app.replays.hold(told_plans().into_iter().map(plan).collect());
    app
}

#[test]
fn what_differs_in_names_stays_readable() {
    let name = |number: usize| format!("receive side of rank {number} within its host");
    let mut app = named(name);
    for (width, height) in [(80, 24), (120, 40), (160, 44)] {
        let screen = text(&frame(&mut app, width, height));
        let begins: Vec<&str> = screen.lines().filter(|line| line.contains("│ rece")).collect();
        let names: std::collections::HashSet<String> = begins.iter().map(|line| line.chars().take(24).collect()).collect();
        assert!(begins.len() > 3 && names.len() == begins.len(), "{width}: {screen}");
    }
    // Where they fit they are whole, rather than a bar.
    let mut app = named(|number| format!("send side of rank {number}"));
    let screen = text(&frame(&mut app, 80, 24));
    assert!(screen.contains("send side of rank 0 ") && screen.contains("send side of rank 3 "), "{screen}");
    press(&mut app, "c");
    let screen = text(&frame(&mut app, 120, 40));
    assert!(screen.contains("◀ send side of rank 0 524 ms"), "{screen}");
}

#[test]
fn a_narrow_screen_tells_what_its_numbers_are_and_where_something_is_missing() {
    let mut app = holding(Level::TrueColor);
    let screen = text(&frame(&mut app, 80, 30));
    assert!(row(&screen, "from → to").contains("rate") && !row(&screen, "from → to").contains("bytes"), "{screen}");
    press(&mut app, "p p");
    let screen = text(&frame(&mut app, 60, 24));
    let warned = screen.lines().position(|line| line.contains('▲')).unwrap();
    assert!(screen.lines().nth(warned + 1).unwrap().contains('…'), "{screen}");
    press(&mut app, "p");
    press(&mut app, "p j");
    let screen = text(&frame(&mut app, 160, 32));
    assert!(screen.contains("loaded by ") && screen.contains(" more "), "{screen}");
}

#[test]
fn help_begins_with_the_keys_of_this_tab() {
    let mut app = holding(Level::TrueColor);
    press(&mut app, "?");
    let screen = shown(&mut app);
    assert!(screen.find("Replay tab").unwrap() < screen.find("everywhere").unwrap_or(usize::MAX), "{screen}");
}

#[test]
fn without_a_plan_the_strategies_of_this_machine_are_offered_and_one_is_looked_at() {
    let mut app = pricing(b70(), Vec::new());
    let screen = shown(&mut app);
    for told in ["strategies", "trainers  0-3", "engines   4-7", "8GiB", "predicted  ", "relay", "o reads a plan's file"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    let seconds = |app: &App| app.replays.ranked().unwrap().ranking.as_ref().unwrap().rows[0].seconds;
    let before = seconds(&app);
    // Another model: half of it takes half as long, if latency is nothing.
    press(&mut app, "down down enter ctrl-u 4 G enter");
    assert!((seconds(&app) / before - 0.5).abs() < 0.05, "{} of {before}", seconds(&app));
    press(&mut app, "down down down enter");
    let screen = shown(&mut app);
    assert!(screen.contains("◀ bottleneck") && screen.contains("predicted "), "{screen}");
    let reel = app.ui.replay.reel(&app.replays).unwrap();
    assert!((reel.replay.seconds / seconds(&app) - 1.0).abs() < 1e-6, "the same price in both");
    press(&mut app, "s");
    assert!(shown(&mut app).contains("s shows 1 plan"), "{}", shown(&mut app));
    // A second one, then both beside each other.
    press(&mut app, "down enter c");
    assert_eq!((app.replays.shown().len(), app.ui.replay.other), (2, Some(0)));
    // What is wrong is told at its line.
    press(&mut app, "s home enter ctrl-u 9 enter");
    assert!(row(&shown(&mut app), "trainers").contains('9'), "{}", shown(&mut app));
    assert!(!shown(&mut app).contains("predicted  "), "{}", shown(&mut app));
}

#[test]
fn replays_look_as_they_did() {
    let sizes = [(60, 18), (80, 24), (120, 40), (200, 56)];
    for (name, keys) in
        [("replay", ""), ("replay-chosen", "j j j"), ("replay-compared", "c c home l l l l l l l l"), ("replay-strategies", "s end")]
    {
        for ((width, height), level) in
            sizes.into_iter().flat_map(|size| [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None].map(|level| (size, level)))
        {
            if level != Level::TrueColor && (width != 80 || name != "replay") {
                continue;
            }
            let mut app = holding(level);
            if name == "replay-strategies" {
                let (job, ranking) = ranking(&app.model.header.topology);
                app.replays.hold_ranking(job, Ok(ranking));
            }
            press(&mut app, keys);
            insta::assert_snapshot!(format!("{name}-{width}x{height}-{level:?}"), styled(&frame(&mut app, width, height)));
        }
    }
}

#[test]
#[ignore = "tells how long frames take; benches/screen.rs does it with optimizations"]
fn frames_of_a_thousand_rounds() {
    let mut app = app(two_hosts(), Tab::Replay, Level::TrueColor, Mode::Live);
    app.replays.hold(vec![rounds(16, 1000)]);
    frame(&mut app, 200, 56);
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        app.input(&Input::Key("left".parse::<Key>().unwrap().into()));
        frame(&mut app, 200, 56);
    }
    println!("a step and a frame: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3 / 50.0);
}

/// `PICTURES=/tmp/p cargo test --lib replay_pictures -- --ignored`, then `rsvg-convert`.
#[test]
#[ignore = "writes pictures for a person to look at"]
fn replay_pictures() {
    let folder = std::env::var("PICTURES").unwrap();
    for (name, keys) in [
        ("strategies", "s end up up"),
        ("plain", ""),
        ("chosen", "j j j"),
        ("compared", "c c"),
        ("warned", "p p"),
        ("asked", "e"),
        ("rounds", ""),
    ] {
        for ((width, height), level) in
            [(80, 24), (120, 40), (200, 56)].into_iter().flat_map(|size| [Level::TrueColor, Level::None].map(|level| (size, level)))
        {
            let mut app = holding(level);
            if name == "strategies" {
                let (job, ranking) = ranking(&app.model.header.topology);
                app.replays.hold_ranking(job, Ok(ranking));
            }
            if name == "rounds" {
                app.replays.hold(vec![rounds(16, 1000)]);
            }
            press(&mut app, keys);
            let canvas = crate::tui::picture::canvas(&frame(&mut app, width, height), app.theme());
            let title = format!("replay-{name}-{width}x{height}-{level:?}");
            std::fs::write(format!("{folder}/{title}.svg"), crate::export::svg::svg(&canvas, &title)).unwrap();
        }
    }
}
