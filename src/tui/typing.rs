//! A line that a person types.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::units::plain;

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

/// What a key means to a line that is typed; `None` for keys that mean nothing to it.
pub fn stroke(key: KeyEvent) -> Option<Stroke> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('u') if control => Stroke::Clear,
        KeyCode::Char('a') if control => Stroke::Home,
        KeyCode::Char('e') if control => Stroke::End,
        KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => Stroke::Insert(c),
        KeyCode::Backspace => Stroke::Back,
        KeyCode::Delete => Stroke::Delete,
        KeyCode::Left => Stroke::Left,
        KeyCode::Right => Stroke::Right,
        KeyCode::Home => Stroke::Home,
        KeyCode::End => Stroke::End,
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_moves_as_a_line_editor() {
        let mut typing = Typing::new("0-3");
        for stroke in [Stroke::Left, Stroke::Back, Stroke::Insert('÷'), Stroke::Home, Stroke::Delete, Stroke::End, Stroke::Insert('\u{1b}')]
        {
            typing.stroke(stroke);
        }
        assert_eq!((typing.text().as_str(), typing.caret()), ("÷3", 2));
    }
}
