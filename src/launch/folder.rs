//! The private folder for sockets and what libraries print: `$XDG_RUNTIME_DIR/toposcope`, or `/tmp/toposcope-UID`.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::LaunchError;

/// Make sure of the private folder and give its path.
pub fn private() -> Result<PathBuf, LaunchError> {
    let uid = geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // After `sudo` the variable may name the folder of the one who called it.
    if let Some(runtime) = runtime.filter(|path| path.is_absolute() && fs::metadata(path).is_ok_and(|about| about.uid() == uid)) {
        return ensure(&runtime.join("toposcope"));
    }
    ensure(&env::temp_dir().join(format!("toposcope-{uid}")))
}

/// Every private folder that a process of this user may have chosen: a batch job has no `XDG_RUNTIME_DIR`, a login has.
pub fn candidates() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let mut found: Vec<PathBuf> = env::var_os("XDG_RUNTIME_DIR").map(|path| PathBuf::from(path).join("toposcope")).into_iter().collect();
    found.push(PathBuf::from(format!("/run/user/{uid}/toposcope")));
    found.push(env::temp_dir().join(format!("toposcope-{uid}")));
    found.push(PathBuf::from(format!("/tmp/toposcope-{uid}")));
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in found {
        if check(&path).is_ok() && !kept.contains(&path) {
            kept.push(path);
        }
    }
    kept
}

/// Make the folder if it is not there; refuse one that others own, may enter, or that is a link.
pub(crate) fn ensure(path: &Path) -> Result<PathBuf, LaunchError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(LaunchError::at(format!("make {}", path.display()))(error)),
    }
    check(path)?;
    Ok(path.to_owned())
}

fn check(path: &Path) -> Result<(), LaunchError> {
    let refuse = |why: String| Err(LaunchError::NotPrivate { path: path.to_owned(), why });
    let about = fs::symlink_metadata(path).map_err(LaunchError::at(format!("look at {}", path.display())))?;
    if !about.is_dir() {
        return refuse("it is not a folder".to_owned());
    }
    if about.uid() != geteuid().as_raw() {
        return refuse(format!("it belongs to user {}", about.uid()));
    }
    if about.mode() & 0o077 != 0 {
        return refuse(format!("its mode is {:o}, expected 700", about.mode() & 0o777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn made_private_and_refused_otherwise() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("toposcope");
        ensure(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        ensure(&path).unwrap();

        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(ensure(&path).unwrap_err().to_string().contains("its mode is 750"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();

        let link = scratch.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(ensure(&link).unwrap_err().to_string().contains("not a folder"));

        // Only root can give folders away.
        if geteuid().is_root() {
            chown(&path, Some(4711), None).unwrap();
            assert!(ensure(&path).unwrap_err().to_string().contains("belongs to user 4711"));
        }
    }
}
