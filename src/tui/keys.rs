//! Keys: one table of actions, one file that binds keys to them.

mod action;
mod key;
mod keymap;

pub use action::{Action, Context};
pub use key::Key;
pub use keymap::{KeyError, Keymap};
