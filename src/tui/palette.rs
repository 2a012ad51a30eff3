//! The command palette: every action by name, and commands with a word after them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::keys::{Action, Context, Keymap};
use super::state::Tab;
use super::typing::{Typing, stroke};
use crate::matrix::Metric;
use crate::units::{format_size, parse_size, plain};

/// A command that needs a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Theme,
    Tab,
    Find,
    Size,
    Metric,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Theme, Self::Tab, Self::Find, Self::Size, Self::Metric];

    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Theme => "theme",
            Self::Tab => "tab",
            Self::Find => "find",
            Self::Size => "size",
            Self::Metric => "metric",
        }
    }

    /// What it does, and with what.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Theme => "Take a theme: its name",
            Self::Tab => "Go to a tab: its name or number",
            Self::Find => "Find a rank, a host or a device in the Topology: its name",
            Self::Size => "Show a message size in the Matrix: such as 1MiB",
            Self::Metric => "Show a metric in the Matrix: its name",
        }
    }
}

/// What the palette was told to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Action(Action),
    Theme(String),
    Tab(Tab),
    Find(String),
    Size(u64),
    Metric(Metric),
}

/// One line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    Action(Action),
    Verb(Verb),
    /// a word that the command takes
    Word(&'a str),
}

/// What words commands take here.
#[derive(Debug, Clone, Default)]
pub struct Words {
    pub themes: Vec<String>,
    /// measured message sizes, bytes
    pub sizes: Vec<u64>,
}

/// What a key in the palette came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Pressed {
    Stays,
    Closes,
    Runs(Order),
}

/// The palette while it is open.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    pub typing: Typing,
    /// the chosen line
    pub at: usize,
    /// what was wrong with what was typed
    pub error: Option<String>,
    words: Vec<(Verb, Vec<String>)>,
}

impl Palette {
    /// An empty line, with the words that commands take.
    pub fn new(words: &Words) -> Self {
        let list = |verb| match verb {
            Verb::Theme => words.themes.clone(),
            Verb::Tab => Tab::ALL.iter().map(|tab| tab.title().to_lowercase()).collect(),
            Verb::Size => words.sizes.iter().map(|&bytes| format_size(bytes).replace(' ', "")).collect(),
            Verb::Metric => Metric::ALL.iter().map(|metric| metric.name().to_owned()).collect(),
            Verb::Find => Vec::new(),
        };
        Self { words: Verb::ALL.into_iter().map(|verb| (verb, list(verb))).collect(), ..Self::default() }
    }

    /// The command whose word is being typed, and the word so far.
    fn command(&self) -> Option<(Verb, String)> {
        let text = self.typing.text();
        let (first, rest) = text.trim_start().split_once(' ')?;
        let verb = Verb::ALL.into_iter().find(|verb| verb.name() == first)?;
        Some((verb, rest.trim().to_owned()))
    }

