//! The Sweep tab's form: what a person types, and the settings that it means.

use crate::sample::{MoverKind, Pattern};
use crate::sweep::{Buffers, SweepSettings};
use crate::units::{format_ranks, format_size, parse_ranks, parse_sizes, plain};

/// A line of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Patterns,
    Ranks,
    Sizes,
    Repeats,
    Warmup,
    Window,
    Timeout,
    Seed,
    Mover,
    Buffers,
    /// the button
    Start,
}

impl Field {
    /// All lines, top to bottom.
    pub const ALL: [Self; 11] = [
        Self::Patterns,
        Self::Ranks,
        Self::Sizes,
        Self::Repeats,
        Self::Warmup,
        Self::Window,
        Self::Timeout,
        Self::Seed,
        Self::Mover,
        Self::Buffers,
        Self::Start,
    ];

    /// The name on the screen, as the settings name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Patterns => "patterns",
            Self::Ranks => "ranks",
            Self::Sizes => "sizes",
            Self::Repeats => "repeats",
            Self::Warmup => "warm-up",
            Self::Window => "window",
            Self::Timeout => "timeout, s",
            Self::Seed => "seed",
            Self::Mover => "mover",
            Self::Buffers => "buffers",
            Self::Start => "start",
        }
    }

    /// What the line means, in one sentence.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Patterns => "local copies inside a rank; peer sends from one rank to another",
            Self::Ranks => "ranks that take part, such as 0-3,7; empty for all",
            Self::Sizes => "message sizes, such as 4KiB..64MiB (×4 steps) or 4KiB,1MiB",
            Self::Repeats => "timed repeats of each pair and size; 6 or more give an interval",
            Self::Warmup => "untimed repeats before them",
            Self::Window => "messages outstanding at a time; 1 measures single messages",
            Self::Timeout => "longest time of one probe; a hang becomes a timeout",
            Self::Seed => "decides the order of the probes and the payload",
            Self::Mover => "how bytes travel",
            Self::Buffers => "rotate: cold memory, as real data is; reuse: hot in cache",
            Self::Start => "start this sweep",
        }
    }

    /// True for lines that are chosen, not typed.
    pub const fn is_choice(self) -> bool {
        matches!(self, Self::Patterns | Self::Mover | Self::Buffers)
    }

    /// The line that a refusal of [`SweepSettings::check`] belongs to.
    fn of_setting(setting: &str) -> Self {
        Self::ALL.into_iter().find(|field| field.name().split(',').next() == Some(setting)).unwrap_or(Self::Start)
    }
}

/// What is wrong with the form, and at which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    pub field: Field,
    pub message: String,
}

/// A line being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typing {
    text: Vec<char>,
    caret: usize,
}

/// One step of typing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Insert(char),
    Back,
    Delete,
    Left,
    Right,
    Home,
    End,
    Clear,
}

impl Typing {
    /// Start from `text`, the caret at its end.
    pub fn new(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { caret: text.len(), text }
    }

    /// The text so far.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Characters before the caret.
    pub const fn caret(&self) -> usize {
        self.caret
    }

    /// Do one step; longer than 200 characters does not grow.
    pub fn stroke(&mut self, stroke: Stroke) {
        match stroke {
            Stroke::Insert(c) => {
                if self.text.len() < 200 && plain(&c.to_string()).len() == c.len_utf8() {
                    self.text.insert(self.caret, c);
                    self.caret += 1;
                }
            }
            Stroke::Back => {
                if let Some(before) = self.caret.checked_sub(1) {
                    self.text.remove(before);
                    self.caret = before;
                }
            }
            Stroke::Delete => {
                if self.caret < self.text.len() {
                    self.text.remove(self.caret);
                }
            }
            Stroke::Left => self.caret = self.caret.saturating_sub(1),
            Stroke::Right => self.caret = (self.caret + 1).min(self.text.len()),
            Stroke::Home => self.caret = 0,
            Stroke::End => self.caret = self.text.len(),
            Stroke::Clear => *self = Self::default(),
        }
    }
}

