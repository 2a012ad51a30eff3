//! The Findings tab, and what other tabs show of the chosen finding: keys in, words and pictures out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::Modifier;

use super::{Desk, FindingsSight, Lit, Told};
use crate::diagnose::Severity;
use crate::matrix::Metric;
use crate::ramp::Level;
use crate::sample::{Pattern, Sample};
use crate::session::{Change, Command, Event, Model, Record};
use crate::topology::{Efficiency, PathClass};
use crate::tui::fixture::{app, b70, boxed, found, frame, header, narrow, press, shown, spread, text, three};
use crate::tui::{App, Effect, Mode, Tab};

fn holding(session: crate::tui::fixture::Session, told: Told, tab: Tab) -> App {
    let mut app = app(session, tab, Level::TrueColor, Mode::Live);
    app.desk.hold(Some(told));
    frame(&mut app, 120, 40);
    app
}

fn click(app: &mut App, (column, row): (u16, u16)) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.input(&Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    frame(app, 120, 40);
}

#[test]
fn the_list_is_told_with_its_figures_and_the_chosen_one_with_its_causes_and_its_test() {
    let mut app = holding(b70(), found(), Tab::Matrix);
    assert!(shown(&mut app).contains("6 Findings 2 "), "two to act upon, notes not counted: {}", shown(&mut app));
    press(&mut app, "6");
    let screen = shown(&mut app);
    for told in [
        "findings · 1 problem · 1 warning · 2 notes",
        "▲  1  0→2 gives 7.9, 2→0 53.9 GB/s",
        "6.8 × │",
        "○  4  local copies fit badly",
        "▲ 1 problem · 6.8 ×",
        "likely causes, likeliest first",
        "1 ACS or the IOMMU sends peers' bytes through the processor",
        "against  every link of the way is x16 Gen5",
        "send 0→4 and 6→2 by themselves",
        "t  run it  about 1.20 s, 6 repeats of 256 MiB",
        "56 pairs, 8 copies, 32 fans and sets at 256 MiB",
        "1 alarm held back: s",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    press(&mut app, "j");
    let screen = shown(&mut app);
    for told in
        ["● 2 warning · 3.6–6.0 GB/s", "what tests told", "✓ alone and beside others alike", "cannot be run here: this mover cannot read"]
    {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert!(!screen.contains("run it"), "{screen}");
    press(&mut app, "end k home G");
    assert_eq!(app.ui.findings.at, 3);
}

#[test]
fn a_small_screen_scrolls_the_reasons_and_keeps_the_next_step_in_sight() {
    for (width, height) in [(60, 18), (80, 24)] {
        let mut app = holding(b70(), found(), Tab::Findings);
        let mut seen = text(&frame(&mut app, width, height));
        assert!(seen.contains("t  run it") && seen.contains("0→2 gives 7.9"), "{seen}");
        for _ in 0..20 {
            app.input(&Input::Key("J".parse::<crate::tui::keys::Key>().unwrap().into()));
            let screen = text(&frame(&mut app, width, height));
            assert!(screen.contains("t  run it"), "{screen}");
            seen.push_str(&screen);
        }
        assert!(seen.contains("every link of the way is x16 Gen5"), "{seen}");
    }
}

#[test]
fn a_key_lights_the_finding_s_pairs_in_the_matrix_at_every_colour_level_and_another_drops_them() {
    for level in [Level::TrueColor, Level::Ansi256, Level::Ansi16, Level::None] {
        let mut app = app(b70(), Tab::Findings, level, Mode::Live);
        app.desk.hold(Some(found()));
        frame(&mut app, 120, 40);
        press(&mut app, "m");
        assert_eq!((app.ui.tab, app.ui.matrix.cursor), (Tab::Matrix, (0, 2)));
        let screen = frame(&mut app, 120, 40);
        let words = text(&screen);
        assert!(words.contains("▲ finding 1"), "the legend: {words}");
        assert_eq!(words.matches("▲ finding 1").count(), 2, "and the inspector: {words}");
        // The five pairs, each with a mark, but for the one under the cursor, whose bracket stands there.
        let lit = screen.content.iter().enumerate().filter(|(_, cell)| cell.modifier.contains(Modifier::UNDERLINED));
        let numbers: String = lit.map(|(_, cell)| cell.symbol()).collect();
        for number in ["7.90", "8.30", "5.50", "3.60"] {
            assert!(numbers.contains(number), "{level:?} {number}: {numbers}\n{words}");
        }
        assert_eq!(numbers.split_whitespace().collect::<String>().len(), 5 * 4, "{level:?}: {numbers}");
        let marked = words.lines().filter(|line| line.contains('│')).map(|line| line.split('│').nth(1).unwrap().matches('▲').count());
        assert!(marked.sum::<usize>() >= 4, "{words}");
        press(&mut app, "esc");
        assert!(app.ui.findings.lit == Lit::Nothing && text(&frame(&mut app, 120, 40)).matches("▲ finding 1").count() == 1, "{level:?}");
    }
}

#[test]
fn pairs_of_many_ranks_are_lit_as_pixels_and_as_blocks() {
    for (ranks, level) in [(40, Level::TrueColor), (40, Level::None), (160, Level::TrueColor)] {
        let plain = |lit: bool| {
            let mut app = app(spread(ranks, 8), Tab::Matrix, level, Mode::Live);
            let mut told = found();
            told.diagnosis.findings[0].cells = (1..ranks).map(|to| (0, to)).collect();
            app.desk.hold(Some(Told::with(told.diagnosis, told.seen, |_| &[])));
            app.ui.matrix.put((ranks - 1, 0), ranks);
            frame(&mut app, 80, 24);
            app.ui.findings.lit = if lit { Lit::Finding } else { Lit::Nothing };
            (frame(&mut app, 80, 24), app)
        };
        let (dark, _) = plain(false);
        let (lit, app) = plain(true);
        let changed: Vec<(u16, u16)> = lit.area.positions().filter(|&at| lit[at] != dark[at]).map(|at| (at.x, at.y)).collect();
        let in_matrix = changed.iter().filter_map(|&(x, y)| app.hits.matrix.at(x, y, false)).collect::<Vec<_>>();
        let blocks = app.view().grid.side(app.hits.matrix.level());
        assert!((blocks - 1..=blocks * 2).contains(&in_matrix.len()), "{} of {blocks} at {level:?}", in_matrix.len());
        assert!(in_matrix.iter().all(|hit| hit.from.start < 8), "only the first row: {in_matrix:?}");
    }
}

#[test]
fn a_key_lights_the_finding_s_link_in_the_tree_and_on_the_route() {
    let mut app = holding(boxed(), narrow(), Tab::Findings);
    press(&mut app, "r");
    assert_eq!((app.ui.tab, app.ui.matrix.cursor), (Tab::Topology, (2, 0)));
    let screen = text(&frame(&mut app, 200, 56));
    assert!(screen.lines().any(|line| line.contains("▌") && line.contains("GPU 2") && line.contains("▲ finding 1")), "{screen}");
    assert!(screen.contains("▲ GPU 2 → switch 07:00.0  ◀ finding 1"), "{screen}");
    // The way back leads over the same link.
    press(&mut app, "x");
    let back = text(&frame(&mut app, 200, 56));
    assert!(back.contains("▲ switch 07:00.0 → GPU 2  ◀ finding 1"), "{back}");
    press(&mut app, "esc");
    assert!(!text(&frame(&mut app, 200, 56)).contains("finding 1"));
    // Without a link it goes to the ranks, or says that there is nothing to go to.
    let mut app = holding(b70(), found(), Tab::Findings);
    press(&mut app, "r");
    assert!(app.ui.tab == Tab::Findings && shown(&mut app).contains("nothing is known of the hardware"), "{}", shown(&mut app));
}

#[test]
fn the_matrix_says_what_was_found_and_leads_there_and_back() {
    let mut app = holding(b70(), found(), Tab::Matrix);
    let screen = shown(&mut app);
    assert!(screen.contains("findings · 256 MiB") && screen.contains("▲ 1  0→2 gives 7.9"), "{screen}");
    assert!(!screen.contains("of typical"), "one voice: {screen}");
    // Marks of slow ranks are those of the findings.
    assert!(screen.lines().any(|line| line.contains("│▲") && line.contains(" 1 ")), "{screen}");
    press(&mut app, "n n");
    assert_eq!(app.ui.matrix.cursor, (1, 3), "the first pair of the second finding");
    press(&mut app, "f");
    assert_eq!((app.ui.tab, app.ui.findings.at), (Tab::Findings, 0), "of two findings the graver one");
    // A pair of none says so.
    press(&mut app, "3");
    app.ui.matrix.put((7, 6), 8);
    press(&mut app, "f");
    assert!(app.ui.tab == Tab::Matrix && shown(&mut app).contains("no finding is of 7→6"));
    // Another size is another matter: there what stands out is told.
    press(&mut app, "S");
    assert!(shown(&mut app).contains("what stands out"), "{}", shown(&mut app));
}

#[test]
fn alarms_that_were_held_back_are_told_with_their_reason() {
    let mut app = holding(b70(), found(), Tab::Findings);
    press(&mut app, "s");
    let screen = shown(&mut app);
    for told in ["held back · 1 alarm", "GPU 5's link says Gen1", "because", "links at rest say that"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert_eq!(press(&mut app, "t"), Effect::Nothing);
    press(&mut app, "s");
    assert!(app.ui.findings.sight == FindingsSight::Findings && shown(&mut app).contains("likely causes"));
}

#[test]
fn an_empty_list_says_what_was_looked_at_and_what_would_tell_more() {
    let mut app = app(b70(), Tab::Findings, Level::TrueColor, Mode::Live);
    let mut told = found();
    told.diagnosis.findings.clear();
    told.seen.together = 0;
    app.desk.hold(Some(Told::with(told.diagnosis, told.seen, |_| &[])));
    let screen = shown(&mut app);
    for words in [
        "nothing stands out",
        "looked at: 56 pairs, 8 copies at 256 MiB, of 3 sizes",
        "both ways at once (duplex), fans (fan_in, fan_out) (key 2)",
        "1 alarm held back",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("6 Findings 0"), "{screen}");
    let mut app = crate::tui::fixture::live((header("new", &["a", "b"]), Vec::new()), Tab::Findings);
    app.desk.let_go();
    assert!(shown(&mut app).contains("nothing measured yet: key 2, then enter"), "{}", shown(&mut app));
}

#[test]
fn the_mouse_chooses_and_a_second_click_goes_to_the_pairs() {
    let mut app = holding(b70(), found(), Tab::Findings);
    let place = |app: &App, at: usize| app.hits.findings.iter().find(|(_, of)| *of == at).map(|(area, _)| (area.x + 8, area.y)).unwrap();
    let second = place(&app, 1);
    click(&mut app, second);
    assert_eq!((app.ui.findings.at, app.ui.tab), (1, Tab::Findings));
    click(&mut app, second);
    assert_eq!((app.ui.matrix.cursor, app.ui.tab), ((1, 3), Tab::Matrix));
    press(&mut app, "6 home");
    let words = app
        .hits
        .actions
        .iter()
        .find(|(_, action)| *action == crate::tui::keys::Action::ShowCells)
        .map(|(area, _)| (area.x, area.y))
        .unwrap();
    click(&mut app, words);
    assert_eq!((app.ui.matrix.cursor, app.ui.tab), ((0, 2), Tab::Matrix));
}

#[test]
fn the_cursor_stays_with_its_finding_when_others_come_before_it() {
    let mut app = holding(b70(), found(), Tab::Findings);
    press(&mut app, "j j");
    let mut told = found();
    told.diagnosis.findings.swap(0, 2);
    app.desk.hold(Some(Told::with(told.diagnosis, told.seen, |_| &[])));
    frame(&mut app, 120, 40);
    assert_eq!(app.ui.findings.at, 0, "what was third is now first");
    app.desk.hold(Some(Told::default()));
    frame(&mut app, 120, 40);
    assert!(app.ui.findings.lit == Lit::Nothing && app.ui.findings.at == 0);
}

/// What a thread makes is what would be made at once, and the model is free as soon as it has been read.
#[test]
fn a_thread_makes_the_same_diagnosis_while_frames_go_on() {
    let (header, records) = spread(72, 8);
    let mut model = Model::new(header);
    for record in &records {
        model.apply(record);
    }
    let mut model = Arc::new(model);
    let efficiency = Efficiency::default();
    let mut desk = Desk::new(&efficiency);
    desk.settle(&model, true, false);
    assert!(!desk.busy() && desk.told().is_none(), "while samples come in nothing is begun");
    desk.settle(&model, false, false);
    assert!(desk.busy() && desk.reads());
    desk.release();
    assert!(!desk.reads());
    assert!(Arc::get_mut(&mut model).is_some(), "the thread holds on to the model");
    let begun = Instant::now();
    while !desk.tick(0.05, 72, false) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(desk.current() && !desk.busy());
    let mut whole = Desk::new(&efficiency);
    whole.settle(&model, true, true);
    let told = |desk: &Desk| desk.told().map(|told| (told.diagnosis.clone(), told.seen)).unwrap();
    assert_eq!(told(&desk), told(&whole));
    assert_eq!(told(&whole).1.pairs, 72 * 71);
    // New samples ask for a new one; a new sweep forgets the old one.
    desk.follow(&Change::Cells { cells: Vec::new(), bytes: 1 });
    assert!(!desk.current() && desk.told().is_some());
    desk.follow(&Change::Cleared);
    assert!(desk.told().is_none());
}

#[test]
fn few_ranks_are_diagnosed_within_a_frame_now_and_then_while_a_sweep_runs() {
    let mut app = app(three(), Tab::Sweep, Level::TrueColor, Mode::Live);
    app.share = Some(Duration::from_millis(30));
    app.desk.let_go();
    frame(&mut app, 120, 40);
    assert!(app.desk.current() && app.desk.told().is_some(), "the first at once");
    // However busy the machine is that tests run on.
    app.desk.took = Some(Duration::from_millis(1));
    app.desk.changed();
    app.tick(1.0);
    frame(&mut app, 120, 40);
    assert!(!app.desk.current(), "not every frame");
    assert!(app.tick(2.5), "a frame is due");
    frame(&mut app, 120, 40);
    assert!(app.desk.current());
}

#[test]
fn severities_are_told_by_marks_that_differ_without_colours() {
    let marks: std::collections::BTreeSet<&str> =
        [Severity::Note, Severity::Warning, Severity::Problem].map(super::mark).into_iter().collect();
    assert_eq!(marks.len(), 3);
    let mut app = app(b70(), Tab::Findings, Level::None, Mode::Live);
    app.desk.hold(Some(found()));
    app.ui.matrix.metric = Metric::Bandwidth;
    let screen = shown(&mut app);
    assert!(screen.contains('▲') && screen.contains('●') && screen.contains('○'), "{screen}");
}

#[test]
fn a_key_runs_the_test_and_the_finding_shows_it_until_it_is_done() {
    let mut app = holding(b70(), found(), Tab::Findings);
    let test = found().get(0).unwrap().next.clone().unwrap().test;
    for key in ["t", "enter"] {
        let effect = press(&mut app, key);
        assert_eq!(effect, Effect::Send(Command::RunTest { finding: "asymmetry 0→2".to_owned(), test: test.clone() }), "{key}");
    }
    let (finding, test) = ("asymmetry 0→2".to_owned(), test);
    app.take(vec![Record { t: 90.0, event: Event::TestStarted { finding: finding.clone(), test: test.clone() } }]);
    let screen = shown(&mut app);
    for told in ["● test of a finding", "testing …", "the test runs …", "A  stop it"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert!(!screen.contains("run it"), "{screen}");
    assert_eq!(press(&mut app, "t"), Effect::Nothing, "one at a time");
    assert_eq!(press(&mut app, "A"), Effect::Send(Command::Abort));
    // What it brought asks for a new diagnosis.
    let before = app.desk.version();
    let sample = Sample { set: Some(0), seconds: Some(0.01), ..Sample::blank(Pattern::Custom, 0, 4, 256 << 20, PathClass::IntraNode) };
    app.take(vec![Record { t: 91.0, event: Event::TestDone { finding, test, samples: vec![sample], reason: String::new() } }]);
    assert_eq!((app.desk.version(), app.model.tests.len()), (before + 1, 1));
    assert!(shown(&mut app).contains("t  run it"), "{}", shown(&mut app));
}

#[test]
fn a_test_that_cannot_be_run_sends_nothing_and_says_why() {
    let mut app = holding(b70(), found(), Tab::Findings);
    assert_eq!(press(&mut app, "j t"), Effect::Nothing);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal && notice.text.contains("this mover cannot read")));
    assert_eq!(press(&mut app, "j t"), Effect::Nothing);
    assert!(shown(&mut app).contains("no test would tell more"), "{}", shown(&mut app));
    let mut app = crate::tui::fixture::app(b70(), Tab::Findings, Level::TrueColor, Mode::Recorded);
    app.desk.hold(Some(found()));
    assert!(shown(&mut app).contains("it needs the job"), "{}", shown(&mut app));
    assert_eq!(press(&mut app, "t"), Effect::Nothing);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal));
}

