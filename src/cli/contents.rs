//! What a path names, read once: a pipe tells nothing twice.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::import::MOST_BYTES;
use crate::units::plain;

/// Bytes in which a file of this program says so.
const HEAD: usize = 4096;

/// How long a pipe may have no writer before that is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was there.
pub(super) enum Contents {
    Folder,
    /// of this program, as it says itself
    Ours(Vec<u8>),
    /// another's; of one that is larger, [`MOST_BYTES`] and one more
    Other(Vec<u8>),
}

impl Contents {
    /// Bytes that were read, by what they say at their beginning.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        if is_ours(&bytes) { Self::Ours(bytes) } else { Self::Other(bytes) }
    }
}

fn is_ours(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).contains("\"toposcope.")
}

/// Read it. What cannot be: the path, why, and what to do.
pub(super) fn read(path: &Path) -> Result<Contents> {
    if path.is_dir() {
        return Ok(Contents::Folder);
    }
    let read = || -> io::Result<Contents> {
        let mut file = opened(path)?;
        let mut bytes = Vec::new();
        (&mut file).take(HEAD as u64).read_to_end(&mut bytes)?;
        if is_ours(&bytes) {
            file.read_to_end(&mut bytes)?;
            return Ok(Contents::Ours(bytes));
        }
        file.take(MOST_BYTES + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
        Ok(Contents::Other(bytes))
    };
    read().with_context(|| format!("{}: cannot be read; check the path and its permissions", plain(&path.display().to_string())))
}

/// Open a file; for a pipe it is waited until somebody writes into it, and that is told.
fn opened(path: &Path) -> io::Result<File> {
    if !fs::metadata(path).is_ok_and(|known| known.file_type().is_fifo()) {
        return File::open(path);
    }
    let (tell, told) = channel::<()>();
    let name = plain(&path.display().to_string());
    let patient = move || {
        if told.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            super::say(&format!("toposcope: {name} is a pipe that nobody writes into yet: waiting for one who does (Ctrl-C ends it)\n"));
        }
    };
    std::thread::Builder::new().name("patience".to_owned()).spawn(patient)?;
    let file = File::open(path);
    drop(tell);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "{\"format\": \"toposcope.calibration/1\"").unwrap();
        assert!(matches!(read(&path), Ok(Contents::Ours(bytes)) if bytes.len() == 36));
        fs::write(&path, format!("{}\"toposcope.calibration/1\"", " ".repeat(HEAD))).unwrap();
        assert!(matches!(read(&path), Ok(Contents::Other(bytes)) if bytes.len() == HEAD + 25));
        assert!(matches!(read(folder.path()), Ok(Contents::Folder)));
        let missing = format!("{:#}", super::super::files::recorded(&folder.path().join("no\u{1b}")).err().unwrap());
        assert!(missing.contains("no: no such file") && missing.contains("toposcope sessions"), "{missing:?}");
        for (text, says) in [(&b" \n"[..], "empty"), (b"\x1f\x8b\x08", "zcat"), (b"{\"format\": \"toposcope.calibration/1\",", "cut off")] {
            fs::write(&path, text).unwrap();
            let told = format!("{:#}", super::super::files::recorded(&path).err().unwrap());
            assert!(told.contains(says), "{told:?}");
        }
        let told = format!("{:#}", read(&folder.path().join("no\u{1b}[31m")).err().unwrap());
        assert!(told.contains("no[31m: cannot be read") && told.contains("No such file"), "{told:?}");
    }

    #[test]
    fn a_pipe_is_read_once_by_whoever_opens_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        for text in ["# OSU MPI Bandwidth Test v7.0\n# Size  Bandwidth (MB/s)\n4096 1000.00\n8192 1500.00\n", "no measurement\n"] {
            let into = pipe.clone();
            let writer = std::thread::spawn(move || fs::write(into, text));
            let recorded = super::super::files::recorded(&pipe);
            writer.join().unwrap().unwrap();
            match recorded {
                Ok(recorded) => assert_eq!(super::super::files::fold(&recorded).samples(), 2),
                Err(error) => assert!(format!("{error:#}").contains("no measurement"), "{error:#}"),
            }
        }
    }

    #[test]
    fn no_more_is_read_of_a_file_without_end_than_is_needed() {
        assert!(matches!(read(Path::new("/dev/zero")), Ok(Contents::Other(bytes)) if bytes.len() as u64 == MOST_BYTES + 1));
    }
}
