use super::*;
use crate::matrix::{Metric, Value};
use crate::ramp::Level;
use crate::topology::Placement;
use crate::tui::theme::Themes;
use crate::tui::widgets::styled;

const LEVELS: [(&str, Level); 4] = [("true", Level::TrueColor), ("256", Level::Ansi256), ("16", Level::Ansi16), ("none", Level::None)];

fn topology(n: usize, per_host: usize) -> Topology {
    let place = |rank: usize| Placement {
        rank,
        host: format!("cell{}", rank / per_host),
        pid: 1,
        cores: vec![rank],
        numa: None,
        memory_available: 1,
        memory_total: 1,
        cache: 0,
        ..Placement::default()
    };
    Topology::of((0..n).map(place).collect())
}

/// Rates that differ by pair, a slow rank, and one cell of each state.
fn grid(n: usize, per_host: usize) -> Grid {
    Grid::build(Metric::Bandwidth, n, |from, to| match (from, to) {
        (1, 0) => Value::Timeout,
        (2, 0) => Value::Corrupt,
        (0, 2) => Value::Waived,
        (2, 1) => Value::Missing,
        _ if from == to => Value::Known(90e9),
        _ if from == n / 2 && to == n - 1 => Value::Known(1.5e9),
        _ if from / per_host == to / per_host => Value::Known(50e9 + (from * 7 + to * 3) as f64 % 40.0 * 1e8),
        _ => Value::Known(12e9 + (from * 5 + to * 11) as f64 % 60.0 * 1e8),
    })
}

struct Scene {
    grid: Grid,
    topology: Topology,
    theme: Theme,
    zoom: Zoom,
    cursor: (usize, usize),
    selection: Option<((usize, usize), (usize, usize))>,
    transpose: bool,
    window: Option<Window>,
    crumbs: Vec<String>,
    reduce: Reduce,
    lost: Vec<usize>,
    slow: (Vec<usize>, Vec<usize>),
    lit: Option<Vec<(usize, usize)>>,
}

impl Scene {
    fn new(n: usize, per_host: usize, level: Level) -> Self {
        Self {
            grid: grid(n, per_host),
            topology: topology(n, per_host),
            theme: Themes::default().load("dark", level).unwrap().0,
            zoom: Zoom::Fit,
            cursor: (1, 2),
            selection: None,
            transpose: false,
            window: None,
            crumbs: Vec::new(),
            reduce: Reduce::Worst,
            lost: Vec::new(),
            slow: (Vec::new(), Vec::new()),
            lit: None,
        }
    }

    fn draw(&self, width: u16, height: u16) -> (Buffer, HitMap) {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let view = MatrixView {
            groups: None,
            grid: &self.grid,
            pattern: crate::sample::Pattern::Peer,
            topology: &self.topology,
            cursor: self.cursor,
            selection: self.selection,
            transpose: self.transpose,
            zoom: self.zoom,
            window: self.window,
            crumbs: &self.crumbs,
            reduce: self.reduce,
            title: &["256 MiB".to_owned(), "median of 8".to_owned()],
            lost: &self.lost,
            slow: (&self.slow.0, &self.slow.1),
            lit: self.lit.as_deref().map(|cells| Lit { cells, mark: "▲", name: "finding 1" }),
            focused: true,
            theme: &self.theme,
        };
        let hits = draw(&view, area, &mut buffer);
        (buffer, hits)
    }

    fn text(&self, width: u16, height: u16) -> String {
        styled::text(&self.draw(width, height).0)
    }
}

fn snapshots(n: usize, per_host: usize, width: u16, height: u16) {
    for (name, level) in LEVELS {
        let (buffer, _) = Scene::new(n, per_host, level).draw(width, height);
        insta::assert_snapshot!(format!("{n}_ranks_{name}"), styled::both(&buffer));
    }
}

#[test]
fn three_ranks() {
    snapshots(3, 2, 60, 12);
}

