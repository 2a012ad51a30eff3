//! What libraries print goes to a private file and, line by line, to the log: never to the screen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};

use super::{LaunchError, folder, process};
use crate::units::plain;

/// Longest line that is passed on, bytes; the rest of it is dropped.
const LONGEST: usize = 2_000;
/// Most lines of one call.
const MOST_LINES: usize = 200;
/// What was read is given back to the file system in steps of this size, bytes.
const STEP: u64 = 1 << 20;
/// How much of a dead rank's file is looked at for its last words, bytes.
const LAST_BYTES: usize = 8 << 10;

/// A rank's standard output and error, kept off the terminal.
#[derive(Debug)]
pub struct Chatter {
    /// where standard output went before
    pub stdout: File,
    /// where standard error went before
    pub stderr: File,
    tail: Tail,
}

impl Chatter {
    /// Send standard output and error to a private file from here on; before `MPI_Init` and before any thread prints.
    pub fn begin() -> Result<Self, LaunchError> {
        let folder = folder::private()?;
        sweep_out(&folder);
        let path = path_of(&folder, std::process::id());
        let (file, tail) = Tail::create(&path)?;
        let at = || LaunchError::at("redirect standard output and error");
        let kept = |fd: rustix::io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(at());
        let out = kept(rustix::io::fcntl_dupfd_cloexec(stdout(), 3))?;
        let err = kept(rustix::io::fcntl_dupfd_cloexec(stderr(), 3))?;
        // What std still holds belongs to the old place; a pipe that nobody reads is no reason to stop.
        let _ = io::stdout().flush();
        dup2_stdout(&file).map_err(at())?;
        dup2_stderr(&file).map_err(at())?;
        Ok(Self { stdout: out, stderr: err, tail })
    }

    /// Lines printed since the last call, safe to show: at most 200, each at most 2,000 bytes. A line without its end
    /// waits for it.
    pub fn lines(&mut self) -> Vec<String> {
        self.tail.lines()
    }

    /// Give standard output and error back, and what is left in the file, the last line without its end included.
    pub fn end(mut self) -> Vec<String> {
        let _ = io::stdout().flush();
        let mut lines = Vec::new();
        loop {
            let more = self.tail.lines();
            if more.is_empty() {
                break;
            }
            lines.extend(more);
        }
        lines.extend(self.tail.rest());
        // Neither can fail with open descriptors, and if so the program ends anyway.
        let _ = dup2_stdout(self.stdout.as_fd());
        let _ = dup2_stderr(self.stderr.as_fd());
        lines
    }
}

fn path_of(folder: &Path, pid: u32) -> PathBuf {
    let host: String = process::host_name().chars().map(|c| if c == '/' { '-' } else { c }).collect();
    folder.join(format!("{host}-{pid}.log"))
}

/// Remove what ranks of this host that are dead left behind.
fn sweep_out(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let pid = path.file_stem().and_then(|stem| stem.to_str()?.rsplit_once('-')?.1.parse::<u32>().ok());
        let is_dead = |pid: u32| path == path_of(folder, pid) && process::Stat::of(pid).is_none();
        if pid.is_some_and(is_dead) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The last words of a process of this host that died, at most `most` lines.
pub(crate) fn last_words(pid: u32, most: usize) -> Vec<String> {
    let Some(file) = folder::candidates().into_iter().find_map(|folder| File::open(path_of(&folder, pid)).ok()) else {
        return Vec::new();
    };
    let start = file.metadata().map_or(0, |about| about.len().saturating_sub(LAST_BYTES as u64));
    let mut text = vec![0; LAST_BYTES];
    let length = file.read_at(&mut text, start).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..length]);
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(most)..].to_vec()
}

/// Remove what a process of this host left.
pub(crate) fn remove(pid: u32) {
    for folder in folder::candidates() {
        let _ = fs::remove_file(path_of(&folder, pid));
    }
}