    /// The lines that fit what is typed, the best first.
    pub fn rows(&self, keymap: &Keymap) -> Vec<Row<'_>> {
        if let Some((verb, word)) = self.command() {
            let words = self.words.iter().find(|(own, _)| *own == verb).map_or(&[][..], |(_, words)| words);
            let word = word.to_lowercase();
            return words.iter().filter(|known| known.to_lowercase().contains(&word)).map(|known| Row::Word(known)).collect();
        }
        let wanted = self.typing.text().to_lowercase();
        let wanted: Vec<&str> = wanted.split_whitespace().collect();
        let mut rows: Vec<(u8, Row<'_>)> = Vec::new();
        let mut add = |name: &str, about: &str, row| {
            if let Some(rank) = rank(&wanted, name, about) {
                rows.push((rank, row));
            }
        };
        for verb in Verb::ALL {
            // Of an action and a command of the same name the action needs no word more.
            add(&format!("{} ", verb.name()), verb.doc(), Row::Verb(verb));
        }
        for &action in Action::ALL.iter().filter(|action| **action != Action::Palette) {
            let keys: Vec<String> = keymap.keys_of(action).iter().map(ToString::to_string).collect();
            add(action.name(), &format!("{} {} {}", action.doc(), place(action), keys.join(" ")), Row::Action(action));
        }
        rows.sort_by_key(|(rank, _)| *rank);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// A key while it is open.
    pub fn key(&mut self, key: KeyEvent, keymap: &Keymap) -> Pressed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.rows(keymap).len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return Pressed::Closes,
            KeyCode::Char('c' | 'p') if control => return Pressed::Closes,
            KeyCode::Up => self.at = self.at.min(last).saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            KeyCode::PageUp => self.at = self.at.min(last).saturating_sub(10),
            KeyCode::PageDown => self.at = (self.at + 10).min(last),
            KeyCode::Tab => self.complete(keymap),
            KeyCode::Enter => return self.enter(keymap),
            // An empty line that is taken back further closes it, as in an editor.
            KeyCode::Backspace if self.typing.text().is_empty() => return Pressed::Closes,
            _ => {
                if let Some(stroke) = stroke(key) {
                    self.typing.stroke(stroke);
                    (self.at, self.error) = (0, None);
                }
            }
        }
        Pressed::Stays
    }

    fn complete(&mut self, keymap: &Keymap) {
        let text = match (self.rows(keymap).get(self.at), self.command()) {
            (Some(Row::Word(word)), Some((verb, _))) => format!("{} {word}", verb.name()),
            (Some(Row::Verb(verb)), _) => format!("{} ", verb.name()),
            (Some(Row::Action(action)), _) => action.name().to_owned(),
            _ => return,
        };
        (self.typing, self.at) = (Typing::new(&text), 0);
    }

    fn enter(&mut self, keymap: &Keymap) -> Pressed {
        let rows = self.rows(keymap);
        let chosen = rows.get(self.at.min(rows.len().saturating_sub(1))).copied();
        let order = match (self.command(), chosen) {
            (Some((verb, word)), chosen) => {
                let known = rows.iter().any(|row| matches!(row, Row::Word(known) if known.eq_ignore_ascii_case(&word)));
                // A word that is whole is meant; of a part the chosen line is.
                let word = match chosen {
                    Some(Row::Word(chosen)) if !known => (*chosen).to_owned(),
                    _ => word,
                };
                self.order(verb, &word)
            }
            (None, Some(Row::Action(action))) => Ok(Order::Action(action)),
            (None, Some(Row::Verb(verb))) => {
                (self.typing, self.at) = (Typing::new(&format!("{} ", verb.name())), 0);
                return Pressed::Stays;
            }
            (None, _) => {
                let text = self.typing.text();
                let names = Action::ALL.iter().map(|action| action.name()).chain(Verb::ALL.into_iter().map(Verb::name));
                let nearest = super::nearest(text.split_whitespace().next().unwrap_or_default(), names).unwrap_or("help");
                Err(format!("nothing is called {:?}; did you mean {nearest:?}?", plain(&text)))
            }
        };
        match order {
            Ok(order) => Pressed::Runs(order),
            Err(error) => {
                self.error = Some(error);
                Pressed::Stays
            }
        }
    }

    /// A command with its word.
    fn order(&self, verb: Verb, word: &str) -> Result<Order, String> {
        let known = || self.words.iter().find(|(own, _)| *own == verb).map(|(_, words)| words.join(", ")).unwrap_or_default();
        if word.is_empty() {
            return Err(format!("{} what? {}", verb.name(), if verb == Verb::Find { "a name or a number".to_owned() } else { known() }));
        }
        let unknown = || format!("{}: {:?} is not one of {}", verb.name(), plain(word), known());
        match verb {
            Verb::Theme => Ok(Order::Theme(word.to_owned())),
            Verb::Find => Ok(Order::Find(word.to_owned())),
            Verb::Tab => {
                let named = |tab: &Tab| tab.title().eq_ignore_ascii_case(word) || tab.number().to_string() == word;
                Tab::ALL.into_iter().find(named).map(Order::Tab).ok_or_else(unknown)
            }
            Verb::Metric => {
                let named = |metric: &Metric| metric.name().eq_ignore_ascii_case(&word.replace('_', " "));
                Metric::ALL.into_iter().find(named).map(Order::Metric).ok_or_else(unknown)
            }
            Verb::Size => match parse_size(word) {
                Ok(bytes) => Ok(Order::Size(bytes)),
                Err(error) => Err(format!("size: {error}")),
            },
        }
    }
}

/// Where an action's keys count, as a word.
pub fn place(action: Action) -> &'static str {
    match action.context() {
        Context::Recorded => "recorded",
        own => tab_of(own).map_or("", Tab::title),
    }
}

