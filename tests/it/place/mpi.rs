//! The two MPI libraries that whole jobs are tested with.

use std::path::PathBuf;
use std::process::Command;

use super::{Place, TOPOSCOPE, skipped};

/// A launcher, and the program built for its library.
pub struct Mpi {
    pub name: &'static str,
    pub launcher: &'static str,
    pub program: String,
}

fn on_path(names: [&'static str; 2]) -> Option<&'static str> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.into_iter().find(|name| folders.iter().any(|folder| folder.join(name).is_file()))
}

impl Mpi {
    /// Open MPI, which this test's own program is built for.
    pub fn open() -> Option<Self> {
        let Some(launcher) = on_path(["mpirun.openmpi", "mpirun"]) else {
            skipped("Open MPI jobs need mpirun (make setup)");
            return None;
        };
        Some(Self { name: "Open MPI", launcher, program: TOPOSCOPE.to_owned() })
    }

    /// MPICH, if the program built for it is named in `TOPOSCOPE_MPICH_BIN`.
    pub fn mpich() -> Option<Self> {
        let program = std::env::var("TOPOSCOPE_MPICH_BIN").ok().filter(|path| PathBuf::from(path).is_file());
        let (Some(launcher), Some(program)) = (on_path(["mpiexec.mpich", "mpiexec.hydra"]), program) else {
            skipped("MPICH jobs need mpiexec.mpich and TOPOSCOPE_MPICH_BIN, the program built for it (make test-mpi)");
            return None;
        };
        Some(Self { name: "MPICH", launcher, program })
    }

    /// The library that this test's own program is built for, with this program.
    pub fn own() -> Option<Self> {
        let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        if toposcope::transport::mpi::version().contains("Open MPI") {
            return Self::open().map(|mpi| Self { program, ..mpi });
        }
        let Some(launcher) = on_path(["mpiexec.mpich", "mpiexec.hydra"]) else {
            skipped("MPICH jobs need mpiexec.mpich");
            return None;
        };
        Some(Self { name: "MPICH", launcher, program })
    }

    /// Launcher, number of ranks, program: what stands before the program's own arguments.
    pub fn words<'a>(&'a self, ranks: &'a str) -> [&'a str; 4] {
        [self.launcher, "-n", ranks, &self.program]
    }

    /// A job of three ranks.
    pub fn job(&self, place: &Place) -> Command {
        let mut command = place.command(self.launcher);
        command.args(&self.words("3")[1..]);
        command
    }
}

/// One test for each library.
macro_rules! with_both {
    ($($(#[$more:meta])* $name:ident)*) => {
        mod open_mpi {
            $(#[test] $(#[$more])* fn $name() {
                if let Some(mpi) = $crate::place::mpi::Mpi::open() { super::$name(&mpi); }
            })*
        }
        mod mpich {
            $(#[test] $(#[$more])* fn $name() {
                if let Some(mpi) = $crate::place::mpi::Mpi::mpich() { super::$name(&mpi); }
            })*
        }
    };
}
pub(crate) use with_both;
