//! Rules over what several transfers at once bring: fans that collapse or do not scale, directions that take from each other,
//! resources that nobody told of.

mod duplex;
mod exit;
mod hidden;
mod scale;

pub use duplex::DUPLEX;
pub use exit::EXIT;
pub use hidden::HIDDEN;
pub use scale::{COLLAPSE, SCALING};
