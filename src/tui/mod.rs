//! The screen: reads `session::Model`, sends `session::Command`. The only room that knows ratatui.

mod app;
mod atlas;
mod browse;
mod browser;
#[cfg(test)]
mod daily_tests;
mod draw;
mod expected;
mod fans;
mod feed;
mod findings;
mod fits;
#[cfg(test)]
mod fixture;
mod form;
#[cfg(test)]
mod imported_tests;
mod insight;
pub mod keys;
mod level;
mod look;
mod matrix_keys;
mod mouse;
mod output;
mod palette;
mod past;
pub mod picture;
mod player;
mod replay;
mod run;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod scale_tests;
mod state;
#[cfg(test)]
mod tab_tests;
#[cfg(test)]
mod tests;
pub mod theme;
mod typing;
mod update;
mod view;
pub mod widgets;

pub use app::{App, Reaction};
pub use atlas::Order;
pub use browse::browse;
pub use draw::SMALLEST;
pub use feed::{Drained, Ended, Feed, Keep, Keeper, Mode, Played, Setup, Shelf, ShelfTold, Themes, Tty, TuiError, Wish};
pub use level::level;
pub use look::Look;
pub use run::{FRAMES, run};
pub use state::{Tab, Ui};
pub use update::Effect;

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::export::svg::Canvas;
use crate::session::Model;
use crate::topology::Efficiency;

/// The screen as it would be drawn on a terminal of so many columns and rows, for a picture; beside another session, if there is
/// one to compare with.
pub fn picture(model: &Model, ui: &Ui, look: &Look, efficiency: &Efficiency, (width, height): (u16, u16), other: Option<Model>) -> Canvas {
    let mut atlas = atlas::Atlas::new(&model.header.topology, efficiency);
    let mut desk = findings::Desk::new(efficiency);
    if let Some(other) = other {
        desk.compare_with(findings::Other::new(other));
    }
    desk.make(model);
    let changes = desk.told().and_then(findings::Told::changes).cloned();
    let view = view::View::build(model, &atlas, view::Key::of(model, &ui.matrix), changes);
    let mut ui = ui.clone();
    atlas.settle(model, view.key, &mut ui.topology);
    ui.fit(model.world());
    let expected = expected::Expected::of(&ui.form, model, &view);
    let mut fans = fans::Fans::default();
    fans.settle(model, &ui.fans);
    let mut book = fits::Book::new(model);
    if ui.tab == Tab::Fits {
        book.settle(model, &mut ui.fits, None);
    }
    ui.findings.follow(desk.told());
    let (mut replays, mut lights) = (replay::Replays::default(), replay::Lights::default());
    if ui.tab == Tab::Replay {
        replays.settle(&Arc::new(model.clone()), &mut ui.replay, false, true);
        lights.settle(model, &atlas, &ui.replay, &replays);
    }
    if ui.tab == Tab::Topology {
        let facts =
            update::Facts { model, atlas: &atlas, view: &view, fans: &fans, fits: &book, desk: &desk, replays: &replays, mode: Mode::Live };
        ui.topology.greet(&facts, &mut ui.matrix);
        atlas.settle(model, view.key, &mut ui.topology);
    }
    let scene = draw::Scene {
        model,
        view: &view,
        atlas: &atlas,
        expected: &expected,
        fans: &fans,
        fits: &book,
        desk: &desk,
        replays: &replays,
        lights: &lights,
        ui: &ui,
        look,
        mode: Mode::Live,
        player: None,
    };
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let area = buffer.area;
    draw::draw(&scene, &mut buffer, area);
    picture::canvas(&buffer, &look.theme)
}

/// The name that takes the fewest edits to reach from what was typed (Levenshtein distance).
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.min_by_key(|name| {
        let name: Vec<char> = name.chars().collect();
        let mut row: Vec<usize> = (0..=name.len()).collect();
        for (i, a) in typed.chars().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, &b) in name.iter().enumerate() {
                let substitute = diagonal + usize::from(a != b);
                diagonal = row[j + 1];
                row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[name.len()]
    })
}
