//! Our files: calibrations as JSON, tables as CSV, pictures as SVG. Reads back what it writes.

mod calibration;
mod csv;
mod deepspeed;
mod file;
mod replay;
pub mod svg;

pub use calibration::{Calibration, Hosts, Memory, calibration, read_calibration, write_calibration};
pub use csv::{csv, write_csv};
pub use deepspeed::{DeepSpeed, deepspeed, write_deepspeed};
pub use file::ExportError;

/// JSON Schema (draft 2020-12) of a calibration as this version writes it.
pub const CALIBRATION_SCHEMA: &str = include_str!("schema/calibration.json");
