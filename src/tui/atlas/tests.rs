//! The Topology tab: what the tree tells, what keys do, and what stands out; the same in the matrix, its inspector and files.

use std::collections::BTreeMap;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{Grouping, NodeKind, Sight};
use crate::export::csv;
use crate::fabric::Fabric;
use crate::matrix::Metric;
use crate::session::{Event, Record};
use crate::sweep::SweepSettings;
use crate::topology::Efficiency;
use crate::tui::fixture::{Session, Story, b70, boxed, boxes, frame, header, live, press, shown, switched, text};
use crate::tui::insight::Way;
use crate::tui::{App, Tab};

/// Type a text and take it.
fn find(app: &mut App, text: &str) {
    press(app, "/ ctrl-u");
    for c in text.chars() {
        app.input(&Input::Key(KeyEvent::from(KeyCode::Char(c))));
    }
    press(app, "enter");
}

/// The line under the cursor.
fn here(app: &mut App) -> String {
    let screen = shown(app);
    let line = screen.lines().find(|line| line.contains('▌')).unwrap_or_else(|| panic!("{screen}"));
    line.split('│').nth(1).unwrap().trim_start_matches('▌').trim().to_owned()
}

/// A session whose pairs give what a described machine gives, which is also what the screen knows of it.
fn simulated(name: &str, more: &str) -> Session {
    let fabric = Fabric::parse(&format!("{}\n{more}", Fabric::shipped_text(name).unwrap()), name).unwrap();
    let mut header = header(name, &["x"]);
    header.topology = fabric.topology();
    let mut story = Story::new(&SweepSettings { sizes: vec![256 << 20], ..SweepSettings::default() });
    let world = header.topology.world();
    for (from, to) in (0..world).flat_map(|from| (0..world).map(move |to| (from, to))) {
        story.probe(&header.topology, (from, to), 256 << 20, Some(fabric.truth(from, to).rate / 1e9));
    }
    (header, story.records)
}

/// Issue 4, must show f: the view points at the row and the column of the GPU that is trained x8, the route names the hop.
#[test]
fn a_narrow_slot_is_seen_in_row_and_column_and_named_by_the_route() {
    let mut app = live(simulated("l20-8", "[[fault]]\nkind = \"narrow\"\nrank = 3\nlanes = 8\n"), Tab::Topology);
    assert!(here(&mut app).contains("GPU 3") && here(&mut app).contains("▲ Gen4 x8 of x16"), "{}", here(&mut app));
    let screen = shown(&mut app);
    let slow: Vec<&str> = screen.lines().filter(|line| line.contains("▲ GPU 3: x8 of x16")).collect();
    assert!(slow.iter().any(|line| line.contains("rank 3 sends 0.4") && line.contains("gets 0.4")), "{screen}");
    assert!(screen.contains("GPU 3") && screen.contains("x8 of x16 ◀ slowest"), "{screen}");
    let (from, to) = app.ui.matrix.cursor;
    assert!(from == 3 || to == 3, "{:?}", app.ui.matrix.cursor);
    // The matrix: row and column 3, and nothing else.
    press(&mut app, "3 m");
    assert_eq!(app.ui.matrix.metric, Metric::ShareOfExpected);
    let grid = &app.view().grid;
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let share = grid.get(from, to).known().unwrap();
        assert_eq!(share < 0.6, from == 3 || to == 3, "{from} {to} {share}");
    }
    let (row, column) = (grid.row(3).mean, grid.column(3).mean);
    assert!((0..8).filter(|&rank| rank != 3).all(|rank| grid.row(rank).mean > 1.5 * row && grid.column(rank).mean > 1.5 * column));
    let screen = shown(&mut app);
    assert!(screen.contains("share of expected") && screen.contains("x8 of x16"), "{screen}");
    assert!(screen.contains("▲ GPU 3 x8 of x16: rank 3 sends 0.4") && !screen.contains("nothing stands out"), "{screen}");
    app.ui.matrix.put((0, 1), 8);
    app.ui.matrix.suspect = None;
    let visited: Vec<(usize, usize)> = (0..12).map(|_| (press(&mut app, "n"), app.ui.matrix.cursor).1).collect();
    assert!(visited.iter().any(|pair| pair.0 == 3) && visited.iter().any(|pair| pair.1 == 3), "{visited:?}");
    assert!(screen.contains("expected") && screen.contains("gives"), "{screen}");
}

