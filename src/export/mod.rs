//! Writes files for others to read.

pub mod svg;
