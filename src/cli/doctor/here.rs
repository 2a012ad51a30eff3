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
