use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::discover::Machine;
use crate::topology::Hardware;

/// Where the loader looks, besides `LD_LIBRARY_PATH` and its cache.
const LIBRARY_FOLDERS: [&str; 8] = [
    "lib",
    "lib64",
    "usr/lib",
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/local/lib",
    "usr/local/cuda/lib64",
];

/// This machine and this process's environment; in tests a folder and made-up variables.
pub(super) struct Here {
    root: PathBuf,
    environment: BTreeMap<String, String>,
    pub(super) machine: Machine,
    hardware: OnceCell<Hardware>,
    /// the table of efficiencies that the command line names
    pub(super) efficiency: Option<PathBuf>,
}

impl Here {
    pub(super) fn now() -> Self {
        let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| Some((key.into_string().ok()?, value.into_string().ok()?));
        let environment = std::env::vars_os().filter_map(text).collect();
        Self { root: PathBuf::from("/"), environment, machine: Machine::default(), hardware: OnceCell::new(), efficiency: None }
    }

    #[cfg(test)]
    pub(super) fn at<'a>(root: &std::path::Path, environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let environment = environment.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { root: root.to_owned(), environment, machine: Machine::at(root), hardware: OnceCell::new(), efficiency: None }
    }

    /// What this machine is made of; looked at once.
    pub(super) fn hardware(&self) -> &Hardware {
        self.hardware.get_or_init(|| self.machine.hardware())
    }

    /// A variable that is set and not empty.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below.trim_start_matches('/'))
    }

    /// The program of that name that a shell would start.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.var("PATH")?);
        folders.map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Files in the loader's folders whose name begins with `prefix`, the first of each name, by name.
    pub(super) fn libraries(&self, prefix: &str) -> BTreeMap<String, PathBuf> {
        let told = self.var("LD_LIBRARY_PATH").into_iter().flat_map(std::env::split_paths);
        let standard = LIBRARY_FOLDERS.iter().map(|folder| self.root.join(folder));
        let mut found = BTreeMap::new();
        for folder in told.chain(standard).chain(self.configured()) {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with(prefix)) {
                    found.entry(name.to_owned()).or_insert_with(|| entry.path());
                }
            }
        }
        found
    }

    /// Files of Python packages, by their place below site-packages: of the environment that is active, of this person, of the system.
    pub(super) fn wheels(&self, below: &str) -> Vec<PathBuf> {
        let active =
            ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| self.var(name)).map(|prefix| PathBuf::from(prefix).join("lib"));
        let own = self.var("HOME").map(|home| PathBuf::from(home).join(".local/lib"));
        let system = ["usr/local/lib", "usr/lib"].map(|folder| self.root.join(folder));
        let mut found = Vec::new();
        for folder in active.chain(own).chain(system) {
            let pythons = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
            let mut pythons: Vec<PathBuf> =
                pythons.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))).collect();
            pythons.sort_unstable();
            for packages in ["site-packages", "dist-packages"] {
                found.extend(pythons.iter().map(|python| python.join(packages).join(below)).filter(|path| path.is_file()));
            }
        }
        found
    }

    /// Folders named in `/etc/ld.so.conf.d`.
    fn configured(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(self.path("etc/ld.so.conf.d")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            folders.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(|line| self.path(line)));
        }
        folders
    }
}
