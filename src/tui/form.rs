//! The Sweep tab's form: what a person types, and the settings that it means.

mod field;
#[cfg(test)]
mod tests;

pub use field::{Field, PATTERN_LINES};

use super::typing::Typing;
use crate::sample::{Memory, MoverKind, Pattern};
use crate::sweep::{Buffers, Peers, SweepSettings, Transfer, parse_gpus};
use crate::units::{format_ranks, format_size, parse_ranks, parse_sizes, plain};

/// What is wrong with the form, and at which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    pub field: Field,
    pub message: String,
}

/// The form as it stands.
#[derive(Debug, Clone)]
pub struct Form {
    /// the field with the cursor
    pub field: Field,
    /// the field being typed, if one is
    pub typing: Option<Typing>,
    /// first row of the placement table that is shown
    pub scroll: usize,
    /// what is typed in the fields that are typed, as [`slot`] orders them
    texts: [String; SLOTS],
    patterns: Vec<Pattern>,
    peers: Vec<Peers>,
    peer: usize,
    isolated: bool,
    mover: usize,
    movers: Vec<MoverKind>,
    memory: Memory,
    buffers: Buffers,
    arena: u64,
    transfers: Vec<Transfer>,
}

impl Form {
    /// A form filled with `settings`; `movers` are the engine's.
    pub fn new(settings: &SweepSettings, mut movers: Vec<MoverKind>) -> Self {
        if movers.is_empty() {
            movers.push(settings.mover);
        }
        let mut peers = vec![Peers::Nearest, Peers::Next, Peers::SameHost, Peers::SameSwitch, Peers::CrossHost];
        if let Peers::Listed(_) = settings.peers {
            peers.push(settings.peers.clone());
        }
        let unless_zero = |text: String| if text == "0" { String::new() } else { text };
        Self {
            field: Field::Start,
            typing: None,
            scroll: 0,
            texts: [
                format_ranks(&settings.ranks),
                sizes_text(&settings.sizes),
                numbers_text(&settings.widths),
                numbers_text(&settings.shifts),
                unless_zero(settings.pairs.to_string()),
                settings.repeats.to_string(),
                settings.warmup.to_string(),
                unless_zero(settings.ci.to_string()),
                unless_zero(settings.budget.to_string()),
                settings.window.to_string(),
                settings.timeout.to_string(),
                settings.seed.to_string(),
                settings.gpus.join(","),
            ],
            patterns: settings.patterns.clone(),
            peer: peers.iter().position(|peers| *peers == settings.peers).unwrap_or(0),
            peers,
            isolated: settings.isolated,
            mover: movers.iter().position(|mover| *mover == settings.mover).unwrap_or(0),
            movers,
            memory: settings.memory,
            buffers: settings.buffers,
            arena: settings.arena,
            transfers: settings.transfers.clone(),
        }
    }

    /// What a field says; what an empty one means.
    pub fn text(&self, field: Field) -> String {
        match field {
            Field::Pattern(pattern) => pattern.name().to_owned(),
            Field::Peers => match self.peers.get(self.peer) {
                Some(Peers::Next) => "next",
                Some(Peers::SameHost) => "same_host",
                Some(Peers::SameSwitch) => "same_switch",
                Some(Peers::CrossHost) => "cross_host",
                Some(Peers::Listed(_)) => "as listed",
                Some(Peers::Nearest) | None => "nearest",
            }
            .to_owned(),
            Field::Isolated => if self.isolated { "yes" } else { "no" }.to_owned(),
            Field::Mover => self.movers.get(self.mover).map_or("none", |mover| mover.name()).to_owned(),
            Field::Memory => self.memory.name().to_owned(),
            Field::Buffers => if self.buffers == Buffers::Rotate { "rotate" } else { "reuse" }.to_owned(),
            typed => match self.typed(typed) {
                "" => typed.empty().to_owned(),
                text => text.to_owned(),
            },
        }
    }

    fn typed(&self, field: Field) -> &str {
        slot(field).map_or("", |slot| self.texts[slot].as_str())
    }

    /// True if a pattern is switched on.
    pub fn has(&self, pattern: Pattern) -> bool {
        self.patterns.contains(&pattern)
    }

    /// True if a pattern can be switched on: `custom` needs the transfers of a pattern file, copies between hosts and GPUs need GPUs.
    pub fn can(&self, pattern: Pattern) -> bool {
        match pattern {
            Pattern::Custom => !self.transfers.is_empty(),
            _ => !pattern.crosses() || self.memory == Memory::Cuda,
        }
    }

