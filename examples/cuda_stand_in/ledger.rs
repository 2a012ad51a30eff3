//! What was called, what moved and what was wrong: a file for each process in the folder that `TOPOSCOPE_STAND_IN_REPORT` names.
//!
//! Lines are `call NAME count N bytes B failed F`, `moved WHAT count N bytes B`, `violation: TEXT` and `kept: TEXT`. A violation is
//! written when it happens, the rest when the process ends. What is kept was never given back, and in a context that was never let go
//! of either, so that nothing is taken from whoever may still use it: that is a violation only where nothing was given up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default, Clone, Copy)]
struct Tally {
    count: u64,
    bytes: u64,
    failed: u64,
}

#[derive(Default)]
struct Pages {
    calls: BTreeMap<&'static str, Tally>,
    moved: BTreeMap<String, Tally>,
    violations: Vec<String>,
    #[allow(dead_code, reason = "NCCL's stand-in keeps nothing")]
    kept: Vec<String>,
}

/// The book of one library in this process.
pub struct Ledger {
    library: &'static str,
    pages: Mutex<Option<Pages>>,
}

impl Ledger {
    pub const fn new(library: &'static str) -> Self {
        Self { library, pages: Mutex::new(None) }
    }

    fn with<T>(&self, write: impl FnOnce(&mut Pages) -> T) -> T {
        let mut pages: MutexGuard<'_, Option<Pages>> = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        write(pages.get_or_insert_default())
    }

    fn path(&self) -> Option<PathBuf> {
        let folder = PathBuf::from(std::env::var_os("TOPOSCOPE_STAND_IN_REPORT")?);
        Some(folder.join(format!("{}-{}.txt", self.library, std::process::id())))
    }

    /// A call began.
    pub fn called(&self, call: &'static str) {
        self.with(|pages| pages.calls.entry(call).or_default().count += 1);
    }

    /// It failed.
    pub fn failed(&self, call: &'static str) {
        self.with(|pages| pages.calls.entry(call).or_default().failed += 1);
    }

    /// It is about so many bytes.
    pub fn bytes(&self, call: &'static str, bytes: u64) {
        self.with(|pages| pages.calls.entry(call).or_default().bytes += bytes);
    }

    /// Bytes arrived.
    pub fn moved(&self, what: String, bytes: u64) {
        self.with(|pages| {
            let tally = pages.moved.entry(what).or_default();
            tally.count += 1;
            tally.bytes += bytes;
        });
    }

    /// Somebody broke the rules of the interface.
    pub fn violation(&self, what: String) {
        let line = format!("violation: {what}\n");
        match self.path() {
            Some(path) => {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
            }
            None => eprint!("{}_stand_in: {line}", self.library),
        }
        self.with(|pages| pages.violations.push(what));
    }

    /// Something is left to the end of the process on purpose, as far as can be seen.
    #[allow(dead_code, reason = "NCCL's stand-in keeps nothing")]
    pub fn kept(&self, what: String) {
        self.with(|pages| pages.kept.push(what));
    }

    /// Write all of it; nothing if nothing was called.
    pub fn close(&self) {
        let Some(path) = self.path() else { return };
        let text = self.with(|pages| {
            let mut text = String::new();
            for (call, Tally { count, bytes, failed }) in &pages.calls {
                let _ = writeln!(text, "call {call} count {count} bytes {bytes} failed {failed}");
            }
            for (what, Tally { count, bytes, .. }) in &pages.moved {
                let _ = writeln!(text, "moved {what} count {count} bytes {bytes}");
            }
            for what in &pages.violations {
                let _ = writeln!(text, "violation: {what}");
            }
            for what in &pages.kept {
                let _ = writeln!(text, "kept: {what}");
            }
            text
        });
        if !text.is_empty() {
            drop(std::fs::write(path, text));
        }
    }
}