#[test]
fn a_healthy_machine_has_nothing_at_fault() {
    let mut app = live(simulated("l20-8", ""), Tab::Topology);
    let screen = shown(&mut app);
    assert!(screen.contains("no link is narrow or down, and no rank stays behind") && !screen.contains('▲'), "{screen}");
}

#[test]
fn hosts_that_differ_come_first_and_say_in_what() {
    let mut app = live(boxes(128), Tab::Topology);
    let screen = shown(&mut app);
    let lines: Vec<&str> = screen.lines().skip(4).filter_map(|line| line.split('│').nth(1)).collect();
    assert!(lines[0].contains("▾ node064") && lines[0].contains("GPU 2 Gen5 x8 of x16"), "{screen}");
    assert!(screen.contains("▸ 127 hosts alike · node000 – node127"), "{screen}");
    assert_eq!(app.atlas().rows().len(), 1 + 2 * (1 + 1 + 6) + 1 + 1, "one host and one line for all others");
    // The first glance is at the fault.
    assert!(here(&mut app).starts_with("GPU 2"), "{}", here(&mut app));
    press(&mut app, "G right right");
    assert!(here(&mut app).contains("node000"), "{}", here(&mut app));
    assert_eq!(app.atlas().rows().len(), 19 + 127);
}

#[test]
fn what_is_looked_for_is_unfolded_and_gone_to() {
    let mut app = live(boxes(128), Tab::Topology);
    find(&mut app, "node100");
    assert!(here(&mut app).contains("node100"), "{}", here(&mut app));
    find(&mut app, "rank 803");
    assert!(here(&mut app).contains("GPU 3") && here(&mut app).contains("803"), "{}", here(&mut app));
    assert_eq!(app.atlas().at(app.ui.topology.at).unwrap().1.ranks, [803]);
    find(&mut app, "mlx5_3");
    assert!(here(&mut app).starts_with("mlx5_3"), "{}", here(&mut app));
    let at = app.ui.topology.at;
    find(&mut app, "no such thing");
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text.contains("no such thing")));
    assert_eq!(app.ui.topology.at, at);
    press(&mut app, "/ x esc");
    assert!(app.ui.topology.typing.is_none());
}

#[test]
fn lines_fold_by_keys_and_by_mouse_and_tell_what_is_folded_away() {
    let mut app = live(boxed(), Tab::Topology);
    press(&mut app, "g");
    let all = app.atlas().rows().len();
    press(&mut app, "left");
    assert_eq!(app.atlas().rows().len(), 1);
    assert!(here(&mut app).contains("▸ box ▲2"), "{}", here(&mut app));
    press(&mut app, "enter down right");
    assert_eq!((app.atlas().rows().len(), app.ui.topology.at), (all, 2));
    press(&mut app, "h h");
    assert!(here(&mut app).starts_with("▾ NUMA 0") || here(&mut app).starts_with("▸ switch"), "{}", here(&mut app));
    let (row, at) = app.hits.tree_rows.iter().map(|&(area, at)| (area, at)).nth(1).unwrap();
    let click = |app: &mut App| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        app.input(&Input::Mouse(MouseEvent { kind, column: row.x + 3, row: row.y, modifiers: KeyModifiers::NONE }));
        frame(app, 120, 40);
    };
    press(&mut app, "g");
    click(&mut app);
    assert_eq!(app.ui.topology.at, at);
    let before = app.atlas().rows().len();
    click(&mut app);
    assert!(app.atlas().rows().len() < before, "a second click folds");
    // Other devices are folded away until they are asked for.
    let mut app = live(boxed(), Tab::Topology);
    assert!(!shown(&mut app).contains("SATA"));
    find(&mut app, "SATA");
    assert!(here(&mut app).contains("SATA controller"), "{}", here(&mut app));
}

