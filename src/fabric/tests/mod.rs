//! The room as a whole.
#![allow(clippy::float_cmp, reason = "figures that pass through unchanged are compared exactly")]

mod files;
mod fluid;
mod hardware;
mod machines;
mod shares;
