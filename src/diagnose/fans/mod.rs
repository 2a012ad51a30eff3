//! Rules over what several transfers at once bring: fans that collapse or do not scale, directions that take from each other.

mod duplex;
mod scale;

pub use duplex::DUPLEX;
pub use scale::{COLLAPSE, SCALING};
