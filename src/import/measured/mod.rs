//! Measurements that other tools printed, as samples. The parsers are pure functions of lines, or of a JSON value; what a text is is told
//! by its content, never by its name.

mod built;
mod choice;
mod deepspeed;
mod dispatch;
mod grid;
mod imb;
mod mpigraph;
mod nccl_tests;
mod nvbandwidth;
mod nvloom;
mod osu;
mod p2p;
mod perftest;
mod ranks;
mod rocm;
mod rows;
mod table;
mod transferbench;
mod ucx;

pub use crate::session::Collective;
pub use built::{Built, Source, build};
pub use dispatch::{Told, known, read, tables, told};
pub use table::{End, SizeFrom, Table, Tool};
