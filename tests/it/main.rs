//! Everything tested from outside: one binary, so that it links once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod calibration;
mod changes;
mod closed_loop;
mod diagnoses;
mod engine;
mod executions;
#[cfg(all(feature = "cuda", feature = "nvml"))]
mod gpu;
mod imports;
#[cfg(feature = "mpi")]
mod jobs;
mod layering;
mod made;
mod netlab;
mod next_tests;
#[cfg(feature = "nvml")]
mod nvml;
mod page;
mod place;
mod plans;
mod policies;
mod scenarios;
#[cfg(feature = "tui")]
mod schemas;
mod screen;
mod scripts;
mod sessions;
mod store;
mod stories;
mod strategies;
mod terminal;
mod words;
