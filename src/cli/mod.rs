//! Arguments, exit codes, and the wiring of everything below.

#![cfg_attr(not(feature = "tui"), allow(dead_code, unused_variables, reason = "what only the screen needs"))]

mod args;
mod begin;
mod contents;
mod diagnose;
mod diff;
mod discover;
mod doctor;
mod efficiency;
mod execute;
mod facts;
mod files;
mod fit;
mod import;
mod imported;
mod job;
#[cfg(feature = "tui")]
mod keep;
mod live;
#[cfg(feature = "tui")]
mod look;
mod plan;
mod plans;
mod preferences;
mod prices;
mod progress;
#[cfg(feature = "tui")]
mod recorded;
mod recorder;
mod replay;
mod run_tests;
mod scenarios;
mod sessions;
mod settings;
#[cfg(feature = "tui")]
mod shelf;
mod shell;
mod strategies;
mod summary;
mod watch;

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::Parser;

use crate::launch::job::{Job, detect};
use crate::launch::terminal;
use args::{Cli, Commands};

/// All is well.
const FINE: u8 = 0;
/// Something was not measured as asked, or a check failed.
const FOUND: u8 = 1;
/// Wrong input or environment.
const WRONG: u8 = 2;

/// The program: parse, run, and turn what came of it into an exit code.
pub fn main() -> ExitCode {
    // Before any thread starts: drawing from the background must not stop the process.
    let _ = terminal::block_stop_signals();
    let job = detect();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Under a launcher every rank reads the same arguments; one answer is enough.
            if job.is_none_or(|job| job.rank == 0) {
                if error.use_stderr() && !std::io::stderr().is_terminal() {
                    say(&error.render().to_string());
                } else {
                    let _ = error.print();
                }
            } else {
                let_rank_0_speak();
            }
            return ExitCode::from(if error.use_stderr() { WRONG } else { FINE });
        }
    };
    match dispatch(cli, job) {
        Ok(_) if UNPRINTED.load(Ordering::Relaxed) => ExitCode::from(WRONG),
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if job.is_none_or(|job| job.rank == 0) {
                // Names of files come from outside, too; lines of a message stay lines.
                let lines: Vec<String> = told(&error).lines().map(crate::units::plain).collect();
                say(&format!("toposcope: {}\n", lines.join("\n")));
            } else {
                let_rank_0_speak();
            }
            ExitCode::from(WRONG)
        }
    }
}

/// A launcher ends all ranks when the first one ends badly: the one that tells why must not be among them before it has. Nothing is
/// connected yet that could be waited for.
fn let_rank_0_speak() {
    std::thread::sleep(std::time::Duration::from_millis(500));
}

