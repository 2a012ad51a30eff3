//! toposcope: interactive topology exploration and link calibration for the ranks of an MPI job.
//!
//! # Rooms
//!
//! A room imports only rooms on lower floors, never its own (`tests/it/layering.rs` reads the sources and enforces it).
//!
//! ```text
//! 7  main  cli  config                  arguments, exit codes, search paths; the only place that knows everything
//! 6  tui                                reads session::Model, sends session::Command; the only room that knows ratatui
//! 5  launch  measure  import  export    do things: own the terminal, run the sweep, read other tools' files, write ours
//! 4  session                            Event (what happened), Command (what is wanted), Model (fold of events), store
//! 3  diagnose  plan                     what was measured -> findings, causes, tests; maps -> plan -> schedule -> priced, replayed
//! 2  fit  transport                     samples -> summaries, which resource binds; engines and movers
//! 1  discover  fabric  sweep  matrix    the system -> placement, hardware; a machine described, who gets how much; patterns -> probes;
//!    ramp                               N x N tables; value -> colour
//! 0  units  topology  sample            the words of the field; no I/O
//! ```
//!
//! # What is not done
//!
//! - No room below 6 knows a colour name or a key.
//! - `plan`, `diagnose`, `fabric`, `fit`, `sweep` and `matrix` do no I/O. Only `discover`, `transport`, `launch`, `config`, `session::store`, `import`,
//!   `export` and `cli` touch files, processes or the environment.
//! - `tui` never calls MPI. Drawing takes `&`, never `&mut`. `Model` is built only by `apply(Event)`.
//! - `unsafe` stands only in `transport`, where C is called, each with its reason. No `unwrap` and no panic outside tests.
//! - Nothing draws, logs, allocates or parses inside a timed region (`transport::timed`).

pub mod cli;
pub mod config;
pub mod diagnose;
pub mod discover;
pub mod export;
pub mod fabric;
pub mod fit;
pub mod import;
pub mod launch;
pub mod matrix;
pub mod measure;
pub mod plan;
pub mod ramp;
pub mod sample;
pub mod session;
pub mod sweep;
pub mod topology;
pub mod transport;
#[cfg(feature = "tui")]
pub mod tui;
pub mod units;
