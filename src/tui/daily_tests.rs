//! What every tab has: commands by name, sessions, the clipboard, themes that change.

use std::collections::BTreeMap;

use crossterm::event::Event as Input;

use super::browser::entry;
use super::feed::{ShelfTold, Wish};
use super::fixture::{app, b70, boxed, found, frame, header, lab, press, text};
use super::state::Popup;
use super::{App, Effect, Mode, Tab};
use crate::matrix::Metric;
use crate::ramp::Level;
use crate::session::Model;
use crate::session::store::shelf::State;

fn live(tab: Tab) -> App {
    app(b70(), tab, Level::TrueColor, Mode::Live)
}

/// Type a command, and run it.
fn command(app: &mut App, line: &str) -> Effect {
    press(app, ":");
    app.input(&Input::Paste(line.to_owned()));
    press(app, "enter")
}

fn copied(app: &mut App) -> String {
    let Effect::Copy(text) = press(app, "y") else { panic!("nothing was copied: {:?}", app.ui.notice) };
    text
}

#[test]
fn commands_go_where_they_say() {
    let mut app = live(Tab::Session);
    command(&mut app, "metric asymmetry");
    assert_eq!((app.ui.tab, app.ui.matrix.metric), (Tab::Matrix, Metric::Asymmetry));
    command(&mut app, "size 1MiB");
    assert_eq!(app.ui.matrix.size, Some(1 << 20));
    command(&mut app, "tab fits");
    assert_eq!(app.ui.tab, Tab::Fits);
    command(&mut app, "theme light");
    assert_eq!(app.theme().name(), "light");
    // An action goes to the tab that it is of.
    command(&mut app, "transpose");
    assert_eq!((app.ui.tab, app.ui.matrix.transpose), (Tab::Matrix, true));
    assert_eq!(command(&mut app, "redraw"), Effect::Redraw);
    assert!(app.ui.popups.is_empty());
    // All of it is a change of the view, to be taken back.
    press(&mut app, "u");
    assert!(!app.ui.matrix.transpose);
}

#[test]
fn what_is_wrong_with_a_command_is_told_where_it_was_typed() {
    let mut app = live(Tab::Matrix);
    let size = app.ui.matrix.size;
    for (line, word) in [
        ("size 3MiB", "nothing was measured at 3 MiB"),
        ("theme drak", "did you mean \"dark\"?"),
        ("find nobody", "nobody"),
        ("play_pause", "only a recorded session"),
        ("metric change", "another session"),
        ("xyzzyx", "nothing is called"),
    ] {
        command(&mut app, line);
        let error = app.ui.palette.error.clone().unwrap_or_default();
        assert!(error.contains(word), "{line}: {error}");
        assert_eq!(app.ui.popups, [Popup::Palette]);
        let seen = text(&frame(&mut app, 80, 24));
        assert!(seen.contains(&error.split(' ').take(3).collect::<Vec<_>>().join(" ")), "{seen}");
        press(&mut app, "esc");
    }
    assert_eq!((app.ui.tab, app.ui.matrix.size), (Tab::Matrix, size));
}

#[test]
fn a_device_is_found_from_any_tab() {
    let mut app = app(boxed(), Tab::Session, Level::TrueColor, Mode::Live);
    frame(&mut app, 120, 40);
    command(&mut app, "find 3");
    assert_eq!(app.ui.tab, Tab::Topology);
    assert!(app.ui.topology.typing.is_none());
}

#[test]
fn the_palette_is_drawn_at_every_size() {
    for (width, height) in [(60, 18), (80, 24), (200, 56)] {
        let mut app = live(Tab::Matrix);
        press(&mut app, "ctrl-p z o o");
        let seen = text(&frame(&mut app, width, height));
        assert!(seen.contains("commands · ") && seen.contains("▸ zoom"), "{seen}");
    }
}

