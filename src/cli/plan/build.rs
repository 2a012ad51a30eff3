//! `toposcope plan build`: two layouts of a model -> the segments to copy.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Who holds what before
    #[arg(long, value_name = "MAP")]
    pub source: PathBuf,
    /// Who shall hold what after
    #[arg(long, value_name = "MAP")]
    pub target: PathBuf,
    /// Plan to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Plan it, and write the plan.
pub(super) fn run(_: &BuildArgs) -> Result<u8> {
    bail!("the planner is being merged")
}