#[test]
fn eight_ranks() {
    snapshots(8, 4, 84, 18);
}

#[test]
fn forty_ranks() {
    snapshots(40, 8, 76, 22);
}

#[test]
fn many_ranks() {
    snapshots(256, 8, 78, 24);
}

#[test]
fn small_areas() {
    for (n, width, height) in [(3, 24, 7), (8, 30, 10), (40, 28, 8), (256, 40, 12), (3, 8, 5), (3, 4, 4), (8, 3, 3)] {
        let (buffer, _) = Scene::new(n, 4, Level::TrueColor).draw(width, height);
        insta::assert_snapshot!(format!("small_{n}_in_{width}x{height}"), styled::text(&buffer));
    }
}

#[test]
fn zooms_follow_the_cursor() {
    for (name, zoom) in [("pixels", Zoom::Pixels), ("digits", Zoom::Digits)] {
        let scene = Scene { zoom, cursor: (100, 200), ..Scene::new(256, 8, Level::None) };
        insta::assert_snapshot!(format!("zoom_{name}"), scene.text(60, 14));
    }
}

#[test]
fn nothing_panics_at_any_size() {
    for (_, level) in LEVELS {
        for n in [0, 1, 9, 70] {
            for zoom in [Zoom::Fit, Zoom::Pixels, Zoom::Digits] {
                let scene = Scene { zoom, cursor: (n, 0), selection: Some(((0, 0), (n, n))), ..Scene::new(n, 4, level) };
                for width in (0..90).step_by(13) {
                    for height in (0..30).step_by(3) {
                        scene.draw(width, height);
                    }
                }
            }
        }
    }
}

