//! The stand-ins for CUDA's driver and NCCL (`examples/cuda_stand_in`, `examples/nccl_stand_in`) as a loader finds them, and what they
//! tell of those who used them.
//!
//! A test starts a child process with `LD_LIBRARY_PATH` from [`stand_ins`] or with [`serve`], asks for failures with the TOML in
//! [`ALSO`], and reads what was called and what was wrong with [`told`].

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::place::TOPOSCOPE;

/// TOML on top of the box's file, such as `cuda.p2p = false` or a `[[cuda.fail]]`; see `examples/cuda_stand_in/described.rs`.
pub const ALSO: &str = "TOPOSCOPE_STAND_IN_ALSO";
/// The folder for what was called.
pub const REPORT: &str = "TOPOSCOPE_STAND_IN_REPORT";

/// Names by which a loader asks for each library.
const NAMES: [(&str, &[&str]); 2] = [("cuda", &["libcuda.so.1", "libcuda.so"]), ("nccl", &["libnccl.so.2"])];

fn built(library: &str) -> PathBuf {
    let path = Path::new(TOPOSCOPE).with_file_name("examples").join(format!("lib{library}_stand_in.so"));
    assert!(path.exists(), "{} is not there: cargo build --examples (cargo test without --test builds it, too)", path.display());
    path
}

/// A folder for `LD_LIBRARY_PATH` with both libraries, under the names that a machine with GPUs has.
pub fn stand_ins() -> PathBuf {
    let folder = Path::new(TOPOSCOPE).with_file_name("examples").join("stand_ins");
    fs::create_dir_all(&folder).unwrap();
    for (library, names) in NAMES {
        for name in names {
            // Another test may have been faster.
            drop(symlink(built(library), folder.join(name)));
        }
    }
    folder
}

/// A folder with some libraries of [`stand_ins`], named `cuda` and `nccl`, which lack some functions: an older driver or NCCL.
pub fn without(libraries: &[&str], functions: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (library, names) in NAMES.into_iter().filter(|(library, _)| libraries.contains(library)) {
        let mut bytes = fs::read(built(library)).unwrap();
        for function in functions {
            // The name goes, its hash stays: the loader finds no function of this name.
            let wanted = [b"\0", function.as_bytes(), b"\0"].concat();
            let places: Vec<usize> =
                bytes.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect();
            for at in places {
                bytes[at + 1] = b'-';
            }
        }
        fs::write(folder.path().join(names[0]), bytes).unwrap();
        for name in &names[1..] {
            symlink(names[0], folder.path().join(name)).unwrap();
        }
    }
    folder
}

/// Give a command both libraries, and a folder for what it calls.
pub fn serve<'a>(command: &'a mut Command, report: &Path) -> &'a mut Command {
    command.env("LD_LIBRARY_PATH", stand_ins()).env(REPORT, report)
}

/// How often something was done, on how many bytes, and how often it failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub count: u64,
    pub bytes: u64,
    pub failed: u64,
}

/// What processes told of their calls, all together.
#[derive(Debug, Default)]
pub struct Told {
    pub processes: usize,
    pub calls: BTreeMap<String, Tally>,
    /// by where from and where to, such as `gpu0->gpu1` or `gpu0->host`
    pub moved: BTreeMap<String, Tally>,
    pub violations: Vec<String>,
    /// what was left to the end of the processes, in contexts that were left, too: for good reason where something was given up alone
    pub kept: Vec<String>,
}

impl Told {
    /// Nothing was wrong, and all was given back.
    #[track_caller]
    pub fn clean(&self) {
        assert_eq!((&self.violations[..], &self.kept[..]), (&[][..], &[][..]));
    }

    /// How often a function was called.
    pub fn calls(&self, function: &str) -> u64 {
        self.calls.get(function).map_or(0, |tally| tally.count)
    }
}

/// What one library (`cuda` or `nccl`) told in a folder.
pub fn told(report: &Path, library: &str) -> Told {
    let mut told = Told::default();
    for entry in fs::read_dir(report).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with(library) {
            continue;
        }
        told.processes += 1;
        for line in fs::read_to_string(path).unwrap().lines() {
            if let Some(violation) = line.strip_prefix("violation: ") {
                told.violations.push(violation.to_owned());
                continue;
            }
            if let Some(kept) = line.strip_prefix("kept: ") {
                told.kept.push(kept.to_owned());
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |name: &str| words.iter().position(|word| *word == name).map_or(0, |at| words[at + 1].parse::<u64>().unwrap());
            let sums = if words[0] == "call" { &mut told.calls } else { &mut told.moved };
            let sum = sums.entry(words[1].to_owned()).or_default();
            sum.count += number("count");
            sum.bytes += number("bytes");
            sum.failed += number("failed");
        }
    }
    told
}
