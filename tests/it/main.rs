//! Everything tested from outside: one binary, so that it links once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod calibration;
mod layering;
mod made;
mod netlab;
mod store;
mod terminal;