/// The tab that an action is of.
pub fn tab_of(context: Context) -> Option<Tab> {
    Tab::ALL.into_iter().find(|tab| tab.context() == Some(context))
}

/// How well words fit a name and what is told about it, 0 the best; `None` if one of them is in neither. Letters of the name in their
/// order fit, too, last.
fn rank(wanted: &[&str], name: &str, about: &str) -> Option<u8> {
    let (spoken, about) = (name.replace('_', " "), about.to_lowercase());
    let one = |word: &str| {
        if spoken.starts_with(word) || name.starts_with(word) {
            Some(1)
        } else if spoken.contains(word) || name.contains(word) {
            Some(2)
        } else if about.split(|c: char| !c.is_alphanumeric()).any(|part| part.starts_with(word)) {
            Some(3)
        } else if about.contains(word) {
            Some(4)
        } else {
            let mut letters = name.chars();
            word.chars().all(|c| letters.any(|own| own == c)).then_some(5)
        }
    };
    if wanted == [name] {
        return Some(0);
    }
    wanted.iter().map(|word| one(word)).try_fold(0, |worst, rank| Some(worst.max(rank?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keymap() -> Keymap {
        Keymap::load(None).unwrap()
    }

    fn palette(text: &str) -> Palette {
        let words = Words { themes: vec!["dark".into(), "light".into()], sizes: vec![4096, 1 << 20] };
        Palette { typing: Typing::new(text), ..Palette::new(&words) }
    }

    fn entered(text: &str) -> Result<Order, String> {
        let mut palette = palette(text);
        match palette.enter(&keymap()) {
            Pressed::Runs(order) => Ok(order),
            _ => Err(palette.error.unwrap_or_else(|| palette.typing.text())),
        }
    }

    #[test]
    fn every_action_is_listed_and_found_by_its_name_and_its_words() {
        let all = palette("").rows(&keymap()).len();
        assert_eq!(all, Action::ALL.len() - 1 + Verb::ALL.len());
        for &action in Action::ALL.iter().filter(|action| **action != Action::Palette) {
            assert_eq!(entered(action.name()).ok(), Some(Order::Action(action)), "{}", action.name());
            let told = palette(action.doc());
            let rows = told.rows(&keymap());
            assert!(rows.contains(&Row::Action(action)), "{}: {rows:?}", action.doc());
        }
    }

    #[test]
    fn commands_take_their_word() {
        assert_eq!(entered("theme light"), Ok(Order::Theme("light".into())));
        assert_eq!(entered("theme li"), Ok(Order::Theme("light".into())));
        assert_eq!(entered("tab matrix"), Ok(Order::Tab(Tab::Matrix)));
        assert_eq!(entered("tab 6"), Ok(Order::Tab(Tab::Findings)));
        assert_eq!(entered("find host3"), Ok(Order::Find("host3".into())));
        assert_eq!(entered("size 1MiB"), Ok(Order::Size(1 << 20)));
        assert_eq!(entered("metric asymmetry"), Ok(Order::Metric(Metric::Asymmetry)));
        assert_eq!(entered("metric duplex_ratio"), Ok(Order::Metric(Metric::DuplexRatio)));
        // Without its word a command waits for it.
        assert_eq!(entered("theme"), Err("theme ".into()));
        assert!(entered("find ").unwrap_err().contains("find what?"));
        assert!(entered("tab nowhere").unwrap_err().contains("\"nowhere\" is not one of topology, sweep"));
        assert!(entered("size much").unwrap_err().contains("much"));
        assert!(entered("xyzzyx").unwrap_err().contains("nothing is called \"xyzzyx\"; did you mean"));
    }

    #[test]
    fn words_narrow_the_list_the_best_first() {
        let first = |text: &str| palette(text).rows(&keymap()).first().copied().map(|row| format!("{row:?}"));
        assert_eq!(first("zoom").as_deref(), Some("Action(Zoom)"));
        assert_eq!(first("abort").as_deref(), Some("Action(Abort)"));
        assert_eq!(first("finding go").as_deref(), Some("Action(ShowFinding)"));
        assert_eq!(first("nxtsz").as_deref(), Some("Action(NextSize)"));
        assert_eq!(first("qqqq"), None);
    }
}
