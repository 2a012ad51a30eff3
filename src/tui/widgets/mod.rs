//! Pure drawing functions on a buffer: `&` in, pixels and hit maps out.

mod braille;
pub mod curve;
pub mod fan_chart;
pub mod fit_curve;
pub mod heat;
pub mod matrix;
#[cfg(test)]
pub(crate) mod styled;
