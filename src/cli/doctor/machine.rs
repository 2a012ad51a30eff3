use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::termios::{isatty, tcgetwinsize};

use super::here::Here;
use super::{Found, State};
use crate::config;
use crate::discover::allowed_cores;
use crate::topology::Efficiency;
use crate::units::{format_ranks, format_size};

/// The smallest screen that is drawn.
const SMALLEST: (u16, u16) = (60, 18);

pub(super) fn terminal(here: &Here) -> Found {
    let out = io::stdout();
    if !isatty(&out) || !isatty(io::stdin()) {
        let fix = "the screen needs one; without it use toposcope sweep, or toposcope attach from a terminal";
        return Found::not(State::Absent, "stdin and stdout are not both a terminal", fix);
    }
    let term = here.var("TERM").unwrap_or("not set");
    match tcgetwinsize(&out) {
        Ok(size) if (size.ws_col, size.ws_row) == (0, 0) => {
            Found::not(State::Warn, format!("a terminal without a size, TERM={term}"), "set it: stty cols 120 rows 40")
        }
        Ok(size) => {
            let fact = format!("{}x{}, TERM={term}", size.ws_col, size.ws_row);
            if size.ws_col < SMALLEST.0 || size.ws_row < SMALLEST.1 {
                Found::not(State::Warn, fact, format!("make it {}x{} or larger", SMALLEST.0, SMALLEST.1))
            } else {
                Found::ok(fact)
            }
        }
        Err(error) => Found::not(State::Warn, format!("no size: {error}"), "set it: stty cols 120 rows 40"),
    }
}

/// What the variables say; the screen may find out more by asking the terminal.
pub(super) fn colours(here: &Here) -> Found {
    let term = here.var("TERM").unwrap_or("");
    if here.var("NO_COLOR").is_some() {
        return Found::not(State::Warn, "none, since NO_COLOR is set", "--color truecolor, or unset NO_COLOR");
    }
    if matches!(here.var("COLORTERM"), Some("truecolor" | "24bit")) || term.ends_with("-direct") {
        return Found::ok("truecolor");
    }
    let better = "if your terminal can, export COLORTERM=truecolor (over ssh: SendEnv COLORTERM), or --color truecolor";
    match term {
        "" | "dumb" => Found::not(State::Absent, "none: TERM is not set or dumb", "export TERM=xterm-256color"),
        term if term.contains("256") => Found::not(State::Warn, format!("256, by TERM={term}"), better),
        term => Found::not(State::Warn, format!("16, by TERM={term}"), better),
    }
}

pub(super) fn cores(here: &Here) -> Found {
    let cores = allowed_cores();
    let numa =
        here.machine.numa_of(&cores).map_or_else(|| "several NUMA nodes, or not told".to_owned(), |node| format!("NUMA node {node}"));
    let cache = match here.machine.cache_of(&cores) {
        0 => "last-level cache not told".to_owned(),
        bytes => format!("last-level cache {}", format_size(bytes)),
    };
    let processor = here.machine.processor();
    let name = if processor.is_empty() { String::new() } else { format!("{processor}, ") };
    let fact = format!("{name}{} usable ({}), {numa}, {cache}", cores.len(), format_ranks(&cores));
    if cores.len() < 2 {
        return Found::not(State::Warn, fact, "ranks that share a core measure each other; allow more (taskset, --cpus, --bind-to)");
    }
    Found::ok(fact)
}

