use std::fs;
use std::process::{Command, Stdio};

use super::here::Here;
use super::{Found, State};

pub(super) fn features(_: &Here) -> Found {
    let all = [
        ("tui", cfg!(feature = "tui")),
        ("nvml", cfg!(feature = "nvml")),
        ("cuda", cfg!(feature = "cuda")),
        ("mpi", cfg!(feature = "mpi")),
    ];
    let names = |wanted| all.iter().filter(|(_, on)| *on == wanted).map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (with, without) = (names(true), names(false));
    let kind = if cfg!(debug_assertions) { "debug" } else { "release" };
    let fact = format!("toposcope {} ({kind}), features: {}", env!("CARGO_PKG_VERSION"), if with.is_empty() { "none" } else { &with });
    if cfg!(debug_assertions) {
        return Found::not(State::Warn, fact, "a debug build measures its own slowness; build with cargo build --release");
    }
    if without.is_empty() { Found::ok(fact) } else { Found::ok(format!("{fact}; without: {without}")) }
}

#[cfg(feature = "mpi")]
pub(super) fn mpi(_: &Here) -> Found {
    match mpi::environment::library_version() {
        Ok(version) => Found::ok(version.lines().next().unwrap_or_default().to_owned()),
        Err(error) => {
            Found::not(State::Warn, format!("the MPI library's version is no text: {error}"), "check which libmpi is loaded (ldd)")
        }
    }
}

#[cfg(not(feature = "mpi"))]
pub(super) fn mpi(here: &Here) -> Found {
    let fix = "cargo build --release --features mpi";
    let fix = if here.program("mpicc").is_some() { fix.to_owned() } else { format!("make setup, then {fix}") };
    Found::not(State::Absent, "this build has no MPI; ranks are threads of this machine", fix)
}

pub(super) fn launcher(here: &Here, name: &str) -> Found {
    let Some(path) = here.program(name) else {
        let fix = match name {
            "srun" => "comes with Slurm; not needed where mpirun starts jobs".to_owned(),
            _ => "install Open MPI or MPICH (make setup), or load your site's module, such as module load openmpi".to_owned(),
        };
        return Found::not(State::Absent, "not on PATH", fix);
    };
    let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    let output = Command::new(&path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    // MPICH's Hydra tells its version in the second line.
    let version = text.lines().find(|line| line.chars().any(|c| c.is_ascii_digit())).unwrap_or("version not told");
    let version = version.split_whitespace().collect::<Vec<_>>().join(" ");
    Found::ok(format!("{version}, {}", target.display()))
}

pub(super) fn libclang(here: &Here) -> Found {
    let mut found = here.libraries("libclang.so");
    found.append(&mut here.libraries("libclang-"));
    for entry in fs::read_dir(here.path("usr/lib")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("llvm") {
            for library in fs::read_dir(entry.path().join("lib")).into_iter().flatten().flatten() {
                let name = library.file_name().to_string_lossy().into_owned();
                if name.starts_with("libclang.so") || name.starts_with("libclang-") {
                    found.insert(name, library.path());
                }
            }
        }
    }
    found.retain(|name, _| name.contains(".so"));
    match (found.into_values().next(), here.var("LIBCLANG_PATH")) {
        (_, Some(told)) => Found::ok(format!("LIBCLANG_PATH={told}")),
        (Some(path), _) => Found::ok(path.display().to_string()),
        (None, None) => Found::not(
            State::Absent,
            "not found; only a build with MPI needs it",
            "apt-get install libclang-dev, or dnf install clang-devel, or set LIBCLANG_PATH (make setup does it)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn launchers_and_libclang_are_found_where_they_are() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        let lib = root.path().join("usr/lib/llvm-14/lib");
        for folder in [&bin, &lib] {
            fs::create_dir_all(folder).unwrap();
        }
        let script = bin.join("mpiexec");
        fs::write(&script, "#!/bin/sh\necho HYDRA build details:\necho '    Version:       4.0.2'\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(lib.join("libclang-14.so.1"), "").unwrap();
        let here = Here::at(root.path(), [("PATH", bin.to_str().unwrap())]);
        let found = launcher(&here, "mpiexec");
        assert!(found.state == State::Ok && found.fact.starts_with("Version: 4.0.2, ") && found.fact.ends_with("bin/mpiexec"), "{found:?}");
        assert_eq!(launcher(&here, "mpirun").state, State::Absent);
        assert!(libclang(&here).fact.ends_with("llvm-14/lib/libclang-14.so.1"));
    }
}