#[test]
fn keys_choose_the_pair_whose_route_is_shown() {
    let mut app = live(boxed(), Tab::Topology);
    let (from, to) = app.ui.matrix.cursor;
    assert!((from == 2) != (to == 2), "the pair that shows the fault");
    find(&mut app, "rank 6");
    press(&mut app, "f");
    find(&mut app, "rank 1");
    press(&mut app, "t");
    assert_eq!(app.ui.matrix.cursor, (6, 1));
    let screen = shown(&mut app);
    assert!(screen.contains("route 6 → 1 · SYS") && screen.contains("NUMA 1 → NUMA 0"), "{screen}");
    press(&mut app, "x");
    assert_eq!(app.ui.matrix.cursor, (1, 6));
    press(&mut app, "enter");
    assert!(app.ui.matrix.cursor == (1, 2) || app.ui.matrix.cursor == (2, 1), "the worst pair of rank 1");
    press(&mut app, "g f");
    assert!(app.ui.notice.as_ref().is_some_and(|notice| notice.text == "no rank sits here"));
    press(&mut app, "v");
    assert_eq!(app.ui.topology.sight, Sight::Classes);
    let screen = shown(&mut app);
    assert!(screen.contains("path classes · box · ranks") && screen.contains("NIC0") && screen.contains("SYS"), "{screen}");
}

#[test]
fn a_link_at_rest_is_overruled_by_what_went_over_it() {
    let mut app = live(boxed(), Tab::Topology);
    app.ui.matrix.put((5, 4), 8);
    let flat = |screen: String| screen.split_whitespace().filter(|word| *word != "││" && *word != "│").collect::<Vec<_>>().join(" ");
    let screen = flat(text(&frame(&mut app, 200, 56)));
    assert!(screen.contains("says Gen1 x16 (4.00 GB/s), measured 52.8: at rest or wrong"), "{screen}");
    // Nobody is accused for it.
    let route = app.atlas().router.route(&app.model.header.topology, 5, 4);
    assert_eq!(route.slowest(Some(52.8e9)), None);
    press(&mut app, "3");
    app.ui.matrix.put((5, 4), 8);
    let screen = flat(text(&frame(&mut app, 200, 56)));
    assert!(screen.contains("at rest or wrong"), "{screen}");
    assert!(screen.contains("PIX GPU 5 → switch"), "{screen}");
}

