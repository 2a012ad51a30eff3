//! Keys: one table of actions, one file that binds keys to them.

mod action;
mod key;
mod keymap;

pub use action::{Action, Context};
pub use key::Key;
pub use keymap::{KeyError, Keymap};

/// The key table as text: action, keys, what it does.
pub fn table(keymap: &Keymap) -> String {
    let rows = Action::ALL.iter().map(|&action| {
        let keys: Vec<String> = keymap.keys_of(action).iter().map(ToString::to_string).collect();
        format!("{:<20} {:<24} {}\n", action.name(), keys.join(" "), action.doc())
    });
    rows.collect()
}
