use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// the system said no
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// no sweep was started, so there are neither samples nor settings
    #[error("this session holds no sweep, so there is nothing to export; start one first (toposcope sweep)")]
    Nothing,
    /// not the JSON that a calibration is
    #[error("{}:{line}:{column}: {message}", path.display())]
    Bad { path: PathBuf, line: usize, column: usize, message: String },
    /// well-formed, but at odds with itself
    #[error("{}: {at} is {found}, expected {expected}", path.display())]
    Invalid { path: PathBuf, at: String, found: String, expected: String },
    /// written by a later program
    #[error("{} has format {found}, this program reads {ours} and its minor versions; read it with a later toposcope", path.display())]
    Newer { path: PathBuf, found: String, ours: String },
}

pub(super) fn io_at(path: &Path) -> impl Fn(io::Error) -> ExportError + '_ {
    move |source| ExportError::Io { path: path.to_owned(), source }
}

/// Write a file whole under a temporary name beside `path`, then rename it, so that nobody ever finds half of it.
pub(super) fn write_whole(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), ExportError> {
    let Some(name) = path.file_name() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file; give one such as cal.json");
        return Err(ExportError::Io { path: path.to_owned(), source });
    };
    let mut draft_name = std::ffi::OsString::from(".");
    draft_name.push(name);
    draft_name.push(format!(".{}.new", std::process::id()));
    let draft = path.with_file_name(draft_name);
    let written = (|| {
        let mut out = BufWriter::new(File::create(&draft)?);
        fill(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&draft, path)
    })();
    written.map_err(|source| {
        // The draft is ours; if it cannot go either, the first error is the one to tell.
        let _ = fs::remove_file(&draft);
        ExportError::Io { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cal.json");
        write_whole(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("cal.json: disk full"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_is_no_file() {
        let failed = write_whole(Path::new("/"), |_| Ok(())).unwrap_err();
        assert!(failed.to_string().contains("not the name of a file"), "{failed}");
    }
}
