//! Rules over what hosts are made of.
//!
//! What the hardware says of itself is a reason to look, no proof: each rule looks at the cells that its fact concerns, tells what
//! they give, claims them where they confirm it, and stays silent where they contradict it. They run before the rules over the
//! matrix, so that a slow row whose cause is known is told once.

pub mod evidence;
mod group;
mod held;
pub mod links;
pub mod models;
mod nvlinks;
pub mod ports;
pub mod redirect;
pub mod seats;
mod trained;

pub use group::GROUP;
pub use held::HELD;
pub use nvlinks::{MISSING, UNUSED};
pub use ports::{BAD, SHARED, UNEQUAL};
pub use redirect::REDIRECT;
pub use seats::SEATS;
pub use trained::TRAINED;