#[test]
fn what_is_told_is_copied_whatever_the_terminal_s_size() {
    let mut app = live(Tab::Matrix);
    press(&mut app, "j l");
    let small = copied(&mut app);
    assert!(small.starts_with("1 → 2\n") && small.contains("GB/s") && small.contains("samples"), "{small}");
    assert!(!small.contains(['│', '╭', '─', '⡇', '\u{1b}']), "{small}");
    frame(&mut app, 60, 18);
    assert_eq!(copied(&mut app), small);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.contains("clipboard")));
    press(&mut app, "4");
    assert!(copied(&mut app).contains("α "));
    press(&mut app, "8");
    assert!(copied(&mut app).contains("Open MPI 4.1.4"));
    let mut app = self::app(b70(), Tab::Findings, Level::None, Mode::Live);
    app.desk.hold(Some(found()));
    frame(&mut app, 120, 40);
    let finding = copied(&mut app);
    assert!(finding.contains("likely cause") || finding.contains("for "), "{finding}");
    // Where nothing is told there is nothing to copy.
    let mut empty = self::app((header("new", &["a"; 2]), Vec::new()), Tab::Findings, Level::TrueColor, Mode::Live);
    assert_eq!(press(&mut empty, "y"), Effect::Nothing);
    assert!(empty.ui.notice.is_some_and(|notice| notice.refusal));
}

#[test]
fn sessions_are_asked_for_and_one_is_compared_with() {
    let mut app = live(Tab::Matrix);
    assert_eq!(press(&mut app, "B"), Effect::Nothing, "a screen without a list");
    app.shelf = true;
    assert_eq!(press(&mut app, "B"), Effect::Ask(Wish::List));
    assert!(text(&frame(&mut app, 80, 24)).contains("looking for sessions"));
    let torn = entry("torn \u{1b}[31m", State::Broken("no header.json".into()));
    app.shelf_told(ShelfTold::Listed(vec![entry("one", State::Ended), entry("two", State::Cut), torn]));
    for (width, height) in [(60, 18), (80, 24), (200, 56)] {
        let seen = text(&frame(&mut app, width, height));
        assert!(seen.contains("▸ one") && seen.contains("cut") && seen.contains("broken: no header"), "{seen}");
        assert!(!seen.contains('\u{1b}'));
    }
    // A job goes on: nothing else is opened in its place.
    assert_eq!(press(&mut app, "enter"), Effect::Nothing);
    assert!(app.ui.browser.error.as_ref().is_some_and(|error| error.contains("another terminal")));
    let Effect::Ask(Wish::Load { folder }) = press(&mut app, "j c") else { panic!() };
    assert!(folder.ends_with("two"));
    let (header, records) = lab();
    let mut model = Model::new(header);
    for record in &records {
        model.apply(record);
    }
    app.shelf_told(ShelfTold::Loaded { name: "two".into(), model: Box::new(model) });
    assert_eq!((app.ui.tab, app.ui.popups.len()), (Tab::Findings, 0));
    frame(&mut app, 120, 40);
    // In a recording the other one takes its place.
    let mut app = self::app(b70(), Tab::Matrix, Level::TrueColor, Mode::Recorded);
    app.shelf = true;
    press(&mut app, "B");
    app.shelf_told(ShelfTold::Listed(vec![entry("one", State::Ended)]));
    assert!(matches!(press(&mut app, "enter"), Effect::Open { against: None, .. }));
}

#[test]
fn a_theme_file_that_changes_is_taken_again_and_a_bad_one_told() {
    let mut app = live(Tab::Matrix);
    let own = |text: &str| BTreeMap::from([("dark".to_owned(), text.to_owned())]);
    let ground = |app: &mut App| frame(app, 80, 24).content[0].bg;
    let before = ground(&mut app);
    assert!(app.renew_themes(own("ui = {fg = '#ffffff', bg = '#203040'}")));
    let after = ground(&mut app);
    assert_ne!(before, after);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.contains("read again")));
    // What cannot be used changes nothing that is seen.
    assert!(app.renew_themes(own("ui = [")));
    assert_eq!(ground(&mut app), after);
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.refusal && notice.text.contains("not TOML")));
    // Another theme's file concerns nobody.
    let mut both = own("ui = {fg = '#ffffff', bg = '#203040'}");
    app.renew_themes(both.clone());
    both.insert("other".to_owned(), "inherits = 'dark'".to_owned());
    assert!(!app.renew_themes(both));
}

#[test]
fn a_mouse_that_is_the_terminal_s_is_told_for_as_long_as_it_is() {
    for width in [80, 200] {
        let mut app = live(Tab::Matrix);
        assert!(!text(&frame(&mut app, width, 24)).contains("mouse off"));
        press(&mut app, "M j");
        assert!(text(&frame(&mut app, width, 24)).contains("M mouse off"));
        press(&mut app, "M");
        assert!(!text(&frame(&mut app, width, 24)).contains("mouse off"));
    }
}