/// Reads a growing file by lines.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: File,
    partial: Vec<u8>,
    /// lines read but not handed out
    ready: std::collections::VecDeque<String>,
    /// bytes read, and bytes given back to the file system
    read: u64,
    freed: u64,
}

impl Tail {
    /// A new file, and its end to write to.
    fn create(path: &Path) -> Result<(File, Self), LaunchError> {
        let at = || LaunchError::at(format!("make {}", path.display()));
        // A leftover of an earlier process with this id.
        let _ = fs::remove_file(path);
        let writer = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).map_err(at())?;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(at())?;
        let ready = std::collections::VecDeque::new();
        Ok((writer, Self { path: path.to_owned(), file, partial: Vec::new(), ready, read: 0, freed: 0 }))
    }

    fn lines(&mut self) -> Vec<String> {
        let mut chunk = [0; 16 << 10];
        while self.ready.len() < MOST_LINES {
            let Ok(length) = self.file.read(&mut chunk) else { break };
            if length == 0 {
                break;
            }
            self.read += length as u64;
            for &byte in &chunk[..length] {
                if byte == b'\n' {
                    self.ready.extend(text_of(&self.partial));
                    self.partial.clear();
                } else if self.partial.len() < LONGEST {
                    self.partial.push(byte);
                }
            }
        }
        if self.read - self.freed >= STEP {
            // A library that prints for days must not fill a file system in memory. Where holes are not known, it does.
            let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, self.read);
            self.freed = self.read;
        }
        self.ready.drain(..self.ready.len().min(MOST_LINES)).collect()
    }

    fn rest(&mut self) -> Option<String> {
        text_of(&std::mem::take(&mut self.partial))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A line safe to show; `None` if nothing is left of it.
fn text_of(line: &[u8]) -> Option<String> {
    let text = plain(&String::from_utf8_lossy(line));
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn tail() -> (tempfile::TempDir, File, Tail) {
        let scratch = tempfile::tempdir().unwrap();
        let (writer, tail) = Tail::create(&scratch.path().join("x.log")).unwrap();
        (scratch, writer, tail)
    }

    #[test]
    fn lines_come_whole_and_harmless() {
        let (_scratch, mut writer, mut tail) = tail();
        writer.write_all(b"one\r\n\n\x1b[31mtwo\nthr").unwrap();
        assert_eq!(tail.lines(), ["one", "[31mtwo"]);
        assert_eq!(tail.lines(), [""; 0]);
        writer.write_all(b"ee\nfour").unwrap();
        assert_eq!(tail.lines(), ["three"]);
        assert_eq!(tail.rest().as_deref(), Some("four"));
    }

    #[test]
    fn a_flood_is_bounded_and_nothing_is_reordered() {
        let (_scratch, mut writer, mut tail) = tail();
        for number in 0..500 {
            writeln!(writer, "{number}").unwrap();
        }
        writer.write_all(&[b'x'; 10_000]).unwrap();
        writer.write_all(b"\n").unwrap();
        let (first, second, third) = (tail.lines(), tail.lines(), tail.lines());
        assert_eq!((first.len(), second.len(), third.len()), (200, 200, 101));
        assert_eq!((first[199].as_str(), second[0].as_str()), ("199", "200"));
        assert_eq!(third[100].len(), LONGEST);

        // A flood waits in the file, not in memory.
        writer.write_all(&b"z\n".repeat(1 << 20)).unwrap();
        assert_eq!(tail.lines().len(), MOST_LINES);
        assert!(tail.ready.len() < 16 << 10, "{}", tail.ready.len());
    }

    #[test]
    fn what_was_read_takes_no_room() {
        let (scratch, mut writer, mut tail) = tail();
        let path = scratch.path().join("x.log");
        for _ in 0..40 {
            writer.write_all(format!("{}\n", "y".repeat(99_999)).as_bytes()).unwrap();
            tail.lines();
        }
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 2 * STEP);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(tail);
        assert!(!path.exists());
    }
}