/// The box of `b70` as it was before 0→4 became half as fast.
fn slowed() -> App {
    let (header, records) = b70();
    let before = folded(&(header.clone(), records.clone()));
    // Four messages at 27.3 GB/s, each once more; what a message takes to begin stays the same.
    let slower = |record: &Record| {
        let mut record = record.clone();
        if let Event::ProbeDone { samples, .. } = &mut record.event {
            for sample in samples.iter_mut().filter(|sample| (sample.from, sample.to) == (0, 4)) {
                sample.seconds = sample.seconds.map(|seconds| seconds + 4.0 * sample.bytes as f64 / 27.3e9);
            }
        }
        record
    };
    let mut app = app((header, records.iter().map(slower).collect()), Tab::Findings, Level::TrueColor, Mode::Recorded);
    app.compare_with(before);
    app.desk.let_go();
    app
}

fn folded((header, records): &crate::tui::fixture::Session) -> Model {
    let mut model = Model::new(header.clone());
    for record in records {
        model.apply(record);
    }
    model
}

#[test]
fn what_changed_since_another_session_is_told_in_words_and_shown_in_the_matrix() {
    let mut app = slowed();
    let screen = shown(&mut app);
    for told in [
        "what changed since b70-8",
        "↓  1  0→4",
        "-50 %",
        "56 pairs compared",
        "change of bandwidth, % · peer · since b70-8",
        "bandwidth of pairs alone: after over before 0.5",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    press(&mut app, "m");
    assert_eq!((app.ui.tab, app.ui.matrix.cursor, app.ui.matrix.metric), (Tab::Matrix, (0, 4), Metric::Change));
    let screen = shown(&mut app);
    for told in ["↓ change 1", "change    -50 %, beyond noise", "+100 %"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    // What did not change is in the colour of no change, and the metric goes round.
    press(&mut app, "l");
    assert!(shown(&mut app).contains("change    0.0 %, within noise"), "{}", shown(&mut app));
    press(&mut app, "m");
    assert_eq!(app.ui.matrix.metric, Metric::Bandwidth);
    // Back to the findings of this session alone, and to what changed again.
    press(&mut app, "6 c");
    assert!(app.ui.findings.sight == FindingsSight::Findings && !shown(&mut app).contains("what changed since"), "{}", shown(&mut app));
    press(&mut app, "c");
    assert!(app.ui.findings.sight == FindingsSight::Changes && app.ui.matrix.metric == Metric::Change);
}

#[test]
fn where_nothing_changed_the_screen_says_so_and_without_another_session_how_to_name_one() {
    let mut app = app(b70(), Tab::Findings, Level::TrueColor, Mode::Recorded);
    app.compare_with(folded(&b70()));
    app.desk.let_go();
    let screen = shown(&mut app);
    assert!(screen.contains("no change beyond noise") && screen.contains("56 pairs compared"), "{screen}");
    press(&mut app, "m");
    assert!(app.ui.tab == Tab::Findings && shown(&mut app).contains("this change is of no pair"));
    // Of other hosts nothing compares.
    let mut app = crate::tui::fixture::app(b70(), Tab::Findings, Level::TrueColor, Mode::Recorded);
    app.compare_with(folded(&three()));
    app.desk.let_go();
    assert!(shown(&mut app).contains("no rank is in both"), "{}", shown(&mut app));
    let mut app = holding(b70(), found(), Tab::Findings);
    press(&mut app, "c");
    assert!(shown(&mut app).contains("toposcope open SESSION --against OTHER"), "{}", shown(&mut app));
    app.ui.matrix.metric = Metric::Spread;
    press(&mut app, "3 m");
    assert_eq!(app.ui.matrix.metric, Metric::Bandwidth, "there is no change to show");
}
