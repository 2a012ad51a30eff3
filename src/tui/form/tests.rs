use super::*;
use crate::tui::typing::Stroke;

fn form() -> Form {
    Form::new(&SweepSettings::default(), vec![MoverKind::Memcpy, MoverKind::MpiPut])
}

fn typed(field: Field, text: &str) -> Form {
    let mut form = form();
    form.field = field;
    form.edit();
    if let Some(typing) = &mut form.typing {
        typing.stroke(Stroke::Clear);
        text.chars().for_each(|c| typing.stroke(Stroke::Insert(c)));
    }
    form.accept();
    form
}

#[test]
fn an_untouched_form_means_what_it_was_filled_with() {
    assert_eq!(form().settings(4), Ok(SweepSettings::default()));
    let odd = SweepSettings {
        patterns: vec![Pattern::Peer, Pattern::FanIn, Pattern::Relay, Pattern::Custom],
        sizes: vec![1000, 4096, 5_000_000],
        ranks: vec![0, 2, 3, 4, 5, 6],
        widths: vec![1, 2, 3, 5],
        peers: Peers::Listed(vec![(0, vec![2])]),
        shifts: vec![1, 3],
        transfers: vec![Transfer { set: 0, from: 0, to: 2 }],
        pairs: 12,
        isolated: true,
        ci: 0.05,
        budget: 90.0,
        timeout: 0.5,
        memory: Memory::Cuda,
        gpus: vec!["3".to_owned(), "GPU-8f".to_owned()],
        ..SweepSettings::default()
    };
    assert_eq!(Form::new(&odd, vec![MoverKind::Memcpy]).settings(8), Ok(odd));
}

#[test]
fn what_is_wrong_is_told_at_its_line() {
    for (field, text) in [
        (Field::Ranks, "0-9"),
        (Field::Sizes, "4kB"),
        (Field::Sizes, "4GiB"),
        (Field::Widths, "two"),
        (Field::Shifts, "1;2"),
        (Field::Pairs, "-3"),
        (Field::Ci, "five"),
        (Field::Budget, "1h"),
        (Field::Repeats, "0"),
        (Field::Repeats, "-1"),
        (Field::Warmup, "4000000"),
        (Field::Window, "2000"),
        (Field::Timeout, "inf"),
        (Field::Seed, "x"),
    ] {
        assert_eq!(typed(field, text).settings(4).unwrap_err().field, field, "{text}");
    }
}

#[test]
fn every_setting_that_can_be_refused_has_its_line() {
    for setting in [
        "ranks", "sizes", "widths", "peers", "shifts", "pairs", "repeats", "ci", "budget", "warmup", "window", "timeout", "seed", "mover",
        "memory", "gpus",
    ] {
        assert_eq!(Field::of_setting(setting).name(), setting);
    }
    assert_eq!(Field::of_setting("patterns").place(), (0, 0));
    assert_eq!(Field::of_setting("transfers"), Field::Pattern(Pattern::Custom));
}

#[test]
fn numbers_are_read_with_their_units_and_empty_ones_by_their_names() {
    let settings = |field, text| typed(field, text).settings(8).unwrap();
    let close = |value: f64, expected: f64| (value - expected).abs() < 1e-12;
    for (text, ci) in [("5%", 0.05), ("0.02", 0.02), ("off", 0.0)] {
        assert!(close(settings(Field::Ci, text).ci, ci), "{text}");
    }
    assert!(close(settings(Field::Budget, "60s").budget, 60.0) && close(settings(Field::Budget, "none").budget, 0.0));
    assert_eq!((settings(Field::Widths, "1-3,7").widths, settings(Field::Widths, "auto").widths), (vec![1, 2, 3, 7], vec![]));
    assert_eq!((settings(Field::Pairs, "16").pairs, settings(Field::Pairs, "all").pairs), (16, 0));
    assert_eq!(form().text(Field::Widths), "auto");
}

#[test]
fn choices_turn_and_switches_switch() {
    let mut form = form();
    form.field = Field::Mover;
    form.beside(true);
    assert_eq!(form.settings(4).unwrap().mover, MoverKind::MpiPut);
    form.field = Field::Peers;
    form.beside(false);
    assert_eq!(form.settings(4).unwrap().peers, Peers::CrossHost);
    for pattern in [Pattern::FanIn, Pattern::Local, Pattern::Duplex] {
        form.switch(pattern);
    }
    assert_eq!(form.settings(4).unwrap().patterns, [Pattern::Peer, Pattern::Duplex, Pattern::FanIn]);
    form.switch(Pattern::Custom);
    assert!(!form.has(Pattern::Custom), "no pattern file, no custom");
    form.field = Field::Isolated;
    form.choose(true);
    assert!(form.settings(4).unwrap().isolated);
}

#[test]
fn gpus_are_of_the_memory_that_has_them() {
    let mut form = typed(Field::Gpus, "1, 0");
    assert!(!form.matters(Field::Gpus) && form.settings(4).unwrap().gpus.is_empty(), "host memory has none");
    form.go(Field::Memory);
    form.choose(true);
    let settings = form.settings(4).unwrap();
    assert_eq!((settings.memory, settings.gpus), (Memory::Cuda, vec!["1".to_owned(), "0".to_owned()]));
    assert_eq!((form.text(Field::Memory).as_str(), form.text(Field::Gpus).as_str()), ("cuda", "1, 0"));
    let mut wrong = typed(Field::Gpus, "first");
    wrong.memory = Memory::Cuda;
    let error = wrong.settings(4).unwrap_err();
    assert!(error.field == Field::Gpus && error.message.contains("\"first\" is no GPU"), "{error:?}");
    // Patterns that need GPUs are theirs, too, and kept as well.
    form.switch(Pattern::HostToDevice);
    assert_eq!(form.settings(4).unwrap().patterns, [Pattern::Local, Pattern::HostToDevice, Pattern::Peer]);
    form.choose(false);
    assert!(!form.can(Pattern::HostToDevice) && form.settings(4).unwrap().patterns == [Pattern::Local, Pattern::Peer]);
    form.switch(Pattern::DeviceToHost);
    form.choose(true);
    assert!(form.has(Pattern::HostToDevice) && !form.has(Pattern::DeviceToHost), "what cannot be measured is not switched on");
    // Whatever does not move this memory is told where memory is chosen.
    let mut described = Form::new(&SweepSettings { mover: MoverKind::Simulated, ..SweepSettings::default() }, vec![MoverKind::Simulated]);
    described.memory = Memory::Cuda;
    assert_eq!(described.settings(4).unwrap_err().field, Field::Memory);
}

#[test]
fn the_cursor_keeps_its_column_and_goes_everywhere() {
    let mut form = form();
    form.field = Field::Pattern(Pattern::Duplex);
    form.step(true);
    assert_eq!(form.field, Field::Pattern(Pattern::Relay));
    form.step(true);
    assert_eq!(form.field, Field::Pattern(Pattern::Custom));
    form.go(Field::Shifts);
    form.step(true);
    assert_eq!(form.field, Field::Isolated);
    form.beside(false);
    assert_eq!(form.field, Field::Pairs);
    form.count(true);
    assert_eq!(form.settings(4).unwrap().pairs, 1);
    form.count(false);
    assert_eq!(form.text(Field::Pairs), "all");
}
