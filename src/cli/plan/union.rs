//! `toposcope plan union`: several layouts of a model, as one.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::super::{FINE, print};
use super::some;
use crate::export::write_bytes;
use crate::import::plans;
use crate::plan::map::{self, Maps};
use crate::plan::union;

#[derive(Debug, Args)]
pub struct UnionArgs {
    /// Layouts of the model, with locations of their own each, in any order
    #[arg(required = true, value_name = "MAP")]
    pub maps: Vec<PathBuf>,
    /// Layout to write: every holder of every element
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Unite them, and write the layout.
pub(super) fn run(wanted: &UnionArgs) -> Result<u8> {
    let layouts = wanted.maps.iter().map(|path| plans::read_layout(path).map(|layout| layout.maps));
    let layouts = layouts.collect::<Result<Vec<Maps>, _>>()?;
    let made = union(&layouts)?;
    write_bytes(&wanted.out, map::write(&made).as_bytes()).context("--out")?;
    let pieces: usize = made.values().flat_map(|map| map.shards.values()).map(|shard| shard.pieces.len()).sum();
    let told = [some(made.len() as u64, "parameter"), some(layouts.len() as u64, "layout"), some(pieces as u64, "piece")];
    print(&format!("{}: {} of {}, {}\n", wanted.out.display(), told[0], told[1], told[2]));
    Ok(FINE)
}
