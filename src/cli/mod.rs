//! Arguments, exit codes, and the wiring of everything below.

mod args;
mod settings;
pub mod tmp;
