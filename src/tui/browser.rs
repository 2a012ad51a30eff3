//! This person's sessions, to be looked through: where the cursor is, what is typed, what was asked for.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::feed::{ShelfTold, Wish};
use super::typing::{Typing, stroke};
use crate::session::store::shelf::{Entry, State};

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    Name,
    Note,
}

/// The list while it is open.
#[derive(Debug, Clone, Default)]
pub struct Browser {
    pub entries: Vec<Entry>,
    /// the list was told at least once
    pub known: bool,
    pub at: usize,
    /// folder of the one that is compared with
    pub marked: Option<PathBuf>,
    /// what is typed, of the session in this folder
    pub typing: Option<(Typed, PathBuf, Typing)>,
    /// folder of the one that is deleted when the question is answered
    pub asked: Option<PathBuf>,
    /// what was wrong
    pub error: Option<String>,
    /// what was done
    pub done: Option<String>,
    /// a session is being looked at that another can be compared with
    pub beside: bool,
    /// sessions can be opened in this place
    pub opens: bool,
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    Close,
    Ask(Wish),
    Open {
        folder: PathBuf,
        /// the session to compare with
        against: Option<PathBuf>,
    },
}

impl Browser {
    /// Begin; `beside` if a session is open that another can be compared with.
    pub fn open(&mut self, opens: bool, beside: bool) {
        let entries = std::mem::take(&mut self.entries);
        *self = Self { entries, known: self.known, at: self.at, opens, beside, ..Self::default() };
    }

    /// The one with the cursor.
    pub fn chosen(&self) -> Option<&Entry> {
        self.entries.get(self.at.min(self.entries.len().saturating_sub(1)))
    }

    /// Take a key.
    pub fn key(&mut self, key: KeyEvent) -> Wanted {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some((typed, folder, typing)) = &mut self.typing {
            match key.code {
                KeyCode::Esc => self.typing = None,
                KeyCode::Char('c') if control => self.typing = None,
                KeyCode::Enter => {
                    let (typed, folder, text) = (*typed, folder.clone(), typing.text());
                    self.typing = None;
                    return Wanted::Ask(match typed {
                        Typed::Name => Wish::Rename { folder, name: text },
                        Typed::Note => Wish::Note { folder, text },
                    });
                }
                _ => {
                    if let Some(stroke) = stroke(key) {
                        typing.stroke(stroke);
                    }
                }
            }
            return Wanted::Nothing;
        }
        (self.error, self.done) = (None, None);
        if let Some(folder) = self.asked.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Wanted::Ask(Wish::Delete { folder }),
                _ => Wanted::Nothing,
            };
        }
        let last = self.entries.len().saturating_sub(1);
        self.at = self.at.min(last);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'B') => return Wanted::Close,
            KeyCode::Char('c') if control => return Wanted::Close,
            KeyCode::Up | KeyCode::Char('k') => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.at = (self.at + 1).min(last),
            KeyCode::PageUp => self.at = self.at.saturating_sub(10),
            KeyCode::PageDown => self.at = (self.at + 10).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.at = 0,
            KeyCode::End | KeyCode::Char('G') => self.at = last,
            KeyCode::Char(' ') => {
                let chosen = self.chosen().map(|entry| entry.folder.clone());
                self.marked = if self.marked == chosen { None } else { chosen };
            }
            KeyCode::Enter => return self.whole(|_, folder| Wanted::Open { folder, against: None }),
            KeyCode::Char('c') => return self.whole(Self::compare),
            KeyCode::Char('r') => self.type_in(Typed::Name),
            KeyCode::Char('n') => self.type_in(Typed::Note),
            KeyCode::Char('d') | KeyCode::Delete => match self.chosen() {
                Some(Entry { state: State::Broken(_), .. }) => {
                    self.error = Some("it cannot be read, and is left alone: look at it, and remove it yourself".to_owned());
                }
                Some(Entry { state: State::Written, .. }) => self.error = Some("a job writes it: end the job first".to_owned()),
                chosen => self.asked = chosen.map(|entry| entry.folder.clone()),
            },
            _ => {}
        }
        Wanted::Nothing
    }

    /// Something with the chosen one, if it can be read.
    fn whole(&mut self, then: impl FnOnce(&mut Self, PathBuf) -> Wanted) -> Wanted {
        match self.chosen() {
            Some(Entry { state: State::Broken(why), .. }) => {
                self.error = Some(why.clone());
                Wanted::Nothing
            }
            Some(entry) => {
                let folder = entry.folder.clone();
                then(self, folder)
            }
            None => Wanted::Nothing,
        }
    }

    /// The chosen one beside the marked one, or beside the one that is open.
    fn compare(&mut self, folder: PathBuf) -> Wanted {
        match self.marked.clone().filter(|marked| *marked != folder) {
            Some(marked) if self.opens => Wanted::Open { folder, against: Some(marked) },
            _ if self.beside => Wanted::Ask(Wish::Load { folder }),
            _ => {
                self.error = Some("mark the earlier one with space, then press c on the later one".to_owned());
                Wanted::Nothing
            }
        }
    }

    fn type_in(&mut self, typed: Typed) {
        let Some(entry) = self.chosen() else { return };
        if let State::Broken(why) = &entry.state {
            self.error = Some(why.clone());
            return;
        }
        let text = if typed == Typed::Name { &entry.name } else { &entry.note };
        self.typing = Some((typed, entry.folder.clone(), Typing::new(&text.replace('\n', " "))));
    }
}