/// The form as it stands.
#[derive(Debug, Clone)]
pub struct Form {
    /// the line with the cursor
    pub field: Field,
    /// the line being typed, if one is
    pub typing: Option<Typing>,
    /// first row of the placement table that is shown
    pub scroll: usize,
    /// what is typed in the lines that are typed, in the order of `Field::ALL`
    texts: [String; 7],
    patterns: usize,
    mover: usize,
    movers: Vec<MoverKind>,
    buffers: Buffers,
    arena: u64,
}

const PATTERNS: [&[Pattern]; 3] = [&[Pattern::Local, Pattern::Peer], &[Pattern::Peer], &[Pattern::Local]];

impl Form {
    /// A form filled with `settings`; `movers` are the engine's.
    pub fn new(settings: &SweepSettings, mut movers: Vec<MoverKind>) -> Self {
        if movers.is_empty() {
            movers.push(settings.mover);
        }
        Self {
            field: Field::Start,
            typing: None,
            scroll: 0,
            texts: [
                format_ranks(&settings.ranks),
                sizes_text(&settings.sizes),
                settings.repeats.to_string(),
                settings.warmup.to_string(),
                settings.window.to_string(),
                settings.timeout.to_string(),
                settings.seed.to_string(),
            ],
            patterns: PATTERNS.iter().position(|patterns| *patterns == settings.patterns).unwrap_or(0),
            mover: movers.iter().position(|mover| *mover == settings.mover).unwrap_or(0),
            movers,
            buffers: settings.buffers,
            arena: settings.arena,
        }
    }

    /// What a line says.
    pub fn text(&self, field: Field) -> String {
        match field {
            Field::Patterns => PATTERNS[self.patterns].iter().map(|pattern| pattern.name()).collect::<Vec<_>>().join(", "),
            Field::Mover => self.movers.get(self.mover).map_or("none", |mover| mover.name()).to_owned(),
            Field::Buffers => if self.buffers == Buffers::Rotate { "rotate" } else { "reuse" }.to_owned(),
            Field::Start => String::new(),
            typed => slot(typed).map(|slot| self.texts[slot].clone()).unwrap_or_default(),
        }
    }

    /// The line above or below.
    pub fn step(&mut self, down: bool) {
        self.accept();
        let at = Field::ALL.iter().position(|field| *field == self.field).unwrap_or(0);
        let to = if down { (at + 1).min(Field::ALL.len() - 1) } else { at.saturating_sub(1) };
        self.field = Field::ALL[to];
    }

    /// The next or the former choice of the line with the cursor.
    pub fn choose(&mut self, next: bool) {
        let turn = |at: usize, of: usize| if next { (at + 1) % of } else { (at + of - 1) % of };
        match self.field {
            Field::Patterns => self.patterns = turn(self.patterns, PATTERNS.len()),
            Field::Mover => self.mover = turn(self.mover, self.movers.len()),
            Field::Buffers => self.buffers = if self.buffers == Buffers::Rotate { Buffers::Reuse } else { Buffers::Rotate },
            _ => {}
        }
    }

    /// Put the cursor on a line.
    pub fn go(&mut self, field: Field) {
        self.accept();
        self.field = field;
    }

    /// One more or one less on a line that holds a whole number.
    pub fn count(&mut self, more: bool) {
        if let (Some(slot), Ok(number)) = (slot(self.field), self.text(self.field).parse::<u64>()) {
            let number = if more { number.saturating_add(1) } else { number.saturating_sub(1) };
            self.texts[slot] = number.to_string();
        }
    }

    /// Begin to type in the line with the cursor.
    pub fn edit(&mut self) {
        if slot(self.field).is_some() {
            self.typing = Some(Typing::new(&self.text(self.field)));
        }
    }

    /// Take what was typed.
    pub fn accept(&mut self) {
        if let (Some(typing), Some(slot)) = (self.typing.take(), slot(self.field)) {
            typing.text().trim().clone_into(&mut self.texts[slot]);
        }
    }

    /// Drop what was typed.
    pub fn cancel(&mut self) {
        self.typing = None;
    }