/// To standard error in one piece: a launcher puts its own words between two writes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn dispatch(cli: Cli, job: Option<Job>) -> Result<u8> {
    let Cli { mut global, mut sweep, print_config, mut command } = cli;
    if print_config {
        print(&crate::config::defaults());
        return Ok(FINE);
    }
    // Only rank 0 shows, asks and keeps anything.
    if job.is_none_or(|job| job.rank == 0) && preferences::concern(command.as_ref()) {
        let mut sweeps = vec![&mut sweep];
        match &mut command {
            Some(Commands::Sweep { sweep, .. }) => sweeps.push(&mut **sweep),
            Some(Commands::Run(run)) => sweeps.push(&mut run.sweep),
            _ => {}
        }
        preferences::lay(&mut global, sweeps)?;
        sweep.resume.iter_mut().for_each(|path| sessions::place(&global.config, path));
        if let Some(command) = &mut command {
            sessions::places(&global.config, command);
        }
    }
    // A table that cannot be used is told before a job starts, by whichever rank is asked.
    let compares = matches!(
        command,
        None | Some(
            Commands::Sweep { .. }
                | Commands::Discover { .. }
                | Commands::Run(_)
                | Commands::Attach { .. }
                | Commands::Open { .. }
                | Commands::Export { .. }
                | Commands::Diagnose(_)
                | Commands::Diff { .. }
        )
    );
    if compares {
        efficiency::table(&global)?;
    }
    match command {
        None => live::start(&global, &sweep, &live::Mode::Screen, job),
        Some(Commands::Sweep { sweep, out, json }) => live::start(&global, &sweep, &live::Mode::Headless { out, json }, job),
        Some(Commands::Discover { json, sysfs_root: Some(root), .. }) => {
            // Every rank would read the same tree.
            if job.is_none_or(|job| job.rank == 0) { discover::recorded(&root, json) } else { Ok(FINE) }
        }
        Some(Commands::Discover { json, sysfs_root: None, from }) if !from.is_empty() => {
            if job.is_none_or(|job| job.rank == 0) {
                imported::tell(&from, json)
            } else {
                Ok(FINE)
            }
        }
        Some(Commands::Discover { json, .. }) => live::start(&global, &sweep, &live::Mode::Discover { json }, job),
        Some(Commands::Run(run)) => job::run(&global, &run),
        Some(Commands::Attach { socket }) => job::attach(&global, socket.as_deref()),
        Some(Commands::Open { session, against, plans }) => files::open(&global, session.as_deref(), against.as_deref(), &plans),
        Some(Commands::Export { session, format, out, tab, metric, against, plans, size, zoom, order, reduce, cells, chunk }) => {
            let wanted = files::Wanted { format, out, tab, metric, against, plans, size, zoom, order, reduce, cells, chunk };
            files::export(&global, &session, &wanted)
        }
        Some(Commands::Import(wanted)) => import::run(&wanted),
        Some(Commands::Fit { source, json, all }) => fit::fit(&source, json, all),
        Some(Commands::Diagnose(wanted)) => diagnose::run(&global, &wanted, job),
        Some(Commands::Diff { before, after, json, svg }) => diff::run(&global, &before, &after, json, svg.as_deref()),
        Some(Commands::Plan { what }) => plan::run(&what),
        Some(Commands::Strategies(wanted)) => strategies::run(&wanted),
        Some(Commands::Replay(wanted)) if wanted.execute.execute => execute::run(&global, &wanted, job),
        Some(Commands::Replay(wanted)) => replay::run(&wanted),
        Some(Commands::Scenarios(wanted)) => scenarios::run(&global, &wanted, job),
        Some(Commands::Sessions(wanted)) => sessions::run(&global, &wanted),
        Some(Commands::Fabrics { name, json }) => facts::fabrics(name.as_deref(), json),
        Some(Commands::Doctor { json }) => facts::doctor(&global, json),
        Some(Commands::Keys { json }) => facts::keys(json),
        Some(Commands::Themes { json }) => facts::themes(json),
        Some(Commands::Schema { of }) => Ok(facts::schema(of)),
        Some(Commands::Completions { shell }) => Ok(shell::completions(shell)),
        Some(Commands::Man { out }) => shell::man(out.as_deref()),
        Some(Commands::Guard) => Ok(u8::try_from(crate::launch::guard::serve()).unwrap_or(FOUND)),
    }
}

/// An error with its causes, each told once: our own errors name theirs already.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        told if told.contains(&cause) => told.to_owned(),
        told => format!("{told}: {cause}"),
    })
}

/// What could not be printed makes the end a bad one.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// Print to standard output; a closed pipe is no error of ours, a full disk is one that a script must see.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            UNPRINTED.store(true, Ordering::Relaxed);
            let _ = writeln!(std::io::stderr(), "toposcope: standard output: {error}");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::told;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let ours = crate::launch::LaunchError::at("open x")(std::io::Error::other("disk on fire"));
        assert_eq!(told(&anyhow::Error::from(ours)), "open x: disk on fire");
        let error = Err::<(), _>(std::io::Error::other("why")).context("what").unwrap_err();
        assert_eq!(told(&error), "what: why");
    }
}