/// Take in what became of a wish.
pub fn take(browser: &mut Browser, told: ShelfTold) {
    match told {
        ShelfTold::Listed(entries) => {
            // The cursor stays with its session.
            let chosen = browser.chosen().map(|entry| entry.folder.clone());
            let at = entries.iter().position(|entry| Some(&entry.folder) == chosen.as_ref());
            browser.at = at.unwrap_or(browser.at).min(entries.len().saturating_sub(1));
            (browser.entries, browser.known) = (entries, true);
        }
        ShelfTold::Done { say, moved } => {
            if let Some((from, to)) = moved {
                // It is listed under its new name next; whoever answers a question about it means it there.
                let places = browser.entries.iter_mut().map(|entry| &mut entry.folder);
                let asked =
                    browser.asked.iter_mut().chain(browser.marked.iter_mut()).chain(browser.typing.iter_mut().map(|typing| &mut typing.1));
                places.chain(asked).filter(|place| **place == from).for_each(|place| place.clone_from(&to));
            }
            (browser.done, browser.error) = (Some(say), None);
        }
        ShelfTold::Refused(why) => (browser.error, browser.done) = (Some(why), None),
        ShelfTold::Loaded { .. } => {}
    }
}

#[cfg(test)]
pub fn entry(name: &str, state: State) -> Entry {
    Entry {
        name: name.to_owned(),
        folder: PathBuf::from("/s").join(name),
        state,
        started: Some("2026-11-29T12:00:00Z".to_owned()),
        engine: Some("mpi".to_owned()),
        ranks: 8,
        hosts: 2,
        samples: Some(12_345),
        bytes: 1 << 20,
        note: if name == "two" { "after the cable of node3".to_owned() } else { String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keys::Key;

    fn browser(opens: bool) -> Browser {
        let mut browser = Browser::default();
        browser.open(opens, !opens);
        let entries = vec![
            entry("one", State::Ended),
            entry("two", State::Cut),
            entry("three", State::Written),
            entry("four", State::Broken("no header".into())),
        ];
        take(&mut browser, ShelfTold::Listed(entries));
        browser
    }

    fn press(browser: &mut Browser, keys: &str) -> Wanted {
        let keys = keys.split_whitespace().map(|key| KeyEvent::from(key.parse::<Key>().unwrap()));
        keys.fold(Wanted::Nothing, |_, key| browser.key(key))
    }

    fn folder(name: &str) -> PathBuf {
        PathBuf::from("/s").join(name)
    }

    #[test]
    fn a_session_is_opened_or_compared_with_a_marked_one() {
        let mut list = browser(true);
        assert_eq!(press(&mut list, "j enter"), Wanted::Open { folder: folder("two"), against: None });
        assert_eq!(press(&mut list, "c"), Wanted::Nothing);
        assert!(list.error.as_ref().is_some_and(|error| error.contains("mark the earlier one")));
        let compared = Wanted::Open { folder: folder("one"), against: Some(folder("two")) };
        assert_eq!(press(&mut list, "space k c"), compared);
        // Beside a session that is open, that one is compared with.
        assert_eq!(press(&mut browser(false), "j c"), Wanted::Ask(Wish::Load { folder: folder("two") }));
    }

    #[test]
    fn deleting_is_asked_and_only_y_means_it() {
        let mut list = browser(true);
        assert_eq!(press(&mut list, "d"), Wanted::Nothing);
        assert_eq!(list.asked, Some(folder("one")));
        assert_eq!(press(&mut list, "enter"), Wanted::Nothing);
        assert_eq!(list.asked, None);
        assert_eq!(press(&mut list, "d y"), Wanted::Ask(Wish::Delete { folder: folder("one") }));
        // What is written or broken is not even asked about.
        for (keys, word) in [("G d", "left alone"), ("k d", "a job writes it")] {
            assert_eq!(press(&mut list, keys), Wanted::Nothing);
            assert!(list.asked.is_none() && list.error.as_ref().is_some_and(|error| error.contains(word)), "{:?}", list.error);
        }
    }

    #[test]
    fn names_and_notes_are_typed() {
        let mut list = browser(true);
        let wanted = press(&mut list, "r ctrl-u n e w enter");
        assert_eq!(wanted, Wanted::Ask(Wish::Rename { folder: folder("one"), name: "new".into() }));
        assert_eq!(press(&mut list, "n q esc"), Wanted::Nothing);
        assert!(list.typing.is_none());
        let wanted = press(&mut list, "j n ! enter");
        assert_eq!(wanted, Wanted::Ask(Wish::Note { folder: folder("two"), text: "after the cable of node3!".into() }));
        take(&mut list, ShelfTold::Refused("why".into()));
        assert_eq!(list.error.as_deref(), Some("why"));
    }

    /// The list may come anew, and the cursor move, between a question and its answer.
    #[test]
    fn what_is_asked_or_typed_is_of_the_session_that_it_began_with() {
        let mut list = browser(true);
        press(&mut list, "r ctrl-u x enter j d");
        take(&mut list, ShelfTold::Done { say: "renamed".into(), moved: Some((folder("one"), folder("x"))) });
        take(&mut list, ShelfTold::Listed(vec![entry("two", State::Cut), entry("x", State::Ended)]));
        assert_eq!(list.chosen().map(|entry| entry.name.as_str()), Some("two"));
        assert_eq!(press(&mut list, "y"), Wanted::Ask(Wish::Delete { folder: folder("two") }));
        press(&mut list, "r ctrl-u z");
        take(&mut list, ShelfTold::Listed(vec![entry("x", State::Ended)]));
        assert_eq!(press(&mut list, "enter"), Wanted::Ask(Wish::Rename { folder: folder("two"), name: "z".into() }));
    }

    #[test]
    fn the_cursor_stays_with_its_session() {
        let mut list = browser(true);
        press(&mut list, "j");
        take(&mut list, ShelfTold::Done { say: "renamed".into(), moved: Some((folder("two"), folder("zwei"))) });
        let entries = vec![entry("new", State::Ended), entry("one", State::Ended), entry("zwei", State::Cut)];
        take(&mut list, ShelfTold::Listed(entries));
        assert_eq!(list.chosen().map(|entry| entry.name.as_str()), Some("zwei"));
        take(&mut list, ShelfTold::Listed(Vec::new()));
        assert_eq!(press(&mut list, "j d r enter c"), Wanted::Nothing);
    }
}
