use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use rustix::process::geteuid;

use super::Spec;
use crate::launch::terminal::{FORWARD, SCREEN_VARIABLE};
use crate::launch::{LaunchError, process};

/// Whose launcher it is: they take different flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    OpenMpi,
    Mpich,
    Intel,
    Slurm,
    /// answered `--version` with nothing known: it gets `-n` and no more
    Unknown,
}

impl Kind {
    /// As told to a person.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Intel => "Intel MPI",
            Self::Slurm => "Slurm",
            Self::Unknown => "unknown",
        }
    }

    /// From what an MPI library calls itself.
    fn of_library(version: &str) -> Self {
        let has = |word: &str| version.contains(word);
        if has("Open MPI") {
            Self::OpenMpi
        } else if has("Intel") {
            Self::Intel
        } else if has("MPICH") || has("MVAPICH") {
            Self::Mpich
        } else {
            Self::Unknown
        }
    }

    /// From what `--version` printed.
    fn of(version: &str) -> Self {
        let has = |word: &str| version.contains(word);
        if has("Open MPI") || has("OpenRTE") || has("PRRTE") {
            Self::OpenMpi
        } else if has("Intel(R) MPI") {
            Self::Intel
        } else if has("HYDRA") {
            Self::Mpich
        } else if has("slurm") {
            Self::Slurm
        } else {
            Self::Unknown
        }
    }
}

/// A command that starts the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub kind: Kind,
    pub launcher: PathBuf,
    pub arguments: Vec<String>,
    /// rank 0 will be on another host: its screen travels over the launcher's streams
    pub forward: bool,
}