#[test]
fn marks_tell_links_that_are_down_redirected_peers_and_ranks_that_are_far() {
    let (mut header, records) = switched();
    header.topology.ranks[6].numa = Some(0);
    let mut app = live((header, records), Tab::Topology);
    let screen = text(&frame(&mut app, 200, 56));
    for told in ["▲ GPU 3: 2 links down", "ACS sends peers by the processor", "▲ GPU 6: rank 6 on cores of NUMA 0", "NVLink ×16"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    press(&mut app, "n n n n");
    let route = app.atlas().router.route(&app.model.header.topology, 0, 3);
    assert_eq!(route.slowest(None), Some(1));
    // A port that is down.
    let mut app = live(boxed(), Tab::Topology);
    assert!(shown(&mut app).contains("▲ mlx5_1: port polling"));
}

#[test]
fn without_hardware_the_tab_says_so_and_all_else_is_as_before() {
    let mut app = live(b70(), Tab::Topology);
    let screen = shown(&mut app);
    assert!(screen.contains("not what the hosts are made of") && screen.contains("toposcope discover"), "{screen}");
    press(&mut app, "3 m");
    assert_eq!(app.ui.matrix.metric, Metric::SmallTime, "nothing can be compared");
    press(&mut app, "g");
    assert_eq!(app.ui.matrix.grouping, Grouping::Host);
    assert!(app.ui.notice.is_some());
    let table = csv(&app.model, &Efficiency::default());
    assert!(table.lines().nth(1).is_some_and(|row| row.ends_with(",,,,,,,,")), "{:?}", table.lines().nth(1));
}

#[test]
fn ranks_are_ruled_off_by_hardware() {
    let mut app = live(simulated("b70-8", ""), Tab::Matrix);
    assert!(!shown(&mut app).contains("sw1"));
    press(&mut app, "g");
    let screen = shown(&mut app);
    assert!(screen.contains("NUMA 1") && screen.contains('┊'), "{screen}");
    press(&mut app, "g");
    let screen = shown(&mut app);
    assert!(screen.contains("sw3") && screen.matches('┼').count() >= 9, "{screen}");
    press(&mut app, "g");
    assert_eq!(app.ui.matrix.grouping, Grouping::Host);
}

#[test]
fn shares_followed_cell_by_cell_are_those_made_anew() {
    let (header, mut records) = boxed();
    // Rank 4 measured again, slower: its best pairs are not the best any more.
    let again: Vec<Record> = records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ProbeDone { samples, .. } if samples[0].from == 4 && samples[0].bytes > 4096 => {
                let slower = |sample: &crate::sample::Sample| {
                    let seconds = sample.seconds.map(|seconds| seconds * if sample.to == 5 { 3.0 } else { 1.5 });
                    crate::sample::Sample { take: 1, seconds, ..sample.clone() }
                };
                let samples = samples.iter().map(slower).collect();
                Some(Record { t: 99.0, event: Event::ProbeDone { probe: 0, samples, enough: None } })
            }
            _ => None,
        })
        .collect();
    assert_eq!(again.len(), 8);
    records.extend(again);
    let mut grown = live((header.clone(), Vec::new()), Tab::Topology);
    for (at, record) in records.iter().enumerate() {
        grown.apply(record);
        if at % 20 == 0 {
            frame(&mut grown, 120, 40);
        }
    }
    frame(&mut grown, 120, 40);
    let whole = live((header, records), Tab::Topology);
    for (rank, way) in (0..8).flat_map(|rank| Way::BOTH.map(|way| (rank, way))) {
        let both = [&grown, &whole].map(|app| app.atlas().shares.of(rank, way));
        assert_eq!(both[0].map(|best| best.rate), both[1].map(|best| best.rate), "{rank} {way:?}");
    }
    let slow: Vec<(usize, Way)> = whole.atlas().slow_ranks().into_iter().map(|(rank, way, _)| (rank, way)).collect();
    assert!(slow.contains(&(4, Way::Sends)) && slow.contains(&(2, Way::Receives)) && !slow.contains(&(4, Way::Receives)), "{slow:?}");
}

#[test]
fn the_table_tells_what_the_screen_tells() {
    let app = live(boxed(), Tab::Matrix);
    let table = csv(&app.model, &Efficiency::default());
    let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap();
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let pair: (usize, usize) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        let expected = app.atlas().router.expected(pair.0, pair.1);
        assert_eq!(fields[at("path_class")], app.atlas().router.label(pair.0, pair.1).unwrap().to_string());
        let told: Option<f64> = fields[at("expected_bytes_per_second")].parse().ok();
        assert_eq!(told.is_some(), expected.is_some(), "{row}");
        assert!(told.zip(expected).is_none_or(|(told, expected)| (told / expected - 1.0).abs() < 1e-5), "{row}");
    }
    // With another table both change.
    let half = Efficiency { pcie: 0.43, ..Efficiency::default() };
    let router = crate::topology::Router::new(&app.model.header.topology, &half);
    let ratio = app.atlas().router.expected(0, 1).unwrap() / router.expected(0, 1).unwrap();
    assert!((ratio - 2.0).abs() < 1e-9);
}

