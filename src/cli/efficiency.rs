//! The table of what links give of their nominal rate: the shipped one, with the lines of a person's file over it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::args::Global;
use crate::config;
use crate::topology::Efficiency;

/// What `--efficiency` names, else the file in the configuration folder if there is one, else the shipped table.
pub(super) fn table(global: &Global) -> Result<Efficiency> {
    match &global.efficiency {
        Some(file) => read(file).with_context(|| "--efficiency")?.with_context(|| format!("--efficiency: there is no {}", file.display())),
        None => Ok(read(&config::efficiency())?.unwrap_or_default()),
    }
}

/// The shipped table with a file's lines; `None` if there is no such file.
pub(super) fn read(file: &Path) -> Result<Option<Efficiency>> {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => match Efficiency::default().with(&text, &name) {
            Ok(table) => Ok(Some(table)),
            Err(wrong) => bail!(wrong),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_s_lines_go_over_the_shipped_ones_and_a_wrong_one_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        assert_eq!(read(&file).unwrap(), None);
        fs::write(&file, "pcie = 0.8\n").unwrap();
        assert_eq!(read(&file).unwrap(), Some(Efficiency { pcie: 0.8, ..Efficiency::default() }));
        fs::write(&file, "\npcei = 0.8\n").unwrap();
        let told = read(&file).unwrap_err().to_string();
        assert!(told.contains("mine.toml:2") && told.contains("pcei"), "{told}");
    }
}
