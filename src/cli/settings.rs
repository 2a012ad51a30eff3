//! Arguments as typed -> settings ready to use.

use anyhow::{Context, Result, bail};

use super::args::{BuffersArg, SweepArgs};
use crate::sample::{EngineKind, MoverKind, Pattern};
use crate::sweep::{Buffers, SweepSettings};
use crate::units::{parse_ranks, parse_size, parse_sizes};

/// Ranks of the threads engine when nobody says how many: one a core, and few enough to see at a glance.
const MOST_THREADS: usize = 16;

/// Settings for a job of `world` ranks: `base` (the defaults, or a resumed session's), with what was typed laid over it.
pub fn settings(args: &SweepArgs, engine: EngineKind, world: usize, base: SweepSettings) -> Result<SweepSettings> {
    let mut settings = base;
    if let Some(text) = &args.patterns {
        settings.patterns = patterns(text)?;
    }
    if let Some(text) = &args.sizes {
        settings.sizes = parse_sizes(text).context("--sizes")?;
    }
    if let (Some(text), EngineKind::Mpi) = (&args.ranks, engine) {
        settings.ranks = parse_ranks(text, world).context("--ranks")?;
    }
    if let Some(text) = &args.timeout {
        settings.timeout = seconds(text).context("--timeout")?;
    }
    if let Some(name) = &args.mover {
        settings.mover = mover(name)?;
    }
    if let Some(text) = &args.arena {
        settings.arena = parse_size(text).context("--arena")?;
    }
    settings.repeats = args.repeats.unwrap_or(settings.repeats);
    settings.warmup = args.warmup.unwrap_or(settings.warmup);
    settings.window = args.window.unwrap_or(settings.window);
    settings.seed = args.seed.unwrap_or(settings.seed);
    match args.buffers {
        Some(BuffersArg::Rotate) => settings.buffers = Buffers::Rotate,
        Some(BuffersArg::Reuse) => settings.buffers = Buffers::Reuse,
        None => {}
    }
    settings.check(world)?;
    Ok(settings)
}

/// Settings that an engine begins with.
pub fn defaults(engine: EngineKind) -> SweepSettings {
    let mover = match engine {
        EngineKind::Threads => MoverKind::Memcpy,
        EngineKind::Mpi => MoverKind::MpiSendrecv,
        EngineKind::Sim => MoverKind::Simulated,
    };
    SweepSettings { mover, ..SweepSettings::default() }
}

/// How many threads to start: what `--ranks` says, or one a core.
pub fn threads(args: &SweepArgs, cores: usize) -> Result<usize> {
    let Some(text) = &args.ranks else { return Ok(cores.clamp(2, MOST_THREADS)) };
    match text.trim().parse::<usize>() {
        Ok(ranks @ 1..=1024) => Ok(ranks),
        _ => bail!("--ranks: {text:?} is not a number of threads between 1 and 1024 (a set such as 0-3 is for MPI jobs)"),
    }
}

fn patterns(text: &str) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for name in text.split(',').map(str::trim) {
        let known = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name);
        let Some(pattern) = known else {
            let names: Vec<_> = Pattern::ALL.iter().map(|pattern| pattern.name()).collect();
            bail!("--patterns: {name:?} is not one of {}", names.join(", "));
        };
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Ok(patterns)
}

fn mover(name: &str) -> Result<MoverKind> {
    let all = [MoverKind::Memcpy, MoverKind::MpiSendrecv, MoverKind::MpiPut, MoverKind::Simulated];
    let Some(mover) = all.into_iter().find(|mover| mover.name() == name) else {
        let names: Vec<_> = all.iter().map(|mover| mover.name()).collect();
        bail!("--mover: {name:?} is not one of {}", names.join(", "));
    };
    Ok(mover)
}

/// A time such as `10s`, `500ms`, `2m` or a plain number of seconds.
fn seconds(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let (number, scale) = match trimmed {
        t if t.ends_with("ms") => (&t[..t.len() - 2], 1e-3),
        t if t.ends_with('s') => (&t[..t.len() - 1], 1.0),
        t if t.ends_with('m') => (&t[..t.len() - 1], 60.0),
        t => (t, 1.0),
    };
    let value: f64 = number.trim().parse().ok().with_context(|| format!("{text:?} is not a time such as 10s, 500ms or 2m"))?;
    Ok(value * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_wins_over_the_defaults() {
        let args = SweepArgs {
            patterns: Some("peer,local,peer".into()),
            sizes: Some("4K..64K".into()),
            ranks: Some("0,2".into()),
            timeout: Some("500ms".into()),
            mover: Some("mpi_put".into()),
            ..SweepArgs::default()
        };
        let settings = settings(&args, EngineKind::Mpi, 3, defaults(EngineKind::Mpi)).unwrap();
        assert_eq!(settings.patterns, [Pattern::Peer, Pattern::Local]);
        assert_eq!((settings.sizes.len(), settings.ranks.as_slice()), (3, [0, 2].as_slice()));
        assert!((settings.timeout - 0.5).abs() < 1e-12);
        assert_eq!(settings.mover, MoverKind::MpiPut);
        assert_eq!(settings.repeats, 8);
    }

    #[test]
    fn wrong_words_are_named_with_what_was_expected() {
        let cases = [
            (SweepArgs { patterns: Some("pear".into()), ..SweepArgs::default() }, "\"pear\" is not one of local, peer"),
            (SweepArgs { sizes: Some("4q".into()), ..SweepArgs::default() }, "--sizes"),
            (SweepArgs { mover: Some("nccl".into()), ..SweepArgs::default() }, "memcpy, mpi_sendrecv, mpi_put"),
            (SweepArgs { timeout: Some("soon".into()), ..SweepArgs::default() }, "--timeout"),
            (SweepArgs { repeats: Some(0), ..SweepArgs::default() }, "repeats = 0"),
        ];
        for (args, expected) in cases {
            let error = format!("{:#}", settings(&args, EngineKind::Mpi, 3, defaults(EngineKind::Mpi)).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        assert!(threads(&SweepArgs { ranks: Some("0-3".into()), ..SweepArgs::default() }, 4).is_err());
    }
}
