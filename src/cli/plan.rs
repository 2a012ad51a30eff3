//! `toposcope plan`: layouts of a model, and what must be copied to bring one into another.

mod build;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum PlanCommands {
    /// Plan a transfer: two layouts of a model -> the segments to copy, and who sends each
    Build(build::BuildArgs),
}

/// Any of them.
pub(super) fn run(what: &PlanCommands) -> Result<u8> {
    match what {
        PlanCommands::Build(wanted) => build::run(wanted),
    }
}