    /// False if a field changes nothing in what is switched on.
    pub fn matters(&self, field: Field) -> bool {
        let any = |of: fn(Pattern) -> bool| self.patterns.iter().any(|&pattern| of(pattern));
        match field {
            Field::Widths => any(Pattern::is_fan) && !matches!(self.peers.get(self.peer), Some(Peers::Listed(_))),
            Field::Peers => any(Pattern::is_fan),
            Field::Shifts => self.has(Pattern::Relay),
            Field::Gpus => self.memory == Memory::Cuda,
            Field::Pairs => any(|pattern| matches!(pattern, Pattern::Peer | Pattern::Duplex)),
            _ => true,
        }
    }

    /// Switch a pattern on or off, if it can be.
    pub fn switch(&mut self, pattern: Pattern) {
        if !self.can(pattern) {
            return;
        }
        if self.has(pattern) {
            self.patterns.retain(|&own| own != pattern);
        } else {
            self.patterns.push(pattern);
            self.patterns.sort_by_key(|own| Pattern::ALL.iter().position(|known| known == own));
        }
    }

    /// The field above or below, in the same column where there is one.
    pub fn step(&mut self, down: bool) {
        self.accept();
        let (line, column) = self.field.place();
        let to = if down { (line + 1).min(Field::LINES.len() - 1) } else { line.saturating_sub(1) };
        let fields = Field::LINES[to];
        self.field = fields[column.min(fields.len() - 1)];
    }

    /// The field beside this one on its line, or, where it is alone there, the next or the former choice.
    pub fn beside(&mut self, next: bool) {
        self.accept();
        let (line, column) = self.field.place();
        let fields = Field::LINES[line];
        if fields.len() > 1 {
            let to = if next { (column + 1).min(fields.len() - 1) } else { column.saturating_sub(1) };
            self.field = fields[to];
        } else {
            self.choose(next);
        }
    }

    /// The next or the former choice of the field with the cursor; of two, the other one.
    pub fn choose(&mut self, next: bool) {
        let turn = |at: usize, of: usize| if next { (at + 1) % of } else { (at + of - 1) % of };
        match self.field {
            Field::Peers => self.peer = turn(self.peer, self.peers.len()),
            Field::Isolated => self.isolated = !self.isolated,
            Field::Mover => self.mover = turn(self.mover, self.movers.len()),
            Field::Memory => self.memory = if self.memory.is_host() { Memory::Cuda } else { Memory::Host },
            Field::Buffers => self.buffers = if self.buffers == Buffers::Rotate { Buffers::Reuse } else { Buffers::Rotate },
            _ => {}
        }
    }

    /// Put the cursor on a field.
    pub fn go(&mut self, field: Field) {
        self.accept();
        self.field = field;
    }

    /// One more or one less in a field that holds a whole number.
    pub fn count(&mut self, more: bool) {
        let Some(slot) = slot(self.field).filter(|_| !matches!(self.field, Field::Ranks | Field::Sizes | Field::Ci | Field::Gpus)) else {
            return;
        };
        let text = &mut self.texts[slot];
        if let Ok(number) = if text.is_empty() { Ok(0) } else { text.parse::<u64>() } {
            let number = if more { number.saturating_add(1) } else { number.saturating_sub(1) };
            *text = if number == 0 && !self.field.empty().is_empty() { String::new() } else { number.to_string() };
        }
    }

    /// Begin to type in the field with the cursor.
    pub fn edit(&mut self) {
        if slot(self.field).is_some() {
            self.typing = Some(Typing::new(self.typed(self.field)));
        }
    }

    /// Take what was typed.
    pub fn accept(&mut self) {
        if let (Some(typing), Some(slot)) = (self.typing.take(), slot(self.field)) {
            let text = typing.text();
            let text = text.trim();
            // What an empty field is called means an empty one.
            self.texts[slot] = if text == self.field.empty() { String::new() } else { text.to_owned() };
        }
    }

    /// Drop what was typed.
    pub fn cancel(&mut self) {
        self.typing = None;
    }

