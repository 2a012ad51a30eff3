//! `toposcope sessions`: this person's recorded sessions, told, renamed, noted, deleted; and their names in the place of paths.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::args::{Commands, Global};
use super::plan::PlanCommands;
use super::scenarios::ScenariosCommands;
use super::{FINE, FOUND, diff, print};
use crate::config::{self, Config};
use crate::session::store::shelf::{self, Entry, State};
use crate::units::{format_count, plain};

/// The newest session's name on the command line.
const LAST: &str = "last";

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub what: Option<SessionsCommands>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommands {
    /// List them, the newest first (the default)
    List,
    /// Give one another name
    Rename {
        #[arg(value_name = "NAME|DIR")]
        session: PathBuf,
        /// Its new name
        name: String,
    },
    /// Tell the note of one, or write another; an empty text takes it away
    Note {
        #[arg(value_name = "NAME|DIR")]
        session: PathBuf,
        text: Option<String>,
    },
    /// Delete some, after a question; what lies in their folders that is not ours stays
    Delete {
        #[arg(value_name = "NAME|DIR", required = true)]
        sessions: Vec<PathBuf>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Tell what changed from one to another, as `toposcope diff` does
    Compare {
        #[arg(value_name = "NAME|DIR")]
        before: PathBuf,
        #[arg(value_name = "NAME|DIR")]
        after: PathBuf,
    },
}

/// Do what was asked of the sessions.
pub(super) fn run(global: &Global, args: &SessionsArgs) -> Result<u8> {
    match &args.what {
        None | Some(SessionsCommands::List) => {
            let folder = config::sessions(&global.config);
            let entries = shelf::list(&folder)?;
            print(&if args.json { document(&folder, &entries) } else { table(&folder, &entries) });
            Ok(FINE)
        }
        Some(SessionsCommands::Rename { session, name }) => {
            let to = shelf::rename(session, name)?;
            told(args.json, "renamed", &[shelf::look(&to)], &format!("{}\n", to.display()));
            Ok(FINE)
        }
        Some(SessionsCommands::Note { session, text }) => {
            if let Some(text) = text {
                shelf::set_note(session, text)?;
            }
            let entry = shelf::look(session);
            if let State::Broken(why) = &entry.state {
                bail!("{}: {why}", session.display());
            }
            let note = if entry.note.is_empty() { String::new() } else { format!("{}\n", entry.note) };
            told(args.json, "noted", &[entry], &note);
            Ok(FINE)
        }
        Some(SessionsCommands::Delete { sessions, yes }) => delete(args.json, sessions, *yes),
        Some(SessionsCommands::Compare { before, after }) => diff::run(global, before, after, args.json, None),
    }
}

fn told(json: bool, what: &str, entries: &[Entry], text: &str) {
    if json {
        let value = serde_json::json!({ "format": FORMAT, "done": what, "sessions": entries });
        print(&format!("{value:#}\n"));
    } else {
        print(text);
    }
}

/// Format of the list, as its schema tells it.
const FORMAT: &str = "toposcope.sessions/1";

fn delete(json: bool, sessions: &[PathBuf], yes: bool) -> Result<u8> {
    let entries: Vec<Entry> = sessions.iter().map(|path| shelf::look(path)).collect();
    for (entry, path) in entries.iter().zip(sessions) {
        if let State::Broken(why) = &entry.state {
            bail!("{}: {why}; it is left alone: look at it, and remove it yourself if it is not needed", path.display());
        }
        if entry.state == State::Written {
            bail!("{}: a job writes it: end the job first; nothing was deleted", path.display());
        }
    }
    if !yes {
        if !std::io::stdin().is_terminal() {
            bail!("nobody can be asked here whether to delete: say --yes");
        }
        let names: Vec<String> = entries.iter().map(line).collect();
        eprint!("{}delete {} for good? [y/N] ", names.concat(), if names.len() == 1 { "this session" } else { "these sessions" });
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("standard input")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            eprintln!("nothing was deleted");
            return Ok(FOUND);
        }
    }
    let mut text = String::new();
    for path in sessions {
        let left = shelf::delete(path)?;
        let _ = writeln!(text, "{}", path.display());
        if !left.is_empty() {
            eprintln!("toposcope: {} stays, with {} in it", plain(&path.display().to_string()), left.join(", "));
        }
    }
    told(json, "deleted", &entries, &text);
    Ok(FINE)
}

