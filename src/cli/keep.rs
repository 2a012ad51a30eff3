//! What the screen is asked to keep, written on a thread of its own: pictures of it, and the report.
//!
//! Files lie in the folder that the program was started in, or else where new sessions lie, and never replace any.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
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

/// Who writes.
pub(super) struct Files {
    work: Option<Sender<Keep>>,
    told: Receiver<Result<String, String>>,
    thread: Option<JoinHandle<()>>,
}

impl Files {
    /// Begins to write between the probes of this process, where it has any. `sessions`: where new ones lie.
    pub(super) fn new(efficiency: Efficiency, gate: Option<Arc<Gate>>, sessions: PathBuf) -> Result<Self> {
        let (work, wanted) = channel::<Keep>();
        let (tell, told) = channel();
        let write = move || {
            for keep in wanted {
                let write = || keep_it(&folders(&sessions), &keep, &efficiency).map_err(|error| error.to_string());
                let written = match &gate {
                    Some(gate) => gate.pass(PATIENCE, write),
                    None => write(),
                };
                // A screen that is gone asks for nothing more.
                let _ = tell.send(written);
            }
        };
        let thread = std::thread::Builder::new().name("keep".to_owned()).spawn(write).context("could not start the writer's thread")?;
        Ok(Self { work: Some(work), told, thread: Some(thread) })
    }
}

impl Keeper for Files {
    fn keep(&mut self, what: Keep) {
        if let Some(work) = &self.work {
            // A thread that is gone has told why.
            let _ = work.send(what);
        }
    }

    fn told(&mut self) -> Option<Result<String, String>> {
        self.told.try_recv().ok()
    }
}

impl Drop for Files {
    /// What was asked for is written to its end.
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
            let files = new_files(folder, &format!("{session}-{of}"), ["svg", "png"])?;
            write_bytes(&files[0], svg::svg(canvas, &format!("toposcope {session}: {of}")).as_bytes())?;
            let png = raster::png(canvas).map_err(|source| ExportError::Io { path: files[1].clone(), source })?;
            write_bytes(&files[1], &png)?;
            Ok(said(&files))
        }
        Keep::Report { model } => {
            let seen = session::measured(model, efficiency);
            let diagnosis = diagnose(&seen);
            let files = new_files(folder, &format!("{}-report", model.header.name), ["html", "md"])?;
            for (file, written) in files.iter().zip([Written::Html, Written::Markdown]) {
                write_report(file, written, model, &seen, &diagnosis)?;
            }
            Ok(said(&files))
        }
    }
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