    /// The settings that the form means in a job of `world` ranks, or the first line that is wrong.
    pub fn settings(&self, world: usize) -> Result<SweepSettings, FormError> {
        let wrong = |field, message: String| FormError { field, message };
        let ranks = match self.text(Field::Ranks).as_str() {
            "" | "all" => Vec::new(),
            text => parse_ranks(text, world).map_err(|error| wrong(Field::Ranks, error.to_string()))?,
        };
        let sizes = parse_sizes(&self.text(Field::Sizes)).map_err(|error| wrong(Field::Sizes, error.to_string()))?;
        let settings = SweepSettings {
            patterns: PATTERNS[self.patterns].to_vec(),
            sizes,
            ranks,
            repeats: self.number(Field::Repeats, "a whole number such as 8")?,
            warmup: self.number(Field::Warmup, "a whole number such as 1")?,
            window: self.number(Field::Window, "a whole number from 1 to 1024")?,
            timeout: self.number(Field::Timeout, "seconds such as 10 or 0.5")?,
            seed: self.number(Field::Seed, "a whole number of at most 64 bits")?,
            mover: self.movers.get(self.mover).copied().unwrap_or(MoverKind::Memcpy),
            buffers: self.buffers,
            arena: self.arena,
            ..SweepSettings::default()
        };
        settings.check(world).map_err(|error| wrong(Field::of_setting(error.setting), error.to_string()))?;
        Ok(settings)
    }

    fn number<T: std::str::FromStr>(&self, field: Field, expected: &str) -> Result<T, FormError> {
        let text = self.text(field);
        text.parse().map_err(|_| FormError { field, message: format!("{:?} is not {expected}", plain(&text)) })
    }
}

/// Index into `Form::texts` of a line that is typed.
const fn slot(field: Field) -> Option<usize> {
    match field {
        Field::Ranks => Some(0),
        Field::Sizes => Some(1),
        Field::Repeats => Some(2),
        Field::Warmup => Some(3),
        Field::Window => Some(4),
        Field::Timeout => Some(5),
        Field::Seed => Some(6),
        Field::Patterns | Field::Mover | Field::Buffers | Field::Start => None,
    }
}

/// Sizes in the shortest form that parses back: a range of ×4 steps, or a list.
fn sizes_text(sizes: &[u64]) -> String {
    let one = |bytes: u64| format_size(bytes).replace(' ', "");
    if let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) {
        let range = format!("{}..{}", one(first), one(last));
        if sizes.len() > 2 && parse_sizes(&range).is_ok_and(|parsed| parsed == sizes) {
            return range;
        }
    }
    // Sizes that `format_size` would round are told in bytes.
    let exact = |bytes: u64| if parse_sizes(&one(bytes)).is_ok_and(|parsed| parsed == [bytes]) { one(bytes) } else { bytes.to_string() };
    sizes.iter().map(|&bytes| exact(bytes)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let odd = SweepSettings { sizes: vec![1000, 4096, 5_000_000], ranks: vec![0, 2], timeout: 0.5, ..SweepSettings::default() };
        assert_eq!(Form::new(&odd, vec![MoverKind::Memcpy]).settings(4), Ok(odd));
    }

    #[test]
    fn what_is_wrong_is_told_at_its_line() {
        for (field, text) in [
            (Field::Ranks, "0-9"),
            (Field::Sizes, "4kB"),
            (Field::Sizes, "4GiB"),
            (Field::Repeats, "0"),
            (Field::Repeats, "-1"),
            (Field::Window, "2000"),
            (Field::Timeout, "inf"),
            (Field::Seed, "x"),
        ] {
            assert_eq!(typed(field, text).settings(4).unwrap_err().field, field, "{text}");
        }
    }

    #[test]
    fn typing_moves_as_a_line_editor() {
        let mut typing = Typing::new("0-3");
        for stroke in [Stroke::Left, Stroke::Back, Stroke::Insert('÷'), Stroke::Home, Stroke::Delete, Stroke::End, Stroke::Insert('\u{1b}')]
        {
            typing.stroke(stroke);
        }
        assert_eq!((typing.text().as_str(), typing.caret()), ("÷3", 2));
    }

    #[test]
    fn choices_turn() {
        let mut form = form();
        form.field = Field::Mover;
        form.choose(true);
        assert_eq!(form.settings(4).unwrap().mover, MoverKind::MpiPut);
        form.field = Field::Patterns;
        form.choose(false);
        assert_eq!(form.text(Field::Patterns), "local");
    }
}