#[test]
fn escape_codes_of_hardware_do_not_reach_the_screen() {
    let (mut header, records) = boxed();
    let evil = "\u{1b}[2Jx\u{7}";
    for rank in &mut header.topology.ranks {
        rank.host = evil.to_owned();
    }
    let host = &mut header.topology.hardware[0];
    host.nics[1].state = evil.to_owned();
    for text in [&mut host.host, &mut host.product, &mut host.gpus[0].name, &mut host.nics[0].name] {
        *text = evil.to_owned();
    }
    host.gpus[1].throttled = vec![evil.to_owned()];
    host.note(crate::topology::hardware::NoteKind::Lie, evil, evil);
    for tab in [Tab::Topology, Tab::Matrix] {
        let mut app = live((header.clone(), records.clone()), tab);
        for keys in ["", "v", "n", "g", "n"] {
            press(&mut app, keys);
            let screen = frame(&mut app, 200, 56);
            assert!(!screen.content.iter().any(|cell| cell.symbol().chars().any(char::is_control)), "{tab:?}");
        }
    }
}

#[test]
fn lines_are_made_when_something_folds_and_not_for_every_frame() {
    let mut app = live(boxes(128), Tab::Topology);
    press(&mut app, "G right");
    let folds = app.ui.topology.folds;
    for _ in 0..40 {
        press(&mut app, "up page-down");
    }
    assert_eq!(app.ui.topology.folds, folds);
    assert!(app.atlas().tree.node(0).is_some_and(|node| node.kind == NodeKind::Host));
    // As many lines are drawn as there is room for.
    assert!(app.hits.tree_rows.len() < 40 && app.atlas().rows().len() > 140);
}

/// Issue 7: what the screen derives from where ranks sit follows them onto their GPUs, and their clocks and links are told.
#[test]
fn ranks_that_are_bound_to_gpus_are_routed_from_there_and_their_gpus_are_told() {
    use crate::topology::{Bound, CudaDevice, GpuRange, GpuState};
    let (mut header, records) = boxed();
    let hardware = header.topology.hardware[0].clone();
    header.topology.ranks.iter_mut().for_each(|place| place.gpu = None);
    let mut app = live((header, Vec::new()), Tab::Topology);
    assert_eq!(app.atlas().router.label(0, 7), Some(crate::topology::PathLabel::Sys), "memory of two nodes");
    assert!(!shown(&mut app).contains("GPU of 7"));
    // In the opposite order: rank 7 on the first GPU.
    let bound = |rank: usize| {
        let gpu = &hardware.gpus[7 - rank];
        let address = gpu.pci.map(|at| hardware.pci[at].address);
        let device = CudaDevice { number: 7 - rank, name: "A \u{1b}[31mGPU".to_owned(), address, ..CudaDevice::default() };
        Bound { rank, gpu: Some(device), cores: vec![rank], numa: None }
    };
    let software = [("CUDA driver".to_owned(), "CUDA 12.8".to_owned())].into();
    app.apply(&Record { t: 0.1, event: Event::Bound { ranks: (0..8).map(bound).collect(), software } });
    let at = |app: &App, rank: usize| app.atlas().router.end(rank).map(|(_, device)| device);
    assert_eq!(at(&app, 7), Some(crate::topology::hardware::Device::Gpu(0)));
    assert_eq!(at(&app, 0), Some(crate::topology::hardware::Device::Gpu(7)));
    for record in &records {
        app.apply(record);
    }
    let mut range = GpuRange::of(7);
    range.add(&GpuState { sm_clock: Some(1200), throttled: vec!["heat".to_owned()], ..GpuState::default() }, true);
    app.apply(&Record { t: 99.0, event: Event::GpusSeen { ranges: vec![range, GpuRange::of(99)] } });
    app.ui.matrix.cursor = (7, 1);
    press(&mut app, "3");
    let screen = shown(&mut app);
    assert!(screen.contains("GPU of 7: SM 1200 MHz · throttled"), "{screen}");
    press(&mut app, "8");
    let screen = shown(&mut app);
    assert!(screen.contains("rank 7") && screen.contains("CUDA driver") && !screen.contains('\u{1b}'), "{screen}");
    // Home again, for a sweep of the host's memory.
    let home = |rank| Bound { rank, gpu: None, cores: vec![rank], numa: Some(rank / 4) };
    app.apply(&Record { t: 100.0, event: Event::Bound { ranks: (0..8).map(home).collect(), software: BTreeMap::default() } });
    assert!(matches!(at(&app, 7), Some(crate::topology::hardware::Device::Memory(1))));
}
