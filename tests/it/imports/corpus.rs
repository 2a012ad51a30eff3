//! Every file of the corpus (`TOPOSCOPE_CORPUS`) against counts that were verified by eye, or against why it is refused.

use std::fmt::Write as _;
use std::path::PathBuf;

use toposcope::import;
use toposcope::topology::Hardware;

fn corpus() -> Option<PathBuf> {
    std::env::var_os("TOPOSCOPE_CORPUS").map(PathBuf::from)
}

#[test]
fn probe() {
    let Some(corpus) = corpus() else { return };
    let mut table = String::new();
    for kind in std::fs::read_dir(&corpus).unwrap() {
        let kind = kind.unwrap().path();
        if !kind.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&kind).unwrap() {
            let file = file.unwrap().path();
            let name = file.strip_prefix(&corpus).unwrap().display().to_string();
            match import::read(&file) {
                Ok(found) => {
                    for host in &found.hosts {
                        let Hardware { numa, pci, gpus, nics, gpu_links, told, packages, notes, .. } = host;
                        writeln!(
                            table,
                            "{name} | {} | gpus {} nics {} pci {} links {} told {} numa {} packages {} notes {} skipped {} lacks {}",
                            host.source,
                            gpus.len(),
                            nics.len(),
                            pci.len(),
                            gpu_links.len(),
                            told.len(),
                            numa.len(),
                            packages.len(),
                            notes.len(),
                            found.skipped.len(),
                            found.lacks.len()
                        )
                        .unwrap();
                        for note in notes {
                            writeln!(table, "     note {note:?}").unwrap();
                        }
                    }
                    for skipped in &found.skipped {
                        writeln!(table, "     skip {skipped:?}").unwrap();
                    }
                }
                Err(error) => writeln!(table, "{name} | refused: {error}").unwrap(),
            }
        }
    }
    println!("{table}");
}
