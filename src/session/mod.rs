//! Everything that happened, as events; what is wanted, as commands; and the model that events fold into.
//!
//! A live job, a recorded session and an attached screen differ only in who emits the events. `Model` is built only by
//! [`Model::apply`]; only [`store`] touches files.

mod cells;
mod command;
mod event;
mod header;
mod model;
pub mod store;

pub use cells::{Cells, Shot, SizeCell};
pub use command::Command;
pub use event::{Event, Outcome, Record};
pub use header::{FORMAT, Header};
pub use model::{Change, LogLine, Model, Progress, Running, SweepState};
