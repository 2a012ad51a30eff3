//! Connections by which the guard learns of a rank's death in the same instant as its launcher does.
//!
//! A process's end shows in its pidfd only after its connections have closed; a launcher that sees its own connection
//! close (Hydra) has the other ranks killed before that. So each rank of rank 0's host keeps a connection to the guard.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::net::sockopt::socket_peercred;

use crate::launch::{folder, process};

/// Where the guard of a job listens: all ranks of a host have the same launcher above them.
fn path(launcher: u32) -> Option<PathBuf> {
    Some(folder::private().ok()?.join(format!("job-{launcher}.guard")))
}

/// The guard's end; the socket goes when it is dropped.
pub(super) struct Door {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Open the door for the ranks below this launcher; without one, deaths are told from what the kernel says later.
    pub(super) fn open(launcher: u32) -> Option<Self> {
        let path = path(launcher)?;
        // Of an earlier job whose launcher had this number.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, path })
    }

    /// A rank that came: its process id, as the kernel knows it, and its connection.
    pub(super) fn admit(&self) -> Option<(u32, UnixStream)> {
        let (stream, _) = self.listener.accept().ok()?;
        let pid = socket_peercred(&stream).ok()?.pid.as_raw_nonzero().get();
        Some((pid.cast_unsigned(), stream))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A rank's end.
#[derive(Debug, Default)]
pub struct Presence {
    stream: Option<UnixStream>,
}

impl Presence {
    /// Connect, if the guard of rank 0 is on this host and has opened its door. Cheap; call it now and then.
    pub fn keep(&mut self) {
        if self.stream.is_none()
            && let Some(path) = process::launchers().last().and_then(|top| path(top.pid))
            && path.exists()
        {
            self.stream = UnixStream::connect(path).ok();
        }
    }
}
