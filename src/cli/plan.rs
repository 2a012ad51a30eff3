//! `toposcope plan`: layouts of a model, and what must be copied to bring one into another.

mod build;
mod schedule;
mod union;

use anyhow::Result;
use clap::Subcommand;

use crate::units::format_count;

#[derive(Debug, Subcommand)]
pub enum PlanCommands {
    /// Plan a transfer: two layouts of a model -> the segments to copy, and who sends each
    Build(build::BuildArgs),
    /// Schedule a plan: who sends what to whom in which round, under a staging budget
    Schedule(schedule::ScheduleArgs),
    /// Unite layouts that hold a model at once: every holder of every element, so that any of them may send
    Union(union::UnionArgs),
}

/// Any of them.
pub(super) fn run(what: &PlanCommands) -> Result<u8> {
    match what {
        PlanCommands::Build(wanted) => build::run(wanted),
        PlanCommands::Schedule(wanted) => schedule::run(wanted),
        PlanCommands::Union(wanted) => union::run(wanted),
    }
}

/// `1 segment`, `1,024 segments`.
fn some(number: u64, of: &str) -> String {
    format!("{} {of}{}", format_count(number), if number == 1 { "" } else { "s" })
}