impl Plan {
    /// As a person would type it.
    pub fn command_line(&self) -> String {
        let words = std::iter::once(self.launcher.display().to_string()).chain(self.arguments.iter().cloned());
        words.map(|word| process::quote(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// What the machine is like, as far as it matters here.
#[derive(Debug, Clone)]
struct Here {
    root: bool,
    /// physical cores this process may use
    cores: usize,
    first_host_is_this: bool,
}

/// Find the launcher and the flags that it needs.
pub fn plan(spec: &Spec) -> Result<Plan, LaunchError> {
    let (launcher, kind) = match &spec.launcher {
        Some(name) => {
            let launcher = find(&[name])?;
            let kind = identify(&launcher)?;
            (launcher, kind)
        }
        None => fitting(&spec.library)?,
    };
    let first_host_is_this = spec.hosts.first().is_none_or(|host| is_this_host(name_of(host)));
    let here = Here { root: geteuid().is_root(), cores: cores(), first_host_is_this };
    Ok(plan_for(spec, kind, launcher, &here))
}

fn plan_for(spec: &Spec, kind: Kind, launcher: PathBuf, here: &Here) -> Plan {
    // Slurm may place rank 0 anywhere in the allocation.
    let forward = spec.screen && (!here.first_host_is_this || kind == Kind::Slurm);
    let mut arguments: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(|&word| word.to_owned()));
    let asked = |flag: &str| spec.launcher_arguments.iter().any(|word| word.trim_start_matches('-').starts_with(flag));
    let ranks = spec.ranks.to_string();
    let alone = spec.hosts.is_empty();
    let crowded = spec.ranks > here.cores;
    let hosts = with_slots(&spec.hosts, spec.ranks);
    let forwarding = format!("{SCREEN_VARIABLE}={FORWARD}");
    match kind {
        Kind::OpenMpi => {
            if here.root {
                add(&["--allow-run-as-root"]);
            }
            if alone && crowded && !asked("oversubscribe") {
                add(&["--oversubscribe"]);
            }
            // On other hosts Open MPI's own rule binds: it knows their cores.
            if alone && !asked("bind-to") {
                add(&["--bind-to", if crowded { "none" } else { "core" }]);
            }
            if !alone {
                add(&["-H", &hosts]);
            }
            if forward {
                add(&["-x", &forwarding]);
            }
        }
        Kind::Mpich | Kind::Intel => {
            if !alone {
                add(&["-hosts", &hosts]);
            }
            if kind == Kind::Mpich && alone && !crowded && !asked("bind-to") {
                add(&["-bind-to", "core"]);
            }
            if forward {
                add(&["-genv", SCREEN_VARIABLE, FORWARD]);
            }
        }
        Kind::Slurm => {
            if !alone {
                let names: Vec<&str> = spec.hosts.iter().map(|host| name_of(host)).collect();
                add(&["-w", &names.join(","), "-N", &spec.hosts.len().to_string()]);
            }
            if forward {
                // Keys to task 0 only, and every byte at once.
                add(&["--input=0", "--unbuffered", &format!("--export=ALL,{forwarding}")]);
            }
        }
        Kind::Unknown => {}
    }
    add(&["-n", &ranks]);
    arguments.extend(spec.launcher_arguments.iter().cloned());
    arguments.push(spec.program.display().to_string());
    arguments.extend(spec.arguments.iter().cloned());
    Plan { kind, launcher, arguments, forward }
}

fn name_of(host: &str) -> &str {
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// Hosts with the slots that `ranks` ranks need where none are given: `a:2,b:2`.
fn with_slots(hosts: &[String], ranks: usize) -> String {
    let slots = ranks.div_ceil(hosts.len().max(1));
    let full = hosts.iter().map(|host| if host.contains(':') { host.clone() } else { format!("{host}:{slots}") });
    full.collect::<Vec<_>>().join(",")
}

fn find(names: &[&str]) -> Result<PathBuf, LaunchError> {
    let tried = || LaunchError::NoLauncher { tried: format!("tried {}", names.join(", ")) };
    names.iter().find_map(|name| in_path(name)).ok_or_else(tried)
}

/// Launchers by name, best first; Debian and others keep those of several libraries apart by their endings.
const NAMES: [&str; 7] = ["mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich", "mpirun.mpich", "mpiexec.hydra", "srun"];

/// The first launcher of the library that this program was built with; one of another library would start strangers.
fn fitting(library: &str) -> Result<(PathBuf, Kind), LaunchError> {
    let wanted = Kind::of_library(library);
    let mut others = Vec::new();
    for name in NAMES {
        let Some(launcher) = in_path(name) else { continue };
        let Ok(kind) = identify(&launcher) else { continue };
        if kind == wanted || wanted == Kind::Unknown || kind == Kind::Slurm {
            return Ok((launcher, kind));
        }
        others.push(format!("{name} ({})", kind.name()));
    }
    let tried = if others.is_empty() {
        format!("tried {}", NAMES.join(", "))
    } else {
        format!("this program needs {}'s; found {}", wanted.name(), others.join(", "))
    };
    Err(LaunchError::NoLauncher { tried })
}

fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn identify(launcher: &Path) -> Result<Kind, LaunchError> {
    let output = Command::new(launcher).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(LaunchError::at(format!("run {} --version", launcher.display())))?;
    let text = [output.stdout, output.stderr].concat();
    Ok(Kind::of(&String::from_utf8_lossy(&text)))
}

/// Whether a name or an address is this host's own.
fn is_this_host(name: &str) -> bool {
    let own = process::host_name();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    // One can only listen at an address of one's own.
    name == "localhost" || (!is_address && short(name) == short(&own)) || TcpListener::bind((name, 0)).is_ok()
}

/// Physical cores this process may use: launchers count these, not hardware threads.
fn cores() -> usize {
    let threads = available_parallelism().map_or(1, usize::from);
    let siblings = |cpu: usize| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).ok();
    let known: BTreeSet<String> = (0..4096).map_while(siblings).collect();
    if known.is_empty() { threads } else { known.len().min(threads) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, spec: &Spec, root: bool, cores: usize, this: bool, expect: &str) {
        let here = Here { root, cores, first_host_is_this: this };
        let plan = plan_for(spec, kind, PathBuf::from("mpirun"), &here);
        assert_eq!(plan.command_line(), expect);
    }

    fn spec(ranks: usize, hosts: &[&str]) -> Spec {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        Spec { ranks, hosts, program: PathBuf::from("toposcope"), screen: true, ..Spec::default() }
    }

    #[test]
    fn open_mpi_gets_what_it_needs() {
        let check = |spec: &Spec, root, cores, this, expect| check(Kind::OpenMpi, spec, root, cores, this, expect);
        check(&spec(4, &[]), false, 8, true, "mpirun --bind-to core -n 4 toposcope");
        check(&spec(4, &[]), true, 2, true, "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 toposcope");
        check(&spec(3, &["a", "b:1"]), false, 2, true, "mpirun -H a:2,b:1 -n 3 toposcope");
        check(&spec(2, &["a", "b"]), false, 2, false, "mpirun -H a:1,b:1 -x TOPOSCOPE_SCREEN=forward -n 2 toposcope");
        let mut own = spec(4, &[]);
        own.launcher_arguments = vec!["--bind-to".to_owned(), "socket".to_owned(), "--oversubscribe".to_owned()];
        own.arguments = vec!["--session".to_owned(), "my dir".to_owned()];
        check(&own, false, 2, true, "mpirun -n 4 --bind-to socket --oversubscribe toposcope --session 'my dir'");
    }

    #[test]
    fn the_others_get_theirs() {
        check(Kind::Mpich, &spec(2, &[]), true, 2, true, "mpirun -bind-to core -n 2 toposcope");
        check(Kind::Mpich, &spec(3, &[]), true, 2, true, "mpirun -n 3 toposcope");
        check(Kind::Intel, &spec(2, &["a", "b"]), true, 2, false, "mpirun -hosts a:1,b:1 -genv TOPOSCOPE_SCREEN forward -n 2 toposcope");
        let slurm = "mpirun --input=0 --unbuffered --export=ALL,TOPOSCOPE_SCREEN=forward -n 2 toposcope";
        check(Kind::Slurm, &spec(2, &[]), true, 2, true, slurm);
        check(Kind::Unknown, &spec(2, &[]), true, 2, true, "mpirun -n 2 toposcope");
        // without a screen nothing is forwarded
        let headless = Spec { screen: false, ..spec(2, &["a"]) };
        check(Kind::Slurm, &headless, true, 2, false, "mpirun -w a -N 1 -n 2 toposcope");
    }

    #[test]
    fn launchers_are_known_by_what_they_print() {
        assert_eq!(Kind::of("mpirun.openmpi (OpenRTE) 4.1.4"), Kind::OpenMpi);
        assert_eq!(Kind::of("mpirun (Open MPI) 5.0.3"), Kind::OpenMpi);
        assert_eq!(Kind::of("HYDRA build details:\n    Version: 4.0.2"), Kind::Mpich);
        assert_eq!(Kind::of("Intel(R) MPI Library for Linux* OS, Version 2021.10"), Kind::Intel);
        assert_eq!(Kind::of("slurm 23.02.6"), Kind::Slurm);
        assert_eq!(Kind::of("whatever"), Kind::Unknown);
    }

    #[test]
    fn this_host_is_known_by_name_and_address() {
        for name in ["localhost", "127.0.0.1", "::1", &process::host_name()] {
            assert!(is_this_host(name), "{name}");
        }
        // 192.0.2.0/24 is for documentation (RFC 5737): nobody's own.
        assert!(!is_this_host("192.0.2.7"));
    }

    #[test]
    fn a_launcher_that_is_not_there_is_named() {
        let text = find(&["/no/such/mpirun"]).unwrap_err().to_string();
        assert!(text.contains("tried /no/such/mpirun"), "{text}");
    }
}
