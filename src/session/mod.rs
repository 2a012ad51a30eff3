//! Everything that happened, as events; what is wanted, as commands; and the model that events fold into.
//!
//! A live job, a recorded session and an attached screen differ only in who emits the events. `Model` is built only by
//! [`Model::apply`]; only [`store`] touches files.

mod cells;
mod command;
pub mod curves;
mod event;
mod executed;
mod fits;
mod groups;
mod header;
mod imported;
mod measured;
mod mix;
mod model;
mod prices;
pub mod store;
mod tape;

pub use cells::{Cells, Shot, SizeCell};
pub use command::Command;
pub use event::{Conflict, Event, Outcome, Record};
pub use fits::{fits, observations};
pub use groups::{GroupShot, GroupSize, Groups};
pub use header::{FORMAT, Header};
pub use imported::{Collective, Imported, collective_lines};
pub use measured::measured;
pub use model::{Change, LogLine, Model, Progress, Running, SweepState};
pub use prices::prices;
pub use tape::Tape;

/// JSON Schema (draft 2020-12) of a session's `header.json` as this version writes it.
pub const HEADER_SCHEMA: &str = include_str!("schema/header.json");
/// JSON Schema (draft 2020-12) of one line of a session's `events.ndjson` as this version writes it.
pub const EVENT_SCHEMA: &str = include_str!("schema/event.json");
/// JSON Schema (draft 2020-12) of what `toposcope sessions --json` prints.
pub const SESSIONS_SCHEMA: &str = include_str!("schema/sessions.json");
