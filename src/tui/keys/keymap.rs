use std::collections::HashMap;

use crossterm::event::{KeyEvent, KeyEventKind};

use super::{Action, Context, Key};
use crate::units::plain;

const BUILT_IN: &str = include_str!("../keys.toml");

/// A key file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("key file: {0}")]
    Syntax(String),
    #[error("key file: there is no action {name:?}; did you mean {nearest:?}?")]
    UnknownAction { name: String, nearest: &'static str },
    #[error("key file: {action} = {found}: expected a list of keys, such as [\"m\", \"ctrl-l\"]")]
    NotAList { action: &'static str, found: String },
    #[error("key file: {action}: {key:?} is not a key; expected {expected}")]
    BadKey { action: &'static str, key: String, expected: String },
    #[error("key file: {key} is bound both to {first} and to {second}; take it away from one of them")]
    Twice { key: Key, first: &'static str, second: &'static str },
}

/// Which key does what.
#[derive(Debug, Clone)]
pub struct Keymap {
    actions: HashMap<(Context, Key), Action>,
    keys: HashMap<Action, Vec<Key>>,
}

impl Keymap {
    /// The built-in keys, with a user's file (its text) over them, action by action.
    pub fn load(user: Option<&str>) -> Result<Self, KeyError> {
        let mut keys = parse(BUILT_IN)?;
        if let Some(text) = user {
            keys.extend(parse(text)?);
        }
        let mut actions = HashMap::new();
        for &action in Action::ALL {
            for &key in keys.get(&action).into_iter().flatten() {
                match actions.insert((action.context(), key), action) {
                    Some(first) if first != action => return Err(KeyError::Twice { key, first: first.name(), second: action.name() }),
                    _ => {}
                }
            }
        }
        Ok(Self { actions, keys })
    }

    /// What a key asks for in a context, or else everywhere.
    pub fn action_in(&self, context: Context, event: KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let key = Key::from(event);
        self.actions.get(&(context, key)).or_else(|| self.actions.get(&(Context::Everywhere, key))).copied()
    }

    /// What a key asks for where no context has its own use of it: everywhere, or else in the first context that binds it.
    pub fn action(&self, event: KeyEvent) -> Option<Action> {
        [
            Context::Matrix,
            Context::Sweep,
            Context::Fits,
            Context::Fans,
            Context::Findings,
            Context::Topology,
            Context::Replay,
            Context::Recorded,
        ]
        .into_iter()
        .fold(self.action_in(Context::Everywhere, event), |found, context| found.or_else(|| self.action_in(context, event)))
    }

    /// The keys of an action, for help and hints.
    pub fn keys_of(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }
}

fn parse(text: &str) -> Result<HashMap<Action, Vec<Key>>, KeyError> {
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| KeyError::Syntax(plain(&error.to_string().replace('\n', " "))))?;
    let mut keys = HashMap::new();
    for (name, value) in table {
        let Some(action) = Action::of(&name) else {
            let nearest = crate::tui::nearest(&name, Action::ALL.iter().map(|action| action.name())).unwrap_or("help");
            return Err(KeyError::UnknownAction { name: plain(&name), nearest });
        };
        let not_a_list = || KeyError::NotAList { action: action.name(), found: plain(&value.to_string()) };
        let mut list = Vec::new();
        for item in value.as_array().ok_or_else(not_a_list)? {
            let text = item.as_str().ok_or_else(not_a_list)?;
            let bad = |expected| KeyError::BadKey { action: action.name(), key: plain(text), expected };
            list.push(text.parse().map_err(bad)?);
        }
        keys.insert(action, list);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn every_action_has_a_key_and_every_key_its_action() {
        let keymap = Keymap::load(None).unwrap();
        for &action in Action::ALL {
            assert_eq!(Action::of(action.name()), Some(action));
            assert!(action.doc().len() > 3);
            let keys = keymap.keys_of(action);
            assert!(!keys.is_empty(), "{action:?}");
        }
        assert_eq!(keymap.action(press(KeyCode::Char('q'))), Some(Action::Quit));
        assert_eq!(keymap.action(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Some(Action::Quit));
        assert_eq!(keymap.action(press(KeyCode::Char('m'))), Some(Action::NextMetric));
        assert_eq!(keymap.action(press(KeyCode::F(9))), None);
    }

    #[test]
    fn a_context_goes_before_everywhere() {
        let keymap = Keymap::load(None).unwrap();
        let space = press(KeyCode::Char(' '));
        assert_eq!(keymap.action_in(Context::Sweep, space), Some(Action::Toggle));
        assert_eq!(keymap.action_in(Context::Recorded, space), Some(Action::PlayPause));
        assert_eq!(keymap.action_in(Context::Matrix, space), Some(Action::PauseContinue));
    }

    #[test]
    fn a_user_s_file_changes_single_actions() {
        let keymap = Keymap::load(Some("quit = ['Q']\nzoom = []")).unwrap();
        assert_eq!(keymap.action(press(KeyCode::Char('q'))), None);
        assert_eq!(keymap.action(press(KeyCode::Char('Q'))), Some(Action::Quit));
        assert_eq!(keymap.keys_of(Action::Zoom), []);
        assert_eq!(keymap.keys_of(Action::NextMetric).len(), 1);
    }

    #[test]
    fn mistakes_are_told_with_the_way_out() {
        let error = |text| Keymap::load(Some(text)).unwrap_err().to_string();
        assert_eq!(error("help = ['q']"), "key file: q is bound both to help and to quit; take it away from one of them");
        assert!(error("qiut = ['q']").ends_with("did you mean \"quit\"?"), "{}", error("qiut = ['q']"));
        assert!(error("quit = 'q'").contains("expected a list of keys"));
        assert!(error("quit = ['ctl-q']").contains("\"ctl-q\" is not a key"));
        assert!(error("quit = [").starts_with("key file: "));
    }
}
