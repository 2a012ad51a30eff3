//! Everything tested from outside: one binary, so that it links once.

mod calibration;
mod layering;
mod made;
mod netlab;
mod store;
