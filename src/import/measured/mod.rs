//! Measurements that other tools printed, as samples. The parsers are pure functions of lines, or of a JSON value; what a text is is told
//! by its content, never by its name.

mod deepspeed;
mod dispatch;
mod grid;
mod nccl_tests;
mod nvbandwidth;
mod p2p;
mod table;

pub use dispatch::{Told, read, tables, told};
pub use table::{Collective, End, SizeFrom, Table, Tool};
