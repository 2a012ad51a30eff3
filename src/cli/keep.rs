//! What the screen is asked to keep, written on a thread of its own: pictures of it, and the report.
//!
//! Files lie in the folder that the program was started in, or else where new sessions lie, and never replace any.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::diagnose::diagnose;
use crate::export::report::{Written, write_report};
use crate::export::{ExportError, new_files, raster, svg, write_bytes};
use crate::measure::Gate;
use crate::session;
use crate::topology::Efficiency;
use crate::tui::{Keep, Keeper};

/// How long a probe may keep a picture or a report waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many pictures may wait to be written: a person who leaves waits for all of them, and a key that is held down asks for hundreds.
const MOST_OPEN: usize = 8;

/// Where the writer and those who ask it are.
#[derive(Default)]
struct State {
    /// asked for, and not written yet
    open: usize,
    /// a report is among these
    report: bool,
    /// what became of the rest, not told yet
    told: VecDeque<Result<String, String>>,
}

impl State {
    /// Say no, once for all that is asked in a row.
    fn refuse(&mut self, why: String) {
        let no = Err(why);
        if self.told.back() != Some(&no) {
            self.told.push_back(no);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who writes. It outlives the screens that ask it: a report may take longer than a person who leaves wants to look at a still picture.
pub(super) struct Writer {
    work: Sender<Keep>,
    state: Arc<Mutex<State>>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Begins to write between the probes of this process, where it has any. `sessions`: where new ones lie.
    pub(super) fn start(efficiency: Efficiency, gate: Option<Arc<Gate>>, sessions: PathBuf) -> Result<Self> {
        let (work, wanted) = channel::<Keep>();
        let state = Arc::new(Mutex::new(State::default()));
        let tell = Arc::clone(&state);
        let write = move || {
            for keep in wanted {
                let write = || keep_it(&folders(&sessions), &keep, &efficiency).map_err(|error| error.to_string());
                let written = match &gate {
                    Some(gate) => gate.pass(PATIENCE, write),
                    None => write(),
                };
                let mut state = lock(&tell);
                state.open -= 1;
                if matches!(keep, Keep::Report { .. }) {
                    state.report = false;
                }
                state.told.push_back(written);
            }
        };
        let thread = std::thread::Builder::new().name("keep".to_owned()).spawn(write).context("could not start the writer's thread")?;
        Ok(Self { work, state, thread })
    }

    /// For a screen.
    pub(super) fn keeper(&self) -> Box<dyn Keeper> {
        Box::new(Desk { work: self.work.clone(), state: Arc::clone(&self.state) })
    }

    /// When the terminal is back: what was asked for is written to its end, and `say` tells what no screen told any more, a line each.
    pub(super) fn end(self, say: impl Fn(&str)) {
        let Self { work, state, thread } = self;
        drop(work);
        if lock(&state).open > 0 {
            say("writing what was asked for …");
        }
        // A writer that panicked has said so.
        let _ = thread.join();
        for told in std::mem::take(&mut lock(&state).told) {
            say(&told.unwrap_or_else(|why| why));
        }
    }
}

/// A screen's way to the writer.
struct Desk {
    work: Sender<Keep>,
    state: Arc<Mutex<State>>,
}

impl Keeper for Desk {
    fn keep(&mut self, what: Keep) {
        let mut state = lock(&self.state);
        // Each would hold a model, and be written one after another.
        if matches!(what, Keep::Report { .. }) && std::mem::replace(&mut state.report, true) {
            state.refuse("a report is being written: wait for it".to_owned());
            return;
        }
        if state.open >= MOST_OPEN && matches!(what, Keep::Picture { .. }) {
            state.refuse(format!("{MOST_OPEN} files are being written: wait for one"));
            return;
        }
        state.open += 1;
        drop(state);
        // A thread that is gone has told why.
        let _ = self.work.send(what);
    }

    fn told(&mut self) -> Option<Result<String, String>> {
        lock(&self.state).told.pop_front()
    }
}

/// Where to write, best first.
fn folders(sessions: &Path) -> [PathBuf; 2] {
    [std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")), sessions.to_owned()]
}

/// Write it into the first of the folders that takes it, and say where.
fn keep_it(folders: &[PathBuf], keep: &Keep, efficiency: &Efficiency) -> Result<String, ExportError> {
    let mut refused = None;
    for folder in folders {
        match keep_in(folder, keep, efficiency) {
            Ok(said) => return Ok(said),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or(ExportError::Nothing))
}

fn keep_in(folder: &Path, keep: &Keep, efficiency: &Efficiency) -> Result<String, ExportError> {
    match keep {
        Keep::Picture { session, of, canvas } => {
            both(&new_files(folder, &format!("{session}-{of}"), ["svg", "png"])?, |[image, pixels]| {
                write_bytes(image, svg::svg(canvas, &format!("toposcope {session}: {of}")).as_bytes())?;
                let png = raster::png(canvas).map_err(|source| ExportError::Io { path: pixels.clone(), source })?;
                write_bytes(pixels, &png)
            })
        }
        Keep::Report { model } => {
            let seen = session::measured(model, efficiency);
            let diagnosis = diagnose(&seen);
            both(&new_files(folder, &format!("{}-report", model.header.name), ["html", "md"])?, |[page, ticket]| {
                write_report(page, Written::Html, model, &seen, &diagnosis)?;
                write_report(ticket, Written::Markdown, model, &seen, &diagnosis)
            })
        }
    }
}

/// Write two new files, or leave neither: what was reserved for them is empty.
fn both(files: &[PathBuf; 2], write: impl FnOnce(&[PathBuf; 2]) -> Result<(), ExportError>) -> Result<String, ExportError> {
    if let Err(error) = write(files) {
        // Why they could not be written is the one thing to tell.
        for file in files {
            let _ = std::fs::remove_file(file);
        }
        return Err(error);
    }
    Ok(said(files))
}

/// `wrote lab-matrix-1.svg and .png in /home/me`.
fn said(files: &[PathBuf; 2]) -> String {
    let name = files[0].file_name().unwrap_or_default().to_string_lossy();
    let end = files[1].extension().unwrap_or_default().to_string_lossy();
    let folder = files[0].parent().unwrap_or(Path::new("."));
    format!("wrote {name} and .{end} in {}", folder.display())
}

#[cfg(test)]
mod tests;