pub(super) fn memory(here: &Here) -> Found {
    let (available, total) = here.machine.memory();
    if total == 0 {
        return Found::not(State::Warn, "the system does not say", "mount /proc; a sweep's buffers cannot be checked beforehand");
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let fact = format!("{:.1} GiB available of {:.1} GiB", gib(available), gib(total));
    if available < 1 << 30 {
        return Found::not(State::Warn, fact, "less than 1 GiB: use smaller --sizes or --window");
    }
    Found::ok(fact)
}

/// A file of this person's own.
fn own(here: &Here, name: &str) -> Option<PathBuf> {
    let folder = here.var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder.or_else(|| here.var("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(folder.join("toposcope").join(name))
}

/// What this person set once, and where; a file that cannot be used stops every command that it concerns.
pub(super) fn settings(here: &Here) -> Found {
    let path = own(here, "config.toml").unwrap_or_default();
    let shown = path.display();
    let fix = "correct it; toposcope --print-config writes every setting with its default";
    match config::load_from(&path, |name| here.var(name).map(str::to_owned)) {
        Err(wrong) => Found::not(State::Warn, wrong.to_string(), fix),
        Ok(config) => {
            let set: Vec<String> = config.changed().map(|(name, value, place)| format!("{name} = {value} ({place})")).collect();
            Found::ok(if set.is_empty() { format!("as shipped; {shown} changes them") } else { set.join(", ") })
        }
    }
}

/// What links give of their nominal rate, and where that comes from.
pub(super) fn efficiency(here: &Here) -> Found {
    let own = own(here, "efficiency.toml");
    let fix = |path: &Path| format!("correct {}; toposcope doctor shows what is used", path.display());
    let (table, source) = match (&here.efficiency, &own) {
        (Some(named), _) => match crate::cli::efficiency::read(named) {
            Ok(Some(table)) => (table, named.display().to_string()),
            Ok(None) => return Found::not(State::Warn, format!("there is no {}", named.display()), "name a file that exists"),
            Err(wrong) => return Found::not(State::Warn, format!("{wrong:#}"), fix(named)),
        },
        (None, Some(own)) => match crate::cli::efficiency::read(own) {
            Ok(Some(table)) => (table, own.display().to_string()),
            Ok(None) => (Efficiency::default(), format!("shipped; {} changes it", own.display())),
            Err(wrong) => return Found::not(State::Warn, format!("{wrong:#}"), fix(own)),
        },
        (None, None) => (Efficiency::default(), "shipped".to_owned()),
    };
    let Efficiency { nvlink, xgmi, c2c, pcie, infiniband, ethernet, gpudirect_cross_socket } = table;
    let shares = [
        ("NVLink", nvlink),
        ("xGMI", xgmi),
        ("C2C", c2c),
        ("PCIe", pcie),
        ("InfiniBand", infiniband),
        ("Ethernet", ethernet),
        ("GPUDirect across sockets", gpudirect_cross_socket),
    ];
    let shares: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect();
    Found::ok(format!("{} ({source})", shares.join(", ")))
}

/// The folder of the sockets that `toposcope attach` uses: `$XDG_RUNTIME_DIR/toposcope`, or `/tmp/toposcope-UID`.
pub(super) fn sockets(here: &Here) -> Found {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = here.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute() && fs::metadata(path).is_ok_and(|about| about.uid() == uid));
    let temporary = here.var("TMPDIR").unwrap_or("/tmp");
    let path = runtime.map_or_else(|| PathBuf::from(temporary).join(format!("toposcope-{uid}")), |path| path.join("toposcope"));
    let shown = path.display();
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::ok(format!("{shown}, made when needed")),
        Err(error) => Found::not(State::Warn, format!("{shown}: {error}"), "point XDG_RUNTIME_DIR to a folder of yours"),
        // Nothing for group and others: the six lowest bits of the mode.
        Ok(about) if about.is_dir() && about.uid() == uid && about.mode().trailing_zeros() >= 6 => Found::ok(format!("{shown}, private")),
        Ok(_) => {
            let fix = format!("rm -r {shown}, or point XDG_RUNTIME_DIR to a folder of yours with mode 0700");
            Found::not(State::Warn, format!("{shown} is not a folder that only you may enter; attach refuses it"), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn colours_follow_the_variables() {
        let root = tempfile::tempdir().unwrap();
        let told = |variables: &[(&str, &str)]| colours(&Here::at(root.path(), variables.iter().copied())).fact;
        assert_eq!(told(&[("COLORTERM", "truecolor"), ("TERM", "xterm")]), "truecolor");
        assert_eq!(told(&[("TERM", "xterm-256color")]), "256, by TERM=xterm-256color");
        assert_eq!(told(&[("TERM", "xterm")]), "16, by TERM=xterm");
        assert!(told(&[("TERM", "dumb")]).starts_with("none"));
        assert!(told(&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")]).starts_with("none"));
    }

    #[test]
    fn settings_are_told_with_their_places_and_so_is_what_is_wrong_with_them() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("toposcope");
        fs::create_dir(&folder).unwrap();
        let told = || {
            let variables = [("XDG_CONFIG_HOME", root.path().to_str().unwrap()), ("TOPOSCOPE_COLOR", "16")];
            settings(&Here::at(root.path(), variables))
        };
        assert_eq!(told().fact, "color = \"16\" (TOPOSCOPE_COLOR)");
        fs::write(folder.join("config.toml"), "\ntheme = 'light'\n").unwrap();
        assert!(told().fact.ends_with("toposcope/config.toml:2)") && told().fact.contains("theme = \"light\" ("), "{:?}", told());
        fs::write(folder.join("config.toml"), "tehme = 'light'\n").unwrap();
        assert!(told().state == State::Warn && told().fact.contains("config.toml:1: there is no setting \"tehme\""), "{:?}", told());
        let none = settings(&Here::at(root.path(), [("HOME", "/nowhere")]));
        assert_eq!(none, Found::ok("as shipped; /nowhere/.config/toposcope/config.toml changes them"));
    }

    #[test]
    fn the_table_in_use_is_told_with_its_place_and_so_is_what_is_wrong_in_it() {
        let root = tempfile::tempdir().unwrap();
        let here = || Here::at(root.path(), [("XDG_CONFIG_HOME", root.path().to_str().unwrap())]);
        let told = efficiency(&here());
        assert!(told.fact.starts_with("NVLink 88 %,") && told.fact.contains("shipped; "), "{told:?}");
        let file = root.path().join("toposcope/efficiency.toml");
        fs::create_dir(root.path().join("toposcope")).unwrap();
        fs::write(&file, "nvlink = 0.5").unwrap();
        let told = efficiency(&here());
        assert!(told.fact.starts_with("NVLink 50 %, xGMI 75 %") && told.fact.ends_with("efficiency.toml)"), "{told:?}");
        fs::write(&file, "nvlink = 5").unwrap();
        let told = efficiency(&here());
        assert!(told.state == State::Warn && told.fact.contains("nvlink = 5"), "{told:?}");
        let mut named = here();
        named.efficiency = Some(root.path().join("other.toml"));
        assert!(efficiency(&named).fact.contains("there is no "));
    }

    #[test]
    fn an_open_socket_folder_is_told() {
        let root = tempfile::tempdir().unwrap();
        let here = Here::at(root.path(), [("XDG_RUNTIME_DIR", root.path().to_str().unwrap())]);
        assert!(sockets(&here).fact.ends_with("toposcope, made when needed"));
        let folder = root.path().join("toposcope");
        fs::create_dir(&folder).unwrap();
        for (mode, state) in [(0o700, State::Ok), (0o755, State::Warn)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(sockets(&here).state, state, "{mode:o}");
        }
    }
}
