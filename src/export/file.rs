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

/// Write a file whole, or not at all.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    write_whole(path, |out| out.write_all(bytes))
}

/// Longest name of a session that files are named by, characters.
const LONGEST_NAME: usize = 80;

/// Two new files that share a name and a number which no file has, such as `lab-matrix-2.svg` and `lab-matrix-2.png`: empty, to be
/// written. Names are data: of other signs than letters, digits, `.`, `_` and `-` a file's name has none.
pub fn new_files(folder: &Path, name: &str, ends: [&str; 2]) -> Result<[PathBuf; 2], ExportError> {
    let plain = |letter: char| if letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-') { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    // The end says what it is.
    let skipped = name.chars().count().saturating_sub(LONGEST_NAME);
    let name: String = name.chars().skip(skipped).collect();
    let name = name.trim_start_matches(['.', '-']);
    let name = if name.is_empty() { "toposcope" } else { name };
    for number in 1_u32.. {
        let paths = ends.map(|end| folder.join(format!("{name}-{number}.{end}")));
        let create = |path: &Path| fs::OpenOptions::new().write(true).create_new(true).open(path);
        match create(&paths[0]) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => drop(made.map_err(io_at(&paths[0]))?),
        }
        match create(&paths[1]) {
            Ok(_) => return Ok(paths),
            Err(source) => {
                // The first is ours, and empty.
                let _ = fs::remove_file(&paths[0]);
                if source.kind() != io::ErrorKind::AlreadyExists {
                    return Err(ExportError::Io { path: paths[1].clone(), source });
                }
            }
        }
    }
    Err(ExportError::Io { path: folder.to_owned(), source: io::Error::other("no number is left") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_replace_none_and_their_names_are_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| new_files(folder.path(), name, ["svg", "png"]).unwrap().map(|path| path.file_name().unwrap().to_owned());
        fs::write(folder.path().join("lab-1.png"), "mine").unwrap();
        assert_eq!(make("lab"), ["lab-2.svg", "lab-2.png"]);
        assert_eq!(make("lab"), ["lab-3.svg", "lab-3.png"]);
        assert!(!folder.path().join("lab-1.svg").exists());
        assert_eq!(fs::read(folder.path().join("lab-1.png")).unwrap(), b"mine");
        assert_eq!(make("../../etc/\u{1b}[31m x"), ["etc---31m-x-1.svg", "etc---31m-x-1.png"]);
        assert_eq!(make("///"), ["toposcope-1.svg", "toposcope-1.png"]);
        assert!(make(&"x".repeat(500))[0].len() < 100);
        let refused = new_files(&folder.path().join("none"), "lab", ["svg", "png"]).unwrap_err();
        assert!(refused.to_string().contains("none/lab-1.svg"), "{refused}");
    }

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
