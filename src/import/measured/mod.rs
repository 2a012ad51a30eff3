//! Measurements that other tools printed, as samples. The parsers are pure functions of lines, or of a JSON value; what a text is is told
//! by its content, never by its name.

mod dispatch;
mod imb;
mod mpigraph;
mod nvloom;
mod osu;
mod perftest;
mod rocm;
mod rows;
mod table;
mod transferbench;
mod ucx;

pub use dispatch::{Told, read, tables, told};
pub use table::{Collective, End, SizeFrom, Table, Tool};