/// When a session began, in this place's own time.
pub(super) fn when(started: &str) -> String {
    let stamp = started.parse::<jiff::Timestamp>();
    stamp.map_or_else(
        |_| plain(started),
        |stamp| stamp.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

fn line(entry: &Entry) -> String {
    let note = entry.note.lines().next().unwrap_or_default();
    if let State::Broken(why) = &entry.state {
        return format!("{:<36} broken: {why}\n", entry.name);
    }
    let state = match entry.state {
        State::Written => "running",
        State::Cut => "cut",
        _ => "",
    };
    format!(
        "{:<36} {:<16} {:<7} {:>5} {:>5} {:>9}  {state:<7}  {note}\n",
        entry.name,
        entry.started.as_deref().map(when).unwrap_or_default(),
        entry.engine.as_deref().unwrap_or_default(),
        entry.ranks,
        entry.hosts,
        entry.samples.map_or_else(|| "many".to_owned(), format_count),
    )
}

fn table(folder: &Path, entries: &[Entry]) -> String {
    if entries.is_empty() {
        return format!("no sessions in {}: toposcope sweep, or the screen, makes some\n", folder.display());
    }
    let mut text =
        format!("{:<36} {:<16} {:<7} {:>5} {:>5} {:>9}  {:<7}  note\n", "name", "began", "engine", "ranks", "hosts", "samples", "state");
    text.extend(entries.iter().map(line));
    text.lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

fn document(folder: &Path, entries: &[Entry]) -> String {
    let value = serde_json::json!({ "format": FORMAT, "folder": folder.display().to_string(), "sessions": entries });
    format!("{value:#}\n")
}

/// A session's name in the place of a path: what is there under the path as typed goes first.
pub(super) fn place(config: &Config, path: &mut PathBuf) {
    let single = path.components().count() == 1 && !path.as_os_str().to_string_lossy().contains('/');
    if !single || path.symlink_metadata().is_ok() {
        return;
    }
    let folder = config::sessions(config);
    if path.as_os_str() == LAST {
        if let Some(newest) = shelf::newest(&folder) {
            *path = newest;
        }
        return;
    }
    let named = folder.join(&*path);
    if named.is_dir() {
        *path = named;
    }
}

/// Put paths in the place of names, wherever a command names sessions.
pub(super) fn places(config: &Config, command: &mut Commands) {
    let each = |path: &mut PathBuf| place(config, path);
    match command {
        Commands::Open { session, against, .. } => session.iter_mut().chain(against).for_each(each),
        Commands::Export { session, against, .. } => {
            each(session);
            against.iter_mut().for_each(each);
        }
        Commands::Fit { source, .. } => each(source),
        Commands::Diagnose(wanted) => each(&mut wanted.source),
        Commands::Diff { before, after, .. } => [before, after].into_iter().for_each(each),
        Commands::Sweep { sweep, .. } => sweep.resume.iter_mut().for_each(each),
        Commands::Sessions(SessionsArgs { what: Some(what), .. }) => match what {
            SessionsCommands::List => {}
            SessionsCommands::Rename { session, .. } | SessionsCommands::Note { session, .. } => each(session),
            SessionsCommands::Delete { sessions, .. } => sessions.iter_mut().for_each(each),
            SessionsCommands::Compare { before, after } => [before, after].into_iter().for_each(each),
        },
        Commands::Import(wanted) => wanted.files.iter_mut().for_each(each),
        Commands::Strategies(wanted) => wanted.price.calibration.iter_mut().for_each(each),
        Commands::Replay(wanted) => wanted.price.calibration.iter_mut().for_each(each),
        Commands::Scenarios(wanted) => {
            if let Some(ScenariosCommands::Run(run)) = &mut wanted.what {
                run.calibration.iter_mut().for_each(each);
            }
        }
        Commands::Plan { what: PlanCommands::Build(wanted) } => wanted.calibration.iter_mut().for_each(each),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_a_session_and_a_path_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sessions = {:?}", folder.path().display().to_string());
        let config = Config::load(Some(&text), Path::new("c"), |_| None).unwrap();
        let lab = folder.path().join("lab-4x4");
        std::fs::create_dir(&lab).unwrap();
        let placed = |typed: &str| {
            let mut path = PathBuf::from(typed);
            place(&config, &mut path);
            path
        };
        assert_eq!(placed("lab-4x4"), lab);
        assert_eq!(placed("./lab-4x4"), Path::new("./lab-4x4"));
        assert_eq!(placed("none"), Path::new("none"));
        // A folder of this name where the person stands goes before the session.
        std::fs::create_dir(folder.path().join("src")).unwrap();
        assert_eq!(placed("src"), Path::new("src"));
        assert_eq!(placed("last"), Path::new("last"), "a broken folder is not the last session");
        std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/sessions/lab-4x4/header.json"), lab.join("header.json")).unwrap();
        assert_eq!(placed("last"), lab);
    }

    #[test]
    fn the_table_tells_what_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("torn")).unwrap();
        let entries = shelf::list(folder.path()).unwrap();
        let text = table(folder.path(), &entries);
        assert!(text.contains("torn") && text.contains("broken: ") && text.contains("header.json"), "{text}");
        assert!(table(folder.path(), &[]).starts_with("no sessions in "));
    }
}