#[test]
fn a_host_with_escape_codes_draws_harmlessly() {
    let mut scene = Scene::new(3, 1, Level::TrueColor);
    scene.topology.ranks[1].host = "\u{1b}[2Jevil\u{7}\u{202e}".to_owned();
    let text = scene.text(60, 12);
    assert!(text.contains("[2Jevil"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'));
}

#[test]
fn what_is_hit_is_what_is_drawn() {
    let scene = Scene::new(8, 4, Level::None);
    let (buffer, hits) = scene.draw(84, 18);
    let mut found = std::collections::HashSet::new();
    for y in 0..18 {
        for x in 0..84 {
            if let Some(hit) = hits.at(x, y, false) {
                assert_eq!((hit.from.len(), hit.to.len()), (1, 1));
                found.insert((hit.from.start, hit.to.start));
                if buffer[(x, y)].symbol() == "≠" {
                    assert_eq!((hit.from.start, hit.to.start), (2, 0));
                }
            }
        }
    }
    assert_eq!(found.len(), 64);
    assert_eq!(hits.at(0, 0, false), None);
    let turned = Scene { transpose: true, ..scene };
    let (buffer, hits) = turned.draw(84, 18);
    let at =
        (0..18).flat_map(|y| (0..84).map(move |x| (x, y))).find(|&(x, y)| buffer[(x, y)].symbol() == "≠" && hits.at(x, y, false).is_some());
    let (x, y) = at.unwrap();
    assert_eq!(hits.at(x, y, false), Some(Hit { from: 2..3, to: 0..1 }));
}

#[test]
fn half_blocks_tell_two_ranks_apart() {
    let mut scene = Scene::new(40, 8, Level::TrueColor);
    scene.zoom = Zoom::Pixels;
    let (buffer, hits) = scene.draw(76, 26);
    let mut pairs = std::collections::HashSet::new();
    for y in 0..26 {
        for x in 0..76 {
            for lower in [false, true] {
                pairs.extend(hits.at(x, y, lower).map(|hit| (hit.from.start, hit.to.start)));
            }
        }
    }
    assert_eq!(pairs.len(), 1600);
    // rank 1 -> 0 timed out: the lower half of the first row of pixels
    let (x, y) = (0..26)
        .flat_map(|y| (0..76).map(move |x| (x, y)))
        .find(|&(x, y)| hits.at(x, y, true) == Some(Hit { from: 1..2, to: 0..1 }))
        .unwrap();
    assert_eq!(buffer[(x, y)].symbol(), "▀");
    assert_eq!(buffer[(x, y)].bg, ratatui::style::Color::Rgb(255, 0, 0));
    assert_ne!(buffer[(x, y)].fg, buffer[(x, y)].bg);
}

#[test]
fn one_slow_pair_is_seen_in_any_block() {
    let mut scene = Scene::new(256, 8, Level::TrueColor);
    scene.grid = Grid::build(Metric::Bandwidth, 256, |from, to| if from == to { Value::Missing } else { Value::Known(50e9) });
    scene.grid.set(201, 77, Value::Known(3e9));
    scene.cursor = (0, 0);
    let (buffer, hits) = scene.draw(78, 24);
    let diamond = (0..24).flat_map(|y| (0..78).map(move |x| (x, y))).find(|&(x, y)| buffer[(x, y)].symbol() == "◆").unwrap();
    let hit =
        [false, true].into_iter().filter_map(|lower| hits.at(diamond.0, diamond.1, lower)).find(|hit| hit.from.contains(&201)).unwrap();
    assert!(hit.to.contains(&77) && hit.to.len() == scene.grid.axes().span(hits.level(), 0).len());
    let slow = buffer[diamond].bg;
    let elsewhere = (0..78).filter(|&x| buffer[(x, diamond.1)].symbol() == "▀" && buffer[(x, diamond.1)].bg == slow).count();
    assert_eq!(elsewhere, 0);
}

#[test]
fn a_selection_shows_at_every_level_and_zoom() {
    for (name, level) in LEVELS {
        for zoom in [Zoom::Fit, Zoom::Pixels] {
            let plain = Scene { zoom, cursor: (7, 7), ..Scene::new(8, 4, level) };
            let selected = Scene { selection: Some(((3, 5), (4, 6))), zoom, cursor: (7, 7), ..Scene::new(8, 4, level) };
            let ((a, hits), (b, _)) = (plain.draw(84, 18), selected.draw(84, 18));
            let mut changed = std::collections::HashSet::new();
            for (x, y, lower) in (0..18).flat_map(|y| (0..84).flat_map(move |x| [(x, y, false), (x, y, true)])) {
                let (before, after) = (&a[(x, y)], &b[(x, y)]);
                let differs = match (before.symbol(), lower) {
                    ("▀", false) => before.fg != after.fg,
                    ("▀", true) => before.bg != after.bg,
                    _ => before != after,
                };
                if differs {
                    changed.extend(hits.at(x, y, lower).map(|hit| (hit.from.start, hit.to.start)));
                }
            }
            assert!([(3, 5), (3, 6), (4, 5), (4, 6)].iter().all(|pair| changed.contains(pair)), "{name} {zoom:?} {changed:?}");
            assert!(!changed.contains(&(2, 5)) && !changed.contains(&(6, 6)), "{name} {zoom:?} {changed:?}");
        }
    }
}

#[test]
fn long_times_and_slow_rates_keep_their_digits() {
    let mut scene = Scene::new(3, 3, Level::TrueColor);
    scene.grid =
        Grid::build(
            Metric::SmallTime,
            3,
            |from, to| if from == to { Value::Missing } else { Value::Known(1.5e-6 * (1 + from * 30 + to) as f64) },
        );
    let text = scene.text(60, 12);
    assert!(text.contains("small-message time, µs") && text.contains("3.00") && text.contains("91.5"), "{text}");
    scene.grid =
        Grid::build(
            Metric::Bandwidth,
            3,
            |from, to| if from == to { Value::Missing } else { Value::Known(2.31e7 + (from * 10 + to) as f64 * 1e6) },
        );
    let text = scene.text(60, 12);
    assert!(text.contains("bandwidth, MB/s") && text.contains("24.1") && text.contains("44.1 MB/s"), "{text}");
    scene.grid =
        Grid::build(Metric::Asymmetry, 3, |from, to| if from == to { Value::Missing } else { Value::Known(from as f64 - to as f64) });
    let text = scene.text(60, 12);
    assert!(text.contains("+2.00") && text.contains("-1.00"), "{text}");
}

#[test]
fn lost_and_slow_ranks_are_marked_without_colour() {
    let scene = Scene { lost: vec![5], slow: (vec![3], vec![1, 5]), ..Scene::new(8, 4, Level::None) };
    let text = scene.text(84, 18);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("▲1") && lines[1].contains("✗5") && !lines[1].contains("▲3"), "{text}");
    let marked = |glyph: char| lines.iter().filter(|line| line.trim_start_matches('│').starts_with(glyph)).collect::<Vec<_>>();
    assert!(marked('✗').len() == 1 && marked('✗')[0].contains(" 5 "), "{text}");
    assert!(marked('▲').len() == 1 && marked('▲')[0].contains(" 3 "), "{text}");
    assert!(text.contains("✗ lost") && text.contains("▲ slow rank"), "{text}");
    // Rows are receivers now.
    let turned = Scene { transpose: true, ..scene };
    let text = turned.text(84, 18);
    assert!(text.lines().nth(1).unwrap().contains("▲3") && !text.lines().nth(1).unwrap().contains("▲1"), "{text}");
    for (n, zoom) in [(40, Zoom::Pixels), (256, Zoom::Fit)] {
        let scene = Scene { zoom, lost: vec![21], slow: (vec![30], Vec::new()), cursor: (0, 0), ..Scene::new(n, 8, Level::TrueColor) };
        let text = scene.text(78, 24);
        assert!(text.contains("✗") && text.lines().nth(1).unwrap().contains("✗"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("│✗") && line.contains("21")), "{text}");
    }
}

#[test]
fn few_ranks_get_large_cells_and_every_point_of_them_is_theirs() {
    for (n, width, height) in [(2, 80, 26), (3, 84, 30), (8, 80, 26), (8, 154, 46)] {
        for (name, level) in LEVELS {
            let scene = Scene::new(n, 4, level);
            let (buffer, hits) = scene.draw(width, height);
            let (across, down) = (&hits.columns[0], &hits.rows[0]);
            assert!(across.1 >= 7 && down.1 >= 4, "{n} in {width}x{height} {name}: {across:?} {down:?}");
            let mut points = std::collections::HashMap::new();
            for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
                if let Some(hit) = hits.at(x, y, false) {
                    assert_eq!(Some(hit.clone()), hits.at(x, y, true));
                    *points.entry((hit.from.start, hit.to.start)).or_insert(0_u16) += 1;
                    if buffer[(x, y)].symbol() == "≠" {
                        assert_eq!((hit.from.start, hit.to.start), (2, 0));
                    }
                }
            }
            assert_eq!(points.len(), n * n);
            assert!(points.values().all(|&count| count == across.1 * down.1 / 2), "{points:?}");
        }
    }
}

#[test]
fn a_title_that_does_not_fit_loses_whole_parts() {
    let scene = Scene::new(40, 8, Level::None);
    for width in 20..90 {
        let text = scene.text(width, 20);
        let title = text.lines().next().unwrap().trim_matches(['╭', '╮', '─', ' ']).to_owned();
        let whole = "bandwidth, GB/s · peer · worst of 2×2 ranks · 256 MiB · row sends · median of 8";
        let full = whole.replace(" · worst of 2×2 ranks", "");
        let fits = |all: &str| all.starts_with(&title) && (all.len() == title.len() || all[title.len()..].starts_with(" · "));
        assert!(fits(whole) || fits(&full) || title.contains("worst of 4×4"), "{width}: {title}");
    }
}
