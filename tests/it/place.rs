//! A place of its own for runs of the whole program: folders, processes, and a limit to everything.

#[cfg(feature = "mpi")]
pub mod mpi;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The program under test.
pub const TOPOSCOPE: &str = env!("CARGO_BIN_EXE_toposcope");

/// Runs share two cores: one at a time, so that none starves another into a timeout.
static TURN: Mutex<()> = Mutex::new(());

/// A runtime folder, a session and whatever else a run leaves. Dropping it ends every process of the run.
pub struct Place {
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// A run under way, its output collected.
pub struct Run {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

/// What a stream brought so far, and word of its end.
struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Stream {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = mpsc::channel();
        let into = Arc::clone(&text);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut bytes) {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..length]);
            }
            let _ = end.send(());
        });
        Self { text, ended }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Wait for a condition, at most `limit`; `told` says what there was instead.
pub fn until(limit: Duration, what: &str, told: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}\n{}", told());
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Say that something was not tested, past the test harness; in CI that is a failure.
pub fn skipped(reason: &str) {
    use std::io::Write;
    std::io::stderr().write_all(format!("\nSKIPPED: {reason}\n\n").as_bytes()).unwrap();
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "in CI this must run: {reason}");
}

impl Place {
    pub fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Self { folder: tempfile::tempdir().unwrap(), _turn: turn };
        DirBuilder::new().mode(0o700).create(place.runtime()).unwrap();
        place
    }

    /// For files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn session(&self) -> PathBuf {
        self.folder().join("session")
    }

    fn runtime(&self) -> PathBuf {
        self.folder().join("run")
    }

    /// Sockets of jobs that run here.
    #[cfg(feature = "mpi")]
    pub fn sockets(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.runtime().join("toposcope")) else { return Vec::new() };
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "sock")).collect()
    }

    /// Variables that every process of a run gets; the first one tells them from all others.
    pub fn environment(&self) -> [(&'static str, PathBuf); 7] {
        [
            ("XDG_RUNTIME_DIR", self.runtime()),
            ("XDG_DATA_HOME", self.folder().join("data")),
            ("XDG_CONFIG_HOME", self.folder().join("config")),
            ("TERM", "xterm-256color".into()),
            ("OMPI_ALLOW_RUN_AS_ROOT", "1".into()),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1".into()),
        ]
    }

    /// A command that runs here.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ["NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "TOPOSCOPE_SCREEN"] {
            command.env_remove(name);
        }
        command
    }

    /// The program under test, alone.
    pub fn toposcope(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(TOPOSCOPE);
        command.args(arguments);
        command
    }

    #[allow(clippy::unused_self, reason = "what runs here is started here")]
    pub fn start(&self, command: &mut Command) -> Run {
        // What a killed process leaves where it stood goes with the place.
        let mut child = command.current_dir(self.folder()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdout, stderr) = (child.stdout.take().map(Stream::of).unwrap(), child.stderr.take().map(Stream::of).unwrap());
        Run { child, stdout, stderr }
    }

    /// Run to the end, within `limit`.
    pub fn run(&self, command: &mut Command, limit: Duration) -> Ran {
        self.start(command).end(limit)
    }

    /// Processes of this place that live: process id and command line.
    pub fn processes(&self) -> BTreeMap<u32, String> {
        let mut mark = b"XDG_RUNTIME_DIR=".to_vec();
        mark.extend_from_slice(self.runtime().as_os_str().as_encoded_bytes());
        let session = self.session().display().to_string();
        let mut found = BTreeMap::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let read = |what: &str| fs::read(entry.path().join(what)).unwrap_or_default();
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let ours = line.contains(&session) || read("environ").split(|&byte| byte == 0).any(|variable| variable == mark);
            // A zombie has neither, and its end only waits to be noticed.
            if ours && pid != std::process::id() {
                found.insert(pid, line);
            }
        }
        found
    }

    /// Nothing of a run is left, or will be in a moment.
    pub fn nothing_runs(&self) {
        until(Duration::from_secs(10), "nothing left running", || format!("{:#?}", self.processes()), || self.processes().is_empty());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for pid in self.processes().into_keys() {
            kill(pid, Signal::KILL);
        }
    }
}

/// Send a signal; to a process that has just ended by itself it is no matter.
pub fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

impl Run {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What was said so far on both streams.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout.text(), self.stderr.text())
    }

    /// Wait for the end of the process and of both its streams, which every process that it started may hold.
    pub fn end(mut self, limit: Duration) -> Ran {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let _ = self.child.kill();
                panic!("not within {limit:?}: the end of process {}\n{}", self.pid(), self.said());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        };
        for stream in [&self.stdout, &self.stderr] {
            let ended = stream.ended.recv_timeout(Duration::from_secs(10)).is_ok();
            assert!(ended, "{status}, but something holds its output\n{}", self.said());
        }
        Ran { status, stdout: self.stdout.text(), stderr: self.stderr.text() }
    }
}

impl Ran {
    /// The exit code must be this one.
    #[track_caller]
    pub fn ended_with(&self, code: i32) -> &Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\n--- standard output\n{}\n--- standard error\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }
}
