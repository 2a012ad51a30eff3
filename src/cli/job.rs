//! Jobs of other processes: started with their launcher, or looked at from here.

use std::path::Path;

use anyhow::{Context, Result};

use super::args::{BuffersArg, Color, Global, RunArgs, SweepArgs};
use super::{FOUND, WRONG};
use crate::launch::run::{self, Spec};

/// `toposcope run`: the job with the flags that it needs.
pub(super) fn run(global: &Global, args: &RunArgs) -> Result<u8> {
    if !cfg!(feature = "mpi") {
        anyhow::bail!(
            "this program was built without MPI. Build it with: MPICC=mpicc cargo build --release --features mpi (needs mpicc and libclang)"
        );
    }
    #[cfg(feature = "mpi")]
    let library = crate::transport::mpi::version();
    #[cfg(not(feature = "mpi"))]
    let library = String::new();
    let hosts = args.hosts.as_deref().unwrap_or_default();
    let spec = Spec {
        ranks: args.np,
        hosts: hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).map(str::to_owned).collect(),
        launcher: args.launcher.clone(),
        library,
        launcher_arguments: args.launcher_args.clone(),
        program: std::env::current_exe().context("where this program lies")?,
        arguments: words(global, &args.sweep),
        screen: true,
    };
    let code = run::run(&spec)?;
    Ok(u8::try_from(code).unwrap_or(if code == 0 { FOUND } else { WRONG }))
}

/// What the ranks are started with: the options that concern them, as words again.
fn words(global: &Global, sweep: &SweepArgs) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([format!("--{name}"), value]);
        }
    };
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let color = match global.color {
        None => None,
        // Typed, it goes before the settings' file of rank 0.
        Some(Color::Auto) => Some("auto"),
        Some(Color::Truecolor) => Some("truecolor"),
        Some(Color::Ansi256) => Some("256"),
        Some(Color::Ansi16) => Some("16"),
        Some(Color::None) => Some("none"),
    };
    let buffers = match sweep.buffers {
        Some(BuffersArg::Rotate) => Some("rotate"),
        Some(BuffersArg::Reuse) => Some("reuse"),
        None => None,
    };
    let memory = sweep.buffer.memory.map(|memory| memory.memory().name());
    add("session", path(&global.session));
    add("theme", global.theme.clone());
    add("color", color.map(str::to_owned));
    add("efficiency", path(&global.efficiency));
    add("ranks", sweep.ranks.clone());
    add("group", sweep.group.clone());
    add("fabric", sweep.fabric.clone());
    add("patterns", sweep.patterns.clone());
    add("sizes", sweep.sizes.clone());
    add("widths", sweep.widths.clone());
    add("peers", sweep.peers.clone());
    add("shifts", sweep.shifts.clone());
    add("pattern-file", path(&sweep.pattern_file));
    add("pairs", sweep.pairs.map(|number| number.to_string()));
    add("repeats", sweep.repeats.map(|number| number.to_string()));
    add("ci", sweep.ci.map(|share| share.to_string()));
    add("budget", sweep.budget.clone());
    add("warmup", sweep.warmup.map(|number| number.to_string()));
    add("window", sweep.window.map(|number| number.to_string()));
    add("seed", sweep.seed.map(|number| number.to_string()));
    add("timeout", sweep.timeout.clone());
    add("mover", sweep.mover.clone());
    add("memory", memory.map(str::to_owned));
    add("gpus", sweep.buffer.gpus.clone());
    add("buffers", buffers.map(str::to_owned));
    add("arena", sweep.arena.clone());
    add("resume", path(&sweep.resume));
    for plan in &sweep.plans {
        add("plan", Some(plan.display().to_string()));
    }
    if sweep.isolated {
        words.push("--isolated".to_owned());
    }
    words
}

/// A screen on a running job.
#[cfg(feature = "tui")]
pub(super) fn attach(global: &Global, socket: Option<&Path>) -> Result<u8> {
    use crate::launch::socket::Client;
    use crate::sample::EngineKind;
    use crate::session::Command;
    use crate::tui::{Drained, Feed, Mode};
    use std::sync::mpsc::TryRecvError;

    struct Attached(Client);

    impl Feed for Attached {
        fn drain(&mut self) -> Drained {
            let mut drained = Drained::default();
            loop {
                match self.0.records.try_recv() {
                    Ok(record) => drained.records.push(record),
                    Err(TryRecvError::Empty) => return drained,
                    Err(TryRecvError::Disconnected) => {
                        drained.ended = Some("the job has ended".to_owned());
                        return drained;
                    }
                }
            }
        }

        fn send(&mut self, command: Command) {
            // A job that is gone is told by the closed stream.
            let _ = self.0.send(&command);
        }

        fn mode(&self) -> Mode {
            Mode::Attached
        }
    }

    let client = Client::connect(socket)?;
    let header = client.header.clone();
    let movers = match header.engine {
        EngineKind::Threads => crate::transport::threads::MOVERS,
        EngineKind::Mpi => crate::sample::MPI_MOVERS,
        EngineKind::Sim => &[crate::sample::MoverKind::Simulated],
        EngineKind::Imported => &[],
    };
    let settings = header.settings.clone();
    let (header, feed) = (Box::new(header), Box::new(Attached(client)));
    let showing =
        super::watch::screen::Showing::Session { header, feed, settings: Box::new(settings), movers: movers.to_vec(), against: None };
    super::watch::screen::alone(global, showing, |folder, _| anyhow::bail!("{}: a job is watched here", folder.display()))
}

#[cfg(not(feature = "tui"))]
pub(super) fn attach(_: &Global, _: Option<&Path>) -> Result<u8> {
    anyhow::bail!("this program was built without the screen (feature tui)")
}

#[cfg(test)]
mod tests {
    use super::super::args::Cli;
    use super::*;
    use clap::Parser;

    #[test]
    fn the_ranks_get_the_words_that_were_typed() {
        let typed = "toposcope --session /s --theme light --color 256 --sizes 4K..1M --repeats 3 --warmup 2 --window 4 --seed 9 --timeout 2s \
                     --mover mpi_put --memory cuda --gpus 0,1 --buffers reuse --arena 64M --ranks 0-1 --patterns peer --resume /r --group 0-7 --fabric f --widths 1,2 \
                     --peers next --shifts 1,2 --pattern-file /p --pairs 8 --plan /a --plan /b --isolated --ci 0.1 --budget 60s";
        let cli = Cli::parse_from(typed.split_whitespace());
        let again = words(&cli.global, &cli.sweep);
        let once_more = Cli::parse_from(std::iter::once("toposcope".to_owned()).chain(again.clone()));
        assert_eq!(words(&once_more.global, &once_more.sweep), again);
        assert_eq!(again.len(), typed.split_whitespace().count() - 1);
    }
}