    /// The settings that the form means in a job of `world` ranks, or the first field that is wrong.
    pub fn settings(&self, world: usize) -> Result<SweepSettings, FormError> {
        let wrong = |field, message: String| FormError { field, message };
        let ranks = match self.typed(Field::Ranks) {
            "" => Vec::new(),
            text => parse_ranks(text, world).map_err(|error| wrong(Field::Ranks, error.to_string()))?,
        };
        let sizes = parse_sizes(self.typed(Field::Sizes)).map_err(|error| wrong(Field::Sizes, error.to_string()))?;
        let settings = SweepSettings {
            // Those of another memory are kept in the form, as GPUs are.
            patterns: self.patterns.iter().copied().filter(|&pattern| !pattern.crosses() || self.can(pattern)).collect(),
            sizes,
            ranks,
            widths: self.numbers(Field::Widths, "widths such as 1,2,4 or 1-7")?,
            peers: self.peers.get(self.peer).cloned().unwrap_or_default(),
            shifts: self.numbers(Field::Shifts, "shifts such as 1 or 1,4")?,
            transfers: self.transfers.clone(),
            pairs: self.number_or_none(Field::Pairs, "", "a number of pairs of each rank such as 64, or all")?,
            isolated: self.isolated,
            repeats: self.number(Field::Repeats, "a whole number such as 8")?,
            ci: self.share()?,
            budget: self.number_or_none(Field::Budget, "s", "seconds such as 60, or none")?,
            warmup: self.number(Field::Warmup, "a whole number such as 1")?,
            window: self.number(Field::Window, "a whole number from 1 to 1024")?,
            timeout: self.number(Field::Timeout, "seconds such as 10 or 0.5")?,
            seed: self.number(Field::Seed, "a whole number of at most 64 bits")?,
            mover: self.movers.get(self.mover).copied().unwrap_or(MoverKind::Memcpy),
            memory: self.memory,
            // Those of another memory are kept in the form, for when it is chosen again.
            gpus: if self.matters(Field::Gpus) { self.gpus() } else { Vec::new() },
            buffers: self.buffers,
            arena: self.arena,
        };
        settings.check(world).map_err(|error| wrong(Field::of_setting(error.setting), error.to_string()))?;
        Ok(settings)
    }

    fn gpus(&self) -> Vec<String> {
        parse_gpus(self.typed(Field::Gpus))
    }

    fn number<T: std::str::FromStr>(&self, field: Field, expected: &str) -> Result<T, FormError> {
        parse(field, self.typed(field), self.typed(field), expected)
    }

    /// An empty field is 0; `unit` may stand after the number.
    fn number_or_none<T: std::str::FromStr + Default>(&self, field: Field, unit: &str, expected: &str) -> Result<T, FormError> {
        let text = self.typed(field);
        if text.is_empty() { Ok(T::default()) } else { parse(field, text.strip_suffix(unit).unwrap_or(text).trim_end(), text, expected) }
    }

    /// A share such as `0.05` or `5%`; an empty field is 0.
    fn share(&self) -> Result<f64, FormError> {
        const EXPECTED: &str = "a share such as 0.05 or 5%, or off";
        match self.typed(Field::Ci) {
            "" => Ok(0.0),
            text => match text.strip_suffix('%') {
                Some(percent) => Ok(parse::<f64>(Field::Ci, percent.trim_end(), text, EXPECTED)? / 100.0),
                None => parse(Field::Ci, text, text, EXPECTED),
            },
        }
    }

    /// Whole numbers and ranges of them, ascending, each once.
    fn numbers(&self, field: Field, expected: &str) -> Result<Vec<usize>, FormError> {
        /// More than any job has ranks.
        const MOST: usize = 1 << 20;
        let text = self.typed(field);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        parse_ranks(text, MOST).map_err(|_| FormError { field, message: format!("{:?} is not {expected}", plain(text)) })
    }
}

fn parse<T: std::str::FromStr>(field: Field, number: &str, text: &str, expected: &str) -> Result<T, FormError> {
    number.parse().map_err(|_| FormError { field, message: format!("{:?} is not {expected}", plain(text)) })
}

/// Fields that are typed.
const SLOTS: usize = 13;

/// Index into `Form::texts` of a field that is typed.
const fn slot(field: Field) -> Option<usize> {
    Some(match field {
        Field::Ranks => 0,
        Field::Sizes => 1,
        Field::Widths => 2,
        Field::Shifts => 3,
        Field::Pairs => 4,
        Field::Repeats => 5,
        Field::Warmup => 6,
        Field::Ci => 7,
        Field::Budget => 8,
        Field::Window => 9,
        Field::Timeout => 10,
        Field::Seed => 11,
        Field::Gpus => 12,
        Field::Pattern(_) | Field::Peers | Field::Isolated | Field::Mover | Field::Memory | Field::Buffers | Field::Start => return None,
    })
}

/// Numbers as a list, runs of three or more as ranges.
fn numbers_text(numbers: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, .., last] if run.len() > 2 => parts.push(format!("{first}-{last}")),
            _ => parts.extend(run.iter().map(ToString::to_string)),
        }
    }
    parts.join(",")
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
