//! Starts the job and owns the terminal.
//!
//! Under `mpirun` rank 0 draws the screen itself although the launcher holds the terminal: [`terminal`] finds it and puts
//! it back in any case, [`keys`] turns the launcher's forwarded bytes into events, [`guard`] is the process that puts the
//! terminal back when rank 0 cannot, [`chatter`] keeps what libraries print off the screen, [`signals`] ends every rank
//! in order, [`socket`] serves a job that has no terminal, and [`run`] starts a launcher with the flags that it needs.

pub mod chatter;
pub mod folder;
pub mod guard;
pub mod job;
pub mod keys;
pub mod process;
pub mod run;
pub mod signals;
pub mod socket;
pub mod terminal;

pub use process::{Member, dead_ranks};

use std::io;
use std::path::PathBuf;

/// What can go wrong around the job and its terminal.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// the system said no
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// there is no terminal to draw on
    #[error("no terminal for a screen: {why}; the job can be watched with `toposcope attach` on rank 0's host")]
    NoTerminal { why: String },
    /// a folder that others could read or that is somebody else's
    #[error("{} is not a private folder of yours ({why}); remove it, or point XDG_RUNTIME_DIR to a folder of yours with mode 0700", path.display())]
    NotPrivate { path: PathBuf, why: String },
    /// the guard did not come up
    #[error("the guard process did not start: {why}; without it a killed rank 0 would leave the terminal unusable")]
    Guard { why: String },
    /// nothing to attach to
    #[error("no running job of yours serves a socket on this host; `toposcope attach` works on the host of rank 0")]
    NoSocket,
    /// which one?
    #[error("{} jobs serve a socket; name one of them:\n{}", found.len(), found.iter().map(|path| format!("  toposcope attach {}", path.display())).collect::<Vec<_>>().join("\n"))]
    SeveralSockets { found: Vec<PathBuf> },
    /// the other side of the socket speaks otherwise
    #[error("{}: {why}", path.display())]
    Protocol { path: PathBuf, why: String },
    /// no launcher to start ranks with
    #[error("no launcher found ({tried}); install Open MPI or MPICH, or name one with --launcher")]
    NoLauncher { tried: String },
}

impl LaunchError {
    /// For `map_err`: the same error for what was being done.
    pub(crate) fn at<E: Into<io::Error>, W: Into<String>>(what: W) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what: what.into(), source: error.into() }
    }
}
