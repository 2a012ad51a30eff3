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
    /// the fits or the machine do not give what a topology profile holds
    #[error("no TACCL profile: {why}")]
    NoProfile { why: String },
    /// written by a later program
    #[error("{} has format {found}, this program reads {ours} and its minor versions; read it with a later toposcope", path.display())]
    Newer { path: PathBuf, found: String, ours: String },
}

pub(super) fn io_at(path: &Path) -> impl Fn(io::Error) -> ExportError + '_ {
    move |source| ExportError::Io { path: path.to_owned(), source }
}

/// Write a file whole under a temporary name beside `path`, then rename it, so that nobody ever finds half of it.
///
/// A device, a pipe or the like is written to, not replaced; what a link names is replaced, not the link.
pub(super) fn write_whole(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), ExportError> {
    let Some(name) = path.file_name() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file; give one such as cal.json");
        return Err(ExportError::Io { path: path.to_owned(), source });
    };
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        // As root a rename would put a plain file where /dev/null is.
        let into = || {
            let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
            fill(&mut out)?;
            out.flush()
        };
        return into().map_err(io_at(path));
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut draft_name = std::ffi::OsString::from(".");
    draft_name.push(name);
    draft_name.push(format!(".{}.new", std::process::id()));
    let draft = target.with_file_name(draft_name);
    let written = (|| {
        let mut out = BufWriter::new(File::create(&draft)?);
        fill(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&draft, &target)
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
    fn a_pipe_is_written_to_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_whole(&pipe, |out| out.write_all(b"through")).unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(!fs::metadata(&pipe).unwrap().is_file(), "the pipe was replaced");
        fs::write(folder.path().join("real"), "old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("real")).unwrap(), b"new");
    }

    #[test]
    fn a_folder_is_no_file() {
        let failed = write_whole(Path::new("/"), |_| Ok(())).unwrap_err();
        assert!(failed.to_string().contains("not the name of a file"), "{failed}");
    }
}
