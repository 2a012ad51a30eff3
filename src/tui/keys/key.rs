use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One key with its modifiers, as a person writes it: `G`, `ctrl-c`, `page-up`, `shift-tab`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMED: [(&str, KeyCode); 17] = [
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("space", KeyCode::Char(' ')),
    ("minus", KeyCode::Char('-')),
    ("backtab", KeyCode::BackTab),
];
const MODIFIERS: [(&str, KeyModifiers); 3] =
    [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)];

impl Key {
    /// The one form in which equal keys are equal: terminals differ in how they report shift.
    fn normal(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let mut modifiers = modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match code {
            // A character says itself whether shift was held, but for letters under ctrl.
            KeyCode::Char(c) => {
                let shifted = modifiers.contains(KeyModifiers::SHIFT);
                modifiers.remove(KeyModifiers::SHIFT);
                if modifiers.contains(KeyModifiers::CONTROL) {
                    KeyCode::Char(c.to_ascii_lowercase())
                } else if shifted {
                    KeyCode::Char(c.to_ascii_uppercase())
                } else {
                    KeyCode::Char(c)
                }
            }
            KeyCode::BackTab => {
                modifiers.insert(KeyModifiers::SHIFT);
                KeyCode::Tab
            }
            code => code,
        };
        Self { code, modifiers }
    }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        Self::normal(event.code, event.modifiers)
    }
}

impl From<Key> for KeyEvent {
    fn from(key: Key) -> Self {
        Self::new(key.code, key.modifiers)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((after, modifier)) = MODIFIERS.iter().find_map(|(name, modifier)| Some((rest.strip_prefix(name)?, *modifier))) {
            if after.is_empty() {
                break;
            }
            modifiers |= modifier;
            rest = after;
        }
        let named = NAMED.iter().find(|(name, _)| *name == rest).map(|(_, code)| *code);
        let function = || rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n)).map(KeyCode::F);
        let single = || {
            let mut chars = rest.chars();
            chars.next().filter(|c| chars.next().is_none() && !c.is_control()).map(KeyCode::Char)
        };
        let code = named.or_else(function).or_else(single);
        code.map(|code| Self::normal(code, modifiers)).ok_or_else(|| {
            let named: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            format!("a character, f1 to f24 or one of {}; with ctrl-, alt- or shift- before it", named.join(", "))
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, modifier) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("space"),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "f{n}"),
            code => f.write_str(NAMED.iter().find(|(_, named)| *named == code).map_or("?", |(name, _)| name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_as_they_are_written() {
        for text in ["a", "G", "ctrl-c", "up", "tab", "shift-tab", "alt-x", "ctrl-alt-f5", "space", "?", "-", "ctrl--", "page-up"] {
            assert_eq!(text.parse::<Key>().map(|key| key.to_string()), Ok(text.to_owned()));
        }
        for bad in ["", "ctl-c", "f0", "f25", "pageup", "ab", "\u{1b}"] {
            assert!(bad.parse::<Key>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_terminal_s_way_to_report_shift_does_not_matter() {
        let key = |code, modifiers| Key::from(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('G'), KeyModifiers::SHIFT), "G".parse().unwrap());
        assert_eq!(key(KeyCode::Char('G'), KeyModifiers::NONE), "G".parse().unwrap());
        assert_eq!(key(KeyCode::Char('g'), KeyModifiers::SHIFT), "G".parse().unwrap());
        assert_eq!(key(KeyCode::Char('?'), KeyModifiers::SHIFT), "?".parse().unwrap());
        assert_eq!(key(KeyCode::BackTab, KeyModifiers::SHIFT), "shift-tab".parse().unwrap());
        assert_eq!(key(KeyCode::BackTab, KeyModifiers::NONE), "backtab".parse().unwrap());
        assert_eq!(key(KeyCode::Char('C'), KeyModifiers::CONTROL | KeyModifiers::SHIFT), "ctrl-c".parse().unwrap());
    }
}
