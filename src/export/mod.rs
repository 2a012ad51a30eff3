//! Our files: calibrations as JSON, tables as CSV, pictures as SVG and PNG, reports. Reads back what it writes.

mod calibration;
mod csv;
mod deepspeed;
mod file;
mod fits;
pub mod raster;
mod replay;
pub mod report;
pub mod svg;
mod taccl;

pub use calibration::{Calibration, Hosts, calibration, parse_calibration, read_calibration, write_calibration};
pub use csv::{csv, write_csv};
pub use deepspeed::{DeepSpeed, deepspeed, write_deepspeed};
pub use file::{ExportError, new_files, write_bytes};
pub use fits::{write_fits, write_fits_csv, write_json};
pub use taccl::{Taccl, taccl, write_taccl};

/// JSON Schema (draft 2020-12) of a calibration as this version writes it.
pub const CALIBRATION_SCHEMA: &str = include_str!("schema/calibration.json");
/// JSON Schema of what benchmark scenarios came to.
pub const SCENARIOS_SCHEMA: &str = include_str!("schema/scenarios.json");
/// JSON Schema (draft 2020-12) of the fits as this version writes them.
pub const FITS_SCHEMA: &str = include_str!("schema/fits.json");
/// JSON Schema (draft 2020-12) of `toposcope diagnose --json` as this version writes it.
pub const DIAGNOSIS_SCHEMA: &str = include_str!("schema/diagnosis.json");
